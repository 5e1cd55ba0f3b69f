"""Base of estimators of a surface by projection and regression in turn."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import explain_misfits, require_parts
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.base.unique_rows import centered_rows, weighted_places
from prinfold.basis_maps.bases import BASIS
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import make_latent
from prinfold.basis_maps.linear_geometry import linear_geometry
from prinfold.exceptions import Advice, DegenerateWarning, Message, warn_caller
from prinfold.files.kinds import Kinds, numbers, part, text
from prinfold.loops import StoppingRule, run_fixed_point
from prinfold.surfaces.projected_regression import (
    MOST_COMPONENTS,
    STARTS,
    Alternation,
    SurfaceRows,
    SurfaceState,
    starting_places,
)
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import (
    Constraint,
    axis_counts,
    check_parameters,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    real,
)
from prinfold.validation.tables import forget

_NODES_PER_AXIS = {1: 40, 2: 12, 3: 6}
"""Nodes along each axis, by latent dimension."""


@fill_parameter_docs
class RegressedManifold(PrincipalManifold):
    """Base of estimators that project rows on a surface and fit it to them in turn; a method says which and how.

    Rows that are equal are collapsed to one with the weight of all, and their mean, ``offset_``, is taken off before
    anything is computed.
    """

    _stored: ClassVar[Kinds] = {
        **PrincipalManifold._stored,
        "latent_": part("Lattice"),
        "basis_": BASIS,
        "weights_": numbers("M", "n_features_in_"),
        "offset_": numbers("n_features_in_"),
        "start_": text,
    }
    _follows_far_rows: ClassVar[bool] = True
    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": integer(1, MOST_COMPONENTS),
        "nodes": nothing | axis_counts,
        "init": one_of(STARTS) | instance_of(np.ndarray, list, words="an array of latent coordinates"),
        "max_iter": integer(0),
        "tol": real(0),
        "verbose": integer(0) | flag,
    }
    _rule: ClassVar[StoppingRule | None] = None
    _model: BasisMap
    n_components: int
    nodes: Any
    init: Any
    basis_: Any
    weights_: FloatArray
    offset_: FloatArray
    start_: str

    @abstractmethod
    def _make_basis(self) -> Any:
        """The basis of the map, which has yet to be bound to the latent space."""

    @abstractmethod
    def _alternation(self, surface: BasisMap) -> Alternation:
        """The alternation of projection and regression."""

    @abstractmethod
    def _measure(self, surface: BasisMap, sample: SurfaceRows, state: SurfaceState) -> dict[str, float]:
        """Entries of the history for a state."""

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the surface.

        Parameters
        ----------
        {X}
        y : ignored
        {sample_weight}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        forget(self)
        table, unique, offset, rows = centered_rows(self, X, sample_weight)
        init = self.init if isinstance(self.init, str) else weighted_places(self.init, unique, self.n_components)
        self._train(table, SurfaceRows(rows, unique.weight), offset, init)
        for words, category in self._warnings():
            warn_caller(words, category)
        return self

    def _train(self, table: FloatArray, sample: SurfaceRows, offset: FloatArray, init: Any) -> None:
        nodes = _NODES_PER_AXIS[self.n_components] if self.nodes is None else self.nodes
        latent = make_latent("grid", nodes, self.n_components, len(sample.rows))
        bound = self._make_basis().bind(latent)
        surface = BasisMap(latent, bound)
        alternation = self._alternation(surface)
        loop = partial(
            run_fixed_point,
            lambda: alternation.begin(sample, starting_places(init, sample, self.n_components)),
            partial(alternation.step, sample),
            partial(self._measure, surface, sample),
            rule=self._rule,
        )
        parts = {"latent_": latent, "basis_": bound.recipe, "offset_": offset, "n_features_in_": len(offset)}
        self._train_with_callbacks(
            table, lambda state: {**parts, "_model": surface, **self._state_attributes(state)}, loop
        )

    def _state_attributes(self, state: SurfaceState) -> dict[str, Any]:
        """Fitted attributes of a state."""
        return {"weights_": state.weights, "start_": state.start}

    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of the nearest point of the surface.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._latent_of(self._table(X))

    # --------------------------------------------------------------------------------------- plumbing

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings about the training and the surface: message and category."""
        found = self._stopping_warnings()
        if self.n_features_in_ < self.n_components:
            words = f"a surface of {self.n_components} dimensions in {self.n_features_in_} column(s) is not determined"
            found.append((Message(words, Advice("n_components", self.n_features_in_)), DegenerateWarning))
        if not np.any(self.weights_):
            found.append(("all rows are equal, so that the surface is a point", DegenerateWarning))
        return found

    def _point(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self._model.point(Z, self.weights_) + self.offset_)

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.jacobian(Z, self.weights_)

    def _geometry(self) -> SurfaceGeometry:
        return linear_geometry(self._model, self.weights_, self.offset_)

    def _restore(self) -> None:
        """Make the map again, and refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts({"a basis_ of its own": isinstance(self.basis_, type(self._make_basis()))})
        with explain_misfits("latent_ and basis_"):
            self._model = BasisMap(self.latent_, self.basis_.bind(self.latent_))
        n_weights = len(self._model.penalty_mask)
        require_parts(
            {f"weights_ with {n_weights} rows, as basis_ has functions on latent_": len(self.weights_) == n_weights}
        )
