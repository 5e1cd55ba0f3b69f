"""Summaries of the columns of a table: a few numbers each, found some rows at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prinfold.cli.tables.dates import dates_of
from prinfold.cli.tables.reading import FileTable
from prinfold.cli.tables.rows import missing_cells

MOST_WORDS = 100_000
"""Different words of a column from which on others are not counted."""


@dataclass
class CellSummary:
    """Numbers of a column, of which the mean and the scatter about it are those of the rows so far, or words."""

    missing: int = 0
    count: int = 0
    mean: float = 0.0
    scatter: float = 0.0
    least: float = np.inf
    most: float = -np.inf
    example: str | None = None
    words: set[str] = field(default_factory=set)

    def add(self, values: Any) -> None:
        """Take some more rows into account."""
        self.missing += int(missing_cells(values).sum())
        if values.dtype == object:
            self._add_words([each for each in values if each])
        else:
            self._add_numbers(values[np.isfinite(values)])

    def _add_words(self, words: list[str]) -> None:
        if self.example is None and words:
            self.example = words[0]
        if len(self.words) < MOST_WORDS:
            self.words.update(words)

    @np.errstate(over="ignore", invalid="ignore")  # of numbers whose squares overflow there is no spread
    def _add_numbers(self, finite: Any) -> None:
        """Merge means and scatters of two sets of rows, neither of which must be large beside its spread."""
        n = len(finite)
        if not n:
            return
        mean, both = float(finite.mean()), self.count + n
        step = mean - self.mean
        between = step * step * self.count * n / both if self.count else 0.0  # not by a power, which raises
        self.scatter += float(((finite - mean) ** 2).sum()) + between
        self.mean += step * n / both
        self.count = both
        self.least, self.most = min(self.least, float(finite.min())), max(self.most, float(finite.max()))

    def in_numbers(self, table: FileTable, name: str) -> dict[str, Any]:
        """The summary for programs."""
        if not table.is_number(name):
            return {
                "kind": "text",
                "missing": self.missing,
                "different": len(self.words),
                "dates": dates_of(table.columns[name]) is not None,
                "example": self.example,
            }
        if not self.count:
            return {"kind": "number", "missing": self.missing}
        ends = {"least": self.least, "mean": self.mean, "most": self.most}
        spread = (self.scatter / self.count) ** 0.5
        return {"kind": "number", "missing": self.missing, **ends, "spread": spread}


def summaries_of(table: FileTable) -> tuple[dict[str, dict[str, Any]], int]:
    """A summary of each column, and the number of rows that they are of."""
    found = {name: CellSummary() for name in table.columns}
    n_rows = 0
    for part in table.parts():
        for name, values in part.items():
            found[name].add(values)
        n_rows += len(next(iter(part.values())))
    return {name: each.in_numbers(table, name) for name, each in found.items()}, n_rows
