"""The register of methods: every public estimator once, with all that other parts of the package ask of it.

Public names, citations, model files, the command line's list of methods, comparisons and explorer pages read it, and
tests hold the documentation against it. It imports nothing of the package, so that everything may import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Method:
    """A method: where its class is, what it rests on, and where it is told about."""

    name: str
    """Name of the class."""
    module: str
    """Module that defines it."""
    noun: str
    """What its example and its tests are named after."""
    cites: tuple[str, ...]
    """Keys of its papers in ``citations/references.bib``."""
    page: str = ""
    """Guide page and benchmark, where methods that belong together share one; the noun otherwise."""
    is_manifold: bool = True
    """Whether it fits one surface and owes the whole contract; others are made of such."""
    surface: str = ""
    """What carries the surface, a key of ``SURFACES`` in the explorer's decoders."""
    shape: str = "surface"
    """What people call that which it fits; a surface of one dimension is a curve."""
    takes_text: bool = False
    """Whether columns may be text; elsewhere the command line leaves those out."""
    takes_blocks: bool = False
    """Whether it can be fitted to a table that is read block by block."""
    short: str = ""
    """A shorter name on the command line."""
    compared: bool = True
    """Whether ``compare(methods="all")`` tries it; others take part where they are named."""
    compared_settings: tuple[Mapping[str, Any], ...] = (MappingProxyType({}),)
    """Settings that ``compare`` tries, a candidate for each."""

    def __post_init__(self) -> None:
        """A page of its own unless told otherwise."""
        object.__setattr__(self, "page", self.page or self.noun)

    @property
    def cls(self) -> Any:
        """The class, imported on first use."""
        return getattr(import_module(self.module), self.name)


METHODS: dict[str, Method] = {}
"""Every method by the name of its class."""


def register(method: Method) -> Method:
    """Add a method; the package knows it from then on as it knows its own."""
    METHODS[method.name] = method
    return method


def method_of(kind: type) -> Method | None:
    """The method of a class, or of the nearest of its parents that is one."""
    return next((METHODS[each.__name__] for each in kind.__mro__ if each.__name__ in METHODS), None)


def shape_word(kind: type, dimension: int) -> str:
    """The word for what an estimator of this class has fitted: a tree, a ridge, a curve or a surface."""
    method = method_of(kind)
    word = "surface" if method is None else method.shape
    return "curve" if word == "surface" and dimension == 1 else word


def manifolds() -> Iterator[Method]:
    """Methods that fit one surface."""
    return (each for each in METHODS.values() if each.is_manifold)


def import_all() -> None:
    """Import every method, so that model files find the classes that they name."""
    for each in METHODS.values():
        import_module(each.module)


_THESIS = ("bishop1998gtm", "svensen1998")
_EVIDENCE = {"prior_precision": "evidence"}

for _method in (
    Method(
        "GTM",
        "prinfold.gtm.estimator",
        noun="gtm",
        cites=_THESIS,
        surface="basis",
        takes_blocks=True,
        compared_settings=(
            {},
            _EVIDENCE,
            {"width": 0.5, "regularization": 1e-3},
            {"width": 2.0, "regularization": 1.0},
        ),
    ),
    Method(
        "MixedGTM",
        "prinfold.gtm.mixed.estimator",
        noun="mixed_gtm",
        cites=(*_THESIS, "bishop1998developments"),
        surface="basis",
        takes_text=True,
        takes_blocks=True,
        short="mixed",
        compared=False,  # for tables of columns of several kinds
    ),
    Method(
        "SemiLinearGTM",
        "prinfold.gtm.semilinear",
        noun="noise_models",
        cites=(*_THESIS, "bishop1998developments"),
        is_manifold=False,
        takes_blocks=True,
    ),
    Method(
        "GTMMixture",
        "prinfold.gtm.mixture.estimator",
        noun="gtm_mixture",
        cites=(*_THESIS, "tino2002"),
        surface="latent",
        takes_blocks=True,
        compared=False,  # a manifold in several pieces
    ),
    Method(
        "GTMHierarchy",
        "prinfold.gtm.mixture.estimator",
        noun="gtm_mixture",
        cites=(*_THESIS, "bishop1998hierarchical", "tino2002"),
        is_manifold=False,
    ),
    Method(
        "GTMSequence",
        "prinfold.gtm.sequence.estimator",
        noun="gtm_sequence",
        cites=(*_THESIS, "bishop1997"),
        surface="basis",
        compared=False,  # for sequences
    ),
    Method(
        "GTMClassifier",
        "prinfold.applications.landscape_estimators",
        noun="landscapes",
        cites=(*_THESIS, "gaspar2013"),
        is_manifold=False,
        takes_blocks=True,
    ),
    Method(
        "GTMRegressor",
        "prinfold.applications.landscape_estimators",
        noun="landscapes",
        cites=(*_THESIS, "gaspar2015"),
        is_manifold=False,
        takes_blocks=True,
    ),
    Method(
        "PPS",
        "prinfold.pps.estimator",
        noun="pps",
        cites=("chang2001", "bishop1998gtm"),
        surface="basis",
        takes_blocks=True,
    ),
    Method(
        "UKR",
        "prinfold.kernel_manifolds.ukr",
        noun="ukr",
        cites=("meinicke2005",),
        surface="latent",
    ),
    Method("KMM", "prinfold.kernel_manifolds.kmm", noun="kmm", cites=("gerber2009",), surface="latent"),
    Method(
        "SOM",
        "prinfold.som.estimator",
        noun="som",
        takes_blocks=True,
        cites=("kohonen1982", "mulier1995", "svensen1998"),
        surface="nodes",
    ),
    Method(
        "DensityRidge",
        "prinfold.density.ridges.estimator",
        noun="density_ridge",
        cites=("ozertem2011",),
        surface="ridge",
        shape="ridge",
        short="ridge",
    ),
    Method(
        "PrincipalTree",
        "prinfold.trees.estimator",
        noun="principal_tree",
        page="trees",
        cites=("mao2015", "mao2017"),
        surface="graph",
        shape="tree",
        short="tree",
    ),
    Method(
        "PrincipalCurve",
        "prinfold.curves.principal_curve",
        noun="principal_curve",
        page="curves",
        cites=("hastie1989",),
        surface="curve",
        shape="curve",
        short="curve",
    ),
    Method(
        "ProbabilisticCurve",
        "prinfold.curves.probabilistic_curve",
        noun="probabilistic_curve",
        page="curves",
        cites=("tibshirani1992",),
        surface="curve",
        shape="curve",
    ),
    Method(
        "PolygonalCurve",
        "prinfold.curves.polygonal_curve",
        noun="polygonal_curve",
        cites=("kegl2000",),
        surface="curve",
        shape="curve",
        short="polygonal",
    ),
    Method(
        "OrientedPointsCurve",
        "prinfold.curves.oriented_points_curve",
        noun="oriented_points",
        page="curves",
        cites=("delicado2001", "delicado2003"),
        compared=False,  # takes as long as all others together, and came last
        surface="curve",
        shape="curve",
    ),
    Method(
        "PrincipalSurface",
        "prinfold.surfaces.principal_surface",
        noun="principal_surface",
        cites=("hastie1984", "hastie1989"),
        surface="basis",
    ),
    Method(
        "RegularizedManifold",
        "prinfold.surfaces.regularized_manifold",
        noun="regularized_manifold",
        page="principal_surface",
        cites=("smola2001",),
        surface="basis",
    ),
    Method(
        "ModeClustering",
        "prinfold.density.ridges.mode_clustering",
        noun="mode_clustering",
        cites=("fukunaga1975", "comaniciu2002"),
        is_manifold=False,
    ),
    Method(
        "NearestSurfaceClassifier",
        "prinfold.applications.nearest_surface",
        noun="nearest",
        cites=("chang2001",),
        is_manifold=False,
    ),
    Method(
        "KernelDensityClassifier",
        "prinfold.density.classifier",
        noun="kernel_density",
        cites=("parzen1962",),
        is_manifold=False,
    ),
    Method(
        "SurfaceMonitor",
        "prinfold.applications.monitor",
        noun="monitoring",
        cites=("jackson1979", "vovk2005"),
        is_manifold=False,
        takes_blocks=True,
    ),
):
    register(_method)
