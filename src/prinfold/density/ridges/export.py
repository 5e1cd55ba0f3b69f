"""A graph of ridges for other programs: GeoJSON and tables of lines."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.exceptions import InvalidParameterError
from prinfold.files.atomic import whole_file, write_text
from prinfold.files.spreadsheet_text import spreadsheet_text


class Line(NamedTuple):
    """One branch: ``arc_length`` (k,) from its beginning, ``points`` (k, D) and ``log_density`` (k,) there.

    The last point of a ``closed`` branch is its first. ``start`` and ``end`` are numbers of places, −1 for a closed
    one.
    """

    branch: int
    arc_length: FloatArray
    points: FloatArray
    log_density: FloatArray
    length: float
    closed: bool
    start: int
    end: int


def branch_lines(graph: RidgeGraph) -> list[Line]:
    """All branches as lines through the nodes of the graph; on a globe in longitude and latitude."""
    latent, points, found = graph.latent, _in_data_units(graph, graph.points), list[Line]()
    for b in range(latent.n_branches):
        place = np.arange(latent.cells[b] + 1)
        node = latent.first[b] + np.mod(place, latent.counts[b])
        arc_length = np.minimum(place * latent.steps[b], latent.lengths[b])
        start, end = map(int, graph.ends[b])
        found.append(
            Line(
                b,
                arc_length,
                points[node],
                graph.log_density[node],
                float(latent.lengths[b]),
                bool(latent.closed[b]),
                start,
                end,
            )
        )
    return found


def to_geojson(
    graph: RidgeGraph, names: Sequence[str] | None = None, path: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """The branches as a FeatureCollection of LineStrings, written to ``path`` where one is given.

    Properties are the number of the branch, its length, whether it is closed, the numbers of the places at its ends,
    its mean log density, and the names of the columns. A line that crosses the edge of the map of a globe is cut there
    and becomes a MultiLineString.
    """
    features = []
    for line in branch_lines(graph):
        _refuse_many_columns(line.points)
        properties = {
            "branch": line.branch,
            "length": line.length,
            "closed": line.closed,
            "start": line.start,
            "end": line.end,
            "mean_log_density": float(line.log_density.mean()),
            "columns": list(_columns(names, line.points.shape[1])),
        }
        features.append({"type": "Feature", "geometry": _geometry(graph, line.points), "properties": properties})
    collection = {"type": "FeatureCollection", "features": features}
    if path is not None:
        write_text(path, json.dumps(collection, allow_nan=False))
    return collection


def to_csv(graph: RidgeGraph, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
    """Write a table of the points of all branches: branch, arc length, the columns of the data, log density."""
    with whole_file(path) as passing, passing.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        for line in branch_lines(graph):
            if line.branch == 0:
                columns = _columns(names, line.points.shape[1])
                writer.writerow(["branch", "arc_length", *map(spreadsheet_text, columns), "log_density"])
            numbers = np.column_stack([line.arc_length, line.points, line.log_density])
            writer.writerows([line.branch, *row] for row in numbers.tolist())


def _columns(names: Sequence[str] | None, n_columns: int) -> Sequence[str]:
    columns = [f"x{i}" for i in range(n_columns)] if names is None else [str(name) for name in names]
    if len(columns) != n_columns:
        raise InvalidParameterError(f"{n_columns} columns need as many names, got {len(columns)}: {columns}")
    return columns


def _refuse_many_columns(points: FloatArray) -> None:
    if points.shape[1] not in (2, 3):
        raise InvalidParameterError(
            f"a place in GeoJSON has two or three coordinates, but the data have {points.shape[1]} columns; "
            "use to_csv, or to_networkx"
        )


def _in_data_units(graph: RidgeGraph, points: FloatArray) -> FloatArray:
    return points if graph.globe is None else graph.globe.leave(points)


def _geometry(graph: RidgeGraph, points: FloatArray) -> dict[str, Any]:
    pieces = [points] if graph.globe is None else _cut_at_map_edge(points, graph.globe.west)
    if len(pieces) == 1:
        return {"type": "LineString", "coordinates": pieces[0].tolist()}
    return {"type": "MultiLineString", "coordinates": [piece.tolist() for piece in pieces]}


def _cut_at_map_edge(points: FloatArray, west: float) -> list[FloatArray]:
    """A line (k, 2) of longitudes and latitudes cut where it leaves the map on one side and enters on the other."""
    leap = np.diff(points[:, 0])
    pieces, rest = list[FloatArray](), points
    for i in np.flatnonzero(np.abs(leap) > 180.0)[::-1]:
        (here, low), (there, high) = points[i], points[i + 1]
        leaves, enters = (west + 360.0, west) if leap[i] < 0 else (west, west + 360.0)
        out, back = abs(leaves - here), abs(there - enters)
        latitude = low + (high - low) * out / (out + back) if out + back > 0 else low
        pieces.append(np.vstack([[enters, latitude], rest[i + 1 :]]))
        rest = np.vstack([rest[: i + 1], [leaves, latitude]])
    return [rest, *pieces[::-1]]
