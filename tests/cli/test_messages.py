"""No message that reaches the terminal speaks of Python to someone who typed a command."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import prinfold
from prinfold.cli.console import OPTIONS, as_options
from prinfold.cli.methods import settings
from prinfold.exceptions import Advice, DegenerateWarning, InvalidParameterError, Message
from prinfold.methods import METHODS
from tests.cli.conftest import QUICK, Said, csv_text, numbers
from tests.house import PACKAGE, syntax_trees

Call = Callable[..., Said]
NOT_FITTED_HERE = {"applications", "cli", "datasets", "notebook", "plot"}
"""Folders whose messages are for people who write Python: no command fits what they have, or they are the commands."""

PYTHON_ONLY = {
    "anndata/cells.py": "tables in memory",
    "criteria.py": "select and its criteria",
    "select/__init__.py": "the same",
    "signals.py": "denoise_signal",
    "gtm/partial_fit.py": "blocks of rows",
    "gtm/mixed/tables.py": "errors of cells",
    "gtm/sequence/verbs.py": "bands about a surface",
    "validation/refusals.py": "things that are no table",
}
"""Files whose errors come of calls that no command makes."""

PYTHON = re.compile(r"n_components|random_state|mode_distance|posterior_mode|\w\(X|(?<!--set )\b[a-z]+(_[a-z]+)*='")
"""Words that nobody can type after ``prinfold``."""


@pytest.mark.parametrize(
    ("message", "options"),
    [
        (Message("is not determined", Advice("n_components", 2)), "is not determined; give --dimensions 2"),
        (
            Message("no noise across", Advice("n_components", words="lower {}"), Advice("clamping", 1)),
            "no noise across; lower --dimensions, or give --set clamping=1",
        ),
        (
            Message("empty maps", Advice("n_maps", 1), Advice("random_state", words="another {}"), "more rows"),
            "empty maps; give --set n_maps=1, another --seed, or more rows",
        ),
        (Message("lost", Advice("kernel", "gaussian", "take {}")), "lost; take --set kernel=gaussian"),
        (
            Message("It stopped.", Advice("max_iter", words="raise {} (now 5)"), Advice("tol", words="raise {}")),
            "It stopped. Raise max_iter (now 5) by --set max_iter=VALUE, or raise tol by --set tol=VALUE.",
        ),
        (
            Message("it looks like names", Advice("columns", {"a": "gaussian"}, "say {}")),
            "it looks like names; say --set \"columns={'a': 'gaussian'}\"",
        ),
        ("the table has n_features = 1; 2 row(s)", "the table has 1 column; 2 rows"),
        (Message("it says nothing", Advice("criterion", "likelihood")), "it says nothing; give --criterion likelihood"),
        ("such as --set max_iter=200", "such as --set max_iter=200"),
        ("GTM(prior_precision=evidence, width=2) is best", "GTM(prior_precision=evidence, width=2) is best"),
        ("there is no file a=b.csv", "there is no file a=b.csv"),
    ],
)
def test_advice_in_options(message: str, options: str) -> None:
    """Of a message by itself as of one in an error or a warning."""
    assert [as_options(each) for each in (message, InvalidParameterError(message), DegenerateWarning(message))] == [
        options
    ] * 3


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function of the methods and what they share, with the name of its file."""
    for path, tree in syntax_trees(PACKAGE).items():
        if path.split("/")[0] not in NOT_FITTED_HERE:
            yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def texts(nodes: list[ast.stmt]) -> Iterator[str]:
    """What is in quotes; pieces of f-strings one by one."""
    for part in nodes:
        for each in ast.walk(part):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and " " in each.value:
                yield each.value


def warned() -> Iterator[tuple[str, str]]:
    """What is in quotes in functions that warn, with the name of the file."""
    for name, node in functions():
        if any(isinstance(each, ast.Name) and each.id.endswith("Warning") for each in ast.walk(node)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield from ((name, words) for words in texts(body))


def raised() -> Iterator[tuple[str, str]]:
    """What is in quotes where an error is raised, with the name of the file."""
    for name, node in functions():
        found = [each for each in ast.walk(node) if isinstance(each, ast.Raise)]
        yield from ((name, words) for words in texts(list(found)))


def test_no_warning_speaks_python() -> None:
    said = list(warned())
    assert len(said) > 60
    assert [(name, words) for name, words in said if PYTHON.search(words)] == []


def test_no_error_speaks_python() -> None:
    """A setting that is to have another value is in the advice of a message, and not in its words."""
    said = [(name, words) for name, words in raised() if not name.endswith(tuple(PYTHON_ONLY))]
    assert len(said) > 300
    urged = rf"\b([Ss]et|[Uu]se|[Ss]ay|[Tt]ake|[Tt]ry|[Ff]it with) ({'|'.join(settings() | set(OPTIONS))})="
    assert [(name, words) for name, words in said if PYTHON.search(words) or re.search(urged, words)] == []


def test_settings_in_advice_can_be_given() -> None:
    """Each has an option of its own, or is a setting of some method, which ``--set`` takes."""
    known = {name for each in METHODS.values() for name in inspect.signature(each.cls).parameters} | set(OPTIONS)
    named = [
        (name, each.args[0].value)
        for name, node in functions()
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "Advice"
        if isinstance(each.args[0], ast.Constant)
    ]
    assert len(named) > 60
    assert [each for each in named if each[1] not in known] == []


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

    columns = read_table(Path("data-curve-latent.csv")).columns
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
