"""Pseudotime, branches and lineages from a root, for estimators whose surface is a curve or a graph of branches.

Where along a graph a row x belongs is uncertain: with noise s in each direction across it and places y(z) evenly along
its length,

    p(z | x) ∝ exp(−‖x − y(z)‖² / 2s²).

Standard deviations of times, probabilities of branches and weights of lineages are those of this posterior (ours).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray, Mesh, RandomState
from prinfold.base.file_requirements import require_parts
from prinfold.base.roots import (
    RootSuggestion,
    check_score,
    choose_roots,
    component_warning,
    default_roots,
    read_root,
    remote_warning,
    suggest_roots,
    transfer_roots,
)
from prinfold.base.unique_rows import draw_weights
from prinfold.exceptions import Advice, DegenerateWarning, Message, StructureWarning, import_optional, warn_caller
from prinfold.geometry.projection import Projection
from prinfold.latent.branch_graph import BranchGraph, Milestones, RootedGraph
from prinfold.loops import Meter
from prinfold.numerics.distances import squared_distances
from prinfold.validation.failures import gate_verbs
from prinfold.validation.settings import as_generator, check_setting, nothing, real, refits
from prinfold.validation.tables import check_weight

_PLACES_PER_NOISE = 3.0
_FEWEST_PLACES, _MOST_PLACES = 100, 1000
"""Places along a graph at which the posterior is summed: so many for each deviation of the noise, within limits."""

_LEAST_NOISE = 1e-3
"""Smallest noise, as a share of the length of a graph: rows exactly on it have a place as exactly."""

_BLOCK_ROWS = 2048

_FORK_SHARE = 0.5
"""Distance within which a fork is found again, in lengths of the shortest branch there."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Rows along a rooted curve or graph.

    Attributes
    ----------
    pseudotime : (n,) array
        Length of the way from the root to the nearest point of each row. In another component, from the root of that.
    pseudotime_sd : (n,) array
        Its standard deviation: of the posterior of the place of a row, and between bootstrap fits where there are any.
    branch : (n,) integer array
        Branch that each row is nearest to.
    component : (n,) integer array
        Connected component that it lies in; times of different ones cannot be compared.
    branch_probabilities : (n, B) array
        Probability of each branch; they sum to 1.
    lineages : tuple of str
        Names of the shortest ways from the root, after the leaf that each ends in, then closed branches. Where
        branches form a loop, the longer way round it is on none of them.
    lineage_weights : (n, L) array
        Probability that a row lies on each way: 1 on all of them before the first fork, and 0 on all of them on the
        longer way round a loop.
    milestones : Milestones
        The root, forks and leaves: ``names``, coordinates ``Z`` and ``times``.
    milestone : (n,) integer array
        Number of the milestone that is nearest along the graph.
    rooted : RootedGraph
        The graph and its roots.
    bootstrap : BootstrapTimes or None
        Times in fits of rows drawn anew, and how often each fork was found again.
    """

    pseudotime: FloatArray
    pseudotime_sd: FloatArray
    branch: IntArray
    component: IntArray
    branch_probabilities: FloatArray
    lineages: tuple[str, ...]
    lineage_weights: FloatArray
    milestones: Milestones
    milestone: IntArray
    rooted: RootedGraph
    bootstrap: BootstrapTimes | None


class BootstrapTimes(NamedTuple):
    """Fits of rows drawn with replacement: ``times`` (S, n) of all rows, and ``forks`` with their ``fork_support``.

    Times begin at the roots of the fit itself. Round a closed branch they are told in turns of that fit, in its
    direction, and within half a turn of its own time: just after the root they may be negative.

    ``forks`` (F,) are numbers of places, and their support (F,) the share of the fits that have a fork nearer than half
    of the shortest branch there.
    """

    times: FloatArray
    forks: IntArray
    fork_support: FloatArray


class PlaceSums(NamedTuple):
    """Sums over the posterior of places: sd of time (n,), probabilities of branches (n, B) and of lineages (n, L)."""

    sd: FloatArray
    branches: FloatArray
    lineages: FloatArray


@gate_verbs
class TrajectoryVerbs:
    """Methods for an estimator whose ``_network()`` is a graph of branches, with roots ``root_`` on it."""

    root: Any
    root_: FloatArray
    _point: Any
    _data_points: Any
    _mesh: Any
    _nearest: Any
    _table: Any

    def pseudotime(self, X: Any) -> FloatArray:
        """Time of each row: the length of the way along the curve or graph from the root to its nearest point.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
            In units of the data. Each component of a graph has a root, and rows in it their time from there.
        """
        table = self._table(X)
        rooted = self.rooted_
        self._warn_without_root()
        return rooted.times(self._nearest(table).latent)

    def trajectory(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        noise: float | None = None,
        n_bootstrap: int = 0,
        random_state: RandomState = None,
    ) -> Trajectory:
        """Pseudotime with its standard deviation, branches, lineages and milestones of rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows; for ``n_bootstrap`` those that the model was fitted to.
        sample_weight : array-like of shape (n,), default=None
            Their weights, for ``n_bootstrap``.
        noise : float, default=None
            Standard deviation of rows in each direction across the graph. None takes that of the model where it has
            one, and else measures it on these rows.
        n_bootstrap : int, default=0
            How many times rows are drawn anew, with replacement, and the model is fitted to them. The standard
            deviation of times then has that between fits as well, and forks have a support.
        random_state : int, RandomState or Generator, default=None
            Seed of ``n_bootstrap``.

        Returns
        -------
        Trajectory
        """
        check_setting("noise", noise, nothing | real(0))
        check_setting("n_bootstrap", n_bootstrap, refits(0))
        table = self._table(X)
        rooted = self.rooted_
        self._warn_without_root()
        found = self._nearest(table)
        width = self._noise_across(found, table) if noise is None else float(noise)
        sums = sum_over_places(self._inner_rows(table), found.latent, rooted, self._point, width)
        drawn = self._bootstrap(table, sample_weight, n_bootstrap, random_state) if n_bootstrap else None
        between = 0.0 if drawn is None else drawn.times.var(axis=0)
        milestones = rooted.milestones
        _warn_about_rows_without_lineage(rooted, found.latent)
        return Trajectory(
            rooted.times(found.latent),
            np.sqrt(np.square(sums.sd) + between),
            rooted.graph.latent.domain.piece(found.latent),
            rooted.graph.component(found.latent),
            sums.branches,
            rooted.lineages,
            sums.lineages,
            milestones,
            rooted.graph.distances(found.latent, milestones.Z).argmin(axis=1),
            rooted,
            drawn,
        )

    def distances_along(self, X: Any, Y: Any = None) -> FloatArray:
        """Lengths of the shortest ways along the curve or graph between rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
        Y : array-like of shape (m, D), default=None
            Other rows; None is X itself.

        Returns
        -------
        ndarray of shape (n, m)
            Infinite between rows of different components, of which a warning tells.
        """
        A = self._nearest(self._table(X)).latent
        B = A if Y is None else self._nearest(self._table(Y)).latent
        found = self._network().distances(A, B)
        if np.isinf(found).any():
            warn_caller(
                "some rows lie in components of the graph that are not connected: their distance is infinite",
                StructureWarning,
            )
        return found

    def suggest_root(self, X: Any, score: Any) -> RootSuggestion:
        """Free ends as roots, by how well time from there follows a score.

        Parameters
        ----------
        X : array-like of shape (n, D)
        score : array-like of shape (n,)
            Numbers that grow with time, such as the day of a sample; take minus a score of stemness.

        Returns
        -------
        RootSuggestion
            ``position`` (E, D) of the ends, any of which may be given as ``root=``, and Spearman's ``correlation``.
        """
        table = self._table(X)
        level = check_score(score, len(table))
        return suggest_roots(self._network(), level, self._nearest(table).latent, self._place_points())

    def to_networkx(self) -> Any:
        """The curve or graph as a NetworkX graph: ends and forks with positions and times, branches with points.

        Returns
        -------
        networkx.MultiGraph
            A node has ``position``, ``kind`` ("end", "junction", or "loop" where a closed branch begins) and ``time``;
            an edge ``branch``, ``ends``, ``length``, ``arc_length``, ``points`` and, of ridges and trees,
            ``log_density``. Points run from the first of its ``ends``.
        """
        check_is_fitted(self)
        rooted, mesh = self.rooted_, self._mesh()
        mesh = mesh._replace(vertices=self._data_points(mesh.latent, mesh.vertices))
        return to_networkx(rooted, mesh, self._place_points(), self._node_columns())

    @property
    def rooted_(self) -> RootedGraph:
        """The graph with its roots; where none was given, the denser end of the longest way in each component."""
        check_is_fitted(self)
        graph = self._network()
        given, C = np.asarray(self.root_, dtype=float), graph.n_components
        require_parts({f"a root_ in each of its {C} components": len(given) in (0, C)})
        if not len(given):
            return RootedGraph(graph, default_roots(graph, self._node_columns()["log_density"]))
        return RootedGraph(graph, graph.latent.domain.retract(given[:, None]))

    # --------------------------------------------------------------------------------------- plumbing

    def _network(self) -> BranchGraph:
        """The graph of branches."""
        raise NotImplementedError

    def _node_columns(self) -> dict[str, FloatArray]:
        """Numbers (K,) at the nodes of the graph."""
        return {}

    def _inner_rows(self, table: FloatArray) -> FloatArray:
        """Rows in the space that ``_point`` leads to."""
        return np.asarray(table, dtype=np.float64)

    def _noise_across(self, found: Projection, table: FloatArray) -> float:
        """Standard deviation of rows about the graph in each direction across it."""
        return float(np.sqrt(found.squared_distance.mean() / max(table.shape[1] - 1, 1)))

    def _place_points(self) -> FloatArray:
        """(V, D) ends and forks in data space."""
        return np.asarray(self._data_points(self._network().places))

    def _place_root(self, table: FloatArray) -> list[tuple[str, type[Warning]]]:
        """Set ``root_`` from the setting and the training table; warnings about a root that is far off."""
        self.root_ = np.empty(0)
        if self.root is None:
            return []
        told, graph = read_root(self.root, table), self._network()
        roots = choose_roots(graph, told, table, lambda rows: self._nearest(rows).latent, self._place_points())
        self.root_ = roots[:, 0]
        if told.position is None:
            return []
        off, most = (self._nearest(rows).squared_distance.max() for rows in (told.position[None], table))
        length = float(graph.latent.lengths.sum())
        found = remote_warning(float(np.sqrt(off)), float(np.sqrt(most)), length, "graph")
        return found + component_warning(RootedGraph(graph, roots), told)

    def _fit_again(self, table: FloatArray, weight: FloatArray) -> Any:
        """A clone of the model, fitted to rows with other weights."""
        return clone(self).fit(table, sample_weight=weight)

    def _bootstrap(self, table: FloatArray, sample_weight: Any, n: int, random_state: RandomState) -> BootstrapTimes:
        weight = check_weight(sample_weight, table)
        own = np.ones(len(table)) if weight is None else weight
        rng = as_generator(random_state)
        graph, points = self._network(), self._place_points()
        forks = np.flatnonzero(graph.degrees > 2)
        times, again = np.empty((n, len(table))), np.zeros((n, len(forks)))
        with Meter("Fitting bootstrap samples", n) as meter:
            for i, drawn in enumerate(draw_weights(own, n, rng)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that a fit of rows drawn anew is doubtful is what is asked
                    model = self._fit_again(table, drawn)
                times[i] = self._times_in(model, table)
                other = model._place_points()[model._network().degrees > 2]
                again[i] = found_forks(graph, forks, points, other)
                meter.tell(i + 1)
        return BootstrapTimes(times, forks, again.mean(axis=0))

    def _times_in(self, model: Any, table: FloatArray) -> FloatArray:
        """(n,) times of rows in another fit ``model`` of them, from the roots of this one."""
        rooted, graph, Z = self.rooted_, model._network(), self._nearest(table).latent
        roots = model._nearest(np.asarray(self._data_points(rooted.roots)))
        given = transfer_roots(graph, roots, rooted.times(Z), table, lambda rows: model._nearest(rows).latent)
        return times_as_in(rooted, Z, RootedGraph(graph, given), model._nearest(table).latent)

    def _warn_without_root(self) -> None:
        if self.root is None:
            words = "no root was given: time starts at the denser end of the longest path, and may run backwards"
            advice = Advice("root", words="give {}= a row, a mask of rows or a score"), "see suggest_root"
            warn_caller(Message(words, *advice), DegenerateWarning)


def _warn_about_rows_without_lineage(rooted: RootedGraph, Z: FloatArray) -> None:
    """Rows at Z (n, 1) on a way round a loop that is not the shortest lie on no lineage."""
    count = int((~rooted.on_lineages(Z).any(axis=1)).sum())
    if count:
        words = (
            f"{count} of {len(Z)} rows lie on no lineage: branches form a loop, and lineages are the shortest paths "
            "from the root to each leaf, which use one side of it only. Use branch and branch_probabilities there"
        )
        warn_caller(words, StructureWarning)


def times_as_in(rooted: RootedGraph, Z: FloatArray, again: RootedGraph, Z_again: FloatArray) -> FloatArray:
    """(n,) times at ``Z_again`` in a second fit of rows that lie at Z in a first, both (n, 1).

    Times round a closed branch are angles: those of the second fit are measured in the direction and the length of the
    first, and within half a turn of its time.
    """
    first, second = rooted.times(Z), again.times(Z_again)
    period, turn = rooted.graph.periods(Z), again.graph.periods(Z_again)
    both, branch = np.isfinite(period) & np.isfinite(turn), again.graph.latent.domain.piece(Z_again)
    for b in np.unique(branch[both]):
        here = both & (branch == b)
        angle, other = (2j * np.pi * times[here] / full[here] for times, full in ((first, period), (second, turn)))
        if abs(np.exp(other + angle).sum()) > abs(np.exp(other - angle).sum()):
            second[here] = np.mod(-second[here], turn[here])
    second[both] *= period[both] / turn[both]
    return first + _short_way(second - first, period)


def found_forks(graph: BranchGraph, forks: IntArray, points: FloatArray, other: FloatArray) -> FloatArray:
    """(F,) 1 for forks, numbers of places at ``points`` (V, D), that have one of the ``other`` (f, D) near."""
    if not len(other):
        return np.zeros(len(forks))
    reach = np.array([graph.latent.lengths[(graph.ends == fork).any(axis=1)].min() for fork in forks])
    apart = np.sqrt(squared_distances(points[forks], other)).min(axis=1) if len(forks) else np.empty(0)
    return np.asarray(apart <= _FORK_SHARE * reach, dtype=float)


def sum_over_places(rows: FloatArray, Z: FloatArray, rooted: RootedGraph, point: Any, noise: float) -> PlaceSums:
    """Sums over the posterior of the place of rows (n, D), whose nearest points are at Z (n, 1)."""
    graph = rooted.graph
    length = float(graph.latent.lengths.sum())
    noise = max(noise, _LEAST_NOISE * length) or 1.0  # a point has one place, whatever the noise
    count = int(np.clip(_PLACES_PER_NOISE * length / noise, _FEWEST_PLACES, _MOST_PLACES))
    latent = graph.latent.refined(count)
    nodes, branch = latent.nodes, graph.latent.domain.piece(latent.nodes)
    with np.errstate(divide="ignore"):
        log_weight = np.log(_lengths_about(latent))
    points, times = point(nodes), rooted.times(nodes)
    on_branch = (branch[:, None] == np.arange(graph.latent.n_branches)).astype(float)
    on_lineage = rooted.on_lineages(nodes).astype(float)
    own, own_times = graph.components[branch], rooted.times(Z)
    period = graph.periods(nodes)
    sd, parts = np.empty(len(rows)), []
    for i in range(0, len(rows), _BLOCK_ROWS):
        block = slice(i, i + _BLOCK_ROWS)
        P = place_posterior(rows[block], points, log_weight, noise)
        parts.append((P @ on_branch, P @ on_lineage))
        same = P * (graph.component(Z[block])[:, None] == own)
        sd[block] = _deviation(same, times - own_times[block, None], period)
    branches, lineages = (np.concatenate(each) for each in zip(*parts, strict=True))
    return PlaceSums(sd, branches, lineages)


def place_posterior(rows: FloatArray, points: FloatArray, log_weight: FloatArray, noise: float) -> FloatArray:
    """(n, m) probabilities of places, the sum of each row being 1."""
    exponent = squared_distances(rows, points) / (-2.0 * noise**2) + log_weight
    exponent -= exponent.max(axis=1, keepdims=True)
    P = np.exp(exponent, out=exponent)
    P /= P.sum(axis=1, keepdims=True)
    return np.asarray(P)


def _deviation(P: FloatArray, apart: FloatArray, period: FloatArray) -> FloatArray:
    """(n,) standard deviation of times ``apart`` (n, m) from those of rows, round a ring the short way."""
    apart = _short_way(apart, period)
    total = np.maximum(P.sum(axis=1), np.finfo(float).tiny)
    mean = np.einsum("nm,nm->n", P, apart) / total
    square = np.einsum("nm,nm->n", P, np.square(apart)) / total
    return np.asarray(np.sqrt(np.maximum(square - np.square(mean), 0.0)))


def _short_way(apart: FloatArray, period: FloatArray) -> FloatArray:
    """Differences of times by the shorter way round, where a full turn is finite."""
    ring = np.isfinite(period)
    turn = np.where(ring, period, 1.0)
    return np.asarray(np.where(ring, apart - turn * np.round(apart / turn), apart))


def _lengths_about(latent: Any) -> FloatArray:
    """(K,) length of the part of a branch that each node stands for; equal where branches have none."""
    branch = latent.domain.piece(latent.nodes)
    first = np.isin(np.arange(latent.n_nodes), latent.first)
    last = np.isin(np.arange(latent.n_nodes), latent.first + latent.counts - 1)
    half = ~latent.closed[branch] & (first | last)
    size = latent.steps[branch] * np.where(half, 0.5, 1.0)
    return np.asarray(size if size.sum() > 0 else np.ones(len(size)))


def to_networkx(rooted: RootedGraph, mesh: Mesh, places: FloatArray, columns: dict[str, FloatArray]) -> Any:
    """A NetworkX graph of places (V, D) and of branches along a ``mesh`` with ``columns`` (K,) at its vertices."""
    made = import_optional("networkx", "graph", "a NetworkX graph").MultiGraph()
    graph, times = rooted.graph, rooted.times(rooted.graph.places)
    for number, (position, degree) in enumerate(zip(places, graph.degrees, strict=True)):
        kind = "junction" if degree > 2 else "end"
        made.add_node(number, position=position, kind=kind, time=float(times[number]))
    branch = graph.latent.domain.piece(mesh.latent)
    for b, ends in enumerate(graph.ends.tolist()):
        order = np.flatnonzero(branch == b)
        order = order[np.argsort(mesh.latent[order, 0], kind="stable")]
        arc_length = mesh.latent[order, 0] - graph.latent.domain.low[b]
        if graph.latent.closed[b]:
            order, arc_length = np.append(order, order[0]), np.append(arc_length, graph.latent.lengths[b])
            ends = [made.number_of_nodes()] * 2  # noqa: PLW2901
            time = float(rooted.times(graph.latent.domain.low[[b], None])[0])
            made.add_node(ends[0], position=mesh.vertices[order[0]], kind="loop", time=time)
        made.add_edge(
            *ends,
            key=b,
            branch=b,
            ends=tuple(ends),
            length=float(graph.latent.lengths[b]),
            arc_length=arc_length,
            points=mesh.vertices[order],
            **{name: values[order] for name, values in columns.items()},
        )
    return made
