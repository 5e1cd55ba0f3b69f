"""The arithmetic of devices: sums of an E-step against loops over rows, by the array API standard and nothing more."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.devices import softmax_sums as module
from prinfold.devices.device import to_numpy
from prinfold.devices.nearest_nodes import nearest_sums
from prinfold.devices.softmax_sums import NodeLoading, node_shares, softmax_sums

RNG = np.random.default_rng(0)


def problem(n: int, D: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return RNG.normal(size=(n, D)), RNG.normal(size=(D, K)), RNG.normal(size=K), RNG.random(n)


def on_device(*arrays: np.ndarray) -> list[object]:
    return [xp.asarray(each) for each in arrays]


def by_rows(T, loading, bias, weight):
    """Sums of one row after another, by the formula as it stands."""
    mass, moment, total = np.zeros(len(bias)), np.zeros(loading.shape), 0.0
    for t, w in zip(T, weight, strict=True):
        score = np.array([t @ loading[:, k] + bias[k] for k in range(len(bias))])
        log_sum = np.log(np.sum(np.exp(score)))
        share = np.exp(score - log_sum)
        mass += w * share
        moment += w * np.outer(t, share)
        total += w * log_sum
    return mass, moment, total


@pytest.mark.parametrize("at_once", [1, 64, 2**25])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_one_row_after_another(monkeypatch, at_once, weighted):
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", at_once)
    T, loading, bias, weight = problem(23, 3, 7)
    own = weight if weighted else np.ones(23)
    there = on_device(T, loading, bias, own)
    found = softmax_sums(xp, there[0], there[3] if weighted else None, NodeLoading(*there[1:3]))
    for each, wanted in zip(found, by_rows(T, loading, bias, own), strict=True):
        assert_allclose(to_numpy(each).sum(axis=0), wanted, rtol=1e-12)


def test_a_row_far_from_every_node_has_shares_that_sum_to_one():
    T, loading, bias, _ = problem(4, 3, 7)
    share, log_sum = node_shares(xp, xp.asarray(1e6 * T), NodeLoading(*on_device(loading, bias)))
    assert_allclose(to_numpy(share).sum(axis=1), 1.0)
    assert np.isfinite(to_numpy(log_sum)).all()


@pytest.mark.parametrize("at_once", [7, 2**25])
def test_every_row_goes_to_the_nearest_node(monkeypatch, at_once):
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", at_once)
    T, nodes, _, weight = problem(40, 3, 5)
    there = on_device(T, nodes, -0.5 * np.square(nodes).sum(axis=0), weight)
    found = nearest_sums(xp, there[0], there[3], NodeLoading(*there[1:3]))
    distance = np.linalg.norm(T[:, :, None] - nodes, axis=1)
    nearest = distance.argmin(axis=1)
    mass, moment, score = (to_numpy(each).sum(axis=0) for each in found)
    assert_allclose(mass, np.bincount(nearest, weight, minlength=5), rtol=1e-12)
    assert_allclose(moment, [np.bincount(nearest, weight * t, minlength=5) for t in T.T], rtol=1e-11, atol=1e-14)
    squares = np.square(T).sum(axis=1)
    assert_allclose(weight @ squares - 2 * score, weight @ np.square(distance.min(axis=1)), rtol=1e-12)


def test_fused_sums_are_those_of_the_array_api():
    """In Triton; its kernels run on a CUDA device, or on any machine with TRITON_INTERPRET=1."""
    torch, compat = pytest.importorskip("torch"), pytest.importorskip("array_api_compat.torch")
    fused = pytest.importorskip("prinfold.devices.fused_sums")
    if not fused.has_triton() or not (torch.cuda.is_available() or _is_interpreted()):
        pytest.skip("no CUDA device")
    place = "cuda" if torch.cuda.is_available() else "cpu"
    for n, D, K, weighted in [(300, 3, 70, True), (1000, 20, 130, False), (257, 32, 64, True), (500, 40, 100, True)]:
        T, loading, _, weight = (torch.tensor(each, device=place) for each in problem(n, D, K))
        nodes = NodeLoading(3 * loading, -4.5 * loading.square().sum(dim=0))
        own = weight if weighted else None
        exact = softmax_sums(compat, T, own, nodes)
        single = NodeLoading(*(each.float() for each in nodes))
        found = fused.fused_sums(compat, T.float(), None if own is None else own.float(), single)
        for each, wanted in zip(found, exact, strict=True):
            total = to_numpy(wanted).sum(axis=0)
            assert_allclose(to_numpy(each).sum(axis=0), total, atol=3e-6 * np.abs(total).max())


def _is_interpreted() -> bool:
    import os

    return os.environ.get("TRITON_INTERPRET") == "1"
