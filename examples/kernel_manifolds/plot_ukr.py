"""
Unsupervised kernel regression
==============================

Every row gets a latent point, and the surface at a place of latent space is the mean of all rows, weighted by a kernel
on the distance to their latent points. Training moves the latent points until rows are predicted well by the others.
"""

# %%
# Where to begin
# --------------
#
# The error has many minima, so that the start decides. Several embeddings are brought to the scale at which they
# predict best, and compared by the error of each row as predicted by the others.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from prinfold import UKR, Contour, datasets, plot

spiral = datasets.make_spiral(300, rng=0)
curve = UKR(n_components=1).fit(spiral.X)
print(curve.candidates_)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot.candidates(curve, ax=left)
plot.surface(curve, spiral.X, ax=right)

# %%
# Where to end
# ------------
#
# The error falls to the end, and so does that of new rows. The curve does not get better all the while: it begins to
# follow the noise. So training ends by default where the error is down to what the noise alone would leave, as
# estimated at the start.

new = datasets.make_spiral(1000, rng=1).X
steps = (0, 1, 2, 4, 8, 16, 32, 64)
errors, novel, apart = [], [], []
for n_steps in steps:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of steps is given
        model = UKR(1, init="isomap", n_neighbors=6, stop="minimum", max_iter=n_steps).fit(spiral.X)
    errors.append(model.history_["error"][-1])
    novel.append(model.projection_error(new))
    apart.append(np.mean(spiral.surface.distance(model.mesh().vertices) ** 2))
stopped = UKR(1, init="isomap", n_neighbors=6).fit(spiral.X)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
places = np.arange(len(steps))
for name, values, color in (
    ("cross-validated error", errors, "#0072B2"),
    ("distance of new rows", novel, "#009E73"),
    ("distance to the true curve", apart, "#D55E00"),
):
    axes[0].plot(places, values, "o-", ms=3.5, color=color, label=name)
axes[0].axvline(np.interp(stopped.n_iter_, steps, places), color="0.6", ls="--", lw=1)
axes[0].set(xticks=places, xticklabels=steps, xlabel="steps (dashed: where training ends)", ylabel="mean square")
axes[0].set(yscale="log")
axes[0].legend(frameon=False, fontsize=8)
true = spiral.surface.point(np.linspace(0, 4 * np.pi, 500)[:, None])
for ax, each, word in zip(axes[1:], (stopped, model), ("stop='noise'", "stop='minimum'"), strict=True):
    plot.surface(each, spiral.X, ax=ax)
    ax.plot(*true.T, color="0.3", lw=1, ls="--")
    ax.set_title(word)

# %%
# The density of the latent points says where there is a curve at all: where it is below a threshold, the latent domain
# ends, and new rows are projected to the parts that are left.

plot.latent_density(stopped)

# %%
# Classes that the fit did not see
# --------------------------------
#
# Three kinds of flow through a pipe, twelve columns. The latent domain is bounded by the contour that holds 95 % of the
# rows; it has holes, and may have pieces.

flow = datasets.make_pipe_flow(400, rng=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    surface = UKR(init="pca", stop="minimum", max_iter=150, threshold=Contour(0.95)).fit(flow.X)
plot.latent_density(surface, labels=flow.names)

# %%
# Images from all over latent space
# ---------------------------------
#
# Twos of 8 × 8 pixels. Each image is the point of the surface at its place; where there are few latent points, it
# fades.

twos = datasets.load_digits(2).X
model = UKR(init=("pca", "lle"), stop="minimum", tol=1e-4).fit(twos)
plot.images(model, shape=(8, 8), n=13)

plt.show()
