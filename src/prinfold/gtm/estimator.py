"""The generative topographic mapping."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import explain_misfits
from prinfold.devices import Device, current_device, find_device
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, part
from prinfold.gtm import evidence, evidence_training, partial_fit, weight_posterior
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.evidence_training import first_penalty, with_evidence
from prinfold.gtm.fitting import GivenRows, choose_penalty, noise_attributes, plain_recipe
from prinfold.gtm.latent_grid_model import LatentGridModel
from prinfold.gtm.noise.factor_starts import with_directions
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.noise.recipes import NOISE_PARAMETERS, NOISES, ColumnSpread, NoiseRecipe, make_noise, needs_of
from prinfold.gtm.recipe import Recipe, TrainingJob, on_device, with_start_step
from prinfold.gtm.starts.first_parameters import in_units
from prinfold.gtm.starts.outliers import robust
from prinfold.gtm.trainers.stream_memory import make_memory
from prinfold.gtm.trainers.trainers import TRAINERS
from prinfold.rows.rows import Rows
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, device_name, nothing, one_of, real
from prinfold.validation.tables import check_errors, check_weight, rows_with_weight


def gtm_attributes(job: TrainingJob, state: gtm.FittedState) -> dict[str, Any]:
    """Fitted attributes of a GTM, with the sums from which training could go on."""
    memory = make_memory(job.model, state.statistics, state.statistics.total)
    return noise_attributes(job, state) | {"memory_": memory}


@fill_parameter_docs
@storable
class GTM(LatentGridModel):
    """Generative topographic mapping: a smooth surface with a density around it.

    A grid of latent nodes is mapped by a smooth function into data space, where each carries the same
    Gaussian noise; expectation maximisation moves the surface through the middle of the data.

    Parameters
    ----------
    {n_components}
    {nodes.doubled}
    {basis}
    {width}
    {latent}
    {regularization}
    prior_precision : float or "evidence", default=None
        Precision α of a Gaussian prior on the weights, so that λ = α/β follows the noise; it has
        the units of the data to the power −2. ``"evidence"`` finds α and the noise by the evidence
        for them, from a few plain EM steps on; steps are then not stretched.
    {penalize_bias}
    {noise_floor}
    noise : str or noise model, default="isotropic"
        How rows scatter about the surface: ``"isotropic"``, ``"diagonal"`` (a variance for each column),
        ``"aligned"`` (further along the surface), ``"student"`` (heavy tails, for outliers), ``"varying"`` (more
        at some places than at others), or an object such as :class:`~prinfold.LowRankNoise` or
        :class:`~prinfold.StudentNoise`.
    trainer : str or trainer, default="batch"
        ``"batch"`` (EM over all rows), ``"incremental"`` (an M-step after every block of rows, with stored sums),
        ``"online"`` (the same with sums that forget), or an :class:`~prinfold.Incremental` or
        :class:`~prinfold.Online` object with settings.
    init : str or array of shape (n, Q), default="auto"
        ``"pca"``, ``"random"``, ``"semi-random"``, ``"isomap"``, ``"lle"``, ``"laplacian"``, for spaces with angles
        ``"cycles"``, which follows the loops of the data, or latent coordinates of the rows. ``"auto"`` is whichever
        comes furthest in a short trial on some rows: the principal plane, distances along the data (an Isomap that
        stands noise and few rows), and on spaces with angles cycles. A map that comes out folded or many-peaked is
        trained from the second best too, unless rows × nodes are four million or more.
    max_iter : int, default=200
        Most EM iterations. Large tables are warmed up by up to 30 more, but no more than this, on a quarter of the
        nodes; ``history_`` begins after them. Where nodes are doubled, up to 16 of them follow,
        and ``history_`` begins with those.
    {tol, default=1e-4}
    {relaxation}
    {random_state.starts}
    device : str, default=None
        Where passes over rows are computed, by the name that torch has for it, such as ``"cuda"``; None is the
        processor. Rows are held there in single precision. What is too small to be sent, missing cells, known errors
        and other noises than isotropic and diagonal are computed on the processor. It needs the extra ``gpu``, and is
        not kept in files.
    {verbose}

    Attributes
    ----------
    {latent_}
    {basis_}
    {weights_}
    {offset_.median}
    noise_variance_ : float
        Variance 1/β of the noise, on average where it has several; of Student noise the square of its scale.
    noise_parameters_ : dict
        What else the noise has: ``variances`` (D,) of diagonal noise; ``reach`` of aligned noise; ``loadings`` (q, D)
        of low-rank noise; ``df`` of Student noise; ``node_precisions`` and ``node_shares`` (K,) of varying noise.
    prior_precision_ : float
        Precision α of the prior on the weights, given, found, or λβ of a constant λ.
    {node_mass_}
    {folds_}
    memory_ : Memory
        Sums of the rows that were seen, from which :meth:`partial_fit` goes on; ``n_seen_`` is how many they were.
    n_iter_ : int
        EM iterations done; sweeps of an incremental trainer, passes of an online one, blocks of a stream.
    {converged_.objective}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise`` and
        ``seconds``, the first entry being the start. With a trainer other than batch EM an entry adds up what every
        block of rows scored when it was visited, before training had learned from it, and the last entry is of
        an E-step over all rows. With ``prior_precision="evidence"`` the objective is
        the log evidence per row, and ``prior_precision`` and ``effective`` (the number of weights that the
        rows determine) are recorded too.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University.
    Bishop, Svensén & Williams (1998), GTM: the generative topographic mapping, Neural Computation 10.

    Examples
    --------
    >>> from prinfold import GTM, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTM(random_state=0).fit(data.X)
    >>> model.transform(data.X).shape
    (300, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = LatentGridModel._constraints | {
        "prior_precision": nothing | real(0) | one_of(("evidence",)),
        "noise": one_of(NOISES)
        | Constraint(
            lambda v: hasattr(v, "make") and not isinstance(v, type), "a noise model (an object, not its class)"
        ),
        "trainer": one_of(TRAINERS) | Constraint(lambda v: hasattr(v, "training"), "a trainer"),
        "device": device_name,
    }
    _stored: ClassVar[Kinds] = {
        **LatentGridModel._stored,
        "memory_": nothing | part("Memory", floors="n_features_in_"),
        "noise_parameters_": NOISE_PARAMETERS,
    }
    _added: ClassVar[dict[str, Any]] = LatentGridModel._added | {"memory_": None, "noise_parameters_": {}}
    _accept_missing: ClassVar[bool] = True
    _takes_blocks: ClassVar[bool] = True
    _uses_devices: ClassVar[bool] = True
    noise_parameters_: dict[str, Any]
    memory_: Any

    def __init__(
        self,
        n_components: int = 2,
        *,
        nodes: Any = None,
        basis: Any = None,
        width: float = 1.0,
        latent: Any = None,
        regularization: float | None = None,
        prior_precision: float | str | None = None,
        penalize_bias: bool = False,
        noise_floor: float = 1e-6,
        noise: Any = "isotropic",
        trainer: Any = "batch",
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.nodes = nodes
        self.basis = basis
        self.width = width
        self.latent = latent
        self.regularization = regularization
        self.prior_precision = prior_precision
        self.penalize_bias = penalize_bias
        self.noise_floor = noise_floor
        self.noise = noise
        self.trainer = trainer
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @fit_method
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
        {errors}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        partial_fit.learn(self, X, sample_weight, errors)
        return self

    @property
    def n_seen_(self) -> float:
        """Rows that training has seen, by their weights; rows that are seen again by ``fit`` count once."""
        check_is_fitted(self)
        return np.nan if self.memory_ is None else self.memory_.seen

    # --------------------------------------------------------------------------- evidence and uncertainty

    @property
    def prior_precision_(self) -> float:
        """Precision α of the prior on the weights, given or found."""
        check_is_fitted(self)
        return evidence_training.found_precision(self._model, self._parameters(), self.history_)

    def log_evidence(
        self, X: Any, hessian: str = "approximate", sample_weight: Any = None, *, errors: Any = None
    ) -> float:
        """Log probability of the training rows with the weights integrated out, thesis (5.17).

        It trades fit against flexibility without rows held out: models fitted to the same rows compare by it,
        whatever their widths, numbers of basis functions and nodes, penalties or latent spaces, as long as the same
        weights are free of the penalty: a flat prior has a height of its own choosing. It holds for weights at their
        mode, so that training has to have converged.

        Parameters
        ----------
        {X.fitted}
        hessian : {"approximate", "exact"}, default="approximate"
            How the curvature of the log-likelihood is found: as if each row belonged to one node (A.11), which costs
            next to nothing, or exactly (A.13), a matrix of as many rows and columns as the model has weights.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows that the model was fitted with.
        errors : array-like of shape (n, D) or (n,), default=None
            The known standard deviations of cells or rows that it was fitted with.

        Returns
        -------
        float
        """
        curvature, log_likelihood = self._curvature(X, hessian, sample_weight, errors)
        prior = evidence_training.found_prior(self._model, self._parameters(), self.history_)
        roughness = prior.roughness(self._model.surface, self.weights_)
        return evidence.log_evidence(log_likelihood, self.prior_precision_, roughness, curvature)

    def effective_weights(
        self, X: Any, hessian: str = "approximate", sample_weight: Any = None, *, errors: Any = None
    ) -> float:
        """Number of weights that the rows determine, thesis (5.21); the prior decides the others.

        Parameters
        ----------
        {X.fitted}
        hessian : {"approximate", "exact"}, default="approximate"
            As in :meth:`log_evidence`.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows that the model was fitted with.
        errors : array-like of shape (n, D) or (n,), default=None
            The known standard deviations of cells or rows that it was fitted with.

        Returns
        -------
        float
            Between 0 and the number of weights, M times D.
        """
        return self._curvature(X, hessian, sample_weight, errors)[0].effective(self.prior_precision_)

    def surface_std(
        self,
        Z: Any,
        *,
        X: Any = None,
        hessian: str = "approximate",
        sample_weight: Any = None,
        errors: Any = None,
        extrapolate: bool = False,
    ) -> FloatArray:
        """Posterior standard deviation of the surface, in every column, by Laplace's approximation.

        Two of them on either side make a band that holds the surface with a probability of about 95 % at each place,
        as far as the model, its penalty and its latent space are the right ones.

        Parameters
        ----------
        {Z}
        X : array-like of shape (m, D), default=None
            The rows that the model was fitted to, which the exact Hessian needs. None is enough for the approximate
            one: the model keeps ``node_mass_``, which knows of errors given to ``fit`` too.
        hessian : {"approximate", "exact"}, default="approximate"
            How the posterior of the weights is found: as if each row belonged to one node (A.11), or exactly (A.13),
            which is wider, the more the nearer nodes are to each other beside the noise, and takes a matrix of as many
            rows and columns as the model has weights.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows ``X``.
        errors : array-like of shape (m, D) or (m,), default=None
            Errors of the rows ``X``, where the model was fitted with them.
        {extrapolate}

        Returns
        -------
        ndarray of shape (n, D)
        """
        places = self._valid_latent(Z, extrapolate)
        posterior = self._weight_posterior(X, hessian, sample_weight, errors)
        model, parameters = self._model_with_prior(), self._parameters()
        return np.sqrt(weight_posterior.surface_variance(model, posterior, parameters, places))

    def surface_covariance(
        self,
        Z: Any,
        *,
        X: Any = None,
        hessian: str = "approximate",
        sample_weight: Any = None,
        errors: Any = None,
        extrapolate: bool = False,
    ) -> FloatArray:
        """Posterior covariance of the surface between columns, by Laplace's approximation.

        Parameters
        ----------
        {Z}
        X : array-like of shape (m, D), default=None
            As in :meth:`surface_std`.
        hessian : {"approximate", "exact"}, default="approximate"
            As in :meth:`surface_std`. By the approximate Hessian columns are independent and alike.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows ``X``.
        errors : array-like of shape (m, D) or (m,), default=None
            Errors of the rows ``X``, where the model was fitted with them.
        {extrapolate}

        Returns
        -------
        ndarray of shape (n, D, D)
        """
        places = self._valid_latent(Z, extrapolate)
        posterior = self._weight_posterior(X, hessian, sample_weight, errors)
        return weight_posterior.surface_covariance(self._model_with_prior(), posterior, self._parameters(), places)

    def outlier_weights(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Weight of each row beside one on the surface, with Student noise: little for an outlier.

        The expected scale u of a row given what was measured of it, averaged over the nodes by their posterior
        weights: about 1 for rows that scatter as the noise does, and falling with the square of the distance from the
        surface. It is what the row's responsibilities were multiplied by in training.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n,)
            Above 0 and at most 1 + D/df, with D the number of cells that were measured.
        """
        check_is_fitted(self)
        if self._model.noise.capabilities.row_scales is None:
            raise InvalidParameterError(
                Message(
                    f"a GTM with noise={self.noise!r} has no outlier weights: its rows all count alike",
                    Advice("noise", "student", "fit one with {}"),
                )
            )
        return self._ask(posteriors.row_scales, X, errors)

    # --------------------------------------------------------------------------------------- plumbing

    def _curvature(self, X: Any, hessian: str, sample_weight: Any, errors: Any) -> tuple[evidence.Curvature, float]:
        """Curvature of the log-likelihood of rows in the weights, and that log-likelihood."""
        check_is_fitted(self)
        evidence.check_hessian(hessian)
        evidence.refuse_dependent_cells(self._model)
        rows = self._weighted_rows(X, sample_weight, errors)
        return evidence.curvature_and_likelihood(self._model_for(rows, self._model), rows, self._parameters(), hessian)

    def _weight_posterior(
        self, X: Any, hessian: str, sample_weight: Any, errors: Any
    ) -> weight_posterior.WeightPosterior:
        weight_posterior.refuse_unknown_posterior(self._model, hessian)
        model, parameters = self._model_with_prior(), self._parameters()
        if X is None:
            return weight_posterior.posterior_of_masses(model, self.node_mass_, parameters, hessian)
        rows = self._weighted_rows(X, sample_weight, errors)
        return weight_posterior.posterior_of_rows(self._model_for(rows, model), rows, parameters, hessian)

    def _weighted_rows(self, X: Any, sample_weight: Any, errors: Any) -> Rows:
        """The rows that have a weight, checked."""
        table = self._table(X)
        given = GivenRows(table, check_weight(sample_weight, table), check_errors(errors, table, self))
        kept = rows_with_weight(given.weight, min_rows=1)
        given = given if kept is None else given.choose(kept)
        return replace(self._rows(given.table, given.errors), weight=given.weight)

    def _model_with_prior(self) -> gtm.GTMModel:
        """The model with the prior that training came to, where that was found on the way."""
        return evidence_training.with_found_prior(self._model, self._parameters(), self.history_)

    def _recipe(self, places: FloatArray | None = None, **parts: Any) -> Recipe:
        noise: NoiseRecipe = NOISES[self.noise] if isinstance(self.noise, str) else self.noise
        trainer = TRAINERS[self.trainer] if isinstance(self.trainer, str) else self.trainer
        by_evidence, needs = self.prior_precision == "evidence", needs_of(noise)
        penalty = first_penalty(self.regularization) if by_evidence else choose_penalty(self)
        own: dict[str, Any] = {"attributes": gtm_attributes, "trainer": trainer}
        recipe = plain_recipe(self, partial(make_noise, noise), penalty, places, **(own | parts))
        if (device := self._device()) is not None:
            recipe = on_device(recipe, device)
        if needs.directions is not None:
            recipe = with_start_step(recipe, partial(with_directions, directions=needs.directions))
        if by_evidence:
            recipe = with_evidence(recipe, self.basis)
        if needs.robust:
            recipe = robust(recipe, own_units=needs.own_units)
        return with_start_step(recipe, in_units) if needs.own_units else recipe

    def _device(self) -> Device | None:
        return find_device(self.device) or current_device()

    def _parameters(self) -> Parameters:
        found: Parameters = self._model.noise.restore(self.weights_, self.noise_variance_, self.noise_parameters_)
        return found

    def _stored_spread(self) -> ColumnSpread:
        if self.memory_ is None:
            return super()._stored_spread()
        return self.memory_.spread  # type: ignore[no-any-return]

    def _restore(self) -> None:
        super()._restore()
        with explain_misfits("noise_parameters_"):
            parameters = self._parameters()
        if self.memory_ is not None:
            with explain_misfits("memory_"):
                self._model = partial_fit.restore_memory(self._model, self.memory_, parameters)

    def __sklearn_is_fitted__(self) -> bool:
        gathered = sum(each.n_rows for each in getattr(self, "_gathered_", ()))
        if gathered:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: partial_fit has gathered {gathered} rows of the "
                f"{partial_fit.online_rule(self.trainer).start} that it begins with; pass it more of "
                "them, or give its trainer, Online, a smaller start"
            )
        return super().__sklearn_is_fitted__()
