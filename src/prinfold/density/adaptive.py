"""Adaptive kernel densities: kernels that are wide where rows are sparse and narrow where they are dense.

The estimate with one bandwidth for each row is that of Breiman, Meisel and Purcell (1977), and its mean shift that of
Comaniciu, Ramesh and Meer (2001).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log, pi
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.density.adaptive_sums import ScaledSums
from prinfold.density.densities import IS_DERIVATIVES, Derivatives, check_accuracy, check_rows
from prinfold.density.kernel_sums import ACCURACY
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, text
from prinfold.rows.rows import shared_property
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.tables import as_numbers


class _AdaptiveDerivatives(Derivatives):
    """Derivatives that remember ``precision`` (n,) Σ b_j / h_j², which mean shift divides by."""

    precision: FloatArray


@storable
@check_verbs({"X": attrgetter("n_columns")}, at=IS_DERIVATIVES)
@dataclass(frozen=True, eq=False)
class AdaptiveDensity:
    """Gaussian kernels on rows, each with a bandwidth of its own.

    p(x) = Σ_j w_j exp(−‖x − x_j‖² / 2h_j²) / ((2π h_j²)^(D/2) Σ_j w_j)

    Parameters
    ----------
    rows : array (m, D)
        Where the kernels are.
    weight : array (m,)
        Their weights, none negative; rows of no weight count for nothing.
    bandwidths : array (m,)
        h, positive. The rule "neighbors" of :mod:`prinfold.density.bandwidths` takes them from distances to
        neighbours.
    accuracy : {"truncated", "exact", "compressed"}
        What is left out of the sums: what together is below a millionth of them, or nothing. Kernels of different
        widths are not put together.
    """

    _kinds: ClassVar[Kinds] = {
        "rows": numbers("m", "D"),
        "weight": numbers("m", least=0),
        "bandwidths": numbers("m", above=0),
        "accuracy": text,
    }

    rows: FloatArray
    weight: FloatArray
    bandwidths: FloatArray
    accuracy: str = "truncated"

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(self.rows.shape[1])

    def __post_init__(self) -> None:
        check_rows(self.rows, self.weight)
        check_accuracy(self.accuracy)
        h = as_numbers("bandwidths", self.bandwidths)
        if h.shape != (len(self.rows),):
            raise InvalidParameterError(
                f"expected one bandwidth for each of {len(self.rows)} rows, got shape {h.shape}"
            )
        if not ((h > 0) & np.isfinite(h)).all():
            raise InvalidParameterError(f"bandwidths must be positive and finite, got {h.min()} to {h.max()}")

    def log_density(self, X: FloatArray) -> FloatArray:
        return self.derivatives(X).log_density

    def derivatives(self, X: FloatArray) -> Derivatives:
        log_sum, precision, gradient, hessian = self._sums.derivatives(np.asarray(X, dtype=np.float64) - self._middle)
        at = _AdaptiveDerivatives(log_sum - 0.5 * self.rows.shape[1] * log(2.0 * pi), gradient, hessian)
        at.precision = precision
        return at

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """m = Σ (b_j / h_j²) x_j / Σ (b_j / h_j²) − x = ∇ log p / Σ (b_j / h_j²), with b the shares of the kernels."""
        known = at if isinstance(at, _AdaptiveDerivatives) else self.derivatives(X)
        return np.asarray(at.gradient / known.precision[:, None])  # type: ignore[attr-defined]

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) the bandwidth of the nearest row."""
        return np.asarray(self.bandwidths, dtype=np.float64)[np.asarray(self._tree.query(X - self._middle)[1])]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # cached sums are made again

    @shared_property
    def _middle(self) -> FloatArray:
        return np.asarray(np.median(self.rows, axis=0))

    @shared_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.rows - self._middle)

    @shared_property
    def _sums(self) -> ScaledSums:
        counts = np.asarray(self.weight) > 0
        rows, weight, width = (np.asarray(each)[counts] for each in (self.rows, self.weight, self.bandwidths))
        return ScaledSums(rows - self._middle, weight * 1.0, width * 1.0, ACCURACY[self.accuracy].tolerance)
