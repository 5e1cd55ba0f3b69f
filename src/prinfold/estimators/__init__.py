"""scikit-learn faces of the methods: settings, docs, tags; almost no maths."""

from prinfold.estimators.density_ridge import DensityRidge
from prinfold.estimators.gtm import GTM
from prinfold.estimators.gtm_mixture import GTMHierarchy, GTMMixture
from prinfold.estimators.gtm_sequence import GTMSequence
from prinfold.estimators.kernel_density import KernelDensityClassifier
from prinfold.estimators.kmm import KMM
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
