"""Training of unsupervised kernel regression: section 2.3 of Meinicke, Klanke, Memisevic and Ritter (2005).

Latent points are moved until rows are predicted well by their neighbours among them. That the error goes on falling
long after the surface has begun to follow the noise is the method's weakness, and the level of the noise at which
training ends by default is what we add to the paper's scheme; see the benchmark ``ukr_stopping`` for the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers
from prinfold.kernel_manifolds.latent_descent import RegressionProblem, train_latent_points
from prinfold.loops import Descent, StoppingRule, StopReason

HOMOTOPY_THRESHOLDS = (0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005)
"""Falling density thresholds of the homotopy, as in section 4.3 of the paper."""

_SHRUNKEN_VARIANCE = 0.01
"""Total variance of the latent points that the homotopy starts from."""

_BARRIER_STRENGTH = 1e-2
"""Weight of the barrier at twice the least mass, relative to the error: it has to hold, and to be felt near by only."""

# ----------------------------------------------------------------------------------------- density thresholds


@dataclass(frozen=True)
class Barrier:
    """μ m₀ / (m − m₀) on the neighbours' mass m of a row, infinite from m₀ down: keeps latent densities above η.

    The constraint (7) is p(x_i) ≥ η K(0) with p(x_i)/K(0) = (w_i + m_i)/W, hence m₀ = η W − w_i; a row that is
    density enough by itself has no barrier.
    """

    total: float
    """η W."""
    strength: float

    def __call__(self, mass: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        least = self.total - weight
        above = mass - least
        free, inside = least <= 0, above > 0
        # Beyond the barrier the infinite value rejects the step, and the derivative is not used.
        above = np.where(inside, above, 1.0)
        value = self.strength * least / above
        slope = np.where(free | ~inside, 0.0, -value / above)
        return np.where(free, 0.0, np.where(inside, value, np.inf)), slope


def make_barrier(problem: RegressionProblem, threshold: float, X: FloatArray) -> Barrier:
    """The barrier that holds a density threshold."""
    return Barrier(threshold * float(problem.weight.sum()), _BARRIER_STRENGTH * problem.error(X))


def contract_to_density(problem: RegressionProblem, X: FloatArray, threshold: float) -> FloatArray:
    """Latent points (n, Q), drawn together as far as needed for all to have more density than the threshold."""
    total = float(problem.weight.sum())
    center = np.average(X, axis=0, weights=problem.weight)
    for _ in range(200):
        if ((problem.regression.value(X).mass + problem.weight) > 1.01 * threshold * total).all():
            return X
        X = center + 0.9 * (X - center)
    return np.broadcast_to(center, X.shape).copy()


@storable
@dataclass(frozen=True, eq=False)
class Homotopy:
    """Path of a homotopy: error, steps and least density of a latent point at each density threshold, all (T,)."""

    _kinds: ClassVar[Kinds] = {
        "thresholds": numbers("S"),
        "errors": numbers("S"),
        "steps": numbers("S"),
        "densities": numbers("S"),
    }

    thresholds: FloatArray
    errors: FloatArray
    steps: FloatArray
    densities: FloatArray

    def __str__(self) -> str:
        lines = ["  threshold     error  steps  least density"]
        rows = zip(self.thresholds, self.errors, self.steps, self.densities, strict=True)
        lines += [f"  {eta:9.4g}  {error:8.4g}  {steps:5.0f}  {density:13.4g}" for eta, error, steps, density in rows]
        return "\n".join(lines)


def homotopy(
    problem: RegressionProblem,
    X: FloatArray,
    descent: Descent,
    rule: StoppingRule,
    max_iter: int = 100,
    least: float = 0.0,
) -> tuple[FloatArray, Homotopy]:
    """Step 4: train from a contracted start under falling density thresholds.

    It ends early where the rule finds the error down to the noise: lower thresholds would only follow that. None is
    below ``least``, the threshold that training will hold; that one is the last, where there is one.
    """
    centered = X - np.average(X, axis=0, weights=problem.weight)
    variance = float(np.average(np.square(centered).sum(axis=1), weights=problem.weight)) or 1.0
    X = centered * np.sqrt(_SHRUNKEN_VARIANCE / variance)
    total, found = float(problem.weight.sum()), []
    for threshold in (*(each for each in HOMOTOPY_THRESHOLDS if each > least), *([least] if least > 0 else [])):
        wall = make_barrier(problem, threshold, X)
        outcome = train_latent_points(problem, X, descent=descent, rule=rule, max_iter=max_iter, tol=1e-6, term=wall)
        X = outcome.state.state.x
        evaluation = outcome.state.state.evaluation
        density = float((evaluation.mass + problem.weight).min()) / total
        found.append((threshold, problem.mean_error(evaluation), float(outcome.n_iter), density))
        if outcome.reason is StopReason.NOISE:
            break
    return X, Homotopy(*np.array(found).T)


# --------------------------------------------------------------------------------------------------- landmarks


def nearest_centers(centers: FloatArray, Z: FloatArray) -> IntArray:
    """(n,) the latent point that each of Z is nearest to."""
    return np.asarray(cKDTree(centers).query(Z)[1])


def average_by_name(name: IntArray, weight: FloatArray, *columns: FloatArray) -> tuple[FloatArray, ...]:
    """Weighted means of rows with the same name, then the weight of each name; names without rows are left out.

    A surface of few latent points that stand for many rows each has hardly more noise than one with a latent point
    for every row.
    """
    present, index = np.unique(name, return_inverse=True)
    total: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
    sums = csr_array((weight, (index, np.arange(len(index)))), shape=(len(present), len(index)))
    means = tuple(np.asarray(sums @ column) / total[:, None] for column in columns)
    return *means, total
