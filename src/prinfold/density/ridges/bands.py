"""Bootstrap bands about a ridge, and how often it is found again in resampled rows.

Rows are resampled, a density of the same bandwidth is put on them, and every point of the ridge is carried to the ridge
of that density. The distance estimates how far the ridge would be with other rows (Chen, Genovese &
Wasserman 2015): the band covers the ridge of the density *as smoothed by the kernels*, of which that of the rows is an
estimate. It does not show the bias of smoothing at bends and corners; there the bandwidth matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, RandomState
from prinfold.density.bandwidths import effective_number
from prinfold.density.ridges.mean_shift import Flow, Status
from prinfold.exceptions import InvalidParameterError, percent
from prinfold.loops import Meter
from prinfold.validation.memory_limits import check_draws

MakeFlow: TypeAlias = Callable[[FloatArray, FloatArray], Flow]
"""Makes the flow to the ridge of a density on rows (n, D) with weights (n,)."""


_TOL, _MAX_ITER = 1e-3, 200
"""Tolerance and most steps: a thousandth of a bandwidth is little beside a band, and a point that is still on its way
after so many steps is on no ridge."""


_NOISE_BANDWIDTHS = 0.2
"""Bandwidths of the noise on resampled rows: without it repeated rows keep the ridge in place, and bands are narrow."""


class ResampledRows(NamedTuple):
    """Resampled rows (n, D) and their weights (n,)."""

    rows: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class FromDensity:
    """Draw rows from a kernel density: with replacement, with Gaussian noise of ``width`` on each.

    With ``shrunk`` the result is shrunk about the mean until its mean squared distance from it is that of the rows, to
    which the noise would otherwise add D ``width``².
    """

    width: float
    shrunk: bool = False

    def __call__(self, rows: FloatArray, weight: FloatArray, rng: np.random.Generator) -> ResampledRows:
        index = rng.choice(len(rows), n_draws(weight), p=weight / weight.sum())
        drawn = rows[index] + self.width * rng.standard_normal((len(index), rows.shape[1]))
        if self.shrunk:
            mean = np.average(rows, axis=0, weights=weight)
            spread = np.average(np.square(rows - mean).sum(axis=1), weights=weight)
            drawn = mean + (drawn - mean) * np.sqrt(spread / (spread + rows.shape[1] * self.width**2))
        return ResampledRows(drawn, np.ones(len(drawn)))


Draw: TypeAlias = Callable[[FloatArray, FloatArray, np.random.Generator], ResampledRows]


def n_draws(weight: FloatArray) -> int:
    """Number of rows to draw: their effective number, at least two."""
    return max(2, round(effective_number(weight)))


def sort_rows(rows: FloatArray, weight: FloatArray) -> ResampledRows:
    """Rows sorted by their columns, so that draws do not depend on the order in which rows came."""
    order = np.lexsort(rows.T[::-1])
    return ResampledRows(rows[order], weight[order])


def observed_rows(sample: ResampledRows, flow: Flow) -> ResampledRows:
    """The resampled rows without those that noise has moved outside the mask."""
    if flow.edge is None:
        return sample
    inside = ~flow.edge.outside(sample.rows)
    return ResampledRows(sample.rows[inside], sample.weight[inside]) if inside.any() else sample


@dataclass(frozen=True, eq=False)
class RidgeBands:
    """A band about a ridge, from ``distance`` (R, m) of its ``points`` (m, D) to the ridges of R samples drawn anew.

    A point that finds no ridge in a sample is infinitely far from it. ``length`` (m,) is the bandwidth at the points.
    """

    points: FloatArray
    distance: FloatArray
    length: FloatArray
    level: float

    @property
    def radius(self) -> FloatArray:
        """(m,) distance from each point that holds the ridge in a share ``level`` of samples; inf where fewer do."""
        return _quantile(self.distance, self.level)

    @property
    def uniform_radius(self) -> float:
        """Distance from all points at once that holds the ridge in a share ``level`` of the samples."""
        return float(_quantile(self.distance.max(axis=1, initial=0.0)[:, None], self.level)[0])

    @property
    def found(self) -> FloatArray:
        """(m,) share of the samples that have a ridge within a bandwidth of each point: how stable it is."""
        return np.asarray((self.distance <= self.length).mean(axis=0))

    def __repr__(self) -> str:
        return (
            f"RidgeBands({len(self.points)} points, {len(self.distance)} samples: {percent(self.level)} of them have "
            f"the ridge within {np.median(self.radius):.3g} of the median point, and find it again at "
            f"{percent((self.found >= self.level).mean())} of the points)"
        )


def ridge_bands(
    points: FloatArray,
    rows: FloatArray,
    weight: FloatArray,
    make_flow: MakeFlow,
    *,
    draw: Draw | None = None,
    n_samples: int = 100,
    level: float = 0.9,
    rng: RandomState = None,
) -> RidgeBands:
    """Bootstrap bands about points of a ridge.

    Each sample costs a density on as many rows and the way of m points to its ridge, which are near it already: about
    a tenth of what it takes to carry as many rows there.

    Parameters
    ----------
    points : (m, D) array
        Points of the ridge of the density on all rows.
    rows, weight : (n, D) array, (n,) array
        The rows, all different, and their positive weights.
    make_flow : callable
        ``make_flow(rows, weight)`` makes the way to the ridge of the density on other rows, with the same bandwidth.
    draw : callable, default=None
        ``draw(rows, weight, rng)`` gives rows and weights drawn anew; None is :class:`FromDensity` with noise of a
        fifth of the median bandwidth.
    n_samples : int, default=100
        Samples R.
    level : float, default=0.9
        Share of the samples whose ridge the band holds.
    rng : int or numpy.random.Generator, optional
        Seed.

    Returns
    -------
    RidgeBands
        Radii and how often each point is found again.
    """
    check_draws(n_samples, len(points), "n_samples", least=1)
    if not 0.0 < level < 1.0:
        raise InvalidParameterError(f"level must be a share between 0 and 1, got {level!r}")
    generator, given = np.random.default_rng(rng), sort_rows(rows, weight)
    flow = make_flow(given.rows, given.weight)
    if draw is None:
        draw = FromDensity(_NOISE_BANDWIDTHS * float(np.median(flow.density.length(given.rows))))
    distance = np.full((n_samples, len(points)), np.inf)
    with Meter("Ridges of bootstrap samples", n_samples) as meter:
        for i, each in enumerate(distance, 1):
            sample = observed_rows(draw(given.rows, given.weight, generator), flow)
            found = coarse_flow(make_flow(*sample))(points)
            there = found.status == Status.CONVERGED
            each[there] = np.linalg.norm(found.points[there] - points[there], axis=1)
            meter.tell(i)
    return RidgeBands(points, distance, flow.density.length(points), level)


def coarse_flow(flow: Flow) -> Flow:
    """The flow with a tolerance and number of steps that do for a band."""
    return replace(flow, tol=max(flow.tol, _TOL), max_iter=min(flow.max_iter, _MAX_ITER))


def _quantile(distance: FloatArray, level: float) -> FloatArray:
    """(m,) of R distances the k-th smallest, k = ⌈level (R + 1)⌉, or the largest; inf is a distance, too.

    One more distance of the same kind is below the k-th of R with probability k / (R + 1).
    """
    at = min(int(np.ceil(level * (len(distance) + 1))), len(distance)) - 1
    return np.asarray(np.partition(distance, max(at, 0), axis=0)[max(at, 0)])
