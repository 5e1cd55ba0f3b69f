"""How every member of the GTM family is trained: checks, start, EM, what a fit leaves and what it warns of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.callbacks import with_callbacks
from prinfold.base.starting_points import (
    column_variances,
    observed_mean,
    smallest_noise,
    smallest_noises,
    weighted_mean,
)
from prinfold.basis_maps.bases import Basis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import LATENTS, make_basis, make_latent
from prinfold.exceptions import (
    CorruptModelFileError,
    InvalidDataError,
    InvalidParameterError,
)
from prinfold.gtm import model as gtm
from prinfold.gtm.block_input import surveyed
from prinfold.gtm.gaussian_process_training import TunedState, in_training, with_process_prior
from prinfold.gtm.lattice_refinement import finer_space
from prinfold.gtm.noise.factor_starts import with_directions
from prinfold.gtm.noise.per_cell import node_masses
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.noise.recipes import Spread, spread_of_model
from prinfold.gtm.penalties import ConstantPenalty, Penalty, PriorPenalty
from prinfold.gtm.starts.first_parameters import (
    STARTS,
    Contest,
    InterruptedStart,
    Start,
    furthest_start,
    given_start,
    in_units,
    warmed_up,
)
from prinfold.gtm.starts.trials import CLOSE
from prinfold.gtm.trainers.blockwise import ending_true, refuse_open_process
from prinfold.gtm.trainers.stream import Survey, stream_of
from prinfold.gtm.trainers.trainers import TRAINERS, Trainer
from prinfold.gtm.warnings import CautiousFamily
from prinfold.latent import LatentSpace
from prinfold.loops import Highest, Last, Outcome, StopReason, go_on, run_fixed_point
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows, as_rows, cut_for
from prinfold.validation.refusals import refuse_empty_columns
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    axis_counts,
    check_parameters,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import check_errors, check_latent, check_table, check_weight, has_gaps, weighty_rows

_REGULARIZATION = 0.1
"""Constant λ by default: with ``width=1`` it held up best over simulated shapes and real tables alike."""

_MOST_DOUBLINGS, _FINER_ITERATIONS = 2, 16
"""How often nodes are doubled, and iterations that training goes on for each time: the surface is in place, and the
noise soon follows."""

FEWEST_ROWS = 2

_TRIED_TWICE_BELOW = 2**22
"""Rows × nodes from which a second training would take too long: some 5000 rows on the usual nodes."""

_MOST_FEATURES = 2**28
"""Nodes × basis functions beyond which no model was ever trained."""


class Job(NamedTuple):
    """A training job: the model that stays fixed, the rows, the recipe of its basis, and what was found beforehand.

    ``begin`` is how it begins where that is left open.
    """

    model: gtm.GTMModel
    rows: Rows
    basis: Basis
    selection: Any = None
    begin: Start = furthest_start


class TrainedFamily(CautiousFamily):
    """A member of the family that is trained by EM; it says what its model is and what is to be kept of its noise."""

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": integer(1, 32),
        "nodes": nothing | axis_counts | instance_of(LatentSpace, np.ndarray, words="an array or latent space"),
        "basis": nothing | axis_counts | Constraint(lambda v: hasattr(v, "bind"), "a basis object"),
        "width": real(0, above=True),
        "latent": nothing | one_of(LATENTS) | instance_of(LatentSpace, words="a latent space"),
        "regularization": nothing | real(0),
        "prior_precision": nothing | real(0),
        "penalise_bias": flag,
        "noise_floor": real(0, above=True),
        "init": one_of(STARTS) | instance_of(np.ndarray, words="an array of latent coordinates"),
        "max_iter": integer(0),
        "tol": real(0),
        "relaxation": real(1),
        "random_state": random_state,
        "verbose": integer(0) | flag,
    }

    # ---------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> Self:
        """Fit the surface by expectation maximisation.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
            Rows of numbers; a frame, Arrow table, array, memory map or sparse matrix, which is filled in block by
            block only. Cells that are missing are NaN. :class:`~prinfold.Blocks` are read once for each iteration,
            and never held.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows; a weight of 2 is the same as the row given twice.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations with which the cells, or all cells of a row, are known to have been measured; the
            noise of the model comes on top.

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        self._forget()
        if isinstance(X, Blocks):
            self._warn(self._learn_blocks(X, sample_weight, errors))
            return self
        table = self._training_table(X, sample_weight)
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        places = self._places(table.shape[0])
        kept = self._rows_that_count(table, weight)
        if kept is not None and not isinstance(table, np.memmap):  # picking rows of a map would read them all
            table, (weight, places, known) = table[kept], (_chosen(each, kept) for each in (weight, places, known))
        if has_gaps(table):
            refuse_empty_columns(table, getattr(self, "feature_names_in_", None))
        self._warn(self._learn(table, weight, places, known))
        return self

    def _training_table(self, X: Any, sample_weight: Any) -> FloatArray:
        """The rows to be fitted, checked."""
        accepted = {"accept_sparse": self._accept_sparse, "accept_missing": self._accept_missing}
        return check_table(self, X, reset=True, min_rows=FEWEST_ROWS, **accepted)

    def _rows_that_count(self, table: FloatArray, weight: FloatArray | None) -> IntArray | None:
        """Rows that have a weight and of which something was measured, or None for all."""
        weighty = weighty_rows(weight, min_rows=FEWEST_ROWS)
        if not has_gaps(table):
            return weighty
        self._warn_of_the_unseen(table)
        seen = ~np.isnan(table).all(axis=1)
        seen &= True if weight is None else weight > 0
        kept = np.flatnonzero(seen)
        if len(kept) < FEWEST_ROWS:
            raise InvalidDataError(
                f"only {len(kept)} row(s) have a value and a weight, but at least {FEWEST_ROWS} are needed"
            )
        return None if seen.all() else kept

    def _learn(
        self,
        table: FloatArray,
        weight: FloatArray | None,
        places: FloatArray | None,
        errors: FloatArray | None = None,
    ) -> Rows:
        """Train on rows that have been checked; ``places`` are their latent coordinates to begin with, if given."""
        job = self._assemble(table, weight, places, errors)
        self._train_from(job, places)
        return job.rows

    def _learn_blocks(self, blocks: Blocks, sample_weight: Any, errors: Any) -> Rows:
        """Train on rows that are read once for each iteration; returns a sample of them."""
        job = self._assemble_blocks(surveyed(self, blocks, sample_weight, errors, FEWEST_ROWS))
        self._train_from(job, None)
        return job.rows.sample

    def _assemble_blocks(self, found: Survey) -> Job:
        latent = make_latent(self.latent, self.nodes, self.n_components, found.total)
        return self._job(latent, self._settled(stream_of(found, self._room * latent.n_nodes)))

    def _train_from(self, job: Job, places: FloatArray | None) -> None:
        """Train from the start; where that was interrupted, what it had come to is all that there will be."""
        self._warn_of_size(job)
        try:
            start, stopped = self._begun(job, places), False
        except InterruptedStart as caught:
            start, stopped = caught.parameters, True
        self._train(job, start, stopped=stopped, finer=True)
        self._try_another_start(job)

    def _try_another_start(self, job: Job) -> None:
        """Train from the start that came second too, where the map is folded or many-peaked, and keep the better.

        Not so of large tables, which would take as long again.
        """
        begin, size = job.begin, job.rows.n_rows * job.model.surface.latent.n_nodes
        if not isinstance(begin, Contest) or begin.second is None or size >= _TRIED_TWICE_BELOW or not job.rows.at_hand:
            return
        if self.stop_reason_ is StopReason.INTERRUPTED or not self._is_troubled(job.rows):
            return
        other = copy(self)
        other._skl_callbacks = []  # which hear of one training
        other._train(job, other._begun(job._replace(begin=begin.runner_up()), None), finer=True)
        if self._gives_way_to(other, job.rows):
            self._set({name: value for name, value in vars(other).items() if name != "_skl_callbacks"})

    def _gives_way_to(self, other: Self, rows: Rows) -> bool:
        """Whether another map of the same rows is better: likelier, or nearly as likely and not troubled."""
        gain = other.history_["objective"][-1] - self.history_["objective"][-1]
        return bool(gain > 0 or (gain > -CLOSE and not other._is_troubled(rows)))

    def _begun(self, job: Job, places: FloatArray | None) -> Parameters:
        """Parameters that training begins with."""
        noise = job.model.noise
        begin = with_directions(self._start(job, places), noise)
        start = warmed_up(in_units(begin, getattr(noise, "scale", None)), self.max_iter)
        return start(job.model, job.rows.sample, as_generator(self.random_state))

    def _assemble(
        self,
        table: FloatArray,
        weight: FloatArray | None,
        places: FloatArray | None,
        errors: FloatArray | None = None,
    ) -> Job:
        """What stays fixed while the surface is trained: rows, map, noise and penalty."""
        offset = self._middle(table, weight)
        total = table.shape[0] if weight is None else float(weight.sum())
        latent = make_latent(self.latent, self.nodes, self.n_components, total)
        rows = as_rows(table, offset, weight, width=self._room * latent.n_nodes, gaps=has_gaps(table), errors=errors)
        return self._job(latent, self._settled(rows))

    def _job(self, latent: LatentSpace, rows: Rows) -> Job:
        """A latent space and rows with the map, noise and penalty that go with them."""
        basis = make_basis(self.basis, self.width, self.penalise_bias, latent)
        model = self._for(rows, self._make_model(BasisMap(latent, basis.bind(latent)), self._spread(rows)))
        penalised = self.regularization is not None or self.prior_precision not in (None, "evidence")
        unit = float(column_variances(rows).mean())
        return Job(with_process_prior(model, basis, unit, penalised=penalised), rows, basis, begin=Contest())

    def _settled(self, rows: Rows) -> Rows:
        """The rows about an origin that suits the noise."""
        return rows

    def _middle(self, table: FloatArray, weight: FloatArray | None) -> FloatArray:
        """(D,) what is taken off the rows first."""
        return (observed_mean if has_gaps(table) else weighted_mean)(table, weight)

    def _spread(self, rows: Rows) -> Spread:
        scale = np.sqrt(column_variances(rows))
        return Spread(smallest_noise(rows, self.noise_floor), smallest_noises(rows, self.noise_floor), scale)

    @abstractmethod
    def _make_model(self, surface: BasisMap, spread: Spread) -> gtm.GTMModel:
        """The model on a surface in data of that spread."""

    def _remake_model(self, surface: BasisMap, spread: Spread) -> gtm.GTMModel:
        """The model of what was fitted, on reading a file."""
        return self._make_model(surface, spread)

    def _attributes(self, job: Job, parameters: Parameters) -> dict[str, Any]:
        """What a fitted model consists of."""
        return {
            "latent_": job.model.surface.latent,
            "basis_": job.basis,
            "offset_": job.rows.offset,
            "weights_": parameters.weights,
            "noise_variance_": 1.0 / parameters.precision,
            "n_features_in_": job.rows.table.shape[1],
            "_model": job.model,
        }

    def _penalty(self) -> Penalty:
        if self.prior_precision is None:
            usual = getattr(self.basis, "default_regularization", _REGULARIZATION)
            return ConstantPenalty(float(usual if self.regularization is None else self.regularization))
        if self.regularization is not None:
            raise InvalidParameterError("give either regularization (constant λ) or prior_precision (α), not both")
        return PriorPenalty(float(self.prior_precision))

    def _places(self, n_rows: int) -> FloatArray | None:
        """Latent coordinates that were given for the rows to begin with."""
        if isinstance(self.init, str):
            return None
        if np.shape(self.init)[:1] != (n_rows,):
            n = len(self.init) if np.ndim(self.init) else 1
            raise InvalidDataError(f"init has {n} latent coordinates for {n_rows} rows; give one per row")
        return np.asarray(self.init)

    def _start(self, job: Job, places: FloatArray | None) -> Start:
        latent = job.model.surface.latent
        if places is None:
            return job.begin if self.init == "auto" else STARTS[self.init]
        return partial(given_start, latent.domain.retract(check_latent(places, latent.n_columns)))

    def _train(
        self,
        job: Job,
        start: Parameters,
        trainer: Trainer | None = None,
        stopped: bool = False,
        finer: bool = False,
    ) -> None:
        """Train from a start, and with ``finer`` go on with more nodes where these turn out to be far apart."""
        present = [job]  # what is being trained

        def loop(job: Job, start: Parameters) -> Callable[..., Outcome[Any]]:
            rows = job.rows
            model = in_training(
                (trainer or self._trainer()).training(job.model, self.random_state), job.basis, self.tol
            )
            refuse_open_process(model)
            found = partial(
                run_fixed_point,
                lambda: model.begin(rows, start),
                _interrupt if stopped else lambda state: model.step(rows, state, self.relaxation),
                model.measure,
                rule=Highest() if model.monotone else Last(),
            )
            return ending_true(found, model, rows)

        def whole(**settings: Any) -> Outcome[Any]:
            outcome = loop(job, start)(**settings)
            for _ in range(_MOST_DOUBLINGS if finer else 0):
                more = self._with_more_nodes(present[0], outcome)
                if more is None:
                    break
                present[0] = more
                outcome = go_on(outcome, loop(more, outcome.state.parameters), more=_FINER_ITERATIONS, **settings)
            return outcome

        self._train_with_callbacks(job.rows.table, lambda state: self._found(present[0], state), whole)

    def _can_refine(self, model: gtm.GTMModel, state: Any) -> bool:
        """Whether training can go on with more nodes: no parameter belongs to a single one of them."""
        return type(model) is gtm.GTMModel and isinstance(state, gtm.State)

    def _with_more_nodes(self, job: Job, outcome: Outcome[Any]) -> Job | None:
        """The job on a finer space, where nodes were not asked for and training has found them to be far apart."""
        rows = job.rows
        asked = self.nodes is not None or isinstance(self.latent, LatentSpace)
        plain = self._can_refine(job.model, outcome.state) and rows.at_hand
        settled = outcome.reason is StopReason.CONVERGED and outcome.n_iter < self.max_iter
        if asked or not plain or not settled:
            return None
        state = outcome.state
        finer = finer_space(job.model, state.parameters, state.statistics.mass)
        if finer is None:
            return None
        surface = BasisMap(finer, job.basis.bind(finer))
        model = self._for(rows, self._make_model(surface, self._spread(rows)))
        return job._replace(model=model, rows=cut_for(rows, self._room * finer.n_nodes))

    def _trainer(self) -> Trainer:
        """How the model is trained."""
        return TRAINERS["batch"]

    def _found(self, job: Job, state: Any) -> dict[str, Any]:
        """What training has come to, where the map may have changed with the parameters."""
        if isinstance(state, TunedState):
            job = job._replace(model=state.model, basis=state.process)
        return self._attributes(job, state.parameters) | {"node_mass_": node_masses(state.statistics)}

    def _restore(self) -> None:
        """Rebuild what a file leaves out, and refuse parts that do not fit together."""
        check_parameters(self, self._constraints)
        surface = BasisMap(self.latent_, self.basis_.bind(self.latent_))
        shape = (len(surface.penalty_mask), self._n_predictors())
        names = getattr(self, "feature_names_in_", None)
        sound = {
            f"weights of shape {shape}": _is_real(self.weights_) and self.weights_.shape == shape,
            f"an offset of shape ({self.n_features_in_},)": _is_real(self.offset_)
            and self.offset_.shape == (self.n_features_in_,),
            **self._sound_noise(),
            "a mass of at least zero for each node": _are_masses(self.node_mass_, self.latent_.n_nodes, shape[1]),
            "a name for each column": names is None or len(names) == self.n_features_in_,
            "a reason for stopping": isinstance(self.stop_reason_, StopReason),
            "a history no longer than its iterations": _is_history(self.history_, self.n_iter_ + 1),
            "nodes and basis functions that fit in memory": self.latent_.n_nodes * shape[0] <= _MOST_FEATURES,
        }
        for wanted, holds in sound.items():
            if not holds:
                raise CorruptModelFileError(f"the model in the file does not fit together: it needs {wanted}")
        if not np.isfinite(surface.nodes(self.weights_)).all():
            raise CorruptModelFileError("the model in the file does not fit together: its surface is not finite")
        model = self._remake_model(surface, self._kept_spread())
        variance = getattr(self.basis_, "variance", None)
        self._model = with_process_prior(model, self.basis_, 1.0, penalised=variance is None)

    def _kept_spread(self) -> Spread:
        """How far the data spread of which a file knows no more than the model."""
        return spread_of_model(float(np.min(self.noise_variance_)), self.n_features_in_)

    def _n_predictors(self) -> int:
        """How many columns the weights have."""
        return int(self.n_features_in_)

    def _sound_noise(self) -> dict[str, bool]:
        """What the noise in a file must be like, and whether it is."""
        variance = self.noise_variance_
        return {"a finite noise variance above zero": type(variance) is float and 0 < variance < np.inf}


def _interrupt(state: Any) -> Any:
    """A step for training that was interrupted before it began."""
    raise KeyboardInterrupt


def _are_masses(mass: Any, n_nodes: int, n_columns: int) -> bool:
    """Whether masses from a file will do; older files have none."""
    shapes = ((n_nodes,), (n_nodes, n_columns))
    return mass is None or (_is_real(mass) and mass.shape in shapes and bool((mass >= 0).all()))


def _is_history(history: Any, longest: int) -> bool:
    """Whether all lists are of one length; of a stream only what came last is kept."""
    lengths = {len(each) for each in history.values()}
    return len(lengths) == 1 and 0 < min(lengths) <= longest


def _chosen(each: FloatArray | None, kept: IntArray) -> FloatArray | None:
    return None if each is None else each[kept]


def _is_real(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"
