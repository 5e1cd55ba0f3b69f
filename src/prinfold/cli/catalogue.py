"""Methods by the names that one types: every estimator of a surface in the register."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from prinfold.methods import METHODS, manifolds

ALIASES = {each.short: each.name.lower() for each in METHODS.values() if each.short}
"""Shorter names."""


def methods() -> dict[str, Any]:
    """Every estimator that fits one surface, by its name in small letters."""
    return {each.name.lower(): each.cls for each in sorted(manifolds(), key=lambda each: each.name)}


@cache
def settings() -> frozenset[str]:
    """Settings that some method has."""
    return frozenset(name for cls in methods().values() for name in inspect.signature(cls).parameters)
