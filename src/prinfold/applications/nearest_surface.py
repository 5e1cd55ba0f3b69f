"""Classification by the nearest of several surfaces, one for each class."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from prinfold._typing import FloatArray, IntArray
from prinfold.applications.base import map_part
from prinfold.base import class_posteriors
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.exceptions import InvalidDataError, InvalidParameterError, NotAvailableError, warn_caller
from prinfold.files import storable
from prinfold.files.kinds import Kinds, class_names, numbers, sequence_of
from prinfold.gtm.estimator import GTM
from prinfold.validation.failures import name_failures
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, nothing, one_of
from prinfold.validation.tables import check_table, check_weight, forget

_LEAST_CLASS_ROWS = 2
"""Rows of a class from which a surface can be fitted: one row has no extent."""

_SURFACE_METHODS = ("fit", "transform", "project")
"""Methods that a surface must have; ``score_samples`` is needed only with ``by="likelihood"``."""


class SurfaceLocation(NamedTuple):
    """Places of rows: ``labels`` (n,) of the class chosen for each row, and ``latent`` (n, Q) on its surface."""

    labels: Any
    latent: FloatArray


def _require_likelihood(classifier: Any) -> bool:
    if classifier.by != "likelihood":
        raise NotAvailableError(
            f"by={classifier.by!r} gives no probabilities, because distances hold no noise level. Use by='likelihood', "
            "or calibrate the distances with sklearn.calibration.CalibratedClassifierCV"
        )
    return True


@fill_parameter_docs
@storable
class NearestSurfaceClassifier(ClassifierMixin, StoredEstimator):
    """Classify rows by the nearest of several principal manifolds, one fitted to each class.

    Where a class varies along a surface (a thing in all its poses, a process in all its phases), the distance to that
    surface says whether a row belongs to it, and the place on it says what is varied.

    Parameters
    ----------
    estimator : principal manifold, default=None
        Recipe for the surface of a class, of which every class fits a clone; None is :class:`~prinfold.GTM` as it
        comes. Anything with ``fit``, ``transform`` and ``project`` will do.
    by : {"distance", "likelihood"}, default="distance"
        What decides: the squared distance to the nearest point of the surface, ‖x − ``project(x)``‖², smallest; or
        the log-likelihood of the row plus the logarithm of its class's share of the training rows,
        ln p(x | c) + ln P(c), largest, for surfaces with a density (``score_samples``).

    Attributes
    ----------
    surfaces_ : list
        The fitted surfaces, in the order of ``classes_``.
    {classes_}
    class_prior_ : ndarray of shape (C,)
        Their shares P(c) of the training rows, or of the sample weights.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Chang & Ghosh (2001), A unified model for probabilistic principal surfaces, IEEE Transactions on Pattern Analysis
    and Machine Intelligence 23, section 7.

    Examples
    --------
    >>> from prinfold import GTM, NearestSurfaceClassifier, datasets
    >>> seen = datasets.make_poses(200, body=("bottle", "mushroom"), n_pixels=6, rng=0)
    >>> model = NearestSurfaceClassifier(GTM(latent="sphere")).fit(seen.X, seen.labels)
    >>> model.locate(seen.X).latent.shape
    (200, 3)
    """

    _stored: ClassVar[Kinds] = {
        "classes_": class_names("C"),
        "surfaces_": sequence_of(map_part(), "C"),
        "class_prior_": numbers("C", above=0),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "estimator": nothing
        | Constraint(
            lambda v: not isinstance(v, type) and all(hasattr(v, verb) for verb in _SURFACE_METHODS),
            f"an estimator with {', '.join(_SURFACE_METHODS[:-1])} and {_SURFACE_METHODS[-1]}, such as GTM()",
        ),
        "by": one_of(("distance", "likelihood")),
    }

    surfaces_: Any
    classes_: Any
    class_prior_: FloatArray

    def __init__(self, estimator: Any = None, *, by: str = "distance") -> None:
        self.estimator = estimator
        self.by = by

    # ---------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NearestSurfaceClassifier:
        """Fit a surface to the rows of each class.

        Parameters
        ----------
        {X}
        {y.class}
        {sample_weight}

        Returns
        -------
        NearestSurfaceClassifier
        """
        check_parameters(self, self._constraints)
        forget(self)
        recipe = self._recipe(weighted=sample_weight is not None)
        table = check_table(self, X, reset=True)
        given = class_posteriors.labeled_rows(self, table, y, check_weight(sample_weight, table), min_rows=1)
        table, weight, classes, codes = given
        _refuse_small_classes(classes, codes, weight)
        rows = [np.flatnonzero(codes == k) for k in range(len(classes))]
        self.surfaces_ = [
            _fit_class_surface(recipe, table[part], None if weight is None else weight[part], name)
            for part, name in zip(rows, classes.tolist(), strict=True)
        ]
        self.classes_, self.class_prior_ = classes, class_posteriors.class_shares(codes, weight, len(classes))
        return self

    def _recipe(self, *, weighted: bool) -> Any:
        """The estimator to be cloned; raises where it lacks a density or weights that are needed."""
        recipe = GTM() if self.estimator is None else self.estimator
        name = type(recipe).__name__
        if self.by == "likelihood" and not hasattr(recipe, "score_samples"):
            raise InvalidParameterError(
                f"by='likelihood' needs the density of a row, but {name} has no score_samples. Use by='distance'"
            )
        if weighted and not has_fit_parameter(recipe, "sample_weight"):
            raise InvalidParameterError(f"{name} takes no sample_weight. Leave it out")
        return recipe

    # ------------------------------------------------------------------------------------- classifying

    def predict(self, X: Any) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        scores = self._scores(self._table(X))
        return self.classes_[scores.argmax(axis=1)]

    def decision_function(self, X: Any) -> FloatArray:
        """Score of each class: −‖x − project(x)‖², or ln p(x | c) + ln P(c).

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C), or (n,) for two classes
            Of two classes, by how much the second is ahead of the first.
        """
        return class_posteriors.decision(self._scores(self._table(X)))

    @available_if(_require_likelihood)
    @name_failures  # the gate of the class does not see what is behind a condition
    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior probability P(c | x) ∝ p(x | c) P(c) of each class, with ``by="likelihood"`` only.

        It is as good as the densities are: surfaces that follow their training rows too closely are too sure.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C)
        """
        return class_posteriors.posterior(self._scores(self._table(X)))

    def distances(self, X: Any) -> FloatArray:
        """Euclidean distance from each row to the surface of each class, whatever ``by`` says.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C)
        """
        return np.sqrt(self._squared_distances(self._table(X)))

    def locate(self, X: Any) -> SurfaceLocation:
        """Class of each row, and its latent coordinates on the surface of that class (its ``transform``).

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        SurfaceLocation
            ``labels`` (n,) and ``latent`` (n, Q).
        """
        table = self._table(X)
        codes = self._scores(table).argmax(axis=1)
        parts = [(np.flatnonzero(codes == k), surface) for k, surface in enumerate(self.surfaces_)]
        order = np.concatenate([rows for rows, _ in parts])
        latent = np.concatenate([np.asarray(surface.transform(table[rows])) for rows, surface in parts if len(rows)])
        return SurfaceLocation(self.classes_[codes], latent[np.argsort(order)])

    # --------------------------------------------------------------------------------------- plumbing

    def _scores(self, table: FloatArray) -> FloatArray:
        """(n, C) score of each class, the larger the better."""
        if self.by == "distance":
            return -self._squared_distances(table)
        log_density = np.stack([surface.score_samples(table) for surface in self.surfaces_], axis=1)
        return np.asarray(log_density.astype(np.float64) + np.log(self.class_prior_))

    def _squared_distances(self, table: FloatArray) -> FloatArray:
        return np.stack(
            [class_posteriors.squared_gaps(table, surface.project(table)) for surface in self.surfaces_], axis=1
        )

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "class_prior_")


def _refuse_small_classes(classes: Any, codes: IntArray, weight: FloatArray | None) -> None:
    # A weight of 2 is a row given twice; but weights may be scaled to any sum, and small ones take no rows away.
    counts = np.maximum(np.bincount(codes), np.bincount(codes, weight))
    small = [f"{name!r} ({n:g})" for name, n in zip(classes.tolist(), counts, strict=True) if n < _LEAST_CLASS_ROWS]
    if small:
        raise InvalidDataError(
            f"a surface needs at least {_LEAST_CLASS_ROWS} rows, but these classes have fewer (n_samples = "
            f"{counts.min():g}): {', '.join(small)}. Leave them out, join them with others, or give more rows"
        )


def _fit_class_surface(recipe: Any, rows: FloatArray, weight: FloatArray | None, label: Any) -> Any:
    """A clone of the recipe fitted to the rows of a class; its warnings name the class."""
    if weight is not None and len(rows) == 1:  # a single row with the weight of several, written out as two of them
        rows, weight = np.repeat(rows, 2, axis=0), np.repeat(0.5 * weight, 2)
    settings = {} if weight is None else {"sample_weight": weight}
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            surface = clone(recipe).fit(rows, **settings)
    except InvalidDataError as error:
        raise InvalidDataError(f"class {label!r} ({len(rows)} rows): {error}") from error
    for each in heard:
        warn_caller(f"class {label!r}: {each.message}", each.category)
    return surface
