"""The planted mistakes by which the quick tests are judged: each has its place, and a verdict with a reason."""

from __future__ import annotations

import ast
import json
from collections import Counter

import pytest
from tools.mutants import ROOT, renamed, with_mutant

MUTANTS = json.loads((ROOT / "tools" / "mutants.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["id"])
def test_a_mutant_changes_the_syntax_tree_of_its_file(mutant):
    text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
    changed = with_mutant(text, mutant)
    assert changed is not None, f"the line of {mutant['id']} is lost: write its new place into tools/mutants.json"
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert all((ROOT / name).exists() for name in mutant["tests"])


def test_every_mutant_has_a_verdict():
    assert max(Counter(each["id"] for each in MUTANTS).values()) == 1
    for each in MUTANTS:
        assert each["verdict"] in {"killed", "survived", "equivalent"}
        assert each["words"] or each["verdict"] == "survived"


FILE = "def f(a, b):\n    c = a + b\n    return g(c - a)\n\n\ndef h(a, b):\n    c = a + b\n    return c\n"
MUTANT = {"symbol": "f", "before": "c = a + b", "after": "c = a - b"}


def test_the_line_of_the_function_is_changed():
    assert with_mutant(FILE, MUTANT) == FILE.replace("a + b", "a - b", 1)
    assert with_mutant(FILE, MUTANT | {"symbol": "h"}) == "a - b".join(FILE.rsplit("a + b", 1))
    assert with_mutant(FILE, MUTANT | {"symbol": "renamed"}) is None  # either line could be meant
    assert with_mutant(FILE, MUTANT | {"before": "c = a * b"}) is None


def test_a_line_whose_names_changed_is_found():
    mutant = {"symbol": "f", "before": "return k(c - a)", "after": "return k(c + a)"}
    assert with_mutant(FILE, mutant) == FILE.replace("g(c - a)", "g(c + a)")
    assert renamed("x = norm(y) + z", "x = size(y) + z") == {"norm": "size"}
    assert renamed("x = norm(y) + z", "x = size(w) + u") is None  # too many
    assert renamed("x = norm(y) + y", "x = norm(y) + z") is None  # one name for two
    assert renamed("x = y + 1", "x = y + 2") is None
