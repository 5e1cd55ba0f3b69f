"""Principal curves, surfaces and manifolds: the smooth low-dimensional surface through the middle of data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prinfold.methods import METHODS

__version__ = "0.1.0"

_OTHERS = {
    "AdaptiveDensity": "density.adaptive",
    "AlignedNoise": "gtm.noise.recipes",
    "Blocks": "rows.blocks",
    "Checkpoint": "base.checkpoint",
    "Choice": "select",
    "Comparison": "select",
    "Contour": "kernel_manifolds.domain_thresholds",
    "DenoisedSignal": "density.ridges.signals",
    "Density": "density.densities",
    "Derivatives": "density.densities",
    "DiagonalNoise": "gtm.noise.recipes",
    "ElasticNetBasis": "basis_maps.elastic_net",
    "GaussianBasis": "basis_maps.bases",
    "GaussianProcess": "basis_maps.gaussian_process",
    "HarmonicBasis": "basis_maps.bases",
    "Incremental": "gtm.trainers.incremental",
    "KernelDensity": "density.densities",
    "KernelSmoother": "curves.smoothers",
    "LocalLinear": "curves.smoothers",
    "LowRankNoise": "gtm.noise.recipes",
    "MixtureDensity": "density.mixtures",
    "Online": "gtm.trainers.online",
    "RatioDensity": "density.mixtures",
    "Schedule": "som.schedules",
    "SmoothingSpline": "curves.smoothers",
    "StudentNoise": "gtm.noise.recipes",
    "VaryingNoise": "gtm.noise.recipes",
    "choose": "select",
    "cite": "citations",
    "compare": "select",
    "denoise_signal": "density.ridges.signals",
    "explore": "explorer",
    "load": "files",
    "report": "reporting",
    "save": "files",
    "select_kmm": "kernel_manifolds.kmm",
}
"""Public names that are no methods, by the module that defines them; methods are in the register."""

_MODULES = ("anndata", "datasets", "exceptions", "expression", "latent", "metrics", "plot")

if TYPE_CHECKING:
    from prinfold import anndata, datasets, exceptions, expression, latent, metrics, plot
    from prinfold.applications.landscape_estimators import GTMClassifier, GTMRegressor
    from prinfold.applications.monitor import SurfaceMonitor
    from prinfold.applications.nearest_surface import NearestSurfaceClassifier
    from prinfold.base.checkpoint import Checkpoint
    from prinfold.basis_maps.bases import GaussianBasis, HarmonicBasis
    from prinfold.basis_maps.elastic_net import ElasticNetBasis
    from prinfold.basis_maps.gaussian_process import GaussianProcess
    from prinfold.citations import cite
    from prinfold.curves.oriented_points_curve import OrientedPointsCurve
    from prinfold.curves.polygonal_curve import PolygonalCurve
    from prinfold.curves.principal_curve import PrincipalCurve
    from prinfold.curves.probabilistic_curve import ProbabilisticCurve
    from prinfold.curves.smoothers import KernelSmoother, LocalLinear, SmoothingSpline
    from prinfold.density.adaptive import AdaptiveDensity
    from prinfold.density.classifier import KernelDensityClassifier
    from prinfold.density.densities import Density, Derivatives, KernelDensity
    from prinfold.density.mixtures import MixtureDensity, RatioDensity
    from prinfold.density.ridges.estimator import DensityRidge
    from prinfold.density.ridges.mode_clustering import ModeClustering
    from prinfold.density.ridges.signals import DenoisedSignal, denoise_signal
    from prinfold.explorer import explore
    from prinfold.files import load, save
    from prinfold.gtm.estimator import GTM
    from prinfold.gtm.mixed.estimator import MixedGTM
    from prinfold.gtm.mixture.estimator import GTMHierarchy, GTMMixture
    from prinfold.gtm.noise.recipes import AlignedNoise, DiagonalNoise, LowRankNoise, StudentNoise, VaryingNoise
    from prinfold.gtm.semilinear import SemiLinearGTM
    from prinfold.gtm.sequence.estimator import GTMSequence
    from prinfold.gtm.trainers.incremental import Incremental
    from prinfold.gtm.trainers.online import Online
    from prinfold.kernel_manifolds.domain_thresholds import Contour
    from prinfold.kernel_manifolds.kmm import KMM, select_kmm
    from prinfold.kernel_manifolds.ukr import UKR
    from prinfold.pps.estimator import PPS
    from prinfold.reporting import report
    from prinfold.rows.blocks import Blocks
    from prinfold.select import Choice, Comparison, choose, compare
    from prinfold.som.estimator import SOM
    from prinfold.som.schedules import Schedule
    from prinfold.surfaces.principal_surface import PrincipalSurface
    from prinfold.surfaces.regularized_manifold import RegularizedManifold
    from prinfold.trees.estimator import PrincipalTree

__all__ = [
    "GTM",
    "KMM",
    "PPS",
    "SOM",
    "UKR",
    "AdaptiveDensity",
    "AlignedNoise",
    "Blocks",
    "Checkpoint",
    "Choice",
    "Comparison",
    "Contour",
    "DenoisedSignal",
    "Density",
    "DensityRidge",
    "Derivatives",
    "DiagonalNoise",
    "ElasticNetBasis",
    "GTMClassifier",
    "GTMHierarchy",
    "GTMMixture",
    "GTMRegressor",
    "GTMSequence",
    "GaussianBasis",
    "GaussianProcess",
    "HarmonicBasis",
    "Incremental",
    "KernelDensity",
    "KernelDensityClassifier",
    "KernelSmoother",
    "LocalLinear",
    "LowRankNoise",
    "MixedGTM",
    "MixtureDensity",
    "ModeClustering",
    "NearestSurfaceClassifier",
    "Online",
    "OrientedPointsCurve",
    "PolygonalCurve",
    "PrincipalCurve",
    "PrincipalSurface",
    "PrincipalTree",
    "ProbabilisticCurve",
    "RatioDensity",
    "RegularizedManifold",
    "Schedule",
    "SemiLinearGTM",
    "SmoothingSpline",
    "StudentNoise",
    "SurfaceMonitor",
    "VaryingNoise",
    "__version__",
    "anndata",
    "choose",
    "cite",
    "compare",
    "datasets",
    "denoise_signal",
    "exceptions",
    "explore",
    "expression",
    "latent",
    "load",
    "metrics",
    "plot",
    "report",
    "save",
    "select_kmm",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: ``import prinfold`` itself loads nothing heavy."""
    if name in METHODS:
        value = METHODS[name].cls
    elif name in _OTHERS:
        value = getattr(import_module(f"prinfold.{_OTHERS[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"prinfold.{name}")
    else:
        raise AttributeError(f"module 'prinfold' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
