"""Piecewise cubic interpolation on a rectangular lattice, and differences between its nodes.

In each cell of the lattice a function runs, along each axis, by Hermite's cubics from the value and slope at one node
to those at the next; in several dimensions by their products, for which the mixed slopes are needed too. Values and
slopes belong to nodes, so that the function and its first derivatives are continuous. In one dimension this is the
spline of Catmull and Rom (1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import sparse

from prinfold._typing import BoolArray, FloatArray, IntArray


class LatticeSteps(NamedTuple):
    """The steps of a lattice along one axis: nodes ``first`` (m,) and ``second`` (m,) of each."""

    first: IntArray
    second: IntArray


_MOST_STEPS = 2.0**53
"""Most steps that are counted: beyond, neighbouring doubles differ by more than one."""


def steps_along(shape: Sequence[int], periodic: Sequence[bool], axis: int) -> LatticeSteps:
    """Steps from each node to the next along ``axis``, round the end where the axis is closed."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    following = np.roll(index, -1, axis)
    if shape[axis] == 1:
        return LatticeSteps(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
    if not periodic[axis]:
        inner = tuple(slice(None, -1) if i == axis else slice(None) for i in range(len(shape)))
        index, following = index[inner], following[inner]
    return LatticeSteps(index.ravel(), following.ravel())


def differences(n_nodes: int, steps: LatticeSteps, weight: FloatArray) -> sparse.csr_matrix:
    """(m, K) the operator wₛ (y_second − y_first) for each step s."""
    row = np.arange(len(steps.first))
    entries = np.concatenate([-weight, weight])
    where = np.concatenate([row, row]), np.concatenate([steps.first, steps.second])
    return sparse.csr_matrix((entries, where), shape=(len(row), n_nodes))


def slopes(n_nodes: int, steps: LatticeSteps, whole: BoolArray) -> sparse.csr_matrix:
    """(K, K) slope at each node, per step: the mean of the differences on both sides of it, or the one that there is.

    Steps that are not ``whole`` (m,) are left out: the nodes at their ends have one-sided differences.
    """
    kept = LatticeSteps(steps.first[whole], steps.second[whole])
    step = differences(n_nodes, kept, np.ones(len(kept.first)))
    row = np.arange(len(kept.first))
    ends = np.concatenate([kept.first, kept.second])
    sides = sparse.csr_matrix((np.ones(len(ends)), (ends, np.concatenate([row, row]))), shape=(n_nodes, len(row)))
    count = np.asarray(sides.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1.0 / np.maximum(count, 1.0)) @ sides @ step)


def hermite(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, 2, 2) Hermite's cubics by end and by value or slope, and their derivatives; straight on outside [0, 1]."""
    s = np.clip(t, 0.0, 1.0)
    value, slope = np.empty((len(t), 2, 2)), np.empty((len(t), 2, 2))
    value[:, 1, 0] = s * s * (3.0 - 2.0 * s)
    value[:, 0, 0] = 1.0 - value[:, 1, 0]
    value[:, 0, 1] = s * (s - 1.0) ** 2
    value[:, 1, 1] = s * s * (s - 1.0)
    slope[:, 1, 0] = 6.0 * s * (1.0 - s)
    slope[:, 0, 0] = -slope[:, 1, 0]
    slope[:, 0, 1] = (1.0 - s) * (1.0 - 3.0 * s)
    slope[:, 1, 1] = s * (3.0 * s - 2.0)
    return value + (t - s)[:, None, None] * slope, slope


def cell_weights(
    place: FloatArray, shape: Sequence[int], periodic: Sequence[bool], along: int | None = None
) -> sparse.csr_matrix:
    """(n, 2^Q K) weights of the nodes' values and slopes at places (n, Q), counted in steps from the first node.

    Columns come in blocks of K: the values, then, as binary numbers count axes, the slopes and mixed slopes, each per
    step. With ``along`` the weights are those of the derivative along that axis, per step.
    """
    n, n_axes = place.shape
    n_nodes = int(np.prod(shape))
    corner, parts = np.empty((n, n_axes), dtype=np.intp), []
    for axis, (count, closed) in enumerate(zip(shape, periodic, strict=True)):
        where = np.floor(np.clip(place[:, axis], -_MOST_STEPS, _MOST_STEPS)).astype(np.intp)
        corner[:, axis] = where % count if closed else np.clip(where, 0, max(count - 2, 0))
        offset = where if closed else corner[:, axis]
        value, slope = hermite(place[:, axis] - offset) if count > 1 else _single_node_weights(n)
        parts.append(slope if axis == along else value)
    ends = np.array(list(product((0, 1), repeat=n_axes)))
    nodes = np.ravel_multi_index(tuple((corner[:, None] + ends).T % np.array(shape)[:, None, None]), tuple(shape)).T
    weight, column = np.empty((n, len(ends), len(ends))), np.empty((n, len(ends), len(ends)), dtype=np.intp)
    for block, kinds in enumerate(ends):  # of values and slopes, in the order of binary numbers as ends are
        weight[:, block] = 1.0
        for part, end, kind in zip(parts, ends.T, kinds, strict=True):
            weight[:, block] *= part[:, end, kind]
        column[:, block] = nodes + block * n_nodes
    first = np.arange(n + 1) * len(ends) ** 2
    return sparse.csr_matrix((weight.ravel(), column.ravel(), first), shape=(n, len(ends) * n_nodes))


def _single_node_weights(n: int) -> tuple[FloatArray, FloatArray]:
    """(n, 2, 2) weights and derivatives along an axis of one node: constant."""
    value = np.zeros((n, 2, 2))
    value[:, 0, 0] = 1.0
    return value, np.zeros((n, 2, 2))
