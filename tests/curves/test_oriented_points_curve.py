"""Curves of oriented points as an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import OrientedPointsCurve, datasets, load
from prinfold.exceptions import DegenerateWarning, InvalidParameterError, StructureWarning
from prinfold.geometry.simplices import nearest_on_simplices
from prinfold.loops import StopReason


def apart(model, data):
    """Root mean squared distance of the curve from the true one, and of the true one from the curve."""
    mesh = model.mesh(400)
    to_truth = np.square(mesh.vertices - data.surface.project(mesh.vertices)).sum(axis=1)
    to_curve = nearest_on_simplices(data.surface.mesh(400).vertices, mesh.vertices, mesh.faces).squared_distance
    return np.sqrt(to_truth.mean()), np.sqrt(to_curve.mean())


@pytest.fixture(scope="module")
def spiral():
    data = datasets.make_spiral(400, noise=0.03, rng=0)
    return data, OrientedPointsCurve().fit(data.X)


def test_a_spiral_is_followed_round_all_turns(spiral):
    data, model = spiral
    assert max(apart(model, data)) < 0.03
    assert model.converged_
    assert not model.closed_
    assert model.stop_reason_ is StopReason.WALKED
    assert model.ends_ == ["there are no more rows straight ahead"] * 2


def test_points_lie_on_the_curve_and_directions_along_it(spiral):
    _, model = spiral
    Z = model.transform(model.points_)
    assert_allclose(model.inverse_transform(Z), model.points_, atol=2e-3)
    along = np.abs(np.einsum("pd,pd->p", model.jacobian(Z)[:, :, 0], model.directions_))
    assert np.median(along) > 0.95
    assert model.variances_.shape == (len(model.points_),)
    assert_allclose(np.sqrt(model.variances_.mean()), 0.03, rtol=0.3)


def test_files_keep_points_and_directions(spiral, tmp_path):
    data, model = spiral
    model.save(tmp_path / "walk.prinfold")
    again = load(tmp_path / "walk.prinfold")
    assert_allclose(again.transform(data.X), model.transform(data.X), atol=1e-12)
    assert_allclose(again.directions_, model.directions_)
    assert again.ends_ == model.ends_


def test_a_bandwidth_that_is_given():
    X = datasets.make_half_circle(100, rng=0).X
    model = OrientedPointsCurve(bandwidth=0.3, step=0.5).fit(X)
    assert model.bandwidth_ == 0.3
    gaps = np.linalg.norm(np.diff(model.points_, axis=0), axis=1)
    assert np.median(gaps) == pytest.approx(0.15, rel=0.2)


def test_few_rows():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    for n in (2, 3):
        model = OrientedPointsCurve().fit(X[:n])
        assert model.length_ > 0
        assert np.isfinite(model.transform(X)).all()
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        assert len(OrientedPointsCurve().fit(X[[1, 1]]).points_) == 0
    one = OrientedPointsCurve().fit(np.linspace(0, 1, 30)[:, None])
    assert_allclose(one.project(np.array([[0.4]])), [[0.4]], atol=1e-12)


@pytest.mark.parametrize("name", ["bandwidth", "width", "step"])
def test_settings_out_of_range_are_refused(name):
    with pytest.raises(InvalidParameterError, match=name):
        OrientedPointsCurve(**{name: 0}).fit(np.eye(3))


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_weights_may_be_shares_and_repeats_are_no_more_rows():
    X = datasets.make_half_circle(60, rng=0).X
    plain, *others = (
        OrientedPointsCurve(max_iter=1, tol=0).fit(X, sample_weight=np.full(60, each)) for each in (1.0, 1 / 60, 50.0)
    )
    assert_allclose([each.bandwidth_ for each in others], plain.bandwidth_)


def test_many_columns_are_walked_along():
    """Switches that turn on one after the other, as of genes: rows are far from each other in the columns' noise."""
    rng = np.random.default_rng(0)
    t, when = rng.uniform(0, 1, 150), np.linspace(0.1, 0.9, 12)

    def rows(t):
        return 2.5 * np.tanh((t[:, None] - when) / 0.15)

    X = rows(t) + 0.15 * rng.standard_normal((150, 12))
    model = OrientedPointsCurve().fit(X)
    truth = rows(np.linspace(0, 1, 200))
    apart = np.sqrt(np.square(truth - model.project(truth)).sum(axis=1).mean())
    assert apart < 0.15 * np.sqrt(12)


def test_rows_that_are_left_out_are_told_of():
    t, turn = np.linspace(0, 1, 60), np.radians(40)
    X = np.stack([np.append(t, 1 - t[1:] * np.cos(turn)), np.append(0 * t, t[1:] * np.sin(turn))], axis=1)
    X += 0.02 * np.random.default_rng(0).standard_normal(X.shape)
    with pytest.warns(StructureWarning, match="ends too early"):
        model = OrientedPointsCurve(bandwidth=0.1).fit(X)
    assert any("hardly any farther" in end for end in model.ends_)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_a_single_oriented_point_is_told_of():
    X = datasets.make_half_circle(40, rng=0).X
    with pytest.warns(DegenerateWarning, match="40 rows that differ the walk found a single oriented point, since"):
        model = OrientedPointsCurve(bandwidth=1e-4).fit(X)
    assert len(model.points_) == 1
