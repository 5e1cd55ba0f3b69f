"""Tables of very many rows: read block by block where the method can, or some rows drawn by a seed."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import QUICK, Said, csv_text, numbers

import prinfold
from prinfold.cli.tables import sampling
from prinfold.cli.tables.reading import Reading, read_table
from prinfold.cli.tables.sampling import Draw

Call = Callable[..., Said]


@pytest.fixture
def large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Parquet file that is larger than what is read as a whole, of which 50 rows are looked at."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = numbers(120)
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": ["u", "v"] * 60, "same": [1.0] * 120}
    parquet.write_table(arrow.table(columns), folder / "data.parquet", row_group_size=32)
    monkeypatch.setattr(sampling, "LARGE", 100)
    monkeypatch.setattr(sampling, "_BATCH", 16)
    monkeypatch.setattr(sampling, "LOOKED_AT", 50)
    return folder / "data.parquet"


@pytest.mark.parametrize("scaling", ["--raw", "--standardize"])
def test_a_fit_to_blocks_is_the_fit_to_all_rows(
    scaling: str, large: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = call("fit", "data.parquet", scaling, "--json", *QUICK).json
    assert (found["rows"], found["columns"]) == (120, ["a", "b", "c"])
    assert found["left_out"] == {"kind": "text", "same": "it is the same in every row"}
    assert any("read block by block" in note and "from 50 of 120 rows" in note for note in found["notes"])
    monkeypatch.setattr(sampling, "LARGE", 10**6)
    assert not any(
        "block" in n for n in call("fit", large, scaling, "-o", "w.prinfold", "--json", *QUICK).json["notes"]
    )
    blocks, whole = prinfold.load("data.prinfold"), prinfold.load("w.prinfold")
    assert list(blocks.feature_names_in_) == list(whole.feature_names_in_) == ["a", "b", "c"]
    for name, model in (("z.npy", "data.prinfold"), ("w.npy", "w.prinfold")):
        assert call("transform", model, "data.parquet", "--keep", "none", "--out", name, "-q").code == 0
    np.testing.assert_allclose(np.load("z.npy"), np.load("w.npy"), atol=1e-6)


@pytest.mark.parametrize("words", [["--method", "kmm", "--set", "max_iter=2"], ["--whiten"], ["--missing", "drop"]])
def test_what_takes_no_blocks_is_fitted_to_some_rows(words: list[str], large: Path, call: Call) -> None:
    found = call("fit", "data.parquet", "--json", *words, *([] if "kmm" in words else QUICK)).json
    assert found["rows"] == 50
    assert "the fit uses 50 of 120 rows, drawn at random (--seed); --sample N sets the number" in found["notes"]


def write(kind: str, X: np.ndarray, folder: Path) -> Path:
    path = folder / f"data.{kind}"
    if kind == "csv":
        path.write_text(csv_text(X))
    elif kind == "npy":
        np.save(path, np.round(X, 6))
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({name: np.round(X[:, j], 6) for j, name in enumerate("abc")}), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_rows_are_drawn_by_the_seed(kind: str, folder: Path) -> None:
    X = np.round(numbers(90), 6)
    path = write(kind, X, folder)
    tables = [read_table(path, Reading(draw=Draw(20, seed))) for seed in (0, 0, 1)]
    first, again, other = (np.stack(list(table.columns.values()), axis=1) for table in tables)
    assert [(len(table), table.whole) for table in tables] == [(20, 90)] * 3
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in first]
    assert places == sorted(set(places))
    if kind == "csv":
        assert tables[0].lines.tolist() == [place + 2 for place in places]


def test_more_rows_than_there_are_is_all_of_them(table: Path, call: Call) -> None:
    found = call("fit", "data.csv", "--sample", "1000", "--json", *QUICK).json
    assert found["rows"] == 40
    assert not any("drawn" in note for note in found["notes"])
    said = call("fit", "data.csv", "--sample", "30", "--force", *QUICK)
    assert "40 rows" not in said.out.partition("note")[0]
    assert "note: the fit uses 30 of 40 rows, drawn at random" in said.out


def test_each_row_is_as_likely_as_any_other() -> None:
    often = Counter(place for seed in range(600) for place, _ in Draw(3, seed).pick("abcdef"))
    spread = (600 * 0.25) ** 0.5
    assert all(abs(often[place] - 300) < 4 * spread for place in range(6))


@pytest.mark.parametrize(("columns", "rows"), [(1, 100), (20, 100), (2000, 50), (10**6, 10)])
def test_rows_of_many_columns_are_fewer(columns: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_FEWEST_LOOKED_AT", 10)
    assert Draw(100, 0, 100_000).of_columns(columns).rows == rows
    assert Draw(100, 0).of_columns(columns).rows == 100


def long_text(folder: Path, times: int) -> Path:
    """Six hundred rows, so many times."""
    rows = "\n".join(f"{i % 97 / 7:.4f},{i % 89 / 3:.4f},{i % 83:.4f},{i % 79:.4f},s{i % 5}" for i in range(600))
    (folder / "long.csv").write_text("a,b,c,d,site\n" + f"{rows}\n" * times)
    return folder / "long.csv"


def test_what_is_in_a_large_text_is_told_in_memory_that_does_not_grow_with_it(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(sampling, "LARGE_TEXT", 10**5)
    monkeypatch.setattr(sampling, "LOOKED_AT", 500)
    monkeypatch.setattr("prinfold.cli.tables.arrow_text._SPOOLED_BYTES", 2**16)
    peaks = []
    for times in (10, 10, 60):  # modules are loaded the first time
        path = long_text(folder, times)
        tracemalloc.start()
        found = call("info", path, "--json").json
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]
    monkeypatch.setattr(sampling, "LARGE_TEXT", 10**9)
    whole = call("info", "long.csv", "--json").json
    assert (found["rows"], found["fit_columns"]) == (whole["rows"], whole["fit_columns"]) == (36_000, list("abcd"))
    assert found["columns"].pop("site") == whole["columns"].pop("site")
    for name, summary in whole["columns"].items():
        assert found["columns"][name] == pytest.approx(summary)


def test_methods_that_take_no_blocks_see_all_rows_of_texts_that_fit_into_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(sampling, "LARGE_TEXT", 10)
    assert sampling.looked_at(long_text(folder, 1), blocks=False) is None
    assert sampling.looked_at(folder / "long.csv") is not None
