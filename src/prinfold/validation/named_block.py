"""Arrays that know the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray


class NamedBlock(np.ndarray[Any, Any]):
    """An array that knows the names of its columns; what is made of it, a part or a sum, knows of none."""

    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, table: FloatArray, names: tuple[str, ...]) -> NamedBlock:
        """The same numbers with names."""
        block = table.view(cls)
        block.names = names
        return block
