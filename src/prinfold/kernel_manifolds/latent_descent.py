"""Descent on latent points: the training loop that UKR and KMM share.

Parameters P give latent points X, rows are predicted from one another by kernel regression on these (Meinicke et al.
2005, section 2; Gerber et al. 2009, section 4), and P moves downhill until a stopping rule holds. The error goes on
falling long after the surface has begun to follow the noise, the weakness of all such methods; ending at the level of
the noise, as by default, is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.kernel_manifolds.noise_level import neighborhood_noise, noise_level, typical_mean
from prinfold.kernel_manifolds.objective import Evaluation, KernelRegression, MassTerm, make_target
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.loops import (
    NO_LISTENERS,
    Descent,
    Discrepancy,
    Listeners,
    Outcome,
    Plateau,
    StoppingRule,
    Validation,
    run_fixed_point,
)
from prinfold.loops.descent import DescentState
from prinfold.numerics.distances import squared_distances

NOISE_SLACK = 1.4
"""Errors over the level of the noise at which to end. A kernel regression whose latent points are right leaves a little
more than noise, because it rounds off bends; the benchmark ``ukr_stopping`` judges by true surfaces."""

MOST_NOISE_RATIO = 2.0
"""Ratio of the noise estimated from latent points to that among neighbours in data space, above which the latent
points are taken for disordered."""


@dataclass(frozen=True)
class RegressionProblem:
    """Rows Y (n, D) to be predicted from latent points, with weights (n,)."""

    Y: FloatArray
    regression: KernelRegression
    noise: float | None = None
    """Noise among neighbours in data space, where more rows than these have shown it."""

    @property
    def weight(self) -> FloatArray:
        return self.regression.weight

    @cached_property
    def variance(self) -> float:
        """Mean squared distance from the mean; 1 where all rows are the same."""
        return float(self.weight @ np.einsum("nd,nd->n", self.Y, self.Y)) / float(self.weight.sum()) or 1.0

    def error(self, X: FloatArray) -> float:
        """R(X), each row left out of its own prediction or not, as the regression is set."""
        return self.regression.value(X).value

    def validated_error(self, X: FloatArray) -> float:
        """R(X) with each row left out of its own prediction, whichever of the two is minimised."""
        return self._leaving_one_out.value(X).value

    @cached_property
    def _leaving_one_out(self) -> KernelRegression:
        regression = self.regression  # itself where it does, with all that it has made of the rows
        return regression if regression.leave_one_out else replace(regression, leave_one_out=True)

    def restricted_to(self, rows: IntArray) -> RegressionProblem:
        """The problem of some rows alone, which predict each other."""
        Y, weight = self.Y[rows], self.weight[rows]
        Y = Y - np.average(Y, axis=0, weights=weight)  # a row without neighbours is predicted by the origin
        return RegressionProblem(Y, replace(self.regression, target=make_target(Y), weight=weight))

    def noise_among(self, n_components: int) -> float:
        """Noise among neighbours in data space."""
        return neighborhood_noise(self.Y, self.weight, n_components) if self.noise is None else self.noise

    def mean_error(self, evaluation: Evaluation) -> float:
        """(1/W) Σ_i w_i ‖y_i − ŷ_i‖² of an evaluation, without the term on masses."""
        return float(self.weight @ evaluation.error) / float(self.weight.sum())


_MOST_RETURNS = 20
"""Times that isolated latent points are moved back to others; points isolated later stay where they are."""

_DENSE_SHARE = 0.15
_DENSE_ROWS = 512
"""Share of nonzero entries from which on a matrix is multiplied as a dense one, and the most rows of one: with
1000 a gradient took half as long again as with the sparse form."""


class Parametrization(Protocol):
    """A linear map from parameters P (n, Q) to latent points X (n, Q)."""

    def latent(self, P: FloatArray) -> FloatArray:
        """X (n, Q)."""

    def pull(self, gradient: FloatArray) -> FloatArray:
        """∂R/∂P from ∂R/∂X."""


class FreePoints:
    """X = P: every row has a latent point of its own (UKR)."""

    def latent(self, P: FloatArray) -> FloatArray:
        return P

    def pull(self, gradient: FloatArray) -> FloatArray:
        return gradient


@dataclass(frozen=True, eq=False)
class AveragedPoints:
    """X = A P with rows of A (n, n) that add up to 1: each latent point is a mean of parameters (KMM)."""

    shares: csr_array

    def latent(self, P: FloatArray) -> FloatArray:
        return _matrix_product(self._matrices[0], P)

    def pull(self, gradient: FloatArray) -> FloatArray:
        return _matrix_product(self._matrices[1], gradient)

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        """A and its transpose in the form that multiplies faster."""
        n = self.shares.shape[0]
        if n <= _DENSE_ROWS and self.shares.nnz > _DENSE_SHARE * n**2:
            A = self.shares.toarray()
            return A, A.T
        return self.shares, self.shares.T.tocsr()


def _matrix_product(matrix: Any, P: FloatArray) -> FloatArray:
    """A P; of a sparse A column by column, which takes a third of the time for the few there are."""
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix @ P)
    return np.stack([matrix @ column for column in np.ascontiguousarray(P.T)], axis=1)


class LatentState(NamedTuple):
    """State of a descent, with the number of isolated latent points that its last step moved back."""

    state: DescentState[Any]
    fetched: int = 0
    rounds: int = 0
    """Steps so far after which isolated latent points were moved back."""


Measure = Callable[[FloatArray], Mapping[str, float]]
"""Further entries of the history, from parameters P."""


@dataclass(frozen=True)
class LatentDescent:
    """Descent on latent points, with those moved back that have lost all neighbours of a compact kernel."""

    problem: RegressionProblem
    descent: Descent
    term: MassTerm | None = None
    parameters: Parametrization = FreePoints()  # noqa: RUF009 - it holds nothing
    measured: Measure | None = None

    def begin(self, P: FloatArray) -> LatentState:
        return self._move_isolated_points_back(self.descent.begin(P, self._evaluate), 0)

    def step(self, place: LatentState) -> LatentState:
        return self._move_isolated_points_back(self.descent.step(place.state, self._evaluate), place.rounds)

    def measure(self, place: LatentState) -> dict[str, float]:
        """``objective`` is minus the share of the variance that is not predicted, so that it has no units."""
        error = self.problem.mean_error(place.state.evaluation)
        typical = typical_mean(place.state.evaluation.error, self.problem.weight)
        more = {} if self.measured is None else self.measured(place.state.x)
        found = {"objective": -error / self.problem.variance, "error": error, "typical": typical}
        return {**found, "fetched": place.fetched, **more}

    def _evaluate(self, P: FloatArray) -> Any:
        evaluation = self.problem.regression.gradient(self.parameters.latent(P), self.term)
        return evaluation._replace(gradient=self.parameters.pull(np.asarray(evaluation.gradient)))

    def _move_isolated_points_back(self, state: DescentState[Any], rounds: int) -> LatentState:
        """The state with latent points that lost all neighbours moved back to others, as often as that is allowed."""
        lost, reach = state.evaluation.empty, self.problem.regression.profile.reach
        if len(lost) == 1 or reach == inf or not lost.any():
            return LatentState(state, 0, rounds)
        if rounds >= _MOST_RETURNS:  # an outlier may be predicted better by the mean than by any neighbour
            return LatentState(state, 0, rounds)
        X = self.parameters.latent(state.x)
        # Where latent points are means of parameters this is part of the way, and further steps do the rest.
        P = state.x + return_isolated_points(X, lost, reach) - X
        return LatentState(self.descent.begin(P, self._evaluate), int(lost.sum()), rounds + 1)


def return_isolated_points(X: FloatArray, lost: BoolArray, reach: float) -> FloatArray:
    """Latent points with each isolated (``lost``) one at half the kernel's reach from the nearest that is not.

    Without neighbours a point is predicted by the mean and has a zero gradient. It stays on its own side of
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


def noise_rule(problem: RegressionProblem, X: FloatArray) -> Discrepancy:
    """Rule that ends where the error is down to the noise across the surface, estimated from the initial X.

    Where X is in disorder that estimate is too large. The noise among neighbours in data space, which needs no latent
    points, then takes its place.
    """
    across = noise_level(X, problem.Y, problem.weight, problem.regression.profile)
    among = problem.noise_among(X.shape[1])
    return Discrepancy(NOISE_SLACK * (among if across > MOST_NOISE_RATIO * among else across))


def plateau_rule(problem: RegressionProblem, X: FloatArray, descent: Descent) -> StoppingRule:
    """Rule that takes as many steps from X as help rows held out of a trial to lie near the surface.

    Of at most 800 rows a quarter is held out. Their error is the mean squared distance to the nearest of the surface's
    points at the latent points of the others.
    """
    kept, held = split_for_trial(problem.Y, problem.weight)
    if len(held) == 0:
        return StoppingRule()
    part, offset = problem.restricted_to(kept), np.average(problem.Y[kept], axis=0, weights=problem.weight[kept])
    new, weight = problem.Y[held] - offset, problem.weight[held]

    def measured(P: FloatArray) -> dict[str, float]:
        points = KernelMap(P, part.Y, part.weight, part.regression.profile).point(P)
        return {"validation": float(np.average(squared_distances(new, points).min(axis=1), weights=weight))}

    trial = train_latent_points(part, X[kept], descent=descent, measured=measured, **TRIAL)
    return plateau_of(trial)


_TRIAL_ROWS = 800
_LEAST_FALL = 0.01
"""Rows of a trial, and the share by which their error must fall within ten steps for further ones to be worth it."""

TRIAL: dict[str, Any] = {"rule": Validation(least_fall=_LEAST_FALL), "max_iter": 100, "tol": 1e-6}
"""Settings of a trial with rows held out."""


def split_for_trial(Y: FloatArray, weight: FloatArray) -> tuple[IntArray, IntArray]:
    """Indices of rows that a trial sees, and of those it is judged by: every fourth; none of fewer than 20 rows."""
    some = evenly_by_radius(Y, weight, _TRIAL_ROWS)
    held = some[3::4] if len(some) >= 20 else some[:0]
    return np.setdiff1d(some, held), held


def plateau_of(trial: Outcome[Any]) -> Plateau:
    """Rule that ends where a trial's error of rows held out was first within a hundredth of its lowest."""
    errors = np.array(trial.history["validation"])
    return Plateau(max(1, int(np.argmax(errors <= (1.0 + _LEAST_FALL) * errors.min()))))


STOPS: dict[str, Callable[[RegressionProblem, FloatArray, Descent], StoppingRule]] = {
    "noise": lambda problem, X, descent: noise_rule(problem, X),
    "plateau": plateau_rule,
    "minimum": lambda problem, X, descent: StoppingRule(),
}
"""Stopping rules by name, from the latent points to begin with."""


def choose_stop(name: str, structured: bool) -> str:
    """The rule that ``stop`` means: by default that of the noise, unless what lies across is structure."""
    return name if name != "auto" else "plateau" if structured else "noise"


def train_latent_points(
    problem: RegressionProblem,
    P: FloatArray,
    *,
    descent: Descent,
    rule: StoppingRule,
    max_iter: int,
    tol: float,
    listeners: Listeners = NO_LISTENERS,
    term: MassTerm | None = None,
    parameters: Parametrization | None = None,
    measured: Measure | None = None,
) -> Outcome[LatentState]:
    """Minimise the error from parameters P, the latent points themselves by default; the rule says when to end."""
    walk = LatentDescent(problem, descent, term, parameters or FreePoints(), measured)
    return run_fixed_point(
        partial(walk.begin, P), walk.step, walk.measure, max_iter=max_iter, tol=tol, listeners=listeners, rule=rule
    )
