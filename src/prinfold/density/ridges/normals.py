"""Directions across a ridge: matrices whose largest eigenvalues belong to them.

The local inverse covariance −∇² log p = (I − C/h²)/h², with C the covariance of the neighbours that a kernel weighs, is
what Ozertem & Erdogmus take: on Gaussian data it is the inverse covariance itself. The Hessian −∇²p/p is the same
without the part of the gradient, which is C taken about x in place of the mean. On a ridge their eigenvectors agree;
away from it they may be in another order, so that rows take other ways. Covariances of the nearest rows (Wang &
Carreira-Perpiñán 2010) approximate the two by a look-up in place of sums over all kernels in reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.density.densities import Derivatives
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers
from prinfold.validation.settings import flag, integer


class Normal(Protocol):
    """A rule for the directions across a ridge."""

    own: ClassVar[bool]
    """Whether the matrix has the eigenvectors of −∇² log p in the same order."""

    def matrix(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """(n, D, D) symmetric, with the largest eigenvalues across the ridge."""


@storable
@dataclass(frozen=True)
class InverseCovariance:
    """−∇² log p: the inverse of the covariance where the density is Gaussian."""

    own: ClassVar[bool] = True

    def matrix(self, X: FloatArray, at: Derivatives) -> FloatArray:
        return -at.hessian


@storable
@dataclass(frozen=True)
class Hessian:
    """−∇²p / p = −∇² log p − g gᵀ, with g the gradient of log p."""

    own: ClassVar[bool] = False

    def matrix(self, X: FloatArray, at: Derivatives) -> FloatArray:
        return np.asarray(-at.hessian - at.gradient[:, :, None] * at.gradient[:, None, :])


@storable
@dataclass(frozen=True, eq=False)
class NeighborCovariance:
    """Minus the covariance of the ``n_neighbors`` nearest ``rows`` (m, D) of x, about their mean or about x."""

    _kinds: ClassVar[Kinds] = {"rows": numbers("n", "D"), "n_neighbors": integer(1), "about_mean": flag}

    own: ClassVar[bool] = False
    rows: FloatArray
    n_neighbors: int
    about_mean: bool

    def matrix(self, X: FloatArray, at: Derivatives) -> FloatArray:
        k = min(self.n_neighbors, len(self.rows))
        near = np.asarray(self._tree.query(X, k=np.arange(1, k + 1))[1])
        delta = self.rows[near] - X[:, None]
        if self.about_mean:
            delta -= delta.mean(axis=1, keepdims=True)
        return np.asarray(np.swapaxes(delta, 1, 2) @ delta / -k)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.rows)


NORMALS: dict[str, Callable[[FloatArray, int], Normal]] = {
    "inverse_covariance": lambda rows, n_neighbors: InverseCovariance(),
    "hessian": lambda rows, n_neighbors: Hessian(),
    "neighbors": lambda rows, n_neighbors: NeighborCovariance(rows, n_neighbors, about_mean=True),
    "neighbors_about_point": lambda rows, n_neighbors: NeighborCovariance(rows, n_neighbors, about_mean=False),
}
"""Rules by name, made from the training rows and the number of neighbours."""
