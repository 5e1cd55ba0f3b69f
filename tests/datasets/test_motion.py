"""The walking figure: angles, courses and lengths."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import datasets
from prinfold.datasets.motion import JOINTS
from prinfold.exceptions import InvalidParameterError


@pytest.mark.parametrize("gait", ["walk", "run", "changing"])
def test_rows_lie_where_their_phase_says(gait: str):
    data = datasets.make_motion(300, noise=0.0, gait=gait, rng=0)
    assert_allclose(data.X, data.surface.point(data.latent))
    assert data.latent.shape == (300, 2 if gait == "changing" else 1)
    assert data.surface.domain.contains(data.latent).all()
    assert data.lengths.sum() == 300
    assert (data.lengths >= 1).all()
    step = 1e-6 * np.eye(data.latent.shape[1])
    inner = np.clip(data.latent[:20], -3.0, 0.9)
    slopes = [(data.surface.point(inner + e) - data.surface.point(inner - e)) / 2e-6 for e in step]
    assert_allclose(data.surface.jacobian(inner), np.stack(slopes, axis=2), atol=1e-8)


def test_the_other_side_is_half_a_cycle_behind():
    phase = np.linspace(-np.pi, np.pi, 20)[:, None]
    surface = datasets.make_motion(10, rng=0).surface
    here, later = surface.point(phase), surface.point(phase + np.pi)
    for j in range(len(JOINTS)):
        assert_allclose(here[:, 2 * j + 1], later[:, 2 * j], atol=1e-12)


def test_a_cycle_takes_the_frames_asked_for_on_average():
    data = datasets.make_motion(20000, n_sequences=2, frames=40.0, rng=1)
    within = np.ones(19999, dtype=bool)
    within[np.cumsum(data.lengths)[:-1] - 1] = False
    speed = (np.diff(data.latent[:, 0]) % (2 * np.pi))[within]
    assert abs(np.log(speed).mean() - np.log(2 * np.pi / 40.0)) < 0.1
    assert abs(np.log(speed).std() - 0.25) < 0.05
    run = datasets.make_motion(20000, n_sequences=1, frames=40.0, gait="run", rng=1)
    assert np.diff(np.unwrap(run.latent[:, 0])).mean() > 1.3 * speed.mean()


def test_changing_gaits_come_by_walks_and_runs():
    pace = datasets.make_motion(5000, gait="changing", rng=0).latent[:, 1]
    assert pace.min() < 0.05
    assert pace.max() > 0.95


@pytest.mark.parametrize(("n", "n_sequences"), [(7, 7), (8, 7), (50, 1)])
def test_every_sequence_has_a_row(n: int, n_sequences: int):
    lengths = datasets.make_motion(n, n_sequences=n_sequences, rng=0).lengths
    assert len(lengths) == n_sequences
    assert lengths.sum() == n
    assert lengths.min() >= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 5, "n_sequences": 6}, "n_sequences must be at least 1 and at most n_samples=5"),
        ({"n_sequences": 0}, "n_sequences must be at least 1"),
        ({"gait": "hop"}, "gait='hop' is not one of"),
        ({"frames": 0.0}, "frames must be positive"),
        ({"noise": -1.0}, "noise is a standard deviation"),
        ({"noise_kind": "loud"}, "noise_kind='loud' is not one of"),
    ],
)
def test_motions_that_cannot_be(settings: dict, message: str):
    with pytest.raises(InvalidParameterError, match=message):
        datasets.make_motion(**settings)
