"""Oriented noise for rows that are complete, plans and compiled sweeps included.

For the model see :mod:`prinfold.pps.oriented_model`, for other rows :mod:`prinfold.pps.oriented_gaps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.node_bounds import Balls
from prinfold.gtm.noise.protocol import Posterior, largest_weight
from prinfold.gtm.softmax import NATURAL, Exponential, sound_sums
from prinfold.pps.oriented_bounds import turned_bounds
from prinfold.pps.oriented_gaps import OrientedCells
from prinfold.pps.oriented_model import OrientedModel, OrientedParameters
from prinfold.pps.oriented_sums import OrientedNodes, OrientedSums


@dataclass(frozen=True)
class OrientedNoise(OrientedModel):
    """Noise that differs along and across the surface, for rows that are complete."""

    sweeps_all: ClassVar[bool] = True  # several sweeps over a block become one, so that dense passes gain too

    @property
    def n_layers(self) -> int:
        return 1 + self.dimension + self.crossed

    def with_gaps(self) -> OrientedCells:
        return OrientedCells(self.floor, self.clamping, self.dimension, self.crossed)

    def prepare(self, surface: BasisMap, parameters: OrientedParameters, dtype: type = np.float64) -> OrientedNodes:
        """Centres, tangents and constants for a pass over the rows."""
        return self.oriented_nodes(surface, parameters, dtype)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """A block with a column of ones and one of squares."""
        ones = np.ones((len(block), 1), dtype=block.dtype)
        squares = np.minimum(_squares(block) / self.unit, 0.5 * float(np.finfo(block.dtype).max))
        return np.concatenate([block, ones, squares.astype(block.dtype)[:, None]], axis=1)

    def levelled_log_density(
        self, loaded: FloatArray, nodes: OrientedNodes, near: IntArray | None, work: FloatArray
    ) -> float:
        """log p(t | node): into ``work[0]`` all but a constant, which is returned.

        As the statistics want them, ``work[1]`` and on are left with κEᵀd, or ``work[1]`` with κ²‖Eᵀd‖².
        """
        self._fill(loaded, nodes.loading if near is None else nodes.loading[:, :, near], nodes, near, work)
        return nodes.constant

    def exponential(self, dtype: Any) -> Exponential:
        return NATURAL

    def log_density(
        self, loaded: FloatArray, nodes: OrientedNodes, near: IntArray | None, work: FloatArray
    ) -> FloatArray:
        """The same for rows far away: into ``work[0]`` what differs between nodes; returns (n,) the rest.

        −½‖t‖² times what all nodes have of 1/B in common is the row's own, and in the product it would drown the rest.
        """
        loading = np.array(nodes.loading if near is None else nodes.loading[:, :, near])
        shared = float(loading[0, -1].max())
        loading[0, -1] -= loading.dtype.type(shared)
        self._fill(loaded, loading, nodes, near, work)
        return np.asarray(nodes.constant + shared * (_squares(loaded[:, :-2]) / self.unit))

    def _fill(
        self, loaded: FloatArray, loading: FloatArray, nodes: OrientedNodes, near: IntArray | None, work: FloatArray
    ) -> None:
        sign = nodes.sign if near is None or np.ndim(nodes.sign) == 0 else nodes.sign[near]
        np.matmul(loaded, loading, out=work[: len(loading)])
        for coordinate in work[1 : len(loading)]:
            np.multiply(coordinate, coordinate, out=work[-1] if self.crossed else coordinate)
            if self.crossed:
                _add_signed(work[0], work[-1], sign)
        if not self.crossed:
            for square in work[2:]:
                work[1] += square
            _add_signed(work[0], work[1], sign)

    def bound(self, nodes: OrientedNodes, balls: Balls, least: float = -inf) -> FloatArray:
        """(G, K) bounds on log r_k(t), the log responsibility of node k for any row t of a ball of rows."""
        return turned_bounds(nodes, balls)

    def sums(self, nodes: OrientedNodes) -> OrientedSums:
        """Empty sums."""
        _, n_loaded, K = nodes.loading.shape
        crossed = np.zeros((self.dimension, n_loaded, K)) if self.crossed else None
        return OrientedSums(nodes, np.zeros((n_loaded, K)), np.zeros(K), crossed, self.unit)

    def statistics(
        self,
        sums: OrientedSums,
        loaded: FloatArray,
        weight: FloatArray | None,
        posterior: Posterior,
        near: IntArray | None,
    ) -> None:
        """Add a block to the sums. Rows are divided by the sums of their relative weights, not the weights."""
        assert posterior.layers is not None
        ones = np.ones(len(loaded)) if weight is None else weight
        largest = largest_weight(ones)
        share = ((ones / largest) / posterior.total).astype(loaded.dtype, copy=False)
        weighted = (loaded * share[:, None]).T
        chosen = slice(None) if near is None else near
        sums.products[:, chosen] += largest * (weighted @ posterior.relative).astype(np.float64, copy=False)
        layers = posterior.layers[: self.dimension if self.crossed else 1]
        layers *= posterior.relative
        if sums.crossed is None:
            sums.tangential[chosen] += largest * (share @ layers[0]).astype(np.float64)
        else:
            sums.crossed[:, :, chosen] += largest * np.matmul(weighted, layers).astype(np.float64)
        sums.log_likelihood += float(ones @ posterior.log_likelihood)
        sums.total += float(ones.sum())

    def sweep(
        self,
        sums: OrientedSums,
        loaded: FloatArray,
        weight: FloatArray | None,
        nodes: OrientedNodes,
        groups: tuple[IntArray, IntArray, IntArray],
    ) -> None:
        """Log densities, weights and sums of many groups of rows, compiled. ``loaded`` is written over."""
        from prinfold.gtm._e_step_jit import sweep_turned  # loads numba, which small jobs never need

        ones = np.ones(len(loaded)) if weight is None else weight
        largest, log_sum = largest_weight(ones), np.empty(len(loaded))
        sweep_turned(loaded, ones / largest, *groups, largest, sound_sums(loaded.dtype), *sums.sweeping(), log_sum)
        sums.log_likelihood += float(ones @ (log_sum + (nodes.constant - np.log(len(nodes.centres)))))
        sums.total += float(ones.sum())


def _add_signed(total: FloatArray, square: FloatArray, sign: Any) -> None:
    """total += sign · square, in place."""
    if np.ndim(sign):
        total += square * sign
    elif sign > 0:
        total += square
    elif sign < 0:
        total -= square


def _squares(block: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nd,nd->n", block, block, dtype=np.float64))
