"""
The command line
================

From a table in a file to a map, without a line of Python; here the commands are called from a script, so that their
results can be drawn. In a terminal the same is ``prinfold fit wine.csv --label cultivar`` and so on.
"""

# %%
# A table as people have it
# -------------------------
# Thirteen measurements of wines, in units so different that the largest would drown the others, and a column of text.

import csv
import tempfile
from pathlib import Path

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

from prinfold import cli

wine = load_wine()
folder = Path(tempfile.mkdtemp())
table, model = folder / "wine.csv", folder / "wine.prinfold"
with table.open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow([*wine.feature_names, "cultivar"])
    writer.writerows([*row, wine.target_names[kind]] for row, kind in zip(wine.data, wine.target, strict=True))

# %%
# A surface, and coordinates
# --------------------------
# Columns are scaled because their standard deviations differ so much, and the command says so. The scaling is kept in
# the model.

cli.main(["fit", str(table), "--label", "cultivar", "--quiet"])
cli.main(["info", str(model)])
cli.main(["transform", str(model), str(table)])
cli.main(["project", str(model), str(table), "--quiet"])

# %%
# What came of it
# ---------------
# The columns that the model does not use go along, so that the result can be drawn by whatever reads CSV. Projections
# are in the units of the table.


def columns_of(path: Path, *names: str) -> list[list[float]]:
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [[float(row[name]) for row in rows] for name in names]


latent, near = folder / "wine-latent.csv", folder / "wine-projected.csv"
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for kind, (name, mark) in enumerate(zip(wine.target_names, "o^s", strict=True)):
    ours = [i for i, each in enumerate(wine.target) if each == kind]
    places = columns_of(latent, "latent_1", "latent_2")
    left.plot(*([axis[i] for i in ours] for axis in places), mark, ms=4, label=name)
    rows = columns_of(table, "flavanoids", "proline")
    right.plot(*([axis[i] for i in ours] for axis in rows), mark, ms=3, alpha=0.35, color=f"C{kind}")
    points = columns_of(near, "flavanoids", "proline")
    right.plot(*([axis[i] for i in ours] for axis in points), ".", ms=4, color=f"C{kind}")
left.set(title="wine-latent.csv", xlabel="latent_1", ylabel="latent_2")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
right.set(title="wine-projected.csv over wine.csv", xlabel="flavanoids", ylabel="proline")
plt.show()
