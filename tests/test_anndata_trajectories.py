"""Trajectories of single cells: results are the model's own, and stand where scanpy and scFates look for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from prinfold import GTM, PrincipalCurve, PrincipalTree, datasets, plot
from prinfold import anndata as cells
from prinfold.anndata.trajectories import graph_for_scfates
from prinfold.cli.methods import choose_scaling
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.metrics import confounding
from prinfold.plot.data.dendrograms import lay_out, place_rows

anndata = pytest.importorskip("anndata", reason="anndata is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def truth() -> datasets.TreeDataset:
    return datasets.make_tree(250, 0.08, rng=4, topology="y", n_features=6)


@pytest.fixture
def adata(truth: datasets.TreeDataset) -> Any:
    rng = np.random.default_rng(0)
    first = truth.pseudotime < np.quantile(truth.pseudotime, 0.05)
    obs = pd.DataFrame(
        {
            "day": truth.pseudotime + rng.normal(scale=0.1, size=250),
            "first": first,
            "kind": pd.Categorical(np.where(first, "stem", "other")),
            "batch": rng.integers(0, 3, 250).astype(str),
        },
        index=[f"cell{i}" for i in range(250)],
    )
    made = anndata.AnnData(np.exp(truth.X), obs=obs)
    made.obsm["X_pca"] = truth.X.copy()
    return made


def test_every_way_to_name_a_root_gives_the_same_times(adata: Any, truth: datasets.TreeDataset) -> None:
    first = int(truth.pseudotime.argmin())
    times = []
    for root in (first, f"cell{first}", "first", "day", adata.obs["kind"] == "stem"):
        made = cells.trajectory(adata, root=root, copy=True)
        times.append(made.obs["pseudotime"].to_numpy())
        assert spearmanr(times[-1], truth.pseudotime)[0] > 0.9
    np.testing.assert_allclose(times, np.tile(times[0], (5, 1)))
    adata.uns["iroot"] = first
    cells.trajectory(adata)
    np.testing.assert_allclose(adata.obs["pseudotime"], times[0])


def test_the_root_cell_of_a_user_stays_and_a_guess_is_not_taken_for_one(
    adata: Any, truth: datasets.TreeDataset
) -> None:
    model = PrincipalTree()
    cells.trajectory(adata, model)
    assert "iroot" not in adata.uns, "nobody gave a root"
    assert adata.uns["prinfold"]["root_cell"] == adata.obs["pseudotime"].argmin()
    cells.trajectory(adata, model)
    assert model.root is None, "the guess of the first call was read as a root"
    cells.trajectory(adata, root="day")
    assert adata.uns["iroot"] == adata.uns["prinfold"]["root_cell"]
    mine = int(truth.pseudotime.argmax())
    adata.uns["iroot"] = mine
    cells.trajectory(adata, root="day", key_added="other")
    assert adata.uns["iroot"] == mine
    assert adata.uns["other"]["root_cell"] != mine


def test_results_are_those_of_the_model_and_survive_a_file(adata: Any, tmp_path: Path) -> None:
    model = PrincipalTree()
    assert cells.trajectory(adata, model, root="day", n_bootstrap=2, random_state=0) is None
    found = model.trajectory(adata.obsm["X_pca"], n_bootstrap=2, random_state=0)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_allclose(read.obs["pseudotime_sd"], found.pseudotime_sd)
    np.testing.assert_allclose(read.obsm["prinfold_lineages"], found.lineage_weights)
    assert read.obsm["X_prinfold"].shape == (250, 2)
    np.testing.assert_allclose(read.obsm["X_prinfold"][:, 0], found.pseudotime)
    assert list(read.uns["prinfold"]["milestones"]) == list(found.milestones.names)
    assert read.obs["pseudotime"].iloc[read.uns["iroot"]] == read.obs["pseudotime"].min()


def test_the_graph_for_scfates_is_a_tree_with_the_times_of_the_model(adata: Any) -> None:
    cells.trajectory(adata, root="day")
    graph = adata.uns["graph"]
    B, F, info = graph["B"], graph["F"], graph["pp_info"]
    assert (B == B.T).all()
    assert B.sum() / 2 == len(B) - 1, "a tree has one edge less than nodes"
    assert len(graph["tips"]) == 3
    assert len(graph["forks"]) == 1
    assert len(graph["pp_seg"]) == 3
    assert info["time"][graph["root"]] == pytest.approx(0.0, abs=1e-9)
    length = np.linalg.norm(F.T[:, None] - F.T, axis=2) * B
    a, b = np.nonzero(np.triu(B))
    # An arc is a little longer than its chord.
    step = np.abs(info["time"].to_numpy()[a] - info["time"].to_numpy()[b])
    np.testing.assert_allclose(length[a, b], step, rtol=0.05)
    np.testing.assert_allclose(adata.obsm["X_R"].sum(axis=1), 1.0)
    from_to = {str(n): (f, t) for n, f, t in zip(*(graph["pp_seg"][k] for k in ("n", "from", "to")), strict=True)}
    for seg, t in zip(adata.obs["seg"], adata.obs["t"], strict=True):
        early, late = (info["time"][node] for node in from_to[seg])
        assert early - 1e-6 <= t <= late + 1e-6


def test_rings_and_roots_within_a_branch_have_a_graph_too() -> None:
    ring = datasets.make_tree(200, 0.05, rng=0, topology="ring", n_features=3)
    model = PrincipalTree("ring", root=0).fit(ring.X)
    graph = graph_for_scfates(model, ring.X, model.trajectory(ring.X), "X")
    assert (graph.uns["B"].sum(axis=0) == 2).all()
    y = datasets.make_tree(200, 0.05, rng=0, topology="y", n_features=3, lengths=(3.0, 1.0, 1.0))
    middle = int(np.abs(y.pseudotime - 1.5).argmin())
    model = PrincipalTree(root=middle).fit(y.X)
    graph = graph_for_scfates(model, y.X, model.trajectory(y.X), "X")
    assert len(graph.uns["pp_seg"]) == 4
    layout = lay_out(model.rooted_)
    assert sorted(layout.lane.tolist()) in ([0.0, 1.0, 1.5, 2.0], [0.0, 0.5, 1.0, 2.0])


def test_a_loop_in_a_dendrogram_reaches_as_late_as_its_rows() -> None:
    data = datasets.make_tree(300, 0.06, rng=1, topology="lasso", n_features=4)
    model = PrincipalTree("graph", root=data.pseudotime).fit(data.X)
    layout, place = place_rows(model, data.X)
    here = layout.stretch(model.locate(data.X).branch, model.transform(data.X))
    assert (place[:, 0] <= layout.end[here] + 1e-6).all()
    assert (place[:, 0] >= layout.start[here] - 1e-6).all()
    assert np.isfinite(layout.begin).all()


def test_curves_serve_and_other_models_are_refused(adata: Any) -> None:
    cells.trajectory(adata, PrincipalCurve(max_iter=3, tol=0), root="day", key_added="curve")
    assert {"curve_pseudotime", "curve_branch"} <= set(adata.obs)
    assert adata.obsm["X_curve"].shape == (250, 2)
    with pytest.raises(InvalidParameterError, match=r"needs a model with branches.*got GTM"):
        cells.trajectory(adata, GTM())


def test_wrong_roots_and_columns_are_told(adata: Any) -> None:
    with pytest.raises(InvalidDataError, match=r"holds words.*== 'the kind'"):
        cells.trajectory(adata, root="kind")
    with pytest.raises(InvalidParameterError, match=r"neither a column of adata.obs nor the name of a cell"):
        cells.trajectory(adata, root="nobody")
    with pytest.raises(InvalidParameterError, match=r"run prinfold.anndata.trajectory first"):
        cells.confounders(adata, "batch")


def test_confounders_are_told_from_what_has_nothing_to_do_with_it(adata: Any) -> None:
    cells.trajectory(adata, root="day")
    found = cells.confounders(adata, ["day", "batch", "branch"])
    assert found.loc["day", "pseudotime"] > 0.8
    assert found.loc["batch"].max() < 0.05
    assert found.loc["branch", "branch"] == pytest.approx(1.0)


def test_shares_are_one_for_the_column_itself_and_none_by_chance_on_average() -> None:
    rng = np.random.default_rng(0)
    time, branch = rng.uniform(size=60), rng.integers(0, 3, 60)
    assert confounding(time, branch, time).pseudotime == pytest.approx(1.0)
    assert confounding(time, branch, branch.astype(str)).branch == pytest.approx(1.0)
    assert confounding(time, branch, np.zeros(60)) == (0.0, 0.0)
    by_chance = [confounding(time, branch, rng.integers(0, 8, 60).astype(str)).pseudotime for _ in range(60)]
    assert np.mean(by_chance) < 0.05
    with pytest.raises(InvalidDataError, match="missing or infinite"):
        confounding(time, branch, np.full(60, np.nan))


def test_a_dendrogram_has_a_lane_for_each_leaf(adata: Any) -> None:
    model = PrincipalTree()
    cells.trajectory(adata, model, root="day")
    layout = lay_out(model.rooted_)
    assert sorted(layout.lane.tolist()) == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(np.sort(layout.end), np.sort(model.rooted_.milestones.times[1:]))
    ax = plot.dendrogram(model, adata.obsm["X_pca"], values=adata.obs["day"], value_name="day")
    assert ax.get_xlabel() == "pseudotime"
    with pytest.raises(InvalidParameterError, match="got GTM"):
        plot.dendrogram(GTM(nodes=4, basis=2, max_iter=1).fit(adata.obsm["X_pca"]))


def test_embeddings_are_never_rescaled() -> None:
    unlike = np.random.default_rng(0).normal(size=(50, 5)) * [100.0, 1, 1, 1, 1]
    assert choose_scaling(None, unlike, list("abcde"))[0].name == "standardize"
    assert choose_scaling(None, unlike, list("abcde"), embedding=True)[0].name == "raw"
