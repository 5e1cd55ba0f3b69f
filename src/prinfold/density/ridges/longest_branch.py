"""The longest branch of the ridge of a density, as a start for a curve."""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.recipes import DensityRecipe
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.density.ridges.mean_shift import STEPS, Flow, select_ridge_rows
from prinfold.density.ridges.normals import NORMALS
from prinfold.density.row_spaces import SPACES
from prinfold.exceptions import Advice, InvalidDataError, Message

_MAX_ITER, _TOL, _MIN_GAP, _NEIGHBORS = 200, 1e-4, 0.05, 30
_MOST_VERTICES = 200
"""Settings of the flow: as for a density ridge, but that a start need not be exact; and most points of the start."""


def ridge_path(X: FloatArray, weight: FloatArray) -> FloatArray:
    """(m, D) points along the longest branch of the density ridge of rows (n, D) with weights (n,); D ≥ 2."""
    if X.shape[1] == 1:
        words = "a start from the ridge needs two columns or more, but there is 1"
        raise InvalidDataError(Message(words, Advice("init", "pca")))
    space = SPACES["flat"](X)
    made = DensityRecipe(None, "wide_likelihood", None, None).make(X, weight, 1, space)
    flow = Flow(
        made.density,
        1,
        NORMALS["inverse_covariance"](X, _NEIGHBORS),
        newton=STEPS["newton"],
        max_iter=_MAX_ITER,
        tol=_TOL,
        min_gap=_MIN_GAP,
        box=np.stack([X.min(axis=0), X.max(axis=0)]),
        sphere=space.round,
        edge=made.edge,
    )
    found = flow(X)
    graph = RidgeGraph.of(flow, found.only(select_ridge_rows(found)))
    longest = graph.points[: int(graph.latent.counts[0])]
    return np.asarray(longest[np.unique(np.linspace(0, len(longest) - 1, _MOST_VERTICES).astype(int))])
