"""Kernels of the fused E-step, in Triton: no matrix of responsibilities is ever written.

Scores are formed twice, which costs less than to write them once: first the log-sum of each row, over all nodes; then,
node by node, responsibilities and their products with the rows. Scores and products are made of three TF32 products
each, which comes to single precision. Biases are in units of log 2 here, as loadings are.
"""

from __future__ import annotations

import triton
import triton.language as tl

_FAR = tl.constexpr(-1e30)


@triton.jit
def row_log_sums(
    rows, loading, bias, found, lacking, n_rows, n_nodes,
    EVERY: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, NODES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """found[n] = log2 Σ_k exp2(t_n · l_k + b_k); or, of every so many rows, lacking[n], what is to be added to it.

    Tensor cores cut off digits when they add, which leaves all scores of a row too near to zero by about the same. It
    does not show in responsibilities. For lacking[n] the largest score is found again by sums that are rounded.
    """
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row, d = at * (EVERY or 1), tl.arange(0, WIDE)
    valid = row < n_rows
    here = tl.load(rows + row[:, None] * D + d[None, :], mask=valid[:, None] & (d[None, :] < D), other=0.0)
    largest = tl.full([ROWS], _FAR, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    best = tl.zeros([ROWS], tl.int32)
    for start in range(0, n_nodes, NODES):
        k = start + tl.arange(0, NODES)
        known = k < n_nodes
        inside = (d[:, None] < D) & known[None, :]
        of_nodes = tl.load(loading + d[:, None] * n_nodes + k[None, :], mask=inside, other=0.0)
        score = tl.dot(here, of_nodes, input_precision="tf32x3") + tl.load(bias + k, mask=known, other=_FAR)[None, :]
        if EVERY:
            top, place = tl.max(score, axis=1, return_indices=True)
            best = tl.where(top > largest, start + place, best)
            largest = tl.maximum(largest, top)
        else:
            higher = tl.maximum(largest, tl.max(score, axis=1))
            total = total * tl.exp2(largest - higher) + tl.sum(tl.exp2(score - higher[:, None]), axis=1)
            largest = higher
    if EVERY:
        of_best = tl.load(loading + d[None, :] * n_nodes + best[:, None], mask=d[None, :] < D, other=0.0)
        rounded = tl.sum(here * of_best, axis=1) + tl.load(bias + best)
        tl.store(lacking + at, rounded - largest, mask=valid)
    else:
        tl.store(found + at, largest + tl.log2(total), mask=valid)


@triton.jit
def node_sums(
    rows, weight, log_sum, loading, bias, mass, moment, n_rows, n_nodes, rows_per_part,
    WEIGHTED: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, NODES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """mass[p, k] = Σ w r and moment[p, :, k] = Σ w r t over the rows of part p."""
    part = tl.program_id(1)
    k = tl.program_id(0) * NODES + tl.arange(0, NODES)
    d = tl.arange(0, WIDE)
    known = k < n_nodes
    inside = (d[:, None] < D) & known[None, :]
    of_nodes = tl.load(loading + d[:, None] * n_nodes + k[None, :], mask=inside, other=0.0)
    level = tl.load(bias + k, mask=known, other=_FAR)
    of_mass = tl.zeros([NODES], tl.float32)
    of_moment = tl.zeros([WIDE, NODES], tl.float32)
    first = part * rows_per_part
    for start in range(first, tl.minimum(first + rows_per_part, n_rows), ROWS):
        at = start + tl.arange(0, ROWS)
        valid = at < tl.minimum(first + rows_per_part, n_rows)
        here = tl.load(rows + at[:, None] * D + d[None, :], mask=valid[:, None] & (d[None, :] < D), other=0.0)
        own = tl.load(log_sum + at, mask=valid, other=-_FAR)
        share = tl.exp2(tl.dot(here, of_nodes, input_precision="tf32x3") + level[None, :] - own[:, None])
        if WEIGHTED:
            share = share * tl.load(weight + at, mask=valid, other=0.0)[:, None]
        of_mass += tl.sum(share, axis=0)
        of_moment += tl.dot(tl.trans(here), share, input_precision="tf32x3")
    tl.store(mass + part * n_nodes + k, of_mass, mask=known)
    out = moment + part * D * n_nodes + d[:, None] * n_nodes + k[None, :]
    tl.store(out, of_moment, mask=(d[:, None] < D) & known[None, :])


@triton.jit
def softmax_rows(score, bias, weight, log_sum, n_nodes, WEIGHTED: tl.constexpr, NODES: tl.constexpr):
    """Scores of each row without their bias become w r in place, and log_sum[n] = log Σ exp; one program for a row."""
    n = tl.program_id(0).to(tl.int64)
    largest, total = _FAR, 0.0
    for start in range(0, n_nodes, NODES):
        k = start + tl.arange(0, NODES)
        own = tl.load(score + n * n_nodes + k, mask=k < n_nodes, other=_FAR)
        own += tl.load(bias + k, mask=k < n_nodes, other=0.0)
        higher = tl.maximum(largest, tl.max(own, axis=0))
        total = total * tl.exp(largest - higher) + tl.sum(tl.exp(own - higher), axis=0)
        largest = higher
    tl.store(log_sum + n, largest + tl.log(total))
    factor = 1.0 / total
    if WEIGHTED:
        factor = factor * tl.load(weight + n)
    for start in range(0, n_nodes, NODES):
        k = start + tl.arange(0, NODES)
        own = tl.load(score + n * n_nodes + k, mask=k < n_nodes, other=_FAR)
        own += tl.load(bias + k, mask=k < n_nodes, other=0.0)
        tl.store(score + n * n_nodes + k, tl.exp(own - largest) * factor, mask=k < n_nodes)
