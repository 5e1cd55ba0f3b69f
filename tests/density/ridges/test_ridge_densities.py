"""DensityRidge of densities that are brought along: on a sphere, and what is said of answers in odd shapes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from prinfold import DensityRidge, Derivatives, KernelDensity
from prinfold.density.row_spaces import Globe
from prinfold.exceptions import InvalidParameterError


def test_a_density_in_space_has_ridges_along_the_sphere():
    rng = np.random.default_rng(0)
    belt = np.stack([rng.uniform(-180, 180, 300), 60 + rng.normal(0, 1.5, 300)], axis=1)
    own = DensityRidge(space="sphere", bandwidth=4.0).fit(belt)
    in_space = KernelDensity(Globe().enter(belt), np.ones(300), 4.0)
    given = DensityRidge(space="sphere", density=in_space).fit(belt)
    np.testing.assert_array_equal(given.status_, own.status_)
    np.testing.assert_allclose(given.ridge_.points, own.ridge_.points, atol=1e-6)
    np.testing.assert_allclose(given.ridge_.curvature, own.ridge_.curvature, atol=1e-6)


def test_a_mixture_is_for_flat_space():
    with pytest.raises(InvalidParameterError, match="GaussianMixture is for flat space"):
        DensityRidge(space="sphere", density=GaussianMixture(2)).fit(10 * np.eye(2))


class Wrong:
    """A normal density that answers one verb in another shape."""

    def __init__(self, **wrong):
        self.wrong = wrong

    def log_density(self, X):
        return self.wrong.get("log_density", -0.5 * (X**2).sum(axis=1))

    def derivatives(self, X):
        at = Derivatives(-0.5 * (X**2).sum(axis=1), -X, np.tile(-np.eye(2), (len(X), 1, 1)))
        return self.wrong.get("derivatives", lambda at: at)(at)

    def shift(self, X, at):
        return self.wrong.get("shift", at.gradient)

    def length(self, X):
        return self.wrong.get("length", np.ones(len(X)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"derivatives": tuple}, "must be prinfold.Derivatives, got tuple"),
        ({"derivatives": lambda at: at._replace(hessian=at.hessian[0])}, r"hessian .* shape \(2, 2, 2\)"),
        ({"log_density": 0.0}, r"log_density of the density must have shape \(2,\)"),
        ({"shift": np.zeros(2)}, r"shift of the density must have shape \(2, 2\)"),
        ({"length": 1.0}, r"length of the density must have shape \(2,\)"),
    ],
)
def test_a_density_that_answers_in_other_shapes(wrong, words):
    with pytest.raises(InvalidParameterError, match=words):
        DensityRidge(density=Wrong(**wrong)).fit(np.eye(2))
