"""Checks of the numbers that compiled kernels are given, before they run.

Compiled code reads and writes memory at indices that it computes from its numbers. NaN or infinity may give an index
outside an array: a cell that cannot be counted, a nearest segment that is never found. Each family of kernels therefore
has one function of plain Python in front of it, which checks here, in one pass over the numbers. ``make test-bounds``
runs the tests with every index checked, and looks for cases that this leaves open.
"""

from __future__ import annotations

from math import inf

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError

LARGEST = 1e150
"""Differences of numbers below this have squares that can be added up by the million and stay finite."""


def require_finite(what: str, values: FloatArray, remedy: str, below: float = inf) -> None:
    """Raise an error, which ends with the ``remedy``, unless all values are finite and less than ``below`` in size."""
    # Least and largest are not numbers where one of the values is none, and no comparison with those holds.
    if values.size == 0 or -below < values.min() <= values.max() < below:
        return
    at = np.argwhere(~(np.abs(values) < below))[0].tolist()
    place = ", ".join(f"{name} {i}" for name, i in zip(("row", "column"), at, strict=False))
    bounds = "finite" if below == inf else f"finite and less than {below:g} in size"
    raise InvalidDataError(f"{what} must be {bounds}, got {values[tuple(at)]:g} in {place}; {remedy}")
