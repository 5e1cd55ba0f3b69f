"""
A report
========

One page about a fitted model: what was fitted and why, the map, the surface among the data, which rows lie off it, and
what to be careful about. It is a single file without server or network.
"""

# %%
# Iris flowers, in the units of the table
# ---------------------------------------
# The warnings come first, in words. In the view of data space three columns can be chosen, and dragging turns it;
# ``path`` writes the page to a file.

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, cite, datasets, report

iris = datasets.load_iris()
model = make_pipeline(StandardScaler(), GTM(nodes=12, basis=4, random_state=0)).fit(iris.X)
report(model, iris.X, path=None, labels=iris.names, title="Iris")

# %%
# What to cite
# ------------
# The page ends with what the model rests on, which ``cite`` gives for any model.

print(cite(model))
