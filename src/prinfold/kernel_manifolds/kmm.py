"""Kernel map manifolds (Gerber, Tasdizen and Whitaker 2009)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from prinfold._typing import FloatArray, IntArray
from prinfold.base.unique_rows import Unique
from prinfold.exceptions import DegenerateWarning
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers, part, positive
from prinfold.kernel_manifolds import kmm_training
from prinfold.kernel_manifolds.fitting import TrainedKernelManifold
from prinfold.kernel_manifolds.kmm_table import Residuals, join
from prinfold.kernel_manifolds.latent_descent import LatentState, choose_stop
from prinfold.kernel_manifolds.starts import STARTS, TSNE_DIMENSIONS
from prinfold.kernel_manifolds.structure_across import has_structure_across
from prinfold.loops import DESCENTS
from prinfold.validation.failures import name_call_failures
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import (
    Constraint,
    check_call,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    real,
    several,
)

AUTO_STARTS, STRUCTURE_STARTS = ("isomap",), ("tsne",)
"""Embeddings to begin with by default, and where what lies across the surface is structure. For curves one that closes
is among them."""

_LARGEST_ANNEALING = 1e6
"""Largest bandwidths at which annealing may begin: at much smaller ones all rows already have equal weight."""


@fill_parameter_docs
@storable
class KMM(TrainedKernelManifold):
    """Kernel map manifolds: coordinates by kernel regression on the data, a surface by kernel regression on these.

    Every row has a parameter. The coordinates f(y) of any row are the mean of the parameters, weighted by a kernel on
    the distance in data space, and the surface g(x) is the mean of the rows, weighted by a kernel on the distance of
    their coordinates. Parameters start from an embedding and are moved until g(f(y)) is near y.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the surface.
    kernel : {"gaussian", "quartic", "triweight"}, default="gaussian"
        Profile of the kernel of g; that of f is Gaussian.
    init : str, tuple of str or array of shape (n, Q), default="auto"
        Embeddings to begin with, of which the one with the lowest residual is taken: any of ``"pca"``, ``"lle"``,
        ``"isomap"``, ``"laplacian"``, ``"kernel_pca"``, ``"tsne"`` and, for curves that close, ``"loop"``, or
        coordinates of the rows. ``"auto"`` is ``"isomap"``, or ``"tsne"`` where rows vary across the surface in many
        directions, as images or groups do; for curves the loop is compared with it.
    n_neighbors : int or tuple of int, default=None
        Neighbours that embedding and bandwidths go by, of which the number with the lowest residual is taken, or with
        the stop ``"noise"`` the largest that leaves no more than noise; None compares 4, 6, 10, 15 and 25.
    bandwidth_rule : {"auto", "mean", "kth", "effective"}, default="auto"
        Bandwidths are average distances between neighbours, over all k of a row (``"mean"``) or to the k-th alone
        (``"kth"``); or so wide that k neighbours count (``"effective"``). ``"auto"`` is the first, and the last where
        rows vary across the surface in many directions.
    data_bandwidth : float, default=None
        Bandwidth of f, in units of the data; None goes by the neighbours of the rows.
    latent_bandwidth : float, default=None
        Bandwidth of g, in units of the embedding; None goes by the neighbours of the coordinates to begin with.
    truncation : float, default=5.0
        Bandwidths beyond which the kernel of f is zero.
    leave_one_out : bool, default=True
        Whether a row has no part in its own reconstruction while training. Without it the residual has the trivial
        minimum 0, to which only ``stop`` bars the way.
    stop : {"auto", "noise", "plateau", "validation", "minimum"}, default="auto"
        Where training ends: ``"noise"`` where the residual has come down to what the noise alone would leave;
        ``"plateau"`` after as many steps as help rows that a trial holds out; ``"validation"`` where rows held out
        are no longer reconstructed better, as Gerber et al. have it; ``"minimum"`` at a minimum of the residual.
        ``"auto"`` is the first for a surface with noise, and the second where rows vary across it in many directions.
    validation : float, default=0.3
        Share of the rows that ``stop="validation"`` holds out; they choose the start too.
    annealing : float, default=None
        How many times its own the bandwidth of g is to begin with, before it falls step by step; None does without.
    threshold : "auto", Contour or float, default="auto"
        Density, relative to the peak of a single kernel, that bounds the latent domain. ``"auto"`` takes the least of
        a training row's coordinates, :class:`~prinfold.Contour` a contour that holds a share of the rows.
    solver : {"lbfgs", "rprop", "gradient"}, default="lbfgs"
        Way downhill. Gerber et al. use gradient descent.
    {max_iter, default=500}
    tol : float, default=1e-6
        Training ends when the share of the variance that is reconstructed changes by less in a step; 0 never stops
        early.
    {verbose}

    Attributes
    ----------
    parameters_ : ndarray of shape (m, Q)
        Parameters z of the different training rows, in latent bandwidths.
    embedding_ : ndarray of shape (n, Q)
        Coordinates f(y) of the training rows, in latent bandwidths.
    data_bandwidth_ : float
        Bandwidth of f.
    latent_bandwidth_ : float
        Bandwidth of g, in units of the embedding to begin with.
    candidates_ : Residuals
        Starts and numbers of neighbours that were compared, and their residuals; prints as a table.
    latent_ : Cloud
        Coordinates with weights, and the domain that their density bounds.
    threshold_ : float
        Density threshold η of the latent domain.
    noise_level_ : float
        Residual at which training was to end; 0 where it was not to.
    values_ : ndarray of shape (m, D)
        Training rows that differ, about ``offset_``; without those held out.
    offset_ : ndarray of shape (D,)
        Mean of those rows.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the share of the variance not reconstructed), ``error`` (the residual, per row),
        ``typical`` (the same with rows far off held down), ``validation`` (that of rows held out, where there are),
        ``fetched`` (coordinates that had lost all neighbours) and ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Gerber, Tasdizen & Whitaker (2009), Dimensionality reduction and principal surfaces via kernel map manifolds,
    International Conference on Computer Vision.

    Examples
    --------
    >>> from prinfold import KMM, datasets
    >>> data = datasets.make_swiss_roll(300, noise=0.2, rng=0)
    >>> model = KMM().fit(data.X)
    >>> model.reconstruct(data.X).shape
    (300, 3)
    """

    _stored: ClassVar[Kinds] = {
        **TrainedKernelManifold._stored,
        "parameters_": numbers("latent_.centers", "latent_.n_columns"),
        "data_bandwidth_": positive,
        "latent_bandwidth_": positive,
        "candidates_": part("Residuals"),
        "noise_level_": number,
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **TrainedKernelManifold._constraints,
        "init": one_of(("auto", *STARTS))
        | several(one_of(STARTS), "names of embeddings")
        | instance_of(np.ndarray, words="an array of latent coordinates"),
        "n_neighbors": nothing | integer(1) | several(integer(1), "numbers of neighbours"),
        "bandwidth_rule": one_of(("auto", *kmm_training.BANDWIDTH_RULES)),
        "data_bandwidth": nothing | real(0, above=True),
        "latent_bandwidth": nothing | real(0, above=True),
        "truncation": real(0, above=True),
        "leave_one_out": flag,
        "stop": one_of(("auto", *kmm_training.STOPS)),
        "validation": Constraint(lambda v: real(0, above=True).test(v) and v < 1, "a number between 0 and 1"),
        "annealing": nothing | real(1, maximum=_LARGEST_ANNEALING),
        "solver": one_of(tuple(DESCENTS)),
    }
    parameters_: FloatArray
    data_bandwidth_: float
    latent_bandwidth_: float
    candidates_: Residuals
    noise_level_: float

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "gaussian",
        init: Any = "auto",
        n_neighbors: Any = None,
        bandwidth_rule: str = "auto",
        data_bandwidth: float | None = None,
        latent_bandwidth: float | None = None,
        truncation: float = 5.0,
        leave_one_out: bool = True,
        stop: str = "auto",
        validation: float = 0.3,
        annealing: float | None = None,
        threshold: Any = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.init = init
        self.n_neighbors = n_neighbors
        self.bandwidth_rule = bandwidth_rule
        self.data_bandwidth = data_bandwidth
        self.latent_bandwidth = latent_bandwidth
        self.truncation = truncation
        self.leave_one_out = leave_one_out
        self.stop = stop
        self.validation = validation
        self.annealing = annealing
        self.threshold = threshold
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def transform(self, X: Any) -> FloatArray:
        """Coordinates f(y) of rows, each on its own (2); on the edge of the latent domain where they would be outside.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        table = self._table(X)
        return self._latent_of(table).astype(table.dtype, copy=False)

    # ---------------------------------------------------------------------------------------- training

    def _latent_of(self, table: FloatArray) -> FloatArray:
        Y = np.asarray(table, dtype=np.float64) - self.offset_
        return self.latent_.domain.retract(np.asarray(self._coordinates().shares(Y) @ self.parameters_))

    def _coordinates(self) -> kmm_training.CoordinateMap:
        return kmm_training.CoordinateMap(self.values_, self.latent_.weight, self.data_bandwidth_, self.truncation)

    def _find_latent_points(self, table: FloatArray, rows: Unique) -> IntArray:
        everywhere = rows.rows.astype(np.float64)
        structured = self._asks_for_structure() and has_structure_across(everywhere, rows.weight, self.n_components)
        stop = kmm_training.STOPS[choose_stop(self.stop, structured)]
        held = (
            kmm_training.hold_out(everywhere, rows.weight, self.validation)
            if stop.holds_out
            else np.empty(0, dtype=np.intp)
        )
        chosen = np.setdiff1d(np.arange(len(everywhere)), held)
        offset = np.average(everywhere[chosen], axis=0, weights=rows.weight[chosen])
        start = self._start(everywhere - offset, rows, chosen, held, structured)
        names = rows.positions(chosen)
        maps, Z, descent = start.maps, start.Z, DESCENTS[self.solver]
        rule = stop.rule(maps, Z, descent)
        if self.annealing is not None:
            Z = kmm_training.anneal(maps, Z, self.annealing, descent, rule)

        def attributes(place: LatentState) -> dict[str, Any]:
            Y, X = maps.problem.Y, maps.averaged.latent(place.state.x)
            surface = self._surface_attributes(X, Y, maps.problem.weight, names[names >= 0], offset)
            return surface | {
                "parameters_": place.state.x,
                "data_bandwidth_": maps.coordinates.bandwidth,
                "latent_bandwidth_": start.latent_bandwidth,
                "candidates_": start.residuals,
                "noise_level_": rule.level,
            }

        self._train_with_callbacks(
            table, attributes, partial(kmm_training.train_maps, maps, Z, descent=descent, rule=rule)
        )
        return names

    def _asks_for_structure(self) -> bool:
        return self.bandwidth_rule == "auto" or super()._asks_for_structure()

    def _start(
        self, Y: FloatArray, rows: Unique, chosen: IntArray, held: IntArray, structured: bool
    ) -> kmm_training.KMMStart:
        """Embedding and number of neighbours, and with it the bandwidths, chosen by residual."""
        given = self._initial_coordinates(rows)
        names = () if given is not None else (self.init,) if isinstance(self.init, str) else self.init
        if names == ("auto",):
            names = STRUCTURE_STARTS if structured and self.n_components <= TSNE_DIMENSIONS else AUTO_STARTS
            names = (*names, "loop") if self.n_components == 1 else names
        return kmm_training.choose_start(
            Y[chosen],
            rows.weight[chosen],
            self.n_components,
            self._setting(len(chosen), structured),
            kmm_training.ValidationRows(Y[held], rows.weight[held]),
            starts=names,
            sizes=kmm_training.NEIGHBORHOOD_SIZES
            if self.n_neighbors is None
            else np.atleast_1d(self.n_neighbors).tolist(),
            given=None if given is None else given[chosen],
            smooth=kmm_training.STOPS[choose_stop(self.stop, structured)].smooth,
        )

    def _setting(self, n_rows: int, structured: bool) -> kmm_training.KMMSetting:
        rule = self.bandwidth_rule
        return kmm_training.KMMSetting(
            self._profile(n_rows),
            self.truncation,
            ("effective" if structured else "mean") if rule == "auto" else rule,
            self.data_bandwidth,
            self.latent_bandwidth,
            self.leave_one_out,
        )


_COUNTS = integer(1) | Constraint(
    lambda v: len(v) > 0 and all(map(integer(1).test, np.asarray(v).tolist())), "several of them"
)


@name_call_failures
@check_call(model=nothing | instance_of(KMM, words="a KMM"), dimensions=_COUNTS, n_neighbors=_COUNTS)
def select_kmm(
    X: Any,
    dimensions: Sequence[int] = (1, 2, 3, 4),
    n_neighbors: Sequence[int] = (4, 6, 8, 10),
    *,
    model: KMM | None = None,
    sample_weight: Any = None,
) -> Residuals:
    """Residuals of kernel map manifolds before training, by latent dimension and number of neighbours.

    Figure 1 of Gerber et al.: where the residual stops falling, further dimensions explain nothing. Numbers of
    neighbours can be compared in the same dimension. Where an embedding is folded in every one of them, a further
    dimension unfolds it, and the residual falls beyond the dimension of the surface.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows.
    dimensions : sequence of int, default=(1, 2, 3, 4)
        Latent dimensions.
    n_neighbors : sequence of int, default=(4, 6, 8, 10)
        Numbers of neighbours; where so few leave the rows in several pieces, more are taken.
    model : KMM, default=None
        Other settings, such as ``stop="validation"`` for residuals of rows held out; None is the defaults, with
        Isomap to begin with and mean distances for bandwidths whatever the dimension.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows.

    Returns
    -------
    Residuals
        Prints as a table; :func:`prinfold.plot.residuals` draws it.

    Examples
    --------
    >>> from prinfold import datasets, select_kmm
    >>> table = select_kmm(datasets.make_half_circle(150, rng=0).X, dimensions=(1, 2), n_neighbors=(8,))
    >>> table.dimensions.tolist()
    [1, 2]
    """
    # One embedding and one kind of bandwidth for all dimensions, or residuals could not be compared.
    given = KMM(init=AUTO_STARTS, bandwidth_rule="mean") if model is None else model
    tables = []
    sizes = tuple(np.atleast_1d(n_neighbors).tolist())
    for dimension in np.atleast_1d(dimensions).tolist():
        trial = clone(given).set_params(n_components=dimension, n_neighbors=sizes, max_iter=0, tol=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)
            tables.append(trial.fit(X, sample_weight=sample_weight).candidates_)
    return join(tables)
