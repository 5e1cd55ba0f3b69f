"""scikit-learn's own checks, for every estimator and latent space, with no expected failures."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from prinfold import (
    GTM,
    KMM,
    PPS,
    UKR,
    DensityRidge,
    GTMClassifier,
    GTMRegressor,
    KernelDensityClassifier,
    ModeClustering,
    NearestSurfaceClassifier,
)

# pandas and polars decide which checks run: without them the frames' checks would pass unseen.
pytest.importorskip("pandas")
pytest.importorskip("polars")

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks(
    [
        GTM(),
        GTM(1, latent="circle"),
        GTM(latent="sphere"),
        GTM(latent="torus", prior_precision=0.1),
        GTM(init="random", random_state=0),
        PPS(1, clamping="select", nodes=12, basis=4, max_iter=20),
        KMM(),
        KMM(1, stop="validation", kernel="quartic"),
        UKR(),
        UKR(1, kernel="quartic", stop="minimum", max_iter=20),
        UKR(1, feature_kernel="l1", preimage=True, max_iter=20),
        DensityRidge(),
        DensityRidge(bandwidth="silverman", normal="hessian"),
        ModeClustering(),
        NearestSurfaceClassifier(),
        KernelDensityClassifier(),
        KernelDensityClassifier(kernel="quartic", per_class=True, priors="uniform"),
        NearestSurfaceClassifier(GTM(latent="sphere"), by="likelihood"),
        GTMClassifier(),
        GTMClassifier(PPS(nodes=8, basis=3, max_iter=20), priors="balanced", pseudo_count=0.0),
        GTMRegressor(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        GTM(),
        KMM(),
        UKR(),
        DensityRidge(),
        ModeClustering(),
        NearestSurfaceClassifier(),
        KernelDensityClassifier(),
        GTMClassifier(),
        GTMRegressor(),
    ],
)
def test_no_tag_excuses_anything(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert not tags._skip_test
    assert not tags.input_tags.allow_nan
