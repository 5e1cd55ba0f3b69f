"""Numbers of Meinicke et al. (2005) on where latent points begin, that come out again."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import datasets
from prinfold.exceptions import DataNotFoundError
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.starts import choose_start
from prinfold.numerics.radial_kernels import PROFILES


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "printed"), [("gaussian", 83.53), ("quartic", 83.62)])
def test_the_start_for_handwritten_twos(kernel: str, printed: float) -> None:
    """Section 4.2: of LLE with many neighbourhoods and PCA, the error of the best after scaling; here 12 neighbours."""
    try:
        X = datasets.load_usps_twos().X
    except DataNotFoundError as error:
        pytest.skip(str(error))
    Y = np.unique(X, axis=0)
    Y -= Y.mean(axis=0)
    weight, profile = np.ones(len(Y)), PROFILES[kernel]
    objective = KernelRegression(make_target(Y), weight, profile)
    table = choose_start(
        Y, weight, 2, lambda Z: objective.value(Z).value, profile, sizes=(8, 10, 11, 12, 13, 14, 16)
    ).candidates
    assert table.neighbors[table.chosen] == 12
    assert table.errors[table.chosen] == pytest.approx(printed, abs=0.02)
    assert table.errors[0] == pytest.approx(89.4, abs=0.1)
