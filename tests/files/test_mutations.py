"""A file that is consistent but wrong is refused by the name of the field, or its model answers as if nothing was."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from prinfold import (
    GTM,
    UKR,
    DensityRidge,
    GTMClassifier,
    GTMHierarchy,
    GTMMixture,
    GTMRegressor,
    KernelDensityClassifier,
    ModeClustering,
    NearestSurfaceClassifier,
    Online,
    SemiLinearGTM,
    SurfaceMonitor,
    load,
    save,
)
from prinfold.exceptions import CorruptModelFileError, ModelFileError
from prinfold.methods import METHODS
from tests.files.mutations import Mutant, dismantle, forge, mutants
from tests.properties.cases import CASES, QUICK, cloud

pytestmark = pytest.mark.filterwarnings("ignore")

X = cloud(60)
CLASSES = np.where(X[:, 0] > 0, "right", "left")
FEW = {"max_iter": 4, "tol": 0.0}
SMALL = GTM(nodes=5, basis=3, **FEW)


def _hierarchy() -> Any:
    made = GTMHierarchy(GTMMixture(2, SMALL, n_init=1, random_state=0, **FEW)).fit(X)
    return made.split((0,), X, mixture=GTMMixture(1, SMALL, n_init=1, random_state=0, **FEW))


def _stream(noise: str) -> Any:
    return GTM(nodes=5, basis=3, noise=noise, trainer=Online(start=30), random_state=0).partial_fit(X)


OTHERS: dict[str, Callable[[], Any]] = {
    "SemiLinearGTM": lambda: SemiLinearGTM(SMALL).fit(X),
    "GTMHierarchy": lambda: GTMHierarchy(GTMMixture(2, SMALL, n_init=1, random_state=0, **FEW)).fit(X),
    "GTMClassifier": lambda: GTMClassifier(SMALL).fit(X, CLASSES),
    "GTMRegressor": lambda: GTMRegressor(SMALL).fit(X, X[:, 0]),
    "ModeClustering": lambda: ModeClustering().fit(X),
    "NearestSurfaceClassifier": lambda: NearestSurfaceClassifier(SMALL).fit(X, CLASSES),
    "KernelDensityClassifier": lambda: KernelDensityClassifier().fit(X, CLASSES),
    "SurfaceMonitor": lambda: SurfaceMonitor(SMALL, n_simulated=50).fit(X),
    "GTM-stream": lambda: _stream("isotropic"),
    "GTM-stream-student": lambda: _stream("student"),
    "GTM-stream-diagonal": lambda: _stream("diagonal"),
    "DensityRidge-sphere": lambda: DensityRidge(space="sphere", **FEW).fit(10 * X[:, :2]),
    "DensityRidge-columns": lambda: DensityRidge(bandwidth=np.full(5, 0.3), **FEW).fit(X),
    "DensityRidge-neighbors": lambda: DensityRidge(normal="neighbors", **FEW).fit(X),
    "ModeClustering-sphere": lambda: ModeClustering(space="sphere").fit(10 * X[:, :2]),
    "UKR-features": lambda: UKR(1, feature_kernel="rbf", preimage=True, init="pca", **FEW).fit(X),
    "scaled": lambda: make_pipeline(StandardScaler(), PCA(3, whiten=True), clone(SMALL)).fit(X),
    "scaled robustly": lambda: make_pipeline(RobustScaler(), MaxAbsScaler(), Normalizer(), clone(SMALL)).fit(X),
    "scaled to a range": lambda: make_pipeline(SimpleImputer(), MinMaxScaler(), clone(SMALL)).fit(X),
    "transformed": lambda: make_pipeline(PowerTransformer(), QuantileTransformer(n_quantiles=9), clone(SMALL)).fit(X),
}
MANIFOLDS = {case.name: case for case in CASES}
NAMES = [*MANIFOLDS, *OTHERS]


def test_every_method_is_here() -> None:
    assert set(METHODS) <= set(NAMES)


@cache
def fitted(name: str) -> Any:
    return OTHERS[name]() if name in OTHERS else MANIFOLDS[name].make(max_iter=4).fit(X)


def answers(model: Any) -> dict[str, Any]:
    """Numbers that a model gives for rows, and for places on its surface."""
    rows = (10 * X[:, :2] if model.n_features_in_ == 2 else X)[:6]
    verbs = (
        "transform",
        "predict",
        "predict_proba",
        "decision_function",
        "score_samples",
        "project",
        "responsibilities",
    )
    found = {verb: getattr(model, verb)(rows) for verb in verbs if hasattr(model, verb)}
    if hasattr(model, "inverse_transform") and "transform" in found and not hasattr(model, "steps"):
        found["inverse_transform"] = model.inverse_transform(found["transform"])
    return {verb: np.asarray(value) for verb, value in found.items()}


def fault_of(mutant: Mutant, path: Path, expected: dict[str, Any]) -> str:
    """What is wrong with how an altered file is treated; empty where nothing is."""
    try:
        model = load(forge(path, mutant.body, mutant.arrays))
    except ModelFileError as error:
        named = any(name in str(error) for name in mutant.names[-2:])
        return "" if named else f"refused without the name of the field: {error}"
    except Exception as error:
        return f"loading raised {type(error).__name__}: {error}"
    try:
        found = answers(model)
    except Exception as error:
        return f"{type(error).__name__} after loading: {error}"
    wrong = [verb for verb, value in expected.items() if not np.array_equal(found.get(verb), value)]
    return f"other answers: {wrong}" if wrong else ""


def faults(name: str, path: Path, every: int = 1) -> list[str]:
    save(fitted(name), path)
    body, arrays = dismantle(path)
    expected = answers(load(path))
    for verb, value in expected.items():
        assert value.dtype.kind not in "fc" or np.isfinite(value).all(), verb
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, mutant in enumerate(mutants(body, arrays)):
            if i % every == 0 and (fault := fault_of(mutant, path, expected)):
                found.append(f"{mutant.field}, {mutant.change}: {fault[:160]}")
    return found


def _marked(name: str) -> Any:
    slow = name in MANIFOLDS and MANIFOLDS[name].slow
    return pytest.param(name, marks=pytest.mark.slow if slow else pytest.mark.full)


@pytest.mark.parametrize("name", [name for name in NAMES if name in {*QUICK, *OTHERS}])
def test_wrong_parts_are_refused_by_name_or_change_nothing(name: str, tmp_path: Path) -> None:
    """A sample: the number is prime, so that over the methods every kind of change is met."""
    assert faults(name, tmp_path / "a.prinfold", every=97) == []


@pytest.mark.parametrize("name", [_marked(name) for name in NAMES])
def test_every_wrong_part_is_refused_by_name_or_changes_nothing(name: str, tmp_path: Path) -> None:
    assert faults(name, tmp_path / "a.prinfold") == []


def test_the_error_says_what_was_got_and_what_was_expected(tmp_path: Path) -> None:
    save(fitted("GTM"), tmp_path / "a")
    body, arrays = dismantle(tmp_path / "a")
    arrays["GTM.offset_"] = arrays["GTM.offset_"][:-1]
    forge(tmp_path / "b", body, arrays)
    words = r"GTM.offset_ in the file is an array of float64 of shape \(4,\), but must be .* \(n_features_in_ = 5\)$"
    with pytest.raises(CorruptModelFileError, match=words):
        load(tmp_path / "b")
