"""Rows that lie on a device too, as passes there need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.devices import Device

if TYPE_CHECKING:
    from prinfold.rows.rows import Rows

_ROWS_AT_ONCE = 2**16


class PlacedRows(NamedTuple):
    """Centered rows (n, D) on a device and their weights, with Σ w t² of each column (D,) and Σ w."""

    device: Device
    table: Any
    weight: Any | None
    squares: FloatArray
    total: float


def place(device: Device, rows: Rows) -> PlacedRows:
    """Rows brought to a device, rounded to its precision; their squares are those of the rounded numbers."""
    from prinfold.rows.rows import for_each_block, row_slices

    parts = row_slices(rows.n_rows, _ROWS_AT_ONCE)
    table = np.empty((rows.n_rows, rows.n_columns), dtype=device.dtype)
    squares = np.empty((len(parts), rows.n_columns))

    def one(i: int) -> None:
        some = table[parts[i]]
        some[...] = rows.block(parts[i])
        weight = rows.block_weight(parts[i])
        squares[i] = np.einsum("nd,nd->d", some, some if weight is None else some * weight[:, None], dtype=np.float64)

    for_each_block(one, range(len(parts)))
    weight = None if rows.weight is None else device.put(rows.weight)
    return PlacedRows(device, device.put(table), weight, squares.sum(axis=0), rows.total_weight)
