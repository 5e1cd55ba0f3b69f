"""Trainers of a GTM: passes over the rows and seconds until the log-likelihood is that of a stationary point.

Part of ``streams.py``. All trainers begin with the same parameters, those that batch EM has after a few steps, because
from the very start they may unfold differently and end at different optima. After every pass the true
log-likelihood of all rows is found, at nobody's cost. What it is held against is where batch EM ends that goes on from
there: a stationary point, the trainer's own. Times are those of the processor, so that other jobs do not count.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from benchmarks.streams.reading import sheet
from benchmarks.timing import print_table

from prinfold import GTM, Blocks, Incremental, Online, datasets
from prinfold.exceptions import DataNotFoundError
from prinfold.gtm import model as gtm
from prinfold.gtm.fitting import assemble
from prinfold.gtm.node_selection import Hint

TRAINERS = {
    "batch, plain": GTM(relaxation=1.0),
    "batch, stretched": GTM(),
    "incremental, 10 blocks": GTM(trainer=Incremental(10)),
    "incremental, 50 blocks": GTM(trainer=Incremental(50)),
    "incremental, frozen": GTM(trainer=Incremental(10, freeze=0.05)),
    "online": GTM(trainer=Online()),
}
SETTLED = 1e-7
"""Change of the objective by which batch EM has come to rest."""


class Curve(NamedTuple):
    """True log-likelihood per row and seconds after every pass, and where batch EM ends from the last."""

    log_likelihood: np.ndarray
    seconds: np.ndarray
    rest: float

    def reached(self, share: float) -> int | None:
        """Passes until within a share of the stationary point."""
        near = self.log_likelihood >= self.rest - share * abs(self.rest)
        return int(near.argmax()) if near.any() else None


def rested(model: gtm.GTMModel, rows: Any, parameters: Any, most: int) -> float:
    """Log-likelihood per row at the stationary point that batch EM comes to."""
    state, before = model.begin(rows, parameters), -np.inf
    for _ in range(most):
        now = model.measure(state)["objective"]
        if now - before < SETTLED:
            break
        before, state = now, model.step(rows, state, 1.8)
    return float(model.measure(state)["log_likelihood"])


def curve(estimator: GTM, job: Any, start: Any, passes: int, most: int) -> Curve:
    """One trainer from a start."""
    model, rows = estimator._recipe().trainer.training(job.model, 0), job.rows
    spent = time.process_time()
    state = model.begin(rows, start)
    found, seconds, spent = [_score(job, state)], [0.0], time.process_time() - spent
    for _ in range(passes):
        clock = time.process_time()
        state = model.step(rows, state, estimator.relaxation)
        spent += time.process_time() - clock
        found.append(_score(job, state))
        seconds.append(spent)
    return Curve(np.array(found), np.array(seconds), rested(job.model, rows, state.parameters, most))


def _score(job: Any, state: Any) -> float:
    sums, _ = gtm.e_step(job.model, job.rows, state.parameters, Hint())
    return float(sums.log_likelihood / sums.total)


def oil_flow() -> np.ndarray | None:
    """The thesis's table, where it is there."""
    try:
        return np.asarray(datasets.load_oil_flow().X, dtype=float)
    except DataNotFoundError:
        print("the oil flow is left out: there is no folder of real data (PRINFOLD_DATA)")
        return None


class Contest(NamedTuple):
    """Rows, settings, passes of each trainer, and the most steps that batch EM may take to come to rest."""

    X: np.ndarray | None
    settings: dict[str, Any]
    passes: int
    most: int


def contests(full: bool) -> dict[str, Contest]:
    """What is trained on."""
    n, passes, most = (200_000, 15, 30) if full else (20_000, 30, 300)
    flow, large = ({"nodes": each, "basis": 6, "random_state": 0} for each in (15, 20))
    return {
        "pipe flow, 3000 × 12": Contest(datasets.make_pipe_flow(3000, rng=0).X, flow, 250, 1000),
        "oil flow, 1000 × 12": Contest(oil_flow(), flow, 250, 1000),
        f"bent sheet, {n} × 20": Contest(sheet(n, 0).astype(float), large, passes, most),
    }


def growth(full: bool) -> None:
    """The table of all trainers on all data."""
    for name, contest in contests(full).items():
        if contest.X is None:
            continue
        base = GTM(**contest.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recipe = base._recipe()
            job = assemble(recipe, contest.X)
            state = job.model.begin(job.rows, recipe.begin(recipe, job))
            for _ in range(5):
                state = job.model.step(job.rows, state)
            runs = TRAINERS.items()
            curves = {each: curve(made, job, state.parameters, contest.passes, contest.most) for each, made in runs}
        print_table(
            f"{name}: passes to a stationary point, and where that is",
            ["trainer", "to 1 %", "to 0.1 %", "seconds to 0.1 %", f"after {contest.passes}", "at rest"],
            [_row(each, found) for each, found in curves.items()],
        )


class Entrant(NamedTuple):
    """A trainer, whether it reads blocks, how many passes it makes, and how near it is to come."""

    trainer: Any
    blocks: bool
    passes: int
    share: float


ENTRANTS = {
    "batch from Blocks": Entrant("batch", True, 60, 0.001),
    "incremental": Entrant("incremental", False, 60, 0.001),
    "incremental from Blocks": Entrant("incremental", True, 60, 0.001),
    "incremental, 5 % frozen": Entrant(Incremental(10, freeze=0.05), False, 60, 0.001),
    "online": Entrant("online", False, 20, 0.01),
    "online from Blocks": Entrant("online", True, 20, 0.01),
}


def oblong(n: int, seed: int) -> np.ndarray:
    """Rows of a bent sheet with much noise, of which all trainers come to one optimum from the usual start."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    return np.stack([2 * u, v, u**2, u * v], axis=1) + 0.2 * rng.standard_normal((n, 4))


def ends(full: bool) -> None:
    """Whole fits beside batch EM where there is one optimum to come to: the largest difference over several tables."""
    settings: dict[str, Any] = {"nodes": 8, "basis": 4, "regularization": 1.0, "tol": 0.0, "random_state": 0}
    tables = [oblong(1000, seed) for seed in range(20 if full else 6)]
    apart: dict[str, list[float]] = {name: [] for name in ENTRANTS}
    for X in tables:
        batch = GTM(max_iter=300, **settings).fit(X).score(X)
        for name, entrant in ENTRANTS.items():
            model = GTM(trainer=entrant.trainer, max_iter=entrant.passes, **settings)
            found = model.fit(Blocks(X, rows=150) if entrant.blocks else X).score(X)
            apart[name].append(abs(found - batch) / abs(batch))
    print_table(
        f"{len(tables)} bent sheets, 1000 × 4: log-likelihood beside that of batch EM after 300 steps",
        ["trainer", "passes", "largest difference", "promised"],
        [
            [name, str(each.passes), f"{100 * max(apart[name]):.3f} %", f"{100 * each.share:g} %"]
            for name, each in ENTRANTS.items()
        ],
    )


def _row(name: str, found: Curve) -> list[str]:
    near, nearer = found.reached(0.01), found.reached(0.001)
    seconds = "—" if nearer is None else f"{found.seconds[nearer]:.2f}"
    shown = [f"> {len(found.seconds) - 1}" if each is None else str(each) for each in (near, nearer)]
    return [name, *shown, seconds, f"{found.log_likelihood[-1]:.3f}", f"{found.rest:.3f}"]
