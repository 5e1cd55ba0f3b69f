"""The surface of kernel methods: Nadaraya-Watson regression of data on latent points (Meinicke et al. 2005, (2))."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.numerics.kernel_mixtures import Mixture
from prinfold.numerics.radial_kernels import Profile


@dataclass(frozen=True, eq=False)
class KernelMap:
    """y(z) = Σ_j w_j k(‖z − c_j‖²) y_j / Σ_j w_j k(‖z − c_j‖²), with weights of the rows.

    ``centers`` (m, Q) are latent points in units of the bandwidth, ``values`` (m, D) what belongs to them, ``weight``
    (m,) positive. Where no kernel reaches, y is the value of the nearest centre and its derivative zero.
    """

    centers: FloatArray
    values: FloatArray
    weight: FloatArray
    profile: Profile
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)
    """Results that take long to derive from the map and are asked for again."""

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) the surface at latent coordinates."""
        return self.mixture.mean(Z, self.values)

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, Q) its derivative."""
        return self.mixture.mean_jacobian(Z, self.values)

    def bend(self, Z: FloatArray, R: FloatArray) -> FloatArray:
        """(n, Q, Q) second derivatives of r·y along directions R (n, D)."""
        return self.mixture.mean_bend(Z, self.values, R)

    def density(self, Z: FloatArray) -> FloatArray:
        """(n,) Σ_j w_j k_j / Σ_j w_j with k(0) = 1: the latent density (3) over K(0), as (7) compares it with η."""
        return np.asarray(np.exp(self.mixture.log_density(Z)))

    def log_density(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log of the latent density (n,), its gradient (n, Q) and Hessian (n, Q, Q)."""
        return self.mixture.log_density_hessian(Z)

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture of kernels without its values."""
        return Mixture(self.centers, self.weight, self.profile)
