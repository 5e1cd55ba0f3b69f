"""Latent domains bounded by a contour, UKR (7): all places where a density is not below a threshold.

Such a region may have any shape, with holes and in several pieces. What it is known by is the log-density with its
derivatives, and some places inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray
from prinfold.geometry.domain import Extent, Restrained

_CONTOUR_SLACK = 1e-12
"""Log-density above the threshold up to which a place lies on the contour; rounding errors are a tenth of it."""

_INSIDE_TOLERANCE = 1e-6
"""Share of the extent by which coordinates may have been rounded and still count as inside, as for a box."""

_FARTHEST = 1e100
"""Coordinates beyond this are held there: their squares would be infinite."""

_MOST_NEWTON_STEPS, _MOST_HALVINGS = 60, 51

_FEW_SEGMENTS = 64
"""Segments up to which a call for their places takes longer than the places."""


class LogDensity(Protocol):
    """A function of latent coordinates, with as many derivatives as wanted."""

    def log_density(self, Z: FloatArray) -> FloatArray:
        """(n,) values; −inf far from everything is allowed."""

    def log_density_gradient(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and gradients (n, Q)."""

    def log_density_hessian(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, gradients and Hessians (n, Q, Q)."""


@dataclass(frozen=True, eq=False)
class Region:
    """{z : c(z) ≥ 0} with c(z) = log p(z) − ``floor``.

    ``anchors`` (a, Q) are places known to be inside, at least one in every piece that is to be found; ``low`` and
    ``high`` are the corners of a box around the region, near enough.
    """

    density: LogDensity
    floor: float
    anchors: FloatArray
    low: tuple[float, ...]
    high: tuple[float, ...]

    @cached_property
    def extent(self) -> Extent:
        low, high = np.asarray(self.low), np.asarray(self.high)
        return Extent(low, high, len(low), float((high - low).max()))

    @property
    def periodic(self) -> tuple[bool, ...]:
        """(Q,) False: no axis is periodic."""
        return (False,) * len(self.low)

    def height(self, Z: FloatArray) -> FloatArray:
        """(n,) c(z), negative outside."""
        return np.asarray(self.density.log_density(Z) - self.floor)

    def contains(self, Z: FloatArray) -> BoolArray:
        finite = np.asarray(np.isfinite(Z).all(axis=1))
        c, slope = self.density.log_density_gradient(np.where(finite[:, None], Z, 0.0))
        rounded = _INSIDE_TOLERANCE * self.extent.length
        slack = rounded * np.linalg.norm(slope, axis=1) + rounded**2 + _CONTOUR_SLACK
        return np.asarray(finite & (c - self.floor >= -slack))

    def retract(self, Z: FloatArray) -> FloatArray:
        """Valid coordinates near by: up the slope of the density to the contour, at worst towards the nearest anchor.

        None moves farther than its nearest anchor is away, and those inside do not move.
        """
        Z = np.clip(np.asarray(Z, dtype=np.float64), -_FARTHEST, _FARTHEST)
        outside = np.flatnonzero(self.height(Z) < 0)
        if len(outside):
            Z[outside] = self._pull_inside(Z[outside])
        return Z

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        return A - B

    def frame(self, Z: FloatArray) -> FloatArray:
        eye = np.eye(len(self.low))
        return np.broadcast_to(eye, (len(Z), *eye.shape))

    def boundary(self, Z: FloatArray) -> BoolArray:
        c, slope = self.density.log_density_gradient(Z)
        # Where the contour has shrunk to a point there is no slope, and all of it is boundary.
        return np.asarray(c - self.floor <= 1e-9 * (1.0 + np.linalg.norm(slope, axis=1)))

    def beyond(self, Z: FloatArray) -> FloatArray:
        """Coordinates unchanged: a map with a density everywhere is defined everywhere."""
        return Z

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        """A quadratic model at Z whose steps go along the contour where a descent would cross it.

        That is one step of sequential quadratic programming: minimise g·s + ½ sᵀHs subject to c + ∇c·s ≥ 0. Where
        Newton's own step would break the constraint, s = −c∇c/‖∇c‖² + t with t along the contour, and H is that of
        the Lagrangian, H − λ∇²c, with λ = g·∇c/‖∇c‖².
        """
        gradient, hessian, drift = gradient.copy(), hessian.copy(), np.zeros_like(gradient)
        c, slope = self.density.log_density_gradient(Z)
        c = np.maximum(c - self.floor, 0.0)
        steep = np.einsum("nq,nq->n", slope, slope)
        push = np.einsum("nq,nq->n", slope, gradient)
        held = np.flatnonzero((push > 0) & (steep > 0))
        step = _descent(gradient[held], hessian[held], size[held])
        held = held[c[held] + np.einsum("nq,nq->n", slope[held], step) < _CONTOUR_SLACK]
        if len(held):
            bend = self.density.log_density_hessian(Z[held])[2]
            away = np.where(c[held] > _CONTOUR_SLACK, c[held] / steep[held], 0.0)
            drift[held] = -away[:, None] * slope[held]
            lagrangian = hessian[held] - (push[held] / steep[held])[:, None, None] * bend
            normal = slope[held] / np.sqrt(steep[held])[:, None]
            along = np.eye(len(self.low)) - normal[:, :, None] * normal[:, None, :]
            pull = gradient[held] + np.einsum("nij,nj->ni", lagrangian, drift[held])
            gradient[held] = np.einsum("nij,nj->ni", along, pull)
            alone = (size[held] ** 2)[:, None, None] * (np.eye(len(self.low)) - along)
            hessian[held] = along @ lagrangian @ along + alone
        return Restrained(gradient, hessian, np.zeros(gradient.shape, dtype=bool), drift)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.anchors)

    def _pull_inside(self, Z: FloatArray) -> FloatArray:
        """Coordinates moved up the slope to the contour by Newton's method, or by bisection where that fails."""
        nearest = self._tree.query(Z)
        most, anchor = np.asarray(nearest[0]), self.anchors[np.asarray(nearest[1])]
        z, active = Z.copy(), np.arange(len(Z))
        astray = np.zeros(len(Z), dtype=bool)
        for _ in range(_MOST_NEWTON_STEPS):
            c, slope = self.density.log_density_gradient(z[active])
            c = c - self.floor
            todo = ~((c >= 0) & (c <= _CONTOUR_SLACK))
            active, c, slope = active[todo], c[todo], slope[todo]
            if len(active) == 0:
                break
            steep = np.einsum("nq,nq->n", slope, slope)
            lost = (steep == 0) | ~np.isfinite(c)
            step = (0.5 * _CONTOUR_SLACK - np.where(lost, 0.0, c)) / np.where(lost, 1.0, steep)
            z[active] += step[:, None] * slope
            lost |= np.linalg.norm(z[active] - Z[active], axis=1) > most[active]
            astray[active[lost]] = True
            active = active[~lost]
        astray[active] = True
        z[astray] = self.crossing(anchor[astray], Z[astray])
        return z

    def crossing(self, inside: FloatArray, outside: FloatArray, halvings: int = _MOST_HALVINGS) -> FloatArray:
        """(m, Q) end of the region on each segment from a place inside to one outside, by halving; never beyond.

        Of few segments all places that three halvings could ask for are looked at in one call.
        """
        rows, n = np.arange(len(inside)), 3 if len(inside) < _FEW_SEGMENTS else 1
        kept, low, width = inside.copy(), np.zeros(len(inside)), 1.0
        for _ in range(halvings // n if len(inside) else 0):
            width /= 2**n
            share = low[:, None] + width * np.arange(1, 2**n)
            trial = inside[:, None] + share[:, :, None] * (outside - inside)[:, None]
            within = (self.height(trial.reshape(-1, inside.shape[1])) >= 0).reshape(share.shape)
            at = np.zeros(len(inside), dtype=int)
            for step in 2 ** np.arange(n)[::-1]:
                at += step * within[rows, at + step - 1]
            found = np.flatnonzero(at)
            kept[found] = trial[found, at[found] - 1]
            low += width * at
        return kept


def _descent(gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> FloatArray:
    """−|H|⁻¹ g, which descends whatever the curvature."""
    values, vectors = np.linalg.eigh(hessian)
    scale = np.maximum(np.abs(values), 1e-12 * (size**2)[:, None])
    along = np.einsum("nij,ni->nj", vectors, gradient) / np.where(scale > 0, scale, 1.0)
    return -np.asarray(np.einsum("nij,nj->ni", vectors, along))
