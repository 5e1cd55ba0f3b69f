"""What a table is like is said once, in the same words and with the same limit everywhere."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, KMM, PrincipalCurve, PrincipalSurface, datasets
from prinfold.cli.methods import choose_scaling
from prinfold.exceptions import DegenerateWarning
from prinfold.validation.data_notes import (
    groups_note,
    heavy_row_note,
    separate_groups,
    spreads_note,
    unlike_spreads,
)


@pytest.mark.parametrize(("spreads", "found"), [([1.0, 9.9], None), ([1.0, 10.1], (1, 0)), ([0.0, 0.0, 5.0], None)])
def test_spreads_are_unlike_from_tenfold_on(spreads, found):
    unlike = unlike_spreads(np.array(spreads))
    assert (None if unlike is None else unlike[:2]) == found


def test_one_narrow_column_among_many_is_no_reason():
    assert unlike_spreads(np.array([1.0, 1.2, 0.9, 1.1, 1.0, 1.3, 0.8, 1e-3])) is None


def test_the_command_line_scales_where_python_warns():
    X = datasets.make_half_circle(50, rng=0).X
    for factor in (1.0, 5.0, 30.0, 1000.0):
        rows = X * [factor, 1.0]
        said = spreads_note(rows, ["a", "b"]) is not None
        assert (choose_scaling(None, rows, ["a", "b"])[0].name == "standardize") == said


@pytest.mark.parametrize("model", [GTM(1, nodes=10, basis=4, max_iter=3, tol=0), PrincipalCurve(max_iter=2, tol=0)])
def test_a_fit_warns_once_about_named_columns(model):
    X = datasets.make_half_circle(60, rng=0).X
    frame = pd.DataFrame(X * [1.0, 50.0], columns=["size", "weight"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame)
        make_pipeline(StandardScaler(), model).fit(frame)
    said = [str(each.message) for each in caught if "times that of" in str(each.message)]
    assert len(said) == 1
    assert "standard deviation of 'weight'" in said[0]
    assert "StandardScaler" in said[0]
    assert issubclass(DegenerateWarning, UserWarning)


def test_separate_groups_are_counted_and_lone_rows_are_none():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(100, 3)), rng.normal(size=(50, 3)) + 30.0
    assert separate_groups(np.vstack([one, other])) == [100, 50]
    assert separate_groups(one) == [100]
    assert separate_groups(np.vstack([one, [[100.0, 0.0, 0.0]]])) == [101]
    assert "2 separate groups (67 %, 33 %)" in str(groups_note(np.vstack([one, other])))
    assert groups_note(datasets.make_spiral(300, rng=0).X) is None
    assert groups_note(datasets.make_swiss_roll(300, rng=0).X) is None


def rows_with_one_wide(names):
    """Rows whose first column spreads fifty-one times as far as the others."""
    return np.outer([-0.7, 0.7], 1.0 + 50.0 * (np.arange(len(names)) == 0))


@pytest.mark.parametrize(
    "names",
    [
        *(["X_pca 1", "X_pca 2"], ["X_scVI 1", "X_scVI 2"], ["X_scVI_0", "X_scVI_1"], ["PC1", "PC2"], ["PC-1", "PC-2"]),
        *(["UMAP1", "UMAP2"], ["tsne_1", "tsne_2"], ["t-SNE 1", "t-SNE 2"], ["DC1", "DC2"], ["dim.1", "dim.2"]),
        *(["400", "410.5"], ["400nm", "410nm"], ["410 nm", "400 nm"], ["2001", "2002"], ["0", "1", "4"]),
        *(["a (mm)", "b (mm)"], ["a_mm", "b_mm"], ["a mm", "b mm"], ["a, mm", "b, mm"], ["wide [cells]", "x [cells]"]),
        *(["c_mg/l", "d_mg/l"], ["v m/s", "w m/s"], ["area cm²", "other cm²"], ["t_degC", "u_degC"], ["x %", "y %"]),
    ],
)
def test_columns_in_one_unit_need_no_scaling(names):
    assert spreads_note(rows_with_one_wide(names), names) is None


@pytest.mark.parametrize(
    "names",
    [
        *(["a", "b"], ["a_mm", "b_cm"], ["a_mm", "b"], ["height_mean", "weight_mean"], ["a (mm)", "b_cm"]),
        *(["0", "1"], ["1", "2", "3"], ["5.0", "3.0", "4.0"], ["PC1", "UMAP2"], ["x1", "x2"], ["400nm", "weight"]),
        *(["wind_min", "rain_min"], ["height_M", "weight_M"], ["flow_in", "heat_in"], ["dose_T", "rate_T"]),
    ],
)
def test_other_columns_may_need_scaling(names):
    assert spreads_note(rows_with_one_wide(names), names) is not None


def test_counts_are_in_one_unit_and_whole_numbers_of_other_kinds_are_not():
    """Poisson and grouped counts stay as they are; scores, years and measurements in whole numbers do not pass."""
    rng = np.random.default_rng(0)
    names = [f"gene {j}" for j in range(20)]
    level = np.geomspace(0.1, 300.0, 20)
    poisson = rng.poisson(level * rng.gamma(2.0, 0.5, (300, 1))).astype(float)
    grouped = rng.poisson(level * rng.gamma(1.0, 1.0, (300, 20))).astype(float)
    scores = np.column_stack([rng.integers(1, 6, (300, 19)), rng.integers(15000, 90000, 300)]).astype(float)
    measured = np.round(rng.normal(1000.0, 10.0, (300, 20)) * np.geomspace(1.0, 100.0, 20))
    yes_or_no = np.column_stack([rng.integers(0, 2, (300, 19)), rng.integers(0, 900, 300)]).astype(float)
    for rows, words in [(poisson, "raw"), (grouped, "raw"), (scores, "standardize"), (measured, "standardize")]:
        assert choose_scaling(None, rows, names)[0].name == words
        assert (spreads_note(rows, names) is None) == (words == "raw")
    assert choose_scaling(None, yes_or_no, names)[0].name == "standardize"
    assert choose_scaling(None, poisson - 1.0, names)[0].name == "standardize"
    assert choose_scaling(None, poisson[:, -3:] / [1, 10, 100], names[-3:])[0].name == "standardize"


QUICK = {
    "GTM": GTM(1, nodes=8, basis=3, max_iter=2, tol=0),
    "curve": PrincipalCurve(max_iter=2, tol=0),
    "surface": PrincipalSurface(1, nodes=8, max_iter=2, tol=0),
    "KMM": KMM(1, max_iter=2, tol=0),
}
"""Models that hardly train, since what a table is like does not depend on it."""


def notes_of_fit(name, X, words):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        QUICK[name].fit(X)
    return [str(each.message) for each in heard if words in str(each.message)]


@pytest.mark.parametrize("name", list(QUICK))
def test_a_row_far_from_all_others_is_named_by_every_method_that_follows_it(name):
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[13] = 8.0
    (said,) = notes_of_fit(name, X, "of the variance of all rows")
    assert said.startswith("Row 13 makes up ")
    labels = [f"plant {i}" for i in range(100)]
    (said,) = notes_of_fit(name, pd.DataFrame(X, index=labels, columns=list("abc")), "of the variance of all rows")
    assert said.startswith("Row 'plant 13' makes up ")
    assert notes_of_fit(name, np.delete(X, 13, axis=0), "of the variance of all rows") == []


def test_no_row_of_a_usual_sample_is_far_from_all_others():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(n, D)) for n in (20, 50, 300) for D in (1, 2, 10)]
    tables += [datasets.make_swiss_roll(300, noise=1.0, rng=0).X, datasets.make_half_circle(100, noise=0.2, rng=0).X]
    for X in tables:
        assert heavy_row_note(np.square(X - X.mean(axis=0)).sum(axis=1), str) is None
