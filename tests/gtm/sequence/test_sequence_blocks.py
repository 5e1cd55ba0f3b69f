"""Sequences that are read block by block, or lie in partitions: the fit to all of them, whatever the cuts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold import Blocks, Checkpoint, GTMSequence, datasets
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, UnsupportedInputError
from prinfold.gtm.sequence import sequence_blocks

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

LENGTHS = np.array([40, 37, 3, 60, 1, 59])
COLUMNS = [f"angle {j}" for j in range(4)]
FRAME = pd.DataFrame(datasets.make_motion(rng=0).X[:200, :4], columns=COLUMNS).assign(
    walk=np.repeat([f"walk {i}" for i in range(6)], LENGTHS)
)
WEIGHTS = np.array([1.0, 2.0, 1.0, 0.0, 1.5, 1.0])
QUICK = {"latent": "circle", "nodes": 20, "max_iter": 5, "tol": 0.0, "random_state": 0}


def with_gaps():
    """Missing cells, missing steps, a sequence without any value, and weights of sequences."""
    frame = FRAME.assign(weight=np.repeat(WEIGHTS, LENGTHS))
    frame.loc[::11, "angle 0"] = np.nan
    frame.loc[45:49, COLUMNS] = np.nan
    frame.loc[77:79, COLUMNS] = np.nan
    return frame


def assert_same_fit(found, expected):
    assert_allclose(found.weights_, expected.weights_, atol=1e-9 * np.abs(expected.weights_).max())
    assert_allclose(found.history_["objective"], expected.history_["objective"], rtol=1e-9)
    assert_allclose(found.move_shares_, expected.move_shares_, rtol=1e-8)
    assert_allclose(found.initial_, expected.initial_, rtol=1e-8)
    assert_allclose(found.node_mass_, expected.node_mass_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rows", [30, 50, 1000])
@pytest.mark.parametrize(
    "settings",
    [{}, {"transitions": "free"}, {"transitions": "uniform"}, {"initial": "learned"}, {"noise": "diagonal"}],
    ids=str,
)
def test_a_fit_to_blocks_is_that_to_all_sequences(rows, settings):
    model = GTMSequence(**QUICK | settings)
    model.fit(Blocks(FRAME, rows=rows), groups="walk")
    assert_same_fit(model, GTMSequence(**QUICK | settings).fit(FRAME, groups="walk"))
    assert list(model.feature_names_in_) == COLUMNS
    expected = model.score(FRAME, groups="walk")
    assert model.score(Blocks(FRAME, rows=33), groups="walk") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [30, 1000])
def test_gaps_missing_steps_and_weights(rows):
    frame = with_gaps()
    with pytest.warns(DegenerateWarning, match="1 sequence.* no value in any row"):
        found = GTMSequence(**QUICK).fit(Blocks(frame, rows=rows, weight="weight"), groups="walk")
    table = frame.drop(columns="weight")
    assert_same_fit(found, GTMSequence(**QUICK).fit(table, groups="walk", sample_weight=WEIGHTS))


def test_names_may_be_numbers_and_sources_arrays_or_arrow():
    X = np.column_stack([FRAME[COLUMNS], np.repeat(np.arange(6), LENGTHS)])
    expected = GTMSequence(**QUICK).fit(FRAME[COLUMNS].to_numpy(), lengths=LENGTHS)
    assert_same_fit(GTMSequence(**QUICK).fit(Blocks(X, rows=50), groups=-1), expected)
    assert_same_fit(GTMSequence(**QUICK).fit(Blocks(pa.table(FRAME), rows=50), groups="walk"), expected)


def test_a_sample_is_of_whole_sequences_and_stands_for_all(monkeypatch):
    monkeypatch.setattr(sequence_blocks, "most_in_sample", lambda row_bytes: 70)
    found = sequence_blocks.survey_sequences(
        Blocks(FRAME, rows=50), "walk", lambda: np.random.default_rng(0), accept_missing=True, min_rows=2
    )
    kept = found.survey.sample.table
    assert found.survey.n_rows == 200
    assert found.lengths.sum() == len(kept) <= 70
    assert set(found.lengths) <= set(LENGTHS)
    starts = np.cumsum(LENGTHS) - LENGTHS
    own = [FRAME[COLUMNS].to_numpy()[a : a + n] for a, n in zip(starts, LENGTHS, strict=True)]
    parts = np.split(kept, np.cumsum(found.lengths)[:-1])
    assert all(any(np.array_equal(part, each) for each in own) for part in parts)
    full = GTMSequence(**QUICK | {"max_iter": 60}).fit(FRAME, groups="walk")
    model = GTMSequence(**QUICK | {"max_iter": 60}).fit(Blocks(FRAME, rows=50), groups="walk")
    score = model.score(FRAME, groups="walk")
    assert score > full.score(FRAME, groups="walk") - 0.1, "all rows are fitted, whatever the start"
    monkeypatch.setattr(sequence_blocks, "most_in_sample", lambda row_bytes: 20)
    assert np.isfinite(GTMSequence(**QUICK).fit(Blocks(FRAME, rows=50), groups="walk").weights_).all()


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    plain = GTMSequence(**QUICK).fit(Blocks(FRAME, rows=50), groups="walk")
    path = tmp_path / "fit.checkpoint"
    for _ in range(2):
        model = GTMSequence(**QUICK).set_callbacks(Checkpoint(path, every=0))
        model.fit(Blocks(FRAME, rows=50), groups="walk")
        assert_array_equal(model.weights_, plain.weights_)


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        (FRAME, {}, InvalidParameterError, "groups is the name or number of the column"),
        (FRAME, {"groups": FRAME["walk"].to_numpy()}, InvalidParameterError, "groups is the name or number"),
        (FRAME, {"lengths": LENGTHS}, InvalidParameterError, "lengths are not given"),
        (FRAME, {"groups": "run"}, InvalidParameterError, "groups names 'run', but the source has"),
        (FRAME, {"groups": "walk", "sample_weight": WEIGHTS}, UnsupportedInputError, r"Blocks\(source, weight=...\)"),
        (FRAME, {"groups": "walk", "errors": np.ones(200)}, UnsupportedInputError, "errors do not go with Blocks"),
        (
            FRAME.assign(walk=FRAME["walk"].where(np.arange(200) != 5)),
            {"groups": "walk"},
            InvalidDataError,
            "row 5 of a block belongs to no sequence",
        ),
    ],
)
def test_what_cannot_be_is_refused(source, options, error, words):
    with pytest.raises(error, match=words):
        GTMSequence(**QUICK).fit(Blocks(source, rows=60), **options)


def test_a_name_that_comes_again_later_is_a_sequence_of_its_own():
    frame = FRAME.assign(walk=FRAME["walk"].replace("walk 4", "walk 0"))
    expected = GTMSequence(**QUICK).fit(FRAME, groups="walk")
    assert_same_fit(GTMSequence(**QUICK).fit(Blocks(frame, rows=50), groups="walk"), expected)


def test_rows_of_one_sequence_weigh_alike():
    with pytest.raises(InvalidDataError, match="those of 'walk 0' do"):
        GTMSequence(**QUICK).fit(Blocks(FRAME.assign(w=np.arange(200.0)), weight="w"), groups="walk")


@pytest.mark.full
def test_dask_has_whole_sequences_in_each_partition():
    frames, dask = (pytest.importorskip(f"dask{name}", reason="needs the extra dask") for name in (".dataframe", ""))
    cuts = [0, 40, 80, 200]
    parts = [FRAME[a:b] for a, b in pairwise(cuts)]
    lazy = frames.from_delayed([dask.delayed(part) for part in parts], meta=FRAME[:0])
    model = GTMSequence(**QUICK).fit(lazy, groups="walk")
    assert_same_fit(model, GTMSequence(**QUICK).fit(FRAME, groups="walk"))
    expected = np.concatenate([model.transform(part, groups="walk") for part in parts])
    assert_array_equal(model.transform(lazy, groups="walk").compute(), expected)
    assert model.score(lazy, groups="walk") == pytest.approx(model.score(FRAME, groups="walk"), rel=1e-12)
    with pytest.raises(InvalidDataError, match=r"goes on in the next partition.*whole sequences"):
        GTMSequence(**QUICK).fit(frames.from_pandas(FRAME, npartitions=4), groups="walk")
