"""What a principal surface gives that UMAP does not, and the other way round: ``python -m benchmarks.umap``.

Needs umap-learn. Every measure is taken with the defaults of either library, on a few hundred rows:

- distances: rank correlation of distances on the map with those along a true sheet, over all pairs;
- density: two groups of which one is five times as wide, as the ratio of their widths on the map; and the rank
  correlation of log densities, the model's against the true ones, on rows that were not fitted;
- gap: how far apart two groups are on the map, relative to their widths, when their true distance grows threefold;
- new rows: the share of held-out rows whose nearest training row is among the ten nearest on the map;
- inverse: mean squared distance of held-out rows to what comes back from their place on the map;
- seeds: how much the maps of two seeds differ (Procrustes, 0 the same and 1 nothing in common);
- classes: share of digits whose class a vote of five neighbours on the map tells.
"""

from __future__ import annotations

import warnings
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


def umap(seed: int = 0) -> Any:
    """UMAP as it comes, with a seed."""
    from umap import UMAP

    return UMAP(random_state=seed)


METHODS = {"GTM": lambda seed=0: GTM(random_state=seed), "UKR": lambda seed=0: UKR(), "UMAP": umap}


def fitted(method: str, X: Any, seed: int = 0) -> tuple[Any, Any]:
    """A fitted model and the map of its rows."""
    model = METHODS[method](seed).fit(X)
    return model, np.asarray(model.transform(X) if method != "UMAP" else model.embedding_)


def distances(method: str) -> float:
    """Rank correlation of distances on the map with those along an S-shaped sheet."""
    rng = np.random.default_rng(0)
    t, h = rng.uniform(-1, 1, _ROWS), rng.uniform(-1, 1, _ROWS)
    X = np.stack([np.sin(2.5 * t), 2.0 * h, np.sign(t) * (np.cos(2.5 * t) - 1)], axis=1)
    X += 0.03 * rng.normal(size=X.shape)
    _, Z = fitted(method, X)
    if method == "GTM":  # lengths along its surface, as its metric has them
        J = METHODS[method]().fit(X).jacobian(np.zeros((1, 2)))[0]
        Z = Z * np.linalg.norm(J, axis=0)
    return float(spearmanr(pdist(Z), pdist(np.stack([2.5 * t, 2.0 * h], axis=1))).statistic)


def two_groups(apart: float, wide: float, seed: int = 0) -> tuple[Any, Any]:
    """Two flat round groups in five columns, the second ``wide`` times as wide."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(_ROWS, 2)) * np.where(np.arange(_ROWS) < _ROWS // 2, 1.0, wide)[:, None]
    X = np.column_stack([U, np.zeros((_ROWS, 3))])
    X[_ROWS // 2 :, 0] += apart
    return X + 0.05 * rng.normal(size=X.shape), np.arange(_ROWS) < _ROWS // 2


def width(Z: Any) -> float:
    """Root mean square distance from the mean."""
    return float(np.sqrt(((Z - Z.mean(axis=0)) ** 2).sum(axis=1).mean()))


def data_widths(method: str, model: Any, Z: Any) -> Any:
    """Places on the map in units of the data, where the method says what these are."""
    return model.inverse_transform(Z) if method != "UMAP" else Z


@cache
def densities(method: str) -> tuple[float, float]:
    """Ratio of widths on the map (truth: 5), and rank correlation of log densities."""
    X, first = two_groups(25.0, 5.0)
    model, Z = fitted(method, X)
    Y = data_widths(method, model, Z)
    ratio = width(Y[~first]) / width(Y[first])
    if method != "GTM":
        return ratio, float("nan")
    new, near = two_groups(25.0, 5.0, seed=1)
    s, mean = np.where(near, 1.0, 5.0), np.where(near, 0.0, 25.0)
    truth = -((new[:, 0] - mean) ** 2 + new[:, 1] ** 2) / (2 * s**2) - 2 * np.log(s)
    return ratio, float(spearmanr(model.score_samples(new), truth).statistic)


def gap(method: str) -> float:
    """By what the distance between two groups grows on the map while it triples in the data."""
    found = []
    for apart in (12.0, 36.0):
        X, first = two_groups(apart, 1.0)
        model, Z = fitted(method, X)
        Y = data_widths(method, model, Z)
        found.append(np.linalg.norm(Y[first].mean(axis=0) - Y[~first].mean(axis=0)) / width(Y[first]))
    return float(found[1] / found[0])


@cache
def new_rows(method: str) -> tuple[float, float, float]:
    """Neighbours kept and squared distance of what comes back, for held-out rows; seconds for both."""
    data = datasets.make_pipe_flow(2 * _ROWS, rng=0).X
    train, new = data[:_ROWS], data[_ROWS : _ROWS + 200]
    model, Z = fitted(method, train)
    clock = process_time()
    places = model.transform(new)
    back = model.inverse_transform(places)
    seconds = process_time() - clock
    true = NearestNeighbors(n_neighbors=10).fit(train).kneighbors(new)[1][:, :1]
    shown = NearestNeighbors(n_neighbors=10).fit(Z).kneighbors(places)[1]
    return float((shown == true).any(axis=1).mean()), float(((back - new) ** 2).sum(axis=1).mean()), seconds


def seeds(method: str) -> float:
    """Difference of the maps of two seeds."""
    X = datasets.make_pipe_flow(_ROWS, rng=0).X
    return float(procrustes(fitted(method, X, 0)[1], fitted(method, X, 1)[1])[2])


def classes(method: str) -> float:
    """Digits told by five neighbours on the map."""
    data = datasets.load_digits()
    _, Z = fitted(method, data.X[:1000])
    return float(cross_val_score(KNeighborsClassifier(5), Z, data.labels[:1000], cv=5).mean())


def main() -> None:
    """Print one line for each measure."""
    warnings.simplefilter("ignore")
    print(f"{'':44}" + "".join(f"{name:>12}" for name in METHODS))
    lines = {
        "distances along a sheet, rank correlation": distances,
        "width of the wide group over the other (5)": lambda m: densities(m)[0],
        "log density of new rows, rank correlation": lambda m: densities(m)[1],
        "distance of two groups when it triples (3)": gap,
        "nearest neighbour of new rows kept": lambda m: new_rows(m)[0],
        "squared error of what comes back": lambda m: new_rows(m)[1],
        "  seconds for 200 rows there and back": lambda m: new_rows(m)[2],
        "difference of the maps of two seeds": seeds,
        "digits told by five neighbours on the map": classes,
    }
    for words, measure in lines.items():
        print(f"{words:44}" + "".join(f"{measure(name):12.3f}" for name in METHODS), flush=True)


if __name__ == "__main__":
    main()
