"""The region where rows are holds all of them, has their holes, and leaves empty corners out."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from prinfold import PrincipalSurface
from prinfold.latent.occupied_region import occupied_region


def ring(n=500, inner=0.5):
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(inner**2, 1, n))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def test_rows_lie_inside_and_the_hole_and_the_corners_outside():
    Z = ring()
    domain = occupied_region(Z).domain
    assert domain.contains(Z).all()
    assert not domain.contains(np.array([[0.0, 0.0], [0.95, 0.95], [-0.95, 0.95]])).any()


def test_lone_and_equal_rows_have_a_region():
    for Z in (np.zeros((1, 2)), np.zeros((5, 2)), np.array([[0.0, 0.0], [3.0, 1.0], [np.nan, 0.0]])):
        assert occupied_region(Z).domain.contains(Z[:1]).all()


def test_even_rows_have_no_holes_of_chance():
    Z = np.random.default_rng(1).uniform(-1, 1, (800, 2))
    inner = np.stack(np.meshgrid(*[np.linspace(-0.95, 0.95, 60)] * 2), axis=-1).reshape(-1, 2)
    assert occupied_region(Z).domain.contains(inner).all()


def test_a_mesh_is_cut_where_rows_end():
    X = np.column_stack([ring(300), np.zeros(300)])
    model = PrincipalSurface(2, max_iter=3, tol=0).fit(X)
    whole, cut = model.mesh(30), model.mesh(30, X=X)

    def area(mesh):
        a, b, c = mesh.vertices[mesh.faces].swapaxes(0, 1)
        return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()

    assert area(cut) < 0.85 * area(whole)
    assert area(cut) > 0.75 * np.pi * (1 - 0.25)
    assert_allclose(model.inverse_transform(cut.latent, extrapolate=True), cut.vertices, atol=1e-9)
    assert np.linalg.norm(cut.vertices[:, :2], axis=1).min() > 0.2  # the hole stays one
