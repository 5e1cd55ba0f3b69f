"""Commands to type next: what was asked for once need not be thought of again."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence

from prinfold.cli.console import as_called

READING = ("separator", "decimal", "header", "na", "array", "missing")
"""How a table is read: whoever reads it again needs the same."""

CHOOSING = ("columns", "drop", "label")
"""What of it is used."""


def subparser(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    (children,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    found: argparse.ArgumentParser = children.choices[command]
    return found


def given_again(options: argparse.Namespace, command: str, names: Sequence[str]) -> list[str]:
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


def typed(*words: object) -> str:
    """Words as one types them, after the name of this program."""
    return f"{as_called()} {shlex.join(str(word) for word in words)}"
