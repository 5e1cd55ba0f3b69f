"""The house: shared parts below, families of methods side by side, what uses them above; imports point one way."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

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

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


class _Collector(ast.NodeVisitor):
    """Gathers imports wherever they stand, with the innermost function around them."""

    def __init__(self, source: str, *, is_package: bool, modules: set[str]) -> None:
        self.source, self.modules, self.found = source, modules, list[Import]()
        self.folder = source if is_package else source.rpartition(".")[0]
        self.functions: list[str] = []

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
        self.found.append(Import(self.source, target, line, self.functions[-1] if self.functions else None))


def noun(module: str) -> str:
    """The top-level module or folder that a dotted name belongs to; empty for the package itself."""
    return ".".join(module.split(".")[1:2])


def read_imports(package: Path) -> list[Import]:
    trees = {
        ".".join((package.name, *Path(name).with_suffix("").parts)): tree
        for name, tree in syntax_trees(package).items()
    }
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


def test_the_house_keeps_its_layers() -> None:
    assert complaints(PACKAGE) == []


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
