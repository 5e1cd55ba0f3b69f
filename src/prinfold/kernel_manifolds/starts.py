"""Initial latent points: embeddings of the rows, each brought to its best scale, of which the best is chosen.

Steps 1 to 3 of section 2.3 of Meinicke et al. (2005). An embedding has no units; those of
latent points are the bandwidth of their kernel. So each axis is brought to unit variance and multiplied
by a scale; see :mod:`prinfold.kernel_manifolds.start_scales`.

Of many rows some, spread evenly, stand for all while embeddings are compared; the chosen one is scaled with all rows,
because how wide kernels should be depends on how many rows there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import (
    SPECTRAL,
    embed_all,
    evenly_by_radius,
    leading_signs,
    principal_coordinates,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, sequence_of, text, whole_numbers
from prinfold.kernel_manifolds.start_scales import Error, ErrorOf, NeighborFloor, ScaledCoordinates, ScaleSearch
from prinfold.numerics.radial_kernels import Profile
from prinfold.rows.rows import blas_on_one_thread

NEIGHBORHOOD_SIZES = (4, 6, 8, 10, 12, 14)
"""Neighbourhood sizes tried; Meinicke et al. take 4 to 14 for a spiral and 2 to 21 for digits."""

LARGE_TABLE_SIZES = (6, 10, 14)
"""The same for more than 1000 rows, among which neighbours are near enough for embeddings to differ less."""

STARTS = ("pca", *SPECTRAL, "tsne", "loop")
"""Embeddings by name; the last is for closed curves."""

TSNE_DIMENSIONS = 3
"""Dimensions up to which t-SNE is fast."""

_PERPLEXITY = 30.0
_TSNE_STEPS = 300
"""Effective neighbours and steps of t-SNE. Of 1797 digits the trustworthiness was 0.989 after 300 steps and 0.992 after
500, which take half as long again."""

_MOST_EMBEDDED_ROWS = 2000
"""Rows that an embedding sees; the others follow their neighbours among them."""

_MOST_COMPARED_ROWS = 1000
"""Rows on which embeddings are compared, and from which on there are many."""

_LEAST_RELATIVE_SPREAD = 1e-8
"""Spread of an axis, relative to the widest, below which it is rounding."""

_TIE_RELATIVE_ERROR = 1e-6
"""Relative difference below which errors are equal, and the earlier candidate is taken."""


# ------------------------------------------------------------------------------------------------- candidates


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Initial latent points that were compared, in the order of the attempts.

    Parameters
    ----------
    names : tuple of str, C of them
        The embeddings.
    neighbors : array of shape (C,)
        Number of neighbours of each; 0 for those that use none.
    scales : array of shape (C, Q)
        Factors of the unit-variance coordinates; 0 for axes without extent.
    start_errors : array of shape (C,)
        Errors with one scale for all axes, found by likelihood or given.
    errors : array of shape (C,)
        Errors after the search for the scale of each axis.
    failures : tuple of str
        Why the other embeddings gave no candidate.
    """

    _kinds: ClassVar[Kinds] = {
        "names": sequence_of(text, "C"),
        "neighbors": whole_numbers("C", least=0),
        "scales": numbers("C", "Q"),
        "start_errors": numbers("C"),
        "errors": numbers("C"),
        "failures": sequence_of(text),
    }

    names: tuple[str, ...]
    neighbors: IntArray
    scales: FloatArray
    start_errors: FloatArray
    errors: FloatArray
    failures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(part) for part in (self.names, self.neighbors, self.scales, self.start_errors, self.errors)}
        if len(lengths) != 1 or not self.names:
            raise ValueError(f"the parts of a table of candidates do not fit together: {sorted(lengths)}")

    @property
    def chosen(self) -> int:
        """The candidate with the lowest error; of those within rounding of it, the first."""
        lowest = self.errors.min()
        return int(np.argmax(self.errors <= lowest + _TIE_RELATIVE_ERROR * abs(lowest)))

    def __str__(self) -> str:
        best = self.chosen
        words = candidate_label(self.names[best], int(self.neighbors[best]))
        lines = [
            f"{words}, error {self.errors[best]:.6g}, chosen among:",
            "  start        neighbours  error at one scale  after the search  scales",
        ]
        for c, name in enumerate(self.names):
            scales = ", ".join(f"{scale:.3g}" for scale in self.scales[c])
            size = str(self.neighbors[c]) if self.neighbors[c] else "—"
            numbers = f"{size:>10}  {self.start_errors[c]:18.6g}  {self.errors[c]:16.6g}"
            lines.append(f"  {name:11}  {numbers}  {scales}{'  ← chosen' if c == best else ''}")
        return "\n".join(lines + [f"  {reason}" for reason in self.failures])

    def __repr__(self) -> str:
        best = self.chosen
        words = candidate_label(self.names[best], int(self.neighbors[best]))
        return f"Candidates({words}, error={self.errors[best]:.4g}, {len(self.names)} compared)"


def candidate_label(name: str, n_neighbors: int) -> str:
    """Name of a candidate in a table."""
    return f"{name} ({n_neighbors} neighbours)" if n_neighbors else name


class UKRStart(NamedTuple):
    """Latent points (n, Q) in bandwidths, and how they were chosen."""

    latent: FloatArray
    candidates: Candidates


# --------------------------------------------------------------------------------------------------- choosing


def default_sizes(n: int) -> tuple[int, ...]:
    """Neighbourhood sizes to try for n rows."""
    return NEIGHBORHOOD_SIZES if n <= _MOST_COMPARED_ROWS else LARGE_TABLE_SIZES


def choose_start(
    X: FloatArray,
    weight: FloatArray,
    n_components: int,
    error: Error,
    profile: Profile,
    *,
    starts: Sequence[str] = ("pca", "lle"),
    sizes: Sequence[int] = NEIGHBORHOOD_SIZES,
    given: FloatArray | None = None,
    bandwidth: float | None = None,
    floor: NeighborFloor | None = None,
    error_of: ErrorOf | None = None,
) -> UKRStart:
    """Embed rows (n, D) by every method in ``starts``, scale each embedding, and choose by the lowest ``error``.

    ``error(X)`` judges latent points (n, Q) of the rows in their order. ``given`` (n, Q) coordinates are a candidate
    like the others. With a ``bandwidth`` all scales are 1/bandwidth, and nothing is searched for. An embedding that
    fails is recorded; at least one must succeed. Neither the order of rows nor repeats of a row matter.

    Of more than 1000 different rows, 1000 that are chosen evenly by their distance from the mean are compared, where
    ``error_of(rows)`` can judge some rows by themselves; numbers in the table are those of them.
    """
    rows, index = np.unique(X, axis=0, return_inverse=True)
    index = index.reshape(-1)
    mass: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
    if given is not None:
        given = _mean_of_repeats(given, index, weight)
    whole = ScaleSearch(lambda Z: error(Z[index]), mass, profile, bandwidth, floor or NeighborFloor())
    some = evenly_by_radius(rows, mass, len(rows) if error_of is None else _MOST_COMPARED_ROWS)
    judge = whole if error_of is None or len(some) == len(rows) else whole.over_some(some, index, error_of)
    found, failures = list[_ScaledEmbedding](), list[str]()
    for name, size, embed in proposals(rows, mass, n_components, starts, sizes, given):
        try:
            Z = orient_axes(normalize(pad_axes(embed_quietly(embed), n_components), mass), rows, mass)
            found.append(_ScaledEmbedding(name, size, Z, judge.scale(Z[some])))
        except (ArithmeticError, RuntimeError, ValueError) as problem:
            failures.append(f"{candidate_label(name, size)} failed: {problem}")
    if not found:
        raise InvalidDataError(
            f"no embedding could start the latent points: {'; '.join(failures)}. Try another init or n_neighbors"
        )
    table = _table(found, failures)
    best = found[table.chosen]
    scaled = best.scaled if judge is whole else whole.scale(best.coordinates)
    return UKRStart(scaled.latent[index], table)


def embed_quietly(embed: Callable[[], FloatArray]) -> FloatArray:
    """Coordinates of an embedding, without its warnings and with BLAS on one thread.

    Its error decides, whatever it warns of. On a machine that others use, more threads take many times as long.
    """
    with warnings.catch_warnings(), blas_on_one_thread():
        warnings.simplefilter("ignore")
        return embed()


class _ScaledEmbedding(NamedTuple):
    """A normalised embedding of all rows, and its scales on the rows compared."""

    name: str
    size: int
    coordinates: FloatArray
    scaled: ScaledCoordinates


def _table(found: Sequence[_ScaledEmbedding], failures: Sequence[str]) -> Candidates:
    return Candidates(
        tuple(each.name for each in found),
        np.array([each.size for each in found]),
        np.array([each.scaled.scales for each in found]),
        np.array([each.scaled.start_error for each in found]),
        np.array([each.scaled.error for each in found]),
        tuple(failures),
    )


def proposals(
    X: FloatArray,
    weight: FloatArray,
    n_components: int,
    starts: Sequence[str],
    sizes: Sequence[int],
    given: FloatArray | None,
) -> Iterator[tuple[str, int, Callable[[], FloatArray]]]:
    """Name, neighbourhood and maker of each embedding."""
    unknown = [name for name in starts if name not in STARTS]
    if unknown:
        raise InvalidParameterError(f"starts must be among {', '.join(STARTS)}, got {unknown[0]!r}")
    if given is not None:
        yield "given", 0, lambda: given
    # An embedding has no more axes than the rows have columns: further ones would be noise.
    n_axes = min(n_components, X.shape[1])
    some = X[evenly_by_radius(X, weight, _MOST_EMBEDDED_ROWS)]
    for name in starts:
        if name == "pca":
            yield name, 0, partial(principal_coordinates, X, weight, n_axes)
        elif name == "tsne":
            embed = partial(embed_by_tsne, n_components=n_axes)
            yield name, 0, partial(embed_all, embed, X, weight, _MOST_EMBEDDED_ROWS)
        elif name == "loop":
            yield from _loops(X, weight, n_components, sizes, some)
        elif len(X) < n_axes + 2:
            yield name, 0, partial(_refuse_few_rows, len(X), n_axes + 2)
        else:
            for size in SPECTRAL[name].sizes(some, sizes):
                embed = partial(SPECTRAL[name].embed, n_components=n_axes, n_neighbors=size)
                yield name, size, partial(embed_all, embed, X, weight, _MOST_EMBEDDED_ROWS)


def embed_by_tsne(X: FloatArray, n_components: int) -> FloatArray:
    """(n, n_components) coordinates that keep the neighbours of each row, by t-SNE from the principal plane.

    It tears a surface rather than fold it, so that rows of different groups do not come to lie on one another.
    """
    from sklearn.manifold import TSNE

    plane = principal_coordinates(X, np.ones(len(X)), n_components)
    plane = 1e-4 * plane / max(float(plane[:, 0].std()), np.finfo(float).tiny)
    transformer = TSNE(
        n_components,
        perplexity=min(_PERPLEXITY, (len(X) - 1) / 3),
        init=plane.astype(np.float32),
        max_iter=_TSNE_STEPS,
        method="barnes_hut" if n_components <= TSNE_DIMENSIONS else "exact",
        random_state=0,
    )
    # Its sums depend on the number of threads, which wait for one another on a machine that others use.
    with threadpool_limits(1, user_api="openmp"):
        return np.asarray(transformer.fit_transform(X), dtype=np.float64)


def _loops(
    X: FloatArray, weight: FloatArray, n_components: int, sizes: Sequence[int], some: FloatArray
) -> Iterator[tuple[str, int, Callable[[], FloatArray]]]:
    """Closed curves laid out in a plane by Isomap and cut open; in one dimension Isomap would fold them flat."""
    if n_components != 1 or min(len(X) - 2, X.shape[1]) < 2:
        yield "loop", 0, _refuse_loop
        return
    isomap = SPECTRAL["isomap"]
    for size in isomap.sizes(some, sizes):
        embed = partial(isomap.embed, n_components=2, n_neighbors=size)
        yield "loop", size, partial(_cut_loop, partial(embed_all, embed, X, weight, _MOST_EMBEDDED_ROWS))


def _cut_loop(embed: Callable[[], FloatArray]) -> FloatArray:
    """(n, 1) the angle of plane coordinates about their mean, counted from the widest gap between neighbours."""
    plane = embed()
    x, y = (plane - plane.mean(axis=0)).T
    angle = np.arctan2(y, x)
    ranked = np.sort(angle)
    gap = np.diff(ranked, append=ranked[0] + 2 * np.pi)
    after = ranked[(int(gap.argmax()) + 1) % len(ranked)]
    return np.asarray(np.mod(angle - after, 2 * np.pi)[:, None])


def _refuse_loop() -> FloatArray:
    raise InvalidDataError("only a curve, a surface of one dimension in two columns or more, can close")


def _refuse_few_rows(n_rows: int, least: int) -> FloatArray:
    raise InvalidDataError(f"{least} different rows are needed, got {n_rows}")


def _mean_of_repeats(Z: FloatArray, index: IntArray, weight: FloatArray) -> FloatArray:
    """(u, Q) mean coordinates of the rows that are the same."""
    Z = np.asarray(Z, dtype=np.float64)
    if Z.ndim != 2 or len(Z) != len(index):
        raise InvalidDataError(f"given coordinates must have a row for each of {len(index)} rows, got shape {Z.shape}")
    total = np.bincount(index, weights=weight)
    return np.stack([np.bincount(index, weights=weight * column) / total for column in Z.T], axis=1)


# --------------------------------------------------------------------------------------------------- normalising


def pad_axes(Z: FloatArray, n_components: int) -> FloatArray:
    """(n, Q) coordinates filled up with axes of zeros."""
    if not np.isfinite(Z).all():
        raise InvalidDataError("its coordinates are not finite")
    if Z.shape[1] > n_components:
        raise InvalidDataError(f"it has {Z.shape[1]} axes, more than the {n_components} asked for")
    return np.pad(Z, ((0, 0), (0, n_components - Z.shape[1])))


def orient_axes(Z: FloatArray, X: FloatArray, weight: FloatArray) -> FloatArray:
    """(n, Q) coordinates with signs fixed: each axis rises with the data column that it follows most."""
    slope = np.einsum("n,nq,nd->qd", weight, Z, X - np.average(X, axis=0, weights=weight))
    return np.asarray(Z * leading_signs(slope))


def normalize(Z: FloatArray, weight: FloatArray) -> FloatArray:
    """Centred coordinates with unit variance along each axis; 0 along axes without extent."""
    gap = Z - np.average(Z, axis=0, weights=weight)
    spread = np.sqrt(np.average(gap**2, axis=0, weights=weight))
    extent = spread > _LEAST_RELATIVE_SPREAD * max(float(spread.max(initial=0.0)), np.finfo(float).tiny)
    return np.asarray(np.where(extent, gap / np.where(extent, spread, 1.0), 0.0))
