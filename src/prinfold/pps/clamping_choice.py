"""Choice of a clamping by held-out error at matched roughness; after figures 10 and 13 of Chang & Ghosh, else ours.

Held-out error alone favours rough surfaces, and that for two reasons. A surface that wanders through the cloud passes
near rows that it has not seen, too; Chang and Ghosh (figures 10 and 13) therefore compare clampings at one roughness.
And the nearest point of a wavy surface is chosen with knowledge of the row, so that waves look like accuracy. Here

- the GTM, which is the clamping 1, at the user's own regularisation sets the level of roughness. Every clamping is
  tried along a path of regularisations, and the best of its surfaces that are no rougher than the level stands for
  it; as a rule that is where its path crosses the level;
- the error of a held-out row is taken at the point that is nearest not to the row but to its foot on that GTM, which
  has not seen the row either. Noise across the surface then has no say in where the error is taken, and waves cost
  what they are worth. On simulators this follows the distance from the true surface better than the
  projection error does;
- all of it happens fold by fold, so that differences are paired. What is within one and a half standard errors of the
  lowest is called a tie, and a tie goes to the GTM as it was asked for, or else to the clamping nearest to 1.

:func:`split` makes folds, :func:`compare` fits and measures, :class:`Selection` says what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers
from prinfold.geometry.roughness import bending
from prinfold.loops import StopReason
from prinfold.metrics import roughness
from prinfold.rows.rows import Rows, dense
from prinfold.validation.settings import integer

_CLAMPINGS = (0.2, 0.35, 0.5, 0.7, 1.0)
_LARGEST_CLAMPING = 2.0
"""Candidates are these and one above 1, at most this; 0.1 was nowhere best on simulators."""

_REGULARIZATION_FACTORS = (0.1, 10**-0.5, 1.0, 10**0.5)
"""Regularisations tried, relative to the user's."""

_REGULARIZATIONS_FROM_ZERO = (0.0, 1e-3, 1e-2, 1e-1)
"""Regularisations tried where the user's is 0."""

_N_FOLDS = 5
_ROWS_PER_FOLD = 2
_MOST_ROWS = 2000
"""Most different rows of a comparison; more would take long and tell little more about one number."""

_TIE_STANDARD_ERRORS = 1.5
"""Standard errors that a difference must exceed: with five folds chance alone exceeds one of them in a fifth of cases,
one and a half in a tenth."""

_EQUAL_RADIUS_SHARE = 1e-9
"""Relative difference of squared distances from the centre that may be rounding."""

_MESH_PER_AXIS = 25
"""Vertices along each axis of the mesh over which a surface's bending is integrated; six places in each triangle."""

_LARGEST_ROUGHNESS = 1e100
"""Stands for a roughness that is not a number: files hold finite ones only."""


# ---------------------------------------------------------------------------------------------- what was found


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Comparison of clampings, and the one that was chosen by it.

    Parameters
    ----------
    clampings : array of shape (A,)
        Candidates in rising order, 1 among them.
    strengths : array of shape (L,)
        Regularisations tried with each candidate, in rising order.
    own : int
        Which of the regularisations is the user's.
    errors : array of shape (F, A, L)
        Mean squared distance of each fold to the surface fitted without it, at the points that face the rows' feet on
        the GTM.
    projection_errors : array of shape (F, A, L)
        The same at the nearest points, for comparison: this alone favours rough surfaces.
    roughnesses : array of shape (F, A, L)
        Roughness of that surface.
    weights : array of shape (F,)
        Total weight of each fold.
    """

    _kinds: ClassVar[Kinds] = {
        "clampings": numbers("A"),
        "strengths": numbers("L"),
        "own": integer(0),
        "errors": numbers("F", "A", "L"),
        "projection_errors": numbers("F", "A", "L"),
        "roughnesses": numbers("F", "A", "L"),
        "weights": numbers("F"),
    }

    clampings: FloatArray
    strengths: FloatArray
    own: int
    errors: FloatArray
    projection_errors: FloatArray
    roughnesses: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.weights), len(self.clampings), len(self.strengths))
        found = {part.shape for part in (self.errors, self.projection_errors, self.roughnesses)}
        if found != {shape} or 1.0 not in self.clampings:
            raise ValueError(f"the parts of a selection do not fit together: {shape}, {found}")

    @property
    def error(self) -> FloatArray:
        """(A, L) held-out error over all folds."""
        return np.asarray(np.average(self.errors, axis=0, weights=self.weights))

    @property
    def standard_error(self) -> FloatArray:
        """(A, L) standard error of :attr:`error`, over the folds."""
        return standard_error(self.errors, self.weights)

    @property
    def roughness(self) -> FloatArray:
        """(A, L) roughness, on average over the folds."""
        return np.asarray(np.average(self.roughnesses, axis=0, weights=self.weights))

    @property
    def level(self) -> float:
        """Roughness that no candidate may exceed, on average over the folds: that of the GTM as it was asked for."""
        return float(self.roughness[self._gtm, self.own])

    @property
    def matched_errors(self) -> FloatArray:
        """(F, A) lowest held-out error of each candidate within the level of the fold; NaN if it is always rougher."""
        return self._matched[1]

    @property
    def matched_error(self) -> FloatArray:
        """(A,) held-out error at matched roughness; NaN for a candidate that is always rougher in some fold."""
        return np.asarray(np.average(self.matched_errors, axis=0, weights=self.weights))

    @property
    def matched_strength(self) -> FloatArray:
        """(A,) regularisation that goes with it, the geometric mean over the folds."""
        position = np.average(self._matched[0], axis=0, weights=self.weights)
        return np.array([_strength_at(self.strengths, each) for each in position])

    @property
    def comparable(self) -> BoolArray:
        """(A,) whether a candidate can be brought within the level in every fold."""
        return np.isfinite(self.matched_error)

    @property
    def tied(self) -> BoolArray:
        """(A,) candidates whose error differs from the lowest by no more than chance may."""
        return ties(self.matched_errors, self.weights)

    @property
    def kept(self) -> bool:
        """Whether the GTM as it was asked for is tied with the lowest, so that nothing is changed."""
        own = self.errors[:, self._gtm, self.own]
        return bool(ties(np.column_stack([self.matched_errors, own]), self.weights)[-1])

    @property
    def chosen(self) -> int:
        """Index of the chosen candidate: of those that are tied, the one nearest to 1."""
        distance = np.where(self.tied, np.abs(np.log(self.clampings)), np.inf)
        return self._gtm if self.kept else int(distance.argmin())

    @property
    def clamping(self) -> float:
        """The clamping chosen."""
        return float(self.clampings[self.chosen])

    @property
    def strength(self) -> float:
        """The regularisation that goes with it: the user's, if nothing is changed."""
        return float(self.strengths[self.own] if self.kept else self.matched_strength[self.chosen])

    @property
    def _gtm(self) -> int:
        return int(np.flatnonzero(self.clampings == 1.0)[0])

    @cached_property
    def _matched(self) -> tuple[FloatArray, FloatArray]:
        """Positions on the path of regularisations (F, A), and errors there."""
        found = np.empty((2, *self.errors.shape[:2]))
        for f, (errors, roughnesses) in enumerate(zip(self.errors, self.roughnesses, strict=True)):
            level = roughnesses[self._gtm, self.own]
            for a in range(len(self.clampings)):
                found[:, f, a] = best_within(roughnesses[a], errors[a], level, self.own)
        return found[0], found[1]

    def __str__(self) -> str:
        how = "the GTM as it was asked for" if self.kept else "chosen"
        lines = [
            f"clamping {self.clamping:g} and regularisation {self.strength:.4g}, {how};",
            f"errors of {len(self.weights)} folds held out, by surfaces no rougher than {self.level:.4g}:",
            "  clamping  regularisation  held-out error",
        ]
        for a, clamping in enumerate(self.clampings):
            numbers = f"{self.matched_strength[a]:14.4g}  {self.matched_error[a]:14.6g}"
            if not self.comparable[a]:
                numbers = f"{'—':>14}  {'—':>14}  rougher in some fold, whatever the regularisation"
            words = "  tied with the lowest" if self.tied[a] else ""
            lines.append(f"  {clamping:8.3g}  {numbers}{words}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Selection(clamping={self.clamping:g}, strength={self.strength:.4g}, {len(self.clampings)} compared)"


def best_within(roughness: FloatArray, error: FloatArray, level: float, own: int) -> tuple[float, float]:
    """Position of least error on a path among those no rougher than ``level``, and the error; NaN if all are rougher.

    Between two steps of the path both numbers are interpolated linearly, so that the lowest error is at a step or at
    a crossing of the level. Of equals the one nearest to ``own`` is taken.
    """
    low, high = roughness[:-1], roughness[1:]
    j = np.flatnonzero((low < level) != (high < level))
    span = high[j] - low[j]
    crossings = j + (level - low[j]) / span
    places = np.concatenate([np.flatnonzero(roughness <= level), crossings])
    if not len(places):
        return np.nan, np.nan
    errors = np.interp(places, np.arange(len(error)), error)
    best = np.lexsort((np.abs(places - own), errors))[0]
    return float(places[best]), float(errors[best])


def standard_error(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Standard error of the weighted mean over the first axis."""
    mean = np.average(values, axis=0, weights=weights)
    return np.asarray(np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights) / (len(weights) - 1)))


def ties(errors: FloatArray, weights: FloatArray) -> BoolArray:
    """(A,) which columns of (F, A) are at most 1.5 standard errors of the paired difference above the lowest mean."""
    mean = np.average(errors, axis=0, weights=weights)
    excess = errors - errors[:, [int(np.nanargmin(mean))]]
    with np.errstate(invalid="ignore"):  # candidates that cannot be compared are NaN
        return np.asarray(
            np.average(excess, axis=0, weights=weights) <= _TIE_STANDARD_ERRORS * standard_error(excess, weights)
        )


# ------------------------------------------------------------------------------------------------- candidates


def candidates(n_columns: int, dimension: int) -> FloatArray:
    """Clampings to compare: some below 1, 1 itself, and one above, halfway to the limit D/Q by ratio."""
    return np.array([*_CLAMPINGS, min(float(np.sqrt(n_columns / dimension)), _LARGEST_CLAMPING)])


def path(strength: float) -> tuple[FloatArray, int]:
    """Regularisations around the user's, and which of them that is."""
    if strength == 0:
        return np.array(_REGULARIZATIONS_FROM_ZERO), 0
    own = _REGULARIZATION_FACTORS.index(1.0)
    return strength * np.array(_REGULARIZATION_FACTORS), own


def _strength_at(strengths: FloatArray, position: float) -> float:
    """The regularisation at a place on the path: by ratio, or linearly from 0."""
    if not np.isfinite(position):
        return float("nan")
    j = min(int(position), len(strengths) - 2)
    low, high, share = strengths[j], strengths[j + 1], position - j
    return float(low ** (1 - share) * high**share if low > 0 else (1 - share) * low + share * high)


# ------------------------------------------------------------------------------------------------------ folds


class RowFolds(NamedTuple):
    """Rows that take part in a comparison, and the fold of each."""

    rows: IntArray
    fold: IntArray
    n_folds: int


def split(rows: Rows, rng: np.random.Generator) -> RowFolds:
    """Folds that do not depend on the order, the place, the orientation or the scale of the rows.

    Rows are ranked by their distance from the centre, and of every few that follow one another each goes to another
    fold, by ``rng``. Repeats of a row share a rank, so that a weight of 2 is the row given twice.
    """
    kept: IntArray = np.arange(rows.n_rows) if rows.weight is None else np.flatnonzero(rows.weight)
    ring = np.unique(_rings(rows)[kept], return_inverse=True)[1].reshape(-1)
    n_rings = int(ring.max()) + 1
    if n_rings > _MOST_ROWS:
        wanted = np.zeros(n_rings, dtype=bool)
        wanted[np.linspace(0, n_rings - 1, _MOST_ROWS).round().astype(int)] = True
        kept, ring = kept[wanted[ring]], ring[wanted[ring]]
    _, first, unit = np.unique(dense(rows.table[kept]), axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=int)
    rank[np.argsort(ring[first], kind="stable")] = np.arange(len(first))
    n_folds = min(_N_FOLDS, len(first) // _ROWS_PER_FOLD)
    if n_folds < 2:
        raise InvalidDataError(
            Message(
                f"to select a clamping rows are held out, which needs at least {2 * _ROWS_PER_FOLD} different ones, "
                f"got {len(first)}",
                Advice("clamping", 1, "give a clamping, such as {}"),
            )
        )
    turns = rng.permuted(np.tile(np.arange(n_folds), (-(-len(first) // n_folds), 1)), axis=1).ravel()
    return RowFolds(kept, turns[rank[unit.reshape(-1)]], n_folds)


def _rings(rows: Rows) -> IntArray:
    """(n,) rank of each row by distance from the centre; rows within rounding of one another share it."""
    squared = np.concatenate([np.square(rows.block(part), dtype=np.float64).sum(axis=1) for part in rows.slices])
    order = np.argsort(squared, kind="stable")
    ring = np.empty(rows.n_rows, dtype=int)
    ring[order] = np.cumsum(np.diff(squared[order], prepend=squared[order[0]]) > _EQUAL_RADIUS_SHARE * squared.max())
    return ring


# ------------------------------------------------------------------------------------------------- comparison


class ClampingTrial(NamedTuple):
    """Result of a fit without one fold."""

    error: float
    projection_error: float
    roughness: float


def compare(
    learn: Callable[[float, float, IntArray], Any],
    rows: Rows,
    folds: RowFolds,
    clampings: FloatArray,
    strengths: FloatArray,
    own: int,
) -> Selection:
    """Fit every clamping with every regularisation to all folds but one, and measure surface and error.

    ``learn(clamping, strength, rows)`` is a model fitted to those rows. A constant penalty weighs on few rows more than
    on many, so that it is scaled by the weight of the rows.
    """
    weight = np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight, dtype=float)
    trials = np.empty((folds.n_folds, len(clampings), len(strengths), len(ClampingTrial._fields)))
    for f in range(folds.n_folds):
        seen, held = folds.rows[folds.fold != f], folds.rows[folds.fold == f]
        scaled = strengths * weight[seen].sum() / weight.sum()
        X = dense(rows.table[held]).astype(np.float64)
        gtm = _raise_if_interrupted(learn(1.0, float(scaled[own]), seen))
        feet = gtm._nearest(X).points
        for a, i in np.ndindex(trials.shape[1:3]):
            is_gtm = clampings[a] == 1.0 and i == own
            model = gtm if is_gtm else _raise_if_interrupted(learn(float(clampings[a]), float(scaled[i]), seen))
            trials[f, a, i] = measure(model, X, feet, weight[held])
    weights: FloatArray = np.bincount(folds.fold, weights=weight[folds.rows]).astype(float)
    errors, nearest, roughnesses = np.moveaxis(trials, 3, 0)
    return Selection(clampings, strengths, own, errors, nearest, roughnesses, weights)


def measure(model: Any, X: FloatArray, feet: FloatArray, weight: FloatArray) -> ClampingTrial:
    """Errors of rows X by a model, facing the ``feet`` and at the nearest points; and how rough the model is."""
    facing = np.square(X - model._nearest(feet).points).sum(axis=1)
    nearest = model._nearest(X).squared_distance
    error, projection_error = (float(np.average(each, weights=weight)) for each in (facing, nearest))
    return ClampingTrial(error, projection_error, model_roughness(model))


def _raise_if_interrupted(model: Any) -> Any:
    """The model, unless its training was interrupted."""
    if model.stop_reason_ is StopReason.INTERRUPTED:  # there is no model yet that could be kept
        raise KeyboardInterrupt
    return model


def model_roughness(model: Any) -> float:
    """Total turning of a curve and ∫‖II‖² dA of a surface, which have no units; beyond, the mean of ‖II‖² at the nodes.

    The total counts edges that curl where no rows lie, which the mean over rows would not see: they are the
    first sign of a surface that is freer than the rows can hold. Several pieces have none, which is no number: between
    them nothing turns, so that they would pass for smooth however they lie.
    """
    latent = model.latent_
    if latent.charts:
        return float("nan")
    if latent.dimension > 2:
        rough = float(bending(model._jacobian, latent.domain, latent.nodes).mean())
    else:
        mesh = model.mesh(None if latent.dimension == 1 else _MESH_PER_AXIS)
        rough = roughness(mesh, model._jacobian, latent.domain).total
    return min(_LARGEST_ROUGHNESS, rough)  # in this order it is the first of them where the other is not a number
