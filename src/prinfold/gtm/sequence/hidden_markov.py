"""Forward, backward and best paths of a hidden Markov chain whose steps are short, but for jumps to anywhere.

The E-step of GTM through time, thesis 7.4: the scaled passes of Rabiner (1989), with transitions of a form of our own.

A chain over K nodes is at node j and goes to one of the few nodes near it with probabilities ``share``, or jumps to any
node with probability ``leap`` each:

    p(k | j) = share_jk + leap,        Σ_k share_jk + K leap = 1,        share_jk = 0 unless k is near j.

Nodes near j are ``node[cuts[j]:cuts[j + 1]]``, with as many shares. What jumps do needs only the sum over all nodes,
so that a step costs as many operations as there are pairs of near nodes, not K².

Rows of ``emission`` (n, K) are p(t | node) relative to the largest of each row: logarithms are taken apart before and
put together after, and every step is divided by its own sum, so that nothing overflows. Nor does a sum vanish: the node
with the largest emission is reached with a probability of ``leap`` at least.

This is the plain form of every pass, to which the compiled one is held
(:mod:`prinfold.gtm.sequence._hidden_markov_jit`); it also serves jobs that are too small to wait for a compiler.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from prinfold._typing import BoolArray, FloatArray, IntArray

LOST = 1e-12
"""Largest share of a sequence's likelihood that the emissions left out of a row may hold; so is the loss in nats."""


class ChainSteps(NamedTuple):
    """Transition probabilities as in the head of this file; ``initial`` (K,) are those of the first node."""

    initial: FloatArray
    cuts: IntArray
    node: IntArray
    share: FloatArray
    leap: float

    @property
    def least(self) -> float:
        """Relative emissions below this are left out.

        Of paths that are alike but for one row, those that are at such a node there have at most this together, while
        the one that jumps to the node of the largest emission and from there to where it went on has leap², or at the
        beginning π leap, at least.
        """
        return LOST * self.leap * min(self.leap, float(self.initial.min()))

    def matrix(self) -> csr_matrix:
        """(K, K) shares; row j holds those of the steps from node j."""
        K = len(self.initial)
        return csr_matrix((self.share, self.node, self.cuts), shape=(K, K))


def relative_emissions(log_density: FloatArray, least: float) -> FloatArray:
    """Turn (n, K) log densities into emissions relative to the largest of each row, in place; returns that, (n,).

    Emissions below ``least`` become 0.
    """
    largest = log_density.max(axis=1)
    log_density -= largest[:, None]
    np.exp(log_density, out=log_density)
    log_density[log_density < least] = 0.0
    return np.asarray(largest)


def forward(
    emission: FloatArray, begins: BoolArray, before: FloatArray, steps: ChainSteps
) -> tuple[FloatArray, FloatArray]:
    """(n, K) p(node | row and all before it in its sequence), and (n,) p(row | those before), relative as emissions.

    ``begins`` marks rows that begin a sequence; ``before`` (K,) is what the row before the first came to.
    """
    shares = steps.matrix().T.tocsr()
    alpha, scale = np.empty_like(emission), np.empty(len(emission))
    for t in range(len(emission)):
        ahead = steps.initial if begins[t] else shares @ before + steps.leap * before.sum()
        np.multiply(ahead, emission[t], out=alpha[t])
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
        before = alpha[t]
    return alpha, scale


class Counts(NamedTuple):
    """Sums of a backward pass: expected ``moves`` (P,) along each pair of near nodes, and ``jumps`` (1,)."""

    moves: FloatArray
    jumps: FloatArray


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
    """Turn the result of ``forward`` into (n, K) p(node | the whole sequence), in place, and add to the counts.

    ``ends`` marks rows that end a sequence. ``after`` (K,) is what the rows after the last one say, emission × β
    / scale of the next; it is written over with the same of the first row, for the rows before.
    """
    shares = steps.matrix()
    source = np.repeat(np.arange(len(steps.initial)), np.diff(steps.cuts))
    for t in range(len(emission) - 1, -1, -1):
        beta = np.ones(len(after))
        if not ends[t]:
            jumping = steps.leap * after.sum()
            beta = shares @ after + jumping
            counts.moves[:] += weight[t] * alpha[t][source] * steps.share * after[steps.node]
            counts.jumps[0] += weight[t] * jumping * alpha[t].sum()
        after[:] = emission[t] * beta / scale[t]
        alpha[t] *= beta


def best_steps(
    log_density: FloatArray, begins: BoolArray, best: FloatArray, steps: ChainSteps
) -> tuple[IntArray, IntArray]:
    """(n, K) from which node the likeliest path to each node of a row comes, and (n,) the likeliest node so far.

    ``best`` (K,) are the log probabilities of the likeliest paths up to the row before the first; it is written over
    with those up to the last. In rows that begin a sequence, paths come from nowhere: −1.
    """
    K = len(best)
    source = np.repeat(np.arange(K), np.diff(steps.cuts))
    log_share, log_leap = np.log(steps.share + steps.leap), np.log(steps.leap)
    came, tops = np.empty(log_density.shape, dtype=np.int32), np.empty(len(log_density), dtype=np.int32)
    for t in range(len(log_density)):
        if begins[t]:
            best[:], came[t] = np.log(steps.initial), -1
        else:
            top, found = int(best.argmax()), best[source] + log_share
            came[t], ahead = top, np.full(K, best[top] + log_leap)
            order = np.lexsort((found, steps.node))  # the best of each node comes last, and stays
            chosen = order[found[order] > ahead[steps.node[order]]]
            came[t, steps.node[chosen]], ahead[steps.node[chosen]] = source[chosen], found[chosen]
            best[:] = ahead
        best += log_density[t]
        tops[t] = best.argmax()
    return came, tops


def trace(came: IntArray, ends: BoolArray, tops: IntArray) -> IntArray:
    """(n,) nodes of the likeliest paths, backwards; in rows that ``ends`` marks a path ends at the node in ``tops``."""
    path = np.empty(len(came), dtype=np.int32)
    for t in range(len(came) - 1, -1, -1):
        path[t] = tops[t] if ends[t] else came[t + 1, path[t + 1]]
    return path
