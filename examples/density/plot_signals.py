"""
Signals freed of noise
======================

A noisy signal is a cloud of points about a curve in the plane of time and value, and the curve can be sought as the
ridge of their density: the principal curve. For which signals does that do well, and what is the unit of time in which
time and value can share one bandwidth?
"""

# %%
# Waves and blocks
# ----------------
#
# On the left waves, on the right blocks with sharp edges, both with noise of a tenth of their standard deviation.
# The principal curve smooths everywhere alike, over as many samples as predict each other best: many for the waves, few
# where edges have to be kept, at the cost of the flat parts between them.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import denoise_signal

ORANGE, GREEN = "#D55E00", "#009E73"


def waves(u):
    return np.sin(2 * np.pi * u) + 0.5 * np.sin(5 * np.pi * u)


def blocks(u):
    places, jumps = np.array([0.1, 0.25, 0.4, 0.65, 0.78]), np.array([2.0, -3.0, 2.5, -3.5, 2.0])
    return (jumps * (u[:, None] >= places)).sum(axis=1)


def noisy(signal, n, decibels=10.0, seed=0):
    """Times, the truth, and samples with noise; the ratio of their powers in decibels."""
    u = np.arange(n) / n
    clean = signal(u)
    return u, clean, clean + clean.std() / 10 ** (decibels / 20) * np.random.default_rng(seed).normal(size=n)


figure, axes = plt.subplots(1, 2, figsize=(11, 3.2), sharex=True, layout="constrained")
for ax, signal in zip(axes, (waves, blocks), strict=True):
    u, clean, x = noisy(signal, 512, decibels=20)
    found = denoise_signal(x)
    left = np.square(found.signal - clean).mean() / np.square(x - clean).mean()
    ax.plot(u, x, ".", color="0.75", ms=3)
    ax.plot(u, clean, color="black", lw=1)
    ax.plot(u, found.signal, color=ORANGE, lw=1.5)
    ax.set_title(f"{signal.__name__}: {left:.0%} of the noise left")

# %%
# The unit of time
# ----------------
#
# One bandwidth for time and value needs a unit in which the two compare. Values are in standard deviations of the
# signal, and ``time_step`` says how many of those a step from sample to sample counts for. Orange points are the
# samples as the ridge of their own density has drawn them in, with the bandwidth that makes them likeliest.
#
# With the whole signal squeezed into one unit of time, the bandwidth is far smaller than the noise: points gather in
# clumps where they are, and there is no curve. With steps of 0.1 the ridge is a curve, but samples off it keep to
# themselves. With steps of 1 it is one again, which follows every two or three samples. The last picture has the same
# steps and the bandwidth with which each value is predicted best by the others, which is the default.

u, clean, x = noisy(waves, 256)
panels = {
    "all time is 1": {"time_step": 1 / 255, "bandwidth": "likelihood"},
    "steps of 0.1": {"time_step": 0.1, "bandwidth": "likelihood"},
    "steps of 1": {"bandwidth": "likelihood"},
    "steps of 1, predicting": {},
}
figure, axes = plt.subplots(1, 4, figsize=(14, 3.2), sharey=True, layout="constrained")
for ax, (name, options) in zip(axes, panels.items(), strict=True):
    found = denoise_signal(x, time=u, **options)
    left = np.square(found.signal - clean).mean() / np.square(x - clean).mean()
    ax.plot(u, x, ".", color="0.75", ms=3)
    ax.plot(u, clean, color="black", lw=1)
    ax.plot(*found.points.T, ".", color=ORANGE, ms=4)
    ax.set_title(f"{name}\nbandwidth {found.bandwidth:.2g}, {left:.0%} left")

# %%
# More samples
# ------------
#
# Remaining noise against the number of samples. The likelihood bandwidth stays near one sample, so that more samples
# remove no more noise, and the same holds for twice that bandwidth. The bandwidth by prediction grows with the number
# of samples.

sizes, draws = (32, 64, 128, 256, 512), 10
ways = {
    "ridge, likeliest bandwidth": (ORANGE, {"bandwidth": "likelihood"}),
    "ridge, twice that": (GREEN, None),
    "ridge, predicting bandwidth": ("#CC79A7", {}),
}
left = {name: np.zeros((len(sizes), draws)) for name in ways}
for i, n in enumerate(sizes):
    for seed in range(draws):
        _, clean, x = noisy(waves, n, seed=[seed, n])
        likeliest = denoise_signal(x, bandwidth="likelihood").bandwidth
        for name, (_, options) in ways.items():
            found = denoise_signal(x, **({"bandwidth": 2 * likeliest} if options is None else options))
            left[name][i, seed] = np.square(found.signal - clean).mean() / np.square(x - clean).mean()

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name, (color, _) in ways.items():
    logs = np.log(left[name])
    mean, error = logs.mean(axis=1), logs.std(axis=1, ddof=1) / np.sqrt(draws)
    ax.plot(sizes, 100 * np.exp(mean), ".-", color=color, label=name)
    ax.fill_between(sizes, 100 * np.exp(mean - error), 100 * np.exp(mean + error), color=color, alpha=0.2, lw=0)
ax.set(
    xscale="log", yscale="log", xlabel="samples", ylabel="noise left, per cent", xticks=sizes, yticks=(5, 10, 20, 50)
)
ax.set_xticks([], minor=True)
ax.set_xticklabels(sizes)
ax.set_yticks([], minor=True)
ax.set_yticklabels([5, 10, 20, 50])
ax.legend(frameon=False)

# %%
# Samples at any time
# -------------------
#
# The ridge asks for no grid. Here samples come at random, some twenty at the same moment, and none for a while.

rng = np.random.default_rng(1)
time = np.concatenate([rng.uniform(0.0, 0.45, 90), np.full(20, 0.6), rng.uniform(0.6, 1.0, 90)])
x = waves(time) + 0.25 * rng.normal(size=200)
found = denoise_signal(x, time=time)
order = np.argsort(time)
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.plot(time, x, ".", color="0.75")
ax.plot(u, waves(u), color="black", lw=1)
ax.plot(time[order], found.signal[order], ".-", color=ORANGE, ms=4, lw=1)
ax.set_title(f"noise of 0.25, found {found.noise:.2f}")
plt.show()
