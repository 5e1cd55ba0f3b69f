"""Noise and mixing weights that vary smoothly over latent space, thesis 6.1.

    ln β(x) = Σ_m φ_m(x) b_m   (6.1),        π(x_k) = exp(Σ_m φ_m(x_k) a_m) / Σ_k' exp(Σ_m φ_m(x_k') a_m)   (6.2)

with a few basis functions of their own, so that p(t) = Σ_k π(x_k) N(t | y(x_k), 1/β(x_k)). A ridge ½ρ(‖a‖² + ‖b‖²),
which leaves the bias of b alone, is taken off the objective. What the E-step gives decides a and b by two concave
problems, which Newton's method solves with steps that never go down: a generalised EM. Cells that are missing or have
known errors are as in :mod:`prinfold.gtm.noise.per_cell`, with a variance for each node instead of each column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.special import logsumexp

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.bases import BoundBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers
from prinfold.gtm.noise.per_cell import MeasuredCells, as_cells, mixture_moments
from prinfold.gtm.noise.protocol import (
    Capabilities,
    NodeShares,
    Parameters,
    Posterior,
    Precision,
    RowStatistics,
    largest_weight,
    positive_array,
)
from prinfold.gtm.penalties import Penalty
from prinfold.numerics.newton import newton_ascent
from prinfold.validation.settings import real


class VaryingNodes(NamedTuple):
    """Nodes in the form that the E-step uses.

    ``loading`` (2D + 2, K) holds −½β, βy, −½βy² + ½ ln(β/2π) and ln(Kπ), for rows [‖t‖², t, seen, 1]; ``plain``
    (D + 2, K) the same with the third summed up, for rows without gaps.
    """

    loading: FloatArray
    plain: FloatArray
    centers: FloatArray
    precision: FloatArray
    log_share: FloatArray

    @property
    def n_layers(self) -> int:
        return 1

    def log_density(self, loaded: MeasuredCells, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node) + ln(Kπ): into ``work[0]`` relative to the row's largest; returns (n,) that."""
        chosen = slice(None) if near is None else near
        if loaded.squared_errors is not None:
            found = _uncertain_log_density(loaded, self, chosen)
        else:
            square, one = np.square(loaded.values).sum(axis=1)[:, None], np.ones((len(loaded), 1))
            both = [square, loaded.values, *([] if loaded.plain else [loaded.seen]), one]
            found = np.concatenate(both, axis=1) @ (self.plain if loaded.plain else self.loading)[:, chosen]
        largest = found.max(axis=1)
        np.subtract(found, largest[:, None], out=work[0], casting="same_kind")
        return np.asarray(largest)

    def empty_sums(self) -> VaryingSums:
        K, D = self.centers.shape
        return VaryingSums(self.precision, self.centers, np.zeros(K), *np.zeros((4, K, D)), *np.zeros((3, K)))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        centers = self.centers[node]
        return np.asarray(centers + rng.standard_normal(centers.shape) / np.sqrt(self.precision[node])[:, None])

    def covariance(self, axes: FloatArray) -> FloatArray:
        return np.asarray((axes.T @ axes) / self.precision[:, None, None])

    def shares(self) -> FloatArray:
        """(K,) π, how much of the mixture each node makes up."""
        return np.asarray(np.exp(self.log_share) / len(self.log_share))

    def impute(
        self, loaded: MeasuredCells, posterior: Posterior, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself."""
        mean, between = mixture_moments(self.centers, posterior, near)
        share = (posterior.relative / posterior.total[:, None]).astype(np.float64, copy=False)
        return mean, between + (share @ (1.0 / self.precision[slice(None) if near is None else near]))[:, None]


@dataclass(frozen=True)
class VaryingParameters(Parameters):
    """Weights, coefficients (M',) of the log precision and (M',) of the log shares of the nodes.

    ``precision`` is exp of the mean of ln β over the nodes; no node has a precision above ``ceiling``. The ``noise``
    knows the basis functions.
    """

    precision_weights: FloatArray
    mixing_weights: FloatArray
    noise: SmoothNoise

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        """The penalty on the surface at the mean of the log precisions, and the ridge."""
        squares = np.square(self.precision_weights[:-1]).sum() + np.square(self.mixing_weights).sum()
        return penalty.value(self.level, surface.roughness(self.weights)) + 0.5 * self.noise.ridge * float(squares)

    def extrapolate(self, new: Self, factor: float) -> Self:
        """The step from here to ``new``, ``factor`` times as far."""
        weights = self.weights + factor * (new.weights - self.weights)
        b = self.precision_weights + factor * (new.precision_weights - self.precision_weights)
        a = self.mixing_weights + factor * (new.mixing_weights - self.mixing_weights)
        return replace(new, weights=weights, precision=new.noise.level(b), precision_weights=b, mixing_weights=a)

    def at_floor(self) -> bool:
        found = self.noise.precisions(self.noise.features, replace(self, ceiling=np.inf))
        return bool(np.any(found >= self.ceiling * (1 - 1e-12)))

    def to_arrays(self) -> dict[str, Any]:
        log_share = self.noise.log_shares(self.noise.features, self)
        found: dict[str, Any] = {
            "precision_weights": self.precision_weights,
            "mixing_weights": self.mixing_weights,
            "ceiling": self.ceiling,
            "node_precisions": self.noise.precisions(self.noise.features, self),
            "node_shares": np.exp(log_share) / len(log_share),
        }
        return {name: value for name, value in found.items() if np.size(value)}


@storable
@dataclass(frozen=True)
class VaryingStatistics(RowStatistics):
    """Sums over rows, under the parameters of the E-step.

    With ρ = v_k/(v_k + e²), ``mass`` (K,) is Σ r; ``masses`` and ``moment`` (K, D) are Σ r ρ and Σ r ρ t; ``squares``
    and ``products`` (K, D) are Σ r ρ² and Σ r ρ² t, ``square`` (K,) is Σ r ρ² t² over all columns; ``counts`` (K,)
    counts what was measured, and ``untrusted`` (K,) is Σ r (1 − ρ) over it.
    """

    _kinds: ClassVar[Kinds] = {
        "mass": numbers("K"),
        "masses": numbers("K", "columns"),
        "moment": numbers("K", "D"),
        "squares": numbers("K", "columns of squares"),
        "products": numbers("K", "columns of products"),
        "square": numbers("K"),
        "counts": numbers("K"),
        "untrusted": numbers("K"),
        "log_likelihood": number,
        "total": real(0),
    }

    mass: FloatArray
    masses: FloatArray
    moment: FloatArray
    squares: FloatArray
    products: FloatArray
    square: FloatArray
    counts: FloatArray
    untrusted: FloatArray
    log_likelihood: float
    total: float


@dataclass
class VaryingSums:
    """Sums of an E-step, named as in :class:`VaryingStatistics`."""

    precision: FloatArray
    centers: FloatArray
    mass: FloatArray
    masses: FloatArray
    moment: FloatArray
    squares: FloatArray
    products: FloatArray
    square: FloatArray
    counts: FloatArray
    untrusted: FloatArray
    log_likelihood: float = 0.0
    total: float = 0.0

    def add(
        self, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        ones = np.ones(len(loaded)) if weight is None else weight
        largest = largest_weight(ones)
        shares = posterior.relative * (largest * ((ones / largest) / posterior.total))[:, None]
        add = self._add_exact if loaded.squared_errors is None else self._add_uncertain
        add(loaded, shares.astype(np.float64, copy=False), slice(None) if near is None else near)
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())

    def _add_exact(self, cells: MeasuredCells, shares: FloatArray, chosen: Any) -> None:
        """Rows with responsibilities times weights (n, K); without errors ρ is 1 wherever a cell was measured."""
        parts = [cells.values, *([] if cells.plain else [cells.seen]), np.square(cells.values).sum(axis=1)[:, None]]
        parts += [cells.seen.sum(axis=1)[:, None], np.ones((len(cells), 1))]
        product, D = np.concatenate(parts, axis=1).T @ shares, cells.values.shape[1]
        square, counts, mass = product[-3:]
        # Where there are no gaps every column has the mass of the node, to the last bit, and shares one system.
        masses = np.broadcast_to(mass[:, None], (len(mass), D)) if cells.plain else product[D:-3].T
        for name, each in (("moment", product[:D].T), ("masses", masses), ("products", product[:D].T)):
            getattr(self, name)[chosen] += each
        self.squares[chosen] += masses
        self.square[chosen] += square
        self.counts[chosen] += counts
        self.mass[chosen] += mass

    def _add_uncertain(self, cells: MeasuredCells, shares: FloatArray, chosen: Any) -> None:
        """Rows with known errors, column by column: ρ differs between rows, nodes and columns."""
        assert cells.squared_errors is not None
        variance = 1.0 / self.precision[chosen]
        self.mass[chosen] += shares.sum(axis=0)
        self.counts[chosen] += cells.seen.sum(axis=1) @ shares
        errors = np.broadcast_to(cells.squared_errors, cells.values.shape)
        for d, (t, seen) in enumerate(zip(cells.values.T, cells.seen.T, strict=True)):
            trust = variance / (variance + errors[:, d, None])
            weight = shares * seen[:, None]
            self.untrusted[chosen] += weight.sum(axis=0)
            weight *= trust
            self.untrusted[chosen] -= weight.sum(axis=0)
            self.masses[chosen, d] += weight.sum(axis=0)
            self.moment[chosen, d] += t @ weight
            weight *= trust
            self.squares[chosen, d] += weight.sum(axis=0)
            self.products[chosen, d] += t @ weight
            self.square[chosen] += np.square(t) @ weight

    def statistics(self) -> VaryingStatistics:
        return VaryingStatistics(*(getattr(self, f.name) + 0.0 for f in fields(VaryingStatistics)))


_Kind: TypeAlias = Capabilities[VaryingParameters, MeasuredCells, VaryingNodes, VaryingStatistics]


@dataclass(frozen=True)
class SmoothNoise:
    """Isotropic noise whose precision, and shares of the nodes in the mixture, are smooth functions of latent space.

    ``basis`` are the functions, with their values ``features`` (K, M') at the nodes, the bias last; ``varies`` and
    ``mixes`` say which of the two vary. ``floor`` is the smallest variance allowed at a node.
    """

    floor: float
    basis: BoundBasis
    features: FloatArray
    ridge: float
    varies: bool = True
    mixes: bool = True

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(
            words="noise that varies over the map",
            impute=VaryingNodes.impute,
            node_shares=NodeShares(VaryingNodes.shares, learned=self.mixes),
        )

    def initial(self, weights: FloatArray, precision: Precision) -> VaryingParameters:
        log_precision = np.zeros(self._of_precision(self.features).shape[1])
        log_precision[-1] = np.log(min(float(precision), 1.0 / self.floor))
        log_shares = np.zeros(self._of_shares(self.features).shape[1])
        return self._make_parameters(weights, log_precision, log_shares, 1.0 / self.floor)

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> VaryingParameters:
        n_precision, n_shares = self._of_precision(self.features).shape[1], self._of_shares(self.features).shape[1]
        ceiling = positive_array({"ceiling": np.asarray(arrays.get("ceiling"), dtype=float)}, "ceiling", ())
        given = {"mixing_weights": np.zeros(0)} | arrays
        b, a = (
            _finite(given, name, n) for name, n in (("precision_weights", n_precision), ("mixing_weights", n_shares))
        )
        found = self._make_parameters(weights, b, a, float(ceiling))
        for name in ("node_precisions", "node_shares"):
            node = positive_array(arrays, name, (len(self.features),))
            if not np.allclose(node, found.to_arrays()[name], rtol=1e-6):
                raise ValueError(f"{name} of the noise that follow from their weights")
        return found

    def with_gaps(self) -> SmoothNoise:
        return self

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart, in double precision."""
        return as_cells(block.astype(np.float64, copy=False), errors)

    def at_nodes(self, surface: BasisMap, parameters: VaryingParameters, dtype: type = np.float64) -> VaryingNodes:
        """Passes are made in double precision."""
        centers, features = surface.nodes(parameters.weights), self._at(surface)
        beta, log_share = self.precisions(features, parameters), self.log_shares(features, parameters)
        own = 0.5 * (np.log(beta / (2 * np.pi))[:, None] - beta[:, None] * np.square(centers))
        loading = np.vstack([-0.5 * beta, (beta[:, None] * centers).T, own.T, log_share])
        plain = np.vstack([-0.5 * beta, (beta[:, None] * centers).T, own.sum(axis=1) + log_share])
        return VaryingNodes(loading, plain, centers, beta, log_share)

    def m_step(
        self, surface: BasisMap, sums: VaryingStatistics, penalty: Penalty, parameters: VaryingParameters
    ) -> VaryingParameters:
        """New weights, the best for the old noise; then precisions with those weights, and shares; none goes down."""
        features, level = self._at(surface), parameters.level
        beta = self.precisions(features, parameters)
        relative = (beta / level)[:, None]
        strength = np.full(sums.moment.shape[1], penalty.strength(level))
        weights = surface.solve_columns(relative * sums.masses, relative * sums.moment, strength, parameters.weights)
        centers = surface.nodes(weights)
        residual = sums.square + np.einsum("kd,kd->k", centers, centers * sums.squares - 2 * sums.products)
        error = np.maximum(residual, 0.0) + sums.untrusted / beta
        tie = penalty.tie(surface.roughness(weights))
        b = self._best_precision(features, sums.counts, error, tie, parameters)
        a = self._best_shares(features, sums.mass, parameters)
        return self._make_parameters(weights, b, a, float(parameters.ceiling))

    def _best_precision(
        self, features: FloatArray, counts: FloatArray, error: FloatArray, tie: float, parameters: VaryingParameters
    ) -> FloatArray:
        """b that maximises ½ Σ_k (N_k ln β_k − β_k E_k) − ½ tie exp(mean ln β) − ½ ridge ‖b‖², from the present one."""
        Phi, mean = self._of_precision(features), self._of_precision(self.features).mean(axis=0)
        top, mask = np.log(parameters.ceiling), np.append(np.ones(Phi.shape[1] - 1), 0.0)

        def value(b: FloatArray) -> float:
            eta = np.minimum(Phi @ b, top)
            held = tie * np.exp(mean @ b) + self.ridge * (mask @ np.square(b))
            return float(0.5 * (counts @ eta - error @ np.exp(eta) - held))

        def slopes(b: FloatArray) -> tuple[FloatArray, FloatArray]:
            eta = Phi @ b
            below = eta < top  # nodes at their floor do not answer
            fit, held = np.where(below, error * np.exp(np.minimum(eta, top)), 0.0), tie * np.exp(mean @ b)
            slope = 0.5 * (Phi.T @ (counts * below - fit) - held * mean) - self.ridge * mask * b
            bend = 0.5 * ((Phi.T * fit) @ Phi + held * np.outer(mean, mean)) + self.ridge * np.diag(mask)
            return slope, bend

        return newton_ascent(parameters.precision_weights, value, slopes, Phi)

    def _best_shares(self, features: FloatArray, mass: FloatArray, parameters: VaryingParameters) -> FloatArray:
        """a that maximises Σ_k G_k ln π_k − ½ ridge ‖a‖², from the present one."""
        Phi, total = self._of_shares(features), float(mass.sum())
        if Phi.shape[1] == 0:
            return parameters.mixing_weights

        def value(a: FloatArray) -> float:
            eta = Phi @ a
            return float(mass @ (eta - logsumexp(eta)) - 0.5 * self.ridge * a @ a)

        def slopes(a: FloatArray) -> tuple[FloatArray, FloatArray]:
            eta = Phi @ a
            share = np.exp(eta - logsumexp(eta))
            mean = share @ Phi
            bend = total * ((Phi.T * share) @ Phi - np.outer(mean, mean)) + self.ridge * np.eye(len(a))
            return Phi.T @ mass - total * mean - self.ridge * a, bend

        return newton_ascent(parameters.mixing_weights, value, slopes, Phi)

    def _make_parameters(self, weights: FloatArray, b: FloatArray, a: FloatArray, ceiling: float) -> VaryingParameters:
        return VaryingParameters(weights, self.level(b), b, a, self, ceiling=ceiling)

    def level(self, b: FloatArray) -> float:
        """exp of the mean of ln β over the nodes."""
        return float(np.exp(self._of_precision(self.features).mean(axis=0) @ b))

    def _at(self, surface: BasisMap) -> FloatArray:
        """(K, M') the basis functions at the nodes of a surface, which may be fewer while training warms up."""
        if surface.latent.n_nodes == len(self.features):
            return self.features
        return self.basis.features(surface.latent.nodes)

    def _of_precision(self, features: FloatArray) -> FloatArray:
        return features if self.varies else features[:, -1:]

    def _of_shares(self, features: FloatArray) -> FloatArray:
        """Without the bias, which changes no share."""
        return features[:, :-1] if self.mixes else features[:, :0]

    def precisions(self, features: FloatArray, parameters: VaryingParameters) -> FloatArray:
        """(K,) β."""
        eta = self._of_precision(features) @ parameters.precision_weights
        return np.asarray(np.exp(np.minimum(eta, np.log(parameters.ceiling))))

    def log_shares(self, features: FloatArray, parameters: VaryingParameters) -> FloatArray:
        """(K,) ln(Kπ)."""
        eta = self._of_shares(features) @ parameters.mixing_weights
        return np.asarray(eta - logsumexp(eta) + np.log(len(eta)))


def _uncertain_log_density(cells: MeasuredCells, nodes: VaryingNodes, chosen: Any) -> FloatArray:
    """(n, K) log p(t | node) + ln(Kπ) of rows with known errors, column by column."""
    assert cells.squared_errors is not None
    variance, found = 1.0 / nodes.precision[chosen], np.tile(nodes.log_share[chosen], (len(cells), 1))
    errors = np.broadcast_to(cells.squared_errors, cells.values.shape)
    for d, (t, seen) in enumerate(zip(cells.values.T, cells.seen.T, strict=True)):
        both = variance + errors[:, d, None]
        off = np.square(t[:, None] - nodes.centers[chosen, d])
        found -= 0.5 * seen[:, None] * (off / both + np.log(2 * np.pi * both))
    return found


def _finite(kept: dict[str, Any], name: str, size: int) -> FloatArray:
    """A stored array of a noise: finite numbers, as many as said, or a ValueError."""
    found = np.asarray(kept.get(name))
    if found.dtype.kind != "f" or found.shape != (size,) or not np.isfinite(found).all():
        raise ValueError(f"{name} of the noise, finite and of shape ({size},)")
    return found
