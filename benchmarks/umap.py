"""What a principal surface gives that UMAP does not, and the other way round: ``python -m benchmarks.umap``.

Needs umap-learn, and says so where it is absent. Every measure is taken with the defaults of either library, on 600
rows (digits: 1000), for five seeds of the rows and of the method; a line holds the median, the least and the largest.
Lines marked *picture* look at the map alone, as a reader of a plot does. Lines marked *model* ask the fitted model
what its map means, for 200 of the rows: places are brought back to the columns by ``inverse_transform``, which all
three have.

- distances: rank correlation of distances with those along a true sheet, over all pairs; *model*: axes of the map in
  units of the columns, by the Jacobian in its middle, which a GTM has;
- widths: two groups of which one is five times as wide, as the ratio of their widths;
- gap: by what the distance of two groups, relative to the width of one, grows when the true distance triples;
- density: rank correlation of log densities, the model's against the true ones, on rows that were not fitted;
- new rows: the share of held-out rows whose nearest training row is among the ten nearest on the map;
- inverse: mean squared distance of held-out rows to what comes back from their place on the map;
- seeds: how much the maps of two seeds of the method differ (Procrustes, 0 the same and 1 nothing in common);
- classes: share of digits whose class a vote of five neighbours on the map tells.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from functools import cache
from time import process_time
from typing import Any

import numpy as np
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from prinfold import GTM, UKR, datasets

_ROWS = 600
_SEEDS = range(5)
_NONE = float("nan")


def umap(seed: int = 0) -> Any:
    """UMAP as it comes, with a seed."""
    from umap import UMAP

    return UMAP(random_state=seed)


METHODS: dict[str, Callable[..., Any]] = {
    "GTM": lambda seed=0: GTM(random_state=seed),
    "UKR": lambda seed=0: UKR(),
    "UMAP": umap,
}


def fitted(method: str, X: Any, seed: int = 0) -> tuple[Any, Any]:
    """A fitted model and the map of its rows."""
    model = METHODS[method](seed).fit(X)
    return model, np.asarray(model.transform(X) if method != "UMAP" else model.embedding_)


@cache
def distances(method: str, seed: int) -> tuple[float, float]:
    """Rank correlation with distances along an S-shaped sheet: of the picture, and with the Jacobian's units."""
    rng = np.random.default_rng(seed)
    t, h = rng.uniform(-1, 1, _ROWS), rng.uniform(-1, 1, _ROWS)
    X = np.stack([np.sin(2.5 * t), 2.0 * h, np.sign(t) * (np.cos(2.5 * t) - 1)], axis=1)
    X += 0.03 * rng.normal(size=X.shape)
    truth = pdist(np.stack([2.5 * t, 2.0 * h], axis=1))
    model, Z = fitted(method, X, seed)
    picture = float(spearmanr(pdist(Z), truth).statistic)
    if method != "GTM":
        return picture, _NONE
    J = model.jacobian(np.zeros((1, 2)))[0]
    return picture, float(spearmanr(pdist(Z * np.linalg.norm(J, axis=0)), truth).statistic)


def two_groups(apart: float, wide: float, seed: int = 0) -> tuple[Any, Any]:
    """Two flat round groups in five columns, the second ``wide`` times as wide; their rows alternate."""
    rng = np.random.default_rng(seed)
    first = np.arange(_ROWS) % 2 == 0
    X = np.column_stack([rng.normal(size=(_ROWS, 2)) * np.where(first, 1.0, wide)[:, None], np.zeros((_ROWS, 3))])
    X[~first, 0] += apart
    return X + 0.05 * rng.normal(size=X.shape), first


def width(Z: Any) -> float:
    """Root mean square distance from the mean."""
    return float(np.sqrt(((Z - Z.mean(axis=0)) ** 2).sum(axis=1).mean()))


@cache
def densities(method: str, seed: int) -> tuple[float, float, float]:
    """Ratio of widths (truth: 5) of picture and model, and rank correlation of log densities of new rows."""
    X, first = two_groups(25.0, 5.0, seed)
    model, Z = fitted(method, X, seed)
    ratios = [width(Y[~of]) / width(Y[of]) for Y, of in ((Z, first), (model.inverse_transform(Z[:200]), first[:200]))]
    if method != "GTM":
        return ratios[0], ratios[1], _NONE
    new, near = two_groups(25.0, 5.0, seed + 1000)
    s, mean = np.where(near, 1.0, 5.0), np.where(near, 0.0, 25.0)
    truth = -((new[:, 0] - mean) ** 2 + new[:, 1] ** 2) / (2 * s**2) - 2 * np.log(s)
    return ratios[0], ratios[1], float(spearmanr(model.score_samples(new), truth).statistic)


@cache
def gap(method: str, seed: int) -> Any:
    """By what the distance of two groups grows in picture and model while it triples in the columns."""
    found = []
    for apart in (12.0, 36.0):
        X, first = two_groups(apart, 1.0, seed)
        model, Z = fitted(method, X, seed)
        both = ((Z, first), (model.inverse_transform(Z[:200]), first[:200]))
        found.append([np.linalg.norm(Y[of].mean(axis=0) - Y[~of].mean(axis=0)) / width(Y[of]) for Y, of in both])
    return np.divide(*found[::-1])


@cache
def new_rows(method: str, seed: int) -> tuple[float, float, float]:
    """Neighbours kept and squared distance of what comes back, for held-out rows; seconds for both."""
    data = datasets.make_pipe_flow(2 * _ROWS, rng=seed).X
    train, new = data[:_ROWS], data[_ROWS : _ROWS + 200]
    model, Z = fitted(method, train, seed)
    clock = process_time()
    places = model.transform(new)
    back = model.inverse_transform(places)
    seconds = process_time() - clock
    true = NearestNeighbors(n_neighbors=10).fit(train).kneighbors(new)[1][:, :1]
    shown = NearestNeighbors(n_neighbors=10).fit(Z).kneighbors(places)[1]
    return float((shown == true).any(axis=1).mean()), float(((back - new) ** 2).sum(axis=1).mean()), seconds


def seeds(method: str, seed: int) -> float:
    """Difference of the maps of two seeds of the method, of the same rows."""
    if method == "UKR":
        return _NONE  # it draws nothing
    X = datasets.make_pipe_flow(_ROWS, rng=0).X
    return float(procrustes(fitted(method, X, seed)[1], fitted(method, X, seed + 1)[1])[2])


def classes(method: str, seed: int) -> float:
    """Digits told by five neighbours on the map."""
    data = datasets.load_digits()
    drawn = np.random.default_rng(seed).permutation(len(data.X))[:1000]
    _, Z = fitted(method, data.X[drawn], seed)
    return float(cross_val_score(KNeighborsClassifier(5), Z, data.labels[drawn], cv=5).mean())


MEASURES: dict[str, Callable[[str, int], float]] = {
    "distances along a sheet, picture": lambda m, s: distances(m, s)[0],
    "distances along a sheet, model": lambda m, s: distances(m, s)[1],
    "wide group over the other (5), picture": lambda m, s: densities(m, s)[0],
    "wide group over the other (5), model": lambda m, s: densities(m, s)[1],
    "gap of groups when it triples (3), picture": lambda m, s: gap(m, s)[0],
    "gap of groups when it triples (3), model": lambda m, s: gap(m, s)[1],
    "log density of new rows": lambda m, s: densities(m, s)[2],
    "nearest neighbour of new rows kept": lambda m, s: new_rows(m, s)[0],
    "squared error of what comes back": lambda m, s: new_rows(m, s)[1],
    "seconds for 200 rows there and back": lambda m, s: new_rows(m, s)[2],
    "difference of the maps of two seeds": seeds,
    "digits told by five neighbours": classes,
}


def main() -> None:
    """Print one line for each measure: the median of the seeds, with the least and the largest."""
    if importlib.util.find_spec("umap") is None:
        print("This comparison needs umap-learn (pip install umap-learn), which is not installed: nothing measured.")
        return
    warnings.simplefilter("ignore")
    new_rows("UMAP", 0)  # compiles what is compiled, so that seconds are of the work
    new_rows.cache_clear()
    print(f"{'':44}" + "".join(f"{name:>24}" for name in METHODS))
    for words, measure in MEASURES.items():
        cells = [sorted(measure(method, seed) for seed in _SEEDS) for method in METHODS]
        print(f"{words:44}" + "".join(f"{_cell(found):>24}" for found in cells), flush=True)


def _cell(found: list[float]) -> str:
    if np.isnan(found[0]):
        return "–"
    return f"{found[len(found) // 2]:.3f} ({found[0]:.3f} {found[-1]:.3f})"


if __name__ == "__main__":
    main()
