"""Training of every member of the GTM family: the rows that count, the job, its start, and the loop of EM (thesis 3.2).

Pure functions that follow a :class:`~prinfold.gtm.recipe.Recipe`. Begin with ``fit_map``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import column_variances, observed_mean, smallest_noises, weighted_mean
from prinfold.basis_maps.bases import carries_prior, default_regularization
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import make_basis, make_latent
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError
from prinfold.gtm.gaussian_process_training import with_process
from prinfold.gtm.lattice_refinement import finer_space
from prinfold.gtm.model import FittedState, GTMModel
from prinfold.gtm.noise.protocol import Parameters, node_masses, noise_for_gaps
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.gtm.penalties import ConstantPenalty, Penalty, PriorPenalty
from prinfold.gtm.recipe import FittedMap, Loop, MakeNoise, Recipe, Run, TrainingJob
from prinfold.gtm.starts.first_parameters import (
    STARTS,
    BestStart,
    InterruptedStart,
    Start,
    given_start,
    pca_start,
    warm_start,
)
from prinfold.gtm.trainers.blockwise import with_final_pass
from prinfold.gtm.trainers.trainers import BATCH, Trainer
from prinfold.gtm.warnings import TIE_NATS, MapOnRows, about_size, is_folded_or_many_peaked, node_folds, warn_all
from prinfold.latent import LatentSpace
from prinfold.loops import Last, Outcome, StoppingRule, StopReason, go_on, run_fixed_point
from prinfold.rows.rows import FEWEST_BLOCK_ROWS, Rows, as_rows, cut_for
from prinfold.rows.streams import Survey, stream_of
from prinfold.validation.memory_limits import require_memory
from prinfold.validation.settings import as_generator
from prinfold.validation.tables import has_gaps, rows_with_weight

_FINER_ITERATIONS = 16
"""Iterations that training goes on for each time nodes are doubled: the surface is in place, and the noise soon
follows."""

_SECOND_START_BELOW = 2**22
"""Rows × nodes from which on no second start is trained, which takes too long: some 5000 rows on the usual nodes."""

FEWEST_ROWS = 2

_MOST_DOUBLINGS = 2
"""How often nodes are doubled, however few rows there are. A limit of six nodes for each row was in the way in 29 of
351 trials with 20 to 300 rows (caps, saddles and corkscrews). Without it the surface came nearer to the truth in 25 of
them, by 9 % in the median, and rows held out were likelier in 28, by 0.24 nats."""


# --------------------------------------------------------------------------------------------- the plain recipe


def plain_recipe(
    settings: Any, noise: MakeNoise, penalty: Penalty, places: FloatArray | None, trainer: Trainer = BATCH, **parts: Any
) -> Recipe:
    """The recipe that every member of the family begins with, by its settings, with ``parts`` of a member's own.

    Nodes may be doubled where their number was left open and the trainer sees all rows at once.
    """
    nodes_asked_for = settings.nodes is not None or isinstance(settings.latent, LatentSpace)
    usual = Recipe(
        latent=partial(make_latent, settings.latent, settings.nodes, settings.n_components),
        basis=partial(make_basis, settings.basis, settings.width, settings.penalize_bias),
        center=table_mean,
        spread=partial(column_spread, noise_floor=settings.noise_floor),
        noise=noise,
        penalty=penalty,
        **choose_start(settings.init if places is None else places, open_basis=settings.basis is None),
        begin=initial_parameters,
        fit=fit_map,
        attributes=map_attributes,
        row_weights=given_weights,
        folds=node_folds,
        max_iter=settings.max_iter,
        tol=settings.tol,
        relaxation=settings.relaxation,
        random_state=settings.random_state,
        trainer=trainer,
        numbers_per_node=settings._numbers_per_node,
        most_doublings=_MOST_DOUBLINGS if trainer.whole and not nodes_asked_for else 0,
    )
    recipe = replace(usual, **parts)
    if not carries_prior(settings.basis):
        return recipe
    return with_process(recipe, settings.basis, settings.regularization, settings.prior_precision)


def choose_penalty(settings: Any) -> Penalty:
    """A constant λ, or the precision α of a prior where that is given."""
    given, prior_precision = settings.regularization, settings.prior_precision
    if prior_precision is None:
        return ConstantPenalty(default_regularization(settings.basis) if given is None else float(given))
    if given is not None:
        raise InvalidParameterError("give either regularization (constant λ) or prior_precision (α), not both")
    return PriorPenalty(float(prior_precision))


def choose_start(init: Any, *, open_basis: bool = False) -> dict[str, Any]:
    """The start by name, or from latent coordinates that were given; and the second where several are compared.

    The comparison also finds out whether rows need more basis functions, where their number is open.
    """
    if not isinstance(init, str):
        return {"start": partial(given_start, init)}
    if init != "auto":
        return {"start": STARTS.get(init, pca_start)}  # a member may have a start of its own, and begin with that
    contest = BestStart()
    steps = (contest.enough_functions,) if open_basis else ()
    return {"start": contest, "second_start": contest.runner_up, "basis_steps": steps}


def table_mean(table: FloatArray, weight: FloatArray | None, gaps: bool) -> FloatArray:
    """(D,) mean of what was measured of each column."""
    return (observed_mean if gaps else weighted_mean)(table, weight)


def column_spread(rows: Rows, noise_floor: float) -> ColumnSpread:
    """Spread of the columns of rows, and the least noise that they may have."""
    variances = column_variances(rows)
    return ColumnSpread(*smallest_noises(rows, variances, noise_floor), np.sqrt(variances))


def given_weights(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray | None:
    """Weights of the rows as they were given."""
    return rows.weight


def map_attributes(job: TrainingJob, state: FittedState) -> dict[str, Any]:
    """Fitted attributes of any member of the family."""
    return {
        "latent_": job.model.surface.latent,
        "basis_": job.basis,
        "offset_": job.rows.offset,
        "weights_": state.parameters.weights,
        "noise_variance_": 1.0 / state.parameters.precision,
        "n_features_in_": job.rows.table.shape[1],
        "_model": job.model,
        "node_mass_": node_masses(state.statistics),
    }


def noise_attributes(job: TrainingJob, state: FittedState) -> dict[str, Any]:
    """Fitted attributes of a member whose noise has one level, with all parameters of the noise."""
    noise = {"noise_variance_": 1.0 / state.parameters.level, "noise_parameters_": state.parameters.to_arrays()}
    return map_attributes(job, state) | noise


# ---------------------------------------------------------------------------------------------------- the table


class GivenRows(NamedTuple):
    """A table with the weights and errors of its rows, and where they begin, as far as those are given.

    ``places`` are latent coordinates, or memberships of several maps.
    """

    table: FloatArray
    weight: FloatArray | None = None
    errors: FloatArray | None = None
    places: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.table.shape[0])

    def choose(self, chosen: Any) -> GivenRows:
        """Some of the rows."""
        return GivenRows(*(None if each is None else each[chosen] for each in self))  # type: ignore[arg-type]


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


# ------------------------------------------------------------------------------------------------------ the job


def assemble(
    recipe: Recipe, table: FloatArray, weight: FloatArray | None = None, errors: FloatArray | None = None
) -> TrainingJob:
    """Put together the parts of a fit that training does not change: rows, map, noise and penalty."""
    total = table.shape[0] if weight is None else float(weight.sum())
    gaps, latent = has_gaps(table), recipe.latent(total)
    width, offset = recipe.numbers_per_node * latent.n_nodes, recipe.center(table, weight, gaps)
    return make_job(recipe, latent, as_rows(table, offset, weight, width=width, gaps=gaps, errors=errors))


def assemble_blocks(recipe: Recipe, found: Survey) -> TrainingJob:
    """Put together rows that are read once for each iteration, after a first pass, with map, noise and penalty."""
    latent = recipe.latent(found.found.total)
    return make_job(recipe, latent, stream_of(found, recipe.numbers_per_node * latent.n_nodes))


def make_job(recipe: Recipe, latent: LatentSpace, rows: Rows) -> TrainingJob:
    """A latent space and rows with the map, noise and penalty that go with them."""
    rows = reduce(lambda found, change: change(found), recipe.row_steps, rows)
    basis = reduce(lambda found, change: change(found, latent, rows), recipe.basis_steps, recipe.basis(latent))
    surface = BasisMap(latent, basis.bind(latent))
    _require_room(surface, recipe.numbers_per_node, rows)
    return TrainingJob(model_on_rows(recipe, surface, rows), rows, basis)


_ARRAYS_PER_BLOCK = 3
"""Arrays of a number for each row of a block and each node, at least: distances, responsibilities, and one between."""


def _require_room(surface: BasisMap, numbers_per_node: int, rows: Rows) -> None:
    """Refuse nodes for which there is no memory: for Φ and its derivatives, and for the smallest block of rows."""
    K, M, q = surface.latent.n_nodes, len(surface.penalty_mask), surface.latent.dimension
    block = _ARRAYS_PER_BLOCK * numbers_per_node * min(rows.n_rows, FEWEST_BLOCK_ROWS)
    require_memory(
        f"a map of {K} nodes and {M} basis functions",
        float(K) * (M * (2 + q) + block),
        Advice("nodes", words="use fewer {}"),
    )


def model_on_rows(recipe: Recipe, surface: BasisMap, rows: Rows) -> GTMModel:
    """The model on a map, with the spread of the rows, a noise that takes their gaps, and the recipe's changes."""
    plain = model_for_gaps(rows, model_of_spread(recipe, surface, recipe.spread(rows)))
    return reduce(lambda model, change: change(model, rows), recipe.model_steps, plain)


def model_of_spread(recipe: Recipe, surface: BasisMap, spread: ColumnSpread) -> GTMModel:
    """The model on a map with noise for data of that spread, before any rows are looked at."""
    return recipe.make_model(surface, recipe.noise(surface, spread), recipe.penalty)


def model_for_gaps(rows: Rows, model: GTMModel) -> GTMModel:
    """The model with a noise that takes gaps, where the rows have them or errors of their own; itself otherwise."""
    return replace(model, noise=noise_for_gaps(model.noise)) if rows.gaps or rows.errors is not None else model


# ------------------------------------------------------------------------------------------------------ the fit


def fit_map(recipe: Recipe, job: TrainingJob, run: Run) -> FittedMap:
    """Train a job from its start; if that is interrupted, the parameters that it has reached are the fitted ones."""
    warn_all(about_size(job.model.surface, job.basis, job.rows.n_rows))
    try:
        start, interrupted = recipe.begin(recipe, job), False
    except InterruptedStart as caught:
        start, interrupted = caught.parameters, True
    fitted = train_map(recipe, job, start, run, interrupted=interrupted)
    if recipe.second_start is None:
        return fitted
    return _try_second_start(recipe, job, fitted, recipe.second_start(), run)


def initial_parameters(recipe: Recipe, job: TrainingJob) -> Parameters:
    """Parameters that training begins with."""
    rng = as_generator(recipe.random_state)
    return warm_start(complete_start(recipe), job.model, job.rows.sample, rng, recipe.max_iter)


def complete_start(recipe: Recipe) -> Start:
    """The start with all its changes."""
    return reduce(lambda start, change: change(start), recipe.start_steps, recipe.start)


def train_map(recipe: Recipe, job: TrainingJob, start: Parameters, run: Run, *, interrupted: bool = False) -> FittedMap:
    """Train a job from first parameters; training that was ``interrupted`` before it began ends at once."""
    jobs = [job]  # the last is the one that is being trained
    loop = _refining_loop(recipe, jobs, start, interrupted=interrupted)
    outcome = run(job.rows.table, lambda state: recipe.attributes(jobs[-1], state), loop)
    found = recipe.attributes(jobs[-1], outcome.state)
    return FittedMap(outcome, found, job.model.surface.latent.widest_spacing)


def _try_second_start(recipe: Recipe, job: TrainingJob, first: FittedMap, second: Start | None, run: Run) -> FittedMap:
    """Train from the start that came second too, where the map is folded or many-peaked, and keep the better.

    Not so of large tables, which would take as long again.
    """
    rows = job.rows
    small = rows.at_hand and rows.n_rows * job.model.surface.latent.n_nodes < _SECOND_START_BELOW
    if second is None or not small or first.outcome.reason is StopReason.INTERRUPTED:
        return first
    if not is_folded_or_many_peaked(on_rows(recipe, first, rows)):
        return first
    again = replace(recipe, start=second)
    other = train_map(again, job, again.begin(again, job), partial(run, callbacks=False))
    # Better is what is likelier, or nearly as likely and not troubled.
    gain = other.outcome.history["objective"][-1] - first.outcome.history["objective"][-1]
    tied = -TIE_NATS < gain <= 0
    sounder = tied and not is_folded_or_many_peaked(on_rows(recipe, other, rows))
    return other if gain > 0 or sounder else first


def on_rows(recipe: Recipe, fitted: FittedMap, rows: Rows) -> MapOnRows:
    """A fitted map with the rows that it was trained on, for checks and warnings."""
    model, state = fitted.attributes["_model"], fitted.outcome.state
    weight = recipe.row_weights(model, rows, state.parameters)
    return MapOnRows(model, rows, state.parameters, state.statistics.mass, weight, fitted.spacing, recipe.folds)


# ----------------------------------------------------------------------------------------------------- the loop


def _em_loop(recipe: Recipe, job: TrainingJob, start: Parameters, *, interrupted: bool) -> Loop:
    """EM from a start."""
    rows, training = job.rows, recipe.trainer.training(job.model, recipe.random_state)
    run = partial(
        run_fixed_point,
        lambda: training.begin(rows, start),
        _interrupt if interrupted else lambda state: training.step(rows, state, recipe.relaxation),
        training.measure,
        rule=StoppingRule() if training.monotone else Last(),
    )
    return run if recipe.trainer.whole else with_final_pass(run, partial(training.finish, rows), training.measure)


def _refining_loop(recipe: Recipe, jobs: list[TrainingJob], start: Parameters, *, interrupted: bool) -> Loop:
    """Training that goes on with more nodes where these turn out to be far apart; each job is added to ``jobs``."""

    def run(**settings: Any) -> Outcome[Any]:
        outcome = _em_loop(recipe, jobs[-1], start, interrupted=interrupted)(**settings)
        for _ in range(recipe.most_doublings):
            finer = _finer_job(recipe, jobs[-1], outcome) if outcome.n_iter < settings["max_iter"] else None
            if finer is None:
                break
            jobs.append(finer)
            loop = _em_loop(recipe, finer, outcome.state.parameters, interrupted=False)
            outcome = go_on(outcome, loop, more=_FINER_ITERATIONS, **settings)
        return outcome

    return run


def _finer_job(recipe: Recipe, job: TrainingJob, outcome: Outcome[Any]) -> TrainingJob | None:
    """The job on a finer space, where training has settled and found the nodes to be far apart."""
    rows, state = job.rows, outcome.state
    if not rows.at_hand or outcome.reason not in (StopReason.CONVERGED, StopReason.REFINED):
        return None
    finer = finer_space(job.model, state.parameters, state.statistics.mass)
    if finer is None:
        return None
    model = model_on_rows(recipe, BasisMap(finer, job.basis.bind(finer)), rows)
    return job._replace(model=model, rows=cut_for(rows, recipe.numbers_per_node * finer.n_nodes))


def _interrupt(state: Any) -> Any:
    """A step for training that was interrupted before it began."""
    raise KeyboardInterrupt
