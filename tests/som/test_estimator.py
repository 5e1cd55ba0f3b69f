"""The self-organising map as users meet it."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from prinfold import GTM, SOM, Blocks, Schedule, datasets, load
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    NotEnoughMemoryError,
    UnsupportedInputError,
)
from prinfold.latent import Hexagons, Lattice, grid
from prinfold.loops import StopReason
from prinfold.som.neighborhoods import GaussianNeighborhood
from prinfold.validation import memory_limits


@pytest.fixture(scope="module")
def ridge():
    return datasets.make_ridge(400, rng=0).X


@pytest.fixture(scope="module")
def fitted(ridge):
    return SOM(nodes=10).fit(ridge)


def with_gaps(X, share=0.2):
    X, rng = X.copy(), np.random.default_rng(4)
    X[rng.random(X.shape) < share] = np.nan
    X[:, 0] = np.where(np.isnan(X).all(axis=1), 0.0, X[:, 0])
    return X


# ----------------------------------------------------------------------------------------------- what it learns


def test_a_map_of_a_sheet_lies_in_it_and_keeps_its_order(ridge, fitted):
    assert fitted.converged_
    assert fitted.stop_reason_ is StopReason.CONVERGED
    assert fitted.n_iter_ > 30
    assert fitted.width_ == 0.5
    assert fitted.topographic_error(ridge) < 0.05
    assert fitted.projection_error(ridge) < 0.03
    # The long way of the ridge is the first axis.
    along = np.corrcoef(fitted.transform(ridge)[:, 0], ridge[:, 2])[0, 1]
    assert abs(along) > 0.95


def test_the_codebook_is_the_surface_at_the_nodes(fitted):
    assert_allclose(fitted.inverse_transform(fitted.latent_.nodes), fitted.codebook_, atol=1e-12)


def test_the_surface_is_made_of_what_nodes_had_won_before_their_last_step(ridge):
    before, after = (SOM(nodes=6, max_iter=n, tol=0).fit(ridge) for n in (2, 3))
    assert_allclose(after.inverse_transform(after.latent_.nodes), after.codebook_, atol=1e-12)
    assert_array_equal(after.cell_mass_[:, 0], np.bincount(before.winners(ridge), minlength=36))
    assert_array_equal(after.node_mass_, np.bincount(after.winners(ridge), minlength=36))
    assert (after.node_mass_ != after.cell_mass_[:, 0]).any()


def test_going_back_is_the_nearest_point(ridge, fitted):
    assert_allclose(fitted.reconstruct(ridge[:20]), fitted.project(ridge[:20]), atol=1e-9)
    gap = np.square(ridge[:, None] - fitted.codebook_).sum(axis=2)
    assert fitted.projection_error(ridge) <= gap.min(axis=1).mean()
    assert_array_equal(fitted.winners(ridge), gap.argmin(axis=1))
    assert_allclose(fitted.quantization_error(ridge), np.sqrt(gap.min(axis=1)).mean())
    two = np.argsort(gap, axis=1)[:, :2]
    apart = np.abs(np.stack(np.divmod(two, 10))).astype(int)
    steps = np.abs(np.diff(apart, axis=2)).sum(axis=(0, 2))
    assert_allclose(fitted.topographic_error(ridge), np.mean(steps > 1))


def test_the_magnification_is_the_area_of_small_patches(fitted):
    Z, step = np.array([[0.1, -0.3], [-0.6, 0.5]]), 1e-5
    sides = [(fitted.inverse_transform(Z + step * e) - fitted.inverse_transform(Z - step * e)) for e in np.eye(2)]
    area = np.linalg.norm(np.cross(*sides), axis=1) / (4 * step**2)
    assert_allclose(fitted.magnification(Z).factor, area, rtol=1e-6)


def test_the_ridge_is_where_nodes_are_far_apart(fitted):
    u = fitted.u_matrix().nodes.reshape(10, 10).mean(axis=1)
    assert u[4:6].mean() > 1.5 * u[[0, 1, 8, 9]].mean()
    stretch = fitted.magnification(fitted.latent_.nodes).factor.reshape(10, 10).mean(axis=1)
    assert stretch[4:6].mean() > 1.5 * stretch[[0, 1, 8, 9]].mean()


@pytest.mark.parametrize("neighborhood", ["bubble", "epanechnikov"])
def test_other_neighbourhoods_of_the_same_spread_find_the_same_sheet(ridge, fitted, neighborhood):
    model = SOM(nodes=10, neighborhood=neighborhood).fit(ridge)
    assert_allclose(model.width_, {"bubble": 1.0, "epanechnikov": np.sqrt(1.5)}[neighborhood])
    assert model.projection_error(ridge) < 1.3 * fitted.projection_error(ridge)
    gap = np.abs(model.inverse_transform(model.latent_.nodes) - model.codebook_).max()
    assert 0 < gap < 0.3


def test_online_training_comes_as_near(ridge, fitted):
    model = SOM(nodes=10, trainer="online", random_state=0).fit(ridge)
    assert model.stop_reason_ is StopReason.SCHEDULE
    assert model.n_iter_ == 30
    assert model.projection_error(ridge) < 1.3 * fitted.projection_error(ridge)
    assert model.topographic_error(ridge) < 0.05


def test_random_starts_are_repeated_by_their_seed(ridge):
    first, again, other = (SOM(nodes=6, init="random", random_state=s, max_iter=3, tol=0).fit(ridge) for s in (0, 0, 1))
    assert_array_equal(first.codebook_, again.codebook_)
    assert np.abs(first.codebook_ - other.codebook_).max() > 1e-3


def test_vectors_that_are_given_are_the_start(ridge):
    given = np.random.default_rng(1).normal(size=(25, 3))
    model = SOM(nodes=5, init=given, max_iter=0, tol=0).fit(ridge)
    assert_allclose(model.codebook_, given)
    with pytest.raises(InvalidParameterError, match=r"init must hold finite vectors of shape \(25, 3\).* \(24, 3\)"):
        SOM(nodes=5, init=given[1:]).fit(ridge)


def test_a_row_far_away_moves_one_corner_only(ridge):
    model = SOM(nodes=8).fit(np.concatenate([ridge, [[1e4, 0, 0]]]))
    assert (np.abs(model.codebook_).max(axis=1) < 1.5).sum() >= 40  # of 64
    assert model.quantization_error(ridge) < 1.5 * SOM(nodes=8).fit(ridge).quantization_error(ridge)


# ------------------------------------------------------------------------------------------------------- topology


@pytest.mark.parametrize(
    ("settings", "kind", "periodic"),
    [
        ({}, Lattice, (False, False)),
        ({"grid": "hexagonal"}, Hexagons, (False, False)),
        ({"grid": "hexagonal", "latent": "torus"}, Hexagons, (True, True)),
        ({"grid": "hexagonal", "latent": "cylinder"}, Hexagons, (True, False)),
        ({"latent": "torus"}, Lattice, (True, True)),
    ],
    ids=str,
)
def test_about_five_roots_of_n_nodes(ridge, settings, kind, periodic):
    model = SOM(max_iter=1, tol=0, **settings).fit(ridge)
    assert type(model.latent_) is kind
    assert model.latent_.periodic == periodic
    assert 90 <= model.latent_.n_nodes <= 110


def test_a_circle_closes():
    X = datasets.make_circle(300, rng=1).X
    model = SOM(latent="circle", nodes=30).fit(X)
    assert model.topographic_error(X) < 0.1
    ends = model.inverse_transform([[-np.pi], [np.pi - 1e-9]])
    assert_allclose(*ends, atol=1e-6)
    assert model.projection_error(X) < 0.5 * SOM(1, nodes=30).fit(X[X[:, 0] > -0.5]).projection_error(X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grid": "hexagonal", "latent": "line"}, "needs a latent space with two axes.*Lattice of dimension 1"),
        ({"grid": "hexagonal", "latent": "sphere"}, "needs a latent space with two axes.*Sphere"),
        ({"grid": "hexagonal", "latent": "torus", "nodes": 5}, "even number of nodes there"),
        ({"neighborhood": "gaussien"}, "neighborhood must be .* did you mean 'gaussian'?"),
        ({"width": 0.0}, "width must be None, a finite number above 0 or a Schedule, got 0.0"),
        ({"rate": 0.1}, "rate=0.1 is the step size of online training.*set trainer='online', or leave rate at None"),
        (
            {"trainer": "online", "rate": Schedule(0.5, 1.5)},
            "rate must be at most 1.*last=1.5.*A rate of 1 moves a node all the way",
        ),
        ({"trainer": "both"}, "trainer must be 'batch' or 'online', got 'both'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(ridge, settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        SOM(**settings).fit(ridge)


# -------------------------------------------------------------------------------------------- rows of all kinds


def test_missing_cells_cost_little(ridge, fitted):
    X = with_gaps(ridge)
    model = SOM(nodes=10).fit(X)
    assert model.cell_mass_.shape == (100, 3)
    assert model.projection_error(ridge) < 1.5 * fitted.projection_error(ridge)
    X = X[:60]
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    whole = ~np.isnan(X).any(axis=1)
    assert_allclose(Z[whole], model.transform(X[whole]), atol=1e-12)
    # The nearest place over the columns seen is no farther than any node is.
    gap = np.nansum(np.square(X[:, None] - model.inverse_transform(model.latent_.nodes)), axis=2)
    own = np.nansum(np.square(X - model.reconstruct(X)), axis=1)
    assert (own <= gap.min(axis=1) + 1e-12).all()
    there = np.nansum(np.square(X - model.project(X)), axis=1)
    assert (there <= own + 1e-12).all()


def test_rows_of_which_nothing_is_known_do_not_count(ridge):
    X = with_gaps(ridge)
    lost = np.concatenate([X, np.full((3, 3), np.nan)])
    settings = {"nodes": 6, "max_iter": 4, "tol": 0}
    with pytest.warns(DegenerateWarning, match=r"3 row\(s\) have no value.* row 400\. They are left out of training"):
        model = SOM(**settings).fit(lost)
    assert_allclose(model.codebook_, SOM(**settings).fit(X).codebook_)
    with (
        pytest.raises(InvalidDataError, match=r"only 1 row\(s\) have a value and a weight"),
        pytest.warns(DegenerateWarning),
    ):
        SOM().fit([[np.nan, np.nan], [1.0, np.nan]])
    with pytest.raises(InvalidDataError, match=r"column\(s\) 1 hold no value"):
        SOM().fit([[1.0, np.nan], [2.0, np.nan]])


def test_a_row_of_nothing_has_the_place_of_the_mean_and_a_warning(ridge, fitted):
    """As in the GTM, what is said of it is what is expected of any row."""
    X = np.vstack([ridge[:4], np.full((1, 3), np.nan)])
    X[0, 1] = np.nan
    mean = ridge.mean(axis=0, keepdims=True)
    for verb in ("transform", "winners", "reconstruct", "impute"):
        with pytest.warns(DegenerateWarning, match=r"1 row\(s\) have no value.* row 4\. .*the mean of the") as said:
            found = getattr(fitted, verb)(X)
        assert len(said) == 1
        wanted = fitted.project(mean) if verb == "impute" else getattr(fitted, verb)(mean)
        assert_allclose(found[-1:], wanted, atol=1e-9)


def test_rows_with_gaps_lie_no_farther_than_from_any_node(ridge, fitted):
    """Over the cells that are there; starts on the sides of one valley are left out."""
    X = with_gaps(ridge)
    X = X[np.isnan(X).any(axis=1) & ~np.isnan(X).all(axis=1)]
    found = np.nansum((X - fitted.reconstruct(X)) ** 2, axis=1)
    nodes = fitted.inverse_transform(fitted.latent_.nodes)
    assert (found <= np.nansum((X[:, None] - nodes) ** 2, axis=2).min(axis=1) + 1e-12).all()


def test_what_is_missing_is_filled_from_the_surface(ridge, fitted):
    X = with_gaps(ridge)[:40].astype(np.float32)
    found, missing = fitted.impute(X), np.isnan(X)
    assert found.dtype == np.float32
    assert_array_equal(found[~missing], X[~missing])
    assert_allclose(found[missing], fitted.reconstruct(X)[missing], rtol=1e-6)
    assert_array_equal(fitted.impute(X[:1]), found[:1])
    # Better than the means of the columns, and nothing is done to rows that are whole.
    off = [np.abs(each - ridge[:40])[missing].mean() for each in (found, fitted.offset_)]
    assert off[0] < 0.6 * off[1]
    whole = fitted.impute(ridge)
    assert_array_equal(whole, ridge)
    assert whole is not ridge
    with pytest.raises(UnsupportedInputError, match="there is nothing to impute"):
        fitted.impute(scipy.sparse.csr_matrix(ridge))


def test_a_sparse_table_is_the_dense_one(ridge):
    X = np.where(np.abs(ridge) < 0.3, 0.0, ridge)
    dense, sparse = (SOM(nodes=6).fit(each) for each in (X, scipy.sparse.csr_matrix(X)))
    assert_allclose(sparse.codebook_, dense.codebook_, atol=1e-12)
    assert_array_equal(sparse.winners(scipy.sparse.csr_matrix(X)), dense.winners(X))
    with pytest.raises(UnsupportedInputError, match="online training takes no sparse table; use trainer='batch'"):
        SOM(trainer="online").fit(scipy.sparse.csr_matrix(X))


def test_data_far_from_the_origin_are_the_same_data(ridge, fitted):
    far = SOM(nodes=10).fit(ridge + 1e7)
    assert_allclose(far.codebook_ - 1e7, fitted.codebook_, atol=1e-6)


def test_degenerate_tables_have_an_answer():
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        model = SOM(nodes=3).fit(np.ones((5, 2)))
    assert_allclose(model.codebook_, 1.0)
    assert_allclose(model.project([[3.0, 1.0]]), [[1.0, 1.0]])
    with pytest.warns(DegenerateWarning, match="A map of 2 dimensions in 1 column"):
        model = SOM(nodes=3).fit(np.arange(6.0)[:, None])
    assert np.isfinite(model.transform([[2.5]])).all()
    with pytest.warns(DegenerateWarning, match="The map has a single node"):
        alone = SOM(nodes=1).fit([[0.0, 0.0], [2.0, 4.0]])
    assert alone.topographic_error([[0.0, 1.0]]) == 0.0
    assert_allclose(alone.project([[0.0, 1.0]]), [[1.0, 2.0]])
    assert_allclose(alone.u_matrix().nodes, [0.0])


# ------------------------------------------------------------------------------------------------------ training


def test_a_width_may_be_a_number_or_a_schedule(ridge):
    assert SOM(nodes=6, width=0.8).fit(ridge).width_ == 0.8
    model = SOM(nodes=6, width=Schedule(3.0, epochs=5, shape="linear")).fit(ridge)
    assert_allclose(model.history_["width"][1:6], [3.0, 2.375, 1.75, 1.125, 0.5])
    assert set(model.history_["width"][5:]) == {0.5}


def test_what_is_left_open_of_widths_and_rates_is_what_the_guide_says(ridge, fitted):
    assert_allclose(fitted.history_["width"][1:31], np.geomspace(0.25 * 9, 0.5, 30))
    settings = {"nodes": 4, "trainer": "online", "max_iter": 2, "tol": 0, "random_state": 0}
    left, given = (SOM(**settings, rate=rate).fit(ridge) for rate in (None, Schedule(0.5, 0.01, epochs=30)))
    assert_array_equal(left.codebook_, given.codebook_)
    longer = SOM(nodes=4, trainer="online", width=Schedule(2.0, epochs=2), rate=Schedule(epochs=4)).fit(ridge)
    assert longer.n_iter_ == 4


def test_an_objective_that_stands_still_early_has_not_settled(ridge):
    model = SOM(nodes=4, tol=10.0).fit(ridge)
    assert model.n_iter_ == 31  # one epoch more than the schedule, to compare two of the last width
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        SOM(nodes=4, max_iter=7).fit(ridge)


def test_no_epoch_starts_a_second_time_at_tol_nil(ridge):
    assert SOM(nodes=4, max_iter=40, tol=0).fit(ridge).n_iter_ == 40
    assert SOM(nodes=4, max_iter=40, tol=0, trainer="online").fit(ridge).n_iter_ == 40


def test_a_neighbourhood_may_be_an_object(ridge):
    class Cone(GaussianNeighborhood):
        def value(self, s):
            return np.maximum(1 - np.sqrt(s) / 3, 0.0)

        def relative(self, s):
            return self.value(s)

    model = SOM(nodes=6, neighborhood=Cone("cone")).fit(ridge)
    assert model.topographic_error(ridge) < 0.1


# --------------------------------------------------------------------------------------------------------- files


def test_a_map_comes_back_from_a_file(ridge, tmp_path):
    settings = {"width": Schedule(3.0, 1.0, epochs=4), "grid": "hexagonal", "nodes": (5, 6)}
    model = SOM(**settings).fit(with_gaps(ridge))
    model.save(tmp_path / "map.prinfold")
    again = load(tmp_path / "map.prinfold")
    assert again.width == settings["width"]
    assert_array_equal(again.transform(ridge[:30]), model.transform(ridge[:30]))
    again.cell_mass_ = -again.cell_mass_
    again.save(tmp_path / "bad.prinfold")
    with pytest.raises(CorruptModelFileError, match=r"SOM\.cell_mass_ in the file .* of at least 0"):
        load(tmp_path / "bad.prinfold")


def test_a_pickle_holds_nothing_that_can_be_derived_again(ridge):
    model = SOM(nodes=5, max_iter=2, tol=0).fit(ridge)
    before = pickle.dumps(model)
    Z = model.transform(ridge[:5])
    after = pickle.dumps(model)
    assert len(after) == len(before)
    assert_array_equal(pickle.loads(after).transform(ridge[:5]), Z)


def test_a_gtm_takes_hexagons_too(ridge):
    model = GTM(nodes=Hexagons((6, 6), (False, False)), basis=3, max_iter=10, tol=0).fit(ridge)
    assert model.responsibilities(ridge[:4]).shape == (4, 36)
    assert model.projection_error(ridge) < 0.05


def test_a_latent_space_may_be_given(ridge):
    assert SOM(latent=grid(4, 3), max_iter=1, tol=0).fit(ridge).codebook_.shape == (12, 3)
    assert SOM(nodes=Hexagons((4, 3), (False, False)), max_iter=1, tol=0).fit(ridge).latent_.n_nodes == 12


def test_rows_without_any_value_do_not_count_as_perfect():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = SOM(nodes=4).fit(X)
    holed = np.vstack([X, np.full((30, 3), np.nan)])
    assert model.quantization_error(holed) == pytest.approx(model.quantization_error(X), rel=1e-12)
    assert model.topographic_error(holed) == pytest.approx(model.topographic_error(X), rel=1e-12)
    with pytest.raises(InvalidDataError, match="no row of X has a value"):
        model.quantization_error(np.full((3, 3), np.nan))


def test_more_nodes_than_there_is_time_or_memory_for_are_refused_at_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80, 3))
    with pytest.raises(InvalidParameterError, match=r"a map of 9000000 nodes .* at most 1048576 .* use fewer nodes"):
        SOM(nodes=3000).fit(X)
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 1e8)
    with pytest.raises(NotEnoughMemoryError, match=r"a map of 160000 nodes would take about .* use fewer nodes"):
        SOM(nodes=400).fit(X)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_come_to_the_same_map(gaps, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [3, 1, 0.3] + [5, 0, 0]
    w = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    settings = {"nodes": 5, "max_iter": 15, "tol": 0}
    table = X if w is None else np.c_[X, w]
    blocks = Blocks(table, rows=25, weight=None if w is None else 3)
    found, wanted = SOM(**settings).fit(blocks), SOM(**settings).fit(X, sample_weight=w)
    assert_allclose(found.codebook_, wanted.codebook_, atol=1e-8)
    assert_allclose(found.history_["error"], wanted.history_["error"], rtol=1e-8)
    assert_allclose(found.node_mass_, wanted.node_mass_, atol=1e-8)


def test_no_more_than_a_sample_of_blocks_is_held(monkeypatch):
    from prinfold.rows import streams

    monkeypatch.setattr(streams, "_SAMPLE_ROWS", 50)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 40)
    X = np.random.default_rng(0).normal(size=(400, 3)) * [3, 1, 0.3]
    model = SOM(nodes=5, max_iter=15, tol=0, random_state=0).fit(Blocks(X, rows=64))
    assert model.node_mass_.sum() == pytest.approx(400)
    squares = np.square(X[:, None] - model.codebook_).sum(axis=2).min(axis=1)  # of all rows, not of the sample
    assert model.history_["error"][-1] == pytest.approx(squares.mean(), rel=1e-9)


def test_online_training_takes_no_blocks():
    with pytest.raises(UnsupportedInputError, match="rows one by one"):
        SOM(trainer="online").fit(Blocks(np.zeros((10, 2))))


def test_a_wide_table_is_projected_as_in_the_columns_that_its_rows_span():
    rng = np.random.default_rng(0)
    narrow = rng.normal(size=(20, 6)) * [5, 3, 1, 1, 1, 1]
    turn, place = np.linalg.qr(rng.normal(size=(200, 6)))[0].T, rng.normal(size=200)
    few, many = (SOM(nodes=5).fit(X) for X in (narrow, narrow @ turn + place))
    assert few._geometry().inside is None
    assert many._geometry().inside is not None
    new = rng.normal(size=(7, 200))  # off the span, too
    flat = many._geometry()
    flat = SurfaceGeometry(flat.latent, flat.point, flat.jacobian, flat.detail).nearest(new)
    assert_allclose(many.project(new), flat.points, atol=1e-5)
    assert_allclose(many._nearest(new).squared_distance, flat.squared_distance, rtol=1e-9)
    assert_allclose(many.project(narrow @ turn + place), few.project(narrow) @ turn + place, atol=1e-4)


def test_thousands_of_columns_are_projected_within_seconds():
    X = np.random.default_rng(0).normal(size=(30, 5000))
    model = SOM().fit(X)
    start = time.process_time()
    assert np.isfinite(model.project(X)).all()
    assert time.process_time() - start < 2.5  # a mesh in all columns took 5.4
