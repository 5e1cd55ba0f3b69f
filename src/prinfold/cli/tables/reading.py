"""Tables from files of any of the usual kinds, as columns of numbers or of text.

``READERS`` tells by the end of a file's name how it is read. What cannot be read says so in one line, with what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse

from prinfold._typing import FloatArray
from prinfold.cli.tables.delimited import (
    DECIMAL_COMMAS,
    SpooledText,
    TextCells,
    complete_names,
    layout_notes,
    number_repeats,
    read_delimited,
    read_sheet_cells,
    spool_delimited,
)
from prinfold.cli.tables.number_formats import (
    COMMA,
    AmbiguousError,
    all_missing,
    formatted_numbers,
    is_formatted,
    number_of,
)
from prinfold.cli.tables.output_format import PLAIN, OutputFormat
from prinfold.cli.tables.sampling import Draw, batches_of, draw_arrow, draw_parquet, is_large
from prinfold.cli.tables.workbooks import read_sheet, title_rows
from prinfold.exceptions import (
    DataNotFoundError,
    InvalidDataError,
    MissingExtraError,
    import_optional,
    join_names,
    quantity,
)
from prinfold.loops import Meter
from prinfold.validation.sparse_structure import refuse_broken_structure

_MOST_CELLS = 10**8
"""Of a sparse table that is filled in: 0.8 GB."""


@dataclass(frozen=True)
class Reading:
    """Options for reading a table, where the file itself does not tell."""

    separator: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] = ()
    array: str | None = None
    decimal: str | None = None
    draw: Draw | None = None


@dataclass(frozen=True)
class FileTable:
    """Columns by name: numbers (n,) in double precision, or objects, which are text.

    ``measured`` are the columns that a surface may run through; others, as those of cells in a file of single cells,
    can only be labels or names. ``named`` tells whether the file has names of its own, ``lines`` where rows are in it.
    ``unclear`` says of columns of text why they cannot be read as the numbers that they seem to be.
    Where only some rows were drawn, ``whole`` is how many there are, and a large text file is ``spooled``. The columns
    of an ``embedding`` of cells have one scale, and ``units`` stand below the names in some files. Results in text
    follow the ``output_format``, that of the file.
    """

    path: Path
    columns: dict[str, Any]
    measured: tuple[str, ...]
    named: bool
    notes: tuple[str, ...] = ()
    lines: Any = None
    unclear: Mapping[str, str] = field(default_factory=dict)
    whole: int | None = None
    embedding: bool = False
    spooled: SpooledText | None = None
    units: tuple[str, ...] = ()
    output_format: OutputFormat = PLAIN

    def with_units(self, names: Sequence[str]) -> list[str]:
        """Names, each with the unit that stands below it in the file."""
        known = {name: unit.strip(" ()[]") for name, unit in zip(self.columns, self.units, strict=False)}
        return [f"{name} [{known[name]}]" if known.get(name) else name for name in names]

    @property
    def rows_file(self) -> Path | None:
        """The file that rows are read from block by block; None where that cannot be done."""
        if self.spooled is not None:
            return self.spooled.path
        return self.path if self.path.name.lower().endswith((".parquet", ".pq")) else None

    def parts(self) -> Iterator[Mapping[str, Any]]:
        """Columns of all rows, some rows at a time where only some are in memory."""
        if self.whole is None or self.rows_file is None:
            yield self.columns
            return
        arrow = import_module("pyarrow")
        for batch in batches_of(self.rows_file):
            columns = arrow.Table.from_batches([batch]).columns
            yield dict(zip(self.columns, map(_column_of_arrow, columns), strict=True))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers."""
        return bool(self.columns[name].dtype != object)

    def place(self, row: int) -> str:
        """The place of a row in its file, in words."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        return f"row {row}" if self.whole is None else "one of the rows that were drawn"


def read_table(path: Path, reading: Reading | None = None) -> FileTable:
    """Read a table; the end of the file's name tells how.

    Parameters
    ----------
    path : Path
        The file.
    reading : Reading, default=None
        What is known of it.

    Returns
    -------
    Table
    """
    reading = reading or Reading()
    refuse_absent(path)
    with _explain_errors(path):
        table = _draw_rows(_reader_of(path)(path, reading), reading.draw)
    if len(table) == 0:
        raise InvalidDataError(f"{path} has columns, but no row")
    return table


def _draw_rows(table: FileTable, draw: Draw | None) -> FileTable:
    """Some rows of a table that was read as a whole."""
    if draw is None or table.whole is not None or len(table) <= draw.rows:
        return table
    places = draw.places(len(table))
    columns = {name: each[places] for name, each in table.columns.items()}
    return replace(table, columns=columns, lines=None if table.lines is None else table.lines[places], whole=len(table))


def _reader_of(path: Path) -> Callable[[Path, Reading], FileTable]:
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in READERS:
        return READERS[suffix]
    if suffix in _OTHERS:
        raise InvalidDataError(f"{path} is {_OTHERS[suffix]}")
    return _from_text


def refuse_absent(path: Path) -> None:
    """Say at once that there is no such file, or that it is a folder or a pipe."""
    if path.is_dir():
        inside = sorted(each.name for each in path.iterdir() if each.suffix in READERS)
        files = f"; it holds {join_names(inside)}" if inside else ""
        raise InvalidDataError(f"{path} is a folder; name a file in it{files}")
    if path.is_file():
        return
    if path.exists():
        raise InvalidDataError(
            f"{path} is a pipe or a device, and tables are read more than once; write it to a file first"
        )
    if path.is_symlink():
        raise DataNotFoundError(
            f"{path} is a link to {path.readlink()}, which leads to no file; correct the link, or name the file itself"
        )
    near: list[str] = []
    if path.parent.is_dir():
        # Endings are alike in most names, and say nothing of what was meant; of equal names the table is.
        beside = sorted(path.parent.iterdir(), key=lambda each: (each.suffix == path.suffix, each.suffix in READERS))
        stems = {each.stem: each.name for each in beside}
        near = [stems[stem] for stem in difflib.get_close_matches(path.stem, stems, n=1)]
    hint = (
        f"did you mean {path.with_name(near[0])}?" if near else "is the name right, and are you in the folder it is in?"
    )
    raise DataNotFoundError(f"there is no file {path}; {hint}")


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    """Errors of libraries that cannot read a file, with the name of the file and what to do."""
    try:
        yield
    except (InvalidDataError, MissingExtraError):
        raise
    except PermissionError as error:
        raise InvalidDataError(f"cannot read {path}: {error.strerror}; you lack the right to read it") from error
    except (OSError, ValueError, EOFError, KeyError, TypeError, NotImplementedError, BadZipFile) as error:
        words = " ".join(str(error).split()).rstrip(".")
        if words.startswith("Object arrays cannot be loaded"):
            raise InvalidDataError(
                f"{path} holds Python objects, which are not read since they may run programs; save it as numbers: "
                "np.save(name, X.astype(float))"
            ) from error
        raise InvalidDataError(
            f"cannot read {path}: {words[:200]}; the file may be damaged, cut short, or of another kind than its name "
            "says"
        ) from error


# ------------------------------------------------------------------------------------------------------- text and NumPy


def _from_text(path: Path, reading: Reading) -> FileTable:
    if reading.draw is not None and reading.decimal is None and is_large(path):
        spooled = _spooled(path, reading, reading.draw)
        if spooled is not None:
            return spooled
    found = read_delimited(
        path,
        separator=reading.separator,
        header=reading.header,
        missing=reading.missing,
        decimal=reading.decimal,
        draw=reading.draw,
    )
    return _table_of_cells(path, found, reading)


def _spooled(path: Path, reading: Reading, draw: Draw) -> FileTable | None:
    """Some rows of a large text file, which is turned into an Arrow file on the way; None where that cannot be done."""
    with Meter(f"Reading {path.name}", path.stat().st_size) as meter:
        found = spool_delimited(
            path, separator=reading.separator, header=reading.header, missing=reading.missing, tell=meter.tell
        )
    if found is None:
        return None
    some = _table_of_arrow(path, draw_arrow(found.path, found.n_rows, draw))
    if _holds_formatted_numbers(some, reading):
        return None  # as numbers they are read by our own reader alone
    notes = (*found.notes, *layout_notes(named=found.named, commas=found.output_format.decimal == COMMA), *some.notes)
    whole = found.n_rows if found.n_rows > len(some) else None
    return replace(
        some,
        notes=notes,
        named=found.named,
        whole=whole,
        spooled=found,
        units=found.units,
        output_format=found.output_format,
    )


def _holds_formatted_numbers(table: FileTable, reading: Reading) -> bool:
    """Whether a column of text is one of numbers with symbols or marks, such as percents or thousands."""
    try:
        found = [
            formatted_numbers(cells, all_missing(reading.missing), reading.decimal)
            for cells in table.columns.values()
            if cells.dtype == object
        ]
    except AmbiguousError:
        return True
    return any(each is not None for each in found)


def _from_workbook(path: Path, reading: Reading) -> FileTable:
    rows, notes = read_sheet(path, reading.array)
    above = title_rows(rows)
    if above:
        notes.append(f"{quantity(above, 'row')} above the table {'was' if above == 1 else 'were'} left out")
    found = read_sheet_cells(
        path, rows[above:], header=reading.header, missing=reading.missing, decimal=reading.decimal
    )
    table = _table_of_cells(path, found, reading)
    return replace(table, notes=(*notes, *table.notes), lines=None)


def _table_of_cells(path: Path, found: TextCells, reading: Reading) -> FileTable:
    """A table of cells that were read as text: numbers in whatever format are numbers, and every column has a name."""
    names, notes = number_repeats(complete_names(found.names, len(found.columns)))
    columns = dict(zip(names, found.columns, strict=True))
    unclear: dict[str, str] = {}
    for j, name in enumerate(names):
        if columns[name].dtype == object:
            notes += _read_formatted(path, name, columns, unclear, reading, doubted=j in found.doubtful)
    named, all_notes = found.names is not None, tuple(dict.fromkeys((*found.notes, *notes)))
    return FileTable(
        path,
        columns,
        tuple(names),
        named,
        all_notes,
        found.lines,
        unclear,
        found.whole,
        units=found.units,
        output_format=OutputFormat.like(found.separator, found.encoding, commas=DECIMAL_COMMAS in all_notes),
    )


def _read_formatted(
    path: Path, name: str, columns: dict[str, Any], unclear: dict[str, str], reading: Reading, *, doubted: bool
) -> list[str]:
    """Numbers in place of a column of text that can be read as such, with a note; else the reason why it cannot."""
    cells = columns[name]
    there = [cell for cell in cells if cell]
    odd = next((cell for cell in there if number_of(cell) is None), None)
    example = odd or next((cell for cell in there if is_formatted(cell)), "")
    try:
        found = formatted_numbers(cells, all_missing(reading.missing), reading.decimal, doubted=doubted)
    except AmbiguousError as error:
        digits = re.sub(r"[^\d.,]", "", str(error))
        either = f"{re.sub('[.,]', '', digits)} or {digits.replace(',', '.')}"
        unclear[name] = (
            f"column {name!r} of {path} holds {str(error)!r}, which may be {either}; set the decimal mark "
            "with --decimal point or --decimal comma"
        )
        return []
    if found is not None:
        columns[name] = found.numbers
        marks = [f"{name} holds numbers such as {example!r}: {found.words}"] if found.words else []
        return [*([DECIMAL_COMMAS] if found.commas else []), *found.notes, *marks]
    if doubted:
        unclear[name] = (
            f"column {name!r} of {path} has commas in some numbers and points in others, such as {example!r}; write "
            "all in one way"
        )
    return []


def _from_npy(path: Path, reading: Reading) -> FileTable:
    return _table_of_array(path, np.load(path, allow_pickle=False), None, {})


def _from_npz(path: Path, reading: Reading) -> FileTable:
    """One array of two dimensions; those of one number or word for each row can be labels."""
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if {"format", "shape", "data"} <= arrays.keys():  # as SciPy writes them
        return _table_of_array(path, _to_dense(path), None, {}, ["the sparse table was filled in"])
    flat = [name for name, each in arrays.items() if each.ndim == 2 and each.dtype.kind in "biuf"]
    chosen = reading.array or ("X" if "X" in flat else flat[0] if len(flat) == 1 else None)
    if chosen is None or chosen not in arrays:
        what = "which" if chosen is None else f"not {chosen!r}"
        raise InvalidDataError(f"{path} holds the arrays {join_names(list(arrays))}; say {what} with --array NAME")
    rows = arrays[chosen].shape[0] if arrays[chosen].ndim else 0
    others = {name: each for name, each in arrays.items() if each.shape == (rows,) and name != chosen}
    names = arrays.get("columns", arrays.get("names", arrays.get("feature_names")))
    given = [str(each) for each in names] if names is not None and names.shape == arrays[chosen].shape[1:] else None
    notes = [] if reading.array or len(arrays) == 1 else [_which_array(chosen, arrays, others)]
    return _table_of_array(path, arrays[chosen], given, others, notes)


def _to_dense(path: Path) -> FloatArray:
    """A sparse table of SciPy's as an ordinary one."""
    table = scipy.sparse.load_npz(path)
    refuse_broken_structure(table)
    n, width = table.shape
    if n * width > _MOST_CELLS:
        raise InvalidDataError(
            f"{path} holds a sparse table of {n} rows and {width} columns, which would take {8e-9 * n * width:.0f} GB "
            "filled in; fit it in Python, where it may stay sparse: GTM().fit(scipy.sparse.load_npz(...))"
        )
    return np.asarray(table.toarray(), dtype=np.float64)


def _which_array(chosen: str, arrays: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """A note on which of several arrays was taken, and how to use the others."""
    verb = "has" if len(others) == 1 else "have"
    rest = f"; {join_names(list(others))} {verb} a value for each row, for --label or --keep"
    known = f"of the arrays {join_names(list(arrays))} the table is {chosen}, unless --array names another"
    return f"{known}{rest}" if others else known


def _table_of_array(
    path: Path, array: Any, names: Sequence[str] | None, others: dict[str, Any], said: Sequence[str] = ()
) -> FileTable:
    if array.ndim not in {1, 2} or array.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}; a table has two dimensions, rows "
            "and columns, and holds numbers"
        )
    matrix = np.asarray(array[:, None] if array.ndim == 1 else array, dtype=np.float64)
    if matrix.shape[1] == 0:
        raise InvalidDataError(f"{path} holds an array of shape {array.shape}, in which there is no column")
    found, notes = number_repeats(complete_names(names, matrix.shape[1]))
    columns: dict[str, Any] = {name: matrix[:, j] for j, name in enumerate(found)}
    columns |= {name: _plain(each) for name, each in others.items() if name not in columns}
    return FileTable(path, columns, tuple(found), names is not None, (*said, *notes))


def _plain(values: Any) -> Any:
    """(n,) numbers in double precision, anything else as objects: text, or None where there is nothing."""
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    return np.array([*(_word(each) for each in values.tolist()), None], dtype=object)[:-1]


def _word(value: Any) -> str | None:
    nothing = value is None or (isinstance(value, float) and np.isnan(value))
    return None if nothing else value if isinstance(value, str) else str(value)


# ---------------------------------------------------------------------------------------------------- Arrow and AnnData


def _from_parquet(path: Path, reading: Reading) -> FileTable:
    parquet = _library("pyarrow.parquet", path)
    if reading.draw is None:
        return _table_of_arrow(path, parquet.ParquetFile(path).read())  # of which names may come twice
    some, whole = draw_parquet(path, reading.draw)
    return replace(_table_of_arrow(path, some), whole=whole if whole > some.num_rows else None)


def _from_arrow(path: Path, reading: Reading) -> FileTable:
    ipc = _library("pyarrow.ipc", path)
    arrow = import_module("pyarrow")
    with arrow.OSFile(str(path)) as stream:
        start = stream.read(6)
        stream.seek(0)
        # Files begin with a word, streams do not.
        reader = ipc.open_file(stream) if start == b"ARROW1" else ipc.open_stream(stream)
        return _table_of_arrow(path, reader.read_all())


def _table_of_arrow(path: Path, table: Any) -> FileTable:
    names, notes = number_repeats(complete_names(table.column_names, table.num_columns))
    if not names:
        raise InvalidDataError(f"{path} has no column")
    columns = {name: _column_of_arrow(table.column(j)) for j, name in enumerate(names)}
    return FileTable(path, columns, tuple(names), True, tuple(notes))


def _column_of_arrow(column: Any) -> Any:
    types = import_module("pyarrow").types
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        numbers: FloatArray = (
            column.cast("float64", safe=False).to_numpy() if not types.is_boolean(kind) else _booleans(column)
        )
        return np.array(numbers, dtype=np.float64)
    return np.array([*(_word(each) for each in column.to_pylist()), None], dtype=object)[:-1]


def _booleans(column: Any) -> FloatArray:
    return np.array([np.nan if each is None else float(each) for each in column.to_pylist()])


def _from_h5ad(path: Path, reading: Reading) -> FileTable:
    """Single cells: the table is X, a layer or something of obsm; what is known of cells can be labels and names."""
    data = _library("anndata", path).read_h5ad(path)
    wanted = reading.array or "X"
    if wanted == "X" and data.X is not None:
        matrix, names = data.X, [str(each) for each in data.var_names]
    elif wanted in data.layers:
        matrix, names = data.layers[wanted], [str(each) for each in data.var_names]
    elif wanted in data.obsm:
        matrix = np.asarray(data.obsm[wanted])
        names = [f"{wanted} {j + 1}" for j in range(matrix.shape[1])]
    else:
        known = ["X", *data.layers, *data.obsm]
        raise InvalidDataError(f"{path} has no array {wanted!r}; --array takes {join_names(known)}")
    refuse_broken_structure(matrix)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    others = {str(name): _plain(np.asarray(data.obs[name].astype(object))) for name in data.obs.columns}
    others = {name: _numbers_if_all(each) for name, each in others.items()}
    others["obs_names"] = np.array([str(each) for each in data.obs_names], dtype=object)
    elsewhere = [*data.layers, *data.obsm]
    notes = [f"the table is X; --array takes one of {join_names(elsewhere)} instead"]
    made = _table_of_array(path, dense, names, others, notes if elsewhere and not reading.array else [])
    return replace(made, embedding=wanted in data.obsm and wanted not in data.layers and wanted != "X")


def _numbers_if_all(values: Any) -> Any:
    """A column of objects as numbers where they were numbers."""
    try:
        return np.array([np.nan if each is None else float(each) for each in values])
    except ValueError:
        return values


def _library(name: str, path: Path) -> Any:
    return import_optional(name, "cli", f"reading {path.name}", "export the table as CSV")


READERS: dict[str, Callable[[Path, Reading], FileTable]] = {
    ".csv": _from_text,
    ".tsv": _from_text,
    ".txt": _from_text,
    ".tab": _from_text,
    ".dat": _from_text,
    ".parquet": _from_parquet,
    ".pq": _from_parquet,
    ".arrow": _from_arrow,
    ".feather": _from_arrow,
    ".npy": _from_npy,
    ".npz": _from_npz,
    ".h5ad": _from_h5ad,
    ".xlsx": _from_workbook,
    ".xlsm": _from_workbook,
    ".xlsb": _from_workbook,
    ".xls": _from_workbook,
    ".ods": _from_workbook,
}
"""End of a file's name → how it is read; anything else is tried as text."""

_OTHERS = {
    ".json": "JSON; write its rows as CSV or Parquet",
    ".prinfold": "a model and not a table; name the table that its rows are in",
    ".pkl": "a pickle, which may run code when it is read; write the table as CSV, Parquet or .npy",
    ".zip": "an archive; unpack it first",
}
"""Files that people may name and that are no tables, with what to do."""
