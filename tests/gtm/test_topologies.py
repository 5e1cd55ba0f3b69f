"""Closed latent spaces in earnest: seams that are nowhere, symmetries that change nothing, coordinates recovered."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import NearestNeighbors

from prinfold import GTM, HarmonicBasis, choose, datasets, load
from prinfold.latent import Sphere, circle, cylinder, torus
from prinfold.metrics import align

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

MAKE = {
    "circle": (partial(GTM, nodes=24, basis=8, latent="circle"), partial(datasets.make_closed_curve, 150)),
    "harmonics": (
        partial(GTM, nodes=24, basis=HarmonicBasis(3), latent="circle"),
        partial(datasets.make_circle, 120, concentration=1.0),
    ),
    "cylinder": (partial(GTM, nodes=(12, 6), basis=(6, 3), latent="cylinder"), partial(datasets.make_cylinder, 150)),
    "torus": (partial(GTM, nodes=(12, 10), basis=(6, 5), latent="torus"), partial(datasets.make_torus, 200)),
}
SPACES = sorted(MAKE)
STEP = {"circle": 2 * np.pi / 8, "harmonics": 2 * np.pi / 24, "cylinder": 2 * np.pi / 6, "torus": 2 * np.pi / 6}
"""Turns of the first angle that carry nodes to nodes and basis functions to basis functions."""


@pytest.fixture(scope="module")
def data() -> dict[str, datasets.Dataset]:
    return {name: make(rng=0) for name, (_, make) in MAKE.items()}


@pytest.fixture(scope="module")
def models(data: dict[str, datasets.Dataset]) -> dict[str, GTM]:
    return {name: model(random_state=0, max_iter=60).fit(data[name].X) for name, (model, _) in MAKE.items()}


def shifted(model: GTM, name: str, Z: np.ndarray, times: float = 1.0) -> np.ndarray:
    step = np.zeros(Z.shape[1])
    step[0] = times * STEP[name]
    return model.latent_.domain.retract(Z + step)


def turned(model: GTM, name: str) -> GTM:
    """The same surface with its first angle counted from elsewhere: y'(z) = y(z + step)."""
    other, surface = deepcopy(model), model._model.surface
    Z = model.latent_.refined(31).nodes
    wanted = surface.basis.features(shifted(model, name, Z)) @ model.weights_
    Phi = surface.basis.features(Z)
    other.weights_ = np.linalg.lstsq(Phi, wanted, rcond=1e-12)[0]
    assert_allclose(Phi @ other.weights_, wanted, atol=1e-8)  # the basis takes the turn
    return other


def apart(model: GTM, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return model.latent_.distance(A, B)


# ------------------------------------------------------------------------------------------- symmetries


@pytest.mark.parametrize("name", SPACES)
def test_a_seam_moved_by_whole_nodes_changes_nothing(
    name: str, models: dict[str, GTM], data: dict[str, datasets.Dataset]
) -> None:
    model, X = models[name], data[name].X
    other = turned(model, name)
    assert_allclose(other.score_samples(X), model.score_samples(X), atol=1e-7)
    assert_allclose(other.project(X), model.project(X), atol=1e-6)
    assert_allclose(apart(model, shifted(model, name, other.transform(X)), model.transform(X)), 0.0, atol=1e-6)
    assert_allclose(other.posterior_covariance(X), model.posterior_covariance(X), atol=1e-6)
    Z = other.transform(X)
    assert_allclose(other.magnification(Z).factor, model.magnification(shifted(model, name, Z)).factor, rtol=1e-6)


@pytest.mark.parametrize("name", SPACES)
def test_training_does_not_know_where_the_seam_is(name: str, data: dict[str, datasets.Dataset]) -> None:
    """Rows begun a whole step further round end a whole step further round, at every iteration."""
    make, X = MAKE[name][0], data[name].X
    latent = make().fit(X).latent_
    places = latent.domain.retract(np.random.default_rng(0).uniform(-1.0, 1.0, (len(X), latent.n_columns)) * np.pi)
    here = make(init=places, max_iter=15, tol=0.0).fit(X)
    there = make(init=shifted(here, name, places), max_iter=15, tol=0.0).fit(X)
    assert_allclose(there.history_["objective"], here.history_["objective"], atol=1e-7)
    assert_allclose(apart(here, there.transform(X), shifted(here, name, here.transform(X))), 0.0, atol=1e-5)


@pytest.mark.parametrize("name", ["circle", "torus", "cylinder"])
def test_mirrored_and_swapped_starts_end_mirrored_and_swapped(name: str, data: dict[str, datasets.Dataset]) -> None:
    X = data[name].X
    # A mirror carries nodes to nodes where there are as many on both sides of 0: −π stays, as does 0.
    make = partial(GTM, latent=name, nodes=(10, 10)[: 1 if name == "circle" else 2], basis=5, max_iter=10, tol=0.0)
    places = np.random.default_rng(1).uniform(-1.0, 1.0, (len(X), 1 if name == "circle" else 2))
    here = make(init=places).fit(X)
    # The basis has an odd number of centres, one at −π: turned by half a circle it is its own mirror image.
    there = make(init=-places).fit(X)
    assert_allclose(there.history_["objective"], here.history_["objective"], atol=1e-7)
    assert_allclose(there.score_samples(X), here.score_samples(X), atol=1e-6)
    if name == "torus":
        swapped = make(init=places[:, ::-1].copy()).fit(X)
        assert_allclose(swapped.history_["objective"], here.history_["objective"], atol=1e-7)
        assert_allclose(apart(here, swapped.transform(X)[:, ::-1], here.transform(X)), 0.0, atol=1e-5)


def test_a_sphere_begun_turned_ends_turned() -> None:
    """Nodes on a spiral are not carried to nodes by a turn, but the surface hardly depends on where they are."""
    data = datasets.make_sphere(900, rng=0, n_features=10, sampling="grid")
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    here, there = (GTM(latent="sphere", init=Z, max_iter=300).fit(data.X) for Z in (data.latent, data.latent @ R.T))
    left = align(there.transform(data.X), here.transform(data.X), here.latent_.domain)
    assert np.median(left.distance) < here.latent_.spacing  # of neighbouring nodes
    assert_allclose(left.turn, R.T, atol=0.02)
    assert abs(there.score(data.X) - here.score(data.X)) < 0.02


# ------------------------------------------------------------------------------------------------ seams


@pytest.mark.parametrize("name", SPACES)
def test_map_jacobian_and_magnification_close_at_the_seam(name: str, models: dict[str, GTM]) -> None:
    model = models[name]
    other = np.linspace(-0.9, 0.9, 7)
    for axis in np.flatnonzero(model.latent_.periodic):
        ends = [np.tile(other[:, None], (1, model.latent_.n_columns)) for _ in range(2)]
        ends[0][:, axis], ends[1][:, axis] = -np.pi, np.pi
        low, high = (model.inverse_transform(Z) for Z in ends)
        assert_allclose(low, high, atol=1e-12)
        assert_allclose(*(model.jacobian(Z) for Z in ends), atol=1e-12)
        assert_allclose(*(model.magnification(Z).factor for Z in ends), rtol=1e-12)
        for gap in (1e-3, 1e-6):  # and is approached from both sides alike
            ends[0][:, axis], ends[1][:, axis] = -np.pi + gap, np.pi - gap
            J = model.jacobian(ends[0])
            low, high = (model.inverse_transform(Z) for Z in ends)
            assert_allclose(low - high, 2 * gap * J[:, :, axis], atol=40 * gap**2 * np.abs(J).max())


@pytest.mark.parametrize("name", SPACES)
def test_mean_covariance_and_density_cross_the_seam_without_a_jump(name: str, models: dict[str, GTM]) -> None:
    """Rows that go once round the surface: steps of what is computed of them are nowhere longer at the seam."""
    model, n = models[name], 720
    Z = np.zeros((n, model.latent_.n_columns))
    Z[:, 0] = -np.pi + 2 * np.pi * np.arange(n) / n
    rows = model.inverse_transform(Z)
    mean, spread = model.transform(rows), model.posterior_covariance(rows).reshape(n, -1)
    steps = {
        "mean": apart(model, np.roll(mean, -1, axis=0), mean),
        "covariance": np.linalg.norm(np.roll(spread, -1, axis=0) - spread, axis=1),
        "density": np.abs(np.roll(model.score_samples(rows), -1) - model.score_samples(rows)),
    }
    # The seam is between the last row and the first; other stretches between nodes repeat all round.
    for words, step in steps.items():
        assert step[-3:].max() <= step[:-3].max() * 1.001 + 1e-12, words
    assert steps["mean"].max() < 0.25


def test_a_row_at_the_seam_has_its_mean_there_and_a_short_covariance() -> None:
    data = datasets.make_circle(200, rng=0, noise=0.05)
    model = GTM(latent="circle", random_state=0).fit(data.X)
    at = model.inverse_transform([[-np.pi]])
    spacing = model.latent_.spacing
    assert apart(model, model.transform(at), np.array([[np.pi]]))[0] < spacing
    assert model.posterior_covariance(at)[0, 0, 0] < (2 * spacing) ** 2  # not that of two heaps a circle apart


def test_a_sphere_has_no_poles() -> None:
    """A linear map of the sphere magnifies by r² everywhere, and what is near a pole is treated like anything else."""
    data = datasets.make_sphere(300, noise=0.02, rng=1)
    model = GTM(latent=Sphere(200), basis=30, random_state=0).fit(data.X)
    linear = deepcopy(model)
    linear.weights_ = np.zeros_like(model.weights_)
    linear.weights_[-4:-1] = 1.7 * np.eye(3)
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1e-9, 0.0, 1.0], [1.0, 0.0, 0.0], [0.6, -0.8, 0.0]])
    found = linear.magnification(poles)
    assert_allclose(found.factor, 1.7**2, rtol=1e-9)
    assert_allclose(found.lengths, 1.7, rtol=1e-9)
    around = poles[0] + 1e-4 * np.stack([[np.cos(t), np.sin(t), 0.0] for t in np.arange(6)])
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    factors = model.magnification(np.concatenate([poles[:1], around])).factor
    assert_allclose(factors, factors[0], rtol=5e-3)
    rows = model.inverse_transform(np.concatenate([poles[:1], around]))
    assert apart(model, model.transform(rows), model.transform(rows[:1]).repeat(7, axis=0)).max() < 0.01


@pytest.mark.parametrize("name", ["circle", "cylinder", "torus", "sphere"])
def test_closed_models_come_back_from_a_file(name: str, tmp_path: object) -> None:
    X = datasets.make_torus(60, rng=0).X
    model = GTM(latent=name, random_state=0, max_iter=3, tol=0.0).fit(X)
    model.save(tmp_path / "model.prinfold")
    again = load(tmp_path / "model.prinfold")
    assert again.get_params()["init"] == "auto"
    assert_allclose(again.transform(X), model.transform(X), atol=0)


# --------------------------------------------------------------------------------------------- recovery

UNIFORM = {
    "circle": (0.5, partial(datasets.make_circle, 400, noise=0.05)),
    "sphere": (3.5, partial(datasets.make_sphere, 900, noise=0.05, n_features=10)),
    "cylinder": (4.5, partial(datasets.make_cylinder, 900, noise=0.05)),
    "torus": (9.0, partial(datasets.make_torus, 900, noise=0.05, kind="flat", radii=(1.0, 1.0))),
}
"""Bounds on the median error in degrees; of the torus nodes are 12° apart, where noise is too small to interpolate."""


@pytest.mark.parametrize("name", sorted(UNIFORM))
def test_generating_coordinates_are_recovered_where_rows_are_even(name: str) -> None:
    bound, make = UNIFORM[name]
    data = make(rng=0, sampling="grid")
    model = GTM(latent=name, random_state=0, max_iter=300).fit(data.X)
    left = align(model.transform(data.X), data.latent, model.latent_.domain)
    assert np.median(left.degrees) < bound
    assert np.quantile(left.degrees, 0.95) < 2.5 * bound


@pytest.mark.slow
@pytest.mark.parametrize(("name", "basis"), [("circle", 12), ("sphere", 34)])
def test_errors_of_uneven_chance_fall_with_the_square_root_of_the_rows(name: str, basis: int) -> None:
    """Of one basis: by default there are more functions for more rows, and with them more of what chance can bend."""

    def error(n: int) -> float:
        found = []
        for seed in range(6):
            data = drawn(name, n, seed)
            model = GTM(latent=name, basis=basis, random_state=0, max_iter=300).fit(data.X)
            found.append(np.median(align(model.transform(data.X), data.latent, model.latent_.domain).degrees))
        return float(np.mean(found))

    few, many = error(200), error(1800)
    assert many < 0.5 * few  # a third but for what does not depend on their number


def drawn(name: str, n: int, seed: int) -> datasets.Dataset:
    make = {"circle": datasets.make_circle, "sphere": partial(datasets.make_sphere, n_features=10)}[name]
    return make(n, noise=0.05, rng=seed)


def test_an_uneven_circle_is_told_apart_by_rank_not_by_angle() -> None:
    """The prior of the nodes is even, so that the angle found counts rows: the distribution function of the density."""
    data = datasets.make_circle(1000, noise=0.1, concentration=1.0, rng=0)
    model = GTM(latent="circle", random_state=0, max_iter=2000, tol=1e-6, regularization=1e-3).fit(data.X)
    rank = 2 * np.pi * np.argsort(np.argsort(data.latent[:, 0])) / 1000
    by_rank = align(model.transform(data.X), rank[:, None], model.latent_.domain)
    by_angle = align(model.transform(data.X), data.latent, model.latent_.domain)
    assert np.median(by_rank.degrees) < 4
    assert np.median(by_angle.degrees) > 4 * np.median(by_rank.degrees)


@pytest.mark.parametrize("radius", [(1.0, 1.0, 0.3), (2.0, 0.5, 0.5), (1.5, 1.0, 0.6)])
def test_squashed_spheres_keep_their_directions(radius: tuple[float, float, float]) -> None:
    data = datasets.make_sphere(600, radius=radius, n_features=10, rng=0)
    model = GTM(latent="sphere", random_state=0, max_iter=300).fit(data.X)
    left = align(model.transform(data.X), data.latent, model.latent_.domain)
    assert np.median(left.degrees) < 12


def test_a_plane_tears_a_sphere() -> None:
    data = datasets.make_sphere(500, noise=0.02, rng=0)
    fresh = datasets.make_sphere(500, noise=0.02, rng=1)
    closed = GTM(latent="sphere", random_state=0).fit(data.X)
    torn = GTM(nodes=21, random_state=0).fit(data.X)

    near = NearestNeighbors(n_neighbors=7).fit(data.X).kneighbors(data.X, return_distance=False)[:, 1:]

    def torn_apart(model: GTM) -> float:
        """Share of neighbours that lie five times as far apart on the map as neighbours mostly do."""
        Z = model.transform(data.X)
        gap = apart(model, np.repeat(Z, 6, axis=0), Z[near.ravel()])
        return float(np.mean(gap > 5 * np.median(gap)))

    assert torn_apart(closed) == 0
    assert torn_apart(torn) > 0.01
    assert closed.score(fresh.X) > torn.score(fresh.X) + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["circle", "cylinder", "sphere", "torus"])
def test_held_out_rows_choose_the_right_topology(name: str) -> None:
    make = {
        "circle": partial(datasets.make_knot, 400, noise=0.05),
        "cylinder": partial(datasets.make_cylinder, 500),
        "sphere": partial(datasets.make_sphere, 500, n_features=10),
        "torus": partial(datasets.make_torus, 600, kind="flat", radii=(1.0, 1.0)),
    }[name]
    latents = ["line", "circle"] if name == "circle" else ["grid", "cylinder", "torus", "sphere"]
    found = choose(make(rng=0).X, {"latent": latents}, model=GTM(random_state=0), by="held-out", folds=3)
    assert found.settings["latent"] == name


def test_few_rows_and_few_nodes() -> None:
    for latent, make in ((circle(6), datasets.make_circle), (cylinder(5, 3), datasets.make_cylinder)):
        data = make(12, noise=0.02, rng=0)
        model = GTM(latent=latent, basis=3, random_state=0).fit(data.X)
        left = align(model.transform(data.X), data.latent, latent.domain)
        assert np.median(left.degrees) < 45
    tiny = GTM(latent=torus(3, 3), basis=2, random_state=0).fit(datasets.make_torus(9, rng=0).X)
    assert np.isfinite(tiny.score(datasets.make_torus(9, rng=1).X))
    least = GTM(latent=Sphere(4), basis=4, random_state=0).fit(datasets.make_sphere(6, rng=0).X)
    assert np.isfinite(least.transform(datasets.make_sphere(6, rng=1).X)).all()


def test_a_cylinder_has_twice_as_many_nodes_round_as_along() -> None:
    settings = {"latent": "cylinder", "init": "pca", "max_iter": 0, "tol": 0.0}
    assert GTM(**settings).fit(datasets.make_cylinder(500, rng=0).X).latent_.shape == (30, 15)
    given = GTM(nodes=7, **settings).fit(datasets.make_cylinder(100, rng=0).X)
    assert given.latent_.shape == (7, 7)
