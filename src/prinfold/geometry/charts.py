"""A latent domain of several charts beside each other, none of which leads to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.geometry.domain import Domain, Extent, Restrained

_CHART_ROUNDING = 1e-6
"""How far from a whole number the number of a chart may have been rounded."""


@dataclass(frozen=True)
class Charts:
    """Coordinates (j, z): the number of a chart, then a place z in its domain.

    All domains have the same dimension. Those with fewer columns than others are filled up with zeros, which mean
    nothing. The number of the chart is not a direction: no frame has it, and a retraction rounds it.
    """

    domains: tuple[Domain, ...]

    @cached_property
    def extent(self) -> Extent:
        """Bounds of all charts together; infinite where one of them has none."""
        every = [domain.extent for domain in self.domains]
        bounds = np.full((2, len(every), max(each.n_columns for each in every)), [[[-np.inf]], [[np.inf]]])
        for j, each in enumerate(every):
            bounds[:, j, : each.n_columns] = each.lower, each.upper
        lower, upper = np.append(0.0, bounds[0].min(axis=0)), np.append(len(every) - 1.0, bounds[1].max(axis=0))
        return Extent(lower, upper, every[0].dimension, max(each.length for each in every))

    def chart(self, Z: FloatArray) -> IntArray:
        """(...) the chart that coordinates (..., Q) lie on, or the nearest there is."""
        return np.asarray(np.clip(np.rint(Z[..., 0]), 0, len(self.domains) - 1), dtype=np.intp)

    def contains(self, Z: FloatArray) -> BoolArray:
        finite: BoolArray = np.asarray(np.isfinite(Z).all(axis=1))
        known = np.where(finite[:, None], Z, 0.0)
        inside = finite & (np.abs(known[:, 0] - self.chart(known)) <= _CHART_ROUNDING)
        for domain, rows, places in self._parts(known):
            beyond = np.abs(known[rows, 1 + domain.extent.n_columns :])
            inside[rows] &= domain.contains(places) & (beyond <= _CHART_ROUNDING).all(axis=1)
        return inside

    def retract(self, Z: FloatArray) -> FloatArray:
        return self._move(Z, lambda domain, places: domain.retract(places))

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """A − B, the short way round where both lie on the same chart."""
        A, B = np.broadcast_arrays(A, B)
        delta, a, b = np.array(A - B), self.chart(A), self.chart(B)
        for j, domain in enumerate(self.domains):
            both, columns = (a == j) & (b == j), slice(1, 1 + domain.extent.n_columns)
            delta[both, columns] = domain.difference(A[both][:, columns], B[both][:, columns])
        return delta

    def frame(self, Z: FloatArray) -> FloatArray:
        out = np.zeros((len(Z), self.extent.n_columns, self.extent.dimension))
        for domain, rows, places in self._parts(Z):
            out[rows, 1 : 1 + domain.extent.n_columns] = domain.frame(places)
        return out

    def boundary(self, Z: FloatArray) -> BoolArray:
        out = np.zeros(len(Z), dtype=bool)
        for domain, rows, places in self._parts(Z):
            out[rows] = domain.boundary(places)
        return out

    def beyond(self, Z: FloatArray) -> FloatArray:
        return self._move(Z, lambda domain, places: domain.beyond(places))

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        frozen, drift = np.zeros(gradient.shape, dtype=bool), np.zeros_like(gradient)
        found = Restrained(gradient.copy(), hessian.copy(), frozen, drift)
        for domain, rows, places in self._parts(Z):
            held = domain.restrain(places, gradient[rows], hessian[rows], size[rows])
            for whole, part in zip(found, held, strict=True):
                whole[rows] = part
        return found

    def _move(self, Z: FloatArray, move: Callable[[Domain, FloatArray], FloatArray]) -> FloatArray:
        """Coordinates whose places every chart moves in its own way."""
        out = np.zeros(Z.shape)
        out[:, 0] = self.chart(Z)
        for domain, rows, places in self._parts(Z):
            out[rows, 1 : 1 + domain.extent.n_columns] = move(domain, places)
        return out

    def _parts(self, Z: FloatArray) -> list[tuple[Domain, IntArray, FloatArray]]:
        """For each chart its domain, the rows that lie on it, and their places there."""
        chart = self.chart(Z)
        found = ((domain, np.flatnonzero(chart == j)) for j, domain in enumerate(self.domains))
        return [(domain, rows, Z[rows, 1 : 1 + domain.extent.n_columns]) for domain, rows in found if len(rows)]
