"""Cells of a U-matrix: where they lie, what they say, and that they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection, PolyCollection
from numpy.testing import assert_allclose

from prinfold import GTM, SOM, datasets, plot
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data.som import majorities, u_matrix_cells
from prinfold.plot.inputs import FittedSurface, RowClasses

SETTINGS = {
    "line": ({"latent": "line", "nodes": 7}, 7 + 6),
    "circle": ({"latent": "circle", "nodes": 7}, 7 + 7),
    "grid": ({"nodes": (5, 4)}, 9 * 7),
    "torus": ({"nodes": (5, 4), "latent": "torus"}, 10 * 8),
    "hexagons": ({"nodes": (5, 4), "grid": "hexagonal"}, 20 + 4 * 4 + 3 * 9),
    "hexagons round a torus": ({"nodes": (5, 4), "grid": "hexagonal", "latent": "torus"}, 4 * 20),
}
ridge = datasets.make_ridge(64, rng=0).X


def fitted(settings):
    return SOM(max_iter=3, tol=0, **settings).fit(ridge)


@pytest.mark.parametrize("name", SETTINGS)
def test_there_is_a_cell_for_every_node_and_between_neighbours(name):
    settings, count = SETTINGS[name]
    cells = u_matrix_cells(FittedSurface.of(fitted(settings)))
    assert len(cells.corners) == len(cells.value) == count
    middle = cells.corners.mean(axis=1)
    assert len(np.unique(middle.round(9), axis=0)) == count, "no cell covers another"
    gap = np.linalg.norm(middle[:, None] - middle, axis=2) + np.eye(count)
    assert_allclose(gap.min(axis=1), 0.5)


def test_cells_say_how_far_apart_nodes_are():
    model = fitted({"nodes": (3, 2)})
    cells = u_matrix_cells(FittedSurface.of(model))
    W = model.codebook_.reshape(3, 2, 3)
    said = {tuple(at): value for at, value in zip(cells.corners.mean(axis=1), cells.value, strict=True)}

    def apart(a, b):
        return np.linalg.norm(W[a] - W[b])

    assert_allclose(said[0.5, 0.0], apart((0, 0), (1, 0)))
    assert_allclose(said[2.0, 0.5], apart((2, 0), (2, 1)))
    assert_allclose(said[1.5, 0.5], (apart((1, 0), (2, 1)) + apart((2, 0), (1, 1))) / np.sqrt(8))
    assert_allclose(said[0.0, 1.0], (apart((0, 1), (1, 1)) + apart((0, 1), (0, 0))) / 2)


def test_over_a_seam_a_cell_joins_the_last_node_to_the_first():
    model = fitted({"latent": "circle", "nodes": 7})
    cells = u_matrix_cells(FittedSurface.of(model))
    beyond = cells.corners.mean(axis=1)[:, 0] > 6.2
    assert_allclose(cells.value[beyond], np.linalg.norm(model.codebook_[6] - model.codebook_[0]))


def test_the_class_of_a_node_is_that_of_most_of_its_rows():
    groups = RowClasses(("a", "b"), np.array([0, 1, 1, 0, -1]))
    assert majorities(np.array([0, 0, 0, 2, 3]), groups, 4).tolist() == [1, -1, 0, -1]


def test_rows_are_counted_and_classes_marked():
    model = fitted({"nodes": 4, "grid": "hexagonal"})
    ax = plot.u_matrix(model, ridge)
    assert sum(int(text.get_text()) for text in ax.texts) == 64
    assert len([each for each in ax.collections if isinstance(each, PolyCollection)]) == 1
    _, given = plt.subplots()
    assert plot.u_matrix(model, ridge, labels=(ridge[:, 0] > 0).astype(int), ax=given) is given
    drawn = sum(len(each.get_offsets()) for each in given.collections if isinstance(each, PathCollection))
    assert drawn == len(np.unique(model.winners(ridge)))
    plt.close("all")


@pytest.mark.parametrize(("settings", "drawn"), [({"n_components": 1, "nodes": 90}, "bars"), ({"nodes": 60}, "dots")])
def test_where_numbers_would_run_into_each_other_there_are_bars_or_dots(settings, drawn):
    model = fitted(settings)
    ax = plot.u_matrix(model, ridge)
    counts = np.bincount(model.winners(ridge))
    counts = counts[counts > 0]
    assert not ax.texts
    sizes = (
        [bar.get_height() for bar in ax.patches]
        if drawn == "bars"
        else next(each for each in ax.collections if isinstance(each, PathCollection)).get_sizes()
    )
    np.testing.assert_allclose(sizes / np.max(sizes), counts / counts.max())
    assert ax.get_legend().get_texts()[0].get_text() == f"rows won, up to {counts.max()}"
    plt.close("all")


def test_what_has_no_cells_is_refused():
    with pytest.raises(InvalidParameterError, match=r"got SOM on Sphere; plot\.magnification"):
        plot.u_matrix(fitted({"latent": "sphere", "nodes": 20}))
    with pytest.raises(InvalidParameterError, match="got GTM on Lattice"):
        plot.u_matrix(GTM(nodes=4, basis=2, max_iter=1, tol=0).fit(ridge))
    with pytest.raises(InvalidParameterError, match="labels are those of rows"):
        plot.u_matrix(fitted({"nodes": 3}), labels=[1, 2])
    with pytest.raises(InvalidParameterError, match=r"background must be.*plot\.u_matrix draws distances"):
        plot.latent_map(fitted({"nodes": 3}), ridge, background="u_matrix")
