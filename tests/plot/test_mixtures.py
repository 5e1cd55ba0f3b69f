"""Pictures of mixtures: a panel for each map, rows as strong as they belong to it, levels of a hierarchy."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, GTMHierarchy, GTMMixture, datasets, plot
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data.mixtures import FAINTEST, boxes, hierarchy_panels, lines_of, mixture_panels

DATA = datasets.make_pipe_flow(120, rng=0)
SMALL = GTM(nodes=6, basis=3)


@pytest.fixture(scope="module")
def model() -> GTMMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GTMMixture(3, SMALL, random_state=0, max_iter=5).fit(DATA.X)


@pytest.fixture(scope="module")
def tree() -> GTMHierarchy:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = GTMHierarchy(GTMMixture(1, SMALL, max_iter=5)).fit(DATA.X)
        tree.drill_down(DATA.X, (0,), GTMMixture(3, SMALL, random_state=0, max_iter=5))
        tree.drill_down(DATA.X, (0, 1), GTMMixture(2, SMALL, random_state=0, max_iter=5))
        return tree


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def maps_on(ax: Any) -> list[Any]:
    """Axes of the maps, without colour scales."""
    return [each for each in ax.child_axes if each.get_title(loc="left").startswith("map")]


def points_on(ax: Any) -> int:
    return sum(len(each.get_offsets()) for each in ax.collections if isinstance(each, PathCollection))


def test_every_map_has_a_panel_with_the_rows_that_belong_to_it(model: GTMMixture):
    ax = plot.mixture(model, DATA.X, labels=DATA.names)
    held = model.memberships(DATA.X)
    assert [each.get_title(loc="left") for each in maps_on(ax)] == [
        f"map {j} · {100 * share:.0f} %" for j, share in enumerate(model.mixing_)
    ]
    for j, own in enumerate(maps_on(ax)):
        assert points_on(own) == (held[:, j] >= FAINTEST).sum()
        assert any(isinstance(each, QuadMesh) for each in own.collections)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == sorted(set(DATA.names))


def test_rows_are_as_strong_as_they_belong_to_a_map(model: GTMMixture):
    held = model.memberships(DATA.X)
    for j, (own, panel) in enumerate(
        zip(maps_on(plot.mixture(model, DATA.X)), mixture_panels(model, DATA.X, None), strict=True)
    ):
        shown = np.flatnonzero(held[:, j] >= FAINTEST)
        assert_array_equal(panel.rows, shown)
        assert_allclose(panel.weight, held[shown, j])
        assert_allclose(panel.place, model.component(j).transform(DATA.X)[shown], atol=1e-12)
        (dots,) = [each for each in own.collections if isinstance(each, PathCollection)]
        assert_allclose(dots.get_facecolors()[:, 3], held[shown, j], atol=1e-12)
        assert_allclose(dots.get_offsets(), panel.place)


def test_values_alone_nodes_alone_and_axes_given(model: GTMMixture):
    values = DATA.fractions[:, 2].copy()
    values[3] = np.nan
    ax = plt.subplots()[1]
    assert plot.mixture(model, DATA.X, values=values, value_name="water", background=False, ax=ax) is ax
    assert len(ax.figure.axes) == 1, "nothing but the axes given is on the figure"
    assert not any(isinstance(each, QuadMesh) for own in maps_on(ax) for each in own.collections)
    assert [points_on(own) for own in maps_on(plot.mixture(model))] == [0, 0, 0]
    assert len(maps_on(model.plot(DATA.X))) == 3


def test_pipelines_are_drawn_by_their_last_step():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = make_pipeline(StandardScaler(), GTMMixture(2, SMALL, random_state=0, max_iter=3)).fit(DATA.X)
    panels = mixture_panels(scaled, DATA.X, None)
    held = scaled[-1].memberships(scaled[0].transform(DATA.X))
    assert [len(panel.rows) for panel in panels] == [(held[:, j] >= FAINTEST).sum() for j in (0, 1)]


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize(
    "recipe", [GTM(1, nodes=8, basis=4), GTM(1, nodes=8, latent="circle"), GTM(nodes=30, latent="sphere")]
)
def test_maps_of_every_kind(recipe: GTM):
    model = GTMMixture(2, recipe, random_state=0, max_iter=3, tol=0).fit(DATA.X)
    assert all(points_on(own) for own in maps_on(plot.mixture(model, DATA.X, labels=DATA.names)))


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_curves_in_a_plane_are_drawn_among_their_data_all_of_them():
    X = np.concatenate([datasets.make_half_circle(60, rng=0).X, datasets.make_half_circle(60, rng=1).X + 5])
    model = GTMMixture(2, GTM(1, nodes=8, basis=4), random_state=0, max_iter=5, tol=0).fit(X)
    ax = model.plot(X)
    assert ax.get_xlabel() == "column 1"
    (lines,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert len(lines.get_segments()) == 2


def test_pictures_of_one_map_say_how_to_draw_several(model: GTMMixture):
    for picture in (plot.latent_map, plot.magnification, plot.folds):
        with pytest.raises(InvalidParameterError, match=r"draw them all with plot.mixture, or one of them"):
            picture(model)
    with pytest.raises(InvalidParameterError, match=r"GTM has one map only; draw it with plot.latent_map"):
        plot.mixture(model.component(0), DATA.X)
    with pytest.raises(InvalidParameterError, match="a fitted GTMHierarchy has levels to draw"):
        plot.hierarchy(model)
    with pytest.raises(InvalidParameterError, match="either by labels or by values"):
        plot.mixture(model, DATA.X, labels=DATA.names, values=DATA.labels)
    with pytest.raises(InvalidParameterError, match="pass the rows as X too"):
        plot.mixture(model, labels=DATA.names)
    with pytest.raises(InvalidParameterError, match="need axes of two dimensions"):
        plot.mixture(model, ax=plt.figure().add_subplot(projection="3d"))


def test_levels_of_a_hierarchy_below_each_other(tree: GTMHierarchy):
    levels = hierarchy_panels(tree, DATA.X, None)
    assert [[panel.path for panel in level] for level in levels] == [
        [(0,)],
        [(0, 0), (0, 1), (0, 2)],
        [(0, 1, 0), (0, 1, 1)],
    ]
    held = tree.memberships(DATA.X, (0, 1))
    for panel in levels[2]:
        assert_allclose(panel.weight, held[panel.rows, panel.path[-1]])
        assert_allclose(panel.share, tree.share(panel.path))
    ax = tree.plot(DATA.X, labels=DATA.names)
    own = maps_on(ax)
    assert [each.get_title(loc="left").split(" · ")[0] for each in own] == [
        *("map 0", "map 0.0", "map 0.1", "map 0.2", "map 0.1.0", "map 0.1.1"),
    ]
    colors = [each.title.get_color() if each.get_title() else each._left_title.get_color() for each in own]
    assert len(set(colors[1:4])) == 1
    assert colors[4] == colors[5] != colors[1], "children have the colour of what they were found in"
    assert len([each for each in ax.collections if isinstance(each, LineCollection)]) == 5, "a line to every child"
    assert points_on(maps_on(plot.hierarchy(tree))[0]) == 0


def test_boxes_lie_side_by_side_and_do_not_overlap():
    for counts in ([1], [3], [1, 3, 5], [4, 4]):
        lines = boxes(counts)
        every = [box for line in lines for box in line]
        assert [len(line) for line in lines] == counts
        assert all(b.left >= 0 and b.left + b.width <= 1 and b.bottom >= 0 and b.bottom + b.height <= 1 for b in every)
        for line in lines:
            assert all(a.left + a.width < b.left for a, b in pairwise(line))
        assert all(a[0].bottom > b[0].bottom + b[0].height for a, b in pairwise(lines))
    assert [lines_of(n, 4) for n in (1, 4, 5, 6, 9)] == [[1], [4], [3, 2], [3, 3], [3, 3, 3]]


def test_a_page_shows_all_maps_or_one(model: GTMMixture):
    assert '"kind": "charts"' in model.explore(DATA.X, path=None).html
    assert '"kind": "charts"' not in model.component(1).explore(DATA.X, path=None).html
