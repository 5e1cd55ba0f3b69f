"""The result of comparing methods: the table, the recommended model, and the reasons in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import IntArray
from prinfold.exceptions import Message
from prinfold.select.candidates import Candidate
from prinfold.select.dimensions import Dimension
from prinfold.select.printed_tables import make_frame, print_table, shorten
from prinfold.select.wording import GUESS, ROUGHEST, legend
from prinfold.validation.object_verbs import check_verbs

_MOST_REASON_CHARACTERS = 70
"""Characters of a reason that a printed table has room for."""

_COLUMNS = {
    "roughness": ("roughness", ".3g"),
    "log_likelihood": ("likelihood", ".3f"),
    "trustworthiness": ("trust", ".3f"),
    "continuity": ("contin", ".3f"),
    "seconds": ("seconds", ".2f"),
    "memory": ("MB", ".3g"),
    "wins": ("chosen", ".0%"),
}
"""Columns that are printed besides name, errors and criterion: their headings and forms."""


class Recommended(NamedTuple):
    """The recommendation of a comparison: method and settings in words, and the model, fitted to all rows."""

    method: str
    settings: str
    model: Any

    @property
    def name(self) -> str:
        """Method and settings in one."""
        return Candidate(*self).name


@check_verbs()
@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods compared on the same folds, and the one that is recommended.

    Parameters
    ----------
    candidates : tuple of Candidate
        Method, settings and unfitted model of each of the C rows.
    table : dict of columns of length C
        ``method`` and ``settings``; ``error``, the mean squared distance of rows held out from the surface, and its
        ``standard_error``; ``criterion`` with ``criterion_standard_error``, lowest at best; ``roughness``;
        ``log_likelihood`` of rows held out, per row, by models that have one; ``trustworthiness`` and
        ``continuity`` on the rows fitted to; ``seconds`` for one fit; ``memory``, the most megabytes that Python and
        NumPy asked for in a fit, by tracemalloc (what compiled code takes for itself is not in it); ``wins``, the
        share of resamples of the rows in which it would be chosen; ``tied``, whether one standard error does not set
        it apart from the one chosen, by the paired difference; ``surface_likelihood`` and ``thinned_error``, what two
        of the criteria say; ``front``, whether none is at once smoother and nearer to rows held out; ``failure``, the
        reason why it has no numbers, or nothing. ``roughness`` is NaN of surfaces in several pieces, which are never on
        the front.
    criterion : str
        What the recommendation rests on.
    chosen : int
        Which row is recommended.
    notes : tuple of str
        The recommendation in words, its reason, and how sure it is.
    n_components : int
        Dimension of the surfaces.
    sigma : float
        Noise of the rows across the surface, in each direction, with which they were thinned.
    dimension : Dimension or None
        How the dimension was suggested, if it was not given.
    model : estimator
        The recommended model, fitted to all rows.
    seconds : float
        What the whole comparison took.
    """

    candidates: tuple[Candidate, ...]
    table: dict[str, Any]
    criterion: str
    chosen: int
    notes: tuple[str, ...]
    n_components: int = 0
    sigma: float = float("nan")
    dimension: Dimension | None = None
    model: Any = None
    seconds: float = float("nan")

    @property
    def recommended(self) -> Recommended:
        """Name and fitted model of the one recommended."""
        one = self.candidates[self.chosen]
        return Recommended(one.method, one.settings, self.model)

    @property
    def reason(self) -> str:
        """The reason for the choice, and how sure that is."""
        return " ".join(self.notes)

    @property
    def names(self) -> tuple[str, ...]:
        """Method and settings of each row."""
        return tuple(one.name for one in self.candidates)

    def ranking(self) -> IntArray:
        """Rows from the best by the criterion to the worst; those without numbers come last, in their own order."""
        return np.asarray(np.argsort(np.nan_to_num(self.table["criterion"], nan=np.inf), kind="stable"))

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The table as a data frame, a row for each contestant.

        Parameters
        ----------
        backend : str, default="pandas"
            The library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Returns
        -------
        DataFrame
        """
        columns = {name: list(column) for name, column in self.table.items()}
        picked = [i == self.chosen for i in range(len(self.candidates))]
        return make_frame({**columns, "recommended": picked}, backend)

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, write: Callable[[str], str] = str) -> str:
        """The table, and below it what it says, in one text.

        Parameters
        ----------
        write : callable, default=str
            Writes each line below the table, as the command line does with options in place of arguments.

        Returns
        -------
        str
        """
        return "\n".join([self._caption(), *self._rows(), *map(write, self._words())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """HTML for a notebook: the table, best first, and the words below it."""
        head = "".join(f"<th>{escape(title)}</th>" for title in (*self._heads(), ""))
        body = "".join(self._html_row(i) for i in self.ranking())
        words = "".join(f"<p>{escape(line)}</p>" for line in self._words())
        return (
            f"<div><table><caption>{escape(self._caption())}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{words}</div>"
        )

    def _html_row(self, i: int) -> str:
        name, *numbers = map(escape, self._cells(i))
        cells = "".join(f'<td style="text-align: right">{cell}</td>' for cell in numbers)
        weight = "bold" if i == self.chosen else "normal"
        end = escape(self.table["failure"][i] or self._end(i).strip())  # there is room for all of a reason
        return (
            f'<tr style="font-weight: {weight}"><th style="text-align: left; font-weight: inherit">{name}</th>{cells}'
            f'<td style="text-align: left">{end}</td></tr>'
        )

    def _caption(self) -> str:
        n = len(self.candidates)
        surfaces = "1 surface" if n == 1 else f"{n} surfaces"
        return f"{surfaces} of dimension {self.n_components}, by their {self.criterion} criterion"

    def _words(self) -> list[str]:
        """Lines below the table."""
        found = [] if self.dimension is None else [Message.after(f"Dimension: {self.dimension}. ", GUESS)]
        return [*self.notes, *found, *legend(self.criterion, self.table["roughness"], self.seconds)]

    @staticmethod
    def _heads() -> list[str]:
        return ["", "criterion", "held-out error", *(title for title, _ in _COLUMNS.values())]

    def _rows(self) -> list[str]:
        """The table in words, best first, with a mark at the one recommended."""
        return print_table(self._heads(), [(self._cells(i), self._end(i)) for i in self.ranking()], n_left=1)

    def _cells(self, i: int) -> list[str]:
        table = self.table
        pairs = (("criterion", "criterion_standard_error"), ("error", "standard_error"))
        numbers = [_with_error(table[value][i], table[error][i]) for value, error in pairs]
        rest = [_number(table[name][i], form) for name, (_, form) in _COLUMNS.items()]
        if table["roughness"][i] > ROUGHEST:
            rest[list(_COLUMNS).index("roughness")] = f">{ROUGHEST:.0e}"
        return [self.names[i], *numbers, *rest]

    def _end(self, i: int) -> str:
        if i == self.chosen:
            return "  ← recommended"
        words = self.table["failure"][i]
        if words:
            return f"  {shorten(words, _MOST_REASON_CHARACTERS)}"
        return "  tied" if self.table["tied"][i] else ""


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "—"


def _with_error(value: float, error: float) -> str:
    return f"{value:.4g} ± {error:.1g}" if np.isfinite(value) else "—"
