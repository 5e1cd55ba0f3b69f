"""Training that continues with every block of rows: the steps behind ``GTM.partial_fit``, after thesis 6.6."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.file_requirements import require_parts
from prinfold.base.starting_points import column_variances
from prinfold.exceptions import (
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    warn_caller,
)
from prinfold.gtm import fitting
from prinfold.gtm import model as gtm
from prinfold.gtm.evidence_training import with_found_prior
from prinfold.gtm.fitting import GivenRows
from prinfold.gtm.noise.protocol import Parameters, noise_for_gaps
from prinfold.gtm.recipe import TrainingJob
from prinfold.gtm.trainers.online import Online, OnlineStream, after_blocks, in_blocks
from prinfold.gtm.trainers.stream_memory import Memory, make_memory, with_gaps
from prinfold.gtm.trainers.trainers import BATCH
from prinfold.gtm.warnings import warn_about_empty_rows
from prinfold.loops import StopReason
from prinfold.rows.rows import dense
from prinfold.validation.refusals import refuse_empty_columns
from prinfold.validation.tables import check_errors, check_table, check_weight, has_gaps

_MOST_HISTORY_ENTRIES = 1000
"""Newest entries of the history that are kept; a stream may have no end."""

_WARN_ROUNDING_LOSS = 0.1
"""Rounding error of a log density, in nats, above which a warning is given."""


def online_rule(trainer: object) -> Online:
    """The step rule of a stream: that of the trainer if it is one, else the usual."""
    return trainer if isinstance(trainer, Online) else Online()


def learn(estimator: Any, X: Any, sample_weight: Any, errors: Any) -> None:
    """Take a step with a block of rows, or keep it until there are enough rows to begin with."""
    clock = perf_counter()
    given = _check_block(estimator, X, sample_weight, errors)
    if given.n_rows == 0:
        return
    if hasattr(estimator, "latent_"):
        _continue_stream(estimator, given, clock)
        return
    gathered = [*getattr(estimator, "_gathered_", []), given]
    estimator._gathered_ = []  # what cannot be used to begin with is not tried again
    if sum(each.n_rows for each in gathered) < online_rule(estimator.trainer).start:
        estimator._gathered_ = [*gathered[:-1], _copy(given)]  # its owner may fill the same array again
    else:
        _begin_stream(estimator, _join(gathered), clock)


def _check_block(estimator: Any, X: Any, sample_weight: Any, errors: Any) -> GivenRows:
    """The rows of a block that have a weight and of which something was measured, checked."""
    first = not hasattr(estimator, "n_features_in_")
    accepted = {"accept_sparse": estimator._accept_sparse, "accept_missing": estimator._accept_missing}
    table = check_table(estimator, X, reset=first, min_rows=1, **accepted)
    if sample_weight is not None and np.shape(sample_weight) == table.shape[:1] and not np.any(sample_weight):
        return GivenRows(table[:0])  # a fit would have nothing to go by; a stream only waits for more
    weight, known = check_weight(sample_weight, table), check_errors(errors, table, estimator)
    kept = np.full(table.shape[0], True) if weight is None else weight > 0
    if has_gaps(table):
        warn_about_empty_rows(table)
        kept &= ~np.isnan(table).all(axis=1)
    given = GivenRows(table, weight, known)
    return given if kept.all() else given.choose(kept)


def _begin_stream(estimator: Any, given: GivenRows, clock: float) -> None:
    """Begin with a fit to the first rows, and go on from there with the others."""
    n = online_rule(estimator.trainer).start
    first, others = given.choose(slice(n)), given.choose(slice(n, None))
    if not isinstance(estimator.init, str):
        raise InvalidParameterError("partial_fit cannot start from given coordinates; give init by name, such as 'pca'")
    if has_gaps(first.table):
        refuse_empty_columns(first.table, getattr(estimator, "feature_names_in_", None))
    recipe = replace(estimator._recipe(trainer=BATCH), most_doublings=0)
    job = fitting.assemble(recipe, first.table, first.weight, first.errors)
    if not column_variances(job.rows).any():
        raise InvalidDataError(
            f"the first {first.n_rows} rows are all the same, so that the scale of the data is not known; "
            "begin with rows that differ, or gather more of them: trainer=Online(start=…)"
        )
    found = fitting.train_map(recipe, job, recipe.begin(recipe, job), estimator._run_with_callbacks)
    estimator._keep(found.attributes, found.outcome)
    if others.n_rows:
        _continue_stream(estimator, others, clock)


def _continue_stream(estimator: Any, given: GivenRows, clock: float) -> None:
    """Take one more step from the sums kept, and set the fitted attributes."""
    memory, parameters = estimator.memory_, estimator._parameters()
    if memory is None:
        raise InvalidDataError(
            "this model was saved by an earlier version, without the sums that partial_fit continues from; fit it again"
        )
    rows = replace(estimator._rows(given.table, given.errors), weight=given.weight, gaps=has_gaps(given.table))
    mean = fitting.table_mean(given.table, given.weight, rows.gaps)
    _warn_about_drift(mean - estimator.offset_, given, parameters.level)
    found = with_found_prior(estimator._model, parameters, estimator.history_)
    model, statistics = gtm.GTMModel(found.surface, found.noise, found.penalty), memory.statistics
    if memory.gaps or rows.gaps or rows.errors is not None:
        model, statistics = replace(model, noise=noise_for_gaps(model.noise)), with_gaps(statistics)
    job, online = TrainingJob(model, rows, estimator.basis_), online_rule(estimator.trainer)
    after, score = after_blocks(
        model, in_blocks(rows, online.unit), OnlineStream(parameters, statistics, memory.seen), online
    )
    measured = score.measured(model, after.parameters, after.statistics.total)
    estimator._set(fitting.noise_attributes(job, after))
    estimator.memory_ = make_memory(model, after.statistics, after.seen)
    estimator.history_ = _longer_history(estimator.history_, measured, clock)
    estimator.n_iter_, estimator.converged_, estimator.stop_reason_ = estimator.n_iter_ + 1, False, StopReason.OPEN


def _longer_history(
    history: dict[str, list[float]], measured: dict[str, float], clock: float
) -> dict[str, list[float]]:
    """The history with one more entry; measures that are missing in it repeat their last value."""
    entry = {name: values[-1] for name, values in history.items()} | measured
    entry["seconds"] = history["seconds"][-1] + perf_counter() - clock
    return {name: [*values, float(entry[name])][-_MOST_HISTORY_ENTRIES:] for name, values in history.items()}


def _warn_about_drift(moved: FloatArray, given: GivenRows, precision: float) -> None:
    """Warn where rows lie so far from ``offset_``, about which all sums are taken, that rounding shows."""
    lost = float(np.finfo(given.table.dtype).eps * (moved @ moved) * precision)
    if lost > _WARN_ROUNDING_LOSS:
        warn_caller(
            f"rows lie {np.linalg.norm(moved):.3g} from offset_, where this stream began. Compared with the noise "
            f"that is so far that rounding in {given.table.dtype} shows; begin a new model, or use float64",
            DegenerateWarning,
        )


# --------------------------------------------------------------------------------------------------- model files


def restore_memory(model: gtm.GTMModel, memory: Memory, parameters: Parameters) -> gtm.GTMModel:
    """The model as the stream left it; sums that are not of its noise are refused."""
    if memory.freedom > 0:
        penalty: Any = model.penalty  # the prior of a process, which alone has a freedom
        model = replace(model, penalty=replace(penalty, freedom=memory.freedom))
    takes_gaps = replace(model, noise=noise_for_gaps(model.noise)) if memory.gaps else model
    require_parts({"a memory_ with statistics of its own noise": memory.fits(takes_gaps, parameters)})
    return model


# ------------------------------------------------------------------------------------------------- gathered rows


def _copy(rows: GivenRows) -> GivenRows:
    return GivenRows(*(None if each is None else each.copy() for each in rows))  # type: ignore[arg-type]


def _join(gathered: list[GivenRows]) -> GivenRows:
    """All rows that were gathered as one table."""
    if len(gathered) == 1:
        return gathered[0]
    table = np.concatenate([dense(each.table) for each in gathered])
    weight = errors = None
    if any(each.weight is not None for each in gathered):
        weight = np.concatenate([np.ones(len(each.table)) if each.weight is None else each.weight for each in gathered])
    if any(each.errors is not None for each in gathered):
        errors = np.concatenate([_errors_of(each) for each in gathered])
    return GivenRows(table, weight, errors)


def _errors_of(rows: GivenRows) -> FloatArray:
    """(n, D) errors of all cells, 0 where none are known."""
    known = np.zeros((1, 1)) if rows.errors is None else rows.errors
    return np.broadcast_to(known, rows.table.shape)
