"""Simulated curves that return to where they began, in three dimensions or more."""

from __future__ import annotations

from math import gcd

import numpy as np

from prinfold._typing import FloatArray
from prinfold.datasets.dataset import Dataset, Rng, random_frame, simulate
from prinfold.datasets.surface import TrueSurface, columns, positive
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.validation.parameter_docs import fill_parameter_docs

_CELLS = 1000
_ANGLE = Box.of((0.0, 2.0 * np.pi), periodic=(True,))


@fill_parameter_docs
def make_knot(
    n_samples: int = 500,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    windings: tuple[int, int] = (2, 3),
    radii: tuple[float, float] = (1.0, 0.5),
    n_features: int | None = None,
    sampling: str = "parameter",
) -> Dataset:
    """A closed curve that winds p times round a torus the long way and q times the short way; (2, 3) is a trefoil.

    x = ((R + r cos qt) cos pt, (R + r cos qt) sin pt, r sin qt). With p and q above 1 it is knotted: no motion in
    space makes it a circle, and its projection onto any plane crosses itself.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    {rng}
    windings : (int, int), default=(2, 3)
        The numbers p and q, without a common divisor.
    radii : (float, float), default=(1.0, 0.5)
        Radii R > r of the torus.
    n_features : int, optional
        Columns, if more than 3; a random isometry drawn from ``rng`` puts the curve there.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the parameter t.
    """
    (p, q), (R, r) = windings, radii
    positive(R=R, r=r, p=p, q=q)
    if r >= R or gcd(p, q) != 1:
        raise InvalidParameterError(
            f"a knot needs radii R > r and windings without a common divisor; got radii={radii}, windings={windings}"
        )

    def point(U: FloatArray) -> FloatArray:
        t, reach = U[:, 0], R + r * np.cos(q * U[:, 0])
        return np.stack([reach * np.cos(p * t), reach * np.sin(p * t), r * np.sin(q * t)], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        t, reach, slope = U[:, 0], R + r * np.cos(q * U[:, 0]), -q * r * np.sin(q * U[:, 0])
        c, s = np.cos(p * t), np.sin(p * t)
        return columns((slope * c - p * reach * s, slope * s + p * reach * c, q * r * np.cos(q * t)))

    surface = TrueSurface(f"({p}, {q}) torus knot", point, jacobian, _ANGLE, resolution=_CELLS)
    generator = np.random.default_rng(rng)
    if n_features is not None:
        surface = surface.embedded(random_frame(n_features, 3, generator))
    return simulate(surface, n_samples, noise, noise_kind, generator, sampling=sampling)


@fill_parameter_docs
def make_closed_curve(
    n_samples: int = 500,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    n_features: int = 6,
    n_harmonics: int = 4,
    sampling: str = "parameter",
) -> Dataset:
    """A closed curve of random shape: harmonics as of an epitrochoid, in any number of columns.

    Column d is Σ_h a_dh cos ht + b_dh sin ht over h = 1 … H, with a and b drawn from ``rng`` as normal numbers over
    √(H D), so that rows are about a unit from the middle. In two columns it crosses itself, in many it hardly can.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    rng : int or numpy.random.Generator, optional
        Seed of the shape and of the rows.
    n_features : int, default=6
        Columns, two or more.
    n_harmonics : int, default=4
        Highest frequency H.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the parameter t.
    """
    if n_features < 2 or n_harmonics < 1:
        raise InvalidParameterError(
            f"a closed curve needs two columns and one harmonic at least; got {n_features} and {n_harmonics}"
        )
    generator = np.random.default_rng(rng)
    a, b = generator.normal(size=(2, n_harmonics, n_features)) / np.sqrt(n_harmonics * n_features)
    h = np.arange(1, n_harmonics + 1)
    surface = TrueSurface(
        "closed curve",
        lambda U: np.cos(U * h) @ a + np.sin(U * h) @ b,
        lambda U: ((np.cos(U * h) * h) @ b - (np.sin(U * h) * h) @ a)[:, :, None],
        _ANGLE,
        resolution=_CELLS,
    )
    return simulate(surface, n_samples, noise, noise_kind, generator, sampling=sampling)
