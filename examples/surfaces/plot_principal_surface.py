"""
Principal surfaces
==================

Hastie and Stuetzle's principal curves, with a smoother in two dimensions: rows are projected on the surface, and every
column is smoothed as a function of where they are, in turn.
"""

# %%
# A bent sheet
# ------------
#
# How stiff the surface is is chosen at every step by cross-validation, and never less than before. The start is the
# principal plane or Isomap, by which of the two a first surface tells more of the rows. On the right what is left of
# the variance, step by step.

from matplotlib import pyplot as plt

from prinfold import PrincipalSurface, datasets, plot

data = datasets.make_thesis_surface(400, noise=0.15, sampling="parameter", rng=0)
model = PrincipalSurface().fit(data.X)

figure = plt.figure(figsize=(11, 4.8), layout="constrained")
parts = figure.add_gridspec(1, 2, width_ratios=(3, 2))
left, right = figure.add_subplot(parts[0], projection="3d"), figure.add_subplot(parts[1])
plot.surface(model, data.X[::3], ax=left)
right.plot([-100 * each for each in model.history_["objective"]], "o-")
right.set(xlabel="step", ylabel="share of the variance that is left, %", title=f"λ = {model.penalty_:.2g} in the end")

# %%
# More and less of a penalty
# --------------------------
#
# With the penalty given, a principal surface can be anything between a crumpled sheet and the principal plane. Its
# corners are where no row holds it: there a supple surface goes astray.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained", subplot_kw={"projection": "3d"})
for ax, penalty in zip(axes, (1e-5, 2e-3, 10.0), strict=True):
    fixed = PrincipalSurface(penalty=penalty, max_iter=10, tol=0).fit(data.X)
    plot.surface(fixed, data.X[::3], ax=ax)
    off = (data.surface.distance(fixed.project(data.X)) ** 2).mean() ** 0.5
    ax.set_title(f"λ = {penalty:g}: {off:.3f} off the truth", fontsize=10, y=0.95)
