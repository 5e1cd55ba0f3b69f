"""Large text files read by Arrow, many times faster; files that it cannot read are left to our own reader."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def read_by_arrow(
    path: Path, *, separator: str, skip: int, numeric: Sequence[bool], decimal: str, missing: frozenset[str]
) -> list[Any] | None:
    """Columns of a text file, numbers in double precision and text as objects; None where Arrow is absent or balks.

    Parameters
    ----------
    path : Path
        A file in UTF-8.
    separator : str
        Between cells.
    skip : int
        Lines before the first row.
    numeric : sequence of bool
        Which columns are numbers.
    decimal : str
        Decimal point of numbers.
    missing : frozenset of str
        Words for missing cells, in small letters.

    Returns
    -------
    list of (n,) arrays, or None
    """
    try:
        arrow, text = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return None
    names = [str(j) for j in range(len(numeric))]
    kinds = {name: arrow.float64() if number else arrow.string() for name, number in zip(names, numeric, strict=True)}
    words = sorted(
        {form for word in missing for form in (word, word.upper(), word.capitalize(), word.title())} | {"NaN"}
    )
    convert = {"column_types": kinds, "null_values": words, "strings_can_be_null": False, "decimal_point": decimal}
    try:
        table = text.read_csv(
            path,
            read_options=text.ReadOptions(column_names=names, skip_rows=skip),
            parse_options=text.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=text.ConvertOptions(**convert),
        )
    except (arrow.ArrowException, OSError):
        return None  # ragged lines, a word among numbers, other letters: our own reader knows what to say
    columns = [table.column(name) for name in names]
    return [
        np.array(each.to_numpy()) if number else _words(each) for each, number in zip(columns, numeric, strict=True)
    ]


def _words(column: Any) -> Any:
    return np.array([*column.to_pylist(), None], dtype=object)[:-1]
