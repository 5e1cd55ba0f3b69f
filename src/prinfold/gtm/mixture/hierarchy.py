"""The verbs of a hierarchy of mixtures of GTMs (Tiňo & Nabney, 2002): adding a level, and results of all levels."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import integer
from prinfold.validation.tables import check_errors, check_table, check_weight

ROOT = "root"
"""Name of the path of the root."""


@fill_parameter_docs
class HierarchyVerbs(StoredEstimator):
    """Verbs of a fitted hierarchy; it has ``levels_``, mixtures by the names of their paths."""

    levels_: dict[str, Any]
    n_features_in_: int

    def drill_down(
        self,
        X: Any,
        path: tuple[int, ...],
        mixture: Any = None,
        *,
        sample_weight: Any = None,
        errors: Any = None,
        places: Any = None,
    ) -> Any:
        """Fit a mixture to what belongs to one map, and put it below that map.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows, as a rule those of the fit.
        path : tuple of int
            The map to look into: those that lead to its mixture, and its number there. What was below it is gone.
        mixture : GTMMixture, default=None
            Recipe of the child, of which a clone is fitted; None is one of its parent's settings with two maps.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, by which memberships are multiplied.
        {errors}
        places : array-like of shape (m, Q), default=None
            Places on that map, one for each map of the child to begin at.

        Returns
        -------
        GTMMixture
            The child.
        """
        table, path = self._table(X), _as_path(path)
        known = check_errors(errors, table, self)
        above, number = self._map_above(path)
        checked, weight = check_weight(sample_weight, table), self._memberships_above(table, path[:-1], known)
        weight = weight if checked is None else weight * checked
        options = {"sample_weight": weight, "errors": known, "places": places}
        child = above.drill_down(table, number, mixture, **options)
        kept = {name: each for name, each in self.levels_.items() if path != _path_of(name)[: len(path)]}
        self.levels_ = kept | {_name_of(path): child}
        return self.node(path)

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """Paths of all mixtures, parents before children."""
        check_is_fitted(self)
        return sorted((_path_of(name) for name in self.levels_), key=lambda path: (len(path), path))

    @property
    def leaves(self) -> list[tuple[int, ...]]:
        """Paths of all maps that nothing lies below, from left to right."""
        found = [(*path, j) for path in self.paths for j in range(len(self._level(path).maps_))]
        return sorted(path for path in found if path not in self.paths)

    @property
    def leaf_mixing(self) -> FloatArray:
        """(L,) shares of the leaves: the products of those on the way there."""
        return np.array([self.share(path) for path in self.leaves])

    def share(self, path: tuple[int, ...]) -> float:
        """Share of all rows that one map holds: the product of the shares on the way there.

        Parameters
        ----------
        path : tuple of int
            The maps that lead to its mixture, and its number there.

        Returns
        -------
        float
        """
        path = _as_path(path)
        return float(np.prod([self._map_share(path[: depth + 1]) for depth in range(len(path))]))

    def node(self, path: tuple[int, ...]) -> Any:
        """The mixture at a path.

        Parameters
        ----------
        path : tuple of int
            The maps that lead to it; ``()`` is the root.

        Returns
        -------
        GTMMixture
        """
        found = copy(self._level(_as_path(path)))
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found

    def memberships(self, X: Any, path: tuple[int, ...] = (), *, errors: Any = None) -> FloatArray:
        """To which degree each row belongs to each map of one mixture, as it is handed down.

        The membership of the map above, times those within the mixture: a row that is elsewhere belongs to none.

        Parameters
        ----------
        X : array-like of shape (n, D)
        path : tuple of int, default=()
            The maps that lead to the mixture.
        {errors}

        Returns
        -------
        ndarray of shape (n, n_maps)
        """
        table, path = self._table(X), _as_path(path)
        known = check_errors(errors, table, self)
        own = self._level(path).memberships(table, errors=known)
        return np.asarray(self._memberships_above(table, path, known)[:, None] * own, dtype=table.dtype)

    def score_samples(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Log-likelihood of each row under the mixture of all leaves.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

        Returns
        -------
        ndarray of shape (n,)
        """
        table = self._table(X)
        known = check_errors(errors, table, self)
        leaves = [(self._level(path[:-1]), path[-1]) for path in self.leaves]
        each = [mixture.maps_[j].score_samples(table, errors=known) for mixture, j in leaves]
        with np.errstate(divide="ignore"):
            log_density = np.stack(each, axis=1).astype(np.float64) + np.log(self.leaf_mixing)
        return np.asarray(logsumexp(log_density, axis=1), dtype=table.dtype)

    def score(self, X: Any, y: Any = None, *, errors: Any = None) -> float:
        """Mean log-likelihood of the rows under the mixture of all leaves.

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

    plot = PrincipalManifold.plot
    cite = PrincipalManifold.cite

    # --------------------------------------------------------------------------------------- plumbing

    def _level(self, path: tuple[int, ...]) -> Any:
        check_is_fitted(self)
        if _name_of(path) not in self.levels_:
            raise InvalidParameterError(f"there is no mixture at {path}; there are some at {self.paths}")
        return self.levels_[_name_of(path)]

    def _map_above(self, path: tuple[int, ...]) -> tuple[Any, int]:
        """The mixture that holds the map at the end of a path, and its number there."""
        above, number = self._level(path[:-1]), path[-1] if path else None
        if number is None or number >= len(above.maps_):
            raise InvalidParameterError(
                f"path={path} leads to no map; the maps at {path[:-1]} are 0 to {len(above.maps_) - 1}"
            )
        return above, number

    def _map_share(self, path: tuple[int, ...]) -> float:
        above, number = self._map_above(path)
        return float(above.mixing_[number])

    def _memberships_above(self, table: FloatArray, path: tuple[int, ...], errors: FloatArray | None) -> FloatArray:
        """(n,) memberships that reach a mixture."""
        share = np.ones(table.shape[0])
        for depth, j in enumerate(path):
            share *= self._level(path[:depth]).memberships(table, errors=errors)[:, j]
        return share

    def _table(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return check_table(self, X, reset=False, accept_sparse=True, accept_missing=True)

    def _is_consistent(self) -> bool:
        """Whether every mixture has these columns and stands below a map of another, the root below none."""
        for name, each in self.levels_.items():
            path = _path_of(name)
            above = self.levels_.get(_name_of(path[:-1]))
            if above is None or each.n_features_in_ != self.n_features_in_:
                return False
            if path and path[-1] >= len(above.maps_):
                return False
        return ROOT in self.levels_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "levels_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _name_of(path: tuple[int, ...]) -> str:
    return ".".join(map(str, path)) or ROOT


def _path_of(name: str) -> tuple[int, ...]:
    return () if name == ROOT else tuple(int(part) for part in name.split("."))


def _as_path(path: Any) -> tuple[int, ...]:
    if not isinstance(path, tuple | list) or not all(integer(0).test(j) for j in path):
        raise InvalidParameterError(f"a path is a tuple of the numbers of maps, such as (0, 2), got {path!r}")
    return tuple(int(j) for j in path)
