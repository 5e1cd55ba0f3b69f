"""What the pictures show, before any ink: fields, ellipses, classes, views."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.given import Given

from prinfold import GTM, DensityRidge, datasets, latent, plot
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.latent.drawing import FlatDrawing, Plane
from prinfold.latent.subdivision import Subdivision
from prinfold.plot import inputs as subject
from prinfold.plot import lines
from prinfold.plot.data import surfaces as data
from prinfold.plot.inputs import drawing_of, layout_of


def test_the_data_need_no_drawing_library() -> None:
    program = "import sys, prinfold.plot, prinfold.plot.data.surfaces; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# -------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("name", ["grid", "cylinder", "torus", "sphere", "points", "line", "circle"])
def test_cells_cover_the_paper_and_sit_where_their_coordinates_are_placed(models: dict[str, GTM], name: str) -> None:
    layout = layout_of(models[name].latent_)
    cells = layout.cells(12)
    assert cells is not None
    assert models[name].latent_.domain.contains(cells.Z).all()
    middle = layout.place(cells.Z, np.full(len(cells.Z), 0.5))
    corners = np.stack([cells.x, cells.y], axis=-1)
    expected = (corners[:-1, :-1] + corners[1:, :-1] + corners[:-1, 1:] + corners[1:, 1:]) / 4
    # A ring's cells are bent, so that the mean of their corners lies a little inside.
    np.testing.assert_allclose(middle, expected.reshape(-1, 2), atol=0.02 if name == "circle" else 1e-12)


def test_the_chart_of_the_sphere_keeps_areas() -> None:
    space = latent.Sphere(50)
    cells = layout_of(space).cells(40)
    assert cells is not None
    # Every cell has one area on paper; on the sphere the mean of z² over equal areas is 1/3.
    np.testing.assert_allclose((cells.Z**2).mean(axis=0), 1 / 3, atol=1e-3)


def test_the_short_way_round_crosses_the_seam() -> None:
    plane = layout_of(latent.torus(5, 5))
    assert isinstance(plane, Plane)
    step = plane.difference(np.array([[-3.0, 1.0]]), np.array([[3.0, 0.0]]))
    np.testing.assert_allclose(step, [[2 * np.pi - 6.0, 1.0]])


def test_local_frame_is_orthonormal_and_tangent(models: dict[str, GTM]) -> None:
    Z = models["sphere"].latent_.nodes
    frame = drawing_of(models["sphere"].latent_).directions(Z)
    np.testing.assert_allclose(
        np.einsum("niq,njq->nij", frame, frame), np.broadcast_to(np.eye(2), (len(Z), 2, 2)), atol=1e-12
    )
    np.testing.assert_allclose(np.einsum("niq,nq->ni", frame, Z), 0.0, atol=1e-12)


def test_space_of_no_extent_still_has_paper() -> None:
    plane = layout_of(latent.Points(np.array([[0.0, 1.0], [0.0, 2.0]])))
    assert isinstance(plane, Plane)
    assert plane.span == (1.0, 1.0)


def test_a_space_of_its_own_kind_says_how_it_is_drawn() -> None:
    class Named(latent.Points):
        @property
        def drawing(self) -> FlatDrawing:
            return replace(super().drawing, labels=("along", "across"), n_lines=(3, 2))

    space = Named(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    fitted = GTM(latent=space, tol=1.0).fit(datasets.make_swiss_roll(60, rng=0).X)
    assert layout_of(fitted.latent_).labels == ("along", "across")
    assert len(lines.wires(subject.FittedSurface.of(fitted))) == 5


def test_a_space_that_does_not_say_how_it_is_drawn_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"Subdivision does not say how it is drawn; give .* drawing"):
        layout_of(Subdivision(latent.grid(3, 3), (2, 2)))


@pytest.mark.parametrize("most", [1, 4, 12])
def test_branches_are_drawn_end_to_end(most: int) -> None:
    space = latent.Branches(np.array([2.0, 1.0]), np.array([False, True]), np.array([9, 8]), 0.5)
    drawing = space.drawing
    places = drawing.spread(most)
    assert space.domain.contains(places).all()
    assert len(places) <= max(most**2, 5)  # an open branch needs two nodes, a closed one three
    np.testing.assert_array_equal(drawing.directions(places)[:, :, 0], np.broadcast_to([1.0, 0.0], (len(places), 2)))
    assert layout_of(space).axis == (0.0, 3.5, False)


# --------------------------------------------------------------------------------------------------- fields


@pytest.mark.parametrize("name", ["grid", "cylinder", "torus", "sphere", "points", "line", "circle"])
def test_field_is_the_log_magnification_on_its_grid(models: dict[str, GTM], name: str) -> None:
    model = models[name]
    layout = layout_of(model.latent_)
    field, cells = data.magnification_field(model, layout, 9), layout.cells(9)
    assert field is not None
    assert cells is not None
    np.testing.assert_allclose(np.exp(field.value).ravel(), model.magnification(cells.Z).factor, rtol=1e-12)


def test_blocks_change_nothing(models: dict[str, GTM], monkeypatch: pytest.MonkeyPatch) -> None:
    Z = models["grid"].latent_.nodes
    whole = data.log_factor(models["grid"], Z)
    monkeypatch.setattr(data, "_BLOCK_NUMBERS", 50)
    # To rounding: which kernel BLAS takes depends on the number of rows.
    np.testing.assert_allclose(data.log_factor(models["grid"], Z), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("space", [latent.grid(4, 3), latent.cylinder(4, 3), latent.torus(4, 3), latent.grid(1, 3)])
def test_each_node_lies_in_the_cell_that_shows_its_value(space: latent.Lattice) -> None:
    value = np.arange(space.n_nodes, dtype=float)
    field = data.node_field(space, value)
    assert field is not None
    for node, number in zip(space.nodes, value, strict=True):
        column = np.searchsorted(field.x[0], node[0]) - 1
        row = np.searchsorted(field.y[:, 0], node[1]) - 1
        assert field.value[row, column] == number


def test_colour_scales_are_never_of_no_length() -> None:
    low, high = data.limits(np.full((3, 3), 2.0))
    assert low < 2.0 < high
    assert data.limits(np.array([np.nan, -np.inf])) == (-0.5, 0.5)


@pytest.mark.parametrize("ends", [(-9.0, 9.0), (0.0, 0.05), (-1.0, 0.5), (3.0, 3.3), (-700.0, 10.0), (5.0, 5.04)])
def test_ticks_are_few_and_inside(ends: tuple[float, float]) -> None:
    ticks = data.round_factors(*ends)
    assert 1 <= len(ticks) <= 8
    assert (np.log(ticks) >= ends[0] - 1e-6).all()
    assert (np.log(ticks) <= ends[1] + 1e-6).all()


# ------------------------------------------------------------------------------------------------- ellipses


@pytest.mark.parametrize("name", ["grid", "cylinder", "torus", "points"])
def test_ellipses_are_the_stretch_at_their_places(models: dict[str, GTM], name: str) -> None:
    model = models[name]
    found = data.stretch_ellipses(model)
    Z = drawing_of(model.latent_).spread(20)
    stretch = model.magnification(Z)
    np.testing.assert_allclose(found.center, Z)
    assert len(Z) == model.latent_.n_nodes
    np.testing.assert_allclose(found.half, found.scale * stretch.lengths, rtol=1e-10)
    along = np.stack([np.cos(found.angle), np.sin(found.angle)], axis=1)
    # An axis has no sign, and a circle no direction.
    clear = stretch.lengths[:, 0] > 1.001 * stretch.lengths[:, 1]
    cosine = np.abs(np.einsum("nq,nq->n", along, stretch.directions[:, :, 0]))
    np.testing.assert_allclose(cosine[clear], 1.0, atol=1e-8)


def test_ellipses_on_the_sphere_keep_their_lengths(models: dict[str, GTM]) -> None:
    model = models["sphere"]
    found = data.stretch_ellipses(model)
    np.testing.assert_allclose(found.half, found.scale * model.magnification(model.latent_.nodes).lengths, rtol=1e-8)


@pytest.mark.parametrize("name", ["grid", "torus", "points"])
def test_ellipses_do_not_overlap(models: dict[str, GTM], name: str) -> None:
    found = data.stretch_ellipses(models[name])
    turn = np.linspace(0, 2 * np.pi, 60)
    layout = layout_of(models[name].latent_)
    assert isinstance(layout, Plane)
    cos, sin = np.cos(found.angle), np.sin(found.angle)
    axes = np.stack([np.stack([cos, -sin], 1), np.stack([sin, cos], 1)], axis=1) * found.half[:, None, :]
    rim = found.center[:, None] + np.einsum("nij,jt->nti", axes, np.stack([np.cos(turn), np.sin(turn)]))
    for i in range(len(rim)):
        others = np.delete(np.arange(len(rim)), i)
        inner = layout.difference(rim[others], found.center[i]) @ np.linalg.inv(axes[i]).T
        assert (np.linalg.norm(inner, axis=-1) > 1.0).all()


@pytest.mark.parametrize("name", ["grid", "cylinder"])
def test_ellipses_stay_inside_open_edges_and_stand_even(models: dict[str, GTM], name: str) -> None:
    found = data.stretch_ellipses(models[name])
    along = np.stack([np.cos(found.angle), np.sin(found.angle)], axis=1)
    reach = np.hypot(found.half[:, :1] * along, found.half[:, 1:] * along[:, ::-1])
    layout = layout_of(models[name].latent_)
    for axis in np.flatnonzero(~np.array(layout.periodic)):
        assert (found.center[:, axis] - reach[:, axis] >= layout.low[axis]).all()
        assert (found.center[:, axis] + reach[:, axis] <= layout.high[axis]).all()
        assert found.center[:, axis].min() - layout.low[axis] == pytest.approx(
            layout.high[axis] - found.center[:, axis].max()
        )


@pytest.mark.parametrize(
    ("space", "most"),
    [(latent.grid(50, 7), 20), (latent.torus(45, 12), 20), (latent.Sphere(900), 20)],
    ids=["grid", "torus", "sphere"],
)
def test_large_grids_are_thinned(space: latent.LatentSpace, most: int) -> None:
    kept = drawing_of(space).spread(most)
    assert 1 < len(kept) <= most**2
    assert space.domain.contains(kept).all()


def test_thinned_points_are_points_of_the_cloud(rng: np.random.Generator) -> None:
    space = latent.Points(rng.normal(size=(2000, 2)))
    kept = drawing_of(space).spread(10)
    assert len(kept) <= 100
    assert {tuple(each) for each in kept} <= {tuple(each) for each in space.nodes}


def test_glyphs_near_a_seam_show_on_both_sides() -> None:
    layout = layout_of(latent.torus(6, 6))
    center = np.array([[-np.pi, 0.0], [0.0, 0.0], [-np.pi, -np.pi]])
    index, shift = data.repeat_over_seams(layout, center)
    places = {tuple(np.round(place, 9)) for place in center[index] + shift}
    pi = round(np.pi, 9)
    assert places == {(-pi, 0), (pi, 0), (0, 0), (-pi, -pi), (pi, -pi), (-pi, pi), (pi, pi)}


# ------------------------------------------------------------------------------------------ classes and values


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "b"], ("a", "b")),
        (np.array([10, 2, 10]), ("2", "10")),
        ([True, False, True], ("False", "True")),
        ([1.0, np.nan, 2.0], ("1", "2")),
        (["x", None, 1], ("1", "x")),
        (pd.Series(["b", "a", "b"], dtype=pd.CategoricalDtype(["b", "a", "c"])), ("b", "a")),
        (pd.Categorical(["b", "a", None], categories=["b", "a"]), ("b", "a")),
        (pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])), ("b", "a")),
        (pl.Series(["b", "a", None]), ("a", "b")),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), ("a", "b")),
        (pd.Series([3, None, 1], dtype="Int64"), ("1", "3")),
    ],
)
def test_labels_of_any_kind_become_classes(labels: Any, names: tuple[str, ...]) -> None:
    found = subject.row_classes(labels, 3)
    assert found.names == names
    given = [None if pd.isna(each) else each for each in list(labels)]
    for each, index in zip(given, found.index, strict=True):
        assert index == -1 if each is None else found.names[index] == subject._short(each)


def test_wrong_labels_and_values_are_named() -> None:
    with pytest.raises(InvalidDataError, match=r"labels has shape \(2,\) for 3 rows; give one label per row"):
        subject.row_classes(["a", "b"], 3)
    with pytest.raises(InvalidDataError, match="61 different values, too many for classes; pass them as values="):
        subject.row_classes(np.arange(61), 61)
    with pytest.raises(InvalidDataError, match=r"values has shape \(3, 1\) for 3 rows; give one number per row"):
        subject.check_values(np.zeros((3, 1)), 3)


def test_values_that_are_text_are_sent_to_labels() -> None:
    with pytest.raises(InvalidDataError, match=r"values must be numbers .*'setosa'.*; for classes use labels= instead"):
        subject.check_values(["setosa", "virginica"], 2)


def test_infinite_values_are_no_values() -> None:
    np.testing.assert_array_equal(subject.check_values([1.0, np.inf, np.nan], 3), [1.0, np.nan, np.nan])


def test_lanes_keep_classes_apart(rng: np.random.Generator) -> None:
    Z, index = rng.normal(size=(90, 1)), np.arange(90) % 3
    lane = subject.lanes(Z, subject.RowClasses(("a", "b", "c"), index))
    for each in range(3):
        inside = lane[index == each]
        assert (inside > each / 3).all()
        assert (inside < (each + 1) / 3).all()
    assert len(np.unique(lane)) == 90


# ------------------------------------------------------------------------------------------------ data space


def test_two_or_three_columns_are_shown_as_they_are(rng: np.random.Generator) -> None:
    for D in (2, 3):
        points = rng.normal(size=(10, D))
        view = data.choose_view(tuple("abc"[:D]), points)
        np.testing.assert_array_equal(view(points), points)
        assert view.labels == tuple("abc"[:D])


def test_more_columns_are_shown_by_principal_components(rng: np.random.Generator) -> None:
    points = rng.normal(size=(200, 5)) * [5.0, 0.1, 3.0, 0.1, 1.0]
    names = tuple("abcde")
    view = data.choose_view(names, points)
    seen = view(points)
    assert seen.shape == (200, 3)
    variance = np.linalg.eigvalsh(np.cov(points.T))[::-1]
    np.testing.assert_allclose(seen.var(axis=0, ddof=1), variance[:3])
    np.testing.assert_allclose(np.corrcoef(seen.T), np.eye(3), atol=1e-10)
    assert view.labels[0] == f"component 1 ({100 * variance[0] / variance.sum():.0f} %)"
    assert len(data.choose_view(names, points, curve=True).labels) == 2


def test_fewer_points_than_components_still_have_a_view() -> None:
    view = data.choose_view(tuple("abcd"), np.ones((1, 4)))
    assert np.isfinite(view(np.zeros((2, 4)))).all()


@pytest.mark.parametrize("dims", [(0, 2), ("a", "c"), (np.int64(0), -2)])
def test_columns_by_name_or_position(dims: Any, rng: np.random.Generator) -> None:
    points = rng.normal(size=(4, 4))
    view = data.choose_view(tuple("abcd"), points, dims)
    assert view.labels == ("a", "c")
    np.testing.assert_array_equal(view(points), points[:, [0, 2]])


@pytest.mark.parametrize(
    ("dims", "match"),
    [
        ((0,), "two or three different columns"),
        ((1, 1), "different"),
        (("a", "z"), "no column 'z'"),
        ((0, 9), "0 to 3"),
    ],
)
def test_wrong_columns_are_named(dims: Any, match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        data.choose_view(tuple("abcd"), np.zeros((2, 4)), dims)


def test_one_column_has_no_view() -> None:
    with pytest.raises(InvalidDataError, match="single column"):
        data.choose_view(("a",), np.zeros((3, 1)))


@pytest.mark.parametrize("name", ["line", "circle", "grid", "cylinder", "torus", "sphere", "points", "space"])
def test_wires_lie_on_the_surface(models: dict[str, GTM], rows: dict[str, np.ndarray], name: str) -> None:
    model = models[name]
    drawn = lines.wires(subject.FittedSurface.of(model), most=4, resolution=5)
    points = np.concatenate(drawn)[::7]
    if model.latent_.dimension <= 2:
        np.testing.assert_allclose(model.project(points), points, atol=1e-5)
    else:
        nodes = model.inverse_transform(model.latent_.nodes)
        assert all(np.isclose(nodes, point).all(axis=1).any() for point in points)


def test_a_closed_curve_closes(models: dict[str, GTM]) -> None:
    (line,) = lines.wires(subject.FittedSurface.of(models["circle"]))
    np.testing.assert_array_equal(line[0], line[-1])
    (line,) = lines.wires(subject.FittedSurface.of(models["line"]))
    assert not np.allclose(line[0], line[-1])


def test_a_pipeline_is_seen_in_the_units_of_its_rows(rows: dict[str, np.ndarray]) -> None:
    X = rows["grid"] * [1.0, 100.0, 1.0] + 7.0
    pipe = make_pipeline(StandardScaler(), GTM(nodes=5, basis=3, max_iter=3, tol=0)).fit(X)
    fitted = subject.FittedSurface.of(pipe)
    np.testing.assert_allclose(fitted.coordinates(X), pipe.transform(X))
    Z = pipe[-1].latent_.nodes
    np.testing.assert_allclose(fitted.points(Z), pipe[0].inverse_transform(pipe[-1].inverse_transform(Z)))
    assert fitted.feature_names == ("column 1", "column 2", "column 3")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert subject.FittedSurface.of(pipe.fit(frame)).feature_names == ("a", "b", "c")


# -------------------------------------------------------------------------------------------------- posterior


def test_posterior_of_one_row(models: dict[str, GTM], rows: dict[str, np.ndarray]) -> None:
    model, x = models["grid"], rows["grid"][0]
    found = data.row_posterior(subject.FittedSurface.of(model), x)
    np.testing.assert_allclose(found.weight, model.responsibilities(x[None])[0])
    np.testing.assert_allclose(found.mean, model.transform(x[None]))
    np.testing.assert_allclose(found.mode, model.posterior_mode(x[None]))
    with pytest.raises(InvalidDataError, match=r"one row, but got 2; pass a single one such as X\[:1\]"):
        data.row_posterior(subject.FittedSurface.of(model), rows["grid"][:2])


def test_a_row_of_a_frame_keeps_its_names(rows: dict[str, np.ndarray]) -> None:
    frame = pd.DataFrame(rows["grid"], columns=["a", "b", "c"])
    fitted = subject.FittedSurface.of(GTM(nodes=5, basis=3, max_iter=2, tol=0).fit(frame))
    np.testing.assert_allclose(
        data.row_posterior(fitted, frame.iloc[3]).weight, data.row_posterior(fitted, frame.iloc[[3]]).weight
    )


# --------------------------------------------------------------------------------------------------- training


def test_training_is_the_history(models: dict[str, GTM]) -> None:
    model = models["grid"]
    found = data.training_course(model)
    np.testing.assert_array_equal(found.objective, model.history_["objective"])
    assert found.noise is not None
    np.testing.assert_allclose(found.noise[-1], model.noise_variance_**0.5)
    assert found.ending == model.stop_reason_.after(model.n_iter_)
    assert data.training_course({"objective": [1.0, 2.0]}).log_likelihood is None
    with pytest.raises(InvalidDataError, match=r"needs the key 'objective', got \['seconds'\]"):
        data.training_course({"seconds": [1.0]})


# ------------------------------------------------------------------------------------ regions of any shape


def ring_with_a_hole() -> Given:
    """A surface over latent points round a ring."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 150)
    Z = rng.uniform(3.5, 4.5, (150, 1)) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Given(Z).fit(np.concatenate([Z, 0.1 * Z[:, :1] ** 2], axis=1))


def curve_in_two_pieces() -> Given:
    t = np.concatenate([np.linspace(0, 6, 40), np.linspace(20, 24, 30)])[:, None]
    return Given(t).fit(np.hstack([np.cos(t / 8), np.sin(t / 8)]))


def test_a_field_is_blank_outside_the_region() -> None:
    model = ring_with_a_hole()
    layout = data.layout_for(model)
    field, cells = data.magnification_field(model, layout, 40), layout.cells(40)
    inside = model.latent_.domain.contains(cells.Z).reshape(field.value.shape)
    np.testing.assert_array_equal(np.isfinite(field.value), inside)
    radius = np.linalg.norm(cells.Z, axis=1).reshape(inside.shape)
    assert not inside[radius < 1].any()
    assert inside[np.abs(radius - 4) < 0.3].all()


def test_glyphs_are_spread_over_the_region_only() -> None:
    model = ring_with_a_hole()
    Z = drawing_of(model.latent_).spread(12)
    assert 20 < len(Z) < 144
    assert model.latent_.domain.contains(Z).all()


def test_lines_on_a_surface_stop_at_its_edge() -> None:
    model = ring_with_a_hole()
    wired = lines.wires(subject.FittedSurface.of(model))
    drawn = np.concatenate(wired)
    assert len(wired) > 32  # more than there are levels: some are cut in two by the hole
    assert np.linalg.norm(drawn[:, :2], axis=1).min() > 2
    assert ((drawn - model.project(drawn)) ** 2).sum(axis=1).max() < 1e-12


def test_a_curve_in_pieces_is_as_many_lines() -> None:
    model = curve_in_two_pieces()
    drawn = lines.wires(subject.FittedSurface.of(model))
    assert len(drawn) == 2
    steps = [np.linalg.norm(np.diff(line, axis=0), axis=1).max() for line in drawn]
    assert max(steps) < 0.05
    z, factor = data.curve_magnification(model)
    np.testing.assert_array_equal(np.isfinite(factor), model.latent_.domain.contains(z[:, None]))
    assert np.isnan(factor[(z > 10) & (z < 16)]).all()


def test_a_ridge_goes_by_its_length_and_is_stretched_nowhere() -> None:
    pieces = np.concatenate([datasets.make_half_circle(80, rng=0).X, datasets.make_half_circle(80, rng=1).X + 5.0])
    model = DensityRidge(bandwidth=0.3).fit(pieces)
    z, factor = data.curve_magnification(model)
    within = model.latent_.domain.contains(z[:, None])
    assert 0 < within.sum() < len(z)
    np.testing.assert_allclose(factor[within], 1.0, atol=0.02)
    assert np.isnan(factor[~within]).all()


def test_scattered_points_have_lines_of_some_kind() -> None:
    model = Given(100.0 * np.arange(4.0)[:, None] * [[1.0, 2.0]]).fit(np.eye(4)[:, :3])
    assert np.isfinite(np.concatenate(lines.wires(subject.FittedSurface.of(model)))).all()


def test_a_curve_of_one_point_has_no_logarithmic_axis() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model = GTM(n_components=1).fit(np.ones((30, 3)))
    assert plot.magnification(model).get_yscale() == "linear"
    assert plot.magnification(curve_in_two_pieces()).get_yscale() == "log"
    plt.close("all")
