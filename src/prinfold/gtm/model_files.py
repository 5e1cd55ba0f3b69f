"""Checks that the parts of a model read from a file fit together."""

from __future__ import annotations

from typing import Any

from prinfold.files.kinds import array, mapping_of, number

_MOST_FEATURES = 2**28
"""Largest number of nodes × basis functions that is accepted: no trained model has more."""


NOISE_PARAMETERS = mapping_of(number | array())
"""Kinds of the parameters of the noise; their names and shapes are checked by the noise itself."""


def map_parts(estimator: Any, n_weights: int) -> dict[str, bool]:
    """Whether weights and history suit the basis and the training; ``n_weights`` is the number of basis functions."""
    entries = {len(each) for each in estimator.history_.values()}
    return {
        f"weights_ with {n_weights} rows, as basis_ has functions on latent_": len(estimator.weights_) == n_weights,
        # Of a stream only what came last is kept.
        "a history_ no longer than n_iter_": bool(entries) and 0 < max(entries) <= estimator.n_iter_ + 1,
        "latent_ and basis_ that fit in memory": estimator.latent_.n_nodes * n_weights <= _MOST_FEATURES,
    }
