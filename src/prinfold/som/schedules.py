"""Schedules: a width or a rate that falls from epoch to epoch, as is customary for maps (Kohonen 1995)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError, shown
from prinfold.files import storable
from prinfold.latent.base import is_count
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import one_of, real

Shape = Callable[[float, float, FloatArray], FloatArray]

SHAPES: dict[str, Shape] = {
    "exponential": lambda first, last, t: first * (last / first) ** t,
    "linear": lambda first, last, t: first + (last - first) * t,
    "inverse": lambda first, last, t: first / (1.0 + (first / last - 1.0) * t),
}
"""By name: the value at a share t of the way from ``first`` to ``last``."""


@storable
@check_verbs(first=real(0, above=True), last=real(0, above=True))
@dataclass(frozen=True)
class Schedule:
    """A number that goes from ``first`` to ``last`` over some epochs, and stays there.

    Parameters
    ----------
    first : float, default=None
        Where it begins; None leaves it to the method.
    last : float, default=None
        Where it ends; None leaves it to the method.
    epochs : int, default=30
        Epochs on the way; in the first of them it is ``first``, in the last ``last``.
    shape : {"exponential", "linear", "inverse"}, default="exponential"
        How it goes: by the same factor, or the same difference, in every epoch, or as one over a number that does.

    Examples
    --------
    >>> from prinfold import SOM, Schedule, datasets
    >>> data = datasets.make_ridge(196, rng=0)
    >>> model = SOM(nodes=8, width=Schedule(3.0, 1.0, epochs=20, shape="linear")).fit(data.X)
    >>> model.width_
    1.0
    """

    first: float | None = None
    last: float | None = None
    epochs: int = 30
    shape: str = "exponential"

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("last", self.last)):
            if value is not None and not real(0, above=True).test(value):
                raise InvalidParameterError(f"{name} of a schedule must be a finite number above 0, got {shown(value)}")
        if not is_count(self.epochs):
            raise InvalidParameterError(f"epochs of a schedule must be a whole number above 0, got {self.epochs!r}")
        if not one_of(SHAPES).test(self.shape):
            words = f"shape of a schedule must be one of {', '.join(SHAPES)}, got {shown(self.shape)}"
            raise InvalidParameterError(words)

    def resolved(self, first: float, last: float) -> Schedule:
        """The schedule with defaults for the ends that are None."""
        last = last if self.last is None else float(self.last)
        return replace(self, first=max(first, last) if self.first is None else float(self.first), last=last)

    def at(self, epoch: float | FloatArray) -> FloatArray:
        """Value in an epoch, counted from 0; fractions of an epoch are allowed."""
        if self.first is None or self.last is None:
            raise InvalidParameterError(
                f"{self} has no value before its ends are known; call resolved(first, last) first"
            )
        share = np.clip(np.asarray(epoch) / max(self.epochs - 1, 1), 0.0, 1.0)
        return np.asarray(SHAPES[self.shape](self.first, self.last, share))


def as_schedule(given: Schedule | float | None, epochs: int) -> Schedule:
    """A schedule from a parameter: a number is constant; None leaves both ends to the method."""
    if isinstance(given, Schedule):
        return given
    return Schedule(None if given is None else float(given), None if given is None else float(given), int(epochs))
