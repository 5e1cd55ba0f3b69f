"""Short steps between the nodes of a latent space, and the kinds of steps there are.

On a lattice a kind of step is a displacement, so that going forward and going back are two kinds; on other spaces,
which have no directions in common, it is the number of edges that a step goes along.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, eye_array

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import LatentSpace, Lattice

_DEFAULT_REACH = {1: 5, 2: 3, 3: 2}
"""Nodes that a step reaches by latent dimension, where nothing else is said; beyond three dimensions one."""

_MOST_PAIRS = 2**26
"""Pairs of near nodes beyond which a chain would not fit in memory."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Steps from each node: to ``node[cuts[j]:cuts[j + 1]]`` from node j, of kinds ``kind``.

    ``kinds`` (C, Q) are displacements in nodes along each axis, or (C, 1) numbers of edges. Staying is one of them.
    """

    cuts: IntArray
    node: IntArray
    kind: IntArray
    kinds: IntArray

    @property
    def n_nodes(self) -> int:
        return len(self.cuts) - 1

    @property
    def source(self) -> IntArray:
        """(P,) where each step begins."""
        return np.repeat(np.arange(self.n_nodes), np.diff(self.cuts))

    def per_node(self, values: FloatArray) -> FloatArray:
        """(K,) sums of values (P,) of the steps over the steps from each node."""
        return np.bincount(self.source, values, minlength=self.n_nodes).astype(np.float64, copy=False)

    def per_kind(self, values: FloatArray) -> FloatArray:
        """(C,) sums over the steps of each kind."""
        return np.bincount(self.kind, values, minlength=len(self.kinds)).astype(np.float64, copy=False)


def default_reach(latent: LatentSpace) -> int:
    """Nodes that a step reaches where nothing else is said."""
    return _DEFAULT_REACH.get(latent.dimension, 1)


def moves_on(latent: LatentSpace, reach: int) -> Moves:
    """All steps of at most ``reach`` nodes, as the crow flies on a lattice and along edges elsewhere."""
    found = _on_lattice(latent, reach) if latent.axes else _along_edges(latent, reach)
    source, node, kind, kinds = found
    order = np.lexsort((node, source))
    used, kind = np.unique(kind[order], return_inverse=True)
    cuts = np.searchsorted(source[order], np.arange(latent.n_nodes + 1))
    return Moves(cuts, node[order], kind, kinds[used])


Pairs = tuple[IntArray, IntArray, IntArray, IntArray]


def _on_lattice(latent: Any, reach: int) -> Pairs:
    shape = np.asarray(latent.shape)
    index = np.stack(np.unravel_index(np.arange(latent.n_nodes), latent.shape), axis=1)
    kinds = np.array(list(_displacements(latent, reach * reach, 0)), dtype=np.int64).reshape(-1, len(shape))
    _refuse_too_many(latent.n_nodes * len(kinds), reach)
    sources, nodes, which = [], [], []
    for kind, displacement in enumerate(kinds):
        there = index + displacement
        there = np.where(latent.periodic, there % shape, there)
        inside = np.flatnonzero(((there >= 0) & (there < shape)).all(axis=1))
        sources.append(inside)
        nodes.append(np.ravel_multi_index(tuple(there[inside].T), latent.shape))
        which.append(np.full(len(inside), kind))
    return np.concatenate(sources), np.concatenate(nodes), np.concatenate(which), kinds


def _displacements(latent: Lattice, square: int, axis: int) -> Iterator[tuple[int, ...]]:
    """Displacements along the axes from ``axis`` on, of a squared length up to ``square``.

    Round a closed axis none is named twice: half of its nodes lie ahead, and half behind.
    """
    if axis == len(latent.shape):
        yield ()
        return
    n, most = latent.shape[axis], isqrt(square)
    back, ahead = ((n - 1) // 2, n // 2) if latent.periodic[axis] else (n - 1, n - 1)
    for d in range(-min(most, back), min(most, ahead) + 1):
        for rest in _displacements(latent, square - d * d, axis + 1):
            yield (d, *rest)


def _along_edges(latent: LatentSpace, reach: int) -> Pairs:
    """Nodes by the fewest edges between them."""
    K, edges = latent.n_nodes, latent.edges
    both = np.concatenate([edges, edges[:, ::-1]])
    beside = csr_matrix((np.ones(len(both), dtype=bool), (both[:, 0], both[:, 1])), shape=(K, K))
    here: Any = eye_array(K, dtype=bool, format="csr")
    ring, known, found = here, here, [here]
    for _ in range(reach):
        reached = ring @ beside
        ring = (reached > known).tocsr()  # what was not known before
        known = (known + ring).tocsr()
        _refuse_too_many(known.nnz, reach)
        found.append(ring)
    pairs = [ring.nonzero() for ring in found]
    source, node = (np.concatenate(ends).astype(np.int64) for ends in zip(*pairs, strict=True))
    kind = np.repeat(np.arange(reach + 1), [len(ends[0]) for ends in pairs])
    return source, node, kind, np.arange(reach + 1)[:, None]


def _refuse_too_many(n_pairs: int, reach: int) -> None:
    if n_pairs > _MOST_PAIRS:
        raise InvalidParameterError(
            f"steps of up to reach={reach} nodes make {n_pairs} pairs of nodes, more than the {_MOST_PAIRS} allowed; "
            "give a smaller reach or fewer nodes"
        )
