"""Gaussian sums at many places, held against their definition, against differences and against their stated bounds."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from prinfold.density._kernel_sums_jit import sum_balls
from prinfold.density.dense_kernel_sums import DenseSums
from prinfold.density.kernel_moments import KernelMoments, moments_at_place
from prinfold.density.kernel_sums import ACCURACY, Accuracy, BallSums, make_sums
from prinfold.density.patches import PatchedSums, make_patched_sums
from prinfold.density.strips import QueryCells, compress, make_query_cells, reach_within

DIMENSIONS = [1, 2, 3, 5, 12]
dimensions = pytest.mark.parametrize("D", DIMENSIONS)
EXACT, FINE = Accuracy(0.0), Accuracy(1e-15)
WAYS = {
    "balls": lambda C, w: BallSums(C, w, EXACT),
    "reach": lambda C, w: BallSums(C, w, FINE),
    "products": DenseSums,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def cloud(D, m=300, extent=4.0, seed=0):
    """Centres about a curve, which few of the balls reach all of, with uneven weights."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, m)
    curve = np.stack([np.sin((1 + 0.5 * d) * t + d) for d in range(D)], axis=1)
    return extent * curve + 0.7 * rng.normal(size=(m, D)), rng.uniform(0.2, 3.0, m)


def places(C, n=60, off=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return C[rng.choice(len(C), n)] + off * rng.normal(size=(n, C.shape[1]))


def reference(C, w, Z):
    """By the definition, relative to the largest term."""
    d = C - Z[:, None]
    exponent = np.log(w / w.sum()) - 0.5 * np.square(d).sum(axis=2)
    most = exponent.max(axis=1)
    k = np.exp(exponent - most[:, None])
    share = k / k.sum(axis=1, keepdims=True)
    shift = np.einsum("nm,nmd->nd", share, d)
    d = d - shift[:, None]
    return KernelMoments(most + np.log(k.sum(axis=1)), shift, np.einsum("nm,nmd,nme->nde", share, d, d))


def slopes(function, Z, h):
    """(n, …, D) central differences."""
    steps = h * np.eye(Z.shape[1])
    return np.stack([(function(Z + e) - function(Z - e)) / (2 * h) for e in steps], axis=-1)


def assert_same(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, **tolerance)


# ------------------------------------------------------------------------------------------- the definition


@ways
@dimensions
@pytest.mark.parametrize("off", [0.0, 1.0, 30.0])
def test_sums_are_their_definition(way, D, off):
    C, w = cloud(D)
    Z = places(C, off=off)
    sums = way(C, w)
    expected = reference(C, w, Z)
    assert_same(sums.moments(Z), expected, rtol=1e-11, atol=1e-11)
    assert_allclose(sums.log_sum(Z), expected.log_sum, rtol=1e-12)


@ways
@dimensions
def test_shift_and_spread_are_the_derivatives_of_the_log_sum(way, D):
    C, w = cloud(D)
    Z, sums = places(C, 20), way(C, w)
    at = sums.moments(Z)
    assert_allclose(at.shift, slopes(sums.log_sum, Z, 1e-5), atol=1e-8)
    assert_allclose(at.spread - np.eye(D), slopes(lambda z: sums.moments(z).shift, Z, 1e-5), atol=1e-7)


@dimensions
def test_a_single_place_on_its_own_is_like_the_others(D):
    C, w = cloud(D)
    Z = places(C, 5, off=20.0)
    found = [moments_at_place(z, C, np.log(w / w.sum())) for z in Z]
    assert_same(
        KernelMoments._make(map(np.stack, zip(*found, strict=True))), reference(C, w, Z), rtol=1e-11, atol=1e-11
    )


@ways
def test_one_centre_and_no_place(way):
    sums = way(np.array([[1.0, 2.0]]), np.array([3.0]))
    at = sums.moments(np.array([[1.0, 4.0]]))
    assert_same(at, (np.array([-2.0]), np.array([[0.0, -2.0]]), np.zeros((1, 2, 2))), atol=1e-15)
    nothing = sums.moments(np.empty((0, 2)))
    assert [part.shape for part in nothing] == [(0,), (0, 2), (0, 2, 2)]
    assert sums.log_sum(np.empty((0, 2))).shape == (0,)


# --------------------------------------------------------------------------------------------- invariances


@dimensions
@pytest.mark.parametrize("accuracy", ACCURACY.values(), ids=ACCURACY.keys())
def test_a_place_does_not_depend_on_the_others_to_the_last_bit(D, accuracy):
    C, w = cloud(D, 2000 if D < 4 else 300, extent=8.0)
    sums = BallSums(C, w, accuracy)
    Z = np.concatenate([places(C, 30, off=1.0), places(C, 8, off=9.0), places(C, 3, off=1e3), np.full((1, D), 1e150)])
    together = sums.moments(Z)
    for i in range(len(Z)):
        one = sums.moments(Z[i : i + 1])
        for part, whole in zip(one, together, strict=True):
            assert_array_equal(part[0], whole[i])
    turned = sums.moments(Z[::-1])
    assert_array_equal(turned.spread[::-1], together.spread)


@pytest.mark.parametrize("D", [2, 5])
def test_threads_change_nothing(D, monkeypatch):
    C, w = cloud(D)
    Z, sums = places(C, 400), BallSums(C, w, FINE)
    expected = sums.moments(Z)
    monkeypatch.setattr("prinfold.density.strips._ROWS_ON_THREADS", 1)
    monkeypatch.setattr("prinfold.density.dense_kernel_sums._ROWS_ON_THREADS", 1)
    monkeypatch.setattr("prinfold.density.strips._ROWS_PER_PART", 37)
    with threadpool_limits(2):
        assert_same(sums.moments(Z), expected, rtol=0)
        assert_same(DenseSums(C, w).moments(Z), expected, rtol=1e-11, atol=1e-11)


@ways
@dimensions
def test_repeats_are_weights_and_order_is_nothing(way, D):
    rng = np.random.default_rng(3)
    C, _ = cloud(D, 60)
    times = rng.integers(1, 5, 60)
    mixed = rng.permutation(np.repeat(np.arange(60), times))
    Z = places(C)
    assert_same(way(C[mixed], np.ones(len(mixed))).moments(Z), way(C, times * 1.0).moments(Z), rtol=1e-11, atol=1e-11)


@ways
@pytest.mark.parametrize("D", [2, 3, 5, 12])
def test_rigid_motions_carry_through(way, D):
    rng = np.random.default_rng(4)
    C, w = cloud(D)
    Z, b = places(C), 7.0 * rng.normal(size=D)
    Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
    before, after = way(C, w).moments(Z), way(C @ Q.T + b, w).moments(Z @ Q.T + b)
    turned = KernelMoments(before.log_sum, before.shift @ Q.T, Q @ before.spread @ Q.T)
    assert_same(after, turned, rtol=1e-10, atol=1e-10)


# ------------------------------------------------------------------------------------------ what is far away


@ways
@dimensions
@pytest.mark.parametrize("far", [50.0, 1e3, 1e5])
def test_far_from_all_centres_the_nearest_decides(way, D, far):
    C, w = cloud(D)
    direction = np.eye(D)[0]
    Z = C.mean(axis=0) + far * np.stack([direction, -direction])
    at, expected = way(C, w).moments(Z), reference(C, w, Z)
    assert_allclose(at.log_sum, expected.log_sum, rtol=1e-13)
    assert_allclose(at.shift, expected.shift, rtol=1e-13, atol=1e-4 if far > 1e4 else 1e-8)
    if far < 1e4:  # beyond that, the definition loses the digits that are kept here
        assert_allclose(at.spread, expected.spread, atol=1e-7)
    nearest = C[(Z @ C.T).argmax(axis=1), 0]
    assert_allclose((Z + at.shift)[:, 0], nearest, atol=10 / far + 0.3)


@ways
@dimensions
@pytest.mark.parametrize("far", [1e8, 1e50, 1e150, 1e300])
def test_nothing_is_too_far_to_be_a_number(way, D, far):
    C, w = cloud(D)
    at = way(C, w).moments(np.stack([np.full(D, far), np.full(D, -far)]))
    assert all(np.isfinite(part).all() for part in at)
    assert (at.log_sum < -1e15).all()
    assert np.abs(at.spread).max() < 100.0


@ways
@pytest.mark.parametrize("D", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("apart", [1e5, 1e9, 1e30])
def test_clouds_far_apart_do_not_disturb_each_other(way, D, apart):
    C, w = cloud(D, 100)
    C = np.round(C * 2**10) / 2**10
    there = np.full(D, apart)
    both = way(np.concatenate([C, C[:40] + there]), np.concatenate([w, w[:40]]))
    share = np.log(w.sum() / (w.sum() + w[:40].sum()))
    Z = places(C, 10)
    at, expected = both.moments(Z), reference(C, w, Z)
    assert_same(at, expected._replace(log_sum=expected.log_sum + share), rtol=1e-9, atol=1e-9)
    Z = np.round(places(C[:40], 10) * 2**10) / 2**10
    at = both.moments(Z + there)
    if apart < 1e12:  # beyond that, clouds have no shape
        expected = reference(C[:40], w[:40], Z + 0.0)
        assert_allclose(at.shift, expected.shift, atol=1e-5 if D > 3 else 1e-9)
    assert all(np.isfinite(part).all() for part in at)


# -------------------------------------------------------------------------------------------- stated bounds


@dimensions
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("off", [0.0, 3.0, 12.0])
def test_what_is_out_of_reach_is_within_the_tolerance_everywhere(D, tolerance, off):
    C, w = cloud(D, 500, extent=12.0)
    Z, sums = places(C, 200, off=off), BallSums(C, w, Accuracy(tolerance))
    at, expected = sums.moments(Z), reference(C, w, Z)
    lost = 1.0 - np.exp(at.log_sum - expected.log_sum)
    assert (lost <= tolerance + 1e-12).all()
    assert (lost >= -1e-12).all()
    second = np.einsum("nii->n", expected.spread) + np.square(expected.shift).sum(axis=1)
    nearest = np.asarray(cKDTree(C).query(Z)[0])
    bound = tolerance * (sums.reach**2 + nearest**2 + second) + 1e-10
    found = np.einsum("nii->n", at.spread) + np.square(at.shift).sum(axis=1)
    assert (np.abs(found - second) <= bound).all()


def test_something_is_out_of_reach():
    C, w = cloud(2, 500, extent=12.0)
    Z = places(C, 200, off=0.0)
    coarse = BallSums(C, w, Accuracy(0.5)).log_sum(Z)
    assert (coarse < reference(C, w, Z).log_sum - 1e-6).any()
    assert reach_within(w, 0.5) == pytest.approx(np.sqrt(2 * np.log(w.sum() / (0.5 * w.min()))))
    assert BallSums(C, w, EXACT).reach == inf


def test_weights_may_differ_by_many_orders():
    C, w = cloud(2, 400)
    w = w * 10.0 ** np.random.default_rng(5).uniform(-12, 3, 400)
    Z = places(C, 100, off=3.0)
    for tolerance in (1e-6, 0.0):
        at = BallSums(C, w, Accuracy(tolerance)).moments(Z)
        assert_allclose(at.log_sum, reference(C, w, Z).log_sum, atol=1e-6 if tolerance else 1e-11)


def crowded(D, n=20_000, seed=0):
    """Points so dense that cells of a quarter of a bandwidth hold several, and some lone ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * [0.6, 1.0, 0.5][:D]
    return np.concatenate([X, 3.0 * rng.normal(size=(50, D))]), rng.uniform(0.5, 2.0, n + 50)


@pytest.mark.parametrize("D", [1, 2, 3])
@pytest.mark.parametrize("side", [0.6, 0.4, 0.25])
def test_crowds_change_sums_by_no_more_than_taylors_remainder(D, side):
    C, w = crowded(D)
    Z = places(C, 200, off=0.5)
    sums = BallSums(C, w, Accuracy(1e-12, side))
    merged = sums._compressed[0]
    assert len(merged.weight) > 5
    assert merged.lone.sum() < 0.7 * len(C)
    assert merged.third <= w.sum() * (np.sqrt(D) * side / 2) ** 3 * 8  # a mean may be anywhere in its cell
    total, slope, bend = (
        np.abs(a - b) for a, b in zip(raw(sums.moments(Z), w), raw(reference(C, w, Z), w), strict=True)
    )
    bound = merged.third / 6 + 1e-9 * w.sum()
    assert (total <= 1.3802 * bound).all()
    assert (np.linalg.norm(slope, axis=1) <= 3 * bound).all()
    assert (np.linalg.norm(bend, ord=2, axis=(1, 2)) <= 5.7833 * bound).all()
    assert total.max() > 1e-8 * w.sum()  # they are something else than the points


def raw(at, w):
    """Σ w k, its gradient and its Hessian."""
    D = at.shift.shape[1]
    total = w.sum() * np.exp(at.log_sum)
    second = at.spread + at.shift[:, :, None] * at.shift[:, None, :] - np.eye(D)
    return total, total[:, None] * at.shift, total[:, None, None] * second


def test_the_remainders_are_the_largest_derivatives_of_a_kernel():
    t = np.linspace(-8, 8, 200_001)
    for order, number in ((3, 1.3802), (4, 3.0), (5, 5.7833)):
        hermite = np.polynomial.hermite_e.hermeval(t, np.eye(order + 1)[order])
        largest = np.abs(hermite * np.exp(-0.5 * t**2)).max()
        assert largest <= number
        assert largest == pytest.approx(number, rel=1e-4)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_smaller_cells_change_sums_by_the_cube_of_their_side(D):
    C, w = crowded(D)
    Z = places(C, 100, off=0.3)
    exact = reference(C, w, Z)
    error = [np.abs(BallSums(C, w, Accuracy(1e-12, side)).moments(Z).shift - exact.shift).max() for side in (0.5, 0.25)]
    assert error[0] < 5e-3
    assert error[1] < error[0] / 6


@pytest.mark.parametrize("D", [1, 2, 3])
def test_crowds_are_one_smooth_function_with_its_own_derivatives(D):
    C, w = crowded(D)
    sums, Z = BallSums(C, w, Accuracy(1e-15, 0.5)), places(C, 20, off=0.5)
    at = sums.moments(Z)
    assert np.abs(at.shift - reference(C, w, Z).shift).max() > 1e-6
    assert_allclose(at.shift, slopes(sums.log_sum, Z, 1e-5), atol=1e-8)
    assert_allclose(at.spread - np.eye(D), slopes(lambda z: sums.moments(z).shift, Z, 1e-5), atol=1e-7)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_on_the_outskirts_crowds_are_undone(D):
    C, w = (part[:20_000] for part in crowded(D))
    sums, Z = BallSums(C, w, Accuracy(1e-9, 0.5)), np.full((4, D), [[5.0], [6.0], [9.0], [80.0]])
    assert sums._compressed is not None
    assert (np.linalg.norm(reference(C, w, Z).shift, axis=1) > 3).all()
    assert_same(sums.moments(Z), reference(C, w, Z), rtol=1e-7, atol=1e-6)


def test_crowds_are_made_only_where_they_pay():
    C, w = cloud(2, 300)
    assert BallSums(C, w, ACCURACY["compressed"])._compressed is None
    made = compress(C, w, 1e-9, 2)
    assert made.lone.all()
    assert made.third == 0.0
    assert len(made.weight) == len(made.mean) == len(made.moment) == 0
    C, w = cloud(5, 300, extent=0.0)
    assert BallSums(0.01 * C, w, ACCURACY["compressed"])._compressed is None


@pytest.mark.parametrize("D", [2, 3])
def test_few_pairs_are_looked_at_in_vain(D):
    rng = np.random.default_rng(0)
    C = rng.uniform(0, 25, (4000, D))
    sums = BallSums(C, np.ones(4000), Accuracy())
    Y = sums._reorder(C[:500])
    out = sums.moments(C[:500])
    looked = sum_balls(Y, sums._group(Y, np.arange(500)), *sums._plain, sums._axes, *out)
    in_reach = np.sum(cKDTree(C).query_ball_point(C[:500], sums.reach, return_length=True))
    assert in_reach <= looked <= (1.25 if D == 2 else 1.6) * in_reach


def test_groups_do_not_hang_on_what_else_is_there():
    Y = np.random.default_rng(0).normal(size=(50, 3)) * 4
    groups = make_query_cells(Y, np.arange(50), 1.0, 4.0, np.zeros(3))
    assert isinstance(groups, QueryCells)
    assert_array_equal(np.sort(groups.rows), np.arange(50))
    for g in range(len(groups.half)):
        rows = groups.rows[groups.cuts[g] : groups.cuts[g + 1]]
        assert (np.abs(Y[rows] - groups.origin[g]) <= groups.half[g]).all()
    assert len(np.unique(groups.origin, axis=0)) == len(groups.origin)
    # Where cells cannot be numbered they are told apart all the same.
    far = make_query_cells(
        np.array([[0.0, 0, 0], [1e30, -1e30, 1e30], [0.2, 0.2, 0.2]]), np.arange(3), 1.0, 4.0, np.zeros(3)
    )
    assert sorted(np.diff(far.cuts)) == [1, 2]


# -------------------------------------------------------------------------------------------------- patches


class OneKernel:
    """A single kernel at c, by the definition."""

    def __init__(self, c):
        self.c = c

    def moments(self, Z):
        return reference(self.c[None], np.ones(1), Z)

    def log_sum(self, Z):
        return self.moments(Z).log_sum


@pytest.mark.parametrize("D", [1, 2, 3])
def test_on_a_patch_a_single_kernel_is_off_by_no_more_than_stated(D):
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.uniform(0, 0.4, (100, D)), 0.4 * rng.integers(0, 2, (10, D)) - 1e-12])
    Z = Z[(Z >= 0).all(axis=1)]
    worst = np.zeros(3)
    for r in np.linspace(0, 6, 13):
        for direction in [np.eye(D)[0], np.ones(D), *rng.normal(size=(4, D))]:
            kernel = OneKernel(0.2 + r * direction / np.linalg.norm(direction))
            found = PatchedSums(kernel, np.zeros(D), np.zeros((1, D))).moments(Z)
            off = [a - b for a, b in zip(raw(found, np.ones(1)), raw(kernel.moments(Z), np.ones(1)), strict=True)]
            size = np.abs(off[0]), np.linalg.norm(off[1], axis=1), np.linalg.norm(off[2], ord=2, axis=(1, 2))
            worst = np.maximum(worst, [each.max() for each in size])
    assert (worst <= [8e-10, 3e-8, 8e-7]).all()
    assert (worst >= [1e-12, 1e-11, 1e-9]).all()


@pytest.mark.parametrize("D", [1, 2, 3])
def test_patches_are_the_sums_and_their_own_derivatives(D):
    C, w = crowded(D, 8000)
    balls = BallSums(C, w, FINE)
    sums = make_patched_sums(balls, C)
    Z = np.concatenate([places(C, 300, off=0.2), 8.0 + np.arange(5 * D).reshape(5, D)])
    on = sums._patch_of(Z) >= 0
    assert 0.5 < on.mean() < 1.0
    at, expected = sums.moments(Z), reference(C, w, Z)
    for one, two, atol in zip(at, expected, (1e-8, 1e-7, 2e-6), strict=True):
        assert_allclose(one, two, atol=atol)
    assert_allclose(sums.log_sum(Z), at.log_sum, rtol=1e-13)
    inside = Z[on][:20]
    inside = sums._center[sums._patch_of(inside)] + 0.9 * (inside - sums._center[sums._patch_of(inside)])
    assert_allclose(sums.moments(inside).shift, slopes(sums.log_sum, inside, 1e-5), atol=1e-9)
    bend = slopes(lambda z: sums.moments(z).shift, inside, 1e-5)
    assert_allclose(sums.moments(inside).spread - np.eye(D), bend, atol=1e-8)


@pytest.mark.parametrize("D", [1, 2, 3])
@pytest.mark.parametrize("accuracy", ["truncated", "compressed"])
def test_what_a_patch_gives_does_not_hang_on_what_was_asked_before(D, accuracy):
    C, w = crowded(D, 4000)
    Z = np.concatenate([places(C, 60, off=0.2), np.full((1, D), 1e150)])
    together = make_sums(C, w, ACCURACY[accuracy]).moments(Z)
    other = make_sums(C, w, ACCURACY[accuracy])
    assert isinstance(other, PatchedSums)
    for i in np.random.default_rng(1).permutation(len(Z)):
        for one, whole in zip(other.moments(Z[i : i + 1]), together, strict=True):
            assert_array_equal(one[0], whole[i])


def test_patches_are_made_for_neighbourhoods_only_and_on_threads_too(monkeypatch):
    C, w = crowded(2, 4000)
    sums = make_patched_sums(BallSums(C, w, FINE), C)
    sums.log_sum(np.zeros((1, 2)))
    assert 0 < sums._made.sum() <= 16
    whole = sums.moments(C)
    monkeypatch.setattr("prinfold.density.patches._ROWS_PER_PART", 100)
    monkeypatch.setattr("prinfold.density.patches._PATCHES_AT_ONCE", 7)
    again = make_patched_sums(BallSums(C, w, FINE), C)
    with threadpool_limits(2):
        assert_same(again.moments(C), whole, rtol=0)
    assert again._made.all()


def test_patches_are_made_only_where_they_pay():
    C, w = cloud(2, 300, extent=30.0)
    sums = BallSums(C, w, FINE)
    assert make_patched_sums(sums, C) is sums
    assert make_patched_sums(sums, np.zeros((1000, 4))) is sums
    crowd, _ = crowded(2, 3000)
    far = np.concatenate([crowd, [[1e100, -1e100]]])
    both = make_patched_sums(BallSums(far, np.ones(len(far)), FINE), far)
    assert isinstance(both, PatchedSums)
    assert_allclose(both.moments(crowd[:9]).shift, reference(crowd, np.ones(len(crowd)), crowd[:9]).shift, atol=1e-7)


# ---------------------------------------------------------------------------------------------- which way


def test_the_way_is_chosen_by_number_dimension_and_reach():
    rng = np.random.default_rng(0)

    def way(m, D, width, accuracy="truncated"):
        return type(make_sums(rng.uniform(0, width, (m, D)), np.ones(m), ACCURACY[accuracy]))

    assert way(100, 2, 10.0) is DenseSums
    assert way(400, 2, 10.0) is BallSums
    assert way(400, 2, 1.0) is BallSums
    assert way(600, 2, 1.0) is PatchedSums
    assert way(600, 2, 1.0, "exact") is BallSums
    assert way(400, 5, 1.0) is BallSums
    assert way(400, 12, 1.0) is DenseSums
    assert way(400, 12, 100.0) is BallSums
    assert way(400, 12, 100.0, "exact") is DenseSums
