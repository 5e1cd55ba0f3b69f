"""Kernel surfaces that may lie in the feature space of a kernel on the data (Meinicke et al. 2005, section 3)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.file_requirements import explain_misfits
from prinfold.base.unique_rows import Unique
from prinfold.exceptions import Advice, Message, NoPreimageError
from prinfold.files.kinds import Kinds, part
from prinfold.geometry.projection import Projection
from prinfold.kernel_manifolds.feature_kernels import (
    KERNEL_NAMES,
    Features,
    KernelFeatures,
    PlainFeatures,
    Span,
    kernel_features,
    make_kernel,
)
from prinfold.kernel_manifolds.fitting import TrainedKernelManifold
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.validation.settings import Constraint, flag, instance_of, nothing, one_of

_PRECOMPUTED = "precomputed"


class FeatureSpaceManifold(TrainedKernelManifold):
    """A kernel surface with parameters ``feature_kernel``, ``feature_params`` and ``preimage``.

    With a feature kernel ``span_`` is set, and ``values_`` are coordinates in feature space. Places on the surface and
    distances from it need nothing else. Points in data space do: they are refused, or approximate on request.
    """

    _stored: ClassVar[Kinds] = {
        **TrainedKernelManifold._stored,
        "span_": nothing | part("Span", rows="latent_.centers"),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **TrainedKernelManifold._constraints,
        "feature_kernel": nothing | one_of((*KERNEL_NAMES, _PRECOMPUTED)) | Constraint(callable, "a function"),
        "feature_params": nothing | instance_of(dict, words="a dict"),
        "preimage": flag,
    }
    feature_kernel: Any
    feature_params: dict[str, Any] | None
    preimage: bool
    span_: Span | None

    def projection_error(self, X: Any) -> float:
        """Mean squared distance from rows to the surface, in feature space where there is a feature kernel.

        Of a row that comes as precomputed kernel values only the distance within the span of the training rows counts,
        since its kernel value with itself is not given.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        float
        """
        table = self._table(X)
        beyond = 0.0 if self.span_ is None else float(self._features().beyond(table).mean())
        return float(self._nearest(table).squared_distance.mean()) + beyond

    # --------------------------------------------------------------------------------------- plumbing

    def _make_features(self, rows: Unique, chosen: IntArray) -> Features:
        """Coordinates that are fitted to the chosen rows."""
        if self.feature_kernel is None:
            return PlainFeatures(np.average(rows.rows, axis=0, weights=rows.weight))
        return kernel_features(self._kernel(), rows.rows[chosen].astype(np.float64), rows.weight[chosen])

    def _kernel(self) -> Any:
        return None if self._is_precomputed() else make_kernel(self.feature_kernel, self.feature_params)

    def _is_precomputed(self) -> bool:
        return isinstance(self.feature_kernel, str) and self.feature_kernel == _PRECOMPUTED

    def _span_attributes(self, features: Features) -> dict[str, Any]:
        """Fitted attributes of the coordinates besides the offset."""
        # The table's own columns count, not those of feature space.
        return {"span_": features.span, "n_features_in_": self.n_features_in_}

    def _features(self) -> Features:
        """The coordinates of a fitted model."""
        return PlainFeatures(self.offset_) if self.span_ is None else KernelFeatures(self._kernel(), self.span_)

    def _data_points(self, Z: FloatArray, points: FloatArray | None = None) -> FloatArray:
        return super()._data_points(Z, points) if self.span_ is None else self._preimage().point(Z)

    def _data_jacobian(self, Z: FloatArray) -> FloatArray:
        return super()._data_jacobian(Z) if self.span_ is None else self._preimage().jacobian(Z)

    def _preimage(self) -> KernelMap:
        """An approximation in data space of a surface in feature space: the same weighted means, of the rows."""
        assert self.span_ is not None
        if self._is_precomputed() or not self.preimage:
            remedy = (
                "give feature_kernel by name or as a function, with preimage=True, for approximate points"
                if self._is_precomputed()
                else Advice("preimage", True, "set {} for approximate ones, weighted means of the training rows")
            )
            raise NoPreimageError(
                Message(
                    f"the surface lives in the feature space of feature_kernel={self.feature_kernel!r}, whose points "
                    "have no exact counterparts in data space",
                    remedy,
                )
            )
        return KernelMap(self._model.centers, self.span_.rows, self._model.weight, self._model.profile)

    def _n_value_columns(self) -> int:
        return int(self.n_features_in_ if self.span_ is None else self.span_.basis.shape[1])

    def _file_requirements(self) -> dict[str, bool]:
        """Requirements on a model read from a file: coordinates in feature space belong to its latent points."""
        named = (self.feature_kernel is None) == (self.span_ is None)
        if named and self.span_ is not None and not self._is_precomputed():
            with explain_misfits("span_, feature_kernel and feature_params"):
                self._features().coordinates(np.zeros((1, self.n_features_in_)))
        return {"a span_ that fits its feature_kernel": named, **super()._file_requirements()}

    def _nearest(self, table: FloatArray) -> Projection:
        return super()._nearest(table if self.span_ is None else self._features().coordinates(table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags
