"""How a GTM is trained, by name or as an object with settings.

A trainer has one verb: ``training`` turns a model into what is trained, with the verbs ``begin``, ``step``, ``measure``
and ``finish`` and the property ``monotone`` of :class:`~prinfold.algorithms.gtm.GTMModel`. ``TRAINERS`` names those
that need no settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from prinfold.algorithms.gtm import GTMModel
from prinfold.algorithms.incremental import Incremental
from prinfold.algorithms.online import Online
from prinfold.files import storable


class Trainer(Protocol):
    """What is asked of a trainer."""

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
