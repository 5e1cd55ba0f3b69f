"""Output of commands: lines and notes for people, one JSON object for programs, nothing when asked to be quiet."""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prinfold.exceptions import ANY_VALUE, Advice, Message
from prinfold.files.atomic import readable

_NARROWEST = 40
"""Characters that a line may have in any case."""

_NAMELESS = "does not have valid feature names"
"""What scikit-learn warns of where it gets an array: names have been compared before that."""


@dataclass
class Console:
    """The output of a command: lines and notes for people, or ``result`` as JSON for programs."""

    json: bool = False
    quiet: bool = False
    to_errors: bool = False
    result: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, options: argparse.Namespace, *, to_errors: bool = False) -> Console:
        """The console that the options ask for; ``to_errors`` leaves standard output to the data."""
        return cls(options.json, options.quiet, to_errors)

    @property
    def is_interactive(self) -> bool:
        """Whether a person is listening."""
        return not self.json and not self.quiet

    def say(self, words: str = "") -> None:
        """Print a line for people."""
        if self.is_interactive:
            print(readable(words), file=sys.stderr if self.to_errors else sys.stdout, flush=True)

    def working(self, label: str) -> AbstractContextManager[Any]:
        """Say what is being done, where it takes more than two seconds and a person looks on."""
        from prinfold.loops import Working

        return Working(label) if self.is_interactive else nullcontext()

    def note(self, *words: str) -> None:
        """Print a note, once."""
        for each in words:
            if each not in self.notes:
                self.notes.append(each)
                self.say(wrap_line(f"note: {each}", 2))

    def close(self) -> None:
        """Print the result as JSON, if a program asked for it."""
        if self.json:
            print(readable(json.dumps(json_value(self.result | {"notes": self.notes}), ensure_ascii=False, indent=2)))

    @contextmanager
    def note_warnings(self) -> Iterator[None]:
        """Turn the warnings of what is run into notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        # Deprecations are for programmers.
        heard = [each for each in caught if not issubclass(each.category, DeprecationWarning | FutureWarning)]
        words = [as_options(each.message) for each in heard]
        self.note(*(each for each in words if _NAMELESS not in each))


OPTIONS = {
    "n_components": "--dimensions",
    "random_state": "--seed",
    "max_rows": "--max-rows",
    "criterion": "--criterion",
    "folds": "--folds",
    "methods": "--methods",
    "StandardScaler": "--standardize",
    "posterior_mode": "prinfold transform --modes",
    "plot": "prinfold report",
}
"""Settings and other names of Python → options and commands of their own; any other setting is what ``--set`` takes."""

_COUNTS = {
    r"n_features = (\d+)": r"\1 column(s)",
    r"n_samples = (\d+)": r"\1 row(s)",
    r"(?<![\d.])1 (\w+)\(s\)": r"1 \1",
    r"(\d) (\w+)\(s\)": r"\1 \2s",
}
"""Numbers of things, which scikit-learn's checks want written in its own way, as one says them."""


def as_options(message: object) -> str:
    """A message, or that of an error or warning, in one line, with its advice in options of the command line."""
    text = message.args[0] if isinstance(message, BaseException) and message.args else message
    words = " ".join((text.written(_option) if isinstance(text, Message) else str(message)).split())
    for pattern, said in _COUNTS.items():
        words = re.sub(pattern, said, words)
    return words


def _option(advice: Advice) -> str:
    """``set n_components=2`` → ``give --dimensions 2``, ``raise tol`` → ``raise tol by --set tol=VALUE``."""
    name, value = advice.setting, advice.value
    if value is ANY_VALUE and name not in OPTIONS:
        return f"{advice.words.format(name)} by --set {name}=VALUE"
    if name in OPTIONS:
        given = OPTIONS[name] if value is ANY_VALUE else f"{OPTIONS[name]} {value}"
    else:
        given = f"{name}={value}"
        given = f'--set "{given}"' if " " in given else f"--set {given}"
    return advice.words.replace("set {}", "give {}").format(given)


def json_value(value: Any) -> Any:
    """A value as JSON has it; what is no finite number is null."""
    if isinstance(value, dict):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def align(lines: Sequence[tuple[str, str]], *, wrap: bool = True) -> str:
    """Names and words in two columns, as wide as the terminal; what is to be typed is not wrapped."""
    width = max((len(name) for name, _ in lines), default=0)
    found = [f"  {name:<{width}}  {words}".rstrip() for name, words in lines]
    return "\n".join([wrap_line(each, width + 4) for each in found] if wrap else found)


def wrap_line(line: str, indent: int = 0) -> str:
    """A line broken at blanks where the terminal is narrower; 80 columns where it is unknown how wide it is."""
    width = max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST)
    if len(line) <= width:
        return line
    start = line[: len(line) - len(line.lstrip())]
    indent = indent if indent <= width // 2 else len(start) + 2
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * indent,
            replace_whitespace=False,
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def program_call() -> str:
    """The words with which this program is called from the user's folder."""
    called = Path(sys.argv[0])
    if called.stem == "prinfold":
        return short_path(sys.argv[0])
    return f"{short_path(sys.executable)} -m prinfold"


def short_path(program: str) -> str:
    """A program as one may type it: its name where the shell would find it, else its path from here."""
    path = Path(program).absolute()
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path:
        return shlex.quote(path.name)
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
