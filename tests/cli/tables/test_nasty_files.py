"""Forty files as people have them: each is read as it is meant, or refused in words that say what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from prinfold.cli.methods import choose_scaling
from prinfold.cli.models import columns_to_keep
from prinfold.cli.tables import sampling
from prinfold.cli.tables.columns import choose_columns, name_columns
from prinfold.cli.tables.reading import Reading, read_table
from prinfold.cli.tables.sampling import Draw
from prinfold.exceptions import InvalidDataError

NAN = np.nan
LONG = "z" * 300_000

READ: dict[str, tuple[str, bytes, dict[str, list[object]]]] = {
    "plain": ("a.csv", b"x,y\n1,2\n3,4\n", {"x": [1, 3], "y": [2, 4]}),
    "a mark of UTF-8": ("a.csv", b"\xef\xbb\xbfx,y\n1,2\n3,4\n", {"x": [1, 3], "y": [2, 4]}),
    "western Windows": ("a.csv", "Größe µm,Ort\n1.5,Köln\n2.5,Ulm\n".encode("cp1252"), {"Größe µm": [1.5, 2.5]}),
    "western Windows, euro": ("a.csv", "x,Preis €\n1,2\n3,4\n".encode("cp1252"), {"Preis €": [2, 4]}),
    "central European Windows": (
        "a.csv",
        ("x,miejscowość\n" + "1,Kraków\n2,Łódź\n3,Śródmieście\n4,Zażółcin\n" * 9).encode("cp1250"),
        {"miejscowość": ["Kraków", "Łódź", "Śródmieście", "Zażółcin"] * 9},
    ),
    "letters that come late": (
        "a.csv",
        b"x,k\n" + b"1,a\n" * 9999 + "2,Köln\n".encode("cp1252"),
        {"x": [1] * 9999 + [2]},
    ),
    "Cyrillic Windows": (
        "a.csv",
        ("город,x\n" + "Нижний Новгород,1\nСанкт-Петербург,2\n" * 9).encode("cp1251"),
        {"x": [1, 2] * 9, "город": ["Нижний Новгород", "Санкт-Петербург"] * 9},
    ),
    "UTF-16 with a mark": ("a.csv", "größe,y\n1,2\n3,4\n".encode("utf-16"), {"größe": [1, 3]}),
    "UTF-16 without one": ("a.csv", "größe,y\n1,2\n3,4\n".encode("utf-16-le"), {"größe": [1, 3]}),
    "UTF-16, high byte first": ("a.csv", "x,y\n1,2\n3,4\n".encode("utf-16-be"), {"x": [1, 3]}),
    "UTF-32": ("a.csv", "x,y\n1,2\n3,4\n".encode("utf-32"), {"x": [1, 3]}),
    "semicolons and decimal commas": ("a.csv", b"x;y\n1,5;2,25\n3,5;4\n", {"x": [1.5, 3.5], "y": [2.25, 4]}),
    "the same with one column of text": ("a.csv", b"x;place\n1,5;here\n2,5;there\n", {"x": [1.5, 2.5]}),
    "tabs in a .csv": ("a.csv", b"x\ty\n1\t2\n3\t4\n", {"x": [1, 3]}),
    "several blanks": ("a.txt", b"x   y\n1.0     2\n3    4.5\n", {"x": [1, 3], "y": [2, 4.5]}),
    "bars": ("a.txt", b"x|y\n1|2\n3|4\n", {"x": [1, 3]}),
    "comments above": ("a.csv", b"# made on Monday\n# by Ann\nx,y\n1,2\n3,4\n", {"x": [1, 3]}),
    "a hint for spreadsheets": ("a.csv", b"sep=;\nx;y\n1;2\n3;4\n", {"x": [1, 3]}),
    "words for nothing": (
        "a.csv",
        "x,y\n1,n.a.\n#N/A,2\n-,3\n4,#DIV/0!\n—,NULL\n".encode(),
        {"x": [1, NAN, NAN, 4, NAN], "y": [NAN, 2, 3, NAN, NAN]},
    ),
    "decimal commas and words for nothing": ("a.csv", b"x;y\n1,5;2\nn.a.;3\n2,5;.\n", {"x": [1.5, NAN, 2.5]}),
    "a title with separators": (
        "a.csv",
        b"Protokoll;;;\nAnlage;7;;\n;;;\nt;x;y;z\n1;20,5;1,01;3\n2;21,5;1,02;4\n3;22,5;1,04;4\n",
        {"t": [1, 2, 3], "x": [20.5, 21.5, 22.5], "z": [3, 4, 4]},
    ),
    "a name that is missing is no title": ("a.csv", b"x,y,\n1,2,3\n4,5,6\n", {"x": [1, 4], "y": [2, 5]}),
    "German words for nothing": (
        "a.csv",
        "x;y\n1,5;n.v.\n#NV;2\nk.A.;3,5\n4;#WERT!\nn.b.;5\n".encode("cp1252"),
        {"x": [1.5, NAN, NAN, 4, NAN], "y": [NAN, 2, 3.5, NAN, 5]},
    ),
    "exponents of Fortran": ("a.dat", b"  1.5D+00  -2.D-01\n 0.25D+01   4.D+00\n", {"column 1": [1.5, 2.5]}),
    "sums of accountants": (
        "a.csv",
        b"x;y;z\n1,257.30;(13.21);a\n(1,104.90);53.57;b\n36.16;(130.40);c\n",
        {"x": [1257.3, -1104.9, 36.16], "y": [-13.21, 53.57, -130.4]},
    ),
    "percents": ("a.csv", b"x,share\n1,12%\n2,3.5 %\n", {"share": [12, 3.5]}),
    "minus signs of typesetters": ("a.csv", "x,y\n−1.5,2\n3,−4\n".encode(), {"x": [-1.5, 3], "y": [2, -4]}),
    "thousands": ("a.csv", b'x,y\n1,"1,234,567"\n2,"2,000,000"\n', {"y": [1234567, 2000000]}),
    "thousands with blanks": (
        "a.csv",
        "x;y;z\n1 200;3\u202f400,5;2 000 €\n1 300 000;4,25;30 €\n".encode(),
        {"x": [1200, 1300000], "y": [3400.5, 4.25], "z": [2000, 30]},
    ),
    "thousands with apostrophes": ("a.csv", b"x,y\n1'200.5,3\n-2'300,4\n", {"x": [1200.5, -2300]}),
    "names in quotes with separators": ("a.csv", b'"a, b","c"\n1,2\n3,4\n', {"a, b": [1, 3], "c": [2, 4]}),
    "lines in a cell": ("a.csv", b'x,note\n1,"two\nlines"\n2,one\n', {"x": [1, 2], "note": ["two\nlines", "one"]}),
    "a cell of 300 000 letters": ("a.csv", f"x,note\n1,{LONG}\n2,b\n".encode(), {"x": [1, 2], "note": [LONG, "b"]}),
    "lines that end in a separator": ("a.csv", b"x,y,\n1,2,\n3,4,\n", {"x": [1, 3], "y": [2, 4]}),
    "rows alone end in a separator": ("a.csv", b"x,y\n0.5,-2,\n3,4,\n", {"x": [0.5, 3], "y": [-2, 4]}),
    "line ends of old Macs": ("a.csv", b"x,y\r1,2\r3,4\r", {"x": [1, 3]}),
    "blank lines between": ("a.csv", b"x,y\n\n1,2\n\n\n3,4\n\n", {"x": [1, 3]}),
    "rows named as R does": ("a.csv", b'"x","y"\n"a",1,2\n"b",3,4\n', {"row name": ["a", "b"], "x": [1, 3]}),
    "rows counted as R does": ("a.txt", b"x y\n1 5 2\n2 3 4\n", {"row name": [1, 2], "x": [5, 3]}),
    "some rows of those": ("a.csv", b'"x","y"\n"7",1,5\n"3",2,4\n', {"row name": [7, 3], "x": [1, 2]}),
    "the same with commas": ("a.csv", b'"x"\n"1",5\n"2",3\n', {"row name": [1, 2], "x": [5, 3]}),
    "names that come twice": ("a.csv", b"x,x\n1,2\n3,4\n", {"x": [1, 3], "x (2)": [2, 4]}),
    "no names": ("a.csv", b"1,2\n3,4\n", {"column 1": [1, 3]}),
    "classes and no names": (
        "a.csv",
        b"5.1,3.5,0.2,setosa\n4.9,3,0.3,setosa\n4.8,3,0.4,other\n",
        {"column 1": [5.1, 4.9, 4.8], "column 4": ["setosa", "setosa", "other"]},
    ),
    "words that differ and no names": ("a.csv", b"a,5,3\nb,4,3.5\nc,6,2\n", {"column 2": [5, 4, 6]}),
    "wavelengths as names": ("a.csv", b"name,400,410,420\na,1,2,3\nb,4,5,6\n", {"400": [1, 4], "420": [3, 6]}),
    "names behind a mark": ("a.bed", b"#chrom\tstart\tend\nc1\t7\t50\nc2\t9\t60\n", {"start": [7, 9], "end": [50, 60]}),
    "what an instrument writes first": (
        "a.csv",
        b"Spectrometer XY-2000\nDate,2024-01-01\n\nx,y,z\n1,2,a\n3,4,b\n",
        {"x": [1, 3], "y": [2, 4]},
    ),
    "units below the names": ("a.csv", b"x,place,y\nmm,,kg\n1,a,2\n3,b,4\n5,c,6\n", {"x": [1, 3, 5], "y": [2, 4, 6]}),
    "both": ("a.csv", b"Run 7\nx;y\n[mm];[s]\n1,5;2\n3;4,5\n5;6\n", {"x": [1.5, 3, 5], "y": [2, 4.5, 6]}),
    "a first row with gaps": ("a.csv", b"x,place\nNA,a\n1,b\n2,c\n3,d\n", {"x": [NAN, 1, 2, 3]}),
    "text alone": ("a.csv", b"place,kind\na,b\nc,d\ne,f\n", {"place": ["a", "c", "e"]}),
    "the end of a file of DOS": ("a.csv", b"x,y\r\n1,2\r\n3,4\r\n\x1a", {"x": [1, 3]}),
    "what databases write for nothing": ("a.csv", b"x,y\n1,(null)\n\\N,2\n3,<null>\n", {"x": [1, NAN, 3]}),
    "a table of Markdown": ("a.txt", b"| x | y |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", {"x": [NAN, 1, 3]}),
    "digits of other scripts": ("a.csv", "x,y\n١٫٥,٢\n".replace("٫", ".").encode(), {"x": [1.5], "y": [2]}),
    "blanks that do not break": ("a.csv", "x,y\n\u00a01,2\n\u00a03,4\n".encode(), {"x": [1, 3]}),
    "blanks around separators": ("a.csv", b"x , y\n1 , 2  \n3 , 4  \n", {"x": [1, 3], "y": [2, 4]}),
    "plus signs": ("a.csv", b"x,y\n+1.5,-2\n+3,+4\n", {"x": [1.5, 3], "y": [-2, 4]}),
    "decimal commas in quotes": ("a.csv", b'x,y\n"1,5","2,25"\n"3,5","4,75"\n', {"x": [1.5, 3.5]}),
    "columns of fixed width": ("a.txt", b"x        y\n1.5      -2\n3        4\n", {"x": [1.5, 3], "y": [-2, 4]}),
    "Japanese Windows": ("a.csv", ("温度,圧力\n" + "1,2\n3,4\n" * 9).encode("cp932"), {"温度": [1, 3] * 9}),
    "semicolons within text": ("a.csv", b'x,y,note\n1,2,"a; b; c"\n3,4,"d; e"\n', {"note": ["a; b; c", "d; e"]}),
    "compressed": ("a.csv.gz", gzip.compress(b"x,y\n1,2\n3,4\n"), {"x": [1, 3]}),
}

REFUSED: dict[str, tuple[str, bytes, str]] = {
    "ragged": ("a.csv", b"x,y\n1,2\n3,4,5\n6,7\n8,9\n", "line 3 of .* has 3 cells, but other lines have 2"),
    "decimal commas in one column": (
        "a.csv",
        b"x\n3,0\n4,5\n",
        "1 name .* 2 cells in rows, such as '3,0'.* --separator",
    ),
    "the same, which seem to count": ("a.csv", b"x\n1,5\n2,5\n3,5\n", "1 name .* but 2 cells in rows"),
    "thousands without quotes": ("a.csv", b"m,p\n0,200,0\n4,300,1\n", "may stand within numbers or words .* quotes"),
    "single quotes": ("a.csv", b"n,k,x\na,'b, c',1\nd,'e, f',2\n", "3 names .* 4 cells .* in double quotes"),
    "a quote left open": ("a.csv", b'x,y\n1,2\n3,"four\n5,6\n7,8\n', "line 3 of .* opens a quote that is never closed"),
    "the same in the last column": ("a.csv", b'x,n\n1,a\n2,"b\n3,c\n', "line 3 of .* opens a quote that is never"),
    "empty": ("a.csv", b"", "is empty: there is no row in it"),
    "names alone": ("a.csv", b"x,y\n", "has names of columns, but no row below them|no row"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0", "is not a text file; name it by what it is"),
    "UTF-32 without a mark": ("a.csv", "größe,y\n1,2\n".encode("utf-32-le"), "seems to be text in UTF-32 .* as UTF-8"),
    "UTF-32, high byte first": ("a.csv", "x,y\n1,2\n".encode("utf-32-be"), "seems to be text in UTF-32 .* as UTF-8"),
    "a null byte": (
        "a.csv",
        b"x,y\n" + b"1,2\n" * 99 + b"1\0,2\n",
        "line 101 of .* has a null byte, which no text has",
    ),
    "a null byte in a short file": ("a.csv", b"x,y\n1,2\n3,\x004\n", "line 3 of .* has a null byte, which no text has"),
    "a program": ("a.csv", b"\x7fELF\2\1\1\0" + b"\x80" * 500, "is not a text file; name it by what it is"),
    "numbers of C": ("a.csv", np.linspace(0.1, 0.9, 60).tobytes(), "is not a text file; name it by what it is"),
    "JSON of numbers": ("a.csv", b"[1, 2, 3]", "is JSON; write its rows as CSV"),
    "JSON of nothing": ("json.csv", b"{}", "is JSON; write its rows as CSV"),
    "JSON with a mark": ("a.csv", b"\xef\xbb\xbf[null, 1]", "is JSON; write its rows as CSV"),
    "half a gzip": ("a.csv.gz", gzip.compress(b"x,y\n" * 999)[:30], "damaged, cut short, or of another kind"),
    "a workbook that is none": ("a.xlsx", b"PK\3\4 not really", "no workbook, or it is damaged"),
    "a web page": ("a.csv", b"<!DOCTYPE html>\n<html><body>404</body></html>\n", "is a web page"),
    "a PDF": ("a.csv", b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", "is a PDF; export the table itself"),
    "JSON of objects": ("a.csv", b'[{"x": 1, "y": 2},\n {"x": 3, "y": 4}]', "is JSON; write its rows as CSV"),
    "JSON of lists": ("a.txt", b"[[1, 2],\n [3, 4]]", "is JSON; write its rows as CSV"),
    "a workbook called CSV": ("a.csv", b"PK\3\4" + bytes(99), "is a workbook or an archive; let its name end in .xlsx"),
    "an old workbook called CSV": ("a.csv", b"\xd0\xcf\x11\xe0\xa1" + bytes(99), "is an old workbook; .* .xls"),
    "a gzip called CSV": ("a.csv", gzip.compress(b"x,y\n1,2\n"), "is compressed by gzip; let its name end in .csv.gz"),
    "text called a gzip": ("a.csv.gz", b"x,y\n1,2\n", "cannot read .* gzip"),
    "Parquet called CSV": ("a.csv", b"PAR1\x15\4\x15" + bytes(99), "is Parquet; let its name end in .parquet"),
    "an array called text": ("a.txt", b"\x93NUMPY\1\0v\0{'descr'", "is an array of NumPy; let its name end in .npy"),
    "HDF5 called data": ("a.dat", b"\x89HDF\r\n\x1a\n" + bytes(99), "is HDF5; if it holds single cells"),
    "ARFF": ("a.arff", b"@RELATION x\n@attribute a numeric\n@data\n1\n2\n", "is ARFF; write its rows as CSV"),
    "bytes of anything": ("a.csv", bytes(range(256)) * 8, "is not a text file; name it by what it is"),
    "a sentence below the table": ("a.csv", b"x,y\n1,2\n3,4\n5,6\nmade on Monday\n", "line 5 of .* has 1 cell, but"),
    "a second table below": ("a.csv", b"x,y,z\n1,2,3\n4,5,6\n7,8,9\n\nu,v\n1,2\n", "line 6 of .* has 2 cells, but"),
    "an archive": ("a.zip", b"PK\3\4", "an archive; unpack it first"),
    "a pickle": ("a.pkl", b"\x80\4.", "may run code when it is read"),
}


@pytest.mark.parametrize("name", READ)
def test_files_that_are_read(name: str, tmp_path: Path) -> None:
    file, content, wanted = READ[name]
    (tmp_path / file).write_bytes(content)
    table = read_table(tmp_path / file)
    for column, values in wanted.items():
        if isinstance(values[0], str):
            assert table.columns[column].tolist() == values
        else:
            np.testing.assert_array_equal(table.columns[column], np.array(values, dtype=float))


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(name: str, tmp_path: Path) -> None:
    file, content, words = REFUSED[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidDataError, match=words):
        read_table(tmp_path / file)


def test_names_of_large_files_are_decoded_as_those_of_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("prinfold.cli.tables.delimited._ARROW_FROM_BYTES", 0)
    for body in ("1.5,a\n2.5,b\n", "1.5,Köln\n2.5,b\n"):
        (tmp_path / "a.csv").write_bytes(f"Größe µm,Ort\n{body}".encode("cp1252"))
        for large in (10**9, 1):
            monkeypatch.setattr(sampling, "LARGE_TEXT", large)
            table = read_table(tmp_path / "a.csv", Reading(draw=None if large > 1 else Draw(10, 0)))
            assert table.measured == ("Größe µm", "Ort")
            assert table.columns["Ort"].tolist() == [line.split(",")[1] for line in body.splitlines()]
            assert table.notes == ("the file is not in UTF-8; it was read as Windows-1252 (western European)",)
            assert table.lines is None  # by Arrow


def test_names_of_rows_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,y\na,1,2\nb,3,4\n")
    assert read_table(tmp_path / "a.csv").notes == (
        "the first column has no name, and was taken for the names of rows",
    )


def test_lines_that_are_left_out_are_noted_and_rows_keep_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"Run 7\n\nx,y\nmm,s\n1,2\n3,4\n5,6\n"
    notes = ("1 line above the table was left out", "line 4 holds units, such as 'mm', and was left out")
    (tmp_path / "a.csv").write_bytes(text)
    table = read_table(tmp_path / "a.csv")
    assert table.notes == notes
    monkeypatch.setattr("prinfold.cli.tables.delimited._ARROW_FROM_BYTES", 0)
    by_arrow = read_table(tmp_path / "a.csv")
    assert by_arrow.notes == notes
    np.testing.assert_array_equal(by_arrow.columns["y"], table.columns["y"])
    (tmp_path / "b.csv").write_bytes(text + b"7,8,9\n")
    with pytest.raises(InvalidDataError, match=r"line 8 of .* has 3 cells"):
        read_table(tmp_path / "b.csv")


@pytest.mark.parametrize(("units", "scaling"), [("mm,mm", "raw"), ("[mm],[mm]", "raw"), ("mm,kg", "standardize")])
def test_units_below_the_names_tell_of_one_scale(units: str, scaling: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"x,y\n{units}\n1,200\n2,700\n3,100\n")
    table = read_table(tmp_path / "a.csv")
    matrix, spoken = np.stack([*table.columns.values()], axis=1), table.with_units(["x", "y"])
    assert choose_scaling(None, matrix, ["x", "y"], spoken=spoken)[0].name == scaling


def test_a_word_in_the_first_row_is_no_unit_where_numbers_stand_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,y\n?!,2\n" + b"1,2\n3,4\n" * 20)
    with pytest.raises(InvalidDataError, match=r"holds numbers, but '\?!' in line 2"):
        choose_columns(read_table(tmp_path / "a.csv"), [], [], [])


def test_decimal_commas_are_noted_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x;y;z\n1,5;2,5;3,5\n2,5;3,5;4,5\n")
    table = read_table(tmp_path / "a.csv")
    assert table.notes == ("commas within numbers were read as decimal points",)


@pytest.mark.parametrize(
    ("row", "note"),
    [
        ("1.5D+00,2.5D+00,a\n", "exponents after a D, as Fortran writes them, were read as powers of ten"),
        ("(1.5),(2.5),a\n7,8,b\n", "numbers in brackets were read as negative"),
    ],
)
def test_numbers_of_fortran_and_of_accountants_are_noted_once(row: str, note: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,place\n" + row * 9)
    table = read_table(tmp_path / "a.csv")
    assert table.notes == (note,)
    assert [table.is_number(name) for name in table.columns] == [True, True, False]


def test_twenty_thousand_columns(tmp_path: Path) -> None:
    names = [f"a long name of gene {j}" for j in range(20_000)]
    lines = [",".join(names), *(",".join([str(i)] * len(names)) for i in (1, 2))]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    table = read_table(tmp_path / "wide.csv")
    assert list(table.columns) == names
    np.testing.assert_array_equal(table.columns[names[-1]], [1, 2])


def test_four_times_as_many_columns_take_no_sixteen_times_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading 20 000 columns by Arrow took 20 s of processor time, as each was taken out of a table of the others."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("prinfold.cli.tables.delimited._ARROW_FROM_BYTES", 0)
    seconds = []
    for width in (2500, 10_000):
        lines = [",".join(f"g{j}" for j in range(width)), *(",".join([f"{i}.5"] * width) for i in (1, 2))]
        (tmp_path / "wide.csv").write_text("\n".join(lines))
        begin = process_time()
        table = read_table(tmp_path / "wide.csv")
        chosen = choose_columns(table, [], [], []).names
        assert name_columns(table, chosen) == columns_to_keep(table, chosen, []) == []
        seconds.append(process_time() - begin)
    assert len(table.columns) == 10_000
    assert table.lines is None  # by Arrow
    assert seconds[1] < 8 * seconds[0]


def test_thousands_that_may_be_decimals_are_refused_where_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'x,y\n1,"1,234"\n2,"5,678"\n3,"7,222"\n')
    table = read_table(tmp_path / "a.csv")
    with pytest.raises(InvalidDataError, match=r"may be 1234 or 1\.234; .*--decimal point or --decimal comma"):
        choose_columns(table, [], [], [])
    meant = read_table(tmp_path / "a.csv", Reading(decimal=","))
    np.testing.assert_array_equal(meant.columns["y"], [1.234, 5.678, 7.222])


@pytest.mark.parametrize(("cells", "other"), [("1.200 €", "3"), ("1.200", "0,5")])
def test_points_that_may_part_thousands_are_refused_where_they_are_used(cells: str, other: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"x;y\n{cells};{other}\n{cells.replace('2', '3')};7,5\n", encoding="utf-8")
    with pytest.raises(InvalidDataError, match=r"may be 1200 or 1\.200; .*--decimal point or --decimal comma"):
        choose_columns(read_table(tmp_path / "a.csv"), [], [], [])
    meant = read_table(tmp_path / "a.csv", Reading(decimal=","))
    np.testing.assert_array_equal(meant.columns["x"], [1200, 1300])


def test_points_before_decimals_are_read_beside_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1.200;0,5\n0.25;7,5\n", encoding="utf-8")
    np.testing.assert_array_equal(read_table(tmp_path / "a.csv").columns["x"], [1.2, 0.25])


def test_the_example_of_a_note_has_the_marks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1.200;a\n1.234.567;b\n", encoding="utf-8")
    (note,) = read_table(tmp_path / "a.csv").notes
    assert note == "x holds numbers such as '1.234.567': points were taken as marks of thousands"


def test_ids_and_units_are_named(tmp_path: Path) -> None:
    lines = [f"{10_000 + 7 * i},{i % 5}.{i % 3} kg,{np.sin(i):.3f}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["sample_id,mass,x", *lines]))
    table = read_table(tmp_path / "a.csv")
    found = choose_columns(table, [], [], [])
    words = " ".join(found.in_words())
    assert "mass" in dict(found.left_out)
    assert "sample_id" in words


@pytest.mark.parametrize(
    ("name", "numbers", "reason"),
    [
        ("patientid", lambda i: 10_000 + i * 7919 % 90_001, "an id, by its name and its numbers"),
        ("zip", lambda i: 1000 + i % 7, "numbers of places, by its name"),
        ("day", lambda i: 20_240_101 + i % 28, "dates that are written as numbers"),
        ("fluid", lambda i: 10_000 + i * 7919 % 90_001, None),
        ("mass", lambda i: 20_240_001 + i, None),
    ],
)
def test_whole_numbers_that_measure_nothing_are_left_out(
    name: str, numbers: Callable[[int], int], reason: str | None, tmp_path: Path
) -> None:
    lines = [f"{numbers(i)},{np.sin(i):.3f},{np.cos(i):.3f}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join([f"{name},x,y", *lines]))
    assert dict(choose_columns(read_table(tmp_path / "a.csv"), [], [], []).left_out).get(name) == reason


def test_numbers_that_may_stand_for_missing_cells_are_noted(tmp_path: Path) -> None:
    lines = [f"{-999 if i % 5 == 0 else np.sin(i):.3f},{np.cos(i):.3f},{i * 37 % 1000}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y,z", *lines]))
    (note,) = choose_columns(read_table(tmp_path / "a.csv"), [], [], []).cautions
    assert note == "x is -999 in 8 rows, far from all others: if it stands for missing cells, --na=-999"
    told = read_table(tmp_path / "a.csv", Reading(missing=("-999",)))
    assert np.isnan(told.columns["x"]).sum() == 8


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_columns_of_arrow(ending: str, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, np.nan, 3.0], "n": [1, 2, 3], "kind": ["a", None, "b"]})
    path = tmp_path / f"a.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    table = read_table(path)
    np.testing.assert_array_equal(table.columns["x"], [1.5, NAN, 3.0])
    np.testing.assert_array_equal(table.columns["n"], [1, 2, 3])


def test_columns_of_parquet_that_are_large_or_called_the_same(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array([2**60 + 1, None]), arrow.array([1.5, 2.5]), arrow.array([3.5, 4.5])]
    parquet.write_table(arrow.table(columns, names=["n", "x", "x"]), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table.columns["n"], [2.0**60, NAN])
    np.testing.assert_array_equal(table.columns["x (2)"], [3.5, 4.5])


def test_an_embedding_of_cells_has_its_own_scale(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.ones((4, 2)))
    cells.obsm["X_pca"] = np.array([[100.0, 0.1], [-100.0, 0.2], [50.0, 0.1], [-50.0, 0.3]])
    cells.write_h5ad(tmp_path / "cells.h5ad")
    table = read_table(tmp_path / "cells.h5ad", Reading(array="X_pca"))
    assert table.embedding
    assert choose_scaling(None, cells.obsm["X_pca"], list(table.measured), embedding=True)[0].name == "raw"


def test_a_sheet_of_a_workbook(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Data")
    sheet["B2"] = "Measured on Monday"
    cells = [["id", "width", "share", "when"], ["a", 1.5, "12%", date(2020, 1, 2)], ["b", 2, "13%", None]]
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            sheet.cell(4 + i, 2 + j, cell)
    book.save(tmp_path / "book.xlsx")
    table = read_table(tmp_path / "book.xlsx")
    np.testing.assert_array_equal(table.columns["width"], [1.5, 2.0])
    np.testing.assert_array_equal(table.columns["share"], [12.0, 13.0])
    assert table.columns["when"].tolist() == ["2020-01-02", ""]
    assert table.notes[:2] == (
        "the table is sheet 'Data'; --array takes Sheet instead",
        "1 row above the table was left out",
    )
    with pytest.raises(InvalidDataError, match="has no sheet 'Other'; --array takes Sheet, Data"):
        read_table(tmp_path / "book.xlsx", Reading(array="Other"))


def test_a_sheet_without_names(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ([5.1, 3.5, "a"], [4.9, 3, "a"], [4.8, 2, "b"]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    np.testing.assert_array_equal(read_table(tmp_path / "book.xlsx").columns["column 1"], [5.1, 4.9, 4.8])


SHEETS = {
    "units": ([["x", "y"], ["mm", "kg"], [1, 2.5], [3, 4], [5, 6]], {"x": [1, 3, 5], "y": [2.5, 4, 6]}),
    "a title of two cells": ([["Run", 7], ["x", "y", "k"], [1, 2, "a"], [3, 4, "b"]], {"x": [1, 3], "y": [2, 4]}),
    "merged names": (
        [["force", None, "place"], ["left", "right", None], [1, 2, 3], [4, 5, 6]],
        {"force left": [1, 4], "force right": [2, 5], "place": [3, 6]},
    ),
    "a name that is missing": ([["x", None, "z"], [1, 2, 5], [3, 4, 6]], {"x": [1, 3], "column 2": [2, 4]}),
}


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_with_more_than_names_above(name: str, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    hidden = book.active
    hidden.append(["a"])
    hidden.append([1])
    hidden.append([2])
    hidden.sheet_state = "hidden"
    sheet = book.create_sheet("Data")
    rows, wanted = SHEETS[name]
    for row in rows:
        sheet.append(row)
    book.active = sheet
    book.save(tmp_path / "book.xlsx")
    table = read_table(tmp_path / "book.xlsx")
    for column, values in wanted.items():
        np.testing.assert_array_equal(table.columns[column], values)


def test_a_sheet_of_notes_is_passed_over(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Measured in 2024", "by Ann"])
    sheet = book.create_sheet("Data")
    for row in (["x", "y"], [0, 1.5], [0, 2.5]):
        sheet.append(row)
    book.save(tmp_path / "book.xlsx")
    table = read_table(tmp_path / "book.xlsx")
    np.testing.assert_array_equal(table.columns["y"], [1.5, 2.5])
    assert table.notes == ("the table is sheet 'Data'; --array takes Sheet instead",)


def test_a_large_text_file_is_turned_into_an_arrow_file_and_drawn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from prinfold import Blocks

    X = np.random.default_rng(0).normal(size=(500, 3)).round(4)
    X[7, 1] = np.nan
    text = "\n".join(";".join("n.a." if np.isnan(v) else f"{v:.4f}".replace(".", ",") for v in row) for row in X)
    (tmp_path / "big.csv").write_text(f"a;b;b\n{text}\n")
    plain = read_table(tmp_path / "big.csv")
    monkeypatch.setattr(sampling, "LARGE_TEXT", 100)
    table = read_table(tmp_path / "big.csv", Reading(draw=Draw(100, 0)))
    assert (len(table), table.whole, list(table.columns)) == (100, 500, ["a", "b", "b (2)"])
    rows = np.vstack([np.asarray(each) for each in Blocks(str(table.rows_file), columns=list(table.columns))])
    np.testing.assert_array_equal(rows, X)
    places = Draw(100, 0).places(500)
    np.testing.assert_array_equal(table.columns["a"], plain.columns["a"][places])
    assert "commas within numbers were read as decimal points" in table.notes


def test_a_large_text_file_means_what_a_small_one_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big.csv").write_text("a,share\n" + "\n".join(f"{i},{i % 7}.5%" for i in range(200)))
    small = read_table(tmp_path / "big.csv", Reading(draw=Draw(50, 0)))
    monkeypatch.setattr(sampling, "LARGE_TEXT", 100)
    large = read_table(tmp_path / "big.csv", Reading(draw=Draw(50, 0)))
    np.testing.assert_array_equal(large.columns["share"], small.columns["share"])
    assert large.rows_file is None
