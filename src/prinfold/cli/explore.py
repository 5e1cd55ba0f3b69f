"""``prinfold explore``: a page on which to move over a fitted surface."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.columns import one_column
from prinfold.cli.command import Command, out_arguments, table_arguments, talk_arguments
from prinfold.cli.console import Console, counted
from prinfold.cli.mapping import in_order
from prinfold.cli.models import Surface, load_surface
from prinfold.cli.planning import read
from prinfold.cli.rows import Cells, select_rows
from prinfold.cli.tables import Table
from prinfold.cli.usage import WrongCallError
from prinfold.cli.writing import check_target, named_after, write_text
from prinfold.exceptions import InvalidDataError

_MOST_CLASSES = 30
"""Different numbers in a column up to which they are classes; more of them are something to colour by."""


def page_arguments(parser: argparse.ArgumentParser) -> None:
    """What rows are called and how they look."""
    group = parser.add_argument_group("page")
    group.add_argument(
        "--label", "-l", metavar="COLUMN", help="column with the class of each row, or a number to colour by"
    )
    group.add_argument("--names", metavar="COLUMN", help="column with the name of each row")
    group.add_argument("--title", help="heading of the page")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="model that `prinfold fit` wrote")
    parser.add_argument(
        "data", type=Path, metavar="DATA", nargs="?", help="table whose rows are shown; without it the surface alone"
    )
    out_arguments(parser, "the table's name with -map.html")
    page_arguments(parser)
    look = parser.add_argument_group("how rows are shown")
    look.add_argument(
        "--image", type=_shape, metavar="HxW", help="columns are the pixels of an image, such as 28x28 or 32x32x3"
    )
    look.add_argument("--series", action="store_true", help="columns are a curve")
    look.add_argument("--open", action="store_true", help="open the page in a browser")
    table_arguments(parser)
    talk_arguments(parser)


def _shape(word: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(x\d+){1,2}", word):
        raise argparse.ArgumentTypeError(f"must be height x width, such as 28x28, got {word!r}")
    return tuple(int(each) for each in word.split("x"))


def _explore(options: argparse.Namespace) -> int:
    from prinfold import explore

    in_order(options)
    console = Console.of(options)
    out = options.out or named_after(options.data or options.model, "-map.html")
    inputs = [options.model] if options.data is None else [options.model, options.data]
    check_target(out, inputs, force=options.force, writers=(".html", ".htm"))
    surface = load_surface(options.model)
    title = options.title or f"{options.model.stem}: {surface.kind} map"
    shown = {"image_shape": options.image, "series": options.series or None, "title": title}
    rows, about = given_rows(surface, options, console, carry=True)
    with console.listening():
        page = explore(surface.thing, rows, None, **about, **shown)
    write_text(out, page.html)
    n = 0 if rows is None else len(rows)
    console.say(
        f"{counted(n, 'row')} on a page of {len(page.html) / 1e6:.1f} MB, written to {out}; open it in a browser"
    )
    console.result |= {"command": "explore", "model": options.model, "data": options.data, "out": out, "rows": n}
    console.close()
    if options.open:
        import webbrowser

        webbrowser.open(out.absolute().as_uri())
    return 0


def given_rows(
    surface: Surface, options: argparse.Namespace, console: Console, *, carry: bool = False
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
    index = shown_rows(surface, cells, options.missing, console)
    about: dict[str, Any] = {}
    if options.label is not None:
        label = one_column(table, options.label, "--label")
        is_class = not table.is_number(label) or len(np.unique(table.columns[label][index])) <= _MOST_CLASSES
        about["labels" if is_class else "values"] = Labels.of(table, label, index)
    about["names"] = _names(table, options.names, index, len(cells.missing))
    if carry:
        about["extra"] = {name: each[index] for name, each in table.columns.items() if name not in cells.names}
    rows = cells.rows(index)
    return np.asarray(rows) if cells.matrix is not None else rows, about


def shown_rows(surface: Surface, cells: Cells, policy: str, console: Console) -> IntArray:
    """Rows that have a place on the map."""
    keep_gaps = surface.takes_gaps or policy == "error"
    index, notes = select_rows(
        cells, policy if keep_gaps else "drop", takes_gaps=surface.takes_gaps, method=surface.kind
    )
    console.note(*notes)
    if not len(index):
        raise InvalidDataError(f"{cells.table.path} has no row that can be shown: cells are missing in each")
    return index


class Labels(np.ndarray[Any, Any]):
    """Classes of rows, with the name of their column."""

    name: str

    @classmethod
    def of(cls, table: Table, name: str, index: IntArray) -> Labels:
        """A column as classes."""
        found: Labels = table.columns[name][index].astype(object).view(cls)
        found.name = name
        return found


def _names(table: Table, column: str | None, index: IntArray, n_rows: int) -> list[str] | None:
    """What rows are called: a column, or their numbers in the table where some were left out."""
    if column is None:
        return None if len(index) == n_rows else [str(row) for row in index]
    values = table.columns[one_column(table, column, "--names")][index]
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
