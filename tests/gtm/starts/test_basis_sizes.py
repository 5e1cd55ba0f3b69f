"""More basis functions where rows are rolled up, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import spearmanr
from sklearn.datasets import make_s_curve, make_swiss_roll

from prinfold import GTM, PPS, MixedGTM, datasets
from prinfold.base.starting_points import EmbeddedRows
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.gtm.fitting import assemble
from prinfold.gtm.starts import placements
from prinfold.gtm.starts.placements import Unroller, left_out_error
from prinfold.latent import grid
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def sheet(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_s_curve(n, noise=noise, random_state=seed)


def cap(n: int, noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (n, 2))
    return np.column_stack([U, np.sqrt(3 - np.square(U).sum(axis=1))]) + noise * rng.standard_normal((n, 3))


def functions(model: GTM, X: np.ndarray) -> tuple[int, ...]:
    return assemble(model._recipe(), X).basis.shape  # type: ignore[attr-defined, no-any-return]


def test_the_error_is_that_of_rows_left_out_one_by_one() -> None:
    rng = np.random.default_rng(0)
    latent, basis = grid(6, 6), GaussianBasis((3, 3))
    placed = EmbeddedRows(rng.uniform(-1, 1, (30, 2)), rng.standard_normal((30, 4)), rng.uniform(0.5, 2.0, 30))
    Phi, share = basis.bind(latent).features(placed.latent), placed.weight / placed.weight.sum()
    wanted = 0.0
    for i in range(30):
        others = np.arange(30) != i
        gram = (share[others, None] * Phi[others]).T @ Phi[others] + placements._RIDGE * np.eye(Phi.shape[1])
        weights = np.linalg.solve(gram, (share[others, None] * Phi[others]).T @ placed.rows[others])
        wanted += share[i] * np.square(placed.rows[i] - Phi[i] @ weights).sum()
    assert left_out_error(basis.bind(latent), placed) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("method", [GTM, PPS])
def test_a_rolled_sheet_of_few_rows_has_more_functions_and_is_laid_out_flat(method: type[GTM]) -> None:
    X, t = sheet(300, 0.05, 0)
    model = method().fit(X)
    assert model.basis_.shape == (8, 8)
    assert max(abs(np.corrcoef(z, t)[0, 1]) for z in model.transform(X).T) > 0.99
    assert method(basis=5).fit(X).basis_.shape == (5, 5)  # what was given is taken


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_rolled_keeps_its_functions(seed: int) -> None:
    for X in (cap(300, 0.1, seed), datasets.make_pipe_flow(300, rng=seed).X):
        assert functions(GTM(), X) == functions(GTM(init="pca"), X)


def test_few_rows_gaps_curves_and_mixed_columns_keep_their_functions() -> None:
    X, _ = sheet(300, 0.05, 0)
    holed = X.copy()
    holed[3, 1] = np.nan
    for model, table in ((GTM(), X[:120]), (GTM(), holed), (GTM(1), X), (GTM(latent="cylinder"), X)):
        usual = type(model)(**model.get_params() | {"init": "pca"})
        assert functions(model, table) == functions(usual, table)
    assert MixedGTM()._recipe().basis_steps == ()  # whose columns are not all distances


def test_neither_the_order_of_rows_nor_where_they_stand_decides() -> None:
    X, _ = sheet(300, 0.1, 1)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for table in (X, X[::-1], 7.0 * X @ turn + 100.0):
        assert functions(GTM(), table) == (8, 8)


def test_rows_are_unrolled_once_for_both_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = sheet(300, 0.05, 0)
    asked, link = [], placements.link_rows
    monkeypatch.setattr(placements, "link_rows", lambda *given: asked.append(given) or link(*given))
    GTM().fit(X)
    assert len(asked) == 1
    keep = Unroller()
    rows, fewer = as_rows(X), as_rows(X[:200])
    first = keep(grid(5, 5), rows, 600)
    assert keep(grid(5, 5), rows, 600) is first
    assert keep(grid(5, 5), rows, 100) is not first
    other = keep(grid(5, 5), fewer, 600)
    assert_array_equal(other.unrolled[0].rows, np.unique(X[:200], axis=0))
    assert keep.last is other


def test_a_roll_whose_graphs_have_short_cuts_is_laid_out_by_others() -> None:
    X, t = make_swiss_roll(300, noise=0.3, random_state=3)
    places = placements.Placements(grid(20, 20), as_rows(X), 600)
    where = dict(zip(map(tuple, X), t, strict=True))
    true = [where[tuple(row)] for row in places.rows[0]]

    def rank_correlation(some: list[EmbeddedRows]) -> float:
        best = min(some, key=lambda each: left_out_error(GaussianBasis((8, 8)).bind(places.latent), each))
        return max(abs(spearmanr(z, true).statistic) for z in best.latent.T)

    usual = [each.places(places.latent) for each in placements.link_rows(2, *places.rows)]
    assert rank_correlation(usual) < 0.9
    assert rank_correlation(places.unrolled) > 0.98


def test_graphs_against_short_cuts_are_for_few_rows_of_rolls_alone() -> None:
    roll = make_swiss_roll(700, noise=0.3, random_state=0)[0]
    for X in (cap(300, 0.1, 0), datasets.make_pipe_flow(300, rng=0).X, roll):
        assert len(placements.Placements(grid(20, 20), as_rows(X), 600).looks) == 2
