"""The sums of :mod:`prinfold.devices.softmax_sums` on a CUDA device, in fewer passes over its memory.

Of few columns both kernels of ``_fused_sums_triton`` form scores themselves, and no matrix of responsibilities is
written. Of many columns the products are left to cuBLAS, in single precision, with one pass between them that turns
scores into responsibilities in place.
"""

from __future__ import annotations

from functools import cache
from math import log
from typing import Any

from prinfold.devices.softmax_sums import NodeLoading, SoftmaxSums

MOST_FUSED_COLUMNS = 32
"""Columns up to which scores are cheaper to form twice than to write once."""

_ENTRIES_AT_ONCE = 2**26
"""Responsibilities between two products. On an H200, 100 columns and 1024 nodes took 1.30 times the two products with
all rows at once, 1.40 with 2**25 of them and 1.62 with 2**23, which fit in the cache."""

_LOG_SUM_TILE, _SUM_TILE = {"ROWS": 128, "NODES": 64}, {"ROWS": 64, "NODES": 128}
"""Tiles of the two kernels: the fastest of eight with 20 and 32 columns on an H200."""

_MOST_APART, _FEWEST_LOOKED_AT = 128, 2**13
"""What log-sums lack is found of every so many rows, and of all where these are few: it hardly differs between rows."""

_PARTS = 64
"""Parts that rows are cut into, each with sums of its own; the data alone decide what is added in which order."""


@cache
def has_triton() -> bool:
    """Whether the compiler of these kernels is installed; it comes with torch on Linux."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def fused_sums(xp: Any, rows: Any, weight: Any | None, nodes: NodeLoading) -> SoftmaxSums:
    """The same as ``softmax_sums``, of contiguous arrays of torch in single precision on a CUDA device."""
    narrow = rows.shape[1] <= MOST_FUSED_COLUMNS
    return (_of_few_columns if narrow else _of_many_columns)(rows, weight, nodes)


def _of_few_columns(rows: Any, weight: Any | None, nodes: NodeLoading) -> SoftmaxSums:
    from prinfold.devices._fused_sums_triton import node_sums, row_log_sums

    (n, D), n_nodes = rows.shape, nodes.bias.shape[0]
    loading, bias = _even_nodes(nodes)
    K, wide = len(bias), max(16, 1 << (D - 1).bit_length())
    every = max(1, min(_MOST_APART, n // _FEWEST_LOOKED_AT))
    log_sum, lacking = rows.new_empty(n), rows.new_empty(_tiles(n, every))
    for found, step in ((log_sum, 0), (lacking, every)):
        row_log_sums[(_tiles(len(found), _LOG_SUM_TILE["ROWS"]),)](
            rows, loading, bias, log_sum, lacking, n, K, EVERY=step, D=D, WIDE=wide, num_warps=4, **_LOG_SUM_TILE
        )
    per_part = _SUM_TILE["ROWS"] * _tiles(n, _SUM_TILE["ROWS"] * _PARTS)
    parts = _tiles(n, per_part)
    mass, moment = rows.new_empty((parts, K)), rows.new_empty((parts, D, K))
    own = rows if weight is None else weight  # a pointer is wanted in either case
    node_sums[(_tiles(K, _SUM_TILE["NODES"]), parts)](
        rows, own, log_sum, loading, bias, mass, moment, n, K, per_part,
        WEIGHTED=weight is not None, D=D, WIDE=wide, num_warps=4, **_SUM_TILE,
    )  # fmt: skip
    total = _total(log_sum, weight)
    if weight is None:
        total += n / len(lacking) * _total(lacking, None)
    else:
        some = weight[::every]
        total += (weight.double().sum() / some.double().sum()).nan_to_num(0.0) * _total(lacking, some)
    return SoftmaxSums(mass[:, :n_nodes], moment[:, :, :n_nodes], total * log(2))


def _even_nodes(nodes: NodeLoading) -> tuple[Any, Any]:
    """Loading and bias in units of log 2, with nodes that nothing belongs to up to a multiple of 16.

    Only then are loads wide.
    """
    import torch

    more = -len(nodes.bias) % 16
    bias = torch.nn.functional.pad(nodes.bias / log(2), (0, more), value=_NOTHING)
    return torch.nn.functional.pad(nodes.loading / log(2), (0, more)).contiguous(), bias


def _of_many_columns(rows: Any, weight: Any | None, nodes: NodeLoading) -> SoftmaxSums:
    import torch

    from prinfold.devices._fused_sums_triton import softmax_rows

    (n, D), K = rows.shape, nodes.bias.shape[0]
    at_once = max(1, _ENTRIES_AT_ONCE // K)
    starts = range(0, n, at_once)
    mass, moment = rows.new_empty((len(starts), K)), rows.new_empty((len(starts), D, K))
    log_sum, room = rows.new_empty(n), rows.new_empty((min(at_once, n), K))
    for i, start in enumerate(starts):
        part = rows[start : start + at_once]
        share = torch.mm(part, nodes.loading, out=room[: len(part)])
        own = rows if weight is None else weight[start:]
        softmax_rows[(len(part),)](
            share, nodes.bias, own, log_sum[start:], K, WEIGHTED=weight is not None, NODES=min(1024, _power_of_two(K))
        )
        torch.mm(part.T, share, out=moment[i])
        torch.sum(share, dim=0, out=mass[i])
    return SoftmaxSums(mass, moment, _total(log_sum, weight))


_NOTHING = -1e30
"""Bias of a node that no row belongs to."""


def _total(log_sum: Any, weight: Any | None) -> Any:
    """(1,) Σ w L, in double precision."""
    return ((log_sum if weight is None else log_sum * weight).double().sum())[None]


def _tiles(n: int, size: int) -> int:
    return -(-n // size)


def _power_of_two(n: int) -> int:
    return max(16, 1 << (n - 1).bit_length())
