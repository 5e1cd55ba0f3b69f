"""Shared parameter texts: written once, and there wherever a docstring asks for them."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
from numpydoc.docscrape import ClassDoc
from tests.house import PACKAGE, public_objects, syntax_trees

from prinfold import GTM, PrincipalCurve
from prinfold.validation.parameter_docs import PARAMETER_DOCS, fill, fill_parameter_docs

PLACE = re.compile(r"^\s*\{(\w[\w.]*)(?:, default=[^}]*)?\}$", re.MULTILINE)
MOST_REPEATS = 3


@cache
def docstrings() -> list[tuple[str, ast.stmt, str]]:
    """Place, outermost class or function, and source of every docstring of the package."""
    return [
        (f"{path}: {node.name}", top, doc)
        for path, tree in syntax_trees(PACKAGE).items()
        for top in tree.body
        for node in ast.walk(top)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (doc := ast.get_docstring(node))
    ]


def entries(doc: str) -> list[str]:
    """The parameters and attributes of a docstring, each with its text on one line."""
    sections = re.findall(r"(?ms)^(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n|\Z)", doc)
    return [" ".join(each.split()) for section in sections for each in re.split(r"\n(?=\S)", section)]


def test_no_text_about_a_parameter_is_repeated() -> None:
    counts = Counter(each for _, _, doc in docstrings() for each in entries(doc) if len(each) > 60 and " : " in each)
    assert [each for each, count in counts.items() if count > MOST_REPEATS] == []


def test_every_shared_text_is_shared_and_every_place_has_one() -> None:
    used = Counter(key for _, _, doc in docstrings() for key in PLACE.findall(doc))
    assert {key for key in PARAMETER_DOCS if used[key] < 2} == set()
    assert used.keys() <= PARAMETER_DOCS.keys()


def test_whatever_has_a_place_is_decorated() -> None:
    bare = {
        place
        for place, top, doc in docstrings()
        if PLACE.search(doc) and "fill_parameter_docs" not in map(ast.unparse, top.decorator_list)  # type: ignore[attr-defined]
    }
    assert bare == set()


@pytest.mark.parametrize("name", [name for name, _ in public_objects()])
def test_readers_see_texts_and_no_places(name: str) -> None:
    thing = dict(public_objects())[name]
    own = [each for _, each in inspect.getmembers(thing, inspect.isfunction)] if inspect.isclass(thing) else []
    assert not [each for each in (thing, *own) if PLACE.search(inspect.getdoc(each) or "")]


def test_a_place_becomes_the_parameter_with_its_text() -> None:
    doc = fill(
        "Draw.\n\n    Parameters\n    ----------\n    {tol, default=1e-5}\n    {offset_.median}\n    a : {1, 2}\n    "
    )
    assert "\n    tol : float, default=1e-5\n        Training stops when" in doc
    assert "\n    offset_ : ndarray of shape (D,)\n        Mean of the training rows; with" in doc
    assert doc.endswith("\n    a : {1, 2}\n    ")
    with pytest.raises(KeyError, match=r"'tolerance', which validation/parameter_docs\.py does not have"):
        fill("    {tolerance}")


def test_classes_methods_and_heirs() -> None:
    @fill_parameter_docs
    class Parent:
        """A parent.

        {offset_}
        """

        def draw(self) -> None:
            """Draw.

            {n}
            """

        def bare(self) -> None:
            pass

    class Child(Parent):
        def draw(self) -> None:
            pass

    for thing in (Parent, Child):
        assert inspect.getdoc(thing) == "A parent.\n\noffset_ : ndarray of shape (D,)\n    Mean of the training rows."
        assert inspect.getdoc(thing().draw) == "Draw.\n\nn : int, default=1\n    How many."
    assert Parent.bare.__doc__ is None
    assert "Fit the curve" in (inspect.getdoc(PrincipalCurve.fit) or "")
    assert "Weights of the rows; a weight of 2" in (inspect.getdoc(PrincipalCurve.fit) or "")


def test_estimators_are_what_they_were() -> None:
    model = pickle.loads(pickle.dumps(GTM(nodes=4)))
    assert type(model) is GTM
    assert [each.name for each in ClassDoc(GTM)["Parameters"]] == list(inspect.signature(GTM).parameters)


@pytest.mark.full  # Python compiles the package once more for it
def test_without_docstrings_all_works() -> None:
    code = "import prinfold; model = prinfold.GTM(nodes=3); print(model.__doc__, model.fit.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "None None\n", done.stderr
