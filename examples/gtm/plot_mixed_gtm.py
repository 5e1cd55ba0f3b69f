"""
Numbers, levels and counts on one map
=====================================

Tables seldom hold nothing but numbers. Here a questionnaire of ages, incomes, towns, yes-or-no answers and counts of
visits becomes one map, although a tenth of its cells is missing; and the map tells what they may have been.
"""

# %%
# A table of many kinds
# ---------------------
#
# Two hidden numbers stand behind every row: how far out someone lives, and how old they are.

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from prinfold import MixedGTM

rng = np.random.default_rng(0)
n = 800
out, old = rng.uniform(-1, 1, (2, n))
towns = np.array(["centre", "suburb", "village"])
utility = np.stack([-3 * out, 0.8 - out**2, 3 * out], axis=1) + rng.gumbel(size=(n, 3))
table = pd.DataFrame(
    {
        "age": np.round(48 + 25 * old + 3 * rng.standard_normal(n), 1),
        "distance": np.exp(1 + out + 0.3 * rng.standard_normal(n)),
        "home": towns[utility.argmax(axis=1)],
        "car": rng.uniform(size=n) < 1 / (1 + np.exp(-3 * out - 1)),
        "retired": rng.uniform(size=n) < 1 / (1 + np.exp(-12 * (old - 0.6))),
        "cinema": rng.poisson(np.exp(1.2 - 1.5 * old - 0.7 * out)),
        "doctor": rng.negative_binomial(2, 2 / (2 + np.exp(0.7 + 1.2 * old))),
    }
)
holes = rng.uniform(size=table.shape) < 0.1
holed = table.astype(object).mask(holes)
for name in ("age", "distance"):
    holed[name] = holed[name].astype(float)
for name in ("cinema", "doctor"):
    holed[name] = holed[name].astype("Int64")

model = MixedGTM(nodes=10, basis=5, random_state=0).fit(holed)
print(model.columns_)

# %%
# What lies where
# ---------------
#
# ``inverse_transform`` gives what to expect at any place: numbers, shares of levels, rates of counts.

side = np.linspace(-1, 1, 60)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
values = dict(zip(model.value_names(), model.inverse_transform(places).T, strict=True))
shown = ["age", "distance", "home=centre", "home=village", "car=True", "retired=True", "cinema", "doctor"]

figure, axes = plt.subplots(2, 4, figsize=(13, 6.2), layout="constrained", sharex=True, sharey=True)
for ax, name in zip(axes.flat, shown, strict=True):
    drawn = ax.pcolormesh(side, side, values[name].reshape(60, 60), cmap="cividis", shading="gouraud", rasterized=True)
    figure.colorbar(drawn, ax=ax, shrink=0.8)
    ax.set_title(name, fontsize=10)
    ax.set_aspect("equal")

# %%
# Rows on the map, gaps and all
# -----------------------------

Z = model.transform(holed)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for town in towns:
    left.scatter(*Z[(table["home"] == town).to_numpy()].T, s=9, label=town)
left.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.3, 1.0), ncols=3)
left.set_title("where people live", fontsize=10)
drawn = right.scatter(*Z.T, c=old, s=9, cmap="cividis")
figure.colorbar(drawn, ax=right, shrink=0.8, label="hidden variable (age)")
right.set_title("a variable that was not in the table", fontsize=10)
for ax in (left, right):
    ax.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")

# %%
# What the gaps may have been
# ---------------------------
#
# The likeliest level comes with its probability: of those that the map calls 80 % sure, about that many are right.

filled, spread = model.impute(holed, return_std=True)
sure, right_ones = [], []
for name in ("home", "car", "retired"):
    gaps = holes[:, table.columns.get_loc(name)]
    sure.append(spread[gaps, table.columns.get_loc(name)])
    right_ones.append((filled[name] == table[name]).to_numpy()[gaps])
sure, right_ones = np.concatenate(sure), np.concatenate(right_ones)
bins = np.array([0.3, 0.6, 0.75, 0.9, 1.0])
which = np.digitize(sure, bins[1:-1])
promised = [sure[which == i].mean() for i in range(4)]
kept = [right_ones[which == i].mean() for i in range(4)]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.plot([0.3, 1], [0.3, 1], color="0.7", lw=1)
left.plot(promised, kept, "o-")
left.set(xlabel="predicted probability", ylabel="observed share", title="imputed levels", aspect="equal")
gaps = holes[:, 0]
right.errorbar(table["age"][gaps], filled["age"][gaps], spread[gaps, 0], fmt="o", ms=3, lw=0.6, alpha=0.8)
right.axline((50, 50), slope=1, color="0.7", lw=1)
right.set(xlabel="true age (removed)", ylabel="imputed age ± standard deviation", title="imputed numbers")
print(f"{right_ones.mean():.0%} of the levels taken away come back")
