"""Charts beside each other: each as it is alone, and nothing between them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.latent import Atlas, Sphere, circle, cylinder, grid, line, torus

ATLASES = {
    "one": Atlas((grid(4, 3),)),
    "grids": Atlas((grid(4, 3), grid(2, 5))),
    "curves": Atlas((line(5), circle(6))),
    "of different columns": Atlas((grid(3, 3), Sphere(20), torus(4, 4), cylinder(5, 3))),
}
every = pytest.mark.parametrize("atlas", ATLASES.values(), ids=ATLASES.keys())


def places(atlas: Atlas, n: int = 12, seed: int = 0) -> list[np.ndarray]:
    """Places on each chart."""
    rng = np.random.default_rng(seed)
    return [chart.domain.retract(rng.normal(size=(n, chart.n_columns))) for chart in atlas.charts]


def everywhere(atlas: Atlas, **options: int) -> np.ndarray:
    return np.concatenate([atlas.on_chart(j, Z) for j, Z in enumerate(places(atlas, **options))])


@every
def test_the_nodes_are_those_of_the_charts(atlas: Atlas) -> None:
    assert atlas.n_nodes == sum(chart.n_nodes for chart in atlas.charts) == atlas.first[-1]
    assert atlas.dimension == atlas.charts[0].dimension
    assert atlas.n_columns == 1 + max(chart.n_columns for chart in atlas.charts)
    assert atlas.domain.contains(atlas.nodes).all()
    assert_allclose(atlas.domain.retract(atlas.nodes), atlas.nodes, atol=1e-15)
    for j, chart in enumerate(atlas.charts):
        own = atlas.nodes[atlas.first[j] : atlas.first[j + 1]]
        assert_array_equal(own[:, 0], j)
        assert_array_equal(own[:, 1 : 1 + chart.n_columns], chart.nodes)
        assert_array_equal(own[:, 1 + chart.n_columns :], 0)


@every
def test_edges_and_faces_join_nodes_of_one_chart(atlas: Atlas) -> None:
    for sides, parts in ((atlas.edges, "edges"), (atlas.faces, "faces")):
        assert len(sides) == sum(len(getattr(chart, parts)) for chart in atlas.charts)
        chart = atlas.domain.chart(atlas.nodes)[sides]
        assert (chart == chart[:, :1]).all()


@every
def test_distances_are_those_of_the_chart_and_infinite_between(atlas: Atlas) -> None:
    for j, (chart, A, B) in enumerate(zip(atlas.charts, places(atlas), places(atlas, seed=1), strict=True)):
        assert_allclose(atlas.distance(atlas.on_chart(j, A), atlas.on_chart(j, B)), chart.distance(A, B))
    if len(atlas.charts) > 1:
        assert np.isposinf(atlas.distance(atlas.nodes[:1], atlas.nodes[-1:])).all()


@every
def test_means_and_spreads_are_those_of_the_heaviest_chart(atlas: Atlas) -> None:
    rng = np.random.default_rng(2)
    weight = rng.dirichlet(np.ones(atlas.n_nodes), size=30)
    heavy = rng.integers(len(atlas.charts), size=30)
    for row, j in enumerate(heavy):
        weight[row, atlas.first[j] : atlas.first[j + 1]] += 1.0
    weight /= weight.sum(axis=1, keepdims=True)
    mean = atlas.mean(weight)
    assert_array_equal(mean[:, 0], heavy)
    spread = atlas.covariance(weight, mean)
    for row, j in enumerate(heavy):
        chart, own = atlas.charts[j], weight[row : row + 1, atlas.first[j] : atlas.first[j + 1]]
        own = own / own.sum()
        columns = slice(1, 1 + chart.n_columns)
        assert_allclose(mean[row : row + 1, columns], chart.mean(own), atol=1e-12)
        assert_allclose(spread[row, columns, columns], chart.covariance(own, chart.mean(own))[0], atol=1e-12)
    some = np.sort(rng.permutation(atlas.n_nodes)[: atlas.n_nodes // 2])
    part = weight[:, some] / weight[:, some].sum(axis=1, keepdims=True)
    full = np.zeros_like(weight)
    full[:, some] = part
    assert_allclose(atlas.mean(part, some), atlas.mean(full), atol=1e-12)
    assert_allclose(atlas.covariance(part, mean, some), atlas.covariance(full, mean), atol=1e-12)


@every
def test_embedding_and_back(atlas: Atlas) -> None:
    Z = everywhere(atlas)
    back, _ = atlas.unembed(atlas.embed(Z))
    assert_allclose(atlas.distance(back, Z), 0, atol=1e-7)
    h = 1e-6
    numeric = np.stack([(atlas.embed(Z + h * e) - atlas.embed(Z - h * e)) / (2 * h) for e in np.eye(Z.shape[1])], 2)
    assert_allclose(atlas.embed_jacobian(Z), numeric, atol=1e-8)


@every
def test_the_domain_asks_the_chart(atlas: Atlas) -> None:
    for j, (chart, Z) in enumerate(zip(atlas.charts, places(atlas, seed=3), strict=True)):
        whole, columns = atlas.on_chart(j, Z), slice(1, 1 + chart.n_columns)
        other = atlas.on_chart(j, places(atlas, seed=4)[j])
        assert_allclose(atlas.domain.frame(whole)[:, columns], chart.domain.frame(Z))
        assert_array_equal(atlas.domain.frame(whole)[:, 0], 0)
        assert_array_equal(atlas.domain.boundary(whole), chart.domain.boundary(Z))
        assert_allclose(
            atlas.domain.difference(whole, other)[:, columns], chart.domain.difference(Z, other[:, columns])
        )
        assert_allclose(atlas.domain.beyond(whole + 1e-3 * (whole > -9))[:, columns], chart.domain.beyond(Z + 1e-3))
        q, n = atlas.dimension, len(Z)
        model = np.full((n, q), 0.5), np.tile(np.eye(q), (n, 1, 1)), np.ones(n)
        for found, wanted in zip(atlas.domain.restrain(whole, *model), chart.domain.restrain(Z, *model), strict=True):
            assert_allclose(found, wanted)


def test_coordinates_between_charts_are_outside() -> None:
    atlas = ATLASES["curves"]
    Z = np.array([[0.5, 0.0], [2.0, 0.0], [-1.0, 0.0], [np.nan, 0.0], [0.0, np.inf], [0.0, 1.2], [1.0, 9.0]])
    assert_array_equal(atlas.domain.contains(Z), [False] * 6 + [True])  # an angle may be given in any turn
    assert_array_equal(atlas.domain.retract(Z[:3])[:, 0], [0, 1, 0])
    wide = ATLASES["of different columns"]
    assert not wide.domain.contains(np.array([[0.0, 0.0, 0.0, 0.3]])).any(), "a column that the chart does not have"


def test_bounds_are_those_of_all_charts() -> None:
    assert_array_equal(ATLASES["grids"].domain.extent.lower, [0, -1, -1])
    assert_array_equal(ATLASES["grids"].domain.extent.upper, [1, 1, 1])
    assert_array_equal(ATLASES["curves"].domain.extent.upper, [1, np.inf])
    assert_array_equal(ATLASES["of different columns"].domain.extent.lower, [0, -np.inf, -np.inf, -np.inf])


def test_refined_and_thinned_are_those_of_the_charts() -> None:
    atlas = Atlas((grid(4, 4), torus(6, 6)))
    assert atlas.refined(3) == Atlas((grid(3, 3), torus(3, 3)))
    assert atlas.thinned() == Atlas((grid(2, 2), torus(3, 3)))
    assert atlas.spacing == min(chart.spacing for chart in atlas.charts)
    assert atlas.chart_labels == ("map", "latent 1", "latent 2")
    assert_array_equal(atlas.chart(atlas.nodes), atlas.nodes)


@pytest.mark.parametrize(
    ("charts", "match"),
    [
        ((), "needs latent spaces for its charts"),
        ((grid(3, 3), Box.of((0, 1))), "needs latent spaces for its charts"),
        ((grid(3, 3), line(4)), r"need one dimension, got \[1, 2\]"),
        ((grid(4000, 4000), grid(4000, 4000)), "32000000 latent nodes are more than"),
    ],
)
def test_charts_that_make_no_atlas(charts: tuple, match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        Atlas(charts)
