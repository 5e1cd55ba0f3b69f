"""Tables with far more columns than the surface has basis functions: places are found in the span of the surface."""

import numpy as np
import pytest
import scipy.sparse

from prinfold import GTM
from prinfold.gtm import lattice_refinement, posterior


def _wide_rows(n_rows: int = 80, n_columns: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n_rows, 1))
    column = np.arange(n_columns) / 40
    return a * np.sin(column) + b * np.cos(column) + 0.2 * a**2 + 0.05 * rng.normal(size=(n_rows, n_columns))


@pytest.fixture(scope="module")
def wide() -> tuple[GTM, np.ndarray]:
    X = _wide_rows()
    return GTM(nodes=6, basis=3, max_iter=20, tol=0.05, random_state=0).fit(X), X


@pytest.mark.parametrize("verb", ["transform", "posterior_mode", "posterior_covariance", "mode_distance"])
@pytest.mark.parametrize("sparse", [False, True])
def test_places_in_the_span_are_those_in_all_columns(wide, verb, sparse, monkeypatch):
    model, X = wide
    in_span = getattr(model, verb)(scipy.sparse.csr_matrix(X) if sparse else X)
    monkeypatch.setattr(posterior, "_COLUMNS_PER_FUNCTION", np.inf)
    np.testing.assert_allclose(in_span, getattr(model, verb)(X), atol=1e-9)


def test_rows_are_brought_into_the_span_some_at_a_time(wide, monkeypatch):
    model, X = wide
    at_once = model.transform(X)
    monkeypatch.setattr(posterior, "_FRAME_NUMBERS", 1)
    monkeypatch.setattr("prinfold.rows.rows.FEWEST_BLOCK_ROWS", 1)
    np.testing.assert_allclose(model.transform(X), at_once, atol=1e-12)


def test_points_between_nodes_take_no_more_than_the_span_has(wide, monkeypatch):
    """Hundreds of points in thousands of columns would fill the memory."""
    _, X = wide
    seen = []
    known = lattice_refinement.subdivide
    monkeypatch.setattr(
        lattice_refinement,
        "subdivide",
        lambda *given, **more: seen.append(given[2].weights.shape) or known(*given, **more),
    )
    fresh = GTM(nodes=6, basis=3, max_iter=20, tol=0.05, random_state=0).fit(X)
    fresh.transform(X)
    assert seen
    assert all(columns == functions for functions, columns in seen)


def test_nodes_are_doubled_no_further_than_their_numbers_allow(monkeypatch):
    X = _wide_rows(60, 40)
    free = GTM(1, max_iter=60, random_state=0).fit(X)
    monkeypatch.setattr(lattice_refinement, "_MOST_NODE_NUMBERS", 40 * 30)
    held = GTM(1, max_iter=60, random_state=0).fit(X)
    assert held.latent_.n_nodes <= 30 < free.latent_.n_nodes
