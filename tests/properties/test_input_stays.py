"""What a user passes in is never written to, by no method and no verb."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import get_tags

from prinfold.exceptions import PrinfoldError
from prinfold.methods import METHODS
from tests.properties.cases import cloud

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

VERBS = (
    "transform",
    "inverse_transform",
    "predict",
    "predict_proba",
    "project",
    "reconstruct",
    "projection_error",
    "score_samples",
    "responsibilities",
    "posterior_mode",
    "posterior_covariance",
    "log_density",
    "jacobian",
    "impute",
    "calibrate",
    "partial_fit",
)
"""Verbs that take rows or coordinates; each is asked where a method has it."""


def _with_gap(table: Any) -> Any:
    table = table.copy()
    table[3, 1] = np.nan
    return table


HELD: dict[str, Callable[[Any], Any]] = {
    "rows": lambda table: table.copy(),
    "columns": np.asfortranarray,
    "single": lambda table: table.astype(np.float32),
    "frame": lambda table: pd.DataFrame(table.copy(), columns=list("abcde")),
    "gap": _with_gap,
}
"""Tables that code could write to without a copy."""


def _bytes(given: dict[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(each).tobytes() for name, each in given.items()}


def _ask(model: Any, X: Any) -> None:
    Z = model.transform(X) if hasattr(model, "transform") else X
    coordinates = Z.copy() if hasattr(Z, "copy") else Z
    before = _bytes({"Z": coordinates})
    for verb in VERBS:
        if not hasattr(model, verb):
            continue
        places = verb in {"inverse_transform", "jacobian"}
        try:
            getattr(model, verb)(coordinates if places else X)
        except (PrinfoldError, TypeError):  # it needs more than rows, or other rows
            continue
    assert _bytes({"Z": coordinates}) == before


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", METHODS)
def test_nothing_that_is_passed_in_is_written_to(name: str, held: str) -> None:
    model, X = METHODS[name].cls(), HELD[held](cloud(60))
    if held == "gap" and not get_tags(model).input_tags.allow_nan:
        pytest.skip("it needs every cell")
    if "max_iter" in model.get_params(deep=False):
        model.set_params(max_iter=3)
    n = len(X)
    given = {"X": X, "y": (np.arange(n) % 2).astype(float), "sample_weight": np.linspace(0.5, 1.5, n)}
    options = {each: given[each] for each in ("y", "sample_weight") if each in signature(model.fit).parameters}
    before = _bytes(given)
    model.fit(X, **options)
    assert _bytes(given) == before
    _ask(model, X)
    assert _bytes(given) == before
