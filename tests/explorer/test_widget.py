"""The explorer as a widget: the same page, and the rows that are selected go both ways."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from prinfold import GTM, datasets, explorer
from prinfold.exceptions import MissingExtraError
from prinfold.explorer import notebooks
from prinfold.explorer.packing import pack
from prinfold.explorer.payload import payload_of

pytestmark = pytest.mark.filterwarnings("ignore")

# What a notebook hands to a widget: values by name, and who wants to hear of changes.
_MODEL = """
const model = {
  values: VALUES, heard: {}, saved: 0,
  get: (name) => model.values[name],
  set(name, value) { model.values[name] = value; (model.heard[`change:${name}`] ?? []).forEach((each) => each()); },
  save_changes() { model.saved += 1; },
  on(name, each) { (model.heard[name] ??= []).push(each); },
  off(name, each) { model.heard[name] = model.heard[name].filter((other) => other !== each); },
};
model.close = render({ model, el: document.getElementById("cell") });
window.prinfold = model;
"""


class _Cell:
    """A page with one cell of a notebook."""

    def __init__(self, made: Any) -> None:
        values = json.dumps({"data": made.data, "selected": made.selected}).replace("<", "\\u003c")
        script = f"{made._esm}\n{_MODEL.replace('VALUES', values)}"
        self.html = f"<style>{made._css}</style><div id='cell'></div><script type='module'>{script}</script>"


@pytest.fixture(scope="module")
def pipe() -> tuple[GTM, np.ndarray]:
    data = datasets.make_pipe_flow(60, rng=0)
    return GTM(nodes=6, basis=3, max_iter=3, tol=0.0).fit(data.X), data.X


@pytest.fixture
def made(pipe: tuple[GTM, np.ndarray]) -> Any:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    return explorer.widget(*pipe)


def test_it_holds_what_the_page_holds(pipe: tuple[GTM, np.ndarray], made: Any) -> None:
    words = dict.fromkeys(("labels", "values", "names", "extra", "image_shape", "series", "title"))
    assert made.data == pack(payload_of(*pipe, **words))
    assert made.selected == []


def test_rows_selected_in_python_are_selected_on_the_page(made: Any, open_page: Callable[..., Any]) -> None:
    made.selected = [3, 5]
    tab = open_page(_Cell(made))
    assert tab.locator(".pf-count").inner_text() == "2 of 60 rows selected"
    tab.evaluate("window.prinfold.set('selected', [7])")
    assert tab.locator(".pf-count").inner_text() == "1 of 60 rows selected"
    assert tab.evaluate("window.prinfold.saved") == 0, "what follows does not lead"


def test_rows_selected_on_the_page_come_back(made: Any, open_page: Callable[..., Any]) -> None:
    tab = open_page(_Cell(made))
    tab.keyboard.press("Tab")
    tab.get_by_role("button", name="Lasso").click()
    box = tab.locator(".pf-map").bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.02)]
    places = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in corners]
    tab.mouse.move(*places[0])
    tab.mouse.down()
    for place in places[1:]:
        tab.mouse.move(*place, steps=4)
    tab.mouse.up()
    assert tab.evaluate("window.prinfold.values.selected") == list(range(60))
    assert tab.evaluate("window.prinfold.saved") == 1


def test_a_cell_that_is_closed_hears_no_more(made: Any, open_page: Callable[..., Any]) -> None:
    tab = open_page(_Cell(made))
    tab.evaluate("window.prinfold.close()")
    tab.evaluate("window.prinfold.set('selected', [7])")
    assert tab.locator(".pf-count").inner_text() == "0 of 60 rows selected"


def test_without_anywidget_the_extra_is_named(pipe: tuple[GTM, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    notebooks._widget_class.cache_clear()
    with pytest.raises(MissingExtraError, match="prinfold\\[jupyter\\]"):
        explorer.widget(*pipe)
