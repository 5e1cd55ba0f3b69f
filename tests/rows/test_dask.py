"""Dask arrays and frames: the same classes, the same numbers as blocks, and nothing computed before it is asked for."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from tests.properties.cases import cases, fitted

from prinfold import (
    GTM,
    PPS,
    SOM,
    Blocks,
    DensityRidge,
    GTMClassifier,
    GTMMixture,
    GTMRegressor,
    LowRankNoise,
    PrincipalCurve,
    SurfaceMonitor,
)
from prinfold.exceptions import (
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    UnsupportedInputError,
    WorkersLostError,
)
from prinfold.loops import StopReason
from prinfold.rows import streams as stream
from prinfold.rows.dask_partitions import DaskPartitions

da = pytest.importorskip("dask.array", reason="needs the extra dask")
distributed = pytest.importorskip("distributed", reason="needs the extra dask")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.full]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4)) * [3, 1, 0.5, 0.2]
X[:, 1] += 0.2 * X[:, 0] ** 2
GAPS = np.where(RNG.random(X.shape) < 0.05, np.nan, X)
FIXED = {"nodes": 8, "basis": 4, "max_iter": 6, "tol": 0.0, "random_state": 0}

MODELS = {
    "isotropic": lambda: GTM(**FIXED),
    "diagonal": lambda: GTM(noise="diagonal", **FIXED),
    "student": lambda: GTM(noise="student", **FIXED),
    "varying": lambda: GTM(noise="varying", **FIXED),
    "aligned": lambda: GTM(noise="aligned", **FIXED),
    "low rank": lambda: GTM(noise=LowRankNoise(1), **FIXED),
    "online": lambda: GTM(trainer="online", **FIXED),
    "incremental": lambda: GTM(trainer="incremental", **FIXED),
    "PPS": lambda: PPS(**FIXED),
}


def array(table=X, rows=200, columns=4):
    return da.from_array(table, chunks=(rows, columns))


def assert_same(one, other):
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert one.history_["objective"] == other.history_["objective"]


class Ear:
    """A callback that hears of iterations."""

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, **told):
        pass


def end_process(when, block):
    """End the worker that computes a partition, at once or from the moment on that a file is there."""
    if len(block) and (when is None or Path(when).exists()):
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@contextmanager
def closing_cluster(cluster):
    """A cluster that is closed at the end, though distributed may look in vain for workers that tests have ended."""
    try:
        yield cluster
    finally:
        with suppress(KeyError):
            cluster.close()


@contextmanager
def two_workers():
    """A client of two processes on this machine."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with closing_cluster(distributed.LocalCluster(**options)) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("table", [X, GAPS], ids=["whole", "gaps"])
def test_a_fit_equals_that_of_blocks_with_the_same_cuts_to_the_last_bit(name, table):
    assert_same(MODELS[name]().fit(array(table)), MODELS[name]().fit(Blocks(table, rows=200)))


@pytest.mark.parametrize("name", ["isotropic", "student", "PPS"])
def test_so_it_does_on_a_cluster(name, cluster):
    assert_same(MODELS[name]().fit(array()), MODELS[name]().fit(Blocks(X, rows=200)))


def test_chunks_of_columns_change_nothing():
    assert_same(MODELS["isotropic"]().fit(array(columns=3)), MODELS["isotropic"]().fit(array()))


@pytest.mark.parametrize("make_generator", [np.random.PCG64, np.random.MT19937])
@pytest.mark.parametrize("table", [X, GAPS], ids=["whole", "gaps"])
def test_rows_are_looked_at_where_they_lie_and_only_a_sample_comes_here(make_generator, table, monkeypatch):
    monkeypatch.setattr(stream, "_SAMPLE_ROWS", 150)
    monkeypatch.setattr(stream, "_FEWEST_IN_SAMPLE", 100)
    table = table.copy()
    table[[3, 450]] = np.nan

    def fit(rows):
        return GTM(**FIXED | {"random_state": np.random.Generator(make_generator(0))}).fit(rows)

    of_blocks = fit(Blocks(table, rows=200))
    monkeypatch.setattr(DaskPartitions, "read", lambda self: pytest.fail("rows were brought here"))
    assert_same(fit(array(table)), of_blocks)


def test_a_mixture_of_all_rows_equals_that_of_blocks_to_the_last_bit():
    def fit(rows):
        return GTMMixture(2, GTM(nodes=6, basis=3), n_init=1, max_iter=4, tol=0, random_state=0).fit(rows)

    model, of_blocks = fit(array()), fit(Blocks(X, rows=200))
    assert model.history_["objective"] == of_blocks.history_["objective"]
    np.testing.assert_array_equal(model.transform(X), of_blocks.transform(X))


@pytest.mark.parametrize("rows", [200, 70])
def test_a_bad_cell_is_named_by_its_row(rows):
    table = X.copy()
    table[777, 2] = np.inf
    with pytest.raises(InvalidDataError) as of_blocks:
        GTM(**FIXED).fit(Blocks(table, rows=rows))
    with pytest.raises(InvalidDataError) as found:
        GTM(**FIXED).fit(array(table, rows))
    assert "777" in str(found.value)
    assert str(found.value) == str(of_blocks.value)


class Assassin(Thread):
    """Kills workers at random moments for as long as a fit goes on, a number of times at most."""

    def __init__(self, client, most):
        super().__init__(daemon=True)
        self.client, self.most, self.n, self.over = client, most, 0, Event()

    def run(self):
        rng = np.random.default_rng(0)
        while self.n < self.most and not self.over.wait(rng.exponential(0.3)):
            pids = [nanny.pid for nanny in self.client.cluster.workers.values() if nanny.pid]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(int(rng.choice(pids)), signal.SIGKILL)
                    self.n += 1


class Slow(Ear):
    """Gives those who wait for a fit to go on their time."""

    def on_fit_task_end(self, estimator, context, **told):
        time.sleep(0.2)


@pytest.mark.parametrize(("kills", "iterations"), [(3, 6), pytest.param(20, 60, marks=pytest.mark.slow)])
def test_workers_that_are_killed_at_random_moments_take_nothing_along(kills, iterations, cluster):
    settings = FIXED | {"max_iter": iterations}
    assassin = Assassin(cluster, kills)
    assassin.start()
    model = GTM(**settings).set_callbacks(Slow()).fit(array(rows=60))
    assassin.over.set()
    assassin.join()
    assert assassin.n >= kills // 2, "the fit was over before workers were killed"
    assert_same(model, GTM(**settings).fit(Blocks(X, rows=60)))


def test_any_number_of_workers_agree(cluster):
    found = []
    for n in (1, 4, 2):
        cluster.cluster.scale(n)
        cluster.wait_for_workers(n, timeout=60)
        found.append(MODELS["student"]().fit(array(rows=100)))
    for each in found:
        assert_same(each, MODELS["student"]().fit(Blocks(X, rows=100)))


def test_two_fits_at_once(cluster):
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda name: MODELS[name]().fit(array()), ["isotropic", "diagonal"])
    assert_same(one, MODELS["isotropic"]().fit(Blocks(X, rows=200)))
    assert_same(other, MODELS["diagonal"]().fit(Blocks(X, rows=200)))


@pytest.fixture
def impatient(monkeypatch):
    """A cluster that gives up on a task after two workers, not four: each takes seconds to come back.

    It is new, since a worker that still dies of a test before would count too.
    """
    with two_workers() as client:
        monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 1)
        yield client


def test_a_partition_that_ends_every_worker_is_an_error_with_a_name(impatient):
    with pytest.raises(WorkersLostError, match=r"ended every worker.*smaller"):
        SOM().fit(array().map_blocks(partial(end_process, None), meta=np.empty((0, 4))))


def test_the_model_of_the_last_iteration_is_left_when_all_workers_are_lost(impatient, tmp_path):
    mine = tmp_path / "now"

    class Poison(Ear):
        """After three iterations no worker outlives a partition."""

        n = 0

        def on_fit_task_end(self, estimator, context, **told):
            self.n += 1
            if self.n == 4:  # the start is the first that is heard of
                mine.touch()

    model = GTM(**FIXED).set_callbacks(Poison())
    with pytest.raises(WorkersLostError, match="ended every worker"):
        model.fit(array(rows=450).map_blocks(partial(end_process, str(mine)), meta=np.empty((0, 4))))
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert model.n_iter_ == 3
    assert_same(model, GTM(**FIXED | {"max_iter": 3}).fit(Blocks(X, rows=450)))


def test_frames_with_unknown_sizes_and_empty_partitions():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame = frame.sort_values("a", ignore_index=True)
    lazy = dd.from_pandas(frame, npartitions=5)
    some, table = lazy[lazy["a"] > 1.0], frame.query("a > 1.0")
    model = GTM(**FIXED).fit(some)
    assert list(model.feature_names_in_) == list("abcd")
    sizes = [n for n in some.map_partitions(len).compute() if n]
    assert len(sizes) < 5, "some partitions are to be empty in this test"
    parts = np.split(table.to_numpy(), np.cumsum(sizes)[:-1])
    uneven = da.concatenate([da.from_array(part, chunks=part.shape) for part in parts])
    assert_same(model, GTM(**FIXED).fit(uneven))
    np.testing.assert_array_equal(model.transform(some).compute(), np.concatenate(list(map(model.transform, parts))))
    with pytest.raises(InvalidDataError):
        GTM(**FIXED).fit(lazy[lazy["a"] > 1e9])


@cases()
def test_verbs_are_lazy_and_say_of_each_partition_what_they_say_of_its_rows(case):
    model, table = fitted(case)
    seen = []

    def look(block):
        seen.append(len(block))
        return block

    rows = da.from_array(table, chunks=(40, 3)).map_blocks(look, meta=np.empty((0, 0)))
    verbs = ["transform", "project", "reconstruct", "score_samples", "posterior_mode"]
    answers = {verb: getattr(model, verb)(rows) for verb in verbs if hasattr(model, verb)}
    Z = answers["transform"]
    answers["surface"] = model.inverse_transform(Z)
    assert seen == []
    parts = np.split(table, [40, 80])
    for verb, found in answers.items():
        ask = (
            (lambda part: model.inverse_transform(model.transform(part))) if verb == "surface" else getattr(model, verb)
        )
        wanted = np.concatenate([ask(part) for part in parts])
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.compute(scheduler="threads"), wanted, err_msg=verb)


def test_means_over_rows_and_tuples_of_arrays():
    model = MODELS["isotropic"]().fit(X)
    for verb in ("score", "projection_error"):
        assert getattr(model, verb)(array()) == pytest.approx(getattr(model, verb)(X), rel=1e-12)
    stretch = model.magnification(model.transform(array()))
    np.testing.assert_allclose(stretch.factor.compute(), model.magnification(model.transform(X)).factor, rtol=1e-9)


def test_what_needs_all_rows_is_fitted_to_a_sample_and_says_so(monkeypatch):
    monkeypatch.setattr("prinfold.base.dask_samples._SAMPLE_ROWS", 300)
    online = {"trainer": "online", "max_iter": 3, "random_state": 0}
    with pytest.warns(DegenerateWarning, match="SOM needs all of its rows at once.*300 of 900 rows.*of 300 others"):
        model = SOM(**online).fit(array())
    again = SOM(**online).fit(array())
    np.testing.assert_array_equal(model.codebook_, again.codebook_)


def test_all_rows_are_taken_where_they_are_few(recwarn):
    model = PrincipalCurve(max_iter=3).fit(array())
    assert not [each for each in recwarn if "of its rows" in str(each.message)]
    of_table = PrincipalCurve(max_iter=3).fit(X)
    assert model.projection_error(X) == pytest.approx(of_table.projection_error(X), rel=1e-6)


@pytest.mark.parametrize("table", [X, GAPS], ids=["whole", "gaps"])
def test_a_map_of_all_rows_equals_that_of_blocks_to_the_last_bit(table):
    model = SOM(nodes=6, max_iter=12).fit(array(table))
    of_blocks = SOM(nodes=6, max_iter=12).fit(Blocks(table, rows=200))
    np.testing.assert_array_equal(model.codebook_, of_blocks.codebook_)
    assert model.history_["error"] == of_blocks.history_["error"]
    np.testing.assert_allclose(model.codebook_, SOM(nodes=6, max_iter=12).fit(table).codebook_, atol=1e-8)


def test_what_does_not_go_is_said():
    model = MODELS["isotropic"]().fit(X)
    with pytest.raises(UnsupportedInputError, match="sample_weight does not go with Blocks"):
        GTM().fit(array(), sample_weight=np.ones(len(X)))
    with pytest.raises(UnsupportedInputError, match="sample_weight does not go with Dask"):
        DensityRidge().fit(array(), sample_weight=np.ones(len(X)))
    with pytest.raises(UnsupportedInputError, match="errors has entries for rows"):
        model.transform(array(), errors=np.ones(len(X)))
    with pytest.raises(UnsupportedInputError, match="1 dimension"):
        model.transform(array()[:, 0])
    for unfitted in (GTM(), PrincipalCurve()):
        with pytest.raises(UnsupportedInputError, match="1 dimension"):
            unfitted.fit(array()[:, 0])


# ------------------------------------------------------------------------------------- labels beside rows, monitors


CLASSES = np.where(X[:, 0] > 1, "far", "near")
TARGETS = np.column_stack([X[:, 0] ** 2, X[:, 1]])


def frame_of(**more):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list("abcd")).assign(**more)


@pytest.mark.parametrize("on", ["threads", "a cluster"])
def test_a_landscape_of_labels_beside_rows_is_that_of_a_column(on, request):
    if on == "a cluster":
        request.getfixturevalue("cluster")
    by_name = GTMClassifier(GTM(**FIXED)).fit(Blocks(frame_of(y=CLASSES), rows=200), "y")
    beside = GTMClassifier(GTM(**FIXED)).fit(array(), da.from_array(CLASSES, chunks=300))
    np.testing.assert_array_equal(beside.predict_proba(X), by_name.predict_proba(frame_of()))
    assert beside.classes_.tolist() == ["far", "near"]


def test_targets_beside_rows_may_be_a_series_or_several_columns():
    whole, lazy = frame_of(y=TARGETS[:, 0], z=TARGETS[:, 1]), dd.from_pandas
    features, one = lazy(whole[list("abcd")], npartitions=4), lazy(whole["y"], npartitions=4)
    both = lazy(whole[["y", "z"]], npartitions=4)
    by_name = GTMRegressor(GTM(**FIXED)).fit(lazy(whole, npartitions=4), ["y", "z"])
    found = GTMRegressor(GTM(**FIXED)).fit(features, both)
    np.testing.assert_array_equal(found.predict(whole[list("abcd")]), by_name.predict(whole[list("abcd")]))
    single = GTMRegressor(GTM(**FIXED)).fit(features, one)
    np.testing.assert_allclose(single.predict(whole[list("abcd")]), found.predict(whole[list("abcd")])[:, 0])


def test_labels_that_are_cut_elsewhere_are_refused_by_name():
    frame = frame_of(y=TARGETS[:, 0])
    features = dd.from_pandas(frame[list("abcd")], npartitions=4)
    with pytest.raises(InvalidDataError, match="X has 4 partitions and y 3"):
        GTMRegressor(GTM(**FIXED)).fit(features, dd.from_pandas(frame["y"], npartitions=3))
    with pytest.raises(InvalidDataError, match="a partition of X has 225 rows, and that of y 215"):
        GTMRegressor(GTM(**FIXED)).fit(features, da.from_array(TARGETS[:890, 0], chunks=225))
    with pytest.raises(InvalidDataError, match="2 dimensions"):
        GTMClassifier(GTM(**FIXED)).fit(array(), da.from_array(TARGETS, chunks=(200, 2)))


@pytest.mark.parametrize("calibration", ["last", "split"])
def test_a_monitor_holds_rows_out_where_they_lie(calibration, monkeypatch):
    settings = {"calibration": calibration, "random_state": 0, "alarm_rate": 0.05}
    of_blocks = SurfaceMonitor(GTM(**FIXED), **settings).fit(Blocks(X, rows=200))
    found = SurfaceMonitor(GTM(**FIXED), **settings).fit(array())
    np.testing.assert_allclose(found.reference_, of_blocks.reference_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.node_shares_, of_blocks.node_shares_, rtol=1e-6)
    np.testing.assert_array_equal(found.predict(array()).compute(), found.predict(X))


def test_a_monitor_of_frames_knows_names_and_refuses_to_fit_six_times():
    lazy = dd.from_pandas(frame_of(), npartitions=3)
    found = SurfaceMonitor(GTM(**FIXED), calibration="split", random_state=0).fit(lazy)
    assert list(found.feature_names_in_) == list("abcd")
    with pytest.raises(InvalidParameterError, match=r"six times.*calibration='split'"):
        SurfaceMonitor(GTM(**FIXED)).fit(lazy)
