"""Oriented noise: one variance along the surface, another across it (Chang & Ghosh, 17).

With E the orthonormal tangents of a node, S the variance along and B the variance across,

    Σ = B I + (S − B) E Eᵀ,   |Σ| = S^Q B^(D−Q),   Σ⁻¹ = I/B − c E Eᵀ,   c = 1/B − 1/S         (22)–(24)

so that no D×D matrix is ever needed: −½ dᵀΣ⁻¹d = −‖d‖²/2B + ½ c ‖Eᵀd‖² is one product with the centres and
one with each tangent. How S and B follow from the data is up to a *clamping*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.protocol import Parameters, Precision
from prinfold.gtm.noise.tangents import tangents
from prinfold.gtm.penalties import Penalty
from prinfold.pps.clamping import Clamping, Fixed, TangentMoments
from prinfold.pps.oriented_sums import OrientedNodes, OrientedStatistics


@dataclass(frozen=True)
class OrientedParameters(Parameters):
    """Weights, and the noise: its variance is ``along``/β in tangents and ``across``/β in normals.

    All three are numbers where the nodes share them, (K,) arrays where each has its own.
    """

    along: Any
    across: Any
    clamping: Clamping = field(default=Fixed(1.0, 1.0), kw_only=True)

    @property
    def level(self) -> float:
        return float(np.mean(self.precision))

    def extrapolate(self, new: Self, factor: float) -> Self:
        """The step from here to ``new``, ``factor`` times as far; the noise by logarithms."""
        along, across = new.clamping.extrapolate((self.along, self.across), (new.along, new.across), factor)
        return replace(super().extrapolate(new, factor), along=along, across=across)

    def pooled(self) -> Self:
        """One noise for all nodes, by the means of the variances."""
        if np.ndim(self.precision) == 0 and np.ndim(self.along) == 0:
            return self
        variance = np.broadcast_to(1.0 / np.asarray(self.precision), np.shape(self.along))
        mean = float(variance.mean())
        along, across = (float(np.mean(variance * each)) / mean for each in (self.along, self.across))
        return replace(self, precision=1.0 / mean, along=along, across=across)

    def to_arrays(self) -> dict[str, Any]:
        return {"along": self.along, "across": self.across}


@dataclass(frozen=True)
class OrientedModel:
    """Gaussian noise whose variance differs along and across the surface, whatever the rows.

    ``floor`` is the smallest variance allowed; ``clamping`` decides on the two variances; with ``crossed`` the
    statistics hold what the gradient needs too, at the price of Q more products in a pass. ``n_columns`` is D where
    rows and surface are given in a frame of their span, of fewer columns; None where they have all of them.
    """

    floor: float
    clamping: Clamping
    dimension: int
    crossed: bool = False
    n_columns: int | None = None

    @property
    def unit(self) -> float:
        """Unit of squared lengths, about a column's variance: without it they may leave the range of single precision.

        A power of 2, so that no digit changes.
        """
        return float(2.0 ** (round(np.log2(self.floor)) + 20))

    def initial(self, weights: FloatArray, precision: Precision) -> OrientedParameters:
        return self._make_parameters(weights, precision, *self.clamping.first())

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> OrientedParameters:
        return self._make_parameters(weights, 1.0 / variance, arrays["along"], arrays["across"])

    def _make_parameters(
        self, weights: FloatArray, precision: Precision, along: Precision, across: Precision
    ) -> OrientedParameters:
        limits: dict[str, Any] = {"clamping": self.clamping, "ceiling": 1.0 / self.floor}
        return OrientedParameters(weights, precision, along, across, **limits)

    def oriented_nodes(
        self, surface: BasisMap, parameters: OrientedParameters, dtype: type = np.float64
    ) -> OrientedNodes:
        """Centres, tangents and constants of the nodes."""
        centers = surface.nodes(parameters.weights)
        frame = tangents(surface, parameters.weights)
        K, own = centers.shape
        D = self.n_columns or own
        inverse_along = np.broadcast_to(parameters.precision / np.asarray(parameters.along, dtype=float), K)
        inverse_across = np.broadcast_to(parameters.precision / np.asarray(parameters.across, dtype=float), K)
        contrast = inverse_across - inverse_along
        scale = np.sqrt(0.5 * np.where(contrast == 0, inverse_across, np.abs(contrast)))
        log_normalizer = frame.rank * np.log(inverse_along) + (D - frame.rank) * np.log(inverse_across)
        log_normalizer = 0.5 * (log_normalizer - D * np.log(2 * np.pi))
        # For a row that the model explains dᵀΣ⁻¹d is about D at the nodes that matter, so that this leaves about zero.
        constant = float(log_normalizer.mean()) - 0.5 * D
        loading = np.zeros((1 + self.dimension, own + 2, K))
        loading[0, :own] = (inverse_across[:, None] * centers).T
        loading[0, own] = -0.5 * inverse_across * np.einsum("kd,kd->k", centers, centers) + log_normalizer - constant
        loading[0, own + 1] = -0.5 * self.unit * inverse_across
        loading[1:, :own] = np.swapaxes(scale[:, None] * frame.frame, 1, 2)
        loading[1:, own] = -scale * np.einsum("qkd,kd->qk", frame.frame, centers)
        sign = np.sign(contrast)
        sign = float(sign[0]) if (sign == sign[0]).all() else sign.astype(dtype)
        ready: FloatArray = loading.astype(dtype)
        constants = scale, inverse_across, inverse_along, log_normalizer, constant
        return OrientedNodes(ready, centers, frame, sign, *constants, self.unit, self.crossed)

    def m_step(
        self, surface: BasisMap, sums: OrientedStatistics, penalty: Penalty, parameters: OrientedParameters
    ) -> OrientedParameters:
        """The GTM's weights, then the noise with those weights as far as the same sums tell.

        This is the approximation of the paper's experiments: it can lower the objective.
        """
        moved = self.with_weights(surface, sums, penalty, parameters)
        return self.with_noise(surface, sums, penalty, moved, parameters)

    def with_weights(
        self, surface: BasisMap, sums: OrientedStatistics, penalty: Penalty, parameters: OrientedParameters
    ) -> OrientedParameters:
        """``parameters`` with the GTM's new weights, as if the noise were isotropic."""
        relative = np.broadcast_to(np.asarray(parameters.precision) / parameters.level, len(sums.mass))
        strength = penalty.strength(parameters.level)
        weights = surface.solve(relative * sums.mass, relative[:, None] * sums.moment, strength, parameters.weights)
        return replace(parameters, weights=weights)

    def with_noise(
        self,
        surface: BasisMap,
        sums: OrientedStatistics,
        penalty: Penalty,
        new: OrientedParameters,
        old: OrientedParameters,
    ) -> OrientedParameters:
        """``new`` with the noise that is best for its weights, were the tangents still those of ``old``.

        ``old`` is what the sums were taken with. Where it is ``new`` itself, this is an M-step for the noise.
        """
        moments = self.moments(surface, sums, new.weights, old.weights)
        tie = penalty.tie(surface.roughness(new.weights))
        precision, along, across = self.clamping.update(moments, tie, self.floor, old.precision)
        return self._make_parameters(new.weights, precision, along, across)

    def moments(self, surface: BasisMap, sums: OrientedStatistics, new: FloatArray, old: FloatArray) -> TangentMoments:
        """Weighted squares of the residuals from new centres, in all and along the old tangents, node by node.

        With δ the way from the old centres to the new, ‖Eᵀ(d − δ)‖² sums to Σ r‖Eᵀd‖² − 2 Eᵀδ·Σ r Eᵀd + g‖Eᵀδ‖².
        """
        frame = sums.tangents
        before, centers = surface.nodes(old), surface.nodes(new)
        length = np.einsum("kd,kd->k", centers, centers)
        whole = sums.square - 2 * np.einsum("kd,kd->k", centers, sums.moment) + sums.mass * length
        moved = np.einsum("qkd,kd->qk", frame.frame, centers - before)
        pull = np.einsum("qkd,kd->qk", frame.frame, sums.moment - sums.mass[:, None] * before)
        tangential = sums.tangential - 2 * np.einsum("qk,qk->k", moved, pull)
        tangential += sums.mass * np.einsum("qk,qk->k", moved, moved)
        whole = np.maximum(whole, 0.0)
        n_columns = self.n_columns or centers.shape[1]
        return TangentMoments(sums.mass, frame.rank, whole, np.clip(tangential, 0.0, whole), n_columns)


def noise_of_nodes(parameters: OrientedParameters, node: IntArray) -> OrientedParameters:
    """The parameters for other nodes, each of which has the noise of the one named."""
    own = (parameters.precision, parameters.along, parameters.across)
    precision, along, across = (np.asarray(each)[node] if np.ndim(each) else each for each in own)
    return replace(parameters, precision=precision, along=along, across=across)


def in_frame(parameters: OrientedParameters, frame: FloatArray) -> OrientedParameters:
    """The parameters in the coordinates of an orthonormal frame (D, r) in whose span the surface lies."""
    return replace(parameters, weights=parameters.weights @ frame)
