"""Training in the span of the rows, against training in all columns."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import PPS
from prinfold.base.checkpoint import Checkpoint
from prinfold.gtm import posterior
from prinfold.pps import span_training

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

SMALL = {"nodes": 8, "basis": 3, "max_iter": 10, "tol": 0.0}


def wide_bowl(n: int = 20, n_columns: int = 120) -> np.ndarray:
    rng = np.random.default_rng(3)
    places = rng.uniform(-1, 1, (n, 2))
    bowl = np.c_[places, np.square(places).sum(axis=1)] @ rng.normal(size=(3, n_columns))
    return bowl + 0.1 * rng.normal(size=(n, n_columns)) + 5.0


@pytest.fixture
def frames(monkeypatch):
    """Shapes of the frames that training takes."""
    seen, find = [], span_training._frame_of

    def frame_of(rows, weights):
        seen.append((found := find(rows, weights)).shape)
        return found

    monkeypatch.setattr(span_training, "_frame_of", frame_of)
    return seen


@pytest.mark.parametrize(
    "settings",
    [
        {"trainer": "gtm"},
        {"trainer": "gem"},
        {"trainer": "paper"},
        {"clamping": "learn"},
        {"clamping": "learn-per-node"},
        {"clamping": 0.3, "amplification": 0.5},
        {"trainer": "gem", "clamping": 20.0},
        {"nodes": None},  # which are doubled on the way
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_fit_in_the_span_is_the_fit_in_all_columns(settings, frames, monkeypatch):
    X = wide_bowl()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = PPS(random_state=0, **{**SMALL, **settings})
    model.fit(X, sample_weight=weight)
    assert frames
    assert {shape[0] for shape in frames} == {120}
    assert max(shape[1] for shape in frames) <= len(X)
    monkeypatch.setattr(span_training, "_COLUMNS_PER_ROW", np.inf)
    whole, count = PPS(**model.get_params()).fit(X, sample_weight=weight), len(frames)
    assert len(frames) == count
    assert model.latent_.n_nodes == whole.latent_.n_nodes
    assert_allclose(model.weights_, whole.weights_, atol=1e-10 * np.abs(whole.weights_).max())
    for name in ("noise_variance_", "clamping_", "across_"):
        assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9)
    assert_allclose(model.node_mass_, whole.node_mass_, atol=1e-9)
    for name in ("objective", "log_likelihood", "noise", "clamping"):
        assert_allclose(model.history_[name], whole.history_[name], rtol=1e-9)


def test_a_start_outside_of_the_span_is_taken_along(frames):
    """No rows but these lie in the frame; what weights have across it is not lost."""
    X = wide_bowl()
    model = PPS(random_state=0, **SMALL).fit(X)
    rows, outside = model._rows(X), np.random.default_rng(1).normal(size=model.weights_.shape)
    training = span_training.SpanTrainer().training(model._model)
    parameters = model._model.noise.initial(outside, 1.0)
    state = training.begin(rows, parameters)
    assert_allclose(state.parameters.weights, outside, atol=1e-12)
    plain = model._model.begin(rows, parameters)
    assert training.measure(state) == pytest.approx(model._model.measure(plain), rel=1e-12)
    for name in ("mass", "moment", "square", "tangential"):
        expected = getattr(plain.statistics, name)
        assert_allclose(getattr(state.statistics, name), expected, atol=1e-9 * np.abs(expected).max())


def test_narrow_tables_and_tables_with_gaps_are_trained_in_all_columns(frames):
    X = wide_bowl()
    PPS(random_state=0, **SMALL).fit(X[:, :39])
    X[3, 7] = np.nan
    PPS(random_state=0, **SMALL).fit(X)
    assert frames == []


def test_a_checkpoint_goes_on_in_the_span(tmp_path, frames):
    """The file holds the frame, and an interrupted fit goes on from it to the bit."""
    X, path = wide_bowl(), tmp_path / "wide.checkpoint"
    whole = PPS(random_state=0, **SMALL).fit(X)

    class Stop:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context, **told): ...
        def on_fit_task_end(self, estimator, context, **told):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

        left = 4

    PPS(random_state=0, **SMALL).set_callbacks(Checkpoint(path, every=0), Stop()).fit(X)
    resumed = PPS(random_state=0, **SMALL).set_callbacks(Checkpoint(path, every=0)).fit(X)
    assert resumed.history_["objective"] == whole.history_["objective"]
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert frames


@pytest.mark.parametrize("clamping", [0.3, 3.0, "learn"])
def test_places_of_rows_are_found_in_the_span_of_the_surface(clamping, monkeypatch):
    X = wide_bowl()
    model = PPS(random_state=0, clamping=clamping, **SMALL).fit(X)
    new = X + np.random.default_rng(1).normal(size=X.shape)
    assert posterior._narrow_frame(model._model, model._rows(new), model._parameters()) is not None
    inside = model.transform(new)
    monkeypatch.setattr(posterior, "_COLUMNS_PER_FUNCTION", np.inf)
    assert_allclose(inside, model.transform(new), atol=1e-9)


def test_nodes_with_noises_of_their_own_look_at_all_columns():
    """What a row has outside of the surface's span tells such nodes apart."""
    model = PPS(random_state=0, clamping="learn-per-node", **SMALL).fit(X := wide_bowl())
    assert posterior._narrow_frame(model._model, model._rows(X), model._parameters()) is None
