"""Files of real data: from a folder first, then from OpenML, else an error that says what to do."""

from __future__ import annotations

import csv
import gzip
import os
import zipfile
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import DataNotFoundError, InvalidDataError, InvalidParameterError, shown

Folder: TypeAlias = str | os.PathLike[str] | None
VARIABLE = "PRINFOLD_DATA"


class TextTable(NamedTuple):
    """Columns of text as read from a file, or as fetched."""

    names: tuple[str, ...]
    rows: list[list[str]]

    def numbers(self, names: tuple[str, ...]) -> FloatArray:
        """The named columns as floats."""
        places = [self.names.index(name) for name in names]
        return np.array([[float(row[j]) for j in places] for row in self.rows])

    def text(self, name: str) -> list[str]:
        """One column as it stands."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]


class OpenML(NamedTuple):
    """A data set as OpenML holds it: numbers and class names."""

    X: FloatArray
    target: list[str]


def find(name: str, folder: Folder) -> Path | None:
    """The file in ``folder``, or in the folder that PRINFOLD_DATA names; ``None`` where it is not."""
    try:
        place = os.fspath(os.environ.get(VARIABLE, "") if folder is None else folder)
        path = Path(place) / name
    except TypeError:
        raise InvalidParameterError(f"folder must be the path of a folder, got {shown(folder)}") from None
    return path if place and path.is_file() else None


def read_table(path: Path, columns: tuple[str, ...]) -> TextTable:
    """Read a gzipped CSV file with a header that has at least the given columns."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            names, *rows = csv.reader(lines)
    except (OSError, EOFError, ValueError) as error:
        raise InvalidDataError(f"{path.name} is not a gzipped CSV file with a header: {error}.") from error
    missing = [name for name in columns if name not in names]
    if missing or not rows or any(len(row) != len(names) for row in rows):
        raise InvalidDataError(
            f"{path.name} should be a full table with the columns {list(columns)}; it has {names} and {len(rows)} rows."
        )
    return TextTable(tuple(names), rows)


def read_arrays(path: Path, keys: tuple[str, ...]) -> dict[str, FloatArray]:
    """Read named arrays of numbers from an ``.npz`` file; pickled objects are never loaded."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: np.asarray(stored[key]) for key in keys}
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidDataError(f"{path.name} should be an .npz file with the arrays {list(keys)}: {error}.") from error
    if len({len(array) for array in arrays.values()}) != 1:
        raise InvalidDataError(f"The arrays of {path.name} differ in length.")
    return arrays


def fetch(name: str, version: int, file: str, folder: Folder) -> OpenML:
    """Ask OpenML, which needs a network the first time; scikit-learn keeps a copy."""
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    except Exception as error:
        # Offline this is an OSError; behind proxies and gateways it can be nearly anything.
        raise not_found(file, folder, f"OpenML did not answer ({type(error).__name__}: {error})") from error
    return OpenML(np.asarray(bunch.data, dtype=float), [str(value).strip("'\" ") for value in bunch.target])


def not_found(file: str, folder: Folder, why: str) -> DataNotFoundError:
    """The error for a data set that was not found in any place."""
    place = os.environ.get(VARIABLE)
    named = (
        f"is not in the folder that {VARIABLE} names ({place})"
        if place
        else f"was not looked for: {VARIABLE} is not set"
    )
    looked = f"is not in {os.fspath(folder)}" if folder else named
    return DataNotFoundError(f"{file} {looked}, and {why}. Set {VARIABLE} to a folder that holds {file}.")
