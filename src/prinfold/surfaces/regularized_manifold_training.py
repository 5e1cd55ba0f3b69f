"""The regularised principal manifold of Smola et al. (2001): the surface of least regularised quantisation error.

    R = Σ w min_z ‖x − f(z)‖² / Σ w + λ ‖f‖²

over f = b + Σ_m a_m c(·, z_m), kernels on a net of nodes z_m, with ‖f‖² = Σ_mm' (a_m · a_m') c(z_m, z_m'), the norm of
their space. Projection lowers the first term with f as it is, and regression R with rows where they are: neither can
raise R.
"""

from __future__ import annotations

from prinfold.basis_maps.basis_map import BasisMap
from prinfold.surfaces.projected_regression import (
    Alternation,
    RegressionSums,
    SurfaceRows,
    SurfaceState,
    variance_share,
)


def alternation(surface: BasisMap, regularization: float) -> Alternation:
    """Regression with a constant λ; rows stay within the latent space."""
    return Alternation(surface, lambda sums, last: regularization, RegressionSums.risk)


def risk(surface: BasisMap, state: SurfaceState) -> float:
    """R, the error plus λ‖f‖²."""
    return state.error + state.penalty * surface.roughness(state.weights)


def measure(surface: BasisMap, sample: SurfaceRows, state: SurfaceState) -> dict[str, float]:
    """Minus R as a share of the variance, mean squared error and ‖f‖²."""
    norm = surface.roughness(state.weights)
    return {"objective": -variance_share(sample, risk(surface, state)), "error": state.error, "norm": norm}
