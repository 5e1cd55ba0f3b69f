"""Methods to compare: every manifold of the register, with a few settings each, and baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.decomposition import PCA, KernelPCA

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.methods import Method, manifolds
from prinfold.select.pipelines import last_step
from prinfold.select.surfaces import NeighborIsomap


class Candidate(NamedTuple):
    """One row of a comparison: the method's name, what sets it apart in words, and the model, not fitted yet."""

    method: str
    settings: str
    model: Any

    @property
    def name(self) -> str:
        """Method and settings in one."""
        return f"{self.method}({self.settings})" if self.settings else self.method


_MOST_ROWS = 500
"""Rows whose distances decide how wide the kernel of KernelPCA is."""

_RIDGE = 0.1
"""Penalty of KernelPCA's inverse, which is a kernel ridge regression."""


def _kernel_pca(n_components: int, X: FloatArray) -> KernelPCA:
    """Gaussian kernels as wide as the median distance of rows; of rows all alike any width will do."""
    few = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(int))]
    scale = float(np.median(pdist(few, "sqeuclidean"))) if len(few) > 1 else 0.0
    gamma = 1.0 / scale if scale > 0 else 1.0
    return KernelPCA(n_components, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=_RIDGE)


BASELINES: dict[str, Callable[[int, FloatArray], Any]] = {
    "PCA": lambda n_components, X: PCA(n_components, svd_solver="full"),  # others square the place of the rows
    "KernelPCA": _kernel_pca,
    "Isomap": lambda n_components, X: NeighborIsomap(n_components),
}
"""Name → a baseline, given the dimension and the rows."""


def candidates_of(methods: Any, n_components: int, X: FloatArray, seed: int) -> tuple[Candidate, ...]:
    """Candidates of a comparison, given by names, objects, or pairs of a name and an object."""
    listed: list[Candidate] = []
    names: set[str] = set()
    for given in _expand(methods, n_components):
        if not isinstance(given, str):
            listed.append(_as_candidate(given))
        elif given not in names:  # who is named twice takes part once
            names.add(given)
            listed += _method_candidates(given, n_components, X)
    if not listed:
        everyone = Advice("methods", "all", "say {}")
        raise InvalidParameterError(Message("methods is empty", "name some", "give estimators", everyone))
    return tuple(each._replace(model=_set_seeds(each.model, seed)) for each in _number_repeats(listed))


def _number_repeats(listed: list[Candidate]) -> list[Candidate]:
    """Candidates with a number where a name has been there before."""
    seen: Counter[str] = Counter()
    found = []
    for one in listed:
        seen[one.name] += 1
        number = [f"no. {seen[one.name]}"] if seen[one.name] > 1 else []
        found.append(one._replace(settings=", ".join([*([one.settings] if one.settings else []), *number])))
    return found


def other_dimension(model: Any, n_components: int, fitted: int | None = None) -> int | None:
    """The dimension that a model has by itself, where it is another than the one compared; None where it is not.

    That of the latent space that was ``fitted`` goes before the parameter, which circles and spheres leave aside.
    """
    last = last_step(model)
    own = fitted or getattr(last, "_dimension", None) or last.get_params(deep=False).get("n_components")
    return int(own) if isinstance(own, int | np.integer) and own != n_components else None


def _expand(methods: Any, n_components: int) -> list[Any]:
    if isinstance(methods, str):
        if methods == "all":
            tried = sorted(each.name for each in manifolds() if each.compared and _can_have(each, n_components))
            return [*tried, *BASELINES]
        return [methods]
    if isinstance(methods, Mapping):
        return list(methods.items())
    return list(methods) if isinstance(methods, Iterable) else [methods]


def _can_have(method: Method, n_components: int) -> bool:
    """Whether a method fits surfaces of that dimension: some, such as curves, have one of their own."""
    return method.cls._dimension in {None, n_components}


def refuse_unknown(name: str) -> None:
    """Say of a word that is no method or baseline what there is."""
    known = [*sorted(each.name for each in manifolds()), *BASELINES]
    if name not in known:
        raise InvalidParameterError(f"there is no method {name!r} to compare; there are {', '.join(known)}, and 'all'")


def _method_candidates(name: str, n_components: int, X: FloatArray) -> list[Candidate]:
    if name in BASELINES:
        return [Candidate(name, "", BASELINES[name](n_components, X))]
    refuse_unknown(name)
    known = {each.name: each for each in manifolds()}
    listed = []
    for settings in known[name].compared_settings:
        model = known[name].cls()
        if "n_components" in model.get_params(deep=False):
            model.set_params(n_components=n_components)
        words = ", ".join(
            f"{key}={value if isinstance(value, str) else f'{value:g}'}" for key, value in settings.items()
        )
        listed.append(Candidate(name, words, model.set_params(**settings)))
    return listed


def _as_candidate(given: Any) -> Candidate:
    name, model = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "transform"):
        raise InvalidParameterError(
            f"methods holds {model!r}, but it takes names, estimators with fit, transform and inverse_transform, or "
            "pairs of a name and an estimator"
        )
    if name is not None:
        return Candidate(str(name), "", clone(model))
    words = str(clone(model)).replace("\n", " ")
    inside = " ".join(words[words.find("(") + 1 : words.rfind(")")].split()) if "(" in words else ""
    return Candidate(type(model).__name__, inside, clone(model))


def _set_seeds(model: Any, seed: int) -> Any:
    """A copy of a model with a seed wherever it has none, so that folds differ by their rows only."""
    by_chance = [
        name
        for name, value in model.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    ]
    return clone(model).set_params(**dict.fromkeys(by_chance, seed)) if by_chance else model
