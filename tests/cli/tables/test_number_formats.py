"""Numbers with marks beside or within them: read where there is one way to, refused with advice where there are two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import QUICK, Said, numbers

from prinfold.cli.tables.number_formats import MISSING, AmbiguousError, formatted_numbers, has_unit
from prinfold.cli.tables.reading import Reading, read_table

Call = Callable[..., Said]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["$1.20", "$3", "-$4.5", "NA"], [1.2, 3, -4.5, np.nan]),
        (["1.5 €", "-2 €"], [1.5, -2]),
        (["3.4%", "5 %"], [3.4, 5]),
        (["3.456%", "1.234%"], [3.456, 1.234]),
        (["1,234.5", "12"], [1234.5, 12]),
        (["1,234", "2.5"], [1234, 2.5]),
        (["1,234,567", "1,000"], [1234567, 1000]),
        (["1.234,5", "2,25"], [1234.5, 2.25]),
        (["$1,234.50", "$2"], [1234.5, 2]),
        (["(1.20)", "3", "NA"], [-1.2, 3, np.nan]),
        (["($1,234.50)", "$2"], [-1234.5, 2]),
        (["$ (4.5)", "$2"], [-4.5, 2]),
        (["(3.5%)", "2 %", "(1)%"], [-3.5, 2, -1]),
        (["(1,25)", "2,5"], [-1.25, 2.5]),
        (["1.5D+03", "-.25d-1", "2", "1.D2"], [1500, -0.025, 2, 100]),
        (["(1)", "(2)"], None),  # numbers of items
        (["(-1.5)", "2"], None),
        (["(a)", "2"], None),
        (["1D2", "3D4"], None),  # places on a plate
        (["1.5D+03 kg", "2"], None),
        (["€ 5", "$ 3"], None),
        (["3%", "0.5"], None),
        (["%5", "3%"], None),
        (["1,5", "2.5"], None),
        (["1.2 kg", "3 kg"], None),
        (["12,34,5", "1"], None),
        (["word", "$"], None),
    ],
)
def test_number_formats_that_can_be_read(cells: list[str], expected: list[float] | None) -> None:
    found = formatted_numbers(cells, MISSING)
    if expected is None:
        assert found is None
        return
    assert found is not None
    np.testing.assert_array_equal(found.numbers, expected)


@pytest.mark.parametrize("cells", [["1,234", "5"], ["$1,234", "$2"], ["-9,100"]])
def test_a_comma_that_may_be_either_is_not_guessed(cells: list[str]) -> None:
    with pytest.raises(AmbiguousError, match=cells[0].replace("$", r"\$")):
        formatted_numbers(cells, MISSING)
    plain = float(cells[0].replace("$", "").replace(",", ""))
    for decimal, factor in ((".", 1), (",", 1000)):
        found = formatted_numbers(cells, MISSING, decimal)
        assert found is not None
        assert found.numbers[0] * factor == pytest.approx(plain)


def test_a_late_cell_decides_too() -> None:
    assert formatted_numbers([*["$1"] * 60, "free"], MISSING) is None


@pytest.mark.parametrize(
    ("cell", "unit"),
    [("1.2 kg", True), ("~3", True), ("3 m/s", True), ("A12", False), ("2020-01-02", False), ("12:30", False)],
)
def test_units_are_seen(cell: str, unit: bool) -> None:
    assert has_unit(cell) is unit


def written(path: Path, name: str, cells: list[str]) -> None:
    X = numbers(len(cells))
    rows = [f"{cell}\t{row[0]:.4f}\t{row[1]:.4f}" for cell, row in zip(cells, X, strict=True)]
    path.write_text("\n".join([f"{name}\tx\ty", *rows]), encoding="utf-8")


@pytest.mark.parametrize(
    ("cells", "decimal", "column", "note"),
    [
        ([f"${i / 4:.2f}" for i in range(20)], None, np.arange(20) / 4, "the symbol $ was left out"),
        ([f"{1000 + 7 * i:,}.5" for i in range(20)], None, 1000.5 + 7 * np.arange(20), "marks of thousands"),
        ([f"{1000 + 7 * i:,}" for i in range(20)], ".", 1000 + 7.0 * np.arange(20), "marks of thousands"),
        (
            [f"{1000 + 7 * i:,}" for i in range(20)],
            ",",
            1 + 0.007 * np.arange(20),
            "commas within numbers",
        ),
        ([f"{i}.234" for i in range(1, 21)], ",", 234 + 1000.0 * np.arange(1, 21), "points were taken as marks"),
    ],
)
def test_columns_with_marks(
    cells: list[str], decimal: str | None, column: np.ndarray, note: str, tmp_path: Path
) -> None:
    written(tmp_path / "data.tsv", "n", cells)
    if decimal == ",":  # the other columns have decimal points, which then are no such thing
        (tmp_path / "data.tsv").write_text("n\n" + "\n".join(cells))
    table = read_table(tmp_path / "data.tsv", Reading(separator="tab", decimal=decimal))
    np.testing.assert_allclose(table.columns["n"], column)
    assert any(note in each for each in table.notes)


def test_a_column_that_could_be_either_stops_what_would_use_it(folder: Path, call: Call) -> None:
    written(folder / "data.tsv", "pay", [f"{2000 + i:,}" for i in range(20)])
    said = call("fit", "data.tsv")
    assert said.complaint == (
        "prinfold fit: error: column 'pay' of data.tsv holds '2,000', which may be 2000 or 2.000; set the "
        "decimal mark with --decimal point or --decimal comma, or leave the column out with --drop pay"
    )
    assert call("fit", "data.tsv", "--drop", "pay", "-q", *QUICK).code == 0
    assert call("fit", "data.tsv", "--decimal", "point", "-f", "--json", *QUICK).json["columns"] == ["pay", "x", "y"]
    placed = call("transform", "data.prinfold", "data.tsv")
    assert "which may be 2000 or 2.000; set the decimal mark with --decimal" in placed.complaint
    assert "--drop" not in placed.complaint
    assert call("transform", "data.prinfold", "data.tsv", "--decimal", "point", "-q").code == 0


def test_commas_here_and_points_there_are_said(folder: Path, call: Call) -> None:
    written(folder / "data.tsv", "n", ["1,5", *["2.5"] * 19])
    complaint = call("fit", "data.tsv").complaint
    assert "column 'n' of data.tsv has commas in some numbers and points in others, such as '1,5'" in complaint


def test_units_are_named_with_what_to_do(folder: Path, call: Call) -> None:
    written(folder / "data.tsv", "mass", [f"{i}.5 kg" for i in range(20)])
    found = call("fit", "data.tsv", "--json", *QUICK).json
    assert found["left_out"] == {
        "mass": "numbers with units or other characters, such as '0.5 kg'; write numbers alone to use it"
    }
    assert (
        "is text, such as '0.5 kg'; write the numbers alone" in call("fit", "data.tsv", "-f", "-c", "mass,x").complaint
    )


def test_new_rows_with_text_are_told_as_helpfully(model: Path, call: Call) -> None:
    lines = Path("data.csv").read_text().splitlines()
    Path("new.csv").write_text("\n".join([*lines[:5], "9,left,oops,1,2", *lines[6:]]))
    for verb in ("transform", "project"):
        assert call(verb, "data.prinfold", "new.csv").complaint.endswith(
            "column 'a' of new.csv holds numbers, but 'oops' in line 6; correct the file, call such cells missing with "
            "--na oops (the model was fitted to numbers)"
        )
    assert call("transform", "data.prinfold", "new.csv", "--na", "oops", "-q").code == 0
