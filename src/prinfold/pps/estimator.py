"""Probabilistic principal surfaces: the GTM with noise that is oriented along or across the surface."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.basis_maps.bases import carries_prior
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, UnsupportedInputError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part, positive
from prinfold.gtm import model as gtm
from prinfold.gtm.fitting import (
    assemble,
    choose_penalty,
    fit_map,
    make_job,
    map_attributes,
    model_for_gaps,
    plain_recipe,
    train_map,
)
from prinfold.gtm.gaussian_process_training import ProcessTrainer
from prinfold.gtm.latent_grid_model import LatentGridModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.protocol import AnyNoise, Parameters
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.gtm.penalties import Penalty
from prinfold.gtm.recipe import FittedMap, Recipe, Run, TrainingJob
from prinfold.gtm.trainers.trainers import BATCH
from prinfold.gtm.warnings import Check
from prinfold.loops import StopReason
from prinfold.pps import clamping as clampings
from prinfold.pps import model as pps
from prinfold.pps.clamping_choice import Selection, candidates, compare, path, split
from prinfold.pps.oriented_noise import OrientedNoise
from prinfold.pps.span_training import SpanTrainer, is_wide
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, as_generator, nothing, one_of, real

LEARNED = {
    "learn": clampings.share_both,
    "learn-per-node": clampings.share_neither,
    "learn-per-node-clamping": clampings.share_noise,
}
"""Names of learned clampings, and what the nodes then have in common."""

PER_NODE = ("learn-per-node", "learn-per-node-clamping")
"""Clampings of which each node has its own, so that there can be no more nodes."""


def _warn_about_no_directions_across(model: PPS) -> list[str]:
    """A surface that fills the space of its rows has isotropic noise."""
    n_columns, dimension = model.n_features_in_, model.latent_.dimension
    if n_columns != dimension or model.clamping == 1:
        return []
    words = f"a surface of {dimension} dimension(s) in {n_columns} column(s) has no directions across it"
    advice = Advice("n_components", words="lower {}"), Advice("clamping", 1)
    return [Message(f"{words}, so that its noise is isotropic", *advice)]


_PER_NODE = positive | numbers("latent_.n_nodes", above=0)
"""A number for all nodes, or one for each."""


@fill_parameter_docs
@storable
class PPS(LatentGridModel):
    """Probabilistic principal surface: a smooth surface with noise that is oriented along it or across it.

    A grid of latent nodes is mapped by a smooth function into data space. Each node carries Gaussian noise with one
    variance in the tangents of the surface and another across it. With little along the surface, a row is drawn to
    the nodes onto which it projects, as principal curves and surfaces want it.

    Parameters
    ----------
    {n_components}
    clamping : float or str, default=0.85
        Variance along the surface relative to the mean over all columns, above 0 and below D/Q. At 1 the noise is
        the same in every direction and the model is the GTM; below 1 it lies across the surface, above 1 along it.
        ``"learn"`` fits one clamping and one noise by maximum likelihood, ``"learn-per-node"`` both for each node, and
        ``"learn-per-node-clamping"`` a clamping for each node with one noise. ``"select"`` tries several on rows held
        out and takes the one with the lowest error among surfaces that are no rougher than the GTM's; see
        ``selection_``. It fits the model more than a hundred times, and wants every cell of a row.
    amplification : float, default=None
        Variance across the surface over and above ``clamping``, γ of the earlier covariance (16), which any clamping
        above 0 suits; None is the unified covariance (17), whose variance over all columns does not depend on the
        clamping.
    {nodes}
    basis : int, tuple of int, or basis object, default=None
        Basis functions along each axis, or a :class:`~prinfold.GaussianBasis` or
        :class:`~prinfold.HarmonicBasis`; None takes a third as many as nodes, at most 9.
    {width}
    {latent}
    {regularization}
    {prior_precision}
    {penalize_bias}
    {noise_floor}
    {init.maps}
    trainer : {"gtm", "gem", "paper"}, default="gtm"
        ``"gtm"`` fits the GTM with the same settings first. From there it takes the GTM's M-step for the weights, which
        ignores that the noise is oriented, and the best noise for them in turn. Where ten such steps do not bring the
        objective back to where it was, the surface before them is kept. ``"gem"`` goes on from the same GTM by
        generalised EM with the true gradient. Neither lowers the objective. ``"paper"`` is the published way: no GTM
        first, the GTM's M-step to the end, also where the objective falls, and the last surface kept.
    max_iter : int, default=200
        Most iterations. The GTM that training begins from has as many of its own; ``history_``, ``n_iter_`` and
        callbacks begin after it. With ``clamping=1`` they are the GTM's.
    {tol, default=1e-4}
    relaxation : float, default=1.8
        How far an EM step of the GTM, or a step of ``"gem"``, may be stretched while the objective keeps rising; 1 is
        plain EM, and from 2 on what EM settles at once may swing back and forth.
    {random_state.starts}
    {verbose}

    Attributes
    ----------
    {latent_}
    {basis_}
    {weights_}
    {offset_}
    noise_variance_ : float or ndarray of shape (K,)
        Variance 1/β of the noise, without ``amplification`` its average over the columns; one for each node where
        it was learned so.
    clamping_ : float or ndarray of shape (K,)
        Variance along the surface over ``noise_variance_``.
    across_ : float or ndarray of shape (K,)
        Variance across the surface over ``noise_variance_``.
    selection_ : Selection or None
        With ``clamping="select"`` what was compared: ``print`` it, or draw it by :func:`prinfold.plot.selection`.
        Surface and noise are then what ``clamping=selection_.clamping`` and ``selection_.strength`` as the
        regularisation give. None where there was nothing to select.
    {node_mass_}
    {folds_}
    n_iter_ : int
        Iterations done, those of the GTM before them not counted.
    {converged_.objective}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise``,
        ``clamping`` and ``seconds``, the first entry being the start: the surface of the GTM, with oriented noise.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Chang & Ghosh (2001), A unified model for probabilistic principal surfaces, IEEE Transactions on Pattern Analysis
    and Machine Intelligence 23.

    Examples
    --------
    >>> from prinfold import PPS, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = PPS(clamping=0.5, random_state=0).fit(data.X)
    >>> model.transform(data.X).shape
    (300, 2)
    """

    _stored: ClassVar[Kinds] = {
        **LatentGridModel._stored,
        "noise_variance_": _PER_NODE,
        "clamping_": _PER_NODE,
        "across_": _PER_NODE,
        "selection_": nothing | part("Selection"),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **LatentGridModel._constraints,
        "clamping": real(0, above=True) | one_of((*LEARNED, "select")),
        "amplification": nothing | real(0),
        "trainer": one_of(pps.PPS_STEPS),
    }
    _checks: ClassVar[tuple[Check, ...]] = (_warn_about_no_directions_across,)
    # Blocks of several layers are half as long: two threads then have room in the cache.
    _numbers_per_node: ClassVar[int] = 2
    clamping_: Any
    across_: Any
    selection_: Selection | None

    def __init__(
        self,
        n_components: int = 2,
        *,
        clamping: float | str = 0.85,
        amplification: float | None = None,
        nodes: Any = None,
        basis: Any = None,
        width: float = 1.0,
        latent: Any = None,
        regularization: float | None = None,
        prior_precision: float | None = None,
        penalize_bias: bool = False,
        noise_floor: float = 1e-6,
        init: Any = "auto",
        trainer: str = "gtm",
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.clamping = clamping
        self.amplification = amplification
        self.nodes = nodes
        self.basis = basis
        self.width = width
        self.latent = latent
        self.regularization = regularization
        self.prior_precision = prior_precision
        self.penalize_bias = penalize_bias
        self.noise_floor = noise_floor
        self.init = init
        self.trainer = trainer
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _selects_clamping(self) -> bool:
        return bool(self.clamping == "select")

    @property
    def _accept_missing(self) -> bool:  # type: ignore[override]
        """Whether cells may be missing: not where a clamping is selected, as held-out rows are projected."""
        return not self._selects_clamping

    @property
    def _takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether rows may come in blocks: not where a clamping is selected, as rows are held out."""
        return not self._selects_clamping

    def _training_table(self, X: Any, sample_weight: Any) -> FloatArray:
        try:
            return super()._training_table(X, sample_weight)
        except InvalidDataError as error:
            if not self._selects_clamping or "contains NaN" not in str(error):
                raise
            words = "To select a clamping rows held out are projected, which needs every cell."
            one = Advice("clamping", 1, "or give a clamping, such as {}")
            raise InvalidDataError(Message(f"{error} {words}", one)) from error

    def _recipe(self, places: FloatArray | None = None, **parts: Any) -> Recipe:
        own: dict[str, Any] = {"make_model": self._make_model, "fit": self._fit_oriented, "attributes": pps_attributes}
        if self._selects_clamping:
            self._refuse_amplification()
            return self._with_clamping(clamping=1.0)._recipe(places, fit=partial(self._fit_selected, places))
        return plain_recipe(self, self._make_noise, choose_penalty(self), places, **(own | parts))

    def _fit_selected(self, places: FloatArray | None, recipe: Recipe, job: TrainingJob, run: Run) -> FittedMap:
        """Fit with the clamping that does best on rows held out."""
        if job.rows.errors is not None:
            raise UnsupportedInputError(
                Message(
                    "to select a clamping is to compare how far rows are from surfaces, which knows nothing of errors",
                    "leave them out",
                    "give the clamping",
                    Advice("clamping", "learn"),
                )
            )
        latent = job.model.surface.latent
        if job.rows.n_columns <= latent.dimension:
            return fit_map(recipe, job, run)
        found = self._select(job, places)
        attributes = partial(pps_attributes, selection=found)
        chosen = self._with_clamping(found.clamping, found.strength)._recipe(places, attributes=attributes)
        return chosen.fit(chosen, make_job(chosen, latent, job.rows), run)

    def _select(self, job: TrainingJob, places: FloatArray | None) -> Selection:
        """Compare clampings on the rows of a job, with its nodes and its basis."""
        rng = as_generator(0 if self.random_state is None else self.random_state)
        latent, seed = job.model.surface.latent, int(rng.integers(2**31))
        fixed = {"nodes": latent, "latent": None, "basis": job.basis, "random_state": seed, "verbose": 0}

        def learn(clamping: float, strength: float, rows: IntArray) -> PPS:
            model = self._with_clamping(clamping, strength, **fixed)
            weight = None if job.rows.weight is None else job.rows.weight[rows]
            recipe = model._recipe(None if places is None else places[rows])
            model._train(recipe, assemble(recipe, job.rows.table[rows], weight))
            return model

        strengths, own = path(choose_penalty(self).strength(1.0))
        clampings = candidates(job.rows.n_columns, latent.dimension)
        return compare(learn, job.rows, split(job.rows, rng), clampings, strengths, own)

    def _with_clamping(self, clamping: float, strength: float | None = None, **changes: Any) -> Self:
        """The same settings with a clamping and a regularisation given."""
        if strength is not None and self.prior_precision:
            changes["prior_precision"] = strength
        elif strength is not None:  # a prior of no precision is no regularisation
            changes |= {"regularization": strength, "prior_precision": None}
        return type(self)(**(self.get_params(deep=False) | {"clamping": clamping} | changes))

    def _fit_oriented(self, recipe: Recipe, job: TrainingJob, run: Run) -> FittedMap:
        """Fit from a fitted GTM, which is this model at a clamping of 1; as published from the start itself."""
        if self._is_round(job.rows.n_columns, job.model.surface.latent.dimension):
            return fit_map(recipe, job, run)
        if self.clamping in PER_NODE:
            recipe = replace(recipe, most_doublings=0)
        if pps.PPS_STEPS[self.trainer].published:
            return fit_map(_in_span_if_wide(recipe, job), job, run)
        return fit_from_gtm(recipe, job, run)

    def _is_round(self, n_columns: int, dimension: int) -> bool:
        """Whether the noise is that of the GTM, bit for bit."""
        return n_columns <= dimension or (self.clamping == 1 and self.amplification is None)

    def _make_noise(self, surface: BasisMap, spread: ColumnSpread) -> AnyNoise:
        dimension, n_columns = surface.latent.dimension, spread.n_columns
        if self._is_round(n_columns, dimension):
            return IsotropicNoise(spread.floor)
        return OrientedNoise(spread.floor, self._shape(n_columns, dimension), dimension)

    def _make_model(self, surface: BasisMap, noise: AnyNoise, penalty: Penalty) -> gtm.GTMModel:
        if not isinstance(noise, OrientedNoise):
            return gtm.GTMModel(surface, noise, penalty)
        return pps.PPSModel(surface, noise, penalty, pps.PPS_STEPS[self.trainer])

    def _remake_model(self, surface: BasisMap, spread: ColumnSpread) -> gtm.GTMModel:
        """The model of the fitted attributes, whatever parameters have been set since."""
        noise: AnyNoise = IsotropicNoise(spread.floor)
        if np.ndim(self.clamping_) or not self.clamping_ == self.across_ == 1:
            shape = clampings.Fixed(self.clamping_, self.across_)
            noise = OrientedNoise(spread.floor, shape, surface.latent.dimension)
        return self._make_model(surface, noise, choose_penalty(self))

    def _refuse_amplification(self) -> None:
        if self.amplification is not None:
            words = "amplification belongs to a clamping that is given"
            raise InvalidParameterError(f"{words}, got clamping={self.clamping!r}; leave amplification at None")

    def _shape(self, n_columns: int, dimension: int) -> clampings.Clamping:
        """The rule that splits the variance between along and across the surface."""
        clamping = self.clamping
        if isinstance(clamping, str):
            self._refuse_amplification()
            return clampings.Learned(n_columns, dimension, LEARNED[clamping])
        by_total = pps.PPS_STEPS[self.trainer].published  # the GTM's own noise goes with the GTM's own step
        if self.amplification is not None:
            return clampings.early(float(clamping), float(self.amplification), by_total)
        if clamping >= n_columns / dimension:
            raise InvalidParameterError(
                f"clamping={clamping!r} leaves no noise across a surface of {dimension} dimension(s) in "
                f"{n_columns} columns; it must lie above 0 and below {n_columns}/{dimension} = "
                f"{n_columns / dimension:g}, or amplification be given"
            )
        return clampings.unified_covariance(float(clamping), n_columns, dimension, by_total)

    def _parameters(self) -> Parameters:
        factors = {"along": self.clamping_, "across": self.across_}
        found: Parameters = self._model.noise.restore(self.weights_, self.noise_variance_, factors)
        return found


def pps_attributes(job: TrainingJob, state: gtm.FittedState, selection: Selection | None = None) -> dict[str, Any]:
    """Fitted attributes of a principal surface; where the noise is round it is 1 along and across."""
    arrays = state.parameters.to_arrays()
    factors = {"clamping_": arrays.get("along", 1.0), "across_": arrays.get("across", 1.0)}
    return map_attributes(job, state) | factors | {"selection_": selection}


def fit_from_gtm(recipe: Recipe, job: TrainingJob, run: Run) -> FittedMap:
    """Fit a GTM to the rows of a job, then go on with oriented noise from there.

    Nodes are doubled once, at the end: steps on a fine lattice are short, and there would be hundreds of them.
    """
    model = job.model
    plain = model_for_gaps(job.rows, gtm.GTMModel(model.surface, IsotropicNoise(model.noise.floor), model.penalty))
    first = fit_map(replace(recipe, most_doublings=0), job._replace(model=plain), partial(run, callbacks=False))
    found = first.attributes
    # A process has found its numbers by now, and its map and its prior with them.
    model = replace(model, surface=found["_model"].surface, penalty=found["_model"].penalty)
    if carries_prior(job.basis):
        recipe = replace(recipe, trainer=ProcessTrainer(BATCH, found["basis_"], recipe.tol))
    start = model.noise.initial(found["weights_"], 1.0 / found["noise_variance_"])
    interrupted = first.outcome.reason is StopReason.INTERRUPTED
    job = TrainingJob(model, job.rows, found["basis_"])
    return train_map(_in_span_if_wide(recipe, job), job, start, run, interrupted=interrupted)


def _in_span_if_wide(recipe: Recipe, job: TrainingJob) -> Recipe:
    """The recipe with training in the span of the rows, where these have many columns.

    A process chooses its numbers by sums over all columns, and is trained in those.
    """
    return replace(recipe, trainer=SpanTrainer()) if is_wide(job.rows) and not carries_prior(job.basis) else recipe
