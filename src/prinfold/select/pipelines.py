"""Surfaces at the end of a pipeline, as they lie among the rows that go into it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from prinfold._typing import FloatArray, Mesh
from prinfold.base.pipeline_steps import linear_form, undo
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.geometry.projection import project_to_surface
from prinfold.geometry.projection_starts import MeshStarts
from prinfold.latent import LatentSpace
from prinfold.pps.clamping_choice import model_roughness
from prinfold.select.missing_cells import project_by_turns

_STARTS = 6
"""Places from which the nearest point is sought."""

_STEP = 1e-4
"""Step of the differences along a bent way back, relative to the extent of the surface before it."""


def last_step(model: Any) -> Any:
    """The model itself, which may stand at the end of a pipeline."""
    return last_step(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def takes_gaps(model: Any) -> bool:
    """Whether a model, and each step of a pipeline, can be fitted to rows with missing cells."""
    if isinstance(model, Pipeline):
        return all(takes_gaps(step) for _, step in model.steps if step not in (None, "passthrough"))
    return isinstance(model, BaseEstimator) and bool(get_tags(model).input_tags.allow_nan)


@dataclass(frozen=True)
class PipelineSurface:
    """A fitted pipeline of steps that can be undone and a principal manifold.

    Its surface is the manifold's taken back through the steps, in the units of the rows. What is nearest after the
    steps is in general not nearest before them, so that nearest points are sought anew, by distances in the rows' own
    units: from places of the mesh taken back, and kept where they beat the manifold's own projection taken back. Like
    lengths, angles and densities are those among the rows.
    """

    pipeline: Pipeline

    @property
    def model(self) -> PrincipalManifold:
        model: PrincipalManifold = last_step(self.pipeline)
        return model

    @property
    def latent_(self) -> LatentSpace:
        return self.model.latent_

    def _forward(self, X: FloatArray) -> FloatArray:
        """Rows as the manifold takes them."""
        return np.asarray(self.pipeline[:-1].transform(X), dtype=float)

    def _back(self, Y: FloatArray) -> FloatArray:
        """Points of the manifold taken back through the steps of the pipeline."""
        return undo(self.pipeline.steps[:-1], Y, "compare the model without it, on rows that went through it")

    @cached_property
    def _linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        return linear_form(self._back, int(self.model.n_features_in_))

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._back(self.model.inverse_transform(Z, extrapolate=True))

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        J = self.model._data_jacobian(Z)
        if self._linear_form is not None:
            return np.asarray(np.einsum("de,ndq->neq", self._linear_form[0], J))
        Y, extent = np.asarray(self.model.inverse_transform(Z, extrapolate=True), dtype=float), self._extent
        step = _STEP * extent / np.maximum(np.linalg.norm(J, axis=1), np.finfo(float).tiny ** 0.5)  # (n, Q)
        columns = []
        for q in range(J.shape[2]):
            h = step[:, q, None]
            columns.append((self._back(Y + h * J[:, :, q]) - self._back(Y - h * J[:, :, q])) / (2.0 * h))
        return np.stack(columns, axis=2)

    @cached_property
    def _extent(self) -> float:
        return float(np.ptp(self.model.mesh().vertices, axis=0).max())

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The manifold's mesh with its vertices among the rows."""
        found = self.model.mesh(resolution)
        return found._replace(vertices=self._back(np.asarray(found.vertices, dtype=float)))

    @cached_property
    def _starting_points(self) -> MeshStarts | None:
        mesh = self.mesh()
        return MeshStarts(mesh) if len(mesh.faces) else None

    def project(self, X: FloatArray) -> FloatArray:
        return project_by_turns(self._project_complete, X, self.mesh().vertices)

    def _project_complete(self, X: FloatArray) -> FloatArray:
        best = self._back(self.model.project(self._forward(X)))
        if self._starting_points is None:
            return best
        domain = self.latent_.domain
        starts = self._starting_points.starts(X, domain, _STARTS)
        found = project_to_surface(X, self._point, self._jacobian, domain, starts).points
        nearer = np.square(X - found).sum(axis=1) < np.square(X - best).sum(axis=1)
        return np.asarray(np.where(nearer[:, None], found, best))

    def coordinates(self, X: FloatArray) -> FloatArray:
        return self.latent_.embed(np.asarray(self.model.transform(self._forward(X)), dtype=float))

    def log_likelihood(self, X: FloatArray) -> FloatArray | None:
        """(n,) log-density among the rows, where the model has one and the steps are straight and keep all columns."""
        score = getattr(self.model, "score_samples", None)
        if score is None or self._linear_form is None or len(set(self._linear_form[0].shape)) > 1:
            return None
        return np.asarray(score(self._forward(X)) - np.linalg.slogdet(self._linear_form[0])[1])

    def roughness(self) -> float:
        return float(model_roughness(self))
