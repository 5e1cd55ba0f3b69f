"""The plan of a fit: columns, rows, scaling and method, all chosen and checked before the work begins."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.console import Console
from prinfold.cli.methods import RAW, Scaling, choose_scaling, make_model
from prinfold.cli.tables.columns import ChosenColumns, choose_columns, one_column
from prinfold.cli.tables.memory import release_memory
from prinfold.cli.tables.reading import FileTable, Reading, read_table
from prinfold.cli.tables.rows import ChosenCells, select_rows
from prinfold.cli.tables.sampling import Draw
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import InvalidDataError, quantity
from prinfold.validation.named_block import NamedBlock

_FEWEST_ROWS = 30

_BLOCK_BYTES = 2**22
_FEWEST_BLOCK_ROWS = 1024
"""Size of a block of a table that is not read as a whole, of which several copies are in memory at times."""

_ONE_COLUMN = (
    "only 1 column varies, so that there is no surface to fit. The result is a curve along that column, which only "
    "puts the rows in order; use more columns for a map"
)


def choice_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose columns."""
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--columns",
        "-c",
        action="append",
        metavar="LIST",
        help="columns to use: names, patterns (gene_*), ranges (first:last), numbers from 1 on; default: all numbers",
    )
    group.add_argument(
        "--drop", "-d", action="append", metavar="LIST", help="columns to leave out, given in the same way"
    )
    group.add_argument("--label", "-l", metavar="COLUMN", help="column with the class of each row, which is not fitted")


def scaling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for scaling."""
    scaling = parser.add_argument_group(
        "scaling (kept in the model; results are in your units)"
    ).add_mutually_exclusive_group()
    scaling.add_argument(
        "--standardize",
        action="store_const",
        const="standardize",
        dest="scaling",
        help="divide each column by its standard deviation",
    )
    scaling.add_argument(
        "--whiten",
        action="store_const",
        const="whiten",
        dest="scaling",
        help="rotate and scale columns, so that they are uncorrelated with variance 1",
    )
    scaling.add_argument(
        "--raw",
        action="store_const",
        const="raw",
        dest="scaling",
        help="leave columns as they are (default: chosen by their standard deviations)",
    )


@dataclass(frozen=True)
class FitPlan:
    """An estimator that is not fitted yet, the step that scales columns, and the rows to fit them to.

    ``blocks`` are all rows of a table of which only some were read.
    """

    cells: ChosenCells
    index: IntArray
    model: Any
    scaling: Scaling
    why_scaling: str
    notes: tuple[str, ...] = ()
    blocks: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows to fit."""
        return len(self.index) if self.blocks is None else int(self.cells.table.whole or 0)

    @property
    def rows(self) -> Any:
        """The rows, as the estimator takes them."""
        return self.cells.rows(self.index)


def read(options: argparse.Namespace, console: Console, draw: Draw | None = None) -> FileTable:
    """The table that the options name, or some rows that are drawn of it."""
    decimal = {"point": ".", "comma": ","}.get(options.decimal)
    reading = Reading(options.separator, options.header, tuple(options.na), options.array, decimal, draw)
    with console.note_warnings(), console.working(f"Reading {options.data.name}"):
        return read_table(options.data, reading)


def chosen_columns(table: FileTable, options: argparse.Namespace, *, text: bool = False) -> ChosenColumns:
    """The columns that the options name."""
    return choose_columns(table, options.columns or [], options.drop or [], label_of(table, options), text=text)


def label_of(table: FileTable, options: argparse.Namespace) -> list[str]:
    """The column of labels, where there is one."""
    return [] if options.label is None else [one_column(table, options.label, "--label")]


def check_dimensions(asked: int | None, cells: ChosenCells) -> None:
    """Refuse more dimensions than there are columns; levels of text span more than one each."""
    if asked is not None and cells.matrix is not None and asked > len(cells.names):
        raise WrongCallError(
            f"a surface of {asked} dimensions does not fit into {quantity(len(cells.names), 'column')}; --dimensions "
            f"takes fewer than there are columns, such as {max(min(2, len(cells.names) - 1), 1)}"
        )


def scaling_for(cells: ChosenCells, asked: str | None) -> tuple[Scaling, str]:
    """The scaling to use for some columns of a table, and the reason in words."""
    table, names = cells.table, cells.names
    return choose_scaling(asked, cells.matrix, names, embedding=table.embedding, spoken=table.with_units(names))


def make_plan(
    table: FileTable, chosen: ChosenColumns, cls: Any, options: argparse.Namespace, *, verbose: bool
) -> FitPlan:
    """Choose rows, scaling and method before the work begins; settings that cannot work are refused here."""
    cells = ChosenCells.of(table, chosen.names)
    scaling, why = scaling_for(cells, options.scaling)
    if scaling is not RAW and cells.matrix is None:
        raise InvalidDataError(
            f"columns of text cannot be scaled; leave --{scaling.name} out, or take numbers only with --columns"
        )
    check_dimensions(options.dimensions, cells)
    width = _varying(cells)
    model = make_model(cls, width, options.dimensions, options.seed, options.settings, verbose=verbose)
    gaps = bool(model._accept_missing) and not scaling.mixes
    name = "whitening" if scaling.mixes else cls.__name__
    index, notes = select_rows(cells, options.missing, takes_gaps=gaps, method=name)
    if len(index) < 2:
        raise InvalidDataError(
            f"{table.path} has {quantity(len(index), 'row')} to fit; a surface needs at least two, and better dozens"
        )
    if len(index) < _FEWEST_ROWS:
        notes.append(f"{len(index)} rows are few: expect a rough idea rather than a map")
    if width == 1:
        notes.append(_ONE_COLUMN)
    elif options.dimensions is None and width <= 2 and model.get_params().get("n_components") == 1:
        few = f"{quantity(width, 'column')} vary" if width else "no column varies"
        exact = ", because one of 2 would fit any rows exactly; see --dimensions" if width else ""
        notes.append(f"{few}: the result is a curve{exact}")
    blocks = _blocks(cells, model, scaling, options)
    return FitPlan(cells, index, model, scaling, why, (*_notes_on_rows(table, blocks), *notes), blocks)


def _blocks(cells: ChosenCells, model: Any, scaling: Scaling, options: argparse.Namespace) -> Any:
    """All rows of a table of which some were looked at, where the method reads them so; else None."""
    whole = cells.table.whole is not None and options.sample is None and options.missing == "keep"
    file = cells.table.rows_file
    if not whole or file is None or scaling.mixes or not getattr(model, "_takes_blocks", False):
        return None
    from prinfold import Blocks

    rows = max(_BLOCK_BYTES // (8 * len(cells.names)), _FEWEST_BLOCK_ROWS)
    return Blocks(str(file), columns=cells.names, rows=rows)


def _notes_on_rows(table: FileTable, blocks: Any) -> list[str]:
    """Notes for tables of which not all rows were read at once."""
    if table.whole is None:
        return []
    some = f"{len(table)} of {table.whole} rows, drawn at random (--seed)"
    if blocks is None:
        return [f"the fit uses {some}; --sample N sets the number"]
    return [f"the table is read block by block, once for each iteration; columns and scaling are chosen from {some}"]


def _varying(cells: ChosenCells) -> int:
    """Number of columns that vary; with text among them all count, and one more, since levels fill no plane."""
    if cells.matrix is None:
        return len(cells.names) + 1
    there = np.where(cells.missing, np.nan, cells.matrix)[:, ~cells.missing.all(axis=0)]
    return int((np.nanmin(there, axis=0) < np.nanmax(there, axis=0)).sum())


def run_plan(plan: FitPlan, checkpoint: Path | None = None) -> Any:
    """Fit a plan; the model knows the names of its columns and shows no progress later on."""
    step, rows = plan.scaling.step(), plan.rows
    if checkpoint is not None:
        from prinfold import Checkpoint

        plan.model.set_callbacks(Checkpoint(checkpoint))
    if plan.blocks is not None:
        fitted = with_names(_fit_blocks(plan, step), step, plan.cells)
        release_memory()
    elif step is None:
        fitted = plan.model.fit(rows)
    else:
        scaled = step.fit_transform(np.asarray(rows))
        plan.model.fit(NamedBlock.of(scaled, None, plan.cells.labels(plan.index)))  # columns are named by the step
        fitted = with_names(plan.model, step, plan.cells)
    if "verbose" in plan.model.get_params():
        plan.model.set_params(verbose=0)
    if checkpoint is not None:
        plan.model.set_callbacks()
    return fitted


def _fit_blocks(plan: FitPlan, step: Any) -> Any:
    """Fit to all rows, which the step that scales them has seen first."""
    if step is None:
        return plan.model.fit(plan.blocks)
    from prinfold import Blocks

    for block in plan.blocks:
        step.partial_fit(np.asarray(block))
    scaled = Blocks(lambda: (step.transform(np.asarray(block)) for block in plan.blocks), rows=plan.blocks.rows)
    return plan.model.fit(scaled)


def with_names(model: Any, step: Any, cells: ChosenCells) -> Any:
    """A fitted model behind the fitted step that scales its columns, which then knows their names."""
    if step is None:
        return model
    from sklearn.pipeline import Pipeline

    if cells.table.named:  # scikit-learn sees those of frames only
        step.feature_names_in_ = np.asarray(cells.names, dtype=object)
    return Pipeline([("scale", step), ("model", model)])
