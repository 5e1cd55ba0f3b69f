"""Base of the estimators on top of a map: the map is fitted, and its responsibilities are read in blocks."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from prinfold._typing import FloatArray
from prinfold.applications.landscape_blocks import LabelledBlocks, OnMap
from prinfold.applications.landscape_sums import Responsibilities, blocks_of
from prinfold.base.block_surveys import refuse_beside
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files.kinds import Kind, Kinds, Sizes, part
from prinfold.gtm.estimator import GTM
from prinfold.rows.blocks import Blocks
from prinfold.validation.dask_verbs import is_dask
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import column_names
from prinfold.validation.settings import Constraint, check_parameters, nothing, real
from prinfold.validation.tables import check_frame, check_table, check_weight, forget, rows_of

_MAP_METHODS = ("fit", "transform", "responsibilities", "score_samples")
"""Methods that a map must have."""


def map_constraint(*verbs: str) -> Constraint:
    """Constraint on a parameter: a map with further methods, or None."""
    every = (*_MAP_METHODS, *verbs)
    return nothing | Constraint(
        lambda v: not isinstance(v, type) and all(hasattr(v, verb) for verb in every),
        f"an estimator with {', '.join(every[:-1])} and {every[-1]}, such as GTM() or PPS()",
    )


def fitted_map(recipe: Any, table: Any, weight: FloatArray | None) -> Any:
    """A clone of the recipe fitted to the rows; one that is frozen is taken as it is."""
    recipe = GTM() if recipe is None else recipe
    if isinstance(recipe, FrozenEstimator):
        return without_column_names(recipe.estimator)
    if weight is None:
        return clone(recipe).fit(table)
    if not has_fit_parameter(recipe, "sample_weight"):
        raise InvalidParameterError(f"{type(recipe).__name__} takes no sample_weight. Leave it out")
    return clone(recipe).fit(table, sample_weight=weight)


def without_column_names(surface: Any) -> Any:
    """A copy of a fitted map without column names, which its owner has checked already."""
    check_is_fitted(surface)
    if column_names(surface) is None or accepts("frames", surface):
        return surface
    bare = copy(surface)
    del bare.feature_names_in_
    return bare


def refuse_other_columns(recipe: Any, owner: Any) -> None:
    """Raise where a frozen map was fitted to other columns than those its owner has been given."""
    inner = recipe.estimator if isinstance(recipe, FrozenEstimator) else None
    names, given = (column_names(each) for each in (inner, owner))
    if names is not None and given is not None and list(names) != list(given):
        raise InvalidDataError(
            f"the map was fitted to the columns {', '.join(map(str, names[:6]))}{', …' * (len(names) > 6)}, but got "
            f"{', '.join(map(str, given[:6]))}{', …' * (len(given) > 6)}; give the same columns in the same order"
        )


def map_part(*verbs: str) -> Kind:
    """A part of a file that is a fitted map of as many columns, with those verbs."""

    def test(value: Any, sizes: Sizes) -> bool:
        found = isinstance(value, PrincipalManifold) and all(hasattr(value, each) for each in ("latent_", *verbs))
        return found and sizes.agree(("n_features_in_",), (value.n_features_in_,))

    return Kind(test, lambda sizes: f"a fitted map of {sizes.known('n_features_in_')} columns")


def accepts(what: str, recipe: Any) -> bool:
    """Whether an estimator accepts ``"sparse"`` tables, ``"missing"`` cells, or ``"frames"`` of any column kinds."""
    inner = recipe.estimator if isinstance(recipe, FrozenEstimator) else GTM() if recipe is None else recipe
    return bool(getattr(inner, f"_accept_{what}", False))


def row_responsibilities(surface: Any, table: Any) -> Responsibilities:
    """The function from a slice of the rows to their responsibilities (b, K)."""
    return lambda part: np.asarray(surface.responsibilities(rows_of(table, part)), dtype=np.float64)


@fill_parameter_docs
class MapLandscape(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StoredEstimator):
    """Base of classifier and regressor: a map, and a landscape of classes or targets at its nodes."""

    _stored: ClassVar[Kinds] = {
        "surface_": map_part("responsibilities"),
        "landscape_": part("ClassLandscape", "PropertyLandscape"),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "estimator": map_constraint(),
        "pseudo_count": real(0),
        "min_mass": real(0),
    }
    estimator: Any
    surface_: Any
    landscape_: Any
    n_features_in_: int

    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of rows on the map: its own ``transform``.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return np.asarray(self.surface_.transform(self._table(X)))

    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihood of rows under the map: where it is low, the map was made for other rows than these.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.asarray(self.surface_.score_samples(self._table(X)))

    def support(self, X: Any) -> FloatArray:
        """Mass of training rows behind each prediction: Σ_k r_k m_k over the nodes of the row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,) or (n, m)
        """
        return self._mix_by_responsibility(X, lambda share: np.asarray(share @ self.landscape_.mass))

    # --------------------------------------------------------------------------------------- plumbing

    def _check_fit_input(self, X: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray | None]:
        """Check parameters and forget an earlier fit; returns the checked rows and weights."""
        check_parameters(self, self._constraints)
        forget(self)
        table = self._check_rows(X, self.estimator, reset=True, min_rows=2)
        refuse_other_columns(self.estimator, self)
        return table, check_weight(sample_weight, table)

    def _check_blocks(self, X: Any, y: Any, sample_weight: Any, *, several: bool) -> LabelledBlocks:
        """The same of a source that is read block by block, of which ``y`` names the column to be predicted."""
        check_parameters(self, self._constraints)
        forget(self)
        refuse_beside(sample_weight)
        if is_dask(X) and is_dask(y):
            blocks = LabelledBlocks.of_collections(X, y, several=several)
        else:
            blocks = LabelledBlocks.of(X if isinstance(X, Blocks) else Blocks(X), y, several=several)
        columns = blocks.features.columns or ()
        self.n_features_in_ = len(columns)
        if all(isinstance(each, str) for each in columns):
            self.feature_names_in_ = np.asarray(columns, dtype=object)
        refuse_other_columns(self.estimator, self)
        return blocks

    def _fit_map_to(self, blocks: LabelledBlocks) -> OnMap:
        """The map fitted to the columns that are not to be predicted."""
        surface = without_column_names(fitted_map(self.estimator, blocks.features, None))
        return OnMap.of(surface, blocks.features, frames=accepts("frames", surface))

    @property
    def _accept_frames(self) -> bool:
        return accepts("frames", getattr(self, "surface_", self.estimator))

    def _some_row(self) -> Any:
        """A row that the model may be asked about."""
        return self.surface_._some_row()

    def _table(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._check_rows(X, self.surface_, reset=False)

    def _check_rows(self, X: Any, surface: Any, **options: Any) -> FloatArray:
        """Checked rows, in a form that the map accepts."""
        if accepts("frames", surface):
            return cast(FloatArray, check_frame(self, X, reset=options["reset"]))
        sparse, missing = (accepts(what, surface) for what in ("sparse", "missing"))
        return check_table(self, X, accept_sparse=sparse, accept_missing=missing, **options)

    def _mix_by_responsibility(self, X: Any, mix: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """``mix`` applied to the responsibilities of rows, in blocks."""
        table = self._table(X)
        parts, ask = (
            blocks_of(table.shape[0], self.surface_.latent_.n_nodes),
            row_responsibilities(self.surface_, table),
        )
        return np.concatenate([mix(ask(part)) for part in parts])

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)

    @property
    def _n_features_out(self) -> int:
        return int(self.surface_.latent_.n_columns)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "landscape_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = accepts("sparse", self.estimator)
        tags.input_tags.allow_nan = accepts("missing", self.estimator)
        return tags
