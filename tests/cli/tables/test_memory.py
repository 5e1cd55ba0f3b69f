"""What large arrays took goes back to the system, and not to a heap that keeps it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from prinfold.cli.tables import memory

FREED = """
import numpy as np
from prinfold.cli.tables.memory import save_memory
{begin}
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
for _ in range(2):  # glibc keeps what it is given back after the first time
    arrays = [np.ones(2**21) for _ in range(8)]  # 17 MB each
    before = resident()
    last = arrays.pop()
    del arrays
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back what is freed by themselves")
def test_large_arrays_are_given_back_when_they_are_freed() -> None:
    def freed(begin: str) -> float:
        call = [sys.executable, "-c", FREED.format(begin=begin)]
        return float(subprocess.run(call, capture_output=True, text=True, check=True).stdout)

    assert freed("save_memory()") > 100
    assert freed("") < 20, "or there is nothing to save any more"


def test_where_the_c_library_has_no_such_function_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(memory, "_c_function", lambda name: None)
    memory.save_memory()
    memory.release_memory()


@pytest.mark.parametrize("error", [OSError, TypeError])
def test_where_there_is_no_c_library_it_has_no_function(error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: object) -> None:
        raise error

    monkeypatch.setattr(memory.ctypes, "CDLL", refuse)
    assert memory._c_function("mallopt") is None


WIDE = """
import sys
import numpy as np
from prinfold.cli import main
from prinfold.cli.tables import sampling

def fit(n_columns, noise):
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, (1500, 2))
    X = np.stack([*t.T, np.sin(3 * t[:, 0])], axis=1) @ rng.normal(size=(3, n_columns))
    X += noise * rng.normal(size=X.shape)
    names = ",".join(f"v{j}" for j in range(n_columns))
    np.savetxt(file, X, delimiter=",", fmt="%.8f", header=names, comments="")
    assert main(["fit", file, "--raw", "--set", "max_iter=3", "--quiet", "--force"]) == 0

def peak():
    status = open("/proc/self/status").read().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))

file = sys.argv[1]
sampling.LARGE_TEXT = 10**4  # as a large file
fit(3, 0.01)  # loads whatever a fit loads
before = peak()
fit(400, 0.02)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how much memory there was at most")
def test_a_large_file_of_many_columns_is_fitted_in_little_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.csv")
    call = [sys.executable, "-c", WIDE, str(tmp_path / "wide.csv")]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 200, "the points between the nodes, say, are in memory several times"
