"""The monitor: false alarms at the rate that was asked for, faults found, columns named, files and refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler
from tests.files.test_files import dismantle, forge

from prinfold import GTM, PPS, MixedGTM, SurfaceMonitor, datasets, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError, InvalidParameterError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

MAP = GTM(nodes=10, basis=4, regularization=0.1, max_iter=20, tol=0)
QUICK = {"n_simulated": 400, "alarm_rate": 0.05}


class Whole(GTM):
    """A map that takes no rows with gaps."""

    _accept_missing = False


def flat(n: int, seed: int, D: int = 6, noise: str = "normal") -> np.ndarray:
    """Rows about a piece of plane, with noise of unit size or, if heavy, of Student's t with 2 degrees of freedom."""
    rng = np.random.default_rng(seed)
    J = np.random.default_rng(99).normal(size=(2, D))
    e = rng.normal(size=(n, D)) if noise == "normal" else rng.standard_t(2, (n, D))
    return rng.uniform(-1, 1, (n, 2)) @ (10 * J) + e


@pytest.fixture(scope="module")
def rows():
    return datasets.make_pipe_flow(300, rng=0).X


@pytest.fixture(scope="module")
def monitor(rows):
    return SurfaceMonitor(MAP, **QUICK).fit(rows)


# ------------------------------------------------------------------------------------------------ what is measured


def test_log_density_is_the_mixture_with_the_shares_of_the_rows(monitor, rows):
    """ln Σ_k q_k N(t; y_k, σ²), by hand."""
    surface = monitor.surface_
    Y, variance = surface.inverse_transform(surface.latent_.nodes), surface.noise_variance_
    square = ((rows[:50, None] - Y[None]) ** 2).sum(axis=2)
    density = (monitor.node_shares_ * np.exp(-0.5 * square / variance)).sum(axis=1) / (2 * np.pi * variance) ** 6
    assert_allclose(monitor.score_samples(rows[:50]), np.log(density), rtol=1e-6)
    found = monitor.measure(rows[:50])
    assert_allclose(found.log_density + found.along, surface.score_samples(rows[:50]))


def test_off_is_the_distance_to_the_surface_in_units_of_the_noise(monitor, rows):
    surface = monitor.surface_
    wanted = ((rows - surface.project(rows)) ** 2).sum(axis=1) / surface.noise_variance_
    assert_allclose(monitor.measure(rows).off, wanted, rtol=1e-4, atol=1e-6)


def test_contributions_add_up_exactly(monitor, rows):
    parts = monitor.contributions(rows)
    assert_allclose(parts.off.sum(axis=1), monitor.measure(rows).off, rtol=1e-12)
    assert_allclose(parts.off, (parts.residual / monitor.noise_scale_) ** 2)
    assert_allclose(parts.along, (parts.shift / monitor.noise_scale_) ** 2)
    assert_array_equal(parts.off >= 0, True)


def test_one_row_is_the_same_alone_and_in_a_batch(monitor, rows):
    whole, alone = monitor.measure(rows), monitor.measure(rows[7:8])
    assert_allclose(np.ravel(alone), [each[7] for each in whole], rtol=1e-9)
    assert_allclose(monitor.contributions(rows).off[7], monitor.contributions(rows[7:8]).off[0], rtol=1e-9)


def test_on_a_plane_the_model_knows_chi_square():
    """Off a flat surface with round noise the squared distance has D − 2 degrees of freedom, and the model says so."""
    model = SurfaceMonitor(GTM(nodes=20, basis=3), n_simulated=1000, calibration="split").fit(flat(1500, 0))
    new = flat(1500, 1)
    off = model.measure(new).off
    assert_allclose(off.mean(), 4.0, rtol=0.1)
    assert_allclose(model.p_values(new, by="model").off, chi2.sf(off, 4), atol=0.06)


# ----------------------------------------------------------------------------------------------- false alarms


@pytest.mark.parametrize("calibration", ["cross", "split", "last"])
@pytest.mark.parametrize("noise", ["normal", "heavy"])
def test_false_alarms_come_at_the_rate_asked_for(calibration, noise):
    """New rows of several draws: the share of alarms is the rate, within what chance does to 6 × 150 held out."""
    seen = []
    for seed in range(6):
        model = SurfaceMonitor(GTM(nodes=8, basis=3), calibration=calibration, held_out=0.5, **QUICK)
        model.fit(flat(300, seed, noise=noise))
        p = model.p_values(flat(1000, 100 + seed, noise=noise))
        seen.append([np.mean(each <= 0.05) for each in p])
    share = np.mean(seen, axis=0)
    assert (share < 0.05 + 0.025).all()
    assert (share > 0.05 - 0.025).all()


def test_with_heavy_tails_the_model_is_wrong_and_the_limits_are_right():
    X, new = flat(600, 0, noise="heavy"), flat(4000, 1, noise="heavy")
    model = SurfaceMonitor(GTM(nodes=8, basis=3), n_simulated=2000).fit(X)
    assert np.mean(model.p_values(new, by="model").off <= 0.01) > 0.02
    assert np.mean(model.p_values(new).off <= 0.01) < 0.02
    assert np.mean(model.predict(new) == -1) < 0.02
    assert model.limits_.off > model.model_limits_.off


def test_alarms_are_p_values_of_at_most_the_rate(monitor):
    new = datasets.make_pipe_flow(300, rng=1).X * np.linspace(0.9, 1.4, 300)[:, None]
    p = monitor.p_values(new)
    alarm = monitor.predict(new) == -1
    assert alarm.any()
    assert not alarm.all()
    assert_array_equal(alarm, p.density <= 0.05)
    assert_array_equal(monitor.measure(new).off > monitor.limits_.off, p.off <= 0.05)
    assert_array_equal(monitor.measure(new).along > monitor.limits_.along, p.along <= 0.05)
    assert_allclose(monitor.decision_function(new), monitor.score_samples(new) - monitor.offset_)


def test_other_rows_may_set_the_limits(rows):
    model = SurfaceMonitor(MAP, **QUICK).fit(rows)
    noisy = rows + np.random.default_rng(0).normal(0, 0.3, rows.shape)
    before = model.limits_.off
    assert model.calibrate(noisy) is model
    assert model.limits_.off > before
    assert_allclose(np.mean(model.p_values(noisy).off <= 0.05), 0.05, atol=0.01)


# ----------------------------------------------------------------------------------------------------- faults


def test_a_broken_sensor_is_found_and_named(monitor):
    new = datasets.make_pipe_flow(200, rng=1).X
    new[:, 4] += 1.5
    assert np.mean(monitor.predict(new) == -1) > 0.95
    named = monitor.contributions(new).off.argmax(axis=1)
    assert np.mean(named == 4) > 0.95


def test_a_place_where_no_rows_were_is_along_the_surface():
    """Rows at both ends of a strip: the middle lies on the surface, and is rare."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.uniform(-3, -1.5, 200), rng.uniform(1.5, 3, 200)])
    X = np.stack([u, 0.3 * u**2, 0 * u], axis=1) + 0.05 * rng.normal(size=(400, 3))
    model = SurfaceMonitor(GTM(1, nodes=40, basis=6), **QUICK).fit(X)
    middle = np.array([[0.0, 0.0, 0.0]])
    foot = model.surface_.project(middle)
    p = model.p_values(foot)
    assert p.along[0] < 0.02
    assert p.off[0] > 0.5
    parts = model.contributions(foot)
    assert parts.along[0].argmax() == 0  # it is the first column that is out of place
    assert abs(abs(parts.shift[0, 0]) - 1.5) < 0.4
    assert not model.contributions(X[:1]).shift.any()


def test_reports_name_what_is_wrong(rows):
    frame = pd.DataFrame(rows, columns=[f"beam {j}" for j in range(12)])
    model = SurfaceMonitor(MAP, **QUICK).fit(frame)
    broken = frame.iloc[:2].copy()
    broken.iloc[1, 4] += 5
    quiet, loud = model.report(broken)
    assert quiet.startswith("row 0: usual by its density (p = ")
    assert loud.startswith("row 1: ALARM by its density (p = 0.00")
    assert "off the surface" in loud
    assert "beam 4 (" in loud
    assert loud.count("%") <= 6
    assert model.report(broken, n_columns=1)[1].count(" %)") <= 2


def test_reports_of_rare_places_and_of_rows_on_the_surface(monitor):
    rare = np.argmin(monitor.node_shares_)
    place = monitor.surface_.inverse_transform(monitor.surface_.latent_.nodes[[rare]])
    (words,) = monitor.report(place)
    if "ALARM" in words or "rare" in words:
        assert "a place where rows are rare" in words
        assert "no column in particular" in words


# ------------------------------------------------------------------------------------------------ any map, any order


@pytest.mark.parametrize(
    "surface",
    [
        PPS(nodes=8, basis=3, max_iter=5, tol=0),
        GTM(1, latent="circle"),
        GTM(latent="sphere", nodes=60),
        GTM(3, nodes=4),
    ],
)
def test_any_member_of_the_family_serves(rows, surface):
    model = SurfaceMonitor(surface, **QUICK).fit(rows)
    broken = rows[:50].copy()
    broken[:, 4] += 5
    assert np.mean(model.predict(broken) == -1) > 0.9
    assert_allclose(model.contributions(rows[:9]).off.sum(axis=1), model.measure(rows[:9]).off)


@pytest.mark.parametrize("noise", ["diagonal", "student"])
def test_any_noise_serves(noise):
    """Cauchy noise too, which has no variance: measures are finite, and faults are found."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 300)
    X = np.stack([10 * u, 5 * u**2, u], axis=1) + 0.05 * rng.standard_cauchy((300, 3))
    model = SurfaceMonitor(GTM(1, nodes=20, basis=4, noise=noise), **QUICK).fit(X)
    assert np.isfinite(model.noise_scale_).all()
    assert np.isfinite(model.limits_).all()
    assert model.predict([[0.0, 500.0, 0.0]]).tolist() == [-1]
    assert_allclose(model.contributions(X[:9]).off.sum(axis=1), model.measure(X[:9]).off)


def test_the_order_of_the_rows_does_not_decide(rows, monitor):
    turned = SurfaceMonitor(MAP, **QUICK).fit(rows[np.random.default_rng(0).permutation(len(rows))])
    assert_allclose(turned.limits_, monitor.limits_, rtol=1e-4)


def test_a_frozen_map_is_used_as_it_is(rows):
    surface = clone(MAP).fit(datasets.make_pipe_flow(300, rng=5).X)
    model = SurfaceMonitor(FrozenEstimator(surface), **QUICK).fit(rows)
    assert model.surface_ is surface
    assert len(model.reference_) == len(rows)


def test_settings_are_left_alone(rows, monitor):
    assert not hasattr(MAP, "weights_")
    assert monitor.estimator is MAP
    assert_array_equal(clone(monitor).fit(rows).reference_, monitor.reference_)


# ------------------------------------------------------------------------------------------------- kept and refused


def test_a_monitor_comes_back_from_a_file(monitor, rows, tmp_path):
    monitor.save(tmp_path / "m.prinfold")
    back = load(tmp_path / "m.prinfold")
    assert_array_equal(back.score_samples(rows), monitor.score_samples(rows))
    assert back.limits_ == monitor.limits_
    assert_array_equal(back.p_values(rows, by="model"), monitor.p_values(rows, by="model"))
    assert_array_equal(pickle.loads(pickle.dumps(monitor)).predict(rows), monitor.predict(rows))


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("node_shares_", lambda a: a[:-1], "SurfaceMonitor.node_shares_ in the file"),
        ("noise_scale_", lambda a: 0 * a, "SurfaceMonitor.noise_scale_ in the file .* above 0"),
        ("reference_", lambda a: a[:, :2], "SurfaceMonitor.reference_ in the file"),
    ],
)
def test_parts_of_a_file_that_do_not_fit_are_refused(monitor, tmp_path, name, change, match):
    monitor.save(tmp_path / "m.prinfold")
    body, arrays = dismantle(tmp_path / "m.prinfold")
    key = f"SurfaceMonitor.{name}"
    arrays[key] = np.ascontiguousarray(change(arrays[key]))
    with pytest.raises(CorruptModelFileError, match=match):
        load(forge(tmp_path / "m.prinfold", body, arrays))


def test_too_few_rows_for_the_rate_are_told(rows):
    with pytest.warns(
        DegenerateWarning, match=r"60 rows held out are too few for alarm_rate=0\.01: .* at least 99 rows"
    ):
        model = SurfaceMonitor(MAP, n_simulated=400).fit(rows[:60])
    assert np.isfinite(model.limits_).all()
    assert model.limits_.off >= max(model.reference_[:, 2].max(), model.model_limits_.off)
    broken = rows[:5] + 10
    assert_array_equal(model.predict(broken), -1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"estimator": StandardScaler()}, "estimator must be None or an estimator with fit, .*, sample and noise_cov"),
        ({"alarm_rate": 0.0}, "alarm_rate must be a number between 0 and 1"),
        ({"alarm_rate": 1}, "alarm_rate must be a number between 0 and 1"),
        ({"calibration": "crossed"}, "did you mean 'cross'"),
        ({"n_simulated": 0}, "n_simulated must be a whole number of at least 1"),
    ],
)
def test_wrong_settings_are_named(rows, options, match):
    with pytest.raises(InvalidParameterError, match=match):
        SurfaceMonitor(**{"estimator": MAP, **options}).fit(rows)


def test_wrong_questions_are_named(monitor, rows):
    with pytest.raises(InvalidParameterError, match="by must be 'calibration' or 'model', got 'rank'"):
        monitor.p_values(rows, by="rank")
    with pytest.raises(InvalidDataError, match="minimum of 3"):
        SurfaceMonitor(MAP).fit(rows[:2])


def test_degenerate_tables_have_an_answer():
    """One column, equal rows, a constant column, a row far away, three rows."""
    rng = np.random.default_rng(0)
    tables = [
        rng.normal(size=(40, 1)),
        np.ones((30, 2)),
        np.c_[rng.normal(size=40), np.ones(40)],
        rng.normal(size=(3, 2)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in tables:
            model = SurfaceMonitor(GTM(1), **QUICK).fit(table)
            assert np.isfinite(model.measure(table)).all()
            far = model.measure(table[:1] + 1e6)
            assert np.isfinite(far).all()
            assert model.predict(table[:1] + 1e6).tolist() == [-1]


# ----------------------------------------------------------------------------------------------------- missing cells


def holes(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    gone = X.copy()
    gone[np.random.default_rng(seed).uniform(size=X.shape) < share] = np.nan
    return gone


def test_missing_cells_have_no_part_in_anything(monitor, rows):
    rows = rows[:80]
    gone = holes(rows, 0.2)
    parts, found = monitor.contributions(gone), monitor.measure(gone)
    missing = np.isnan(gone)
    assert_array_equal(parts.off[missing], 0.0)
    assert_array_equal(parts.residual[missing], 0.0)
    assert_allclose(parts.off.sum(axis=1), found.off, rtol=1e-12)
    assert_array_equal(found.missing, missing.sum(axis=1))
    whole = ~missing.any(axis=1)
    assert_allclose(found.log_density[whole], monitor.score_samples(rows[whole]), rtol=1e-6)


def test_rows_with_gaps_are_compared_as_if_the_gaps_were_usual():
    """Limits by whole rows, and a fifth of the cells missing: no more false alarms, and faults are found still."""
    model = SurfaceMonitor(GTM(nodes=8, basis=3), n_simulated=200, alarm_rate=0.05).fit(flat(600, 0, D=8))
    whole = flat(1000, 1, D=8)
    gone = holes(whole, 0.2)
    for with_gaps, without in zip(model.p_values(gone), model.p_values(whole), strict=True):
        assert np.mean(with_gaps <= 0.05) < np.mean(without <= 0.05) + 0.02
    assert_allclose(np.median(model.score_samples(gone)), np.median(model.score_samples(whole)), atol=1.0)
    gone[:, 3] += 8.0
    seen = ~np.isnan(gone[:, 3])
    assert np.mean(model.predict(gone[seen]) == -1) > 0.8
    assert np.mean(model.predict(gone[~seen]) == -1) < 0.1


def test_a_monitor_may_learn_from_rows_with_gaps(rows):
    new = holes(datasets.make_pipe_flow(200, rng=1).X, 0.03, 1)
    model = SurfaceMonitor(MAP, **QUICK).fit(holes(rows, 0.03))
    assert np.mean(model.predict(new) == -1) < 0.1
    assert all(np.isfinite(each).all() for each in model.p_values(new))
    assert len(model.report(new[:2])) == 2


def test_maps_that_take_no_gaps_say_so(rows):
    with pytest.raises(InvalidDataError, match="contains NaN"):
        SurfaceMonitor(Whole(), **QUICK).fit(holes(rows, 0.1))
    with pytest.raises(InvalidDataError, match=r"contains infinity \(inf\)"):
        SurfaceMonitor(MAP, **QUICK).fit(np.where(rows > 1, np.inf, rows))


def test_nodes_of_unequal_weight_are_reckoned_with():
    """The density of usual rows is ln Σ_k q_k p(t | k), whatever weights the model itself gives its nodes."""
    rng = np.random.default_rng(1)
    u = 2 * rng.beta(0.5, 2, 300) - 1
    X = np.stack([u, np.sin(3 * u), 0.3 * u**2], axis=1) + 0.08 * rng.standard_normal((300, 3))
    monitor = SurfaceMonitor(GTM(1, nodes=15, basis=6, noise="varying"), calibration="split", n_simulated=2000)
    monitor.fit(X)
    model = monitor.surface_
    assert np.ptp(model._node_prior()) > 0.02
    centers, variance = model.inverse_transform(model.latent_.nodes), model.noise_covariance()[:, 0, 0]
    squared = np.square(X[:, None] - centers).sum(axis=2)
    log_density = -0.5 * squared / variance - 1.5 * np.log(2 * np.pi * variance)
    np.testing.assert_allclose(
        monitor.score_samples(X), logsumexp(log_density, b=monitor.node_shares_, axis=1), rtol=1e-6
    )
    assert monitor._simulated_weight().mean() == pytest.approx(1.0, abs=0.1)


def test_columns_of_other_kinds_are_refused():
    frame = pd.DataFrame({"size": np.arange(40.0), "count": np.arange(40) % 7})
    with pytest.raises(InvalidParameterError, match="columns of numbers only, and the map it was given"):
        SurfaceMonitor(MixedGTM()).fit(frame)


def test_a_file_that_simulated_more_than_a_fit_may_is_read_and_not_fitted_again(tmp_path):
    X = datasets.make_half_circle(60, rng=0).X
    model = SurfaceMonitor(MAP, **QUICK).fit(X)
    model.n_simulated = 10**6
    model.save(tmp_path / "m.prinfold")
    back = load(tmp_path / "m.prinfold")
    assert_array_equal(back.score_samples(X), model.score_samples(X))
    with pytest.raises(InvalidParameterError, match="from 1 to 100000, got 1000000"):
        back.fit(X)
