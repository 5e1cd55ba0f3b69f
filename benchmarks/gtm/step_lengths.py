"""Ways to need fewer iterations of EM: plain steps, stretched ones, and Anderson's extrapolation.

    python -m benchmarks.gtm.step_lengths

Passes over the data until 99.9 % of what 200 iterations of plain EM gain, from the same start. A step that would lower
the objective is taken again as EM proposes it, and both passes count. Anderson's way combines the last few changes so
that what they leave would cancel if EM were linear (Walker & Ni, 2011).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from benchmarks.gtm.late_iterations import sheet
from benchmarks.timing import print_table

from prinfold import GTM, datasets
from prinfold.gtm import model as gtm
from prinfold.gtm.noise.protocol import Parameters
from prinfold.rows.rows import Rows

STEPS = 200
FARTHEST = 2.0
"""Most that the logarithm of the precision may change by at once."""

Path = list[tuple[int, float]]
"""Passes so far and the objective, after each iteration."""
Way = Callable[[gtm.GTMModel, Rows, Parameters], Path]


def tables() -> dict[str, np.ndarray]:
    sheets = {f"sheet, noise {noise:g}, 2000 × 20": sheet(2000, 20, noise=noise) for noise in (0.05, 0.1)}
    pipes = {f"pipe flow, {n} × 12": datasets.make_pipe_flow(n, rng=i).X for i, n in enumerate((1000, 3000))}
    return {**sheets, **pipes}


def objective(model: gtm.GTMModel, state: gtm.GTMState) -> float:
    return gtm.measure(model, state)["objective"]


def stretched(model: gtm.GTMModel, rows: Rows, parameters: Parameters, relaxation: float) -> Path:
    """As training does it; a step that was not taken shows as a factor that starts over."""
    state, passes = gtm.begin(model, rows, parameters), 0
    path = [(passes, objective(model, state))]
    for _ in range(STEPS):
        before = state
        state = gtm.step(model, rows, before, relaxation)
        passes += 1 + (before.stretch > 1.0 and state.stretch < before.stretch)
        path.append((passes, objective(model, state)))
    return path


def anderson(model: gtm.GTMModel, rows: Rows, parameters: Parameters, memory: int) -> Path:
    def look(at: Parameters) -> gtm.GTMState:
        return gtm.GTMState(at, *gtm.e_step(model, rows, at, state.hint))

    state, passes = gtm.begin(model, rows, parameters), 0
    path, past = [(passes, objective(model, state))], list[tuple[np.ndarray, np.ndarray]]()
    for _ in range(STEPS):
        proposed = model.noise.m_step(model.surface, state.statistics, model.penalty, state.parameters)
        x = flat(state.parameters)
        past = [*past, (x, flat(proposed) - x)][-memory - 1 :]
        ahead = None
        if len(past) > 1:
            at = extrapolated(past)
            if abs(at[-1] - x[-1]) < FARTHEST:
                ahead, passes = look(unflat(at, proposed)), passes + 1
        if ahead is not None and objective(model, ahead) >= path[-1][1]:
            state = ahead
        else:
            state, past, passes = look(proposed), past[-1:], passes + 1
        path.append((passes, objective(model, state)))
    return path


def extrapolated(past: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    x, change = (np.array(each) for each in zip(*past, strict=True))
    bends, moves = np.diff(change, axis=0), np.diff(x, axis=0)
    gram = bends @ bends.T
    gram += 1e-10 * np.trace(gram) * np.eye(len(gram))
    share = np.linalg.solve(gram, bends @ change[-1])
    return np.asarray(x[-1] + change[-1] - share @ (moves + bends))


def flat(parameters: Parameters) -> np.ndarray:
    return np.append(parameters.weights.ravel(), np.log(parameters.precision))


def unflat(x: np.ndarray, like: Parameters) -> Parameters:
    return Parameters(x[:-1].reshape(like.weights.shape), float(np.exp(x[-1])))


WAYS: dict[str, Way] = {
    "plain": partial(stretched, relaxation=1.0),
    "stretched to 1.8": partial(stretched, relaxation=1.8),
    **{f"Anderson, {memory} changes": partial(anderson, memory=memory) for memory in (2, 5, 10)},
}


def main() -> None:
    lines = []
    for label, X in tables().items():
        fitted = GTM(nodes=20, basis=8, max_iter=1, tol=0).fit(X)
        rows = fitted._rows(X)
        paths = {name: way(fitted._model, rows, fitted._parameters()) for name, way in WAYS.items()}
        first, last = paths["plain"][0][1], paths["plain"][-1][1]
        for name, path in paths.items():
            enough = [passes for passes, value in path if value >= first + 0.999 * (last - first)]
            lines.append((label, name, enough[0] if enough else "not reached", path[-1][0], path[-1][1]))
    heads = ("table", "steps", "passes to 99.9 %", f"in {STEPS} steps", "objective then")
    print_table("Passes over the data to 99.9 % of what plain EM gains", heads, lines)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
