"""Requirements on a model that was read from a file: its parts must fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from prinfold.exceptions import CorruptModelFileError
from prinfold.loops import StopReason


def require_parts(requirements: Mapping[str, bool]) -> None:
    """Raise an error that names the first requirement that does not hold; requirements are words → whether it holds."""
    for wanted, holds in requirements.items():
        if not holds:
            raise CorruptModelFileError(f"the model in the file does not fit together: it needs {wanted}")


def training_parts(model: Any) -> dict[str, bool]:
    """Requirements on what every training leaves: names of the columns, if any, and why it ended."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "a name for each column": names is None or len(names) == model.n_features_in_,
        "a reason for stopping": isinstance(model.stop_reason_, StopReason),
    }


def is_finite_array(array: Any, shape: tuple[int, ...] | None = None) -> bool:
    """Whether a part is an array of finite floating-point numbers, of the given shape if any."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or shape not in (None, array.shape):
        return False
    return bool(np.isfinite(array).all())
