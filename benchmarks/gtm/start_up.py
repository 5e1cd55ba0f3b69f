"""What a GTM costs before it computes anything: imports, the first fit of a process, memory as rows grow."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
from benchmarks.gtm.late_iterations import fit, sheet
from benchmarks.timing import clocked, peak_mb, print_table, take_turns

FIRST_FIT = """
import time, warnings
import numpy as np
from prinfold import GTM
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(300, 5))
for _ in range(2):
    clock = time.perf_counter()
    GTM(max_iter=20, tol=0).fit(X)
    print(time.perf_counter() - clock)
"""


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def bench_start_up(full: bool) -> None:
    repeats = 21 if full else 3
    programs = ("pass", "import sklearn.mixture", "from prinfold import GTM")
    runs = {program: partial(lambda program: clocked(partial(run_python, program)), program) for program in programs}
    take_turns(runs, 1)  # files into the cache
    bare, theirs, ours = (times.median for times in take_turns(runs, repeats).values())
    print(f"\n8. Import, median of {repeats} fresh processes, an empty one ({bare:.2f} s) taken off")
    print(f"  import sklearn.mixture   {theirs - bare:.2f} s")
    print(f"  from prinfold import GTM {ours - bare:.2f} s, {(ours - bare) / (theirs - bare):.2f} × (wanted ≤ 1.3)")
    pairs = np.array([[float(line) for line in run_python(FIRST_FIT).split()] for _ in range(repeats)])
    first, second = np.median(pairs, axis=0)
    print(f"  First small fit of a process (300 × 5, 20 iterations) {1e3 * first:.0f} ms, second {1e3 * second:.0f} ms")
    lines = []
    settings = {"nodes": 20, "basis": 6, "max_iter": 2}
    for n in (3000, 30_000, *((300_000, 3_000_000) if full else ())):
        X = sheet(n, 10)
        lines.append((n, X.nbytes / 1e6, peak_mb(partial(fit, X, **settings)), n * 400 * 8 / 1e6))
    print_table("   Memory of a fit beyond the data, D=10, K=400", ("rows", "data MB", "peak MB", "whole R MB"), lines)
