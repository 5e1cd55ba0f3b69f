"""Passes on a device are those of the processor, to the digits of single precision; here by array-api-strict."""

from __future__ import annotations

import warnings
from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

import prinfold
from prinfold import GTM, SOM, Blocks, PrincipalCurve, datasets
from prinfold.devices import Device, find_device
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, MissingExtraError
from prinfold.gtm import device_passes
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.rows import sent_portions
from prinfold.som import model as som

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SINGLE = Device("strict", array_api_strict, None)
DOUBLE = replace(SINGLE, dtype="float64")
X = datasets.make_swiss_roll(400, rng=0).X
QUICK = {"nodes": 12, "basis": 5, "init": "pca", "max_iter": 8, "tol": 0.0}
NOISES = pytest.mark.parametrize("noise", ["isotropic", "diagonal"])


@pytest.fixture(autouse=True)
def everything_is_sent(monkeypatch):
    monkeypatch.setattr(device_passes, "_WORTH_SENDING", 0)
    monkeypatch.setattr(som, "_WORTH_SENDING", 0)


def sums_of(model, weight=None):
    """Sums of an E-step of a fitted map, where its device says."""
    rows = replace(model._rows(X), weight=weight)
    return gtm.e_step(model._model, rows, model._parameters(), Hint())[0]


@NOISES
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_processor(noise, weighted):
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    model = GTM(noise=noise, **QUICK).fit(X)
    wanted = sums_of(model, weight)
    found = sums_of(model.set_params(device=DOUBLE), weight)
    assert type(found) is type(wanted)
    for name, value in vars(wanted).items():
        assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9, err_msg=name)


@NOISES
def test_a_fit_on_a_device_is_that_of_the_processor(noise):
    here, there = (GTM(noise=noise, device=each, **QUICK).fit(X) for each in (None, DOUBLE))
    assert_allclose(there.weights_, here.weights_, rtol=1e-8, atol=1e-8)
    assert_allclose(there.history_["objective"], here.history_["objective"], rtol=1e-10)
    single = GTM(noise=noise, device=SINGLE, **QUICK).fit(X)
    assert_allclose(single.history_["log_likelihood"], here.history_["log_likelihood"], atol=1e-4)


@NOISES
def test_likelihoods_in_single_precision_are_within_a_ten_thousandth_of_a_nat(noise):
    model = GTM(noise=noise, **QUICK).fit(X)
    wanted = sums_of(model).log_likelihood / len(X)
    assert sums_of(model.set_params(device=SINGLE)).log_likelihood / len(X) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("latent", ["grid", "circle", "sphere"])
def test_every_verb_on_rows_answers_as_on_the_processor(latent):
    model = GTM(latent=None if latent == "grid" else latent, max_iter=15, tol=0.0, init="pca").fit(X)
    verbs = ("score_samples", "responsibilities", "transform", "posterior_mode", "posterior_covariance")
    wanted = {verb: getattr(model, verb)(X) for verb in verbs}
    sparse = model.responsibilities(X, threshold=1e-3)
    model.set_params(device=DOUBLE)
    # The processor leaves out cells that hold thousandths of the weight; a device takes all of them.
    for verb in verbs[:2]:
        assert_allclose(getattr(model, verb)(X), wanted[verb], atol=1e-8)
    assert_allclose(model.responsibilities(X, threshold=1e-3).toarray(), sparse.toarray(), atol=1e-8)
    space = model.latent_
    for verb in ("transform", "posterior_mode"):
        apart = space.distance(getattr(model, verb)(X), wanted[verb])
        assert np.mean(apart < 0.02 * space.spacing) > 0.97, verb
    assert_allclose(np.median(model.posterior_covariance(X) - wanted["posterior_covariance"]), 0, atol=5e-3)


def test_blocks_on_a_device_are_the_whole_table():
    whole = GTM(device=DOUBLE, **QUICK).fit(X)
    blocks = GTM(device=DOUBLE, **QUICK).fit(Blocks([X[:150], X[150:]]))
    assert_allclose(blocks.weights_, whole.weights_, rtol=1e-7, atol=1e-7)


def counted(table, reads):
    """The same table as Blocks, with a note of every time that it is read from its beginning."""
    return Blocks(lambda: reads.append(len(reads)) or iter([table[:150], table[150:]]), rows=150)


@pytest.mark.parametrize("together", [1, 200, 2**20])
@pytest.mark.parametrize("method", ["GTM", "SOM"])
def test_blocks_that_fit_on_a_device_are_sent_there_once(method, together, monkeypatch):
    monkeypatch.setattr(sent_portions, "_ROWS_TOGETHER", together)
    settings = {"GTM": QUICK, "SOM": {"nodes": 6, "init": "pca"}}[method]
    found = []
    for free in (0, 10**9):
        reads = []
        device = replace(SINGLE, free_bytes=lambda free=free: free)
        model = getattr(prinfold, method)(device=device, **settings).fit(counted(X, reads))
        found.append((len(reads), model.inverse_transform(model.transform(X))))
    (often, streamed), (once, kept) = found
    assert once <= often - 5
    np.testing.assert_array_equal(kept, streamed)


def test_rows_left_on_a_device_are_read_again_where_it_is_not_exact_enough(monkeypatch):
    monkeypatch.setattr(sent_portions, "_ROWS_TOGETHER", 1)
    asked, reads, device = [], [], replace(SINGLE, free_bytes=lambda: 10**9)
    whole = GTM(**QUICK).fit(counted(X, reads))
    before = len(reads)
    exact_for_a_while = property(lambda self: asked.append(self) or (0.0 if len(asked) < 10 else np.inf))
    monkeypatch.setattr(device_passes.DevicePass, "mean_nats", exact_for_a_while)
    model = GTM(device=device, **QUICK).fit(counted(X, reads))
    assert_allclose(model.history_["log_likelihood"], whole.history_["log_likelihood"], atol=1e-4)
    assert before - (len(reads) - before) == 2, "three passes of three portions on the device, for one reading"


def test_cells_that_a_source_loses_are_said_though_a_device_reads_it():
    reads = []

    def read():
        reads.append(0)
        table = X.copy()
        if len(reads) > 3:
            table[7, 1] = np.nan
        return iter([table[:150], table[150:]])

    for device in (None, replace(SINGLE, free_bytes=int)):
        reads.clear()
        with pytest.raises(InvalidDataError, match="all of its cells were finite numbers at first"):
            GTM(device=device, **QUICK).fit(Blocks(read))


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_sent_with_their_rows(weighted):
    rows = np.column_stack([X, np.arange(len(X)) % 3 if weighted else np.ones(len(X))])
    fitted = [GTM(device=device, **QUICK).fit(Blocks([rows[:150], rows[150:]], weight=3)) for device in (None, DOUBLE)]
    assert_allclose(fitted[1].weights_, fitted[0].weights_, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_map_on_a_device_is_that_of_the_processor(weighted):
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    here, there = (SOM(nodes=6, device=each).fit(X, sample_weight=weight) for each in (None, DOUBLE))
    assert_allclose(there.codebook_, here.codebook_, rtol=1e-9, atol=1e-9)


def test_what_a_device_cannot_do_is_said_and_done_by_the_processor():
    with pytest.warns(DegenerateWarning, match="The processor does this fit.*Student noise"):
        student = GTM(noise="student", device=SINGLE, **QUICK).fit(X)
    assert_allclose(student.weights_, GTM(noise="student", **QUICK).fit(X).weights_)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.warns(DegenerateWarning, match="The processor does this fit.*missing cells"):
        GTM(device=SINGLE, **QUICK).fit(gaps)
    with pytest.warns(DegenerateWarning, match="The processor does this fit.*missing cells"):
        SOM(nodes=6, device=SINGLE, max_iter=2).fit(gaps)
    with pytest.warns(DegenerateWarning, match="The processor does this fit.*'batch'"):
        SOM(nodes=6, device=SINGLE, max_iter=2, trainer="online").fit(X)


def test_numbers_that_single_precision_cannot_tell_apart_stay_on_the_processor(monkeypatch):
    model = GTM(**QUICK).fit(X)
    monkeypatch.setattr(device_passes, "_MOST_NATS", 1.0)
    wanted = sums_of(model)
    assert sums_of(model.set_params(device=SINGLE)).log_likelihood == wanted.log_likelihood


def test_small_tables_are_not_sent(monkeypatch):
    monkeypatch.setattr(device_passes, "_WORTH_SENDING", 2**20)
    here, there = (GTM(device=each, **QUICK).fit(X) for each in (None, SINGLE))
    np.testing.assert_array_equal(there.weights_, here.weights_)


def test_a_file_does_not_know_of_the_device(tmp_path):
    model = GTM(device=SINGLE, **QUICK).fit(X)
    model.save(tmp_path / "map.prinfold")
    again = prinfold.load(tmp_path / "map.prinfold")
    assert again.device is None
    assert_allclose(again.transform(X), model.set_params(device=None).transform(X))


def test_a_device_that_is_not_there_is_refused_by_name():
    assert find_device("cpu") is None
    with pytest.raises((InvalidParameterError, MissingExtraError), match=r"device='nonsense'.*leave device|Devices"):
        GTM(device="nonsense").fit(X)
    with pytest.raises(InvalidParameterError, match="device"):
        GTM(device=3).fit(X)


# ------------------------------------------------------------------------------------------ arrays of other libraries


@pytest.fixture
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.usefixtures("dispatch")
def test_arrays_of_another_library_are_answered_in_kind():
    rows = array_api_strict.asarray(X)
    model = GTM(**QUICK).fit(rows)
    plain = GTM(**QUICK).fit(X)
    Z = model.transform(rows)
    assert type(Z) is type(rows)
    assert_allclose(np.asarray(Z), plain.transform(X))
    assert isinstance(model.weights_, np.ndarray)
    assert type(model.inverse_transform(Z)) is type(rows)
    assert type(model.magnification(Z).factor) is type(rows)
    assert model.score(rows) == pytest.approx(plain.score(X))
    weighted = GTM(**QUICK).fit(rows, sample_weight=array_api_strict.ones(len(X)))
    assert_allclose(weighted.weights_, plain.weights_, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("dispatch")
def test_methods_without_passes_for_devices_say_where_they_compute():
    place = array_api_strict.Device("device1")
    rows = array_api_strict.asarray(X[:, [0, 2]], device=place)
    with pytest.warns(DegenerateWarning, match="PrincipalCurve computes on the processor"):
        model = PrincipalCurve().fit(rows)
    assert model.transform(rows).device == place


@pytest.mark.usefixtures("dispatch")
def test_passes_of_rows_on_a_device_are_computed_there(monkeypatch):
    asked = []
    original = device_passes.DevicePass.sums
    monkeypatch.setattr(device_passes.DevicePass, "sums", lambda self: asked.append(self) or original(self))
    place = array_api_strict.Device("device1")
    rows = array_api_strict.asarray(X, device=place)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        model = GTM(**QUICK).fit(rows)
    assert asked
    assert all(each.placed.device.place == place for each in asked)
    assert model.transform(rows).device == place
