"""Noise with factors for rows with missing cells and with errors that are known, after thesis 6.5.

The precision of a cell of e is p = ρ/v, with v the variance of the noise and ρ = v/(v + err²), and 0 where the cell is
missing; S = I + UᵀPU then differs from row to row and node to node, and is one product of the ρ with the products of
U. Columns depend on each other through f: what is missing is expected at y + U E[f], not at y.

:func:`weigh` takes factors with a sign, Σ = v I ± U Uᵀ, so that noise narrower along U than across serves as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.factor_loadings import FactorParameters
from prinfold.gtm.noise.factor_model import WORDS, FactorModel, covariances, draw_rows
from prinfold.gtm.noise.factor_sums import FactorStatistics
from prinfold.gtm.noise.per_cell import MeasuredCells, as_cells
from prinfold.gtm.noise.protocol import Capabilities, Posterior, RowFactors
from prinfold.numerics.small_matrices import at, backward, cholesky, forward, inverse, log_determinant, n_packed, pairs


class CellFactorNodes(NamedTuple):
    """Nodes in the form that the E-step uses for rows with gaps.

    Arrays that are multiplied with cells have the axis of columns before that of nodes. ``loading`` (2D, K) holds y and
    −½y²; ``factors`` (q, D, K) U, ``offsets`` (q, D, K) U y and ``products`` (·, D, K) the packed U Uᵀ of each column;
    ``inverse`` (K,) is 1/v and ``sign`` (K,) that of U Uᵀ in Σ.
    """

    centers: FloatArray
    loading: FloatArray
    factors: FloatArray
    offsets: FloatArray
    products: FloatArray
    inverse: FloatArray
    sign: FloatArray

    @property
    def n_factors(self) -> int:
        return len(self.factors)

    def select(self, near: IntArray | None) -> CellFactorNodes:
        """The nodes numbered ``near``, or all for None."""
        return self if near is None else CellFactorNodes(self.centers[near], *(each[..., near] for each in self[1:]))

    @property
    def variance(self) -> float:
        """v, where nodes share it."""
        return float(1.0 / self.inverse[0])

    @property
    def n_layers(self) -> int:
        return 1 + self.n_factors + n_packed(self.n_factors)

    def log_density(self, loaded: MeasuredCells, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): the terms that differ between nodes into ``work[0]``; returns (n,) the sum of the others."""
        return weigh(loaded, loaded.trust(np.array(self.variance)), self.select(near), work)

    def empty_sums(self) -> CellFactorSums:
        K, D = self.centers.shape
        F, q = n_packed(1 + self.n_factors), self.n_factors
        return CellFactorSums(self, np.zeros((F, K)), np.zeros((1, F + 1 + q, D, K)), np.zeros(D))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        return draw_rows(self.centers, np.swapaxes(self.factors, 1, 2), float(self.inverse[0]), node, rng)

    def covariance(self, axes: FloatArray) -> FloatArray:
        return covariances(np.swapaxes(self.factors, 1, 2), float(self.inverse[0]), axes)

    def impute(
        self, loaded: MeasuredCells, posterior: Posterior, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself.

        Given the node a cell is y + U f + e, and f is known from the other cells as far as they tell of it.
        """
        fields = _fields(posterior, np.ones(len(loaded)), self.n_factors)
        G = [self.centers.T, *self.factors]
        mean, square = np.zeros((2, *loaded.values.shape))
        for a, b in pairs(len(G)):
            if b == 0:
                mean += fields[at(a, 0)] @ G[a].T
            square += (1.0 if a == b else 2.0) * fields[at(a, b)] @ (G[a] * G[b]).T
        return mean, np.maximum(square - np.square(mean), 0.0) + self.variance

    def factor_means(self, loaded: MeasuredCells, posterior: Posterior) -> FloatArray:
        """(n, q) E[f | t], over all nodes."""
        fields = _fields(posterior, np.ones(len(loaded)), self.n_factors)
        return np.stack([fields[at(a + 1, 0)].sum(axis=1) for a in range(self.n_factors)], axis=1)


def cell_nodes(centers: FloatArray, factors: FloatArray, inverse_v: FloatArray, sign: FloatArray) -> CellFactorNodes:
    """Nodes of centres (K, D), factors (q, K, D), inverse variances and signs (K,)."""
    loading = np.concatenate([centers.T, -0.5 * np.square(centers.T)])
    U = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
    products = np.array([U[a] * U[b] for a, b in pairs(len(U))]).reshape(-1, *centers.T.shape)
    return CellFactorNodes(centers, loading, U, U * centers.T, products, inverse_v, sign)


def weigh(loaded: MeasuredCells, trust: FloatArray, nodes: CellFactorNodes, work: FloatArray) -> FloatArray:
    """log p(t | node): terms that differ between nodes into ``work[0]``, then w = L⁻¹b and the packed L of S = L Lᵀ.

    Returns (n,) the rest.
    """
    q, scaled, v = nodes.n_factors, trust * loaded.values, nodes.inverse
    half, n_seen = 0.5 * np.einsum("nd,nd->n", scaled, loaded.values), loaded.seen.sum(axis=1, dtype=np.float64)
    found = (np.concatenate([scaled, trust], axis=1) @ nodes.loading) * v
    S = np.matmul(trust, nodes.products) * (nodes.sign * v)
    for a in range(q):
        S[at(a, a)] += 1.0
    root = cholesky(S, q)
    w = forward(root, (np.matmul(scaled, nodes.factors) - np.matmul(trust, nodes.offsets)) * v)
    found += 0.5 * (nodes.sign * np.einsum("qnk,qnk->nk", w, w) - log_determinant(root, q))
    shared = float(v.min())
    if (v > shared).any():
        found += 0.5 * n_seen[:, None] * np.log(v / shared) - half[:, None] * (v - shared)
    largest = found.max(axis=1)  # taken out before rounding to what may be single precision
    work[0], work[1 : q + 1], work[q + 1 :] = found - largest[:, None], w, root
    known = np.log(np.where(trust > 0, trust, 1.0)).sum(axis=1)
    return np.asarray(largest + 0.5 * (known + n_seen * np.log(shared / (2 * np.pi))) - half * shared)


@dataclass
class CellFactorSums:
    """Sums of an E-step: ``parts`` (P, F + 1 + q, D, K) of ρ with E[g gᵀ] and of ρ t with E[g], then with ρ² for ρ."""

    nodes: CellFactorNodes
    moments: FloatArray
    parts: FloatArray
    seen: FloatArray
    square: float = 0.0
    trusted: float = 0.0
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(
        self, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        ones = np.ones(len(loaded)) if weight is None else weight
        trust, q = loaded.trust(np.array(self.nodes.variance)), self.nodes.n_factors
        scaled, fields = trust * loaded.values, _fields(posterior, ones, q)
        linear = fields[[at(a, 0) for a in range(1 + q)]]
        if loaded.squared_errors is not None and len(self.parts) == 1:
            self.parts = np.concatenate([self.parts, np.zeros_like(self.parts)])
        for power, part in enumerate(self.parts):
            share = trust**power
            part[: len(fields)] += np.matmul((trust * share).T, fields)
            part[len(fields) :] += np.matmul((scaled * share).T, linear)
        self.moments += fields.sum(axis=1)
        self.square += float(ones @ np.einsum("nd,nd->n", scaled, scaled))
        self.seen += ones @ loaded.seen
        self.trusted += float(ones @ trust.sum(axis=1))
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())

    def statistics(self) -> FactorStatistics:
        F = len(self.moments)
        second = self.parts[:, :F].copy()
        if len(second) == 1:  # columns without gaps share their sums to the last bit, and then a system
            second = np.where((self.seen >= self.total)[:, None], self.moments[:, None], second)
        rest = self.square, float(self.seen.sum()), self.trusted, self.log_likelihood, self.total
        return FactorStatistics(self.moments.copy(), second, self.parts[:, F:].copy(), *rest)


def _fields(posterior: Posterior, weight: FloatArray, q: int) -> FloatArray:
    """(F, n, K) r E[g gᵀ] of each row and node, packed; g = (1, f)."""
    assert posterior.layers is not None
    layers = posterior.layers.astype(np.float64, copy=False)
    root, share = layers[q:], posterior.relative * (weight / posterior.total)[:, None]
    m, C = backward(root, layers[:q]), inverse(root, q)
    fields = np.empty((n_packed(1 + q), *share.shape))
    fields[0] = share
    for a in range(q):
        fields[at(a + 1, 0)] = share * m[a]
    for a, b in pairs(q):
        fields[at(a + 1, b + 1)] = share * (C[at(a, b)] + m[a] * m[b])
    return fields


_Kind: TypeAlias = Capabilities[FactorParameters, MeasuredCells, CellFactorNodes, FactorStatistics]


@dataclass(frozen=True)
class CellFactorNoise(FactorModel):
    """Noise with factors, for rows with gaps and errors."""

    @property
    def capabilities(self) -> _Kind:
        factors = RowFactors(self.loading.n_factors, CellFactorNodes.factor_means)
        return Capabilities(words=WORDS, impute=CellFactorNodes.impute, factors=factors)

    def with_gaps(self) -> CellFactorNoise:
        return self

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart, in double precision."""
        return as_cells(block.astype(np.float64, copy=False), errors)

    def at_nodes(self, surface: BasisMap, parameters: FactorParameters, dtype: type = np.float64) -> CellFactorNodes:
        ones = np.ones(surface.latent.n_nodes)
        factors = self.loading.factors(surface, parameters)
        return cell_nodes(surface.nodes(parameters.weights), factors, parameters.precision * ones, ones)
