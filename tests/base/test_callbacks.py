"""scikit-learn's callbacks through prinfold's estimators, alone and inside pipelines and searches."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM
from prinfold.base import callbacks
from prinfold.base.callbacks import CallbackForwarder, forward_to_callbacks
from prinfold.loops import Iteration, StopReason

DATA = np.random.default_rng(0).normal(size=(40, 3)) * [3, 1, 0.2]
modern = pytest.mark.skipif(
    not hasattr(callbacks.CallbackSupportMixin, "_init_callback_context"), reason="scikit-learn before 1.9"
)


def gtm(**settings):
    return GTM(nodes=4, basis=2, **{"max_iter": 5, "tol": 0} | settings)


class Recorder:
    """A callback that notes what it hears, and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at, self.events, self.scores = stop_at, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X))
        return context.task_name == "iteration" and context.task_id == self.stop_at


@modern
def test_callbacks_hear_of_every_iteration_in_order():
    recorder = Recorder()
    gtm().set_callbacks(recorder).fit(DATA)
    assert recorder.events == [
        "setup",
        "begin fit",
        *["begin iteration", "end iteration"] * 6,
        "end fit",
        "teardown",
    ]


@modern
def test_callbacks_can_try_the_model_as_it_is():
    recorder = Recorder()
    model = gtm().set_callbacks(recorder).fit(DATA)
    np.testing.assert_allclose(recorder.scores, model.history_["log_likelihood"], rtol=1e-10)


@modern
def test_a_callback_may_stop_the_training():
    recorder, silent = Recorder(stop_at=2), Recorder()
    model = gtm(tol=1e-9).set_callbacks(recorder, silent).fit(DATA)
    assert model.stop_reason_ is StopReason.CALLBACK
    assert model.n_iter_ == 2
    assert recorder.events == silent.events
    assert recorder.events[-2:] == ["end fit", "teardown"]


@modern
def test_callbacks_are_torn_down_after_an_error_and_the_estimator_fits_again(monkeypatch):
    from prinfold.gtm import model as algorithm

    recorder = Recorder()
    model = gtm().set_callbacks(recorder)

    def fail(*_):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(algorithm, "step", fail)
        with pytest.raises(RuntimeError, match="broken"):
            model.fit(DATA)
    assert recorder.events[-1] == "teardown"
    recorder.events.clear()
    model.fit(DATA)
    assert recorder.events[-2:] == ["end fit", "teardown"]


@modern
def test_callbacks_change_nothing_and_leave_nothing_behind(tmp_path):
    from prinfold import load

    plain, watched = gtm().fit(DATA), gtm().set_callbacks(Recorder()).fit(DATA)
    np.testing.assert_array_equal(watched.transform(DATA), plain.transform(DATA))
    assert watched.get_params() == plain.get_params()
    assert set(vars(watched)) - set(vars(plain)) == {"_skl_callbacks"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(watched)).transform(DATA), plain.transform(DATA))
    watched.save(tmp_path / "watched.prinfold")
    assert not hasattr(load(tmp_path / "watched.prinfold"), "_skl_callbacks")
    watched.set_callbacks()
    assert set(vars(watched)) == set(vars(plain))
    clone(watched).fit(DATA)


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="FitCallback protocol"):
        GTM().set_callbacks(lambda: None)


@modern
class TestProgressBar:
    """scikit-learn's own bar, which needs rich."""

    @pytest.fixture(autouse=True)
    def _rich(self):
        pytest.importorskip("rich")

    @pytest.fixture
    def bar(self):
        from sklearn.callback import ProgressBar

        return ProgressBar(max_propagation_depth=None)

    def test_alone(self, bar, capfd):
        gtm().set_callbacks(bar).fit(DATA)
        assert "GTM - fit" in capfd.readouterr().out

    def test_stopped_early(self, bar, capfd):
        model = gtm(tol=0.5, max_iter=50).set_callbacks(bar).fit(DATA)
        assert model.converged_
        assert "GTM - fit" in capfd.readouterr().out

    def test_inside_a_pipeline(self, bar, capfd):
        make_pipeline(StandardScaler(), gtm()).set_callbacks(bar).fit(DATA)
        out = capfd.readouterr().out
        assert "Pipeline - fit" in out
        assert "GTM" in out

    def test_inside_a_search(self, bar, capfd):
        pipeline = make_pipeline(StandardScaler(), gtm())
        search = GridSearchCV(pipeline, {"gtm__regularization": [0.1, 1.0]}, cv=2).set_callbacks(bar).fit(DATA)
        assert search.best_params_["gtm__regularization"] in (0.1, 1.0)
        assert "GTM" in capfd.readouterr().out


# ---------------------------------------------------------------- the stand-in for scikit-learn before 1.9


class Old:
    """An estimator with callbacks set, but without scikit-learn's contexts."""

    def __init__(self, *given):
        self._skl_callbacks = list(given)


def test_the_stand_in_tells_every_callback_and_stops_when_one_asks():
    heard = []
    stops = SimpleNamespace(on_fit_task_end=lambda estimator, context: context.index == 1)
    listens = SimpleNamespace(on_fit_task_end=lambda estimator, context: heard.append(context.index))
    (forwarder,) = forward_to_callbacks(Old(stops, listens), DATA, 5, lambda state: {})
    assert isinstance(forwarder, CallbackForwarder)
    asked = [forwarder(Iteration(i, 5, None, {"objective": 0.0})) for i in range(3)]
    assert asked == [False, True, False]
    assert heard == [0, 1, 2]
    forwarder.close("done")


def test_without_callbacks_there_is_nothing_to_tell():
    assert forward_to_callbacks(Old(), DATA, 5, lambda state: {}) == []
    assert forward_to_callbacks(object(), DATA, 5, lambda state: {}) == []


def test_the_stand_in_is_used_where_scikit_learn_has_no_callbacks():
    """Import the module as it would be with an older scikit-learn."""
    import subprocess
    import sys

    script = """
import sys
sys.modules["sklearn.callback"] = None
import numpy as np
from prinfold import GTM
class Stop:
    seen = []
    def on_fit_task_end(self, estimator, context):
        self.seen.append(context.index)
        return context.index == 2
model = GTM(nodes=3, basis=2, tol=0, max_iter=9).set_callbacks(Stop())
model.fit(np.random.default_rng(0).normal(size=(20, 3)))
assert Stop.seen == [0, 1, 2], Stop.seen
assert model.n_iter_ == 2
try:
    GTM().set_callbacks(lambda: None)
except TypeError as error:
    assert "FitCallback protocol" in str(error)
else:
    raise AssertionError
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
