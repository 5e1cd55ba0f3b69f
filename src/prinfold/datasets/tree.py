"""Rows about a tree, or any other graph, of curved branches: a simulator of trajectories with all of its truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng, random_frame, simulate
from prinfold.datasets.network import line_network
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.settings import Constraint, check_setting, is_number

Edges = Sequence[tuple[int, int]]

TOPOLOGIES: dict[str, Edges] = {
    "path": ((0, 1),),
    "y": ((0, 1), (1, 2), (1, 3)),
    "four": ((0, 1), (1, 2), (1, 3), (3, 4), (3, 5)),
    "five": ((0, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)),
    "star": ((0, 1), (1, 2), (1, 3), (1, 4)),
    "ring": ((0, 1), (1, 2), (2, 0)),
    "lasso": ((0, 1), (1, 2), (2, 3), (3, 1)),
    "two": ((0, 1), (1, 2), (1, 3), (4, 5)),
}
"""Graphs by name: pairs of the places that each branch leads from and to."""

_CELLS = 100
"""Straight pieces of a branch: the truth is this polyline."""

_CANDIDATES = 200
"""Directions drawn for a branch, of which the first is taken that keeps apart from its neighbours."""

_SIBLING_COSINE, _AHEAD_COSINES = 0.3, (-0.3, 0.85)
"""Most cosine between two branches that leave a place, and the range of that with the branch that leads there."""

_COMPONENT_DISTANCE = 4.0
"""Distance between the beginnings of components, in units of the longest branch."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeDataset(Dataset):
    """A data set with the graph that it was drawn from.

    Attributes
    ----------
    arc_length : (n,) array
        How far along its branch, ``labels``, each row came from.
    pseudotime : (n,) array
        Length of the shortest way from place 0 along the graph; in another component, from its first place.
    ends : (B, 2) integer array
        Places that each branch leads from and to.
    lengths_of_branches : (B,) array
        Length of each branch.
    places : (V, D) array
        Where branches begin and end.
    """

    arc_length: FloatArray = field(default_factory=lambda: np.empty(0))
    pseudotime: FloatArray = field(default_factory=lambda: np.empty(0))
    ends: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    lengths_of_branches: FloatArray = field(default_factory=lambda: np.empty(0))
    places: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


@check_kinds
def make_tree(
    n_samples: int = 1000,
    noise: float = 0.1,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    topology: str | Edges = "y",
    n_features: int = 10,
    lengths: Sequence[float] | float = 1.0,
    densities: Sequence[float] | float = 1.0,
    bend: float = 1.0,
    counts: float | None = None,
    dispersion: float = 0.1,
) -> TreeDataset:
    """Rows about curved branches of a tree, or of any other graph, in random directions.

    A branch is an arc of a circle. It turns by an angle drawn from [bend/2, bend] to either side, and leaves its place
    at a wide angle to the branches there. A branch to a place that is taken closes a loop, as a half ellipse bulged by
    a third of its chord. A branch from a place that no other leads to begins another component.

    Parameters
    ----------
    n_samples : int, default=1000
        Rows.
    noise : float, default=0.1
        Standard deviation of the noise.
    noise_kind : {"normal", "isotropic"}, default="isotropic"
        Noise along the normals only, or the same in every column.
    rng : int or numpy.random.Generator, optional
        Seed.
    topology : str or sequence of pairs, default="y"
        ``"path"``, ``"y"``, ``"four"`` (leaves), ``"five"`` (leaves and three forks), ``"star"``, ``"ring"``,
        ``"lasso"`` (a ring with a stem), ``"two"`` (components); or the places that each branch leads from and to,
        such as ``[(0, 1), (1, 2), (1, 3)]``.
    n_features : int, default=10
        Columns, at least two.
    lengths : float or sequence of float, default=1.0
        Length of each branch; one that closes a loop is as long as it has to be.
    densities : float or sequence of float, default=1.0
        Rows by length of each branch, relative to the others.
    bend : float, default=1.0
        Most angle in radians by which a branch turns from its beginning to its end; 0 is straight.
    counts : float, default=None
        Mean of the counts at 0. With it columns hold counts, negative binomial about ``counts`` · exp(x), as expression
        data do, and ``clean`` keeps x.
    dispersion : float, default=0.1
        Of the counts: their variance is μ + dispersion · μ².

    Returns
    -------
    TreeDataset
        ``labels`` is the branch of each row, ``latent`` the length travelled with branches laid end to end.
    """
    generator = np.random.default_rng(rng)
    pairs = _check_graph(topology)
    size = _for_each_branch("lengths", lengths, len(pairs))
    share = _for_each_branch("densities", densities, len(pairs))
    _check_numbers(n_features, bend, counts, dispersion)
    frame = random_frame(n_features, min(n_features, len(pairs) + 1), generator)
    curves: list[FloatArray] = [curve @ frame.T for curve in _draw_curves(pairs, size, frame.shape[1], bend, generator)]
    size = np.array([np.linalg.norm(np.diff(curve, axis=0), axis=1).sum() for curve in curves])
    start = np.cumsum(size) - size
    share = share / share.max()  # densities count in proportion to each other, and none leaves double precision
    share = share * size / float(share @ size)
    cells = [np.stack([each[:-1], each[1:]], axis=1) for each in curves]
    surface = line_network("tree", np.concatenate(cells))

    def by_density(n: int, generator: np.random.Generator) -> FloatArray:
        branch = generator.choice(len(pairs), n, p=share)
        return np.asarray(start[branch] + generator.uniform(size=n) * size[branch])[:, None]

    made = simulate(surface, n_samples, noise, noise_kind, generator, sampling=by_density)
    assert made.latent is not None
    branch = np.searchsorted(start, made.latent[:, 0], side="right") - 1
    arc_length = made.latent[:, 0] - start[branch]
    X = made.X if counts is None else _draw_counts(made.X, counts, dispersion, generator)
    ends = np.asarray(pairs, dtype=np.int64)
    return TreeDataset(
        X,
        made.latent,
        made.clean,
        surface,
        branch,
        feature_names=made.feature_names,
        class_names=tuple(f"branch {b}" for b in range(len(pairs))),
        description="rows about a graph of curved branches",
        arc_length=arc_length,
        pseudotime=_pseudotime(ends, size, branch, arc_length),
        ends=ends,
        lengths_of_branches=size,
        places=_places(ends, curves),
    )


# ------------------------------------------------------------------------------------------------------ the graph


def _draw_curves(pairs: Edges, size: FloatArray, q: int, bend: float, rng: np.random.Generator) -> list[FloatArray]:
    """Branches as polylines (cells + 1, q), each from the place where another has ended."""
    place: dict[int, FloatArray] = {}
    leaving: dict[int, list[FloatArray]] = {}
    arriving: dict[int, FloatArray] = {}
    curves, pieces = list[FloatArray](), 0
    for (a, b), length in zip(pairs, size, strict=True):
        if a not in place:
            place[a] = pieces * _COMPONENT_DISTANCE * float(size.max()) * _unit(rng.normal(size=q))
            pieces += 1
        if b in place:
            curves.append(_closing_arc(place[a], place[b], rng))
        else:
            direction = _draw_direction(leaving.get(a, []), arriving.get(a), q, rng)
            curves.append(place[a] + _arc(direction, length, bend, rng))
            place[b] = curves[-1][-1]
            leaving.setdefault(a, []).append(direction)
            arriving[b] = _unit(curves[-1][-1] - curves[-1][-2])
    return curves


def _draw_direction(
    beside: list[FloatArray], before: FloatArray | None, q: int, rng: np.random.Generator
) -> FloatArray:
    """(q,) a direction away from the branches of a place; the best of those drawn where none is far enough."""
    drawn = rng.normal(size=(_CANDIDATES, q))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    low, high = _AHEAD_COSINES
    excess = np.zeros(len(drawn))
    for other in beside:
        excess = np.maximum(excess, drawn @ other - _SIBLING_COSINE)
    if before is not None:
        cosine = drawn @ before
        excess = np.maximum(excess, np.maximum(cosine - high, low - cosine))
    return np.asarray(drawn[int(excess.argmin())])


def _arc(direction: FloatArray, length: float, bend: float, rng: np.random.Generator) -> FloatArray:
    """(cells + 1, q) an arc of a circle from 0 in a direction."""
    drawn = rng.normal(size=len(direction))
    normal = _unit(drawn - (drawn @ direction) * direction)
    turn = bend * rng.uniform(0.5, 1.0) * rng.choice([-1.0, 1.0])
    s = np.linspace(0.0, 1.0, _CELLS + 1)[:, None]
    if abs(turn) < 1e-9:
        return np.asarray(length * s * direction)
    return np.asarray(length * (np.sin(turn * s) * direction + (1.0 - np.cos(turn * s)) * normal) / turn)


def _closing_arc(start: FloatArray, end: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(cells + 1, q) half an ellipse from one place to another."""
    chord = end - start
    normal = rng.normal(size=len(chord))
    normal -= (normal @ chord) * chord / max(float(chord @ chord), np.finfo(float).tiny)
    angle = np.linspace(0.0, np.pi, _CELLS + 1)[:, None]
    bulge = np.linalg.norm(chord) / 3.0 * _unit(normal)
    return np.asarray(start + 0.5 * (1.0 - np.cos(angle)) * chord + np.sin(angle) * bulge)


def _pseudotime(ends: IntArray, size: FloatArray, branch: IntArray, way: FloatArray) -> FloatArray:
    """(n,) shortest way from the first place of the component that each row lies in."""
    V = int(ends.max()) + 1
    graph = coo_array((size, (ends[:, 0], ends[:, 1])), shape=(V, V)).tocsr()
    time = np.full(V, np.inf)
    for place in range(V):
        if np.isinf(time[place]) and (ends == place).any():
            time = np.minimum(time, dijkstra(graph, directed=False, indices=[place])[0])
    a, b = ends[branch].T
    return np.asarray(np.minimum(time[a] + way, time[b] + size[branch] - way))


def _places(ends: IntArray, curves: list[FloatArray]) -> FloatArray:
    places = np.full((int(ends.max()) + 1, curves[0].shape[1]), np.nan)
    for (a, b), curve in zip(ends, curves, strict=True):
        places[a], places[b] = curve[0], curve[-1]
    return places


_MOST_COUNTS = 1e18


def _draw_counts(X: FloatArray, mean: float, dispersion: float, rng: np.random.Generator) -> FloatArray:
    """(n, D) negative binomial counts about mean · exp(x)."""
    rate = mean * np.exp(X)
    if dispersion > 0:
        rate = rng.gamma(1.0 / dispersion, dispersion * rate)
    if not rate.max(initial=0.0) < _MOST_COUNTS:
        words = f"counts of up to {rate.max():.3g} were asked for, and at most {_MOST_COUNTS:g} can be drawn"
        raise InvalidParameterError(f"{words}; lower counts, dispersion or noise")
    return rng.poisson(rate).astype(float)


def _unit(v: FloatArray) -> FloatArray:
    return np.asarray(v / max(float(np.linalg.norm(v)), np.finfo(float).tiny))


# -------------------------------------------------------------------------------------------------------- checks


_PAIRS = Constraint(
    lambda v: all(len(pair) == 2 and all(is_number(place, Integral) for place in pair) for pair in v),
    "a name or pairs of places, such as [(0, 1), (1, 2), (1, 3)]",
)


def _check_graph(topology: str | Edges) -> Edges:
    if isinstance(topology, str):
        if topology not in TOPOLOGIES:
            raise InvalidParameterError(
                f"topology must be one of {list(TOPOLOGIES)} or pairs of places, got {topology!r}"
            )
        return TOPOLOGIES[topology]
    check_setting("topology", topology, _PAIRS)
    pairs = [tuple(int(place) for place in pair) for pair in topology]
    places = sorted({place for pair in pairs for place in pair})
    if not pairs or any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs) or places != list(range(len(places))):
        raise InvalidParameterError(
            f"topology must be pairs of different places, numbered from 0 without gaps, such as [(0, 1), (1, 2), "
            f"(1, 3)]; got {topology!r}"
        )
    return [(a, b) for a, b in pairs]


def _for_each_branch(name: str, given: Any, n: int) -> FloatArray:
    found = np.asarray(given, dtype=float)
    if found.shape not in ((), (n,)) or not (np.isfinite(found).all() and (found > 0).all()):
        raise InvalidParameterError(
            f"{name} must be a number above 0, or {n} of them, one for each branch; got {given!r}"
        )
    return np.array(np.broadcast_to(found, n))


def _check_numbers(n_features: int, bend: float, counts: float | None, dispersion: float) -> None:
    wanted = (
        ("n_features", n_features, n_features >= 2, "at least 2"),
        ("bend", bend, 0 <= bend <= np.pi, "an angle between 0 and π"),
        ("counts", counts, counts is None or 0 < counts < np.inf, "a mean above 0"),
        ("dispersion", dispersion, 0 <= dispersion < np.inf, "finite and at least 0"),
    )
    for name, value, good, words in wanted:
        if not good:
            raise InvalidParameterError(f"{name} must be {words}, got {value!r}")
