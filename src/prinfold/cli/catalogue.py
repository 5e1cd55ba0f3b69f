"""Which methods there are: every public estimator of a surface, so that a new one is found by itself."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

ALIASES = {"ridge": "densityridge", "mixed": "mixedgtm", "curve": "principalcurve", "polygonal": "polygonalcurve"}
"""Shorter names."""


def methods() -> dict[str, Any]:
    """Every estimator that fits one surface, by its name in small letters."""
    from prinfold import methods as estimators
    from prinfold.base.principal_manifold import PrincipalManifold

    classes = [getattr(estimators, name) for name in estimators.__all__]
    return {each.__name__.lower(): each for each in classes if issubclass(each, PrincipalManifold)}


@cache
def settings() -> frozenset[str]:
    """Settings that some method has."""
    return frozenset(name for cls in methods().values() for name in inspect.signature(cls).parameters)
