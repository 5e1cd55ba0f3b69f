"""Subcommands: their parser, made from a table of them, and how one is run; an error is one line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from prinfold.cli.console import as_options
from prinfold.cli.tables.writing import STANDARD
from prinfold.cli.usage import Parser, WrongCallError
from prinfold.exceptions import InvalidParameterError, NotWrittenError, PrinfoldError

TRACEBACK = "PRINFOLD_TRACEBACK"
"""Set to anything, this variable of the environment shows where an error comes from."""

_EPILOG = """\
A map of your table, and what to make of it:
  prinfold fit data.csv
  prinfold explore data.prinfold data.csv
  prinfold report data.prinfold data.csv
  prinfold transform data.prinfold data.csv

`prinfold COMMAND --help` says more of each, with examples."""


@dataclass(frozen=True)
class Command:
    """A subcommand: what it is for, its arguments, the function that runs it and gives the exit code, examples."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: str = ""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in two columns, of which the first is wide enough for every command."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += 2  # names of commands are set in, which argparse forgets


def _formatter(prog: str) -> argparse.HelpFormatter:
    return _Help(prog, max_help_position=30)


def build_parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser of a table of commands; each parse knows the parser itself, for what is made of it."""
    from prinfold import __version__

    parser = Parser(
        prog="prinfold",
        description="Principal curves, surfaces and manifolds: the smooth surface through your data.",
        epilog=_EPILOG,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"prinfold {__version__}")
    parser.set_defaults(parser=parser)
    children = parser.add_subparsers(dest="command", metavar="command")
    for name, command in commands.items():
        child = children.add_parser(
            name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=f"examples:\n{command.examples}" if command.examples else None,
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        command.arguments(child)
    return parser


def run_command(command: Command, options: argparse.Namespace) -> int:
    """Run a command and return its exit code; an error is printed in one line."""
    is_closed = sys.stdout is None
    if is_closed:  # by who called us (`>&-`): the next file that is opened would take its place
        _discard_output()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without the letters that we print is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace" if sys.stdout.errors == "strict" else None)
    from prinfold.loops import hide_progress

    try:
        if is_closed and (getattr(options, "out", None) == STANDARD or getattr(options, "json", False)):
            raise NotWrittenError("cannot write to standard output: it is closed; open it, or name a file with --out")
        with _termination_as_interrupt(), hide_progress(_is_quiet(options)):
            code = command.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has had enough, as `head` has
        _discard_output()  # or closing the old one would fail
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if TRACEBACK in os.environ:
            traceback.print_exc()
        words, code = _describe_error(error)
        if _is_of_output(error):
            _discard_output()  # it would fail again
        return complain(words, code, options.command, json=bool(getattr(options, "json", False)))


def _discard_output() -> None:
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _is_of_output(error: BaseException) -> bool:
    """Whether standard output took nothing more: all other files are named by their errors."""
    ours = isinstance(error, PrinfoldError)
    return isinstance(error, OSError) and error.errno is not None and error.filename is None and not ours


def _is_quiet(options: argparse.Namespace) -> bool:
    return bool(getattr(options, "quiet", False) or getattr(options, "json", False))


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Have SIGTERM, by which schedulers end a job, do what Ctrl-C does: the best model so far is kept and written."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    if current_thread() is not main_thread():  # signals belong to the main thread
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _describe_error(error: BaseException) -> tuple[str, int]:
    """The message of an error in one line, and the exit code: 2 where the call has to be changed, else 1."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, MemoryError) and not isinstance(error, PrinfoldError):
        return "there is not enough memory for this table; take fewer columns, or some rows (prinfold fit --sample)", 1
    if isinstance(error, WrongCallError | InvalidParameterError):
        return one_line(error), 2
    if isinstance(error, PrinfoldError | OSError):
        return one_line(error), 1
    hint = "" if TRACEBACK in os.environ else f" (set {TRACEBACK}=1 to see where this comes from)"
    return f"{type(error).__name__}: {one_line(error)}{hint}", 1


def complain(words: str, code: int, command: str | None, *, json: bool) -> int:
    """Print an error for people and, where they asked, as JSON; returns the exit code."""
    if json:
        print(dumps({"command": command, "error": words}, ensure_ascii=False))
    error = "" if code == 130 else "error: "
    print(f"{'prinfold' if command is None else f'prinfold {command}'}: {error}{words}", file=sys.stderr)
    return code


def one_line(error: BaseException) -> str:
    """The message of an error in one line."""
    if isinstance(error, OSError) and _is_of_output(error):
        why = "no space left on the device" if error.errno == errno.ENOSPC else str(error.strerror).lower()
        return f"cannot write to standard output: {why}"
    if isinstance(error, OSError) and error.filename is not None:
        ours = isinstance(error, NotWrittenError)
        words = str(error) if ours else f"cannot write {error.filename}: {error.strerror}; choose another place"
        return f"{words} with --out"
    return as_options(error)


# -------------------------------------------------------------------------------------------- arguments that many share


def output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for output: JSON or quiet."""
    group = parser.add_argument_group("output")
    how = group.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object, for programs to read")
    how.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")


def out_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options for the file to write."""
    parser.add_argument("--out", "-o", type=Path, metavar="FILE", help=f"file to write (default: {default})")
    parser.add_argument("--force", "-f", action="store_true", help="overwrite an existing file")


def table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a table."""
    group = parser.add_argument_group("reading the table")
    group.add_argument(
        "--separator", metavar="CHAR", help="what separates cells of a text file: , ; tab space or another character"
    )
    group.add_argument(
        "--decimal", choices=("point", "comma"), help="the decimal mark; the other one then separates thousands"
    )
    header = group.add_mutually_exclusive_group()
    header.add_argument(
        "--header", action="store_true", default=None, help="the first line holds names, whatever they look like"
    )
    header.add_argument(
        "--no-header", action="store_false", dest="header", default=None, help="the first line is data, not names"
    )
    group.add_argument(
        "--na",
        action="append",
        default=[],
        metavar="WORD",
        help="a word for a missing cell, besides NA, nan, ? and the like",
    )
    group.add_argument(
        "--array",
        metavar="NAME",
        help="which array of an .npz file, layer or obsm of an .h5ad file, or sheet of a workbook",
    )
    group.add_argument(
        "--missing",
        choices=("keep", "drop", "error"),
        default="keep",
        help="rows with missing cells: keep them where the method can (default), drop them, or stop",
    )


def whole_number(least: int) -> Callable[[str], int]:
    """A type for arguments that are whole numbers of at least ``least``."""

    def read(word: str) -> int:
        if not word.isdecimal() or int(word) < least:
            words = ", 0 or more" if least == 0 else f" of at least {least}"
            raise argparse.ArgumentTypeError(f"must be a whole number{words}, got {word!r}")
        return int(word)

    return read
