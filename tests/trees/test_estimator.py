"""PrincipalTree: what is particular to it; tests/properties holds it to the contract of every estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from prinfold import PrincipalTree, cite, compare, datasets, explore, load, plot, report
from prinfold.exceptions import InvalidDataError, InvalidParameterError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")


@pytest.fixture(scope="module")
def data() -> datasets.TreeDataset:
    return datasets.make_tree(500, 0.1, rng=1, topology="y", n_features=10)


@pytest.fixture(scope="module")
def model(data: datasets.TreeDataset) -> PrincipalTree:
    return PrincipalTree().fit(data.X)


def test_straight_rows_give_a_path_on_the_principal_line() -> None:
    t = np.random.default_rng(0).uniform(-1, 1, 200)
    X = 3.0 + t[:, None] * np.array([[1.0, 2.0, -1.0, 0.5, 0.0]])
    model = PrincipalTree().fit(X)
    assert model.graph_.latent.n_branches == 1
    line = PCA(1).fit(X)
    points = model.graph_.points
    np.testing.assert_allclose(line.inverse_transform(line.transform(points)), points, atol=1e-9)
    assert model.graph_.latent.lengths[0] > 0.8 * np.ptp(line.transform(X))


def test_every_row_has_a_place(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    found = model.locate(data.X)
    assert all(np.isfinite(part).all() for part in found)
    low = model.latent_.domain.low[found.branch]
    np.testing.assert_allclose(low + found.arc_length, model.transform(data.X)[:, 0])
    np.testing.assert_allclose(found.distance**2, np.square(data.X - model.project(data.X)).sum(axis=1))


def test_branches_and_places_on_them_are_those_of_the_truth(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    found = model.locate(data.clean)
    both = np.zeros((3, 3))
    np.add.at(both, (data.labels, found.branch), 1)
    assert both.max(axis=1).sum() > 0.9 * len(data.X)
    for true in range(3):
        here = (data.labels == true) & (found.branch == both[true].argmax())
        assert abs(np.corrcoef(data.arc_length[here], found.arc_length[here])[0, 1]) > 0.99


def test_nearest_points_are_those_of_the_branches_in_all_columns(
    model: PrincipalTree, data: datasets.TreeDataset
) -> None:
    """The search in few components finds what a search in all columns finds."""
    found = model.graph_.nearest(data.X[:100])
    np.testing.assert_allclose(model.project(data.X[:100]), found.points, atol=1e-6)


def test_the_tree_does_not_hang_on_the_order_of_the_rows(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    mixed = np.random.default_rng(0).permutation(len(data.X))
    again = PrincipalTree().fit(data.X[mixed])
    np.testing.assert_allclose(again.transform(data.X), model.transform(data.X), atol=1e-6)


def test_rows_of_no_weight_change_nothing(model: PrincipalTree, data: datasets.TreeDataset) -> None:
    more = np.vstack([data.X, np.full((20, 10), 9.0)])
    again = PrincipalTree().fit(more, sample_weight=np.repeat([1.0, 0.0], [500, 20]))
    np.testing.assert_allclose(again.transform(data.X), model.transform(data.X), atol=1e-9)


def test_background_is_trimmed(data: datasets.TreeDataset) -> None:
    """Rows all about bend the tree; with a trimming radius they do not."""
    rng = np.random.default_rng(0)
    noisy = np.vstack([data.X, data.X.mean(axis=0) + rng.uniform(-2, 2, (100, 10))])
    bent, held = (PrincipalTree(trim=trim).fit(noisy).projection_error(data.clean) for trim in (None, 0.8))
    assert np.sqrt(held) < 0.1 < np.sqrt(bent)


@pytest.mark.parametrize("columns", [1, 2])
def test_few_columns(columns: int) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (100, columns)) * [1.0, 0.01][:columns]
    model = PrincipalTree().fit(X)
    assert model.graph_.latent.n_branches == 1
    assert model.graph_.latent.lengths[0] > 1.4


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.DegenerateWarning")
def test_few_rows(n: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 4))
    model = PrincipalTree().fit(X)
    assert np.isfinite(model.project(X)).all()


def test_constant_columns_stay_constant(data: datasets.TreeDataset, model: PrincipalTree) -> None:
    wide = np.hstack([data.X, np.full((500, 2), 7.0)])
    points = PrincipalTree().fit(wide).graph_.points
    np.testing.assert_allclose(points[:, 10:], 7.0)


def test_missing_cells_are_refused(data: datasets.TreeDataset) -> None:
    X = data.X.copy()
    X[3, 2] = np.nan
    with pytest.raises((InvalidDataError, ValueError), match="row"):
        PrincipalTree().fit(X)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"topology": "bush"}, "topology"),
        ({"nodes": 1}, "nodes"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"trim": -1}, "trim"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], match: str, data: datasets.TreeDataset) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        PrincipalTree(**settings).fit(data.X)


def test_files_keep_the_tree(model: PrincipalTree, data: datasets.TreeDataset, tmp_path: Path) -> None:
    model.save(tmp_path / "tree.prinfold")
    again = load(tmp_path / "tree.prinfold")
    np.testing.assert_array_equal(again.transform(data.X), model.transform(data.X))
    assert again.to_networkx().number_of_edges() == 3


def test_outer_layers_know_trees(model: PrincipalTree, data: datasets.TreeDataset, tmp_path: Path) -> None:
    assert plot.model(model, data.X) is not None
    explore(model, data.X, tmp_path / "map.html")
    assert "branches" in (tmp_path / "map.html").read_text(encoding="utf-8")
    report(model, data.X, tmp_path / "report.html")
    assert "branches" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [each.key for each in cite(model).references] == ["prinfold", "mao2015", "mao2017"]
    assert "PrincipalTree" in str(compare(data.X[:150], methods=["PrincipalTree", "PCA"], n_components=1, folds=2))


def test_the_networkx_graph_has_forks_and_lengths(model: PrincipalTree) -> None:
    made = model.to_networkx()
    kinds = sorted(kind for _, kind in made.nodes(data="kind"))
    assert kinds == ["end", "end", "end", "junction"]
    lengths = sorted(length for *_, length in made.edges(data="length"))
    np.testing.assert_allclose(lengths, np.sort(model.latent_.lengths))
