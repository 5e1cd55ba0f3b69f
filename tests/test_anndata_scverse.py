"""What a trajectory leaves in an AnnData object, read by scanpy and scFates themselves; skipped where they are absent.

Neither is in the test group: ``pip install scanpy scFates`` into an environment beside it. Last run with scanpy 1.11.5
and scFates 1.2.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prinfold import DensityRidge, PrincipalCurve, PrincipalTree, datasets
from prinfold import anndata as cells

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _close_pictures() -> Iterator[None]:
    yield
    pyplot.close("all")


def cells_along(topology: str, n_features: int = 5) -> tuple[Any, datasets.TreeDataset]:
    truth = datasets.make_tree(300, 0.06, rng=1, topology=topology, n_features=n_features)
    adata = anndata.AnnData(np.exp(truth.X), obs=pd.DataFrame(index=[f"cell{i}" for i in range(300)]))
    adata.obsm["X_pca"] = truth.X.copy()
    return adata, truth


@pytest.mark.parametrize("model", [PrincipalTree(), PrincipalCurve()], ids=["tree", "curve"])
def test_scanpy_draws_time_and_lane_and_takes_the_root(model: Any) -> None:
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    adata, truth = cells_along("y" if isinstance(model, PrincipalTree) else "path")
    cells.trajectory(adata, model, root=int(truth.pseudotime.argmin()))
    (ax,) = np.ravel(scanpy.pl.embedding(adata, "prinfold", color="pseudotime", show=False))
    drawn = np.asarray(ax.collections[0].get_offsets())
    assert len(drawn) == 300
    assert set(map(tuple, drawn.round(9))) == set(map(tuple, adata.obsm["X_prinfold"].round(9)))
    scanpy.pp.neighbors(adata, use_rep="X_pca")
    scanpy.tl.diffmap(adata)
    scanpy.tl.dpt(adata)  # from uns["iroot"]
    assert np.corrcoef(adata.obs["dpt_pseudotime"], adata.obs["pseudotime"])[0, 1] > 0.8


SHAPES = {
    "tree": (PrincipalTree(), "four", 5),
    "path": (PrincipalTree("path"), "path", 5),
    "loop": (PrincipalTree("graph"), "lasso", 5),
    "ridge": (DensityRidge(), "y", 3),
    "curve": (PrincipalCurve(), "path", 3),
}


@pytest.mark.parametrize("root", ["first", "within"])
@pytest.mark.parametrize("shape", SHAPES)
def test_scfates_reads_the_graph_and_finds_the_same_times(shape: str, root: str) -> None:
    scfates = pytest.importorskip("scFates", reason="scFates is not installed")
    model, topology, n_features = SHAPES[shape]
    adata, truth = cells_along(topology, n_features)
    wanted = truth.pseudotime.argmin() if root == "first" else np.abs(truth.pseudotime - 0.5).argmin()
    cells.trajectory(adata, model, root=int(wanted))
    own = adata.obs["t"].to_numpy().copy()
    scfates.pl.graph(adata, basis="pca", show=False)
    scfates.pl.trajectory(adata, basis="pca", show=False)
    scfates.pl.milestones(adata, basis="pca", annotate=True, show=False)
    if shape != "loop":  # its dendrograms are of trees
        scfates.tl.dendrogram(adata)
        scfates.pl.dendrogram(adata, color="t", show=False)
    scfates.tl.root(adata, int(adata.uns["graph"]["root"]))
    scfates.tl.pseudotime(adata)
    np.testing.assert_array_less(0.998, np.corrcoef(adata.obs["t"], own)[0, 1])


def test_scfates_reads_it_from_a_file(tmp_path: Path) -> None:
    scfates = pytest.importorskip("scFates", reason="scFates is not installed")
    adata, truth = cells_along("four")
    cells.trajectory(adata, root=int(truth.pseudotime.argmin()))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    scfates.tl.dendrogram(again)
    lineage = scfates.tl.subset_tree(again, root_milestone="root", milestones=["leaf 1"], copy=True)
    assert 0 < lineage.n_obs < again.n_obs
