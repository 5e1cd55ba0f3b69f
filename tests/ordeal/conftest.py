"""The ordeal calls functions that write files: each test does so in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call writes beside itself is not left in the checkout."""
    monkeypatch.chdir(tmp_path)
