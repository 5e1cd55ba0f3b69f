"""Probabilistic principal curves: Tibshirani's (1992), and with oriented noise as in Chang & Ghosh (2001)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.file_requirements import require_parts
from prinfold.curves import hastie_stuetzle
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.base import CurveManifold, CurveTraining
from prinfold.curves.probabilistic_model import (
    CurveModel,
    CurveNodes,
    ProbabilisticState,
    WeightedRows,
    curve_of,
    even_knots,
    find_penalty,
)
from prinfold.curves.smoothers import SmoothingSpline, n_effective
from prinfold.curves.starts import START_NAMES, start_candidates
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, positive
from prinfold.geometry.column_span import ColumnSpan
from prinfold.loops import run_fixed_point
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_fourth_powers
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    real,
)

_FEWEST_NODES, _MOST_NODES = 20, 200
"""Fewest and most nodes of a curve, where rows are enough and ``nodes`` is None."""


class _Progress(NamedTuple):
    """The model, whose penalty may have been found, and the state of its training."""

    model: CurveModel
    state: ProbabilisticState


@fill_parameter_docs
@storable
class ProbabilisticCurve(CurveManifold):
    """Probabilistic principal curve: a mixture of Gaussians whose centres are smoothed by a cubic spline.

    Rows scatter about a curve with one variance, and with a density along it that is learned, as the shares of the
    nodes. Unlike a curve through the middle of the rows that project on it, the curve that generated them is at rest
    here: bends are not drawn outwards by the noise. With ``clamping`` below 1 the Gaussians are flattened across the
    curve, so that rows count where they project.

    Parameters
    ----------
    nodes : int, default=None
        Gaussians of the mixture; None takes one for each deviation of the noise along the curve, from 20 to 200 and no
        more than there are rows that differ.
    penalty : float, default=None
        μ, the price of ½ ∫ ‖f″‖² in nats, in units of the data; None finds the likeliest before training.
    clamping : float, default=1.0
        α, variance along the curve beside the mean one: 1 is Tibshirani's curve, less Chang and Ghosh's (PPC). Above 0
        and below the number of columns.
    {closed}
    init : {"auto", "pca", "tree", "ridge", "circle", "loop"} or array of shape (m, D), default="auto"
        Curve to begin with, as of :class:`~prinfold.PrincipalCurve`, which takes ten steps from there.
    {noise_floor}
    {root}
    {max_iter, default=500}
    {tol, default=1e-5}
    {verbose}

    Attributes
    ----------
    {curve_}
    {offset_}
    {vertices_}
    {length_}
    {closed_}
    {doubt_}
    nodes_ : ndarray of shape (K, D)
        Centres of the Gaussians, about ``offset_``.
    node_places_ : ndarray of shape (K, 1)
        Arc lengths of the nodes.
    node_tangents_ : ndarray of shape (K, D)
        Unit tangents of the curve there.
    shares_ : ndarray of shape (K,)
        Their shares of the rows.
    noise_variance_ : float
        Mean variance of the noise in a column.
    penalty_ : float
        μ, given or found.
    clamping_ : float
        α that it was fitted with.
    latent_ : Branches
        The coordinate: one branch, by arc length.
    {n_iter_}
    {converged_.objective}
    {stop_reason_}
    {history_}
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Tibshirani (1992), Principal curves revisited, Statistics and Computing 2.
    Chang & Ghosh (1998), Principal curves for nonlinear feature extraction and classification, SPIE 3307.

    Examples
    --------
    >>> from prinfold import ProbabilisticCurve, datasets
    >>> data = datasets.make_half_circle(200, noise=0.1, rng=0)
    >>> model = ProbabilisticCurve().fit(data.X)
    >>> model.transform(data.X).shape
    (200, 1)
    """

    _stored: ClassVar[Kinds] = {
        **CurveManifold._stored,
        "clamping_": positive,
        "shares_": numbers("K", least=0),
        "nodes_": numbers("K", "n_features_in_"),
        "node_tangents_": numbers("K", "n_features_in_"),
        "noise_variance_": positive,
        "penalty_": positive,
    }
    _constraints: ClassVar[dict[str, Constraint]] = CurveManifold._constraints | {
        "nodes": nothing | integer(2),
        "penalty": nothing | real(0, above=True),
        "clamping": real(0, above=True),
        "closed": flag | one_of(("auto",)),
        "init": one_of(START_NAMES) | instance_of(np.ndarray, list, words="an array of vertices"),
        "noise_floor": real(0, above=True),
    }
    nodes_: FloatArray
    node_tangents_: FloatArray
    shares_: FloatArray
    noise_variance_: float
    penalty_: float
    clamping_: float

    def __init__(
        self,
        nodes: int | None = None,
        *,
        penalty: float | None = None,
        clamping: float = 1.0,
        closed: Any = False,
        init: Any = "auto",
        noise_floor: float = 1e-6,
        root: Any = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        verbose: int = 0,
    ) -> None:
        self.nodes = nodes
        self.penalty = penalty
        self.clamping = clamping
        self.closed = closed
        self.init = init
        self.noise_floor = noise_floor
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------ the density

    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihood of rows.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._posterior(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def responsibilities(self, X: Any, threshold: float | None = None) -> Any:
        """Posterior shares of the nodes in each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
        threshold : float, default=None
            Shares at or below it are left out, and what remains is a SciPy CSR matrix.

        Returns
        -------
        ndarray of shape (n, K), or CSR matrix
        """
        shares = self._posterior(X)[0]
        if threshold is None:
            return shares
        return sparse.csr_matrix(np.where(shares > threshold, shares, 0.0))

    def posterior_mode(self, X: Any) -> FloatArray:
        """Arc length of the node that most likely gave each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, 1)
        """
        return np.asarray(self.node_places_[np.argmax(self.responsibilities(X), axis=1)])

    def posterior_covariance(self, X: Any) -> FloatArray:
        """Variance of the arc length of the node that gave each row, the short way round a closed curve.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, 1, 1)
        """
        shares, places = self.responsibilities(X), self.node_places_
        mode = places[np.argmax(shares, axis=1)]
        away = self.latent_.domain.difference(places[None], mode[:, None])[:, :, 0]
        mean = np.einsum("nk,nk->n", shares, away)
        return np.asarray(np.einsum("nk,nk->n", shares, np.square(away - mean[:, None])))[:, None, None]

    def sample(self, n: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Rows drawn from the density.

        Parameters
        ----------
        {n}
        {random_state}

        Returns
        -------
        ndarray of shape (n, D)
        """
        check_is_fitted(self)
        check_draws(n, self.n_features_in_)
        rng, nodes = as_generator(random_state), self._nodes()
        node = rng.choice(len(nodes.shares), n, p=nodes.shares / nodes.shares.sum())
        noise = rng.standard_normal((n, nodes.centers.shape[1]))
        along, across = np.sqrt(self._model().spreads(nodes.centers))
        tangent = nodes.tangents[node]
        part = np.einsum("nd,nd->n", noise, tangent)[:, None] * tangent
        spread = across * noise + (along - across) * part
        return np.asarray(nodes.centers[node] + self.offset_ + np.sqrt(nodes.variance) * spread)

    @property
    def node_places_(self) -> FloatArray:
        """(K, 1) arc length of the nodes."""
        check_is_fitted(self)
        return self.curve_.nearest(self.nodes_).latent

    # --------------------------------------------------------------------------------------------- training

    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        n_columns = rows.shape[1]
        refuse_fourth_powers(rows)
        self._check_clamping(n_columns)
        # What is given need not lie in the span of the rows.
        span = ColumnSpan.of(rows) if isinstance(self.init, str) else ColumnSpan(None)
        inside = span.inside(rows)
        # Weights are of as many rows as they stand for, but no fewer for being small.
        sample = WeightedRows(inside, weight * (n_effective(weight) / weight.sum()))
        floor = self.noise_floor * sample.square / (sample.total * n_columns)

        def begin() -> _Progress:
            curve = self._start(inside, weight, offset)
            n_nodes = self._n_nodes(sample, curve, n_columns)
            first = self.penalty or max(curve.length, np.finfo(float).tiny)
            model = CurveModel(first, self.clamping, floor, n_columns)
            if self.penalty is None and curve.length > 0:
                model, curve = find_penalty(model, sample, curve, n_nodes)
            return _Progress(model, model.begin(sample, *even_knots(curve, n_nodes)))

        def loop(**settings: Any) -> Any:
            return run_fixed_point(
                begin,
                lambda now: now._replace(state=now.model.step(sample, now.state)),
                lambda now: now.model.measure(sample, now.state),
                **settings,
            )

        return CurveTraining(loop, lambda now: curve_of(now.state, span), lambda now: _extra_attributes(now, span))

    def _start(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> ArcCurve:
        """Hastie and Stuetzle's curve after a few steps from the best of the starts."""
        data = hastie_stuetzle.SmoothingRows.of(rows, weight)
        some = data.thin()
        return hastie_stuetzle.preliminary_curve(
            data, SmoothingSpline(), start_candidates(self.init, self.closed, *some[:2], offset)
        )

    def _n_nodes(self, sample: WeightedRows, curve: ArcCurve, n_columns: int) -> int:
        most = max(len(sample.rows), 3 if curve.closed else 2)
        if self.nodes is not None:
            return max(min(self.nodes, most), 3 if curve.closed else 2)
        squared = curve.nearest(sample.rows).squared_distance
        across = max(n_columns - 1, 1)
        deviation = np.sqrt(float(np.average(squared, weights=sample.weight)) / across)
        wanted = curve.length / deviation if deviation > 0 else _MOST_NODES
        return int(min(np.clip(np.ceil(wanted), _FEWEST_NODES, _MOST_NODES), most))

    def _check_clamping(self, n_columns: int) -> None:
        if n_columns > 1 and not self.clamping < n_columns:
            raise InvalidParameterError(
                f"clamping must be below the number of columns, {n_columns}, since more variance along the curve than "
                f"there is in all leaves none across; got {self.clamping}"
            )

    def _attributes_without_length(self) -> dict[str, Any]:
        n_columns = self.n_features_in_
        tangent = np.zeros((1, n_columns))
        tangent[0, 0] = 1.0
        return {
            "nodes_": np.zeros((1, n_columns)),
            "node_tangents_": tangent,
            "shares_": np.ones(1),
            "noise_variance_": self.noise_floor,
            "penalty_": self.penalty or 1.0,
            "clamping_": float(self.clamping),
        }

    # --------------------------------------------------------------------------------------------- plumbing

    def _posterior(self, X: Any) -> tuple[FloatArray, FloatArray]:
        table = self._table(X)
        rows = np.asarray(table, dtype=np.float64) - self.offset_
        shares, logs = self._model().responsibilities(rows, self._nodes())
        return shares.astype(table.dtype, copy=False), logs

    def _model(self) -> CurveModel:
        return CurveModel(self.penalty_, self.clamping_, 0.0)

    def _nodes(self) -> CurveNodes:
        return CurveNodes(self.nodes_, self.node_tangents_, self.shares_, self.noise_variance_)

    def _restore(self) -> None:
        super()._restore()
        n = self.n_features_in_
        require_parts(
            {
                "a sum of shares_ above zero": self.shares_.sum() > 0,
                "a clamping_ below the number of columns": self.clamping_ < (n if n > 1 else np.inf),
            }
        )


def _extra_attributes(now: _Progress, span: ColumnSpan) -> dict[str, Any]:
    nodes = now.state.nodes
    return {
        "nodes_": span.from_coordinates(nodes.centers),
        "node_tangents_": span.from_coordinates(nodes.tangents),
        "shares_": nodes.shares,
        "noise_variance_": float(nodes.variance),
        "penalty_": float(now.model.penalty),
        "clamping_": float(now.model.clamping),
    }
