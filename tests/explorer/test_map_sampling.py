"""Maps of a kind that no page knows: read off points, and the page says how far off that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from prinfold import explore
from prinfold._typing import FloatArray
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.exceptions import UnsupportedInputError
from prinfold.explorer.decoders import decoder_notes, decoder_of
from prinfold.latent import Branches, LatentSpace, Sphere, grid, torus
from prinfold.loops import StopReason

pytestmark = pytest.mark.filterwarnings("ignore")


class Toy(PrincipalManifold):
    """A surface in three columns that is known by nothing but its verbs."""

    latent_: LatentSpace
    stop_reason_ = StopReason.CONVERGED
    n_features_in_ = 3

    def __init__(self, latent: Any = None, shape: Any = None) -> None:
        self.latent, self.shape = latent, shape

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Toy:
        self.latent_ = self.latent
        return self

    def transform(self, X: Any) -> FloatArray:
        raise NotImplementedError

    def _latent_of(self, table: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _point(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self.shape(Z))

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        step = 1e-6 * np.eye(Z.shape[1])
        return np.stack([(self.shape(Z + d) - self.shape(Z - d)) / 2e-6 for d in step], axis=2)


def sheet(Z: FloatArray) -> FloatArray:
    return np.stack([Z[:, 0], Z[:, 1], 0.5 * np.sin(3 * Z[:, 0]) * Z[:, 1]], axis=1)


def ring(Z: FloatArray) -> FloatArray:
    outer = 2.0 + np.cos(Z[:, 1])
    return np.stack([outer * np.cos(Z[:, 0]), outer * np.sin(Z[:, 0]), np.sin(Z[:, 1])], axis=1)


def ball(Z: FloatArray) -> FloatArray:
    return np.stack([2.0 * Z[:, 0], Z[:, 1] + 0.2 * Z[:, 2] ** 2, Z[:, 2]], axis=1)


def corner(Z: FloatArray) -> FloatArray:
    """Straight, then round a corner; a second branch farther on."""
    s = Z[:, 0]
    return np.stack([np.minimum(s, 1.0), np.maximum(s - 1.0, 0.0), np.where(s > 2.2, 1.0, 0.0)], axis=1)


_BRANCHES = Branches(np.array([2.0, 1.0]), np.array([False, False]), np.array([9, 5]), 0.5)
TOYS: dict[str, tuple[Any, Any]] = {
    "box": (grid(6, 6), sheet),
    "torus": (torus(6, 6), ring),
    "sphere": (Sphere(30), ball),
    "branches": (_BRANCHES, corner),
}


@pytest.mark.parametrize("name", TOYS)
def test_a_page_is_as_near_as_it_says(name: str, open_page: Callable[..., Any]) -> None:
    latent, shape = TOYS[name]
    model = Toy(latent, shape).fit()
    rng = np.random.default_rng(0)
    domain = latent.domain
    Z = rng.uniform(-1, 1, (60, latent.n_columns)) if name != "branches" else rng.uniform(0.0, 3.5, (60, 1))
    Z = np.concatenate([domain.retract(3.0 * Z if name == "torus" else Z), latent.nodes])
    page = explore(model, path=None)
    tab = open_page(page)
    found = np.array(tab.evaluate("zs => zs.map(z => window.prinfold.decode(z))", Z.tolist()))
    off = np.linalg.norm(found - model.inverse_transform(Z), axis=1).max()
    said = decoder_of(model)["error"]
    extent = np.linalg.norm(np.ptp(decoder_of(model)["points"], axis=0))
    assert off <= 1.05 * said * extent + 1e-12
    assert said < 1e-3
    assert "reads it off" in tab.locator(".pf-note").all_inner_texts()[-1]
    assert "a Toy" in decoder_notes(decoder_of(model), "Toy")[0]


def test_beyond_three_dimensions_there_is_a_refusal() -> None:
    model = Toy(grid(3, 3, 3, 3), lambda Z: Z[:, :3]).fit()
    with pytest.raises(UnsupportedInputError, match=r"a Toy with 4 latent columns .*draw it with plot"):
        explore(model, path=None)
