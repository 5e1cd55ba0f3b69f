"""Frozen responsibilities: between full visits of a block only the large ones are found anew (thesis 6.6).

At a full visit the responsibilities of a row are divided in two: the large ones, A, which hold a share Q of at least
1 − freeze of them, and the rest, which are frozen. Until the next full visit

    r_k = Q p(t | k) / Σ_A p(t | j)   for k in A,        all others stay as they are.

This is Neal & Hinton's sparse EM: the free energy never falls, and only the nodes in A are looked at. Rows that lie
close together share their A, so that they can be computed together. As the log-likelihood of a row stands
ln Σ_A p(t, j) − ln Q for the time being: what it was at the full visit, and what it would be if what is frozen had kept
its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm import model as gtm
from prinfold.gtm.e_step import Pass
from prinfold.gtm.node_selection import Part, RowBatch, entries, fastest_parts, grouped
from prinfold.gtm.noise.protocol import AnyNoise, AnyStatistics, Parameters, Posterior, in_words
from prinfold.rows.rows import Rows, sum_through


class Frozen(NamedTuple):
    """Result of a full visit: parts to be found anew, the share (n,) of a row that lies there, and all other sums."""

    parts: Sequence[Part | RowBatch]
    share: FloatArray
    statistics: AnyStatistics


def refuse_unsplit(noise: AnyNoise) -> None:
    """Raise an error for a noise with factors, whose sums are found for all nodes at once."""
    if noise.capabilities.factors is not None:
        raise InvalidParameterError(
            f"Incremental(freeze=…) does not go with {in_words(noise)}, whose sums are found for all nodes at once; "
            "leave freeze at 0"
        )


def freeze(model: gtm.GTMModel, rows: Rows, parameters: Parameters, most: float) -> tuple[AnyStatistics, Frozen]:
    """The sums of a block, and its frozen part: the smallest responsibilities, up to ``most`` of each row."""
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    groups, parts = grouped(model.surface, model.noise, nodes, rows, parameters.weights)
    share = np.ones(rows.n_rows)
    active: list[Part] = list(parts)
    sizes = entries(parts, len(nodes.centers))
    make = partial(_Divider, model.noise, rows, nodes, most, share, active)
    found = sum_through(make, list(enumerate(parts)), sizes, gtm.ROWS_PER_SUM * len(nodes.centers))
    return found.large + found.small, Frozen(fastest_parts(groups, active), share, found.small)


@dataclass(frozen=True)
class _DividedSums:
    """Sums of the large responsibilities of some rows, and of the others."""

    large: AnyStatistics
    small: AnyStatistics

    def __add__(self, other: _DividedSums) -> _DividedSums:
        return _DividedSums(self.large + other.large, self.small + other.small)


class _Divider(Pass):
    """Divides the responsibilities of parts in two, and adds up both; fills in which are large and their share."""

    def __init__(
        self, noise: AnyNoise, rows: Rows, nodes: Any, most: float, share: FloatArray, active: list[Part]
    ) -> None:
        super().__init__(noise, rows, nodes)
        self.most, self.share, self.active = most, share, active
        self.large, self.small = nodes.empty_sums(), nodes.empty_sums()

    def add(self, numbered: tuple[int, Part]) -> None:
        g, part = numbered
        some, near = part.rows, part.near
        assert near is not None
        loaded, posterior = self.posterior(part)
        kept = _large(posterior, self.most)
        others = np.delete(np.arange(len(near)), kept)
        given = self.rows.block_weight(some)
        weight = np.ones(len(loaded)) if given is None else given
        held = _restrict_to(posterior, kept)
        share = held.total / posterior.total if len(others) else np.ones(len(loaded))
        self.active[g], self.share[some] = Part(some, near[kept]), share
        self.large.add(loaded, weight * share, held, near[kept])
        if len(others):
            self.small.add(loaded, weight * (1.0 - share), _restrict_to(posterior, others), near[others])

    def take_sum(self) -> _DividedSums:
        found = _DividedSums(self.large.statistics(), self.small.statistics())
        self.large, self.small = self.nodes.empty_sums(), self.nodes.empty_sums()
        return found


def sum_with_frozen(model: gtm.GTMModel, rows: Rows, parameters: Parameters, frozen: Frozen) -> AnyStatistics:
    """The sums of a block of which only the large responsibilities are found anew."""
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    found: Any = gtm.sum_parts(model, replace(rows, weight=weight * frozen.share), nodes, frozen.parts)
    lacking = float(weight @ xlogy(frozen.share, frozen.share))
    total: AnyStatistics = replace(found, log_likelihood=found.log_likelihood - lacking) + frozen.statistics
    return total


def _large(posterior: Posterior, most: float) -> IntArray:
    """Nodes that are large for some row of a part; for none of them do the others hold more than ``most``.

    What is below an even share of that can be left out together, so that few are sorted.
    """
    weight = posterior.relative / posterior.total[:, None]
    some = np.flatnonzero((weight > most / weight.shape[1]).any(axis=0))
    weight = weight[:, some].astype(np.float64, copy=False)
    order = np.sort(weight, axis=1)
    left_out = np.cumsum(order, axis=1) + np.maximum(1.0 - weight.sum(axis=1, keepdims=True), 0.0)
    n_small = np.minimum((left_out <= most).sum(axis=1), len(some) - 1)
    least = order[np.arange(len(order)), n_small]
    return np.asarray(some[(weight >= least[:, None]).any(axis=0)])


def _restrict_to(posterior: Posterior, kept: IntArray) -> Posterior:
    """The posterior among some nodes only; the log-likelihood stays that of all."""
    relative = posterior.relative[:, kept]
    total = relative.sum(axis=1, dtype=np.float64)
    layers = None if posterior.layers is None else posterior.layers[:, :, kept]
    return Posterior(relative, np.where(total > 0, total, 1.0), posterior.log_likelihood, layers)
