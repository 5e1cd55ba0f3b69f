"""Training of unsupervised kernel regression: where it ends, what holds it, and what becomes of lost latent points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist

from prinfold import datasets
from prinfold.kernel_manifolds import latent_descent, ukr_training
from prinfold.kernel_manifolds.noise_level import noise_level
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.starts import choose_start
from prinfold.loops import DESCENTS, Discrepancy, Outcome, StoppingRule, StopReason
from prinfold.numerics.radial_kernels import PROFILES

LBFGS = DESCENTS["lbfgs"]


def problem(X, kernel="gaussian", weight=None, leave_one_out=True):
    Y = X - X.mean(axis=0)
    weight = np.ones(len(Y)) if weight is None else weight
    return latent_descent.RegressionProblem(
        Y, KernelRegression(make_target(Y), weight, PROFILES[kernel], leave_one_out)
    )


def half_circle(n=120, noise=0.1, seed=0, **settings):
    return datasets.make_half_circle(n, noise=noise, rng=seed, **settings)


def started(given, Q=1, **settings):
    start = choose_start(
        given.Y, given.weight, Q, given.error, given.regression.profile, starts=("isomap",), **settings
    )
    return start.latent


def test_the_error_is_the_definition():
    """(10): each row against the kernel-weighted mean of the others."""
    rng = np.random.default_rng(0)
    given, X = problem(rng.normal(size=(30, 4))), rng.normal(size=(30, 2))
    k = np.exp(-0.5 * cdist(X, X, "sqeuclidean")) * (1 - np.eye(30))
    predicted = k @ given.Y / k.sum(axis=1, keepdims=True)
    assert_allclose(given.error(X), np.square(given.Y - predicted).sum(axis=1).mean(), rtol=1e-12)
    assert_allclose(given.validated_error(X), given.error(X), rtol=1e-12)
    plain = problem(given.Y, leave_one_out=False)
    assert plain.error(X) < given.error(X)
    assert_allclose(plain.validated_error(X), given.error(X), rtol=1e-12)


# ----------------------------------------------------------------------------------------------------- where to end


def test_training_ends_at_the_noise_and_keeps_what_it_found_there():
    given = problem(datasets.make_swiss_roll(600, noise=0.5, rng=0).X)
    X = started(given, 2)
    rule = latent_descent.noise_rule(given, X)
    outcome = latent_descent.train_latent_points(given, X, descent=LBFGS, rule=rule, max_iter=300, tol=1e-9)
    assert isinstance(rule, Discrepancy)
    assert outcome.reason is StopReason.NOISE
    *before, last = outcome.history["typical"]
    assert last <= rule.level < min(before)
    assert_allclose(given.error(outcome.state.state.x), outcome.history["error"][-1], rtol=1e-9)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_ending_at_the_noise_stays_nearer_to_the_truth_than_the_minimum_does(noise):
    """The theorem behind the default: the error goes on falling while the curve leaves the true one."""
    far = {"noise": [], "minimum": []}
    for seed in range(3):
        data = half_circle(200, noise, seed)
        given = problem(data.X)
        X = started(given)
        for name, found in far.items():
            rule = latent_descent.STOPS[name](given, X, LBFGS)
            outcome = latent_descent.train_latent_points(given, X, descent=LBFGS, rule=rule, max_iter=100, tol=1e-9)
            place = outcome.state.state.x
            k = np.exp(-0.5 * cdist(place, place, "sqeuclidean"))
            curve = k @ given.Y / k.sum(axis=1, keepdims=True) + data.X.mean(axis=0)
            found.append(np.mean(data.surface.distance(curve) ** 2))
    assert np.mean(far["noise"]) < 0.6 * np.mean(far["minimum"])


def test_a_few_rows_far_off_do_not_move_the_end():
    """One row in a hundred far from the curve: neither the level of the noise nor the error at the end follows it."""
    data = half_circle(300, 0.1, sampling="area")
    wild = np.concatenate([data.X, np.random.default_rng(0).normal(0, 3, (3, 2))])
    given, without = problem(wild), problem(data.X)
    X = started(given, sizes=(10,))
    levels = [latent_descent.noise_rule(each, X[: len(each.Y)]).level for each in (given, without)]
    assert_allclose(levels[0], levels[1], rtol=0.25)
    outcome = latent_descent.train_latent_points(
        given, X, descent=LBFGS, rule=latent_descent.noise_rule(given, X), max_iter=300, tol=1e-9
    )
    assert outcome.reason is StopReason.NOISE
    assert outcome.n_iter < 30


def test_disorder_in_the_start_does_not_pass_for_noise():
    """Latent points shuffled within wide windows look noisy; neighbours in data space know better."""
    data = half_circle(300, 0.02)
    given = problem(data.X)
    X = 30 * data.latent + np.random.default_rng(0).normal(0, 6, (300, 1))
    seen = noise_level(X, given.Y, given.weight, given.regression.profile)
    level = latent_descent.noise_rule(given, X).level
    assert seen > 5 * 0.02**2
    assert level < 1.4 * 2.5 * 0.02**2


# ----------------------------------------------------------------------------------------------- density thresholds


def test_the_barrier_is_infinite_from_the_least_mass_down_and_its_slope_the_derivative():
    wall, one = ukr_training.Barrier(total=4.0, strength=0.5), np.ones(1)
    value, slope = wall(np.array([2.0, 3.0, 6.0]), np.ones(3))
    assert_allclose(value, [np.inf, np.inf, 0.5])
    assert np.isfinite(slope).all()
    for mass in (3.2, 5.0, 50.0):
        gap = check_grad(lambda m: wall(m, one)[0][0], lambda m: wall(m, one)[1], np.array([mass]))
        assert gap < 1e-5 * (1 + abs(wall(np.array([mass]), one)[1][0]))


def test_a_row_that_is_density_enough_by_itself_has_no_barrier():
    value, slope = ukr_training.Barrier(total=4.0, strength=0.5)(np.array([0.0, 0.1]), np.array([4.0, 9.0]))
    assert_allclose(value, 0)
    assert_allclose(slope, 0)


@pytest.mark.parametrize("solver", ["lbfgs", "rprop", "gradient"])
def test_no_latent_point_leaves_a_density_that_is_held(solver):
    given = problem(half_circle().X, leave_one_out=False)
    X = ukr_training.contract_to_density(given, started(problem(half_circle().X)), 0.1)
    wall = ukr_training.make_barrier(given, 0.1, X)
    outcome = latent_descent.train_latent_points(
        given, X, descent=DESCENTS[solver], rule=StoppingRule(), max_iter=60, tol=1e-9, term=wall
    )
    density = (outcome.state.state.evaluation.mass + 1) / 120
    assert density.min() >= 0.1
    assert density.min() < 0.2, "the constraint was never felt"
    assert outcome.history["error"][-1] < outcome.history["error"][0]


def test_a_density_is_held_whatever_the_weights():
    weight = np.random.default_rng(0).uniform(0.01, 3, 120)
    given = problem(half_circle().X, weight=weight, leave_one_out=False)
    X = ukr_training.contract_to_density(given, started(problem(half_circle().X)), 0.05)
    wall = ukr_training.make_barrier(given, 0.05, X)
    outcome = latent_descent.train_latent_points(
        given, X, descent=LBFGS, rule=StoppingRule(), max_iter=60, tol=1e-9, term=wall
    )
    assert ((outcome.state.state.evaluation.mass + weight) / weight.sum()).min() >= 0.05


def test_room_is_made_by_drawing_together_and_only_where_it_is_needed():
    given = problem(half_circle().X)
    X = started(given)
    assert ukr_training.contract_to_density(given, X, 1 / 120) is X
    closer = ukr_training.contract_to_density(given, X, 0.5)
    assert given.regression.value(closer).mass.min() >= 0.5 * 120 - 1
    scale = np.ptp(closer) / np.ptp(X)
    assert 0 < scale < 1
    assert_allclose(closer - closer.mean(axis=0), scale * (X - X.mean(axis=0)), atol=1e-9)


def test_homotopy_keeps_every_threshold_and_the_error_falls_with_them():
    given = problem(half_circle(150).X)
    X, path = ukr_training.homotopy(given, started(given), LBFGS, StoppingRule(), max_iter=30)
    assert_allclose(path.thresholds, ukr_training.HOMOTOPY_THRESHOLDS)
    # A threshold below the weight of a row itself holds nothing.
    held = path.thresholds > 2 / 150
    assert (path.densities[held] >= path.thresholds[held]).all()
    assert (np.diff(path.errors) < 1e-12).all()
    assert path.errors[-1] < 0.2 * path.errors[0]
    assert_allclose(given.error(X), path.errors[-1], rtol=1e-9)
    assert str(path).count("\n") == len(ukr_training.HOMOTOPY_THRESHOLDS)


def test_homotopy_ends_where_the_rule_finds_enough():
    given = problem(half_circle(150).X)
    level = 0.3 * given.variance
    X, path = ukr_training.homotopy(given, started(given), LBFGS, Discrepancy(level), max_iter=30)
    assert 1 <= len(path.thresholds) < len(ukr_training.HOMOTOPY_THRESHOLDS)
    assert path.errors[-1] <= level
    assert_allclose(given.error(X), path.errors[-1], rtol=1e-9)


# ------------------------------------------------------------------------------------------- lost latent points


def test_lost_points_come_back_within_reach_on_their_own_side():
    X = np.array([[0.0, 0.0], [0.3, 0.0], [5.0, 5.0], [-9.0, 0.1]])
    lost = np.array([False, False, True, True])
    back = latent_descent.return_isolated_points(X, lost, reach=1.0)
    assert_allclose(back[:2], X[:2])
    assert_allclose(np.linalg.norm(back[2:] - X[[1, 0]], axis=1), 0.5)
    assert (np.sign(back[2] - X[1]) == 1).all()
    assert back[3, 0] < 0


def test_if_all_are_lost_all_are_drawn_together():
    X = np.array([[0.0], [10.0], [20.0], [30.0]])
    back = latent_descent.return_isolated_points(X, np.ones(4, dtype=bool), reach=1.0)
    assert_allclose(np.diff(back, axis=0), 0.5)


def test_a_point_without_neighbours_is_fetched_back_counted_and_then_predicted():
    data = half_circle()
    given = problem(data.X, "quartic")
    X = started(given).copy()
    X[5] += 100.0
    walk = latent_descent.LatentDescent(given, LBFGS)
    place = walk.begin(X)
    assert place.fetched == 1
    assert walk.measure(place)["fetched"] == 1
    assert not place.state.evaluation.empty.any()
    assert place.state.evaluation.error[5] < np.square(given.Y[5]).sum() * 10
    assert walk.step(place).fetched == 0


# --------------------------------------------------------------------------------------------------- landmarks


def test_averages_are_weighted_means_and_keep_all_weight():
    rng = np.random.default_rng(1)
    name, weight, A = rng.integers(0, 6, 40) * 2, rng.uniform(1, 2, 40), rng.normal(size=(40, 3))
    mean, total = ukr_training.average_by_name(name, weight, A)
    present = np.unique(name)
    for i, each in enumerate(present):
        assert_allclose(mean[i], np.average(A[name == each], axis=0, weights=weight[name == each]))
    assert_allclose(total.sum(), weight.sum())
    assert len(mean) == len(present)


def test_a_trial_is_judged_by_rows_that_it_does_not_see():
    Y = np.random.default_rng(0).standard_normal((1000, 3))
    kept, held = latent_descent.split_for_trial(Y, np.ones(1000))
    assert (len(kept), len(held)) == (600, 200)
    assert not set(kept) & set(held)
    assert len(latent_descent.split_for_trial(Y[:19], np.ones(19))[1]) == 0


def test_the_plateau_begins_where_the_error_is_within_a_hundredth_of_its_lowest():
    trial = Outcome(None, 4, StopReason.VALIDATION, {"validation": [10.0, 5.0, 4.03, 4.0, 4.1]})
    assert latent_descent.plateau_of(trial).n_iter == 2


def test_a_homotopy_does_not_go_below_the_threshold_that_training_holds():
    given = problem(half_circle(60, 0.1, 0).X)
    path = ukr_training.homotopy(given, started(given), LBFGS, StoppingRule(), max_iter=5, least=0.15)[1]
    assert_allclose(path.thresholds, [0.5, 0.25, 0.15])
    assert (path.densities >= path.thresholds).all()
