"""Support of branches: high on true ones and low on those of noise, and what is left out by it."""

from __future__ import annotations

import numpy as np
import pytest

import prinfold
from prinfold import DensityRidge, datasets
from prinfold.density.ridges.graph_nodes import RidgeNodes
from prinfold.density.ridges.support import drop_weak, path_support, persistent
from prinfold.exceptions import DegenerateWarning


def noise_beside_a_line(n: int = 200) -> np.ndarray:
    """A line with as many rows spread evenly about it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, n)
    line = np.stack([x, 1.0 + rng.normal(0, 0.03, n)], axis=1)
    return np.concatenate([line, rng.uniform((0, 0), (4, 2), (n // 2, 2))])


def net(points: np.ndarray) -> RidgeNodes:
    m = len(points)
    return RidgeNodes(points, np.tile([1.0, 0.0], (m, 1)), np.zeros(m), np.full(m, 0.1), np.ones(m, dtype=bool))


def test_a_line_is_sure_and_the_noise_about_it_is_left_out():
    X = noise_beside_a_line()
    every = DensityRidge(bandwidth=0.1, min_support=0.0).fit(X)
    model = DensityRidge(bandwidth=0.1).fit(X)
    assert len(every.graph_.ends) == model.n_branches_found_ > 10
    assert len(model.graph_.ends) < 0.65 * model.n_branches_found_  # half in the mean of six such tables
    ends = zip(every.latent_.domain.low, every.latent_.domain.high, strict=True)
    along = [every.inverse_transform(np.linspace(low, high, 20)[:, None]) for low, high in ends]
    on = np.array([np.abs(points[:, 1] - 1.0).mean() < 0.1 for points in along])
    assert every.branch_support_[on].min() > 0.8
    assert every.branch_support_[~on].mean() < 0.5
    on_line = [(np.abs(each.graph_.points[:, 1] - 1.0) < 0.1).mean() for each in (model, every)]
    assert on_line[0] > 1.3 * on_line[1]
    np.testing.assert_array_equal(model.ridge_.points, every.ridge_.points)  # no ridge point is lost


@pytest.mark.full
def test_all_that_are_kept_have_the_support_asked_for():
    every, model = (DensityRidge(bandwidth=0.1, min_support=s).fit(noise_beside_a_line()) for s in (0.0, 0.6))
    assert 1 < len(model.branch_support_) == len(model.graph_.ends) < len(every.graph_.ends)
    usual = np.average(every.branch_support_, weights=every.graph_.latent.lengths)
    assert model.branch_support_.min() >= 0.6 * usual * 0.99  # lengths of curves and of their paths differ a little


@pytest.mark.full
def test_support_is_the_same_again_in_another_order_and_from_a_file(tmp_path):
    X = noise_beside_a_line()
    one = DensityRidge(bandwidth=0.1, min_support=0.3).fit(X)
    other = DensityRidge(bandwidth=0.1, min_support=0.3).fit(X[::-1])
    np.testing.assert_allclose(one.branch_support_, other.branch_support_)
    one.save(tmp_path / "ridge.prinfold")
    np.testing.assert_array_equal(one.branch_support_, prinfold.load(tmp_path / "ridge.prinfold").branch_support_)


def test_a_density_that_other_rows_cannot_have_keeps_all_branches():
    X = datasets.make_spiral(200, noise=0.04, rng=0).X
    model = DensityRidge(bandwidth="neighbors").fit(X)
    assert np.isnan(model.branch_support_).all()
    assert len(model.graph_.ends) == model.n_branches_found_


def test_the_support_of_a_path_is_its_mean_by_length():
    nodes = net(np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]]))
    # ∫ of the straight line between the shares 0, 1, 1 over a length of 4
    assert path_support(nodes, [0, 1, 2], np.array([0.0, 1.0, 1.0])) == pytest.approx((0.5 + 3.0) / 4.0)
    assert path_support(nodes, [1], np.array([0.0, 0.7, 1.0])) == pytest.approx(0.7)


def test_a_weak_branch_goes_and_what_it_parted_is_one_and_the_best_stays():
    # A path of 9 nodes with a side branch at the middle one.
    along, side = (
        np.stack([np.arange(9.0), np.zeros(9)], axis=1),
        np.stack([np.full(4, 4.0), np.arange(1.0, 5.0)], axis=1),
    )
    nodes = net(np.concatenate([along, side]))
    paths = [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [4, 9, 10, 11, 12]]
    share = np.concatenate([np.full(9, 0.9), np.full(4, 0.2)])
    kept = drop_weak(paths, nodes, share, 3.0, 0.5)
    assert [sorted(path) for path in kept] == [list(range(9))]
    assert drop_weak(paths, nodes, share, 3.0, 0.0) == paths
    assert len(drop_weak(paths, nodes, 0.1 * share, 3.0, 0.5)) == 1


def test_a_curve_in_a_chart_has_no_branches():
    X = datasets.make_swiss_roll(200, noise=0.2, rng=0).X
    with pytest.raises(AttributeError, match="branch_support_ is for curves"):
        _ = DensityRidge(2, bandwidth=2.0).fit(X).branch_support_


def test_branches_of_a_curve_persist_and_those_of_noise_in_many_columns_do_not():
    data = datasets.make_spiral(300, noise=0.04, rng=0)
    spiral = DensityRidge().fit(data.X)
    assert spiral.persistent_branches_.all()
    assert spiral.locate(data.X).persists.all()
    X = np.random.default_rng(0).standard_normal((300, 8))
    with pytest.warns(DegenerateWarning, match=r"and 0 of them in 20 % or more \(persistent_branches_\)"):
        noise = DensityRidge().fit(X)
    assert len(noise.branch_support_) > 10
    assert not noise.persistent_branches_.any()
    assert not noise.locate(X).persists.any()
    np.testing.assert_array_equal(persistent(np.array([np.nan, 0.2, 0.19])), [True, True, False])
