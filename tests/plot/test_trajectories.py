"""Columns along a curve."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, PrincipalCurve, datasets, plot
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data.trajectories import columns_along
from prinfold.plot.inputs import FittedSurface

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

PATH = np.random.default_rng(0).uniform(size=200)
PEAKS = np.array([0.8, 0.2, 0.5, 0.0, 1.0])
CELLS = 3.0 + np.exp(-((PATH[:, None] - PEAKS) ** 2) / 0.05) * [1, 100, 1, 1, 1]


@pytest.fixture(scope="module")
def curve():
    return make_pipeline(StandardScaler(), PrincipalCurve()).fit(CELLS)


def test_columns_stand_in_the_order_in_which_they_peak(curve):
    found = columns_along(FittedSurface.of(curve), 24)
    order = list(found.order)
    assert order in ([3, 1, 2, 0, 4], [4, 0, 2, 1, 3])  # whichever end is the beginning
    assert found.level.min() == 0
    assert found.level.max() == 1
    Y = curve.inverse_transform(found.places[:, None])
    own = (Y - Y.min(axis=0)) / np.ptp(Y, axis=0)
    np.testing.assert_allclose(found.level, own.T[found.order], atol=1e-9)


def test_those_that_change_most_are_kept(curve):
    assert list(columns_along(FittedSurface.of(curve), 1).order) == [1]


def test_a_curve_in_many_columns_is_drawn_so(curve):
    ax = curve[-1].plot(StandardScaler().fit_transform(CELLS))
    assert len(ax.get_yticklabels()) == 5
    assert ax.get_xlabel() == "arc length"
    drawn = plot.along(GTM(1, max_iter=3, tol=0).fit(CELLS))
    assert drawn.get_xlabel() == "latent"


def test_rows_that_are_told_apart_are_drawn_as_a_map(curve):
    ax = plot.model(curve, CELLS, labels=(PATH > 0.5).astype(int))
    assert len(ax.get_legend().get_texts()) == 2


def test_what_is_no_curve_is_refused():
    with pytest.raises(InvalidParameterError, match="this model is not a single curve"):
        plot.along(GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(datasets.make_swiss_roll(60, rng=0).X))
    with pytest.raises(InvalidParameterError, match="most must be a whole number of at least 1, got 0"):
        plot.along(GTM(1, nodes=6, basis=2, max_iter=2, tol=0).fit(CELLS), most=0)
