"""Choosing a clamping: made-up tables first, then fits."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.properties.cases import cloud

from prinfold import PPS, load, plot
from prinfold.datasets import make_half_circle
from prinfold.exceptions import CorruptModelFileError, InvalidDataError, InvalidParameterError
from prinfold.files import save
from prinfold.loops import StopReason
from prinfold.pps import clamping_choice as selection
from prinfold.pps.clamping_choice import Selection, best_within, candidates, path, split, standard_error, ties
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

CLAMPINGS = np.array([0.5, 0.7, 1.0, 1.4])
STRENGTHS = np.array([0.01, 0.1, 1.0])
QUICK: dict[str, Any] = {"max_iter": 8, "tol": 0.0, "random_state": 0}


def table_of(errors: Any, roughnesses: Any, strengths: Any = STRENGTHS, own: int = 1) -> Selection:
    """A table for folds of equal weight; projection errors that would mislead."""
    return Selection(CLAMPINGS, strengths, own, errors, -errors, roughnesses, np.ones(len(errors)))


def made_up(lines: Any, n_folds: int = 4, jitter: float = 0.0, seed: int = 0, scale: Any = 1.0) -> Selection:
    """A table whose clampings have roughness 3, 2, 1 along the path and errors as given by ``lines(a, roughness)``."""
    roughness = np.tile([3.0, 2.0, 1.0], (n_folds, len(CLAMPINGS), 1)) * np.reshape(scale, (-1, 1))
    error = np.stack([[lines(a, row) for a, row in enumerate(fold)] for fold in roughness])
    noise = jitter * np.random.default_rng(seed).standard_normal(error.shape)
    return table_of(error + noise, roughness)


# ---------------------------------------------------------------------------------------------------- matching


def test_interpolation_is_exact_where_curves_are_straight():
    roughness = np.array([5.0, 3.0, 2.0, 0.5])
    place, error = best_within(roughness, 10.0 - 2.0 * roughness, 2.4, own=1)
    assert_allclose((place, error), (1.6, 10.0 - 2.0 * 2.4), rtol=1e-14)


def test_a_smoother_surface_that_is_nearer_is_not_passed_over():
    # The error turns again below the level, and the path comes back across it.
    assert best_within(np.array([3.0, 1.0, 0.5]), np.array([1.0, 3.0, 2.0]), 2.0, own=1) == (0.5, 2.0)
    assert best_within(np.array([3.0, 1.0, 0.5]), np.array([1.0, 3.0, 1.5]), 2.0, own=1) == (2.0, 1.5)
    assert best_within(np.array([1.0, 3.0, 1.0]), np.array([2.0, 0.0, 2.0]), 2.0, own=2) == (1.5, 1.0)


def test_rougher_surfaces_never_stand_for_a_clamping():
    rng = np.random.default_rng(0)
    for _ in range(200):
        roughness, error, level = rng.uniform(1, 3, 5), rng.uniform(1, 2, 5), rng.uniform(0.8, 3.2)
        place, found = best_within(roughness, error, level, own=2)
        fine = np.linspace(0, 4, 4001)
        allowed = np.interp(fine, range(5), roughness) <= level
        if not allowed.any():
            assert np.isnan(place) or np.interp(place, range(5), roughness) <= level + 1e-9
            continue
        assert np.interp(place, range(5), roughness) <= level + 1e-9
        assert_allclose(found, np.interp(fine[allowed], range(5), error).min(), atol=4e-3)
        assert found <= np.interp(fine[allowed], range(5), error).min() + 1e-12


def test_of_equal_errors_the_one_nearest_to_the_users_regularisation_is_taken():
    assert best_within(np.ones(4), np.ones(4), 1.0, own=2) == (2.0, 1.0)
    assert best_within(np.ones(4), np.ones(4), 0.9, own=2)[0] != best_within(np.ones(4), np.ones(4), 1.0, own=2)[0]


def test_the_level_is_that_of_the_gtm_in_each_fold():
    table = made_up(lambda a, rough: 5.0 - rough / rough[0] + 0.1 * a, scale=[1.0, 2.0, 3.0, 4.0][:1])
    assert table.level == 2.0
    # Folds whose surfaces are all rougher by a factor match at a level that is higher by it.
    scaled = np.array([1.0, 2.0, 3.0, 4.0])[:, None, None]
    other = table_of(table.errors, scaled * table.roughnesses)
    assert_allclose(other.matched_errors, table.matched_errors, rtol=1e-12)
    assert_allclose(other.level, 2.0 * 2.5)


def test_a_clamping_that_is_always_rougher_is_marked_and_not_chosen():
    table = made_up(lambda a, rough: np.full(3, 5.0 - (a == 1)))
    assert table.chosen == 1
    rougher = table.roughnesses.copy()
    rougher[2, 1] += 5.0  # in one fold only
    table = table_of(table.errors, rougher)
    assert_array_equal(table.comparable, [True, False, True, True])
    assert table.clamping == 1.0
    assert np.isnan(table.matched_error[1])
    assert np.isnan(table.matched_strength[1])
    assert "rougher in some fold, whatever the regularisation" in str(table)
    assert not table.tied[1]


# ---------------------------------------------------------------------------------------------------- choosing


def brute_force(table: Selection) -> tuple[float, float]:
    """The rule in the plainest words, for folds of equal weight."""
    n_folds, n_candidates, _ = table.errors.shape
    columns, strengths = [], []
    for a in range(n_candidates):
        column, places = [], []
        for f in range(n_folds):
            level = table.roughnesses[f, 2, 1]
            fine = np.linspace(0, 2, 20001)
            allowed = np.interp(fine, range(3), table.roughnesses[f, a]) <= level + 1e-12
            errors = np.where(allowed, np.interp(fine, range(3), table.errors[f, a]), np.inf)
            column.append(errors.min())
            places.append(fine[errors.argmin()])
        columns.append(column)
        strengths.append(10 ** np.interp(np.mean(places), range(3), np.log10(table.strengths)))
    own = table.errors[:, 2, 1]
    everything = np.array([*columns, own])
    best = everything[everything.mean(axis=1).argmin()]

    def is_tied(column):
        difference = np.array(column) - best
        return difference.mean() <= 1.5 * difference.std(ddof=1) / np.sqrt(n_folds)

    if is_tied(own):
        return 1.0, float(table.strengths[1])
    tied = [a for a in range(n_candidates) if is_tied(columns[a])]
    nearest = min(tied, key=lambda a: abs(np.log(table.clampings[a])))
    return float(table.clampings[nearest]), strengths[nearest]


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    gain = rng.uniform(0, 0.5, len(CLAMPINGS))
    table = made_up(lambda a, rough: 5.0 - gain[a] - 0.3 * rough, jitter=0.2, seed=seed)
    roughnesses = table.roughnesses * rng.uniform(0.7, 1.2, table.roughnesses.shape)
    table = table_of(table.errors, roughnesses)
    clamping, strength = brute_force(table)
    assert table.clamping == clamping
    assert_allclose(table.strength, strength, rtol=2e-3)


def test_brute_force_has_something_to_do():
    """The trials above choose all kinds of clamping, and now and then none."""
    chosen = set()
    for seed in range(40):
        gain = np.random.default_rng(seed).uniform(0, 0.5, len(CLAMPINGS))
        chosen.add(made_up(lambda a, rough, g=gain: 5.0 - g[a] - 0.3 * rough, jitter=0.2, seed=seed).clamping)
    assert chosen == set(CLAMPINGS.tolist())


def test_ties_go_to_the_gtm_as_it_was_asked_for():
    table = made_up(lambda a, rough: 5.0 + 0.0 * rough)
    assert table.kept
    assert (table.clamping, table.strength) == (1.0, 0.1)
    assert table.tied.all()
    assert "as it was asked for" in str(table)


def test_the_gtm_as_it_was_asked_for_is_kept_even_where_its_own_path_is_not_tied():
    # By one fold of four it is worse at random; its path, which mends that fold, is worse by a little in each.
    table = made_up(lambda a, rough: np.full(3, 1.0 if a == 0 else 5.0))
    errors = table.errors.copy()
    errors[:, 2, 1] = [2.0, 1.1, 1.1, 1.1]
    errors[:, 2, 2] = 1.1
    table = table_of(errors, table.roughnesses)
    assert_array_equal(table.tied, [True, False, False, False])
    assert table.kept
    assert (table.clamping, table.strength) == (1.0, 0.1)


def test_ties_among_the_others_go_to_the_one_nearest_to_1():
    table = made_up(lambda a, rough: np.full(3, [1.0, 1.0, 5.0, 1.0][a]))
    assert table.clamping == 1.4  # log 1.4 = 0.336, log 0.7 = −0.357
    assert not table.kept
    assert table.strength == 0.1


def test_a_difference_counts_by_its_own_spread_not_by_that_of_the_errors():
    # Folds differ a lot, but one clamping is better by the same little in each.
    hard = np.array([1.0, 4.0, 9.0, 2.0])
    errors = np.stack([hard, hard - 0.01, hard + 0.5], axis=1)
    assert_array_equal(ties(errors, np.ones(4)), [False, True, False])
    wobbling = errors + np.array([[0.0, 0.05, 0.0], [0.0, -0.05, 0.0], [0.0, 0.05, 0.0], [0.0, -0.05, 0.0]])
    assert_array_equal(ties(wobbling, np.ones(4)), [True, True, False])


def test_the_standard_error_is_the_textbooks():
    values = np.random.default_rng(1).normal(size=(7, 3))
    assert_allclose(standard_error(values, np.ones(7)), values.std(axis=0, ddof=1) / np.sqrt(7), rtol=1e-12)
    assert_allclose(standard_error(values, np.full(7, 3.0)), standard_error(values, np.ones(7)), rtol=1e-12)


def test_candidates_lie_within_what_the_noise_allows():
    for D, Q in ((2, 1), (3, 2), (4, 3), (100, 2)):
        found = candidates(D, Q)
        assert (np.diff(found) > 0).all()
        assert 1.0 in found
        assert 0 < found[0] < 1 < found[-1] < D / Q


@pytest.mark.parametrize("strength", [0.0, 0.1, 3.0])
def test_paths_hold_the_users_own_regularisation(strength):
    strengths, own = path(strength)
    assert strengths[own] == strength
    assert (np.diff(strengths) > 0).all()
    table = table_of(*np.ones((2, 3, 4, len(strengths))), strengths, own)
    assert table.strength == strength


def test_regularisations_lie_between_those_tried_even_from_zero():
    strengths, own = path(0.0)
    errors, roughnesses = np.ones((2, 3, 4, 4))
    roughnesses[:, 0] = [1.5, 0.5, 0.5, 0.5]
    errors[:, 0] = [0.0, 1.0, 1.0, 1.0]
    table = table_of(errors, roughnesses, strengths, own)
    assert table.clamping == 0.5
    assert_allclose(table.strength, 0.5 * strengths[1])


# ------------------------------------------------------------------------------------------------------- folds


def folds_of(X: Any, weight: Any = None, seed: int = 0) -> tuple[Any, int]:
    """Fold by row, −1 for those left out."""
    mean = np.average(X, axis=0, weights=weight)
    found = split(as_rows(X, mean, weight), np.random.default_rng(seed))
    fold = np.full(len(X), -1)
    fold[found.rows] = found.fold
    return fold, found.n_folds


def test_folds_are_of_equal_size_and_cover_all_rows():
    fold, n_folds = folds_of(cloud(93))
    assert n_folds == 5
    assert set(np.bincount(fold)) <= {18, 19}
    assert (fold != folds_of(cloud(93), seed=1)[0]).any()


def test_folds_do_not_depend_on_order_place_orientation_or_scale():
    X = cloud(60)
    fold, _ = folds_of(X)
    order = np.random.default_rng(1).permutation(60)
    assert_array_equal(folds_of(X[order])[0], fold[order])
    R = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 5)))[0]
    assert_array_equal(folds_of(3.0 * X @ R.T + 7.0)[0], fold)


def test_repeats_of_a_row_stay_together():
    X = cloud(40)
    weight = np.random.default_rng(3).integers(1, 4, 40).astype(float)
    fold, _ = folds_of(X, weight)
    repeated, _ = folds_of(np.repeat(X, weight.astype(int), axis=0))
    assert_array_equal(repeated, np.repeat(fold, weight.astype(int)))


def test_rows_without_weight_do_not_count():
    X, weight = cloud(40), np.ones(40)
    weight[::3] = 0.0
    fold, _ = folds_of(X, weight)
    assert (fold[::3] == -1).all()
    assert_array_equal(fold[weight > 0], folds_of(X[weight > 0])[0])


def test_rows_equally_far_from_the_centre_are_told_apart():
    angle = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    fold, _ = folds_of(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert_array_equal(np.bincount(fold), np.full(5, 10))


def test_of_very_many_rows_some_are_compared(monkeypatch):
    monkeypatch.setattr(selection, "_MOST_ROWS", 30)
    X = cloud(90)
    fold, _ = folds_of(X)
    assert (fold >= 0).sum() == 30
    order = np.random.default_rng(1).permutation(90)
    assert_array_equal(folds_of(X[order])[0], fold[order])


@pytest.mark.parametrize(("n", "n_folds"), [(4, 2), (6, 3), (9, 4), (10, 5), (40, 5)])
def test_few_rows_make_few_folds(n, n_folds):
    assert folds_of(cloud(n))[1] == n_folds


def test_too_few_different_rows_are_refused():
    X = np.repeat(cloud(3), 10, axis=0)
    with pytest.raises(InvalidDataError, match="at least 4 different ones, got 3; give a clamping"):
        PPS(clamping="select", nodes=4, basis=2, **QUICK).fit(X)


# -------------------------------------------------------------------------------------------------------- fits


@pytest.fixture
def small(monkeypatch):
    """A smaller search, for what does not depend on its size."""
    monkeypatch.setattr(selection, "_CLAMPINGS", (0.5, 1.0))
    monkeypatch.setattr(selection, "_REGULARIZATION_FACTORS", (0.1, 1.0, 10.0))
    monkeypatch.setattr(selection, "_N_FOLDS", 3)


def curve() -> Any:
    return make_half_circle(60, noise=0.15, rng=2).X


SETTINGS: dict[str, Any] = {"n_components": 1, "clamping": "select", "nodes": 20, "basis": 6, **QUICK}


@pytest.mark.usefixtures("small")
def test_the_fit_is_that_of_the_settings_chosen():
    X = curve()
    model = PPS(**SETTINGS).fit(X)
    table = model.selection_
    given = SETTINGS | {"clamping": table.clamping, "regularization": table.strength}
    assert_allclose(PPS(**given).fit(X).transform(X), model.transform(X), atol=0)
    assert model.clamping_ == table.clamping
    assert model.clamping == "select"
    assert PPS(**given).fit(X).selection_ is None


@pytest.mark.usefixtures("small")
def test_the_table_is_what_fits_by_hand_give():
    X = curve()
    table = PPS(**SETTINGS).fit(X).selection_
    rng = np.random.default_rng(0)
    rng.integers(2**31)  # the seed of the trials comes first
    found = split(as_rows(X, X.mean(axis=0)), rng)
    fold = found.fold[np.argsort(found.rows)]
    seen, held = X[fold != 1], X[fold == 1]
    share = len(seen) / len(X)
    gtm = PPS(**(SETTINGS | {"clamping": 1.0, "regularization": share * table.strengths[table.own]})).fit(seen)
    model = PPS(**(SETTINGS | {"clamping": 0.5, "regularization": share * table.strengths[0]})).fit(seen)
    facing = np.square(held - model.project(gtm.project(held))).sum(axis=1).mean()
    assert_allclose(table.errors[1, 0, 0], facing, rtol=1e-9)
    assert_allclose(table.projection_errors[1, 0, 0], model.projection_error(held), rtol=1e-9)
    assert_allclose(table.roughnesses[1, 0, 0], selection.model_roughness(model), rtol=1e-9)
    assert_allclose(table.roughnesses[1, 1, table.own], selection.model_roughness(gtm), rtol=1e-9)
    assert_allclose(table.weights, np.bincount(fold))


@pytest.mark.usefixtures("small")
def test_the_error_faces_the_gtm_and_is_never_below_the_nearest():
    table = PPS(**SETTINGS).fit(curve()).selection_
    assert (table.errors >= table.projection_errors - 1e-12).all()
    assert_allclose(table.errors[:, 1, table.own], table.projection_errors[:, 1, table.own], rtol=1e-9)
    assert (table.errors[:, 0] > table.projection_errors[:, 0]).all()


def test_waves_cost_what_they_are_worth():
    """Of rows about a line, a wavy curve is nearer to each than the line is; facing the line's feet it is farther."""
    rng = np.random.default_rng(0)
    t = np.linspace(-1, 1, 400)
    X = np.stack([3 * t, 0.3 * rng.standard_normal(400)], axis=1)
    places = t[:, None]
    settings = {"n_components": 1, "clamping": 1.0, "nodes": 60, "basis": 24, "max_iter": 0, "tol": 0.0}
    line = PPS(**settings, init=places, regularization=0.0).fit(np.stack([3 * t, 0 * t], axis=1))
    wavy = PPS(**settings, init=places, regularization=0.0).fit(np.stack([3 * t, 0.5 * np.sin(18 * t)], axis=1))
    feet, weight = line._nearest(X).points, np.ones(400)
    straight, waves = (selection.measure(each, X, feet, weight) for each in (line, wavy))
    assert waves.projection_error < straight.projection_error
    assert waves.error > straight.error
    assert waves.roughness > 10 * straight.roughness


@pytest.mark.usefixtures("small")
def test_files_pickles_and_print(tmp_path):
    X = curve()
    model = PPS(**SETTINGS).fit(X)
    save(model, tmp_path / "model.prinfold")
    read = load(tmp_path / "model.prinfold")
    for field in ("clampings", "strengths", "errors", "roughnesses", "weights", "matched_error", "tied"):
        assert_array_equal(getattr(read.selection_, field), getattr(model.selection_, field), err_msg=field)
    assert (read.selection_.clamping, read.selection_.strength) == (model.clamping_, model.selection_.strength)
    assert_allclose(read.score_samples(X), model.score_samples(X), atol=0)
    assert str(read.selection_) == str(model.selection_)
    assert f"clamping {model.clamping_:g} and regularisation" in str(model.selection_)
    assert len(str(model.selection_).splitlines()) == 3 + len(model.selection_.clampings)
    assert repr(model.selection_).startswith(f"Selection(clamping={model.clamping_:g}")


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    table = made_up(lambda a, rough: 5.0 + 0.0 * rough)
    with pytest.raises(ValueError, match="do not fit together"):
        Selection(table.clampings[:2], STRENGTHS, 1, *3 * [table.errors], table.weights)
    model = PPS(1, nodes=8, basis=4, **QUICK).fit(curve())
    object.__setattr__(table, "weights", np.ones(2))
    model.selection_ = table
    save(model, tmp_path / "model.prinfold")
    with pytest.raises(CorruptModelFileError, match=r"PPS\.selection_\.weights in the file"):
        load(tmp_path / "model.prinfold")


@pytest.mark.usefixtures("small")
def test_rows_in_another_order_and_weights_instead_of_repeats_give_the_same_choice():
    X = curve()
    rng = np.random.default_rng(5)
    here, there = (PPS(**SETTINGS).fit(each).selection_ for each in (X, X[rng.permutation(len(X))]))
    assert_allclose(there.errors, here.errors, rtol=1e-6)
    assert_allclose(there.roughnesses, here.roughnesses, rtol=1e-4)
    weight = rng.integers(0, 4, len(X))
    weighted = PPS(**SETTINGS).fit(X, sample_weight=weight).selection_
    repeated = PPS(**SETTINGS).fit(np.repeat(X, weight, axis=0)).selection_
    assert_allclose(weighted.errors, repeated.errors, rtol=1e-6)
    assert_allclose(weighted.weights, repeated.weights)
    assert weighted.clamping == repeated.clamping
    assert np.ptp(weighted.errors - here.errors) > 1e-4  # weights matter


@pytest.mark.usefixtures("small")
def test_a_prior_is_searched_as_a_prior_and_scales_with_the_data():
    X = curve()
    given = SETTINGS | {"prior_precision": 0.5}
    model = PPS(**given).fit(X)
    assert_allclose(model.selection_.strengths, [0.05, 0.5, 5.0])
    scaled = PPS(**(given | {"prior_precision": 0.5 / 100})).fit(10.0 * X)
    assert_allclose(scaled.selection_.errors, 100 * model.selection_.errors, rtol=1e-6)
    assert_allclose(scaled.selection_.roughnesses, model.selection_.roughnesses, rtol=1e-4)
    again = given | {"clamping": model.clamping_, "prior_precision": model.selection_.strength}
    assert_allclose(PPS(**again).fit(X).transform(X), model.transform(X), atol=0)
    nothing = PPS(**(SETTINGS | {"prior_precision": 0.0})).fit(X).selection_
    assert_allclose(nothing.errors, PPS(**(SETTINGS | {"regularization": 0.0})).fit(X).selection_.errors, rtol=1e-12)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "settings",
    [
        {"latent": "circle", "n_components": 1, "nodes": 12, "basis": 5},
        {"nodes": 6, "basis": 3},
        {"nodes": (6, 4), "basis": (4, 3), "latent": "cylinder"},
        {"nodes": 40, "basis": 12, "latent": "sphere"},
        {"nodes": np.random.default_rng(5).uniform(-1, 1, (40, 2)), "basis": 3},
        {"n_components": 3, "nodes": 4, "basis": 2},
        {"n_components": 4, "nodes": 3, "basis": 2},
        {"nodes": 6, "basis": 3, "init": "isomap"},
    ],
    ids=["circle", "grid", "cylinder", "sphere", "points", "space", "four", "isomap"],
)
def test_every_latent_space_can_be_searched(settings, monkeypatch):
    monkeypatch.setattr(selection, "_REGULARIZATION_FACTORS", (0.3, 1.0))
    monkeypatch.setattr(selection, "_N_FOLDS", 2)
    X = cloud(40)
    table = PPS(clamping="select", **(QUICK | {"max_iter": 4} | settings)).fit(X).selection_
    assert np.isfinite(table.errors).all()
    assert np.isfinite(table.roughnesses).all()
    assert (table.roughnesses > 0).all()


@pytest.mark.usefixtures("small")
def test_memory_maps_sparse_tables_and_given_starts(tmp_path):
    X = curve()
    plain = PPS(**SETTINGS).fit(X).selection_
    np.save(tmp_path / "X.npy", X)
    mapped = PPS(**SETTINGS).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert_allclose(mapped.selection_.errors, plain.errors, rtol=1e-9)
    sparse = pytest.importorskip("scipy.sparse")
    assert_allclose(PPS(**SETTINGS).fit(sparse.csr_matrix(X)).selection_.errors, plain.errors, rtol=1e-9)
    narrow = PPS(**SETTINGS).fit(X.astype(np.float32))
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(narrow.selection_.errors, plain.errors, rtol=0.05)
    # Places in another order than the rows would be another start.
    order = np.random.default_rng(0).permutation(len(X))
    places = X[:, :1] / 2
    given = PPS(**(SETTINGS | {"init": places})).fit(X)
    moved = PPS(**(SETTINGS | {"init": places[order]})).fit(X[order])
    assert_allclose(moved.selection_.errors, given.selection_.errors, rtol=1e-6)


def test_without_directions_across_there_is_nothing_to_select():
    model = PPS(clamping="select", nodes=4, basis=2, **QUICK).fit(cloud(30, n_columns=2))
    assert model.selection_ is None
    assert model.clamping_ == 1.0


def test_amplification_is_not_selected():
    with pytest.raises(InvalidParameterError, match=r"amplification belongs to a clamping.*'select'"):
        PPS(clamping="select", amplification=1.0).fit(cloud())


def test_two_penalties_are_refused():
    with pytest.raises(InvalidParameterError, match="not both"):
        PPS(clamping="select", regularization=0.1, prior_precision=1.0).fit(cloud())


@pytest.mark.usefixtures("small")
def test_an_interruption_ends_the_search(monkeypatch):
    keep = PPS._keep

    def interrupted(self, attributes, outcome):
        keep(self, attributes, replace(outcome, reason=StopReason.INTERRUPTED))

    monkeypatch.setattr(PPS, "_keep", interrupted)
    model = PPS(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(curve())
    assert not hasattr(model, "selection_")


# ----------------------------------------------------------------------------------------------------- pictures


@pytest.mark.usefixtures("small")
def test_the_picture_shows_the_table():
    mpl.use("Agg")
    model = PPS(**SETTINGS).fit(curve())
    table = model.selection_
    for ax in (plot.selection(model), plot.selection(table)):
        lines = ax.lines[: len(table.clampings)]
        for line, roughness, error in zip(lines, table.roughness, table.error, strict=True):
            assert_array_equal(line.get_xdata(), roughness)
            assert_array_equal(line.get_ydata(), error)
        assert ax.lines[-2].get_xdata()[0] == table.level
        assert ax.lines[-1].get_label() == "chosen"
        assert ax.lines[-1].get_xdata()[0] == table.level
        ax.figure.draw_without_rendering()
    with pytest.raises(InvalidParameterError, match="selected nothing"):
        plot.selection(PPS(1, nodes=8, basis=4, **QUICK).fit(curve()))


def test_a_flat_surface_can_be_drawn_too():
    table = made_up(lambda a, rough: 5.0 - rough)
    flat = table_of(table.errors, 0.0 * table.roughnesses)
    ax = plot.selection(flat)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    wide = table_of(table.errors, table.roughnesses ** np.arange(1, 4) ** 2)
    wide.roughnesses[:, 1] += 100
    ax = plot.selection(wide)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert "0.7, not matched" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert list(inspect.signature(plot.selection).parameters) == ["model", "ax"]


def test_gaps_are_refused_with_what_else_to_do():
    X = np.random.default_rng(0).standard_normal((30, 3))
    X[4, 1] = np.nan
    with pytest.raises(
        InvalidDataError, match=r"contains NaN.*rows held out are projected.*Or give a clamping, such as clamping=1"
    ):
        PPS(1, clamping="select").fit(X)
    with pytest.raises(InvalidDataError, match="infinity"):
        PPS(1, clamping="select").fit(np.where(np.isnan(X), np.inf, X))
