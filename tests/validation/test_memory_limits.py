"""Work for which there is no memory is refused before it begins, with the setting to change."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import GTM, UKR, GTMMixture, GTMSequence, PolygonalCurve, ProbabilisticCurve, SurfaceMonitor, datasets
from prinfold.exceptions import Advice, InvalidParameterError, NotEnoughMemoryError
from prinfold.validation import memory_limits
from prinfold.validation.memory_limits import available_memory, require_memory

X = np.random.default_rng(0).normal(size=(40, 3)) * [3, 1, 0.2]
GIB = 2.0**30

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 1.0 * GIB)


def test_what_fits_is_allowed_and_what_does_not_is_refused_with_both_sizes(small_machine):
    require_memory("a table", GIB / 8, Advice("nodes"))
    with pytest.raises(NotEnoughMemoryError, match="about 2 GiB of memory, and there are 1 GiB left; set nodes"):
        require_memory("a table", GIB / 4, Advice("nodes"))


def test_small_work_does_not_ask(monkeypatch):
    monkeypatch.setattr(memory_limits, "available_memory", lambda: pytest.fail("asked"))
    require_memory("a table", 1000, Advice("nodes"))


def test_available_memory_is_the_least_of_machine_and_group(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   4096 kB\n", encoding="ascii")
    monkeypatch.setattr(memory_limits, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory_limits, "_CGROUP", tmp_path)
    assert available_memory() == 4096 * 1024
    for name, text in (("max", "3000\n"), ("current", "2500\n"), ("stat", "anon 2000\ninactive_file 100\n")):
        (tmp_path / f"memory.{name}").write_text(text, encoding="ascii")
    assert available_memory() == 600
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert available_memory() == 4096 * 1024


@pytest.mark.parametrize(
    ("told", "folder", "files"),
    [
        ("0::/batch/job\n", "batch", {"max": "3000", "current": "2500", "stat": "inactive_file 100"}),
        ("0::/batch/job\n", "batch/job", {"max": "3000", "current": "2500", "stat": "inactive_file 100"}),
        (
            "4:cpu,memory:/batch\n3:cpu:/x\n0::/\n",
            "memory/batch",
            {"limit_in_bytes": "3000", "usage_in_bytes": "2500", "stat": "total_inactive_file 100"},
        ),
        (
            "0::/../out of sight\n",
            "memory",
            {"limit_in_bytes": "3000", "usage_in_bytes": "2500", "stat": "total_inactive_file 100"},
        ),
    ],
    ids=["above", "own", "first version", "container"],
)
def test_limits_of_any_group_that_holds_the_process_count(monkeypatch, tmp_path, told, folder, files):
    monkeypatch.setattr(memory_limits, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory_limits, "_OWN_CGROUPS", tmp_path / "told")
    (tmp_path / "told").write_text(told, encoding="ascii")
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    assert available_memory() > 600
    for name, text in files.items():
        (tmp_path / folder / f"memory.{name}").write_text(text, encoding="ascii")
    assert available_memory() == 600


def test_a_limit_of_the_address_space_counts(monkeypatch, tmp_path):
    resource = pytest.importorskip("resource", reason="Windows has no such limits")
    monkeypatch.setattr(memory_limits, "_SIZES", tmp_path / "statm")
    (tmp_path / "statm").write_text("3 1 1\n", encoding="ascii")
    page = resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10 * page, resource.RLIM_INFINITY))
    assert available_memory() == 7 * page
    (tmp_path / "statm").write_text("30 1 1\n", encoding="ascii")
    assert available_memory() == 0


def test_on_other_machines_all_memory_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(memory_limits, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(memory_limits, "_CGROUP", tmp_path)
    monkeypatch.setattr(
        memory_limits.os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False
    )
    assert available_memory() == 40960
    monkeypatch.delattr(memory_limits.os, "sysconf")
    assert available_memory() == np.inf


@pytest.mark.parametrize("model", [GTM(nodes=1500), GTMSequence(nodes=1500)], ids=lambda model: type(model).__name__)
def test_a_map_of_too_many_nodes_is_refused_before_training(small_machine, model):
    with pytest.raises(NotEnoughMemoryError, match=r"2250000 nodes .* GiB.*; use fewer nodes"):
        model.fit(X)


@pytest.mark.parametrize("n", [10**12, 10**400], ids=["12", "400"])
@pytest.mark.parametrize(
    "model",
    [GTM(max_iter=1), GTMMixture(max_iter=1), GTMSequence(max_iter=1), UKR(max_iter=1), ProbabilisticCurve(max_iter=1)],
    ids=lambda model: type(model).__name__,
)
def test_too_many_rows_are_not_drawn(model, n):
    with pytest.raises(NotEnoughMemoryError, match=r"rows would take about .* of memory.*; lower n"):
        model.fit(X).sample(n)


def test_too_many_rows_are_not_simulated():
    for n in (100_001, 10**12, 10**400):
        with pytest.raises(InvalidParameterError, match="n_simulated must be a whole number from 1 to 100000, got"):
            SurfaceMonitor(n_simulated=n).fit(X)
    with pytest.raises(NotEnoughMemoryError, match="lower n_samples"):
        datasets.make_spiral(10**13)
    with pytest.raises(InvalidParameterError, match="n must be a whole number"):
        GTM(max_iter=1).fit(X).sample(1.5)


@pytest.mark.parametrize("length", [None, 3.0])
def test_a_line_has_no_more_segments_than_rows(length):
    model = PolygonalCurve(n_segments=10**9, length=length, max_iter=400).fit(X[:12])
    assert model.n_segments_ <= 12
