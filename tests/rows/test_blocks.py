"""Blocks: whatever a source is and however it is cut, the same rows come out, as often as one asks."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from prinfold import GTM, Blocks
from prinfold.exceptions import (
    DataNotFoundError,
    InvalidDataError,
    InvalidParameterError,
    MissingExtraError,
    UnsupportedInputError,
)

X = np.random.default_rng(0).standard_normal((57, 3)).astype(np.float32)
NAMES = ("a", "b", "c")


def table(rows=slice(None)):
    return pa.table({name: X[rows, j] for j, name in enumerate(NAMES)})


def parquet(folder):
    pq.write_table(table(), folder / "x.parquet", row_group_size=10)
    return folder / "x.parquet"


def parquet_folder(folder):
    (folder / "year=1").mkdir()
    pq.write_table(table(slice(0, 20)), folder / "part-0.parquet")
    pq.write_table(table(slice(20, 21)), folder / "part-1.parquet")
    pq.write_table(table(slice(21, 21)), folder / "part-2.parquet")  # nothing
    pq.write_table(table(slice(21, None)), folder / "year=1" / "part-3.parquet")
    (folder / ".notes").mkdir()
    for name in ("_metadata.parquet", ".notes/x.parquet"):
        (folder / name).write_text("notes of another program")
    return folder


def npy(folder, order="C"):
    np.save(folder / "x.npy", np.asarray(X, order=order))
    return folder / "x.npy"


def zarr_array(folder, chunks=(10, 2)):
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, chunks=chunks, dtype=X.dtype)
    made[:] = X
    return made


def feather(folder, name="x.feather"):
    pyarrow.feather.write_feather(table(), folder / name, compression="uncompressed")
    return folder / name


SOURCES = {
    "array": lambda folder: X,
    "array in columns": lambda folder: np.asfortranarray(X),
    "memory map": lambda folder: np.load(npy(folder), mmap_mode="r"),
    "memory map of columns": lambda folder: np.load(npy(folder, "F"), mmap_mode="r"),
    "part of a memory map": lambda folder: _between(np.load(npy(folder), mmap_mode="r")),
    "memory map changed in memory": lambda folder: _changed(folder, X),
    "npy": npy,
    "parquet": parquet,
    "parquet by name": lambda folder: str(parquet(folder)),
    "folder of parquet": parquet_folder,
    "feather": feather,
    "arrow": lambda folder: feather(folder, "x.arrow"),
    "dataset": lambda folder: ds.dataset(parquet(folder)),
    "dataset of arrow files": lambda folder: ds.dataset(feather(folder), format="ipc"),
    "filtered dataset": lambda folder: ds.dataset(parquet(folder)).filter(ds.field("a") > -100),
    "arrow table": lambda folder: pa.concat_tables([table(slice(0, 5)), table(slice(5, None))]),
    "zarr array": zarr_array,
    "zarr array of long chunks": lambda folder: zarr_array(folder, (50, 3)),
    "zarr": lambda folder: (zarr_array(folder), folder / "x.zarr")[1],
    "pandas": lambda folder: pd.DataFrame(X, columns=NAMES),
    "polars": lambda folder: pl.DataFrame(X, schema=list(NAMES)),
    "sparse": lambda folder: scipy.sparse.coo_array(X),
    "list": lambda folder: [X[:4], X[4:4], X[4:5], X[5:]],
    "list of anything": lambda folder: [pd.DataFrame(X[:4], columns=NAMES), table(slice(4, None))],
    "list of files": lambda folder: [parquet(folder), feather(folder)][:1],
    "function": lambda folder: lambda: (X[i : i + 1] for i in range(len(X))),
    "function of frames": lambda folder: lambda: iter([table(slice(0, 50)), pl.from_arrow(table(slice(50, None)))]),
    "function of batches": lambda folder: ds.dataset(parquet(folder)).to_batches,
    "list of batches": lambda folder: table().to_batches(max_chunksize=9),
    "iterable": lambda folder: {0: X[:30], 1: X[30:]}.values(),
}


def _between(array):
    """All rows of X, as a part of a map of more."""
    path = str(array.filename).replace("x.npy", "more.npy")
    np.save(path, np.concatenate([X[:2], X, X[:3]]))
    return np.load(path, mmap_mode="r")[2:-3]


def _changed(folder, X):
    np.save(folder / "other.npy", np.zeros_like(X))
    changed = np.load(folder / "other.npy", mmap_mode="c")
    changed[:] = X
    return changed


@pytest.mark.parametrize("rows", [1, 7, 57, 65536])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_its_rows_in_order_and_again(kind, rows, tmp_path):
    blocks = Blocks(SOURCES[kind](tmp_path), rows=rows)
    for _ in range(2):
        read = list(blocks)
        assert [len(block) for block in read[:-1]] == [rows] * (len(read) - 1)
        assert 0 < len(read[-1]) <= rows
        assert all(block.dtype == np.float32 for block in read)
        assert_array_equal(np.concatenate(read), X)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_blocks_do_not_depend_on_how_a_source_is_cut(lengths, rows):
    edges = np.cumsum([0, *lengths])
    whole = np.arange(2.0 * edges[-1]).reshape(-1, 2)
    pieces = [whole[a:b] for a, b in pairwise(edges)]
    for found, expected in zip(Blocks(pieces, rows=rows), Blocks(whole, rows=rows), strict=True):
        assert_array_equal(found, expected)


def test_a_memory_map_is_read_as_it_is_on_disk(tmp_path):
    written = np.lib.format.open_memmap(tmp_path / "w.npy", mode="w+", dtype=np.float64, shape=(10, 2))
    written[:] = np.arange(20).reshape(10, 2)  # not flushed
    assert_array_equal(np.concatenate(list(Blocks(written, rows=3))), written)


def test_a_parquet_file_is_not_held_while_it_is_read(tmp_path):
    rows = np.random.default_rng(0).random((400_000, 5))
    pq.write_table(pa.table(list(rows.T.copy()), names=list("abcde")), tmp_path / "x.parquet", row_group_size=10_000)
    most, before = 0, pa.total_allocated_bytes()
    for _ in Blocks(tmp_path / "x.parquet", rows=10_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < rows.nbytes / 4


def test_csv_is_read_as_numbers(tmp_path):
    pyarrow.csv.write_csv(table(), tmp_path / "x.csv")
    read = np.concatenate(list(Blocks(tmp_path / "x.csv", rows=10)))
    assert read.dtype == np.float64
    np.testing.assert_allclose(read, X, rtol=1e-6)


def test_whole_numbers_may_turn_into_fractions_further_down(tmp_path):
    lines = ["x,nothing,y", *("1,,2" for _ in range(300_000)), "1.5,7,2"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    *_, last = Blocks(tmp_path / "x.csv", ["x", "nothing"])
    assert_array_equal(last[-2:], [[1, np.nan], [1.5, 7]])


@pytest.mark.parametrize(
    "source", ["parquet", "feather", "dataset of arrow files", "pandas", "arrow table", "list of anything"]
)
def test_columns_by_name_and_number(source, tmp_path):
    made = SOURCES[source](tmp_path)
    by_name, by_number = Blocks(made, ["c", "a"], rows=20), Blocks(made, [2, -3], rows=20)
    for blocks in (by_name, by_number):
        assert blocks.names == ("c", "a")
        assert_array_equal(np.concatenate(list(blocks)), X[:, [2, 0]])


def test_columns_that_are_not_read_may_be_anything():
    frame = pd.DataFrame({"x": [1.0, 2.0], "who": ["me", "you"], "when": pd.to_datetime(["2020-01-01"] * 2)})
    assert_array_equal(next(iter(Blocks(frame, ["x"]))), [[1], [2]])


def test_columns_of_an_array():
    blocks = Blocks(np.abs(X), columns=np.array([2, 0]), weight=1, rows=20)
    read = list(blocks.weighted())
    assert blocks.names is None
    assert_array_equal(np.concatenate([each.table for each in read]), np.abs(X)[:, [2, 0]])
    assert_array_equal(np.concatenate([each.weight for each in read]), np.abs(X)[:, 1])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_weights_are_a_column_and_not_among_the_others(make):
    frame = make({"x": [1.0, 2.0], "w": [1, 3], "y": [3.0, 4.0]})
    blocks = Blocks(frame, weight="w")
    (read,) = blocks.weighted()
    assert blocks.names == ("x", "y")
    assert_array_equal(read.table, [[1, 3], [2, 4]])
    assert_array_equal(read.weight, [1, 3])
    assert Blocks(frame).names == ("x", "w", "y")


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, lambda columns: pd.DataFrame(columns).convert_dtypes()])
def test_nothing_is_missing(make):
    frame = make({"x": [1.0, None, 3.0], "n": [1, 2, None], "b": [True, None, False]})
    assert_array_equal(next(iter(Blocks(frame))), [[1, 1, 1], [np.nan, 2, np.nan], [3, np.nan, 0]])


def test_masked_cells_are_missing():
    masked = np.ma.masked_array(X, mask=np.zeros_like(X, dtype=bool))
    masked[3, 1] = np.ma.masked
    read = np.concatenate(list(Blocks([masked], rows=10)))
    assert np.argwhere(np.isnan(read)).tolist() == [[3, 1]]


def test_names_that_are_numbers_are_no_names():
    blocks = Blocks(pd.DataFrame(X), rows=20)
    assert blocks.names is None
    assert_array_equal(np.concatenate(list(blocks)), X)


def test_integers_become_double_precision():
    assert next(iter(Blocks(np.arange(6).reshape(3, 2)))).dtype == np.float64
    assert next(iter(Blocks(np.arange(6.0).reshape(3, 2).astype(">f8")))).dtype == np.dtype("=f8")


def test_single_precision_may_follow_double():
    read = np.concatenate(list(Blocks([X.astype(np.float64), X], rows=10)))
    assert read.dtype == np.float64


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64, bool])
def test_whole_numbers_may_follow_single_precision_where_nothing_is_lost(kind):
    whole = np.arange(6).reshape(2, 3).astype(kind)
    read = np.concatenate(list(Blocks([X, whole], rows=10)))
    assert read.dtype == np.float32
    assert_array_equal(read, np.concatenate([X, whole.astype(np.float32)]))


def test_gaps_may_follow_single_precision():
    read = np.concatenate(list(Blocks([X, np.full((2, 3), np.nan)], rows=10)))
    assert_array_equal(read[-2:], np.full((2, 3), np.nan))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 65536])
def test_a_source_may_fill_one_array_again_and_again(rows):
    def refilled():
        own = np.empty((2, 2))
        for i in range(5):
            own[:] = [[i, 1], [i, 2]]
            yield own

    expected = [[i, weight] for i in range(5) for weight in (1, 2)]
    blocks = list(Blocks(refilled, rows=rows))
    assert_array_equal(np.concatenate(blocks), expected)
    seen = [(each.table.copy(), each.weight) for each in Blocks(refilled, rows=rows, weight=1).weighted()]
    assert_array_equal(np.concatenate([np.column_stack(each) for each in seen]), expected)


@pytest.mark.parametrize("kind", ["array", "pandas", "list", "arrow table", "memory map changed in memory"])
def test_who_writes_into_a_block_does_not_change_the_source(kind, tmp_path):
    blocks = Blocks(SOURCES[kind](tmp_path), rows=57)
    before = X.copy()
    for block in blocks:
        np.add(block, 1, out=block)
    assert_array_equal(np.concatenate(list(blocks)), before)
    assert_array_equal(X, before)


def test_it_tells_what_it_is():
    assert repr(Blocks(X)) == "Blocks(<ndarray>)"
    assert repr(Blocks([X], columns=[0], rows=3)) == "Blocks(<list>, columns=(0,), rows=3)"


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (iter([X]), UnsupportedInputError, "pass a function that returns a fresh iterator, or call partial_fit"),
        ((x for x in [X]), UnsupportedInputError, "can be read only once"),
        (table().to_reader(), UnsupportedInputError, "can be read only once"),
        (pl.DataFrame(X).lazy(), UnsupportedInputError, "a query that has not run yet"),
        ([], UnsupportedInputError, "an empty list"),
        (3.0, UnsupportedInputError, "no source of blocks"),
        ([[1.0, 2.0]], UnsupportedInputError, "no source of blocks"),
        ("nowhere.parquet", DataNotFoundError, "no file or folder 'nowhere.parquet'$"),
        ("s3://bucket/x.parquet", DataNotFoundError, "'s3://bucket/x.parquet'; open .* by pyarrow.dataset.dataset"),
        (np.zeros((2, 3, 4)), UnsupportedInputError, "no source of blocks"),
    ],
)
def test_what_is_no_source(source, error, words):
    with pytest.raises(error, match=words):
        Blocks(source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([X, X[:, :2]], "the first had 3, then a block of 2 came"),
        ([X, X + np.float64(0.1)], "one precision: the first were float32, then one came that holds .* would round"),
        ([X, np.full((1, 3), 2**24 + 1)], "holds .*16777217.*, which float32 would round"),
        ([X, np.full((1, 3), 1e300)], "holds .*1e\\+300.*, which float32 would round"),
        ([table(), X], "columns with names, then a block without"),
        ([X, table()], "columns without names, then a block with them"),
        ([table(), table().drop_columns("b")], "has no column 'b', which the first block had; it has 'a', 'c'"),
        (lambda: iter([X[0]]), r"two dimensions, rows and columns; got shape \(3,\)"),
        (np.array([["a", "b"]]), "column.* hold text"),
        (np.array([[1 + 2j]]), "complex128, which are no numbers"),
        (pd.DataFrame({"x": [1.0], "who": ["me"]}), "'who' holds text.* say by columns= which to read"),
        (pl.DataFrame({"x": [1.0], "who": ["me"]}), "'who' holds text.* say by columns= which to read"),
        (pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), "two columns of the name 'x'"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "holds dates"),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), "'x' holds dates"),
    ],
)
def test_blocks_that_cannot_be_read(source, words):
    with pytest.raises(InvalidDataError, match=words):
        list(Blocks(source, rows=20))


@pytest.mark.parametrize(("made", "kind"), [(X, "ndarray"), (3, "int"), (pd.DataFrame(X), "DataFrame")])
def test_a_function_must_return_an_iterator(made, kind):
    with pytest.raises(UnsupportedInputError, match=f"must return an iterator of blocks, got {kind}"):
        list(Blocks(lambda: made))


def test_a_function_must_yield_tables():
    with pytest.raises(UnsupportedInputError, match="must be a table of numbers, an array or a frame; got float"):
        list(Blocks(lambda: iter([1.0])))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "rows must be a whole number of at least 1, got 0"),
        ({"columns": "a"}, "columns must be a list of names"),
        ({"columns": []}, "columns must be a list of names"),
        ({"columns": ["a", "a"]}, "different names"),
        ({"columns": [1.5]}, "different names"),
        ({"weight": 1.5}, "weight must be the name or number"),
    ],
)
def test_options_that_cannot_be(options, words):
    with pytest.raises(InvalidParameterError, match=words):
        Blocks(table(), **options)


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (table(), {"columns": ["z"]}, "columns names 'z', but the source has 'a', 'b', 'c'"),
        (table(), {"weight": "z"}, "weight names 'z', but the source has 'a', 'b', 'c'"),
        (table(), {"columns": [3]}, "asks for column 3, but the source has 3 columns"),
        (X, {"columns": ["a"]}, "arrays, whose columns have no names"),
        (table(), {"columns": ["a", "b"], "weight": "b"}, "cannot be both"),
    ],
)
def test_columns_that_are_not_there(source, options, words, tmp_path):
    with pytest.raises(InvalidParameterError, match=words):
        list(Blocks(source, **options))
    if isinstance(source, pa.Table):  # files are asked for their columns beforehand
        with pytest.raises(InvalidParameterError, match=words):
            list(Blocks(parquet(tmp_path), **options))


def test_blocks_of_blocks_are_refused():
    with pytest.raises(InvalidParameterError, match="which are blocks already"):
        Blocks(Blocks(X, weight=0))


def test_weights_alone_are_no_table():
    with pytest.raises(InvalidDataError, match="none but that of the weights"):
        list(Blocks(pa.table({"w": [1.0]}), weight="w"))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_must_be_weights(bad):
    with pytest.raises(InvalidDataError, match="column 'w' holds"):
        list(Blocks(pa.table({"x": [1.0, 2.0], "w": [1.0, bad]}), weight="w"))


def test_files_of_no_known_kind(tmp_path):
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(UnsupportedInputError, match=r"'x.xlsx' is: names of files must end in one of \.npy"):
        Blocks(tmp_path / "x.xlsx")
    with pytest.raises(UnsupportedInputError, match="holds no Parquet, Arrow or CSV files"):
        Blocks(tmp_path)
    parquet(tmp_path), feather(tmp_path)
    with pytest.raises(UnsupportedInputError, match=r"holds files of \.feather and \.parquet"):
        Blocks(tmp_path)


def damaged(kind, folder):
    rows = np.arange(40.0).reshape(20, 2)
    np.save(folder / "whole.npy", rows)
    pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), folder / "whole.parquet")
    npy, parquet = (folder / "whole.npy").read_bytes(), (folder / "whole.parquet").read_bytes()
    contents = {
        "cut.npy": npy[:-50],
        "header.npy": npy[:30],
        "empty.npy": b"",
        "cut.parquet": parquet[:-20],
        "empty.csv": b"",
        "ragged.csv": b"a,b\n1,2\n3\n",
        "text.arrow": b"no table",
        "text.feather": b"no table",
    }
    (folder / kind).write_bytes(contents[kind])
    return folder / kind


DAMAGED = ["cut.npy", "header.npy", "empty.npy", "cut.parquet", "empty.csv", "ragged.csv", "text.arrow", "text.feather"]


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files_are_named(kind, tmp_path):
    with pytest.raises(InvalidDataError, match=f"cannot read '.*{kind}'.*may be damaged, cut short"):
        list(Blocks(damaged(kind, tmp_path)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UnsupportedInputError, match=r"pipe\.csv' is a pipe or a device, which can be read only once"):
        Blocks(tmp_path / "pipe.csv")


def test_a_group_of_zarr_arrays_is_no_array(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open_group(str(tmp_path / "g.zarr"), mode="w").create_array("x", shape=(2, 2), dtype="f8")
    with pytest.raises(UnsupportedInputError, match="is a group of Zarr arrays; pass one of them"):
        Blocks(tmp_path / "g.zarr")


@pytest.mark.parametrize(("name", "library"), [("x.parquet", "pyarrow"), ("x.zarr", "zarr")])
def test_a_library_that_is_missing_is_named(name, library, tmp_path, monkeypatch):
    (tmp_path / name).write_text("")
    for module in ("pyarrow.dataset", "zarr"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingExtraError,
        match=rf"needs {library}, which is not installed; get it with: pip install \"prinfold\[data\]\"",
    ):
        Blocks(tmp_path / name)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_whole_numbers_that_numpy_has_no_type_for_are_read_as_numbers():
    frame = pl.DataFrame({"a": np.arange(40) % 7, "b": np.linspace(0, 1, 40)})
    wide = frame.with_columns(pl.col("a").cast(pl.Int128))
    plain, found = (GTM(1, max_iter=2, tol=0).fit(Blocks([each[:20], each[20:]])) for each in (frame, wide))
    np.testing.assert_allclose(found.weights_, plain.weights_)
