"""Domains: which coordinates are valid, to within rounding and no further."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prinfold import GTM
from prinfold.exceptions import OutOfDomainError
from prinfold.geometry.domain import Box, UnitSphere


@pytest.mark.parametrize("length", [1e-3, 1.0, 250.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_box_ends_at_its_edge_but_for_rounding(length, side):
    box = Box.of((-length, length), (0.0, 1.0))
    share = np.array([0.0, 1.0, 1 + 1e-9, 1 + 1e-7, 1 + 1e-4, 1.01, 1.4, 2.0])
    Z = np.stack([side * length * share, np.full(len(share), 0.5)], axis=1)
    assert_array_equal(box.contains(Z), share < 1 + 1e-5)


def test_every_column_must_lie_inside():
    Z = np.array([[0.0, 0.0], [1.01, 0.0], [0.0, -1.01], [1.01, 1.01], [np.nan, 0.0], [0.0, np.inf]])
    assert_array_equal(Box.of((-1, 1), (-1, 1)).contains(Z), [True, *[False] * 5])


def test_a_periodic_axis_has_no_outside_but_infinity():
    box = Box.of((-np.pi, np.pi), (0, 1), periodic=(True, False))
    Z = np.array([[100.0, 0.5], [-100.0, 1.0], [0.0, 1.01], [np.inf, 0.5]])
    assert_array_equal(box.contains(Z), [True, True, False, False])


def test_what_is_retracted_is_inside():
    rng = np.random.default_rng(0)
    for domain in (Box.of((-1, 1), (2, 5)), Box.of((0, 1), (-np.pi, np.pi), periodic=(False, True)), UnitSphere()):
        Z = 10 * rng.standard_normal((200, domain.extent.n_columns))
        assert domain.contains(domain.retract(Z)).all()


def test_the_unit_sphere_ends_at_its_surface_but_for_rounding():
    length = np.array([1.0, 1 + 1e-9, 1 - 1e-9, 1.01, 0.99, 0.0])
    assert_array_equal(UnitSphere().contains(length[:, None] * [0.6, 0.0, 0.8]), [True, True, True, *[False] * 3])


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_model_is_evaluated_at_its_edge_and_not_beyond():
    model = GTM(1, nodes=5, basis=3, max_iter=1, tol=0).fit(np.random.default_rng(0).standard_normal((30, 2)))
    edge = model.latent_.domain.extent.upper
    for beyond in (1.0, 1 + 1e-9):
        assert np.isfinite(model.inverse_transform([beyond * edge])).all()
    with pytest.raises(OutOfDomainError):
        model.inverse_transform([1.01 * edge])
