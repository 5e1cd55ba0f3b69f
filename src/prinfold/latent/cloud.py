"""Latent points with a density, and the region where it is high enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import isfinite, log

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.region import LogDensity, Region
from prinfold.latent.base import LatentSpace, edges_of, median_spacing, unique_edges
from prinfold.latent.drawing import FlatDrawing, KernelContour, cell_middles
from prinfold.latent.lattice import grid
from prinfold.latent.points import Points
from prinfold.numerics.distinct_numbers import distinct_numbers
from prinfold.numerics.kernel_mixtures import Mixture, WideMixture
from prinfold.numerics.radial_kernels import PROFILES, Gaussian, Power

_EDGE_PROBES = 7
"""Places along an edge between nodes at which it is checked to stay in the region."""

_EXTENT_PROBES = 4096
"""Places at which the density is evaluated to find the extent of the region."""

_RIM_HALVINGS = 24
"""How finely the rim of a tiling is found between two nodes of its lattice: to 1e-7 of their distance."""

_N_LINES = 16
"""Lines drawn across each axis."""

_SMALLEST_REACH = 3.0
"""Bandwidths below which cutting a Gaussian off would show."""


@dataclass(frozen=True, eq=False)
class Cloud(LatentSpace):
    """Kernels at ``centers`` (m, Q), and the region where their density is at least ``threshold``.

    The density Σ w k / Σ w is relative to that of a single kernel at its peak, k(0) = 1. Nodes are the centres inside;
    the region may have holes and several pieces. Where latent coordinates have units of their own, ``bandwidth`` is
    that of the kernels in them; else it is the unit.
    """

    centers: FloatArray
    weight: FloatArray
    profile: Gaussian | Power
    threshold: float
    bandwidth: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        centers, weight = np.array(self.centers, dtype=float), np.array(self.weight, dtype=float)
        if centers.ndim != 2 or 0 in centers.shape or not np.isfinite(centers).all():
            raise InvalidParameterError(f"latent points must be a finite (m, Q) array, got shape {centers.shape}")
        if weight.shape != centers.shape[:1] or not np.isfinite(weight).all() or not (weight > 0).all():
            raise InvalidParameterError(f"each of the {len(centers)} latent points needs a finite weight above zero")
        _check_profile(self.profile)
        if not (self.bandwidth > 0 and isfinite(self.bandwidth)):
            raise InvalidParameterError(f"the bandwidth of a latent density must be above 0, got {self.bandwidth}")
        for name, array in (("centers", centers), ("weight", weight)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (self.threshold > 0 and self._inside.any()):
            raise InvalidParameterError(
                f"a threshold must be above 0 and at most the largest density of a latent point, got {self.threshold}"
            )

    @cached_property
    def mixture(self) -> LogDensity:
        """The kernels with their weights, which give the density."""
        if self.bandwidth == 1.0:
            return Mixture(self.centers, self.weight, self.profile)
        return WideMixture(Mixture(self.centers / self.bandwidth, self.weight, self.profile), self.bandwidth)

    @cached_property
    def domain(self) -> Region:
        low, high = self._box
        anchors = self.centers[self._inside]
        return Region(self.mixture, log(self.threshold), anchors, tuple(low.tolist()), tuple(high.tolist()))

    @cached_property
    def nodes(self) -> FloatArray:
        return self.centers[self._inside]

    @cached_property
    def spacing(self) -> float:
        return median_spacing(self)

    @cached_property
    def edges(self) -> IntArray:
        """Sides of the faces; without faces, each node's nearest 2q others as far as the way there stays inside."""
        if len(self.faces):
            return edges_of(self.faces)
        n_near = min(2 * self.n_columns, self.n_nodes - 1)
        near = np.asarray(cKDTree(self.nodes).query(self.nodes, k=n_near + 1)[1]).ravel()
        pairs = unique_edges(np.stack([np.repeat(np.arange(self.n_nodes), n_near + 1), near], axis=1))
        return np.asarray(pairs[self._stay_inside(self.nodes, pairs)])

    @cached_property
    def faces(self) -> IntArray:
        """Simplices between neighbouring nodes, as :class:`Points` has them, whose edges do not leave the region."""
        faces = Points(self.nodes).faces
        if len(faces) == 0:
            return faces
        edges = edges_of(faces)
        gone = edges[~self._stay_inside(self.nodes, edges)]
        names = gone[:, 0] * self.n_nodes + gone[:, 1]
        sides = [np.sort(faces[:, [i, j]], axis=1) for i, j in combinations(range(faces.shape[1]), 2)]
        bad = [np.isin(pair[:, 0] * self.n_nodes + pair[:, 1], names) for pair in sides]
        return np.asarray(faces[~np.any(bad, axis=0)])

    def refined(self, resolution: int) -> Tiles:
        """The region cut into simplices, from a lattice with ``resolution`` nodes along each side of a box around it.

        Simplices across the contour are cut off there. Pieces that fall between the nodes of the lattice are missing.
        """
        return self.tiled((resolution,) * self.n_columns)

    def tiled(self, shape: tuple[int, ...]) -> Tiles:
        """The region cut into simplices, from a lattice with the given number of nodes along each axis."""
        if shape not in self._tilings:
            low, high = self._box
            lattice = grid(*shape)
            places = low + (lattice.nodes + 1.0) / 2.0 * (high - low)
            self._tilings.clear()  # the last is kept: every projection asks for the same one
            self._tilings[shape] = self._with(*clip_mesh(self.domain, places, lattice.faces))
        return self._tilings[shape]

    def thinned(self) -> Tiles:
        kept = self.nodes[:: 2**self.n_columns]
        return self._with(kept, np.empty((0, self.n_columns + 1), dtype=np.intp))

    @property
    def n_columns(self) -> int:
        return int(self.centers.shape[1])

    @property
    def contour(self) -> KernelContour:
        """The kernels, and the density on the contour."""
        return KernelContour(self.centers, self.weight, self.profile, self.threshold, self.bandwidth)

    @property
    def drawing(self) -> FlatDrawing:
        lines = (_N_LINES,) * self.n_columns
        return FlatDrawing(self.domain, self.chart_labels, self._spread, lines, contour=self.contour)

    def _spread(self, most: int) -> FloatArray:
        """Middles of equal cells, as far as they fall inside."""
        cells = cell_middles(self.domain.low, self.domain.high, [most] * self.n_columns)
        inside = cells[self.domain.contains(cells)]
        return inside if len(inside) else self.nodes

    @cached_property
    def _tilings(self) -> dict[tuple[int, ...], Tiles]:
        return {}

    @cached_property
    def _inside(self) -> BoolArray:
        return np.asarray(self.mixture.log_density(self.centers) >= log(self.threshold))

    @cached_property
    def _box(self) -> tuple[FloatArray, FloatArray]:
        """Corners of a box around the region, to a step of a coarse lattice."""
        # The density is a mean of kernels, so that at least one of them is as high as the threshold.
        radius = self.bandwidth * _radius(self.profile, self.threshold)
        low, high = self.centers.min(axis=0) - radius, self.centers.max(axis=0) + radius
        per_axis = int(_EXTENT_PROBES ** (1.0 / self.n_columns))
        if per_axis < 4:
            return low, high
        probes = low + (grid(*(per_axis,) * self.n_columns).nodes + 1.0) / 2.0 * (high - low)
        within = probes[self.mixture.log_density(probes) >= log(self.threshold)]
        known, step = np.concatenate([within, self.centers[self._inside]]), (high - low) / (per_axis - 1)
        return np.maximum(low, known.min(axis=0) - step), np.minimum(high, known.max(axis=0) + step)

    def _with(self, places: FloatArray, corners: IntArray) -> Tiles:
        kernels = self.centers, self.weight, self.profile, self.threshold
        return Tiles(*kernels, places, corners, bandwidth=self.bandwidth)

    def _stay_inside(self, nodes: FloatArray, pairs: IntArray) -> BoolArray:
        """(E,) whether the straight line between the nodes of each pair lies in the region at all its probes."""
        share = np.arange(1, _EDGE_PROBES + 1) / (_EDGE_PROBES + 1.0)
        start, end = nodes[pairs[:, 0]], nodes[pairs[:, 1]]
        way = start[:, None] + share[:, None] * (end - start)[:, None]
        height = self.mixture.log_density(way.reshape(-1, self.n_columns)) - log(self.threshold)
        return np.asarray((height.reshape(len(pairs), _EDGE_PROBES) >= 0).all(axis=1))


@dataclass(frozen=True, eq=False)
class Tiles(Cloud):
    """The same region with other nodes, ``places`` (K, Q), and ``corners`` (F, Q + 1) of the simplices between them."""

    places: FloatArray
    corners: IntArray

    @property
    def nodes(self) -> FloatArray:
        return self.places

    @property
    def faces(self) -> IntArray:
        return self.corners


def _check_profile(profile: object) -> None:
    truncated = isinstance(profile, Gaussian) and profile == Gaussian(profile.reach) and profile.reach > _SMALLEST_REACH
    if not truncated and profile not in PROFILES.values():
        raise InvalidParameterError(
            f"the kernel of a latent density must be one of {sorted(PROFILES)}, got {profile!r}"
        )


def _radius(profile: Gaussian | Power, threshold: float) -> float:
    """Distance from a centre at which its kernel has fallen to the threshold, or a little more."""
    low, high = 0.0, min(profile.reach, 40.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        above = float(profile.value(np.array(middle**2))) >= threshold
        low, high = (middle, high) if above else (low, middle)
    return high


def clip_mesh(region: Region, places: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    """Nodes and simplices of the part of a mesh that lies in a region.

    A simplex with k corners inside and l outside keeps a part that is a product of two simplices, with vertices (i, 0),
    its corners inside, and (i, j), where the edge from there to the j-th outside leaves the region. Every walk from
    (1, 0) to (k, l) by single steps is one simplex of that part, and as corners are in order of their names,
    neighbours cut what they share in the same way.
    """
    inside = region.height(places) >= 0
    faces = np.sort(faces, axis=1)
    within = inside[faces]
    kept, count = [faces[within.all(axis=1)]], within.sum(axis=1)
    names: IntArray = np.empty(0, dtype=np.int64)
    for k in range(1, faces.shape[1]):
        mixed = faces[count == k]
        if len(mixed) == 0:
            continue
        # A stable sort by side keeps both in order of their names.
        split = np.take_along_axis(mixed, np.argsort(~inside[mixed], axis=1, kind="stable"), axis=1)
        ours, theirs = split[:, :k], split[:, k:]
        crossing = ours[:, :, None].astype(np.int64) * len(places) + theirs[:, None, :] + len(places)
        vertex = np.concatenate([ours[:, :, None], crossing], axis=2)
        names = np.concatenate([names, crossing.ravel()])
        kept += [np.stack([vertex[:, i, j] for i, j in walk], axis=1) for walk in _lattice_paths(k, faces.shape[1] - k)]
    names = distinct_numbers(names)
    start, end = np.divmod(names - len(places), len(places))
    rim = region.crossing(places[start], places[end], _RIM_HALVINGS)
    own = np.flatnonzero(inside)
    everywhere = np.concatenate([own, names])
    corners = np.searchsorted(everywhere, np.concatenate(kept))
    return np.concatenate([places[own], rim]), corners


def _lattice_paths(k: int, n_outside: int) -> Iterator[list[tuple[int, int]]]:
    """All lattice paths from (0, 0) to (k − 1, n_outside) by single steps along one axis."""
    length = k - 1 + n_outside
    for ups in combinations(range(length), n_outside):
        walk = [(0, 0)]
        for step in range(length):
            i, j = walk[-1]
            walk.append((i, j + 1) if step in ups else (i + 1, j))
        yield walk
