"""Simulated curves in the plane, each with the true curve attached."""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng, simulate
from prinfold.datasets.surface import Map, TrueSurface, polyline, positive
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.validation.parameter_docs import fill_parameter_docs

_CELLS = 1000


@check_kinds
@fill_parameter_docs
def make_spiral(
    n_samples: int = 300,
    noise: float = 0.05,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    radii: tuple[float, float] = (0.2, 1.2),
    whorls: float = 2.0,
    sampling: str = "parameter",
) -> Dataset:
    """The "noisy spiral": x = r(φ) (cos φ, sin φ) with the radius growing linearly over two whorls.

    Meinicke, Klanke, Memisevic and Ritter (2005), section 4.1: 300 points, radius 0.2 to 1.2, Gaussian
    noise of 0.05 in both columns. The paper does not say how the points are spread along the curve; they
    are uniform in the angle here, which puts them closer together near the centre (``sampling="area"``
    spreads them evenly by length).

    Parameters
    ----------
    {n_samples, default=300}
    {noise, default=0.05}
    {noise_kind, default="isotropic"}
    {rng}
    radii : (float, float), default=(0.2, 1.2)
        Radius at the inner and outer end.
    whorls : float, default=2.0
        Number of turns.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the angle φ in radians.
    """
    positive(whorls=whorls)
    inner, outer = radii
    growth = (outer - inner) / (2.0 * np.pi * whorls)

    def point(U: FloatArray) -> FloatArray:
        return np.asarray((inner + growth * U) * _unit(U))

    def jacobian(U: FloatArray) -> FloatArray:
        return np.asarray(growth * _unit(U) + (inner + growth * U) * _unit_derivative(U))[:, :, None]

    surface = TrueSurface("spiral", point, jacobian, Box.of((0.0, 2.0 * np.pi * whorls)), resolution=_CELLS)
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="noisy spiral (Meinicke et al., section 4.1)",
    )


@check_kinds
@fill_parameter_docs
def make_circle(
    n_samples: int = 200,
    noise: float = 0.1,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    radius: float = 1.0,
    concentration: float = 0.0,
    sampling: str = "parameter",
) -> Dataset:
    """A full circle r (cos φ, sin φ); the distance of x to it is ``|‖x‖ − r|``.

    With ``concentration`` κ above 0 rows are spread unevenly, with density ∝ exp(κ cos φ) (von Mises): e^2κ times as
    many at φ = 0 as opposite.

    Parameters
    ----------
    {n_samples, default=200}
    {noise, default=0.1}
    {noise_kind, default="normal"}
    {rng}
    radius : float, default=1.0
        Radius.
    concentration : float, default=0.0
        How unevenly rows are spread; above 0 it takes the place of ``sampling``.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the angle φ in radians.
    """
    positive(radius=radius)
    if not 0.0 <= concentration < np.inf:
        raise InvalidParameterError(f"concentration must be finite and at least 0; got {concentration}.")
    surface = TrueSurface(
        "circle",
        lambda U: radius * _unit(U),
        lambda U: radius * _unit_derivative(U)[:, :, None],
        Box.of((0.0, 2.0 * np.pi), periodic=(True,)),
        lambda X: np.mod(np.arctan2(X[:, 1:], X[:, :1]), 2.0 * np.pi),
    )
    if not concentration:
        return simulate(surface, n_samples, noise, noise_kind, rng, sampling=sampling, description="circle")

    def uneven(n: int, generator: np.random.Generator) -> FloatArray:
        return np.mod(generator.vonmises(0.0, concentration, size=(n, 1)), 2.0 * np.pi)

    return simulate(surface, n_samples, noise, noise_kind, rng, sampling=uneven, description="uneven circle")


@check_kinds
@fill_parameter_docs
def make_half_circle(
    n_samples: int = 100,
    noise: float = 0.1,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    radius: float = 1.0,
    sampling: str = "parameter",
) -> Dataset:
    """The upper half of a circle, r (cos φ, sin φ) with φ in [0, π]: the standard test of a principal curve.

    Points below the diameter are nearest to one of the two ends.

    Parameters
    ----------
    {n_samples, default=100}
    {noise, default=0.1}
    {noise_kind, default="normal"}
    {rng}
    radius : float, default=1.0
        Radius.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the angle φ in radians.
    """
    positive(radius=radius)

    def foot(X: FloatArray) -> FloatArray:
        angle = np.arctan2(X[:, 1], X[:, 0])
        return np.where(angle >= 0, angle, np.where(X[:, 0] >= 0, 0.0, np.pi))[:, None]

    surface = TrueSurface(
        "half circle",
        lambda U: radius * _unit(U),
        lambda U: radius * _unit_derivative(U)[:, :, None],
        Box.of((0.0, np.pi)),
        foot,
    )
    return simulate(surface, n_samples, noise, noise_kind, rng, sampling=sampling, description="half circle")


@check_kinds
@fill_parameter_docs
def make_zigzag(
    n_samples: int = 400,
    noise: float = 0.05,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    n_teeth: int = 4,
    sampling: str = "parameter",
) -> Dataset:
    """A chain of ``n_teeth`` straight strokes up and down between x = −1 and 1, y = ±0.5; exact distances.

    The data of Kégl that McQueen's section 5.1.1 shows are given by a picture only; corners, size and
    noise here are ours. Points are uniform by length.

    Parameters
    ----------
    {n_samples, default=400}
    {noise, default=0.05}
    {noise_kind, default="normal"}
    {rng}
    n_teeth : int, default=4
        Number of strokes.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is arc length.
    """
    positive(n_teeth=n_teeth)
    x = np.linspace(-1.0, 1.0, n_teeth + 1)
    y = np.where(np.arange(n_teeth + 1) % 2 == 0, -0.5, 0.5)
    surface = polyline("zig-zag", np.stack([x, y], axis=1))
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="zig-zag (after McQueen, section 5.1.1)",
    )


@check_kinds
@fill_parameter_docs
def make_star(
    n_samples: int = 500,
    noise: float = 0.03,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    n_points: int = 5,
    sampling: str = "parameter",
) -> Dataset:
    """A star drawn in one stroke, which crosses itself: the polygram that joins every second corner.

    ``n_points`` corners on the unit circle, an odd number: every second corner of an even polygon closes
    the stroke half-way. McQueen (figure 5) gives a picture only; the proportions here are ours. Points are
    uniform by length.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.03}
    {noise_kind, default="normal"}
    {rng}
    n_points : int, default=5
        Number of corners, odd.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is arc length.
    """
    if n_points < 5 or n_points % 2 == 0:
        raise InvalidParameterError(f"A star of one stroke has an odd number of points, at least 5; got {n_points}.")
    angle = 0.5 * np.pi + 2.0 * np.pi * (2 * np.arange(n_points) % n_points) / n_points
    surface = polyline("star", _unit(angle[:, None]), closed=True)
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="star that crosses itself (after McQueen, figure 5)",
    )


_MOST_LOOPS = 10_001
"""Turns of the rolling circle about its own centre, of which each leaves a loop."""


@check_kinds
@fill_parameter_docs
def make_epitrochoid(
    n_samples: int = 500,
    noise: float = 0.03,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    fixed: float = 0.6,
    rolling: float = 0.2,
    arm: float = 0.4,
    sampling: str = "parameter",
) -> Dataset:
    """A closed curve with loops, traced by a point on an arm of a circle that rolls around another.

    With R = ``fixed``, r = ``rolling``, d = ``arm`` and k = (R + r)/r,
    x = (R + r) cos t − d cos kt, y = (R + r) sin t − d sin kt. R/r must be whole for the curve to close
    after one turn. McQueen (figure 5) gives a picture only; the lengths here are ours: three loops.

    Parameters
    ----------
    {n_samples, default=500}
    {noise, default=0.03}
    {noise_kind, default="normal"}
    {rng}
    fixed : float, default=0.6
        Radius R of the circle that stays.
    rolling : float, default=0.2
        Radius r of the circle that rolls.
    arm : float, default=0.4
        Distance d of the tracing point from the centre of the rolling circle.
    {sampling.curve, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is the parameter t.
    """
    positive(fixed=fixed, rolling=rolling)
    k = (fixed + rolling) / rolling
    if k > _MOST_LOOPS:
        raise InvalidParameterError(f"fixed / rolling must be at most {_MOST_LOOPS - 1}, a loop each; got {k - 1:g}.")
    if not np.isclose(k, round(k)):
        raise InvalidParameterError(f"fixed / rolling must be a whole number; got {fixed / rolling:g}.")
    k = round(k)
    reach = fixed + rolling
    surface = TrueSurface(
        "epitrochoid",
        lambda U: reach * _unit(U) - arm * _unit(k * U),
        lambda U: (reach * _unit_derivative(U) - arm * k * _unit_derivative(k * U))[:, :, None],
        Box.of((0.0, 2.0 * np.pi), periodic=(True,)),
        resolution=_CELLS,
    )
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="epitrochoid with loops (after McQueen, figure 5)",
    )


@check_kinds
@fill_parameter_docs
def make_thesis_curve(
    n_samples: int = 59,
    noise: float = 0.1,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    sampling: str = "grid",
) -> Dataset:
    """The bent line y = x + 1.25 sin 2x of Svensén's thesis, example 3.1 (also its figure 6.3).

    59 equidistant values of x in [0.15, 3.05] and spherical Gaussian noise of 0.1.

    Parameters
    ----------
    {n_samples, default=59}
    {noise, default=0.1}
    {noise_kind, default="isotropic"}
    {rng}
    {sampling.curve, default="grid"}

    Returns
    -------
    Dataset
        ``latent`` is x.
    """
    surface = _graph("thesis curve", lambda x: x + 1.25 * np.sin(2 * x), lambda x: 1 + 2.5 * np.cos(2 * x), 0.15, 3.05)
    return simulate(
        surface, n_samples, noise, noise_kind, rng, sampling=sampling, description="bent line (Svensén, example 3.1)"
    )


def _graph(name: str, height: Map, slope: Map, low: float, high: float) -> TrueSurface:
    """The graph (x, f(x)) over an interval."""
    return TrueSurface(
        name,
        lambda U: np.hstack([U, height(U)]),
        lambda U: np.stack([np.ones_like(U), slope(U)], axis=1),
        Box.of((low, high)),
        resolution=_CELLS,
    )


def _unit(angle: FloatArray) -> FloatArray:
    """(n, 1) angles to (n, 2) unit vectors."""
    return np.hstack([np.cos(angle), np.sin(angle)])


def _unit_derivative(angle: FloatArray) -> FloatArray:
    """Derivatives of :func:`_unit`: the same vectors a quarter turn on."""
    return np.hstack([-np.sin(angle), np.cos(angle)])
