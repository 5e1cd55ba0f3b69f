"""``prinfold completion``: scripts that let a shell complete commands, options and files, made from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prinfold.cli.command import Command, choices_of
from prinfold.cli.usage import WrongCallError


@dataclass(frozen=True)
class Option:
    """An option as shells see it: its words, what it is for, what may follow it, and whether anything does."""

    words: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes_value: bool


@dataclass(frozen=True)
class Word:
    """A command as shells see it: its options, and what may stand without one; nothing there means files."""

    name: str
    help: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]


def commands_of(parser: argparse.ArgumentParser) -> list[Word]:
    """Every command of a parser."""
    (children,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    helps = {each.dest: each.help or "" for each in children._choices_actions}
    return [_word(name, helps.get(name, ""), child) for name, child in children.choices.items()]


def _word(name: str, words: str, parser: argparse.ArgumentParser) -> Word:
    options = tuple(_option(each, parser) for each in parser._actions if each.option_strings)
    plain = [choice for each in parser._actions if not each.option_strings for choice in choices_of(each)]
    return Word(name, words, options, tuple(plain))


def _option(action: argparse.Action, parser: argparse.ArgumentParser) -> Option:
    words = (action.help or "") % {"default": action.default, "prog": parser.prog}
    choices = (*choices_of(action), *(_methods() if "--method" in action.option_strings else ()))
    return Option(tuple(action.option_strings), words, choices, action.nargs != 0)


def _methods() -> list[str]:
    from prinfold.cli.catalogue import ALIASES, methods

    return sorted({*methods(), *ALIASES})


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=tuple(_SHELLS), help="whose script to print")


def _completion(options: argparse.Namespace) -> int:
    if options.shell is None:
        raise WrongCallError("name your shell: prinfold completion bash, zsh or fish")
    print(_SHELLS[options.shell](commands_of(options.parser)))
    return 0


# --------------------------------------------------------------------------------------------------------------- shells


def _bash(commands: Sequence[Word]) -> str:
    names = " ".join(each.name for each in commands)
    cases = "\n".join(_bash_case(each) for each in commands)
    return f"""\
# prinfold completion for bash: put this in a file and source it from .bashrc
_prinfold() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" options="" values=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [ -n "$values" ]; then
        COMPREPLY=($(compgen -W "$values" -- "$word"))
    elif [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        local IFS=$'\\n'  # names of files may have blanks in them
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _prinfold prinfold"""


def _bash_case(command: Word) -> str:
    options = " ".join(word for each in command.options for word in each.words)
    chosen = [
        f'                {"|".join(each.words)}) values="{" ".join(each.choices)}" ;;'
        for each in command.options
        if each.choices
    ]
    inner = "\n".join(['            case "$before" in', *chosen, "            esac"]) if chosen else ""
    plain = f'            [[ "$word" == -* ]] || values="{" ".join(command.choices)}"' if command.choices else ""
    parts = [f"        {command.name})", f'            options="{options}"', inner, plain, "            ;;"]
    return "\n".join(part for part in parts if part)


def _zsh(commands: Sequence[Word]) -> str:
    names = "\n".join(f"        {_zsh_quoted(f'{each.name}:{each.help}')}" for each in commands)
    cases = "\n".join(_zsh_case(each) for each in commands)
    return f"""\
#compdef prinfold
# prinfold completion for zsh: put this in a file called _prinfold in a folder of $fpath
_prinfold() {{
    local -a commands
    commands=(
{names}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command="$words[2]"
    shift words
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}
# The first call of an autoloaded file is the completion itself.
if [ "$funcstack[1]" = "_prinfold" ]; then
    _prinfold "$@"
else
    compdef _prinfold prinfold
fi"""


def _zsh_case(command: Word) -> str:
    specs = [_zsh_option(word, each) for each in command.options for word in each.words]
    specs.append(_zsh_quoted(f"*:value:({' '.join(command.choices)})" if command.choices else "*:file:_files"))
    lines = " \\\n".join(f"            {each}" for each in specs)
    return f"        {command.name}) _arguments \\\n{lines} ;;"


def _zsh_option(word: str, option: Option) -> str:
    words = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    after = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.takes_value else ""
    return _zsh_quoted(f"*{word}[{words}]{after}")


def _zsh_quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _fish(commands: Sequence[Word]) -> str:
    lines = ["# prinfold completion for fish: put this in ~/.config/fish/completions/prinfold.fish"]
    for command in commands:
        lines.append(
            f"complete -c prinfold -n __fish_use_subcommand -f -a {command.name} -d {_fish_quoted(command.help)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.choices:
            lines.append(f"complete -c prinfold {seen} -f -a {_fish_quoted(' '.join(command.choices))}")
        lines += [f"complete -c prinfold {seen} {_fish_option(each)}" for each in command.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    words = [f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in option.words]
    if option.choices:
        words.append(f"-x -a {_fish_quoted(' '.join(option.choices))}")
    elif option.takes_value:
        words.append("-r")
    return " ".join([*words, f"-d {_fish_quoted(option.help)}"])


def _fish_quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: dict[str, Callable[[Sequence[Word]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

COMPLETION: Any = Command(
    "print a script that completes commands and options in your shell",
    _arguments,
    _completion,
    """\
  prinfold completion bash > ~/.prinfold-completion; echo 'source ~/.prinfold-completion' >> ~/.bashrc
  prinfold completion zsh > ~/.zfunc/_prinfold
  prinfold completion fish > ~/.config/fish/completions/prinfold.fish""",
)
