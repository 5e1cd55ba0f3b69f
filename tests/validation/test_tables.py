"""What comes in: every container and oddity has a right answer or an error that names the fix."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from prinfold import GTM, KMM, UKR, GaussianBasis, ProbabilisticCurve, compare
from prinfold.exceptions import (
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    PrinfoldError,
    UnsupportedInputError,
)
from prinfold.validation.settings import as_generator, integer, nothing, one_of, real
from prinfold.validation.tables import check_latent, check_table

# Whether a surface through noise is folded is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

NAMES = ["length", "width", "height"]
DATA = np.random.default_rng(0).normal(size=(60, 3)) * [3, 1, 0.2]
FRAME = pd.DataFrame(DATA, columns=NAMES)


def gtm(**settings):
    return GTM(**{"nodes": 5, "basis": 3, "max_iter": 10, "tol": 0, "regularization": 1.0} | settings)


@pytest.fixture(scope="module")
def plain():
    return gtm().fit(DATA)


def usable(model, X):
    """Everything that a model says about rows is finite, and coordinates lie in the domain."""
    Z = model.transform(X)
    assert Z.shape == (len(X), model.latent_.n_columns)
    assert model.latent_.domain.contains(Z).all()
    for verb in ("score_samples", "project", "reconstruct", "posterior_covariance", "mode_distance", "posterior_mode"):
        assert np.isfinite(getattr(model, verb)(X)).all(), verb
    responsibilities = model.responsibilities(X)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(model.jacobian(Z)).all()
    assert np.isfinite(list(model.history_.values())).all()
    assert model.noise_variance_ > 0


# --------------------------------------------------------------------------------- containers that work


def layouts():
    wide = np.zeros((120, 6))
    wide[::2, ::2] = DATA
    frozen = DATA.copy()
    frozen.setflags(write=False)
    return {
        "F order": np.asfortranarray(DATA),
        "strided": wide[::2, ::2],
        "backwards": DATA[::-1].copy()[::-1],
        "read-only": frozen,
        "big-endian": DATA.astype(">f8"),
        "list": DATA.tolist(),
        "tuples": tuple(map(tuple, DATA)),
        "object": DATA.astype(object),
        "matrix of masked with nothing masked": np.ma.array(DATA),
        "pandas": FRAME,
        "pandas nullable": FRAME.convert_dtypes(),
        "pandas arrow": FRAME.astype("float64[pyarrow]"),
        "pandas object": FRAME.astype(object),
        "polars": pl.DataFrame(DATA, schema=NAMES),
        "arrow": pa.table(dict(zip(NAMES, DATA.T.copy(), strict=True))),
        "arrow in chunks": pa.concat_tables([pa.Table.from_pandas(FRAME[:20]), pa.Table.from_pandas(FRAME[20:])]),
    }


@pytest.mark.parametrize("name", layouts())
def test_every_container_gives_the_same_numbers(name, plain):
    X = layouts()[name]
    model = gtm().fit(X)
    np.testing.assert_allclose(model.transform(X), plain.transform(DATA), atol=1e-12)
    assert model.score(X) == pytest.approx(plain.score(DATA), rel=1e-12)
    if any(kind in name for kind in ("pandas", "polars", "arrow")):
        np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    else:
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_in_is_precision_out(dtype, plain):
    X = DATA.astype(dtype)
    model = gtm().fit(X)
    assert model.transform(X).dtype == dtype
    assert model.project(X).dtype == dtype
    assert model.score_samples(X).dtype == dtype
    assert model.weights_.dtype == np.float64
    np.testing.assert_allclose(model.transform(X), plain.transform(DATA), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, np.longdouble, bool])
def test_other_numbers_become_float64(dtype):
    X = (np.arange(90).reshape(30, 3) * 7 % 100).astype(dtype)
    if dtype is bool:
        X = np.random.default_rng(0).normal(size=(30, 3)) > 0
    model, same = gtm().fit(X), gtm().fit(X.astype(np.float64))
    np.testing.assert_array_equal(model.transform(X), same.transform(X.astype(float)))
    assert model.transform(X).dtype == np.float64


def test_frames_of_several_types():
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0.5, 1.5, 0.0, 2.0], "c": [True, False, True, True]})
    same = gtm().fit(frame.to_numpy(dtype=float))
    np.testing.assert_allclose(gtm().fit(frame).weights_, same.weights_, atol=1e-10)
    np.testing.assert_allclose(gtm().fit(pl.from_pandas(frame)).weights_, same.weights_, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps(tmp_path, dtype, order):
    X = np.asarray(DATA, dtype=dtype, order=order)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, same = gtm().fit(mapped), gtm().fit(X)
    np.testing.assert_array_equal(model.transform(mapped), same.transform(X))
    assert model.score(mapped) == same.score(X)


def test_input_is_never_written_to():
    kept = DATA.copy()
    X, weight = DATA.copy(), np.ones(60)
    model = gtm().fit(X, sample_weight=weight)
    usable(model, X)
    np.testing.assert_array_equal(X, kept)
    np.testing.assert_array_equal(weight, 1)


def test_output_containers_follow_set_output(plain):
    model = gtm().set_output(transform="pandas").fit(FRAME)
    Z = model.transform(FRAME)
    assert list(Z.columns) == ["gtm0", "gtm1"]
    np.testing.assert_allclose(model.inverse_transform(Z), plain.inverse_transform(plain.transform(DATA)), atol=1e-9)


# ------------------------------------------------------------------------- containers that need a step first


class Annotated:
    obsm, uns, X = None, None, DATA


Annotated.__module__ = "anndata._core"
DaskArray = type("Array", (), {"__module__": "dask.array.core", "dask": {}, "__array__": lambda self, *_: DATA})
DaskFrame = type("DataFrame", (), {"__module__": "dask.dataframe", "compute": lambda self: FRAME})


@pytest.mark.parametrize("X", [scipy.sparse.csr_matrix(DATA), scipy.sparse.coo_array(DATA)])
def test_sparse_tables_where_a_method_cannot_use_them(X):
    with pytest.raises(UnsupportedInputError, match=r"sparse matrix \(\w+\).*X.toarray\(\).*TruncatedSVD"):
        check_table(GTM(), X, reset=True)


def test_what_is_not_finite_in_a_sparse_table_is_named():
    X = scipy.sparse.lil_matrix(DATA.shape)
    X[3, 1], X[7, 2] = np.nan, 1.0
    with pytest.raises(InvalidDataError, match=r"NaN: 1 of its values.*row\(s\) 3 and column\(s\) 1\."):
        gtm().fit(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pl.DataFrame(DATA).lazy(), r"polars.LazyFrame, a query that has not run yet; pass X.collect\(\)"),
        (Annotated(), r"anndata.Annotated, an annotated data object; pass one of its arrays, such as adata.obsm"),
        (SimpleNamespace(obsm={}, uns={}), "annotated data object"),
        (DaskArray(), r"dask.Array, a Dask collection.*X.compute\(\)"),
        (DaskFrame(), r"dask.DataFrame, a Dask collection.*X.compute\(\)"),
    ],
)
@pytest.mark.parametrize("verb", ["fit", "transform", "score", "project"])
def test_containers_that_need_a_step_first(X, words, verb, plain):
    model = gtm() if verb == "fit" else plain
    with pytest.raises(UnsupportedInputError, match=words):
        getattr(model, verb)(X)


def test_a_real_annotated_object():
    anndata = pytest.importorskip("anndata")
    with pytest.raises(UnsupportedInputError, match="obsm"):
        gtm().fit(anndata.AnnData(DATA))


def test_a_real_dask_array():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(UnsupportedInputError, match="compute"):
        check_table(gtm(), dask.from_array(DATA), reset=True)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (DATA[:, 0], "Expected 2D array, got 1D array"),
        (FRAME["width"], "2-dimensional"),
        (DATA[None], "dim 3"),
        (5.0, "Expected 2D array, got scalar"),
        (DATA + 1j, "Complex data not supported"),
        (np.array([["1", "x"], ["2", "3"]]), "column 1 holds text, such as 'x' in row 0"),
        (["a", "b"], "could not convert string to float: 'a'"),
        ([[1.0, 2.0], [3.0]], "row 1 has 1 entries, but row 0 has 2 entries; give every row"),
        (DATA[:0], r"0 sample\(s\).*minimum of 2 is required by GTM"),
        (FRAME[:0], r"0 sample\(s\)"),
        (DATA[:, :0], r"0 feature\(s\).*minimum of 1"),
        (DATA[:1], r"1 sample\(s\).*minimum of 2 is required by GTM"),
        (DATA * 1e200, "values up to .*e.200, whose squares overflow float64; scale its columns"),
        ((DATA * 1e25).astype(np.float32), "squares overflow float32"),
        (DATA * 1e-200, "varies by .*e-199 only"),
        (DATA * 1e-150, "varies by .*e-149 only"),  # where fits went wrong in silence
        ((DATA * 1e-25).astype(np.float32), "overflows float32; scale its columns"),
        (np.full((5, 2), 1.7e308) * [[1], [-1], [1], [-1], [1]], "squares overflow float64"),
    ],
)
def test_tables_that_cannot_be(X, words):
    with pytest.raises(InvalidDataError, match=words):
        gtm().fit(X)


SPECIES = ["setosa", "virginica", "versicolor"] * 20
DAYS = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize(
    "X",
    [
        FRAME.assign(species=SPECIES),
        FRAME.assign(species=pd.Categorical(SPECIES)),
        FRAME.convert_dtypes().assign(species=pd.array(SPECIES, dtype="string")),
        pl.from_pandas(FRAME).with_columns(pl.Series("species", SPECIES)),
        pl.from_pandas(FRAME).with_columns(pl.Series("species", SPECIES, dtype=pl.Categorical)),
        pa.table({"length": DATA[:, 0], "species": SPECIES}),
    ],
    ids=["pandas", "pandas categories", "pandas strings", "polars", "polars categories", "arrow"],
)
@pytest.mark.parametrize("verb", ["fit", "transform"])
def test_columns_of_text_are_named_with_what_to_do(X, verb):
    words = r"column 'species' holds text, such as 'setosa' in row 0; drop it or encode it .*pass it as labels=\."
    with pytest.raises(InvalidDataError, match=words):
        getattr(gtm() if verb == "fit" else gtm().fit(FRAME), verb)(X)


def test_several_columns_of_text_and_marks_for_missing_values():
    with pytest.raises(InvalidDataError, match=r"columns 'kind', 'place' hold text.*drop them or encode them"):
        gtm().fit(FRAME.assign(kind=SPECIES, place=SPECIES))
    with pytest.raises(InvalidDataError, match=r"column 'width' holds text, such as '\?' in row 7"):
        gtm().fit(FRAME.assign(width=["?" if i == 7 else str(i) for i in range(60)]))


@pytest.mark.parametrize(
    "X",
    [
        FRAME.assign(day=DAYS),
        FRAME.assign(day=list(DAYS.date)),
        pd.DataFrame({"day": DAYS}),
        pl.from_pandas(FRAME).with_columns(pl.Series("day", DAYS.to_list())),
    ],
    ids=["dates", "date objects", "dates alone", "polars"],
)
def test_columns_of_dates_are_named_and_never_read_as_nanoseconds(X):
    with pytest.raises(InvalidDataError, match=r"column 'day' holds dates.*turn it into a number"):
        gtm().fit(X)


@pytest.mark.parametrize(
    "X",
    [
        FRAME.assign(age=DAYS - DAYS[0]),
        FRAME.assign(age=list((DAYS - DAYS[0]).to_pytimedelta())),
        FRAME.assign(age=pd.Series((DAYS - DAYS[0]).to_pytimedelta(), dtype=object)),
        pl.from_pandas(FRAME).with_columns(pl.Series("age", (DAYS - DAYS[0]).to_pytimedelta().tolist())),
    ],
    ids=["spans", "span objects", "objects kept", "polars"],
)
def test_columns_of_durations_are_not_called_dates(X):
    with pytest.raises(InvalidDataError, match=r"column 'age' holds durations.*such as a count of seconds"):
        gtm().fit(X)


def test_an_array_of_dates():
    with pytest.raises(InvalidDataError, match=r"holds dates \(datetime64.*turn them into"):
        gtm().fit(DAYS.to_numpy()[:, None])
    with pytest.raises(InvalidDataError, match=r"holds durations \(timedelta64.*turn them into"):
        gtm().fit((DAYS - DAYS[0]).to_numpy()[:, None])


@pytest.mark.parametrize("X", ["iris.csv", Path("iris.csv")])
@pytest.mark.parametrize("verb", ["fit", "transform"])
def test_the_name_of_a_file_is_no_table(X, verb, plain):
    with pytest.raises(UnsupportedInputError, match=r"read the file first, .*pandas.read_csv\('iris.csv'\)"):
        getattr(gtm() if verb == "fit" else plain, verb)(X)


@pytest.mark.parametrize("X", [FRAME.astype(str), pl.from_pandas(FRAME.astype(str)), DATA.astype(str)])
def test_numbers_written_as_text_are_numbers(X, plain):
    np.testing.assert_allclose(gtm().fit(X).transform(X), plain.transform(DATA), atol=1e-9)


def test_names_that_are_not_all_text():
    with pytest.raises(TypeError, match="string names"):
        gtm().fit(pd.DataFrame(DATA, columns=["a", 1, "b"]))


# ------------------------------------------------------------------------------------------ missing values


def with_missing():
    nullable = FRAME.astype("Float64")
    nullable.iloc[3, 1] = nullable.iloc[7, 2] = pd.NA
    whole = FRAME.round().astype("Int64")
    whole.iloc[3, 1] = whole.iloc[7, 2] = pd.NA
    floats = DATA.copy()
    floats[3, 1] = floats[7, 2] = np.nan
    objects = DATA.astype(object)
    objects[3, 1] = objects[7, 2] = None
    columns = {name: [None if np.isnan(v) else v for v in floats[:, i]] for i, name in enumerate(NAMES)}
    return {
        "numpy": (floats, False),
        "float32": (floats.astype(np.float32), False),
        "F order": (np.asfortranarray(floats), False),
        "objects": (objects, False),
        "masked": (np.ma.array(DATA, mask=np.isnan(floats)), False),
        "masked integers": (np.ma.array(DATA.round().astype(int), mask=np.isnan(floats)), False),
        "pandas": (pd.DataFrame(floats, columns=NAMES), True),
        "pandas nullable": (nullable, True),
        "pandas nullable integers": (whole, True),
        "pandas arrow": (nullable.astype("float64[pyarrow]"), True),
        "polars null": (pl.DataFrame(columns), True),
        "polars nan": (pl.DataFrame(floats, schema=NAMES), True),
        "arrow": (pa.table(columns), True),
    }


@pytest.mark.parametrize("name", with_missing())
@pytest.mark.parametrize("verb", ["fit", "transform", "score", "project"])
def test_missing_values_are_named_by_row_and_column(name, verb):
    X, named = with_missing()[name]
    columns = r"width, height" if named else "1, 2"
    model = KMM(max_iter=2, tol=0)
    if verb != "fit":
        model.fit(FRAME if named else DATA)
    with pytest.raises(
        InvalidDataError, match=rf"contains NaN: 2 of its values .* row\(s\) 3, 7 and column\(s\) {columns}\. .*Imputer"
    ):
        getattr(model, verb)(X)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinity_is_named_by_row_and_column(bad, dtype):
    X = DATA.astype(dtype)
    X[5, 0] = bad
    with pytest.raises(InvalidDataError, match=r"contains infinity \(inf\): 1 .* row\(s\) 5 and column\(s\) 0\."):
        gtm().fit(X)


def test_infinities_that_cancel_are_seen():
    X = DATA.copy()
    X[5, 0], X[6, 0] = np.inf, -np.inf
    with pytest.raises(InvalidDataError, match=r"row\(s\) 5, 6"):
        gtm().fit(X)


def test_many_missing_values_are_counted_and_not_all_listed():
    X = DATA.copy()
    X[10:50] = np.nan
    with pytest.raises(InvalidDataError, match=r"120 of its values .* row\(s\) 10, 11, 12, 13, 14 and 35 more and col"):
        KMM().fit(X)


@pytest.mark.parametrize("name", with_missing())
def test_whatever_marks_a_gap_is_one(name):
    X, named = with_missing()[name]
    expected = with_missing()["masked integers" if "integers" in name else "numpy"][0]
    model = gtm().fit(X)
    again = gtm().fit(np.ma.filled(np.ma.asarray(expected).astype(float), np.nan))
    np.testing.assert_allclose(model.weights_, again.weights_, rtol=1e-3, atol=1e-3)
    assert model.transform(X).shape == (len(DATA), 2)
    assert named == hasattr(model, "feature_names_in_")


# ------------------------------------------------------------------------------------- degenerate tables


def table(name):
    rng = np.random.default_rng(1)
    return {
        "a constant column": np.column_stack([DATA, np.full(60, 7.0)]),
        "all but one constant": np.column_stack([np.full((60, 2), 3.0), DATA[:, 0]]),
        "all rows the same": np.full((20, 3), 5.0),
        "all zero": np.zeros((20, 3)),
        "all rows the same, far away": np.full((20, 3), 1e6 + 0.1),
        "duplicate rows": np.repeat(DATA[:10], 6, axis=0),
        "two rows": DATA[:2],
        "two different rows among many": np.repeat(DATA[:2], 30, axis=0),
        "fewer rows than columns": rng.normal(size=(5, 40)),
        "fewer rows than nodes": DATA[:6],
        "many columns": rng.normal(size=(4, 1500)),
        "a line": np.outer(np.linspace(-1, 1, 30), [1.0, 2.0, 3.0]),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "a constant column",
        "all but one constant",
        "all rows the same",
        "all zero",
        "all rows the same, far away",
        "duplicate rows",
        "two rows",
        "two different rows among many",
        "fewer rows than columns",
        "fewer rows than nodes",
        "many columns",
        "a line",
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_degenerate_tables_have_a_defined_answer(name, dtype):
    X = table(name).astype(dtype)
    model = gtm().fit(X)
    usable(model, X)
    spread = max(np.ptp(X, axis=0).max(), 1e-3 * np.abs(X).max(), 1e-9)
    assert np.abs(model.project(X) - X).max() <= spread
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_allclose(model.project(X)[:, constant], X[:, constant], rtol=1e-5, atol=1e-6)


def test_rows_that_are_all_the_same_are_reproduced():
    X = np.full((20, 3), [5.0, -2.0, 0.0])
    model = gtm().fit(X)
    np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-8)
    assert model.projection_error(X) < 1e-15


def test_repeated_rows_equal_whole_weights():
    weight = np.random.default_rng(0).integers(0, 4, 60)
    repeated, weighted = gtm().fit(np.repeat(DATA, weight, axis=0)), gtm().fit(DATA, sample_weight=weight)
    np.testing.assert_allclose(weighted.transform(DATA), repeated.transform(DATA), atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"nodes": 1},
        {"nodes": 1, "basis": 1},
        {"nodes": (1, 5)},
        {"nodes": 2, "basis": 6},
        {"nodes": 3, "basis": 8, "width": 5.0},
        {"nodes": np.zeros((1, 2))},
        {"nodes": np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])},
        {"n_components": 1, "latent": "circle", "nodes": 1, "basis": 1},
        {"n_components": 1, "latent": "circle", "nodes": 2, "basis": 5},
        {"latent": "sphere", "nodes": 4, "basis": 4},
        {"nodes": 2, "basis": 6, "regularization": 0.0},
        {"nodes": 8, "basis": 8, "regularization": 0.0, "width": 10.0},
    ],
    ids=str,
)
def test_degenerate_sizes_have_a_defined_answer(settings):
    model = gtm(**settings).fit(DATA)
    usable(model, DATA)
    objective = np.array(model.history_["objective"])
    assert (np.diff(objective) > -1e-7 * np.abs(objective).max()).all()


def test_one_node_is_a_gaussian():
    model = gtm(nodes=1, basis=1, max_iter=3).fit(DATA)
    centered = DATA - DATA.mean(axis=0)
    variance = np.mean(centered**2)
    assert model.noise_variance_ == pytest.approx(variance)
    np.testing.assert_allclose(model.project(DATA), np.tile(DATA.mean(axis=0), (60, 1)), atol=1e-9)
    expected = -1.5 * np.log(2 * np.pi * variance) - (centered**2).sum(axis=1) / (2 * variance)
    np.testing.assert_allclose(model.score_samples(DATA), expected)


@pytest.mark.parametrize("shift", [1e6, -1e6, [1e6, 0, -3e7]])
def test_data_far_from_the_origin_give_the_same_map(shift):
    data = np.round(DATA * 2**16) / 2**16  # so that the shift loses no digits of the data themselves
    near, far = gtm().fit(data), gtm().fit(data + shift)
    # The mean is known to eps·|shift| only, and ten iterations may make a few hundred times that.
    atol = max(1e-6, 1000 * np.finfo(float).eps * np.abs(shift).max())
    np.testing.assert_allclose(far.transform(data + shift), near.transform(data), atol=atol)
    np.testing.assert_allclose(far.project(data + shift) - shift, near.project(data), atol=atol)
    assert far.noise_variance_ == pytest.approx(near.noise_variance_, rel=1e-6)
    np.testing.assert_allclose(far.score_samples(data + shift), near.score_samples(data), atol=1e-5)


def test_float32_far_from_the_origin_is_as_good_as_its_digits():
    eighths = np.round(DATA * 8) / 8
    near, far = gtm().fit(eighths), gtm().fit((eighths + 1e6).astype(np.float32))
    np.testing.assert_allclose(far.transform((eighths + 1e6).astype(np.float32)), near.transform(eighths), atol=5e-3)


@pytest.mark.parametrize("sigmas", [20, 1e3, 1e6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_outlier_in_training_or_after(sigmas, dtype, plain):
    outlier = (DATA.mean(axis=0) + sigmas * DATA.std(axis=0)).astype(dtype)
    X = np.vstack([DATA, outlier]).astype(dtype)
    usable(gtm().fit(X), X)
    late = outlier[None]
    usable_late = plain.transform(late)
    assert plain.latent_.domain.contains(usable_late).all()
    assert np.isfinite(plain.score_samples(late)).all()
    assert np.isfinite(plain.project(late)).all()
    assert plain.score_samples(late)[0] < plain.score_samples(DATA).min()


def test_one_column_says_what_to_set():
    with pytest.warns(DegenerateWarning, match=r"2 dimensions in 1 column\(s\) is not determined. Set n_components=1"):
        model = GTM(max_iter=5, tol=0).fit(DATA[:, :1])
    usable(model, DATA[:, :1])
    alone = GTM(1, nodes=10, basis=4, max_iter=20, tol=0).fit(DATA[:, :1])
    assert np.corrcoef(alone.transform(DATA[:, :1]).ravel(), DATA[:, 0])[0, 1] > 0.95


@pytest.mark.parametrize("n_components", [3, 5, 7, 10])
def test_any_number_of_components(n_components):
    X = np.random.default_rng(0).normal(size=(40, 12))
    model = GTM(n_components, max_iter=2, tol=0).fit(X)
    Z = model.transform(X)
    assert Z.shape == (40, n_components)
    assert np.isfinite(model.inverse_transform(Z)).all()
    assert np.isfinite(model.score(X))


# ------------------------------------------------------------------------------- new rows and other inputs


@pytest.mark.parametrize("verb", ["transform", "score", "score_samples", "project", "responsibilities", "reconstruct"])
def test_other_columns_than_in_training(verb, plain):
    with pytest.raises(InvalidDataError, match="X has 2 features, but GTM is expecting 3 features"):
        getattr(plain, verb)(DATA[:, :2])
    named = gtm().fit(FRAME)
    with pytest.raises(InvalidDataError, match=r"feature names[\s\S]*depth"):
        getattr(named, verb)(FRAME.rename(columns={"width": "depth"}))
    with pytest.raises(InvalidDataError, match="feature names"):
        getattr(named, verb)(FRAME[NAMES[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        getattr(named, verb)(DATA)


@pytest.mark.parametrize("verb", ["transform", "score", "score_samples", "project"])
def test_no_rows_and_one_row_after_training(verb, plain):
    with pytest.raises(InvalidDataError, match=r"0 sample\(s\)"):
        getattr(plain, verb)(DATA[:0])
    assert np.isfinite(getattr(plain, verb)(DATA[:1])).all()
    with pytest.raises(InvalidDataError, match="squares overflow"):
        getattr(plain, verb)(DATA * 1e200)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (-np.ones(60), r"sample_weight cannot be used: row 0 has -1 \(one of 60 such rows\); weights are finite"),
        (np.r_[-1e-9, np.ones(59)], "row 0 has -1e-09; weights are finite numbers"),
        (np.zeros(60), "zero"),
        (np.ones(59), r"sample_weight cannot be used: .*59"),
        (np.ones((60, 1)), "1D array"),
        (np.r_[np.ones(59), np.nan], "row 59 has NaN; weights are finite numbers, none of them negative"),
        (np.r_[np.inf, np.ones(59)], "row 0 has inf;"),
        (["a"] * 60, "could not convert"),
        ([10**400] * 60, "sample_weight cannot be used: int too large"),
        ([object()] * 60, "sample_weight cannot be used: float"),
    ],
)
def test_weights_that_cannot_be(weight, words):
    with pytest.raises(InvalidDataError, match=words):
        gtm().fit(DATA, sample_weight=weight)


@pytest.mark.parametrize(
    "weight",
    [np.ones(60, int), np.ones(60, np.float32), [1] * 60, pd.Series(np.ones(60), index=range(100, 160)), 1.0],
    ids=["ints", "float32", "list", "series", "scalar"],
)
def test_equal_weights_are_no_weights(weight, plain):
    np.testing.assert_allclose(gtm().fit(DATA, sample_weight=weight).transform(DATA), plain.transform(DATA), atol=1e-9)


def test_all_the_weight_on_one_row():
    with pytest.raises(InvalidDataError, match=r"only 1 row\(s\) have a positive weight, but at least 2 are needed"):
        gtm().fit(DATA, sample_weight=np.eye(60)[3])


@pytest.mark.parametrize(
    ("Z", "words"),
    [
        (np.zeros(2), r"shape \(n, 2\), got \(2,\)"),
        (np.zeros((3, 3)), r"shape \(n, 2\), got \(3, 3\)"),
        (np.full((3, 2), np.nan), "NaN or infinity"),
        ([["a", "b"]], "must be numbers"),
        ([[1.0], [1.0, 2.0]], "must be numbers"),
        (None, "shape"),
    ],
)
def test_latent_coordinates_that_cannot_be(Z, words, plain):
    for verb in (plain.inverse_transform, plain.jacobian, plain.magnification):
        with pytest.raises(InvalidDataError, match=words):
            verb(Z)
    with pytest.raises(InvalidDataError, match=words):
        check_latent(Z, 2)


def test_a_start_that_does_not_fit():
    with pytest.raises(InvalidDataError, match="init has 5 latent coordinates for 60 rows"):
        gtm(init=np.zeros((5, 2))).fit(DATA)
    with pytest.raises(InvalidDataError, match=r"shape \(n, 2\)"):
        gtm(init=np.zeros((60, 3))).fit(DATA)


@pytest.mark.parametrize(
    "verb",
    [
        "transform",
        "project",
        "inverse_transform",
        "save",
        "mesh",
        "score",
        "sample",
        "responsibilities",
        "mode_distance",
    ],
)
def test_before_fit(verb, tmp_path):
    arguments = {"save": [tmp_path / "x"], "mesh": [], "sample": []}.get(verb, [DATA])
    with pytest.raises((ValueError, AttributeError), match="not fitted"):
        getattr(GTM(), verb)(*arguments)


# --------------------------------------------------------------------------------------------- parameters

BAD = {
    "n_components": [0, -1, 2.0, "2", None, True],
    "nodes": [0, -3, 2.5, "five", (5, 0), (), True, (5, 2.5), {}],
    "basis": [0, -3, 2.5, "five", (3, 0), (), True, object()],
    "width": [0, -1, np.nan, np.inf, "wide", None, True],
    "latent": ["plane", 3, "", GaussianBasis(3)],
    "regularization": [-1, np.nan, np.inf, "a", True],
    "prior_precision": [-1, np.nan, np.inf, "a", True],
    "penalize_bias": [0, 1, "yes", None],
    "noise": ["normal", 3, None, object()],
    "noise_floor": [0, -1, np.nan, np.inf, None],
    "trainer": ["em", 3, None, object()],
    "init": ["PCA", "zeros", 3, None, [[0.0, 0.0]]],
    "max_iter": [-1, 1.5, "10", None, np.inf],
    "relaxation": [0.5, -1, np.nan, np.inf, "fast", None, True],
    "tol": [-1e-3, np.nan, np.inf, "small", None],
    "random_state": [-1, 1.5, "seed", "0", True],
    "device": [3, True, object()],
    "verbose": [-1, 1.5, "loud", None],
}


def test_every_parameter_is_checked():
    assert set(BAD) == set(GTM().get_params()) == set(GTM._constraints)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_value_is_named(name, value):
    with pytest.raises(InvalidParameterError, match=f"GTM: {name} must be .*, got {re.escape(repr(value))}"):
        GTM(**{name: value}).fit(DATA)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": (5, 5, 5)}, "nodes=.* has 3 entries but there are 2 latent axes"),
        ({"basis": (3,)}, "basis=.* has 1 entries but there are 2 latent axes"),
        ({"basis": GaussianBasis((3,))}, "the basis has 1 axes but the latent space has 2"),
        ({"nodes": np.zeros(4)}, "finite .K, Q. array"),
        ({"nodes": np.full((4, 2), np.nan)}, "finite .K, Q. array"),
        ({"nodes": np.array([["a", "b"]])}, "array of numbers"),
        ({"nodes": 10**5}, "10000000000 latent nodes are more than"),
        ({"basis": 10**5}, "basis functions, more than"),
        ({"latent": "sphere", "nodes": 3}, "at least 4"),
        ({"regularization": 0.1, "prior_precision": 0.1}, "either regularization .* or prior_precision"),
    ],
    ids=str,
)
def test_parameters_that_do_not_go_together(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        GTM(**settings).fit(DATA)


def test_numpy_numbers_are_numbers(plain):
    model = gtm(
        n_components=np.int64(2), nodes=np.int32(5), basis=(np.int8(3), np.uint8(3)), max_iter=np.int64(10),
        tol=np.float32(0), width=np.float64(1), penalize_bias=np.bool_(False), random_state=np.int64(3),
    ).fit(DATA)  # fmt: skip
    np.testing.assert_array_equal(model.transform(DATA), plain.transform(DATA))


@pytest.mark.parametrize(
    "seed", [0, 2**31, 2**40, np.int64(5), np.random.RandomState(0), np.random.default_rng(0), None]
)
def test_every_kind_of_seed(seed):
    assert isinstance(as_generator(seed), np.random.Generator)
    gtm(init="random", random_state=seed, max_iter=1, regularization=1.0).fit(DATA)


def test_a_seed_repeats_itself():
    for make in (lambda: 7, lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)):
        a, b = as_generator(make()), as_generator(make())
        np.testing.assert_array_equal(a.normal(size=3), b.normal(size=3))


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.text(), st.none()))
def test_constraints_say_what_they_test(value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    assert integer(2).test(value) == (number and isinstance(value, int) and value >= 2)
    assert real(0).test(value) == (number and 0 <= value < np.inf)
    assert (nothing | one_of(["a", "b"])).test(value) == (value in (None, "a", "b"))


def test_a_whole_number_too_large_for_a_float_is_a_whole_number_only():
    assert integer(0).test(10**400)
    assert not real(0).test(10**400)
    assert real(0).test(10**308)


@pytest.mark.parametrize("value", [10**5000, [1] * 10**4], ids=["digits", "list"])
def test_a_value_that_is_long_or_cannot_be_written_is_refused_in_few_words(value):
    with pytest.raises(InvalidParameterError) as caught:
        gtm(noise_floor=value).fit(DATA)
    assert len(str(caught.value)) < 400


def test_words_of_constraints():
    assert (nothing | integer(2)).words == "None or a whole number of at least 2"
    assert real(0, above=True).words == "a finite number above 0"
    assert one_of(["a", "b", "c"]).words == "'a', 'b' or 'c'"
    assert (nothing | one_of(["a", "b"]) | real(0)).words == "None, 'a', 'b' or a finite number of at least 0"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": 0}, "GTM: nodes must be None, a whole number of at least 1, .*, got 0$"),
        ({"latent": "circl"}, "latent must be None, 'grid', 'line', .*, got 'circl'; did you mean 'circle'"),
        ({"init": "PCA"}, "init must be 'auto', 'pca', .*, got 'PCA'; did you mean 'pca'"),
        ({"latent": "banana"}, "got 'banana'$"),
    ],
    ids=str,
)
def test_near_misses_are_recognised(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        GTM(**settings).fit(DATA)


def test_errors_are_ours_and_what_python_expects():
    assert issubclass(InvalidDataError, PrinfoldError)
    assert issubclass(InvalidDataError, ValueError)
    assert issubclass(UnsupportedInputError, TypeError)
    assert issubclass(InvalidParameterError, ValueError)


@pytest.mark.parametrize("thing", [(row for row in np.eye(3)), lambda: iter([np.eye(3)])])
def test_what_gives_blocks_is_sent_to_them(thing: object) -> None:
    with pytest.raises(UnsupportedInputError, match=r"no table; .* fit\(Blocks\(function\)\)"):
        GTM().fit(thing)


def test_places_on_a_curve_are_a_column():
    with pytest.raises(InvalidDataError, match=r"shape \(n, 1\), got \(2,\).*Z.reshape\(-1, 1\)"):
        check_latent([1.0, 2.0], 1)


def test_a_dictionary_is_no_table() -> None:
    with pytest.raises(UnsupportedInputError, match=r"dictionary .* pandas.DataFrame\(X\)"):
        GTM().fit({"a": [1.0, 2.0], "b": [0.0, 1.0]})


@pytest.mark.parametrize("model", [GTM(), [GTM(), GTM()], (GTM(),), GTM, {"a": GTM()}])
def test_models_in_place_of_the_table_are_named(model) -> None:
    with pytest.raises(UnsupportedInputError, match=r"the table comes first, .* compare\(X, models\)"):
        compare(model, np.eye(4))


def test_advice_for_infinity_and_for_gaps_can_be_followed() -> None:
    X = np.where(np.arange(180).reshape(60, 3) == 7, np.inf, DATA)
    with pytest.raises(InvalidDataError, match="mark the values as missing, by NaN"):
        GTM().fit(X)
    with pytest.raises(InvalidDataError, match="of a dense table with GTM"):
        GTM().fit(scipy.sparse.csr_matrix(np.where(np.isinf(X), np.nan, X)))
    gappy = GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(np.where(np.isinf(X), np.nan, X))
    assert np.isfinite(gappy.impute(np.where(np.isinf(X), np.nan, X))).all()


@pytest.mark.parametrize("threshold", ["a", True, 0, 1.0, -0.5, float("nan")])
def test_a_threshold_is_a_share(threshold) -> None:
    with pytest.raises(InvalidParameterError, match="threshold must be None or a number above 0 and below 1, got"):
        GTM(max_iter=1, tol=0, nodes=3).fit(np.eye(4)).responsibilities(np.eye(4), threshold=threshold)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize(
    "model", [UKR(max_iter=3, tol=0), KMM(max_iter=3, tol=0), ProbabilisticCurve(max_iter=3, tol=0)]
)
def test_numbers_whose_fourth_powers_leave_the_range_are_refused_and_others_are_not(model) -> None:
    for scale in (1e80, 1e-80):
        with pytest.raises(InvalidDataError, match=r"their squares are multiplied.*StandardScaler"):
            model.fit(scale * DATA)
    for scale in (1e65, 1e-65):
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(model.fit(scale * DATA).transform(scale * DATA)).all()


def test_nothing_is_no_table() -> None:
    with pytest.raises(UnsupportedInputError, match="got None rather than a table of numbers"):
        GTM().fit(None)


def test_centres_in_one_place_are_no_basis() -> None:
    with pytest.raises(InvalidParameterError, match="scale must be a finite number above 0"):
        GaussianBasis(3, scale=0.0)


# ------------------------------------------------------------------------------------ cells that are no numbers


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (pd.period_range("2000", periods=60, freq="D"), r"column 'odd' holds what is no number, such as Period\("),
        (
            pd.interval_range(0, 60),
            r"'odd' holds what is no number, such as Interval\(.* in row 0",
        ),
        (pd.Series([1.0] * 59 + [{}], dtype=object), r"such as \{\} of type dict in row 59"),
        (pd.Series([None] * 59 + [[1]], dtype=object), r"such as \[1\] of type list in row 59"),
        (
            pd.Series([1] * 30 + [10**400] * 30, dtype=object),
            r"'odd' holds a number that is too large.* in row 30",
        ),
    ],
    ids=["period", "interval", "dict", "list", "large"],
)
@pytest.mark.parametrize("model", [GTM(), ProbabilisticCurve(), UKR()], ids=lambda model: type(model).__name__)
def test_cells_that_are_no_numbers_are_named(model, cells, words):
    with pytest.raises(PrinfoldError, match=words):
        model.fit(FRAME.assign(odd=np.asarray(cells, dtype=object)))
    if isinstance(cells, pd.PeriodIndex):
        with pytest.raises(PrinfoldError, match=words):
            model.fit(FRAME.assign(odd=cells))


@pytest.mark.parametrize("Z", [[[1e200, 0.0]], [[10**400, 0.0]], [[1j, 0.0]], [["a", 0.0]], [[1.0], [1.0, 2.0]]])
def test_latent_coordinates_beyond_reach_are_refused(plain, Z):
    with pytest.raises(InvalidDataError, match="latent coordinates"):
        plain.inverse_transform(Z, extrapolate=True)


def test_errors_that_are_complex_are_refused():
    with pytest.raises(InvalidDataError, match="errors must be real numbers, got complex ones"):
        gtm().fit(DATA, errors=np.full(60, 1j))
