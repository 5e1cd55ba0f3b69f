"""The house in numbers: where files lie, how far a row walks through them, how much there is to know.

    python tools/house.py [--root CHECKOUT] [--json OUT] [--against OLD.json] [--tests]

Prints a Markdown table about the checkout, which may have any layout of folders: classes are found by name, families
by what they import. ``--json`` stores the numbers with the names behind them, and ``--against`` puts stored numbers
of another checkout beside them. ``--tests`` also times ``make test`` with an empty compile cache, which takes minutes.

- The walk is ``GTM(max_iter=1).fit(X)`` of 300 rows and 3 columns, after a fit that does the lazy imports. It
  lists the Python functions of the package in the order in which they are called on the main thread. A change of
  file is a call that lies in another file than the call before; a hop is a pair of files between which there is one.
  Comprehensions are calls up to Python 3.11 and none later, so compare numbers of one Python.
- GTM's own files are those that GTM imports, directly or not, and that no estimator outside its family imports. To
  the family belongs what imports the file of the noise protocol.
- The body of a function begins after its docstring. A function that does nothing returns a constant or an argument.
- A method is known to a file that holds the name of its class. Its own file, this one and stored numbers do not count.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = "prinfold"
METHOD = "PolygonalCurve"  # a method like any other, for the count of places that know of one
LONG_BODY = 40
MANY_VERBS = 8
IMPORT_RUNS = 5

NOISE_NOUNS = ("noise", "nodes", "sums", "statistics", "parameters")
"""Variables that hold a noise or what belongs to it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Row(NamedTuple):
    """A row of the table: what is measured, what was found, what HOUSE.md wants, and the names behind the number."""

    what: str
    found: str
    wanted: str = ""
    detail: Any = None


class Source(NamedTuple):
    """A file of the package: its path within the package, its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Dotted name under which the file is imported."""
        parts = self.path.with_suffix("").parts
        return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    @property
    def lines(self) -> int:
        """Lines of text, with comments and blank ones."""
        return len(self.text.splitlines())


def read_sources(package: Path) -> list[Source]:
    """Every Python file of a package, parsed."""
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Source(path.relative_to(package), text, ast.parse(text, filename=str(path))))
    return found


# ------------------------------------------------------------------------------------------------------ where files lie


def crowded_folders(sources: list[Source], root: Path) -> list[Row]:
    """Files per folder, of the package and of the tests."""
    counts = Counter(source.path.parent.as_posix() for source in sources)
    tests = Counter(path.parent.relative_to(root).as_posix() for path in (root / "tests").rglob("*.py"))
    return [
        Row("files in one folder", _largest(counts, "/"), "at most about 25", dict(counts)),
        Row("test files in one folder", _largest(tests, "/"), "at most about 25", dict(tests)),
        Row("files of the package", f"{len(sources)} with {sum(source.lines for source in sources)} lines"),
    ]


def own_files(sources: list[Source], estimators: dict[str, str]) -> list[Row]:
    """Files of GTM's own maths; ``estimators`` gives the module of each public estimator."""
    graph = import_graph(sources)
    noise = next((source.module for source, _ in _classes(sources, "Noise")), estimators["GTM"])
    reached = {name: _reachable(graph, module) for name, module in estimators.items()}
    others = [modules for modules in reached.values() if noise not in modules and estimators["GTM"] not in modules]
    own = sorted(reached["GTM"].difference(*others))
    folders = Counter(module.split(".")[1] for module in own)
    return [Row("files of GTM's own maths", f"{len(own)} in {_largest(folders, '/', 9)}", "one folder", own)]


def import_graph(sources: list[Source]) -> dict[str, set[str]]:
    """The modules of the package that each imports, anywhere in the file but not for types alone."""
    modules = {source.module for source in sources}
    graph = {}
    for source in sources:
        targets = set()
        for node in _without_types(source.tree):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets |= {name if name in modules else str(node.module) for name in names}
        # The package itself hands out public names from everywhere, which says nothing about who needs what.
        graph[source.module] = (targets & modules) - {PACKAGE}
    return graph


def _without_types(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree, but for what stands under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from _without_types(child)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found, open_ends = {start}, [start]
    while open_ends:
        new = graph[open_ends.pop()] - found
        found |= new
        open_ends += new
    return found


# -------------------------------------------------------------------------------------------------- the walk of one row


def record_walk(**settings: Any) -> list[tuple[str, int, str]]:
    """File within the package, line and name of every function of ours that a short fit of a GTM calls, in order."""
    import numpy as np

    import prinfold

    home = f"{Path(inspect.getfile(prinfold)).resolve().parent}{os.sep}"
    X = np.random.default_rng(0).normal(size=(300, 3))
    calls = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(home):
            code = frame.f_code
            calls.append((Path(code.co_filename[len(home) :]).as_posix(), code.co_firstlineno, code.co_name))

    prinfold.GTM(max_iter=1, random_state=0, **settings).fit(X)
    sys.setprofile(note)
    prinfold.GTM(max_iter=1, random_state=0, **settings).fit(X)
    sys.setprofile(None)
    return calls


def walk_rows(
    sources: list[Source], calls: list[tuple[str, int, str]], from_plane: list[tuple[str, int, str]]
) -> list[Row]:
    """How far a row walks: files, hops and changes of file, the longest file, and calls that do nothing.

    Defaults do more than they did, since several starts are compared; from the principal plane both do the same.
    """
    files = [file for file, _, _ in calls]
    lengths = Counter({s.path.as_posix(): s.lines for s in sources if s.path.as_posix() in files})
    idle = idle_functions(sources)
    asked = sorted({f"{file}: {name}" for file, line, name in calls if (file, line, name) in idle})
    return [
        Row("walk of a row, `GTM(max_iter=1).fit(X)`", _describe_walk(calls), "28 files, 110 hops", dict(lengths)),
        Row('the same with `init="pca"`', _describe_walk(from_plane), ""),
        Row("longest files on the walk", _largest(lengths), "500 lines"),
        Row("functions on the walk that do nothing", str(len(asked)), "none of a feature that is off", asked),
    ]


def _describe_walk(calls: list[tuple[str, int, str]]) -> str:
    files = [file for file, _, _ in calls]
    changes = [pair for pair in pairwise(files) if pair[0] != pair[1]]
    found = f"{len(set(files))} files, {len(set(changes))} hops"
    return f"{found}, {len(changes)} changes of file in {len(calls)} calls"


def idle_functions(sources: list[Source]) -> set[tuple[str, int, str]]:
    """File, first line and name of the functions that only return a constant or an argument."""
    found = set()
    for source in sources:
        for node in _functions(source.tree):
            line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if _is_idle(_body(node)):
                found.add((source.path.as_posix(), line, node.name))
    return found


def _is_idle(body: list[ast.stmt]) -> bool:
    if len(body) != 1 or not isinstance(body[0], ast.Pass | ast.Return):
        return not body
    value = getattr(body[0], "value", None)
    empty = value is not None and ast.unparse(value) in {"()", "[]", "{}"}
    return value is None or empty or isinstance(value, ast.Constant | ast.Name)


# ------------------------------------------------------------------------------------------------------------ the tower


def record_towers() -> dict[str, Any]:
    """Of each public estimator its module and the methods of every class of ours that it stands on, itself first."""
    from sklearn.base import BaseEstimator

    import prinfold

    public = [getattr(prinfold, name) for name in prinfold.__all__]
    return {
        each.__name__: {
            "module": each.__module__,
            "classes": {
                kind.__name__: [name for name, value in vars(kind).items() if inspect.isfunction(value)]
                for kind in each.__mro__
                if kind.__module__.split(".")[0] == PACKAGE
            },
        }
        for each in public
        if inspect.isclass(each) and issubclass(each, BaseEstimator)
    }


def tower_rows(towers: dict[str, Any]) -> list[Row]:
    """Classes of ours above an estimator, their methods and the hooks that are overridden among them."""
    heights = Counter({name: len(tower["classes"]) - 1 for name, tower in towers.items()})
    own, *above = towers["GTM"]["classes"].values()
    defined = Counter(name for names in (own, *above) for name in names)
    hooks = sorted(name for name, n in defined.items() if n > 1 and name.startswith("_") and not name.endswith("__"))
    methods = f"{sum(map(len, above))} and {len(own)} of its own"
    return [
        Row("classes of ours above `GTM`", str(heights["GTM"]), "4", list(towers["GTM"]["classes"])[1:]),
        Row("classes of ours above `GTMSequence`", str(heights["GTMSequence"]), "4"),
        Row("classes of ours above any estimator", _largest(heights), "4", dict(heights)),
        Row("methods of the classes above `GTM`", methods),
        Row("hooks overridden in `GTM` and above", str(len(hooks)), "", hooks),
    ]


# ------------------------------------------------------------------------------------------------------------ the seams


def seam_rows(sources: list[Source]) -> list[Row]:
    """Verbs of a noise and of what belongs to it, names that are looked up on them, and protocols with many verbs."""
    verbs = {node.name: _verbs(node) for _, node in _classes(sources) if _is_protocol(node)}
    bases = {node.name: _base_names(node) for _, node in _classes(sources) if node.name in verbs}
    more = sorted({verb for name, kinds in bases.items() if kinds & {"Noise", "Nodes", "Sums"} for verb in verbs[name]})
    # Parameters are a class, whose fields are data; protocols have no data, and all that they name is asked for.
    parts = {name: verbs.get(name, []) for name in ("Nodes", "Sums")}
    parts |= {"Parameters": [name for _, node in _classes(sources, "Parameters") for name in _methods(node)]}
    capabilities = [name for _, node in _classes(sources, "Capabilities") for name in _fields(node)]
    looked_up = sorted({name for source in sources for noun in NOISE_NOUNS for name in _asked_of(source.tree, noun)})
    many = Counter({name: len(found) for name, found in verbs.items() if len(found) > MANY_VERBS})
    return [
        Row("verbs of a noise", str(len(verbs.get("Noise", ()))), str(MANY_VERBS), verbs.get("Noise")),
        Row(
            "verbs of its parameters, nodes and sums",
            ", ".join(str(len(parts[name])) for name in ("Parameters", "Nodes", "Sums")),
            f"at most {MANY_VERBS}",
            parts,
        ),
        Row("more verbs in protocols that extend it", str(len(more)), "declared capabilities", more),
        Row("declared capabilities of a noise", str(len(capabilities)), "", capabilities),
        Row("names asked of a noise by `hasattr` or `getattr`", str(len(looked_up)), "0", looked_up),
        Row(f"protocols with more than {MANY_VERBS} verbs", f"{len(many)}: {_largest(many)}", "0", dict(many)),
    ]


def _is_protocol(node: ast.ClassDef) -> bool:
    return "Protocol" in _base_names(node)


def _base_names(node: ast.ClassDef) -> set[str]:
    bare = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {ast.unparse(base).split(".")[-1] for base in bare}


def _verbs(node: ast.ClassDef) -> list[str]:
    """Public methods and fields that a class declares."""
    names = [each.name for each in node.body if isinstance(each, Function)]
    names += [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
    return [name for name in names if not name.startswith("_")]


def _methods(node: ast.ClassDef) -> list[str]:
    """Public methods and properties of a class."""
    return [each.name for each in node.body if isinstance(each, Function) and not each.name.startswith("_")]


def _fields(node: ast.ClassDef) -> list[str]:
    """Fields of a dataclass that may be None."""
    typed = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return [ast.unparse(each.target) for each in typed if "None" in ast.unparse(each.annotation)]


def _asked_of(tree: ast.Module, noun: str) -> Iterator[str]:
    """Literal names that are looked up on a variable or attribute called ``noun``."""
    for call in _calls(tree, {"hasattr", "getattr"}):
        name = call.args[1] if len(call.args) > 1 else None
        if isinstance(name, ast.Constant) and ast.unparse(call.args[0]).split(".")[-1] == noun:
            yield str(name.value)


def question_rows(sources: list[Source]) -> list[Row]:
    """Calls that ask what kind of thing one holds, with the files that ask most."""
    rows = []
    for name in ("isinstance", "getattr", "hasattr"):
        counts = Counter({source.path.as_posix(): len(list(_calls(source.tree, {name}))) for source in sources})
        rows.append(
            Row(f"`{name}`", str(counts.total()), "none about a variant of a seam", dict(counts.most_common(10)))
        )
    return rows


# ------------------------------------------------------------------------------------------------------------ the words


def word_rows(sources: list[Source]) -> list[Row]:
    """Class names with several meanings, statements, docstrings that open with "What", and long functions."""
    homes = defaultdict(list)
    for source, node in _classes(sources):
        homes[node.name].append(source.path.as_posix())
    shared = Counter({name: len(set(files)) for name, files in homes.items() if len(set(files)) > 1})
    nodes = [node for source in sources for node in ast.walk(source.tree)]
    statements = sum(isinstance(node, ast.stmt) for node in nodes)
    imports = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)
    texts = sum(isinstance(node, ast.Expr) and _is_word(node.value) for node in nodes)
    what = Counter({source.path.as_posix(): _vague_docstrings(source.tree) for source in sources})
    long = Counter()
    for source in sources:
        for node in _functions(source.tree):
            body = _body(node)
            long[f"{source.path.as_posix()}: {node.name}"] = body[-1].end_lineno - body[0].lineno + 1 if body else 0
    long = Counter({name: lines for name, lines in long.items() if lines > LONG_BODY})
    return [
        Row("class names with several meanings", f"{len(shared)}: {_largest(shared, '', 10)}", "0", dict(shared)),
        Row("statements in `src`", str(statements), "clearly fewer"),
        Row("… of them docstrings, and imports", f"{texts} and {imports}"),
        Row("comparisons with a word", str(sum(map(_compares_words, nodes)))),
        Row("docstrings that open with “What”", str(what.total()), "0", {k: n for k, n in what.items() if n}),
        Row(f"function bodies over {LONG_BODY} lines", f"{len(long)}: {_largest(long)}", "", dict(long)),
    ]


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _compares_words(node: ast.AST) -> bool:
    """Whether something is held against a text, or looked for in a row of texts."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    sides += [part for each in sides if isinstance(each, ast.Tuple | ast.List | ast.Set) for part in each.elts]
    return any(_is_word(each) and each.value and each.value != "__main__" for each in sides)


def _vague_docstrings(tree: ast.Module) -> int:
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | Function))
    return sum((ast.get_docstring(node) or "").startswith("What") for node in documented)


def method_rows(root: Path, towers: dict[str, Any]) -> list[Row]:
    """Files beside its own that know of a method by name: of one method, and in the median of all."""
    texts = {path: text for path, text in _tracked_texts(root) if not path.startswith("tools/")}
    known = {}
    for name, tower in towers.items():
        own = f"src/{tower['module'].replace('.', '/')}"
        name_alone = re.compile(rf"\b{name}\b")
        known[name] = [
            path
            for path, text in texts.items()
            if name_alone.search(text) and path not in {f"{own}.py", f"{own}/__init__.py"}
        ]
    shared = sorted(set.intersection(*map(set, known.values())))
    in_source = {name: [path for path in paths if path.startswith("src/")] for name, paths in known.items()}
    median = statistics.median(map(len, known.values()))
    median_in_source = statistics.median(map(len, in_source.values()))
    return [
        Row(f"places that know of `{METHOD}`", str(len(known[METHOD])), "8 or fewer", known[METHOD]),
        Row("… of them in `src`", str(len(in_source[METHOD])), "", in_source[METHOD]),
        Row("files that know of every method", str(len(shared)), "8 or fewer", shared),
        Row("places that know of a method, median of all", f"{median:g}, in `src` {median_in_source:g}"),
    ]


def _tracked_texts(root: Path) -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        if (
            path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".cff", ".txt", ".html", ".js", ".rst"}
            and path.is_file()
        ):
            yield name, path.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------- the time


def import_rows(environment: dict[str, str]) -> list[Row]:
    """Seconds of the processor until the package and until GTM are imported, the median of several processes."""
    rows = []
    for statement in (f"import {PACKAGE}", f"from {PACKAGE} import GTM"):
        program = f"import time; t = time.process_time(); {statement}; t = time.process_time() - t; import sys; "
        program += f"print(t, sum(name.split('.')[0] == {PACKAGE!r} for name in sys.modules))"
        told = [_python(["-c", program], environment).split() for _ in range(IMPORT_RUNS)]
        seconds = statistics.median(float(each[0]) for each in told)
        rows.append(
            Row(f"`{statement}`, processor time", f"{seconds:.2f} s, {told[0][1]} modules of ours", "as it was")
        )
    return rows


def test_rows(root: Path) -> list[Row]:
    """Minutes that the quick tests take with an empty compile cache."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        result = subprocess.run(["make", "test"], cwd=root, env=os.environ | {"NUMBA_CACHE_DIR": folder}, check=False)
        minutes = (time.perf_counter() - begun) / 60
    ended = "" if result.returncode == 0 else " (failed)"
    return [Row("quick tests, cold compile cache", f"{minutes:.1f} minutes{ended}", "4 minutes")]


# --------------------------------------------------------------------------------------------------------- what is used


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _classes(sources: list[Source], name: str | None = None) -> Iterator[tuple[Source, ast.ClassDef]]:
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and name in {None, node.name}:
                yield source, node


def _calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def _body(node: Function) -> list[ast.stmt]:
    """Statements of a function after its docstring."""
    return node.body[ast.get_docstring(node) is not None :]


def _largest(counts: Counter[str], ending: str = "", n: int = 3) -> str:
    """The ``n`` largest of a count, with their names."""
    return ", ".join(f"`{name}{ending}` {count}" for name, count in counts.most_common(n))


def _python(arguments: list[str], environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout


# ------------------------------------------------------------------------------------------------------------ the table


def measure(root: Path, *, tests: bool = False) -> list[Row]:
    """Every row of the table for one checkout."""
    sources = read_sources(root / "src" / PACKAGE)
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    # In a process of its own, so that it is the checkout's package and not the installed one that walks.
    inside = json.loads(_python([__file__, "--inside"], environment))
    towers = inside["towers"]
    return [
        *crowded_folders(sources, root),
        *own_files(sources, {name: tower["module"] for name, tower in towers.items()}),
        *walk_rows(sources, *([tuple(call) for call in inside[name]] for name in ("calls", "from_plane"))),
        *tower_rows(towers),
        *seam_rows(sources),
        *question_rows(sources),
        *word_rows(sources),
        *method_rows(root, towers),
        *import_rows(environment),
        *(test_rows(root) if tests else []),
    ]


def markdown(rows: Iterable[Row], before: dict[str, Any] | None) -> str:
    """The table, with a column of older numbers where there are any."""
    titles = ["what a newcomer meets", *(["before", "after"] if before else ["today"]), "wanted"]
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        old = [before.get(row.what, {}).get("found", "–")] if before else []
        lines.append([row.what, *old, row.found, row.wanted])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parents[1], help="the checkout to measure"
    )
    parser.add_argument("--json", type=Path, help="where to store the numbers")
    parser.add_argument("--against", type=Path, help="stored numbers of another checkout")
    parser.add_argument("--tests", action="store_true", help="also time make test")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        print(json.dumps({"calls": record_walk(), "from_plane": record_walk(init="pca"), "towers": record_towers()}))
        return
    rows = measure(asked.root.resolve(), tests=asked.tests)
    before = json.loads(asked.against.read_text(encoding="utf-8")) if asked.against else None
    print(markdown(rows, before))
    if asked.json:
        stored = {row.what: row._asdict() for row in rows}
        asked.json.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
