"""Basis functions on a latent space: Gaussian bumps with linear terms and a bias, or harmonics.

A basis has four verbs: ``bind`` places it on a latent space; the bound basis then gives ``features``
(n, M), their ``gradient`` (n, M, Q), and ``penalized`` (M,), which of its weights are penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import ClassVar, Protocol

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.basis_maps.product_grams import Factors
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds
from prinfold.latent import LatentSpace, Lattice, Sphere, grid
from prinfold.latent.base import IS_LATENT
from prinfold.numerics.distances import nearest_squared_distance, squared_distances
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, axis_counts, check_settings, flag, integer, real

_REGULARIZATION = 0.1
"""Constant λ by default: with ``width=1`` it held up best over simulated shapes and real tables alike."""

_MOST_CENTERS = 2**14
"""Most centres: a map solves for as many weights, with a matrix of 2 GB. More is a mistake or a hostile file."""


_GAUSSIAN_SETTINGS = {
    "shape": axis_counts,
    "width": real(0, above=True),
    "linear": flag,
    "scale": real(0, above=True),
    "penalize_bias": flag,
}


BASIS = Constraint(lambda v: hasattr(v, "bind"), "a basis object")
"""Any object with a ``bind`` method."""


class BoundBasis(Protocol):
    """Basis functions φ₁ … φ_M on one latent space; the last is the bias."""

    @property
    def penalized(self) -> BoolArray:
        """(M,) True where a weight penalty applies."""

    @property
    def detail(self) -> float:
        """Latent length over which the basis functions change."""

    def features(self, Z: FloatArray) -> FloatArray:
        """(n, M) φ_m(z)."""

    def gradient(self, Z: FloatArray) -> FloatArray:
        """(n, M, Q) ∂φ_m/∂z."""

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        """(n, D, Q) Σ_m ∂φ_m/∂z w_m, without ever holding the gradients of all basis functions."""


@dataclass(frozen=True)
class BasisCapabilities:
    """Abilities that some bound bases declare as ``capabilities``; None where a basis does not have one.

    ``factors`` are functions of one axis each at the nodes of the axes, where the basis functions are products of such.
    ``evaluator`` makes φ(z) W of weights W a function of z, by a shorter way than the features. ``unexplained`` (n,) is
    the share of the prior variance that is left at z when all nodes are known.
    """

    factors: Callable[[tuple[LatentSpace, ...]], list[Factors]] | None = None
    evaluator: Callable[[FloatArray], Callable[[FloatArray], FloatArray]] | None = None
    unexplained: Callable[[FloatArray], FloatArray] | None = None


class Basis(Protocol):
    """A recipe for basis functions, independent of the latent space until bound."""

    def bind(self, latent: LatentSpace) -> BoundBasis:
        """Place the basis functions on ``latent``."""


def default_regularization(basis: Basis) -> float:
    """λ of a model that leaves it open; a basis may declare one of its own."""
    return float(getattr(basis, "default_regularization", _REGULARIZATION))


def carries_prior(basis: object) -> bool:
    """Whether a basis brings a prior on its weights along, as a process does; it declares that it does."""
    return bool(getattr(basis, "carries_prior", False))


@storable
@check_verbs(latent=IS_LATENT)
@dataclass(frozen=True)
class GaussianBasis:
    """Gaussian bumps on a lattice of centres, with linear terms and a bias: thesis (3.9).

    Parameters
    ----------
    shape : int or tuple of int
        Centres along each axis; the number of centres on a sphere.
    width : float, default=1.0
        Standard deviation of a bump in units of the spacing of the centres.
    linear : bool, default=True
        Whether the embedded coordinates themselves are basis functions.
    scale : float, default=1.0
        Factor on the centres of open axes; ``n / (n - 1)`` puts the outermost beyond the edge.
    penalize_bias : bool, default=False
        Whether a weight penalty holds down the bias too.
    """

    _kinds: ClassVar[Kinds] = _GAUSSIAN_SETTINGS

    shape: int | tuple[int, ...]
    width: float = 1.0
    linear: bool = True
    scale: float = 1.0
    penalize_bias: bool = False

    def __post_init__(self) -> None:
        check_settings(self, _GAUSSIAN_SETTINGS)
        plain = tuple(map(int, self.shape)) if isinstance(self.shape, tuple | list) else int(self.shape)
        object.__setattr__(self, "shape", plain)
        if not (1e-6 <= self.width <= 1e6 and self.scale <= 1e6):  # squares of anything else mean nothing
            raise InvalidParameterError(
                f"width must lie between 1e-6 and 1e6 and scale be at most 1e6, got width={self.width:g} and "
                f"scale={self.scale:g}; a width near 1 suits most surfaces"
            )
        _refuse_too_many(self, prod(plain) if isinstance(plain, tuple) else plain)

    def bind(self, latent: LatentSpace) -> BoundGaussianBasis:
        """Place the centres; the distance between neighbouring ones sets the unit of ``width``."""
        centers = latent.embed(_center_points(latent, self))
        spacing = np.sqrt(np.mean(nearest_squared_distance(centers))) if len(centers) > 1 else 2.0
        return BoundGaussianBasis(latent, centers, float(self.width * spacing), self.linear, self.penalize_bias)

    def per_axis(self, latent: LatentSpace) -> tuple[int, ...]:
        """Centres along each axis of ``latent``."""
        shape = (self.shape,) * latent.n_columns if isinstance(self.shape, int) else self.shape
        if len(shape) != latent.n_columns:
            raise InvalidParameterError(
                f"the basis has {len(shape)} axes but the latent space has {latent.n_columns}; "
                "give one number of basis functions per latent axis"
            )
        _refuse_too_many(self, prod(shape))
        return shape


@singledispatch
def _center_points(latent: LatentSpace, basis: GaussianBasis) -> FloatArray:
    """(M, Q) places of the centres, in the way that the kind of latent space has them; by default over its box."""
    low, high = latent.domain.extent.lower, latent.domain.extent.upper
    # An axis along which the points do not vary has room for one centre.
    shape = (n if wide else 1 for n, wide in zip(basis.per_axis(latent), high > low, strict=True))
    return np.asarray((low + high) / 2 + basis.scale * grid(*shape).nodes * (high - low) / 2)


@_center_points.register
def _(latent: Lattice, basis: GaussianBasis) -> FloatArray:
    centers = Lattice(basis.per_axis(latent), latent.periodic).nodes
    return np.asarray(np.where(latent.periodic, centers, basis.scale * centers))


@_center_points.register
def _(latent: Sphere, basis: GaussianBasis) -> FloatArray:
    n_centers = int(np.prod(basis.shape))
    if n_centers < 4:
        raise InvalidParameterError(f"a basis on a sphere needs at least 4 functions, got {basis.shape}")
    return Sphere(n_centers).nodes


@dataclass(frozen=True)
class BoundGaussianBasis:
    """Gaussian bumps at ``centers`` (embedded) of standard deviation ``width``, then linear terms, then 1."""

    latent: LatentSpace
    centers: FloatArray
    width: float
    linear: bool
    penalize_bias: bool

    @property
    def capabilities(self) -> BasisCapabilities:
        return BasisCapabilities(factors=self.factors)

    @property
    def detail(self) -> float:
        return self.width

    @property
    def penalized(self) -> BoolArray:
        n_smooth = len(self.centers) + (self.centers.shape[1] if self.linear else 0)
        return np.append(np.ones(n_smooth, dtype=bool), self.penalize_bias)

    def features(self, Z: FloatArray) -> FloatArray:
        E = self.latent.embed(Z)
        parts = [gaussian_features(E, self.centers, self.width), np.ones((len(Z), 1))]
        return np.concatenate([parts[0], E, parts[1]] if self.linear else parts, axis=1)

    def factors(self, axes: tuple[LatentSpace, ...]) -> list[Factors]:
        """One-axis functions at the nodes of a product of ``axes``: a bump is a product of bumps along each."""
        found, n_bumps, n_embedded = [], *self.centers.shape
        column = 0
        for axis in axes:
            E = axis.embed(axis.nodes)
            own = slice(column, column := column + E.shape[1])
            places, which = np.unique(self.centers[:, own], axis=0, return_inverse=True)
            values = np.hstack([gaussian_features(E, places, self.width), E, np.ones((len(E), 1))])
            chosen = np.full(n_bumps + (n_embedded if self.linear else 0) + 1, values.shape[1] - 1)
            chosen[:n_bumps] = which.reshape(-1)
            if self.linear:
                chosen[n_bumps:-1][own] = len(places) + np.arange(E.shape[1])
            found.append(Factors(values, chosen))
        return found

    def gradient(self, Z: FloatArray) -> FloatArray:
        E, J = self.latent.embed(Z), self.latent.embed_jacobian(Z)
        bumps = gaussian_features_gradient(E, self.centers, self.width) @ J
        bias = np.zeros((len(Z), 1, Z.shape[1]))
        return np.concatenate([bumps, J, bias] if self.linear else [bumps, bias], axis=1)

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        # −φ_m (E − μ_m)/σ² summed over m splits into products of φ alone: (φ (μ w) − E (φ w))/σ².
        E, n_bumps, n_embedded = self.latent.embed(Z), len(self.centers), self.centers.shape[1]
        phi = gaussian_features(E, self.centers, self.width)
        bumps, slope = weights[:n_bumps], np.empty((len(Z), weights.shape[1], n_embedded))
        value = phi @ bumps
        for axis in range(n_embedded):
            along = phi @ (self.centers[:, axis, None] * bumps)
            slope[:, :, axis] = (along - E[:, axis, None] * value) / self.width**2
        if self.linear:
            slope += weights[n_bumps : n_bumps + n_embedded].T
        return slope @ self.latent.embed_jacobian(Z)


@storable
@check_verbs(latent=IS_LATENT)
@dataclass(frozen=True)
class HarmonicBasis:
    """cos hθ and sin hθ for h = 1 … ``n_harmonics`` with a bias, on a circle.

    Parameters
    ----------
    n_harmonics : int
        Highest frequency round the circle.
    penalize_bias : bool, default=False
        Whether a weight penalty holds down the bias too.
    """

    _kinds: ClassVar[Kinds] = {"n_harmonics": integer(1), "penalize_bias": flag}

    n_harmonics: int
    penalize_bias: bool = False

    def __post_init__(self) -> None:
        check_settings(self, {"n_harmonics": integer(1), "penalize_bias": flag})
        _refuse_too_many(self, self.n_harmonics)

    def bind(self, latent: LatentSpace) -> BoundHarmonicBasis:
        """Check that the latent space is a circle."""
        grid = latent.node_grid
        if grid is None or grid.periodic != (True,):
            raise InvalidParameterError(Message("a harmonic basis needs a circle", Advice("latent", "circle")))
        return BoundHarmonicBasis(self.n_harmonics, self.penalize_bias)


@dataclass(frozen=True)
class BoundHarmonicBasis:
    """Harmonics of one angle, then 1."""

    n_harmonics: int
    penalize_bias: bool

    @property
    def detail(self) -> float:
        return 1.0 / self.n_harmonics

    @property
    def penalized(self) -> BoolArray:
        return np.append(np.ones(2 * self.n_harmonics, dtype=bool), self.penalize_bias)

    def features(self, Z: FloatArray) -> FloatArray:
        return np.append(harmonic_features(Z[:, 0], self.n_harmonics), np.ones((len(Z), 1)), axis=1)

    def gradient(self, Z: FloatArray) -> FloatArray:
        gradient = harmonic_features_gradient(Z[:, 0], self.n_harmonics)
        return np.append(gradient, np.zeros((len(Z), 1)), axis=1)[:, :, None]

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        return (self.gradient(Z)[:, :, 0] @ weights)[:, :, None]


def _refuse_too_many(basis: object, count: int) -> None:
    if count > _MOST_CENTERS:
        raise InvalidParameterError(
            f"{basis} has {count} basis functions, more than the {_MOST_CENTERS} allowed; ask for fewer"
        )


# ------------------------------------------------------------------------------------------------ basis matrices
#
# All are functions of the *embedded* latent coordinate E (n, e): flat axes stand for themselves, an angle θ for
# (cos θ, sin θ), a point of the sphere for its unit vector. A Gaussian of the distance in that embedding is then smooth
# across every seam: on a circle it is the von Mises bump exp((cos(θ − μ) − 1)/σ²).


def gaussian_features(E: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """φ_m(E) = exp(−‖E − μ_m‖² / 2σ²), the non-linear part of thesis (3.9)."""
    features = squared_distances(E, centers)
    features *= -0.5 / width**2
    return np.asarray(np.exp(features, out=features))


def gaussian_features_gradient(E: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """(n, M, e) ∂φ_m/∂E = −φ_m (E − μ_m)/σ², thesis (4.6)."""
    features = gaussian_features(E, centers, width)
    offset = E[:, None, :] - centers[None, :, :]
    offset *= (features / -(width**2))[:, :, None]
    return np.asarray(offset)


def harmonic_features(angle: FloatArray, n_harmonics: int) -> FloatArray:
    """(n, 2H) cos hθ and sin hθ for h = 1 … H, interleaved."""
    phase = angle[:, None] * np.arange(1, n_harmonics + 1)
    return np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(len(angle), -1)


def harmonic_features_gradient(angle: FloatArray, n_harmonics: int) -> FloatArray:
    """(n, 2H) derivative of :func:`harmonic_features` with respect to θ."""
    order = np.arange(1, n_harmonics + 1)
    phase = angle[:, None] * order
    return np.stack([-order * np.sin(phase), order * np.cos(phase)], axis=2).reshape(len(angle), -1)
