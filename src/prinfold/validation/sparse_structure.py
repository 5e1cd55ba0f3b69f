"""Refusals of sparse matrices whose indices lead out of them: compiled code of SciPy goes where they lead."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from prinfold.exceptions import InvalidDataError

_COMPRESSED = {"csr": 0, "csc": 1, "bsr": 0}
"""Formats with pointers to where each line begins, by the axis of the lines."""


def refuse_broken_structure(X: Any) -> None:
    """Raise an error for a sparse matrix whose pointers or indices are outside of it; return for all else."""
    if issparse(X):
        _refuse_faults(X)


def _refuse_faults(X: Any) -> None:
    if X.ndim != 2:  # which is refused for that
        return
    try:
        broken = _pointer_fault(X) if X.format in _COMPRESSED else _place_fault(X.tocoo())
    except (IndexError, TypeError, ValueError) as error:  # arrays that are of no use at all
        broken = str(error)
    if broken:
        raise InvalidDataError(
            f"got a sparse {X.format} matrix that is damaged: {broken}; make it anew from its rows, columns and values"
        )


def _pointer_fault(X: Any) -> str:
    """The fault of a compressed matrix in words, empty where there is none."""
    axis, block = _COMPRESSED[X.format], getattr(X, "blocksize", (1, 1))
    n_lines, n_places = X.shape[axis] // block[axis], X.shape[1 - axis] // block[1 - axis]
    starts, places = np.asarray(X.indptr), np.asarray(X.indices)
    if len(starts) != n_lines + 1 or starts[0] != 0 or (np.diff(starts) < 0).any():
        return f"its {len(starts)} pointers do not begin at 0 and rise to the end of {n_lines} lines"
    if starts[-1] > min(len(places), len(X.data)):
        return f"its pointers end at {starts[-1]}, but it holds {min(len(places), len(X.data))} values"
    return _outside(places[: starts[-1]], n_places)


def _place_fault(X: Any) -> str:
    """The same of a matrix of rows, columns and values."""
    if not len(X.row) == len(X.col) == len(X.data):
        return f"it has {len(X.row)} rows and {len(X.col)} columns for {len(X.data)} values"
    return _outside(X.row, X.shape[0]) or _outside(X.col, X.shape[1])


def _outside(places: Any, n_places: int) -> str:
    if not len(places) or (places.min() >= 0 and places.max() < n_places):
        return ""
    wrong = places.min() if places.min() < 0 else places.max()
    return f"it has the index {wrong}, where there are {n_places} places"
