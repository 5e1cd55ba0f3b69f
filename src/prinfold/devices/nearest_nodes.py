"""Rows given to the node of the highest score, and the sums of what each node got, against the array API standard.

Scores are t_n · l_k + b_k; with l_k a vector of the node and b_k = −½‖l_k‖², the highest is that of the nearest node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from prinfold.devices.softmax_sums import NodeLoading, row_cuts


class NearestSums(NamedTuple):
    """Sums over the rows that each node got, ``mass`` (K,) and ``moment`` (D, K), and of their scores; in parts."""

    mass: Any
    moment: Any
    score: Any


def nearest_sums(xp: Any, rows: Any, weight: Any | None, nodes: NodeLoading) -> NearestSums:
    """Sums over all rows, some at a time."""
    mass, moment, best = [], [], []
    every = xp.reshape(xp.arange(nodes.bias.shape[0], device=nodes.bias.device), (1, -1))
    for some in row_cuts(rows.shape[0], nodes.bias.shape[0]):
        part = rows[some, :]
        score = xp.matmul(part, nodes.loading) + nodes.bias
        winner, highest = xp.argmax(score, axis=1, keepdims=True), xp.max(score, axis=1)
        belongs = xp.astype(winner == every, rows.dtype)
        if weight is not None:
            belongs, highest = belongs * xp.reshape(weight[some], (-1, 1)), highest * weight[some]
        mass.append(xp.sum(belongs, axis=0))
        moment.append(xp.matmul(xp.matrix_transpose(part), belongs))
        best.append(xp.sum(highest))
    return NearestSums(xp.stack(mass), xp.stack(moment), xp.stack(best))
