"""Incremental EM: a plain twin with all responsibilities in memory, its free energy, and where training ends."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from prinfold import GTM, Blocks, GaussianProcess, Incremental, LowRankNoise, StudentNoise, load
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import make_basis, make_latent
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.protocol import Parameters, Statistics
from prinfold.gtm.penalties import ConstantPenalty
from prinfold.gtm.starts.first_parameters import pca_start
from prinfold.gtm.trainers.incremental import IncrementalModel
from prinfold.rows.rows import as_rows

RNG = np.random.default_rng(0)
_T = RNG.uniform(-1, 1, (90, 2))
X = np.column_stack([_T, _T[:, 0] ** 2, _T[:, 0] * _T[:, 1]]) + 0.1 * RNG.standard_normal((90, 4))
WEIGHT = RNG.uniform(0.2, 2.0, len(X))


def _model(kind=GTMModel, **settings):
    latent = make_latent(None, 6, 2, len(X))
    surface = BasisMap(latent, make_basis(3, 1.0, False, latent).bind(latent))
    return kind(surface, IsotropicNoise(1e-6), ConstantPenalty(0.1), **settings)


class _Dense:
    """Incremental EM with the matrix of responsibilities in memory, and the free energy of it."""

    def __init__(self, model, table, weight):
        self.model, self.table, self.weight = model, table, weight

    def joint(self, parameters):
        """(n, K) ln p(t, node)."""
        centers = self.model.surface.nodes(parameters.weights)
        beta, (K, D) = parameters.precision, centers.shape
        apart = ((self.table[:, None] - centers) ** 2).sum(axis=2)
        return 0.5 * D * np.log(beta / (2 * np.pi)) - 0.5 * beta * apart - np.log(K)

    def posterior(self, parameters):
        joint = self.joint(parameters)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def solved(self, R, parameters):
        R = R * self.weight[:, None]
        square = self.weight @ (self.table**2).sum(axis=1)
        sums = Statistics(R.sum(axis=0), R.T @ self.table, square, 0.0, self.weight.sum())
        return self.model.noise.m_step(self.model.surface, sums, self.model.penalty, parameters)

    def free_energy(self, R, parameters):
        inner = np.where(R > 0, R * (self.joint(parameters) - np.log(np.where(R > 0, R, 1.0))), 0.0)
        return self.weight @ inner.sum(axis=1) - parameters.cost(self.model.surface, self.model.penalty)


def test_sweeps_are_those_of_a_plain_twin_and_its_free_energy_never_falls():
    rows = as_rows(X, X.mean(axis=0), WEIGHT)
    model, n_blocks = _model(IncrementalModel, trainer=Incremental(7)), 7
    parameters = pca_start(model, rows, np.random.default_rng(0))
    state, dense = model.begin(rows, parameters), _Dense(_model(), X - X.mean(axis=0), WEIGHT)
    R = dense.posterior(parameters)
    energies = [dense.free_energy(R, parameters)]
    for _ in range(4):
        state = model.step(rows, state)
        for b in range(n_blocks):
            parameters = dense.solved(R, parameters)
            energies.append(dense.free_energy(R, parameters))
            R[b::n_blocks] = dense.posterior(parameters)[b::n_blocks]
            energies.append(dense.free_energy(R, parameters))
        np.testing.assert_allclose(state.parameters.weights, parameters.weights, atol=1e-9)
        np.testing.assert_allclose(state.parameters.precision, parameters.precision, rtol=1e-9)
    assert min(np.diff(energies)) > -1e-9
    # Once all blocks have been seen under the last parameters, free energy and penalised likelihood are one.
    R = dense.posterior(parameters)
    objective = model.measure(model.finish(rows, state))["objective"]
    np.testing.assert_allclose(objective, dense.free_energy(R, parameters) / WEIGHT.sum(), rtol=1e-9)


def test_one_block_is_plain_em():
    settings = {"nodes": 6, "basis": 3, "max_iter": 15, "tol": 0.0, "relaxation": 1.0}
    batch = GTM(**settings).fit(X, sample_weight=WEIGHT)
    one = GTM(trainer=Incremental(1), **settings).fit(X, sample_weight=WEIGHT)
    np.testing.assert_allclose(one.weights_, batch.weights_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.history_["objective"], batch.history_["objective"], rtol=1e-10)


@pytest.mark.parametrize(
    ("noise", "n_blocks"),
    [
        ("isotropic", 3),
        ("isotropic", 90),
        ("isotropic", 1000),
        ("diagonal", 3),
        ("student", 3),
        ("varying", 3),
        ("aligned", 3),
        (LowRankNoise(1), 3),
        (StudentNoise(3.0), 3),
    ],
    ids=str,
)
def test_every_noise_ends_where_em_does(noise, n_blocks):
    """From where incremental EM ends, further sweeps of batch EM gain next to nothing."""
    settings = {"nodes": 6, "basis": 3, "noise": noise, "tol": 1e-9, "max_iter": 400, "regularization": 1.0}
    model = GTM(trainer=Incremental(n_blocks), **settings).fit(X, sample_weight=WEIGHT)
    rows = as_rows(X, model.offset_, WEIGHT)
    state = model._model.begin(rows, model._parameters())
    first = model._model.measure(state)["objective"]
    np.testing.assert_allclose(model.history_["objective"][-1], first, rtol=1e-9)
    for _ in range(5):
        state = model._model.step(rows, state)
    assert abs(model._model.measure(state)["objective"] - first) < 1e-5


def test_gaps_errors_and_weights_of_nothing():
    table, errors = X.copy(), RNG.uniform(0.01, 0.1, X.shape)
    table[::4, 1] = np.nan
    weight = np.where(np.arange(len(X)) % 5 == 0, 0.0, WEIGHT)
    settings = {"nodes": 6, "basis": 3, "trainer": Incremental(4), "max_iter": 400, "tol": 1e-8}
    found = GTM(**settings).fit(table, sample_weight=weight, errors=errors)
    kept = weight > 0
    same = GTM(**settings).fit(table[kept], sample_weight=weight[kept], errors=errors[kept])
    np.testing.assert_allclose(found.weights_, same.weights_, rtol=1e-9, atol=1e-12)
    batch = GTM(nodes=6, basis=3, max_iter=400, tol=1e-9).fit(table, sample_weight=weight, errors=errors)
    np.testing.assert_allclose(found.history_["objective"][-1], batch.history_["objective"][-1], rtol=1e-3)


def test_what_lies_on_disk_and_what_is_sparse(tmp_path):
    settings = {"nodes": 6, "basis": 3, "trainer": Incremental(4), "max_iter": 20, "tol": 0.0}
    dense = GTM(**settings).fit(X)
    sparse = GTM(**settings).fit(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(sparse.weights_, dense.weights_, rtol=1e-9, atol=1e-12)
    np.save(tmp_path / "x.npy", X)
    mapped = GTM(**settings).fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert abs(mapped.score(X) - dense.score(X)) < 0.05  # blocks are cut otherwise, so that it is another path


def test_the_history_ends_with_the_truth():
    model = GTM(nodes=6, basis=3, trainer="incremental", max_iter=3, tol=0.0).fit(X)
    assert model.n_iter_ == 3
    assert all(len(each) == 4 for each in model.history_.values())
    np.testing.assert_allclose(model.history_["log_likelihood"][-1], model.score(X), rtol=1e-9)
    np.testing.assert_allclose(model.node_mass_, model.responsibilities(X).sum(axis=0), rtol=1e-9)
    assert model.history_["seconds"] == sorted(model.history_["seconds"])


def test_a_trainer_with_settings_goes_into_files(tmp_path):
    model = GTM(nodes=6, basis=3, trainer=Incremental(3), max_iter=3, tol=0.0).fit(X)
    model.save(tmp_path / "m.prinfold")
    assert load(tmp_path / "m.prinfold").trainer == Incremental(3)


def test_a_process_with_its_numbers_given():
    process = GaussianProcess(length_scale=0.8, variance=1.0)
    model = GTM(nodes=6, basis=process, trainer=Incremental(3), max_iter=200, tol=1e-8).fit(X)
    batch = GTM(nodes=6, basis=process, max_iter=200, tol=1e-8).fit(X)
    np.testing.assert_allclose(model.history_["objective"][-1], batch.history_["objective"][-1], rtol=1e-3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior_precision": "evidence"}, "follows the evidence needs all rows at once.*trainer='batch'"),
        (
            {"basis": GaussianProcess()},
            "estimates its length_scale .* needs all rows at once.*trainer='batch'",
        ),
    ],
)
def test_what_is_found_on_the_way_needs_all_rows_at_once(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        GTM(nodes=6, trainer="incremental", **settings).fit(X)


@pytest.mark.parametrize("n_blocks", [0, -1, 2.5, None, "all"])
def test_blocks_are_counted(n_blocks):
    with pytest.raises(InvalidParameterError, match="Incremental: n_blocks must be a whole number of at least 1"):
        Incremental(n_blocks)


def test_the_sums_of_a_state_are_those_of_its_visits():
    rows = as_rows(X, X.mean(axis=0))
    model = _model(IncrementalModel, trainer=Incremental(5))
    state = model.begin(rows, Parameters(np.zeros((len(model.surface.penalty_mask), 4)), 1.0))
    for _ in range(3):
        state = model.step(rows, state)
    mass = sum(visit.statistics.mass for visit in state.visits)
    np.testing.assert_allclose(state.statistics.mass, mass, rtol=1e-12)
    np.testing.assert_allclose(state.statistics.total, len(X))


def test_rows_that_are_read_block_by_block():
    """Each block of the source is a block of the trainer, whose sums alone are kept."""
    settings = {"nodes": 6, "basis": 3, "max_iter": 10, "tol": 0.0, "init": "pca"}
    read = GTM(trainer=Incremental(), **settings).fit(Blocks(X, rows=15))
    rows = as_rows(X, X.mean(axis=0))
    model = _model(IncrementalModel, trainer=Incremental(6))
    order = np.arange(90).reshape(6, 15).T.ravel()  # so that every sixth row makes a block of the source
    held = GTM(trainer=Incremental(6), **settings).fit(X[order])
    assert_allclose(read.weights_, held.weights_, rtol=1e-8, atol=1e-10)
    assert_allclose(read.history_["objective"], held.history_["objective"], rtol=1e-8)
    assert model.begin(rows, read._parameters()).statistics.total == len(X)


_U, _V = RNG.uniform(-1, 1, (2, 1000))
SHEET = np.column_stack([2 * _U, _V, _U**2, _U * _V]) + 0.2 * RNG.standard_normal((1000, 4))
"""A bent sheet: from the usual start all trainers come to one optimum of it, so that likelihoods can be compared."""
SETTINGS = {"nodes": 8, "basis": 4, "regularization": 1.0, "tol": 0.0, "random_state": 0}


@pytest.fixture(scope="module")
def batch_score():
    model = GTM(**SETTINGS, max_iter=300).fit(SHEET)
    assert model.history_["log_likelihood"][0] < 1.02 * model.score(SHEET)  # there was some way to go
    return model.score(SHEET)


@pytest.mark.parametrize(
    ("trainer", "blocks", "passes", "share"),
    [
        ("batch", True, 60, 1e-3),
        ("incremental", False, 60, 1e-3),
        ("incremental", True, 60, 1e-3),
        (Incremental(10, freeze=0.05), False, 60, 1e-3),
        ("online", False, 20, 1e-2),
        ("online", True, 20, 1e-2),
    ],
    ids=str,
)
def test_trainers_end_where_batch_does(trainer, blocks, passes, share, batch_score):
    """Within 0.1 % of the log-likelihood of batch EM, online EM within 1 % after 20 passes."""
    model = GTM(trainer=trainer, max_iter=passes, **SETTINGS).fit(Blocks(SHEET, rows=150) if blocks else SHEET)
    assert_allclose(model.score(SHEET), batch_score, rtol=share)
    assert_allclose(model.history_["log_likelihood"][-1], model.score(SHEET), rtol=1e-9)


@pytest.mark.parametrize("trainer", ["incremental", "online"])
def test_streams_go_on_after_blocks(trainer):
    model = GTM(trainer=trainer, max_iter=3, **SETTINGS).fit(Blocks(SHEET, rows=150))
    assert model.n_seen_ == len(SHEET)
    assert model.partial_fit(SHEET[:100]).n_seen_ == len(SHEET) + 100
