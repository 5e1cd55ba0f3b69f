"""Priors and noise that follow the evidence, and the verb that asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prinfold import GTM, HarmonicBasis, datasets, load
from prinfold.exceptions import InvalidDataError, InvalidParameterError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = datasets.make_thesis_surface(100, rng=0).X
SMALL = {"nodes": 8, "basis": 3}


def test_the_prior_is_what_was_given_or_found() -> None:
    constant = GTM(**SMALL, regularization=0.3).fit(X)
    assert constant.prior_precision_ == pytest.approx(0.3 / constant.noise_variance_)
    assert GTM(**SMALL, prior_precision=0.7).fit(X).prior_precision_ == pytest.approx(0.7)
    found = GTM(**SMALL, prior_precision="evidence").fit(X)
    assert found.prior_precision_ == found.history_["prior_precision"][-1]
    assert found.converged_
    assert found.history_["objective"][-1] == pytest.approx(found.log_evidence(X) / len(X), rel=1e-9)
    assert found.history_["effective"][-1] == pytest.approx(found.effective_weights(X), rel=1e-9)


def test_it_finds_more_evidence_than_the_default_penalty() -> None:
    found, plain = (GTM(**SMALL, prior_precision=how).fit(X).log_evidence(X) for how in ("evidence", None))
    assert found > plain + 1


@pytest.mark.parametrize("init", ["pca", "random"])
@pytest.mark.parametrize(
    "settings",
    [
        {"nodes": 8, "basis": 3},
        {"nodes": 8, "basis": 3, "penalize_bias": True},
        {"n_components": 1, "nodes": 12, "latent": "circle", "basis": HarmonicBasis(3)},
        {"latent": "torus", "nodes": 6, "basis": 4},
        {"latent": "sphere", "nodes": 40, "basis": 12},
        {"n_components": 3, "nodes": 4, "basis": 2},
        {"nodes": 20, "basis": 9},
    ],
)
def test_every_space_comes_to_rest(settings: dict[str, Any], init: str) -> None:
    model = GTM(**settings, prior_precision="evidence", init=init, random_state=0, max_iter=300).fit(X)
    assert 0 < model.prior_precision_ < 1e6
    assert 0 < model.effective_weights(X) < model.weights_.size
    assert np.isfinite(model.log_evidence(X, hessian="exact"))
    assert 0.01 < model.noise_variance_ < 1


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(0).standard_normal((40, 3)),
        np.random.default_rng(0).standard_normal((5, 3)),
        np.random.default_rng(0).standard_normal((3, 4)),
        np.column_stack([np.random.default_rng(0).standard_normal(30), np.full(30, 7.0)]),
        np.random.default_rng(0).standard_normal((30, 1)),
        np.repeat([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], 6, axis=0),
        np.full((10, 2), 3.0),
        np.vstack([np.random.default_rng(0).standard_normal((30, 2)), [[1e4, 1e4]]]),
        (np.random.default_rng(0).standard_normal((50, 3)) * [2, 1, 0.1]).astype(np.float32),
    ],
    ids=["noise", "five rows", "three rows", "constant column", "one column", "two points", "one", "outlier", "single"],
)
def test_odd_tables_have_an_answer(table: np.ndarray) -> None:
    model = GTM(nodes=10, basis=4, prior_precision="evidence", max_iter=100).fit(table)
    assert 0 < model.prior_precision_ < np.inf
    assert 0 < model.noise_variance_ < np.inf
    assert np.isfinite(model.history_["objective"]).all()
    assert np.isfinite([model.log_evidence(table, hessian) for hessian in ("approximate", "exact")]).all()


def test_units_carry_through() -> None:
    one, other = (GTM(**SMALL, prior_precision="evidence", max_iter=60, tol=0).fit(s * X) for s in (1.0, 100.0))
    assert other.prior_precision_ == pytest.approx(one.prior_precision_ / 1e4, rel=1e-6)
    # A density of all values but as many as there are free weights: those have a flat prior, which has no units.
    n_values = X.size - X.shape[1]
    assert other.log_evidence(100 * X) == pytest.approx(one.log_evidence(X) - n_values * np.log(100), rel=1e-6)


def test_whole_weights_are_repeats() -> None:
    counts = np.arange(len(X)) % 3
    options = {**SMALL, "prior_precision": "evidence", "max_iter": 30, "tol": 0}
    weighted = GTM(**options).fit(X, sample_weight=counts)
    repeated = GTM(**options).fit(np.repeat(X, counts, axis=0))
    assert weighted.prior_precision_ == pytest.approx(repeated.prior_precision_, rel=1e-6)
    for hessian in ("approximate", "exact"):
        one = weighted.log_evidence(X, hessian, sample_weight=counts)
        assert one == pytest.approx(repeated.log_evidence(np.repeat(X, counts, axis=0), hessian), rel=1e-6)


def test_a_model_comes_back_from_its_file(tmp_path: Any) -> None:
    model = GTM(**SMALL, prior_precision="evidence", max_iter=10).fit(X)
    model.save(tmp_path / "model.prinfold")
    again = load(tmp_path / "model.prinfold")
    assert again.prior_precision_ == model.prior_precision_
    for hessian in ("approximate", "exact"):
        assert again.log_evidence(X, hessian) == model.log_evidence(X, hessian)


def test_what_cannot_be_is_refused() -> None:
    model = GTM(**SMALL, regularization=0.0).fit(X)
    with pytest.raises(InvalidParameterError, match="needs a prior on the weights"):
        model.log_evidence(X)
    assert model.effective_weights(X) == pytest.approx(model.weights_.size)
    with pytest.raises(InvalidParameterError, match="hessian must be one of approximate, exact, got 'full'"):
        model.log_evidence(X, hessian="full")
    with pytest.raises(InvalidParameterError, match="leave regularization at None"):
        GTM(prior_precision="evidence", regularization=0.1).fit(X)
    with pytest.raises(InvalidParameterError, match=r"prior_precision.*'evidence'"):
        GTM(prior_precision="guess").fit(X)
    with pytest.raises(InvalidDataError, match="sample_weight"):
        model.log_evidence(X, sample_weight=np.ones(3))
