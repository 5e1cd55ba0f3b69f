"""Roots and pseudotime, one mechanism for trees, ridges and curves: against known truth and brute force."""

from __future__ import annotations

import copy
import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from prinfold import DensityRidge, PrincipalCurve, PrincipalTree, datasets, load
from prinfold.base.trajectories import sum_over_places, times_as_in
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    StructureWarning,
)
from prinfold.latent import Branches
from prinfold.latent.branch_graph import BranchGraph, RootedGraph

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture(scope="module")
def data() -> datasets.TreeDataset:
    return datasets.make_tree(400, 0.08, rng=2, topology="four", n_features=6)


@pytest.fixture(scope="module")
def model(data: datasets.TreeDataset) -> PrincipalTree:
    return PrincipalTree(root=int(data.pseudotime.argmin())).fit(data.X)


def straight(root: float) -> RootedGraph:
    """A stem of length 2 that forks into branches of lengths 1 and 3, along three axes."""
    latent = Branches([2.0, 1.0, 3.0], [False] * 3, [3, 3, 3], 0.5)
    return RootedGraph(BranchGraph(latent, np.array([[0, 1], [1, 2], [1, 3]])), np.array([[root]]))


def test_time_is_the_way_from_the_root_by_hand() -> None:
    rooted = straight(0.0)
    low = rooted.graph.latent.domain.low
    Z = np.array([[0.0], [1.5], [low[1] + 0.5], [low[2] + 3.0]])
    np.testing.assert_allclose(rooted.times(Z), [0.0, 1.5, 2.5, 5.0])
    assert rooted.milestones.names == ("root", "fork 1", "leaf 1", "leaf 2")
    np.testing.assert_allclose(rooted.milestones.times, [0.0, 2.0, 3.0, 5.0])
    assert rooted.on_lineages(Z).tolist() == [[True, True], [True, True], [True, False], [False, True]]


def test_a_root_within_a_branch_has_a_way_to_every_end() -> None:
    rooted = straight(1.0)
    np.testing.assert_allclose(rooted.milestones.times, [0.0, 1.0, 1.0, 2.0, 4.0])
    assert rooted.on_lineages(np.array([[0.5], [1.5]])).tolist() == [[True, False, False], [False, True, True]]


def test_time_goes_round_a_ring_to_a_full_turn() -> None:
    latent = Branches([4.0], [True], [8], 0.5)
    rooted = RootedGraph(BranchGraph(latent, np.array([[-1, -1]])), np.array([[1.0]]))
    np.testing.assert_allclose(rooted.times(np.array([[1.0], [2.0], [0.5]])), [0.0, 1.0, 3.5])
    assert rooted.lineages == ("ring 1",)


def test_pseudotime_is_that_of_the_truth(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    assert spearmanr(model.pseudotime(data.X), data.pseudotime)[0] > 0.95
    found = model.trajectory(data.X)
    assert len(found.lineages) == 3
    np.testing.assert_allclose(found.branch_probabilities.sum(axis=1), 1.0)
    stem = data.labels == 0
    assert found.lineage_weights[stem].min(axis=1).mean() > 0.9, "every lineage goes through the stem"
    leaves = found.lineage_weights[(data.labels > 0) & (data.labels != 2)]
    assert np.median(leaves.max(axis=1)) > 0.9


def test_the_deviation_of_a_straight_branch_is_the_noise() -> None:
    """Far from ends and forks p(z | x) is a Gaussian of the noise's deviation."""
    rooted = straight(0.0)
    axes = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    low = rooted.graph.latent.domain.low

    def point(Z: Any) -> Any:
        branch = rooted.graph.latent.domain.piece(Z)
        along = (Z[:, 0] - low[branch])[:, None] * axes[branch]
        return along + np.where(branch[:, None] > 0, [[2.0, 0, 0]], 0.0)

    Z = np.array([[1.0], [low[2] + 1.5]])
    found = sum_over_places(point(Z) + 0.03, Z, rooted, point, 0.05)
    np.testing.assert_allclose(found.sd, 0.05, rtol=0.01)
    np.testing.assert_allclose(found.branches, [[1, 0, 0], [0, 0, 1]], atol=1e-9)
    fork = sum_over_places(np.array([[2.0, 0.0, 0.0]]), np.array([[2.0]]), rooted, point, 0.05)
    np.testing.assert_allclose(fork.branches, 1 / 3, atol=0.02)


def test_a_score_finds_the_root_and_is_suggested(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    followed = PrincipalTree(root=data.pseudotime).fit(data.X)
    np.testing.assert_allclose(followed.root_, model.root_)
    best = model.suggest_root(data.X, data.pseudotime)
    assert best.correlation[0] > 0.95 > best.correlation[1]
    again = PrincipalTree(root=best.position[0]).fit(data.X)
    np.testing.assert_allclose(again.root_, model.root_)


@pytest.mark.parametrize("kind", ["tree", "ridge", "curve"])
def test_number_row_rows_mask_and_score_agree(kind: str) -> None:
    t = np.linspace(0, 1, 120)
    X = np.stack([t, t**2], axis=1) + np.random.default_rng(0).normal(scale=0.01, size=(120, 2))
    makers: dict[str, Any] = {
        "tree": lambda root: PrincipalTree("path", root=root),
        "ridge": lambda root: DensityRidge(bandwidth=0.1, root=root),
        "curve": lambda root: PrincipalCurve(root=root, max_iter=3, tol=0),
    }
    first, last = np.arange(120) == 0, np.arange(120) == 119
    for root, sign in ((0, 1), (X[-1], -1), (X[[0]], 1), (last, -1), (first, 1), (-t, -1)):
        assert spearmanr(makers[kind](root).fit(X).pseudotime(X), sign * t)[0] > 0.99


def test_every_component_has_its_own_time() -> None:
    data = datasets.make_tree(300, 0.08, rng=3, topology="two", n_features=4)
    with pytest.warns(StructureWarning, match="2 components, and root= lies in one"):
        model = PrincipalTree("forest", root=int(data.pseudotime.argmin())).fit(data.X)
    found = model.trajectory(data.X)
    assert np.isfinite(found.pseudotime).all()
    assert np.isfinite(found.pseudotime_sd).all()
    for c in (0, 1):
        here = found.component == c
        assert found.pseudotime[here].min() == pytest.approx(0.0, abs=0.2)
    with pytest.warns(StructureWarning, match="that are not connected"):
        model.distances_along(data.X[:20])


def test_without_a_root_a_warning_says_where_time_begins(data: datasets.TreeDataset) -> None:
    model = PrincipalTree().fit(data.X)
    assert len(model.root_) == 0
    with pytest.warns(DegenerateWarning, match="No root was given.*Give root= a row"):
        time = model.pseudotime(data.X)
    assert np.isfinite(time).all()
    ends = model.rooted_.times(model.graph_.network.places)
    assert ends.max() == pytest.approx(model.graph_.network.distances(*[model.graph_.network.places] * 2).max())


def test_bootstrap_widens_deviations_and_finds_clear_forks_again(
    model: PrincipalTree, data: datasets.TreeDataset
) -> None:
    plain = model.trajectory(data.X)
    found = model.trajectory(data.X, n_bootstrap=3, random_state=0)
    assert found.bootstrap is not None
    np.testing.assert_allclose(found.pseudotime_sd**2, plain.pseudotime_sd**2 + found.bootstrap.times.var(axis=0))
    np.testing.assert_array_equal(found.bootstrap.fork_support, 1.0)
    assert spearmanr(found.bootstrap.times[0], found.pseudotime)[0] > 0.95


@pytest.mark.parametrize("kind", ["curve", "tree"])
def test_bootstrap_times_round_a_ring_are_angles_in_one_direction(kind: str) -> None:
    # A ring that stays far from itself: where it comes near, rows may be on either side in earnest.
    ring = datasets.make_tree(300, 0.05, rng=1, topology="ring", n_features=3)
    made = PrincipalCurve(closed=True, root=0) if kind == "curve" else PrincipalTree("ring", root=0)
    model = made.fit(ring.X)
    found = model.trajectory(ring.X, n_bootstrap=4, random_state=0)
    turn = float(model.latent_.lengths[0])
    assert found.bootstrap is not None
    assert np.abs(found.bootstrap.times - found.pseudotime).max() < 0.1 * turn
    assert found.pseudotime_sd.max() < 0.05 * turn


def test_times_of_a_ring_that_runs_backwards_are_turned() -> None:
    def ring(length: float) -> BranchGraph:
        return BranchGraph(Branches([length], [True], [8], length / 8), np.array([[-1, -1]]))

    t = np.linspace(0.0, 4.0, 30, endpoint=False)[:, None]
    rooted, again = RootedGraph(ring(4.0), np.array([[1.0]])), RootedGraph(ring(2.0), np.array([[0.4]]))
    shifted = np.mod(0.4 - (t - 1.0) / 2.0 + 0.1, 2.0)  # half as long, backwards, and all rows 0.2 too early
    np.testing.assert_allclose(times_as_in(rooted, t, again, shifted), rooted.times(t) - 0.2, atol=1e-12)


def test_bootstrap_fits_keep_the_root_of_every_component() -> None:
    rng = np.random.default_rng(0)
    t = np.tile(np.linspace(0.0, 4.0, 60), 2)
    second = np.repeat([False, True], 60)
    X = np.column_stack([np.where(second, 4.0 - t, t), 6.0 * second]) + rng.normal(scale=0.05, size=(120, 2))
    model = PrincipalTree("forest", root=t).fit(X)
    found = model.trajectory(X, n_bootstrap=3, random_state=0)
    assert found.bootstrap is not None
    for c in range(2):
        here = found.component == c
        for times in found.bootstrap.times[:, here]:
            assert spearmanr(times, t[here])[0] > 0.99


def test_rows_on_the_longer_way_round_a_loop_are_told() -> None:
    rng = np.random.default_rng(0)
    angle, along = rng.uniform(0, 2 * np.pi, 300), rng.uniform(1, 3, 150)
    tails = np.column_stack([along * np.repeat([1.0, -1.0], 75), np.zeros(150)])
    X = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), tails]) + rng.normal(scale=0.05, size=(450, 2))
    model = DensityRidge(1, root=[-3.0, 0.0]).fit(X)
    with pytest.warns(StructureWarning, match=r"of 450 rows lie on no lineage: branches form a loop") as told:
        found = model.trajectory(X)
    count = int(re.findall(r"(\d+) of 450 rows", str([each.message for each in told]))[0])
    assert count == pytest.approx((found.lineage_weights.max(axis=1) < 0.5).sum(), abs=10)
    assert 100 < count < 200, "half of the ring"


def test_a_tree_has_no_row_without_a_lineage(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", StructureWarning)
        model.trajectory(data.X)


def test_a_file_keeps_the_root_and_networkx_the_times(
    model: PrincipalTree, data: datasets.TreeDataset, tmp_path: Any
) -> None:
    model.save(tmp_path / "tree.prinfold")
    again = load(tmp_path / "tree.prinfold")
    np.testing.assert_array_equal(again.pseudotime(data.X), model.pseudotime(data.X))
    nodes = model.to_networkx().nodes(data=True)
    assert min(node["time"] for _, node in nodes) == pytest.approx(0.0, abs=1e-9)
    curve = PrincipalCurve(max_iter=2, tol=0).fit(data.X[:, :2])
    assert curve.to_networkx().number_of_edges() == 1


def test_distances_are_symmetric_and_obey_the_triangle(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    D = model.distances_along(data.X[:40])
    np.testing.assert_allclose(D, D.T, atol=1e-12)
    assert (D[:, :, None] <= D[:, None, :] + D.T[None] + 1e-9).all()


def test_a_tree_of_no_length_has_times_of_nil() -> None:
    X = np.ones((20, 3))
    found = PrincipalTree(root=0).fit(X).trajectory(X)
    np.testing.assert_array_equal(found.pseudotime, 0.0)
    np.testing.assert_array_equal(found.pseudotime_sd, 0.0)
    np.testing.assert_allclose(found.branch_probabilities, 1.0)


def test_roots_of_a_file_that_do_not_fit_are_refused(model: PrincipalTree, tmp_path: Any) -> None:
    changed = copy.deepcopy(model)
    changed.root_ = np.zeros(3)
    changed.save(tmp_path / "tree.prinfold")
    with pytest.raises(CorruptModelFileError, match="a root_ in each of its 1 components"):
        load(tmp_path / "tree.prinfold")


def test_what_is_no_root_is_refused_in_words(data: datasets.TreeDataset) -> None:
    with pytest.raises(InvalidDataError, match="from 0 to 399"):
        PrincipalTree(root=400).fit(data.X)
    with pytest.raises(InvalidParameterError, match=r"root must be None.*got 'stem'"):
        PrincipalTree(root="stem").fit(data.X)
    sheet = DensityRidge(2, bandwidth=0.5).fit(data.X[:60, :3])
    with pytest.raises(AttributeError, match="pseudotime is for curves"):
        sheet.pseudotime(data.X[:60, :3])


def test_a_root_in_other_units_is_told(data: datasets.TreeDataset) -> None:
    with pytest.warns(DegenerateWarning, match="root= lies .* from the graph, and no row farther"):
        PrincipalTree(root=np.full(6, 90.0)).fit(data.X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateWarning)
        PrincipalTree(root=0).fit(data.X)


@pytest.mark.parametrize("kind", ["int", "float", "object", "series"])
def test_a_mark_of_rows_is_a_mask_whatever_its_type(kind):
    import pandas as pd

    data = datasets.make_tree(200, topology="y", rng=0)
    mask = np.zeros(200, dtype=bool)
    mask[np.argsort(data.X[:, 0])[:15]] = True
    marked = pd.Series(mask) if kind == "series" else mask.astype(kind)
    wanted = PrincipalTree(root=mask, nodes=20).fit(data.X).pseudotime(data.X)
    found = PrincipalTree(root=marked, nodes=20).fit(data.X).pseudotime(data.X)
    np.testing.assert_array_equal(found, wanted)
    assert wanted.min() >= 0.0
