"""Modes: which ends are the same, what order they come in, and which rows belong to none."""

from __future__ import annotations

import numpy as np

from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.density.ridges.modes import SAME_MODE_BANDWIDTHS, find_modes, label_rows


def ended(points, status=None, log_density=None) -> FlowResult:
    points = np.asarray(points, dtype=float)
    n = len(points)
    status = np.zeros(n, dtype=np.int8) if status is None else np.asarray(status, dtype=np.int8)
    log_density = np.zeros(n) if log_density is None else np.asarray(log_density, dtype=float)
    return FlowResult(
        points, np.zeros((n, points.shape[1], 0)), -np.ones(points.shape), log_density, status, np.zeros(n, int)
    )


def test_ends_within_a_tenth_of_a_bandwidth_are_one_mode():
    found = ended([[0.0, 0.0], [0.09, 0.0], [5.0, 0.0], [5.0, 1e-7], [5.0, 0.0]])
    modes = find_modes(found, np.ones(5), np.ones(5), 0.0)
    assert modes.points[:, 0].tolist() == [5.0, 0.0]
    assert modes.weight.tolist() == [3.0, 2.0]
    assert label_rows(found, modes, np.ones(5)).tolist() == [1, 1, 0, 0, 0]
    apart = ended([[0.0, 0.0], [SAME_MODE_BANDWIDTHS * 1.5, 0.0]])
    assert len(find_modes(apart, np.ones(2), np.ones(2), 0.0).points) == 2


def test_the_order_is_by_weight_then_density_then_place():
    found = ended([[0.0], [1.0], [2.0], [3.0]], log_density=[0.0, 0.0, 1.0, 0.0])
    modes = find_modes(found, np.array([1.0, 1.0, 1.0, 2.0]), np.ones(4), 0.0)
    assert modes.points[:, 0].tolist() == [3.0, 2.0, 0.0, 1.0]


def test_light_modes_are_left_out_but_never_all():
    found = ended([[0.0], [0.0], [5.0]])
    modes = find_modes(found, np.ones(3), np.ones(3), 2.0)
    assert modes.points.tolist() == [[0.0]]
    assert label_rows(found, modes, np.ones(3)).tolist() == [0, 0, -1]
    assert find_modes(found, np.ones(3), np.ones(3), 99.0).points.tolist() == [[0.0]]


def test_a_saddle_is_no_mode():
    found = ended([[0.0], [5.0], [2.5]], status=[Status.CONVERGED, Status.CONVERGED, Status.NOT_A_RIDGE])
    modes = find_modes(found, np.ones(3), np.ones(3), 0.0)
    assert sorted(modes.points[:, 0].tolist()) == [0.0, 5.0]
    assert label_rows(found, modes, np.ones(3))[2] == -1


def test_where_nothing_is_a_maximum_something_stands_in():
    found = ended([[0.0], [0.0]], status=[Status.NOT_CONVERGED] * 2)
    assert find_modes(found, np.ones(2), np.ones(2), 0.0).points.tolist() == [[0.0]]


def test_rows_that_ran_off_have_no_cluster():
    found = ended([[0.0, 0.0], [np.inf, 0.0]], status=[0, Status.RAN_OFF])
    modes = find_modes(found, np.ones(2), np.ones(2), 0.0)
    assert label_rows(found, modes, np.ones(2)).tolist() == [0, -1]


def test_many_rows_at_one_mode_cost_no_pairs():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    found = Flow(KernelDensity(X, np.ones(3000), 1.0), 0, tol=1e-6)(X)
    modes = find_modes(found, np.ones(3000), np.ones(3000), 0.0)
    assert modes.weight.tolist() == [3000.0]


def test_modes_of_narrow_kernels_stay_apart_beside_wide_ones():
    points = [[0.0], [0.3], [0.3 + 1e-7], [20.0], [20.2]]
    length = np.array([0.05, 0.05, 0.05, 4.0, 4.0])
    found = ended(points)
    modes = find_modes(found, np.ones(5), length, 0.0)
    assert modes.points[:, 0].tolist() == [0.3, 20.0, 0.0]
    assert label_rows(found, modes, length).tolist() == [2, 0, 0, 1, 1]
