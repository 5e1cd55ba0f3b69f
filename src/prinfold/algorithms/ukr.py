"""Training of unsupervised kernel regression: section 2.3 of Meinicke, Klanke, Memisevic and Ritter (2005).

Latent points are moved until rows are predicted well by their neighbours among them. That the error goes on falling
long after the surface has begun to follow the noise is the method's weakness, and the level of the noise at which
training ends by default is what we add to the paper's scheme; see ``benchmarks/ukr.py`` for the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.algorithms.kernel_regression import Evaluation, KernelRegression, MassTerm, make_target
from prinfold.algorithms.noise_level import neighborhood_noise, noise_level
from prinfold.files import storable
from prinfold.loops import Descent, Discrepancy, Highest, Outcome, Rule, run_fixed_point
from prinfold.loops.descent import State

NOISE_SLACK = 1.4
"""Errors over the level of the noise at which to end. A kernel regression whose latent points are right leaves a little
more than noise, because it rounds off bends; ``benchmarks/ukr.py`` finds anything between 1.2 and 2 nearly as good."""

THRESHOLDS = (0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005)
"""Falling density thresholds of the homotopy, as in section 4.3 of the paper."""

_SHRUNKEN_VARIANCE = 0.01
"""Total variance of the latent points that the homotopy starts from."""

_BARRIER = 1e-2
"""Weight of the barrier at twice the least mass, relative to the error: it has to hold, and to be felt near by only."""

DISORDER = 2.0
"""How many times the noise seen from latent points may exceed that among neighbours in data space before the latent
points are held to be in disorder."""


@dataclass(frozen=True)
class Problem:
    """Rows Y (n, D) to be predicted from latent points, with weights (n,)."""

    Y: FloatArray
    regression: KernelRegression

    @property
    def weight(self) -> FloatArray:
        return self.regression.weight

    @cached_property
    def variance(self) -> float:
        """Mean squared distance from the mean; 1 where all rows are the same."""
        return float(self.weight @ np.einsum("nd,nd->n", self.Y, self.Y)) / float(self.weight.sum()) or 1.0

    def error(self, X: FloatArray) -> float:
        """The error (10), or (8) where none is left out."""
        return self.regression.value(X).value

    def validated_error(self, X: FloatArray) -> float:
        """The error (10), whichever of the two is minimised."""
        return replace(self.regression, leave_one_out=True).value(X).value

    def among(self, rows: IntArray) -> Problem:
        """The same for some rows, predicted by each other."""
        Y, weight = self.Y[rows], self.weight[rows]
        Y = Y - np.average(Y, axis=0, weights=weight)  # what has no neighbours is predicted by the origin
        return Problem(Y, replace(self.regression, target=make_target(Y), weight=weight))

    def at(self, X: FloatArray) -> Problem:
        """The same problem, its target in the form that costs less with as many neighbours as latent points X have."""
        reach = self.regression.profile.reach
        if not np.isfinite(reach):
            return self
        tree = cKDTree(X)
        target = make_target(self.Y, int(tree.count_neighbors(tree, reach)) / len(X))
        return replace(self, regression=replace(self.regression, target=target))

    def mean_error(self, evaluation: Evaluation) -> float:
        """The error of an evaluation without what else was added to its value."""
        return float(self.weight @ evaluation.error) / float(self.weight.sum())


class Place(NamedTuple):
    """Where a descent stands, and how many latent points it had to fetch back in its last step."""

    state: State[Any]
    fetched: int = 0


@dataclass(frozen=True)
class Walk:
    """Moves latent points downhill, and fetches back those that have lost all neighbours of a compact kernel."""

    problem: Problem
    descent: Descent
    term: MassTerm | None = None

    def begin(self, X: FloatArray) -> Place:
        return self._fetched(self.descent.begin(X, self._evaluate))

    def step(self, place: Place) -> Place:
        return self._fetched(self.descent.step(place.state, self._evaluate))

    def measure(self, place: Place) -> dict[str, float]:
        """``objective`` is minus the share of the variance that is not predicted, so that it has no units."""
        error = self.problem.mean_error(place.state.evaluation)
        return {"objective": -error / self.problem.variance, "error": error, "fetched": place.fetched}

    def _evaluate(self, X: FloatArray) -> Any:
        return self.problem.regression.gradient(X, self.term)

    def _fetched(self, state: State[Any]) -> Place:
        lost, reach = state.evaluation.empty, self.problem.regression.profile.reach
        if len(lost) == 1 or reach == inf or not lost.any():
            return Place(state)
        X = fetch_back(state.x, lost, reach)
        return Place(self.descent.begin(X, self._evaluate), int(lost.sum()))


def fetch_back(X: FloatArray, lost: BoolArray, reach: float) -> FloatArray:
    """Latent points with the lost ones put halfway within the reach of the nearest that is not.

    Without neighbours a point has no prediction but the mean and no slope to lead it back. It stays on its own side of
    the point that it is brought to. If all are lost, all are drawn together until half of them have a neighbour there.
    """
    if lost.all():
        nearest = np.asarray(cKDTree(X).query(X, k=2)[0])[:, 1]
        return X * (0.5 * reach / float(np.median(nearest)))
    X, others = X.copy(), X[~lost]
    distance, index = map(np.asarray, cKDTree(others).query(X[lost]))
    anchor = others[index]
    X[lost] = anchor + (X[lost] - anchor) * (0.5 * reach / distance)[:, None]
    return X


# --------------------------------------------------------------------------------------------- when to end


def noise_rule(problem: Problem, X: FloatArray) -> Rule:
    """End where the error is down to the noise across the surface, as seen from the latent points X to start from.

    Where these are in disorder that is too much; neighbours in data space, which see no latent points, are then
    believed in their place.
    """
    across = noise_level(X, problem.Y, problem.weight, problem.regression.profile)
    among = neighborhood_noise(problem.Y, problem.weight, X.shape[1])
    return Discrepancy(NOISE_SLACK * (among if across > DISORDER * among else across))


def minimum_rule(problem: Problem, X: FloatArray) -> Rule:
    """Go on to a minimum of the error, as the paper does."""
    return Highest()


STOPS: dict[str, Callable[[Problem, FloatArray], Rule]] = {"noise": noise_rule, "minimum": minimum_rule}


def train(
    problem: Problem,
    X: FloatArray,
    *,
    descent: Descent,
    rule: Rule,
    max_iter: int,
    tol: float,
    listeners: Sequence[Any] = (),
    term: MassTerm | None = None,
) -> Outcome[Place]:
    """Step 5: minimise the error from latent points X, and keep what the rule says."""
    walk = Walk(problem, descent, term)
    return run_fixed_point(
        partial(walk.begin, X), walk.step, walk.measure, max_iter=max_iter, tol=tol, listeners=listeners, rule=rule
    )


# ----------------------------------------------------------------------------------------- density thresholds


@dataclass(frozen=True)
class Barrier:
    """μ m₀ / (m − m₀) on the neighbours' mass m of a row, infinite from m₀ down: keeps latent densities above η.

    The constraint (7) is p(x_i) ≥ η K(0) with p(x_i)/K(0) = (w_i + m_i)/W, hence m₀ = η W − w̄, taking the mean
    weight for that of the row itself.
    """

    least: float
    strength: float

    def __call__(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        above = mass - self.least
        inside = above > 0
        # Outside, the value says that no step may end there, and nobody asks for the slope.
        above = np.where(inside, above, 1.0)
        value = self.strength * self.least / above
        return np.where(inside, value, np.inf), np.where(inside, -value / above, 0.0)


def barrier(problem: Problem, threshold: float, X: FloatArray) -> Barrier | None:
    """The barrier that holds a density threshold, or None where the row itself is density enough."""
    least = threshold * float(problem.weight.sum()) - float(problem.weight.mean())
    return Barrier(least, _BARRIER * problem.error(X)) if least > 0 else None


def make_room(problem: Problem, X: FloatArray, threshold: float) -> FloatArray:
    """Latent points drawn together, if they must be, until all have more density than the threshold."""
    least = threshold * float(problem.weight.sum()) - float(problem.weight.mean())
    centre = np.average(X, axis=0, weights=problem.weight)
    for _ in range(200):
        if problem.regression.value(X).mass.min() > 1.01 * least:
            return X
        X = centre + 0.9 * (X - centre)
    return np.broadcast_to(centre, X.shape).copy()


@storable
@dataclass(frozen=True, eq=False)
class Homotopy:
    """What each density threshold came to: error, steps and the least density of a latent point, all (T,)."""

    thresholds: FloatArray
    errors: FloatArray
    steps: FloatArray
    densities: FloatArray

    def __str__(self) -> str:
        lines = ["  threshold     error  steps  least density"]
        rows = zip(self.thresholds, self.errors, self.steps, self.densities, strict=True)
        lines += [f"  {eta:9.4g}  {error:8.4g}  {steps:5.0f}  {density:13.4g}" for eta, error, steps, density in rows]
        return "\n".join(lines)


def homotopy(problem: Problem, X: FloatArray, descent: Descent, max_iter: int = 100) -> tuple[FloatArray, Homotopy]:
    """Step 4: from a start drawn together, let latent points part under falling density thresholds."""
    centred = X - np.average(X, axis=0, weights=problem.weight)
    variance = float(np.average(np.square(centred).sum(axis=1), weights=problem.weight)) or 1.0
    X = centred * np.sqrt(_SHRUNKEN_VARIANCE / variance)
    total, found = float(problem.weight.sum()), []
    for threshold in THRESHOLDS:
        wall = barrier(problem, threshold, X)
        outcome = train(problem, X, descent=descent, rule=Highest(), max_iter=max_iter, tol=1e-6, term=wall)
        X = outcome.state.state.x
        evaluation = outcome.state.state.evaluation
        density = float((evaluation.mass + problem.weight).min()) / total
        found.append((threshold, problem.mean_error(evaluation), float(outcome.n_iter), density))
    return X, Homotopy(*np.array(found).T)


# --------------------------------------------------------------------------------------------------- landmarks


def nearest_centres(centres: FloatArray, Z: FloatArray) -> IntArray:
    """(n,) the latent point that each of Z is nearest to."""
    return np.asarray(cKDTree(centres).query(Z)[1])


def averages(name: IntArray, weight: FloatArray, *columns: FloatArray) -> tuple[FloatArray, ...]:
    """Weighted means of rows with the same name, and the weights of all of them last; names without rows drop out.

    A surface of few latent points that stand for many rows each has hardly more noise than one with a latent point
    for every row.
    """
    present, index = np.unique(name, return_inverse=True)
    total: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
    sums = csr_array((weight, (index, np.arange(len(index)))), shape=(len(present), len(index)))
    means = tuple(np.asarray(sums @ column) / total[:, None] for column in columns)
    return *means, total
