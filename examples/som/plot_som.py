"""
Self-organising maps
====================

A grid of nodes is drawn into the data by the rows themselves: each row pulls the node nearest to it, and the neighbours
of that node on the grid. Here are the two examples of the GTM's thesis (Svensén 1998, figures 4.6 to 4.11): the
magnification factor of a batch SOM beside that of a GTM, and the U-matrix, which shows the same by distances between
nodes.
"""

# %%
# A ridge
# -------
#
# 400 rows on a sheet that climbs steeply in its middle, z = tanh(6x), with noise. Both maps have 10 × 10 nodes. The
# SOM's surface is the kernel regression of its last epoch, so it has a magnification factor everywhere, not only at
# nodes. Dark is where a step on the map is a long way in the data. Numbers are rows that a node wins. With so few nodes
# the GTM's are farther apart across the ridge than the noise is wide, and rows gather at them in stripes.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, SOM, datasets, plot
from prinfold.exceptions import DataNotFoundError
from prinfold.latent import hexagons

ridge = datasets.make_ridge(400, rng=0)
gtm = GTM(nodes=10, basis=6).fit(ridge.X)
som = SOM(nodes=10).fit(ridge.X)
figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
plot.latent_map(gtm, ridge.X, ax=axes[0])
plot.latent_map(som, ridge.X, ax=axes[1])
plot.u_matrix(som, ridge.X, ax=axes[2])
for ax, words in zip(axes, ("GTM: magnification factor", "SOM: magnification factor", "SOM: U-matrix"), strict=True):
    ax.set_title(words, pad=12)

# %%
# Ellipses show in which direction either surface is stretched: across the ridge. The SOM draws its edge nodes inwards,
# because their neighbourhood reaches to one side only, which is the shrinkage of every kernel mean at a boundary; the
# GTM does not.

figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, model in zip(axes, (gtm, som), strict=True):
    plot.magnification(model, ax=ax)
    ax.set_title(f"{type(model).__name__}: directions of stretch", pad=12)

# %%
# Crabs
# -----
#
# Five lengths of 200 rock crabs of two colours, of either sex, freed of size. The sexes and the colours lie in corners
# of the map, and light valleys of the U-matrix hold what dark ranges part.

try:
    crabs = datasets.load_crabs()
except DataNotFoundError as error:  # the table does not come with prinfold
    print(error)
else:
    X, kinds = crabs.X, np.asarray(crabs.class_names)[crabs.labels]
    gtm, som = GTM(nodes=10, basis=4).fit(X), SOM(nodes=10).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    plot.latent_map(gtm, X, labels=kinds, ax=axes[0])
    plot.latent_map(som, X, labels=kinds, ax=axes[1])
    plot.u_matrix(som, X, labels=kinds, ax=axes[2])
    titles = "crabs, GTM: magnification factor", "crabs, SOM: magnification factor", "crabs, SOM: U-matrix"
    for ax, words in zip(axes, titles, strict=True):
        ax.set_title(words, pad=12)
        ax.get_legend().remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    for ax, model in zip(axes, (gtm, som), strict=True):
        plot.magnification(model, ax=ax)
        ax.set_title(f"crabs, {type(model).__name__}: directions of stretch", pad=12)

# %%
# Neighbourhoods that shrink
# --------------------------
#
# Training begins with a neighbourhood that is a quarter of the grid wide: the map is stiff, and lies flat in the middle
# of the data. As it narrows the map softens and bends into them. Where it ends is a choice: a narrower one leaves
# smaller distances from rows to nodes, and after a while a map that follows the noise. Above each map stand the mean
# distance from a row to its nearest node (quantisation error) and the share of rows whose two nearest nodes are no
# neighbours on the grid (topographic error).

figure, axes = plt.subplots(1, 4, figsize=(15, 4), layout="constrained", subplot_kw={"projection": "3d"})
for ax, width in zip(axes, (3.0, 1.5, 0.8, 0.4), strict=True):
    model = SOM(nodes=10, width=width).fit(ridge.X)
    ax.scatter(*ridge.X.T, s=3, color="#8c959f")
    for first, second in model.latent_.edges:
        ax.plot(*model.codebook_[[first, second]].T, color="#0072B2", lw=0.8)
    error, torn = model.quantization_error(ridge.X), model.topographic_error(ridge.X)
    ax.set_title(f"width {width:g}\nquantisation {error:.2f}, topographic {torn:.0%}", fontsize=9, y=0.97)
    ax.set_axis_off()
    ax.set_box_aspect(None, zoom=1.5)
    ax.view_init(20, -70)

# %%
# Hexagons and tori
# -----------------
#
# On a hexagonal grid every node has six neighbours, all equally far. Round a torus the grid has no edge, and every node
# has as many neighbours; the cells beyond the last node join it to the first.

ring = datasets.make_torus(800, rng=0)
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
plot.u_matrix(SOM(nodes=hexagons(10, 11)).fit(ridge.X), ridge.X, ax=axes[0])
plot.u_matrix(SOM(nodes=(16, 8), latent="torus", grid="hexagonal").fit(ring.X), ax=axes[1])
for ax, words in zip(axes, ("ridge, hexagons", "torus, hexagons without an edge"), strict=True):
    ax.set_title(words, pad=12)
plt.show()
