"""How a GTM is trained, by name or as an object with settings.

A trainer has one verb: ``training`` turns a model into what is trained, with the verbs ``begin``, ``step``, ``measure``
and ``finish`` and the property ``monotone`` of :class:`~prinfold.gtm.model.GTMModel`. ``TRAINERS`` names those
that need no settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from prinfold.files import storable
from prinfold.gtm.model import GTMModel
from prinfold.gtm.trainers.incremental import Incremental
from prinfold.gtm.trainers.online import Online


class Trainer(Protocol):
    """A way to train a model."""

    def training(self, model: GTMModel, seed: Any = None) -> Any:
        """The model as it is trained this way."""


@storable
@dataclass(frozen=True)
class Batch:
    """An E-step over all rows, then an M-step: EM as it is."""

    def training(self, model: GTMModel, seed: Any = None) -> GTMModel:
        """The model itself."""
        return model


TRAINERS: dict[str, Trainer] = {"batch": Batch(), "incremental": Incremental(), "online": Online()}
