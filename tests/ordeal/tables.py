"""Hostile tables, as recipes of JSON and as what they are recipes of."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from hypothesis import strategies as st

from prinfold import Blocks

Table = Any


class Input(NamedTuple):
    """Arguments of a fit."""

    X: Any
    y: Any
    weight: Any


# ------------------------------------------------------------------------------------------------------------- numbers


def _curve(rng: np.random.Generator, n: int, D: int) -> Table:
    t = rng.uniform(-1, 1, n)
    return np.stack([np.cos((j + 1) * t) for j in range(D)], axis=1) + 0.05 * rng.standard_normal((n, D))


SHAPES: dict[str, Callable[[np.random.Generator, int, int], Table]] = {
    "curve": _curve,
    "cloud": lambda rng, n, D: rng.standard_normal((n, D)),
    "line": lambda rng, n, D: np.linspace(0, 1, n)[:, None] * np.arange(1.0, D + 1),
    "constant": lambda rng, n, D: np.full((n, D), 3.0),
    "zeros": lambda rng, n, D: np.zeros((n, D)),
    "two points": lambda rng, n, D: np.repeat(np.arange(n) % 2, D).reshape(n, D).astype(float),
    "counts": lambda rng, n, D: rng.poisson(2.0, (n, D)).astype(float),
    "heavy tails": lambda rng, n, D: rng.standard_cauchy((n, D)),
    "one outlier": lambda rng, n, D: rng.standard_normal((n, D)) + 1e9 * (np.arange(n) == 0)[:, None],
    "unit rows": lambda rng, n, D: np.eye(max(n, D))[:n, :D],
}
"""Where the rows lie."""


def _set(X: Table, at: Any, value: Any) -> Table:
    X[at] = value
    return X


def _scaled(factor: float) -> Callable[[Table, int], Table]:
    return lambda X, j: _set(X, (slice(None), j % X.shape[1]), X[:, j % X.shape[1]] * factor)


def _cell(value: float) -> Callable[[Table, int], Table]:
    return lambda X, j: _set(X, (j % X.shape[0], j % X.shape[1]), value)


EDITS: dict[str, Callable[[Table, int], Table]] = {
    "constant column": lambda X, j: _set(X, (slice(None), j % X.shape[1]), 1.0),
    "column twice": lambda X, j: _set(X, (slice(None), j % X.shape[1]), X[:, 0]),
    "rows twice": lambda X, j: np.repeat(X, 2 + j % 2, axis=0),
    "half the rows alike": lambda X, j: _set(X, slice(None, len(X) // 2), X[0].copy()),
    "gap": _cell(np.nan),
    "empty column": lambda X, j: _set(X, (slice(None), j % X.shape[1]), np.nan),
    "empty row": lambda X, j: _set(X, j % len(X), np.nan),
    "infinity": _cell(np.inf),
    "minus infinity": _cell(-np.inf),
    "minus zero": _cell(-0.0),
    "subnormal": _cell(5e-324),
    "far": lambda X, j: X + 1e12,
    "all tiny": lambda X, j: X * 1e-12,
    "all huge": lambda X, j: X * 1e12,
    "all vanishing": lambda X, j: X * 1e-150,
    "all enormous": lambda X, j: X * 1e140,
    "column * 1e8": _scaled(1e8),
    "column * 1e-8": _scaled(1e-8),
    "column * 1e50": _scaled(1e50),
    "column * 1e-50": _scaled(1e-50),
    "column * 1e120": _scaled(1e120),
    "column * 1e-120": _scaled(1e-120),
    "largest cell": _cell(1.7e308),
}
"""What is done to the numbers, with a place."""

# ---------------------------------------------------------------------------------------------------------- containers

NAMES: dict[str, Callable[[int], list[Any]]] = {
    "letters": lambda D: [f"x{j}" for j in range(D)],
    "numbers": lambda D: list(range(D)),
    "odd": lambda D: [f"</script><b>\u202e\u0000 {j}" for j in range(D)],
    "surrogate": lambda D: [f"\ud800 {j}" for j in range(D)],
    "one name": lambda D: ["x"] * D,
    "empty": lambda D: ["", *(f"x{j}" for j in range(1, D))],
    "mixed": lambda D: [j if j % 2 else f"x{j}" for j in range(D)],
    "tuples": lambda D: [("x", j) for j in range(D)],
    "gaps": lambda D: [np.nan, None, pd.NaT, *range(3, D)][:D],
    "days": lambda D: [dt.date(2020, 1, 1) + dt.timedelta(j) for j in range(D)],
    "bytes": lambda D: [b"x%d" % j for j in range(D)],
    "long": lambda D: [f"x{j}\n" * 3000 for j in range(D)],
    "huge numbers": lambda D: [2**70 + j for j in range(D)],
}
"""Names of columns."""


def _frame(X: Table, names: list[Any]) -> Any:
    return pd.DataFrame(X, columns=pd.Index(names, tupleize_cols=False))


def _typed(dtype: Any) -> Callable[[Table, list[Any]], Any]:
    """A pandas frame whose first column is of another type."""

    def make(X: Table, names: list[Any]) -> Any:
        frame = _frame(X, [f"x{j}" for j in range(X.shape[1])])
        frame["x0"] = dtype(frame["x0"])
        return frame

    return make


def _whole(X: Table) -> Table:
    """Whole numbers in place of a table's, small enough for every type."""
    return np.clip(np.nan_to_num(np.round(X * 10), nan=0.0, posinf=9.0, neginf=-9.0), -100, 100)


def _periods(column: Any) -> Any:
    return pd.period_range("2020-01", periods=len(column), freq="M")


def _with_objects(value: Any) -> Callable[[Table, list[Any]], Any]:
    def make(X: Table, names: list[Any]) -> Any:
        found = X.astype(object)
        found[-1, -1] = value
        return found

    return make


def _strings(X: Table, names: list[Any]) -> Any:
    return np.array([[f"{value:.3f}" for value in row] for row in X])


CONTAINERS: dict[str, Callable[[Table, list[Any]], Any]] = {
    "float64": lambda X, names: X,
    "float32": lambda X, names: X.astype(np.float32),
    "float16": lambda X, names: X.astype(np.float16),
    "longdouble": lambda X, names: X.astype(np.longdouble),
    "big endian": lambda X, names: X.astype(">f8"),
    "columns first": lambda X, names: np.asfortranarray(X),
    "strided": lambda X, names: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X, names: X[::-1, ::-1],
    "read only": lambda X, names: _locked(X),
    "masked": lambda X, names: np.ma.masked_invalid(X),
    "int8": lambda X, names: _whole(X).astype(np.int8),
    "int64": lambda X, names: _whole(X).astype(np.int64),
    "uint64": lambda X, names: np.abs(_whole(X)).astype(np.uint64),
    "huge ints": lambda X, names: _whole(X).astype(np.int64) + 2**62,
    "bool": lambda X, names: _whole(X) > 0,
    "complex": lambda X, names: X + 1j,
    "dates": lambda X, names: _whole(X).astype("datetime64[D]"),
    "strings": _strings,
    "bytes": lambda X, names: _strings(X, names).astype("S"),
    "structured": lambda X, names: np.array(
        [tuple(row) for row in X], dtype=[(f"f{j}", float) for j in range(len(X.T))]
    ),
    "object": lambda X, names: X.astype(object),
    "object with None": _with_objects(None),
    "object with text": _with_objects("north"),
    "object with 10**400": _with_objects(10**400),
    "object with Decimal": _with_objects(Decimal("1.5")),
    "object with Fraction": _with_objects(Fraction(1, 3)),
    "object with a date": _with_objects(dt.date(2020, 1, 1)),
    "object with a list": _with_objects([1.0]),
    "object with a dict": _with_objects({}),
    "list": lambda X, names: X.tolist(),
    "tuples": lambda X, names: tuple(map(tuple, X.tolist())),
    "ragged": lambda X, names: [*X.tolist(), [1.0]],
    "ragged tuples": lambda X, names: (*map(tuple, X.tolist()), ()),
    "one row as a vector": lambda X, names: X[0],
    "three axes": lambda X, names: X[None],
    "no rows": lambda X, names: X[:0],
    "no columns": lambda X, names: X[:, :0],
    "scalar": lambda X, names: 1.0,
    "nothing": lambda X, names: None,
    "dictionary": lambda X, names: {"x": X},
    "iterator": lambda X, names: iter(X),
    "pandas": _frame,
    "pandas float32": lambda X, names: _frame(X.astype(np.float32), names),
    "pandas Float64": _typed(lambda x: x.astype("Float64")),
    "pandas Int64": _typed(lambda x: pd.array([None, *range(1, len(x))], dtype="Int64")),
    "pandas boolean": _typed(lambda x: pd.array([None, *(v > 0 for v in x[1:])], dtype="boolean")),
    "pandas string": _typed(lambda x: pd.array(["a"] * len(x), dtype="string")),
    "pandas category": _typed(
        lambda x: pd.Categorical(["a", "b"][: len(x)] * (len(x) // 2) + ["a"] * (len(x) % 2 if len(x) > 1 else 0))
    ),
    "pandas period": _typed(_periods),
    "pandas interval": _typed(lambda x: pd.interval_range(0, len(x))),
    "pandas dates": _typed(lambda x: pd.date_range("2020", periods=len(x), tz="UTC")),
    "pandas durations": _typed(lambda x: pd.to_timedelta(range(len(x)), unit="D")),
    "pandas sparse": _typed(pd.arrays.SparseArray),
    "pandas complex": _typed(lambda x: x + 1j),
    "pandas arrow": _typed(lambda x: x.astype(pd.ArrowDtype(pa.float64()))),
    "pandas arrow list": _typed(lambda x: pd.array([[1.0]] * len(x), dtype=pd.ArrowDtype(pa.list_(pa.float64())))),
    "pandas decimal": _typed(lambda x: x.map(lambda v: Decimal(repr(float(v))))),
    "polars": lambda X, names: pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]),
    "polars lazy": lambda X, names: pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]).lazy(),
    "polars integers": lambda X, names: pl.DataFrame({f"x{j}": x.astype(int) for j, x in enumerate(_whole(X).T)}),
    "polars decimal": lambda X, names: pl.DataFrame({"x": [Decimal(i) for i in range(len(X))], "y": X[:, 0]}),
    "polars lists": lambda X, names: pl.DataFrame({"x": [[1.0]] * len(X), "y": X[:, 0]}),
    "polars structs": lambda X, names: pl.DataFrame({"x": [{"a": 1}] * len(X), "y": X[:, 0]}),
    "polars text": lambda X, names: pl.DataFrame({"x": ["a"] * len(X), "y": X[:, 0]}),
    "polars nulls": lambda X, names: pl.DataFrame({"x": [None] * len(X), "y": X[:, 0]}),
    "polars binary": lambda X, names: pl.DataFrame({"x": [b"a"] * len(X), "y": X[:, 0]}),
    "polars times": lambda X, names: pl.DataFrame({"x": [dt.time(1)] * len(X), "y": X[:, 0]}),
    "arrow": lambda X, names: pa.table({f"x{j}": x for j, x in enumerate(X.T)}),
    "arrow lists": lambda X, names: pa.table({"x": [[1.0]] * len(X), "y": X[:, 0]}),
    "series": lambda X, names: pd.Series(X[:, 0]),
    "csr": lambda X, names: scipy.sparse.csr_array(X),
    "coo": lambda X, names: scipy.sparse.coo_matrix(X),
    "dok": lambda X, names: scipy.sparse.dok_matrix(X),
    "csc integers": lambda X, names: scipy.sparse.csc_array(_whole(X).astype(np.int64)),
    "csr, wide indices": lambda X, names: _with_wide_indices(scipy.sparse.csr_array(X)),
    "csr, unsorted": lambda X, names: scipy.sparse.csr_array(X[:, ::-1])[:, ::-1],
    "csr of bools": lambda X, names: scipy.sparse.csr_array(X > 0),
    "csr of complex numbers": lambda X, names: scipy.sparse.csr_array(X + 1j),
    "coo, cells twice": lambda X, names: _cells_twice(X),
    "csr, a column outside": lambda X, names: _led_astray(X, "indices", 10**8),
    "csr, pointers astray": lambda X, names: _led_astray(X, "indptr", 10**8),
    "coo, a row outside": lambda X, names: _led_astray(X, "row", 10**8),
    "coo, a vector": lambda X, names: scipy.sparse.coo_array(X[0]),
    "bsr": lambda X, names: scipy.sparse.bsr_array(X),
    "dia": lambda X, names: scipy.sparse.dia_array(X),
    "lil": lambda X, names: scipy.sparse.lil_array(X),
    "matrix": lambda X, names: np.asmatrix(X),
    "records": lambda X, names: np.rec.fromarrays(list(X.T)),
    "durations": lambda X, names: _whole(X).astype("timedelta64[D]"),
    "voids": lambda X, names: np.zeros(X.shape, dtype="V8"),
    "masked in places": lambda X, names: np.ma.masked_greater(X, 0.5),
    "wholly masked": lambda X, names: np.ma.masked_all_like(X),
    "masked integers": lambda X, names: np.ma.masked_greater(_whole(X).astype(int), 3),
    "repeated by strides": lambda X, names: np.broadcast_to(X[:1], X.shape),
    "range": lambda X, names: range(len(X)),
    "text alone": lambda X, names: "table.csv",
    "list of arrays": lambda X, names: list(X),
    "list of None": lambda X, names: [None] * len(X),
    "pandas levels": lambda X, names: pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("x", j) for j in names])),
    "pandas index twice": lambda X, names: _frame(X, names).set_axis([0] * len(X)),
    "pandas without rows": lambda X, names: _frame(X, names).iloc[:0],
    "pandas without columns": lambda X, names: _frame(X, names).iloc[:, :0],
    "pandas objects": lambda X, names: _frame(X.astype(object), names),
    "pandas NA": _typed(lambda x: pd.Series([pd.NA, *x[1:]], dtype=object)),
    "pandas Float64 with NA": _typed(lambda x: pd.array([None, *x[1:]], dtype="Float64")),
    "pandas ordered categories": _typed(lambda x: pd.Categorical([0] * len(x), categories=[1, 0], ordered=True)),
    "pandas empty categories": _typed(lambda x: pd.Categorical([None] * len(x))),
    "pandas sparse integers": _typed(lambda x: pd.arrays.SparseArray(np.arange(len(x)) % 2)),
    "pandas arrow decimals": _typed(lambda x: pd.array([Decimal(1)] * len(x), dtype=pd.ArrowDtype(pa.decimal128(9)))),
    "pandas arrow nulls": _typed(lambda x: pd.array([None] * len(x), dtype=pd.ArrowDtype(pa.null()))),
    "pandas surrogates": _typed(lambda x: ["\ud800"] * len(x)),
    "polars words": lambda X, names: pl.DataFrame({"x": pl.Series(["a"] * len(X), dtype=pl.Categorical), "y": X[:, 0]}),
    "polars spans": lambda X, names: pl.DataFrame({"x": [dt.timedelta(1)] * len(X), "y": X[:, 0]}),
    "polars wide integers": lambda X, names: pl.DataFrame({"x": pl.Series([2**100] * len(X), dtype=pl.Int128)}),
    "polars objects": lambda X, names: pl.DataFrame({"x": pl.Series([{1}] * len(X), dtype=pl.Object), "y": X[:, 0]}),
    "polars arrays": lambda X, names: pl.DataFrame({"x": pl.Series([[1.0]] * len(X), dtype=pl.Array(pl.Float64, 1))}),
    "polars bools": lambda X, names: pl.DataFrame({"x": X[:, 0] > 0, "y": X[:, 0]}),
    "arrow one name": lambda X, names: pa.table(list(X.T), names=["x"] * X.shape[1]),
    "arrow words": lambda X, names: pa.table({"x": pa.array(["a"] * len(X)).dictionary_encode(), "y": X[:, 0]}),
    "arrow without chunks": lambda X, names: pa.table({"x": pa.chunked_array([], pa.float64())}),
    "blocks": lambda X, names: Blocks([X[:3], X[3:]]),
    "blocks of frames": lambda X, names: Blocks(_frame(X, names), rows=3),
    "blocks that end": lambda X, names: Blocks(_in_turn([X[:3], X[3:]], [X[:3]])),
    "blocks that turn": lambda X, names: Blocks(_in_turn([X], [X * 1e200])),
    "blocks that lose cells": lambda X, names: Blocks(_in_turn([X], [np.full_like(X, np.nan)])),
}
"""What the numbers come in."""


def _with_wide_indices(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _cells_twice(X: Table) -> Any:
    rows, columns = np.indices(X.shape).reshape(2, -1).repeat(2, axis=1)
    return scipy.sparse.coo_array((X.ravel().repeat(2), (rows, columns)), shape=X.shape)


def _led_astray(X: Table, name: str, place: int) -> Any:
    """A sparse matrix one of whose indices lies far outside of it."""
    sparse = (scipy.sparse.coo_matrix if name == "row" else scipy.sparse.csr_matrix)(np.nan_to_num(X) + 1.0)
    getattr(sparse, name)[len(getattr(sparse, name)) // 2] = place
    return sparse


def _in_turn(*passes: list[Table]) -> Callable[[], Iterator[Table]]:
    """A source that gives something else each time that it is read; the last of all from then on."""
    left = [*passes]
    return lambda: iter(left.pop(0) if len(left) > 1 else left[0])


def _locked(X: Table) -> Table:
    X.setflags(write=False)
    return X


def _first(value: float, others: float = 1.0) -> Callable[[int], Any]:
    return lambda n: np.r_[value, np.full(n - 1, others)]


WEIGHTS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: None,
    "ones": np.ones,
    "zeros and ones": lambda n: (np.arange(n) % 2).astype(float),
    "all zero": np.zeros,
    "one row": _first(1.0, 0.0),
    "one heavy": _first(1e12),
    "uneven": lambda n: np.logspace(-12, 12, n),
    "1e-160": lambda n: np.full(n, 1e-160),
    "1e-300": lambda n: np.full(n, 1e-300),
    "1e160": lambda n: np.full(n, 1e160),
    "1e300": lambda n: np.full(n, 1e300),
    "from 1e-200 to 1e200": lambda n: np.logspace(-200, 200, n),
    "subnormal": lambda n: np.full(n, 5e-324),
    "negative": _first(-1.0),
    "gap": _first(np.nan),
    "infinity": _first(np.inf),
    "whole": lambda n: np.arange(1, n + 1),
    "text": lambda n: ["a"] * n,
    "too few": lambda n: np.ones(n - 1),
    "scalar": lambda n: 2.0,
    "column": lambda n: np.ones((n, 1)),
    "complex": lambda n: np.ones(n, dtype=complex),
    "days": lambda n: np.arange(n).astype("datetime64[D]"),
    "objects": lambda n: np.array([None, *range(1, n)], dtype=object),
    "10**400": lambda n: [10**400] * n,
    "bools": lambda n: np.arange(n) % 2 == 0,
    "series": lambda n: pd.Series(np.ones(n), index=range(n, 0, -1)),
    "series with NA": lambda n: pd.Series([None, *range(1, n)], dtype="Int64"),
    "polars": lambda n: pl.Series(np.ones(n)),
    "polars wide integers": lambda n: pl.Series([2**70] * n, dtype=pl.Int128),
    "masked": lambda n: np.ma.masked_less(np.arange(n, dtype=float), 2),
    "sparse": lambda n: scipy.sparse.csr_array(np.ones((1, n))),
    "frame": lambda n: pd.DataFrame({"w": np.ones(n)}),
    "dictionary": lambda n: {0: 1.0},
    "iterator": lambda n: iter([1.0] * n),
}
"""Sample weights."""

TARGETS: dict[str, Callable[[int], Any]] = {
    "two classes": lambda n: np.arange(n) % 2,
    "words": lambda n: np.array(["a", "b"] * n)[:n],
    "one class": lambda n: np.zeros(n, dtype=int),
    "all different": np.arange,
    "numbers": lambda n: np.linspace(-1, 1, n),
    "enormous": lambda n: np.linspace(-1, 1, n) * 1e200,
    "gap": lambda n: np.r_[np.nan, np.arange(n - 1) % 2],
    "objects": lambda n: np.array([None, *range(n - 1)], dtype=object),
    "none": lambda n: None,
    "too few": lambda n: np.arange(n - 1) % 2,
    "infinity": lambda n: np.r_[np.inf, np.arange(n - 1) % 2],
    "complex": lambda n: np.arange(n) % 2 + 1j,
    "days": lambda n: (np.arange(n) % 2).astype("datetime64[D]"),
    "bools": lambda n: np.arange(n) % 2 == 0,
    "bytes": lambda n: np.array([b"a", b"b"] * n)[:n],
    "surrogates": lambda n: np.array(["\ud800", "b"] * n, dtype=object)[:n],
    "two columns": lambda n: np.arange(2 * n).reshape(n, 2) % 2,
    "column": lambda n: np.arange(n)[:, None] % 2,
    "categories": lambda n: pd.Series(pd.Categorical((["a", "b"] * n)[:n])),
    "series with NA": lambda n: pd.Series([None, *(i % 2 for i in range(1, n))], dtype="Int64"),
    "polars": lambda n: pl.Series([i % 2 for i in range(n)]),
    "polars wide integers": lambda n: pl.Series([2**70 + i % 2 for i in range(n)], dtype=pl.Int128),
    "masked": lambda n: np.ma.masked_less(np.arange(n) % 2, 1),
    "sparse": lambda n: scipy.sparse.csr_array((np.arange(n) % 2)[None]),
    "10**400": lambda n: [10**400, 1] * (n // 2),
    "lists": lambda n: [[i % 2] * (1 + i % 2) for i in range(n)],
    "dictionary": lambda n: {0: 1},
    "scalar": lambda n: 1.0,
}
"""Classes or numbers to predict, for methods that need them."""


ROWS = [16, 1, 2, 3, 4, 7, 40, 200, 400]
COLUMNS = [*[3, 1, 2, 5, 60] * 8, 2000]
"""Widths of tables: thousands of columns now and then, since they take long."""

_MOST_CELLS = 80_000
"""Of a table, which has fewer columns where it has many rows: of 400 × 2000 some methods take minutes."""

PLAIN: dict[str, Any] = {
    "rows": 16,
    "columns": 3,
    "shape": "curve",
    "edits": [],
    "container": "float64",
    "names": "letters",
    "weight": "none",
    "target": "two classes",
}
"""A table that nobody can complain about."""


def simpler(recipe: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Recipes one step nearer to the plain table."""
    for i in range(len(recipe["edits"])):
        yield recipe | {"edits": recipe["edits"][:i] + recipe["edits"][i + 1 :]}
    yield from (recipe | {name: value} for name, value in PLAIN.items() if name != "edits" and recipe[name] != value)


def recipes() -> st.SearchStrategy[dict[str, Any]]:
    """Recipes of tables; the simplest is a plain curve."""
    edit = st.tuples(st.sampled_from(list(EDITS)), st.integers(0, 7)).map(list)
    plain = st.just("float64")
    return st.fixed_dictionaries(
        {
            "rows": st.sampled_from(ROWS),
            "columns": st.sampled_from(COLUMNS),
            "shape": st.sampled_from(list(SHAPES)),
            "edits": st.lists(edit, max_size=2),
            "container": plain | st.sampled_from(list(CONTAINERS)),
            "names": st.sampled_from(list(NAMES)),
            "weight": st.just("none") | st.sampled_from(list(WEIGHTS)),
            "target": st.just("two classes") | st.sampled_from(list(TARGETS)),
        }
    )


def draw_recipe(rng: Random) -> dict[str, Any]:
    """What :func:`recipes` draws, in microseconds, where many are wanted."""
    return {
        "rows": rng.choice(ROWS),
        "columns": rng.choice(COLUMNS),
        "shape": rng.choice(list(SHAPES)),
        "edits": [[rng.choice(list(EDITS)), rng.randint(0, 7)] for _ in range(rng.randint(0, 2))],
        "container": rng.choice(["float64", rng.choice(list(CONTAINERS))]),
        "names": rng.choice(list(NAMES)),
        "weight": rng.choice(["none", rng.choice(list(WEIGHTS))]),
        "target": rng.choice(["two classes", rng.choice(list(TARGETS))]),
    }


def build(recipe: dict[str, Any]) -> Input:
    """The table of a recipe, with weights and targets of as many rows."""
    rng = np.random.default_rng(0)
    X = SHAPES[recipe["shape"]](rng, recipe["rows"], min(recipe["columns"], _MOST_CELLS // recipe["rows"]))
    with np.errstate(all="ignore"):
        for name, place in recipe["edits"]:
            X = EDITS[name](X, place)
        held = CONTAINERS[recipe["container"]](X, NAMES[recipe["names"]](X.shape[1]))
    return Input(held, TARGETS[recipe["target"]](len(X)), WEIGHTS[recipe["weight"]](len(X)))
