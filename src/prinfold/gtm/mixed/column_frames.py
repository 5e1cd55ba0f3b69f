"""Encoded columns turned back into values, in a frame of the library and in the types in which they came."""

from __future__ import annotations

from typing import Any

import narwhals
import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm.mixed.column_kinds import Column, Columns


def decode(values: FloatArray, column: Column, *, whole: bool) -> Any:
    """Values that numbers of :func:`encode` stand for; ``whole`` numbers come back as such where they came so."""
    if not column.levels:
        return values.astype(np.int64) if whole and column.whole else values
    if all(isinstance(level, bool) for level in column.levels):
        return values.astype(bool)
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = column.levels
    return levels[values.astype(int)]


def as_frame(data: dict[str, Any], columns: Columns) -> Any:
    """A frame of the library that the columns came in, with their types where values still fit them."""
    library: Any = columns.frame
    frame = nw.from_dict({name: _listlike(values) for name, values in data.items()}, backend=library)
    for column in columns:
        frame = frame.with_columns(_cast_like_column(frame[column.name], column, data[column.name]))
    return frame.to_native()


def fill_frame(X: Any, columns: Columns, data: dict[str, Any], missing: Any) -> Any:
    """The frame X with columns that had gaps replaced by ``data``, in their own types where values still fit them."""
    frame = nw.from_native(X, eager_only=True)
    library: Any = str(frame.implementation)
    fresh = []
    for j, (column, old) in enumerate(zip(columns, frame.iter_columns(), strict=True)):
        if not missing[:, j].any():
            continue
        series = nw.new_series(old.name, _listlike(data[column.name]), backend=library)
        own: Any = old.to_native().dtype if hasattr(old.to_native(), "astype") else None
        if column.levels and own is not None:  # pandas has several types of text
            fresh.append(nw.from_native(series.to_native().astype(own), series_only=True))
        else:
            fresh.append(_cast_like_column(series, column, data[column.name]))
    return frame.with_columns(*fresh).to_native() if fresh else frame.clone().to_native()


def _listlike(values: Any) -> Any:
    return values.tolist() if values.dtype.kind == "O" else values


def _cast_like_column(series: Any, column: Column, values: Any) -> Any:
    """A series in the type that its column had, where the values still fit it."""
    if column.dtype == "Enum":  # whose levels only the newest interface of narwhals takes
        newest: Any = narwhals
        cast = newest.from_native(series.to_native(), series_only=True).cast(newest.Enum(list(column.levels)))
        return nw.from_native(cast.to_native(), series_only=True)
    fits = bool(column.levels) or values.dtype.kind == "i"
    text = column.dtype in {"Categorical", "String"} and all(isinstance(level, str) for level in column.levels)
    whole = column.dtype.startswith(("Int", "UInt"))
    return series.cast(getattr(nw, column.dtype)) if fits and (text or whole) else series
