"""Settings that every test shares."""

from __future__ import annotations

import os

# Read when scipy is first imported; without it scikit-learn leaves out its check of array-API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# The same examples in every run, so that a red run means a changed program;
# `--hypothesis-profile=search` looks further.
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = os.environ.get("PRINFOLD_DATA")
    if folder and Path(folder).is_dir():
        return
    skip = pytest.mark.skip(reason="real data sets: set PRINFOLD_DATA to the folder that holds them")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread_per_worker() -> Iterator[None]:
    """Parallel workers share the cores among themselves already."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    import sys

    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
