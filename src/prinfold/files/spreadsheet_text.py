"""Text in tables that no spreadsheet runs."""

from __future__ import annotations

from typing import Any

_FORMULA_MARKS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The last four are the full-width forms of the first four, which some spreadsheets read as these."""


def spreadsheet_text(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text that begins like one is put behind an apostrophe."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA_MARKS) or _is_number(cell):
        return cell
    return f"'{cell}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
