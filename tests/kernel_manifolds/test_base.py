"""All verbs of a surface over latent points, on an estimator that is given them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.given import Given

from prinfold import files, load
from prinfold.exceptions import CorruptModelFileError, InvalidParameterError, OutOfDomainError
from prinfold.kernel_manifolds.domain_thresholds import Contour


@pytest.fixture(autouse=True)
def known_to_files(monkeypatch):
    monkeypatch.setitem(files._classes, "Given", Given)


def curve():
    """An arc in three columns, two pieces of latent space."""
    t = np.concatenate([np.linspace(0, 6, 50), np.linspace(14, 18, 30)])
    noise = 0.05 * np.random.default_rng(0).normal(size=(80, 3))
    return t[:, None], np.stack([np.cos(t / 3), np.sin(t / 3), 0.1 * t], axis=1) + noise


def sheet(seed=1, n=150):
    """A bent sheet with a hole in it."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.uniform(3, 5, n)
    Z = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.stack([Z[:, 0], Z[:, 1], 0.1 * Z[:, 0] ** 2], axis=1)
    return Z, X + 0.05 * rng.normal(size=X.shape)


def solid():
    Z = np.random.default_rng(2).uniform(-1.5, 1.5, (90, 3))
    return Z, np.concatenate([Z, (Z**2).sum(axis=1, keepdims=True)], axis=1)


def column():
    Z = np.linspace(0, 5, 40)[:, None]
    return Z, np.sin(0.5 * Z)


def many():
    """Four latent dimensions, where there is no mesh."""
    Z = np.random.default_rng(3).uniform(-1.5, 1.5, (60, 4))
    return Z, np.concatenate([Z, Z[:, :1] ** 2], axis=1)


def model_of(data, **settings):
    Z, X = data
    return Given(Z, **settings).fit(X), X


CASES = {
    "curve": lambda: model_of(curve()),
    "curve-quartic": lambda: model_of(curve(), kernel="quartic"),
    "sheet": lambda: model_of(sheet()),
    "sheet-contour": lambda: model_of(sheet(), threshold=Contour(0.8)),
    "sheet-triweight": lambda: model_of((0.4 * sheet()[0], sheet()[1]), kernel="triweight"),
    "solid": lambda: model_of(solid()),
    "column": lambda: model_of(column()),
    "many": lambda: model_of(many()),
}
MADE = {name: make() for name, make in CASES.items()}
every = pytest.mark.parametrize(("model", "X"), MADE.values(), ids=MADE.keys())


def around(X, n=40, size=0.4, seed=5):
    rng = np.random.default_rng(seed)
    return X[rng.integers(len(X), size=n)] + size * X.std() * rng.normal(size=(n, X.shape[1]))


@every
def test_projecting_twice_is_projecting_once(model, X):
    once = model.project(around(X))
    assert_allclose(model.project(once), once, atol=1e-7)


@every
def test_nothing_on_the_surface_is_nearer_than_the_projection(model, X):
    rows = around(X)
    found = ((rows - model.project(rows)) ** 2).sum(axis=1)
    mesh = model.mesh(20) if model.latent_.dimension < 4 else model.mesh()
    Z = model.latent_.nodes
    step = np.random.default_rng(6).normal(size=(2000, Z.shape[1]))
    wander = model.latent_.domain.retract(Z[np.arange(2000) % len(Z)] + step)
    for points in (model.inverse_transform(Z), mesh.vertices, model.inverse_transform(wander)):
        brute = ((rows[:, None] - points) ** 2).sum(axis=2).min(axis=1)
        assert (found <= brute + 1e-9).all()


@every
def test_residuals_stand_upright_except_at_the_boundary(model, X):
    rows = around(X)
    found = model._nearest(rows)
    slope = np.einsum("ndq,nd->nq", model.jacobian(found.latent), rows - found.points)
    edge = model.latent_.domain.boundary(found.latent)
    assert_allclose(slope[~edge], 0.0, atol=1e-6 * np.abs(X).max() ** 2)
    # In a single column a curve turns round where its slope is nil, and no gradient is small beside that.
    turning = np.linalg.norm(model.jacobian(found.latent), axis=(1, 2)) < 1e-5
    assert (found.converged | turning).all()


@every
def test_latents_are_valid_and_lead_to_the_projection(model, X):
    rows = around(X)
    Z = model.transform(rows)
    assert model.latent_.domain.contains(Z).all()
    assert_allclose(model.inverse_transform(Z), model.project(rows), atol=1e-9)
    assert_allclose(model.reconstruct(rows), model.project(rows), atol=1e-9)
    assert model.projection_error(rows) == pytest.approx(((rows - model.project(rows)) ** 2).sum(axis=1).mean())
    assert model.score(rows) == -model.projection_error(rows)


@every
def test_row_by_row_is_the_batch(model, X):
    rows = around(X, 6)
    for verb in ("transform", "project", "reconstruct"):
        batch = getattr(model, verb)(rows)
        alone = np.concatenate([getattr(model, verb)(row[None]) for row in rows])
        assert_allclose(alone, batch, atol=1e-7)


@every
def test_single_precision_stays_single(model, X):
    rows = around(X).astype(np.float32)
    Z = model.transform(rows)
    assert Z.dtype == model.project(rows).dtype == model.reconstruct(rows).dtype == np.float32
    assert model.latent_.domain.contains(Z.astype(float)).all()
    assert_allclose(model.inverse_transform(Z), model.project(rows), atol=1e-3)


@every
def test_the_embedding_is_valid_and_close_to_its_rows(model, X):
    assert model.embedding_.shape == (len(X), model.latent_.n_columns)
    assert model.latent_.domain.contains(model.embedding_).all()
    error = ((X - model.inverse_transform(model.embedding_)) ** 2).sum(axis=1).mean()
    assert error < 0.5 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert model.projection_error(X) <= error + 1e-9


@every
def test_jacobian_is_the_derivative(model, X):
    Z, h = model.latent_.nodes[:20], 1e-5
    for q, step in enumerate(h * np.eye(Z.shape[1])):
        ahead, behind = (model.inverse_transform(Z + sign * step, extrapolate=True) for sign in (1, -1))
        assert_allclose(model.jacobian(Z)[:, :, q], (ahead - behind) / (2 * h), atol=1e-6)


@every
def test_samples_lie_on_the_surface_inside_the_domain(model, X):
    points, Z = model.sample(200, random_state=0, return_latent=True)
    assert model.latent_.domain.contains(Z).all()
    assert_array_equal(points, model.inverse_transform(Z))
    assert_array_equal(model.sample(200, random_state=0), points)
    assert model.sample(0).shape == (0, X.shape[1])


@every
def test_models_come_back_from_files_and_pickles_as_they_were(model, X, tmp_path):
    model.save(tmp_path / "m.prinfold")
    rows = around(X, 8)
    for again in (load(tmp_path / "m.prinfold"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.embedding_, model.embedding_)
        assert_array_equal(again.transform(rows), model.transform(rows))
        assert again.threshold_ == model.threshold_


def test_a_hole_has_no_surface():
    model, _ = MADE["sheet"]
    with pytest.raises(OutOfDomainError, match="outside the domain"):
        model.inverse_transform(np.zeros((1, 2)))
    assert model.inverse_transform(np.zeros((1, 2)), extrapolate=True).shape == (1, 3)
    assert np.linalg.norm(model.mesh(30).latent, axis=1).min() > 0.5


def test_pieces_are_not_bridged():
    model, _ = MADE["curve"]
    mesh = model.mesh()
    ends = mesh.latent[mesh.faces][:, :, 0]
    assert ((ends < 10).all(axis=1) | (ends > 10).all(axis=1)).all()
    middle = model.inverse_transform(np.array([[10.0]]), extrapolate=True)
    assert (model._nearest(middle).squared_distance > 0.01).all()


def test_auto_keeps_all_rows_and_a_contour_its_share():
    model, X = MADE["sheet"]
    assert model.latent_.n_nodes == len(X)
    assert model.threshold_ >= 1 / len(X) - 1e-9
    assert_array_equal(model.embedding_, model.latent_.centers)
    part, _ = MADE["sheet-contour"]
    assert part.latent_.n_nodes == np.ceil(0.8 * len(X))
    assert part.threshold_ > model.threshold_


def test_a_threshold_above_all_densities_is_refused_with_the_range():
    Z, X = curve()
    with pytest.raises(InvalidParameterError, match=r"no row inside.*ranges from"):
        Given(Z, threshold=0.99).fit(X)
    with pytest.raises(InvalidParameterError, match="threshold must be 'auto'"):
        Given(Z, threshold="least").fit(X)


@pytest.mark.parametrize("name", ["curve", "curve-quartic", "sheet", "sheet-triweight"])
def test_the_latent_density_integrates_to_one(name):
    model, _ = MADE[name]
    low, high = model.latent_.centers.min(axis=0) - 6, model.latent_.centers.max(axis=0) + 6
    n = {1: 4000, 2: 200}[len(low)]
    axes = np.meshgrid(*(np.linspace(a, b, n) for a, b in zip(low, high, strict=True)), indexing="ij")
    Z = np.stack([axis.ravel() for axis in axes], axis=1)
    cell = np.prod((high - low) / (n - 1))
    assert model.latent_density(Z).sum() * cell == pytest.approx(1.0, rel=1e-4)


def test_repeats_of_latent_points_are_weights():
    Z, X = sheet()
    count = np.random.default_rng(7).integers(1, 4, len(X))
    weighted = Given(Z).fit(X, sample_weight=count)
    repeated = Given(np.repeat(Z, count, axis=0)).fit(np.repeat(X, count, axis=0))
    rows = around(X)
    assert_allclose(weighted.project(rows), repeated.project(rows), atol=1e-6)
    assert weighted.threshold_ == pytest.approx(repeated.threshold_)


def test_all_latent_points_in_one_place_are_one_point():
    model = Given(np.zeros((6, 2))).fit(np.random.default_rng(8).normal(size=(6, 3)))
    X = np.random.default_rng(9).normal(size=(4, 3))
    assert_allclose(model.project(X), np.tile(model.offset_, (4, 1)), atol=1e-12)
    assert_allclose(model.transform(X), 0.0, atol=1e-4)
    assert np.isfinite(model.sample(5, random_state=0)).all()


def test_points_each_on_their_own_are_the_surface():
    Z, X = 100.0 * np.arange(5.0)[:, None], np.random.default_rng(10).normal(size=(5, 2))
    model = Given(Z).fit(X)
    assert_allclose(model.project(X + 1e-3), X, atol=1e-12)
    assert_allclose(model.transform(X), Z, atol=1e-6)
    assert model.sample(7, random_state=0).shape == (7, 2)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"values_": np.zeros((3, 3))}, "values_ in the file"),
        ({"offset_": np.zeros(2)}, "offset_ in the file"),
        ({"embedding_": np.zeros((80, 2))}, r"embedding_ in the file .* latent_\.n_columns = 1"),
        ({"embedding_": np.full((80, 1), 1e3)}, "inside the latent domain"),
        ({"history_": {"objective": [1.0, 2.0]}}, "history"),
        ({"latent_": None}, "latent_ in the file is None, but must be a Cloud"),
        ({"stop_reason_": "done"}, "reason"),
    ],
)
def test_files_whose_parts_do_not_fit_are_refused(change, match, tmp_path):
    model = pickle.loads(pickle.dumps(MADE["curve"][0]))
    for name, value in change.items():
        setattr(model, name, value)
    model.save(tmp_path / "bad.prinfold")
    with pytest.raises(CorruptModelFileError, match=match):
        load(tmp_path / "bad.prinfold")
