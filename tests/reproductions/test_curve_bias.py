"""The two kinds of bias of principal curves (Chang & Ghosh 2001, figure 3), on a half circle."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import PrincipalCurve, SmoothingSpline, datasets


def outside(noise, df, corrected=False, seeds=3):
    """How far outside a half circle of radius 1 the curve runs at the top, and the standard error of that."""
    found = []
    for seed in range(seeds):
        data = datasets.make_half_circle(2000, noise=noise, noise_kind="isotropic", rng=seed)
        start = data.surface.point(np.linspace(0, np.pi, 50)[:, None])
        model = PrincipalCurve(SmoothingSpline(df=df), init=start, bias_correction=corrected, tol=1e-4).fit(data.X)
        points = model.inverse_transform(np.linspace(0, model.length_, 2000)[:, None])
        angle = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
        found.append(np.linalg.norm(points[(angle > 60) & (angle < 120)], axis=1).mean() - 1)
    return np.mean(found), np.std(found, ddof=1) / np.sqrt(seeds)


@pytest.mark.slow
def test_noise_puts_the_curve_outside_and_a_stiff_smoother_inside():
    flexible, error = outside(0.2, 6.0)
    assert abs(flexible - 0.2**2 / 2) < 0.005 + 2 * error  # model bias: σ²/2 on a circle of radius 1
    stiff, _ = outside(0.2, 3.0)
    assert stiff < -0.1  # estimation bias, the larger of the two
    mended, _ = outside(0.2, 3.0, corrected=True)
    assert abs(mended - 0.02) < 0.03
