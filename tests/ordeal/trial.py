"""What a user would do with a case, and what is wrong with the outcome: nothing, a named refusal, or a finding."""

from __future__ import annotations

import copy
import os
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from inspect import signature
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import prinfold
from prinfold import Checkpoint, explore, load, report, save
from prinfold.cli.tables.writing import write_table
from prinfold.exceptions import CheckpointError, PrinfoldError
from prinfold.files import storable
from prinfold.files.atomic import write_bytes
from prinfold.reporting.pictures import RECIPES
from tests.kernel_sizes import COMPILED, lowered
from tests.ordeal import model_files, tables
from tests.ordeal.functions import OBJECTS, call, functions
from tests.ordeal.settings import value_of
from tests.properties.cases import CASES

NAMED = (PrinfoldError, NotFittedError)
"""Errors that say what to do."""

VERBS = ("transform", "predict", "predict_proba", "project", "reconstruct", "score_samples", "impute", "score")
"""What is asked of a fitted model, where it has it."""


def questions_of(cls: Any) -> list[str]:
    """Those of the verbs that a class has."""
    return [verb for verb in VERBS if hasattr(cls, verb)]


class Outcome(NamedTuple):
    """The end of a case: ``fine``, ``refused``, ``void`` where there is no such case, or what went wrong and where."""

    verdict: str
    detail: str = ""
    place: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether something went wrong."""
        return self.verdict not in {"fine", "refused", "void"}


class Wrong(Exception):
    """Something that is no error to Python, and wrong all the same."""


def attempt(case: dict[str, Any], module: str, folder: Path) -> Outcome:
    """Run one case, in this process."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with lowered(COMPILED if case.get("compiled", False) else {}):
                KINDS[case["kind"]](case, _class(case["method"], module), folder)
            outcome = Outcome("fine")
        except Wrong as wrong:
            outcome = Outcome(*wrong.args)
        except NAMED as error:
            outcome = Outcome("refused" if str(error).strip() else "no message", str(error)[:300], _place(error))
        except MemoryError as error:
            outcome = Outcome("out of memory", str(error)[:300], _place(error))
        except Exception as error:
            outcome = Outcome("raw error", f"{type(error).__name__}: {error}"[:300], _place(error))
    leaks = [each for each in said if issubclass(each.category, RuntimeWarning)]
    if leaks and not outcome.is_finding:
        return Outcome("leaked warning", str(leaks[0].message)[:300], _short(leaks[0].filename))
    return outcome


def _class(name: str, module: str) -> Any:
    """A method's class; files may hold it, as they may every class that its module marks."""
    found = getattr(import_module(module), name)
    return storable(found) if hasattr(found, "_stored") else found


def _place(error: BaseException) -> str:
    """The innermost function of the package on the way to an error."""
    ours = [each for each in traceback.extract_tb(error.__traceback__) if f"{os.sep}prinfold{os.sep}" in each.filename]
    if not ours:
        return ""
    places = [f"{_short(each.filename)}: {each.name}" for each in ours]
    # Where a recursion runs out is chance; what calls itself is not.
    return Counter(places).most_common(1)[0][0] if isinstance(error, RecursionError) else places[-1]


def _short(filename: str) -> str:
    root = str(Path(prinfold.__file__).parent)
    return Path(filename).relative_to(root).as_posix() if filename.startswith(root) else Path(filename).name


# ------------------------------------------------------------------------------------------------------------- the fit


def _fit(model: Any, given: tables.Input) -> Any:
    """Fit as the method wants it: with targets where it needs them, with weights where it takes them."""
    more: dict[str, Any] = {}
    if get_tags(model).target_tags.required:
        more["y"] = given.y
    if given.weight is not None and "sample_weight" in signature(model.fit).parameters:
        more["sample_weight"] = given.weight
    return model.fit(given.X, **more)


VARIANTS = {each.name: each for each in CASES}
"""Settings with code of their own, by name."""


def variants_of(name: str) -> list[str]:
    """Names of the settings in which a method is tried, beside its defaults, which have none."""
    return ["", *(each for each in VARIANTS if each.partition("-")[0] == name)]


SHORT = 3
"""Iterations in most cases: what breaks in training does so in the first."""


def _short_of(cls: Any, variant: str = "", iterations: int | None = SHORT) -> Any:
    """A method in its defaults or in other settings, which trains for no longer than that; None is to the end."""
    model = VARIANTS[variant].make() if variant else cls()
    if iterations is None or "max_iter" not in model.get_params(deep=False):
        return model
    return model.set_params(max_iter=iterations)


def _exercise(model: Any, given: tables.Input, verbs: Iterable[str] = VERBS) -> None:
    """Ask a fitted model what it can tell of its own rows; each answer is finite or a named refusal."""
    for verb in verbs:
        if not hasattr(model, verb) or (verb == "score" and get_tags(model).target_tags.required):
            continue  # how far predictions are right is scikit-learn's to say
        try:
            answer = getattr(model, verb)(given.X)
        except NAMED:
            continue
        if not all(np.isfinite(each).all() for each in _numbers(answer)):
            raise Wrong("silent NaN", f"{verb} returns NaN or infinity", f"{type(model).__name__}.{verb}")


def _numbers(answer: Any, depth: int = 0) -> Iterator[Any]:
    """The arrays of numbers in an answer, which may be several, a frame, an object with fields, or text."""
    if nw.dependencies.is_into_dataframe(answer):
        columns = nw.from_native(answer, eager_only=True).iter_columns()
        yield from (each.cast(nw.Float64).to_numpy() for each in columns if each.dtype.is_numeric())
    elif isinstance(answer, np.ndarray | np.number | float) or hasattr(answer, "to_numpy"):
        with suppress(TypeError, ValueError):  # levels of a mixed table
            yield np.asarray(answer, dtype=float)
    elif depth < 6:
        for each in _parts(answer):
            yield from _numbers(each, depth + 1)


def _parts(answer: Any) -> Iterable[Any]:
    """What an answer holds: entries, fields, and what it computes from them."""
    if isinstance(answer, tuple | list):
        return answer
    if isinstance(answer, Mapping):
        return answer.values()
    if is_dataclass(answer) and not isinstance(answer, type):
        names = [each.name for each in fields(answer)]
        names += [name for name, each in vars(type(answer)).items() if isinstance(each, property)]
        return [getattr(answer, name) for name in names]
    return ()


def _built(recipe: dict[str, Any]) -> tables.Input:
    try:
        return tables.build(recipe)
    except Exception as error:
        raise Wrong("void", f"there is no such table: {error}"[:300]) from error


def try_table(case: dict[str, Any], cls: Any, folder: Path) -> None:
    given = _built(case["table"])
    model = _short_of(cls, case.get("variant", ""), case.get("iterations", SHORT))
    _exercise(_fit(model, given), given, case.get("verbs", VERBS))


def try_settings(case: dict[str, Any], cls: Any, folder: Path) -> None:
    given = tables.build(tables.PLAIN)
    model = _short_of(cls)
    settings = {name: value_of(value) for name, value in case["settings"].items()}
    constraints = getattr(model, "_constraints", {})
    wrong = [name for name, value in settings.items() if name in constraints and not constraints[name].test(value)]
    model = cls(**(model.get_params(deep=False) | settings))
    _fit(model, given)
    if wrong:
        raise Wrong("accepted", f"{wrong[0]}={case['settings'][wrong[0]]} is outside its constraint", cls.__name__)
    _exercise(model, given)


def try_verb(case: dict[str, Any], cls: Any, folder: Path) -> None:
    kept = _model(cls, variant=case.get("variant", ""), compiled=case.get("compiled", False))
    model, call = copy.deepcopy(kept), case["call"]
    if not hasattr(model, call["verb"]):
        raise Wrong("void", "the model has no such verb")
    arguments = {name: _argument(each) for name, each in call["arguments"].items()}
    with _figures_closed():
        answer = getattr(model, call["verb"])(**arguments)
    gaps = getattr(getattr(cls, call["verb"]), "_may_have_gaps", False)  # says by NaN which cells are missing
    if not gaps and any(np.isnan(each).any() for each in _numbers(answer)):
        raise Wrong("silent NaN", f"{call['verb']} returns NaN", f"{cls.__name__}.{call['verb']}")


@contextmanager
def _figures_closed() -> Iterator[None]:
    """Pictures of a case do not stay open for the next, or matplotlib warns of their number."""
    import matplotlib.pyplot as plt

    try:
        yield
    finally:
        plt.close("all")


def try_function(case: dict[str, Any], cls: Any, folder: Path) -> None:
    name, given = case["call"]["function"], case["call"]["arguments"]
    arguments = {key: _model(cls) if each == "a model" else _argument(each) for key, each in given.items()}
    with _figures_closed():
        answer = call(name, arguments)
    gaps = getattr(functions()[name], "_may_have_gaps", False)
    if not gaps and any(np.isnan(each).any() for each in _numbers(answer)):
        raise Wrong("silent NaN", f"{name} returns NaN", name)


def _argument(given: Any) -> Any:
    if not isinstance(given, str):
        return _built(given).X
    return copy.deepcopy(_object(given)) if given in OBJECTS else value_of(given)


@cache
def _object(name: str) -> Any:
    return OBJECTS[name]()


# --------------------------------------------------------------------------------------------------------------- files


@cache
def _model(cls: Any, seed: int = 0, variant: str = "", *, compiled: bool = False) -> Any:
    """A plain model of a method; one for each way of computing, which it may have chosen in its fit."""
    model = _short_of(cls, variant)
    if seed:
        model.set_params(**({"max_iter": 2} if "max_iter" in model.get_params(deep=False) else {}))
    return _fit(model, tables.build(tables.PLAIN))


@cache
def _stored(cls: Any, variant: str, folder: Path) -> bytes:
    path = folder / "model.prinfold"
    save(_model(cls, variant=variant), path)
    return path.read_bytes()


def _digest(data: bytes) -> Any:
    """Digest of all that a model file holds but measured times, which may be anything."""
    return model_files.Content(data).body["digest"]


def try_file(case: dict[str, Any], cls: Any, folder: Path) -> None:
    whole, given = _stored(cls, case.get("variant", ""), folder), tables.build(tables.PLAIN)
    data = model_files.altered(whole, case["edits"])
    path = folder / "altered.prinfold"
    path.write_bytes(data)
    if data == whole:
        raise Wrong("void", "nothing was changed")
    read = load(path)
    _exercise(read, given, case.get("verbs", VERBS))
    if case["edits"][0][0] in model_files.BYTES:
        save(read, path)
        if _digest(path.read_bytes()) != _digest(whole):
            raise Wrong("accepted", "a damaged file was read as another model", "files/__init__.py: load")


class _Keeper:
    """A callback that keeps what a checkpoint held after the second iteration; a checkpoint itself is told nothing."""

    def __init__(self, path: Path) -> None:
        self.path, self.held = path, b""

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: Any, context: Any, **told: Any) -> bool:
        if context.task_id == 1 and self.path.exists():
            self.held = self.path.read_bytes()
        return False


@cache
def _begun(cls: Any, variant: str, folder: Path) -> bytes:
    """The checkpoint of a fit that was left in the middle."""
    (folder / "begun").unlink(missing_ok=True)
    keeper = _Keeper(folder / "begun")
    model = _seeded(cls, variant).set_callbacks(Checkpoint(keeper.path, every=0), keeper)
    _fit(model, tables.build(tables.PLAIN))
    return keeper.held or keeper.path.read_bytes()


def _seeded(cls: Any, variant: str) -> Any:
    """A method that begins a second time as it did before."""
    model = _short_of(cls, variant)
    return model.set_params(random_state=0) if "random_state" in model.get_params(deep=False) else model


def try_checkpoint(case: dict[str, Any], cls: Any, folder: Path) -> None:
    whole, given = _begun(cls, case["variant"], folder), tables.build(tables.PLAIN)
    path = folder / "altered.checkpoint"
    path.write_bytes(data := model_files.altered(whole, case["edits"], model_files.CheckpointContent))
    if data == whole:
        raise Wrong("void", "nothing was changed")
    model = _fit(_seeded(cls, case["variant"]).set_callbacks(Checkpoint(path)), given)
    _exercise(model, given, case["verbs"])


# --------------------------------------------------------------------------------------------------------------- pages

TEXTS = {
    "plain": "a",
    "script": "</script><x-ordeal>",
    "attribute": "\"'><x-ordeal>",
    "comment": "<!--<script><x-ordeal>-->",
    "title": "</title></style></textarea><x-ordeal>",
    "braces": "{title} {0} %s ${x} `<x-ordeal>`",
    "surrogate": "\ud800<x-ordeal>",
    "controls": "\0\x1b[31m\u2028\u202e<x-ordeal>",
    "long": "<x-ordeal>" * 2000,
}
"""Words in data, of which none may become part of a page."""


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


def try_page(case: dict[str, Any], cls: Any, folder: Path) -> None:
    recipe = tables.PLAIN | {"container": "pandas", "names": case["names"]}
    given, text, path = _built(recipe), TEXTS[case["text"]], folder / "page.html"
    model = _fit(_short_of(cls), given)
    write = {"explore": explore, "report": report}[case["what"]]
    write(model, given.X, path, labels=[text, "b"] * 8, names=[f"{text}{i}" for i in range(16)], title=text)
    tags = _Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    if "x-ordeal" in tags.found:
        raise Wrong("unsafe page", "words of the data became an element of the page", case["what"])


# --------------------------------------------------------------------------------------------------- disks and kills


class _Writer(NamedTuple):
    """Writes one of two files of a kind, under a name; ``is_whole`` tells whether what lies there is either of them."""

    name: str
    write: Callable[[Path, int], Any]
    is_whole: Callable[[Path, list[bytes]], bool] = lambda path, contents: path.read_bytes() in contents


def _model_writer(cls: Any, folder: Path) -> _Writer:
    return _Writer("kept", lambda path, i: save(_model(cls, i), path))


def _page_writer(cls: Any, folder: Path) -> _Writer:
    return _Writer("kept", lambda path, i: explore(_model(cls, i), tables.build(tables.PLAIN).X, path))


def _report_writer(cls: Any, folder: Path) -> _Writer:
    pages = _reports(cls)  # which take a second to make, and a moment to write
    return _Writer("kept", lambda path, i: replace(pages[i], path=path).written())


@cache
def _reports(cls: Any) -> list[Any]:
    """Reports with a picture at most on two models."""
    with pytest.MonkeyPatch.context() as patch:
        for name in set(RECIPES) - {"map"}:
            patch.delitem(RECIPES, name)
        return [report(_model(cls, i), tables.build(tables.PLAIN).X, None) for i in (0, 1)]


def _table_writer(cls: Any, folder: Path) -> _Writer:
    cells = np.random.default_rng(0).normal(size=(2, 1000))
    return _Writer("kept.csv", lambda path, i: write_table(path, {"x": cells[i], "-x": -cells[i]}))


def _checkpoint_writer(cls: Any, folder: Path) -> _Writer:
    """A fit that goes on from the middle, where the other file of the two is."""
    begun, given = _begun(cls, "", folder), tables.build(tables.PLAIN)

    def fit(path: Path) -> Any:
        return _fit(_seeded(cls, "").set_callbacks(Checkpoint(path, every=0)), given)

    def is_whole(path: Path, contents: list[bytes]) -> bool:
        with suppress(CheckpointError):  # of what is no checkpoint, or one of another fit
            return bool(fit(path))
        return False

    return _Writer("kept", lambda path, i: fit(path) if i else write_bytes(path, begun), is_whole)


WRITERS: dict[str, Callable[[Any, Path], _Writer]] = {
    "model": _model_writer,
    "page": _page_writer,
    "report": _report_writer,
    "table": _table_writer,
    "checkpoint": _checkpoint_writer,
}
"""Files that disks and kills may spoil."""


def _pair(writer: _Writer, folder: Path) -> tuple[Path, list[bytes]]:
    """A target in a folder of its own, with the first file in it, and what both files hold."""
    shutil.rmtree(folder / "target", ignore_errors=True)
    (folder / "target").mkdir()
    path, contents = folder / "target" / writer.name, []
    for i in (1, 0):
        writer.write(path, i)
        contents.append(path.read_bytes())
    return path, contents


@contextmanager
def _room(n_bytes: int) -> Iterator[None]:
    """A disk on which files of so many bytes have room, and no larger ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def try_full_disk(case: dict[str, Any], cls: Any, folder: Path) -> None:
    writer = WRITERS[case["what"]](cls, folder)
    path, contents = _pair(writer, folder)
    try:
        with _room(case["room"]):
            writer.write(path, 1)
    finally:
        _look(writer, path, contents)
        if len(list(path.parent.iterdir())) != 1:
            raise Wrong("lost file", "a temporary file was left behind", case["what"])


def try_kill(case: dict[str, Any], cls: Any, folder: Path) -> None:
    writer = WRITERS[case["what"]](cls, folder)
    path, contents = _pair(writer, folder)
    child = os.fork()
    if not child:
        try:
            for i in cycle((1, 0)):
                writer.write(path, i)
        finally:
            os._exit(1)
    time.sleep(case["after_ms"] / 1000)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _look(writer, path, contents)


def _look(writer: _Writer, path: Path, contents: list[bytes]) -> None:
    if not path.exists() or not writer.is_whole(path, contents):
        raise Wrong("lost file", "neither the old file nor the new one is whole", path.name)


# ------------------------------------------------------------------------------------------ whether the worker notices


def try_probe(case: dict[str, Any], cls: Any, folder: Path) -> None:
    PROBES[case["what"]]()


def _spin() -> None:
    while True:
        pass


PROBES: dict[str, Callable[[], Any]] = {
    "crash": os.abort,
    "hang": _spin,
    "sleep": lambda: time.sleep(3),
    "out of memory": lambda: np.zeros(2**34),
    "raw error": lambda: 1 // 0,
    "leaked warning": lambda: np.log(np.zeros(1)),
    "fine": lambda: None,
}
"""Faults that are there for certain."""


KINDS: dict[str, Callable[[dict[str, Any], Any, Path], None]] = {
    "table": try_table,
    "settings": try_settings,
    "verb": try_verb,
    "function": try_function,
    "file": try_file,
    "checkpoint": try_checkpoint,
    "page": try_page,
    "full disk": try_full_disk,
    "kill": try_kill,
    "probe": try_probe,
}
"""What is done with each kind of case."""
