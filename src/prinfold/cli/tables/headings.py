"""The lines above the first row of a text file: lines of a title, names of columns, and units below the names.

Instruments write their own name, a date and a blank line first, and units under the names. Each such line has fewer
cells than a row, or a word where every row has a number.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from prinfold.cli.tables.number_formats import number_of

_FEWEST_ROWS = 2
"""Rows that must follow before a line above them is taken for units."""


class Heading(NamedTuple):
    """Number of lines before the first row, the cells of the line of names among them, and notes on the others.

    ``units`` are the cells of the line of units, where there is one.
    """

    lines: int
    names: list[str]
    notes: list[str]
    units: list[str]


class _Line(NamedTuple):
    """Cells, and the number of the last line that they stand on."""

    number: int
    cells: list[str]


def heading_of(lines: Sequence[str], separator: str, missing: frozenset[str]) -> Heading | None:
    """A heading with a title or units, from the first lines of a file; None where names alone stand there, or nothing.

    Names follow the title if they are the first line with as many cells as the rows below, and hold no number.
    Spreadsheets write a title with as many separators as the rows have: its empty cells do not count.
    """
    found = _cut(lines, separator)
    title = list(takewhile(_is_padded, found))
    return _heading_in([*map(_without_padding, title), *found[len(title) :]], missing)


def heading_of_sheet(rows: Sequence[Sequence[str]], missing: frozenset[str]) -> Heading | None:
    """The same of a sheet, whose rows are equally wide; cells of names that reach over others are said in each."""
    full = [len(row) - next((j for j, cell in enumerate(reversed(row)) if cell), len(row)) for row in rows]
    found = _heading_in(
        [_Line(i, list(row[:n])) for i, (row, n) in enumerate(zip(rows, full, strict=True), 1)], missing
    )
    if found is not None:
        return found._replace(names=[*found.names, *[""] * (len(rows[0]) - len(found.names))])
    words = [[number_of(cell, missing) is None for cell in row] for row in rows[:3]]
    gaps = [j for j, cell in enumerate(rows[0]) if not cell]
    if len(rows) < 3 or not gaps or not any(words[1][j] for j in gaps) or any(words[2][j] for j in gaps):
        return None
    if any(
        cell and not word
        for row, known in zip(rows[:2], words[:2], strict=True)
        for cell, word in zip(row, known, strict=True)
    ):
        return None
    names, above = [], ""
    for cell, below in zip(rows[0], rows[1], strict=True):
        above = cell or above
        names.append(f"{above} {below}".strip())
    return Heading(2, names, ["names stand in two rows, and were joined"], [])


def _is_padded(line: _Line) -> bool:
    """Whether half of the cells or more are empty ones at the end."""
    return 2 * len(_without_padding(line).cells) <= len(line.cells)


def _without_padding(line: _Line) -> _Line:
    """The line up to its last cell that is not empty."""
    last = max((j for j, cell in enumerate(line.cells, 1) if cell.strip()), default=0)
    return line._replace(cells=line.cells[:last])


def _heading_in(found: Sequence[_Line], missing: frozenset[str]) -> Heading | None:
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
    return Heading(last.number, found[first].cells, [*(title if first else []), *noted], last.cells if units else [])


def names_columns(first: Sequence[str], below: Sequence[Sequence[str]], missing: frozenset[str]) -> bool:
    """Whether the first line holds names: a word above numbers, or words alone, or numbers that are a scale.

    A line of numbers whose words stand above text is a row, above all where a word comes again below, as classes do.
    Its numbers are a scale, such as wavelengths, where they rise or fall all along and most lie outside of what stands
    below.
    """
    above = [number_of(cell, missing) for cell in first]
    words = [j for j, each in enumerate(above) if each is None]
    rows = [row for row in below if len(row) == len(first)]
    if not words or not rows or len(words) == len(above):
        return bool(words)
    columns = [[number_of(cell, missing) for cell in column] for column in zip(*rows, strict=True)]
    known = {j: np.array(each, dtype=float) for j, each in enumerate(columns) if None not in each}
    ends = {j: (np.nanmin(each), np.nanmax(each)) for j, each in known.items() if np.isfinite(each).any()}
    numbers = [(each, *ends[j]) for j, each in enumerate(above) if j in ends and each is not None and np.isfinite(each)]
    if not numbers or any(j in ends for j in words):
        return True
    if any(first[j] == row[j] for j in words for row in rows):
        return False
    steps = np.diff([each for each, *_ in numbers])
    outside = sum(not low <= each <= high for each, low, high in numbers)
    return len(steps) > 1 and bool((steps > 0).all() or (steps < 0).all()) and 2 * outside > len(numbers)


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
