"""Three-phase flow in a pipe seen by gamma rays: a simulator of the "oil flow" data.

Bishop and James (1993) simulated a pipe that carries gas, oil and water, crossed by six narrow gamma
beams of two energies each; Svensén's thesis (example 3.2) and many papers since use their data. The paper
gives the idea; the numbers below were estimated from the 2000 public rows, of which the geometry leaves
nothing unexplained but photon noise.

Lengths are in pipe radii: the pipe is the unit disc, x to the right, y up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng
from prinfold.datasets.surface import option
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_call, instance_of, is_number, nothing
from prinfold.validation.tables import as_numbers

_OFFSETS = Constraint(
    lambda v: isinstance(v, tuple | list) and all(is_number(each, Real) and -1 < each < 1 for each in v),
    "a tuple of numbers between -1 and 1",
)


@dataclass(frozen=True)
class Beams:
    """Beams across the unit disc.

    ``vertical`` are the x of the vertical beams: all on one side of the centre, because every flow is the
    same on both sides. ``horizontal`` are the y of the horizontal ones.
    """

    vertical: tuple[float, ...] = (5 / 6, 1 / 2, 1 / 6)
    horizontal: tuple[float, ...] = (-1 / 2, 0.0, 1 / 2)

    def __post_init__(self) -> None:
        if not all(_OFFSETS.test(each) for each in (self.vertical, self.horizontal)):
            raise InvalidParameterError("Beams must cross the pipe: offsets lie between −1 and 1.")

    @property
    def offsets(self) -> FloatArray:
        """(B,) distances from the centre, signed; vertical beams first."""
        return np.array([*self.vertical, *self.horizontal])

    @property
    def chords(self) -> FloatArray:
        """(B,) lengths 2 √(1 − d²) inside the pipe."""
        return np.asarray(2.0 * np.sqrt(1.0 - self.offsets**2))


_DURATION = Constraint(lambda v: is_number(v, Real) and v > 0, "a number above 0")


@check_verbs(integration_time=_DURATION, rng=instance_of(np.random.Generator, words="a Generator of NumPy"))
@dataclass(frozen=True)
class Densitometer:
    """Sources, fluids and size of the pipe: what turns path lengths into photon counts.

    Mass attenuation coefficients (cm²/g) at the two lines of americium-241 (59.5 keV) and caesium-137
    (662 keV), one row per energy, columns water, oil (as CH₂), gas (as CH₄), from the usual tables;
    ``density`` in g/cm³ in the same order; ``radius`` of the pipe in cm; ``rate``, photons per second that
    reach the detector through the pipe full of gas. Density of oil and radius are those under which the
    scatter of the public data is most probable with these two sources; the rates give it its size.
    """

    mass_attenuation: tuple[tuple[float, float, float], ...] = ((0.2059, 0.1970, 0.212), (0.0857, 0.0882, 0.0963))
    density: tuple[float, float, float] = (1.0, 0.86, 0.001)
    radius: float = 5.48
    rate: tuple[float, float] = (53_900.0, 78_500.0)

    @property
    def attenuation(self) -> FloatArray:
        """(2, 2) linear attenuation per pipe radius of water and oil, in excess of the gas they displace."""
        linear = self.radius * np.asarray(self.mass_attenuation) * np.asarray(self.density)
        return np.asarray(linear[:, :2] - linear[:, 2:])

    def measure(self, lengths: FloatArray, integration_time: float, rng: np.random.Generator) -> FloatArray:
        """Path lengths (…, 2) of water and oil as photon counts over ``integration_time`` seconds report them.

        Expected counts are Nₑ = t Iₑ exp(−Σₚ aₑₚ lₚ); counts are Poisson; the estimate solves the two
        equations ln(t Iₑ / countₑ) = Σₚ aₑₚ lₚ. Water and oil attenuate in nearly the same proportion
        at both energies, so the errors of the two lengths are large and almost opposite.
        """
        if integration_time > _EXACT_COUNTS / max(self.rate):
            return lengths.copy()
        A = self.attenuation
        full = integration_time * np.asarray(self.rate)
        counts = rng.poisson(full * np.exp(-lengths @ A.T))
        # A beam that counts nothing has no logarithm; one photon is the least that can be told from none.
        depth = np.log(full / np.maximum(counts, 1))
        return np.asarray(depth @ np.linalg.inv(A).T)


_EXACT_COUNTS = 1e18
"""Photons with which a length is known to a billionth; generators draw no larger counts."""


def layer_height(fraction: FloatArray) -> FloatArray:
    """Height h in [−1, 1] such that the part of the unit disc below y = h has the given share of its area.

    With h = −cos(θ/2) the segment below has share (θ − sin θ)/2π, solved for θ by bisection; a level above
    the middle is the mirror image of one below it, where the equation loses no digits.
    """
    fraction = np.asarray(fraction, dtype=float)
    share = 2.0 * np.pi * np.minimum(fraction, 1.0 - fraction)
    low, high = np.zeros_like(share), np.full_like(share, np.pi)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = middle - np.sin(middle) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.where(fraction <= 0.5, -1.0, 1.0) * np.cos(0.25 * (low + high)))


_BEAMS = nothing | instance_of(Beams, words="Beams")


def _homogeneous(fractions: FloatArray, beams: Beams) -> FloatArray:
    """Everything mixed: each beam crosses the phases in proportion to their fractions."""
    return np.asarray(beams.chords[:, None] * fractions[:, None, [2, 1]])


def _annular(fractions: FloatArray, beams: Beams) -> FloatArray:
    """A core of gas, a ring of oil around it, a ring of water at the wall."""

    def chord(area: FloatArray) -> FloatArray:
        # A disc with share f of the area has radius √f.
        return 2.0 * np.sqrt(np.maximum(area[:, None] - beams.offsets**2, 0.0))

    gas, oil = fractions[:, 0], fractions[:, 1]
    within_gas, within_oil = chord(gas), chord(gas + oil)
    return np.stack([beams.chords - within_oil, within_oil - within_gas], axis=2)


def _stratified(fractions: FloatArray, beams: Beams) -> FloatArray:
    """Level layers: water at the bottom, oil on it, gas above."""
    oil, water = fractions[:, 1], fractions[:, 2]
    levels = np.stack([layer_height(water), layer_height(oil + water)], axis=1)
    half = 0.5 * beams.chords[: len(beams.vertical)]
    upright = np.clip(levels[:, None, :], -half[:, None], half[:, None]) + half[:, None]
    below = np.array(beams.horizontal)[:, None] < levels[:, None, :]
    across = below * beams.chords[len(beams.vertical) :, None]
    liquid = np.concatenate([upright, across], axis=1)
    # Length below the water level, and below the oil level less that.
    return np.stack([liquid[:, :, 0], liquid[:, :, 1] - liquid[:, :, 0]], axis=2)


#: The three flows, in the order of their labels.
FLOWS: dict[str, Callable[[FloatArray, Beams], FloatArray]] = {
    "homogeneous": _homogeneous,
    "annular": _annular,
    "stratified": _stratified,
}


def _simplex(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.dirichlet(np.ones(3), size=n)


def _ratios(n: int, rng: np.random.Generator) -> FloatArray:
    U = rng.uniform(size=(n, 3))
    return np.asarray(U / U.sum(axis=1, keepdims=True))


#: How fractions are drawn: uniformly on the simplex, or as the public data were, u/Σu with three uniform
#: numbers, which keeps away from pure flows.
FRACTIONS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {"uniform": _simplex, "ratios": _ratios}


@check_call(beams=_BEAMS)
@check_kinds
def path_lengths(fractions: FloatArray, flow: str, beams: Beams | None = None) -> FloatArray:
    """(n, B, 2) exact lengths of water and oil that each beam crosses, in pipe radii.

    Parameters
    ----------
    fractions : (n, 3) array
        Shares of gas, oil and water in the cross-section; rows sum to 1.
    flow : {"homogeneous", "annular", "stratified"}
        How the phases lie.
    beams : Beams, optional
        Where the beams cross.

    Returns
    -------
    (n, B, 2) array
        Lengths of water and oil along each beam, vertical beams first.
    """
    fractions = as_numbers("fractions", fractions)
    if fractions.ndim != 2 or fractions.shape[1] != 3 or (fractions < 0).any():
        raise InvalidParameterError("fractions must be an (n, 3) table of shares of gas, oil and water, none negative.")
    if not np.allclose(fractions.sum(axis=1), 1.0, atol=1e-9):
        raise InvalidParameterError("Each row of fractions must sum to 1.")
    return option(FLOWS, "flow", flow)(fractions, beams or Beams())


@check_call(
    fractions=instance_of(str, words="a name"),
    beams=_BEAMS,
    densitometer=nothing | instance_of(Densitometer, words="a Densitometer"),
)
@check_kinds
@fill_parameter_docs
def make_pipe_flow(
    n_samples: int = 1000,
    rng: Rng = None,
    *,
    integration_time: float = 10.0,
    fractions: str = "uniform",
    beams: Beams | None = None,
    densitometer: Densitometer | None = None,
) -> Dataset:
    """Simulate the three-phase pipe-flow data (Bishop and James 1993; Svensén's thesis, example 3.2).

    Three flows in equal numbers, fractions of gas, oil and water drawn at random, exact path lengths of
    water and oil along six beams, photon counts at two energies, and the path lengths estimated from them:
    twelve columns. Three vertical beams lie at 1/6, 1/2 and 5/6 of a radius to the right of the centre,
    three horizontal ones at −1/2, 0 and 1/2.

    Parameters
    ----------
    {n_samples, default=1000}
    {rng}
    integration_time : float, default=10.0
        Seconds of counting; noise shrinks as its inverse root. ``inf`` gives exact path lengths.
    fractions : {"uniform", "ratios"}, default="uniform"
        Uniform on the simplex, or u/Σu with three uniform numbers, which is how the public data turn out to
        be distributed.
    beams : Beams, optional
        Another geometry.
    densitometer : Densitometer, optional
        Other sources, fluids or pipe.

    Returns
    -------
    Dataset
        ``X`` columns alternate water, oil for each beam; ``clean`` holds exact path lengths in pipe radii;
        ``labels`` the flow; ``fractions`` (gas, oil, water); ``latent`` (water, oil). There is no single
        surface: each flow has its own, and the stratified one is in pieces.

    Notes
    -----
    Against the 2000 public rows (training and validation) with ``fractions="ratios"``: residuals from the exact
    path lengths have standard deviations 0.0526 (water) and 0.0623 (oil) and correlation −0.9993; simulated,
    0.0526, 0.0622 and −0.9994. They are equally large in all three flows (water 0.052, 0.052, 0.054;
    simulated 0.052, 0.051, 0.054), so that the geometry leaves nothing unexplained. Column means agree within
    0.04, standard deviations within 0.02; the guide has the table. The public fractions have a standard
    deviation of 0.180, u/Σu 0.180, a uniform simplex 0.236.
    """
    if not integration_time > 0:
        raise InvalidParameterError(f"integration_time must be positive; got {integration_time}.")
    check_draws(n_samples, 12, "n_samples", least=1)
    draw = option(FRACTIONS, "fractions", fractions)
    beams, densitometer = beams or Beams(), densitometer or Densitometer()
    generator = np.random.default_rng(rng)
    labels = generator.permutation(np.arange(n_samples) % len(FLOWS))
    shares = draw(n_samples, generator)
    lengths = _lengths_by_flow(shares, labels, beams)
    measured = densitometer.measure(lengths, integration_time, generator)
    return Dataset(
        X=measured.reshape(n_samples, -1),
        latent=shares[:, [2, 1]],
        clean=lengths.reshape(n_samples, -1),
        labels=labels,
        fractions=shares,
        feature_names=beam_names(beams),
        class_names=tuple(FLOWS),
        description=f"simulated three-phase pipe flow, {integration_time:g} s of counting",
    )


def beam_names(beams: Beams) -> tuple[str, ...]:
    """Column names: ``water_v1, oil_v1, …`` for the vertical beams, then ``…_h1`` for the horizontal ones."""
    names = [f"v{i + 1}" for i in range(len(beams.vertical))] + [f"h{i + 1}" for i in range(len(beams.horizontal))]
    return tuple(f"{phase}_{name}" for name in names for phase in ("water", "oil"))


def _lengths_by_flow(shares: FloatArray, labels: IntArray, beams: Beams) -> FloatArray:
    lengths = np.empty((len(shares), len(beams.offsets), 2))
    for label, flow in enumerate(FLOWS):
        lengths[labels == label] = path_lengths(shares[labels == label], flow, beams)
    return lengths
