"""The ``prinfold`` command: a table of subcommands, each in a file of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from prinfold.cli.command import Command, build_parser, complain, one_line, run_command
from prinfold.cli.compare import COMPARE
from prinfold.cli.completion import COMPLETION
from prinfold.cli.demo import DEMO
from prinfold.cli.explore import EXPLORE
from prinfold.cli.fit import FIT
from prinfold.cli.info import INFO
from prinfold.cli.mapping import PROJECT, TRANSFORM
from prinfold.cli.next_steps import subparser
from prinfold.cli.report import REPORT
from prinfold.cli.usage import WrongCallError, check_command, check_extras

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, Command] = {
    "fit": FIT,
    "compare": COMPARE,
    "transform": TRANSFORM,
    "project": PROJECT,
    "explore": EXPLORE,
    "report": REPORT,
    "info": INFO,
    "demo": DEMO,
    "completion": COMPLETION,
}
"""Every subcommand by name; a new one is a file and a line here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0 for success, 1 for an error, 2 for a wrong call, 130 for Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser(COMMANDS)
    if not words:
        parser.print_help(sys.stderr)
        return 2
    try:
        options = _parse(parser, words)
    except WrongCallError as error:
        command = words[0] if words[0] in COMMANDS else None
        return complain(one_line(error), 2, command, json="--json" in words)
    return run_command(COMMANDS[options.command], options)


def _parse(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse the words of a call; the error for a wrong one proposes what may have been meant."""
    check_command(words[0], list(COMMANDS))
    options, extras = parser.parse_known_args(words)
    if options.command is None:
        raise WrongCallError(f"there is no option {words[0]} before a command; `prinfold --help` lists commands")
    if extras:
        known = {
            name: [word for each in subparser(parser, name)._actions for word in each.option_strings]
            for name in COMMANDS
        }
        check_extras(extras, options.command, known)
    return options


if __name__ == "__main__":
    sys.exit(main())
