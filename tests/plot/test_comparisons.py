"""Pictures of comparisons: places, front, marks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from prinfold import GTM, Comparison, compare, datasets, plot
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.plot.data.comparisons import comparison_points

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture(scope="module")
def found() -> Comparison:
    X = datasets.make_half_circle(60, rng=0).X
    methods = [GTM(1, nodes=12, basis=4), GTM(1, nodes=12, basis=4, width=0.4), PCA(1), ("broken", PCA(9))]
    return compare(X, methods, n_components=1, folds=2)


def test_places_are_the_table(found: Comparison) -> None:
    shown = comparison_points(found)
    assert shown.method == ("GTM", "GTM", "PCA")  # the last could not be fitted
    np.testing.assert_array_equal(shown.error, found.table["error"][:3])
    np.testing.assert_array_equal(shown.roughness, found.table["roughness"][:3])
    assert set(shown.front) == set(np.flatnonzero(found.table["front"]))
    assert (np.diff(shown.roughness[shown.front]) > 0).all()
    assert (np.diff(shown.error[shown.front]) < 0).all()
    assert shown.chosen == found.chosen


def test_it_is_drawn(found: Comparison) -> None:
    ax = plot.comparison_front(found)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["GTM", "PCA"]
    assert {text.get_text() for text in ax.texts} == {"recommended"}
    (front,) = [line for line in ax.lines if line.get_label() == "_front"]
    assert len(front.get_xdata()) == found.table["front"].sum()
    mine = Figure().subplots()
    assert plot.comparison_front(found, ax=mine) is mine


def test_one_without_a_roughness_is_not_drawn_but_the_others_are(found: Comparison) -> None:
    rough = found.table["roughness"].copy()
    rough[found.chosen] = np.nan
    ax = plot.comparison_front(replace(found, table={**found.table, "roughness": rough}))
    assert not ax.texts
    nothing = replace(found, table={**found.table, "roughness": np.full(4, np.nan)})
    with pytest.raises(InvalidDataError, match="there is nothing to draw"):
        plot.comparison_front(nothing)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="got int, but a Comparison is needed"):
        plot.comparison_front(3)
