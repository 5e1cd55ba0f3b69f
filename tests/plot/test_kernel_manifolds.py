"""Pictures of kernel methods: what they show, and that it ends up on paper."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, KMM, UKR, datasets, plot
from prinfold.exceptions import InvalidDataError, InvalidParameterError, NoPreimageError
from prinfold.kernel_manifolds.kmm_table import Residuals
from prinfold.kernel_manifolds.starts import Candidates
from prinfold.latent import Cloud
from prinfold.numerics.radial_kernels import Gaussian
from prinfold.plot.data import kernel_manifolds as densities
from prinfold.plot.inputs import FittedSurface, layout_of

Models = dict[str, Any]


@pytest.fixture(scope="module")
def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    place = rng.uniform(-1, 1, size=(60, 2))
    # Blots of 4 × 6 pixels that wander over the image.
    pixel = np.stack(np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 6), indexing="ij"), axis=-1).reshape(-1, 2)
    blots = np.exp(-2.0 * np.square(place[:, None] - pixel).sum(axis=2))
    return {
        "curve": datasets.make_half_circle(60, rng=0).X,
        "surface": datasets.make_ridge(100, rng=0).X,
        "images": blots,
        "space": rng.normal(size=(50, 5)),
        "maps": datasets.make_half_circle(60, rng=0).X,
    }


@pytest.fixture(scope="module")
def models(tables: dict[str, np.ndarray]) -> Models:
    given = {
        "curve": UKR(1, n_neighbors=(6, 9), max_iter=5),
        "surface": UKR(2, n_neighbors=(8, 12), max_iter=5),
        "images": UKR(2, kernel="quartic", init="pca", max_iter=5),
        "space": UKR(3, init="pca", max_iter=3),
        "maps": KMM(1, n_neighbors=(6, 9), max_iter=3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: model.fit(tables[name]) for name, model in given.items()}


PICTURES: dict[str, Any] = {
    "candidates": lambda m, X, **o: plot.candidates(m, **o),
    "latent_density": lambda m, X, **o: plot.latent_density(m, **o),
    "latent_density of rows": lambda m, X, **o: plot.latent_density(m, X, values=X[:, 0], **o),
    "latent_map": plot.latent_map,
    "magnification": lambda m, X, **o: plot.magnification(m, resolution=20, **o),
    "folds": lambda m, X, **o: plot.folds(m, **o),
    "surface": plot.surface,
    "learning_curve": lambda m, X, **o: plot.learning_curve(m, **o),
    "model": plot.model,
}


@pytest.mark.parametrize("name", ["curve", "surface", "images", "space", "maps"])
@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_of_a_kernel_method_can_be_drawn(models: Models, tables: Any, picture: str, name: str) -> None:
    ax = PICTURES[picture](models[name], tables[name])
    ax.figure.draw_without_rendering()
    assert ax.has_data()


@pytest.mark.parametrize("picture", ["candidates", "latent_density", "latent_density of rows"])
@pytest.mark.parametrize("name", ["curve", "surface", "space"])
def test_given_axes_are_used(models: Models, tables: Any, picture: str, name: str) -> None:
    mine, other = Figure(layout="constrained").subplots(1, 2)
    assert PICTURES[picture](models[name], tables[name], ax=mine) is mine
    assert mine.has_data()
    assert not other.has_data()


def legend_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ---------------------------------------------------------------------------------------------- candidates


def test_candidates_are_drawn_by_kind_and_the_best_is_marked() -> None:
    table = Candidates(
        ("pca", "lle", "lle", "isomap"),
        np.array([0, 9, 4, 6]),
        np.ones((4, 2)),
        np.ones(4),
        np.array([2.0, 1.5, 1.0, 3.0]),
    )
    ax = plot.candidates(table)
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["pca", "lle", "isomap", "chosen: lle, 4 neighbours"] == legend_of(ax)
    np.testing.assert_array_equal(lines["lle"].get_xdata(), [4, 9])
    np.testing.assert_array_equal(lines["lle"].get_ydata(), [1.0, 1.5])
    np.testing.assert_array_equal(lines["pca"].get_ydata(), [2.0, 2.0])
    assert [float(each[0]) for each in lines["chosen: lle, 4 neighbours"].get_data()] == [4, 1]
    assert ax.get_xticks().tolist() == [4, 6, 9]


def test_starts_in_several_dimensions_are_kinds_of_their_own() -> None:
    table = Residuals(
        ("isomap",) * 4,
        np.array([1, 1, 2, 2]),
        np.array([5, 9, 5, 9]),
        *np.ones((2, 4)),
        np.array([4.0, 3, 2, 1]),
        5.0,
    )
    ax = plot.candidates(table)
    assert legend_of(ax) == ["isomap in 1", "isomap in 2", "chosen: isomap in 2, 9 neighbours"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [4, 3])


def test_candidates_are_found_in_a_fitted_model(models: Models, tables: Any) -> None:
    drawn = densities.start_comparison(models["surface"])
    table = models["surface"].candidates_
    assert sorted(np.concatenate([kind.errors for kind in drawn.kinds])) == sorted(table.errors)
    assert drawn.chosen[2] == table.errors.min()
    pipe = make_pipeline(StandardScaler().fit(tables["surface"]), models["surface"])
    assert densities.start_comparison(pipe).chosen == drawn.chosen


def test_a_start_without_neighbours_may_be_the_only_one(models: Models) -> None:
    ax = plot.candidates(models["images"])
    assert legend_of(ax) == ["pca", "chosen: pca"]
    assert ax.get_xlabel() == ""


# ------------------------------------------------------------------------------------------------- density


def loops(segments: np.ndarray) -> int:
    """How many closed lines segments make up; every end must meet exactly one other."""
    ends, index = np.unique(segments.reshape(-1, 2).round(9), axis=0, return_inverse=True)
    pairs = index.reshape(-1, 2)
    assert (np.bincount(pairs.ravel()) == 2).all()
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(ends), len(ends)))
    return int(connected_components(graph, directed=False)[0])


def test_the_rim_of_one_kernel_is_a_circle() -> None:
    segments = densities.contour_segments(Cloud(np.zeros((1, 2)), np.ones(1), Gaussian(), 0.3), 80)
    radius = np.sqrt(-2 * np.log(0.3))
    np.testing.assert_allclose(np.linalg.norm(segments, axis=2), radius, rtol=1e-6)
    length = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1).sum()
    assert length == pytest.approx(2 * np.pi * radius, rel=1e-2)
    assert loops(segments) == 1


@pytest.mark.parametrize("case", ["hole", "pieces"])
def test_holes_and_pieces_have_rims_of_their_own(case: str) -> None:
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = 5.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    centers = ring if case == "hole" else np.array([[-4.0, 0.0], [4.0, 1.0], [0.0, 7.0]])
    cloud = Cloud(centers, np.ones(len(centers)), Gaussian(), 0.05)
    assert loops(densities.contour_segments(cloud, 90)) == (2 if case == "hole" else 3)


def test_shading_is_the_density_and_ends_at_the_contour(models: Models) -> None:
    model = models["surface"]
    ax = plot.latent_density(model, resolution=40)
    cells = layout_of(model.latent_).cells(40)
    assert cells is not None
    (mesh,) = [each for each in ax.collections if isinstance(each, QuadMesh)]
    shown, density = np.ma.filled(mesh.get_array(), np.nan).ravel(), model.latent_density(cells.Z)
    inside = model.latent_.domain.height(cells.Z) >= 0
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_allclose(np.exp(shown[inside]), density[inside], rtol=1e-9)
    assert np.isnan(shown[~inside]).all()
    (contour,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    ends = np.concatenate(contour.get_segments())
    at = model.threshold_ / model.latent_.profile.volume(2)
    np.testing.assert_allclose(model.latent_density(ends), at, rtol=1e-5)


def test_points_are_the_embedding_or_the_rows_given(models: Models, tables: Any) -> None:
    model, X = models["surface"], tables["surface"]
    for given, expected in ((None, model.embedding_), (X[:9], model.transform(X[:9]))):
        ax = plot.latent_density(model, given, resolution=10)
        (dots,) = [each for each in ax.collections if isinstance(each, PathCollection)]
        np.testing.assert_allclose(dots.get_offsets(), expected)


def test_a_density_of_one_axis_is_a_curve_over_its_points(models: Models) -> None:
    model = models["curve"]
    ax = plot.latent_density(model, labels=np.arange(60) % 2)
    z, density = ax.lines[0].get_data()
    np.testing.assert_allclose(density, model.latent_density(np.asarray(z)[:, None]))
    assert float(np.trapezoid(density, z)) == pytest.approx(1.0, abs=0.05)
    assert legend_of(ax) == ["threshold", "0", "1"]
    below = np.concatenate([each.get_offsets() for each in ax.collections if isinstance(each, PathCollection)])
    np.testing.assert_allclose(np.sort(below[:, 0]), np.sort(model.embedding_[:, 0]))
    assert (below[:, 1] < 0).all()


def test_small_values_have_a_scale_of_their_own(models: Models) -> None:
    values = np.linspace(0, 1e-4, 100)
    ax = plot.latent_density(models["surface"], values=values, resolution=10)
    (dots,) = [each for each in ax.collections if isinstance(each, PathCollection)]
    assert dots.norm.vmax - dots.norm.vmin < 1.1e-4


@pytest.mark.parametrize("draw", [plot.latent_density, plot.candidates, plot.images])
def test_a_model_must_be_fitted(draw: Any) -> None:
    with pytest.raises(NotFittedError):
        draw(UKR())


def test_models_without_it_say_so(models: Models) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = GTM(nodes=3, basis=2, max_iter=1).fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(InvalidParameterError, match="GTM has no density over latent space"):
        plot.latent_density(other)
    with pytest.raises(InvalidParameterError, match="has compared no starts; fit a UKR or a KMM"):
        plot.candidates(other)
    with pytest.raises(InvalidParameterError, match="either by labels or by values"):
        plot.latent_density(models["curve"], labels=[1], values=[1.0])


# -------------------------------------------------------------------------------------------------- images


def test_each_image_is_the_point_of_the_surface_at_its_middle(models: Models) -> None:
    model = models["images"]
    found = densities.mosaic(FittedSurface.of(model), (4, 6), 7)
    left, right, bottom, top = found.extent
    rows, columns = found.shape
    assert max(rows, columns) == 7
    shown = 0
    for i in range(rows):
        for j in range(columns):
            z = [left + (j + 0.5) / columns * (right - left), top - (i + 0.5) / rows * (top - bottom)]
            density = float(model.latent_density([z])[0])
            block = np.s_[6 * i + 1 : 6 * i + 5, 8 * j + 1 : 8 * j + 7]  # with a margin of one pixel
            usual = np.median(model.latent_density(model.latent_.nodes))
            np.testing.assert_allclose(found.opacity[block], min(density / usual, 1.0))
            if density > 0:
                expected = model.inverse_transform([z], extrapolate=True).reshape(4, 6)
                np.testing.assert_allclose(found.pixels[block], expected)
                shown += 1
    assert 0 < shown < rows * columns  # the quartic kernel has a rim
    assert found.opacity[::6].max() == found.opacity[:, ::8].max() == 0


def test_images_are_drawn_for_surfaces_and_curves(models: Models, tables: Any) -> None:
    (image,) = plot.images(models["images"], (4, 6), n=5).images
    assert np.ptp(image.get_array()) > 0
    curve = UKR(1, init="pca", tol=1e-2).fit(tables["images"][:, :16])
    assert densities.mosaic(FittedSurface.of(curve), None, 6).pixels.shape == (6, 36)
    plot.images(curve, n=6).figure.draw_without_rendering()


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_models_without_a_density_show_all_of_their_latent_space(tables: Any) -> None:
    for latent in ("grid", "torus"):
        model = GTM(nodes=5, basis=3, max_iter=2, tol=0, latent=latent).fit(tables["images"])
        found = densities.mosaic(FittedSurface.of(model), (4, 6), 4)
        assert (found.opacity.reshape(found.shape[0], 6, found.shape[1], 8)[:, 1:-1, :, 1:-1] == 1).all()


@pytest.mark.parametrize(
    ("name", "shape", "error", "match"),
    [
        ("images", None, InvalidParameterError, r"24 columns make no square image; pass shape="),
        ("images", (5, 5), InvalidDataError, r"images of 5 × 5 pixels need 25 columns, got 24"),
        ("images", 24, InvalidParameterError, r"shape must be \(height, width\), got 24"),
        ("space", (1, 5), InvalidParameterError, r"one or two latent axes; the model has more"),
    ],
)
def test_images_that_cannot_be_are_named(models: Models, name: str, shape: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        plot.images(models[name], shape)


def test_surfaces_in_feature_space_are_drawn_as_far_as_they_have_points(tables: Any) -> None:
    model = UKR(2, init="pca", feature_kernel="l1", tol=1e-2).fit(tables["images"])
    assert plot.model(model, tables["images"]).has_data()
    assert plot.latent_density(model, resolution=20).has_data()
    with pytest.raises(NoPreimageError):
        plot.images(model, (4, 6))
