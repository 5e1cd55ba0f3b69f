"""Where training begins: the principal plane, spectral embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from prinfold._arrays import Rows, Selection, as_rows, dense, sum_blocks
from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError
from prinfold.latent import LatentSpace, Sphere

_SPECTRAL_ROWS = 2000
"""Rows that a spectral embedding sees at most: its cost grows with their square or cube."""

_ROWS_TO_SORT = 20_000
"""Rows among which those for a spectral embedding are looked for."""

_NEIGHBORHOODS = (5, 8, 12, 17)
"""Neighbourhood sizes tried: too small and the data fall apart, too large and folds are short-cut; which
is which depends on the sample."""


class Axes(NamedTuple):
    """Principal directions (r, D) as rows, their variances (r,), and the mean variance of a column."""

    directions: FloatArray
    variances: FloatArray
    column_variance: float


def weighted_mean(table: FloatArray, weight: FloatArray | None) -> FloatArray:
    """(D,) mean row in float64, read in blocks."""
    # Summing deviations from a row of the data keeps all digits when the data sit far from the origin.
    heaviest = 0 if weight is None else int(np.argmax(weight))
    anchor = dense(table[heaviest : heaviest + 1])[0].astype(np.float64)
    rows = as_rows(table, anchor, weight)

    def total(part: slice) -> FloatArray:
        w, block = rows.block_weight(part), rows.block(part)
        return block.sum(axis=0, dtype=np.float64) if w is None else w @ block.astype(np.float64)

    return np.asarray(anchor + sum_blocks(total, rows.slices) / rows.total_weight)


def smallest_noise(rows: Rows, relative: float) -> float:
    """The least noise variance: a share of the mean variance of a column, but not below rounding in the data.

    A number near v is stored to within v·eps, which scatters it by v·eps/√12. Columns that do not vary are
    stored without error as far as anyone can tell.
    """
    spread = sum_blocks(lambda part: _column_squares(rows, part), rows.slices) / rows.total_weight
    kind = np.finfo(rows.table.dtype)
    rounding = np.where(spread > 0, np.square(kind.eps * rows.offset) / 12.0, 0.0)
    return float(max(relative * spread.mean(), rounding.mean(), kind.tiny * 1e8))


def _column_squares(rows: Rows, part: slice) -> FloatArray:
    weight, block = rows.block_weight(part), rows.block(part).astype(np.float64, copy=False)
    return np.asarray(np.einsum("nd,nd->d", block, block) if weight is None else weight @ np.square(block))


def principal_axes(rows: Rows, rank: int) -> Axes:
    """The first ``rank`` principal directions of centred rows, with signs fixed (fewer where D is less)."""
    rank = min(rank, rows.n_columns)
    total = rows.total_weight
    if rows.n_columns <= max(rows.n_rows, 1024):
        covariance = sum_blocks(lambda part: _scatter(rows, part), rows.slices) / total
        first = rows.n_columns - rank
        variances, vectors = eigh(covariance, subset_by_index=[first, rows.n_columns - 1])
        directions = vectors[:, ::-1].T
        column_variance = float(np.trace(covariance)) / rows.n_columns
        return Axes(_fix_signs(directions), np.maximum(variances[::-1], 0.0), column_variance)
    # More columns than rows: the scatter matrix would be larger than the data.
    block = rows.block(slice(None)).astype(np.float64)
    weight = rows.block_weight(slice(None))
    scaled = block if weight is None else block * np.sqrt(weight)[:, None]
    _, singular, directions = np.linalg.svd(scaled / np.sqrt(total), full_matrices=False)
    column_variance = float(np.sum(singular**2)) / rows.n_columns
    return Axes(_fix_signs(directions[:rank]), singular[:rank] ** 2, column_variance)


def _scatter(rows: Rows, part: slice) -> FloatArray:
    block = rows.block(part).astype(np.float64, copy=False)
    weight = rows.block_weight(part)
    return np.asarray(block.T @ (block if weight is None else block * weight[:, None]))


def _fix_signs(directions: FloatArray) -> FloatArray:
    """Make the leading entry of each direction positive.

    Leading is the first within 1 % of the largest, so that a tie such as (½, −½) has one answer
    whatever the rounding.
    """
    size = np.abs(directions)
    leading = np.argmax(size >= 0.99 * size.max(axis=1, keepdims=True), axis=1)
    sign = np.sign(directions[np.arange(len(directions)), leading])
    return np.asarray(directions * np.where(sign == 0, 1.0, sign)[:, None])


def principal_nodes(latent: LatentSpace, axes: Axes) -> FloatArray:
    """(K, D) images of the nodes in the principal plane: standardised embedding times √variance."""
    E = latent.embed(latent.nodes)
    spread = E.std(axis=0)
    E = (E - E.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    rank = min(E.shape[1], len(axes.directions))
    return np.asarray((E[:, :rank] * np.sqrt(axes.variances[:rank])) @ axes.directions[:rank])


class Placed(NamedTuple):
    """Rows with a latent coordinate each: Z (m, Q), the centred rows (m, D), their weights (m,)."""

    latent: FloatArray
    rows: FloatArray
    weight: FloatArray


def spectral_placements(embedder: Embedder, rows: Rows, latent: LatentSpace, rng: np.random.Generator) -> list[Placed]:
    """Latent coordinates of at most 2000 rows by a spectral embedding, one set for each neighbourhood size.

    Rows are taken from the sorted unique rows, so that neither their order nor repeats matter.
    """
    seen = _some_rows(rows, rng)
    unique, index = np.unique(rows.block(seen), axis=0, return_inverse=True)
    weight = np.bincount(index.ravel(), weights=rows.block_weight(seen), minlength=len(unique)).astype(float)
    unique, weight = unique[weight > 0], weight[weight > 0]
    if len(unique) > _SPECTRAL_ROWS:
        chosen = np.sort(rng.choice(len(unique), _SPECTRAL_ROWS, replace=False))
        unique, weight = unique[chosen], weight[chosen]
    n_embedded = latent.embed(latent.nodes[:1]).shape[1]
    if len(unique) < n_embedded + 2:
        raise InvalidDataError(
            f"init={embedder.name!r} needs at least {n_embedded + 2} different rows, got {len(unique)}; use init='pca'"
        )
    return [Placed(spread_over(latent, E), unique, weight) for E in embedder.embeddings(unique, n_embedded)]


def _some_rows(rows: Rows, rng: np.random.Generator) -> Selection:
    """All rows of a small table; of a large one a few thousand, chosen by what is in them and not by where they are."""
    if rows.n_rows <= _ROWS_TO_SORT:
        return slice(None)
    direction = rng.standard_normal(rows.n_columns)
    mark = np.concatenate([rows.block(part).astype(np.float64) @ direction for part in rows.slices])
    # Digits far behind the point of a random combination of the columns are as good as random.
    scattered = np.modf(np.abs(mark) * (1e6 / max(float(np.abs(mark).max()), np.finfo(float).tiny)))[0]
    return np.sort(np.argpartition(scattered, _ROWS_TO_SORT)[:_ROWS_TO_SORT])


def spread_over(latent: LatentSpace, E: FloatArray) -> FloatArray:
    """Latent coordinates from an embedding in any units.

    Open axes are stretched to the domain's box; pairs that stand for an angle are centred and scaled to
    unit spread.
    """
    centred = (E - E.mean(axis=0)) / np.maximum(E.std(axis=0), np.finfo(float).tiny)
    if isinstance(latent, Sphere):
        return latent.unembed(centred)[0]
    low, high = latent.domain.lower, latent.domain.upper
    columns, row = [], 0
    for lo, hi in zip(low, high, strict=True):
        if np.isinf(lo):
            columns += [centred[:, row], centred[:, row + 1]]
        else:
            range_ = max(np.ptp(E[:, row]), np.finfo(float).tiny)
            columns.append(lo + (hi - lo) * (E[:, row] - E[:, row].min()) / range_)
        row += 2 if np.isinf(lo) else 1
    return latent.unembed(np.stack(columns, axis=1))[0]


@dataclass(frozen=True)
class Embedder:
    """A spectral embedding by name: ``build(n_components, n_neighbors)`` makes the transformer."""

    name: str
    build: Callable[[int, int], Any]

    def embeddings(self, X: FloatArray, n_components: int) -> list[FloatArray]:
        """Embeddings for several neighbourhood sizes, none so small that the data fall apart."""
        sizes = sorted({_connecting_neighbors(X, min(k, len(X) - 1)) for k in _NEIGHBORHOODS})
        return [np.asarray(self.build(n_components, k).fit_transform(X), dtype=np.float64) for k in sizes]


def _connecting_neighbors(X: FloatArray, n_neighbors: int) -> int:
    """The number of neighbours, doubled until their graph hangs together: no embedding can order islands."""
    from sklearn.neighbors import kneighbors_graph  # deferred with the embeddings

    while n_neighbors < len(X) - 1:
        graph = kneighbors_graph(X, n_neighbors)
        n_islands, _ = connected_components(graph, directed=False)
        if n_islands == 1:
            break
        n_neighbors = min(2 * n_neighbors, len(X) - 1)
    return n_neighbors


def _isomap(n_components: int, n_neighbors: int) -> Any:
    from sklearn.manifold import Isomap  # deferred: importing sklearn.manifold takes longer than most fits

    return Isomap(n_components=n_components, n_neighbors=n_neighbors, eigen_solver="dense")


def _lle(n_components: int, n_neighbors: int) -> Any:
    from sklearn.manifold import LocallyLinearEmbedding

    return LocallyLinearEmbedding(n_components=n_components, n_neighbors=n_neighbors, eigen_solver="dense")


def _laplacian(n_components: int, n_neighbors: int) -> Any:
    from sklearn.manifold import SpectralEmbedding

    return SpectralEmbedding(n_components, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=0)


EMBEDDERS = {
    "isomap": Embedder("isomap", _isomap),
    "lle": Embedder("lle", _lle),
    "laplacian": Embedder("laplacian", _laplacian),
}
