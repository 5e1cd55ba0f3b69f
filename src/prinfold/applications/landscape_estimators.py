"""Classification and regression by landscapes: means over the training rows at each node of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.applications import landscapes
from prinfold.applications.base import MapLandscape, fitted_map, row_responsibilities
from prinfold.applications.landscape_blocks import (
    ClassesAtNodes,
    FoundClasses,
    LabelledBlocks,
    find_classes,
    property_landscape_of_blocks,
)
from prinfold.base.class_posteriors import class_priors, class_shares, labeled_rows
from prinfold.base.file_requirements import require_parts
from prinfold.files import storable
from prinfold.files.kinds import Kinds, class_names, numbers, part
from prinfold.rows.blocks import Blocks
from prinfold.validation.dask_verbs import is_dask
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, integer, one_of, real
from prinfold.validation.tables import check_targets, rows_of, rows_with_weight


@fill_parameter_docs
@storable
class GTMClassifier(ClassifierMixin, MapLandscape):
    """Classify rows by the classes of the training rows at their place on a map.

    A map is fitted to all rows, without their classes. At each node the classes of the rows that lie there, by their
    responsibilities r, make a probability P(c | k), and a row gets P(c | x) = Σ_k r_k P(c | k). So one picture, the
    class landscape, shows all that the classifier knows (:func:`prinfold.plot.landscape`).

    Parameters
    ----------
    estimator : GTM, PPS or other map with responsibilities, default=None
        Recipe for the map, of which a clone is fitted; None is :class:`~prinfold.GTM` as it comes, and
        :class:`~prinfold.MixedGTM` takes frames of any columns. A fitted map within scikit-learn's ``FrozenEstimator``
        is used as it is, so that rows without a class may shape it too.
    priors : {"empirical", "balanced"} or list of C floats, default="empirical"
        Probabilities P(c) of the classes: their shares of the training rows (or of the sample weights), all the same,
        or given, in the order of ``classes_`` and adding up to 1. Rows of a class count for P(c) over its share.
    pseudo_count : float, default=0.001
        Rows with the classes' prior probabilities that are added to each node, so that few rows make no certainty.
        0 adds none: nodes without any row then have no say.
    {min_mass}

    Attributes
    ----------
    {surface_}
    landscape_ : ClassLandscape
        ``probability`` (K, C) with its standard ``error``, ``mass`` (K,), ``count`` (K,) of effective rows, and which
        nodes are ``empty`` (K,).
    {classes_}
    class_prior_ : ndarray of shape (C,)
        Their probabilities P(c).
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Gaspar, Marcou, Horvath, Arault, Lozano, Vayer & Varnek (2013), Generative topographic mapping-based classification
    models and their applicability domain, Journal of Chemical Information and Modeling 53.

    Examples
    --------
    >>> from prinfold import GTM, GTMClassifier, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTMClassifier(GTM(nodes=12, basis=5)).fit(data.X, data.names)
    >>> model.predict_proba(data.X).shape
    (300, 3)
    """

    _stored: ClassVar[Kinds] = {
        **MapLandscape._stored,
        "landscape_": part("ClassLandscape", mass="surface_.latent_.n_nodes", classes="C"),
        "classes_": class_names("C"),
        "class_prior_": numbers("C", least=0),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        **MapLandscape._constraints,
        "priors": one_of(("empirical", "balanced"))
        | Constraint(
            lambda v: isinstance(v, list | tuple | np.ndarray) and np.ndim(v) == 1 and all(map(real(0).test, v)),
            "a list of probabilities (one for each class)",
        ),
    }
    classes_: Any
    class_prior_: FloatArray

    def __init__(
        self,
        estimator: Any = None,
        *,
        priors: str | Sequence[float] = "empirical",
        pseudo_count: float = 0.001,
        min_mass: float = 0.1,
    ) -> None:
        self.estimator = estimator
        self.priors = priors
        self.pseudo_count = pseudo_count
        self.min_mass = min_mass

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map to the rows, and the landscape to their classes.

        Parameters
        ----------
        X : array-like of shape (n, D), Blocks, Dask array or Dask frame
            Rows of numbers. Of a table that is read block by block, or lies in partitions, only sums are kept.
        y : array-like of shape (n,), str or int
            The class of each row, as numbers or text. With Blocks and Dask collections the name or number of the column
            that holds it; with Dask collections also a Dask array or series that is cut in the same places.
        {sample_weight}

        Returns
        -------
        GTMClassifier
        """
        if isinstance(X, Blocks) or is_dask(X):
            return self._fit_blocks(self._check_blocks(X, y, sample_weight, several=False))
        given, given_weight = self._check_fit_input(X, sample_weight)
        table, weight, classes, codes = labeled_rows(self, given, y, given_weight, min_rows=2)
        prior = class_priors(self.priors, class_shares(codes, weight, len(classes)))
        surface = fitted_map(self.estimator, table, weight)
        self.landscape_ = landscapes.class_landscape(
            row_responsibilities(surface, table),
            surface.latent_.n_nodes,
            codes,
            classes,
            weight,
            prior=prior,
            pseudo_count=self.pseudo_count,
            min_mass=self.min_mass,
        )
        self.surface_, self.classes_, self.class_prior_ = surface, classes, prior
        return self

    def _fit_blocks(self, blocks: LabelledBlocks) -> Self:
        """Three kinds of passes: which classes there are, the map, and the classes at its nodes."""
        found: FoundClasses = blocks.sum(find_classes)
        share = found.mass / found.mass.sum()
        prior = class_priors(self.priors, share)
        on = self._fit_map_to(blocks)
        mass, squares = blocks.sum(ClassesAtNodes(on, found.labels)).arrays
        settings = float(self.pseudo_count), float(self.min_mass)
        self.landscape_ = landscapes.ClassLandscape(found.labels, prior, mass, squares, *settings)
        self.surface_, self.classes_, self.class_prior_ = on.surface, found.labels, prior
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability Σ_k r_k P(c | k) of each class.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C)
        """
        check_is_fitted(self)
        return self._mix_by_responsibility(X, self.landscape_.probabilities)

    def _restore(self) -> None:
        super()._restore()
        require_parts({"a landscape_ of its classes_": np.array_equal(self.landscape_.classes, self.classes_)})


@fill_parameter_docs
@storable
class GTMRegressor(RegressorMixin, MapLandscape):
    """Predict numbers of rows by those of the training rows at their place on a map.

    A map is fitted to all rows, without their targets. At each node the targets of the rows that lie there, by their
    responsibilities r, make a mean and a spread, and a row gets Σ_k r_k mean_k. So one picture, the property landscape,
    shows all that the regressor knows (:func:`prinfold.plot.landscape`).

    Parameters
    ----------
    estimator : GTM, PPS or other map with responsibilities, default=None
        Recipe for the map, of which a clone is fitted; None is :class:`~prinfold.GTM` as it comes, and
        :class:`~prinfold.MixedGTM` takes frames of any columns. A fitted map within scikit-learn's ``FrozenEstimator``
        is used as it is.
    pseudo_count : float, default=0.001
        Rows with the overall mean and spread that are added to each node. 0 adds none: nodes without any row then have
        no say.
    {min_mass}

    Attributes
    ----------
    {surface_}
    landscape_ : PropertyLandscape
        ``mean`` (K, m) with its standard ``error``, ``spread`` (K, m) between rows, ``mass`` (K, m), ``count`` (K, m)
        of effective rows, and which nodes are ``empty`` (K, m).
    n_outputs_ : int
        Targets m; 0 where y had one dimension.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Gaspar, Baskin, Marcou, Horvath & Varnek (2015), GTM-based QSAR models and their applicability domains, Molecular
    Informatics 34.

    Examples
    --------
    >>> from prinfold import GTM, GTMRegressor, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTMRegressor(GTM(nodes=12, basis=5)).fit(data.X[:, 1:], data.X[:, 0])
    >>> mean, deviation = model.predict(data.X[:, 1:], return_std=True)
    """

    _stored: ClassVar[Kinds] = {
        **MapLandscape._stored,
        "n_outputs_": integer(0),
        "landscape_": part("PropertyLandscape", mass="surface_.latent_.n_nodes"),
    }
    n_outputs_: int

    def __init__(self, estimator: Any = None, *, pseudo_count: float = 0.001, min_mass: float = 0.1) -> None:
        self.estimator = estimator
        self.pseudo_count = pseudo_count
        self.min_mass = min_mass

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map to the rows, and the landscape to their targets.

        Parameters
        ----------
        X : array-like of shape (n, D), Blocks, Dask array or Dask frame
            Rows of numbers. Of a table that is read block by block, or lies in partitions, only sums are kept.
        y : array-like of shape (n,) or (n, m), str, int or list of those
            Targets; NaN is a target that is not known, of a row that shapes the map all the same. With Blocks and Dask
            collections the name or number of the column that holds them, or a list of such; with Dask collections also
            a Dask array, series or frame that is cut in the same places.
        {sample_weight}

        Returns
        -------
        GTMRegressor
        """
        if isinstance(X, Blocks) or is_dask(X):
            return self._fit_blocks(self._check_blocks(X, y, sample_weight, several=True))
        table, weight = self._check_fit_input(X, sample_weight)
        targets = check_targets(self, y, table)
        kept = rows_with_weight(weight, min_rows=2)
        if weight is not None and kept is not None:
            table, weight = rows_of(table, kept), weight[kept]
            targets = check_targets(self, targets[kept], table)
        surface = fitted_map(self.estimator, table, weight)
        self.landscape_ = landscapes.property_landscape(
            row_responsibilities(surface, table),
            surface.latent_.n_nodes,
            targets.reshape(len(targets), -1),
            weight,
            pseudo_count=self.pseudo_count,
            min_mass=self.min_mass,
        )
        self.surface_, self.n_outputs_ = surface, targets.shape[1] if targets.ndim > 1 else 0
        return self

    def _fit_blocks(self, blocks: LabelledBlocks) -> Self:
        on = self._fit_map_to(blocks)
        self.landscape_ = property_landscape_of_blocks(blocks, on, self.pseudo_count, self.min_mass)
        self.surface_, self.n_outputs_ = on.surface, blocks.n_columns
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of the target of each row, and its standard deviation if asked for.

        Parameters
        ----------
        X : array-like of shape (n, D)
        return_std : bool, default=False
            Whether the standard deviation of a row's target about the mean is returned too. It is the error that
            training rows at the same nodes have when each is predicted without itself.

        Returns
        -------
        ndarray of shape (n,) or (n, m), or a pair of them
        """
        check_is_fitted(self)
        found = self.landscape_
        if not return_std:
            return self._as_given(self._mix_by_responsibility(X, found.predictions))
        both = self._mix_by_responsibility(
            X, lambda share: np.stack([found.predictions(share), found.deviations(share)], axis=1)
        )
        return self._as_given(both[:, 0]), self._as_given(both[:, 1])

    def _as_given(self, values: FloatArray) -> FloatArray:
        return values if self.n_outputs_ else values[:, 0]

    def support(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._as_given(super().support(X))

    def _restore(self) -> None:
        super()._restore()
        require_parts({"a landscape_ of n_outputs_ targets": len(self.landscape_.scale) == max(self.n_outputs_, 1)})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # Of ten columns without structure a map of two dimensions keeps too little for the R² of 0.5 that is asked for.
        tags.regressor_tags.poor_score = True
        return tags
