"""Sums of Gaussian kernels by polynomials on small patches, where query points are many enough for that to pay.

About the centre o of a patch, with y = x − o, sums are

    F(y) = exp(‖y‖²/2) Σ w k,    ∇F = exp(‖y‖²/2) Σ w k e,    ∇²F = exp(‖y‖²/2) Σ w k e eᵀ,    e = c − o,

and F is smooth: a mixture of exponentials exp(y·e). On a patch of side s it is taken for the polynomial of degree 8
that is nearest to its value, gradient and Hessian at the 3^D nodes of a lattice of step s/2, which neighbouring patches
share. Moments come from the derivatives of the polynomial, so that within a patch they are those of one function.

The method and its bounds are ours. The error can be seen from a single kernel: whatever its distance and direction, and
wherever on the patch, Σ w k is off by no more than 8e-10 of its weight, the gradient by 3e-8 and the Hessian by 8e-7,
and sums over many by no more than that of their weight.

Patches are made where rows are dense, when a query point first falls into their neighbourhood; what a place gets does
not depend on when that was or what else was asked for.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import perm
from threading import Lock

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.density.kernel_moments import KernelMoments, KernelSums, clip_coordinates
from prinfold.density.strips import sort_by_cell
from prinfold.rows.rows import for_each_block

_DEGREE = 8

_SIDE_BANDWIDTHS = 0.4
"""Bandwidths across a patch; the mean shift jumps by less than 1e-7 of them from one to the next."""

_LEAST_ROWS_IN_PATCH = {1: 2, 2: 4, 3: 8}
"""Least rows of a dense patch, by columns, which pay for one evaluation at every row: as many as its own nodes."""

_LEAST_PATCHED_SHARE = 0.25
"""Least share of all rows in dense cells for patches to be made."""

_BLOCK_SIDE = 4
"""Patches along the side of a block that is made at once, so that they share nodes."""

_PATCHES_AT_ONCE = 2048
"""Patches whose nodes are held at once."""

_MOST_CELLS = 2.0**62
"""Most cells in the box of all patches: more could not be numbered."""

_ROWS_PER_PART = 2**14
"""Places of a part, when there are more; fewer come from a pass that is on threads itself."""


def make_patched_sums(sums: KernelSums, centers: FloatArray) -> KernelSums:
    """Sums by patches where rows are dense; ``sums`` itself where few rows are, or in more than three columns."""
    m, D = centers.shape
    if D not in _LEAST_ROWS_IN_PATCH:
        return sums
    middle = np.median(centers, axis=0)
    at = np.floor((centers - middle) / _SIDE_BANDWIDTHS)
    order, first = sort_by_cell(at)
    counts = np.diff(np.append(first, m))
    crowded = counts >= _LEAST_ROWS_IN_PATCH[D]
    cells = at[order[first[crowded]]]
    if counts[crowded].sum() < _LEAST_PATCHED_SHARE * m or np.prod(np.ptp(cells, axis=0) + 1.0) > _MOST_CELLS:
        return sums
    return PatchedSums(sums, middle, cells)


class PatchedSums:
    """Sums by polynomials on patches at the ``cells`` (P, D), sorted, and as they are elsewhere.

    Cell a covers from ``middle`` + s a to ``middle`` + s (a + 1).
    """

    def __init__(self, sums: KernelSums, middle: FloatArray, cells: FloatArray) -> None:
        self.sums, self.middle, self.cells = sums, middle, cells
        n, D = cells.shape
        self._low, self._high = cells.min(axis=0), cells.max(axis=0)
        self._keys = self._key(cells)
        order, first = sort_by_cell(np.floor(cells / _BLOCK_SIDE))
        self._block = np.empty(n, dtype=np.int64)
        self._block[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, n)))
        self._center = middle + _SIDE_BANDWIDTHS * (cells + 0.5)
        self._made, self._lock = np.zeros(n, dtype=bool), Lock()
        self._base, self._coefficients = np.empty(n), np.empty((n, _fit_matrix(D).shape[1]))

    def log_sum(self, Z: FloatArray) -> FloatArray:
        return self._sums(Z, 0).log_sum

    def moments(self, Z: FloatArray) -> KernelMoments:
        return self._sums(Z, len(Z))

    def _sums(self, Z: FloatArray, n_moments: int) -> KernelMoments:
        Y = clip_coordinates(Z)
        out, patch = KernelMoments.empty(len(Y), n_moments, Y.shape[1]), self._patch_of(Y)
        elsewhere = np.flatnonzero(patch < 0)
        if len(elsewhere):
            rest = Y[elsewhere]
            found = self.sums.moments(rest) if n_moments else KernelMoments(self.sums.log_sum(rest), *out[1:])
            out.put(elsewhere, found)
        if len(elsewhere) < len(Y):
            self._make_patches(patch)
            self._fill(Y, patch, out)
        return out

    def _key(self, at: FloatArray) -> IntArray:
        """(n,) numbers of cells within the box of all patches, rising with the order of rows."""
        key = np.zeros(len(at), dtype=np.int64)
        for axis, low, high in zip(at.T, self._low, self._high, strict=True):
            key *= np.int64(high - low + 1.0)
            key += (axis - low).astype(np.int64)
        return key

    def _patch_of(self, Y: FloatArray) -> IntArray:
        """(n,) the patch that a place is on, −1 for none."""
        from prinfold.density._patches_jit import find_patches

        patch = np.empty(len(Y), dtype=np.int64)
        find_patches(Y, self.middle, _SIDE_BANDWIDTHS, self._low, self._high, self._keys, patch)
        return patch

    def _fill(self, Y: FloatArray, patch: IntArray, out: KernelMoments) -> None:
        from prinfold.density._patches_jit import sum_patches

        table = self._coefficients, self._base, self._center, 0.5 * _SIDE_BANDWIDTHS, _DEGREE

        def one(first: int) -> None:
            sum_patches(Y, patch, first, min(first + _ROWS_PER_PART, len(Y)), *table, *out)

        parts = range(0, len(Y), _ROWS_PER_PART)
        if len(parts) == 1:
            one(0)
        else:
            for_each_block(one, parts)

    def _make_patches(self, patch: IntArray) -> None:
        """Fit the patches under all places that are not there yet, and with them their neighbours."""
        lacking = (patch >= 0) & ~self._made[patch]
        if not lacking.any():
            return
        with self._lock:
            wanted = np.zeros(self._block.max() + 1, dtype=bool)
            wanted[self._block[patch[lacking]]] = True
            todo = np.flatnonzero(wanted[self._block] & ~self._made)
            for first in range(0, len(todo), _PATCHES_AT_ONCE):
                self._fit_patches(todo[first : first + _PATCHES_AT_ONCE])

    def _fit_patches(self, patches: IntArray) -> None:
        """Fit polynomials to the sums and their derivatives at the nodes of some patches."""
        from prinfold.density._patches_jit import fit_patches

        D = self.cells.shape[1]
        offset = _nodes(D)
        lattice = 2.0 * self.cells[patches][:, None] + offset + 1.0
        order, first = sort_by_cell(lattice.reshape(-1, D))
        name = np.empty(len(order), dtype=np.int64)
        name[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
        at = self.sums.moments(self.middle + 0.5 * _SIDE_BANDWIDTHS * lattice.reshape(-1, D)[order[first]])
        log_sum, shift, spread = (part[name.reshape(len(patches), -1)] for part in at)
        y = 0.5 * _SIDE_BANDWIDTHS * offset
        e = shift + y
        base = log_sum[:, len(offset) // 2]
        total = np.exp(log_sum + 0.5 * np.square(y).sum(axis=1) - base[:, None])
        second = spread + e[..., :, None] * e[..., None, :]
        upper = np.triu_indices(D)
        half = 0.5 * _SIDE_BANDWIDTHS
        data = np.concatenate([np.ones_like(e[..., :1]), half * e, half**2 * second[..., upper[0], upper[1]]], axis=2)
        data *= total[..., None]
        coefficients = np.empty((len(patches), self._coefficients.shape[1]))
        fit_patches(data.reshape(len(patches), -1), _fit_matrix(D), coefficients)
        self._base[patches], self._coefficients[patches] = base, coefficients
        self._made[patches] = True


def _nodes(D: int) -> FloatArray:
    """(3^D, D) −1, 0 and 1 along each axis."""
    return np.array(list(product((-1.0, 0.0, 1.0), repeat=D)))


@cache
def _fit_matrix(D: int) -> FloatArray:
    """(data, coefficients) the matrix of least squares from values, gradients and Hessians at nodes to polynomials."""
    orders = [o for o in product(range(3), repeat=D) if sum(o) <= 2]
    orders.sort(key=lambda o: (sum(o), [-each for each in o]))
    powers = [a for a in product(range(_DEGREE + 1), repeat=D) if sum(a) <= _DEGREE]
    design = [
        [
            np.prod([perm(a, o) * t ** max(a - o, 0) for t, a, o in zip(node, power, order, strict=True)])
            for power in powers
        ]
        for node in _nodes(D)
        for order in orders
    ]
    return np.ascontiguousarray(np.linalg.pinv(np.array(design)).T)
