"""Online EM: sums that forget, and an M-step after every block of rows (Titterington 1984; Cappé & Moulines 2009).

With s̄ the sums of what was seen, per row, and s̄(block; Θ) those that the E-step finds of a block,

    s̄ ← (1 − γ) s̄ + γ s̄(block; Θ),        Θ ← M-step(N s̄).

For a block of m rows after n others, in units of u rows,

    γ = max(m / (n + m),  1 − (1 − g)^(m/u)),        g = (1 + offset + n/u)^(−decay),   or a constant step.

A block of u rows moves the sums by g, the rule of Cappé & Moulines, and it takes as many smaller ones to move them as
far. Larger tables are cut into blocks of at most u rows; where weights make such a block weigh more, m > u, it moves
the sums as far as blocks of u one after the other, 1 − γ = Π (1 − g(n + ju))^(m_j/u) with Σ m_j = m. No row ever counts
less than those before it, so that a decay of 1 is the plain average. N is the number of rows that the average is as
good as, 1/N ← (1 − γ)²/N + γ²/m, of a plain average all of them. The penalty is weighed against so many, and the widths
of bands are as of so many. Over a table that is gone through again and again γ is at least m/N with N all its rows:
what is older than a pass has come again since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from prinfold._typing import RandomState
from prinfold.files import storable
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import AnyStatistics, Parameters
from prinfold.gtm.noise.recipes import check_recipe
from prinfold.gtm.trainers.blockwise import BlockedModel, some_rows
from prinfold.rows.rows import Rows
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, as_generator, integer, nothing, real

_BLOCK_ROWS = 200
"""Rows of a block, and the unit of the step rule: most of what a pass can do is done in the first small steps."""

_MOST_PARTS = 10_000
"""Most parts of u into which the step rule divides a heavy block; of a heavier one the parts are larger."""

_FEWEST_BLOCKS = 50
"""Blocks into which a table is cut at least."""

S = TypeVar("S", bound=AnyStatistics)


@storable
@check_verbs(n_rows=integer(0), seen=real(0), new=real(0, above=True), unit=nothing | real(0, above=True))
@dataclass(frozen=True)
class Online:
    """Online EM: an M-step after every block of rows, with sums that forget what was seen long ago.

    Parameters
    ----------
    rows : int, default=None
        Rows of a block, into which larger tables are cut, and the unit in which the step rule counts. None is 200, or
        in ``fit`` a fiftieth of the table where that is less.
    decay : float, default=0.6
        How fast steps shrink, above 0.5 and at most 1: after n rows a block of ``rows`` rows counts
        (1 + offset + n / rows)^(−decay), or as much as its share of all rows where that is more. 1 weighs all rows
        alike, those too that came while the surface was still elsewhere.
    offset : float, default=0.0
        Blocks added to those that were seen: a larger one makes the first steps smaller.
    step : float, default=None
        A constant step in place of one that shrinks, above 0 and below 1, for data that drift: a block of ``rows``
        rows counts ``step``, and all before it the rest; one of m rows counts 1 − (1 − step)^(m / rows). About
        ``rows / step`` rows are remembered.
    start : int, default=500
        Rows that ``partial_fit`` gathers and fits to begin with: online steps from nowhere unfold a surface badly.
        ``fit`` does not use it.
    """

    rows: int | None = None
    decay: float = 0.6
    offset: float = 0.0
    step: float | None = None
    start: int = 500
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # A step of 1 would forget all for a single row, however many rows a block has.
        share = Constraint(lambda v: real(0, above=True).test(v) and v < 1, "a number above 0 and below 1")
        above = Constraint(lambda v: real(0).test(v) and 0.5 < v <= 1, "a number above 0.5 and at most 1")
        check_recipe(
            self, rows=nothing | integer(1), decay=above, offset=real(0), step=nothing | share, start=integer(2)
        )

    def training(self, model: gtm.GTMModel, seed: RandomState = None) -> OnlineModel:
        """The model as it is trained this way."""
        key = int(as_generator(seed).integers(2**32))
        return OnlineModel(model.surface, model.noise, model.penalty, self, key)

    def block_rows(self, n_rows: int) -> int:
        """Rows of a block of a table."""
        return self.rows or max(1, min(_BLOCK_ROWS, n_rows // _FEWEST_BLOCKS))

    @property
    def unit(self) -> int:
        """Rows of a block of a stream."""
        return self.rows or _BLOCK_ROWS

    def gain(self, seen: float, new: float, unit: float | None = None) -> float:
        """γ: how much a block of ``new`` rows counts after those that were seen."""
        unit = unit or float(self.unit)
        unit = max(unit, new / _MOST_PARTS)
        before = unit * np.arange(max(1, np.ceil(new / unit)))  # weight in parts of u, of which the last may be less
        if self.step is None:
            gains = (1.0 + self.offset + (seen + before) / unit) ** -self.decay
        else:
            gains = np.full(len(before), self.step)
        kept = float(np.prod((1.0 - gains) ** (np.minimum(unit, new - before) / unit)))
        return max(float(new / (seen + new)), 1.0 - kept)


class OnlineStream(NamedTuple):
    """Parameters, the sums that they came of, and how many rows went by."""

    parameters: Parameters
    statistics: AnyStatistics
    seen: float


def after_block(
    model: gtm.GTMModel,
    rows: Rows,
    stream: OnlineStream,
    trainer: Online,
    unit: float | None = None,
    most: float = np.inf,
) -> tuple[OnlineStream, AnyStatistics]:
    """The stream one block later, and the sums of the block under the parameters before it.

    ``most`` is the largest number of rows that sums may stand for: rows that come again are no others.
    """
    found, _ = gtm.e_step(model, rows, stream.parameters, Hint())
    gain = max(trainer.gain(stream.seen, found.total, unit), min(found.total / most, 1.0))
    statistics = blend(stream.statistics, found, gain, most)
    parameters = model.noise.m_step(model.surface, statistics, model.penalty, stream.parameters)
    return OnlineStream(parameters, statistics, stream.seen + found.total), found


def blend(old: S | None, new: S, gain: float, most: float = np.inf) -> S:
    """(1 − γ) of the old sums and γ of the new ones, per row, times the effective number of rows N."""
    if gain == 1.0 or old is None:
        return new
    n = min(1.0 / ((1.0 - gain) ** 2 / old.total + gain**2 / new.total), most)
    return old.scale(n * (1.0 - gain) / old.total) + new.scale(n * gain / new.total)


class Score(NamedTuple):
    """Score of rows as they came, each block before anything was learned from it, and how many they were."""

    log_likelihood: float
    total: float

    def measured(self, model: gtm.GTMModel, parameters: Parameters, n_rows: float) -> dict[str, float]:
        """Objective and log-likelihood per row, the penalty being that for ``n_rows`` rows, and the noise variance."""
        mean = self.log_likelihood / self.total
        cost = parameters.cost(model.surface, model.penalty) / n_rows
        return {"objective": mean - cost, "log_likelihood": mean, "noise": 1.0 / parameters.level}


def after_blocks(
    model: gtm.GTMModel,
    blocks: Iterable[Rows],
    stream: OnlineStream,
    trainer: Online,
    unit: float | None = None,
    most: float = np.inf,
) -> tuple[OnlineStream, Score]:
    """The stream after several blocks, and how they scored; see :func:`after_block`."""
    scored = total = 0.0
    for block in blocks:
        stream, found = after_block(model, block, stream, trainer, unit, most)
        scored, total = scored + found.log_likelihood, total + found.total
    return stream, Score(scored, total)


class OnlineState(NamedTuple):
    """The stream, the score of the rows in the last pass, and the number of passes."""

    stream: OnlineStream
    score: Score
    age: int = 0

    @property
    def parameters(self) -> Parameters:
        return self.stream.parameters

    @property
    def statistics(self) -> AnyStatistics:
        return self.stream.statistics


@dataclass(frozen=True)
class OnlineModel(BlockedModel):
    """A GTM under online EM; a step is a pass over the rows, in another order each time."""

    trainer: Online = Online()
    key: int = 0

    def begin(self, rows: Rows, parameters: Parameters) -> OnlineState:
        """A first E-step over the rows, for the history; its sums are dropped at the first block."""
        return self._e_step_all(rows, parameters, 0.0, 0)

    def step(self, rows: Rows, state: OnlineState, relaxation: float = 1.0) -> OnlineState:
        """One pass. Steps are not stretched."""
        n_rows, total = getattr(rows, "n_read", rows.n_rows), state.score.total
        size = self.trainer.block_rows(n_rows)
        unit = size * total / n_rows  # in weights: those of all rows times 2 change no step
        blocks = in_blocks(rows, size, np.random.default_rng((self.key, state.age)))
        return OnlineState(*after_blocks(self, blocks, state.stream, self.trainer, unit, total), state.age + 1)

    def measure(self, state: OnlineState) -> dict[str, float]:
        """Score per row of the rows of the last pass as they came, less the penalty; the noise variance."""
        return state.score.measured(self, state.parameters, state.score.total)

    def finish(self, rows: Rows, state: OnlineState) -> OnlineState:
        """The state with the same parameters and the sums of all rows under them."""
        return self._e_step_all(rows, state.parameters, state.stream.seen, state.age)

    def _e_step_all(self, rows: Rows, parameters: Parameters, seen: float, age: int) -> OnlineState:
        found, _ = gtm.e_step(self, rows, parameters, Hint())
        return OnlineState(OnlineStream(parameters, found, seen), Score(found.log_likelihood, found.total), age)


def in_blocks(rows: Rows, size: int, rng: np.random.Generator | None = None) -> Iterator[Rows]:
    """Blocks of so many rows or a little less, in their order or at random; each portion of a stream by itself."""
    for portion in rows.portions():
        order = np.arange(portion.n_rows) if rng is None else rng.permutation(portion.n_rows)
        for chosen in np.array_split(order, max(1, -(-portion.n_rows // size))):
            yield some_rows(portion, chosen)
