"""Tables as lines of text, and as frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import narwhals.stable.v1 as nw

from prinfold.exceptions import InvalidParameterError


def print_table(head: Sequence[str], body: Sequence[tuple[Sequence[str], str]], *, n_left: int = 0) -> list[str]:
    """Lines with the cells of each row under their headings, and what stands behind the row.

    The first ``n_left`` columns are flush left, the others right.
    """
    widths = [max(map(len, column)) for column in zip(head, *(cells for cells, _ in body), strict=True)]
    lines = []
    for cells, end in [(head, ""), *body]:
        pairs = enumerate(zip(cells, widths, strict=True))
        padded = [cell.ljust(width) if j < n_left else cell.rjust(width) for j, (cell, width) in pairs]
        lines.append(("  " + "  ".join(padded) + end).rstrip())
    return lines


def shorten(words: str, most: int) -> str:
    """The first so many characters; a printed table has no room for more, the table itself holds them all."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def make_frame(columns: Mapping[str, Any], backend: Any) -> Any:
    """Columns as a frame of the library of that name."""
    if not isinstance(backend, str) or backend not in {"pandas", "polars", "pyarrow"}:
        raise InvalidParameterError(f"backend must be 'pandas', 'polars' or 'pyarrow', got {backend!r}")
    return nw.from_dict(columns, backend=cast(Any, backend)).to_native()
