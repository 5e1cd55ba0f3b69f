"""What pages about a fitted model cost: seconds and size by rows, and how long a browser takes for each frame.

Run with ``python -m benchmarks.pages``; ``--full`` goes on to 50 000 rows, ``--frames`` opens the largest page in
headless Chromium and moves over it. The fit itself is not counted.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from prinfold import GTM, datasets, explore, report

SIZES = (500, 2000, 8000)
FULL = (*SIZES, 50_000)
SCREEN = 1000.0 / 60.0
"""Milliseconds between two pictures of a common screen."""

FRAMES = """([kind, frames]) => new Promise((done) => {
  const canvas = document.querySelector(".pf-map canvas:last-child");
  const box = canvas.getBoundingClientRect();
  const deltas = [];
  const work = [];
  let last = null;
  const step = (now) => {
    if (last !== null) deltas.push(now - last), work.push(performance.now() - now);
    last = now;
    if (deltas.length >= frames) return done([deltas, work]);
    const t = deltas.length / frames;
    const [x, y] = [0.5 + 0.3 * Math.cos(9 * t), 0.5 + 0.3 * Math.sin(7 * t)];
    const at = { clientX: box.x + box.width * x, clientY: box.y + box.height * y };
    const wheel = new WheelEvent("wheel", { ...at, deltaY: t < 0.5 ? -12 : 12, cancelable: true });
    canvas.dispatchEvent(kind === "zoom" ? wheel : new PointerEvent("pointermove", at));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
"""One event for each frame: the time from each to the next, and what the page computed in it."""


def timed(make: Callable[..., str], *what: object) -> tuple[float, float]:
    """Seconds, and megabytes of the text."""
    start = perf_counter()
    text = make(*what)
    return perf_counter() - start, len(text.encode()) / 1e6


def fitted(n: int) -> tuple[GTM, Any]:
    data = datasets.make_pipe_flow(n, rng=0)
    return GTM(nodes=20, basis=8, max_iter=20, tol=0.0, random_state=0).fit(data.X), data


def frames(n: int, count: int = 120) -> None:
    """How long each frame takes while the map is moved, magnified, hovered over, and moved with rows selected."""
    from playwright.sync_api import sync_playwright

    model, data = fitted(n)
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    print(
        f"{n} rows, ms per frame beside the {SCREEN:.1f} of a screen; of it script, for the quickest quarter and half"
    )
    print(f"{'':>14}  median  95 %  worst   quarter    half")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "map.html"
        explore(model, data.X, path, labels=data.names)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1280, "height": 860})
        tab.goto(path.as_uri())
        box = tab.locator(".pf-map").bounding_box()
        tab.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"])
        for kind in ("hover", "zoom", "pan", "pan, selected"):
            if kind == "pan, selected":
                tab.evaluate(f"window.prinfold.select(Array.from({{ length: {n} }}, (_, i) => i).filter((i) => i % 3))")
            if kind.startswith("pan"):
                tab.mouse.down()
            deltas, work = np.array(tab.evaluate(FRAMES, [kind, count]))
            if kind.startswith("pan"):
                tab.mouse.up()
            high, own = np.quantile(deltas, 0.95), np.quantile(work, [0.25, 0.5])
            print(
                f"{kind:>14}  {np.median(deltas):6.1f}  {high:4.1f}  {deltas.max():5.1f}  {own[0]:8.1f}  {own[1]:6.1f}"
            )
        browser.close()


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    if "--frames" in arguments:
        for n in (8000, 50_000):
            frames(n)
        return
    kinds: dict[str, Callable[..., str]] = {
        "summary": lambda model, X, names: model._repr_html_(),
        "explorer": lambda model, X, names: explore(model, X, None, labels=names).html,
        "report": lambda model, X, names: report(model, X, None, labels=names).html,
    }
    print(f"{'rows':>7}  " + "  ".join(f"{kind + ', s':>11}  {'MB':>6}" for kind in kinds))
    for n in FULL if "--full" in arguments else SIZES:
        model, data = fitted(n)
        found = [timed(kind, model, data.X, data.names) for kind in kinds.values()]
        print(f"{n:>7}  " + "  ".join(f"{seconds:>11.2f}  {size:>6.2f}" for seconds, size in found))


if __name__ == "__main__":
    main(sys.argv[1:])
