"""Start of a sequence model: the plane of the directions along which rows change slowest.

A variant of ours of slow feature analysis (Wiskott & Sejnowski, 2002).

The longest principal axes of a motion need not tell where in it a row is: a knee that bends twice in a cycle may move
further than a hip that swings once, and a circle laid through both cuts the cycle across. Directions that change slowly
have the long way round in them and not the short ones. Noise is kept out: it goes into the covariance of rows with
themselves, and not of rows with those one or two steps before.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import Axes, leading_signs, principal_axes
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.starts.first_parameters import Start, pca_start, plane_start
from prinfold.rows.rows import Rows, sum_blocks

TRIED_STEPS = 10
"""EM steps after which starts are compared."""

_MOST_AXES = 50
"""Principal axes within which slow directions are sought."""

_LEAST_SHARE = 0.01
_ABOVE_CHANCE = 1.5
"""A direction counts where its covariance with one step before is at least this share of the largest, and this many
times what chance makes of noise: as far above 0 as the least eigenvalue is below."""


def slow_start(cuts: IntArray) -> Start:
    """Nodes in the plane of the slowest directions of rows in sequences, which begin and end at ``cuts``."""
    return partial(_slow_start, cuts)


def _slow_start(cuts: IntArray, model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    latent = model.surface.latent
    found = slow_axes(rows, cuts, latent.n_embedded)
    return pca_start(model, rows, rng) if found is None else plane_start(model, *found)


def slow_axes(rows: Rows, cuts: IntArray, rank: int) -> tuple[Axes, float] | None:
    """The slowest directions (r, D) with their variances, and the largest variance beside them; None for too few.

    With C_τ the covariance of rows with those τ steps before, made symmetric, they are C_1 w of the w that have the
    largest wᵀC_2w / wᵀC_1w: which keep most after two steps of what they had after one.
    """
    principal = principal_axes(rows, _MOST_AXES)
    once, twice = (lagged_covariance(rows, cuts, lag, principal.directions) for lag in (1, 2))
    if once is None or twice is None:
        return None
    value, vector = np.linalg.eigh(once)
    kept = value > max(-_ABOVE_CHANCE * value[0], _LEAST_SHARE * value[-1], np.finfo(float).tiny)
    if kept.sum() < rank:
        return None
    root = np.sqrt(value[kept])
    steadiness = (vector[:, kept] / root).T @ twice @ (vector[:, kept] / root)
    slowest = (vector[:, kept] * root) @ np.linalg.eigh(steadiness)[1][:, ::-1][:, :rank]
    beside = np.linalg.eigvalsh(np.diag(principal.variances) - slowest @ slowest.T)[-1]
    shown = slowest.T @ principal.directions
    shown *= leading_signs(shown)[:, None]
    size = np.square(shown).sum(axis=1)
    return Axes(shown / np.sqrt(size)[:, None], size, principal.column_variance), max(float(beside), 0.0)


def lagged_covariance(rows: Rows, cuts: IntArray, lag: int, directions: FloatArray) -> FloatArray | None:
    """(r, r) covariance of rows with those ``lag`` steps before them, along directions (r, D), made symmetric.

    None where no sequence has so many steps.
    """
    whole = np.repeat(cuts[:-1], np.diff(cuts))  # where the sequence of each row begins
    late = np.arange(len(whole)) - whole >= lag
    if not late.any():
        return None

    def scatter(part: slice) -> FloatArray:
        first = max(part.start - lag, 0)
        block = rows.block(slice(first, part.stop)).astype(np.float64, copy=False) @ directions.T
        here = np.flatnonzero(late[part]) + (part.start - first)
        weight = rows.block_weight(part)
        held = block[here] if weight is None else block[here] * weight[late[part]][:, None]
        return np.asarray(held.T @ block[here - lag])

    total = float(late.sum() if rows.weight is None else rows.weight[late].sum())
    found = sum_blocks(scatter, rows.slices) / total
    return np.asarray(0.5 * (found + found.T))
