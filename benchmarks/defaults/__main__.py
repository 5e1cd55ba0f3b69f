"""How good the defaults are: every method as it comes from the box, on simulated tables whose true surface is known.

    python -m benchmarks.defaults --seeds 2 --sizes 300 --methods GTM,PPS --out results.json
    python -m benchmarks.defaults --out results.json --against older.json
    python -m benchmarks.defaults --real --out results.json
    python -m benchmarks.defaults --wanted

A cell is a method on a shape with so many rows, one of three noise levels and a seed. What is measured in it:

- ``distance``: √(mean squared distance of the surface from the truth + that of the truth from the surface). The first
  is taken where fresh rows project to, so that parts of a surface that no row holds do not count. The second is taken
  from the places on the true surface that these rows came from. ``ratio`` is the distance over that of the best method
  that was run.
- ``likelihood``: mean log-likelihood of the fresh rows, in nats per row, where there is a density.
- ``trust``: trustworthiness of the map with ten neighbours (scikit-learn's).
- ``correlation``: Spearman's, of the long true coordinate with the axis of the map that follows it best.
- ``coordinates``: what a cubic in the map's coordinates leaves of the true ones, as a share of their deviation.
- ``snapped``: share of coordinates within 2 % of the spacing of a line of the lattice, off the edge; ``edge``: share of
  rows that lie on the edge of the lattice or of its cells.
- ``warned``: warnings of the fit; ``seconds``, ``placing``: CPU time of the fit and of ``transform``, on one thread.

Cells that ``--out`` holds already are not run again, so that a run may be taken up later, in slices. ``--half tune``
takes the first half of the shapes with even seeds, ``--half judge`` the other half with odd seeds. Only the public
interface of prinfold is used: with another checkout in ``PYTHONPATH`` its results come out. Other libraries are run
where ``--methods`` names them (Isomap, LLE, umap-learn, MiniSom, pcurvepy2, elpigraph); they do not count among the
best.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
from benchmarks.defaults.peers import ONLY_CURVES, PEERS
from numba import set_num_threads
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes, make_s_curve, make_swiss_roll
from sklearn.manifold import trustworthiness
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from prinfold import GTM, KMM, PPS, SOM, UKR, DensityRidge, PrincipalCurve, PrincipalSurface, datasets
from prinfold.datasets import Dataset, TrueSurface, simulate

Cell: TypeAlias = tuple[str, ...]
Found: TypeAlias = dict[str, Any]

FRESH = 300
"""Rows that no method has seen, by which all are judged."""

NEAR = 0.02
"""Share of a node spacing within which a coordinate counts as on a line."""

Box: Any = type(datasets.make_half_circle(2, rng=0).surface.domain)  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------------------------- shapes


class Shape(NamedTuple):
    """A simulator, the dimension of its surface, three levels of noise, and which half it belongs to.

    ``ordered`` says that the first true coordinate runs along the surface, so that an axis of a good map follows it.
    """

    make: Callable[..., Dataset]
    dimension: int
    noises: tuple[float, float, float]
    half: str
    ordered: bool = False

    def draw(self, n: int, level: int, seed: int) -> tuple[Dataset, Dataset]:
        """Rows to fit and fresh ones; drawn together, because the shape itself may be drawn from the seed."""
        data = self.make(n + FRESH, self.noises[level], "isotropic", seed, sampling="parameter")
        return part(data, slice(None, n)), part(data, slice(n, None))


def part(data: Dataset, rows: slice) -> Dataset:
    """Some rows of a simulated table."""
    assert data.latent is not None
    assert data.clean is not None
    return Dataset(data.X[rows], data.latent[rows], data.clean[rows], data.surface)


def simulator(name: str, point: Callable[..., Any], *spans: tuple[float, float]) -> Callable[..., Dataset]:
    """Rows about the surface that a function takes a box to; its derivatives are differences."""
    step = 1e-6

    def jacobian(U: Any) -> Any:
        sides = [step * each for each in np.eye(len(spans))]
        return np.stack([(point(U + h) - point(U - h)) / (2 * step) for h in sides], axis=2)

    surface = TrueSurface(name, point, jacobian, Box.of(*spans), resolution=1000 if len(spans) == 1 else 64)
    return lambda n, noise, kind, seed, sampling: simulate(surface, n, noise, kind, seed, sampling=sampling)


def helix(U: Any) -> Any:
    return np.column_stack([np.cos(U), np.sin(U), U / 6.0])


def wave(U: Any) -> Any:
    return np.column_stack([U, 0.7 * np.sin(2.5 * U)])


def cap(U: Any) -> Any:
    """A piece of a sphere of radius √3, over a square."""
    return np.column_stack([U, np.sqrt(3.0 - np.square(U).sum(axis=1))])


def saddle(U: Any) -> Any:
    return np.column_stack([U, U[:, 0] ** 2 - U[:, 1] ** 2])


def letter(U: Any) -> Any:
    """A sheet rolled to an S."""
    t, height = U.T
    return np.column_stack([np.sin(t), height, np.sign(t) * (np.cos(t) - 1.0)])


def twisted(U: Any) -> Any:
    """A sheet in six columns that bends along both axes."""
    x, y = U.T
    return np.column_stack([x, y, np.sin(2.0 * x), np.cos(2.0 * x) * y, 0.5 * np.sin(2.0 * y), 0.5 * np.cos(x + y)])


def pipe(U: Any) -> Any:
    """Path lengths along six beams through a pipe with a ring of water about oil about gas: share of liquid, of oil."""
    liquid, oil = U.T
    return datasets.path_lengths(np.column_stack([1 - liquid, liquid * oil, liquid * (1 - oil)]), "annular").reshape(
        len(U), -1
    )


SQUARE = (-1.0, 1.0), (-1.0, 1.0)
SHAPES = {
    "half circle": Shape(datasets.make_half_circle, 1, (0.05, 0.1, 0.2), "tune", True),
    "spiral": Shape(datasets.make_spiral, 1, (0.03, 0.07, 0.1), "judge", True),
    "helix": Shape(simulator("helix", helix, (0.0, 4.0 * np.pi)), 1, (0.03, 0.07, 0.1), "tune", True),
    "corkscrew": Shape(datasets.make_corkscrew, 2, (0.5, 1.0, 2.0), "tune"),
    "cap": Shape(simulator("cap", cap, *SQUARE), 2, (0.03, 0.1, 0.2), "judge"),
    "S-sheet": Shape(
        simulator("S-sheet", letter, (-1.5 * np.pi, 1.5 * np.pi), (0.0, 2.0)), 2, (0.05, 0.1, 0.2), "judge", True
    ),
    "swiss roll": Shape(datasets.make_swiss_roll, 2, (0.3, 0.5, 1.0), "tune", True),
    "trefoil": Shape(datasets.make_knot, 1, (0.05, 0.1, 0.15), "tune"),
    "wave": Shape(simulator("wave", wave, (-2.0, 2.0)), 1, (0.05, 0.1, 0.2), "judge", True),
    "closed curve": Shape(datasets.make_closed_curve, 1, (0.03, 0.06, 0.1), "judge"),
    "saddle": Shape(simulator("saddle", saddle, *SQUARE), 2, (0.05, 0.1, 0.2), "tune"),
    "pipe surface": Shape(simulator("pipe surface", pipe, (0.3, 0.95), (0.05, 0.95)), 2, (0.03, 0.06, 0.1), "tune"),
    "twisted sheet": Shape(simulator("twisted sheet", twisted, *SQUARE), 2, (0.03, 0.1, 0.2), "judge"),
    "thesis surface": Shape(datasets.make_thesis_surface, 2, (0.05, 0.1, 0.2), "judge"),
}

METHODS: dict[str, Callable[[int], Any]] = {
    "GTM": GTM,
    "PPS": PPS,
    "UKR": UKR,
    "KMM": KMM,
    "SOM": SOM,
    "DensityRidge": DensityRidge,
    "PrincipalSurface": PrincipalSurface,
    "PrincipalCurve": lambda _: PrincipalCurve(),
}
EVERYONE = METHODS | PEERS


def suits(method: str, dimension: int) -> bool:
    """Whether a method has surfaces of this dimension."""
    return dimension == 1 or method not in ("PrincipalCurve", *ONLY_CURVES)


# ----------------------------------------------------------------------------------------------------- measures


class Fit(NamedTuple):
    """A fitted model, the CPU time that it took, and the kinds of warnings that it gave."""

    model: Any
    seconds: float
    warned: list[str]


def fit(model: Any, X: Any) -> Fit:
    """Train a model on one thread."""
    with warnings.catch_warnings(record=True) as heard, threadpool_limits(1):
        warnings.simplefilter("always")
        set_num_threads(1)
        clock = time.process_time()
        model.fit(X)
        seconds = time.process_time() - clock
    return Fit(model, seconds, [each.category.__name__ for each in heard])


@lru_cache
def warm(method: str, dimension: int) -> None:
    """Have a method compiled before it is timed."""
    X = SHAPES["half circle" if dimension == 1 else "cap"].draw(120, 1, 0)[0].X
    model = fit(EVERYONE[method](dimension), X).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.transform(X)


def distance(model: Any, fresh: Dataset) -> tuple[float, float]:
    """Root mean squared distances of the surface from the truth where rows are, and of the truth from the surface."""
    if not hasattr(model, "project"):
        return np.nan, np.nan
    assert fresh.surface is not None
    assert fresh.clean is not None
    there = fresh.surface.distance(model.project(fresh.X))
    back = np.linalg.norm(model.project(fresh.clean) - fresh.clean, axis=1)
    return float(np.sqrt(np.mean(there**2))), float(np.sqrt(np.mean(back**2)))


def correlation(Z: Any, truth: Any) -> float:
    """Spearman's correlation of a true coordinate with the axis of the map that follows it best, without its sign."""
    return float(max(abs(spearmanr(z, truth).statistic) for z in Z.T))


def unexplained(Z: Any, truth: Any) -> float:
    """What a cubic in the map's coordinates leaves of the true ones, as a share of their deviation."""
    cubic = PolynomialFeatures(3).fit_transform(StandardScaler().fit_transform(Z))
    wanted = StandardScaler().fit_transform(truth)
    left = wanted - cubic @ np.linalg.lstsq(cubic, wanted, rcond=None)[0]
    return float(np.sqrt(np.mean(left**2)))


def lattice(model: Any, Z: Any) -> Found:
    """How far coordinates keep to the lines of the lattice and rows to its edge; nothing where there is no lattice.

    ``chance`` is the share of coordinates that would be on a line if they were spread evenly, ``phase`` the largest
    |mean exp(2πi z/h)| of an axis, which chance alone keeps below ``phase_limit`` = 3/√n.
    """
    space = getattr(model, "latent_", None)
    nodes = getattr(space, "nodes", None)
    if nodes is None or not hasattr(space, "shape") or np.shape(nodes)[1] != Z.shape[1]:
        return {}
    on_edge, snapped, chance, phases, limits = np.zeros(len(Z), bool), [], [], [], []
    for z, line in zip(Z.T, np.asarray(nodes).T, strict=True):
        lines = np.unique(np.round(line, 9))
        h = float(np.diff(lines).mean())
        # Rows pile up on the outermost lines, or at the ends of their cells where those are filled.
        ends = [lines[0], lines[-1], lines[0] - h / 2, lines[-1] + h / 2]
        on_edge |= np.min(np.abs(z[:, None] - np.array(ends)), axis=1) < NEAR * h
        inside = z[(z > lines[0] + NEAR * h) & (z < lines[-1] - NEAR * h)]
        step = (inside - lines[0]) / h
        snapped.append(np.abs(step - np.round(step)) < NEAR)
        chance.append(2 * NEAR * (len(lines) - 2) / (len(lines) - 1 - 2 * NEAR))
        phases.append(abs(np.exp(2j * np.pi * step).mean()) if len(step) else np.nan)
        limits.append(3 / np.sqrt(max(len(step), 1)))
    worst = int(np.nanargmax(np.array(phases) / limits))
    every = np.concatenate(snapped)
    return {
        "snapped": float(every.mean()) if len(every) else np.nan,
        "chance": float(np.mean(chance)),
        "inside": len(every),
        "phase": float(phases[worst]),
        "phase_limit": float(limits[worst]),
        "edge": float(on_edge.mean()),
    }


def likelihood(model: Any, X: Any) -> float:
    """Mean log-likelihood of rows where the model has a density."""
    return float(np.mean(model.score_samples(X))) if hasattr(model, "score_samples") else np.nan


def place(model: Any, X: Any) -> tuple[Any, float]:
    """Coordinates of rows, and the CPU time of placing them."""
    with threadpool_limits(1):
        clock = time.process_time()
        Z = np.asarray(model.transform(X), dtype=float)
    return Z, time.process_time() - clock


def measure(cell: Cell) -> Found:
    """Everything about one cell; an error is kept as its words."""
    method, shape = cell[0], SHAPES[cell[1]]
    n, level, seed = (int(each) for each in cell[2:])
    data, fresh = shape.draw(n, level, seed)
    try:
        warm(method, shape.dimension)
        fitted = fit(EVERYONE[method](shape.dimension), data.X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"seconds": fitted.seconds, "warned": fitted.warned, **judge(fitted.model, data, fresh, shape)}
    except Exception as error:  # one of many cells
        return {"error": f"{type(error).__name__}: {error}"}


def judge(model: Any, data: Dataset, fresh: Dataset, shape: Shape) -> Found:
    """What a fitted model comes to on rows whose surface is known."""
    assert data.latent is not None
    assert data.surface is not None
    there, back = distance(model, fresh)
    Z, placing = place(model, data.X)
    known = np.isfinite(Z).all(axis=1)
    Z, latent, X = Z[known], data.latent[known], data.X[known]
    closed = any(getattr(data.surface.domain, "periodic", ()))
    return {
        "distance": float(np.hypot(there, back)),
        "there": there,
        "back": back,
        "likelihood": likelihood(model, fresh.X),
        "trust": float(trustworthiness(X, Z, n_neighbors=10)),
        "correlation": correlation(Z, latent[:, 0]) if shape.ordered else np.nan,
        "coordinates": np.nan if closed else unexplained(Z, latent),
        "placing": placing,
        **lattice(model, Z),
    }


# -------------------------------------------------------------------------------------------------- real tables


def scaled(X: Any) -> Any:
    """Columns of mean 0 and deviation 1."""
    return StandardScaler().fit_transform(X)


REAL: dict[str, Callable[[], Any]] = {
    "oil flow": lambda: datasets.load_oil_flow().X,
    "pipe flow": lambda: datasets.make_pipe_flow(1000, rng=0).X,
    "glass": lambda: scaled(datasets.load_glass().X),
    "diabetes": lambda: scaled(datasets.load_diabetes().X),
    "diabetes of scikit-learn": lambda: scaled(load_diabetes().data),
    "digits": lambda: datasets.load_digits().X,
}
"""Pipe flow and the digits as they are, the others in standard units; ``diabetes`` is that of the Pima Indians."""


def halves(X: Any, seed: int, share: float = 2 / 3) -> tuple[Any, Any]:
    """Rows to fit and rows held out."""
    order = np.random.default_rng(seed).permutation(len(X))
    first = round(share * len(X))
    return X[order[:first]], X[order[first:]]


def measure_real(cell: Cell) -> Found:
    """Rows held out of a real table: likelihood, squared distance to the surface; and what else needs no truth."""
    _, method, table, split = cell
    X, new = halves(REAL[table](), int(split))
    try:
        warm(method, 2)
        fitted = fit(EVERYONE[method](2), X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Z, placing = place(fitted.model, X)
            return {
                "seconds": fitted.seconds,
                "warned": fitted.warned,
                "placing": placing,
                "likelihood": likelihood(fitted.model, new),
                "error_held_out": float(fitted.model.projection_error(new)),
                "trust": float(trustworthiness(X, Z, n_neighbors=10)),
                **lattice(fitted.model, Z),
            }
    except Exception as error:  # one of many cells
        return {"error": f"{type(error).__name__}: {error}"}


# ------------------------------------------------------------------------------------------------- running cells


class Store:
    """Cells measured so far, kept in a file where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.cells: dict[Cell, Found] = read(path) if path and path.exists() else {}

    def run(self, cells: Sequence[Cell], jobs: int, work: Callable[[Cell], Found] = measure) -> dict[Cell, Found]:
        """Measure what is not there yet, and return all that was asked for."""
        todo = [cell for cell in cells if cell not in self.cells]
        clock, named = time.perf_counter(), partial(_named, work)
        found: Iterator[tuple[Cell, Found]] = (
            map(named, todo)
            if jobs == 1
            else joblib.Parallel(jobs, return_as="generator_unordered")(joblib.delayed(named)(each) for each in todo)
        )
        for done, (cell, result) in enumerate(found, start=1):
            self.cells[cell] = result
            if "error" in result:
                print(f"  {' | '.join(cell)}: {result['error']}", flush=True)
            if done % 10 == 0 or done == len(todo):
                self.save()
                print(f"  {done} of {len(todo)} cells, {time.perf_counter() - clock:.0f} s", flush=True)
        return {cell: self.cells[cell] for cell in cells}

    def save(self) -> None:
        """Write the file anew, in one move, with what another run has added to it meanwhile."""
        if self.path:
            self.cells = (read(self.path) if self.path.exists() else {}) | self.cells
            swap = self.path.with_suffix(".part")
            swap.write_text(json.dumps({"|".join(cell): found for cell, found in self.cells.items()}, indent=0))
            swap.replace(self.path)


def _named(work: Callable[[Cell], Found], cell: Cell) -> tuple[Cell, Found]:
    return cell, work(cell)


def read(path: Path) -> dict[Cell, Found]:
    """The cells of a file."""
    return {tuple(key.split("|")): found for key, found in json.loads(path.read_text()).items()}


def wanted_cells(given: argparse.Namespace) -> list[Cell]:
    """The cells that were asked for, seed by seed, so that a run that ends early has something of everything."""
    return [
        (method, shape, str(n), str(level), str(seed))
        for seed in given.seeds
        for n, level, shape, method in product(given.sizes, given.noises, given.shapes, given.methods)
        if in_half(shape, seed, given.half) and suits(method, SHAPES[shape].dimension)
    ]


def in_half(shape: str, seed: int, half: str) -> bool:
    """Tune on some shapes with even seeds, judge on the others with odd ones."""
    return half == "all" or (SHAPES[shape].half == half and seed % 2 == (half == "judge"))


# ------------------------------------------------------------------------------------------------------- tables


def value(found: Found, name: str) -> float:
    """A number of a cell; warnings are counted, and an error is infinitely far."""
    if "error" in found:
        return np.inf if name in ("distance", "ratio") else np.nan
    got = found.get(name)
    return np.nan if got is None else float(len(got) if isinstance(got, list) else got)


def with_ratios(cells: Mapping[Cell, Found]) -> dict[Cell, Found]:
    """Every cell with its distance over that of the best method on the same rows."""
    best: dict[Cell, float] = defaultdict(lambda: np.inf)
    for (method, *table), found in cells.items():
        if method in METHODS:
            best[tuple(table)] = min(best[tuple(table)], value(found, "distance"))
    return {
        cell: {**found, "ratio": value(found, "distance") / best[cell[1:]] if "error" not in found else np.inf}
        for cell, found in cells.items()
    }


WORST: dict[str, Callable[..., Any]] = dict.fromkeys(
    ("ratio", "distance", "coordinates", "snapped", "edge", "seconds", "placing", "warned", "error_held_out"), np.nanmax
)
"""The worst is the largest of these, and the smallest of all other measures."""

DIGITS = {"ratio": 1, "trust": 3, "correlation": 3, "likelihood": 2, "warned": 1, "error_held_out": 4}


def summary(values: Sequence[float], name: str, relative: bool = False) -> str:
    """Median and worst case."""
    known = np.array([each for each in values if not np.isnan(each)])
    if not len(known):
        return "–"
    figures = 2 if relative else DIGITS.get(name, 3 if np.median(known) < 1 else 2)
    worst = WORST.get(name, np.nanmin)(known)
    return f"{np.median(known):.{figures}f} ({worst:.{figures}f})"


def markdown(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A table for the guide."""
    print(f"\n{title}\n")
    for line in (heads, ["---"] * len(heads), *lines):
        print("| " + " | ".join(line) + " |")
    print(flush=True)


def by_group(cells: Mapping[Cell, Found], name: str) -> dict[tuple[str, str], list[float]]:
    """Values of a measure by method and shape."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell, found in cells.items():
        groups[cell[0], cell[1]].append(value(found, name))
    return groups


def names_of(cells: Mapping[Cell, Found]) -> tuple[list[str], list[str]]:
    """Methods and tables that occur, in the order of the tables above."""
    methods, tables = {cell[0] for cell in cells}, {cell[1] for cell in cells}
    return [m for m in EVERYONE if m in methods], [s for s in (*SHAPES, *REAL) if s in tables]


def print_measures(cells: Mapping[Cell, Found], measures: Sequence[str]) -> None:
    """A table of methods by shapes for each measure, and one of methods by measures over all shapes."""
    methods, shapes = names_of(cells)
    for name in measures:
        groups = by_group(cells, name)
        lines = [[m, *(summary(groups.get((m, s), []), name) for s in shapes)] for m in methods]
        lines = [line for line in lines if set(line[1:]) != {"–"}]
        if lines:
            markdown(f"{name}: median (worst) of {len(cells)} cells", [name, *shapes], lines)
    lines = []
    for m in methods:
        of_method = [found for cell, found in cells.items() if cell[0] == m]
        lines.append([m, *(summary([value(found, name) for found in of_method], name) for name in EVERY)])
    markdown("all tables: median (worst)", ["method", *EVERY], lines)


EVERY = ("ratio", "trust", "correlation", "coordinates", "snapped", "edge", "warned", "seconds", "placing")


def print_changes(old: Mapping[Cell, Found], new: Mapping[Cell, Found]) -> None:
    """The same cells before and after: ratios of distances, of errors and times, differences of the others."""
    both = [cell for cell in new if cell in old]
    changes = {name: {cell: {name: change(old[cell], new[cell], name)} for cell in both} for name in CHANGES}
    methods, shapes = names_of(changes["distance"])
    for name, as_ratio in CHANGES.items():
        groups = by_group(changes[name], name)
        lines = [[m, *(summary(groups.get((m, s), []), name, relative=True) for s in shapes)] for m in methods]
        lines = [line for line in lines if set(line[1:]) != {"–"}]
        if lines:
            kind = "after over before" if as_ratio else "after minus before"
            markdown(f"{name}, {kind}: median (worst) of {len(both)} cells", [name, *shapes], lines)


CHANGES = {
    "distance": True,
    "error_held_out": True,
    "likelihood": False,
    "trust": False,
    "correlation": False,
    "coordinates": True,
    "warned": False,
    "seconds": True,
    "placing": True,
}
"""Measures that are compared, and whether as ratios."""


def change(old: Found, new: Found, name: str) -> float:
    """What became of a measure."""
    before, after = value(old, name), value(new, name)
    if not CHANGES[name]:
        return after - before
    return after / before if before > 0 and np.isfinite(before) else np.nan


# ------------------------------------------------------------------------------------------------ wanted numbers


def unrolled(_: Store, __: argparse.Namespace) -> None:
    """Whether swiss roll and S-curve of scikit-learn are unrolled, and what is said of it."""
    lines = []
    for (shape, make), noise, method in product(
        (("swiss roll", make_swiss_roll), ("S-curve", make_s_curve)), (0.0, 0.05), ("GTM", "PPS", "SOM")
    ):
        found = []
        for seed in range(3):
            X, t = make(1500, noise=noise, random_state=seed)
            fitted = fit(EVERYONE[method](2), X)
            Z = fitted.model.transform(X)
            pearson = max(abs(np.corrcoef(z, t)[0, 1]) for z in Z.T)
            found.append((correlation(Z, t), pearson, fitted.seconds, fitted.warned))
        ranks, linear, seconds, warned = zip(*found, strict=True)
        said = "; ".join(", ".join(each) or "none" for each in warned)
        lines.append([shape, f"{noise:g}", method, *(three(each) for each in (ranks, linear, seconds)), said])
    heads = ["1500 rows", "noise", "method", "Spearman", "Pearson", "s", "warnings"]
    markdown("a. Map axis against the true coordinate t, seeds 0 to 2 (wanted: ≥ 0.99, no warning)", heads, lines)


def three(numbers: Sequence[float]) -> str:
    return ", ".join(f"{each:.3f}" for each in numbers)


STARTS = ("pca", "isomap", "lle", "laplacian", "random", "semi-random")


def starts(_: Store, given: argparse.Namespace) -> None:
    """Distance of the default GTM on the helix over that of the best start by name."""
    lines = []
    for n, level in product(given.sizes, given.noises):
        found = []
        for seed in given.seeds[:2]:
            data, fresh = SHAPES["helix"].draw(n, level, seed)
            tries = {name: GTM(1, init=name, random_state=0) for name in STARTS}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                far = {name: np.hypot(*distance(model.fit(data.X), fresh)) for name, model in tries.items()}
                own = np.hypot(*distance(GTM(1).fit(data.X), fresh))
            best = min(far, key=lambda name: far[name])
            found.append(f"{own / far[best]:.2f} ({own:.3f}; {best} {far[best]:.3f})")
        lines.append([str(n), f"{SHAPES['helix'].noises[level]:g}", *found])
    heads = ["helix, rows", "noise", *(f"seed {seed}" for seed in given.seeds[:2])]
    markdown("b. GTM by default over the best start by name (wanted: ≤ 1.2)", heads, lines)


def pps_over_gtm(store: Store, given: argparse.Namespace) -> None:
    """Distance of a PPS over that of a GTM on the same rows, shape by shape."""
    few = argparse.Namespace(**{**vars(given), "seeds": given.seeds[:2], "methods": ["GTM", "PPS"]})
    cells = store.run(wanted_cells(few), given.jobs)
    lines = []
    for shape in given.shapes:
        both = [
            value(found, "distance") / value(cells["GTM", *cell[1:]], "distance")
            for cell, found in cells.items()
            if cell[:2] == ("PPS", shape)
        ]
        lines.append([shape, f"{np.median(both):.3f}", f"{max(both):.3f}", str(len(both))])
    markdown("c. PPS over GTM, distance to the truth (wanted: ≤ 1.08)", ["shape", "median", "worst", "cells"], lines)


def off_the_lattice(store: Store, given: argparse.Namespace) -> None:
    """Where rows lie on the maps of pipe and oil flow, what new rows' likelihood is, and what both cost."""
    cells = [("real", "GTM", table, str(split)) for table in ("pipe flow", "oil flow") for split in range(3)]
    lines = []
    for (_, _, table, split), found in store.run(cells, given.jobs, measure_real).items():
        if "error" in found:
            lines.append([f"{table}, split {split}", found["error"], *[""] * 8])
            continue
        spread = 3 * np.sqrt(found["chance"] * (1 - found["chance"]) / found["inside"])
        shown = ("likelihood", "error_held_out", "seconds", "placing")
        lines.append(
            [
                f"{table}, split {split}",
                f"{found['snapped']:.3f}",
                f"{found['chance']:.3f} ± {spread:.3f}",
                f"{found['phase']:.3f}",
                f"{found['phase_limit']:.3f}",
                f"{found['edge']:.3f}",
                *(f"{found[name]:.3f}" for name in shown),
            ]
        )
    heads = ["GTM", "snapped", "chance ± 3 s.e.", "phase", "3/√n", "on the edge"]
    heads += ["held-out nats", "held-out error", "fit s", "transform s"]
    markdown("d. Positions on the map, off the edge, of two thirds of 1000 rows", heads, lines)


def whitened(_: Store, __: argparse.Namespace) -> None:
    """Held-out projection error of a PPS over that of a GTM on whitened diabetes, six splits."""
    X = scaled(datasets.load_diabetes().X)
    X = scaled(X @ np.linalg.eigh(np.cov(X.T))[1])
    ratios = []
    for split in range(6):
        rows, new = halves(X, split, 0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = [model.fit(rows).projection_error(new) for model in (PPS(2, clamping=0.3), GTM(2))]
        ratios.append(errors[0] / errors[1])
    line = [three(ratios), f"{np.mean(ratios):.3f}", f"{sum(each < 1 for each in ratios)} of 6"]
    heads = ["PPS (clamping 0.3) over GTM", "mean", "below 1"]
    markdown("e. Whitened diabetes, 2-D, held-out projection error (wanted: below 1 in 5 of 6)", heads, [line])


WANTED = {"a": unrolled, "b": starts, "c": pps_over_gtm, "d": off_the_lattice, "e": whitened}


# --------------------------------------------------------------------------------------------------------- main


def chosen(table: Mapping[str, Any], names: str, what: str) -> list[str]:
    """Names out of a table, all where none are given."""
    found = [each.strip() for each in names.split(",")] if names else list(table)
    if unknown := [each for each in found if each not in table]:
        raise SystemExit(f"{what} {', '.join(unknown)}: not known; there are {', '.join(table)}")
    return found


def numbers(text: str) -> list[int]:
    """``10`` as a number of seeds, ``4:8`` as a range of them."""
    first, colon, last = text.partition(":")
    return list(range(int(first), int(last))) if colon else list(range(int(first)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "judge", "all"), default="all", help="shapes and seeds to take")
    parser.add_argument("--shapes", default="", help="as helix,cap; all of them unless given")
    parser.add_argument("--methods", default="", help="as GTM,PPS; all of ours unless given")
    parser.add_argument("--sizes", default="300,1000", help="numbers of rows")
    parser.add_argument("--noises", default="0,1,2", help="which of the three levels of each shape")
    parser.add_argument("--seeds", type=numbers, default="10", help="how many, or as 4:8")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="file that keeps the cells; those in it are not run again")
    parser.add_argument("--against", type=Path, help="file of an earlier run to compare with")
    parser.add_argument("--measures", default="ratio,distance,likelihood,trust,correlation,seconds", help="tables")
    parser.add_argument("--real", action="store_true", help="real tables in place of shapes, three splits")
    parser.add_argument("--wanted", nargs="?", const=",".join(WANTED), help="numbers with a goal, as a,d")
    given = parser.parse_args()
    given.shapes = chosen(SHAPES, given.shapes, "--shapes")
    given.methods = chosen(EVERYONE, given.methods or ("GTM,PPS,SOM" if given.real else ",".join(METHODS)), "--methods")
    given.sizes, given.noises = ([int(each) for each in text.split(",")] for text in (given.sizes, given.noises))
    given.measures = given.measures.split(",")
    return given


def main() -> None:
    given = arguments()
    store = Store(given.out)
    if given.wanted:
        for name in chosen(WANTED, given.wanted, "--wanted"):
            WANTED[name](store, given)
        return
    if given.real:
        splits = range(min(3, len(given.seeds)))
        asked = [("real", m, t, str(split)) for split, t, m in product(splits, REAL, given.methods)]
        cells = {cell[1:]: found for cell, found in store.run(asked, given.jobs, measure_real).items()}
        print_measures(cells, ["likelihood", "error_held_out", "trust", "snapped", "edge", "seconds"])
    else:
        cells = with_ratios(store.run(wanted_cells(given), given.jobs))
        print_measures(cells, given.measures)
    if given.against:
        old = read(given.against)
        print_changes({cell[1:] if cell[0] == "real" else cell: found for cell, found in old.items()}, cells)


if __name__ == "__main__":
    main()
