"""Monitoring with a surface: alarms for rows that lie off it, or at places on it where rows are rare."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.applications import monitor_statistics
from prinfold.applications.base import accepts, map_constraint, map_part, refuse_other_columns
from prinfold.applications.monitor_blocks import hold_out
from prinfold.applications.monitor_measures import MonitorMeasures
from prinfold.applications.monitor_statistics import SPLITS, Contributions, Limits, Measures, PValues
from prinfold.base.file_requirements import require_parts
from prinfold.exceptions import DegenerateWarning, InvalidParameterError, percent, warn_caller
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers
from prinfold.rows.blocks import Blocks
from prinfold.validation.dask_verbs import is_dask
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import column_labels
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    check_parameters,
    check_setting,
    integer,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import check_table, forget

_BETWEEN_0_AND_1 = Constraint(lambda v: real(0, above=True).test(v) and v < 1, "a number between 0 and 1")

P_VALUE_REFERENCES = ("calibration", "model")
"""Where p-values come from."""

_MOST_SIMULATED = 100_000
"""Rows that are drawn for the limits of the model, at most: more take minutes and hours, and move a quantile by nothing
that would be seen (that of a probability of 0.01 is known to 0.0003 by so many)."""

_ROUNDING_SQUARE = 1e-12
"""Sum of squared gaps, in units of the noise, below which a row lies on the surface but for rounding."""


@fill_parameter_docs
@storable
class SurfaceMonitor(OutlierMixin, MonitorMeasures):
    """Tell usual rows from unusual ones by a map, at a rate of false alarms that holds.

    Process engineers watch T², how far a row is from the middle within a plane, and SPE, how far it is from the plane.
    Here the plane is a surface with a density: ``along`` says how rare a place on the surface is among the training
    rows, and ``off`` how far the row is from the surface, in units of the noise. The log density of a row takes both
    together. What counts as an alarm is decided by rows that were held out, whatever the noise is like.

    Parameters
    ----------
    estimator : GTM, PPS or other map with a density and noise, default=None
        Recipe for the map, of which clones are fitted; None is :class:`~prinfold.GTM` as it comes. A fitted map within
        scikit-learn's ``FrozenEstimator`` is used as it is; then no row given to ``fit`` may have trained it.
    alarm_rate : float, default=0.01
        Share of usual rows that may set off an alarm.
    calibration : {"cross", "split", "last"}, default="cross"
        Which rows are held out to set the limits: each in turn, in five folds, with a final fit to all of them; a share
        at random; or the last ones, for rows in the order of time that resemble their neighbours.
    held_out : float, default=0.3
        Share of the rows that is held out, unless each is in turn.
    n_simulated : int, default=2000
        Rows that are drawn from the model for p-values of its own, at most 100 000: limits by more would hardly differ.
    random_state : int, RandomState or Generator, default=0
        Seed of what is random: the rows held out, and those drawn.

    Attributes
    ----------
    {surface_}
    node_shares_ : ndarray of shape (K,)
        Shares of the rows at the nodes, smoothed.
    noise_scale_ : ndarray of shape (D,)
        Standard deviation of the noise in each column, on average over the nodes.
    reference_ : ndarray of shape (m, 3)
        Minus log density, along and off of the rows held out.
    simulated_ : ndarray of shape (n_simulated, 3)
        The same of rows drawn from the map.
    limits_ : Limits
        ``log_density`` below which, and ``along`` and ``off`` above which a p-value is at most ``alarm_rate``.
    model_limits_ : Limits
        The same as the model would have them: what its own rows are beyond with that probability.
    offset_ : float
        The limit of the log density.
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    With rows held out once (``"split"``, ``"last"``) a p-value of a new row is at most α with a probability of at most
    α, for any α, any map and any distribution, provided new rows and those held out are exchangeable. With each held
    out in turn that holds nearly: the final map has seen more rows than those that set the limits.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), Algorithmic learning in a random world, Springer.
    Jackson & Mudholkar (1979), Control procedures for residuals associated with principal component analysis,
    Technometrics 21.

    Examples
    --------
    >>> from prinfold import GTM, SurfaceMonitor, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> monitor = SurfaceMonitor(GTM(nodes=12, basis=5), alarm_rate=0.05).fit(data.X)
    >>> broken = data.X[:1].copy()
    >>> broken[0, 4] += 5
    >>> monitor.predict(broken).tolist()
    [-1]
    """

    _follows_far_rows: ClassVar[bool] = True
    _stored: ClassVar[Kinds] = {
        "surface_": map_part("responsibilities"),
        "node_shares_": numbers("surface_.latent_.n_nodes", above=0),
        "noise_scale_": numbers("n_features_in_", above=0),
        "reference_": numbers("m", 3),
        "simulated_": numbers("s", 3),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "estimator": map_constraint("inverse_transform", "jacobian", "sample", "noise_covariance"),
        "alarm_rate": _BETWEEN_0_AND_1,
        "calibration": one_of(SPLITS),
        "held_out": _BETWEEN_0_AND_1,
        "n_simulated": integer(1),
        "random_state": random_state,
    }
    _fitted_names: ClassVar[tuple[str, ...]] = ("surface_", "node_shares_", "noise_scale_")
    _n_folds: ClassVar[int] = 5

    reference_: FloatArray
    simulated_: FloatArray

    def __init__(
        self,
        estimator: Any = None,
        *,
        alarm_rate: float = 0.01,
        calibration: str = "cross",
        held_out: float = 0.3,
        n_simulated: int = 2000,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.alarm_rate = alarm_rate
        self.calibration = calibration
        self.held_out = held_out
        self.n_simulated = n_simulated
        self.random_state = random_state

    # ---------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the map to usual rows, and set the limits by rows held out.

        Parameters
        ----------
        X : array-like of shape (n, D), Blocks, Dask array or Dask frame
            Rows of a time when all was well. Of :class:`~prinfold.Blocks` and Dask collections rows are held out once,
            with ``calibration="split"`` or ``"last"``, and at most 20 000 of them.
        y : ignored

        Returns
        -------
        SurfaceMonitor
        """
        check_parameters(self, self._constraints)
        check_setting("n_simulated", self.n_simulated, integer(1, _MOST_SIMULATED))  # files of more are still read
        forget(self)
        if accepts("frames", self.estimator):
            raise InvalidParameterError(
                "SurfaceMonitor needs columns of numbers only, and the map it was given has columns of other kinds. "
                "Give a GTM of the columns of numbers, or use the map's own score_samples"
            )
        rng = as_generator(self.random_state)
        source = Blocks(X) if is_dask(X) else X
        measure = self._measure_held_out_of_blocks if isinstance(source, Blocks) else self._measure_held_out_of_table
        reference = measure(source, rng)
        seed = int(rng.integers(2**31 - 1))
        self.simulated_ = self._measure_rows(self.surface_.sample(self.n_simulated, random_state=seed)).unusualness
        self.reference_ = reference.unusualness
        self._warn_about_few_rows()
        return self

    def _check_rows(self, X: Any, min_rows: int) -> FloatArray:
        table = check_table(self, X, reset=True, min_rows=min_rows, accept_missing=accepts("missing", self.estimator))
        check_draws(self.n_simulated, table.shape[1], "n_simulated")
        refuse_other_columns(self.estimator, self)
        return table

    def _measure_held_out_of_table(self, X: Any, rng: np.random.Generator) -> Measures:
        table = self._check_rows(X, 3)
        return self._measure_held_out(table, monitor_statistics.shuffle_by_content(table, rng))

    def _measure_held_out_of_blocks(self, blocks: Blocks, rng: np.random.Generator) -> Measures:
        """Measures of some rows of a source; the map is fitted to the others, block by block."""
        found = hold_out(blocks, self.calibration, float(self.held_out), rng)
        held = self._check_rows(found.held, 1)
        self._fit_map_to_blocks(found)
        return self._measure_rows(held)

    def _measure_held_out(self, table: FloatArray, order: Any) -> Measures:
        """Measures of rows held out. The map kept is fitted to the other rows, or to all rows in cross-validation."""
        pairs = SPLITS[self.calibration](order, float(self.held_out), self._n_folds)
        if len(pairs) == 1:
            self._fit_map(table[pairs[0][0]])
            return self._measure_rows(table[pairs[0][1]])
        # One smoothing for all folds: with several, the folds would not measure as the final map does.
        smoothing = self._fit_map(table)
        final, parts = {name: getattr(self, name) for name in self._fitted_names}, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has given the warnings
            for fitted, held in pairs:
                self._fit_map(table[fitted], smoothing)
                parts.append(self._measure_rows(table[held]))
        for name, value in final.items():
            setattr(self, name, value)
        return Measures(*map(np.concatenate, zip(*parts, strict=True)))

    def calibrate(self, X: Any) -> Self:
        """Set the limits by other usual rows than those held out in the fit; the map stays as it is.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows that were not in the fit, such as those of the last month in which all was well.

        Returns
        -------
        SurfaceMonitor
        """
        self.reference_ = self.measure(X).unusualness
        self._warn_about_few_rows()
        return self

    def _warn_about_few_rows(self) -> None:
        n = len(self.reference_)
        if not np.isfinite(monitor_statistics.alarm_limit(self.reference_[:, 0], self.alarm_rate)):
            warn_caller(
                f"{n} rows held out are too few for alarm_rate={self.alarm_rate:g}: their smallest p-value is "
                f"1/{n + 1}, and limits are the largest values seen or the model's own. Give at least "
                f"{int(np.ceil(1 / self.alarm_rate)) - 1} rows to calibrate with, or raise alarm_rate",
                DegenerateWarning,
            )

    # ---------------------------------------------------------------------------------------- watching

    def measure(self, X: Any) -> Measures:
        """Measures of how unusual rows are: log density, and its parts along the surface and off it.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        Measures
            ``log_density`` (n,) of a usual row; ``along`` (n,), how rare the place on the surface is,
            −ln K Σ_k r_k q_k with the shares q of the rows at the nodes; ``off`` (n,), the squared distance from the
            surface in units of the noise; ``missing`` (n,) cells, which count as usual ones where rows are compared.
        """
        return self._measure_rows(self._table(X))

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of each row, ln Σ_k q_k p(t | k), with the shares q of the rows at the nodes.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._densities(self._table(X))[0]

    def decision_function(self, X: Any) -> FloatArray:
        """Log density less its limit: below 0 for alarms.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """−1 for rows that are alarms, 1 for usual ones.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def p_values(self, X: Any, by: str = "calibration") -> PValues:
        """P-values of rows: probability that a usual row is at least as unusual.

        Parameters
        ----------
        X : array-like of shape (n, D)
        by : {"calibration", "model"}, default="calibration"
            What usual rows are like: those held out, (1 + as unusual)/(1 + all); or rows drawn from the model, which is
            right only as far as the model is.

        Returns
        -------
        PValues
            ``density``, ``along`` and ``off``, (n,) each.
        """
        check_setting("by", by, one_of(P_VALUE_REFERENCES))
        return self._p_values(self.measure(X), by)

    def contributions(self, X: Any) -> Contributions:
        """Contributions of the columns to the off and along parts of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        Contributions
            ``off`` (n, D), which adds up to what ``measure`` says, with the ``residual`` from the surface in units of
            the data; ``along`` (n, D), with the ``shift`` from the nearest place where rows are usual.
        """
        return self._column_contributions(self._table(X))

    def report(self, X: Any, n_columns: int = 3) -> list[str]:
        """One line of text for each row: alarm or usual, p-values, and the columns that contribute most.

        Parameters
        ----------
        X : array-like of shape (n, D)
        n_columns : int, default=3
            How many columns are named at most.

        Returns
        -------
        list of str
        """
        table = self._table(X)
        found, parts = self._measure_rows(table), self._column_contributions(table)
        p, limits = self._p_values(found, "calibration"), self.limits_
        alarm = found.log_density < limits.log_density
        names = column_labels(self, table.shape[1])
        lines = []
        for n in range(len(table)):
            said = [f"row {n}: {'ALARM' if alarm[n] else 'usual'} by its density (p = {p.density[n]:.2g})"]
            if alarm[n] or min(p.off[n], p.along[n]) <= self.alarm_rate:
                off, along = (_describe_columns(each[n], names, n_columns) for each in (parts.off, parts.along))
                said.append(f"off the surface {found.off[n]:.3g}, limit {limits.off:.3g} (p = {p.off[n]:.2g}): {off}")
                words = f"a place where rows are usual (p = {p.along[n]:.2g})"
                if parts.along[n].any():
                    words = f"a place where rows are rare (p = {p.along[n]:.2g}), away from the usual by {along}"
                said.append(words)
            lines.append("; ".join(said))
        return lines

    @property
    def offset_(self) -> float:
        """The limit of the log density."""
        return self.limits_.log_density

    @property
    def limits_(self) -> Limits:
        """Limits beyond which p-values are at most ``alarm_rate``."""
        check_is_fitted(self)
        limits = [monitor_statistics.alarm_limit(column, self.alarm_rate) for column in self.reference_.T]
        if not np.isfinite(limits).all():
            largest = np.maximum(self.reference_.max(axis=0), self._model_limits())
            limits = [monitor_statistics.round_up(each) for each in largest.tolist()]
        return Limits(-limits[0], limits[1], limits[2])

    @property
    def model_limits_(self) -> Limits:
        """Limits that rows drawn from the model exceed with probability ``alarm_rate``."""
        check_is_fitted(self)
        density, along, off = self._model_limits()
        return Limits(-density, along, off)

    # --------------------------------------------------------------------------------------- plumbing

    def _p_values(self, found: Measures, by: str) -> PValues:
        if by == "calibration":
            return PValues(*monitor_statistics.calibration_p_values(found.unusualness, self.reference_).T)
        return PValues(
            *monitor_statistics.simulation_p_values(found.unusualness, self.simulated_, self._simulated_weight()).T
        )

    def _simulated_weight(self) -> FloatArray:
        """(n,) importance weights q_k/π_k of simulated rows, drawn by the model's node prior π and not by shares q."""
        return np.exp(-self.simulated_[:, 1])

    def _model_limits(self) -> FloatArray:
        weight = self._simulated_weight()
        return np.array(
            [monitor_statistics.simulated_limit(each, weight, self.alarm_rate) for each in self.simulated_.T]
        )

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        measured = len(self.reference_) > 0 and len(self.simulated_) > 0
        require_parts({"rows in reference_ and simulated_": measured})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reference_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = accepts("missing", self.estimator)
        return tags


def _describe_columns(parts: FloatArray, names: list[str], most: int) -> str:
    """Names of the columns with the largest contributions, and their shares."""
    total = float(parts.sum())
    order: Any = np.argsort(-parts, kind="stable")[:most]
    share = parts / total if total > _ROUNDING_SQUARE else np.zeros_like(parts)
    told = [f"{names[j]} ({percent(share[j])})" for j in order if share[j] >= 0.01]
    return ", ".join(told) if told else "no column in particular"
