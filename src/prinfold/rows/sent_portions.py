"""Portions of a source on a device: sent one ahead of the other, and left there where all of them have room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn, TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.devices import Device
from prinfold.rows.device_rows import DeviceRows, copy_rows
from prinfold.rows.rows import Rows
from prinfold.rows.tree_sums import S, tree_sum

_SHARE_OF_FREE = 0.5
"""Of the memory that is free on a device when a fit begins, how much rows may fill: passes need some too."""

_ROWS_TOGETHER = 2**20
"""Rows from which portions are worked on together: of each such group sums are brought here, which has to be waited
for. An iteration over 10⁶ × 20 in sixteen portions took three times as long as in one."""


Portions: TypeAlias = Callable[[], Iterator[Rows]]
"""Reads the portions of a source from the beginning."""


class SentPortions:
    """The portions of one source, as many passes ask for them.

    The first pass sends them. Where the device has room for all, they stay, and later passes read nothing at all;
    otherwise each pass sends them again. Sums are the same to the last bit either way.
    """

    def __init__(self, device: Device, n_bytes: int) -> None:
        self.device = device
        self.keeps = n_bytes <= _SHARE_OF_FREE * device.free_bytes()
        self.kept: list[Rows] | None = None
        """All rows, once a pass has come to its end."""
        self.sends = True
        """Whether passes are for the device at all."""

    def sum(self, sent: Portions, work: Callable[[Rows], S], here: Portions) -> S:
        """Σ work(rows) over those that are ``sent``, by the tree of :mod:`prinfold.rows.tree_sums`.

        Where the device cannot do it, the processor does from then on, with those that are ``here``.
        """
        if self.sends:
            try:
                return tree_sum(map(work, self._sent(sent()) if self.kept is None else self.kept))
            except _NotThereError:  # too few rows, or numbers that single precision cannot tell apart
                self.sends, self.kept = False, None
        return tree_sum(map(work, here()))

    def _sent(self, portions: Iterator[Rows]) -> Iterator[Rows]:
        left: list[Rows] = []
        for rows in send_ahead(self.device, portions):
            yield rows
            if self.keeps:
                left.append(rows)
        self.kept = left if self.keeps else None


def send_ahead(device: Device, portions: Iterator[Rows]) -> Iterator[Rows]:
    """Groups of portions on a device, each read and sent there while the one before it is worked on."""

    def send() -> Rows | None:
        with device.beside_others():
            return _send_together(device, portions)

    with ThreadPoolExecutor(1, thread_name_prefix="prinfold-sender") as sender:
        coming = sender.submit(send)
        while (rows := coming.result()) is not None:
            coming = sender.submit(send)
            yield rows


def _send_together(device: Device, portions: Iterator[Rows]) -> Rows | None:
    """The next portions on a device, as many as are worked on together; None after the last.

    Each is there before the next is read: a source may fill one array again and again.
    """
    first = next(portions, None)
    if first is None:
        return None
    sent, n_rows = [], 0
    for rows in chain([first], portions):
        sent.append(copy_rows(device, rows))
        n_rows += rows.n_rows
        if not np.isfinite(sent[-1].squares).all():
            raise _NotThereError  # missing cells or numbers out of range, which the processor names
        if n_rows >= _ROWS_TOGETHER:
            break
    together = _join(sent)
    table: Any = _TableThere((n_rows, first.n_columns), first.table.dtype)
    found = Rows(table, first.offset, None, first.block_rows, device=device)
    found.get_or_make(device, lambda: together)
    return found


def _join(parts: list[DeviceRows]) -> DeviceRows:
    """Rows that follow each other on one device."""
    if len(parts) == 1:
        return parts[0]
    device, xp = parts[0].device, parts[0].device.xp
    weight = None
    if any(part.weight is not None for part in parts):
        ones = (
            xp.ones(part.table.shape[0], dtype=part.table.dtype, device=device.place)
            if part.weight is None
            else part.weight
            for part in parts
        )
        weight = xp.concat(list(ones))
    table = xp.concat([part.table for part in parts])
    squares: FloatArray = np.sum([part.squares for part in parts], axis=0)
    return DeviceRows(device, table, weight, squares, sum(part.total for part in parts))


class _NotThereError(Exception):
    """Work on a device asked for rows as they are in this memory, or they cannot be held there."""


@dataclass(frozen=True)
class _TableThere:
    """Stands for a table that is on a device alone."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __getitem__(self, part: object) -> NoReturn:
        raise _NotThereError
