"""Starts of a surface together with straight directions beside it.

EM finds what is near its start: a surface that begins along a direction in which data are straight stays there, and
what is curved is taken for noise (thesis, end of 6.4). So the principal axes are shared out between surface and
directions in every way that may do, each is trained a little, and the best is where training begins.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, islice

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import Axes, principal_axes
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.factor_loadings import FactorParameters
from prinfold.gtm.noise.protocol import Directions, Parameters
from prinfold.gtm.starts.first_parameters import BestStart, Start, pca_start, plane_start
from prinfold.numerics.distances import squared_distances
from prinfold.rows.rows import Rows

_TRIAL_STEPS = 20
_TRIAL_RELAXATION = 1.8
_TRIAL_ROWS = 4000
"""Rows, or up to twice as many, on which ways to begin are compared."""

_MOST_TRIALS = 20
_RESIDUAL_ROWS = 2000


def with_directions(start: Start, directions: Directions) -> Start:
    """The start with directions that all nodes share."""
    if start is pca_start or isinstance(start, BestStart):  # surface and directions have a contest of their own
        return partial(_divide_axes, directions)
    if directions.axes is None:
        return partial(_along_residuals, start, directions)
    raise InvalidParameterError(
        Message(f"axes={directions.axes} of the noise go with one start only", "leave them out", Advice("init", "pca"))
    )


def _divide_axes(directions: Directions, model: GTMModel, rows: Rows, rng: np.random.Generator) -> FactorParameters:
    """The best of the ways in which surface and directions may share the principal axes."""
    latent, n_factors = model.surface.latent, directions.count
    n_surface = min(latent.n_embedded, rows.n_columns)
    if directions.axes is not None:
        _refuse_other_axes(directions.axes, n_surface, rows.n_columns)
    n_axes = max(n_surface + n_factors, 0 if directions.axes is None else max(directions.axes) + 1)
    found = principal_axes(rows, n_axes + 1)
    every = combinations(range(min(n_axes, len(found.variances))), n_surface)
    choices = [directions.axes] if directions.axes is not None else list(islice(every, _MOST_TRIALS))
    starts = [_begin_on_axes(model, found, chosen, n_factors) for chosen in choices]
    return (
        starts[0]
        if len(starts) == 1
        else max(starts, key=lambda each: _trial_objective(model, _choose_rows(rows), each))
    )


def _refuse_other_axes(axes: tuple[int, ...], n_surface: int, n_columns: int) -> None:
    if len(axes) != n_surface:
        raise InvalidParameterError(f"axes={axes} of the noise name {len(axes)} axes, but the surface has {n_surface}")
    if max(axes) >= n_columns:
        raise InvalidParameterError(f"axes={axes} of the noise: {n_columns} columns have {n_columns} axes, from 0 on")


def _begin_on_axes(model: GTMModel, axes: Axes, chosen: tuple[int, ...], n_factors: int) -> FactorParameters:
    """The surface in the plane of the axes chosen, directions along the longest of the others."""
    others = [i for i in range(len(axes.variances)) if i not in chosen][: n_factors + 1]
    left = float(axes.variances[others[n_factors]]) if len(others) > n_factors else 0.0
    turned = Axes(axes.directions[list(chosen)], axes.variances[list(chosen)], axes.column_variance)
    plane = plane_start(model, turned, left)
    V, along = np.zeros((n_factors, axes.directions.shape[1])), others[:n_factors]
    V[: len(along)] = np.sqrt(axes.variances[along])[:, None] * axes.directions[along]
    return _replace_directions(plane, V)


def _replace_directions(parameters: Parameters, V: FloatArray) -> FactorParameters:
    """Parameters of a noise with factors, with other directions."""
    assert isinstance(parameters, FactorParameters)
    return replace(parameters, factors=V)


def _trial_objective(model: GTMModel, rows: Rows, parameters: FactorParameters) -> float:
    """The objective after some training."""
    state = model.begin(rows, parameters)
    for _ in range(_TRIAL_STEPS):
        state = model.step(rows, state, _TRIAL_RELAXATION)
    return float(model.measure(state)["objective"])


def _choose_rows(rows: Rows) -> Rows:
    """All rows of a small table, and evenly spaced ones of a large one."""
    some = slice(0, None, max(1, rows.n_rows // _TRIAL_ROWS))
    weight, errors = (None if each is None else each[some] for each in (rows.weight, rows.errors))
    return replace(rows, table=rows.table[some], weight=weight, errors=errors)


def _along_residuals(
    start: Start, directions: Directions, model: GTMModel, rows: Rows, rng: np.random.Generator
) -> FactorParameters:
    """The start with directions along which rows scatter most about the nearest nodes."""
    parameters = start(model, rows, rng)
    some = slice(0, None, max(1, rows.n_rows // _RESIDUAL_ROWS))
    block, weight = rows.block(some).astype(np.float64), rows.block_weight(some)
    nodes = model.surface.nodes(parameters.weights)
    residual = block - nodes[squared_distances(block, nodes).argmin(axis=1)]
    V = _leading_axes(residual, weight, directions.count)
    return _replace_directions(parameters, V)


def _leading_axes(residual: FloatArray, weight: FloatArray | None, rank: int) -> FloatArray:
    """(rank, D) principal axes of the residuals, scaled by their standard deviations."""
    scaled = residual if weight is None else residual * np.sqrt(weight)[:, None]
    total = len(residual) if weight is None else float(weight.sum())
    _, size, axes = np.linalg.svd(scaled / np.sqrt(total), full_matrices=False)
    V = np.zeros((rank, residual.shape[1]))
    n = min(rank, len(size))
    V[:n] = size[:n, None] * axes[:n]
    return V
