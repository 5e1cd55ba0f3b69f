"""Scales of latent coordinates by cross-validation (Meinicke et al. 2005, sections 2.3 and 4).

In two stages, for coordinates with unit variance along each axis:

1. one scale for all axes, the inverse of the bandwidth with which a kernel density of the coordinates makes each row
   most likely by the others (likelihood cross-validation, needing no error);
2. a scale for each axis, by direct search (Nelder & Mead) for the least error.

The least number of neighbours is ours. Errors fall again as scales grow without bound, where every row is predicted by
its nearest neighbour alone. Therefore neither stage may go where the effective number of neighbours
(Σ w k)² / Σ (w k)², in the median over the rows, is less than a minimum (or than half of what the widest kernel gives,
where rows are too few for it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.class_densities import LeaveOneOut, likelihood_bandwidth
from prinfold.exceptions import InvalidDataError
from prinfold.numerics.radial_kernels import Profile

Error = Callable[[FloatArray], float]
ErrorOf = Callable[[IntArray], Error]
"""The error among some rows alone."""

MIN_NEIGHBORS = 3.0

_MOST_PAIRS = 2**18
"""Pairs of rows over which likelihood and numbers of neighbours are taken: all of 500 rows, 131 of 2000 with all. With
four times as many, starts for 1000 rows of a roll and of flow in a pipe took two to three times as long, the same were
chosen, and errors differed by 1 % at most."""

_FIRST_LOG_STEP = 0.4
_LOG_PRECISION = 0.02
_FARTHEST_LOG_SCALE = 7.0
_MOST_TRIALS = 80
"""First step, precision and reach of the direct search, in log scales, and the most errors it evaluates."""


@dataclass(frozen=True)
class NeighborFloor:
    """A minimum for the effective number of neighbours, held by the ``quantile`` of it over the rows."""

    minimum: float = MIN_NEIGHBORS
    quantile: float = 0.5

    def of(self, rows: LeaveOneOut, bandwidth: float, profile: Profile) -> float:
        """The ``quantile`` of the effective number of neighbours at a bandwidth."""
        return float(np.quantile(rows.neighbors(bandwidth, profile), self.quantile))

    def within(self, rows: LeaveOneOut, profile: Profile) -> NeighborFloor:
        """The floor, lowered to half of the number of neighbours that a kernel over all rows gives."""
        return NeighborFloor(min(self.minimum, 0.5 * self.of(rows, 1e3 * rows.range()[1], profile)), self.quantile)

    def bandwidth(self, rows: LeaveOneOut, profile: Profile) -> float:
        """The least bandwidth that keeps the minimum, by bisection to a thousandth."""
        low, high = np.log(rows.range())
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.of(rows, np.exp(middle), profile) >= self.minimum else (middle, high)
        return float(np.exp(high))


class ScaledCoordinates(NamedTuple):
    """Coordinates (n, Q) times the scales (Q,) found for them, and the errors before and after the search."""

    latent: FloatArray
    scales: FloatArray
    start_error: float
    error: float


@dataclass(frozen=True)
class ScaleSearch:
    """Search for the scales of candidates; ``error`` judges scaled coordinates."""

    error: Error
    weight: FloatArray
    profile: Profile
    bandwidth: float | None
    floor: NeighborFloor

    def over_some(self, some: IntArray, index: IntArray, error_of: ErrorOf) -> ScaleSearch:
        """The search over some of the distinct rows; ``index`` (n,) gives the distinct row that each row equals."""
        place = np.full(len(self.weight), -1)
        place[some] = np.arange(len(some))
        members = np.flatnonzero(place[index] >= 0)
        judged, each = error_of(members), place[index[members]]
        return replace(self, error=lambda Z: judged(Z[each]), weight=self.weight[some])

    def scale(self, Z: FloatArray) -> ScaledCoordinates:
        """Normalised coordinates (n, Q) brought to their best scales."""
        live = np.ptp(Z, axis=0) > 0
        if self.bandwidth is not None or not live.any():
            return self._at(Z, live, 1.0 if self.bandwidth is None else 1.0 / self.bandwidth)
        rows = self._rows(Z[:, live])
        floor = self.floor.within(rows, self.profile)
        common = 1.0 / likelihood_bandwidth([rows], self.profile, floor.bandwidth(rows, self.profile))
        first = self._at(Z, live, common)
        scales, error = self._search(Z, live, first, floor)
        return ScaledCoordinates(Z * scales, scales, first.error, error)

    def _rows(self, Z: FloatArray) -> LeaveOneOut:
        return LeaveOneOut.of(Z, self.weight, _MOST_PAIRS)

    def _at(self, Z: FloatArray, live: BoolArray, scale: float) -> ScaledCoordinates:
        scales = np.where(live, scale, 0.0)
        error = float(self.error(Z * scales))
        if not np.isfinite(error):
            raise InvalidDataError(f"its error is {error}")
        return ScaledCoordinates(Z * scales, scales, error, error)

    def _search(
        self, Z: FloatArray, live: BoolArray, first: ScaledCoordinates, floor: NeighborFloor
    ) -> tuple[FloatArray, float]:
        """Scales of the axes with extent by direct search, and the error; never worse than ``first``."""
        best = first.scales, first.error
        # Finite, since the search subtracts the values that it compares.
        refused = 1e3 * (abs(first.error) or 1.0)

        def trial(log_scales: FloatArray) -> float:
            nonlocal best
            if np.abs(log_scales - start).max() > _FARTHEST_LOG_SCALE:
                return 3.0 * refused
            scales = np.zeros(len(live))
            scales[live] = np.exp(log_scales)
            number = floor.of(self._rows(Z[:, live] * scales[live]), 1.0, self.profile)
            if number < floor.minimum:
                return refused * (2.0 - number / floor.minimum)
            error = float(self.error(Z * scales))
            if error < best[1]:
                best = scales, error
            return error if np.isfinite(error) else refused

        start = np.log(first.scales[live])
        simplex = np.vstack([start, start + _FIRST_LOG_STEP * np.eye(len(start))])
        options: dict[str, Any] = {"initial_simplex": simplex, "xatol": _LOG_PRECISION, "maxfev": _MOST_TRIALS}
        minimize(trial, start, method="Nelder-Mead", options=options | {"fatol": 1e-4 * abs(first.error)})  # type: ignore[call-overload]
        return best
