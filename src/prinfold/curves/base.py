"""Base of estimators of a single curve: arc length as the coordinate, the fit, and warnings about the result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, Mesh
from prinfold.base.callbacks import with_callbacks
from prinfold.base.file_requirements import TRAINING
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.unique_rows import centered_rows
from prinfold.curves.arc_curve import ArcCurve, orient_curve
from prinfold.curves.diagnosis import doubt
from prinfold.curves.root import root_position, root_warnings
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    Message,
    StructureWarning,
    warn_caller,
)
from prinfold.files.kinds import Kinds, numbers, part, text
from prinfold.geometry.projection import Projection
from prinfold.latent import Branches
from prinfold.loops import Last, Outcome, run_fixed_point
from prinfold.validation.failures import name_failures
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, flag, instance_of, integer, nothing, real

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
class CurveManifold(PrincipalManifold):
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
        "root": nothing
        | integer(0)
        | instance_of(np.ndarray, list, tuple, words="a row of numbers, one for each column, or a mask of the rows"),
        "max_iter": integer(0),
        "tol": real(0),
        "verbose": integer(0) | flag,
    }
    _dimension: ClassVar[int | None] = 1
    root: Any
    curve_: ArcCurve
    offset_: FloatArray
    doubt_: str

    @abstractmethod
    def _training(self, rows: FloatArray, weight: FloatArray, offset: FloatArray) -> CurveTraining:
        """The training of the curve on rows (n, D) that all differ, at least two, with weights (n,).

        The rows are about their mean, ``offset`` (D,), which is to be taken off other points of data space, too.
        """

    @name_failures
    @with_callbacks
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
        self._forget()
        table, unique, offset, centered = centered_rows(self, X, sample_weight)
        weight, root = unique.weight, None if self.root is None else root_position(self.root, table) - offset
        if len(centered) > 1:
            training = self._training(centered, weight, offset)
        else:
            training = _point_training(centered, self._attributes_without_length())

        def attributes(state: Any) -> dict[str, Any]:
            curve = orient_curve(training.curve_of(state), centered, weight, root)
            own = {"curve_": curve, "offset_": offset, "n_features_in_": len(offset)}
            return own | training.extra_attributes(state)

        self._train_with_callbacks(table, attributes, training.loop)
        doubted = self._collapse_warnings(centered, weight) or self._doubt_warnings(centered, weight)
        self.doubt_ = "; ".join(words for words, _ in doubted)
        astray = [] if root is None else root_warnings(self.curve_, root, centered)
        for words, category in [*self._warnings(), *astray, *doubted]:
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

    # --------------------------------------------------------------------------------------- plumbing

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

    def _doubt_warnings(self, rows: FloatArray, weight: FloatArray) -> list[tuple[str, type[Warning]]]:
        """A warning about rows that do not lie along one curve."""
        words = doubt(self.curve_, rows, weight)
        return [(words, StructureWarning)] if words else []

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return self._nearest(table).latent.astype(table.dtype, copy=False)

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

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "curve_")


def _point_training(rows: FloatArray, extra_attributes: dict[str, Any]) -> CurveTraining:
    """Training where all rows are equal: the curve is a point from the start."""
    curve = ArcCurve.through(rows[:1])

    def loop(*, max_iter: int, tol: float, listeners: Any) -> Outcome[ArcCurve]:
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
