"""Sheets of workbooks (.xlsx, .xls, .xlsb, .ods), by python-calamine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from prinfold.cli.tables.number_formats import number_of
from prinfold.exceptions import InvalidDataError, import_optional, join_names


def read_sheet(path: Path, name: str | None) -> tuple[list[list[str]], list[str]]:
    """Cells of a sheet as text, all rows equally wide, and notes on which sheet it is.

    Without a name it is the first sheet with rows of numbers, or else the first that holds anything, of those that are
    not hidden. Empty rows and columns about the table are left out.
    """
    calamine = import_optional("python_calamine", "cli", f"reading {path.name}", "save the sheet as CSV")
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except Exception as error:  # it has errors of its own for each kind of file
        raise InvalidDataError(
            f"cannot read {path}: it is no workbook, or it is damaged or locked by a password; save the sheet as CSV"
        ) from error
    known = list(book.sheet_names)
    shown = [each.name for each in book.sheets_metadata if each.visible == calamine.SheetVisibleEnum.Visible] or known
    if name is not None and name not in known:
        raise InvalidDataError(f"{path} has no sheet {name!r}; --array takes {join_names(known)}")
    tables = {each: _cells(book.get_sheet_by_name(each)) for each in ([name] if name is not None else shown)}
    filled = [each for each in tables if tables[each]]
    if not filled:
        raise InvalidDataError(f"{path} is empty: there is no row in it")
    chosen = next((each for each in filled if _has_numbers(tables[each])), filled[0])
    others = [each for each in known if each != chosen]
    notes = [f"the table is sheet {chosen!r}; --array takes {join_names(others)} instead"] if others else []
    return tables[chosen], [] if name is not None else notes


def _has_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether at least two rows hold a number, as those of a sheet of notes seldom do."""
    found = (row for row in rows if any(_is_number(cell) for cell in row))
    return len(list(islice(found, 2))) == 2


def _is_number(cell: str) -> bool:
    found = number_of(cell)
    return found is not None and bool(np.isfinite(found))


def _cells(sheet: Any) -> list[list[str]]:
    """Cells as text, from the first row and column that hold anything to the last."""
    rows = [[_text(cell) for cell in row] for row in sheet.to_python(skip_empty_area=True)]
    rows = [row for row in rows if any(row)]
    width = max((len(row) for row in rows), default=0)
    full = [row + [""] * (width - len(row)) for row in rows]
    used = [j for j in range(width) if any(row[j] for row in full)]
    return [[row[j] for j in used] for row in full]


def _text(cell: Any) -> str:
    """A cell as a text file would have it; dates as ISO 8601, whole numbers without a point."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return repr(cell.total_seconds())
    return "" if cell is None else str(cell).strip()


def title_rows(rows: Sequence[Sequence[str]]) -> int:
    """Rows above the table, such as a title: those with a single cell, where the others have more."""
    most = max((sum(map(bool, row)) for row in rows), default=0)
    above = 0
    while above < len(rows) - 1 and most > 1 and sum(map(bool, rows[above])) == 1:
        above += 1
    return above
