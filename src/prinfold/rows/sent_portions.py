"""Portions of a source on a device: sent one ahead of the other, and left there where all of them have room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from prinfold.devices import Device
from prinfold.rows.device_rows import copy_to_device
from prinfold.rows.rows import Rows
from prinfold.rows.tree_sums import S, tree_sum

_SHARE_OF_FREE = 0.5
"""Of the memory that is free on a device when a fit begins, how much rows may fill: passes need some too."""


class SentPortions:
    """The portions of one source, as many passes ask for them.

    The first pass sends them. Where the device has room for all, they stay, and later passes read nothing at all;
    otherwise each pass sends them again. Sums are the same to the last bit either way.
    """

    def __init__(self, device: Device, n_bytes: int) -> None:
        self.device = device
        self.keeps = n_bytes <= _SHARE_OF_FREE * device.free_bytes()
        self.kept: list[Rows] | None = None
        """All portions, once a pass has come to its end."""

    def sum(self, portions: Callable[[], Iterator[Rows]], work: Callable[[Rows], S]) -> S:
        """Σ work(portion), by the tree of :mod:`prinfold.rows.tree_sums`."""
        if self.kept is not None:
            try:
                return tree_sum(map(work, self.kept))
            except _NotHereError:  # such work as the device cannot do well enough needs the rows themselves
                self.kept, self.keeps = None, False
        return tree_sum(map(work, self._sent(portions())))

    def _sent(self, portions: Iterator[Rows]) -> Iterator[Rows]:
        left: list[Rows] = []
        for rows in send_ahead(self.device, portions):
            yield rows
            if self.keeps:
                left.append(_without_table_here(rows))
        self.kept = left if self.keeps else None


def send_ahead(device: Device, portions: Iterator[Rows]) -> Iterator[Rows]:
    """Portions of rows on a device, each read and sent there while the one before it is worked on."""

    def send() -> Rows | None:
        rows = next(portions, None)
        if rows is None:
            return None
        there = replace(rows, device=device)
        copy_to_device(there)
        return there

    with ThreadPoolExecutor(1, thread_name_prefix="prinfold-sender") as sender:
        coming = sender.submit(send)
        while (rows := coming.result()) is not None:
            coming = sender.submit(send)
            yield rows


class _NotHereError(Exception):
    """Rows were asked for that are on a device alone."""


@dataclass(frozen=True)
class _TableThere:
    """Stands for a table that is on a device alone."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __getitem__(self, part: object) -> NoReturn:
        raise _NotHereError


def _without_table_here(rows: Rows) -> Rows:
    """Rows whose table lies on a device alone: the copy in this memory is let go."""
    there, device = copy_to_device(rows), rows.device
    table: Any = _TableThere(rows.table.shape, rows.table.dtype)
    found = Rows(table, rows.offset, None, rows.block_rows, device=device)
    found.get_or_make(device, lambda: there)
    return found
