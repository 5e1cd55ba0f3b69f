"""The house: shared parts below, families of methods side by side, what uses them above; imports point one way."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tools import house

from prinfold.methods import METHODS, Method
from tests.house import PACKAGE, ROOT, syntax_trees

FLOORS = (
    ("_typing", "exceptions", "methods"),
    ("devices",),
    ("validation", "citations"),
    ("rows",),
    ("numerics",),
    ("geometry",),
    ("latent",),
    ("files",),
    ("loops",),
    ("datasets", "metrics"),
    ("base",),
    ("basis_maps",),
    ("gtm", "pps", "kernel_manifolds", "density", "curves", "surfaces", "trees", "som", "applications"),
    ("select", "expression"),
    ("plot",),
    ("explorer",),
    ("notebook",),
    ("reporting", "anndata"),
    ("cli",),
    ("__main__",),
)
LAYERS = {noun: number for number, nouns in enumerate(FLOORS) for noun in nouns}

SLICES = LAYERS["gtm"]

# Families of methods stand side by side. The only arrows between them, with the reason for each.
ARROWS = {
    ("pps", "gtm"): "a probabilistic principal surface is a GTM with another noise",
    ("applications", "gtm"): "landscapes and monitors ask the posterior of a map",
    ("kernel_manifolds", "density"): "latent densities choose bandwidths as class densities do",
    ("curves", "density"): "a curve may begin along the longest branch of a ridge",
    ("trees", "density"): "a tree has the graph of branches that a ridge has",
    ("surfaces", "curves"): "bends of a surface are held to the noise as those of a curve are",
}

# Inside a family: compiled code at the bottom, then the maths, then the estimators. The only maths that imports
# scikit-learn, with the reason for each.
BORROWED = {
    "kernel_manifolds.feature_kernels": "kernels between pairs of rows that users know by scikit-learn's names",
    "kernel_manifolds.kmm_training": "nearest neighbours in many columns, where a tree of ours would be no better",
    "kernel_manifolds.starts": "t-SNE, a start that is asked for by name",
    "density.recipes": "a mixture to be fitted is an estimator of scikit-learn, of which a copy is fitted",
}

SHARED_MATHS = {"rows", "numerics", "geometry", "latent", "loops", "basis_maps"}
"""Shared parts of which all is maths. ``validation`` and ``base`` are none: they are what scikit-learn's contract asks
of every estimator, and stand on its checks and mixins. What they take from there they hand on to no maths."""

# Imports by name, which no other test here can follow: the only files with any, with the reason for each.
LOADERS = {
    "": "public names are loaded when they are asked for",
    "methods": "the register loads a method when it is asked for",
    "plot": "pictures are loaded when they are asked for",
    "exceptions": "an optional library, named in the error where it is missing",
    "files.steps": "steps of scikit-learn that a file holds",
    "files.atomic": "locks that not every system has",
    "explorer.notebooks": "an optional library",
    "cli.tables.arrow_text": "an optional library",
    "cli.tables.encodings": "an optional library",
    "cli.tables.memory": "an optional library",
    "cli.tables.reading": "an optional library",
    "cli.tables.rows": "an optional library",
    "cli.tables.sampling": "an optional library",
}

# The register leads to every method, past all layers: the only files below those that use methods that read it.
READERS = {
    "": "public names are those of the register",
    "citations": "papers of a method",
    "validation.refusals": "names the methods that take blocks",
}

# The only imports that may point the other way, and only inside the method named, in one file of ``base`` each.
LAZY = {"plot": "plot", "explorer": "explore", "notebook": "_summary"}

# Libraries that only some layers may touch.
HOMES = {"matplotlib": {"plot", "cli"}, "safetensors": {"files"}}

MOST_MODULES = 26
"""Files in one folder, its ``__init__`` among them."""


MOST_PARENTS = 4
"""Classes of ours above an estimator, those above its parents among them."""


@dataclass(frozen=True)
class Import:
    """One import statement, resolved to the module that it reaches."""

    source: str
    target: str
    line: int
    function: str | None
    types_only: bool = False
    """Whether type checkers alone read it: what compiled code is handed may be named so."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


class _Collector(ast.NodeVisitor):
    """Gathers imports wherever they stand, with the innermost function around them."""

    def __init__(self, source: str, *, is_package: bool, modules: set[str]) -> None:
        self.source, self.modules, self.found = source, modules, list[Import]()
        self.folder = source if is_package else source.rpartition(".")[0]
        self.functions: list[str] = []
        self.types_only = False

    def visit_If(self, node: ast.If) -> None:
        before = self.types_only
        self.types_only = before or (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
        for each in node.body:
            self.visit(each)
        self.types_only = before
        for each in node.orelse:
            self.visit(each)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            ancestor = ".".join(self.folder.split(".")[: len(self.folder.split(".")) - node.level + 1])
            base = f"{ancestor}.{base}".rstrip(".")
        for alias in node.names:
            # `from package import name` reaches a module if there is one of that name, else the package itself.
            # Outside the package only private names matter, so the name is kept.
            full = f"{base}.{alias.name}"
            self._add(full if full in self.modules or not base.startswith("prinfold") else base, node.lineno)

    def _add(self, target: str, line: int) -> None:
        function = self.functions[-1] if self.functions else None
        self.found.append(Import(self.source, target, line, function, self.types_only))


def noun(module: str) -> str:
    """The top-level module or folder that a dotted name belongs to; empty for the package itself."""
    return ".".join(module.split(".")[1:2])


def trees_by_module(package: Path) -> dict[str, ast.Module]:
    return {
        ".".join((package.name, *Path(name).with_suffix("").parts)): tree
        for name, tree in syntax_trees(package).items()
    }


def read_imports(package: Path) -> list[Import]:
    trees = trees_by_module(package)
    modules = {name.removesuffix(".__init__") for name in trees}
    found = []
    for name, tree in trees.items():
        collector = _Collector(name.removesuffix(".__init__"), is_package=name.endswith(".__init__"), modules=modules)
        collector.visit(tree)
        found += collector.found
    return found


def complaints(package: Path) -> list[str]:
    """Everything in a package that breaks the rules, in words."""
    unknown = {
        path.stem
        for path in package.iterdir()
        if (path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))) and path.stem != "__init__"
    } - set(LAYERS)
    said = [f"{name} stands in no layer: give it a number in tests/test_layers.py" for name in sorted(unknown)]

    inside: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    lazy: dict[str, set[str]] = defaultdict(set)
    for each in read_imports(package):
        home, source = noun(each.source), LAYERS.get(noun(each.source))
        if not home:
            continue  # the top-level __init__ hands out public names from everywhere
        if each.target.partition(".")[0] != "prinfold":
            said += _foreign(each, home)
            continue
        reached = noun(each.target)
        if reached == home and (package / home).is_dir():
            inside[home][each.source].add(each.target)
        elif not reached:
            # The front door stands above every layer; only what stands outside the house uses it.
            if home not in {"cli", "__main__"}:
                said.append(f"{each}: public names are for users, import from the module that defines them")
        elif home == "base" and each.function is not None and LAZY.get(reached) == each.function:
            lazy[reached].add(each.source)
        elif source == SLICES == LAYERS.get(reached):
            if (home, reached) not in ARROWS:
                said.append(f"{each}: families of methods stand apart, and no arrow leads from {home} to {reached}")
        elif source is not None and LAYERS.get(reached, -1) >= source:
            said.append(f"{each}: layer {source} may only import from smaller numbers, not {LAYERS[reached]}")

    for name, sources in lazy.items():
        if len(sources) > 1:
            said.append(f"the lazy import of {name} stands in more than one file: {', '.join(sorted(sources))}")
    for name, graph in inside.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            said.append(f"cycle inside {name}: {' → '.join(reversed(error.args[1]))}")
    return said


def _is_compiled(module: str) -> bool:
    leaf = module.rpartition(".")[2]
    return leaf == "_compiled" or (leaf.startswith("_") and leaf.endswith("_jit"))


def _foreign(each: Import, home: str) -> list[str]:
    library, *rest = each.target.split(".")
    said = []
    if home not in HOMES.get(library, {home}):
        said.append(f"{each}: only {', '.join(sorted(HOMES[library]))} may use {library}")
    if library == "numba" and not _is_compiled(each.source):
        said.append(f"{each}: numba is imported by modules of compiled code alone, named _…_jit")
    if library == "sklearn" and home != "validation" and any(part.startswith("_") for part in rest):
        said.append(f"{each}: only validation may touch scikit-learn's private helpers")
    return said


def names_imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Module, name and name here of all that ``from … import …`` takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name, alias.asname or alias.name) for alias in node.names)


def borrowed_through_others(package: Path) -> list[str]:
    """Maths that takes a name of scikit-learn from a module of ours."""
    trees = {name.removesuffix(".__init__"): tree for name, tree in trees_by_module(package).items()}
    lent = {
        (name, here)
        for name, tree in trees.items()
        for module, _, here in names_imported(tree)
        if module.partition(".")[0] == "sklearn"
    }
    estimators = estimator_modules(package)
    return [
        f"{name} takes {what} of scikit-learn from {module}: no maths imports scikit-learn"
        for name, tree in trees.items()
        if (LAYERS.get(noun(name)) == SLICES or noun(name) in SHARED_MATHS) and name not in estimators
        for module, what, _ in names_imported(tree)
        if (module, what) in lent
    ]


def modules_with(package: Path, *names: str) -> set[str]:
    """Modules in which one of these names stands, without the package's own name."""
    found = set()
    for module, tree in trees_by_module(package).items():
        words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        words |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        words |= {name for _, name, _ in names_imported(tree)}
        if words & set(names):
            found.add(module.removesuffix("__init__").rstrip(".").partition(".")[2])
    return found


def _name(node: ast.expr) -> str:
    """The last name of an expression such as ``base.Estimator`` or ``Noise[P]``."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def estimator_modules(package: Path) -> set[str]:
    """Modules that define an estimator, a class of scikit-learn's contract, or a class that one is made of."""
    bases, home = dict[str, set[str]](), dict[str, str]()
    for module, tree in trees_by_module(package).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):  # a class name means one thing in the whole package
                bases[node.name] = {_name(each) for each in node.bases}
                home[node.name] = module.removesuffix(".__init__")
    found, more = set[str](), {"BaseEstimator"}
    while more - found:
        found |= more
        more = {name for name, above in bases.items() if above & found}
    parts = found
    while parts:
        parts = {each for name in parts for each in bases.get(name, ()) if each in home} - found
        found |= parts
    return {home[name] for name in found & set(home)}


def storey_complaints(package: Path) -> list[str]:
    """Imports that break the order inside families: compiled code, then the maths, then the estimators."""
    estimators, said = estimator_modules(package), []
    for each in read_imports(package):
        library, ours = each.target.partition(".")[0], each.target.startswith("prinfold")
        inside = LAYERS.get(noun(each.source)) == SLICES or noun(each.source) in SHARED_MATHS
        if _is_compiled(each.source):
            below = _is_compiled(each.target) or noun(each.target) == "_typing"
            if ours and not below and not each.types_only:
                said.append(f"{each}: compiled code stands at the bottom, and takes other compiled code and types only")
        elif inside and each.source not in estimators:
            if each.target in estimators:
                said.append(f"{each}: the maths stands below the estimators; hand it what it needs of their settings")
            if library == "sklearn" and each.source.partition(".")[2] not in BORROWED:
                said.append(f"{each}: no maths imports scikit-learn; BORROWED has the exceptions")
    return said


def test_the_house_keeps_its_layers() -> None:
    assert complaints(PACKAGE) == []


def test_inside_a_family_compiled_code_comes_first_then_maths_then_estimators() -> None:
    assert storey_complaints(PACKAGE) == []


def test_no_maths_takes_from_scikit_learn_through_others() -> None:
    assert borrowed_through_others(PACKAGE) == []


def test_imports_by_name_stand_where_they_are_listed_only() -> None:
    assert modules_with(PACKAGE, "import_module", "__import__") == set(LOADERS)


def test_the_register_is_read_from_below_where_that_is_listed_only() -> None:
    below = {
        module
        for module in modules_with(PACKAGE, "METHODS", "manifolds", "method_of")
        if LAYERS.get(module.partition(".")[0], 0) <= SLICES and module != "methods"
    }
    assert below == set(READERS)


def test_every_method_is_taken_for_an_estimator() -> None:
    assert {method.cls.__module__ for method in METHODS.values()} <= estimator_modules(PACKAGE)


def test_every_loan_from_scikit_learn_is_used() -> None:
    used = {each.source.partition(".")[2] for each in read_imports(PACKAGE) if each.target.startswith("sklearn.")}
    assert set(BORROWED) <= used - {each.partition(".")[2] for each in estimator_modules(PACKAGE)}


def test_every_arrow_between_families_is_used() -> None:
    used = {(noun(each.source), noun(each.target)) for each in read_imports(PACKAGE)}
    assert set(ARROWS) <= used


@pytest.mark.parametrize("root", [PACKAGE, ROOT / "tests"], ids=["src", "tests"])
def test_no_folder_is_crowded(root: Path) -> None:
    folders = {path.parent for path in root.rglob("*.py")}
    crowded = {str(each.relative_to(root)): n for each in folders if (n := len(list(each.glob("*.py")))) > MOST_MODULES}
    assert crowded == {}


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path, tree in syntax_trees(PACKAGE).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_docstring_is_vague_and_no_body_is_long() -> None:
    sources = [house.Source(Path(name), "", tree) for name, tree in syntax_trees(PACKAGE).items()]
    found = {row.what: row.detail for row in house.word_rows(sources)}
    assert found["docstrings that open with “What”"] == {}
    assert found[f"function bodies over {house.LONG_BODY} lines"] == {}


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_few_classes_stand_above_an_estimator(method: Method) -> None:
    above = [each.__name__ for each in method.cls.__mro__[1:] if each.__module__.startswith("prinfold.")]
    assert len(above) <= MOST_PARENTS, f"{method.name} is made of {above}"


# The tester, tested on small made-up houses.


def build(root: Path, files: dict[str, str]) -> Path:
    package = root / "prinfold"
    package.mkdir()
    (package / "__init__.py").write_text("from prinfold.cli import main\n")
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return package


def test_a_sound_house_passes(tmp_path: Path) -> None:
    package = build(
        tmp_path,
        {
            "exceptions.py": "",
            "numerics/__init__.py": "from prinfold.numerics.sums import total\n",
            "numerics/sums.py": "from prinfold.numerics import exp\nfrom prinfold import exceptions\ntotal = exp\n",
            "numerics/exp.py": "import numpy as np\n",
            "numerics/_exp_jit.py": "import numba\n",
            "base/manifold.py": "class Base:\n    def plot(self):\n        from prinfold import plot\n",
            "gtm/estimator.py": "from prinfold.base.manifold import Base\nimport prinfold.numerics.sums\n",
            "pps/estimator.py": "from prinfold.gtm.estimator import Base\n",
            "plot/__init__.py": "import matplotlib.pyplot as plt\n",
            "cli.py": "from prinfold import GTM\n",
        },
    )
    assert complaints(package) == []


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"numerics/a.py": "import prinfold.geometry.b\n", "geometry/b.py": ""}, "layer 4 .* not 5"),
        ({"numerics/a.py": "from prinfold.geometry import b\n", "geometry/b.py": ""}, "layer 4 .* not 5"),
        ({"numerics/a.py": "from ..geometry import b\n", "geometry/b.py": ""}, "layer 4 .* not 5"),
        (
            {"numerics/a.py": "def f():\n    from prinfold import cli\n", "cli.py": ""},
            f"layer 4 .* not {LAYERS['cli']}",
        ),
        ({"metrics.py": "import prinfold.datasets\n", "datasets.py": ""}, "layer 9 .* not 9"),
        ({"numerics/a.py": "from prinfold import GTM\n"}, "public names are for users"),
        ({"colours.py": ""}, "colours stands in no layer"),
        ({"colours/red.py": ""}, "colours stands in no layer"),
        ({"numerics/a.py": "from prinfold.numerics import b\n", "numerics/b.py": "from . import a\n"}, "cycle inside"),
        (
            {
                "loops/a.py": "import prinfold.loops.b\n",
                "loops/b.py": "def f():\n    import prinfold.loops.c\n",
                "loops/c.py": "from prinfold.loops.a import x\n",
            },
            "cycle inside loops: .* → .* → ",
        ),
        ({"gtm/a.py": "from prinfold.pps import b\n", "pps/b.py": ""}, "no arrow leads from gtm to pps"),
        ({"base/a.py": "from prinfold import plot\n", "plot.py": ""}, f"layer 10 .* not {LAYERS['plot']}"),
        ({"base/a.py": "def show():\n    import prinfold.plot\n", "plot.py": ""}, f"layer 10 .* not {LAYERS['plot']}"),
        ({"gtm/a.py": "def plot():\n    import prinfold.plot\n", "plot.py": ""}, f"layer 12 .* not {LAYERS['plot']}"),
        (
            {f"base/{x}.py": "def plot():\n    import prinfold.plot\n" for x in "ab"} | {"plot.py": ""},
            "more than",
        ),
        ({"metrics.py": "def f():\n    import matplotlib.pyplot\n"}, "only cli, plot may use matplotlib"),
        ({"gtm/sums.py": "import numba\n"}, "compiled code alone"),
        ({"latent.py": "from sklearn.utils._tags import get_tags\n"}, "private helpers"),
        ({"latent.py": "from sklearn.utils.validation import _num_samples\n"}, "private helpers"),
    ],
)
def test_a_broken_house_is_caught(tmp_path: Path, files: dict[str, str], match: str) -> None:
    said = complaints(build(tmp_path, files))
    with pytest.raises(AssertionError, match=match):
        assert not said, "\n".join(said)


BASE = "from sklearn.base import BaseEstimator\nclass Base(BaseEstimator): ...\n"
ROOM = {"gtm/estimator.py": "from prinfold.base.manifold import Base\nclass GTM(Base): ...\n", "base/manifold.py": BASE}


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"gtm/_e_jit.py": "from prinfold.gtm.sums import total\n", "gtm/sums.py": ""}, "compiled code stands at"),
        ({"rows/_e_jit.py": "from prinfold import exceptions\n", "exceptions.py": ""}, "compiled code stands at"),
        ({"gtm/sums.py": "from prinfold.gtm.estimator import GTM\n"}, "the maths stands below the estimators"),
        ({"pps/sums.py": "def f():\n    import prinfold.gtm.estimator\n"}, "the maths stands below the estimators"),
        ({"gtm/sums.py": "from sklearn.base import clone\n"}, "no maths imports scikit-learn"),
        ({"gtm/sums.py": "def f():\n    import sklearn.neighbors\n"}, "no maths imports scikit-learn"),
        ({"latent/nodes.py": "from sklearn.base import clone\n"}, "no maths imports scikit-learn"),
    ],
)
def test_a_family_out_of_order_is_caught(tmp_path: Path, files: dict[str, str], match: str) -> None:
    said = storey_complaints(build(tmp_path, ROOM | files))
    assert len(said) == 1
    with pytest.raises(AssertionError, match=match):
        assert not said, said[0]


def test_a_family_in_order_passes(tmp_path: Path) -> None:
    names = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from prinfold.gtm.sums import Steps\n"
    verbs = "from sklearn.utils.validation import check_is_fitted\nclass Verbs: ...\n"
    estimator = ROOM["gtm/estimator.py"].replace("(", "(Verbs, ")
    files = {
        "gtm/_e_jit.py": names + "from prinfold.numerics._exp_jit import exp\n",
        "numerics/_exp_jit.py": "from prinfold._typing import FloatArray\n",
        "gtm/sums.py": "from prinfold.gtm import _e_jit\n",
        "gtm/verbs.py": verbs,
        "gtm/estimator.py": "from prinfold.gtm.verbs import Verbs\n" + estimator,
        "gtm/mixed.py": "from prinfold.gtm.estimator import GTM\nclass Mixed(GTM): ...\n",
    }
    assert storey_complaints(build(tmp_path, ROOM | files)) == []


def test_what_is_taken_past_the_layers_is_caught(tmp_path: Path) -> None:
    files = {
        "base/checks.py": "from sklearn.utils import check_array as checked\n",
        "gtm/sums.py": "from prinfold.base.checks import checked\n",
        "gtm/loader.py": "import importlib\nimportlib.import_module('prinfold.plot')\n",
        "gtm/reader.py": "from prinfold import methods\nmethods.METHODS['GTM']\n",
    }
    package = build(tmp_path, files)
    assert borrowed_through_others(package) == [
        "prinfold.gtm.sums takes checked of scikit-learn from prinfold.base.checks: no maths imports scikit-learn"
    ]
    assert modules_with(package, "import_module", "__import__") == {"gtm.loader"}
    assert modules_with(package, "METHODS", "manifolds", "method_of") == {"gtm.reader"}
