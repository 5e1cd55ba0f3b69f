"""The explorer: its page computes what the model computes, and shows, selects and saves the right rows."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.path import Path as Polygon
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from prinfold import (
    GTM,
    KMM,
    PPS,
    SOM,
    UKR,
    DensityRidge,
    ElasticNetBasis,
    GaussianBasis,
    GaussianProcess,
    GTMClassifier,
    GTMMixture,
    GTMSequence,
    HarmonicBasis,
    MixedGTM,
    PolygonalCurve,
    PrincipalCurve,
    datasets,
    explore,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError
from prinfold.latent.occupied_region import has_open_corners, occupied_region

pytestmark = pytest.mark.filterwarnings("ignore")

_PIPE = datasets.make_pipe_flow(120, rng=0).X
_CURVE = datasets.make_half_circle(80, rng=0).X
_RING = datasets.make_circle(80, rng=0).X
_ROLL = datasets.make_swiss_roll(150, rng=0).X
_SOME = _ROLL[:60]
_FEW: dict[str, Any] = {"max_iter": 3, "tol": 0.0}

MAPS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "grid": (lambda: GTM(nodes=8, basis=4, **_FEW), _PIPE),
    "no linear terms": (lambda: GTM(nodes=8, basis=GaussianBasis(4, linear=False), **_FEW), _PIPE),
    "PPS": (lambda: PPS(nodes=8, basis=4, **_FEW), _PIPE),
    "line": (lambda: GTM(latent="line", **_FEW), _CURVE),
    "circle": (lambda: GTM(latent="circle", **_FEW), _RING),
    "harmonics": (lambda: GTM(latent="circle", basis=HarmonicBasis(3), **_FEW), _RING),
    "cylinder": (lambda: GTM(latent="cylinder", nodes=8, basis=4, **_FEW), _PIPE),
    "torus": (lambda: GTM(latent="torus", nodes=8, basis=4, **_FEW), _PIPE),
    "sphere": (lambda: GTM(latent="sphere", nodes=60, basis=12, **_FEW), datasets.make_sphere(100, rng=0).X),
    "space": (lambda: GTM(3, nodes=4, basis=2, **_FEW), _PIPE),
    "process": (lambda: GTM(nodes=8, basis=GaussianProcess(0.6, 0.5), **_FEW), _PIPE),
    "Matérn": (lambda: GTM(nodes=8, basis=GaussianProcess(0.6, 0.5, covariance="matern32"), **_FEW), _PIPE),
    "Matérn 5/2": (lambda: GTM(nodes=8, basis=GaussianProcess(0.6, 0.5, covariance="matern52"), **_FEW), _PIPE),
    "net": (lambda: GTM(nodes=(7, 5), basis=ElasticNetBasis(cuts=[((0, 0), (0, 2))]), **_FEW), _PIPE),
    "closed net": (lambda: GTM(latent="cylinder", nodes=(7, 5), basis=ElasticNetBasis(1), **_FEW), _PIPE),
    "UKR": (lambda: UKR(init="pca", **_FEW), _SOME),
    "quartic": (lambda: UKR(init="pca", kernel="quartic", **_FEW), _SOME),
    "curve": (lambda: UKR(1, init="pca", **_FEW), _CURVE),
    "KMM": (lambda: KMM(**_FEW), _SOME),
    "SOM": (lambda: SOM(nodes=(6, 5), max_iter=3), _PIPE),
    "SOM on a torus": (lambda: SOM(nodes=(6, 6), latent="torus", max_iter=3), _PIPE),
    "ridge": (lambda: DensityRidge(bandwidth=0.2), _CURVE),
    "closed curve": (lambda: PrincipalCurve(closed=True, **_FEW), _RING),
    "corners": (PolygonalCurve, _CURVE),
    "sheet": (lambda: DensityRidge(2, bandwidth=2.0), _ROLL),
    "mixture": (lambda: GTMMixture(2, GTM(nodes=6, basis=3, **_FEW), n_init=1, random_state=0), _PIPE),
    "mixture of curves": (lambda: GTMMixture(2, GTM(1, nodes=9, basis=3, **_FEW), n_init=1, random_state=0), _CURVE),
    "scaled": (lambda: make_pipeline(StandardScaler(), GTM(nodes=8, basis=4, **_FEW)), 10.0 + 5.0 * _PIPE),
    "rotated": (lambda: make_pipeline(PCA(4, whiten=True), GTM(nodes=8, basis=4, **_FEW)), _PIPE),
}


def decoded(model: Any, Z: np.ndarray) -> np.ndarray:
    """Points of the surface in the units of the table."""
    steps = getattr(model, "steps", None)
    if steps is None:
        return np.asarray(model.inverse_transform(Z))
    return np.asarray(model[:-1].inverse_transform(model[-1].inverse_transform(Z)))


@pytest.mark.parametrize("name", MAPS)
def test_the_page_computes_the_surface(name: str, open_page: Callable[..., Any]) -> None:
    make, X = MAPS[name]
    model = make().fit(X)
    estimator = model[-1] if hasattr(model, "steps") else model
    Z = np.asarray(model.transform(X), dtype=float)[:25]
    # Between rows too, as far as there is a surface.
    between = estimator.latent_.domain.retract((Z[1:] + Z[:-1]) / 2)
    Z = np.concatenate([Z, between[estimator.latent_.domain.contains(between)]])
    tab = open_page(explore(model, X, path=None))
    found = np.array(tab.evaluate("zs => zs.map(z => window.prinfold.decode(z))", Z.tolist()))
    wanted = decoded(model, Z)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    # An open lattice ends where the rows do, so that a point between two of them may lie outside.
    seen = np.ones(len(Z), dtype=bool)
    if has_open_corners(estimator.latent_):
        height = occupied_region(np.asarray(model.transform(X), dtype=float)).domain.height(Z)
        seen, Z = height[np.abs(height) > 1e-6] >= 0, Z[np.abs(height) > 1e-6]
    assert tab.evaluate("zs => zs.map(z => window.prinfold.inside(z))", Z.tolist()) == seen.tolist()
    if name == "sphere":
        assert not tab.evaluate("window.prinfold.inside([0, 0, 2]) || window.prinfold.inside([0, 0, 0])")


def test_levels_and_counts(open_page: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(size=60)
    level = np.where(t > 0.5, "high", np.where(t < -0.5, "low", "middle"))
    frame = pd.DataFrame({"t": t, "level": level, "sign": t > 0, "count": rng.poisson(np.exp(t) * 3)})
    frame.loc[0, "level"] = None
    model = MixedGTM(1, nodes=8, basis=4, **_FEW).fit(frame)
    page = explore(model, frame, path=None)
    tab = open_page(page)
    Z = np.linspace(-1, 1, 9)[:, None]
    found = np.array(tab.evaluate("zs => zs.map(z => window.prinfold.decode(z))", Z.tolist()))
    np.testing.assert_allclose(found, model.inverse_transform(Z), rtol=1e-9)
    assert payload(page)["columns"] == ["t", "level=high", "level=low", "level=middle", "sign=True", "count"]
    tab.evaluate("window.prinfold.choose(1)")
    beside = tab.locator(".pf-beside").all_inner_texts()
    assert [float(each) for each in beside[1:4]] == [level[1] == "high", level[1] == "low", level[1] == "middle"]
    tab.evaluate("window.prinfold.choose(0)")
    assert tab.locator(".pf-beside").all_inner_texts()[1] == "–"


def test_outside_the_latent_domain_there_is_no_surface(open_page: Callable[..., Any]) -> None:
    make, X = MAPS["quartic"]
    model = make().fit(X)
    box = model.latent_.domain
    Z = np.random.default_rng(0).uniform(box.low, box.high, (200, 2))
    height = box.height(Z)
    Z = Z[np.abs(height) > 1e-3]
    assert 0 < box.contains(Z).sum() < len(Z)
    tab = open_page(explore(model, X, path=None))
    inside = tab.evaluate("zs => zs.map(z => window.prinfold.inside(z))", Z.tolist())
    assert inside == box.contains(Z).tolist()
    outside = Z[~box.contains(Z)][0].tolist()
    assert tab.evaluate("z => window.prinfold.probe(z)", outside) is None
    assert "no surface" in tab.locator(".pf-place").inner_text()
    # Where no kernel reaches, the map goes on from the nearest of the latent points.
    far = model.embedding_ + 50.0 * model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    wanted = model.inverse_transform(far, extrapolate=True)
    assert len(np.unique(wanted.round(9), axis=0)) > 3
    found = np.array(tab.evaluate("zs => zs.map(z => window.prinfold.decode(z))", far.tolist()))
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_the_page_ends_where_rows_do(open_page: Callable[..., Any]) -> None:
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 150)
    X = np.stack([np.cos(angle), np.sin(angle), 0.05 * np.sin(3 * angle)], axis=1)
    model = GTM(nodes=8, basis=2, init="pca", **_FEW).fit(X)
    page = explore(model, X, path=None)
    region = occupied_region(np.asarray(model.transform(X))).domain
    places = (np.arange(120) + 0.5) / 60 - 1
    Z = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    inside = region.contains(Z)
    assert 0.02 < inside.mean() < 0.5
    tab = open_page(page)
    field = tab.evaluate("Array.from(window.prinfold.page.field, Number.isNaN)")
    assert field == (~inside).tolist()
    clear = np.abs(region.height(Z)) > 1e-6
    found = np.array(tab.evaluate("zs => zs.map(z => window.prinfold.inside(z))", Z.tolist()))
    np.testing.assert_array_equal(found[clear], inside[clear])
    # Over the hole nothing is evaluated: the last place stays, and by keyboard the page says that there is no surface.
    assert tab.evaluate("window.prinfold.probe([0, 0])") is None
    assert "no surface" in tab.locator(".pf-place").inner_text()
    assert tab.get_by_text("The surface is shown near the rows only").is_visible()
    assert "density" not in payload(explore(model, path=None))["latent"]  # without rows the whole map is shown


@pytest.fixture(scope="module")
def pipe() -> tuple[GTM, Any]:
    data = datasets.make_pipe_flow(120, rng=0)
    return GTM(nodes=8, basis=4, **_FEW).fit(data.X), data


def test_hovering_shows_the_numbers_of_inverse_transform(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    tab = open_page(explore(model, data.X, path=None))
    box = tab.locator(".pf-map").bounding_box()
    assert tab.get_by_text("click a row to see it beside").is_visible()
    assert tab.get_by_text("drag with Lasso to select").is_visible()
    assert tab.get_by_label("Show as").count() == 0  # these columns are no series
    x, y = tab.evaluate("window.prinfold.pixelOf(0)")
    tab.mouse.move(box["x"] + x + 2, box["y"] + y + 2)
    assert tab.get_by_text("click a row to see it beside").is_hidden()
    words = tab.locator(".pf-place").inner_text()
    shown = [float(each) for each in re.search(r"\((.*)\)", words).group(1).split(",")]  # type: ignore[union-attr]
    values = [float(each) for each in tab.locator(".pf-value:not(.pf-beside)").all_inner_texts()]
    # Both the place and the numbers are rounded to a hundredth of what they extend over, or finer.
    step = _rounding(data.X) + 0.01 * np.abs(model.jacobian([shown])[0]).sum(axis=1)
    assert (np.abs(values - model.inverse_transform([shown])[0]) <= step).all()
    tab.mouse.move(box["x"] + 3, box["y"] + y + 2)  # beyond the end of the map: the last place stays
    assert tab.locator(".pf-place").inner_text() == words


def _rounding(X: np.ndarray) -> np.ndarray:
    """Half of the last decimal with which a column is shown: that which tells a hundredth of its extent."""
    return 0.5 * 10.0 ** -np.ceil(2 - np.log10(np.ptp(X, axis=0))) + 1e-12


def test_a_click_shows_a_row_beside_the_surface(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    names = [f"sample {i}" for i in range(len(data.X))]
    tab = open_page(explore(model, data.X, path=None, labels=data.names, names=names))
    tab.wait_for_function("window.prinfold.pixelOf(0)[0] > 0")
    pixels = np.array([tab.evaluate("row => window.prinfold.pixelOf(row)", row) for row in range(len(data.X))])
    gap = np.linalg.norm(pixels[:, None] - pixels[None], axis=2) + 1e9 * np.eye(len(pixels))
    row = int(np.argmax(gap.min(axis=1)))  # the loneliest, so that the click is not about another
    box = tab.locator(".pf-map").bounding_box()
    tab.mouse.click(box["x"] + pixels[row, 0], box["y"] + pixels[row, 1])
    other = int(np.argsort(gap.min(axis=1))[-2])
    # Moving on names what lies below, and leaves the row beside its own reconstruction.
    for place in (pixels[row], pixels[other]):
        tab.mouse.move(box["x"] + place[0], box["y"] + place[1])
        assert f"beside row sample {row} ({data.names[row]})" in tab.locator(".pf-place").inner_text()
        beside = [float(each) for each in tab.locator(".pf-beside").all_inner_texts()]
        assert (np.abs(beside - data.X[row]) <= _rounding(data.X)).all()
        surface = [float(each) for each in tab.locator(".pf-value:not(.pf-beside)").all_inner_texts()]
        assert (np.abs(surface - model.reconstruct(data.X[[row]])[0]) <= _rounding(data.X)).all()
    assert tab.locator(".pf-below").inner_text() == f"sample {other} ({data.names[other]})"
    tab.get_by_label("Colour by").focus()
    tab.keyboard.press("Escape")  # whatever has the focus
    assert "beside row" not in tab.locator(".pf-place").inner_text()
    tab.mouse.click(box["x"] + pixels[other, 0], box["y"] + pixels[other, 1])
    assert f"beside row sample {other}" in tab.locator(".pf-place").inner_text()
    tab.get_by_role("button", name="Clear").click()
    assert "beside row" not in tab.locator(".pf-place").inner_text()


def test_a_lasso_selects_and_saves_the_right_rows(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    codes = [None, *(f"C-{i}" for i in range(1, 120))]
    extra = pd.DataFrame({"code": codes, "weight": np.arange(120) / 7})
    tab = open_page(
        explore(model, data.X, path=None, labels=data.names, values={"a, b": np.arange(120.0)}, extra=extra)
    )
    tab.wait_for_function("window.prinfold.pixelOf(0)[0] > 0")
    pixels = np.array([tab.evaluate("row => window.prinfold.pixelOf(row)", row) for row in range(len(data.X))])
    box = tab.locator(".pf-map").bounding_box()
    left, right, top, bottom = 0.1 * box["width"], 0.55 * box["width"], 0.05 * box["height"], 0.6 * box["height"]
    tab.get_by_role("button", name="Lasso").click()
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    tab.mouse.move(box["x"] + left, box["y"] + top)
    tab.mouse.down()
    for x, y in [*corners[1:], corners[0]]:
        tab.mouse.move(box["x"] + x, box["y"] + y, steps=5)
    tab.mouse.up()
    x, y = pixels.T
    wanted = np.flatnonzero((x > left) & (x < right) & (y > top) & (y < bottom))
    assert 0 < len(wanted) < 120
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Export CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    found = np.array([int(row["row"]) for row in rows])
    # The mouse moves in whole pixels: rows within two of the line may go either way.
    near = np.minimum(np.abs(x - [[left], [right]]).min(axis=0), np.abs(y - [[top], [bottom]]).min(axis=0)) < 2
    assert found[~near[found]].tolist() == wanted[~near[wanted]].tolist()
    wanted = found
    assert [row["class"] for row in rows] == [data.names[i] for i in wanted]
    assert [row["code"] for row in rows] == [codes[i] or "" for i in wanted]
    assert [float(row["weight"]) for row in rows] == pytest.approx(wanted / 7, rel=1e-14)
    assert [float(row["a, b"]) for row in rows] == wanted.astype(float).tolist()
    Z = np.array([[float(row[f"latent {a}"]) for a in (1, 2)] for row in rows])
    np.testing.assert_array_equal(Z, model.transform(data.X)[wanted])
    saved = np.array([[float(row[f"column {j + 1}"]) for j in range(12)] for row in rows])
    np.testing.assert_array_equal(saved, data.X[wanted])  # to the last bit
    assert f"{len(wanted)} of 120 rows selected" in tab.locator(".pf-count").inner_text()


def test_selected_rows_are_listed_and_held_against_the_rest(open_page: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * [1, 2, 3, 4, 5, 6]
    chosen = np.arange(20, 35)
    X[chosen, 4] += 12.0
    X[3, 4] = np.nan
    frame = pd.DataFrame(X, columns=[f"a column with the long name {j}" for j in range(6)])
    model = GTM(nodes=5, basis=3, **_FEW).fit(frame.fillna(0.0))
    names = [f"Rabbit {i}" for i in range(90)]
    tab = open_page(explore(model, frame, path=None, names=names, labels=pd.Series(np.arange(90) % 2, name="side")))
    assert "Draw round rows" in tab.locator(".pf-selection").inner_text()
    tab.evaluate("rows => { window.prinfold.select(rows); }", chosen.tolist())
    # Which columns differ most, by how many standard deviations, and the two means.
    rest = np.setdiff1d(np.arange(90), chosen)
    means = np.nanmean(X[chosen], axis=0), np.nanmean(X[rest], axis=0)
    difference = (means[0] - means[1]) / np.nanstd(X, axis=0)
    lines = tab.locator(".pf-comparison .pf-line:not(.pf-head)")
    order = np.argsort(-np.abs(difference))
    assert lines.locator(".pf-name").all_inner_texts() == [frame.columns[j] for j in order]
    said = lines.locator(".pf-track").evaluate_all("all => all.map(each => each.title)")
    assert said[0] == f"+{difference[4]:.1f} SD"
    shown = [float(each) for each in lines.first.locator(".pf-value").all_inner_texts()]
    np.testing.assert_allclose(shown, [means[0][4], means[1][4]], atol=0.05)
    # Its rows as a table, from which one is chosen.
    table = tab.locator(".pf-table tbody tr")
    assert table.count() == len(chosen)
    assert table.first.locator("td").all_inner_texts()[:2] == ["Rabbit 20", "0"]
    table.nth(4).get_by_role("button").click()
    assert "beside row Rabbit 24 (0)" in tab.locator(".pf-place").inner_text()
    tab.get_by_role("button", name="Clear").click()
    assert tab.locator(".pf-table").count() == 0


def test_a_selection_leads_with_what_the_rows_are_coloured_by(open_page: Callable[..., Any]) -> None:
    """Its mean and cells come first, counts stay whole, colours that are cut off say so, and the map stays in place."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 9, 90)])
    solubility = pd.Series(rng.normal(size=90).round(2), name="logS")
    solubility[7] = -50.0
    frame = pd.DataFrame(X, columns=["a", "b", "rings"])
    tab = open_page(explore(GTM(nodes=5, basis=3, **_FEW).fit(frame), frame, path=None, values=solubility))
    place = tab.locator(".pf-map").bounding_box()
    tab.evaluate("rows => { window.prinfold.select(rows); }", list(range(20)))
    assert tab.locator(".pf-map").bounding_box() == place
    assert tab.locator(".pf-comparison .pf-name").first.inner_text() == "logS"
    heads = tab.locator(".pf-table th").all_inner_texts()
    assert heads[:2] == ["row", "logS"]
    cells = tab.locator(".pf-table tbody tr").first.locator("td").all_inner_texts()
    assert float(cells[1]) == pytest.approx(solubility[0], abs=0.5)
    assert cells[heads.index("rings")] == str(int(X[0, 2]))
    legend = tab.locator(".pf-legend").inner_text()
    assert "\u2264" in legend
    tab.get_by_role("button", name="Clear").click()
    assert tab.locator(".pf-map").bounding_box() == place


def test_a_row_is_found_by_its_name(open_page: Callable[..., Any]) -> None:
    model = GTM(nodes=5, basis=3, **_FEW).fit(_PIPE)
    names = [f"Rabbit {i}" for i in range(120)]
    tab = open_page(explore(model, _PIPE, path=None, names=names))
    search = tab.get_by_label("Find a row by name")
    search.fill("rabbit 7")
    assert tab.locator(".pf-found button").all_inner_texts()[0] == "Rabbit 7"  # the whole name before its beginning
    search.press("Enter")
    assert "beside row Rabbit 7" in tab.locator(".pf-place").inner_text()
    assert tab.locator(".pf-found").is_hidden()
    search.fill("it 11")
    assert tab.locator(".pf-found button").all_inner_texts() == ["Rabbit 11", *(f"Rabbit 11{k}" for k in range(7))]
    tab.locator(".pf-found button").nth(2).click()
    assert "beside row Rabbit 111" in tab.locator(".pf-place").inner_text()
    search.fill("hare")
    assert "no row has this in its name" in tab.locator(".pf-found").inner_text()


def test_the_page_opens_on_the_middle_of_the_rows(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    tab = open_page(explore(model, data.X, path=None, labels=data.names))
    Z = model.transform(data.X)
    middle = np.sort(Z, axis=0)[len(Z) // 2]
    np.testing.assert_allclose(tab.evaluate("window.prinfold.state.z"), Z[np.argmin(((Z - middle) ** 2).sum(axis=1))])
    assert tab.get_by_label("Colour by").evaluate("each => each.selectedOptions[0].text") == "class"
    assert set(data.names) <= set(tab.locator(".pf-legend").inner_text().split())
    tab.get_by_title("nearer").click()
    zoomed = tab.evaluate("window.prinfold.pixelAt([1, 1])")
    tab.get_by_role("button", name="Reset view").click()
    assert tab.evaluate("window.prinfold.pixelAt([1, 1])") != zoomed


def test_headings_of_the_table_come_first(open_page: Callable[..., Any]) -> None:
    frame = pd.DataFrame(_PIPE[:30, :3], columns=["row", "latent 1", "b"])
    model = GTM(nodes=5, basis=3, **_FEW).fit(frame)
    tab = open_page(explore(model, frame, path=None, labels=frame["b"].gt(0), values={"b": frame["b"]}))
    names = tab.get_by_label("Colour by").locator("option").all_inner_texts()
    assert len(set(names)) == len(names)
    tab.evaluate("window.prinfold.select([2, 5])")
    heading = tab.evaluate("window.prinfold.exportCsv()").splitlines()[0].split(",")
    assert len(set(heading)) == len(heading)
    rows = list(csv.DictReader(io.StringIO(tab.evaluate("window.prinfold.exportCsv()"))))
    assert [float(row["row"]) for row in rows] == frame["row"].iloc[[2, 5]].tolist()
    Z = model.transform(frame)[[2, 5]]
    np.testing.assert_array_equal([[float(r["latent 1 (map)"]), float(r["latent 2"])] for r in rows], Z)


def test_rows_are_exported_with_decimal_commas_where_the_table_has_them(open_page: Callable[..., Any]) -> None:
    frame = pd.DataFrame(_PIPE[:30, :3], columns=["a", "b, c", "d"])
    model = GTM(nodes=5, basis=3, **_FEW).fit(frame)
    extra = {"note": ["x; y", "1.5", "=1+1", *["z"] * 27]}
    tab = open_page(explore(model, frame, path=None, extra=extra, decimal=","))
    tab.evaluate("window.prinfold.select([0, 1, 2])")
    text = tab.evaluate("window.prinfold.exportCsv()")
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    assert [row["note"] for row in rows] == ["x; y", "1,5", "'=1+1"]
    found = [[float(row[name].replace(",", ".")) for name in frame.columns] for row in rows]
    np.testing.assert_array_equal(found, frame.iloc[:3])
    assert "." not in text
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Export CSV").click()
    assert Path(download.value.path()).read_bytes() == b"\xef\xbb\xbf" + text.encode()
    with pytest.raises(InvalidParameterError, match="decimal must be"):
        explore(model, frame, path=None, decimal=";")


def test_by_keyboard_alone(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    tab = open_page(explore(model, data.X, path=None))
    tab.locator(".pf-map canvas").last.focus()
    before = tab.locator(".pf-place").inner_text()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "+", "-"):
        tab.keyboard.press(key)
    assert tab.locator(".pf-place").inner_text() != before
    tab.keyboard.press("Enter")
    assert "beside row" in tab.locator(".pf-place").inner_text()
    tab.keyboard.press("Escape")
    assert "beside row" not in tab.locator(".pf-place").inner_text()
    for _ in range(100):  # the edge of the map is where it ends
        tab.keyboard.press("ArrowUp")
    assert ", 1)" in tab.locator(".pf-place").inner_text()


def test_every_colour_and_shade_can_be_drawn(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    X = data.X.copy()
    X[0, 0] = np.nan
    tab = open_page(explore(model, X, path=None, labels=data.names, series=True), color_scheme="dark")
    for label in ("Colour by", "Shade by", "Show as"):
        control = tab.get_by_label(label)
        for value in control.locator("option").evaluate_all("all => all.map(each => each.value)"):
            control.select_option(value)
    tab.get_by_title("light or dark").click()
    assert tab.locator("#prinfold").get_attribute("data-theme") == "light"
    # The shading is that of the column that was asked for: dark where the surface is high in it.
    tab.get_by_label("Shade by").select_option("7")
    Z = np.stack(np.meshgrid(np.linspace(-0.9, 0.9, 40), np.linspace(-0.9, 0.9, 40)), axis=-1).reshape(-1, 2)
    Z = Z[occupied_region(model.transform(X)).domain.height(Z) > 0.5]  # clear of its rim
    level = _levels_of(tab, Z)
    found = [np.corrcoef(level[1], column)[0, 1] for column in model.inverse_transform(Z[level[0]]).T]
    assert np.argmin(found) == 7
    assert found[7] < -0.98
    assert "shading: column 8" in tab.locator(".pf-legend").inner_text()


def _levels_of(tab: Any, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which coordinates no row is painted over, and how light the map is there."""
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    read = """zs => {
      const context = document.querySelector(".pf-map canvas").getContext("2d");
      const rows = Array.from({ length: window.prinfold.page.n }, (_, i) => window.prinfold.pixelOf(i));
      return zs.map((z) => {
        const [x, y] = window.prinfold.pixelAt(z);
        if (rows.some(([a, b]) => Math.hypot(a - x, b - y) < 8)) return -1;
        return context.getImageData(Math.round(x), Math.round(y), 1, 1).data[0];
      });
    }"""
    level = np.array(tab.evaluate(read, Z.tolist()))
    clear = np.flatnonzero(level >= 0)
    assert len(clear) > 50
    return clear, level[clear]


def test_fifty_thousand_rows_are_picked_as_if_each_was_looked_at(open_page: Callable[..., Any]) -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 2)).astype(np.float32)
    model = GTM(nodes=6, basis=3, **_FEW).fit(X[:500])
    tab = open_page(explore(model, X, path=None, labels=np.where(X[:, 0] > 0, "a", "b")))
    tab.wait_for_function("window.prinfold.pixelOf(0)[0] > 0")
    # As text: a list of so many numbers takes a browser's messenger seconds.
    read = "() => Array.from({ length: 50000 }, (_, i) => window.prinfold.pixelOf(i)).flat().join(' ')"
    pixels = np.array(tab.evaluate(read).split(), dtype=float).reshape(-1, 2)
    ring = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    line = np.stack([300 + 150 * np.cos(ring), 280 + 90 * np.sin(ring) + 30 * np.cos(3 * ring)], axis=1)
    found = tab.evaluate("line => window.prinfold.lasso(line).join(' ')", line.tolist()).split()
    wanted = np.flatnonzero(Polygon(line).contains_points(pixels))
    assert 100 < len(wanted) < 49_000
    assert [int(row) for row in found] == wanted.tolist()
    for place in ([310.0, 250.0], [420.0, 300.0]):
        row = tab.evaluate("([x, y]) => window.prinfold.nearestRow(x, y, Infinity)", place)
        assert row == np.argmin(np.linalg.norm(pixels - place, axis=1))
    # Stamped in the colour of the class, and those that are not selected only faintly.
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    read = """places => {
      const context = document.querySelector(".pf-map canvas").getContext("2d");
      return places.map(([x, y]) => Array.from(context.getImageData(Math.floor(x), Math.floor(y), 1, 1).data));
    }"""
    painted = np.array(tab.evaluate(read, pixels[wanted[:: len(wanted) // 20]].tolist()))
    assert (np.ptp(painted[:, :3], axis=1) > 60).mean() > 0.8


def test_a_label_that_is_a_column_is_offered_once() -> None:
    frame = pd.DataFrame({"kind": np.tile([1.0, 2.0, 3.0], 10), "b": _PIPE[:30, 0], "log-likelihood": _PIPE[:30, 1]})
    model = GTM(nodes=5, basis=3, **_FEW).fit(frame)
    found = payload(explore(model, frame, path=None, labels=frame["kind"].astype(int)))
    assert (found["classes"]["name"], found["labelColumn"]) == ("kind", 0)
    assert [each["name"] for each in found["values"]] == ["log-likelihood (value)"]
    other = frame["b"].gt(0).rename("kind")
    found = payload(explore(model, frame, path=None, labels=other, values={"b": frame["b"]}))
    assert (found["classes"]["name"], found["labelColumn"]) == ("kind (label)", None)
    assert [each["name"] for each in found["values"]] == ["b (value)", "log-likelihood (value)"]


def test_a_narrow_window_needs_no_scrolling_sideways(pipe: tuple[GTM, Any], open_page: Callable[..., Any]) -> None:
    model, data = pipe
    tab = open_page(explore(model, data.X, path=None, labels=data.names), viewport={"width": 380, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_slices_of_a_larger_space(open_page: Callable[..., Any]) -> None:
    make, X = MAPS["space"]
    model = make().fit(X)
    tab = open_page(explore(model, X, path=None))
    tab.get_by_label("Up").select_option("2")
    tab.get_by_label("latent 2 at").fill("0.5")
    box = tab.locator(".pf-map").bounding_box()
    tab.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    tab.get_by_label("latent 2 at").fill("0.25")
    assert "(0, 0.25, 0)" in tab.locator(".pf-place").inner_text()
    tab.get_by_label("latent 2 at").fill("0.5")
    tab.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    assert re.search(r"\([^,]+, 0\.5, [^,]+\)", tab.locator(".pf-place").inner_text())


def test_sequences_are_shown_as_sequences() -> None:
    data = datasets.make_motion(120, rng=0)
    tables = np.split(data.X, np.cumsum(data.lengths)[:-1])
    model = GTMSequence(latent="circle", nodes=12, basis=5, **_FEW).fit(tables)
    found = payload(explore(model, tables, path=None))
    assert found["n"] == 120
    Z = np.frombuffer(base64.b64decode(found["latentRows"]["data"]))
    np.testing.assert_array_equal(Z, np.concatenate(model.transform(tables))[:, 0])


def test_images(open_page: Callable[..., Any]) -> None:
    digits = datasets.load_digits()
    model = GTM(nodes=6, basis=3, **_FEW).fit(digits.X)
    tab = open_page(explore(model, digits.X[:50], path=None, image_shape=(8, 8)))
    tab.evaluate("window.prinfold.choose(3)")
    sizes = tab.locator(".pf-image").evaluate_all("all => all.map(each => [each.width, each.height])")
    assert sizes == [[8, 8], [8, 8]]
    image = "c => Array.from(c.getContext('2d').getImageData(0, 0, 8, 8).data).filter((_, i) => i % 4 === 0)"
    drawn = np.array(tab.locator(".pf-image").last.evaluate(image))
    assert np.corrcoef(drawn, digits.X[3])[0, 1] > 0.99


def test_text_within_the_data_stays_text(open_page: Callable[..., Any]) -> None:
    X = _PIPE[:20, :2]
    model = GTM(nodes=4, basis=2, **_FEW).fit(X)
    bad = "</script><script>window.hacked = 1</script><b>"
    tab = open_page(explore(model, X, path=None, labels=[bad] * 10 + ["b"] * 10, names=[bad] * 20, title=bad))
    tab.evaluate("window.prinfold.choose(1)")
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("h1").inner_text() == bad
    assert bad in tab.locator(".pf-place").inner_text()


# ------------------------------------------------------------------------------------------------- without a browser


def payload(page: Any) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="prinfold-data">(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_the_file_is_written_and_stands_alone(pipe: tuple[GTM, Any], tmp_path: Path) -> None:
    model, data = pipe
    page = model.explore(data.X, tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8") == page.html
    assert re.findall(r"(?:src|href)\s*=\s*[\"'](?!data:)[^\"']*|https?://[^\s\"']+|@import", page.html) == []
    assert "<iframe" in page._repr_html_()
    assert repr(page).startswith("Page(at ")


def test_a_path_that_cannot_be_written_is_refused_first(pipe: tuple[GTM, Any], tmp_path: Path) -> None:
    model, data = pipe
    with pytest.raises(InvalidParameterError, match=r"no folder .*nowhere to write map.html in; make it first"):
        explore(model, data.X, tmp_path / "nowhere" / "map.html")
    with pytest.raises(InvalidParameterError, match="is a folder; name a file in it"):
        explore(model, data.X, tmp_path)


def test_without_rows_the_surface_stands_alone(pipe: tuple[GTM, Any]) -> None:
    found = payload(explore(pipe[0], path=None))
    assert found["n"] == 0
    with pytest.raises(InvalidParameterError, match="belong to rows; give X"):
        explore(pipe[0], labels=["a"], path=None)


def test_a_table_too_large_for_a_page_stays_out_of_it(pipe: tuple[GTM, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = pipe
    monkeypatch.setattr("prinfold.explorer.payload._MOST_NUMBERS", 100)
    found = payload(explore(model, data.X, path=None))
    assert found["table"] is None
    assert "1440 numbers, too many for a page" in found["notes"][1]
    found = payload(explore(model, data.X, path=None, extra={"a": range(120)}))
    assert found["extra"] == []
    assert "further columns have too many cells" in found["notes"][-1]


def test_a_curve_is_offered_where_columns_have_an_order(pipe: tuple[GTM, Any]) -> None:
    model, data = pipe
    assert payload(explore(model, data.X, path=None))["view"]["offered"] == ["bars"]
    assert payload(explore(model, data.X, path=None, series=True))["view"]["offered"] == ["curve", "bars"]
    waves = pd.DataFrame(data.X[:40, :4], columns=["400", "410.5", "420", "450"])
    view = payload(explore(GTM(nodes=4, basis=2, **_FEW).fit(waves), path=None))["view"]
    assert (view["offered"], view["positions"]) == (["bars", "curve"], [400.0, 410.5, 420.0, 450.0])


def test_the_subtitle_says_how_training_ended_in_plain_words(pipe: tuple[GTM, Any]) -> None:
    found = payload(explore(pipe[0], pipe[1].X, path=None))["about"]
    ending = "training reached its iteration limit (max_iter) before it settled"
    assert found == f"120 rows of 12 columns on a GTM; {ending}."
    one = GTM(latent="line", nodes=4, basis=2, tol=1e3, max_iter=5).fit(_CURVE[:, :1])
    assert payload(explore(one, _CURVE[:1, :1], path=None))["about"] == "1 row of 1 column on a GTM; training finished."


def test_single_precision_is_kept_where_it_loses_nothing(pipe: tuple[GTM, Any]) -> None:
    model, data = pipe
    assert payload(explore(model, data.X, path=None))["table"]["type"] == "f8"
    assert payload(explore(model, data.X.astype(np.float32), path=None))["table"]["type"] == "f4"


class _Opaque(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any = None) -> _Opaque:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_what_cannot_be_shown_is_refused(pipe: tuple[GTM, Any]) -> None:
    model, data = pipe
    with pytest.raises(InvalidParameterError, match=r"image_shape=\(3, 5\) does not make an image of 12 columns"):
        explore(model, data.X, path=None, image_shape=(3, 5))
    with pytest.raises(InvalidParameterError, match=r"image_shape='3x4' does not make .* such as \(3, 4\)"):
        explore(model, data.X, path=None, image_shape="3x4")
    with pytest.raises(InvalidParameterError, match="a finite position for each of the 12 columns"):
        explore(model, data.X, path=None, series=[1.0, 2.0])
    with pytest.raises(InvalidDataError, match="names has 2 entries for 120 rows"):
        explore(model, data.X, path=None, names=["a", "b"])
    with pytest.raises(InvalidDataError, match="extra column 'a' has 2 cells for 120 rows"):
        explore(model, data.X, path=None, extra={"a": [1, 2]})
    with pytest.raises(InvalidParameterError, match=r"extra must be a frame, or a mapping .* got list"):
        explore(model, data.X, path=None, extra=[1])
    with pytest.raises(InvalidDataError, match="extra column 'a' must hold one cell per row, got 1"):
        explore(model, data.X, path=None, extra={"a": 1})
    with pytest.raises(InvalidDataError, match="names must hold one name per row, got 3"):
        explore(model, data.X, path=None, names=3)
    with pytest.raises(InvalidDataError, match="series must be numbers"):
        explore(model, data.X, path=None, series="sideways")
    with pytest.raises(InvalidParameterError, match="title must be None or a text, got 3"):
        explore(model, data.X, path=None, title=3)
    with pytest.raises(InvalidDataError, match="values has shape"):
        explore(model, data.X, path=None, values=[1.0])
    bent = make_pipeline(PowerTransformer(), GTM(nodes=6, basis=3, **_FEW)).fit(data.X)
    with pytest.raises(InvalidParameterError, match="not linear"):
        explore(bent, data.X, path=None)
    opaque = make_pipeline(_Opaque(), GTM(nodes=6, basis=3, **_FEW)).fit(data.X)
    with pytest.raises(InvalidParameterError, match="cannot be undone"):
        explore(opaque, data.X, path=None)
    feature = UKR(init="pca", feature_kernel="rbf", **_FEW).fit(_ROLL[:60])
    with pytest.raises(UnsupportedInputError, match="feature kernel"):
        explore(feature, path=None)
    several = GTMClassifier(GTM(nodes=4, basis=2, **_FEW)).fit(data.X, data.labels)
    with pytest.raises(UnsupportedInputError, match="GTMClassifier has no latent space to draw"):
        explore(several, data.X, path=None)


def test_likelihoods_are_those_of_the_table() -> None:
    X = _PIPE * np.arange(1, 13)
    gaps = X.copy()
    gaps[3, 4] = np.nan
    scaled = make_pipeline(StandardScaler(), GTM(nodes=6, basis=3, **_FEW)).fit(X)
    found = {each["name"]: each["values"] for each in payload(explore(scaled, gaps, path=None))["values"]}
    likelihood = np.frombuffer(base64.b64decode(found["log-likelihood"]["data"]))
    spread = np.log(scaled[0].scale_)
    own = scaled[-1].score_samples(scaled[:-1].transform(gaps)) - spread.sum()
    own[3] += spread[4]  # of which nothing is known has no density
    np.testing.assert_allclose(likelihood, own, rtol=1e-9)


def test_steps_without_effect_are_allowed(pipe: tuple[GTM, Any]) -> None:
    plain = make_pipeline(FunctionTransformer(check_inverse=False), GTM(nodes=6, basis=3, **_FEW)).fit(_PIPE)
    assert payload(explore(plain, _PIPE, path=None))["units"] is not None


def test_no_drawing_library_is_needed() -> None:
    code = (
        "import sys, numpy as np; sys.modules['matplotlib'] = None\n"
        "import prinfold; X = np.random.default_rng(0).normal(size=(30, 3))\n"
        "print(prinfold.explore(prinfold.GTM(nodes=4, basis=2, tol=0, max_iter=2).fit(X), X, None))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Page(in memory")
