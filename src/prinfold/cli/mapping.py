"""``prinfold transform`` and ``prinfold project``: rows of a table on a fitted surface."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from prinfold._typing import BoolArray, IntArray
from prinfold.cli.command import Command, out_arguments, output_arguments, table_arguments
from prinfold.cli.console import Console
from prinfold.cli.models import StoredSurface, by_blocks, columns_to_keep, load_surface
from prinfold.cli.planning import read
from prinfold.cli.tables.reading import FileTable, refuse_absent
from prinfold.cli.tables.rows import ChosenCells, select_rows
from prinfold.cli.tables.writing import STANDARD, WRITERS, check_target, is_text, sibling_file, write_table
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import quantity
from prinfold.loops import Meter

Results = Callable[[StoredSurface, ChosenCells, IntArray], dict[str, Any]]
"""What is worked out for some rows, by the name of the column it goes into."""


def _arguments(default: str, *, modes: bool = False) -> Callable[[argparse.ArgumentParser], None]:
    def add(parser: argparse.ArgumentParser) -> None:
        pair_arguments(parser)
        out_arguments(parser, f"{default}; - is standard output")
        if modes:
            parser.add_argument(
                "--modes",
                action="store_true",
                help="also write the most likely place of each row and its distance from the mean",
            )
        parser.add_argument(
            "--keep",
            "-k",
            action="append",
            metavar="LIST",
            help="columns of the table to copy into the result, or all, or none; default: those the model does not use",
        )
        table_arguments(parser)
        output_arguments(parser)

    return add


def pair_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a model and a table."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model that `prinfold fit` wrote")
    parser.add_argument("data", type=Path, metavar="DATA", help="table with the columns that the model was fitted to")


def result_file(options: argparse.Namespace, ending: str) -> Path:
    """The file of a result, beside the table: named after it, and after the model where that is called otherwise."""
    if options.data is None:
        return sibling_file(options.model, ending)
    plain, model = sibling_file(options.data, ""), options.model.stem
    stem = model if model.startswith(plain.name) else f"{plain.name}-{model}"
    return plain.with_name(stem + ending)


def in_order(options: argparse.Namespace) -> None:
    """Put the model first, where the two were named the other way round."""
    if options.data is not None and options.data.suffix == ".prinfold" and options.model.suffix != ".prinfold":
        options.model, options.data = options.data, options.model


def _run(name: str, ending: str, results: Results) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        in_order(options)
        out = options.out or result_file(options, ending)
        if out == STANDARD and options.json:
            raise WrongCallError("--json and --out - both want standard output; name a file with --out")
        console = Console.of(options, to_errors=out == STANDARD)
        surface = load_surface(options.model)
        refuse_absent(options.data)
        check_target(out, [options.data, options.model], force=options.force, writers=WRITERS, standard=True)
        wants_modes = getattr(options, "modes", False)
        if wants_modes and not hasattr(surface.model, "posterior_mode"):
            raise WrongCallError(f"a {surface.kind} has no posterior, and so no modes; leave --modes out")
        table = read(options, console)
        cells = surface.cells(table)
        placed, written = _rows(surface, cells, options.missing, console)
        gaps = int(cells.incomplete[placed].sum())
        if name == "project" and gaps:
            console.note(
                f"{quantity(gaps, 'row')} with missing cells: the nearest point is found from the known cells, and "
                "its distance is scaled up to all columns"
            )
        if name == "transform" and surface.branches is not None and not surface.has_root:
            console.note(
                "branch and position say where on the branches a row lies; latent_1 counts through all branches laid "
                "end to end, and is no time. Times begin at a root: fit with --set root=ROW, a row counted from 0"
            )
        with console.note_warnings(), console.working("Placing the rows"):
            found = _by_row(surface, cells, placed, _with_modes(results) if wants_modes else results)
        columns = _result_columns(table, cells, found, placed, written, options.keep or [])
        with nullcontext() if out == STANDARD else console.working(f"Writing {out.name}"):
            write_table(out, columns, table.output_format)
        console.note(*table.notes, *([table.output_format.words] if is_text(out) and table.output_format.words else []))
        console.say(f"{quantity(len(written), 'row')} → {out}: {', '.join(columns)}" if out != STANDARD else "")
        console.result |= {"command": name, "model": options.model, "data": options.data, "out": out}
        console.result |= {"rows": len(written), "placed": len(placed), "columns": list(columns)}
        console.close()
        return 0

    return run


def _rows(surface: StoredSurface, cells: ChosenCells, policy: str, console: Console) -> tuple[IntArray, IntArray]:
    """Rows that get a place, and rows that are written; those without a place have empty cells."""
    takes_gaps = surface.takes_gaps
    hopeless: BoolArray = cells.empty if takes_gaps else cells.incomplete
    if policy == "keep":
        if hopeless.any():
            why = "all cells are missing" if takes_gaps else "cells are missing"
            number = int(hopeless.sum())
            verbs = ("gets", "its") if number == 1 else ("get", "their")
            console.note(f"{quantity(number, 'row')} {verbs[0]} no place, because {why}; {verbs[1]} results are empty")
        return np.flatnonzero(~hopeless), np.arange(len(hopeless))
    index, notes = select_rows(cells, policy, takes_gaps=takes_gaps, method=surface.kind)
    console.note(*notes)
    return index, index


def _by_row(surface: StoredSurface, cells: ChosenCells, index: IntArray, results: Results) -> dict[str, Any]:
    if not len(index):
        return {}
    with Meter("Placing the rows", len(index)) as meter:
        blocks = by_blocks(lambda part: results(surface, cells, part), index, meter.tell)
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _result_columns(
    table: FileTable, cells: ChosenCells, found: dict[str, Any], placed: IntArray, written: IntArray, keep: list[str]
) -> dict[str, Any]:
    """Columns of the result: the number of each row, what came along, what was worked out."""
    columns: dict[str, Any] = {"row": written}
    for name in columns_to_keep(table, cells.names, keep):
        columns[_unused_name(name, {*columns, *found})] = table.columns[name][written]
    for name, values in found.items():
        whole = np.full(len(cells.missing), np.nan)
        whole[placed] = values
        columns[name] = whole[written]
    return columns


def _unused_name(name: str, taken: set[str]) -> str:
    """A name that nothing else has."""
    while name in taken:
        name = f"{name} (table)"
    return name


def _coordinates(surface: StoredSurface, cells: ChosenCells, index: IntArray) -> dict[str, Any]:
    Z = surface.coordinates(cells, index)
    found = surface.on_branches(Z) | {f"latent_{j + 1}": Z[:, j] for j in range(Z.shape[1])}
    likelihood = surface.log_likelihood(cells, index)
    return found if likelihood is None else found | {"log_likelihood": likelihood}


def _with_modes(results: Results) -> Results:
    """The same, and the likeliest place of each row."""

    def work(surface: StoredSurface, cells: ChosenCells, index: IntArray) -> dict[str, Any]:
        modes, distance = surface.modes(cells, index)
        found = {f"mode_{j + 1}": modes[:, j] for j in range(modes.shape[1])}
        return results(surface, cells, index) | found | ({} if distance is None else {"mode_distance": distance})

    return work


def _projections(surface: StoredSurface, cells: ChosenCells, index: IntArray) -> dict[str, Any]:
    points, distance = surface.projection(cells, index)
    return {name: points[:, j] for j, name in enumerate(cells.names)} | {"distance": distance}


TRANSFORM = Command(
    "write the latent coordinates of the rows of a table",
    _arguments("the name of the table and the model with -latent.csv", modes=True),
    _run("transform", "-latent.csv", _coordinates),
    """\
  prinfold transform data.prinfold data.csv
  prinfold transform data.prinfold new.parquet --out new-latent.parquet --keep id,species
  prinfold transform data.prinfold data.csv --out - | head""",
)
PROJECT = Command(
    "write the nearest point of the surface to each row of a table",
    _arguments("the name of the table and the model with -projected.csv"),
    _run("project", "-projected.csv", _projections),
    """\
  prinfold project data.prinfold data.csv
  prinfold project data.prinfold data.csv --out smooth.feather --keep none""",
)
