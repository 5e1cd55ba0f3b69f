"""A generative topographic mapping of sequences: a walk over its nodes, seen through noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from prinfold._typing import FloatArray, RandomState
from prinfold.base.block_surveys import refuse_beside
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import require_parts
from prinfold.exceptions import Advice, InvalidParameterError, Message, percent, quantity
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, positive
from prinfold.gtm.block_input import refuse_arrays_beside
from prinfold.gtm.fitting import FEWEST_ROWS, assemble, given_places, initial_parameters, make_job, noise_attributes
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.recipe import Recipe, TrainingJob
from prinfold.gtm.sequence.model import SequenceModel, SequenceRows, in_sequences
from prinfold.gtm.sequence.node_steps import moves_on
from prinfold.gtm.sequence.sequence_blocks import stream_of_sequences, survey_sequences
from prinfold.gtm.sequence.sequence_input import (
    Arranged,
    arrange,
    column_of_names,
    refuse_empty_sequences,
    seen_weight,
    sequence_weight,
    sequences_with_weight,
)
from prinfold.gtm.sequence.starts import TRIED_STEPS, slow_start
from prinfold.gtm.sequence.transitions import Chain, ChainRecipe, FreeRule, SharedRule, TransitionRule, shared_steps
from prinfold.gtm.sequence.verbs import SequenceVerbs
from prinfold.gtm.warnings import Check
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows
from prinfold.validation.dask_verbs import is_dask
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_empty_columns
from prinfold.validation.settings import Constraint, as_generator, check_parameters, integer, nothing, one_of, real
from prinfold.validation.tables import check_errors, forget, has_gaps

_WARN_SHARE_OF_JUMPS = 0.5
"""Share of steps that are jumps from which a chain of short steps does not describe them."""

_PROBABILITY = Constraint(lambda v: real(0, above=True).test(v) and v <= 1, "a number above 0 and at most 1")


def _warn_about_jumps(model: GTMSequence) -> list[str]:
    """Steps that go further than a step reaches, where their share was learned and is large."""
    if model.transitions == "uniform" or model.jump is not None or model.jump_ <= _WARN_SHARE_OF_JUMPS:
        return []
    reach = quantity(model.reach_, "node")
    words = f"{percent(model.jump_)} of the steps go further than the {reach} that a step may reach"
    words = f"{words}: nodes may be too close together, or rows too far apart in time"
    return [Message(words, Advice("reach", words="raise {}"), "use fewer nodes")]


@fill_parameter_docs
@storable
class GTMSequence(SequenceVerbs):
    """Generative topographic mapping of sequences: rows come from a walk over the latent space.

    Each sequence goes from node to node of the latent grid in short steps, seldom in a jump to anywhere, and at each
    node a row is drawn about the surface as in a :class:`~prinfold.GTM`. What a row cannot say of its place the rows
    before and after it do. It is a hidden Markov model whose states lie on a smooth surface.

    Parameters
    ----------
    {n_components}
    transitions : {"shared", "free", "uniform"}, default="shared"
        How the walk goes on: ``"shared"`` learns one distribution over steps, the same at all nodes; ``"free"`` one
        for each node, drawn to the shared one; with ``"uniform"`` every step may go anywhere, and the model is the
        GTM, but for where sequences begin.
    reach : int, default=None
        Longest step in nodes: on a lattice as the crow flies, elsewhere along edges. None is 5 on curves, 3 on
        surfaces, 2 in three dimensions and 1 beyond.
    jump : float, default=None
        Probability that a step is a jump to any node instead, above 0 and at most 1. None learns it, with at least
        1e-6.
    strength : float, default=10.0
        Of ``"free"`` transitions only: steps that a node is to make before its own habits count as much as those it
        shares with others.
    initial : {"uniform", "learned"}, default="uniform"
        Where sequences begin: anywhere, or at nodes with probabilities that are learned.
    {nodes}
    {basis}
    {width}
    {latent}
    {regularization}
    {prior_precision}
    {penalize_bias}
    {noise_floor}
    noise : str or noise model, default="isotropic"
        As in :class:`~prinfold.GTM`. Noise that mixes nodes in shares of its own is for rows without an order.
    init : str or array of shape (n, Q), default="auto"
        ``"slow"`` begins in the directions that change slowest in time; the others are those of
        :class:`~prinfold.GTM`. ``"auto"`` tries ``"slow"`` and what the GTM would begin with for a few iterations, and
        goes on from the better; where rows do not tell of each other it is what the GTM begins with.
    {max_iter, default=200}
    {tol, default=1e-4}
    {relaxation}
    {random_state.starts}
    {verbose}

    Attributes
    ----------
    {latent_}
    {basis_}
    {weights_}
    {offset_.median}
    noise_variance_ : float
        Variance 1/β of the noise, on average where it has several.
    noise_parameters_ : dict
        What else the noise has, as in :class:`~prinfold.GTM`.
    jump_ : float
        Probability of a jump, given or learned.
    reach_ : int
        Longest step in nodes.
    moves_ : ndarray of shape (C, Q) or (C, 1)
        The kinds of steps: displacements in nodes on a lattice, numbers of edges elsewhere.
    move_shares_ : ndarray of shape (C,)
        Weights of the kinds of steps, which add up to 1: their probabilities, where no edge of the latent space is
        near.
    local_moves_ : ndarray of shape (P,) or None
        With ``transitions="free"`` the probabilities of the short steps from each node, node after node.
    initial_ : ndarray of shape (K,)
        Probabilities of the nodes to begin with.
    node_mass_ : ndarray of shape (K,) or (K, D)
        Rows that each node stands for, as in :class:`~prinfold.GTM`.
    {folds_}
    {n_iter_}
    {converged_.objective}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise``, ``jump`` and
        ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University, section 7.4.
    Bishop, Hinton & Strachan (1997), GTM through time, IEE Fifth International Conference on Artificial Neural
    Networks.

    Examples
    --------
    >>> from prinfold import GTMSequence, datasets
    >>> data = datasets.make_motion(rng=0)
    >>> model = GTMSequence(latent="circle", nodes=40, random_state=0)
    >>> Z = model.fit(data.X, lengths=data.lengths).transform(data.X, lengths=data.lengths)
    >>> Z.shape
    (600, 1)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        **SequenceVerbs._constraints,
        "prior_precision": nothing | real(0),
        "init": SequenceVerbs._constraints["init"] | one_of(("slow",)),
        "transitions": one_of(("shared", "free", "uniform")),
        "reach": nothing | integer(0),
        "jump": nothing | _PROBABILITY,
        "strength": real(0, above=True),
        "initial": one_of(("uniform", "learned")),
    }
    _stored: ClassVar[Kinds] = {
        **{name: kind for name, kind in SequenceVerbs._stored.items() if name != "memory_"},
        "jump_": positive,
        "reach_": integer(0),
        "move_shares_": numbers("C", above=0),
        "local_moves_": nothing | numbers("P", above=0),
        "initial_": numbers("latent_.n_nodes", above=0),
    }
    _added: ClassVar[dict[str, Any]] = {k: v for k, v in SequenceVerbs._added.items() if k != "memory_"}
    _checks: ClassVar[tuple[Check, ...]] = (_warn_about_jumps,)
    trainer = "batch"
    jump_: float
    reach_: int
    move_shares_: FloatArray
    local_moves_: FloatArray | None
    initial_: FloatArray

    def __init__(
        self,
        n_components: int = 2,
        *,
        transitions: str = "shared",
        reach: int | None = None,
        jump: float | None = None,
        strength: float = 10.0,
        initial: str = "uniform",
        nodes: Any = None,
        basis: Any = None,
        width: float = 1.0,
        latent: Any = None,
        regularization: float | None = None,
        prior_precision: float | None = None,
        penalize_bias: bool = False,
        noise_floor: float = 1e-6,
        noise: Any = "isotropic",
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.transitions = transitions
        self.reach = reach
        self.jump = jump
        self.strength = strength
        self.initial = initial
        self.nodes = nodes
        self.basis = basis
        self.width = width
        self.latent = latent
        self.regularization = regularization
        self.prior_precision = prior_precision
        self.penalize_bias = penalize_bias
        self.noise_floor = noise_floor
        self.noise = noise
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fitting

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        groups: Any = None,
        errors: Any = None,
    ) -> Self:
        """Fit surface and walk by expectation maximisation.

        Parameters
        ----------
        X : array-like of shape (n, D), list of such, array of shape (S, T, D), Blocks or Dask frame
            Rows, one sequence after another; or a table for each sequence. Cells that are missing are NaN, and so is
            a whole row at a step of which nothing is known. :class:`~prinfold.Blocks` are read once for each
            iteration, whole sequences at a time; partitions of a Dask frame must hold whole ones.
        y : ignored
        sample_weight : array-like of shape (S,), default=None
            Weights of the sequences; a weight of 2 is the same as the sequence given twice.
        {lengths}
        groups : array-like of shape (n,) or str, default=None
            In place of lengths, the names of the sequences that rows belong to, or the column of X that has them. A
            sequence takes its rows in the order in which they come, whatever lies between. With Blocks and Dask frames
            the name or number of a column; there the rows of a sequence follow each other.
        {errors.added}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        if isinstance(X, Blocks) or is_dask(X):
            blocks = X if isinstance(X, Blocks) else Blocks(X)
            self._fit_blocks_of_sequences(blocks, column_of_names(lengths, groups), sample_weight, errors)
            return self
        given = arrange(X, lengths, groups)
        if given.plain and self.initial != "learned":
            super().fit(X, y, sample_weight, errors=errors)
        else:
            self._fit_sequences(given, sample_weight, errors)
        return self

    @fit_method
    def _fit_sequences(self, given: Arranged, sample_weight: Any, errors: Any) -> None:
        forget(self)
        table = self._training_table(given.X, None)
        known, order = check_errors(given.stacked(errors), table, self), given.order(table.shape[0])
        weight = seen_weight(sequence_weight(sample_weight, order), table, order)
        kept, cuts = sequences_with_weight(weight, order)
        places = given_places(self.init, table.shape[0])
        table, (places, known) = table[kept], (None if each is None else each[kept] for each in (places, known))
        refuse_empty_sequences(table, FEWEST_ROWS)
        if has_gaps(table):
            refuse_empty_columns(table, getattr(self, "feature_names_in_", None))
        of_rows = None if weight is None else np.repeat(weight[weight > 0], np.diff(cuts))
        recipe = self._recipe(places)
        job = assemble(recipe, table, of_rows, known)
        self._refuse_shares(job)
        self._train_and_warn(recipe, job._replace(rows=in_sequences(job.rows, cuts)))

    @fit_method
    def _fit_blocks_of_sequences(self, blocks: Blocks, group: Any, sample_weight: Any, errors: Any) -> None:
        forget(self)
        refuse_beside(sample_weight)
        refuse_arrays_beside(self.init, errors)
        rng = lambda: as_generator(self.random_state).spawn(1)[0]  # noqa: E731
        found = survey_sequences(blocks, group, rng, accept_missing=self._accept_missing, min_rows=FEWEST_ROWS)
        names = found.survey.blocks.names
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        recipe = self._recipe()
        latent = recipe.latent(found.survey.found.total)
        job = make_job(recipe, latent, stream_of_sequences(found, recipe.numbers_per_node * latent.n_nodes))
        self._refuse_shares(job)
        self._train_and_warn(recipe, job)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        groups: Any = None,
        errors: Any = None,
    ) -> Any:
        """Fit the model, then give the posterior mean of each row in latent space, given its whole sequence.

        Parameters
        ----------
        {X.sequences}
        y : ignored
        sample_weight : array-like of shape (S,), default=None
            Weights of the sequences in the fit.
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q), or list of such
            In the form in which X was given.
        """
        options = {"lengths": lengths, "groups": groups, "errors": errors}
        return self.fit(X, y, sample_weight, **options).transform(X, **options)

    # --------------------------------------------------------------------------------------- plumbing

    def _recipe(self, places: FloatArray | None = None, **parts: Any) -> Recipe:
        own: dict[str, Any] = {
            "make_model": partial(SequenceModel, recipe=self._chain_recipe()),
            "begin": self._begin,
            "attributes": self._sequence_attributes,
            "most_doublings": 0,
        }
        return super()._recipe(places, **(own | parts))

    def _begin(self, recipe: Recipe, job: TrainingJob) -> Parameters:
        """First parameters by name; if left open the better of slow directions and the GTM's start, after a trial."""
        rows = job.rows.sample
        init = self.init if isinstance(self.init, str) else None
        if init == "slow":
            return initial_parameters(self._slow_recipe(recipe, rows), job)
        if init != "auto" or self.transitions == "uniform" or not _has_steps(rows):
            return initial_parameters(recipe, job)  # rows do not tell of each other
        tried = []
        for each in (self._slow_recipe(recipe, rows), recipe):
            state = job.model.begin(rows, initial_parameters(each, job))
            for _ in range(TRIED_STEPS):
                state = job.model.step(rows, state, self.relaxation)
            tried.append(state)
        best: Parameters = max(tried, key=lambda state: job.model.measure(state)["objective"]).parameters
        return best

    def _slow_recipe(self, recipe: Recipe, rows: Rows) -> Recipe:
        if not _has_steps(rows):
            raise InvalidParameterError(
                Message(
                    "the start 'slow' looks at what changes from row to row, but each row is a sequence of one",
                    "give lengths or groups",
                    Advice("init", "pca", "use {}"),
                )
            )
        return replace(recipe, start=slow_start(cast(SequenceRows, rows).cuts))

    def _chain_recipe(self) -> ChainRecipe:
        rules: dict[str, TransitionRule | None]
        if self.transitions == "uniform" and self.jump not in (None, 1):
            raise InvalidParameterError(
                Message(
                    f"jump={self.jump!r} is the share of steps that go anywhere, but with uniform transitions all of "
                    "them do",
                    "leave out jump",
                    Advice("transitions", "shared", "use {}"),
                    Advice("transitions", "free", "{}"),
                )
            )
        rules = {"shared": SharedRule(), "free": FreeRule(float(self.strength)), "uniform": None}
        return ChainRecipe(rules[self.transitions], self.reach, self.jump, self.initial == "learned")

    def _refuse_shares(self, job: TrainingJob) -> None:
        shares = job.model.noise.capabilities.node_shares
        if shares is not None and shares.learned:
            raise InvalidParameterError(
                f"noise={self.noise!r} learns how often each node is visited, but in a sequence the transitions "
                "determine that; use VaryingNoise(mixing=False)"
            )

    def _sequence_attributes(self, job: TrainingJob, state: Any) -> dict[str, Any]:
        found, chain = noise_attributes(job, state), cast(Chain, state.chain)
        model: SequenceModel = found["_model"]
        return found | {
            "_model": replace(model, chain=chain),
            "jump_": chain.jump,
            "reach_": model.recipe.reach_on(model.surface.latent),
            "move_shares_": chain.kinds,
            "initial_": chain.initial,
            "local_moves_": chain.local if self.transitions == "free" else None,
        }

    def _restore(self) -> None:
        super()._restore()
        moves = moves_on(self.latent_, self.reach_)
        kinds, local = self.move_shares_, self.local_moves_
        sound = {
            "a jump_ of at most 1": self.jump_ <= 1,
            f"{len(moves.kinds)} move_shares_ that add up to 1": _are_shares(kinds, len(moves.kinds)),
            "an initial_ that adds up to 1": _are_shares(self.initial_, self.latent_.n_nodes),
            "local_moves_ of each node that add up to 1": local is None
            or (len(local) == len(moves.node) and np.allclose(moves.per_node(local), 1.0)),
        }
        require_parts(sound)
        local = shared_steps(moves, kinds) if local is None else local
        self._model = replace(self._sequence_model, chain=Chain(moves, kinds, local, self.jump_, self.initial_))


def _has_steps(rows: Rows) -> bool:
    """Whether some sequence has more than one row."""
    return isinstance(rows, SequenceRows) and len(rows.cuts) <= rows.n_rows


def _are_shares(values: FloatArray, n: int) -> bool:
    return len(values) == n and bool(np.isclose(values.sum(), 1.0))
