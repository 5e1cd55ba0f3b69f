"""Small fitted models, one for each kind of latent space, shared by the tests of the pictures."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import GTM, datasets


@pytest.fixture(scope="session")
def rows() -> dict[str, np.ndarray]:
    flat = datasets.make_ridge(100, rng=0).X
    curve = datasets.make_half_circle(80, rng=0).X
    ball = datasets.make_sphere(150, rng=0).X
    pipe = datasets.make_pipe_flow(90, rng=0).X
    return {
        "line": curve,
        "circle": datasets.make_circle(80, rng=0).X,
        "grid": flat,
        "cylinder": ball,
        "torus": datasets.make_torus(150, rng=0).X,
        "sphere": ball,
        "points": flat,
        "space": pipe,
    }


@pytest.fixture(scope="session")
def models(rows: dict[str, np.ndarray]) -> dict[str, GTM]:
    given = {
        "line": GTM(1, nodes=12, basis=5),
        "circle": GTM(1, nodes=12, basis=5, latent="circle"),
        "grid": GTM(nodes=7, basis=4),
        "cylinder": GTM(nodes=(8, 5), basis=(5, 3), latent="cylinder"),
        "torus": GTM(nodes=(9, 8), basis=(5, 5), latent="torus"),
        "sphere": GTM(nodes=60, latent="sphere"),
        "points": GTM(nodes=np.random.default_rng(0).uniform(-1, 1, size=(40, 2)), basis=4),
        "space": GTM(3, nodes=4, basis=2),
    }
    # A fixed few iterations without a warning: the pictures are under test, not the fits.
    for model in given.values():
        model.set_params(max_iter=8, tol=0.0, regularization=0.1, random_state=0)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: model.fit(rows[name]) for name, model in given.items()}
