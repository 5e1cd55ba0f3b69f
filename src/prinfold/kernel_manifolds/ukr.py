"""Unsupervised kernel regression (Meinicke, Klanke, Memisevic and Ritter 2005)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.base.unique_rows import Unique, keep_every_row, unique_rows
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, part
from prinfold.kernel_manifolds import latent_descent, ukr_training
from prinfold.kernel_manifolds.domain_thresholds import Contour
from prinfold.kernel_manifolds.feature_kernels import Features
from prinfold.kernel_manifolds.feature_space import FeatureSpaceManifold
from prinfold.kernel_manifolds.noise_level import neighborhood_noise
from prinfold.kernel_manifolds.objective import KernelRegression, MassTerm, make_target
from prinfold.kernel_manifolds.starts import (
    STARTS,
    TSNE_DIMENSIONS,
    Candidates,
    UKRStart,
    choose_start,
    default_sizes,
)
from prinfold.kernel_manifolds.structure_across import has_structure_across
from prinfold.loops import DESCENTS, StoppingRule
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, flag, instance_of, integer, nothing, one_of, real, several

AUTO_STARTS = ("pca", "lle", "isomap")
STRUCTURE_STARTS = ("pca", "tsne")
"""Embeddings compared by default, and those where what lies across the surface is structure. For curves one that closes
is among them."""

_MOST_ROWS_WITHOUT_LANDMARKS, _DEFAULT_LANDMARKS = 5000, 2000
"""Rows up to which all have latent points, and how many have beyond; the benchmark ``ukr_growth`` has the loss."""


@fill_parameter_docs
@storable
class UKR(FeatureSpaceManifold):
    """Unsupervised kernel regression: a surface through weighted means of rows that are neighbours in latent space.

    Every row has a latent point. The surface at any latent coordinate is the mean of all rows, weighted by a kernel
    on the distance to their latent points, and these are moved until each row is predicted well by the others.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the surface.
    kernel : {"gaussian", "quartic", "triweight"}, default="gaussian"
        Profile of the kernel in latent space. The latter two are zero beyond one bandwidth, which makes them faster.
    init : str, tuple of str or array of shape (n, Q), default="auto"
        Embeddings to begin with, of which the one that predicts rows best is taken: any of ``"pca"``, ``"lle"``,
        ``"isomap"``, ``"laplacian"``, ``"kernel_pca"``, ``"tsne"`` and, for curves that close, ``"loop"``, or latent
        coordinates of the rows; ``"auto"`` compares the first three, for curves the last too, and where rows vary
        across the surface in many directions the first and ``"tsne"``.
    n_neighbors : int or tuple of int, default=None
        Neighbourhood sizes of those embeddings; None tries several.
    bandwidth : float, default=None
        Bandwidth on an embedding of unit variance; None searches for it by cross-validation.
    stop : {"auto", "noise", "plateau", "minimum"}, default="auto"
        Where training ends: ``"noise"`` where the error has come down to what the noise alone would leave, which
        keeps the surface smooth; ``"plateau"`` after as many steps as help rows that a trial holds out; ``"minimum"``
        at a minimum of the cross-validated error, as Meinicke et al. have it. ``"auto"`` is the first for a surface
        with noise, and the second where rows vary across it in many directions, as images or groups do.
    threshold : "auto", Contour or float, default="auto"
        Density, relative to the peak of a single kernel, that bounds the latent domain. ``"auto"`` takes the least of
        a latent point, :class:`~prinfold.Contour` a contour that holds a share of the rows. A number is held while
        training too, with the plain error in place of the cross-validated one, and ``stop`` has no say then.
    homotopy : bool, default=False
        Whether to draw the start together and let it part under falling thresholds, against bad minima. It helped a
        circle that starts from its principal axis, and no other shape tried.
    feature_kernel : str or callable, default=None
        Kernel on the data whose feature space the surface lives in: ``"l1"``, one of scikit-learn's names,
        ``"precomputed"``, or a function of two tables. None is data space itself.
    feature_params : dict, default=None
        Further arguments of that kernel.
    preimage : bool, default=False
        Whether points of a surface in feature space are given in data space approximately, by the same weighted
        means of the training rows; without it they are refused.
    landmarks : "auto", int or None, default="auto"
        Rows that have latent points of their own, where there are more; the others are placed on the surface and
        averaged into the nearest. None is all; ``"auto"`` is all of up to 5000 rows, and otherwise 2000.
    solver : {"lbfgs", "rprop", "gradient"}, default="lbfgs"
        Way downhill. Meinicke et al. use RPROP.
    {max_iter, default=500}
    tol : float, default=1e-6
        Training ends when the share of the variance that is predicted changes by less in a step; 0 never stops
        early.
    {verbose}

    Attributes
    ----------
    embedding_ : ndarray of shape (n, Q)
        Latent points of the training rows, in bandwidths.
    candidates_ : Candidates
        Embeddings that were compared to begin with, and their errors; prints as a table.
    homotopy_ : Homotopy or None
        Error, steps and least density at each density threshold.
    latent_ : Cloud
        Latent points with weights, and the domain that their density bounds.
    threshold_ : float
        Density threshold η of the latent domain.
    noise_level_ : float
        Error at which training was to end; 0 where it was not to.
    values_ : ndarray of shape (m, D)
        Rows that belong to the latent points, about ``offset_``; in feature space their coordinates there.
    {offset_}
    span_ : Span or None
        The space that the training rows span in feature space; None in data space.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the share of the variance not predicted), ``error`` (per row; cross-validated, unless a
        number is held as ``threshold``), ``typical`` (the same with rows far off held down), ``fetched`` (latent
        points that had lost all neighbours) and ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Meinicke, Klanke, Memisevic & Ritter (2005), Principal surfaces from unsupervised kernel regression, IEEE
    Transactions on Pattern Analysis and Machine Intelligence 27.

    Examples
    --------
    >>> from prinfold import UKR, datasets
    >>> data = datasets.make_spiral(300, rng=0)
    >>> model = UKR(n_components=1).fit(data.X)
    >>> model.transform(data.X).shape
    (300, 1)
    """

    _stored: ClassVar[Kinds] = {
        **FeatureSpaceManifold._stored,
        "candidates_": part("Candidates"),
        "homotopy_": nothing | part("Homotopy"),
        "noise_level_": number,
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **FeatureSpaceManifold._constraints,
        "init": one_of(("auto", *STARTS))
        | several(one_of(STARTS), "names of embeddings")
        | instance_of(np.ndarray, words="an array of latent coordinates"),
        "n_neighbors": nothing | integer(1) | several(integer(1), "numbers of neighbours"),
        "bandwidth": nothing | real(0, above=True),
        "stop": one_of(("auto", *latent_descent.STOPS)),
        "homotopy": flag,
        "landmarks": one_of(("auto",)) | nothing | integer(10),
        "solver": one_of(DESCENTS),
    }
    candidates_: Candidates
    homotopy_: ukr_training.Homotopy | None
    noise_level_: float

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        init: Any = "auto",
        n_neighbors: Any = None,
        bandwidth: float | None = None,
        stop: str = "auto",
        threshold: Any = "auto",
        homotopy: bool = False,
        feature_kernel: Any = None,
        feature_params: dict[str, Any] | None = None,
        preimage: bool = False,
        landmarks: int | str | None = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.init = init
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.stop = stop
        self.threshold = threshold
        self.homotopy = homotopy
        self.feature_kernel = feature_kernel
        self.feature_params = feature_params
        self.preimage = preimage
        self.landmarks = landmarks
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of the nearest points of the surface, each found on its own.

        Equation (19) of Meinicke et al. (2005).

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._latent_of(self._table(X))

    # ---------------------------------------------------------------------------------------- training

    def _collapse(self, table: FloatArray, weight: FloatArray | None) -> Unique:
        # The columns of a kernel matrix belong to its rows: repeats cannot be left out.
        return keep_every_row(table, weight) if self._is_precomputed() else unique_rows(table, weight)

    def _find_latent_points(self, table: FloatArray, rows: Unique) -> IntArray:
        chosen = self._choose_landmarks(rows)
        features = self._make_features(rows, chosen)
        problem = self._problem(features, rows, chosen)
        structured = self._asks_for_structure() and has_structure_across(problem.Y, problem.weight, self.n_components)
        start = self._start(problem, rows, chosen, structured)
        plan = self._plan(problem, start, structured)
        names = rows.positions(chosen)

        def attributes(place: latent_descent.LatentState) -> dict[str, Any]:
            surface = self._surface_attributes(
                place.state.x, problem.Y, problem.weight, names[names >= 0], features.origin
            )
            return surface | {"candidates_": start.candidates, **plan.attributes, **self._span_attributes(features)}

        loop = partial(
            latent_descent.train_latent_points,
            problem,
            plan.X,
            descent=DESCENTS[self.solver],
            rule=plan.rule,
            term=plan.term,
        )
        self._train_with_callbacks(table, attributes, loop)
        if self.feature_kernel is None and len(chosen) < len(rows.rows):
            return self._average_into_landmarks(rows)
        return names

    def _asks_for_structure(self) -> bool:
        # In feature space noise is not the same in all directions, and a surface bends in many.
        return self.feature_kernel is None and super()._asks_for_structure()

    def _choose_landmarks(self, rows: Unique) -> IntArray:
        """(m,) indices of the distinct rows that have latent points of their own."""
        n, wanted = len(rows.rows), self.landmarks
        if isinstance(wanted, str):
            wanted = None if n <= _MOST_ROWS_WITHOUT_LANDMARKS or self._is_precomputed() else _DEFAULT_LANDMARKS
        if wanted is None or wanted >= n:
            return np.arange(n)
        if self._is_precomputed():
            raise InvalidParameterError(
                Message(
                    f"{wanted} landmarks cannot be chosen from a precomputed kernel",
                    Advice("landmarks", words="leave {} at None, and choose the rows before computing the kernel"),
                )
            )
        return evenly_by_radius(rows.rows, rows.weight, wanted)

    def _problem(self, features: Features, rows: Unique, chosen: IntArray) -> latent_descent.RegressionProblem:
        Y, weight, profile = features.coordinates(rows.rows[chosen]), rows.weight[chosen], self._profile(len(chosen))
        regression = KernelRegression(make_target(Y), weight, profile, leave_one_out=not self._keeps_threshold())
        if len(chosen) == len(rows.rows):
            return latent_descent.RegressionProblem(Y, regression)
        # Landmarks lie farther apart than rows do, and their neighbours show the bends of the surface as noise.
        noise = neighborhood_noise(features.coordinates(rows.rows), rows.weight, self.n_components)
        return latent_descent.RegressionProblem(Y, regression, noise)

    def _keeps_threshold(self) -> bool:
        return not isinstance(self.threshold, str | Contour)

    def _start(
        self, problem: latent_descent.RegressionProblem, rows: Unique, chosen: IntArray, structured: bool
    ) -> UKRStart:
        """Initial latent points: candidates, their scales, and the best of them.

        Steps 1 to 3 of section 2.3 of Meinicke et al. (2005).
        """
        given = self._initial_coordinates(rows)
        sizes = np.atleast_1d(default_sizes(len(chosen)) if self.n_neighbors is None else self.n_neighbors)
        names = self.init
        if isinstance(names, str) and names == "auto":
            names = STRUCTURE_STARTS if structured and self.n_components <= TSNE_DIMENSIONS else AUTO_STARTS
            names = (*names, "loop") if self.n_components == 1 else names
        return choose_start(
            problem.Y,
            problem.weight,
            self.n_components,
            problem.validated_error,
            problem.regression.profile,
            starts=() if given is not None else (names,) if isinstance(names, str) else names,
            sizes=sizes.tolist(),
            given=None if given is None else given[chosen],
            bandwidth=self.bandwidth,
            error_of=lambda some: problem.restricted_to(some).validated_error,
        )

    def _plan(self, problem: latent_descent.RegressionProblem, start: UKRStart, structured: bool) -> UKRPlan:
        """The homotopy and the stopping rule, steps 4 and 5 of that section; a given density threshold decides both."""
        held, descent = self._keeps_threshold(), DESCENTS[self.solver]
        # The noise is judged by the start: what comes later may have followed it.
        stop = "minimum" if held else latent_descent.choose_stop(self.stop, structured)
        rule = latent_descent.STOPS[stop](problem, start.latent, descent)
        if held and self.threshold >= 1:
            raise InvalidParameterError(
                f"threshold={self.threshold!r} can be kept by no row: densities are relative to the peak of a single "
                "kernel and below 1; choose less, such as 0.05"
            )
        path, X = None, start.latent
        if self.homotopy:
            least = float(self.threshold) if held else 0.0
            X, path = ukr_training.homotopy(problem, X, descent, rule, least=least)
        if not held:
            return UKRPlan(X, path, rule, None)
        X = ukr_training.contract_to_density(problem, X, float(self.threshold))
        return UKRPlan(X, path, rule, ukr_training.make_barrier(problem, float(self.threshold), X))

    def _average_into_landmarks(self, rows: Unique) -> IntArray:
        """Place all rows on the surface of the landmarks, and let each landmark stand for the rows nearest to it."""
        Z = self._nearest(rows.rows).latent
        near = ukr_training.nearest_centers(self.latent_.centers, Z)
        centers, values, weight = ukr_training.average_by_name(near, rows.weight, Z, rows.rows - self.offset_)
        index = rows.unique_index[rows.unique_index >= 0]
        surface = self._surface_attributes(centers, values, weight, np.zeros(len(index), dtype=np.intp), self.offset_)
        self._set(surface | {"embedding_": surface["latent_"].domain.retract(Z)[index]})
        return rows.unique_index


class UKRPlan(NamedTuple):
    """Latent points to train from, the homotopy before, the stopping rule, and the barrier on densities."""

    X: FloatArray
    homotopy: ukr_training.Homotopy | None
    rule: StoppingRule
    term: MassTerm | None

    @property
    def attributes(self) -> dict[str, Any]:
        return {"homotopy_": self.homotopy, "noise_level_": self.rule.level}
