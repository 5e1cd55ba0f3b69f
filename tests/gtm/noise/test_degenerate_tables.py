"""Every noise model on tables that have little to say: an answer or a warning, and nothing that is not finite."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import GTM, LowRankNoise, StudentNoise, datasets
from prinfold.gtm.noise.protocol import Posterior
from prinfold.gtm.noise.recipes import NOISES
from prinfold.gtm.softmax import relative_weights

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


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("noise", ["student", StudentNoise(columns="own"), "varying"], ids=str)
@pytest.mark.parametrize("kind", ["whole", "gaps", "errors"])
def test_some_of_the_nodes_are_as_among_all(noise, kind):
    """Sums and expectations over all nodes, given by name and in another order."""
    table = (
        np.where(np.random.default_rng(1).uniform(size=RIDGE.shape) < 0.2, np.nan, RIDGE) if kind == "gaps" else RIDGE
    )
    errors = np.full(RIDGE.shape, 0.1) if kind == "errors" else None
    model = GTM(1, nodes=12, noise=noise, max_iter=10, tol=0.0).fit(RIDGE)
    known, rows, parameters = model._model.noise, model._rows(table, errors), model._parameters()
    nodes, near = known.at_nodes(model._model.surface, parameters), np.random.default_rng(2).permutation(12)
    found = []
    for chosen in (None, near):
        loaded, work = known.load(rows.block(slice(None)), errors), np.empty((nodes.n_layers, 60, 12))
        own = nodes.log_density(loaded, chosen, work)
        largest, total = relative_weights(work[0])
        posterior = Posterior(work[0], total, own + largest + np.log(total / 12), work[1:])
        sums = nodes.empty_sums()
        sums.add(loaded, None, posterior, chosen)
        found.append((sums.statistics(), *nodes.impute(loaded, posterior, chosen), posterior.log_likelihood))
    for name in vars(found[0][0]):
        assert_allclose(getattr(found[1][0], name), getattr(found[0][0], name), rtol=1e-9, atol=1e-9)
    for one, two in zip(found[0][1:], found[1][1:], strict=True):
        assert_allclose(two, one, rtol=1e-9, atol=1e-9)
