"""Densities on a sphere: kernels of the angle between directions.

The kernel of von Mises and Fisher, exp(κ (cos θ − 1)), is a Gaussian of the chord, since ‖x − y‖² = 2R² (1 − cos θ):
its bandwidth is h = R / √κ. So sums over kernels are those of flat space in three columns, and what differs is the
volume and which derivatives are taken: along the sphere only. The density is that of Hall, Watson and Cabrera (1987),
and the Hessian along the sphere that of Absil, Mahony and Trumpf (2013).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, pi
from typing import Any, ClassVar, cast

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.bandwidths import effective_number, ridge_width_factor
from prinfold.density.densities import STORED_DENSITY, Density, Derivatives, KernelDensity, resampled
from prinfold.density.leave_one_out import LeaveOneOutLikelihood
from prinfold.exceptions import Advice, InvalidDataError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, positive


def sphere_derivatives(at: Derivatives, X: FloatArray, radius: float) -> Derivatives:
    """Derivatives along a sphere of ``radius`` R about 0 at places X (n, D) on it, from those in the space around it.

    With n = x/R and P = I − n nᵀ, the gradient along the sphere is P∇f and the Hessian P(∇²f)P − (nᵀ∇f / R) P.
    Those of a function that changes along the sphere only stay as they are.
    """
    normal = X / radius
    outward = np.einsum("ni,ni->n", normal, at.gradient)
    along = np.eye(X.shape[1]) - normal[:, :, None] * normal[:, None, :]
    slope = at.gradient - outward[:, None] * normal
    bend = along @ at.hessian @ along - (outward / radius)[:, None, None] * along
    return Derivatives(at.log_density, slope, bend)


@storable
@dataclass(frozen=True, eq=False)
class Restricted:
    """Any ``density`` in space, evaluated on a sphere of ``radius`` about 0 only; it is not normalised there."""

    _kinds: ClassVar[Kinds] = {"density": STORED_DENSITY, "radius": positive}

    density: Density
    radius: float

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(cast(Any, self.density).n_columns)  # as every density of a file has them

    def log_density(self, X: FloatArray) -> FloatArray:
        return self.density.log_density(X)

    def derivatives(self, X: FloatArray) -> Derivatives:
        return sphere_derivatives(self.density.derivatives(X), X, self.radius)

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        return self.density.shift(X, at)

    def length(self, X: FloatArray) -> FloatArray:
        return self.density.length(X)


@storable
@dataclass(frozen=True, eq=False)
class SphereDensity:
    """The restriction of a ``density`` of Gaussian kernels with ``bandwidth`` h to a sphere of ``radius`` R about 0."""

    _kinds: ClassVar[Kinds] = {"density": STORED_DENSITY, "bandwidth": positive, "radius": positive}

    density: Density
    bandwidth: float
    radius: float

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(cast(Any, self.density).n_columns)  # as every density of a file has them

    def log_density(self, X: FloatArray) -> FloatArray:
        """(n,) log p; it integrates to 1 over the sphere."""
        return np.asarray(self.density.log_density(X) + self._log_volume())

    def derivatives(self, X: FloatArray) -> Derivatives:
        at = sphere_derivatives(self.density.derivatives(X), X, self.radius)
        return at._replace(log_density=at.log_density + self._log_volume())

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """h² times the gradient: to first order the step to the mean direction of the rows that the kernel weighs."""
        return np.asarray(self.bandwidth**2 * at.gradient)

    def length(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), float(self.bandwidth))

    def kernels(self) -> KernelDensity:
        return resampled(self.density).kernels()

    def on_rows(self, rows: FloatArray, weight: FloatArray) -> SphereDensity:
        away = self.radius / np.linalg.norm(rows, axis=1, keepdims=True)  # noise takes rows off the sphere
        return replace(self, density=resampled(self.density).on_rows(away * rows, weight))

    def _log_volume(self) -> float:
        """log of the flat kernel's volume (2πh²)^(3/2) over that on the sphere, 2πh² (1 − exp(−2κ))."""
        kappa = (self.radius / self.bandwidth) ** 2
        return 0.5 * log(2 * pi * self.bandwidth**2) - float(np.log1p(-np.exp(-2.0 * kappa)))


def likelihood(places: FloatArray, weight: FloatArray) -> float:
    """Bandwidth of maximum leave-one-out likelihood of points (n, 3) on a sphere, with a share of outliers allowed.

    It is found as in flat space, with densities on a surface of two dimensions.
    """
    if len(places) < 2:
        words = f"a bandwidth is found from at least two different rows, got n_samples = {len(places)}"
        raise InvalidDataError(Message(words, Advice("bandwidth", words="give a number as {}")))
    centered = places - np.average(places, axis=0, weights=weight)
    unit = float(np.sqrt(np.average(np.einsum("nd,nd->n", centered, centered), weights=weight)))
    return unit * LeaveOneOutLikelihood.of(centered / unit, weight, dimension=2).bandwidth()


def wide_likelihood(places: FloatArray, weight: FloatArray) -> float:
    """Bandwidth of maximum leave-one-out likelihood times the factor that ridges need."""
    return ridge_width_factor(effective_number(weight), 2) * likelihood(places, weight)


SPHERE_BANDWIDTHS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "auto": wide_likelihood,
    "likelihood": likelihood,
    "wide_likelihood": wide_likelihood,
}
"""Rules for the bandwidth on a sphere, by name."""
