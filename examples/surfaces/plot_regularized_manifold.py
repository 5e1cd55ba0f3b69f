"""
Regularised principal manifolds
===============================

A sum of kernels through the rows, as near to them as its norm allows: the regularised quantisation error of Smola,
Mika, Schölkopf and Williamson.
"""

# %%
# Neither step raises the error
# -----------------------------
#
# Rows go to their nearest points, then the surface is a kernel ridge regression of the rows on where they are.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import RegularizedManifold, datasets, plot

data = datasets.make_ridge(400, noise=0.1, sampling="parameter", rng=0)
model = RegularizedManifold().fit(data.X)

figure = plt.figure(figsize=(11, 4.8), layout="constrained")
parts = figure.add_gridspec(1, 2, width_ratios=(3, 2))
left, right = figure.add_subplot(parts[0], projection="3d"), figure.add_subplot(parts[1])
plot.surface(model, data.X[::3], ax=left)
error, norm = (np.array(model.history_[name]) for name in ("error", "norm"))
right.stackplot(
    np.arange(len(error)), error, model.regularization * norm, labels=["mean squared distance", "λ‖f‖²"], alpha=0.6
)
right.set(xlabel="step", ylabel="regularised quantisation error", title=model.stop_reason_.after(model.n_iter_))
right.legend(loc="lower left")

# %%
# What λ does
# -----------
#
# A curve through a noisy half circle. Too small a λ follows the noise; too large a one draws the curve in, since what
# costs is not bending but the size of the function: ends come in first.

arc = datasets.make_half_circle(150, noise=0.1, rng=0)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, strength in zip(axes, (1e-6, 1e-3, 1e-1), strict=True):
    curve = RegularizedManifold(1, regularization=strength, length_scale=0.3).fit(arc.X)
    plot.surface(curve, arc.X, ax=ax)
    ax.set_title(f"λ = {strength:g}: norm {curve.history_['norm'][-1]:.3g}", fontsize=10)
