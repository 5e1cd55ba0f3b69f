"""Noise with heavy tails: a Student t about each node, so that outliers pull at the surface less the farther they are.

A row has a scale u of its own, Gamma distributed with shape and rate ν/2, by which its precisions are multiplied:

    t | node, u ~ N(y, diag(v_d + e_nd²) / u),        u ~ Γ(ν/2, ν/2).

With δ = Σ_d p_nd (t_nd − y_kd)² over the D_n cells that were measured and p_nd = 1/(v_d + e_nd²) of
:mod:`prinfold.gtm.noise.per_cell`, integrating u out gives

    log p(t | node) = ln Γ((ν + D_n)/2) − ln Γ(ν/2) + ½ Σ_d ln(p_nd / νπ) − ½ (ν + D_n) ln(1 + δ/ν),
    E[u | t, node]  = (ν + D_n) / (ν + δ),

exactly, whatever is missing: the marginal of a t is a t. Known errors e share the scale of their row, which is why
this stays exact: in a row that lies far off, they too were too small. EM is that of independent cells with the
responsibilities times E[u]; ν is found from E[ln u] − E[u] alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.gtm.noise.per_cell import CellNoise, CellParameters, CellStatistics, MeasuredCells, as_cells
from prinfold.gtm.noise.protocol import Parameters, Posterior, largest_weight, positive_array
from prinfold.gtm.penalties import Penalty

_FIRST_DF = 4.0
"""Degrees of freedom to begin with where they are learned: tails heavy enough to tell outliers from the rest."""

MOST_DF = 200.0
"""Degrees of freedom up to which they are learned: beyond, a t is normal to all intents and purposes."""


class StudentNodes(NamedTuple):
    """Nodes as the E-step wants them.

    ``loading`` (2D + 1, K) holds −2y, y² and 1, about ``middle`` (D,), the mean of the nodes: a square of a distance is
    then not lost between squares of the distance of outliers from wherever the origin may be.
    """

    loading: FloatArray
    centres: FloatArray
    middle: FloatArray
    variance: FloatArray
    df: float


@dataclass(frozen=True)
class StudentParameters(Parameters):
    """Weights, one precision or one for each column (D,), and the degrees of freedom ν."""

    df: float

    @property
    def level(self) -> float:
        """By the mean of the squared scales; the variance is ν/(ν − 2) times as large."""
        return float(1.0 / np.mean(1.0 / self.precision))

    @property
    def plain(self) -> Parameters:
        """The same without tails."""
        return (CellParameters if np.ndim(self.precision) else Parameters)(self.weights, self.precision)

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        return self.plain.cost(surface, penalty)


@storable
@dataclass(frozen=True)
class StudentStatistics(CellStatistics):
    """Sums of independent cells, where all but ``mass``, ``seen`` and ``trusted`` have responsibilities times E[u].

    ``logs`` is Σ r (E[ln u] − E[u]).
    """

    logs: float


@dataclass
class StudentSums:
    """Sums under way: ``products`` (2D + 1, K) of ρ t, ρ and 1 with u, ``squared`` (2D, K) of ρ² t and ρ² with u."""

    variance: FloatArray
    df: float
    products: FloatArray
    squared: FloatArray
    mass: FloatArray
    square: FloatArray
    seen: FloatArray
    trusted: FloatArray
    has_errors: bool = False
    logs: float = 0.0
    log_likelihood: float = 0.0
    total: float = 0.0

    def statistics(self) -> StudentStatistics:
        """The sums so far."""
        D = len(self.variance)
        moment, masses, own = self.products[:D].T.copy(), self.products[D:-1].T.copy(), self.products[-1]
        if not self.has_errors:
            # Where a column has no gaps its masses are the nodes' own, to the last bit, and it shares their system.
            masses = np.where(self.seen >= self.total, own[:, None], masses)
            squares, products = masses, moment
        else:
            products, squares = self.squared[:D].T.copy(), self.squared[D:].T.copy()
        sums = self.mass.copy(), masses, moment, squares, products
        of_columns = self.square.copy(), self.seen.copy(), self.trusted.copy()
        return StudentStatistics(*sums, *of_columns, self.log_likelihood, self.total, self.logs)


@dataclass(frozen=True)
class StudentCells(CellNoise):
    """A Student t of independent cells, given a row's scale; ``df`` is ν, or None to learn it between bounds."""

    words: ClassVar[str] = "Student noise"

    df: float | None = None
    bounds: tuple[float, float] = (1.0, MOST_DF)

    @property
    def n_layers(self) -> int:
        return 3

    def first(self, weights: FloatArray, precision: Any) -> StudentParameters:
        df = float(np.clip(_FIRST_DF, *self.bounds)) if self.df is None else self.df
        return StudentParameters(weights, super().first(weights, precision).precision, df)

    def keep(self, parameters: Parameters) -> dict[str, Any]:
        return super().keep(parameters) | {"df": _tailed(parameters).df}

    def recall(self, weights: FloatArray, variance: float, kept: dict[str, Any]) -> StudentParameters:
        df = float(positive_array({"df": np.asarray(kept.get("df"), dtype=float)}, "df", ()))
        return StudentParameters(weights, super().recall(weights, variance, kept).precision, df)

    def prepare(self, surface: BasisMap, parameters: Parameters, dtype: type = np.float64) -> Any:
        """Centres, variances and tails for a pass over the rows; distances are taken in double precision."""
        centres = surface.nodes(parameters.weights)
        middle = centres.mean(axis=0)
        apart = (centres - middle).T
        loading = np.concatenate([-2.0 * apart, np.square(apart), np.ones((1, len(centres)))])
        variance = self._variances(parameters, centres.shape[1])
        return StudentNodes(loading, centres, middle, variance, _tailed(parameters).df)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart, in double precision."""
        return as_cells(block.astype(np.float64, copy=False), errors)

    def log_density(self, loaded: MeasuredCells, nodes: Any, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): into ``work[0]`` what differs between nodes; returns (n,) the rest.

        E[u] goes into ``work[1]`` and ln(1 + δ/ν) into ``work[2]``, so that no logarithm is taken twice.
        """
        precision = loaded.trust(nodes.variance) / nodes.variance
        count, df = loaded.seen.sum(axis=1), nodes.df
        apart, scaled = loaded.values - nodes.middle, precision / df
        square = np.einsum("nd,nd,nd->n", scaled, apart, apart)[:, None]
        loading = nodes.loading if near is None else nodes.loading[:, near]
        ratio = work[2] if work.dtype == np.float64 else np.empty(work.shape[1:])
        np.dot(np.concatenate([scaled * apart, scaled, square], axis=1), loading, out=ratio)  # δ/ν
        np.maximum(ratio, 0.0, out=ratio)
        np.add(ratio, 1.0, out=work[1], casting="same_kind")
        np.divide(((df + count) / df)[:, None], work[1], out=work[1], casting="same_kind")
        np.log1p(ratio, out=work[2], casting="same_kind")
        np.multiply(work[2], (-0.5 * (df + count))[:, None], out=work[0], casting="same_kind")
        size = np.where(loaded.seen > 0, np.log(np.where(precision > 0, precision, 1.0) / (df * np.pi)), 0.0)
        return np.asarray(gammaln(0.5 * (df + count)) - gammaln(0.5 * df) + 0.5 * size.sum(axis=1))

    def sums(self, nodes: Any) -> Any:
        """Empty sums."""
        K, D = nodes.centres.shape
        products, squared, mass = np.zeros((2 * D + 1, K)), np.zeros((2 * D, K)), np.zeros(K)
        return StudentSums(nodes.variance, nodes.df, products, squared, mass, *np.zeros((3, D)))

    def statistics(
        self, sums: Any, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Add a block to the sums. Rows are divided by the sums of their relative weights, not the weights."""
        assert posterior.layers is not None
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, chosen = largest_weight(ones), slice(None) if near is None else near
        share = (ones / largest) / posterior.total
        scale = posterior.layers[0]
        relative = posterior.relative * scale
        trust = loaded.trust(sums.variance)
        parts = np.concatenate([trust * loaded.values, trust, np.ones((len(loaded), 1))], axis=1) * share[:, None]
        sums.products[:, chosen] += largest * (parts.T @ relative)
        sums.mass[chosen] += largest * (share @ posterior.relative)
        of_rows = largest * share * relative.sum(axis=1, dtype=np.float64)
        sums.square += of_rows @ np.square(trust * loaded.values)
        sums.seen += ones @ loaded.seen
        sums.trusted += ones @ trust
        sums.log_likelihood += float(ones @ posterior.log_likelihood)
        sums.total += float(ones.sum())
        half = 0.5 * (sums.df + loaded.seen.sum(axis=1))
        # E[ln u] = ψ(½(ν + D)) − ln ½(ν + δ).
        logs = np.einsum("nk,nk->n", posterior.relative, posterior.layers[1]) / posterior.total
        sums.logs += float(ones @ (digamma(half) - np.log(0.5 * sums.df) - logs) - of_rows.sum())
        if loaded.squared_errors is not None:
            sums.has_errors = True
            sums.squared[:, chosen] += largest * ((parts[:, :-1] * np.tile(trust, 2)).T @ relative)

    def m_step(self, surface: BasisMap, sums: CellStatistics, penalty: Penalty, parameters: Parameters) -> Parameters:
        """New weights and scales as of independent cells with responsibilities times E[u], and ν for itself."""
        found = super().m_step(surface, sums, penalty, parameters)
        df = _tailed(parameters).df
        if self.df is None:
            df = best_df(sums.logs / sums.total, self.bounds)  # type: ignore[attr-defined]
        return StudentParameters(found.weights, found.precision, df)

    def stretched(self, old: Parameters, new: Parameters, factor: float) -> Parameters:
        """The step from ``old`` to ``new``, ``factor`` times as far; scales and ν by their logarithms."""
        found, before, after = super().stretched(old, new, factor), _tailed(old).df, _tailed(new).df
        df = after if self.df is not None else float(np.clip(before * (after / before) ** factor, *self.bounds))
        return StudentParameters(found.weights, found.precision, df)

    def draw(self, surface: BasisMap, parameters: Parameters, node: IntArray, rng: np.random.Generator) -> FloatArray:
        """(n, D) one row from each node named."""
        df, centres = _tailed(parameters).df, surface.nodes(parameters.weights)[node]
        scale = rng.gamma(0.5 * df, 2.0 / df, size=(len(node), 1))
        return np.asarray(centres + rng.standard_normal(centres.shape) / np.sqrt(scale * parameters.precision))

    def covariance(self, surface: BasisMap, parameters: Parameters, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D, a): infinite for ν ≤ 2."""
        seen = super().covariance(surface, parameters, axes)
        df = _tailed(parameters).df
        return seen * (df / (df - 2.0)) if df > 2 else np.where(seen == 0, 0.0, np.copysign(np.inf, seen))

    def complete(
        self, loaded: MeasuredCells, posterior: Posterior, nodes: Any, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself.

        Given a node what is missing has a t of ν + D_n degrees of freedom, of variance v E[1/u], where E[1/u] =
        (ν + δ)/(ν + D_n − 2), infinite for ν + D_n ≤ 2.
        """
        assert posterior.layers is not None
        mean, variance = super().complete(loaded, posterior, nodes, near)
        between = variance - nodes.variance
        df = nodes.df + loaded.seen.sum(axis=1)
        scale = np.maximum(posterior.layers[0].astype(np.float64, copy=False), np.finfo(float).tiny)
        spread = np.einsum("nk,nk->n", posterior.relative, 1.0 / scale) / posterior.total
        factor = np.where(df > 2, df / np.where(df > 2, df - 2.0, 1.0), np.inf) * spread
        return mean, between + factor[:, None] * nodes.variance


def best_df(mean_log: float, bounds: tuple[float, float]) -> float:
    """ν that maximises ½ν ln ½ν − ln Γ(½ν) + ½ν m with m the mean of E[ln u] − E[u], between bounds.

    The slope, ½ [ln ½ν + 1 − ψ(½ν) + m], falls all the way.
    """

    def slope(df: float) -> float:
        return float(np.log(0.5 * df) + 1.0 - digamma(0.5 * df) + mean_log)

    low, high = bounds
    if low == high or slope(low) <= 0:
        return low
    return high if slope(high) >= 0 else float(brentq(slope, low, high, xtol=1e-10, rtol=1e-12))


def _tailed(parameters: Any) -> StudentParameters:
    assert isinstance(parameters, StudentParameters)
    return parameters
