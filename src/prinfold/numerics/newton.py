"""Newton's method for the maximum of a concave function, with steps that never go down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prinfold._typing import FloatArray
from prinfold.numerics.linalg import solve_symmetric

_MOST_STEPS = 30
_LONGEST_STEP = 2.0
"""Newton's steps at most, and by how much one may change the logarithm of a precision or a share."""

_LEAST_LOG_CHANGE = 1e-10
_SHORTEST_STEP_SHARE = 1e-6
"""Change of a logarithm that ends the steps, and the share of a step below which shorter ones are not tried."""


def newton_ascent(
    start: FloatArray,
    value: Callable[[FloatArray], float],
    slopes: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    reach: FloatArray,
) -> FloatArray:
    """(M,) maximiser of a concave function by Newton's steps, each shortened until the function rises.

    The result is never below the start, which SciPy's ``minimize`` does not promise.

    ``slopes`` gives the gradient and the negative Hessian; ``reach`` (K, M) turns a step into changes of logarithms.
    """
    here, height = start, value(start)
    for _ in range(_MOST_STEPS):
        slope, bend = slopes(here)
        step = solve_symmetric(bend, slope[:, None])[:, 0]
        size = float(np.abs(reach @ step).max(initial=0.0))
        share = min(1.0, _LONGEST_STEP / size) if size > 0 else 1.0
        while value(here + share * step) < height and share > _SHORTEST_STEP_SHARE:
            share *= 0.5
        ahead = value(here + share * step)
        if not ahead >= height:
            break
        here, height = here + share * step, ahead
        if share * size < _LEAST_LOG_CHANGE:
            break
    return here
