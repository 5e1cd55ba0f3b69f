"""Embeddings of latent spaces in ordinary coordinates without a seam, where means and basis functions are taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.geometry.domain import Domain


class Embedding(Protocol):
    """A smooth map from latent coordinates (n, Q) to ordinary ones (n, e), and back."""

    def embed(self, Z: FloatArray) -> FloatArray:
        """(n, e) embedded coordinates."""

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, e, Q) derivative of :meth:`embed`."""

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates (n, Q) nearest to embedded points, and (n,) how well defined they are.

        The latter is the shortest resultant of any angle: 0 where a mean direction points nowhere, inf
        without angles.
        """


@dataclass(frozen=True)
class AxisEmbedding:
    """An angle θ as (cos θ, sin θ), coordinates along other axes as they are; ``angles`` (Q,) tells which is which."""

    domain: Domain
    angles: tuple[bool, ...]

    def embed(self, Z: FloatArray) -> FloatArray:
        columns: list[FloatArray] = []
        for axis, closed in enumerate(self.angles):
            columns += [np.cos(Z[:, axis]), np.sin(Z[:, axis])] if closed else [Z[:, axis]]
        return np.stack(columns, axis=1) if any(self.angles) else Z

    def jacobian(self, Z: FloatArray) -> FloatArray:
        out = np.zeros((len(Z), len(self.angles) + sum(self.angles), len(self.angles)))
        row = 0
        for axis, closed in enumerate(self.angles):
            if closed:
                out[:, row, axis], out[:, row + 1, axis] = -np.sin(Z[:, axis]), np.cos(Z[:, axis])
            else:
                out[:, row, axis] = 1.0
            row += 2 if closed else 1
        return out

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        Z, resultant, row = np.empty((len(E), len(self.angles))), np.full(len(E), np.inf), 0
        for axis, closed in enumerate(self.angles):
            if closed:
                Z[:, axis] = np.arctan2(E[:, row + 1], E[:, row])
                resultant = np.minimum(resultant, np.hypot(E[:, row], E[:, row + 1]))
            else:
                Z[:, axis] = E[:, row]
            row += 2 if closed else 1
        return self.domain.retract(Z), resultant


class SphereEmbedding(AxisEmbedding):
    """Unit vectors as they are, the nearest one to a point in space along its ray."""

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.domain.retract(E), np.asarray(np.linalg.norm(E, axis=1))
