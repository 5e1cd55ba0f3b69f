"""Base of estimators of a single curve: arc length as the coordinate, the fit, and warnings about the result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, Mesh
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import TRAINING
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.roots import END_SHARE, ROOT, Root, lowest_rows_middle, read_root, remote_warning
from prinfold.base.trajectories import TrajectoryVerbs
from prinfold.base.unique_rows import centered_rows
from prinfold.curves.arc_curve import ArcCurve, arc_lengths_of_rows, orient_curve
from prinfold.curves.diagnosis import misfit
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    Message,
    StructureWarning,
    in_sentences,
    warn_caller,
)
from prinfold.files.kinds import Kinds, numbers, part, text
from prinfold.geometry.projection import Projection
from prinfold.latent import Branches
from prinfold.latent.branch_graph import BranchGraph
from prinfold.loops import Last, Listeners, Outcome, run_fixed_point
from prinfold.numerics.polylines import nearest_on_polyline
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, flag, integer, real
from prinfold.validation.tables import forget

_COLLAPSED_SHARE = 0.01
"""Length of a curve, in units of the spread of the rows, below which it is a point."""


class CurveTraining(NamedTuple):
    """The training of a curve on rows about their mean.

    ``loop`` takes ``max_iter``, ``tol`` and ``listeners``; ``curve_of`` makes a curve of one of its states, in any
    direction, and ``extra_attributes`` further fitted attributes.
    """

    loop: Callable[..., Outcome[Any]]
    curve_of: Callable[[Any], ArcCurve]
    extra_attributes: Callable[[Any], dict[str, Any]] = lambda state: {}


@fill_parameter_docs
class CurveManifold(TrajectoryVerbs, PrincipalManifold):
    """Base of estimators whose surface is one curve; a method says how it is found, in :meth:`_training`.

    Rows that are equal are collapsed to one with the weight of all, and their mean is taken off before anything is
    computed. ``curve_`` is about that mean, ``offset_``.
    """

    _stored: ClassVar[Kinds] = {
        "curve_": part("ArcCurve", "Polyline", points__T="n_features_in_"),
        "offset_": numbers("n_features_in_"),
        "doubt_": text,
        **TRAINING,
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "root": ROOT,
        "max_iter": integer(0),
        "tol": real(0),
        "verbose": integer(0) | flag,
    }
    _dimension: ClassVar[int | None] = 1
    _follows_far_rows: ClassVar[bool] = True
    root: Any
    curve_: ArcCurve
    offset_: FloatArray
    doubt_: str

    @abstractmethod
    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        """The training of the curve on rows (n, D) that all differ, at least two, with weights (n,).

        The rows are about their mean, ``offset`` (D,), which is to be taken off other points of data space, too.
        """

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the curve.

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
        table, unique, offset, centered = centered_rows(self, X, sample_weight)
        weight, told = unique.weight, Root(None, None) if self.root is None else read_root(self.root, table)
        if len(centered) > 1:
            training = self._training(centered, weight, offset)
        else:
            training = _point_training(centered, self._attributes_without_length())

        def attributes(state: Any) -> dict[str, Any]:
            curve = training.curve_of(state)
            curve = orient_curve(curve, centered, weight, _root_position(curve, told, table, offset))
            own = {"curve_": curve, "offset_": offset, "n_features_in_": len(offset)}
            return own | training.extra_attributes(state)

        self._train_with_callbacks(table, attributes, training.loop)
        misfits = self._collapse_warnings(centered, weight) or self._misfit_warnings(centered, weight)
        self.doubt_ = " ".join(in_sentences(words) for words, _ in misfits)
        root_warnings = [] if told.position is None else _root_warnings(self.curve_, told.position - offset, centered)
        for words, category in [*self._warnings(), *root_warnings, *misfits]:
            warn_caller(words, category)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Arc length of the nearest point of the curve, from its beginning and in units of the data.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, 1)
        """
        return self._latent_of(self._table(X))

    @property
    def latent_(self) -> Branches:  # type: ignore[override]
        """The coordinate: a single branch, open or closed."""
        return self.curve_.latent  # an AttributeError before the fit, as it has to be

    @property
    def vertices_(self) -> FloatArray:
        """(m, D) points along the curve, in order; a closed one does not repeat its beginning."""
        check_is_fitted(self)
        return np.asarray(self.curve_.vertices + self.offset_)

    @property
    def closed_(self) -> bool:
        """Whether the curve returns to its beginning."""
        check_is_fitted(self)
        return self.curve_.closed

    @property
    def length_(self) -> float:
        """Length of the curve, in units of the data."""
        check_is_fitted(self)
        return self.curve_.length

    @property
    def root_(self) -> FloatArray:  # type: ignore[override]
        """(1,) coordinate of the root: a curve begins there."""
        check_is_fitted(self)
        return np.zeros(1)

    # --------------------------------------------------------------------------------------- plumbing

    def _network(self) -> BranchGraph:
        return BranchGraph(self.curve_.latent, np.array([[-1, -1] if self.curve_.closed else [0, 1]]))

    def _attributes_without_length(self) -> dict[str, Any]:
        """Further fitted attributes where all rows are equal, and nothing was trained."""
        return {}

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings about the training: message and category."""
        found = self._stopping_warnings()
        if self.curve_.length == 0:
            found.append(("all rows are equal, so that the curve has no length", DegenerateWarning))
        return found

    def _collapse_warnings(self, rows: FloatArray, weight: FloatArray) -> list[tuple[str, type[Warning]]]:
        """A warning about a curve that has shrunk to a point."""
        spread = float(np.sqrt(np.average(np.square(rows).sum(axis=1), weights=weight)))
        if self.curve_.length == 0 or self.curve_.length > _COLLAPSED_SHARE * spread:
            return []
        words = (
            f"the curve has collapsed to a point: it is {self.curve_.length:.3g} long, and rows spread by {spread:.3g}"
        )
        return [(Message(words, Advice("closed", False), "begin elsewhere (init)", "smooth less"), DegenerateWarning)]

    def _misfit_warnings(self, rows: FloatArray, weight: FloatArray) -> list[tuple[str, type[Warning]]]:
        """A warning about rows that do not lie along one curve."""
        words = misfit(self.curve_, rows, weight)
        return [(words, StructureWarning)] if words else []

    def _nearest(self, table: FloatArray) -> Projection:
        found = self.curve_.nearest(np.asarray(table, dtype=np.float64) - self.offset_)
        return found._replace(points=found.points + self.offset_)

    def _point(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self.curve_.point(Z) + self.offset_)

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self.curve_.jacobian(Z)

    def _mesh(self, resolution: int | None = None) -> Mesh:
        mesh = self.curve_.mesh(resolution)
        return mesh._replace(vertices=mesh.vertices + self.offset_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "curve_")


def _root_position(curve: ArcCurve, root: Root, table: FloatArray, offset: FloatArray) -> FloatArray | None:
    """(D,) the root about the mean of the rows; one that follows a score is the end where that is lower."""
    if root.position is not None:
        return np.asarray(root.position - offset)
    if root.score is None:
        return None
    if curve.closed:
        return lowest_rows_middle(table, root.score) - offset
    time = rankdata(arc_lengths_of_rows(curve, np.asarray(table, dtype=np.float64) - offset))
    rises = float((time - time.mean()) @ rankdata(root.score)) >= 0
    return np.asarray(curve.vertices[0 if rises else -1])


def _root_warnings(curve: ArcCurve, root: FloatArray, rows: FloatArray) -> list[tuple[str, type[Warning]]]:
    """Warnings about a root (D,) far from both ends of an open curve, or far from the curve and its ``rows`` (n, D)."""
    if curve.length == 0:
        return []
    found: list[tuple[str, type[Warning]]] = []
    place = float(curve.nearest(root[None]).latent[0, 0])
    if not curve.closed and place >= END_SHARE * curve.length:
        words = f"root= lies {place:.3g} from the nearer end of a curve that is {curve.length:.3g} long"
        found.append((f"{words}, at which it begins. Give a row near one of the two ends", DegenerateWarning))
    off, most = (
        float(np.sqrt(nearest_on_polyline(each, curve.vertices, curve.closed).squared.max()))
        for each in (root[None], rows)
    )
    return found + remote_warning(off, most, curve.length, "curve")


def _point_training(rows: FloatArray, extra_attributes: dict[str, Any]) -> CurveTraining:
    """Training where all rows are equal: the curve is a point from the start."""
    curve = ArcCurve.through(rows[:1])

    def loop(*, max_iter: int, tol: float, listeners: Listeners) -> Outcome[ArcCurve]:
        return run_fixed_point(
            lambda: curve,
            lambda same: same,
            lambda _: {"objective": 0.0},
            max_iter=max_iter,
            tol=tol,
            listeners=listeners,
            rule=Last(),
        )

    return CurveTraining(loop, lambda state: state, lambda state: extra_attributes)
