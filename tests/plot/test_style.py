"""What ends up on paper: every latent space is drawn, on the axes given, with nothing else disturbed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from prinfold import GTM, PPS, UKR, plot
from prinfold.exceptions import InvalidDataError, InvalidParameterError, MissingExtraError
from prinfold.plot import style
from prinfold.plot.data import surfaces as data
from prinfold.plot.data.surfaces import FINER
from prinfold.plot.inputs import layout_of

SPACES = ("line", "circle", "grid", "cylinder", "torus", "sphere", "points", "space")
Models = dict[str, GTM]
Tables = dict[str, np.ndarray]


def points_on(ax: Any) -> int:
    return sum(len(each.get_offsets()) for each in ax.collections if isinstance(each, PathCollection))


def the(kind: type, ax: Any) -> Any:
    (only,) = [each for each in ax.collections if isinstance(each, kind)]
    return only


def legend_of(ax: Any) -> list[str]:
    return [] if ax.get_legend() is None else [text.get_text() for text in ax.get_legend().get_texts()]


PICTURES: dict[str, Callable[..., Any]] = {
    "latent_map": plot.latent_map,
    "latent_map of nodes": lambda m, X, **o: plot.latent_map(m, **o),
    "joined to the modes": lambda m, X, **o: plot.latent_map(m, X, mode_lines=True, show_nodes=True, **o),
    "posterior": lambda m, X, **o: plot.posterior(m, X[0], **o),
    "magnification": lambda m, X, **o: plot.magnification(m, resolution=20, **o),
    "folds": lambda m, X, **o: plot.folds(m, **o),
    "surface": lambda m, X, **o: plot.surface(m, X, show_nodes=True, **o),
    "learning_curve": lambda m, X, **o: plot.learning_curve(m, **o),
    "model": plot.model,
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_of_every_latent_space_can_be_drawn(
    models: Models, rows: Tables, picture: str, name: str
) -> None:
    ax = PICTURES[picture](models[name], rows[name])
    ax.figure.draw_without_rendering()
    assert ax.has_data()


@pytest.mark.parametrize("name", ["line", "grid", "space"])
@pytest.mark.parametrize("picture", PICTURES)
def test_given_axes_are_used_and_nothing_else_is_touched(models: Models, rows: Tables, picture: str, name: str) -> None:
    current = plt.figure()
    figure = Figure(layout="constrained")
    mine, other = figure.subplots(1, 2)
    before, figures = dict(mpl.rcParams), plt.get_fignums()
    figure.sca(mine)
    ax = PICTURES[picture](models[name], rows[name], ax=mine)
    figure.draw_without_rendering()
    assert ax is mine
    assert ax.has_data()
    assert not other.has_data()
    assert figure.gca() is mine
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == figures
    assert plt.gcf() is current


def test_new_axes_are_in_a_figure_of_their_own(models: Models, rows: Tables) -> None:
    first = plt.figure()
    before = dict(mpl.rcParams)
    ax = models["grid"].plot(rows["grid"])
    assert ax.figure is not first
    assert not first.axes
    assert dict(mpl.rcParams) == before


# --------------------------------------------------------------------------------------------------- the map


@pytest.mark.parametrize("name", ["grid", "cylinder", "torus"])
@pytest.mark.parametrize("picture", ["latent_map", "posterior", "magnification", "folds"])
def test_plain_saving_cuts_nothing_off(models: Models, rows: Tables, picture: str, name: str) -> None:
    figure = PICTURES[picture](models[name], rows[name]).figure
    figure.draw_without_rendering()
    shown, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(shown.x0, shown.y0) > -0.005
    assert shown.x1 < width + 0.005
    assert shown.y1 < height + 0.005


def test_the_background_is_the_magnification_on_its_grid(models: Models, rows: Tables) -> None:
    model = models["grid"]
    image = the(QuadMesh, plot.latent_map(model, rows["grid"]))
    corners = image.get_coordinates()
    Z = ((corners[:-1, :-1] + corners[1:, 1:]) / 2).reshape(-1, 2)
    np.testing.assert_allclose(np.exp(image.get_array()).ravel(), model.magnification(Z).factor, rtol=1e-9)
    assert corners.min() == -1.0
    assert corners.max() == 1.0


@pytest.mark.parametrize("name", SPACES)
def test_every_row_is_drawn_once(models: Models, rows: Tables, name: str) -> None:
    X = rows[name]
    labels = np.arange(len(X)) % 3
    values = np.where(labels == 1, np.nan, X[:, 0])
    for options in ({}, {"labels": labels, "background": None}, {"values": values, "background": None}):
        assert points_on(plot.latent_map(models[name], X, **options)) == len(X)
    assert points_on(plot.surface(models[name], X)) == len(X)


def test_rows_stand_at_their_posterior_mean(models: Models, rows: Tables) -> None:
    ax = plot.latent_map(models["grid"], rows["grid"])
    np.testing.assert_allclose(the(PathCollection, ax).get_offsets(), models["grid"].transform(rows["grid"]))


def test_words_of_the_data_are_no_formulas(models: Models, rows: Tables) -> None:
    labels = np.resize(np.array(["$a_b$", "_c", "^{"], dtype=object), len(rows["grid"]))
    ax = plot.latent_map(models["grid"], rows["grid"], labels=labels)
    ax.figure.canvas.draw()  # an ill-formed formula would be refused here
    assert legend_of(ax) == [r"\$a_b\$", "^{", " _c"]
    box = ax.get_legend().get_texts()[0].get_window_extent()
    ax.get_legend().get_texts()[0].set_text("aa_bb")
    assert box.width == pytest.approx(ax.get_legend().get_texts()[0].get_window_extent().width, rel=0.3)
    ax = plot.latent_map(models["grid"], rows["grid"], values=np.arange(len(rows["grid"])), value_name="price $ $x^$")
    ax.figure.canvas.draw()
    frame = pd.DataFrame(rows["line"], columns=[f"$x^{j}" + "_$" for j in range(rows["line"].shape[1])])
    ax = plot.surface(GTM(1, nodes=5, basis=3, max_iter=2, tol=0).fit(frame), frame)
    ax.figure.canvas.draw()
    assert ax.get_xlabel() == r"\$x^0_\$"


@pytest.mark.parametrize("draw", [plot.latent_map, plot.surface, plot.model])
def test_classes_get_their_own_look_and_a_legend(models: Models, rows: Tables, draw: Any) -> None:
    labels = np.array(["b", "c", "a", None], dtype=object)[np.arange(len(rows["line"])) % 4]
    ax = draw(models["line"], rows["line"], labels=labels)
    assert legend_of(ax) == ["no label", "a", "b", "c"]
    dots = [each for each in ax.collections if isinstance(each, PathCollection)]
    colors = {tuple(each.get_facecolor().ravel()) for each in dots}
    shapes = {each.get_paths()[0].vertices.tobytes() for each in dots[1:]}
    assert len(colors) == 4
    assert len(shapes) == 3


def test_many_classes_stay_distinct(models: Models, rows: Tables) -> None:
    X = rows["grid"][:60]
    ax = plot.latent_map(models["grid"], X, labels=np.arange(60))
    dots = [each for each in ax.collections if isinstance(each, PathCollection)]
    looks = {(tuple(each.get_facecolor().ravel()), each.get_paths()[0].vertices.tobytes()) for each in dots}
    assert len(looks) == 60
    assert len({color for color, _ in list(looks)}) == len(style.PALETTE)


def test_a_dozen_classes_have_a_colour_each(models: Models, rows: Tables) -> None:
    ax = plot.latent_map(models["grid"], rows["grid"], labels=np.arange(len(rows["grid"])) % 12)
    dots = [each for each in ax.collections if isinstance(each, PathCollection)]
    assert len({tuple(each.get_facecolor().ravel()) for each in dots}) == 12
    sizes = [float(each.get_sizes()[0]) for each in dots]
    assert max(sizes) < 2 * min(sizes)


def test_values_get_a_scale_and_gaps_are_hollow(models: Models, rows: Tables) -> None:
    X = rows["grid"]
    values = X[:, 2].copy()
    values[:5] = np.nan
    ax = plot.latent_map(models["grid"], X, values=values, value_name="height")
    assert legend_of(ax) == ["no value"]
    names = {inset.get_ylabel() for inset in ax.child_axes} | {inset.get_xlabel() for inset in ax.child_axes}
    assert {"height", "shading: magnification factor"} <= names
    hollow, filled = [each for each in ax.collections if isinstance(each, PathCollection)]
    assert len(hollow.get_offsets()) == 5
    np.testing.assert_array_equal(filled.get_array(), values[5:])


def test_numbers_in_names_are_in_order(models: Models, rows: Tables) -> None:
    X = rows["grid"]
    ax = plot.latent_map(models["grid"], X, labels=[f"flow {9 + i % 3}" for i in range(len(X))])
    assert legend_of(ax) == ["flow 9", "flow 10", "flow 11"]


def test_pandas_categories_keep_their_order(models: Models, rows: Tables) -> None:
    kinds = pd.Categorical.from_codes(np.arange(len(rows["grid"])) % 2, ["zulu", "alpha"])
    assert legend_of(plot.latent_map(models["grid"], rows["grid"], labels=pd.Series(kinds))) == ["zulu", "alpha"]


@pytest.mark.parametrize("name", ["grid", "torus", "sphere", "line", "circle"])
def test_lines_join_mean_and_mode(models: Models, rows: Tables, name: str) -> None:
    ax = plot.latent_map(models[name], rows[name][:20], mode_lines=True, background=None)
    joins = np.array(the(LineCollection, ax).get_segments())
    assert len(joins) >= 20
    layout = layout_of(models[name].latent_).plane
    if layout is not None:
        longest = np.hypot(
            *(span / 2 if closed else span for span, closed in zip(layout.span, layout.periodic, strict=True))
        )
        assert np.linalg.norm(joins[:, 1] - joins[:, 0], axis=1).max() <= longest
        np.testing.assert_allclose(joins[:20, 0], layout.place(models[name].transform(rows[name][:20]), np.zeros(20)))
    assert legend_of(ax) == ["rows", "mode"]


def test_backgrounds_may_be_given(models: Models, rows: Tables) -> None:
    model, X = models["grid"], rows["grid"]
    image = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(the(QuadMesh, plot.latent_map(model, X, background=image)).get_array(), image)
    nodes = the(QuadMesh, plot.latent_map(model, X, background=np.arange(49.0))).get_array()
    np.testing.assert_allclose(nodes[FINER // 2 :: FINER, FINER // 2 :: FINER], np.arange(49.0).reshape(7, 7).T)
    np.testing.assert_allclose(np.diff(nodes[FINER // 2, FINER // 2 : -FINER // 2]), 7 / FINER, err_msg="smooth")
    assert not any(isinstance(each, QuadMesh) for each in plot.latent_map(model, X, background=None).collections)


def test_plain_coordinates_are_drawn_as_they_are(rng: np.random.Generator) -> None:
    Z = rng.normal(size=(30, 2))
    ax = plot.latent_map(Z, labels=np.arange(30) % 2)
    assert points_on(ax) == 30
    for columns in (1, 3):
        assert points_on(plot.latent_map(rng.normal(size=(9, columns)))) == 9


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"labels": [1], "values": [1.0]}, InvalidParameterError, "either by labels or by values"),
        ({"labels": ["a", "b"]}, InvalidDataError, r"labels has shape \(2,\) for 100 rows"),
        ({"background": "stretch"}, InvalidParameterError, "must be 'magnification', None or an array, got 'stretch'"),
        ({"background": np.zeros(3)}, InvalidDataError, "one value for each of the 49 nodes"),
    ],
)
def test_wrong_calls_are_named(models: Models, rows: Tables, options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        plot.latent_map(models["grid"], rows["grid"], **options)


@pytest.mark.parametrize("draw", [plot.latent_map, plot.surface])
def test_labels_need_rows(models: Models, draw: Any) -> None:
    with pytest.raises(InvalidParameterError, match="pass the rows as X too"):
        draw(models["grid"], labels=[1, 2])


def test_coordinates_alone_have_no_rows_and_no_modes() -> None:
    with pytest.raises(InvalidParameterError, match="X needs a fitted model"):
        plot.latent_map(np.zeros((3, 2)), np.zeros((3, 5)))
    with pytest.raises(InvalidParameterError, match="mode_lines needs a fitted model"):
        plot.latent_map(np.zeros((3, 2)), mode_lines=True)
    with pytest.raises(InvalidDataError, match=r"finite \(n, Q\) array, got shape \(3,\)"):
        plot.latent_map(np.zeros(3))


def test_an_image_needs_a_plane(models: Models) -> None:
    with pytest.raises(InvalidDataError, match="needs a latent space of two axes"):
        plot.latent_map(models["line"], background=np.zeros((2, 2)))


@pytest.mark.parametrize("draw", [plot.latent_map, plot.magnification, plot.folds, plot.surface, plot.learning_curve])
def test_a_model_must_be_fitted(draw: Any) -> None:
    with pytest.raises(NotFittedError):
        draw(GTM())


class _NoPosterior(BaseEstimator):
    """A model with a map but no density."""

    def __init__(self, fitted: GTM) -> None:
        self.latent_, self.n_features_in_, self.transform = fitted.latent_, fitted.n_features_in_, fitted.transform
        self.magnification = fitted.magnification

    def fit(self) -> None: ...


def test_models_without_a_posterior_say_so(models: Models, rows: Tables) -> None:
    bare = _NoPosterior(models["grid"])
    assert points_on(plot.latent_map(bare, rows["grid"])) == len(rows["grid"])
    with pytest.raises(InvalidParameterError, match="_NoPosterior has no posterior, so there are no modes"):
        plot.latent_map(bare, rows["grid"], mode_lines=True)
    with pytest.raises(InvalidParameterError, match="_NoPosterior has no posterior over latent space"):
        plot.posterior(bare, rows["grid"][0])


# ------------------------------------------------------------------------------------------ the other pictures


def test_ellipses_on_paper_are_those_computed(models: Models) -> None:
    ax = plot.magnification(models["grid"])
    glyphs, found = the(EllipseCollection, ax), data.stretch_ellipses(models["grid"])
    np.testing.assert_allclose(glyphs.get_offsets(), found.center)
    np.testing.assert_allclose(glyphs.get_widths(), 2 * found.half[:, 0])
    np.testing.assert_allclose(glyphs.get_heights(), 2 * found.half[:, 1])
    np.testing.assert_allclose(np.radians(glyphs.get_angles()) % np.pi, found.angle % np.pi)
    assert ax.get_xlim() == ax.get_ylim() == (-1.0, 1.0)  # so that the scale beside them is as tall as the map
    bare = plot.magnification(models["grid"], ellipses=False)
    assert not any(isinstance(each, EllipseCollection) for each in bare.collections)


def test_a_curve_is_magnified_along_a_line(models: Models) -> None:
    (line,) = plot.magnification(models["line"]).lines
    z, factor = line.get_data()
    np.testing.assert_allclose(factor, models["line"].magnification(np.asarray(z)[:, None]).factor)


def test_posterior_shows_the_responsibilities(models: Models, rows: Tables) -> None:
    ax = plot.posterior(models["grid"], rows["grid"][:1])
    shown = the(QuadMesh, ax).get_array()
    np.testing.assert_allclose(shown.T.ravel(), models["grid"].responsibilities(rows["grid"][:1])[0])
    mode, mean = [each.get_offsets()[0] for each in ax.collections if isinstance(each, PathCollection)]
    np.testing.assert_allclose(mode, models["grid"].posterior_mode(rows["grid"][:1])[0])
    np.testing.assert_allclose(mean, models["grid"].transform(rows["grid"][:1])[0])
    assert legend_of(ax) == ["mode", "mean"]


def test_folds_show_the_angle_and_mark_the_folded(models: Models) -> None:
    model = models["torus"]
    ax, found = plot.folds(model), data.node_folds(model)
    image = the(QuadMesh, ax).get_array()[FINER // 2 :: FINER, FINER // 2 :: FINER]  # smooth between the nodes
    np.testing.assert_allclose(image[:-1, :-1].T.ravel(), np.degrees(found.angle))
    marked = the(PathCollection, ax).get_offsets()
    np.testing.assert_allclose(marked.reshape(-1, 2), model.latent_.nodes[found.folded])
    assert (legend_of(ax) == ["folded"]) == bool(found.folded.any())


def test_an_unfolded_surface_says_so(rng: np.random.Generator) -> None:
    X = rng.uniform(size=(60, 2)) @ rng.normal(size=(2, 3))
    model = GTM(nodes=4, basis=2, regularization=1.0, max_iter=2, tol=0).fit(X)
    assert plot.folds(model).get_title(loc="left") == "No folds"


def test_a_curve_among_its_data(models: Models, rows: Tables) -> None:
    ax = plot.surface(models["line"], rows["line"], noise=True)
    discs = the(EllipseCollection, ax)
    np.testing.assert_allclose(discs.get_widths(), 4 * models["line"].noise_variance_ ** 0.5)
    np.testing.assert_allclose(discs.get_offsets(), models["line"].inverse_transform(models["line"].latent_.nodes))
    (line,) = the(LineCollection, ax).get_segments()
    np.testing.assert_allclose(line, models["line"].mesh().vertices)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 1", "column 2")


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize(("clamping", "longer"), [(0.2, "across"), (1.7, "along")])
def test_oriented_noise_is_drawn_as_ellipses(rows: Tables, clamping: float, longer: str) -> None:
    model = PPS(1, nodes=15, basis=5, clamping=clamping, max_iter=20, tol=0).fit(rows["line"])
    discs = the(EllipseCollection, plot.surface(model, rows["line"], noise=True))
    s, b = np.sqrt([clamping, 2 - clamping]) * 4 * model.noise_variance_**0.5
    np.testing.assert_allclose(discs.get_widths(), max(s, b))
    np.testing.assert_allclose(discs.get_heights(), min(s, b))
    tangent = model.jacobian(model.latent_.nodes)[:, :, 0]
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    angle = np.radians(discs.get_angles())
    inside = np.abs(np.cos(angle) * tangent[:, 0] + np.sin(angle) * tangent[:, 1])
    np.testing.assert_allclose(inside, 1.0 if longer == "along" else 0.0, atol=1e-6)


def test_noise_discs_need_a_curve_in_two_columns(models: Models, rows: Tables) -> None:
    with pytest.raises(InvalidParameterError, match="noise discs are drawn for curves in two columns"):
        plot.surface(models["grid"], rows["grid"], noise=True)


def test_columns_are_named_on_the_axes(rows: Tables) -> None:
    frame = pd.DataFrame(rows["grid"], columns=["wide", "deep", "high"])
    model = GTM(nodes=5, basis=3, max_iter=2, tol=0).fit(frame)
    ax = plot.surface(model, frame, dims=["high", "wide"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("high", "wide")
    np.testing.assert_allclose(the(PathCollection, ax).get_offsets(), frame[["high", "wide"]])
    assert plot.surface(model, frame).name == "3d"


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_rows_with_gaps_are_drawn_as_the_pipeline_fills_them(rows: Tables) -> None:
    X = rows["line"].copy()
    X[3, 0] = np.nan
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), GTM(1, nodes=8, basis=4, max_iter=3, tol=0)).fit(X)
    drawn = the(PathCollection, plot.surface(pipe, X)).get_offsets()
    np.testing.assert_allclose(drawn[3], [np.nanmean(X[:, 0]), X[3, 1]])
    with pytest.raises(InvalidDataError, match=r"NaN: 1 .* row\(s\) 3 and column\(s\) column 1"):
        plot.surface(UKR(1, max_iter=2, tol=0).fit(rows["line"]), X)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("value", [0.5, np.nan])
def test_rows_of_other_columns_than_those_of_the_fit_are_refused(rows: Tables, value: float) -> None:
    model = UKR(1, max_iter=2, tol=0).fit(rows["line"])
    with pytest.raises(InvalidDataError, match=r"must have the 2 columns that the curve was fitted to, got .*\(3, 5\)"):
        plot.surface(model, np.full((3, 5), value))


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_rows_with_gaps_are_drawn_as_the_model_fills_them(rows: Tables) -> None:
    X = rows["line"].copy()
    X[3, 0] = np.nan
    model = GTM(1, nodes=8, basis=4, max_iter=3, tol=0).fit(X)
    drawn = the(PathCollection, plot.surface(model, X)).get_offsets()
    np.testing.assert_allclose(drawn[3], model.impute(X)[3])
    scaled = make_pipeline(StandardScaler(), GTM(1, nodes=8, basis=4, max_iter=3, tol=0)).fit(X)
    drawn = the(PathCollection, plot.surface(scaled, X)).get_offsets()
    inner = scaled[-1].impute(scaled[0].transform(X))
    np.testing.assert_allclose(drawn[3], scaled[0].inverse_transform(inner)[3])


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_steps_that_cannot_be_undone_are_named(rows: Tables) -> None:
    pipe = make_pipeline(Normalizer(), GTM(1, nodes=8, basis=4, max_iter=3, tol=0)).fit(rows["line"])
    with pytest.raises(InvalidParameterError, match=r"normalizer cannot be undone.*pipeline\[:-1\].transform\(X\)"):
        plot.surface(pipe, rows["line"])


def test_axes_must_suit_the_columns(models: Models, rows: Tables) -> None:
    with pytest.raises(InvalidParameterError, match=r'names 3 columns, but the axes given have 2 .*projection="3d"'):
        plot.surface(models["space"], rows["space"], dims=[0, 1, 2], ax=plt.subplots()[1])
    flat = plot.surface(models["space"], rows["space"], ax=plt.subplots()[1])
    assert flat.get_xlabel().startswith("component 1 (")


def test_learning_curve_shows_the_history_and_the_reason(models: Models) -> None:
    ax = plot.learning_curve(models["grid"])
    objective, likelihood = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(objective, models["grid"].history_["objective"])
    np.testing.assert_array_equal(likelihood, models["grid"].history_["log_likelihood"])
    assert legend_of(ax) == ["objective", "log-likelihood", "noise"]
    assert ax.get_title(loc="left") == models["grid"].stop_reason_.after(8)
    box = ax.get_legend().get_window_extent(ax.figure.canvas.get_renderer())
    assert box.y1 < ax.bbox.y0, "below the axes, where no line passes"
    assert "8 iterations" in ax.get_title(loc="left")
    assert len(plot.learning_curve({"objective": [0.0, 1.0]}).lines) == 1


@pytest.mark.parametrize("name", SPACES)
def test_the_picture_chosen_suits_the_model(models: Models, rows: Tables, name: str) -> None:
    ax = models[name].plot(rows[name])
    assert (ax.get_xlabel() == "column 1") == (name in {"line", "circle"})


# --------------------------------------------------------------------------------------------- no matplotlib


@pytest.mark.parametrize("name", plot.__all__)
def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("style", *sorted(set(plot._HOMES.values()))):
        monkeypatch.delitem(sys.modules, f"prinfold.plot.{module}", raising=False)
        monkeypatch.delattr(plot, module, raising=False)
    with pytest.raises(MissingExtraError, match=r'pip install "prinfold\[plot\]"'):
        getattr(plot, name)


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'pie'"):
        plot.pie
    assert dir(plot) == sorted(plot.__all__)


def test_a_row_at_the_seam_is_marked_at_both_edges(models: Models) -> None:
    model = models["cylinder"]
    for angle, wanted in ((-np.pi, 2), (0.0, 1)):
        ax = plot.posterior(model, model.inverse_transform([[angle, 0.0]]))
        marks = [each.get_offsets() for each in ax.collections if each.get_label() in {"mean", "mode"}]
        assert [len(each) for each in marks] == [wanted, wanted]
        if wanted == 2:
            for each in marks:
                assert abs(np.ptp(each[:, 0]) - 2 * np.pi) < 1e-9


def test_no_module_hides_a_picture() -> None:
    """Once imported, a module is an attribute of its package, in the place of any function of the same name."""
    assert set(plot._HOMES) & {path.stem for path in Path(plot.__file__).parent.glob("*.py")} == set()
