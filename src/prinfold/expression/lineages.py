"""Lineages of cells: what a recipe finds from counts, and which cells belong to which lineage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

from prinfold._typing import BoolArray, FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.expression.count_tests import relative_totals
from prinfold.trees.estimator import PrincipalTree
from prinfold.validation.settings import integer
from prinfold.validation.tables import as_numbers

_ON_LINEAGE = 0.5
"""Weight of a lineage from which on a cell belongs to it."""


class Lineages(NamedTuple):
    """Times (n,) and weights (n, L) of lineages; what a recipe returns may be any object with these two names."""

    pseudotime: FloatArray
    lineage_weights: FloatArray


Recipe = Callable[[FloatArray], Any]
"""From counts (n, G) to a trajectory: an object with ``pseudotime`` and ``lineage_weights``, or an array of times."""


@dataclass(frozen=True)
class TreeOfCounts:
    """A recipe from counts to a trajectory: sizes, logarithms, principal components, and a tree with a root.

    Parameters
    ----------
    root : int, mask or score
        Where time begins, as ``root=`` of :class:`~prinfold.PrincipalTree`. It is told by cells, not by values.
    n_components : int, default=20
        Principal components.
    model : estimator, default=None
        A tree, ridge or curve of other settings, of which copies are fitted; None is ``PrincipalTree()``.
    """

    root: Any
    n_components: int = 20
    model: Any = None

    def __call__(self, counts: FloatArray) -> Any:
        """The trajectory of cells by their counts (n, G)."""
        levels = np.log1p(counts / relative_totals(counts)[:, None] * np.median(counts.sum(axis=1)))
        rows = PCA(min(self.n_components, *counts.shape), random_state=0).fit_transform(levels)
        model = PrincipalTree() if self.model is None else clone(self.model)
        return model.set_params(root=self.root).fit(rows).trajectory(rows)


def call_recipe(recipe: Recipe | None, counts: FloatArray) -> Any:
    """The trajectory that a recipe finds."""
    if not callable(recipe):
        raise InvalidParameterError(f"recipe must be a function from counts to a trajectory, got {recipe!r}")
    return recipe(counts)


def as_lineages(found: Any, n: int) -> Lineages:
    """Times and weights that a recipe has returned; an array of times is one lineage of all cells."""
    weights = getattr(found, "lineage_weights", None)
    times = check_times(found if weights is None else found.pseudotime, n)
    return Lineages(times, np.ones((n, 1)) if weights is None or weights.shape[1] == 0 else np.asarray(weights))


def cells_of(found: Lineages, lineage: int) -> BoolArray:
    """(n,) cells on a lineage."""
    L = found.lineage_weights.shape[1]
    if not integer(0, L - 1).test(lineage):
        raise InvalidParameterError(f"lineage must be a number from 0 to {L - 1} for this trajectory, got {lineage!r}")
    return np.asarray(found.lineage_weights[:, lineage] > _ON_LINEAGE)


def longest_lineage(found: Lineages) -> int:
    """The lineage of most cells."""
    return int((found.lineage_weights > _ON_LINEAGE).sum(axis=0).argmax())


def matching_lineage(found: Lineages, cells: BoolArray) -> int:
    """The lineage that shares most cells with those given, by Jaccard's index."""
    own = found.lineage_weights > _ON_LINEAGE
    both = (own & cells[:, None]).sum(axis=0) / np.maximum((own | cells[:, None]).sum(axis=0), 1)
    return int(both.argmax())


def cells_after_fork(found: Lineages, one: int, other: int) -> BoolArray:
    """(n,) cells on one of two lineages and not on both."""
    return np.asarray(cells_of(found, one) ^ cells_of(found, other))


def check_times(times: Any, n: int) -> FloatArray:
    """(n,) times of cells, refused where they are not one finite number for each."""
    found = as_numbers("pseudotime", times)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise InvalidDataError(f"pseudotime must have one finite number for each of the {n} cells; got {found.shape}")
    return found
