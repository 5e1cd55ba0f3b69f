"""Coordinates compared up to the symmetries of their space."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from prinfold import metrics
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.intervals import Intervals
from prinfold.geometry.symmetry import _unimodular, align
from prinfold.latent import Lattice, circle, cylinder, grid, torus

MATRICES = [
    np.array(rows, dtype=float) for rows in ([[1, 0], [0, 1]], [[0, -1], [1, 0]], [[1, 1], [0, -1]], [[1, 1], [1, 0]])
]


def signed_permutations(n: int) -> list[np.ndarray]:
    signs = [np.asarray(each)[:, None] for each in itertools.product((1.0, -1.0), repeat=n)]
    return [np.eye(n)[list(order)] * sign for order in itertools.permutations(range(n)) for sign in signs]


def wrapped(Z: np.ndarray, space: Lattice) -> np.ndarray:
    return space.domain.retract(Z)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shift", [0.0, 1.0, np.pi, -2.5])
def test_a_circle_turned_or_reversed_is_found(rng: np.random.Generator, sign: float, shift: float) -> None:
    truth = rng.uniform(0.0, 2.0 * np.pi, (50, 1))
    found = align(wrapped(sign * truth + shift, circle(9)), truth, circle(9).domain)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)
    assert found.turn == [[sign]]
    assert circle(9).domain.contains(found.coordinates).all()


@pytest.mark.parametrize("A", MATRICES, ids=["same", "swapped", "sheared", "both"])
def test_a_torus_turned_swapped_or_sheared_is_found(rng: np.random.Generator, A: np.ndarray) -> None:
    truth, space = rng.uniform(-np.pi, np.pi, (80, 2)), torus(5, 5)
    found = align(wrapped(truth @ A.T + [0.3, -2.0], space), truth, space.domain)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.turn @ A, np.eye(2), atol=1e-12)


def test_three_angles_are_swapped_and_reversed(rng: np.random.Generator) -> None:
    truth, space = rng.uniform(-np.pi, np.pi, (80, 3)), torus(3, 3, 3)
    found = align(wrapped(truth[:, [2, 0, 1]] * [1, -1, 1] + [0.1, 3.0, -1.0], space), truth, space.domain)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)


def test_a_cylinder_is_turned_and_stood_on_its_head(rng: np.random.Generator) -> None:
    truth, space = rng.uniform([-np.pi, -1.0], [np.pi, 1.0], (80, 2)), cylinder(5, 3)
    found = align(wrapped(truth * [-1.0, -1.0] + [2.0, 0.0], space), truth, space.domain)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)
    np.testing.assert_array_equal(found.turn, -np.eye(2))


def test_a_sheet_is_swapped_and_reversed_about_its_middle(rng: np.random.Generator) -> None:
    truth = rng.uniform(-1.0, 1.0, (80, 2))
    found = align(truth[:, ::-1] * [1.0, -1.0], truth, grid(4, 4).domain)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)
    box = Box.of((0.0, 4.0))
    along = 2.0 + truth[:, :1]
    found = align(4.0 - along, along, box)
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-12)
    assert found.shift == [4.0]


@pytest.mark.parametrize("reflected", [False, True])
def test_a_sphere_turned_or_mirrored_is_found(rng: np.random.Generator, reflected: bool) -> None:
    truth = UnitSphere().retract(rng.normal(size=(60, 3)))
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R)) * (-1.0 if reflected else 1.0)
    found = align(truth @ R.T, truth, UnitSphere())
    np.testing.assert_allclose(found.distance, 0.0, atol=1e-7)
    np.testing.assert_allclose(found.turn, R.T, atol=1e-12)


@pytest.mark.parametrize(
    "space",
    [circle(5), torus(4, 4), torus(3, 3, 3), cylinder(4, 3), grid(3, 3), grid(2, 2, 2)],
    ids=lambda s: str(s.periodic),
)
def test_no_symmetry_comes_nearer(rng: np.random.Generator, space: Lattice) -> None:
    """The mean resultants of angles and the squares of open axes are optimal among all symmetries tried by force."""
    low, high = space.domain.low, space.domain.high
    truth = rng.uniform(low, high, (40, space.n_columns))
    Z = wrapped(truth + 0.3 * rng.normal(size=truth.shape), space)
    best = align(Z, truth, space.domain)
    closed = np.asarray(space.periodic)

    def badness(moved: np.ndarray) -> float:
        gap = moved - truth
        angles = np.abs(np.exp(1j * gap[:, closed]).mean(axis=0)).sum()
        return float(np.square(gap[:, ~closed]).sum() - angles)

    matrices = (
        _unimodular(space.n_columns) if space.n_columns < 3 and closed.all() else signed_permutations(space.n_columns)
    )
    mixing = [np.abs(A[np.ix_(closed, ~closed)]).sum() for A in matrices]
    assert badness(Z @ best.turn.T + best.shift) == pytest.approx(
        min(badness(Z @ A.T) for A, mixed in zip(matrices, mixing, strict=True) if not mixed), abs=1e-9
    )


def test_the_error_is_what_is_left_in_degrees() -> None:
    truth = np.linspace(0.0, 2.0 * np.pi, 360, endpoint=False)[:, None]
    wobble = np.radians(3.0) * np.where(np.arange(360) % 2, 1.0, -1.0)[:, None]
    found = metrics.align(truth + wobble, truth, circle(8).domain)
    np.testing.assert_allclose(found.degrees, 3.0)


def test_a_circle_gone_round_twice_is_not_a_circle_recovered(rng: np.random.Generator) -> None:
    truth = rng.uniform(0.0, 2.0 * np.pi, (200, 1))
    assert np.median(align(wrapped(2.0 * truth, circle(9)), truth, circle(9).domain).degrees) > 45


def test_there_are_forty_unimodular_matrices_of_size_two() -> None:
    found = _unimodular(2)
    assert len(found) == 40
    assert all(abs(np.linalg.det(A)) == pytest.approx(1.0) for A in found)
    assert np.abs(found[0]).sum() == 2.0


def test_what_cannot_be_aligned_is_refused() -> None:
    Z = np.zeros((3, 1))
    with pytest.raises(InvalidDataError, match=r"must be of shape \(n, 1\), got \(3, 1\) and \(3, 2\)"):
        align(Z, np.zeros((3, 2)), circle(4).domain)
    with pytest.raises(InvalidDataError, match="must be finite"):
        align(Z, np.full((3, 1), np.nan), circle(4).domain)
    intervals = Intervals(np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    with pytest.raises(InvalidParameterError, match="symmetries of a Intervals are not known"):
        align(Z, Z, intervals)
