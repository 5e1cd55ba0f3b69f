"""Nearest points on a smooth surface, UKR (19), given its map and Jacobian only.

Each row minimises ½‖x − y(z)‖² over the latent domain by damped Newton from several starts, and keeps
the best end. Rows never look at each other: a row's answer is the same alone and in any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Domain
from prinfold.geometry.metric import latent_span, second_derivatives
from prinfold.geometry.projection_starts import surface_starts
from prinfold.numerics.distances import squared_norms

Map = Callable[[FloatArray], FloatArray]
Bend = Callable[[FloatArray, FloatArray], FloatArray]

# Numbers held at once: Jacobians and second derivatives of a block.
_BLOCK_NUMBERS = 2**21

_MOST_FLAT_STEPS, _FLAT_IF_SHORTENED = 20, 7
"""Steps in a row, none of which leads nearer than rounding tells, after which a row stays where it is; and how many
such a step counts for that had to be shortened, which costs as much and leads nowhere more surely."""


class Projection(NamedTuple):
    """Nearest points on a surface: latent (n, Q), points (n, D), squared distances (n,), and which converged (n,)."""

    latent: FloatArray
    points: FloatArray
    squared_distance: FloatArray
    converged: BoolArray


def nearest_on_surface(
    X: FloatArray, point: Map, jacobian: Map, domain: Domain, mesh: Mesh, n_starts: int = 4
) -> Projection:
    """Project every row on the surface, from starts that the mesh suggests.

    The answer is never farther than the surface at the mesh foot's latent coordinates nor, with two
    starts or more, than any vertex that lies on the surface.
    """
    return project_to_surface(X, point, jacobian, domain, surface_starts(X, mesh, domain, n_starts))


def project_to_surface(
    X: FloatArray,
    point: Map,
    jacobian: Map,
    domain: Domain,
    starts: FloatArray,
    *,
    bend: Bend | None = None,
    max_iter: int = 200,
    tol: float = 1e-12,
    seen: BoolArray | None = None,
) -> Projection:
    """Minimise ½‖x − y(z)‖² for each row from each of its starts (n, S, Q), and keep the best.

    ``point`` maps (m, Q) to (m, D), ``jacobian`` to (m, D, Q). ``bend`` takes coordinates and directions r (m, D) of
    data space to the second derivatives (m, Q, Q) of r·y, where they are known and the domain is flat; else they are
    differences of Jacobians. A row stops when the gradient in the free
    directions is at most tol·‖J‖·(‖x − y‖ + ‖J‖·span), span being the extent of the domain. With ``seen`` (n, D) only
    those columns of a row count; the values in other columns are ignored.
    """
    X, starts = np.asarray(X, dtype=float), np.asarray(starts, dtype=float)
    if starts.ndim != 3 or starts.shape[0] != len(X) or starts.shape[1] == 0:
        raise InvalidParameterError(f"starts must be (n, S, Q) with n = {len(X)} and S ≥ 1, got shape {starts.shape}.")
    n, n_starts, n_columns = starts.shape
    per_row = n_starts * X.shape[1] * (n_columns + domain.extent.dimension**2)
    size = max(1, _BLOCK_NUMBERS // max(1, per_row))
    solver = _Solver(point, jacobian, bend, domain, max_iter, tol)
    if seen is not None:
        X = np.where(seen, X, 0.0)
    blocks = [slice(i, i + size) for i in range(0, max(n, 1), size)]
    parts = [solver.best(X[part], starts[part], None if seen is None else seen[part]) for part in blocks]
    return Projection(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class _LocalModel(NamedTuple):
    """Quadratic model at m places: gradient and eigendecomposed Hessian in the frame, and the size of J."""

    frame: FloatArray
    gradient: FloatArray
    frozen: BoolArray
    drift: FloatArray
    values: FloatArray
    vectors: FloatArray
    size: FloatArray

    def only(self, rows: IntArray | BoolArray) -> _LocalModel:
        """The model at some of the places."""
        return _LocalModel._make(part[rows] for part in self)


class _Solver(NamedTuple):
    """Damped Newton for many rows at once; finished rows drop out."""

    point: Map
    jacobian: Map
    bend: Bend | None
    domain: Domain
    max_iter: int
    tol: float
    eps: float = float(np.finfo(float).eps)

    def best(self, X: FloatArray, starts: FloatArray, seen: BoolArray | None) -> Projection:
        """Nearest points of a block of rows: the best end over all starts of each row."""
        n, n_starts, _ = starts.shape
        # Padding repeats starts; solving a repeat again would only cost time.
        repeat = (starts[:, :, None] == starts[:, None, :]).all(axis=3)
        fresh = ~np.tril(repeat, -1).any(axis=2)
        row, column = np.nonzero(fresh)
        own = None if seen is None else seen[row]
        z, y, done = self.with_rounding(starts).descend(X[row], self.domain.retract(starts[row, column]), own)
        squared = np.full((n, n_starts), np.inf)
        squared[row, column] = squared_norms(_gap(X[row], y, own))
        place = np.full((n, n_starts), -1)
        place[row, column] = np.arange(len(row))
        # The first of equals wins; an overflowing row (nan) loses to everything, but a row needs some end.
        pick = place[np.arange(n), np.where(np.isnan(squared), np.inf, squared).argmin(axis=1)]
        return Projection(z[pick], y[pick], squared_norms(_gap(X, y[pick], seen)), done[pick])

    def with_rounding(self, starts: FloatArray) -> _Solver:
        """The solver with the rounding error of the map's own numbers: a map in float32 settles earlier."""
        kind = np.asarray(self.point(self.domain.retract(starts[:1, 0]))).dtype
        return self._replace(eps=float(np.finfo(kind).eps)) if kind.kind == "f" else self

    def descend(self, X: FloatArray, z: FloatArray, seen: BoolArray | None) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Newton steps until every row has converged, cannot move, or has used its iterations."""
        y = np.asarray(self.point(z), dtype=float)
        done, flat = np.zeros(len(X), dtype=bool), np.zeros(len(X), dtype=int)
        active = np.arange(len(X))
        for _ in range(self.max_iter):
            if len(active) == 0:
                break
            local, small = self.local_model(X[active], z[active], y[active], None if seen is None else seen[active])
            done[active] = small
            active, local = active[~small], local.only(~small)
            moved, level = self.move(X, z, y, active, local, seen)
            flat[active] = np.where(level > 0, flat[active] + level, 0)
            active = active[moved & (flat[active] < _MOST_FLAT_STEPS)]
        return z, y, done

    def local_model(
        self, X: FloatArray, z: FloatArray, y: FloatArray, seen: BoolArray | None
    ) -> tuple[_LocalModel, BoolArray]:
        """Gradient −Jᵀr and Hessian JᵀJ − r·∂J in the frame, and which rows have converged."""
        frame, J, r = self.domain.frame(z), np.asarray(self.jacobian(z), dtype=float), _gap(X, y, seen)
        A = np.matmul(J, frame)
        if seen is not None:
            A = np.where(seen[:, :, None], A, 0.0)
        gradient = -np.einsum("ndj,nd->nj", A, r)
        hessian = np.einsum("ndj,ndk->njk", A, A) - self.curvature(z, J, r)
        size = np.sqrt(squared_norms(A.reshape(len(A), -1)))
        gradient, hessian, frozen, drift = self.domain.restrain(z, gradient, hessian, size)
        values, vectors = np.linalg.eigh(hessian)
        residual = np.sqrt(squared_norms(r))
        rounding = 16 * self.eps * (np.sqrt(squared_norms(X)) + np.sqrt(squared_norms(y)))
        limit = size * (self.tol * (residual + size * latent_span(self.domain)) + rounding)
        # A maximum or saddle is stationary too; from there one steps down the side.
        small = (np.sqrt(squared_norms(gradient)) <= limit) & (values[:, 0] >= -1e-6 * size * (size + residual))
        small &= size**2 * np.sqrt(squared_norms(drift)) <= limit
        return _LocalModel(frame, gradient, frozen, drift, values, vectors, size), small | (size == 0)

    def curvature(self, z: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
        """(n, q, q) second derivatives of r·y in the frame."""
        if self.bend is not None:
            return self.bend(z, r)
        return np.asarray(np.einsum("nd,ndjk->njk", r, second_derivatives(self.jacobian, self.domain, z, J)))

    def move(
        self,
        X: FloatArray,
        z: FloatArray,
        y: FloatArray,
        active: IntArray,
        local: _LocalModel,
        seen: BoolArray | None,
    ) -> tuple[BoolArray, IntArray]:
        """Try steps with growing damping until each row has one that does not climb; edits z and y in place.

        Returned is which rows have one, and for how many flat steps it counts: none where the row came nearer.
        """
        # Near the foot the distance is flat to rounding while the gradient still is not.
        rounding = 8 * self.eps * (np.sqrt(squared_norms(X[active])) + np.sqrt(squared_norms(y[active])))
        own = None if seen is None else seen[active]
        distance = np.sqrt(squared_norms(_gap(X[active], y[active], own)))
        allowed, nearer = (distance + rounding) ** 2, np.maximum(distance - rounding, 0.0) ** 2
        moved, level, damping = np.zeros(len(active), dtype=bool), np.zeros(len(active), dtype=int), 0.0
        for _ in range(24):
            todo = np.flatnonzero(~moved)
            if len(todo) == 0:
                break
            step = _step(local.only(todo), damping, 0.25 * latent_span(self.domain))
            trial = self.domain.retract(z[active[todo]] + np.einsum("nqj,nj->nq", local.frame[todo], step))
            landed = np.asarray(self.point(trial), dtype=float)
            gap = _gap(X[active[todo]], landed, None if own is None else own[todo])
            squared = squared_norms(gap)
            shorter = squared <= allowed[todo]
            rows = active[todo[shorter]]
            z[rows], y[rows] = trial[shorter], landed[shorter]
            moved[todo[shorter]] = True
            level[todo] = (shorter & (squared >= nearer[todo])) * (_FLAT_IF_SHORTENED if damping > 0 else 1)
            damping = max(4 * damping, 1e-3)
        return moved, level


def _step(local: _LocalModel, damping: float, longest: float) -> FloatArray:
    """Step s = −V (|Λ| + μ‖J‖²)⁻¹ Vᵀg, at most ``longest``; |Λ| makes it descend whatever the curvature."""
    floor = 1e-12 * local.size**2
    scale = np.maximum(np.abs(local.values), floor[:, None]) + damping * (local.size**2)[:, None]
    along = -np.einsum("nij,ni->nj", local.vectors, local.gradient) / scale
    # At a maximum of the distance the gradient is 0: a step down the steepest side, shorter after every failure.
    nudge = 0.01 * longest / (1 + 1e3 * damping)
    stuck = (local.values[:, 0] < -1e-6 * local.size**2) & (np.abs(along[:, 0]) < 1e-6 * longest)
    along[:, 0] = np.where(stuck, np.where(along[:, 0] < 0, -nudge, nudge), along[:, 0])
    step = np.where(local.frozen, 0.0, np.einsum("nij,nj->ni", local.vectors, along)) + local.drift / (1.0 + damping)
    length = np.sqrt(squared_norms(step))
    return np.asarray(step * np.minimum(1.0, longest / np.where(length > 0, length, 1.0))[:, None])


def _gap(X: FloatArray, y: FloatArray, seen: BoolArray | None) -> FloatArray:
    """(n, D) x − y, 0 in columns that do not count."""
    return X - y if seen is None else np.where(seen, X - y, 0.0)
