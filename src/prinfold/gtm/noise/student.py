"""Noise with heavy tails: a Student t about each node, so that outliers pull at the surface less the farther they are.

A row has a scale u of its own, Gamma distributed with shape and rate ν/2, by which its precisions are multiplied:

    t | node, u ~ N(y, diag(v_d + e_nd²) / u),        u ~ Γ(ν/2, ν/2).

With δ = Σ_d p_nd (t_nd − y_kd)² over the D_n cells that were measured and p_nd = 1/(v_d + e_nd²) of
:mod:`prinfold.gtm.noise.per_cell`, integrating u out gives

    log p(t | node) = ln Γ((ν + D_n)/2) − ln Γ(ν/2) + ½ Σ_d ln(p_nd / νπ) − ½ (ν + D_n) ln(1 + δ/ν),
    E[u | t, node]  = (ν + D_n) / (ν + δ),

exactly, whatever is missing: the marginal of a t is a t. Mixtures of t distributions are fitted so by Peel & McLachlan
(2000), the GTM among them, with missing cells, by Vellido (2006); known errors are ours. Known errors e share the scale
of their row, which is why this stays exact: in a row that lies far off, they too were too small. EM is that of
independent cells with the responsibilities times E[u]; ν is found from E[ln u] − E[u] alone (Liu & Rubin, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number
from prinfold.gtm.noise.per_cell import (
    CellNoise,
    CellParameters,
    CellStatistics,
    MeasuredCells,
    as_cells,
    cell_precisions,
    column_variances,
    mixture_moments,
    own_columns,
)
from prinfold.gtm.noise.protocol import (
    Capabilities,
    IndependentCells,
    Parameters,
    Posterior,
    Precision,
    largest_weight,
    positive_array,
)
from prinfold.gtm.penalties import Penalty

_FIRST_DF = 4.0
"""Degrees of freedom to begin with where they are learned: tails heavy enough to tell outliers from the rest."""

MOST_DF = 200.0
"""Degrees of freedom up to which they are learned: beyond, a t is normal to all intents and purposes."""


class StudentNodes(NamedTuple):
    """Nodes in the form that the E-step uses.

    ``loading`` (2D + 1, K) holds −2y, y² and 1, about ``middle`` (D,), the mean of the nodes: a square of a distance is
    then not lost between squares of the distance of outliers from wherever the origin may be.
    """

    loading: FloatArray
    centers: FloatArray
    middle: FloatArray
    variance: FloatArray
    df: float

    @property
    def n_layers(self) -> int:
        return 3

    def log_density(self, loaded: MeasuredCells, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): terms that differ between nodes into ``work[0]``; returns (n,) the sum of the others.

        E[u] goes into ``work[1]`` and ln(1 + δ/ν) into ``work[2]``, so that no logarithm is taken twice.
        """
        precision = loaded.trust(self.variance) / self.variance
        count, df = loaded.seen.sum(axis=1), self.df
        apart, scaled = loaded.values - self.middle, precision / df
        square = np.einsum("nd,nd,nd->n", scaled, apart, apart)[:, None]
        loading = self.loading if near is None else self.loading[:, near]
        ratio = work[2] if work.dtype == np.float64 else np.empty(work.shape[1:])
        np.dot(np.concatenate([scaled * apart, scaled, square], axis=1), loading, out=ratio)  # δ/ν
        np.maximum(ratio, 0.0, out=ratio)
        np.add(ratio, 1.0, out=work[1], casting="same_kind")
        np.divide(((df + count) / df)[:, None], work[1], out=work[1], casting="same_kind")
        np.log1p(ratio, out=work[2], casting="same_kind")
        np.multiply(work[2], (-0.5 * (df + count))[:, None], out=work[0], casting="same_kind")
        size = np.where(loaded.seen > 0, np.log(np.where(precision > 0, precision, 1.0) / (df * np.pi)), 0.0)
        return np.asarray(gammaln(0.5 * (df + count)) - gammaln(0.5 * df) + 0.5 * size.sum(axis=1))

    def empty_sums(self) -> StudentSums:
        K, D = self.centers.shape
        products, squared, mass = np.zeros((2 * D + 1, K)), np.zeros((2 * D, K)), np.zeros(K)
        return StudentSums(self.variance, self.df, products, squared, mass, *np.zeros((3, D)))

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        centers = self.centers[node]
        scale = rng.gamma(0.5 * self.df, 2.0 / self.df, size=(len(node), 1))
        return np.asarray(centers + rng.standard_normal(centers.shape) * np.sqrt(self.variance / scale))

    def covariance(self, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D, a): infinite for ν ≤ 2."""
        seen, df = np.tile(axes.T @ (self.variance[:, None] * axes), (len(self.centers), 1, 1)), self.df
        return seen * (df / (df - 2.0)) if df > 2 else np.where(seen == 0, 0.0, np.copysign(np.inf, seen))

    def impute(
        self, loaded: MeasuredCells, posterior: Posterior, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) posterior expectation of every cell and its variance, as if it were not measured itself.

        Given a node what is missing has a t of ν + D_n degrees of freedom, of variance v E[1/u], where E[1/u] =
        (ν + δ)/(ν + D_n − 2), infinite for ν + D_n ≤ 2.
        """
        assert posterior.layers is not None
        mean, between = mixture_moments(self.centers, posterior, near)
        df = self.df + loaded.seen.sum(axis=1)
        scale = np.maximum(posterior.layers[0].astype(np.float64, copy=False), np.finfo(float).tiny)
        spread = np.einsum("nk,nk->n", posterior.relative, 1.0 / scale) / posterior.total
        factor = np.where(df > 2, df / np.where(df > 2, df - 2.0, 1.0), np.inf) * spread
        return mean, between + factor[:, None] * self.variance


def expected_scales(posterior: Posterior) -> FloatArray:
    """(n,) E[u], the factor of the precision of each row, averaged over the nodes."""
    assert posterior.layers is not None
    return np.asarray(np.einsum("nk,nk->n", posterior.relative, posterior.layers[0]) / posterior.total)


@dataclass(frozen=True)
class StudentParameters(Parameters):
    """Weights, one precision or one for each column (D,), and the degrees of freedom ν, kept within ``bounds``."""

    df: float = field(kw_only=True)
    bounds: tuple[float, float] = field(kw_only=True)
    varies: Any = field(default=True, kw_only=True)

    @property
    def level(self) -> float:
        """One over the mean of the squared scales; the variance is ν/(ν − 2) times as large as that mean."""
        return float(1.0 / np.mean(1.0 / self.precision))

    @property
    def plain(self) -> Parameters:
        """Parameters of the Gaussian noise with the same scales."""
        if np.ndim(self.precision):
            return CellParameters(self.weights, np.asarray(self.precision), ceiling=self.ceiling, varies=self.varies)
        return Parameters(self.weights, self.precision, ceiling=self.ceiling)

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        return self.plain.cost(surface, penalty)

    def extrapolate(self, new: Self, factor: float) -> Self:
        """The step from here to ``new``, ``factor`` times as far; scales and ν by their logarithms."""
        df = float(np.clip(self.df * (new.df / self.df) ** factor, *new.bounds))
        return replace(super().extrapolate(new, factor), df=df)

    def at_floor(self) -> bool:
        return self.plain.at_floor()

    def to_arrays(self) -> dict[str, Any]:
        return self.plain.to_arrays() | {"df": self.df}


@storable
@dataclass(frozen=True)
class StudentStatistics(CellStatistics):
    """Sums of independent cells, where all but ``mass``, ``seen`` and ``trusted`` have responsibilities times E[u].

    ``logs`` is Σ r (E[ln u] − E[u]).
    """

    _kinds: ClassVar[Kinds] = {**CellStatistics._kinds, "logs": number}

    logs: float


@dataclass
class StudentSums:
    """Sums of an E-step: ``products`` (2D + 1, K) of ρ t, ρ and 1 with u, ``squared`` (2D, K) of ρ² t and ρ² with u."""

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

    def add(
        self, loaded: MeasuredCells, weight: FloatArray | None, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        assert posterior.layers is not None
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, chosen = largest_weight(ones), slice(None) if near is None else near
        share = (ones / largest) / posterior.total
        scale = posterior.layers[0]
        relative = posterior.relative * scale
        trust = loaded.trust(self.variance)
        parts = np.concatenate([trust * loaded.values, trust, np.ones((len(loaded), 1))], axis=1) * share[:, None]
        self.products[:, chosen] += largest * (parts.T @ relative)
        self.mass[chosen] += largest * (share @ posterior.relative)
        of_rows = largest * share * relative.sum(axis=1, dtype=np.float64)
        self.square += of_rows @ np.square(trust * loaded.values)
        self.seen += ones @ loaded.seen
        self.trusted += ones @ trust
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())
        half = 0.5 * (self.df + loaded.seen.sum(axis=1))
        # E[ln u] = ψ(½(ν + D)) − ln ½(ν + δ).
        logs = np.einsum("nk,nk->n", posterior.relative, posterior.layers[1]) / posterior.total
        self.logs += float(ones @ (digamma(half) - np.log(0.5 * self.df) - logs) - of_rows.sum())
        if loaded.squared_errors is not None:
            self.has_errors = True
            self.squared[:, chosen] += largest * ((parts[:, :-1] * np.tile(trust, 2)).T @ relative)

    def statistics(self) -> StudentStatistics:
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


_Kind: TypeAlias = Capabilities[StudentParameters, MeasuredCells, StudentNodes, StudentStatistics]


@dataclass(frozen=True)
class StudentCells:
    """A Student t of independent cells, given a row's scale; ``bounds`` are those of ν, equal where ν is given."""

    cells: CellNoise
    bounds: tuple[float, float] = (1.0, MOST_DF)

    @property
    def floor(self) -> float:
        return self.cells.floor

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(
            words="Student noise",
            impute=StudentNodes.impute,
            row_scales=expected_scales,
            columns=own_columns(self.cells),
            cells=IndependentCells(cell_precisions, gaussian=False),
        )

    def initial(self, weights: FloatArray, precision: Precision) -> StudentParameters:
        return self._with_df(self.cells.initial(weights, precision), float(np.clip(_FIRST_DF, *self.bounds)))

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> StudentParameters:
        df = float(positive_array({"df": np.asarray(arrays.get("df"), dtype=float)}, "df", ()))
        return self._with_df(self.cells.restore(weights, variance, arrays), df)

    def _with_df(self, plain: Parameters, df: float) -> StudentParameters:
        varies = True if self.cells.scale is None else self.cells.scale > 0
        tails: dict[str, Any] = {"df": df, "bounds": self.bounds, "varies": varies}
        return StudentParameters(plain.weights, plain.precision, ceiling=plain.ceiling, **tails)

    def with_gaps(self) -> StudentCells:
        return self

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MeasuredCells:
        """A block with its gaps apart, in double precision."""
        return as_cells(block.astype(np.float64, copy=False), errors)

    def at_nodes(self, surface: BasisMap, parameters: StudentParameters, dtype: type = np.float64) -> StudentNodes:
        """Distances are taken in double precision."""
        centers = surface.nodes(parameters.weights)
        middle = centers.mean(axis=0)
        apart = (centers - middle).T
        loading = np.concatenate([-2.0 * apart, np.square(apart), np.ones((1, len(centers)))])
        variance = column_variances(parameters, centers.shape[1])
        return StudentNodes(loading, centers, middle, variance, parameters.df)

    def m_step(
        self, surface: BasisMap, sums: StudentStatistics, penalty: Penalty, parameters: StudentParameters
    ) -> StudentParameters:
        """New weights and scales as of independent cells with responsibilities times E[u], and ν for itself."""
        found = self.cells.m_step(surface, sums, penalty, parameters)
        return self._with_df(found, best_df(sums.logs / sums.total, self.bounds))


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
