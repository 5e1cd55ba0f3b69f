"""The objective of kernel regression on latent points: every form of it is the definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from prinfold.kernel_manifolds import objective as kernel_regression
from prinfold.kernel_manifolds.objective import DataTarget, GramTarget, KernelRegression, make_target
from prinfold.kernel_manifolds.objective_sums import regression_reference
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian
from prinfold.rows import rows as _arrays


def barrier(mass, weight):
    return 1.0 / (0.1 + mass), -1.0 / (0.1 + mass) ** 2


def data(Y):
    return DataTarget(Y)


def gram(Y):
    return GramTarget(Y @ Y.T)


@pytest.fixture(params=["plain", "dense", "sparse"])
def way(request, monkeypatch):
    """Whether anything is compiled, and whether pairs out of reach are looked at, where a kernel is nil anywhere."""
    monkeypatch.setattr(kernel_regression, "_COMPILED_FROM", 10**9 if request.param == "plain" else 0)
    monkeypatch.setattr(kernel_regression, "_SPARSE_SHARE", 2.0 if request.param == "sparse" else -1.0)
    monkeypatch.setattr(kernel_regression, "_PART_PAIRS", 500)
    return request.param


profiles = pytest.mark.parametrize(
    "profile", [*PROFILES.values(), Gaussian(GAUSSIAN_CUT), Gaussian(2.0)], ids=lambda each: f"{each.name}{each.reach}"
)
alone = pytest.mark.parametrize("alone", [True, False], ids=["alone", "with itself"])
targets = pytest.mark.parametrize("target", [data, gram])


def problem(seed=0, n=150, Q=2, D=4, spread=1.0):
    rng = np.random.default_rng(seed)
    X = spread * rng.normal(size=(n, Q))
    Y = np.sin(X @ rng.normal(size=(Q, D))) + 0.3 * rng.normal(size=(n, D))
    weight = rng.uniform(0.3, 2.0, n)
    return X, Y - np.average(Y, axis=0, weights=weight), weight


def assert_is_the_definition(objective, Y, X, term=None, rtol=1e-9):
    expected = regression_reference(X, Y, objective.weight, objective.profile, objective.leave_one_out, term)
    found = objective.gradient(X, term)
    assert_allclose(found.value, expected.value, rtol=rtol)
    assert_allclose(found.error, expected.error, rtol=rtol, atol=rtol * np.square(Y).sum(axis=1).max())
    assert_allclose(found.mass, expected.mass, rtol=rtol, atol=1e-200)
    assert_allclose(found.gradient, expected.gradient, atol=rtol * np.abs(expected.gradient).max())
    value = objective.value(X, term)
    assert value.gradient is None
    assert_allclose(value.value, found.value, rtol=1e-14)


@pytest.mark.usefixtures("way")
@profiles
@alone
@targets
@pytest.mark.parametrize("term", [None, barrier], ids=["plain", "barrier"])
@pytest.mark.parametrize("Q", [1, 2, 3, 5])
def test_every_form_is_the_definition(profile, alone, target, term, Q):
    X, Y, weight = problem(Q=Q)
    assert_is_the_definition(KernelRegression(target(Y), weight, profile, alone), Y, X, term)


@pytest.mark.usefixtures("way")
@targets
@pytest.mark.parametrize("profile", [PROFILES["gaussian"], PROFILES["quartic"]], ids=["gaussian", "quartic"])
@alone
def test_the_gradient_is_that_of_the_paper(target, profile, alone):
    """Meinicke et al., (23) to (32), with data in columns."""
    X, Y, _ = problem(n=40, spread=0.5)
    n = len(X)
    x, y = X.T, Y.T
    s = np.square(x[:, :, None] - x[:, None, :]).sum(axis=0)
    K, slope = profile.value(s), profile.slope(s)
    if alone:
        np.fill_diagonal(K, 0.0)
        np.fill_diagonal(slope, 0.0)
    B, P = K / K.sum(axis=0), -2 * slope / K.sum(axis=0)
    M = y.T @ y @ (B - np.eye(n))
    Q = P * (M - np.ones((n, n)) @ (M * B))
    expected = 2 / n * x @ (Q + Q.T - np.diag((Q + Q.T).sum(axis=0)))
    found = KernelRegression(target(Y), np.ones(n), profile, alone).gradient(X)
    assert_allclose(found.value, np.trace((B - np.eye(n)).T @ y.T @ y @ (B - np.eye(n))) / n, rtol=1e-11)
    assert_allclose(found.gradient, expected.T, atol=1e-12)


def test_a_conditionally_definite_matrix_will_do_and_need_not_be_centred():
    X, Y, weight = problem()
    apart = np.abs(Y[:, None] - Y[None]).sum(axis=2)  # of the first kind: minus a metric of that kind is so
    profile = PROFILES["gaussian"]
    J = np.eye(len(X)) - 1 / len(X)
    plain, centered = (KernelRegression(GramTarget(G), weight, profile).gradient(X) for G in (-apart, -J @ apart @ J))
    assert_allclose(plain.error, centered.error, rtol=1e-10)
    assert_allclose(plain.gradient, centered.gradient, atol=1e-12)


@pytest.mark.usefixtures("way")
@targets
@profiles
def test_rows_in_any_order(target, profile):
    X, Y, weight = problem()
    order = np.random.default_rng(1).permutation(len(X))
    found = KernelRegression(target(Y), weight, profile).gradient(X)
    turned = KernelRegression(target(Y[order]), weight[order], profile).gradient(X[order])
    assert_allclose(turned.value, found.value, rtol=1e-12)
    assert_allclose(turned.gradient, found.gradient[order], atol=1e-12)


@pytest.mark.usefixtures("way")
@targets
@profiles
def test_blocks_and_threads_change_nothing(target, profile, monkeypatch):
    X, Y, weight = problem(n=400)
    objective = KernelRegression(target(Y), weight, profile)
    whole = objective.gradient(X, barrier)
    monkeypatch.setattr(kernel_regression, "_BLOCK_ENTRIES", 1)
    monkeypatch.setattr(_arrays, "_ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(_arrays.joblib, "cpu_count", lambda: 3)
    with threadpool_limits(3):
        cut = objective.gradient(X, barrier)
    assert_allclose(cut.value, whole.value, rtol=1e-13)
    assert_allclose(cut.error, whole.error, rtol=1e-11, atol=1e-13)
    assert_allclose(cut.gradient, whole.gradient, atol=1e-13)


@pytest.mark.usefixtures("way")
@targets
@pytest.mark.parametrize("profile", [PROFILES["quartic"], PROFILES["triweight"], Gaussian(GAUSSIAN_CUT)])
def test_a_row_without_neighbours_is_predicted_by_the_mean_and_stays(target, profile):
    X, Y, weight = problem(spread=0.3)
    X[7] = 1e3
    found = KernelRegression(target(Y), weight, profile).gradient(X, barrier)
    assert_array_equal(np.flatnonzero(found.empty), [7])
    assert_allclose(found.error[7], np.square(Y[7]).sum(), rtol=1e-12)
    assert found.mass[7] == 0
    assert (found.gradient[7] == 0).all()
    assert np.isfinite(found.gradient).all()
    assert_is_the_definition(KernelRegression(target(Y), weight, profile), Y, X, barrier)
    beside = KernelRegression(target(Y), weight, profile, leave_one_out=False).gradient(X)
    assert not beside.empty.any()
    assert_allclose(beside.error[7], 0, atol=1e-12)


@targets
@pytest.mark.parametrize("away", [50.0, 1e3, 1e6])
def test_a_gaussian_predicts_a_far_row_by_its_nearest_neighbour(target, away):
    X, Y, weight = problem(spread=0.3)
    X[7], X[3] = [away, 0.0], [3.0, 0.0]
    found = KernelRegression(target(Y), weight, PROFILES["gaussian"]).gradient(X, barrier)
    assert not found.empty.any()
    assert_allclose(found.error[7], np.square(Y[7] - Y[3]).sum(), rtol=1e-10)
    assert np.isfinite(found.gradient).all()
    others = np.delete(np.arange(len(X)), 7)
    without = KernelRegression(target(Y[others]), weight[others], PROFILES["gaussian"]).gradient(X[others], barrier)
    assert_allclose(found.error[others], without.error, rtol=1e-9, atol=1e-12)


def test_the_mass_of_a_far_row_draws_it_nowhere():
    """Its neighbours' shares are as large as ever, but not the mass that they are shares of."""
    X, Y, weight = problem()
    X[7] = [50.0, 0.0]
    found = KernelRegression(DataTarget(0 * Y), weight, PROFILES["gaussian"]).gradient(X, barrier)
    assert_allclose(found.gradient[7], 0, atol=1e-200)
    X[7] = [X[:, 0].min() - 33.5, 0.0]
    nearby = KernelRegression(DataTarget(0 * Y), weight, PROFILES["gaussian"]).gradient(X, barrier)
    expected = regression_reference(X, 0 * Y, weight, PROFILES["gaussian"], True, barrier).gradient
    assert 0 < abs(expected[7, 0]) < 1e-230
    assert_allclose(nearby.gradient[7, 0], expected[7, 0], rtol=1e-6)


@targets
@profiles
@pytest.mark.usefixtures("way")
def test_two_rows_far_away_have_each_other(target, profile):
    X, Y, weight = problem()
    X[7] = X[8] = [1e9 + 0.125, 3e8]
    X[8, 0] += 0.5
    found = KernelRegression(target(Y), weight, profile).gradient(X, barrier)
    assert_allclose(found.error[7], np.square(Y[7] - Y[8]).sum(), rtol=1e-9)
    assert_allclose(found.mass[7], weight[8] * profile.value(np.array(0.25)), rtol=1e-12)


def test_a_far_row_between_two_has_the_gradient_of_its_shares():
    """Both are 60 bandwidths away, where exp underflows; their ratio depends on where exactly the row is."""
    Y = np.array([[1.0], [-1.0], [0.5]])
    X = np.array([[-60.0], [60.0], [0.002]])
    objective = KernelRegression(DataTarget(Y), np.ones(3), PROFILES["gaussian"])
    step = 1e-5
    for i in range(3):
        nudge = np.zeros((3, 1))
        nudge[i] = step
        slope = (objective.value(X + nudge).value - objective.value(X - nudge).value) / (2 * step)
        assert abs(slope) > 1 or i < 2
        assert_allclose(objective.gradient(X).gradient[i, 0], slope, rtol=1e-5)


@pytest.mark.usefixtures("way")
@targets
@profiles
@alone
def test_latent_points_that_coincide(target, profile, alone):
    X, Y, weight = problem(n=60)
    X[20:40] = X[0]
    assert_is_the_definition(KernelRegression(target(Y), weight, profile, alone), Y, X, barrier)
    found = KernelRegression(target(Y), weight, profile, alone).gradient(np.zeros(X.shape), barrier)
    assert_allclose(found.gradient, 0, atol=1e-15)
    total = weight.sum() - (weight if alone else 0)
    mean = (weight @ Y - (weight[:, None] * Y if alone else 0)) / np.reshape(total, (-1, 1))
    assert_allclose(found.error, np.square(Y - mean).sum(axis=1), rtol=1e-10)


@pytest.mark.usefixtures("way")
@targets
@profiles
def test_two_rows_predict_each_other(target, profile):
    X, Y = np.array([[0.0], [0.4]]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    found = KernelRegression(target(Y), np.ones(2), profile).gradient(X)
    assert_allclose(found.error, [4.0, 4.0])
    assert_allclose(found.gradient, 0, atol=1e-14)


@pytest.mark.usefixtures("way")
@targets
@pytest.mark.parametrize("profile", [PROFILES["gaussian"], PROFILES["quartic"]], ids=["gaussian", "quartic"])
def test_a_single_row_has_no_neighbours(target, profile):
    found = KernelRegression(target(np.ones((1, 2))), np.ones(1), profile).gradient(np.zeros((1, 1)), barrier)
    assert found.empty.all()
    assert_allclose(found.error, 2.0)
    assert (found.gradient == 0).all()


@pytest.mark.usefixtures("way")
@profiles
def test_single_precision_data_are_taken_in_double(profile):
    X, Y, weight = problem()
    single = Y.astype(np.float32)
    for target in (data, gram, make_target):
        low = KernelRegression(target(single), weight, profile).gradient(X)
        high = KernelRegression(target(single.astype(np.float64)), weight, profile).gradient(X)
        assert low.gradient.dtype == np.float64
        assert_allclose(low.value, high.value, rtol=1e-6)


@pytest.mark.parametrize(("D", "form"), [(25, DataTarget), (26, GramTarget)])
def test_inner_products_are_taken_where_they_cost_less(D, form):
    Y = np.random.default_rng(0).normal(size=(50, D))
    target = make_target(Y)
    assert isinstance(target, form)
    assert_is_the_definition(KernelRegression(target, np.ones(50), PROFILES["gaussian"]), Y, Y[:, :2])


@pytest.mark.parametrize(("D", "spread", "products"), [(40, 30.0, True), (40, 4.0, False), (4, 30.0, False)])
def test_with_few_neighbours_inner_products_are_taken_from_fewer_columns_on(D, spread, products, monkeypatch):
    """About two neighbours at a spread of 30, sixty at 4; the answer is the same in both forms."""
    rng = np.random.default_rng(3)
    Y, X = rng.normal(size=(700, D)), rng.uniform(-spread, spread, (700, 2))
    given, seen = KernelRegression(DataTarget(Y), np.ones(700), PROFILES["quartic"]), []
    near = kernel_regression._near_gradient
    monkeypatch.setattr(
        kernel_regression, "_near_gradient", lambda job, at: seen.append(type(job.target)) or near(job, at)
    )
    evaluation = given.gradient(X)
    assert seen == [GramTarget if products else DataTarget]
    assert_is_the_definition(given, Y, X)
    monkeypatch.setattr(kernel_regression, "_GRAM_COLUMNS", {})
    assert_allclose(evaluation.gradient, given.gradient(X).gradient, atol=1e-12)


def test_inner_products_are_not_taken_where_they_are_much_larger_than_the_table(monkeypatch):
    monkeypatch.setattr(kernel_regression, "_GRAM_ROWS", 10)
    Y = np.zeros((20, 15))
    assert isinstance(make_target(Y), DataTarget)
    assert isinstance(make_target(Y.T), GramTarget)


@pytest.mark.parametrize(("spread", "looked_for"), [(0.2, False), (20.0, True)])
def test_pairs_are_looked_for_where_few_are_within_reach(spread, looked_for, monkeypatch):
    """Both ways give the same, so this asks which was gone."""
    gone = []

    def watched(name, way):
        return lambda *given: gone.append(name) or way(*given)

    for name in ("_near_gradient", "_dense_gradient"):
        monkeypatch.setattr(kernel_regression, name, watched(name, getattr(kernel_regression, name)))
    X, Y, weight = problem(n=600, spread=spread)
    KernelRegression(DataTarget(Y), weight, PROFILES["quartic"]).value(X)
    KernelRegression(DataTarget(Y), weight, PROFILES["gaussian"]).value(X)
    KernelRegression(DataTarget(Y[:80]), weight[:80], PROFILES["quartic"]).value(X[:80])
    assert gone == ["_near_gradient" if looked_for else "_dense_gradient", "_dense_gradient", "_dense_gradient"]


@pytest.mark.usefixtures("way")
@targets
@profiles
def test_the_origin_is_anywhere(target, profile):
    X, Y, weight = problem()
    X = np.round(X, 3)  # so that moving them changes nothing but the last digits
    objective = KernelRegression(target(Y), weight, profile)
    here, there = objective.gradient(X), objective.gradient(X + 1e6)
    assert_allclose(there.value, here.value, rtol=1e-8)
    assert_allclose(there.gradient, here.gradient, atol=1e-8 * np.abs(here.gradient).max())


def test_a_mass_may_be_barred_from_falling():
    """The term alone: with nothing to predict, points that repel emptiness come together."""
    X, Y, weight = problem(n=30)
    objective = KernelRegression(DataTarget(0 * Y), weight, PROFILES["gaussian"])
    before = objective.gradient(X, barrier)
    after = objective.value(X - 0.1 * before.gradient, barrier)
    assert after.value < before.value
    assert_allclose(before.value, weight @ barrier(before.mass, weight)[0] / weight.sum(), rtol=1e-13)


@pytest.mark.usefixtures("way")
@profiles
def test_latent_points_that_are_no_numbers_are_not_passed_over(profile):
    X, Y, weight = problem()
    X[3, 1] = np.nan
    with np.errstate(invalid="ignore"):
        assert np.isnan(KernelRegression(DataTarget(Y), weight, profile).value(X).value)
