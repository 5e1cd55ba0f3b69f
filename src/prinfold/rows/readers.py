"""Readers of tables too large for memory. A reader has one method: ``pieces`` reads all of it anew, in order.

``reader_of`` finds the reader of a source once; nothing else needs to know what kind of source there is. Reading never
takes more memory than a few pieces.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse

from prinfold.exceptions import DataNotFoundError, InvalidDataError, PrinfoldError, UnsupportedInputError
from prinfold.rows.arrow_readers import (
    ArrowDatasetReader,
    ArrowFileReader,
    ArrowTableReader,
    CsvReader,
    library,
    table_of,
)
from prinfold.rows.column_selection import Key
from prinfold.rows.dask_partitions import DaskPartitions


class Reader(Protocol):
    """A source that can be read as often as one likes; ``n_rows`` is how many rows it has, where it says so."""

    @property
    def n_rows(self) -> int | None: ...

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        """All of it from the beginning, about ``rows`` rows at a time; a reader may leave out columns not in ``keys``.

        Pieces may be larger where a source is stored in larger ones.
        """


@dataclass(frozen=True)
class SliceReader:
    """Anything of two dimensions that gives slices of rows: arrays, Zarr and HDF5 arrays.

    What is stored in chunks is read in whole chunks: a part of one costs as much.
    """

    array: Any

    @property
    def n_rows(self) -> int | None:
        return int(self.array.shape[0])

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        chunk = (getattr(self.array, "chunks", None) or (1,))[0]
        step = max(chunk, rows // chunk * chunk)
        for start in range(0, self.array.shape[0], step):
            yield self.array[start : min(start + step, self.array.shape[0])]


@dataclass(frozen=True)
class MemoryMapReader:
    """A memory map in row order, read rather than mapped: pages that were seen would stay in the process's memory."""

    path: str
    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, int]

    @property
    def n_rows(self) -> int | None:
        return self.shape[0]

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        n_rows, n_columns = self.shape
        with Path(self.path).open("rb") as file:
            file.seek(self.start)
            for first in range(0, n_rows, rows):
                wanted = min(rows, n_rows - first)
                block = np.fromfile(file, dtype=self.dtype, count=wanted * n_columns)
                yield block[: len(block) // n_columns * n_columns].reshape(-1, n_columns)


@dataclass(frozen=True)
class MemoryReader:
    """Reader of a table in memory."""

    table: Any

    @property
    def n_rows(self) -> int | None:
        return int(self.table.shape[0])

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        yield self.table


@dataclass(frozen=True)
class ConcatenatedReader:
    """Reader of several sources, one after the other."""

    readers: tuple[Reader, ...]

    @property
    def n_rows(self) -> int | None:
        found = [each.n_rows for each in self.readers]
        return None if None in found else sum(each or 0 for each in found)

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        for reader in self.readers:
            yield from reader.pieces(rows, keys)


@dataclass(frozen=True)
class NamedFileReader:
    """Reader of a file; errors of the library that reads it are raised with the name of the file."""

    path: Path
    reader: Reader

    @property
    def n_rows(self) -> int | None:
        with _naming_file(self.path):
            return self.reader.n_rows

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        with _naming_file(self.path):
            yield from self.reader.pieces(rows, keys)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    try:
        yield
    except (PrinfoldError, ImportError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        raise InvalidDataError(
            f"cannot read {str(path)!r} ({error}); the file may be damaged, cut short, or of another kind than its "
            "name says"
        ) from error


@dataclass(frozen=True)
class FunctionReader:
    """Reader of a function that returns a fresh iterator of pieces at each call."""

    make: Callable[[], Any]

    @property
    def n_rows(self) -> int | None:
        return None

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        made = self.make()
        if isinstance(made, np.ndarray) or nw.dependencies.is_into_dataframe(made) or not isinstance(made, Iterable):
            raise UnsupportedInputError(
                f"a function that stands for a source must return an iterator of blocks, got {type(made).__name__}; "
                "let it yield its blocks"
            )
        for piece in made:
            yield table_of(piece) if _is_batch(piece) else piece


@dataclass(frozen=True)
class PartitionReader:
    """Reader of the partitions of a Dask collection, each of which is one piece, whatever its size."""

    partitions: DaskPartitions

    @property
    def n_rows(self) -> int | None:
        return None

    def pieces(self, rows: int, keys: Sequence[Key] | None) -> Iterator[Any]:
        yield from self.partitions.read()


def reader_of(source: Any) -> Reader:
    """The reader of a source of any kind."""
    for fits, make in _READERS:
        if fits(source):
            return make(source)
    raise UnsupportedInputError(
        f"got {_kind(source)}, which is no source of blocks; pass the name of a Parquet, Arrow, NumPy, Zarr or CSV "
        "file, an Arrow dataset or table, an array of two dimensions, a frame, a list of those, or a function that "
        "returns an iterator of arrays or frames"
    )


# ------------------------------------------------------------------------------------------ by kind of source


def _kind(source: Any) -> str:
    return f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _from_path(source: Any) -> Reader:
    path = Path(source)
    if not os.path.exists(path):  # noqa: PTH110 (a name that no file can have is an error to Path.exists)
        words = "; open what lies elsewhere by pyarrow.dataset.dataset, and pass that" if "://" in str(source) else ""
        raise DataNotFoundError(f"there is no file or folder {str(source)!r}{words}")
    if not path.is_file() and not path.is_dir():
        raise UnsupportedInputError(
            f"{str(source)!r} is a pipe or a device, which can be read only once; write it to a file first"
        )
    with _naming_file(path):
        return NamedFileReader(path, _from_file(path))


def _from_file(path: Path) -> Reader:
    """The reader of a file or folder that is there."""
    if path.suffix == ".npy" and path.is_file():
        return reader_of(np.load(path, mmap_mode="r", allow_pickle=False))
    if path.suffix == ".zarr" or (path.is_dir() and any((path / name).exists() for name in ("zarr.json", ".zarray"))):
        return _from_zarr(path)
    if path.is_dir():
        return _from_folder(path)
    if path.suffix in _BY_ARROW:
        library("pyarrow.dataset")  # said at once, rather than when reading begins
        return _BY_ARROW[path.suffix](str(path))
    known = ", ".join([".npy", ".zarr", *_BY_ARROW])
    raise UnsupportedInputError(
        f"cannot tell what kind of file {path.name!r} is: names of files must end in one of {known}; open it "
        "yourself and pass an array, an Arrow dataset, or a function that yields blocks"
    )


def _from_zarr(path: Path) -> Reader:
    stored = library("zarr").open(path, mode="r")
    if not hasattr(stored, "shape"):
        words = f"{str(path)!r} is a group of Zarr arrays"
        raise UnsupportedInputError(f"{words}; pass one of them: zarr.open({str(path)!r})[...], by its name")
    return reader_of(stored)


def _from_folder(path: Path) -> Reader:
    """A folder of files of one kind, which may lie in folders of their own, in the order of their names.

    Files whose names begin with a dot or an underscore are skipped: by custom they hold metadata of other programs.
    """
    own = (file for file in path.rglob("*") if not any(part[0] in "._" for part in file.relative_to(path).parts))
    files = sorted(file for file in own if file.suffix in _BY_ARROW)
    kinds = {file.suffix for file in files}
    if len(kinds) != 1:
        words = "holds no Parquet, Arrow or CSV files" if not kinds else f"holds files of {' and '.join(sorted(kinds))}"
        raise UnsupportedInputError(f"the folder {str(path)!r} {words}; name a folder of files of one kind")
    return ConcatenatedReader(tuple(_from_path(file) for file in files))


def _from_parquet(path: str) -> Reader:
    return ArrowDatasetReader(library("pyarrow.dataset").dataset(path, format="parquet"))


_BY_ARROW: dict[str, Callable[[str], Reader]] = {
    ".parquet": _from_parquet,
    ".pq": _from_parquet,
    ".arrow": ArrowFileReader,
    ".feather": ArrowFileReader,
    ".csv": CsvReader,
}
"""How files that end so are read."""


def _is_arrow(source: Any) -> bool:
    return _kind(source).startswith("pyarrow.") and hasattr(source, "to_batches") and hasattr(source, "schema")


def _from_arrow(source: Any) -> Reader:
    return ArrowDatasetReader(source) if hasattr(source, "scanner") else ArrowTableReader(source)


def _is_batch(source: Any) -> bool:
    return _kind(source) == "pyarrow.RecordBatch"


def _is_plain_map(source: Any) -> bool:
    """Whether a memory map is a file's own rows, one after the other, unchanged in memory."""
    return (
        isinstance(source, np.memmap)
        and isinstance(cast(Any, source.base), mmap.mmap)
        and source.ndim == 2
        and source.flags.c_contiguous
        and source.mode != "c"
        and source.filename is not None
    )


def _from_map(source: np.memmap[Any, Any]) -> Reader:
    source.flush()
    return MemoryMapReader(str(source.filename), int(source.offset), source.dtype, source.shape)


def _is_sliceable(source: Any) -> bool:
    return len(getattr(source, "shape", ())) == 2 and hasattr(source, "dtype") and hasattr(source, "__getitem__")


def _is_sequence(source: Any) -> bool:
    return isinstance(source, list | tuple)


def _from_sequence(source: Sequence[Any]) -> Reader:
    if not source:
        raise UnsupportedInputError("got an empty list, which holds no blocks")
    return ConcatenatedReader(tuple(reader_of(each) for each in source))


def _is_iterator(source: Any) -> bool:
    return isinstance(source, Iterator) or _kind(source) == "pyarrow.RecordBatchReader"


def _refuse_iterator(source: Any) -> Reader:
    raise UnsupportedInputError(
        f"got {_kind(source)}, which can be read only once, but training reads its rows once for each iteration; pass "
        "a function that returns a fresh iterator, or call partial_fit for each block"
    )


def _is_lazy(source: Any) -> bool:
    return hasattr(source, "collect") and hasattr(source, "lazy") and not nw.dependencies.is_into_dataframe(source)


def _refuse_query(source: Any) -> Reader:
    raise UnsupportedInputError(
        f"got {_kind(source)}, a query that has not run yet; pass its file, X.collect() if that fits in memory, or "
        "write it to a Parquet file first"
    )


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Reader]], ...] = (
    (_is_path, _from_path),
    (_is_iterator, _refuse_iterator),
    (_is_arrow, _from_arrow),
    (_is_batch, lambda source: ArrowTableReader(table_of(source))),
    (nw.dependencies.is_into_dataframe, MemoryReader),
    (scipy.sparse.issparse, MemoryReader),
    (_is_plain_map, _from_map),
    (_is_sliceable, SliceReader),
    (_is_lazy, _refuse_query),
    (_is_sequence, _from_sequence),
    (callable, FunctionReader),
    (
        lambda source: isinstance(source, Iterable) and not hasattr(source, "shape"),
        lambda source: FunctionReader(source.__iter__),
    ),
)
"""Kinds of sources, the first that fits being taken, each with how it is read."""
