"""Sums of Gaussian kernels of different widths, with the gradient and Hessian of their logarithm.

With centres c_j of weight w_j and width h_j, τ_j = 1/h_j², d_j = c_j − x and k_j = h_j^(−D) exp(−τ_j ‖d_j‖²/2), each
point x has shares b_j = w_j k_j / Σ w k, and

    log_sum = log Σ w k / Σ w,    precision t = Σ b τ,    gradient g = Σ b τ d,    Hessian B = Σ b τ² d dᵀ − t I − g gᵀ,

so that g/t is the mean shift of Comaniciu, Ramesh and Meer (2001). How the sums are cut off is ours. Centres go by
octaves of their width, each with strips of its own, in which kernels count that are within R of the widest of them.
With R² = 2 log(Σ w h^(−D) / (ε min w h^(−D))) all that is left out makes up less than ε of any sum that is no less than
the peak of the lowest kernel. Places with a smaller sum are done over all centres, in log space.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.density.kernel_moments import clip_coordinates
from prinfold.density.strips import Strips, make_query_cells, make_strips, reach_within, reorder_axes, strip_axes
from prinfold.rows.rows import shared_property

_FAR_WIDTHS = 1e6
"""Widths from the middle of an octave from which on places are summed one by one."""

_LEAST_LOG_SUM = -600.0
"""Log sums below this come from exponents at the end of their range."""


class KernelDerivatives(NamedTuple):
    """``log_sum`` (n,), ``precision`` (n,), ``gradient`` (n, D) and ``hessian`` (n, D, D); formulas in the module."""

    log_sum: FloatArray
    precision: FloatArray
    gradient: FloatArray
    hessian: FloatArray


class _Octave(NamedTuple):
    """Centres whose widths are between half of the ``width`` and that, in its units."""

    strips: Strips
    width: float
    axes: IntArray
    middle: FloatArray


@dataclass(frozen=True, eq=False)
class ScaledSums:
    """Sums over ``centers`` (m, D) with positive ``weight`` (m,) and ``width`` (m,).

    ``tolerance`` is ε of the module's formulas; zero leaves out nothing.
    """

    centers: FloatArray
    weight: FloatArray
    width: FloatArray
    tolerance: float = 1e-6

    def derivatives(self, Z: FloatArray) -> KernelDerivatives:
        """Log sum, precision, gradient and Hessian at points (n, D)."""
        n, D = Z.shape
        axes = max(D, 2)
        sums, wild = np.zeros((n, 2 + axes + axes**2)), np.zeros(n, dtype=bool)
        for octave in self._octaves:
            wild |= self._add_octave(octave, Z, sums)
        wild |= ~(sums[:, 0] >= self._least_sum)
        total = np.where(wild, 1.0, sums[:, 0])
        sums /= total[:, None]
        precision, gradient = sums[:, 1].copy(), sums[:, 2 : 2 + D].copy()
        hessian = sums[:, 2 + axes :].reshape(n, axes, axes)[:, :D, :D].copy()
        hessian -= precision[:, None, None] * np.eye(D) + gradient[:, :, None] * gradient[:, None, :]
        out = KernelDerivatives(np.log(total) + self._level, precision, gradient, hessian)
        for i in np.flatnonzero(wild).tolist():
            for whole, part in zip(out, self._derivatives_at_point(Z[i]), strict=True):
                whole[i] = part
        return out

    def _add_octave(self, octave: _Octave, Z: FloatArray, sums: FloatArray) -> FloatArray:
        """Add the sums over an octave; returns (n,) which places are too far away for that."""
        from prinfold.density._kernel_sums_jit import sum_scaled

        Y = reorder_axes(clip_coordinates(Z / octave.width), octave.axes)
        wild = np.abs(Y - octave.middle).max(axis=1, initial=0.0) > _FAR_WIDTHS
        groups = make_query_cells(Y, np.flatnonzero(~wild), 1.0, self._reach**2, octave.middle)
        groups.for_each_part(lambda part: sum_scaled(Y, part, octave.strips, octave.axes, 1.0 / octave.width, sums))
        return np.asarray(wild)

    def _derivatives_at_point(self, z: FloatArray) -> KernelDerivatives:
        """Derivatives at a single point (D,), by the definition, relative to the largest share."""
        unit = float(self.width.max())
        d, tau = clip_coordinates(self.centers / unit) - clip_coordinates(z / unit), (unit / self.width) ** 2
        with np.errstate(over="ignore"):  # of all but the widest, at points very far away
            exponent = self._log_peak - 0.5 * tau * np.einsum("ij,ij->i", d, d)
        most = float(exponent.max())
        share = np.exp(exponent - most)
        total = float(share.sum())
        near = share > 0
        share, tau, d = share[near] / total, tau[near], d[near]
        precision, v = float(share @ tau), tau[:, None] * d
        gradient = share @ v
        v -= gradient
        hessian = (share[:, None] * v).T @ v - precision * np.eye(len(z))
        value = most + np.log(total) + self._level
        return KernelDerivatives(np.asarray(value), np.asarray(precision / unit**2), gradient / unit, hessian / unit**2)

    @shared_property
    def _log_peak(self) -> FloatArray:
        """(m,) log of w h^(−D) of each centre as a share of the sum over all."""
        peak = np.log(self.weight) - self.centers.shape[1] * np.log(self.width)
        return np.asarray(peak - np.logaddexp.reduce(peak))

    @shared_property
    def _level(self) -> float:
        """log Σ w h^(−D) / Σ w."""
        first = np.log(self.weight[0] / self.weight.sum()) - self.centers.shape[1] * np.log(self.width[0])
        return float(first - self._log_peak[0])

    @shared_property
    def _reach(self) -> float:
        return reach_within(np.exp(self._log_peak), self.tolerance) if self.tolerance else inf

    @shared_property
    def _least_sum(self) -> float:
        """Sums below this are done again over all centres."""
        least = _LEAST_LOG_SUM if self.tolerance == 0 else max(_LEAST_LOG_SUM, float(self._log_peak.min()) - 1e-9)
        return float(np.exp(least))

    @shared_property
    def _octaves(self) -> list[_Octave]:
        octave = np.floor(np.log2(self.width / self.width.min()))
        return [self._make_octave(np.flatnonzero(octave == k)) for k in np.unique(octave)]

    def _make_octave(self, rows: IntArray) -> _Octave:
        width = float(self.width[rows].max())
        points = clip_coordinates(self.centers[rows] / width)
        axes = strip_axes(points)
        points = reorder_axes(points, axes)
        middle = np.median(points, axis=0)
        tau = (width / self.width[rows, None]) ** 2
        return _Octave(make_strips(self._log_peak[rows], points, tau, 1.0, middle), width, axes, middle)
