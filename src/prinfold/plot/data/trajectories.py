"""Columns along a curve, computed: what each is at every place, in the order in which they peak."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError, UnsupportedInputError, shown
from prinfold.plot.inputs import FittedSurface
from prinfold.validation.settings import check_setting, integer

_CURVE_POINTS = 200
"""Points along a curve at which columns are drawn."""


class CurveColumns(NamedTuple):
    """``level`` (c, m) of columns at places (m,), from 0 to 1 between the lowest and highest of each; their ``order``.

    ``order`` (c,) are the numbers of the columns, those that peak first at the beginning of the curve.
    """

    places: FloatArray
    level: FloatArray
    order: IntArray


def columns_along(fitted: FittedSurface, most: int) -> CurveColumns:
    """The columns that vary most along a curve beside their own spread, at most so many."""
    latent = fitted.latent
    pieces = None if latent.drawing is None else latent.drawing.pieces
    if latent.drawing is None or latent.dimension != 1 or (pieces is not None and len(pieces.low) > 1):
        raise InvalidParameterError(
            "columns are drawn along one curve, but this model is not a single curve; fit one, such as "
            "PrincipalCurve(), or see plot.latent_map"
        )
    check_setting("most", most, integer(1))
    drawn = fitted.model.mesh().latent[:, 0]
    places = np.linspace(float(drawn.min()), float(drawn.max()), _CURVE_POINTS)
    Y = fitted.points(latent.domain.retract(places[:, None])).T
    low, high = Y.min(axis=1, keepdims=True), Y.max(axis=1, keepdims=True)
    reach = (high - low)[:, 0]
    kept = np.sort(np.argsort(-_share(reach, Y), kind="stable")[:most])
    kept = kept[reach[kept] > 0] if (reach[kept] > 0).any() else kept
    return _by_peak(places, Y, kept)


def gene_levels(tests: Any, most: int) -> CurveColumns:
    """Genes of the smallest p-values, or of the largest effects where there are none, at most so many."""
    if not all(hasattr(tests, name) for name in ("p_value", "effect", "times", "level")):
        words = f"curves of genes need GeneTests, as expression.association returns, got {shown(tests)}"
        raise UnsupportedInputError(words)
    p_value = np.where(np.isfinite(tests.p_value), tests.p_value, 1.0)
    kept = np.sort(np.lexsort((-np.abs(tests.effect), p_value))[:most])
    return _by_peak(tests.times, tests.level, kept)


def _by_peak(places: FloatArray, Y: FloatArray, kept: IntArray) -> CurveColumns:
    """Some of the columns (c, m), each from 0 to 1, in the order in which they peak."""
    low, high = Y[kept].min(axis=1, keepdims=True), Y[kept].max(axis=1, keepdims=True)
    level = (Y[kept] - low) / np.where(high > low, high - low, 1.0)
    first = np.argsort(np.argmax(level, axis=1), kind="stable")
    return CurveColumns(places, level[first], kept[first])


def _share(reach: FloatArray, Y: FloatArray) -> FloatArray:
    """(D,) how far columns go beside how large their numbers are, so that units do not decide."""
    size = np.abs(Y).max(axis=1)
    return np.asarray(reach / np.where(size > 0, size, 1.0))
