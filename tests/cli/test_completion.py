"""``prinfold completion``: the shells themselves complete, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from prinfold import cli
from tests.cli.conftest import Said

Call = Callable[..., Said]

ASKED = (
    "prinfold ",
    "prinfold tr",
    "prinfold fit --stand",
    "prinfold fit --missing ",
    "prinfold fit --method k",
    "prinfold fit my",
    "prinfold completion ",
    "prinfold fit --set node",
    "prinfold transform mine",
)
"""What is typed before the key of completion."""

_BASH = """
source ./script
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _shtab_prinfold; said; }
said() { printf '%s\\n' "${COMPREPLY[@]}" END; }
"""

_ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -Uz compinit && compinit -u -D; eval "$(<./script)"'
zpty -w z 'compadd() { if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]] { typeset -a h; builtin compadd -A h "$@"; \
print -l -- "HIT:"$^h }; builtin compadd "$@" }; \
ask() { zle complete-word; zle kill-whole-line; print DO""NE }; zle -N ask; bindkey "^I" ask; echo REA""DY'
zpty -r z said '*READY*'
for line in "$@"; do
    zpty -w -n z "$line"$'\\t'
    zpty -r z said '*DONE*'
    print -r -- "$said"
    print -r -- END
done
"""
"""A terminal within the shell, in which whatever would be proposed is printed."""


def ask_bash(folder: Path) -> list[list[str]]:
    last = {True: "''", False: ""}  # nothing is typed yet of the next word
    calls = [f"ask {line.strip()} {last[line.endswith(' ')]}" for line in ASKED]
    return answers(["bash", "-c", "\n".join([_BASH, *calls])], folder)


def ask_fish(folder: Path) -> list[list[str]]:
    calls = [f"complete -C '{line}' | string split -f 1 \\t; echo END" for line in ASKED]
    return answers(["fish", "--no-config", "-c", "\n".join(["source ./script", *calls])], folder)


def ask_zsh(folder: Path) -> list[list[str]]:
    (folder / "ask.zsh").write_text(_ZSH)
    found = answers(["zsh", "-f", "ask.zsh", *ASKED], folder)
    return [[hit for line in each for hit in re.findall(r"HIT:(.*)", line)] for each in found]


def answers(command: Sequence[str], folder: Path) -> list[list[str]]:
    """Lines of each answer, which end with a word of their own."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    parts = done.stdout.replace("\r", "").split("END\n")[:-1]
    return [each.splitlines() for each in parts]


@pytest.mark.parametrize(("shell", "ask"), [("bash", ask_bash), ("zsh", ask_zsh), ("fish", ask_fish)])
def test_shells_complete(shell: str, ask: Callable[[Path], list[list[str]]], folder: Path, call: Call) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    pytest.importorskip("shtab")
    script = call("completion", shell).out
    (folder / "script").write_text(script)
    for name in ("my data.csv", "mine.prinfold", "mine.txt"):
        (folder / name).write_text("")
    check = subprocess.run([shell, "-n", "script"], cwd=folder, capture_output=True, text=True, check=False)
    assert (check.returncode, check.stderr) == (0, "")
    commands, one, options, values, methods, files, shells, settings, models = ask(folder)
    assert set(cli.COMMANDS) <= set(commands)
    assert one == ["transform"]
    assert set(options) == {"--standardize"}
    assert set(values) == {"keep", "drop", "error"}
    assert methods == ["kmm"]
    assert [each.replace("\\", "") for each in files] == ["my data.csv"]
    assert set(shells) == {"bash", "zsh", "fish"}
    assert settings == ["nodes="]
    assert models[0] == "mine.prinfold"  # fish has other files after it


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_every_script(shell: str, call: Call) -> None:
    pytest.importorskip("shtab")
    script = call("completion", shell).out
    for name in cli.COMMANDS:
        assert name in script
    for option in ("columns", "standardize", "missing", "label", "json", "image"):
        assert option in script


def test_the_extra_is_named_where_shtab_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert 'get it with: pip install "prinfold[cli]"' in call("completion", "bash").complaint
