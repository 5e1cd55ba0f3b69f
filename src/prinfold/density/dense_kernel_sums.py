"""Sums of Gaussian kernels over all centres by products of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.kernel_moments import KernelMoments, clip_coordinates, moments_at_place
from prinfold.rows.rows import for_each_block, shared_property

_FAR_BANDWIDTHS = 1e4
"""Bandwidths from the middle of the centres beyond which products of matrices lose too many digits."""

_PAIRS_PER_BLOCK = 2**18
"""Pairs of a place and a centre that are held at once."""

_ROWS_ON_THREADS = 2**14
"""Places from which parts go to threads: fewer come from a pass that is on threads itself."""


@dataclass(frozen=True, eq=False)
class DenseSums:
    """Sums over all centres by products of matrices: for many columns, or kernels that reach most of the centres.

    With x and c taken from the middle of the centres, and j the largest of the exponents x·c + log w − ‖c‖²/2,
    kernels are relative to that of c_j, so that no point is too far away. The moments are those of
    :mod:`prinfold.density.kernel_moments`.
    """

    centers: FloatArray
    weight: FloatArray

    def log_sum(self, Z: FloatArray) -> FloatArray:
        return self._sums(Z, 0).log_sum

    def moments(self, Z: FloatArray) -> KernelMoments:
        return self._sums(Z, len(Z))

    def _sums(self, Z: FloatArray, n_moments: int) -> KernelMoments:
        n, D = Z.shape
        Y, out = clip_coordinates(Z) - self._middle, KernelMoments.empty(n, n_moments, D)
        size = max(16, _PAIRS_PER_BLOCK // len(self.centers))
        parts = [slice(i, min(i + size, n)) for i in range(0, n, size)]

        def one(part: slice) -> None:
            self._fill(Y, part, out)

        if n >= _ROWS_ON_THREADS:
            for_each_block(one, parts)
        else:
            for part in parts:
                one(part)
        return out

    def _fill(self, Y: FloatArray, part: slice, out: KernelMoments) -> None:
        y, (log_sum, shift, spread) = Y[part], out
        share = y @ self._points.T
        share += self._level
        most = share.argmax(axis=1)
        share -= share[np.arange(len(y)), most][:, None]
        np.exp(np.maximum(share, -700.0, out=share), out=share)
        total = share.sum(axis=1)
        off = self._points[most] - y
        log_sum[part] = np.log(total) + self._log_weight[most] - 0.5 * np.einsum("ij,ij->i", off, off)
        wild = (np.abs(y).max(axis=1) > _FAR_BANDWIDTHS) | (np.abs(self._points[most]).max(axis=1) > _FAR_BANDWIDTHS)
        if len(shift):
            share /= total[:, None]
            mean, upper = share @ self._points, np.triu_indices(y.shape[1])
            shift[part] = mean - y
            second = share @ self._products - mean[:, upper[0]] * mean[:, upper[1]]
            spread[part, upper[0], upper[1]] = second
            spread[part, upper[1], upper[0]] = second
        for i in np.flatnonzero(wild).tolist():
            out.put(part.start + i, moments_at_place(y[i], self._points, self._log_weight))

    @shared_property
    def _middle(self) -> FloatArray:
        return np.asarray(np.median(self.centers, axis=0))

    @shared_property
    def _points(self) -> FloatArray:
        return np.asarray(self.centers - self._middle)

    @shared_property
    def _products(self) -> FloatArray:
        """(m, D (D + 1)/2) products of two coordinates of each centre."""
        first, second = np.triu_indices(self.centers.shape[1])
        return np.asarray(self._points[:, first] * self._points[:, second])

    @shared_property
    def _log_weight(self) -> FloatArray:
        return np.asarray(np.log(self.weight) - log(self.weight.sum()))

    @shared_property
    def _level(self) -> FloatArray:
        return np.asarray(self._log_weight - 0.5 * np.einsum("ij,ij->i", self._points, self._points))
