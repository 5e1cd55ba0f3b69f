"""Starting points of training: means and variances, the principal plane, spectral embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, Message
from prinfold.latent import LatentSpace
from prinfold.numerics.linalg import largest_eigenpairs
from prinfold.rows.rows import Rows, Selection, as_rows, dense, sum_blocks

_SPECTRAL_ROWS = 2000
"""Rows that a spectral embedding sees at most: its cost grows with their square or cube."""

_LANCZOS_SIZE = 512
"""Rows of a matrix above which a few leading eigenvectors are found by Lanczos' method."""

_NUMBERS_TO_SORT = 2**20
_ROWS_TO_SORT, _FEWEST_TO_SORT = 20_000, 1000
"""Numbers, and rows at the most and least, among which rows for a spectral embedding are looked for."""

_EXTENSION_NEIGHBORS = 12
"""Rows from whose coordinates those of a new one follow."""

_NEIGHBORHOOD_SIZES = (5, 8, 12, 17)
"""Neighbourhood sizes that are tried: if too small, the graph is not connected; if too large, it has short cuts between
folds. The best size depends on the sample."""


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


def observed_mean(table: FloatArray, weight: FloatArray | None) -> FloatArray:
    """(D,) mean of the values that each column has, in float64; every column must have some."""
    first = np.argmax(~np.isnan(table), axis=0)
    anchor = table[first, np.arange(table.shape[1])].astype(np.float64)
    rows = as_rows(table, anchor, weight)

    def total(part: slice) -> FloatArray:
        block = rows.block(part).astype(np.float64, copy=False)
        seen, w = ~np.isnan(block), rows.block_weight(part)
        both = np.stack([np.where(seen, block, 0.0), seen])
        return np.asarray(both.sum(axis=1) if w is None else w @ both)

    sums, counts = sum_blocks(total, rows.slices)
    return np.asarray(anchor + sums / np.where(counts > 0, counts, 1.0))


def column_variances(rows: Rows) -> FloatArray:
    """(D,) variance of each column about the rows' offset, over the values that it has."""
    if rows.variances is not None:
        return rows.variances if rows.scale is None else rows.variances / np.square(rows.scale)
    squares = sum_blocks(lambda part: _column_squares(rows, part), rows.slices)
    if not rows.gaps:
        return np.asarray(squares / rows.total_weight)
    counts = sum_blocks(lambda part: _column_counts(rows, part), rows.slices)
    return np.asarray(squares / np.where(counts > 0, counts, 1.0))


def _double_block(rows: Rows, part: slice) -> FloatArray:
    return rows.block(part).astype(np.float64, copy=False)


def smallest_noises(rows: Rows, variances: FloatArray, relative: float) -> tuple[float, FloatArray]:
    """The least noise variance of all columns together, and (D,) of each: a share of ``variances``, those of the rows.

    It is not below rounding in the data: a number near v is stored to within v·eps, which scatters it by v·eps/√12.
    Columns that do not vary are stored without error as far as anyone can tell, and take the noise of all together.
    """
    kind = np.finfo(rows.table.dtype)
    least = float(kind.tiny) * 1e8
    rounding = np.where(variances > 0, np.square(kind.eps * rows.offset) / 12.0, 0.0)
    overall = float(max(relative * variances.mean(), rounding.mean(), least))
    own = np.maximum(np.maximum(relative * variances, rounding), least)
    return overall, np.where(variances > 0, own, overall)


def _column_squares(rows: Rows, part: slice) -> FloatArray:
    weight, block = rows.block_weight(part), _double_block(rows, part)
    if rows.gaps:
        block = np.nan_to_num(block, copy=False)
    return np.asarray(np.einsum("nd,nd->d", block, block) if weight is None else weight @ np.square(block))


def _column_counts(rows: Rows, part: slice) -> FloatArray:
    seen, weight = ~np.isnan(rows.block(part)), rows.block_weight(part)
    return np.asarray(seen.sum(axis=0, dtype=float) if weight is None else weight @ seen)


def principal_axes(rows: Rows, rank: int) -> Axes:
    """The first ``rank`` principal directions of centred rows, with signs fixed (fewer where D is less)."""
    rank = min(rank, rows.n_columns)
    if rows.n_columns > max(rows.n_rows, 1024):
        return _axes_of_wide_table(rows, rank)
    covariance = sum_blocks(lambda part: _scatter(rows, part), rows.slices) / rows.total_weight
    variances, vectors = _leading_eigenpairs(covariance, rank)
    column_variance = float(np.trace(covariance)) / rows.n_columns
    return Axes(_fix_signs(vectors.T), np.maximum(variances, 0.0), column_variance)


def _axes_of_wide_table(rows: Rows, rank: int) -> Axes:
    """Principal axes of a table with more columns than rows, whose scatter would be larger than the data.

    Axes are found one by one, by passes over the rows, so that a sparse table is never filled in whole.
    """
    root = np.sqrt((np.ones(rows.n_rows) if rows.weight is None else rows.weight) / rows.total_weight)

    def between(vectors: FloatArray) -> FloatArray:
        """X Xᵀ v of weighted rows X, for vectors (n, m)."""
        scaled = root[:, None] * vectors.reshape(rows.n_rows, -1)
        return root[:, None] * _project_rows(rows, _weighted_sums(rows, scaled))

    products = LinearOperator((rows.n_rows,) * 2, matvec=between, matmat=between, dtype=np.float64)
    variances, vectors = _leading_eigenpairs(products, min(rank, rows.n_rows))
    directions = _weighted_sums(rows, root[:, None] * vectors).T
    # Rows that span fewer directions than are asked for leave the rest to chance: any that are orthogonal will do.
    found = np.linalg.qr(np.vstack([directions, np.eye(rank, rows.n_columns)]).T)[0].T[:rank]
    spread = np.append(np.maximum(variances, 0.0), np.zeros(rank - len(variances)))
    return Axes(_fix_signs(found), spread, float(column_variances(rows).mean()))


def _project_rows(rows: Rows, directions: FloatArray) -> FloatArray:
    """(n, m) rows along directions (D, m)."""
    if scipy.sparse.issparse(rows.table) and rows.scale is None:
        return np.asarray(rows.table @ directions - rows.offset @ directions)
    return np.concatenate([rows.block(part) @ directions for part in rows.slices])


def _weighted_sums(rows: Rows, share: FloatArray) -> FloatArray:
    """(D, m) sums of rows with shares (n, m)."""
    if scipy.sparse.issparse(rows.table) and rows.scale is None:
        return np.asarray(rows.table.T @ share - np.outer(rows.offset, share.sum(axis=0)))
    return sum_blocks(lambda part: np.asarray(rows.block(part).T @ share[part]), rows.slices)


def _leading_eigenpairs(A: Any, rank: int) -> tuple[FloatArray, FloatArray]:
    """(r,) largest eigenvalues of a symmetric matrix, or operator, and (n, r) their vectors, largest first.

    Of a large one by Lanczos' method, which takes a few dozen products where the whole decomposition takes thousands.
    """
    n = A.shape[0]
    if n > _LANCZOS_SIZE and rank < n // 8:
        try:
            values, vectors = eigsh(A, rank, v0=np.random.default_rng(0).standard_normal(n))
            return values[::-1], vectors[:, ::-1]
        except ArpackError:  # nothing varies, or directions cannot be told apart
            pass
    whole = A if isinstance(A, np.ndarray) else A @ np.eye(n)
    return largest_eigenpairs(whole, rank)


def _scatter(rows: Rows, part: slice) -> FloatArray:
    block, weight = _double_block(rows, part), rows.block_weight(part)
    return np.asarray(block.T @ (block if weight is None else block * weight[:, None]))


def _fix_signs(directions: FloatArray) -> FloatArray:
    """Make the leading entry of each direction positive."""
    return np.asarray(directions * leading_signs(directions)[:, None])


def leading_signs(directions: FloatArray) -> FloatArray:
    """(r,) sign of the leading entry of each row, 1 where all are zero.

    Leading is the first within 1 % of the largest, so that a tie such as (½, −½) has one answer
    whatever the rounding.
    """
    size = np.abs(directions)
    leading = np.argmax(size >= 0.99 * size.max(axis=1, keepdims=True), axis=1)
    sign = np.sign(directions[np.arange(len(directions)), leading])
    return np.where(sign == 0, 1.0, sign)


def principal_nodes(latent: LatentSpace, axes: Axes) -> FloatArray:
    """(K, D) images of the nodes in the principal plane: standardised embedding times √variance."""
    E = latent.embed(latent.nodes)
    spread = E.std(axis=0)
    E = (E - E.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    rank = min(E.shape[1], len(axes.directions))
    return np.asarray((E[:, :rank] * np.sqrt(axes.variances[:rank])) @ axes.directions[:rank])


class EmbeddedRows(NamedTuple):
    """Embedded rows: latent coordinates Z (m, Q), the centred rows (m, D), their weights (m,)."""

    latent: FloatArray
    rows: FloatArray
    weight: FloatArray


def spectral_placements(
    embedder: Embedder, rows: Rows, latent: LatentSpace, rng: np.random.Generator
) -> list[EmbeddedRows]:
    """Latent coordinates of at most 2000 rows by a spectral embedding, one set for each neighbourhood size.

    Rows are taken from the sorted unique rows, so that neither their order nor repeats matter.
    """
    unique, weight = distinct_rows(rows, rng)
    n_embedded = latent.n_embedded
    if len(unique) < n_embedded + 2:
        raise InvalidDataError(
            Message(
                f"init={embedder.name!r} needs at least {n_embedded + 2} different rows, got {len(unique)}",
                Advice("init", "pca", "use {}"),
            )
        )
    return [EmbeddedRows(fit_to_domain(latent, E), unique, weight) for E in embedder.embeddings(unique, n_embedded)]


def distinct_rows(rows: Rows, rng: np.random.Generator, most: int = _SPECTRAL_ROWS) -> tuple[FloatArray, FloatArray]:
    """At most ``most`` distinct centred rows (m, D), sorted, and their weights (m,)."""
    seen = _sample_rows(rows, rng)
    unique, index = np.unique(rows.block(seen), axis=0, return_inverse=True)
    weight = np.bincount(index.ravel(), weights=rows.block_weight(seen), minlength=len(unique)).astype(float)
    unique, weight = unique[weight > 0], weight[weight > 0]
    if len(unique) > most:
        chosen = np.sort(rng.choice(len(unique), most, replace=False))
        unique, weight = unique[chosen], weight[chosen]
    return unique, weight


def _sample_rows(rows: Rows, rng: np.random.Generator) -> Selection:
    """All rows of a small table; of a large one 20 000, chosen by their content and not by their order.

    Of wide tables fewer: rows are sorted filled in, however sparse they are.
    """
    most = min(_ROWS_TO_SORT, max(_NUMBERS_TO_SORT // rows.n_columns, _FEWEST_TO_SORT))
    if rows.n_rows <= most:
        return slice(None)
    direction = rng.standard_normal(rows.n_columns)
    mark = np.concatenate([rows.block(part).astype(np.float64) @ direction for part in rows.slices])
    # The trailing digits of a random combination of the columns serve as random numbers.
    scattered = np.modf(np.abs(mark) * (1e6 / max(float(np.abs(mark).max()), np.finfo(float).tiny)))[0]
    return np.sort(np.argpartition(scattered, most)[:most])


def evenly_by_radius(X: FloatArray, weight: FloatArray, n: int) -> IntArray:
    """(≤ n,) indices, rising, of rows that are even steps apart when all are sorted by distance from their mean.

    So chosen they depend on what is in the rows alone: not on their order, nor on where the table stands, how it is
    turned or in which units it is.
    """
    if len(X) <= n:
        return np.arange(len(X))
    gap = X - np.average(X, axis=0, weights=weight)
    ranked = np.lexsort((*X.T, np.einsum("nd,nd->n", gap, gap)))
    return np.sort(ranked[np.linspace(0, len(X) - 1, n).round().astype(int)])


def fit_to_domain(latent: LatentSpace, E: FloatArray) -> FloatArray:
    """Latent coordinates from an embedding in any units.

    Open axes are stretched to the domain's box; pairs that stand for an angle are centred and scaled to
    unit spread.
    """
    centered = (E - E.mean(axis=0)) / np.maximum(E.std(axis=0), np.finfo(float).tiny)
    extent = latent.domain.extent
    if extent.dimension < extent.n_columns:  # a sphere, which is no product of axes
        return latent.unembed(centered)[0]
    columns, row = [], 0
    for lo, hi in zip(extent.lower, extent.upper, strict=True):
        if np.isinf(lo):
            columns += [centered[:, row], centered[:, row + 1]]
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

    def sizes(self, X: FloatArray, wanted: Sequence[int] = _NEIGHBORHOOD_SIZES) -> list[int]:
        """Neighbourhood sizes to try, rising, none so small that the data fall apart."""
        return sorted({_connecting_neighbors(X, min(k, len(X) - 1)) for k in wanted})

    def embed(self, X: FloatArray, n_components: int, n_neighbors: int) -> FloatArray:
        """(n, n_components) coordinates of the rows."""
        return _coordinates(self.name, self.build(n_components, n_neighbors), X, n_components)

    def embeddings(self, X: FloatArray, n_components: int) -> list[FloatArray]:
        """Embeddings for several neighbourhood sizes."""
        return [self.embed(X, n_components, k) for k in self.sizes(X)]


@dataclass(frozen=True)
class RegularizedLLE(Embedder):
    """Locally linear embedding, regularised as by its authors: where there are more neighbours than columns.

    Elsewhere the weights of neighbours are determined, and a trace of 1e-9 only serves rows that lie in a flat.
    """

    def embed(self, X: FloatArray, n_components: int, n_neighbors: int) -> FloatArray:
        share = 1e-3 if n_neighbors > X.shape[1] else 1e-9
        return _coordinates(self.name, self.build(n_components, n_neighbors).set_params(reg=share), X, n_components)


@dataclass(frozen=True)
class ConnectedLaplacian(Embedder):
    """Laplacian eigenmaps; scikit-learn counts a row among its own neighbours, which may cost the graph a link."""

    def embed(self, X: FloatArray, n_components: int, n_neighbors: int) -> FloatArray:
        return super().embed(X, n_components, _connecting_neighbors(X, max(n_neighbors - 1, 1)) + 1)


@dataclass(frozen=True)
class KernelPCA:
    """Principal components of feature space, of a Gaussian kernel exp(−γ‖x − x'‖²) with 1/γ the mean of ‖x − x'‖²."""

    name: str = "kernel_pca"

    def sizes(self, X: FloatArray, wanted: Sequence[int] = ()) -> list[int]:
        """A single 0: this embedding has no neighbourhoods."""
        return [0]

    def embed(self, X: FloatArray, n_components: int, n_neighbors: int = 0) -> FloatArray:
        """(n, n_components) coordinates of the rows."""
        from sklearn.decomposition import KernelPCA as Transformer

        # Two rows are twice the total variance apart on average.
        gamma = 0.5 / max(float(X.var(axis=0).sum()), np.finfo(float).tiny)
        transformer = Transformer(n_components, kernel="rbf", gamma=gamma, eigen_solver="dense")
        return _coordinates(self.name, transformer, X, n_components)


def _coordinates(name: str, transformer: Any, X: FloatArray, n_components: int) -> FloatArray:
    """(n, n_components) coordinates of rows; an error where there are fewer, as of rows all equally far apart."""
    try:
        found = np.asarray(transformer.fit_transform(X), dtype=np.float64)
    except ValueError as error:  # it may come upon no axes at all
        raise InvalidDataError(_no_axes(name, 0, n_components)) from error
    if found.shape[1] < n_components:
        raise InvalidDataError(_no_axes(name, found.shape[1], n_components))
    return found


def _no_axes(name: str, n_found: int, n_components: int) -> Message:
    return Message(
        f"init={name!r} needs rows that are nearer to some than to others, and finds {n_found} of {n_components} "
        "axes in these",
        Advice("init", "pca", "use {}"),
    )


def principal_coordinates(X: FloatArray, weight: FloatArray, n_components: int) -> FloatArray:
    """(n, min(Q, D)) coordinates of the rows in their principal plane."""
    rows = as_rows(X, weighted_mean(X, weight), weight)
    return np.asarray(rows.block(slice(None)) @ principal_axes(rows, n_components).directions.T)


def embed_all(
    embed: Callable[[FloatArray], FloatArray], X: FloatArray, weight: FloatArray, most: int = _SPECTRAL_ROWS
) -> FloatArray:
    """(n, Q) an embedding of all rows: of some by ``embed``, spread evenly, and of the others by their neighbours."""
    some = evenly_by_radius(X, weight, most)
    others = np.setdiff1d(np.arange(len(X)), some)
    found = embed(X[some])
    Z = np.empty((len(X), found.shape[1]))
    Z[some] = found
    if len(others):
        Z[others] = extend(X[some], found, X[others])
    return Z


def extend(X: FloatArray, Z: FloatArray, new: FloatArray) -> FloatArray:
    """(m, Q) coordinates of new rows from those Z (n, Q) of the rows X: Σ_k a_k z_k over the nearest.

    This extends a locally linear embedding (Saul & Roweis, 2003). The weights a add up to 1 and minimise ‖x − Σ a_k
    x_k‖² + 1e-3 Σ_k ‖x − x_k‖² Σ a², so that what is linear in the data stays nearly so, and a row that is among X gets
    nearly its own coordinates.
    """
    from sklearn.neighbors import NearestNeighbors

    tree = NearestNeighbors(n_neighbors=min(_EXTENSION_NEIGHBORS, len(X))).fit(X)
    out = np.empty((len(new), Z.shape[1]))
    for part in as_rows(new, width=_EXTENSION_NEIGHBORS * new.shape[1]).slices:
        near = tree.kneighbors(new[part], return_distance=False)
        gap = X[near] - new[part][:, None, :]
        gram = np.einsum("mkd,mld->mkl", gap, gap)
        ridge = 1e-3 * np.trace(gram, axis1=1, axis2=2)
        gram += np.maximum(ridge, np.finfo(float).tiny)[:, None, None] * np.eye(near.shape[1])
        share = np.linalg.solve(gram, np.ones((*near.shape, 1)))[..., 0]
        out[part] = np.einsum("mk,mkq->mq", share / share.sum(axis=1, keepdims=True), Z[near])
    return out


def _connecting_neighbors(X: FloatArray, n_neighbors: int) -> int:
    """Number of neighbours, doubled until their graph is connected: no embedding can order separate pieces."""
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
    "laplacian": ConnectedLaplacian("laplacian", _laplacian),
}

SPECTRAL: dict[str, Embedder | KernelPCA] = {**EMBEDDERS, "lle": RegularizedLLE("lle", _lle), "kernel_pca": KernelPCA()}
"""Embeddings for latent points that are parameters of their own."""
