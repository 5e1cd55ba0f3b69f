"""Arrays with the names of their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from prinfold._typing import FloatArray


class NamedBlock(np.ndarray[Any, Any]):
    """An array with the names of its columns; arrays computed from it, such as parts or sums, have none."""

    names: tuple[str, ...] | None = None
    row_labels: Callable[[int], str] | None = None
    """Words for a row in the table that the user gave, such as "line 7"."""

    @classmethod
    def of(
        cls, table: FloatArray, names: tuple[str, ...] | None, row_labels: Callable[[int], str] | None = None
    ) -> NamedBlock:
        """A table with names of its columns."""
        block = table.view(cls)
        block.names, block.row_labels = names, row_labels
        return block
