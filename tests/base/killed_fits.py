"""Fits that are killed at random moments and taken up again, in a process that tests start.

    python -m tests.base.killed_fits CASE FOLDER

The process imports what fits need and forks for each life of a fit: importing twenty times over would take longer than
the fits. It writes ``plain.prinfold``, of a fit that nothing interrupts, ``killed.prinfold`` and the number of kills.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from tests.properties.cases import CASES

from prinfold import GTM, PPS, Checkpoint, datasets

KILLS = 20
ITERATIONS = 40

LARGE = {"GTM-refined": lambda: GTM(random_state=0), "PPS-refined": lambda: PPS(random_state=0)}
"""Whole fits, from the contest of starts to nodes that are doubled."""

SMALL = (
    "GTM-process-evidence",
    "GTMSequence",
    "GTMSequence-circle",
    "MixedGTM",
    "GTMMixture",
    "UKR-quartic",
    "KMM",
    "SOM",
    "SOM-online",
    "DensityRidge",
    "PrincipalTree",
    "PolygonalCurve",
    "OrientedPointsCurve",
    "ProbabilisticCurve",
    "PrincipalCurve",
    "PrincipalSurface",
    "RegularizedManifold",
)
"""Cases of every other iterative method of the register."""


def model_of(name: str) -> Any:
    """The model of a case, without a checkpoint."""
    if name in LARGE:
        return LARGE[name]()
    make = next(case.make for case in CASES if case.name == name)
    seed = {"random_state": 0} if "random_state" in make().get_params() else {}
    return make(max_iter=ITERATIONS, **seed)


def rows_of(name: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows, and what ``fit`` takes beside them: sequences are longer than one."""
    X = datasets.make_pipe_flow(200 if name in LARGE else 80, rng=0).X
    return X, {"lengths": [30, 1, 49]} if name.startswith("GTMSequence") else {}


def fit(name: str, checkpoint: Path, target: Path) -> int:
    """Begin a fit in a process of its own; returns that process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        warnings.simplefilter("ignore")
        X, beside = rows_of(name)
        model_of(name).set_callbacks(Checkpoint(checkpoint, every=0)).fit(X, **beside).save(target)
        code = 0
    finally:
        os._exit(code)


def written(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def ended(child: int) -> bool:
    """Whether a process has come to its end, which must be a good one."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid and os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"a fit ended with {os.waitstatus_to_exitcode(status)}")
    return bool(pid)


def kill_at(child: int, moment: float) -> bool:
    """Kill a process at a moment; returns False where it came through before."""
    while time.perf_counter() < moment:
        if ended(child):
            return False
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def live(name: str, checkpoint: Path, target: Path, delay: float, *, after_progress: bool) -> bool:
    """One life of a fit, killed some time after it began or after its first progress; whether it was killed."""
    before, child = written(checkpoint), fit(name, checkpoint, target)
    while after_progress and written(checkpoint) == before:
        if ended(child):
            return False
        time.sleep(0.0005)
    return kill_at(child, time.perf_counter() + delay)


def main(name: str, folder: Path) -> None:
    """Fit once as it is, then under kills: every other one after some progress, so that there is an end to it."""
    began = time.perf_counter()
    child = fit(name, folder / "plain.checkpoint", folder / "plain.prinfold")
    while not ended(child):
        time.sleep(0.001)
    whole = time.perf_counter() - began
    rng, kills, checkpoint, target = np.random.default_rng(0), 0, folder / "fit.checkpoint", folder / "killed.prinfold"
    while not target.exists():
        soon = kills < KILLS
        delay = rng.exponential(0.5 * whole / ITERATIONS) if kills % 2 else rng.uniform(0, whole / 8)
        kills += live(name, checkpoint, target, delay if soon else 600.0, after_progress=soon and kills % 2 == 1)
    (folder / "kills.txt").write_text(str(kills))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
