"""What is particular to probabilistic principal surfaces: the GTM inside them, orientation, trainers, closed spaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree
from tests.properties.cases import cloud

from prinfold import GTM, PPS, GaussianProcess, datasets, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidParameterError
from prinfold.files import save
from prinfold.gtm import model as gtm
from prinfold.gtm.noise.tangents import tangents
from prinfold.loops import StopReason

# Few iterations leave much undone, and warnings would only repeat it.
pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

SMALL = {"nodes": 8, "basis": 4, "tol": 0.0}


# ------------------------------------------------------------------------------------ the GTM inside


@pytest.mark.parametrize(
    "settings",
    [{}, {"latent": "torus"}, {"latent": "sphere", "nodes": 60, "basis": 12}, {"n_components": 1, "nodes": 20}],
    ids=["grid", "torus", "sphere", "line"],
)
@pytest.mark.parametrize("trainer", ["gtm", "gem"])
def test_at_clamping_one_it_is_the_gtm_bit_for_bit(settings, trainer):
    X, weight = cloud(), np.random.default_rng(0).uniform(0.5, 2, 90)
    options = {**SMALL, **settings, "max_iter": 20}
    gtm = GTM(**options).fit(X, sample_weight=weight)
    pps = PPS(clamping=1, trainer=trainer, **options).fit(X, sample_weight=weight)
    assert_array_equal(pps.weights_, gtm.weights_)
    assert pps.noise_variance_ == gtm.noise_variance_
    assert pps.clamping_ == 1.0
    assert pps.history_["objective"] == gtm.history_["objective"]
    assert_array_equal(pps.transform(X), gtm.transform(X))
    assert_array_equal(pps.score_samples(X), gtm.score_samples(X))


@pytest.mark.parametrize("side", [-1, 1])
def test_near_clamping_one_the_papers_steps_are_nearly_the_gtms(side):
    X = cloud()
    gtm = GTM(**SMALL, max_iter=8, relaxation=1).fit(X)
    pps = PPS(clamping=1 + side * 1e-9, trainer="paper", **SMALL, max_iter=8, relaxation=1).fit(X)
    assert_allclose(pps.project(X), gtm.project(X), atol=1e-5)
    assert_allclose(pps.history_["objective"], gtm.history_["objective"], atol=1e-6)


# -------------------------------------------------------------------------------------- from a fitted GTM


@pytest.mark.parametrize("trainer", ["gtm", "gem"])
@pytest.mark.parametrize(
    "settings",
    [{"clamping": 1 - 1e-9}, {"clamping": 1 + 1e-9}, {"clamping": "learn"}, {"clamping": "learn-per-node"}],
    ids=["below", "above", "learn", "per node"],
)
def test_training_begins_where_the_gtm_ends(trainer, settings):
    """At a clamping of 1, or one learned from there on, the first entry of the history is the last of the GTM's."""
    X, weight = cloud(), np.random.default_rng(0).uniform(0.5, 2, 90)
    gtm = GTM(**SMALL, max_iter=8).fit(X, sample_weight=weight)
    pps = PPS(trainer=trainer, **settings, **SMALL, max_iter=8).fit(X, sample_weight=weight)
    for name in ("objective", "log_likelihood", "noise"):
        assert_allclose(pps.history_[name][0], gtm.history_[name][-1], atol=1e-6)
    assert len(pps.history_["objective"]) == pps.n_iter_ + 1 == 9
    assert pps.history_["objective"][-1] >= pps.history_["objective"][0] - 1e-12


@pytest.mark.parametrize("options", [{"latent": "circle"}, {"init": "random"}, {"basis": GaussianProcess()}])
def test_it_begins_from_the_gtm_with_all_of_its_settings(options):
    """Start, latent space and a process that finds its own numbers; and cells that are missing."""
    X = cloud()
    X[::7, 1] = np.nan
    settings = {**SMALL, "n_components": 1, "random_state": 3, **options}
    gtm = GTM(**settings, max_iter=12).fit(X)
    pps = PPS(clamping=0.6, **settings, max_iter=12).fit(X)
    learned = PPS(clamping="learn", **settings, max_iter=12).fit(X)
    assert_allclose(learned.history_["log_likelihood"][0], gtm.history_["log_likelihood"][-1], atol=1e-9)
    assert repr(pps.basis_) == repr(gtm.basis_)
    assert pps.history_["objective"][-1] > pps.history_["objective"][0]


def helix(n: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows about three turns, and places close together on the curve itself."""
    u, dense = rng.uniform(0, 1, n), np.linspace(0, 1, 3000)
    curve = [np.stack([np.cos(6 * np.pi * t), np.sin(6 * np.pi * t), 3 * t], axis=1) for t in (u, dense)]
    return curve[0] + noise * rng.standard_normal((n, 3)), curve[1]


@pytest.mark.parametrize("seed", range(2))
def test_a_wound_curve_is_as_near_to_the_truth_as_the_gtm(seed):
    """Oriented noise from the plane used to hold the helix flat, three to five times as far from the truth."""
    X, truth = helix(300, 0.05, np.random.default_rng(seed))
    z = np.linspace(-1, 1, 1000)[:, None]
    far = []
    for model in (GTM(1, random_state=0), PPS(1, random_state=0)):
        curve = model.fit(X).inverse_transform(z)
        there, back = cKDTree(truth).query(curve)[0], cKDTree(curve).query(truth)[0]
        far.append(np.sqrt(np.mean(there**2) + np.mean(back**2)))
    assert far[1] < 1.08 * far[0]


def test_an_interrupt_of_the_gtm_keeps_what_it_had_come_to(monkeypatch):
    X = cloud()
    steps = iter(range(3))

    def interrupted(model, rows, state, relaxation=1.0):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return gtm.step(model, rows, state, relaxation)

    monkeypatch.setattr(gtm.GTMModel, "step", interrupted)
    model = PPS(clamping=0.5, **SMALL, max_iter=20).fit(X)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert model.n_iter_ == 0
    monkeypatch.undo()
    assert_array_equal(model.weights_, GTM(**SMALL, max_iter=3).fit(X).weights_)
    assert model.clamping_ == 0.5


# ---------------------------------------------------------------------------------------- orientation


@pytest.mark.parametrize(("clamping", "amplification"), [(0.2, None), (2.0, None), (0.5, 1.0), (3.0, 0.5)])
def test_draws_scatter_along_and_across_as_the_clamping_says(clamping, amplification):
    """Variances along and across the surface at one node, from rows drawn there."""
    X = cloud()
    model = PPS(clamping=clamping, amplification=amplification, **SMALL, max_iter=5).fit(X)
    noise, parameters = model._model.noise, model._parameters()
    node = np.full(100_000, 27)
    rows = noise.at_nodes(model._model.surface, parameters).draw(node, np.random.default_rng(0))
    d = rows - model._model.surface.nodes(model.weights_)[27]
    E = tangents(model._model.surface, model.weights_).frame[:, 27]
    inside = d @ E.T
    along = np.square(inside).mean()
    across = (np.square(d).sum(axis=1) - np.square(inside).sum(axis=1)).mean() / 3
    s, b = (clamping, (5 - 2 * clamping) / 3) if amplification is None else (clamping, clamping + amplification)
    assert_allclose([along, across], np.array([s, b]) * model.noise_variance_, rtol=0.02)
    assert (along < across) == (s < b)


def test_a_small_clamping_draws_rows_to_the_nodes_onto_which_they_project():
    """Self-consistency in the limit: with little noise along a curve the posterior mean tends to the projection."""
    data = datasets.make_half_circle(300, noise=0.1, rng=0)
    apart = []
    for clamping in (1.0, 0.5, 0.15):
        model = PPS(1, clamping=clamping, nodes=150, basis=8, max_iter=60, tol=0).fit(data.X)
        apart.append(np.mean(np.square(model.reconstruct(data.X) - model.project(data.X))))
    assert apart[0] > 2 * apart[1] > 8 * apart[2]


@pytest.mark.parametrize("trainer", ["gtm", "gem"])
def test_learning_the_clamping_beats_every_one_that_is_given(trainer):
    """From the same start the learned noise reaches at least the likelihood of those along the way to it."""
    X = cloud(200)
    learned = PPS(clamping="learn", trainer=trainer, **SMALL, max_iter=100).fit(X)
    given = [PPS(clamping=c, trainer=trainer, **SMALL, max_iter=100).fit(X) for c in (0.3, 1.0, 1.8)]
    assert learned.history_["objective"][-1] > max(model.history_["objective"][-1] for model in given)
    assert 0 < learned.clamping_ < 2.5


@pytest.mark.parametrize("clamping", ["learn-per-node", "learn-per-node-clamping"])
def test_noise_of_each_nodes_own_follows_noise_that_varies(clamping):
    """A curve with ten times the noise on one half: the nodes there have the larger variance across."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 600)
    X = np.stack([3 * x, np.where(x < 0, 0.2, 0.02) * rng.standard_normal(600), 0.1 * x], axis=1)
    model = PPS(1, clamping=clamping, nodes=40, basis=6, max_iter=60, tol=0, trainer="gem").fit(X)
    across = model.noise_variance_ * (3 - model.clamping_) / 2
    first = model.inverse_transform(model.latent_.nodes)[:, 0]
    noisy, quiet = np.median(across[first < -0.5]), np.median(across[first > 0.5])
    assert model.clamping_.shape == (40,)
    assert noisy > 4 * quiet


@pytest.mark.parametrize("clamping", [0.2, 1, 2.0, "learn-per-node"])
def test_the_covariance_of_a_node_is_the_papers(clamping):
    """(17): α/β in the tangents, (D − αQ)/(β(D − Q)) in the normals, so that all columns together have D/β."""
    model = PPS(clamping=clamping, **SMALL, max_iter=5).fit(cloud())
    Sigma = model.noise_covariance()
    E = np.linalg.qr(model.jacobian(model.latent_.nodes))[0]
    alpha, variance = (np.broadcast_to(value, 64) for value in (model.clamping_, model.noise_variance_))
    assert_allclose(Sigma @ E, (alpha * variance)[:, None, None] * E, atol=1e-10)
    assert_allclose(np.trace(Sigma, axis1=1, axis2=2), 5 * variance)
    axes = np.random.default_rng(0).standard_normal((5, 2))
    assert_allclose(model.noise_covariance(axes), axes.T @ Sigma @ axes, atol=1e-10)
    with pytest.raises(InvalidParameterError, match=r"axes must be finite and of shape \(5, a\)"):
        model.noise_covariance(np.eye(4))


def test_the_papers_steps_go_on_where_the_objective_falls_and_the_last_is_kept():
    """What returns to its best ends higher, the paper's nearer to new rows, as its table 4 has it: on iris."""
    X = datasets.load_iris().X
    X = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T
    order = np.random.default_rng(0).permutation(150)
    half, other = X[order[:75]], X[order[75:]]
    settings = {"nodes": 8, "basis": 3, "width": 2.0, "clamping": 0.4, "max_iter": 60, "tol": 0.0}
    best = PPS(**settings).fit(half)
    paper = PPS(trainer="paper", **settings).fit(half)
    climb = np.array(paper.history_["objective"])
    assert (np.diff(climb) < -1e-6).any()
    assert climb[-1] < climb.max()
    assert_allclose(paper.score(half), paper.history_["log_likelihood"][-1])
    assert best.history_["objective"][-1] > climb[-1]
    assert paper.projection_error(other) < best.projection_error(other)


def test_the_papers_step_is_the_gtms_with_the_responsibilities_of_oriented_noise():
    """One step by hand: weights by (3.15) and noise by (3.12), the responsibilities being those of the PPS."""
    X = cloud()
    settings = {"clamping": 0.4, "trainer": "paper", "nodes": 8, "basis": 4, "tol": 0.0, "regularization": 0.0}
    start, after = (PPS(max_iter=n, **settings).fit(X) for n in (0, 1))
    R, Phi = start.responsibilities(X), start._model.surface.node_features
    root = np.sqrt(R.sum(axis=0))[:, None]
    weights = np.linalg.lstsq(root * Phi, R.T @ (X - X.mean(axis=0)) / root, rcond=None)[0]
    centers = Phi @ weights + X.mean(axis=0)
    assert_allclose(after.inverse_transform(after.latent_.nodes), centers, atol=1e-6)
    squared = np.square(X[:, None] - centers).sum(axis=2)
    assert_allclose(after.noise_variance_, np.sum(R * squared) / X.size, rtol=1e-6)


# ------------------------------------------------------------------------------------ starts and spaces


def test_a_spectral_start_rescues_the_swiss_roll():
    data = datasets.make_swiss_roll(800, rng=0)
    flat = PPS(init="pca", random_state=0).fit(data.X)
    unrolled = PPS(init="isomap", random_state=0).fit(data.X)
    assert flat.projection_error(data.X) > unrolled.projection_error(data.X)
    # The true coordinates can be read off the map: a smooth function of it explains nearly all of their variance.
    assert _explained(unrolled.transform(data.X), data.latent) > 0.9
    assert _explained(flat.transform(data.X), data.latent) < 0.8
    off = np.sqrt(np.mean(np.square(data.surface.distance(unrolled.project(data.X)))))
    assert off < 0.6, "nearer to the true roll than a fifth of the distance between its turns"


def _explained(Z: np.ndarray, latent: np.ndarray) -> float:
    """Smallest share of variance of a true coordinate that a quadratic of the found ones explains."""
    A = np.column_stack([np.ones(len(Z)), Z, Z**2, Z[:, 0] * Z[:, 1]])
    left = latent - A @ np.linalg.lstsq(A, latent, rcond=None)[0]
    return float(np.min(1 - left.var(axis=0) / latent.var(axis=0)))


@pytest.mark.parametrize("clamping", [0.5, 1.3])
def test_a_sphere_is_found_and_its_directions_recovered(clamping):
    data = datasets.make_sphere(600, noise=0.05, rng=0, n_features=10)
    model = PPS(clamping=clamping, latent="sphere", nodes=150, basis=30, random_state=0).fit(data.X)
    assert np.sqrt(np.mean(np.square(data.surface.distance(model.mesh(30).vertices)))) < 0.06
    Z = model.transform(data.X)
    U, _, Vt = np.linalg.svd(Z.T @ data.latent)  # any rotation or mirror image of the sphere is as good
    degrees = np.degrees(np.arccos(np.clip(np.sum(Z @ (U @ Vt) * data.latent, axis=1), -1, 1)))
    assert np.median(degrees) < 8, "half the distance between neighbouring nodes"


# ------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("clamping", [2.5, 3, 100.0])
def test_a_clamping_that_leaves_nothing_across_is_refused(clamping):
    with pytest.raises(InvalidParameterError, match=r"must lie above 0 and below 5/2 = 2.5"):
        PPS(clamping=clamping).fit(cloud())


@pytest.mark.parametrize("clamping", [0, -1.0, np.nan, np.inf, "often", None])
def test_what_is_no_clamping_is_refused(clamping):
    with pytest.raises(InvalidParameterError, match="clamping"):
        PPS(clamping=clamping).fit(cloud())


def test_an_amplification_needs_a_clamping_that_is_given():
    with pytest.raises(InvalidParameterError, match="leave amplification at None"):
        PPS(clamping="learn", amplification=1.0).fit(cloud())


def test_a_surface_that_fills_the_columns_has_round_noise_and_says_so():
    X = cloud(n_columns=2)
    with pytest.warns(DegenerateWarning, match="no directions across it"):
        model = PPS(clamping=0.5, **SMALL, max_iter=5).fit(X)
    assert_array_equal(model.weights_, GTM(**SMALL, max_iter=5).fit(X).weights_)
    assert model.clamping_ == 1.0


@pytest.mark.parametrize("trainer", ["gtm", "gem"])
@pytest.mark.parametrize("clamping", [0.5, "learn", "learn-per-node", "learn-per-node-clamping"])
@pytest.mark.parametrize("scale", [2.0**46, 2.0**-38])
def test_single_precision_knows_no_scale(clamping, trainer, scale):
    """Squares of such numbers over the small sums of rows far out would leave its range."""
    X = cloud().astype(np.float32)
    X[0] *= 20
    settings = {"clamping": clamping, "trainer": trainer, "prior_precision": 0.0, **SMALL, "max_iter": 4}
    plain, scaled = (PPS(**settings).fit(X * np.float32(factor)) for factor in (1.0, scale))
    assert np.isfinite(scaled.history_["objective"]).all()
    assert_allclose(scaled.projection_error(X * np.float32(scale)), scale**2 * plain.projection_error(X), rtol=1e-2)


@pytest.mark.parametrize("trainer", ["gtm", "gem"])
def test_a_clamping_of_next_to_nothing_is_trained(trainer):
    model = PPS(clamping=1e-300, trainer=trainer, **SMALL, max_iter=4).fit(cloud())
    assert np.isfinite(model.history_["objective"]).all()


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("clamping", [0.4, 1, "learn", "learn-per-node", "learn-per-node-clamping"])
def test_a_model_read_back_says_the_same(tmp_path, clamping):
    X = cloud()
    model = PPS(clamping=clamping, **SMALL, max_iter=6).fit(X)
    model.save(tmp_path / "m.prinfold")
    again = load(tmp_path / "m.prinfold")
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert_array_equal(again.clamping_, model.clamping_)
    assert_array_equal(again.sample(5, random_state=0), model.sample(5, random_state=0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clamping_", np.inf),
        ("clamping_", -0.1),
        ("across_", 0.0),
        ("across_", np.full(64, 0.5)),
        ("clamping_", np.full(63, 0.5)),
        ("noise_variance_", np.nan),
        ("noise_variance_", np.zeros(64)),
    ],
)
def test_noise_that_cannot_be_is_refused_on_reading(tmp_path, name, value):
    model = PPS(clamping=0.5, **SMALL, max_iter=2).fit(cloud())
    setattr(model, name, value)
    with pytest.raises((CorruptModelFileError, ValueError), match=r"does not fit together|finite"):
        _through_a_file(model, tmp_path / "m.prinfold")


@pytest.mark.parametrize(
    ("fitted", "later"),
    [
        ({"clamping": 0.3}, {"clamping": 1.0}),
        ({"clamping": 0.3}, {"clamping": 0.9}),
        ({"clamping": 0.3}, {"amplification": 1.0}),
        ({"clamping": 1.0}, {"clamping": 0.5}),
        ({"clamping": 0.3, "amplification": 2.0}, {"amplification": None}),
        ({"clamping": "learn-per-node"}, {"clamping": 1.0}),
        ({"clamping": 0.3}, {"clamping": 50.0}),
    ],
)
def test_a_file_holds_what_was_fitted_whatever_was_set_since(tmp_path, fitted, later):
    X = cloud()
    model = PPS(**fitted, **SMALL, max_iter=4).fit(X)
    before = model.score_samples(X)
    model.set_params(**later)
    assert_array_equal(model.score_samples(X), before)
    assert_array_equal(_through_a_file(model, tmp_path / "m.prinfold").score_samples(X), before)


def _through_a_file(model: PPS, path: Path) -> PPS:
    save(model, path)
    return load(path)


def test_the_history_records_the_clamping():
    model = PPS(clamping="learn", **SMALL, max_iter=6).fit(cloud())
    assert model.history_["clamping"][0] == 1.0
    assert_allclose(model.history_["clamping"][-1], model.clamping_)
