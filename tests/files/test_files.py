"""Model files: the same model comes back to the last bit, or a named error says why not."""

from __future__ import annotations

import copy
import json
import os
import pickle
import stat
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save as pack
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import prinfold
from prinfold import GTM, GaussianBasis, HarmonicBasis, files, load, save
from prinfold.exceptions import (
    CorruptModelFileError,
    InvalidParameterError,
    ModelFileError,
    NewerModelFileError,
    NoModelFileError,
    NotStorableError,
)
from prinfold.files.steps import STEPS
from prinfold.latent import Points, Sphere, cylinder, grid, torus
from prinfold.loops import StopReason
from tests.files.mutations import dismantle, forge

# Whether these small surfaces are folded is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

FIXTURES = Path(__file__).parents[1] / "fixtures"
DATA = np.random.default_rng(0).normal(size=(50, 4)) * [3, 2, 1, 0.5] + [0, 5, 0, -1]
QUICK = {"max_iter": 4, "tol": 0}

MODELS = {
    "grid": GTM(nodes=5, basis=3, **QUICK),
    "defaults": GTM(**QUICK),
    "line": GTM(1, latent="line", nodes=9, basis=4, **QUICK),
    "grid 3-D": GTM(3, nodes=3, basis=2, **QUICK),
    "circle": GTM(1, latent="circle", nodes=9, **QUICK),
    "harmonics": GTM(1, latent="circle", nodes=9, basis=HarmonicBasis(2), **QUICK),
    "cylinder": GTM(latent=cylinder(6, 4), basis=GaussianBasis((4, 3), linear=False), **QUICK),
    "torus": GTM(latent=torus(5, 5), **QUICK),
    "sphere": GTM(latent="sphere", nodes=30, **QUICK),
    "points": GTM(nodes=np.random.default_rng(1).uniform(size=(20, 2)), **QUICK),
    "points object": GTM(nodes=Points(np.random.default_rng(1).uniform(size=(20, 2))), **QUICK),
    "wide basis": GTM(nodes=(4, 5), basis=GaussianBasis((3, 3), width=2.0, scale=1.5), **QUICK),
    "prior": GTM(nodes=5, basis=3, prior_precision=np.float64(0.1), penalize_bias=True, **QUICK),
    "numpy scalars": GTM(np.int64(2), nodes=np.int32(5), basis=(np.int64(3), 2), width=np.float32(1.5), **QUICK),
    "random start": GTM(nodes=5, basis=3, init="random", random_state=3, **QUICK),
    "given start": GTM(nodes=5, basis=3, init=np.random.default_rng(2).uniform(-1, 1, (50, 2)), **QUICK),
}


@pytest.fixture(scope="module")
def fitted() -> Any:
    return GTM(nodes=5, basis=3, **QUICK).fit(DATA)


@pytest.fixture(scope="module")
def content(fitted, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.prinfold"
    fitted.save(path)
    return path.read_bytes()


def same(a: Any, b: Any, X: Any = DATA) -> None:
    for verb in ("transform", "score_samples", "responsibilities", "project", "posterior_covariance"):
        if hasattr(a, verb):
            np.testing.assert_array_equal(getattr(a, verb)(X), getattr(b, verb)(X))
    assert a.score(X) == b.score(X)
    Z = np.asarray(a.transform(X))
    if isinstance(a, Pipeline) and any(isinstance(step, Normalizer | SimpleImputer) for _, step in a.steps):
        a, b = a[-1], b[-1]  # those steps cannot be undone
    np.testing.assert_array_equal(a.inverse_transform(Z), b.inverse_transform(Z))


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
    return bool(a == b)


# ------------------------------------------------------------------------------------ there and back again


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_to_the_last_bit(name, tmp_path):
    model = clone(MODELS[name]).fit(DATA)
    model.save(tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    assert type(back) is GTM
    same(model, back)
    assert back.latent_ == model.latent_
    assert back.basis_ == model.basis_
    assert back.history_ == model.history_
    assert back.stop_reason_ is model.stop_reason_
    assert (back.n_iter_, back.converged_, back.n_features_in_) == (4, False, 4)
    for parameter, value in model.get_params().items():
        assert equal(back.get_params()[parameter], value), parameter


def test_a_model_that_came_back_may_be_saved_cloned_and_fitted_again(fitted, tmp_path):
    fitted.save(tmp_path / "a.prinfold")
    back = load(tmp_path / "a.prinfold")
    save(back, tmp_path / "b.prinfold")
    assert (tmp_path / "a.prinfold").read_bytes() == (tmp_path / "b.prinfold").read_bytes()
    same(clone(back).fit(DATA), fitted)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        model = GTM(nodes=5, basis=3, **QUICK).fit(DATA)
        model.history_["seconds"] = [0.0] * 5
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_float32_models(tmp_path):
    X = DATA.astype(np.float32)
    model = GTM(nodes=5, basis=3, **QUICK).fit(X)
    model.save(tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    same(model, back, X)
    assert back.transform(X).dtype == np.float32


def test_names_of_columns_are_kept(tmp_path):
    frame = pd.DataFrame(DATA, columns=["weight", "Größe", "a b", "日本"])
    model = GTM(nodes=5, basis=3, **QUICK).fit(frame)
    model.save(tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    np.testing.assert_array_equal(back.feature_names_in_, frame.columns)
    same(model, back, frame)
    with pytest.raises(ValueError, match="feature names"):
        back.transform(frame.rename(columns={"weight": "height"}))


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False, with_std=False),
        RobustScaler(),
        MinMaxScaler((-1, 1)),
        MaxAbsScaler(),
        PCA(whiten=True),
        Normalizer(),
        PowerTransformer(),
        PowerTransformer(standardize=False),
        QuantileTransformer(n_quantiles=20, output_distribution="normal"),
        SimpleImputer(),
        SimpleImputer(strategy="median", missing_values=-1),
        SimpleImputer(strategy="constant", fill_value=0.5),
        "passthrough",
    ],
    ids=str,
)
@pytest.mark.parametrize("framed", [False, True])
def test_pipelines(step, framed, tmp_path):
    X = pd.DataFrame(DATA, columns=list("abcd")) if framed else DATA
    model = Pipeline([("first", step), ("map", GTM(nodes=5, basis=3, **QUICK))]).fit(X)
    save(model, tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    assert list(back.named_steps) == ["first", "map"]
    same(model, back, X)
    if framed and step != "passthrough":
        np.testing.assert_array_equal(back.feature_names_in_, list("abcd"))


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_gaps_are_filled_as_before(strategy, tmp_path):
    X = DATA.copy()
    X[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(strategy=strategy), PowerTransformer(), MODELS["grid"]).fit(X)
    save(model, tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    same(model, back, X)
    np.testing.assert_array_equal(back[:-1].transform(X), model[:-1].transform(X))


def test_the_steps_that_a_file_may_hold_are_those_it_says():
    for name in STEPS:
        assert name in files.save.__doc__
        assert name in (Path(__file__).parents[2] / "docs/guide/gtm.md").read_text(encoding="utf-8")


def test_pipelines_within_pipelines(tmp_path):
    model = make_pipeline(make_pipeline(StandardScaler(), PCA()), GTM(nodes=5, basis=3, **QUICK)).fit(DATA)
    save(model, tmp_path / "model.prinfold")
    same(model, load(tmp_path / "model.prinfold"))


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "randomized", "arpack"])
def test_a_pipeline_that_drops_components(solver, tmp_path):
    """The components are a slice of a larger matrix, which no copy multiplies to the same last bit."""
    model = make_pipeline(PCA(3, whiten=True, svd_solver=solver, random_state=0), GTM(nodes=5, basis=3, **QUICK))
    save(model.fit(DATA), tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    np.testing.assert_allclose(back.transform(DATA), model.transform(DATA), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(back[0].components_, model[0].components_)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_layout_and_byte_order(order, tmp_path):
    start = np.asarray(np.random.default_rng(2).uniform(-1, 1, (50, 2)), dtype=">f8", order=order)
    model = GTM(nodes=5, basis=3, init=start, **QUICK).fit(DATA)
    model.save(tmp_path / "model.prinfold")
    back = load(tmp_path / "model.prinfold")
    np.testing.assert_array_equal(back.init, start)
    same(model, back)


def there_and_back(value):
    """A value through the text and the arrays of a file, whatever a model would say to it."""
    arrays = {}
    text = files._dump({"value": files._encode(value, "value", arrays)})
    return files._decode(json.loads(text)["value"], files._Source(arrays), "value")


def test_an_array_without_axes_keeps_its_shape():
    assert there_and_back(np.array(0)).shape == ()


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), -0.0, 1e-320, 0.1, 2**70, "\ud800", (1, (2.0, None))])
def test_odd_plain_values(value):
    back = there_and_back(value)
    assert back == value
    assert repr(back) == repr(value)


def test_a_path_may_be_text_and_hold_any_letters(fitted, tmp_path):
    path = str(tmp_path / ("ä " + "n" * 230))
    save(fitted, path)
    same(load(path), fitted)


@pytest.mark.parametrize("name", MODELS)
def test_pickle_and_clone(name):
    model = clone(MODELS[name]).fit(DATA)
    back = pickle.loads(pickle.dumps(model))
    same(model, back)
    assert back.stop_reason_ is model.stop_reason_
    fresh = clone(model)
    assert not hasattr(fresh, "weights_")
    for parameter, value in model.get_params().items():
        assert equal(fresh.get_params()[parameter], value)


def test_copies_do_not_share_what_training_changes(fitted):
    other = copy.deepcopy(fitted)
    other.weights_ += 1
    assert not np.array_equal(other.transform(DATA), fitted.transform(DATA))
    same(pickle.loads(pickle.dumps(fitted)), fitted)


# -------------------------------------------------------------------------------------- what was stored once


def test_files_of_version_1_keep_loading():
    back = load(FIXTURES / "model_v1.prinfold")
    told = json.loads((FIXTURES / "model_v1.json").read_text(encoding="utf-8"))
    assert list(back.named_steps) == ["standardscaler", "gtm"]
    assert list(back.feature_names_in_) == ["length", "width", "height"]
    X = pd.DataFrame(told["X"], columns=back.feature_names_in_)
    mean_of_nodes = back[-1].responsibilities(back[:-1].transform(X)) @ back[-1].latent_.nodes
    np.testing.assert_allclose(mean_of_nodes, told["transform"], rtol=1e-9, atol=1e-9)  # which transform was then
    np.testing.assert_allclose(back.score_samples(X), told["score_samples"], rtol=1e-9)
    np.testing.assert_allclose(back.inverse_transform(np.array(told["latent"])), told["inverse_transform"], rtol=1e-9)
    assert str(back[-1].stop_reason_) == told["stop_reason"]
    assert back[-1].get_params()["regularization"] == told["regularization"]
    assert (FIXTURES / "model_v1.prinfold").stat().st_size < 20_000


# ------------------------------------------------------------------------------------- what cannot be stored


class HomeMadeBasis:
    def bind(self, latent):
        return GaussianBasis(3).bind(latent)


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("verbose", print, "GTM.verbose is a function"),
        ("verbose", lambda: 0, "GTM.verbose is a function"),
        ("random_state", np.random.default_rng(0), "GTM.random_state is an object of type Generator"),
        ("random_state", np.random.RandomState(0), "GTM.random_state is an object of type RandomState"),
        ("basis", HomeMadeBasis(), "GTM.basis is an object of type HomeMadeBasis"),
        ("init", [1, {"deep": (2, 3 + 4j)}], r"GTM.init\[1\].deep\[1\] is an object of type complex"),
        ("init", np.array([1 + 2j]), "GTM.init is an array of complex128"),
        ("init", np.array([object()]), "GTM.init is an array of object"),
        ("init", np.array(["2020-01-01"], dtype="datetime64[D]"), "GTM.init is an array of datetime64"),
        ("init", np.zeros(3, dtype=np.longdouble), "GTM.init is an array of"),
        ("init", np.array([np.nan]), "GTM.init holds NaN"),
        ("init", b"bytes", "GTM.init is an object of type bytes"),
        ("init", {1: 2}, "GTM.init is an object of type dict"),
        ("init", {1, 2}, "GTM.init is an object of type set"),
        ("init", GTM, "GTM.init is a function"),
    ],
)
def test_what_cannot_be_stored_is_named(parameter, value, words, fitted, tmp_path):
    model = copy.copy(fitted)
    setattr(model, parameter, value)
    with pytest.raises(NotStorableError, match=words):
        model.save(tmp_path / "model.prinfold")
    assert list(tmp_path.iterdir()) == []


def test_a_model_fitted_with_a_home_made_basis_is_named(tmp_path):
    model = GTM(nodes=5, basis=HomeMadeBasis(), **QUICK).fit(DATA)
    with pytest.raises(NotStorableError, match=r"HomeMadeBasis.*use pickle"):
        model.save(tmp_path / "model.prinfold")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (GTM, "GTM is not fitted .* call fit before save"),
        (lambda: make_pipeline(StandardScaler(), GTM()), "standardscaler is not fitted; call fit before save"),
        (lambda: make_pipeline(StandardScaler().fit(DATA), GTM()), "gtm is not fitted"),
        (lambda: make_pipeline(GTM(max_iter=1, tol=0), PCA()).fit(DATA), "Pipeline of scaling or whitening"),
        (lambda: make_pipeline(FunctionTransformer(), MODELS["grid"]).fit(DATA), "functiontransformer is a Function"),
        (
            lambda: make_pipeline(TruncatedSVD(), MODELS["line"]).fit(DATA),
            "truncatedsvd is a TruncatedSVD.*holds the steps Stand",
        ),
        (lambda: PCA().fit(DATA), "got PCA, but a model file holds a prinfold estimator"),
        (lambda: StandardScaler().fit(DATA), "got StandardScaler"),
        (lambda: grid(3, 3), "got Lattice"),
        (lambda: {"model": 5}, "got dict"),
        (lambda: None, "got NoneType"),
        (lambda: GTM, "got ABCMeta|got type"),
    ],
)
def test_only_fitted_models_are_stored(make, words, tmp_path):
    with pytest.raises(NotStorableError, match=words):
        save(make(), tmp_path / "model.prinfold")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_the_same_name_is_not_stored_as_ours(tmp_path):
    other = type("GTM", (GTM,), {})(nodes=5, basis=3, **QUICK).fit(DATA)
    with pytest.raises(NotStorableError, match="a prinfold estimator"):
        save(other, tmp_path / "model.prinfold")


# ----------------------------------------------------------------------------------------------- writing


def test_an_interrupted_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model.prinfold"
    path.write_text("the old file")

    def fail(*_):
        raise KeyboardInterrupt

    for target in ("replace", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, target, fail)
            with pytest.raises(KeyboardInterrupt):
                save(fitted, path)
        assert path.read_text() == "the old file"
        assert list(tmp_path.iterdir()) == [path]
    save(fitted, path)
    same(load(path), fitted)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_model_may_be_read_by_whom_other_files_may_be_read(fitted, tmp_path):
    save(fitted, tmp_path / "model.prinfold")
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_saving_to_nowhere(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*no such folder to write model.prinfold in"):
        save(fitted, tmp_path / "no such folder" / "model.prinfold")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder is a folder; name a file .*folder.model\.prinfold"):
        save(fitted, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_failed_write_names_the_file_that_was_asked_for(fitted, tmp_path, monkeypatch):
    def full(self, *_):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(fitted, tmp_path / "model.prinfold")
    assert caught.value.filename == str(tmp_path / "model.prinfold")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------- damaged by accident

CUT = "not a prinfold model file, or it has been cut short or damaged"


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [
        (b"", "is an empty file"),
        (b"\0", CUT),
        (b"hello, world\n" * 100, CUT),
        (pickle.dumps({"a": np.zeros(100)}), CUT),
        (b"\xff" * 1000, CUT),
        (struct.pack("<Q", 2**62) + b"{}", CUT),
        (pack({"a": np.zeros(3)}), "is not a prinfold model file"),
        (pack({"a": np.zeros(3)}, metadata={"other": "{}"}), "is not a prinfold model file"),
        (pack({}, metadata={"prinfold": "no json"}), CUT),
        (pack({}, metadata={"prinfold": "[1, 2]"}), "is not a prinfold model file"),
        (pack({}, metadata={"prinfold": "{}"}), "no valid format version"),
        (
            pack({}, metadata={"prinfold": "1" * 10_000}),
            CUT,
        ),
        (
            pack({}, metadata={"prinfold": "[" * 1_000_000}),
            CUT,
        ),
        (
            pack({}, metadata={"prinfold": '{"format":1,"model":' + "[" * 990 + "]" * 990 + "}"}),
            "altered|damaged|describe",
        ),
        (pack({}, metadata={"prinfold": '{"format":1,"model":NaN}'}), "does not describe a model"),
        (pack({}, metadata={"prinfold": '{"format":1,"model":1e999}'}), "does not describe a model"),
        (pack({}, metadata={"prinfold": '{"format":true}'}), "no valid format version"),
        (pack({}, metadata={"prinfold": '{"format":-1}'}), "no valid format version"),
        (pack({}, metadata={"prinfold": '{"format":"1"}'}), "no valid format version"),
        (pack({}, metadata={"prinfold": '{"format":1}'}), "altered or damaged"),
        (pack({"a": np.array([np.nan])}, metadata={"prinfold": '{"format":1}'}), "not made of finite numbers"),
    ],
    ids=range(21),
)
def test_files_that_are_no_models(bytes_, words, tmp_path):
    path = tmp_path / "model.prinfold"
    path.write_bytes(bytes_)
    with pytest.raises(CorruptModelFileError, match=words):
        load(path)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model file at .*absent\.prinfold; name one that save has written"):
        load(tmp_path / "absent.prinfold")
    with pytest.raises(InvalidParameterError, match="cannot be the name of a file"):
        load("\ud800")
    with pytest.raises(CorruptModelFileError, match="is a folder, not a model file"):
        load(tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything may be read here")
def test_a_file_that_may_not_be_read_is_no_damaged_file(fitted, tmp_path):
    save(fitted, tmp_path / "model.prinfold")
    (tmp_path / "model.prinfold").chmod(0)
    with pytest.raises(PermissionError):
        load(tmp_path / "model.prinfold")


def test_newer_files_say_so(content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    body["format"] = files.FORMAT + 1
    with pytest.raises(NewerModelFileError, match=rf"has format {files.FORMAT + 1}.*upgrade prinfold"):
        load(forge(tmp_path / "b", body, arrays))


def test_truncated_at_any_length(content, tmp_path):
    path = tmp_path / "model.prinfold"
    lengths = {*range(64), *range(64, len(content), 37), *range(len(content) - 16, len(content))}
    for length in sorted(lengths):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptModelFileError):
            load(path)


def test_bytes_added_at_the_end(content, tmp_path):
    (tmp_path / "model.prinfold").write_bytes(content + b"\0")
    with pytest.raises(CorruptModelFileError):
        load(tmp_path / "model.prinfold")


def refused_or_the_same(path: Path, fitted: Any) -> bool:
    try:
        back = load(path)
    except ModelFileError:
        return True
    same(back, fitted)
    assert back.get_params() == fitted.get_params()
    return False


def test_any_byte_flipped(content, fitted, tmp_path):
    path = tmp_path / "model.prinfold"
    refused = []
    for place in range(0, len(content), 11):
        for mask in (0x01, 0x20, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= mask
            path.write_bytes(damaged)
            refused.append(refused_or_the_same(path, fitted))
    assert np.mean(refused) > 0.99


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_of_bytes(data, content, fitted, tmp_path):
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(damaged)))
        stop = min(len(damaged), start + data.draw(st.integers(0, 20)))
        damaged[start:stop] = data.draw(st.binary(max_size=20))
    path = tmp_path / "model.prinfold"
    path.write_bytes(damaged)
    refused_or_the_same(path, fitted)


# --------------------------------------------------------------------------------------- altered on purpose


def place(tree: Any, *steps: Any) -> Any:
    for step in steps:
        tree = tree[step]
    return tree


FITTED = ("model", "fitted", "$dict")
INIT = ("model", "init", "$dict")
LATTICE = {"$object": "Lattice", "init": {"$dict": {"shape": {"$tuple": [5, 5]}, "periodic": {"$tuple": [False] * 2}}}}
DEEP: Any = 0
for _ in range(50):
    DEEP = {"$tuple": [DEEP]}


def harmonics(n: int) -> dict[str, Any]:
    return {"$object": "HarmonicBasis", "init": {"$dict": {"n_harmonics": n, "penalize_bias": False}}}


def lattice(shape: list[int]) -> dict[str, Any]:
    return {
        "$object": "Lattice",
        "init": {"$dict": {"shape": {"$tuple": shape}, "periodic": {"$tuple": [False] * len(shape)}}},
    }


PLAIN_BASIS = {"shape": 3, "width": 1.0, "linear": True, "scale": 1.0, "penalize_bias": False}


def basis(**fields: Any) -> dict[str, Any]:
    return {"$object": "GaussianBasis", "init": {"$dict": {**PLAIN_BASIS, **fields}}}


@pytest.mark.parametrize(
    ("steps", "name", "value", "words"),
    [
        ((*FITTED,), "latent_", lattice([10**6, 10**6]), "latent nodes are more than"),
        ((*FITTED,), "latent_", lattice([10**6] * 4), "latent nodes are more than"),
        ((*FITTED,), "latent_", lattice([10**400]), "latent nodes are more than|damaged"),
        ((*FITTED,), "latent_", lattice([4]), "basis has 2 axes|shape"),
        ((*FITTED,), "latent_", {"$object": "Sphere", "init": {"$dict": {"n": 10**12}}}, "latent nodes are more than"),
        ((*FITTED,), "latent_", 5, "GTM.latent_ in the file is 5, but must be a latent space"),
        ((*FITTED,), "latent_", {"$array": "GTM.offset_"}, "GTM.latent_ in the file is an array"),
        ((*FITTED,), "basis_", basis(shape=10**9), "basis functions, more than"),
        ((*FITTED,), "basis_", basis(shape={"$tuple": [120, 120]}), "weights_ with 14403 rows"),
        ((*FITTED,), "basis_", basis(width=-1.0), "width in the file is -1.0, but must be a finite number above 0"),
        ((*FITTED,), "basis_", basis(width={"$float": "nan"}), "width in the file is nan, but must be"),
        ((*FITTED,), "basis_", basis(evil=1), "GTM.basis_ .* does not fit together: .*evil"),
        ((*FITTED,), "basis_", harmonics(10**12), "more than|periodic|circle"),
        ((*FITTED,), "basis_", LATTICE, "GTM.basis_ in the file is a Lattice, but must be a basis object"),
        (
            (*FITTED,),
            "weights_",
            {"$array": "GTM.offset_"},
            r"GTM.weights_ .* of shape \(4,\), but must be .* of shape \(M, n_features_in_ = 4\)",
        ),
        ((*FITTED,), "weights_", {"$array": "absent"}, "does not describe a model"),
        ((*FITTED,), "weights_", [[1.0]], "GTM.weights_ in the file is a list of length 1"),
        ((*FITTED,), "offset_", {"$array": "GTM.weights_"}, "weights of shape|shape"),
        ((*FITTED,), "noise_variance_", -1.0, "variance|weights of shape"),
        ((*FITTED,), "noise_variance_", 0.0, "variance|weights of shape"),
        ((*FITTED,), "noise_variance_", {"$float": "nan"}, "variance|weights of shape"),
        ((*FITTED,), "noise_variance_", "1", "GTM.noise_variance_ in the file is '1'"),
        ((*FITTED,), "n_features_in_", 10**9, "weights of shape|shape"),
        ((*FITTED,), "transform", 5, "not those it needs: \\['transform'\\]"),
        ((*FITTED,), "__class__", 5, "not those it needs"),
        ((*FITTED,), "_restore", 5, "not those it needs"),
        ((*FITTED,), "feature_names_in_", {"$strings": ["a", 5, "c", "d"]}, "no string"),
        ((*FITTED,), "stop_reason_", {"$enum": "StopReason", "member": "BORED"}, "GTM.stop_reason_ .*BORED"),
        ((*FITTED,), "stop_reason_", {"$enum": "Lattice", "member": "x"}, "'Lattice'"),
        ((*FITTED,), "stop_reason_", {"$enum": "Flag", "member": "x"}, "'Flag'"),
        (
            (*FITTED,),
            "stop_reason_",
            {"$object": "StopReason", "init": {"$dict": {"value": "X", "names": "A B"}}},
            "'StopReason'",
        ),
        ((*FITTED,), "history_", {"$bytes": "00"}, "no known kind of value"),
        ((*FITTED,), "history_", {"$dict": {}, "$tuple": []}, "no known kind of value"),
        ((*FITTED,), "history_", {"plain": 1}, "no known kind of value"),
        ((*INIT,), "verbose", {"$object": "Popen", "init": {"$dict": {"args": "touch owned"}}}, "'Popen'"),
        ((*INIT,), "verbose", {"$object": "os.system", "init": {"$dict": {"command": "touch owned"}}}, "'os.system'"),
        ((*INIT,), "verbose", {"$object": "FunctionTransformer", "init": {"$dict": {}}}, "'FunctionTransformer'"),
        ((*INIT,), "verbose", {"$object": "Path", "init": {"$dict": {}}}, "'Path'"),
        ((*INIT,), "verbose", {"$object": ["GTM"], "init": {"$dict": {}}}, "does not describe a model"),
        ((*INIT,), "verbose", {"$object": "PCA", "init": {"$dict": {}}}, "GTM.verbose.copy is missing"),
        (
            (*INIT,),
            "verbose",
            {"$object": "PCA", "init": {"$dict": PCA().get_params()}, "fitted": {"$dict": {"transform": 5}}},
            "not those it needs",
        ),
        ((*INIT,), "evil", 5, "does not fit together: .*evil"),
        ((), "model", 5, "does not describe a model, but a int"),
        ((), "model", [], "does not describe a model, but a list"),
        ((), "model", None, "does not describe a model, but a NoneType"),
        ((), "model", LATTICE, "does not describe a model, but a Lattice"),
        ((), "model", {"$pipeline": []}, "does not describe a model, but a Pipeline"),
        ((), "model", {"$pipeline": [["a", None]]}, "the last step, a, does not describe a model: it is None"),
        ((), "model", {"$pipeline": [["a"]]}, "does not describe a model"),
        (
            ("model",),
            "$object",
            "Gtm",
            "which this version of prinfold does not know; if .* of your own, import the module",
        ),
    ],
)
def test_files_made_to_harm_are_refused_at_once(steps, name, value, words, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    place(body, *steps)[name] = value
    forge(tmp_path / "b", body, arrays)
    start = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=words):
            load(tmp_path / "b")
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1e8
    assert time.perf_counter() - start < 3
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", ["latent_", "basis_", "weights_", "offset_", "noise_variance_", "stop_reason_"])
def test_files_that_lack_something(name, content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    del place(body, *FITTED)[name]
    with pytest.raises(CorruptModelFileError, match=f"not those it needs: \\['{name}'\\]"):
        load(forge(tmp_path / "b", body, arrays))


def test_a_model_that_is_not_fitted_is_refused(content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    del body["model"]["fitted"]
    with pytest.raises(CorruptModelFileError, match="does not describe a model"):
        load(forge(tmp_path / "b", body, arrays))


@pytest.mark.parametrize(
    "array",
    [
        np.full((12, 4), np.nan),
        np.full((12, 4), np.inf),
        np.zeros((11, 4)),
        np.zeros((12, 5)),
        np.zeros((12, 4, 1)),
        np.zeros((0, 4)),
        np.zeros(()),
    ],
    ids=range(7),
)
def test_weights_of_the_wrong_kind(array, content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    assert arrays["GTM.weights_"].shape == (12, 4)
    arrays["GTM.weights_"] = array
    with pytest.raises(CorruptModelFileError):
        load(forge(tmp_path / "b", body, arrays))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "I4", "F128"])
def test_numbers_that_numpy_does_not_have(kind, tmp_path):
    header = json.dumps(
        {"__metadata__": {"prinfold": "{}"}, "a": {"dtype": kind, "shape": [8], "data_offsets": [0, 16]}}
    )
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(header)) + header.encode() + b"\0" * 16)
    with pytest.raises(CorruptModelFileError):
        load(tmp_path / "a")


def test_a_shape_that_promises_more_than_the_file_holds(tmp_path):
    header = json.dumps(
        {"__metadata__": {"prinfold": "{}"}, "a": {"dtype": "F64", "shape": [10**6, 10**6], "data_offsets": [0, 8]}}
    )
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(header)) + header.encode() + b"\0" * 8)
    with pytest.raises(CorruptModelFileError):
        load(tmp_path / "a")


@pytest.mark.skipif(os.name == "nt", reason="Windows would fill the file")
def test_a_hollow_file_of_enormous_size(content, tmp_path):
    with (tmp_path / "a").open("wb") as stream:
        stream.write(content)
        stream.truncate(2**40)
    with pytest.raises(CorruptModelFileError, match="too large"):
        load(tmp_path / "a")


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([[], {}, DEEP, LATTICE, {"$float": "inf"}, {"$array": "GTM.weights_"}, {"$dict": {}}]),
)


def branches(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [pair for key, value in items for pair in [(tree, key), *branches(value)]]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_of_the_text_with_a_right_digest(data, content, tmp_path):
    """Whatever a file says, loading gives a model or a named error, soon and without eating memory."""
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    for _ in range(data.draw(st.integers(1, 3))):
        tree, key = data.draw(st.sampled_from(branches(body["model"])))
        tree[key] = copy.deepcopy(data.draw(PLAIN))
    try:
        forge(tmp_path / "b", body, arrays)
    except (ValueError, RecursionError):
        return  # not even JSON
    try:
        model = load(tmp_path / "b")
    except ModelFileError:
        return
    assert isinstance(model, GTM)
    assert model.transform(DATA[:3]).shape == (3, model.latent_.n_columns)


def test_the_registry_holds_what_it_should():
    known = set(files._classes)
    assert {"GTM", "GaussianBasis", "HarmonicBasis", "Lattice", "Points", "Sphere", "StopReason"} <= known
    for name, cls in files._classes.items():
        assert cls.__name__ == name
        assert cls.__module__.startswith("prinfold.")


def test_loading_in_a_fresh_process_needs_no_other_import(content, tmp_path):
    import subprocess
    import sys

    (tmp_path / "a.prinfold").write_bytes(content)
    script = "import sys, prinfold; print(type(prinfold.load(sys.argv[1])).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.prinfold")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "GTM\n", done.stderr


def test_sphere_models_of_many_nodes_are_not_refused(tmp_path):
    """The caps are far above what anyone uses."""
    model = GTM(latent=Sphere(3000), basis=40, max_iter=1, tol=0).fit(DATA)
    model.save(tmp_path / "a")
    assert load(tmp_path / "a").latent_.n_nodes == 3000
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert prinfold.load is load


def test_text_beyond_its_cap_is_refused_and_up_to_it_is_read(content, tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(content)
    body, arrays = dismantle(tmp_path / "a")
    path = forge(tmp_path / "b", body, arrays)
    with safe_open(path, framework="numpy") as stream:
        length = len(stream.metadata()["prinfold"])
    monkeypatch.setattr(files, "_MOST_JSON", length)
    assert isinstance(load(path), GTM)
    monkeypatch.setattr(files, "_MOST_JSON", length - 1)
    with pytest.raises(CorruptModelFileError, match="not a prinfold model file"):
        load(path)


def test_long_text_in_a_small_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_JSON", 10_000)
    monkeypatch.setattr(files.json, "loads", lambda _: pytest.fail("the text was read"))
    path = tmp_path / "a"
    path.write_bytes(pack({"a": np.zeros(2)}, metadata={"prinfold": "[" * 10_001}))
    with pytest.raises(CorruptModelFileError, match="not a prinfold model file"):
        load(path)


def test_more_arrays_than_their_cap_are_refused(content, tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(content)
    _, arrays = dismantle(tmp_path / "a")
    monkeypatch.setattr(files, "_MOST_ARRAYS", len(arrays))
    assert isinstance(load(tmp_path / "a"), GTM)
    monkeypatch.setattr(files, "_MOST_ARRAYS", len(arrays) - 1)
    with pytest.raises(CorruptModelFileError, match="not a prinfold model file"):
        load(tmp_path / "a")


def test_a_name_that_no_file_can_have_is_that_of_no_model(tmp_path):
    for name in ("x" * 300, "x/" * 3000):
        with pytest.raises(
            NoModelFileError, match=r"there is no model file at .*x.* \(.*too long\); name one that save"
        ):
            load(tmp_path / name)
