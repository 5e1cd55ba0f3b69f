"""Rows copied to a device, such as a graphics card, in the form in which passes there use them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.devices import Device
from prinfold.devices.device import to_numpy
from prinfold.rows.rows import Rows, for_each_block, row_slices

_ROWS_AT_ONCE = 2**16
_SENT_AT_ONCE = 2**20
"""Rows that are sent together; they are there in double precision until their mean is taken off."""


class DeviceRows(NamedTuple):
    """Centered rows (n, D) on a device and their weights, with Σ w t² of each column (D,) and Σ w."""

    device: Device
    table: Any
    weight: Any | None
    squares: FloatArray
    total: float


def copy_to_device(rows: Rows) -> DeviceRows:
    """The rows on their device; they are copied at the first call and kept for later ones."""
    assert rows.device is not None
    device = rows.device
    return rows.get_or_make(device, lambda: copy_rows(device, rows))


def copy_rows(device: Device, rows: Rows) -> DeviceRows:
    """Rows copied to a device and rounded to its precision, with the squares of the rounded numbers."""
    weight = None if rows.weight is None else device.put(rows.weight)
    with device.memory_named():
        table, squares = (_center_there if rows.plain and device.has_double else _center_here)(device, rows)
    return DeviceRows(device, table, weight, squares, rows.total_weight)


def _center_there(device: Device, rows: Rows) -> tuple[Any, FloatArray]:
    """Rows as they are in memory, centered on the device, where that takes no time."""
    xp, parts, squares = device.xp, [], np.zeros(rows.n_columns)
    for some in row_slices(rows.n_rows, _SENT_AT_ONCE):
        part = device.center(rows.table[some], rows.offset)
        double = xp.astype(part, xp.float64)
        weight = rows.block_weight(some)
        own = double if weight is None else double * xp.asarray(weight[:, None], dtype=xp.float64, device=device.place)
        squares += to_numpy(xp.sum(double * own, axis=0))
        parts.append(part)
    return (parts[0] if len(parts) == 1 else xp.concat(parts)), squares


def _center_here(device: Device, rows: Rows) -> tuple[Any, FloatArray]:
    """Rows of any other kind, block by block."""
    parts = row_slices(rows.n_rows, _ROWS_AT_ONCE)
    table = np.empty((rows.n_rows, rows.n_columns), dtype=device.dtype)
    squares = np.empty((len(parts), rows.n_columns))

    def one(i: int) -> None:
        some = table[parts[i]]
        some[...] = rows.block(parts[i])
        weight = rows.block_weight(parts[i])
        squares[i] = np.einsum("nd,nd->d", some, some if weight is None else some * weight[:, None], dtype=np.float64)

    for_each_block(one, range(len(parts)))
    return device.put(table), squares.sum(axis=0)
