"""
Streams and large data
======================

EM needs sums over rows and nothing else of them. Sums can be kept for each block of rows, or forget what was long ago,
and then the surface moves after every block and not only after all of them: in fewer passes over a table, and with
rows that come one after the other and are never seen again.
"""

# %%
# Fewer passes
# ------------
#
# The same map of the same rows by three trainers. Batch EM looks at all rows before it moves the surface;
# incremental EM moves it after each of ten blocks, with the newest sums of all of them; online EM after each of some
# fifty, with sums that forget. Each block is scored when it is visited, before anything is learned from it. The
# dot at the end is the true value: training ends with one E-step over all rows.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, Online, datasets

data = datasets.make_pipe_flow(3000, rng=0)
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for trainer, color in (("batch", "#888888"), ("incremental", "#1f6f8b"), ("online", "#c8553d")):
    model = GTM(nodes=15, basis=6, trainer=trainer, max_iter=30, tol=0, random_state=0).fit(data.X)
    values = model.history_["log_likelihood"]
    ax.plot(np.arange(1, 30), values[1:-1], color=color, label=trainer)
    ax.plot(30, values[-1], "o", color=color)
ax.set_xlabel("passes over the rows")
ax.set_ylabel("log-likelihood of a row")
ax.legend()

# %%
# Rows that come and go
# ---------------------
#
# :meth:`~prinfold.GTM.partial_fit` learns from a block of rows and keeps nothing but sums; the first five hundred rows
# are gathered and fitted, to begin with. What the history has of each
# block is its score before it was learned from, so that it is a score on new rows all along. The line is what
# batch EM makes of 20 000 rows that it may look at a hundred times.

stream, seen = GTM(nodes=15, basis=6, random_state=0), []
for seed in range(100):
    stream.partial_fit(datasets.make_pipe_flow(200, rng=1000 + seed).X)
    seen.append(200 * (seed + 1))

held = datasets.make_pipe_flow(20_000, rng=1).X
batch = GTM(nodes=15, basis=6, max_iter=100, tol=0, random_state=0).fit(held)
fresh = datasets.make_pipe_flow(2000, rng=2).X
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
scores = stream.history_["log_likelihood"][-97:]  # what came before was the fit to the first rows
ax.plot(seen[-97:], scores, ".", color="#c8553d", label="each block, before it is learned from")
ax.axhline(batch.score(fresh), color="#888888", label="new rows by batch EM")
ax.plot(seen[-1], stream.score(fresh), "o", color="#c8553d", ms=9, mec="white", label="new rows by the stream")
ax.set_xlabel("rows seen")
ax.set_ylabel("log-likelihood of a row")
ax.legend(loc="lower right")

# %%
# Rows that drift
# ---------------
#
# An arc that turns a little with every row. A plain average stays with all rows so far; a constant step forgets all but
# the last few hundred rows here, and follows the arc.


def arc(n, angle, rng):
    """Rows on half a circle, turned."""
    along = rng.uniform(0, np.pi, n)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.column_stack([np.cos(along), np.sin(along) - 0.5]) @ turn + 0.05 * rng.standard_normal((n, 2))


rng = np.random.default_rng(0)
makers = {"a plain average": Online(100, decay=1.0), "a constant step": Online(100, step=0.3)}
figure, axes = plt.subplots(2, 3, figsize=(10, 6.6), layout="constrained", sharex=True, sharey=True)
models = {name: GTM(1, nodes=30, basis=8, trainer=online) for name, online in makers.items()}
for column, (begin, end) in enumerate(((0, 10), (10, 60), (60, 110))):
    for angle in np.linspace(0, 2.0, 110)[begin:end]:
        rows = arc(100, angle, rng)
        for model in models.values():
            model.partial_fit(rows)
    for ax, (name, model) in zip(axes[:, column], models.items(), strict=True):
        ax.plot(*rows.T, ".", ms=4, color="#999999")
        ax.plot(*model.mesh().vertices.T, color="#c8553d", lw=2)
        ax.set_title(f"{name}, {100 * end} rows")
        ax.set_aspect("equal")

plt.show()
