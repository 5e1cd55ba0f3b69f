"""Pictures of landscapes: what is drawn is what is known, and what is not known stays blank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.plot.test_style import Models, Tables, legend_of

from prinfold import GTM, KMM, GTMClassifier, GTMRegressor, plot
from prinfold.applications import landscape_sums
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.plot import style
from prinfold.plot.data.landscapes import (
    fill_unknown,
    landscape_of,
    mix_with_white,
    node_values,
    opacity_between,
    pixel_values,
)
from prinfold.plot.data.surfaces import finer_of, values_between

FLAT = ("line", "circle", "grid", "cylinder", "torus", "sphere", "points")


@pytest.fixture(autouse=True)
def no_figures_left() -> Any:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def grid(models: Models, rows: Tables) -> tuple[GTM, np.ndarray, np.ndarray]:
    X = rows["grid"]
    return models["grid"], X, np.where(X[:, 0] > 0, "right", "left")


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("show", [None, "mass"])
def test_landscapes_of_every_flat_map_can_be_drawn(models: Models, rows: Tables, name: str, show: Any) -> None:
    X = rows[name]
    _, ax = plt.subplots()
    assert plot.landscape(models[name], X, np.arange(len(X)) % 3, show=show, ax=ax) is ax
    plot.landscape(models[name], X, X[:, 0], show=show).figure.canvas.draw()


def test_the_heading_names_what_is_shown(grid: tuple[GTM, np.ndarray, np.ndarray]) -> None:
    model, X, side = grid
    for y, how, words in [
        (side, {}, "Landscape of the most likely class; paler where less certain"),
        (X[:, 0], {"value_name": "log solubility"}, "Landscape of log solubility; paler where less certain"),
        (X[:, 0], {"show": "spread", "fade": False}, "Landscape of spread between rows"),
    ]:
        on = plot.landscape(model, X, y, **how)
        assert words in {each.get_text() for each in on.figure.findobj(Text)}


def test_more_than_two_dimensions_are_refused(models: Models, rows: Tables) -> None:
    X = rows["space"]
    with pytest.raises(InvalidParameterError, match="over one or two latent dimensions, but the map has 3"):
        plot.landscape(models["space"], X, X[:, 0])


def _nodes_of(ax: Any) -> np.ndarray:
    """What is drawn at the 7 × 7 nodes themselves, the middle one of the pixels around each."""
    finer = finer_of((7, 7))
    return np.asarray(ax.images[0].get_array())[finer // 2 :: finer, finer // 2 :: finer]


@pytest.mark.parametrize("finer", [9, 31])
def test_between_nodes_values_pass_smoothly_into_each_other(rng: np.random.Generator, finer: int) -> None:
    """Nodes stay, a plane stays one, no slope jumps at a node, and nothing is above or below all nodes."""
    image = rng.normal(size=(4, 6, 2))
    fine, middle = values_between(image, finer), finer // 2
    assert fine.shape == (4 * finer, 6 * finer, 2)
    assert_allclose(fine[middle::finer, middle::finer], image)
    assert_array_equal([fine.min(), fine.max()], [image.min(), image.max()])
    plane = np.add.outer(2.0 * np.arange(4), np.arange(6.0))
    inside = values_between(plane, finer)[middle:-middle, middle:-middle]
    assert_allclose(np.diff(inside, axis=1), 1 / finer)
    assert_allclose(np.diff(inside, axis=0), 2 / finer)
    row = values_between(np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]), 301)[0]
    slope = np.diff(row[150:-150]) * 301
    assert np.abs(np.diff(slope)).max() < 0.05, "straight lines would jump by 2 at a node"


def test_a_lattice_of_one_node_along_an_axis_is_drawn_too() -> None:
    assert_allclose(values_between(np.array([[3.0]]), 9), np.full((9, 9), 3.0))


def test_unknown_nodes_take_what_is_next_to_them_and_lend_nothing() -> None:
    image = np.array([[1.0, np.nan, 5.0], [1.0, 1.0, np.nan]])[..., None]
    full = fill_unknown(image)[..., 0]
    assert_array_equal(full[[0, 0, 1, 1], [0, 2, 0, 1]], [1, 5, 1, 1])
    assert 1 < full[0, 1] < 5
    assert 1 < full[1, 2] < 5
    assert_array_equal(fill_unknown(np.full((2, 2, 1), np.nan)), np.zeros((2, 2, 1)))


def test_the_rim_of_what_is_drawn_lies_between_a_node_and_a_blank_one() -> None:
    finer = 31
    opacity = opacity_between(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]), finer)
    last = finer // 2 + finer  # the last node that is drawn; a blank one follows
    across = opacity[0, last : last + finer + 1]
    assert across[0] == 1
    assert across[-1] == 0
    assert (np.diff(across) <= 0).all()
    assert ((across > 0) & (across < 1)).sum() < finer / 3, "a rim, and no fading all the way"


def test_borders_of_classes_run_between_nodes_where_both_are_as_likely(grid: Any) -> None:
    """Each pixel has the colour of a class, or is paler: no mixture of two, as brown between orange and blue."""
    model, X, y = grid
    shown = landscape_of(model, X, y, None, None)
    found = pixel_values(shown, None, 0)
    assert found is not None
    assert set(np.unique(found.values.value)) == {0.0, 1.0}
    image = found.values.value.reshape(found.shape)
    at = finer_of((7, 7)) // 2
    nodes = image[at :: 2 * at + 1, at :: 2 * at + 1].T.ravel()
    known = np.isfinite(node_values(shown, None, 0).value)
    assert_array_equal(nodes[known], node_values(shown, None, 0).value[known])
    changes = np.flatnonzero(np.diff(image, axis=1).any(axis=0))
    assert len(np.unique(changes % (2 * at + 1))) > 3, "not at the same place in each cell, as blocks have them"


def test_cells_have_the_colour_of_the_likeliest_class_and_empty_ones_none(grid: Any) -> None:
    model, X, y = grid
    fitted = GTMClassifier(FrozenEstimator(model), min_mass=1.0).fit(X, y)
    image = _nodes_of(plot.landscape(fitted, fade=False))
    nodes = image.transpose(1, 0, 2).reshape(-1, 4)
    found = fitted.landscape_
    assert found.empty.any()
    assert_array_equal(nodes[:, 3] == 0, found.empty)
    table = np.array([to_rgb(color) for color in style.PALETTE[:2]])
    assert_allclose(nodes[~found.empty, :3], table[found.belief.argmax(axis=1)[~found.empty]])
    assert legend_of(plot.landscape(fitted)) == ["left", "right"]


def test_a_threshold_leaves_more_nodes_blank(grid: Any) -> None:
    model, X, y = grid
    fitted = GTMClassifier(FrozenEstimator(model)).fit(X, y)
    for least in (0.0, 1.0, 5.0, 1e6):
        image = _nodes_of(plot.landscape(fitted, min_mass=least))
        assert (image[..., 3] > 0).sum() == (fitted.landscape_.mass >= least).sum()


def test_colours_fade_to_white_as_nodes_are_less_sure(grid: Any) -> None:
    model, X, y = grid
    shown = landscape_of(model, X, y, None, None)
    found = node_values(shown, None, 0)
    known = np.isfinite(found.value)
    error = shown.landscape.error[np.arange(49), np.nan_to_num(found.value).astype(int)]
    best = shown.landscape.probability.max(axis=1)
    assert_allclose(found.sure[known], np.clip((best - error - 0.5) / 0.5, 0, 1)[known])
    black = mix_with_white(np.zeros((3, 3)), np.array([1.0, 0.5, 0.0]))
    assert_allclose(black[:, 0], [0.0, 0.375, 0.75])


def test_a_regressor_shows_mean_spread_and_error(grid: Any) -> None:
    model, X, _ = grid
    fitted = GTMRegressor(FrozenEstimator(model)).fit(X, X[:, 1:])
    shown = landscape_of(fitted, None, None, None, None)
    for name in ("mean", "spread", "error"):
        assert_array_equal(node_values(shown, name, 1).value, getattr(fitted.landscape_, name)[:, 1])
    ax = plot.landscape(fitted, show="spread", target=1, value_name="rise")
    assert {inset.get_ylabel() for inset in ax.child_axes} == {"rise"}
    probability = plot.landscape(model, X, X[:, 0] > 0, show=True)
    assert {inset.get_ylabel() for inset in probability.child_axes} == {"probability of True"}


def test_a_curve_has_bands_and_gaps(models: Models, rows: Tables) -> None:
    model, X = models["line"], rows["line"]
    fitted = GTMRegressor(FrozenEstimator(model), min_mass=3.0).fit(X, X[:, 0])
    ax = plot.landscape(fitted)
    (line,) = ax.lines
    assert_array_equal(line.get_ydata(), fitted.landscape_.mean[:, 0])
    assert sum(isinstance(each, FillBetweenPolyCollection) for each in ax.collections) == 2
    assert legend_of(ax) == ["spread", "error", "mean"]
    classes = plot.landscape(model, X, np.arange(len(X)) % 2)
    assert_allclose(classes.lines[0].get_ydata() + classes.lines[1].get_ydata(), 1.0)
    (one,) = plot.landscape(model, X, np.arange(len(X)) % 2, show=1).lines
    assert_array_equal(one.get_ydata(), classes.lines[1].get_ydata())


def test_round_a_circle_the_line_comes_back_to_its_beginning(models: Models, rows: Tables) -> None:
    (line,) = plot.landscape(models["circle"], rows["circle"], rows["circle"][:, 0]).lines
    z, height = line.get_data()
    assert_allclose([z[0], z[-1]], [-np.pi, np.pi])
    assert height[0] == height[-1]


def test_what_is_missing_is_not_known(grid: Any) -> None:
    model, X, y = grid
    labels = pd.Series(np.where(np.arange(len(X)) < 50, y, None))
    found = landscape_of(model, X, labels, None, None).landscape
    assert_allclose(found.mass.sum(), 50)
    values = np.where(np.arange(len(X)) < 50, X[:, 0], np.nan)
    assert_allclose(landscape_of(model, X, values, None, None).landscape.mass.sum(), 50)


def test_frames_are_read_in_parts(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, X, y = grid
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = GTM(nodes=7, basis=4, max_iter=8, tol=0).fit(frame)
    whole = landscape_of(model, frame, y, None, None).landscape
    monkeypatch.setattr(landscape_sums, "_BLOCK_RESPONSIBILITIES", 49 * 7)
    for table in (frame, pl.from_pandas(frame)):
        assert_allclose(landscape_of(model, table, y, None, None).landscape.mass, whole.mass)


def test_whole_numbers_are_classes_unless_told_otherwise(grid: Any) -> None:
    model, X, _ = grid
    few, many = np.arange(len(X)) % 4, np.arange(len(X))
    assert landscape_of(model, X, few, None, None).names == ("0", "1", "2", "3")
    assert landscape_of(model, X, few, "property", None).names == ()
    assert landscape_of(model, X, many, None, None).names == ()
    assert landscape_of(model, X, X[:, :2], None, None).names == ()


def test_pipelines_and_rows_are_drawn(grid: Any) -> None:
    _, X, y = grid
    pipe = make_pipeline(StandardScaler(), GTMClassifier(GTM(nodes=6, basis=3, max_iter=3, tol=0)))
    pipe.fit(X, y)
    ax = plot.landscape(pipe, X, show_rows=True)
    dots = [each for each in ax.collections if isinstance(each, PathCollection) and len(each.get_offsets()) == len(X)]
    assert_allclose(dots[0].get_offsets(), pipe.transform(X))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"X": None}, InvalidParameterError, "a map alone has no landscape"),
        ({"kind": "labels"}, InvalidParameterError, "kind must be 'class', 'property' or None, got 'labels'"),
        ({"show": "up"}, InvalidParameterError, "there is no class 'up' to show; the classes are left, right"),
        ({"y": [None] * 100}, InvalidDataError, "no row has a class"),
        ({"y": ["a"] * 100, "kind": "property"}, InvalidDataError, "a number for each of the 100 rows"),
        ({"y": np.full(100, np.nan)}, InvalidDataError, "no number is known"),
        ({"y": np.linspace(0, 1, 100), "show": "median"}, InvalidParameterError, "show must be 'mean', 'spread'"),
        (
            {"y": np.linspace(0, 1, 100), "target": 2},
            InvalidParameterError,
            "there is no target 2; the landscape has 1",
        ),
    ],
)
def test_wrong_calls_are_named(grid: Any, options: Any, error: Any, match: str) -> None:
    model, X, y = grid
    with pytest.raises(error, match=match):
        plot.landscape(model, **{"X": X, "y": y, **options})


def test_models_without_landscapes_say_so(grid: Any) -> None:
    model, X, y = grid
    with pytest.raises(InvalidParameterError, match="GTMClassifier has its landscape already"):
        plot.landscape(GTMClassifier(FrozenEstimator(model)).fit(X, y), X, y)
    with pytest.raises(InvalidParameterError, match="KMM has no posterior over nodes"):
        plot.landscape(KMM(1, init="pca", max_iter=1, tol=0).fit(X), X, y)
