"""``prinfold fit``: what it chooses, what it says, what it writes."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import prinfold
from prinfold import cli
from prinfold.cli.methods import SCALINGS, choose_scaling, methods
from prinfold.cli.tables.columns import choose_columns, find_columns
from prinfold.cli.tables.reading import read_table
from prinfold.exceptions import FoldWarning, InvalidDataError
from prinfold.validation.named_block import NamedBlock
from tests.cli.conftest import QUICK, Said, csv_text, made, numbers
from tests.house import public_manifolds

Call = Callable[..., Said]


def test_a_table_without_options(table: Path, call: Call) -> None:
    said = call("fit", "data.csv")
    assert said.code == 0
    assert said.err == ""
    assert "Fitting a GTM of 2 dimensions to data.csv: 40 rows × 3 columns." in said.out
    assert "left out id: it counts the rows" in said.out
    assert "left out side: text" in said.out
    assert "Written to data.prinfold" in said.out
    model = prinfold.load(table.with_name("data.prinfold"))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.verbose == 0
    X = read_matrix(table)
    with pytest.warns(FoldWarning) as caught:
        expected = prinfold.GTM(random_state=0).fit_transform(X)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-10)
    (note,) = [line for line in said.out.splitlines() if line.startswith("note: The surface is folded")]
    assert note.partition(" Use")[0] == f"note: {caught[0].message}".partition(" Use")[0]
    assert "(wider basis functions, such as --set width=2)" in note


def read_matrix(path: Path) -> np.ndarray:
    table = read_table(path)
    return NamedBlock.of(np.stack([table.columns[name] for name in "abc"], axis=1), ("a", "b", "c"))


def test_what_to_try_next_can_be_typed(table: Path, call: Call) -> None:
    """The column of text with two words in it is proposed as the classes."""
    said = call("fit", "data.csv", *QUICK)
    steps = [line.partition("#")[0] for line in said.out.partition("Try next")[2].splitlines() if "#" in line]
    assert len(steps) == 4
    assert "--label side" in steps[0]
    assert steps[3].split()[-2:] == ["compare", "data.csv"]
    for step in steps[:3]:
        words = shlex.split(step)
        assert call(*words[words.index("prinfold") + 1 :]).code == 0
    assert table.with_name("data-map.html").exists()
    assert table.with_name("data-report.html").exists()
    assert table.with_name("data-latent.csv").exists()


def test_what_is_proposed_for_a_mixture_can_be_typed_too(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--method", "gtmmixture", "--set", "max_iter=3")
    steps = [line.partition("#")[0] for line in said.out.partition("Try next")[2].splitlines() if "#" in line]
    typed = [shlex.split(step) for step in steps]
    commands = [words[words.index("prinfold") + 1 :] for words in typed]
    assert [words[0] for words in commands] == ["explore", "report", "transform", "compare"]
    for words in commands[:3]:
        assert call(*words).code == 0


def test_a_program_gets_one_object(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--label", "side", "--json", *QUICK)
    found = said.json
    assert said.err == ""
    assert found["columns"] == ["a", "b", "c"]
    assert found["left_out"] == {"id": "it counts the rows"}
    assert found["model"] == "data.prinfold"
    assert (found["rows"], found["dimensions"], found["iterations"], found["scaling"]) == (40, 2, 8, "raw")
    model, X = prinfold.load("data.prinfold"), read_matrix(table)
    assert found["distance"] == pytest.approx(model.projection_error(X) ** 0.5)
    assert found["explained"] == pytest.approx(1 - model.projection_error(X) / X.var(axis=0).sum())
    assert found["settings"] == {"nodes": "6", "max_iter": "8", "tol": "0"}


def test_quiet_is_quiet(table: Path, call: Call) -> None:
    assert call("fit", "data.csv", "--quiet", *QUICK) == Said(0, "", "")


def test_files_are_not_written_over(model: Path, call: Call) -> None:
    before = model.read_bytes()
    assert call("fit", "data.csv").complaint == (
        "prinfold fit: error: data.prinfold is there already; --force writes over it, --out names another file"
    )
    assert model.read_bytes() == before
    assert call("fit", "data.csv", "--force", "--seed", "1", "--set", "nodes=5", "--set", "max_iter=3").code == 0
    assert model.read_bytes() != before


def test_what_is_read_is_never_written_over(table: Path, call: Call) -> None:
    before = table.read_bytes()
    assert "is what is read; name another file" in call("fit", "data.csv", "--out", "data.csv", "--force").complaint
    (table.parent / "link.prinfold").symlink_to(table)
    assert "is what is read" in call("fit", "data.csv", "--out", "link.prinfold", "--force").complaint
    assert table.read_bytes() == before


def test_the_folder_one_is_in_is_no_table(folder: Path, call: Call) -> None:
    assert "is a folder; name a file in it" in call("fit", ".").complaint
    assert "is a folder" in call("info", ".").complaint


def test_places_that_cannot_be_written_are_said_at_once(table: Path, call: Call) -> None:
    assert "there is no folder no to write m.prinfold in" in call("fit", "data.csv", "--out", "no/m.prinfold").complaint
    (table.parent / "here").mkdir()
    assert "here is a folder; name a file with --out" in call("fit", "data.csv", "--out", "here").complaint


@pytest.mark.parametrize("name", ["gtm", "PPS", "ukr", "kmm", "ridge", "DensityRidge", "density-ridge"])
def test_every_method_by_name(name: str, table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--method", name, "--dimensions", "1", "--set", "max_iter=5", "--json")
    assert said.code == 0, said.err
    model = prinfold.load("data.prinfold")
    assert type(model).__name__.lower() in {name.lower().replace("-", ""), "densityridge"}
    assert model.n_components == 1
    assert call("transform", "data.prinfold", "data.csv", "--quiet").code == 0


def test_a_curve_says_how_long_it_is(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--method", "curve")
    assert said.code == 0, said.err
    length = prinfold.load("data.prinfold").length_
    assert f"an open curve, {length:.4g}" in said.out
    found = call("fit", "data.csv", "--method", "curve", "--set", "closed=True", "--force", "--json").json
    assert (found["method"], found["closed"]) == ("PrincipalCurve", True)
    assert found["length"] == prinfold.load("data.prinfold").length_


def test_every_estimator_of_a_surface_is_a_method() -> None:
    assert {each.__name__ for each in methods().values()} == set(public_manifolds())


def test_levels_go_into_a_mixed_map(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--method", "mixed", "--json", *QUICK)
    assert said.code == 0, said.err
    assert said.json["columns"] == ["side", "a", "b", "c"]
    model = prinfold.load("data.prinfold")
    assert [column.kind for column in model.columns_] == ["bernoulli", "gaussian", "gaussian", "gaussian"]
    assert call("transform", "data.prinfold", "data.csv", "--json").json["placed"] == 40
    assert (
        "a nearest point needs columns of numbers, but 'side' is bernoulli"
        in call("project", "data.prinfold", "data.csv").complaint
    )


def test_one_column_makes_a_line(folder: Path, call: Call) -> None:
    (folder / "one.csv").write_text("x\n" + "".join(f"{x:.3f}\n" for x in np.random.default_rng(0).normal(size=50)))
    found = call("fit", "one.csv", "--json", *QUICK).json
    assert found["dimensions"] == 1
    assert any(note.startswith("only 1 column varies, so that there is no surface to fit") for note in found["notes"])


@pytest.mark.parametrize("method", ["gtm", "ukr", "ridge"])
def test_a_surface_has_fewer_dimensions_than_columns_vary(method: str, folder: Path, call: Call) -> None:
    """Two dimensions fill the plane of two columns; a column that never changes is no third."""
    X = numbers()
    X[:, 2] = 3.5
    (folder / "two.csv").write_text(csv_text(X))
    words = ("--method", method, "--set", "max_iter=5", "--json")
    found = call("fit", "two.csv", *words).json
    assert (found["dimensions"], found["columns"]) == (1, ["a", "b"])
    assert found["left_out"] == {"c": "it is the same in every row"}
    assert any(note.startswith("2 columns vary: the result is a curve") for note in found["notes"])
    assert found["why_scaling"] == "the columns have similar standard deviations"
    asked = call("fit", "two.csv", "--columns", "a,b,c", "--force", *words).json
    assert (asked["dimensions"], asked["columns"]) == (1, ["a", "b", "c"])


def test_dimensions_asked_for_are_taken(folder: Path, call: Call) -> None:
    (folder / "two.csv").write_text(csv_text(numbers()[:, :2], "a,b"))
    assert call("fit", "two.csv", "--dimensions", "2", "--json", *QUICK).json["dimensions"] == 2


def test_a_table_of_constants_has_an_answer(folder: Path, call: Call) -> None:
    (folder / "same.csv").write_text("a,b\n" + "1,2\n" * 40)
    found = call("fit", "same.csv", "--json", *QUICK).json
    assert (found["dimensions"], found["columns"]) == (1, ["a", "b"])
    assert any(note.startswith("no column varies") for note in found["notes"])


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--method", "som9"], "there is no method 'som9'; did you mean som?"),
        (["--method", "forest"], "there is no method 'forest'; --method takes densityridge, gtm"),
        (["--set", "nodes"], "--set takes NAME=VALUE, such as --set max_iter=200; got 'nodes'"),
        (["--set", "node=3"], "GTM has no setting 'node'; did you mean 'nodes'?"),
        (["--set", "colour=3"], "GTM has no setting 'colour'; it has basis"),
    ],
)
def test_wrong_settings_are_wrong_calls(words: list[str], match: str, table: Path, call: Call) -> None:
    said = call("fit", "data.csv", *words)
    assert said.code == 2
    assert match in said.complaint


def test_settings_are_numbers_lists_and_words(table: Path, call: Call) -> None:
    settings = ["nodes=(5, 6)", "max-iter=4", "prior_precision=evidence", "trainer=batch", "regularization=none"]
    assert call("fit", "data.csv", *(word for each in settings for word in ("--set", each)), "--quiet").code == 0
    model = prinfold.load("data.prinfold")
    assert (model.nodes, model.max_iter, model.prior_precision, model.regularization) == ((5, 6), 4, "evidence", None)


def test_a_setting_that_cannot_work_is_one_line(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--set", "nodes=-3")
    assert "nodes must be" in said.complaint
    assert said.code == 2


# -------------------------------------------------------------------------------------------------------------- columns


WIDE = made(**{name: [1.0, 5.0, 2.0] for name in ("id", "gene_1", "gene_2", "gene_3", "age", "7")})


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["age"], ["age"]),
        (["gene_*"], ["gene_1", "gene_2", "gene_3"]),
        (["gene_[12]", "id"], ["gene_1", "gene_2", "id"]),
        (["gene_2:age"], ["gene_2", "gene_3", "age"]),
        (["2:3"], ["gene_1", "gene_2"]),
        ([":gene_1"], ["id", "gene_1"]),
        (["5:"], ["age", "7"]),
        (["1", "age", "1"], ["id", "age"]),
        (["7"], ["7"]),
    ],
)
def test_columns_by_name_pattern_range_and_number(patterns: list[str], names: list[str]) -> None:
    assert find_columns(WIDE, patterns, "--columns") == names


def test_a_name_with_a_comma_is_a_name() -> None:
    table = made(**{"a, b": [1.0, 2.0], "a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert find_columns(table, ["a, b"], "--columns") == ["a, b"]
    assert find_columns(table, ["b,a"], "--columns") == ["b", "a"]


@pytest.mark.parametrize(
    ("pattern", "match"),
    [
        ("agee", r"t.csv has no column 'agee' \(--columns\); did you mean 'age'\?"),
        ("x_*", r"has no column 'x_\*' .*; it has id, gene_1, gene_2, gene_3, age, 7$"),
        ("9", "has no column '9'"),
        ("0", "has no column '0'"),
        ("age:size", "has no column 'age:size'"),
    ],
)
def test_columns_that_are_not_there(pattern: str, match: str) -> None:
    with pytest.raises(InvalidDataError, match=match):
        find_columns(WIDE, [pattern], "--columns")


def test_columns_are_chosen_and_dropped(table: Path, call: Call) -> None:
    assert call("fit", "data.csv", "-c", "id:c", "-d", "side,b", "--json", *QUICK).json["columns"] == ["id", "a", "c"]


def test_text_that_was_asked_for(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--columns", "side,a")
    assert "column 'side' of data.csv is text, such as" in said.complaint
    assert said.complaint.endswith("; correct the file, or leave the column out with --drop side")


def test_a_slip_among_numbers_is_named(folder: Path, call: Call) -> None:
    lines = csv_text(numbers(30)).splitlines()
    lines[17] = "0.1,oops,0.2"
    (folder / "data.csv").write_text("\n".join(lines))
    said = call("fit", "data.csv")
    assert said.complaint == (
        "prinfold fit: error: column 'b' of data.csv holds numbers, but 'oops' in line 18; correct the file, call such "
        "cells missing with --na oops, or leave the column out with --drop b"
    )
    assert call("fit", "data.csv", "--na", "oops", "--json", *QUICK).json["rows"] == 30
    assert call("fit", "data.csv", "--drop", "b", "--force", "--json", *QUICK).json["columns"] == ["a", "c"]


def test_columns_without_use_are_left_out() -> None:
    table = made(
        row=[0, 1, 2, 3],
        x=[1.0, 4, 2, 8],
        none=[np.nan] * 4,
        word=["u", "v", "u", "w"],
        some=["1", "2", "3", "x"],
        late=[5.0, 6, 7, 8],
    )
    chosen = choose_columns(table, [], [], [])
    assert chosen.names == ("x", "late")
    reasons = (
        "it counts the rows",
        "nothing in it",
        "text",
        "text among numbers, such as 'x'; --na=x calls such cells missing",
    )
    assert tuple(dict(chosen.left_out).items()) == tuple(zip(("row", "none", "word", "some"), reasons, strict=True))
    assert choose_columns(table, ["row", "x"], [], []).names == ("row", "x")


def test_a_table_of_text_alone(folder: Path, call: Call) -> None:
    (folder / "words.csv").write_text("name;town\nAnn;Rome\nBob;Oslo\n")
    assert call("fit", "words.csv").complaint == (
        "prinfold fit: error: words.csv has no column of numbers to use; it has name (text), town (text)"
    )


def test_a_column_that_is_no_number_is_shown_by_a_cell(folder: Path, call: Call) -> None:
    """Whoever meant it as numbers sees what is odd: here limits of detection, and brackets around every number."""
    (folder / "t.csv").write_text("x,y,place\n<1.5,(2.5),Rome\n<2.5,(3.5),Oslo\n")
    assert call("fit", "t.csv").complaint.endswith(
        "it has x (text, such as '<1.5'), y (text, such as '(2.5)'), place (text)"
    )


def test_limits_of_detection_are_named_with_a_way_out(folder: Path, call: Call) -> None:
    rows = [f"{'<0.01' if i % 5 == 0 else i},{i % 7},{(i * 3) % 11}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["x,y,z", *rows]))
    said = call("fit", "t.csv", *QUICK)
    assert "left out x: text among numbers, such as '<0.01'; --na='<0.01' calls such cells missing" in said.out
    assert "8 of 40 rows have missing cells and are used" in call("fit", "t.csv", *QUICK, "--na=<0.01", "-f").out


def test_a_wrong_separator_is_suspected(table: Path, call: Call) -> None:
    said = call("fit", "data.csv", "--separator", ";")
    assert said.complaint.endswith("it has id,side,a,b,c (text). Is the separator right (--separator)?")


# -------------------------------------------------------------------------------------------------------------- scaling


def test_columns_of_other_units_are_put_on_one_scale(folder: Path, call: Call) -> None:
    X = numbers(60) * [1.0, 1000.0, 1.0] + [0.0, 5000.0, 3.0]
    (folder / "data.csv").write_text(csv_text(X, "a,grams,c"))
    found = call("fit", "data.csv", "--json", *QUICK).json
    assert found["scaling"] == "standardize"
    assert found["why_scaling"].startswith("the standard deviation of grams is")
    fitted = prinfold.load("data.prinfold")
    assert list(fitted.feature_names_in_) == ["a", "grams", "c"]
    Y = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = prinfold.GTM(nodes=6, max_iter=8, tol=0, random_state=0).fit(Y)
    assert found["distance"] == pytest.approx(expected.projection_error(Y) ** 0.5, rel=1e-4)
    assert call("fit", "data.csv", "--raw", "--force", "--json", *QUICK).json["scaling"] == "raw"


@pytest.mark.parametrize(
    ("spreads", "scaling"),
    [
        ([1, 2, 5], "raw"),
        ([1, 2, 50], "standardize"),
        ([1, 500], "standardize"),
        ([1, 12], "standardize"),
        ([1, 8], "raw"),
        ([0, 3], "raw"),
        ([0.01, *[1] * 9], "raw"),
    ],
)
def test_which_scaling(spreads: list[float], scaling: str) -> None:
    """One narrow column among many, as a pixel at the edge of an image, is no reason to scale."""
    X = np.random.default_rng(0).normal(size=(200, len(spreads))) * spreads
    names = [f"x{j}" for j in range(len(spreads))]
    assert choose_scaling(None, X, names)[0].name == scaling
    assert choose_scaling("whiten", X, names) == (SCALINGS["whiten"], "as asked for")


@pytest.mark.parametrize(
    ("names", "scaling"),
    [
        (["depth (mm)", "width [mm]"], "raw"),
        (["depth (mm)", "width (cm)"], "standardize"),
        (["depth (mm)", "width"], "standardize"),
        (["400", "402.5"], "raw"),
        (["PC1", "PC2"], "raw"),
        (["x_pca_1", "x_pca_2"], "raw"),
        (["pc", "component"], "standardize"),
    ],
)
def test_columns_in_one_unit_are_not_scaled(names: list[str], scaling: str) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 500.0]
    assert choose_scaling(None, X, names)[0].name == scaling
    assert choose_scaling("standardize", X, names)[0].name == "standardize"


# -------------------------------------------------------------------------------------------------------- missing cells


@pytest.fixture
def gaps(folder: Path) -> Path:
    lines = csv_text(numbers(40)).splitlines()
    lines[3], lines[5] = "NA,1,0.5", ",,"
    (folder / "gaps.csv").write_text("\n".join(lines))
    return folder / "gaps.csv"


def test_gaps_are_kept_where_the_method_can(gaps: Path, call: Call) -> None:
    found = call("fit", "gaps.csv", "--json", *QUICK).json
    assert found["rows"] == 39
    assert "1 of 40 rows has missing cells and is used; missing cells are ignored" in found["notes"]
    assert "1 row left out: no cell has a number" in found["notes"]


def test_gaps_can_be_dropped(gaps: Path, call: Call) -> None:
    found = call("fit", "gaps.csv", "--missing", "drop", "--json", *QUICK).json
    assert (found["rows"], found["notes"]) == (38, ["2 of 40 rows left out: cells are missing"])


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--missing", "error"], "--missing keep keeps them, --missing drop leaves them out"),
        (["--method", "ukr"], ", and UKR needs every cell; use --missing drop, or a method that accepts missing cells"),
        (["--whiten"], ", and whitening needs every cell; use --missing drop"),
    ],
)
def test_gaps_that_stop(words: list[str], match: str, gaps: Path, call: Call) -> None:
    said = call("fit", "gaps.csv", *words)
    assert "2 rows of gaps.csv have missing cells, the first in line 4, column 'a'" in said.complaint
    assert match in said.complaint


def test_infinity_is_named(folder: Path, call: Call) -> None:
    (folder / "data.csv").write_text("a,b\n1,2\n3,inf\n4,5\n")
    assert "column 'b' of data.csv is infinite in line 3" in call("fit", "data.csv").complaint
    assert call("fit", "data.csv", "--na", "inf", "--quiet", *QUICK).code == 0


def test_one_row_is_too_few(folder: Path, call: Call) -> None:
    (folder / "data.csv").write_text("a,b\n1,2\n")
    assert "data.csv has 1 row to fit; a surface needs at least two" in call("fit", "data.csv").complaint


def test_few_rows_are_said_to_be_few(folder: Path, call: Call) -> None:
    (folder / "data.csv").write_text(csv_text(numbers(5)))
    assert "5 rows are few" in call("fit", "data.csv", *QUICK).out


# -------------------------------------------------------------------------------------------------------- when it fails


def test_a_program_gets_errors_too(folder: Path, call: Call) -> None:
    said = call("fit", "no.csv", "--json")
    assert said.code == 1
    assert said.json["error"].startswith("there is no file no.csv")
    assert said.complaint.startswith("prinfold fit: error: there is no file no.csv")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_there_is(
    number: int, table: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prinfold.loops import fixed_point

    steps = iter(range(10**6))
    measure = fixed_point.perf_counter

    def stop() -> float:
        if next(steps) == 5:
            signal.raise_signal(number)
        return measure()

    monkeypatch.setattr(fixed_point, "perf_counter", stop)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        said = call("fit", "data.csv", "--json")
    finally:
        signal.signal(signal.SIGINT, before)
    assert said.code == 130
    assert said.json["interrupted"] is True
    assert prinfold.load("data.prinfold").n_iter_ == said.json["iterations"]


def test_a_checkpoint_is_taken_up_by_the_same_command_and_refused_by_another(table: Path, call: Call) -> None:
    words = ("fit", "data.csv", "--checkpoint", "fit.checkpoint", "--force")
    first, again = call(*words, *QUICK), call(*words, *QUICK)
    assert (first.code, again.code) == (0, 0)
    seconds = re.compile(r"[0-9.]+ s\b")
    assert seconds.sub("", first.out) == seconds.sub("", again.out)
    other = call(*words, *QUICK, "--set", "width=2")
    assert other.code == 1
    assert "is the checkpoint of a fit with width=1.0, and this one has width=2" in other.complaint


def test_an_interrupt_elsewhere_is_not_a_traceback(table: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prinfold.cli.planning.read_table", interrupted)
    assert call("fit", "data.csv") == Said(130, "", "prinfold fit: interrupted\n")


def test_what_nobody_thought_of_is_one_line_too(table: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("prinfold.cli.planning.read_table", broken)
    monkeypatch.delenv("PRINFOLD_TRACEBACK", raising=False)
    expected = "ZeroDivisionError: division by zero (set PRINFOLD_TRACEBACK=1 to see where this comes from)"
    assert call("fit", "data.csv").complaint == f"prinfold fit: error: {expected}"
    monkeypatch.setenv("PRINFOLD_TRACEBACK", "1")
    said = call("fit", "data.csv")
    assert "Traceback" in said.err
    assert said.err.splitlines()[-1] == "prinfold fit: error: ZeroDivisionError: division by zero"


def test_a_table_too_large_is_one_line(table: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("prinfold.cli.planning.read_table", full)
    assert "there is not enough memory for this table" in call("fit", "data.csv").complaint


def test_a_place_without_permission_is_one_line(table: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:  # a superuser may write anywhere
        raise PermissionError(13, "Permission denied", "data.prinfold")

    monkeypatch.setattr("prinfold.files.write_bytes", refuse)
    assert call("fit", "data.csv", "--quiet", *QUICK).complaint == (
        "prinfold fit: error: cannot write data.prinfold: Permission denied; choose another place with --out"
    )


def test_every_command_has_examples_that_parse() -> None:
    from prinfold.cli.command import build_parser

    parser = build_parser(cli.COMMANDS)
    for name, command in cli.COMMANDS.items():
        assert command.examples
        for line in command.examples.splitlines():
            words = shlex.split(line.partition("|")[0].partition(">")[0].partition(";")[0])
            assert parser.parse_args(words[1:]).command == name


def test_help_has_the_examples(call: Call) -> None:
    for name, command in cli.COMMANDS.items():
        said = call(name, "--help")
        assert said.code == 0
        assert command.examples in said.out


def test_json_is_json(table: Path, call: Call) -> None:
    assert json.loads(call("info", "data.csv", "--json").out)["rows"] == 40


@pytest.mark.parametrize("command", [("fit",), ("fit", "--standardize"), ("compare", "--methods", "pca")])
def test_one_huge_cell_is_named_and_not_taken_for_a_missing_one(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("huge.csv").write_text("a,b\n1,2\n2.5,3\n3,1e308\n1,2\n5,8\n6,1\n", encoding="utf-8")
    said = call(command[0], "huge.csv", *command[1:])
    assert said.code == 1
    assert "column b holds values up to 1e+308, whose squares overflow" in said.complaint
    assert "--drop b" in said.complaint
