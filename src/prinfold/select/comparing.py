"""Several methods on the same folds: one table, and a recommendation that says how sure it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    Message,
    quantity,
    warn_caller,
)
from prinfold.loops import Meter, Working, while_working, write_line
from prinfold.select.branching import branching_note
from prinfold.select.candidates import Candidate, candidates_of
from prinfold.select.comparison_result import Comparison
from prinfold.select.dimensions import suggest_dimension
from prinfold.select.finished_trials import FinishedTrials
from prinfold.select.measures import noise_of, thinning_of, widths_of
from prinfold.select.missing_cells import raise_to_all_columns
from prinfold.select.pipelines import takes_gaps
from prinfold.select.samples import frame_of, take
from prinfold.select.trials import MethodComparison, MethodTrial
from prinfold.select.verdicts import (
    CRITERIA,
    MethodLosses,
    Verdict,
    collect_measures,
    judge,
    noise_left_by_best,
    pareto,
    why_likelihood_is_blind,
)
from prinfold.select.wording import other_dimensions, reasons
from prinfold.validation.data_notes import groups_note, spreads_note
from prinfold.validation.failures import may_have_gaps, name_call_failures
from prinfold.validation.refusals import column_labels
from prinfold.validation.settings import as_generator, check_call, flag, instance_of, integer, n_processes, seeds
from prinfold.validation.tables import check_table, has_gaps


@name_call_failures
@may_have_gaps
@while_working("Comparing the methods")
@check_call(
    criterion=instance_of(str, words=f"one of {', '.join(map(repr, CRITERIA))}"),
    n_jobs=n_processes,
    random_state=seeds,
    verbose=integer(0) | flag,
)
def compare(
    X: Any,
    methods: Any = "all",
    *,
    n_components: int | None = None,
    folds: int = 5,
    criterion: str = "likelihood",
    max_rows: int | None = 2000,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
    verbose: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Fit several methods and settings to the same folds, and recommend one.

    Held-out projection error alone favours surfaces that wander through the noise. The recommendation therefore rests
    on the criterion that came nearest to true surfaces on simulators; the guide shows how near, and how often it errs.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows. Methods see them as they are: bring columns to comparable units first. Cells may be missing (NaN): rows
        with gaps are held out like others, and judged by the cells that they have. Methods that take no gaps are
        fitted to the complete rows.
    methods : "all", str, estimator, or list or mapping of these, default="all"
        Who takes part: names of prinfold's manifolds (each with a few settings), ``"PCA"``, ``"KernelPCA"``,
        ``"Isomap"``, any estimator of your own with ``transform`` and ``inverse_transform``, or pairs of a name and
        an estimator. Estimators given as objects keep their settings; pipelines that end in one of prinfold's
        manifolds are measured in the units of the rows that go into them. With ``"all"`` a tree is tried too, and a
        note says so where the rows branch.
    n_components : int, default=None
        Dimension of the surfaces; methods that have but one, such as curves, stand among ``"all"`` where it is theirs,
        and elsewhere by name. None takes the one that rows held out suggest, see ``dimension`` of the result.
    folds : int, default=5
        Parts that the rows are held out in, the same for everybody.
    criterion : {"likelihood", "thinned", "error", "elbow", "density"}, default="likelihood"
        What the recommendation rests on, always of rows held out: their likelihood if rows are spread about the surface
        as widely in all directions, or the projection error in its stead where there is hardly any noise to see; how
        well they are denoised, by thinning them; the projection error; the elbow of that error against roughness; or
        the models' own likelihood, where they have one.
    max_rows : int, default=2000
        Rows that take part, spread evenly over the sorted table; the model that is recommended is fitted to all of
        them. None takes all.
    n_jobs : int, default=None
        Fits that run at the same time, those that suggest a dimension too, in processes of their own by joblib; None
        is one, here.
    random_state : int, numpy.random.Generator or None, default=0
        Decides which rows are held out together, and where methods begin.
    verbose : int, default=0
        1 says on standard error who is done, in how many seconds, and about how many are left.
    checkpoint : str or path, default=None
        A file for the fits that have ended. The same call with the same file takes them from there and goes on with
        the others; a file of another comparison or of other rows is an error. It is not deleted at the end.

    Returns
    -------
    Comparison
        The table, the recommended model fitted to all rows, and the reasons in words on printing. A method that fails
        has a row that says why.

    Examples
    --------
    >>> from prinfold import compare, datasets
    >>> data = datasets.make_half_circle(100, rng=0)
    >>> found = compare(data.X, ["GTM", "PCA"], n_components=1)
    >>> found.recommended.method
    'GTM'
    """
    clock, rng = perf_counter(), as_generator(random_state)
    _check(criterion, folds, n_components, max_rows)
    reader = BaseEstimator()
    table = np.asarray(check_table(reader, X, reset=True, min_rows=2, accept_missing=True), dtype=float)
    names = column_labels(reader, table.shape[1])
    rows = _evenly_spaced_rows(_sort_rows(table), max_rows)
    fold, whole = _folds(rows, folds, rng), ~np.isnan(rows).any(axis=1)
    dimension = suggest_dimension(rows[whole], fold[whole], n_jobs=n_jobs) if n_components is None else None
    Q = n_components if dimension is None else dimension.suggested
    assert Q is not None  # one of the two is known
    complete = rows[whole]
    everyone = candidates_of(methods, Q, complete, int(rng.integers(2**31)))
    sigma = noise_of(complete, Q)
    judged = np.isfinite(raise_to_all_columns(rows, Q))
    rows, fold = rows[judged], fold[judged]
    job = MethodComparison(rows, fold, widths_of(complete, sigma), thinning_of(rows, sigma, rng), Q)
    tasks = [(each.model, f) for each in everyone for f in range(folds)]
    numbers_given = {"rows": rows, "folds": fold, "widths": job.widths}
    log = FinishedTrials(checkpoint, "compare", _settings_of(everyone), numbers_given)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    trials = parallel(joblib.delayed(job.attempt)(*task) for task in tasks[log.n_kept :])
    each = _gather(log.followed_by(trials), everyone, folds, verbose=bool(verbose))
    numbers = collect_measures(each, job, sigma, max(rows.shape[1] - Q, 0))
    found = _conclude(everyone, each, numbers, criterion, rng, X)
    noise = float(np.sqrt(noise_left_by_best(numbers)))
    came_out = [next((trial.dimension for trial in folded if trial.dimension), None) for folded in each]
    notes = (*found.notes, *other_dimensions(everyone, Q, came_out), *_thinning_note(len(judged), len(table)))
    notes = (*notes, *_gaps_note(everyone, rows, len(judged), Q), *_warn_about_rows(complete, names))
    if isinstance(methods, str) and methods == "all" and len(complete) == len(rows):
        name, trees = everyone[found.chosen].name, _trials_of(everyone, each, "PrincipalTree")
        notes = (*notes, *branching_note(job, each[found.chosen], name, sigma, max(rows.shape[1] - Q, 0), trees))
    seconds = perf_counter() - clock
    return replace(found, n_components=Q, sigma=noise, dimension=dimension, notes=notes, seconds=seconds)


def _trials_of(
    everyone: Sequence[Candidate], trials: Sequence[list[MethodTrial]], name: str
) -> list[MethodTrial] | None:
    """The trials of the candidate of that name, None where there is none."""
    return next((own for one, own in zip(everyone, trials, strict=True) if one.name == name), None)


def _settings_of(everyone: Sequence[Candidate]) -> dict[str, Any]:
    """Settings of all candidates by name, of those within a pipeline too."""
    found: dict[str, Any] = {}
    for one in everyone:
        found |= {f"{one.name}: {name}": value for name, value in one.model.get_params().items()}
    return found


def _gather(
    trials: Iterable[MethodTrial], everyone: Sequence[Candidate], folds: int, *, verbose: bool
) -> list[list[MethodTrial]]:
    """Trials by candidate, in the order in which they come; each candidate is named when all of its are there."""
    arriving, n = iter(trials), len(everyone)
    found: list[list[MethodTrial]] = []
    begin = before = perf_counter()
    with Meter("Comparing the methods", n * folds) as meter:
        for i, one in enumerate(everyone, 1):
            found.append([])
            for fold in range(folds):
                found[-1].append(next(arriving))
                meter.tell((i - 1) * folds + fold + 1)
            now = perf_counter()
            left = f", about {(now - begin) / i * (n - i):.0f} s left" if i < n else ""
            if verbose and sys.stderr is not None:
                write_line(sys.stderr, f"{i} of {n}  {one.name}: {now - before:.1f} s{left}")
            before = now
    return found


def _check(criterion: str, folds: int, n_components: int | None, max_rows: int | None) -> None:
    if criterion not in CRITERIA:
        raise InvalidParameterError(f"the criterion must be one of {', '.join(map(repr, CRITERIA))}, got {criterion!r}")
    for name, value, least in (("folds", folds, 2), ("n_components", n_components, 1), ("max_rows", max_rows, 10)):
        if not integer(least).test(value) and (value is not None or name == "folds"):
            raise InvalidParameterError(f"{name} must be {integer(least).words}, got {value!r}")


def _sort_rows(table: FloatArray) -> FloatArray:
    """Rows sorted by their first column, then by the next, so that results do not depend on the order of rows."""
    table = table + 0.0  # zero has no sign, or equal rows would not lie side by side
    return np.asarray(table[np.lexsort(table.T[::-1])])


def _evenly_spaced_rows(rows: FloatArray, most: int | None) -> FloatArray:
    """At most so many rows, evenly spaced from the first to the last."""
    if most is None or len(rows) <= most:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, most).round().astype(int)])


def _folds(rows: FloatArray, folds: int, rng: np.random.Generator) -> IntArray:
    """(n,) fold of each of the sorted rows; equal ones share one.

    Which one hangs on the rank of a row alone, so that a table in other units has the same folds.
    """
    same = (rows[1:] == rows[:-1]) | (np.isnan(rows[1:]) & np.isnan(rows[:-1]))
    rank = np.concatenate([[0], np.cumsum(~same.all(axis=1))])
    whole = ~np.isnan(rows).any(axis=1)
    different = len(np.unique(rank[whole]))
    if different < 2 * folds:
        without = "" if whole.all() else " without gaps"
        raise InvalidDataError(
            f"{folds} folds need at least {2 * folds} different rows{without}, got {different}; use fewer folds or "
            "more rows"
        )
    return np.asarray((rng.permutation(int(rank[-1]) + 1) % folds)[rank])


def _thinning_note(taken: int, n: int) -> list[str]:
    if taken == n:
        return []
    return [f"{taken} of {n} rows were compared (max_rows); the recommended model is fitted to all of them."]


def _gaps_note(everyone: Sequence[Candidate], rows: FloatArray, n: int, n_components: int) -> list[str]:
    """Words about rows with gaps, of the n that took part: how they were judged, and who was not fitted to them."""
    gaps = int(np.isnan(rows).any(axis=1).sum())
    said = []
    if gaps:
        said.append(
            f"{gaps} of {n} rows have missing cells. They are judged by their known cells; squared distances are "
            "scaled up to all columns."
        )
        others = list(dict.fromkeys(one.method for one in everyone if not takes_gaps(one.model)))
        if others:
            said.append(
                f"Methods that need every cell ({', '.join(others)}) are fitted to complete rows only, and judged on "
                "the same rows as the others."
            )
    if len(rows) < n:
        said.append(
            f"{n - len(rows)} of {n} rows were not judged: they have {quantity(n_components, 'known cell')} or "
            "fewer, and lie on any surface."
        )
    return said


def fit_to_rows(model: Any, X: Any) -> Any:
    """A model fitted to a table, or to its complete rows where these are all that it can take."""
    table = np.asarray(check_table(BaseEstimator(), X, reset=True, accept_missing=True))
    if not has_gaps(table) or takes_gaps(model):
        return clone(model).fit(X)
    whole = np.flatnonzero(~np.isnan(table).any(axis=1))
    return clone(model).fit(table[whole] if frame_of(X) is None else take(X, whole))  # frames keep their names


def _warn_about_rows(rows: FloatArray, names: Sequence[str]) -> list[str]:
    """Warn about columns in unlike units and separate groups of rows; the warnings as notes."""
    said = [words for words in (spreads_note(rows, names), groups_note(rows)) if words is not None]
    for words in said:
        warn_caller(words, DegenerateWarning)
    return [str(words) for words in said]


# -------------------------------------------------------------------------------------------- the conclusion


def _conclude(
    everyone: tuple[Candidate, ...],
    trials: list[list[MethodTrial]],
    found: MethodLosses,
    name: str,
    rng: np.random.Generator,
    X: Any,
) -> Comparison:
    table = _tabulate(everyone, trials, found)
    if np.isnan(found.errors).all():
        why = next(f"{one.name}: {words}" for one, words in zip(everyone, table["failure"], strict=True) if words)
        raise InvalidDataError(f"no method could be fitted to these rows; {why}")
    why_not = why_likelihood_is_blind(found) if name == "likelihood" else ""
    name = "error" if why_not else name
    criterion = CRITERIA[name]
    losses, least_gap = criterion.losses(found), criterion.least_gap(found.variance)
    if np.isnan(losses).all():
        words = f"the criterion {name!r} says nothing of these methods"
        raise InvalidParameterError(Message(words, Advice("criterion", "likelihood", "use {}")))
    verdict, model, lost = _judge_and_fit(
        everyone, table, losses, X, lambda left: judge(criterion, left, table["roughness"], rng, least_gap)
    )
    table |= {
        "criterion": verdict.loss,
        "criterion_standard_error": verdict.standard_error,
        "wins": verdict.wins,
        "tied": verdict.tied,
        "front": pareto(table["roughness"], table["error"]),
        "surface_likelihood": -CRITERIA["likelihood"].losses(found).mean(axis=1),
        "thinned_error": CRITERIA["thinned"].losses(found).mean(axis=1),
    }
    said = reasons(everyone, table, verdict, name, why_not)
    return Comparison(everyone, table, name, verdict.chosen, (*said, *lost), model=model)


def _judge_and_fit(
    everyone: tuple[Candidate, ...],
    table: dict[str, Any],
    losses: FloatArray,
    X: Any,
    verdict_on: Callable[[FloatArray], Verdict],
) -> tuple[Verdict, Any, list[str]]:
    """The verdict, its model fitted to all rows, and notes on those before it that could not be, which are failures."""
    left = losses.copy()
    notes: list[str] = []
    while np.isfinite(left).any():
        verdict = verdict_on(left)
        one = everyone[verdict.chosen]
        try:
            with Working(f"Fitting {one.name} to all rows"):
                return verdict, fit_to_rows(one.model, X), notes
        except Exception as error:  # it could be fitted to every part of the rows, and others can be to all
            words = f"{type(error).__name__}: {error}"
        left[verdict.chosen] = np.nan
        table["failure"][verdict.chosen] = f"fitted to all rows: {words}"
        notes.append(f"{one.name} came out ahead, but could not be fitted to all rows ({words}); the next best is.")
    raise InvalidDataError(f"no method could be fitted to all rows; {notes[0]}")


def _tabulate(everyone: tuple[Candidate, ...], trials: list[list[MethodTrial]], found: MethodLosses) -> dict[str, Any]:
    """Columns of the table that do not depend on the verdict."""
    over_folds = {
        name: np.array([_mean([getattr(trial, name) for trial in each]) for each in trials])
        for name in ("roughness", "trustworthiness", "continuity", "seconds", "memory")
    }
    return {
        "method": [one.method for one in everyone],
        "settings": [one.settings for one in everyone],
        "error": found.errors.mean(axis=1),
        "standard_error": found.errors.std(axis=1, ddof=1) / np.sqrt(found.errors.shape[1]),
        "log_likelihood": found.log_likelihood.mean(axis=1),
        **over_folds,
        "failure": [_failure(each) for each in trials],
    }


def _failure(trials: Sequence[MethodTrial]) -> str:
    """The first reason, and in how many folds there was one if not in all."""
    reasons = [trial.failure for trial in trials if trial.failure]
    if not reasons or len(reasons) == len(trials):
        return reasons[0] if reasons else ""
    return f"in {len(reasons)} of {len(trials)} folds: {reasons[0]}"


def _mean(values: Sequence[float]) -> float:
    """Mean of the finite numbers; NaN if there are none."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")
