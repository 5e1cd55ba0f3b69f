"""The report: its numbers are the model's, its page needs nothing else, and it says what should be said."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from prinfold import (
    GTM,
    KMM,
    PPS,
    SOM,
    UKR,
    DensityRidge,
    GTMClassifier,
    GTMMixture,
    MixedGTM,
    PrincipalSurface,
    choose,
    datasets,
    report,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError, NotWrittenError, UnsupportedInputError
from prinfold.notebook.settings import settings_of
from prinfold.plot.inputs import row_names
from prinfold.reporting import scene as scenes
from prinfold.reporting import sections
from prinfold.reporting.measurements import study
from prinfold.reporting.remarks import remarks
from prinfold.reporting.scene import scene_of
from prinfold.reporting.sections import opening_sentence, pieces
from prinfold.reporting.writing import histogram

pytestmark = pytest.mark.filterwarnings("ignore")

_PIPE = datasets.make_pipe_flow(120, rng=0).X
_FEW: dict[str, Any] = {"max_iter": 3, "tol": 0.0}
_MIXED = pd.DataFrame({"a": _PIPE[:60, 0], "b": _PIPE[:60, 1], "kind": ["u", "v", "w"] * 20})
_GAPS = np.where(np.random.default_rng(0).random(_PIPE.shape) < 0.03, np.nan, _PIPE)

MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "grid": (lambda: GTM(nodes=8, basis=4, **_FEW), _PIPE),
    "curve": (lambda: GTM(1, **_FEW), datasets.make_half_circle(80, rng=0).X),
    "sphere": (lambda: GTM(latent="sphere", nodes=60, basis=12, **_FEW), datasets.make_sphere(100, rng=0).X),
    "space": (lambda: GTM(3, nodes=4, basis=2, **_FEW), _PIPE),
    "UKR": (lambda: UKR(init="pca", **_FEW), datasets.make_swiss_roll(60, rng=0).X),
    "KMM": (lambda: KMM(**_FEW), datasets.make_swiss_roll(60, rng=0).X),
    "ridge": (lambda: DensityRidge(bandwidth=0.3), datasets.make_half_circle(80, rng=0).X),
    "select": (lambda: PPS(1, nodes=4, basis=2, clamping="select", max_iter=2), datasets.make_half_circle(40, rng=0).X),
    "mixture": (lambda: GTMMixture(2, GTM(nodes=6, basis=3, **_FEW), n_init=1, random_state=0), _PIPE),
    "mixed": (lambda: MixedGTM(nodes=6, basis=3, **_FEW), _MIXED),
    "gaps": (lambda: GTM(nodes=8, basis=4, **_FEW), _GAPS),
    "scaled": (lambda: make_pipeline(StandardScaler(), GTM(nodes=8, basis=4, **_FEW)), 10.0 + 5.0 * _PIPE),
    "one column": (lambda: GTM(1, **_FEW), _PIPE[:, :1]),
}


@pytest.fixture(scope="module")
def pipe() -> tuple[GTM, Any]:
    data = datasets.make_pipe_flow(120, rng=0)
    return GTM(nodes=8, basis=4, **_FEW).fit(data.X), data


@pytest.fixture(scope="module")
def page(pipe: tuple[GTM, Any]) -> Any:
    model, data = pipe
    return report(model, data.X, None, labels=data.names)


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_page_without_errors_or_requests(name: str, open_page: Callable[..., Any]) -> None:
    make, X = MODELS[name]
    tab = open_page(report(make().fit(X), X, None))
    word = {"ridge": "ridge", "curve": "curve", "select": "curve", "one column": "curve"}.get(name, "surface")
    assert tab.locator("h2").all_inner_texts() == [
        *("The map", f"The {word} in data space", "Errors", "Training", "What was fitted", "What to cite")
    ]
    assert tab.locator("img").evaluate_all("images => images.every(each => each.naturalWidth > 100)")
    shown = tab.locator(".pf-scene canvas").count()
    assert bool(shown) == (name not in {"mixed", "one column"})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_does_not_scroll_sideways(page: Any, scheme: str, open_page: Callable[..., Any]) -> None:
    tab = open_page(page, viewport={"width": 360, "height": 700}, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    # Figures keep the size at which their words can be read, and are moved sideways in their frames.
    assert min(tab.locator(".pf-figures img").evaluate_all("all => all.map(each => each.clientWidth)")) >= 600
    level = tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (level < 80) == (scheme == "dark")


def test_the_button_changes_the_colours(page: Any, open_page: Callable[..., Any]) -> None:
    tab = open_page(page, color_scheme="light")
    inverted = "getComputedStyle(document.querySelector('.pf-figures img')).filter.match(/invert\\(([\\d.]+)\\)/)[1]"
    assert float(tab.evaluate(inverted)) == 0
    tab.click("#pf-theme")
    assert tab.evaluate("getComputedStyle(document.body).getPropertyValue('--pf-dark').trim()") == "1"
    assert float(tab.evaluate(inverted)) > 0.8, "figures are dark on a dark page"


def test_what_comes_from_data_is_text(open_page: Callable[..., Any]) -> None:
    evil = '<script>document.title="gone"</script></script><b>&'
    frame = pd.DataFrame(_PIPE[:, :3], columns=[evil, "b", "c"], index=[f"{evil}{i}" for i in range(len(_PIPE))])
    model = GTM(nodes=6, basis=3, **_FEW).fit(frame)
    tab = open_page(report(model, frame, None, labels=[evil, "other"] * 60, title=evil))
    assert tab.title() == evil
    assert tab.locator("h1").inner_text() == evil
    assert evil in tab.locator("#errors table").first.inner_text()
    assert tab.locator("#pf-scene option").first.inner_text() == evil


def test_the_page_is_the_same_each_time_and_leaves_no_figure_open(pipe: tuple[GTM, Any], page: Any) -> None:
    model, data = pipe
    assert report(model, data.X, None, labels=data.names).html == page.html
    assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_a_folder_for_figures_that_cannot_be_made_is_named(pipe: tuple[GTM, Any], tmp_path: Path) -> None:
    model, data = pipe
    (tmp_path / "file").touch()
    with pytest.raises(NotWrittenError, match=r"cannot write .*inside"):
        report(model, data.X, None, figures=tmp_path / "file" / "inside")


def test_figures_are_written_beside_the_page(pipe: tuple[GTM, Any], tmp_path: Path) -> None:
    model, data = pipe
    made = report(model, data.X, tmp_path / "report.html", figures=tmp_path / "figures")
    assert made.path is not None
    assert made.path.read_text(encoding="utf-8") == made.html
    names = {"map", "magnification", "errors", "learning_curve"}
    assert {each.name for each in (tmp_path / "figures").iterdir()} == {
        f"{n}.{k}" for n in names for k in ("png", "svg")
    }
    assert (tmp_path / "figures" / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in (tmp_path / "figures" / "map.svg").read_bytes()


# ------------------------------------------------------------------------------------------------------------- numbers


def test_errors_are_those_of_the_model(pipe: tuple[GTM, Any], page: Any, open_page: Callable[..., Any]) -> None:
    model, data = pipe
    found = study(model, data.X)
    assert found.error == pytest.approx(model.projection_error(data.X))
    distance = np.linalg.norm(data.X - model.project(data.X), axis=1)
    np.testing.assert_allclose(found.distance, distance)
    np.testing.assert_array_equal(found.likelihood, model.score_samples(data.X))
    tab = open_page(page)
    assert f"{model.projection_error(data.X):.4g}" in tab.locator(".pf-facts").inner_text()
    lines = tab.locator("#errors table").first.locator("tbody tr")
    cells = [each.split("\t") for each in lines.all_inner_texts()]
    worst = np.argsort(-distance)[:10]
    assert [int(each[0]) for each in cells] == worst.tolist()
    assert [each[1] for each in cells] == [data.names[i] for i in worst]
    assert [float(each[2]) for each in cells] == [float(f"{distance[i]:.4g}") for i in worst]


def test_shares_are_those_of_principal_components_and_of_each_column(pipe: tuple[GTM, Any]) -> None:
    model, data = pipe
    found = study(model, data.X)
    plane = PCA(2).fit(data.X)
    flat = np.mean(np.sum((data.X - plane.inverse_transform(plane.transform(data.X))) ** 2, axis=1))
    assert found.flat == pytest.approx(flat)
    assert found.explained == pytest.approx(1 - model.projection_error(data.X) / data.X.var(axis=0).sum())
    left = np.mean((data.X - model.project(data.X)) ** 2, axis=0) / data.X.var(axis=0)
    np.testing.assert_allclose(found.left, left)


def test_fewer_rows_than_columns_have_the_same_flat_error() -> None:
    X = np.random.default_rng(1).normal(size=(8, 20))
    plane = PCA(1).fit(X)
    found = study(GTM(1, nodes=6, basis=3, **_FEW).fit(X), X)
    assert found.flat == pytest.approx(np.mean(np.sum((X - plane.inverse_transform(plane.transform(X))) ** 2, axis=1)))


def test_behind_a_scaler_points_are_in_the_units_of_the_table() -> None:
    X = 10.0 + 5.0 * _PIPE
    model = make_pipeline(StandardScaler(), GTM(nodes=8, basis=4, **_FEW)).fit(X)
    found = study(model, X)
    scaled = model[0].transform(X)
    np.testing.assert_allclose(found.feet, model[0].inverse_transform(model[-1].project(scaled)))
    assert found.error == pytest.approx(model[-1].projection_error(scaled))


def test_rows_with_gaps_are_on_the_map_and_have_a_distance() -> None:
    model = GTM(nodes=8, basis=4, **_FEW).fit(_GAPS)
    found = study(model, _GAPS)
    assert np.isfinite(found.distance).all()
    assert np.mean(found.distance**2) == pytest.approx(model.projection_error(_GAPS))
    assert found.error == pytest.approx(model.projection_error(_GAPS))
    assert "nan" not in sections.errors(found, None, None, len(_GAPS), "").lower()
    assert len(found.Z) == len(_GAPS)


def test_a_step_that_cannot_be_undone_leaves_distances_only(open_page: Callable[..., Any]) -> None:
    X = 1.0 + np.abs(_PIPE)
    model = make_pipeline(Normalizer(), GTM(nodes=6, basis=3, **_FEW)).fit(X)
    found = study(model, X)
    assert found.feet is None
    assert found.distance is not None
    assert "cannot be undone" in open_page(report(model, X, None)).locator("#space").inner_text()


def test_names_come_from_the_index_or_are_given() -> None:
    frame = pd.DataFrame(_PIPE, index=[f"well {i}" for i in range(len(_PIPE))]).rename(columns=str)
    model = GTM(nodes=6, basis=3, **_FEW).fit(frame)
    assert ">well " in report(model, frame, None).html
    assert row_names([f"sample {i}" for i in range(120)], frame, 120)[-1] == "sample 119"  # type: ignore[index]
    counted = frame.reset_index(drop=True)
    assert row_names(None, counted, 120) is None
    assert row_names(None, _PIPE.tolist(), 120) is None  # lists have an index too, which is a verb
    assert row_names(None, counted[7:], 113) == [str(i) for i in range(7, 120)]


def test_branches_and_maps_are_told_apart() -> None:
    X = np.concatenate([datasets.make_half_circle(80, rng=0).X, datasets.make_half_circle(40, rng=1).X + [5.0, 0.0]])
    ridge = DensityRidge(bandwidth=0.3).fit(X)
    found = study(ridge, X)
    text = " ".join(pieces(found))
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall(r"<tr>(.*?)</tr>", text)[1:]]
    assert sorted(int(each[3]) for each in cells) == [40, 80]
    assert [float(each[1]) for each in cells] == [float(f"{length:.4g}") for length in ridge.latent_.lengths]
    near = X[:, 0] < 2.5
    wanted = np.sqrt(np.mean(found.distance[near] ** 2))  # type: ignore[index]
    assert f"{wanted:.4g}" in {each[4] for each in cells}
    page = report(ridge, X, None).html
    assert "open circles are ends" in page
    assert "magnification factor" not in page
    one = study(DensityRidge(bandwidth=0.3).fit(X[:80]), X[:80])
    assert pieces(one) == [f"<p>The ridge is open and {one.fitted.latent.lengths[0]:.4g} long.</p>"]  # type: ignore[attr-defined]
    mixed = GTMMixture(2, GTM(nodes=6, basis=3, **_FEW), n_init=1, random_state=0).fit(_PIPE)
    both = study(mixed, _PIPE)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", " ".join(pieces(both)))
    assert sum(int(each) for each in cells[2::4]) == 120
    assert opening_sentence(both) == "2 surfaces fitted together by GTMMixture: 120 rows of 12 columns."


def test_columns_of_different_kinds_are_told_by_what_is_kept_of_each() -> None:
    frame = _MIXED.assign(kind=np.where(_MIXED["a"] > _MIXED["a"].median(), "u", "v"))
    model = MixedGTM(nodes=8, basis=4, max_iter=15, tol=0).fit(frame)
    found = study(model, frame)
    kept = {each.name: each for each in found.kept}
    there = model.inverse_transform(model.transform(frame))
    a = frame["a"].to_numpy()
    assert kept["a"].share == pytest.approx(1 - np.sum((a - there[:, 0]) ** 2) / np.sum((a - a.mean()) ** 2))
    right = np.mean((there[:, 2] > 0.5) == (frame["kind"] == "v"))
    assert kept["kind"].words == f"level right in {100 * right:.0f} % of the rows; the commonest is that of 50 %"
    page = report(model, frame, None).html
    assert "kind=v: " in page
    assert "The map by the column kind." in page
    assert "2 gaussian, 1 bernoulli" in page


def test_why_a_model_was_chosen_is_told(pipe: tuple[GTM, Any]) -> None:
    model, data = pipe
    assert "<p>The smoothest &lt;of&gt; ten.</p>" in report(model, data.X, None, reason="The smoothest <of> ten.").html
    made = choose(data.X, {"width": [0.5, 1.0]}, model=GTM(nodes=5, basis=3, **_FEW), by="held-out", folds=2)
    page = report(made.model, data.X, None, reason=made).html
    assert "Why this one" in page
    assert "width" in page[page.index("Why this one") :]


def test_a_histogram_counts() -> None:
    text = histogram(np.array([0.0, 1.0, 1.0, 1.0, 4.0]), "distance")
    assert re.findall(r'text-anchor="end">(\d+)</text>', text)[:4] == ["0", "1", "2", "3"]
    assert "3 rows from 1 to 1.1" in text


# --------------------------------------------------------------------------------------------------- the view in space


def test_the_view_shows_the_columns_chosen(pipe: tuple[GTM, Any], page: Any, open_page: Callable[..., Any]) -> None:
    model, data = pipe
    tab = open_page(page)
    for columns in ([0, 1, 2], [7, 3, 11]):
        for axis, column in zip("xyz", columns, strict=True):
            tab.select_option(f"select[aria-label='column on the {axis} axis']", str(column))
        rows = tab.evaluate("Array.from({length: 120}, (_, i) => window.prinfold.scene.valueOf(i))")
        np.testing.assert_allclose(rows, data.X[:, columns], atol=1e-6)
        vertices = model.mesh(24, X=data.X).vertices[:, columns]
        found = tab.evaluate(f"Array.from({{length: {len(vertices)}}}, (_, i) => window.prinfold.scene.vertexOf(i))")
        np.testing.assert_allclose(found, vertices, atol=1e-6)


def _ink(tab: Any) -> str:
    # What was asked for is painted before the frame after the next.
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(tab.evaluate("document.querySelector('.pf-scene canvas').toDataURL()"))


def test_the_view_turns_by_mouse_and_keyboard_and_goes_back(page: Any, open_page: Callable[..., Any]) -> None:
    tab = open_page(page)
    canvas = tab.locator(".pf-scene canvas")
    canvas.scroll_into_view_if_needed()
    pictures = [_ink(tab)]
    box = canvas.bounding_box()
    tab.mouse.move(box["x"] + 100, box["y"] + 100)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 180, box["y"] + 130)
    tab.mouse.up()
    pictures.append(_ink(tab))
    canvas.focus()
    for key in ("ArrowLeft", "ArrowUp", "+"):
        tab.keyboard.press(key)
        pictures.append(_ink(tab))
    assert len(set(pictures)) == 5
    tab.click("#pf-scene button")
    assert _ink(tab) == pictures[0]


def test_the_first_columns_are_those_in_which_the_surface_extends() -> None:
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (200, 2))
    X = 0.01 * rng.normal(size=(200, 6))
    X[:, 1], X[:, 3], X[:, 5] = z[:, 0], z[:, 1], z[:, 0] * z[:, 1]
    found = study(GTM(nodes=8, basis=4, max_iter=20).fit(X), X)
    scene = scene_of(found, None, None)
    assert isinstance(scene, dict)
    assert scene["chosen"] == [1, 3, 5]
    asked = scene_of(found, None, ["column 5", 0])
    assert isinstance(asked, dict)
    assert asked["chosen"][:2] == [4, 0]


def test_large_tables_are_thinned_and_it_is_said(pipe: tuple[GTM, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = pipe
    monkeypatch.setattr(scenes, "_MOST_ROWS", 50)
    monkeypatch.setattr(scenes, "_MOST_COLUMNS", 6)
    found = study(model, data.X)
    scene = scene_of(found, None, [11])
    assert isinstance(scene, dict)
    assert scene["rows"].shape == (50, 6)
    assert scene["columns"][scene["chosen"][0]] == "column 12"
    np.testing.assert_allclose(scene["rows"][-1, -1] + scene["center"][-1], data.X[-1, -1], rtol=1e-6)
    assert [note.split(" ")[0] for note in scene["notes"]] == ["50", "6"]


# ------------------------------------------------------------------------------------------------------------- remarks


def test_a_sound_map_has_nothing_to_be_told(rng: np.random.Generator) -> None:
    t = rng.uniform(0, np.pi, 300)
    X = np.stack([np.cos(t), np.sin(t), 0.5 * t], axis=1) + 0.05 * rng.normal(size=(300, 3))
    model = GTM(1, nodes=30, basis=5).fit(X)
    assert remarks(study(model, X)) == []


def _outlier(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X, X[:1] + 100.0])


@pytest.mark.parametrize(
    ("model", "change", "match"),
    [
        (GTM(1, max_iter=1, tol=0.0), lambda X: X, "had not settled: the iteration limit"),
        (GTM(1, nodes=20, basis=15, width=0.3, regularization=1e-6), lambda X: X[:25], "folded at [0-9]+ of its 20"),
        (GTM(1, nodes=20, basis=4, regularization=10.0), _outlier, "1 row lies more than 8 times"),
        (
            GTM(1, nodes=20, basis=4, regularization=10.0),
            lambda X: np.concatenate([0.05 * X + [0.0, 0.0, 3.0], X[:40] * [1.0, 1.0, 0.0] + [0.0, 30.0, 0.0]]),
            "% of the rows lie more than 8 times .* So many are no mistakes",
        ),
        (GTM(1), lambda X: X * [1.0, 1.0, 100.0], "standard deviation of 'column 3' is "),
        (GTM(1), lambda X: np.insert(X, 1, 2.0, axis=1), "1 column does not vary and say nothing: column 2"),
        (GTM(1, regularization=1e4, tol=1e-3), lambda X: X, "A straight line .principal components. leaves"),
        (GTM(1, nodes=3, basis=2), lambda X: (X[:, :1] < 0) + 0.01 * X, "% of the rows lie at the edge"),
        (GTM(1), lambda X: np.where(np.arange(len(X))[:, None] == [3, -1, -1], np.nan, X), "1 row has missing cells"),
    ],
)
def test_what_stands_out_is_told(
    model: GTM, change: Callable[[np.ndarray], np.ndarray], match: str, rng: np.random.Generator
) -> None:
    t = rng.uniform(0, np.pi, 200)
    X = np.stack([np.cos(t), np.sin(t), 0.5 * t], axis=1) + 0.05 * rng.normal(size=(200, 3))
    X = change(X)
    said = remarks(study(model.fit(X), X))
    assert [each for each in said if re.search(match, each)], said


def test_a_self_organising_map_is_told_by_its_own_errors() -> None:
    model = SOM(nodes=4, width=2.0, max_iter=1, tol=0.0).fit(_PIPE)
    found = study(model, _PIPE)
    assert found.map_errors == (model.quantization_error(_PIPE), model.topographic_error(_PIPE))
    assert "quantisation error" in sections.facts(found)
    assert f"{100 * found.map_errors[1]:.1f} %" in sections.facts(found)
    assert ">1 iteration. The iteration limit" in sections.training(found, "")
    (said,) = [each for each in remarks(found) if "at the edge" in each]
    assert "a self-organising map is drawn inwards at its edge" in said
    assert "too short" not in said


def test_warnings_on_the_way_are_told(pipe: tuple[GTM, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from prinfold.exceptions import MultimodalWarning

    model, data = pipe
    original = GTM.transform

    def loud(self: GTM, X: Any, **options: Any) -> Any:
        warnings.warn("many rows have several modes", MultimodalWarning, stacklevel=2)
        return original(self, X, **options)

    monkeypatch.setattr(GTM, "transform", loud)
    assert "many rows have several modes" in remarks(study(model, data.X))


def test_settings_that_were_changed_come_first_with_what_became_of_them() -> None:
    model = GTM(nodes=(8, 6), width=1.0, **_FEW).fit(_PIPE)
    found = settings_of(model)
    changed = {each.name for each in found if not each.is_default}
    assert changed == {"nodes", "max_iter", "tol"}
    assert [each.is_default for each in found] == [False] * 3 + [True] * (len(found) - 3)
    by_name = {each.name: each for each in found}
    assert by_name["nodes"].became == "8 × 6"
    assert by_name["prior_precision"].became == f"{model.prior_precision_:.6g}"
    assert by_name["init"].became == ""


def test_settings_say_which_start_was_taken() -> None:
    model = PrincipalSurface(max_iter=1, tol=0.0).fit(_PIPE[:60])
    (init,) = [each for each in settings_of(model) if each.name == "init"]
    assert (init.value, init.became) == ("'auto'", model.start_)
    told = model.set_params(init="pca").fit(_PIPE[:60])
    assert [each.became for each in settings_of(told) if each.name == "init"] == [""]


# -------------------------------------------------------------------------------------------------------- wrong calls


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"worst": 0}, InvalidParameterError, "worst must be .* got 0"),
        ({"labels": [1] * 120, "values": [1.0] * 120}, InvalidParameterError, "either by labels or by values"),
        ({"labels": [1, 2]}, InvalidDataError, "labels has shape"),
        ({"values": [1.0]}, InvalidDataError, "values has shape"),
        ({"names": ["a"]}, InvalidDataError, "names has 1 entries for 120 rows"),
        ({"names": "well"}, InvalidDataError, "got the word 'well'; pass the column itself"),
        ({"reason": 3}, InvalidParameterError, "reason must be words, .* got int"),
        ({"figures": __file__}, InvalidParameterError, "is a file; name a folder"),
        ({"figures": "\ud800"}, InvalidParameterError, "cannot be the name of a file"),
        ({"names": 3}, InvalidDataError, "one name per row, got 3"),
        ({"title": 3}, InvalidParameterError, "title must be None or a text, got 3"),
        ({"columns": 3}, InvalidParameterError, "up to three names or positions, got 3"),
        ({"columns": ["nose"]}, InvalidParameterError, "columns names 'nose', which is no column"),
        ({"columns": [12]}, InvalidParameterError, "columns names 12"),
        ({"columns": [0, 0]}, InvalidParameterError, "up to three different columns"),
        ({"columns": [0, 1, 2, 3]}, InvalidParameterError, "up to three different columns"),
    ],
)
def test_wrong_calls_are_told(
    pipe: tuple[GTM, Any], options: dict[str, Any], error: type[Exception], match: str, tmp_path: Path
) -> None:
    model, data = pipe
    with pytest.raises(error, match=match):
        report(model, data.X, tmp_path / "report.html", **options)
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(InvalidParameterError, match=r"there is no folder .*nowhere to write report.html in"):
        report(model, data.X, tmp_path / "nowhere" / "report.html")


def test_a_model_that_is_no_surface_is_refused() -> None:
    model = GTMClassifier(GTM(nodes=6, basis=3, **_FEW)).fit(_PIPE, _PIPE[:, 0] > 0.5)
    with pytest.raises(UnsupportedInputError, match="a report is of one surface, which GTMClassifier is not"):
        report(model, _PIPE, None)


def test_an_unfitted_model_is_refused() -> None:
    with pytest.raises(NotFittedError):
        report(GTM(), _PIPE, None)
