"""
Sequences: a walk over a map
============================

Joint angles of a figure that walks, frame by frame, with more noise than a single frame can tell through. A GTM looks
at each frame for itself; :class:`~prinfold.GTMSequence` knows that a frame lies near the one before.
"""

# %%
# Frames of a walk
# ----------------
#
# Twelve angles in six sequences of different lengths. The upper figures are drawn from the angles without noise, the
# lower ones from what is given to the models.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, GTMSequence, datasets
from prinfold.exceptions import PrinfoldWarning

data = datasets.make_motion(800, noise=0.3, rng=0)
X, lengths, phase = data.X, data.lengths, data.latent[:, 0]
SEQUENCE = np.repeat(np.arange(len(lengths)), lengths)
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def limbs(row):
    """Lines (2, points) of a figure seen from the side, walking to the right."""
    angle = dict(zip(data.feature_names, row, strict=True))
    hip, lean = np.zeros(2), angle["trunk"]
    neck = hip + 0.55 * np.array([np.sin(lean), np.cos(lean)])
    lines = {"body": [hip, neck, neck + [0.2 * np.sin(lean), 0.2]]}
    for side in ("left", "right"):
        thigh = angle[f"{side}_hip"]
        shin = thigh - angle[f"{side}_knee"]
        knee = hip + 0.45 * np.array([np.sin(thigh), -np.cos(thigh)])
        heel = knee + 0.45 * np.array([np.sin(shin), -np.cos(shin)])
        foot = shin + angle[f"{side}_ankle"]
        lines[f"{side} leg"] = [hip, knee, heel, heel + 0.16 * np.array([np.cos(foot), np.sin(foot)])]
        arm = angle[f"{side}_shoulder"]
        fore = arm + angle[f"{side}_elbow"]
        elbow = neck + 0.3 * np.array([np.sin(arm), -np.cos(arm)])
        lines[f"{side} arm"] = [neck, elbow, elbow + 0.28 * np.array([np.sin(fore), -np.cos(fore)])]
    return {name: np.array(points).T for name, points in lines.items()}


def draw(ax, rows, title):
    """Figures side by side."""
    for step, row in enumerate(rows):
        for name, (x, y) in limbs(row).items():
            color = BLUE if name.startswith("left") else ORANGE if name.startswith("right") else "0.3"
            ax.plot(x + 0.9 * step, y, color=color, lw=2, solid_capstyle="round")
    ax.set(title=title, aspect="equal")
    ax.axis("off")


figure, axes = plt.subplots(2, 1, figsize=(9.6, 4.6), layout="constrained")
draw(axes[0], data.clean[:24:3], "without noise, every third frame")
draw(axes[1], X[:24:3], "as given")

# %%
# Where in the cycle is each frame?
# ---------------------------------
#
# Both models have a circle for a latent space. A single frame is soon mistaken for another: with so much noise the GTM
# is off by a tenth of a cycle, and puts some frames on the wrong side of it altogether. The frames before and after
# settle the matter.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # many of the GTM's posteriors have two modes, of which it warns
    plain = GTM(latent="circle", nodes=50, random_state=0).fit(X)
walk = GTMSequence(latent="circle", nodes=50, random_state=0).fit(X, lengths=lengths)


def aligned(Z):
    """An angle turned, and mirrored if need be, to go with the true phase, and how far it is off in degrees."""
    found = []
    for sign in (1, -1):
        gap = np.exp(1j * (sign * Z - phase))
        shift = np.angle(gap.mean())
        off = np.degrees(np.sqrt(np.mean(np.angle(gap * np.exp(-1j * shift)) ** 2)))
        found.append((off, np.angle(np.exp(1j * (sign * Z - shift)))))
    return min(found, key=lambda each: each[0])


figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, Z, name in (
    (axes[0], plain.transform(X)[:, 0], "GTM"),
    (axes[1], walk.transform(X, lengths=lengths)[:, 0], "GTMSequence"),
):
    off, angle = aligned(Z)
    ax.plot([-np.pi, np.pi], [-np.pi, np.pi], color="0.7", lw=1)
    ax.scatter(phase, angle, s=6, color=BLUE)
    ax.set(title=f"{name}: off by {off:.0f}°", xlabel="true phase", aspect="equal")
axes[0].set_ylabel("latent angle")

# %%
# One sequence through time
# -------------------------
#
# Posterior means given the whole sequence, and the likeliest path through the nodes. For thirty frames nothing was
# recorded; the walk is carried across by the frames on both sides, and the angles come back with a band of two standard
# deviations. Over so long a gap one path is a poor summary: the likeliest of all goes half round where the figure went
# round once and a half, while the means and the spread about them add up all paths.

gappy = X.copy()
missing = slice(40, 70)
gappy[missing] = np.nan
first = slice(0, int(lengths[0]))
filled, spread = walk.impute(gappy, lengths=lengths, return_std=True)
means, path = walk.transform(gappy, lengths=lengths)[:, 0], walk.paths(gappy, lengths=lengths).latent[:, 0]

figure, axes = plt.subplots(2, 1, figsize=(9.6, 5.6), layout="constrained", sharex=True)
time = np.arange(lengths[0])
axes[0].axvspan(missing.start, missing.stop, color="0.92")
axes[0].scatter(time, path[first], s=16, color=GREEN, marker="_", label="likeliest path")
axes[0].scatter(time, means[first], s=7, color=BLUE, label="posterior mean")
axes[0].set(ylabel="latent angle", title="a gap of thirty frames", ylim=(-3.5, 4.8))
axes[0].legend(frameon=False, loc="upper right", ncols=2)
knee = data.feature_names.index("left_knee")
axes[1].axvspan(missing.start, missing.stop, color="0.92")
axes[1].scatter(time, X[first, knee], s=7, color="0.6", label="recorded, or left out in the gap")
axes[1].plot(time, data.clean[first, knee], color=ORANGE, lw=1.5, label="truth")
gap = np.arange(missing.start, missing.stop)
axes[1].plot(gap, filled[gap, knee], color=BLUE, lw=2, label="filled in")
band = filled[gap, knee] - 2 * spread[gap, knee], filled[gap, knee] + 2 * spread[gap, knee]
axes[1].fill_between(gap, *band, color=BLUE, alpha=0.15, lw=0)
axes[1].set(xlabel="frame", ylabel="left knee, radians", ylim=(None, 2.0))
axes[1].legend(frameon=False, loc="upper right", ncols=3)

# %%
# What the walk has learned
# -------------------------
#
# Steps of a node or two, all in one direction: time has one too. On the right, what a forecast from within a sequence
# expects of the knee, with a band of two standard deviations: the further ahead, the less is known of the phase.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained", width_ratios=(1, 1.6))
axes[0].bar(walk.moves_[:, 0], walk.move_shares_, color=BLUE)
axes[0].set(xlabel="nodes per frame", ylabel="share of steps", title=f"jumps: {walk.jump_:.1g} of the steps")
known = slice(0, int(lengths[0]) - 50)
mean, std = walk.forecast(X[known], 50, lengths=[known.stop], return_std=True)
ahead = np.arange(known.stop, known.stop + 50)
axes[1].plot(time[-90:], data.clean[first, knee][-90:], color=ORANGE, lw=1.5, label="truth")
axes[1].plot(ahead, mean[0, :, knee], color=BLUE, lw=2, label="forecast")
axes[1].fill_between(
    ahead, mean[0, :, knee] - 2 * std[0, :, knee], mean[0, :, knee] + 2 * std[0, :, knee], color=BLUE, alpha=0.15, lw=0
)
axes[1].axvline(known.stop, color="0.7", lw=1)
axes[1].set(xlabel="frame", ylabel="left knee, radians")
axes[1].legend(frameon=False, loc="upper left", ncols=2)

# %%
# New walks
# ---------
#
# Sequences drawn from the model, shown where the surface is, without the noise: the figure walks on.

drawn = walk.sample(1, length=40, random_state=1)
on_the_map = walk.inverse_transform(walk.transform(drawn)[0])
figure, ax = plt.subplots(figsize=(9.6, 2.6), layout="constrained")
draw(ax, on_the_map[:24:3], "a walk drawn from the model")
plt.show()
