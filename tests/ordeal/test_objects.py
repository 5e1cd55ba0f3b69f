"""Verbs of public objects that are no estimators refuse by name what they cannot use."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from prinfold import GTM, SOM, UKR, DensityRidge, GTMMixture, choose, compare, datasets, latent
from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.densities import KernelDensity
from prinfold.density.mixtures import MixtureDensity, RatioDensity
from tests.ordeal.settings import MAKERS, OWN_CODE, recipes
from tests.ordeal.trial import NAMED

X, WEIGHT = np.random.default_rng(0).normal(size=(16, 3)), np.ones(16)
KERNELS = KernelDensity(X, WEIGHT, 0.5)


def _settings(**settings: Any) -> Callable[[], Any]:
    return lambda: choose(X, {"width": (0.7, 1.0)}, model=GTM(nodes=5, basis=3, max_iter=3, **settings))


OBJECTS: dict[str, Callable[[], Any]] = {
    "kernels": lambda: KERNELS,
    "kernels of several widths": lambda: AdaptiveDensity(X, WEIGHT, 0.5 * WEIGHT),
    "mixture": lambda: MixtureDensity(np.full(2, 0.5), X[:2], np.stack([np.eye(3)] * 2)),
    "ratio": lambda: RatioDensity(KERNELS, KERNELS),
    "true curve": lambda: datasets.make_circle(7).surface,
    "network": lambda: datasets.line_network("roads", X[:12].reshape(4, 3, 3)[:, :2]),
    "choice": _settings(),
    "comparison": lambda: compare(X, ["PCA"], n_components=1, folds=2),
    "line": lambda: latent.line(5),
    "torus": lambda: latent.torus(4, 3),
    "sphere": lambda: latent.Sphere(12),
    "points": lambda: latent.Points(X[:, :2]),
    "hexagons": lambda: SOM(nodes=(4, 3), grid="hexagonal", max_iter=2).fit(X).latent_,
    "charts": lambda: GTMMixture(max_iter=2).fit(X).latent_,
    "branches": lambda: DensityRidge(max_iter=3).fit(X).latent_,
    "cloud": lambda: UKR(max_iter=2).fit(X).latent_,
    **{
        name: lambda name=name: recipes()[name]()  # type: ignore[misc]
        for name in ("Schedule", "SmoothingSpline", "LocalLinear", "KernelSmoother", "ElasticNetBasis", "Densitometer")
    },
    **{
        name: lambda name=name: recipes()[name]()  # type: ignore[misc]
        for name in ("AlignedNoise", "DiagonalNoise", "StudentNoise", "VaryingNoise", "Online", "Incremental")
    },
    **{
        name: lambda name=name: recipes()[name](3)  # type: ignore[misc]
        for name in ("GaussianBasis", "HarmonicBasis", "LowRankNoise")
    },
    "GaussianProcess": recipes()["GaussianProcess"],
    "Contour": lambda: recipes()["Contour"](0.9),
}


def _plain(thing: Any, argument: str) -> Any:
    """An argument that a verb can use; None where only the package itself has one."""
    found = {
        "frame": lambda: np.eye(3)[:, : thing.n_features],
        "X": lambda: X[:5, : getattr(thing, "n_features", 3)],
        "U": lambda: np.zeros((5, 1)),
        "at": lambda: KERNELS.derivatives(X[:5]),
        **dict.fromkeys(("Z", "A", "B", "mean"), lambda: thing.nodes[:3]),
        "E": lambda: thing.embed(thing.nodes[:3]),
        "weight": lambda: np.full((3, thing.n_nodes), 1.0) if hasattr(thing, "n_nodes") else WEIGHT,
        "places": lambda: thing.nodes[:2, 1:],
        "ask": lambda: lambda j, Z: Z,
        "shape": lambda: (3,) * thing.n_columns,
        "axes": lambda: [0],
        "latent": lambda: latent.grid(4, 3),
        **dict.fromkeys(("resolution", "n", "j", "index", "epoch", "n_rows", "seen", "new", "most"), lambda: 1),
        **dict.fromkeys(("first", "last", "integration_time"), lambda: 2.0),
        "rng": lambda: np.random.default_rng(0),
        "rows": lambda: X,
        "density": lambda: WEIGHT,
        "lengths": lambda: np.ones((4, 2)),
        "name": lambda: "width",
    }
    return found[argument]() if argument in found else None


def _calls(thing: Any) -> Iterator[tuple[str, str, str, Callable[[], Any]]]:
    """Verb, argument, name of the hostile value, and the call; where only the package has the others, all get it."""
    for verb, member in inspect.getmembers(type(thing), inspect.isfunction):
        parameters = dict(list(inspect.signature(member).parameters.items())[1:]) if not verb.startswith("_") else {}
        needed = [name for name, each in parameters.items() if each.default is each.empty]
        for argument in parameters:
            for value, make in MAKERS.items():
                if argument in {"write", "sampling", "ask"} and value in OWN_CODE:
                    continue
                usual = {name: _plain(thing, name) for name in needed if name != argument}
                given = {name: make() if each is None else each for name, each in usual.items()} | {argument: make()}
                yield verb, argument, value, lambda verb=verb, given=given: getattr(thing, verb)(**given)


def _wrong_ends(thing: Any) -> Iterator[str]:
    for verb, argument, value, call in _calls(thing):
        try:
            call()
        except NAMED as error:
            if not str(error).strip():
                yield f"{verb}({argument}={value}): no message"
        except Exception as error:
            yield f"{verb}({argument}={value}): {type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OBJECTS)
def test_verbs_of_objects_end_well_whatever_they_are_given(name: str) -> None:
    thing = OBJECTS[name]()
    assert list(_wrong_ends(thing)) == []


def test_every_public_recipe_with_verbs_is_among_them() -> None:
    held = {type(make()).__name__ for name, make in OBJECTS.items() if name in recipes()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = held | {type(OBJECTS[name]()).__name__ for name in set(OBJECTS) - set(recipes())}
    with_verbs = {
        name
        for name, each in recipes().items()
        if any(not verb.startswith("_") for verb, _ in inspect.getmembers(each, inspect.isfunction))
    }
    # Interfaces, results that are plain numbers, and the callback, whose verbs are called by fits alone.
    assert sorted(with_verbs - tried - {"Checkpoint", "Density", "Derivatives", "LatentSpace"}) == []


def test_a_raw_error_of_a_verb_is_noticed() -> None:
    class Root:
        def of(self, share: float) -> float:
            return share**0.5

    assert "of(share=text): TypeError" in "".join(_wrong_ends(Root()))
