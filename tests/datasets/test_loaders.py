"""Loaders: parsing of small files written here, the error offline, and the real files where they are."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from prinfold import datasets
from prinfold.datasets import path_lengths
from prinfold.exceptions import DataNotFoundError, InvalidDataError, InvalidParameterError

GLASS = "Id,RI,Na,Mg,Al,Si,K,Ca,Ba,Fe,Type\n1,1.5,13,4,1,71,.06,8,0,0.1,1\n2,1.6,12,3,2,72,.5,7,0,0,7\n"
PIMA = "pregnant,glucose,pressure,triceps,insulin,mass,pedigree,age,diabetes\n6,148,72,35,0,33.6,0.627,50,1\n"
CRABS = (
    "sp,sex,index,FL,RW,CL,CW,BD\nB,M,1,8.1,6.7,16.1,19.0,7.0\nO,F,1,9,8,17,20,8\nB,F,2,7,7,14,16,6\nO,M,3,1,2,3,4,5\n"
)
FILES = {"load_glass": "glass.csv.gz", "load_diabetes": "pima.csv.gz", "load_crabs": "crabs.csv.gz"}
FILES |= {"load_oil_flow": "oil_flow.npz", "load_usps_twos": "usps_twos.npz"}
FILES |= {"load_galaxies": "sdss_galaxies_z005.csv.gz", "load_gps_traces": "gps_athens_small.csv.gz"}
FILES |= {"load_myeloid": "paul15_tradeseq.npz"}
SKY = "slice,ra,dec,z\nz0.05,146.5,-0.75,0.0525\nz0.05,12.25,68.5,0.0515\n"
GPS = "trip,x,y,t\n0,3,4,10\n0,10,1,40\n5,-3,-4,9\n"
ROADS = "x1,y1,x2,y2\n0,0,20,0\n0,0,0,9\n"


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder


def write_oil(folder: Path, **changes: np.ndarray) -> Path:
    arrays: dict[str, np.ndarray] = {}
    for part, offset in (("train", 0.0), ("valid", 1.0)):
        arrays[f"X_{part}"] = np.arange(36.0).reshape(3, 12) + offset
        arrays[f"y_{part}"] = np.array([2, 0, 1], dtype=np.uint8)
        arrays[f"fractions_{part}"] = np.array([[0.5, 0.25], [0.1, 0.2], [0.6, 0.4]])
    np.savez(folder / "oil_flow.npz", **(arrays | changes))
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise URLError("no route to host")

    monkeypatch.delenv("PRINFOLD_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", sorted(FILES))
def test_offline_the_error_says_what_to_set(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, file = getattr(datasets, name), FILES[name]
    with pytest.raises(DataNotFoundError, match=f"PRINFOLD_DATA is not set.*Set PRINFOLD_DATA to a folder.*{file}"):
        load()
    with pytest.raises(
        DataNotFoundError,
        match=r"OpenML did not answer|came from the repository \w+/[\w-]+ on GitHub( \([\w./ -]+\))?; write them to ",
    ):
        load()
    monkeypatch.setenv("PRINFOLD_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=f"{file} is not in the folder that PRINFOLD_DATA names"):
        load()
    with pytest.raises(DataNotFoundError, match=f"{file} is not in {tmp_path}"):
        load(folder=tmp_path)


@pytest.mark.usefixtures("offline")
def test_the_network_error_is_told() -> None:
    with pytest.raises(DataNotFoundError, match=r"OpenML did not answer .URLError.*no route to host") as caught:
        datasets.load_glass()
    assert isinstance(caught.value.__cause__, URLError)


@pytest.mark.usefixtures("offline")
def test_the_folder_is_found_by_argument_and_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "glass.csv.gz", GLASS)
    by_argument = datasets.load_glass(tmp_path)
    monkeypatch.setenv("PRINFOLD_DATA", str(tmp_path))
    np.testing.assert_array_equal(by_argument.X, datasets.load_glass().X)


def test_glass_file_is_parsed(tmp_path: Path) -> None:
    data = datasets.load_glass(write(tmp_path, "glass.csv.gz", GLASS))
    np.testing.assert_array_equal(data.X, [[1.5, 13, 4, 1, 71, 0.06, 8, 0, 0.1], [1.6, 12, 3, 2, 72, 0.5, 7, 0, 0]])
    assert [data.class_names[k] for k in data.labels] == ["build wind float", "headlamps"]
    assert data.target is data.labels


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    swapped = "diabetes,age,pregnant,glucose,pressure,triceps,insulin,mass,pedigree\n0,50,6,148,72,35,0,33.6,0.627\n"
    data = datasets.load_diabetes(write(tmp_path, "pima.csv.gz", swapped))
    np.testing.assert_array_equal(data.X, [[6, 148, 72, 35, 0, 33.6, 0.627, 50]])
    assert data.labels.tolist() == [0]
    np.testing.assert_array_equal(datasets.load_diabetes(write(tmp_path, "pima.csv.gz", PIMA)).X, data.X)


def test_crabs_are_normalised_as_in_the_thesis(tmp_path: Path) -> None:
    folder = write(tmp_path, "crabs.csv.gz", CRABS)
    raw, data = datasets.load_crabs(folder, normalize=False), datasets.load_crabs(folder)
    assert [raw.class_names[k] for k in raw.labels] == ["blue male", "orange female", "blue female", "orange male"]
    np.testing.assert_array_equal(raw.X[0], [8.1, 6.7, 16.1, 19.0, 7.0])
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0)
    # A crab twice the size in everything is the same crab.
    doubled = CRABS.replace("9,8,17,20,8", "18,16,34,40,16")
    np.testing.assert_allclose(datasets.load_crabs(write(tmp_path, "crabs.csv.gz", doubled)).X, data.X, atol=1e-12)


def test_oil_flow_file_is_parsed(tmp_path: Path) -> None:
    folder = write_oil(tmp_path)
    train, both = datasets.load_oil_flow(folder), datasets.load_oil_flow(folder, part="all")
    np.testing.assert_array_equal(both.X, np.vstack([train.X, train.X + 1]))
    assert [train.class_names[k] for k in train.labels] == ["stratified", "homogeneous", "annular"]
    np.testing.assert_allclose(train.fractions, [[0.25, 0.25, 0.5], [0.7, 0.2, 0.1], [0.0, 0.4, 0.6]], atol=1e-15)
    assert train.feature_names[:2] == ("water_v1", "oil_v1")
    with pytest.raises(InvalidParameterError, match="part='test' is not one of"):
        datasets.load_oil_flow(folder, part="test")


def test_usps_pixels_are_thousandths(tmp_path: Path) -> None:
    np.savez(tmp_path / "usps_twos.npz", X1000=np.tile(np.array([[-1000, 250]], dtype=np.int16), (3, 128)))
    data = datasets.load_usps_twos(tmp_path)
    assert data.X.shape == (3, 256)
    assert set(data.X.ravel()) == {-1.0, 0.25}


def test_galaxies_are_read_in_degrees(tmp_path: Path) -> None:
    data = datasets.load_galaxies(write(tmp_path, "sdss_galaxies_z005.csv.gz", SKY))
    np.testing.assert_array_equal(data.X, [[146.5, -0.75, 0.0525], [12.25, 68.5, 0.0515]])
    assert data.feature_names == ("ra", "dec", "z")


def test_myeloid_cells_are_counts_with_kinds(tmp_path: Path) -> None:
    kinds = np.array(["Monocytes", "Erythrocyte", "Monocytes"])
    counts = np.array([[3, 0], [1, 7], [2, 2]], dtype=np.uint16)
    np.savez(tmp_path / "paul15_tradeseq.npz", counts=counts, celltype=kinds, genes=np.array(["Mpo", "Car2"]))
    data = datasets.load_myeloid(tmp_path)
    np.testing.assert_array_equal(data.X, counts)
    assert data.feature_names == ("Mpo", "Car2")
    assert data.names.tolist() == kinds.tolist()


def test_gps_traces_come_with_their_roads(tmp_path: Path) -> None:
    write(tmp_path, "gps_athens_small.csv.gz", GPS)
    with pytest.raises(DataNotFoundError, match="Set PRINFOLD_DATA to a folder that holds gps_athens_small_osm_segm"):
        datasets.load_gps_traces(tmp_path)
    data = datasets.load_gps_traces(write(tmp_path, "gps_athens_small_osm_segments.csv.gz", ROADS))
    assert data.labels.tolist() == [0, 0, 5]
    assert data.surface.segments.shape == (2, 2, 2)
    np.testing.assert_allclose(data.surface.distance(data.X), [3.0, 1.0, 5.0])


@pytest.mark.parametrize(
    ("load", "name", "text", "message"),
    [
        (datasets.load_glass, "glass.csv.gz", GLASS.replace("Fe", "Iron"), "should be a full table with the columns"),
        (datasets.load_glass, "glass.csv.gz", GLASS.replace(",7\n", ",9\n"), "Type='9' is not one of"),
        (datasets.load_glass, "glass.csv.gz", GLASS + "3,1\n", "should be a full table"),
        (datasets.load_glass, "glass.csv.gz", "", "not a gzipped CSV file with a header"),
        (datasets.load_diabetes, "pima.csv.gz", PIMA.replace("148", "nan"), "Expected finite numbers in 8 columns"),
        (datasets.load_galaxies, "sdss_galaxies_z005.csv.gz", SKY.replace("68.5", "inf"), "finite numbers in the col"),
        (datasets.load_galaxies, "sdss_galaxies_z005.csv.gz", SKY.replace("68.5", "99"), "from −90 to 90; got 99"),
    ],
)
def test_broken_tables_are_named(load: object, name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
        load(write(tmp_path, name, text))


def test_broken_array_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "oil_flow.npz").write_bytes(b"not a zip file")
    with pytest.raises(InvalidDataError, match=r"oil_flow.npz should be an .npz file with the arrays"):
        datasets.load_oil_flow(tmp_path)
    for changes, message in (
        ({"X_train": np.zeros((2, 12))}, "differ in length"),
        ({"X_train": np.zeros((3, 11))}, "should hold 12 columns"),
        ({"y_train": np.array([0, 1, 7])}, "labels 0 to 2"),
        ({"X_train": np.array([{}, {}, {}], dtype=object)}, "should be an .npz file"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            datasets.load_oil_flow(write_oil(tmp_path, **changes))


def answer(monkeypatch: pytest.MonkeyPatch, X: np.ndarray, target: list[str]) -> list[tuple[object, ...]]:
    asked: list[tuple[object, ...]] = []

    def reply(name: str, *, version: int, **_: object) -> SimpleNamespace:
        asked.append((name, version))
        return SimpleNamespace(data=X, target=np.array(target, dtype=object))

    monkeypatch.delenv("PRINFOLD_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", reply)
    return asked


def test_openml_answers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, np.ones((2, 9)), ["'build wind non-float'", "tableware"])
    assert datasets.load_glass().labels.tolist() == [1, 4]
    answer(monkeypatch, np.ones((2, 9)), ["crystal", "tableware"])
    with pytest.raises(InvalidDataError, match="crystal"):
        datasets.load_glass()
    assert asked == [("glass", 1)]


def test_openml_twos_are_the_third_class_of_the_training_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 9298
    images = np.zeros((n, 256))
    images[:, 0] = np.arange(n)
    target = ["1"] * n
    for i in [*range(731), 8000]:
        target[i] = "3"
    asked = answer(monkeypatch, images, target)
    np.testing.assert_array_equal(datasets.load_usps_twos().X[:, 0], np.arange(731))
    assert asked == [("USPS", 2)]
    target[0] = "1"
    answer(monkeypatch, images, target)
    with pytest.raises(DataNotFoundError, match="holds 730 twos instead of 731"):
        datasets.load_usps_twos()


def test_bundled_data() -> None:
    assert datasets.load_digits().X.shape == (1797, 64)
    twos = datasets.load_digits(2)
    assert set(twos.labels) == {2}
    assert twos.class_names[2] == "2"
    assert datasets.load_iris().X.shape == (150, 4)


def test_real_tables_have_their_known_sizes(data_folder: Path) -> None:
    assert np.bincount(datasets.load_glass(data_folder).labels).tolist() == [70, 76, 17, 13, 9, 29]
    assert np.bincount(datasets.load_diabetes(data_folder).labels).tolist() == [500, 268]
    assert np.bincount(datasets.load_crabs(data_folder).labels).tolist() == [50, 50, 50, 50]
    twos = datasets.load_usps_twos(data_folder).X
    assert twos.shape == (731, 256)
    assert (twos.min(), twos.max()) == (-1.0, 1.0)


def test_real_galaxies_and_traces_have_their_known_sizes(data_folder: Path) -> None:
    galaxies = datasets.load_galaxies(data_folder).X
    assert galaxies.shape == (22709, 3)
    assert ((galaxies[:, 2] > 0.05) & (galaxies[:, 2] < 0.055)).all()
    cells = datasets.load_myeloid(data_folder)
    assert cells.X.shape == (2660, 240)
    assert np.bincount(cells.labels).tolist() == [369, 1095, 216, 68, 559, 167, 186]
    traces = datasets.load_gps_traces(data_folder)
    assert traces.X.shape == (2840, 2)
    assert len(np.unique(traces.labels)) == 129
    assert traces.surface.segments.shape == (3436, 2, 2)
    # Vehicles drive on roads: the receivers of the time are right to a few metres.
    assert np.median(traces.surface.distance(traces.X)) < 5.0


def test_the_pipe_model_explains_the_real_oil_flow(data_folder: Path) -> None:
    """Labels, columns and geometry as documented leave the same photon noise in every flow and beam."""
    data = datasets.load_oil_flow(data_folder, part="all")
    shares = data.fractions / data.fractions.sum(axis=1, keepdims=True)
    for label, flow in enumerate(data.class_names):
        of = data.labels == label
        rest = data.X[of].reshape(-1, 6, 2) - path_lengths(shares[of], flow)
        spread = np.sqrt((rest**2).mean(axis=0))
        assert spread[:, 0].max() < 0.07
        assert spread[:, 1].max() < 0.08
        assert np.corrcoef(rest.reshape(-1, 2).T)[0, 1] < -0.999


def test_simulated_oil_flow_is_like_the_real(data_folder: Path) -> None:
    real = datasets.load_oil_flow(data_folder, part="all")
    made = datasets.make_pipe_flow(6000, rng=0, fractions="ratios")
    assert np.abs(real.X.mean(axis=0) - made.X.mean(axis=0)).max() < 0.06
    assert np.abs(real.X.std(axis=0) - made.X.std(axis=0)).max() < 0.03
    for label in range(3):
        a, b = (np.sqrt(np.linalg.eigvalsh(np.cov(d.X[d.labels == label].T))[::-1][:6]) for d in (real, made))
        np.testing.assert_allclose(a, b, rtol=0.2)
