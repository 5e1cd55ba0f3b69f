"""The pipe: path lengths against brute-force rays, fractions against areas, noise against photon statistics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

from prinfold.datasets import Beams, Densitometer, make_pipe_flow, path_lengths
from prinfold.datasets.pipe import layer_height
from prinfold.exceptions import InvalidParameterError

FLOWS = ("homogeneous", "annular", "stratified")


def phase(x: np.ndarray, y: np.ndarray, fractions: np.ndarray, flow: str) -> np.ndarray:
    """0 gas, 1 oil, 2 water at places of the pipe, from areas alone."""
    gas, oil, water = fractions
    if flow == "annular":
        inside = x**2 + y**2  # share of the area within that radius
        return np.where(inside < gas, 0, np.where(inside < gas + oil, 1, 2))
    below = (np.arccos(-y) + y * np.sqrt(1 - y**2)) / np.pi  # share of the area below that height
    return np.where(below < water, 2, np.where(below < water + oil, 1, 0))


def ray(beam: int, beams: Beams, n: int) -> tuple[np.ndarray, np.ndarray]:
    d, chord = beams.offsets[beam], beams.chords[beam]
    t = ((np.arange(n) + 0.5) / n - 0.5) * chord
    return (np.full(n, d), t) if beam < len(beams.vertical) else (t, np.full(n, d))


@pytest.mark.parametrize("flow", ["annular", "stratified"])
def test_path_lengths_agree_with_rays(flow: str, rng: np.random.Generator) -> None:
    beams, n = Beams(), 20000
    fractions = rng.dirichlet(np.ones(3), size=15)
    lengths = path_lengths(fractions, flow)
    for i, f in enumerate(fractions):
        for b in range(6):
            along = phase(*ray(b, beams, n), f, flow)
            counted = beams.chords[b] * np.array([np.mean(along == 2), np.mean(along == 1)])
            np.testing.assert_allclose(lengths[i, b], counted, atol=5 * beams.chords[b] / n)


@pytest.mark.parametrize("flow", FLOWS)
def test_fractions_are_recovered_by_integrating_over_the_pipe(flow: str, rng: np.random.Generator) -> None:
    """The area of a phase is the integral of its length along all vertical beams."""
    beams = Beams(vertical=tuple(-np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)), horizontal=())
    weights = np.pi / 4000 * np.sqrt(1 - beams.offsets**2)
    fractions = rng.dirichlet(np.ones(3), size=10)
    area = np.einsum("b,nbp->np", weights, path_lengths(fractions, flow, beams)) / np.pi
    np.testing.assert_allclose(area, fractions[:, [2, 1]], atol=1e-5)


def test_layer_height_inverts_the_area_of_a_segment() -> None:
    share = np.array([0.0, 1e-9, 0.1, 0.25, 0.5, 0.9, 1.0])
    height = layer_height(share)
    assert height[[0, 4, 6]] == pytest.approx([-1, 0, 1], abs=1e-12)
    for f, h in zip(share, height, strict=True):
        assert quad(lambda y: 2 * np.sqrt(1 - y * y), -1, h)[0] / np.pi == pytest.approx(f, abs=1e-10)


@pytest.mark.parametrize("flow", FLOWS)
def test_pure_flows_fill_every_chord(flow: str) -> None:
    chords = Beams().chords
    gas, oil, water = path_lengths(np.eye(3), flow)
    np.testing.assert_allclose(gas, 0.0, atol=1e-12)
    np.testing.assert_allclose(oil, np.column_stack([0 * chords, chords]), atol=1e-12)
    np.testing.assert_allclose(water, np.column_stack([chords, 0 * chords]), atol=1e-12)


def test_liquid_never_exceeds_the_chord() -> None:
    data = make_pipe_flow(600, rng=0)
    lengths = data.clean.reshape(-1, 6, 2)
    assert lengths.min() >= -1e-12
    assert (lengths.sum(axis=2) <= Beams().chords + 1e-12).all()


def test_homogeneous_flow_lies_in_a_plane_and_the_others_do_not() -> None:
    data = make_pipe_flow(900, rng=0, integration_time=np.inf)
    np.testing.assert_array_equal(data.X, data.clean)
    rank = [np.linalg.matrix_rank(data.X[data.labels == k], tol=1e-9) for k in range(3)]
    assert rank[0] == 2
    assert min(rank[1:]) > 5


def test_horizontal_beams_of_layered_flow_see_one_phase_only() -> None:
    data = make_pipe_flow(600, rng=0)
    level = data.clean[data.labels == 2].reshape(-1, 6, 2)[:, 3:] / Beams().chords[3:, None]
    assert set(np.unique(level.round(12))) == {0.0, 1.0}
    assert (level.sum(axis=2) <= 1).all()


def test_noise_shrinks_with_the_root_of_the_integration_time() -> None:
    spread = {
        t: np.std((d := make_pipe_flow(4000, rng=1, integration_time=t)).X - d.clean) for t in (10.0, 40.0, 160.0)
    }
    assert spread[10.0] / spread[40.0] == pytest.approx(2.0, rel=0.03)
    assert spread[40.0] / spread[160.0] == pytest.approx(2.0, rel=0.03)


def test_noise_has_the_covariance_of_photon_statistics(rng: np.random.Generator) -> None:
    """Var ln N = 1/E[N], carried through the inverse of the attenuation matrix."""
    meter, length, seconds = Densitometer(), np.array([0.7, 0.4]), 10.0
    A = meter.attenuation
    expected = seconds * np.array(meter.rate) * np.exp(-A @ length)
    inverse = np.linalg.inv(A)
    theory = inverse @ np.diag(1 / expected) @ inverse.T
    measured = meter.measure(np.tile(length, (40000, 1)), seconds, rng)
    np.testing.assert_allclose(np.cov(measured.T), theory, rtol=0.03)
    np.testing.assert_allclose(measured.mean(axis=0), length, atol=5 * np.sqrt(np.diag(theory).max() / 40000))


def test_a_beam_that_counts_nothing_stays_finite() -> None:
    assert np.isfinite(make_pipe_flow(30, rng=0, integration_time=1e-6).X).all()


def test_classes_are_equal_and_fractions_uniform_on_the_simplex() -> None:
    data = make_pipe_flow(3000, rng=4)
    assert np.bincount(data.labels).tolist() == [1000, 1000, 1000]
    np.testing.assert_allclose(data.fractions.sum(axis=1), 1.0)
    np.testing.assert_array_equal(data.latent, data.fractions[:, [2, 1]])
    # On a uniform simplex P(share > s) = (1 − s)².
    for s in (0.2, 0.5, 0.8):
        assert np.abs(np.mean(data.fractions > s, axis=0) - (1 - s) ** 2).max() < 4 * 0.5 / np.sqrt(3000)
    assert make_pipe_flow(3000, rng=4, fractions="ratios").fractions.std(axis=0) == pytest.approx(0.180, abs=0.01)


def test_columns_are_named_after_phase_and_beam() -> None:
    data = make_pipe_flow(3, rng=0)
    assert data.feature_names[:3] == ("water_v1", "oil_v1", "water_v2")
    assert data.feature_names[-1] == "oil_h3"
    assert data.class_names == FLOWS
    assert data.names.tolist() == [FLOWS[label] for label in data.labels]
    assert dataclasses.replace(data, class_names=()).names.tolist() == [str(label) for label in data.labels]
    assert dataclasses.replace(data, labels=None).names is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_pipe_flow(5, integration_time=0.0), "integration_time must be positive"),
        (lambda: make_pipe_flow(5, fractions="odd"), "fractions='odd' is not one of"),
        (lambda: Beams(vertical=(1.0,)), "Beams must cross the pipe"),
        (lambda: path_lengths(np.eye(3), "slug"), "flow='slug' is not one of"),
        (lambda: path_lengths(np.eye(2), "annular"), r"\(n, 3\) table"),
        (lambda: path_lengths(np.full((1, 3), 0.5), "annular"), "must sum to 1"),
    ],
)
def test_wrong_settings_are_named(call: object, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        call()
