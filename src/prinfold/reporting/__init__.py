"""A report: one page that tells what was fitted and why, shows it, and says what to be careful about."""

from __future__ import annotations

import os
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from prinfold.exceptions import InvalidParameterError, NoPermissionError, NotWrittenError
from prinfold.explorer import HEADING, Page, page_target
from prinfold.explorer.packing import asset, fill_page
from prinfold.files.atomic import as_path
from prinfold.loops import while_working
from prinfold.plot.inputs import RowClasses, row_marks, row_names
from prinfold.reporting import sections, writing
from prinfold.reporting.measurements import Study, study
from prinfold.reporting.pictures import Picture, Request, pictures
from prinfold.reporting.remarks import remarks
from prinfold.reporting.scene import scene_of
from prinfold.validation.failures import name_call_failures
from prinfold.validation.settings import check_setting, integer

__all__ = ["report"]

_SCRIPTS = ("decode.js", "chart.js", "paint.js", "profile.js")
"""Parts of the explorer that the page shares: how arrays travel, numbers in words, palettes, elements."""

_LINKS = {
    "map": "Map",
    "space": "Data space",
    "errors": "Errors",
    "training": "Training",
    "settings": "What was fitted",
    "cite": "Cite",
}


@while_working("Making the report")
@name_call_failures
def report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str] | None = "report.html",
    *,
    labels: Any = None,
    values: Any = None,
    names: Any = None,
    columns: Any = None,
    worst: int = 10,
    figures: str | os.PathLike[str] | None = None,
    reason: Any = None,
    title: str | None = None,
) -> Page:
    """Write one page about a fitted model: map, stretch, errors, surface in data space, settings, warnings, citations.

    The page is a single file that needs neither server nor network.

    Parameters
    ----------
    model : fitted estimator or pipeline
        The model; behind scaling steps of a pipeline everything is told in the units of X, but for distances.
    X : array-like of shape (n, D)
        Rows to report on: those that the model was fitted to, or others.
    path : str, path or None, default="report.html"
        Where to write the page; None writes nothing. A page that is there is replaced once all of the new one is on the
        disk, or else stays as it is.
    labels : array-like of shape (n,), default=None
        Class of each row, for colours and the table of the worst rows.
    values : array-like of shape (n,), default=None
        A number for each row to colour the map by, where there are no labels.
    names : sequence of length n, default=None
        Names of the rows; None takes the index of a pandas frame where it is more than a count, or numbers from 0.
    columns : sequence of str or int, default=None
        Up to three columns in which the surface is shown at first; None takes those in which it extends farthest.
    worst : int, default=10
        How many of the rows farthest from the surface are named.
    figures : str or path, default=None
        A folder to write the figures to, as PNG and as SVG, beside the page.
    reason : str, Comparison or Choice, default=None
        Why this method, these settings or this scaling: your own words, or what :func:`~prinfold.compare` or
        :func:`~prinfold.choose` returned.
    title : str, default=None
        Heading of the page.

    Returns
    -------
    Page
        Which shows itself in a notebook.
    """
    check_setting("worst", worst, integer(1))
    check_setting("title", title, HEADING)
    target, why = page_target(path, "report.html"), sections.why_this_one(reason)
    found = study(model, X)
    groups, numbers = row_marks(labels, values, found.n)
    named, scene = row_names(names, X, found.n), scene_of(found, groups, columns)
    asked = Request(found, model, X, labels, numbers, str(getattr(values, "name", None) or "value"))
    drawn = pictures(asked, _folder(figures))
    body = _body(found, model, groups, named, worst, drawn, scene, why)
    html = _page(found, body, scene, title or f"{type(found.fitted.model).__name__} report")
    return Page.of(html, target).written()


def _body(
    found: Study,
    model: Any,
    groups: RowClasses | None,
    names: list[str] | None,
    worst: int,
    drawn: list[Picture],
    scene: dict[str, Any] | str,
    why: list[str],
) -> str:
    """All sections, in the order in which they are read."""
    in_space = [writing.paragraph(scene)] if isinstance(scene, str) else [_SCENE_HTML]
    in_space.append(sections.section_figures(drawn, "space"))
    return "\n".join(
        (
            writing.remarks(remarks(found)),
            sections.facts(found),
            writing.section("map", "The map", sections.section_figures(drawn, "map"), *sections.pieces(found)),
            writing.section("space", f"The {found.fitted.word} in data space", *in_space),
            sections.errors(found, groups, names, worst, sections.section_figures(drawn, "errors")),
            sections.training(found, sections.section_figures(drawn, "training")),
            sections.settings(found, sections.section_figures(drawn, "settings"), why),
            sections.citations(model),
        )
    )


_SCENE_HTML = (
    "<p>Choose three columns; drag to turn, or use the arrow keys. Each axis runs over the extent of its column.</p>"
    '<div id="pf-scene"><noscript>This view needs JavaScript, which is switched off.</noscript></div>'
)


def _page(found: Study, body: str, scene: dict[str, Any] | str, title: str) -> str:
    data = {"scene": None if isinstance(scene, str) else scene}
    parts = {
        "title": escape(title),
        "about": escape(sections.opening_sentence(found)),
        "links": "".join(f'<a href="#{name}">{words}</a>' for name, words in _LINKS.items()),
        "body": body,
    }
    script = "\n".join((*(asset(name) for name in _SCRIPTS), _asset_text("scene.js"), _asset_text("start.js")))
    style = asset("style.css") + _asset_text("report.css")
    return fill_page(_asset_text("report.html"), data, style=style, script=script, **parts)


def _folder(figures: Any) -> Path | None:
    """The folder for figures; made where it is missing."""
    if figures is None:
        return None
    folder = as_path(figures)
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidParameterError(f"figures={str(folder)!r} is a file; name a folder to write the figures to")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        kind = NoPermissionError if isinstance(error, PermissionError) else NotWrittenError
        raise kind(error.errno, error.strerror, str(folder)) from None
    return folder


def _asset_text(name: str) -> str:
    return files("prinfold.reporting").joinpath("assets", name).read_text(encoding="utf-8")
