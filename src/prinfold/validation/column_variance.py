"""Columns in units so different that one of them holds nearly all variance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, Message

_ONE_SIDED_SHARE = 0.99
"""Share of the variance in one column from which the others hardly count: of two, one spreads ten times as far."""


def one_sided_note(variance: FloatArray, names: Sequence[str]) -> Message | None:
    """A message that names the column with nearly all of the variance (D,); None where there is no such column."""
    widest = int(variance.argmax())
    share = float(variance[widest] / max(variance.sum(), np.finfo(float).tiny))
    if np.count_nonzero(variance) < 2 or share < _ONE_SIDED_SHARE:
        return None
    return Message(
        f"{names[widest]!r} holds {share:.1%} of the variance of all columns, so that surfaces go by it alone.",
        Advice("StandardScaler", words="unless its units are those of the others, standardise them first ({})"),
    )
