"""Posterior-weighted sums over rows at each node, in blocks, for the formulas of ``landscapes``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray

_BLOCK_RESPONSIBILITIES = 2**21
"""Responsibilities held at once."""

LEAST_MASS = 1e-200
"""A node with less mass is empty: quotients of such numbers are rounding."""

_ROUNDING_SHARE = 1e-12
"""Share of a mass below which a difference of masses is rounding."""

Responsibilities = Callable[[slice], FloatArray]
"""(b, K) posterior weights of the nodes for the rows of a slice."""


class NodeSums(NamedTuple):
    """Sums over rows: Σ w r (K, m), Σ w r² (K, m), Σ w r u (K, m) and Σ w r u² (K, m) of targets u."""

    mass: FloatArray
    squares: FloatArray
    moment: FloatArray
    second: FloatArray


def blocks_of(n_rows: int, n_nodes: int) -> list[slice]:
    """Rows cut so that their responsibilities fit in memory."""
    size = max(_BLOCK_RESPONSIBILITIES // max(n_nodes, 1), 1)
    return [slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]


def node_sums(ask: Responsibilities, n_nodes: int, targets: FloatArray, weight: FloatArray | None) -> NodeSums:
    """Posterior-weighted sums of targets (n, m) at the nodes, in blocks; a target of NaN is not counted."""
    sums = NodeSums(*(np.zeros((n_nodes, targets.shape[1])) for _ in NodeSums._fields))
    for part in blocks_of(len(targets), n_nodes):
        share = np.asarray(ask(part), dtype=np.float64)
        known = np.isfinite(targets[part])
        u = np.where(known, targets[part], 0.0)
        w = known if weight is None else known * weight[part, None]
        sums.mass[:] += share.T @ w
        sums.squares[:] += (share**2).T @ w
        sums.moment[:] += share.T @ (w * u)
        sums.second[:] += share.T @ (w * u * u)
    return sums


def leave_one_out_squares(
    ask: Responsibilities, sums: NodeSums, targets: FloatArray, weight: FloatArray | None, pseudo_count: float
) -> FloatArray:
    """(K, m) Σ w r e², e the error of each row's prediction with the row left out of the node sums, in blocks.

    Of a row with a weight above 1 one copy is left out, so that weights are repeated rows here too.
    """
    out = np.zeros_like(sums.mass)
    for part in blocks_of(len(targets), len(out)):
        share = np.asarray(ask(part), dtype=np.float64)
        copies = np.ones(len(share)) if weight is None else weight[part]
        one = np.minimum(copies, 1.0)[:, None] * share
        for j, u in enumerate(targets[part].T):
            known = np.isfinite(u)
            rest = sums.mass[:, j] - one[known]
            rest = np.where(rest > _ROUNDING_SHARE * sums.mass[:, j], rest, 0.0)
            moment = np.where(rest > 0, sums.moment[:, j] - one[known] * u[known, None], 0.0)
            has_say = (share[known] * (rest + pseudo_count > LEAST_MASS)).sum(axis=1)
            mean = (share[known] * moment / np.maximum(rest + pseudo_count, LEAST_MASS)).sum(axis=1)
            error = u[known] - np.where(has_say > 0, mean / np.where(has_say > 0, has_say, 1.0), 0.0)
            out[:, j] += share[known].T @ (copies[known] * error**2)
    return out


def class_sums(
    ask: Responsibilities, n_nodes: int, codes: IntArray, n_classes: int, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """(K, C) mass Σ w r and Σ w r² of each class at each node, in blocks."""
    mass, squares = np.zeros((2, n_nodes, n_classes))
    for part in blocks_of(len(codes), n_nodes):
        share = np.asarray(ask(part), dtype=np.float64)
        member = (codes[part, None] == np.arange(n_classes)).astype(np.float64)
        if weight is not None:
            member *= weight[part, None]
        mass += share.T @ member
        squares += (share**2).T @ member
    return mass, squares


def kish_count(mass: FloatArray, squares: FloatArray) -> FloatArray:
    """Effective number of rows (Σ w r)² / Σ w r²; 0 where there is no mass."""
    known = mass > LEAST_MASS
    # Dividing twice: the square of a small mass would underflow.
    return np.where(known, mass * (mass / np.where(known, np.maximum(squares, np.finfo(float).tiny), 1.0)), 0.0)


def mix_nodes(share: FloatArray, value: FloatArray, known: BoolArray, otherwise: FloatArray) -> FloatArray:
    """(b, m) Σ_k r_k v_k over the known nodes, with responsibilities normalised to 1 over these.

    ``value`` (K, m) and ``known`` (K,); a row without known nodes gets ``otherwise`` (m,).
    """
    share = np.asarray(share, dtype=np.float64) * known
    total = share.sum(axis=1, keepdims=True)
    lost = total <= 0
    return np.where(lost, otherwise, share @ np.where(known[:, None], value, 0.0) / np.where(lost, 1.0, total))


def variance_between_nodes(share: FloatArray, value: FloatArray, known: BoolArray) -> FloatArray:
    """(b, m) variance of the nodes' values for each row: Σ_k r_k v_k² − (Σ_k r_k v_k)² over the known nodes.

    ``value`` (K, m) and ``known`` (K, m); 0 for a row without known nodes.
    """
    share = np.asarray(share, dtype=np.float64)
    total = share @ known
    total = np.where(total > 0, total, 1.0)
    of = np.where(known, value, 0.0)
    return np.asarray(np.maximum(share @ of**2 / total - (share @ of / total) ** 2, 0.0))


def sum_variance_between(
    ask: Responsibilities, value: FloatArray, known: BoolArray, targets: FloatArray, weight: FloatArray | None
) -> FloatArray:
    """(K, m) Σ w r b over the rows whose target is known, b by :func:`variance_between_nodes`."""
    out = np.zeros_like(value)
    for part in blocks_of(len(targets), len(out)):
        share = np.asarray(ask(part), dtype=np.float64)
        w = np.isfinite(targets[part]) * (1.0 if weight is None else weight[part, None])
        out += share.T @ (w * variance_between_nodes(share, value, known))
    return out
