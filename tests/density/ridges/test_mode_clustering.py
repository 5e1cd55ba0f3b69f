"""ModeClustering: clusters by climbing."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import prinfold
from prinfold import DensityRidge, ModeClustering
from prinfold.density.ridges.mean_shift import Status
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError


def blobs(n: int = 100, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(at, 1.0, (n + 20 * k, 2)) for k, at in enumerate(([0, 0], [8, 0], [0, 9]))])
    return X, np.repeat([2, 1, 0], [n, n + 20, n + 40])


def test_blobs_are_clusters_by_weight():
    X, y = blobs()
    model = ModeClustering(bandwidth=1.0).fit(X)
    np.testing.assert_array_equal(model.labels_, y)
    np.testing.assert_array_equal(model.mode_weight_, [140, 120, 100])
    np.testing.assert_allclose(model.modes_, [[0, 9], [8, 0], [0, 0]], atol=0.5)
    np.testing.assert_allclose(model.mode_log_density_, model.score_samples(model.modes_))


def test_defaults_find_blobs():
    X, y = blobs()
    assert adjusted_rand_score(y, ModeClustering().fit(X).labels_) > 0.9


def test_new_rows_climb_too():
    X = blobs()[0]
    model = ModeClustering(bandwidth=1.0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    new, wanted = blobs(seed=1)
    assert (model.predict(new) == wanted).mean() > 0.99
    assert model.flow(new).points.shape == new.shape
    np.testing.assert_array_equal(ModeClustering(bandwidth=1.0).fit_predict(X), model.labels_)


def test_one_column_is_enough():
    x = np.concatenate([np.random.default_rng(0).normal(at, 0.3, 50) for at in (0, 5)])[:, None]
    model = ModeClustering(bandwidth=0.5).fit(x)
    assert len(model.modes_) == 2
    np.testing.assert_array_equal(model.labels_, np.repeat(model.labels_[[0, -1]], 50))


def test_a_row_at_a_saddle_belongs_to_none():
    X = np.array([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    model = ModeClustering(bandwidth=1.0, step="mean_shift").fit(X, sample_weight=[5.0, 1e-9, 5.0])
    assert model.status_[1] == Status.NOT_A_RIDGE
    assert model.labels_.tolist() == [0, -1, 1]


def test_light_modes_are_no_clusters():
    X, _ = blobs()
    X = np.concatenate([X, [[30.0, 30.0]]])
    assert len(ModeClustering(bandwidth=1.0).fit(X).modes_) == 4
    model = ModeClustering(bandwidth=1.0, min_weight=5).fit(X)
    assert len(model.modes_) == 3
    assert model.labels_[-1] == -1


def test_the_heaviest_mode_is_kept_with_a_warning():
    X, _ = blobs(20)
    with pytest.warns(DegenerateWarning, match="min_weight=1000: the heaviest has 60 and is kept"):
        model = ModeClustering(bandwidth=1.0, min_weight=1000).fit(X)
    assert len(model.modes_) == 1


def test_on_a_sphere():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([179.0, 10.0], 3.0, (60, 2)), rng.normal([60.0, -80.0], [8.0, 2.0], (40, 2))])
    X[:, 0] = np.mod(X[:, 0] + 180.0, 360.0) - 180.0
    model = ModeClustering(bandwidth=4.0, space="sphere").fit(X)
    assert model.mode_weight_.tolist() == [60.0, 40.0]
    assert abs(np.mod(model.modes_[0, 0], 360.0) - 179.0) < 2.0


def test_repeats_are_weights():
    X, _ = blobs(20)
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = ModeClustering(bandwidth=1.0).fit(X, sample_weight=counts)
    repeated = ModeClustering(bandwidth=1.0).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.modes_, repeated.modes_)
    np.testing.assert_array_equal(weighted.mode_weight_, repeated.mode_weight_)


def test_rows_still_climbing_are_told_of():
    X, _ = blobs(20)
    with pytest.warns(DegenerateWarning, match="of 120 rows were still climbing after 1 steps"):
        ModeClustering(bandwidth=1.0, max_iter=1).fit(X)


def test_equal_rows_need_a_bandwidth():
    with pytest.raises(InvalidDataError, match="at least two different rows"):
        ModeClustering().fit(np.ones((4, 2)))
    assert ModeClustering(bandwidth=1.0).fit(np.ones((4, 2))).labels_.tolist() == [0] * 4


def test_files(tmp_path):
    X, _ = blobs(30)
    model = ModeClustering(bandwidth=1.0).fit(X)
    model.save(tmp_path / "modes.prinfold")
    again = prinfold.load(tmp_path / "modes.prinfold")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.modes_, model.modes_)
    again.labels_ = again.labels_ + 7
    with pytest.raises(CorruptModelFileError, match="labels_ of its modes"):
        again._restore()


@pytest.mark.parametrize("method", [ModeClustering, DensityRidge])
def test_thousands_of_columns_and_few_rows_take_seconds(method):
    X = np.random.default_rng(0).normal(size=(20, 3000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        start = time.process_time()
        model = method().fit(X)
    assert time.process_time() - start < 20  # matrices of all pairs of columns took minutes
    assert np.isfinite(model.score_samples(X) if method is ModeClustering else model.transform(X)).all()
