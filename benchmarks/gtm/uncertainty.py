"""How often bands about the surface of a GTM hold the truth.

    python -m benchmarks.gtm.uncertainty [--full]

Many tables are drawn about a curve that is known, each is fitted, and 95 % bands are looked at along the curve:

- ``everywhere``: the true point at the same latent coordinate, column by column. It means something only where rows
  are spread over the curve as the model takes them to be, evenly over its nodes;
- ``across``: the nearest point of the true curve, along the normal of the fitted one. That is what the tube of a
  picture shows.

``width`` is the mean half-width of the band across, in units of the noise; ``off`` the root of the mean squared
distance that it should hold.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.timing import print_table

from prinfold import GTM, GaussianProcess, datasets

Z95 = 1.959964
PLACES = np.linspace(-0.9, 0.9, 37)
FINE = np.linspace(-1.3, 1.3, 8001)
NODES = 80


def wave(z: np.ndarray) -> np.ndarray:
    return np.stack([2.0 * z, np.sin(3.0 * z)], axis=1)


def hairpin(z: np.ndarray) -> np.ndarray:
    """Two arms so near each other that the noise joins them."""
    angle = 0.5 * np.pi * np.clip(z / 0.25, -1.0, 1.0)
    arm = np.sign(z) * np.maximum(np.abs(z) - 0.25, 0.0)
    return np.stack([0.3 * np.cos(angle) - 2.0 * np.abs(arm), 0.3 * np.sin(angle)], axis=1)


class Case(NamedTuple):
    """A truth, how many rows, their noise, how they are spread over the curve, and the model."""

    name: str
    curve: Callable[[np.ndarray], np.ndarray]
    n: int
    noise: float
    settings: dict[str, Any]
    power: float = 1.0
    """Rows crowd in the middle of the curve from 1 on: places are |u|^power with u even."""


PROCESS = {"basis": GaussianProcess()}
CASES = [
    Case("default, 100 rows", wave, 100, 0.15, {}),
    Case("default, 400 rows", wave, 400, 0.15, {}),
    Case("default, 1600 rows", wave, 1600, 0.15, {}),
    Case("evidence, 400 rows", wave, 400, 0.15, {"prior_precision": "evidence"}),
    Case("process, 100 rows", wave, 100, 0.15, PROCESS),
    Case("process, 400 rows", wave, 400, 0.15, PROCESS),
    Case("process, 1600 rows", wave, 1600, 0.15, PROCESS),
    Case("λ = 0.001, 20 functions", wave, 400, 0.15, {"basis": 20, "regularization": 1e-3}),
    Case("too stiff: λ = 30", wave, 400, 0.15, {"regularization": 30.0}),
    Case("rows unevenly spread", wave, 400, 0.15, {}, 2.0),
    Case("uneven, process", wave, 400, 0.15, PROCESS, 2.0),
    Case("hairpin, arms 4 σ apart", hairpin, 400, 0.15, {}),
    Case("hairpin, arms 2 σ apart", hairpin, 400, 0.3, {}),
]


def one(case: Case, seed: int) -> dict[str, tuple[float, float, float, float]]:
    """Coverage everywhere and across, half-width and error across, by Hessian."""
    rng = np.random.default_rng(seed)
    u = rng.choice(np.linspace(-1, 1, NODES), case.n)
    clean = case.curve(np.sign(u) * np.abs(u) ** case.power)
    X = clean + case.noise * rng.normal(size=clean.shape)
    init = u[:, None]  # the bands are under test, not the way from a plane to the curve
    model = GTM(1, nodes=NODES, init=init, max_iter=1000, tol=1e-5, **case.settings).fit(X)
    Z = PLACES[:, None]
    Y, J = model.inverse_transform(Z), model.jacobian(Z)[:, :, 0]
    normal = np.stack([-J[:, 1], J[:, 0]], axis=1) / np.linalg.norm(J, axis=1, keepdims=True)
    fine = case.curve(FINE)
    foot = fine[((Y[:, None] - fine[None]) ** 2).sum(axis=2).argmin(axis=1)]
    off = np.einsum("nd,nd->n", Y - foot, normal)
    error = Y - case.curve(np.sign(PLACES) * np.abs(PLACES) ** case.power)
    found = {}
    for hessian in ("approximate", "exact"):
        C = model.surface_covariance(Z, X=X, hessian=hessian)
        column = Z95 * np.sqrt(np.einsum("ndd->nd", C))
        across = Z95 * np.sqrt(np.einsum("nd,nde,ne->n", normal, C, normal))
        held = float(np.mean(np.abs(error) < column)), float(np.mean(np.abs(off) < across))
        found[hessian] = (*held, float(np.mean(across)) / case.noise, float(np.sqrt(np.mean(off**2))) / case.noise)
    return found


def sheet(seed: int, n: int, options: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Coverage across a sheet in space, half-width and error, by Hessian."""
    noise = 0.15
    data = datasets.make_thesis_surface(n, noise=noise, sampling="parameter", rng=seed)
    assert data.surface is not None
    model = GTM(nodes=20, max_iter=500, **options).fit(data.X)
    Z = np.stack([each.ravel() for each in np.meshgrid(*[np.linspace(-0.8, 0.8, 9)] * 2)], axis=1)
    Y, J = model.inverse_transform(Z), model.jacobian(Z)
    normal = np.cross(J[:, :, 0], J[:, :, 1])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    off = np.einsum("nd,nd->n", Y - data.surface.project(Y), normal)
    found = {}
    for hessian in ("approximate", "exact"):
        C = model.surface_covariance(Z, X=data.X, hessian=hessian)
        across = Z95 * np.sqrt(np.einsum("nd,nde,ne->n", normal, C, normal))
        size = float(np.sqrt(np.mean(off**2))) / noise
        found[hessian] = (float(np.mean(np.abs(off) < across)), float(np.mean(across)) / noise, size)
    return found


def sheets(tables: int) -> None:
    rows = []
    for name, n, options in (
        ("default, 400 rows", 400, {}),
        ("evidence, 400 rows", 400, {"prior_precision": "evidence"}),
        ("process, 400 rows", 400, PROCESS),
    ):
        runs = [sheet(seed, n, options) for seed in range(tables)]
        line: list[Any] = [name]
        for hessian in ("approximate", "exact"):
            held, width, off = np.mean([run[hessian] for run in runs], axis=0)
            line += [f"{held:.0%}", f"{width:.2f}"]
        rows.append([*line, f"{off:.2f}"])
    heads = ["model", "approximate: across", "width", "exact: across", "width", "off"]
    print_table(f"2. A sheet in space, from the principal plane on ({tables} tables each)", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="200 tables for each line instead of 40")
    tables = 200 if parser.parse_args().full else 40
    warnings.simplefilter("ignore")
    rows = []
    for case in CASES:
        runs = [one(case, seed) for seed in range(tables)]
        line: list[Any] = [case.name]
        for hessian in ("approximate", "exact"):
            everywhere, across, width, off = np.mean([run[hessian] for run in runs], axis=0)
            line += [f"{everywhere:.0%}", f"{across:.0%}", f"{width:.2f}"]
        rows.append([*line, f"{off:.2f}"])
    heads = ["model", "approximate: everywhere", "across", "width", "exact: everywhere", "across", "width", "off"]
    print_table(f"1. Curves: how often 95 % bands hold the truth ({tables} tables each)", heads, rows)
    sheets(tables // 4)


if __name__ == "__main__":
    main()
