"""Measures of a principal manifold: errors, roughness, neighbourhood preservation, self-consistency.

All functions take plain arrays and callables, so they measure any method's surface, not only prinfold's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from prinfold._typing import BoolArray, FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.domain import Domain
from prinfold.geometry.metric import curve_length, mesh_volume
from prinfold.geometry.neighbor_ranks import Distance, bin_sums, kernel_sums, merge_equal_rows, rank_intrusion
from prinfold.geometry.roughness import Roughness, angle_sum, graph_roughness, surface_roughness
from prinfold.geometry.simplices import nearest_on_simplices
from prinfold.geometry.symmetry import Alignment, align
from prinfold.validation.failures import name_call_failures
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_call, flag, instance_of, integer, nothing, real
from prinfold.validation.tables import as_entries, as_numbers

__all__ = [
    "Alignment",
    "Confounding",
    "Orthogonality",
    "Roughness",
    "align",
    "angle_sum",
    "area",
    "confounding",
    "continuity",
    "grid_error",
    "length",
    "nearest_node_error",
    "orthogonality",
    "projection_error",
    "roughness",
    "self_consistency",
    "triangle_error",
    "trustworthiness",
]

_RANK_TOLERANCE = 1e-10


class Orthogonality(NamedTuple):
    """Cosines of the angles between residuals and the surface, 0 where a residual is orthogonal to it.

    Parameters
    ----------
    mean, median, upper, worst : float
        Mean, median, 90 % quantile and maximum of the cosines over the rows that count.
    cosines : array of shape (n,)
        For every row, 0 upright and 1 in the tangent space.
    """

    mean: float
    median: float
    upper: float
    worst: float
    cosines: FloatArray


_SHAPE = Constraint(lambda v: len(v) == 2 and all(map(integer(2).test, v)), "two whole numbers of at least 2")
_DOMAIN = nothing | Constraint(lambda v: hasattr(v, "retract"), "a latent domain, such as model.latent_.domain")
_FUNCTION = nothing | Constraint(callable, "a function")
_NEIGHBORS = {"n_neighbors": integer(1), "latent_distance": _FUNCTION}


@name_call_failures
@fill_parameter_docs
def projection_error(X: FloatArray, projected: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Mean squared distance Σᵢ wᵢ ‖xᵢ − pᵢ‖² / Σᵢ wᵢ between rows and their projections.

    Parameters
    ----------
    X, projected : array of shape (n, D)
        Data and the points of the surface that stand for them.
    {sample_weight.metric}

    Returns
    -------
    float
        Weighted mean square.
    """
    X, projected = _table(X, "X"), _table(projected, "projected")
    if X.shape != projected.shape:
        raise InvalidDataError(f"X and projected must have the same shape, got {X.shape} and {projected.shape}.")
    residual = X - projected
    return _mean(np.einsum("nd,nd->n", residual, residual), sample_weight)


@name_call_failures
@fill_parameter_docs
def nearest_node_error(X: FloatArray, nodes: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Mean squared distance to the nearest node, MSE_nn of Chang and Ghosh (section 4.4.2).

    Parameters
    ----------
    {X.data}
    nodes : array of shape (K, D)
        Nodes of the surface in data space.
    {sample_weight.metric}

    Returns
    -------
    float
        Weighted mean square.
    """
    nodes = _table(nodes, "nodes")
    return _simplex_error(X, nodes, np.arange(len(nodes))[:, None], sample_weight)


@name_call_failures
@fill_parameter_docs
def grid_error(X: FloatArray, vertices: FloatArray, edges: IntArray, sample_weight: FloatArray | None = None) -> float:
    """Mean squared distance to the nearest grid line, MSE_grid of Chang and Ghosh (section 4.4.2).

    Parameters
    ----------
    {X.data}
    vertices : array of shape (V, D)
        Nodes of the grid in data space.
    edges : int array of shape (E, 2)
        Which vertices are joined by a segment.
    {sample_weight.metric}

    Returns
    -------
    float
        Weighted mean square.
    """
    vertices = _table(vertices, "vertices")
    return _simplex_error(X, vertices, _corners(edges, vertices, "edges"), sample_weight)


@name_call_failures
@fill_parameter_docs
def triangle_error(
    X: FloatArray, vertices: FloatArray, shape: tuple[int, int], sample_weight: FloatArray | None = None
) -> float:
    """Mean squared distance to a grid of patches, MSE_Δ of Chang and Ghosh (section 4.4.2).

    Four nodes can be cut into two triangles along either diagonal; each row takes the nearest point of all
    the triangles of both cuts, by exact point-to-triangle distance.

    Parameters
    ----------
    {X.data}
    vertices : array of shape (a * b, D)
        Nodes of the grid, the last latent axis running fastest.
    shape : (a, b)
        Nodes along each axis, two or more.
    {sample_weight.metric}

    Returns
    -------
    float
        Weighted mean square.
    """
    vertices = _table(vertices, "vertices")
    a, b = shape if _SHAPE.test(shape) else (0, 0)
    if a * b != len(vertices):
        raise InvalidParameterError(
            f"shape must have two axes of two nodes or more with {len(vertices)} nodes in all, got {shape}."
        )
    number = np.arange(a * b).reshape(a, b)
    p, q, r, s = (cut.ravel() for cut in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    faces = np.concatenate([np.stack(three, axis=1) for three in ((p, q, r), (p, r, s), (q, r, s), (q, s, p))])
    return _simplex_error(X, vertices, faces, sample_weight)


@name_call_failures
@check_call(closed=flag)
def length(vertices: FloatArray, closed: bool = False) -> float:
    """Length of a polyline.

    Parameters
    ----------
    vertices : array of shape (V, D)
        Its corners in order.
    closed : bool, default False
        Whether the last corner is joined to the first.

    Returns
    -------
    float
        Sum of the lengths of its segments.
    """
    return curve_length(_table(vertices, "vertices"), closed)


@name_call_failures
def area(vertices: FloatArray, faces: IntArray) -> float:
    """Area of a triangle mesh in any number of dimensions.

    Parameters
    ----------
    vertices : array of shape (V, D)
        Points in data space.
    faces : int array of shape (F, 3)
        Corners of each triangle; two columns give a length, four a volume.

    Returns
    -------
    float
        Sum of the areas of the faces.
    """
    vertices = _table(vertices, "vertices")
    return mesh_volume(vertices, _corners(faces, vertices, "faces"))


@name_call_failures
@check_call(mesh=instance_of(Mesh, words="a Mesh, as model.mesh() returns it"), jacobian=_FUNCTION, domain=_DOMAIN)
def roughness(
    mesh: Mesh, jacobian: Callable[[FloatArray], FloatArray] | None = None, domain: Domain | None = None
) -> Roughness:
    """Roughness of a curve or surface: how much it turns or bends, in total and per unit size.

    For a curve (faces are segments) the total turning angle in radians of the polyline, and per unit length;
    a curve whose ends coincide is closed. For a surface ∫(κ₁² + κ₂²) dA, that is ∫‖II‖² dA with the second
    fundamental form II, and per unit area; 8π for every sphere and 0 for every plane.

    Parameters
    ----------
    mesh : Mesh
        ``vertices``, ``latent`` and ``faces``, as ``model.mesh()`` returns them.
    jacobian : callable, optional
        Maps latent coordinates (m, Q) to Jacobians (m, D, Q); needed for surfaces.
    domain : Domain, optional
        Where latent coordinates live; needed for surfaces.

    Returns
    -------
    Roughness
        ``total``, ``mean`` (per unit size) and ``size``.
    """
    if np.asarray(mesh.faces).shape[1] == 2:
        return graph_roughness(mesh.vertices, mesh.faces)
    if jacobian is None or domain is None:
        raise InvalidParameterError(
            "the roughness of a surface needs its Jacobian and latent domain: pass jacobian= and domain=."
        )
    return surface_roughness(jacobian, domain, mesh)


@name_call_failures
@check_call(**_NEIGHBORS)
@fill_parameter_docs
def trustworthiness(
    X: FloatArray, Z: FloatArray, n_neighbors: int = 5, *, latent_distance: Distance | None = None
) -> float:
    """Trustworthiness: whether neighbours in latent space are neighbours in the data (Venna and Kaski 2001).

    T = 1 − 2/(n k (2n − 3k − 1)) Σᵢ Σⱼ (r(i, j) − k), where j runs over the rows among the k
    nearest of i in latent space but not in the data, and r(i, j) is the rank of j by distance from i in the
    data. 1 is best.

    Parameters
    ----------
    {X.data}
    Z : array of shape (n, Q)
        Latent coordinates of the same rows.
    n_neighbors : int, default 5
        Neighbours k that count, less than n / 2.
    latent_distance : callable, optional
        ``latent_distance(A, B)`` gives the (a, b) distances between latent coordinates, for latent spaces that
        close on themselves; Euclidean by default.

    Returns
    -------
    float
        Between 0 and 1, best at 1.
    """
    return rank_intrusion(_table(X, "X"), _table(Z, "Z"), n_neighbors, cdist, latent_distance or cdist)


@name_call_failures
@check_call(**_NEIGHBORS)
@fill_parameter_docs
def continuity(X: FloatArray, Z: FloatArray, n_neighbors: int = 5, *, latent_distance: Distance | None = None) -> float:
    """Continuity: whether neighbours in the data are neighbours in latent space, trustworthiness with both exchanged.

    Parameters
    ----------
    {X.data}
    Z : array of shape (n, Q)
        Latent coordinates of the same rows.
    n_neighbors : int, default 5
        Neighbours that count, less than n / 2.
    latent_distance : callable, optional
        As in :func:`trustworthiness`.

    Returns
    -------
    float
        Between 0 and 1, best at 1.
    """
    return rank_intrusion(_table(Z, "Z"), _table(X, "X"), n_neighbors, latent_distance or cdist, cdist)


@name_call_failures
@check_call(n_bins=nothing | integer(1), bandwidth=nothing | real(0, above=True), latent_distance=_FUNCTION)
@fill_parameter_docs
def self_consistency(
    X: FloatArray,
    latent: FloatArray,
    projected: FloatArray,
    *,
    n_bins: int | None = None,
    bandwidth: float | None = None,
    latent_distance: Distance | None = None,
    sample_weight: FloatArray | None = None,
) -> float:
    """Distance of the mean of rows that project near a place from that place, relative to the noise.

    A principal manifold is self-consistent, E[X | projects to z] = y(z), so residuals rᵢ = xᵢ − pᵢ average
    to nothing near every place. With mᵢ the mean residual of the *other* rows that project near row i,

        S = Σᵢ wᵢ rᵢ·mᵢ / Σᵢ wᵢ ‖rᵢ‖²,   mᵢ = Σⱼ wⱼ kᵢⱼ rⱼ / Σⱼ wⱼ kᵢⱼ   over j ≠ i.

    Leaving the row itself out makes S zero in expectation on a self-consistent surface, however few rows
    share a place; S tends to 1 when residuals are all bias and no noise. It can come out slightly negative.
    Near means in the same bin (k = 1, else 0), or k = exp(−d²/2h²) with the distance d in latent space.
    Rows with no other row near them are left out of both sums; equal rows are one row with their summed weight.

    Parameters
    ----------
    {X.data}
    latent : array of shape (n, Q)
        Latent coordinates of the projections.
    projected : array of shape (n, D)
        Nearest points of the surface.
    n_bins : int, optional
        Equal bins along each latent axis, from the smallest to the largest coordinate; 10 by default.
    bandwidth : float, optional
        Width h of the Gaussian weight; give this or ``n_bins``, not both.
    latent_distance : callable, optional
        Distance in latent space for ``bandwidth``, as in :func:`trustworthiness`.
    {sample_weight.metric}

    Returns
    -------
    float
        Share of the squared residuals that is bias, 0 at best.
    """
    X, Z, projected = _table(X, "X"), _table(latent, "latent"), _table(projected, "projected")
    if X.shape != projected.shape or len(Z) != len(X):
        raise InvalidDataError(
            f"X, projected and latent must have equal rows, got {X.shape}, {projected.shape} and {Z.shape}."
        )
    if n_bins is not None and bandwidth is not None:
        raise InvalidParameterError("give n_bins or bandwidth, not both.")
    Z, residual, weight = merge_equal_rows(Z, X - projected, _weights(sample_weight, len(X)))
    if bandwidth is None:
        mass, moment = bin_sums(Z, residual, weight, 10 if n_bins is None else n_bins)
    else:
        mass, moment = kernel_sums(Z, residual, weight, bandwidth, latent_distance or cdist)
    # A mass of rounding errors is no neighbour.
    near = mass > 1e-12 * weight.max(initial=0.0)
    mean = moment[near] / mass[near, None]
    noise = float(weight[near] @ np.einsum("nd,nd->n", residual[near], residual[near]))
    return float(weight[near] @ np.einsum("nd,nd->n", residual[near], mean)) / noise if noise > 0 else 0.0


@name_call_failures
def orthogonality(
    X: FloatArray,
    projected: FloatArray,
    jacobian: FloatArray,
    *,
    interior: BoolArray | None = None,
    sample_weight: FloatArray | None = None,
) -> Orthogonality:
    """Cosines ‖Pᵢ rᵢ‖ / ‖rᵢ‖ between residuals and surface, 0 where they are orthogonal (Gerber et al., definition 2).

    Pᵢ projects on the columns of the Jacobian at the row's projection. On a weak principal surface every
    cosine is 0. A row on the surface counts as 0.

    Parameters
    ----------
    X, projected : array of shape (n, D)
        Data and their projections on the surface.
    jacobian : array of shape (n, D, Q)
        Jacobians at the projections.
    interior : bool array of shape (n,), optional
        Rows that count; mask those that project on the boundary, where nothing need be upright.
    sample_weight : array of shape (n,), optional
        Weights of the mean and the quantiles.

    Returns
    -------
    Orthogonality
        Mean, quantiles and the cosines themselves.
    """
    X, projected, J = _table(X, "X"), _table(projected, "projected"), as_numbers("jacobian", jacobian)
    if X.shape != projected.shape or J.ndim != 3 or J.shape[:2] != X.shape:
        raise InvalidDataError(
            f"X, projected and jacobian must be (n, D), (n, D) and (n, D, Q), "
            f"got {X.shape}, {projected.shape} and {J.shape}."
        )
    residual = X - projected
    U, lengths, _ = np.linalg.svd(J, full_matrices=False)
    U = U * (lengths > _RANK_TOLERANCE * lengths[:, :1])[:, None, :]
    size = np.linalg.norm(residual, axis=1)
    tangential = np.linalg.norm(np.einsum("ndq,nd->nq", U, residual), axis=1)
    cosines = np.minimum(tangential / np.where(size > 0, size, 1.0), 1.0)
    kept = np.ones(len(X), dtype=bool) if interior is None else as_numbers("interior", interior) != 0
    if kept.shape != (len(X),):
        raise InvalidDataError(f"interior must have one entry for each of {len(X)} rows, got shape {kept.shape}.")
    weight = _weights(sample_weight, len(X)) * kept
    if not weight.any():
        raise InvalidDataError("orthogonality needs at least one row inside the boundary with positive weight.")
    median, upper, worst = (_quantile(cosines, weight, level) for level in (0.5, 0.9, 1.0))
    return Orthogonality(float(cosines @ weight / weight.sum()), median, upper, worst, cosines)


def _corners(faces: IntArray, vertices: FloatArray, name: str) -> IntArray:
    """(F, k) numbers of vertices."""
    found = as_numbers(name, faces)
    if found.ndim != 2 or not found.size or not np.isin(found, np.arange(len(vertices))).all():
        raise InvalidDataError(
            f"{name} must be a table of the numbers of {len(vertices)} vertices, from 0, got shape {found.shape}."
        )
    return found.astype(np.intp)


def _table(X: FloatArray, name: str) -> FloatArray:
    X = as_numbers(name, X)
    if X.ndim != 2 or len(X) == 0:
        raise InvalidDataError(f"{name} must be a table with at least one row, got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise InvalidDataError(f"{name} holds NaN or infinity; drop or fill those rows first.")
    return X


def _weights(sample_weight: FloatArray | None, n: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weight = as_numbers("sample_weight", sample_weight)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidDataError(
            f"sample_weight must be {n} finite non-negative numbers, not all 0, got shape {weight.shape}."
        )
    return weight


def _mean(values: FloatArray, sample_weight: FloatArray | None) -> float:
    weight = _weights(sample_weight, len(values))
    return float(values @ weight / weight.sum())


def _quantile(values: FloatArray, weight: FloatArray, level: float) -> float:
    """Smallest value with at least ``level`` of the weight at or below it; NumPy has weights from 2.0 on only."""
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    share = np.cumsum(weight[order])
    place = np.searchsorted(share, level * share[-1] * (1 - 1e-12))
    return float(values[order[min(place, len(order) - 1)]])


def _simplex_error(X: FloatArray, vertices: FloatArray, faces: IntArray, sample_weight: FloatArray | None) -> float:
    rows = _table(X, "X")
    if rows.shape[1] != vertices.shape[1]:
        raise InvalidDataError(f"X has {rows.shape[1]} columns, but vertices have {vertices.shape[1]}.")
    foot = nearest_on_simplices(rows, vertices, faces)
    return _mean(foot.squared_distance, sample_weight)


class Confounding(NamedTuple):
    """Shares, from 0 to 1, of the variance of times and of that between branches that another column explains."""

    pseudotime: float
    branch: float


@name_call_failures
def confounding(pseudotime: FloatArray, branch: IntArray, column: FloatArray) -> Confounding:
    """Shares of a trajectory's variance that an unrelated column explains, such as a batch.

    Times are ranked. Groups explain the variance between their means, ω² = 1 − (SS_within/(n − k))/(SS_total/(n − 1));
    numbers are ranked as well, and explain the squared correlation, corrected likewise. For branches the same is
    asked of the indicator of each, and the shares are averaged by the variance of these.

    Parameters
    ----------
    pseudotime : array of shape (n,)
    branch : array of shape (n,)
        Branch of each row.
    column : array of shape (n,)
        Numbers, or names of groups.

    Returns
    -------
    Confounding
        ``pseudotime`` and ``branch``; 0 where the column explains no more than chance would.
    """
    time, column, names = (
        as_numbers("pseudotime", pseudotime),
        as_entries("column", column),
        as_entries("branch", branch),
    )
    if not time.ndim == column.ndim == names.ndim == 1:
        shapes = f"{time.shape}, {names.shape} and {column.shape}"
        raise InvalidDataError(f"times, branches and the column must each be of shape (n,); got {shapes}")
    if not len(time) == len(column) == len(names) or len(time) < 3:
        raise InvalidDataError(
            f"times, branches and the column need one entry for each of at least three rows; got {len(time)}, "
            f"{len(names)} and {len(column)}"
        )
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise InvalidDataError("the column has cells that are missing or infinite; leave out their rows")
    time, design = rankdata(time), _explaining_columns(column)
    marks = (names[:, None] == np.unique(names)).astype(float)
    spread = marks.var(axis=0)
    if spread.sum() == 0 or design.shape[1] == 0:
        return Confounding(_explained(design, time), 0.0)
    return Confounding(
        _explained(design, time),
        float(np.average([_explained(design, mark) for mark in marks.T], weights=spread)),
    )


def _explaining_columns(column: FloatArray) -> FloatArray:
    """(n, k − 1) ranks of numbers, or indicators of groups, about their means and orthonormal."""
    if column.dtype.kind in "fiu" and len(np.unique(column)) > 2:
        made = rankdata(column)[:, None]
    else:
        made = (column[:, None] == np.unique(column)[1:]).astype(float)
    made = made - made.mean(axis=0)
    kept = np.linalg.svd(made, full_matrices=False)
    return np.asarray(kept[0][:, kept[1] > _RANK_TOLERANCE * max(kept[1].max(initial=0.0), 1.0)])


def _explained(design: FloatArray, target: FloatArray) -> float:
    """Share of the variance of a target (n,) that orthonormal columns explain, corrected for their number."""
    about = target - target.mean()
    total, (n, k) = float(about @ about), design.shape
    if total == 0 or k == 0 or n - k - 1 <= 0:
        return 0.0
    left = total - float(np.square(design.T @ about).sum())
    return float(max(0.0, 1.0 - (left / (n - k - 1)) / (total / (n - 1))))
