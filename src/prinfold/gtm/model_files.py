"""Checks of the parts of a model that was read from a file: that they fit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import CorruptModelFileError
from prinfold.loops import StopReason

_MOST_FEATURES = 2**28
"""Nodes × basis functions beyond which no model was ever trained."""


def refuse_misfits(parts: dict[str, bool]) -> None:
    """Refuse a model of which some part is not as it has to be; ``parts`` says in words what has to hold."""
    for wanted, holds in parts.items():
        if not holds:
            raise CorruptModelFileError(f"the model in the file does not fit together: it needs {wanted}")


@contextmanager
def explain_misfits() -> Iterator[None]:
    """Refuse a model whose parts cannot be put together, and say which part was in the way."""
    try:
        yield
    except CorruptModelFileError:
        raise
    except (TypeError, ValueError) as error:
        raise CorruptModelFileError(f"the model in the file does not fit together: it needs {error}") from error


def map_parts(estimator: Any, shape: tuple[int, int]) -> dict[str, bool]:
    """Whether weights, offset, masses, names and history suit each other; ``shape`` is that of the weights."""
    n_columns, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    return {
        f"weights of shape {shape}": _is_real(estimator.weights_) and estimator.weights_.shape == shape,
        f"an offset of shape ({n_columns},)": _is_real(estimator.offset_) and estimator.offset_.shape == (n_columns,),
        **estimator._noise_parts(),
        "a mass of at least zero for each node": _are_masses(estimator.node_mass_, estimator.latent_.n_nodes, shape[1]),
        "a name for each column": names is None or len(names) == n_columns,
        "a reason for stopping": isinstance(estimator.stop_reason_, StopReason),
        "a history no longer than its iterations": _is_history(estimator.history_, estimator.n_iter_ + 1),
        "nodes and basis functions that fit in memory": estimator.latent_.n_nodes * shape[0] <= _MOST_FEATURES,
    }


def refuse_infinite_surface(surface: BasisMap, weights: FloatArray) -> None:
    """Refuse weights that lead to no place."""
    if not np.isfinite(surface.nodes(weights)).all():
        raise CorruptModelFileError("the model in the file does not fit together: its surface is not finite")


def _are_masses(mass: Any, n_nodes: int, n_columns: int) -> bool:
    """Whether masses from a file will do; older files have none."""
    shapes = ((n_nodes,), (n_nodes, n_columns))
    return mass is None or (_is_real(mass) and mass.shape in shapes and bool((mass >= 0).all()))


def _is_history(history: Any, longest: int) -> bool:
    """Whether all lists are of one length; of a stream only what came last is kept."""
    lengths = {len(each) for each in history.values()}
    return len(lengths) == 1 and 0 < min(lengths) <= longest


def _is_real(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"
