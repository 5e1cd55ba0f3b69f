"""The residual of kernel map manifolds, its gradient against the paper's own sums, bandwidths and starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.properties.cases import cloud

from prinfold import datasets, select_kmm
from prinfold.exceptions import InvalidDataError
from prinfold.files import _decode, _encode, _Source
from prinfold.kernel_manifolds import kmm_table as residuals
from prinfold.kernel_manifolds import kmm_training
from prinfold.kernel_manifolds.latent_descent import AveragedPoints, LatentDescent, RegressionProblem
from prinfold.loops import DESCENTS, Discrepancy, StoppingRule
from prinfold.numerics.radial_kernels import PROFILES, Gaussian

NONE = kmm_training.ValidationRows(np.empty((0, 5)), np.empty(0))


def setting(**changes) -> kmm_training.KMMSetting:
    return kmm_training.KMMSetting(**{"profile": Gaussian(), "truncation": 5.0, "bandwidth_rule": "mean", **changes})


def some_rows(n: int = 30, seed: int = 0):
    Y = cloud(n, seed=seed)
    return Y - Y.mean(axis=0), np.random.default_rng(seed).uniform(0.5, 2.0, n)


def maps(Y, weight, bandwidth=1.0, truncation=np.inf, **changes) -> kmm_training.KernelMaps:
    return kmm_training.KernelMaps.of(
        kmm_training.CoordinateMap(Y, weight, bandwidth, truncation), setting(**changes), NONE
    )


def evaluate(made: kmm_training.KernelMaps, Z):
    return LatentDescent(made.problem, DESCENTS["lbfgs"], parameters=made.averaged)._evaluate(Z)


# ------------------------------------------------------------------------------------------- the coordinate map


def test_shares_are_the_weights_of_kernel_regression():
    Y, weight = some_rows()
    new = cloud(7, seed=3)
    k = weight * np.exp(-0.5 * np.square(new[:, None] - Y).sum(axis=2) / 0.7**2)
    shares = kmm_training.CoordinateMap(Y, weight, 0.7, np.inf).shares(new).toarray()
    assert_allclose(shares, k / k.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-15)


def test_truncation_leaves_out_what_is_beyond_it_and_nothing_else():
    Y, weight = some_rows(60)
    shares = kmm_training.CoordinateMap(Y, weight, 0.2, 3.0).shares(Y)
    near = np.linalg.norm(Y[:, None] - Y, axis=2) <= 0.6
    assert_array_equal(shares.toarray() > 0, near)
    assert 0 < near.mean() < 0.5, "nothing to leave out, or nothing left"
    assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_a_row_far_from_everything_takes_the_nearest():
    Y, weight = some_rows()
    far = 1e9 * np.ones((1, 5))
    for truncation in (5.0, np.inf):
        shares = kmm_training.CoordinateMap(Y, weight, 1e-3, truncation).shares(far).toarray()
        assert np.isfinite(shares).all()
        assert_allclose(shares.sum(), 1.0)


def test_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch):
    Y, weight = some_rows()
    coordinates = kmm_training.CoordinateMap(Y, weight, 0.5, 5.0)
    whole = coordinates.shares(Y).toarray()
    monkeypatch.setattr(kmm_training, "_BLOCK_PAIRS", 40)
    assert_allclose(coordinates.shares(Y).toarray(), whole, atol=1e-14)


# ------------------------------------------------------------------------------------------------ the gradient


def residual_of_the_paper(Y, Z, bandwidth):
    """J(Z) of (6), per row: every kernel written out."""
    X = coordinates_of_the_paper(Y, Z, bandwidth)
    k = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    return np.square(k @ Y / k.sum(axis=1, keepdims=True) - Y).sum() / len(Y)


def coordinates_of_the_paper(Y, Z, bandwidth):
    K = np.exp(-0.5 * np.square(Y[:, None] - Y).sum(axis=2) / bandwidth**2)
    return K @ Z / K.sum(axis=1, keepdims=True)


def gradient_of_the_paper(Y, Z, bandwidth):
    """(7) to (10) by brute force, with the second kernel of (9) that of f(y_i) − f(y_j) and (10) times the identity."""
    n, Q = Z.shape
    K = np.exp(-0.5 * np.square(Y[:, None] - Y).sum(axis=2) / bandwidth**2)
    A = K / K.sum(axis=1, keepdims=True)
    X = A @ Z
    k = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    S = k.sum(axis=1)
    g = k @ Y / S[:, None]
    out = np.zeros((n, Q))
    for r in range(n):
        for i in range(n):
            slope = -(X[i] - X) * k[i][:, None]  # (n, Q) ∂K/∂(f(y_i) − f(y_j)) for every j
            change = A[i, r] - A[:, r]  # (n,) (10), which multiplies the identity
            moved = slope * change[:, None]
            inner = moved * S[i] - k[i][:, None] * moved.sum(axis=0)
            jacobian = Y.T @ inner / S[i] ** 2  # (D, Q) of (9)
            out[r] += 2.0 * jacobian.T @ (g[i] - Y[i])
    return out / n


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_the_paper_put_right(seed: int):
    Y, _ = some_rows(18, seed)
    Z = np.random.default_rng(seed).standard_normal((18, 2))
    found = evaluate(maps(Y, np.ones(18), 0.8, leave_one_out=False), Z)
    assert_allclose(found.value, residual_of_the_paper(Y, Z, 0.8), rtol=1e-10)
    assert_allclose(found.gradient, gradient_of_the_paper(Y, Z, 0.8), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kernel", sorted(PROFILES))
@pytest.mark.parametrize("leave_one_out", [True, False])
@pytest.mark.parametrize("Q", [1, 2, 3])
def test_the_gradient_is_the_derivative(kernel: str, leave_one_out: bool, Q: int):
    Y, weight = some_rows(20)
    made = maps(Y, weight, 0.5, 5.0, profile=PROFILES[kernel], leave_one_out=leave_one_out)
    Z = 0.3 * np.random.default_rng(1).standard_normal((20, Q))
    direction = np.random.default_rng(2).standard_normal(Z.shape)
    ahead, behind = (evaluate(made, Z + step * direction).value for step in (1e-6, -1e-6))
    slope = np.vdot(evaluate(made, Z).gradient, direction)
    assert abs(slope) > 1e-3, "flat: the comparison would say nothing"
    assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5)


def test_the_cut_of_the_paper_costs_the_gradient_more_than_ours():
    """Three bandwidths leave an error that shows, five do not."""
    data = datasets.make_swiss_roll(300, rng=0)
    Y = data.X - data.X.mean(axis=0)
    start = kmm_training.choose_start(Y, np.ones(300), 2, setting(), NONE, starts=("isomap",), sizes=(10,))
    h = start.maps.coordinates.bandwidth
    exact = evaluate(maps(Y, np.ones(300), h), start.Z).gradient
    off = {
        t: np.linalg.norm(evaluate(maps(Y, np.ones(300), h, t), start.Z).gradient - exact) / np.linalg.norm(exact)
        for t in (3.0, 5.0)
    }
    assert off[5.0] < 1e-3
    assert off[3.0] > 1e-2


def test_without_averaging_it_is_the_objective_of_ukr():
    """A zero bandwidth of f leaves every parameter to itself, as section 4.3 says."""
    Y, weight = some_rows()
    Z = np.random.default_rng(0).standard_normal((30, 2))
    made = maps(Y, weight, 1e-6)
    found, plain = evaluate(made, Z), made.problem.regression.gradient(Z)
    assert_allclose(found.value, plain.value, rtol=1e-12)
    assert_allclose(found.gradient, plain.gradient, rtol=1e-10)


def test_an_infinite_bandwidth_of_f_leaves_the_mean():
    """The zero-dimensional principal surface of section 4.3."""
    Y, weight = some_rows()
    Z = np.random.default_rng(0).standard_normal((30, 2))
    made = maps(Y, weight, 1e9, leave_one_out=False)
    mean = np.average(Y, axis=0, weights=weight)
    expected = np.average(np.square(Y - mean).sum(axis=1), weights=weight)
    assert_allclose(made.problem.error(made.averaged.latent(Z)), expected, rtol=1e-9)


def test_parameters_far_apart_are_the_trivial_minimum_unless_rows_are_left_out():
    Y, weight = some_rows()
    Z = 1e4 * np.random.default_rng(0).standard_normal((30, 2))
    errors = {loo: maps(Y, weight, 0.05, leave_one_out=loo).problem.error(Z) for loo in (True, False)}
    assert errors[False] < 1e-12
    assert errors[True] > 0.1


# ------------------------------------------------------------------------------------------- bandwidths and starts


def test_both_readings_of_the_average_distance():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    weight = np.array([1.0, 1.0, 2.0, 1.0])
    mean = [(1 + 3) / 2, (1 + 2) / 2, (2 + 3) / 2, (4 + 6) / 2]
    assert_allclose(kmm_training.neighbor_bandwidth(X, weight, 2, "mean"), np.average(mean, weights=weight))
    assert_allclose(kmm_training.neighbor_bandwidth(X, weight, 2, "kth"), np.average([3, 2, 3, 6], weights=weight))
    assert_allclose(kmm_training.neighbor_bandwidth(X, weight, 99, "kth"), np.average([7, 6, 4, 7], weights=weight))
    assert kmm_training.neighbor_bandwidth(X[:1], weight[:1], 2, "mean") == 1.0
    assert kmm_training.neighbor_bandwidth(np.zeros((3, 1)), np.ones(3), 2, "mean") == 1.0


def test_bandwidths_follow_the_neighbours_or_are_given():
    Y, weight = some_rows(60)
    start = kmm_training.choose_start(Y, weight, 2, setting(), NONE, starts=("isomap",), sizes=(7,))
    assert_allclose(start.maps.coordinates.bandwidth, kmm_training.neighbor_bandwidth(Y, weight, 7, "mean"))
    X = start.maps.averaged.latent(start.Z)
    assert_allclose(kmm_training.neighbor_bandwidth(X, weight, 7, "mean"), 1.0, rtol=1e-9)
    given = setting(data_bandwidth=0.4, latent_bandwidth=0.3)
    start = kmm_training.choose_start(Y, weight, 2, given, NONE, starts=("pca",), sizes=(7,))
    assert start.maps.coordinates.bandwidth == 0.4
    assert start.latent_bandwidth == 0.3


def test_the_lowest_residual_is_taken():
    Y, weight = some_rows(80)
    start = kmm_training.choose_start(Y, weight, 2, setting(), NONE, starts=("pca", "isomap"), sizes=(5, 12))
    table = start.residuals
    assert table.names == ("pca", "pca", "isomap", "isomap")
    assert table.residuals[table.chosen] == table.residuals.min()
    assert_allclose(start.maps.residual(start.Z), table.residuals.min(), rtol=1e-12)
    X = start.maps.averaged.latent(start.Z)
    assert_allclose(start.maps.problem.validated_error(X), table.residuals.min(), rtol=1e-12)


def test_rows_held_out_choose_by_their_own_error():
    Y, weight = some_rows(80)
    held = kmm_training.hold_out(Y, weight, 0.25)
    assert len(held) == 20
    seen = np.setdiff1d(np.arange(80), held)
    start = kmm_training.choose_start(
        Y[seen],
        weight[seen],
        2,
        setting(),
        kmm_training.ValidationRows(Y[held], weight[held]),
        starts=("isomap",),
        sizes=(8,),
    )
    f = start.maps.coordinates.shares(Y[held]) @ start.Z
    X = start.maps.averaged.latent(start.Z)
    k = weight[seen] * np.exp(-0.5 * np.square(f[:, None] - X).sum(axis=2))
    gap = k @ Y[seen] / k.sum(axis=1, keepdims=True) - Y[held]
    assert_allclose(start.residuals.residuals[0], np.average(np.square(gap).sum(axis=1), weights=weight[held]))


def test_the_principal_plane_stands_in_where_there_are_too_few_rows():
    Y = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]])
    start = kmm_training.choose_start(Y, np.ones(3), 2, setting(), NONE, starts=("isomap",), sizes=(5,))
    assert start.residuals.names == ("pca",)
    assert "different rows are needed" in start.residuals.failures[0]


def test_a_start_that_is_not_finite_is_refused():
    Y, weight = some_rows()
    with pytest.raises(InvalidDataError, match="no embedding could start the coordinates: given failed"):
        kmm_training.choose_start(
            Y, weight, 2, setting(), NONE, starts=("pca",), sizes=(), given=np.full((30, 2), np.nan)
        )


def test_tables_print_join_and_travel():
    Y, weight = some_rows(40)
    one, two = (
        kmm_training.choose_start(Y, weight, Q, setting(), NONE, starts=("isomap",), sizes=(5, 9)).residuals
        for Q in (1, 2)
    )
    table = residuals.join([one, two])
    assert list(table.dimensions) == [1, 1, 2, 2]
    assert table.lowest == {1: one.residuals.min(), 2: two.residuals.min()}
    assert [str(each).count("← chosen") for each in (one, two, table)] == [1, 1, 0]
    assert "isomap" in repr(table)
    arrays: dict = {}
    again = _decode(_encode(table, "table", arrays), _Source(arrays), "table")
    assert str(again) == str(table)
    with pytest.raises(ValueError, match="do not fit together"):
        residuals.Residuals((), *(np.empty(0),) * 5, variance=1.0)


# -------------------------------------------------------------------------------------------------- training


def test_annealing_ends_at_the_bandwidth_itself_and_lower_than_it_began():
    data = datasets.make_spiral(120, rng=1)
    Y = data.X - data.X.mean(axis=0)
    start = kmm_training.choose_start(Y, np.ones(120), 1, setting(), NONE, starts=("pca",), sizes=(10,))
    descent = DESCENTS["lbfgs"]
    Z = kmm_training.anneal(start.maps, start.Z, 4.0, descent, StoppingRule())
    assert start.maps.problem.error(start.maps.averaged.latent(Z)) < start.residuals.residuals[0]
    assert_allclose(kmm_training.anneal(start.maps, start.Z, 1.0, descent, StoppingRule()), start.Z)


def test_annealing_ends_where_the_rule_finds_enough():
    """Half the variance is enough: the kernel stays wide, and the error is not far below."""
    Y = datasets.make_half_circle(120, rng=1).X
    Y = Y - Y.mean(axis=0)
    start = kmm_training.choose_start(Y, np.ones(120), 1, setting(), NONE, starts=("isomap",), sizes=(10,))
    level = 0.5 * start.maps.problem.variance
    Z = kmm_training.anneal(start.maps, start.Z, 30.0, DESCENTS["lbfgs"], Discrepancy(level))
    assert 0.2 * level < start.maps.problem.error(start.maps.averaged.latent(Z)) <= level


def test_of_starts_at_the_noise_the_smoothest_is_chosen_and_otherwise_the_lowest():
    table = residuals.Residuals(
        ("a", "b", "c"),
        *(np.array(each) for each in ([1, 1, 1], [4, 10, 25], [1.0] * 3, [1.0] * 3, [0.1, 0.2, 0.9])),
        variance=2.0,
        levels=np.array([0.05, 0.25, 0.3]),
    )
    assert table.chosen == 1
    assert replace(table, levels=np.array([0.2, 0.25, 1.0])).chosen == 2
    assert replace(table, levels=np.zeros(3)).chosen == 0
    assert replace(table, levels=None).chosen == 0


def test_lost_points_of_a_compact_kernel_come_back():
    Y, weight = some_rows()
    made = maps(Y, weight, 0.05, profile=PROFILES["quartic"])
    Z = 0.2 * np.random.default_rng(0).standard_normal((30, 2))
    Z[0] += 9.0
    outcome = kmm_training.train_maps(made, Z, descent=DESCENTS["lbfgs"], rule=StoppingRule(), max_iter=3, tol=0.0)
    assert outcome.history["fetched"][0] == 1
    assert outcome.history["fetched"][-1] == 0


def test_averaged_parameters_pull_by_the_transpose():
    Y, weight = some_rows()
    A = kmm_training.CoordinateMap(Y, weight, 0.5, 5.0).shares(Y)
    P, G = np.random.default_rng(0).standard_normal((2, 30, 2))
    averaged = AveragedPoints(A)
    assert_allclose(np.vdot(averaged.latent(P), G), np.vdot(P, averaged.pull(G)))
    assert isinstance(maps(Y, weight).problem, RegressionProblem)


def test_a_table_of_several_dimensions_chooses_none():
    X = datasets.make_half_circle(120, rng=0).X
    one, several = (str(select_kmm(X, dimensions=d, n_neighbors=(6, 10))) for d in ((1,), (1, 2)))
    assert one.count("← chosen") == 1
    assert "chosen" not in several
    assert several.startswith("lowest residual by dimension")
    assert "← lowest in 1" in several
    assert "← lowest in 2" in several


def test_an_effective_bandwidth_has_so_many_neighbours_count():
    """The median over rows of (Σk)² / Σk², by the definition, in twenty columns."""
    X = np.random.default_rng(0).standard_normal((150, 20))
    h = kmm_training.neighbor_bandwidth(X, np.ones(150), 6, "effective")
    s = np.square(X[:, None] - X).sum(axis=2)
    np.fill_diagonal(s, np.inf)
    k = np.exp(-0.5 * s / h**2)
    assert_allclose(np.median(k.sum(axis=1) ** 2 / np.square(k).sum(axis=1)), 6.0, rtol=0.01)
    assert h < 0.5 * kmm_training.neighbor_bandwidth(X, np.ones(150), 6, "mean")
