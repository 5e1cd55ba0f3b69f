"""A mixture of GTMs, thesis 6.3: several maps, each with a share of the rows, trained together.

    p(t) = Σ_j π_j p_j(t),        p_j(t) = 1/K_j Σ_k p(t | y_j(x_k))

The E-step gives each row its *memberships*

    h_nj = π_j p_j(t_n) / Σ_i π_i p_i(t_n),

and each map the sums of an ordinary GTM over rows that weigh w_n h_nj. The M-step of a map is then its own, and

    π_j = Σ_n w_n h_nj / Σ_n w_n,                                                       (6.3), with the 1/N it lacks

so that everything that a GTM may be made of, noise, gaps and errors included, serves here too. Each map sees the rows
about an origin of its own: maps far apart and small would otherwise lose all digits to the distance between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint, Part, plan
from prinfold.gtm.noise.protocol import Parameters, Posterior, require
from prinfold.rows.rows import Rows, Selection, blas_on_one_thread

_LEAST_MAP_SHARE = 1e-12
"""Share of all rows below which a map has none: its parameters are kept, and it is not trained further."""

_NEGLIGIBLE_MEMBERSHIP = 1e-16
"""Memberships that change no sum of double precision."""

_LEAST_LOG_DENSITY = float(np.finfo(np.float64).min)
"""Taken for the log density of rows so far from a map that it is −∞."""


@dataclass(frozen=True)
class MixtureParameters:
    """Shares π (J,) of the maps, and the parameters of each."""

    shares: FloatArray
    maps: tuple[Parameters, ...]

    def extrapolate(self, new: MixtureParameters, factor: float) -> MixtureParameters:
        """The step of every map from here to ``new``, ``factor`` times as far; the shares are the new ones."""
        each = zip(self.maps, new.maps, strict=True)
        return replace(new, maps=tuple(a.extrapolate(b, factor) for a, b in each))


@dataclass(frozen=True)
class MixtureStatistics:
    """The sums of each map over rows weighed by their memberships, and those of the mixture; a vector space too."""

    maps: tuple[Any, ...]
    log_likelihood: float
    total: float

    @property
    def masses(self) -> FloatArray:
        """(J,) Σ_n w_n h_nj."""
        return np.array([sums.total for sums in self.maps])

    def __add__(self, other: MixtureStatistics) -> MixtureStatistics:
        both = tuple(a + b for a, b in zip(self.maps, other.maps, strict=True))
        return MixtureStatistics(both, self.log_likelihood + other.log_likelihood, self.total + other.total)

    def scale(self, factor: float) -> MixtureStatistics:
        """All sums times ``factor``."""
        scaled = tuple(sums.scale(factor) for sums in self.maps)
        return MixtureStatistics(scaled, factor * self.log_likelihood, factor * self.total)


class MixtureState(NamedTuple):
    """Parameters, statistics of the data under them, hints for the E-steps, and the stretch of the next step."""

    parameters: MixtureParameters
    statistics: MixtureStatistics
    hints: tuple[Hint, ...]
    stretch: float = 1.0


@dataclass(frozen=True)
class MixtureModel:
    """A mixture, fixed during training: a GTM for each map, and the origin (D,) about which it sees the rows.

    ``shared`` says that all maps have one noise, as can be where it is a variance, or one for each column.
    """

    maps: tuple[gtm.GTMModel, ...]
    offsets: tuple[FloatArray, ...]
    shared: bool = False

    @property
    def monotone(self) -> bool:
        """Whether training never lowers the objective."""
        return True

    def rows_of_map(self, j: int, rows: Rows, weight: FloatArray | None = None) -> Rows:
        """The rows about the offset of map j, with weights of its own."""
        return replace(rows, offset=self.offsets[j], weight=weight)

    def begin(self, rows: Rows, parameters: MixtureParameters) -> MixtureState:
        """State after a first E-step."""
        if self.shared:
            parameters = replace(parameters, maps=pooled(self, parameters.maps, parameters.shares))
        return MixtureState(parameters, *e_step(self, rows, parameters, tuple(Hint() for _ in self.maps)))

    def step(self, rows: Rows, state: MixtureState, relaxation: float = 1.0) -> MixtureState:
        """State after one more EM iteration, stretched as :func:`prinfold.gtm.model.relaxed` does."""
        proposed = m_step(self, state.statistics, state.parameters)

        def look(at: MixtureParameters, stretch: float) -> MixtureState:
            return MixtureState(at, *e_step(self, rows, at, state.hints), stretch)

        found: MixtureState = gtm.relaxed(state, proposed, relaxation, look, self.measure)
        return found

    def measure(self, state: MixtureState) -> dict[str, float]:
        """Penalised log-likelihood per row, which EM never lowers; the log-likelihood alone; the noise on average."""
        parameters, sums = state.parameters, state.statistics
        costs = [p.cost(model.surface, model.penalty) for model, p in zip(self.maps, parameters.maps, strict=True)]
        alive = parameters.shares > 0  # a map without rows costs nothing
        return {
            "objective": (sums.log_likelihood - float(np.sum(costs, where=alive))) / sums.total,
            "log_likelihood": sums.log_likelihood / sums.total,
            "noise": float(parameters.shares @ [1.0 / each.level for each in parameters.maps]),
        }


@blas_on_one_thread()
def e_step(
    model: MixtureModel, rows: Rows, parameters: MixtureParameters, hints: Sequence[Hint]
) -> tuple[MixtureStatistics, tuple[Hint, ...]]:
    """Memberships of all rows, (n, J) numbers, and with them as weights the sums of each map.

    Rows that come in portions are gone after each: their sums are what is left.
    """
    if rows.at_hand:
        return _sums_at_hand(model, rows, parameters, hints)
    anew = tuple(hint.for_new_rows() for hint in hints)
    total = rows.sum_portions(MixturePortionSums(model, parameters, anew))
    return total, tuple(hint.without_rows() for hint in hints)


@dataclass(frozen=True)
class MixturePortionSums:
    """The sums of a portion of rows under given parameters; it can be sent to where the rows are."""

    model: MixtureModel
    parameters: MixtureParameters
    hints: tuple[Hint, ...]

    @blas_on_one_thread()
    def __call__(self, rows: Rows) -> MixtureStatistics:
        return _sums_at_hand(self.model, rows, self.parameters, self.hints)[0]


def _sums_at_hand(
    model: MixtureModel, rows: Rows, parameters: MixtureParameters, hints: Sequence[Hint]
) -> tuple[MixtureStatistics, tuple[Hint, ...]]:
    """Both passes over rows at hand.

    Both passes over the rows go by one plan. The second leaves out the rows that a map has nothing of: where maps lie
    apart it takes as long as the sums of one.
    """
    passes = [_plan_pass(model, j, rows, parameters, hint) for j, hint in enumerate(hints)]
    share, log_likelihood = memberships(_log_densities(model, rows, passes), parameters.shares)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    found = []
    for j, (each, own) in enumerate(zip(model.maps, passes, strict=True)):
        mine = model.rows_of_map(j, rows, weight * share[:, j])
        found.append(gtm.sum_parts(each, mine, own.nodes, _parts_with_rows(own.parts, share[:, j])))
    sums = MixtureStatistics(tuple(found), float(weight @ log_likelihood), float(weight.sum()))
    return sums, tuple(own.hint for own in passes)


class _Pass(NamedTuple):
    """The nodes of a map and the plan of a pass over the rows with them."""

    nodes: Any
    parts: Sequence[Part]
    hint: Hint


def _plan_pass(model: MixtureModel, j: int, rows: Rows, parameters: MixtureParameters, hint: Hint) -> _Pass:
    each, own = model.maps[j], parameters.maps[j]
    nodes = each.noise.at_nodes(each.surface, own, rows.table.dtype.type)
    seen = model.rows_of_map(j, rows)
    parts, hint = plan(each.surface, each.noise, nodes, seen, own.weights, hint, sweeps=False)
    return _Pass(nodes, cast(Sequence[Part], parts), hint)


def _parts_with_rows(parts: Sequence[Part], share: FloatArray) -> list[Part]:
    """The parts without the rows whose membership of a map is negligible."""
    found = []
    for part in parts:
        some = share[part.rows] > _NEGLIGIBLE_MEMBERSHIP
        if some.all():
            found.append(part)
        elif some.any():
            rows = np.arange(part.rows.start, part.rows.stop) if isinstance(part.rows, slice) else part.rows
            found.append(part._replace(rows=rows[some]))
    return found


@blas_on_one_thread()
def log_densities(model: MixtureModel, rows: Rows, parameters: MixtureParameters) -> FloatArray:
    """(n, J) log p_j(t), in double precision."""
    return _log_densities(model, rows, [_plan_pass(model, j, rows, parameters, Hint()) for j in range(len(model.maps))])


def _log_densities(model: MixtureModel, rows: Rows, passes: Sequence[_Pass]) -> FloatArray:
    out = np.empty((rows.n_rows, len(model.maps)), order="F")
    for j, (each, own) in enumerate(zip(model.maps, passes, strict=True)):
        column = out[:, j]

        def write(some: Selection, _: Any, posterior: Posterior, *rest: Any, column: FloatArray = column) -> None:
            column[some] = np.maximum(posterior.log_likelihood, _LEAST_LOG_DENSITY)

        gtm.visit_parts(each, model.rows_of_map(j, rows), own.nodes, own.parts, write)
    return out


def memberships(log_density: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, J) memberships and (n,) log-likelihoods, of log densities (n, J) under each map; those are written over."""
    with np.errstate(divide="ignore"):
        log_density += np.log(shares)
    largest = log_density.max(axis=1)
    log_density -= largest[:, None]
    np.exp(log_density, out=log_density)
    total = log_density.sum(axis=1)
    log_density /= total[:, None]
    return log_density, np.asarray(largest + np.log(total))


def m_step(model: MixtureModel, sums: MixtureStatistics, parameters: MixtureParameters) -> MixtureParameters:
    """New shares (6.3), and the M-step of every map that has rows; with one noise for all, that of all together."""
    shares = sums.masses / sums.total
    alive = shares > _LEAST_MAP_SHARE
    maps = list(parameters.maps)
    for j in np.flatnonzero(alive):
        each = model.maps[j]
        noise = each.noise
        if model.shared:  # the smallest variance is that of the mean of all maps
            noise = require(noise.capabilities.without_floor, noise, "be shared by several maps")()
        maps[j] = noise.m_step(each.surface, sums.maps[j], each.penalty, maps[j])
    shares = np.where(alive, shares, 0.0)
    if model.shared:
        counts = [_n_values(each, p) for each, p in zip(sums.maps, maps, strict=True)]
        maps = list(pooled(model, maps, [n if living else 0.0 * n for n, living in zip(counts, alive, strict=True)]))
    return MixtureParameters(shares / shares.sum(), tuple(maps))


def pooled(model: MixtureModel, maps: Sequence[Parameters], counts: Any) -> tuple[Parameters, ...]:
    """The parameters with one noise: its variance is the mean of those of the maps, by the values behind each.

    Where each of them is the best for its map, (E_j + λ‖W_j‖²)/n_j, this is the best for all: Σ(E_j + λ‖W_j‖²)/Σn_j.
    """
    variance = sum(n / each.precision for n, each in zip(counts, maps, strict=True)) / sum(counts)
    noise = model.maps[0].noise
    own = noise.capabilities.columns
    floor = noise.floor if own is None else own.floors
    precision = 1.0 / np.maximum(variance, floor)
    shared = precision if np.ndim(precision) else float(precision)
    return tuple(replace(each, precision=shared, ceiling=1.0 / floor) for each in maps)


def _n_values(sums: Any, parameters: Parameters) -> Any:
    """Number of values that a variance is the mean of: one for all, or one for each column."""
    return sums.column_counts if np.ndim(parameters.precision) else float(sums.column_counts.sum())
