"""What is said where there is no tree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from prinfold import PrincipalTree, datasets
from prinfold.exceptions import DegenerateWarning, StructureWarning


@pytest.mark.parametrize("columns", [3, 10, 30])
def test_a_blob_is_said_to_be_one(columns: int) -> None:
    X = np.random.default_rng(0).normal(size=(600, columns))
    with pytest.warns(StructureWarning, match="no tree stands out from the noise"):
        PrincipalTree().fit(X)


@pytest.mark.parametrize("columns", [3, 10])
def test_a_sheet_is_said_to_be_one(columns: int) -> None:
    rng = np.random.default_rng(0)
    flat = np.hstack([rng.uniform(-1, 1, (1000, 2)), np.zeros((1000, columns - 2))])
    with pytest.warns(StructureWarning, match="look like a surface rather than a tree"):
        PrincipalTree().fit(flat + 0.1 * rng.normal(size=flat.shape))


@pytest.mark.parametrize("shape", ["y", "four"])
@pytest.mark.parametrize("columns", [3, 10, 50])
def test_nothing_is_said_of_a_tree(shape: str, columns: int) -> None:
    data = datasets.make_tree(600, 0.1, rng=2, topology=shape, n_features=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PrincipalTree().fit(data.X).doubt_ == ""


def test_equal_rows_are_a_point() -> None:
    with pytest.warns(DegenerateWarning, match="all rows are equal"):
        model = PrincipalTree().fit(np.ones((10, 3)))
    np.testing.assert_allclose(model.project(np.zeros((2, 3))), 1.0)
