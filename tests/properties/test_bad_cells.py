"""Every method refuses cells that it cannot use, by row and column, in a fit and afterwards."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.utils import get_tags

from prinfold.exceptions import InvalidDataError
from prinfold.methods import METHODS
from tests.properties.cases import cloud

pytestmark = pytest.mark.filterwarnings("ignore")

WRONG = {"gap": np.nan, "infinity": np.inf, "minus infinity": -np.inf}
INFINITE = r"contains infinity \(inf\)"
WORDS = {"gap": "contains NaN", "infinity": INFINITE, "minus infinity": INFINITE}

BY_COLUMN = {"MixedGTM": rf"column '1' {INFINITE} in row 5;"}
"""What is told in a fit that takes stock of columns, which may come in blocks, before it looks at rows."""


def _fit(name: str, X: Any) -> Any:
    model = METHODS[name].cls()
    if "max_iter" in model.get_params(deep=False):
        model.set_params(max_iter=3)
    needs = "y" in signature(model.fit).parameters and get_tags(model).target_tags.required
    return model.fit(X, np.arange(len(X)) % 2) if needs else model.fit(X)


@cache
def _fitted(name: str) -> Any:
    return _fit(name, cloud(60))


def _verbs(model: Any) -> list[str]:
    return [verb for verb in ("transform", "predict", "project", "score_samples") if hasattr(model, verb)]


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", METHODS)
def test_cells_that_a_method_cannot_use_are_named(name: str, what: str) -> None:
    if what == "gap" and get_tags(METHODS[name].cls()).input_tags.allow_nan:
        pytest.skip("it uses rows with gaps")
    X = cloud(60)
    X[5, 1] = WRONG[what]
    told = rf"{WORDS[what]}: 1 of its values .*row\(s\) 5 and column\(s\) 1\."
    with pytest.raises(InvalidDataError, match=BY_COLUMN.get(name, told)):
        _fit(name, X)
    model = _fitted(name)
    for verb in _verbs(model):
        with pytest.raises(InvalidDataError, match=told):
            getattr(model, verb)(X)
