"""Thirty steps of three newcomers, a chemist, a biologist and an engineer, from a table of theirs to a decision."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import prinfold
from prinfold import GTMRegressor, PrincipalCurve, SurfaceMonitor, datasets
from prinfold.exceptions import PrinfoldWarning
from tests.cli.conftest import Said

pytestmark = pytest.mark.full
Call = Callable[..., Said]
QUICK = ("--set", "nodes=10", "--set", "max_iter=20")


def test_a_chemist_with_a_spreadsheet_export(folder: Path, call: Call) -> None:
    rng = np.random.default_rng(0)
    size, polar = rng.gamma(4.0, 50.0, 150), rng.gamma(1.5, 25.0, 150)
    soluble = -0.012 * size + 0.01 * polar + 0.3 * rng.normal(size=150)
    purity = rng.uniform(80, 100, 150)
    cells = zip([f"Säure {i}" for i in range(150)], size, polar, purity, soluble, strict=True)
    lines = [f"{name};{a:.2f};{b:.2f};{p:.1f} %;{c:.3f}".replace(".", ",") for name, a, b, p, c in cells]
    lines[3] = lines[3].rsplit(";", 1)[0] + ";n.a."
    # 1. The export of a German spreadsheet: Windows letters, semicolons, decimal commas, percents, a gap.
    Path("stoffe.csv").write_bytes("\n".join(["Stoff;Größe;Polarität;Reinheit;logS", *lines, ""]).encode("cp1252"))
    # 2. What is in it?
    said = call("info", "stoffe.csv")
    assert "Größe" in said.out
    assert said.out.count("decimal points") == 1
    # 3. A method that there is not is said before anything is read.
    assert "umap" in call("fit", "nowhere.csv", "--method", "umap").complaint
    # 4. A fit without any option.
    said = call("fit", "stoffe.csv", *QUICK)
    assert said.code == 0
    assert "standardis" in said.out
    # 5. The report names the worst compounds by their names.
    assert call("report", "stoffe.prinfold", "stoffe.csv", "--label", "logS", "-q").code == 0
    assert "Säure" in Path("stoffe-report.html").read_text(encoding="utf-8")
    # 6. The page to move over.
    assert "open it in a browser" in call("explore", "stoffe.prinfold", "stoffe.csv", "--label", "logS").out
    # 7. Coordinates for a colleague, with the names of the compounds.
    assert call("transform", "stoffe.prinfold", "stoffe.csv", "--out", "places.csv").code == 0
    assert Path("places.csv").read_text(encoding="utf-8").splitlines()[1].startswith("0;Säure 0;")
    # 8. A file that is there is not written over.
    assert "--force" in call("transform", "stoffe.prinfold", "stoffe.csv", "--out", "places.csv").complaint
    # 9. The model in Python.
    assert prinfold.load("stoffe.prinfold").n_features_in_ == 4
    # 10. A property landscape with its error.
    known = np.isfinite(soluble)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)  # two columns fill the plane, and a map of them folds
        surface = prinfold.GTM(nodes=8, max_iter=20, tol=0)
        model = GTMRegressor(surface).fit(np.c_[size, polar][known] / 50, soluble[known])
    mean, spread = model.predict(np.c_[size, polar] / 50, return_std=True)
    assert np.isfinite(mean).all()
    assert (spread > 0).all()


def test_a_biologist_with_cells(folder: Path, call: Call) -> None:
    anndata, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0, 3, 200))
    path = np.c_[30 * t, 12 * np.sin(2 * t), 3 * np.cos(t)] + 0.3 * rng.normal(size=(200, 3))
    kinds = np.array(["stem", "middle", "mature"])[np.minimum(t, 2).astype(int)]
    cells = anndata.AnnData(path.copy(), obs=pd.DataFrame({"kind": kinds}, index=[f"cell{i}" for i in range(200)]))
    cells.obsm["X_pca"] = path
    # 11. An object as scanpy leaves it.
    cells.write_h5ad("cells.h5ad")
    # 12. What is in it?
    said = call("info", "cells.h5ad").out
    assert said.index("  kind ") < said.index("cells.h5ad") + 120  # what is known of cells comes before the genes
    # 13. A curve through the embedding, which is not standardised.
    said = call("fit", "cells.h5ad", "--array", "X_pca", "--method", "principalcurve", "--out", "path.prinfold")
    assert "as they are: the columns are an embedding" in said.out
    # 14. It explains nearly all of the variance.
    explained = float(said.out.split("explained")[1].split("%")[0])
    assert explained > 95
    # 15. A report by the kind of cell.
    missed = call("explore", "path.prinfold", "cells.h5ad").complaint
    assert missed.endswith("that is column 1 of the array X_pca: repeat --array X_pca")
    assert call("report", "path.prinfold", "cells.h5ad", "--array", "X_pca", "--label", "kind", "-q").code == 0
    # 16. Coordinates as a table with the kinds.
    call("transform", "path.prinfold", "cells.h5ad", "--array", "X_pca", "--out", "times.csv", "-q")
    assert Path("times.csv").read_text().splitlines()[0].split(",")[:2] == ["row", "kind"]
    # 17. In Python, from a root.
    curve = PrincipalCurve(root=kinds == "stem").fit(path)
    time = curve.transform(path)[:, 0]
    # 18. The order is that of the truth.
    assert np.corrcoef(time, t)[0, 1] > 0.99
    # 19. A new cell gets a time without another fit, and a point on the path.
    assert np.isfinite(curve.transform(path[:1] + 0.1)).all()
    assert curve.project(path[:1]).shape == (1, 3)
    # 20. In scanpy's manner, kept in the object.
    prinfold.anndata.fit(cells, prinfold.GTM(1, nodes=20, max_iter=20, tol=0), use_rep="X_pca")
    assert cells.obsm["X_gtm"].shape == (200, 2)  # the place along the curve, and how far beside it


def test_an_engineer_with_a_process(folder: Path, call: Call) -> None:
    data = datasets.make_pipe_flow(200, rng=0)
    X = data.X * np.where(np.arange(data.X.shape[1]) == 0, 50.0, 1.0)  # which other names would have standardised
    lines = [",".join(f"{v:.4f}" for v in row) for row in X]
    names = [f"{name} (mm)" for name in data.feature_names]
    # 21. A log with a line of remarks above, and one unit for all columns.
    Path("log.csv").write_text("\n".join(["# line 3, March", ",".join(names), *lines, ""]))
    # 22. A wrong word is answered with the right one.
    assert "explore" in call("explor", "log.csv").complaint
    # 23. A fit that leaves columns in one unit as they are.
    said = call("fit", "log.csv", *QUICK)
    assert "as they are: all columns are in mm" in said.out
    Path("unlike.csv").write_text("\n".join([",".join(data.feature_names), *lines, ""]))
    assert "standardised" in call("fit", "unlike.csv", *QUICK).out
    # 24. A model for programs.
    found = call("fit", "log.csv", *QUICK, "--force", "--json").json
    assert found["rows"] == 200
    # 25. Smoothed values.
    assert call("project", "log.prinfold", "log.csv", "--out", "smooth.csv", "-q").code == 0
    # 26. A column that a later log lacks is named.
    Path("later.csv").write_text("\n".join(line.split(",", 1)[1] for line in [",".join(names), *lines]))
    assert names[0] in call("project", "log.prinfold", "later.csv").complaint
    # 27. An alarm for new rows, at a rate that was asked for.
    watch = SurfaceMonitor(prinfold.GTM(nodes=10, max_iter=30, tol=0, random_state=0), alarm_rate=0.05).fit(data.X)
    new = datasets.make_pipe_flow(200, rng=1).X
    assert (watch.predict(new) == -1).mean() < 0.15
    # 28. A broken sensor is noticed.
    broken = new.copy()
    broken[:, 4] += 1.5
    assert (watch.predict(broken) == -1).mean() > 0.9
    # 29. And named.
    assert (watch.contributions(broken).off.argmax(axis=1) == 4).mean() > 0.8
    # 30. The monitor in a file for the machine beside the pipe.
    watch.save("pipe.prinfold")
    np.testing.assert_array_equal(prinfold.load("pipe.prinfold").predict(new), watch.predict(new))
