"""Choosing settings: scores are what they are said to be, failures are rows, the words are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from prinfold import GTM, PPS, Choice, GaussianBasis, GTMSequence, MixedGTM, choose, datasets
from prinfold.exceptions import DegenerateWarning, FoldWarning, InvalidDataError, InvalidParameterError
from prinfold.select import criteria, samples

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = datasets.make_thesis_surface(100, rng=0).X
SMALL = GTM(nodes=8, basis=3, prior_precision="evidence")
WIDTHS = {"width": (0.6, 1.0, 3.0)}


@pytest.mark.parametrize("by", ["exact", "approximate"])
def test_scores_are_the_evidence_per_row(by: str) -> None:
    choice = choose(X, WIDTHS, model=SMALL, by=by)
    for i, width in enumerate(WIDTHS["width"]):
        model = GTM(nodes=8, basis=3, width=width, prior_precision="evidence").fit(X)
        assert choice.table["score"][i] == pytest.approx(model.log_evidence(X, by) / len(X), rel=1e-9)
        assert choice.table["noise_variance"][i] == pytest.approx(model.noise_variance_)
        assert choice.table["prior_precision"][i] == pytest.approx(model.prior_precision_)
        assert choice.table["effective"][i] == pytest.approx(model.effective_weights(X))
        assert choice.table["log_likelihood"][i] == pytest.approx(model.score(X))
        assert choice.table["n_weights"][i] == model.weights_.size
    assert choice.chosen == np.argmax(choice.table["score"])
    assert choice.model.width == choice.settings["width"]
    assert choice.fold_scores.shape == (3, 0)
    assert np.isnan(choice.table["standard_error"]).all()


def test_scores_are_the_likelihood_of_rows_held_out() -> None:
    choice = choose(X, WIDTHS, model=SMALL, by="held-out", folds=4, rng=3)
    fold = samples.split_rows(X, 4, np.random.default_rng(3))
    scores = np.array(
        [
            [clone(SMALL).set_params(width=width).fit(X[fold != f]).score(X[fold == f]) for f in range(4)]
            for width in WIDTHS["width"]
        ]
    )
    np.testing.assert_allclose(choice.fold_scores, scores, rtol=1e-9)
    size = np.bincount(fold)
    np.testing.assert_allclose(choice.table["score"], scores @ size / size.sum(), rtol=1e-12)
    equal = np.sqrt(np.var(scores, axis=1) / 3)  # the folds are of equal size
    np.testing.assert_allclose(choice.table["standard_error"], equal, rtol=1e-9)
    np.testing.assert_array_equal(choice.model.weights_, GTM(**choice.model.get_params()).fit(X).weights_)


def test_the_simplest_within_one_standard_error() -> None:
    grid = {"regularization": (0.001, 0.01, 0.1, 1.0)}
    best = choose(X, grid, model=SMALL, by="held-out")
    simple = choose(X, grid, model=SMALL, by="held-out", simplest=True)
    np.testing.assert_array_equal(best.table["score"], simple.table["score"])
    gap = best.fold_scores[best.chosen] - best.fold_scores
    error = np.std(gap, axis=1) / np.sqrt(4)
    near = best.table["score"][best.chosen] - best.table["score"] <= error
    assert simple.chosen == np.argmin(np.where(near, best.table["effective"], np.inf))


def test_the_order_of_rows_does_not_matter_and_equal_rows_stay_together() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    fold = samples.split_rows(X, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(samples.split_rows(X[order], 5, np.random.default_rng(1)), fold[order])
    np.testing.assert_array_equal(samples.split_rows(csr_matrix(X), 5, np.random.default_rng(1)), fold)
    twice = samples.split_rows(np.repeat(X, 2, axis=0), 5, np.random.default_rng(1))
    np.testing.assert_array_equal(twice, np.repeat(fold, 2))
    assert np.bincount(fold).tolist() == [20] * 5


@pytest.mark.parametrize("by", ["exact", "approximate", "held-out"])
def test_whole_weights_are_repeats(by: str) -> None:
    counts = np.arange(len(X)) % 3
    model = GTM(nodes=8, basis=3, prior_precision="evidence", max_iter=20, tol=0)
    weighted = choose(X, WIDTHS, model=model, by=by, sample_weight=counts)
    repeated = choose(np.repeat(X, counts, axis=0), WIDTHS, model=model, by=by)
    np.testing.assert_allclose(weighted.table["score"], repeated.table["score"], rtol=1e-6)
    assert weighted.chosen == repeated.chosen


def test_a_failure_is_a_row() -> None:
    choice = choose(X, {"basis": (3, "many"), "width": (1.0, 2.0)}, model=SMALL)
    assert choice.table["failure"].tolist()[:2] == ["", ""]
    assert all("basis must be" in words for words in choice.table["failure"][2:])
    assert np.isnan(choice.table["score"][2:]).all()
    assert choice.settings["basis"] == 3
    assert "2 of 4 candidates could not be scored" in str(choice)
    with pytest.raises(InvalidParameterError, match=r"none of the 2 candidates has a score; the first: .*basis must"):
        choose(X, {"basis": ("few", "many")}, model=SMALL)


def test_no_prior_has_no_evidence_but_a_likelihood() -> None:
    grid = {"regularization": (0.0, 0.1)}
    choice = choose(X, grid, model=SMALL)
    assert "needs a prior" in choice.table["failure"][0]
    assert choice.settings == {"regularization": 0.1}
    assert choice.model.prior_precision is None
    assert not choose(X, grid, model=SMALL, by="held-out").table["failure"].any()


def test_a_prior_takes_the_place_of_a_constant_penalty() -> None:
    choice = choose(X, {"prior_precision": (1.0, "evidence")}, model=GTM(nodes=8, basis=3, regularization=0.1))
    assert not choice.table["failure"].any()
    assert choice.table["prior_precision"][0] == pytest.approx(1.0)


def test_dimensions_of_a_sheet() -> None:
    rows = datasets.make_thesis_surface(225, rng=1).X
    for by in ("exact", "approximate", "held-out"):
        choice = choose(rows, {"n_components": (1, 2, 3)}, by=by)
        assert choice.settings == {"n_components": 2}, by
        # Figure of merit of thesis 7.3.1: the noise falls for as many dimensions as there are.
        first, second, third = choice.table["noise_variance"]
        assert first > 1.5 * second
        assert third > 0.6 * second


def test_default_grid_and_other_models() -> None:
    assert choose(X).names == ("width",)
    held = choose(X, {"clamping": (0.5, 1.0)}, model=PPS(nodes=8, basis=3, max_iter=20), by="held-out")
    assert isinstance(held.model, PPS)
    assert np.isnan(held.table["effective"]).all()
    assert choose(X, {"clamping": (0.5, 1.0)}, model=PPS(nodes=8, basis=3), by="held-out", simplest=True).model
    with pytest.raises(InvalidParameterError, match="PPS has no log_evidence; choose its settings with by='held-out'"):
        choose(X, {"clamping": (0.5,)}, model=PPS(nodes=8, basis=3))


def test_settings_of_any_kind() -> None:
    grid = [
        {"basis": (GaussianBasis(3), GaussianBasis(4, width=0.8))},
        {"latent": ("grid", "cylinder"), "nodes": np.array([5, 6]), "basis": 3},
    ]
    choice = choose(X, grid, model=GTM(prior_precision="evidence", max_iter=30))
    assert len(choice.candidates) == 6
    assert choice.names == ("basis", "latent", "nodes")
    assert (
        choice.to_frame()["basis"].tolist()[0]
        == "GaussianBasis(shape=3, width=1.0, linear=True, scale=1.0, penalize_bias=False)"
    )


def test_frames_in_and_out() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    choice = choose(frame, WIDTHS, model=SMALL)
    assert choice.model.feature_names_in_.tolist() == ["a", "b", "c"]
    out = choice.to_frame()
    assert out["width"].tolist() == [0.6, 1.0, 3.0]
    assert out["chosen"].sum() == 1
    assert out["score"].idxmax() == choice.chosen
    assert isinstance(choice.to_frame("polars"), pl.DataFrame)


def test_words() -> None:
    choice = choose(X, {"width": (0.3, 1.0, 10.0), "nodes": 8}, model=SMALL)
    words = str(choice).splitlines()
    assert words[0] == "width=1, chosen of 3 by the evidence with the exact Hessian"
    assert words[1].split() == ["width", "nodes", "score", "weights", "noise", "prior"]
    assert words[2].endswith("← chosen")
    assert "nats per row" in words[5]
    assert repr(choice) == "Choice(width=1, of 3 by the evidence with the exact Hessian)"
    edge = choose(X, {"width": (1.0, 10.0)}, model=SMALL)
    assert "width=1 is the smallest that was tried; a smaller one may be better." in edge.notes
    alone = choose(X, {"width": 1.0}, model=SMALL, by="held-out")
    assert alone.label(0) == "width=1"
    assert alone.notes == ()
    assert "±" in str(alone)
    assert str(choose(X, {}, model=SMALL)).startswith("the model as it was given, chosen of 1")


def test_processes_change_nothing() -> None:
    one, two = (choose(X, WIDTHS, model=SMALL, by="held-out", folds=2, n_jobs=n) for n in (None, 2))
    np.testing.assert_allclose(one.fold_scores, two.fold_scores, rtol=1e-9)


def test_only_the_chosen_model_warns() -> None:
    fold = datasets.make_two_gaussians(200, rng=0).X
    grid = {"regularization": (1e-4, 30.0)}
    options: dict[str, Any] = {"model": GTM(nodes=10, basis=6, max_iter=60)}
    with pytest.warns(FoldWarning) as heard:
        choose(fold, {"regularization": (1e-4,)}, **options)
    assert len({str(each.message) for each in heard}) == len(heard)  # said once
    assert isinstance(choose(fold, grid, **options), Choice)


def test_all_candidates_begin_alike() -> None:
    model = GTM(nodes=8, basis=3, init="random", max_iter=5, tol=0)
    one, two = (choose(X, {"width": (1.0, 1.0)}, model=model) for _ in range(2))
    assert one.table["score"][0] == one.table["score"][1]
    np.testing.assert_array_equal(one.model.weights_, two.model.weights_)
    assert model.random_state is None


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="by must be one of 'exact', 'approximate', 'held-out', got 'aic'"):
        choose(X, by="aic")
    with pytest.raises(InvalidParameterError, match="folds must be a whole number of at least 2, got 1"):
        choose(X, by="held-out", folds=1)
    with pytest.raises(InvalidParameterError, match="GTM has no setting 'sigma'; its settings are"):
        choose(X, {"sigma": (1.0,)})
    with pytest.raises(InvalidDataError, match="5 folds need at least 10 different rows, got 4"):
        choose(np.repeat(X[:4], 5, axis=0), by="held-out")
    with pytest.raises(InvalidDataError, match="infinity"):
        choose(np.full((10, 2), np.inf))
    with pytest.raises(InvalidDataError, match="at least 10 different rows, got 1"):
        choose(np.full((10, 2), np.nan), {"clamping": (0.5,)}, model=PPS(), by="held-out")


def test_a_hessian_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criteria, "_MOST_WEIGHTS", 30)
    choice = choose(X, {"basis": (2, 3)}, model=SMALL)
    assert "the exact Hessian of 36 weights is too large (the most is 30)" in choice.table["failure"][1]
    assert choice.settings == {"basis": 2}


@pytest.mark.parametrize("by", ["exact", "approximate", "held-out"])
def test_gaps_and_known_errors(by: str) -> None:
    rng = np.random.default_rng(0)
    holes = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
    gaps = choose(holes, WIDTHS, model=SMALL, by=by)
    assert not gaps.table["failure"].any()
    errors = rng.uniform(0.05, 0.2, len(X))
    known = choose(X, {"width": (1.0, 3.0)}, model=SMALL, by=by, errors=errors, folds=2)
    model = clone(SMALL).fit(X, errors=errors)
    assert known.table["failure"].tolist() == ["", ""]
    if by != "held-out":
        assert known.table["score"][0] == pytest.approx(model.log_evidence(X, by, errors=errors) / len(X))


def test_columns_with_noise_of_their_own() -> None:
    rows = X * [1.0, 10.0, 100.0]
    choice = choose(rows, {"regularization": (0.01, 0.1, 1.0)}, model=GTM(nodes=8, basis=3, noise="diagonal"))
    assert not choice.table["failure"].any()
    both = choose(rows, {"noise": ("isotropic", "diagonal")}, model=SMALL)
    assert both.settings == {"noise": "diagonal"}  # columns that differ by a hundred have no noise in common


def test_noise_of_any_kind_by_rows_held_out() -> None:
    grid = {"noise": ("isotropic", "aligned", "student")}
    choice = choose(X, grid, model=GTM(nodes=8, basis=3), by="held-out", folds=2)
    assert not choice.table["failure"].any()
    assert np.isnan(choice.table["effective"]).tolist() == [False, True, True]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_are_left_to_the_model(make: Any) -> None:
    frame = make({name: X[:, i] for i, name in enumerate("abc")})
    found = choose(frame, {"width": (1.0,)}, model=SMALL, by="held-out", folds=3)
    fold = samples.split_rows(frame, 3, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(
        samples.split_rows(samples.take(frame, order), 3, np.random.default_rng(0)), fold[order]
    )
    expected = [clone(SMALL).fit(X[fold != f]).score(X[fold == f]) for f in range(3)]
    np.testing.assert_allclose(found.fold_scores[0], expected, rtol=1e-9)
    assert found.model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_evidences_that_do_not_compare_say_so() -> None:
    X = datasets.make_thesis_surface(100, rng=0).X
    grid = {"penalize_bias": (False, True), "nodes": (6,), "basis": (3,)}
    with pytest.warns(DegenerateWarning, match=r"0 to 3 weights without a prior.*by='held-out'"):
        choice = choose(X, grid, by="approximate")
    assert "weights without a prior" in str(choice)
    assert "weights without a prior" not in str(choose(X, grid, by="held-out", folds=2))


def test_a_setting_and_a_column_of_one_name_are_told_apart() -> None:
    X = datasets.make_thesis_surface(100, rng=0).X
    choice = choose(X, {"noise": ("isotropic", "diagonal"), "nodes": (6,), "basis": (3,)}, by="held-out", folds=2)
    heads = str(choice).splitlines()[1].split()
    assert "noise_variance" in heads
    assert heads.count("noise") == 1


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_level_that_is_held_out_fails_nobody() -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 60)
    frame = pd.DataFrame({"a": u, "b": u**2, "level": np.where(u > 0, "up", "down")})
    frame.loc[7, "level"] = "once"
    model = MixedGTM(1, nodes=6, basis=3, max_iter=30, tol=1e-3)
    choice = choose(frame, {"width": (1.0, 1.5)}, model=model, by="held-out", folds=3)
    assert not any(choice.table["failure"])
    assert np.isfinite(choice.table["score"]).all()
    assert choice.model.unseen == "error"


# ------------------------------------------------------------------------------------------------------ sequences

WALKS = datasets.make_motion(150, noise=0.2, n_sequences=6, rng=0)
PARTS = np.split(WALKS.X, np.cumsum(WALKS.lengths)[:-1])
WALKER = GTMSequence(latent="circle", nodes=12, basis=4, max_iter=4, tol=0.0, init="pca", random_state=0)
REACHES = {"reach": (1, 2)}


def test_sequences_are_held_out_as_a_whole() -> None:
    weight = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 0.0])
    how = {"lengths": WALKS.lengths, "sample_weight": weight}
    choice = choose(WALKS.X, REACHES, model=WALKER, by="held-out", folds=2, rng=3, **how)
    kept, cuts = PARTS[:5], np.append(0, np.cumsum(WALKS.lengths[:5]))  # what has no weight is not there
    fold = samples.SelectionSequences(np.concatenate(kept), cuts).folds(2, np.random.default_rng(3))
    assert sorted(np.bincount(fold)) == [2, 3]
    for i, reach in enumerate(REACHES["reach"]):
        for f in range(2):
            seen, held = ([s for s in range(5) if (fold[s] == f) == out] for out in (False, True))
            model = clone(WALKER).set_params(reach=reach)
            model.fit([kept[s] for s in seen], sample_weight=weight[seen])
            each = np.array([model.score([kept[s]]) for s in held])  # per row of each sequence
            size = weight[held] * WALKS.lengths[held]
            assert choice.fold_scores[i, f] == pytest.approx(np.average(each, weights=size), rel=1e-9)
    assert "sequences held out, in 2 folds" in str(choice)
    whole = GTMSequence(**choice.model.get_params()).fit(WALKS.X, **how)
    np.testing.assert_array_equal(choice.model.weights_, whole.weights_)


def test_sequences_in_every_form_choose_alike() -> None:
    settings: dict[str, Any] = {"model": WALKER, "by": "held-out", "folds": 3}
    wanted = choose(WALKS.X, REACHES, lengths=WALKS.lengths, **settings)
    names = np.repeat(list("abcdef"), WALKS.lengths)
    mixed = np.random.default_rng(0).permutation(6)  # sequences in another order
    errors = [np.zeros(part.shape) for part in PARTS]
    given: list[tuple[Any, dict[str, Any]]] = [
        (PARTS, {}),
        ([PARTS[s] for s in mixed], {}),
        (WALKS.X, {"groups": names}),
        (PARTS, {"errors": errors}),
    ]
    for X_given, how in given:
        found = choose(X_given, REACHES, **how, **settings)
        np.testing.assert_allclose(found.fold_scores, wanted.fold_scores, rtol=1e-6)
    frame = pd.DataFrame(WALKS.X).rename(columns=str)  # whose folds are others
    named = choose(frame.assign(walk=names), REACHES, groups="walk", **settings)
    told = choose(frame, REACHES, lengths=WALKS.lengths, **settings)
    np.testing.assert_array_equal(named.fold_scores, told.fold_scores)
    assert list(named.model.feature_names_in_) == list(frame.columns)


def test_equal_sequences_stay_together() -> None:
    twice = samples.SelectionSequences(np.concatenate([*PARTS, *PARTS]), np.append(0, np.cumsum([*WALKS.lengths] * 2)))
    assert twice.total == len(twice.X)
    fold = twice.folds(3, np.random.default_rng(0))
    np.testing.assert_array_equal(fold[:6], fold[6:])
    assert set(fold) == {0, 1, 2}


def test_sequences_that_cannot_be_chosen_by() -> None:
    with pytest.raises(InvalidParameterError, match="nothing says where they begin and end; give lengths or groups"):
        choose(WALKS.X, REACHES, model=WALKER, by="held-out")
    with pytest.raises(
        InvalidParameterError, match="lengths says which rows are a sequence, of which GTM knows nothing"
    ):
        choose(WALKS.X, WIDTHS, lengths=WALKS.lengths)
    with pytest.raises(InvalidParameterError, match="by='exact' takes each row for itself, which sequences are not"):
        choose(PARTS, REACHES, model=WALKER)
    with pytest.raises(InvalidDataError, match="3 folds need at least 3 different sequences, got 2; use fewer folds"):
        choose([*PARTS[:2], PARTS[0]], REACHES, model=WALKER, by="held-out", folds=3)
