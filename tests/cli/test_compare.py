"""``prinfold compare``: the table, the recommendation, and the model that comes of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import prinfold
from prinfold import cli
from prinfold.cli.command import build_parser
from prinfold.cli.compare import _methods
from prinfold.cli.tables.reading import read_table
from tests.cli.conftest import Said, csv_text, numbers

Call = Callable[..., Said]
FEW = ("--dimensions", "1", "--folds", "2", "--seed", "3")


@pytest.fixture
def curve(folder: Path) -> Path:
    (folder / "data.csv").write_text(csv_text(numbers(40) * [1.0, 100.0, 1.0]))
    return folder / "data.csv"


def test_methods_are_compared_and_the_best_is_kept(curve: Path, call: Call) -> None:
    words = ["--methods", "pca,KMM", "--out", "best.prinfold", "--table", "t.csv", "--figure", "front.png"]
    found = call("compare", "data.csv", *words, *FEW, "--max-rows", "30", "--json").json
    X = np.stack(list(read_table(curve).columns.values()), axis=1)
    Y = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = prinfold.compare(Y, ["PCA", "KMM"], n_components=1, folds=2, max_rows=30, random_state=3)
    assert found["scaling"] == "standardize"
    assert found["recommended"] == expected.recommended.name == "KMM"
    assert found["table"]["method"] == expected.table["method"]
    np.testing.assert_allclose(found["table"]["error"], expected.table["error"], rtol=1e-6)
    written = read_table(Path("t.csv")).columns
    np.testing.assert_allclose(written["error"], expected.table["error"], rtol=1e-6)
    assert list(written["recommended"]) == ["False", "True"]
    assert plt.imread("front.png").std() > 0.01
    best = prinfold.load("best.prinfold")
    assert [type(step).__name__ for _, step in best.steps] == ["StandardScaler", "KMM"]
    assert list(best.feature_names_in_) == ["a", "b", "c"]
    assert call("transform", "best.prinfold", "data.csv", "-q").code == 0


def proposed(said: Said) -> list[str]:
    """The words of the command that is proposed, after the name of the program."""
    (line,) = [line for line in said.out.partition("Try next")[2].splitlines() if "prinfold" in line]
    words = shlex.split(line)
    return words[words.index("prinfold") + 1 :]


def test_what_to_try_next_is_the_recommended_model(curve: Path, call: Call) -> None:
    said = call("compare", "data.csv", "--methods", "gtm", "--columns", "a,c", *FEW)
    assert "is recommended" in said.out
    assert call(*proposed(said), "-q").code == 0
    (words,) = [line for line in said.out.splitlines() if "recommended: " in line]
    recommended = words.partition(" is recommended: ")[0]  # others may be named after it
    model = prinfold.load("data.prinfold")
    assert (model.n_components, model.random_state) == (1, 3)
    assert list(model.feature_names_in_) == ["a", "c"]
    for name, value in model.get_params().items():
        if f"{name}=" in recommended:
            assert f"{name}={value}" in recommended


def test_what_is_tried_next_reads_the_table_alike(folder: Path, call: Call) -> None:
    """Every option that both commands have is handed on; fit would choose another scaling by itself."""
    X = numbers(30) * [1.0, 100.0, 1.0]
    rows = [f"{i}|{'u' if i % 2 else 'v'}|" + "|".join(f"{cell:.4f}" for cell in row) for i, row in enumerate(X)]
    (folder / "my data.txt").write_text("\n".join([*rows, "9|u|1|-9|2"]))
    reading = ["--separator", "|", "--no-header", "--na=-9", "--na", "none at all", "--missing", "drop"]
    choosing = ["--columns", "3:5", "--drop", "4", "--label", "2", "--raw"]
    said = call("compare", "my data.txt", "--methods", "kmm", *reading, *choosing, *FEW)
    parser = build_parser(cli.COMMANDS)
    once = vars(parser.parse_args(["compare", "my data.txt", *reading, *choosing, *FEW]))
    again = vars(parser.parse_args(proposed(said)))
    shared = {*once} & {*again} - {"command", "parser"}
    assert shared >= {"separator", "header", "na", "missing", "array", "columns", "drop", "label", "scaling", "seed"}
    assert {name: again[name] for name in shared} == {name: once[name] for name in shared}
    assert again["method"] == "kmm"


def test_an_array_is_named_again(folder: Path, call: Call) -> None:
    np.savez("two.npz", train=numbers(30), test=numbers(30))
    words = proposed(call("compare", "two.npz", "--methods", "kmm", "--array", "train", *FEW))
    assert words[-2:] == ["--array", "train"]


def test_a_plane_is_no_model_file(curve: Path, call: Call) -> None:
    said = call("compare", "data.csv", "--methods", "pca", "--out", "best.prinfold", *FEW)
    assert said.code == 1
    assert "note: PCA is none of prinfold's surfaces, so that no model was written" in said.out
    assert not Path("best.prinfold").exists()


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_the_best_surface_is_kept_where_a_plane_wins(folder: Path, call: Call) -> None:
    t = np.random.default_rng(0).normal(size=(60, 1))
    (folder / "data.csv").write_text(
        csv_text(t * [1.0, 2.0, 3.0] + 0.1 * np.random.default_rng(1).normal(size=(60, 3)))
    )
    said = call("compare", "data.csv", "--methods", "pca,kmm,gtm", "--out", "best.prinfold", *FEW)
    assert "PCA is recommended" in said.out
    assert said.code == 0
    (note,) = [line for line in said.out.splitlines() if "the best of these is written" in line]
    gap = float(re.findall(r", ([\d.]+) behind PCA by the \w+ criterion", note)[0])
    best = prinfold.load("best.prinfold")
    assert note.startswith("note: PCA is none of prinfold's surfaces")
    assert f": {type(best).__name__}" in note
    plain = call("compare", "data.csv", "--methods", "pca,kmm,gtm", *FEW, "--json").json["table"]
    losses = dict(zip(plain["method"], plain["criterion"], strict=True))
    ours = min(loss for method, loss in zip(plain["method"], plain["criterion"], strict=True) if method != "PCA")
    assert gap == pytest.approx(ours - losses["PCA"], rel=0.01)
    assert list(best.feature_names_in_) == ["a", "b", "c"]
    assert call("transform", "best.prinfold", "data.csv", "-q").code == 0


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_the_best_surface_is_proposed_where_a_plane_wins(folder: Path, call: Call) -> None:
    t = np.random.default_rng(0).normal(size=(60, 1))
    (folder / "data.csv").write_text(
        csv_text(t * [1.0, 2.0, 3.0] + 0.1 * np.random.default_rng(1).normal(size=(60, 3)))
    )
    said = call("compare", "data.csv", "--methods", "pca,kmm", *FEW)
    (line,) = [line for line in said.out.splitlines() if line.startswith("The best of prinfold's own surfaces is KMM")]
    assert " behind PCA by the " in line
    assert proposed(said)[:4] == ["fit", "data.csv", "--method", "kmm"]
    assert call(*proposed(said), "-q").code == 0


def test_progress_is_a_line_for_each(curve: Path, call: Call) -> None:
    """Also where nobody watches, so that a log tells how far it has come."""
    lines = call("compare", "data.csv", "--methods", "pca,kmm", *FEW).err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["1 of 2  PCA", "2 of 2  KMM"]
    assert re.fullmatch(r"1 of 2  PCA: [\d.]+ s.*, about [\d.]+ s left", lines[0])
    assert lines[1].endswith(" s")
    assert call("compare", "data.csv", "--methods", "pca", *FEW, "--json").err == ""


def test_advice_is_in_options(curve: Path, call: Call) -> None:
    said = call("compare", "data.csv", "--methods", "pca", "--folds", "2", "--max-rows", "20")
    assert "Give --dimensions if you know it." in said.out
    assert "n_components" not in said.out
    assert "by their likelihood criterion" in said.out


def test_names_are_written_as_one_likes() -> None:
    assert _methods(["gtm", "KernelPCA", "ridge", "isomap"]) == ["GTM", "KernelPCA", "DensityRidge", "Isomap"]
    assert _methods([]) == "all"


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--out", "best.csv"], "cannot tell how to write best.csv; let its name end in .prinfold"),
        (["--table", "-"], "--table - is standard output, which only transform and project write to; name a file"),
        (["--methods", "magic"], "there is no method 'magic' to compare; there are"),
        (["--criterion", "luck"], "error: the criterion must be one of"),
        (["--out", "data.csv", "--force"], "is what is read"),
        (["--table", "t.xyz"], "cannot tell how to write t.xyz"),
        (["--figure", "no/f.png"], "there is no folder no to write f.png in"),
    ],
)
def test_what_cannot_be_compared_is_one_line(words: list[str], match: str, curve: Path, call: Call) -> None:
    said = call("compare", "data.csv", "--quiet", *words, *FEW)
    assert match in said.complaint
    assert said.code == 2


def test_rows_with_gaps_are_judged_by_what_they_have(curve: Path, call: Call) -> None:
    curve.write_text(curve.read_text() + "1,,2\n")
    said = call("compare", "data.csv", "--methods", "kmm", *FEW)
    assert said.code == 0
    assert "note: 1 of 41 rows has missing cells and is used; missing cells are" in said.out
    assert "Methods that need every cell (KMM) are fitted to complete rows only" in " ".join(said.out.split())
    assert proposed(said)[-2:] == ["--missing", "drop"]  # KMM would stop
    assert call(*proposed(said), "-q").code == 0
    refused = call("compare", "data.csv", "--methods", "pca", "--missing", "error", *FEW).complaint
    assert "1 row of data.csv has missing cells" in refused
    curve.write_text("a,b,c\n" + "1,,2\n" * 40 + "1,2,3\n4,3,1\n2,2,2\n")
    few = call("compare", "data.csv", "--methods", "pca", *FEW).complaint
    assert "3 rows of data.csv have every cell, too few to compare methods in 2 folds; most missing cells" in few
    assert "are in 'b'" in few


def test_a_kept_model_can_be_looked_at_next(curve: Path, call: Call) -> None:
    said = call("compare", "data.csv", "--methods", "kmm", "--out", "best.prinfold", *FEW)
    steps = said.out.partition("Try next")[2].splitlines()
    assert [line.partition("prinfold ")[2].split()[0] for line in steps if "#" in line] == [
        "explore",
        "report",
        "transform",
    ]
    assert all("best.prinfold data.csv" in line for line in steps if "#" in line)
    assert re.search(r"^All of it took \d+\.\d s\.$", said.out, re.MULTILINE)


def test_fits_that_have_ended_are_not_run_again(curve: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from prinfold.select import trials

    words = ("compare", str(curve), "--methods", "gtm,pca", "-n", "1", "--folds", "2", "--checkpoint", "c.checkpoint")
    first = call(*words, "--json")
    monkeypatch.setattr(trials.MethodComparison, "attempt", lambda *_: pytest.fail("a fit was run again"))
    again = call(*words, "--json")
    assert (first.code, again.code) == (0, 0)
    assert again.json["recommended"] == first.json["recommended"]
    other = call(*words, "--seed", "1")
    assert other.code != 0
    assert "c.checkpoint" in other.complaint


def test_a_slip_in_a_method_is_said_before_the_file_is_looked_at(folder: Path, call: Call) -> None:
    assert "there is no method 'umap' to compare" in call("compare", "nowhere.csv", "--methods", "gtm,umap").complaint
    assert "there is no file nowhere.csv" in call("compare", "nowhere.csv", "--methods", "all").complaint
