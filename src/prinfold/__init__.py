"""Principal curves, surfaces and manifolds: the smooth low-dimensional surface through the middle of data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "AdaptiveDensity": "algorithms.adaptive_density",
    "AlignedNoise": "algorithms.noise_models",
    "Blocks": "sources",
    "Choice": "select",
    "Comparison": "select",
    "Contour": "algorithms.thresholds",
    "DenoisedSignal": "algorithms.signals",
    "Density": "algorithms.densities",
    "Derivatives": "algorithms.densities",
    "DensityRidge": "estimators.density_ridge",
    "DiagonalNoise": "algorithms.noise_models",
    "ElasticNetBasis": "algorithms.elastic_net",
    "GTM": "estimators.gtm",
    "GTMClassifier": "estimators.landscapes",
    "GTMHierarchy": "estimators.gtm_mixture",
    "GTMMixture": "estimators.gtm_mixture",
    "GTMRegressor": "estimators.landscapes",
    "GTMSequence": "estimators.gtm_sequence",
    "GaussianBasis": "algorithms.basis",
    "GaussianProcess": "algorithms.process",
    "HarmonicBasis": "algorithms.basis",
    "Incremental": "algorithms.incremental",
    "KernelDensity": "algorithms.densities",
    "KernelDensityClassifier": "estimators.kernel_density",
    "KernelSmoother": "algorithms.smoothers",
    "KMM": "estimators.kmm",
    "LocalLinear": "algorithms.smoothers",
    "LowRankNoise": "algorithms.noise_models",
    "MixedGTM": "estimators.mixed_gtm",
    "MixtureDensity": "algorithms.mixture_density",
    "ModeClustering": "estimators.mode_clustering",
    "NearestSurfaceClassifier": "estimators.nearest",
    "Online": "algorithms.online",
    "OrientedPointsCurve": "estimators.oriented_points",
    "PPS": "estimators.pps",
    "PolygonalCurve": "estimators.polygonal_curve",
    "PrincipalCurve": "estimators.principal_curve",
    "PrincipalSurface": "estimators.principal_surface",
    "ProbabilisticCurve": "estimators.probabilistic_curve",
    "RatioDensity": "algorithms.mixture_density",
    "RegularizedManifold": "estimators.regularized_manifold",
    "SOM": "estimators.som",
    "Schedule": "algorithms.schedules",
    "SemiLinearGTM": "estimators.noise_models",
    "SmoothingSpline": "algorithms.smoothers",
    "StudentNoise": "algorithms.noise_models",
    "SurfaceMonitor": "estimators.monitoring",
    "UKR": "estimators.ukr",
    "VaryingNoise": "algorithms.noise_models",
    "choose": "select",
    "cite": "citations",
    "compare": "select",
    "denoise_signal": "algorithms.signals",
    "explore": "explorer",
    "load": "files",
    "report": "reporting",
    "save": "files",
    "select_kmm": "estimators.kmm",
}
_MODULES = ("anndata", "datasets", "exceptions", "latent", "metrics", "plot")

if TYPE_CHECKING:
    from prinfold import anndata, datasets, exceptions, latent, metrics, plot
    from prinfold.algorithms.adaptive_density import AdaptiveDensity
    from prinfold.algorithms.basis import GaussianBasis, HarmonicBasis
    from prinfold.algorithms.densities import Density, Derivatives, KernelDensity
    from prinfold.algorithms.elastic_net import ElasticNetBasis
    from prinfold.algorithms.incremental import Incremental
    from prinfold.algorithms.mixture_density import MixtureDensity, RatioDensity
    from prinfold.algorithms.noise_models import AlignedNoise, DiagonalNoise, LowRankNoise, StudentNoise, VaryingNoise
    from prinfold.algorithms.online import Online
    from prinfold.algorithms.process import GaussianProcess
    from prinfold.algorithms.schedules import Schedule
    from prinfold.algorithms.signals import DenoisedSignal, denoise_signal
    from prinfold.algorithms.smoothers import KernelSmoother, LocalLinear, SmoothingSpline
    from prinfold.algorithms.thresholds import Contour
    from prinfold.citations import cite
    from prinfold.estimators.density_ridge import DensityRidge
    from prinfold.estimators.gtm import GTM
    from prinfold.estimators.gtm_mixture import GTMHierarchy, GTMMixture
    from prinfold.estimators.gtm_sequence import GTMSequence
    from prinfold.estimators.kernel_density import KernelDensityClassifier
    from prinfold.estimators.kmm import KMM, select_kmm
    from prinfold.estimators.landscapes import GTMClassifier, GTMRegressor
    from prinfold.estimators.mixed_gtm import MixedGTM
    from prinfold.estimators.mode_clustering import ModeClustering
    from prinfold.estimators.monitoring import SurfaceMonitor
    from prinfold.estimators.nearest import NearestSurfaceClassifier
    from prinfold.estimators.noise_models import SemiLinearGTM
    from prinfold.estimators.oriented_points import OrientedPointsCurve
    from prinfold.estimators.polygonal_curve import PolygonalCurve
    from prinfold.estimators.pps import PPS
    from prinfold.estimators.principal_curve import PrincipalCurve
    from prinfold.estimators.principal_surface import PrincipalSurface
    from prinfold.estimators.probabilistic_curve import ProbabilisticCurve
    from prinfold.estimators.regularized_manifold import RegularizedManifold
    from prinfold.estimators.som import SOM
    from prinfold.estimators.ukr import UKR
    from prinfold.explorer import explore
    from prinfold.files import load, save
    from prinfold.reporting import report
    from prinfold.select import Choice, Comparison, choose, compare
    from prinfold.sources import Blocks

__all__ = [
    "GTM",
    "KMM",
    "PPS",
    "SOM",
    "UKR",
    "AdaptiveDensity",
    "AlignedNoise",
    "Blocks",
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
    if name == "load":
        import_module("prinfold.estimators")  # fills the registry of what a file may hold
    if name in _PUBLIC:
        value = getattr(import_module(f"prinfold.{_PUBLIC[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"prinfold.{name}")
    else:
        raise AttributeError(f"module 'prinfold' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
