"""The contents of a page as plain numbers and words: rows, colours, shading and units."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, quantity, shown
from prinfold.explorer.decoders import decoder_notes, decoder_of, latent_of, links_of
from prinfold.latent.cloud import Cloud
from prinfold.plot.data.surfaces import log_factor
from prinfold.plot.inputs import FittedSurface, check_values, lanes, layout_of, numbers_of, row_classes, row_names
from prinfold.plot.lines import region_of
from prinfold.validation.refusals import to_narwhals
from prinfold.validation.settings import integer
from prinfold.validation.tables import as_numbers

_SHADING_CELLS = 120
"""Cells of the shading along each axis."""

_MOST_NUMBERS = 4_000_000
"""Numbers of the table that a page holds; a larger table stays out of it, and only the map of its rows is shown."""

_LEAST_STRETCH_RANGE = 0.02
"""Stretch that differs by less than this share is the same everywhere: shading it would show rounding."""

_CURVE_COLUMNS = 300
"""Columns from which on they are a curve rather than a list, unless something else is said."""

_WHERE_ROWS_ARE = "The surface is shown near the rows only: elsewhere on the map there are no data to support it."


class PointView(NamedTuple):
    """Ways to show a row or a point of the surface: as ``kind`` first, and as what else is ``offered``."""

    kind: str
    offered: list[str]
    shape: list[int] | None
    positions: list[float]


def payload_of(
    model: Any,
    X: Any,
    *,
    labels: Any,
    values: Any,
    names: Any,
    extra: Any,
    image_shape: Any,
    series: Any,
    title: str | None,
    decimal: str = ".",
) -> dict[str, Any]:
    """Everything on a page, with arrays as they are."""
    fitted = FittedSurface.of(model)
    fitted.require_map()
    columns = _column_names(fitted)
    view = _view(image_shape, series, columns)
    found: dict[str, Any] = {
        "title": title or f"{type(fitted.model).__name__} map",
        "word": fitted.word,
        "columns": columns,
        "decimal": decimal,
        "decoder": decoder_of(fitted.model),
        "links": links_of(fitted.model),
        "units": _units(fitted),
        "view": view._asdict(),
    }
    found |= _rows(fitted, X, labels, values, names, columns)
    region = region_of(fitted, found["latentRows"]) if found["n"] else None
    found |= {"latent": latent_of(fitted.latent, region), "field": _field(fitted, region)}
    found["extra"] = _given_extra(extra, found["n"])
    if sum(len(each["cells"]) for each in found["extra"]) > _MOST_NUMBERS // 4:
        found["extra"], told = [], "The further columns have too many cells for a page and are not in it."
        found["notes"] = [*found["notes"], told]
    found["notes"] = [*found["notes"], *decoder_notes(found["decoder"], type(fitted.model).__name__)]
    found["notes"] = [*([] if region is None else [_WHERE_ROWS_ARE]), *found["notes"]]
    return found | {"about": _caption(fitted, found["n"])}


def _column_names(fitted: FittedSurface) -> list[str]:
    """Names of the values of a point of the surface."""
    mixed = hasattr(fitted.model, "value_names")
    return [str(each) for each in (fitted.model.value_names() if mixed else fitted.feature_names)]


def _cells(fitted: FittedSurface, X: Any) -> FloatArray:
    """(n, D') rows in the terms of a point of the surface."""
    return np.asarray(fitted.model.indicators(X) if hasattr(fitted.model, "indicators") else numbers_of(X))


def _caption(fitted: FittedSurface, n_rows: int) -> str:
    model, n = fitted.model, f"{quantity(n_rows, 'row')} of " if n_rows else ""
    return (
        f"{n}{quantity(len(fitted.feature_names), 'column')} on a {type(model).__name__}; {model.stop_reason_.brief}."
    )


# -------------------------------------------------------------------------------------------------------------- rows


def _rows(fitted: FittedSurface, X: Any, labels: Any, values: Any, names: Any, columns: list[str]) -> dict[str, Any]:
    """Coordinates, classes, numbers and cells of the rows."""
    if X is None:
        if labels is not None or values is not None or names is not None:
            raise InvalidParameterError("labels, values and names belong to rows; give X as well")
        return _no_rows(fitted)
    Z, table = fitted.coordinates(X), _cells(fitted, X)
    n, groups, notes = len(Z), None if labels is None else row_classes(labels, len(Z)), []
    low, high = (np.nan_to_num(each) for each in _extremes(table))
    whole = table.size <= _MOST_NUMBERS
    if not whole:
        notes.append(
            f"The table has {table.size} numbers, too many for a page: its rows are on the map, but their cells are "
            "not shown beside the surface."
        )
    return {
        "n": n,
        "latentRows": Z,
        "lanes": lanes(Z[:, -1:], groups).astype(np.float32) if fitted.latent.dimension == 1 else None,
        **_classes(groups, labels, table, columns),
        "given": len(_given_values(values, n)),
        "values": _rename_clashes([*_given_values(values, n), *_model_values(fitted, X)], columns),
        "rowNames": row_names(names, X, n),
        "table": _narrow(table) if whole else None,
        "distances": None,
        "low": low,
        "high": high,
        "least": float(low.min()),
        "most": float(high.max()),
        "levels": _levels(table),
        "notes": notes,
    }


def _no_rows(fitted: FittedSurface) -> dict[str, Any]:
    """A page of the surface alone, whose own extent takes the place of the rows'."""
    nodes = fitted.points(fitted.latent.nodes)
    low, high = _extremes(nodes)
    empty = np.empty((0, fitted.latent.n_columns))
    words = {"classes": None, "labelColumn": None, "rowNames": None, "table": None, "distances": None, "lanes": None}
    ends = {"low": low, "high": high, "least": float(low.min()), "most": float(high.max()), "levels": _levels(nodes)}
    return {"n": 0, "latentRows": empty, "values": [], "given": 0, "notes": [], **words, **ends}


def _extremes(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(D,) least and most of each column, over the cells that are there."""
    return np.fmin.reduce(table, axis=0), np.fmax.reduce(table, axis=0)


def _levels(table: FloatArray) -> list[float]:
    """Black and white of images: all levels but the most extreme per cent on either side, where they differ at all."""
    finite = table[np.isfinite(table)]
    low, high = (float(q) for q in np.quantile(finite[:: max(len(finite) // 200_000, 1)], [0.01, 0.99]))
    return [low, high] if high > low else [low - 0.5, high + 0.5]


def _narrow(table: FloatArray) -> FloatArray:
    """The table in single precision where that loses nothing."""
    with np.errstate(over="ignore"):
        single = table.astype(np.float32)
    return single if np.array_equal(single, table, equal_nan=True) else table


def _classes(groups: Any, labels: Any, table: FloatArray, columns: list[str]) -> dict[str, Any]:
    """Classes of the rows, and which column of the table they are, where they are one: it is offered once then."""
    if groups is None:
        return {"classes": None, "labelColumn": None}
    name = str(getattr(labels, "name", None) or "class")
    found = {"name": name, "names": list(groups.names), "index": groups.index.astype(np.int16)}
    j = columns.index(name) if name in columns else None
    if j is None:
        return {"classes": found, "labelColumn": None}
    if _is_column(groups.index, table[:, j]):
        return {"classes": found, "labelColumn": j}
    return {"classes": found | {"name": f"{name} (label)"}, "labelColumn": None}


def _is_column(index: Any, column: FloatArray) -> bool:
    """Whether classes tell the same rows apart as the numbers of a column do."""
    known = np.isfinite(column)
    if not np.array_equal(known, index >= 0):
        return False
    pairs = np.unique(np.stack([column[known], index[known]], axis=1), axis=0)
    return all(len(np.unique(pairs[:, a])) == len(pairs) for a in (0, 1))


def _rename_clashes(values: list[dict[str, Any]], columns: list[str]) -> list[dict[str, Any]]:
    """Numbers of the rows under names that no column has."""
    return [each | {"name": f"{each['name']} (value)"} if each["name"] in columns else each for each in values]


def _given_values(values: Any, n: int) -> list[dict[str, Any]]:
    """Numbers of the rows by name: a mapping, a frame, or one sequence."""
    if values is None:
        return []
    if nw.dependencies.is_into_dataframe(values):
        frame = to_narwhals(values)
        values = {name: frame[name].to_numpy() for name in frame.columns}
    elif not isinstance(values, Mapping):
        values = {str(getattr(values, "name", None) or "value"): values}
    return [{"name": str(name), "values": check_values(each, n)} for name, each in values.items()]


def _given_extra(extra: Any, n: int) -> list[dict[str, Any]]:
    """Further columns of the rows as words: a mapping or a frame."""
    if extra is None:
        return []
    if nw.dependencies.is_into_dataframe(extra):
        frame = to_narwhals(extra)
        extra = {name: frame[name].to_list() for name in frame.columns}
    if not isinstance(extra, Mapping):
        raise InvalidParameterError(
            f"extra must be a frame, or a mapping from names to one cell per row, got {type(extra).__name__}"
        )
    found = [{"name": str(name), "cells": _cells_of(name, cells)} for name, cells in extra.items()]
    for each in found:
        if len(each["cells"]) != n:
            raise InvalidDataError(
                f"extra column {each['name']!r} has {len(each['cells'])} cells for {n} rows; give one per row"
            )
    return found


def _cells_of(name: Any, cells: Any) -> list[str]:
    try:
        return [_cell(each) for each in cells]
    except TypeError:
        raise InvalidDataError(f"extra column {str(name)!r} must hold one cell per row, got {shown(cells)}") from None


def _cell(value: Any) -> str:
    """A cell as a file has it; empty where there is nothing."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    return f"{value:.15g}" if isinstance(value, float | np.floating) else str(value)


def _model_values(fitted: FittedSurface, X: Any) -> list[dict[str, Any]]:
    """Numbers that the model has for each row, such as its log-likelihood."""
    likelihood = fitted.log_likelihood(X)
    if likelihood is None:
        return []
    return [{"name": "log-likelihood", "values": likelihood}]


# ------------------------------------------------------------------------------------------------------- the surface


def _field(fitted: FittedSurface, region: Cloud | None) -> FloatArray | None:
    """(r, c) log magnification over the chart, NaN where there is no surface; None where there is no plane to fill.

    A ``region`` is the part of the plane where rows are.
    """
    if fitted.latent.charts:
        return None
    layout = layout_of(fitted.latent)
    shown = layout.plane or layout.axis
    if shown is None:
        return None
    low, high = np.atleast_1d(shown.low), np.atleast_1d(shown.high)
    counts = (3 * _SHADING_CELLS,) if layout.plane is None else (_SHADING_CELLS, _SHADING_CELLS)
    axes = [a + (np.arange(m) + 0.5) / m * (b - a) for a, b, m in zip(low, high, counts, strict=True)]
    places = np.stack([each.ravel() for each in np.meshgrid(*axes)], axis=1)
    Z = places if layout.plane is None or layout.plane.invert is None else layout.plane.invert(places)
    seen = np.ones(len(Z), dtype=bool) if region is None else region.domain.contains(Z)
    field = np.full(len(Z), np.nan)
    field[seen] = log_factor(fitted.model, Z[seen])
    return _varying_field(field.reshape(-1, counts[0]))


def _varying_field(field: FloatArray) -> FloatArray | None:
    """The field, or None where it is the same everywhere, as along a curve whose coordinate is its length."""
    known = field[np.isfinite(field)]
    return field if len(known) and np.subtract(*np.quantile(known, [0.99, 0.01])) > _LEAST_STRETCH_RANGE else None


def _units(fitted: FittedSurface) -> dict[str, FloatArray] | None:
    """Inverse of the steps before a model: y·scale + shift, or y·matrix + shift.

    The steps must be straight: what turns points of a simplex into the user's units is then known everywhere.
    """
    if fitted.before is None:
        return None
    straight = fitted.straight()
    if straight is None:
        raise InvalidParameterError(
            Message(
                "a step before the model is not linear, and a page can undo linear steps only",
                "explore the last step of the pipeline with the rows as that step gets them",
                Advice("StandardScaler", words="scale with {}"),
            )
        )
    matrix, shift = straight
    if matrix.shape[0] == matrix.shape[1] and np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:
        return {"scale": np.diag(matrix).copy(), "shift": shift}
    return {"matrix": matrix, "shift": shift}


def _view(image_shape: Any, series: Any, columns: list[str]) -> PointView:
    """The way to show rows: as an image or a curve where that was asked for, else as bars.

    A curve is offered where the columns have an order: where that was said, where their names are numbers that go one
    way, or where there are too many to be a list.
    """
    n_columns, own = len(columns), _numeric_names(columns)
    positions, first = np.arange(1.0, n_columns + 1.0), "bars"
    if series is None:
        first = "curve" if n_columns > _CURVE_COLUMNS else "bars"
        positions = positions if own is None else own
    elif series is not False:
        first = "curve"
        positions = (positions if own is None else own) if series is True else as_numbers("series", series)
        if positions.shape != (n_columns,) or not np.isfinite(positions).all():
            raise InvalidParameterError(
                f"series must be True, or a finite position for each of the {n_columns} columns; got shape "
                f"{positions.shape}"
            )
    shape = None if image_shape is None else _image_shape(image_shape, n_columns)
    kind = "image" if shape is not None else first
    ordered = first == "curve" or (series is None and own is not None)
    others = [name for name in (("bars", "curve") if ordered else ("bars",)) if name != kind]
    return PointView(kind, [kind, *others], shape, positions.tolist())


def _numeric_names(columns: list[str]) -> FloatArray | None:
    """(D,) the names of columns as numbers, such as wavelengths, where each is one and they go one way."""
    try:
        found = np.array([float(each) for each in columns])
    except ValueError:
        return None
    steps = np.diff(found)
    one_way = len(found) > 2 and np.isfinite(found).all() and (bool((steps > 0).all()) or bool((steps < 0).all()))
    return found if one_way else None


def _image_shape(given: Any, n_columns: int) -> list[int]:
    """Rows and columns of an image, and a 3 behind for colours."""
    whole = isinstance(given, tuple | list) and all(integer(1).test(each) for each in given)
    shape = [int(each) for each in given] if whole else []
    if not (len(shape) in {2, 3} and prod(shape) == n_columns and shape[2:] in ([], [1], [3])):
        raise InvalidParameterError(
            f"image_shape={given!r} does not make an image of {n_columns} columns; give (rows, columns), such as "
            f"{_likely_shape(n_columns)}, or (rows, columns, 3) for colours, whose product is the number of columns"
        )
    return shape


def _likely_shape(n_columns: int) -> tuple[int, int]:
    """The image nearest to a square that many pixels make."""
    rows = max(r for r in range(1, int(n_columns**0.5) + 1) if n_columns % r == 0)
    return rows, n_columns // rows
