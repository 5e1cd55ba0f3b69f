"""Landscapes of tables that are read block by block, and of Dask frames: the same as of the whole table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator

from prinfold import GTM, KMM, Blocks, GTMClassifier, GTMRegressor, MixedGTM, datasets
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

DATA = datasets.make_pipe_flow(300, rng=0)
COLUMNS = [f"beam {j}" for j in range(6)]
FRAME = pd.DataFrame(DATA.X[:, :6], columns=COLUMNS).assign(
    flow=DATA.names, weight=np.random.default_rng(0).integers(0, 3, 300).astype(float)
)
QUICK = {"nodes": 7, "basis": 3, "max_iter": 4, "tol": 0.0, "random_state": 0}
MAP = GTM(**QUICK)


def assert_same_landscape(found, expected):
    for name in type(expected.landscape_)._kinds:
        one, other = (getattr(each.landscape_, name) for each in (found, expected))
        if name == "classes":
            assert_array_equal(one, other)
        else:
            assert_allclose(one, other, rtol=1e-9, atol=1e-9 * max(np.abs(np.asarray(other)).max(), 1e-9), err_msg=name)


@pytest.mark.parametrize("rows", [70, 299, 1000])
@pytest.mark.parametrize("priors", ["empirical", "balanced"])
def test_classes(rows, priors):
    blocks = Blocks(FRAME.drop(columns="weight"), rows=rows)
    found = GTMClassifier(MAP, priors=priors).fit(blocks, "flow")
    expected = GTMClassifier(MAP, priors=priors).fit(FRAME[COLUMNS], FRAME["flow"])
    assert_same_landscape(found, expected)
    assert list(found.feature_names_in_) == COLUMNS
    assert_allclose(found.class_prior_, expected.class_prior_)
    assert_allclose(found.predict_proba(FRAME[COLUMNS]), expected.predict_proba(FRAME[COLUMNS]), atol=1e-10)


@pytest.mark.parametrize("targets", ["beam 0", ["beam 0", "beam 3"]])
def test_targets_with_gaps_and_weights(targets):
    frame = FRAME.drop(columns="flow")
    frame.loc[::9, "beam 0"] = np.nan
    rest = [name for name in COLUMNS if name not in targets]
    found = GTMRegressor(MAP).fit(Blocks(frame, rows=70, weight="weight"), targets)
    expected = GTMRegressor(MAP).fit(frame[rest], frame[targets], sample_weight=frame["weight"])
    assert found.n_outputs_ == expected.n_outputs_
    assert_same_landscape(found, expected)
    for one, other in zip(*(each.predict(frame[rest], return_std=True) for each in (found, expected)), strict=True):
        assert_allclose(one, other, rtol=1e-9)


def test_arrays_a_map_of_its_own_and_a_map_of_any_columns():
    X = DATA.X[:, :6]
    found = GTMRegressor(MAP).fit(Blocks(X, rows=70), -1)
    assert_same_landscape(found, GTMRegressor(MAP).fit(X[:, :5], X[:, 5]))
    frozen = FrozenEstimator(GTM(**QUICK).fit(X[:, :5]))
    assert_same_landscape(GTMRegressor(frozen).fit(Blocks(X, rows=70), 5), GTMRegressor(frozen).fit(X[:, :5], X[:, 5]))
    frame = FRAME[COLUMNS[:3]].assign(side=np.where(FRAME["beam 3"] > 0.5, "left", "right"), flow=FRAME["flow"])
    mixed = MixedGTM(**QUICK)
    assert_same_landscape(
        GTMClassifier(mixed).fit(Blocks(frame, rows=70), "flow"),
        GTMClassifier(mixed).fit(frame.drop(columns="flow"), frame["flow"]),
    )


def test_labels_of_numbers_stay_numbers():
    frame = FRAME[COLUMNS].assign(flow=np.unique(FRAME["flow"], return_inverse=True)[1] + 5)
    found = GTMClassifier(MAP).fit(Blocks(frame, rows=70), "flow")
    assert found.classes_.tolist() == [5, 6, 7]
    assert_array_equal(
        found.predict(frame[COLUMNS][:3]),
        GTMClassifier(MAP).fit(frame[COLUMNS], frame["flow"]).predict(frame[COLUMNS][:3]),
    )


@pytest.mark.parametrize(
    ("make", "y", "error", "words"),
    [
        (lambda: GTMClassifier(MAP), tuple("ab"), InvalidParameterError, "y is the name or number of a column"),
        (lambda: GTMClassifier(MAP), None, InvalidParameterError, "y is the name or number of a column"),
        (lambda: GTMClassifier(MAP), "flows", InvalidParameterError, "y names 'flows', but the source has"),
        (lambda: GTMClassifier(MAP), "beam 0", InvalidDataError, "continuous"),
        (lambda: GTMRegressor(MAP), "flow", InvalidDataError, "y cannot be used: could not convert"),
        (lambda: GTMRegressor(KMM()), "beam 0", InvalidParameterError, "responsibilities"),
    ],
)
def test_what_cannot_be_is_refused(make, y, error, words):
    columns = COLUMNS if y == "beam 0" else [*COLUMNS, "flow"]
    with pytest.raises(error, match=words):
        make().fit(Blocks(FRAME[columns], rows=100), y)


def test_a_label_that_is_missing_and_weights_beside_are_refused():
    frame = FRAME[[*COLUMNS, "flow"]].copy()
    frame.loc[250, "flow"] = None
    with pytest.raises(InvalidDataError, match="leave out rows whose class is not known"):
        GTMClassifier(MAP).fit(Blocks(frame, rows=100), "flow")
    with pytest.raises(UnsupportedInputError, match=r"Blocks\(source, weight=...\)"):
        GTMClassifier(MAP).fit(Blocks(frame), "flow", sample_weight=np.ones(300))
    with pytest.raises(InvalidDataError, match="NaN only"):
        GTMRegressor(MAP).fit(Blocks(FRAME[COLUMNS].assign(y=np.nan), rows=100), "y")


@pytest.mark.full
def test_dask_has_the_numbers_of_blocks():
    frames = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    lazy = frames.from_pandas(FRAME.drop(columns="weight"), npartitions=4)
    parts = [part.compute() for part in lazy.to_delayed()]
    found = GTMClassifier(MAP).fit(lazy, "flow")
    of_blocks = GTMClassifier(MAP).fit(Blocks(parts, rows=75), "flow")
    assert_array_equal(found.landscape_.class_mass, of_blocks.landscape_.class_mass)
    assert_array_equal(found.predict(lazy[COLUMNS]).compute(), found.predict(FRAME[COLUMNS]))
    numbers = frames.from_pandas(FRAME[COLUMNS], npartitions=4)
    assert_same_landscape(
        GTMRegressor(MAP).fit(numbers, "beam 1"),
        GTMRegressor(MAP).fit(FRAME[COLUMNS].drop(columns="beam 1"), FRAME["beam 1"]),
    )
