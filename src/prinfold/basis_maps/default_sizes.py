"""Defaults for the latent space and the numbers of nodes and basis functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.stats import qmc

from prinfold.basis_maps.bases import Basis, GaussianBasis
from prinfold.exceptions import Advice, DegenerateWarning, InvalidParameterError, Message, warn_caller
from prinfold.latent import Hexagons, LatentSpace, Lattice, Points, Sphere, circle, cylinder, grid, line, torus

LATENTS: dict[str, tuple[int | None, Callable[..., LatentSpace]]] = {
    "grid": (None, grid),
    "line": (1, line),
    "circle": (1, circle),
    "cylinder": (2, cylinder),
    "torus": (None, torus),
    "sphere": (2, Sphere),
}
"""Name → its dimension (None where ``n_components`` decides) and a function of the node counts."""

_DEFAULT_COMPONENTS = 2

_MOST_GRID_AXES = 6
"""Beyond this a grid has too few nodes per axis to be one; a low-discrepancy sample replaces it."""


def make_latent(latent: Any, nodes: Any, n_components: int, n_rows: float) -> LatentSpace:
    """Latent space from the parameters ``latent``, ``nodes`` and ``n_components``."""
    if isinstance(nodes, LatentSpace | np.ndarray):
        if latent is not None:
            raise InvalidParameterError(
                "nodes given by their coordinates are a latent space of their own; leave latent at None"
            )
        return nodes if isinstance(nodes, LatentSpace) else Points(nodes)
    if isinstance(latent, LatentSpace):
        if nodes is not None:
            raise InvalidParameterError("latent is a latent space that has its nodes already; leave nodes at None")
        return latent
    name = latent or "grid"
    fixed, build = LATENTS[name]
    if fixed not in (None, n_components) and n_components != _DEFAULT_COMPONENTS:
        words = f"n_components={n_components} is ignored for the latent space {name!r}, whose dimension is {fixed}"
        warn_caller(Message(words, Advice("n_components", fixed)), DegenerateWarning)
    n_components = fixed or n_components
    if name == "sphere":
        return build(int(np.prod(nodes)) if nodes is not None else _total_nodes(2, n_rows))
    if nodes is None and name == "grid" and n_components > _MOST_GRID_AXES:
        sample = qmc.Sobol(n_components, scramble=False).random_base2(10)
        return Points(2.0 * sample - 1.0)
    default = _cylinder_nodes(n_rows) if name == "cylinder" else _nodes_per_axis(n_components, n_rows)
    return build(*_per_axis(nodes, n_components, default, "nodes"))


GRIDS = ("rectangular", "hexagonal")
"""Arrangements of the nodes of a self-organising map."""

_MOST_MAP_NODES = 2000


def make_map_latent(grid: str, latent: Any, nodes: Any, n_components: int, n_rows: float) -> LatentSpace:
    """The latent space of a self-organising map: about 5√n nodes where their number is left open."""
    if nodes is None and not isinstance(latent, LatentSpace):
        nodes = _map_nodes(latent or "grid", n_components, n_rows)
        if grid == "hexagonal" and latent == "torus":
            nodes = (nodes[0], nodes[1] + nodes[1] % 2)
    found = make_latent(latent, nodes, n_components, n_rows)
    if grid == "rectangular":
        return found
    rows = found.node_grid
    if rows is None or len(rows.shape) != 2:
        raise InvalidParameterError(
            Message(
                "a hexagonal grid needs a latent space with two axes: a grid, a cylinder or a torus; got "
                f"{type(found).__name__} of dimension {found.dimension}",
                Advice("grid", "rectangular", "use {}"),
            )
        )
    return Hexagons(rows.shape, rows.periodic)


def _map_nodes(name: str, n_components: int, n_rows: float) -> tuple[int, ...]:
    """Nodes along each axis, after a rule of thumb for the number of all of them."""
    total, axes = float(np.clip(5.0 * np.sqrt(n_rows), 4, _MOST_MAP_NODES)), LATENTS[name][0] or n_components
    if name == "cylinder":
        return int(np.rint(np.sqrt(2.0 * total))), int(np.rint(np.sqrt(0.5 * total)))
    return (max(2, int(np.rint(total ** (1.0 / axes)))),) * axes


def make_basis(basis: Any, width: float, penalize_bias: bool, latent: LatentSpace) -> Basis:
    """Basis from the parameters ``basis`` and ``width``."""
    if hasattr(basis, "bind"):
        return basis  # type: ignore[no-any-return]
    return GaussianBasis(_basis_shape(latent, basis), width, penalize_bias=penalize_bias)


@singledispatch
def _basis_shape(latent: LatentSpace, given: Any) -> int | tuple[int, ...]:
    """Basis functions along each axis, a quarter as many as nodes in all where they are not given."""
    axes = latent.n_columns
    return _per_axis(given, axes, max(1, int((latent.n_nodes / 4) ** (1 / axes))), "basis")


@_basis_shape.register
def _(latent: Lattice, given: Any) -> tuple[int, ...]:
    """A third as many bumps as nodes along each axis, at most 9, as in the thesis's larger examples."""
    default = [int(np.clip(round(n / 3), 2, 9)) if n > 1 else 1 for n in latent.shape]
    if len(latent.shape) == 1:
        default = [int(np.clip(latent.shape[0] // 4, min(4, latent.shape[0]), 15))]
    return _per_axis(given, latent.n_columns, default, "basis")


@_basis_shape.register
def _(latent: Sphere, given: Any) -> int:
    """The number of all bumps."""
    return int(np.prod(given)) if given else max(8, latent.n // 6)


def _per_axis(given: Any, n_axes: int, default: Sequence[int] | int, name: str) -> tuple[int, ...]:
    if given is None:
        given = default
    counts = (int(given),) * n_axes if np.ndim(given) == 0 else tuple(int(n) for n in given)
    if len(counts) != n_axes:
        raise InvalidParameterError(f"{name}={given!r} has {len(counts)} entries but there are {n_axes} latent axes")
    return counts


def _total_nodes(n_components: int, n_rows: float) -> int:
    """30 × 30 for a thousand rows, fewer for fewer; a curve needs fewer still.

    Nodes stand in for a continuum: where they are farther apart than the noise is wide, rows pile up
    on them. On the pipe-flow data the thesis's 20 × 20 lose half a nat per held-out row to 30 × 30.
    """
    if n_components == 1:
        return int(np.clip(n_rows / 3, 20, 100))
    return int(np.clip(0.9 * n_rows, 64, 900))


def _nodes_per_axis(n_components: int, n_rows: float) -> int:
    return max(2, int(np.rint(np.power(_total_nodes(n_components, n_rows), 1.0 / n_components))))


def _cylinder_nodes(n_rows: float) -> tuple[int, int]:
    """Twice as many nodes round a cylinder as along it: one as high as it is wide is π times as long round as along.

    With as many along as around, rows of a cylinder as high as it is wide lost a quarter of a nat each.
    """
    total = _total_nodes(2, n_rows)
    return int(np.rint(np.sqrt(2.0 * total))), int(np.rint(np.sqrt(0.5 * total)))
