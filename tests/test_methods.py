"""The register of methods: complete, in step with the package and the documentation, and enough to add a method."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import prinfold
from prinfold import cite, cli, compare, explore, files, load, save
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.exceptions import ModelFileError, OutOfDomainError
from prinfold.explorer.decoders import SURFACES, decoder_of
from prinfold.loops import StopReason
from prinfold.methods import METHODS, Method, manifolds, method_of, register
from tests.house import ROOT, public_objects
from tests.properties.cases import CASES

NAMES = sorted(METHODS)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_public_estimator_is_registered() -> None:
    found = {each.__name__ for _, each in public_objects() if inspect.isclass(each) and issubclass(each, BaseEstimator)}
    assert found == set(METHODS)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_what_its_class_is(name: str) -> None:
    method = METHODS[name]
    assert getattr(prinfold, name) is method.cls
    assert method.cls.__module__ == method.module
    assert issubclass(method.cls, PrincipalManifold) == method.is_manifold
    assert not method.is_manifold or method.surface in SURFACES
    assert not method.is_manifold or method.takes_blocks == getattr(method.cls(), "_takes_blocks", False)
    assert method.takes_text == ("_column_kinds" in vars(method.cls))
    for settings in method.compared_settings:
        method.cls().set_params(**settings)


def test_type_checkers_see_every_method_where_the_register_has_it() -> None:
    tree = ast.parse(text("src/prinfold/__init__.py"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    shown = {alias.name: node.module for node in imports for alias in node.names}
    assert {name: shown.get(name) for name in METHODS} == {name: each.module for name, each in METHODS.items()}


def test_short_names_are_nobody_elses() -> None:
    short = [each.short for each in METHODS.values() if each.short]
    assert len({*short, *(name.lower() for name in METHODS)}) == len(short) + len(METHODS)


def test_every_manifold_has_a_case_for_the_theorems() -> None:
    assert {each.name for each in manifolds()} <= {type(case.make()).__name__ for case in CASES}


def missing_files(method: Method) -> list[str]:
    """Files of its own that a method lacks, each with its path."""
    folder, _, leaf = method.module.removeprefix("prinfold.").replace(".", "/").rpartition("/")
    wanted = {
        "tests": (f"tests/{folder}/test_{leaf}.py",),
        "guide page": (f"docs/guide/{method.page}.md",),
        "example": (f"examples/*/plot_{method.noun}.py",),
        "benchmark": (f"benchmarks/**/{method.page}.py", f"benchmarks/{method.page}/__main__.py"),
    }
    return [
        f"{method.name} has no {what}: write {' or '.join(places)}"
        for what, places in wanted.items()
        if not any(any(ROOT.glob(place)) for place in places)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_all_files_of_its_own(name: str) -> None:
    missing = missing_files(METHODS[name])
    assert not missing, "\n".join(missing)  # pytest would shorten a list


CHANGED = {
    "src/prinfold/methods.py": '"{name}"',
    "src/prinfold/__init__.py": '"{name}"',
    "tests/properties/cases.py": '    "{name}',
    "tests/fixtures/answers.json": '"{name}"',
    "docs/api/index.md": "`{name}`",
    "docs/gallery.py": '"plot_{noun}"',
    "docs/guide/which.md": "grid-item-card}} `{name}`",
    "docs/explanation/index.md": "guide/{page}.md",
    "README.md": "`{name}`",
    "CHANGELOG.md": "`{name}`",
}
"""All that a new method has to change beside files of its own, and what stands in each."""


def missing_words(method: Method) -> list[str]:
    """Files in which nothing stands about a method, each with what is missing."""
    wanted = {
        file: words.format(name=method.name, noun=method.noun, page=method.page) for file, words in CHANGED.items()
    }
    return [
        f"{file} has nothing about {method.name}: it lacks {words.strip()}"
        for file, words in wanted.items()
        if not re.search(rf"(?<![A-Za-z]){re.escape(words)}(?![A-Za-z])", text(file))
    ]


def test_contributing_names_every_file_that_changes_with_a_new_method() -> None:
    advice = text("CONTRIBUTING.md").partition("## Adding a method")[2].partition("\n## ")[0]
    assert [file for file in CHANGED if f"`{file}`" not in advice] == []


@pytest.mark.parametrize("name", [each.name for each in manifolds()])
def test_every_manifold_is_where_a_new_one_would_be(name: str) -> None:
    missing = missing_words(METHODS[name])
    assert not missing, "\n".join(missing)


def test_a_new_method_is_told_all_that_it_lacks(ribbon: Method) -> None:
    told = [*missing_files(ribbon), *missing_words(ribbon)]
    assert len(told) == 4 + len(CHANGED)
    assert "Ribbon has no example: write examples/*/plot_ribbon.py" in told
    assert 'docs/gallery.py has nothing about Ribbon: it lacks "plot_ribbon"' in told


def test_cards_of_which_are_about_methods_and_nothing_else() -> None:
    cards = re.findall(r"grid-item-card\} (.+)", text("docs/guide/which.md"))
    named = [name for card in cards for name in re.findall(r"`(\w+)`", card)]
    assert sorted(named) == NAMES
    prose = set(re.findall(r"`([A-Z]\w*[a-z]\w*)`", text("docs/guide/which.md")))
    known = {*prinfold.__all__, *vars(prinfold.exceptions), "Pipeline", "SimpleImputer", "StandardScaler"}
    assert prose <= known


def test_the_readme_lists_methods_and_nothing_else() -> None:
    table = re.search(r"^## Which method when\n(.*?)^\[", text("README.md"), re.MULTILINE | re.DOTALL)
    assert table is not None
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", table[1], re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(METHODS)


# What adding a method takes: a class, and one entry.


RIBBON = """
import numpy as np
from prinfold.base.callbacks import fit_method
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.unique_rows import centered_rows
from prinfold.files import storable
from prinfold.files.kinds import numbers
from prinfold.latent import line
from prinfold.loops import Last, run_fixed_point
from prinfold.validation.settings import check_parameters, flag, integer, real
from prinfold.validation.tables import forget

@storable
class Ribbon(PrincipalManifold):
    'A toy method: the straight line of the first principal component, from z = -1 to z = 1.'

    _constraints = {"nodes": integer(2), "max_iter": integer(0), "tol": real(0), "verbose": integer(0) | flag}
    _stored = PrincipalManifold._stored | {"middle_": numbers("n_features_in_"), "reach_": numbers("n_features_in_")}
    _dimension = 1

    def __init__(self, nodes=20, *, max_iter=1, tol=0.0, verbose=0):
        self.nodes, self.max_iter, self.tol, self.verbose = nodes, max_iter, tol, verbose

    @fit_method
    def fit(self, X, y=None, sample_weight=None):
        check_parameters(self, self._constraints)
        forget(self)
        table, unique, middle, rows = centered_rows(self, X, sample_weight)

        def first_axis():
            axis = np.linalg.svd(rows * np.sqrt(unique.weight)[:, None], full_matrices=False)[2][0]
            return axis * np.sign(axis[np.abs(axis).argmax()]) * np.abs(rows @ axis).max()

        def loop(**settings):
            objective = lambda reach: {"objective": float(np.square(rows @ reach).sum() / (reach @ reach))}
            return run_fixed_point(first_axis, lambda reach: reach, objective, rule=Last(), **settings)

        latent = line(self.nodes)
        self._train_with_callbacks(table, lambda reach: {"latent_": latent, "middle_": middle, "reach_": reach}, loop)
        return self

    def transform(self, X):
        return self._latent_of(self._table(X))

    def _point(self, Z):
        return self.middle_ + Z * self.reach_

    def _jacobian(self, Z):
        return np.repeat(self.reach_[None, :, None], len(Z), axis=0)
"""


@pytest.fixture
def ribbon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Method]:
    """The toy in a module of its own, registered for the time of a test."""
    (tmp_path / "toy_ribbon.py").write_text(RIBBON, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(files, "_classes", dict(files._classes))  # which @storable adds to
    yield register(Method("Ribbon", "toy_ribbon", noun="ribbon", cites=("svensen1998",), surface="latent", short="rib"))
    METHODS.pop("Ribbon", None)
    sys.modules.pop("toy_ribbon", None)


@pytest.fixture(scope="module")
def rows() -> Any:
    t = np.random.default_rng(0).uniform(-1, 1, 80)
    return np.stack([t, t**2, 0.1 * np.random.default_rng(1).normal(size=80)], axis=1)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_new_method_is_known_everywhere_from_its_entry_alone(ribbon: Method, rows: Any, tmp_path: Path) -> None:
    made = ribbon.cls
    assert method_of(made) is ribbon
    assert sys.modules["prinfold"].__getattr__("Ribbon") is made
    vars(prinfold).pop("Ribbon")
    model = made().fit(rows)
    assert [each.key for each in cite(model).references] == ["prinfold", "svensen1998"]
    explore(model, rows, tmp_path / "map.html")
    assert decoder_of(model)["kind"] == "grid"
    assert "Ribbon" in str(compare(rows, methods=["Ribbon", "PCA"], n_components=1, folds=2))


def test_what_the_contract_asks_of_a_method_is_enough_for_all_verbs(ribbon: Method, rows: Any, tmp_path: Path) -> None:
    model = ribbon.cls().fit(rows)
    middle = rows.mean(axis=0)
    axis = np.linalg.svd(rows - middle, full_matrices=False)[2][0]
    onto = middle + np.outer((rows - middle) @ axis, axis)
    Z = model.transform(rows)
    for found in (model.inverse_transform(Z), model.project(rows), model.reconstruct(rows)):
        np.testing.assert_allclose(found, onto, atol=1e-9)
    squared = np.square(rows - onto).sum(axis=1)
    np.testing.assert_allclose([model.projection_error(rows), -model.score(rows)], squared.mean(), rtol=1e-9)
    length = np.linalg.norm(model.jacobian(Z)[:, :, 0], axis=1)
    np.testing.assert_allclose(length, np.abs((rows - middle) @ axis).max(), rtol=1e-9)
    np.testing.assert_allclose(model.magnification(Z).factor, length, rtol=1e-9)
    mesh = model.mesh()
    np.testing.assert_allclose(model.inverse_transform(mesh.latent), mesh.vertices, atol=1e-12)
    with pytest.raises(OutOfDomainError, match="extrapolate=True"):
        model.inverse_transform([[3.0]])
    with pytest.raises(ValueError, match="nodes"):
        ribbon.cls(nodes=1).fit(rows)
    model.save(tmp_path / "ribbon.prinfold")
    again = load(tmp_path / "ribbon.prinfold")
    np.testing.assert_array_equal(again.transform(rows), Z)
    assert again.history_ == model.history_
    still = ribbon.cls(max_iter=12, tol=0.0).fit(rows)  # a step that changes nothing is gone on with like any other
    assert (still.n_iter_, still.converged_, still.stop_reason_) == (12, False, StopReason.MAX_ITER)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_file_finds_its_class_by_the_register(ribbon: Method, rows: Any, tmp_path: Path) -> None:
    model, path = ribbon.cls().fit(rows), tmp_path / "ribbon.prinfold"
    save(model, path)
    sys.modules.pop("toy_ribbon")  # as in a process that has not imported it yet
    files._classes.pop("Ribbon")
    METHODS.pop("Ribbon")
    with pytest.raises(ModelFileError, match="Ribbon"):
        load(path)
    register(ribbon)
    np.testing.assert_array_equal(load(path).transform(rows), model.transform(rows))


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("word", ["ribbon", "rib"])
def test_a_new_method_can_be_typed(ribbon: Method, rows: Any, tmp_path: Path, word: str) -> None:
    table, out = tmp_path / "rows.csv", tmp_path / "rows.prinfold"
    np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
    assert cli.main(["fit", str(table), "--method", word, "--out", str(out), "--quiet"]) == 0
    assert type(load(out)) is ribbon.cls
