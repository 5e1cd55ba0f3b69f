"""The evidence for a GTM: how likely the data are when its weights are integrated out, thesis 5.3 and appendix A.

    ln p(T | α, β, σ) = ln p(T | W) − ½ α‖W‖² − ½ ln |H| + ½ W ln α          (5.17),   H = H_T + αM

with H_T the Hessian of −ln p(T | W) in the weights at their mode and M the penalty mask. Weights that no penalty holds
down have a flat prior: they count neither in ‖W‖² nor in W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from prinfold._arrays import Rows, as_rows, blas_on_one_thread
from prinfold._typing import FloatArray
from prinfold.algorithms import gtm
from prinfold.algorithms.isotropic import IsotropicNoise
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import Parameters
from prinfold.algorithms.pruning import Hint
from prinfold.exceptions import InvalidParameterError
from prinfold.kernels.linalg import solve_symmetric

_ROUNDING = 1e-14
"""Share of the largest eigenvalue below which one of a free weight is rounding."""


@dataclass(frozen=True)
class Curvature:
    """What of H_T the evidence needs, for every α at once.

    The free weights f are integrated out first: ``eigenvalues`` are those of the Schur complement H_pp − H_pf H_ff⁻¹
    H_fp in the ``n_penalised`` others, and ``log_free`` is ln |H_ff|. Where no weight is free they are the λ of H_T
    itself. A matrix of ``copies`` equal blocks is given by one of them.
    """

    eigenvalues: FloatArray
    log_free: float
    n_free: int
    copies: int = 1

    @property
    def n_penalised(self) -> int:
        """W of (5.17), the weights that the prior holds down."""
        return self.copies * len(self.eigenvalues)

    def log_determinant(self, prior_precision: float) -> float:
        """ln |H_T + αM| = ln |H_ff| + Σ ln(max(λ, 0) + α).

        To leave out terms of λ ≤ 0, as A.2.2 does, while ½ W ln α counts them adds ½ ln α to the evidence for each.
        """
        held = np.log(np.maximum(self.eigenvalues, 0.0) + prior_precision).sum()
        return float(self.copies * (self.log_free + held))

    def determined(self, prior_precision: float) -> float:
        """Σ λ/(λ + α), the number of penalised weights that the data determine: γ of (5.20)."""
        value = self.eigenvalues[self.eigenvalues > 0]
        return float(self.copies * np.sum(value / (value + prior_precision)))

    def effective(self, prior_precision: float) -> float:
        """tr[H_T (H_T + αM)⁻¹], all weights that the data determine, the free ones included: γ of (5.24)."""
        return self.determined(prior_precision) + self.copies * self.n_free


def curvature(hessian: FloatArray, penalised: FloatArray, copies: int = 1) -> Curvature:
    """Eigenvalues of a Hessian (W, W) with its free weights integrated out; ``penalised`` (W,) is the diagonal of M."""
    with blas_on_one_thread():  # mostly small; and on a busy machine the threads of a large one wait for each other
        held, free = penalised > 0, penalised == 0
        inner = hessian[np.ix_(held, held)]
        log_free = 0.0
        if free.any():
            block, across = hessian[np.ix_(free, free)], hessian[np.ix_(free, held)]
            inner = inner - across.T @ solve_symmetric(block, across)
            value = eigh(block, eigvals_only=True)
            log_free = float(np.log(np.maximum(value, max(_ROUNDING * value[-1], np.finfo(float).tiny))).sum())
        found = eigh(inner, eigvals_only=True) if held.any() else np.empty(0)
        return Curvature(np.asarray(found), log_free, int(free.sum()), copies)


def log_evidence(log_likelihood: float, prior_precision: float, roughness: float, bent: Curvature) -> float:
    """ln p(T | α, β, σ) of (5.17), of the log-likelihood of all rows, α, ‖W‖² over penalised weights, and H_T."""
    if not prior_precision > 0:
        raise InvalidParameterError(
            "the evidence needs a prior on the weights, and this model has none: its regularization or prior_precision "
            "is 0; give one above 0, or prior_precision='evidence'"
        )
    occam = bent.n_penalised * np.log(prior_precision) - bent.log_determinant(prior_precision)
    return float(log_likelihood - 0.5 * prior_precision * roughness + 0.5 * occam)


# -------------------------------------------------------------------------------------------------- Hessians


def approximate_block(surface: BasisMap, mass: FloatArray, precision: float) -> FloatArray:
    """(M, M) β ΦᵀGΦ, the block of every column in the approximate Hessian (A.11).

    It takes the responsibilities as given, as if a row belonged to one node. Other blocks are nil.
    """
    rooted = np.sqrt(precision * np.maximum(mass, 0.0))[:, None] * surface.node_features
    return np.asarray(rooted.T @ rooted)


def exact_hessian(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(DM, DM) second derivatives of −Σ w ln p(t) in the weights, column after column of them, by (A.13).

        H^{jq} = δ_jq βΦᵀGΦ − β² Φᵀ Q^{jq} Φ + β² Σ_n w z_n^j z_n^qᵀ

    with the diagonal Q^{jq}_kk = Σ_n w r_kn (t_nj − y_kj)(t_nq − y_kq) and z_n^j = Σ_k r_kn (t_nj − y_kj) φ_k. Rows go
    by in blocks, in double precision; of what is symmetric in j and q one half is computed.
    """
    beta, sums = parameters.level, _Sums(model.surface, parameters.weights)
    _, n_features = sums.Phi.shape
    n_columns = rows.n_columns
    width = max(len(sums.Phi), n_columns * n_features, n_columns * (n_columns + 1) // 2)
    for part in as_rows(rows.table, rows.offset, rows.weight, width).slices:
        block = rows.block(part).astype(np.float64, copy=False)
        shares = gtm.responsibilities(model, as_rows(block, width=len(sums.Phi)), parameters)
        sums.add(block, shares, rows.block_weight(part))
    return _filled(beta * (beta * sums.between) - _node_part(sums, beta))  # of equal rows β² would overflow


class _Sums:
    """What (A.13) sums over rows: mass (K,), first and second moments at the nodes, and Σ w z zᵀ (lower half)."""

    def __init__(self, surface: BasisMap, weights: FloatArray) -> None:
        self.Phi, self.Y = surface.node_features, surface.nodes(weights)
        (K, M), D = self.Phi.shape, weights.shape[1]
        self.pairs = np.triu_indices(D)
        self.mass, self.moment = np.zeros(K), np.zeros((K, D))
        self.second = np.zeros((K, len(self.pairs[0])))
        self.between = np.zeros((D * M, D * M), order="F")
        self.carried = (self.Y[:, :, None] * self.Phi[:, None, :]).reshape(K, D * M)

    def add(self, block: FloatArray, shares: FloatArray, weight: FloatArray | None) -> None:
        """Add rows (n, D) with their responsibilities (n, K)."""
        scaled = shares if weight is None else shares * weight[:, None]
        self.mass += scaled.sum(axis=0)
        self.moment += scaled.T @ block
        self.second += scaled.T @ (block[:, self.pairs[0]] * block[:, self.pairs[1]])
        z = (block[:, :, None] * (shares @ self.Phi)[:, None, :]).reshape(len(block), -1)
        z -= shares @ self.carried
        if weight is not None:
            z *= np.sqrt(weight)[:, None]
        self.between = dsyrk(1.0, z.T, beta=1.0, c=self.between, lower=1, overwrite_c=1)

    def scatter(self) -> FloatArray:
        """(K, pairs) the diagonals of Q^{jq}, j ≤ q: second moments about the images of the nodes."""
        j, q = self.pairs
        y, m = self.Y, self.moment
        about = y[:, j] * m[:, q] + m[:, j] * y[:, q] - self.mass[:, None] * y[:, j] * y[:, q]
        return self.second - about


def _node_part(sums: _Sums, beta: float) -> FloatArray:
    """(DM, DM) Φᵀ(β² Q^{jq} − δ_jq βG)Φ, blocks of the lower half."""
    Phi, (n_nodes, n_features), n_columns = sums.Phi, sums.Phi.shape, sums.moment.shape[1]
    inner, first = beta * (beta * sums.scatter()), 0
    out = np.zeros(sums.between.shape, order="F")
    for j in range(n_columns):
        along = inner[:, first : first + n_columns - j]
        along[:, 0] -= beta * sums.mass
        spread = (along[:, :, None] * Phi[:, None, :]).reshape(n_nodes, -1)
        out[j * n_features :, j * n_features : (j + 1) * n_features] = spread.T @ Phi
        first += n_columns - j
    return out


def _filled(lower: FloatArray) -> FloatArray:
    """A symmetric matrix from its lower half."""
    half = np.tril(lower)
    return np.asarray(half + np.tril(half, -1).T)


# ------------------------------------------------------------------------------------- of a model and its rows


def approximate_curvature(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> Curvature:
    """Curvature by the approximate Hessian: D blocks that are equal."""
    mass = gtm.e_step(model, rows, parameters, Hint())[0].mass
    block = approximate_block(model.surface, mass, parameters.level)
    return curvature(block, model.surface.penalty_mask, rows.n_columns)


def exact_curvature(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> Curvature:
    """Curvature by the exact Hessian."""
    return curvature(exact_hessian(model, rows, parameters), np.tile(model.surface.penalty_mask, rows.n_columns))


HESSIANS: dict[str, Callable[[gtm.GTMModel, Rows, Parameters], Curvature]] = {
    "approximate": approximate_curvature,
    "exact": exact_curvature,
}
"""Name → how the curvature of the log-likelihood is found."""


def refuse_other_noise(model: gtm.GTMModel) -> None:
    """The formulae of appendix A are of noise that is the same in every direction."""
    if not isinstance(model.noise, IsotropicNoise):
        raise InvalidParameterError(
            "the evidence is known for isotropic noise and rows without gaps or errors of their own only, got "
            f"{type(model.noise).__name__}; leave noise at its default, fill gaps first, or choose by held-out "
            "likelihood"
        )
