"""Ridges of a density by subspace-constrained mean shift (Ozertem & Erdogmus 2011)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import TRAINING, require_parts
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.roots import ROOT
from prinfold.base.unique_rows import Unique, unique_rows
from prinfold.density.densities import STORED_BANDWIDTH
from prinfold.density.recipes import BANDWIDTH, DENSITY, MASK, DensityRecipe, EstimatedDensity
from prinfold.density.ridges.coordinates import Coordinates, RidgeCoordinates, make_coordinates
from prinfold.density.ridges.mean_shift import (
    STARTS,
    STEPS,
    Flow,
    FlowResult,
    RidgeWalk,
    Status,
    density_floor,
    fits_space,
    select_ridge_rows,
)
from prinfold.density.ridges.normals import NORMALS
from prinfold.density.ridges.significance import ridge_pieces
from prinfold.density.ridges.support import PERSISTENT, persistent
from prinfold.density.ridges.verbs import RidgeVerbs
from prinfold.density.row_spaces import SPACES, RowSpace
from prinfold.exceptions import Advice, DegenerateWarning, InvalidDataError, Message, percent, warn_caller
from prinfold.files import storable
from prinfold.files.kinds import ANY, Kinds, number, numbers, part, record_of, whole_numbers
from prinfold.geometry.projection import Projection
from prinfold.latent import LatentSpace
from prinfold.loops import Arrived, Listeners, Outcome, StopReason, run_fixed_point
from prinfold.rows.rows import blas_on_one_thread
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import (
    Constraint,
    check_parameters,
    flag,
    instance_of,
    integer,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import as_numbers, check_table, check_weight, forget

_NEIGHBORS = 30
"""Rows whose covariance gives the directions of ``normal="neighbors"``."""

_WARN_MOVING_SHARE = 0.01
"""Share of the rows still moving from which on a warning is given: a few never converge."""

_WARN_LOST_SHARE = 0.5
"""Share of the rows that end on no ridge from which on a warning is given."""

_MOST_COLUMNS = 5
"""Columns from which on a warning is given that a density of so many is uncertain."""

_WARN_PIECES, _WARN_LARGEST_SHARE = 10, 0.5
"""Pieces of a ridge beyond which a warning is given, where none of them holds this share of the points."""


class _LazyCoordinates:
    """Coordinates on a ridge, made when first needed; what holds this does not change meanwhile."""

    def __init__(self, flow: Flow, ridge: FlowResult, min_length: float, min_support: float) -> None:
        self.flow, self.ridge, self.min_length, self.min_support = flow, ridge, min_length, min_support

    @cached_property
    def made(self) -> RidgeCoordinates:
        return make_coordinates(self.flow, self.ridge, self.min_length, self.min_support)

    @property
    def coordinates(self) -> Coordinates:
        return self.made.coordinates


class _RidgeProblem(NamedTuple):
    """The flow to the ridge, its bandwidth, the space and the different rows, before any row moves."""

    flow: Flow
    bandwidth: Any
    space: RowSpace
    rows: Unique


@fill_parameter_docs
@storable
class DensityRidge(RidgeVerbs, PrincipalManifold):
    """Ridges of the density of rows: curves, surfaces or more, with branches, crossings and loops as they come.

    A point lies on a ridge where the density is highest across it. Every row is carried there by subspace-constrained
    mean shift (:meth:`flow`), and what the rows come to is given coordinates: arc length on the branches of a graph
    where the ridge is a curve, a chart where it is a surface.

    Parameters
    ----------
    n_components : int, default=1
        Dimension of the ridge, less than the number of columns; :class:`~prinfold.ModeClustering` is that of 0.
    {bandwidth.kernels}
    space : {"flat", "sphere"}, default="flat"
        What rows are: points of flat space, or longitudes and latitudes in degrees, on a sphere. There kernels depend
        on the angle between directions, and all lengths are degrees along great circles.
    mask : callable or array of shape (m, D), default=None
        Where rows could have been seen, so that the edges of what was observed are no ridges: a function that tells of
        rows (k, D) which could, or points spread evenly over what was observed.
    {density}
    normal : {"inverse_covariance", "hessian", "neighbors", "neighbors_about_point"}, default="inverse_covariance"
        What tells the directions across the ridge: the local inverse covariance −∇² log p, the Hessian −∇²p, or the
        covariance of the 30 nearest rows, about their mean or about the place itself.
    step : {"newton", "mean_shift"}, default="newton"
        Whether Newton's step takes over from mean shift within a tenth of a bandwidth of the ridge.
    start : "data", "mesh" or array of shape (m, D), default="data"
        What is carried to the ridge: the rows, a mesh over them half a bandwidth wide (up to three columns), or points.
    min_density : float, default=0.0
        Where a ridge ends: at the density that this share of the rows does not have. With 0, a little below that of
        any row.
    min_gap : float, default=0.05
        Least :attr:`ridgeness <prinfold.density.ridges.mean_shift.FlowResult.ridgeness>` of a point that is kept.
    min_length : float, default=3.0
        Length in bandwidths up to which a branch that leads nowhere is left out, where the ridge is a curve.
    min_support : float, default=0.8
        Least :attr:`branch_support_` of a branch that is kept, as a share of the mean of all by length, where the ridge
        is a curve; 0 keeps all branches.
    {root.graph}
    {max_iter, default=500}
    tol : float, default=1e-7
        Length in bandwidths of a step of mean shift across the ridge below which a row has arrived; 0 never stops
        early.
    {random_state.bandwidth}
    {verbose}

    Attributes
    ----------
    flow_ : Flow
        The way to the ridge, with the density and all settings, as :meth:`flow` goes it.
    bandwidth_ : float or ndarray
        Its bandwidth; NaN where a density was given.
    ridge_ : FlowResult
        Points of the ridge that rows were carried to, with tangents, curvatures and log densities.
    places_ : FlowResult
        The same in the coordinates that the method works in: on a sphere, places in space on one whose degrees have
        length 1.
    graph_ : RidgeGraph
        Branches, ends and junctions, where the ridge is a curve.
    branch_support_ : ndarray of shape (B,)
        How sure each branch is, from 0 to 1: the share of samples drawn from densities up to twice as wide whose ridge
        runs there too, as a mean over the branch. NaN where rows cannot be drawn anew.
    persistent_branches_ : ndarray of shape (B,)
        Whether a branch persists: it has a support of 0.2 or more, so that other rows and wider kernels would show it.
    n_branches_found_ : int
        Branches before those with little support were left out.
    space_ : Flat or Globe
        The space that rows lie in.
    status_ : ndarray of shape (n,)
        How each training row ended, a :class:`~prinfold.density.ridges.mean_shift.Status`; with another ``start`` that
        of its points.
    latent_ : LatentSpace
        Coordinates on the ridge: branches of a graph, or a chart.
    min_length_ : float
        What ``min_length`` was.
    min_support_ : float
        What ``min_support`` was.
    root_ : ndarray of shape (C,)
        Coordinate at which time begins in each component; empty where no root was given.
    n_iter_ : int
        Steps of the row that took most.
    converged_ : bool
        Whether all rows came to rest.
    stop_reason_ : StopReason
        Why the rows were moved no further; its value is a sentence.
    history_ : dict of list
        ``objective`` (minus the mean of what rows have yet to go, in bandwidths), ``moving`` (rows that do) and
        ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Ozertem & Erdogmus (2011), Locally defined principal curves and surfaces, Journal of Machine Learning Research 12.
    McQueen (2014), An analysis of locally defined principal curves and surfaces, University of Washington.

    Examples
    --------
    >>> from prinfold import DensityRidge, datasets
    >>> data = datasets.make_spiral(500, noise=0.04, rng=0)
    >>> model = DensityRidge().fit(data.X)
    >>> model.transform(data.X).shape
    (500, 1)
    """

    _stored: ClassVar[Kinds] = {
        "flow_": part("Flow"),
        "space_": part("Flat", "Globe"),
        "bandwidth_": STORED_BANDWIDTH,
        "places_": record_of(
            numbers("n", "flow_.density.n_columns"),
            numbers("n", "flow_.density.n_columns", "flow_.dimension"),
            numbers("n", ANY),
            numbers("n"),
            whole_numbers("n", least=0),
            whole_numbers("n", least=0),
        ),
        "status_": whole_numbers("rows", least=0),
        "min_length_": number,
        "min_support_": number,
        "root_": numbers("C"),
        **TRAINING,
    }
    _added: ClassVar[dict[str, Any]] = {"min_support_": 0.0, "root_": np.empty(0)}
    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": integer(1),
        "bandwidth": BANDWIDTH,
        "space": one_of(tuple(SPACES)),
        "mask": MASK,
        "density": DENSITY,
        "normal": one_of(tuple(NORMALS)),
        "step": one_of(tuple(STEPS)),
        "start": one_of(tuple(STARTS)) | instance_of(np.ndarray, words="an array of points"),
        "min_density": Constraint(lambda v: real(0).test(v) and v < 1, "a share of at least 0 and below 1"),
        "min_gap": real(0),
        "min_length": real(0),
        "min_support": Constraint(lambda v: real(0).test(v) and v <= 1, "a share from 0 to 1"),
        "root": ROOT,
        "max_iter": integer(0),
        "tol": real(0),
        "random_state": random_state,
        "verbose": integer(0) | flag,
    }
    flow_: Flow
    space_: RowSpace
    bandwidth_: Any
    places_: FlowResult
    status_: IntArray
    min_length_: float
    min_support_: float
    _model: _LazyCoordinates

    def __init__(
        self,
        n_components: int = 1,
        *,
        bandwidth: Any = "auto",
        space: str = "flat",
        mask: Any = None,
        density: Any = None,
        normal: str = "inverse_covariance",
        step: str = "newton",
        start: Any = "data",
        min_density: float = 0.0,
        min_gap: float = 0.05,
        min_length: float = 3.0,
        min_support: float = 0.8,
        root: Any = None,
        max_iter: int = 500,
        tol: float = 1e-7,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.space = space
        self.mask = mask
        self.density = density
        self.normal = normal
        self.step = step
        self.start = start
        self.min_density = min_density
        self.min_gap = min_gap
        self.min_length = min_length
        self.min_support = min_support
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fitting

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the ridge.

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
        table = check_table(self, X, reset=True, min_rows=2)
        weight = check_weight(sample_weight, table)
        rows = unique_rows(table.astype(np.float64, copy=False), weight)
        space = SPACES[self.space](rows.rows)
        self._check_dimension(table.shape[1], space)
        made = DensityRecipe(self.density, self.bandwidth, self.mask, self.random_state).make(
            rows.rows, rows.weight, self.n_components, space
        )
        fit = _RidgeProblem(self._make_flow(made, space.enter(rows.rows), space), made.bandwidth, space, rows)
        walk = partial(_run_flow, fit.flow, self._starts(fit))
        self._train_with_callbacks(table, partial(self._attributes, fit), walk)
        self._set_weightless_status(table, rows)
        for words, category in [*self._warnings(), *self._place_root(table)]:
            warn_caller(words, category)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of the nearest point of the ridge: arc length on its branches, or those of its chart.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, d)
        """
        return self._latent_of(self._table(X))

    def flow(self, X: Any) -> FlowResult:
        """End point of each row under subspace-constrained mean shift, on a ridge or not.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        FlowResult
            ``points`` (n, D), ``tangent`` (n, D, d), ``curvature`` (n, D), ``log_density`` (n,), ``status`` (n,), a
            :class:`~prinfold.density.ridges.mean_shift.Status` each, and ``n_iter`` (n,).
        """
        return self._carry(self._table(X)).in_data_units(self.space_)

    @property
    def ridge_(self) -> FlowResult:
        """Points of the ridge that rows were carried to, in units of the data."""
        check_is_fitted(self)
        return self.places_.in_data_units(self.space_)

    @property
    def latent_(self) -> LatentSpace:  # type: ignore[override]
        """Coordinates on the ridge: branches of a graph, or a chart."""
        check_is_fitted(self)
        return self._model.coordinates.latent

    # --------------------------------------------------------------------------------------- plumbing

    def _check_dimension(self, n_columns: int, space: RowSpace) -> None:
        n = space.dimension(n_columns)
        if self.n_components >= n:
            fewer = Advice("n_components", words=f"set {{}} below {n}")
            raise InvalidDataError(
                Message(
                    f"a ridge of {self.n_components} dimension(s) needs more columns than that, but the table has "
                    f"n_features = {n_columns}",
                    fewer if n > 1 else "take more columns, since the modes of one are for ModeClustering",
                )
            )

    def _make_flow(self, made: EstimatedDensity, places: FloatArray, space: RowSpace) -> Flow:
        return Flow(
            made.density,
            self.n_components,
            NORMALS[self.normal](places, _NEIGHBORS),
            newton=STEPS[self.step],
            max_iter=self.max_iter,
            tol=self.tol,
            min_gap=self.min_gap,
            box=np.stack([places.min(axis=0), places.max(axis=0)]),
            sphere=space.round,
            edge=made.edge,
        )

    def _starts(self, fit: _RidgeProblem) -> FloatArray:
        """(m, D) starting points that are carried to the ridge."""
        rows = fit.rows.rows
        if isinstance(self.start, str):
            return STARTS[self.start](fit.flow, fit.space.enter(rows))
        points = as_numbers("start", self.start)
        D = rows.shape[1]
        if points.ndim != 2 or points.shape[1] != D or len(points) == 0 or not np.isfinite(points).all():
            raise InvalidDataError(f"start must hold finite points of shape (m, {D}), got shape {points.shape}")
        return fit.space.enter(points)

    def _attributes(self, fit: _RidgeProblem, walk: RidgeWalk) -> dict[str, Any]:
        """Fitted attributes from the present state of the rows."""
        rows, from_data = fit.rows, isinstance(self.start, str) and self.start == "data"
        at_start = walk.start_density if from_data else fit.flow.density.log_density(fit.space.enter(rows.rows))
        flow = replace(fit.flow, floor=density_floor(at_start, rows.weight, self.min_density))
        found = walk.end(flow)
        kept = found.only(select_ridge_rows(found))
        return {
            "flow_": flow,
            "space_": fit.space,
            "bandwidth_": fit.bandwidth,
            "places_": kept,
            "status_": np.append(found.status, np.int8(-1))[rows.unique_index] if from_data else found.status,
            "min_length_": float(self.min_length),
            "min_support_": float(self.min_support),
            "n_features_in_": rows.rows.shape[1],
            "_model": _LazyCoordinates(flow, kept, float(self.min_length), float(self.min_support)),
        }

    def _set_weightless_status(self, table: FloatArray, rows: Unique) -> None:
        """Set the status of rows without weight, which had no part in the fit."""
        others = np.flatnonzero(rows.unique_index < 0)
        if len(others) and len(self.status_) == len(table):
            self.status_[others] = self._carry(table[others]).status

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings about rows that found no ridge: message and category."""
        found = [each for each in self._stopping_warnings() if self.stop_reason_ is not StopReason.MAX_ITER]
        n, lost = len(self.status_), self.status_[self.status_ != Status.CONVERGED]
        moving = int((lost == Status.NOT_CONVERGED).sum())
        if moving > _WARN_MOVING_SHARE * n and self.tol > 0:
            words = f"{moving} of {n} rows were still moving after {self.n_iter_} steps and are left out of the ridge"
            more = Advice("max_iter", words=f"raise {{}} (now {self.max_iter})")
            found.append((Message(words, more, Advice("bandwidth", words="raise {}")), ConvergenceWarning))
        if len(lost) > _WARN_LOST_SHARE * n:
            kinds, counts = np.unique(lost, return_counts=True)
            words = f"{len(lost)} of {n} rows ended on no ridge and are left out of it"
            if len(lost) == n:
                words = f"no row ended on a ridge, so the {len(self.places_.points)} that come nearest are used"
            why = Status(kinds[counts.argmax()]).sentence
            others = Advice("bandwidth", words="try another {}"), Advice("n_components", words="another {}")
            found.append((Message(f"{words}. Mostly: {why}", *others), DegenerateWarning))
        return [*self._column_warnings(), *(found or self._piece_warnings())]

    def _column_warnings(self) -> list[tuple[str, type[Warning]]]:
        """A warning about a density of many columns."""
        D = self.n_features_in_
        if D <= _MOST_COLUMNS or self.density is not None:
            return []
        words = f"the table has {D} columns. In more than {_MOST_COLUMNS} a density is uncertain, and so is its ridge"
        support = self._model.made.support if self.flow_.dimension == 1 else np.zeros(0)
        if len(support) and np.isfinite(support).all():
            found = f"its branches ({len(support)}) are found again in {percent(support.mean())} of other samples"
            kept = f"{int(persistent(support).sum())} of them in {percent(PERSISTENT)} or more"
            words = f"{words}: {found}, on average, and {kept} (persistent_branches_)"
        words += "."
        fewer = "reduce the columns first, for instance by PCA(3)"
        return [(Message(words, fewer, *self._other_methods()), DegenerateWarning)]

    def _piece_warnings(self) -> list[tuple[str, type[Warning]]]:
        """A warning about a curve in many pieces, with the bandwidth that would join them."""
        if self.flow_.dimension > 1:
            return []
        points = ridge_pieces(self.places_.points, self.flow_.density.length(self.places_.points))
        if points.n <= _WARN_PIECES or points.largest_share >= _WARN_LARGEST_SHARE:
            return []
        # Ridge points may be few where the ridge goes on, so that the graph counts, which follows the ridge.
        lengths = self._model.made.pieces
        share = float(lengths[0] / max(lengths.sum(), np.finfo(float).tiny))
        if len(lengths) <= _WARN_PIECES or share >= _WARN_LARGEST_SHARE:
            return []
        words = (
            f"the ridge falls into {len(lengths)} pieces, and the longest has {percent(share)} of its length. The "
            "kernels may be too narrow to show what joins them."
        )
        h = self.bandwidth_ * points.joining_factor if np.ndim(self.bandwidth_) == 0 else np.nan
        wider = Advice("bandwidth", float(f"{h:.3g}")) if np.isfinite(h) else Advice("bandwidth", words="raise {}")
        return [(Message(words, wider, *self._other_methods()), DegenerateWarning)]

    def _other_methods(self) -> tuple[str, ...]:
        """Another method, where there is one for ridges of this dimension."""
        return ("fit a PrincipalTree",) if self.flow_.dimension == 1 else ()

    def _carry(self, table: FloatArray) -> FlowResult:
        with blas_on_one_thread():  # held throughout: asking for it at every step would show
            return self.flow_(self.space_.enter(table))

    def _nearest(self, table: FloatArray) -> Projection:
        found = self._model.coordinates.nearest(self.space_.enter(table))
        return found._replace(squared_distance=self.space_.squared_length(found.squared_distance))

    def _data_points(self, Z: FloatArray, points: FloatArray | None = None) -> FloatArray:
        return self.space_.leave(self._point(Z) if points is None else points)

    def _data_jacobian(self, Z: FloatArray) -> FloatArray:
        leaving, inner = self.space_.leave_jacobian(self._point(Z)), self._jacobian(Z)
        return inner if leaving is None else np.asarray(leaving @ inner)

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.coordinates.point(Z)

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.coordinates.jacobian(Z)

    def _mesh(self, resolution: int | None = None) -> Mesh:
        return self._model.coordinates.mesh(resolution)

    def _restore(self) -> None:
        """Rebuild what a file leaves out, and refuse parts that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts(
            {"a flow_ in the space_ of its columns": fits_space(self.flow_, self.space_, self.n_features_in_)}
        )
        self.places_ = FlowResult(*self.places_)
        self._model = _LazyCoordinates(self.flow_, self.places_, self.min_length_, self.min_support_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "history_")


def _run_flow(flow: Flow, starts: FloatArray, max_iter: int, tol: float, listeners: Listeners) -> Outcome[RidgeWalk]:
    """Carry rows to the ridge until all have come to rest: the way left may stay as it is for a step."""
    return run_fixed_point(
        lambda: RidgeWalk(flow, starts),
        RidgeWalk.advance,
        RidgeWalk.measures,
        max_iter=max_iter,
        tol=np.finfo(float).tiny if tol > 0 else 0.0,
        listeners=listeners,
        rule=Arrived(),
    )
