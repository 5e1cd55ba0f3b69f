"""Oriented noise, (17) of Chang and Ghosh, for rows with missing cells and with errors that are known.

Σ = B I + (S − B) E Eᵀ is noise with factors, U = κE with κ² = |S − B|, whose products are added or, where there is less
noise along the surface than across it, taken away: see :func:`prinfold.gtm.noise.factor_gaps.weigh`. A row whose
cells are not all known is then completed in expectation. With ρ the share of a cell's variance B + err² that is noise,
0 where the cell is missing, o = 1 − ρ, and m = S⁻¹b, C = S⁻¹ of the factors at a node,

    E[x] − y = ρ (t − y) ± o U m,      Cov[x] = B o ± o U C Uᵀ o

are mean and covariance of the cells without error, and the statistics are those of x. Section 6.5 of the GTM thesis
treats missing cells for isotropic noise; the formulas here are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import UnsupportedInputError
from prinfold.gtm.noise.factor_gaps import CellFactorNodes, cell_nodes, weigh
from prinfold.gtm.noise.per_cell import MeasuredCells, as_cells
from prinfold.gtm.noise.protocol import Capabilities, Posterior
from prinfold.numerics.small_matrices import backward, inverse, n_packed, unpacked
from prinfold.pps.oriented_model import OrientedModel, OrientedParameters, noise_of_nodes
from prinfold.pps.oriented_sums import OrientedNodes, OrientedStatistics


class OrientedCellNodes(NamedTuple):
    """Arrays of the nodes for rows with missing cells.

    ``frame`` (Q, D, K) are the tangents, ``offsets`` (Q, D, K) tangents times centres and ``products`` (Q, Q, D, K)
    tangents times tangents, column by column; ``reach`` (K,) is κ and ``pull`` (K,) ±κ.
    """

    plain: OrientedNodes
    cells: CellFactorNodes
    frame: FloatArray
    offsets: FloatArray
    products: FloatArray
    reach: FloatArray
    pull: FloatArray

    @property
    def centers(self) -> FloatArray:
        return self.plain.centers

    @property
    def n_layers(self) -> int:
        return 1 + len(self.frame) + n_packed(len(self.frame))

    def log_density(self, loaded: MeasuredCells, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): into ``work[0]`` what differs between nodes; returns (n,) the rest."""
        return weigh(loaded, _trust(loaded, self), self.cells.select(near), work)

    def empty_sums(self) -> OrientedCellSums:
        (K, D), Q = self.centers.shape, len(self.frame)
        return OrientedCellSums(self, np.zeros(K), np.zeros((D, K)), np.zeros(K), np.zeros((Q, D, K)))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        return self.plain.draw(node, rng)

    def covariance(self, axes: FloatArray) -> FloatArray:
        return self.plain.covariance(axes)

    def impute(
        self, loaded: MeasuredCells, posterior: Posterior, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself."""
        given, y = self.expected(posterior, np.ones(len(loaded))), self.centers
        turned = self.pull * given.mean
        mean = given.share @ y + np.einsum("qnk,qdk->nd", turned, self.frame)
        square = given.share @ np.square(y) + 2 * np.einsum("qnk,qdk->nd", turned, self.offsets)
        square += np.einsum("abnk,abdk->nd", self.reach**2 * given.square, self.products, optimize=True)
        own = given.share @ (1.0 / self.plain.inverse_across)
        return mean, np.maximum(square - np.square(mean) + own[:, None], 0.0)

    def expected(self, posterior: Posterior, weight: FloatArray) -> Expected:
        """Factors of rows of given weights, and of nodes."""
        assert posterior.layers is not None
        q, layers = len(self.frame), posterior.layers.astype(np.float64, copy=False)
        share = posterior.relative * (weight / posterior.total)[:, None]
        m, C = backward(layers[q:], layers[:q]), inverse(layers[q:], q)[unpacked(q)]
        return Expected(share, share * m, share * (m[:, None] * m[None] + self.cells.sign * C), m, C)


class Expected(NamedTuple):
    """Factors of rows and nodes.

    ``share`` (n, K) is r, ``mean`` (Q, n, K) r m and ``square`` (Q, Q, n, K) r (m mᵀ ± C); ``m`` and ``C`` are without.
    """

    share: FloatArray
    mean: FloatArray
    square: FloatArray
    m: FloatArray
    C: FloatArray


@dataclass
class OrientedCellSums:
    """Running sums of expected rows, node by node: see :class:`OrientedStatistics`."""

    nodes: OrientedCellNodes
    mass: FloatArray
    moment: FloatArray
    square: FloatArray
    cross: FloatArray
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(
        self, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Add the expectations of the rows of a block."""
        ones = np.ones(len(loaded)) if weight is None else weight
        nodes, trust = self.nodes, _trust(loaded, self.nodes)
        given, y = nodes.expected(posterior, ones), nodes.centers.T
        known, free = trust * loaded.values, 1.0 - trust
        loose = free.T @ given.share
        self.mass += given.share.sum(axis=0)
        self.moment += known.T @ given.share + y * loose
        self.moment += nodes.pull * np.einsum("qdk,qdk->dk", nodes.frame, np.matmul(free.T, given.mean))
        self.square += _squared(nodes, given, known, trust, loose)
        self.cross += _cross_products(nodes, given, known, trust, loose)
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())

    def statistics(self) -> OrientedStatistics:
        """The sums so far; ``square`` is about the centres until here."""
        plain = self.nodes.plain
        y, moment = plain.centers, self.moment.T.copy()
        square = self.square + 2 * np.einsum("kd,kd->k", y, moment) - self.mass * np.einsum("kd,kd->k", y, y)
        cross = np.transpose(self.cross, (2, 1, 0)).copy()
        tangential = np.maximum(np.einsum("qkd,kdq->k", plain.tangents.frame, cross), 0.0)
        rest = self.log_likelihood, self.total
        return OrientedStatistics(plain.tangents, self.mass.copy(), moment, square, tangential, cross, *rest)


_Kind: TypeAlias = Capabilities[OrientedParameters, MeasuredCells, OrientedCellNodes, OrientedStatistics]


@dataclass(frozen=True)
class OrientedCells(OrientedModel):
    """Noise that differs along and across the surface, for rows with gaps and errors."""

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(impute=OrientedCellNodes.impute, for_nodes=noise_of_nodes)

    def with_gaps(self) -> OrientedCells:
        return self

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart, in double precision."""
        return as_cells(block.astype(np.float64, copy=False), errors)

    def at_nodes(
        self, surface: BasisMap, parameters: OrientedParameters, dtype: type = np.float64
    ) -> OrientedCellNodes:
        plain = self.oriented_nodes(surface, parameters)
        contrast = 1.0 / plain.inverse_along - 1.0 / plain.inverse_across
        sign, reach = np.where(contrast < 0, -1.0, 1.0), np.sqrt(np.abs(contrast))
        E = plain.tangents.frame
        cells = cell_nodes(plain.centers, reach[:, None] * E, plain.inverse_across, sign)
        frame = np.ascontiguousarray(np.swapaxes(E, 1, 2))
        products = frame[:, None] * frame[None]
        return OrientedCellNodes(plain, cells, frame, frame * plain.centers.T, products, reach, sign * reach)


def _squared(
    nodes: OrientedCellNodes, given: Expected, known: FloatArray, trust: FloatArray, loose: FloatArray
) -> FloatArray:
    """(K,) Σ r E‖x − y‖², of what is known, of both together, and of what is free."""
    y, free = nodes.centers.T, 1.0 - trust
    found = np.einsum("nd,nd->n", known, known) @ given.share
    found += np.einsum("dk,dk->k", y, y * (np.square(trust).T @ given.share) - 2 * ((trust * known).T @ given.share))
    found += np.einsum("abdk,abdk->k", nodes.products, np.matmul(np.square(free).T, nodes.reach**2 * given.square))
    found += loose.sum(axis=0) / nodes.plain.inverse_across
    both = trust * free
    if both.any():  # of cells with errors only
        part = np.matmul((known * free).T, given.mean) - y * np.matmul(both.T, given.mean)
        found += 2 * nodes.pull * np.einsum("qdk,qdk->k", nodes.frame, part)
    return np.asarray(found)


def _cross_products(
    nodes: OrientedCellNodes, given: Expected, known: FloatArray, trust: FloatArray, loose: FloatArray
) -> FloatArray:
    """(Q, D, K) Σ r E[d (Eᵀd)ᵀ] with d = x − y."""
    y, free, E = nodes.centers.T, 1.0 - trust, nodes.frame
    open_parts = np.matmul(free, nodes.products)  # (Q, Q, n, K) Eᵀ o E
    along = np.matmul(known, E) - np.matmul(trust, nodes.offsets)
    along += nodes.pull * np.einsum("abnk,bnk->ank", open_parts, given.m)  # E of Eᵀd
    weighted = given.share * along
    found = np.matmul(known.T, weighted) - y * np.matmul(trust.T, weighted) + E * (loose / nodes.plain.inverse_across)
    turned = nodes.reach * np.einsum("bcnk,cank->bank", given.C, open_parts)
    both = given.m[:, None] * weighted[None] + given.share * turned
    return np.asarray(found + nodes.pull * np.einsum("bdk,badk->adk", E, np.matmul(free.T, both)))


def _trust(loaded: MeasuredCells, nodes: OrientedCellNodes) -> FloatArray:
    """(n, D) ρ."""
    if loaded.squared_errors is not None and np.ptp(nodes.cells.inverse) > 0:
        raise UnsupportedInputError(
            "errors of cells need noise that all nodes share; leave errors out, give the clamping, or set it to 'learn'"
        )
    return loaded.trust(np.array(nodes.cells.variance))
