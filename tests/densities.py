"""Densities to test, with what they are by definition."""

from __future__ import annotations

import numpy as np

from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.densities import KernelDensity
from prinfold.density.mixtures import MixtureDensity

DIMENSIONS = [1, 2, 3, 5, 12]
M = 300


def rows(D, m=M, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, m)
    X = np.stack([np.sin((1 + 0.5 * d) * t + d) for d in range(D)], axis=1) + 0.2 * rng.normal(size=(m, D))
    return X + 100.0, rng.uniform(0.2, 3.0, m)


def matrix(D, seed=5):
    A = np.random.default_rng(seed).normal(size=(D, D))
    return 0.05 * (A @ A.T / D + np.eye(D))


def kernel_density(D, shape, **settings):
    X, w = rows(D)
    bandwidth = {"number": 0.3, "columns": np.linspace(0.2, 0.5, D), "matrix": matrix(D)}[shape]
    return KernelDensity(X, w, bandwidth, **settings)


def adaptive_density(D, **settings):
    X, w = rows(D)
    return AdaptiveDensity(X, w, 0.3 * np.exp(np.random.default_rng(2).uniform(-1, 1, len(X))), **settings)


def mixture_density(D, K=4):
    rng = np.random.default_rng(6)
    return MixtureDensity(
        rng.uniform(0.5, 2, K), rng.normal(size=(K, D)), np.stack([3 * matrix(D, i) for i in range(K)])
    )


def components(density):
    """Weights, means and covariances of the normal densities that a density is made of."""
    if isinstance(density, MixtureDensity):
        return density.weights, density.means, density.covariances
    D = density.rows.shape[1]
    if isinstance(density, AdaptiveDensity):
        return density.weight, density.rows, density.bandwidths[:, None, None] ** 2 * np.eye(D)
    bandwidth = np.asarray(density.bandwidth)
    H = bandwidth if bandwidth.ndim == 2 else np.diag(np.broadcast_to(bandwidth, D) ** 2)
    return density.weight, density.rows, np.broadcast_to(H, (len(density.rows), D, D))


def reference(parts, X):
    """(n,) log p by the definition, one normal density at a time, in log space."""
    weight, mean, covariance = parts
    terms = np.empty((len(X), len(weight)))
    for j, (m, S) in enumerate(zip(mean, covariance, strict=True)):
        d = X - m
        level = 0.5 * (np.linalg.slogdet(S)[1] + len(m) * np.log(2 * np.pi))
        terms[:, j] = -0.5 * np.einsum("ni,ni->n", d, np.linalg.solve(S, d.T).T) - level
    with np.errstate(divide="ignore"):
        terms += np.log(weight / weight.sum())
    return np.logaddexp.reduce(terms, axis=1)


def slopes(function, X, h):
    """(n, …, D) central differences."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(function(X + e) - function(X - e)) / (2 * h) for e in steps], axis=-1)


CASES = {
    f"{shape}-{accuracy}-{D}": lambda shape=shape, accuracy=accuracy, D=D: kernel_density(D, shape, accuracy=accuracy)
    for shape in ("number", "columns", "matrix")
    for accuracy in ("truncated", "exact")
    for D in DIMENSIONS
}
CASES |= {
    f"adaptive-{a}-{D}": lambda a=a, D=D: adaptive_density(D, accuracy=a)
    for a in ("truncated", "exact")
    for D in DIMENSIONS
}
CASES |= {f"mixture-{D}": lambda D=D: mixture_density(D) for D in DIMENSIONS}


def near(density, n=25, off=0.3, seed=1):
    rng = np.random.default_rng(seed)
    X = components(density)[1]
    return X[rng.choice(len(X), n)] + off * rng.normal(size=(n, X.shape[1]))
