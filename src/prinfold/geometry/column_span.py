"""The linear span of a surface in wide tables, where it is smaller than the space of all columns.

A surface y(z) = φ(z) W with weights W (M, D) lies in the span of their rows. With an orthonormal frame F (D, r) of it

    ‖x − y(z)‖² = ‖xF − φ(z) WF‖² + ‖x − xFFᵀ‖²,

of which the second part is the same for every z: nearest points are found in r columns instead of D. n rows span at
most n dimensions, and so does a curve made of sums of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prinfold._typing import FloatArray


@dataclass(frozen=True)
class ColumnSpan:
    """The span of a surface about its ``origin``, by an orthonormal ``frame`` (D, r); without one it is the space."""

    frame: FloatArray | None
    origin: FloatArray | float = 0.0

    @classmethod
    def of(cls, weights: FloatArray, origin: FloatArray | float = 0.0) -> ColumnSpan:
        """The span of weights, or of rows, (M, D), where it is smaller than the space."""
        n_weights, n_columns = weights.shape
        return cls(np.linalg.qr(weights.T)[0], origin) if n_columns > n_weights else cls(None)

    def inside(self, X: FloatArray) -> FloatArray:
        """(n, r) coordinates of rows (n, D) in the frame."""
        return X if self.frame is None else (X - self.origin) @ self.frame

    def outside(self, X: FloatArray) -> FloatArray:
        """(n,) squared distances of rows from the span."""
        if self.frame is None:
            return np.zeros(len(X))
        return np.asarray(np.square(X - self.from_coordinates(self.inside(X))).sum(axis=1))

    def from_coordinates(self, Y: FloatArray) -> FloatArray:
        """(n, D) rows with coordinates Y (n, r)."""
        return Y if self.frame is None else Y @ self.frame.T + self.origin
