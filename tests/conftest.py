"""Settings that every test shares."""

from __future__ import annotations

import os

# Read when scipy is first imported; without it scikit-learn leaves out its check of array-API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# The same examples in every run, so that a red run means a changed program;
# `--hypothesis-profile=search` looks further.
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("house"), max_examples=20)
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples in the quick run, whose tests are those that are not ``full``."""
    if "not full" in config.option.markexpr and not config.getoption("hypothesis_profile", None):
        settings.load_profile("quick")
    # Until all tests are collected: what that makes stays, and looking through it again takes a quarter of the time.
    gc.disable()


def pytest_collection_finish() -> None:
    """Whatever there is by now stays to the end: the collector of garbage need not look at it again."""
    gc.freeze()
    gc.enable()


_LISTED = (Path(__file__).parent / "full_only.txt").read_text(encoding="utf-8").splitlines()
FULL_ONLY = {name: case for name, _, case in (line.partition("\t") for line in _LISTED)}
"""Test functions that take long and are left to ``make test-full``, but for the one case that stands beside the name;
``make test-times`` finds them anew."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name, _, case = item.nodeid.removesuffix("]").partition("[")
        in_browser = "browser" in getattr(item, "fixturenames", ())
        if in_browser or (name in FULL_ONLY and (not case or case != FULL_ONLY[name])):
            item.add_marker(pytest.mark.full)
    folder = os.environ.get("PRINFOLD_DATA")
    if folder and Path(folder).is_dir():
        return
    skip = pytest.mark.skip(reason="real data sets: set PRINFOLD_DATA to the folder that holds them")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread_per_worker() -> Iterator[None]:
    """Parallel workers share the cores among themselves already."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    import sys

    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ------------------------------------------------------------------------------------------------- pages in a browser

_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
_ARGUMENTS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, once for all tests of a worker."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = os.environ.get("PRINFOLD_BROWSER")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser is installed: on Debian and Ubuntu, apt install chromium")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page that was written; at the end there must be no error and no request but for the file itself."""
    opened = []

    def open_(page: Any, **context: Any) -> Any:
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(page.html, encoding="utf-8")
        tab = browser.new_page(**{"viewport": {"width": 1100, "height": 800}, **context})
        complaints: list[str] = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        tab.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
        tab.goto(path.as_uri())
        tab.wait_for_function("window.prinfold !== undefined")
        opened.append((tab, complaints))
        return tab

    yield open_
    for tab, complaints in opened:
        tab.close()
        # A file that is saved, and pictures within the page, come from the page itself.
        assert [each for each in complaints if not each.startswith(("blob:", "data:"))] == []
