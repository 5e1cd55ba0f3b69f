"""A surface over latent points that are given: an estimator without any learning, for tests of what comes after it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from prinfold.kernel_manifolds.base import KernelManifold
from prinfold.loops import StopReason
from prinfold.validation.settings import check_parameters, instance_of
from prinfold.validation.tables import check_table, forget


class Given(KernelManifold):
    """Latent points are a parameter; nothing is learned."""

    _constraints: ClassVar[Any] = {**KernelManifold._constraints, "latent": instance_of(np.ndarray, words="an array")}

    def __init__(self, latent: Any = None, *, kernel: str = "gaussian", threshold: Any = "auto") -> None:
        self.latent = latent
        self.kernel = kernel
        self.threshold = threshold

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Given:
        check_parameters(self, self._constraints)
        forget(self)
        table = check_table(self, X, reset=True)
        weight = np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        rows, offset = np.asarray(table, dtype=float), np.asarray(table.mean(axis=0), dtype=float)
        for name, value in self._surface_attributes(
            np.asarray(self.latent, dtype=float), rows - offset, weight, np.arange(len(rows)), offset
        ).items():
            setattr(self, name, value)
        self.n_iter_, self.converged_, self.stop_reason_ = 0, True, StopReason.CONVERGED
        self.history_ = {"objective": [0.0], "seconds": [0.0]}
        return self

    def transform(self, X: Any) -> Any:
        return self._latent_of(self._table(X))
