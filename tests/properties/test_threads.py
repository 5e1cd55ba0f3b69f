"""The same numbers to the last bit on any number of threads, for every method: fitted models, histories, verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.kernel_sizes import PLANNED, SWEPT, lowered
from tests.properties.cases import CASES, Case, cases, cloud

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = {
    "prinfold.rows.rows._BLOCK_BYTES": 1,
    "prinfold.rows.rows._ENTRIES_PER_THREAD": 1,
    "prinfold.gtm.model.ROWS_PER_SUM": 1,
    "prinfold.kernel_manifolds.objective._BLOCK_ENTRIES": 1,
    "prinfold.kernel_manifolds.objective._PART_PAIRS": 512,
    "prinfold.density.dense_kernel_sums._ROWS_ON_THREADS": 32,
    "prinfold.density.strips._ROWS_ON_THREADS": 32,
    "prinfold.density.strips._ROWS_PER_PART": 32,
    "prinfold.numerics.kernel_mixtures._ROWS_ON_THREADS": 32,
}
"""Sizes below which work stays on one thread, so small that a few hundred rows are cut into many parts."""


@contextmanager
def threads(n: int, settings: dict[str, Any]) -> Iterator[None]:
    """As if the machine had so many cores."""
    with threadpool_limits(n), lowered({"joblib.cpu_count": lambda *_, **__: n, **settings}):
        yield


VERBS = ("transform", "project", "score_samples", "responsibilities", "predict", "posterior_covariance")


def answers(case: Case, X: Any, n: int, settings: dict[str, Any]) -> dict[str, Any]:
    """What a fit on so many threads comes to, and what the model says of rows."""
    seed = {"random_state": 0} if "random_state" in case.make().get_params() else {}
    with threads(n, settings):
        model = case.make(**{"max_iter": 6, **seed}).fit(X)
        found = {f"history: {name}": values for name, values in model.history_.items() if name != "seconds"}
        found |= {verb: getattr(model, verb)(X) for verb in VERBS if hasattr(model, verb)}
        found["surface"] = model.inverse_transform(model.transform(X))
        found["score"] = model.score(X)
    return found


COUNTS = (2, 3, 5)
"""Numbers of threads; each case is compared on one of them, in turn, so that every family meets all."""


def assert_alike(case: Case, X: Any, turn: int, settings: dict[str, Any]) -> None:
    n = COUNTS[(CASES.index(case) + turn) % len(COUNTS)]
    wanted = answers(case, X, 1, settings)
    for name, found in answers(case, X, n, settings).items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} on {n} threads")


@cases(few={"GTM", "SOM"})
def test_fits_and_verbs_are_the_same_on_any_number_of_threads(case):
    assert_alike(case, cloud(330), 0, SMALL)


@cases("density", few={"GTM"})
@pytest.mark.parametrize("swept", [False, True], ids=["parts", "sweeps"])
def test_planned_passes_are_the_same_on_any_number_of_threads(case, swept):
    assert_alike(case, cloud(330), 1 + swept, {**SMALL, **PLANNED, **(SWEPT if swept else {})})
