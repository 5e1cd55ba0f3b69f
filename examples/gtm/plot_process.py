"""
A map without basis functions to count
======================================

How many basis functions, how wide, how much regularisation: a Gaussian process asks none of these. It says of the
surface that nearby nodes lie near each other, over a length scale that the rows themselves decide.
"""

# %%
# Priors
# ------
#
# Two curves drawn from the prior at each length scale: this is what a process takes for likely before it has seen a
# row. The mean of the process, a straight line here, costs nothing and is left out.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, GaussianProcess, datasets, plot
from prinfold.latent import line

rng = np.random.default_rng(1)
z = np.linspace(-1, 1, 300)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
for ax, (length, covariance) in zip(axes, [(0.2, "gaussian"), (0.6, "gaussian"), (0.6, "matern32")], strict=True):
    bound = GaussianProcess(length, 1.0, covariance, linear=False).bind(line(100))
    features = bound.features(z)[:, :-1]  # the last is the mean
    ax.plot(z, features @ rng.standard_normal((features.shape[1], 2)), lw=1.6)
    ax.set_title(f"length scale {length:g}, {covariance}", fontsize=10)
    ax.set_xlabel("latent")

# %%
# The length scale by evidence
# ----------------------------
#
# Training alternates between EM and choosing length scale and variance by the evidence for them. The history has both
# at every step, so that it shows where they changed.

data = datasets.make_spiral(300, noise=0.04, rng=0)
model = GTM(1, basis=GaussianProcess(), init="isomap", max_iter=500, random_state=0).fit(data.X)
print(f"length scale {model.basis_.length_scale:.2f}, variance {model.basis_.variance:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot.surface(model, data.X, ax=left)
right.plot(model.history_["length_scale"], drawstyle="steps-post", label="length scale")
right.plot(model.history_["variance"], drawstyle="steps-post", label="variance")
right.set(xlabel="iteration", yscale="log")
right.legend(frameon=False)

# %%
# Too short, found, too long
# --------------------------
#
# The same rows with the length scale given. Too short, the curve follows the noise; too long, it cannot turn.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
found = model.basis_.length_scale
for ax, length in zip(axes, (0.25 * found, found, 4 * found), strict=True):
    given = GTM(1, basis=GaussianProcess(length), init="isomap", max_iter=500, random_state=0).fit(data.X)
    plot.surface(given, data.X, ax=ax)
    ax.set_title(f"length scale {length:.2f}: log evidence {given.log_evidence(data.X):.0f}", fontsize=10)

# %%
# A surface
# ---------
#
# Three phases in a pipe, seen by twelve beams. New rows are more likely under the process than under the GTM as it
# comes, whose nine basis functions on an axis are too stiff for the folds between flow regimes.

flow, new = datasets.make_pipe_flow(600, rng=0), datasets.make_pipe_flow(1000, rng=1)
plain = GTM(random_state=0, max_iter=500).fit(flow.X)
process = GTM(basis=GaussianProcess(), random_state=0, max_iter=500).fit(flow.X)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, name, each in zip(axes, ("basis functions", "process"), (plain, process), strict=True):
    plot.latent_map(each, flow.X, labels=flow.names, ax=ax)
    ax.set_xlabel(f"{name}: {each.score(new.X):.2f} nats a new row")
