"""
The generative topographic mapping
==================================

From a curve that learns to follow its data to a map of pipe-flow measurements, and onto closed surfaces.
"""

# %%
# A curve learns
# --------------
#
# Fifty-nine points lie along a curve (example 3.1 of Svensén's thesis). The GTM starts as a straight row of
# nodes along the first principal component, each with a disc of noise around it. Every iteration asks
# which nodes may have made which points, and then moves the curve to suit. The curve bends as the noise
# shrinks.

import warnings

from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV

from prinfold import GTM, datasets, plot
from prinfold.exceptions import PrinfoldWarning

curve = datasets.make_thesis_curve(rng=0)
figure, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained", sharex=True, sharey=True)
for ax, n_iter in zip(axes.flat, (0, 2, 4, 15), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)  # an unfinished curve may well be ambiguous
        snapshot = GTM(1, nodes=15, basis=5, max_iter=n_iter, tol=0).fit(curve.X)
    plot.surface(snapshot, curve.X, noise=True, show_nodes=True, ax=ax)
    ax.set_title(f"{n_iter} iterations")
    ax.label_outer()

# %%
# A map of twelve columns
# -----------------------
#
# Six beams through a pipe measure path lengths in oil and water: twelve columns, but for each kind of flow only
# two degrees of freedom. The map lays the rows out on a surface fitted through all of them. Shading is the
# magnification factor: dark where the surface is stretched, as it is between groups.

data = datasets.make_pipe_flow(1000, rng=0)
model = GTM(random_state=0).fit(data.X)
model.plot(data.X, labels=data.names)
print(f"{model.stop_reason_} {model.n_iter_} iterations, {model.score(data.X):.2f} nats per row")

# %%
# How many basis functions?
# -------------------------
#
# The likelihood of rows that the model has not seen decides. It is the ``score``, so that scikit-learn's search
# needs nothing else.

search = GridSearchCV(
    GTM(nodes=15, max_iter=300, tol=1e-3), {"basis": [3, 5, 7], "regularization": [0.01, 0.1, 1.0]}, cv=3
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)
    search.fit(data.X[:400])
print(search.best_params_, round(search.best_score_, 2))

# %%
# Closed surfaces
# ---------------
#
# A circle for data that come back to where they began, a sphere for directions: the same estimator on another
# latent space, without a seam.

ring = datasets.make_circle(200, rng=0)
ball = datasets.make_sphere(500, noise=0.05, rng=0)
figure = plt.figure(figsize=(9, 4.2), layout="constrained")
plot.surface(GTM(latent="circle").fit(ring.X), ring.X, ax=figure.add_subplot(1, 2, 1))
plot.surface(GTM(latent="sphere").fit(ball.X), ball.X, ax=figure.add_subplot(1, 2, 2, projection="3d"))
plt.show()
