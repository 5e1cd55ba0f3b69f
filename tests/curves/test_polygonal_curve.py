"""The polygonal line as an estimator: settings, degenerate tables, shapes that it finds and that it does not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from prinfold import PolygonalCurve, datasets, load
from prinfold.curves import polygonal_curve_training
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, StructureWarning
from prinfold.geometry.simplices import nearest_on_simplices
from prinfold.loops import StopReason
from prinfold.metrics import length
from prinfold.numerics.polylines import nearest_on_polyline_reference


def apart(model, data):
    """Root mean squared distance of the curve from the true one, and of the true one from the curve."""
    mesh = model.mesh(400)
    to_truth = np.square(mesh.vertices - data.surface.project(mesh.vertices)).sum(axis=1)
    truth = data.surface.mesh(400).vertices
    to_curve = nearest_on_simplices(truth, mesh.vertices, mesh.faces).squared_distance
    return np.sqrt(to_truth.mean()), np.sqrt(to_curve.mean())


@pytest.fixture(scope="module")
def zigzag():
    data = datasets.make_zigzag(400, rng=0)
    return data, PolygonalCurve().fit(data.X)


def test_zigzag_is_found(zigzag):
    data, model = zigzag
    assert max(apart(model, data)) < 0.025, "half the noise"
    assert model.converged_
    assert model.n_segments_ == len(model.vertices_) - 1 == model.history_["segments"][-1]
    assert_allclose(model.length_, length(model.vertices_))
    assert not model.closed_


def test_coordinates_are_arc_length(zigzag):
    data, model = zigzag
    Z = model.transform(data.X)
    assert_allclose(model.inverse_transform(Z), model.project(data.X), atol=1e-12)
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(model.vertices_, axis=0), axis=1))])
    assert_allclose(model.transform(model.vertices_)[:, 0], knots, atol=1e-9)


def test_objective_in_the_history_never_gets_worse_with_as_many_segments(zigzag):
    _, model = zigzag
    same = np.diff(model.history_["segments"]) == 0
    assert (np.diff(model.history_["objective"])[same] >= 0).all()


def test_files_keep_the_line(zigzag, tmp_path):
    data, model = zigzag
    model.save(tmp_path / "line.prinfold")
    again = load(tmp_path / "line.prinfold")
    assert_allclose(again.transform(data.X), model.transform(data.X), atol=1e-12)
    assert again.n_segments_ == model.n_segments_


def test_far_from_the_origin(zigzag):
    data, model = zigzag
    far = PolygonalCurve().fit(data.X + 1e6)
    assert_allclose(far.vertices_ - 1e6, model.vertices_, atol=1e-6)


def test_more_penalty_is_straighter_and_more_segments_are_as_many_as_asked_for():
    X = datasets.make_half_circle(80, rng=0).X
    loose = PolygonalCurve(penalty=0.01, n_segments=12).fit(X)
    stiff = PolygonalCurve(penalty=3.0, n_segments=12).fit(X)
    assert loose.n_segments_ == stiff.n_segments_ == 12
    assert loose.projection_error(X) < stiff.projection_error(X)
    assert stiff.length_ < loose.length_


def test_no_longer_than_it_may_be():
    X = datasets.make_half_circle(80, rng=0).X
    short = PolygonalCurve(length=1.5).fit(X)
    assert_allclose(short.length_, 1.5, rtol=1e-3)
    assert short.length_ <= 1.5 * (1 + 1e-12)
    assert short.n_segments_ == 5, "the cube root of 80, rounded up"
    assert PolygonalCurve(length=2.5).fit(X).projection_error(X) < short.projection_error(X)


@pytest.mark.parametrize("bound", [1.5, 2.0])
def test_no_other_line_of_that_length_is_much_nearer(bound):
    """A direct search under the constraint, begun at the line that was found."""
    X = datasets.make_half_circle(80, rng=0).X
    found = PolygonalCurve(length=bound).fit(X)

    def distance(flat):
        return nearest_on_polyline_reference(X, flat.reshape(-1, 2)).squared.mean()

    def left(flat):
        return bound - np.linalg.norm(np.diff(flat.reshape(-1, 2), axis=0), axis=1).sum()

    limit = {"type": "ineq", "fun": left}
    best = minimize(distance, found.vertices_.ravel(), method="SLSQP", constraints=[limit], options={"maxiter": 40})
    assert found.projection_error(X) < 1.005 * best.fun


def test_a_circle_is_closed():
    data = datasets.make_circle(150, rng=0)
    model = PolygonalCurve(closed=True).fit(data.X)
    assert model.closed_
    assert max(apart(model, data)) < 0.05
    assert model.n_segments_ == len(model.vertices_)


def test_starts_lead_round_a_spiral_that_the_published_one_cuts_across():
    data = datasets.make_spiral(400, rng=0)
    truth = data.surface.mesh(60).vertices
    with pytest.warns(StructureWarning):
        cut = PolygonalCurve(init="pca").fit(data.X)
    assert apart(cut, data)[0] > 0.08
    for init in ("auto", truth):
        assert max(apart(PolygonalCurve(init=init).fit(data.X), data)) < 0.03


def test_whether_a_line_is_closed_may_be_found_out():
    ring, arc = datasets.make_circle(150, rng=0), datasets.make_half_circle(100, rng=0)
    for data, closed in ((ring, True), (arc, False)):
        model = PolygonalCurve(closed="auto").fit(data.X)
        assert model.closed_ == closed
        assert max(apart(model, data)) < 0.05


def test_rows_on_a_line_need_two_vertices():
    t = np.linspace(0, 1, 20)[:, None]
    model = PolygonalCurve().fit(1e4 + t * np.array([[3.0, 4.0]]))
    assert_allclose(model.length_, 5.0, rtol=1e-9)
    assert model.n_segments_ == 1
    one = PolygonalCurve().fit(t)
    assert_allclose(one.length_, 1.0)
    assert_allclose(one.project(np.array([[-1.0], [0.3], [2.0]])), [[0], [0.3], [1]], atol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"length": 1.0}], ids=str)
def test_few_rows(settings):
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    for n in (2, 3):
        model = PolygonalCurve(**settings).fit(X[:n])
        assert model.n_segments_ == 1
        assert np.isfinite(model.transform(X)).all()
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        assert PolygonalCurve(**settings).fit(X[[1, 1, 1]]).length_ == 0


def test_few_rows_are_not_joined_one_after_the_other():
    X = datasets.make_zigzag(12, rng=0).X
    model = PolygonalCurve().fit(X)
    assert model.n_segments_ <= 6
    assert model.projection_error(X) > 1e-4
    with pytest.warns(DegenerateWarning, match="12 segments joins the 12 rows that differ"):
        PolygonalCurve(n_segments=12).fit(X)
    with pytest.warns(DegenerateWarning, match="4 segments joins the 3 rows"):
        assert np.isfinite(PolygonalCurve(closed=True, init="pca").fit(X[:3]).transform(X)).all()


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_few_rounds_are_told_of():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        PolygonalCurve(max_iter=3).fit(datasets.make_zigzag(60, rng=0).X)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"penalty": -1}, "penalty"),
        ({"stopping": 0}, "stopping"),
        ({"n_segments": 0}, "n_segments"),
        ({"length": 0.0}, "length"),
        ({"init": "circles"}, "init"),
    ],
)
def test_settings_out_of_range_are_refused(settings, match):
    with pytest.raises(InvalidParameterError, match=match):
        PolygonalCurve(**settings).fit(np.eye(3))


@pytest.mark.parametrize(
    ("vertices", "closed"), [(np.zeros((1, 3)), False), (np.zeros((2, 3)), True), (np.zeros((4, 2)), False)]
)
def test_starts_that_do_not_fit_are_refused(vertices, closed):
    with pytest.raises(InvalidDataError, match="finite vertices in the 3 columns"):
        PolygonalCurve(init=vertices, closed=closed).fit(np.eye(3))


def test_weights_may_be_shares():
    X = datasets.make_half_circle(60, rng=0).X
    light = PolygonalCurve().fit(X, sample_weight=np.full(60, 1 / 60))
    assert_allclose(light.vertices_, PolygonalCurve().fit(X).vertices_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_one_far_row_does_not_make_the_line_grow_for_ever(monkeypatch):
    monkeypatch.setattr(polygonal_curve_training, "MOST_SEGMENTS_FACTOR", 4.0)
    X = np.vstack([datasets.make_half_circle(63, rng=0).X, [[60.0, 60.0]]])
    words = "The rule asks for more than the 16 segments.*or set n_segments"
    with pytest.warns(DegenerateWarning, match="Row 63 makes up"), pytest.warns(DegenerateWarning, match=words):
        model = PolygonalCurve(max_iter=2000).fit(X)
    assert model.n_segments_ == 16
    assert model.stop_reason_ is StopReason.CAPPED
    assert model.converged_
    assert PolygonalCurve(n_segments=16, max_iter=2000).fit(X[:-1]).stop_reason_ is StopReason.GROWN


@pytest.mark.parametrize("settings", [{"penalty": 0.2}, {"stopping": 1.0}])
def test_what_a_length_takes_the_place_of_is_refused(settings):
    (name,) = settings
    with pytest.raises(InvalidParameterError, match=f"{name}=.* has no effect with length=3.0.*leave {name} at"):
        PolygonalCurve(length=3.0, **settings).fit(datasets.make_half_circle(20, rng=0).X)
