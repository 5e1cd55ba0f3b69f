"""Wrong calls: one line that says what was typed, what may have been meant, and what to do; the exit code is 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Said

Call = Callable[..., Said]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["paint"], "prinfold: error: there is no command 'paint'; there are fit, compare, transform"),
        (["trnsform", "x"], "prinfold: error: there is no command 'trnsform'; did you mean transform?"),
        (["data.csv"], "there is no command 'data.csv'; to fit a surface to a table: prinfold fit data.csv"),
        (["m.prinfold"], "there is no command 'm.prinfold'; to look at a model: prinfold info m.prinfold"),
        (["--colour"], "prinfold: error: there is no option --colour before a command; `prinfold --help`"),
        (["fit"], "prinfold fit: error: the following arguments are required: DATA; see `prinfold fit --help`"),
        (
            ["fit", "x.csv", "--colums", "a"],
            "prinfold fit: error: there is no option --colums; did you mean --columns?",
        ),
        (["fit", "x.csv", "--colums=a"], "there is no option --colums; did you mean --columns?"),
        (["fit", "x.csv", "--dim", "2"], "there is no option --dim; did you mean --dimensions?"),
        (["fit", "x.csv", "--zzz"], "there is no option --zzz; `prinfold fit --help` lists them"),
        (["info", "x.csv", "--label", "y"], "no option --label; it is an option of fit, compare, explore, report"),
        (["fit", "my", "data.csv"], "fit can do nothing with 'data.csv'; quote names with blanks in them"),
        (["fit", "x.csv", "--method"], "--method/-m: expected one argument; see `prinfold fit --help`"),
        (
            ["fit", "x.csv", "--missing", "dropp"],
            "--missing: takes keep, drop or error, got 'dropp'; did you mean drop?",
        ),
        (["fit", "x.csv", "--missing", "guess"], "takes keep, drop or error, got 'guess'; see `prinfold fit --help`"),
        (["fit", "x.csv", "--standardize", "--whiten"], "--whiten: not allowed with argument --standardize"),
        (["fit", "x.csv", "--json", "--quiet"], "not allowed with argument --json"),
        (["fit", "x.csv", "--dimensions", "0"], "--dimensions/-n: must be a whole number of at least 1, got '0'"),
        (["demo", "--rows", "9"], "--rows: must be a whole number of at least 10, got '9'; see `prinfold demo --help`"),
        (["demo", "--seed", "-1"], "--seed: must be a whole number, 0 or more, got '-1'"),
        (["demo", "--out", "-"], "--out - is standard output, but the demo writes a folder; name one"),
    ],
)
def test_wrong_calls_are_one_line(words: list[str], match: str, folder: Path, call: Call) -> None:
    said = call(*words)
    assert match in said.complaint
    assert said.code == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("out", "match"),
    [
        ("-", "--out - is standard output, which only transform and project write to"),
        ("m.csv", "cannot tell how to write m.csv; let its name end in .prinfold"),
        ("no/m.prinfold", "there is no folder no to write m.prinfold in; make it first"),
    ],
)
def test_places_that_no_model_can_be_written_to_are_one_line(out: str, match: str, folder: Path, call: Call) -> None:
    table = folder / "x.csv"
    table.write_text("not a table")  # which is not looked into
    said = call("fit", table.name, "--out", out)
    assert match in said.complaint
    assert said.code == 2
    assert list(folder.iterdir()) == [table]


def test_programs_get_wrong_calls_too(call: Call) -> None:
    said = call("fit", "x.csv", "--json", "--colums", "a")
    assert said.json == {"command": "fit", "error": "there is no option --colums; did you mean --columns?"}
