"""Forward, backward and best paths of a hidden Markov chain, compiled; see :mod:`prinfold.gtm.sequence.hidden_markov`.

Nodes from which nothing can come are passed over, of which most are once the noise is small: their emissions are 0.
This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.numerics._compiled import compiled

if TYPE_CHECKING:
    from prinfold.gtm.sequence.hidden_markov import ChainSteps, Counts


def forward(
    emission: FloatArray, begins: BoolArray, before: FloatArray, steps: ChainSteps
) -> tuple[FloatArray, FloatArray]:
    """Forward pass, as :func:`prinfold.gtm.sequence.hidden_markov.forward`."""
    alpha, scale = np.empty_like(emission), np.empty(len(emission))
    _forward(emission, begins, before, *steps, alpha, scale)
    return alpha, scale


def backward(
    emission: FloatArray,
    ends: BoolArray,
    scale: FloatArray,
    weight: FloatArray,
    alpha: FloatArray,
    after: FloatArray,
    steps: ChainSteps,
    counts: Counts,
) -> None:
    """Backward pass, as :func:`prinfold.gtm.sequence.hidden_markov.backward`."""
    _backward(emission, ends, scale, weight, alpha, after, *steps[1:], *counts)


def best_steps(
    log_density: FloatArray, begins: BoolArray, best: FloatArray, steps: ChainSteps
) -> tuple[IntArray, IntArray]:
    """Viterbi pass, as :func:`prinfold.gtm.sequence.hidden_markov.best_steps`."""
    came, tops = np.empty(log_density.shape, dtype=np.int32), np.empty(len(log_density), dtype=np.int32)
    chain = np.log(steps.initial), steps.cuts, steps.node, np.log(steps.share + steps.leap), float(np.log(steps.leap))
    _best_steps(log_density, begins, best, *chain, came, tops)
    return came, tops


@compiled
def _forward(
    emission: FloatArray,
    begins: BoolArray,
    before: FloatArray,
    initial: FloatArray,
    cuts: IntArray,
    node: IntArray,
    share: FloatArray,
    leap: float,
    alpha: FloatArray,
    scale: FloatArray,
) -> None:
    """Fill ``alpha`` and ``scale``."""
    n, K = emission.shape
    for t in range(n):
        here = alpha[t]
        if begins[t]:
            here[:] = initial
        else:
            past = before if t == 0 else alpha[t - 1]
            total = 0.0
            for j in range(K):
                total += past[j]
            here[:] = leap * total
            for j in range(K):
                if past[j] > 0.0:
                    for p in range(cuts[j], cuts[j + 1]):
                        here[node[p]] += past[j] * share[p]
        total = 0.0
        for k in range(K):
            here[k] *= emission[t, k]
            total += here[k]
        scale[t] = total
        for k in range(K):
            here[k] /= total


@compiled
def _backward(
    emission: FloatArray,
    ends: BoolArray,
    scale: FloatArray,
    weight: FloatArray,
    alpha: FloatArray,
    after: FloatArray,
    cuts: IntArray,
    node: IntArray,
    share: FloatArray,
    leap: float,
    moves: FloatArray,
    jumps: FloatArray,
) -> None:
    """Multiply ``alpha`` by β, and add to ``moves`` and ``jumps``."""
    n, K = emission.shape
    ahead = np.empty(K)
    for t in range(n - 1, -1, -1):
        here, total, mass = alpha[t], 0.0, 0.0
        for k in range(K):
            total += after[k]
            mass += here[k]
        for j in range(K):
            ahead[j] = 0.0
            if here[j] == 0.0:  # its emission is 0, so that nothing asks what comes after it
                continue
            beta = 1.0
            if not ends[t]:
                beta, weighted = leap * total, weight[t] * here[j]
                for p in range(cuts[j], cuts[j + 1]):
                    move = share[p] * after[node[p]]
                    beta += move
                    moves[p] += weighted * move
            here[j] *= beta
            ahead[j] = emission[t, j] * beta / scale[t]
        if not ends[t]:
            jumps[0] += weight[t] * leap * total * mass
        after[:] = ahead


@compiled
def _best_steps(
    log_density: FloatArray,
    begins: BoolArray,
    best: FloatArray,
    log_initial: FloatArray,
    cuts: IntArray,
    node: IntArray,
    log_share: FloatArray,
    log_leap: float,
    came: IntArray,
    tops: IntArray,
) -> None:
    """Fill ``came`` and ``tops``, and write ``best`` over."""
    n, K = log_density.shape
    ahead, top = np.empty(K), 0
    for j in range(1, K):
        if best[j] > best[top]:
            top = j
    for t in range(n):
        if begins[t]:
            ahead[:] = log_initial
            came[t, :] = -1
        else:
            ahead[:] = best[top] + log_leap
            came[t, :] = top
            for j in range(K):
                for p in range(cuts[j], cuts[j + 1]):
                    found, k = best[j] + log_share[p], node[p]
                    if found > ahead[k]:
                        ahead[k] = found
                        came[t, k] = j
        top = 0
        for k in range(K):
            best[k] = ahead[k] + log_density[t, k]
            if best[k] > best[top]:
                top = k
        tops[t] = top
