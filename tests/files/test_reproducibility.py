"""Files are the same byte for byte, but for the times of training, which stand apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prinfold import GTM, load, save
from tests.files.mutations import dismantle, forge
from tests.files.test_mutations import MANIFOLDS, NAMES, OTHERS, QUICK, fitted

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
from prinfold import save
from tests.files.test_mutations import fitted
for name in sys.argv[2:]:
    save(fitted(name), f"{sys.argv[1]}/{name}.prinfold")
"""
SOME = [
    "GTM",
    "SOM-online",
    "scaled",
    "GTM-student",
    "PPS",
    "UKR-line",
    "PrincipalCurve",
    "GTMMixture",
    "SurfaceMonitor",
]
"""Methods of every kind, with draws by chance among them."""


def extents(content: bytes) -> dict[str, tuple[int, int]]:
    """Where in a file each of its arrays lies."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    places = {name: each["data_offsets"] for name, each in header.items() if name != "__metadata__"}
    return {name: (8 + length + low, 8 + length + high) for name, (low, high) in places.items()}


def fit_elsewhere(folder: Path, names: list[str]) -> None:
    """Fit and save models in a process of their own."""
    folder.mkdir()
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *names], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("names", [SOME[:1], pytest.param(SOME, marks=pytest.mark.full)], ids=["one", "some"])
def test_two_processes_write_the_same_but_for_the_times(names: list[str], tmp_path: Path) -> None:
    for each in ("a", "b"):
        fit_elsewhere(tmp_path / each, names)
    for name in names:
        one, other = ((tmp_path / each / f"{name}.prinfold").read_bytes() for each in ("a", "b"))
        assert len(one) == len(other), name
        allowed = np.zeros(len(one), dtype=bool)
        for array, (low, high) in extents(one).items():
            allowed[low:high] = array.endswith(".history_.seconds")
        differs = np.frombuffer(one, dtype=np.uint8) != np.frombuffer(other, dtype=np.uint8)
        assert not (differs & ~allowed).any(), name


def check_saved_again(name: str, folder: Path) -> None:
    save(fitted(name), folder / "a")
    save(load(folder / "a"), folder / "b")
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name in {*QUICK, *OTHERS}])
def test_what_was_read_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    check_saved_again(name, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in MANIFOLDS if name not in QUICK and not MANIFOLDS[name].slow])
def test_so_it_is_for_all_settings(name: str, tmp_path: Path) -> None:
    check_saved_again(name, tmp_path)


@pytest.fixture(scope="module")
def model() -> Any:
    return GTM(nodes=5, basis=3, max_iter=3, tol=0).fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_times_come_back_as_they_were(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "a")
    assert load(tmp_path / "a").history_ == model.history_
    body, arrays = dismantle(tmp_path / "a")
    assert arrays["GTM.history_.seconds"].tolist() == model.history_["seconds"]
    assert str(model.history_["seconds"][0]) not in json.dumps(body)


def test_other_times_leave_the_digest_as_it_is(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "a")
    body, arrays = dismantle(tmp_path / "a")
    digest = body["digest"]
    arrays["GTM.history_.seconds"] = arrays["GTM.history_.seconds"] + 1.0
    forge(tmp_path / "b", body, arrays)
    assert body["digest"] == digest
    assert load(tmp_path / "b").history_["seconds"] == [each + 1.0 for each in model.history_["seconds"]]
