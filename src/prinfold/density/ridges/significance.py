"""Significance of a ridge: its points compared with those of rows drawn from a smooth density; the test is ours.

A few rows that happen to lie in line have a ridge as sharp as any, but they are few. Under a density that is
flat at the scale h of the kernels, the second derivatives of log p̂ at x are off by about 1 / (h² √N), where

    N(x) = n p̂(x) (4π)^(D/2) h^D

is how many rows the kernels at x stand for, in the D dimensions that rows live in (two on a sphere), whatever a mask
has the density divided by. The strength of a ridge point is therefore its ridgeness, how much more
log p̂ bends across the ridge than along it in units of 1/h², times √N. It is compared with what the ridges of samples
reach that are drawn from the rows with wide noise, so that nothing is left of ridges at the scale of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.bandwidths import effective_number
from prinfold.density.densities import resampled
from prinfold.density.ridges.bands import FromDensity, MakeFlow, coarse_flow, observed_rows, sort_rows
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.density.strips import sort_by_cell
from prinfold.exceptions import InvalidDataError, percent
from prinfold.loops import Meter
from prinfold.validation.memory_limits import check_draws

_NOISE_BANDWIDTHS = 4.0
"""Bandwidths of the noise on rows drawn for the comparison."""

_CELL_BANDWIDTHS = 0.125
"""Width in bandwidths of the cells of which one point is used where points are chained."""

_PIECE_BANDWIDTHS, _JOINED_SHARE = 2.0, 0.9
"""Bandwidths of a step within a piece of a ridge, and the share of all points in one that is as good as whole."""

_JOINING_FACTORS = (1.5, 2.0, 3.0, 4.0)
"""Bandwidths of a step that are tried in turn, until the pieces of a ridge are joined."""

_MOST_STARTS = 400
"""Most rows of a sample that are carried to its ridge."""


def strength(found: FlowResult, flow: Flow, n: float) -> FloatArray:
    """(m,) ridgeness × √N of ridge points, for a density on n rows.

    N = n 2^(D/2) Σ w k / Σ w, with kernels k that are 1 at their peak.
    """
    if len(found.points) == 0:
        return np.zeros(0)
    kernels, columns = resampled(flow.density).kernels(), found.points.shape[1]
    peak = columns * (0.5 * log(2.0 * pi) + np.log(kernels.length(found.points)))
    log_number = log(n) + kernels.log_density(found.points) + peak + 0.5 * found.curvature.shape[1] * log(2.0)
    return np.asarray(np.maximum(found.ridgeness, 0.0) * np.exp(0.5 * log_number))


@dataclass(frozen=True, eq=False)
class RidgeSignificance:
    """``strength`` (m,) of the points of a ridge with ``branch`` (m,), beside that of ridges by chance.

    ``chance`` holds the strengths of the ridge points of each sample, and ``chance_branches`` (R,) the largest median
    over a branch in each.
    """

    strength: FloatArray
    branch: IntArray
    chance: tuple[FloatArray, ...]
    chance_branches: FloatArray

    @property
    def p_value(self) -> FloatArray:
        """(m,) share of the ridge points by chance that are as strong: of each point, without regard to the others."""
        share = np.zeros(len(self.strength))
        for each in self.chance:
            share += (len(each) - np.searchsorted(np.sort(each), self.strength)) / max(len(each), 1)
        return np.asarray((1.0 + share) / (1.0 + len(self.chance)))

    @property
    def branch_strength(self) -> FloatArray:
        """(B,) median strength of the points of each branch 0, 1, …; points with branch −1 belong to none."""
        return _medians(self.strength, self.branch)

    @property
    def branch_p_value(self) -> FloatArray:
        """(B,) share of the samples by chance in which any branch is as strong."""
        reached = (self.chance_branches[:, None] >= self.branch_strength).sum(axis=0)
        return np.asarray((1.0 + reached) / (1.0 + len(self.chance_branches)))

    def __repr__(self) -> str:
        return (
            f"RidgeSignificance({len(self.strength)} points, {percent((self.p_value <= 0.05).mean())} of them with p ≤ "
            f"0.05; {len(self.branch_p_value)} branches, {int((self.branch_p_value <= 0.05).sum())} of them; "
            f"{len(self.chance)} samples, with which no p-value is below {1 / (1 + len(self.chance)):.2g})"
        )


def ridge_significance(
    ridge: FlowResult,
    branch: IntArray | None,
    rows: FloatArray,
    weight: FloatArray,
    make_flow: MakeFlow,
    *,
    n_samples: int = 100,
    width: float | None = None,
    rng: RandomState = None,
) -> RidgeSignificance:
    """Compare a ridge with those of samples from a smooth density.

    Each sample costs a density on as many rows, and the way of at most 400 of them to its ridge.

    Parameters
    ----------
    ridge : FlowResult
        Kept points of the ridge of the density on all rows.
    branch : (m,) array or None
        Which branch each point is on, 0, 1, …, and −1 for none; None chains points within a bandwidth.
    rows, weight : (n, D) array, (n,) array
        The rows, all different, and their positive weights.
    make_flow : callable
        ``make_flow(rows, weight)`` makes the way to the ridge of the density on other rows, with the same bandwidth.
    n_samples : int, default=100
        Samples R; no p-value is below 1 / (R + 1).
    width : float, default=None
        Noise on the rows of a sample; None is four median bandwidths.
    rng : int or numpy.random.Generator, optional
        Seed.

    Returns
    -------
    RidgeSignificance
        p-values of points and branches.
    """
    check_draws(n_samples, len(ridge.points), "n_samples", least=1)
    if branch is not None and np.shape(branch) != (len(ridge.points),):
        raise InvalidDataError(
            f"there must be a branch for each of the {len(ridge.points)} points, got shape {np.shape(branch)}"
        )
    flow, given, n = make_flow(rows, weight), sort_rows(rows, weight), effective_number(weight)
    if width is None:
        width = _NOISE_BANDWIDTHS * float(np.median(flow.density.length(rows)))
    draw, generator = FromDensity(width, shrunk=True), np.random.default_rng(rng)
    branch = chain_points(ridge.points, flow.density.length(ridge.points)) if branch is None else np.asarray(branch)
    chance, largest = [], np.zeros(n_samples)
    with Meter("Ridges of bootstrap samples", n_samples) as meter:
        for i in range(n_samples):
            sample = observed_rows(draw(given.rows, given.weight, generator), flow)
            other = coarse_flow(make_flow(*sample))
            found = other(sample.rows[evenly_by_radius(*sample, _MOST_STARTS)])
            found = found.only(found.status == Status.CONVERGED)
            chance.append(strength(found, other, float(len(sample.rows))))
            groups = chain_points(found.points, other.density.length(found.points))
            largest[i] = _medians(chance[-1], groups).max(initial=0.0)
            meter.tell(i + 1)
    return RidgeSignificance(strength(ridge, flow, n), branch, tuple(chance), largest)


def chain_points(points: FloatArray, length: FloatArray) -> IntArray:
    """(m,) groups of points that are chained by steps within the median bandwidth.

    Of points within the same cell, an eighth of a bandwidth wide, one stands for all: there may be very many.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.intp)
    reach = float(np.median(length))
    cells = np.floor((points - points.min(axis=0)) / (_CELL_BANDWIDTHS * reach))
    order, begin = sort_by_cell(cells)
    pairs = cKDTree(points[np.minimum.reduceat(order, begin)]).query_pairs(reach, output_type="ndarray")
    joined = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(begin), len(begin)))
    group = np.empty(len(points), dtype=np.intp)
    group[order] = np.repeat(connected_components(joined, directed=False)[1], np.diff(begin, append=len(points)))
    return group


class RidgePieces(NamedTuple):
    """Pieces of a ridge whose points are chained by steps within two bandwidths, as far as a graph joins ends.

    ``n`` of them, the largest with ``largest_share`` of the points; with kernels ``joining_factor`` times as wide the
    largest would hold nine tenths (inf where no factor up to 4 does that).
    """

    n: int
    largest_share: float
    joining_factor: float


def ridge_pieces(points: FloatArray, length: FloatArray) -> RidgePieces:
    """The pieces of ridge points (m, D) with bandwidths (m,)."""

    def sizes(factor: float) -> IntArray:
        return np.bincount(chain_points(points, _PIECE_BANDWIDTHS * factor * length))

    count, enough = sizes(1.0), _JOINED_SHARE * len(points)
    wider = (factor for factor in _JOINING_FACTORS if sizes(factor).max() >= enough)
    joining = 1.0 if count.max() >= enough else next(wider, inf)
    return RidgePieces(len(count), float(count.max() / len(points)), joining)


def _medians(values: FloatArray, group: IntArray) -> FloatArray:
    """(B,) medians of groups 0, 1, …; zero for one without a member."""
    count = int(group.max(initial=-1)) + 1
    return np.array([np.median(values[group == b]) if (group == b).any() else 0.0 for b in range(count)])
