"""
Pictures of a surface
=====================

Every figure that prinfold draws, in the order in which the guide explains them.
"""

# %%
# The map of the rows
# -------------------
# Rows at their latent coordinates, by class; the shading is the magnification factor.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from prinfold import GTM, datasets, plot

data = datasets.make_pipe_flow(300, rng=0)
model = GTM(nodes=12, basis=5, max_iter=300, random_state=0).fit(data.X)

plot.latent_map(model, data.X, labels=data.names)

# %%
# By value instead of class:

water = data.fractions[:, 2]
plot.latent_map(model, data.X, values=water, value_name="fraction of water")

# %%
# Over another background, here the share of the rows that each node accounts for:

share = model.responsibilities(data.X).sum(axis=0)
plot.latent_map(model, data.X, background=np.log(share + 1e-3))

# %%
# Can a place on the map be trusted?
# ----------------------------------
# A line joins the posterior mean of a row to its mode; long ones warn of several likely places.

few = slice(100)
plot.latent_map(model, data.X[few], labels=data.names[few], mode_lines=True, background=None, show_nodes=True)

# %%
# The posterior of the most doubtful row:

doubtful = int(model.mode_distance(data.X).argmax())
plot.posterior(model, data.X[doubtful])

# %%
# Stretch and folds of the surface itself:

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
figure.get_layout_engine().set(w_pad=0.15)
plot.magnification(model, ax=left)
plot.folds(model, ax=right)

# %%
# The surface among the data
# --------------------------
# A curve in two columns, with discs of two standard deviations of the noise.

curve = datasets.make_thesis_curve(120, rng=0)
line = GTM(1, nodes=20, basis=6, random_state=0).fit(curve.X)
plot.surface(line, curve.X, noise=True, show_nodes=True)

# %%
# A surface in twelve columns, seen along the first three principal components:

plot.surface(model, data.X, labels=data.names)

# %%
# The same surface in two of the columns:

plot.surface(model, data.X, labels=data.names, dims=[0, 6])

# %%
# Behind a scaling step, in the units of the rows:

grams = curve.X * [1.0, 1000.0]
scaled = make_pipeline(MaxAbsScaler(), GTM(1, nodes=20, basis=6, random_state=0)).fit(grams)
plot.surface(scaled, grams)

# %%
# The way there
# -------------
# The objective, the likelihood and the noise by iteration.

plot.learning_curve(model)
plt.show()
