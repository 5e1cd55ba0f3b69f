"""Densities made of settings: a bandwidth or the name of a rule for it, a density of the user's own, a mask."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from prinfold._typing import FloatArray
from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.bandwidths import BANDWIDTHS, choose_bandwidth
from prinfold.density.densities import Density, Derivatives, KernelDensity
from prinfold.density.masks import Edge, even_points
from prinfold.density.mixtures import MixtureDensity, RatioDensity
from prinfold.density.row_spaces import RowSpace
from prinfold.density.sphere import SPHERE_BANDWIDTHS, Restricted, SphereDensity
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.validation.settings import Constraint, as_generator, instance_of, nothing, one_of, real

BANDWIDTH = (
    one_of(tuple(BANDWIDTHS))
    | real(0, above=True)
    | instance_of(np.ndarray, words="an array of one number for each column, or a matrix")
)
"""Values that a ``bandwidth`` parameter may have."""

MASK = nothing | Constraint(
    lambda v: callable(v) or isinstance(v, np.ndarray),
    "a function that tells which rows could have been seen, or an array of points spread evenly over what was observed",
)
"""Values that a ``mask`` parameter may have."""

DENSITY = nothing | Constraint(
    lambda v: not isinstance(v, type) and (isinstance(v, Density) or hasattr(v, "covariance_type")),
    "a density with log_density, derivatives, shift and length, or a mixture to be fitted, such as GaussianMixture(5)",
)
"""Values that a ``density`` parameter may have."""


_MOST_REPEATED_ROWS = 10_000_000
"""Most rows to repeat by whole weights, for a mixture that takes no weights."""

_COMPRESS_FROM_ROWS = 20_000
"""Rows from which on close ones are merged, which changes log p by some 1e-5."""


class EstimatedDensity(NamedTuple):
    """A density, its bandwidth (NaN where the density was given), and where something could have been observed."""

    density: Density
    bandwidth: Any
    edge: Edge | None


@dataclass(frozen=True)
class DensityRecipe:
    """The settings from which a density is made of rows."""

    density: Any
    bandwidth: Any
    mask: Any = None
    random_state: Any = None

    def make(self, rows: FloatArray, weight: FloatArray, dimension: int, space: RowSpace) -> EstimatedDensity:
        """Make the density of different rows (n, D) with weights (n,), for ridges of some dimension."""
        places = space.enter(rows)
        if self.density is not None:
            self._refuse_mask()
            return EstimatedDensity(_given_density(self.density, places, weight, space), nan, None)
        h = _choose_bandwidth(self.bandwidth, places, weight, dimension, as_generator(self.random_state), space)
        density = _kernel_density(places, weight, h, space, adaptive=isinstance(self.bandwidth, str))
        if self.mask is None:
            return EstimatedDensity(density, h, None)
        if np.shape(h) == (len(places),) and isinstance(self.bandwidth, str):
            raise InvalidParameterError(
                f"a mask needs kernels that are the same everywhere, but bandwidth={self.bandwidth!r} has one for each "
                "row; choose another rule or a number"
            )
        even, share = even_points(self.mask, rows, h, space)
        seen = _kernel_density(space.enter(even), share, h, space, adaptive=False)
        return EstimatedDensity(RatioDensity(density, seen), h, Edge.of(seen, places))

    def _refuse_mask(self) -> None:
        if self.mask is not None:
            raise InvalidParameterError(
                "mask goes with kernels on the rows, but density= is given. Leave out one of the two"
            )


def _kernel_density(places: FloatArray, weight: FloatArray, bandwidth: Any, space: RowSpace, adaptive: bool) -> Density:
    """Kernels at places; with ``adaptive``, as many bandwidths as there are places are those of each."""
    accuracy = "compressed" if len(places) >= _COMPRESS_FROM_ROWS else "truncated"
    if space.round is not None:
        return SphereDensity(KernelDensity(places, weight, bandwidth, accuracy), bandwidth, space.round.radius)
    if adaptive and np.shape(bandwidth) == (len(places),):
        return AdaptiveDensity(places, weight, bandwidth, accuracy)
    return KernelDensity(places, weight, bandwidth, accuracy)


def _choose_bandwidth(
    given: Any, places: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator, space: RowSpace
) -> Any:
    """The bandwidth that a parameter stands for, in flat space or on the sphere."""
    if space.round is None:
        return choose_bandwidth(given, places, weight, dimension, rng)
    if isinstance(given, str):
        if given not in SPHERE_BANDWIDTHS:
            raise InvalidParameterError(
                f"bandwidth={given!r} is for flat space; on a sphere use one of {sorted(SPHERE_BANDWIDTHS)}, or a "
                "number of degrees"
            )
        return SPHERE_BANDWIDTHS[given](places, weight)
    if np.ndim(given):
        raise InvalidParameterError(
            f"on a sphere the bandwidth is one number of degrees, got an array of shape {np.shape(given)}"
        )
    return float(given)


def _given_density(recipe: Any, places: FloatArray, weight: FloatArray, space: RowSpace) -> Density:
    """The density that the user gave, or the mixture that an unfitted estimator finds in the rows."""
    if isinstance(recipe, Density):
        _check_shapes(recipe, places[:2])
        return recipe if space.round is None else Restricted(recipe, space.round.radius)
    if space.round is not None:
        raise InvalidParameterError(
            Message(
                f"{type(recipe).__name__} is for flat space, and the rows lie on a sphere",
                Advice("bandwidth", words="use {}"),
                "give a density of places in space",
            )
        )
    times = np.rint(weight).astype(np.int64)
    if not np.allclose(times, weight) or times.sum() > _MOST_REPEATED_ROWS:
        raise InvalidParameterError(
            Message(
                f"{type(recipe).__name__} takes weights that are small whole numbers only, as repeats",
                Advice("bandwidth", words="use {}"),
            )
        )
    return MixtureDensity.of(clone(recipe).fit(np.repeat(places, times, axis=0)))


def _check_shapes(density: Density, X: FloatArray) -> None:
    """Refuse a density whose methods return wrong shapes for rows (n, D); the message names the method."""
    n, D = X.shape
    at = density.derivatives(X)
    if not isinstance(at, Derivatives):
        raise InvalidParameterError(f"derivatives of the density must be prinfold.Derivatives, got {type(at).__name__}")
    answers = {
        "log_density": (density.log_density(X), (n,)),
        "derivatives' log_density": (at.log_density, (n,)),
        "derivatives' gradient": (at.gradient, (n, D)),
        "derivatives' hessian": (at.hessian, (n, D, D)),
        "shift": (density.shift(X, at), (n, D)),
        "length": (density.length(X), (n,)),
    }
    for method, (got, shape) in answers.items():
        if np.shape(got) != shape:
            raise InvalidParameterError(
                f"{method} of the density must have shape {shape} for {n} rows of {D} columns, got {np.shape(got)}"
            )
