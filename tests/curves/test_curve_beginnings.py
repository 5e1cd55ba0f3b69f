"""Where arc length begins: every curve begins near the row that is named."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import OrientedPointsCurve, PolygonalCurve, PrincipalCurve, ProbabilisticCurve, datasets, load
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError

CURVES = [
    PrincipalCurve(max_iter=5, tol=0),
    ProbabilisticCurve(nodes=20, penalty=0.1, max_iter=3, tol=0),
    PolygonalCurve(max_iter=20, tol=0),
    OrientedPointsCurve(max_iter=60, tol=0),
]
curves = pytest.mark.parametrize("curve", CURVES, ids=lambda each: type(each).__name__)


@pytest.fixture(scope="module")
def half():
    """A half circle, and the rows at its two ends."""
    data = datasets.make_half_circle(120, noise=0.05, rng=0)
    order = np.argsort(data.latent[:, 0])
    return data.X, data.X[order[0]], data.X[order[-1]]


@curves
def test_a_curve_begins_near_the_row_that_is_named(curve, half, tmp_path):
    X, one, other = half
    model = clone(curve).set_params(root=one).fit(X)
    back = clone(model).set_params(root=other.tolist()).fit(X)
    assert model.transform([one])[0, 0] < 0.1 * model.length_
    assert back.transform([other])[0, 0] < 0.1 * back.length_
    assert_allclose(back.transform(X), model.length_ - model.transform(X), atol=1e-8)
    model.save(tmp_path / "curve.prinfold")
    kept = load(tmp_path / "curve.prinfold")
    assert_allclose(kept.root, one)
    assert_allclose(kept.transform(X), model.transform(X))
    assert_allclose(kept.fit(X).transform(X), model.transform(X))  # as it was told, not as rows tell


def test_a_closed_curve_has_its_seam_there(half):
    X = datasets.make_circle(80, noise=0.05, rng=0).X
    model = PrincipalCurve(closed=True, max_iter=3, tol=0, root=X[7]).fit(X)
    for i in range(0, 80, 8):
        begun = PrincipalCurve(closed=True, max_iter=0, tol=0, root=X[i]).fit(X)
        assert begun.transform(X[i : i + 1])[0, 0] < begun.length_ / len(begun.vertices_), "and is not the last of all"
    assert model.transform(X[7:8])[0, 0] < model.length_ / len(model.vertices_)


def test_a_beginning_in_the_middle_is_told(half):
    X, _, _ = half
    with pytest.warns(DegenerateWarning, match="root= lies 1.* from the nearer end of a curve that is"):
        PrincipalCurve(root=(0.0, 1.0), max_iter=3, tol=0).fit(X)


def test_a_beginning_in_other_units_is_told(half):
    X, one, _ = half
    with pytest.warns(DegenerateWarning, match="root= lies .* from the curve, and no row farther than 0"):
        PrincipalCurve(root=one * 1000, max_iter=3, tol=0).fit(X)


@curves
def test_a_row_may_be_named_by_its_number_or_by_a_mask(curve, half):
    X, one, _ = half
    number = int(np.flatnonzero((one == X).all(axis=1))[0])
    mask = np.arange(len(X)) == number
    by_row = clone(curve).set_params(root=one).fit(X).transform(X)
    for root in (number, np.int32(number), mask, mask.tolist()):
        assert_array_equal(clone(curve).set_params(root=root).fit(X).transform(X), by_row)


def test_a_mask_of_several_rows_is_the_one_nearest_to_their_mean(half):
    X, _, other = half
    mask = np.linalg.norm(X - other, axis=1) < 0.3
    assert mask.sum() > 3
    model = PrincipalCurve(root=mask, max_iter=3, tol=0).fit(X)
    middle = min(X[mask], key=lambda row: np.linalg.norm(row - X[mask].mean(axis=0)))
    assert_array_equal(model.transform(X), PrincipalCurve(root=middle, max_iter=3, tol=0).fit(X).transform(X))
    assert model.transform(X[mask]).max() < model.transform(X[~mask]).max() / 2


def test_a_number_and_a_mask_count_rows_of_the_table_as_it_was_given(half):
    """Rows that are equal, and rows without weight, keep their numbers."""
    X, one, _ = half
    table, weight = np.concatenate([X[:3], X[:3], X, one[None]]), np.ones(len(X) + 7)
    weight[-1] = 0.0
    settings = {"max_iter": 3, "tol": 0}
    by_row = PrincipalCurve(root=one, **settings).fit(table, sample_weight=weight).transform(X)
    for root in (len(table) - 1, np.arange(len(table)) == len(table) - 1):
        found = PrincipalCurve(root=root, **settings).fit(table, sample_weight=weight)
        assert_array_equal(found.transform(X), by_row)


def test_a_number_needs_no_units(half):
    X, one, _ = half
    number = int(np.flatnonzero((one == X).all(axis=1))[0])
    model = make_pipeline(StandardScaler(), PrincipalCurve(root=number, max_iter=3, tol=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        model.fit(X)
    assert model.transform([one])[0, 0] < 0.1 * model[-1].length_


@pytest.mark.parametrize("root", [3, np.arange(120) == 5], ids=["number", "mask"])
def test_numbers_and_masks_are_kept_in_model_files(root, half, tmp_path):
    X, _, _ = half
    model = PrincipalCurve(root=root, max_iter=3, tol=0).fit(X)
    model.save(tmp_path / "curve.prinfold")
    kept = load(tmp_path / "curve.prinfold")
    assert_array_equal(kept.root, root)
    assert np.asarray(kept.root).dtype == np.asarray(root).dtype
    assert_array_equal(clone(kept).fit(X).transform(X), model.transform(X))


@pytest.mark.parametrize(
    ("root", "words"),
    [
        (120, "root must be the number of a row, from 0 to 119 for this table; got 120"),
        (np.ones(7, dtype=bool), r"root must be a mask with one entry for each of the 120 rows; got shape \(7,\)"),
        (np.zeros(120, dtype=bool), "root is a mask that marks no row. Mark the rows"),
        ([0.5], "root must be a row of 2 finite numbers"),
        ([np.nan, 0.0], "root must be a row of 2 finite numbers"),
        (np.zeros((120, 3)), "root must be a row of 2 finite numbers.*or the number of a row, or a mask"),
        (np.full(120, 2.5), "a score to follow must differ between rows"),
        (np.full(120, np.nan), "one finite number for each row, but 120 of 120 are NaN"),
        (["a", "b"], "root must be a row of 2 finite numbers"),
    ],
)
def test_a_beginning_that_is_no_row_is_refused(root, words, half):
    with pytest.raises(InvalidDataError, match=words):
        PrincipalCurve(root=root).fit(half[0])


@pytest.mark.parametrize("root", ["first", -1, 2.0, True])
def test_a_beginning_of_another_kind_is_refused(root, half):
    words = "root must be None, a whole number of at least 0 or a row of numbers.*or a mask or a score of the rows, got"
    with pytest.raises(InvalidParameterError, match=words):
        PrincipalCurve(root=root).fit(half[0])
