"""The semi-linear model: a curved surface with straight directions beside it, and coordinates along both."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.file_requirements import require_parts
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, part
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.estimator import GTM
from prinfold.gtm.noise.recipes import AXES, LowRankNoise
from prinfold.rows.blocks import Blocks
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_containers, refuse_other_names
from prinfold.validation.settings import Constraint, check_parameters, instance_of, integer, nothing
from prinfold.validation.tables import check_errors, check_latent, check_table, forget


def _of_gtm(name: str, words: str) -> Any:
    """A fitted attribute that is that of the inner GTM."""
    return property(lambda self: getattr(self._fitted, name), doc=words)


@fill_parameter_docs
@storable
class SemiLinearGTM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StoredEstimator):
    """A GTM with straight directions beside its surface, whose coordinates follow the latent ones.

    A row is t = y(z) + V f + e: curved along the few latent coordinates z, for which there are nodes, and straight
    along f ~ N(0, I), which needs none. It is a GTM with :class:`~prinfold.LowRankNoise` that gives both z and f.

    Parameters
    ----------
    gtm : GTM, default=None
        Recipe for the curved part, of which a clone is fitted; its noise must be left as it comes. None is
        ``GTM(1)``, a curve.
    n_linear : int, default=1
        Number of straight directions.
    axes : tuple of int, default=None
        Principal axes, 0 being the longest, in which the surface begins; None takes those that do best, see
        :class:`~prinfold.LowRankNoise`.

    Attributes
    ----------
    gtm_ : GTM
        The fitted model, with all verbs of its surface: the rows where f is 0.
    linear_axes_ : ndarray of shape (n_linear, D)
        Vᵀ, the straight directions, longest first, each as long as rows scatter along it.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University, section 6.4.

    Examples
    --------
    >>> from prinfold import GTM, SemiLinearGTM, datasets
    >>> X = datasets.make_semilinear_sheet(noise=0.05, rng=0).X
    >>> model = SemiLinearGTM(GTM(1, nodes=20)).fit(X)
    >>> model.transform(X).shape
    (400, 2)
    """

    _follows_far_rows: ClassVar[bool] = True
    _accept_missing: ClassVar[bool] = True
    _stored: ClassVar[Kinds] = {"gtm_": part("GTM", n_features_in_="n_features_in_")}
    _constraints: ClassVar[dict[str, Constraint]] = {
        "gtm": nothing | instance_of(GTM, words="a GTM"),
        "n_linear": integer(1),
        "axes": AXES,
    }
    gtm_: GTM

    def __init__(self, gtm: Any = None, *, n_linear: int = 1, axes: tuple[int, ...] | None = None) -> None:
        self.gtm = gtm
        self.n_linear = n_linear
        self.axes = axes

    # ---------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> SemiLinearGTM:
        """Fit surface and directions by expectation maximisation.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
            Rows of numbers; cells that are missing are NaN. :class:`~prinfold.Blocks` are read once for each iteration.
        y : ignored
        {sample_weight}
        {errors}

        Returns
        -------
        SemiLinearGTM
        """
        check_parameters(self, self._constraints)
        forget(self)
        recipe = GTM(1) if self.gtm is None else clone(self.gtm)
        if recipe.noise != "isotropic":
            raise InvalidParameterError(
                f"gtm has noise={recipe.noise!r}, but the semi-linear model has a noise of its own; "
                "leave it as it comes"
            )
        noise = LowRankNoise(self.n_linear, self.axes)
        if isinstance(X, Blocks):
            self._take_over(recipe.set_params(noise=noise).fit(X, sample_weight=sample_weight, errors=errors))
            return self
        table = check_table(self, X, reset=True, min_rows=2, accept_missing=True)
        known = check_errors(errors, table, self)  # here, where columns have names
        self.gtm_ = recipe.set_params(noise=noise).fit(table, sample_weight=sample_weight, errors=known)
        return self

    n_iter_ = _of_gtm("n_iter_", "Iterations done.")
    converged_ = _of_gtm("converged_", "Whether the objective settled.")
    stop_reason_ = _of_gtm("stop_reason_", "Why training ended; its value is a sentence.")
    history_ = _of_gtm("history_", "History of training, as the GTM records it.")
    noise_variance_ = _of_gtm("noise_variance_", "Variance of the noise beside the straight directions.")

    @property
    def _fitted(self) -> GTM:
        check_is_fitted(self, "gtm_")
        return self.gtm_

    # -------------------------------------------------------------------------------- between spaces

    def transform(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Posterior means of the latent coordinates z, then of the linear ones f.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n, Q + n_linear)
            Linear coordinates are in units of their standard deviation.
        """
        table = self._table(X)
        model, rows = self.gtm_, self.gtm_._rows(table, check_errors(errors, table, self))
        linear = model._ask_rows(posteriors.factor_means, rows)
        return np.concatenate([model._ask_rows(posteriors.posterior_mean, rows), linear], axis=1)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> FloatArray:
        """Fit the model, then give both kinds of coordinates.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored
        {sample_weight.of_fit}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q + n_linear)
        """
        if isinstance(X, Blocks):
            refuse_containers(X)  # before a long fit rather than after it
        return self.fit(X, y, sample_weight, errors=errors).transform(X, errors=errors)

    def inverse_transform(self, Z: Any, *, extrapolate: bool = False) -> FloatArray:
        """Rows at coordinates: y(z) + V f.

        Parameters
        ----------
        Z : array-like of shape (n, Q + n_linear)
            Latent coordinates, then linear ones.
        extrapolate : bool, default=False
            Whether latent coordinates outside their domain are allowed; linear ones have no bounds.

        Returns
        -------
        ndarray of shape (n, D)
        """
        check_is_fitted(self)
        Q = self.gtm_.latent_.n_columns
        both = check_latent(Z, self._n_features_out)
        return self.gtm_.inverse_transform(both[:, :Q], extrapolate=extrapolate) + both[:, Q:] @ self.linear_axes_

    def reconstruct(self, X: Any) -> FloatArray:
        """``inverse_transform(transform(X))``: the model's own round trip.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, D)
        """
        table = self._table(X)
        both, Q = np.asarray(self.transform(table), dtype=np.float64), self.gtm_.latent_.n_columns
        both[:, :Q] = self.gtm_.latent_.domain.retract(both[:, :Q])
        return self.inverse_transform(both).astype(table.dtype, copy=False)

    # -------------------------------------------------------------------------------- as a density

    def score_samples(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n,)
        """
        table = self._table(X)
        return self.gtm_.score_samples(table, errors=check_errors(errors, table, self))

    def score(self, X: Any, y: Any = None, *, errors: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
        y : ignored
        {errors}

        Returns
        -------
        float
        """
        if isinstance(X, Blocks):
            check_is_fitted(self)
            refuse_other_names(self, X.names)
            return self.gtm_.score(X, errors=errors)
        return float(np.mean(self.score_samples(X, errors=errors), dtype=np.float64))

    def impute(self, X: Any, *, errors: Any = None, return_std: bool = False) -> Any:
        """Rows with missing cells filled in, as :meth:`GTM.impute` does.

        Parameters
        ----------
        {X.gaps}
        {errors}
        {return_std}

        Returns
        -------
        ndarray of shape (n, D)
            The rows; what was measured stays as it is.
        ndarray of shape (n, D)
            Standard deviation of each cell about its expectation. Only with ``return_std``.
        """
        table = self._table(X)
        return self.gtm_.impute(table, errors=check_errors(errors, table, self), return_std=return_std)

    def sample(self, n: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Rows drawn from the density.

        Parameters
        ----------
        {n}
        {random_state}

        Returns
        -------
        ndarray of shape (n, D)
        """
        check_is_fitted(self)
        return self.gtm_.sample(n, random_state=random_state)

    # --------------------------------------------------------------------------------------- plumbing

    @property
    def linear_axes_(self) -> FloatArray:
        """(n_linear, D) Vᵀ."""
        check_is_fitted(self)
        return np.asarray(self.gtm_.noise_parameters_["loadings"])

    def _take_over(self, fitted: GTM) -> None:
        """Keep a fitted inner model without names of columns: this model keeps and checks them itself."""
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
            del fitted.feature_names_in_
        self.n_features_in_, self.gtm_ = fitted.n_features_in_, fitted

    @property
    def _n_features_out(self) -> int:
        return self.gtm_.latent_.n_columns + len(self.linear_axes_)

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts({"a gtm_ with straight directions": "loadings" in self.gtm_.noise_parameters_})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "gtm_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags
