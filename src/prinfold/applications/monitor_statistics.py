"""Statistics of monitoring on a map: the density of a row, its parts along the surface and off it, and p-values.

A fitted map has a density p(t) = 1/K Σ_k p(t | k) with equal weights of the nodes. Rows are not spread so evenly; nodes
get the shares q_k of the rows that lie there, and the density of a usual row is

    Σ_k q_k p(t | k) = p(t) · K Σ_k r_k(t) q_k,

in logarithms ln p(t) − a(t): a(t) = −ln K Σ_k r_k q_k, how rare the place is, is the *along* part. The *off* part is
the squared distance from the row to the surface in units of the noise, Σ_d (t_d − y_d)²/s_d².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.geometry.domain import Domain
from prinfold.geometry.projection import project_to_surface
from prinfold.numerics.distances import squared_distances

SMOOTHING_PAIRS = (0, 1, 2, 4, 8, 16, 32)
"""Pairs of steps of diffusion that are compared."""

_TIE_RELATIVE = 1e-9
"""Relative difference below which measures are equal: a row measured alone and in a batch differs by rounding."""

_MOST_SMOOTHING_ROWS = 2000
"""Rows by which the smoothing is chosen."""

_N_STARTS = 4
"""Near nodes to start from for the nearest point; on pipe flow three found it for all but 0.03 % of the rows."""

_FOOT_TOL = 1e-9

Map = Callable[[FloatArray], FloatArray]


class Measures(NamedTuple):
    """Measures of rows, (n,) each: ``log_density``, ``along`` the surface and ``off`` it, and cells ``missing``."""

    log_density: FloatArray
    along: FloatArray
    off: FloatArray
    missing: IntArray

    @property
    def unusualness(self) -> FloatArray:
        """(n, 3) each as a number that is large where a row is unusual.

        A cell that is missing counts as one in ``off``, the mean of its square in units of the noise, so that rows
        with gaps can be compared with whole ones.
        """
        return np.stack([-self.log_density, self.along, self.off + self.missing], axis=1)


class PValues(NamedTuple):
    """P-values of rows, (n,) each: by the density, along the surface and off it."""

    density: FloatArray
    along: FloatArray
    off: FloatArray


class Limits(NamedTuple):
    """Limits of alarms: rows with ``log_density`` below, or ``along`` or ``off`` above, are unusual."""

    log_density: float
    along: float
    off: float


class Contributions(NamedTuple):
    """Contributions of the columns to the off and along parts, (n, D) each.

    ``off`` are (t − y)²/s², which add up to the off part exactly, and ``residual`` is t − y itself. ``along`` are
    (y − u)²/s² with u the nearest place where rows are usual, and ``shift`` is y − u; both are 0 where y is usual.
    """

    off: FloatArray
    along: FloatArray
    residual: FloatArray
    shift: FloatArray


# ------------------------------------------------------------------------------------------ shares of the nodes


def diffusion_step(edges: IntArray, n_nodes: int) -> csr_matrix:
    """(K, K) one step of diffusion between neighbouring nodes: symmetric, its rows add up to 1."""
    i, j = edges.T
    degree = np.bincount(edges.ravel(), minlength=n_nodes)
    rate = 1.0 / (degree.max(initial=0) + 1.0)
    stay = np.arange(n_nodes)
    value = np.concatenate([np.full(2 * len(edges), rate), 1.0 - rate * degree])
    where = np.concatenate([i, j, stay]), np.concatenate([j, i, stay])
    return coo_matrix((value, where), shape=(n_nodes, n_nodes)).tocsr()


def choose_smoothing(mass: FloatArray, some: FloatArray, step: csr_matrix) -> int:
    """Pairs of diffusion steps with the highest leave-one-out likelihood of the rows.

    ``mass`` (K,) is Σ_n r_nk over all rows, and ``some`` (b, K) the responsibilities of those by which it is chosen.
    """
    scores, done, spread, own = [], 0, mass, some
    for pairs in SMOOTHING_PAIRS:
        for _ in range(pairs - done):
            spread, own = step @ (step @ spread), own @ step
        done = pairs
        # Without row n, S(m − r_n): its own part is r_n S r_n = ‖√S r_n‖², as S is symmetric.
        likely = np.maximum(some @ spread - np.einsum("nk,nk->n", own, own), 0.0)
        scores.append(float(np.log(likely + 1.0 / len(mass)).mean()))
    return SMOOTHING_PAIRS[int(np.argmax(scores))]


def node_shares(mass: FloatArray, total: float, step: csr_matrix, pairs: int) -> FloatArray:
    """(K,) shares of ``total`` rows at the nodes, from their mass (K,), after ``pairs`` pairs of diffusion steps.

    One row is added, spread over all nodes, so that every node has a share.
    """
    for _ in range(2 * pairs):
        mass = step @ mass
    return np.asarray((mass + 1.0 / len(mass)) / (total + 1.0))


def smoothing_rows(n_rows: int) -> IntArray:
    """Indices of the rows, evenly spread, by which the smoothing is chosen."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_SMOOTHING_ROWS)).round().astype(int))


def rarity(share: FloatArray, shares: FloatArray, prior: FloatArray) -> FloatArray:
    """(n,) −ln Σ_k r_k q_k/π_k: 0 where rows are as dense as the map expects, above it where they are rarer.

    π (K,) is the ``prior`` of the nodes in the model, so that ln p(t) less this is ln Σ_k q_k p(t | k).
    """
    return np.asarray(-np.log(np.asarray(share, dtype=np.float64) @ (shares / prior)))


def usual_nodes(shares: FloatArray, held: float = 0.95) -> BoolArray:
    """(K,) the fewest nodes that hold that share of the rows."""
    order = np.argsort(-shares, kind="stable")
    before = np.cumsum(shares[order]) - shares[order]
    usual = np.empty(len(shares), dtype=bool)
    usual[order] = before < held * shares.sum()
    return usual


# -------------------------------------------------------------------------------------------------- the surface


class MonitoredSurface(NamedTuple):
    """A surface with its nodes: latent (K, Q) and in data space (K, D), the domain, the map and its Jacobian."""

    nodes: FloatArray
    images: FloatArray
    domain: Domain
    point: Map
    jacobian: Map

    def scaled(self, scale: FloatArray) -> MonitoredSurface:
        """The surface in units of ``scale`` (D,)."""
        return self._replace(
            images=self.images / scale,
            point=lambda Z: self.point(Z) / scale,
            jacobian=lambda Z: self.jacobian(Z) / scale[:, None],
        )


def nearest_points(table: FloatArray, scale: FloatArray, surface: MonitoredSurface) -> FloatArray:
    """(n, D) the nearest point of the surface to each row, with columns in units of ``scale`` (D,).

    Only the columns that a row has count; a row without any value gets the point of some node.
    """
    scaled, known = surface.scaled(scale), ~np.isnan(table)
    seen = None if known.all() else known
    X = np.where(known, table, 0.0) / scale
    n_starts = min(_N_STARTS, len(scaled.images))
    near = np.argpartition(_node_squares(X, scaled.images, seen), n_starts - 1, axis=1)[:, :n_starts]
    starts = scaled.nodes[near]
    found = project_to_surface(X, scaled.point, scaled.jacobian, scaled.domain, starts, tol=_FOOT_TOL, seen=seen)
    return surface.point(found.latent)


def _node_squares(X: FloatArray, images: FloatArray, seen: BoolArray | None) -> FloatArray:
    """(n, K) squared distances from rows to images, by the columns seen."""
    if seen is None:
        return squared_distances(X, images)
    center = images.mean(axis=0)  # about which squares are small, so that little cancels
    X, Y, counts = np.where(seen, X - center, 0.0), images - center, seen.astype(np.float64)
    return np.asarray((X**2).sum(axis=1, keepdims=True) - 2.0 * X @ Y.T + counts @ (Y**2).T)


def mean_cell_log_density(scale: FloatArray) -> FloatArray:
    """(D,) mean log density of the noise of each column, −½ ln 2πs² − ½, which stands in for a missing cell."""
    return np.asarray(-0.5 * np.log(2 * np.pi * scale**2) - 0.5)


def squared_parts(gap: FloatArray, scale: FloatArray) -> FloatArray:
    """(n, D) squared gaps in units of ``scale``, 0 for missing cells, capped so that their sums do not overflow."""
    with np.errstate(over="ignore"):
        squares = np.nan_to_num(gap / scale) ** 2
    return np.asarray(np.minimum(squares, np.finfo(float).max / gap.shape[1]))


# ---------------------------------------------------------------------------------------------------- p-values


def calibration_p_values(unusualness: FloatArray, reference: FloatArray) -> FloatArray:
    """(n, m) (1 + rows of the reference that are as bad) / (1 + rows of the reference), column by column.

    If a row and those of the reference are exchangeable, this is at most α with a probability of at most α, for any α
    (conformal p-values: Vovk, Gammerman and Shafer 2005).
    """
    out = np.empty(unusualness.shape)
    for j, column in enumerate(reference.T):
        out[:, j] = (1 + _count_as_bad(unusualness[:, j], column)) / (len(column) + 1)
    return out


def _count_as_bad(unusualness: FloatArray, reference: FloatArray) -> IntArray:
    least = unusualness - _TIE_RELATIVE * (1.0 + np.abs(unusualness))
    return np.asarray(len(reference) - np.searchsorted(np.sort(reference), least, side="left"))


def simulation_p_values(unusualness: FloatArray, simulated: FloatArray, weight: FloatArray) -> FloatArray:
    """(n, m) weight of simulated rows that are as bad, of the weight of all; each row counts as one of them too."""
    out, total = np.empty(unusualness.shape), float(weight.sum())
    for j, column in enumerate(simulated.T):
        order = np.argsort(column)
        beyond = total - np.concatenate([[0.0], np.cumsum(weight[order])])
        at = np.searchsorted(column[order], unusualness[:, j], side="left")
        out[:, j] = (weight.mean() + np.maximum(beyond[at], 0.0)) / (weight.mean() + total)
    return np.minimum(out, 1.0)


def round_up(limit: float) -> float:
    """The limit raised by rounding, so that the row that sets it is not beyond it."""
    return limit + _TIE_RELATIVE * (1.0 + abs(limit))


def alarm_limit(reference: FloatArray, rate: float) -> float:
    """The unusualness beyond which a p-value is at most ``rate``; infinite where the reference is too small."""
    k = min(int(np.floor(rate * (len(reference) + 1) * (1 + 1e-12))), len(reference))
    return round_up(float(np.sort(reference)[-k])) if k else np.inf


def simulated_limit(simulated: FloatArray, weight: FloatArray, rate: float) -> float:
    """The unusualness beyond which the model's own rows are with probability ``rate``."""
    order = np.argsort(-simulated)
    beyond = np.cumsum(weight[order]) / weight.sum()
    return float(simulated[order[min(int(np.searchsorted(beyond, rate)), len(order) - 1)]])


# ---------------------------------------------------------------------------------------------- rows held out

Split = tuple[IntArray, IntArray]
"""Rows to fit, and rows held out."""


def _random_split(order: IntArray, share: float, n_folds: int) -> list[Split]:
    cut = _n_fitted(len(order), share)
    return [(np.sort(order[:cut]), np.sort(order[cut:]))]


def _cross_folds(order: IntArray, share: float, n_folds: int) -> list[Split]:
    folds = np.array_split(order, min(n_folds, len(order)))
    return [(np.sort(np.concatenate(folds[:i] + folds[i + 1 :])), np.sort(fold)) for i, fold in enumerate(folds)]


def _last_rows(order: IntArray, share: float, n_folds: int) -> list[Split]:
    rows = np.arange(len(order))
    cut = _n_fitted(len(order), share)
    return [(rows[:cut], rows[cut:])]


def _n_fitted(n_rows: int, share: float) -> int:
    """Number of rows to fit, at least two; at least one is held out."""
    return int(np.clip(round((1.0 - share) * n_rows), 2, n_rows - 1))


SPLITS: dict[str, Callable[[IntArray, float, int], list[Split]]] = {
    "cross": _cross_folds,
    "split": _random_split,
    "last": _last_rows,
}
"""Ways to hold rows out, by name; arguments are all rows in random order, the share held out and the folds."""


def shuffle_by_content(table: FloatArray, rng: np.random.Generator) -> IntArray:
    """(n,) indices of the rows in a random order that does not depend on the order in which rows are given."""
    return np.asarray(np.lexsort(table.T[::-1])[rng.permutation(len(table))])
