"""Densities on a sphere: kernels of the angle between directions.

The kernel of von Mises and Fisher, exp(κ (cos θ − 1)), is a Gaussian of the chord, since ‖x − y‖² = 2R² (1 − cos θ):
its bandwidth is h = R / √κ. So sums over kernels are those of flat space in three columns, and what differs is the
volume and which derivatives are taken: along the sphere only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np

from prinfold._typing import FloatArray
from prinfold.algorithms.densities import Density, Derivatives
from prinfold.files import storable


@storable
@dataclass(frozen=True, eq=False)
class SphereDensity:
    """The restriction of a ``density`` of Gaussian kernels with ``bandwidth`` h to a sphere of ``radius`` R about 0.

    With n = x/R and P = I − n nᵀ, the gradient along the sphere is P∇f and the Hessian P(∇²f)P − (nᵀ∇f / R) P.
    """

    density: Density
    bandwidth: float
    radius: float

    def log_density(self, X: FloatArray) -> FloatArray:
        """(n,) log p; it integrates to 1 over the sphere."""
        return np.asarray(self.density.log_density(X) + self._log_volume())

    def derivatives(self, X: FloatArray) -> Derivatives:
        value, gradient, hessian = self.density.derivatives(X)
        normal = X / self.radius
        outward = np.einsum("ni,ni->n", normal, gradient)
        along = np.eye(X.shape[1]) - normal[:, :, None] * normal[:, None, :]
        slope = gradient - outward[:, None] * normal
        bend = along @ hessian @ along - (outward / self.radius)[:, None, None] * along
        return Derivatives(value + self._log_volume(), slope, bend)

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """h² times the gradient: to first order the step to the mean direction of the rows that the kernel weighs."""
        return np.asarray(self.bandwidth**2 * at.gradient)

    def length(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), float(self.bandwidth))

    def _log_volume(self) -> float:
        """log of the flat kernel's volume (2πh²)^(3/2) over that on the sphere, 2πh² (1 − exp(−2κ))."""
        kappa = (self.radius / self.bandwidth) ** 2
        return 0.5 * log(2 * pi * self.bandwidth**2) - float(np.log1p(-np.exp(-2.0 * kappa)))
