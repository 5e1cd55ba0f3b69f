"""Simulated curves that return to where they began, in three dimensions or more."""

from __future__ import annotations

from math import gcd

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import NOISES, Dataset, Rng, random_frame, simulate
from prinfold.datasets.surface import TrueSurface, columns, option, positive
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs

_CELLS = 1000
_ANGLE = Box.of((0.0, 2.0 * np.pi), periodic=(True,))


@check_kinds
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


@check_kinds
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


_WIDEST_VARIATION = 10.0
"""Largest standard deviation of the logarithm of a column's scale: beyond, passes have no curve in common."""


@check_kinds
@fill_parameter_docs
def make_cycles(
    n_samples: int = 1000,
    noise: float = 0.02,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    n_cycles: int = 10,
    variation: float = 0.1,
    n_features: int = 30,
    n_harmonics: int = 3,
) -> Dataset:
    """Several passes round one closed curve, each begun anywhere and a little shifted and stretched.

    The curve is that of :func:`make_closed_curve`, with harmonic h weakened by h^(−3/2), a unit from the middle on
    average. In a pass rows go round once at even steps. Column d of it is multiplied by exp(v ε), and v ε′ / √D is
    added, with normal numbers ε and ε′ of its own.

    Parameters
    ----------
    n_samples : int, default=1000
        Rows, of all passes together.
    noise : float, default=0.02
        Standard deviation of the noise in each direction.
    {noise_kind, default="isotropic"}
    rng : int or numpy.random.Generator, optional
        Seed of the shape, the passes and the rows.
    n_cycles : int, default=10
        Passes.
    variation : float, default=0.1
        How much passes differ, v.
    n_features : int, default=30
        Columns, two or more.
    n_harmonics : int, default=3
        Highest frequency.

    Returns
    -------
    Dataset
        ``latent`` is the phase, ``surface`` the curve that all passes share, ``clean`` the rows on their own passes and
        ``lengths`` are the rows of each pass, which follow each other.
    """
    if n_features < 2 or n_harmonics < 1 or not 1 <= n_cycles <= n_samples:
        raise InvalidParameterError(
            "cycles need two columns, one harmonic and one pass at least, and a row for each pass; got "
            f"n_features={n_features}, n_harmonics={n_harmonics}, n_cycles={n_cycles}, n_samples={n_samples}"
        )
    if not (0.0 <= noise < np.inf and 0.0 <= variation <= _WIDEST_VARIATION):
        raise InvalidParameterError(
            f"noise and variation, which is at most {_WIDEST_VARIATION:g}, must be finite and at least 0; "
            f"got noise={noise}, variation={variation}"
        )
    check_draws(n_samples, n_features, "n_samples")
    disturb, generator = option(NOISES, "noise_kind", noise_kind), np.random.default_rng(rng)
    surface = _harmonic_curve("cycles", n_features, np.arange(1, n_harmonics + 1) ** -1.5, generator)
    ends = np.linspace(0, n_samples, n_cycles + 1).astype(np.int64)
    lengths: IntArray = ends[1:] - ends[:-1]
    begin = np.repeat(generator.uniform(0.0, 2.0 * np.pi, n_cycles), lengths)
    share = np.concatenate([np.arange(n) / n for n in lengths])
    latent = ((begin + 2.0 * np.pi * share) % (2.0 * np.pi))[:, None]
    stretch, shift = variation * generator.normal(size=(2, n_cycles, n_features))
    stretched = surface.point(latent) * np.exp(np.repeat(stretch, lengths, axis=0))
    clean = stretched + np.repeat(shift, lengths, axis=0) / np.sqrt(n_features)
    names = tuple(f"x{j}" for j in range(n_features))
    X = clean + disturb(surface, latent, noise, generator)
    return Dataset(X, latent, clean, surface, feature_names=names, lengths=lengths, description=surface.name)


def _harmonic_curve(name: str, n_features: int, amplitude: FloatArray, rng: np.random.Generator) -> TrueSurface:
    """A closed curve with random harmonics of the given amplitudes, a unit from the middle on average."""
    h = np.arange(1, len(amplitude) + 1)
    coefficients = rng.normal(size=(2, len(h), n_features)) * amplitude[:, None]
    a, b = coefficients / np.sqrt(0.5 * np.square(coefficients).sum())
    return TrueSurface(
        name,
        lambda U: np.cos(U * h) @ a + np.sin(U * h) @ b,
        lambda U: ((np.cos(U * h) * h) @ b - (np.sin(U * h) * h) @ a)[:, :, None],
        _ANGLE,
        resolution=_CELLS,
    )
