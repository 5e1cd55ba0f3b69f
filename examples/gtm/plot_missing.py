"""
Missing cells and known errors
==============================

Tables have gaps, and some numbers are known better than others. A GTM takes both as they are: it learns from what was
measured, trusts each cell as far as its error allows, and says what missing cells may have been, and how sure it is.
"""

# %%
# A fifth of a table missing
# --------------------------
#
# Pipe flow: twelve gamma-ray densitometers, three kinds of flow. On the left the map of complete rows; on the right a
# fifth of all cells were taken out at random before the fit. The kinds lie where they lay.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, datasets

data = datasets.make_pipe_flow(1000, rng=0)
holes = np.random.default_rng(0).uniform(size=data.X.shape) < 0.2
X = np.where(holes, np.nan, data.X)

whole, gappy = (GTM(nodes=20, basis=8, random_state=0).fit(table) for table in (data.X, X))
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, model, table, words in ((axes[0], whole, data.X, "complete"), (axes[1], gappy, X, "20 % missing")):
    Z = model.transform(table)
    for label in np.unique(data.labels):
        ax.plot(*Z[data.labels == label].T, ".", ms=4, label=f"flow {label + 1}")
    ax.set_title(words)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %%
# What was in the gaps
# --------------------
#
# :meth:`~prinfold.GTM.impute` fills in the expectation of each missing cell given what was measured of its row, and
# tells its spread. Where the rest of a row says little the spread is wide; of the bars, two standard deviations to
# either side, about 95 % should cross the diagonal.

filled, spread = gappy.impute(X, return_std=True)
truth, guess, width = data.X[holes], filled[holes], 1.96 * spread[holes]
some = np.random.default_rng(1).permutation(len(truth))[:300]
figure, ax = plt.subplots(figsize=(5.5, 5.5), layout="constrained")
ax.errorbar(truth[some], guess[some], width[some], fmt=".", ms=4, lw=0.6, color="#1f6f8b", ecolor="#1f6f8b66")
ends = [truth.min(), truth.max()]
ax.plot(ends, ends, color="black", lw=0.8)
ax.set_xlabel("true value (removed)")
ax.set_ylabel("imputed value")
ax.set_title(f"{np.mean(np.abs(guess - truth) < width):.0%} of {len(truth)} gaps within 1.96 standard deviations")

# %%
# Errors that are known
# ---------------------
#
# A curve in two columns. A third of its rows were measured far worse than the others, and whoever measured them knows
# which: their errors are drawn as bars. Told of the errors, the fit hardly follows the bad rows, and what it calls
# noise is that of the curve itself.

rng = np.random.default_rng(3)
u = np.sort(rng.uniform(-1, 1, 150))
clean = np.stack([u, 0.7 * np.cos(3 * u)], axis=1)
errors = np.where(rng.uniform(size=len(u)) < 1 / 3, 0.3, 0.04)
table = clean + (errors * rng.standard_normal((2, len(u)))).T + 0.02 * rng.standard_normal(clean.shape)

settings = {"nodes": 25, "basis": 8, "max_iter": 500, "regularization": 0.1, "init": u[:, None]}
told, without = GTM(1, **settings).fit(table, errors=errors), GTM(1, **settings).fit(table)
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.errorbar(*table.T, errors, errors, fmt=".", ms=3, lw=0.4, color="#999999", zorder=0)
ax.plot(*clean.T, color="black", lw=1, label="truth")
for model, color, words in ((told, "#1f6f8b", "with known errors"), (without, "#d1495b", "without")):
    noise = model.noise_variance_**0.5
    ax.plot(*model.mesh(300).vertices.T, color=color, lw=2.5, label=f"{words}: noise {noise:.2f}")
ax.set_xlim(-1.5, 1.5)
ax.set_ylim(-1.4, 1.4)
ax.legend()
