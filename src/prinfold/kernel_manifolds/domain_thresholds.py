"""Rules for the density threshold η that bounds the latent domain: Meinicke et al. (2005), (7) and (9).

Densities are relative to a single kernel at its peak and hold each point's own kernel, so that none of the N points
lies below 1/N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError, shown
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, real

_ROUNDING_SHARE = 1e-9
"""Share by which a threshold stays below the density of a point that is to be inside."""


_COLUMN = Constraint(
    lambda v: v.ndim == 1 and len(v) > 0 and v.dtype.kind in "fiu", "an array of numbers, one for each row"
)


class Threshold(Protocol):
    """A rule for η."""

    def level(self, density: FloatArray, weight: FloatArray) -> float:
        """η from the density at the latent points and their weights (m,)."""


@dataclass(frozen=True)
class LeastDensity:
    """η = min_i p(x_i): all latent points are inside (UKR, step 6)."""

    def level(self, density: FloatArray, weight: FloatArray) -> float:
        return float(density.min()) * (1.0 - _ROUNDING_SHARE)


@check_verbs(density=_COLUMN, weight=_COLUMN)
@dataclass(frozen=True)
class Contour:
    """The highest η that keeps a ``share`` of the weight inside, such as 0.9 for the 90 % contour."""

    share: float

    def __post_init__(self) -> None:
        if not real(0, above=True, maximum=1).test(self.share):
            raise InvalidParameterError(f"share must be a number above 0 and at most 1, got {shown(self.share)}")

    def level(self, density: FloatArray, weight: FloatArray) -> float:
        order = np.argsort(-density, kind="stable")
        kept = np.cumsum(weight[order])
        last = int(np.searchsorted(kept, self.share * kept[-1] * (1.0 - _ROUNDING_SHARE)))
        return float(density[order[last]]) * (1.0 - _ROUNDING_SHARE)


@dataclass(frozen=True)
class GivenLevel:
    """A given η."""

    eta: float

    def level(self, density: FloatArray, weight: FloatArray) -> float:
        if not 0 < self.eta <= density.max():
            raise InvalidParameterError(
                f"threshold={self.eta:g} leaves no row inside: the latent density at the rows, relative to the peak of "
                f"a single kernel, ranges from {density.min():.3g} to {density.max():.3g}; choose a value in that range"
            )
        return float(self.eta)


THRESHOLDS: dict[str, Threshold] = {"auto": LeastDensity()}
"""Rules by name."""


def make_threshold(given: str | float | Threshold) -> Threshold:
    """The rule that a parameter stands for: a name, a number η, or a rule itself."""
    if isinstance(given, str):
        return THRESHOLDS[given]
    return GivenLevel(float(given)) if isinstance(given, float | int | np.number) else given
