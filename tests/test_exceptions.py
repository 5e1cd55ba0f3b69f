"""Messages and their advice."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

from prinfold.exceptions import Advice, DegenerateWarning, InvalidParameterError, Message, warn_caller

MESSAGE = Message(
    "a harmonic basis lives on a circle", Advice("basis", words="leave out {}"), Advice("latent", "circle")
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message("it is so"), "it is so"),
        (Message("it is so", Advice("tol", 0.1)), "it is so; set tol=0.1"),
        (Message("It is so.", Advice("tol", words="raise {} (now 0)")), "It is so. Raise tol (now 0)."),
        (Message("it is so", Advice("init", "pca", "use {}"), "stop"), "it is so; use init='pca', or stop"),
        (Message("it is so", "one", "two", Advice("n", 3, "{}")), "it is so; one, two, or n=3"),
    ],
)
def test_text_is_made_of_what_was_found_and_advice(message: Message, text: str) -> None:
    assert message == text


def test_advice_goes_with_errors_and_warnings() -> None:
    """Also through a pickle, as between processes."""
    for carrier in (InvalidParameterError(MESSAGE), DegenerateWarning(MESSAGE)):
        for each in (carrier, pickle.loads(pickle.dumps(carrier)), copy.copy(carrier)):
            assert str(each) == "a harmonic basis lives on a circle; leave out basis, or set latent='circle'"
            assert each.args[0].written(Advice.in_python) == str(each)
            assert each.args[0].advice == MESSAGE.advice
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_caller(MESSAGE, DegenerateWarning)
    assert caught[0].message.args[0].advice == MESSAGE.advice


def test_a_prefix_keeps_the_advice() -> None:
    for words in (MESSAGE, DegenerateWarning(MESSAGE)):
        found = Message.after("map 1: ", words)
        assert found == f"map 1: {MESSAGE}"
        assert found.advice == MESSAGE.advice
    assert Message.after("map 1: ", "it is so") == "map 1: it is so"


def test_whoever_writes_it_says_the_advice() -> None:
    assert MESSAGE.written(lambda advice: f"[{advice.setting}]").endswith("; [basis], or [latent]")
