"""Nodes with oriented noise as a pass over rows reads them, and the sums that it adds up for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm.noise.tangents import Tangents


class OrientedNodes(NamedTuple):
    """Nodes as the E-step wants them.

    [t, 1, ‖t‖²/unit] · ``loading`` (1 + Q, D + 2, K) is, first, log p(t | node) without the tangential term and less
    ``constant``, which leaves about zero where a row belongs; then κ Eᵀ(t − y), scaled by κ = √(|c|/2) so that its
    square is the tangential term, to be added with ``sign`` (a number, or (K,)). ``scale`` (K,) is κ. The rest is in
    full precision: ``inverse_across`` and ``inverse_along`` (K,) are 1/B and 1/S, ``log_normaliser`` (K,) −½ log|2πΣ|.
    """

    loading: FloatArray
    centres: FloatArray
    tangents: Tangents
    sign: Any
    scale: FloatArray
    inverse_across: FloatArray
    inverse_along: FloatArray
    log_normaliser: FloatArray
    constant: float


@dataclass(frozen=True)
class OrientedStatistics:
    """Sums over rows that one step needs; they form a vector space while the ``tangents`` stay the same.

    ``mass`` (K,), ``moment`` (K, D) and ``square`` (K,) are Σ r, Σ r t and Σ r‖t‖²; ``tangential`` (K,) is
    Σ r‖Eᵀd‖² and ``cross`` (K, D, Q), if it was asked for, Σ r d (Eᵀd)ᵀ with d = t − y.
    """

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
    """Sums under way.

    ``products`` (D + 2, K) is [T, 1, ‖t‖²]ᵀR, ``crossed`` (Q, D + 2, K) the same with R κEᵀd in place of R, and
    ``tangential`` (K,) is Σ r κ²‖Eᵀd‖²; ‖t‖² is in units of ``unit``.
    """

    nodes: OrientedNodes
    products: FloatArray
    tangential: FloatArray
    crossed: FloatArray | None
    unit: float
    swept: SweptOrientedNodes | None = None
    log_likelihood: float = 0.0
    total: float = 0.0

    def sweeping(self) -> SweptOrientedNodes:
        """The sums as sweeps want them, empty at first."""
        if self.swept is None:
            loading = np.ascontiguousarray(np.swapaxes(self.nodes.loading, 1, 2))
            Q, K, C = loading.shape[0] - 1, *loading.shape[1:]
            signs = np.broadcast_to(self.nodes.sign, K).astype(loading.dtype)
            crossed = np.zeros((0 if self.crossed is None else Q, K, C))
            self.swept = SweptOrientedNodes(loading, signs, np.zeros((K, C)), np.zeros(K), crossed)
        return self.swept

    def _take_in(self) -> None:
        """Add what sweeps have gathered to the rest."""
        if self.swept is None:
            return
        self.products += self.swept.products.T
        self.tangential += self.swept.tangential
        if self.crossed is not None:
            self.crossed += np.swapaxes(self.swept.crossed, 1, 2)
        self.swept = None

    def statistics(self) -> OrientedStatistics:
        """The sums so far, rid of the scale κ."""
        self._take_in()
        moment, mass, square = self.products[:-2].T, self.products[-2], self.unit * self.products[-1]
        tangential, cross = self.tangential / self.nodes.scale**2, None
        if self.crossed is not None:
            crossed = self.crossed / self.nodes.scale  # (Q, D + 2, K): Σ r t u and, in row D, Σ r u
            cross = (
                np.transpose(crossed[:, :-2], (2, 1, 0)) - self.nodes.centres[:, :, None] * crossed[:, -2].T[:, None]
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
