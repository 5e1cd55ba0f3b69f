"""Some rows of a table that is too large to look at as a whole: drawn at random by a seed, in the order they came."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.tables.arrow_text import has_arrow
from prinfold.cli.tables.memory import release_memory

T = TypeVar("T")

LARGE = 100_000_000
"""Cells of a Parquet file from which on it is read block by block where the method can, and else in part."""

LARGE_TEXT = 32_000_000
"""Bytes of a text file from which on it is turned into an Arrow file, which is read in the same way."""

LARGE_TEXT_AS_A_WHOLE = 200_000_000
"""The same where what it is read for takes no blocks, and would get a part of the rows."""

LOOKED_AT = 100_000
"""Rows of such a file by which columns and scaling are chosen, if they have few columns."""

LOOKED_AT_CELLS = 400_000
"""Cells of those rows: several copies of them are in memory throughout the fit."""

_FEWEST_LOOKED_AT = 1000

_BATCH, _BATCH_CELLS = 65_536, 4_000_000
"""Most rows of a Parquet file that are read at a time, and their cells."""


class Draw(NamedTuple):
    """A random sample of rows: their number, the seed, and most cells that they may have."""

    rows: int
    seed: int
    cells: int | None = None

    def of_columns(self, n_columns: int) -> Draw:
        """The same of a table with so many columns: fewer rows where they would have too many cells."""
        if self.cells is None:
            return self
        return self._replace(rows=min(self.rows, max(self.cells // max(n_columns, 1), _FEWEST_LOOKED_AT)))

    def places(self, n: int) -> IntArray:
        """(m,) which of n rows are drawn, in order; all where there are no more."""
        if n <= self.rows:
            return np.arange(n)
        return np.sort(np.random.default_rng(self.seed).choice(n, self.rows, replace=False))

    def pick(self, items: Iterable[T]) -> Iterator[tuple[int, T]]:
        """As many of some items, however many there are, with their places: each is as likely as any other."""
        rng = random.Random(self.seed)
        kept: list[tuple[int, T]] = []
        for place, item in enumerate(items):
            if place < self.rows:
                kept.append((place, item))
            elif (other := rng.randrange(place + 1)) < self.rows:
                kept[other] = (place, item)
        return iter(sorted(kept, key=lambda each: each[0]))


def looked_at(path: Path, seed: int = 0, *, blocks: bool = True) -> Draw | None:
    """The rows of a table to look at where it is too large to be read as a whole; None where it is not."""
    return Draw(LOOKED_AT, seed, LOOKED_AT_CELLS) if is_large(path, blocks=blocks) else None


def is_large(path: Path, *, blocks: bool = True) -> bool:
    """Whether a table is better read in blocks, or in part without ``blocks``.

    Parquet tells by its cells, text by its bytes.
    """
    name = path.name.lower()
    if not path.is_file() or not has_arrow():
        return False
    if name.endswith((".csv", ".tsv", ".txt", ".tab", ".dat")):
        return path.stat().st_size > (LARGE_TEXT if blocks else LARGE_TEXT_AS_A_WHOLE)
    if not name.endswith((".parquet", ".pq")):
        return False
    try:
        meta = import_module("pyarrow.parquet").read_metadata(path)
    except Exception:  # a file that cannot be read is complained of by whoever reads it
        return False
    return bool(meta.num_rows * meta.num_columns > LARGE)


def batches_of(path: Path) -> Iterator[Any]:
    """The rows of a Parquet or Arrow file, some at a time."""
    if path.suffix == ".arrow":
        arrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
        with arrow.OSFile(str(path)) as stream:
            file = ipc.open_file(stream)
            yield from (file.get_batch(i) for i in range(file.num_record_batches))
    else:
        file = import_module("pyarrow.parquet").ParquetFile(path)
        yield from file.iter_batches(max(1, min(_BATCH, _BATCH_CELLS // max(len(file.schema_arrow), 1))))


def draw_parquet(path: Path, draw: Draw) -> tuple[Any, int]:
    """Some rows of a Parquet file as an Arrow table, never holding all of them, and how many there are."""
    file = import_module("pyarrow.parquet").ParquetFile(path)
    n_rows = file.metadata.num_rows
    draw = draw.of_columns(len(file.schema_arrow))
    return _draw_batches(batches_of(path), file.schema_arrow, n_rows, draw), n_rows


def draw_arrow(path: Path, n_rows: int, draw: Draw) -> Any:
    """The same of an Arrow file of so many rows."""
    with import_module("pyarrow").OSFile(str(path)) as stream:
        schema = import_module("pyarrow.ipc").open_file(stream).schema
    return _draw_batches(batches_of(path), schema, n_rows, draw.of_columns(len(schema)))


def _draw_batches(batches: Iterable[Any], schema: Any, n_rows: int, draw: Draw) -> Any:
    """Rows that are drawn from batches, as an Arrow table.

    Fractions, of which there may be many, go into arrays that are there beforehand: small pieces kept between large
    ones that are freed would hold on to the memory of both.
    """
    arrow = import_module("pyarrow")
    places, start, taken = draw.places(n_rows), 0, 0
    fractions = {j: np.empty(len(places)) for j, field in enumerate(schema) if arrow.types.is_float64(field.type)}
    others: dict[int, list[Any]] = {j: [] for j in range(len(schema)) if j not in fractions}
    for batch in batches:
        within = places[(places >= start) & (places < start + batch.num_rows)] - start
        for j, values in fractions.items():
            values[taken : taken + len(within)] = batch.column(j).to_numpy(zero_copy_only=False)[within]
        for j, parts in others.items():
            parts.append(batch.column(j).take(arrow.array(within)))
        start, taken = start + batch.num_rows, taken + len(within)
    release_memory()  # words that were kept lie between batches that were freed
    columns = [
        arrow.array(fractions[j], from_pandas=True) if j in fractions else arrow.chunked_array(others[j], field.type)
        for j, field in enumerate(schema)
    ]
    return arrow.Table.from_arrays(columns, schema=schema)
