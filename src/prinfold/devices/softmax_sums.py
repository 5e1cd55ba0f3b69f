"""Softmax over nodes and its sums, on whatever device the arrays lie.

With rows t_n, and of each node k a loading l_k and a bias b_k:

    L_n = log Σ_k exp(t_n · l_k + b_k)        r_nk = exp(t_n · l_k + b_k − L_n)
    mass_k = Σ_n w_n r_nk                     moment_k = Σ_n w_n r_nk t_n

This is the E-step of every noise whose log density is a product of a row and a node, up to a number of the row's own:
thesis (3.7), with the sums of (3.14) and (3.15). It is written once against the array API standard, in double or single
precision as the arrays are. Where there is more than the standard, :mod:`prinfold.devices.fused_sums` is the same in
fewer passes over memory, and is held to this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

ENTRIES_AT_ONCE = 2**25
"""Responsibilities that are held at a time: 128 MiB in single precision."""


class NodeLoading(NamedTuple):
    """Slopes and intercepts of scores: ``loading`` (D, K) and ``bias`` (K,)."""

    loading: Any
    bias: Any


class SoftmaxSums(NamedTuple):
    """Sums over rows: ``mass`` (K,), ``moment`` (D, K), and Σ w L, in parts still to be added up: (p, …) each."""

    mass: Any
    moment: Any
    log_sum: Any


def row_cuts(n_rows: int, n_nodes: int) -> Iterator[slice]:
    """Slices of rows whose responsibilities are held at a time; the sizes alone decide."""
    size = max(1, ENTRIES_AT_ONCE // max(n_nodes, 1))
    return (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))


def node_shares(xp: Any, rows: Any, nodes: NodeLoading) -> tuple[Any, Any]:
    """(n, K) r and (n,) L of some rows."""
    score = xp.matmul(rows, nodes.loading) + nodes.bias
    largest = xp.max(score, axis=1, keepdims=True)
    weight = xp.exp(score - largest)
    total = xp.sum(weight, axis=1, keepdims=True)
    return weight / total, xp.reshape(largest + xp.log(total), (-1,))


def softmax_sums(xp: Any, rows: Any, weight: Any | None, nodes: NodeLoading) -> SoftmaxSums:
    """Sums over all rows, some at a time."""
    mass, moment, log_sum = [], [], []
    for some in row_cuts(rows.shape[0], nodes.bias.shape[0]):
        part = rows[some, :]
        share, log_sums = node_shares(xp, part, nodes)
        if weight is not None:
            share, log_sums = share * xp.reshape(weight[some], (-1, 1)), log_sums * weight[some]
        mass.append(xp.sum(share, axis=0))
        moment.append(xp.matmul(xp.matrix_transpose(part), share))
        log_sum.append(xp.sum(log_sums))
    return SoftmaxSums(xp.stack(mass), xp.stack(moment), xp.stack(log_sum))
