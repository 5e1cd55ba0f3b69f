"""Recipes (noises, bases, smoothers, spaces) and loaders of data refuse by name what they cannot use."""

from __future__ import annotations

import inspect
import socket
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prinfold import datasets
from tests.ordeal.settings import MAKERS, recipes
from tests.ordeal.trial import NAMED


def _arguments(function: Any) -> Iterator[str]:
    """Arguments that can be given alone."""
    parameters = inspect.signature(function).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    named = [each.name for each in parameters if each.kind not in {each.VAR_KEYWORD, each.VAR_POSITIONAL}]
    yield from (name for name in named if needed in ([], [name]))


def _wrong_ends(function: Callable[..., Any]) -> Iterator[str]:
    """Arguments with values that end in a raw error or a leaked warning."""
    for name in _arguments(function):
        for value, make in MAKERS.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)
                    function(**{name: make()})
            except NAMED as error:
                if not str(error).strip():
                    yield f"{name}={value}: no message"
            except Exception as error:
                yield f"{name}={value}: {type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("name", recipes())
def test_recipes_end_well_whatever_they_are_given(name: str) -> None:
    assert list(_wrong_ends(recipes()[name])) == []


@pytest.mark.parametrize("name", [each for each in datasets.__all__ if each.startswith("load_")])
def test_loaders_end_well_whatever_they_are_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise ConnectionRefusedError("there is no network in this test")

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    monkeypatch.chdir(tmp_path)
    assert list(_wrong_ends(getattr(datasets, name))) == []


def test_a_raw_error_of_a_recipe_is_noticed() -> None:
    def root(share: float = 1.0) -> float:
        return share**0.5

    assert "share=text: TypeError" in "".join(_wrong_ends(root))
