"""The result of choosing settings: the table of candidates, the chosen model, and the reasons in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.pps.clamping_choice import standard_error
from prinfold.select.printed_tables import make_frame, print_table, shorten
from prinfold.validation.object_verbs import check_verbs

_MOST_REASON_CHARACTERS = 90
"""Characters of a reason that a printed table has room for."""

_UNITS = {"score": "score", "effective": "weights", "noise_variance": "noise", "prior_precision": "prior"}
"""Columns that are printed besides the settings, and their headings."""


@check_verbs()
@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Candidates compared, and the one that was chosen.

    Parameters
    ----------
    candidates : tuple of dict
        Settings of each of the C candidates.
    by : str
        What they were compared by.
    table : dict of arrays of shape (C,)
        ``score``, in nats per row, and its ``standard_error`` (NaN where there is none); ``log_likelihood`` of the
        training rows, per row; ``noise_variance``, ``prior_precision`` and ``effective``, the number of weights
        that the rows determine, of ``n_weights``, ``n_free`` of which no prior holds down; ``seconds`` that the
        candidate took; ``failure``, the reason why it has no score, or nothing.
    fold_scores : array of shape (C, F)
        Scores by fold; with no columns where nothing was held out.
    chosen : int
        Which candidate was chosen.
    model : estimator
        The model with those settings, fitted to all rows.
    notes : tuple of str
        What is to be kept in mind.
    """

    candidates: tuple[dict[str, Any], ...]
    by: str
    table: dict[str, Any]
    fold_scores: FloatArray
    chosen: int
    model: Any
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that were chosen."""
        return dict(self.candidates[self.chosen])

    @property
    def names(self) -> tuple[str, ...]:
        """Settings that were varied or given, in the order of the grid."""
        return tuple(dict.fromkeys(name for each in self.candidates for name in each))

    @property
    def varied(self) -> tuple[str, ...]:
        """Those of :attr:`names` that are not the same for all candidates."""
        return tuple(name for name in self.names if len({_word(value) for value in self.values(name)}) > 1)

    def label(self, index: int) -> str:
        """The settings in which one candidate differs from others, in words."""
        settings = self.candidates[index]
        shown = [name for name in self.varied or self.names if name in settings]
        return ", ".join(f"{name}={_word(settings[name])}" for name in shown) or "the model as it was given"

    def values(self, name: str) -> list[Any]:
        """Values of one setting or column, one for each candidate."""
        if name in self.table:
            return list(self.table[name])
        return [each.get(name) for each in self.candidates]

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Settings and columns as a data frame, a row for each candidate.

        Parameters
        ----------
        backend : str, default="pandas"
            The library of the frame: ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Returns
        -------
        DataFrame
        """
        settings = {name: _plain(self.values(name)) for name in self.names}
        rest = {name: list(column) for name, column in self.table.items()}
        picked = [i == self.chosen for i in range(len(self.candidates))]
        return make_frame({**settings, **rest, "chosen": picked}, backend)

    def __str__(self) -> str:
        title = f"{self.label(self.chosen)}, chosen of {len(self.candidates)} by {self.by}"
        return "\n".join([title, *self._rows(), *self.notes])

    def __repr__(self) -> str:
        return f"Choice({self.label(self.chosen)}, of {len(self.candidates)} by {self.by})"

    def _rows(self) -> list[str]:
        """The table in words, best first, with a mark at the one chosen."""
        errors = np.isfinite(self.table["standard_error"]).any()
        units = {name: head if head not in self.names else name for name, head in _UNITS.items()}
        head = [*self.names, *units.values()]
        body = []
        for i in np.argsort(-np.nan_to_num(self.table["score"], nan=-np.inf), kind="stable"):
            numbers = [f"{self.table[name][i]:.4g}" for name in _UNITS]
            numbers[0] = f"{self.table['score'][i]:.4f}"
            if errors:
                numbers[0] += f" ± {self.table['standard_error'][i]:.4f}"
            if self.table["failure"][i]:
                numbers = ["—"] * len(_UNITS)
            cells = [_word(self.candidates[i].get(name)) for name in self.names]
            end = (
                "  ← chosen"
                if i == self.chosen
                else f"  {shorten(self.table['failure'][i], _MOST_REASON_CHARACTERS)}".rstrip()
            )
            body.append(([*cells, *numbers], end))
        return print_table(head, body)


def _plain(values: Sequence[Any]) -> list[Any]:
    """Values that a column of a frame can hold: numbers and words as they are, everything else in words."""
    plain = all(value is None or isinstance(value, bool | int | float | str | np.number) for value in values)
    kinds = {isinstance(value, str) for value in values if value is not None}
    return list(values) if plain and len(kinds) < 2 else [_word(value) for value in values]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def remarks(choice: Choice, weights: FloatArray) -> list[str]:
    """Remarks on a choice, to be read beside its table."""
    said, score = [], choice.table["score"]
    others = np.flatnonzero(np.isfinite(score) & (np.arange(len(score)) != choice.chosen))
    if len(others):
        second = int(others[np.argmax(score[others])])
        gap = score[choice.chosen] - score[second]
        side = "above" if gap >= 0 else "below"
        words = f"{abs(gap):.3g} nats per row ({abs(gap) * weights.sum():.3g} in all) {side} {choice.label(second)}"
        if choice.fold_scores.size:
            apart = choice.fold_scores[[choice.chosen]] - choice.fold_scores[[second]]
            words += f", with a standard error of {float(standard_error(apart.T, weights)[0]):.3g} per row"
        said.append(f"{words}.")
    said += [incomparability_note(choice), *(_edge_note(name, choice) for name in choice.names)]
    n_failed = sum(map(bool, choice.table["failure"]))
    if n_failed:
        said.append(f"{n_failed} of {len(score)} candidates could not be scored; their rows say why.")
    return [words for words in said if words]


def incomparability_note(choice: Choice) -> str:
    """A warning where evidences do not compare, or nothing.

    A weight that no prior holds down has a flat one of a height that depends on the units of the data, so that each
    more of them shifts the evidence by what the data happen to be measured in.
    """
    free = np.unique(choice.table["n_free"][np.isfinite(choice.table["score"])])
    free = free[np.isfinite(free)]
    if choice.fold_scores.size or len(free) < 2:
        return ""
    return (
        f"Candidates have {free[0]:g} to {free[-1]:g} weights without a prior. If these numbers differ, the evidence "
        "depends on the units of the data and cannot compare them. Choose between them with by='held-out'."
    )


def _edge_note(name: str, choice: Choice) -> str:
    """A warning where the value chosen is the last that was tried."""
    values = {v for v in choice.values(name) if isinstance(v, int | float | np.number) and not isinstance(v, bool)}
    mine = choice.settings.get(name)
    if len(values) < 2 or mine not in (min(values), max(values)):
        return ""
    side, further = ("smallest", "smaller") if mine == min(values) else ("largest", "larger")
    return f"{name}={_word(mine)} is the {side} that was tried; a {further} one may be better."
