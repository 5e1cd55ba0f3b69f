"""The mixture against its definition at toy size: explicit sums over maps and nodes, explicit maximisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from prinfold import GTM, GTMMixture
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm.mixture.model import (
    MixtureModel,
    MixtureParameters,
    e_step,
    log_densities,
    m_step,
    memberships,
    pooled,
)
from prinfold.gtm.node_selection import Hint
from prinfold.rows.rows import Rows, as_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def toy(n: int = 40, seed: int = 0) -> np.ndarray:
    """Two bent sheets that overlap."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    first = np.stack([u, v, np.sin(2 * u)], axis=1)
    return np.where(np.arange(n)[:, None] < n // 2, first, first[:, [1, 2, 0]] + 0.7) + 0.15 * rng.normal(size=(n, 3))


def mixture_of(X: np.ndarray, recipe: GTM | None = None, weight: Any = None, **options: Any) -> GTMMixture:
    recipe = recipe or GTM(nodes=4, basis=3, regularization=0.2)
    settings = {"partition": np.arange(len(X)) // (len(X) // 2), "max_iter": 3, "tol": 0.0, **options}
    return GTMMixture(2, recipe, **settings).fit(X, sample_weight=weight)


def parts(model: GTMMixture, X: np.ndarray, weight: Any = None) -> tuple[MixtureModel, Rows, MixtureParameters]:
    """The model, the rows and the parameters behind a fitted mixture."""
    rows = as_rows(X, None, weight, gaps=bool(np.isnan(X).any()))
    maps = tuple(each._model_for(rows, each._model) for each in model.maps_)
    fixed = MixtureModel(maps, tuple(each.offset_ for each in model.maps_), bool(model.shared_noise))
    return fixed, rows, MixtureParameters(model.mixing_, tuple(each._parameters() for each in model.maps_))


def log_joint(model: GTMMixture, X: np.ndarray) -> list[np.ndarray]:
    """For each map (n, K) log π p(t | node) / K, one call of scipy's density for each node."""
    found = []
    for share, each in zip(model.mixing_, model.maps_, strict=True):
        centers = each.inverse_transform(each.latent_.nodes)
        covariance = each.noise_covariance()
        log_p = [multivariate_normal(c, S).logpdf(X) for c, S in zip(centers, covariance, strict=True)]
        found.append(np.stack(log_p, axis=1) + np.log(share / len(centers)))
    return found


@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "aligned", "varying"])
def test_memberships_and_density_by_brute_force(noise: str):
    X = toy()
    model = mixture_of(X, GTM(nodes=4, basis=3, noise=noise))
    if noise == "varying":  # whose nodes have unequal shares
        each = [np.log(one.noise_parameters_["node_shares"] * one.latent_.n_nodes) for one in model.maps_]
    else:
        each = [0.0, 0.0]
    joint = [part + extra for part, extra in zip(log_joint(model, X), each, strict=True)]
    whole = np.concatenate(joint, axis=1)
    assert_allclose(model.score_samples(X), logsumexp(whole, axis=1), rtol=1e-9)
    responsibility = np.exp(whole - logsumexp(whole, axis=1, keepdims=True))
    assert_allclose(model.responsibilities(X), responsibility, atol=1e-10)
    held = np.stack([np.exp(logsumexp(part, axis=1) - logsumexp(whole, axis=1)) for part in joint], axis=1)
    assert_allclose(model.memberships(X), held, atol=1e-10)
    assert_allclose(model.memberships(X).sum(axis=1), 1.0, rtol=1e-12)


def test_the_sums_are_those_of_the_definition():
    X, weight = toy(), np.random.default_rng(3).uniform(0.2, 2.0, 40)
    model = mixture_of(X, weight=weight)
    fixed, rows, parameters = parts(model, X, weight)
    sums, _ = e_step(fixed, rows, parameters, [Hint(), Hint()])
    whole = np.concatenate(log_joint(model, X), axis=1)
    R = np.exp(whole - logsumexp(whole, axis=1, keepdims=True)) * weight[:, None]
    assert_allclose(sums.log_likelihood, weight @ logsumexp(whole, axis=1))
    assert_allclose(sums.total, weight.sum())
    for each, one, own in zip(sums.maps, model.maps_, np.split(R, [16], axis=1), strict=True):
        T = X - one.offset_
        assert_allclose(each.mass, own.sum(axis=0), atol=1e-10)
        assert_allclose(each.moment, own.T @ T, atol=1e-10)
        assert_allclose(each.square, own.sum(axis=1) @ np.square(T).sum(axis=1))
    assert_allclose(sums.masses.sum(), weight.sum())


def test_sums_of_blocks_are_the_sum():
    X = toy()
    fixed, _, parameters = parts(mixture_of(X), X)
    hints = [Hint(), Hint()]
    whole, first, second = (e_step(fixed, as_rows(part), parameters, hints)[0] for part in (X, X[:13], X[13:]))
    both = (first + second).scale(2.0)
    assert_allclose(both.masses, 2 * whole.masses)
    assert_allclose([both.log_likelihood, both.total], [2 * whole.log_likelihood, 2 * whole.total])
    for a, b in zip(both.maps, whole.maps, strict=True):
        assert_allclose(a.moment, 2 * b.moment, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("penalty", [{"regularization": 0.3}, {"prior_precision": 0.7}])
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_the_m_step_is_the_best_there_is(shared: bool, penalty: dict[str, float], noise: str):
    """No change of a share, of a weight or of a noise raises what the E-step hands on, the rest being as it is."""
    X = toy()
    X[3, 1] = X[30, 0] = np.nan
    model = mixture_of(X, GTM(nodes=4, basis=3, noise=noise, **penalty), shared_noise=shared)
    fixed, rows, old = parts(model, X)
    sums, _ = e_step(fixed, rows, old, [Hint(), Hint()])
    new = m_step(fixed, sums, old)
    assert_allclose(new.shares, sums.masses / sums.total)

    def expected(maps: tuple) -> float:
        """Expected complete log-likelihood less penalties, but for a constant, from the sums of cells."""
        total = 0.0
        for each, sums_j, p in zip(fixed.maps, sums.maps, maps, strict=True):
            Y, beta = each.surface.nodes(p.weights), np.broadcast_to(p.precision, 3)
            error = sums_j.square + np.einsum("kd,kd->d", Y, Y * sums_j.squares - 2 * sums_j.products)
            total += 0.5 * float(sums_j.seen @ np.log(beta) - beta @ error) - p.cost(each.surface, each.penalty)
        return total

    best, rng = expected(new.maps), np.random.default_rng(0)
    for column in range(3 if noise == "diagonal" else 1):

        def louder(log_factor: float, j: Any, column: int = column) -> tuple:
            out = []
            for i, p in enumerate(new.maps):
                factor = np.where(np.arange(np.size(p.precision)) == column, np.exp(log_factor), 1.0)
                changed = p.precision * (factor if np.ndim(p.precision) else float(factor[0]))
                out.append(replace(p, precision=changed) if i in j else p)
            return tuple(out)

        for j in [(0, 1)] if shared else [(0,), (1,)]:
            found = minimize_scalar(lambda f, j=j: -expected(louder(f, j)), bracket=(-0.2, 0.2), tol=1e-10)
            assert abs(found.x) < 1e-5
    if "regularization" in penalty:  # with a prior, weights are the best for the noise before
        for _ in range(10):
            nudge = 1e-3 * rng.normal(size=new.maps[0].weights.shape)
            moved = (replace(new.maps[0], weights=new.maps[0].weights + nudge), new.maps[1])
            assert expected(moved) <= best + 1e-9
    if shared:
        assert_allclose(new.maps[0].precision, new.maps[1].precision, rtol=1e-15)


def test_a_shared_noise_has_a_floor():
    X = toy()
    fixed, _, parameters = parts(mixture_of(X, shared_noise=True), X)
    high = replace(fixed.maps[0].noise, floor=5.0)
    found = pooled(replace(fixed, maps=(replace(fixed.maps[0], noise=high), fixed.maps[1])), parameters.maps, [1, 1])
    assert [each.precision for each in found] == [0.2, 0.2]


def test_memberships_far_from_everything_are_numbers():
    log_density = np.array([[-1e300, -1e301], [-1e5, -1e5], [3.0, -2000.0]])
    share, log_likelihood = memberships(log_density.copy(), np.array([0.25, 0.75]))
    assert_allclose(share, [[1.0, 0.0], [0.25, 0.75], [1.0, 0.0]], atol=1e-12)
    assert_allclose(log_likelihood, [-1e300, -1e5, 3.0 + np.log(0.25)])


def test_a_map_without_a_share_holds_nothing_and_stays_as_it_is():
    X = toy()
    fixed, rows, parameters = parts(mixture_of(X), X)
    dead = replace(parameters, shares=np.array([1.0, 0.0]))
    state = fixed.begin(rows, dead)
    assert_allclose(state.statistics.masses, [40.0, 0.0])
    for _ in range(3):
        state = fixed.step(rows, state, 1.8)
    assert state.parameters.maps[1] is dead.maps[1] or np.array_equal(
        state.parameters.maps[1].weights, dead.maps[1].weights
    )
    assert_allclose(state.parameters.shares, [1.0, 0.0])
    alone = gtm.step(
        fixed.maps[0], fixed.rows_of_map(0, rows), gtm.begin(fixed.maps[0], fixed.rows_of_map(0, rows), dead.maps[0])
    )
    once = fixed.step(rows, fixed.begin(rows, dead))
    assert_allclose(once.parameters.maps[0].weights, alone.parameters.weights, atol=1e-10)
    assert_allclose(fixed.measure(once)["objective"], gtm.measure(fixed.maps[0], alone)["objective"], rtol=1e-10)


def test_log_densities_are_in_double_precision_whatever_the_rows_are_in():
    X = toy()
    fixed, _, parameters = parts(mixture_of(X), X)
    wide, narrow = (log_densities(fixed, as_rows(X.astype(kind)), parameters) for kind in ("f8", "f4"))
    assert narrow.dtype == wide.dtype == np.float64
    assert_allclose(narrow, wide, rtol=1e-5, atol=1e-5)


def test_sums_that_leave_out_nodes_and_rows_are_those_of_all(monkeypatch: pytest.MonkeyPatch):
    """Planned passes leave out nodes that do not matter to rows, and rows that do not matter to a map."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, 700))
    X = np.stack([u, v, 0.5 * u**2], axis=1) + 0.02 * rng.normal(size=(700, 3))
    X[rng.permutation(700)[:300], 2] += 1.5
    weight = rng.uniform(0.5, 2.0, 700)
    part = (X[:, 2] > 1.0).astype(int)
    model = mixture_of(X, GTM(nodes=20, basis=4, regularization=0.01), weight, partition=part, max_iter=15)
    fixed, rows, parameters = parts(model, X, weight)
    dense, _ = e_step(fixed, rows, parameters, [Hint(), Hint()])
    seen: list[int] = []
    sum_parts = gtm.sum_parts

    def counted(model: Any, rows: Rows, nodes: Any, parts: Any) -> Any:
        seen.append(sum(part.n_entries(len(nodes.centers)) for part in parts))
        return sum_parts(model, rows, nodes, parts)

    monkeypatch.setattr(pruning, "_PLAN_FROM", 0)
    monkeypatch.setattr(pruning, "_USEFUL_SHARE", 1.0)
    monkeypatch.setattr(gtm, "sum_parts", counted)
    planned, hints = e_step(fixed, rows, parameters, [Hint(), Hint()])
    assert all(hint.groups is not None for hint in hints), "nothing was planned: the comparison would say nothing"
    assert sum(seen) < 0.4 * 2 * 700 * 400
    assert_allclose(planned.masses, dense.masses, rtol=1e-8)
    assert_allclose(planned.log_likelihood, dense.log_likelihood, rtol=1e-9)
    for a, b in zip(planned.maps, dense.maps, strict=True):
        assert_allclose(a.moment, b.moment, atol=1e-5 * np.abs(b.moment).max())
