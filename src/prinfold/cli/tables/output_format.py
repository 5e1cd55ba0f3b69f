"""How text of a table is laid out, which results follow: what opened the table opens them."""

from __future__ import annotations

from typing import NamedTuple

from prinfold.cli.tables.number_formats import COMMA, POINT

SEMICOLON = ";"
MARKED_UTF8 = "utf-8-sig"


class OutputFormat(NamedTuple):
    """The format of a CSV file: what separates cells, what stands before decimals, and the encoding."""

    separator: str = COMMA
    decimal: str = POINT
    encoding: str = "utf-8"

    @classmethod
    def like(cls, separator: str, encoding: str, *, commas: bool) -> OutputFormat:
        """The format of results of a table with that separator, encoding, and decimal commas or none.

        Decimal commas need semicolons between cells. Spreadsheets know UTF-8 by its mark only, which results of a table
        with that mark, or in another encoding, have too.
        """
        return cls(
            SEMICOLON if commas or separator == SEMICOLON else COMMA,
            COMMA if commas else POINT,
            "utf-8" if encoding == "utf-8" else MARKED_UTF8,
        )

    def number(self, value: float) -> float | str:
        """A number as this format writes it."""
        return value if self.decimal == POINT else str(value).replace(POINT, self.decimal)

    @property
    def words(self) -> str:
        """A note on decimal commas; nothing where there are none."""
        return "the result has decimal commas too, for the same spreadsheet" if self.decimal == COMMA else ""


PLAIN = OutputFormat()
"""Commas between cells, points before decimals, in UTF-8."""
