"""The explorer as a widget of a notebook: the same page, and the rows that are selected on it come back to Python."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from prinfold.exceptions import import_optional
from prinfold.explorer.packing import asset, pack, script
from prinfold.explorer.payload import payload_of
from prinfold.validation.parameter_docs import fill_parameter_docs

__all__ = ["widget"]


@fill_parameter_docs
def widget(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    names: Any = None,
    extra: Any = None,
    image_shape: tuple[int, ...] | None = None,
    series: Any = None,
    title: str | None = None,
) -> Any:
    """The explorer as a widget, for notebooks with anywidget (``pip install "prinfold[jupyter]"``).

    Parameters
    ----------
    {model}
    X : array-like of shape (n, D), default=None
        Rows to show; None shows the surface alone.
    {labels}
    values : mapping, frame or array-like of shape (n,), default=None
        More numbers to colour rows by.
    names : sequence of length n, default=None
        Names of the rows; None takes the index of a pandas frame where it is more than a count.
    extra : mapping or frame, default=None
        Further columns of the rows, of any kind, that go with them into the CSV file.
    image_shape : tuple of int, default=None
        Rows and columns, where the columns of X are the pixels of an image.
    {series}
    title : str, default=None
        Heading.

    Returns
    -------
    anywidget.AnyWidget
        Its ``selected`` is the list of rows that are selected, both ways: those lassoed on the page, or set in Python.
    """
    made = _widget_class()
    found = payload_of(
        model,
        X,
        labels=labels,
        values=values,
        names=names,
        extra=extra,
        image_shape=image_shape,
        series=series,
        title=title,
    )
    return made(data=pack(found))


@cache
def _widget_class() -> Any:
    """Made when it is first wanted, because its parent is optional."""
    anywidget = import_optional("anywidget", "jupyter", "the widget", "use explore, which needs nothing")
    traitlets = import_module("traitlets")  # comes with anywidget

    class Explorer(anywidget.AnyWidget):  # type: ignore[name-defined]
        """A map to move over."""

        _esm = f"{script()}\n{asset('widget.js')}"
        _css = asset("style.css")
        data = traitlets.Dict().tag(sync=True)
        selected = traitlets.List(traitlets.Int()).tag(sync=True)

    return Explorer
