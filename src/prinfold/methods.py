"""scikit-learn faces of the methods: settings, docs, tags; almost no maths."""

from prinfold.applications.landscape_estimators import GTMClassifier, GTMRegressor
from prinfold.applications.monitor import SurfaceMonitor
from prinfold.applications.nearest_surface import NearestSurfaceClassifier
from prinfold.curves.oriented_points_curve import OrientedPointsCurve
from prinfold.curves.polygonal_curve import PolygonalCurve
from prinfold.curves.principal_curve import PrincipalCurve
from prinfold.curves.probabilistic_curve import ProbabilisticCurve
from prinfold.density.classifier import KernelDensityClassifier
from prinfold.density.ridges.estimator import DensityRidge
from prinfold.density.ridges.mode_clustering import ModeClustering
from prinfold.gtm.estimator import GTM
from prinfold.gtm.mixed.estimator import MixedGTM
from prinfold.gtm.mixture.estimator import GTMHierarchy, GTMMixture
from prinfold.gtm.semilinear import SemiLinearGTM
from prinfold.gtm.sequence.estimator import GTMSequence
from prinfold.kernel_manifolds.kmm import KMM
from prinfold.kernel_manifolds.ukr import UKR
from prinfold.pps.estimator import PPS
from prinfold.som.estimator import SOM
from prinfold.surfaces.principal_surface import PrincipalSurface
from prinfold.surfaces.regularized_manifold import RegularizedManifold

__all__ = [
    "GTM",
    "KMM",
    "PPS",
    "SOM",
    "UKR",
    "DensityRidge",
    "GTMClassifier",
    "GTMHierarchy",
    "GTMMixture",
    "GTMRegressor",
    "GTMSequence",
    "KernelDensityClassifier",
    "MixedGTM",
    "ModeClustering",
    "NearestSurfaceClassifier",
    "OrientedPointsCurve",
    "PolygonalCurve",
    "PrincipalCurve",
    "PrincipalSurface",
    "ProbabilisticCurve",
    "RegularizedManifold",
    "SemiLinearGTM",
    "SurfaceMonitor",
]
