"""Rows of a source that are held out once to set the limits of a monitor, and blocks of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, UnsupportedInputError
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Numbers
from prinfold.validation.named_block import NamedBlock

_MOST_HELD_OUT = 20_000
"""Rows held out at most: p-values are then as fine as one in so many, and each is measured by its nearest point."""


@dataclass(frozen=True)
class SourceInParts:
    """A source in two parts: ``held`` (m, D) rows, and ``rest``, the blocks of all others, ``n_rest`` rows."""

    held: Any
    rest: Blocks
    n_rest: int


def hold_out(blocks: Blocks, how: str, share: float, rng: np.random.Generator) -> SourceInParts:
    """Hold out a share of the rows of a source, but not too many: at random, or the last ones."""
    if how == "cross":
        raise InvalidParameterError(
            Message(
                "calibration='cross' fits the map six times, which would read Blocks six times as often",
                Advice("calibration", "split", "say {}"),
                Advice("calibration", "last", "{}, which hold rows out once"),
            )
        )
    if blocks.weight is not None:
        raise UnsupportedInputError(
            "a monitor takes no weights; leave out weight= of Blocks, and that column by columns="
        )
    ends = np.cumsum(blocks.count_rows())
    n_rows = int(ends[-1]) if len(ends) else 0
    if n_rows < 3:
        raise InvalidDataError(f"the source has {n_rows} row(s), but at least 3 are needed: 2 to fit, and 1 held out")
    n_held = int(min(max(round(share * n_rows), 1), n_rows - 2, _MOST_HELD_OUT))
    if how == "last":
        places: IntArray = np.arange(n_rows - n_held, n_rows)
    else:
        places = np.sort(rng.choice(n_rows, n_held, replace=False))
    held, rest = (_split_blocks if blocks.partitions is None else _split_collection)(blocks, places, ends)
    named = held if blocks.names is None else NamedBlock.of(held, blocks.names)
    return SourceInParts(named, rest, n_rows - n_held)


def _split_blocks(blocks: Blocks, places: IntArray, ends: IntArray) -> tuple[FloatArray, Blocks]:
    """The rows at some places, and blocks of the others."""
    held = np.concatenate([part.table.copy() for part in _parts(blocks, places, inside=True)])
    return held, Blocks(_Rest(blocks, places), rows=blocks.rows)


def _split_collection(blocks: Blocks, places: IntArray, ends: IntArray) -> tuple[FloatArray, Blocks]:
    """The rows at some places of a Dask collection, and the others, which stay where they lie."""
    assert blocks.partitions is not None
    cuts = np.searchsorted(places, ends)
    own = [places[a:b] - start for a, b, start in zip([0, *cuts], cuts, [0, *ends], strict=False)]
    chosen = blocks.of_partitions(blocks.partitions.choose(own, inside=True))
    held = np.concatenate([part.table for part in chosen.weighted()])
    return held, blocks.of_partitions(blocks.partitions.choose(own, inside=False))


@dataclass(frozen=True)
class _Rest:
    """The rows that are not held out, read anew with each call."""

    blocks: Blocks
    places: IntArray

    def __call__(self) -> Iterator[FloatArray]:
        names = self.blocks.names
        for part in _parts(self.blocks, self.places, inside=False):
            yield part.table if names is None else NamedBlock.of(part.table.copy(), names)


def _parts(blocks: Blocks, places: IntArray, *, inside: bool) -> Iterator[Numbers]:
    """The rows of each block that are among the places, or those that are not."""
    start = 0
    for block in blocks.weighted():
        n = len(block.table)
        first, last = np.searchsorted(places, [start, start + n])
        chosen = np.zeros(n, dtype=bool)
        chosen[places[first:last] - start] = True
        kept = np.flatnonzero(chosen == inside)
        if len(kept):
            yield block.part(kept)
        start += n
