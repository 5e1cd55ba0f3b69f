"""A mixture of GTMs: several maps, each of its own part of the data."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import RandomState
from prinfold.base.block_surveys import survey_table
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import require_parts
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, mapping_of, part
from prinfold.gtm import model as algorithm
from prinfold.gtm.block_input import refuse_arrays_beside
from prinfold.gtm.estimator import GTM, gtm_attributes
from prinfold.gtm.fitting import FEWEST_ROWS, GivenRows, rows_that_count
from prinfold.gtm.gaussian_process_training import has_open_numbers
from prinfold.gtm.mixture.hierarchy import ROOT, HierarchyVerbs
from prinfold.gtm.mixture.model import MixtureModel, MixtureState
from prinfold.gtm.mixture.starts import (
    PARTITIONS,
    MapSettings,
    MixtureStart,
    begin,
    given_memberships,
    nearest_places,
)
from prinfold.gtm.mixture.verbs import MixtureVerbs
from prinfold.gtm.warnings import warn_about_empty_rows
from prinfold.latent import Atlas
from prinfold.loops import run_fixed_point
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows
from prinfold.rows.streams import stream_of
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_empty_columns
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    check_parameters,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    random_state,
    real,
    refits,
)
from prinfold.validation.tables import check_errors, check_table, check_weight, forget, has_gaps

_LEAST_MEMBERSHIP = 1e-6
"""Memberships below this are left out on going into a map."""


@fill_parameter_docs
@storable
class GTMMixture(MixtureVerbs):
    """Mixture of GTMs: several maps, each with a share of the rows, trained together by expectation maximisation.

    Where data come from several manifolds, one map has to fold or stretch between them; here each may have its own.
    A row belongs to every map to some degree, its *memberships*, and its coordinates are those on the map that it
    belongs to most.

    Parameters
    ----------
    n_maps : int, default=2
        How many maps.
    gtm : GTM or list of GTM, default=None
        Recipe for the maps, of which clones are trained, or one for each map; None is ``GTM()``. Their ``max_iter``,
        ``tol``, ``relaxation``, ``random_state`` and ``verbose`` are not used. Numbers that a GTM leaves open, such as
        that of its nodes, go by the rows that a map begins with.
    shared_noise : bool, default=False
        Whether all maps have the same noise, as can be with ``"isotropic"`` and ``"diagonal"`` noise; otherwise each
        has its own.
    partition : str or array of shape (n,) or (n, n_maps), default="auto"
        Which rows each map begins with: ``"centers"`` (k-means), ``"flats"`` (the same with flats of the dimension of
        the maps in place of centres), ``"clouds"`` (Gaussians in place of centres), ``"auto"`` (all three in turn), the
        numbers of the maps, or memberships.
    n_init : int, default=8
        Partitions that are tried for a few iterations; the one with the highest objective is trained further.
    max_iter : int, default=200
        Most EM iterations, after those of the trials.
    {tol, default=1e-4}
    {relaxation}
    random_state : int, RandomState or Generator, default=None
        Seed of the partitions and of random starts.
    {verbose}

    Attributes
    ----------
    maps_ : list of GTM
        The fitted maps, that with the largest share first; with a list of recipes, or numbers or memberships given as
        ``partition``, in the order of those. :meth:`component` gives them with the names of the columns.
    mixing_ : ndarray of shape (n_maps,)
        Share of each map.
    latent_ : Atlas
        Latent spaces of the maps, one after the other; a coordinate is the number of the map and then a place on it.
    noise_variance_ : ndarray of shape (n_maps,)
        Variance of the noise of each map.
    {n_iter_}
    {converged_.objective}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise`` (on average) and
        ``seconds``, the first entry being the best of the trials.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University, section 6.3.
    Bishop & Tipping (1998), A hierarchical latent variable model for data visualization, IEEE PAMI 20.
    Tiňo & Nabney (2002), Hierarchical GTM: constructing localized nonlinear projection manifolds in a principled way,
    IEEE PAMI 24.

    Examples
    --------
    >>> from prinfold import GTM, GTMMixture, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTMMixture(3, GTM(nodes=8, basis=3), random_state=0).fit(data.X)
    >>> model.memberships(data.X).shape
    (300, 3)
    >>> model.transform(data.X).shape
    (300, 3)
    """

    _takes_blocks: ClassVar[bool] = True
    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_maps": integer(1, 1000),
        "gtm": nothing | instance_of(GTM, list, tuple, words="a GTM or a list of GTMs"),
        "shared_noise": flag,
        "partition": one_of(PARTITIONS) | instance_of(np.ndarray, list, words="an array of numbers or memberships"),
        "n_init": refits(1),
        "max_iter": integer(0),
        "tol": real(0),
        "relaxation": real(1),
        "random_state": random_state,
        "verbose": integer(0) | flag,
    }

    def __init__(
        self,
        n_maps: int = 2,
        gtm: Any = None,
        *,
        shared_noise: bool = False,
        partition: Any = "auto",
        n_init: int = 8,
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_maps = n_maps
        self.gtm = gtm
        self.shared_noise = shared_noise
        self.partition = partition
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fitting

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> Self:
        """Fit all maps and their shares by expectation maximisation.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
            Rows of numbers; a frame, Arrow table, array, memory map or sparse matrix. Cells that are missing are NaN.
            :class:`~prinfold.Blocks` are read once for each iteration, and never held; a sample of them decides on the
            start.
        y : ignored
        {sample_weight}
        {errors}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        gtms = _check_recipes(self.gtm, self.n_maps, self.shared_noise)
        forget(self)
        start = self._begin_on_blocks if isinstance(X, Blocks) else self._begin_on_table
        settings = [MapSettings(each._recipe, bool(each.init == "auto")) for each in gtms]
        self._warn(*self._train(gtms, start(X, settings, sample_weight, errors)))
        return self

    def _begin_on_blocks(
        self, blocks: Blocks, settings: list[MapSettings], sample_weight: Any, errors: Any
    ) -> MixtureStart:
        """Begin with the sample of a first pass, and go on with all rows."""
        if not isinstance(self.partition, str):
            raise InvalidParameterError(
                Message(
                    "partition holds an entry for each row, which does not go with Blocks", Advice("partition", "auto")
                )
            )
        refuse_arrays_beside("", errors)
        found = survey_table(self, blocks, sample_weight, FEWEST_ROWS)
        sample = stream_of(found, 1)
        given = GivenRows(sample.table, sample.weight)
        begun = begin(self, settings, given, as_generator(self.random_state))
        return begun.on_stream(stream_of(found, begun.numbers_per_row))

    def _begin_on_table(self, X: Any, settings: list[MapSettings], sample_weight: Any, errors: Any) -> MixtureStart:
        """Begin with all rows that count."""
        table = check_table(self, X, reset=True, min_rows=FEWEST_ROWS, accept_sparse=True, accept_missing=True)
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        given = GivenRows(table, weight, known, given_memberships(self.partition, self.n_maps, table.shape[0]))
        gaps = has_gaps(table)
        if gaps:
            warn_about_empty_rows(table)
        kept = rows_that_count(table, weight, gaps=gaps)
        given = given if kept is None else given.choose(kept)
        if has_gaps(given.table):
            refuse_empty_columns(given.table, getattr(self, "feature_names_in_", None))
        return begin(self, settings, given, as_generator(self.random_state))

    def component(self, j: int) -> GTM:
        """One of the maps, a fitted GTM with all its verbs; it knows nothing of the others.

        Parameters
        ----------
        j : int
            Which, from 0.

        Returns
        -------
        GTM
        """
        check_is_fitted(self)
        found = copy(self.maps_[self._map_number(j)])
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found

    def drill_down(
        self, X: Any, j: int, mixture: Any = None, *, sample_weight: Any = None, errors: Any = None, places: Any = None
    ) -> GTMMixture:
        """Fit a mixture to what belongs to one map, to look at that part of the data more closely.

        Every row counts by its membership of the map, so that no row is cut off; those below 1e-6 are left out. The
        child knows nothing of the rest; :class:`~prinfold.GTMHierarchy` keeps parents and children together.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows, as a rule those of the fit.
        j : int
            Number of the map.
        mixture : GTMMixture, default=None
            Recipe of the child, of which a clone is fitted; None is one of the same settings with two maps.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, by which memberships are multiplied.
        {errors}
        places : array-like of shape (m, Q), default=None
            Places on map j, such as the middles of the clusters that one sees there: the child then has as many maps,
            each begins with the rows that lie nearest to its place, and they stay in that order.

        Returns
        -------
        GTMMixture
        """
        options = {} if errors is None else {"errors": errors}
        number = self._map_number(j)
        share = np.asarray(self.memberships(X, **options)[:, number], dtype=np.float64)
        child = clone(self).set_params(n_maps=2, partition="auto") if mixture is None else clone(mixture)
        if not isinstance(child, GTMMixture):
            raise InvalidParameterError(f"mixture must be a GTMMixture, got {type(child).__name__}")
        if isinstance(self.gtm, list | tuple) and mixture is None:
            child.set_params(gtm=self.gtm[number])
        if places is not None:
            own = self.component(number)
            nearest = nearest_places(own.latent_, own.transform(X, **options), places)
            child.set_params(n_maps=len(places), partition=nearest)
        checked = check_weight(sample_weight, self._table(X))
        given = np.ones(len(share)) if checked is None else checked
        weight = np.where(share * given < _LEAST_MEMBERSHIP * np.max(given), 0.0, share * given)
        if np.count_nonzero(weight) < FEWEST_ROWS:
            raise InvalidDataError(
                f"only {np.count_nonzero(weight)} row(s) belong to map {number}, but a child needs at least "
                f"{FEWEST_ROWS}; look into another map"
            )
        fitted: GTMMixture = child.fit(X, sample_weight=weight, **options)
        return fitted

    # --------------------------------------------------------------------------------------- plumbing

    def _train(self, gtms: list[GTM], begun: MixtureStart) -> tuple[Rows, MixtureModel, MixtureState]:
        """EM from the best start."""
        model, rows = begun.model, begun.rows
        outcome = self._train_with_callbacks(
            rows.table,
            lambda state: self._attributes(gtms, begun, state),
            lambda **options: run_fixed_point(
                lambda: begun.state,
                lambda state: model.step(rows, state, self.relaxation),
                model.measure,
                **options,
            ),
        )
        for each in self.maps_:
            each.n_iter_, each.converged_ = self.n_iter_, self.converged_
            each.stop_reason_, each.history_ = self.stop_reason_, self.history_
        return rows.sample, model, outcome.state

    def _attributes(self, gtms: list[GTM], begun: MixtureStart, state: MixtureState) -> dict[str, Any]:
        """Attributes of a fitted mixture, its largest map first unless the maps have an order of their own."""
        shares = state.parameters.shares
        order = np.argsort(-shares, kind="stable") if begun.free else np.arange(len(shares))
        maps = [_fitted_map(gtms[j], begun, j, state) for j in order.tolist()]
        return {
            "maps_": maps,
            "mixing_": shares[order],
            "latent_": Atlas(tuple(each.latent_ for each in maps)),
            "n_features_in_": begun.rows.n_columns,
        }

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        pairs = zip(self.latent_.charts, self.maps_, strict=True)
        sound = {
            "maps_": len(self.maps_) > 0,
            "a mixing_ that adds up to 1": bool(np.isclose(self.mixing_.sum(), 1.0)),
            "a latent_ that is the atlas of its maps_": all(np.array_equal(a.nodes, b.latent_.nodes) for a, b in pairs),
        }
        require_parts(sound)


def _fitted_map(recipe: GTM, begun: MixtureStart, j: int, state: MixtureState) -> GTM:
    """Map j as a fitted GTM."""
    found: GTM = clone(recipe)
    job = begun.jobs[j]._replace(model=begun.model.maps[j])
    found._set(gtm_attributes(job, algorithm.GTMState(state.parameters.maps[j], state.statistics.maps[j])))
    return found


def _check_recipes(given: Any, n_maps: int, shared: bool) -> list[GTM]:
    """A recipe for each map; an error for recipes that a mixture cannot use."""
    recipes = list(given) if isinstance(given, list | tuple) else [GTM() if given is None else given] * n_maps
    if len(recipes) != n_maps:
        raise InvalidParameterError(f"gtm lists {len(recipes)} recipes for n_maps={n_maps}; give one for each map")
    for recipe in recipes:
        if type(recipe) is not GTM:
            raise InvalidParameterError(f"the maps of a mixture are GTMs, got {type(recipe).__name__}")
        check_parameters(recipe, recipe._constraints)
        _refuse_unknown_numbers(recipe)
        if shared and recipe.noise not in ("isotropic", "diagonal"):
            raise InvalidParameterError(
                Message(
                    f"a shared noise needs maps whose noise is 'isotropic' or 'diagonal', got {recipe.noise!r}",
                    Advice("shared_noise", False),
                )
            )
    if shared and len({str(recipe.noise) for recipe in recipes}) > 1:
        words = "a shared noise needs the same noise for all maps"
        raise InvalidParameterError(Message(words, Advice("shared_noise", False)))
    return recipes


def _refuse_unknown_numbers(recipe: GTM) -> None:
    """Raise an error for settings whose values a GTM finds from all rows while it trains alone."""
    if recipe.prior_precision == "evidence":
        raise InvalidParameterError("the maps of a mixture need a prior_precision that is a number, got 'evidence'")
    if not isinstance(recipe.init, str):
        raise InvalidParameterError(
            "the maps of a mixture need an init by name; which rows each begins with is partition"
        )
    penalized = recipe.regularization is not None or recipe.prior_precision is not None
    if has_open_numbers(recipe.basis, penalized=penalized):
        raise InvalidParameterError(
            f"the maps of a mixture need a Gaussian process with its length_scale, and its variance or a "
            f"regularization, got {recipe.basis}"
        )
    if recipe.trainer != "batch":
        raise InvalidParameterError(
            f"the maps of a mixture are trained together, so trainer={recipe.trainer!r} cannot be used; "
            "leave it at 'batch'"
        )


@fill_parameter_docs
@storable
class GTMHierarchy(HierarchyVerbs):
    """Maps of maps: a mixture of GTMs, a closer look into some of its maps, and so on down.

    Bishop and Tipping's way of looking: one map of everything, on which groups show; a mixture of maps for what it
    shows, and into each of those again. Rows are handed down by their memberships, never cut, and stay what they are at
    higher levels when lower ones are added. A *path* names a mixture by the maps that lead to it: ``()`` is the root,
    ``(0,)`` what was found in its map 0, ``(0, 2)`` what was found in map 2 of that.

    Parameters
    ----------
    mixture : GTMMixture, default=None
        Recipe for the root, of which a clone is fitted; None is ``GTMMixture(1)``, one map of everything.

    Attributes
    ----------
    levels_ : dict of GTMMixture
        The mixtures by their paths, in words: ``"root"``, ``"0"``, ``"0.2"``; :meth:`node` finds them by path.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Bishop & Tipping (1998), A hierarchical latent variable model for data visualization, IEEE PAMI 20.
    Tiňo & Nabney (2002), Hierarchical GTM: constructing localized nonlinear projection manifolds in a principled way,
    IEEE PAMI 24.

    Examples
    --------
    >>> from prinfold import GTM, GTMHierarchy, GTMMixture, datasets
    >>> X = datasets.make_pipe_flow(300, rng=0).X
    >>> recipe = GTM(nodes=8, basis=3)
    >>> tree = GTMHierarchy(GTMMixture(1, recipe)).fit(X)
    >>> child = tree.drill_down(X, (0,), GTMMixture(3, recipe, random_state=0))
    >>> tree.leaves
    [(0, 0), (0, 1), (0, 2)]
    """

    _stored: ClassVar[Kinds] = {"levels_": mapping_of(part("GTMMixture", n_features_in_="n_features_in_"))}
    _constraints: ClassVar[dict[str, Constraint]] = {
        "mixture": nothing | instance_of(GTMMixture, words="a GTMMixture"),
    }
    levels_: dict[str, GTMMixture]

    def __init__(self, mixture: Any = None) -> None:
        self.mixture = mixture

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> GTMHierarchy:
        """Fit the root; whatever was below it is gone.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows of numbers; cells that are missing are NaN.
        y : ignored
        {sample_weight}
        {errors}

        Returns
        -------
        GTMHierarchy
        """
        check_parameters(self, self._constraints)
        forget(self)
        recipe = GTMMixture(1) if self.mixture is None else clone(self.mixture)
        table = check_table(self, X, reset=True, min_rows=FEWEST_ROWS, accept_sparse=True, accept_missing=True)
        known = check_errors(errors, table, self)
        self.levels_ = {ROOT: recipe.fit(table, sample_weight=sample_weight, errors=known)}
        return self

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts({"levels_ of which each lies below a map of another": self._is_consistent()})
