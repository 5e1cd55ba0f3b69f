"""
Principal curves
================

A principal curve passes through the middle of the rows: every point of it is the mean of the rows that project there.
Hastie and Stuetzle found it by projecting and smoothing in turn.
"""

# %%
# A spiral, and where to begin
# ----------------------------
#
# From the traditional start, the principal component, the curve never finds the turns of a spiral, and a
# ``StructureWarning`` says that rows do not lie along it. By default several starts are compared after a few steps;
# here the longest path through a minimum spanning tree of cluster centres succeeds.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import PrincipalCurve, SmoothingSpline, datasets

spiral = datasets.make_spiral(1000, rng=0)
line, best = PrincipalCurve(init="pca").fit(spiral.X), PrincipalCurve().fit(spiral.X)
figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
for model, ax in zip((line, best), axes, strict=True):
    model.plot(spiral.X, ax=ax)
    off = np.sqrt(np.mean(spiral.surface.distance(model.vertices_) ** 2))
    ax.set_title(f"start: {model.start_}; {off:.3f} from the true curve")

# %%
# Arc length
# ----------
#
# The coordinate of a row is the length of the curve up to its nearest point, in units of the data, for new rows as for
# those of the fit. It tells the angle along the spiral that rows were made with.

new = datasets.make_spiral(300, rng=1)
figure, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
ax.plot(new.latent, best.transform(new.X), ".", color="#0072B2", ms=4)
ax.set(xlabel="true angle", ylabel="arc length", title="new rows")

# %%
# Open and closed
# ---------------
#
# ``closed="auto"`` decides whether the curve returns: a closed one must be about as good, and have rows everywhere.

shapes = (
    datasets.make_circle(200, rng=0),
    datasets.make_half_circle(150, rng=0),
    datasets.make_zigzag(400, rng=0),
)
figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for data, ax in zip(shapes, axes, strict=True):
    model = PrincipalCurve(closed="auto").fit(data.X)
    model.plot(data.X, ax=ax)
    ax.set_title(f"{'closed' if model.closed_ else 'open'}, length {model.length_:.2f}")

# %%
# Two kinds of bias
# -----------------
#
# With isotropic noise about a bend more rows lie outside than inside, so that the curve through the middle of the
# rows lies outside the generating one: by σ²/2 on a circle of radius 1. A stiff smoother pulls bends inwards, which
# in practice is the larger bias. Smoothing residuals instead of rows removes it (Banfield and Raftery).

noisy = datasets.make_half_circle(1000, noise=0.1, noise_kind="isotropic", rng=0)
truth = noisy.surface.point(np.linspace(0, np.pi, 200)[:, None])
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
for ax, corrected in zip(axes, (False, True), strict=True):
    ax.plot(*noisy.X.T, ".", color="#c9d1d9", ms=3)
    ax.plot(*truth.T, color="#24292f", lw=1.2, ls="--", label="true curve")
    for df, color in ((3.0, "#D55E00"), (6.0, "#0072B2")):
        model = PrincipalCurve(SmoothingSpline(df=df), bias_correction=corrected).fit(noisy.X)
        ax.plot(*model.vertices_.T, color=color, lw=2, label=f"{df:g} degrees of freedom")
    ax.set(aspect="equal", title="bias corrected" if corrected else "as smoothed")
axes[0].legend(frameon=False, loc="lower center")
