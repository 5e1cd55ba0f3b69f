"""Noise that is independent from cell to cell: columns with variances of their own, gaps, and errors that are known.

A cell has the precision

    p_nd = 1 / (v_d + e_nd²),   and 0 where it is missing,

v_d being the variance of the noise, one for each column or one for all, and e_nd the standard deviation with which
the cell is known to have been measured. With it log p(t | node) is ½ Σ_d [ln(p_nd / 2π) − p_nd (t_nd − y_kd)²] over
what was measured, thesis 6.5, which is one product of [p t, p] with the nodes; mass and moment of a node become one
number for each column. Known errors e are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers
from prinfold.gtm.noise.protocol import (
    NO_FLOOR,
    Capabilities,
    ColumnVariances,
    IndependentCells,
    OneProduct,
    Parameters,
    Posterior,
    Precision,
    RowStatistics,
    WholeRowSums,
    largest_weight,
    positive_array,
)
from prinfold.gtm.penalties import Penalty
from prinfold.validation.settings import real


@dataclass(frozen=True)
class MeasuredCells:
    """A block of rows: ``values`` (n, D), 0 where a cell is missing; ``seen`` (n, D) is 1 where it is not.

    ``squared_errors`` (n, D) or (n, 1) are the variances with which cells were measured, where they are known.
    """

    values: FloatArray
    seen: FloatArray
    squared_errors: FloatArray | None
    plain: bool = False
    """Whether there are no gaps and no errors, so that all rows are alike and half of the products will do."""

    def __len__(self) -> int:
        return len(self.values)

    def trust(self, variance: FloatArray) -> FloatArray:
        """(n, D) ρ = v p, the share of a cell's variance that is noise: 1 without errors, 0 where it is missing."""
        if self.squared_errors is None:
            return self.seen
        return np.asarray(self.seen * (variance / (variance + self.squared_errors)), dtype=self.values.dtype)


def as_cells(block: FloatArray, errors: FloatArray | None) -> MeasuredCells:
    """A block with its gaps apart."""
    seen = ~np.isnan(block)
    if errors is None and seen.all():
        return MeasuredCells(block, np.ones_like(block), None, plain=True)
    squared = None if errors is None else np.square(errors, dtype=np.float64)
    return MeasuredCells(np.where(seen, block, block.dtype.type(0)), seen.astype(block.dtype), squared)


class CellNodes(NamedTuple):
    """Nodes in the form that the E-step uses: ``loading`` (2D, K) holds y and −½y², ``variance`` (D,) the noise.

    ``plain`` (D + 1, K) holds y/v and −½Σy²/v, for rows without gaps and errors.
    """

    loading: FloatArray
    plain: FloatArray
    centers: FloatArray
    variance: FloatArray

    @property
    def n_layers(self) -> int:
        return 1

    def log_density(self, loaded: MeasuredCells, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): terms that differ between nodes into ``work[0]`` (n, K); returns (n,) the sum of others."""
        precision = (loaded.trust(self.variance) / self.variance).astype(loaded.values.dtype, copy=False)
        if loaded.plain:
            both, loading = np.column_stack([loaded.values, loaded.seen[:, :1]]), self.plain
        else:
            both, loading = np.concatenate([precision * loaded.values, precision], axis=1), self.loading
        np.dot(both, loading if near is None else loading[:, near], out=work[0])
        exact = precision.astype(np.float64, copy=False)
        size = np.where(loaded.seen > 0, np.log(np.where(exact > 0, exact, 1.0) / (2 * np.pi)), 0.0)
        return np.asarray(0.5 * (size.sum(axis=1) - np.einsum("nd,nd,nd->n", exact, loaded.values, loaded.values)))

    def empty_sums(self) -> CellSums:
        K, D = self.centers.shape
        return CellSums(self.variance, np.zeros((2 * D + 1, K)), *np.zeros((3, D)))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        centers = self.centers[node]
        return np.asarray(centers + rng.standard_normal(centers.shape) * np.sqrt(self.variance))

    def covariance(self, axes: FloatArray) -> FloatArray:
        return np.tile(axes.T @ (self.variance[:, None] * axes), (len(self.centers), 1, 1))

    def impute(
        self, loaded: MeasuredCells, posterior: Posterior, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself.

        Columns are independent given the node, so that both are those of a mixture of the nodes.
        """
        mean, between = mixture_moments(self.centers, posterior, near)
        return mean, between + self.variance


def mixture_moments(centers: FloatArray, posterior: Posterior, near: IntArray | None) -> tuple[FloatArray, FloatArray]:
    """(n, D) mean of the images of the nodes under the posterior, and their variance about it."""
    centers = centers if near is None else centers[near]
    share = (posterior.relative / posterior.total[:, None]).astype(np.float64, copy=False)
    mean = share @ centers
    return mean, np.maximum(share @ np.square(centers) - np.square(mean), 0.0)


@dataclass(frozen=True)
class CellParameters(Parameters):
    """Weights, and a precision for each column (D,); ``varies`` (D,) tells which columns are not constant."""

    precision: FloatArray
    varies: bool | BoolArray = field(default=True, kw_only=True)

    @property
    def level(self) -> float:
        """The precision 1/v̄ with v̄ the mean of the variances."""
        return float(1.0 / np.mean(1.0 / self.precision))

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        each = zip(self.precision, surface.column_roughness(self.weights), strict=True)
        return float(sum(penalty.value(float(beta), float(rough)) for beta, rough in each))

    def at_floor(self) -> bool:
        """Whether a variance has shrunk to the smallest allowed, in a column that is not constant."""
        return bool(np.any((1.0 / self.precision <= (1 + 1e-12) / self.ceiling) & self.varies))

    def to_arrays(self) -> dict[str, Any]:
        return {"variances": 1.0 / self.precision}


@storable
@dataclass(frozen=True)
class CellStatistics(RowStatistics):
    """Sums over rows, under the parameters of the E-step.

    With ρ = v p, ``mass`` (K,) is Σ r; ``masses`` and ``moment`` (K, D) are Σ r ρ and Σ r ρ t, with which the weights
    are found; ``squares`` and ``products`` (K, D) are Σ r ρ² and Σ r ρ² t, and ``square`` (D,) is Σ ρ² t², with which
    the noise is; ``seen`` (D,) counts what was measured, and ``trusted`` (D,) is Σ ρ.
    """

    _kinds: ClassVar[Kinds] = {
        "mass": numbers("K"),
        "masses": numbers("K", "columns"),
        "moment": numbers("K", "D"),
        "squares": numbers("K", "columns of squares"),
        "products": numbers("K", "columns of products"),
        "square": numbers("columns with a variance"),
        "seen": numbers("columns with a variance"),
        "trusted": numbers("columns with a variance"),
        "log_likelihood": number,
        "total": real(0),
    }

    mass: FloatArray
    masses: FloatArray
    moment: FloatArray
    squares: FloatArray
    products: FloatArray
    square: FloatArray
    seen: FloatArray
    trusted: FloatArray
    log_likelihood: float
    total: float

    @property
    def column_counts(self) -> FloatArray:
        """(D,) how much was measured of each column."""
        return self.seen


@dataclass
class CellSums:
    """Sums of an E-step: ``products`` (2D + 1, K) of ρ t, ρ and 1, ``squared`` (2D, K) of ρ² t and ρ²."""

    variance: FloatArray
    products: FloatArray
    square: FloatArray
    seen: FloatArray
    trusted: FloatArray
    squared: FloatArray | None = None
    log_likelihood: float = 0.0
    total: float = 0.0

    def _squared_products(self) -> FloatArray:
        """The array of the sums with ρ², made for rows with errors only: without errors ρ² = ρ."""
        if self.squared is None:
            self.squared = np.zeros((len(self.products) - 1, self.products.shape[1]))
        return self.squared

    def add(
        self, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, chosen = largest_weight(ones), slice(None) if near is None else near
        share = ((ones / largest) / posterior.total).astype(loaded.values.dtype)[:, None]
        trust = loaded.trust(self.variance)
        parts = np.concatenate([trust * loaded.values, *([] if loaded.plain else [trust]), np.ones_like(share)], axis=1)
        parts *= share
        product = largest * (parts.T @ posterior.relative).astype(np.float64, copy=False)
        if loaded.plain:  # every column has the mass of the node
            product = np.concatenate([product[:-1], np.broadcast_to(product[-1], product[:-1].shape), product[-1:]])
        self.products[:, chosen] += product
        self.square += ones @ np.square(trust * loaded.values, dtype=np.float64)
        self.seen += ones @ loaded.seen
        self.trusted += ones @ trust
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())
        if loaded.squared_errors is not None:
            again = (parts[:, :-1] * np.tile(trust, 2)).T @ posterior.relative
            self._squared_products()[:, chosen] += largest * again.astype(np.float64, copy=False)

    def statistics(self) -> CellStatistics:
        D = len(self.variance)
        moment, masses, mass = self.products[:D].T.copy(), self.products[D:-1].T.copy(), self.products[-1].copy()
        if self.squared is None:
            # Where a column has no gaps its masses are the nodes' own, to the last bit, and it shares their system.
            masses = np.where(self.seen >= self.total, mass[:, None], masses)
            squares, products = masses, moment
        else:
            products, squares = self.squared[:D].T.copy(), self.squared[D:].T.copy()
        of_columns = self.square.copy(), self.seen.copy(), self.trusted.copy()
        return CellStatistics(mass, masses, moment, squares, products, *of_columns, self.log_likelihood, self.total)


def _column_precisions(nodes: CellNodes) -> FloatArray:
    return np.asarray(1.0 / nodes.variance)


def _statistics(sums: WholeRowSums) -> CellStatistics:
    """Statistics of rows without gaps and errors, for which ρ is 1."""
    masses = np.broadcast_to(sums.mass[:, None], sums.moment.shape)
    full = np.full(sums.moment.shape[1], sums.total)
    return CellStatistics(
        sums.mass, masses, sums.moment, masses, sums.moment, sums.squares, full, full, sums.log_likelihood, sums.total
    )


_ONE_PRODUCT = OneProduct(_column_precisions, _statistics)
_Kind: TypeAlias = Capabilities[Parameters, MeasuredCells, CellNodes, CellStatistics]


@dataclass(frozen=True)
class CellNoise:
    """Noise independent from cell to cell.

    ``floor`` is the smallest variance allowed, on average over the columns; with ``floors`` (D,) each column has a
    variance of its own, and these are the smallest. ``scale`` (D,) are then the units of the columns, 0 where one
    does not vary.
    """

    floor: float
    floors: FloatArray | None = None
    scale: FloatArray | None = None

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(
            impute=CellNodes.impute,
            one_product=_ONE_PRODUCT,
            columns=own_columns(self),
            cells=IndependentCells(cell_precisions),
            without_floor=self._without_floor,
        )

    def _without_floor(self) -> CellNoise:
        floors = None if self.floors is None else np.full_like(self.floors, NO_FLOOR)
        return replace(self, floor=NO_FLOOR, floors=floors)

    def parameters(self, weights: FloatArray, precision: Precision) -> Parameters:
        """Parameters with one precision, or with one for each column."""
        if self.floors is None:
            return Parameters(weights, precision, ceiling=1.0 / self.floor)
        varies = True if self.scale is None else self.scale > 0
        return CellParameters(weights, np.asarray(precision), ceiling=1.0 / self.floors, varies=varies)

    def initial(self, weights: FloatArray, precision: Precision) -> Parameters:
        if self.floors is not None:
            precision = np.minimum(np.broadcast_to(precision, weights.shape[1]), 1.0 / self.floors)
        return self.parameters(weights, precision)

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> Parameters:
        known = variance if self.floors is None else positive_array(arrays, "variances", weights.shape[1:])
        return self.parameters(weights, 1.0 / known)

    def with_gaps(self) -> CellNoise:
        return self

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart."""
        return as_cells(block, errors)

    def at_nodes(self, surface: BasisMap, parameters: Parameters, dtype: type = np.float64) -> CellNodes:
        centers = surface.nodes(parameters.weights)
        variance = column_variances(parameters, centers.shape[1])
        loading: FloatArray = np.concatenate([centers.T, -0.5 * np.square(centers.T)]).astype(dtype, copy=False)
        scaled = centers / variance
        half = -0.5 * np.einsum("kd,kd->k", scaled, centers)
        plain: FloatArray = np.concatenate([scaled.T, half[None]]).astype(dtype, copy=False)
        return CellNodes(loading, plain, centers, variance)

    def m_step(self, surface: BasisMap, sums: CellStatistics, penalty: Penalty, parameters: Parameters) -> Parameters:
        """New weights, one system for each column that differs from the others; then the noise with those weights.

        The weights are the best there are for the old noise, and the noise takes one step of EM, the values of the
        cells without error being what is not known: neither lowers the objective. With v the old variance, the square
        of a cell's noise is expected to be ρ² (t − y)² + v (1 − ρ). Without errors ρ is 1, and this is (3.12).
        """
        variance = column_variances(parameters, sums.moment.shape[1])
        strength = np.array([penalty.strength(1.0 / v) for v in variance])
        weights = surface.solve_columns(sums.masses, sums.moment, strength, parameters.weights)
        centers = surface.nodes(weights)
        residual = sums.square + np.einsum("kd,kd->d", centers, centers * sums.squares - 2 * sums.products)
        error = np.maximum(residual, 0.0) + variance * (sums.seen - sums.trusted)
        rough = surface.column_roughness(weights)
        if self.floors is None:
            precision = penalty.precision(float(sums.seen.sum()), float(error.sum()), float(rough.sum()))
            return self.initial(weights, min(precision, 1.0 / self.floor))
        each = zip(sums.seen, error, rough, strict=True)
        return self.initial(weights, np.array([penalty.precision(float(n), float(e), float(r)) for n, e, r in each]))


def own_columns(noise: CellNoise) -> ColumnVariances | None:
    """Floors and units of the columns, where each has a variance of its own."""
    return None if noise.floors is None else ColumnVariances(noise.floors, noise.scale)


def column_variances(parameters: Parameters, n_columns: int) -> FloatArray:
    """(D,) the variance of the noise in each column."""
    return np.array(np.broadcast_to(1.0 / np.asarray(parameters.precision), n_columns))


def cell_precisions(cells: MeasuredCells, parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """(n, D) values of the cells, and p = 1 / (v + e²) of each."""
    variance = 1.0 / np.broadcast_to(parameters.precision, cells.values.shape[1])
    return cells.values, cells.trust(variance) / variance
