"""Inputs of pictures: a fitted model, alone or in a pipeline, and rows with their classes and values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray
from prinfold.base.pipeline_steps import linear_form, undo
from prinfold.exceptions import InvalidDataError, InvalidParameterError, PrinfoldError, UnsupportedInputError, shown
from prinfold.latent import LatentSpace
from prinfold.latent.branch_graph import BranchGraph
from prinfold.latent.drawing import Drawing, LatentLayout
from prinfold.methods import shape_word
from prinfold.rows.rows import dense
from prinfold.validation.refusals import (
    column_labels,
    column_values,
    declared_levels,
    refuse_containers,
    refuse_dates,
    refuse_text,
)
from prinfold.validation.tables import as_numbers

_MOST_CLASSES = 60
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def drawing_of(latent: LatentSpace) -> Drawing:
    """The drawing of a latent space; an error where it has none."""
    if latent.drawing is None and not latent.charts:
        raise InvalidParameterError(
            f"a latent space of kind {type(latent).__name__} does not say how it is drawn; give the class a property "
            "drawing, such as prinfold.latent.drawing.FlatDrawing"
        )
    if latent.drawing is None:
        raise InvalidParameterError(
            "a mixture has several maps; draw them all with plot.mixture, or one of them, model.component(j)"
        )
    return latent.drawing


def layout_of(latent: LatentSpace, *, flat: bool = False) -> LatentLayout:
    """The layout of a latent space on paper; ``flat`` keeps to the first two axes of three or more."""
    return drawing_of(latent).layout(flat)


@dataclass(frozen=True)
class FittedSurface:
    """A fitted estimator, with the scaling steps in front of it when it stands at the end of a pipeline."""

    model: Any
    before: Any = None
    feature_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, thing: Any) -> FittedSurface:
        steps = getattr(thing, "steps", None)
        model, before = (thing[-1], thing[:-1] if len(steps) > 1 else None) if steps else (thing, None)
        if not isinstance(model, BaseEstimator):
            words = f"a picture needs a fitted model, alone or at the end of a pipeline, got {shown(thing)}"
            raise UnsupportedInputError(words)
        check_is_fitted(model)
        return cls(model, before, tuple(column_labels(thing, thing.n_features_in_)))

    @property
    def word(self) -> str:
        """The word for what was fitted: a surface, a curve, a ridge or a tree."""
        return shape_word(type(self.model), self.latent.dimension)

    @property
    def branches(self) -> BranchGraph | None:
        """The branches of a tree or of ridges; None for a single curve and for surfaces."""
        drawing = self.latent.drawing
        if drawing is None or drawing.pieces is None or self.word == "curve":
            return None
        graph: BranchGraph = self.model.rooted_.graph
        return graph

    def refuse_levels(self) -> None:
        """Raise an error where columns are levels or counts, among which a surface has no place."""
        self.require_map()
        odd = [column for column in self.model._column_kinds or () if not column.traits.gaussian]
        if odd:
            raise InvalidParameterError(
                f"column {odd[0].name!r} is {odd[0].kind}, so the surface has no place among the rows; draw "
                "plot.latent_map, with a column as labels= or values="
            )

    @property
    def latent(self) -> LatentSpace:
        self.require_map()
        latent: LatentSpace = self.model.latent_
        return latent

    def require_map(self) -> None:
        """Raise an error where the model is not of one surface."""
        if not hasattr(self.model, "latent_"):
            words = (
                f"{type(self.model).__name__} has no latent space to draw; give a model of one surface, such as a GTM"
            )
            raise UnsupportedInputError(words)

    def rows(self, X: Any) -> Any:
        """Rows as the estimator itself takes them."""
        return X if self.before is None else self.before.transform(X)

    def coordinates(self, X: Any) -> FloatArray:
        """(n, Q) latent coordinates of rows."""
        return join_sequences(self.model.transform(self.rows(X)))

    def modes(self, X: Any) -> FloatArray:
        """(n, Q) posterior modes of rows."""
        if not hasattr(self.model, "posterior_mode"):
            raise InvalidParameterError(f"{type(self.model).__name__} has no posterior, so there are no modes to draw")
        return join_sequences(self.model.posterior_mode(self.rows(X)))

    def back(self, Y: FloatArray) -> FloatArray:
        """Points of the surface in the user's own units."""
        steps = [] if self.before is None else self.before.steps
        return undo(steps, Y, "draw pipeline[-1] with the rows pipeline[:-1].transform(X) instead")

    def straight(self) -> tuple[FloatArray, FloatArray] | None:
        """Inverse of the steps before the model, y·matrix (D, D') + shift (D',); None where they bend columns."""
        return linear_form(self.back, self.model.n_features_in_)

    def log_likelihood(self, X: Any) -> FloatArray | None:
        """(n,) log-density of rows in the user's own units; None where there is none, or steps before it bend."""
        if not hasattr(self.model, "score_samples"):
            return None
        found = join_sequences(self.model.score_samples(self.rows(X)))
        if self.before is None:
            return found
        try:
            straight = self.straight()
        except PrinfoldError:  # a step that cannot be undone
            return None
        if straight is None or straight[0].shape[0] != straight[0].shape[1]:
            return None
        scale = np.diag(straight[0])
        if np.count_nonzero(straight[0] - np.diag(scale)) == 0:  # each column counts where it is there
            return np.asarray(found - ~np.isnan(numbers_of(X)) @ np.log(np.abs(scale)))
        return np.asarray(found - np.linalg.slogdet(straight[0])[1])

    def points(self, Z: FloatArray) -> FloatArray:
        return self.back(np.asarray(self.model.inverse_transform(Z, extrapolate=True), dtype=float))


def join_sequences(answers: Any) -> FloatArray:
    """Answers of a model for rows in one array; of several sequences one after the other."""
    return np.concatenate(answers).astype(float) if isinstance(answers, list) else np.asarray(answers, dtype=float)


def numbers_of(X: Any) -> FloatArray:
    """(n, D) rows as numbers; tables in a list, one for each sequence, one after the other."""
    if isinstance(X, list | tuple) and X and getattr(X[0], "ndim", 1) == 2:
        return np.concatenate([numbers_of(each) for each in X])
    refuse_containers(X, accept_sparse=True)
    refuse_dates(X)
    try:
        found = as_numbers("the rows to draw", _entries(X))
    except (TypeError, ValueError) as error:
        refuse_text(X)
        raise InvalidDataError(f"the rows to draw cannot be used: {error}") from error
    if found.ndim == 0:
        raise InvalidDataError(f"the rows to draw must be a table, got {shown(X)}")
    return found


def _entries(X: Any) -> Any:
    """Entries of a table as NumPy has them; of a frame with whole numbers of 128 bits, column by column."""
    if nw.dependencies.is_polars_dataframe(X):
        return np.stack([column_values(each) for each in nw.from_native(X).iter_columns()], axis=1)
    return X.to_numpy() if hasattr(X, "to_numpy") else dense(X)


def columns_of(X: Any, n_columns: int) -> FloatArray:
    """(n, D) rows as numbers, of so many columns."""
    found = numbers_of(X)
    if found.ndim != 2 or found.shape[1] != n_columns or not np.isfinite(found).all():
        raise InvalidDataError(
            f"the rows to draw must be finite and have {n_columns} columns, got an array of shape {found.shape}"
        )
    return found


def table_of(X: Any) -> Any:
    """A table of rows, or of one row that is given as a vector."""
    if _n_axes(X) != 1:
        return X
    return X.to_frame().T if hasattr(X, "to_frame") and hasattr(X, "index") else np.asarray(X)[None]


def n_rows_of(X: Any) -> int:
    """Number of rows of a table."""
    _n_axes(X)
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def _n_axes(X: Any) -> int:
    """1 of a vector, 2 of a table; an error of what has none, or rows of unequal length."""
    try:
        n_axes = len(X.shape) if hasattr(X, "shape") else np.ndim(X)
    except ValueError as error:
        raise InvalidDataError(f"the rows to draw cannot be used: {error}") from error
    if n_axes == 0:
        raise InvalidDataError(f"the rows to draw must be a table, got {shown(X)}")
    return n_axes


def row_names(names: Any, X: Any, n: int) -> list[str] | None:
    """Names of rows: those given, those of a pandas frame whose index is no mere count, or None for their numbers."""
    index: Any = getattr(X, "index", None)
    if names is None and (index is None or callable(index) or _counts_only(index)):
        return None
    if isinstance(names, str):
        raise InvalidDataError(f"names must hold one name per row, got the word {names!r}; pass the column itself")
    try:
        found = [str(each) for each in (index if names is None else names)]
    except TypeError:
        raise InvalidDataError(f"names must hold one name per row, got {shown(names)}") from None
    if len(found) != n:
        raise InvalidDataError(f"names has {len(found)} entries for {n} rows; give one name per row")
    return found


def _counts_only(index: Any) -> bool:
    """Whether the index of a frame counts its rows from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


@dataclass(frozen=True)
class RowClasses:
    """Classes of rows: their names in order, and for each row the index of its own, −1 where it has none."""

    names: tuple[str, ...]
    index: IntArray


def row_classes(labels: Any, n_rows: int) -> RowClasses:
    """Classes of rows from their labels: categories keep their order, anything else is sorted."""
    given, order = _plain_labels(labels)
    if given.ndim != 1 or len(given) != n_rows:
        raise InvalidDataError(f"labels has shape {given.shape} for {n_rows} rows; give one label per row")
    missing = np.array([_is_missing(each) for each in given.tolist()], dtype=bool)
    present = set(given[~missing].tolist())
    if order is None:
        try:
            order = sorted(present, key=_natural if all(isinstance(each, str) for each in present) else None)
        except TypeError:  # of mixed types
            order = sorted(present, key=str)
    order = [each for each in order if each in present]
    if len(order) > _MOST_CLASSES:
        raise InvalidDataError(f"labels has {len(order)} different values, too many for classes; pass them as values=")
    rank = {each: i for i, each in enumerate(order)}
    index = np.array(
        [-1 if gone else rank[each] for each, gone in zip(given.tolist(), missing, strict=True)], dtype=int
    )
    return RowClasses(tuple(_short(each) for each in order), index)


def _plain_labels(labels: Any) -> tuple[Any, list[Any] | None]:
    """Labels as an array of objects, and the order of their categories where they have one."""
    order = None
    if hasattr(labels, "categories"):  # pandas.Categorical, not a series
        order = list(labels.categories)
    elif nw.dependencies.is_into_series(labels):
        series = nw.from_native(labels, series_only=True)
        order = declared_levels(series)
        labels = np.array([*series.to_list(), None], dtype=object)[:-1]
    return np.asarray(labels, dtype=object), order


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts "class 2" before "class 10"."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _is_missing(label: Any) -> bool:
    named = type(label).__name__ in {"NAType", "NaTType"}
    return label is None or named or (isinstance(label, float | np.floating) and bool(np.isnan(label)))


def _short(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def check_values(values: Any, n_rows: int) -> FloatArray:
    """One number per row; NaN and infinity stand for no value."""
    try:
        numbers = as_numbers("values", values)
    except InvalidDataError as error:
        raise InvalidDataError(f"values must be numbers ({error}); for classes use labels= instead") from error
    if numbers.shape != (n_rows,):
        raise InvalidDataError(f"values has shape {numbers.shape} for {n_rows} rows; give one number per row")
    return np.where(np.isfinite(numbers), numbers, np.nan)


def row_marks(labels: Any, values: Any, n_rows: int | None) -> tuple[RowClasses | None, FloatArray | None]:
    """Classes and numbers of the rows, by which they are coloured; at most one of them may be given."""
    if labels is not None and values is not None:
        raise InvalidParameterError("rows are coloured either by labels or by values; give one of them")
    if n_rows is None and (labels is not None or values is not None):
        raise InvalidParameterError("labels and values belong to rows; pass the rows as X too")
    groups = None if labels is None else row_classes(labels, n_rows or 0)
    return groups, None if values is None else check_values(values, n_rows or 0)


def lanes(Z: FloatArray, groups: RowClasses | None) -> FloatArray:
    """(n,) offsets in [0, 1] that keep rows apart where the latent space has one axis only.

    Classes get a lane each. Within it the rows, in the order of their coordinate, take the steps of a
    golden-ratio sequence, so that neighbours on the axis lie far apart across it.
    """
    offset = np.empty(len(Z))
    index = np.zeros(len(Z), dtype=int) if groups is None else groups.index
    n_lanes = 1 if groups is None else max(len(groups.names), 1)
    for each in np.unique(index):
        rows = np.flatnonzero(index == each)
        rows = rows[np.argsort(Z[rows, 0], kind="stable")]
        within = np.mod((np.arange(len(rows)) + 0.5) * _GOLDEN, 1.0)
        # Rows without a class lie across all lanes.
        start, width = (0.0, 1.0) if each < 0 else (each / n_lanes, 1.0 / n_lanes)
        offset[rows] = start + width * (0.1 + 0.8 * within)
    return offset
