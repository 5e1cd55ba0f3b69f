"""Where latent points begin: embeddings of the rows, each brought to its best scale, of which the best is chosen.

Steps 1 to 3 of section 2.3 of Meinicke et al. (2005). An embedding says how rows lie to one another, in no units;
latent points have the bandwidth of their kernel for a unit. So each axis is brought to unit variance and multiplied
by a scale, in two stages:

1. one scale for all axes, the inverse of the bandwidth with which a kernel density of the coordinates makes each row
   most likely by the others (likelihood cross-validation, needing no error);
2. a scale for each axis, by direct search (Nelder & Mead) of the error that is handed in.

Errors fall again as scales grow without bound, where every row is predicted by its nearest neighbour alone. Therefore
neither stage may go where the effective number of neighbours (Σ w k)² / Σ (w k)², in the median over the rows, is less
than a minimum (or than half of what the widest kernel gives, where rows are too few for it).

Of many rows some, spread evenly, stand for all while embeddings are compared; the chosen one is scaled with all rows,
because how wide kernels should be depends on how many rows there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.algorithms.kernel_density import LeaveOneOut, likelihood_bandwidth
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.initialise import (
    SPECTRAL,
    embed_all,
    evenly_by_radius,
    leading_signs,
    principal_coordinates,
)
from prinfold.kernels.profiles import Profile

Error = Callable[[FloatArray], float]
ErrorOf = Callable[[IntArray], Error]
"""The error among some rows alone."""

SIZES = (4, 6, 8, 10, 12, 14)
"""Neighbourhood sizes tried; Meinicke et al. take 4 to 14 for a spiral and 2 to 21 for digits."""

MIN_NEIGHBORS = 3.0

STARTS = ("pca", *SPECTRAL, "loop")
"""Embeddings by name; the last is for curves that close."""

_EMBEDDED = 2000
"""Rows that an embedding sees; the others follow their neighbours among them."""

_COMPARED = 2000
"""Rows on which embeddings are compared."""

_PAIRS = 2**18
"""Pairs of rows over which likelihood and numbers of neighbours are taken: all of 500 rows, 131 of 2000 with all. With
four times as many, starts for 1000 rows of a roll and of flow in a pipe took two to three times as long, the same were
chosen, and errors differed by 1 % at most."""

_NO_EXTENT = 1e-8
"""Spread of an axis, relative to the widest, below which it is rounding."""

_TIE = 1e-6
"""Relative difference of errors that is none: the earlier candidate is taken."""

_SIMPLEX = 0.4
_PRECISE = 0.02
_FARTHEST = 7.0
_MOST_TRIALS = 80
"""First step, precision and reach (all of log scales) and length of the direct search."""


# ---------------------------------------------------------------------------------------------- what was found


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """What was compared to choose where latent points begin, in the order of the attempts.

    Parameters
    ----------
    names : tuple of str, C of them
        The embeddings.
    neighbors : array of shape (C,)
        Neighbours that each went by; 0 for those that know none.
    scales : array of shape (C, Q)
        What unit-variance coordinates were multiplied by; 0 for axes without extent.
    start_errors : array of shape (C,)
        Errors with one scale for all axes, found by likelihood or given.
    errors : array of shape (C,)
        Errors after the search for the scale of each axis.
    failures : tuple of str
        What became of embeddings that gave no candidate.
    """

    names: tuple[str, ...]
    neighbors: IntArray
    scales: FloatArray
    start_errors: FloatArray
    errors: FloatArray
    failures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(part) for part in (self.names, self.neighbors, self.scales, self.start_errors, self.errors)}
        if len(lengths) != 1 or not self.names:
            raise ValueError(f"the parts of a table of candidates do not fit together: {sorted(lengths)}")

    @property
    def chosen(self) -> int:
        """The candidate with the lowest error; of those within rounding of it, the first."""
        lowest = self.errors.min()
        return int(np.argmax(self.errors <= lowest + _TIE * abs(lowest)))

    def __str__(self) -> str:
        best = self.chosen
        lines = [
            f"{label(self.names[best], int(self.neighbors[best]))}, error {self.errors[best]:.6g}, chosen among:",
            "  start        neighbours  error at one scale  after the search  scales",
        ]
        for c, name in enumerate(self.names):
            scales = ", ".join(f"{scale:.3g}" for scale in self.scales[c])
            size = str(self.neighbors[c]) if self.neighbors[c] else "—"
            numbers = f"{size:>10}  {self.start_errors[c]:18.6g}  {self.errors[c]:16.6g}"
            lines.append(f"  {name:11}  {numbers}  {scales}{'  ← chosen' if c == best else ''}")
        return "\n".join(lines + [f"  {reason}" for reason in self.failures])

    def __repr__(self) -> str:
        best = self.chosen
        words = label(self.names[best], int(self.neighbors[best]))
        return f"Candidates({words}, error={self.errors[best]:.4g}, {len(self.names)} compared)"


def label(name: str, n_neighbors: int) -> str:
    """What a candidate is called in a table."""
    return f"{name} ({n_neighbors} neighbours)" if n_neighbors else name


class Start(NamedTuple):
    """Latent points (n, Q) in bandwidths, and how they were chosen."""

    latent: FloatArray
    candidates: Candidates


# --------------------------------------------------------------------------------------------------- choosing


@dataclass(frozen=True)
class Floor:
    """A minimum for the effective number of neighbours, held by the ``quantile`` of it over the rows."""

    minimum: float = MIN_NEIGHBORS
    quantile: float = 0.5

    def of(self, rows: LeaveOneOut, bandwidth: float, profile: Profile) -> float:
        """The number that is held to the minimum."""
        return float(np.quantile(rows.neighbours(bandwidth, profile), self.quantile))

    def within(self, rows: LeaveOneOut, profile: Profile) -> Floor:
        """The same, but no higher than half of what a kernel that covers all rows gives."""
        return Floor(min(self.minimum, 0.5 * self.of(rows, 1e3 * rows.range()[1], profile)), self.quantile)

    def bandwidth(self, rows: LeaveOneOut, profile: Profile) -> float:
        """The least bandwidth that keeps the minimum, by bisection to a thousandth."""
        low, high = np.log(rows.range())
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.of(rows, np.exp(middle), profile) >= self.minimum else (middle, high)
        return float(np.exp(high))


def choose_start(
    X: FloatArray,
    weight: FloatArray,
    n_components: int,
    error: Error,
    profile: Profile,
    *,
    starts: Sequence[str] = ("pca", "lle"),
    sizes: Sequence[int] = SIZES,
    given: FloatArray | None = None,
    bandwidth: float | None = None,
    floor: Floor | None = None,
    error_of: ErrorOf | None = None,
) -> Start:
    """Embed rows (n, D) in every way asked for, scale each embedding, and choose the one with the lowest ``error``.

    ``error(X)`` judges latent points (n, Q) of the rows in their order. ``given`` (n, Q) coordinates are a candidate
    like the others. With a ``bandwidth`` all scales are 1/bandwidth, and nothing is searched for. An embedding that
    fails is recorded; at least one must succeed. Neither the order of rows nor repeats of a row matter.

    Of more than 2000 different rows, 2000 that are chosen evenly by their distance from the mean are compared, where
    ``error_of(rows)`` can judge some rows by themselves; numbers in the table are those of them.
    """
    rows, index = np.unique(X, axis=0, return_inverse=True)
    index = index.reshape(-1)
    mass: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
    if given is not None:
        given = _mean_of_repeats(given, index, weight)
    whole = _Judge(lambda Z: error(Z[index]), mass, profile, bandwidth, floor or Floor())
    some = evenly_by_radius(rows, mass, len(rows) if error_of is None else _COMPARED)
    judge = whole if error_of is None or len(some) == len(rows) else whole.among(some, index, error_of)
    found, failures = list[_Found](), list[str]()
    for name, size, embed in proposals(rows, mass, n_components, starts, sizes, given):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # whatever an embedding has to say, its error decides
                Z = oriented(normalise(padded(embed(), n_components), mass), rows, mass)
            found.append(_Found(name, size, Z, judge.scale(Z[some])))
        except (ArithmeticError, RuntimeError, ValueError) as problem:
            failures.append(f"{label(name, size)} failed: {problem}")
    if not found:
        raise InvalidDataError(f"no start for the latent points could be found: {'; '.join(failures)}")
    table = _table(found, failures)
    best = found[table.chosen]
    scaled = best.scaled if judge is whole else whole.scale(best.coordinates)
    return Start(scaled.latent[index], table)


class _Found(NamedTuple):
    """An embedding of all rows, normalised, and what came of scaling it for the rows compared."""

    name: str
    size: int
    coordinates: FloatArray
    scaled: _Scaled


def _table(found: Sequence[_Found], failures: Sequence[str]) -> Candidates:
    return Candidates(
        tuple(each.name for each in found),
        np.array([each.size for each in found]),
        np.array([each.scaled.scales for each in found]),
        np.array([each.scaled.start_error for each in found]),
        np.array([each.scaled.error for each in found]),
        tuple(failures),
    )


def proposals(
    X: FloatArray,
    weight: FloatArray,
    n_components: int,
    starts: Sequence[str],
    sizes: Sequence[int],
    given: FloatArray | None,
) -> Iterator[tuple[str, int, Callable[[], FloatArray]]]:
    """Name, neighbourhood and maker of each embedding."""
    unknown = [name for name in starts if name not in STARTS]
    if unknown:
        raise InvalidParameterError(f"starts must be among {', '.join(STARTS)}, got {unknown[0]!r}")
    if given is not None:
        yield "given", 0, lambda: given
    # An embedding has no more axes than the rows have columns: further ones would be noise.
    n_axes = min(n_components, X.shape[1])
    some = X[evenly_by_radius(X, weight, _EMBEDDED)]
    for name in starts:
        if name == "pca":
            yield name, 0, partial(principal_coordinates, X, weight, n_axes)
        elif name == "loop":
            yield from _loops(X, weight, n_components, sizes, some)
        elif len(X) < n_axes + 2:
            yield name, 0, partial(_too_few, len(X), n_axes + 2)
        else:
            for size in SPECTRAL[name].sizes(some, sizes):
                embed = partial(SPECTRAL[name].embed, n_components=n_axes, n_neighbors=size)
                yield name, size, partial(embed_all, embed, X, weight, _EMBEDDED)


def _loops(
    X: FloatArray, weight: FloatArray, n_components: int, sizes: Sequence[int], some: FloatArray
) -> Iterator[tuple[str, int, Callable[[], FloatArray]]]:
    """A closed curve as Isomap lays it out in a plane, cut open; in one dimension it would lie folded flat."""
    if n_components != 1 or min(len(X) - 2, X.shape[1]) < 2:
        yield "loop", 0, _no_loop
        return
    isomap = SPECTRAL["isomap"]
    for size in isomap.sizes(some, sizes):
        embed = partial(isomap.embed, n_components=2, n_neighbors=size)
        yield "loop", size, partial(_cut_open, partial(embed_all, embed, X, weight, _EMBEDDED))


def _cut_open(embed: Callable[[], FloatArray]) -> FloatArray:
    """(n, 1) the angle of plane coordinates about their mean, counted from the widest gap between neighbours."""
    plane = embed()
    x, y = (plane - plane.mean(axis=0)).T
    angle = np.arctan2(y, x)
    ranked = np.sort(angle)
    gap = np.diff(ranked, append=ranked[0] + 2 * np.pi)
    after = ranked[(int(gap.argmax()) + 1) % len(ranked)]
    return np.asarray(np.mod(angle - after, 2 * np.pi)[:, None])


def _no_loop() -> FloatArray:
    raise InvalidDataError("only a curve, n_components=1 in two columns or more, can close")


def _too_few(n_rows: int, least: int) -> FloatArray:
    raise InvalidDataError(f"{least} different rows are needed, got {n_rows}")


def _mean_of_repeats(Z: FloatArray, index: IntArray, weight: FloatArray) -> FloatArray:
    """(u, Q) mean coordinates of the rows that are the same."""
    Z = np.asarray(Z, dtype=np.float64)
    if Z.ndim != 2 or len(Z) != len(index):
        raise InvalidDataError(f"given coordinates must have a row for each of {len(index)} rows, got shape {Z.shape}")
    total = np.bincount(index, weights=weight)
    return np.stack([np.bincount(index, weights=weight * column) / total for column in Z.T], axis=1)


# --------------------------------------------------------------------------------------------------- normalising


def padded(Z: FloatArray, n_components: int) -> FloatArray:
    """(n, Q) with axes of no extent for those that are missing."""
    if not np.isfinite(Z).all():
        raise InvalidDataError("its coordinates are not finite")
    if Z.shape[1] > n_components:
        raise InvalidDataError(f"it has {Z.shape[1]} axes, more than the {n_components} asked for")
    return np.pad(Z, ((0, 0), (0, n_components - Z.shape[1])))


def oriented(Z: FloatArray, X: FloatArray, weight: FloatArray) -> FloatArray:
    """Coordinates whose axes each point where the data column that follows it most rises."""
    slope = np.einsum("n,nq,nd->qd", weight, Z, X - np.average(X, axis=0, weights=weight))
    return np.asarray(Z * leading_signs(slope))


def normalise(Z: FloatArray, weight: FloatArray) -> FloatArray:
    """Centred coordinates with unit variance along each axis; 0 along axes without extent."""
    gap = Z - np.average(Z, axis=0, weights=weight)
    spread = np.sqrt(np.average(gap**2, axis=0, weights=weight))
    extent = spread > _NO_EXTENT * max(float(spread.max(initial=0.0)), np.finfo(float).tiny)
    return np.asarray(np.where(extent, gap / np.where(extent, spread, 1.0), 0.0))


# ------------------------------------------------------------------------------------------------------ scaling


class _Scaled(NamedTuple):
    latent: FloatArray
    scales: FloatArray
    start_error: float
    error: float


@dataclass(frozen=True)
class _Judge:
    """What every candidate is scaled and judged by."""

    error: Error
    weight: FloatArray
    profile: Profile
    bandwidth: float | None
    floor: Floor

    def among(self, some: IntArray, index: IntArray, error_of: ErrorOf) -> _Judge:
        """The same for some of the different rows by themselves; ``index`` names the one that each row is."""
        place = np.full(len(self.weight), -1)
        place[some] = np.arange(len(some))
        members = np.flatnonzero(place[index] >= 0)
        judged, each = error_of(members), place[index[members]]
        return replace(self, error=lambda Z: judged(Z[each]), weight=self.weight[some])

    def scale(self, Z: FloatArray) -> _Scaled:
        """Bring normalised coordinates to their best scales."""
        live = np.ptp(Z, axis=0) > 0
        if self.bandwidth is not None or not live.any():
            return self._at(Z, live, 1.0 if self.bandwidth is None else 1.0 / self.bandwidth)
        rows = self._rows(Z[:, live])
        floor = self.floor.within(rows, self.profile)
        common = 1.0 / likelihood_bandwidth([rows], self.profile, floor.bandwidth(rows, self.profile))
        first = self._at(Z, live, common)
        scales, error = self._search(Z, live, first, floor)
        return _Scaled(Z * scales, scales, first.error, error)

    def _rows(self, Z: FloatArray) -> LeaveOneOut:
        return LeaveOneOut.of(Z, self.weight, _PAIRS)

    def _at(self, Z: FloatArray, live: BoolArray, scale: float) -> _Scaled:
        scales = np.where(live, scale, 0.0)
        error = float(self.error(Z * scales))
        if not np.isfinite(error):
            raise InvalidDataError(f"its error is {error}")
        return _Scaled(Z * scales, scales, error, error)

    def _search(self, Z: FloatArray, live: BoolArray, first: _Scaled, floor: Floor) -> tuple[FloatArray, float]:
        """Scales of the axes with extent by direct search, and the error; never worse than ``first``."""
        best = first.scales, first.error
        # Finite, since the search subtracts the values that it compares.
        refused = 1e3 * (abs(first.error) or 1.0)

        def trial(log_scales: FloatArray) -> float:
            nonlocal best
            if np.abs(log_scales - start).max() > _FARTHEST:
                return 3.0 * refused
            scales = np.zeros(len(live))
            scales[live] = np.exp(log_scales)
            number = floor.of(self._rows(Z[:, live] * scales[live]), 1.0, self.profile)
            if number < floor.minimum:
                return refused * (2.0 - number / floor.minimum)
            error = float(self.error(Z * scales))
            if error < best[1]:
                best = scales, error
            return error if np.isfinite(error) else refused

        start = np.log(first.scales[live])
        simplex = np.vstack([start, start + _SIMPLEX * np.eye(len(start))])
        options: dict[str, Any] = {"initial_simplex": simplex, "xatol": _PRECISE, "maxfev": _MOST_TRIALS}
        minimize(trial, start, method="Nelder-Mead", options=options | {"fatol": 1e-4 * abs(first.error)})  # type: ignore[call-overload]
        return best
