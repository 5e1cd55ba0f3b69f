"""The explorer: one page that needs no server and no network, and evaluates the fitted surface by itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from prinfold.exceptions import PrinfoldWarning, warn_caller
from prinfold.explorer.notebooks import widget
from prinfold.explorer.packing import asset, fill_page, script
from prinfold.explorer.payload import payload_of
from prinfold.files.atomic import as_path, check_target, readable, write_text
from prinfold.loops import while_working
from prinfold.validation.failures import name_call_failures
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import check_setting, instance_of, nothing, one_of

__all__ = ["Page", "explore", "script", "widget"]

_FRAME_HEIGHT = 760

HEADING = nothing | instance_of(str, words="a text")
"""The heading of a page."""


@dataclass(frozen=True)
class Page:
    """A page that was made: where it was written, if it was, and the text itself."""

    html: str
    path: Path | None = None

    @classmethod
    def of(cls, html: str, path: Path | None) -> Page:
        """A page whose text fits into a file, whatever names there are in the data."""
        text = readable(html)
        if text != html:
            n = text.count("\ufffd") - html.count("\ufffd")
            warn_caller(
                f"{n} character(s) in names or words on the page are lone surrogates, halves of a character that no "
                "file can hold; they are shown as \N{REPLACEMENT CHARACTER} (U+FFFD)",
                PrinfoldWarning,
            )
        return cls(text, path)

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"at {str(self.path)!r}"
        return f"Page({where}, {len(self.html) / 1e6:.1f} MB)"

    def written(self) -> Page:
        """The page itself, once its text is where it belongs."""
        if self.path is not None:
            write_text(self.path, self.html)
        return self

    def _repr_html_(self) -> str:
        """The page within a notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html, quote=True)}" width="100%" height="{_FRAME_HEIGHT}" '
            'sandbox="allow-scripts allow-downloads" style="border:0" title="prinfold explorer"></iframe>'
        )


def page_target(path: str | os.PathLike[str] | None, example: str) -> Path | None:
    """The file to write a page to, or None; checked before the page is made, which may take a while."""
    if path is not None:
        check_target(path, example)
    return None if path is None else as_path(path)


@while_working("Making the page")
@name_call_failures
@fill_parameter_docs
def explore(
    model: Any,
    X: Any = None,
    path: str | os.PathLike[str] | None = "map.html",
    *,
    labels: Any = None,
    values: Any = None,
    names: Any = None,
    extra: Any = None,
    image_shape: tuple[int, ...] | None = None,
    series: Any = None,
    title: str | None = None,
    decimal: str = ".",
) -> Page:
    """Write a page on which to move over the map and see what lies in data space there.

    The page is one file that needs no server and no network. It evaluates the fitted surface in the browser, in the
    units of the data: moving over the map shows the point of the surface live, a click shows a row beside it, and rows
    that are selected with a lasso can be saved as CSV. In a script, ``window.prinfold.decode(z)`` gives what
    ``inverse_transform`` gives.

    Parameters
    ----------
    model : fitted estimator or pipeline
        The model; steps before it in a pipeline are undone, as long as they are straight, such as scaling or rotating.
    X : array-like of shape (n, D), default=None
        Rows to show; None shows the surface alone.
    path : str, path or None, default="map.html"
        Where to write the page; None writes nothing. A page that is there is replaced once all of the new one is on the
        disk, or else stays as it is.
    {labels}
    values : mapping, frame or array-like of shape (n,), default=None
        More numbers to colour rows by; the columns of X are offered anyway.
    names : sequence of length n, default=None
        Names of the rows; None takes the index of a pandas frame where it is more than a count.
    extra : mapping or frame, default=None
        Further columns of the rows, of any kind, that go with them into the CSV file.
    image_shape : tuple of int, default=None
        Rows and columns, where the columns of X are the pixels of an image; with a 3 behind for colours.
    {series}
    title : str, default=None
        Heading of the page.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in the CSV file; with a comma, semicolons separate its cells.

    Returns
    -------
    Page
        Which shows itself in a notebook.
    """
    check_setting("title", title, HEADING)
    check_setting("decimal", decimal, one_of((".", ",")))
    target = page_target(path, "map.html")
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
        decimal=decimal,
    )
    return Page.of(_render(found), target).written()


def _render(payload: dict[str, Any]) -> str:
    parts = {"style": asset("page.css") + asset("style.css"), "script": f"{script()}\n{asset('start.js')}"}
    return fill_page(asset("page.html"), payload, title=escape(payload["title"]), **parts)
