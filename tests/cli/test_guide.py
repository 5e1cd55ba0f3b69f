"""The guide to the command line works when it is typed, line by line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from prinfold import cli
from prinfold.cli.command import build_parser
from tests.house import ROOT

PAGE = ROOT / "docs" / "guide" / "command_line.md"


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_guide_run(folder: Path, call) -> None:
    lines = commands()
    assert len(lines) > 10
    for typed in lines:
        line = typed.replace("--rows 300", "--rows 60")  # enough to see that it works
        words = shlex.split(re.split(r"[|>]", line)[0])
        assert words[0] == "prinfold"
        said = call(*words[1:])
        assert said.code == 0, f"{line}: {said.err}"
    assert (folder / "demo" / "data-report.html").exists()


def test_every_option_that_the_guide_names_exists() -> None:
    (children,) = [each for each in build_parser(cli.COMMANDS)._actions if each.dest == "command"]
    assert isinstance(children.choices, dict)
    known = {word for child in children.choices.values() for each in child._actions for word in each.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 15
    assert named - known == set()


def test_the_guide_names_every_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in cli.COMMANDS if f"prinfold {name}" not in text] == []
