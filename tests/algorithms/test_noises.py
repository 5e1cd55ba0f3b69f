"""Every noise model on tables that have little to say: an answer or a warning, and nothing that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import GTM, LowRankNoise, StudentNoise, datasets
from prinfold.algorithms.noise_models import NOISES

RIDGE = datasets.make_ridge(64, rng=0).X[:60]
FAR = np.concatenate([RIDGE, [[1e8, -1e8, 1e8]]])
CELL = RIDGE.copy()
CELL[:, 1] = np.nan
CELL[5, 1] = 1.0
TABLES = {
    "one column": RIDGE[:, :1],
    "a constant column": np.column_stack([RIDGE, np.full(60, 3.0)]),
    "nothing but constants": np.full((20, 3), 2.0),
    "duplicates": np.repeat(RIDGE[:5], 10, axis=0),
    "two rows": RIDGE[:2],
    "the same row twice": RIDGE[[0, 0]],
    "fewer rows than nodes": RIDGE[:15],
    "fewer rows than columns": np.random.default_rng(0).standard_normal((10, 60)),
    "a row far away": FAR,
    "a row far away, single": FAR.astype(np.float32),
    "far from the origin": RIDGE + 1e9,
    "tiny": RIDGE * 1e-30,
    "huge": RIDGE * 1e60,
    "two clusters": np.concatenate([RIDGE * 1e-6, RIDGE * 1e-6 + 1]),
    "a straight line": np.outer(np.linspace(0, 1, 50), [1.0, 2.0, 3.0]),
    "one cell in a column": CELL,
}
MODELS = NOISES | {
    "cauchy": StudentNoise(df=0.5),
    "own tails": StudentNoise(columns="own"),
    "low rank": LowRankNoise(1),
}


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_little_to_say_is_said(table, name):
    if name == "low rank" and table.shape[1] == 1:
        pytest.skip("noise of rank 1 in one column is refused")
    model = GTM(1, noise=MODELS[name], max_iter=15).fit(table)
    objective = np.array(model.history_["objective"])
    assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()
    assert np.isfinite(model.transform(table)).all()
    assert np.isfinite(model.score_samples(table)).all()
    assert np.isfinite(model.sample(3, random_state=0)).all()
    if table.shape[1] > 1:
        gap = table.astype(float)
        gap[0, 0] = np.nan
        found, spread = model.impute(gap, return_std=True)
        assert np.isfinite(found).all()
        assert (spread >= 0).all()
