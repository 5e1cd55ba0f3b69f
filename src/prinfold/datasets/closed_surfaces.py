"""Simulated surfaces without an edge, in three dimensions or more."""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng, random_frame, simulate
from prinfold.datasets.surface import TrueSurface, columns, option, positive
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.validation.parameter_docs import fill_parameter_docs


@check_kinds
@fill_parameter_docs
def make_sphere(
    n_samples: int = 500,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    radius: float | tuple[float, float, float] = 1.0,
    n_features: int | None = None,
    sampling: str = "parameter",
) -> Dataset:
    """A sphere r u, u a unit vector in 3-D; the distance of x to it is ``|‖x‖ − r|``.

    Three radii make an ellipsoid (a u₁, b u₂, c u₃): a sphere squashed or drawn out, on which rows uniform in u are
    not uniform by area. ``n_features`` above 3 puts it isometrically into more dimensions by a random rotation drawn
    from ``rng``; ``None`` leaves it where it is. Latent coordinates are unit vectors, uniform over the sphere.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    {rng}
    radius : float or (float, float, float), default=1.0
        Radius, or the half-axes of an ellipsoid.
    {n_features}
    {sampling.surface, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the unit vector u.
    """
    try:
        radii = np.broadcast_to(np.asarray(radius, dtype=float), (3,))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"radius must be one number or three; got {radius!r}.") from error
    positive(radius=float(radii.min()), largest_radius=float(radii.max()))
    domain, is_round = UnitSphere(), bool((radii == radii[0]).all())
    surface = TrueSurface(
        "sphere" if is_round else "ellipsoid",
        lambda U: U * radii,
        lambda U: np.broadcast_to(np.diag(radii), (len(U), 3, 3)),
        domain,
        domain.retract if is_round else None,
        resolution=32,
    )
    generator = np.random.default_rng(rng)
    surface = _rotate(surface, n_features, generator)
    return simulate(surface, n_samples, noise, noise_kind, generator, sampling=sampling)


@check_kinds
@fill_parameter_docs
def make_torus(
    n_samples: int = 1000,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    kind: str = "ring",
    radii: tuple[float, float] = (1.0, 0.4),
    n_features: int | None = None,
    sampling: str = "parameter",
) -> Dataset:
    """A torus with two angles (φ, θ) as latent coordinates.

    ``kind="ring"`` is the ring in 3-D, ((R + r cos θ) cos φ, (R + r cos θ) sin φ, r sin θ) with R > r;
    ``"flat"`` the product of two circles in 4-D, (R cos φ, R sin φ, r cos θ, r sin θ), which has the metric
    of the plane. Distances are in closed form. ``n_features`` above 3 or 4 puts it isometrically into more
    dimensions by a random rotation drawn from ``rng``; ``None`` leaves it where it is.

    Parameters
    ----------
    {n_samples, default=1000}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    {rng}
    kind : {"ring", "flat"}, default="ring"
        Which torus.
    radii : (float, float), default=(1.0, 0.4)
        Radii R and r.
    {n_features}
    {sampling.surface, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is (φ, θ).
    """
    positive(R=radii[0], r=radii[1])
    surface = option(TORI, "kind", kind)(*radii)
    generator = np.random.default_rng(rng)
    surface = _rotate(surface, n_features, generator)
    return simulate(surface, n_samples, noise, noise_kind, generator, sampling=sampling)


@check_kinds
@fill_parameter_docs
def make_cylinder(
    n_samples: int = 500,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    radius: float = 1.0,
    height: float = 2.0,
    n_features: int | None = None,
    sampling: str = "parameter",
) -> Dataset:
    """A cylinder (r cos φ, r sin φ, h z/2), open at its ends z = ±1; distances are in closed form.

    ``n_features`` above 3 puts it isometrically into more dimensions by a random rotation drawn from ``rng``; ``None``
    leaves it where it is.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    {rng}
    radius : float, default=1.0
        Radius r.
    height : float, default=2.0
        Distance h between the ends.
    {n_features}
    {sampling.surface, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is (φ, z).
    """
    positive(radius=radius, height=height)

    def point(U: FloatArray) -> FloatArray:
        return np.stack([radius * np.cos(U[:, 0]), radius * np.sin(U[:, 0]), 0.5 * height * U[:, 1]], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        a, zero = U[:, 0], np.zeros(len(U))
        return columns((-radius * np.sin(a), radius * np.cos(a), zero), (zero, zero, np.full(len(U), 0.5 * height)))

    domain = Box.of((0.0, 2.0 * np.pi), (-1.0, 1.0), periodic=(True, False))

    def foot(X: FloatArray) -> FloatArray:
        return domain.retract(np.stack([np.arctan2(X[:, 1], X[:, 0]), 2.0 * X[:, 2] / height], axis=1))

    surface = TrueSurface("cylinder", point, jacobian, domain, foot)
    generator = np.random.default_rng(rng)
    surface = _rotate(surface, n_features, generator)
    return simulate(surface, n_samples, noise, noise_kind, generator, sampling=sampling)


_ANGLES = Box.of((0.0, 2.0 * np.pi), (0.0, 2.0 * np.pi), periodic=(True, True))


def _ring_torus(R: float, r: float) -> TrueSurface:
    if r >= R:
        # The tube would meet itself in the middle, where the nearest point is no longer where the angles say.
        raise InvalidParameterError(f"A ring torus needs radii R > r; got {R} and {r}.")

    def point(U: FloatArray) -> FloatArray:
        (a, b), reach = U.T, R + r * np.cos(U[:, 1])
        return np.stack([reach * np.cos(a), reach * np.sin(a), r * np.sin(b)], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        (a, b), reach = U.T, R + r * np.cos(U[:, 1])
        ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
        return columns((-reach * sa, reach * ca, np.zeros_like(a)), (-r * sb * ca, -r * sb * sa, r * cb))

    def foot(X: FloatArray) -> FloatArray:
        axial = np.hypot(X[:, 0], X[:, 1]) - R
        return _ANGLES.retract(np.stack([np.arctan2(X[:, 1], X[:, 0]), np.arctan2(X[:, 2], axial)], axis=1))

    return TrueSurface("ring torus", point, jacobian, _ANGLES, foot)


def _flat_torus(R: float, r: float) -> TrueSurface:
    def point(U: FloatArray) -> FloatArray:
        a, b = U.T
        return np.stack([R * np.cos(a), R * np.sin(a), r * np.cos(b), r * np.sin(b)], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        a, b = U.T
        zero = np.zeros_like(a)
        return columns((-R * np.sin(a), R * np.cos(a), zero, zero), (zero, zero, -r * np.sin(b), r * np.cos(b)))

    def foot(X: FloatArray) -> FloatArray:
        return _ANGLES.retract(np.stack([np.arctan2(X[:, 1], X[:, 0]), np.arctan2(X[:, 3], X[:, 2])], axis=1))

    return TrueSurface("flat torus", point, jacobian, _ANGLES, foot)


#: The two tori.
TORI = {"ring": _ring_torus, "flat": _flat_torus}


def _rotate(surface: TrueSurface, n_features: int | None, rng: np.random.Generator) -> TrueSurface:
    if n_features is None:
        return surface
    return surface.embedded(random_frame(n_features, surface.n_features, rng))
