"""
Comparing methods
=================

Every method on the same folds: why the lowest held-out error is not the best surface, and what is recommended instead.
"""

# %%
# One call
# --------
#
# Rows about a half circle. Each method is fitted five times, without a fifth of the rows, and measured on them. The
# table shows the results, and the text below the recommendation and how certain it is.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, UKR, compare, datasets, plot
from prinfold.exceptions import PrinfoldWarning

warnings.simplefilter("ignore", PrinfoldWarning)  # some of these curves are bad maps, and say so

data = datasets.make_half_circle(120, 0.15, rng=0)
methods = ["GTM", "PPS", "UKR", "KMM", "DensityRidge", "PCA", "Isomap"]
found = compare(data.X, methods, n_components=1)
print(found)

# %%
# The front of error against roughness
# ------------------------------------
#
# Rough curves have the lowest errors on held-out rows: some part of a curve that wanders through the cloud is close
# to every row. The recommendation uses the likelihood of held-out rows under kernels at the projections of the
# training rows. Filled marks are within one standard error of the recommended method.

plot.comparison_front(found)

# %%
# The lowest error, and what is recommended
# -----------------------------------------
#
# Beside the true half circle. The number is the root mean squared distance from the curve to the truth, where rows
# project to. The two baselines of scikit-learn have no curve to draw.

drawn = [hasattr(candidate.model, "mesh") for candidate in found.candidates]
lowest = int(np.nanargmin(np.where(drawn, found.table["error"], np.nan)))
models = {
    f"lowest error:\n{found.names[lowest]}": found.candidates[lowest].model.fit(data.X),
    f"recommended:\n{found.recommended.name}": found.recommended.model,
}
truth = data.surface.mesh().vertices
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    off = np.sqrt(np.mean(data.surface.distance(model.project(data.X)) ** 2))
    mesh = model.mesh()
    ax.plot(*data.X.T, ".", color="0.75")
    ax.plot(*truth.T, "--", color="0.3", label="truth")
    for i, segment in enumerate(mesh.vertices[mesh.faces]):
        ax.plot(*segment.T, color="#D55E00", lw=1.6, label="fitted" if i == 0 else None)
    ax.set(title=f"{name}\noff by {off:.3f}", aspect="equal")
axes[0].legend()

# %%
# Criteria side by side
# ---------------------
#
# The same four curves by three criteria: held-out errors put the wildest first.

four = [
    ("stiff", GTM(1, width=2.0, regularization=1.0)),
    ("GTM", GTM(1, prior_precision="evidence")),
    ("loose", GTM(1, width=0.5, regularization=1e-3)),
    ("wild", UKR(1, stop="minimum")),
]
for criterion in ("likelihood", "thinned", "error"):
    judged = compare(data.X, four, n_components=1, criterion=criterion)
    print(f"{criterion:>10}: {' < '.join(judged.names[i] for i in judged.ranking())}")
plt.show()
