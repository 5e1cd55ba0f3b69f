"""Choose the settings of a model by the evidence or by the likelihood of rows held out, or compare methods."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.exceptions import DegenerateWarning, InvalidParameterError, shown, warn_caller
from prinfold.gtm.estimator import GTM
from prinfold.gtm.sequence.sequence_input import arrange
from prinfold.loops import Meter, StopReason, while_working
from prinfold.pps.clamping_choice import standard_error
from prinfold.select.choices import Choice, incomparability_note, remarks
from prinfold.select.comparing import compare
from prinfold.select.comparison_result import Comparison
from prinfold.select.criteria import CRITERIA, Rows, SettingCriterion
from prinfold.select.finished_trials import FinishedTrials
from prinfold.select.samples import sample_of, sequences_of
from prinfold.validation.failures import may_have_gaps, name_call_failures
from prinfold.validation.settings import (
    as_generator,
    check_call,
    check_setting,
    flag,
    instance_of,
    integer,
    n_processes,
    nothing,
    seeds,
)

__all__ = ["Choice", "Comparison", "choose", "compare"]

_WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
"""Widths tried where no grid is given: √2 apart, narrower ones leave gaps and wider ones nearly a plane."""


@name_call_failures
@may_have_gaps
@while_working("Choosing the settings")
@check_call(
    model=nothing | instance_of(BaseEstimator, words="an estimator"),
    by=instance_of(str, words=f"one of {', '.join(map(repr, CRITERIA))}"),
    simplest=flag,
    n_jobs=n_processes,
    rng=seeds,
)
def choose(
    X: Any,
    grid: Any = None,
    *,
    model: Any = None,
    by: str = "exact",
    folds: int = 5,
    simplest: bool = False,
    sample_weight: Any = None,
    errors: Any = None,
    lengths: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    rng: RandomState = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Choice:
    """Fit a model with every combination of some settings, and keep the best.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows; cells may be missing where the model takes that. For a :class:`~prinfold.GTMSequence` sequences, in every
        form that its ``fit`` takes, which are held out as a whole.
    grid : mapping or list of mappings, default=None
        Values to try for each setting, by its name as the model has it: ``width``, ``basis``, ``regularization``,
        ``prior_precision``, ``n_components``, ``nodes`` or any other. A list of mappings is tried one after the other.
        None tries widths from 0.5 to 2.8.
    model : estimator, default=None
        Settings that stay the same; None is ``GTM(prior_precision="evidence")``, so that the prior and the noise
        need no candidates of their own.
    by : {"exact", "approximate", "held-out"}, default="exact"
        The evidence with the exact Hessian or with the approximate one, which need a :class:`~prinfold.GTM`, or the
        likelihood of rows held out.
    folds : int, default=5
        Parts that the rows, or sequences, are held out in, one after the other.
    simplest : bool, default=False
        Of rows held out, whether to choose the candidate with the fewest determined weights among those that fall short
        of the best by no more than one standard error of the difference, over the folds.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows; of sequences, one for each.
    errors : array-like of shape (n, D) or (n,), default=None
        Known standard deviations of cells or rows, for models that take them.
    lengths : array-like of int, default=None
        Rows of each sequence, for a :class:`~prinfold.GTMSequence`.
    groups : array-like of shape (n,) or str, default=None
        In place of lengths, the names of the sequences that rows belong to, or the column of X that has them.
    n_jobs : int, default=None
        Fits that run at the same time, in processes of their own by joblib; None is one, here.
    rng : int or numpy.random.Generator, default=None
        Decides which rows are held out together; None is 0.
    checkpoint : str or path, default=None
        A file for the fits that have ended. The same call with the same file takes them from there and goes on with
        the others; a file of another comparison or of other rows is an error. It is not deleted at the end.

    Returns
    -------
    Choice
        The table, the chosen model, and the reasons in words on printing; :func:`prinfold.plot.choice` draws it. A
        candidate that could not be fitted has a row that says why.

    Examples
    --------
    >>> from prinfold import choose, datasets
    >>> data = datasets.make_thesis_surface(100, rng=0)
    >>> choice = choose(data.X, {"width": (0.5, 1.0, 2.0), "nodes": (8,)})
    >>> choice.settings["width"]
    1.0
    """
    given = GTM(prior_precision="evidence") if model is None else model
    candidates = _candidates({"width": _WIDTHS} if grid is None else grid, given)
    told = {name: each for name, each in (("lengths", lengths), ("groups", groups)) if each is not None}
    rows = _read(X, given, sample_weight, errors, told)
    job = _setting_comparison(given, rows, by, folds, as_generator(0 if rng is None else rng))
    tasks = [(settings, part) for settings in candidates for part in range(len(job.parts))]
    log = FinishedTrials(checkpoint, "choose", _settings_of(job, candidates), _numbers_of(job))
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    left = parallel(joblib.delayed(job.attempt)(*task) for task in tasks[log.n_kept :])
    trials = []
    with Meter("Fitting the candidates", len(tasks)) as meter:
        for trial in log.followed_by(left):
            trials.append(trial)
            meter.tell(len(trials))
    each = [trials[i : i + len(job.parts)] for i in range(0, len(trials), len(job.parts))]
    table, scores = _tabulate(each, job.fold_weights)
    chosen = _best(table, scores, job.fold_weights, simplest and len(job.parts) > 1)
    found = Choice(candidates, job.criterion.words, table, scores, chosen, None)
    fitted = configure(job.model, found.settings).fit(
        X, sample_weight=sample_weight, **told, **({} if errors is None else {"errors": errors})
    )
    said = incomparability_note(found)
    if said:
        warn_caller(said, DegenerateWarning)
    return replace(found, model=fitted, notes=tuple(remarks(found, job.fold_weights)))


def _settings_of(job: SettingComparison, candidates: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings that a comparison is about: those of the model, the criterion, and what is tried."""
    tried = {f"candidate {i}": repr(settings) for i, settings in enumerate(candidates)}
    return {**job.model.get_params(), "by": job.criterion.words, **tried}


def _numbers_of(job: SettingComparison) -> dict[str, Any]:
    """Arrays that a comparison is about: the rows, their weights and errors, and which are held out together."""
    held_out = {f"part {i}": scored_on for i, (_, scored_on) in enumerate(job.parts)}
    return {"rows": job.rows.X, "sample_weight": job.rows.weight, "errors": job.rows.errors, **held_out}


def _read(X: Any, model: Any, sample_weight: Any, errors: Any, told: Mapping[str, Any]) -> Rows:
    """Rows, or sequences where a model is of those."""
    if not getattr(model, "_takes_sequences", False):
        if told:
            raise InvalidParameterError(
                f"{next(iter(told))} says which rows are a sequence, of which {type(model).__name__} knows nothing; "
                "use model=GTMSequence(...)"
            )
        return sample_of(X, model, sample_weight, errors)
    given = arrange(X, **told)
    if given.plain:
        raise InvalidParameterError(
            f"{type(model).__name__} is chosen by sequences held out as a whole, but nothing says where they begin and "
            "end; give lengths or groups, or a list of tables"
        )
    return sequences_of(given, model, sample_weight, errors)


def _candidates(grid: Any, model: Any) -> tuple[dict[str, Any], ...]:
    """All combinations of a grid, in the order of its settings; scikit-learn's ``ParameterGrid`` sorts them."""
    parts = [grid] if isinstance(grid, Mapping) else list(grid) if isinstance(grid, Iterable) else []
    if not parts or not all(isinstance(part, Mapping) for part in parts):
        raise InvalidParameterError(
            "grid must be a mapping from settings to the values to try, such as {'width': (0.5, 1.0)}, or a list of "
            f"such, got {shown(grid)}; the table comes first, as in choose(X, grid)"
        )
    listed = [{name: _several(values) for name, values in part.items()} for part in parts]
    known = model.get_params(deep=False)
    unknown = sorted({name for part in listed for name in part} - set(model.get_params()))
    if unknown:
        raise InvalidParameterError(
            f"{type(model).__name__} has no setting {shown(unknown[0])}; its settings are {', '.join(known)}"
        )
    return tuple(dict(zip(part, values, strict=True)) for part in listed for values in product(*part.values()))


def _several(values: Any) -> list[Any]:
    """Values to try: those of a list, tuple or plain array, or one alone."""
    if isinstance(values, list | tuple):
        return list(values)
    return values.tolist() if isinstance(values, np.ndarray) and values.ndim == 1 else [values]


def _setting_comparison(model: Any, rows: Rows, by: str, folds: int, rng: np.random.Generator) -> SettingComparison:
    if by not in CRITERIA:
        raise InvalidParameterError(f"by must be one of {', '.join(map(repr, CRITERIA))}, got {by!r}")
    check_setting("folds", folds, integer(2))
    criterion = CRITERIA[by](folds, rows.unit)
    parts = criterion.parts(rows, rng)
    if model.get_params(deep=False).get("random_state", 0) is None:  # so that all candidates begin alike
        model = clone(model).set_params(random_state=int(rng.integers(2**31)))
    return SettingComparison(model, criterion, rows, parts)


# ------------------------------------------------------------------------------------------------- the fits


class SettingTrial(NamedTuple):
    """The outcome of one fit: its score, the row of the table, or why it failed."""

    score: float
    row: dict[str, float]
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class SettingComparison:
    """A comparison of settings: the model, the criterion and the rows that all its fits share."""

    model: Any
    criterion: SettingCriterion
    rows: Rows
    parts: list[tuple[IntArray | None, IntArray | None]]

    def attempt(self, settings: Mapping[str, Any], part: int) -> SettingTrial:
        """Fit one candidate to one part; whatever goes wrong is its own affair."""
        clock, (fitted_to, scored_on) = time.perf_counter(), self.parts[part]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model that is chosen says what is to be said of it
            try:
                seen = self.rows.part(fitted_to)
                model = configure(self.model, settings).fit(seen.X, sample_weight=seen.weight, **seen.options)
                if model.stop_reason_ is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
                score = self.criterion.score(model, self.rows.part(scored_on))
                row = _row(model, seen)
            except Exception as error:  # one candidate of many: its row says what happened
                failed = f"{type(error).__name__}: {error}"
                return SettingTrial(np.nan, dict.fromkeys(_COLUMNS, np.nan), time.perf_counter() - clock, failed)
        return SettingTrial(score, row, time.perf_counter() - clock)

    @property
    def fold_weights(self) -> FloatArray:
        """(F,) total weight of the rows that each part is scored on."""
        return np.array([self.rows.part(scored_on).total for _, scored_on in self.parts])


def configure(model: Any, settings: Mapping[str, Any]) -> Any:
    """A copy of the model with other settings; a constant penalty takes the place of a prior, unless both are named."""
    changes = dict(settings)
    if changes.get("regularization") is not None and "prior_precision" in model.get_params(deep=False):
        changes.setdefault("prior_precision", None)
    elif changes.get("prior_precision") is not None:
        changes.setdefault("regularization", None)
    return clone(model).set_params(**changes)


_COLUMNS = ("log_likelihood", "noise_variance", "prior_precision", "effective", "n_weights", "n_free")


def _row(model: Any, rows: Rows) -> dict[str, float]:
    """The row of the table for a fitted model; NaN for numbers that it does not have."""
    row = dict.fromkeys(_COLUMNS, np.nan)
    row["log_likelihood"] = float(np.average(model.score_samples(rows.X, **rows.options), weights=rows.row_weight))
    row["noise_variance"] = float(np.mean(getattr(model, "noise_variance_", np.nan)))
    parts = [each for each in getattr(model, "maps_", [model]) if hasattr(each, "weights_")]
    if parts:  # several of a mixture
        row["n_weights"] = float(sum(np.size(each.weights_) for each in parts))
    if hasattr(model, "effective_weights"):
        row["n_free"] = float(np.sum(model._model.surface.penalty_mask == 0) * model.weights_.shape[1])
    if hasattr(model, "effective_weights"):
        row["prior_precision"] = model.prior_precision_
        with suppress(InvalidParameterError):  # of some noise nobody knows how many weights it determines
            row["effective"] = model.effective_weights(rows.X, sample_weight=rows.weight, **rows.options)
    return row


# -------------------------------------------------------------------------------------------- the decision


def _tabulate(trials: list[list[SettingTrial]], weights: FloatArray) -> tuple[dict[str, Any], FloatArray]:
    """The table of all candidates, and their scores by fold (C, F)."""
    scores = np.array([[trial.score for trial in each] for each in trials])
    mean = np.average(scores, axis=1, weights=weights)
    error = standard_error(scores.T, weights) if len(weights) > 1 else np.full(len(trials), np.nan)
    columns = {name: np.array([np.mean([t.row[name] for t in each]) for each in trials]) for name in _COLUMNS}
    failures = [next((trial.failure for trial in each if trial.failure), "") for each in trials]
    if all(failures):
        raise InvalidParameterError(f"none of the {len(trials)} candidates has a score; the first: {failures[0]}")
    seconds = np.array([sum(trial.seconds for trial in each) for each in trials])
    rest = {"seconds": seconds, "failure": np.array(failures, dtype=object)}
    shown = scores if len(weights) > 1 else scores[:, :0]
    return {"score": mean, "standard_error": error, **columns, **rest}, shown


def _best(table: Mapping[str, Any], scores: FloatArray, weights: FloatArray, simplest: bool) -> int:
    """The highest score; or, of those no more than a standard error of the difference below it, the simplest."""
    best = int(np.nanargmax(table["score"]))
    if not simplest:
        return best
    short = table["score"][best] - table["score"]
    size = np.where(np.isnan(table["effective"]), table["n_weights"], table["effective"])
    near = short <= standard_error((scores[best] - scores).T, weights)  # never of one that failed
    return int(np.argmin(np.where(near & ~np.isnan(size), size, np.inf))) if np.isfinite(size[near]).any() else best
