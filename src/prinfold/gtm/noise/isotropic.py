"""Isotropic noise: the same variance in every direction, at every node and for every row.

The noise of the GTM as it was proposed, and the fastest: see :mod:`prinfold.gtm.noise.protocol` for its verbs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.node_bounds import Balls, NodesOfBalls, near_of_known_rows, rise_bounds
from prinfold.gtm.noise.isotropic_places import LoadedNodes, points_of_cells
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.gtm.noise.protocol import (
    NO_FLOOR,
    Capabilities,
    CompiledPass,
    CompiledPlaces,
    Groups,
    GroupWeights,
    IndependentCells,
    OneProduct,
    PairedLogDensity,
    Parameters,
    Posterior,
    Precision,
    ScaledLogDensity,
    Statistics,
    WholeRowSums,
    largest_weight,
)
from prinfold.gtm.penalties import Penalty
from prinfold.gtm.softmax import FASTEST, Exponential, sound_sums
from prinfold.rows.rows import Rows, row_slices

_SPARE_PRODUCTS = 8
"""Products of rows with cells for each pair that is wanted, up to which one product of matrices costs less than pairs
one by one."""

_PAIRED_NUMBERS = 2**18
"""Numbers that are gathered at once for pairs one by one: wide tables would need a lot of memory otherwise."""


_NO_WEIGHTS = np.empty(0)
"""Stands for the weights of rows where every row counts once."""


class IsotropicNodes(NamedTuple):
    """Nodes as the E-step wants them, in its precision and, for bounds, in full.

    ``loading`` (D + 2, K) has β, β y and −½β‖y‖² + ½D, so that [−½‖t‖², t, 1] · loading is −½β‖t − y‖² + ½D,
    which is near zero for the nodes that a row belongs to; without its first row it is the part of
    log p(t | node) that differs between nodes. ``leveled`` is the same in the unit of the fastest exponential, and
    ``centers`` (K, D) are the y themselves. In single precision the β of either is off, which would be felt in the same
    way by all rows far from the origin; ``excess`` is by how much that of ``loading`` and that of ``leveled`` are.
    ``transposed`` holds ``loading`` node by node, once that was asked for.
    """

    loading: FloatArray
    leveled: FloatArray
    centers: FloatArray
    precision: float
    log_normalizer: float
    excess: tuple[float, float]
    transposed: list[FloatArray]

    @property
    def n_layers(self) -> int:
        return 1

    def log_density(self, loaded: FloatArray, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node) split in two: into ``work[0]`` (n, K) what differs between nodes; returns (n,) the rest.

        −½β‖t − y‖² = β t·y − ½β‖y‖² − ½β‖t‖²; the last term is the row's own. With ``near``, only those nodes.
        """
        loading = self.loading if near is None else self.loading[:, near]
        np.dot(loaded[:, 1:], loading[1:], out=work[0])
        return self.log_normalizer - 0.5 * self.precision * _row_squares(loaded)

    def scaled_log_density(self, loaded: FloatArray, near: IntArray | None, work: FloatArray) -> float | FloatArray:
        """log p(t | node) split in two: into ``work[0]`` (n, K) all but a constant, of each row or of all, returned.

        For a row that the model explains ½β‖t − y‖² is about ½D, half a χ² of as many degrees of freedom, at the
        nodes that matter; with ½D added it is near zero there, and can be given to ``exp`` as it is.
        """
        np.dot(loaded, self.leveled if near is None else self.leveled[:, near], out=work[0])
        if loaded.dtype == np.float64:
            return self.log_normalizer
        return np.asarray(self.log_normalizer + 0.5 * self.excess[1] * _row_squares(loaded))

    def empty_sums(self) -> IsotropicSums:
        return IsotropicSums(self)

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        centers = self.centers[node]
        return np.asarray(centers + rng.standard_normal(centers.shape) / np.sqrt(self.precision))

    def covariance(self, axes: FloatArray) -> FloatArray:
        return np.tile(axes.T @ axes / self.precision, (len(self.centers), 1, 1))

    def bound(self, balls: Balls, least: float = -inf) -> FloatArray:
        """(G, K) bounds on log r_k(t), the log responsibility of node k for any row t of a ball of rows.

        Up to a constant of the row log p(t | k) is β(t·y_k − ½‖y_k‖²). The sum over all nodes is at least its largest
        term, so log r_k(t) is below log p(t | k) − max_i log p(t | i), which :func:`rise_bounds` bounds.
        """
        return self.precision * rise_bounds(self.centers, balls, least / self.precision)

    def near(self, balls: Balls, lost: float) -> NodesOfBalls:
        """The nodes that balls of known rows keep by these bounds."""
        return near_of_known_rows(self.centers, self.precision, balls, lost)

    def by_node(self) -> FloatArray:
        """(K, D + 2) ``loading`` as compiled code reads it, one node after another; made once, if at all."""
        if not self.transposed:
            self.transposed.append(np.ascontiguousarray(self.loading.T))
        return self.transposed[0]

    def group_weights(self) -> GroupWeights[FloatArray]:
        """Weights of many groups, one matrix after another, their sums and log Σ p(t | node), (n,) each; compiled."""
        from prinfold.gtm._e_step_jit import weigh_groups  # loads numba, which small jobs never need

        loading = self.by_node()

        def weigh(loaded: FloatArray, groups: Groups) -> tuple[FloatArray, FloatArray, FloatArray]:
            cuts, near, near_cuts = groups
            weights = np.empty(int(np.diff(cuts) @ np.diff(near_cuts)), dtype=loaded.dtype)
            total, log_sum = np.empty((2, len(loaded)))
            weigh_groups(loaded, cuts, near, near_cuts, sound_sums(loaded.dtype), loading, weights, total, log_sum)
            return weights, total, log_sum + self.log_normalizer + 0.5 * self.excess[0] * _row_squares(loaded)

        return weigh

    def places(self) -> LoadedNodes:
        """Places of many groups of rows, compiled."""
        return LoadedNodes(self.by_node())


def _pairs(points: FloatArray) -> PairedLogDensity[FloatArray]:
    """(P, M) β t·y − ½β‖y‖² of each pair of a row and a cell, in double precision."""
    return lambda loaded, row, cell: _paired_products(loaded[:, 1:].astype(np.float64, copy=False), points, row, cell)


def _paired_products(rows: FloatArray, points: FloatArray, row: IntArray, cell: IntArray) -> FloatArray:
    """(P, M) products of the rows with the points (K, M, D) of the cell that each is paired with."""
    wanted = np.zeros(len(points), dtype=bool)
    wanted[cell] = True
    _, M, D = points.shape
    if len(rows) * np.count_nonzero(wanted) <= _SPARE_PRODUCTS * len(row):
        column = np.cumsum(wanted) - 1
        products = rows @ points[wanted].reshape(-1, D).T
        return np.asarray(products.reshape(len(rows), -1, M)[row, column[cell]])
    out = np.empty((len(row), M))
    for part in row_slices(len(row), max(1, _PAIRED_NUMBERS // (M * D))):
        np.einsum("pd,pmd->pm", rows[row[part]], points[cell[part]], out=out[part])
    return out


class SweptNodes(NamedTuple):
    """Arrays that sweeps read and add to, node by node: ``loading`` (K, D + 2), ``moment`` RᵀT and ``mass`` (K,)."""

    loading: FloatArray
    moment: FloatArray
    mass: FloatArray


@dataclass
class IsotropicSums:
    """Sums under way: ``products`` (D + 1, K) holds TᵀR with G in its last row, the order in which BLAS is fastest.

    Either kind of sums is begun when it is first added to: there are as many as a pass has leaves.
    """

    nodes: IsotropicNodes
    products: FloatArray | None = None
    swept: SweptNodes | None = None
    square: float = 0.0
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(self, loaded: FloatArray, weight: FloatArray | None, posterior: Posterior, near: IntArray | None) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        square = _row_squares(loaded)
        if weight is None:
            largest, share = 1.0, 1.0 / posterior.total
            self.square += float(square.sum())
            self.log_likelihood += float(posterior.log_likelihood.sum())
            self.total += len(loaded)
        else:
            largest = largest_weight(weight)
            share = ((weight / largest) / posterior.total).astype(loaded.dtype)
            self.square += float(weight @ square)
            self.log_likelihood += float(weight @ posterior.log_likelihood)
            self.total += float(weight.sum())
        if self.products is None:
            self.products = np.zeros((loaded.shape[1] - 1, len(self.nodes.centers)))
        product = (loaded[:, 1:] * share[:, None]).T @ posterior.relative
        self.products[:, slice(None) if near is None else near] += largest * product.astype(np.float64, copy=False)

    def add_rows(self, rows: Rows, chosen: IntArray, groups: Groups) -> None:
        """Many groups of rows of a plain table, from the table itself: all in one compiled call."""
        from prinfold.gtm._e_step_jit import sweep_table  # loads numba, which small jobs never need

        nodes, weight = self.nodes, rows.block_weight(chosen)
        largest = 1.0 if weight is None else largest_weight(weight)
        share = _NO_WEIGHTS if weight is None else weight / largest
        given = (rows.table, chosen, rows.offset, share, *groups, largest, sound_sums(rows.table.dtype))
        square, log_sum = sweep_table(*given, *self._swept_nodes())
        total = float(len(chosen) if weight is None else weight.sum())
        self.square += largest * square
        self.log_likelihood += largest * (log_sum + 0.5 * nodes.excess[0] * square)
        self.log_likelihood += total * (nodes.log_normalizer - log(len(nodes.centers)))
        self.total += total

    def _swept_nodes(self) -> SweptNodes:
        if self.swept is None:
            from prinfold.numerics._compiled import cleared  # so large an array would keep other threads waiting

            shape = self.nodes.centers.shape
            self.swept = SweptNodes(self.nodes.by_node(), *cleared(shape))
        return self.swept

    def add_groups(self, loaded: FloatArray, weight: FloatArray | None, groups: Groups) -> None:
        """Log densities, weights and sums of many groups of rows, compiled. ``loaded`` is written over."""
        from prinfold.gtm._e_step_jit import sweep  # loads numba, which small jobs never need

        nodes = self.nodes
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, log_sum = largest_weight(ones), np.empty(len(loaded))
        square = float(ones @ _row_squares(loaded))
        self.square += square
        sweep(loaded, ones / largest, *groups, largest, sound_sums(loaded.dtype), *self._swept_nodes(), log_sum)
        self.log_likelihood += float(ones @ (log_sum + (nodes.log_normalizer - np.log(len(nodes.centers)))))
        self.log_likelihood += 0.5 * nodes.excess[0] * square
        self.total += float(ones.sum())

    def statistics(self) -> Statistics:
        """The statistics of the rows that were added.

        Compiled sums are handed over as they are, so that nothing is to be added afterwards.
        """
        own = self.square, self.log_likelihood, self.total
        if self.products is None:
            _, moment, mass = self._swept_nodes()
            return Statistics(mass, moment, *own)
        mass, moment = self.products[-1], self.products[:-1].T
        if self.swept is not None:
            mass, moment = mass + self.swept.mass, moment + self.swept.moment
        return Statistics(mass.copy(), np.ascontiguousarray(moment), *own)


def _exponential(dtype: Any) -> Exponential:
    return FASTEST[np.dtype(dtype)]


def _load_compiled(rows: Rows, chosen: IntArray) -> FloatArray:
    """The same as ``load`` of some rows of a plain table, compiled."""
    from prinfold.gtm._e_step_jit import load_chosen  # loads numba, which small jobs never need

    loaded = np.empty((len(chosen), rows.n_columns + 2), dtype=rows.table.dtype)
    load_chosen(rows.table, chosen, rows.offset, loaded)
    return loaded


def _column_precisions(nodes: IsotropicNodes) -> FloatArray:
    return np.full(nodes.centers.shape[1], nodes.precision)


def _in_frame(parameters: Parameters, frame: FloatArray) -> Parameters:
    return replace(parameters, weights=parameters.weights @ frame)


def _statistics(sums: WholeRowSums) -> Statistics:
    return Statistics(sums.mass, sums.moment, float(sums.squares.sum()), sums.log_likelihood, sums.total)


_ONE_PRODUCT = OneProduct(_column_precisions, _statistics)
_SCALED = ScaledLogDensity(IsotropicNodes.scaled_log_density, _exponential)
_COMPILED = CompiledPass(IsotropicNodes.empty_sums, IsotropicSums.add_rows, dense=True)
_PLACES = CompiledPlaces(IsotropicNodes.places, points_of_cells)
_Kind: TypeAlias = Capabilities[Parameters, FloatArray, IsotropicNodes, Statistics]


@dataclass(frozen=True)
class IsotropicNoise:
    """The same Gaussian noise of variance 1/β in every direction, thesis (3.1) with its sign put right.

    ``floor`` is the smallest variance allowed: with more nodes than rows β would otherwise run away.
    """

    floor: float

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(
            bound=IsotropicNodes.bound,
            near=IsotropicNodes.near,
            scaled=_SCALED,
            compiled=_COMPILED,
            one_product=_ONE_PRODUCT,
            compiled_weights=IsotropicNodes.group_weights,
            places=_PLACES,
            load_chosen=_load_compiled,
            pairs=_pairs,
            cells=IndependentCells(),
            without_floor=self._without_floor,
            in_frame=_in_frame,
        )

    def _without_floor(self) -> IsotropicNoise:
        return replace(self, floor=NO_FLOOR)

    def initial(self, weights: FloatArray, precision: Precision) -> Parameters:
        return Parameters(weights, float(precision), ceiling=1.0 / self.floor)

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> Parameters:
        return self.initial(weights, 1.0 / variance)

    def with_gaps(self) -> CellNoise:
        return CellNoise(self.floor)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """A block between a column of −½‖t‖² and one of ones."""
        loaded = np.empty((len(block), block.shape[1] + 2), dtype=block.dtype)
        loaded[:, 0] = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        loaded[:, 0] *= -0.5
        loaded[:, 1:-1] = block
        loaded[:, -1] = 1.0
        return loaded

    def at_nodes(self, surface: BasisMap, parameters: Parameters, dtype: type = np.float64) -> IsotropicNodes:
        centers = surface.nodes(parameters.weights)
        beta = float(parameters.precision)
        half_square = 0.5 * np.einsum("kd,kd->k", centers, centers)
        n_nodes, n_columns = centers.shape
        full = np.empty((n_columns + 2, n_nodes))
        full[0] = beta
        np.multiply(centers.T, beta, out=full[1:-1])
        full[-1] = 0.5 * n_columns - beta * half_square
        per_e = _exponential(dtype).per_e
        loading: FloatArray = full.astype(dtype, copy=False)
        leveled: FloatArray = loading if per_e == 1.0 else (full * per_e).astype(dtype, copy=False)
        excess = float(loading[0, 0]) - beta, float(leveled[0, 0]) / per_e - beta
        log_normalizer = 0.5 * n_columns * (np.log(beta / (2 * np.pi)) - 1.0)
        return IsotropicNodes(loading, leveled, centers, beta, float(log_normalizer), excess, [])

    def m_step(self, surface: BasisMap, sums: Statistics, penalty: Penalty, parameters: Parameters) -> Parameters:
        """New weights (3.15), then the new noise with those weights (3.12).

        The weighted squared distance is Σ g‖y‖² − 2⟨Y, RᵀT⟩ + Σ‖t‖², so no second pass is needed.
        """
        strength = penalty.strength(float(parameters.precision))
        weights = surface.solve(sums.mass, sums.moment, strength, parameters.weights)
        centers = surface.nodes(weights)
        error = sums.mass @ np.einsum("kd,kd->k", centers, centers) - 2 * np.vdot(centers, sums.moment) + sums.square
        n_values = sums.total * centers.shape[1]
        precision = penalty.precision(n_values, max(error, 0.0), surface.roughness(weights))
        return self.initial(weights, min(precision, 1.0 / self.floor))


def _row_squares(loaded: FloatArray) -> FloatArray:
    """(n,) ‖t‖² of a loaded block, in double precision; tables whose squares would overflow are not let in."""
    return np.asarray(-2.0 * loaded[:, 0].astype(np.float64, copy=False))
