"""E-steps and posteriors on a device: the passes of ``e_step`` with every node, for noises that are one matrix product.

With p (D,) the precisions of the columns and y_k the images of the nodes, the part of log p(t | k) that differs between
nodes is t · (p y_k) − ½ Σ p y_k², whose softmax is the posterior of a row, thesis (3.7). What is left of it is the
row's own: −½ Σ p t² + ½ Σ log(p / 2π).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.devices.device import to_numpy
from prinfold.devices.softmax_sums import NodeLoading, node_shares, row_cuts
from prinfold.gtm.e_step import Take
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise, AnyStatistics, OneProduct, Posterior, WholeRowSums
from prinfold.latent import LatentSpace
from prinfold.latent.base import NO_RESULTANT
from prinfold.rows.device_rows import DeviceRows, copy_to_device
from prinfold.rows.rows import Rows

_WORTH_SENDING = 2**20
"""Rows × nodes from which a pass is faster on a device than it takes to get there and back."""

_MOST_NATS = 1e5
"""Mean of ½ Σ p t² up to which single precision tells log densities apart by a hundredth of a nat."""


def device_pass(noise: AnyNoise, rows: Rows, nodes: AnyNodes) -> DevicePass | None:
    """A pass on the device that rows have; None where it does not pay, is not exact enough, or the noise has none."""
    formula = noise.capabilities.one_product
    if formula is None or rows.gaps or rows.errors is not None:
        return None
    if rows.n_rows * len(nodes.centers) < _WORTH_SENDING:
        return None
    found = DevicePass(noise, rows, nodes, formula)
    return found if found.mean_nats <= _MOST_NATS else None


class DevicePass:
    """Every row with every node, on the device of the rows."""

    def __init__(self, noise: AnyNoise, rows: Rows, nodes: AnyNodes, formula: OneProduct[Any, Any]) -> None:
        self.noise, self.rows, self.nodes, self.formula = noise, rows, nodes, formula
        self.precisions = formula.precisions(nodes)

    @property
    def placed(self) -> DeviceRows:
        """The rows there."""
        return copy_to_device(self.rows)

    @cached_property
    def mean_nats(self) -> float:
        """½ Σ p t² of a row in the mean: how large the numbers are whose differences count."""
        return float(0.5 * self.precisions @ self.placed.squares / self.placed.total)

    def sums(self) -> AnyStatistics:
        """The sums of an E-step."""
        placed = self.placed
        with placed.device.memory_named():
            found = placed.device.sums(placed.device.xp, placed.table, placed.weight, self._loading)
            mass, moment, log_sum = map(placed.device.total, found)
        own = placed.total * self._constant - 0.5 * float(self.precisions @ placed.squares)
        sums = WholeRowSums(mass, np.ascontiguousarray(moment.T), placed.squares, float(log_sum) + own, placed.total)
        statistics: AnyStatistics = self.formula.statistics(sums)
        return statistics

    def visit(self, take: Take) -> None:
        """Hand all rows to ``take`` with their posterior, which comes here some rows at a time."""
        for some, share, log_sum in self._shares():
            loaded = self.noise.load(self.rows.block(some), None)
            log_likelihood = to_numpy(log_sum).astype(np.float64) + self._row_constants(some)
            take(some, loaded, Posterior(to_numpy(share), np.ones(len(loaded)), log_likelihood), None, self.nodes)

    def log_likelihood(self) -> FloatArray:
        """(n,) log p(t)."""
        found = np.empty(self.rows.n_rows)
        for some, _, log_sum in self._shares():
            found[some] = to_numpy(log_sum) + self._row_constants(some)
        return found

    def mean(self, latent: LatentSpace) -> FloatArray:
        """(n, Q) posterior mean of places, the embedded one projected back; where that points nowhere, the mode."""
        device, mean = self.placed.device, np.empty((self.rows.n_rows, latent.n_embedded))
        embedded = device.put(latent.embed(latent.nodes))
        for some, share, _ in self._shares():
            mean[some] = to_numpy(device.xp.matmul(share, embedded))
        Z, resultant = latent.unembed(mean)
        lost = resultant < NO_RESULTANT
        if lost.any():
            Z[lost] = self.mode(latent)[lost]
        return Z

    def mode(self, latent: LatentSpace) -> FloatArray:
        """(n, Q) the place with the largest posterior weight."""
        found: IntArray = np.empty(self.rows.n_rows, dtype=np.intp)
        for some, share, _ in self._shares():
            found[some] = to_numpy(self.placed.device.xp.argmax(share, axis=1))
        return np.asarray(latent.nodes[found])

    def _shares(self) -> Any:
        """Slices of rows, each with its responsibilities and log-sums on the device."""
        placed = self.placed
        with placed.device.memory_named():
            for some in row_cuts(self.rows.n_rows, len(self.nodes.centers)):
                yield some, *node_shares(placed.device.xp, placed.table[some, :], self._loading)

    @cached_property
    def _loading(self) -> NodeLoading:
        scaled = self.nodes.centers * self.precisions
        put = self.placed.device.put
        return NodeLoading(put(scaled.T), put(-0.5 * np.einsum("kd,kd->k", scaled, self.nodes.centers)))

    @cached_property
    def _constant(self) -> float:
        """½ Σ log(p / 2π) − log K."""
        return float(0.5 * np.log(self.precisions / (2 * np.pi)).sum() - np.log(len(self.nodes.centers)))

    def _row_constants(self, some: slice) -> FloatArray:
        """(n,) what is the rows' own of their log-likelihoods, in double precision."""
        block = self.rows.block(some).astype(self.placed.device.dtype).astype(np.float64)
        return np.asarray(self._constant - 0.5 * np.square(block) @ self.precisions)
