"""``prinfold explore``: a page on which to move over a fitted surface."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.command import Command, out_arguments, output_arguments, table_arguments
from prinfold.cli.console import Console
from prinfold.cli.mapping import in_order, result_file
from prinfold.cli.models import StoredSurface, load_surface
from prinfold.cli.planning import read
from prinfold.cli.tables.columns import name_columns, one_column
from prinfold.cli.tables.dates import dates_of
from prinfold.cli.tables.reading import FileTable, refuse_absent
from prinfold.cli.tables.rows import ChosenCells, select_rows
from prinfold.cli.tables.writing import check_target
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import InvalidDataError, quantity

_MOST_WORDS = 60
"""Different words up to which a page has colours for them."""

_MOST_CLASSES = 30
"""Different numbers in a column up to which they are classes; more of them are something to colour by."""


def page_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for names and colours of rows."""
    group = parser.add_argument_group("page")
    group.add_argument(
        "--label", "-l", metavar="COLUMN", help="column with the class of each row, or a number or time to colour by"
    )
    group.add_argument(
        "--names",
        metavar="COLUMN",
        help="column with the name of each row, or none for their numbers; default: text that is different in each",
    )
    group.add_argument("--title", help="heading of the page")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="model that `prinfold fit` wrote")
    parser.add_argument(
        "data", type=Path, metavar="DATA", nargs="?", help="table whose rows are shown; without it the surface alone"
    )
    out_arguments(parser, "the name of the table and the model with -map.html")
    page_arguments(parser)
    look = parser.add_argument_group("how rows are shown")
    look.add_argument(
        "--image", type=_shape, metavar="HxW", help="columns are the pixels of an image, such as 28x28 or 32x32x3"
    )
    look.add_argument("--series", action="store_true", help="the columns are a series, drawn as a curve")
    look.add_argument("--open", action="store_true", help="open the page in a browser")
    table_arguments(parser)
    output_arguments(parser)


def _shape(word: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(x\d+){1,2}", word):
        raise argparse.ArgumentTypeError(f"must be height x width, such as 28x28, got {word!r}")
    return tuple(int(each) for each in word.split("x"))


def _explore(options: argparse.Namespace) -> int:
    from prinfold import explore

    in_order(options)
    console = Console.of(options)
    out = options.out or result_file(options, "-map.html")
    inputs = [options.model] if options.data is None else [options.model, options.data]
    surface = load_surface(options.model)
    for each in inputs:
        refuse_absent(each)
    check_target(out, inputs, force=options.force, writers=(".html", ".htm"))
    title = options.title or f"{options.model.stem}: {surface.kind} map"
    shown = {"image_shape": options.image, "series": options.series or None, "title": title}
    rows, about = rows_to_show(surface, options, console, carry=True)
    with console.note_warnings(), console.working("Making the page"):
        page = explore(surface.thing, rows, out, **about, **shown)
    n = 0 if rows is None else len(rows)
    of = f" of {quantity(n, 'row')}" if n else ""
    console.say(f"Map{of} written to {out} ({len(page.html) / 1e6:.1f} MB); open it in a browser")
    console.result |= {"command": "explore", "model": options.model, "data": options.data, "out": out, "rows": n}
    console.close()
    if options.open:
        import webbrowser

        webbrowser.open(out.absolute().as_uri())
    return 0


def rows_to_show(
    surface: StoredSurface, options: argparse.Namespace, console: Console, *, carry: bool = False
) -> tuple[Any, dict[str, Any]]:
    """The rows to show, and what they are called; None where there is no table.

    With ``carry``, the columns that the model does not take come along as well.
    """
    if options.data is None:
        if options.label or options.names:
            raise WrongCallError("--label and --names are columns of a table; name the table after the model")
        return None, {}
    table = read(options, console)
    console.note(*table.notes)
    cells = surface.cells(table)
    index = rows_on_map(surface, cells, options.missing, console)
    about: dict[str, Any] = {}
    label = None if options.label is None else one_column(table, options.label, "--label")
    if label is not None:
        about |= _row_colors(table, label, index)
    column = _name_column(table, options.names, [*cells.names, *([] if label is None else [label])], console)
    about["names"] = _names(table, column, index, len(cells.missing))
    if carry:
        about["decimal"] = table.output_format.decimal
        used = frozenset(cells.names)
        about["extra"] = {name: each[index] for name, each in table.columns.items() if name not in used}
    rows = cells.rows(index)
    return np.asarray(rows) if cells.matrix is not None else rows, about


def _row_colors(table: FileTable, label: str, index: IntArray) -> dict[str, Any]:
    """A column as classes or, where it is numbers or times, as values, whichever it looks like."""
    values = table.columns[label][index]
    if not table.is_number(label):
        dates = dates_of(values)
        if dates is not None:
            return {"values": Labels.named(dates.days, f"{label}, days since {dates.first}")}
        different = len({*values})
        if different > _MOST_WORDS:
            raise InvalidDataError(
                f"{label!r} has {different} different words in {table.path}, too many for colours; --label takes a "
                f"column of classes, of numbers or of times, and --names {shlex.quote(label)} calls rows by it"
            )
    is_class = not table.is_number(label) or len(np.unique(values)) <= _MOST_CLASSES
    return {"labels" if is_class else "values": Labels.named(values.astype(object), label)}


def _name_column(table: FileTable, asked: str | None, used: list[str], console: Console) -> str | None:
    """The column that rows are called by: the one asked for, else text that is different in each; None for numbers."""
    if asked is not None:
        return None if asked == "none" else one_column(table, asked, "--names")
    found = name_columns(table, used)
    if not found:
        return None
    console.note(
        f"rows are called by {found[0]}, which is different in each; --names COLUMN takes another column, --names none "
        "their numbers"
    )
    return found[0]


def rows_on_map(surface: StoredSurface, cells: ChosenCells, policy: str, console: Console) -> IntArray:
    """Indices of rows that have a place on the map."""
    keep_gaps = surface.takes_gaps or policy == "error"
    index, notes = select_rows(
        cells, policy if keep_gaps else "drop", takes_gaps=surface.takes_gaps, method=surface.kind
    )
    console.note(*notes)
    if not len(index):
        raise InvalidDataError(f"{cells.table.path} has no row that can be shown: cells are missing in each")
    return index


class Labels(np.ndarray[Any, Any]):
    """Classes or values of rows, with the name of their column."""

    name: str

    @classmethod
    def named(cls, values: Any, name: str) -> Labels:
        """Values of a column with its name."""
        found: Labels = values.view(cls)
        found.name = name
        return found


def _names(table: FileTable, column: str | None, index: IntArray, n_rows: int) -> list[str] | None:
    """Names of the rows: a column, or their numbers in the table where some were left out."""
    if column is None:
        return None if len(index) == n_rows else [str(row) for row in index]
    values = table.columns[column][index]
    if values.dtype == object:
        return ["" if each is None else str(each) for each in values]
    return [f"{each:.15g}" for each in values]


EXPLORE = Command(
    "write a page on which to move over the map and see the surface live",
    _arguments,
    _explore,
    """\
  prinfold explore data.prinfold data.csv --label species
  prinfold explore digits.prinfold digits.npz --label y --image 8x8
  prinfold explore data.prinfold""",
)
