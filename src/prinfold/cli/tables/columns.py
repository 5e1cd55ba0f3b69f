"""Columns of a table to fit: those asked for, or all numbers, with a reason for each that is left out."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from prinfold.cli.tables.dates import dates_of
from prinfold.cli.tables.number_formats import MISSING, has_unit, number_of
from prinfold.cli.tables.reading import FileTable
from prinfold.exceptions import InvalidDataError, join_names

_MOSTLY_NUMBERS = 0.9
"""Share of numbers among the cells of a column from which on the others are mistakes rather than the column text."""

_MOST_LETTERS_SHOWN = 30
"""Letters of a cell up to which it is shown as an example."""

_MOST_CLASSES = 10
"""Different whole numbers up to which a column may be a class."""

_ID_WORDS = frozenset({"id", "ids", "uid", "index", "idx", "nr"})
"""Words in names of columns that number the rows or the things that they are of."""

_NUMBERED = re.compile(
    r"(patient|sample|subject|user|case|customer|client|record|row|cell|object|item|order|product|person|student|device|"
    r"sensor|station|site|plot|plate|gene|event|image)ids?"
)
"""What is numbered, written together with the word for it."""

_CODE_WORDS = frozenset({"zip", "zipcode", "postcode", "postal", "plz"})
"""Words in names of columns whose numbers are names of places."""

_SENTINELS = frozenset({*(-float("9" * k) for k in range(2, 7)), *(float("9" * k) for k in range(3, 7))})
"""Numbers that are written for missing cells: -99, -999, 999 and so on."""

_ROWS_TO_JUDGE_COLUMNS = 20
"""Rows from which on it can be told what a column looks like."""


@dataclass(frozen=True)
class ChosenColumns:
    """Columns to use, and those left out with the reason."""

    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    cautions: tuple[str, ...] = ()

    def in_words(self) -> list[str]:
        """One line for each reason why columns were left out, and for columns that better be."""
        reasons = dict.fromkeys(reason for _, reason in self.left_out)
        grouped = {reason: [name for name, other in self.left_out if other == reason] for reason in reasons}
        return [*(f"left out {join_names(names)}: {reason}" for reason, names in grouped.items()), *self.cautions]


def choose_columns(
    table: FileTable, wanted: Sequence[str], dropped: Sequence[str], set_aside: Sequence[str], *, text: bool = False
) -> ChosenColumns:
    """Choose columns: by patterns where there are some, else all that hold numbers.

    Parameters
    ----------
    table : FileTable
        The table.
    wanted, dropped : sequence of str
        Patterns of names, as :func:`find_columns` takes them.
    set_aside : sequence of str
        Columns that are something else, such as labels.
    text : bool, default=False
        Whether columns of text can be used.

    Returns
    -------
    Chosen
    """
    gone = {*find_columns(table, dropped, "--drop"), *set_aside}
    if wanted:
        names = [name for name in find_columns(table, wanted, "--columns") if name not in gone]
        for name in names:
            if not text and not table.is_number(name):
                raise InvalidDataError(no_number(table, name, leave_out=True))
        chosen = ChosenColumns(tuple(names))
    else:
        reasons = {name: _reason(table, name, text) for name in table.measured if name not in gone}
        same = [name for name, reason in reasons.items() if reason is None and not _varies(table, name)]
        if len(same) < sum(reason is None for reason in reasons.values()):  # else there is nothing better to take
            reasons |= dict.fromkeys(same, "it is the same in every row")
        kept = tuple(name for name, reason in reasons.items() if reason is None)
        left_out = tuple((name, reason) for name, reason in reasons.items() if reason is not None)
        chosen = ChosenColumns(kept, left_out, tuple(_column_notes(table, kept)))
    if not chosen.names:
        raise InvalidDataError(f"{table.path} has no column of numbers to use; {_columns_in_words(table)}")
    return chosen


def find_columns(table: FileTable, patterns: Sequence[str], option: str) -> list[str]:
    """Columns by name, by pattern (gene_*), by range (first:last) or by number from 1 on, in the order asked for.

    A word may be a list of those with commas, unless a column is called so as a whole.
    """
    found: dict[str, None] = {}
    for words in patterns:
        for pattern in [words] if words in table.columns else comma_separated(words):
            found |= dict.fromkeys(_matches(table, pattern, option))
    return list(found)


def comma_separated(words: str) -> list[str]:
    """The parts of a list with commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def one_column(table: FileTable, name: str, option: str) -> str:
    """The one column that an option names."""
    found = _matches(table, name, option)
    if len(found) != 1:
        raise InvalidDataError(f"{option} takes one column, but {name!r} is {join_names(found)}")
    return found[0]


def name_columns(table: FileTable, used: Sequence[str]) -> list[str]:
    """Columns of text that are different in each row, and so its names; times come after what is a name only."""
    text = [name for name in table.columns if not table.is_number(name) and name not in used]
    found = [name for name in text if len(table) > 1 and _all_differ(table.columns[name])]
    return sorted(found, key=lambda name: dates_of(table.columns[name]) is not None)


def _all_differ(values: Any) -> bool:
    return not any(each is None or _is_missing(each) for each in values) and len({*values}) == len(values)


def _matches(table: FileTable, pattern: str, option: str) -> list[str]:
    names = list(table.columns)
    if pattern in table.columns:
        return [pattern]
    if any(sign in pattern for sign in "*?["):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if found:
            return found
    first, colon, last = pattern.partition(":")
    ends = [_place(names, first, 0), _place(names, last, len(names) - 1)] if colon else [_place(names, pattern, None)]
    if None in ends:
        raise InvalidDataError(f"{table.path} has no column {pattern!r} ({option}); {_nearest(table, pattern)}")
    return names[ends[0] : (ends[-1] or 0) + 1]


def _place(names: Sequence[str], word: str, default: int | None) -> int | None:
    """Position of a column that is given by name or by number; ``default`` where nothing is given."""
    if word in names:
        return names.index(word)
    if not word:
        return default
    return int(word) - 1 if word.isdecimal() and 1 <= int(word) <= len(names) else None


def _nearest(table: FileTable, pattern: str) -> str:
    near = difflib.get_close_matches(pattern, table.columns, n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}?" if near else _columns_in_words(table)


def _columns_in_words(table: FileTable) -> str:
    kinds = [name if table.is_number(name) else _text_in_words(name, table.columns[name]) for name in table.columns]
    only = " Is the separator right (--separator)?" if len(kinds) == 1 and table.lines is not None else ""
    return f"it has {join_names(kinds, 12)}.{only}".removesuffix("." if not only else "\0")


def _text_in_words(name: str, values: Any) -> str:
    """The name of a column of text, with the first cell that has a digit: it may have been meant as a number."""
    odd = next((cell.strip() for cell in values if cell and any(map(str.isdigit, cell))), "")
    return f"{name} (text, such as {odd!r})" if 0 < len(odd) <= _MOST_LETTERS_SHOWN else f"{name} (text)"


# ------------------------------------------------------------------------------------------ reasons not to use a column


def _reason(table: FileTable, name: str, text: bool) -> str | None:
    """Reason for which a column is left out where nobody asked for it; None where it is used."""
    values = table.columns[name]
    if not table.is_number(name):
        share, row = _share_of_numbers(values)
        if share >= _MOSTLY_NUMBERS or name in table.unclear:
            raise InvalidDataError(no_number(table, name, leave_out=True))
        if text:
            return None
        if share < 0.5:
            return _why_text(values)
        odd = values[row].strip()
        return f"text among numbers, such as {odd!r}; --na={shlex.quote(odd)} calls such cells missing"
    if np.isnan(values).all():
        return "nothing in it"
    if np.isinf(values).any():
        return None  # an error says later where
    if _counts_rows(values):
        return "it counts the rows"
    if len(values) < _ROWS_TO_JUDGE_COLUMNS or not _whole(values):
        return None
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    called_id = bool(words & _ID_WORDS) or any(map(_NUMBERED.fullmatch, words))
    if called_id and len(np.unique(values)) == len(values):
        return "an id, by its name and its numbers"
    if words & _CODE_WORDS:
        return "numbers of places, by its name"
    return "dates that are written as numbers" if _are_dates(values) else None


def _are_dates(values: Any) -> bool:
    """Whether whole numbers are days as 20240131 writes them."""
    there = values[~np.isnan(values)]
    year, month, day = there // 10_000, there // 100 % 100, there % 100
    return bool(((year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _sentinel_note(name: str, values: Any) -> str | None:
    """A note on a number such as -999 that comes again and again, far from all others; None where there is none."""
    there = values[np.isfinite(values)]
    for end in (there.min(initial=0.0), there.max(initial=0.0)):
        others = there[there != end]
        often = len(there) - len(others)
        if end in _SENTINELS and often > 1 and len(others) and np.abs(others - end).min() > np.ptp(others):
            return (
                f"{name} is {end:g} in {often} rows, far from all others: if it stands for missing cells, --na={end:g}"
            )
    return None


def _column_notes(table: FileTable, names: Sequence[str]) -> list[str]:
    """Notes on numbers that may be missing cells, and on whole numbers that may be classes or counts.

    There are none of the latter where most columns are like that.
    """
    numbers = [name for name in names if table.is_number(name) and not np.isinf(table.columns[name]).any()]
    if len(table) < _ROWS_TO_JUDGE_COLUMNS:
        return []
    found = [note for name in numbers if (note := _sentinel_note(name, table.columns[name]))]
    whole = {name: table.columns[name] for name in numbers if _whole(table.columns[name])}
    if len(whole) > len(names) / 2:
        return found
    for name, values in whole.items():
        different, drop = np.unique(values[~np.isnan(values)]), f"--drop {shlex.quote(name)} leaves it out"
        if 2 <= len(different) <= _MOST_CLASSES:
            few = join_names([f"{each:g}" for each in different], _MOST_CLASSES)
            found.append(
                f"{name} takes the values {few} only, and may be a class of each row: it is fitted like the others; "
                f"--label {shlex.quote(name)} makes labels of it, {drop}"
            )
        elif len(different) == len(values) and (_contiguous(different) or (np.diff(values) > 0).all()):
            found.append(
                f"{name} is a different whole number in each row, and may be an id: it is fitted like the others; "
                f"{drop}"
            )
    return found


def _whole(values: Any) -> bool:
    there = values[~np.isnan(values)]
    return len(there) > 0 and bool((there == np.round(there)).all())


def _contiguous(different: Any) -> bool:
    return bool(different[-1] - different[0] == len(different) - 1)


def _varies(table: FileTable, name: str) -> bool:
    """Whether a column holds more than one number; text is taken as it is, and what is infinite is an error later."""
    values = table.columns[name]
    return not table.is_number(name) or bool(np.nanmin(values) < np.nanmax(values) or np.isinf(values).any())


def _counts_rows(values: Any) -> bool:
    """Whether a column is just the number of each row."""
    return len(values) > 2 and values[0] in {0.0, 1.0} and bool((np.diff(values) == 1.0).all())


def _share_of_numbers(values: Any) -> tuple[float, int]:
    """Share of numbers among the cells of text that are not missing, and the first row that holds none."""
    there = [(row, number_of(cell)) for row, cell in enumerate(values) if cell is not None and not _is_missing(cell)]
    odd = [row for row, number in there if number is None]
    return (1 - len(odd) / len(there), odd[0] if odd else -1) if there else (0.0, -1)


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _why_text(values: Any) -> str:
    """Reason for which a column of text holds no numbers; numbers with units could easily become some."""
    there = [cell for cell in values if cell is not None and not _is_missing(cell)]
    with_unit = [cell for cell in there if has_unit(cell)]
    if there and len(with_unit) >= _MOSTLY_NUMBERS * len(there):
        return f"numbers with units or other characters, such as {with_unit[0]!r}; write numbers alone to use it"
    return "dates" if dates_of(values) is not None else "text"


def no_number(table: FileTable, name: str, *, leave_out: bool) -> str:
    """Reason for which a column is not one of numbers, and what to do; not every command can leave columns out."""
    drop = f", or leave the column out with --drop {shlex.quote(name)}" if leave_out else ""
    if name in table.unclear:
        return f"{table.unclear[name]}{drop}"
    values = table.columns[name]
    share, row = _share_of_numbers(values)
    if share < 0.5 or row < 0:
        example = next((each for each in values if each), "")
        advice = "write the numbers alone" if has_unit(example) else "correct the file"
        return f"column {name!r} of {table.path} is text, such as {example!r}; {advice}{drop}"
    return (
        f"column {name!r} of {table.path} holds numbers, but {values[row]!r} in {table.place(row)}; correct the file, "
        f"call such cells missing with --na {shlex.quote(values[row].strip())}{drop}"
    )
