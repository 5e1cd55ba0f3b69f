"""
Nets that bend, part and close
==============================

A net has no basis functions: every node goes where rows pull it, and differences between neighbours hold it together.
So it can be cut where a smooth map cannot follow, and, closed and under tension, it finds its way round many cities.
"""

# %%
# Stiffness by evidence
# ---------------------
#
# Second differences resist bending. How much they count is the only number to choose, and the evidence chooses it.
# Where they count too little the net follows the noise and folds, and where too much it keeps far from the rows; fits
# like those come with warnings, which are left out here because both are meant.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from prinfold import GTM, ElasticNetBasis, datasets, plot
from prinfold.exceptions import FoldWarning, MultimodalWarning

for category in (FoldWarning, MultimodalWarning, ConvergenceWarning):
    warnings.simplefilter("ignore", category)

data = datasets.make_half_circle(150, noise=0.1, rng=0)
choices = {"regularization": 0.01}, {"prior_precision": "evidence"}, {"regularization": 3e4}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, settings in zip(axes, choices, strict=True):
    net = GTM(1, nodes=30, basis=ElasticNetBasis(), **settings).fit(data.X)
    plot.surface(net, data.X, ax=ax)
    strength = net.prior_precision_ * net.noise_variance_
    ax.set_title(f"λ = {strength:.3g}" + (", found" if "prior_precision" in settings else ""), fontsize=10)

# %%
# A cut
# -----
#
# A quantity that drifts, and jumps when a valve is opened. A net that is stiff enough for the drift rounds the jump
# off; cut there, it parts. The map itself goes on across a cut, as the steep line between the two ends: it is
# stretched, and no node lies on it. A tear in part, here down to a tenth of each difference, lies between the two.

rng = np.random.default_rng(0)
time = rng.uniform(-1, 1, 250)
level = 0.4 * np.sin(2 * time) + np.where(time > 0.2, 1.0, 0.0)
X = np.column_stack([time, level]) + 0.05 * rng.standard_normal((250, 2))

nets = {"whole": ElasticNetBasis(), "torn": ElasticNetBasis(cuts=[0.2], tear=0.1), "cut": ElasticNetBasis(cuts=[0.2])}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, (name, basis) in zip(axes, nets.items(), strict=True):
    net = GTM(1, nodes=40, basis=basis, init=time[:, None], regularization=300.0).fit(X)
    plot.surface(net, X, ax=ax)
    ax.set_title(f"{name}: noise {net.noise_variance_**0.5:.3f} (true 0.050)", fontsize=10)

# %%
# A tour
# ------
#
# The elastic net of Durbin and Willshaw: a closed net under tension, slackened step by step until it passes every city.
# A tour has corners, and no step waits until the net has settled.

cities = np.random.default_rng(2).uniform(size=(40, 2))
about = cities - cities.mean(axis=0)
angle = np.arctan2(about[:, 1], about[:, 0])[:, None]
tensions = np.geomspace(3.0, 1e-3, 30)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.5), layout="constrained")
for i, tension in enumerate(tensions):
    net = GTM(1, nodes=100, latent="circle", basis=ElasticNetBasis(1), regularization=tension, init=angle)
    net.set_params(max_iter=30, tol=1e-6, noise_floor=1e-5).fit(cities)
    angle = net.transform(cities)
    if i in (4, 12, 18, 29):
        ax = axes[[4, 12, 18, 29].index(i)]
        loop = net.mesh().vertices
        ax.plot(*np.vstack([loop, loop[:1]]).T, lw=1.5)
        ax.plot(*cities.T, "k.", ms=5)
        ax.set(title=f"tension {tension:.2g}", aspect="equal", xticks=[], yticks=[])
order = np.argsort(angle[:, 0])
print(f"tour of length {np.linalg.norm(cities[order] - cities[np.roll(order, -1)], axis=1).sum():.2f}")
