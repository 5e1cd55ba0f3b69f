"""Descent on latent points, whatever they are made of: what the training of kernel methods shares.

Parameters P give latent points X, rows are predicted from one another by kernel regression on these, and P moves until
the predictions are good, or good enough. That the error goes on falling long after the surface has begun to follow the
noise is the weakness of all such methods; the level of the noise at which training ends by default is our answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.kernel_manifolds.noise_level import neighborhood_noise, noise_level, typical_mean
from prinfold.kernel_manifolds.objective import Evaluation, KernelRegression, MassTerm, make_target
from prinfold.loops import Descent, Discrepancy, Highest, Outcome, Rule, run_fixed_point
from prinfold.loops.descent import State

NOISE_SLACK = 1.4
"""Errors over the level of the noise at which to end. A kernel regression whose latent points are right leaves a little
more than noise, because it rounds off bends; ``benchmarks/ukr_stopping.py`` judges by true surfaces."""

DISORDER = 2.0
"""How many times the noise seen from latent points may exceed that among neighbours in data space before the latent
points are held to be in disorder."""


@dataclass(frozen=True)
class Problem:
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
        """The error with rows left out or not, as the regression has it."""
        return self.regression.value(X).value

    def validated_error(self, X: FloatArray) -> float:
        """The error with each row left out, whichever of the two is minimised."""
        return self._leaving_one_out.value(X).value

    @cached_property
    def _leaving_one_out(self) -> KernelRegression:
        regression = self.regression  # itself where it does, with all that it has made of the rows
        return regression if regression.leave_one_out else replace(regression, leave_one_out=True)

    def among(self, rows: IntArray) -> Problem:
        """The same for some rows, predicted by each other."""
        Y, weight = self.Y[rows], self.weight[rows]
        Y = Y - np.average(Y, axis=0, weights=weight)  # what has no neighbours is predicted by the origin
        return Problem(Y, replace(self.regression, target=make_target(Y), weight=weight))

    def noise_among(self, n_components: int) -> float:
        """Noise among neighbours in data space."""
        return neighborhood_noise(self.Y, self.weight, n_components) if self.noise is None else self.noise

    def mean_error(self, evaluation: Evaluation) -> float:
        """The error of an evaluation without what else was added to its value."""
        return float(self.weight @ evaluation.error) / float(self.weight.sum())


_MOST_ROUNDS = 20
"""Times that lost latent points are fetched back; what is lost then stays where it is."""

_DENSE_SHARE = 0.15
_DENSE_ROWS = 512
"""Share of entries that are not nil from which on a matrix is multiplied whole, and the most rows of one: with
1000 a gradient took half as long again as with the sparse form."""


class Parameters(Protocol):
    """How parameters P (n, Q) make latent points, linearly."""

    def latent(self, P: FloatArray) -> FloatArray:
        """X (n, Q)."""

    def pull(self, gradient: FloatArray) -> FloatArray:
        """∂R/∂P from ∂R/∂X."""


class Free:
    """X = P: every row has a latent point of its own (UKR)."""

    def latent(self, P: FloatArray) -> FloatArray:
        return P

    def pull(self, gradient: FloatArray) -> FloatArray:
        return gradient


@dataclass(frozen=True, eq=False)
class Averaged:
    """X = A P with rows of A (n, n) that add up to 1: each latent point is a mean of parameters (KMM)."""

    shares: csr_array

    def latent(self, P: FloatArray) -> FloatArray:
        return _times(self._matrices[0], P)

    def pull(self, gradient: FloatArray) -> FloatArray:
        return _times(self._matrices[1], gradient)

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        """A and its transpose in the form that multiplies faster."""
        n = self.shares.shape[0]
        if n <= _DENSE_ROWS and self.shares.nnz > _DENSE_SHARE * n**2:
            A = self.shares.toarray()
            return A, A.T
        return self.shares, self.shares.T.tocsr()


def _times(matrix: Any, P: FloatArray) -> FloatArray:
    """A P; of a sparse A column by column, which takes a third of the time for the few there are."""
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix @ P)
    return np.stack([matrix @ column for column in np.ascontiguousarray(P.T)], axis=1)


class Place(NamedTuple):
    """Where a descent stands, and how many latent points it had to fetch back in its last step."""

    state: State[Any]
    fetched: int = 0
    rounds: int = 0
    """Steps after which latent points had to be fetched back so far."""


Measure = Callable[[FloatArray], Mapping[str, float]]
"""What else is measured of parameters P."""


@dataclass(frozen=True)
class Walk:
    """Moves latent points downhill, and fetches back those that have lost all neighbours of a compact kernel."""

    problem: Problem
    descent: Descent
    term: MassTerm | None = None
    parameters: Parameters = Free()  # noqa: RUF009 - it holds nothing
    measured: Measure | None = None

    def begin(self, P: FloatArray) -> Place:
        return self._fetched(self.descent.begin(P, self._evaluate), 0)

    def step(self, place: Place) -> Place:
        return self._fetched(self.descent.step(place.state, self._evaluate), place.rounds)

    def measure(self, place: Place) -> dict[str, float]:
        """``objective`` is minus the share of the variance that is not predicted, so that it has no units."""
        error = self.problem.mean_error(place.state.evaluation)
        typical = typical_mean(place.state.evaluation.error, self.problem.weight)
        more = {} if self.measured is None else self.measured(place.state.x)
        found = {"objective": -error / self.problem.variance, "error": error, "typical": typical}
        return {**found, "fetched": place.fetched, **more}

    def _evaluate(self, P: FloatArray) -> Any:
        evaluation = self.problem.regression.gradient(self.parameters.latent(P), self.term)
        return evaluation._replace(gradient=self.parameters.pull(np.asarray(evaluation.gradient)))

    def _fetched(self, state: State[Any], rounds: int) -> Place:
        lost, reach = state.evaluation.empty, self.problem.regression.profile.reach
        if len(lost) == 1 or reach == inf or not lost.any():
            return Place(state, 0, rounds)
        if rounds >= _MOST_ROUNDS:  # an outlier may be predicted better by the mean than by any neighbour
            return Place(state, 0, rounds)
        X = self.parameters.latent(state.x)
        # Where latent points are means of parameters this is part of the way, and further steps do the rest.
        P = state.x + fetch_back(X, lost, reach) - X
        return Place(self.descent.begin(P, self._evaluate), int(lost.sum()), rounds + 1)


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


def noise_rule(problem: Problem, X: FloatArray) -> Discrepancy:
    """End where the error is down to the noise across the surface, as seen from the latent points X to start from.

    Where these are in disorder that is too much; neighbours in data space, which see no latent points, are then
    believed in their place.
    """
    across = noise_level(X, problem.Y, problem.weight, problem.regression.profile)
    among = problem.noise_among(X.shape[1])
    return Discrepancy(NOISE_SLACK * (among if across > DISORDER * among else across))


def minimum_rule(problem: Problem, X: FloatArray) -> Rule:
    """Go on to a minimum of the error."""
    return Highest()


STOPS: dict[str, Callable[[Problem, FloatArray], Rule]] = {"noise": noise_rule, "minimum": minimum_rule}


def train(
    problem: Problem,
    P: FloatArray,
    *,
    descent: Descent,
    rule: Rule,
    max_iter: int,
    tol: float,
    listeners: Sequence[Any] = (),
    term: MassTerm | None = None,
    parameters: Parameters | None = None,
    measured: Measure | None = None,
) -> Outcome[Place]:
    """Minimise the error from parameters P, the latent points themselves by default, and keep what the rule says."""
    walk = Walk(problem, descent, term, parameters or Free(), measured)
    return run_fixed_point(
        partial(walk.begin, P), walk.step, walk.measure, max_iter=max_iter, tol=tol, listeners=listeners, rule=rule
    )
