"""Training that goes on with every block of rows: what ``partial_fit`` adds to a GTM."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.base.callbacks import with_callbacks
from prinfold.base.starting_points import column_variances
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    warn_caller,
)
from prinfold.gtm import model as gtm
from prinfold.gtm.band_verbs import BandVerbs
from prinfold.gtm.fitting import Job
from prinfold.gtm.gaussian_process_training import ProcessPrior
from prinfold.gtm.noise.per_cell import node_masses
from prinfold.gtm.noise.recipes import Spread
from prinfold.gtm.trainers.online import Online, Stream, after_blocks, in_blocks
from prinfold.gtm.trainers.stream_memory import Memory, remembered, with_gaps
from prinfold.gtm.trainers.trainers import TRAINERS
from prinfold.loops import StopReason
from prinfold.rows.rows import dense
from prinfold.validation.refusals import refuse_empty_columns
from prinfold.validation.settings import check_parameters
from prinfold.validation.tables import check_errors, check_table, check_weight, has_gaps

_HISTORY = 1000
"""Entries of the history that are kept of a stream."""

_ROUNDING = 0.1
"""What a log density may lose to rounding before a warning is due."""


class Rest(NamedTuple):
    """Rows that were gathered, with what is known of them."""

    table: FloatArray
    weight: FloatArray | None
    errors: FloatArray | None


class PartialFitVerbs(BandVerbs):
    """A member of the family that can learn from rows as they come."""

    _stored: ClassVar[tuple[str, ...]] = (*BandVerbs._stored, "memory_")
    _added: ClassVar[dict[str, Any]] = BandVerbs._added | {"memory_": None}
    memory_: Any

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> Self:
        """Learn from more rows: a step of online EM.

        The sums of all rows so far forget a little and take in those of the new rows, then the surface moves; see
        :class:`~prinfold.Online` for the step rule, which ``trainer`` sets if it is one. Many rows are taken in
        blocks, a step for each. The first rows are gathered until there are ``Online.start`` of them, and then fitted
        by batch EM; before that the model is not fitted. They decide for good on the origin ``offset_``, on the least
        noise, on a prior found by evidence and, unless ``nodes`` and ``basis`` are given, on the size of the map.
        After ``fit`` or :func:`~prinfold.load` training goes on from there.

        Parameters
        ----------
        X : array-like of shape (n, D)
            One row or more.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows. A weight of 2 is the same as the row given twice while all of them together weigh no
            more than ``Online.rows`` (200) or are among the first that are fitted. More rows than that would be taken
            in several blocks, with a step after each; weights are one block, and it counts as much as those.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations with which the cells, or all cells of a row, are known to have been measured.

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        clock = perf_counter()
        given = self._rest(X, sample_weight, errors)
        if given.table.shape[0] == 0:
            return self
        if hasattr(self, "latent_"):
            self._go_on(given, clock)
            return self
        gathered = [*getattr(self, "_gathered_", []), given]
        self._gathered_: list[Rest] = []  # what cannot be used to begin with is not tried again
        if sum(each.table.shape[0] for each in gathered) < self._online().start:
            self._gathered_ = [*gathered[:-1], _copied(given)]  # its owner may fill the same array again
        else:
            self._set_out(_joined(gathered), clock)
        return self

    @property
    def n_seen_(self) -> float:
        """Rows that training has seen, by their weights; rows that are seen again by ``fit`` count once."""
        check_is_fitted(self)
        return np.nan if self.memory_ is None else self.memory_.seen

    # --------------------------------------------------------------------------------------- plumbing

    def _online(self) -> Online:
        trainer = self._trainer()
        return trainer if isinstance(trainer, Online) else Online()

    def _rest(self, X: Any, sample_weight: Any, errors: Any) -> Rest:
        """The rows of a block that have a weight and of which something was measured, checked."""
        first = not hasattr(self, "n_features_in_")
        accepted = {"accept_sparse": self._accept_sparse, "accept_missing": self._accept_missing}
        table = check_table(self, X, reset=first, min_rows=1, **accepted)
        if sample_weight is not None and np.shape(sample_weight) == table.shape[:1] and not np.any(sample_weight):
            return Rest(table[:0], None, None)  # a fit would have nothing to go by; a stream only waits for more
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        kept = np.full(table.shape[0], True) if weight is None else weight > 0
        if has_gaps(table):
            self._warn_of_the_unseen(table)
            kept &= ~np.isnan(table).all(axis=1)
        if kept.all():
            return Rest(table, weight, known)
        return Rest(table[kept], *(None if each is None else each[kept] for each in (weight, known)))

    def _set_out(self, given: Rest, clock: float) -> None:
        """Begin with a fit to the first rows, and go on from there with the others."""
        first, others = _cut(given, self._online().start)
        if not isinstance(self.init, str):
            raise InvalidParameterError(
                "partial_fit begins with rows of which no coordinates are known; give init by name, such as 'pca'"
            )
        if has_gaps(first.table):
            refuse_empty_columns(first.table, getattr(self, "feature_names_in_", None))
        job = self._assemble(first.table, first.weight, None, first.errors)
        if not column_variances(job.rows).any():
            raise InvalidDataError(
                f"the first {first.table.shape[0]} rows are all the same and say nothing of the scale of the data; "
                "begin with rows that differ, or gather more of them: trainer=Online(start=…)"
            )
        self._train(job, self._begun(job, None), TRAINERS["batch"])
        if others.table.shape[0]:
            self._go_on(others, clock)

    def _go_on(self, given: Rest, clock: float) -> None:
        """One more step from what is remembered."""
        memory = self.memory_
        if memory is None:
            raise InvalidDataError(
                "this model is of a file that an earlier version wrote, without the sums from which training could go "
                "on; fit it again"
            )
        rows = replace(self._rows(given.table, given.errors), weight=given.weight, gaps=has_gaps(given.table))
        self._warn_of_drift(given)
        model = gtm.GTMModel(*_parts(self._with_prior_found()))
        statistics = memory.statistics
        if memory.gaps or rows.gaps or rows.errors is not None:
            model, statistics = replace(model, noise=model.noise.with_gaps()), with_gaps(statistics)
        stream = Stream(self._parameters(), statistics, memory.seen)
        self._take(Job(model, rows, self.basis_), stream, clock)

    def _take(self, job: Job, stream: Stream, clock: float) -> None:
        """Steps from a stream on, and what they leave behind."""
        online, history = self._online(), self.history_
        after, score = after_blocks(job.model, in_blocks(job.rows, online.unit), stream, online)
        entry = {name: values[-1] for name, values in history.items()}
        entry |= score.measured(job.model, after.parameters, after.statistics.total)
        entry["seconds"] = history["seconds"][-1] + perf_counter() - clock
        self._set(self._attributes(job, after.parameters))
        self.node_mass_ = node_masses(after.statistics)
        self.memory_ = remembered(job.model, after.statistics, after.seen)
        self.history_ = {name: [*values, float(entry[name])][-_HISTORY:] for name, values in history.items()}
        self.n_iter_, self.converged_, self.stop_reason_ = self.n_iter_ + 1, False, StopReason.OPEN

    def _found(self, job: Job, state: Any) -> dict[str, Any]:
        found = super()._found(job, state)
        return found | {"memory_": remembered(found["_model"], state.statistics, state.statistics.total)}

    def _warn_of_drift(self, given: Rest) -> None:
        """Rows far from where the stream began lose digits: all is added up about that place."""
        moved = self._middle(given.table, given.weight) - self.offset_
        lost = float(np.finfo(given.table.dtype).eps * (moved @ moved) * self._parameters().level)
        if lost > _ROUNDING:
            warn_caller(
                f"rows lie {np.linalg.norm(moved):.3g} from offset_, where this stream began, which is so far beside "
                f"the noise that rounding in {given.table.dtype} shows; begin a new model, or use float64",
                DegenerateWarning,
            )

    def _kept_spread(self) -> Spread:
        if self.memory_ is None:
            return super()._kept_spread()
        if not (isinstance(self.memory_, Memory) and self.memory_.sound(self.n_features_in_)):
            words = "the model in the file does not fit together: it needs a memory with floors above zero"
            raise CorruptModelFileError(f"{words}, one for each column")
        return self.memory_.spread

    def _restore(self) -> None:
        super()._restore()
        memory = self.memory_
        if memory is None:
            return
        if isinstance(self._model.penalty, ProcessPrior):
            self._model = replace(self._model, penalty=replace(self._model.penalty, freedom=memory.freedom))
        model = replace(self._model, noise=self._model.noise.with_gaps()) if memory.gaps else self._model
        if not memory.fits(model, self._parameters()):
            raise CorruptModelFileError("the model in the file does not fit together: it needs sums of its own noise")

    def __sklearn_is_fitted__(self) -> bool:
        gathered = sum(each.table.shape[0] for each in getattr(self, "_gathered_", ()))
        if gathered:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: partial_fit has gathered {gathered} rows of the "
                f"{self._online().start} that it begins with; pass it more of them, or set trainer=Online(start=…)"
            )
        return super().__sklearn_is_fitted__()


def _parts(model: gtm.GTMModel) -> tuple[Any, Any, Any]:
    return model.surface, model.noise, model.penalty


def _cut(rest: Rest, n: int) -> tuple[Rest, Rest]:
    """The first n rows, and those after them."""
    first, others = (
        Rest(rest.table[part], *(None if each is None else each[part] for each in (rest.weight, rest.errors)))
        for part in (slice(n), slice(n, None))
    )
    return first, others


def _copied(rest: Rest) -> Rest:
    weight, errors = (None if each is None else each.copy() for each in (rest.weight, rest.errors))
    return Rest(rest.table.copy(), weight, errors)


def _joined(gathered: list[Rest]) -> Rest:
    """All rows that were gathered as one table."""
    if len(gathered) == 1:
        return gathered[0]
    table = np.concatenate([dense(each.table) for each in gathered])
    weight = errors = None
    if any(each.weight is not None for each in gathered):
        weight = np.concatenate([np.ones(len(each.table)) if each.weight is None else each.weight for each in gathered])
    if any(each.errors is not None for each in gathered):
        errors = np.concatenate([_errors_of(each) for each in gathered])
    return Rest(table, weight, errors)


def _errors_of(rest: Rest) -> FloatArray:
    """(n, D) errors of all cells, nil where none are known."""
    known = np.zeros((1, 1)) if rest.errors is None else rest.errors
    return np.broadcast_to(known, rest.table.shape)
