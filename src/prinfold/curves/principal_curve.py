"""Principal curves of Hastie and Stuetzle (1989)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves import hastie_stuetzle
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.base import CurveManifold, CurveTraining
from prinfold.curves.smoothers import SMOOTHERS, KernelSmoother, LocalLinear, SmoothingSpline, make_smoother
from prinfold.curves.starts import START_NAMES, start_candidates
from prinfold.files import storable
from prinfold.files.kinds import Kinds, any_float, text
from prinfold.geometry.column_span import ColumnSpan
from prinfold.loops import Last, run_fixed_point
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, flag, instance_of, one_of


@fill_parameter_docs
@storable
class PrincipalCurve(CurveManifold):
    """Principal curve of Hastie and Stuetzle: every point of it is the mean of the rows that project there.

    Rows are projected on the curve and smoothed as a function of their place on it, in turn. The coordinate of a row
    is the arc length of its nearest point, in units of the data.

    Parameters
    ----------
    smoother : {"spline", "local_linear", "kernel"} or object, default="spline"
        What smooths the rows: a :class:`~prinfold.SmoothingSpline`, a :class:`~prinfold.LocalLinear` or a
        :class:`~prinfold.KernelSmoother`; by name with how much it smooths chosen by cross-validation, under which no
        curve may bend more finely than its noise is wide.
    init : {"auto", "pca", "tree", "circle", "loop", "ridge"} or array of shape (m, D), default="auto"
        Curve to begin with: along the first principal component, the longest way through a minimum spanning tree of
        centres, the longest branch of the ridge of the density, or vertices of one that is given; for closed curves an
        ellipse along the first two components (``"pca"``), a ``"circle"``, or the ``"loop"`` that persists longest in
        the rows. ``"auto"`` takes a few steps from all of them but the ridge, and goes on where these led to the
        shortest code for the rows: a curve near them, and short.
    {closed}
    bias_correction : bool, default=False
        Whether the bias of the smoother, which flattens bends, is removed at the end, by smoothing residuals in place
        of rows (Banfield and Raftery).
    {root}
    {max_iter, default=50}
    tol : float, default=1e-5
        Steps end when the share of the variance that the curve explains changes by less; 0 never stops early.
    {verbose}

    Attributes
    ----------
    {curve_}
    {offset_}
    {vertices_}
    {length_}
    {closed_}
    {doubt_}
    start_ : str
        The start that was taken.
    df_ : float
        Degrees of freedom of the smoother in the last step, for each coordinate.
    smoothing_ : float
        Penalty, span or bandwidth of the smoother in the last step.
    latent_ : Branches
        The coordinate: one branch.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the share of the variance that is left), ``error`` (mean squared distance), ``df``,
        ``score`` (that of cross-validation) and ``seconds``, the first entry being the start; before any correction.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Hastie & Stuetzle (1989), Principal curves, Journal of the American Statistical Association 84.
    Banfield & Raftery (1992), Ice floe identification in satellite images using mathematical morphology and clustering
    about principal curves, Journal of the American Statistical Association 87.

    Examples
    --------
    >>> from prinfold import PrincipalCurve, datasets
    >>> data = datasets.make_spiral(1000, rng=0)
    >>> model = PrincipalCurve().fit(data.X)
    >>> model.transform(data.X).shape
    (1000, 1)
    """

    _stored: ClassVar[Kinds] = {**CurveManifold._stored, "start_": text, "df_": any_float, "smoothing_": any_float}
    _constraints: ClassVar[dict[str, Constraint]] = {
        **CurveManifold._constraints,
        "smoother": one_of(tuple(SMOOTHERS))
        | instance_of(SmoothingSpline, LocalLinear, KernelSmoother, words="a smoother such as SmoothingSpline(df=8)"),
        "init": one_of(START_NAMES) | instance_of(np.ndarray, list, words="an array of vertices"),
        "closed": flag | one_of(("auto",)),
        "bias_correction": flag,
    }
    start_: str
    df_: float
    smoothing_: float

    def __init__(
        self,
        smoother: Any = "spline",
        *,
        init: Any = "auto",
        closed: Any = False,
        bias_correction: bool = False,
        root: Any = None,
        max_iter: int = 50,
        tol: float = 1e-5,
        verbose: int = 0,
    ) -> None:
        self.smoother = smoother
        self.init = init
        self.closed = closed
        self.bias_correction = bias_correction
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        # What is given need not lie in the span of the rows.
        span = ColumnSpan.of(rows) if isinstance(self.init, str) else ColumnSpan(None)
        data, smoother = hastie_stuetzle.SmoothingRows.of(span.inside(rows), weight), make_smoother(self.smoother)
        some = data.thin()
        candidates = start_candidates(self.init, self.closed, some.X, some.weight, offset)

        def begin() -> hastie_stuetzle.CurveState:
            return hastie_stuetzle.begin(data, *hastie_stuetzle.best_start(some, smoother, candidates))

        loop = partial(
            run_fixed_point,
            begin,
            partial(hastie_stuetzle.step, data, smoother),
            partial(hastie_stuetzle.measures, data),
            rule=Last(),
        )

        def curve_of(state: hastie_stuetzle.CurveState) -> ArcCurve:
            final = hastie_stuetzle.correct_bias(data, smoother, state) if self.bias_correction else state
            return ArcCurve.through(span.from_coordinates(final.vertices), final.closed)

        return CurveTraining(loop, curve_of, _extra_attributes)

    def _attributes_without_length(self) -> dict[str, Any]:
        return {"start_": "none", "df_": 0.0, "smoothing_": 0.0}


def _extra_attributes(state: hastie_stuetzle.CurveState) -> dict[str, Any]:
    smooth = state.smooth
    return {
        "start_": state.name,
        "df_": 0.0 if smooth is None else smooth.df,
        "smoothing_": 0.0 if smooth is None else smooth.setting,
    }
