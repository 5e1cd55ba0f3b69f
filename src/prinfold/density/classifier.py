"""Classification by kernel densities, one for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from prinfold._typing import FloatArray
from prinfold.base.class_posteriors import class_priors, class_shares, labeled_rows
from prinfold.base.file_requirements import require_parts
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.density.class_densities import ClassRows, class_bandwidths, class_rows, log_joint, log_posterior
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import ANY, Kinds, class_names, numbers, sequence_of
from prinfold.numerics.radial_kernels import PROFILES
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters, flag, one_of, real
from prinfold.validation.tables import check_table, check_weight, forget

_LIST = (list, tuple, np.ndarray)


def _numbers(minimum: float, *, above: bool, words: str) -> Constraint:
    """A list of numbers, one for each class; ``fit`` compares their number with that of the classes."""
    each = real(minimum, above=above)
    return Constraint(lambda v: isinstance(v, _LIST) and np.ndim(v) == 1 and all(map(each.test, v)), words)


@fill_parameter_docs
@storable
class KernelDensityClassifier(ClassifierMixin, StoredEstimator):
    """Classify rows by the density of kernels on the training rows of each class.

    A row goes to the class with the largest P(c) p(x | c), where p(x | c) = Σ_j w_j k(‖x − x_j‖²/h²) / (h^D V Σ_j w_j)
    sums over the rows of the class. With narrow kernels this is the nearest-neighbour rule, and with wide ones that of
    the nearest mean; by default the bandwidth has the largest leave-one-out likelihood of the rows within their
    classes.

    Parameters
    ----------
    kernel : {"gaussian", "quartic", "triweight"}, default="gaussian"
        exp(−s/2), (1 − s)² or (1 − s)³ of the squared distance s in bandwidths; the last two are 0 from one
        bandwidth on.
    bandwidth : "likelihood", float or list of C floats, default="likelihood"
        The bandwidth h, in units of the columns: by leave-one-out likelihood of the training rows, or given, for all
        classes or for each in the order of ``classes_``.
    per_class : bool, default=False
        Whether ``bandwidth="likelihood"`` finds one for each class rather than one for all.
    priors : {"empirical", "uniform"} or list of C floats, default="empirical"
        Probabilities P(c) of the classes: their shares of the training rows (or of the sample weights), all the same,
        or given, in the order of ``classes_`` and adding up to 1.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (C,)
        The bandwidth of each class.
    rows_ : list of ndarrays of shape (n_c, D)
        The different training rows of each class, sorted, in the order of ``classes_``.
    row_weights_ : list of ndarrays of shape (n_c,)
        How often each of them was given, or the sum of its sample weights.
    {classes_}
    class_prior_ : ndarray of shape (C,)
        Their probabilities P(c).
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    Where no kernel of any class reaches, which happens with compact kernels only, or at distances whose squares
    overflow, a row goes to the class of the nearest training row, with probability 1.

    With more than 2900 rows in a class the likelihood is that of some of them, which are spread evenly, given all.

    References
    ----------
    Meinicke, Klanke, Memisevic & Ritter (2005), Principal surfaces from unsupervised kernel regression, IEEE
    Transactions on Pattern Analysis and Machine Intelligence 27, section 4.3.

    Examples
    --------
    >>> from prinfold import KernelDensityClassifier, datasets
    >>> iris = datasets.load_iris()
    >>> model = KernelDensityClassifier().fit(iris.X, iris.names)
    >>> model.predict(iris.X[:2]).tolist()
    ['setosa', 'setosa']
    """

    _stored: ClassVar[Kinds] = {
        "classes_": class_names("C"),
        "bandwidth_": numbers("C", above=0),
        "rows_": sequence_of(numbers(ANY, "n_features_in_"), "C"),
        "row_weights_": sequence_of(numbers(ANY, above=0), "C"),
        "class_prior_": numbers("C", least=0),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "kernel": one_of(PROFILES),
        "bandwidth": one_of(("likelihood",))
        | real(0, above=True)
        | _numbers(0, above=True, words="a list of such numbers (one for each class)"),
        "per_class": flag,
        "priors": one_of(("empirical", "uniform"))
        | _numbers(0, above=False, words="a list of probabilities (one for each class)"),
    }

    bandwidth_: FloatArray
    rows_: list[FloatArray]
    row_weights_: list[FloatArray]
    classes_: Any
    class_prior_: FloatArray

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        bandwidth: str | float | Sequence[float] = "likelihood",
        per_class: bool = False,
        priors: str | Sequence[float] = "empirical",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.per_class = per_class
        self.priors = priors

    # ---------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelDensityClassifier:
        """Remember the rows of each class, and find the bandwidth.

        Parameters
        ----------
        {X}
        {y.class}
        {sample_weight}

        Returns
        -------
        KernelDensityClassifier
        """
        check_parameters(self, self._constraints)
        forget(self)
        table = check_table(self, X, reset=True)
        given = labeled_rows(self, table, y, check_weight(sample_weight, table), min_rows=1)
        table, weight, classes, codes = given
        prior = class_priors(self.priors, class_shares(codes, weight, len(classes)))
        groups = class_rows(table, codes, weight)
        self.bandwidth_ = self._bandwidths(groups)
        self.rows_, self.row_weights_ = [each.rows for each in groups], [each.weight for each in groups]
        self.classes_, self.class_prior_ = classes, prior
        return self

    def _bandwidths(self, groups: Sequence[ClassRows]) -> FloatArray:
        if isinstance(self.bandwidth, str):
            return class_bandwidths(groups, PROFILES[self.kernel], bool(self.per_class))
        if np.ndim(self.bandwidth) and len(np.asarray(self.bandwidth)) != len(groups):
            raise InvalidParameterError(
                f"bandwidth must be a number or have one for each of the {len(groups)} classes, got {self.bandwidth!r}"
            )
        return np.broadcast_to(np.asarray(self.bandwidth, dtype=np.float64), len(groups)).copy()

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
        joint = self._log_joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior probability P(c | x) ∝ p(x | c) P(c) of each class.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C)
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the posterior probability of each class; −inf for a class that a compact kernel rules out.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, C)
        """
        return log_posterior(self._log_joint(X))

    # --------------------------------------------------------------------------------------- plumbing

    def _log_joint(self, X: Any) -> FloatArray:
        table = self._table(X)
        groups = [ClassRows(*each) for each in zip(self.rows_, self.row_weights_, strict=True)]
        return log_joint(table, groups, self.bandwidth_, self.class_prior_, PROFILES[self.kernel])

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        suited = all(len(rows) == len(weight) > 0 for rows, weight in zip(self.rows_, self.row_weights_, strict=True))
        require_parts({"a class_prior_ above zero": bool(self.class_prior_.any()), "row_weights_ for rows_": suited})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "class_prior_")
