"""GTMSequence against its definition at toy size: sums over every path through the nodes, K^T of them.

Densities come from ``scipy.stats.multivariate_normal`` and paths are listed one by one: nothing here uses the library's
own passes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from prinfold import GTMSequence
from prinfold.latent import Sphere, circle, grid, line

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

SPACES = {"line": line(4), "circle": circle(5), "grid": grid(2, 2), "sphere": Sphere(4), "one node": line(1)}
LENGTHS = (1, 4, 3)


def toy(seed: int = 0, gaps: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    phase = np.cumsum(rng.uniform(0.2, 0.9, sum(LENGTHS)))
    X = np.stack([np.cos(phase), np.sin(phase), 0.3 * phase], axis=1) + 0.2 * rng.standard_normal((len(phase), 3)) + 4.0
    if gaps:
        X[2] = np.nan  # a step of which nothing is known
        X[5, 1] = np.nan
        X[7, :2] = np.nan  # the last of the last sequence, in part
    return X


def fitted(X: np.ndarray, space: str = "circle", **settings) -> GTMSequence:
    latent = SPACES[space]
    options = {"reach": 1, "basis": 4 if space == "sphere" else 3, "max_iter": 3, "tol": 0.0, "jump": 0.05} | settings
    return GTMSequence(latent.dimension, nodes=latent, **options).fit(X, lengths=LENGTHS)


def log_densities(model: GTMSequence, X: np.ndarray) -> np.ndarray:
    """(n, K) of what was measured of each row."""
    centers, out = model.inverse_transform(model.latent_.nodes), np.zeros((len(X), model.latent_.n_nodes))
    for n, row in enumerate(X):
        seen = np.flatnonzero(~np.isnan(row))
        for k, center in enumerate(centers if len(seen) else []):
            out[n, k] = multivariate_normal(center[seen], model.noise_variance_).logpdf(row[seen])
    return out


def all_paths(model: GTMSequence, log_density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every path through one sequence, and its log joint probability with the rows."""
    T, K = log_density.shape
    paths, log_A = np.array(list(product(range(K), repeat=T))), np.log(model.transition_matrix())
    value = np.log(model.initial_)[paths[:, 0]] + log_density[np.arange(T), paths].sum(axis=1)
    return paths, value + log_A[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def sequences(log_density: np.ndarray):
    return np.split(log_density, np.cumsum(LENGTHS)[:-1])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize(
    "settings", [{}, {"transitions": "free", "strength": 2.0}, {"initial": "learned"}, {"jump": None}], ids=repr
)
def test_every_path_is_summed_over(space: str, gaps: bool, settings: dict):
    X = toy(gaps=gaps)
    model = fitted(X, space, **settings)
    found, gamma = [], []
    for each in sequences(log_densities(model, X)):
        paths, value = all_paths(model, each)
        found.append(logsumexp(value))
        share = np.exp(value - logsumexp(value))
        gamma += [np.bincount(paths[:, t], share, minlength=each.shape[1]) for t in range(len(each))]
    rows = model.score_samples(X, lengths=LENGTHS)
    assert_allclose([part.sum() for part in np.split(rows, np.cumsum(LENGTHS)[:-1])], found, rtol=1e-10)
    assert_allclose(model.score(X, lengths=LENGTHS), sum(found) / len(X), rtol=1e-10)
    assert_allclose(model.responsibilities(X, lengths=LENGTHS), gamma, atol=1e-11)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_the_likeliest_path_is_the_likeliest(space: str, gaps: bool):
    X = toy(gaps=gaps)
    model = fitted(X, space)
    found = model.paths(X, lengths=LENGTHS)
    assert_allclose(found.latent, model.latent_.nodes[found.nodes])
    for nodes, each in zip(sequences(found.nodes), sequences(log_densities(model, X)), strict=True):
        paths, value = all_paths(model, each)
        taken = (paths == nodes).all(axis=1)
        assert_allclose(value[taken], value.max(), rtol=1e-12)  # a step not seen may be taken in several ways


def test_filtering_knows_nothing_of_later_rows():
    X = toy()
    model = fitted(X)
    means = []
    for each in sequences(log_densities(model, X)):
        for t in range(len(each)):
            paths, value = all_paths(model, each[: t + 1])
            share = np.bincount(paths[:, -1], np.exp(value - logsumexp(value)), minlength=each.shape[1])
            means.append(model.latent_.mean(share[None])[0])
    assert_allclose(model.filter(X, lengths=LENGTHS), means, atol=1e-10)


def test_what_is_expected_next_is_a_mixture_over_where_the_walk_may_be():
    X = toy()
    model = fitted(X)
    centers = model.inverse_transform(model.latent_.nodes)
    mean, std = model.forecast(X, 3, lengths=LENGTHS, return_std=True)
    for s, each in enumerate(sequences(log_densities(model, X))):
        for ahead in range(3):
            unseen = np.vstack([each, np.zeros((ahead + 1, each.shape[1]))])
            paths, value = all_paths(model, unseen)
            share = np.bincount(paths[:, -1], np.exp(value - logsumexp(value)), minlength=each.shape[1])
            assert_allclose(mean[s, ahead], share @ centers, atol=1e-10)
            spread = share @ np.square(centers) - np.square(share @ centers) + model.noise_variance_
            assert_allclose(std[s, ahead], np.sqrt(spread), atol=1e-10)


def test_what_is_filled_in_is_what_the_paths_expect():
    X = toy(gaps=True)
    model = fitted(X)
    centers = model.inverse_transform(model.latent_.nodes)
    gamma = []
    for each in sequences(log_densities(model, X)):
        paths, value = all_paths(model, each)
        share = np.exp(value - logsumexp(value))
        gamma += [np.bincount(paths[:, t], share, minlength=each.shape[1]) for t in range(len(each))]
    found, std = model.impute(X, lengths=LENGTHS, return_std=True)
    missing = np.isnan(X)
    expected = np.array(gamma) @ centers
    spread = np.array(gamma) @ np.square(centers) - np.square(expected) + model.noise_variance_
    assert_allclose(found, np.where(missing, expected, X), atol=1e-10)
    assert_allclose(std, np.where(missing, np.sqrt(spread), 0.0), atol=1e-10)


def test_training_ends_where_no_weight_and_no_step_can_be_bettered():
    """At the end the penalised likelihood of all paths has no slope, in weights, noise and steps alike."""
    X = toy(3)
    model = fitted(X, "circle", max_iter=3000, tol=1e-13, jump=None, relaxation=1.0, noise_floor=0.05)
    centered, Phi = X - model.offset_, model._model.surface.node_features
    mask = model._model.surface.penalty_mask
    kinds = model.moves_[:, 0]

    def lost(parameters: np.ndarray) -> float:
        W = parameters[: model.weights_.size].reshape(model.weights_.shape)
        beta, jump = np.exp(parameters[model.weights_.size]), 1 / (1 + np.exp(-parameters[model.weights_.size + 1]))
        u = np.exp(parameters[model.weights_.size + 2 :])
        u /= u.sum()
        K = len(Phi)
        A = np.full((K, K), jump / K)
        for share, kind in zip(u, kinds, strict=True):
            A[np.arange(K), (np.arange(K) + kind) % K] += (1 - jump) * share
        squared = np.square(centered[:, None] - (Phi @ W)[None]).sum(axis=2)
        log_b = 0.5 * X.shape[1] * np.log(beta / (2 * np.pi)) - 0.5 * beta * squared
        total = 0.0
        for each in sequences(log_b):
            value = np.log(1 / K) + each[0]
            for row in each[1:]:
                value = logsumexp(value[:, None] + np.log(A), axis=0) + row
            total += logsumexp(value)
        return -(total - 0.05 * beta * (mask @ np.square(W).sum(axis=1)) + 0.5 * np.log(u).sum())

    here = np.concatenate(
        [model.weights_.ravel(), [-np.log(model.noise_variance_), np.log(model.jump_ / (1 - model.jump_))]]
        + [np.log(model.move_shares_)]
    )
    free = np.ones(len(here), dtype=bool)
    free[model.weights_.size + 1] = model.jump_ > 2e-6  # at its floor it would go on, but may not
    slope = np.array([(lost(here + 1e-5 * e) - lost(here - 1e-5 * e)) / 2e-5 for e in np.eye(len(here))[free]])
    assert np.abs(slope).max() < 2e-3
    found = minimize(lambda p: lost(np.where(free, p, here)), here, options={"maxiter": 20})
    assert found.fun > lost(here) - 1e-5
