"""
Handwritten digits on a map
===========================

1797 images of handwritten digits, 64 pixels each, laid out on one surface: where each image lies, and what the
surface itself looks like.
"""

# %%
# The map and what is behind it
# -----------------------------
#
# Left: each image at its place on the map, coloured by the digit that was written, which the fit did not see.
# Right: the surface itself, drawn as an image at each place, including places where no image was.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, datasets, plot

digits = datasets.load_digits()
model = GTM(random_state=0).fit(digits.X)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.7), layout="constrained")
plot.latent_map(model, digits.X, labels=digits.names, background=None, ax=left)
plot.images(model, (8, 8), n=16, cmap="Blues", ax=right)
for ax in (left, right):
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
left.set_xlabel("1797 images of handwritten digits, each at its place on the map")
right.set_xlabel("the fitted surface at each place of the map")

# %%
# From one digit to another
# -------------------------
#
# A straight line over the map is a path over the surface. Its points are images between the two ends.

start, end = model.transform(digits.X[[0, 6]])
along = np.linspace(start, end, 10)
figure, axes = plt.subplots(1, 10, figsize=(11, 1.3), layout="constrained")
for ax, image in zip(axes, model.inverse_transform(along), strict=True):
    ax.imshow(image.reshape(8, 8), cmap="Blues")
    ax.axis("off")
plt.show()
