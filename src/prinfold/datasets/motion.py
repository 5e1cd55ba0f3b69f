"""Joint angles of a figure that walks and runs: sequences of rows, each a place in a cycle that goes by unevenly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import NOISES, Dataset, Rng
from prinfold.datasets.surface import TrueSurface, option, positive
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs


class Swing(NamedTuple):
    """Motion of a joint in a cycle, in degrees: a mean, and cosines of the phase and of twice the phase with lags."""

    mean: float
    once: float
    lag: float
    twice: float
    twice_lag: float


#: Joints of a figure that walks and of one that runs. Those of the other side are half a cycle behind.
JOINTS = {
    "hip": (Swing(8.0, 22.0, 0.2, 3.0, 1.2), Swing(18.0, 36.0, 0.4, 6.0, 1.0)),
    "knee": (Swing(24.0, 20.0, 4.1, 16.0, 2.6), Swing(48.0, 42.0, 4.6, 18.0, 3.1)),
    "ankle": (Swing(2.0, 8.0, 1.4, 9.0, 5.2), Swing(4.0, 16.0, 1.1, 13.0, 4.9)),
    "shoulder": (Swing(0.0, 18.0, 3.3, 1.0, 0.0), Swing(-6.0, 34.0, 3.4, 3.0, 0.5)),
    "elbow": (Swing(18.0, 9.0, 3.0, 2.0, 0.8), Swing(82.0, 17.0, 3.2, 4.0, 1.1)),
}

#: Angles without sides, which have two periods in a cycle.
MIDDLE = {
    "trunk": (Swing(3.0, 0.0, 0.0, 1.8, 0.6), Swing(11.0, 0.0, 0.0, 4.0, 0.9)),
    "pelvis": (Swing(0.0, 0.0, 0.0, 3.5, 2.1), Swing(2.0, 0.0, 0.0, 7.0, 2.4)),
}

_LOG_SPEED_DEVIATION = 0.25
"""Standard deviation of the logarithm of the speed."""

_SPEED_MEMORY = 0.95
"""Autocorrelation of the log speed from frame to frame."""

_RUN_LOG_SPEED = 0.4
"""Log ratio of the speeds of a run and a walk."""


_FEWEST_FRAMES = 1e-3
"""Fewest frames to a cycle: successive ones are then a thousand cycles apart."""


@check_kinds
@fill_parameter_docs
def make_motion(
    n_samples: int = 600,
    noise: float = 0.15,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    n_sequences: int = 6,
    gait: str = "walk",
    frames: float = 25.0,
) -> Dataset:
    """Joint angles of a figure that walks, runs, or changes between the two, in sequences of different lengths.

    The angle of a joint, in radians, is m + a cos(φ − p) + b cos(2φ − q) with numbers of its own, and φ + π in place of
    the phase φ on the other side. From frame to frame the phase goes on by 2π/f · exp(v), where v is an autoregressive
    process about zero with a standard deviation of ¼ and autocorrelation 0.95; a run is half as fast again.

    Parameters
    ----------
    n_samples : int, default=600
        Rows, of all sequences together.
    noise : float, default=0.15
        Standard deviation of the noise, in radians.
    {noise_kind, default="isotropic"}
    {rng}
    n_sequences : int, default=6
        Sequences, of random lengths.
    gait : {"walk", "run", "changing"}, default="walk"
        ``"changing"`` wanders between walking and running, in angles and in speed.
    frames : float, default=25.0
        Frames that a cycle takes on average, f.

    Returns
    -------
    Dataset
        ``latent`` is the phase in [−π, π), and for a changing gait also the pace from 0, a walk, to 1, a run;
        ``lengths`` are the rows of each sequence, which follow each other.
    """
    positive(frames=frames)
    if frames < _FEWEST_FRAMES:
        raise InvalidParameterError(
            f"frames must be at least {_FEWEST_FRAMES:g}, or nothing of a cycle is seen; got {frames}."
        )
    if not 1 <= n_sequences <= n_samples:
        raise InvalidParameterError(
            f"n_sequences must be at least 1 and at most n_samples={n_samples}, a row each; got {n_sequences}."
        )
    if not 0.0 <= noise < np.inf:
        raise InvalidParameterError(f"noise is a standard deviation and must be finite and at least 0; got {noise}.")
    check_draws(n_samples, len(_NAMES), "n_samples")
    surface, pace = option(GAITS, "gait", gait)
    disturb, generator = option(NOISES, "noise_kind", noise_kind), np.random.default_rng(rng)
    lengths = _lengths(n_samples, n_sequences, generator)
    latent = np.concatenate([_phases(int(n), pace, frames, generator) for n in lengths])
    clean = surface.point(latent)
    X = clean + disturb(surface, latent, noise, generator)
    return Dataset(X, latent, clean, surface, feature_names=_NAMES, lengths=lengths, description=surface.name)


def _lengths(n_samples: int, n_sequences: int, rng: np.random.Generator) -> IntArray:
    """Random lengths of at least one row that add up to all of them; most are alike within a factor of two."""
    shares = rng.dirichlet(np.full(n_sequences, 10.0))
    ends = np.round(np.cumsum(shares) * (n_samples - int(n_sequences))).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0) + 1)


def _random_drift(n: int, spread: float, rng: np.random.Generator) -> FloatArray:
    """(n,) an autoregressive process about zero with a standard deviation of ``spread``."""
    found = np.empty(n)
    found[0] = spread * rng.standard_normal()
    for t, push in enumerate(rng.standard_normal(n - 1), 1):
        found[t] = _SPEED_MEMORY * found[t - 1] + spread * np.sqrt(1.0 - _SPEED_MEMORY**2) * push
    return found


def _phases(n: int, pace: float | None, frames: float, rng: np.random.Generator) -> FloatArray:
    """(n, Q) phase, and pace where it changes, of the frames of one sequence."""
    changing = 1.0 / (1.0 + np.exp(-_random_drift(n, 2.0, rng))) if pace is None else np.full(n, pace)
    speed = 2.0 * np.pi / frames * np.exp(_RUN_LOG_SPEED * changing + _random_drift(n, _LOG_SPEED_DEVIATION, rng))
    phase = rng.uniform(-np.pi, np.pi) + np.cumsum(speed)
    phase = (phase + np.pi) % (2.0 * np.pi) - np.pi
    return np.stack([phase, changing], axis=1) if pace is None else phase[:, None]


_SWINGS = [(name, shift) for name in JOINTS for shift in (0.0, np.pi)] + [(name, 0.0) for name in MIDDLE]
_NAMES = (*(f"{side}_{name}" for name in JOINTS for side in ("left", "right")), *MIDDLE)


def _angles(phase: FloatArray, running: int, order: int) -> FloatArray:
    """(n, D) angles of a walk or a run in radians, or their derivatives in the phase."""
    swings = [((JOINTS | MIDDLE)[name][running], shift) for name, shift in _SWINGS]
    found = []
    for swing, shift in swings:
        one, two = phase + shift - swing.lag, 2.0 * (phase + shift) - swing.twice_lag
        value = swing.mean + swing.once * np.cos(one) + swing.twice * np.cos(two)
        slope = -swing.once * np.sin(one) - 2.0 * swing.twice * np.sin(two)
        found.append(slope if order else value)
    return np.asarray(np.radians(np.stack(found, axis=1)))


def _gait_curve(name: str, running: int) -> TrueSurface:
    """A gait that does not change: a closed curve."""
    return TrueSurface(
        name,
        lambda U: _angles(U[:, 0], running, 0),
        lambda U: _angles(U[:, 0], running, 1)[:, :, None],
        Box.of((-np.pi, np.pi), periodic=(True,)),
    )


def _gait_tube(name: str) -> TrueSurface:
    """Angles between those of a walk and of a run: a tube, open at both ends."""

    def between(U: FloatArray, order: int) -> FloatArray:
        pace = U[:, 1:]
        return np.asarray((1.0 - pace) * _angles(U[:, 0], 0, order) + pace * _angles(U[:, 0], 1, order))

    def jacobian(U: FloatArray) -> FloatArray:
        return np.stack([between(U, 1), _angles(U[:, 0], 1, 0) - _angles(U[:, 0], 0, 0)], axis=2)

    domain = Box.of((-np.pi, np.pi), (0.0, 1.0), periodic=(True, False))
    return TrueSurface(name, lambda U: between(U, 0), jacobian, domain)


#: Gaits: the surface that their angles lie on, and the pace, where it stays the same.
GAITS: dict[str, tuple[TrueSurface, float | None]] = {
    "walk": (_gait_curve("walking figure", 0), 0.0),
    "run": (_gait_curve("running figure", 1), 1.0),
    "changing": (_gait_tube("figure that walks and runs"), None),
}
