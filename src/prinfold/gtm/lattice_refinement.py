"""Places of rows between the nodes of a lattice.

The nodes are a quadrature of a prior that is uniform over the latent space. It does for a likelihood, but where the
noise is narrower than the distance of nodes a posterior mean falls on the nearest node. With h the spacing of nodes, s
the stretch of the map and σ the noise, the mean errs by .02 h where h s = 2σ and by .16 h where h s = 3σ. The map is
known between the nodes too. Cells about the nodes are therefore cut into

    m = ⌈h s / 2σ⌉

parts along each axis, with a point x_kj in each, and the posterior of a row is taken over the points of those cells
that matter to it:

    ρ_kj ∝ w_k p(t | y(x_kj)) / M,        z = Σ ρ_kj x_kj

with w_k the share of node k. Where few points are enough, a pass over all of them costs less than to find out which
matter: all are taken, and the latent space is cut evenly, into parts that are 1.75 σ wide.

A cell matters where its nearest corner may lie within some noise deviations e of where the row is on the surface. With
r = ½ √Σ (h s / σ)² the distance from node to corner, the weight of its node is then no less than exp(−½ (e + r)²) of
the sum over nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from math import ceil, prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.e_step import TakeGroups
from prinfold.gtm.model import GTMModel, visit_parts
from prinfold.gtm.node_selection import plan_every_node_once, plan_once
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise, Groups, PairedLogDensity, Parameters, Posterior, require
from prinfold.latent import LatentSpace, Lattice
from prinfold.latent.base import NO_RESULTANT
from prinfold.latent.subdivision import EvenParts, Subdivision
from prinfold.rows.rows import Rows, Selection, blas_on_one_thread, cut_for, shared_property

_MOST_POINT_SPACING = 2.0
"""Noise deviations between neighbouring points: any wider and their mean would be felt to lie on one of them."""

_MOST_COARSE_CELL = 6.0
"""Noise deviations that a cell may be wide before a coarser lattice would need more points than it saves nodes."""

_MOST_POINTS = {1: 16, 2: 8, 3: 4}
_MOST_POINTS_BEYOND = 2
"""Points along each axis of a cell, by the number of axes, however small the noise."""

_QUANTILE = 0.75
"""Share of nodes about which points are near enough to each other; the widest cells bridge gaps between rows."""

_CELLS_WITHIN = 2.75
"""Noise deviations e within which cells matter: what lies beyond holds some thousandths of the weight."""

_MOST_NATS = 58.0
"""Nats below a row's sum of weights; farther down weights are not told apart."""

_PLANNED_NATS = 26.0
"""Nats down to which a planned pass knows the nodes."""

_PROBED_AT_ONCE = 64
"""Nodes at which noise and stretch are compared together."""

_MOST_NODES = 3600
"""Nodes beyond which training takes no more of them, however far apart they are."""

_MOST_NODE_NUMBERS = 2**24
"""Numbers of all nodes beyond which training takes no more of them: in wide tables rows lie far from each other in
units of the noise, however many nodes there are."""

_THIN_FROM_NODES, _FEWEST_ALONG_AXIS = 1500, 8
"""Nodes from which narrow cells are joined, and along an axis that keeps all of its own. Their points come to the same,
and are found faster."""

_EVEN_POINT_SPACING = 1.75
"""Noise deviations between points all over the space. None lies on a node, so that the parts at the edges err most."""

_FEW_POINTS = 1500
"""Points that are all taken: to pick those that matter to a row costs as much as some fifteen others."""

_TILE = 5
"""Nodes along each axis that rows of one group have in common."""


_Weigh: TypeAlias = Callable[[Selection, Any, IntArray, IntArray, int], None]


class Pieces(NamedTuple):
    """The posterior of rows over pieces of latent space.

    Those of row i are ``cell[starts[i]:starts[i + 1]]``, each with the weights (P, M) of its points; the weights of a
    row sum to one.
    """

    starts: IntArray
    cell: IntArray
    weight: FloatArray
    compiled: bool = False
    """Whether there are so many that compiled code is to add them up."""

    @property
    def row(self) -> IntArray:
        """(P,) the row of each piece."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def mean(self, latent: Subdivision) -> FloatArray:
        """(n, Q) mean of each row: the embedded one, projected back; where that points nowhere, the mode."""
        Z, resultant = latent.unembed(self._embedded_mean(latent))
        lost = resultant < NO_RESULTANT
        if lost.any():
            Z[lost] = self.mode(latent)[lost]
        return Z

    def _embedded_mean(self, latent: Subdivision) -> FloatArray:
        if not self.compiled:
            return self._sums(np.einsum("pm,pme->pe", self.weight, latent.embedded[self.cell]))
        from prinfold.gtm._latent_posterior_jit import sum_over_pieces  # loads numba, which small jobs never need

        return sum_over_pieces(self.starts, self.cell, self.weight, latent.embedded)

    def mode(self, latent: Subdivision) -> FloatArray:
        """(n, Q) the point with the largest weight of each row."""
        best = self.weight.argmax(axis=1)
        largest = self.weight[np.arange(len(best)), best]
        of_row = np.maximum.reduceat(largest, self.starts[:-1])
        heaviest = np.flatnonzero(largest == of_row[self.row])
        piece = heaviest[np.unique(self.row[heaviest], return_index=True)[1]]
        return np.asarray(latent.nodes[self.cell[piece] * latent.per_cell + best[piece]])

    def covariance(self, latent: Subdivision) -> FloatArray:
        """(n, Q, Q) spread of each row about its mean, the short way round."""
        points = latent.nodes.reshape(-1, latent.per_cell, latent.n_columns)[self.cell]
        delta = latent.domain.difference(points, self.mean(latent)[self.row][:, None])
        return self._sums(np.swapaxes(delta * self.weight[:, :, None], 1, 2) @ delta)

    def _sums(self, each: FloatArray) -> FloatArray:
        """(n, …) sums over the pieces of each row."""
        return np.asarray(np.add.reduceat(each, self.starts[:-1], axis=0))


@dataclass(frozen=True)
class Refinement:
    """A lattice of cells and the points in them, each with the map on it, for one noise and its parameters."""

    coarse: BasisMap
    fine: BasisMap
    noise: AnyNoise
    parameters: Parameters
    points_parameters: Parameters
    widths: FloatArray
    """(K, Q) h s / σ of each cell."""

    @property
    def latent(self) -> Subdivision:
        return cast(Subdivision, self.fine.latent)

    @property
    def paired(self) -> PairedLogDensity[Any] | None:
        """Log densities of pairs of rows and cells, if the noise has them."""
        pairs = self.noise.capabilities.pairs
        return None if pairs is None else pairs(self.cell_points)

    def points(self, dtype: Any) -> AnyNodes:
        """The points as nodes; made once."""
        known = self._points.get(dtype)
        if known is None:
            known = self._points[dtype] = self.noise.at_nodes(self.fine, self.points_parameters, dtype.type)
        return known

    @cached_property
    def _points(self) -> dict[Any, AnyNodes]:
        return {}

    @shared_property
    def cell_points(self) -> FloatArray:
        """The points as pairs and compiled code read them, for noises that have those; made once."""
        places = require(self.noise.capabilities.places, self.noise, "place many groups of rows at once")
        return places.points(self.fine, self.points_parameters, self.latent.per_cell)

    @cached_property
    def least(self) -> FloatArray:
        """(K,) the share of a row's weights from which a cell matters to it."""
        nats = 0.5 * np.square(_CELLS_WITHIN + 0.5 * np.linalg.norm(self.widths, axis=1))
        # The largest share is 1/K at least, and no row is left without a cell.
        return np.asarray(np.minimum(np.exp(-np.minimum(nats, _MOST_NATS)), 0.5 / len(nats)))


class EveryPoint(NamedTuple):
    """The map on few points that lie near enough to each other all over the latent space, and its parameters there."""

    fine: BasisMap
    points_parameters: Parameters


@blas_on_one_thread()
def refinement_of(model: GTMModel, parameters: Parameters) -> Refinement | EveryPoint | None:
    """Points, in cells or all alike; None where the nodes are near enough to each other, or are no lattice."""
    surface = model.surface
    if not (model.rows_stand_alone and surface.latent.axes):  # hexagons are no product of axes
        return None
    known = surface.memory[0]
    if known is None or known[0] is not model.noise or not _same(known[1], parameters):
        known = surface.memory[0] = model.noise, parameters, _refined(surface, model.noise, parameters)
    found: Refinement | EveryPoint | None = known[2]
    return found


def _refined(surface: BasisMap, noise: AnyNoise, parameters: Parameters) -> Refinement | EveryPoint | None:
    lattice = cast(Lattice, surface.latent)
    widths = cell_widths(surface, noise, parameters)
    wide = np.quantile(widths, _QUANTILE, axis=0)
    enough = _MOST_POINT_SPACING if lattice.n_nodes <= _THIN_FROM_NODES else 0.5 * _MOST_POINT_SPACING
    if (wide <= enough).all():
        return None
    if lattice.n_nodes <= _THIN_FROM_NODES and prod(parts := part_counts(lattice, wide)) <= _FEW_POINTS:
        points = EvenParts(lattice, parts)
        return EveryPoint(BasisMap(points, surface.basis), _at(surface, noise, parameters, points.nodes))
    return subdivide(surface, noise, parameters, _thin_lattice(lattice, wide), widths=widths)


def subdivide(
    surface: BasisMap,
    noise: AnyNoise,
    parameters: Parameters,
    lattice: Lattice,
    counts: tuple[int, ...] | None = None,
    *,
    widths: FloatArray | None = None,
) -> Refinement:
    """The cells of a lattice over the latent space of a surface, with the points that the noise asks for, or given.

    ``widths`` (K, Q) are those of the cells of the surface itself, where they are known.
    """
    coarse = surface if lattice == surface.latent else BasisMap(lattice, surface.basis)
    own = _at(surface, noise, parameters, lattice.nodes)
    if widths is None or coarse is not surface:
        widths = cell_widths(coarse, noise, own)
    points = Subdivision(lattice, counts or point_counts(lattice, np.quantile(widths, _QUANTILE, axis=0)))
    fine = BasisMap(points, surface.basis)
    return Refinement(coarse, fine, noise, own, _at(surface, noise, parameters, points.nodes), widths)


def _at(surface: BasisMap, noise: AnyNoise, parameters: Parameters, Z: FloatArray) -> Parameters:
    """The parameters for other nodes: where each has a noise of its own, that of the nearest."""
    for_nodes = noise.capabilities.for_nodes
    return parameters if for_nodes is None else for_nodes(parameters, _nearest(surface.latent, Z))


def cell_widths(surface: BasisMap, noise: AnyNoise, parameters: Parameters) -> FloatArray:
    """(K, Q) h s / σ: how many noise deviations each cell is wide along each axis.

    By what the noise says of the images of neighbours: −½ (h s / σ)² is the log density of y_k + h ∂y/∂x at node k,
    relative to that of y_k. Where rows are not of the same kind as images, the noise has to know by itself.
    """
    latent, state = surface.latent, noise.at_nodes(surface, parameters)
    spacing = np.array([axis.spacing if axis.n_nodes > 1 else 0.0 for axis in latent.axes] or [latent.spacing])
    steps = spacing * surface.node_jacobian(parameters.weights)
    if (widths := noise.capabilities.cell_widths) is not None:
        return widths(state, steps)
    parts = np.split(np.arange(latent.n_nodes), range(_PROBED_AT_ONCE, latent.n_nodes, _PROBED_AT_ONCE))
    return np.concatenate([_widths(noise, state, some, steps[some]) for some in parts])


def _widths(noise: AnyNoise, state: AnyNodes, some: IntArray, steps: FloatArray) -> FloatArray:
    """(k, Q) the widths of some cells, given the steps (k, D, Q) from their nodes to the next ones."""
    k, _, Q = steps.shape
    centers = state.centers[some]
    rows = np.concatenate([centers, *(centers + 0.5 * steps[:, :, q] for q in range(Q))])
    work = np.empty((state.n_layers, len(rows), k))
    own = state.log_density(noise.load(rows), some, work)
    density = (work[0][np.arange(len(rows)), np.tile(np.arange(k), 1 + Q)] + own).reshape(1 + Q, k)
    return np.asarray(np.sqrt(8.0 * np.maximum(density[0] - density[1:], 0.0)).T)


def finer_space(model: GTMModel, parameters: Parameters, mass: FloatArray) -> LatentSpace | None:
    """The space with twice the nodes along axes whose cells are wider than the noise for most rows; or None.

    Nodes so far apart take up in the noise what lies between them, and bend the surface towards themselves. ``mass``
    (K,) is what each node stands for. The widest axes come first, as long as there are nodes to be given.
    """
    latent = model.surface.latent
    most = min(_MOST_NODES, _MOST_NODE_NUMBERS // parameters.weights.shape[1])
    if latent.doubled(range(latent.n_columns), most) is latent:
        return None
    widths = _medians(cell_widths(model.surface, model.noise, parameters), mass)
    wide = [int(axis) for axis in np.argsort(-widths) if widths[axis] > _MOST_POINT_SPACING]
    finer = latent.doubled(wide, most)
    return None if finer is latent else finer


def _medians(values: FloatArray, weight: FloatArray) -> FloatArray:
    """(Q,) medians of columns under weights (K,)."""
    order = np.argsort(values, axis=0)
    below = np.cumsum(weight[order], axis=0)
    at = (below >= 0.5 * weight.sum()).argmax(axis=0)
    return np.asarray(np.take_along_axis(np.take_along_axis(values, order, axis=0), at[None], axis=0)[0])


def point_counts(latent: Lattice, widths: FloatArray) -> tuple[int, ...]:
    """Points along each axis of cells that are so many noise deviations wide."""
    most = _MOST_POINTS.get(latent.dimension, _MOST_POINTS_BEYOND)
    return tuple(ceil(min(max(w / _MOST_POINT_SPACING, 1.0), most)) for w in widths)


def part_counts(latent: Lattice, widths: FloatArray) -> tuple[int, ...]:
    """Parts along each axis of a lattice whose cells are so many noise deviations wide; as many as nodes at least."""
    most = np.multiply(latent.shape, point_counts(latent, np.full(latent.dimension, np.inf)))
    share = np.maximum(widths / _EVEN_POINT_SPACING, 1.0)
    share = np.where(latent.periodic, np.ceil(share), share)  # a seam that moves by nodes moves nothing else
    wanted = np.multiply(latent.shape, share)
    return tuple(int(n) for n in np.ceil(np.minimum(wanted, most)))


def _thin_lattice(lattice: Lattice, widths: FloatArray) -> Lattice:
    """A lattice of fewer and wider cells where those of a large one are narrow: it is their points that count."""
    if lattice.n_nodes <= _THIN_FROM_NODES:
        return lattice
    halved = np.greater_equal(lattice.shape, 2 * _FEWEST_ALONG_AXIS) & (2 * widths <= _MOST_COARSE_CELL)
    shape = [(n + 1) // 2 if half else n for n, half in zip(lattice.shape, halved, strict=True)]
    return Lattice(tuple(shape), lattice.periodic)


def _nearest(latent: Any, Z: FloatArray) -> IntArray:
    """(n,) the node of a lattice that each place is nearest to."""
    index = []
    for q, axis in enumerate(latent.axes):
        step = np.rint((Z[:, q] - axis.nodes[0, 0]) / axis.spacing).astype(np.intp)
        index.append(step % axis.n_nodes if latent.periodic[q] else np.clip(step, 0, axis.n_nodes - 1))
    return np.asarray(np.ravel_multi_index(tuple(index), latent.shape))


@blas_on_one_thread()
def visit_pieces(model: GTMModel, refined: Refinement, rows: Rows, take: Callable[[Selection, Pieces], None]) -> None:
    """Hand all rows to ``take``, some at a time and on several threads, with their posterior between the nodes."""
    paired = refined.paired
    rows = cut_for(rows, refined.coarse.latent.n_nodes)
    weigh = _weigh_blocks(refined, rows, take) if paired is None else _weigh_pairs(paired, take)

    def refine(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: AnyNodes) -> None:
        row, column = _pairs_above_share(posterior, refined.least if near is None else refined.least[near])
        weigh(some, loaded, row, column if near is None else near[column], len(posterior.total))

    coarse, noise = replace(model, surface=refined.coarse), refined.noise
    state = noise.at_nodes(refined.coarse, refined.parameters, rows.table.dtype.type)
    if np.quantile(refined.least, 1 - _QUANTILE) >= np.exp(-_PLANNED_NATS):
        parts = plan_once(refined.coarse, noise, state, rows, refined.parameters.weights)
    else:
        parts = plan_every_node_once(noise, state, rows)
    visit_parts(coarse, rows, state, parts, refine, _refine_groups(refined, take))


def _weigh_pairs(paired: PairedLogDensity[Any], take: Callable[[Selection, Pieces], None]) -> _Weigh:
    """Hand on the posterior over pairs of a row and a cell of so many rows, pair by pair."""
    return lambda some, loaded, row, cell, n: take(some, _pieces(row, cell, paired(loaded, row, cell), n))


def _weigh_blocks(refined: Refinement, rows: Rows, take: Callable[[Selection, Pieces], None]) -> _Weigh:
    """The same by groups of rows that keep the same cells."""
    points = refined.points(rows.table.dtype)

    def weigh(some: Selection, loaded: Any, row: IntArray, cell: IntArray, n_rows: int) -> None:
        block, errors = rows.block(some), rows.block_errors(some)  # in order: a table may lie on a disk
        for part, own in _group_by_cells(refined, row, cell, n_rows):
            again = refined.noise.load(block[part], None if errors is None else errors[part])
            take(_of(some, part), _weigh_pieces(refined, points, again, own, rows.table.dtype))

    return weigh


def _refine_groups(refined: Refinement, take: Callable[[Selection, Pieces], None]) -> TakeGroups | None:
    """The same of many groups at once, if the noise can; what it needs of the points is made when it is first used."""
    can = refined.noise.capabilities.places
    if can is None:
        return None

    def refine(some: Selection, loaded: Any, groups: Groups, nodes: AnyNodes) -> None:
        found = can.of(nodes).pieces(loaded, groups, refined.least, refined.cell_points)
        take(some, Pieces(*found, compiled=True))

    return refine


def _pairs_above_share(posterior: Posterior, least: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows, in order, and the nodes that have at least so large a share of each."""
    enough = (float(least.min()) * posterior.total).astype(posterior.relative.dtype)
    # A look at all nodes that could matter to anybody is five times as fast as nonzero of what matters.
    row, node = np.divmod(np.flatnonzero(posterior.relative >= enough[:, None]), len(least))
    matters = posterior.relative[row, node] >= least[node] * posterior.total[row]
    return row[matters], node[matters]


def _group_by_cells(
    refined: Refinement, row: IntArray, cell: IntArray, n_rows: int
) -> list[tuple[IntArray, BoolArray]]:
    """Rows that lie close together in latent space, and (n, K) which cells each keeps: few hold all that matters."""
    kept = np.zeros((n_rows, refined.latent.lattice.n_nodes), dtype=bool)
    kept[row, cell] = True
    shape = refined.latent.lattice.shape
    first = np.unravel_index(cell[np.searchsorted(row, np.arange(n_rows))], shape)
    tile = np.ravel_multi_index(tuple(at // _TILE for at in first), tuple(-(-n // _TILE) for n in shape))
    order = np.argsort(tile, kind="stable")
    return [(part, kept[part]) for part in np.split(order, np.flatnonzero(np.diff(tile[order])) + 1)]


def _weigh_pieces(refined: Refinement, points: AnyNodes, loaded: Any, kept: BoolArray, dtype: Any) -> Pieces:
    """The posterior of rows over all cells that one of them keeps, without those that a row does not keep."""
    M = refined.latent.per_cell
    cells = np.flatnonzero(kept.any(axis=0))
    work = np.empty((points.n_layers, len(kept), len(cells) * M), dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # of rows beyond the range of the numbers
        points.log_density(loaded, (cells[:, None] * M + np.arange(M)).ravel(), work)
    row, column = np.nonzero(kept[:, cells])
    return _pieces(row, cells[column], work[0].reshape(len(kept), len(cells), M)[row, column], len(kept))


def _pieces(row: IntArray, cell: IntArray, log_weight: FloatArray, n_rows: int) -> Pieces:
    """Weights of the points of some cells of each row, sorted by row, from their logarithms."""
    starts = np.append(0, np.cumsum(np.bincount(row, minlength=n_rows)))
    # Point by point: over a last axis of a few entries NumPy's own maximum and sum take several times as long.
    largest = np.maximum.reduceat(reduce(np.maximum, log_weight.T), starts[:-1])
    with np.errstate(invalid="ignore"):
        relative = log_weight - largest[row, None]
    relative[np.isnan(relative)] = 0.0  # rows beyond the range of the numbers are as far from every cell
    weight = np.exp(np.maximum(relative, -_MOST_NATS))
    total = np.add.reduceat(weight @ np.ones(weight.shape[1]), starts[:-1])
    return Pieces(starts, cell, weight / total[row, None])


def _of(some: Selection, part: IntArray) -> IntArray:
    return part + some.start if isinstance(some, slice) else some[part]


def _same(a: Any, b: Any) -> bool:
    """Whether parameters are equal, number for number."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    pairs = ((getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return all(x is y or (isinstance(x, np.ndarray | float | int) and np.array_equal(x, y)) for x, y in pairs)
