"""Loaders of the real data that the papers use.

Each looks for its file in ``folder``, or in the folder that the environment variable ``PRINFOLD_DATA``
names, and then asks OpenML where OpenML has the data. Nothing is shipped with the package.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.dataset import Dataset
from prinfold.datasets.files import Folder, TextTable, fetch, find, not_found, read_arrays, read_table
from prinfold.datasets.network import line_network
from prinfold.datasets.pipe import FLOWS, Beams, beam_names
from prinfold.datasets.surface import option
from prinfold.exceptions import DataNotFoundError, InvalidDataError
from prinfold.validation.settings import check_setting, flag, integer, nothing

_GLASS_COLUMNS = ("RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe")
# Type in the file → name in the original table, which OpenML uses.
_GLASS_TYPES = {
    "1": "build wind float",
    "2": "build wind non-float",
    "3": "vehic wind float",
    "5": "containers",
    "6": "tableware",
    "7": "headlamps",
}
_PIMA_COLUMNS = ("pregnant", "glucose", "pressure", "triceps", "insulin", "mass", "pedigree", "age")
_PIMA_CLASSES = {"0": "tested_negative", "1": "tested_positive"}
_CRAB_COLUMNS = ("FL", "RW", "CL", "CW", "BD")
_CRAB_GROUPS = {"BM": "blue male", "BF": "blue female", "OM": "orange male", "OF": "orange female"}
_OIL_PARTS = {"train": ("train",), "valid": ("valid",), "all": ("train", "valid")}
_USPS_TRAINING, _USPS_TWOS = 7291, 731
_SKY_COLUMNS = ("ra", "dec", "z")
_GPS_COLUMNS, _ROAD_COLUMNS = ("x", "y"), ("x1", "y1", "x2", "y2")


_REPOSITORIES = {
    "oil_flow.npz": "SheffieldML/GPmat on GitHub",
    "crabs.csv.gz": "vincentarelbundock/Rdatasets on GitHub (csv/MASS/crabs.csv)",
    "sdss_galaxies_z005.csv.gz": "zhangyk8/sconce-scms on GitHub (examples/Theory_Method_Code)",
    "gps_athens_small.csv.gz": "pfoser/mapconstruction on GitHub (data/tracks/tracks_athens_small.zip)",
    "gps_athens_small_osm_segments.csv.gz": "pfoser/mapconstruction on GitHub (data/maps/map_athens_small.zip)",
    "paul15_tradeseq.npz": "statOmics/tradeSeq on GitHub (data/countMatrix.rda and data/celltype.rda)",
}
"""Where data that OpenML does not have came from."""


def load_glass(folder: Folder = None) -> Dataset:
    """Glass identification (UCI): 214 pieces of glass, 9 measurements, 6 kinds. PPS table 4.

    Parameters
    ----------
    folder : path, optional
        Where ``glass.csv.gz`` is; otherwise ``PRINFOLD_DATA``, then OpenML ("glass", version 1).

    Returns
    -------
    Dataset
        ``labels`` is the kind of glass.
    """
    if path := find("glass.csv.gz", folder):
        table = read_table(path, (*_GLASS_COLUMNS, "Type"))
        X, kinds = table.numbers(_GLASS_COLUMNS), [option(_GLASS_TYPES, "Type", t) for t in table.text("Type")]
    else:
        X, kinds = fetch("glass", 1, "glass.csv.gz", folder)
    names = tuple(_GLASS_TYPES.values())
    return _labeled_dataset(X, _index(kinds, names), _GLASS_COLUMNS, names, "glass identification (UCI)")


def load_diabetes(folder: Folder = None) -> Dataset:
    """Pima Indians diabetes: 768 women, 8 measurements, 2 classes. PPS table 4.

    Zeros stand for missing values in glucose, pressure, triceps, insulin and mass; the rows are given as they
    are, as the paper used them. Not the diabetes data of scikit-learn.

    Parameters
    ----------
    folder : path, optional
        Where ``pima.csv.gz`` is; otherwise ``PRINFOLD_DATA``, then OpenML ("diabetes", version 1).

    Returns
    -------
    Dataset
        ``labels`` is 1 for a positive test.
    """
    if path := find("pima.csv.gz", folder):
        table = read_table(path, (*_PIMA_COLUMNS, "diabetes"))
        X, kinds = table.numbers(_PIMA_COLUMNS), [option(_PIMA_CLASSES, "diabetes", t) for t in table.text("diabetes")]
    else:
        X, kinds = fetch("diabetes", 1, "pima.csv.gz", folder)
    names = tuple(_PIMA_CLASSES.values())
    return _labeled_dataset(X, _index(kinds, names), _PIMA_COLUMNS, names, "Pima Indians diabetes")


def load_crabs(folder: Folder = None, *, normalize: bool = True) -> Dataset:
    """Leptograpsus crabs: 200 rock crabs, 5 measurements, two colours and two sexes. GTM thesis, example 4.2.

    Parameters
    ----------
    folder : path, optional
        Where ``crabs.csv.gz`` is; otherwise ``PRINFOLD_DATA``. OpenML is not asked.
    normalize : bool, default=True
        As in the thesis: each row divided by its mean, which takes size out; then each column brought to
        zero mean and unit variance. ``False`` gives millimetres.

    Returns
    -------
    Dataset
        ``labels`` is one of four groups of 50.
    """
    check_setting("normalize", normalize, flag)
    table = _table("crabs.csv.gz", folder, ("sp", "sex", *_CRAB_COLUMNS))
    groups = [
        option(_CRAB_GROUPS, "sp and sex", sp + sex)
        for sp, sex in zip(table.text("sp"), table.text("sex"), strict=True)
    ]
    X, names = table.numbers(_CRAB_COLUMNS), tuple(_CRAB_GROUPS.values())
    if normalize:
        X = X / X.mean(axis=1, keepdims=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return _labeled_dataset(X, _index(groups, names), _CRAB_COLUMNS, names, "Leptograpsus crabs (Svensén, example 4.2)")


def load_oil_flow(folder: Folder = None, *, part: str = "train") -> Dataset:
    """Three-phase pipe flow (Bishop and James 1993): 12 path lengths, 3 flows. GTM thesis, example 3.2.

    The files do not say which label is which flow, nor which column is water. Both follow from the geometry
    of :func:`prinfold.datasets.make_pipe_flow`, which explains every row up to photon noise: labels 0, 1, 2
    are homogeneous, annular and stratified flow, and the first column of each pair is the phase at the wall
    and at the bottom, which is water.

    Parameters
    ----------
    folder : path, optional
        Where ``oil_flow.npz`` is; otherwise ``PRINFOLD_DATA``. OpenML is not asked.
    part : {"train", "valid", "all"}, default="train"
        1000 rows for training, 1000 for validation, or both.

    Returns
    -------
    Dataset
        ``labels`` is the flow, ``fractions`` are those of gas, oil and water, ``latent`` those of water and oil.
    """
    parts = option(_OIL_PARTS, "part", part)
    path = find("oil_flow.npz", folder)
    if path is None:
        raise _elsewhere("oil_flow.npz", folder, "arrays X_train, y_train, fractions_train and the same of valid")
    tables = [read_arrays(path, (f"X_{p}", f"y_{p}", f"fractions_{p}")) for p in parts]
    X, y, wet = (np.concatenate([list(table.values())[k] for table in tables]) for k in range(3))
    if X.shape[1] != 12 or wet.shape[1] != 2 or not set(np.unique(y)) <= {0, 1, 2}:
        raise InvalidDataError("oil_flow.npz should hold 12 columns, 2 fractions and labels 0 to 2.")
    gas = np.maximum(1.0 - wet.sum(axis=1), 0.0)
    return Dataset(
        X=np.asarray(X, dtype=float),
        latent=wet,
        labels=y.astype(np.int64),
        fractions=np.column_stack([gas, wet[:, 1], wet[:, 0]]),
        feature_names=beam_names(Beams()),
        class_names=tuple(FLOWS),
        description=f"three-phase pipe flow, {part} (Bishop and James 1993)",
    )


def load_usps_twos(folder: Folder = None) -> Dataset:
    """USPS handwritten digit 2: 731 grey images of 16 × 16 pixels in [−1, 1]. UKR section 4.2.

    Parameters
    ----------
    folder : path, optional
        Where ``usps_twos.npz`` is; otherwise ``PRINFOLD_DATA``, then OpenML ("USPS", version 2), whose first
        7291 rows are the training part.

    Returns
    -------
    Dataset
        Rows are images read line by line.
    """
    if path := find("usps_twos.npz", folder):
        X = read_arrays(path, ("X1000",))["X1000"] / 1000.0
    else:
        images, digits = fetch("USPS", 2, "usps_twos.npz", folder)
        # OpenML counts classes from 1, so that the digit 2 is "3".
        X = images[:_USPS_TRAINING][np.array(digits[:_USPS_TRAINING]) == "3"]
        if len(X) != _USPS_TWOS:
            raise not_found(
                "usps_twos.npz", folder, f"what OpenML calls USPS holds {len(X)} twos instead of {_USPS_TWOS}"
            )
    return Dataset(X=X, feature_names=_pixels(16), description="USPS digit 2 (Meinicke et al., section 4.2)")


def load_galaxies(folder: Folder = None) -> Dataset:
    """Galaxies of the Sloan Digital Sky Survey in one thin shell of redshift, 0.05 to 0.055: 22 709 rows.

    Filaments of galaxies are ridges of their density on the sky. The survey ends where it ends: its edges are
    visible in the rows and no filaments.

    Parameters
    ----------
    folder : path, optional
        Where ``sdss_galaxies_z005.csv.gz`` is; otherwise ``PRINFOLD_DATA``. OpenML is not asked.

    Returns
    -------
    Dataset
        Columns are right ascension and declination in degrees, and redshift; ``X[:, :2]`` are places on the sky.
    """
    table = _table("sdss_galaxies_z005.csv.gz", folder, _SKY_COLUMNS)
    X = _finite(table, _SKY_COLUMNS)
    if np.abs(X[:, 1]).max() > 90.0:
        raise InvalidDataError(f"Declinations are degrees from −90 to 90; got {np.abs(X[:, 1]).max():g}.")
    return Dataset(X=X, feature_names=_SKY_COLUMNS, description="galaxies at redshift 0.050 to 0.055 (SDSS)")


def load_gps_traces(folder: Folder = None) -> Dataset:
    """Places where vehicles in Athens reported themselves every half minute, and the roads under them.

    2840 places on 129 trips, in metres of a flat map, and 3436 straight pieces of road from OpenStreetMap as the truth:
    ``data.surface.distance(P)`` is how far points are from the nearest road, ``data.surface.segments`` (S, 2, 2) are
    the pieces. More roads are mapped than were driven, so the distance from road to rows says little.

    Parameters
    ----------
    folder : path, optional
        Where ``gps_athens_small.csv.gz`` and ``gps_athens_small_osm_segments.csv.gz`` are; otherwise
        ``PRINFOLD_DATA``. OpenML is not asked.

    Returns
    -------
    Dataset
        ``surface`` is the network of roads, ``labels`` the number of the trip; the rows of a trip are in order of time.
    """
    traces = _table("gps_athens_small.csv.gz", folder, ("trip", *_GPS_COLUMNS))
    roads = _table("gps_athens_small_osm_segments.csv.gz", folder, _ROAD_COLUMNS)
    segments = _finite(roads, _ROAD_COLUMNS).reshape(-1, 2, 2)
    return Dataset(
        X=_finite(traces, _GPS_COLUMNS),
        surface=line_network("road network", segments),
        labels=traces.numbers(("trip",))[:, 0].astype(np.int64),
        feature_names=_GPS_COLUMNS,
        description="GPS traces in Athens, with the roads of OpenStreetMap",
    )


def load_myeloid(folder: Folder = None) -> Dataset:
    """Myeloid progenitors of the mouse: counts of 240 genes in 2660 cells (Paul et al. 2015).

    Cells on their way from multipotent progenitors to erythrocytes and to monocytes, neutrophils and others.

    Parameters
    ----------
    folder : path, optional
        Where ``paul15_tradeseq.npz`` is; otherwise ``PRINFOLD_DATA``. OpenML is not asked.

    Returns
    -------
    Dataset
        Rows are raw counts, columns genes; ``labels`` is the kind of cell, as the authors' clusters tell it.
    """
    name = "paul15_tradeseq.npz"
    path = find(name, folder)
    if path is None:
        raise _elsewhere(name, folder, "arrays counts, celltype and genes")
    cells, genes = read_arrays(path, ("counts", "celltype")), read_arrays(path, ("genes",))["genes"]
    kinds, labels = np.unique(cells["celltype"], return_inverse=True)
    features, classes = tuple(map(str, genes)), tuple(map(str, kinds))
    words = "myeloid progenitors (Paul et al. 2015)"
    return _labeled_dataset(cells["counts"].astype(float), labels.astype(np.int64), features, classes, words)


def load_digits(digit: int | None = None) -> Dataset:
    """Small handwritten digits that come with scikit-learn: 1797 images of 8 × 8 pixels from 0 to 16.

    Parameters
    ----------
    digit : int, optional
        Only this digit.

    Returns
    -------
    Dataset
        ``labels`` is the digit.
    """
    from sklearn.datasets import load_digits as bundled

    check_setting("digit", digit, nothing | integer(0, 9))
    X, y = bundled(return_X_y=True)
    keep = np.ones(len(y), dtype=bool) if digit is None else y == digit
    names = tuple(str(d) for d in range(10))
    return _labeled_dataset(X[keep], y[keep].astype(np.int64), _pixels(8), names, "handwritten digits of scikit-learn")


def load_iris() -> Dataset:
    """Fisher's iris, which comes with scikit-learn: 150 flowers, 4 measurements, 3 species. PPS table 4.

    Returns
    -------
    Dataset
        ``labels`` is the species.
    """
    from sklearn.datasets import load_iris as bundled

    bunch = bundled()
    features, species = tuple(map(str, bunch.feature_names)), tuple(map(str, bunch.target_names))
    return _labeled_dataset(bunch.data, bunch.target.astype(np.int64), features, species, "iris (Fisher)")


def _table(name: str, folder: Folder, columns: tuple[str, ...]) -> TextTable:
    """A table that OpenML does not have."""
    path = find(name, folder)
    if path is None:
        raise _elsewhere(name, folder, f"gzipped CSV with the columns {', '.join(columns)}")
    return read_table(path, columns)


def _elsewhere(name: str, folder: Folder, holds: str) -> DataNotFoundError:
    """The error for a file that OpenML does not have: where the data came from, and what the file has to hold."""
    why = f"it is not taken from OpenML. The data came from the repository {_REPOSITORIES[name]}"
    return not_found(name, folder, f"{why}; write them to {name}: {holds}")


def _finite(table: TextTable, columns: tuple[str, ...]) -> FloatArray:
    X = table.numbers(columns)
    if not np.isfinite(X).all():
        raise InvalidDataError(f"Expected finite numbers in the columns {list(columns)}.")
    return X


def _pixels(side: int) -> tuple[str, ...]:
    return tuple(f"pixel_{i}_{j}" for i in range(side) for j in range(side))


def _index(kinds: Sequence[str], names: tuple[str, ...]) -> IntArray:
    unknown = sorted(set(kinds) - set(names))
    if unknown:
        raise InvalidDataError(f"The classes {unknown} are none of {list(names)}.")
    return np.array([names.index(kind) for kind in kinds], dtype=np.int64)


def _labeled_dataset(
    X: FloatArray, labels: IntArray, features: tuple[str, ...], classes: tuple[str, ...], description: str
) -> Dataset:
    if X.ndim != 2 or X.shape[1] != len(features) or not np.isfinite(X).all():
        raise InvalidDataError(f"Expected finite numbers in {len(features)} columns; got shape {X.shape}.")
    return Dataset(X=X, labels=labels, feature_names=features, class_names=classes, description=description)
