"""
Principal trees
===============

A tree through the middle of rows in twenty columns: centres that rows are softly assigned to, held together by their
minimum spanning tree. What does not stand out of the noise is no branch.
"""

# %%
# Four leaves in twenty columns
# -----------------------------
#
# On the left rows are coloured by the branch that they were drawn from, which the method does not know, nor how many
# there are; on the right by the branch that they are nearest to.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import PrincipalTree, datasets, plot
from prinfold.expression import TreeOfCounts, association

data = datasets.make_tree(1000, noise=0.1, rng=4, topology="four", n_features=20)
model = PrincipalTree().fit(data.X)
print(f"noise {model.noise_:.3f}, bandwidth {model.bandwidth_:.3f}, in {len(model.components_)} components")
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot.surface(model, data.X, labels=data.names, ax=left)
where = model.locate(data.X)
plot.surface(model, data.X, labels=[f"found {b}" for b in where.branch], ax=right)

# %%
# Trees, rings, loops and pieces
# ------------------------------
#
# ``topology=`` says what to look for.

figure, axes = plt.subplots(1, 4, figsize=(16, 4.2), layout="constrained")
wanted = (("five", "tree"), ("ring", "ring"), ("lasso", "graph"), ("two", "forest"))
for (shape, topology), ax in zip(wanted, axes, strict=True):
    some = datasets.make_tree(800, noise=0.08, rng=3, topology=shape, n_features=10)
    fitted = PrincipalTree(topology).fit(some.X)
    plot.surface(fitted, some.X, ax=ax)
    ax.set_title(f"{topology}: {fitted.graph_.latent.n_branches} branches")

# %%
# Background
# ----------
#
# Rows strewn all about bend a tree. A trimming radius leaves them out.

rng = np.random.default_rng(0)
strewn = np.vstack([data.X, data.X.mean(axis=0) + rng.uniform(-2, 2, (150, 20))])
figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
for trim, ax in zip((None, 1.2), axes, strict=True):
    fitted = PrincipalTree(trim=trim).fit(strewn)
    away = np.sqrt(fitted.projection_error(data.clean))
    plot.surface(fitted, data.X, ax=ax)
    ax.set_title(f"trim={trim}: {away:.2f} from the true tree")

# %%
# How sure are the branches?
# --------------------------
#
# Trees of rows drawn anew say how often each branch is found again.

for length, share in zip(model.latent_.lengths, model.support(data.X, n_samples=20, random_state=0), strict=True):
    print(f"a branch {length:.2f} long: found again in {share:.0%}")

# %%
# A root, and times from it
# -------------------------
#
# With a root every row has a time. A dendrogram lays the branches out along it, and rows in the colours of any column.

rooted = PrincipalTree(root=data.pseudotime < 0.1).fit(data.X)
figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
plot.dendrogram(rooted, data.X, labels=data.names, ax=left)
found = rooted.trajectory(data.X)
plot.dendrogram(rooted, data.X, values=found.pseudotime_sd, value_name="standard deviation of the time", ax=right)

# %%
# Genes along a lineage
# ---------------------
#
# Counts of eighty genes in six hundred cells. Times are found from one half of the thinned counts, and genes tested on
# the other. They stand in the order in which they peak.

cells = datasets.make_tree(600, 0.1, rng=0, topology="y", n_features=80, lengths=8.0, counts=5.0)
recipe = TreeOfCounts(root=cells.pseudotime < 0.5, n_components=10)
genes = association(cells.X, recipe, random_state=0)
print(f"{(genes.q_value < 0.01).sum()} of {len(genes.names)} genes change")
plot.gene_curves(genes, most=24)

plt.show()
