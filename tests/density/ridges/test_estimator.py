"""DensityRidge: what a fit leaves, where rows go, spheres and masks, and what is said when it cannot work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import prinfold
from prinfold import DensityRidge, datasets
from prinfold.density.ridges.mean_shift import Status
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, OutOfDomainError
from prinfold.loops import StopReason


def spiral(n: int = 300, seed: int = 0):
    return datasets.make_spiral(n, noise=0.04, rng=seed)


@pytest.fixture(scope="module")
def fitted() -> DensityRidge:
    return DensityRidge().fit(spiral().X)


# ------------------------------------------------------------------------------------------------------ what it finds


def test_the_ridge_of_a_spiral_is_one_branch_near_the_true_one(fitted):
    data = spiral()
    assert len(fitted.graph_.ends) == 1
    assert np.sqrt(np.mean(data.surface.distance(fitted.ridge_.points) ** 2)) < 0.02
    assert abs(fitted.graph_.latent.lengths[0] - 8.9) < 0.6
    assert fitted.stop_reason_ is StopReason.ARRIVED
    assert fitted.converged_
    assert (fitted.status_ == Status.CONVERGED).all()


def test_rows_are_mapped_to_the_nearest_point_of_the_ridge(fitted):
    X = spiral(100, seed=1).X
    Z, location = fitted.transform(X), fitted.locate(X)
    feet = fitted.inverse_transform(Z)
    np.testing.assert_allclose(feet, fitted.project(X))
    np.testing.assert_allclose(np.linalg.norm(X - feet, axis=1), np.abs(location.distance), atol=1e-9)
    np.testing.assert_allclose(location.arc_length, Z[:, 0], atol=1e-9)
    np.testing.assert_allclose(fitted.reconstruct(X), feet)
    assert fitted.score(X) == -fitted.projection_error(X)


def test_arc_length_is_the_order_along_the_curve(fitted):
    data = spiral()
    order = np.argsort(fitted.transform(data.X)[:, 0])
    angle = data.latent[order, 0]
    rank = np.corrcoef(np.argsort(np.argsort(angle)), np.arange(len(angle)))[0, 1]
    assert abs(rank) > 0.995


def test_the_side_of_a_row_is_a_sign(fitted):
    data = spiral()
    radius = np.linalg.norm(data.X, axis=1) - np.linalg.norm(data.surface.point(data.latent), axis=1)
    signed = fitted.locate(data.X).distance
    clear = np.abs(radius) > 0.03
    same = (np.sign(signed[clear]) == np.sign(radius[clear])).mean()
    assert max(same, 1 - same) > 0.97


def test_flow_is_where_training_rows_went(fitted):
    found = fitted.flow(spiral().X)
    rows, places = (np.array(sorted(map(tuple, a.round(6)))) for a in (found.points, fitted.ridge_.points))
    np.testing.assert_allclose(rows, places, atol=2e-6)


def test_coordinates_between_branches_are_outside():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, (400, 1))
    X = np.concatenate(
        [x, np.where(rng.uniform(size=(400, 1)) < 0.5, 0.0, 2.0) + rng.normal(0, 0.05, (400, 1))], axis=1
    )
    model = DensityRidge(bandwidth=0.2).fit(X)
    first, second = model.latent_.lengths
    assert len(model.graph_.ends) == 2
    model.inverse_transform([[first], [first + 0.2]])
    with pytest.raises(OutOfDomainError, match="outside the domain"):
        model.inverse_transform([[first + 0.1]])
    assert second > 3.0


def test_surfaces_have_charts():
    data = datasets.make_swiss_roll(500, noise=0.2, noise_kind="normal", rng=0)
    model = DensityRidge(2, bandwidth=2.0).fit(data.X)
    Z = model.transform(data.X)
    assert Z.shape == (500, 2)
    assert np.sqrt(np.mean(data.surface.distance(model.project(data.X)) ** 2)) < 0.8
    with pytest.raises(AttributeError, match="graph_ is for curves, but this ridge has 2 dimensions"):
        _ = model.graph_
    with pytest.raises(AttributeError, match="locate is for curves"):
        model.locate(data.X)


# -------------------------------------------------------------------------------------------------------- choices


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("normal", ["hessian", "neighbors", "neighbors_about_point"])
def test_other_directions_across_find_the_same_ridge(fitted, normal):
    model = DensityRidge(normal=normal, bandwidth=fitted.bandwidth_).fit(spiral().X)
    apart = np.sqrt(np.einsum("nd,nd->n", *[model.ridge_.points - fitted.project(model.ridge_.points)] * 2))
    assert np.quantile(apart, 0.9) < 0.1 * fitted.bandwidth_


def test_mean_shift_alone_finds_it_too(fitted):
    model = DensityRidge(step="mean_shift", bandwidth=fitted.bandwidth_).fit(spiral().X)
    assert model.n_iter_ > fitted.n_iter_
    np.testing.assert_allclose(model.ridge_.points, fitted.ridge_.points, atol=0.02 * fitted.bandwidth_)


def test_starts_from_a_mesh_or_from_points(fitted):
    X, h = spiral().X, fitted.bandwidth_
    mesh = DensityRidge(start="mesh", bandwidth=h).fit(X)
    assert len(mesh.status_) != len(X)
    assert np.abs(mesh.locate(X).distance).mean() < 1.1 * np.abs(fitted.locate(X).distance).mean()
    points = DensityRidge(start=X[::3], bandwidth=h).fit(X)
    np.testing.assert_allclose(points.status_, fitted.status_[::3])
    with pytest.raises(InvalidDataError, match=r"start must hold finite points of shape \(m, 2\), got shape \(4, 3\)"):
        DensityRidge(start=np.zeros((4, 3))).fit(X)


def test_a_mixture_is_a_density_too():
    X = spiral().X
    model = DensityRidge(density=GaussianMixture(25, random_state=0)).fit(X)
    assert np.isnan(model.bandwidth_)
    assert (model.status_ == Status.CONVERGED).mean() > 0.8
    with pytest.raises(InvalidParameterError, match="GaussianMixture takes weights that are small whole numbers only"):
        DensityRidge(density=GaussianMixture(2)).fit(X, sample_weight=np.linspace(1, 2, 300))
    weighted, repeated = np.ones(300), np.concatenate([X, X[:1]])
    weighted[0] = 2.0
    recipe = GaussianMixture(5, random_state=0)
    one, other = DensityRidge(density=recipe).fit(X, sample_weight=weighted), DensityRidge(density=recipe).fit(repeated)
    np.testing.assert_allclose(one.ridge_.points, other.ridge_.points)
    with pytest.raises(InvalidParameterError, match=r"but density= is given\. Leave out one"):
        DensityRidge(density=GaussianMixture(2), mask=X).fit(X)


@pytest.mark.parametrize("bandwidth", [np.array([0.1, 0.05]), np.diag([0.01, 0.0025])])
def test_a_bandwidth_for_each_column_or_a_matrix(bandwidth):
    model = DensityRidge(bandwidth=bandwidth).fit(spiral().X)
    assert (model.status_ == Status.CONVERGED).mean() > 0.9
    np.testing.assert_array_equal(model.bandwidth_, bandwidth)


def test_bandwidths_by_rule():
    X = spiral().X
    found = {name: DensityRidge(bandwidth=name).fit(X).bandwidth_ for name in ("auto", "likelihood", "silverman")}
    assert 1.5 * found["likelihood"] < found["auto"] < 2.5 * found["likelihood"]
    assert found["silverman"] > found["auto"]
    assert np.shape(DensityRidge(bandwidth="neighbors").fit(X).bandwidth_) == (300,)


def test_what_ends_below_a_density():
    X = spiral().X
    all_, dense = (DensityRidge(min_density=share).fit(X) for share in (0.0, 0.3))
    assert (dense.status_ == Status.LOW_DENSITY).sum() > 0
    assert len(dense.ridge_.points) < len(all_.ridge_.points)


def test_short_branches_are_left_out_or_kept():
    data = datasets.make_zigzag(400, rng=0)
    counts = [len(DensityRidge(min_length=length).fit(data.X).graph_.ends) for length in (0.5, 2.0, 6.0)]
    assert counts[0] >= counts[1] >= counts[2] >= 1


# ------------------------------------------------------------------------------------------------------- how sure


def test_bands_hold_the_true_curve_where_noise_is_across(fitted):
    band = fitted.bands(20, random_state=0)
    assert band.points.shape == fitted.graph_.points.shape
    off = spiral().surface.distance(band.points)
    assert (off < band.radius).mean() > 0.6
    assert (band.found > 0.9).mean() > 0.9
    again = fitted.bands(20, random_state=0)
    np.testing.assert_array_equal(again.radius, band.radius)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_curve_is_significant_and_noise_is_not(fitted):
    curve = fitted.significance(20, random_state=0)
    assert len(curve.p_value) == len(fitted.bands(1, random_state=0).points)
    assert len(curve.branch_p_value) == 1
    X = np.random.default_rng(0).uniform(0, 1, (400, 2))
    noise = DensityRidge(bandwidth=0.07, min_support=0.0).fit(X).significance(20, random_state=0)
    assert (curve.p_value < 0.1).mean() > 0.6
    assert (noise.p_value < 0.1).mean() < 0.25
    assert noise.branch_p_value.min() > 0.05


def test_on_a_sphere_bands_are_in_degrees():
    model = DensityRidge(space="sphere", bandwidth=3.0).fit(belt(300))
    band = model.bands(5, random_state=0)
    assert band.points.shape[1] == 2
    assert 0.1 < np.median(band.radius) < 3.0
    assert (model.significance(9, random_state=0).p_value <= 0.2).mean() > 0.8


def test_what_rows_cannot_be_drawn_anew_for():
    model = DensityRidge(bandwidth="neighbors").fit(spiral(100).X)
    with pytest.raises(InvalidParameterError, match="needs kernels of one bandwidth on the rows, got AdaptiveDensity"):
        model.bands(2)


# ------------------------------------------------------------------------------------------------ sphere and mask


def belt(n: int = 600):
    rng = np.random.default_rng(0)
    longitude = rng.uniform(-180, 180, n)
    return np.stack([longitude, 60 + 8 * np.sin(np.radians(3 * longitude)) + rng.normal(0, 1.5, n)], axis=1)


def test_on_a_sphere_a_belt_closes():
    X = belt()
    model = DensityRidge(space="sphere", bandwidth=3.0).fit(X)
    assert model.graph_.latent.closed.tolist() == [True]
    feet = model.project(X)
    assert np.abs(feet[:, 1] - (60 + 8 * np.sin(np.radians(3 * feet[:, 0])))).mean() < 0.6
    np.testing.assert_allclose(model.project(feet), feet, atol=1e-6)
    apart = np.degrees(np.arccos(np.clip(np.einsum("ni,ni->n", *(_unit(each) for each in (X, feet))), -1, 1)))
    np.testing.assert_allclose(np.abs(model.locate(X).distance), apart, atol=1e-4)
    np.testing.assert_allclose(model.projection_error(X), np.mean(apart**2), rtol=1e-4)
    north = model.locate(X).distance * np.sign(X[:, 1] - feet[:, 1])
    assert max((north > 0).mean(), (north < 0).mean()) > 0.98


def _unit(X):
    a, b = np.radians(X).T
    return np.stack([np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)], axis=1)


def test_on_a_sphere_the_jacobian_is_the_derivative():
    model = DensityRidge(space="sphere", bandwidth=3.0).fit(belt())
    Z = np.linspace(5, 150, 20)[:, None]
    difference = (model.inverse_transform(Z + 1e-4) - model.inverse_transform(Z - 1e-4)) / 2e-4
    np.testing.assert_allclose(model.jacobian(Z)[:, :, 0], difference, atol=1e-4)
    np.testing.assert_allclose(model.magnification(Z).factor, 1.0, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_survey_edge_bends_no_ridge():
    """A straight filament across a window: without the mask the ridge turns along the window's sides at its ends."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 300)
    filament = np.stack([x, 0.2 + 0.6 * x + rng.normal(0, 0.012, 300)], axis=1)
    X = np.concatenate([rng.uniform(0, 1, (1200, 2)), filament])
    truth = np.stack([np.linspace(0.005, 0.995, 200), 0.2 + 0.6 * np.linspace(0.005, 0.995, 200)], axis=1)

    def farthest(mask):
        points = DensityRidge(bandwidth=0.05, mask=mask).fit(X).ridge_.points
        return np.linalg.norm(truth[:, None] - points[None], axis=2).min(axis=1).max() / 0.05

    assert farthest(None) > 1.0
    assert farthest(lambda rows: ((rows > 0) & (rows < 1)).all(axis=1)) < 0.6
    assert farthest(rng.uniform(0, 1, (20_000, 2))) < 0.6


def test_a_mask_is_asked_in_the_longitudes_of_the_rows():
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(150, 220, 500), 30 + rng.normal(0, 1.0, 500)], axis=1)
    asked = []

    def seen(rows):
        asked.append(rows)
        return (rows[:, 0] > 150) & (rows[:, 0] < 220)

    model = DensityRidge(space="sphere", bandwidth=2.0, mask=seen).fit(X)
    assert (model.status_ == Status.CONVERGED).mean() > 0.95
    assert asked[0][:, 0].min() >= 0
    assert asked[0][:, 0].max() > 350


def test_masks_that_cannot_be():
    X = spiral(60).X
    with pytest.raises(InvalidParameterError, match="is it the other way round"):
        DensityRidge(mask=lambda rows: np.zeros(len(rows), dtype=bool)).fit(X)
    with pytest.raises(InvalidParameterError, match=r"got shape \(3,\)"):
        DensityRidge(mask=lambda rows: np.ones(3, dtype=bool)).fit(X)
    with pytest.raises(InvalidDataError, match=r"finite points of shape \(m, 2\)"):
        DensityRidge(mask=np.zeros((5, 3))).fit(X)
    with pytest.raises(InvalidParameterError, match="one for each row"):
        DensityRidge(mask=X, bandwidth="neighbors").fit(X)
    with pytest.raises(InvalidParameterError, match="up to 3 columns, got 4"):
        DensityRidge(mask=lambda rows: rows[:, 0] > 0, bandwidth=1.0).fit(np.random.default_rng(0).normal(size=(50, 4)))
    with pytest.raises(InvalidParameterError, match="more than the 4000000 allowed"):
        DensityRidge(mask=lambda rows: rows[:, 0] > 0, bandwidth=1e-4).fit(X)


def test_what_a_sphere_does_not_take():
    X = belt(60)
    with pytest.raises(InvalidDataError, match="two columns, longitude and latitude"):
        DensityRidge(space="sphere", bandwidth=3.0).fit(np.zeros((5, 3)))
    with pytest.raises(
        InvalidParameterError,
        match=r"is for flat space; on a sphere use one of \['auto', 'likelihood', 'wide_likelihood'\]",
    ):
        DensityRidge(space="sphere", bandwidth="silverman").fit(X)
    with pytest.raises(InvalidParameterError, match="one number of degrees"):
        DensityRidge(space="sphere", bandwidth=np.ones(2)).fit(X)
    with pytest.raises(InvalidDataError, match="set n_components below 2"):
        DensityRidge(2, space="sphere").fit(X)


# --------------------------------------------------------------------------------------------------------- trouble


def test_outliers_have_a_status_and_no_say():
    X = spiral().X
    far = np.array([[30.0, 0.0], [-20.0, 14.0], [5.0, 50.0]])
    clean = DensityRidge().fit(X)
    model = DensityRidge().fit(np.concatenate([X, far]))
    assert (model.status_[-3:] == Status.NO_GAP).all()
    assert abs(np.log(model.bandwidth_ / clean.bandwidth_)) < 0.1
    assert len(model.ridge_.points) == 300
    assert np.isfinite(model.transform(far)).all()


def test_one_column_has_modes_only():
    with pytest.raises(InvalidDataError, match=r"n_features = 1; take more columns, .* ModeClustering"):
        DensityRidge().fit(np.arange(20.0)[:, None])
    with pytest.raises(InvalidDataError, match="set n_components below 2"):
        DensityRidge(2).fit(spiral(20).X)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.DegenerateWarning")
@pytest.mark.parametrize("X", [np.array([[0.0, 0.0], [1.0, 0.0]]), np.repeat([[1.0, 2.0], [3.0, 1.0]], 5, axis=0)])
def test_two_different_rows(X):
    model = DensityRidge().fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.project(X)).all()


def test_rows_that_are_all_equal_need_a_bandwidth():
    X = np.ones((5, 2))
    with pytest.raises(InvalidDataError, match="at least two different rows"):
        DensityRidge().fit(X)
    with pytest.warns(DegenerateWarning, match="No row ended on a ridge, so the 1 that come nearest are used"):
        model = DensityRidge(bandwidth=1.0).fit(X)
    np.testing.assert_allclose(model.project([[0.0, 0.0], [1.0, 1.0]]), 1.0)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.DegenerateWarning")
def test_rows_that_find_no_rest_are_told_of():
    with pytest.warns(ConvergenceWarning, match=r"298 of 300 rows were still moving after 1 steps"):
        DensityRidge(max_iter=1, bandwidth="wide_likelihood").fit(spiral().X)


def test_most_rows_on_no_ridge_are_told_of():
    X = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.warns(
        DegenerateWarning, match=r"of 60 rows ended on no ridge .*\. Mostly: The row stopped where all dir"
    ):
        DensityRidge(bandwidth=0.05).fit(X)


def y_in_ten_columns(n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    angle, t = np.radians([90, 210, 330])[rng.integers(0, 3, n)], rng.uniform(size=n)
    X = 0.08 * rng.standard_normal((n, 10))
    X[:, :2] += t[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X


def test_many_columns_are_warned_of_with_what_to_do():
    sure, instead = r"found again in \d+ % of other samples", r"PCA\(3\), or fit a PrincipalTree"
    with pytest.warns(DegenerateWarning, match=f"The table has 10 columns.*{sure}.*{instead}"):
        DensityRidge(bandwidth=0.3).fit(y_in_ten_columns(60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DensityRidge(bandwidth=0.3).fit(y_in_ten_columns()[:, :5])


@pytest.mark.filterwarnings("ignore:the table has 10 columns")
@pytest.mark.full
def test_a_ridge_in_pieces_is_warned_of_with_the_bandwidth_that_joins_it():
    X = y_in_ten_columns()
    with pytest.warns(DegenerateWarning, match="falls into") as heard:
        DensityRidge(bandwidth=0.07).fit(X)
    message = next(each.message.args[0] for each in heard if "falls into" in str(each.message))
    joined = dict(each[:2] for each in message.advice if not isinstance(each, str))["bandwidth"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        warnings.filterwarnings("ignore", "the table has 10 columns")
        DensityRidge(bandwidth=joined).fit(X)


def test_no_tolerance_never_stops_early():
    model = DensityRidge(tol=0.0, max_iter=40).fit(spiral().X)
    assert model.n_iter_ == 40
    assert not model.converged_
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert (model.status_ == Status.CONVERGED).all()


def test_rows_without_weight_count_for_nothing_but_have_a_status():
    X = spiral().X
    weight = np.ones(300)
    weight[::2] = 0.0
    model, half = DensityRidge().fit(X, sample_weight=weight), DensityRidge().fit(X[1::2])
    np.testing.assert_array_equal(model.ridge_.points, half.ridge_.points)
    assert len(model.status_) == 300
    assert np.isin(model.status_, list(Status)).all()


# ----------------------------------------------------------------------------------------------------------- files


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"space": "sphere"}, {"mask": True}, {"normal": "neighbors"}, {"bandwidth": "neighbors"}]
)
def test_a_file_holds_all_of_it(settings, tmp_path):
    X = belt(200) if "space" in settings else spiral(200).X
    if "mask" in settings:
        settings = {"mask": np.random.default_rng(0).uniform(X.min(0) - 0.1, X.max(0) + 0.1, (2000, 2))}
    model = DensityRidge(**settings).fit(X)
    model.save(tmp_path / "ridge.prinfold")
    again = prinfold.load(tmp_path / "ridge.prinfold")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.flow(X).points, model.flow(X).points)
    np.testing.assert_array_equal(again.status_, model.status_)


def test_the_history_tells_how_many_move(fitted):
    assert fitted.history_["moving"][-1] == 0
    assert fitted.history_["moving"][0] == 300
    assert len(fitted.history_["objective"]) == fitted.n_iter_ + 1


def test_lines_come_out_in_units_of_the_data(tmp_path):
    X = belt(300)
    model = DensityRidge(space="sphere", bandwidth=3.0).fit(X)
    made = model.to_geojson(tmp_path / "belt.geojson")
    lines = made["features"][0]["geometry"]["coordinates"]  # cut where it leaves the map
    assert np.abs(np.concatenate([np.array(line) for line in lines])[:, 1] - 60).max() < 14
    assert (tmp_path / "belt.geojson").stat().st_size > 100
    model.to_csv(tmp_path / "belt.csv")
    header, first = (tmp_path / "belt.csv").read_text().splitlines()[:2]
    assert header == "branch,arc_length,x0,x1,log_density"
    assert abs(float(first.split(",")[3]) - 60) < 14
    networkx = pytest.importorskip("networkx")
    assert isinstance(model.to_networkx(), networkx.MultiGraph)
