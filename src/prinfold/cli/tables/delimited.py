"""Text files of cells, as people have them: any separator, decimal commas, names in quotes or none, marks of encodings.

:func:`read_delimited` looks at the beginning of a file to tell how it is laid out, then reads all of it in portions, so
that a column of numbers never exists as text as a whole.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from prinfold._typing import FloatArray
from prinfold.cli.tables.arrow_text import PlainText, has_arrow
from prinfold.cli.tables.encodings import (
    WESTERN,
    encoding_of,
    is_binary,
    is_text_with_nulls,
    may_be_utf32,
    older_encoding_of,
    open_bytes,
    other_kind,
)
from prinfold.cli.tables.headings import heading_of, heading_of_sheet, names_columns
from prinfold.cli.tables.number_formats import (
    COMMA,
    POINT,
    NumberMarks,
    all_missing,
    doubtful,
    number_of,
    numbers_with_commas,
    plain_numbers,
    reads_as_number,
)
from prinfold.cli.tables.output_format import OutputFormat
from prinfold.cli.tables.sampling import Draw
from prinfold.exceptions import InvalidDataError, quantity

DECIMAL_COMMAS = "commas within numbers were read as decimal points"
"""The note that is made once, however many columns have them."""

_NO_TEXT = (
    "{} is not a text file; name it by what it is (.parquet, .feather, .npy, .npz, .h5ad, .xlsx), or export it as CSV"
)

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BLANKS = " "
_NOTHING = " \t\r\n\f\v\u00a0\x1a"
"""Characters of cells with nothing in them; the last one ends files of DOS."""
_WORDS = {"tab": "\t", "\\t": "\t", "space": _BLANKS, "comma": ",", "semicolon": ";", "bar": "|"}
_SAMPLE = 2**16
_MOST_SAMPLE = 2**27
"""Bytes of the beginning of a file that are looked at, and at most, where its first lines are longer."""

_SAMPLE_LINES, _FEWEST_SAMPLE_LINES = 60, 3
_LONGEST_CELL = 2**31 - 1
_NAMES_SHORT_OF_CELLS = 0.9
"""How much less likely a separator is that cuts the first line into another number of cells than the others."""

_PORTION = 20_000
_ARROW_FROM_BYTES = 2_000_000
"""Bytes from which on a file is worth reading by Arrow."""


@dataclass(frozen=True)
class TextLayout:
    """Layout of a text file: ``skip`` lines first, then one of names where there is a ``header``, then rows.

    ``notes`` are on lines that were skipped, and ``units`` the cells of one of them.
    """

    encoding: str
    separator: str
    skip: int
    header: bool
    names: tuple[str, ...] | None
    width: int
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


@dataclass
class TextSource:
    """The rows of a text file, all of them or a random sample; ``whole`` is then the number of all rows."""

    path: Path
    layout: TextLayout
    draw: Draw | None = None
    whole: int | None = None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Numbers of lines, and their cells."""
        if self.draw is None:
            yield from _rows(self.path, self.layout)
            return
        count = 0

        def count_rows() -> Iterator[tuple[int, list[str]]]:
            nonlocal count
            for row in _rows(self.path, self.layout):
                count += 1
                yield row

        yield from (row for _, row in self.draw.pick(count_rows()))
        self.whole = count if count > self.draw.rows else None


@dataclass
class SheetSource:
    """The rows of a sheet, whose cells are known already; ``first`` is the number of the first one."""

    layout: TextLayout
    cells: Sequence[Sequence[str]]
    first: int
    whole: int | None = None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Numbers of rows, and their cells."""
        return ((number, list(cells)) for number, cells in enumerate(self.cells, self.first))


@dataclass
class TextCells:
    """The cells of a text file: columns of numbers or of text, the line of each row, and notes for the user.

    ``doubtful`` columns of text are numbers with commas of which it is not clear what they are.
    """

    names: list[str] | None
    columns: list[Any]
    lines: Any
    notes: list[str] = field(default_factory=list)
    doubtful: frozenset[int] = frozenset()
    whole: int | None = None
    units: tuple[str, ...] = ()
    separator: str = ","
    encoding: str = "utf-8"


def read_delimited(
    path: Path,
    *,
    separator: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] = (),
    decimal: str | None = None,
    draw: Draw | None = None,
) -> TextCells:
    """Read a text file; separator, header and decimal mark are found where they are not given.

    Parameters
    ----------
    path : Path
        The file, which may be compressed by gzip.
    separator : str, default=None
        Between cells; None finds out.
    header : bool, default=None
        Whether the first line holds names; None says so where anything in it is no number.
    missing : sequence of str
        Words for missing cells besides those of ``MISSING``.
    decimal : {".", ","}, default=None
        What stands before decimals; None finds out, and leaves columns as text where it cannot.
    draw : Draw, default=None
        Rows to draw and keep, by one pass over the others; None keeps all.

    Returns
    -------
    Cells
    """
    words = all_missing(missing)
    with _cells_of_any_length():
        layout = _layout(path, _one_character(separator), header, words)
        quick = _by_arrow(path, layout, words) if decimal is None and draw is None else None
        return quick or _read_source(path, TextSource(path, layout, draw), words, decimal)


def read_sheet_cells(
    path: Path, rows: Sequence[Sequence[str]], *, header: bool | None, missing: Sequence[str], decimal: str | None
) -> TextCells:
    """The same of cells that are known already, all rows being equally wide."""
    words = all_missing(missing)
    heading = heading_of_sheet(rows[:_SAMPLE_LINES], words) if header is None else None
    if heading is not None:
        names, notes = tuple(heading.names), tuple(heading.notes)
        layout = TextLayout("utf-8", _BLANKS, 0, False, names, len(names), notes, tuple(heading.units))
        return _read_source(path, SheetSource(layout, rows[heading.lines :], 1 + heading.lines), words, decimal)
    named = header if header is not None else names_columns(rows[0], rows[1:_SAMPLE_LINES], words)
    first = _header(rows[0], len(rows[0])) if named else None
    layout = TextLayout("utf-8", _BLANKS, 0, named, first, len(rows[0]))
    return _read_source(path, SheetSource(layout, rows[int(named) :], 1 + named), words, decimal)


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let the csv module read cells of any length; it has one limit for everybody, which is put back."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --------------------------------------------------------------------------------------------------- how it is laid out


def _one_character(separator: str | None) -> str | None:
    if separator is None:
        return None
    found = _WORDS.get(separator, separator)
    if len(found) != 1 or found in '"\r\n':
        raise InvalidDataError(f"--separator must be one character, or tab or space; got {separator!r}")
    return found


def _open(path: Path, encoding: str) -> io.TextIOBase:
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def _layout(path: Path, separator: str | None, header: bool | None, missing: frozenset[str]) -> TextLayout:
    encoding, text = _beginning(path)
    older = older_encoding_of(path) if encoding == "utf-8" else None
    if older is None:
        return _layout_of(path, encoding, text, separator, header, missing)
    text = text.encode("utf-8", "surrogateescape").decode(older, errors="replace")
    found = _layout_of(path, older, text, separator, header, missing)
    name = (
        "Windows-1252 (western European)" if older == WESTERN else f"{older}; if letters look wrong, save it as UTF-8"
    )
    return replace(found, notes=(*found.notes, f"the file is not in UTF-8; it was read as {name}"))


def _layout_of(
    path: Path, encoding: str, text: str, separator: str | None, header: bool | None, missing: frozenset[str]
) -> TextLayout:
    """The layout of a file by the text that it begins with."""
    skip, lines, comment = _without_comments(text)
    if not lines:
        raise InvalidDataError(f"{path} is empty: there is no row in it")
    separator = separator or _likely_separator(path, lines, missing)
    heading = heading_of(lines, separator, missing) if header is None and separator != _BLANKS else None
    if heading is not None:
        above = _header(heading.names, len(heading.names))
        skip, notes = skip + heading.lines, tuple(heading.notes)
        return TextLayout(encoding, separator, skip, False, above, len(heading.names), notes, tuple(heading.units))
    rows = [cells for cells in cells_of(lines, separator) if not _is_blank(cells)]
    width = Counter(len(cells) for cells in rows[1:] or rows).most_common(1)[0][0]
    spoken = next(cells_of([comment], separator)) if comment and header is None else []
    if len(spoken) == width and any(number_of(cell, missing) is not None for cell in rows[0]):
        return TextLayout(encoding, separator, skip, False, tuple(name.strip() for name in spoken), width)
    named = header if header is not None else names_columns(rows[0], rows[1:], missing)
    if named:
        names = _header(rows[0], width)
        if len(names) == width - 1:
            named_rows, said = _names_one_short(path, names, rows[1:], lines, separator, missing)
            return TextLayout(encoding, separator, skip, True, named_rows, len(named_rows), said)
        return TextLayout(encoding, separator, skip, True, names, width)
    return TextLayout(encoding, separator, skip, False, None, width)


def _header(cells: Sequence[str], width: int) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    return names[:-1] if len(names) == width + 1 and not names[-1] else names


def _names_one_short(
    path: Path,
    names: tuple[str, ...],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    separator: str,
    missing: frozenset[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names where rows have a cell more, and a note: rows end in a separator, or begin with a name as R writes them.

    A first cell that is a number may just as well belong below the first name: it is the name of a row only where it
    is quoted, or such cells count the rows and no comma, which may be decimal, parts it from the others.
    """
    wide = [row for row in rows if len(row) == len(names) + 1]
    if all(not row[-1].strip() for row in wide):
        return names, ()
    first = [number_of(row[0], missing) for row in wide]
    counted = first[0] in {0.0, 1.0} and all(each == first[0] + i for i, each in enumerate(first))
    quoted = all(line.startswith('"') for line in lines[1:] if line.strip())
    apostrophes = any(cell.startswith("'") and not cell.endswith("'") for row in wide for cell in row)
    named = quoted or any(each is None for each in first) or (counted and separator != ",")
    if named and not apostrophes:
        return ("row name", *names), ("the first column has no name, and was taken for the names of rows",)
    between = _SEPARATORS.get(separator, "blanks")
    raise InvalidDataError(
        f"{path} has {quantity(len(names), 'name')} in its first line, but {len(wide[0])} cells in rows, such as "
        f"{separator.join(wide[0])!r}: {between} may stand within numbers or words there; put those cells in double "
        "quotes, or name every column; one column of decimal commas is read with --separator ';'"
    )


def _beginning(path: Path) -> tuple[str, str]:
    """The encoding of a file, as far as this tells, and its first lines: two at least, however long they are.

    Bytes that are not in that encoding are kept, as lone surrogates.
    """
    start, more = b"", _SAMPLE
    with open_bytes(path) as stream:
        while len(start) < _MOST_SAMPLE:
            part = stream.read(more)
            start += part
            if len(part) < more or len(start.splitlines()) > _FEWEST_SAMPLE_LINES:
                break
            more = len(start)
    other = other_kind(start)
    if other is not None:
        raise InvalidDataError(f"{path} is {other}")
    encoding = encoding_of(start)
    if encoding in {None, "utf-8"} and is_binary(start):
        raise InvalidDataError(_NO_TEXT.format(path))
    if encoding is None:
        if may_be_utf32(start):
            raise InvalidDataError(
                f"{path} seems to be text in UTF-32 without the mark that says so; save it as UTF-8, in a shell by "
                "iconv -f UTF-32LE -t UTF-8 (or UTF-32BE)"
            )
        if is_text_with_nulls(start):
            line = start[: start.index(b"\0")].count(b"\n") + 1
            raise InvalidDataError(f"line {line} of {path} has a null byte, which no text has; correct the line")
        raise InvalidDataError(_NO_TEXT.format(path))
    text = start.decode(encoding, errors="surrogateescape" if encoding == "utf-8" else "replace")
    if len(part) == more:  # the last line is cut, as like as not
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    return encoding, text


def _without_comments(text: str) -> tuple[int, list[str], str | None]:
    """Number of lines to skip, the lines of the sample after those, and the last comment, which may hold names."""
    lines = list(io.StringIO(text, newline=""))
    skip, comment = 0, None
    for line in lines:
        if line.strip() and not line.startswith(("#", "sep=")):  # the latter is a hint for spreadsheets
            break
        comment = line.lstrip("#").strip() or comment
        skip += 1
    return skip, lines[skip : skip + _SAMPLE_LINES], comment


def cells_of(lines: Any, separator: str) -> Iterator[list[str]]:
    """Lines as lists of cells."""
    if separator == _BLANKS:
        return iter(csv.reader((" ".join(line.split()) for line in lines), delimiter=_BLANKS))
    return iter(csv.reader(lines, delimiter=separator, skipinitialspace=True))


def _is_blank(cells: Sequence[str]) -> bool:
    return not any(cell.strip(_NOTHING) for cell in cells)


def _likely_separator(path: Path, lines: Sequence[str], missing: frozenset[str]) -> str:
    """The separator that cuts lines into equally many cells, and into numbers as often as possible.

    ``csv.Sniffer`` knows nothing of numbers, nor of several blanks between cells.
    """
    name = path.name.removesuffix(".gz")
    order = ["\t", ",", ";", "|"] if name.endswith((".tsv", ".tab")) else list(_SEPARATORS)
    scores = {separator: _score(lines, separator, missing) for separator in [*order, _BLANKS]}
    cutting = [each for each in order if scores[each] is not None] or [
        each for each in (_BLANKS,) if scores[each] is not None
    ]
    return max(cutting, key=lambda each: scores[each] or (0.0, 0), default=order[0])


def _score(lines: Sequence[str], separator: str, missing: frozenset[str]) -> tuple[float, int] | None:
    """Score of a separator, higher where it fits better; None where it does not cut at all."""
    try:
        rows = [cells for cells in cells_of(lines, separator) if not _is_blank(cells)]
    except csv.Error:
        return None
    body = rows[1:] or rows
    ((width, often),) = Counter(len(cells) for cells in body).most_common(1) or [(1, 0)]
    if width < 2 or (separator == _BLANKS and often < len(body)):
        return None
    cells = [cell for row in body for cell in row]
    numbers = sum(reads_as_number(cell, missing) for cell in cells)
    named = _NAMES_SHORT_OF_CELLS if len(rows[0]) != width else 1.0
    return named * often / len(body) * (0.1 + numbers / len(cells)), width


# ----------------------------------------------------------------------------------------------------------- reading it


def _by_arrow(path: Path, layout: TextLayout, missing: frozenset[str]) -> TextCells | None:
    """A large plain file by Arrow, where it is installed; which line a row is on is then not known."""
    if path.stat().st_size < _ARROW_FROM_BYTES:
        return None
    plain = plain_text(path, layout, missing)
    columns = None if plain is None else plain.columns()
    if plain is None or columns is None or not len(columns[0]):
        return None
    return _add_notes(
        TextCells(
            _names(layout),
            columns,
            None,
            list(layout.notes),
            units=layout.units,
            separator=layout.separator,
            encoding=layout.encoding,
        ),
        plain.decimal == COMMA,
    )


def plain_text(path: Path, layout: TextLayout, missing: frozenset[str]) -> PlainText | None:
    """A file as Arrow reads it; None where it cannot, by what the beginning of the file shows."""
    if path.suffix == ".gz" or layout.separator == _BLANKS or not has_arrow():
        return None
    _, text = _beginning(path)
    odd = any("\n" in name or "\r" in name for name in layout.names or ()) or f"{layout.separator} " in text
    if odd or layout.encoding.startswith(("utf-16", "utf-32")):
        return None
    lines = list(io.StringIO(text, newline=""))[layout.skip + layout.header :]
    rows = [cells for cells in cells_of(lines, layout.separator) if len(cells) == layout.width]
    numeric = [all(number_of(row[j], missing) is not None for row in rows) for j in range(layout.width)]
    seen = _number_marks([[row[j] for row in rows] if numeric[j] else [] for j in range(layout.width)])
    if doubtful(seen):
        return None
    decimal = COMMA if any(each.comma for each in seen) else POINT
    return PlainText(
        path, layout.separator, layout.skip + layout.header, tuple(numeric), decimal, missing, layout.encoding
    )


@dataclass(frozen=True, eq=False)
class SpooledText:
    """A text file that was turned into an Arrow file of ``n_rows``, whose folder is gone with this object."""

    path: Path
    n_rows: int
    output_format: OutputFormat
    named: bool
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()


def spool_delimited(
    path: Path, *, separator: str | None, header: bool | None, missing: Sequence[str], tell: Callable[[int], None]
) -> SpooledText | None:
    """Turn a text file that is too large for memory into an Arrow file, once; None where that cannot be done."""
    words = all_missing(missing)
    with _cells_of_any_length():
        layout = _layout(path, _one_character(separator), header, words)
        plain = plain_text(path, layout, words)
    if plain is None:
        return None
    names, _ = number_repeats(complete_names(layout.names, layout.width))
    target = Path(mkdtemp(prefix="prinfold-")) / "rows.arrow"
    n_rows = 0
    try:
        n_rows = plain.spool(target, names, tell) or 0
    finally:
        if not n_rows:
            rmtree(target.parent, ignore_errors=True)
    if not n_rows:
        return None
    output_format = OutputFormat.like(layout.separator, layout.encoding, commas=plain.decimal == COMMA)
    found = SpooledText(target, n_rows, output_format, layout.names is not None, layout.notes, layout.units)
    finalize(found, rmtree, target.parent, ignore_errors=True)
    return found


def _number_marks(columns: Sequence[Sequence[str]]) -> list[NumberMarks]:
    found = [NumberMarks() for _ in columns]
    for each, cells in zip(found, columns, strict=True):
        each.look(cells)
    return found


def _read_source(
    path: Path, source: TextSource | SheetSource, missing: frozenset[str], decimal: str | None
) -> TextCells:
    columns, lines, seen = _columns(source, missing, frozenset(), decimal)
    # A column that turned out to be text after some portions of numbers is read again, as it is written.
    mixed = {j for j, parts in enumerate(columns) if len({part.dtype == object for part in parts}) > 1}
    unclear = frozenset(doubtful(seen))
    if mixed or unclear:
        columns, lines, seen = _columns(source, missing, frozenset(mixed | unclear), decimal)
    if not len(lines):
        raise InvalidDataError(f"{path} has names of columns, but no row below them")
    found = TextCells(
        _names(source.layout),
        [np.concatenate(parts) for parts in columns],
        lines,
        notes=list(source.layout.notes),
        doubtful=unclear,
        whole=source.whole,
        units=source.layout.units,
        separator=source.layout.separator,
        encoding=source.layout.encoding,
    )
    return _add_notes(found, any(each.comma for each in seen))


def _names(layout: TextLayout) -> list[str] | None:
    return None if layout.names is None else list(layout.names)


def _add_notes(found: TextCells, commas: bool) -> TextCells:
    """The cells with notes on header and decimal commas; an empty last column is dropped."""
    if found.names and not found.names[-1] and _is_empty(found.columns[-1]):  # every line ends in a separator
        found.names.pop()
        found.columns.pop()
    found.notes += layout_notes(named=found.names is not None, commas=commas)
    return found


def layout_notes(*, named: bool, commas: bool) -> list[str]:
    """Notes on a missing header and on decimal commas."""
    unnamed = "the first line holds numbers and was taken as a row; --header reads it as names of columns"
    return [*([] if named else [unnamed]), *([DECIMAL_COMMAS] if commas else [])]


def complete_names(names: Sequence[str] | None, width: int) -> list[str]:
    """Names of all columns; those without one are numbered."""
    given = [""] * width if names is None else list(names)
    if len(given) != width:
        raise InvalidDataError(
            f"there are {len(given)} names for {width} columns; is the separator right (--separator)?"
        )
    return [name or f"column {j + 1}" for j, name in enumerate(given)]


def number_repeats(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of which none comes twice, and what is to be said of that."""
    found: dict[str, None] = {}
    notes, given = [], set(names)
    for name in names:
        other, count = name, 1
        while other in found or (other != name and other in given):
            count += 1
            other = f"{name} ({count})"
        if other != name:
            notes.append(f"several columns are called {name!r}; one of them is {other!r} here")
        found[other] = None
    return list(found), notes


def _is_empty(column: Any) -> bool:
    return column.dtype != object and bool(np.isnan(column).all())


def _columns(
    source: TextSource | SheetSource, missing: frozenset[str], text: frozenset[int], decimal: str | None
) -> tuple[list[list[Any]], Any, list[NumberMarks]]:
    """Portions of each column, the line of each row, and what commas and points there were in numbers."""
    columns: list[list[Any]] = [[] for _ in range(source.layout.width)]
    lines, seen = [], [NumberMarks() for _ in columns]
    for numbers, rows in _portions(source.rows()):
        lines.append(np.asarray(numbers, dtype=np.int64))
        for j, cells in enumerate(zip(*rows, strict=True)):
            part = None if j in text else _numbers(cells, missing, decimal)
            if part is not None:
                seen[j].look(cells)
            columns[j].append(np.array([*cells, None], dtype=object)[:-1] if part is None else part)
    return columns, np.concatenate(lines) if lines else np.empty(0, dtype=np.int64), seen


def _numbers(cells: Sequence[str], missing: frozenset[str], decimal: str | None) -> FloatArray | None:
    """(n,) cells as numbers; what marks may mean of which it was said what they are is left to whoever knows."""
    if decimal == COMMA and any(POINT in cell for cell in cells):
        return None
    found = plain_numbers(cells, missing)
    return numbers_with_commas(cells, missing) if found is None and decimal is None else found


def _portions(lines: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[list[int], list[list[str]]]]:
    numbers: list[int] = []
    rows: list[list[str]] = []
    for number, cells in lines:
        numbers.append(number)
        rows.append(cells)
        if len(rows) == _PORTION:
            yield numbers, rows
            numbers, rows = [], []
    if rows:
        yield numbers, rows


def _rows(path: Path, layout: TextLayout) -> Iterator[tuple[int, list[str]]]:
    """Lines as cells, each with its number in the file; lines of nothing are passed over."""
    with _open(path, layout.encoding) as stream:
        for _ in range(layout.skip):
            stream.readline()
        reader: Any = csv.reader(stream, delimiter=layout.separator, skipinitialspace=True)
        source: Any = reader if layout.separator != _BLANKS else cells_of(stream, _BLANKS)
        cells: list[str] = []
        try:
            for count, cells in enumerate(source, 1):
                if count == 1 and layout.header:
                    continue
                number = layout.skip + (reader.line_num if source is reader else count)
                if len(cells) == layout.width + 1 and not cells[-1].strip():
                    cells.pop()  # a separator behind the last cell
                if len(cells) == layout.width:
                    yield number, cells
                elif not _is_blank(cells):
                    _refuse_open_quote(path, layout, cells)
                    raise InvalidDataError(_ragged_line_error(path, number, len(cells), layout))
        except csv.Error as error:
            raise InvalidDataError(f"{path} cannot be read as a table: {error}; is it a text file?") from error
    _refuse_open_quote(path, layout, cells)


def _refuse_open_quote(path: Path, layout: TextLayout, last: Sequence[str]) -> None:
    """Refuse a file in which a quote is opened and never closed, so that all that follows is one cell."""
    if not any("\n" in cell or "\r" in cell for cell in last):
        return
    with _open(path, layout.encoding) as stream:
        for _ in range(layout.skip):
            stream.readline()
        strict: Any = csv.reader(stream, delimiter=layout.separator, skipinitialspace=True, strict=True)
        begins = layout.skip + 1
        try:
            for _ in strict:
                begins = layout.skip + strict.line_num + 1
        except csv.Error as error:
            if "end of data" in str(error):
                raise InvalidDataError(
                    f"line {begins} of {path} opens a quote that is never closed, so that all lines after it are one "
                    "cell; correct the line"
                ) from error


def _ragged_line_error(path: Path, number: int, found: int, layout: TextLayout) -> str:
    separator = _SEPARATORS.get(layout.separator, "blanks" if layout.separator == _BLANKS else repr(layout.separator))
    return (
        f"line {number} of {path} has {found} cell{'s' * (found != 1)}, but other lines have {layout.width} (cells "
        f"being separated by {separator}); correct the line, or say what separates cells with --separator"
    )
