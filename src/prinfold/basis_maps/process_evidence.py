"""Evidence of a Gaussian process for the sums of an E-step, by length scale and variance.

With the responsibilities held, every column of the data is a regression on the nodes with weights G and noise 1/β, and
the weights of the process can be integrated out. With Φ = [P, H], P the features of the process, whose prior has
variance v, and H those of its mean, which are free, H is projected out; then, with λ = 1/(βv),
P̃ᵀGP̃ = V diag(Λ) Vᵀ and b = Vᵀ P̃ᵀ RT,

    ln p(T | v, ℓ) = β/2 Σᵢ ‖bᵢ‖² / (Λᵢ + λ) − D/2 Σᵢ ln(1 + Λᵢ/λ) + terms without v and ℓ.

It is the GTM thesis's (5.17) with the approximate Hessian (A.11), and a lower bound of the log evidence whatever the
responsibilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_FREE_RANK_SHARE = 1e-10
"""Share of the largest eigenvalue below which a direction of the free features is rounding."""


@dataclass(frozen=True)
class Spectrum:
    """Terms of the evidence at a length scale: ``size`` (r,) Λ, ``signal`` (r,) ‖b‖², D columns, and β."""

    size: FloatArray
    signal: FloatArray
    n_columns: int
    precision: float

    def log_evidence(self, variance: float) -> float:
        """ln p(T | v, ℓ) up to terms that depend on neither, for v = ``variance``."""
        strength = 1.0 / (self.precision * variance)
        fit = 0.5 * self.precision * np.sum(self.signal / (self.size + strength))
        return float(fit - 0.5 * self.n_columns * np.sum(np.log1p(self.size / strength)))

    def freedom(self, variance: float) -> float:
        """Effective number of weights of a column that the data decide: γ = Σ Λ/(Λ + λ), thesis (5.19)."""
        return float(np.sum(self.size / (self.size + 1.0 / (self.precision * variance))))


def spectrum(surface: BasisMap, mass: FloatArray, moment: FloatArray, precision: float) -> Spectrum:
    """The spectrum of a map under the sums of an E-step; no node's mass is ever divided by."""
    process = surface.penalty_mask > 0
    root = np.sqrt(np.maximum(mass, 0.0))[:, None]
    Phi = surface.node_features
    P, H = Phi[:, process], Phi[:, ~process]
    # An orthonormal basis of √G H: its Gram matrix is of a few rows, and nodes may all be on a line.
    value, vector = eigh((root * H).T @ (root * H))
    kept = value > _FREE_RANK_SHARE * max(float(value[-1]), 0.0)
    free = H @ (vector[:, kept] / np.sqrt(value[kept]))
    shared = (mass[:, None] * P).T @ free
    gram = (root * P).T @ (root * P) - shared @ shared.T
    target = P.T @ moment - shared @ (free.T @ moment)
    size, vectors = eigh(gram)
    signal = np.square(vectors.T @ target).sum(axis=1)
    return Spectrum(np.maximum(size, 0.0), signal, moment.shape[1], precision)


def golden_section_maximum(
    function: Callable[[float], float], low: float, high: float, tol: float
) -> tuple[float, float]:
    """Place and value of the maximum of a function between two ends, by golden-section search."""
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    value = [function(x) for x in inner]
    while high - low > tol:
        if value[0] >= value[1]:
            high, inner, value = inner[1], [0.0, inner[0]], [0.0, value[0]]
            inner[0] = high - _GOLDEN * (high - low)
            value[0] = function(inner[0])
        else:
            low, inner, value = inner[0], [inner[1], 0.0], [value[1], 0.0]
            inner[1] = low + _GOLDEN * (high - low)
            value[1] = function(inner[1])
    best = int(value[1] > value[0])
    return inner[best], value[best]
