"""Figures 1 to 5 of Gerber et al. in our own form, and theorem 5.1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from benchmarks.papers.kmm_trials import isomaps, pps
from benchmarks.papers.reporting import COLORS, MARKERS, Figures, Finding, judge
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from prinfold import KMM, datasets, metrics, select_kmm

DIMENSIONS, SIZES = (1, 2, 3, 4), (4, 6, 8, 10)

UPRIGHT = 0.2
"""Mean cosine with the surface below which residuals may be called orthogonal to it."""

RANDOM_COSINE = np.pi / 4
"""Mean cosine of directions at random with a plane in three columns."""


def figure_1(figures: Figures) -> list[Finding]:
    """Residual variance of Isomap and residuals of KMM by dimension, on rolls with shortcuts."""
    n_draws, found = (10 if figures.full else 3), []
    for seed in range(n_draws):
        data = datasets.make_swiss_roll(1000, noise=0.9, rng=seed, reading="conjectured")
        found.append((data, select_kmm(data.X, DIMENSIONS, SIZES)))
    data, table = found[0]
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4), layout="constrained")
    _embedding(figure, axes, data)
    variances = {k: [isomaps(data.X, [k], d)[k][1] for d in DIMENSIONS] for k in SIZES}
    for i, k in enumerate(SIZES):
        own = table.neighbors == k
        style = {"color": COLORS[i], "marker": MARKERS[i], "label": f"k = {k}"}
        axes[2].plot(DIMENSIONS, variances[k], **style)
        axes[3].plot(table.dimensions[own], table.residuals[own], **style)
    for ax, title in ((axes[2], "(c) residual variance of Isomap"), (axes[3], "(d) residual of KMM, one left out")):
        ax.set(xlabel="dimension", xticks=DIMENSIONS, title=title, yscale="log")
        ax.legend(frameon=False)
    figures.save(figure, "kmm-fig-1")
    elbows = [t.lowest[2] / t.lowest[1] < 0.5 and t.lowest[3] > 0.7 * t.lowest[2] for _, t in found]
    chosen = [int(t.neighbors[t.dimensions == 2][t.residuals[t.dimensions == 2].argmin()]) for _, t in found]
    folded = _folded(found)
    return [
        Finding(
            "figure 1: lowest residuals show two dimensions, falling by half to 2 and by less than 30 % to 3",
            "an accurate estimate even if Isomap folds",
            f"in {sum(elbows)} of {n_draws} draws; falls to 3 by "
            + ", ".join(f"{100 * (1 - t.lowest[3] / t.lowest[2]):.0f} %" for _, t in found),
            judge(all(elbows), "where the embedding folds, a third dimension unfolds it and lowers the residual"),
        ),
        Finding(
            "section 4.2: k of the lowest residual in two dimensions gives the embedding nearest to the truth",
            "claimed",
            f"k = {', '.join(map(str, chosen))}; true best in {folded} of {n_draws} draws",
            judge(folded == n_draws, "not in all draws"),
        ),
    ]


def _embedding(figure: Any, axes: Any, data: Any) -> None:
    """The roll itself and its embedding by ten neighbours, coloured by the angle."""
    axes[0].remove()
    roll = figure.add_subplot(1, 4, 1, projection="3d")
    roll.scatter(*data.X.T, c=data.latent[:, 0], s=4, cmap="viridis")
    roll.set_title("(a) noisy swiss roll")
    Z = isomaps(data.X, [10])[10][0]
    axes[1].scatter(*Z.T, c=data.latent[:, 0], s=4, cmap="viridis")
    axes[1].set_title("(b) Isomap, 10 neighbours")


def _folded(found: list[Any]) -> int:
    """Draws in which the chosen k orders the rows along the roll best, by rank correlation with the true angle."""
    hits = 0
    for data, table in found:
        two = table.dimensions == 2
        quality = {}
        for k in table.neighbors[two]:
            Z = isomaps(data.X, [int(k)])[int(k)][0]
            A = np.column_stack([np.ones(len(Z)), Z])
            left = data.latent[:, 0] - A @ np.linalg.lstsq(A, data.latent[:, 0], rcond=None)[0]
            quality[int(k)] = float(left.var())
        hits += min(quality, key=lambda k: quality[k]) == int(table.neighbors[two][table.residuals[two].argmin()])
    return hits


def figure_2(figures: Figures) -> list[Finding]:
    """Surfaces by PPS, PPS from Isomap and KMM, beside the truth, coloured by the true parameter of their rows."""
    n = 2000 if figures.full else 1000
    shapes = {
        "corkscrew, σ = 2": datasets.make_corkscrew(n, 2.0, rng=0, reading="conjectured"),
        "swiss roll, σ = 0.5": datasets.make_swiss_roll(n, 0.5, rng=0, reading="conjectured"),
    }
    figure = plt.figure(figsize=(14, 7))
    for r, (name, data) in enumerate(shapes.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = {
                "PPS": pps(data.X, "pca", 8),
                "PPS from Isomap": pps(data.X, "isomap", 8),
                "KMM": KMM(n_neighbors=(6, 10, 15)).fit(data.X),
            }
        _scatter(figure, (2, 4, 4 * r + 1), data.clean, data, f"{name}: truth")
        for c, (title, model) in enumerate(models.items()):
            points = model.reconstruct(data.X) if title == "KMM" else model.project(data.X)
            error = np.square(points - data.clean).sum(axis=1).mean()
            _scatter(figure, (2, 4, 4 * r + 2 + c), points, data, f"{title}: error {error:.2f}")
    figures.save(figure, "kmm-fig-2")
    return []


def figure_3(figures: Figures) -> list[Finding]:
    """What the number of basis functions does to PPS, and that of neighbours to KMM."""
    data = datasets.make_corkscrew(1000, 2.0, rng=0, reading="conjectured")
    figure = plt.figure(figsize=(11, 7))
    errors: dict[str, list[float]] = {"PPS": [], "KMM": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [("PPS", f"{b} × {b} basis functions", pps(data.X, "isomap", b)) for b in (3, 5, 7)]
        models += [("KMM", f"{k} neighbours", KMM(n_neighbors=k).fit(data.X)) for k in (15, 10, 5)]
    for i, (name, title, model) in enumerate(models):
        points = model.reconstruct(data.X) if name == "KMM" else model.project(data.X)
        errors[name].append(float(np.square(points - data.clean).sum(axis=1).mean()))
        _scatter(figure, (2, 3, i + 1), points, data, f"{name}, {title}: {errors[name][-1]:.2f}")
    figures.save(figure, "kmm-fig-3")
    ratio = {name: max(values) / min(values) for name, values in errors.items()}
    return [
        Finding(
            "figure 3: KMM depends less on its neighbours than PPS on its basis functions",
            "very robust",
            f"largest over smallest error {ratio['KMM']:.2f} of KMM, {ratio['PPS']:.2f} of PPS",
            judge(ratio["KMM"] < ratio["PPS"], "it depends on them more"),
        )
    ]


def _scatter(figure: Any, place: tuple[int, int, int], points: np.ndarray, data: Any, title: str) -> None:
    ax = figure.add_subplot(*place, projection="3d")
    ax.scatter(*points.T, c=data.latent[:, 0], s=3, cmap="viridis")
    ax.set_title(title)
    ax.set(xticklabels=[], yticklabels=[], zticklabels=[])


def figures_4_and_5(figures: Figures) -> list[Finding]:
    """Noisy digits projected, and pictures along lines of the coordinate space."""
    digits = load_digits()
    clean, label = digits.data / 16.0, digits.target
    noise, rng = 0.25, np.random.default_rng(0)
    noisy = clean + noise * rng.standard_normal(clean.shape)
    order = rng.permutation(len(clean))
    train, test = order[:1200], order[1200:]
    model = KMM(3).fit(noisy[train])
    back = model.reconstruct(noisy[test])
    before, after = (np.square(each - clean[test]).sum(axis=1).mean() for each in (noisy[test], back))
    variance = float(clean.var(axis=0).sum())
    first = [int(np.flatnonzero(label[test] == d)[0]) for d in range(10)]
    figure, axes = plt.subplots(3, 10, figsize=(9, 3))
    for row, images in zip(axes, (clean[test], noisy[test], back), strict=True):
        for ax, i in zip(row, first, strict=True):
            ax.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            ax.set_axis_off()
    figure.suptitle("digits, with noise, and projected by KMM in three dimensions")
    figures.save(figure, "kmm-fig-4")
    _coordinate_space(figures, noisy[train], label[train])
    return [
        Finding(
            "figure 4: noisy images projected, digits in place of faces",
            "noise gone, by eye",
            f"squared distance to the clean image {before:.2f} → {after:.2f}; of images to their mean {variance:.2f}",
            judge(after < before, "no nearer than before", ""),
        )
    ]


def _coordinate_space(figures: Figures, X: np.ndarray, label: np.ndarray) -> None:
    model = KMM(2).fit(X)
    Z = model.embedding_
    figure = plt.figure(figsize=(9, 6.4))
    grid = figure.add_gridspec(4, 8)
    ax = figure.add_subplot(grid[:3, :])
    shown = ax.scatter(*Z.T, c=label, s=8, cmap="tab10")
    figure.colorbar(shown, ax=ax, label="digit")
    low, high = np.quantile(Z, [0.05, 0.95], axis=0)
    line = model.latent_.domain.retract(np.linspace(low, high, 8))
    ax.plot(*line.T, color="black", marker="s", ms=5)
    ax.set_title("coordinates of noisy digits, and pictures along the black line")
    for i, picture in enumerate(model.inverse_transform(line)):
        small = figure.add_subplot(grid[3, i])
        small.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        small.set_axis_off()
    figures.save(figure, "kmm-fig-5")


def theorem(figures: Figures) -> list[Finding]:
    """Theorem 5.1: residuals stand more upright on the surface as rows grow in number."""
    sizes = (200, 600, 1800)
    seeds = range(10 if figures.full else 3)
    cosines = np.empty((len(sizes), len(seeds)))
    for i, n in enumerate(sizes):
        for j, seed in enumerate(seeds):
            X = datasets.make_swiss_roll(n, noise=0.3, rng=seed).X
            model = KMM(n_neighbors=8).fit(X)
            Z = model.transform(X)
            interior = ~model.latent_.domain.boundary(Z)
            found = metrics.orthogonality(X, model.inverse_transform(Z), model.jacobian(Z), interior=interior)
            cosines[i, j] = found.mean
    mean = cosines.mean(axis=1)
    return [
        Finding(
            "theorem 5.1: mean cosine between residuals and tangents, swiss roll, σ = 0.3, 8 neighbours",
            "0 in the limit",
            ", ".join(
                f"n = {n}: {m:.2f} ± {s:.2f}" for n, m, s in zip(sizes, mean, cosines.std(axis=1, ddof=1), strict=True)
            ),
            judge(
                bool(mean[-1] < UPRIGHT),
                f"{'it falls' if (np.diff(mean) < 0).all() else 'it does not fall'}, and {sizes[-1]} rows are far from "
                f"orthogonal: directions at random have {RANDOM_COSINE:.2f}",
            ),
        )
    ]
