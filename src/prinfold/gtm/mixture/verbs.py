"""The verbs of a fitted mixture of GTMs (thesis 6.3): results of the maps, weighted by memberships."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, Mesh, RandomState
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    InterruptedWarning,
    InvalidParameterError,
    Message,
    warn_caller,
)
from prinfold.files.kinds import Kinds, numbers, part, sequence_of
from prinfold.geometry.projection import Projection
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.estimator import GTM
from prinfold.gtm.mixture import model as algorithm
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.warnings import MapOnRows, about_fit, warn_about_empty_rows, warn_all
from prinfold.latent import Atlas
from prinfold.rows.rows import Rows, as_rows
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import as_generator, integer
from prinfold.validation.tables import check_errors, has_gaps

R = TypeVar("R")

_DEAD_BELOW_ROWS = 1.0
"""A map that holds less than this many rows has died."""


@fill_parameter_docs
class MixtureVerbs(PrincipalManifold):
    """Verbs of a fitted mixture; it has ``maps_``, ``mixing_`` and ``latent_``, the atlas of its maps."""

    _stored: ClassVar[Kinds] = {
        **PrincipalManifold._stored,
        "latent_": part("Atlas"),
        "maps_": sequence_of(part("GTM", n_features_in_="n_features_in_"), "latent_.charts"),
        "mixing_": numbers("latent_.charts", least=0),
    }
    _accept_sparse: ClassVar[bool] = True
    _accept_missing: ClassVar[bool] = True
    latent_: Atlas
    maps_: list[GTM]
    mixing_: FloatArray

    # ------------------------------------------------------------------------------------ which map

    def memberships(self, X: Any, *, errors: Any = None) -> FloatArray:
        """To which degree each row belongs to each map: posterior probabilities π_j p_j(t) / Σ_i π_i p_i(t).

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n, n_maps)
        """
        rows = self._read(X, errors)
        return self._memberships(rows)[0].astype(rows.table.dtype, copy=False)

    def transform(self, X: Any, *, errors: Any = None) -> FloatArray:
        """The map that each row belongs to most, and its posterior mean there.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n, 1 + Q)
            The number of the map, from 0, and the coordinates on it.
        """
        return self._coordinates(self._read(X, errors))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> FloatArray:
        """Fit the mixture, then give the map of each row and its posterior mean there.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored
        {sample_weight.of_fit}
        {errors}

        Returns
        -------
        ndarray of shape (n, 1 + Q)
        """
        options = {} if errors is None else {"errors": errors}
        fitted: Any = self.fit(X, y, sample_weight=sample_weight, **options)
        found: FloatArray = fitted.transform(X, **options)
        return found

    # --------------------------------------------------------------------------------- the posterior

    def responsibilities(self, X: Any, threshold: float | None = None, *, errors: Any = None) -> Any:
        """Posterior weight of every node of every map for each row, one map after the other.

        Parameters
        ----------
        X : array-like of shape (n, D)
        threshold : float, default=None
            Weights below it are left out, and a sparse matrix is returned.
        {errors}

        Returns
        -------
        ndarray or csr_matrix of shape (n, K)
            K is the number of nodes of all maps together.
        """
        rows = self._read(X, errors)
        share, kind = self._memberships(rows)[0], rows.table.dtype
        if threshold is None:
            each = [h[:, None] * self._ask(j, posteriors.responsibilities, rows) for j, h in enumerate(share.T)]
            return np.concatenate(each, axis=1).astype(kind, copy=False)
        ask = partial(posteriors.sparse_responsibilities, threshold=threshold)
        found = [scipy.sparse.diags_array(h) @ self._ask(j, ask, rows) for j, h in enumerate(share.T)]
        joined = scipy.sparse.csr_matrix(scipy.sparse.hstack(found, format="csr"), dtype=kind)
        joined.data[joined.data < threshold] = 0.0
        joined.eliminate_zeros()
        return joined

    def posterior_mode(self, X: Any, *, errors: Any = None) -> FloatArray:
        """The node with the largest posterior weight for each row, among those of all maps.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n, 1 + Q)
        """
        rows = self._read(X, errors)
        share, found = self._memberships(rows)[0], np.empty((len(self.maps_), rows.n_rows, 2))
        for j in range(len(self.maps_)):
            found[j] = self._ask(j, posteriors.heaviest_nodes, rows)
        weight = share.T * found[:, :, 1]
        chart = weight.argmax(axis=0)
        node = self.latent_.first[chart] + found[chart, np.arange(rows.n_rows), 0].astype(np.intp)
        return np.asarray(self.latent_.nodes[node], dtype=rows.table.dtype)

    def posterior_covariance(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Spread of the posterior about its mean, on the map that each row belongs to most.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n, 1 + Q, 1 + Q)
            Nil in the first row and column, which stand for the number of the map.
        """
        rows, Q = self._read(X, errors), self.latent_.n_columns

        def wide(j: int, part: Rows) -> FloatArray:
            inner = self._ask(j, posteriors.posterior_covariance, part)
            beyond = Q - 1 - inner.shape[1]
            return np.pad(inner, ((0, 0), (1, beyond), (1, beyond)))

        return self._on_own_maps(rows, wide, (Q, Q))

    def mode_distance(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Distance from posterior mean to posterior mode on the map that each row belongs to most, in node spacings.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._on_own_maps(
            self._read(X, errors),
            lambda j, part: self._ask(j, posteriors.mode_distance, part) / self.latent_.charts[j].spacing,
            (),
        )

    # ---------------------------------------------------------------------------------- the density

    def score_samples(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Log-likelihood of each row, log Σ_j π_j p_j(t).

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n,)
        """
        rows = self._read(X, errors)
        least = float(np.finfo(rows.table.dtype).min)
        return np.maximum(self._memberships(rows)[1], least).astype(rows.table.dtype, copy=False)

    def score(self, X: Any, y: Any = None, *, errors: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored
        {errors}

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X, errors=errors), dtype=np.float64))

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
        check_draws(n, self.n_features_in_)
        rng = as_generator(random_state)
        chart = rng.choice(len(self.maps_), size=n, p=self.mixing_ / self.mixing_.sum())
        out = np.empty((n, self.n_features_in_))
        for j, each in enumerate(self.maps_):
            own = np.flatnonzero(chart == j)
            out[own] = posteriors.sample(each._model, each._parameters(), len(own), rng)[0] + each.offset_
        return out

    def impute(self, X: Any, *, errors: Any = None, return_std: bool = False) -> Any:
        """Rows with missing cells filled in: the expectation of each cell given what was measured of its row.

        Parameters
        ----------
        {X.gaps}
        {errors}
        return_std : bool, default=False
            Whether to return the spread of what was filled in as well; large where maps disagree.

        Returns
        -------
        ndarray of shape (n, D)
            The rows; what was measured stays as it is.
        ndarray of shape (n, D)
            Standard deviation of each cell about its expectation, 0 where it was measured. Only with
            ``return_std``.
        """
        table = self._table(X)
        complete = lambda: self._completion(self._rows(table, check_errors(errors, table, self)))  # noqa: E731
        found, deviation = posteriors.fill_missing_cells(table, complete)
        return (found, deviation) if return_std else found

    @property
    def noise_variance_(self) -> FloatArray:
        """(n_maps,) variance of the noise of each map."""
        check_is_fitted(self)
        return np.array([each.noise_variance_ for each in self.maps_])

    @property
    def node_mass_(self) -> FloatArray:
        """(K,) rows that each node stands for, one map after the other; on average over the columns."""
        check_is_fitted(self)
        masses = [np.asarray(each.node_mass_) for each in self.maps_]
        return np.concatenate([mass if mass.ndim == 1 else mass.mean(axis=1) for mass in masses])

    # --------------------------------------------------------------------------------------- plumbing

    def _read(self, X: Any, errors: Any) -> Rows:
        table = self._table(X)
        rows = self._rows(table, check_errors(errors, table, self))
        if rows.gaps:
            warn_about_empty_rows(table)
        return rows

    def _rows(self, table: FloatArray, errors: FloatArray | None = None) -> Rows:
        width = max(each._numbers_per_node * each.latent_.n_nodes for each in self.maps_)
        return as_rows(table, None, None, width=width, gaps=has_gaps(table), errors=errors)

    def _ask(self, j: int, question: Callable[[gtm.GTMModel, Rows, Parameters], R], rows: Rows) -> R:
        """Put a question about rows to map j."""
        each = self.maps_[j]
        mine = replace(rows, offset=each.offset_)
        return question(each._model_for(mine, each._model), mine, each._parameters())

    def _memberships(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """(n, J) memberships and (n,) log-likelihoods, in double precision."""
        out = np.empty((rows.n_rows, len(self.maps_)), order="F")
        for j in range(len(self.maps_)):
            out[:, j] = self._ask(j, partial(posteriors.log_likelihood, dtype=np.float64), rows)
        return algorithm.memberships(out, self.mixing_)

    def _on_own_maps(self, rows: Rows, ask: Callable[[int, Rows], FloatArray], shape: tuple[int, ...]) -> FloatArray:
        """(n, *shape) results of ``ask`` for each map, called with its number and the rows that belong to it most."""
        chart = self._memberships(rows)[0].argmax(axis=1)
        out = np.empty((rows.n_rows, *shape), dtype=rows.table.dtype)
        for j in range(len(self.maps_)):
            own = np.flatnonzero(chart == j)
            if len(own):
                errors = None if rows.errors is None else rows.errors[own]
                out[own] = ask(j, replace(rows, table=rows.table[own], errors=errors))
        return out

    def _coordinates(self, rows: Rows) -> FloatArray:
        def places(j: int, part: Rows) -> FloatArray:
            return self.latent_.on_chart(j, self._ask(j, posteriors.posterior_mean, part))

        return self._on_own_maps(rows, places, (self.latent_.n_columns,))

    def _completion(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """(n, D) expectation of every cell and its variance: within the maps, and between them."""
        share = self._memberships(rows)[0]
        each = [self._ask(j, posteriors.completion, rows) for j in range(len(self.maps_))]
        means = [m + one.offset_ for (m, _), one in zip(each, self.maps_, strict=True)]
        mean = sum(h[:, None] * m for h, m in zip(share.T, means, strict=True))
        within = zip(share.T, means, (v for _, v in each), strict=True)
        variance = sum(h[:, None] * (v + np.square(m - mean)) for h, m, v in within)
        return np.asarray(mean), np.asarray(variance)

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return self._coordinates(self._rows(table))

    def _point(self, Z: FloatArray) -> FloatArray:
        return self.latent_.per_chart(Z, lambda j, places: self.maps_[j]._point(places), (self.n_features_in_,))

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        D, Q = self.n_features_in_, self.latent_.n_columns

        def wide(j: int, places: FloatArray) -> FloatArray:
            inner = self.maps_[j]._jacobian(places)
            return np.pad(inner, ((0, 0), (0, 0), (1, Q - 1 - inner.shape[2])))

        return self.latent_.per_chart(Z, wide, (D, Q))

    def _mesh(self, resolution: int | None = None) -> Mesh:
        """The meshes of all maps."""
        each = [one._mesh(resolution) for one in self.maps_]
        first = np.cumsum([0, *(len(mesh.vertices) for mesh in each)])
        return Mesh(
            np.concatenate([mesh.vertices for mesh in each]),
            np.concatenate([self.latent_.on_chart(j, mesh.latent) for j, mesh in enumerate(each)]),
            np.concatenate([mesh.faces + first[j] for j, mesh in enumerate(each)]),
        )

    def _nearest(self, table: FloatArray) -> Projection:
        return self._nearest_map([one._nearest(table) for one in self.maps_])

    def _nearest_measured(self, table: FloatArray) -> Projection:
        return self._nearest_map([one._nearest_measured(table) for one in self.maps_])

    def _nearest_map(self, each: list[Projection]) -> Projection:
        """The nearest of the nearest points on each map."""
        chart, rows = np.argmin([found.squared_distance for found in each], axis=0), np.arange(len(each[0].latent))
        latent = np.stack([self.latent_.on_chart(j, found.latent) for j, found in enumerate(each)])
        points = np.stack([found.points for found in each])
        squared = np.stack([found.squared_distance for found in each])
        return Projection(
            latent[chart, rows], points[chart, rows], squared[chart, rows], np.stack([f[3] for f in each])[chart, rows]
        )

    def _map_number(self, j: Any) -> int:
        check_is_fitted(self)
        if not integer(0).test(j) or j >= len(self.maps_):
            raise InvalidParameterError(f"there is no map {j!r}; the maps are 0 to {len(self.maps_) - 1}")
        return int(j)

    # -------------------------------------------------------------------------------------- warnings

    def _warn(self, rows: Rows, model: algorithm.MixtureModel, state: algorithm.MixtureState) -> None:
        """Warn about maps without rows, and of results that may mislead."""
        for words, category in self._stopping_warnings():
            warn_caller(words, category)
        total = rows.total_weight
        dead = [j for j, share in enumerate(self.mixing_) if share * total < _DEAD_BELOW_ROWS]
        if dead:
            warn_caller(
                Message(
                    f"map(s) {_join_numbers(dead)} hold less than one row: there is nothing left for them to explain",
                    Advice("n_maps", max(1, len(self.maps_) - len(dead))),
                    Advice("random_state", words="try another {}"),
                    "another partition",
                ),
                DegenerateWarning,
            )
        said: dict[tuple[str, type[Warning]], list[int]] = {}
        share = self._memberships(replace(rows, weight=None))[0]
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        for j, each in enumerate(self.maps_):
            if j in dead:
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                own = replace(rows, offset=each.offset_, weight=weight * share[:, j])
                recipe, parameters, mass = each._recipe(), each._parameters(), each.memory_.statistics.mass
                counted = recipe.row_weights(each._model, own, parameters)
                spacing = each.latent_.widest_spacing
                warn_all(about_fit(each, MapOnRows(each._model, own, parameters, mass, counted, spacing, recipe.folds)))
            for one in caught:
                if not issubclass(one.category, ConvergenceWarning | InterruptedWarning):
                    said.setdefault((Message.after("", one.message), one.category), []).append(j)
        for (words, category), maps in said.items():
            where = "" if len(maps) == len(self.maps_) else f"map(s) {_join_numbers(maps)}: "
            warn_caller(Message.after(where, words), category)


def _join_numbers(maps: list[int]) -> str:
    return ", ".join(map(str, maps))
