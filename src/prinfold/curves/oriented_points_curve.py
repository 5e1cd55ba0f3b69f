"""Principal curves of oriented points."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves import oriented_points
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.base import CurveManifold, CurveTraining
from prinfold.curves.oriented_points import OrientedWalk, reference_width
from prinfold.curves.polygonal_curve_training import PolygonalProblem, principal_segment
from prinfold.exceptions import Advice, DegenerateWarning, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers, sequence_of, text
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, nothing, real

_WARN_FROM_ROWS = 20
"""Rows from which on a single oriented point gives a warning."""

_WIDER_FACTOR = 2.0
"""The second kernel over the first, where rows were left out: by default that of Delicado and Huerta's program."""


@fill_parameter_docs
@storable
class OrientedPointsCurve(CurveManifold):
    """Principal curve of oriented points: a walk from one principal oriented point to the next.

    Through every point there is a hyperplane on which the rows near it scatter least. A point that is the mean of these
    rows is a principal oriented point, and the normal of the plane is the direction of the curve. From one
    such point the curve takes a step along its direction, finds the next, and so on to both ends.

    Parameters
    ----------
    bandwidth : float, default=None
        Half the width of the kernel about a hyperplane, in units of the data; None takes ``width`` times the normal
        reference rule 1.06 σ n^(−1/5), with σ² the variance along the first principal component, and twice that
        where walks leave rows out.
    width : float, default=0.75
        See there.
    step : float, default=0.3
        Length of a step, in units of the bandwidth.
    {root}
    max_iter : int, default=5000
        Most points, those of walks that were not kept included.
    tol : float, default=0.001
        0 takes ``max_iter`` steps, though a walk that is over adds nothing; any other number ends there.
    {verbose}

    Attributes
    ----------
    curve_ : ArcCurve
        The smooth curve through the points, about ``offset_``, with arc length as its coordinate.
    vertices_ : ndarray of shape (m, D)
        Points along the curve, in order; a closed one does not repeat its beginning.
    length_ : float
        Length of the curve.
    closed_ : bool
        Whether the walk came round to its beginning.
    {doubt_}
    points_ : ndarray of shape (p, D)
        The principal oriented points.
    directions_ : ndarray of shape (p, D)
        The unit direction of the curve at each of them.
    variances_ : ndarray of shape (p,)
        Total variance of the rows across, at each of them.
    bandwidth_ : float
        Half the width of the kernel.
    ends_ : list of str
        Why the walk that was kept went no further before the first and after the last of the points.
    {offset_}
    latent_ : Branches
        The coordinate: one branch, as long as the curve.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the mean variance across, as a share of the variance of all rows), ``points``, ``done`` and
        ``seconds``, the first entry being the first point. The walk minimises nothing as a whole.
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    Points, directions and the walk are Delicado's. These things are ours: a quartic kernel; rows on a hyperplane belong
    to a point if steps of half a bandwidth, or 1.5 times what is usual between a row and the next, join them to the one
    nearest to it, so that other turns of the curve do not count; steps of other lengths where the first leads nowhere;
    walks from up to five rows, and from as many with a kernel twice as wide where these leave rows out, of which the
    one nearest to all rows is kept; and that a walk may close. Kernel and step are in the units of Delicado and
    Huerta's program, the defaults of which are 1.5 and 0.3; the wider kernel cut more corners on our simulators.

    The curve has to be smooth at the scale of the bandwidth: at a sharp corner the walk ends. Where it finds no second
    point, the curve is the piece of the first principal component along the rows, with a warning if there are many.

    References
    ----------
    Delicado (2001), Another look at principal curves and surfaces, Journal of Multivariate Analysis 77.

    Delicado & Huerta (2003), Principal curves of oriented points: theoretical and computational improvements,
    Computational Statistics 18.

    Examples
    --------
    >>> from prinfold import OrientedPointsCurve, datasets
    >>> data = datasets.make_spiral(300, rng=0)
    >>> model = OrientedPointsCurve().fit(data.X)
    >>> model.transform(data.X).shape
    (300, 1)
    """

    _stored: ClassVar[Kinds] = {
        **CurveManifold._stored,
        "points_": numbers("p", "n_features_in_"),
        "directions_": numbers("p", "n_features_in_"),
        "variances_": numbers("p", least=0),
        "bandwidth_": number,
        "ends_": sequence_of(text),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **CurveManifold._constraints,
        "bandwidth": nothing | real(0, above=True),
        "width": real(0, above=True),
        "step": real(0, above=True),
    }
    points_: FloatArray
    directions_: FloatArray
    variances_: FloatArray
    bandwidth_: float
    ends_: list[str]
    _n_rows: int = 0

    def __init__(
        self,
        *,
        bandwidth: float | None = None,
        width: float = oriented_points.WIDTH,
        step: float = oriented_points.STEP,
        root: Any = None,
        max_iter: int = 5000,
        tol: float = 1e-3,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.width = width
        self.step = step
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- training

    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        h = float(self.bandwidth) if self.bandwidth is not None else self.width * reference_width(rows, weight)
        self._n_rows = len(rows)
        widths = (h,) if self.bandwidth is not None else (h, _WIDER_FACTOR * h)
        walks = [OrientedWalk(rows, weight, width, self.step * width) for width in widths]

        def curve_of(state: oriented_points.WalkState) -> ArcCurve:
            found = oriented_points.best_walk(state)
            points = np.array([each.point for each in found.points])
            return ArcCurve.through(
                points if len(points) > 1 else principal_segment(PolygonalProblem(rows, weight)), found.closed
            )

        def extra_attributes(state: oriented_points.WalkState) -> dict[str, Any]:
            found = oriented_points.best_walk(state)
            return {
                "points_": np.array([each.point for each in found.points]) + offset,
                "directions_": np.array([each.direction for each in found.points]),
                "variances_": np.array([each.variance for each in found.points]),
                "bandwidth_": found.width,
                "ends_": [end.value for end in found.ends],
            }

        return CurveTraining(partial(oriented_points.train, walks), curve_of, extra_attributes)

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        found = super()._warnings()
        if self.curve_.length > 0 and len(self.points_) < 2 and self._n_rows >= _WARN_FROM_ROWS:
            words = f"of {self._n_rows} rows that differ the walk found a single oriented point, since {self.ends_[1]}"
            words = f"{words}: the curve is a piece of the first principal component"
            found.append((Message(words, Advice("bandwidth"), "take PrincipalCurve"), DegenerateWarning))
        return found

    def _attributes_without_length(self) -> dict[str, Any]:
        D = self.n_features_in_
        nothing_there: dict[str, Any] = {"points_": np.empty((0, D)), "directions_": np.empty((0, D))}
        return nothing_there | {"variances_": np.empty(0), "bandwidth_": 0.0, "ends_": ["", ""]}
