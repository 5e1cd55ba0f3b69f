"""Tables from files: the same numbers whatever the file looks like, and one line where it cannot be read."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import csv_text, numbers

import prinfold
from prinfold.cli.tables.delimited import read_delimited
from prinfold.cli.tables.number_formats import number_of
from prinfold.cli.tables.reading import FileTable, Reading, read_table
from prinfold.exceptions import DataNotFoundError, InvalidDataError, MissingExtraError

X = np.round(numbers(12), 6)


def matrix(table: FileTable) -> np.ndarray:
    return np.stack([table.columns[name] for name in table.measured], axis=1)


def with_commas(text: str) -> str:
    return text.replace(",", ";").replace(".", ",")


TEXTS = {
    "plain": csv_text(X).encode(),
    "line ends of Windows": csv_text(X).replace("\n", "\r\n").encode(),
    "line ends of old": csv_text(X).replace("\n", "\r").encode(),
    "a mark in front": b"\xef\xbb\xbf" + csv_text(X).encode(),
    "two bytes a letter": csv_text(X).encode("utf-16"),
    "four bytes a letter": csv_text(X).encode("utf-32"),
    "semicolons": csv_text(X, "a;b;c", ";").encode(),
    "decimal commas": with_commas(csv_text(X)).encode(),
    "decimal commas and tabs": csv_text(X, "a\tb\tc", "\t").replace(".", ",").encode(),
    "tabs": csv_text(X, "a\tb\tc", "\t").encode(),
    "bars": csv_text(X, "a|b|c", "|").encode(),
    "blanks": csv_text(X, "a  b   c", "   ").encode(),
    "blanks in front": csv_text(X, " a b c", " ").replace("\n", "\n  ").encode(),
    "names in quotes": csv_text(X, '"a","b","c"').encode(),
    "blanks after commas": csv_text(X, "a, b, c", ", ").encode(),
    "empty lines": csv_text(X).replace("\n", "\n\n").encode() + b"\n\n",
    "rows of nothing at the end": csv_text(X).encode() + b",,\n,,\n",
    "a comma behind each row": csv_text(X).replace("\n", ",\n").encode(),
    "no line end at the end": csv_text(X).rstrip().encode(),
    "comments": b"# measured in May\n# by hand\n" + csv_text(X).encode(),
    "a hint for spreadsheets": b"sep=;\r\n" + csv_text(X, "a;b;c", ";").encode(),
    "names in a comment": csv_text(X, "# a b c", " ").encode(),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_file_is_read_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(TEXTS[kind])
    table = read_table(path)
    assert table.measured == ("a", "b", "c")
    assert table.named
    keep = ~np.isnan(matrix(table)).all(axis=1)
    np.testing.assert_array_equal(matrix(table)[keep], X)
    assert keep.sum() == len(X)


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "data.csv.gz", "wb") as file:
        file.write(csv_text(X).encode())
    np.testing.assert_array_equal(matrix(read_table(tmp_path / "data.csv.gz")), X)


def test_names_in_quotes_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('"a, b","say ""x""","two\nlines"\n1,2,3\n4,5,6\n', encoding="utf-8")
    table = read_table(path)
    assert table.measured == ("a, b", 'say "x"', "two\nlines")
    np.testing.assert_array_equal(matrix(table), [[1, 2, 3], [4, 5, 6]])


def test_numbers_without_names_are_rows_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("2001,2002\n1,2\n3,4\n", encoding="utf-8")
    table = read_table(path)
    assert (len(table), table.named, table.measured) == (3, False, ("column 1", "column 2"))
    assert "--header reads it as names" in table.notes[0]
    told = read_table(path, Reading(header=True))
    assert (len(told), told.named, told.measured) == (2, True, ("2001", "2002"))


def test_words_can_be_a_row_when_told_so(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,1\ny,2\n", encoding="utf-8")
    table = read_table(path, Reading(header=False))
    assert list(table.columns["column 1"]) == ["x", "y"]


def test_the_names_of_rows_that_R_writes(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("a b\nfirst 1 2\nsecond 3 4\n", encoding="utf-8")
    table = read_table(path)
    assert table.measured == ("row name", "a", "b")
    np.testing.assert_array_equal(table.columns["b"], [2, 4])


def test_two_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,x,x (2),\n1,2,3,4\n5,6,7,8\n", encoding="utf-8")
    table = read_table(path)
    assert table.measured == ("x", "x (3)", "x (2)", "column 4")
    assert table.notes == ("several columns are called 'x'; one of them is 'x (3)' here",)


def test_missing_cells_by_any_of_their_words(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,NA\n,2\n nan ,?\n#N/A,-999\n", encoding="utf-8")
    table = read_table(path, Reading(missing=("-999",)))
    np.testing.assert_array_equal(matrix(table), [[1, np.nan], [np.nan, 2], [np.nan] * 2, [np.nan] * 2])


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.5", 1.5),
        (" -2e3 ", -2000.0),
        ("1,5", 1.5),
        ("1,5e2", 150.0),
        (",5", 0.5),
        ("1_000", None),
        ("1,234.5", None),
        ("x", None),
    ],
)
def test_what_is_a_number(cell: str, number: float | None) -> None:
    assert number_of(cell) == number


def test_text_that_comes_late_is_kept_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prinfold.cli.tables.delimited._PORTION", 3)
    path = tmp_path / "data.csv"
    path.write_text("code,x\n" + "".join(f"00{i},{i}\n" for i in range(8)) + "n/k,8\n", encoding="utf-8")
    table = read_table(path)
    assert list(table.columns["code"]) == [*(f"00{i}" for i in range(8)), "n/k"]
    np.testing.assert_array_equal(table.columns["x"], np.arange(9))


def test_portions_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.csv"
    path.write_text(csv_text(X), encoding="utf-8")
    whole = read_delimited(path)
    monkeypatch.setattr("prinfold.cli.tables.delimited._PORTION", 5)
    parts = read_delimited(path)
    np.testing.assert_array_equal(np.stack(whole.columns), np.stack(parts.columns))
    np.testing.assert_array_equal(whole.lines, np.arange(2, 14))
    np.testing.assert_array_equal(parts.lines, whole.lines)


MORE = {
    "text": b"id,x\n007,1\n008,2.5\n,NA\n",
    "missing": b"x;y\nNA;1\n;Nan\n#N/A;2\n",
    "whole and not": b"n,x\n1,1\n2,2.25\n-3,1e-3\n",
    "names twice and none": b",x,x\n1,2,3\n4,5,6\n",
    "no names": b"1,2\n3,4\n",
    "quotes": b'a,b\n"x, y",1\n"say ""z""",2\n"two\nlines",3\n',
    "text late": b"x,y\n" + b"1,2\n" * 20_000 + b"oops,3\n",
    "more cells late": b"x,y\n" + b"1,2\n" * 20_000 + b"1,2,\n",
    "decimal commas late": b"x;y\n" + b"1;2\n" * 20_000 + b"1,5;2\n",
    "old letters late": b"x,y\n" + b"u,2\n" * 20_000 + "ö,3\n".encode("latin-1"),
}


@pytest.mark.parametrize("kind", [*TEXTS, *MORE])
def test_arrow_reads_what_we_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it takes a file or leaves it to us, nobody sees the difference, but that lines are not known."""
    pytest.importorskip("pyarrow.csv")
    path = tmp_path / "data.csv"
    path.write_bytes((TEXTS | MORE)[kind])
    own = read_table(path)
    monkeypatch.setattr("prinfold.cli.tables.delimited._ARROW_FROM_BYTES", 0)
    quick = read_table(path)
    assert (quick.measured, quick.named, quick.notes) == (own.measured, own.named, own.notes)
    for name in own.columns:
        assert quick.columns[name].dtype == own.columns[name].dtype
        np.testing.assert_array_equal(quick.columns[name], own.columns[name])


def test_arrow_takes_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow.csv")
    monkeypatch.setattr("prinfold.cli.tables.delimited._ARROW_FROM_BYTES", 0)
    for kind in ("plain", "semicolons", "decimal commas", "a mark in front", "comments", "names in quotes"):
        (tmp_path / "data.csv").write_bytes(TEXTS[kind])
        assert read_table(tmp_path / "data.csv").lines is None
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    assert read_table(tmp_path / "data.csv").lines is not None


def test_letters_of_old_spreadsheets(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("Größe,Ort\n1,Köln\n2,Ulm\n".encode("latin-1"))
    table = read_table(path)
    assert table.notes == ("the file is not in UTF-8; it was read as Windows-1252 (western European)",)
    assert list(table.columns["Ort"]) == ["Köln", "Ulm"]


def test_what_came_from_elsewhere_is_the_same(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    feather = pytest.importorskip("pyarrow.feather")
    data = arrow.table(
        {
            "a": X[:, 0],
            "b": X[:, 1].astype("float32"),
            "n": [*range(11), None],
            "on": [True, None] * 6,
            "w": ["u", None] * 6,
        }
    )
    parquet.write_table(data, tmp_path / "data.parquet")
    feather.write_feather(data, tmp_path / "data.feather")
    with arrow.ipc.new_stream(str(tmp_path / "data.arrow"), data.schema) as stream:
        stream.write_table(data)
    for name in ("data.parquet", "data.feather", "data.arrow"):
        table = read_table(tmp_path / name)
        np.testing.assert_array_equal(table.columns["a"], X[:, 0])
        np.testing.assert_array_equal(table.columns["b"], X[:, 1].astype("float32"))
        np.testing.assert_array_equal(table.columns["n"], [*range(11), np.nan])
        np.testing.assert_array_equal(table.columns["on"], [1, np.nan] * 6)
        assert list(table.columns["w"]) == ["u", None] * 6


def test_arrays_have_numbers_for_names(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X.astype("float32"))
    table = read_table(tmp_path / "X.npy")
    assert (table.measured, table.named) == (("column 1", "column 2", "column 3"), False)
    np.testing.assert_array_equal(matrix(table), X.astype("float32"))
    np.save(tmp_path / "x.npy", np.arange(4))
    assert read_table(tmp_path / "x.npy").measured == ("column 1",)


def test_several_arrays_in_one_file(tmp_path: Path) -> None:
    words = np.array(["u", "v"] * 6)
    np.savez(tmp_path / "d.npz", X=X, Y=X[:, :2], y=words, t=np.arange(12), names=np.array(["a", "b", "c"]))
    table = read_table(tmp_path / "d.npz")
    assert (table.measured, table.named) == (("a", "b", "c"), True)
    assert list(table.columns["y"]) == list(words)
    np.testing.assert_array_equal(table.columns["t"], np.arange(12))
    assert read_table(tmp_path / "d.npz", Reading(array="Y")).measured == ("column 1", "column 2")
    with pytest.raises(InvalidDataError, match="holds the arrays X, Y, y, t, names; say not 'Z' with --array"):
        read_table(tmp_path / "d.npz", Reading(array="Z"))
    np.savez(tmp_path / "two.npz", A=X, B=X)
    with pytest.raises(InvalidDataError, match="holds the arrays A, B; say which with --array"):
        read_table(tmp_path / "two.npz")


def test_single_cells(tmp_path: Path) -> None:
    anndata, scipy_sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    obs = pandas.DataFrame(
        {"kind": pandas.Categorical(["u", "v"] * 6), "depth": np.arange(12.0)}, index=[f"cell{i}" for i in range(12)]
    )
    data = anndata.AnnData(scipy_sparse.csr_matrix(X), obs=obs, var=pandas.DataFrame(index=["g1", "g2", "g3"]))
    data.obsm["X_pca"] = X[:, :2]
    data.write_h5ad(tmp_path / "cells.h5ad")
    table = read_table(tmp_path / "cells.h5ad")
    assert table.measured == ("g1", "g2", "g3")
    np.testing.assert_array_equal(matrix(table), X)
    assert list(table.columns["kind"]) == ["u", "v"] * 6
    np.testing.assert_array_equal(table.columns["depth"], np.arange(12.0))
    assert table.columns["obs_names"][3] == "cell3"
    reduced = read_table(tmp_path / "cells.h5ad", Reading(array="X_pca"))
    np.testing.assert_array_equal(matrix(reduced), X[:, :2])
    with pytest.raises(InvalidDataError, match="no array 'X_umap'; --array takes X, X_pca"):
        read_table(tmp_path / "cells.h5ad", Reading(array="X_umap"))


# -------------------------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("empty.csv", b"", "is empty: there is no row in it"),
        ("blank.csv", b"\n\n  \n", "is empty: there is no row in it"),
        ("names.csv", b"a,b,c\n", "has names of columns, but no row below them"),
        (
            "ragged.csv",
            b"a,b\n1,2\n3,4,5\n6,7\n",
            "line 3 of .* has 3 cells, .*other lines have 2 .*by commas",
        ),
        ("short.csv", b"a,b,c\n1,2,3\n4,5\n", "line 3 of .* has 2 cells, but other lines have 3"),
        ("photo.csv", b"\x89PNG\0\0\0", "is not a text file; name it by what it is"),
        ("book.xlsx", b"PK", "it is no workbook, or it is damaged or locked by a password; save the sheet as CSV"),
        ("rows.json", b"[]", "is JSON; write its rows as CSV or Parquet"),
        ("data.prinfold", b"", "is a model and not a table"),
        ("cut.parquet", b"PAR1 and not more", "cannot read .*cut.parquet: .*; the file may be damaged, cut short"),
        ("cut.feather", b"ARROW1\0\0", "cannot read .*cut.feather: .*; the file may be damaged, cut short"),
        ("cut.npy", b"\x93NUMPY", "cannot read .*cut.npy: .*; the file may be damaged, cut short"),
        ("no.npz", b"PK\3\4", "cannot read .*no.npz: .*; the file may be damaged, cut short"),
        ("no.csv.gz", b"a,b\n1,2\n", "cannot read .*no.csv.gz: .*; the file may be damaged, cut short"),
    ],
)
def test_bad_files_say_what_to_do(name: str, content: bytes, match: str, tmp_path: Path) -> None:
    if name.endswith((".parquet", ".feather")):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidDataError, match=match):
        read_table(tmp_path / name)


def test_a_parquet_file_that_was_cut_short(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table({"a": X[:, 0]}), tmp_path / "data.parquet")
    content = (tmp_path / "data.parquet").read_bytes()
    (tmp_path / "data.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidDataError, match=r"cannot read .*data.parquet: .*; the file may be damaged, cut short"):
        read_table(tmp_path / "data.parquet")


def test_arrays_that_are_no_tables(tmp_path: Path) -> None:
    for name, array in {"cube": np.zeros((2, 2, 2)), "words": np.array([["u"]]), "none": np.zeros((3, 0))}.items():
        np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(InvalidDataError, match=r"shape \(2, 2, 2\) and type float64; a table has two dimensions"):
        read_table(tmp_path / "cube.npy")
    with pytest.raises(InvalidDataError, match="and holds numbers"):
        read_table(tmp_path / "words.npy")
    with pytest.raises(InvalidDataError, match="in which there is no column"):
        read_table(tmp_path / "none.npy")
    np.save(tmp_path / "rows.npy", np.zeros((0, 2)))
    with pytest.raises(InvalidDataError, match="has columns, but no row"):
        read_table(tmp_path / "rows.npy")


def test_a_folder_names_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("")
    with pytest.raises(InvalidDataError, match=r"is a folder; name a file in it; it holds one.csv"):
        read_table(tmp_path)


def test_a_wrong_name_is_set_right(tmp_path: Path) -> None:
    (tmp_path / "readings.csv").write_text("")
    with pytest.raises(DataNotFoundError, match=r"there is no file .*readingz.csv; did you mean .*readings.csv\?"):
        read_table(tmp_path / "readingz.csv")
    with pytest.raises(DataNotFoundError, match="is the name right, and are you in the folder"):
        read_table(tmp_path / "quite" / "different.csv")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.csv").write_text("a\n1\n")

    def refuse(*_: object, **__: object) -> None:  # a superuser may read anything
        raise PermissionError(13, "Permission denied", "data.csv")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        InvalidDataError, match=r"cannot read .*data.csv: Permission denied; you lack the right to read it"
    ):
        read_table(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("name", "library"), [("data.parquet", "pyarrow"), ("data.feather", "pyarrow"), ("data.h5ad", "anndata")]
)
def test_a_missing_library_is_named(name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(b"x")
    for each in [each for each in sys.modules if each.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, each, None)
    for each in (library, f"{library}.parquet", f"{library}.ipc"):
        monkeypatch.setitem(sys.modules, each, None)
    with pytest.raises(MissingExtraError, match=f"needs {library}, which is not installed; get it with: pip install"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("word", ["", "::", '"'])
def test_a_separator_is_one_character(word: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidDataError, match="--separator must be one character, or tab or space"):
        read_table(tmp_path / "data.csv", Reading(separator=word))


def test_a_separator_may_be_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a:x\tb\n1\t2\n3\t4\n")
    for word in ("tab", "\\t", "\t"):
        assert read_table(tmp_path / "data.csv", Reading(separator=word)).measured == ("a:x", "b")


@pytest.mark.parametrize("name", ["objects.npy", "objects.npz"])
def test_arrays_of_objects_are_called_so(tmp_path: Path, name: str) -> None:
    path, objects = tmp_path / name, np.array([[1, None], [2, "x"]], dtype=object)
    np.save(path, objects, allow_pickle=True) if path.suffix == ".npy" else np.savez(path, X=objects)
    with pytest.raises(InvalidDataError, match=rf"{name} holds Python objects, .*; save it as numbers"):
        read_table(path)


def test_a_model_by_another_name_is_known(tmp_path: Path) -> None:
    prinfold.save(prinfold.GTM(nodes=3, max_iter=1, tol=0).fit(np.eye(5)), tmp_path / "model.prinfold")
    path = (tmp_path / "model.prinfold").rename(tmp_path / "model.csv")
    with pytest.raises(InvalidDataError, match=r"model.csv is a prinfold model; let its name end in .prinfold"):
        read_table(path)


def test_a_name_is_proposed_where_it_is_near_without_its_ending(tmp_path: Path) -> None:
    for name in ("quote.csv", "data.csv", "data.prinfold"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    with pytest.raises(DataNotFoundError, match="is the name right"):
        read_table(tmp_path / "none.csv")
    for wrong in ("dta.csv", "data.cvs"):
        with pytest.raises(DataNotFoundError, match=r"did you mean .*data.csv\?"):
            read_table(tmp_path / wrong)
