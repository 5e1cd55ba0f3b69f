"""Simulated sheets in space, each with the true surface attached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng, simulate
from prinfold.datasets.surface import TrueSurface, columns, option
from prinfold.geometry.domain import Box
from prinfold.validation.parameter_docs import fill_parameter_docs


class CorkscrewReading(NamedTuple):
    """One way to read the corkscrew: number of half turns per unit of length, and the range of h."""

    twist: float
    low: float
    high: float


#: Section 6 of the kernel map manifolds paper as printed, and the reading under which its table 1 comes out.
CORKSCREW_READINGS = {
    "printed": CorkscrewReading(1 / 20, 0.0, 40.0),
    "conjectured": CorkscrewReading(1 / 40, -20.0, 20.0),
}
#: Heights of the swiss roll under the same two readings.
SWISS_ROLL_READINGS = {"printed": 20.0, "conjectured": 40.0}


@check_kinds
@fill_parameter_docs
def make_corkscrew(
    n_samples: int = 1000,
    noise: float = 1.0,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    reading: str = "printed",
    sampling: str = "parameter",
) -> Dataset:
    """The corkscrew s(l, h) = (l, h sin απl, h cos απl) of Gerber, Tasdizen and Whitaker (2009), section 6.

    ``reading="printed"`` is what the paper says: α = 1/20 and l, h uniform on [0, 40]. Its table 1 does not
    come out so; with ``"conjectured"``, α = 1/40 and h on [−20, 20], it nearly does. The paper uses noise
    orthogonal to the surface with standard deviation 0, 1 and 2.

    Parameters
    ----------
    {n_samples, default=1000}
    {noise, default=1.0}
    {noise_kind, default="normal"}
    {rng}
    reading : {"printed", "conjectured"}, default="printed"
        What the paper says, or the reading under which its table comes out.
    {sampling.surface, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is (l, h).
    """
    twist, low, high = option(CORKSCREW_READINGS, "reading", reading)
    turn = twist * np.pi

    def point(U: FloatArray) -> FloatArray:
        length, h = U.T
        return np.stack([length, h * np.sin(turn * length), h * np.cos(turn * length)], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        length, h = U.T
        s, c = np.sin(turn * length), np.cos(turn * length)
        zero = np.zeros_like(h)
        return columns((np.ones_like(h), turn * h * c, -turn * h * s), (zero, s, c))

    surface = TrueSurface("corkscrew", point, jacobian, Box.of((0.0, 40.0), (low, high)))
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="corkscrew (Gerber et al., section 6)",
    )


@check_kinds
@fill_parameter_docs
def make_swiss_roll(
    n_samples: int = 1000,
    noise: float = 0.5,
    noise_kind: str = "normal",
    rng: Rng = None,
    *,
    reading: str = "printed",
    sampling: str = "parameter",
) -> Dataset:
    """The swiss roll s(r, h) = (r sin r, h, r cos r) of Gerber, Tasdizen and Whitaker (2009), section 6.

    r is uniform on [1, 4π], h on [0, 20] (``reading="printed"``) or [0, 40] (``"conjectured"``; see
    :func:`make_corkscrew`). The paper uses orthogonal noise of standard deviation 0 and 0.5.

    Parameters
    ----------
    {n_samples, default=1000}
    {noise, default=0.5}
    {noise_kind, default="normal"}
    {rng}
    reading : {"printed", "conjectured"}, default="printed"
        What the paper says, or the reading under which its table comes out.
    {sampling.surface, default="parameter"}

    Returns
    -------
    Dataset
        ``latent`` is (r, h).
    """
    height = option(SWISS_ROLL_READINGS, "reading", reading)

    def point(U: FloatArray) -> FloatArray:
        r, h = U.T
        return np.stack([r * np.sin(r), h, r * np.cos(r)], axis=1)

    def jacobian(U: FloatArray) -> FloatArray:
        r = U[:, 0]
        s, c = np.sin(r), np.cos(r)
        one, zero = np.ones_like(r), np.zeros_like(r)
        return columns((s + r * c, zero, c - r * s), (zero, one, zero))

    surface = TrueSurface("swiss roll", point, jacobian, Box.of((1.0, 4.0 * np.pi), (0.0, height)))
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="swiss roll (Gerber et al., section 6)",
    )


@check_kinds
@fill_parameter_docs
def make_ridge(
    n_samples: int = 400,
    noise: float = 0.1,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    sampling: str = "grid",
) -> Dataset:
    """The ridge z = tanh 6x over [−1, 1]² of Svensén's thesis, example 4.1: a 20 × 20 grid, noise 0.1.

    Parameters
    ----------
    {n_samples, default=400}
    {noise, default=0.1}
    {noise_kind, default="isotropic"}
    {rng}
    {sampling.surface, default="grid"}

    Returns
    -------
    Dataset
        ``latent`` is (x, y).
    """

    def point(U: FloatArray) -> FloatArray:
        return np.column_stack([U, np.tanh(6.0 * U[:, 0])])

    def jacobian(U: FloatArray) -> FloatArray:
        slope = 6.0 / np.cosh(6.0 * U[:, 0]) ** 2
        return _graph_columns(slope, np.zeros_like(slope))

    surface = TrueSurface("ridge", point, jacobian, Box.of((-1.0, 1.0), (-1.0, 1.0)))
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="ridge tanh 6x (Svensén, example 4.1)",
    )


@check_kinds
@fill_parameter_docs
def make_thesis_surface(
    n_samples: int = 400,
    noise: float = 0.2,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    sampling: str = "grid",
) -> Dataset:
    """The surface z = (1.5 x³ − x) + 0.25 cos 2y of Svensén's thesis, section 5.4.

    A 20 × 20 grid over x in [−1, 1] and y in [−2, 2] with spherical noise of 0.2; the thesis's test set is
    a 32 × 32 grid (``n_samples=1024``).

    Parameters
    ----------
    {n_samples, default=400}
    {noise, default=0.2}
    {noise_kind, default="isotropic"}
    {rng}
    {sampling.surface, default="grid"}

    Returns
    -------
    Dataset
        ``latent`` is (x, y).
    """

    def point(U: FloatArray) -> FloatArray:
        x, y = U.T
        return np.column_stack([U, 1.5 * x**3 - x + 0.25 * np.cos(2.0 * y)])

    def jacobian(U: FloatArray) -> FloatArray:
        x, y = U.T
        return _graph_columns(4.5 * x**2 - 1.0, -0.5 * np.sin(2.0 * y))

    surface = TrueSurface("thesis surface", point, jacobian, Box.of((-1.0, 1.0), (-2.0, 2.0)))
    return simulate(
        surface, n_samples, noise, noise_kind, rng, sampling=sampling, description="curved sheet (Svensén, section 5.4)"
    )


@check_kinds
@fill_parameter_docs
def make_semilinear_sheet(
    n_samples: int = 400,
    noise: float = 0.0,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    sampling: str = "grid",
) -> Dataset:
    """The sheet z = 0.5 sin(πx/2) + y of Svensén's thesis, section 6.4: bent along x, straight along y.

    400 points on a regular grid over x in [−2, 2] and y in [−1, 1]. The thesis mentions no noise.

    Parameters
    ----------
    {n_samples, default=400}
    {noise, default=0.0}
    {noise_kind, default="isotropic"}
    {rng}
    {sampling.surface, default="grid"}

    Returns
    -------
    Dataset
        ``latent`` is (x, y).
    """

    def point(U: FloatArray) -> FloatArray:
        x, y = U.T
        return np.column_stack([U, 0.5 * np.sin(0.5 * np.pi * x) + y])

    def jacobian(U: FloatArray) -> FloatArray:
        x, y = U.T
        return _graph_columns(0.25 * np.pi * np.cos(0.5 * np.pi * x), np.ones_like(y))

    surface = TrueSurface("semi-linear sheet", point, jacobian, Box.of((-2.0, 2.0), (-1.0, 1.0)))
    return simulate(
        surface,
        n_samples,
        noise,
        noise_kind,
        rng,
        sampling=sampling,
        description="sheet bent along x only (Svensén, section 6.4)",
    )


def _graph_columns(dx: FloatArray, dy: FloatArray) -> FloatArray:
    """Jacobian of (x, y, f(x, y)) from the two slopes of f."""
    one, zero = np.ones_like(dx), np.zeros_like(dx)
    return columns((one, zero, dx), (zero, one, dy))
