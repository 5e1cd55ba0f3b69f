"""Fold and warp diagnostics: silent on honest surfaces, loud on folded ones."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold.exceptions import InvalidDataError
from prinfold.geometry.domain import UnitSphere
from prinfold.geometry.folds import describe, find_folds


def grid(n, m):
    u, v = np.linspace(-1, 1, n), np.linspace(-1, 1, m)
    Z = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(n * m).reshape(n, m)
    across = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    along = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    return Z, np.vstack([across, along])


def chain(n):
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def numerical(point, Z, h=1e-6):
    return np.stack([(point(Z + h * e) - point(Z - h * e)) / (2 * h) for e in np.eye(Z.shape[1])], axis=2)


def s_curve(Z):
    t = 1.5 * np.pi * Z[:, 0]
    return np.stack([np.sin(t), np.sign(t) * (np.cos(t) - 1)], axis=1)


CLEAN = {
    "plane": lambda Z: np.stack([Z[:, 0], 3 * Z[:, 1], Z[:, 0] - Z[:, 1]], axis=1),
    "square": lambda Z: np.stack([Z[:, 0], Z[:, 1]], axis=1),
    "saddle": lambda Z: np.stack([Z[:, 0], Z[:, 1], 0.5 * Z[:, 0] * Z[:, 1]], axis=1),
    "half pipe": lambda Z: np.stack([np.sin(1.5 * Z[:, 0]), np.cos(1.5 * Z[:, 0]), Z[:, 1]], axis=1),
    "s sheet": lambda Z: np.column_stack([s_curve(Z), 2 * Z[:, 1]]),
    "warped square": lambda Z: np.stack([Z[:, 0] + 0.3 * Z[:, 1] ** 2, Z[:, 1] + 0.2 * Z[:, 0] ** 3], axis=1),
}


@pytest.mark.parametrize("name", list(CLEAN))
def test_silent_on_gentle_surfaces(name):
    Z, edges = grid(10, 10)
    folds = find_folds(numerical(CLEAN[name], Z), None, edges)
    assert not folds.folded.any()
    assert describe(folds) is None


@pytest.mark.parametrize(
    "curve", [s_curve, lambda Z: np.stack([np.sin(1.57 * Z[:, 0]), np.cos(1.57 * Z[:, 0])], axis=1)]
)
def test_silent_on_gentle_curves(curve):
    Z = np.linspace(-1, 1, 10)[:, None]
    assert describe(find_folds(numerical(curve, Z), None, chain(10))) is None


def test_silent_on_the_sphere_in_its_frames():
    golden = np.pi * (3 - np.sqrt(5)) * np.arange(100)
    height = 1 - 2 * (np.arange(100) + 0.5) / 100
    ring = np.sqrt(1 - height**2)
    Z = np.stack([ring * np.cos(golden), ring * np.sin(golden), height], axis=1)
    near = np.argsort(((Z[:, None] - Z) ** 2).sum(axis=2), axis=1)[:, 1:6]
    edges = np.stack([np.repeat(np.arange(100), 5), near.ravel()], axis=1)
    folds = find_folds(np.tile(np.eye(3), (100, 1, 1)), UnitSphere().frame(Z), edges)
    assert describe(folds) is None
    np.testing.assert_allclose(folds.anisotropy, 1.0)


def test_a_sheet_folded_over_in_its_own_plane_is_found_where_it_folds():
    Z, edges = grid(11, 6)
    J = numerical(lambda Z: np.stack([(Z[:, 0] - 0.1) ** 2, Z[:, 1]], axis=1), Z)
    folds = find_folds(J, None, edges)
    expected = (Z[:, 0] > -0.1) & (Z[:, 0] < 0.3)  # u = 0 and u = 0.2 lie on either side of the crease
    np.testing.assert_array_equal(folds.folded, expected)
    np.testing.assert_allclose(folds.angle[folds.folded], np.pi)
    assert "folded at 12 of 66 nodes" in describe(folds)


def test_a_sheet_creased_in_space_is_found():
    Z, edges = grid(10, 5)
    J = numerical(lambda Z: np.stack([0.3 * np.sqrt(Z[:, 0] ** 2 + 1e-4), Z[:, 1], Z[:, 0]], axis=1) * [10, 1, 1], Z)
    folds = find_folds(J, None, edges)
    np.testing.assert_array_equal(folds.folded, np.abs(Z[:, 0]) < 0.2)


def test_a_hairpin_is_found():
    Z = np.linspace(-1, 1, 10)[:, None]
    folds = find_folds(numerical(lambda Z: np.column_stack([Z[:, 0] ** 2, 0.05 * Z[:, 0]]), Z), None, chain(10))
    np.testing.assert_array_equal(np.flatnonzero(folds.folded), [4, 5])
    np.testing.assert_array_equal(folds.turn, 0.0)  # a curve has one direction of stretch only


def test_turn_is_weighted_by_anisotropy():
    # Two nodes in the plane whose main directions stand at right angles, ratio ρ: weight 1 − 1/ρ.
    for ratio in (1.0, 1.01, 2.0, 50.0):
        J = np.array([np.diag([ratio, 1.0]), np.diag([1.0, ratio])])
        folds = find_folds(J, None, chain(2))
        np.testing.assert_allclose(folds.turn, (1 - 1 / ratio) * np.pi / 2, atol=1e-12)
        np.testing.assert_allclose(folds.anisotropy, ratio)
        np.testing.assert_allclose(folds.log_factor, np.log(ratio), atol=1e-12)
        assert not folds.folded.any()
    assert "warped at 2 of 2 nodes" in describe(folds)


def test_rotating_the_data_changes_nothing():
    Z, edges = grid(8, 8)
    J = numerical(lambda Z: np.stack([(Z[:, 0] - 0.1) ** 2, Z[:, 1] * (1 + Z[:, 0]), Z[:, 1] ** 2], axis=1), Z)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    plain, turned = find_folds(J, None, edges), find_folds(Q @ J, None, edges)
    np.testing.assert_allclose(turned.angle, plain.angle, atol=1e-6)
    np.testing.assert_allclose(turned.turn, plain.turn, atol=1e-6)


def test_flattened_nodes_are_reported_not_compared():
    J = np.array([np.eye(3, 2), np.zeros((3, 2)), np.eye(3, 2)])
    folds = find_folds(J, None, chain(3))
    np.testing.assert_array_equal(folds.angle, 0.0)
    np.testing.assert_array_equal(np.isinf(folds.anisotropy), [False, True, False])
    assert folds.log_factor[1] == -np.inf
    assert "flattened to fewer dimensions at 1 of 3 nodes" in describe(folds)


def test_what_cannot_work_is_named():
    with pytest.raises(InvalidDataError, match="two columns"):
        find_folds(np.zeros((2, 3, 2)), None, np.zeros((1, 3), dtype=int))
    with pytest.raises(InvalidDataError, match="at least as many data columns"):
        find_folds(np.zeros((2, 1, 2)), None, chain(2))


@pytest.mark.parametrize(("share", "warped"), [(0.74, False), (0.7499, False), (0.7501, True), (0.76, True)])
def test_three_quarters_of_a_right_angle_is_a_warp_and_less_is_none(share, warped):
    # Main directions at right angles, stretched by ρ: they turn by 1 − 1/ρ of a right angle.
    ratio = 1 / (1 - share)
    folds = find_folds(np.array([np.diag([ratio, 1.0]), np.diag([1.0, ratio])]), None, chain(2))
    np.testing.assert_allclose(folds.turn, share * np.pi / 2)
    assert ("badly warped at 2 of 2 nodes" in (describe(folds) or "")) is warped


@pytest.mark.parametrize(("degrees", "warped"), [(60.0, False), (67.0, False), (68.0, True), (75.0, True)])
def test_a_ribbon_is_warped_from_67_and_a_half_degrees(degrees, warped):
    # So long and narrow that the weight is 1.
    turn = np.radians(degrees)
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    ribbon = np.diag([1e5, 1.0])
    assert (describe(find_folds(np.array([ribbon, R @ ribbon]), None, chain(2))) is not None) is warped
