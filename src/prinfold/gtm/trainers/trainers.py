"""Trainers of a GTM, by name or as objects with settings.

A trainer has one verb: ``training`` turns a model into what is trained. ``TRAINERS`` names those that need no settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from prinfold._typing import RandomState
from prinfold.files import storable
from prinfold.gtm.model import FittedState, GTMModel
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.trainers.incremental import Incremental
from prinfold.gtm.trainers.online import Online
from prinfold.rows.rows import Rows

T = TypeVar("T", bound=FittedState)


class Training(Protocol[T]):
    """A model under training: a state T follows from the one before, and each has its measures."""

    @property
    def monotone(self) -> bool:
        """Whether training never lowers the objective."""

    def begin(self, rows: Rows, parameters: Parameters) -> T:
        """State after a first E-step."""

    def step(self, rows: Rows, state: T, relaxation: float = 1.0) -> T:
        """State after one more iteration."""

    def measure(self, state: T) -> dict[str, float]:
        """Entries of the history for a state."""

    def finish(self, rows: Rows, state: T) -> T:
        """State that training ends with: the same parameters, with the sums of all rows under them."""


AnyTraining: TypeAlias = Training[Any]
"""A model under training with states of some kind, where it does not matter which."""


class Trainer(Protocol):
    """A way to train a model."""

    @property
    def whole(self) -> bool:
        """Whether every step sees all rows under the same parameters."""

    def training(self, model: GTMModel, seed: RandomState = None) -> AnyTraining:
        """The model as it is trained this way."""


@storable
@dataclass(frozen=True)
class Batch:
    """An E-step over all rows, then an M-step: EM as it is."""

    whole: ClassVar[bool] = True

    def training(self, model: GTMModel, seed: RandomState = None) -> GTMModel:
        """The model itself."""
        return model


BATCH = Batch()

TRAINERS: dict[str, Trainer] = {"batch": BATCH, "incremental": Incremental(), "online": Online()}
