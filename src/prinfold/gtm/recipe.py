"""The recipe of a fit: everything that a member of the GTM family puts together, and nothing that is off.

A member says in ``_recipe`` what it is made of. Optional features are functions from a recipe to a recipe: ``robust``
(``starts/outliers.py``), ``with_evidence`` (``evidence_training.py``), ``with_process``
(``gaussian_process_training.py``). ``fitting.py`` follows the recipe and asks no feature whether it is on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from prinfold._typing import FloatArray, RandomState
from prinfold.basis_maps.bases import Basis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.devices import Device
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import AnyNoise, Parameters
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.gtm.penalties import Penalty
from prinfold.gtm.starts.first_parameters import Start
from prinfold.gtm.trainers.trainers import BATCH, Trainer
from prinfold.gtm.warnings import FindFolds
from prinfold.latent import LatentSpace
from prinfold.loops import Outcome
from prinfold.rows.rows import Rows


class TrainingJob(NamedTuple):
    """Map, noise and penalty, which stay fixed in training, with the rows and the basis before it was bound."""

    model: GTMModel
    rows: Rows
    basis: Basis


class FittedMap(NamedTuple):
    """Result of a fit: how training went, and the fitted attributes.

    ``spacing`` is the distance between the nodes that training began with, before any were doubled.
    """

    outcome: Outcome[Any]
    attributes: dict[str, Any]
    spacing: float


Loop = Callable[..., Outcome[Any]]
"""Training to the end, given the settings of a loop: ``max_iter``, ``tol`` and ``listeners``."""

Attributes = Callable[[TrainingJob, Any], dict[str, Any]]
"""Fitted attributes of a job in a state of its training."""


MakeNoise = Callable[[BasisMap, ColumnSpread], AnyNoise]
"""The noise about a map in data of some spread."""


class Run(Protocol):
    """Runs a loop with progress bars, and with callbacks unless ``callbacks=False``."""

    def __call__(
        self, table: FloatArray, attributes: Callable[[Any], dict[str, Any]], loop: Loop, *, callbacks: bool = True
    ) -> Outcome[Any]: ...


@dataclass(frozen=True)
class Recipe:
    """The parts from which a map is made of rows and trained.

    Attributes
    ----------
    latent : function
        Weight of the rows → latent space.
    basis : function
        Latent space → recipe of the basis.
    center : function
        Table, weights and whether there are gaps → what is taken off the rows, (D,).
    spread : function
        Rows → how far their columns spread, and the least noise that they may have.
    noise : function
        Map and spread → noise.
    penalty : Penalty
    start : Start
        Model, rows and generator → first parameters, before any change of ``start_steps``.
    begin : function
        Recipe and job → parameters that training begins with: the start with its changes and the warm-up.
    fit : function
        Recipe, job and a way to run loops → fitted map.
    attributes : function
        Job and a state of its training → fitted attributes.
    row_weights : function
        Model, rows and parameters → how much each row counted in the end, (n,) or None for all alike.
    folds : function
        Model and parameters → folds at the nodes.
    max_iter, tol, relaxation, random_state
        Settings of the loop.
    make_model : function
        Map, noise and penalty → model.
    trainer : Trainer
    second_start : function or None
        Gives the start that came second, where several were compared. It works only after ``start`` ran.
    numbers_per_node : int
        Numbers that a pass holds for each row and node; blocks of rows are cut to fit them.
    most_doublings : int
        How often nodes may be doubled where they turn out to be far apart.
    row_steps, basis_steps, model_steps, start_steps : tuple of functions
        Changes of the rows, of the basis and of the model for some rows, and of the start, one after the other.
    """

    latent: Callable[[float], LatentSpace]
    basis: Callable[[LatentSpace], Basis]
    center: Callable[[FloatArray, FloatArray | None, bool], FloatArray]
    spread: Callable[[Rows], ColumnSpread]
    noise: MakeNoise
    penalty: Penalty
    start: Start
    begin: Callable[[Recipe, TrainingJob], Parameters]
    fit: Callable[[Recipe, TrainingJob, Run], FittedMap]
    attributes: Attributes
    row_weights: Callable[[GTMModel, Rows, Parameters], FloatArray | None]
    folds: FindFolds
    max_iter: int
    tol: float
    relaxation: float
    random_state: RandomState
    make_model: Callable[[BasisMap, AnyNoise, Penalty], GTMModel] = GTMModel
    trainer: Trainer = BATCH
    second_start: Callable[[], Start | None] | None = None
    numbers_per_node: int = 1
    most_doublings: int = 0
    row_steps: tuple[Callable[[Rows], Rows], ...] = ()
    basis_steps: tuple[Callable[[Any, LatentSpace, Rows], Basis], ...] = ()
    model_steps: tuple[Callable[[GTMModel, Rows], GTMModel], ...] = ()
    start_steps: tuple[Callable[[Start], Start], ...] = ()


def with_start_step(recipe: Recipe, step: Callable[[Start], Start]) -> Recipe:
    """The recipe with one more change of its start."""
    return replace(recipe, start_steps=(*recipe.start_steps, step))


def on_device(recipe: Recipe, device: Device) -> Recipe:
    """The recipe with rows whose passes are computed on a device."""
    return replace(recipe, row_steps=(*recipe.row_steps, partial(replace, device=device)))
