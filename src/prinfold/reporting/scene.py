"""The surface among the rows in three columns that the reader may change, as numbers for the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError, PrinfoldError, shown
from prinfold.plot.inputs import FittedSurface, RowClasses
from prinfold.plot.lines import region_of, surface_mesh, wires
from prinfold.reporting.measurements import Study

_MOST_ROWS = 2000
_MOST_COLUMNS = 100
_MOST_PLACES = 5000
"""Rows and columns that the page holds, and points of the lines that make up the surface."""

_RESOLUTION = 24
_LINES, _ALONG = 14, 48


def scene_of(study: Study, groups: RowClasses | None, columns: Any) -> dict[str, Any] | str:
    """Rows, surface and columns for the view in data space, or the reason why there is none."""
    if study.cells is not None or study.table is None:
        return (
            "Some columns are levels or counts, so that the surface cannot be drawn among them. The columns "
            "that it keeps best are shown on the map instead; see with explore the shares of all levels."
        )
    if study.table.shape[1] < 2:
        return "There is one column only, in which there is nothing to draw."
    try:
        lines, faces, vertices = _surface(study.fitted, study.Z)
    except PrinfoldError as error:
        return f"The {study.fitted.word} has no points in data space to show: {error}."
    order = _order(study.table, vertices)
    asked = sorted(order[:3]) if columns is None else _column_positions(columns, study.fitted.feature_names)
    kept = sorted({*asked, *order[: _MOST_COLUMNS - len(asked)]})
    on_axes = [*asked, *(j for j in order if j in kept and j not in asked)][:3]
    rows = np.unique(np.linspace(0, study.n - 1, min(study.n, _MOST_ROWS)).astype(int))
    names = [study.fitted.feature_names[j] for j in kept]
    center = np.nanmean(np.concatenate([study.table[rows][:, kept], vertices[:, kept]]), axis=0)

    def narrow(places: FloatArray) -> FloatArray:
        return np.asarray(places[:, kept] - center, dtype=np.float32)

    return {
        "columns": names,
        "chosen": [kept.index(j) for j in on_axes],
        "curve": study.fitted.latent.dimension == 1,
        "center": center,
        "rows": narrow(study.table[rows]),
        "rowNumbers": rows.astype(np.int32),
        "classes": None if groups is None else {"names": list(groups.names), "index": groups.index[rows].astype("i2")},
        "vertices": narrow(vertices),
        "faces": faces.astype(np.int32),
        "lines": narrow(np.concatenate(lines)),
        "lengths": np.array([len(line) for line in lines], dtype=np.int32),
        "notes": _notes(study, len(rows), len(kept)),
    }


def _surface(fitted: FittedSurface, Z: FloatArray) -> tuple[list[FloatArray], IntArray, FloatArray]:
    """Lines and triangles of the surface where rows are; a curve has no triangles, and a space its edges only."""
    fitted.refuse_levels()
    region = region_of(fitted, Z)
    lines = wires(fitted, _LINES, _ALONG, region)
    if fitted.latent.dimension == 2:
        mesh = surface_mesh(fitted, _RESOLUTION, region)
        return lines, mesh.faces, mesh.vertices
    if sum(map(len, lines)) > _MOST_PLACES and fitted.latent.dimension > 2:
        lines = lines[:: -(-sum(map(len, lines)) // _MOST_PLACES)]
    thinned = [_thin_out(line, _MOST_PLACES // max(len(lines), 1)) for line in lines]
    return thinned, np.empty((0, 3), dtype=int), np.concatenate(thinned)


def _thin_out(line: FloatArray, most: int) -> FloatArray:
    kept = np.unique(np.linspace(0, len(line) - 1, min(len(line), max(most, 2))).astype(int))
    return np.asarray(line[kept])


def _order(table: FloatArray, vertices: FloatArray) -> list[int]:
    """Columns by how much of the surface they show.

    The order is that of a pivoted QR of the surface in standard deviations of the rows: the column in which it extends
    farthest, then the one in which it does so most beside the first, and so on.
    """
    spread = np.nanstd(table, axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    return [int(j) for j in qr((vertices - vertices.mean(axis=0)) / spread, mode="r", pivoting=True)[1]]


def _column_positions(columns: Any, names: tuple[str, ...]) -> list[int]:
    found = []
    try:
        given = [columns] if isinstance(columns, str) else list(columns)
    except TypeError:
        raise InvalidParameterError(f"columns must hold up to three names or positions, got {shown(columns)}") from None
    for each in given:
        if isinstance(each, str) and each in names:
            found.append(names.index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < len(names):
            found.append(int(each))
        else:
            raise InvalidParameterError(
                f"columns names {each!r}, which is no column; the columns are {', '.join(names[:12])}, or positions "
                f"from 0 to {len(names) - 1}"
            )
    if len(found) > 3 or len(set(found)) < len(found):
        raise InvalidParameterError(f"columns must name up to three different columns, got {columns!r}")
    return found


def _notes(study: Study, n_rows: int, n_columns: int) -> list[str]:
    notes = []
    if n_rows < study.n:
        notes.append(f"{n_rows} of the {study.n} rows are shown, spread evenly through the table.")
    if n_columns < len(study.fitted.feature_names):
        notes.append(
            f"{n_columns} of the {len(study.fitted.feature_names)} columns are offered: those that show most of the "
            "surface."
        )
    return notes
