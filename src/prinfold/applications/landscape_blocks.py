"""Landscapes of tables that are read block by block: labels and targets are a column, and all that is kept adds up.

The map is fitted to the other columns. Every further pass hands pieces of the source to work that can be sent to where
the rows are, and adds up what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import FloatArray
from prinfold.applications import landscapes
from prinfold.applications.landscape_sums import (
    NodeSums,
    Responsibilities,
    class_sums,
    leave_one_out_squares,
    node_sums,
    sum_variance_between,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import ColumnReader, Key, take_columns
from prinfold.rows.dask_partitions import LabelledPiece
from prinfold.rows.streams import StreamMoments, moments_of
from prinfold.validation.refusals import column_values
from prinfold.validation.tables import require_classes, rows_of

_MOST_CLASSES = 10_000
"""Different labels that are kept over all blocks; each is a column of numbers at every node."""


LabelledWork = Callable[[Any, Any, Any, "FloatArray | None"], Any]
"""Makes something that adds up of a piece, the rows of it that count, their labels and their weights."""


@dataclass(frozen=True)
class LabelledBlocks:
    """Blocks of features, and what hands work over to each piece of their source together with its labels.

    ``sum(work)`` is Σ over pieces of ``work(piece, kept, labels, weight)``, for the rows ``kept`` that have a weight.
    ``n_columns`` is how many columns what is to be predicted has, 0 for a column by itself.
    """

    features: Blocks
    sum: Callable[[LabelledWork], Any]
    n_columns: int

    @classmethod
    def of(cls, blocks: Blocks, y: Any, *, several: bool) -> LabelledBlocks:
        """The blocks without the columns that ``y`` names."""
        names = list(y) if several and isinstance(y, list | tuple) else [y]
        if not names or not all(isinstance(each, str | int) and not isinstance(each, bool) for each in names):
            raise InvalidParameterError(
                "with Blocks and Dask frames y is the name or number of a column of the source, whose rows are never "
                f"all here, or with Dask collections a Dask array or series; got {type(y).__name__}"
            )
        features, wanted = blocks.without(names, "y")
        n_columns = len(wanted) if isinstance(y, list | tuple) else 0
        return cls(features, lambda work: blocks.sum_pieces(_OnPieces(wanted, blocks.weight, work)), n_columns)

    @classmethod
    def of_collections(cls, X: Any, y: Any, *, several: bool) -> LabelledBlocks:
        """Dask collections of rows and of what is to be predicted, cut in the same places."""
        if y.ndim > (2 if several else 1):
            raise InvalidDataError(f"y has {y.ndim} dimensions; give the class of each row, as one column")
        features, _ = Blocks(X).without((), "y")
        partitions = features.partitions
        assert partitions is not None
        n_columns = int(y.shape[1]) if y.ndim > 1 else 0
        return cls(features, lambda work: partitions.with_labels(y).sum_numbered(_OnLabelled(work)), n_columns)


@dataclass(frozen=True)
class _OnLabelled:
    """Work on numbered partitions with labels beside them."""

    work: LabelledWork

    def __call__(self, numbered: tuple[int, LabelledPiece]) -> Any:
        table, labels = numbered[1]
        values = _as_array(labels)
        return self.work(table, None, values.reshape(len(values), -1), None)


@dataclass(frozen=True)
class _OnPieces:
    """Work on pieces, with labels and weights apart."""

    wanted: tuple[Key, ...]
    weight: Key | None
    work: LabelledWork

    def __call__(self, piece: Any) -> Any:
        taken = take_columns(piece, self.wanted, self.weight)
        labels, weight = _as_array(taken.table), taken.weight
        if weight is None or (weight > 0).all():
            return self.work(piece, None, labels, weight)
        kept = np.flatnonzero(weight > 0)
        return self.work(piece, kept, labels[kept], weight[kept])


def _as_array(table: Any) -> Any:
    """(n, m) values of some columns."""
    if not nw.dependencies.is_into_dataframe(table):
        return np.asarray(table)
    columns = [np.asarray(column_values(each)) for each in nw.from_native(table, eager_only=True).iter_columns()]
    return np.stack(columns, axis=1)


# ------------------------------------------------------------------------------------------------------- sums


@dataclass(frozen=True)
class ArraySums:
    """Arrays that add up, each with its own."""

    arrays: tuple[FloatArray, ...]

    def __add__(self, other: ArraySums) -> ArraySums:
        return ArraySums(tuple(a + b for a, b in zip(self.arrays, other.arrays, strict=True)))


@dataclass(frozen=True)
class FoundClasses:
    """The labels of some rows, sorted, and the weight of each."""

    labels: Any
    mass: FloatArray

    def __add__(self, other: FoundClasses) -> FoundClasses:
        labels = np.union1d(self.labels, other.labels)
        if len(labels) > _MOST_CLASSES:
            raise _too_many_classes()
        mass = np.zeros(len(labels))
        for each in (self, other):
            mass[np.searchsorted(labels, each.labels)] += each.mass
        return FoundClasses(labels, mass)


def find_classes(piece: Any, kept: Any, labels: Any, weight: FloatArray | None) -> FoundClasses:
    """The labels of a piece."""
    try:
        column = labels[:, 0]
        missing = np.array([each is None or each != each for each in column.tolist()])  # noqa: PLR0124 - NaN
        if missing.any():
            raise ValueError("Input y contains NaN: leave out rows whose class is not known")
        if len(column):
            require_classes(column.astype(str) if column.dtype == object else column)
        found, codes = np.unique(column, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(str(error)) from error
    if len(found) > _MOST_CLASSES:
        raise _too_many_classes()
    return FoundClasses(found, np.bincount(codes, weight, minlength=len(found)).astype(np.float64))


def _too_many_classes() -> InvalidDataError:
    return InvalidDataError(
        f"y has more than {_MOST_CLASSES} different labels, which are too many for classes; use GTMRegressor for "
        "numbers"
    )


@dataclass(frozen=True)
class OnMap:
    """A fitted map, and how it reads the pieces of a source: as numbers, or with whatever their columns hold."""

    surface: Any
    reader: ColumnReader | None
    columns: tuple[Key, ...]

    @classmethod
    def of(cls, surface: Any, features: Blocks, *, frames: bool) -> OnMap:
        """The reading of a source's features that a map needs."""
        assert features.columns is not None
        return cls(surface, None if frames else features.reader, features.columns)

    def answers(self, piece: Any, kept: Any) -> Responsibilities:
        """The function from a slice of the rows of a piece that are kept to their responsibilities (b, K)."""
        whole = take_columns(piece, self.columns, None).table if self.reader is None else self.reader.read(piece).table
        whole = whole if kept is None else rows_of(whole, kept)
        return lambda part: np.asarray(self.surface.responsibilities(rows_of(whole, part)), dtype=np.float64)


@dataclass(frozen=True)
class ClassesAtNodes:
    """Mass and squares of each class at each node."""

    on: OnMap
    classes: Any

    def __call__(self, piece: Any, kept: Any, labels: Any, weight: FloatArray | None) -> ArraySums:
        codes = np.searchsorted(self.classes, labels[:, 0])
        n_nodes = self.on.surface.latent_.n_nodes
        return ArraySums(class_sums(self.on.answers(piece, kept), n_nodes, codes, len(self.classes), weight))


# ----------------------------------------------------------------------------------------------------- targets


def _targets(labels: Any) -> FloatArray:
    """(n, m) targets as numbers; what is not there is NaN."""
    try:
        found = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"y cannot be used: {error}") from error
    if np.isinf(found).any():
        raise InvalidDataError("y cannot be used: Input y contains infinity")
    return found


def find_moments(piece: Any, kept: Any, labels: Any, weight: FloatArray | None) -> StreamMoments:
    """Those of the targets of a piece."""
    return moments_of(_targets(labels), weight)


@dataclass(frozen=True)
class _OfTargets:
    """Work on targets in units of their own spread."""

    on: OnMap
    center: FloatArray
    scale: FloatArray

    def scaled(self, labels: Any) -> FloatArray:
        return np.asarray((_targets(labels) - self.center) / np.where(self.scale > 0, self.scale, 1.0))


@dataclass(frozen=True)
class TargetsAtNodes(_OfTargets):
    """Sums of targets at each node."""

    def __call__(self, piece: Any, kept: Any, labels: Any, weight: FloatArray | None) -> ArraySums:
        return ArraySums(
            node_sums(self.on.answers(piece, kept), self.on.surface.latent_.n_nodes, self.scaled(labels), weight)
        )


@dataclass(frozen=True)
class ErrorsAtNodes(_OfTargets):
    """Errors of rows that are left out, and how far apart the means of the nodes of a row are."""

    sums: NodeSums
    landscape: landscapes.PropertyLandscape

    def __call__(self, piece: Any, kept: Any, labels: Any, weight: FloatArray | None) -> ArraySums:
        u, ask, land = self.scaled(labels), self.on.answers(piece, kept), self.landscape
        errors = leave_one_out_squares(ask, self.sums, u, weight, land.pseudo_count)
        return ArraySums((errors, sum_variance_between(ask, land.u_mean, land.known, u, weight)))


def property_landscape_of_blocks(
    blocks: LabelledBlocks, on: OnMap, pseudo_count: float, min_mass: float
) -> landscapes.PropertyLandscape:
    """The landscape of the targets of all blocks: three passes after the fit of the map."""
    moments: StreamMoments = blocks.sum(find_moments)
    if not (moments.weight > 0).all():
        raise InvalidDataError(
            "Input y contains NaN only, in at least one of its columns; give the numbers that are known"
        )
    deviation = np.sqrt(moments.variance)
    constant = deviation <= 8 * np.finfo(float).eps * np.maximum(np.abs(moments.mean), deviation)
    center, scale = moments.mean, np.where(constant, 0.0, deviation)
    sums = NodeSums(*blocks.sum(TargetsAtNodes(on, center, scale)).arrays)
    nothing = np.zeros_like(sums.mass)
    found = landscapes.PropertyLandscape(*sums, nothing, nothing, center, scale, float(pseudo_count), float(min_mass))
    left_out, apart = blocks.sum(ErrorsAtNodes(on, center, scale, sums, found)).arrays
    return replace(found, left_out=left_out, apart=apart)
