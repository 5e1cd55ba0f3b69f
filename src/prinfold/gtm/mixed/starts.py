"""Starts of a GTM of mixed columns (thesis 6.8): any start of a numerical GTM, made in an encoded table.

Numbers are in units of their spread; of levels there is an indicator for each, and of counts the square root at a size
factor of 1, all less their mean. Images of the nodes in that table become shares and rates, and their predictors, by
the link functions, the targets of the weights. The encoding is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm.mixed.column_noise import MixedNoise, MixedParameters
from prinfold.gtm.mixed.column_sums import MixedBlock
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.starts.first_parameters import Start
from prinfold.rows.rows import Rows, Selection, sum_blocks

_LEAST_VARIANCE = 1e-300
"""A variance that none is smaller than, so that nothing is divided by zero."""

_PREDICTOR_RIDGE = 1e-9
"""Regularisation per node of the fit to the predictors: only enough to be well posed."""

_FIRST_DISPERSIONS = 0.1, 1e3


class Averages(NamedTuple):
    """Weighted sums over an encoded table (D',): cells seen, values, their squares, original cells and exposure."""

    seen: FloatArray
    total: FloatArray
    square: FloatArray
    values: FloatArray
    squares: FloatArray
    exposure: FloatArray

    def __add__(self, other: Any) -> Averages:
        return Averages(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def mean(self) -> FloatArray:
        return self.total / self.seen

    @property
    def spread(self) -> FloatArray:
        return np.sqrt(np.maximum(self.square / self.seen - np.square(self.mean), 0.0))


@dataclass(frozen=True)
class _AveragesOf:
    """Averages of a portion of rows; it can be sent to where the rows are."""

    noise: MixedNoise

    def __call__(self, rows: Rows) -> Averages:
        return sum_blocks(partial(self._of_block, rows), rows.slices)

    def _of_block(self, rows: Rows, part: slice) -> Averages:
        noise = self.noise
        loaded, weight = noise.load(rows.block(part)), rows.block_weight(part)
        seen = loaded.seen[:, noise.layout.source]
        encoded, values = _encode_block(noise, loaded), loaded.values.astype(np.float64)
        ones = np.ones(len(loaded)) if weight is None else weight
        every = seen, encoded, np.square(encoded), values, np.square(values), loaded.exposure
        return Averages(*(ones @ each.astype(np.float64) for each in every))


def averages(noise: MixedNoise, rows: Rows) -> Averages:
    """Sums over all rows, portion by portion and block by block."""
    return rows.sum_portions(_AveragesOf(noise))


def inform_noise(noise: MixedNoise, rows: Rows, *, totals: bool) -> MixedNoise:
    """The noise with the quantities that it takes from data: the row added, first dispersions, expected counts.

    ``totals`` says that size factors are to be found from the counts of each row.
    """
    if totals:
        plain = averages(noise, rows)
        expected = np.zeros(len(noise.layout.columns))
        counted = noise.layout.counted
        at = noise.layout.starts[counted]
        expected[counted] = plain.values[at] / plain.seen[at]
        noise = replace(noise, reference=expected)
    found = averages(noise, rows)
    prior = found.values / found.seen
    for column, part, _ in noise.layout.with_family:
        if noise.layout.columns[column].levels is not None:
            half = 0.5 * max(noise.layout.widths[column], 2)
            prior[part] = (found.values[part] + 0.5) / (found.seen[part] + half)
        else:
            prior[part] = (found.values[part] + 0.5) / found.seen[part]
    d = noise.scattered
    mean = found.values[d] / found.seen[d]
    excess = found.squares[d] / found.seen[d] - np.square(mean) - mean
    first = np.clip(np.square(mean) / np.maximum(excess, _LEAST_VARIANCE), *_FIRST_DISPERSIONS)
    if noise.dispersion == "shared" and len(first):
        first = np.full(len(first), np.median(first))
    return replace(noise, prior=prior, prior_mass=found.exposure / found.seen, first_dispersion=first)


def _encode_block(noise: MixedNoise, loaded: MixedBlock) -> FloatArray:
    """(n, D') numbers as they are, indicators of levels, and square roots of counts at a size factor of 1."""
    found = loaded.values.astype(np.float64)
    at = noise.layout.starts[noise.layout.counted]
    found[:, at] = np.sqrt(found[:, at] / loaded.factor[:, None])
    return found


@dataclass(frozen=True)
class EncodedRows(Rows):
    """Mixed rows as a table of numbers without gaps: each column less ``middle`` (D',) and in units ``unit`` (D',)."""

    noise: MixedNoise = field(kw_only=True)
    middle: FloatArray = field(kw_only=True)
    unit: FloatArray = field(kw_only=True)
    had_gaps: bool = field(kw_only=True)

    @property
    def filled(self) -> bool:
        return self.had_gaps

    @property
    def n_columns(self) -> int:
        return len(self.unit)

    def block(self, part: Selection) -> FloatArray:
        """Encoded rows; missing cells are the mean of their column."""
        loaded = self.noise.load(super().block(part))
        encoded = (_encode_block(self.noise, loaded) - self.middle) / self.unit
        return np.where(loaded.seen[:, self.noise.layout.source] > 0, encoded, 0.0).astype(self.table.dtype, copy=False)


def link_start(start: Start) -> Start:
    """A start in the encoded table, turned into predictors whose means are its values there."""

    def linked_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> MixedParameters:
        noise: Any = model.noise
        had_gaps = rows.filled
        rows = Rows(rows.table, rows.offset, rows.weight, rows.block_rows)  # filled ones have levels where gaps were
        found = averages(noise, rows)
        g = noise.gaussian
        middle, unit = found.mean, np.where(found.spread > 0, found.spread, 1.0)
        middle[g], unit[g] = 0.0, np.where(noise.cells.scale > 0, noise.cells.scale, 1.0)
        levels = noise.layout.exclusive  # rare levels weigh more, as in correspondence analysis
        unit[levels] = np.sqrt(np.maximum(middle[levels], 1e-12))
        known = {"noise": noise, "middle": middle, "unit": unit, "had_gaps": had_gaps}
        encoded = EncodedRows(rows.table, rows.offset, rows.weight, rows.block_rows, **known)
        begun = start(replace(model, noise=IsotropicNoise(_LEAST_VARIANCE)), encoded, rng)
        weights = begun.weights * unit
        seen = model.surface.nodes(weights) + middle
        Phi = model.surface.node_features
        for _, part, family in noise.layout.with_family:
            eta = family.link(seen[:, part], noise.prior[part] / noise.prior_mass[part])
            weights[:, part] = model.surface.regress(Phi, eta, _PREDICTOR_RIDGE * len(Phi))
        first: MixedParameters = noise.initial(weights, begun.precision / np.square(unit[g]))
        return first

    return linked_start
