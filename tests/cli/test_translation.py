"""What estimators say reaches the terminal in options of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import prinfold
from prinfold.cli.translation import PHRASES, as_options
from tests.cli.conftest import QUICK, Said, csv_text, numbers

Call = Callable[..., Said]
SOURCE = Path(prinfold.__file__).parent
PYTHON = re.compile(r"n_components|random_state|mode_distance|posterior_mode|\w\(X|(?<!--set )\b[a-z]+(_[a-z]+)*='")
"""Words that nobody can type after ``prinfold``."""


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ("is not determined; set n_components=2", "is not determined; set --dimensions 2"),
        ("lower n_components, or set clamping=1", "lower --dimensions, or --set clamping=1"),
        ("set n_maps=1, or another random_state or partition", "--set n_maps=1, or another --seed or partition"),
        ("a wider bandwidth or kernel='gaussian' keeps them", "a wider bandwidth or --set kernel=gaussian keeps them"),
        ("Raise max_iter (now 5) or tol (now 0.1).", "Raise --set max_iter (now 5) or tol (now 0.1)."),
        ("say columns={'a': 'gaussian'}", "say --set \"columns={'a': 'gaussian'}\""),
        ("the table has n_features = 1; 2 row(s)", "the table has 1 column; 2 rows"),
        ("the criterion is low; use criterion='likelihood'", "the criterion is low; use --criterion likelihood"),
        ("such as --set max_iter=200", "such as --set max_iter=200"),
        ("GTM(prior_precision=evidence, width=2) is best", "GTM(prior_precision=evidence, width=2) is best"),
        ("there is no file a=b.csv", "there is no file a=b.csv"),
    ],
)
def test_advice_in_options(python: str, options: str) -> None:
    assert as_options(python) == options


def warned() -> Iterator[tuple[str, str]]:
    """What is in quotes in functions that warn, with the name of the file."""
    for folder in ("estimators", "algorithms", "loops", "geometry"):
        for path in sorted((SOURCE / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and any(
                    isinstance(each, ast.Name) and each.id.endswith("Warning") for each in ast.walk(node)
                ):
                    body = node.body[1:] if ast.get_docstring(node) else node.body
                    texts = [each for part in body for each in ast.walk(part) if isinstance(each, ast.Constant)]
                    yield from ((path.name, each.value) for each in texts if isinstance(each.value, str))


def test_no_warning_speaks_python() -> None:
    """Pieces of f-strings are looked at one by one, and advice as a whole is in the table of phrases."""
    said = [(name, words) for name, words in warned() if " " in words]
    assert len(said) > 30
    known = " ".join(PHRASES)
    odd = [(name, words) for name, words in said if PYTHON.search(as_options(words)) and words.strip(" .") not in known]
    assert odd == []


def test_phrases_are_those_that_are_said() -> None:
    """A phrase that nobody says any more would never be found out otherwise."""
    text = re.sub(
        r"\"\s+f?\"",
        "",
        "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.parent.name != "cli"),
    )
    assert [phrase for phrase in PHRASES if phrase not in text] == []


def test_modes_are_those_of_the_model(model: Path, call: Call) -> None:
    found = call("transform", "data.prinfold", "data.csv", "--modes", "--keep", "none", "--json").json
    assert found["columns"] == [*("row", "latent_1", "latent_2", "log_likelihood", "mode_1", "mode_2", "mode_distance")]
    from prinfold.cli.tables.reading import read_table

    columns, fitted = read_table(Path("data-latent.csv")).columns, prinfold.load(model)
    table = read_table(Path("data.csv")).columns
    X = np.stack([table[name] for name in "abc"], axis=1)
    del fitted.feature_names_in_
    np.testing.assert_allclose(np.stack([columns["mode_1"], columns["mode_2"]], axis=1), fitted.posterior_mode(X))
    np.testing.assert_allclose(columns["mode_distance"], fitted.mode_distance(X), atol=1e-12)


def test_modes_of_a_curve_are_its_likeliest_nodes(folder: Path, call: Call) -> None:
    X = numbers(20)
    (folder / "data.csv").write_text(csv_text(X))
    fitted = prinfold.ProbabilisticCurve(max_iter=2, tol=0).fit(X)
    fitted.save(folder / "curve.prinfold")
    found = call("transform", "curve.prinfold", "data.csv", "--modes", "--keep", "none", "--json").json
    assert found["columns"] == ["row", "latent_1", "log_likelihood", "mode_1"]
    from prinfold.cli.tables.reading import read_table

    columns = read_table(Path("data-latent.csv")).columns
    np.testing.assert_allclose(columns["mode_1"], fitted.posterior_mode(X)[:, 0], atol=1e-6)


def test_a_model_without_posterior_has_no_modes(folder: Path, call: Call) -> None:
    (folder / "data.csv").write_text(csv_text(numbers(20)))
    assert call("fit", "data.csv", "--method", "kmm", "--set", "max_iter=2", "-q").code == 0
    said = call("transform", "data.prinfold", "data.csv", "--modes")
    assert said.complaint.endswith("a KMM has no posterior, and so no modes; leave --modes out")
    assert said.code == 2


@pytest.mark.parametrize("words", [["--method", "pps"], ["--method", "ridge"]])
def test_notes_of_odd_tables_can_be_followed(words: list[str], folder: Path, call: Call) -> None:
    """A ball in two columns has no surface to speak of, and says so in words that can be typed."""
    (folder / "ball.csv").write_text(csv_text(np.random.default_rng(0).normal(size=(40, 2)), "a,b"))
    said = call("fit", "ball.csv", *words, *(QUICK if "ridge" not in words else ("--set", "max_iter=3")))
    notes = [line for line in said.out.splitlines() if line.startswith("note: ")]
    assert notes
    assert [line for line in notes if PYTHON.search(line)] == []
