"""A generative topographic mapping of tables whose columns are numbers, levels and counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.file_requirements import explain_misfits, require_parts
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part
from prinfold.geometry.folds import Folds, find_folds
from prinfold.gtm import model as gtm
from prinfold.gtm.fitting import choose_penalty, column_spread, noise_attributes, plain_recipe, table_mean
from prinfold.gtm.gaussian_process_training import has_open_numbers
from prinfold.gtm.latent_grid_model import LatentGridModel
from prinfold.gtm.mixed.column_kinds import Columns
from prinfold.gtm.mixed.column_layout import KINDS
from prinfold.gtm.mixed.column_nodes import MixedNodes, mean_jacobian, means
from prinfold.gtm.mixed.column_noise import MixedNoise, MixedParameters
from prinfold.gtm.mixed.starts import inform_noise, link_start
from prinfold.gtm.mixed.tables import MixedTables
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.noise.recipes import NOISE_PARAMETERS, ColumnSpread, spread_of_model
from prinfold.gtm.recipe import Recipe, TrainingJob
from prinfold.rows.rows import Rows, dense
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, instance_of, integer, nothing, one_of, real
from prinfold.validation.tables import has_gaps

_kind = one_of(tuple(KINDS))
_of_columns = Constraint(
    lambda v: (
        isinstance(v, dict)
        and all(
            isinstance(key, str | int) and not isinstance(key, bool) and _kind.test(kind) for key, kind in v.items()
        )
    ),
    f"a dict from names or numbers of columns to {_kind.words}",
)


@fill_parameter_docs
@storable
class MixedGTM(MixedTables):
    """Generative topographic mapping of a table whose columns are numbers, levels and counts, with gaps or without.

    Each column has, at each node of a latent grid, the density of its kind: Gaussian with a variance of its own,
    Bernoulli, categorical, Poisson or negative binomial. What they depend on, the linear predictors, are smooth
    functions of latent space; generalised expectation maximisation finds them.

    Parameters
    ----------
    {n_components}
    columns : str or dict, default="auto"
        What the columns are: ``"auto"`` tells by their types and values, as ``columns_`` then says with the reasons;
        ``"gaussian"``, ``"bernoulli"``, ``"categorical"``, ``"poisson"`` or ``"negative_binomial"`` says it of all; a
        dict from names or numbers of columns to those says it of some.
    size_factors : str or int, default=None
        How much was looked at for the counts of a row, by which their rates are multiplied: the name or number of a
        column that holds it, ``"auto"`` for the total count of the row beside what is expected of its
        columns, None for the same everywhere.
    dispersion : str or float, default="column"
        Dispersion r of negative binomial counts, whose variance is μ + μ²/r: ``"column"`` finds one for each column,
        ``"shared"`` one for all; a number is kept.
    unseen : {"error", "missing"}, default="error"
        What a level is after the fit that was not there in it.
    {nodes.doubled}
    {basis}
    {width}
    {latent}
    regularization : float, default=None
        Constant weight penalty λ; larger is smoother. None is 0.1, or 0.3 for a net
        (:class:`~prinfold.ElasticNetBasis`), unless ``prior_precision`` is given. Predictors of levels and counts are
        penalised as if their noise were 1.
    prior_precision : float, default=None
        Precision α of a Gaussian prior on the weights, so that λ = α/β follows the noise; it has
        the units of the columns to the power −2.
    {penalize_bias}
    noise_floor : float, default=1e-6
        Smallest noise variance of a Gaussian column, relative to its variance.
    {init.maps}
    {max_iter, default=200}
    {tol, default=1e-4}
    {relaxation}
    {random_state.starts}
    {verbose}

    Attributes
    ----------
    columns_ : Columns
        What each column was taken for, with its levels and the reason.
    {latent_}
    {basis_}
    weights_ : ndarray of shape (M, D')
        Weights of the basis functions, for each linear predictor: one for a column, of a categorical one as many as
        levels.
    offset_ : ndarray of shape (D,)
        Mean of the training rows in Gaussian columns, about which their predictors are; 0 in others.
    noise_variance_ : float
        Mean variance of the noise in Gaussian columns; 1 where there are none.
    noise_parameters_ : dict
        ``variances`` of the Gaussian columns, ``dispersions`` of the negative binomial ones, and with
        ``size_factors="auto"`` the counts expected of each column, ``reference``.
    node_mass_ : ndarray of shape (K,)
        Rows that each node stands for: the sums of the responsibilities of the training rows.
    folds_ : Folds
        Fold and warp diagnostics at the nodes, in units of the noise.
    {n_iter_}
    {converged_.objective}
    {stop_reason_}
    {history_}
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University, section 6.8.

    Examples
    --------
    >>> import pandas as pd
    >>> from prinfold import MixedGTM
    >>> table = pd.DataFrame(
    ...     {
    ...         "length": [1.0, 1.2, None, 3.1, 2.9, 3.3],
    ...         "sex": ["f", "f", "m", "m", None, "m"],
    ...         "eggs": [5, 7, 0, 0, 1, 0],
    ...     }
    ... )
    >>> model = MixedGTM(1, nodes=5, basis=2).fit(table)
    >>> [column.kind for column in model.columns_]
    ['gaussian', 'bernoulli', 'negative_binomial']
    >>> model.impute(table)["sex"].tolist()
    ['f', 'f', 'm', 'm', 'm', 'm']
    """

    _scales_columns: ClassVar[bool] = True
    _constraints: ClassVar[dict[str, Constraint]] = LatentGridModel._constraints | {
        "columns": one_of(("auto", *KINDS)) | _of_columns,
        "size_factors": nothing | instance_of(str, words="'auto', the name of a column") | integer(0),
        "dispersion": one_of(("column", "shared")) | real(0, above=True),
        "unseen": one_of(("error", "missing")),
    }
    _stored: ClassVar[Kinds] = {
        "columns_": part("Columns", columns="n_features_in_"),
        **LatentGridModel._stored,
        "weights_": numbers("M", "columns_.layout.n_predictors"),
        "noise_parameters_": NOISE_PARAMETERS,
    }
    noise_parameters_: dict[str, Any]

    def __init__(
        self,
        n_components: int = 2,
        *,
        columns: Any = "auto",
        size_factors: Any = None,
        dispersion: float | str = "column",
        unseen: str = "error",
        nodes: Any = None,
        basis: Any = None,
        width: float = 1.0,
        latent: Any = None,
        regularization: float | None = None,
        prior_precision: float | None = None,
        penalize_bias: bool = False,
        noise_floor: float = 1e-6,
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.columns = columns
        self.size_factors = size_factors
        self.dispersion = dispersion
        self.unseen = unseen
        self.nodes = nodes
        self.basis = basis
        self.width = width
        self.latent = latent
        self.regularization = regularization
        self.prior_precision = prior_precision
        self.penalize_bias = penalize_bias
        self.noise_floor = noise_floor
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------- between spaces

    def value_names(self) -> Any:
        """Names of the values that :meth:`inverse_transform` gives: a column each, of levels ``column=level``.

        Returns
        -------
        ndarray of str, of shape (D',)
        """
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.value_names], dtype=object)

    def inverse_transform(self, Z: Any, *, extrapolate: bool = False) -> FloatArray:
        """Expected values at latent coordinates: numbers, shares of levels, and counts at a size factor of 1.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
            Latent coordinates; angles may be given in any turn.
        {extrapolate.refused}

        Returns
        -------
        ndarray of shape (n, D')
            In the order of :meth:`value_names`: one value for each column, the share of its second level for a
            Bernoulli one, and the share of every level for a categorical one.
        """
        return super().inverse_transform(Z, extrapolate=extrapolate)

    def typical_rows(self, Z: Any, *, extrapolate: bool = False) -> Any:
        """Rows as they are expected at latent coordinates, with the likeliest level of each column of levels.

        Parameters
        ----------
        {Z}
        {extrapolate}

        Returns
        -------
        frame or ndarray of shape (n, D)
            With the columns of the training table, in a frame where it was one.
        """
        return self._like_training_table(self._codes(self.inverse_transform(Z, extrapolate=extrapolate)))

    def sample(self, n: int = 1, *, random_state: RandomState = None) -> Any:
        """Rows drawn from the density, counts for a size factor of 1.

        Parameters
        ----------
        {n}
        {random_state}

        Returns
        -------
        frame or ndarray of shape (n, D)
            With the columns of the training table, in a frame where it was one.
        """
        return self._like_training_table(super().sample(n, random_state=random_state), whole=True)

    def impute(self, X: Any, *, errors: Any = None, return_std: bool = False) -> Any:
        """Rows with missing cells filled in, given what was measured of them.

        A number becomes its expectation, a level the likeliest one.

        Parameters
        ----------
        X : frame or array-like of shape (n, D)
            Rows whose missing cells are NaN or null.
        errors : None
            Not supported.
        return_std : bool, default=False
            Whether to return how sure that is as well.

        Returns
        -------
        frame or ndarray of shape (n, D)
            The rows, in a frame where X is one; what was measured stays as it is.
        ndarray of shape (n, D)
            Of numbers the standard deviation about their expectation, 0 where they were measured; of levels the
            probability of the one filled in, 1 where it was measured. Only with ``return_std``.
        """
        table = self._table(X)
        rows = self._rows(table, errors)
        codes = dense(table).astype(np.float64)
        missing = np.isnan(codes)
        spread = np.where(self._level_columns(), 1.0, np.zeros(codes.shape))
        if missing.any():
            mean, variance = self._completion(rows)
            codes = np.where(missing, mean, codes)
            spread = np.where(missing, np.sqrt(variance), spread)
        found = self._fill_cells(X, codes, missing)
        return (found, spread) if return_std else found

    # ------------------------------------------------------------------------------ shape of the surface

    @property
    def folds_(self) -> Folds:
        """Fold and warp diagnostics at the nodes, in units of the noise."""
        check_is_fitted(self)
        return mixed_folds(self._model, self._parameters())

    def noise_covariance(self, axes: Any = None) -> FloatArray:
        """Covariance of the noise at each node, where all columns are Gaussian.

        Parameters
        ----------
        axes : array-like of shape (D, a), default=None
            Directions along which to see it, as columns; None is all columns of the data.

        Returns
        -------
        ndarray of shape (K, a, a)
        """
        check_is_fitted(self)
        self._refuse_what_has_no_distance("a covariance")
        return super().noise_covariance(axes)

    # --------------------------------------------------------------------------------------- plumbing

    @property
    def _column_kinds(self) -> Columns:
        return self.columns_

    @property
    def _noise(self) -> MixedNoise:
        noise: Any = self._model.noise
        found: MixedNoise = noise
        return found

    def _recipe(self, places: FloatArray | None = None, **parts: Any) -> Recipe:
        self._refuse_open_processes()
        own: dict[str, Any] = {
            "center": self._center,
            "spread": self._spread,
            "attributes": mixed_attributes,
            "folds": mixed_folds,
            "row_steps": (self._center_gaussian_columns,),
            "basis_steps": (),  # numbers of levels are no distances
            "model_steps": (self._inform_noise,),
            "start_steps": (link_start,),
        }
        return plain_recipe(self, self._make_noise, choose_penalty(self), places, **(own | parts))

    def _make_noise(self, surface: BasisMap, spread: ColumnSpread) -> MixedNoise:
        layout, cells = self.columns_.layout, CellNoise(spread.floor, spread.floors, spread.scale)
        none = np.zeros(layout.n_predictors)  # the row added is known where there are rows, to train on
        return MixedNoise(layout, cells, prior=none, prior_mass=none, dispersion=self.dispersion)

    def _remake_model(self, surface: BasisMap, spread: ColumnSpread) -> gtm.GTMModel:
        kept = spread_of_model(spread.floor, len(self.columns_.layout.gaussian_columns))
        noise = replace(self._make_noise(surface, kept), reference=self.noise_parameters_.get("reference"))
        return gtm.GTMModel(surface, noise, choose_penalty(self))

    def _center(self, table: FloatArray, weight: FloatArray | None, gaps: bool) -> FloatArray:
        """(D,) means of Gaussian columns, 0 of others."""
        found = np.zeros(table.shape[1])
        g = self.columns_.layout.gaussian_columns
        if len(g):
            found[g] = table_mean(table[:, g], weight, gaps and has_gaps(table[:, g]))
        return found

    def _center_gaussian_columns(self, rows: Rows) -> Rows:
        """Rows with the mean taken off Gaussian columns only."""
        offset, g = np.zeros(rows.n_columns), self.columns_.layout.gaussian_columns
        offset[g] = rows.offset[g]
        return replace(rows, offset=offset)

    def _spread(self, rows: Rows) -> ColumnSpread:
        """Spread of the Gaussian columns of rows."""
        g = self.columns_.layout.gaussian_columns
        if not len(g):
            return ColumnSpread(1.0, np.empty(0), np.empty(0))
        variances = None if rows.variances is None else rows.variances[g]
        numbers = replace(rows.sample, table=rows.table[:, g], offset=rows.offset[g], variances=variances)
        return column_spread(numbers, self.noise_floor)

    def _inform_noise(self, model: gtm.GTMModel, rows: Rows) -> gtm.GTMModel:
        """The model with the quantities that its noise takes from the rows."""
        self._refuse_errors(rows.errors)
        noise: Any = model.noise
        return replace(model, noise=inform_noise(noise, rows, totals=self.size_factors == "auto"))

    def _refuse_open_processes(self) -> None:
        """A Gaussian process finds its numbers by an evidence that only Gaussian columns have."""
        penalized = self.regularization is not None or self.prior_precision is not None
        if has_open_numbers(self.basis, penalized=penalized):
            raise InvalidParameterError(
                "a Gaussian process cannot estimate its length_scale and variance from levels and counts; give both, "
                "such as GaussianProcess(length_scale=0.5, variance=1.0), or a regularization in place of the variance"
            )

    def _parameters(self) -> MixedParameters:
        return self._noise.restore(self.weights_, self.noise_variance_, self.noise_parameters_)

    def _point(self, Z: FloatArray) -> FloatArray:
        layout = self.columns_.layout
        found = means(layout, self._model.surface.point(Z, self.weights_))
        found[:, self._noise.gaussian] += self.offset_[layout.gaussian_columns]
        return found

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        eta = self._model.surface.point(Z, self.weights_)
        return mean_jacobian(self.columns_.layout, eta, self._model.surface.jacobian(Z, self.weights_))

    def _geometry(self) -> SurfaceGeometry:
        # Means are not linear in the weights.
        return SurfaceGeometry(self.latent_, self._point, self._jacobian, self._model.surface.basis.detail)

    def _restore(self) -> None:
        require_parts({"columns_ with the levels that their kinds have": self.columns_.sound})
        super()._restore()
        with explain_misfits("noise_parameters_"):
            self._parameters()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def mixed_attributes(job: TrainingJob, state: gtm.FittedState) -> dict[str, Any]:
    """Fitted attributes of a model of mixed columns, of which a node has one mass."""
    return noise_attributes(job, state) | {"node_mass_": state.statistics.mass}


def mixed_folds(model: gtm.GTMModel, parameters: Parameters) -> Folds:
    """Fold and warp diagnostics at the nodes, in units of the noise."""
    surface, latent = model.surface, model.surface.latent
    nodes: MixedNodes = model.noise.at_nodes(surface, parameters)  # type: ignore[assignment]
    layout, spread = nodes.layout, nodes.variances(None)
    levels = layout.exclusive
    spread[:, levels] = means(layout, nodes.centers)[:, levels]
    jacobian = mean_jacobian(layout, nodes.centers, surface.jacobian(latent.nodes, parameters.weights))
    scaled = jacobian / np.sqrt(np.maximum(spread, np.finfo(float).tiny))[:, :, None]
    return find_folds(scaled, latent.domain.frame(latent.nodes), latent.edges)
