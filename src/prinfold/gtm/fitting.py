"""Training of every member of the GTM family: the rows that count, the job, its start, and the loop of EM."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.basis_maps.bases import Basis, default_regularization
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.gaussian_process import GaussianProcess
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.gtm import model as gtm
from prinfold.gtm.gaussian_process_training import tune_process
from prinfold.gtm.lattice_refinement import finer_space
from prinfold.gtm.noise.factor_starts import with_directions
from prinfold.gtm.noise.protocol import AnyNoise, Parameters
from prinfold.gtm.penalties import ConstantPenalty, Penalty, PriorPenalty
from prinfold.gtm.starts.first_parameters import (
    STARTS,
    Contest,
    Start,
    furthest_start,
    given_start,
    in_units,
    warmed_up,
)
from prinfold.gtm.starts.trials import CLOSE
from prinfold.gtm.trainers.blockwise import refuse_open_process, with_final_pass
from prinfold.gtm.trainers.trainers import Trainer
from prinfold.gtm.warnings import is_troubled
from prinfold.loops import Highest, Last, Outcome, StopReason, go_on, run_fixed_point
from prinfold.rows.rows import Rows, cut_for
from prinfold.validation.settings import as_generator
from prinfold.validation.tables import check_latent, rows_with_weight

_MOST_NODES_PER_ROW = 6
"""Nodes for each row up to which they are doubled: so few rows cannot tell more of them apart."""

_MOST_DOUBLINGS, _FINER_ITERATIONS = 2, 16
"""How often nodes are doubled, and iterations that training goes on for each time: the surface is in place, and the
noise soon follows."""

_TRIED_TWICE_BELOW = 2**22
"""Rows × nodes from which a second training would take too long: some 5000 rows on the usual nodes."""

FEWEST_ROWS = 2

Loop = Callable[..., Outcome[Any]]
"""Training to the end, given the settings of a loop: ``max_iter``, ``tol`` and ``listeners``."""


class TrainingJob(NamedTuple):
    """A training job: the model that stays fixed, the rows, the recipe of its basis, and what was found beforehand.

    ``begin`` is how it begins where that is left open.
    """

    model: gtm.GTMModel
    rows: Rows
    basis: Basis
    selection: Any = None
    begin: Start = furthest_start


# ---------------------------------------------------------------------------------------------------- the table


def rows_that_count(table: FloatArray, weight: FloatArray | None, *, gaps: bool) -> IntArray | None:
    """Numbers of the rows that have a weight and of which something was measured, or None for all."""
    weighty = rows_with_weight(weight, min_rows=FEWEST_ROWS)
    if not gaps:
        return weighty
    seen = ~np.isnan(table).all(axis=1)
    seen &= True if weight is None else weight > 0
    kept = np.flatnonzero(seen)
    if len(kept) < FEWEST_ROWS:
        raise InvalidDataError(
            f"only {len(kept)} row(s) have a value and a weight, but at least {FEWEST_ROWS} are needed"
        )
    return None if seen.all() else kept


def given_places(init: Any, n_rows: int) -> FloatArray | None:
    """Latent coordinates that were given for the rows to begin with."""
    if isinstance(init, str):
        return None
    if np.shape(init)[:1] != (n_rows,):
        n = len(init) if np.ndim(init) else 1
        raise InvalidDataError(f"init has {n} latent coordinates for {n_rows} rows; give one per row")
    return np.asarray(init)


# -------------------------------------------------------------------------------------------- penalty and start


def choose_penalty(regularization: float | None, prior_precision: float | None, basis: Any) -> Penalty:
    """A constant λ, or the precision α of a prior where that is given."""
    if prior_precision is None:
        return ConstantPenalty(default_regularization(basis) if regularization is None else float(regularization))
    if regularization is not None:
        raise InvalidParameterError("give either regularization (constant λ) or prior_precision (α), not both")
    return PriorPenalty(float(prior_precision))


def choose_start(init: Any, job: TrainingJob, places: FloatArray | None) -> Start:
    """The start by name, or from latent coordinates that were given."""
    if places is None:
        return job.begin if init == "auto" else STARTS[init]
    latent = job.model.surface.latent
    return partial(given_start, latent.domain.retract(check_latent(places, latent.n_columns)))


def suit_noise(start: Start, noise: AnyNoise) -> Start:
    """The start with the directions and the units of columns that the noise has, if any."""
    factors, columns = noise.capabilities.factors, noise.capabilities.columns
    if factors is not None and factors.directions is not None:
        start = with_directions(start, factors.directions)
    return start if columns is None or columns.units is None else in_units(start, columns.units)


def initial_parameters(job: TrainingJob, start: Start, max_iter: int, random_state: RandomState) -> Parameters:
    """Parameters that training begins with."""
    begin = warmed_up(suit_noise(start, job.model.noise), max_iter)
    return begin(job.model, job.rows.sample, as_generator(random_state))


# ------------------------------------------------------------------------------------------------------ the loop


class TrainingWay(NamedTuple):
    """How a job is trained; one that was interrupted before it began is ``stopped``, and ends at once."""

    trainer: Trainer
    relaxation: float
    tol: float
    random_state: RandomState
    stopped: bool = False


def em_loop(way: TrainingWay, job: TrainingJob, start: Parameters) -> Loop:
    """Training of a job from a start."""
    rows = job.rows
    model: Any = way.trainer.training(job.model, way.random_state)
    if isinstance(job.basis, GaussianProcess):
        model = tune_process(model, job.basis, way.tol)
        refuse_open_process(model)
    run = partial(
        run_fixed_point,
        lambda: model.begin(rows, start),
        _interrupt if way.stopped else lambda state: model.step(rows, state, way.relaxation),
        model.measure,
        rule=Highest() if model.monotone else Last(),
    )
    return with_final_pass(run, model, rows)


def refining_loop(
    jobs: list[TrainingJob],
    start: Parameters,
    loop_of: Callable[[TrainingJob, Parameters], Loop],
    refine: Callable[[TrainingJob, Outcome[Any]], TrainingJob | None],
) -> Loop:
    """Training that goes on with more nodes where these turn out to be far apart; each job is added to ``jobs``."""

    def run(**settings: Any) -> Outcome[Any]:
        outcome = loop_of(jobs[-1], start)(**settings)
        for _ in range(_MOST_DOUBLINGS):
            finer = refine(jobs[-1], outcome)
            if finer is None:
                break
            jobs.append(finer)
            outcome = go_on(outcome, loop_of(finer, outcome.state.parameters), more=_FINER_ITERATIONS, **settings)
        return outcome

    return run


def finer_job(
    job: TrainingJob, outcome: Outcome[Any], room: int, remake: Callable[[BasisMap, Rows], gtm.GTMModel]
) -> TrainingJob | None:
    """The job on a finer space, where training has settled and found the nodes to be far apart."""
    rows, state = job.rows, outcome.state
    if not job.model.can_refine(state) or not rows.at_hand or outcome.reason is not StopReason.CONVERGED:
        return None
    finer = finer_space(job.model, state.parameters, state.statistics.mass)
    if finer is None or finer.n_nodes > _MOST_NODES_PER_ROW * rows.n_rows:
        return None
    model = remake(BasisMap(finer, job.basis.bind(finer)), rows)
    return job._replace(model=model, rows=cut_for(rows, room * finer.n_nodes))


def try_second_start(estimator: Any, job: TrainingJob) -> None:
    """Train from the start that came second too, where the map is folded or many-peaked, and keep the better.

    Not so of large tables, which would take as long again.
    """
    begin, rows = job.begin, job.rows
    if not isinstance(begin, Contest) or begin.second is None or not rows.at_hand:
        return
    if rows.n_rows * job.model.surface.latent.n_nodes >= _TRIED_TWICE_BELOW:
        return
    if estimator.stop_reason_ is StopReason.INTERRUPTED or not is_troubled(estimator, rows):
        return
    other = copy(estimator)
    other._skl_callbacks = []  # which hear of one training
    other._train(job, other._initial_parameters(job._replace(begin=begin.runner_up()), None), finer=True)
    # Better is what is likelier, or nearly as likely and not troubled.
    gain = other.history_["objective"][-1] - estimator.history_["objective"][-1]
    if gain > 0 or (gain > -CLOSE and not is_troubled(other, rows)):
        estimator._set({name: value for name, value in vars(other).items() if name != "_skl_callbacks"})


def _interrupt(state: Any) -> Any:
    """A step for training that was interrupted before it began."""
    raise KeyboardInterrupt
