"""Probabilistic principal curves on known curves, and what a user may ask for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from prinfold import ProbabilisticCurve, datasets, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError, InvalidParameterError

DATA = datasets.make_half_circle(150, noise=0.1, rng=0)
RING = datasets.make_circle(150, noise=0.1, rng=0)


@pytest.fixture(scope="module")
def model():
    return ProbabilisticCurve().fit(DATA.X)


@pytest.fixture(scope="module")
def ring():
    return ProbabilisticCurve(closed=True).fit(RING.X)


def test_the_curve_and_the_noise_are_found(model):
    there = model.inverse_transform(np.linspace(0, model.length_, 200)[:, None])
    assert np.sqrt(np.mean(DATA.surface.distance(there) ** 2)) < 0.03
    assert model.noise_variance_**0.5 == pytest.approx(0.1, rel=0.1)
    assert not model.closed_


def test_a_ring_is_closed_by_itself(ring):
    found = ProbabilisticCurve(closed="auto", max_iter=5, tol=0).fit(RING.X)
    assert found.closed_
    assert ring.length_ == pytest.approx(2 * np.pi, rel=0.05)


def test_the_curve_that_gave_the_rows_is_not_drawn_outwards():
    """Round noise of 0.3 puts the middle of the rows 0.045 outside a circle of radius 1, and a supple curve on it.

    A stiff one is drawn inwards by its penalty, as any smoother does.
    """
    data = datasets.make_circle(1500, noise=0.3, noise_kind="isotropic", rng=0)
    there = ProbabilisticCurve(25, closed=True, penalty=0.1).fit(data.X).vertices_
    assert abs(np.linalg.norm(there, axis=1).mean() - 1.0) < 0.02


def test_shares_follow_the_density_along_the_curve():
    """Three in four rows in the first third of a line: three quarters of the shares too."""
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(0, 1, 300), rng.uniform(1, 3, 100)])
    X = np.column_stack([t, 0.3 * t**2]) + 0.05 * rng.standard_normal((400, 2))
    model = ProbabilisticCurve().fit(X)
    early = model.nodes_[:, 0] + model.offset_[0] < 1.0
    assert model.shares_.sum() == pytest.approx(1.0)
    assert model.shares_[early].sum() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("clamping", [1.0, 0.3])
def test_the_density_integrates_to_one_and_samples_follow_it(clamping):
    model = ProbabilisticCurve(6, clamping=clamping, penalty=1.0, max_iter=3, tol=0).fit(DATA.X)
    x, y = np.linspace(-2.4, 2.4, 241), np.linspace(-1.4, 2.4, 191)  # sums of smooth bumps are exact to rounding
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(places)).sum() * 0.02**2 == pytest.approx(1.0, abs=1e-6)
    drawn = model.sample(5000, random_state=0)
    # E[ln p] under its own draws is minus the entropy; under rows with more noise it is lower.
    R = model.responsibilities(drawn)
    np.testing.assert_allclose(R.mean(axis=0), model.shares_, atol=0.02)
    np.testing.assert_allclose(drawn.mean(axis=0), model.shares_ @ model.nodes_ + model.offset_, atol=0.03)
    # About the nodes they scatter as much as is said, and along the curve and across it.
    one = ProbabilisticCurve(2, clamping=clamping, penalty=1.0, max_iter=0, tol=0).fit(
        [[0.0, 0.0], [1.0, 0.0], [0.5, 0.1]]
    )
    spread = one.sample(20_000, random_state=0)[:, 1].var() / one.noise_variance_
    assert spread == pytest.approx(2 - clamping, rel=0.1)


def test_thin_responsibilities_are_sparse(model):
    whole, thin = model.responsibilities(DATA.X), model.responsibilities(DATA.X, threshold=1e-3)
    assert sparse.issparse(thin)
    np.testing.assert_array_equal(thin.toarray(), np.where(whole > 1e-3, whole, 0.0))
    with pytest.raises(InvalidParameterError, match="threshold must be None or a number above 0 and below 1, got -1"):
        model.responsibilities(DATA.X, threshold=-1)


def test_the_posterior_wraps_round_a_closed_curve(ring):
    """About the seam the variance is that of a few nodes, not of the whole length."""
    seam = ring.inverse_transform([[1e-3]])
    assert ring.posterior_covariance(seam)[0, 0, 0] < 0.1
    rows = ring.inverse_transform(ring.node_places_[len(ring.node_places_) // 3] + [[0.0], [0.4 * ring.length_ / 50]])
    share, place = ring.responsibilities(rows), ring.node_places_[:, 0]  # far from the seam, as on a line
    variance = share @ place**2 - (share @ place) ** 2
    np.testing.assert_allclose(ring.posterior_covariance(rows)[:, 0, 0], variance, rtol=1e-6)
    assert ring.posterior_covariance(ring.inverse_transform([[ring.length_ / 2]]))[0, 0, 0] < 0.1


@pytest.mark.parametrize("X", [[[0.0], [1.0], [2.0], [4.0]], [[0.0, 0.0], [1.0, 1.0]], [[1.0, 2.0]] * 3])
def test_few_rows_one_column_and_rows_all_equal(X):
    with pytest.warns(DegenerateWarning, match="no length") if np.ptp(X) == 1.0 and len(X) == 3 else _quiet():
        model = ProbabilisticCurve(max_iter=5, tol=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.project(X)).all()


def _quiet():
    from contextlib import nullcontext

    return nullcontext()


def test_a_file_that_does_not_fit_together_is_refused(model, tmp_path):
    path = tmp_path / "curve.prinfold"
    model.save(path)
    np.testing.assert_array_equal(load(path).score_samples(DATA.X), model.score_samples(DATA.X))
    broken = load(path)
    broken.shares_ = -broken.shares_
    broken.save(path)
    with pytest.raises(CorruptModelFileError, match=r"shares_ in the file .* of at least 0"):
        load(path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": 1}, "nodes must be None or a whole number of at least 2, got 1"),
        ({"clamping": 0.0}, "clamping must be a finite number above 0, got 0.0"),
        ({"clamping": 2.0}, "clamping must be below the number of columns, 2"),
        ({"penalty": -1.0}, "penalty must be None or a finite number above 0"),
        ({"init": "spiral"}, "init must be"),
    ],
)
def test_what_cannot_work_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        ProbabilisticCurve(**settings).fit(DATA.X)


def test_a_closed_curve_needs_two_columns(model):
    with pytest.raises(InvalidDataError, match="a closed curve needs two columns"):
        ProbabilisticCurve(closed=True).fit(DATA.X[:, :1])
    with pytest.raises(InvalidParameterError, match="n must be a whole number of at least 0, got -1"):
        model.sample(-1)


def test_weights_that_sum_to_one_are_those_of_as_many_rows(model):
    light = ProbabilisticCurve().fit(DATA.X, sample_weight=np.full(len(DATA.X), 1 / len(DATA.X)))
    assert light.length_ == pytest.approx(model.length_, rel=1e-6)


def test_what_was_fitted_is_not_changed_by_what_is_set_later():
    found = ProbabilisticCurve(8, penalty=1.0, max_iter=2, tol=0).fit(DATA.X)
    before = found.score(DATA.X)
    assert found.set_params(clamping=0.2).score(DATA.X) == before


def test_rows_on_a_line_are_followed_without_a_word():
    model = ProbabilisticCurve(max_iter=5, tol=0).fit(np.outer(np.arange(30.0), [1.0, 2.0, 3.0]))
    assert model.length_ == pytest.approx(29 * np.sqrt(14), rel=1e-3)
