"""What is particular to the GTM: starts, penalties, closed spaces, warnings in words, large tables."""

from __future__ import annotations

import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from tests.properties.cases import cloud
from threadpoolctl import threadpool_limits

from prinfold import GTM, GaussianBasis, HarmonicBasis, datasets
from prinfold.exceptions import (
    DegenerateWarning,
    FoldWarning,
    InvalidDataError,
    InvalidParameterError,
    MultimodalWarning,
)
from prinfold.gtm.starts.first_parameters import STARTS
from prinfold.latent import Sphere, circle, grid
from prinfold.validation.named_block import NamedBlock

# Warnings have their own section; elsewhere they would only repeat that few iterations leave much undone.
pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


# --------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize("init", sorted(STARTS))
def test_every_start_trains_and_repeats_itself(init):
    X, settings = cloud(), {"nodes": 8, "basis": 4, "init": init, "random_state": 3, "max_iter": 30, "tol": 0}
    if init == "cycles":
        X, settings = datasets.make_cylinder(200, rng=0).X, {**settings, "latent": "cylinder"}
    first, again = (GTM(**settings).fit(X) for _ in range(2))
    assert_allclose(again.weights_, first.weights_, atol=0)
    assert first.history_["objective"][-1] > first.history_["objective"][0] + 0.5
    assert first.noise_variance_ < 0.5 * X.var(axis=0).mean()


def test_the_pca_start_puts_the_nodes_in_the_principal_plane():
    X = cloud()
    model = GTM(nodes=9, basis=4, max_iter=0, tol=0).fit(X)
    centered = model.inverse_transform(model.latent_.nodes) - X.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    plane, spread = vectors[:, :-3:-1], np.sqrt(values[:-3:-1])
    assert_allclose(centered, centered @ plane @ plane.T, atol=1e-6)
    assert_allclose(np.sort((centered @ plane).std(axis=0)), np.sort(spread), rtol=1e-4)
    assert model.noise_variance_ >= values[-3] - 1e-9


def test_random_starts_vary_as_much_as_the_data():
    X = cloud(400)
    spread = [
        np.var(model.inverse_transform(model.latent_.nodes), axis=0).mean()
        for seed in range(30)
        for model in [GTM(nodes=8, basis=4, init="random", random_state=seed, max_iter=0, tol=0).fit(X)]
    ]
    assert_allclose(np.mean(spread), X.var(axis=0).mean(), rtol=0.25)


def test_coordinates_may_be_given():
    data = datasets.make_ridge(400, rng=0)
    model = GTM(nodes=10, basis=5, init=data.latent, max_iter=0, tol=0).fit(data.X)
    agreement = np.corrcoef(model.transform(data.X).T, data.latent.T)[:2, 2:]
    # Noise of 0.1 on coordinates that spread by 0.6 leaves a correlation of 0.985, in the order and sign given.
    assert_allclose(agreement, np.eye(2), atol=0.02)


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (np.zeros((5, 2)), "5 latent coordinates for 90 rows"),
        (np.zeros((90, 3)), r"shape \(n, 2\)"),
        (np.full((90, 2), np.nan), "NaN"),
        ("pcs", "'semi-random'"),
    ],
)
def test_a_start_that_cannot_work_says_so(init, words):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=words):
        GTM(init=init).fit(cloud())


def test_a_spectral_start_needs_rows():
    X = np.repeat(cloud(3), 20, axis=0)
    with pytest.raises(InvalidDataError, match="different rows, got 3; use init='pca'"):
        GTM(init="isomap").fit(X)


def test_an_isomap_start_unrolls_the_swiss_roll_where_the_plane_fails():
    data = datasets.make_swiss_roll(1000, rng=0)
    settings = {"nodes": 20, "basis": 9, "max_iter": 60, "tol": 0, "random_state": 0}
    plane = GTM(init="pca", **settings).fit(data.X)
    unrolled = GTM(init="isomap", **settings).fit(data.X)
    distance = [data.surface.distance(model.mesh(25).vertices).mean() for model in (plane, unrolled)]
    assert distance[1] < 0.5 * distance[0]
    assert unrolled.score(data.X) > plane.score(data.X) + 0.1


# ------------------------------------------------------------------------------------------ penalties


@pytest.mark.parametrize("penalty", [{"regularization": 100.0}, {"prior_precision": 1e4}])
def test_a_strong_penalty_pulls_the_surface_to_its_bias(penalty):
    X = cloud() + 3.0
    size = {}
    for name, settings in {"weak": {"regularization": 1e-3}, "strong": penalty}.items():
        model = GTM(nodes=8, basis=4, max_iter=60, tol=0, **settings).fit(X)
        size[name] = model.mesh(10).vertices.std(axis=0).max()
        assert_allclose(model.mesh(10).vertices.mean(axis=0), X.mean(axis=0), atol=0.6)
    assert size["strong"] < 0.5 * size["weak"]


def test_one_penalty_at_a_time():
    with pytest.raises(InvalidParameterError, match="not both"):
        GTM(regularization=0.1, prior_precision=0.1).fit(cloud())


def test_the_noise_stops_at_its_floor_when_nodes_outnumber_rows():
    X = cloud(12)
    model = GTM(nodes=12, basis=8, width=0.8, regularization=0.0, noise_floor=1e-3, max_iter=300, tol=0).fit(X)
    assert model.noise_variance_ == pytest.approx(1e-3 * X.var(axis=0).mean(), rel=1e-6)
    assert np.isfinite(model.score(X))


# --------------------------------------------------------------------------------- sizes and settings


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({}, (30, 30)),
        ({"n_components": 1}, (100,)),
        ({"n_components": 3}, (10, 10, 10)),
        ({"nodes": (5, 7)}, (5, 7)),
        ({"nodes": 6}, (6, 6)),
        ({"latent": grid(4, 9)}, (4, 9)),
        ({"latent": "torus", "nodes": 6}, (6, 6)),
        ({"latent": circle(12)}, (12,)),
    ],
)
def test_nodes_are_chosen_or_taken(settings, shape):
    model = GTM(max_iter=1, tol=0, **settings).fit(cloud(1000))
    assert model.latent_.shape == shape


@pytest.mark.parametrize("n_components", [4, 6, 10])
def test_any_number_of_components_works(n_components):
    X = np.random.default_rng(0).standard_normal((120, 12))
    model = GTM(n_components, max_iter=5, tol=0).fit(X)
    assert model.transform(X).shape == (120, n_components)
    assert model.projection_error(X) < X.var(axis=0).sum()
    once = model.project(X[:10])
    assert_allclose(model.project(once), once, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": (3, 3, 3)}, "3 entries but there are 2 latent axes"),
        ({"basis": (3, 3, 3)}, "3 entries but there are 2 latent axes"),
        ({"basis": GaussianBasis((2, 2, 2))}, "3 axes but the latent space has 2"),
        ({"basis": HarmonicBasis(2)}, "latent='circle'"),
        ({"latent": "sphere", "nodes": 3}, "at least 4 nodes"),
    ],
)
def test_settings_that_do_not_fit_together_say_so(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        GTM(**settings).fit(cloud())


# --------------------------------------------------------------------------------------- closed spaces


def test_a_circle_recovers_the_angle_without_a_seam():
    data = datasets.make_circle(300, noise=0.05, rng=0)
    model = GTM(latent="circle").fit(data.X)
    turn = np.exp(1j * (model.transform(data.X)[:, 0]))
    truth = np.exp(1j * np.arctan2(data.X[:, 1], data.X[:, 0]))
    aligned = max(abs(np.mean(turn * np.conj(truth))), abs(np.mean(turn * truth)))
    assert aligned > 0.99
    ends = model.inverse_transform([[-np.pi], [np.pi]])
    assert_allclose(ends[0], ends[1], atol=1e-9)
    J = model.jacobian([[-np.pi], [np.pi]])
    assert_allclose(J[0], J[1], atol=1e-9)
    assert data.surface.distance(model.mesh().vertices).max() < 0.05


def test_harmonics_trace_a_circle_exactly():
    angle = np.linspace(-np.pi, np.pi, 200, endpoint=False)
    X = np.stack([3 * np.cos(angle), np.sin(angle)], axis=1)
    model = GTM(latent="circle", basis=HarmonicBasis(2), nodes=40, regularization=1e-6).fit(X)
    assert model.projection_error(X) < 1e-3


def test_a_sphere_covers_a_sphere():
    data = datasets.make_sphere(600, noise=0.05, rng=0)
    model = GTM(latent="sphere").fit(data.X)
    assert data.surface.distance(model.mesh().vertices).max() < 0.15
    truth = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    Z = model.transform(data.X)
    U, _, Vt = np.linalg.svd(Z.T @ truth)
    assert np.einsum("ij,ij->i", Z @ U @ Vt, truth).mean() > 0.99


def test_a_given_space_is_used_as_it_is():
    space = Sphere(50)
    assert GTM(latent=space).fit(cloud()).latent_ is space


# -------------------------------------------------------------------------------------------- warnings


def bent():
    """A horseshoe whose ends face each other across a gap: between them the posterior has two modes."""
    t = np.linspace(0.1, 2 * np.pi - 0.1, 300)
    X = np.stack([np.cos(t), np.sin(t)], axis=1)
    return X + 0.03 * np.random.default_rng(0).standard_normal(X.shape)


def test_the_mean_leaves_the_mode_where_there_are_two_modes():
    model = GTM(1, nodes=40, basis=12).fit(bent())
    on_curve, between = model.mode_distance(bent())[20:-20], model.mode_distance([[0.0, 0.0], [1.02, 0.0]])
    assert np.median(on_curve) < 0.6
    assert between.min() > 5


def test_many_such_rows_are_a_warning():
    X = np.vstack([bent(), np.random.default_rng(1).normal(0, 0.05, (60, 2))])
    with pytest.warns(MultimodalWarning, match="% of the rows"):
        GTM(1, nodes=40, basis=12, init="pca", max_iter=5, tol=0).fit(X)


def test_folds_are_a_field_and_a_warning():
    data = datasets.make_two_gaussians(1000, rng=0)
    with pytest.warns(FoldWarning, match="folded at"):
        folded = GTM(nodes=10, basis=5, regularization=0.0, max_iter=60, tol=0).fit(data.X)
    assert folded.folds_.folded.mean() > 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error", FoldWarning)
        warnings.simplefilter("ignore", DegenerateWarning)  # of two groups, as there are
        stiff = GTM(nodes=10, basis=2, prior_precision=0.1, max_iter=60, tol=0).fit(data.X)
    assert not stiff.folds_.folded.any()


def test_too_few_iterations_are_a_warning():
    with pytest.warns(ConvergenceWarning, match=r"max_iter \(now 2\)"):
        GTM(max_iter=2).fit(cloud())


def test_more_dimensions_than_columns_are_a_warning():
    with pytest.warns(DegenerateWarning, match="n_components=1"):
        model = GTM().fit(cloud()[:, :1])
    assert model.transform(cloud()[:, :1]).shape == (90, 2)


# ---------------------------------------------------------------------------------------- large tables


def test_threads_and_memory_maps_change_nothing(tmp_path):
    X = cloud(5000)
    np.save(tmp_path / "rows.npy", X)
    settings = {"nodes": 10, "basis": 4, "max_iter": 5, "tol": 0}
    with threadpool_limits(1):
        one = GTM(**settings).fit(X)
    with threadpool_limits(2):
        two = GTM(**settings).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    assert_allclose(two.weights_, one.weights_, atol=1e-10)
    assert_allclose(GTM(**settings).fit(np.asfortranarray(X)).weights_, one.weights_, atol=1e-10)


def test_memory_beyond_the_data_does_not_grow_with_the_rows():
    peaks = []
    for n in (4_000, 64_000):
        X = cloud(n)
        tracemalloc.start()
        GTM(nodes=20, basis=5, max_iter=2, tol=0).fit(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Sorting rows into groups takes a dozen numbers a row while it lasts; 20 × 20 responsibilities would be 400.
    assert peaks[1] - peaks[0] < 60_000 * 8 * 16


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": 150}, r"22500 nodes for 100 rows .* along each axis"),
        ({"nodes": 4, "basis": 65}, r"4228 basis functions take minutes .* along each axis"),
        ({"n_components": 12}, r"surface of 12 dimensions .* nodes=12 sets the nodes along each axis"),
        ({"nodes": 20_001, "latent": "line", "basis": 4}, r"20001 nodes for 100 rows .* use fewer"),
    ],
)
def test_sizes_that_are_likely_totals_are_said_before_training(settings, words, monkeypatch):
    heard = []
    monkeypatch.setattr("prinfold.gtm.warnings.warn_caller", lambda said, category: heard.append(said))
    monkeypatch.setattr(
        "prinfold.gtm.fitting.initial_parameters", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):  # before anything was begun
        GTM(**settings).fit(np.random.default_rng(0).normal(size=(100, 3)))
    assert len(heard) == 1
    assert re.search(words, heard[0])


def test_a_row_that_outweighs_all_others_is_named_as_its_table_names_it():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[13, 1] = 1e4
    weight = np.where(np.arange(60) < 5, 0.0, 1.0)  # rows that do not count move no number
    for rows, name in (
        (X, "Row 13"),
        (pd.DataFrame(X, columns=list("abc"), index=[f"plant {i}" for i in range(60)]), "Row 'plant 13'"),
        (pd.DataFrame(X, index=range(100, 160)).iloc[::-1], "Row '113'"),
        (NamedBlock.of(X, None, lambda row: f"line {row + 2}"), "Line 15"),
    ):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(rows, sample_weight=weight)
        assert sum(f"{name} makes up 98.2 % of the variance" in str(each.message) for each in heard) == 1


def test_a_row_that_outweighs_all_others_is_named():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[13, 1] = 1e4
    with pytest.warns(DegenerateWarning, match=r"Row 13 makes up 98.3 % of the variance"):
        GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(np.delete(X, 13, axis=0))
