"""
Watching a process from a surface
=================================

A pipe is watched through twelve beams. A surface is fitted to rows of a time when all was well; then a sensor begins
to drift. Two charts, as process engineers know them, but on a surface: how far a row is from it (like SPE), and how
rare its place on it is (like T²). Limits come from rows held out, so that false alarms come at the rate asked for.
"""

# %%
# All is well
# -----------
#
# About one in a hundred of the new rows should be an alarm. The broken line is the limit computed from the model
# alone: it underestimates the noise of new rows and would give too many false alarms.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, SurfaceMonitor, datasets, plot

usual = datasets.make_pipe_flow(1000, rng=0).X
new = datasets.make_pipe_flow(1000, rng=1).X

watch = SurfaceMonitor(GTM(nodes=24, basis=9, max_iter=400, random_state=0), alarm_rate=0.01).fit(usual)
p, own = watch.p_values(new), watch.p_values(new, by="model")
print(f"false alarms: {np.mean(p.density <= 0.01):.1%}, and {np.mean(own.density <= 0.01):.1%} by the model alone")

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5.6), layout="constrained")
plot.monitor(watch, new[:300], chart="off", ax=top)
plot.monitor(watch, new[:300], chart="along", ax=bottom)

# %%
# A sensor drifts
# ---------------
#
# From the hundredth row on, beam 5 gradually loses its sensitivity. Its own values are not unusual, but they no
# longer fit those of the other beams.

drift = new[:400].copy()
drift[100:, 4] *= np.linspace(1.0, 0.2, 300)
alarm = watch.predict(drift) == -1

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5.6), layout="constrained")
plot.monitor(watch, drift, chart="density", ax=top)
top.axvline(100, color="0.6", lw=0.8)
plot.contributions(watch, drift[alarm], ax=bottom)

print("\n".join(watch.report(drift[alarm][:3])))

# %%
# Are p-values what they say?
# ---------------------------
#
# A p-value below α should come up in a share α of usual rows. With heavy tails (Student's t with three degrees of
# freedom about a bent sheet) the model's own p-values are far too small; those of rows held out are right.

rng = np.random.default_rng(0)


def sheet(n):
    u, v = rng.uniform(-1, 1, (2, n))
    return np.stack([2 * u, 2 * v, u**2, u * v, np.sin(2 * v)], axis=1) + 0.1 * rng.standard_t(3, (n, 5))


heavy = SurfaceMonitor(GTM(nodes=14, basis=5, max_iter=400, random_state=0)).fit(sheet(800))
later = sheet(4000)

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
level = np.geomspace(0.002, 1, 100)
for ax, (name, model, rows) in zip(axes, (("pipe flow", watch, new), ("heavy tails", heavy, later)), strict=True):
    for by, color in (("calibration", "#0072B2"), ("model", "#D55E00")):
        values = model.p_values(rows, by=by).density
        ax.plot(level, [np.mean(values <= each) for each in level], color=color, label=f"by {by}")
    ax.plot(level, level, color="0.6", lw=0.8)
    ax.set(xscale="log", yscale="log", xlabel="nominal rate", ylabel="false alarms seen", title=name)
    ax.legend(fontsize=8)
plt.show()
