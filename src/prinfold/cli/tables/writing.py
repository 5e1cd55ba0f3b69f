"""Results as files: tables in the format that the file's ending names; existing files are kept unless ``--force``."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from prinfold.cli.tables.output_format import PLAIN, OutputFormat
from prinfold.cli.usage import WrongCallError
from prinfold.exceptions import InvalidDataError, import_optional
from prinfold.files.atomic import check_target as check_place
from prinfold.files.atomic import encodable, whole_file
from prinfold.files.spreadsheet_text import spreadsheet_text

MODEL = (".prinfold",)
"""How the name of a model file ends."""

STANDARD = Path("-")
"""Standard output, as the name of a file."""

Writer = Callable[[Path, dict[str, Any], OutputFormat], None]
"""What writes columns to a file of one format."""

_WHOLE = 2.0**53


def sibling_file(path: Path, ending: str) -> Path:
    """A file beside another, of the same name but for its ending."""
    whole = path if path.name else path.absolute()  # a dot is the folder where we are
    return whole.with_name(f"{Path(whole.name.removesuffix('.gz')).stem}{ending}")


def check_target(
    path: Path,
    inputs: Sequence[Path],
    *,
    force: bool,
    writers: Any = None,
    option: str = "--out",
    standard: bool = False,
) -> None:
    """Say at once, and not after the work, that a file cannot be written; only tables go to standard output."""
    if path == STANDARD:
        if standard:
            return
        raise WrongCallError(f"{option} - is standard output, which only transform and project write to; name a file")
    if path.is_dir():
        ending = next(iter(writers), "") if writers else ""
        raise WrongCallError(f"{path} is a folder; name a file with {option}, such as {path / 'result'}{ending}")
    if not path.parent.is_dir():
        raise WrongCallError(f"there is no folder {path.parent} to write {path.name} in; make it first")
    for each in inputs:
        if path.exists() and each.exists() and path.samefile(each):
            raise WrongCallError(f"{path} is what is read; name another file with {option}")
    if writers is not None and path.suffix.lower() not in writers:
        known = ", ".join(writers)
        raise WrongCallError(
            f"cannot tell how to write {path}; let its name end in {'' if len(writers) == 1 else 'one of '}{known}"
        )
    if path.exists() and not force:
        raise WrongCallError(f"{path} is there already; --force writes over it, {option} names another file")
    check_place(path)


def check_folder(folder: Path, names: Sequence[str], option: str, *, force: bool) -> None:
    """Say at once, and not after the work, that something of somebody's in a folder would be written over."""
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        more = "" if len(there) == 1 else f" and {len(there) - 1} more of its files"
        verb, them = ("is", "it") if len(there) == 1 else ("are", "them")
        raise WrongCallError(
            f"{folder / there[0]}{more} {verb} there already; --force writes over {them}, {option} names another folder"
        )


def write_table(path: Path, columns: dict[str, Any], output_format: OutputFormat = PLAIN) -> None:
    """Write columns of numbers or text in the format that the name of the file says, text in the format given."""
    if path == STANDARD:
        with encodable("standard output"):
            _write_rows(sys.stdout, columns, output_format)
        return
    with whole_file(path) as passing:
        WRITERS[path.suffix.lower()](passing, columns, output_format)


def is_text(path: Path) -> bool:
    """Whether a result of that name is text, which is written in a format of its own."""
    return path == STANDARD or path.suffix.lower() in _TEXTS


def _write_text(path: Path, columns: dict[str, Any], output_format: OutputFormat) -> None:
    with path.open("w", newline="", encoding=output_format.encoding) as file:
        _write_rows(file, columns, output_format)


def _write_tabs(path: Path, columns: dict[str, Any], output_format: OutputFormat) -> None:
    _write_text(path, columns, output_format._replace(separator="\t"))


def _write_rows(file: TextIO, columns: dict[str, Any], output_format: OutputFormat) -> None:
    writer = csv.writer(file, delimiter=output_format.separator, lineterminator="\n")
    writer.writerow(map(spreadsheet_text, columns))
    writer.writerows(zip(*(_text_cells(each, output_format) for each in columns.values()), strict=True))


def _text_cells(column: Any, output_format: OutputFormat) -> list[Any]:
    """Cells as text has them: whole numbers without a point, nothing where there is nothing."""
    values = np.asarray(column)
    if values.dtype.kind != "f":
        return ["" if each is None else spreadsheet_text(each) for each in values.tolist()]
    there = values[np.isfinite(values)]
    whole = len(there) > 0 and bool((np.abs(there) < _WHOLE).all() and (there == np.round(there)).all())
    return [
        "" if np.isnan(each) else int(each) if whole and np.isfinite(each) else output_format.number(each)
        for each in values.tolist()
    ]


def _write_arrow(module: str, function: str) -> Writer:
    def write(path: Path, columns: dict[str, Any], output_format: OutputFormat) -> None:
        use = f"writing {path.suffix} files", "name a .csv file with --out"
        library, arrow = (import_optional(each, "cli", *use) for each in (module, "pyarrow"))
        getattr(library, function)(arrow.table({name: _arrow_cells(each) for name, each in columns.items()}), path)

    return write


def _arrow_cells(column: Any) -> Any:
    values = np.asarray(column)
    return values.tolist() if values.dtype == object else values


def _write_npy(path: Path, columns: dict[str, Any], output_format: OutputFormat) -> None:
    numbers = [
        np.asarray(each, dtype=float)
        for name, each in columns.items()
        if np.asarray(each).dtype != object and name != "row"
    ]
    with path.open("wb") as stream:  # to a name, numpy would append an ending of its own
        np.save(stream, np.stack(numbers, axis=1), allow_pickle=False)


def _write_npz(path: Path, columns: dict[str, Any], output_format: OutputFormat) -> None:
    texts = {name: np.asarray(each) for name, each in columns.items()}
    plain: Any = {
        name: np.array(["" if each is None else each for each in values.tolist()]) if values.dtype == object else values
        for name, values in texts.items()
    }
    if "file" in plain:  # the name of an argument of np.savez
        raise InvalidDataError("a column called 'file' cannot go into an .npz file; write CSV or Parquet")
    with path.open("wb") as stream:
        np.savez(stream, **plain)


_TEXTS: dict[str, Writer] = {".csv": _write_text, ".tsv": _write_tabs, ".txt": _write_tabs}

WRITERS: dict[str, Writer] = {
    **_TEXTS,
    ".parquet": _write_arrow("pyarrow.parquet", "write_table"),
    ".feather": _write_arrow("pyarrow.feather", "write_feather"),
    ".arrow": _write_arrow("pyarrow.feather", "write_feather"),
    ".npy": _write_npy,
    ".npz": _write_npz,
}
"""End of a file's name → how it is written."""
