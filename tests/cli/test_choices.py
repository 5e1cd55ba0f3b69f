"""What ``fit`` thinks of columns that may be no measurements, of several arrays, and of dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import prinfold
from prinfold.cli.methods import make_model
from prinfold.cli.tables.columns import choose_columns
from prinfold.cli.tables.reading import FileTable
from prinfold.cli.usage import WrongCallError
from tests.cli.conftest import QUICK, Said, made, numbers

Call = Callable[..., Said]


def whole(**columns: list) -> FileTable:
    n = 30
    rng = np.random.default_rng(0)
    return made(x=list(rng.normal(size=n)), y=list(rng.normal(size=n)), z=list(rng.normal(size=n)), **columns)


@pytest.mark.parametrize(
    ("values", "caution"),
    [
        ([i % 3 for i in range(30)], "k takes the values 0, 1, 2 only, and may be a class of each row"),
        ([1000 + 3 * i for i in range(30)], "k is a different whole number in each row, and may be an id"),
        (np.random.default_rng(1).permutation(30).tolist(), "k is a different whole number in each row"),
        ([i % 3 + 0.5 for i in range(30)], None),
        ([(7 * i) % 29 for i in range(30)], None),
    ],
)
def test_whole_numbers_may_be_classes_or_ids(values: list[float], caution: str | None) -> None:
    chosen = choose_columns(whole(k=values), [], [], [])
    assert chosen.names == ("x", "y", "z", "k")
    if caution is None:
        assert chosen.cautions == ()
        return
    (said,) = chosen.cautions
    assert said.startswith(caution)
    assert said.endswith("--drop k leaves it out")
    assert choose_columns(whole(k=values), ["x", "k"], [], []).cautions == ()


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("Asset ID", [100_000 + i for i in range(30)], "an id, by its name and its numbers"),
        ("sampleId", np.random.default_rng(0).permutation(1000)[:30].tolist(), "an id, by its name and its numbers"),
        ("id", [i % 3 for i in range(30)], None),
        ("id", [i + 0.5 for i in range(30)], None),
        ("humidity", [1000 + 3 * i for i in range(30)], None),
        ("day", [f"2026-01-{1 + i % 28:02d}" for i in range(30)], "dates"),
    ],
)
def test_columns_that_are_called_ids_and_dates_are_left_out(name: str, values: list, reason: str | None) -> None:
    chosen = choose_columns(whole(**{name: values}), [], [], [])
    assert dict(chosen.left_out) == ({} if reason is None else {name: reason})
    if "ID" in name:  # asked for, it is used
        assert choose_columns(whole(**{name: values}), [name, "x"], [], []).names == (name, "x")


def test_a_table_of_whole_numbers_is_one() -> None:
    """Answers to questions, or pixels: nobody needs to be told of each."""
    answers = {f"q{j}": [(i * j) % 5 for i in range(30)] for j in range(1, 5)}
    assert choose_columns(whole(**answers), [], [], []).cautions == ()


def test_a_caution_can_be_followed(folder: Path, call: Call) -> None:
    X = numbers(30)
    rows = [f"{i % 3},{row[0]:.4f},{row[1]:.4f},{row[2]:.4f}" for i, row in enumerate(X)]
    (folder / "data.csv").write_text("\n".join(["kind of,a,b,c", *rows]))
    (note,) = [note for note in call("fit", "data.csv", "--json", *QUICK).json["notes"] if "class" in note]
    option = re.findall(r"(--label|--drop) ('[^']*')", note)
    assert option == [("--label", "'kind of'"), ("--drop", "'kind of'")]
    for name, value in option:
        found = call("fit", "data.csv", name, value.strip("'"), "--force", "--json", *QUICK).json
        assert found["columns"] == ["a", "b", "c"]
        assert not [note for note in found["notes"] if "class" in note]


def test_of_several_arrays_it_is_said_which(folder: Path, call: Call) -> None:
    np.savez("xy.npz", X=numbers(30), y=np.arange(30) % 3)
    said = call("fit", "xy.npz", *QUICK)
    assert "note: of the arrays X, y the table is X, unless --array names another; y has a value for each" in said.out
    assert "explore xy.prinfold xy.npz --label y" in said.out
    assert not any("arrays" in note for note in call("info", "xy.npz", "--array", "X", "--json").json["notes"])


def test_a_sparse_matrix_is_filled_in_unless_it_is_too_large(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.where(numbers(30) > 0.5, numbers(30), 0.0)
    scipy.sparse.save_npz("bits.npz", scipy.sparse.csr_matrix(X))
    np.save("plain.npy", X)
    found, plain = (call("fit", name, "--json", *QUICK).json for name in ("bits.npz", "plain.npy"))
    assert "the sparse table was filled in" in found["notes"]
    assert found["columns"] == plain["columns"]
    assert (prinfold.load("bits.prinfold").weights_ == prinfold.load("plain.prinfold").weights_).all()
    monkeypatch.setattr("prinfold.cli.tables.reading._MOST_CELLS", X.size - 1)
    refused = call("fit", "bits.npz", "--force", *QUICK)
    assert refused.code == 1
    assert "a sparse table of 30 rows" in refused.err
    assert "GTM().fit(scipy.sparse.load_npz(...))" in refused.err


# ------------------------------------------------------------------------------------- methods without a dimension


class Bend:
    """A method whose surface has the dimensions that it has."""

    def __init__(self, max_iter: int = 3, verbose: int = 0) -> None:
        self.max_iter, self.verbose = max_iter, verbose


def test_dimensions_that_are_not_to_be_chosen_are_refused() -> None:
    made_of = {"width": 3, "seed": 0, "words": ["max_iter=7"], "verbose": False}
    assert make_model(Bend, dimensions=None, **made_of).max_iter == 7
    assert make_model(prinfold.PrincipalCurve, dimensions=1, **made_of).max_iter == 7
    with pytest.raises(WrongCallError, match="PrincipalCurve has 1 dimension, whatever the table; leave --dimensions"):
        make_model(prinfold.PrincipalCurve, dimensions=2, **made_of)
    with pytest.raises(WrongCallError, match="Bend has no choice of dimensions; leave --dimensions out"):
        make_model(Bend, dimensions=2, **made_of)


def test_a_mixture_has_maps_of_the_dimensions_asked_for(table: Path, call: Call) -> None:
    words = ("--method", "gtmmixture", "--set", "max_iter=2", "--set", "n_init=1", "--json")
    assert call("fit", "data.csv", "--dimensions", "1", *words).json["dimensions"] == 1
    assert [each.latent_.dimension for each in prinfold.load("data.prinfold").maps_] == [1, 1]
