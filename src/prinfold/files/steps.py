"""The steps of scikit-learn that a file may hold beside our estimators: a fixed list, never a path."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from prinfold.exceptions import CorruptModelFileError
from prinfold.files.kinds import Kinds, number, numbers, part, whole_numbers
from prinfold.validation.settings import integer, nothing


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

INNER_ATTRIBUTES = {"PowerTransformer": ("_scaler",)}
"""Fitted attributes of steps whose names do not end in an underscore."""

_COLUMN = numbers("n_features_in_")
_SEEN = number | whole_numbers("n_features_in_") | numbers("n_features_in_")

STEP_KINDS: dict[str, Kinds] = {
    "StandardScaler": {
        "n_samples_seen_": _SEEN,
        "mean_": nothing | _COLUMN,
        "var_": nothing | _COLUMN,
        "scale_": nothing | _COLUMN,
    },
    "RobustScaler": {"center_": nothing | _COLUMN, "scale_": nothing | _COLUMN},
    "MinMaxScaler": {
        "n_samples_seen_": _SEEN,
        "min_": _COLUMN,
        "scale_": _COLUMN,
        "data_min_": _COLUMN,
        "data_max_": _COLUMN,
        "data_range_": _COLUMN,
    },
    "MaxAbsScaler": {"n_samples_seen_": _SEEN, "max_abs_": _COLUMN, "scale_": _COLUMN},
    "Normalizer": {},
    "PowerTransformer": {"lambdas_": _COLUMN, "_scaler": part("StandardScaler", n_features_in_="n_features_in_")},
    "QuantileTransformer": {
        "n_quantiles_": integer(1),
        "references_": numbers("n_quantiles_"),
        "quantiles_": numbers("n_quantiles_", "n_features_in_"),
    },
    "SimpleImputer": {"statistics_": _COLUMN, "indicator_": nothing},
    "PCA": {
        "n_components_": integer(0),
        "n_samples_": integer(1),
        "mean_": _COLUMN,
        "components_": numbers("n_components_", "n_features_in_"),
        "explained_variance_": numbers("n_components_"),
        "explained_variance_ratio_": numbers("n_components_"),
        "singular_values_": numbers("n_components_"),
        "noise_variance_": number,
    },
}
"""Name → the kinds of the fitted attributes that a step needs."""


_REQUIRED_ATTRIBUTES = {
    "StandardScaler": {"with_mean": "mean_", "with_std": "scale_"},
    "RobustScaler": {"with_centering": "center_", "with_scaling": "scale_"},
    "PowerTransformer": {"standardize": "_scaler"},
    "SimpleImputer": {"add_indicator": "indicator_"},
}
"""Name → {setting of a step: fitted attribute that it requires where it is switched on}."""


def revive_step(step: Any) -> None:
    """Refuse a step whose settings are wrong or lack what they need; add what it needs beyond its fitted attributes."""
    step._validate_params()
    for setting, attribute in _REQUIRED_ATTRIBUTES.get(type(step).__name__, {}).items():
        if getattr(step, setting) and getattr(step, attribute, None) is None:
            raise CorruptModelFileError(f"{attribute} is missing, which {setting}=True needs")
    if type(step).__name__ == "SimpleImputer":
        if not isinstance(step.missing_values, int | float):
            raise CorruptModelFileError(f"missing_values is {step.missing_values!r}, but must be a number")
        # The step also keeps the dtype of its training table, which is that of the values it fills in.
        step._fit_dtype = step._fill_dtype = step.statistics_.dtype
