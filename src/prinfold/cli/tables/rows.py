"""Rows of a table as a method takes them: numbers or frames, and what is done about missing cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.cli.tables.columns import name_columns
from prinfold.cli.tables.number_formats import MISSING
from prinfold.cli.tables.reading import FileTable
from prinfold.exceptions import InvalidDataError, MissingExtraError, quantity
from prinfold.validation.named_block import NamedBlock


@dataclass(frozen=True)
class ChosenCells:
    """Columns of a table that were chosen: numbers (n, D) where all are, else the columns themselves.

    ``missing`` (n, D) tells which cells are not there, ``named`` whether the columns have names of their own.
    """

    table: FileTable
    names: tuple[str, ...]
    missing: BoolArray
    matrix: FloatArray | None

    @classmethod
    def of(cls, table: FileTable, names: Sequence[str]) -> ChosenCells:
        """Those columns, whose numbers must be finite."""
        columns = [table.columns[name] for name in names]
        missing = np.stack([missing_cells(each) for each in columns], axis=1)
        if not all(table.is_number(name) for name in names):
            return cls(table, tuple(names), missing, None)
        matrix = np.stack(columns, axis=1)
        odd = np.argwhere(np.isinf(matrix))
        if len(odd):
            row, j = odd[0]
            raise InvalidDataError(
                f"column {names[j]!r} of {table.path} is infinite in {table.place(row)}; correct the cell, or call it "
                "missing with --na inf"
            )
        return cls(table, tuple(names), missing, matrix)

    @property
    def incomplete(self) -> BoolArray:
        """(n,) rows with a missing cell."""
        return np.asarray(self.missing.any(axis=1))

    @property
    def empty(self) -> BoolArray:
        """(n,) rows in which nothing is there."""
        return np.asarray(self.missing.all(axis=1))

    def rows(self, index: IntArray) -> Any:
        """Some of the rows: an array that knows its names, or a frame where columns are text."""
        if self.matrix is None:
            return _frame({name: self.table.columns[name][index] for name in self.names})
        block = self.matrix[index]
        return NamedBlock.of(block, self.names, self.labels(index)) if self.table.named else block

    def labels(self, index: IntArray) -> Callable[[int], str]:
        """Words for one of some rows: its name, where a column has one for each, and its place in the file."""

        def label(row: int) -> str:
            place = self.table.place(int(index[row]))
            names = name_columns(self.table, self.names)
            return f"{self.table.columns[names[0]][index[row]]!r} ({place})" if names else place

        return label


def select_rows(cells: ChosenCells, policy: str, *, takes_gaps: bool, method: str) -> tuple[IntArray, list[str]]:
    """Indices of the rows to fit, and notes on the others.

    Parameters
    ----------
    cells : ChosenCells
        What was read.
    policy : {"keep", "drop", "error"}
        What to do about rows with missing cells.
    takes_gaps : bool
        Whether the method can use rows with missing cells.
    method : str
        Its name.

    Returns
    -------
    index : (m,) array of int
        The rows.
    notes : list of str
    """
    gone, empty = cells.incomplete, cells.empty
    if not gone.any():
        return np.arange(len(gone)), []
    if policy == "error" or (policy == "keep" and not takes_gaps):
        why = "" if policy == "error" else f", and {method} needs every cell"
        other = (
            ""
            if takes_gaps or method == "a comparison"
            else ", or a method that accepts missing cells, such as --method gtm"
        )
        hint = "--missing keep keeps them, --missing drop leaves them out" if takes_gaps else "use --missing drop"
        raise InvalidDataError(f"{_missing_words(cells)}{why}; {hint}{other}")
    if policy == "drop":
        return np.flatnonzero(~gone), [f"{int(gone.sum())} of {quantity(len(gone), 'row')} left out: cells are missing"]
    some = int((gone & ~empty).sum())
    verbs = ("has", "is") if some == 1 else ("have", "are")
    used = f"{some} of {quantity(len(gone), 'row')} {verbs[0]} missing cells and {verbs[1]} used"
    notes = [f"{used}; missing cells are ignored"]
    if empty.any():
        notes.append(f"{quantity(int(empty.sum()), 'row')} left out: no cell has a number")
    return np.flatnonzero(~empty), notes if some else notes[1:]


def _missing_words(cells: ChosenCells) -> str:
    gone = cells.incomplete
    row, j = np.argwhere(cells.missing)[0]
    number = int(gone.sum())
    verb = "has" if number == 1 else "have"
    return (
        f"{quantity(number, 'row')} of {cells.table.path} {verb} missing cells, the first in {cells.table.place(row)}, "
        f"column {cells.names[j]!r}"
    )


def missing_cells(column: Any) -> BoolArray:
    """(n,) which cells of a column are not there."""
    if column.dtype != object:
        found: BoolArray = np.isnan(column)
        return found
    return np.array([each is None or each.strip().lower() in MISSING for each in column], dtype=bool)


def _frame(columns: dict[str, Any]) -> Any:
    """Columns as a frame of whichever library is there."""
    for name in ("pandas", "polars", "pyarrow"):
        try:
            library = import_module(name)
        except ImportError:
            continue
        data = {key: _with_gaps(each) for key, each in columns.items()}
        return library.table(data) if name == "pyarrow" else library.DataFrame(data)
    raise MissingExtraError("columns of text need pandas, polars or pyarrow; get it with: pip install 'prinfold[cli]'")


def _with_gaps(column: Any) -> Any:
    """A column with None where text is missing."""
    if column.dtype != object:
        return column
    gone = missing_cells(column)
    return [None if empty else each for each, empty in zip(column.tolist(), gone, strict=True)]
