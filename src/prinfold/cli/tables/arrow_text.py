"""Large text files read by Arrow, many times faster; files that it cannot read are left to our own reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from prinfold.cli.tables.memory import release_memory

_SPOOLED_BYTES = 2**20
_SPOOLED_CELL_BYTES = 2**8
"""Text that is turned into numbers at a time where a file is larger than the memory that it may take.

Arrow reads ahead and holds some fifty times as much. A row must fit: so many bytes for each of its cells.
"""


def has_arrow() -> bool:
    """Whether Arrow's reader of text is installed."""
    try:
        import_module("pyarrow.csv")
    except ImportError:
        return False
    return True


@dataclass(frozen=True)
class PlainText:
    """A text file that Arrow may read.

    Parameters
    ----------
    path : Path
        The file.
    separator : str
        Between cells.
    skip : int
        Lines before the first row.
    numeric : tuple of bool
        Which columns are numbers.
    decimal : str
        Decimal point of numbers.
    missing : frozenset of str
        Words for missing cells, in small letters.
    encoding : str, default="utf-8"
        Encoding of the file.
    """

    path: Path
    separator: str
    skip: int
    numeric: tuple[bool, ...]
    decimal: str
    missing: frozenset[str]
    encoding: str = "utf-8"

    def columns(self) -> list[Any] | None:
        """Columns, numbers in double precision and text as objects; None where Arrow balks.

        It does at ragged lines, a word among numbers and other letters, of which our own reader knows what to say.
        """
        arrow, text = import_module("pyarrow"), import_module("pyarrow.csv")
        try:
            table = text.read_csv(self.path, **self._options())
        except (arrow.ArrowException, OSError):
            return None
        columns, found = table.columns, []
        del table
        if any(
            "\n" in str(each[-1])
            for each, number in zip(columns, self.numeric, strict=True)
            if not number and len(each)
        ):
            return None  # a quote may be open, which our own reader finds out
        columns.reverse()
        for number in self.numeric:
            column = columns.pop()  # what is taken is let go
            found.append(np.array(column.to_numpy()) if number else _words(column))
        return found

    def spool(self, target: Path, names: Sequence[str], tell: Callable[[int], None]) -> int | None:
        """Write the table to an Arrow file, some rows at a time; returns their number, None where Arrow balks.

        ``tell`` hears how many bytes of the text are read.
        """
        arrow, text, ipc = import_module("pyarrow"), import_module("pyarrow.csv"), import_module("pyarrow.ipc")
        # What is freed goes back to the system at once, where Arrow's own pools would keep it for the whole fit.
        arrow.set_memory_pool(arrow.system_memory_pool())
        schema, n = arrow.schema(list(zip(names, self._kinds().values(), strict=True))), 0
        last: list[dict[str, Any]] = []
        try:
            with (
                self.path.open("rb") as file,
                text.open_csv(_ProgressFile(file, tell), **self._options(self._spooled_bytes)) as batches,
                arrow.OSFile(str(target), "wb") as stored,
                ipc.new_file(stored, schema) as writer,
            ):
                for batch in batches:
                    last = batch.slice(max(batch.num_rows - 1, 0)).to_pylist()
                    writer.write_batch(arrow.RecordBatch.from_arrays(batch.columns, schema=schema))
                    n += batch.num_rows
        except arrow.ArrowException:
            return None
        finally:
            release_memory()
        return None if any("\n" in str(cell) for row in last for cell in row.values()) else n

    @property
    def _spooled_bytes(self) -> int:
        return max(_SPOOLED_BYTES, _SPOOLED_CELL_BYTES * len(self.numeric))

    def _kinds(self) -> dict[str, Any]:
        arrow = import_module("pyarrow")
        return {str(j): arrow.float64() if number else arrow.string() for j, number in enumerate(self.numeric)}

    def _options(self, block: int | None = None) -> dict[str, Any]:
        """Options of Arrow's reader; columns are called by their numbers."""
        text, kinds = import_module("pyarrow.csv"), self._kinds()
        plain = "utf8" if self.encoding.startswith("utf-8") else self.encoding
        words = {form for word in self.missing for form in (word, word.upper(), word.capitalize(), word.title())}
        return {
            "read_options": text.ReadOptions(
                column_names=list(kinds), skip_rows=self.skip, block_size=block, encoding=plain
            ),
            "parse_options": text.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            "convert_options": text.ConvertOptions(
                column_types=kinds,
                null_values=sorted(words | {"NaN"}),
                strings_can_be_null=False,
                decimal_point=self.decimal,
            ),
        }


class _ProgressFile:
    """A file that tells how far it was read."""

    def __init__(self, file: Any, tell: Callable[[int], None]) -> None:
        self.file, self._tell, self.closed = file, tell, False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found: bytes = self.file.read(size)
        self._tell(self.file.tell())
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        """Leave the closing to whoever opened it."""
        self.closed = True


def _words(column: Any) -> Any:
    """(n,) words, of which those that are equal are one object."""
    seen: dict[str, str] = {}
    parts = (seen.setdefault(word, word) for chunk in column.chunks for word in chunk.to_pylist())
    return np.fromiter(parts, dtype=object, count=len(column))
