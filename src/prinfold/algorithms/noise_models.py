"""Recipes for the noise of a GTM, by name or as objects with settings.

A recipe has one verb: ``make`` turns how far the columns spread into the noise of a model. ``NOISES`` names those that
need no settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.algorithms.cell_noise import CellNoise
from prinfold.algorithms.isotropic import IsotropicNoise
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import Noise
from prinfold.files import storable


class Spread(NamedTuple):
    """How far data spread.

    ``floor`` is the smallest noise variance on average over the columns, ``floors`` (D,) are the smallest of each, and
    ``scale`` (D,) is the standard deviation of each column, nil where it does not vary.
    """

    floor: float
    floors: FloatArray
    scale: FloatArray

    @property
    def n_columns(self) -> int:
        return len(self.floors)


def spread_of_model(variance: float, n_columns: int) -> Spread:
    """What stands for the spread of data where a model was fitted already and will not be trained further."""
    return Spread(variance, np.full(n_columns, variance), np.ones(n_columns))


class NoiseRecipe(Protocol):
    """A noise model independent of the data until made."""

    def make(self, surface: BasisMap, spread: Spread) -> Noise:
        """The noise about a surface in data of that spread."""


@storable
@dataclass(frozen=True)
class PlainNoise:
    """The same Gaussian noise in every direction: the GTM as it was proposed."""

    def make(self, surface: BasisMap, spread: Spread) -> Noise:
        return IsotropicNoise(spread.floor)


@storable
@dataclass(frozen=True)
class DiagonalNoise:
    """Gaussian noise with a variance for each column, so that columns may have units of their own."""

    def make(self, surface: BasisMap, spread: Spread) -> Noise:
        return CellNoise(spread.floor, spread.floors, spread.scale)


NOISES: dict[str, NoiseRecipe] = {"isotropic": PlainNoise(), "diagonal": DiagonalNoise()}
"""Noise models that need no settings."""
