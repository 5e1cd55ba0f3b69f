"""Kinds of what a file holds: what they allow, the sizes that fields share, and the words of a refusal."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from prinfold import files
from prinfold.exceptions import CorruptModelFileError
from prinfold.files.kinds import (
    ANY,
    any_float,
    array,
    check_fields,
    class_names,
    flags,
    mapping_of,
    number,
    numbers,
    part,
    record_of,
    sequence_of,
    text,
    texts,
    whole_numbers,
)
from prinfold.files.latent_kinds import LATENT_KINDS
from prinfold.files.steps import STEP_KINDS, STEPS
from prinfold.latent import grid
from prinfold.methods import import_all
from prinfold.validation.settings import integer, nothing

NAN = float("nan")
GRID = grid(3, 4)


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        (
            numbers(2, 3),
            [np.zeros((2, 3)), np.zeros((2, 3), dtype=np.float32)],
            [np.zeros((3, 2)), np.zeros((2, 3), dtype=int), np.full((2, 3), NAN), [[0.0]], None],
        ),
        (numbers(), [np.zeros(())], [np.zeros(1), 0.0]),
        (numbers(1, above=0), [np.ones(1)], [np.zeros(1)]),
        (numbers(1, least=0), [np.zeros(1)], [-np.ones(1)]),
        (numbers(ANY, 2), [np.zeros((0, 2)), np.zeros((5, 2))], [np.zeros((2, 5))]),
        (numbers("a", "a"), [np.eye(3)], [np.zeros((3, 2))]),
        (array(), [np.zeros(()), np.zeros((2, 3, 4))], [np.array([NAN]), 1.0, np.zeros(2, dtype=int)]),
        (
            whole_numbers(2, least=0),
            [np.array([0, 3]), np.array([1, 2], dtype=np.int8)],
            [np.array([-1, 0]), np.ones(2)],
        ),
        (flags(2), [np.array([True, False])], [np.array([1, 0]), [True, False]]),
        (texts(1), [np.array(["a"], dtype=object), np.array(["a"])], [np.array([1], dtype=object)]),
        (class_names("C"), [np.array(["a", "b"]), np.array([1, 2])], [np.array(["a", "a"]), np.array([])]),
        (sequence_of(text, 2), [["a", "b"], ("a", "b")], [["a"], ["a", 1], "ab", None]),
        (record_of(text, integer(0)), [("a", 1)], [("a",), ("a", -1), ["a", 1]]),
        (mapping_of(number), [{}, {"a": 1, "b": 2.5}], [{"a": NAN}, {"a": float("inf")}, {"a": True}, []]),
        (part("Lattice", shape=2), [GRID], [grid(3), None, "Lattice", type(GRID)]),
        (nothing | numbers(1), [None, np.zeros(1)], [np.zeros(2)]),
        (numbers(1) | nothing, [None, np.zeros(1)], [np.zeros(2)]),
        (any_float, [1.0, -float("inf"), 3], [NAN, "1", True]),
    ],
)
def test_kinds_allow_what_they_say(kind: Any, allowed: list[Any], refused: list[Any]) -> None:
    for value in allowed:
        check_fields("A", {"x": value}, {"x": kind})
    for value in refused:
        with pytest.raises(CorruptModelFileError, match=r"^A\.x in the file is .*, but must be "):
            check_fields("A", {"x": value}, {"x": kind})


KINDS = {
    "n": integer(1),
    "latent": part("Lattice"),
    "rows": numbers("m", "n"),
    "weight": numbers("m"),
    "nodes": numbers("latent.n_nodes", "latent.shape"),
}
SOUND = {"n": 2, "latent": GRID, "rows": np.zeros((5, 2)), "weight": np.zeros(5), "nodes": np.zeros((12, 2))}


def test_fields_share_their_sizes() -> None:
    check_fields("A", SOUND, KINDS)
    check_fields("A", {}, KINDS)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rows": np.zeros((5, 3))}, r"A\.rows .* of shape \(5, 3\), but must be .* of shape \(m, n = 2\)$"),
        ({"weight": np.zeros(4)}, r"A\.weight .* of shape \(4,\), but must be .* of shape \(m = 5 as in rows\)$"),
        ({"nodes": np.zeros((11, 2))}, r"A\.nodes .* \(latent\.n_nodes = 12, latent\.shape = 2\)$"),
        ({"latent": "a grid"}, r"A\.latent in the file is 'a grid', but must be a Lattice$"),
        ({"latent": None}, r"A\.latent in the file is None"),
        ({"weight": "a" * 100}, r"A\.weight in the file is 'a{59}…, but"),
    ],
)
def test_a_refusal_names_the_field_and_what_was_got_and_expected(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(CorruptModelFileError, match=words):
        check_fields("A", SOUND | changed, KINDS)


def test_a_size_that_nothing_has_is_told_as_it_is_called() -> None:
    with pytest.raises(CorruptModelFileError, match=r"must be .* of shape \(latent\.n_nodes\)$"):
        check_fields("A", {"latent": None, "x": np.zeros(2)}, {"x": numbers("latent.n_nodes")})


def test_every_class_that_files_hold_gives_the_kinds_of_all_its_fields() -> None:
    import_all()
    for name, cls in files._classes.items():
        if not is_dataclass(cls):
            continue
        declared = getattr(cls, "_kinds", LATENT_KINDS.get(name))
        # Settings of a recipe are held to their constraints by the recipe itself.
        own_check = any("__post_init__" in vars(each) for each in cls.__mro__) or not fields(cls)
        names = {field.name for field in fields(cls)}
        assert declared is not None or own_check, name
        assert not declared or set(declared) <= names, name
        assert own_check or set(declared) == names, name
    assert set(STEP_KINDS) == set(STEPS)
