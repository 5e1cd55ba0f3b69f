"""One curve by arc length: smooth and polygonal, open and closed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.curves.arc_curve import ArcCurve, Polyline, orient_curve
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.simplices import nearest_on_simplices_reference

KINDS = [(smooth, closed) for smooth in (True, False) for closed in (True, False)]
kinds = pytest.mark.parametrize(("smooth", "closed"), KINDS)


def corners(m=9, D=3):
    """Vertices that are not evenly spaced, on a distorted turn that does not quite close."""
    angle = 2 * np.pi * np.sort(np.random.default_rng(0).uniform(0, 0.9, m))
    return np.stack([2 * np.cos(angle), np.sin(angle), 0.3 * angle], axis=1)[:, :D]


@kinds
def test_the_coordinate_is_the_length_travelled(smooth, closed):
    curve = ArcCurve.through(corners(), closed, smooth)
    z = np.union1d(np.linspace(0, curve.length, 20_001), curve.knots)  # no corner is cut
    traveled = np.linalg.norm(np.diff(curve.point(z[:, None]), axis=0), axis=1).cumsum()
    assert_allclose(traveled, z[1:], atol=1e-3 * curve.length if smooth else 1e-9)
    assert curve.closed == closed
    gap = np.linalg.norm(np.diff(curve.point(np.array([[0.0], [curve.length]])), axis=0))
    assert (gap < 1e-12) == closed


@kinds
def test_the_curve_passes_through_its_vertices(smooth, closed):
    curve = ArcCurve.through(corners(), closed, smooth)
    assert_allclose(curve.point(curve.knots[:, None]), curve.vertices, atol=1e-12)
    away = curve.nearest(corners()).squared_distance
    assert_allclose(away, 0.0, atol=1e-3 if smooth else 1e-20)
    if not smooth:
        assert_allclose(curve.vertices, corners(), atol=0)


@kinds
def test_the_jacobian_is_the_derivative_and_goes_on_beyond_the_ends(smooth, closed):
    curve = ArcCurve.through(corners(), closed, smooth)
    z = np.concatenate([[-0.3], np.random.default_rng(1).uniform(0, curve.length, 30), [curve.length + 0.2]])[:, None]
    slope = (curve.point(z + 1e-6) - curve.point(z - 1e-6)) / 2e-6
    assert_allclose(curve.jacobian(z)[:, :, 0], slope, atol=1e-6)
    # A smooth curve by arc length has unit speed but for what the cubics between its points leave.
    assert_allclose(np.linalg.norm(slope, axis=1), 1.0, atol=0.03 if smooth else 1e-9)


@kinds
def test_nothing_is_nearer_than_the_nearest_point(smooth, closed):
    curve = ArcCurve.through(corners(), closed, smooth)
    X = np.random.default_rng(2).normal(size=(40, 3)) * [2.0, 1.0, 1.0]
    found = curve.nearest(X)
    fine = curve.point(np.linspace(0, curve.length, 4001)[:, None])
    brute = np.square(X[:, None] - fine[None]).sum(axis=2).min(axis=1)
    assert (found.squared_distance <= brute + 1e-12).all()
    assert_allclose(found.squared_distance, brute, atol=1e-2)
    assert_allclose(curve.point(found.latent), found.points, atol=1e-12)


@pytest.mark.parametrize("closed", [True, False])
def test_a_polyline_is_its_segments(closed):
    curve = ArcCurve.through(corners(), closed, smooth=False)
    X = np.random.default_rng(3).normal(size=(50, 3))
    by_hand = nearest_on_simplices_reference(X, curve.points, curve.segments)
    assert_allclose(curve.nearest(X).squared_distance, by_hand.squared_distance, atol=1e-12)
    mesh = curve.mesh(7)
    assert_allclose(np.linalg.norm(np.diff(mesh.vertices[mesh.faces], axis=1), axis=2).sum(), curve.length)
    assert len(curve.mesh().faces) == len(corners()) - (not closed)


@kinds
def test_the_other_way_is_the_same_curve(smooth, closed):
    curve = ArcCurve.through(corners(), closed, smooth)
    z = np.linspace(0.1, curve.length - 0.1, 9)[:, None]
    assert_allclose(curve.reversed().point(curve.length - z), curve.point(z), atol=1e-12)
    if closed:
        later = curve.begin_at(2)
        assert_allclose(later.point(z), curve.point(z + curve.knots[2]), atol=1e-12)


@kinds
def test_rows_tell_the_direction(smooth, closed):
    """However a curve is traversed, and wherever begun, it comes out the same."""
    curve = ArcCurve.through(corners(), closed, smooth)
    z = curve.length * np.array([0.1, 0.15, 0.2, 0.22, 0.3, 0.6])[:, None]
    X, weight = curve.point(z), np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    found = orient_curve(curve, X, weight)
    others = [curve.reversed()] + ([curve.begin_at(3)] if closed else [])
    for other in others:
        assert_allclose(orient_curve(other, X, weight).vertices, found.vertices, atol=1e-12)
    assert np.average(found.nearest(X).latent[:, 0], weights=weight) < found.length / 2


@kinds
@pytest.mark.parametrize("there", [0.1, 0.8])
def test_a_point_says_where_a_curve_begins(smooth, closed, there):
    """Whatever rows tell, and however the curve was traversed before."""
    curve = ArcCurve.through(corners(), closed, smooth)
    X, root = (
        curve.point(curve.length * np.array([[0.1], [0.15], [0.2]])),
        curve.point(np.array([[there * curve.length]]))[0],
    )
    found = orient_curve(curve, X, np.ones(3), root)
    for other in [curve.reversed()] + ([curve.begin_at(3)] if closed else []):
        assert_allclose(orient_curve(other, X, np.ones(3), root).vertices, found.vertices, atol=1e-12)
    place = found.nearest(root[None]).latent[0, 0]
    if closed:
        assert min(place, found.length - place) <= np.diff(found.knots, append=found.length).max() / 2 + 1e-9
    else:
        assert_allclose(place, min(there, 1 - there) * found.length, rtol=0.02)


def test_where_rows_tell_no_direction_coordinates_do():
    line = ArcCurve.through(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    both = [orient_curve(each, np.array([[-0.5, 1.0], [0.5, 1.0]]), np.ones(2)) for each in (line, line.reversed())]
    assert_allclose(both[0].vertices, both[1].vertices)
    assert both[0].vertices[0, 0] == -1.0


@pytest.mark.parametrize("smooth", [True, False])
def test_vertices_that_repeat_count_once(smooth):
    doubled = np.repeat(corners(), 2, axis=0)
    assert ArcCurve.through(doubled, True, smooth).length == ArcCurve.through(corners(), True, smooth).length
    dot = ArcCurve.through(doubled[:2], True, smooth)
    assert (dot.length, dot.closed) == (0.0, False)
    assert_allclose(dot.nearest(np.ones((2, 3))).points, doubled[:2])
    there_and_back = ArcCurve.through(corners()[:2], True, smooth)
    assert not there_and_back.closed


def test_bad_vertices_are_refused():
    with pytest.raises(InvalidDataError, match="finite vertices"):
        ArcCurve.through(np.array([[0.0, np.nan]]))
    curve = ArcCurve.through(corners())
    with pytest.raises(InvalidParameterError, match="a point and a tangent at each"):
        ArcCurve(curve.latent, curve.points[1:], curve.tangents[1:])
    with pytest.raises(InvalidParameterError, match="a point and a tangent at each"):
        Polyline(curve.latent, curve.points, curve.tangents[1:])
