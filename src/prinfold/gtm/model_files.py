"""Checks of the parts of a model that was read from a file: that they fit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prinfold.base.file_requirements import is_finite_array, training_parts
from prinfold.exceptions import CorruptModelFileError

_MOST_FEATURES = 2**28
"""Nodes × basis functions beyond which no model was ever trained."""


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
    n_columns = estimator.n_features_in_
    return {
        f"weights of shape {shape}": is_finite_array(estimator.weights_, shape),
        f"an offset of shape ({n_columns},)": is_finite_array(estimator.offset_, (n_columns,)),
        **estimator._noise_parts(),
        "a mass of at least zero for each node": _are_masses(estimator.node_mass_, estimator.latent_.n_nodes, shape[1]),
        **training_parts(estimator),
        "a history no longer than its iterations": _is_history(estimator.history_, estimator.n_iter_ + 1),
        "nodes and basis functions that fit in memory": estimator.latent_.n_nodes * shape[0] <= _MOST_FEATURES,
    }


def _are_masses(mass: Any, n_nodes: int, n_columns: int) -> bool:
    """Whether masses from a file will do; older files have none."""
    known = is_finite_array(mass, (n_nodes,)) or is_finite_array(mass, (n_nodes, n_columns))
    return mass is None or (known and bool((mass >= 0).all()))


def _is_history(history: Any, longest: int) -> bool:
    """Whether all lists are of one length; of a stream only what came last is kept."""
    lengths = {len(each) for each in history.values()}
    return len(lengths) == 1 and 0 < min(lengths) <= longest
