"""The root of a curve or a graph, where its pseudotime begins, from the setting ``root``.

The setting is the number of a row, a row or several, a mask of rows, or a score that is to grow with time. The first
four are a position in data space; for a score the root is the free end from which time and score have the highest rank
correlation.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Set, Sized
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from prinfold._typing import FloatArray
from prinfold.exceptions import DegenerateWarning, InvalidDataError, StructureWarning, shown
from prinfold.geometry.projection import Projection
from prinfold.latent.branch_graph import BranchGraph, RootedGraph, snap_to_end
from prinfold.validation.settings import Constraint, integer, nothing
from prinfold.validation.tables import as_numbers

ROOT: Constraint = (
    nothing
    | integer(0)
    | Constraint(
        lambda value: isinstance(value, Sized) and not isinstance(value, str | bytes | Mapping | Set),
        "a row of numbers, one for each column, several such rows, or a mask or a score of the rows",
    )
)
"""The setting ``root``."""

_REMOTE_FACTOR = 2.0
"""Distance of a root from the graph, over the largest of a row, above which it was probably given in other units."""

_NEAR_SHARE = 0.01
"""Distance of a root from the graph, as a share of its length, up to which it always counts as near."""

END_SHARE = 1.0 / 3.0
"""Share of the length of a branch within which a root near its free end is that end."""

_LOWEST_SHARE = 0.1
"""Share of the rows, those of the lowest score, in the middle of which a closed branch begins."""

Nearest = Callable[[FloatArray], FloatArray]
"""Coordinates (n, 1) of the nearest points of a graph to rows (n, D)."""


class Root(NamedTuple):
    """A root as it was given: its ``position`` (D,) in data space, or the ``score`` (n,) that is to grow with time."""

    position: FloatArray | None
    score: FloatArray | None


class RootSuggestion(NamedTuple):
    """Free ends of a graph as roots, the best first.

    ``position`` (E, D) are the ends in data space, each of which may be given as ``root=``; ``correlation`` (E,) is
    Spearman's, between the score and the time from there, of the rows in the same component.
    """

    position: FloatArray
    correlation: FloatArray


# --------------------------------------------------------------------------------------------- reading the setting


def read_root(root: Any, table: FloatArray) -> Root:
    """A root from a row of the ``table`` (n, D) by its number, rows, a mask of rows, or a score of all rows."""
    if isinstance(root, numbers.Integral):
        return Root(_row_by_number(int(root), table), None)
    try:
        given = np.asarray(root)
    except ValueError as error:  # rows of unequal length
        raise InvalidDataError(
            f"root must be the number of a row, rows, a mask of rows or a score of each row; got {shown(root)}"
        ) from error
    if given.shape == (len(table),) != (table.shape[1],) and _is_mask(given):
        given = given.astype(bool)
    if given.dtype == bool:
        return Root(_middle_of_marked_rows(given, table), None)
    if given.shape == (len(table),) != (table.shape[1],):
        return Root(None, check_score(given, len(table)))
    return Root(_middle_of_given_rows(given, table), None)


def _is_mask(given: Any) -> bool:
    """Whether all values are 0 and 1, or True and False: a mask of rows, not a score."""
    return all(isinstance(each, bool | int | float | np.generic) and each in (0, 1) for each in given.tolist())


def check_score(score: Any, n_rows: int) -> FloatArray:
    """(n,) finite numbers that are not all the same, one for each row."""
    try:
        found = as_numbers("root", score)
    except InvalidDataError:
        found = np.array(np.nan)
    if found.shape != (n_rows,):
        raise InvalidDataError(
            f"a score to follow must have one finite number for each of the {n_rows} rows; got shape {np.shape(score)}"
        )
    if not np.isfinite(found).all():
        lost = int((~np.isfinite(found)).sum())
        raise InvalidDataError(
            f"a score to follow must have one finite number for each row, but {lost} of {n_rows} are NaN or infinite"
        )
    if np.ptp(found) == 0:
        raise InvalidDataError("a score to follow must differ between rows, but this one is the same for all of them")
    return found


def _row_by_number(number: int, table: FloatArray) -> FloatArray:
    if number >= len(table):
        raise InvalidDataError(
            f"root must be the number of a row, from 0 to {len(table) - 1} for this table; got {number}"
        )
    return np.asarray(table[number], dtype=np.float64)


def _middle_of_marked_rows(mask: FloatArray, table: FloatArray) -> FloatArray:
    if mask.shape != (len(table),):
        raise InvalidDataError(
            f"root must be a mask with one entry for each of the {len(table)} rows; got shape {mask.shape}"
        )
    if not mask.any():
        raise InvalidDataError("root is a mask that marks no row. Mark the rows near which time should start")
    return middle_row(np.asarray(table[mask], dtype=np.float64))


def middle_row(rows: FloatArray) -> FloatArray:
    """(D,) the row nearest to the mean of all, which may itself lie far from a curve that bends."""
    return np.asarray(rows[np.square(rows - rows.mean(axis=0)).sum(axis=1).argmin()])


def _middle_of_given_rows(given: Any, table: FloatArray) -> FloatArray:
    n, n_columns = table.shape
    try:
        rows = as_numbers("root", given)
    except InvalidDataError:
        rows = np.array(np.nan)
    if rows.shape == (n_columns,):
        rows = rows[None]
    if rows.ndim != 2 or rows.shape[1] != n_columns or not len(rows) or not np.isfinite(rows).all():
        raise InvalidDataError(
            f"root must be a row of {n_columns} finite numbers, one for each column of the data, such as one of its "
            f"rows, or several of them; or the number of a row, or a mask or a score of the {n} rows; got shape "
            f"{np.shape(given)}"
        )
    return middle_row(rows)


# ---------------------------------------------------------------------------------------------- roots on a graph


def choose_roots(graph: BranchGraph, root: Root, table: FloatArray, nearest: Nearest, points: FloatArray) -> FloatArray:
    """(C, 1) roots of the components of a graph whose places lie at ``points`` (V, D), for rows (n, D)."""
    if root.score is not None:
        return _follow_score(graph, root.score, nearest(table), table, nearest)
    position = np.asarray(root.position)
    own = snap_to_end(graph, nearest(position[None]), END_SHARE)
    found = np.empty((graph.n_components, 1))
    for component in range(graph.n_components):
        ends = _free_ends(graph, component)
        if component == graph.component(own)[0]:
            found[component] = own
        elif len(ends):
            found[component] = graph.places[ends[np.square(points[ends] - position).sum(axis=1).argmin()]]
        else:
            found[component] = _lowest_of(graph, component)
    return found


def _follow_score(
    graph: BranchGraph, score: FloatArray, Z: FloatArray, table: FloatArray, nearest: Nearest
) -> FloatArray:
    """(C, 1) the free end of each component from which time follows a score best; where none is free, its lowest."""
    found, component = np.empty((graph.n_components, 1)), graph.component(Z)
    for c in range(graph.n_components):
        ends, here = _free_ends(graph, c), component == c
        if len(ends):
            agree = [_agreement(graph, graph.places[[e]], Z[here], score[here]) for e in ends]
            found[c] = graph.places[ends[int(np.argmax(agree))]]
        elif here.any():
            found[c] = nearest(lowest_rows_middle(table[here], score[here])[None])[0]
        else:
            found[c] = _lowest_of(graph, c)
    return found


def transfer_roots(
    graph: BranchGraph, roots: Projection, score: FloatArray, table: FloatArray, nearest: Nearest
) -> FloatArray:
    """(C, 1) roots of a graph: the points on it that are nearest to the roots of another fit of the same rows.

    A component without such a point begins where time has the highest correlation with ``score`` (n,), the times in the
    other fit.
    """
    found = _follow_score(graph, score, nearest(table), table, nearest)
    order = np.argsort(-roots.squared_distance, kind="stable")  # where two lie in one component, the nearer one counts
    found[graph.component(roots.latent[order])] = snap_to_end(graph, roots.latent[order], END_SHARE)
    return found


def lowest_rows_middle(table: FloatArray, score: FloatArray) -> FloatArray:
    """(D,) the row in the middle of those with the lowest score."""
    lowest = np.argsort(score, kind="stable")[: max(1, int(_LOWEST_SHARE * len(score)))]
    return middle_row(np.asarray(table[lowest], dtype=np.float64))


def suggest_roots(graph: BranchGraph, score: FloatArray, Z: FloatArray, points: FloatArray) -> RootSuggestion:
    """Free ends, at ``points`` (V, D) in data space, by how well time from there follows a score at Z (n, 1)."""
    ends = np.flatnonzero(graph.degrees == 1)
    if not len(ends):
        raise InvalidDataError("a closed curve has no end to begin at; give root= a row, or the score itself")
    mine = graph.component(graph.places[ends])
    agree = np.array(
        [
            _agreement(graph, graph.places[[e]], Z[graph.component(Z) == c], score[graph.component(Z) == c])
            for e, c in zip(ends, mine, strict=True)
        ]
    )
    order = np.argsort(-agree, kind="stable")
    return RootSuggestion(points[ends[order]], agree[order])


def _agreement(graph: BranchGraph, root: FloatArray, Z: FloatArray, score: FloatArray) -> float:
    """Spearman's correlation of a score with the distance from a root; 0 where either does not vary."""
    if len(Z) < 2:
        return 0.0
    time, level = rankdata(graph.distances(root, Z)[0]), rankdata(score)
    if np.ptp(time) == 0 or np.ptp(level) == 0:
        return 0.0
    return float(np.corrcoef(time, level)[0, 1])


def default_roots(graph: BranchGraph, log_density: FloatArray) -> FloatArray:
    """(C, 1) where no root was given: the denser end of the longest way in each component.

    ``log_density`` (K,) is that of rows at the nodes of the graph.
    """
    nodes, found = graph.latent.nodes, np.empty((graph.n_components, 1))
    for c in range(graph.n_components):
        ends, here = _free_ends(graph, c), graph.component(nodes) == c
        if not len(ends):
            first = np.flatnonzero(here)[log_density[here].argmax()]
            found[c] = nodes[first]
            continue
        apart = graph.distances(graph.places[ends], graph.places[ends])
        a, b = np.unravel_index(int(apart.argmax()), apart.shape)
        to = graph.distances(graph.places[ends[[a, b]]], nodes[here])
        nearer = to[0] <= to[1]
        dense = log_density[here]
        denser = b if not nearer.all() and dense[~nearer].mean() > dense[nearer].mean() else a
        found[c] = graph.places[ends[denser]]
    return found


def _free_ends(graph: BranchGraph, component: int) -> Any:
    """(e,) numbers of the places of a component at which one branch ends."""
    ends = np.flatnonzero(graph.degrees == 1)
    return ends[graph.component(graph.places[ends]) == component] if len(ends) else ends


def _lowest_of(graph: BranchGraph, component: int) -> float:
    """The coordinate at which the first branch of a component begins."""
    return float(graph.latent.domain.low[int(np.argmax(graph.components == component))])


# ------------------------------------------------------------------------------------------------------ warnings


def remote_warning(off: float, most: float, length: float, noun: str) -> list[tuple[str, type[Warning]]]:
    """A warning about a root that lies ``off`` the graph, where rows lie off by at ``most`` so much."""
    if off <= max(_REMOTE_FACTOR * most, _NEAR_SHARE * length):
        return []
    words = f"root= lies {off:.3g} from the {noun}, and no row farther than {most:.3g}"
    words = (
        f"{words}. Give it in the units in which the {noun} is fitted: scaled, where a scaler comes before the "
        f"{noun}. The number of a row, or a mask of the rows, has no units"
    )
    return [(words, DegenerateWarning)]


def component_warning(rooted: RootedGraph, root: Root) -> list[tuple[str, type[Warning]]]:
    """A warning about components for which no root was given."""
    C = rooted.graph.n_components
    if C == 1 or root.position is None:
        return []
    words = (
        f"the graph has {C} components, and root= lies in one of them. In the others time begins at the end that is "
        f"nearest to it, and times of different components cannot be compared"
    )
    return [(words, StructureWarning)]
