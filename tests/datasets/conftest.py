"""Where the real data are, if they are anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SIBLING = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data; tests that ask for it are skipped where there is none."""
    for place in (os.environ.get("PRINFOLD_DATA"), SIBLING):
        if place and Path(place).is_dir():
            return Path(place)
    pytest.skip("real data: neither PRINFOLD_DATA nor ../shared/data is there")
