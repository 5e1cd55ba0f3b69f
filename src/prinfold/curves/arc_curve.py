"""One curve with arc length as its coordinate: smooth, or a polyline with its corners kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part
from prinfold.geometry.curves import Cells, by_arc_length
from prinfold.geometry.projection import Projection
from prinfold.geometry.simplices import Soup
from prinfold.latent import Branches
from prinfold.latent.arc_length_curves import BranchCurves
from prinfold.numerics.polylines import Feet, nearest_on_polyline

_SAME_SHARE = 1e-12
"""Distance between neighbouring vertices, as a share of the extent of all, below which they are one."""

_FEWEST_NODES = 65
"""Fewest nodes on a polyline, whose vertices do not tell how finely to draw it."""

_ROUNDING = 1e-9
"""Share of the length of a closed curve by which a place may be off."""

_EVEN_SHARE = 1e-9
"""Imbalance of rows, as a share of the length, below which neither direction of a curve is preferred."""


@storable
@dataclass(frozen=True, eq=False)
class ArcCurve(BranchCurves):
    """A smooth curve, open or closed: ``points`` and unit ``tangents`` (K, D) at even steps of its length.

    A coordinate z (n, 1) is the length travelled from its beginning, in units of the data. Beyond the ends of an open
    curve :meth:`point` goes straight on; a closed one goes round.
    """

    _kinds: ClassVar[Kinds] = {"latent": part("Branches"), "points": numbers("K", "D"), "tangents": numbers("K", "D")}

    def __post_init__(self) -> None:
        points, tangents = np.asarray(self.points), np.asarray(self.tangents)
        fits = points.ndim == 2 and points.shape == tangents.shape and len(points) == self._n_points
        if self.latent.n_branches != 1 or not fits:
            raise InvalidParameterError(
                f"a curve needs one branch with a point and a tangent at each of its nodes; got "
                f"{self.latent.n_branches} branch(es) with {self.latent.n_nodes} nodes, and shapes {points.shape} and "
                f"{tangents.shape}"
            )

    @classmethod
    def through(cls, vertices: FloatArray, closed: bool = False, smooth: bool = True) -> ArcCurve:
        """The curve through vertices (m, D), a closed one without repeating the first; ``smooth=False`` has corners.

        Neighbours that are equal count once. A single vertex gives a curve of no length, which is open.
        """
        vertices = _drop_repeats(_check_vertices(vertices), closed)
        if len(vertices) == 1:
            return _point_curve(vertices)
        closed = closed and len(vertices) > 2  # there and back again is an open curve
        if not smooth:
            return Polyline.of(vertices, closed)
        chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
        spacing = float(np.linalg.norm(np.diff(chain, axis=0), axis=1).mean())
        even = by_arc_length(vertices, spacing, closed)
        return cls(_branch(even.length, closed, len(even.points)), even.points, even.tangents)

    @property
    def closed(self) -> bool:
        """Whether the curve returns to its beginning."""
        return bool(self.latent.closed[0])

    @property
    def length(self) -> float:
        """Length of the curve."""
        return float(self.latent.lengths[0])

    @property
    def vertices(self) -> FloatArray:
        """(m, D) points along the curve, in order; a closed one does not repeat its beginning."""
        return self.points

    @property
    def knots(self) -> FloatArray:
        """(m,) coordinates of the vertices."""
        return self.latent.nodes[:, 0]

    def reversed(self) -> ArcCurve:
        """The curve in the other direction; a closed one from the same beginning."""
        order = np.arange(len(self.points))[::-1]
        order = np.roll(order, 1) if self.closed else order
        return type(self)(self.latent, self.points[order], -self.tangents[order])

    def begin_at(self, vertex: int) -> ArcCurve:
        """A closed curve with another of its vertices as its beginning."""
        return type(self)(self.latent, np.roll(self.points, -vertex, axis=0), np.roll(self.tangents, -vertex, axis=0))

    @property
    def _n_points(self) -> int:
        return self.latent.n_nodes


@storable
@dataclass(frozen=True, eq=False)
class Polyline(ArcCurve):
    """A curve of straight segments between ``points`` (m, D), which need not be evenly spaced.

    ``tangents`` (m, D) are the directions of the segments that begin there; at the last vertex of an open polyline, of
    the one that ends. The derivative at a vertex is that of the segment behind it.
    """

    @classmethod
    def of(cls, vertices: FloatArray, closed: bool) -> Polyline:
        """The polyline through vertices of which no two neighbours are equal."""
        step = _steps(vertices, closed)
        width = np.linalg.norm(step, axis=1)
        direction = step / width[:, None]
        tangents = direction if closed else np.vstack([direction, direction[-1:]])
        return cls(
            _branch(float(np.cumsum(width)[-1]), closed, max(_FEWEST_NODES, 4 * len(vertices))), vertices, tangents
        )

    @cached_property
    def knots(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.widths)[: len(self.points) - 1]])

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The segments, cut further into about ``resolution`` even ones; no corner is cut off."""
        if resolution is None:
            return Mesh(self.points, self.knots[:, None], self.segments)
        z = np.unique(np.concatenate([self.knots, self.latent.refined(resolution).nodes[:, 0]]))
        z = z[np.append(True, np.diff(z) > _SAME_SHARE * self.length)]
        faces = np.stack([np.arange(len(z)), np.arange(1, len(z) + 1)], axis=1)
        faces = np.mod(faces, len(z)) if self.closed else faces[:-1]
        return Mesh(self.point(z[:, None]), z[:, None], faces)

    def nearest(self, X: FloatArray) -> Projection:
        """The nearest point of any segment to each row, exactly."""
        foot = self._soup.nearest(np.asarray(X, dtype=float))
        z = self.knots[foot.face] + foot.barycentric[:, 1] * self.widths[foot.face]
        latent = self.latent.domain.retract(z[:, None])
        return Projection(latent, foot.points, foot.squared_distance, np.ones(len(z), dtype=bool))

    def reversed(self) -> ArcCurve:
        order = np.arange(len(self.points))[::-1]
        return Polyline.of(self.points[np.roll(order, 1) if self.closed else order], self.closed)

    def _cells(self, Z: FloatArray) -> tuple[Cells, FloatArray, FloatArray]:
        inside = self.latent.domain.retract(Z)[:, 0]
        past = np.zeros(len(Z)) if self.closed else Z[:, 0] - inside
        cell = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, len(self.widths) - 1)
        ends, width = self.segments[cell], self.widths[cell]
        # A cubic whose slopes are both that of its chord is straight.
        slope = self.tangents[cell]
        cells = Cells(self.points[ends[:, 0]], self.points[ends[:, 1]], slope, slope, width)
        return cells, (inside - self.knots[cell]) / width, past

    @cached_property
    def widths(self) -> FloatArray:
        """(s,) lengths of the segments."""
        return np.asarray(np.linalg.norm(_steps(self.points, self.closed), axis=1))

    @cached_property
    def segments(self) -> IntArray:
        """(s, 2) indices of the vertices at the ends of the segments."""
        first = np.arange(len(self.widths))
        return np.stack([first, np.mod(first + 1, len(self.points))], axis=1)

    @cached_property
    def _soup(self) -> Soup:
        return Soup(self.points, self.segments)

    @property
    def _n_points(self) -> int:
        return len(self.points)


def orient_curve(curve: ArcCurve, X: FloatArray, weight: FloatArray, root: FloatArray | None = None) -> ArcCurve:
    """The curve in a direction that depends on rows (n, D) with weights (n,), not on how it was found.

    An open curve begins at the half that more of the rows are nearest to. A closed one begins opposite of the middle
    of the rows along it, so that few of them lie about the seam, towards the half that more of them are in. A point
    ``root`` (D,) takes their place: an open curve begins at the end that is nearer to it along the curve, a closed one
    at the last vertex before it.
    """
    if curve.length == 0:
        return curve
    z, share = arc_lengths_of_rows(curve, X), weight / weight.sum()
    place = None if root is None else float(arc_lengths_of_rows(curve, root[None])[0])
    if not curve.closed:
        tilt = float(share @ z) / curve.length - 0.5
        from_root = 0.0 if place is None else place / curve.length - 0.5
        tilt = from_root if abs(from_root) > _EVEN_SHARE else tilt
    else:
        mean = complex(share @ np.exp(2j * np.pi * z / curve.length))
        opposite = np.mod(np.angle(-mean) / (2 * np.pi), 1.0) * curve.length
        seam = opposite if place is None else place
        gap = curve.latent.domain.difference(curve.knots[:, None], np.full((1, 1), seam))[:, 0]
        vertex = int(np.abs(gap).argmin())
        z = np.mod(z - curve.knots[vertex], curve.length)
        curve, tilt = curve.begin_at(vertex), float(share @ np.sin(2 * np.pi * z / curve.length) ** 3)
        tilt = -tilt  # the sine is positive in the first half
    if abs(tilt) > _EVEN_SHARE:
        curve = curve.reversed() if tilt > 0 else curve
    else:
        curve = min(curve, curve.reversed(), key=lambda way: way.vertices.tolist())
    if root is None or not curve.closed:
        return curve
    # A root on the first vertex is at the beginning, whatever rounding makes of it.
    ahead = np.mod(arc_lengths_of_rows(curve, root[None])[0] + _ROUNDING * curve.length, curve.length)
    if 2 * ahead < curve.length:
        return curve
    return curve.begin_at(len(curve.vertices) - 1)  # the point itself is not to be the last of all


def arc_lengths_of_rows(curve: ArcCurve, X: FloatArray) -> FloatArray:
    """(n,) arc lengths of the nearest points to rows, near enough for a direction."""
    return arc_lengths(curve, nearest_on_polyline(X, curve.vertices, curve.closed))


def arc_lengths(curve: ArcCurve, feet: Feet) -> FloatArray:
    """(n,) arc lengths of feet on the polyline through the vertices of a curve."""
    return np.asarray(curve.knots[feet.segment] + feet.share * np.diff(curve.knots, append=curve.length)[feet.segment])


# ----------------------------------------------------------------------------------------------------- plumbing


def _check_vertices(vertices: FloatArray) -> FloatArray:
    vertices = np.array(vertices, dtype=float)
    if vertices.ndim != 2 or 0 in vertices.shape or not np.isfinite(vertices).all():
        raise InvalidDataError(f"a curve needs finite vertices of shape (m, D), at least one; got {vertices.shape}")
    return vertices


def _drop_repeats(vertices: FloatArray, closed: bool) -> FloatArray:
    """Vertices without those that repeat the one before."""
    least = _SAME_SHARE * float(np.ptp(vertices, axis=0).max())
    kept = [0]
    for i in range(1, len(vertices)):
        if np.linalg.norm(vertices[i] - vertices[kept[-1]]) > least:
            kept.append(i)
    while closed and len(kept) > 1 and np.linalg.norm(vertices[kept[-1]] - vertices[0]) <= least:
        kept.pop()
    return np.asarray(vertices[kept])


def _point_curve(vertex: FloatArray) -> ArcCurve:
    """A curve of no length, in the direction of the first column."""
    tangent = np.zeros_like(vertex)
    tangent[0, 0] = 1.0
    return ArcCurve(_branch(0.0, False, 2), np.repeat(vertex, 2, axis=0), np.repeat(tangent, 2, axis=0))


def _branch(length: float, closed: bool, count: int) -> Branches:
    return Branches(np.array([length]), np.array([closed]), np.array([count]), length if length > 0 else 1.0)


def _steps(vertices: FloatArray, closed: bool) -> FloatArray:
    return np.diff(np.vstack([vertices, vertices[:1]]) if closed else vertices, axis=0)
