"""What a comparison of methods leaves: the table, the recommended model, and the reasons in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import IntArray
from prinfold.select.contestants import Contestant
from prinfold.select.dimensions import Dimension
from prinfold.select.verdicts import CRITERIA, Criterion, Verdict

_LONGEST = 70
"""Characters of a reason that a printed table has room for; the table itself holds all of them."""

_SURE, _FAIRLY = 0.9, 0.6
"""Shares of resamples in which the recommended one would be chosen, from which it is called sure (while
none is tied) and likely."""

_MOST_NAMED = 4

_GUESS = "That is a guess, right in 9 of 16 simulated tables; give n_components if you know it."

_RECORD = "On simulated shapes that had no part in its design, what this criterion recommended was"
"""How the record of a criterion begins (benchmarks/comparing.py)."""

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
    """What a comparison recommends: method and settings in words, and the model, fitted to all rows."""

    method: str
    settings: str
    model: Any

    @property
    def name(self) -> str:
        """Method and settings in one."""
        return Contestant(*self).name


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods compared on the same folds, and the one that is recommended.

    Parameters
    ----------
    contestants : tuple of Contestant
        Method, settings and unfitted model of each of the C rows.
    table : dict of columns of length C
        ``method`` and ``settings``; ``error``, the mean squared distance of rows held out from the surface, and its
        ``standard_error``; ``criterion`` with ``criterion_standard_error``, lowest at best; ``roughness``;
        ``log_likelihood`` of rows held out, per row, by models that have one; ``trustworthiness`` and
        ``continuity`` on the rows fitted to; ``seconds`` for one fit; ``memory``, the most megabytes that Python and
        NumPy asked for in a fit, by tracemalloc (what compiled code takes for itself is not in it); ``wins``, the
        share of resamples of the rows in which it would be chosen; ``tied``, whether one standard error does not set
        it apart from the lowest criterion (the smoothest of these is chosen); ``surface_likelihood`` and
        ``thinned_error``, what two of the criteria say; ``front``, whether none is at once smoother and nearer to rows
        held out; ``failure``, the reason why it has no numbers, or nothing.
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
    """

    contestants: tuple[Contestant, ...]
    table: dict[str, Any]
    criterion: str
    chosen: int
    notes: tuple[str, ...]
    n_components: int = 0
    sigma: float = float("nan")
    dimension: Dimension | None = None
    model: Any = None

    @property
    def recommended(self) -> Recommended:
        """Name and fitted model of the one recommended."""
        one = self.contestants[self.chosen]
        return Recommended(one.method, one.settings, self.model)

    @property
    def reason(self) -> str:
        """Why, and how sure that is."""
        return " ".join(self.notes)

    @property
    def names(self) -> tuple[str, ...]:
        """Method and settings of each row."""
        return tuple(one.name for one in self.contestants)

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
        picked = [i == self.chosen for i in range(len(self.contestants))]
        return nw.from_dict({**columns, "recommended": picked}, backend=backend).to_native()

    def __str__(self) -> str:
        return "\n".join([self._caption(), *self._rows(), *self._words()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, best first, and the words below it."""
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
        return f"{len(self.contestants)} surfaces of dimension {self.n_components}, by their {self.criterion} criterion"

    def _words(self) -> list[str]:
        """What is said below the table."""
        found = [] if self.dimension is None else [f"Dimension: {self.dimension}. {_GUESS}"]
        return [*self.notes, *found]

    @staticmethod
    def _heads() -> list[str]:
        return ["", "criterion", "held-out error", *(title for title, _ in _COLUMNS.values())]

    def _rows(self) -> list[str]:
        """The table in words, best first, with a mark at the one recommended."""
        head = self._heads()
        body = [(self._cells(i), self._end(i)) for i in self.ranking()]
        widths = [max(len(cells[j]) for cells in (head, *(cells for cells, _ in body))) for j in range(len(head))]
        lines = []
        for cells, end in [(head, ""), *body]:
            padded = [c.ljust(w) if j == 0 else c.rjust(w) for j, (c, w) in enumerate(zip(cells, widths, strict=True))]
            lines.append(("  " + "  ".join(padded) + end).rstrip())
        return lines

    def _cells(self, i: int) -> list[str]:
        table = self.table
        pairs = (("criterion", "criterion_standard_error"), ("error", "standard_error"))
        numbers = [_with_error(table[value][i], table[error][i]) for value, error in pairs]
        rest = [_number(table[name][i], form) for name, (_, form) in _COLUMNS.items()]
        return [self.names[i], *numbers, *rest]

    def _end(self, i: int) -> str:
        if i == self.chosen:
            return "  ← recommended"
        words = self.table["failure"][i]
        if words:
            return f"  {words if len(words) <= _LONGEST else words[: _LONGEST - 1] + '…'}"
        return "  tied" if self.table["tied"][i] else ""


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "—"


def _with_error(value: float, error: float) -> str:
    return f"{value:.4g} ± {error:.1g}" if np.isfinite(value) else "—"


# ------------------------------------------------------------------------------------------------- in words


def reasons(everyone: tuple[Contestant, ...], table: dict[str, Any], verdict: Verdict, name: str) -> list[str]:
    """The recommendation in words: what, why, how sure, and what to keep in mind."""
    i, criterion = verdict.chosen, CRITERIA[name]
    known = int(np.isfinite(verdict.loss).sum())
    what = "it is the only one that could be judged" if known == 1 else _place(everyone, verdict, criterion, known)
    said = [f"{everyone[i].name} is recommended: {what} ({criterion.words} {verdict.loss[i]:.4g})."]
    if known > 1:
        said.append(_how_sure(everyone, verdict))
    said.append(f"{_RECORD} {criterion.record}.")
    n_failed = sum(map(bool, table["failure"]))
    if n_failed:
        said.append(f"{n_failed} of {len(everyone)} could not be fitted or measured; their rows say why.")
    return said


def _place(everyone: tuple[Contestant, ...], verdict: Verdict, criterion: Criterion, known: int) -> str:
    lowest = int(np.nanargmin(verdict.loss))
    if verdict.chosen == lowest:
        return f"of {known} surfaces it has the lowest loss on rows held out"
    if criterion.choose is not None:
        return f"of {known} surfaces it has the best balance of error and roughness"
    n_tied = int(verdict.tied.sum())
    name, loss = everyone[lowest].name, verdict.loss[lowest]
    return f"of {n_tied} surfaces that are not told from the lowest loss, {loss:.4g} of {name}, it is the smoothest"


def _how_sure(everyone: tuple[Contestant, ...], verdict: Verdict) -> str:
    share = float(verdict.wins[verdict.chosen])
    others = [j for j in np.argsort(verdict.loss) if verdict.tied[j] and j != verdict.chosen]
    sure = (
        "That is sure as far as these rows go"
        if share >= _SURE and not others
        else "That is likely"
        if share >= _FAIRLY
        else "That is a close call"
    )
    words = f"{sure}: it would be chosen in {share:.0%} of resamples of the rows"
    if not others:
        return f"{words}, and every other one is more than one standard error away."
    named = ", ".join(everyone[j].name for j in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return f"{words}; not told apart by one standard error: {named}{more}."
