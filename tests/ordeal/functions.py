"""Hostile calls of public functions: a plain call of each, and others in its arguments' place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.house import public_functions
from tests.ordeal.settings import MAKERS, OWN_CODE
from tests.ordeal.tables import PLAIN, build, recipes

_ELSEWHERE = "datasets.load_"
"""Functions that read files of their own, or ask for them over the network."""

_TABLES = {"X", "Z", "x", "counts", "latent", "projected", "nodes", "vertices", "truth", "jacobian", "tangents"}
_MODELS = {"model", "estimator"}


@cache
def functions() -> dict[str, Any]:
    """Public functions by their names within the package."""
    named = {name.removeprefix("prinfold."): each for name, each in public_functions().items()}
    return {name: each for name, each in named.items() if not name.startswith(_ELSEWHERE)}


# ---------------------------------------------------------------------------------------------------------- plain calls


def _rows() -> Any:
    return build(PLAIN).X


def _fitted(name: str, **settings: Any) -> Any:
    import prinfold

    return getattr(prinfold, name)(**settings).fit(_rows(), *([np.arange(16) % 2] if name == "GTMClassifier" else []))


def _cells() -> Any:
    import pandas as pd
    from anndata import AnnData

    import prinfold

    made = AnnData(_rows(), obs=pd.DataFrame({"batch": ["a", "b"] * 8}, index=[f"cell{i}" for i in range(16)]))
    made.obsm["X_pca"] = _rows()
    prinfold.anndata.trajectory(made, prinfold.PrincipalCurve(max_iter=3), root=0)
    return made


def _counts() -> Any:
    return np.random.default_rng(0).poisson(30.0, (40, 3)).astype(float)


def _gene_tests() -> Any:
    from prinfold import expression

    return expression.association(_counts(), pseudotime=np.arange(40.0), df=2)


def _two_lineages(counts: Any) -> Any:
    from prinfold.expression.lineages import Lineages

    times, first = np.arange(len(counts), dtype=float), np.arange(len(counts)) % 2 == 0
    return Lineages(times, np.stack([first, ~first], axis=1).astype(float))


def _choice() -> Any:
    import prinfold

    return prinfold.choose(_rows(), {"width": (0.7, 1.0)}, model=prinfold.GTM(nodes=5, basis=3, max_iter=3))


def _comparison() -> Any:
    import prinfold

    return prinfold.compare(_rows(), ["PCA"], n_components=1, folds=2)


def _file() -> Path:
    """A model file in the folder of the process."""
    from prinfold import save

    save(_fitted("GTM", nodes=5, basis=3, max_iter=3), path := Path("given.prinfold").absolute())
    return path


OBJECTS: dict[str, Callable[[], Any]] = {
    "a GTM": lambda: _fitted("GTM", nodes=5, basis=3, max_iter=3),
    "a file": _file,
    "a curve": lambda: _fitted("PrincipalCurve", max_iter=3),
    "a SOM": lambda: _fitted("SOM", nodes=4, max_iter=3),
    "a PPS": lambda: _fitted("PPS", nodes=5, basis=3, max_iter=3),
    "a UKR": lambda: _fitted("UKR", max_iter=3),
    "a mixture": lambda: _fitted("GTMMixture", max_iter=3),
    "a hierarchy": lambda: _fitted("GTMHierarchy"),
    "a monitor": lambda: _fitted("SurfaceMonitor"),
    "a classifier": lambda: _fitted("GTMClassifier"),
    "residuals": lambda: __import__("prinfold").select_kmm(_rows()),
    "a flat ridge": lambda: __import__("prinfold").DensityRidge(max_iter=3).fit(_rows()[:, :2]),
    "cells": _cells,
    "counts": _counts,
    "gene tests": _gene_tests,
    "two lineages": lambda: _two_lineages,
    "a choice": _choice,
    "a comparison": _comparison,
    "bands": lambda: _fitted("DensityRidge", max_iter=3).bands(3),
    "a selection": lambda: _fitted("PPS", nodes=5, basis=3, max_iter=3, clamping="select").selection_,
    "a mesh": lambda: _fitted("GTM", nodes=5, basis=3, max_iter=3).mesh(),
    "a domain": lambda: _fitted("GTM", nodes=5, basis=3, max_iter=3).latent_.domain,
    "a circle": lambda: __import__("prinfold").datasets.make_circle(16).surface,
    "rows": _rows,
    "plane": lambda: _rows()[:, :2],
    "line": lambda: _rows()[:, :1],
    "times": lambda: np.arange(16.0),
    "groups": lambda: np.arange(16) % 4,
    "times of cells": lambda: np.arange(40.0),
    "samples": lambda: np.arange(40) % 4,
    "conditions": lambda: (np.arange(40) % 4) // 2,
    "tangents at": lambda: lambda Z: np.ones((len(Z), 3, 2)),
    "tangents": lambda: np.ones((16, 3, 1)),
    "unit tangents": lambda: np.eye(3)[np.arange(16) % 3],
    "faces": lambda: np.array([[0, 1, 2], [1, 2, 3]]),
    "edges": lambda: np.array([[0, 1], [1, 2]]),
    "segments": lambda: np.random.default_rng(0).normal(size=(4, 2, 3)),
    "fractions": lambda: np.full((4, 3), 1 / 3),
    "methods": lambda: ["PCA"],
    "kernel manifolds": lambda: ["UKR", "KMM"],
    "square": lambda: (4, 4),
}
"""Arguments of plain calls by name, made anew for each."""

_ARGUMENTS: dict[str, str] = {
    "X": "rows",
    "x": "line",
    "n": "7",
    "around": "7",
    "along": "7",
    "shape": "square",
    "name": "=corner",
    "n_samples": "7",
    "noise": "0.5",
    "noise_kind": "=isotropic",
    "rng": "0",
    "counts": "counts",
    "pseudotime": "times",
    "vertices": "rows",
    "projected": "rows",
    "model": "a GTM",
    "estimator": "a GTM",
    "adata": "cells",
}
"""Arguments that a function cannot do without, where it says nothing else."""

PLAIN_CALLS: dict[str, dict[str, str]] = {
    "anndata.confounders": {"columns": "=batch"},
    "choose": {"model": "a GTM"},
    "compare": {"methods": "methods", "n_components": "1", "folds": "2"},
    "datasets.line_network": {"segments": "segments"},
    "datasets.path_lengths": {"fractions": "fractions", "flow": "=annular"},
    "datasets.simulate": {"surface": "a circle"},
    "denoise_signal": {"x": "times"},
    "explore": {"X": "rows"},
    "expression.association": {"pseudotime": "times of cells", "df": "2"},
    "expression.condition_difference": {"pseudotime": "times of cells", "condition": "conditions", "sample": "samples"},
    "expression.fork_difference": {"recipe": "two lineages", "df": "2"},
    "load": {"path": "a file"},
    "metrics.align": {"Z": "plane", "truth": "plane", "domain": "a domain"},
    "metrics.angle_sum": {"tangents": "unit tangents"},
    "metrics.area": {"faces": "faces"},
    "metrics.confounding": {"branch": "groups", "column": "times"},
    "metrics.continuity": {"Z": "line"},
    "metrics.grid_error": {"edges": "edges"},
    "metrics.nearest_node_error": {"nodes": "rows"},
    "metrics.orthogonality": {"jacobian": "tangents"},
    "metrics.roughness": {"mesh": "a mesh", "jacobian": "tangents at", "domain": "a domain"},
    "metrics.self_consistency": {"latent": "line"},
    "metrics.trustworthiness": {"Z": "line"},
    "plot.along": {"model": "a curve"},
    "plot.candidates": {"model": "a UKR"},
    "plot.choice": {"choice": "a choice"},
    "plot.comparison_front": {"comparison": "a comparison"},
    "plot.contributions": {"model": "a monitor"},
    "plot.dendrogram": {"model": "a curve"},
    "plot.gene_curves": {"tests": "gene tests"},
    "plot.hierarchy": {"model": "a hierarchy"},
    "plot.images": {"shape": "pair of thirds"},
    "plot.landscape": {"model": "a classifier"},
    "plot.latent_density": {"model": "a UKR"},
    "plot.mixture": {"model": "a mixture"},
    "plot.monitor": {"model": "a monitor"},
    "plot.posterior": {"x": "one row"},
    "plot.residuals": {"model": "residuals"},
    "plot.ridge": {"model": "a flat ridge"},
    "plot.ridge_bands": {"bands": "bands"},
    "plot.selection": {"model": "a selection"},
    "plot.u_matrix": {"model": "a SOM"},
    "save": {"path": "=kept.prinfold"},
    "select_kmm": {},
}
"""What a plain call of a function gives beside, or in place of, arguments that all functions share."""

OBJECTS |= {"pair of thirds": lambda: (3, 1), "one row": lambda: _rows()[:1]}


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of a function, but for options that it hands on."""
    parameters = inspect.signature(functions()[name]).parameters.items()
    return {key: each for key, each in parameters if each.kind is not each.VAR_KEYWORD}


def call(name: str, arguments: dict[str, Any]) -> Any:
    """What a function answers to arguments by name; ``*shape`` is given as one, and handed over one by one."""
    rest = {key for key, each in parameters_of(name).items() if each.kind is each.VAR_POSITIONAL}
    several = [each for key in rest & arguments.keys() for each in _entries(arguments[key])]
    return functions()[name](*several, **{key: each for key, each in arguments.items() if key not in rest})


def _entries(value: Any) -> Any:
    return value if isinstance(value, tuple | list) else [value]


def plain_call(name: str) -> dict[str, Any]:
    """A call that a function answers."""
    needed = [key for key, each in parameters_of(name).items() if each.default is inspect.Parameter.empty]
    own = PLAIN_CALLS.get(name, {})
    return {"function": name, "arguments": {key: _ARGUMENTS[key] for key in needed if key not in own} | own}


# -------------------------------------------------------------------------------------------------------- hostile calls


def changed_calls(name: str) -> Iterator[dict[str, Any]]:
    """The plain call with one argument changed, to every value there is."""
    plain = plain_call(name)
    for key in parameters_of(name):
        for value in _values(key):
            yield plain | {"arguments": plain["arguments"] | {key: value}}


def _values(parameter: str) -> list[str]:
    own = OWN_CODE if parameter in {"sampling", "recipe", "latent_distance", "jacobian"} else set()
    return [each for each in MAKERS if each not in own]


def function_calls() -> st.SearchStrategy[dict[str, Any]]:
    """A public function with hostile arguments in the place of one or two of a plain call."""
    return st.sampled_from(sorted(functions())).flatmap(_calls_of)


def _calls_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    plain = plain_call(name)
    some = st.lists(st.sampled_from(sorted(parameters_of(name))), min_size=1, max_size=2, unique=True)
    return some.flatmap(lambda keys: st.fixed_dictionaries({key: _drawn(key) for key in keys})).map(
        lambda others: plain | {"arguments": plain["arguments"] | others}
    )


def _drawn(parameter: str) -> st.SearchStrategy[Any]:
    drawn: st.SearchStrategy[Any] = st.sampled_from(_values(parameter))
    if parameter in _TABLES:
        drawn = recipes() | drawn
    if parameter in _MODELS:
        drawn = st.just("a model") | drawn
    return drawn
