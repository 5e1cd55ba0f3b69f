"""Noise with factors for rows that are complete and have no errors: S = I + β UᵀU is the same for all of them.

For the model, thesis 6.2 and 6.4, see :mod:`prinfold.gtm.noise.factor_model`, for other rows
:mod:`prinfold.gtm.noise.factor_gaps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.factor_gaps import CellFactorNoise
from prinfold.gtm.noise.factor_loadings import FactorParameters
from prinfold.gtm.noise.factor_model import WORDS, FactorModel, covariances, draw_rows
from prinfold.gtm.noise.factor_sums import FactorStatistics
from prinfold.gtm.noise.protocol import Capabilities, Posterior, RowFactors
from prinfold.numerics.small_matrices import at, backward, cholesky, forward, inverse, log_determinant, n_packed, pairs

_ROOT_TWO = float(np.sqrt(2.0))


class FactorNodes(NamedTuple):
    """Nodes in the form that the E-step uses for complete rows.

    [t, 1] · ``loading`` (1 + q, D + 1, K) is, first, what differs between nodes of −½β‖t − y‖² − ½ ln|S|, then the
    entries of w = √½ L⁻¹b, with S = L Lᵀ packed in ``root`` (·, K). The quadratic form is −½β‖t − y‖² + ‖w‖².
    ``factors`` (q, K, D) are Uᵀ.
    """

    loading: FloatArray
    centers: FloatArray
    root: FloatArray
    factors: FloatArray
    precision: float

    @property
    def n_layers(self) -> int:
        return len(self.loading)

    def log_density(self, loaded: FloatArray, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): terms that differ between nodes into ``work[0]``, then w; returns (n,) the sum of others."""
        exact = work.dtype == np.float64
        found = work if exact else np.empty(work.shape)
        np.matmul(loaded, self.loading if near is None else self.loading[:, :, near], out=found)
        for w in found[1:]:
            found[0] += np.square(w)
        own = self._row_density(loaded)
        if exact:
            return own
        largest = found[0].max(axis=1)  # taken out before rounding
        found[0] -= largest[:, None]
        work[:] = found
        return np.asarray(largest + own)

    def _row_density(self, loaded: FloatArray) -> FloatArray:
        """(n,) the terms of the log density that are the same for all nodes."""
        D, beta = loaded.shape[1] - 1, self.precision
        return np.asarray(0.5 * D * np.log(beta / (2 * np.pi)) - 0.5 * beta * _squares(loaded))

    def empty_sums(self) -> FactorSums:
        return FactorSums(self, np.zeros(self.loading.shape))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        return draw_rows(self.centers, self.factors, self.precision, node, rng)

    def covariance(self, axes: FloatArray) -> FloatArray:
        return covariances(self.factors, self.precision, axes)

    def factor_means(self, loaded: FloatArray, posterior: Posterior) -> FloatArray:
        """(n, q) E[f | t], over all nodes."""
        assert posterior.layers is not None
        share = posterior.relative / posterior.total[:, None]
        return np.asarray(np.einsum("nk,qnk->nq", share, backward(self.root[:, None], _ROOT_TWO * posterior.layers)))


@dataclass
class FactorSums:
    """Sums of an E-step: ``products`` (1 + q, D + 1, K) of [T, 1] with R and with R w."""

    nodes: FactorNodes
    products: FloatArray
    square: float = 0.0
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(self, loaded: FloatArray, weight: FloatArray | None, posterior: Posterior, near: IntArray | None) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        assert posterior.layers is not None
        ones, chosen = np.ones(len(loaded)) if weight is None else weight, slice(None) if near is None else near
        weighted = (loaded * (ones / posterior.total)[:, None]).T
        layers = posterior.layers
        layers *= posterior.relative  # in place: they are not used again
        self.products[0][:, chosen] += weighted @ posterior.relative
        self.products[1:][:, :, chosen] += np.matmul(weighted, layers)
        self.square += float(ones @ _squares(loaded))
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())

    def statistics(self) -> FactorStatistics:
        """The sums so far, of f = √2 L⁻ᵀw in place of w."""
        (n_layers, n_loaded, K), root = self.products.shape, self.nodes.root
        q, mass = n_layers - 1, self.products[0, -1]
        first = np.concatenate([self.products[:1], backward(root[:, None], _ROOT_TWO * self.products[1:])])
        moments = np.empty((n_packed(n_layers), K))
        moments[0] = mass
        turned = _ROOT_TWO * np.einsum("adk,bdk->abk", self.nodes.loading[1:], first[1:])  # Σ r L⁻¹b fᵀ
        spread, own = np.stack([backward(root, turned[:, b]) for b in range(q)], axis=1), inverse(root, q)
        for a, b in pairs(q):
            moments[at(a + 1, b + 1)] = spread[a, b] + mass * own[at(a, b)]
        for a in range(q):
            moments[at(a + 1, 0)] = first[a + 1, -1]
        n_values = self.total * (n_loaded - 1)
        sums = self.square, n_values, n_values, self.log_likelihood, self.total
        return FactorStatistics(moments, moments[None, :, None], first[None, :, :-1], *sums)


_Kind: TypeAlias = Capabilities[FactorParameters, FloatArray, FactorNodes, FactorStatistics]


@dataclass(frozen=True)
class FactorNoise(FactorModel):
    """Noise with factors, for rows that are complete."""

    @property
    def capabilities(self) -> _Kind:
        factors = RowFactors(self.loading.n_factors, FactorNodes.factor_means)
        return Capabilities(words=WORDS, factors=factors)

    def with_gaps(self) -> CellFactorNoise:
        return CellFactorNoise(self.floor, self.loading)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """A block with a column of ones, in double precision, since factors may explain nearly all of the variance."""
        return np.append(block.astype(np.float64, copy=False), np.ones((len(block), 1)), axis=1)

    def at_nodes(self, surface: BasisMap, parameters: FactorParameters, dtype: type = np.float64) -> FactorNodes:
        centers, beta = surface.nodes(parameters.weights), parameters.level
        U, (K, D), q = self.loading.factors(surface, parameters), centers.shape, self.loading.n_factors
        S = np.stack([(a == b) + beta * np.einsum("kd,kd->k", U[a], U[b]) for a, b in pairs(q)]).reshape(-1, K)
        root = cholesky(S, q)
        loading = np.empty((1 + q, D + 1, K))
        loading[0, :D] = beta * centers.T
        loading[0, D] = -0.5 * beta * np.einsum("kd,kd->k", centers, centers) - 0.5 * log_determinant(root, q)
        loading[1:, :D] = forward(root[:, None], beta / _ROOT_TWO * np.swapaxes(U, 1, 2))
        loading[1:, D] = -np.einsum("qdk,kd->qk", loading[1:, :D], centers)
        return FactorNodes(loading, centers, root, U, beta)


def _squares(loaded: FloatArray) -> FloatArray:
    """(n,) ‖t‖²."""
    return np.asarray(np.einsum("nd,nd->n", loaded[:, :-1], loaded[:, :-1]))
