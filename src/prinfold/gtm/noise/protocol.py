"""Noise models of the GTM family: how data scatter about the surface.

A noise model has a handful of verbs. ``prepare`` turns parameters into what the rows of a block need of the
nodes; ``log_density`` gives log p(t | node) for a block; ``statistics`` adds it to the ``sums`` that the
M-step needs; ``m_step`` turns sums into parameters; ``draw`` makes rows. One that also has ``bound`` can leave out
nodes that do not matter; one that has ``levelled_log_density`` saves the search for each row's largest weight. A new
noise is a new class: nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.gtm.node_bounds import Balls
from prinfold.gtm.penalties import Penalty
from prinfold.gtm.softmax import Exponential


class Posterior(NamedTuple):
    """Posterior weights and log-likelihoods of a block of rows.

    ``relative`` (n, K) are weights up to a factor of each row's own, ``total`` (n,) their sums, and
    ``log_likelihood`` (n,) is log p(t). ``layers`` holds what else the noise computed on the way, if anything.
    """

    relative: FloatArray
    total: FloatArray
    log_likelihood: FloatArray
    layers: FloatArray | None = None


@dataclass(frozen=True)
class Parameters:
    """Parameters that training changes: weights (M, D) of the map about the data's centre, and noise precision β."""

    weights: FloatArray
    precision: Any

    @property
    def level(self) -> float:
        """One number for the precision, where nodes or columns have precisions of their own too."""
        return float(self.precision)

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        """Penalty, to be taken off the log-likelihood."""
        return penalty.value(self.level, surface.roughness(self.weights))


@storable
@dataclass(frozen=True)
class Statistics:
    """Sums over rows that one M-step needs. They form a vector space: ``+`` joins blocks, ``scale`` forgets.

    ``mass`` (K,) is the diagonal of G (3.14), ``moment`` (K, D) is RᵀT, ``square`` is Σ w‖t‖²,
    ``log_likelihood`` is Σ w log p(t) and ``total`` is Σ w, all under the parameters of the E-step.
    """

    mass: FloatArray
    moment: FloatArray
    square: float
    log_likelihood: float
    total: float

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.mass + other.mass,
            self.moment + other.moment,
            self.square + other.square,
            self.log_likelihood + other.log_likelihood,
            self.total + other.total,
        )

    def scale(self, factor: float) -> Statistics:
        """All sums times ``factor``."""
        return Statistics(
            factor * self.mass,
            factor * self.moment,
            factor * self.square,
            factor * self.log_likelihood,
            factor * self.total,
        )


class Nodes(Protocol):
    """Nodes as some noise wants them; to everybody else they are only as many."""

    @property
    def centres(self) -> FloatArray:
        """(K, D) images of the nodes."""


class Sums(Protocol):
    """Sums under way, in whatever form a noise adds up fastest."""

    def statistics(self) -> Any:
        """The sums so far."""


class Noise(Protocol):
    """The verbs of a noise model; see the head of this file."""

    @property
    def floor(self) -> float:
        """Smallest variance allowed."""

    @property
    def n_layers(self) -> int:
        """Numbers per row and node that ``log_density`` needs room for."""

    def first(self, weights: FloatArray, precision: float) -> Parameters:
        """Parameters to begin with, of a surface and an overall noise level."""

    def pooled(self, parameters: Any) -> Parameters:
        """The same with one noise for all nodes, so that it fits any number of them."""

    def prepare(self, surface: BasisMap, parameters: Any, dtype: type) -> Any:
        """Nodes as a pass over the rows needs them."""

    def with_gaps(self) -> Any:
        """A noise of the same parameters that takes rows with missing cells and with errors of their own."""

    def floored(self, parameters: Any) -> bool:
        """Whether a variance has shrunk to its floor."""

    def keep(self, parameters: Any) -> dict[str, Any]:
        """Fitted attributes of the noise beside its level: numbers and arrays by name."""

    def recall(self, weights: FloatArray, variance: float, kept: dict[str, Any]) -> Any:
        """Parameters of what was kept; a ValueError where it does not fit."""

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> Any:
        """A block as ``log_density`` and ``statistics`` want it, of which it has the length."""

    def log_density(self, loaded: Any, nodes: Any, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): into ``work[0]`` what differs between nodes; returns (n,) the rest."""

    def sums(self, nodes: Any) -> Any:
        """Empty sums."""

    def statistics(
        self, sums: Any, loaded: Any, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Add a block to the sums."""

    def m_step(self, surface: BasisMap, sums: Any, penalty: Penalty, parameters: Any) -> Any:
        """New parameters from the sums of all rows."""

    def stretched(self, old: Any, new: Any, factor: float) -> Any:
        """The step from ``old`` to ``new``, ``factor`` times as far."""

    def draw(self, surface: BasisMap, parameters: Any, node: IntArray, rng: np.random.Generator) -> FloatArray:
        """(n, D) one row from each node named."""

    def covariance(self, surface: BasisMap, parameters: Any, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D, a)."""


class GappyNoise(Noise, Protocol):
    """A noise that takes missing cells, and so can tell what they may have been."""

    def complete(
        self, loaded: Any, posterior: Posterior, nodes: Any, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if none of them were measured."""


class FactoredNoise(Noise, Protocol):
    """A noise in which rows have factors."""

    @property
    def n_factors(self) -> int:
        """Factors of a row."""

    def factor_means(self, loaded: Any, posterior: Posterior, nodes: Any) -> FloatArray:
        """(n, q) expectation of the factors of each row."""


class BoundedNoise(Noise, Protocol):
    """A noise that can tell which nodes do not matter to a ball of rows."""

    def bound(self, nodes: Any, balls: Balls, least: float) -> FloatArray:
        """(G, K) bounds on the log responsibility of each node for any row of each ball.

        Below ``least`` it does not matter how low they are.
        """


class LevelledNoise(Noise, Protocol):
    """A noise whose log densities need no search for each row's largest: they lie near zero by themselves."""

    def levelled_log_density(
        self, loaded: FloatArray, nodes: Any, near: IntArray | None, work: FloatArray
    ) -> float | FloatArray:
        """log p(t | node): into ``work[0]`` all but a constant of all rows or of each, which is returned as it is."""

    def exponential(self, dtype: Any) -> Exponential:
        """The exponential that undoes those logarithms, and so their unit."""


class SweepingNoise(Noise, Protocol):
    """A noise that takes many groups of rows, each with its own nodes, in one compiled call."""

    def sweep(
        self,
        sums: Any,
        loaded: FloatArray,
        weight: FloatArray | None,
        nodes: Any,
        groups: tuple[IntArray, IntArray, IntArray],
    ) -> None:
        """Add all groups to the sums."""


class WeighingNoise(Noise, Protocol):
    """A noise that weighs many groups of rows, each with its own nodes, in one compiled call."""

    def by_node(self, nodes: Any) -> Any:
        """The nodes as ``weigh`` reads them, made once for all groups of a pass."""

    def weigh(
        self, loaded: FloatArray, nodes: Any, loading: Any, groups: tuple[IntArray, IntArray, IntArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (n, k) of all groups, one after another, (n,) their sums and (n,) log Σ p(t | node)."""


class PairedNoise(Noise, Protocol):
    """A noise that takes pairs of a row and a cell of points, whichever cells each row has."""

    def by_cell(self, nodes: Any, per_cell: int) -> FloatArray | None:
        """Points that are numbered cell by cell, as ``paired_log_density`` reads them; None where pairs do not pay."""

    def paired_log_density(self, loaded: Any, points: FloatArray, row: IntArray, cell: IntArray) -> FloatArray:
        """(P, M) what differs between points of log p(t | point), for the points of a cell in each pair."""


def largest_weight(weight: FloatArray) -> float:
    """By which weights are divided meanwhile: a block may be in single precision, which holds none of 1e-46."""
    return float(weight.max()) or 1.0


def in_words(noise: Any) -> str:
    """The name of a noise in the words of users."""
    return str(getattr(noise, "words", type(noise).__name__))


def positive_array(kept: dict[str, Any], name: str, shape: tuple[int, ...]) -> FloatArray:
    """A stored array of a noise: finite numbers above zero of a given shape, or a ValueError."""
    found = np.asarray(kept.get(name))
    if found.dtype.kind != "f" or found.shape != shape or not np.isfinite(found).all() or not (found > 0).all():
        raise ValueError(f"{name} of the noise, finite and above zero, of shape {shape}")
    return found
