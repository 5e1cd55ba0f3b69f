"""Loops that persist, and the angles round them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prinfold import datasets
from prinfold.geometry import persistent_loops as cycles
from prinfold.geometry.persistent_loops import circular_coordinates, farthest_points, persistent_loops
from prinfold.geometry.symmetry import align
from prinfold.latent import circle, torus


def ring(n: int, radius: float = 1.0) -> np.ndarray:
    angle = 2 * np.pi * np.arange(n) / n
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def clifford(n: int) -> np.ndarray:
    U = torus(n, n).nodes
    return np.concatenate([np.cos(U), np.sin(U)], axis=1)


def betti(distance: np.ndarray, scale: float) -> int:
    """Holes of the complex by brute force: edges less the ranks of both boundary maps."""
    edges = [e for e in combinations(range(len(distance)), 2) if distance[e] <= scale]
    index = {e: k for k, e in enumerate(edges)}
    lower = np.zeros((len(distance), max(len(edges), 1)))
    for k, (i, j) in enumerate(edges):
        lower[i, k], lower[j, k] = -1.0, 1.0
    corners = [t for t in combinations(range(len(distance)), 3) if all(e in index for e in combinations(t, 2))]
    upper = np.zeros((max(len(edges), 1), max(len(corners), 1)))
    for k, (a, b, c) in enumerate(corners):
        upper[index[a, b], k], upper[index[b, c], k], upper[index[a, c], k] = 1.0, 1.0, -1.0
    return len(edges) - np.linalg.matrix_rank(lower) - np.linalg.matrix_rank(upper)


@pytest.mark.parametrize("seed", range(6))
def test_as_many_loops_live_at_a_scale_as_the_complex_has_holes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "_SHORTEST_LIFE", 1.0)
    X = np.random.default_rng(seed).normal(size=(16, 2 + seed % 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True) ** 0.8  # hollow, so that there are holes
    distance = cdist(X, X)
    loops, radius = persistent_loops(distance), distance.max(axis=1).min()
    lengths = np.unique(distance[np.triu_indices(16, 1)])
    scales = (lengths[:-1] + lengths[1:])[::4] / 2
    found = [sum(loop.birth <= s < loop.death for loop in loops) for s in scales if s < radius]
    assert found == [betti(distance, s) for s in scales if s < radius]
    assert max(found) > 0


def test_a_loop_of_even_points_is_born_with_its_sides_and_dies_with_its_triangle() -> None:
    """Rips complexes of a circle: a hole until triangles as large as the inscribed equilateral one cover it."""
    loop, *others = persistent_loops(cdist(ring(60), ring(60)))
    assert loop.birth == pytest.approx(2 * np.sin(np.pi / 60))
    assert loop.death == pytest.approx(np.sqrt(3.0))
    assert not others


@pytest.mark.parametrize("seed", range(3))
def test_a_cocycle_adds_up_to_zero_round_every_triangle_while_it_lives(seed: int) -> None:
    X = datasets.make_torus(70, kind="flat", radii=(1.0, 1.0), rng=seed).X
    distance = cdist(X, X)
    for loop in persistent_loops(distance)[:4]:
        near = distance < loop.death
        value = np.where(near, loop.cocycle, 0)
        assert not ((value + value.T) % cycles._PRIME).any()
        i, j, k = np.array([t for t in combinations(range(70), 3) if near[t[:2]] and near[t[1:]] and near[t[::2]]]).T
        assert not ((value[i, j] + value[j, k] + value[k, i]) % cycles._PRIME).any()


def test_even_points_on_a_circle_get_even_angles() -> None:
    distance = cdist(ring(30), ring(30))
    found = circular_coordinates(distance, persistent_loops(distance))
    assert found is not None
    truth = 2 * np.pi * np.arange(30)[:, None] / 30
    np.testing.assert_allclose(align(found.angles, truth, circle(4).domain).distance, 0.0, atol=1e-6)


def test_even_points_on_a_torus_get_even_angles_of_both_circles() -> None:
    X = clifford(12)
    distance = cdist(X, X)
    found = circular_coordinates(distance, persistent_loops(distance)[:2])
    assert found is not None
    np.testing.assert_allclose(align(found.angles, torus(12, 12).nodes, torus(3, 3).domain).distance, 0.0, atol=1e-5)


@pytest.mark.parametrize("windings", [(2, 3), (2, 5), (3, 4)])
def test_a_knot_has_one_loop_that_outlives_all_others(windings: tuple[int, int]) -> None:
    data = datasets.make_knot(
        400, noise=0.02, windings=windings, radii=(2.0, 1.0), rng=0, n_features=6, sampling="grid"
    )
    marks = farthest_points(data.X, 150)
    distance = cdist(data.X[marks], data.X[marks])
    first, second, *_ = persistent_loops(distance)
    assert first.death / first.birth > 1.4 * second.death / second.birth
    found = circular_coordinates(distance, [first])
    assert found is not None
    left = align(found.angles, data.latent[marks[found.kept]], circle(4).domain)
    assert np.median(left.degrees) < 20


def test_loops_turn_move_and_scale_with_the_points() -> None:
    X = datasets.make_cylinder(90, rng=0, n_features=5).X
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    moved = 7.0 * X @ Q + 3.0
    plain, other = persistent_loops(cdist(X, X)), persistent_loops(cdist(moved, moved))
    assert len(plain) == len(other) > 0
    for a, b in zip(plain, other, strict=True):
        assert (7 * a.birth, 7 * a.death) == pytest.approx((b.birth, b.death))
    first = circular_coordinates(cdist(X, X), plain[:1])
    again = circular_coordinates(cdist(moved, moved), other[:1])
    assert first is not None
    assert again is not None
    np.testing.assert_allclose(align(first.angles, again.angles, circle(4).domain).distance, 0.0, atol=1e-6)


def test_the_order_of_the_points_does_not_matter() -> None:
    X = datasets.make_torus(80, kind="flat", radii=(1.0, 1.0), rng=3).X
    order = np.random.default_rng(0).permutation(80)
    plain, other = (persistent_loops(cdist(Y, Y)) for Y in (X, X[order]))
    np.testing.assert_allclose([loop[:2] for loop in plain], [loop[:2] for loop in other])


def test_a_sheared_basis_of_loops_is_made_short() -> None:
    rng = np.random.default_rng(0)
    forms = np.linalg.qr(rng.normal(size=(40, 3)))[0] * [1.0, 2.0, 3.0]
    shear = np.array([[1.0, 2.0, -1.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]])
    change = cycles._shortest_combination(forms @ shear.T)
    assert abs(np.linalg.det(change)) == pytest.approx(1.0)
    short = np.linalg.norm(forms @ shear.T @ change.T, axis=0)
    np.testing.assert_allclose(np.sort(short), [1.0, 2.0, 3.0])


def test_loops_that_are_not_there_together_have_no_angles() -> None:
    apart = np.concatenate([ring(40, 0.1), 5.0 + ring(20, 3.0)])  # the small one is filled before the large one closes
    distance = cdist(apart, apart)
    loops = persistent_loops(distance)
    assert len(loops) == 2
    assert circular_coordinates(distance, loops) is None
    alike = np.concatenate([ring(40), 50.0 + ring(30)])  # there together, but in two pieces
    distance = cdist(alike, alike)
    assert circular_coordinates(distance, persistent_loops(distance)) is None


def test_points_without_a_hole_have_no_lasting_loop() -> None:
    line = np.linspace(0.0, 1.0, 30)[:, None]
    assert persistent_loops(cdist(line, line)) == []
    assert persistent_loops(np.zeros((3, 3))) == []


def test_farthest_points_cover_evenly_and_stop_at_repeats() -> None:
    X = datasets.make_circle(300, noise=0.0, concentration=2.0, rng=0).X
    marks = farthest_points(X, 40)
    cover = cdist(X[marks], X).min(axis=0).max()
    apart = cdist(X[marks], X[marks])[np.triu_indices(40, 1)].min()
    assert len(np.unique(marks)) == 40
    assert apart >= cover  # what is left over is nearer to the marks than they are to each other
    assert len(farthest_points(np.repeat(X[:3], 5, axis=0), 10)) == 3
