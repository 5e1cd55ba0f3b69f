"""Densities with their derivatives: what a ridge is a ridge of.

A density is anything with four verbs, so that users can bring their own: its logarithm, that with gradient and Hessian
in one pass, the mean shift that its gradient suggests, and the length over which it changes. All take rows (n, D), and
the answer for a row does not depend on what comes with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from prinfold._typing import FloatArray
from prinfold.kernels.mixtures import Mixture
from prinfold.kernels.profiles import Gaussian


class Derivatives(NamedTuple):
    """log p (n,), its gradient (n, D) and its Hessian (n, D, D)."""

    log_density: FloatArray
    gradient: FloatArray
    hessian: FloatArray


@runtime_checkable
class Density(Protocol):
    """What is asked of a density; X is (n, D)."""

    def log_density(self, X: FloatArray) -> FloatArray:
        """(n,) log p, finite everywhere."""

    def derivatives(self, X: FloatArray) -> Derivatives:
        """log p with gradient and Hessian."""

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """(n, D) the step that mean shift takes uphill: a positive definite matrix times the gradient."""

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) length over which the density changes: the unit of steps and tolerances."""


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """Gaussian kernels of one bandwidth h on ``rows`` (m, D) with ``weight`` (m,).

    p(x) = Σ_j w_j exp(−‖x − x_j‖² / 2h²) / ((2π h²)^(D/2) Σ_j w_j)
    """

    rows: FloatArray
    weight: FloatArray
    bandwidth: float

    def log_density(self, X: FloatArray) -> FloatArray:
        return self._mixture.log_density(X / self.bandwidth) - self._log_volume

    def derivatives(self, X: FloatArray) -> Derivatives:
        h = self.bandwidth
        value, gradient, hessian = self._mixture.log_density_hessian(X / h)
        return Derivatives(value - self._log_volume, gradient / h, hessian / h**2)

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """m = Σ b_j x_j − x = h² ∇ log p, with b the shares of the kernels at x."""
        return np.asarray(self.bandwidth**2 * at.gradient)

    def length(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), float(self.bandwidth))

    @cached_property
    def _mixture(self) -> Mixture:
        return Mixture(self.rows / self.bandwidth, self.weight, Gaussian())

    @cached_property
    def _log_volume(self) -> float:
        D = self.rows.shape[1]
        return float(log(Gaussian().volume(D)) + D * log(self.bandwidth))
