"""Columns of dates and times, as numbers to colour rows by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.cli.tables.number_formats import MISSING

_ISO = "ISO 8601"
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d-%m-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
FORMATS = tuple(f"{day}{clock}" for day in _DAYS for clock in _CLOCKS)
"""Ways to write a day, besides ISO 8601, of which each can be read in one way only; 3/4/2025 is no such way."""

_DAY = 86400.0


class Dates(NamedTuple):
    """Times (n,) in days since the first, NaN where there is none, and the first in words."""

    days: FloatArray
    first: str


def dates_of(cells: Sequence[Any]) -> Dates | None:
    """A column of text as times; None where any cell is none, or nothing is there."""
    words = ["" if cell is None else str(cell).strip() for cell in cells]
    there = [word for word in words if word.lower() not in MISSING]
    reader = next((each for each in (_ISO, *FORMATS) if there and _reads(each, there[0])), None)
    if reader is None or not all(_reads(reader, word) for word in there):
        return None
    seconds = np.array([np.nan if word.lower() in MISSING else _seconds(reader, word) for word in words])
    first = there[int(np.argmin(seconds[~np.isnan(seconds)]))]
    return Dates((seconds - np.nanmin(seconds)) / _DAY, first)


def _reads(reader: str, word: str) -> bool:
    try:
        _seconds(reader, word)
    except (ValueError, OverflowError):
        return False
    return True


def _seconds(reader: str, word: str) -> float:
    """Seconds since 1970; times without a zone are taken as those of one place without summer time."""
    if reader == _ISO and not (len(word) > 7 and "-" in word):  # 20250301 may be a number of anything
        raise ValueError(word)
    found = datetime.fromisoformat(word) if reader == _ISO else datetime.strptime(word, reader)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
