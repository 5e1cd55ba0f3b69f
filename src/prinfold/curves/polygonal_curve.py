"""The polygonal line algorithm (Kégl, Krzyżak, Linder & Zeger 2000)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.curves import polygonal_curve_training
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.base import CurveManifold, CurveTraining
from prinfold.curves.bounded_length import LimitedLength
from prinfold.curves.polygonal_curve_training import STARTS, CurvaturePenalty, PolygonalLineState, PolygonalProblem
from prinfold.curves.polygonal_starts import is_straight, smooth_curve, vertices_along
from prinfold.curves.starts import START_NAMES
from prinfold.exceptions import Advice, DegenerateWarning, InvalidDataError, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.loops import StopReason
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, flag, instance_of, integer, nothing, one_of, real
from prinfold.validation.tables import as_numbers


@fill_parameter_docs
@storable
class PolygonalCurve(CurveManifold):
    """The polygonal line algorithm: a principal curve of straight segments that gains one vertex after another.

    It begins with a few segments along a smooth curve, or with a piece of the first principal component, as published
    (``init="pca"``). Rows are projected on the line, and its vertices moved to lower the mean squared distance of the
    rows and a penalty on corners; when that has come to rest a vertex is put in the middle of the segment with most
    rows, until a rule says that there are enough.

    Parameters
    ----------
    penalty : float, default=0.13
        λ' of the penalty on corners λ = λ' k n^(−1/3) √Δ / r, with k segments, n rows, mean squared distance Δ, and r
        the largest distance of a row to the mean. Larger is smoother.
    stopping : float, default=0.3
        β of the rule that there are enough segments when k > β n^(1/3) r / √Δ, with n at most 10 000; there are never
        more than one for two rows that differ, nor than 20 n^(1/3), which ends what one far row would draw out.
    n_segments : int, default=None
        Segments to end with in place of that rule.
    length : float, default=None
        The longest that the curve may be, in units of the data. With it there is no penalty on corners, and k is
        n^(1/3) unless ``n_segments`` is given; ``penalty`` and ``stopping`` must be left as they are.
    closed : bool or "auto", default=False
        Whether the curve returns to its beginning, which is not part of the published method. ``"auto"`` takes what
        fits better, as a :class:`~prinfold.PrincipalCurve` does.
    init : {"auto", "pca", "tree", "ridge", "circle", "loop"} or array of shape (m, D), default="auto"
        What to begin with. ``"pca"`` is the published start: a piece of the first principal component, or for closed
        curves four corners in the first two. The other names are starts of a :class:`~prinfold.PrincipalCurve`, which
        takes ten steps from there, ``"auto"`` from whichever leads to the best curve; the line then begins along it,
        with half of the segments that it is to have. An array holds vertices in their order.
    {root}
    max_iter : int, default=10000
        Most rounds of projecting rows and moving vertices, those with few vertices included.
    tol : float, default=0.001
        Rounds with the same vertices end when the objective falls by a smaller share; 0 goes on after that to
        ``max_iter``, with as many vertices.
    {verbose}

    Attributes
    ----------
    curve_ : Polyline
        The line about ``offset_``, with arc length as its coordinate.
    vertices_ : ndarray of shape (m, D)
        Its vertices in order; a closed line does not repeat the first.
    {length_}
    {closed_}
    {doubt_}
    n_segments_ : int
        Segments that it has.
    {offset_}
    latent_ : Branches
        The coordinate: one branch, as long as the line.
    n_iter_ : int
        Rounds done.
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the penalised mean squared distance, as a share of the variance), ``error`` (that distance
        alone), ``penalty`` (λ), ``segments``, ``rows``, ``done`` and ``seconds``, the first entry being the start. The
        objective never gets worse while ``segments`` and ``rows`` stay as many: a line grows among at most 20 000 rows
        before it meets all of them.
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    Penalty and rule are those of Kégl et al. with their defaults, and so is the start ``init="pca"``, as far as we can
    tell. That one is straight, so that on rows that wind more than once the line ends in a local minimum which cuts
    across their turns. These things are ours: the start that is the default here;
    vertices move together rather than one by one; λ is renewed when a vertex is added and not in between, and lengths
    of the first and the last segment enter the penalty once, so that there is one objective to hold all steps to; what
    share of it ends the rounds, which we found no published number for; and that n counts as 10 000 where it is more.
    With the rates as published, a line through many rows has segments much shorter than the noise, and folds to and fro
    across it.

    References
    ----------
    Kégl, Krzyżak, Linder & Zeger (2000), Learning and design of principal curves, IEEE Transactions on Pattern Analysis
    and Machine Intelligence 22.

    Examples
    --------
    >>> from prinfold import PolygonalCurve, datasets
    >>> data = datasets.make_zigzag(400, rng=0)
    >>> model = PolygonalCurve().fit(data.X)
    >>> model.transform(data.X).shape
    (400, 1)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        **CurveManifold._constraints,
        "penalty": real(0),
        "stopping": real(0, above=True),
        "n_segments": nothing | integer(1),
        "length": nothing | real(0, above=True),
        "closed": flag | one_of(("auto",)),
        "init": one_of(START_NAMES) | instance_of(np.ndarray, list, words="an array of vertices"),
    }

    def __init__(
        self,
        *,
        penalty: float = polygonal_curve_training.PENALTY,
        stopping: float = polygonal_curve_training.STOPPING,
        n_segments: int | None = None,
        length: float | None = None,
        closed: Any = False,
        init: Any = "auto",
        root: Any = None,
        max_iter: int = 10_000,
        tol: float = polygonal_curve_training.TOL,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.stopping = stopping
        self.n_segments = n_segments
        self.length = length
        self.closed = closed
        self.init = init
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    @property
    def n_segments_(self) -> int:
        """Segments of the line."""
        check_is_fitted(self)
        return len(self.curve_.vertices) - (not self.curve_.closed)

    _n_rows: int = 0

    # ---------------------------------------------------------------------------------------- training

    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        restraint, problem = self._restraint(), PolygonalProblem.of(rows, weight, self._is_closed())
        if self._needs_smooth_curve() and not is_straight(problem):
            curve = smooth_curve(rows, weight, self.init, self.closed, offset)
            problem = replace(problem, closed=curve.closed)
            start = vertices_along(curve, problem, restraint)
        else:
            start = self._start(problem, offset)
        start = restraint.adapt_start(problem, start)

        def curve_of(state: PolygonalLineState) -> ArcCurve:
            return ArcCurve.through(state.vertices, problem.closed, smooth=False)

        self._n_rows = len(rows)
        return CurveTraining(partial(polygonal_curve_training.train, problem, restraint, start), curve_of)

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        found = super()._warnings()
        if self.curve_.length == 0:
            return found
        k, n = self.n_segments_, self._n_rows
        if self.stop_reason_ is StopReason.CAPPED and k < n // 2:  # with few rows the reason says enough
            words = f"the rule asks for more than the {k} segments at which the line stopped"
            words = f"{words}. A few far rows can bring that about."
            found.append((Message(words, "leave them out", Advice("n_segments")), DegenerateWarning))
        if k > max(n // 2, 1):
            words = f"a line of {k} segments joins the {n} rows that differ rather than pass between them"
            fewer = Advice("n_segments", words="ask for fewer ({}, init)")
            found.append((Message(words, fewer, "give more rows"), DegenerateWarning))
        return found

    def _misfit_warnings(self, rows: FloatArray, weight: FloatArray) -> list[tuple[str, type[Warning]]]:
        # A line of given largest length leaves rows out on purpose.
        return [] if self.length is not None else super()._misfit_warnings(rows, weight)

    def _restraint(self) -> polygonal_curve_training.ChainRestraint:
        if self.length is not None:
            self._check_length_settings()
            return LimitedLength(float(self.length), self.n_segments)
        return CurvaturePenalty(self.penalty, self.stopping, self.n_segments)

    def _check_length_settings(self) -> None:
        for name, default in (
            ("penalty", polygonal_curve_training.PENALTY),
            ("stopping", polygonal_curve_training.STOPPING),
        ):
            if getattr(self, name) != default:
                raise InvalidParameterError(
                    f"{name}={getattr(self, name)!r} has no effect with length={self.length!r}, which takes the place "
                    f"of the penalty and of the rule for segments; leave {name} at {default}, or length at None"
                )

    def _is_closed(self) -> bool:
        return self.closed != "auto" and bool(self.closed)

    def _needs_smooth_curve(self) -> bool:
        """Whether a smooth curve decides where the line begins, or whether it is closed."""
        return self.closed == "auto" or (isinstance(self.init, str) and self.init != "pca")

    def _start(self, problem: PolygonalProblem, offset: FloatArray) -> FloatArray:
        if isinstance(self.init, str):
            return STARTS[problem.closed](problem)
        vertices = as_numbers("init", self.init)
        fewest, D = (3 if problem.closed else 2), problem.X.shape[1]
        if vertices.ndim != 2 or len(vertices) < fewest or vertices.shape[1] != D or not np.isfinite(vertices).all():
            raise InvalidDataError(
                f"init must hold at least {fewest} finite vertices in the {D} columns of the data, got shape "
                f"{vertices.shape}"
            )
        return np.asarray(vertices - offset)
