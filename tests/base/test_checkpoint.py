"""A fit that died is taken up again and ends with the same model, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.base.killed_fits import LARGE, SMALL, model_of, rows_of
from tests.properties.cases import CASES

from prinfold import (
    GTM,
    SOM,
    Blocks,
    Checkpoint,
    PrincipalCurve,
    datasets,
    load,
)
from prinfold.exceptions import CheckpointError, InvalidParameterError, NoSuchFolderError, NotWrittenError
from prinfold.loops import StopReason

ROWS = np.random.default_rng(3).normal(size=(60, 3)) * [3, 1, 0.3]
ROWS[:, 1] += 0.2 * ROWS[:, 0] ** 2

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


class Death(BaseException):
    """The end of a process, as far as one that goes on can have it."""


class Killer:
    """A callback that ends training from outside after some iterations."""

    def __init__(self, after):
        self.left = after

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, **told):
        pass

    def on_fit_task_end(self, estimator, context, **told):
        self.left -= 1
        if self.left < 0:
            raise Death


def untimed(history):
    return {name: values for name, values in history.items() if name != "seconds"}


def assert_same(model, plain, X):
    assert untimed(model.history_) == untimed(plain.history_)
    assert (model.n_iter_, model.stop_reason_) == (plain.n_iter_, plain.stop_reason_)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    np.testing.assert_array_equal(model.project(X), plain.project(X))


def fit_and_die(model, X, path, after, **data):
    with pytest.raises(Death):
        model.set_callbacks(Checkpoint(path, every=0), Killer(after)).fit(X, **data)


QUICK = {"GTM", "GTM-varying", "PrincipalCurve", "SOM-online", "KMM"}
"""Cases of the quick run: one of each kind of state."""


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.name, marks=() if each.name in QUICK else pytest.mark.full) for each in CASES]
)
def test_a_fit_that_died_goes_on_bit_for_bit(case, tmp_path):
    seed = {"random_state": 0} if "random_state" in case.make().get_params() else {}
    path = tmp_path / "fit.checkpoint"
    plain = case.make(**seed).fit(ROWS)
    fit_and_die(case.make(**seed), ROWS, path, max(1, plain.n_iter_ // 2))
    assert_same(case.make(**seed).set_callbacks(Checkpoint(path)).fit(ROWS), plain, ROWS)
    written = path.read_bytes()
    # A fit that has ended is not run again.
    assert_same(case.make(**seed).set_callbacks(Checkpoint(path)).fit(ROWS), plain, ROWS)
    assert path.read_bytes() == written


@pytest.mark.parametrize("after", [3, 40, 70])
def test_every_stage_of_a_fit_is_kept(after, tmp_path):
    X = datasets.make_pipe_flow(150, rng=0).X
    plain = GTM(random_state=0).fit(X)
    assert plain.stop_reason_ is StopReason.REFINED, "the nodes are to be doubled in this test"
    path = tmp_path / "fit.checkpoint"
    fit_and_die(GTM(random_state=0), X, path, min(after, plain.n_iter_ - 2))
    assert_same(GTM(random_state=0).set_callbacks(Checkpoint(path)).fit(X), plain, X)


def test_iterations_before_the_checkpoint_are_not_run_again(tmp_path):
    path = tmp_path / "fit.checkpoint"
    settings = {"nodes": 8, "basis": 4, "max_iter": 20, "tol": 0}
    fit_and_die(GTM(**settings), ROWS, path, 12)
    heard = []

    class Ear(Killer):
        def on_fit_task_end(self, estimator, context, **told):
            heard.append(context)

    GTM(**settings).set_callbacks(Checkpoint(path), Ear(0)).fit(ROWS)
    assert len(heard) <= 20 - 11 + 2  # the iteration in the file, those after it, and the fit itself


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nodes": 9}, "fit with nodes=8, and this one has nodes=9"),
        ({"tol": 1e-3}, "tol=0, and this one has tol=0.001"),
    ],
)
def test_other_settings_are_refused(settings, said, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = GTM(nodes=8, basis=4, max_iter=3, tol=0)
    model.set_callbacks(Checkpoint(path)).fit(ROWS)
    with pytest.raises(CheckpointError, match=f"{said}. Give another path"):
        model.set_params(**settings).fit(ROWS)


def test_other_rows_weights_and_methods_are_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = GTM(nodes=8, basis=4, max_iter=3, tol=0).set_callbacks(Checkpoint(path))
    model.fit(ROWS)
    model.set_params(verbose=0).fit(ROWS)
    with pytest.raises(CheckpointError, match="other rows"):
        model.fit(ROWS + 1e-12)
    with pytest.raises(CheckpointError, match="a fit with another sample_weight"):
        model.fit(ROWS, sample_weight=np.linspace(1, 2, len(ROWS)))
    model.fit(ROWS, None, None)
    with pytest.raises(CheckpointError, match="checkpoint of a GTM, and this is a PrincipalCurve"):
        PrincipalCurve().set_callbacks(Checkpoint(path)).fit(ROWS)


def test_a_random_start_that_cannot_be_computed_again_is_said(tmp_path):
    model = SOM(init="random", max_iter=3, tol=0).set_callbacks(Checkpoint(tmp_path / "a"))
    model.fit(ROWS)
    with pytest.raises(CheckpointError, match=r"give random_state a number.*give another path"):
        model.fit(ROWS)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "empty"])
def test_a_damaged_file_is_refused_in_words(damage, tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = GTM(nodes=8, basis=4, max_iter=3, tol=0).set_callbacks(Checkpoint(path)).fit(ROWS)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    path.write_bytes({"cut": whole[:-9], "flipped": bytes(flipped), "text": b"no numbers", "empty": b""}[damage])
    with pytest.raises(CheckpointError, match="not a checkpoint of this version of prinfold, or it is damaged"):
        model.fit(ROWS)


def test_what_cannot_be_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="every must be"):
        Checkpoint(tmp_path / "a", every=-1)
    with pytest.raises(NoSuchFolderError):
        Checkpoint(tmp_path / "nowhere" / "a")
    with pytest.raises(InvalidParameterError, match="one checkpoint, got 2"):
        GTM().set_callbacks(Checkpoint(tmp_path / "a"), Checkpoint(tmp_path / "b")).fit(ROWS)


def test_a_disk_that_is_full_is_said(tmp_path, monkeypatch):
    from prinfold.loops import training_log

    def refuse(path, content):
        raise NotWrittenError(28, "No space left on device", os.fspath(path))

    monkeypatch.setattr(training_log, "write_bytes", refuse)
    with pytest.raises(NotWrittenError, match="No space left"):
        GTM(nodes=8, basis=4, max_iter=3, tol=0).set_callbacks(Checkpoint(tmp_path / "a", every=0)).fit(ROWS)


def test_a_fit_that_is_interrupted_keeps_a_model_and_its_checkpoint_goes_on(tmp_path):
    path, settings = tmp_path / "a", {"nodes": 8, "basis": 4, "max_iter": 12, "tol": 0}
    plain = GTM(**settings).fit(ROWS)

    class Interrupt(Killer):
        def on_fit_task_end(self, estimator, context, **told):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        stopped = GTM(**settings).set_callbacks(Checkpoint(path, every=0), Interrupt(6)).fit(ROWS)
    assert stopped.stop_reason_ is StopReason.INTERRUPTED
    assert_same(GTM(**settings).set_callbacks(Checkpoint(path)).fit(ROWS), plain, ROWS)


def test_blocks_too(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 1, 0.5, 0.2]
    blocks = lambda: Blocks([X[:100], X[100:200], X[200:]])  # noqa: E731
    settings = {"nodes": 8, "basis": 4, "max_iter": 8, "tol": 0}
    plain = GTM(**settings).fit(blocks())
    path = tmp_path / "a"
    fit_and_die(GTM(**settings), blocks(), path, 4)
    model = GTM(**settings).set_callbacks(Checkpoint(path)).fit(blocks())
    assert untimed(model.history_) == untimed(plain.history_)
    np.testing.assert_array_equal(model.weights_, plain.weights_)


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fits are forked")
@pytest.mark.parametrize("name", [*LARGE, *SMALL])
def test_killed_at_random_moments(name, tmp_path):
    # The fit that nothing interrupts is made by a process of the same kind: the tests' own holds BLAS to one thread.
    subprocess.run([sys.executable, "-m", "tests.base.killed_fits", name, str(tmp_path)], check=True, timeout=300)
    assert int((tmp_path / "kills.txt").read_text()) > 0
    killed, plain = load(tmp_path / "killed.prinfold"), load(tmp_path / "plain.prinfold")
    assert_same(killed, plain, rows_of(name)[0])


def test_every_iterative_method_is_killed():
    killed = {type(model_of(name)).__name__ for name in (*LARGE, *SMALL)}
    assert killed == {type(case.make()).__name__ for case in CASES}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path):
    """Nobody writes into the pipe, and its reader would wait for ever."""
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, os.devnull):
        with pytest.raises(CheckpointError, match="is no plain file, as a checkpoint is"):
            GTM(1, nodes=6, basis=3, max_iter=2).set_callbacks(Checkpoint(path)).fit(ROWS)
