"""Iterations late in training: the data, a fitted map to begin from, and what each part of an iteration takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from benchmarks.timing import Times, clocked, take_turns

from prinfold import GTM
from prinfold.gtm import e_step as passes
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm.noise.protocol import Posterior
from prinfold.gtm.softmax import leveled_weights
from prinfold.gtm.starts import first_parameters as starts
from prinfold.rows.rows import Rows, blas_on_one_thread

NEVER = 10**15
CYCLE = 32
"""Iterations between two renewals of the groups at the age that is measured: passes 32 to 63."""


def sheet(n: int, D: int, dtype: Any = np.float64, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    """A bent sheet about two units wide in D columns, with noise in all of them."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (n, 2))
    curved = np.column_stack([u, np.sin(2 * u[:, 0]), u[:, 0] * u[:, 1], np.cos(3 * u[:, 1])])
    frame = np.linalg.qr(rng.normal(size=(max(D, 5), 5)))[0][:D]
    return (curved @ frame.T + noise * rng.normal(size=(n, D))).astype(dtype)


def fingerprints(n: int, n_bits: int, seed: int = 0) -> scipy.sparse.csr_matrix:
    """Bits that are seldom set, more often near their own place on a sheet: about 2 in 100 of them."""
    rng = np.random.default_rng(seed)
    where, place = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (n_bits, 2))
    blocks = []
    for i in range(0, n, 2000):
        square = ((where[i : i + 2000, None] - place) ** 2).sum(axis=2)
        blocks.append(scipy.sparse.csr_matrix(rng.uniform(size=square.shape) < 0.005 + 0.3 * np.exp(-20 * square)))
    return scipy.sparse.vstack(blocks, format="csr").astype(float)


def fit(X: Any, **settings: Any) -> GTM:
    """A map of the large size unless said otherwise."""
    return GTM(**{"nodes": 30, "basis": 10, "max_iter": 3, "tol": 0, **settings}).fit(X)


@contextmanager
def switched(planned: bool = True, warm: bool = True) -> Iterator[None]:
    """Planning and the coarse warm-up as they come, or off."""
    before = pruning._PLAN_FROM, starts._WARM_UP_FROM
    pruning._PLAN_FROM = before[0] if planned else NEVER
    starts._WARM_UP_FROM = before[1] if warm else NEVER
    try:
        yield
    finally:
        pruning._PLAN_FROM, starts._WARM_UP_FROM = before


@dataclass
class Late:
    """A map that has unfolded, at the pass that renews the groups."""

    gtm: GTM
    rows: Rows
    state: gtm.GTMState

    @property
    def model(self) -> gtm.GTMModel:
        return self.gtm._model

    def steps(self, n: int, planned: bool) -> list[float]:
        """Seconds of each of n plain EM iterations; training goes on from where the last call left it."""
        seconds = []
        with switched(planned), blas_on_one_thread():  # as ``fit`` holds it for the whole of training
            for _ in range(n):
                clock = time.perf_counter()
                self.state = gtm.step(self.model, self.rows, self.state)
                gtm.measure(self.model, self.state)
                seconds.append(time.perf_counter() - clock)
        return seconds

    def renew(self) -> None:
        """Go to the pass that makes the groups anew."""
        self.state = self.state._replace(hint=self.state.hint._replace(age=CYCLE))


def late(X: np.ndarray, nodes: int, basis: int, iterations: int = 15) -> Late:
    """A map trained until it has unfolded."""
    fitted = GTM(nodes=nodes, basis=basis, max_iter=iterations, tol=0).fit(X)
    rows = fitted._rows(X)
    found = Late(fitted, rows, gtm.begin(fitted._model, rows, fitted._parameters()))
    found.renew()
    return found


def kept_by(at: Late) -> float:
    """Share of row–node pairs that the plan of a pass keeps."""
    model, rows, parameters = at.model, at.rows, at.state.parameters
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    plan, _ = pruning.plan(model.surface, model.noise, nodes, rows, parameters.weights, pruning.Hint(age=CYCLE))
    return sum(passes.entries(plan, nodes)) / (rows.n_rows * len(nodes.centers))


def path_of(plan: Sequence[pruning.Part | pruning.RowBatch]) -> str:
    """Which way a pass goes: compiled sweeps over groups, groups one by one, or every row with every node."""
    first = plan[0]
    if isinstance(first, pruning.RowBatch):
        return "compiled"
    return "dense" if first.near is None else "NumPy"


@dataclass
class Parts:
    """Seconds of the parts of one planned iteration, what the plan keeps and loses, and which way it goes."""

    grouping: float
    bound: float
    sums: float
    m_step: float
    kept: float
    lost: float
    path: str


def parts_of(at: Late, repeats: int) -> Parts:
    """What a planned iteration is made of, each part on its own; grouping shared by the passes of a cycle."""
    model, rows, parameters = at.model, at.rows, at.state.parameters
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    late_hint = pruning.Hint(age=CYCLE)
    plan, after = pruning.plan(model.surface, model.noise, nodes, rows, parameters.weights, late_hint)
    fine = isinstance(plan[0], pruning.RowBatch)
    groups = after.groups or pruning.make_groups(model.surface, rows, parameters.weights)
    n_entries, bound = sum(passes.entries(plan, nodes)), model.noise.capabilities.bound
    planned, _ = gtm.e_step(model, rows, parameters, late_hint)
    dense = gtm.summarize(model, rows, parameters)

    def m_step() -> None:
        model.noise.m_step(model.surface, at.state.statistics, model.penalty, parameters)
        model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)

    work = {
        "grouping": lambda: pruning.make_groups(model.surface, rows, parameters.weights, fine),
        "bound": lambda: pruning.near_nodes(bound, nodes, groups),
        "sums": lambda: gtm.sum_parts(model, rows, nodes, plan),
        "m_step": m_step,
    }
    with blas_on_one_thread():
        took = take_turns({name: partial(clocked, each) for name, each in work.items()}, repeats)
    return Parts(
        grouping=took["grouping"].median / CYCLE,
        bound=took["bound"].median,
        sums=took["sums"].median,
        m_step=took["m_step"].median,
        kept=n_entries / (rows.n_rows * len(nodes.centers)),
        lost=(dense.log_likelihood - planned.log_likelihood) / dense.total,
        path=path_of(plan),
    )


def dense_parts(at: Late, repeats: int) -> dict[str, float]:
    """Seconds of one dense iteration by what is done, on one thread; the two products among them."""
    model, rows, parameters = at.model, at.rows, at.state.parameters
    noise, scaled = model.noise, model.noise.capabilities.scaled
    names = ("centring the rows", "first product", "exp, sum", "second product", "M-step")
    found: dict[str, Times] = {name: Times() for name in names}
    for _ in range(repeats):
        took = dict.fromkeys(names, 0.0)
        with blas_on_one_thread():
            clock = time.perf_counter()
            nodes = noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
            noise.m_step(model.surface, at.state.statistics, model.penalty, parameters)
            took["M-step"] = time.perf_counter() - clock
            worker = passes.Summer(model.noise, rows, nodes)
            worker.add(pruning.Part(rows.slices[0], None))
            for part in rows.slices:
                marks = [time.perf_counter()]
                loaded = noise.load(rows.block(part))
                marks.append(time.perf_counter())
                relative = worker.buffer[: len(loaded) * len(nodes.centers)].reshape(len(loaded), -1)
                own = scaled.log_density(nodes, loaded, None, relative[None])
                marks.append(time.perf_counter())
                total, _ = leveled_weights(relative, scaled.exponential(relative.dtype))
                posterior = Posterior(relative, total, own + np.log(total))
                marks.append(time.perf_counter())
                worker.sums.add(loaded, None, posterior, None)
                marks.append(time.perf_counter())
                for name, seconds in zip(names, np.diff(marks), strict=False):
                    took[name] += float(seconds)
        for name, seconds in took.items():
            found[name].append(seconds)
    return {name: times.median for name, times in found.items()}
