"""The steps of scikit-learn that a file may hold beside our estimators: a fixed list, never a path."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def _step(module: str, name: str) -> Callable[[], type]:
    return lambda: getattr(import_module(module), name)


STEPS: dict[str, Callable[[], type]] = {
    "StandardScaler": _step("sklearn.preprocessing", "StandardScaler"),
    "RobustScaler": _step("sklearn.preprocessing", "RobustScaler"),
    "MinMaxScaler": _step("sklearn.preprocessing", "MinMaxScaler"),
    "MaxAbsScaler": _step("sklearn.preprocessing", "MaxAbsScaler"),
    "Normalizer": _step("sklearn.preprocessing", "Normalizer"),
    "PowerTransformer": _step("sklearn.preprocessing", "PowerTransformer"),
    "QuantileTransformer": _step("sklearn.preprocessing", "QuantileTransformer"),
    "SimpleImputer": _step("sklearn.impute", "SimpleImputer"),
    "PCA": _step("sklearn.decomposition", "PCA"),
}
"""Name → a function that finds the class, so that nothing is imported before it is needed."""

INNER = {"PowerTransformer": ("_scaler",)}
"""Fitted attributes of steps that do not look it."""


def _revive_imputer(imputer: Any) -> None:
    # It remembers the kind of number that it was fitted to, which is that of what it fills in.
    imputer._fit_dtype = imputer._fill_dtype = imputer.statistics_.dtype


REVIVE: dict[str, Callable[[Any], None]] = {"SimpleImputer": _revive_imputer}
"""What a step needs beyond its fitted attributes."""
