"""The table of theorems of the design, applied to every estimator that carries the tag."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial import cKDTree

from prinfold import GTM, datasets
from prinfold.curves.arc_curve import Polyline
from tests.properties.cases import Case, cases, cloud, first_quick, fitted, random_rotation, small_rotation

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def latent_distances(model, X):
    """Distances between rows in latent space: the same whatever symmetry relates two maps."""
    Z = np.asarray(model.transform(X), dtype=float)
    first, second = np.triu_indices(len(Z), 1)
    return model.latent_.distance(Z[first], Z[second])


def boundary(model, Z):
    """Which coordinates lie on the edge of the latent domain, or at a corner of a polyline."""
    curve = getattr(model, "curve_", None)
    knots = curve.knots if isinstance(curve, Polyline) else np.empty(0)
    return model.latent_.domain.boundary(Z) | np.isclose(Z[:, :1], knots, atol=1e-9).any(axis=1)


@cases()
def test_data_in_a_flat_give_a_surface_in_that_flat(case: Case):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((6, case.dimension)))[0]
    X = rng.uniform(-1, 1, (80, case.dimension)) * np.arange(2, 2 + case.dimension) @ axes.T + rng.normal(size=6)
    vertices = case.make().fit(X).mesh(8).vertices - X.mean(axis=0)
    assert_allclose(vertices, vertices @ axes @ axes.T, atol=1e-9)


@cases("open")
def test_straight_data_give_the_principal_plane(case: Case):
    rng, noise, Q = np.random.default_rng(1), 0.01, case.dimension
    axes = np.linalg.qr(rng.standard_normal((6, Q)))[0]
    X = rng.uniform(-1, 1, (300, Q)) * np.arange(2, 2 + Q) @ axes.T + noise * rng.standard_normal((300, 6))
    vertices = case.make(max_iter=60).fit(X).mesh(12).vertices - X.mean(axis=0)
    _, _, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    plane = directions[:Q]
    off_plane = np.linalg.norm(vertices - vertices @ plane.T @ plane, axis=1)
    assert np.sqrt(np.mean(off_plane**2)) < noise


def _carries_through(case: Case, R: np.ndarray) -> None:
    X, shift = cloud(), np.array([3.0, -1.0, 0.5, 7.0, -2.0])
    here, there = fitted(case)[0], case.make().fit(X @ R.T + shift)
    assert_allclose(there.project(X @ R.T + shift), here.project(X) @ R.T + shift, atol=1e-6)
    assert_allclose(latent_distances(there, X @ R.T + shift), latent_distances(here, X), atol=1e-6)
    assert_allclose(there.projection_error(X @ R.T + shift), here.projection_error(X), rtol=1e-6)


@cases("euclidean", "mirror")
def test_any_rigid_motion_carries_through(case: Case):
    _carries_through(case, random_rotation(5))


@cases("euclidean", full="mirror")  # any rigid motion carries through there
def test_a_rigid_motion_that_flips_no_principal_axis_carries_through(case: Case):
    _carries_through(case, small_rotation(5, angle=0.2))


@cases("euclidean")
@pytest.mark.parametrize("scale", first_quick(1e-4, 30.0))
def test_scaling_carries_through(case: Case, scale: float):
    X = cloud()
    here, there = fitted(case)[0], case.make(**case.rescale(scale)).fit(scale * X)
    assert_allclose(there.project(scale * X) / scale, here.project(X), atol=1e-7)
    unit = scale if "lengths" in case.tags else 1.0
    assert_allclose(there.transform(scale * X) / unit, here.transform(X), atol=1e-7)


@cases()
def test_permuting_rows_changes_nothing_but_their_order(case: Case):
    X = cloud()
    order = np.random.default_rng(2).permutation(len(X))
    here, there = fitted(case)[0], case.make().fit(X[order])
    assert_allclose(there.transform(X), here.transform(X), atol=1e-6)
    assert_allclose(there.project(X), here.project(X), atol=1e-6)


@cases("weights")
def test_repeated_rows_are_integer_weights(case: Case):
    X = cloud(60)
    weight = np.random.default_rng(4).integers(0, 4, len(X))
    repeated = case.make().fit(np.repeat(X, weight, axis=0))
    weighted = case.make().fit(X, sample_weight=weight)
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-6)
    assert_allclose(weighted.project(X), repeated.project(X), atol=1e-6)


@cases()
def test_fit_transform_is_fit_then_transform(case: Case):
    X = cloud()
    assert_allclose(case.make().fit_transform(X), fitted(case)[0].transform(X), atol=1e-12)


@cases()
def test_row_by_row_is_the_batch(case: Case):
    model, X = fitted(case)
    for verb in ("transform", "project", "reconstruct"):
        batch = getattr(model, verb)(X[:12])
        single = np.concatenate([getattr(model, verb)(X[i : i + 1]) for i in range(12)])
        assert_allclose(single, batch, atol=1e-9, err_msg=verb)


@cases()
def test_float32_goes_through_and_agrees(case: Case):
    X = cloud()
    narrow = case.make().fit(X.astype(np.float32))
    for verb in ("transform", "project", "reconstruct"):
        assert getattr(narrow, verb)(X.astype(np.float32)).dtype == np.float32, verb
    # Steps that may differ by what is discrete in them are compared one by one, but where only the end has coordinates.
    steps = {} if "lengths" in case.tags else {"max_iter": 1}
    wide, narrow = case.make(**steps).fit(X), case.make(**steps).fit(X.astype(np.float32))
    assert_allclose(narrow.transform(X.astype(np.float32)), wide.transform(X), atol=2e-3)


@cases()
def test_projecting_twice_is_projecting_once(case: Case):
    model, X = fitted(case)
    once = model.project(X)
    assert_allclose(model.project(once), once, atol=1e-6)
    assert model.projection_error(once) < 1e-12


@cases()
def test_nothing_on_the_surface_is_nearer_than_the_projection(case: Case):
    model, X = fitted(case)
    nearest = np.square(X - model.project(X)).sum(axis=1)
    nodes = model.inverse_transform(model.latent_.nodes)
    vertices = model.mesh(12).vertices
    for others in (nodes, vertices):
        best = np.square(X[:, None] - others[None]).sum(axis=2).min(axis=1)
        assert (nearest <= best + 1e-12).all()
    assert (nearest <= np.square(X - model.reconstruct(X)).sum(axis=1) + 1e-12).all()
    assert_allclose(model.projection_error(X), nearest.mean(), rtol=1e-9)


def test_a_crumpled_surface_has_nearest_points_too():
    """A sheet so flexible that it folds through itself many times, against a mesh far finer than its folds."""
    X = datasets.make_swiss_roll(600, rng=0).X
    model = GTM(nodes=25, basis=18, regularization=0.01, max_iter=50, tol=0).fit(X)
    assert model.folds_.folded.mean() > 0.1, "not crumpled: the comparison would say nothing"
    found = model._nearest(X)
    finest, _ = cKDTree(model.mesh(700).vertices).query(X)
    farther = np.sqrt(found.squared_distance) > finest + 1e-9
    assert farther.mean() < 0.005
    again = np.linalg.norm(model.project(found.points) - found.points, axis=1)
    assert (again > 1e-6).mean() < 0.005


@cases()
def test_residuals_are_orthogonal_to_the_surface(case: Case):
    model, X = fitted(case)
    found = model._nearest(X)
    inside = ~boundary(model, found.latent)
    assert inside.sum() >= 5
    J = model.jacobian(found.latent) @ model.latent_.domain.frame(found.latent)
    residual = X - found.points
    along = np.einsum("ndq,nd->nq", J, residual)
    scale = np.linalg.norm(J, axis=1) * np.linalg.norm(residual, axis=1)[:, None]
    assert np.abs(along / scale)[inside].max() < 1e-5


@cases("monotone")
@pytest.mark.parametrize("seed", first_quick(*range(3)))
def test_the_objective_never_gets_worse(case: Case, seed: int):
    X = np.random.default_rng(seed).standard_t(3, (70, 4)) * [3.0, 2.0, 1.0, 0.5]
    objective = case.make(max_iter=40).fit(X).history_["objective"]
    slack = 1e-9 * max(map(abs, objective))
    worse = [(i, before - after) for i, (before, after) in enumerate(pairwise(objective), 1) if after < before - slack]
    assert not worse, f"at iteration {worse[0][0]} the objective fell by {worse[0][1]:.3g}, of {slack:.1g} allowed"


@cases("density")
def test_the_density_integrates_to_one(case: Case):
    """Importance sampling from a wide Gaussian: the mean of p/q is 1 up to its own standard error."""
    X = cloud(n_columns=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make().fit(X)
    rng = np.random.default_rng(6)
    spread = 1.5 * X.std(axis=0)
    sample = X.mean(axis=0) + spread * rng.standard_normal((40_000, 3))
    log_q = -0.5 * np.square((sample - X.mean(axis=0)) / spread).sum(axis=1) - np.log(spread).sum()
    ratio = np.exp(model.score_samples(sample) - log_q + 1.5 * np.log(2 * np.pi))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(ratio))
