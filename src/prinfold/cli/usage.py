"""Errors for wrong calls: one line with what is wrong, what may have been meant, and what to do."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from prinfold.exceptions import PrinfoldError


class WrongCallError(PrinfoldError, ValueError):
    """Options that make no sense, alone or together; the exit code is 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are raised instead of printed with the whole usage above them."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read what is right."""
        words = message.removeprefix("argument ")
        raise WrongCallError(words if words.endswith("?") else f"{words}; see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = None if action.choices is None else [str(each) for each in action.choices]
        if known is None or str(value) in known:
            return
        hint = did_you_mean(str(value), known)
        listed = f"{', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else known[0]
        raise argparse.ArgumentError(action, f"takes {listed}, got {str(value)!r}{hint and f'; {hint}'}")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question that proposes the nearest known word; empty where none is near."""
    begun = [each for each in known if word.strip("-") and each.startswith(word)]
    near = begun or difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def check_command(word: str, known: Sequence[str]) -> None:
    """Raise an error for an unknown command; for the name of a table it proposes ``fit``."""
    if word in known or word.startswith("-"):
        return
    if Path(word).suffix == ".prinfold":
        hint = f"to look at a model: prinfold info {word}"
    elif Path(word).suffix:
        hint = f"to fit a surface to a table: prinfold fit {word}"
    else:
        hint = did_you_mean(word.lower(), known) or f"there are {', '.join(known)}"
    raise WrongCallError(f"there is no command {word!r}; {hint}")


def check_extras(extras: Sequence[str], command: str, options: Mapping[str, Sequence[str]]) -> None:
    """Raise an error for words that a command does not take.

    Parameters
    ----------
    extras : sequence of str
        What was left when everything else was understood.
    command : str
        Name of the command.
    options : mapping of str to sequences of str
        Options of every command.
    """
    unknown = [word.partition("=")[0] for word in extras if word.startswith("-") and word != "-"]
    if not extras:
        return
    if not unknown:
        raise WrongCallError(
            f"{command} can do nothing with {' '.join(map(repr, extras))}; quote names with blanks in them, and see "
            f"`prinfold {command} --help`"
        )
    word = unknown[0]
    others = [name for name, known in options.items() if word in known]
    hint = f"it is an option of {', '.join(others)}" if others else did_you_mean(word, options[command])
    raise WrongCallError(f"there is no option {word}; {hint or f'`prinfold {command} --help` lists them'}")
