"""What tells rows along one curve from rows that are not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import PrincipalCurve
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.diagnosis import misfit, rows_about_curve
from prinfold.exceptions import StructureWarning
from prinfold.reporting.measurements import study

t = np.linspace(0, 1, 101)[:, None]
line = ArcCurve.through(t * [4.0, 0.0])


def about(curve, n=200, noise=0.1, seed=0):
    """Rows along a curve, evenly, with noise."""
    rng = np.random.default_rng(seed)
    z = (np.arange(n) + 0.5) / n * curve.length
    return curve.point(z[:, None]) + noise * rng.normal(size=(n, curve.points.shape[1]))


def said(curve, rows, weight=None):
    words = misfit(curve, rows, np.ones(len(rows)) if weight is None else weight)
    return [words] if words else []


def arm(n, x=2.0, length=1.5):
    """Rows straight up from the line."""
    rows = np.stack([np.full(n, x), np.linspace(0, length, n)], axis=1)
    return rows + 0.1 * np.random.default_rng(1).normal(size=rows.shape)


def ring(closed=True):
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    return ArcCurve.through(np.stack([np.cos(angle), np.sin(angle)], axis=1), closed)


@pytest.mark.parametrize("curve", [line, ring(), ArcCurve.through(np.hstack([t * 6, np.sin(6 * t)]))])
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.15])
def test_rows_along_a_curve_raise_none(curve, noise):
    assert said(curve, about(curve, noise=noise)) == []


def test_footing_is_the_deviation_across():
    rows = about(line, n=4000, noise=0.1)
    footing = rows_about_curve(line, rows, np.ones(len(rows)))
    assert_allclose(footing.across, 0.1, rtol=0.1)
    inside = (rows[:, 0] > 0) & (rows[:, 0] < 4)
    assert_allclose(footing.z[inside], rows[inside, 0], atol=1e-12)
    assert_allclose(footing.distance[inside], np.abs(rows[inside, 1]), atol=1e-12)


def test_a_gap_is_named_with_what_lies_on_either_side():
    rows = about(line)
    rows = rows[(rows[:, 0] < 1) | (rows[:, 0] > 2.5)]
    (words,) = said(line, rows)
    before = np.mean(rows[:, 0] < 1)
    assert "runs where there are no rows" in words
    assert f"{100 * before:.1f} % of the rows before it and {100 * (1 - before):.1f} % after it" in words
    assert said(line, about(line)[::15]) == [], "too few rows to tell"


def test_a_gap_in_a_ring_may_lie_about_its_seam():
    rows = about(ring(), noise=0.02)
    (words,) = said(ring(), rows[rows[:, 0] < 0.2])
    assert re.search(r"4[45] % of its length", words), "what is right of 0.2 is 157° of 360°, and rows are 2° apart"
    assert "before" not in words


def test_a_branch_is_placed():
    (words,) = said(line, np.vstack([about(line), arm(60)]))
    assert "most of them about arc length 2" in words
    assert "branch" in words
    assert said(line, np.vstack([about(line), arm(60)]), np.append(np.ones(200), np.full(60, 0.01))) == []


def test_rows_beyond_the_ends_are_no_branch():
    short = ArcCurve.through(t * [1.0, 0.0])
    (words,) = said(short, about(line, noise=0.02))
    assert re.search(r"7[3-5] % of the rows lie beyond the ends", words)


def test_a_curve_that_comes_back_beside_itself_winds():
    back = ArcCurve.through(np.vstack([t * [4.0, 0.0], t[::-1] * [4.0, 0.0] + [0.0, 0.35]]))
    rows = np.random.default_rng(0).uniform([0, -0.175], [4, 0.525], size=(800, 2))
    (words,) = said(back, rows)
    assert "doubles back over" in words
    assert said(back, about(back, noise=0.03)) == [], "where rows are as narrow as that it is a hairpin"


def test_ends_that_meet_are_a_loop():
    (words,) = said(ring(closed=False), about(ring(), noise=0.05))
    assert "closed=True, or closed='auto'" in words
    assert said(ring(), about(ring(), noise=0.05)) == []
    half = ArcCurve.through(ring().vertices[:41])
    assert said(half, about(half, noise=0.05)) == [], "a half circle has its ends apart"


def test_a_curve_through_every_row_joins_them():
    rows = np.random.default_rng(2).uniform([0, 0], [30, 1], size=(150, 2))
    rows = rows[np.argsort(rows[:, 0])]
    (words,) = said(ArcCurve.through(rows), np.vstack([rows, rows + 1e-3]))
    assert "from one row to the next" in words
    assert said(ArcCurve.through(rows[::2]), rows[::2]) == [], "a curve through a few rows has to turn between them"


def test_a_blob_is_no_curve():
    rng = np.random.default_rng(0)
    (words,) = said(line, rng.normal(size=(300, 2)) * [1.0, 0.7] + [2.0, 0.0])
    assert re.match(r"rows scatter by 0.(69|7\d)\d* across", words)
    assert said(line, rng.normal(size=(300, 2)) * [1.0, 0.3] + [2.0, 0.0]) == []


def test_doubts_do_not_hang_on_units_or_on_repeats():
    rows = np.vstack([about(line), arm(60)])
    grown = ArcCurve.through(t * [4e6, 0.0])
    (here,), (there,) = said(line, rows), said(grown, rows * 1e6)
    assert here.split(",")[0] == there.split(",")[0]
    assert said(line, rows) == said(line, rows, np.full(len(rows), 7.0))


def test_a_fit_tells_its_doubts():
    angles = np.repeat([0.0, 2.1, 4.2], 150)
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, size=(450, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    with pytest.warns(StructureWarning, match="branch") as caught:
        model = PrincipalCurve().fit(rows + 0.04 * rng.normal(size=rows.shape))
    assert model.doubt_ == str(caught[0].message)
    assert model.doubt_ in study(model, rows).heard
