"""Gaussian-process maps held to the formulas of the thesis written out with dense matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular

from prinfold import GaussianBasis, GaussianProcess
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.covariance_functions import COVARIANCES, leading_pivots
from prinfold.basis_maps.gaussian_process import BoundProcess
from prinfold.basis_maps.process_evidence import golden_section_maximum, spectrum
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import Points, Sphere, circle, cylinder, grid, line, torus
from prinfold.numerics.distances import squared_distances_reference

LATENTS = {
    "line": line(9),
    "grid": grid(5, 4),
    "grid 3-D": grid(3, 3, 3),
    "circle": circle(9),
    "cylinder": cylinder(6, 4),
    "torus": torus(5, 5),
    "sphere": Sphere(30),
    "points": Points(np.random.default_rng(1).uniform(size=(25, 2))),
}
every = pytest.mark.parametrize("name", LATENTS)
covariances = pytest.mark.parametrize("covariance", COVARIANCES)


def make(name, length=0.6, covariance="matern32", linear=True):
    """A map that is rough enough for dense inverses to be trusted."""
    latent = LATENTS[name]
    return BasisMap(latent, GaussianProcess(length, covariance=covariance, linear=linear).bind(latent))


def dense(surface, Z=None):
    """Correlations of latent places with the nodes, by the definition."""
    latent, bound = surface.latent, surface.basis
    nodes = latent.embed(latent.nodes)
    E = nodes if Z is None else latent.embed(Z)
    return COVARIANCES[bound.recipe.covariance].value(squared_distances_reference(E, nodes) / bound.length**2)


def places(latent, rng, n=15):
    Z = latent.nodes[rng.integers(latent.n_nodes, size=n)] + 0.1 * rng.normal(size=(n, latent.n_columns))
    return latent.domain.retract(Z)


@dataclass(frozen=True)
class Bare:
    """The features of a process without those of its mean."""

    bound: BoundProcess

    @property
    def penalized(self):
        return np.ones(len(self.bound.pivots), dtype=bool)

    def features(self, Z):
        return self.bound.features(Z)[:, : len(self.bound.pivots)]


@every
@covariances
def test_features_multiply_to_the_covariance(name, covariance):
    surface = make(name, covariance=covariance)
    P = Bare(surface.basis).features(surface.latent.nodes)
    np.testing.assert_allclose(P @ P.T, dense(surface), atol=3e-10)


@every
def test_the_m_step_is_the_textbook_formula(name, rng):
    """(G + β⁻¹C⁻¹) Y = RT, with nodes that have no responsibility."""
    surface = make(name)
    bare = BasisMap(surface.latent, Bare(surface.basis))
    K, beta, variance = surface.latent.n_nodes, 7.0, 1.3
    mass = rng.uniform(0, 5, K) * (rng.random(K) > 0.3)
    moment = mass[:, None] * rng.normal(size=(K, 3))
    C = variance * dense(surface)
    wanted = np.linalg.solve(np.diag(mass) + np.linalg.inv(C) / beta, moment)
    W = bare.solve(mass, moment, 1 / (beta * variance), np.zeros((len(surface.basis.pivots), 3)))
    np.testing.assert_allclose(bare.nodes(W), wanted, atol=1e-8)


@every
@pytest.mark.parametrize("linear", [True, False])
def test_a_free_mean_is_what_universal_kriging_does(name, linear, rng):
    """Minimum of ½β Σ g‖t − f − Hb‖² + ½ fᵀC⁻¹f over f and b together."""
    surface = make(name, linear=linear)
    K, strength = surface.latent.n_nodes, 0.4
    mass = rng.uniform(0, 5, K) * (rng.random(K) > 0.2)
    moment = mass[:, None] * rng.normal(size=(K, 2))
    r = len(surface.basis.pivots)
    H, G = surface.node_features[:, r:], np.diag(mass)
    left = np.block([[G + strength * np.linalg.inv(dense(surface)), G @ H], [H.T @ G, H.T @ G @ H]])
    both = np.linalg.lstsq(left, np.vstack([moment, H.T @ moment]), rcond=None)[0]
    W = surface.solve(mass, moment, strength, np.zeros((len(surface.penalty_mask), 2)))
    np.testing.assert_allclose(surface.nodes(W), both[:K] + H @ both[K:], atol=1e-8)


def test_a_covariance_of_finite_rank_is_a_map_of_basis_functions(rng):
    """C = ΦΦᵀ/α gives what the basis Φ gives under a prior of precision α."""
    latent = grid(6, 6)
    basis = BasisMap(latent, GaussianBasis(3, penalize_bias=True).bind(latent))
    gram = basis.node_features @ basis.node_features.T
    pivots = leading_pivots(gram.copy(), 1e-12)
    L = cholesky(gram[np.ix_(pivots, pivots)], lower=True)
    P = solve_triangular(L, gram[pivots], lower=True).T
    assert len(pivots) <= basis.node_features.shape[1]

    class Ranked:
        penalized = np.ones(len(pivots), dtype=bool)

        def features(self, Z):
            return P

    process = BasisMap(latent, Ranked())
    mass, moment = rng.uniform(0, 3, 36), rng.normal(size=(36, 2))
    of_basis, of_process = (
        each.nodes(each.solve(mass, moment, 0.3, np.zeros((len(each.penalty_mask), 2)))) for each in (basis, process)
    )
    np.testing.assert_allclose(of_process, of_basis, atol=1e-9)


@every
def test_between_nodes_the_map_is_kriging_and_at_nodes_it_passes_through_them(name, rng):
    surface = make(name)
    W = rng.normal(size=(len(surface.penalty_mask), 2))
    Y, Z, r = surface.nodes(W), places(surface.latent, rng), len(surface.basis.pivots)
    np.testing.assert_allclose(surface.point(surface.latent.nodes, W), Y, atol=1e-10)
    mean, mean_of_nodes = (each[:, r:] @ W[r:] for each in (surface.basis.features(Z), surface.node_features))
    kriged = dense(surface, Z) @ np.linalg.solve(dense(surface), Y - mean_of_nodes)
    np.testing.assert_allclose(surface.point(Z, W) - mean, kriged, atol=1e-8)


@pytest.mark.parametrize("length", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("linear", [True, False])
def test_the_short_way_to_points_is_that_of_the_features(length, linear, rng):
    latent = grid(12, 12)
    surface = BasisMap(latent, GaussianProcess(length, linear=linear).bind(latent))
    W, Z = rng.normal(size=(len(surface.penalty_mask), 2)), rng.uniform(-1, 1, (50, 2))
    np.testing.assert_allclose(surface.point(Z, W), surface.basis.features(Z) @ W, atol=1e-8)
    W *= -2.0  # what is remembered of weights does not outlive them
    np.testing.assert_allclose(surface.point(Z, W), surface.basis.features(Z) @ W, atol=1e-8)


@every
def test_what_nodes_leave_open_is_the_kriging_variance(name, rng):
    surface = make(name)
    Z = places(surface.latent, rng)
    across = dense(surface, Z)
    wanted = 1 - np.einsum("nk,nk->n", across, np.linalg.solve(dense(surface), across.T).T)
    np.testing.assert_allclose(surface.basis.unexplained(Z), wanted, atol=1e-8)
    assert surface.basis.unexplained(surface.latent.nodes).max() < 1e-9


@every
@covariances
def test_the_derivatives_are_derivatives(name, covariance, rng):
    surface, h = make(name, covariance=covariance), 1e-5
    bound, Z = surface.basis, places(surface.latent, rng)
    W = rng.normal(size=(len(surface.penalty_mask), 3))
    steps = h * np.eye(Z.shape[1])
    numeric = np.stack([(bound.features(Z + e) - bound.features(Z - e)) / (2 * h) for e in steps], axis=2)
    np.testing.assert_allclose(bound.gradient(Z), numeric, atol=1e-6)
    np.testing.assert_allclose(bound.jacobian(Z, W), np.einsum("nmq,md->ndq", bound.gradient(Z), W), atol=1e-8)


@pytest.mark.parametrize("name", ["circle", "cylinder", "torus"])
def test_there_is_no_seam(name, rng):
    surface = make(name)
    Z = places(surface.latent, rng)
    turned = Z + 2 * np.pi * np.eye(Z.shape[1])[0]
    np.testing.assert_allclose(surface.basis.features(turned), surface.basis.features(Z), atol=1e-12)


def test_smooth_processes_need_few_numbers():
    """Where the covariance matrix is singular to rounding, only what is above it is kept."""
    latent = grid(15, 15)
    ranks = [len(GaussianProcess(length).bind(latent).pivots) for length in (0.1, 0.4, 1.5)]
    assert ranks[0] == 225
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[2] < 225 / 4


def test_nodes_given_twice_and_a_single_node(rng):
    twice = Points(np.repeat(rng.uniform(size=(6, 2)), 2, axis=0))
    surface = BasisMap(twice, GaussianProcess(0.5).bind(twice))
    assert len(surface.basis.pivots) <= 6
    W = surface.solve(np.ones(12), rng.normal(size=(12, 1)), 0.1, np.zeros((len(surface.penalty_mask), 1)))
    assert np.isfinite(surface.nodes(W)).all()
    alone = GaussianProcess(0.5).bind(grid(1, 1))
    np.testing.assert_allclose(alone.features(np.zeros((1, 2))), [[1, 0, 0, 1]])


def test_pivots_found_once_are_kept():
    latent = grid(6, 6)
    bound = GaussianProcess(0.5).bind(latent)
    again = bound.recipe.bind(latent)
    np.testing.assert_array_equal(again.pivots, bound.pivots)
    np.testing.assert_array_equal(again.features(latent.nodes), bound.features(latent.nodes))


# ------------------------------------------------------------------------------------------------ evidence


def restricted_log_likelihood(surface, node, T, beta, variance):
    """ln p of rows at known nodes, the free mean integrated out, up to terms without v and ℓ: dense, by definition."""
    H = surface.node_features[node][:, len(surface.basis.pivots) :]
    S = variance * dense(surface)[np.ix_(node, node)] + np.eye(len(node)) / beta
    inverse = np.linalg.inv(S)
    inner = H.T @ inverse @ H
    P = inverse - inverse @ H @ np.linalg.solve(inner, H.T @ inverse)
    logs = np.linalg.slogdet(S)[1] + np.linalg.slogdet(inner)[1]
    return float(-0.5 * T.shape[1] * logs - 0.5 * np.einsum("nd,nm,md->", T, P, T))


def test_the_evidence_is_the_likelihood_with_the_surface_integrated_out(rng):
    latent, beta = line(9), 20.0
    node = rng.integers(9, size=40)
    z = latent.nodes[node, 0]
    T = np.stack([z**2, np.sin(3 * z)], axis=1) + 0.2 * rng.normal(size=(40, 2))
    mass = np.bincount(node, minlength=9).astype(float)
    moment = np.zeros((9, 2))
    np.add.at(moment, node, T)
    settings = [(0.4, 0.5), (0.4, 2.0), (0.9, 0.5), (0.9, 2.0)]
    dense_values, quick = [], []
    for length, variance in settings:
        surface = BasisMap(latent, GaussianProcess(length, covariance="matern52").bind(latent))
        dense_values.append(restricted_log_likelihood(surface, node, T, beta, variance))
        quick.append(spectrum(surface, mass, moment, beta).log_evidence(variance))
    np.testing.assert_allclose(np.diff(quick), np.diff(dense_values), atol=1e-6)


def test_freedom_counts_what_the_data_decide(rng):
    surface = make("grid")
    mass = rng.uniform(1, 5, 20)
    found = spectrum(surface, mass, rng.normal(size=(20, 2)), 3.0)
    r = len(surface.basis.pivots)
    assert found.freedom(1e-12) < 1e-6
    assert r - 3 - 1e-3 < found.freedom(1e12) <= r  # three directions belong to the mean
    assert found.freedom(0.1) < found.freedom(1.0)


def test_the_highest_place_of_a_function():
    place, value = golden_section_maximum(lambda x: -((x - 0.3) ** 2), -2.0, 5.0, 1e-6)
    assert abs(place - 0.3) < 1e-6
    assert abs(value) < 1e-11


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"length_scale": 0.0}, "length_scale"),
        ({"length_scale": 1e-9}, "length_scale must lie between 0.001 and 1000, got 1e-09"),
        ({"variance": -1.0}, "variance"),
        ({"covariance": "cubic"}, "covariance"),
        ({"linear": 3}, "linear"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        GaussianProcess(**settings)


def test_pivots_must_be_nodes_and_differ():
    with pytest.raises(InvalidParameterError, match="must name some of the 9 nodes"):
        GaussianProcess(0.5, pivots=(0, 9)).bind(line(9))
    with pytest.raises(InvalidParameterError, match="covariance of the pivots given is singular"):
        GaussianProcess(0.5, pivots=(3, 3)).bind(line(9)).features(np.zeros((1, 1)))


def test_too_many_nodes_are_refused_with_advice():
    with pytest.raises(InvalidParameterError, match="use at most 5000 nodes, or a GaussianBasis"):
        GaussianProcess(0.5).bind(grid(71, 71))
