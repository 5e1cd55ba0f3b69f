"""
The explorer
============

A page on which to move over a map and see, live and in the units of the data, what the surface is like there. It needs
neither server nor network: the map is evaluated in the browser.
"""

# %%
# A map of handwritten digits, whose columns are the pixels of an image
# ---------------------------------------------------------------------
# Move over the map to see the digit that the surface has there; click a row to see it beside.

from prinfold import GTM, datasets, explore

digits = datasets.load_digits()
model = GTM(nodes=16, basis=6, max_iter=60, tol=1e-3, random_state=0).fit(digits.X)
explore(model, digits.X, path=None, labels=digits.target, image_shape=(8, 8), title="Handwritten digits")

# %%
# The same in the units of the table, with names
# ----------------------------------------------
# The columns of a table have their names, and a scaler before the model is undone. ``path`` writes the page to a file.

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

iris = datasets.load_iris()
scaled = make_pipeline(StandardScaler(), GTM(nodes=12, basis=4, random_state=0)).fit(iris.X)
explore(scaled, iris.X, path=None, labels=iris.names, title="Iris")
