"""Weighted inner products ΦᵀGΦ of functions that are products of functions of one axis each, on a lattice.

With φ_m(x) = Π_a f_a(x_a), where f_a is one of a few functions along axis a, a sum over the nodes of a lattice can be
taken axis by axis (the array method of Currie, Durban and Eilers 2006). The weights then meet only the products of two
functions of the same axis, of which there are far fewer than pairs of φ: for 20 × 20 nodes and 9 × 9 functions it takes
a tenth of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray

_GATHERING_OPERATIONS = 16
"""Operations of a matrix product that take as long as gathering one entry of the result."""

_MOST_AXES, _MOST_FUNCTIONS = 3, 2048
"""Beyond these, intermediate sums or the table of pairs would take more memory than the functions."""


class Factors(NamedTuple):
    """Functions along one axis: ``values`` (n, f) at its nodes, and ``chosen`` (M,), which of them each φ has."""

    values: FloatArray
    chosen: IntArray


@dataclass(frozen=True)
class ProductGram:
    """ΦᵀGΦ, axis by axis.

    ``pairs`` (n, p) are products of two functions along each; ``places`` (M, M) says where among the combinations of
    those each pair of φ is found.
    """

    pairs: tuple[FloatArray, ...]
    places: IntArray

    @classmethod
    def of(cls, factors: Sequence[Factors]) -> ProductGram:
        """The Gram matrix of products of the functions along all axes of a lattice, in order."""
        pairs, places = [], np.zeros((), dtype=np.intp)
        for values, chosen in factors:
            i, j = np.tril_indices(values.shape[1])
            name = np.empty((values.shape[1],) * 2, dtype=np.intp)
            name[i, j] = name[j, i] = np.arange(len(i))
            pairs.append(values[:, i] * values[:, j])
            places = places * len(i) + name[chosen[:, None], chosen]
        return cls(tuple(pairs), places)

    def __call__(self, weight: FloatArray) -> FloatArray:
        """(M, M) ΦᵀGΦ for weights (K,) of the nodes, of which the last axis varies fastest."""
        found = weight
        for pairs in self.pairs:
            # The axis in front is summed over; its pairs go to the end, so that the next one is in front.
            found = found.reshape(len(pairs), -1).T @ pairs
        return found.reshape(-1).take(self.places)

    @staticmethod
    def is_cheaper(factors: Sequence[Factors]) -> bool:
        """Whether this takes less time than the product of the whole matrices, of which one half is computed."""
        shape = [len(values) for values, _ in factors]
        n_pairs = [values.shape[1] * (values.shape[1] + 1) // 2 for values, _ in factors]
        n_functions = len(factors[0].chosen)
        if len(shape) > _MOST_AXES or n_functions > _MOST_FUNCTIONS:
            return False
        operations = sum(prod(n_pairs[: a + 1]) * prod(shape[a:]) for a in range(len(shape)))
        return bool(operations + _GATHERING_OPERATIONS * n_functions**2 < prod(shape) * n_functions**2 // 2)


def product_gram_reference(factors: Sequence[Factors], weight: FloatArray) -> FloatArray:
    """(M, M) ΦᵀGΦ by the definition, from the functions at all nodes."""
    Phi = np.stack(
        [reduce(np.kron, [values[:, chosen[m]] for values, chosen in factors]) for m in range(len(factors[0].chosen))],
        axis=1,
    )
    return np.asarray(Phi.T @ (weight[:, None] * Phi))
