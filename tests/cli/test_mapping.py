"""``transform``, ``project``, ``explore``, ``report`` and ``info``: what a model says of a table."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prinfold
from prinfold import cli, datasets
from prinfold.cli.tables.reading import read_table
from prinfold.validation.named_block import NamedBlock
from tests.cli.conftest import QUICK, Said, csv_text, numbers

Call = Callable[..., Said]
PAIR = ("data.prinfold", "data.csv")
OLD = Path(__file__).parents[1] / "fixtures"


def columns_of(path: str, *names: str) -> np.ndarray:
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(row[name]) if row[name] else np.nan for name in names] for row in rows])


def named(X: np.ndarray) -> NamedBlock:
    return NamedBlock.of(X, ("a", "b", "c"))


def test_results_of_two_models_of_one_table_have_names_of_their_own(model: Path, call: Call) -> None:
    """What is proposed after a second fit can be typed: its files are called after the model as well."""
    assert call("fit", "data.csv", *QUICK, "--dimensions", 1, "--out", "bent.prinfold", "-q").code == 0
    assert call("fit", "data.csv", *QUICK, "--out", "data-flat.prinfold", "-q").code == 0
    for verb, ending in [("explore", "map.html"), ("report", "report.html"), ("transform", "latent.csv")]:
        assert call(verb, *PAIR, "-q").code == 0
        for name, stem in [("bent", "data-bent"), ("data-flat", "data-flat")]:
            assert call(verb, f"{name}.prinfold", "data.csv", "--json").json["out"] == f"{stem}-{ending}"


# --------------------------------------------------------------------------------------------------- transform, project


def test_coordinates_are_those_of_the_model(model: Path, call: Call) -> None:
    said = call("transform", "data.prinfold", "data.csv")
    assert said.out == "40 rows → data-latent.csv: row, id, side, latent_1, latent_2, log_likelihood\n"
    X = named(columns_of("data.csv", "a", "b", "c"))
    fitted = prinfold.load(model)
    np.testing.assert_allclose(columns_of("data-latent.csv", "latent_1", "latent_2"), fitted.transform(X))
    np.testing.assert_allclose(columns_of("data-latent.csv", "log_likelihood")[:, 0], fitted.score_samples(X))
    np.testing.assert_array_equal(columns_of("data-latent.csv", "row", "id"), [[i, i + 1] for i in range(40)])


# ------------------------------------------------------------------- text that the same person's spreadsheet opens


def german(path: Path, encoding: str, separator: str = ";") -> None:
    """The table of other tests as a spreadsheet set to German writes it."""
    with Path("data.csv").open(newline="", encoding="utf-8") as file:
        rows = [list(row) for row in csv.reader(file)]
    rows[0][1] = "Maß"
    cells = ([cell.replace(".", ",") for cell in row] for row in rows)
    path.write_bytes("\r\n".join(separator.join(row) for row in cells).encode(encoding))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16"])
def test_results_of_a_table_with_decimal_commas_have_them_too(model: Path, call: Call, encoding: str) -> None:
    """With semicolons, and the mark by which spreadsheets know UTF-8; what is read back are the same numbers."""
    german(Path("de.csv"), encoding)
    assert call("transform", *PAIR, "-q").code == 0
    said = call("transform", "data.prinfold", "de.csv", "--out", "de-latent.csv")
    assert said.out.count("the result has decimal commas too") == 1
    raw = Path("de-latent.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfrow;id;Ma\xc3\x9f;latent_1;")
    assert b"." not in raw.splitlines()[1]
    found, plain = read_table(Path("de-latent.csv")), read_table(Path("data-latent.csv"))
    for name in ("latent_1", "latent_2", "log_likelihood"):
        np.testing.assert_array_equal(found.columns[name], plain.columns[name])
    assert call("transform", "data.prinfold", "de.csv", "--out", "-").out.splitlines()[0].startswith("row;id;Maß;")


def test_tabs_stay_tabs_and_formats_of_numbers_have_no_commas(model: Path, call: Call) -> None:
    german(Path("de.txt"), "utf-8", "\t")
    said = call("project", "data.prinfold", "de.txt", "--out", "de.tsv")
    assert "decimal commas too" in said.out
    first = Path("de.tsv").read_text(encoding="utf-8").splitlines()[1].split("\t")
    assert len(first) == 7
    assert "," in first[-1]
    said = call("project", "data.prinfold", "de.txt", "--out", "de.parquet")
    assert said.code == 0
    assert "decimal commas too" not in said.out


def test_semicolons_with_points_stay_both(model: Path, call: Call) -> None:
    Path("swiss.csv").write_text(Path("data.csv").read_text(encoding="utf-8").replace(",", ";"), encoding="utf-8")
    assert call("transform", *PAIR, "-q").code == 0
    assert "spreadsheet" not in call("transform", "data.prinfold", "swiss.csv").out
    plain, found = (Path(f"{each}-latent.csv").read_text(encoding="utf-8") for each in ("data", "swiss-data"))
    assert found == plain.replace(",", ";")


# ----------------------------------------------------------------------------------------------------------------------


def test_projections_are_those_of_the_model(model: Path, call: Call) -> None:
    assert call("project", "data.prinfold", "data.csv", "--keep", "none", "--json").json["columns"] == [
        *("row", "a", "b", "c", "distance")
    ]
    X = named(columns_of("data.csv", "a", "b", "c"))
    near = columns_of("data-projected.csv", "a", "b", "c")
    np.testing.assert_allclose(near, prinfold.load(model).project(X), atol=1e-12)
    distance = columns_of("data-projected.csv", "distance")[:, 0]
    np.testing.assert_allclose(distance, np.linalg.norm(X - near, axis=1), atol=1e-12)


@pytest.mark.parametrize("scaling", ["--standardize", "--whiten"])
def test_scaled_models_speak_the_units_of_the_table(scaling: str, folder: Path, call: Call) -> None:
    X = numbers(60) * [1.0, 1000.0, 0.01] + [0.0, 5000.0, 3.0]
    (folder / "data.csv").write_text(csv_text(X))
    X = np.round(X, 6)
    assert call("fit", "data.csv", scaling, "--quiet", *QUICK).code == 0
    for verb in ("transform", "project"):
        assert call(verb, "data.prinfold", "data.csv", "--quiet").code == 0
    fitted = prinfold.load("data.prinfold")
    del fitted[0].feature_names_in_
    Y = fitted[:-1].transform(X)
    np.testing.assert_allclose(columns_of("data-latent.csv", "latent_1", "latent_2"), fitted[-1].transform(Y))
    near = fitted[:-1].inverse_transform(fitted[-1].project(Y))
    np.testing.assert_allclose(columns_of("data-projected.csv", "a", "b", "c"), near, rtol=1e-9)
    # A density changes with the volume that a cell of the table has in the units of the model.
    step = 1e-3
    volume = abs(np.linalg.det((fitted[:-1].transform(np.eye(3) * step + X[:1]) - Y[:1]) / step))
    found = columns_of("data-latent.csv", "log_likelihood")[:, 0]
    np.testing.assert_allclose(found, fitted[-1].score_samples(Y) + np.log(volume), rtol=1e-6)


def test_densities_of_rows_with_gaps_are_of_what_is_there(folder: Path, call: Call) -> None:
    X = numbers(60) * [1.0, 1000.0, 0.01]
    X[4, 1] = np.nan
    np.save("data.npy", X)
    assert call("fit", "data.npy", "--standardize", "--quiet", *QUICK).code == 0
    assert call("transform", "data.prinfold", "data.npy", "--quiet").code == 0
    fitted = prinfold.load("data.prinfold")
    there = np.log(fitted[0].scale_[[0, 2]]).sum()
    expected = fitted[-1].score_samples(fitted[0].transform(X))[4] - there
    assert columns_of("data-latent.csv", "log_likelihood")[4, 0] == pytest.approx(expected)


def test_what_goes_along(model: Path, call: Call) -> None:
    assert call("transform", "data.prinfold", "data.csv", "-k", "side,a", "--json").json["columns"] == [
        *("row", "side", "a", "latent_1", "latent_2", "log_likelihood")
    ]
    assert len(call("transform", "data.prinfold", "data.csv", "-k", "all", "-f", "--json").json["columns"]) == 9
    said = call("project", "data.prinfold", "data.csv", "--keep", "a", "--json")
    assert said.json["columns"] == ["row", "a (table)", "a", "b", "c", "distance"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npz"])
def test_results_in_every_format_are_the_same(suffix: str, model: Path, call: Call) -> None:
    if suffix in {".parquet", ".feather", ".arrow"}:
        pytest.importorskip("pyarrow")
    assert call("transform", "data.prinfold", "data.csv", "-q").code == 0
    assert call("transform", "data.prinfold", "data.csv", "-q", "--out", f"z{suffix}").code == 0
    expected = columns_of("data-latent.csv", "latent_1", "latent_2")
    if suffix == ".npz":
        with np.load("z.npz") as file:
            np.testing.assert_array_equal(np.stack([file["latent_1"], file["latent_2"]], axis=1), expected)
            assert file["side"][0] in {"left", "right"}
        return
    table = read_table(Path(f"z{suffix}"))
    np.testing.assert_array_equal(np.stack([table.columns[f"latent_{j}"] for j in (1, 2)], axis=1), expected)
    assert table.columns["side"][0] in {"left", "right"}


def test_results_as_an_array(model: Path, call: Call) -> None:
    assert call("transform", "data.prinfold", "data.csv", "-q", "--out", "z.npy", "--keep", "side").code == 0
    assert np.load("z.npy").shape == (40, 3)  # coordinates and log-likelihood, which are numbers


def test_standard_output_is_the_table_alone(model: Path, call: Call) -> None:
    said = call("transform", "data.prinfold", "data.csv", "--out", "-")
    assert len(said.out.splitlines()) == 41
    assert said.err.strip() == ""
    assert said.out.startswith("row,id,side,latent_1,latent_2,log_likelihood\n0,1,")
    said = call("transform", "data.prinfold", "data.csv", "--out", "-", "--json")
    assert said.code == 2
    assert "--json and --out - both want standard output" in said.err


def test_a_model_and_a_table_in_any_order(model: Path, call: Call) -> None:
    assert call("transform", "data.csv", "data.prinfold").code == 0
    assert call("explore", "data.csv", "data.prinfold").code == 0


def test_new_rows_by_name_whatever_their_order(model: Path, call: Call) -> None:
    X = numbers(7, seed=5)
    Path("new.csv").write_text(csv_text(X[:, ::-1], "c,b,a"))
    assert call("transform", "data.prinfold", "new.csv", "-q").code == 0
    expected = prinfold.load(model).transform(named(np.round(X, 6)))
    np.testing.assert_allclose(columns_of("new-data-latent.csv", "latent_1", "latent_2"), expected)


def test_rows_without_names_go_by_number(model: Path, call: Call) -> None:
    X = numbers(7, seed=5)
    np.save("new.npy", X)
    assert call("transform", "data.prinfold", "new.npy", "-q").code == 0
    expected = prinfold.load(model).transform(named(X))
    np.testing.assert_allclose(columns_of("new-data-latent.csv", "latent_1", "latent_2"), expected)
    np.save("wide.npy", np.zeros((4, 5)))
    assert (
        "the model takes 3 columns, but wide.npy has 5 of numbers"
        in call("transform", "data.prinfold", "wide.npy").complaint
    )


def test_gaps_in_new_rows(model: Path, call: Call) -> None:
    Path("new.csv").write_text("a,b,c\n0.1,0.2,0.3\n0.1,,0.3\n,,\n")
    said = call("transform", "data.prinfold", "new.csv", "--json")
    assert said.json["notes"] == ["1 row gets no place, because all cells are missing; its results are empty"]
    assert np.isnan(columns_of("new-data-latent.csv", "latent_1", "log_likelihood")).tolist() == [[False] * 2] * 2 + [
        [True] * 2
    ]
    said = call("project", "data.prinfold", "new.csv", "--json")
    none, gap = said.json["notes"]
    assert none == "1 row gets no place, because all cells are missing; its results are empty"
    assert gap.startswith("1 row with missing cells: the nearest point is found from the known cells")
    found = columns_of("new-data-projected.csv", "a", "b", "c", "distance")
    assert np.isnan(found[:, :3]).any(axis=1).tolist() == [False, False, True]
    fitted = prinfold.load("data.prinfold")
    row = named(np.array([[0.1, np.nan, 0.3]]))
    assert np.isnan(found[1, 3])  # two cells lie on any surface
    np.testing.assert_allclose(found[1, :3], fitted.project(row)[0], rtol=1e-6)
    said = call("project", "data.prinfold", "new.csv", "--json", "--missing", "drop", "--force")
    assert columns_of("new-data-projected.csv", "row").tolist() == [[0.0]]
    assert (
        "2 rows of new.csv have missing cells"
        in call("project", "data.prinfold", "new.csv", "--missing", "error", "-f").complaint
    )


def test_blocks_are_the_whole(model: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("transform", "data.prinfold", "data.csv", "-q")
    by_blocks = cli.mapping.by_blocks
    monkeypatch.setattr(cli.mapping, "by_blocks", lambda work, index, tell: by_blocks(work, index, tell, 7))
    call("transform", "data.prinfold", "data.csv", "-q", "--out", "again.csv")
    one, two = (columns_of(each, "latent_1", "latent_2", "log_likelihood") for each in ("data-latent.csv", "again.csv"))
    np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize("verb", ["transform", "project", "explore", "report"])
@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["no.prinfold", "data.csv"], "there is no model file no.prinfold; `prinfold fit DATA` makes one"),
        (["data.csv", "data.csv"], "data.csv is not a prinfold model file; name a model first and then a table"),
        (
            ["cut.prinfold", "data.csv"],
            "cut.prinfold is not a prinfold model file, or it has been cut short or damaged",
        ),
        (["empty.prinfold", "data.csv"], "empty.prinfold is an empty file; save the model again"),
        (["newer.prinfold", "data.csv"], "newer.prinfold has format 99, but this prinfold reads up to"),
        (
            ["classes.prinfold", "data.csv"],
            "classes.prinfold holds a KernelDensityClassifier, which is no single surface",
        ),
        (["folder", "data.csv"], "folder is a folder, not a model file"),
        (["data.prinfold", "other.csv"], "other.csv has no column 'a', which the model was fitted to; it has x, y"),
        (["data.prinfold", "words.csv"], "column 'b' of words.csv is text, such as 'u'; correct the file"),
        (["data.prinfold", "no.csv"], "there is no file no.csv"),
        (["data.prinfold", "data.csv", "--out", "data.csv", "-f"], ""),
        (["data.prinfold", "data.csv", "--out", "z.xyz"], "cannot tell how to write z.xyz; let its name end in one of"),
    ],
)
def test_what_cannot_be_done_is_one_line(verb: str, words: list[str], match: str, model: Path, call: Call) -> None:
    content = model.read_bytes()
    Path("cut.prinfold").write_bytes(content[: len(content) // 2])
    Path("empty.prinfold").write_bytes(b"")
    _write_newer(model, Path("newer.prinfold"))
    iris = np.arange(20.0).reshape(10, 2)
    prinfold.save(prinfold.KernelDensityClassifier().fit(iris, np.arange(10) % 2), "classes.prinfold")
    Path("folder").mkdir()
    Path("other.csv").write_text("x,y\n1,2\n")
    Path("words.csv").write_text("a,b,c\n1,u,3\n4,v,6\n")
    before = Path("data.csv").read_bytes()
    complaint = call(verb, *words).complaint
    assert match in complaint
    assert Path("data.csv").read_bytes() == before


def _write_newer(model: Path, path: Path) -> None:
    """The same model, as a later version might write it."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(model, framework="numpy") as file:
        body = json.loads(file.metadata()["prinfold"]) | {"format": 99}
        save_file({name: file.get_tensor(name) for name in file.keys()}, path, {"prinfold": json.dumps(body)})  # noqa: SIM118


def test_models_of_the_first_version_are_read(folder: Path, call: Call) -> None:
    shutil.copy(OLD / "model_v1.prinfold", "old.prinfold")
    found = call("info", "old.prinfold", "--json").json
    assert found["method"] == "GTM"
    np.save("new.npy", np.zeros((3, found["n_columns"])))
    assert call("transform", "old.prinfold", "new.npy", "--json").json["placed"] == 3


def test_models_from_python_are_read(folder: Path, call: Call) -> None:
    data = datasets.make_pipe_flow(60, rng=0)
    fitted = make_pipeline(StandardScaler(), prinfold.GTM(nodes=6, max_iter=5, tol=0)).fit(data.X)
    prinfold.save(fitted, "flow.prinfold")
    np.savez("flow.npz", X=data.X, kind=np.asarray(data.names, dtype=str))
    assert call("transform", "flow.prinfold", "flow.npz", "--json").json["columns"][1] == "kind"
    assert call("explore", "flow.prinfold", "flow.npz", "--label", "kind", "--json").json["rows"] == 60


# -------------------------------------------------------------------------------------------------------------- explore


def page_data(path: str) -> dict:
    text = Path(path).read_text(encoding="utf-8")
    start = text.index('<script type="application/json"')
    found: dict = json.loads(text[text.index(">", start) + 1 : text.index("</script>", start)])
    return found


def test_a_page_of_the_rows(model: Path, call: Call) -> None:
    said = call("explore", "data.prinfold", "data.csv", "--label", "side", "--names", "id", "--title", "Both sides")
    assert said.out.startswith("Map of 40 rows written to data-map.html (")
    page = page_data("data-map.html")
    assert page["title"] == "Both sides"
    assert page["columns"] == ["a", "b", "c"]
    assert (page["classes"]["name"], page["classes"]["names"]) == ("side", ["left", "right"])
    assert page["rowNames"] == [str(i) for i in range(1, 41)]
    # What the model does not take goes into the file of selected rows.
    assert [each["name"] for each in page["extra"]] == ["id", "side"]
    assert page["extra"][0]["cells"] == page["rowNames"]


def test_a_label_of_many_numbers_is_a_colour(model: Path, call: Call) -> None:
    assert call("explore", "data.prinfold", "data.csv", "--label", "id", "-q").code == 0
    page = page_data("data-map.html")
    assert page["classes"] is None
    assert page["values"][0]["name"] == "id"


def test_rows_that_were_left_out_keep_the_numbers_of_the_others(model: Path, call: Call) -> None:
    lines = Path("data.csv").read_text().splitlines()
    lines[3] = "3,left,,,"
    Path("data.csv").write_text("\n".join(lines))
    assert call("explore", "data.prinfold", "data.csv").code == 0
    assert page_data("data-map.html")["rowNames"] == [str(i) for i in range(40) if i != 2]


def test_a_page_of_the_surface_alone(model: Path, call: Call) -> None:
    assert call("explore", "data.prinfold", "--json").json["out"] == "data-map.html"
    assert page_data("data-map.html")["n"] == 0
    assert page_data("data-map.html")["title"].startswith("data: ")
    said = call("explore", "data.prinfold", "--label", "side", "-f")
    assert said.code == 2
    assert "--label and --names are columns of a table" in said.complaint


def test_a_page_of_images(folder: Path, call: Call) -> None:
    np.savez("pixels.npz", X=np.random.default_rng(0).normal(size=(40, 6)), y=np.arange(40) % 3)
    assert call("fit", "pixels.npz", "-q", *QUICK).code == 0
    assert call("explore", "pixels.prinfold", "pixels.npz", "--image", "2x3", "--label", "y", "-q").code == 0
    page = page_data("pixels-map.html")
    assert page["view"]["kind"] == "image"
    assert page["classes"]["names"] == ["0", "1", "2"]
    assert (
        "does not make an image of 6 columns"
        in call("explore", "pixels.prinfold", "pixels.npz", "--image", "5x5", "-f").complaint
    )
    assert (
        "must be height x width, such as 28x28, got 'large'"
        in call("explore", "pixels.prinfold", "pixels.npz", "--image", "large").err
    )


def test_the_page_is_opened_on_demand(model: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert call("explore", "data.prinfold", "data.csv", "--open", "-q").code == 0
    assert opened == [Path("data-map.html").absolute().as_uri()]


def test_rows_that_cannot_be_shown(model: Path, call: Call) -> None:
    Path("none.csv").write_text("a,b,c\n,,\n")
    assert "none.csv has no column of numbers" in call("fit", "none.csv", "--out", "n.prinfold").complaint
    assert "none.csv has no row that can be shown" in call("explore", "data.prinfold", "none.csv").complaint


# --------------------------------------------------------------------------------------------------------------- report


def test_a_report_on_the_rows(model: Path, call: Call) -> None:
    words = [
        "--label",
        "side",
        "--names",
        "id",
        "--axes",
        "3,a",
        "--worst",
        "3",
        "--title",
        "A report",
        "--reason",
        "it was the likeliest & the smoothest",
        "--figures",
        "f",
    ]
    said = call("report", "data.csv", "data.prinfold", *words)
    assert said.out == "Report on 40 rows written to data-report.html, with figures in f; open it in a browser\n"
    text = Path("data-report.html").read_text(encoding="utf-8")
    assert "<h1>A report" in text
    assert "it was the likeliest &amp; the smoothest" in text
    assert {path.suffix for path in Path("f").iterdir()} == {".png", ".svg"}
    assert "is there already; --force" in call("report", "data.prinfold", "data.csv").complaint
    mine = Path("f") / "map.svg"
    mine.write_text("my own")
    for path in Path("f").glob("*.png"):
        path.unlink()
    said = call("report", "data.prinfold", "data.csv", "--out", "other.html", "--figures", "f")
    assert "more of its files are there already; --force writes over them, --figures names another" in said.complaint
    assert (said.code, mine.read_text(), Path("other.html").exists()) == (2, "my own", False)
    assert "data.csv is a file; name a folder" in call("report", *PAIR, "--figures", "data.csv", "-f").complaint
    assert "has no column 'size'" in call("report", "data.prinfold", "data.csv", "-f", "--names", "size").complaint


# ----------------------------------------------------------------------------------------------------------------- info


def test_what_is_in_a_table(table: Path, call: Call) -> None:
    said = call("info", "data.csv")
    assert "data.csv: 40 rows × 5 columns" in said.out
    assert "text, 2 different, such as" in said.out
    assert "`prinfold fit` would use 3 columns, as they are (" in said.out
    found = call("info", "data.csv", "--json").json
    assert found["fit_columns"] == ["a", "b", "c"]
    assert found["columns"]["a"]["mean"] == pytest.approx(columns_of("data.csv", "a").mean())
    assert found["columns"]["side"]["different"] == 2


def test_a_table_that_cannot_be_fitted_can_be_looked_at(folder: Path, call: Call) -> None:
    Path("odd.csv").write_text("x,y,z\n1,inf,u\n2,,v\n")
    found = call("info", "odd.csv", "--json").json
    assert found["columns"]["y"] == {"kind": "number", "missing": 1}
    Path("words.csv").write_text("u,v\na,b\n")
    assert "note: words.csv has no column of numbers to use" in call("info", "words.csv").out
    assert "note: column 'y' of odd.csv is infinite in line 2" in call("info", "odd.csv").out


def test_what_is_in_a_model(model: Path, call: Call) -> None:
    said = call("info", "data.prinfold")
    assert "GTM of 2 dimensions" in said.out
    assert "3: a, b, c" in said.out
    found = call("info", "data.prinfold", "--json").json
    assert (found["columns"], found["iterations"], found["takes_gaps"]) == (["a", "b", "c"], 8, True)
    assert found["noise"] == pytest.approx(prinfold.load(model).noise_variance_ ** 0.5)
    assert found["settings"] == {"nodes": "6", "max_iter": "8", "tol": "0"}


def test_what_is_in_a_model_that_is_no_surface(folder: Path, call: Call) -> None:
    X = np.arange(20.0).reshape(10, 2)
    prinfold.save(prinfold.KernelDensityClassifier(bandwidth=2.0).fit(X, np.arange(10) % 2), "classes.prinfold")
    found = call("info", "classes.prinfold", "--json").json
    assert (found["method"], found["settings"]) == ("KernelDensityClassifier", {"bandwidth": "2.0"})
    assert "KernelDensityClassifier, for use from Python" in call("info", "classes.prinfold").out


def test_what_is_installed(call: Call) -> None:
    found = call("info", "--json").json
    assert found["version"] == prinfold.__version__
    assert found["methods"]["gtm"].startswith("Generative topographic mapping")
    assert found["installed"]["matplotlib"] is True
    assert "Excel and OpenDocument workbooks" in call("info").out
    assert "densityridge, ridge" in call("info").out


@pytest.mark.parametrize(
    ("axes", "match"),
    [
        ("foo", "--axes names 'foo', which is no column of the model; it has a, b, c, or by number 1 to 3"),
        ("0", "--axes names '0', which is no column"),
        ("a,1", "--axes takes up to three different columns, got a, 1"),
    ],
)
def test_axes_that_are_no_columns_are_one_line(axes: str, match: str, model: Path, call: Call) -> None:
    assert match in call("report", "data.prinfold", "data.csv", "--axes", axes).complaint
