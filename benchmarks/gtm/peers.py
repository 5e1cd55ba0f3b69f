"""Other ways to an EM iteration of a GTM: written plainly, scikit-learn's mixture, and libraries if installed.

Each is a function of the rows, nodes and basis functions along an axis that returns a function, which
returns seconds per iteration. A library that is not there raises ImportError.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable

import numpy as np
from benchmarks.timing import clocked
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from prinfold import GTM

Once = Callable[[], list[float]]


def plain_em(X: np.ndarray, Phi: np.ndarray, W: np.ndarray, beta: float, iterations: int, lam: float = 0.01) -> float:
    """EM as the thesis writes it, one whole N × K matrix after another; returns the log-likelihood."""
    T = X - X.mean(axis=0)
    n, D = T.shape
    mask = np.append(np.ones(Phi.shape[1] - 1), 0.0)
    for _ in range(iterations):
        Y = Phi @ W
        distance = (T**2).sum(axis=1)[:, None] - 2 * T @ Y.T + (Y**2).sum(axis=1)
        log_p = -0.5 * beta * distance
        total = logsumexp(log_p, axis=1)
        R = np.exp(log_p - total[:, None])
        mass = R.sum(axis=0)
        W = cho_solve(cho_factor(Phi.T @ (mass[:, None] * Phi) + lam * np.diag(mask)), Phi.T @ (R.T @ T))
        Y = Phi @ W
        distance = (T**2).sum(axis=1)[:, None] - 2 * T @ Y.T + (Y**2).sum(axis=1)
        beta = n * D / ((R * distance).sum() + lam * (mask @ (W**2).sum(axis=1)))
    return float(total.sum() + n * (0.5 * D * np.log(beta / (2 * np.pi)) - np.log(len(Phi))))


def careful_em(X: np.ndarray, Phi: np.ndarray, W: np.ndarray, beta: float, iterations: int, lam: float = 0.01) -> float:
    """The same with care for memory: blocks of rows, in place, no distance computed twice; the same log-likelihood."""
    T = X - X.mean(axis=0)
    n, D = T.shape
    mask, square = np.append(np.ones(Phi.shape[1] - 1), 0.0), float(np.vdot(T, T))
    for _ in range(iterations):
        Y = Phi @ W
        weighted, offset = beta * Y.T, -0.5 * beta * (Y**2).sum(axis=1)
        mass, moment, log_p = np.zeros(len(Phi)), np.zeros_like(Y), -0.5 * beta * square
        for i in range(0, n, 512):
            block = T[i : i + 512]
            R = block @ weighted
            R += offset
            largest = R.max(axis=1, keepdims=True)
            R -= largest
            np.exp(R, out=R)
            total = R.sum(axis=1, keepdims=True)
            R /= total
            mass += R.sum(axis=0)
            moment += R.T @ block
            log_p += float(largest.sum() + np.log(total).sum())
        W = cho_solve(cho_factor(Phi.T @ (mass[:, None] * Phi) + lam * np.diag(mask)), Phi.T @ moment)
        Y = Phi @ W
        error = mass @ (Y**2).sum(axis=1) - 2 * np.vdot(Y, moment) + square
        beta = n * D / (error + lam * (mask @ (W**2).sum(axis=1)))
    return float(log_p + n * (0.5 * D * np.log(beta / (2 * np.pi)) - np.log(len(Phi))))


def careful_numpy(X: np.ndarray, nodes: int, basis: int) -> Once:
    start = GTM(nodes=nodes, basis=basis, max_iter=0, tol=0).fit(X)
    Phi = start._model.surface.node_features
    return lambda: clocked(lambda: careful_em(X, Phi, start.weights_, 1 / start.noise_variance_, 1))


def plain_numpy(X: np.ndarray, nodes: int, basis: int) -> Once:
    start = GTM(nodes=nodes, basis=basis, max_iter=0, tol=0).fit(X)
    Phi = start._model.surface.node_features
    return lambda: clocked(lambda: plain_em(X, Phi, start.weights_, 1 / start.noise_variance_, 1))


def mixture(X: np.ndarray, nodes: int, basis: int) -> Once:
    K = nodes * nodes
    start = GTM(nodes=nodes, basis=basis, max_iter=0, tol=0).fit(X)
    model = GaussianMixture(
        K,
        covariance_type="spherical",
        means_init=start.inverse_transform(start.latent_.nodes).astype(X.dtype),
        weights_init=np.full(K, 1 / K, X.dtype),
        precisions_init=np.full(K, 1 / start.noise_variance_, X.dtype),
        init_params="random_from_data",
        tol=0,
        max_iter=2,
    )
    # One M-step before the two iterations and one E-step after them make three.
    return lambda: [seconds / 3 for seconds in clocked(lambda: model.fit(X))]


def ugtm(X: np.ndarray, nodes: int, basis: int) -> Once:
    from ugtm import ugtm_gtm

    start = ugtm_gtm.initialize(X, nodes, basis, 0.3)

    def once() -> list[float]:
        # What comes before and after the loop is the same with one iteration as with three.
        one, three = (clocked(lambda n=n: ugtm_gtm.optimize(X, start, 0.1, n, verbose=False))[0] for n in (1, 3))
        return [max(three - one, 0.0) / 2]

    return once


def gtmx(X: np.ndarray, nodes: int, basis: int) -> Once:
    from gtmx.gtm_base import GTMBase

    model = GTMBase(map_shape=(nodes, nodes), rbf_shape=(basis, basis))
    model._init_vars(X)
    return lambda: clocked(model._optimize)


def chemography_kit(X: np.ndarray, nodes: int, basis: int) -> Once:
    import torch
    from chemographykit.gtm import GTM as Theirs  # noqa: N811

    data = torch.tensor(X, dtype=torch.float64)
    model = Theirs(
        num_nodes=nodes**2, num_basis_functions=basis**2, basis_width=0.3, reg_coeff=0.1, max_iter=1, tolerance=0.0
    )
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
        model.fit(data)
    distances = [model.kernel(model.phi @ model.weights, data)]

    def once() -> list[float]:
        from threadpoolctl import threadpool_info

        torch.set_num_threads(
            max(1, *(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))
        )
        clock = time.perf_counter()
        responsibilities, _ = model.e_step(data, distances[0])
        distances[0] = model.m_step(data, responsibilities)
        return [time.perf_counter() - clock]

    return once


PEERS: dict[str, Callable[[np.ndarray, int, int], Once]] = {
    "careful NumPy": careful_numpy,
    "plain NumPy": plain_numpy,
    "sklearn mixture": mixture,
    "ugtm": ugtm,
    "GTMX": gtmx,
    "ChemographyKit": chemography_kit,
}


def available(X: np.ndarray, nodes: int, basis: int) -> tuple[dict[str, Once], dict[str, str]]:
    """The peers that can run, and why the others cannot."""
    found, missing = {}, {}
    for name, prepare in PEERS.items():
        try:
            found[name] = prepare(X, nodes, basis)
        except ImportError as why:
            missing[name] = f"not installed ({why})"
    return found, missing
