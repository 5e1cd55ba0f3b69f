"""Settings for the theorems."""

from __future__ import annotations

import pytest

from prinfold.pps import clamping_choice as selection


@pytest.fixture(autouse=True)
def _small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve fits instead of a hundred to select a clamping: what holds for a few holds for many."""
    monkeypatch.setattr(selection, "_CLAMPINGS", (0.5, 1.0))
    monkeypatch.setattr(selection, "_REGULARIZATION_FACTORS", (0.3, 1.0))
    monkeypatch.setattr(selection, "_N_FOLDS", 2)
