"""A comparison of methods in words: the recommendation, its reasons, how sure it is, and a legend of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, Message, join_names, percent
from prinfold.select.candidates import Candidate, other_dimension
from prinfold.select.verdicts import CRITERIA, MethodCriterion, Verdict

_SURE_SHARE, _LIKELY_SHARE = 0.9, 0.6
"""Shares of resamples in which the recommended one would be chosen, from which it is called sure (while
none is tied) and likely."""

_MOST_NAMED = 4

ROUGHEST = 1e6
"""Roughness beyond which nobody wants to know how much: such surfaces turn back at every row."""

GUESS = Message(
    "That is a guess, right in 9 of 16 simulated tables, where always saying 2 would have been right in 8.",
    Advice("n_components", words="give {} if you know it"),
)

_RECORD = (
    "On simulated shapes that had no part in its design (16 tables of 150 rows, eleven to thirteen of the GTM, PPS, "
    "UKR, KMM, density ridges and baselines on each), what this criterion recommended was"
)
"""How the record of a criterion begins (benchmarks/comparing.py)."""

_ERRORS = (
    "± is one standard error of the mean over rows; ties are decided by that of the paired difference from the "
    "recommended method, so that an untied method may stand between two tied ones."
)


def reasons(
    everyone: tuple[Candidate, ...], table: dict[str, Any], verdict: Verdict, name: str, why_not: str = ""
) -> list[str]:
    """The recommendation in words: what, why, how sure, and what to keep in mind.

    ``why_not`` says why the likelihood was not gone by, of which there is no record: in hardly any table that the
    criteria were judged on was it so.
    """
    i, criterion = verdict.chosen, CRITERIA[name]
    known = int(np.isfinite(verdict.loss).sum())
    what = "it is the only one that could be judged" if known == 1 else _rank_words(verdict, criterion, known)
    loss = f"{verdict.loss[i]:.4g} ± {verdict.standard_error[i]:.1g}"
    said = [f"{everyone[i].name} is recommended: {what} ({criterion.words} {loss})."]
    if known > 1:
        said += [_confidence(everyone, verdict), *_smoothest_note(everyone, verdict), _ERRORS]
    if known > 1 and not why_not:
        said.append(f"{_RECORD} {criterion.record}.")
    n_failed = sum(map(bool, table["failure"]))
    if n_failed:
        said.append(f"{n_failed} of {len(everyone)} could not be fitted or measured; their rows say why.")
    if why_not:
        said.append(f"The error of rows held out stands in for their likelihood, which says little here: {why_not}.")
    return said


def _rank_words(verdict: Verdict, criterion: MethodCriterion, known: int) -> str:
    if criterion.choose is None or verdict.chosen == int(np.nanargmin(verdict.loss)):
        return f"of {known} surfaces it has the lowest loss on rows held out"
    return f"of {known} surfaces it has the best balance of error and roughness"


def _confidence(everyone: tuple[Candidate, ...], verdict: Verdict) -> str:
    share = float(verdict.wins[verdict.chosen])
    others = [j for j in np.argsort(verdict.loss) if verdict.tied[j] and j != verdict.chosen]
    sure = (
        "That is certain for these rows"
        if share >= _SURE_SHARE and not others
        else "That is likely"
        if share >= _LIKELY_SHARE
        else "That is a close call"
    )
    words = f"{sure}: it would be chosen in {percent(share)} of resamples of the rows"
    if share < _LIKELY_SHARE:
        next_to_it = int(np.where(np.arange(len(everyone)) == verdict.chosen, -1.0, verdict.wins).argmax())
        words += f", {everyone[next_to_it].name} in {percent(verdict.wins[next_to_it])}"
    if others:
        named = join_names((everyone[j].name for j in others), _MOST_NAMED)
        return f"{words}; within one standard error of it: {named}."
    apart = ", and every other one is more than one standard error away" if share >= _LIKELY_SHARE else ""
    return f"{words}{apart}."


def _smoothest_note(everyone: tuple[Candidate, ...], verdict: Verdict) -> list[str]:
    if verdict.smoothest == verdict.chosen:
        return []
    return [f"The smoothest of those tied is {everyone[verdict.smoothest].name}, for those who want a smooth map."]


def legend(name: str, roughness: FloatArray, seconds: float) -> list[str]:
    """Explanations of the columns of a printed table, a line each."""
    said = [
        f"criterion: {CRITERIA[name].words}, lowest at best"
        + (" (a likelihood above 1 makes it negative)" if CRITERIA[name].nats else ""),
        "likelihood: the model's own, of rows held out; trust: neighbours on the map are neighbours among the rows",
        "contin: continuity, neighbours among the rows are neighbours on the map",
        "seconds: of one fit"
        + (f"; the whole comparison took {seconds:.3g} seconds, every fold and measure counted" if seconds > 0 else ""),
        "MB: the most megabytes that Python and NumPy asked for in one fit",
        "chosen: share of resamples of the rows in which it would be recommended",
    ]
    if (roughness > ROUGHEST).any():
        said.append(f"roughness above {ROUGHEST:.0e} is not compared further: such a surface folds everywhere")
    return said


def other_dimensions(
    everyone: tuple[Candidate, ...], n_components: int, fitted: Sequence[int | None] | None = None
) -> list[str]:
    """A note where some have another dimension than the one that is compared; ``fitted`` has those that came out."""
    known = fitted if fitted is not None else [None] * len(everyone)
    pairs = zip(everyone, known, strict=True)
    own = [(one.name, other_dimension(one.model, n_components, found)) for one, found in pairs]
    listed = ", ".join(f"{name} has {q}" for name, q in own if q is not None)
    if not listed:
        return []
    words = f"Not of dimension {n_components}, as was asked for: {listed}; they keep their own"
    return [f"{words}, and with more dimensions surfaces come nearer to rows."]
