"""The map as a Gaussian process, thesis 6.9, written as basis functions.

A Gaussian process prior of covariance v c(·, ·) on the images Y of the nodes makes the M-step

    (G + β⁻¹ C⁻¹) Y = RT,        C = v c(nodes, nodes),

and between nodes y(z) = c(z, nodes) c(nodes, nodes)⁻¹ Y. With c(nodes, nodes) = ΦΦᵀ and Y = ΦW both are what a
map of basis functions φ(z) does whose weights have a prior of precision 1/v: by Woodbury's identity

    Y = Φ (ΦᵀGΦ + I/(βv))⁻¹ Φᵀ RT,

in which neither G nor C is ever inverted, so that nodes without responsibility and smooth covariances, whose matrix is
singular to rounding, need no special treatment. Cholesky's factorisation with pivots finds Φ with as many columns as C
has eigenvalues worth the name, and by r of the nodes alone:

    φ(z) = c(z, pivots) L⁻ᵀ,     LLᵀ = c(pivots, pivots).

Everything that takes a basis takes a process then: derivatives, projection, oriented noise, coarse grids to begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from prinfold._typing import BoolArray, FloatArray
from prinfold.basis_maps.bases import BasisCapabilities
from prinfold.basis_maps.covariance_functions import COVARIANCES, leading_pivots
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, sequence_of
from prinfold.latent import LatentSpace
from prinfold.latent.base import IS_LATENT
from prinfold.numerics.distances import squared_distances
from prinfold.rows.rows import blas_on_one_thread
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import (
    Constraint,
    check_setting,
    check_settings,
    flag,
    integer,
    nothing,
    one_of,
    real,
    several,
)

_MOST_UNEXPLAINED = 1e-10
"""Most unexplained variance of nodes that are no pivots, in units of the prior's: an error of 1e-5 in their images."""

_MOST_NODES = 5000
"""Nodes whose covariance matrix is factorised: 200 MB, and up to ten seconds where the length scale is short."""

_FIRST_LENGTH = 0.5
"""Length scale to begin with: a quarter of an axis, or half a radius. Maps unfold better from stiff to supple."""

_LENGTH_RANGE = (1e-3, 1e3)


@storable
@check_verbs(latent=IS_LATENT)
@dataclass(frozen=True)
class GaussianProcess:
    """A smooth map without basis functions to count: a Gaussian process prior on the images of the nodes, thesis 6.9.

    The covariance of two points of latent space is ``variance`` times a function of their distance in units of
    ``length_scale``; on circles and spheres the distance is the chord. The mean of the process, which costs nothing,
    is a plane, so that the surface is pulled neither to the centre of the data nor flat beyond them.

    Parameters
    ----------
    length_scale : float, default=None
        Latent distance over which the surface may turn; axes run from −1 to 1 and circles and spheres have radius 1.
        None chooses it by evidence during training.
    variance : float, default=None
        Prior variance of a column about the mean of the process, in squared units of the data. None chooses it by
        evidence, unless the model has a ``regularization`` λ or ``prior_precision`` α: then it is 1/(λβ) or 1/α.
    covariance : {"gaussian", "matern32", "matern52"}, default="gaussian"
        Covariance function: (6.5), or Matérn's of one or two derivatives, for surfaces with sharper bends.
    linear : bool, default=True
        Whether the mean is a plane, linear in the embedded coordinates, rather than a point.
    pivots : tuple of int, default=None
        Nodes whose values carry the map; found when the process meets a latent space, and kept in files.

    Examples
    --------
    >>> from prinfold import GTM, GaussianProcess, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTM(basis=GaussianProcess(length_scale=0.5, variance=1.0)).fit(data.X)
    >>> model.transform(data.X).shape
    (300, 2)
    """

    _kinds: ClassVar[Kinds] = {"pivots": nothing | sequence_of(integer(0))}

    length_scale: float | None = None
    variance: float | None = None
    covariance: str = "gaussian"
    linear: bool = True
    pivots: tuple[int, ...] | None = field(default=None, repr=False)
    carries_prior: ClassVar[bool] = True
    """Whether the basis brings a prior on its weights along, whose numbers training may have to find."""

    def __post_init__(self) -> None:
        table: dict[str, Constraint] = {
            "length_scale": nothing | real(0, above=True),
            "variance": nothing | real(0, above=True),
            "covariance": one_of(COVARIANCES),
            "linear": flag,
        }
        check_settings(self, table)
        if self.length_scale is not None and not _LENGTH_RANGE[0] <= self.length_scale <= _LENGTH_RANGE[1]:
            raise InvalidParameterError(
                f"length_scale must lie between {_LENGTH_RANGE[0]:g} and {_LENGTH_RANGE[1]:g}, got "
                f"{self.length_scale:g}; latent axes run from −1 to 1"
            )
        if self.pivots is not None:
            numbers = several(integer(0), "numbers of nodes")
            check_setting("pivots", self.pivots, replace(numbers, test=lambda v: numbers.test(list(np.ravel(v)))))
            object.__setattr__(self, "pivots", tuple(int(i) for i in np.ravel(self.pivots)))

    def bind(self, latent: LatentSpace) -> BoundProcess:
        """Find the nodes of ``latent`` that carry the process."""
        if latent.n_nodes > _MOST_NODES:
            raise InvalidParameterError(
                f"a Gaussian process on {latent.n_nodes} nodes would need the covariance of every two of them; "
                f"use at most {_MOST_NODES} nodes, or a GaussianBasis"
            )
        length = _FIRST_LENGTH if self.length_scale is None else float(self.length_scale)
        E = latent.embed(latent.nodes)
        if self.pivots is None:
            gram = COVARIANCES[self.covariance].value(squared_distances(E, E) / length**2)
            pivots = leading_pivots(gram, _MOST_UNEXPLAINED)
        else:
            pivots = np.array(self.pivots, dtype=np.intp)
            if not len(pivots) or pivots.min() < 0 or pivots.max() >= latent.n_nodes:
                raise InvalidParameterError(
                    f"GaussianProcess: pivots must name some of the {latent.n_nodes} nodes; leave them at None"
                )
        bound = replace(self, length_scale=length, pivots=tuple(pivots.tolist()))
        return BoundProcess(latent, E[pivots], bound)


@dataclass(frozen=True)
class BoundProcess:
    """A process on one latent space: φ(z) = c(z, pivots) L⁻ᵀ, then the embedded coordinates, then 1.

    ``pivots`` (r, e) are embedded; ``recipe`` is the process with its length scale and pivots filled in.
    """

    latent: LatentSpace
    pivots: FloatArray
    recipe: GaussianProcess

    @property
    def capabilities(self) -> BasisCapabilities:
        return BasisCapabilities(evaluator=self.evaluator, unexplained=self.unexplained)

    @property
    def detail(self) -> float:
        return self.length

    @property
    def length(self) -> float:
        """The length scale ℓ."""
        assert self.recipe.length_scale is not None
        return self.recipe.length_scale

    @property
    def penalized(self) -> BoolArray:
        n_free = 1 + (self.pivots.shape[1] if self.recipe.linear else 0)
        return np.arange(len(self.pivots) + n_free) < len(self.pivots)

    @cached_property
    @blas_on_one_thread()
    def factor(self) -> FloatArray:
        """(r, r) L, lower triangular: LLᵀ = c(pivots, pivots)."""
        try:
            return np.asarray(cholesky(self._pivot_covariances(self.pivots), lower=True))
        except np.linalg.LinAlgError as error:  # only pivots that were not found here can be of no use
            raise InvalidParameterError(
                "GaussianProcess: the covariance of the pivots given is singular; leave pivots at None"
            ) from error

    def features(self, Z: FloatArray) -> FloatArray:
        E = self.latent.embed(Z)
        smooth = self._whitened(self._pivot_covariances(E))
        ones = np.ones((len(Z), 1))
        return np.concatenate([smooth, E, ones] if self.recipe.linear else [smooth, ones], axis=1)

    def evaluator(self, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """φ(z) W as a function of z: c(z, pivots) k with k = L⁻ᵀ W, so that nothing is solved for each place."""
        kernel_weights, free = self._kernel_weights(weights), weights[len(self.pivots) :]

        def point(Z: FloatArray) -> FloatArray:
            E = self.latent.embed(Z)
            mean = E @ free[:-1] + free[-1] if self.recipe.linear else free[-1]
            return np.asarray(self._pivot_covariances(E) @ kernel_weights + mean)

        return point

    def gradient(self, Z: FloatArray) -> FloatArray:
        E, J = self.latent.embed(Z), self.latent.embed_jacobian(Z)
        slope = 2.0 / self.length**2 * self._pivot_covariance_slopes(E)
        along = [self._whitened(slope * (E[:, axis, None] - self.pivots[:, axis])) for axis in range(E.shape[1])]
        smooth = np.stack(along, axis=2) @ J
        nothing = np.zeros((len(Z), 1, Z.shape[1]))
        return np.concatenate([smooth, J, nothing] if self.recipe.linear else [smooth, nothing], axis=1)

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        # Σ_m c′ₘ (E − p_m) k_m splits into products of c′ alone: E (c′ k) − c′ (p k), with k = L⁻ᵀ W.
        E, r, n_embedded = self.latent.embed(Z), len(self.pivots), self.pivots.shape[1]
        slope = 2.0 / self.length**2 * self._pivot_covariance_slopes(E)
        kernel_weights = self._kernel_weights(weights)
        common, out = slope @ kernel_weights, np.empty((len(Z), weights.shape[1], n_embedded))
        for axis in range(n_embedded):
            own = slope @ (self.pivots[:, axis, None] * kernel_weights)
            out[:, :, axis] = E[:, axis, None] * common - own
        if self.recipe.linear:
            out += weights[r : r + n_embedded].T
        return np.asarray(out @ self.latent.embed_jacobian(Z))

    def unexplained(self, Z: FloatArray) -> FloatArray:
        """(n,) share of the prior variance that is left at z when all nodes are known: 1 − ‖φ(z)‖²."""
        smooth = self._whitened(self._pivot_covariances(self.latent.embed(Z)))
        return np.asarray(np.maximum(1.0 - np.einsum("nr,nr->n", smooth, smooth), 0.0))

    @blas_on_one_thread()  # what threads share out is rounded in another way
    def _kernel_weights(self, weights: FloatArray) -> FloatArray:
        """(r, D) k with c(z, pivots) k = φ(z) W for the weights of the process.

        Projection asks for the same ones thousands of times, so that the last are remembered.
        """
        known, found = self._cached_weights[0]
        if not np.array_equal(known, weights):
            found = solve_triangular(self.factor, weights[: len(self.pivots)], trans="T", lower=True)
            self._cached_weights[0] = weights.copy(), found
        return found

    @cached_property
    def _cached_weights(self) -> list[tuple[FloatArray, FloatArray]]:
        """The last weights and their kernel weights, replaced in one assignment since threads share it."""
        return [(np.empty(0), np.empty(0))]

    @blas_on_one_thread()  # what threads share out is rounded in another way
    def _whitened(self, values: FloatArray) -> FloatArray:
        """(n, r) values L⁻ᵀ."""
        return np.asarray(solve_triangular(self.factor, values.T, lower=True).T)

    def _pivot_covariances(self, E: FloatArray) -> FloatArray:
        """(n, r) c(E, pivots)."""
        return COVARIANCES[self.recipe.covariance].value(squared_distances(E, self.pivots) / self.length**2)

    def _pivot_covariance_slopes(self, E: FloatArray) -> FloatArray:
        return COVARIANCES[self.recipe.covariance].slope(squared_distances(E, self.pivots) / self.length**2)
