"""The density and the flow to its ridge on other rows, for bands and p-values by resampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.densities import Density, KernelDensity
from prinfold.density.mixtures import RatioDensity
from prinfold.density.ridges.mean_shift import Flow
from prinfold.density.sphere import SphereDensity
from prinfold.exceptions import InvalidParameterError


def kernels_of(density: Density) -> KernelDensity:
    """The kernels that a density stands on, with their rows and weights."""
    if isinstance(density, KernelDensity):
        return density
    if isinstance(density, SphereDensity):
        return kernels_of(density.density)
    if isinstance(density, RatioDensity):
        return kernels_of(density.top)
    raise InvalidParameterError(
        f"resampling needs kernels of one bandwidth on the rows, got {type(density).__name__}. "
        "Give a bandwidth, or the name of a rule for one"
    )


def density_on_rows(density: Density, rows: FloatArray, weight: FloatArray) -> Density:
    """The density that other rows (n, D) with weights (n,) have, with the same bandwidth and mask."""
    if isinstance(density, RatioDensity):
        return RatioDensity(density_on_rows(density.top, rows, weight), density.bottom)
    if isinstance(density, SphereDensity):
        # Noise takes rows off the sphere.
        away = density.radius / np.linalg.norm(rows, axis=1, keepdims=True)
        return replace(density, density=density_on_rows(density.density, away * rows, weight))
    return replace(kernels_of(density), rows=rows, weight=weight)


def flow_on_rows(flow: Flow, rows: FloatArray, weight: FloatArray) -> Flow:
    """The flow to the ridge of the density on other rows."""
    return replace(flow, density=density_on_rows(flow.density, rows, weight))
