"""Where training begins: the mean, the principal axes and the smallest noise are what they say, to the last digits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.manifold import LocallyLinearEmbedding
from tests.properties.cases import cloud
from threadpoolctl import threadpool_limits

from prinfold import GTM, PrincipalSurface, datasets
from prinfold.base import starting_points as initialise
from prinfold.base.starting_points import EMBEDDERS, principal_axes, weighted_mean
from prinfold.exceptions import InvalidDataError
from prinfold.rows.rows import as_rows

# Few iterations and hostile tables leave much to warn of, which is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def gtm(**settings):
    return GTM(**{"nodes": 6, "basis": 3, "max_iter": 12, "tol": 0.0, **settings})


# ----------------------------------------------------------------------------------------------- mean


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_keeps_its_digits_far_from_the_origin(weighted):
    rng = np.random.default_rng(0)
    small = rng.integers(0, 1000, (3001, 4)).astype(float)
    weight = rng.integers(1, 9, len(small)).astype(float) if weighted else None
    expected = np.average(small, axis=0, weights=weight)
    # Numbers near 1e15 are an eighth apart.
    assert_allclose(weighted_mean(small + 1e15, weight) - 1e15, expected, rtol=0, atol=0.126)
    assert_allclose(weighted_mean(small, weight), expected, rtol=1e-14)


def test_the_mean_of_float32_is_taken_in_float64():
    small = np.random.default_rng(0).integers(0, 64, (5000, 3)).astype(float)
    table = (small + 2.0**22).astype(np.float32)
    found = weighted_mean(table, None)
    assert found.dtype == np.float64
    assert_allclose(found - 2.0**22, small.mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("place", [0, 1, 17, 90])
@pytest.mark.parametrize("value", [1.0, -1e17, 1e17, 1e100])
def test_rows_without_weight_do_not_move_the_centre(place, value):
    X = cloud()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    model = gtm(max_iter=0).fit(np.insert(X, place, value, axis=0), sample_weight=np.insert(weight, place, 0.0))
    assert_allclose(model.offset_, np.average(X, axis=0, weights=weight), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("place", [0, 17, 90])
def test_rows_without_weight_do_not_move_the_mean(place):
    X = cloud()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    found = weighted_mean(np.insert(X, place, 5.0, axis=0), np.insert(weight, place, 0.0))
    assert_allclose(found, np.average(X, axis=0, weights=weight), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_without_weight_changes_nothing_in_the_map_wherever_it_lies(dtype):
    X = cloud().astype(dtype)
    plain = gtm().fit(X)
    for place in (0, len(X)):
        rows, weight = np.insert(X, place, 1e17, axis=0), np.insert(np.ones(len(X)), place, 0.0)
        model = gtm().fit(rows, sample_weight=weight)
        assert_allclose(model.offset_, plain.offset_, rtol=1e-6, atol=1e-9)
        assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-4)
        assert_allclose(model.transform(X), plain.transform(X), atol=1e-3 if dtype is np.float32 else 1e-6)


# ----------------------------------------------------------------------------------------------- axes

N_WIDE, D_WIDE = 24, 1040


def wide():
    """More columns than rows, and more than 1024: where the axes come from the rows and not their covariance."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((N_WIDE, 6)) * [9, 7, 5, 3, 2, 1] @ rng.standard_normal((6, D_WIDE))
    X = X + 0.5 * rng.standard_normal(X.shape) + 4.0
    weight = rng.integers(1, 6, N_WIDE).astype(float)
    return X, weight


def centered_rows(X, weight):
    return as_rows(X, weighted_mean(X, weight), weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_axes_of_a_wide_table_are_those_of_its_covariance(weighted):
    X, weight = wide()
    ones = weight if weighted else np.ones(N_WIDE)
    found = principal_axes(centered_rows(X, weight if weighted else None), 4)
    centered = X - np.average(X, axis=0, weights=ones)
    covariance = (centered.T * (ones / ones.sum())) @ centered
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1][:4], vectors[:, ::-1][:, :4].T
    assert found.directions.shape == (4, D_WIDE)
    assert_allclose(found.variances, values, rtol=1e-9)
    assert_allclose(found.column_variance, np.trace(covariance) / D_WIDE, rtol=1e-9)
    sign = np.sign(np.einsum("rd,rd->r", vectors, found.directions))
    assert_allclose(found.directions, sign[:, None] * vectors, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_repeating_the_rows_of_a_wide_table_until_it_is_tall_keeps_its_axes_and_their_signs(weighted):
    X, weight = wide()
    times = weight.astype(int) if weighted else np.ones(N_WIDE, int)
    tall = np.repeat(X, times * (1 + D_WIDE // int(times.sum())), axis=0)
    assert len(tall) >= D_WIDE
    narrow = principal_axes(centered_rows(X, weight if weighted else None), 3)
    long = principal_axes(centered_rows(tall, None), 3)
    assert_allclose(narrow.variances, long.variances, rtol=1e-9)
    assert_allclose(narrow.directions, long.directions, atol=1e-8)
    assert_allclose(narrow.column_variance, long.column_variance, rtol=1e-9)


@pytest.mark.parametrize("n_columns", [5, D_WIDE])
def test_the_scale_of_the_weights_has_no_meaning_for_the_axes(n_columns):
    X, weight = wide()
    X = X[:, :n_columns]
    one, other = (principal_axes(centered_rows(X, scale * weight), 3) for scale in (1.0, 1e-20))
    for a, b in zip(one, other, strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)


# -------------------------------------------------------------------------------- float32 and its digits


def test_float32_far_from_the_origin_has_the_noise_of_the_same_numbers_in_float64():
    table = (cloud(300) + 1e6).astype(np.float32)
    narrow, wide = gtm().fit(table), gtm().fit(table.astype(np.float64))
    assert narrow.noise_variance_ == pytest.approx(wide.noise_variance_, rel=0.1)
    assert_allclose(narrow.transform(table), wide.transform(table.astype(np.float64)), atol=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("level", [1e3, -1e9])
def test_the_level_of_a_constant_column_has_no_meaning(dtype, level):
    X = cloud().astype(dtype)
    at_zero, far = (np.insert(X, 2, dtype(value), axis=1) for value in (0.0, level))
    plain, model = gtm().fit(at_zero), gtm().fit(far)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-4)
    assert_allclose(model.transform(far), plain.transform(at_zero), atol=1e-3)
    others = [0, 1, 3, 4, 5]
    Z = plain.latent_.nodes
    assert_allclose(model.inverse_transform(Z)[:, others], plain.inverse_transform(Z)[:, others], atol=1e-3)
    assert_allclose(model.inverse_transform(Z)[:, 2], dtype(level), rtol=1e-6)


# -------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("scale", [1e-46, 1e-30, 1e30, 1e39])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_penalty_the_scale_of_the_weights_has_no_meaning(dtype, scale):
    """Neither scale is a number of float32, where the first is nil and the last infinite."""
    X = cloud().astype(dtype)
    plain = gtm(regularization=0.0).fit(X)
    model = gtm(regularization=0.0).fit(X, sample_weight=np.full(len(X), scale))
    tolerance = 2e-3 if dtype is np.float32 else 1e-6
    assert_allclose(model.transform(X), plain.transform(X), atol=tolerance)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=tolerance)
    assert_allclose(model.history_["log_likelihood"], plain.history_["log_likelihood"], atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_row_with_weight_is_too_few(dtype):
    X = cloud().astype(dtype)
    with pytest.raises(InvalidDataError, match="positive weight"):
        gtm().fit(X, sample_weight=np.eye(len(X))[4])
    two = gtm().fit(X, sample_weight=np.eye(len(X))[4] + np.eye(len(X))[5])
    assert np.isfinite(two.transform(X)).all()


# ------------------------------------------------------------------------------- some rows, and the others after them


def test_rows_even_steps_apart_by_radius_know_no_order_place_turn_or_unit():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(100, 3)), rng.uniform(1, 2, 100)
    chosen = initialise.evenly_by_radius(X, weight, 17)
    assert len(chosen) == 17
    assert (np.diff(chosen) > 0).all()
    order = rng.permutation(100)
    mixed = initialise.evenly_by_radius(X[order], weight[order], 17)
    assert set(order[mixed]) == set(chosen)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert_array_equal(initialise.evenly_by_radius(5.0 * X @ turn + 2.0, weight, 17), chosen)
    assert_array_equal(initialise.evenly_by_radius(X, weight, 100), np.arange(100))


def test_an_extension_keeps_what_is_linear_and_the_rows_themselves():
    rng = np.random.default_rng(1)
    X, A = rng.uniform(size=(300, 2)) @ rng.normal(size=(2, 5)), rng.normal(size=(5, 2))
    inner = 0.2 * X[:40] + 0.8 * X.mean(axis=0)
    assert_allclose(initialise.extend(X, X @ A, inner), inner @ A, atol=0.02 * (X @ A).std())
    assert_allclose(initialise.extend(X, X @ A, X[:40]), X[:40] @ A, atol=0.05 * (X @ A).std())
    assert_array_equal(initialise.extend(X[:1], X[:1] @ A, X[:3]), np.repeat(X[:1] @ A, 3, axis=0))


def test_embedding_all_rows_uses_the_embedding_as_it_is_for_those_it_sees():
    X = np.random.default_rng(2).normal(size=(90, 3))
    Z = initialise.embed_all(lambda rows: rows[:, :2] ** 3, X, np.ones(90), most=50)
    seen = initialise.evenly_by_radius(X, np.ones(90), 50)
    assert_array_equal(Z[seen], X[seen, :2] ** 3)
    assert np.isfinite(Z).all()


def test_kernel_pca_separates_what_a_plane_cannot():
    """Two rings about one centre: the first components of feature space tell them apart by radius."""
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.vstack([0.3 * ring, 2.0 * ring])
    Z = initialise.KernelPCA().embed(X, 3)
    radius = np.linalg.norm(Z - Z.mean(axis=0), axis=1)
    assert radius[:80].max() < radius[80:].min()
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [3.0, 2.0, 1.0]
    assert_allclose(initialise.KernelPCA().embed(100 * rows, 2), initialise.KernelPCA().embed(rows, 2), atol=1e-8)


def test_locally_linear_weights_are_regularised_where_they_are_not_determined():
    rng = np.random.default_rng(3)
    for n_columns, reg in ((3, 1e-3), (20, 1e-9)):
        X = rng.normal(size=(60, n_columns))
        expected = LocallyLinearEmbedding(n_components=2, n_neighbors=8, eigen_solver="dense", reg=reg).fit_transform(X)
        assert_array_equal(initialise.SPECTRAL["lle"].embed(X, 2, 8), expected)


@pytest.mark.parametrize("seed", range(2))
def test_laplacian_graphs_hang_together(seed):
    """Four real neighbours leave these knots in pieces, of which scikit-learn would warn."""
    X = datasets.make_knot(500, rng=seed, n_features=10).X
    for size in EMBEDDERS["laplacian"].sizes(X):
        assert np.isfinite(EMBEDDERS["laplacian"].embed(X, 2, size)).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(900, 600), (300, 1100), (800, 1300), (4, 1100)])
def test_axes_of_large_tables_are_those_of_the_whole_decomposition(shape, sparse):
    """Found one by one, of sparse tables without filling them in."""
    rng = np.random.default_rng(0)
    n, D = shape
    X = np.where(rng.uniform(size=shape) < 0.1, rng.normal(size=(n, 1)) + rng.normal(size=shape), 0.0)
    table = scipy.sparse.csr_matrix(X) if sparse else X
    weight = rng.uniform(0.5, 2.0, n)
    mean = np.average(X, axis=0, weights=weight)
    found = principal_axes(as_rows(table, mean, weight), 3)
    scaled = np.sqrt(weight / weight.sum())[:, None] * (X - mean)
    _, size, directions = np.linalg.svd(scaled, full_matrices=False)
    assert_allclose(found.variances, size[:3] ** 2, rtol=1e-9)
    assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=1e-12)
    assert_allclose(np.abs((found.directions * directions[:3]).sum(axis=1)), 1.0, atol=1e-8)
    assert found.column_variance == pytest.approx(np.square(scaled).sum() / D)


def test_axes_that_rows_do_not_span_are_orthogonal_all_the_same():
    X = np.zeros((3, 1100))
    X[1, 5], X[2, 5] = 1.0, -1.0
    found = principal_axes(as_rows(X, np.zeros(1100)), 3)
    assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=1e-12)
    assert_allclose(found.variances, [2 / 3, 0, 0], atol=1e-15)


def test_a_wide_sparse_table_is_never_filled_in_whole():
    S = scipy.sparse.random(700, 12_000, density=0.002, format="csr", random_state=0)
    with threadpool_limits(1):  # each thread has blocks of its own
        tracemalloc.start()
        principal_axes(as_rows(S, np.asarray(S.mean(axis=0)).ravel()), 2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 0.3 * 700 * 12_000 * 8


# ----------------------------------------------------------------------------------- rows equally far apart


@pytest.mark.parametrize("n", [20, 33, 40, 60, 64])
def test_rows_that_are_all_equally_far_apart_are_fitted(n):
    gtm().fit(np.eye(n))
    PrincipalSurface(max_iter=1).fit(np.eye(n))


class _Nothing:
    def fit_transform(self, X):
        return np.empty((len(X), self.n_columns))

    def __init__(self, n_columns):
        self.n_columns = n_columns


@pytest.mark.parametrize("n_columns", [0, 1])
def test_an_embedding_without_axes_says_which_start_has_them(n_columns):
    embedder = initialise.Embedder("isomap", lambda n_components, n_neighbors: _Nothing(n_columns))
    with pytest.raises(InvalidDataError, match=rf"finds {n_columns} of 2 axes in these; use init='pca'"):
        embedder.embed(cloud(), 2, 5)
