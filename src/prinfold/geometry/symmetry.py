"""Latent coordinates compared up to the symmetries of their space: turns, reflections, swapped axes.

A model of a circle has no way to tell where the circle begins or which way it runs, one of a sphere none to tell up
from down. Coordinates that were found and those that generated the data are therefore compared after the symmetry
that brings them nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.roughness import angles_between
from prinfold.validation.failures import name_call_failures
from prinfold.validation.tables import as_numbers

_MOST_SHEARED_ANGLES = 2
"""Angles up to which all integer matrices with entries −1, 0 and 1 are tried: there are 40 for two, 6960 for three."""


class Alignment(NamedTuple):
    """Coordinates moved by a symmetry of their space, and how far they still are from the truth.

    Parameters
    ----------
    coordinates : array of shape (n, Q)
        ``Z @ turn.T + shift``, brought back to the domain.
    distance : array of shape (n,)
        Along the space, to the true coordinates: radians where all axes are angles, and on a sphere.
    turn : array of shape (Q, Q)
        Orthogonal on a sphere; elsewhere whole numbers with determinant ±1.
    shift : array of shape (Q,)
        What is added to angles; 0 on a sphere, and on open axes but for those of a box not centred at 0.
    """

    coordinates: FloatArray
    distance: FloatArray
    turn: FloatArray
    shift: FloatArray

    @property
    def degrees(self) -> FloatArray:
        """(n,) the distances in degrees, which they are where the coordinates are angles or directions."""
        return np.asarray(np.degrees(self.distance))


@name_call_failures
def align(Z: FloatArray, truth: FloatArray, domain: Any) -> Alignment:
    """Move latent coordinates by the symmetry of their space that brings them nearest to the true ones.

    On a sphere that is the orthogonal matrix R that maximises Σᵢ uᵢᵀ R zᵢ (Procrustes; Schönemann, 1966). Angles z
    become A z + c: for one angle A is ±1; for two it is any matrix of entries −1, 0 and 1 and determinant ±1, since a
    torus may be found sheared as well as with its circles swapped; for more a permutation with signs. The shift c of an
    angle is the mean direction of what is left, and A is taken that makes the mean resultants of what is left longest.
    Open axes may be swapped and reversed, whichever makes the sum of squares least.

    Parameters
    ----------
    Z, truth : array of shape (n, Q)
        Coordinates that were found and those that generated the rows; angles in radians, of any period of 2π.
    domain : Box or UnitSphere
        Where the coordinates that were found live, such as ``model.latent_.domain``.

    Returns
    -------
    Alignment
        The coordinates after the symmetry, and their distances from the truth.
    """
    Z, truth = as_numbers("Z", Z), as_numbers("truth", truth)
    align_in = _ALIGNMENTS.get(type(domain))
    if align_in is None:
        raise InvalidParameterError(
            f"the symmetries of a {type(domain).__name__} are not known; give the domain of a lattice or a sphere"
        )
    if Z.shape != truth.shape or Z.ndim != 2 or Z.shape[1] != domain.extent.n_columns or not len(Z):
        raise InvalidDataError(
            f"both sets of coordinates must be of shape (n, {domain.extent.n_columns}), got {Z.shape} and {truth.shape}"
        )
    if not (np.isfinite(Z).all() and np.isfinite(truth).all()):
        raise InvalidDataError("coordinates to be aligned must be finite")
    return align_in(Z, truth, domain)


def _align_on_sphere(Z: FloatArray, truth: FloatArray, domain: UnitSphere) -> Alignment:
    turn = np.asarray(orthogonal_procrustes(Z, truth)[0].T)
    moved = Z @ turn.T
    return Alignment(moved, angles_between(moved, truth), turn, np.zeros(3))


def _align_in_box(Z: FloatArray, truth: FloatArray, domain: Box) -> Alignment:
    closed, n_axes = np.asarray(domain.periodic), len(domain.periodic)
    turn, shift = np.zeros((n_axes, n_axes)), np.zeros(n_axes)
    angles, open_axes = np.flatnonzero(closed), np.flatnonzero(~closed)
    if len(angles):
        unit = 2.0 * np.pi / (np.asarray(domain.high) - np.asarray(domain.low))[angles]
        A, c = _best_angles(Z[:, angles] * unit, truth[:, angles] * unit)
        turn[np.ix_(angles, angles)], shift[angles] = A * unit / unit[:, None], c / unit
    if len(open_axes):
        middle = 0.5 * (np.asarray(domain.low) + np.asarray(domain.high))[open_axes]
        A = _best_signs(Z[:, open_axes] - middle, truth[:, open_axes] - middle)
        turn[np.ix_(open_axes, open_axes)], shift[open_axes] = A, middle - A @ middle
    moved = domain.retract(Z @ turn.T + shift)
    return Alignment(moved, np.asarray(np.linalg.norm(domain.difference(moved, truth), axis=1)), turn, shift)


_ALIGNMENTS: dict[type, Callable[..., Alignment]] = {Box: _align_in_box, UnitSphere: _align_on_sphere}
"""The best symmetry of each kind of domain whose symmetries are known."""


def _best_angles(Z: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The matrix A and the shift c with which A z + c is nearest to the true angles."""

    def resultants(A: FloatArray) -> Any:
        return np.exp(1j * (truth - Z @ A.T)).mean(axis=0)

    if Z.shape[1] > _MOST_SHEARED_ANGLES:
        turned = np.exp(1j * truth).T
        best = _signed_permutation(np.abs(turned @ np.exp(-1j * Z)), np.abs(turned @ np.exp(1j * Z)))
    else:  # of several that are as good the first, whatever rounding adds
        best = max(_unimodular(Z.shape[1]), key=lambda A: round(float(np.abs(resultants(A)).sum()), 9))
    return best, np.angle(resultants(best))


def _best_signs(Z: FloatArray, truth: FloatArray) -> FloatArray:
    """The permutation A with signs that makes Σ ‖u − A z‖² least, which is to make Σ uᵀ A z largest."""
    return _signed_permutation(truth.T @ Z, -truth.T @ Z)


def _signed_permutation(kept: FloatArray, reversed_: FloatArray) -> FloatArray:
    """(n, n) one ±1 in each row and column, of the largest sum of what each (a, b) gains ``kept`` or ``reversed_``."""
    a, b = linear_sum_assignment(np.maximum(kept, reversed_), maximize=True)
    A = np.zeros(kept.shape)
    A[a, b] = np.where(kept >= reversed_, 1.0, -1.0)[a, b]
    return A


def _unimodular(n: int) -> list[FloatArray]:
    """Matrices with entries −1, 0, 1 and determinant ±1, those with the fewest entries first."""
    every = (np.reshape(entries, (n, n)).astype(float) for entries in product((0, 1, -1), repeat=n * n))
    kept = [A for A in every if abs(abs(np.linalg.det(A)) - 1.0) < 0.5]
    return sorted(kept, key=lambda A: np.abs(A).sum())
