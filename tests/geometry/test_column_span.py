"""Rows in the span of themselves: curves are the same there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import PrincipalCurve, ProbabilisticCurve, datasets
from prinfold.geometry.column_span import ColumnSpan

shapes = pytest.mark.parametrize("closed", [False, True])


def rows(closed):
    make = datasets.make_circle if closed else datasets.make_half_circle
    return np.hstack([make(50, noise=0.1, rng=0).X, 0.1 * np.random.default_rng(1).normal(size=(50, 2))])


def turn(n_columns):
    """(4, D) orthonormal directions."""
    return np.linalg.qr(np.random.default_rng(0).normal(size=(n_columns, 4)))[0].T


def test_distances_are_kept_and_points_come_back():
    X = np.random.default_rng(0).normal(size=(6, 20))
    span = ColumnSpan.of(X)
    inside = span.inside(X)
    assert inside.shape == (6, 6)
    assert_allclose(inside @ inside.T, X @ X.T, atol=1e-12)
    assert_allclose(span.from_coordinates(inside), X, atol=1e-12)
    assert_allclose(span.outside(X), 0.0, atol=1e-20)
    few = ColumnSpan.of(X[:, :6])
    assert few.inside(X) is X
    assert few.from_coordinates(X) is X


def test_a_span_may_lie_anywhere():
    rng = np.random.default_rng(0)
    weights, origin, X = rng.normal(size=(3, 9)), rng.normal(size=9) + 5.0, rng.normal(size=(7, 9))
    span, surface = ColumnSpan.of(weights, origin), rng.normal(size=(7, 3)) @ weights + origin
    assert_allclose(span.from_coordinates(span.inside(surface)), surface, atol=1e-12)
    apart = np.square(X - surface).sum(axis=1)
    assert_allclose(np.square(span.inside(X) - span.inside(surface)).sum(axis=1) + span.outside(X), apart)


@shapes
@pytest.mark.parametrize("n_columns", [20, 40, 80])
def test_a_curve_in_more_columns_is_the_curve_turned(closed, n_columns):
    X, around = rows(closed), turn(n_columns)
    settings = {"closed": closed, "max_iter": 5, "tol": 0}
    plain = PrincipalCurve(**settings).fit(X)
    wide = PrincipalCurve(**settings, root=plain.vertices_[0] @ around).fit(X @ around)
    assert_allclose(wide.project(X @ around), plain.project(X) @ around, atol=1e-7)
    assert_allclose(wide.transform(X @ around)[:5] % wide.length_, plain.transform(X)[:5], atol=1e-6)
    given = plain.vertices_[::5] + 0.1
    same, turned = (PrincipalCurve(**settings, init=each) for each in (given, given @ around))
    assert_allclose(turned.fit(X @ around).project(X @ around), same.fit(X).project(X) @ around, atol=1e-7)


@shapes
@pytest.mark.parametrize("clamping", [1.0, 0.6])
def test_a_density_counts_the_columns_that_rows_do_not_span(closed, clamping, monkeypatch):
    X = rows(closed) @ turn(80)
    model = ProbabilisticCurve(nodes=12, penalty=0.5, closed=closed, clamping=clamping, max_iter=3, tol=0)
    there = model.fit(X).score_samples(X), model.noise_variance_, model.penalty_, model.project(X)
    monkeypatch.setattr(ColumnSpan, "of", lambda rows: ColumnSpan(None))  # rows as they are
    for one, other in zip((model.fit(X).score_samples(X), model.noise_variance_), there, strict=False):
        assert_allclose(one, other, rtol=1e-6)
    assert_allclose(model.project(X), there[3], atol=1e-6)
