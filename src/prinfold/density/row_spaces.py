"""Spaces that rows lie in: flat space, or a globe with longitudes and latitudes.

A method works in coordinates of its own, in which distances are Euclidean nearby: the rows themselves, or places on a
sphere in space whose radius makes a degree of arc one unit of length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import degrees
from typing import ClassVar, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number
from prinfold.geometry.domain import UnitSphere
from prinfold.validation.settings import nothing

_POLE_LATITUDE = 90.0 + 1e-9


class RowSpace(Protocol):
    """The space that rows X (n, D) lie in; P are places (n, d) in the coordinates that methods work in."""

    @property
    def round(self) -> Globe | None:
        """The globe that places must stay on; None in flat space."""

    def dimension(self, n_columns: int) -> int:
        """Directions in which a row can move."""

    def enter(self, X: FloatArray) -> FloatArray:
        """Places of rows."""

    def leave(self, P: FloatArray) -> FloatArray:
        """Rows at places."""

    def leave_jacobian(self, P: FloatArray) -> FloatArray | None:
        """(n, D, d) the derivative of rows by places; None for the identity."""

    def squared_length(self, squared: FloatArray) -> FloatArray:
        """Squares of lengths along the space from those of straight lines."""


@storable
@dataclass(frozen=True)
class Flat:
    """Rows as they are."""

    _kinds: ClassVar[Kinds] = {"round": nothing}

    round: None = None

    def dimension(self, n_columns: int) -> int:
        return n_columns

    def enter(self, X: FloatArray) -> FloatArray:
        return np.asarray(X, dtype=np.float64)

    def leave(self, P: FloatArray) -> FloatArray:
        return P

    def leave_jacobian(self, P: FloatArray) -> FloatArray | None:
        return None

    def squared_length(self, squared: FloatArray) -> FloatArray:
        return squared


FLAT = Flat()


@storable
@dataclass(frozen=True)
class Globe:
    """Longitude and latitude in degrees, on a sphere on which a degree of arc has length 1.

    Longitudes are given between ``west`` and ``west`` + 360.
    """

    _kinds: ClassVar[Kinds] = {"west": number}

    west: float = -180.0

    @property
    def round(self) -> Globe:
        return self

    @property
    def radius(self) -> float:
        return degrees(1.0)

    def dimension(self, n_columns: int) -> int:
        if n_columns != 2:
            raise InvalidDataError(
                "a sphere takes two columns, longitude and latitude in degrees, but the table has "
                f"n_features = {n_columns}"
            )
        return 2

    def enter(self, X: FloatArray) -> FloatArray:
        X = np.asarray(X, dtype=np.float64)
        beyond = np.flatnonzero(np.abs(X[:, 1]) > _POLE_LATITUDE)
        if len(beyond):
            raise InvalidDataError(
                f"{len(beyond)} row(s) have latitudes beyond ±90 degrees, the first being row {beyond[0]}: "
                f"{X[beyond[0], 1]:g}; the columns are longitude and then latitude, in degrees"
            )
        longitude, latitude = np.radians(X).T
        across = np.cos(latitude)
        unit = np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)
        return np.asarray(self.radius * unit)

    def leave(self, P: FloatArray) -> FloatArray:
        latitude = np.degrees(np.arctan2(P[:, 2], np.hypot(P[:, 0], P[:, 1])))
        longitude = self.west + np.mod(np.degrees(np.arctan2(P[:, 1], P[:, 0])) - self.west, 360.0)
        return np.stack([longitude, latitude], axis=1)

    def leave_jacobian(self, P: FloatArray) -> FloatArray:
        x, y, z = P.T
        # At a pole every direction is north or south, and longitude does not change by as much as can be said.
        flat = np.maximum(x**2 + y**2, (1e-9 * self.radius) ** 2)
        whole, side = flat + z**2, np.sqrt(flat)
        longitude = np.stack([-y / flat, x / flat, np.zeros_like(z)], axis=1)
        latitude = np.stack([-x * z / (whole * side), -y * z / (whole * side), side / whole], axis=1)
        return np.asarray(np.degrees(np.stack([longitude, latitude], axis=1)))

    def squared_length(self, squared: FloatArray) -> FloatArray:
        """(2R asin(c / 2R))² of chords c: the great circle between their ends."""
        half = np.minimum(0.5 * np.sqrt(squared) / self.radius, 1.0)
        return np.asarray(np.square(2.0 * self.radius * np.arcsin(half)))

    def frame(self, P: FloatArray) -> FloatArray:
        """(n, 3, 2) orthonormal directions along the sphere."""
        return UnitSphere().frame(P / self.radius)

    def retract(self, P: FloatArray) -> FloatArray:
        """The nearest places on the sphere."""
        return np.asarray(self.radius * UnitSphere().retract(P / self.radius))


def globe_of(X: FloatArray) -> Globe:
    """The globe with longitudes written as the rows have them: from −180 where any is negative, else from 0."""
    return Globe(-180.0 if X[:, 0].min(initial=0.0) < 0 or X[:, 0].max(initial=0.0) <= 180.0 else 0.0)


SPACES: dict[str, Callable[[FloatArray], Flat | Globe]] = {"flat": lambda X: FLAT, "sphere": globe_of}
"""Spaces by name, made from the training rows."""
