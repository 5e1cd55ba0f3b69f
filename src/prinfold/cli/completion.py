"""``prinfold completion``: scripts that let a shell complete commands, options, their values, files and settings.

shtab makes the scripts from the parser; here is what the parser does not say: names of methods and settings, and which
files are models.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from prinfold.cli.command import Command
from prinfold.cli.methods import aliases, methods, settings
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import import_optional

_MODELS = {
    "bash": "_prinfold_models",
    "zsh": "_files -g '*.prinfold'",
    "fish": "(__fish_complete_suffix .prinfold)",
}
"""How each shell completes model files, and folders on the way to them."""

_PREAMBLE = {
    "bash": """\
_prinfold_models() {
  compgen -d -S / -- "$1"
  compgen -f -X '!*.prinfold' -- "$1"
}"""
}
"""Functions that a script needs besides."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=tuple(_MODELS), help="shell to print the script for")


def _completion(options: argparse.Namespace) -> int:
    if options.shell is None:
        raise WrongCallError("name your shell: prinfold completion bash, zsh or fish")
    shtab = import_optional("shtab", "cli", "completion")
    _add_completions(options.parser, shtab.FILE)
    print(shtab.complete(options.parser, options.shell, preamble=_PREAMBLE.get(options.shell, "")))
    return 0


def _add_completions(parser: argparse.ArgumentParser, files: Any) -> None:
    """Say of every argument what may stand there; nothing is parsed with this parser any more."""
    words = {
        "method": sorted({*methods(), *aliases()}),
        "methods": sorted({*methods(), *aliases()}),
        "settings": [f"{name}=" for name in sorted(settings())],
    }
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _add_completions(child, files)
        elif action.dest in words:
            action.choices = words[action.dest]
        elif action.type is Path:
            action.complete = _MODELS if action.dest == "model" else files  # type: ignore[attr-defined]


COMPLETION: Any = Command(
    "print a script that completes commands and options in your shell",
    _arguments,
    _completion,
    """\
  prinfold completion bash > ~/.prinfold-completion; echo 'source ~/.prinfold-completion' >> ~/.bashrc
  prinfold completion zsh > ~/.zfunc/_prinfold
  prinfold completion fish > ~/.config/fish/completions/prinfold.fish""",
)
