"""Surfaces by projection and regression in turn: rows to their nearest points, then a smooth surface through the rows.

Principal surfaces (Hastie and Stuetzle 1989) and regularised principal manifolds (Smola et al. 2001) differ in the
regression alone: in its basis functions, and in how much it is penalised. With rows at places z the weights of the map
f(z) = φ(z) W minimise

    Σ w ‖x − f(z)‖² / Σ w + λ ‖W‖²,

‖W‖ being over the weights that are penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, Mesh
from prinfold.base.starting_points import EMBEDDERS, embed_all, evenly_by_radius, principal_coordinates
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.curves.smoothers import n_effective
from prinfold.exceptions import InvalidDataError
from prinfold.geometry.column_span import ColumnSpan
from prinfold.geometry.domain import Box
from prinfold.geometry.projection import project_to_surface
from prinfold.geometry.projection_starts import surface_starts
from prinfold.numerics.linalg import solve_symmetric

STARTS = ("auto", "pca", *EMBEDDERS)
"""Starts, latent coordinates of the rows, by name."""

MOST_COMPONENTS = 3
"""Most dimensions for which there is a mesh to begin projections from."""

_ROWS_AT_ONCE = 4096
_MOST_EMBEDDED_ROWS = 1000
"""Most rows of a spectral embedding; the others take their places from neighbours."""

_MESH_PER_AXIS = {1: 200, 2: 30, 3: 10}

_NEWTON = {"max_iter": 30, "tol": 1e-6}
"""Iterations and tolerance of projections in training: the next regression moves the surface by more."""


class SurfaceState(NamedTuple):
    """A surface in training: places (n, Q) of the rows, weights (M, D) of the map, its penalty, mean squared error.

    ``start`` is the name of the places that it began with.
    """

    latent: FloatArray
    weights: FloatArray
    penalty: float
    error: float
    start: str = "given"


@dataclass(frozen=True)
class SurfaceRows:
    """Rows (n, D) that all differ, about their mean, with weights (n,)."""

    rows: FloatArray
    weight: FloatArray

    @cached_property
    def total(self) -> float:
        """Σ w."""
        return float(self.weight.sum())

    @cached_property
    def variance(self) -> float:
        """Σ w ‖x‖² / Σ w."""
        return self.mean(np.einsum("nd,nd->n", self.rows, self.rows))

    @cached_property
    def size(self) -> float:
        """Number of rows that the weights stand for; see :func:`~prinfold.curves.smoothers.n_effective`."""
        return n_effective(self.weight)

    def mean(self, values: FloatArray) -> float:
        """Weighted mean of a number for each row."""
        return float(self.weight @ values) / self.total


@dataclass(frozen=True)
class RegressionSums:
    """Sums of a regression: ΦᵀGΦ / Σ w (M, M), ΦᵀGX / Σ w (M, D), and which weights are penalised (M,)."""

    gram: FloatArray
    moment: FloatArray
    mask: FloatArray
    variance: float
    size: float

    @classmethod
    def of(cls, surface: BasisMap, sample: SurfaceRows, Z: FloatArray) -> RegressionSums:
        """Sums over rows at places Z (n, Q), a few thousand at once."""
        n_weights = len(surface.penalty_mask)
        gram, moment = np.zeros((n_weights, n_weights)), np.zeros((n_weights, sample.rows.shape[1]))
        for first in range(0, len(Z), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            Phi = surface.basis.features(Z[part])
            weighted = Phi * (sample.weight[part, None] / sample.total)
            gram += weighted.T @ Phi
            moment += weighted.T @ sample.rows[part]
        return cls(gram, moment, surface.penalty_mask, sample.variance, sample.size)

    def weights(self, penalty: float) -> FloatArray:
        """(M, D) W = (ΦᵀGΦ + λM)⁻¹ ΦᵀGX, sums divided by Σ w and M having the mask on its diagonal."""
        return np.ascontiguousarray(solve_symmetric(self._system(penalty), self.moment))

    def freedom(self, penalty: float) -> float:
        """Degrees of freedom of each column: the trace of (ΦᵀGΦ + λM)⁻¹ ΦᵀGΦ, which is that of the hat matrix."""
        return float(np.trace(solve_symmetric(self._system(penalty), self.gram)))

    def error(self, weights: FloatArray) -> float:
        """Σ w ‖x − φ(z) W‖² / Σ w."""
        return max(self.variance + float(np.vdot(weights, self.gram @ weights - 2.0 * self.moment)), 0.0)

    def risk(self, penalty: float) -> float:
        """Σ w ‖x − f(z)‖² / Σ w + λ ‖W‖², the least that there is."""
        weights = self.weights(penalty)
        return self.error(weights) + penalty * float(self.mask @ np.einsum("md,md->m", weights, weights))

    def _system(self, penalty: float) -> FloatArray:
        return np.asarray(self.gram + np.diag(penalty * self.mask))


@dataclass(frozen=True)
class Alternation:
    """Projection and regression in turn on one map.

    ``choose`` gives the penalty of a regression from its sums and the penalty before, which for the first is zero, and
    ``judge`` a number that is lower the better a start is, from the sums and the penalty. ``reach`` is how far rows may
    be projected beyond the edges of the latent space, so that the surface can grow; where it is not zero, places are
    stretched to fill the latent space before every regression.
    """

    surface: BasisMap
    choose: Callable[[RegressionSums, float], float]
    judge: Callable[[RegressionSums, float], float]
    reach: float = 0.0

    @cached_property
    def domain(self) -> Box:
        """Latent places that rows may be projected to."""
        edge = 1.0 + self.reach
        return Box.of(*((-edge, edge),) * self.surface.latent.n_columns)

    def begin(self, sample: SurfaceRows, places: dict[str, FloatArray]) -> SurfaceState:
        """The first state: of several sets of places (n, Q), the one with the best first regression."""
        tried = []
        for name, Z in places.items():
            sums = RegressionSums.of(self.surface, sample, Z)
            penalty = self.choose(sums, 0.0)
            tried.append((self.judge(sums, penalty), SurfaceState(Z, sums.weights(penalty), penalty, np.inf, name)))
        return self.project(sample, min(tried, key=itemgetter(0))[1])

    def step(self, sample: SurfaceRows, state: SurfaceState) -> SurfaceState:
        """Regression on where rows are, then projection."""
        Z = fill_latent_space(state.latent) if self.reach > 0 else state.latent
        sums = RegressionSums.of(self.surface, sample, Z)
        penalty = self.choose(sums, state.penalty)
        weights = sums.weights(penalty)
        return self.project(sample, state._replace(latent=Z, weights=weights, penalty=penalty))

    def project(self, sample: SurfaceRows, state: SurfaceState) -> SurfaceState:
        """Rows at the nearest points of the surface.

        The search goes downhill from the foot on a mesh or from where a row is, whichever is nearer, so that it never
        ends farther than either. Distances to the surface change within the columns that its weights span alone, which
        may be far fewer.
        """
        within = ColumnSpan.of(state.weights)
        rows, weights = within.inside(sample.rows), within.inside(state.weights)
        place, jacobian = partial(self.surface.point, weights=weights), partial(self.surface.jacobian, weights=weights)
        foot = surface_starts(rows, self.mesh(weights), self.domain, 1)
        starts = np.concatenate([foot, self.domain.retract(state.latent)[:, None]], axis=1)
        nearest = _nearest_start(rows, place, starts)
        found = project_to_surface(rows, place, jacobian, self.domain, nearest, **_NEWTON)  # type: ignore[arg-type]
        squared = found.squared_distance + within.outside(sample.rows)
        return state._replace(latent=found.latent, error=sample.mean(squared))

    def mesh(self, weights: FloatArray) -> Mesh:
        """A coarse mesh to begin projections from."""
        latent = self.surface.latent
        coarse = latent.refined(_MESH_PER_AXIS[latent.dimension])
        nodes = coarse.nodes * (1.0 + self.reach)
        return Mesh(self.surface.point(nodes, weights), nodes, coarse.faces)


def _nearest_start(rows: FloatArray, point: Callable[[FloatArray], FloatArray], starts: FloatArray) -> FloatArray:
    """(n, 1, Q) of starts (n, S, Q) the one whose point of the surface is nearest to its row."""
    squared = [np.square(rows - point(starts[:, i])).sum(axis=1) for i in range(starts.shape[1])]
    return np.take_along_axis(starts, np.argmin(squared, axis=0)[:, None, None], axis=1)


def variance_share(sample: SurfaceRows, value: float) -> float:
    """A squared length as a share of the variance; zero where rows do not differ."""
    return value / sample.variance if sample.variance > 0 else 0.0


def fill_latent_space(Z: FloatArray) -> FloatArray:
    """Stretch places to reach from −1 to 1 along each axis; an axis along which none differ is left in the middle."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    half = np.where(high > low, (high - low) / 2.0, 1.0)
    return np.asarray((Z - (low + high) / 2.0) / half)


# ------------------------------------------------------------------------------------------------------- starts


def starting_places(init: Any, sample: SurfaceRows, n_components: int) -> dict[str, FloatArray]:
    """Sets of places (n, Q) to begin with by their names, or given with a place for each row."""
    if not isinstance(init, str):
        return {"given": fill_latent_space(np.asarray(init, dtype=np.float64))}
    plane = {"pca": _principal_places(sample, n_components)}
    if init == "pca" or (init == "auto" and len(sample.rows) <= n_components + 2):
        return plane
    if init == "auto":
        with suppress(InvalidDataError):  # rows that are all equally far apart have the plane alone
            plane |= _spectral_places("isomap", sample, n_components)
        return plane
    return _spectral_places(init, sample, n_components)


def _principal_places(sample: SurfaceRows, n_components: int) -> FloatArray:
    """(n, Q) coordinates in the principal plane; zero where there are fewer columns than coordinates."""
    Z = np.zeros((len(sample.rows), n_components))
    E = principal_coordinates(sample.rows, sample.weight, n_components)
    Z[:, : E.shape[1]] = E
    return fill_latent_space(Z)


def _spectral_places(name: str, sample: SurfaceRows, n_components: int) -> dict[str, FloatArray]:
    """Coordinates of a spectral embedding, one set for each neighbourhood size."""
    embedder, rows, weight = EMBEDDERS[name], sample.rows, sample.weight
    sizes = embedder.sizes(rows[evenly_by_radius(rows, weight, _MOST_EMBEDDED_ROWS)])
    return {
        f"{name}, {k} neighbours": fill_latent_space(
            embed_all(lambda X, k=k: embedder.embed(X, n_components, k), rows, weight, _MOST_EMBEDDED_ROWS)  # type: ignore[misc]
        )
        for k in sizes
    }
