"""A browser for the pages, and small fitted models of every kind of map."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
        # A file that is saved comes from the page itself.
        assert [each for each in complaints if not each.startswith("blob:")] == []
