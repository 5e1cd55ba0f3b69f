"""What stands above the first row of a text file: lines of a title, names of columns, and units below the names.

Instruments write their own name, a date and a blank line first, and units under the names. Each such line has fewer
cells than a row, or a word where every row has a number.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prinfold.cli.tables.number_formats import number_of

_FEWEST_ROWS = 2
"""Rows that must follow before a line above them is taken for units."""


class Heading(NamedTuple):
    """How many lines come before the first row, the cells of the line of names among them, and notes on the others."""

    lines: int
    names: list[str]
    notes: list[str]


class _Line(NamedTuple):
    """Cells, and the number of the last line that they stand on."""

    number: int
    cells: list[str]


def heading_of(lines: Sequence[str], separator: str, missing: frozenset[str]) -> Heading | None:
    """A heading with a title or units, from the first lines of a file; None where names alone stand there, or nothing.

    Names follow the title if they are the first line with as many cells as the rows below, and hold no number.
    """
    found = _cut(lines, separator)
    width = Counter(len(each.cells) for each in found[1:]).most_common(1)[0][0] if len(found) > 1 else 0
    first = next((i for i, each in enumerate(found) if len(each.cells) == width), 0)
    if width < 2 or len(found) < first + 2 or any(number_of(cell, missing) is not None for cell in found[first].cells):
        return None
    below = found[first + 1 :]
    units = _units(below, width, missing)
    if any(len(each.cells) > width for each in found[:first]) or not (first or units):
        return None
    if first and all(number_of(cell, missing) is None for cell in below[int(bool(units))].cells):
        return None  # rows of text alone: nothing tells names from a row
    title = [f"{first} {'line' if first == 1 else 'lines'} above the table {'was' if first == 1 else 'were'} left out"]
    noted = [f"line {below[0].number} holds units, such as {units!r}, and was left out"] if units else []
    last = below[0] if units else found[first]
    return Heading(last.number, found[first].cells, [*(title if first else []), *noted])


def _cut(lines: Sequence[str], separator: str) -> list[_Line]:
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        return [_Line(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error:
        return []


def _units(below: Sequence[_Line], width: int, missing: frozenset[str]) -> str:
    """The first unit of a line of units below the names; nothing where that is a row like those after it."""
    rows = [each.cells for each in below if len(each.cells) == width]
    if len(rows) <= _FEWEST_ROWS or len(below[0].cells) != width:
        return ""
    values = [[number_of(cell, missing) for cell in row] for row in rows]
    numeric = [j for j in range(width) if all(row[j] is not None for row in values[1:])]
    known = [j for j in numeric if any(np.isfinite(row[j] or 0.0) for row in values[1:])]
    words = [rows[0][j].strip() for j in known if values[0][j] is None]
    spoken = any(value is not None and np.isfinite(value) for value in values[0])
    return words[0] if words and not spoken and 2 * len(words) >= len(known) else ""
