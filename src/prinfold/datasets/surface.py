"""True surfaces: the parametric curve or surface that a simulator sampled, with exact distances to it.

A method that recovers a surface from noisy points has to be judged against the surface itself, not
against the points. A :class:`TrueSurface` is a map, its Jacobian and a latent domain; everything else
(normals, meshes, projection, area-uniform sampling) follows from these three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.spatial import ConvexHull

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.datasets.arguments import check_kinds
from prinfold.exceptions import InvalidDataError, InvalidParameterError, shown
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.projection import nearest_on_surface
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import instance_of, integer, nothing, one_of, real
from prinfold.validation.tables import as_numbers

Map: TypeAlias = Callable[[FloatArray], FloatArray]
Sampler: TypeAlias = Callable[[int, np.random.Generator], FloatArray]
T = TypeVar("T")

_MOST_CELLS = 10_000
"""Cells of a mesh along each axis."""


@check_verbs(
    {"U": attrgetter("domain.extent.n_columns"), "X": None, "frame": attrgetter("n_features")},
    n=integer(0),
    rng=instance_of(np.random.Generator, words="a Generator of NumPy, such as numpy.random.default_rng(0)"),
    resolution=nothing | integer(1, _MOST_CELLS),
)
@dataclass(frozen=True)
class TrueSurface:
    """A parametric surface x = s(u) with its derivative and the domain of u.

    Parameters
    ----------
    name : str
        What the surface is called in messages.
    point : callable
        ``point(U)`` maps latent coordinates (n, Q) to points (n, D).
    jacobian : callable
        ``jacobian(U)`` gives the derivatives ∂s/∂u, (n, D, Q).
    domain : Box or UnitSphere
        Where latent coordinates live.
    foot : callable or None
        ``foot(X)`` gives the latent coordinates of the nearest surface points where they are known in
        closed form; ``None`` searches from a mesh and refines by the geometry layer.
    resolution : int
        Cells per latent axis of the mesh from which that search starts.
    """

    name: str
    point: Map
    jacobian: Map
    domain: Box | UnitSphere
    foot: Map | None = None
    resolution: int = 64

    @property
    def n_features(self) -> int:
        """Columns D of a point."""
        return int(self.point(self.domain.retract(np.zeros((1, self.domain.extent.n_columns)))).shape[1])

    def tangents(self, U: FloatArray) -> FloatArray:
        """(n, D, q) derivatives along an orthonormal frame of the domain; not orthonormal themselves."""
        return np.asarray(self.jacobian(U) @ self.domain.frame(U))

    def normals(self, U: FloatArray) -> FloatArray:
        """(n, D, D − q) orthonormal bases of the normal spaces, such that det [tangents, normals] ≥ 0."""
        T = self.tangents(U)
        basis = np.linalg.svd(T, full_matrices=True)[0][:, :, T.shape[2] :].copy()
        if basis.shape[2]:
            flipped = np.linalg.det(np.concatenate([T, basis], axis=2)) < 0
            basis[flipped, :, -1] *= -1.0
        return np.asarray(basis)

    def area_element(self, U: FloatArray) -> FloatArray:
        """(n,) √det(TᵀT): length or area of the surface per unit of latent space."""
        T = self.tangents(U)
        return np.asarray(np.prod(np.linalg.svd(T, compute_uv=False), axis=1))

    def mesh(self, resolution: int | None = None) -> Mesh:
        """Cut the surface into segments or triangles, ``resolution`` cells per latent axis."""
        U, faces = _cells(self.domain, resolution or self.resolution)
        return Mesh(self.point(U), U, faces)

    def locate(self, X: FloatArray) -> FloatArray:
        """(n, Q) latent coordinates of the surface points nearest to the rows of X."""
        X = self._check_rows(X)
        if self.foot is not None:
            return np.asarray(self.foot(X))
        return np.asarray(nearest_on_surface(X, self.point, self.jacobian, self.domain, self.mesh()).latent)

    def project(self, X: FloatArray) -> FloatArray:
        """(n, D) nearest points of the continuous surface (not of a mesh)."""
        return self.point(self.locate(X))

    def distance(self, X: FloatArray) -> FloatArray:
        """(n,) Euclidean distances min_u ‖x − s(u)‖."""
        return np.asarray(np.linalg.norm(self._check_rows(X) - self.project(X), axis=1))

    def sample_latent(self, n: int, rng: np.random.Generator, sampling: str | Sampler = "parameter") -> FloatArray:
        """Choose n latent coordinates.

        ``"parameter"`` is uniform in the parameter; ``"area"`` uniform by arc length or area, accepting
        a uniform draw with probability proportional to the area element (its upper bound is taken over a
        mesh, with a tenth to spare); ``"grid"`` is a regular grid, ends included, without chance. A function of n and
        rng returns whatever it likes.
        """
        if not isinstance(sampling, str):
            return sampling(n, rng)
        return option(SAMPLINGS, "sampling", sampling)(self, n, rng)

    def embedded(self, frame: FloatArray) -> TrueSurface:
        """The same surface in more dimensions: x ↦ F x with orthonormal columns F (D', D), an isometry.

        The part of a point outside the span of F adds the same distance to every surface point, so the
        foot is found in the original space.
        """
        point, jacobian, locate = self.point, self.jacobian, self.locate
        return replace(
            self,
            point=lambda U: point(U) @ frame.T,
            jacobian=lambda U: np.einsum("ed,ndq->neq", frame, jacobian(U)),
            foot=lambda X: locate(X @ frame),
        )

    def _check_rows(self, X: FloatArray) -> FloatArray:
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InvalidDataError(f"The {self.name} lives in {self.n_features} dimensions; got shape {X.shape}.")
        return X


_LARGEST_CORNER = 1e100
"""Size of a coordinate, so that squares stay within double precision."""


@check_kinds
def polyline(name: str, vertices: FloatArray, *, closed: bool = False) -> TrueSurface:
    """A chain of straight segments with arc length as its parameter; distances are exact.

    The Jacobian is the unit direction of the segment; at a corner it is that of the following one.

    Parameters
    ----------
    name : str
        What the curve is called.
    vertices : (k, D) array
        Corners in order.
    closed : bool, default=False
        Whether a last segment leads back to the first corner.

    Returns
    -------
    TrueSurface
        The curve, with exact projection.
    """
    vertices = as_numbers("vertices", vertices)
    if vertices.ndim != 2 or not (np.abs(vertices) < _LARGEST_CORNER).all():
        raise InvalidParameterError(
            f"The {name} needs corners of shape (V, D), none beyond {_LARGEST_CORNER:g}; got shape {vertices.shape}."
        )
    ends = np.vstack([vertices, vertices[:1]]) if closed else vertices
    steps = np.diff(ends, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    if len(steps) == 0 or not lengths.all():
        raise InvalidParameterError(f"The {name} needs at least two corners, and no two alike in a row.")
    start = np.concatenate([[0.0], np.cumsum(lengths)])
    directions = steps / lengths[:, None]

    def segment(U: FloatArray) -> IntArray:
        return np.clip(np.searchsorted(start, U[:, 0], side="right") - 1, 0, len(steps) - 1)

    def point(U: FloatArray) -> FloatArray:
        k = segment(U)
        return np.asarray(ends[k] + (U[:, 0] - start[k])[:, None] * directions[k])

    def foot(X: FloatArray) -> FloatArray:
        along = np.einsum("nkd,kd->nk", X[:, None, :] - ends[None, :-1], directions)
        along = np.clip(along, 0.0, lengths)
        feet = ends[None, :-1] + along[:, :, None] * directions
        k = np.argmin(((X[:, None, :] - feet) ** 2).sum(axis=2), axis=1)
        return np.asarray((start[k] + along[np.arange(len(X)), k])[:, None])

    domain = Box.of((0.0, float(start[-1])), periodic=(closed,))
    return TrueSurface(name, point, lambda U: directions[segment(U)][:, :, None], domain, foot, resolution=1000)


def option(table: Mapping[str, T], parameter: str, key: str) -> T:
    """Look a named choice up, or say which names there are."""
    if not one_of(table).test(key):
        raise InvalidParameterError(f"{parameter}={shown(key)} is not one of {sorted(table)}.")
    return table[key]


def positive(**values: float) -> None:
    """Refuse sizes that are not positive and finite."""
    for name, value in values.items():
        if not real(0, above=True).test(value):
            raise InvalidParameterError(f"{name} must be positive and finite; got {value}.")


def columns(*derivatives: tuple[FloatArray, ...]) -> FloatArray:
    """Stack ∂s/∂u₁, ∂s/∂u₂, … each given by its D components, into (n, D, Q)."""
    return np.stack([np.stack(column, axis=1) for column in derivatives], axis=2)


def _by_parameter(surface: TrueSurface, n: int, rng: np.random.Generator) -> FloatArray:
    domain = surface.domain
    if isinstance(domain, UnitSphere):
        return domain.retract(rng.normal(size=(n, 3)))
    return rng.uniform(domain.low, domain.high, size=(n, domain.extent.n_columns))


def _by_area(surface: TrueSurface, n: int, rng: np.random.Generator) -> FloatArray:
    bound = 1.1 * surface.area_element(surface.mesh().latent).max()
    kept = np.empty((0, surface.domain.extent.n_columns))
    while len(kept) < n:
        U = _by_parameter(surface, 2 * n, rng)
        accepted = rng.uniform(0.0, bound, size=len(U)) < surface.area_element(U)
        kept = np.vstack([kept, U[accepted]])
    return kept[:n]


def _by_grid(surface: TrueSurface, n: int, _: np.random.Generator) -> FloatArray:
    domain = surface.domain
    if isinstance(domain, UnitSphere):
        return _golden_spiral(n)
    side = round(n ** (1.0 / domain.extent.dimension))
    if side**domain.extent.dimension != n:
        raise InvalidParameterError(
            f"sampling='grid' needs a number of samples that fills a {domain.extent.dimension}-D grid, such as "
            f"{side**domain.extent.dimension}; got {n}. Use sampling='parameter' for any other number."
        )
    return _grid([np.linspace(a, b, side, endpoint=not p) for a, b, p in _intervals(domain)])


#: How latent coordinates may be chosen.
SAMPLINGS: dict[str, Callable[[TrueSurface, int, np.random.Generator], FloatArray]] = {
    "parameter": _by_parameter,
    "area": _by_area,
    "grid": _by_grid,
}


def _intervals(domain: Box) -> list[tuple[float, float, bool]]:
    return list(zip(domain.low, domain.high, domain.periodic, strict=True))


def _grid(axes: Sequence[FloatArray]) -> FloatArray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _cells(domain: Box | UnitSphere, resolution: int) -> tuple[FloatArray, IntArray]:
    """Latent vertices and simplices of a mesh."""
    if isinstance(domain, UnitSphere):
        U = _golden_spiral(max(resolution * resolution, 12))
        return U, np.asarray(ConvexHull(U).simplices)
    axes = [np.linspace(a, b, resolution + (not p), endpoint=not p) for a, b, p in _intervals(domain)]
    shape = tuple(len(axis) for axis in axes)
    index = np.indices((resolution,) * len(axes)).reshape(len(axes), -1)

    def corner(*step: int) -> IntArray:
        # "wrap" closes periodic axes; on the others no index reaches past the end.
        moved = tuple(i + s for i, s in zip(index, step, strict=True))
        return np.asarray(np.ravel_multi_index(moved, shape, mode="wrap"))

    if len(axes) == 1:
        return _grid(axes), np.stack([corner(0), corner(1)], axis=1)
    lower = np.stack([corner(0, 0), corner(1, 0), corner(1, 1)], axis=1)
    upper = np.stack([corner(0, 0), corner(1, 1), corner(0, 1)], axis=1)
    return _grid(axes), np.vstack([lower, upper])


def _golden_spiral(n: int) -> FloatArray:
    """Unit vectors spread evenly: equal steps in height, a golden angle apart."""
    height = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    angle = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(n)
    ring = np.sqrt(1.0 - height**2)
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)
