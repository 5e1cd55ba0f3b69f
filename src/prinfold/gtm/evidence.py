"""The evidence for a GTM: how likely the data are when its weights are integrated out, thesis 5.3 and appendix A.

    ln p(T | α, β, σ) = ln p(T | W) − ½ α‖W‖² − ½ ln |H| + ½ W ln α          (5.17),   H = H_T + αM

with H_T the Hessian of −ln p(T | W) in the weights at their mode and M the penalty mask. Weights that no penalty holds
down have a flat prior: they count neither in ‖W‖² nor in W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import AnyNoise, Parameters, in_words
from prinfold.numerics.linalg import solve_symmetric
from prinfold.rows.rows import Rows, as_rows, blas_on_one_thread

_EIGENVALUE_ROUNDING = 1e-14
"""Share of the largest eigenvalue below which one of a free weight is rounding."""


@dataclass(frozen=True)
class Curvature:
    """Eigenvalues of H_T, which give the evidence for every α at once.

    The free weights f are integrated out first: ``eigenvalues`` are those of the Schur complement H_pp − H_pf H_ff⁻¹
    H_fp in the ``n_penalized`` others, and ``log_free`` is ln |H_ff|. Where no weight is free they are the λ of H_T
    itself. A matrix of ``copies`` equal blocks is given by one of them. Where columns have priors of their own, weights
    are measured in units in which α is the same for all.
    """

    eigenvalues: FloatArray
    log_free: float
    n_free: int
    copies: int = 1

    @property
    def n_penalized(self) -> int:
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


def curvature(hessian: FloatArray, prior: FloatArray, copies: int = 1) -> Curvature:
    """Eigenvalues of a Hessian (W, W) with its free weights integrated out; ``prior`` (W,) is the diagonal of M."""
    with blas_on_one_thread():  # mostly small; and on a busy machine the threads of a large one wait for each other
        held, free = prior > 0, prior == 0
        inner = hessian[np.ix_(held, held)]
        log_free = 0.0
        if free.any():
            block, across = hessian[np.ix_(free, free)], hessian[np.ix_(free, held)]
            inner = inner - across.T @ solve_symmetric(block, across)
            value = eigh(block, eigvals_only=True)
            log_free = float(
                np.log(np.maximum(value, max(_EIGENVALUE_ROUNDING * value[-1], np.finfo(float).tiny))).sum()
            )
        root = 1.0 / np.sqrt(prior[held])
        found = eigh(root[:, None] * inner * root, eigvals_only=True) if held.any() else np.empty(0)
        return Curvature(np.asarray(found), log_free, int(free.sum()), copies)


def log_evidence(log_likelihood: float, prior_precision: float, roughness: float, bent: Curvature) -> float:
    """ln p(T | α, β, σ) of (5.17), of the log-likelihood of all rows, α, ‖W‖² over penalised weights, and H_T."""
    if not prior_precision > 0:
        raise InvalidParameterError(
            Message(
                "the evidence needs a prior on the weights, and this model has none: its regularization or "
                "prior_precision is 0",
                "give one above 0",
                Advice("prior_precision", "evidence", "{}"),
            )
        )
    occam = bent.n_penalized * np.log(prior_precision) - bent.log_determinant(prior_precision)
    return float(log_likelihood - 0.5 * prior_precision * roughness + 0.5 * occam)


# -------------------------------------------------------------------------------------------------- Hessians


def approximate_block(surface: BasisMap, mass: FloatArray, precision: float) -> FloatArray:
    """(M, M) β ΦᵀGΦ, the block of every column in the approximate Hessian (A.11).

    It takes the responsibilities as given, as if a row belonged to one node. Other blocks are 0.
    """
    return precision * surface.gram(mass)


def exact_hessian(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(DM, DM) second derivatives of −Σ w ln p(t) in the weights, column after column of them, by (A.13).

        H^{jq} = δ_jq Σ_n w p_nj Φᵀ R_n Φ − Φᵀ Q^{jq} Φ + Σ_n w z_n^j z_n^qᵀ

    with the diagonal Q^{jq}_kk = Σ_n w r_kn p_nj (t_nj − y_kj) p_nq (t_nq − y_kq) and z_n^j = Σ_k r_kn p_nj (t_nj −
    y_kj) φ_k, where p is the precision of a cell: β, or what columns, errors and gaps make of it. Rows go by in
    blocks, in double precision; of what is symmetric in j and q one half is computed.
    """
    n_nodes, n_features = model.surface.node_features.shape
    n_columns = rows.n_columns
    width = max(n_nodes, n_columns * n_features, n_columns * (n_columns + 1) // 2)
    cells = model.noise.capabilities.cells
    precisions = None if cells is None else cells.precisions
    sums = _Sums(model.surface, parameters) if precisions is None else _CellSums(model.surface, parameters, precisions)
    for part in as_rows(rows.table, rows.offset, rows.weight, width).slices:
        block, errors = rows.block(part).astype(np.float64, copy=False), rows.block_errors(part)
        here = as_rows(block, width=n_nodes, gaps=rows.gaps, errors=errors)
        sums.add(model.noise, here, posteriors.responsibilities(model, here, parameters), rows.block_weight(part))
    return _symmetric(sums.between() - _node_part(sums))


CellPrecisions: TypeAlias = Callable[[Any, Parameters], tuple[FloatArray, FloatArray]]
"""Values of a loaded block and (n, D) the precision of each cell."""


class _Sums:
    """Sums over rows in (A.13) under one precision: mass, first and second moments at the nodes, and Σ w z zᵀ."""

    def __init__(self, surface: BasisMap, parameters: Parameters) -> None:
        self.Phi, self.Y = surface.node_features, surface.nodes(parameters.weights)
        self.parameters = parameters
        (K, M), D = self.Phi.shape, self.Y.shape[1]
        self.pairs = np.triu_indices(D)
        self.mass, self.moment = np.zeros(K), np.zeros((K, D))
        self.second = np.zeros((K, len(self.pairs[0])))
        self.outer = np.zeros((D * M, D * M), order="F")
        self.carried = (self.Y[:, :, None] * self.Phi[:, None, :]).reshape(K, D * M)

    def add(self, noise: AnyNoise, rows: Rows, shares: FloatArray, weight: FloatArray | None) -> None:
        """Add rows (n, D) with their responsibilities (n, K)."""
        block = rows.block(slice(None))
        scaled = shares if weight is None else shares * weight[:, None]
        self.mass += scaled.sum(axis=0)
        self.moment += scaled.T @ block
        self.second += scaled.T @ (block[:, self.pairs[0]] * block[:, self.pairs[1]])
        self._add_outer((block[:, :, None] * (shares @ self.Phi)[:, None, :]), shares @ self.carried, weight)

    def _add_outer(self, seen: FloatArray, expected: FloatArray, weight: FloatArray | None) -> None:
        """Add Σ w z zᵀ for z = ``seen`` − ``expected``, (n, D, M) each."""
        z = seen.reshape(len(seen), -1)
        z -= expected
        if weight is not None:
            z *= np.sqrt(weight)[:, None]
        self.outer = dsyrk(1.0, z.T, beta=1.0, c=self.outer, lower=1, overwrite_c=1)

    def between(self) -> FloatArray:
        """(DM, DM) Σ w z zᵀ, the lower half of it."""
        beta = self.parameters.level
        return np.asarray(beta * (beta * self.outer))  # of equal rows β² would overflow

    def masses(self) -> FloatArray:
        """(K, D) Σ w r p."""
        return self.parameters.level * np.repeat(self.mass[:, None], self.Y.shape[1], axis=1)

    def scatter(self) -> FloatArray:
        """(K, pairs) the diagonals of Q^{jq}, j ≤ q: second moments about the images of the nodes."""
        (j, q), y, m, beta = self.pairs, self.Y, self.moment, self.parameters.level
        about = y[:, j] * m[:, q] + m[:, j] * y[:, q] - self.mass[:, None] * y[:, j] * y[:, q]
        return np.asarray(beta * (beta * (self.second - about)))


class _CellSums(_Sums):
    """Sums over rows in (A.13) where every cell has a precision of its own: Σ p t and Σ p, for each pair of columns."""

    def __init__(self, surface: BasisMap, parameters: Parameters, precisions: CellPrecisions) -> None:
        super().__init__(surface, parameters)
        self.precisions = precisions
        self.precise = np.zeros_like(self.Y)
        self.mixed, self.turned, self.double = (np.zeros_like(self.second) for _ in range(3))

    def add(self, noise: AnyNoise, rows: Rows, shares: FloatArray, weight: FloatArray | None) -> None:
        """Add rows (n, D) with their responsibilities (n, K)."""
        values, p = self.precisions(noise.load(rows.block(slice(None)), rows.errors), self.parameters)
        u, (j, q) = p * values, self.pairs
        scaled = shares if weight is None else shares * weight[:, None]
        self.precise += scaled.T @ p
        self.second += scaled.T @ (u[:, j] * u[:, q])
        self.mixed += scaled.T @ (p[:, j] * u[:, q])
        self.turned += scaled.T @ (u[:, j] * p[:, q])
        self.double += scaled.T @ (p[:, j] * p[:, q])
        expected = (shares @ self.carried).reshape(*p.shape, -1) * p[:, :, None]
        self._add_outer(u[:, :, None] * (shares @ self.Phi)[:, None, :], expected.reshape(len(p), -1), weight)

    def between(self) -> FloatArray:
        return self.outer

    def masses(self) -> FloatArray:
        return self.precise

    def scatter(self) -> FloatArray:
        (j, q), y = self.pairs, self.Y
        about = y[:, j] * self.mixed + self.turned * y[:, q] - self.double * y[:, j] * y[:, q]
        return self.second - about


def _node_part(sums: _Sums) -> FloatArray:
    """(DM, DM) Φᵀ(Q^{jq} − δ_jq Σ w r p)Φ, blocks of the lower half."""
    Phi, (n_nodes, n_features), n_columns = sums.Phi, sums.Phi.shape, sums.Y.shape[1]
    inner, masses, first = sums.scatter(), sums.masses(), 0
    out = np.zeros(sums.outer.shape, order="F")
    for j in range(n_columns):
        along = inner[:, first : first + n_columns - j]
        along[:, 0] -= masses[:, j]
        spread = (along[:, :, None] * Phi[:, None, :]).reshape(n_nodes, -1)
        out[j * n_features :, j * n_features : (j + 1) * n_features] = spread.T @ Phi
        first += n_columns - j
    return out


def _symmetric(lower: FloatArray) -> FloatArray:
    """A symmetric matrix from its lower half."""
    half = np.tril(lower)
    return np.asarray(half + np.tril(half, -1).T)


# ------------------------------------------------------------------------------------- of a model and its rows


class Prior(NamedTuple):
    """The prior of a model: ``precision`` is α, and ``relative`` (D,) the precision of each column over α."""

    precision: float
    relative: FloatArray

    def roughness(self, surface: BasisMap, weights: FloatArray) -> float:
        """‖W‖² over the penalised weights, in units in which α is the same for all columns."""
        return float(self.relative @ surface.column_roughness(weights))


def prior_of(model: gtm.GTMModel, parameters: Parameters) -> Prior:
    """α = λβ, of every column where columns have noise of their own."""
    alpha = model.penalty.strength(parameters.level) * parameters.level
    each = np.broadcast_to(parameters.precision, parameters.weights.shape[1])
    own = np.array([model.penalty.strength(float(beta)) * float(beta) for beta in each])
    return Prior(float(alpha), own / alpha if alpha > 0 else np.ones(len(own)))


def prior_along(alpha: float, parameters: Parameters) -> Prior:
    """A prior that follows the noise from column to column, α being that of a column of average noise."""
    relative = np.broadcast_to(parameters.precision, parameters.weights.shape[1]) / parameters.level
    return Prior(alpha, np.asarray(relative))


def curvature_of_sums(surface: BasisMap, sums: Any, parameters: Parameters, prior: Prior) -> Curvature:
    """Curvature by the approximate Hessian from the sums of an E-step: D blocks, which are equal where masses are."""
    mask, n_columns = surface.penalty_mask, parameters.weights.shape[1]
    precision = np.broadcast_to(parameters.precision, n_columns)
    masses = sums.masses  # (K, D), where columns differ in what was measured
    if masses is None and (precision == precision[0]).all() and (prior.relative == 1).all():
        return curvature(approximate_block(surface, sums.mass, float(precision[0])), mask, n_columns)
    each = np.repeat(sums.mass[:, None], n_columns, axis=1) if masses is None else masses
    parts = [
        curvature(approximate_block(surface, each[:, d], float(precision[d])), prior.relative[d] * mask)
        for d in range(n_columns)
    ]
    eigenvalues = np.concatenate([part.eigenvalues for part in parts])
    return Curvature(eigenvalues, sum(part.log_free for part in parts), sum(part.n_free for part in parts))


def approximate_curvature(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> Curvature:
    """Curvature by the approximate Hessian."""
    sums = gtm.e_step(model, rows, parameters, Hint())[0]
    return curvature_of_sums(model.surface, sums, parameters, prior_of(model, parameters))


def exact_curvature(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> Curvature:
    """Curvature by the exact Hessian."""
    prior = np.kron(prior_of(model, parameters).relative, model.surface.penalty_mask)
    return curvature(exact_hessian(model, rows, parameters), prior)


HESSIANS: dict[str, Callable[[gtm.GTMModel, Rows, Parameters], Curvature]] = {
    "approximate": approximate_curvature,
    "exact": exact_curvature,
}
"""Name → how the curvature of the log-likelihood is found."""


def refuse_dependent_cells(
    model: gtm.GTMModel, what: str = "the evidence", instead: str = "choose by='held-out'"
) -> None:
    """The formulae here are of Gaussian noise that is independent from cell to cell; Student noise is no such cells."""
    cells = model.noise.capabilities.cells
    if cells is None or not cells.gaussian:
        raise InvalidParameterError(
            Message(
                f"{what} is known for Gaussian noise that is independent from cell to cell, got "
                f"{in_words(model.noise)}",
                Advice("noise", "isotropic", "use {}"),
                Advice("noise", "diagonal", "{}"),
                instead,
            )
        )


def check_hessian(hessian: Any) -> None:
    """Refuse a Hessian of another name."""
    if not isinstance(hessian, str) or hessian not in HESSIANS:
        raise InvalidParameterError(f"hessian must be one of {', '.join(HESSIANS)}, got {hessian!r}")


@blas_on_one_thread()
def curvature_and_likelihood(
    model: gtm.GTMModel, rows: Rows, parameters: Parameters, hessian: str
) -> tuple[Curvature, float]:
    """Curvature of the log-likelihood of rows in the weights, and that log-likelihood."""
    log_likelihood = gtm.e_step(model, rows, parameters, Hint())[0].log_likelihood
    return HESSIANS[hessian](model, rows, parameters), log_likelihood
