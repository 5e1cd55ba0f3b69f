"""
Curves with a density
=====================

A mixture of Gaussians along a spline: the curve that rows were made from, how wide they scatter about it, and how many
there are along the way.
"""

# %%
# Round and oriented
# ------------------
#
# Each Gaussian is drawn at one deviation, as dark as its share of the rows. Round ones (Tibshirani's) take rows from
# both sides along the curve; oriented ones (Chang and Ghosh's) those that project on them.

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Ellipse

from prinfold import PrincipalCurve, ProbabilisticCurve, datasets

data = datasets.make_half_circle(200, noise=0.1, rng=0)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, clamping in zip(axes, (1.0, 0.2), strict=True):
    model = ProbabilisticCurve(24, clamping=clamping).fit(data.X)
    along = np.sqrt(clamping * model.noise_variance_)
    across = np.sqrt((2 - clamping) * model.noise_variance_)
    for center, tangent, share in zip(model.nodes_, model.node_tangents_, model.shares_, strict=True):
        turned = np.degrees(np.arctan2(tangent[1], tangent[0]))
        ax.add_patch(
            Ellipse(
                center + model.offset_,
                2 * along,
                2 * across,
                angle=turned,
                fc="#0072B2",
                alpha=min(1.0, 4 * share),
                lw=0,
            )
        )
    ax.plot(*data.X.T, "k.", ms=3)
    ax.plot(*model.vertices_.T, color="#D55E00", lw=2)
    ax.set(aspect="equal", title=f"clamping {clamping:g}: {model.score(data.X):.2f} nats a row")

# %%
# How many, and where
# -------------------
#
# Three quarters of the rows lie in the first third of the way. The shares of the nodes say so, and new rows are drawn
# from the density.

rng = np.random.default_rng(0)
t = np.concatenate([rng.uniform(0, 1, 300), rng.uniform(1, 3, 100)])
X = np.column_stack([t, np.sin(2 * t)]) + 0.08 * rng.standard_normal((400, 2))
model = ProbabilisticCurve().fit(X)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
left.plot(*X.T, ".", color="#9aa3ad", ms=4, label="rows")
left.plot(*model.sample(150, random_state=0).T, ".", color="#0072B2", ms=4, label="drawn")
left.plot(*model.vertices_.T, color="#D55E00", lw=2)
left.legend(frameon=False)
places = model.node_places_[:, 0]
order = np.argsort(places)
right.plot(places[order], np.cumsum(model.shares_[order]), drawstyle="steps-post")
right.set(xlabel="arc length", ylabel="share of the rows up to here")

# %%
# Beside Hastie and Stuetzle's
# ----------------------------
#
# On a noisy half circle the two run close to each other; only one of them says how likely a row is.

noisy = datasets.make_half_circle(400, noise=0.25, rng=0)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(*noisy.X.T, ".", color="#c9ced6", ms=4)
angle = np.linspace(0, np.pi, 200)
ax.plot(np.cos(angle), np.sin(angle), "k--", lw=1, label="true")
ax.plot(*PrincipalCurve().fit(noisy.X).vertices_.T, lw=2, label="PrincipalCurve")
ax.plot(*ProbabilisticCurve().fit(noisy.X).vertices_.T, lw=2, label="ProbabilisticCurve")
ax.set_aspect("equal")
ax.legend(frameon=False)
