"""Tables too large for memory, read block by block as often as training needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.rows.column_selection import ColumnReader, Key, Numbers, cut, keys_apart, length_of, select_columns
from prinfold.rows.dask_partitions import DaskPartitions, partitions_of
from prinfold.rows.pass_progress import progress_callback
from prinfold.rows.readers import PartitionReader, reader_of
from prinfold.rows.tree_sums import TreeSum
from prinfold.validation.named_block import NamedBlock
from prinfold.validation.settings import integer

__all__ = ["Blocks"]


class Blocks:
    """A table too large for memory, read block by block.

    ``GTM.fit(Blocks(source))`` reads it once for each iteration and never holds more than a few blocks.
    ``for block in blocks`` gives arrays of at most ``rows`` rows, however the source is cut, and they are copies.

    Parameters
    ----------
    source : path, dataset, array, frame, list of those, or function
        The name of a file that ends in ``.parquet``, ``.arrow``, ``.feather``, ``.csv``, ``.npy`` or ``.zarr``, or of a
        folder of such files; an Arrow dataset or table; a Zarr array, a memory map or anything else of two dimensions
        that gives slices of rows; a frame; a Dask array or frame, each of whose partitions is a block; a list of those
        in memory or on disk; or a function without arguments that returns a fresh iterator of arrays or frames each
        time it is called. What can be read only once is refused.
    columns : sequence of str or int, default=None
        Names or numbers of the columns to read; None is all but that of the weights. Of files in columns the others
        are not read at all.
    rows : int, default=65536
        Most rows in a block; of a Dask collection partitions stay as they are.
    weight : str or int, default=None
        Name or number of a column that holds the weights of the rows.

    Attributes
    ----------
    names : tuple of str or None
        Names of the columns that are read, where the source has names.

    Examples
    --------
    >>> import numpy as np
    >>> from prinfold import GTM, Blocks
    >>> rng = np.random.default_rng(0)
    >>> blocks = Blocks([rng.standard_normal((100, 3)) for _ in range(4)], rows=150)
    >>> [len(block) for block in blocks]
    [150, 150, 100]
    >>> model = GTM(1, nodes=20, tol=0.01, random_state=0).fit(blocks)
    >>> model.n_features_in_
    3
    """

    def __init__(
        self, source: Any, columns: Sequence[Key] | None = None, rows: int = 65536, *, weight: Key | None = None
    ) -> None:
        if isinstance(source, Blocks):
            raise InvalidParameterError("got Blocks, which are blocks already; hand them over as they are")
        if not integer(1).test(rows):
            raise InvalidParameterError(f"Blocks: rows must be {integer(1).words}, got {rows!r}")
        self.columns = None if columns is None else _keys(columns)
        if weight is not None and not _is_key(weight):
            raise InvalidParameterError(f"Blocks: weight must be the name or number of a column, got {weight!r}")
        self.source, self.rows, self.weight = source, int(rows), weight
        self.partitions = partitions_of(source)
        self._reader = PartitionReader(self.partitions) if self.partitions is not None else reader_of(source)
        self._layout: ColumnReader | None = None
        self._n_rows: int | None = None  # as a pass has found

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns that are read, where the source has names."""
        found = self._find_layout()
        return None if found is None else found.names

    def __iter__(self) -> Iterator[FloatArray]:
        for block in self.weighted():
            table = block.table.copy()  # or who keeps a block, or writes into it, would do so with the source's own
            yield table if self.names is None else NamedBlock.of(table, self.names)

    def __repr__(self) -> str:
        shown = repr(self.source) if isinstance(self.source, str) else f"<{type(self.source).__name__}>"
        options = {"columns": self.columns, "rows": self.rows, "weight": self.weight}
        defaults = {"columns": None, "rows": 65536, "weight": None}
        given = [f"{name}={value!r}" for name, value in options.items() if value != defaults[name]]
        return f"Blocks({', '.join([shown, *given])})"

    def weighted(self) -> Iterator[Numbers]:
        """Read all rows from the beginning, with their weights.

        Yields
        ------
        Numbers
            ``table`` (n, D) and ``weight`` (n,), which is None where no column of weights was named. The table may be
            a part of the source itself: it is not to be written to, nor kept until the next is read.
        """
        if self.partitions is not None:
            yield from self._read()
            return
        waiting: list[Numbers] = []
        n_waiting = 0
        for block in self._read():
            n_waiting += len(block.table)
            # What waits for more is copied: a source may fill one array again and again.
            waiting.append(block if n_waiting >= self.rows else Numbers(block.table.copy(), block.weight))
            if n_waiting >= self.rows:
                whole = Numbers.join(waiting)
                n_waiting -= self.rows
                waiting = [whole.part(slice(self.rows, None))] if n_waiting else []
                yield whole.part(slice(self.rows))
        if waiting:
            yield Numbers.join(waiting)

    def sum_partitions(self, of_block: Callable[[Numbers], Any]) -> Any:
        """Σ over the partitions of a Dask collection, added up where they lie; what is None does not count."""
        return self.sum_numbered_partitions(_WithoutNumber(of_block))

    def sum_numbered_partitions(self, of_block: Callable[[tuple[int, Numbers]], Any]) -> Any:
        """The same for work that takes the number of a partition too."""
        assert self.partitions is not None
        return self.partitions.sum_numbered(_OfPiece(self._found_layout, of_block))

    def sum_pieces(self, work: Callable[[Any], Any]) -> Any:
        """Σ work(piece) over pieces with rows, as they came, before they are numbers; where the pieces are."""
        if self.partitions is not None:
            return self.partitions.sum_numbered(_OfPieceAlone(work))
        tree, n_pieces = TreeSum[Any](), 0
        for n_pieces, piece in enumerate(self.pieces(), 1):
            tree.put(n_pieces - 1, work(piece))
        if not n_pieces:
            raise InvalidDataError("the source has no rows; there is nothing to fit")
        return tree.total()

    def without(self, keys: Sequence[Key], what: str) -> tuple[Blocks, tuple[Key, ...]]:
        """The same source without columns that ``what`` names, and these by the keys under which it has them."""
        look = _Keys(self.columns, self.weight, tuple(keys), what)
        if self.partitions is None:
            found = next((look(piece) for piece in self.pieces()), None)
        else:
            found = next((each for each in self.partitions.look_at_each(look) if each is not None), None)
        if found is None:
            raise InvalidDataError("the source has no rows; there is nothing to fit")
        kept, taken = found
        return Blocks(self.source, kept, self.rows, weight=self.weight), taken

    @property
    def reader(self) -> ColumnReader:
        """The reader that turns its pieces into numbers."""
        return self._found_layout

    def read_by(self, layout: ColumnReader) -> Blocks:
        """The same source, its pieces made numbers in another way."""
        found = copy(self)
        found._layout = layout
        return found

    def of_partitions(self, partitions: DaskPartitions) -> Blocks:
        """The same columns of other partitions."""
        found = self.read_by(self._found_layout)
        found.partitions, found._reader, found._n_rows = partitions, PartitionReader(partitions), None
        return found

    def count_rows(self) -> IntArray:
        """(p,) rows of each partition, counted where it lies, or of each piece of any other source, which is read."""
        if self.partitions is None:
            return np.array([length_of(piece) for piece in self.pieces()], dtype=np.intp)
        return np.array([n for n, _ in self.count_partitions(_rows_alone)], dtype=np.intp)

    def count_partitions(self, count: Callable[[Numbers], tuple[int, int]]) -> list[tuple[int, int]]:
        """Number of rows of each partition, and how many of them count; those without any have no part in sums."""
        assert self.partitions is not None
        found = self.partitions.look_at_each(_Count(self.columns, self.weight, self._layout, count))
        self._layout = self._layout or next((layout for layout, _ in found if layout is not None), None)
        counts = [each for _, each in found]
        self.partitions.lengths = [n_read for n_read, _ in counts]
        return counts

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as it is read."""
        layout = self._found_layout
        return len(layout.keys) * layout.dtype.itemsize

    @property
    def _found_layout(self) -> ColumnReader:
        """The columns of a source that has rows."""
        found = self._find_layout()
        if found is None:
            raise InvalidDataError("the source has no rows; there is nothing to fit")
        return found

    def _find_layout(self) -> ColumnReader | None:
        """The columns, found where the rows are; a source without rows has none."""
        if self._layout is None and self.partitions is not None:
            self.count_partitions(_rows_alone)
        elif self._layout is None:
            next(self.weighted(), None)
        return self._layout

    def _read(self) -> Iterator[Numbers]:
        """Pieces of at most as many rows as a block, as numbers."""
        for piece in self.pieces():
            if self._layout is None:
                self._layout = select_columns(piece, self.columns, self.weight)
            yield self._layout.read(piece)

    def pieces(self) -> Iterator[Any]:
        """Pieces of the source that have rows, as they came; whoever listens is told how far that has come."""
        hear, n_read = progress_callback(), 0
        if hear is None:
            yield from self._pieces()
            return
        total = self._reader.n_rows if self._n_rows is None else self._n_rows
        hear(0, total)
        for piece in self._pieces():
            yield piece
            n_read += length_of(piece)
            hear(n_read, total)
        self._n_rows = n_read

    def _pieces(self) -> Iterator[Any]:
        own = () if self.weight is None or self.weight in (self.columns or ()) else (self.weight,)
        keys = None if self.columns is None else (*self.columns, *own)
        for piece in self._reader.pieces(self.rows, keys):
            if length_of(piece):
                yield from [piece] if self.partitions is not None else cut(piece, self.rows)


@dataclass(frozen=True)
class _OfPiece:
    """Work on numbered blocks as work on numbered pieces of the source."""

    layout: ColumnReader
    of_block: Callable[[tuple[int, Numbers]], Any]

    def __call__(self, numbered: tuple[int, Any]) -> Any:
        return self.of_block((numbered[0], self.layout.read(numbered[1])))


@dataclass(frozen=True)
class _OfPieceAlone:
    """Work on pieces of the source as they came."""

    work: Callable[[Any], Any]

    def __call__(self, numbered: tuple[int, Any]) -> Any:
        return self.work(numbered[1])


@dataclass(frozen=True)
class _Keys:
    """The columns of a piece but for some, and these."""

    columns: tuple[Key, ...] | None
    weight: Key | None
    taken: tuple[Key, ...]
    what: str

    def __call__(self, piece: Any) -> tuple[tuple[Key, ...], tuple[Key, ...]] | None:
        if length_of(piece) == 0:
            return None
        return keys_apart(piece, self.columns, self.weight, self.taken, self.what)


@dataclass(frozen=True)
class _WithoutNumber:
    """Work that does not ask for the number of a block."""

    of_block: Callable[[Numbers], Any]

    def __call__(self, numbered: tuple[int, Numbers]) -> Any:
        return self.of_block(numbered[1])


@dataclass(frozen=True)
class _Count:
    """The columns of a piece, and how many rows it has."""

    columns: tuple[Key, ...] | None
    weight: Key | None
    layout: ColumnReader | None
    count: Callable[[Numbers], tuple[int, int]]

    def __call__(self, piece: Any) -> tuple[ColumnReader | None, tuple[int, int]]:
        if length_of(piece) == 0:
            return None, (0, 0)
        layout = self.layout or select_columns(piece, self.columns, self.weight)
        return layout, self.count(layout.read(piece))


def _rows_alone(block: Numbers) -> tuple[int, int]:
    return len(block.table), len(block.table)


def _keys(columns: Any) -> tuple[Key, ...]:
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray) or len(columns) == 0:
        raise InvalidParameterError(f"Blocks: columns must be a list of names or numbers of columns, got {columns!r}")
    keys = tuple(int(each) if isinstance(each, np.integer) else each for each in columns)
    if not all(map(_is_key, keys)) or len(set(keys)) != len(keys):
        raise InvalidParameterError(
            f"Blocks: columns must be a list of different names or numbers of columns, got {columns!r}"
        )
    return keys


def _is_key(value: Any) -> bool:
    return isinstance(value, str) or integer(-(2**62)).test(value)
