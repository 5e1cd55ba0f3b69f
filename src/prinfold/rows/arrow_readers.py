"""Readers of Parquet, Arrow and CSV files, and of Arrow datasets and tables.

Left to itself Arrow reads as far ahead as it can, however slowly its batches are taken. So files are read a part at a
time, and the next part only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prinfold.exceptions import import_optional
from prinfold.rows.column_selection import Key


@dataclass(frozen=True)
class ArrowTableReader:
    """Reader of an Arrow table in memory."""

    table: Any

    @property
    def n_rows(self) -> int | None:
        return int(self.table.num_rows)

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        taken = _columns_to_read(keys, self.table.column_names)
        return _as_tables((self.table if taken is None else self.table.select(taken)).to_batches(max_chunksize=rows))


@dataclass(frozen=True)
class ArrowDatasetReader:
    """A dataset: of Parquet files one group of rows after the other, and only the columns asked for."""

    data: Any

    @property
    def n_rows(self) -> int | None:
        """Number of rows that Parquet files say they have."""
        try:
            counted = [part.metadata.num_rows for part in self._parts() if hasattr(part, "row_groups")]
        except (AttributeError, OSError, ValueError):
            return None
        return sum(counted) if counted else None

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        columns = _columns_to_read(keys, self.data.schema.names)
        options = {"columns": columns, "batch_size": rows, "batch_readahead": 1}
        for part in self._parts():
            if not hasattr(part, "row_groups"):
                yield from _as_tables(part.to_batches(**options, use_threads=False))
                continue
            sparing = library("pyarrow.dataset").ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
            for group in part.split_by_row_group(schema=self.data.schema):
                found = group.to_batches(schema=self.data.schema, **options, fragment_scan_options=sparing)
                yield from _as_tables(found)

    def _parts(self) -> Iterable[Any]:
        try:
            found: Iterable[Any] = self.data.get_fragments()
        except ValueError:  # a dataset that is filtered is only to be had as a whole
            return [self.data]
        return found


@dataclass(frozen=True)
class ArrowFileReader:
    """A file of record batches, one after the other."""

    path: str

    @property
    def n_rows(self) -> int | None:
        return None

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        pa, ipc = library("pyarrow"), library("pyarrow.ipc")
        with pa.OSFile(self.path) as file:
            schema = ipc.open_file(file).schema
            columns = _columns_to_read(keys, schema.names)
            fields = None if columns is None else [schema.get_field_index(name) for name in columns]
            reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
            yield from _as_tables(reader.get_batch(i) for i in range(reader.num_record_batches))
        pa.default_memory_pool().release_unused()  # or what is free between blocks would pile up from pass to pass


@dataclass(frozen=True)
class CsvReader:
    """A file of text, whose first line names the columns.

    A column may begin with whole numbers and go on with fractions, so that all numbers are read as floats.
    """

    path: str

    @property
    def n_rows(self) -> int | None:
        return None

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        pa, csv = library("pyarrow"), library("pyarrow.csv")
        with csv.open_csv(self.path) as peeked:
            schema = peeked.schema
        whole = {
            each.name: pa.float64() for each in schema if pa.types.is_integer(each.type) or pa.types.is_null(each.type)
        }
        options = csv.ConvertOptions(column_types=whole, include_columns=_columns_to_read(keys, schema.names))
        with csv.open_csv(self.path, convert_options=options) as reader:
            yield from _as_tables(reader)


def _columns_to_read(keys: Sequence[Key] | None, names: Sequence[str]) -> list[str] | None:
    """Names of the columns to read; None for all, also where some are absent, which the caller reports."""
    found = [key for key in keys or () if isinstance(key, str) and key in names]
    return found if keys is not None and len(found) == len(keys) else None


def _as_tables(batches: Iterable[Any]) -> Iterator[Any]:
    return (table_of(batch) for batch in batches if batch.num_rows)


def table_of(batch: Any) -> Any:
    """A record batch as an Arrow table, the type that all other code handles."""
    return library("pyarrow").Table.from_batches([batch])


def library(name: str) -> Any:
    """A library of the extra ``data``."""
    return import_optional(name, "data", "reading this")
