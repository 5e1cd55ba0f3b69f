"""Nodes with the oriented noise (17) of Chang and Ghosh as a pass over rows reads them, and the sums that it forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.noise.protocol import Groups, Posterior, largest_weight
from prinfold.gtm.noise.tangents import Tangents
from prinfold.gtm.softmax import sound_sums


class OrientedNodes(NamedTuple):
    """Arrays of the nodes for the E-step.

    [t, 1, ‖t‖²/unit] · ``loading`` (1 + Q, D + 2, K) is, first, log p(t | node) without the tangential term and less
    ``constant``, which leaves about zero where a row belongs; then κ Eᵀ(t − y), scaled by κ = √(|c|/2) so that its
    square is the tangential term, to be added with ``sign`` (a number, or (K,)). ``scale`` (K,) is κ. The rest is in
    full precision: ``inverse_across`` and ``inverse_along`` (K,) are 1/B and 1/S, ``log_normalizer`` (K,) −½ log|2πΣ|.
    ``crossed`` says whether the sums are to hold what the gradient needs too.
    """

    loading: FloatArray
    centers: FloatArray
    tangents: Tangents
    sign: Any
    scale: FloatArray
    inverse_across: FloatArray
    inverse_along: FloatArray
    log_normalizer: FloatArray
    constant: float
    unit: float = 1.0
    crossed: bool = False

    @property
    def dimension(self) -> int:
        return len(self.loading) - 1

    @property
    def n_layers(self) -> int:
        return 1 + self.dimension + self.crossed

    def scaled_log_density(self, loaded: FloatArray, near: IntArray | None, work: FloatArray) -> float:
        """log p(t | node): into ``work[0]`` all but a constant, which is returned.

        As the statistics want them, ``work[1]`` and on are left with κEᵀd, or ``work[1]`` with κ²‖Eᵀd‖².
        """
        self._fill(loaded, self.loading if near is None else self.loading[:, :, near], near, work)
        return self.constant

    def log_density(self, loaded: FloatArray, near: IntArray | None, work: FloatArray) -> FloatArray:
        """The same for rows far away: into ``work[0]`` what differs between nodes; returns (n,) the rest.

        −½‖t‖² times what all nodes have of 1/B in common is the row's own, and in the product it would drown the rest.
        """
        loading = np.array(self.loading if near is None else self.loading[:, :, near])
        shared = float(loading[0, -1].max())
        loading[0, -1] -= loading.dtype.type(shared)
        self._fill(loaded, loading, near, work)
        return np.asarray(self.constant + shared * (row_squares(loaded[:, :-2]) / self.unit))

    def _fill(self, loaded: FloatArray, loading: FloatArray, near: IntArray | None, work: FloatArray) -> None:
        sign = self.sign if near is None or np.ndim(self.sign) == 0 else self.sign[near]
        np.matmul(loaded, loading, out=work[: len(loading)])
        for coordinate in work[1 : len(loading)]:
            np.multiply(coordinate, coordinate, out=work[-1] if self.crossed else coordinate)
            if self.crossed:
                _add_signed(work[0], work[-1], sign)
        if not self.crossed:
            for square in work[2:]:
                work[1] += square
            _add_signed(work[0], work[1], sign)

    def empty_sums(self) -> OrientedSums:
        _, n_loaded, K = self.loading.shape
        crossed = np.zeros((self.dimension, n_loaded, K)) if self.crossed else None
        return OrientedSums(self, np.zeros((n_loaded, K)), np.zeros(K), crossed)

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        frame = self.tangents.frame[:, node]
        plain = rng.standard_normal((len(node), self.centers.shape[1]))
        coordinate = np.einsum("qnd,nd->qn", frame, plain)
        across, along = self.inverse_across[node] ** -0.5, self.inverse_along[node] ** -0.5
        inside = np.einsum("qn,qnd->nd", coordinate, frame)
        return np.asarray(self.centers[node] + across[:, None] * plain + (along - across)[:, None] * inside)

    def covariance(self, axes: FloatArray) -> FloatArray:
        along, across = 1.0 / self.inverse_along, 1.0 / self.inverse_across
        inside = self.tangents.frame @ axes
        turned = np.einsum("qka,qkb->kab", inside, inside)
        return np.asarray(across[:, None, None] * (axes.T @ axes) + (along - across)[:, None, None] * turned)


def row_squares(block: FloatArray) -> FloatArray:
    """(n,) ‖t‖², in double precision."""
    return np.asarray(np.einsum("nd,nd->n", block, block, dtype=np.float64))


def _add_signed(total: FloatArray, square: FloatArray, sign: Any) -> None:
    """total += sign · square, in place."""
    if np.ndim(sign):
        total += square * sign
    elif sign > 0:
        total += square
    elif sign < 0:
        total -= square


@dataclass(frozen=True)
class OrientedStatistics:
    """Sums over rows that one step needs; they form a vector space while the ``tangents`` stay the same.

    ``mass`` (K,), ``moment`` (K, D) and ``square`` (K,) are Σ r, Σ r t and Σ r‖t‖²; ``tangential`` (K,) is
    Σ r‖Eᵀd‖² and ``cross`` (K, D, Q), if it was asked for, Σ r d (Eᵀd)ᵀ with d = t − y.
    """

    masses: ClassVar[None] = None

    tangents: Tangents
    mass: FloatArray
    moment: FloatArray
    square: FloatArray
    tangential: FloatArray
    cross: FloatArray | None
    log_likelihood: float
    total: float

    def __add__(self, other: OrientedStatistics) -> OrientedStatistics:
        return OrientedStatistics(
            self.tangents,
            self.mass + other.mass,
            self.moment + other.moment,
            self.square + other.square,
            self.tangential + other.tangential,
            None if self.cross is None or other.cross is None else self.cross + other.cross,
            self.log_likelihood + other.log_likelihood,
            self.total + other.total,
        )

    def scale(self, factor: float) -> OrientedStatistics:
        """All sums times ``factor``."""
        return OrientedStatistics(
            self.tangents,
            factor * self.mass,
            factor * self.moment,
            factor * self.square,
            factor * self.tangential,
            None if self.cross is None else factor * self.cross,
            factor * self.log_likelihood,
            factor * self.total,
        )


class SweptOrientedNodes(NamedTuple):
    """Arrays that sweeps read and add to by node: all with the nodes before the columns, and signs for all nodes."""

    loading: FloatArray
    signs: FloatArray
    products: FloatArray
    tangential: FloatArray
    crossed: FloatArray


@dataclass
class OrientedSums:
    """Running sums over rows.

    ``products`` (D + 2, K) is [T, 1, ‖t‖²]ᵀR, ``crossed`` (Q, D + 2, K) the same with R κEᵀd in place of R, and
    ``tangential`` (K,) is Σ r κ²‖Eᵀd‖²; ‖t‖² is in the unit of the nodes.
    """

    nodes: OrientedNodes
    products: FloatArray
    tangential: FloatArray
    crossed: FloatArray | None
    swept: SweptOrientedNodes | None = None
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(self, loaded: FloatArray, weight: FloatArray | None, posterior: Posterior, near: IntArray | None) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        assert posterior.layers is not None
        ones = np.ones(len(loaded)) if weight is None else weight
        largest = largest_weight(ones)
        share = ((ones / largest) / posterior.total).astype(loaded.dtype, copy=False)
        weighted = (loaded * share[:, None]).T
        chosen = slice(None) if near is None else near
        self.products[:, chosen] += largest * (weighted @ posterior.relative).astype(np.float64, copy=False)
        layers = posterior.layers[: 1 if self.crossed is None else self.nodes.dimension]
        layers *= posterior.relative
        if self.crossed is None:
            self.tangential[chosen] += largest * (share @ layers[0]).astype(np.float64)
        else:
            self.crossed[:, :, chosen] += largest * np.matmul(weighted, layers).astype(np.float64)
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())

    def add_groups(self, loaded: FloatArray, weight: FloatArray | None, groups: Groups) -> None:
        """Log densities, weights and sums of many groups of rows, compiled. ``loaded`` is written over."""
        from prinfold.gtm._e_step_jit import sweep_turned  # loads numba, which small jobs never need

        ones = np.ones(len(loaded)) if weight is None else weight
        largest, log_sum = largest_weight(ones), np.empty(len(loaded))
        sweep_turned(loaded, ones / largest, *groups, largest, sound_sums(loaded.dtype), *self._sweep_sums(), log_sum)
        self.log_likelihood += float(ones @ (log_sum + (self.nodes.constant - np.log(len(self.nodes.centers)))))
        self.total += float(ones.sum())

    def _sweep_sums(self) -> SweptOrientedNodes:
        """The sums in the layout of compiled sweeps, zero at first."""
        if self.swept is None:
            loading = np.ascontiguousarray(np.swapaxes(self.nodes.loading, 1, 2))
            Q, K, C = loading.shape[0] - 1, *loading.shape[1:]
            signs = np.broadcast_to(self.nodes.sign, K).astype(loading.dtype)
            crossed = np.zeros((0 if self.crossed is None else Q, K, C))
            self.swept = SweptOrientedNodes(loading, signs, np.zeros((K, C)), np.zeros(K), crossed)
        return self.swept

    def _add_sweep_sums(self) -> None:
        """Add the sums of compiled sweeps to the others."""
        if self.swept is None:
            return
        self.products += self.swept.products.T
        self.tangential += self.swept.tangential
        if self.crossed is not None:
            self.crossed += np.swapaxes(self.swept.crossed, 1, 2)
        self.swept = None

    def statistics(self) -> OrientedStatistics:
        """The sums so far, without the scale κ."""
        self._add_sweep_sums()
        moment, mass, square = self.products[:-2].T, self.products[-2], self.nodes.unit * self.products[-1]
        tangential, cross = self.tangential / self.nodes.scale**2, None
        if self.crossed is not None:
            crossed = self.crossed / self.nodes.scale  # (Q, D + 2, K): Σ r t u and, in row D, Σ r u
            cross = (
                np.transpose(crossed[:, :-2], (2, 1, 0)) - self.nodes.centers[:, :, None] * crossed[:, -2].T[:, None]
            )
            tangential = np.einsum("qkd,kdq->k", self.nodes.tangents.frame, cross)
        return OrientedStatistics(
            self.nodes.tangents,
            mass.copy(),
            np.ascontiguousarray(moment),
            square,
            np.maximum(tangential, 0.0),
            cross,
            self.log_likelihood,
            self.total,
        )
