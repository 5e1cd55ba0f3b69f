"""Where arc length begins: every curve begins near the row that is named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

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
    model = clone(curve).set_params(begin=one).fit(X)
    back = clone(model).set_params(begin=other.tolist()).fit(X)
    assert model.transform([one])[0, 0] < 0.1 * model.length_
    assert back.transform([other])[0, 0] < 0.1 * back.length_
    assert_allclose(back.transform(X), model.length_ - model.transform(X), atol=1e-8)
    model.save(tmp_path / "curve.prinfold")
    kept = load(tmp_path / "curve.prinfold")
    assert_allclose(kept.begin, one)
    assert_allclose(kept.transform(X), model.transform(X))
    assert_allclose(kept.fit(X).transform(X), model.transform(X))  # as it was told, not as rows tell


def test_a_closed_curve_has_its_seam_there(half):
    X = datasets.make_circle(80, noise=0.05, rng=0).X
    model = PrincipalCurve(closed=True, max_iter=3, tol=0, begin=X[7]).fit(X)
    for i in range(0, 80, 8):
        begun = PrincipalCurve(closed=True, max_iter=0, tol=0, begin=X[i]).fit(X)
        assert begun.transform(X[i : i + 1])[0, 0] < begun.length_ / len(begun.vertices_), "and is not the last of all"
    assert model.transform(X[7:8])[0, 0] < model.length_ / len(model.vertices_)


def test_a_beginning_in_the_middle_is_told(half):
    X, _, _ = half
    with pytest.warns(DegenerateWarning, match="begin= lies 1.* from the nearer end of a curve that is"):
        PrincipalCurve(begin=(0.0, 1.0), max_iter=3, tol=0).fit(X)


def test_a_beginning_in_other_units_is_told(half):
    X, one, _ = half
    with pytest.warns(DegenerateWarning, match="begin= lies .* from the curve, and no row farther than 0"):
        PrincipalCurve(begin=one * 1000, max_iter=3, tol=0).fit(X)


def test_a_beginning_that_is_no_row_is_refused(half):
    X, one, _ = half
    for begin in (one[:1], [np.nan, 0.0], X):
        with pytest.raises(InvalidDataError, match="begin must be a row of 2 finite numbers"):
            PrincipalCurve(begin=begin).fit(X)
    with pytest.raises(InvalidParameterError, match="None or a row of numbers"):
        PrincipalCurve(begin="first").fit(X)
