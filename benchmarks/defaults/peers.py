"""Other libraries' maps, curves and self-organising maps with their own defaults, for ``defaults.py``.

Those that only place rows have no ``project``, and so no distance to the truth. Each is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.manifold import Isomap, LocallyLinearEmbedding

_FINE = 3000
"""Points along a curve, or about so many on a net, that stand for it."""


def umap(dimension: int) -> Any:
    from umap import UMAP

    return UMAP(n_components=dimension, random_state=0)


class Points:
    """A surface that is known by many points on it, each with its place on the map."""

    def __init__(self, train: Callable[[Any], tuple[Any, Any]]) -> None:
        self.train = train

    def fit(self, X: Any) -> Points:
        self.points, self.places = self.train(X)
        self.tree = cKDTree(self.points)
        return self

    def transform(self, X: Any) -> Any:
        return self.places[self.tree.query(X)[1]]

    def project(self, X: Any) -> Any:
        return self.points[self.tree.query(X)[1]]


def between(vertices: Any, places: Any, pairs: Any) -> tuple[Any, Any]:
    """Points along the edges of a net, and their places on the map."""
    t = np.linspace(0, 1, max(2, _FINE // len(pairs)))[None, :, None]
    ends = [(1 - t) * each[pairs[:, 0]][:, None] + t * each[pairs[:, 1]][:, None] for each in (vertices, places)]
    return ends[0].reshape(-1, vertices.shape[1]), ends[1].reshape(-1, places.shape[1])


def along(vertices: Any) -> tuple[Any, Any]:
    """Points along a chain of vertices, and how far along they are."""
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(vertices, axis=0), axis=1))])
    return between(vertices, s[:, None], np.stack([np.arange(len(s) - 1), np.arange(1, len(s))], axis=1))


def pcurvepy2(_: int) -> Points:
    from pcurvepy2 import PrincipalCurve

    def train(X: Any) -> tuple[Any, Any]:
        model = PrincipalCurve()
        model.fit(X)
        return along(np.asarray(model.points))

    return Points(train)


def elpigraph(_: int) -> Points:
    """An elastic principal curve of fifty nodes, whose edges say in which order they come."""
    import elpigraph as theirs

    def train(X: Any) -> tuple[Any, Any]:
        found = theirs.computeElasticPrincipalCurve(X, NumNodes=50)[0]
        nodes, edges = found["NodePositions"], np.asarray(found["Edges"][0])
        return along(nodes[chain(edges)])

    return Points(train)


def chain(edges: Any) -> list[int]:
    """Nodes from one end of a curve to the other."""
    near: dict[int, list[int]] = {}
    for a, b in edges.tolist():
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    order = [next((node for node, beside in near.items() if len(beside) == 1), 0)]
    while ahead := [node for node in near[order[-1]] if node not in order[-2:-1] and node not in order]:
        order.append(ahead[0])
    return order


def minisom(dimension: int) -> Points:
    """MiniSom on as many nodes as the rule 5 √n of its documentation gives, started in the principal plane."""
    from minisom import MiniSom

    def train(X: Any) -> tuple[Any, Any]:
        side = max(2, round((5 * np.sqrt(len(X))) ** (1 / dimension)))
        shape = (side, side) if dimension == 2 else (1, side)
        model = MiniSom(*shape, X.shape[1], random_seed=0)
        model.pca_weights_init(X)
        model.train(X, 100 * len(X))
        places = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
        number = np.arange(len(places)).reshape(shape)
        down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
        across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
        weights = model.get_weights().reshape(len(places), -1)
        return between(weights, places if dimension == 2 else places[:, 1:], np.concatenate([down, across]))

    return Points(train)


PEERS: dict[str, Callable[[int], Any]] = {
    "Isomap": lambda dimension: Isomap(n_components=dimension),
    "LLE": lambda dimension: LocallyLinearEmbedding(n_components=dimension, random_state=0),
    "umap-learn": umap,
    "MiniSom": minisom,
    "pcurvepy2": pcurvepy2,
    "elpigraph": elpigraph,
}
ONLY_CURVES = ("pcurvepy2", "elpigraph")
