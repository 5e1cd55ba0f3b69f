"""scikit-learn's own checks, for every estimator and latent space, with no expected failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from prinfold import (
    GTM,
    KMM,
    PPS,
    SOM,
    UKR,
    DensityRidge,
    GTMClassifier,
    GTMHierarchy,
    GTMMixture,
    GTMRegressor,
    GTMSequence,
    KernelDensityClassifier,
    MixedGTM,
    ModeClustering,
    NearestSurfaceClassifier,
    OrientedPointsCurve,
    PolygonalCurve,
    PrincipalCurve,
    PrincipalSurface,
    PrincipalTree,
    ProbabilisticCurve,
    RegularizedManifold,
    SemiLinearGTM,
    SurfaceMonitor,
)
from prinfold.methods import METHODS

# pandas and polars decide which checks run: without them the frames' checks would pass unseen.
pytest.importorskip("pandas")
pytest.importorskip("polars")

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


_SMALL = GTM(1, nodes=8, basis=3, init="pca", max_iter=5)
"""The checks fit each estimator a hundred times, and ask nothing of how well."""


QUICK = (
    MixedGTM(1, nodes=8, basis=3, init="pca", max_iter=5),
    PPS(1, nodes=12, basis=4, max_iter=20),
    KMM(1, init="pca", stop="minimum", max_iter=3),
    UKR(1, init="pca", max_iter=3),
    DensityRidge(max_iter=5),
    PrincipalTree(nodes=6, max_iter=3),
    OrientedPointsCurve(max_iter=2),
    ProbabilisticCurve(nodes=10, penalty=1.0, init="pca", max_iter=5),
    PrincipalSurface(1, nodes=5, max_iter=2),
    RegularizedManifold(1, nodes=5, max_iter=2),
    NearestSurfaceClassifier(_SMALL),
    GTMClassifier(_SMALL),
    GTMRegressor(_SMALL),
    GTMMixture(2, _SMALL, n_init=1, max_iter=5),
    GTMHierarchy(GTMMixture(2, GTM(1, nodes=12, basis=4), n_init=1)),
    SemiLinearGTM(GTM(1, nodes=12, basis=4, max_iter=20)),
    # The checks want alarms among the rows of the fit, of which one in a hundred would be too few.
    SurfaceMonitor(_SMALL, alarm_rate=0.1, n_simulated=200),
)
"""Estimators that are too slow as they are to be fitted so often in the quick tests."""


def every_method() -> list[Any]:
    """An estimator of every method in the register, as it is but for those in ``QUICK``."""
    quick = {type(each): each for each in QUICK}
    return [quick.get(method.cls) or method.cls() for method in METHODS.values()]


@parametrize_with_checks(every_method())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.full
@parametrize_with_checks(
    [
        KMM(),
        UKR(),
        MixedGTM(),
        GTMClassifier(),
        GTMRegressor(),
        DensityRidge(),
        PrincipalTree(),
        PrincipalTree(topology="ring"),
        OrientedPointsCurve(),
        ProbabilisticCurve(max_iter=20),
        NearestSurfaceClassifier(),
        GTMMixture(),
        SurfaceMonitor(alarm_rate=0.1, n_simulated=200),
        GTM(1, latent="circle"),
        GTM(latent="sphere"),
        GTM(latent="torus", prior_precision=0.1),
        GTM(init="random", random_state=0),
        GTMSequence(1, latent="circle", initial="learned"),
        KMM(1, stop="validation", kernel="quartic"),
        # A width that rounding cannot tip: with the narrower default a nearest point may lie on a stair between nodes.
        SOM(1, trainer="online", latent="circle", neighborhood="epanechnikov", width=1.5, random_state=0),
        KernelDensityClassifier(kernel="quartic", per_class=True, priors="uniform"),
    ]
)
def test_scikit_learn_checks_of_more_settings(estimator, check):
    check(estimator)


# Other settings of the same classes, on demand.
@pytest.mark.slow
@parametrize_with_checks(
    [
        PPS(1, clamping="select", nodes=12, basis=4, max_iter=20),
        UKR(1, kernel="quartic", stop="minimum", max_iter=20),
        UKR(1, feature_kernel="l1", preimage=True, max_iter=20),
        DensityRidge(bandwidth="silverman", normal="hessian"),
        NearestSurfaceClassifier(GTM(latent="sphere"), by="likelihood"),
        GTMClassifier(PPS(nodes=8, basis=3, max_iter=20), priors="balanced", pseudo_count=0.0),
        GTMMixture(3, GTM(1, nodes=12, basis=4), shared_noise=True, n_init=1),
        SurfaceMonitor(PPS(nodes=8, basis=3, max_iter=20), alarm_rate=0.1, calibration="split", n_simulated=200),
    ]
)
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        GTM(),
        GTMMixture(),
        MixedGTM(),
        KMM(),
        UKR(),
        SOM(),
        DensityRidge(),
        PrincipalCurve(),
        PolygonalCurve(),
        PrincipalTree(),
        OrientedPointsCurve(),
        PrincipalSurface(),
        RegularizedManifold(),
        ModeClustering(),
        NearestSurfaceClassifier(),
        KernelDensityClassifier(),
        GTMClassifier(),
        GTMRegressor(),
        SurfaceMonitor(),
    ],
)
def test_no_tag_excuses_anything(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert not tags._skip_test
    if tags.input_tags.allow_nan:  # then gaps are taken, and what is infinite is not
        X = np.random.default_rng(0).normal(size=(30, 3))
        X[4, 1] = np.nan
        estimator.fit(X, np.arange(30) % 2).predict(X) if hasattr(estimator, "predict") else estimator.fit_transform(X)
        with pytest.raises(ValueError, match="inf"):
            estimator.fit(np.where(np.isnan(X), np.inf, X), np.arange(30) % 2)
