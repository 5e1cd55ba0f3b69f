"""Commands to type next, with the options that were given once already."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prinfold.cli.console import align, program_call

READING = ("separator", "decimal", "header", "na", "array", "missing")
"""How a table is read: whoever reads it again needs the same."""

CHOOSING = ("columns", "drop", "label")
"""What of it is used."""


USES = {
    "explore": "a page to move over the map",
    "report": "what was found, and what to be careful about",
    "transform": "coordinates of every row",
}
"""What can be done with a model, and what each gives."""

COMPARE = "which method suits the table best; takes minutes"
"""What a comparison gives."""


def subparser(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    (children,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    found: argparse.ArgumentParser = children.choices[command]
    return found


def repeat_options(options: argparse.Namespace, command: str, names: Sequence[str]) -> list[str]:
    """Words that give another command the options of this one.

    Parameters
    ----------
    options : Namespace
        Of the command that was called.
    command : str
        The one to call next.
    names : sequence of str
        Options that both have, as the parser calls them.

    Returns
    -------
    list of str
        Nothing for what is as it is by itself.
    """
    actions = [each for each in subparser(options.parser, command)._actions if each.dest in names]
    return [word for each in actions for word in _words(each, getattr(options, each.dest, each.default))]


def _words(action: argparse.Action, value: object) -> Iterator[str]:
    option = action.option_strings[0]
    if value == action.default:
        return
    if action.nargs == 0:  # a switch, one of several that set the same
        yield from [option] if value == action.const else []
        return
    for each in value if isinstance(value, list) else [value]:
        # What begins with a dash would be read as another option.
        yield from [f"{option}={each}"] if str(each).startswith("-") else [option, str(each)]


def command_line(*words: object) -> str:
    """Words as one types them, after the name of this program."""
    return f"{program_call()} {shlex.join(str(word) for word in words)}"


def next_steps(
    model: Path, options: argparse.Namespace, label: str | None, names: Sequence[str], uses: Mapping[str, str]
) -> str:
    """Commands to type next, one for each thing that can be done with a model.

    Parameters
    ----------
    model : Path
        Its file.
    options : Namespace
        Of the command that wrote it, which read the table.
    label : str or None
        Column of classes.
    names : sequence of str
        The column of names of rows, where there is one.
    uses : mapping of str to str
        Commands, and what each gives; a comparison takes the table alone.

    Returns
    -------
    str
    """
    shown = [
        *(["--label", label] if label is not None else []),
        *(word for each in names for word in ("--names", each)),
    ]
    lines = []
    for name, words in uses.items():
        if name == "compare":
            call = [name, options.data, *repeat_options(options, name, (*CHOOSING, *READING))]
        else:
            about = shown if name in {"explore", "report"} else []
            call = [name, model, options.data, *about, *repeat_options(options, name, READING)]
        lines.append((command_line(*call), f"# {words}"))
    return f"\nTry next\n{align(lines, wrap=False)}"
