"""Rows in the span of themselves, where columns are more than rows.

A curve that is made of rows by sums lies in their span, and distances there are what they are in all columns: with X
(n, D), D > n, and Xᵀ = QR, the rows Rᵀ (n, n) tell all that X does, and points p of their space are pQᵀ in D columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray


class RowSpan(NamedTuple):
    """Rows (n, r) by coordinates in an orthonormal ``basis`` (r, D), or as they are where that is None."""

    rows: FloatArray
    basis: FloatArray | None = None

    @classmethod
    def of(cls, X: FloatArray) -> RowSpan:
        """Rows (n, D) in as few columns as they are rows."""
        if X.shape[1] <= len(X):
            return cls(X)
        Q, R = np.linalg.qr(X.T)
        return cls(np.ascontiguousarray(R.T), np.ascontiguousarray(Q.T))

    def back(self, points: FloatArray) -> FloatArray:
        """(m, D) points or directions (m, r) in all columns."""
        return points if self.basis is None else np.asarray(points @ self.basis)
