"""Every estimator in the settings that matter, with the theorems that hold for it.

A new method adds its lines to ``CASES``; the tests in this folder then apply themselves. They stand here and not in the
register of methods: which theorems hold depends on the settings too, and the package itself has no use for either.
``test_methods.py`` sees to it that no method of the register is left out.

Tags: ``euclidean`` (rigid motions and scaling carry through), ``mirror`` (the nodes are their own mirror
image, so that any rotation does; without it only those that keep the signs of the principal axes),
``open`` (the surface has edges, so that flat data can be covered once), ``weights`` (offers sample
weights), ``monotone`` (the stated objective never gets worse), ``density`` (has a likelihood of rows),
``lengths`` (latent coordinates are lengths, in units of the data).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from prinfold import (
    GTM,
    KMM,
    PPS,
    SOM,
    UKR,
    Contour,
    DensityRidge,
    ElasticNetBasis,
    GaussianProcess,
    GTMMixture,
    GTMSequence,
    HarmonicBasis,
    LocalLinear,
    LowRankNoise,
    MixedGTM,
    OrientedPointsCurve,
    PolygonalCurve,
    PrincipalCurve,
    PrincipalSurface,
    PrincipalTree,
    ProbabilisticCurve,
    RegularizedManifold,
    SmoothingSpline,
    StudentNoise,
)
from prinfold.latent import Points


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[..., Any]
    tags: frozenset[str]
    n_columns: int
    """Columns of a latent coordinate."""
    dimension: int
    """Dimension of the surface."""
    rescale: Callable[[float], dict[str, Any]] = lambda scale: {}
    """Parameters that have units, as the data are multiplied by ``scale``."""
    slow: bool = False
    """Whether it is left to ``make test-slow``: another case goes through the same code."""


def _points() -> Any:
    return Points(np.random.default_rng(5).uniform(-1, 1, (40, 2)))


_GTM = frozenset({"euclidean", "mirror", "weights", "monotone", "density"})
_OWN_UNITS = _GTM - {"euclidean", "mirror"}
"""Noise that tells columns apart does not turn with the data."""
_QUICK = {"max_iter": 12, "tol": 0.0}
_TORUS = {"latent": "torus", "init": "pca"}
"""Clouds and flats are no tori. A choice among starts hangs on rounding there, and after the start that comes furthest
so does more: a torus lies double on a flat, and what rounding lifts off it grows by a factor of ten with each step of a
PPS. Both are true of the data and say nothing of the steps, which the theorems are about."""


def _gtm(**settings: Any) -> Callable[..., GTM]:
    return lambda **more: GTM(**{**_QUICK, **settings, **more})


def _sequence(**settings: Any) -> Callable[..., GTMSequence]:
    return lambda **more: GTMSequence(**{**_QUICK, **settings, **more})


def _pps(**settings: Any) -> Callable[..., PPS]:
    return lambda **more: PPS(**{**_QUICK, **settings, **more})


def _mixed(**settings: Any) -> Callable[..., MixedGTM]:
    return lambda **more: MixedGTM(**{**_QUICK, **settings, **more})


def _mixture(n_maps: int, gtm: Any = None, **settings: Any) -> Callable[..., GTMMixture]:
    quick = {**_QUICK, "n_init": 2, "random_state": 0}
    return lambda **more: GTMMixture(n_maps, gtm, **{**quick, **settings, **more})


_KERNEL = frozenset({"euclidean", "mirror", "weights"})


def _ukr(**settings: Any) -> Callable[..., UKR]:
    return lambda **more: UKR(**{**_QUICK, **settings, **more})


def _kmm(**settings: Any) -> Callable[..., KMM]:
    return lambda **more: KMM(**{**_QUICK, **settings, **more})


_RIDGE = frozenset({"euclidean", "mirror", "weights", "lengths"})


def _ridge(**settings: Any) -> Callable[..., DensityRidge]:
    return lambda **more: DensityRidge(**{**_QUICK, **settings, **more})


_SOM = frozenset({"euclidean", "mirror", "weights"})


def _som(**settings: Any) -> Callable[..., SOM]:
    return lambda **more: SOM(**{**_QUICK, **settings, **more})


_CURVE = frozenset({"euclidean", "mirror", "weights", "lengths"})


def _polygonal(**settings: Any) -> Callable[..., PolygonalCurve]:
    return lambda **more: PolygonalCurve(**{**_QUICK, **settings, **more})


def _curve(smoother: Any = "spline", **settings: Any) -> Callable[..., PrincipalCurve]:
    return lambda **more: PrincipalCurve(smoother, **{**_QUICK, **settings, **more})


_TREE = _RIDGE | {"monotone"}


def _tree(**settings: Any) -> Callable[..., PrincipalTree]:
    return lambda **more: PrincipalTree(**{**_QUICK, **settings, **more})


_PROBABLE = _RIDGE | {"density"}


def _probable(**settings: Any) -> Callable[..., ProbabilisticCurve]:
    return lambda **more: ProbabilisticCurve(**{**_QUICK, **settings, **more})


def _stiffer(scale: float) -> dict[str, Any]:
    return {"penalty": 0.5 * scale}


_SURFACE = frozenset({"euclidean", "mirror", "weights"})


def _surface(**settings: Any) -> Callable[..., PrincipalSurface]:
    return lambda **more: PrincipalSurface(**{**_QUICK, **settings, **more})


def _regularized(**settings: Any) -> Callable[..., RegularizedManifold]:
    return lambda **more: RegularizedManifold(**{**_QUICK, **settings, **more})


CASES = [
    Case("GTM", _gtm(nodes=8, basis=4), _GTM | {"open"}, 2, 2),
    Case("GTM-defaults", _gtm(), _GTM | {"open"}, 2, 2),
    Case(
        "GTM-prior",
        _gtm(nodes=8, basis=4, prior_precision=0.3),
        _GTM,
        2,
        2,
        lambda scale: {"prior_precision": 0.3 / scale**2},
    ),
    Case("GTM-evidence", _gtm(nodes=8, basis=4, prior_precision="evidence"), _GTM - {"monotone"}, 2, 2),
    Case("GTM-biased", _gtm(nodes=8, basis=4, regularization=0.5, penalize_bias=True), _GTM, 2, 2),
    Case("GTM-diagonal", _gtm(nodes=8, basis=4, noise="diagonal"), _OWN_UNITS | {"open"}, 2, 2),
    Case("GTM-student", _gtm(nodes=8, basis=4, noise="student"), _GTM | {"open"}, 2, 2),
    Case(
        "GTM-student-own",
        _gtm(nodes=8, basis=4, noise=StudentNoise(3.0, columns="own")),
        _OWN_UNITS | {"open"},
        2,
        2,
    ),
    Case("GTM-aligned", _gtm(nodes=8, basis=4, noise="aligned"), _GTM | {"open"}, 2, 2),
    Case("GTM-aligned-sphere", _gtm(nodes=60, basis=12, latent="sphere", noise="aligned"), _GTM - {"mirror"}, 3, 2),
    Case("GTM-low-rank", _gtm(nodes=8, basis=4, noise=LowRankNoise(1)), _GTM, 2, 2),
    Case("GTM-varying", _gtm(nodes=8, basis=4, noise="varying"), _GTM | {"open"}, 2, 2),
    Case("GTM-line", _gtm(n_components=1, nodes=16, basis=5, latent="line"), _GTM | {"open"}, 1, 1),
    Case("GTM-grid3", _gtm(n_components=3, nodes=4, basis=2), _GTM | {"open"}, 3, 3),
    Case("GTM-circle", _gtm(n_components=1, nodes=16, basis=6, latent="circle"), _GTM, 1, 1),
    Case("GTM-harmonic", _gtm(n_components=1, nodes=16, basis=HarmonicBasis(3), latent="circle"), _GTM, 1, 1),
    Case("GTM-cylinder", _gtm(nodes=(8, 5), basis=(6, 3), latent="cylinder"), _GTM, 2, 2),
    Case("GTM-torus", _gtm(nodes=6, basis=4, **_TORUS), _GTM, 2, 2),
    Case("GTM-sphere", _gtm(nodes=60, basis=12, latent="sphere"), _GTM - {"mirror"}, 3, 2),
    Case("GTM-points", _gtm(nodes=_points().nodes, basis=3), (_GTM - {"mirror"}) | {"open"}, 2, 2),
    Case(
        "GTM-process",
        _gtm(nodes=8, basis=GaussianProcess(0.6, 0.5)),
        _GTM | {"open"},
        2,
        2,
        lambda scale: {"basis": GaussianProcess(0.6, 0.5 * scale**2)},
    ),
    Case("GTM-net", _gtm(nodes=8, basis=ElasticNetBasis()), _GTM | {"open"}, 2, 2),
    # Where its numbers change, so does the objective.
    Case("GTM-process-evidence", _gtm(nodes=8, basis=GaussianProcess()), (_GTM - {"monotone"}) | {"open"}, 2, 2),
    Case(
        "GTM-process-circle",
        _gtm(nodes=16, latent="circle", basis=GaussianProcess(0.6, covariance="matern52"), regularization=0.1),
        _GTM,
        1,
        1,
    ),
    # Rows of these tests are sequences of one; tests/gtm/sequence/test_estimator.py has longer ones.
    Case("GTMSequence", _sequence(nodes=8, basis=4), _GTM | {"open"}, 2, 2),
    Case(
        "GTMSequence-circle",
        _sequence(n_components=1, nodes=16, basis=6, latent="circle", transitions="free", initial="learned"),
        _GTM,
        1,
        1,
    ),
    # The columns of these tests are numbers; tests/gtm/mixed/test_estimator.py holds levels and counts to the same.
    Case("MixedGTM", _mixed(nodes=8, basis=4), _OWN_UNITS | {"open"}, 2, 2),
    Case("MixedGTM-line", _mixed(n_components=1, nodes=16, basis=5), _OWN_UNITS, 1, 1),
    # A coordinate has the number of the map in front.
    Case("GTMMixture", _mixture(2, GTM(nodes=8, basis=4)), _GTM | {"open"}, 3, 2),
    Case("GTMMixture-defaults", _mixture(2), _GTM | {"open"}, 3, 2),
    Case("GTMMixture-one", _mixture(1, GTM(nodes=8, basis=4)), _GTM | {"open"}, 3, 2),
    Case("GTMMixture-shared", _mixture(3, GTM(nodes=6, basis=3), shared_noise=True), _GTM | {"open"}, 3, 2),
    Case("GTMMixture-line", _mixture(3, GTM(1, nodes=10, basis=4)), _GTM | {"open"}, 2, 1),
    Case(
        "GTMMixture-diagonal",
        _mixture(2, GTM(nodes=8, basis=4, noise="diagonal")),
        _OWN_UNITS | {"open"},
        3,
        2,
        slow=True,
    ),
    Case("GTMMixture-student", _mixture(2, GTM(nodes=8, basis=4, noise="student")), _GTM | {"open"}, 3, 2, slow=True),
    Case("GTMMixture-sphere", _mixture(2, GTM(nodes=60, basis=12, latent="sphere")), _GTM - {"mirror"}, 4, 2),
    Case("PPS-process", _pps(nodes=12, basis=GaussianProcess(0.6), regularization=0.1), _GTM | {"open"}, 2, 2),
    # Noise that is oriented on nodes far apart lets the surface tilt between them, so straight data need a finer grid.
    Case("PPS", _pps(nodes=12, basis=4), _GTM | {"open"}, 2, 2),
    Case("PPS-gem", _pps(nodes=12, basis=4, trainer="gem"), _GTM | {"open"}, 2, 2),
    Case("PPS-paper", _pps(nodes=12, basis=4, trainer="paper"), (_GTM - {"monotone"}) | {"open"}, 2, 2),
    Case("PPS-along", _pps(nodes=8, basis=4, clamping=1.4), _GTM, 2, 2),
    Case("PPS-early", _pps(nodes=8, basis=4, clamping=0.5, amplification=1.0), _GTM, 2, 2),
    Case("PPS-learn", _pps(nodes=8, basis=4, clamping="learn", trainer="gem"), _GTM, 2, 2),
    Case("PPS-node", _pps(nodes=8, basis=4, clamping="learn-per-node", trainer="gem"), _GTM, 2, 2),
    Case("PPS-node-clamping", _pps(nodes=8, basis=4, clamping="learn-per-node-clamping", trainer="gem"), _GTM, 2, 2),
    Case(
        "PPS-prior",
        _pps(nodes=8, basis=4, prior_precision=0.3),
        _GTM,
        2,
        2,
        lambda scale: {"prior_precision": 0.3 / scale**2},
    ),
    Case("PPS-line", _pps(n_components=1, nodes=16, basis=5, latent="line"), _GTM | {"open"}, 1, 1),
    Case("PPS-learn-gtm", _pps(nodes=8, basis=4, clamping="learn"), _GTM, 2, 2),
    Case("PPS-select", _pps(n_components=1, nodes=16, basis=5, clamping="select"), _GTM, 1, 1, slow=True),
    Case("PPS-circle", _pps(n_components=1, nodes=16, basis=6, latent="circle"), _GTM, 1, 1),
    Case("PPS-torus", _pps(nodes=6, basis=4, **_TORUS), _GTM, 2, 2),
    Case("PPS-sphere", _pps(nodes=60, basis=12, latent="sphere"), _GTM - {"mirror"}, 3, 2),
    Case("PPS-points", _pps(nodes=_points().nodes, basis=3), _GTM - {"mirror"}, 2, 2),
    Case("UKR", _ukr(), _KERNEL | {"monotone"}, 2, 2),
    Case("UKR-line", _ukr(n_components=1, init="isomap"), _KERNEL | {"monotone"}, 1, 1),
    Case("UKR-quartic", _ukr(kernel="quartic", init="pca"), _KERNEL, 2, 2),
    Case("UKR-minimum", _ukr(stop="minimum", solver="rprop", init="pca"), _KERNEL, 2, 2, slow=True),
    Case("UKR-held", _ukr(threshold=0.08, init="pca"), _KERNEL, 2, 2),
    Case("UKR-contour", _ukr(threshold=Contour(0.9), n_components=1, init="isomap"), _KERNEL, 1, 1),
    Case("UKR-landmarks", _ukr(init="pca", landmarks=40), _KERNEL - {"weights"}, 2, 2),
    # Projection on kernel surfaces of three dimensions takes seconds a test.
    Case("UKR-3d", _ukr(n_components=3, init="pca"), _KERNEL, 3, 3, slow=True),
    Case("KMM", _kmm(), _KERNEL | {"monotone"}, 2, 2),
    Case("KMM-wide", _kmm(n_neighbors=20, init="lle"), _KERNEL | {"monotone"}, 2, 2),
    Case("KMM-line", _kmm(n_components=1, n_neighbors=8), _KERNEL | {"monotone"}, 1, 1),
    Case(
        "KMM-volume",
        _kmm(n_components=3, n_neighbors=6, stop="minimum"),
        _KERNEL | {"monotone"},
        3,
        3,
        slow=True,
    ),
    Case("KMM-paper", _kmm(stop="validation", solver="gradient", leave_one_out=False), _KERNEL | {"monotone"}, 2, 2),
    Case("SOM", _som(), _SOM, 2, 2),
    Case("SOM-hexagonal", _som(nodes=(6, 5), grid="hexagonal", neighborhood="epanechnikov"), _SOM - {"mirror"}, 2, 2),
    Case("SOM-circle", _som(nodes=16, latent="circle"), _SOM, 1, 1),
    # What is drawn by chance from sorted rows is another when they are turned.
    Case("SOM-bubble", _som(neighborhood="bubble", init="random", random_state=0), _SOM - {"euclidean"}, 2, 2),
    Case("SOM-online", _som(n_components=1, trainer="online", random_state=0), _SOM - {"euclidean"}, 1, 1),
    Case("DensityRidge", _ridge(), _RIDGE, 1, 1),
    Case("DensityRidge-wide", _ridge(bandwidth=0.8), _RIDGE | {"open"}, 1, 1, lambda s: {"bandwidth": 0.8 * s}),
    Case("DensityRidge-shift", _ridge(step="mean_shift", bandwidth="silverman", max_iter=12), _RIDGE, 1, 1),
    Case("DensityRidge-surface", _ridge(n_components=2, bandwidth=0.8), _RIDGE, 2, 2, lambda s: {"bandwidth": 0.8 * s}),
    Case("PrincipalTree", _tree(), _TREE | {"open"}, 1, 1),
    Case("PrincipalTree-path", _tree(topology="path", nodes=20), _TREE, 1, 1),
    Case("PrincipalTree-ring", _tree(topology="ring", nodes=20), _TREE, 1, 1),
    Case("PrincipalTree-graph", _tree(topology="graph", bandwidth=0.3), _TREE, 1, 1, lambda s: {"bandwidth": 0.3 * s}),
    Case("PrincipalTree-forest", _tree(topology="forest", trim=1.0), _TREE, 1, 1, lambda s: {"trim": s}),
    Case("PolygonalCurve", _polygonal(), _CURVE | {"open"}, 1, 1),
    Case("PolygonalCurve-closed", _polygonal(closed=True, init="pca"), _CURVE, 1, 1),
    Case("PolygonalCurve-length", _polygonal(length=5.0), _CURVE | {"monotone"}, 1, 1, lambda s: {"length": 5.0 * s}),
    Case("OrientedPointsCurve", lambda **more: OrientedPointsCurve(**{**_QUICK, **more}), _CURVE, 1, 1),
    Case("ProbabilisticCurve", _probable(), _PROBABLE | {"monotone", "open"}, 1, 1),
    Case(
        "ProbabilisticCurve-given",
        _probable(penalty=0.5, nodes=15, init="pca"),
        _PROBABLE | {"monotone"},
        1,
        1,
        _stiffer,
    ),
    Case("ProbabilisticCurve-oriented", _probable(clamping=0.5), _PROBABLE | {"open"}, 1, 1),
    Case("ProbabilisticCurve-closed", _probable(closed=True, nodes=20), _PROBABLE | {"monotone"}, 1, 1),
    Case("PrincipalCurve", _curve(), _RIDGE | {"open"}, 1, 1),
    Case("PrincipalCurve-closed", _curve(SmoothingSpline(df=8), closed=True, bias_correction=True), _RIDGE, 1, 1),
    Case("PrincipalCurve-lines", _curve(LocalLinear(0.3), init="tree"), _RIDGE | {"open"}, 1, 1),
    Case("PrincipalCurve-kernel", _curve("kernel", init="pca"), _RIDGE, 1, 1),
    # Rows are projected in every step, which on surfaces takes a second or so for each test.
    Case("PrincipalSurface", _surface(nodes=6), _SURFACE | {"open"}, 2, 2, slow=True),
    Case("PrincipalSurface-line", _surface(n_components=1, nodes=12), _SURFACE, 1, 1),
    Case("PrincipalSurface-solid", _surface(n_components=3, nodes=4, max_iter=4), _SURFACE, 3, 3, slow=True),
    Case("RegularizedManifold", _regularized(nodes=8), _SURFACE | {"open", "monotone"}, 2, 2, slow=True),
    Case("RegularizedManifold-line", _regularized(n_components=1, nodes=12), _SURFACE | {"monotone"}, 1, 1),
    Case("KMM-compact", _kmm(kernel="quartic", bandwidth_rule="kth"), _KERNEL, 2, 2, slow=True),
]


QUICK = {
    "GTM",
    "GTM-student",
    "GTM-low-rank",
    "GTM-varying",
    "GTM-circle",
    "GTM-sphere",
    "GTM-process-circle",
    "GTMSequence",
    "MixedGTM",
    "GTMMixture",
    "PPS",
    "PPS-learn",
    "UKR-line",
    "UKR-quartic",
    "KMM",
    "SOM",
    "SOM-online",
    "DensityRidge",
    "PolygonalCurve",
    "OrientedPointsCurve",
    "ProbabilisticCurve",
    "PrincipalCurve",
    "PrincipalSurface-line",
    "PrincipalTree",
    "RegularizedManifold-line",
}
"""Cases of the quick run: every class, and settings with code of their own. ``make test-full`` has all."""


def cases(*tags: str, full: str = "", one_each: bool = False, few: Collection[str] = ()) -> pytest.MarkDecorator:
    """Run a test on every case that carries all of the tags.

    The quick run leaves out those that carry ``full``, with ``one_each`` all but one of each class, and with ``few``
    all but those named.
    """
    chosen = [case for case in CASES if case.tags.issuperset(tags)]
    firsts = {case.name.partition("-")[0]: case.name for case in reversed(chosen) if case.name in QUICK}
    quick = set(few) or (set(firsts.values()) if one_each else QUICK)
    quick = quick - {case.name for case in chosen if full in case.tags}
    params = [pytest.param(case, marks=_marks(case, quick), id=case.name) for case in chosen]
    return pytest.mark.parametrize("case", params)


def _marks(case: Case, quick: set[str]) -> Any:
    if case.slow:
        return pytest.mark.slow
    return () if case.name in quick else pytest.mark.full


def first_quick(*values: Any) -> list[Any]:
    """Values of a parameter, of which the quick run takes the first."""
    return [values[0], *(pytest.param(each, marks=pytest.mark.full) for each in values[1:])]


@cache
def fitted(case: Case) -> tuple[Any, Any]:
    """The case fitted to the cloud, and the cloud: once for all tests that ask the model and do not change it."""
    X = cloud()
    return case.make().fit(X), X


def cloud(n: int = 90, n_columns: int = 5, seed: int = 3) -> Any:
    """A curved sheet with unequal axes in five dimensions, in general position."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    flat = np.stack([2.0 * u, v, 0.6 * u**2 + 0.3 * v, 0.3 * np.sin(2 * v) + 0.1 * u, 0.2 * u * v], axis=1)
    return (flat + 0.05 * rng.standard_normal(flat.shape))[:, :n_columns]


def random_rotation(n_columns: int, seed: int = 7) -> Any:
    """A random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n_columns, n_columns)))[0]


def small_rotation(n_columns: int, angle: float, seed: int = 7) -> Any:
    """A rotation by at most ``angle`` radians in any plane."""
    generator = np.random.default_rng(seed).standard_normal((n_columns, n_columns))
    generator -= generator.T
    return expm(angle * generator / np.linalg.norm(generator, 2))
