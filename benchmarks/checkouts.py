"""The same fits in two checkouts of prinfold, which take turns, to see whether a change of the code costs time.

    python -m benchmarks.checkouts [../other/src] [--turns 5] [--only GTM,UKR]

Without another folder the last commit is taken, to see what a change that is not committed yet costs.
Settings are given, not left to defaults, because a default that changed is other work. Each checkout runs in a process
of its own, which is started once, warms up, and then fits when it is asked to. Processor time, least of the turns.
Objectives are printed beside, so that it can be seen that both did the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "src"

_WORKER = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import prinfold
from prinfold import GTM, PPS, UKR, KMM, SOM, DensityRidge, PrincipalCurve

rng = np.random.default_rng(0)

def sheet(n, D, noise=0.1):
    t = rng.uniform(-1, 1, (n, 2))
    A, B = rng.normal(size=(2, D)), rng.normal(size=(2, D))
    return t @ A + 0.5 * t**2 @ B + noise * rng.normal(size=(n, D))

small, middle, large = sheet(600, 10), sheet(3000, 20), sheet(20000, 20)

def noisy_circle(n):
    t = rng.uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(t), np.sin(t)] + 0.1 * rng.normal(size=(n, 2))

circle, ring = noisy_circle(1000), noisy_circle(10000)
fixed = dict(init="pca", tol=0)
fits = {
    "GTM 600 x 10": lambda: GTM(nodes=15, basis=5, max_iter=40, **fixed).fit(small),
    "GTM 3000 x 20": lambda: GTM(nodes=20, basis=7, max_iter=30, **fixed).fit(middle),
    "GTM 20000 x 20": lambda: GTM(nodes=30, basis=10, max_iter=15, **fixed).fit(large),
    "GTM transform 20000 x 20": lambda: fitted.transform(large),
    "GTM score_samples 20000 x 20": lambda: fitted.score_samples(large),
    "PPS 600 x 10": lambda: PPS(nodes=12, basis=4, max_iter=20, tol=0, **PPS_START).fit(small),
    "PPS 3000 x 20": lambda: PPS(nodes=15, basis=5, max_iter=20, tol=0, **PPS_START).fit(middle),
    "SOM 3000 x 20": lambda: SOM(nodes=20, max_iter=20, **SOM_START).fit(middle),
    "UKR 600 x 10": lambda: UKR(init="pca", max_iter=30, tol=0, **UKR_STOP).fit(small),
    "KMM 600 x 10": lambda: KMM(init="pca", max_iter=20, tol=0).fit(small),
    "DensityRidge 1000 x 2": lambda: DensityRidge(bandwidth=0.2, **RIDGE).fit(circle),
    "DensityRidge 10000 x 2": lambda: DensityRidge(bandwidth=0.1, **RIDGE).fit(ring),
    "PrincipalCurve 600 x 10": lambda: PrincipalCurve(max_iter=10, tol=0).fit(small),
}
has = lambda cls: cls().get_params()
PPS_START = {"init": "pca", "trainer": "paper", "clamping": 0.7}
SOM_START = {"init": "pca"} if "init" in has(SOM) else {}
UKR_STOP = {"stop": "minimum"} if "stop" in has(UKR) else {}
RIDGE = {"min_support": 0} if "min_support" in has(DensityRidge) else {}
fitted = GTM(nodes=30, basis=10, max_iter=10, **fixed).fit(large)
for line in sys.stdin:
    name = line.strip()
    if name == "?":
        print(json.dumps(list(fits)), flush=True)
        continue
    try:
        clock = time.process_time()
        model = fits[name]()
        seconds = time.process_time() - clock
        history = getattr(model, "history_", {})
        key = "objective" if "objective" in history else next(iter(history), None)
        values = history.get(key) if key else None
        said = f"{values[-1]:.10g}" if values is not None and len(values) else ""
        print(json.dumps([seconds, said]), flush=True)
    except Exception as error:
        print(json.dumps([float("nan"), f"{type(error).__name__}: {error}"[:60]]), flush=True)
"""


class Checkout:
    """A process that fits with the package of one folder."""

    def __init__(self, folder: Path) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "PYTHONPATH": str(folder)},
        )

    def ask(self, question: str) -> list[Any]:
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "other", type=Path, nargs="?", help="the src folder of another checkout; the last commit without it"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="beginnings of names, with commas between")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = options.other or last_commit(Path(folder))
        compare(other.resolve(), options.turns, tuple(options.only.split(",")))


def last_commit(folder: Path) -> Path:
    """The src folder of the last commit, unpacked in a folder."""
    packed = subprocess.run(
        ["git", "archive", "HEAD", "src"], cwd=HERE.parent, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    return folder / "src"


def compare(other: Path, turns: int, wanted: tuple[str, ...]) -> None:
    new, old = Checkout(HERE), Checkout(other)
    print(f"{'':28}{'here':>10}{'other':>10}{'ratio':>8}   last objective, here and there")
    for name in new.ask("?"):
        if not name.startswith(wanted):
            continue
        answers = [(new.ask(name), old.ask(name)) for _ in range(turns + 1)][1:]
        here, there = (min(each[side][0] for each in answers) for side in (0, 1))
        said = [answers[-1][side][1] for side in (0, 1)]
        print(f"{name:28}{here:9.3f}s{there:9.3f}s{here / there:8.2f}   {'   '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
