"""What a kernel map manifold costs, and where its training should end.

    python -m benchmarks.kernel_manifolds.kmm [--only 1,2,3] [--full]

1. A gradient beside UKR's of the same rows, which it contains, and beside (7) to (10) of Gerber et al. as printed.
2. What is left out by truncation, as the relative error of the gradient.
3. Squared distance between g(f(y)) of new rows and the truth where each rule ends, over that at the best step of the
   way down, which nobody knows: ``start`` takes no step, ``noise`` and ``minimum`` learn from all rows,
   ``validation`` from 70 % of them; ``lost`` is what the fewer rows cost at the best step.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import clocked, take_turns

from prinfold import datasets
from prinfold.kernel_manifolds import kmm_training
from prinfold.kernel_manifolds.latent_descent import LatentDescent
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.loops import DESCENTS, Discrepancy, Listeners, StoppingRule
from prinfold.numerics.radial_kernels import Gaussian

SETTING = kmm_training.KMMSetting(Gaussian(), 5.0, "mean")
STEPS = 60
PATIENCE = 10

SIMULATORS: dict[str, tuple[Callable[[int], Any], int]] = {
    "half circle, σ = 0.05": (lambda seed: datasets.make_half_circle(200, 0.05, rng=seed), 1),
    "half circle, σ = 0.15": (lambda seed: datasets.make_half_circle(200, 0.15, rng=seed), 1),
    "zig-zag, σ = 0.05": (lambda seed: datasets.make_zigzag(300, 0.05, rng=seed), 1),
    "swiss roll, σ = 0": (lambda seed: datasets.make_swiss_roll(600, 0.0, rng=seed), 2),
    "swiss roll, σ = 0.5": (lambda seed: datasets.make_swiss_roll(600, 0.5, rng=seed), 2),
    "corkscrew, σ = 1": (lambda seed: datasets.make_corkscrew(600, 1.0, rng=seed, reading="conjectured"), 2),
    "corkscrew, σ = 2": (lambda seed: datasets.make_corkscrew(600, 2.0, rng=seed, reading="conjectured"), 2),
}


def started(
    X: np.ndarray, Q: int, held_share: float = 0.0, sizes: tuple[int, ...] = kmm_training.NEIGHBORHOOD_SIZES
) -> kmm_training.KMMStart:
    """Where training begins, with a share of the rows held out."""
    Y, weight = X - X.mean(axis=0), np.ones(len(X))
    held = kmm_training.hold_out(Y, weight, held_share) if held_share else np.empty(0, dtype=np.intp)
    seen = np.setdiff1d(np.arange(len(Y)), held)
    rows = kmm_training.ValidationRows(Y[held], weight[held])
    return kmm_training.choose_start(Y[seen], weight[seen], Q, SETTING, rows, starts=("isomap",), sizes=sizes)


# ------------------------------------------------------------------------------------------------------------ cost


def cost(full: bool) -> None:
    print("1. Seconds of a gradient, swiss roll, 10 neighbours")
    print(f"{'n':>6} {'UKR':>9} {'KMM':>9} {'KMM/UKR':>8} {'(7)-(10)':>9} {'over KMM':>8} {'share of A':>10}")
    for n in (100, 200, 400, 1000, 2000, *((4000,) if full else ())):
        start = started(datasets.make_swiss_roll(n, 0.5, rng=0).X, 2, sizes=(10,))
        walk = LatentDescent(start.maps.problem, DESCENTS["lbfgs"], parameters=start.maps.averaged)
        X = start.maps.averaged.latent(start.Z)
        runs: dict[str, Callable[[], Any]] = {
            "ukr": lambda p=start.maps.problem, X=X: clocked(lambda: p.regression.gradient(X), 5),
            "kmm": lambda w=walk, Z=start.Z: clocked(lambda: w._evaluate(Z), 5),
        }
        if n <= 400:
            runs["paper"] = lambda s=start: clocked(lambda: gradient_of_the_paper(s), 1)
        times = take_turns(runs, 5, {"paper": 1})
        ukr, ours = times["ukr"].median, times["kmm"].median
        paper = f"{times['paper'].median:9.3f} {times['paper'].median / ours:8.0f}" if n <= 400 else f"{'':>18}"
        share = start.maps.averaged.shares.nnz / n**2
        print(f"{n:6d} {ukr:9.5f} {ours:9.5f} {ours / ukr:8.2f} {paper} {share:10.3f}")


def gradient_of_the_paper(start: kmm_training.KMMStart) -> np.ndarray:
    """(7) to (10) with their misprints put right, one sum after the other."""
    Y, Z, A = start.maps.problem.Y, start.Z, start.maps.averaged.shares.toarray()
    X = A @ Z
    k = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    S = k.sum(axis=1)
    left = k @ Y / S[:, None] - Y
    slope = -(X[:, None] - X) * k[:, :, None]
    out = np.zeros_like(Z)
    for r in range(len(Y)):
        moved = slope * (A[:, r][:, None] - A[:, r])[:, :, None]
        inner = moved * S[:, None, None] - k[:, :, None] * moved.sum(axis=1, keepdims=True)
        jacobian = np.einsum("jd,ijq->idq", Y, inner) / S[:, None, None] ** 2
        out[r] = 2.0 * np.einsum("idq,id->q", jacobian, left)
    return out / len(Y)


def truncation(full: bool) -> None:
    print("\n2. Relative error of the gradient by truncation of f, swiss roll, n = 1000")
    start = started(datasets.make_swiss_roll(1000, 0.5, rng=0).X, 2, sizes=(10,))
    exact, where = start.maps.coordinates, start.maps
    gradients, shares = {}, {}
    for cut in (np.inf, 3.0, 4.0, 5.0, 6.0):
        made = kmm_training.KernelMaps.of(
            kmm_training.CoordinateMap(exact.rows, exact.weight, exact.bandwidth, cut), SETTING, where.held
        )
        gradients[cut] = (
            LatentDescent(made.problem, DESCENTS["lbfgs"], parameters=made.averaged)._evaluate(start.Z).gradient
        )
        shares[cut] = made.averaged.shares.nnz / 1000**2
    whole = gradients.pop(np.inf)
    for cut, each in gradients.items():
        off = np.linalg.norm(each - whole) / np.linalg.norm(whole)
        print(f"  {cut:g} bandwidths: {off:.1e}, {100 * shares[cut]:.0f} % of the weights kept")


# -------------------------------------------------------------------------------------------------- where to end


def path(make: Callable[[int], Any], Q: int, seed: int, share: float) -> tuple[np.ndarray, dict[str, list[float]], Any]:
    """Distances to the truth along the way down, its history and the noise rule."""
    data, test = make(seed), make(seed + 1000)
    start = started(data.X, Q, share)
    maps, offset = start.maps, data.X.mean(axis=0)
    shares = maps.coordinates.shares(test.X - offset)
    found = []

    def listen(iteration: Any) -> bool:
        Z = iteration.state.state.x
        surface = KernelMap(maps.averaged.latent(Z), maps.problem.Y, maps.problem.weight, Gaussian())
        found.append(np.square(surface.point(shares @ Z) + offset - test.clean).sum(axis=1).mean())
        return False

    rule = kmm_training.map_noise_rule(maps, start.Z)
    descent = DESCENTS["lbfgs"]
    outcome = kmm_training.train_maps(
        maps, start.Z, descent=descent, rule=StoppingRule(), max_iter=STEPS, tol=0.0, listeners=Listeners((listen,))
    )
    return np.array(found), outcome.history, rule


def stopping(full: bool) -> None:
    print("\n3. Distance to the truth where a rule ends, over that at the best step: means over seeds (worst)")
    names = ("start", "noise", "validation", "minimum", "lost")
    print(f"{'':24}" + "".join(f"{name:>16}" for name in names))
    for name, (make, Q) in SIMULATORS.items():
        rows = np.array([ratios(make, Q, seed) for seed in range(10 if full else 3)])
        cells = (f"{m:7.2f} ({w:5.2f})" for m, w in zip(rows.mean(axis=0), rows.max(axis=0), strict=True))
        print(f"{name:24}" + "".join(f"{cell:>16}" for cell in cells))


def ratios(make: Callable[[int], Any], Q: int, seed: int) -> tuple[float, ...]:
    """What each rule comes to on one draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, history, rule = path(make, Q, seed, 0.0)
        part, of_part, _ = path(make, Q, seed, 0.3)
    assert isinstance(rule, Discrepancy)
    below = np.flatnonzero(np.array(history["error"]) <= rule.level)
    noise = whole[below[0] if len(below) else -1]
    best = whole.min()
    return (
        whole[0] / best,
        noise / best,
        part[_patient(of_part["validation"])] / best,
        whole[-1] / best,
        part.min() / best,
    )


def _patient(errors: list[float]) -> int:
    """Where ``stop="validation"`` ends."""
    best = 0
    for i, error in enumerate(errors):
        if error < errors[best]:
            best = i
        elif i - best >= PATIENCE:
            break
    return best


PARTS = (cost, truncation, stopping)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="1,2,3", help="parts to run, such as 1,3")
    parser.add_argument("--full", action="store_true", help="more rows and ten seeds instead of three")
    options = parser.parse_args()
    for number in options.only.split(","):
        PARTS[int(number) - 1](options.full)
