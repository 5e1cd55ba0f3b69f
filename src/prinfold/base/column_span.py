"""Surfaces that are linear in their weights, seen within the columns that they move in."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.geometry.column_span import Span


class SpannedManifold(PrincipalManifold):
    """A surface y(z) = φ(z) W about an offset: of wide tables, nearest points are found within the span of W."""

    weights_: FloatArray
    offset_: FloatArray

    def _narrowed(self) -> tuple[Self, Span]:
        within = Span.of(self.weights_, self.offset_)
        if within.frame is None:
            return self, within
        narrow = copy(self)
        narrow.weights_, narrow.offset_ = self.weights_ @ within.frame, np.zeros(within.frame.shape[1])
        return narrow, within
