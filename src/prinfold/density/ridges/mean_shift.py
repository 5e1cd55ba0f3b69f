"""Ridges of a density by subspace-constrained mean shift (McQueen, section 4.4).

A point x lies on the ridge of dimension d where the gradient of log p has no part in the span V⊥ of those q − d
eigenvectors across which the density falls off most, and it does fall off across them: λ⊥ < 0. Subspace-constrained
mean shift (Ozertem & Erdogmus 2011) goes there by steps V⊥V⊥ᵀ m with m the mean shift of V⊥V⊥ᵀ g, until

    ‖V⊥V⊥ᵀ m‖ < tol · h,

a rule that isolated rows meet too, unlike the published one on the angle between gradient and ridge. d = 0 are modes.
Newton's step near the ridge and the halving of steps are ours.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.densities import (
    STORED_DENSITY,
    Density,
    Derivatives,
    KernelsInSpan,
    SpannedDensity,
    resampled,
)
from prinfold.density.masks import Edge
from prinfold.density.ridges.normals import InverseCovariance, Normal
from prinfold.density.row_spaces import Globe, RowSpace
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, any_float, numbers, part
from prinfold.rows.rows import for_each_block
from prinfold.validation.settings import flag, integer, nothing, real

_BLOCK_ROWS, _BLOCK_NUMBERS = 2**14, 2**21
"""Most rows that move together, and most numbers in their Hessians: what a thread holds at once."""

_NEWTON_BANDWIDTHS = 0.1
"""Bandwidths from the ridge within which Newton's step may take over.

The way there decides which ridge a row belongs to. From here on rows end within a thousandth of a bandwidth of where
mean shift takes them, and in fewer than half the steps; farther out, Newton's step slides along the ridge as well."""

_LEAST_CURVATURE = 0.05
"""Value of −h² λ⊥ below which the ridge is too flat for Newton's step."""

_MOST_REMAINING_SHARE = 0.9
"""Most of the way that a step of Newton's may leave; else the row goes back and on by mean shift alone."""

_FALL_NATS = 1e-4
"""Nats by which log p may fall in a step of mean shift before it is taken back and halved for that row, as are steps
that go to and fro.

On Gaussian kernels it never falls, but for what sums leave out; other densities may suggest longer steps than they
bear."""

_ROUNDING_BANDWIDTHS, _LEAST_STEP_SHARE = 1e-4, 1 / 64
"""Bandwidths from the ridge within which going to and fro is rounding, and the least share of a step that is taken."""

_FLOOR_NATS = 2.0
"""Nats below the least dense training row from which on density counts as zero: two bandwidths from an isolated row."""

_MOST_MESH_COLUMNS, _MOST_MESH_POINTS = 3, 2_000_000

_ON_RIDGE_BANDWIDTHS = 1e-6
"""Length of mean shift across the ridge, in bandwidths, below which a row is on it, however small the tolerance."""

_OUTSIDE_BOX_BANDWIDTHS = 3.0
"""Distance from the box of all rows, in bandwidths, from which on a row has left the data."""


class Status(enum.IntEnum):
    """Outcome of the path of a row to the ridge."""

    CONVERGED = 0
    NOT_CONVERGED = 1
    LOW_DENSITY = 2
    NOT_A_RIDGE = 3
    NO_GAP = 4
    RAN_OFF = 5
    OUTSIDE = 6

    @property
    def sentence(self) -> str:
        """The status as a sentence."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "The row has reached the ridge.",
    Status.NOT_CONVERGED: "The row was still moving when the iterations were used up.",
    Status.LOW_DENSITY: "The row stopped where the density is almost zero.",
    Status.NOT_A_RIDGE: "The row stopped where the density does not fall off across the ridge.",
    Status.NO_GAP: "The row stopped where all directions are alike, so that none is along a ridge.",
    Status.RAN_OFF: "The row left the data.",
    Status.OUTSIDE: "The row stopped where, by the mask, nothing could have been observed.",
}


class FlowResult(NamedTuple):
    """End points of the paths of rows to the ridge, in the order of the rows.

    ``points`` (n, D); ``tangent`` (n, D, d) of the ridge there; ``curvature`` (n, q) the second derivatives of log p
    along the ridge and then across it, in units of the squared bandwidth; ``log_density`` (n,); ``status`` (n,), see
    :class:`Status`; ``n_iter`` (n,) steps taken.
    """

    points: FloatArray
    tangent: FloatArray
    curvature: FloatArray
    log_density: FloatArray
    status: IntArray
    n_iter: IntArray

    def only(self, rows: IntArray | BoolArray) -> FlowResult:
        """The result for some of the rows."""
        return FlowResult._make(part[rows] for part in self)

    def in_data_units(self, space: RowSpace) -> FlowResult:
        """The result with points and tangents in units of the data, from places in the coordinates of a space."""
        leaving = space.leave_jacobian(self.points)
        tangent = self.tangent if leaving is None else np.asarray(leaving @ self.tangent)
        return self._replace(points=space.leave(self.points), tangent=tangent)

    @property
    def ridgeness(self) -> FloatArray:
        """(n,) how much more the density bends across the ridge than along it, from 0 (no ridge) to about 1 (sharp)."""
        d = self.tangent.shape[2]
        along = self.curvature[:, :d].min(axis=1, initial=0.0)
        return np.asarray(along - self.curvature[:, d:].max(axis=1))


STEPS = {"newton": True, "mean_shift": False}
"""Whether Newton's step takes over near the ridge, by name."""


@storable
@dataclass(frozen=True, eq=False)
class Flow:
    """Subspace-constrained mean shift to the ridge of dimension ``dimension`` of a density.

    ``normal`` says which directions lead across; ``newton`` whether its step takes over near the ridge. ``floor`` is
    the log density below which density counts as zero, and ``box`` (2, D) the corners of all rows. ``sphere`` keeps
    places on itself, where rows are on one, and ``edge`` tells where something could have been observed.
    """

    _kinds: ClassVar[Kinds] = {
        "density": STORED_DENSITY,
        "dimension": integer(0),
        "normal": part("InverseCovariance", "Hessian")
        | part("NeighborCovariance", rows="density.rows", rows__T="density.n_columns"),
        "newton": flag,
        "max_iter": integer(0),
        "tol": real(0),
        "min_gap": real(0),
        "floor": any_float,
        "box": nothing | numbers(2, "density.n_columns"),
        "sphere": nothing | part("Globe"),
        "edge": nothing | part("Edge"),
    }

    density: Density
    dimension: int
    normal: Normal = field(default_factory=InverseCovariance)
    newton: bool = True
    max_iter: int = 500
    tol: float = 1e-7
    min_gap: float = 0.05
    floor: float = -inf
    box: FloatArray | None = None
    sphere: Globe | None = None
    edge: Edge | None = None

    def __call__(self, X: FloatArray) -> FlowResult:
        """Carry every row (n, D) to the ridge; each goes its own way, whatever the others do."""
        walk = RidgeWalk(self, X)
        while len(walk.moving) and walk.done < self.max_iter:
            walk.advance()
        return walk.end()

    def on_rows(self, rows: FloatArray, weight: FloatArray) -> Flow:
        """The flow to the ridge of the density on other rows, for bands and p-values."""
        return replace(self, density=resampled(self.density).on_rows(rows, weight))

    @cached_property  # asked at every step
    def in_span(self) -> KernelsInSpan | None:
        """Coordinates of fewer columns in which every step is the same; None where there are none.

        Eigenvectors of −∇² log p of a wide table with few rows lie in the span of the rows or across it.
        """
        if not isinstance(self.density, SpannedDensity) or not self.normal.own or self.sphere is not None:
            return None
        found = self.density.in_span
        return None if found is None or self.dimension >= found.density.n_columns - 1 else found


class _Places(NamedTuple):
    """Tangent, curvature and log density at some places, as in :class:`FlowResult`, and the next ``step`` (m, D).

    ``left`` (m,) is the length of mean shift across the ridge, in bandwidths; ``close`` (m,) whether the step is
    Newton's.
    """

    tangent: FloatArray
    curvature: FloatArray
    log_density: FloatArray
    step: FloatArray
    left: FloatArray
    close: BoolArray


class RidgeWalk:
    """Rows on their paths to the ridge; :meth:`advance` moves every row that has not arrived by one step."""

    def __init__(self, flow: Flow, X: FloatArray) -> None:
        n, D = X.shape
        q = D if flow.sphere is None else 2
        self.flow, self.spanned, self.done = flow, flow.in_span, 0
        self.points = np.array(X if flow.sphere is None else flow.sphere.retract(X), dtype=np.float64)
        self.tangent, self.curvature = np.zeros((n, D, flow.dimension)), np.zeros((n, q))
        self.log_density, self.left = np.full(n, -inf), np.full(n, inf)
        self.n_iter, self.moving = np.zeros(n, dtype=np.int64), np.arange(n)
        self._before = self.points.copy()  # where to go back to when a step was none
        self._newton, self._plain = np.zeros(n, dtype=bool), np.full(n, not flow.newton)
        self._share = np.ones(n)  # of the mean shift that is gone at once
        self._evaluate_moving()
        self.start_density = self.log_density.copy()

    def advance(self) -> RidgeWalk:
        """Take one step with every row that moves, and evaluate the density where it came to."""
        rows = self.moving
        self._before[rows] = self.points[rows]
        moved = self.points[rows] + self._step
        self.points[rows] = moved if self.flow.sphere is None else self.flow.sphere.retract(moved)
        self.n_iter[rows] += 1
        self.done += 1
        self._evaluate_moving()
        return self

    def measures(self) -> dict[str, float]:
        """Entries of the history: minus how far rows still have to go on average, in bandwidths, and how many do."""
        return {"objective": -float(self.left.mean()), "moving": float(len(self.moving))}

    def end(self, flow: Flow | None = None) -> FlowResult:
        """The result for all rows; ``flow`` judges their status, if not the one that carried them."""
        there = self.left < max(self.flow.tol, _ON_RIDGE_BANDWIDTHS)
        status = np.where(there, Status.CONVERGED, Status.NOT_CONVERGED).astype(np.int8)
        found = FlowResult(self.points, self.tangent, self.curvature, self.log_density, status, self.n_iter)
        return found._replace(status=row_status(found, flow or self.flow))

    def _evaluate_moving(self) -> None:
        """Evaluate the density where moving rows have come to, take back bad steps, and see which rows have arrived."""
        rows = self.moving
        here = self._evaluate_rows(rows)
        newton = self._newton[rows]
        overshot = ~newton & (here.log_density < self.log_density[rows] - _FALL_NATS)
        worse = overshot | newton & ~(here.left < _MOST_REMAINING_SHARE * self.left[rows])
        if worse.any():
            back = rows[worse]
            self.points[back], self._plain[back] = self._before[back], True
            self._share[rows[overshot]] *= 0.5
            again = self._evaluate_rows(back)
            for whole, part in zip(here, again, strict=True):
                whole[worse] = part
        # Directions from neighbours are discontinuous in x, so that reversals of a step mean nothing there.
        reverse = np.einsum("ni,ni->n", here.step, self.points[rows] - self._before[rows]) < 0
        reverse &= self.flow.normal.own
        stays = here.left > np.maximum(_MOST_REMAINING_SHARE * self.left[rows], _ROUNDING_BANDWIDTHS)
        self._share[rows[reverse & ~newton & stays]] *= 0.5
        np.maximum(self._share, _LEAST_STEP_SHARE, out=self._share)
        # The error of truncated sums may keep a row from coming nearer.
        stalled = (here.left < _ON_RIDGE_BANDWIDTHS) & (here.left > 0.999 * self.left[rows]) & (self.flow.tol > 0)
        for name in ("tangent", "curvature", "log_density", "left"):
            getattr(self, name)[rows] = getattr(here, name)
        self._newton[rows] = here.close
        lost = ~np.isfinite(self.points[rows]).all(axis=1) | np.isnan(here.left)
        going = ~(here.left < self.flow.tol) & ~stalled & ~lost
        share = np.where(here.close, 1.0, self._share[rows])
        self.moving, self._step = rows[going], (share[:, None] * here.step)[going]

    def _evaluate_rows(self, rows: IntArray) -> _Places:
        n, (D, d), q = len(rows), self.tangent.shape[1:], self.curvature.shape[1]
        found = _Places(
            np.empty((n, D, d)), np.empty((n, q)), np.empty(n), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool)
        )
        spanned = self.spanned
        width = D if spanned is None else spanned.density.n_columns
        size = int(np.clip(_BLOCK_NUMBERS // (D * width), 1, _BLOCK_ROWS))

        def one(part: slice) -> None:
            X, plain = self.points[rows[part]], self._plain[rows[part]]
            if spanned is None:
                block = _evaluate(self.flow, X, plain)
            else:
                block = _evaluate_in_span(self.flow, spanned, X, plain)
            for whole, values in zip(found, block, strict=True):
                whole[part] = values

        for_each_block(one, [slice(i, min(i + size, n)) for i in range(0, n, size)])
        return found


def _evaluate(flow: Flow, X: FloatArray, plain: BoolArray) -> _Places:
    """Directions, curvatures and steps at places (m, D); ``plain`` ones step by mean shift alone."""
    at, length, d = flow.density.derivatives(X), flow.density.length(X), flow.dimension
    vectors, curvature = _directions(flow, X, at)
    curvature *= (length**2)[:, None]
    across, bend = vectors[:, :, d:], curvature[:, d:]
    slope = np.einsum("mia,mi->ma", across, at.gradient)
    # Of the part across alone: where kernels are not round, V⊥ᵀm may vanish off the ridge, where V⊥ᵀg does not.
    part = at.with_gradient(np.einsum("mia,ma->mi", across, slope))
    shift = np.einsum("mia,mi->ma", across, flow.density.shift(X, part))
    left = np.linalg.norm(shift, axis=1) / length
    close = ~plain & (left < _NEWTON_BANDWIDTHS) & (bend.max(axis=1) < -_LEAST_CURVATURE)
    if close.any():
        newton = slope[close] * (length[close] ** 2)[:, None] / -bend[close]
        size = np.linalg.norm(newton, axis=1) / length[close]
        shift[close] = newton / np.maximum(size, 1.0)[:, None]
    step = np.einsum("mia,ma->mi", across, shift)
    return _Places(vectors[:, :, :d], curvature, at.log_density, step, left, close)


def _evaluate_in_span(flow: Flow, spanned: KernelsInSpan, X: FloatArray, plain: BoolArray) -> _Places:
    """The same as :func:`_evaluate` from coordinates in the span of the rows.

    Across the span the density falls off as a single kernel does, by −1 in units of the squared bandwidth.
    """
    places, outward = spanned.enter(X)
    found = _evaluate(replace(flow, density=spanned.density), places, plain)
    n_left_out = X.shape[1] - places.shape[1]
    return found._replace(
        tangent=spanned.leave(found.tangent, outward),
        curvature=np.pad(found.curvature, ((0, 0), (0, n_left_out)), constant_values=-1.0),
        log_density=found.log_density - spanned.log_left_out,
        step=spanned.leave(found.step[:, :, None], outward)[:, :, 0],
    )


def _directions(flow: Flow, X: FloatArray, at: Derivatives) -> tuple[FloatArray, FloatArray]:
    """(m, D, q) orthonormal directions along the ridge, then across it, and (m, q) second derivatives of log p.

    Mixed derivatives within the directions along, and within those across, vanish; both are in falling order.
    """
    matrix, hessian, frame = flow.normal.matrix(X, at), at.hessian, None
    if flow.sphere is not None:
        frame = flow.sphere.frame(X)
        matrix, hessian = _restrict(frame, matrix), _restrict(frame, hessian)
    # Rows that are NaN by now have left the data, which their remaining distance shows.
    matrix = np.where(np.isfinite(matrix).all(axis=(1, 2), keepdims=True), matrix, 0.0)
    values, vectors = np.linalg.eigh(matrix)  # rising, so that the directions across come last
    curvature = -values
    if not flow.normal.own:
        for part in (slice(flow.dimension), slice(flow.dimension, None)):
            values, turn = np.linalg.eigh(-_restrict(vectors[:, :, part], hessian))
            curvature[:, part], vectors[:, :, part] = -values, vectors[:, :, part] @ turn
    return vectors if frame is None else frame @ vectors, curvature


def _restrict(frame: FloatArray, matrix: FloatArray) -> FloatArray:
    """(m, q, q) symmetric matrices (m, D, D) restricted to frames (m, D, q)."""
    return np.asarray(np.swapaxes(frame, 1, 2) @ matrix @ frame)


def row_status(found: FlowResult, flow: Flow) -> IntArray:
    """(n,) status of rows at the end of their paths."""
    length = flow.density.length(found.points)
    status = found.status.copy()
    resting = status == Status.CONVERGED
    # The most serious status is set last.
    status[resting & (found.ridgeness < (flow.min_gap if flow.dimension else -inf))] = Status.NO_GAP
    status[resting & ~(found.curvature[:, flow.dimension :].max(axis=1) < 0)] = Status.NOT_A_RIDGE
    status[found.log_density < flow.floor] = Status.LOW_DENSITY
    if flow.edge is not None:
        status[flow.edge.outside(found.points)] = Status.OUTSIDE
    off = ~np.isfinite(found.points).all(axis=1) | ~np.isfinite(found.log_density)
    if flow.box is not None:
        low, high = flow.box
        beyond = np.maximum(low - found.points, found.points - high).max(axis=1)
        off |= ~(beyond <= _OUTSIDE_BOX_BANDWIDTHS * length)
    status[off] = Status.RAN_OFF
    return status


def density_floor(log_density: FloatArray, weight: FloatArray, min_density: float) -> float:
    """Log density below which nothing counts as a ridge, from that (n,) of the training rows and their weights (n,).

    It is a little below the least of any row, or where ``min_density`` is above 0, the density that this share of the
    weight does not have.
    """
    order = np.argsort(log_density, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    quantile = log_density[order[int(np.searchsorted(share, min_density, side="right"))]]
    return float(log_density.min() - _FLOOR_NATS if min_density == 0 else quantile)


def select_ridge_rows(found: FlowResult) -> IntArray:
    """Indices of rows that ended on a ridge; where none did, of those that come nearest, as a surface is needed."""
    for allowed in ((Status.CONVERGED,), (Status.NO_GAP,), (Status.NOT_A_RIDGE, Status.NOT_CONVERGED), tuple(Status)):
        kept = np.flatnonzero(np.isin(found.status, allowed) & np.isfinite(found.points).all(axis=1))
        if len(kept):
            break
    return kept


def data_starts(flow: Flow, rows: FloatArray) -> FloatArray:
    """The rows themselves as starting points, which end in the support of the data."""
    return rows


def mesh_starts(flow: Flow, rows: FloatArray) -> FloatArray:
    """Starting points of a mesh over the rows, half a bandwidth wide, where the density is as high as at some row."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    width = 0.5 * float(np.median(flow.density.length(rows)))
    if rows.shape[1] > _MOST_MESH_COLUMNS:
        raise InvalidParameterError(
            Message(
                f"a mesh to start from is for up to {_MOST_MESH_COLUMNS} columns, got {rows.shape[1]}",
                Advice("start", "data", "use {}"),
                "give points",
            )
        )
    counts = np.floor((high - low) / width) + 2.0
    if counts.prod() > _MOST_MESH_POINTS:
        raise InvalidParameterError(
            Message(
                f"a mesh half a bandwidth ({width:.3g}) wide over these rows would have {counts.prod():.3g} points, "
                f"more than the {_MOST_MESH_POINTS} allowed",
                Advice("start", "data", "use {}"),
                Advice("bandwidth", words="a larger {}"),
                "give points",
            )
        )
    middle = 0.5 * (low + high)
    axes = [middle[j] + width * (np.arange(k) - 0.5 * (k - 1.0)) for j, k in enumerate(counts.tolist())]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, rows.shape[1])
    lowest = flow.density.log_density(rows).min()
    return np.asarray(mesh[flow.density.log_density(mesh) >= lowest - _FLOOR_NATS])


STARTS: dict[str, Callable[[Flow, FloatArray], FloatArray]] = {"data": data_starts, "mesh": mesh_starts}
"""Starting points by name, made from the training rows."""


def fits_space(flow: Flow, space: RowSpace, n_columns: int) -> bool:
    """Whether the density of a flow read from a file has the dimension of a space for so many columns."""
    density = cast(Any, flow.density)  # every density of a file has columns
    return flow.sphere == space.round and space.enter(np.zeros((1, n_columns))).shape[1] == density.n_columns
