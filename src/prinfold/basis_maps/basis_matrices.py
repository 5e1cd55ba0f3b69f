"""Basis matrices and their derivatives.

All are functions of the *embedded* latent coordinate E (n, e): flat axes stand for themselves, an
angle θ for (cos θ, sin θ), a point of the sphere for its unit vector. A Gaussian of the distance in
that embedding is then smooth across every seam: on a circle it is the von Mises bump
exp((cos(θ − μ) − 1)/σ²).
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray
from prinfold.numerics.distances import squared_distances


def gaussian_features(E: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """φ_m(E) = exp(−‖E − μ_m‖² / 2σ²), the non-linear part of thesis (3.9)."""
    features = squared_distances(E, centers)
    features *= -0.5 / width**2
    return np.asarray(np.exp(features, out=features))


def gaussian_features_gradient(E: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """(n, M, e) ∂φ_m/∂E = −φ_m (E − μ_m)/σ², thesis (4.6)."""
    features = gaussian_features(E, centers, width)
    offset = E[:, None, :] - centers[None, :, :]
    offset *= (features / -(width**2))[:, :, None]
    return np.asarray(offset)


def harmonic_features(angle: FloatArray, n_harmonics: int) -> FloatArray:
    """(n, 2H) cos hθ and sin hθ for h = 1 … H, interleaved."""
    phase = angle[:, None] * np.arange(1, n_harmonics + 1)
    return np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(len(angle), -1)


def harmonic_features_gradient(angle: FloatArray, n_harmonics: int) -> FloatArray:
    """(n, 2H) derivative of :func:`harmonic_features` with respect to θ."""
    order = np.arange(1, n_harmonics + 1)
    phase = angle[:, None] * order
    return np.stack([-order * np.sin(phase), order * np.cos(phase)], axis=2).reshape(len(angle), -1)
