"""``prinfold report``: one page about a fitted model and the rows of a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from prinfold.cli.command import Command, out_arguments, output_arguments, table_arguments, whole_number
from prinfold.cli.console import Console
from prinfold.cli.explore import page_arguments, rows_to_show
from prinfold.cli.mapping import in_order, pair_arguments, result_file
from prinfold.cli.models import StoredSurface, load_surface
from prinfold.cli.tables.columns import comma_separated
from prinfold.cli.tables.reading import refuse_absent
from prinfold.cli.tables.writing import check_folder, check_target
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import join_names, quantity


def _arguments(parser: argparse.ArgumentParser) -> None:
    pair_arguments(parser)
    out_arguments(parser, "the name of the table and the model with -report.html")
    page_arguments(parser)
    content = parser.add_argument_group("what is on it")
    content.add_argument(
        "--axes", action="append", metavar="LIST", help="up to three columns in which to show the surface at first"
    )
    content.add_argument("--worst", type=whole_number(1), default=10, help="number of worst rows to list (%(default)s)")
    content.add_argument("--reason", metavar="WORDS", help="why this method and these settings; shown on the page")
    content.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures there too, as PNG and SVG")
    table_arguments(parser)
    output_arguments(parser)


def _report(options: argparse.Namespace) -> int:
    from prinfold import report

    in_order(options)
    console = Console.of(options)
    out = options.out or result_file(options, "-report.html")
    surface = load_surface(options.model)
    refuse_absent(options.data)
    check_target(out, [options.model, options.data], force=options.force, writers=(".html", ".htm"))
    if options.figures is not None:
        _check_figures(options.figures, force=options.force)
    rows, about = rows_to_show(surface, options, console)
    axes = _axes([word for words in options.axes or [] for word in comma_separated(words)], surface)
    title = options.title or f"{options.model.stem}: {surface.kind} report"
    shown = {"columns": axes or None, "worst": options.worst, "title": title, "reason": options.reason}
    with console.note_warnings(), console.working("Writing the report"):
        report(surface.thing, rows, out, **about, **shown, figures=options.figures)
    beside = "" if options.figures is None else f", with figures in {options.figures}"
    console.say(f"Report on {quantity(len(rows), 'row')} written to {out}{beside}; open it in a browser")
    console.result |= {"command": "report", "model": options.model, "data": options.data, "out": out}
    console.result |= {"rows": len(rows), "figures": options.figures}
    console.close()
    return 0


def _check_figures(folder: Path, *, force: bool) -> None:
    """Say at once, and not after the work, that a figure would be written over something."""
    from prinfold.reporting.pictures import RECIPES

    if folder.exists() and not folder.is_dir():
        raise WrongCallError(f"{folder} is a file; name a folder with --figures")
    names = [f"{name}.{kind}" for name in RECIPES for kind in ("png", "svg")]
    check_folder(folder, names, "--figures", force=force)


def _axes(words: list[str], surface: StoredSurface) -> list[int]:
    """Positions of columns of a model that are given by name or by number from 1."""
    names = list(surface.names or ())
    found = []
    for word in words:
        if word in names:
            found.append(names.index(word))
        elif word.isdecimal() and 1 <= int(word) <= surface.width:
            found.append(int(word) - 1)
        else:
            known = f"{join_names(names, 12)}, or by number " if names else ""
            raise WrongCallError(
                f"--axes names {word!r}, which is no column of the model; it has {known}1 to {surface.width}"
            )
    if len(found) > 3 or len(set(found)) < len(found):
        raise WrongCallError(f"--axes takes up to three different columns, got {', '.join(words)}")
    return found


REPORT = Command(
    "write a page about a model: map, errors, worst rows, warnings, citations",
    _arguments,
    _report,
    """\
  prinfold report data.prinfold data.csv --label species
  prinfold report data.prinfold data.csv --names id --axes weight,height --worst 20
  prinfold report data.prinfold data.csv --figures figures""",
)
