"""Passes round one loop are one loop, and turns of a helix stay apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import PolygonalCurve, PrincipalCurve, ProbabilisticCurve, datasets
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.diagnosis import misfit
from prinfold.curves.loop_start import persistent_ring
from prinfold.curves.winding import find_strands, winds
from prinfold.exceptions import StructureWarning


def helix(n_turns=3.0, height=2.0, n=600):
    t = np.linspace(0.0, 1.0, n)
    return np.stack([np.cos(2 * np.pi * n_turns * t), np.sin(2 * np.pi * n_turns * t), height * t], axis=1)


def passes(radii, n=100):
    """Circles of several radii, one after the other."""
    angle = np.linspace(0.0, 2 * np.pi, n)
    return np.concatenate([r * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1) for r in radii])


def true_length(data):
    points = data.surface.point(np.linspace(0.0, 2 * np.pi, 2000)[:, None])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def test_strands_of_a_helix_are_a_turn_apart():
    strands = find_strands(helix(), closed=False, near=1.0)
    turn = np.hypot(2 * np.pi, 2 / 3)
    assert np.isfinite(strands.distance).all()
    # The nearest point of the next turn is nearer than the rise, by how much the turn is inclined.
    assert_allclose(strands.distance, 2 / 3 * 2 * np.pi / turn, rtol=0.01)
    assert_allclose(np.median(strands.way), turn, rtol=0.02)


def test_a_helix_does_not_wind_but_passes_and_noise_do():
    assert not winds(helix(), closed=False, noise=0.05, spread=1.2)
    assert winds(helix(), closed=False, noise=0.3, spread=1.2)  # turns lie within the noise
    assert winds(passes([1.0, 1.2, 0.9, 1.1]), closed=False, noise=0.02, spread=1.0)
    assert not winds(passes([1.0]), closed=True, noise=0.3, spread=1.0)


def test_a_curve_that_crosses_itself_does_not_wind():
    t = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    assert not winds(np.stack([np.sin(t), np.sin(2 * t)], axis=1), closed=True, noise=0.05, spread=1.0)


def test_the_loop_that_persists_is_the_circle():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 60)
    ring = persistent_ring(np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.02 * rng.normal(size=(60, 2)))
    assert ring is not None
    assert ring.persistence > 2
    assert_allclose(np.linalg.norm(ring.vertices, axis=1), 1.0, atol=0.12)
    assert persistent_ring(np.linspace(0, 1, 20)[:, None] * [1.0, 2.0]) is None


@pytest.mark.parametrize("settings", [{}, {"n_cycles": 3, "variation": 0.2, "n_samples": 600}], ids=["ten", "three"])
def test_pooled_cycles_are_one_loop(settings):
    data = datasets.make_cycles(**({"rng": 0, "n_samples": 1000} | settings))
    model = PrincipalCurve(closed="auto").fit(data.X)
    assert model.closed_
    assert_allclose(model.length_, true_length(data), rtol=0.2)
    turn = 2 * np.pi * model.transform(data.X)[:, 0] / model.length_
    # Once round, in either direction: harmonics of the phase beyond the first would be those of several turns.
    assert max(abs(np.exp(1j * (turn + s * data.latent[:, 0])).mean()) for s in (-1, 1)) > 0.8


@pytest.mark.full
def test_a_polygonal_line_finds_the_one_loop_too():
    data = datasets.make_cycles(800, n_cycles=4, variation=0.2, rng=1)
    model = PolygonalCurve(closed="auto").fit(data.X)
    assert model.closed_
    assert_allclose(model.length_, true_length(data), rtol=0.2)


@pytest.mark.full
def test_a_probabilistic_curve_does_not_wind_round_the_loop():
    data = datasets.make_cycles(800, n_cycles=4, variation=0.2, rng=1)
    model = ProbabilisticCurve(closed="auto").fit(data.X)
    assert model.closed_
    assert_allclose(model.length_, true_length(data), rtol=0.1)


@pytest.mark.filterwarnings("ignore:The iteration limit was reached")
def test_an_open_curve_that_winds_names_the_loop():
    data = datasets.make_cycles(800, n_cycles=4, variation=0.2, rng=1)
    with pytest.warns(StructureWarning, match=r"several passes round one closed loop.* closed='auto'"):
        model = PrincipalCurve().fit(data.X)
    assert model.length_ > 1.4 * true_length(data)


def test_turns_of_a_spiral_are_no_passes_round_a_loop():
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, 500)
    spiral = (0.3 + t)[:, None] * np.stack([np.cos(6 * np.pi * t), np.sin(6 * np.pi * t)], axis=1)
    rows = spiral + 0.05 * rng.normal(size=spiral.shape)
    assert "passes" not in misfit(ArcCurve.through(spiral), rows, np.ones(500))


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_a_helix_stays_open(noise):
    X = helix(3, 3) + noise * np.random.default_rng(0).normal(size=(600, 3))
    model = PrincipalCurve(closed="auto").fit(X)
    assert not model.closed_
    assert abs(np.corrcoef(model.transform(X)[:, 0], np.arange(600))[0, 1]) > 0.999


def test_a_loop_may_be_named_as_the_start():
    data = datasets.make_circle(150, noise=0.05, rng=1)
    model = PrincipalCurve(closed=True, init="loop").fit(data.X)
    assert model.start_ == "loop"
    assert_allclose(model.length_, 2 * np.pi, rtol=0.03)
