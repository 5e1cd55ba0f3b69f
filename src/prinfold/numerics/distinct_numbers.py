"""The different ones among many whole numbers."""

from __future__ import annotations

import numpy as np

from prinfold._typing import IntArray


def distinct_numbers(values: IntArray) -> IntArray:
    """(m,) the different ones of values (n,), sorted.

    As ``numpy.unique``, which since version 2.3 fills a table first: of the million names of edges in a mesh of
    24³ nodes that takes twenty times as long as to sort them.
    """
    ranked = np.sort(values)
    new = np.ones(len(ranked), dtype=bool)
    np.not_equal(ranked[1:], ranked[:-1], out=new[1:])
    return np.asarray(ranked[new])
