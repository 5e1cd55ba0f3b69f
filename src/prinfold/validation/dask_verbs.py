"""Verbs for Dask arrays and frames: computed lazily, partition by partition, without gathering rows.

Every verb that says something of each row is mapped over the partitions. The fitted model is an ordinary local one; it
travels within the graph of tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from prinfold.exceptions import UnsupportedInputError
from prinfold.validation.named_block import NamedBlock

_VERBS_OF_MEANS = frozenset({"score", "projection_error", "quantization_error", "topographic_error"})
"""Verbs whose answer is the mean over rows."""


def is_dask(X: Any) -> bool:
    """Whether this is a Dask array or frame; Dask is not imported to tell."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def ask_partitions(verb: Callable[..., Any], estimator: Any, X: Any, options: Mapping[str, Any]) -> Any:
    """The answer of a verb for a Dask collection: an array, or a tuple of arrays, computed when it is asked for.

    Means over rows are computed at once.
    """
    import dask.array as da
    from dask import delayed

    _refuse_arrays(verb, options)
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    whole_frames = getattr(estimator, "_accept_frames", False) or isinstance(options.get("groups"), str)
    if names is not None and whole_frames:
        return _ask_frames(verb, estimator, X, options)
    rows = X if names is None else X.to_dask_array()
    refuse_other_axes(rows)
    rows = rows.rechunk({1: -1})
    probe = _answer_for_a_row(verb, estimator, rows.shape[1], options)
    model = delayed(estimator, pure=False, traverse=False)
    ask = {"model": model, "verb": verb.__name__, "options": dict(options), "names": names}
    if isinstance(probe, float | np.floating) and verb.__name__ in _VERBS_OF_MEANS:
        found = da.map_blocks(_weighted, rows, chunks=(rows.chunks[0], (2,)), meta=np.empty((0, 2)), **ask)
        one_each = da.map_blocks(_first_row, found, chunks=((1,) * found.numblocks[0], (2,)), meta=np.empty((0, 2)))
        total, n = one_each.compute().sum(axis=0)
        return float(total / n)
    if isinstance(probe, np.ndarray) and probe.ndim >= 1:
        return _map(rows, probe, None, ask)
    if isinstance(probe, tuple) and all(isinstance(each, np.ndarray) for each in probe):
        fields = [_map(rows, each, i, ask) for i, each in enumerate(probe)]
        return type(probe)(*fields) if hasattr(probe, "_fields") else tuple(fields)
    raise _no_entries(verb, estimator)


def _no_entries(verb: Callable[..., Any], estimator: Any) -> UnsupportedInputError:
    return UnsupportedInputError(
        f"{type(estimator).__name__}.{verb.__name__} does not go with Dask collections, because its answer is not one "
        "entry for each row; call it for a part of them: X[:1000].compute()"
    )


def _ask_frames(verb: Callable[..., Any], estimator: Any, X: Any, options: Mapping[str, Any]) -> Any:
    """The answer of a verb for a Dask frame whose columns may hold text, or names of sequences: partitions stay frames.

    A frame comes of frames. Partitions hold whole sequences.
    """
    import dask.array as da
    from dask import delayed

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        alone = {name: each for name, each in options.items() if name != "groups"}  # a row is a sequence too
        probe = verb(estimator, estimator._some_row(), **alone)
    model = delayed(estimator, pure=False, traverse=False)
    ask = {"verb": verb.__name__, "options": dict(options), "names": None}
    if hasattr(probe, "iloc"):
        of_frame = partial(_ask_for_frame, verb=verb.__name__, options=dict(options), empty=probe.iloc[:0])
        return X.map_partitions(of_frame, model=model, meta=probe.iloc[:0])
    parts = X.to_delayed()
    if isinstance(probe, float | np.floating) and verb.__name__ in _VERBS_OF_MEANS:
        found = _compute_all([delayed(_weighted)(part, model=model, **ask) for part in parts])
        total, n = np.sum([each[0] for each in found], axis=0)
        return float(total / n)
    if not isinstance(probe, np.ndarray) or probe.ndim < 1:
        raise _no_entries(verb, estimator)
    shape, empty = probe.shape[1:], np.empty((0, *probe.shape[1:]), dtype=probe.dtype)
    asked = [delayed(_ask)(part, model=model, empty=empty, **ask) for part in parts]
    blocks = [da.from_delayed(each, (np.nan, *shape), dtype=probe.dtype, meta=empty) for each in asked]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _compute_all(tasks: list[Any]) -> Any:
    from dask import compute

    return compute(*tasks)


def _map(rows: Any, probe: Any, field: int | None, ask: Mapping[str, Any]) -> Any:
    import dask.array as da

    shape, meta = probe.shape[1:], np.empty((0, *probe.shape[1:]), dtype=probe.dtype)
    chunks = (rows.chunks[0], *((size,) for size in shape))
    dropped = [1] if not shape else None
    added = list(range(2, 1 + len(shape))) or None
    return da.map_blocks(
        _ask, rows, chunks=chunks, meta=meta, drop_axis=dropped, new_axis=added, field=field, empty=meta, **ask
    )


def _ask(
    block: Any, *, model: Any, verb: str, options: Any, names: Any, field: int | None = None, empty: Any = None
) -> Any:
    """The answer for one partition."""
    if len(block) == 0:
        return empty
    named = block if names is None else NamedBlock.of(np.asarray(block), names)
    found = getattr(model, verb)(named, **options)
    return np.asarray(found if field is None else found[field])


def _ask_for_frame(block: Any, *, model: Any, verb: str, options: Any, empty: Any) -> Any:
    return getattr(model, verb)(block, **options) if len(block) else empty


def _weighted(block: Any, **ask: Any) -> Any:
    """(n, 2) zeros but for the first row: the answer for a partition times its number of rows, and that number."""
    found = np.zeros((max(len(block), 1), 2))
    if len(block):
        found[0] = float(_ask(block, **ask)) * len(block), len(block)
    return found


def _first_row(block: Any) -> Any:
    return block[:1]


def _answer_for_a_row(verb: Callable[..., Any], estimator: Any, n_columns: int, options: Mapping[str, Any]) -> Any:
    """The answer of the verb for one row, which tells the shape and type of all; no partition is computed for it."""
    names = getattr(estimator, "feature_names_in_", None)
    first = next(iter(_parameters(verb)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        n_features = getattr(estimator, "n_features_in_", n_columns)
        row = np.zeros((1, n_features if first == "Z" else n_columns))
        if getattr(estimator, "_accept_frames", False):  # whose columns may have levels, of which 0 is none
            row = np.asarray(estimator._some_row())
        if first == "Z":
            row = estimator.transform(row)
        elif names is not None and len(names) == n_columns:
            row = NamedBlock.of(row, tuple(map(str, names)))
        return verb(estimator, row, **options)


def _parameters(verb: Callable[..., Any]) -> list[str]:
    from inspect import signature

    return list(signature(verb).parameters)[1:]


def _refuse_arrays(verb: Callable[..., Any], options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if hasattr(value, "__len__") and not isinstance(value, str):
            raise UnsupportedInputError(
                f"{name} has entries for rows, and nothing says which partition of a Dask collection they belong to; "
                f"call {verb.__name__} without it, or for a part of the rows at a time"
            )


def refuse_other_axes(rows: Any) -> None:
    """Refuse a Dask array that is no table."""
    if rows.ndim != 2:
        raise UnsupportedInputError(f"got a Dask array of {rows.ndim} dimension(s) rather than a table; reshape it")
