"""The ``prinfold`` command: a table of subcommands, each in a file of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from prinfold.cli.command import Command, build_parser, run_command
from prinfold.cli.compare import COMPARE
from prinfold.cli.completion import COMPLETION
from prinfold.cli.demo import DEMO
from prinfold.cli.explore import EXPLORE
from prinfold.cli.fit import FIT
from prinfold.cli.info import INFO
from prinfold.cli.mapping import PROJECT, TRANSFORM
from prinfold.cli.report import REPORT

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
    parser = build_parser(COMMANDS)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    return run_command(COMMANDS[options.command], options)


if __name__ == "__main__":
    sys.exit(main())
