"""The regularised quantisation error, and that no step raises it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import GaussianProcess
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.latent import line
from prinfold.surfaces import regularized_manifold_training
from prinfold.surfaces.projected_regression import SurfaceRows, starting_places


@pytest.fixture(scope="module")
def surface() -> BasisMap:
    latent = line(9)
    return BasisMap(latent, GaussianProcess(0.5, linear=False).bind(latent))


def test_the_penalty_is_the_norm_of_the_sum_of_kernels(surface):
    basis, rng = surface.basis, np.random.default_rng(0)
    weights = rng.standard_normal((len(surface.penalty_mask), 2))
    pivots = basis.pivots
    gram = np.exp(-0.5 * np.square(pivots - pivots.T) / 0.5**2)
    Z = rng.uniform(-1, 1, (5, 1))
    # a of f = b + Σ a_m c(·, z_m), from its values at the pivots
    a = np.linalg.solve(gram, surface.point(pivots, weights) - weights[-1])
    sum_of_kernels = weights[-1] + np.exp(-0.5 * np.square(Z - pivots.T) / 0.5**2) @ a
    assert_allclose(surface.point(Z, weights), sum_of_kernels, atol=1e-7)
    assert_allclose(surface.roughness(weights), np.einsum("md,mk,kd->", a, gram, a), rtol=1e-6)


def test_projections_begin_on_a_mesh_of_all_places_that_rows_may_be_projected_to(surface):
    alternation = replace(regularized_manifold_training.alternation(surface, 1.0), reach=0.25)
    places = alternation.mesh(np.zeros((len(surface.penalty_mask), 2))).latent
    assert_allclose([places.min(), places.max()], [*alternation.domain.extent.lower, *alternation.domain.extent.upper])


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
def test_neither_step_raises_the_risk(surface, penalty):
    rng = np.random.default_rng(1)
    t = rng.uniform(0, np.pi, 80)
    rows = np.stack([np.cos(t), np.sin(t)], axis=1) + 0.1 * rng.standard_normal((80, 2))
    sample = SurfaceRows(rows - rows.mean(axis=0), np.ones(80))
    alternation = regularized_manifold_training.alternation(surface, penalty)
    state = alternation.begin(sample, starting_places("pca", sample, 1))
    for _ in range(6):
        new = alternation.step(sample, state)
        assert regularized_manifold_training.risk(surface, new) <= regularized_manifold_training.risk(
            surface, state
        ) * (1 + 1e-12)
        assert np.abs(new.latent).max() <= 1.0
        state = new
