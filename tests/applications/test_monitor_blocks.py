"""Monitors of tables that are read block by block: rows are held out once, and only sums are kept of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold import GTM, Blocks, SurfaceMonitor, datasets
from prinfold.applications import monitor_blocks
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = datasets.make_pipe_flow(400, rng=0).X[:, :5]
MAP = GTM(nodes=7, basis=3, max_iter=4, tol=0.0, random_state=0)


@pytest.mark.parametrize("rows", [60, 1000])
def test_the_last_rows_held_out_give_the_monitor_of_the_whole_table(rows):
    found = SurfaceMonitor(MAP, calibration="last").fit(Blocks(X, rows=rows))
    expected = SurfaceMonitor(MAP, calibration="last").fit(X)
    assert_allclose(found.node_shares_, expected.node_shares_, rtol=1e-9)
    assert_allclose(found.reference_, expected.reference_, rtol=1e-6)
    assert_allclose(found.noise_scale_, expected.noise_scale_, rtol=1e-9)
    assert_array_equal(found.predict(X), expected.predict(X))


def test_rows_held_out_at_random_have_not_been_fitted(monkeypatch):
    monkeypatch.setattr(monitor_blocks, "_MOST_HELD_OUT", 90)
    blocks = Blocks(np.arange(400.0)[:, None], rows=70)
    parts = monitor_blocks.hold_out(blocks, "split", 0.5, np.random.default_rng(0))
    held, rest = parts.held[:, 0], np.concatenate(list(parts.rest))[:, 0]
    assert (len(held), len(rest), parts.n_rest) == (90, 310, 310)
    assert_array_equal(np.sort(np.concatenate([held, rest])), np.arange(400))
    assert_array_equal(np.concatenate(list(parts.rest))[:, 0], rest), "every pass reads the same rows"
    assert np.abs(held.mean() - 199.5) < 40


def test_false_alarms_keep_to_their_rate():
    rng = np.random.default_rng(1)
    usual = datasets.make_pipe_flow(4000, rng=2).X[:, :5]
    model = SurfaceMonitor(MAP, calibration="split", alarm_rate=0.05).fit(Blocks(usual[:3000], rows=500))
    alarms = (model.predict(usual[3000:]) < 0).mean()
    assert abs(alarms - 0.05) < 4 * np.sqrt(0.05 * 0.95 * (1 / 1000 + 1 / 900))
    assert (model.predict(usual[:50] + 5 * rng.standard_normal((50, 5))) < 0).all()


def test_names_and_gaps():
    frame = pd.DataFrame(X.copy(), columns=list("abcde"))
    frame.loc[::9, "b"] = np.nan
    model = SurfaceMonitor(MAP, calibration="split").fit(Blocks(frame, rows=90))
    assert list(model.feature_names_in_) == list("abcde")
    assert np.isfinite(model.score_samples(frame)).all()


@pytest.mark.parametrize(
    ("settings", "source", "error", "words"),
    [
        ({}, {"source": X}, InvalidParameterError, r"six times.*calibration='split'"),
        ({"calibration": "split"}, {"source": X, "weight": 4}, UnsupportedInputError, "takes no weights"),
        ({"calibration": "split"}, {"source": X[:2]}, InvalidDataError, "2 row.*at least 3"),
    ],
)
def test_what_cannot_be_is_refused(settings, source, error, words):
    with pytest.raises(error, match=words):
        SurfaceMonitor(MAP, **settings).fit(Blocks(**source))
