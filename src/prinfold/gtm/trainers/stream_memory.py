"""Sums of the rows that a model has seen, from which ``partial_fit`` continues."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.files import storable
from prinfold.files.kinds import Kinds, kind_of, numbers, positive
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.per_cell import CellStatistics
from prinfold.gtm.noise.protocol import AnyStatistics, Parameters, RowStatistics, Statistics
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.validation.settings import flag, real


@storable
@dataclass(frozen=True)
class Memory:
    """Sums of the rows seen, their number, and the floors of the noise, which the first rows decide.

    ``gaps`` says whether the sums are those of a noise that takes gaps; ``freedom`` is the number of weights that the
    rows decide, where the penalty is the prior of a process, which takes them off the degrees of freedom of the noise.
    """

    _kinds: ClassVar[Kinds] = {
        "statistics": kind_of(RowStatistics, "statistics of a noise, which extend RowStatistics"),
        "seen": real(0),
        "floor": positive,
        "floors": numbers("D", above=0),
        "scale": numbers("D", least=0),
        "gaps": flag,
        "freedom": real(0),
    }

    statistics: AnyStatistics
    seen: float
    floor: float
    floors: FloatArray
    scale: FloatArray
    gaps: bool
    freedom: float = 0.0

    @property
    def spread(self) -> ColumnSpread:
        """Spread of the first rows, on which the noise and its floors are based."""
        return ColumnSpread(self.floor, self.floors, self.scale)

    def fits(self, model: GTMModel, parameters: Parameters) -> bool:
        """Whether these are sums of that model, of no rows or of many."""
        empty = model.noise.at_nodes(model.surface, parameters).empty_sums().statistics()
        names = [each.name for each in fields(empty)]
        if type(self.statistics) is not type(empty):
            return False
        return all(_can_be_added(getattr(self.statistics, name), getattr(empty, name)) for name in names)


def make_memory(model: GTMModel, statistics: AnyStatistics, seen: float) -> Memory:
    """The memory of a model and its sums."""
    noise, D = model.noise, statistics.moment.shape[1]
    gaps = noise.with_gaps() is noise
    own = noise.capabilities.columns
    floors = np.full(D, float(noise.floor)) if own is None else own.floors
    scale = np.ones(D) if own is None or own.units is None else own.units
    return Memory(statistics, float(seen), float(noise.floor), floors, scale, gaps, float(model.penalty.freedom))


def with_gaps(statistics: AnyStatistics) -> AnyStatistics:
    """Sums of rows without gaps as those of a noise that takes them.

    Isotropic noise has added up its squares over all columns. Each column has at least those of its means, and what
    is left over is divided evenly, which is as good as any: one variance is found for all of them.
    """
    if not isinstance(statistics, Statistics):
        return statistics
    mass, moment, D = statistics.mass, statistics.moment, statistics.moment.shape[1]
    of_means = np.square(moment) / np.where(mass > 0, mass, np.inf)[:, None]
    square = of_means.sum(axis=0)
    square += max(statistics.square - float(square.sum()), 0.0) / D
    masses, all_seen = np.repeat(mass[:, None], D, axis=1), np.full(D, statistics.total)
    ends = statistics.log_likelihood, statistics.total
    return CellStatistics(mass, masses, moment, masses, moment, square, all_seen, all_seen, *ends)


def _can_be_added(found: Any, wanted: Any) -> bool:
    """Whether two numbers or arrays can be added; columns with the same sums may be stored as one."""
    try:
        np.broadcast_shapes(np.shape(found), np.shape(wanted))
    except ValueError:
        return False
    return np.ndim(found) == np.ndim(wanted) and np.asarray(found).dtype.kind == "f"
