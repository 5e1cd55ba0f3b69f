"""GTMSequence: sequences in every form, theorems of the walk, degenerate input, files."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import prinfold
from prinfold import GTM, Blocks, GaussianProcess, GTMSequence, LowRankNoise, VaryingNoise, datasets
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    UnsupportedInputError,
)
from prinfold.gtm import model as gtm
from prinfold.gtm.sequence import model as gtm_sequence
from prinfold.gtm.sequence import sequence_passes as walks

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

DATA = datasets.make_motion(220, noise=0.2, n_sequences=5, rng=0)
X, LENGTHS = DATA.X, DATA.lengths
PARTS = np.split(X, np.cumsum(LENGTHS)[:-1])
NAMES = np.repeat(np.array(["e", "b", "d", "a", "c"]), LENGTHS)
QUICK = {"latent": "circle", "nodes": 24, "basis": 6, "max_iter": 8, "tol": 0.0, "random_state": 0}
NOISES = ["isotropic", "diagonal", "student", "aligned", LowRankNoise(1), VaryingNoise(mixing=False)]
SPACES = {
    "line": {"latent": "line", "n_components": 1, "nodes": 20},
    "circle": {},
    "grid": {"latent": "grid", "nodes": 6, "basis": 3},
    "cylinder": {"latent": "cylinder", "nodes": (8, 3), "basis": (5, 2)},
    "torus": {"latent": "torus", "nodes": 5, "basis": 3},
    "sphere": {"latent": "sphere", "nodes": 40, "basis": 12},
    "points": {"latent": None, "nodes": np.random.default_rng(0).uniform(-1, 1, (30, 2)), "basis": 3},
    "one node": {"latent": "line", "n_components": 1, "nodes": 1, "basis": 1},
}


def model(**settings) -> GTMSequence:
    return GTMSequence(**(QUICK | settings))


def fitted(**settings) -> GTMSequence:
    return model(**settings).fit(X, lengths=LENGTHS)


@pytest.fixture(scope="module")
def walked() -> GTMSequence:
    return fitted(max_iter=30)


# ------------------------------------------------------------------------------------- the GTM as a special case


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_where_every_step_may_go_anywhere_it_is_the_gtm(noise):
    settings = QUICK | {"noise": noise}
    plain, walk = GTM(**settings).fit(X), model(transitions="uniform", noise=noise).fit(X, lengths=LENGTHS)
    assert_allclose(walk.weights_, plain.weights_, rtol=1e-10, atol=1e-12)
    assert_allclose(walk.history_["objective"], plain.history_["objective"], rtol=1e-10)
    assert_allclose(walk.transform(X, lengths=LENGTHS), plain.transform(X), atol=1e-10)
    assert_allclose(walk.score_samples(X, lengths=LENGTHS), plain.score_samples(X), rtol=1e-10)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_passes_over_jumps_alone_give_the_sums_of_the_gtm(noise, gaps: bool, monkeypatch):
    """The same by way of the passes themselves, which are not asked for in such a case."""
    table = X.copy()
    if gaps:
        table[3, 2], table[40:43] = np.nan, np.nan
    monkeypatch.setattr(gtm_sequence, "stand_alone", lambda rows, chain: False)
    walk = model(transitions="uniform", noise=noise, max_iter=4).fit(table, lengths=LENGTHS)
    monkeypatch.undo()
    again = model(transitions="uniform", noise=noise, max_iter=4).fit(table, lengths=LENGTHS)
    assert_allclose(walk.weights_, again.weights_, rtol=1e-9, atol=1e-11)
    assert_allclose(walk.history_["objective"], again.history_["objective"], atol=1e-9)


def test_without_lengths_rows_are_sequences_of_one():
    ones = np.ones(len(X), dtype=int)
    plain, alone, told = GTM(**QUICK).fit(X), model().fit(X), model().fit(X, lengths=ones)
    assert_array_equal(alone.weights_, plain.weights_)
    assert_allclose(told.weights_, plain.weights_, rtol=1e-10)
    assert_array_equal(alone.transform(X), plain.transform(X))
    assert_allclose(alone.transform(X, lengths=ones), plain.transform(X), atol=1e-12)
    assert_array_equal(alone.sample(5, random_state=1), plain.sample(5, random_state=1))


# --------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("transitions", ["shared", "free"])
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_objective_never_falls(transitions: str, noise):
    table = X.copy()
    table[3, 2], table[40:43] = np.nan, np.nan
    for initial in ("uniform", "learned"):
        found = model(transitions=transitions, noise=noise, initial=initial, max_iter=25).fit(table, lengths=LENGTHS)
        objective = np.array(found.history_["objective"])
        assert (np.diff(objective) >= -1e-9 * np.abs(objective[1:])).all()


BEGINNINGS = [{"transitions": "uniform"}, {"jump": 1.0}, {"transitions": "shared"}, {"lengths": None}]


@pytest.mark.parametrize("settings", BEGINNINGS, ids=repr)
def test_where_sequences_begin_is_learned_whatever_comes_after(settings: dict):
    rng = np.random.default_rng(3)
    phase = rng.normal(0, 0.1, 20)[:, None] + 0.5 * np.arange(8)
    seen = np.stack([np.cos(phase), np.sin(phase)], axis=2) + 0.05 * rng.standard_normal((20, 8, 2))
    how = settings | {"nodes": 8, "basis": 3, "max_iter": 40, "initial": "learned"}
    given = seen[:, 0] if how.pop("lengths", 0) is None else seen  # the first rows alone are sequences of one
    found = model(**how).fit(given)
    start = found.responsibilities(given).reshape(20, -1, 8)[:, 0].sum(axis=0)
    assert_allclose(found.initial_, (start + 1 / 8) / 21, atol=2e-3)
    assert found.initial_.max() > 0.3
    objective = np.array(found.history_["objective"])
    assert (np.diff(objective) >= -1e-9 * np.abs(objective[1:])).all()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("transitions", ["shared", "free"])
def test_every_latent_space(space: str, transitions: str):
    found = fitted(**({"transitions": transitions, "max_iter": 12} | SPACES[space]))
    assert (np.diff(found.history_["objective"]) >= -1e-9).all()
    Z = found.transform(X, lengths=LENGTHS)
    assert found.latent_.domain.contains(Z).all()
    assert found.sample(2, length=7, random_state=0).shape == (2, 7, X.shape[1])
    assert found.paths(X, lengths=LENGTHS).nodes.max() < found.latent_.n_nodes
    assert_allclose(found.transition_matrix().sum(axis=1), 1.0)


def test_the_walk_finds_the_phase_where_rows_alone_do_not():
    """Principal axes of a walk cross its cycle; slow directions do not, and the walk keeps to it in noise."""
    data = datasets.make_motion(300, noise=0.3, rng=2)

    def off(Z: np.ndarray) -> float:
        turns = [np.exp(1j * (sign * Z[:, 0] - data.latent[:, 0])) for sign in (1, -1)]
        return min(float(np.degrees(np.abs(np.angle(t / t.mean())).mean())) for t in turns)

    settings = QUICK | {"max_iter": 60, "nodes": 40}
    plain, walk = GTM(**settings).fit(data.X), GTMSequence(**settings).fit(data.X, lengths=data.lengths)
    assert off(walk.transform(data.X, lengths=data.lengths)) < 8.0
    assert off(plain.transform(data.X)) > 20.0
    assert walk.score(data.X, lengths=data.lengths) > plain.score(data.X) + 0.5
    forward = walk.move_shares_[walk.moves_[:, 0] > 0].sum()
    assert max(forward, walk.move_shares_[walk.moves_[:, 0] < 0].sum()) > 0.8  # it goes one way round


def test_sequences_in_another_order_teach_the_same():
    order = [3, 0, 4, 2, 1]
    one, other = model().fit(PARTS), model().fit([PARTS[i] for i in order])
    assert_allclose(other.weights_, one.weights_, rtol=1e-7, atol=1e-9)
    assert_allclose(other.score(PARTS), one.score(PARTS), rtol=1e-10)


def test_a_sequence_given_twice_weighs_two():
    weight = np.array([1, 2, 1, 0, 3])
    twice = [PARTS[i] for i in np.repeat(np.arange(5), weight)]
    one, other = model(nodes=24).fit(PARTS, sample_weight=weight), model(nodes=24).fit(twice)
    assert_allclose(one.weights_, other.weights_, rtol=1e-7, atol=1e-9)
    assert_allclose(one.jump_, other.jump_, rtol=1e-6)
    assert_allclose(one.move_shares_, other.move_shares_, rtol=1e-6)


def test_single_precision_goes_through():
    small = fitted()
    single = model().fit(X.astype(np.float32), lengths=LENGTHS)
    assert_allclose(single.weights_, small.weights_, atol=2e-4)
    found = single.transform(X.astype(np.float32), lengths=LENGTHS)
    assert found.dtype == np.float32
    assert single.score_samples(X.astype(np.float32), lengths=LENGTHS).dtype == np.float32
    assert single.paths(X.astype(np.float32), lengths=LENGTHS).latent.dtype == np.float32


def test_a_process_of_given_and_of_open_numbers():
    given = fitted(basis=GaussianProcess(0.8), regularization=0.1)
    assert (np.diff(given.history_["objective"]) >= -1e-9).all()
    found = fitted(basis=GaussianProcess(), max_iter=25)
    assert np.isfinite(found.score(X, lengths=LENGTHS))
    assert found.jump_ == found._chain.jump


# ------------------------------------------------------------------------------------------------- many sequences


def verbs(found: GTMSequence, *given, **how):
    yield found.transform(*given, **how)
    yield found.filter(*given, **how)
    yield found.score_samples(*given, **how)
    yield found.responsibilities(*given, **how)
    yield found.posterior_mode(*given, **how)
    yield found.posterior_covariance(*given, **how)
    yield found.mode_distance(*given, **how)
    yield found.paths(*given, **how).nodes
    yield found.impute(*given, **how)


def test_one_sequence_at_a_time_is_all_at_once(walked: GTMSequence):
    for whole, *parts in zip(
        verbs(walked, X, lengths=LENGTHS), *(verbs(walked, part, lengths=[len(part)]) for part in PARTS), strict=True
    ):
        assert_allclose(np.concatenate(parts), whole, atol=1e-10)


def test_every_form_of_sequences_says_the_same(walked: GTMSequence):
    rng = np.random.default_rng(1)
    # Rows of different sequences in between each other, each sequence in its own order.
    shuffled, names = np.empty(len(X), dtype=int), rng.permutation(NAMES)
    for name in set(NAMES):
        shuffled[names == name] = np.flatnonzero(name == NAMES)
    for whole, listed, named, between in zip(
        verbs(walked, X, lengths=LENGTHS),
        verbs(walked, PARTS),
        verbs(walked, X, groups=NAMES),
        verbs(walked, X[shuffled], groups=NAMES[shuffled]),
        strict=True,
    ):
        assert [len(part) for part in listed] == LENGTHS.tolist()
        assert_allclose(np.concatenate(listed), whole, atol=1e-12)
        assert_allclose(named, whole, atol=1e-12)
        assert_allclose(between, whole[shuffled], atol=1e-12)


def test_an_array_of_three_axes_comes_back_as_one(walked: GTMSequence):
    cube = X[:200].reshape(4, 50, -1)
    for stacked, whole in zip(verbs(walked, cube), verbs(walked, X[:200], lengths=[50] * 4), strict=True):
        assert_allclose(stacked, whole.reshape(stacked.shape))
    assert walked.sample(3, length=4, random_state=0).shape == (3, 4, X.shape[1])
    assert np.isfinite(model().fit(walked.sample(3, length=40, random_state=0)).noise_variance_)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_column_of_a_frame_may_name_the_sequences(library):
    frame = library.DataFrame({name: X[:, j] for j, name in enumerate(DATA.feature_names)} | {"walk": NAMES.tolist()})
    found, plain = model().fit(frame, groups="walk"), fitted()
    assert_array_equal(found.feature_names_in_, DATA.feature_names)
    assert_allclose(found.weights_, plain.weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(found.transform(frame, groups="walk"), plain.transform(X, lengths=LENGTHS), atol=1e-9)
    parts = [frame[a:b] for a, b in zip(np.cumsum(LENGTHS) - LENGTHS, np.cumsum(LENGTHS), strict=True)]
    parts = [part.drop(columns="walk") if library is pd else part.drop("walk") for part in parts]
    listed = model().fit(parts)
    assert_array_equal(listed.feature_names_in_, DATA.feature_names)
    assert_allclose(listed.weights_, plain.weights_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("given", [PARTS, X[:200].reshape(4, 50, -1)], ids=["list", "array"])
def test_frames_are_of_all_rows(given):
    found = fitted(max_iter=2).set_output(transform="pandas").transform(given)
    plain = fitted(max_iter=2).transform(given)
    assert isinstance(found, pd.DataFrame)
    assert_allclose(found.to_numpy(), np.concatenate(list(plain)))


def test_errors_of_cells_come_in_the_form_of_the_rows():
    errors = np.full(X.shape, 0.1)
    whole = model(max_iter=3).fit(X, lengths=LENGTHS, errors=errors)
    listed = model(max_iter=3).fit(PARTS, errors=np.split(errors, np.cumsum(LENGTHS)[:-1]))
    assert_allclose(listed.weights_, whole.weights_, rtol=1e-9, atol=1e-12)
    assert whole.noise_variance_ < model(max_iter=3).fit(PARTS).noise_variance_
    with pytest.raises(InvalidDataError, match="errors come in parts of 220 rows, but the sequences of X have"):
        whole.transform(PARTS, errors=[errors])


@pytest.mark.parametrize("at_once", [64, 7, 1])
def test_a_long_sequence_is_walked_in_blocks(walked: GTMSequence, at_once: int, monkeypatch):
    """Checkpoints between blocks change nothing, in sums and in answers."""
    gappy = X.copy()
    gappy[50:60] = np.nan
    whole = list(verbs(walked, gappy, lengths=[120, 100]))
    trained = model().fit(gappy, lengths=[120, 100])
    sized = walks.SequenceWalk.chunks

    def smaller(self, part: slice) -> list[slice]:
        return [slice(i, min(i + at_once, part.stop)) for i in range(part.start, part.stop, at_once)]

    monkeypatch.setattr(walks.SequenceWalk, "chunks", smaller)
    assert sized is not walks.SequenceWalk.chunks
    for one, other in zip(verbs(walked, gappy, lengths=[120, 100]), whole, strict=True):
        assert_allclose(one, other, atol=1e-10)
    again = model().fit(gappy, lengths=[120, 100])
    assert_allclose(again.weights_, trained.weights_, rtol=1e-8, atol=1e-10)
    assert_allclose(again.move_shares_, trained.move_shares_, rtol=1e-8)


def test_compiled_passes_train_the_same(monkeypatch):
    plain = fitted()
    monkeypatch.setattr(walks, "_COMPILED_FROM", 0)
    quick = fitted()
    assert_allclose(quick.weights_, plain.weights_, rtol=1e-8, atol=1e-10)
    assert_allclose(quick.history_["objective"], plain.history_["objective"], rtol=1e-10)
    assert_array_equal(quick.paths(PARTS).nodes[0], plain.paths(PARTS).nodes[0])


@pytest.mark.parametrize("most", [1, 10, 50, 1000])
def test_portions_hold_whole_sequences(most: int):
    rng = np.random.default_rng(0)
    cuts = np.append(0, np.cumsum(rng.integers(1, 40, 60)))
    parts = walks.portions(cuts, most)
    assert parts[0].start == 0
    assert parts[-1].stop == cuts[-1]
    assert all(a.stop == b.start for a, b in pairwise(parts))
    edges = set(cuts.tolist())
    assert all({part.start, part.stop} <= edges for part in parts)
    longest = {int(b - a) for a, b in pairwise(cuts)}
    assert all(part.stop - part.start <= most or part.stop - part.start in longest for part in parts)


# ------------------------------------------------------------------------------------------------ what is asked


def test_rows_given_those_before_add_up_to_the_sequence(walked: GTMSequence):
    rows = walked.score_samples(X, lengths=LENGTHS)
    for part, own in zip(PARTS, np.split(rows, np.cumsum(LENGTHS)[:-1]), strict=True):
        for t in (1, 5, len(part)):
            assert_allclose(walked.score_samples(part[:t], lengths=[t]).sum(), own[:t].sum(), rtol=1e-10)
    assert_allclose(walked.score(X, lengths=LENGTHS), rows.mean())
    assert_allclose(walked.score(PARTS), rows.mean())


def test_the_last_row_is_filtered_as_it_is_smoothed(walked: GTMSequence):
    last = np.cumsum(LENGTHS) - 1
    filtered, smoothed = walked.filter(X, lengths=LENGTHS), walked.transform(X, lengths=LENGTHS)
    assert_allclose(filtered[last], smoothed[last], atol=1e-12)
    assert np.abs(filtered - smoothed).max() > 1e-3


def test_sparse_responsibilities_are_the_large_ones(walked: GTMSequence):
    whole, some = walked.responsibilities(X, lengths=LENGTHS), walked.responsibilities(X, 0.01, lengths=LENGTHS)
    assert_allclose(some.toarray(), np.where(whole >= 0.01, whole, 0.0), atol=1e-14)
    parts = walked.responsibilities(PARTS, 0.01)
    assert_allclose(parts[1].toarray(), some[LENGTHS[0] : LENGTHS[0] + LENGTHS[1]].toarray())
    with pytest.raises(InvalidParameterError, match="threshold must be None or a number above 0 and below 1, got 2"):
        walked.responsibilities(X, 2, lengths=LENGTHS)


def test_missing_steps_are_filled_in_by_the_rest_of_the_sequence(walked: GTMSequence):
    gappy = X.copy()
    gappy[20:24] = np.nan
    found, std = walked.impute(gappy, lengths=LENGTHS, return_std=True)
    assert_array_equal(found[:20], X[:20])
    assert (std[20:24] > 0).all()
    assert not std[:20].any()
    alone = walked.impute(gappy)  # rows by themselves know nothing of each other
    close = np.abs(found[20:24] - DATA.clean[20:24]).mean()
    assert close < 0.5 * np.abs(alone[20:24] - DATA.clean[20:24]).mean()
    assert_array_equal(walked.impute(X, lengths=LENGTHS), X)
    assert walked.score_samples(gappy, lengths=LENGTHS)[20:24] == pytest.approx(0.0, abs=1e-12)


def test_forecasts_forget_in_the_end(walked: GTMSequence):
    """Far ahead the walk may be anywhere, wherever it was: with the jumps it has, in equilibrium."""
    near, far = (walked.forecast(PARTS, n)[:, -1] for n in (1, 3000))
    assert np.ptp(near, axis=0).max() > 0.1
    A = walked.transition_matrix()
    equilibrium = np.linalg.matrix_power(A, 2**14)[0]
    assert_allclose(far, np.tile(equilibrium @ walked.inverse_transform(walked.latent_.nodes), (5, 1)), atol=1e-6)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_every_noise_forecasts(noise):
    mean, std = fitted(noise=noise, max_iter=4).forecast(PARTS, 2, return_std=True)
    assert mean.shape == std.shape == (5, 2, X.shape[1])
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_outliers_weigh_little_in_the_light_of_their_sequence():
    found = fitted(noise="student", max_iter=15)
    wrong = X.copy()
    wrong[30] += 5.0
    weight = found.outlier_weights(wrong, lengths=LENGTHS)
    assert weight.argmin() == 30
    with pytest.raises(InvalidParameterError, match="has no outlier weights"):
        fitted(max_iter=1).outlier_weights(X, lengths=LENGTHS)


def test_drawn_walks_go_as_the_chain_says():
    chain = fitted(transitions="free", initial="learned", jump=0.2)._chain
    path = gtm_sequence.sample_nodes(chain, 4000, 12, np.random.default_rng(0))
    K, steps = chain.moves.n_nodes, chain.steps
    A = steps.matrix().toarray() + steps.leap
    counts = np.zeros((K, K))
    np.add.at(counts, (path[:, :-1].ravel(), path[:, 1:].ravel()), 1)
    left = counts.sum(axis=1, keepdims=True)
    assert (np.abs(counts - left * A) <= 5 * np.sqrt(left * A * (1 - A)) + 1).all()
    first = np.bincount(path[:, 0], minlength=K)
    assert (np.abs(first - 4000 * chain.initial) <= 5 * np.sqrt(4000 * chain.initial) + 1).all()


def test_samples_look_like_sequences(walked: GTMSequence):
    drawn = walked.sample(4, length=100, random_state=0)
    assert_allclose(drawn, walked.sample(4, length=100, random_state=0))
    assert walked.score(drawn) > walked.score(drawn.reshape(-1, X.shape[1])) + 0.5
    assert walked.sample(0, length=3).shape == (0, 3, X.shape[1])
    learned = fitted(initial="learned", max_iter=3)
    assert learned.sample(7, random_state=0).shape == (7, X.shape[1])


@pytest.mark.parametrize("initial", ["uniform", "learned"])
@pytest.mark.parametrize("length", [None, 40])
def test_samples_come_with_the_places_they_were_drawn_at(initial: str, length: int | None):
    found = fitted(initial=initial, max_iter=20)
    rows, latent = found.sample(30, length=length, random_state=0, return_latent=True)
    assert_array_equal(rows, found.sample(30, length=length, random_state=0))
    assert latent.shape == (*rows.shape[:-1], 1)
    off = rows.reshape(-1, X.shape[1]) - found.inverse_transform(latent.reshape(-1, 1))
    n = off.size
    assert abs(np.square(off).mean() / found.noise_variance_ - 1) < 5 * np.sqrt(2 / n)
    if length is not None:
        turns = np.angle(np.exp(1j * np.diff(latent[:, :, 0], axis=1))) / (2 * np.pi / 24)
        assert (np.abs(turns) < found.reach_ + 0.5).mean() > 1 - 2 * found.jump_ - 0.02
    assert found.sample(0, length=length, return_latent=True)[1].shape == (*((0,) if length is None else (0, 40)), 1)


def test_bands_are_those_of_the_masses_and_the_evidence_is_not_offered(walked: GTMSequence):
    assert (walked.surface_std(walked.latent_.nodes) > 0).all()
    for verb in ("log_evidence", "effective_weights", "partial_fit", "n_seen_"):
        assert not hasattr(walked, verb)
    with pytest.raises(AttributeError, match="GTMSequence has no log_evidence: it would take each row for itself"):
        walked.log_evidence(X)
    with pytest.raises(InvalidParameterError, match="a band from rows X takes each row for itself"):
        walked.surface_std(walked.latent_.nodes, X=X, hessian="exact")


# ----------------------------------------------------------------------------------------------------- degenerate


def test_rows_far_from_everything_and_impossible_steps(walked: GTMSequence):
    odd = X.copy()
    odd[10], odd[11] = 1e6, -1e6
    rows = walked.score_samples(odd, lengths=LENGTHS)
    assert np.isfinite(rows).all()
    assert_allclose(walked.responsibilities(odd, lengths=LENGTHS).sum(axis=1), 1.0)
    assert np.isfinite(walked.transform(odd.astype(np.float32), lengths=LENGTHS)).all()
    assert np.isfinite(walked.score_samples(odd.astype(np.float32), lengths=LENGTHS)).all()
    there = walked.inverse_transform(walked.latent_.nodes[[0, 0, 12, 12, 12]])  # to the other side at once
    path = walked.paths(there, lengths=[5]).nodes
    off = np.abs((path - [0, 0, 12, 12, 12] + 12) % 24 - 12)
    assert (off <= 2).all()
    assert np.isfinite(walked.score(there, lengths=[5]))


def test_sequences_of_one_row_among_others():
    lengths = [1, 100, 1, 118]
    found = model().fit(X, lengths=lengths)
    assert np.isfinite(found.score(X, lengths=lengths))
    assert_allclose(found.transform(X[:1], lengths=[1]), found.transform(X[:1]), atol=1e-12)


def test_a_sequence_that_stands_still():
    found = model(max_iter=5).fit(np.ones((30, 3)), lengths=[10, 20])
    assert np.isfinite(found.transform(np.ones((4, 3)), lengths=[4])).all()


@pytest.mark.parametrize(
    ("given", "how", "message"),
    [
        (X, {"lengths": [100, 100]}, "the 2 lengths add up to 200, but X has 220 rows"),
        (X, {"lengths": [220, 0]}, "sequence 1 has a length of 0, but a sequence has at least one row; leave it out"),
        (X, {"lengths": [230, -10]}, "sequence 1 has a length of -10"),
        (X, {"lengths": 220}, r"one sequence of all rows is lengths=\[220\]"),
        (X, {"lengths": [110.0, 110.0]}, "lengths must be whole numbers"),
        (X, {"lengths": []}, "lengths must be whole numbers"),
        (X, {"lengths": [220], "groups": NAMES}, "lengths and groups say the same; give one of them"),
        (X, {"groups": NAMES[:-1]}, r"groups has shape \(219,\), but X has 220 rows"),
        (X, {"groups": [None, *NAMES[1:]]}, "row 0 belongs to no sequence: groups has None there"),
        (X, {"groups": np.append(np.ones(219), np.nan)}, "row 219 belongs to no sequence"),
        (X, {"groups": "walk"}, "groups='walk' names a column, but X is ndarray"),
        (pd.DataFrame(X), {"groups": "walk"}, "groups='walk' is none of the columns of X"),
        (PARTS, {"lengths": LENGTHS}, "X is several sequences already"),
        ([*PARTS, X[:0]], {}, "sequence 5 of X has no rows; leave it out"),
        ([*PARTS, X[:, :2]], {}, r"sequence 5 of X has the columns \(2,\), but the first has \(12,\)"),
        (np.empty((3, 0, 2)), {}, r"X has shape \(3, 0, 2\), but sequences have at least one row"),
        (np.full((6, 2), np.nan), {"lengths": [3, 3]}, r"only 0 row\(s\) have a value"),
        (X, {"lengths": LENGTHS, "sample_weight": np.ones(220)}, "give one for each of the 5 sequences"),
        (X, {"lengths": LENGTHS, "sample_weight": np.ones(3)}, "sample_weight cannot be used"),
        (X, {"lengths": LENGTHS, "sample_weight": np.zeros(5)}, "at least one non-zero"),
    ],
)
def test_sequences_that_cannot_be(given, how: dict, message: str):
    with pytest.raises(InvalidDataError, match=message):
        model().fit(given, **how)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transitions": "fre"}, "did you mean 'free'"),
        ({"jump": 0.0}, "jump must be None or a number above 0 and at most 1, got 0.0"),
        ({"jump": 0.2, "transitions": "uniform"}, "with uniform transitions all of them do; leave out jump"),
        ({"jump": 1.5}, "jump must be None or a number above 0 and at most 1"),
        ({"reach": -1}, "reach must be None or"),
        ({"strength": 0}, "strength must be"),
        ({"initial": "stationary"}, "initial must be"),
        ({"prior_precision": "evidence"}, "prior_precision must be None or"),
        ({"noise": "varying"}, r"use VaryingNoise\(mixing=False\)"),
        ({"init": "fast"}, "init must be"),
    ],
)
def test_settings_that_cannot_be(settings: dict, message: str):
    with pytest.raises(InvalidParameterError, match=message):
        fitted(**settings)


def test_questions_that_cannot_be_answered(walked: GTMSequence):
    with pytest.raises(InvalidParameterError, match="n_steps must be"):
        walked.forecast(PARTS, 0)
    with pytest.raises(InvalidParameterError, match="length must be"):
        walked.sample(2, length=0)
    with pytest.raises(InvalidParameterError, match="n must be"):
        walked.sample(-1, length=3)
    with pytest.raises(InvalidParameterError, match="'slow' looks at what changes from row to row"):
        model(init="slow").fit(X)
    import scipy.sparse

    with pytest.raises(UnsupportedInputError, match="a sparse table has no missing cells"):
        walked.impute(scipy.sparse.csr_matrix(X), lengths=LENGTHS)


def test_sparse_tables_walk_too(walked: GTMSequence):
    import scipy.sparse

    sparse = scipy.sparse.csr_matrix(X)
    found = walked.transform(sparse, lengths=LENGTHS)
    assert_allclose(found, walked.transform(X, lengths=LENGTHS), atol=1e-12)
    learned = model(init="pca", max_iter=3).fit(sparse, lengths=LENGTHS)
    assert_allclose(learned.weights_, model(init="pca", max_iter=3).fit(X, lengths=LENGTHS).weights_, atol=1e-9)


def test_steps_longer_than_the_reach_are_told_of():
    rng = np.random.default_rng(0)
    phase = rng.uniform(-np.pi, np.pi, 300)
    table = np.stack([np.cos(phase), np.sin(phase)], axis=1) + 0.02 * rng.standard_normal((300, 2))
    with pytest.warns(DegenerateWarning, match=r"of the steps go further than the 1 node that a step may reach"):
        model(nodes=40, reach=1, max_iter=30).fit(table, lengths=[300])


def test_rows_without_a_value_are_told_of_only_where_nothing_else_tells_of_them(walked: GTMSequence, recwarn):
    gappy = X.copy()
    gappy[5] = np.nan
    walked.transform(gappy, lengths=LENGTHS)
    assert not [w for w in recwarn if "no value in any column" in str(w.message)]
    with pytest.warns(DegenerateWarning, match="no value in any column"):
        walked.transform(gappy)


def test_sequences_without_a_value_are_told_of(walked: GTMSequence):
    gappy = [*PARTS[:2], np.full((4, X.shape[1]), np.nan), *PARTS[2:]]
    words = r"1 sequence\(s\) have no value in any row, the first being sequence 2; a fit ignores them"
    with pytest.warns(DegenerateWarning, match=words):
        unknown = walked.responsibilities(gappy)[2]
    assert_allclose(unknown.sum(axis=1), 1.0)
    with pytest.warns(DegenerateWarning, match=words):
        found = model(max_iter=3, init="pca").fit(gappy)
    assert_allclose(found.weights_, model(max_iter=3, init="pca").fit(PARTS).weights_, atol=1e-9)


@pytest.mark.parametrize("how", [{}, {"lengths": LENGTHS}], ids=repr)
@pytest.mark.parametrize("initial", ["uniform", "learned"])
def test_blocks_need_a_column_of_names(walked: GTMSequence, how: dict, initial: str):
    with pytest.raises(InvalidParameterError, match="groups is the name or number of the column"):
        model(initial=initial).fit(Blocks(X), **how)
    with pytest.raises(InvalidParameterError, match="groups is the name or number of the column"):
        walked.score(Blocks(X), **how)


# ----------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("settings", [{}, {"transitions": "free", "initial": "learned"}, {"transitions": "uniform"}])
def test_files_hold_the_walk(tmp_path, settings: dict):
    found = fitted(**settings)
    found.save(tmp_path / "walk.prinfold")
    again = prinfold.load(tmp_path / "walk.prinfold")
    for one, other in zip(verbs(again, X, lengths=LENGTHS), verbs(found, X, lengths=LENGTHS), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(again.transition_matrix(), found.transition_matrix())
    assert_array_equal(again.moves_, found.moves_)
    assert_array_equal(again.sample(2, length=3, random_state=0), found.sample(2, length=3, random_state=0))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("jump_", 0.0, "jump_ .* must be a finite number above 0"),
        ("move_shares_", np.ones(3), "11 move_shares_ that add up to 1"),
        ("initial_", np.ones(24), "an initial_ that adds up to 1"),
        ("local_moves_", np.ones(264), "local_moves_ of each node that add up to 1"),
        ("reach_", 2, "5 move_shares_ that add up to 1"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, name: str, value, message: str):
    found = fitted(transitions="free", max_iter=1)
    setattr(found, name, value)
    found.save(tmp_path / "walk.prinfold")
    with pytest.raises(CorruptModelFileError, match=message):
        prinfold.load(tmp_path / "walk.prinfold")


# ------------------------------------------------------------------------------------------------------ one E-step


def test_sums_over_sequences_are_added_up(walked: GTMSequence):
    """An E-step over all sequences is the sum of those over some of them: of rows and of steps."""
    chain, parameters = walked._chain, walked._parameters()

    def sums(table: np.ndarray, lengths: np.ndarray):
        rows = gtm_sequence.in_sequences(walked._rows(table), np.append(0, np.cumsum(lengths)))
        return gtm_sequence.e_step(walked._sequence_model, rows, parameters, chain, gtm.Hint())[:2]

    cut = int(LENGTHS[:2].sum())
    whole, first, second = sums(X, LENGTHS), sums(X[:cut], LENGTHS[:2]), sums(X[cut:], LENGTHS[2:])
    assert_allclose((first[0] + second[0]).moment, whole[0].moment, atol=1e-10)
    assert_allclose((first[0] + second[0]).log_likelihood, whole[0].log_likelihood)
    both = first[1].plus(second[1])
    assert_allclose(both.moves, whole[1].moves, atol=1e-12)
    assert_allclose(both.jumps, whole[1].jumps, atol=1e-12)
    assert_allclose(both.first, whole[1].first, atol=1e-12)
    assert_allclose(whole[1].moves.sum() + whole[1].jumps, len(X) - len(LENGTHS))
