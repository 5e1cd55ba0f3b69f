"""Branches of a graph laid end to end: the coordinate is arc length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.intervals import Intervals
from prinfold.latent.base import LatentSpace, refuse_too_many, unique_edges
from prinfold.latent.drawing import Strip, widen
from prinfold.numerics.finite_checks import LARGEST

_FEWEST_NODES = {False: 2, True: 3}
"""Nodes that an open and a closed branch need for their segments."""


@dataclass(frozen=True, eq=False)
class Branches(LatentSpace):
    """B branches of ``lengths`` (B,), one after another with a ``gap`` between, each with ``counts`` (B,) even nodes.

    A coordinate is the length travelled, from 0 at the beginning of the first branch; one in a gap is outside the
    domain. A ``closed`` branch returns to its beginning: its last node is one step short of it.
    """

    lengths: FloatArray
    closed: BoolArray
    counts: IntArray
    gap: float
    unit_speed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        lengths, closed = np.array(self.lengths, dtype=float), np.array(self.closed, dtype=bool)
        counts = np.array(self.counts, dtype=np.int64)
        if lengths.ndim != 1 or not len(lengths) or not np.isfinite(lengths).all() or (lengths < 0).any():
            raise InvalidParameterError(f"branches need lengths of at least zero, one for each, got {lengths}")
        if not lengths.sum() + self.gap * (len(lengths) - 1) < LARGEST:
            raise InvalidParameterError(
                f"branches must be shorter than {LARGEST:g} in all, got lengths up to {lengths.max():.3g} and a gap of "
                f"{self.gap:.3g}; rescale the columns"
            )
        if closed.shape != lengths.shape or counts.shape != lengths.shape or (lengths[closed] == 0).any():
            raise InvalidParameterError(
                f"each of the {len(lengths)} branches needs a count of nodes and whether it is closed, "
                f"which one of no length cannot be; got shapes {counts.shape} and {closed.shape}"
            )
        if (counts < np.where(closed, _FEWEST_NODES[True], _FEWEST_NODES[False])).any():
            raise InvalidParameterError(f"an open branch needs two nodes, a closed one three; got {counts}")
        if not (np.isfinite(self.gap) and self.gap > 0):
            raise InvalidParameterError(f"the gap between branches must be above zero, got {self.gap}")
        refuse_too_many(int(counts.sum()))
        for name, array in (("lengths", lengths), ("closed", closed), ("counts", counts)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @cached_property
    def domain(self) -> Intervals:
        low = np.concatenate([[0.0], np.cumsum(self.lengths[:-1] + self.gap)])
        return Intervals(low, low + self.lengths, self.closed)

    @property
    def n_branches(self) -> int:
        """Number of branches."""
        return len(self.lengths)

    @cached_property
    def first(self) -> IntArray:
        """(B,) number of the first node of each branch."""
        return np.concatenate([[0], np.cumsum(self.counts[:-1])])

    @cached_property
    def cells(self) -> IntArray:
        """(B,) segments between neighbouring nodes of each branch."""
        return np.asarray(np.where(self.closed, self.counts, self.counts - 1))

    @cached_property
    def steps(self) -> FloatArray:
        """(B,) length of each of them."""
        return np.asarray(self.lengths / self.cells)

    @cached_property
    def nodes(self) -> FloatArray:
        branch = np.repeat(np.arange(self.n_branches), self.counts)
        place = np.arange(len(branch)) - self.first[branch]
        z = self.domain.low[branch] + place * self.steps[branch]
        last = ~self.closed[branch] & (place == self.cells[branch])
        return np.where(last, self.domain.high[branch], z)[:, None]

    @cached_property
    def spacing(self) -> float:
        steps = self.steps[self.steps > 0]
        return float(steps.min()) if len(steps) else self.gap

    @cached_property
    def edges(self) -> IntArray:
        return unique_edges(self.faces)

    @cached_property
    def faces(self) -> IntArray:
        """Segments between neighbours, that of a closed branch back to its beginning included."""
        branch = np.repeat(np.arange(self.n_branches), self.cells)
        place = np.arange(len(branch)) - np.repeat(np.cumsum(self.cells) - self.cells, self.cells)
        after = np.mod(place + 1, self.counts[branch])
        return np.stack([self.first[branch] + place, self.first[branch] + after], axis=1)

    def refined(self, resolution: int) -> Branches:
        """The same branches with about ``resolution`` nodes in all, shared out by length."""
        total = float(self.lengths.sum())
        share = self.lengths / total if total > 0 else np.zeros(self.n_branches)
        fewest = np.where(self.closed, _FEWEST_NODES[True], _FEWEST_NODES[False])
        return self._with(np.maximum(np.round(resolution * share).astype(np.int64), fewest))

    def thinned(self) -> Branches:
        fewest = np.where(self.closed, _FEWEST_NODES[True], _FEWEST_NODES[False])
        return self._with(np.maximum((self.counts + 1) // 2, fewest))

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return ("arc length",)

    @property
    def drawing(self) -> BranchDrawing:
        return BranchDrawing(self)

    def _with(self, counts: IntArray) -> Branches:
        return Branches(self.lengths, self.closed, counts, self.gap)


@dataclass(frozen=True, eq=False)
class BranchDrawing:
    """Branches end to end along one strip."""

    latent: Branches
    n_lines: tuple[int, ...] = ()
    box: None = None
    contour: None = None
    grid: None = None

    @property
    def pieces(self) -> Intervals:
        return self.latent.domain

    def layout(self, flat: bool) -> Strip:
        return Strip(*widen(float(self.pieces.low[0]), float(self.pieces.high[-1])), self.latent.chart_labels)

    def directions(self, Z: FloatArray) -> FloatArray:
        return np.broadcast_to([[1.0], [0.0]], (len(Z), 2, 1))

    def spread(self, most: int) -> FloatArray:
        return self.latent.nodes if self.latent.n_nodes <= most**2 else self.latent.refined(most).nodes
