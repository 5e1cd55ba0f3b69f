"""
Classes and numbers as landscapes over a map
============================================

A map of pipe flows knows nothing of flow regimes or of how much oil is in the pipe. Laid over it, what is known of the
rows makes a landscape: at each node the classes or numbers of the rows that lie there. The landscape is a classifier
and a regressor too, and says where no data support it.
"""

# %%
# A class landscape
# -----------------
#
# Twelve beams through a pipe with oil, gas and water; three flow regimes. A node is coloured by its most likely
# regime, paler where it is less sure, and stays blank where no row lies.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, GTMClassifier, GTMRegressor, datasets, plot

seen = datasets.make_pipe_flow(1000, rng=0)
new = datasets.make_pipe_flow(1000, rng=1)

surface = GTM(nodes=24, basis=9, max_iter=400, random_state=0)
classifier = GTMClassifier(surface).fit(seen.X, seen.names)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
plot.landscape(classifier, seen.X, show_rows=True, ax=left)
plot.landscape(classifier, show="annular", ax=right)
right.set_title("one class alone", fontsize=10)

print(f"{classifier.score(new.X, new.names):.1%} of new rows get their regime")

# %%
# A property landscape, with its spread
# -------------------------------------
#
# The fraction of oil was not measured: the regressor learns it from rows in which it is known.

oil = seen.fractions[:, 0]
regressor = GTMRegressor(surface).fit(seen.X, oil)

figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
plot.landscape(regressor, value_name="fraction of oil", ax=axes[0])
plot.landscape(regressor, show="spread", ax=axes[1])
plot.landscape(regressor, show="mass", ax=axes[2])

# %%
# How far off?
# ------------
#
# The deviation that comes with a prediction is the error of training rows at the same nodes, each predicted without
# itself; so it holds for new rows.

mean, deviation = regressor.predict(new.X, return_std=True)
true = new.fractions[:, 0]
held = np.mean(np.abs(true - mean) < 1.645 * deviation)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.errorbar(true[:150], mean[:150], deviation[:150], fmt="o", ms=3, lw=0.6, color="#0072B2", ecolor="#c6dbec")
left.axline((0.5, 0.5), slope=1, color="0.5", lw=0.8)
left.set(
    xlabel="true fraction of oil", ylabel="predicted, ± one deviation", title=f"{held:.0%} within 1.645 deviations"
)
order = np.argsort(-deviation)
rest = np.sqrt(np.cumsum(((true - mean) ** 2)[order][::-1])[::-1] / np.arange(len(true), 0, -1))
right.plot(np.arange(900) / len(true), rest[:900], color="#0072B2")
right.set(xlabel="share of the least certain rows left out", ylabel="error of the others", ylim=(0, None))

# %%
# Along a curve
# -------------
#
# On a map of one dimension the landscape is a line with bands: one standard error, and the spread between rows.

ring = datasets.make_circle(400, rng=0)
angle = np.arctan2(ring.X[:, 1], ring.X[:, 0])
amount = np.sin(2 * angle) + 0.3 * np.random.default_rng(0).normal(size=len(angle))
known = np.where(np.abs(angle) < 2.4, amount, np.nan)  # nothing is known on one side
wire = GTM(1, latent="circle", nodes=40, basis=8, random_state=0).fit(ring.X)
plot.landscape(wire, ring.X, known, value_name="amount")
plt.show()
