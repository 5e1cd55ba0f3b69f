"""Clustering by the modes of a density (mean shift: Fukunaga and Hostetler 1975; Comaniciu and Meer 2002)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray
from prinfold.base.file_requirements import require_parts
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.base.unique_rows import unique_rows
from prinfold.density.densities import STORED_BANDWIDTH
from prinfold.density.recipes import BANDWIDTH, DENSITY, MASK, DensityRecipe
from prinfold.density.ridges.mean_shift import STEPS, Flow, FlowResult, Status, fits_space
from prinfold.density.ridges.modes import Modes, find_modes, label_rows
from prinfold.density.row_spaces import SPACES, RowSpace
from prinfold.exceptions import Advice, DegenerateWarning, Message, warn_caller
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part, whole_numbers
from prinfold.rows.rows import blas_on_one_thread
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, integer, one_of, random_state, real
from prinfold.validation.tables import check_table, check_weight, forget


@fill_parameter_docs
@storable
class ModeClustering(ClusterMixin, StoredEstimator):
    """Cluster rows by the mode of their density that mean shift carries them to.

    The number of clusters comes with the bandwidth, clusters may have any shape, and a new row gets its cluster by
    the same mean shift. It is the density ridge of dimension 0.

    Parameters
    ----------
    {bandwidth.kernels}
    space : {"flat", "sphere"}, default="flat"
        What rows are: points of flat space, or longitudes and latitudes in degrees, on a sphere. There kernels depend
        on the angle between directions.
    mask : callable or array of shape (m, D), default=None
        Where rows could have been seen, so that the edges of what was observed make no modes: a function that tells of
        rows (k, D) which could, or points spread evenly over what was observed.
    {density}
    min_weight : float, default=0.0
        Weight of rows below which a mode is no cluster, and its rows are labelled −1; each row weighs 1 if no weights
        are given. The heaviest mode is a cluster in any case, with a warning.
    step : {"newton", "mean_shift"}, default="newton"
        Whether Newton's step takes over from mean shift near a mode.
    {max_iter, default=1000}
    tol : float, default=1e-6
        Length in bandwidths of a step below which a row has arrived; 0 never stops early.
    {random_state.bandwidth}

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each training row, by falling weight of the clusters; −1 for rows that came to rest at no mode of
        enough weight.
    modes_ : ndarray of shape (k, D)
        Where the density has its maxima.
    places_ : ndarray
        The same in the coordinates that the method works in: on a sphere, places in space.
    space_ : Flat or Globe
        The space that rows lie in.
    mode_log_density_ : ndarray of shape (k,)
        Log density there.
    mode_weight_ : ndarray of shape (k,)
        Weight of the training rows that go there.
    status_ : ndarray of shape (n,)
        How the climb of each training row ended, a :class:`~prinfold.density.ridges.mean_shift.Status`.
    flow_ : Flow
        The climb, with the density and all settings.
    bandwidth_ : float or ndarray
        Bandwidth of the density; NaN where a density was given.
    n_iter_ : int
        Steps of the row that took most.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Comaniciu & Meer (2002), Mean shift: a robust approach toward feature space analysis, IEEE Transactions on Pattern
    Analysis and Machine Intelligence 24.

    Examples
    --------
    >>> import numpy as np
    >>> from prinfold import ModeClustering
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(8, 1, (60, 2))])
    >>> model = ModeClustering(bandwidth=1.0).fit(X)
    >>> model.mode_weight_
    array([100.,  60.])
    """

    _stored: ClassVar[Kinds] = {
        "flow_": part("Flow"),
        "labels_": whole_numbers("n", least=-1),
        "places_": numbers("k", "flow_.density.n_columns"),
        "mode_log_density_": numbers("k"),
        "mode_weight_": numbers("k", least=0),
        "status_": whole_numbers("n", least=0),
        "space_": part("Flat", "Globe"),
        "bandwidth_": STORED_BANDWIDTH,
        "n_iter_": integer(0),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "bandwidth": BANDWIDTH,
        "space": one_of(tuple(SPACES)),
        "mask": MASK,
        "density": DENSITY,
        "min_weight": real(0),
        "step": one_of(tuple(STEPS)),
        "max_iter": integer(0),
        "tol": real(0),
        "random_state": random_state,
    }
    labels_: IntArray
    places_: FloatArray
    space_: RowSpace
    mode_log_density_: FloatArray
    mode_weight_: FloatArray
    status_: IntArray
    flow_: Flow
    bandwidth_: Any
    n_iter_: int

    def __init__(
        self,
        *,
        bandwidth: Any = "auto",
        space: str = "flat",
        mask: Any = None,
        density: Any = None,
        min_weight: float = 0.0,
        step: str = "newton",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.space = space
        self.mask = mask
        self.density = density
        self.min_weight = min_weight
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the modes, and the rows that belong to them.

        Parameters
        ----------
        {X}
        y : ignored
        {sample_weight}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        forget(self)
        table = check_table(self, X, reset=True)
        rows = unique_rows(table.astype(np.float64, copy=False), check_weight(sample_weight, table))
        space = SPACES[self.space](rows.rows)
        space.dimension(table.shape[1])
        recipe = DensityRecipe(self.density, self.bandwidth, self.mask, self.random_state)
        density, self.bandwidth_, edge = recipe.make(rows.rows, rows.weight, 0, space)
        places = space.enter(rows.rows)
        box = np.stack([places.min(axis=0), places.max(axis=0)])
        flow = Flow(
            density,
            0,
            newton=STEPS[self.step],
            max_iter=self.max_iter,
            tol=self.tol,
            box=box,
            sphere=space.round,
            edge=edge,
        )
        found = _climb(flow, places)
        modes = find_modes(found, rows.weight, density.length(found.points), self.min_weight)
        self.flow_, self.space_, self.n_iter_ = flow, space, int(found.n_iter.max())
        self.places_, self.mode_log_density_, self.mode_weight_ = modes
        self.labels_, self.status_ = self._label_table(found, table, rows.unique_index)
        if self.mode_weight_[0] < self.min_weight:
            words = f"no mode has the weight min_weight={self.min_weight:g}: the heaviest has {self.mode_weight_[0]:g}"
            warn_caller(Message(f"{words} and is kept", Advice("min_weight", words="lower {}")), DegenerateWarning)
        unsettled = int((self.status_ == Status.NOT_CONVERGED).sum())
        if unsettled and self.tol > 0:
            words = f"{unsettled} of {len(table)} rows were still climbing after {self.max_iter} steps"
            more = Advice("max_iter", words="raise {}"), Advice("tol", words="raise {}")
            warn_caller(Message(words, *more), DegenerateWarning)
        return self

    @property
    def modes_(self) -> FloatArray:
        """Points of the maxima of the density, in units of the data."""
        check_is_fitted(self)
        return self.space_.leave(self.places_)

    def predict(self, X: Any) -> IntArray:
        """The cluster of each row: the mode that it climbs to, −1 where that is none of the clusters'.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._labels(self._climb_rows(self._table(X)))

    def flow(self, X: Any) -> FlowResult:
        """The climb of each row: where it ends and how.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        FlowResult
            ``points`` (n, D), ``curvature`` (n, D), ``log_density`` (n,), ``status`` (n,) and ``n_iter`` (n,).
        """
        return self._climb_rows(self._table(X)).in_data_units(self.space_)

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of rows.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.flow_.density.log_density(self.space_.enter(self._table(X)))

    # --------------------------------------------------------------------------------------- plumbing

    def _climb_rows(self, table: FloatArray) -> FlowResult:
        return _climb(self.flow_, self.space_.enter(table))

    def _labels(self, found: FlowResult) -> IntArray:
        modes = Modes(self.places_, self.mode_log_density_, self.mode_weight_)
        return label_rows(found, modes, self.flow_.density.length(found.points))

    def _label_table(self, found: FlowResult, table: FloatArray, name: IntArray) -> tuple[IntArray, IntArray]:
        """Labels and statuses of the training rows from those of different rows; rows without weight climb now."""
        labels, status = self._labels(found)[name], found.status[name]
        others = np.flatnonzero(name < 0)
        if len(others):
            late = self._climb_rows(table[others])
            labels[others], status[others] = self._labels(late), late.status
        return labels, status

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        k = len(self.places_)
        sound = {
            "places_": k > 0,
            "a flow_ in the space_ of its columns": fits_space(self.flow_, self.space_, self.n_features_in_),
            "a flow_ to points": self.flow_.dimension == 0,
            "labels_ of its modes": bool((self.labels_ < k).all()),
        }
        require_parts(sound)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")


def _climb(flow: Flow, X: FloatArray) -> FlowResult:
    with blas_on_one_thread():  # held throughout: asking for it at every step would show
        return flow(X)
