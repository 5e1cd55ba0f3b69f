"""What somebody meets who has a table and has read nothing: names, times, widths, and words without Python in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import prinfold
from prinfold.cli.console import as_options, wrap_line
from prinfold.cli.models import StoredSurface, fold_remarks
from prinfold.cli.tables.columns import name_columns
from prinfold.cli.tables.dates import dates_of
from prinfold.exceptions import MultimodalWarning
from prinfold.reporting import report
from tests.cli.conftest import QUICK, Said, made, numbers
from tests.cli.test_mapping import page_data

Call = Callable[..., Said]


@pytest.fixture
def process(folder: Path) -> Path:
    """Rows with a time, a name, another name, a class, and three columns to fit."""
    lines = [
        f"2025-03-{1 + i // 24:02d} {i % 24:02d}:00:00,P-{i},sample {i},{'ab'[i % 2]},"
        + ",".join(f"{cell:.5f}" for cell in row)
        for i, row in enumerate(numbers())
    ]
    path = folder / "data.csv"
    path.write_text("\n".join(["time,id,long name,kind,a,b,c", *lines, ""]))
    return path


def test_text_that_differs_in_each_row_is_its_name(process: Path, call: Call) -> None:
    said = call("fit", "data.csv", *QUICK)
    explore, report_, transform, _ = [line for line in said.out.splitlines() if "  # " in line]
    assert "--label kind --names id" in explore
    assert "--label kind --names id" in report_
    assert "--names" not in transform
    said = call("explore", "data.prinfold", "data.csv")
    assert "note: rows are called by id, which is different in each; --names COLUMN takes another column" in said.out
    assert page_data("data-map.html")["rowNames"] == [f"P-{i}" for i in range(40)]
    assert call("explore", "data.prinfold", "data.csv", "-f", "--names", "none").out.startswith("Map of 40 rows")
    assert page_data("data-map.html")["rowNames"] is None
    assert call("report", "data.prinfold", "data.csv", "-q").code == 0
    assert "P-" in Path("data-report.html").read_text(encoding="utf-8")


def test_names_are_different_and_there() -> None:
    table = made(time=["2025-01-01", "2025-01-02"], a=["u", "v"], same=["u", "u"], gap=["u", ""], x=[1.0, 2.0])
    assert name_columns(table, []) == ["a", "time"]
    assert name_columns(table, ["a"]) == ["time"]
    assert name_columns(made(a=["only"]), []) == []


@pytest.mark.parametrize("verb", ["explore", "report"])
def test_times_are_something_to_colour_by(verb: str, process: Path, call: Call) -> None:
    call("fit", "data.csv", "-q", *QUICK)
    assert call(verb, "data.prinfold", "data.csv", "--label", "time", "-q").code == 0
    if verb == "explore":
        assert page_data("data-map.html")["values"][0]["name"] == "time, days since 2025-03-01 00:00:00"
    said = call(verb, "data.prinfold", "data.csv", "--label", "id", "-f")
    assert said.code in {0, 1}
    assert "values=" not in said.err


def test_too_many_words_are_no_classes(folder: Path, call: Call) -> None:
    rows = [f"w{i}," + ",".join(f"{cell:.4f}" for cell in row) for i, row in enumerate(numbers(61))]
    (folder / "data.csv").write_text("\n".join(["word,a,b,c", *rows]))
    call("fit", "data.csv", "-q", *QUICK)
    complaint = call("explore", "data.prinfold", "data.csv", "--label", "word").complaint
    assert "'word' has 61 different words in data.csv, too many for colours" in complaint
    assert complaint.endswith("--names word calls rows by it")


@pytest.mark.parametrize(
    ("words", "days"),
    [
        (["2025-03-02T12:00", "2025-03-01"], [1.5, 0.0]),
        (["01.03.2025", "", "03.03.2025"], [0.0, np.nan, 2.0]),
        (["2025/03/01 06:00", "2025/03/01 18:00:00"], None),
        (["2025-03-01 00:00:00+00:00", "2025-03-01 00:00:00-12:00"], [0.0, 0.5]),
        (["3/4/2025", "5/4/2025"], None),
        (["20250301", "20250302"], None),
        (["P-1", "P-2"], None),
        (["", ""], None),
    ],
)
def test_what_is_a_time(words: list[str], days: list[float] | None) -> None:
    found = dates_of(words)
    if days is None:
        assert found is None
    else:
        assert found is not None
        np.testing.assert_allclose(found.days, days)


def test_a_date_is_no_class(folder: Path, call: Call) -> None:
    rows = [f"0{1 + i // 10}.03.2025," + ",".join(f"{cell:.4f}" for cell in row) for i, row in enumerate(numbers())]
    (folder / "de.csv").write_text("\n".join(["Datum,a,b,c", *rows]))
    assert "--label" not in call("fit", "de.csv", *QUICK).out


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning", "ignore:The iteration limit")
def test_a_fit_says_what_its_report_says_first() -> None:
    t = np.linspace(0, 1, 150)[:, None]
    X = np.concatenate([t * np.cos(9 * t), t * np.sin(9 * t), np.sin(5 * t)], axis=1)
    model = prinfold.GTM(nodes=8, width=0.3, max_iter=10, random_state=0).fit(X)
    assert model.folds_.folded.any()
    (words,) = fold_remarks(StoredSurface.of(model))
    first = words.partition(" Try a stiffer surface")[0]
    assert first.startswith("The surface is folded at ")
    assert first in report(model, X, None).html
    assert words.endswith("Try a stiffer surface (--set width=2), or another start (--set init=isomap).")


def test_no_more_dimensions_than_columns(process: Path, call: Call) -> None:
    for command in ("fit", "compare"):
        said = call(command, "data.csv", "--dimensions", "4")
        assert said.code == 2
        assert "a surface of 4 dimensions does not fit into 3 columns; --dimensions takes fewer" in said.complaint


def test_a_forgotten_model_is_said_before_a_page_that_is_there(process: Path, call: Call) -> None:
    Path("data-map.html").write_text("mine")
    Path("data-latent.csv").write_text("mine")
    forgotten = call("explore", "data.csv").complaint
    assert forgotten.endswith("name a model first and then a table; make one with `prinfold fit data.csv`")
    call("fit", "data.csv", "-q", *QUICK)
    assert call("explore", "data.csv").complaint.endswith("then a table; data.prinfold is one")
    assert "there is no file no.csv" in call("transform", "data.prinfold", "no.csv", "--out", "data-map.html").complaint


def test_a_slip_in_the_name_of_a_table_is_said_before_a_model_that_is_there(process: Path, call: Call) -> None:
    Path("data.prinfold").write_text("a model")
    assert call("fit", "data.cvs").complaint.endswith("there is no file data.cvs; did you mean data.csv?")


def test_shells_are_named(call: Call) -> None:
    said = call("completion")
    assert said.code == 2
    assert said.complaint.endswith("name your shell: prinfold completion bash, zsh or fish")


def test_endings_and_doubts_in_plain_words(process: Path, call: Call) -> None:
    assert call("fit", "data.csv", "--set", "nodes=4").code == 0
    said = call("info", "data.prinfold").out
    assert "Finished: more iterations would hardly change the result." in said
    assert "tol" not in said.replace("total", "")


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_doubts_in_plain_words() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    with pytest.warns(MultimodalWarning) as caught:
        prinfold.GTM(nodes=8, max_iter=5, tol=0, random_state=0).fit(X)
    (doubt,) = [as_options(each.message) for each in caught if each.category is MultimodalWarning]
    assert re.match(r"For \d+ % of the rows the map is not sure where they belong", doubt)
    assert "likeliest places (prinfold transform --modes)" in doubt
    assert "try another start, such as --set init=isomap" in doubt


def test_lines_are_as_wide_as_the_terminal(process: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = call("fit", "data.csv", *QUICK).out.partition("Try next")[0]
    assert max(map(len, told.splitlines())) <= 60
    monkeypatch.delenv("COLUMNS")
    words = "note: " + "word " * 60
    assert max(map(len, wrap_line(words).splitlines())) <= 80
    assert wrap_line(words, 2).replace("\n ", "").split() == words.split()
