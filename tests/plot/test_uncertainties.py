"""Pictures of how sure a model is: what they show, and that it ends up on paper."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, PPS, UKR, GaussianProcess, plot
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data import uncertainties
from prinfold.plot.inputs import FittedSurface, layout_of

FLAT = ("line", "circle", "grid", "cylinder", "torus", "sphere", "points")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def the(kind, ax):
    (only,) = [each for each in ax.collections if isinstance(each, kind)]
    return only


@pytest.mark.parametrize("name", FLAT)
def test_every_latent_space_is_drawn_on_the_axes_given(models, rows, name):
    for draw in (plot.uncertainty, plot.surface_band):
        ax = Figure().add_subplot()
        assert draw(models[name], rows[name], ax=ax) is ax
        ax.figure.draw_without_rendering()
        assert ax.has_data()
        draw(models[name], rows[name]).figure.draw_without_rendering()


def test_ellipses_have_the_axes_of_the_covariance():
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    found = uncertainties.ellipses_of(np.zeros((1, 2)), (turn @ np.diag([9.0, 4.0]) @ turn.T)[None], 2.0)
    assert_allclose((found.width[0], found.height[0]), (12.0, 8.0))
    assert_allclose(np.tan(np.radians(found.angle[0])), np.tan(0.4))


def test_a_row_has_the_ellipse_of_its_posterior(models, rows):
    ax = plot.uncertainty(models["grid"], rows["grid"], level=0.95, most=10**6)
    glyphs = the(EllipseCollection, ax)
    covariance = models["grid"].posterior_covariance(rows["grid"])
    assert len(glyphs.get_offsets()) == len(rows["grid"])
    longest = 2 * 1.959964 * np.sqrt(np.linalg.eigvalsh(covariance)[:, 1])
    assert_allclose(2 * glyphs._widths, longest, rtol=1e-5)  # matplotlib keeps halves
    assert_allclose(glyphs.get_offsets(), models["grid"].transform(rows["grid"]), atol=1e-12)


def test_of_many_rows_some_have_an_ellipse_and_all_are_drawn(models, rows):
    ax = plot.uncertainty(models["grid"], rows["grid"], most=7, labels=np.arange(100) % 2)
    assert len(the(EllipseCollection, ax).get_offsets()) == 7
    points = [each for each in ax.collections if isinstance(each, PathCollection)]
    assert sum(len(each.get_offsets()) for each in points) == 100


def test_along_a_curve_the_spread_is_a_bar(models, rows):
    bars = the(LineCollection, plot.uncertainty(models["line"], rows["line"], level=0.5)).get_segments()
    half = 0.674490 * np.sqrt(models["line"].posterior_covariance(rows["line"])[:, 0, 0])
    assert_allclose([0.5 * np.ptp(bar[:, 0]) for bar in bars], half, rtol=1e-5)


def test_the_tube_of_a_curve_is_as_wide_as_its_band(models, rows):
    model, X = models["line"], rows["line"]
    for hessian in ("approximate", "exact"):
        ax = plot.surface_band(model, X, level=0.9, hessian=hessian)
        discs, Z = the(EllipseCollection, ax), model.latent_.refined(400).nodes
        C = model.surface_covariance(Z, X=X, hessian=hessian)
        assert_allclose(2 * discs._widths, 2 * 1.644854 * np.sqrt(np.linalg.eigvalsh(C)[:, 1]), rtol=1e-5)
        assert_allclose(discs.get_offsets(), model.inverse_transform(Z), atol=1e-12)


def test_the_map_of_a_surface_shows_its_standard_deviation(models, rows):
    image = the(QuadMesh, plot.surface_band(models["grid"], resolution=11))
    corners = image.get_coordinates()
    Z = ((corners[:-1, :-1] + corners[1:, 1:]) / 2).reshape(-1, 2)
    wanted = np.sqrt((models["grid"].surface_std(Z) ** 2).mean(axis=1))
    assert_allclose(np.asarray(image.get_array()).ravel(), wanted, rtol=1e-9)


def test_many_columns_and_a_process_are_drawn(rows):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1)) @ np.ones((1, 6)) + 0.1
    X = X + 0.05 * np.random.default_rng(1).normal(size=X.shape)
    model = GTM(1, basis=GaussianProcess(0.5, 1.0), max_iter=5, tol=0.0).fit(X)
    assert plot.surface_band(model, X, dims=(1, 4)).get_xlabel() == "column 2"
    assert plot.surface_band(model).get_xlabel().startswith("component 1")


def test_refusals_say_what_to_do(models, rows):
    with pytest.raises(InvalidParameterError, match="level must be a number above 0 and below 1"):
        plot.uncertainty(models["grid"], rows["grid"], level=1.0)
    with pytest.raises(InvalidParameterError, match="most must be"):
        plot.uncertainty(models["grid"], rows["grid"], most=0)
    with pytest.raises(InvalidParameterError, match="pass flat axes as ax="):
        plot.uncertainty(models["space"], rows["space"])
    with pytest.raises(InvalidParameterError, match="drawn for curves and surfaces, got 3"):
        plot.surface_band(models["space"])
    curve = GTM(1, nodes=5, basis=2, max_iter=1, tol=0.0).fit(rows["sphere"])
    with pytest.raises(InvalidParameterError, match="dims names 3"):
        plot.surface_band(curve, dims=(0, 1, 2))
    with pytest.raises(InvalidParameterError, match="without projection='3d'"):
        plot.surface_band(models["line"], ax=plt.figure().add_subplot(projection="3d"))
    with pytest.raises(InvalidParameterError, match="surface of a PPS has no posterior"):
        plot.surface_band(PPS(1, nodes=8, basis=4, max_iter=1, tol=0.0).fit(rows["line"]))
    with pytest.raises(InvalidParameterError, match="UKR has no posterior"):
        plot.uncertainty(UKR(1, max_iter=1, tol=0.0).fit(rows["line"]), rows["line"])
    chain = make_pipeline(StandardScaler(), GTM(1, nodes=5, basis=2)).fit(rows["grid"] * [9.0, 1.0, 1.0])
    with pytest.raises(InvalidParameterError, match="draw pipeline"):
        plot.surface_band(chain)


def test_bars_follow_a_ring(models, rows):
    fitted = FittedSurface.of(models["circle"])
    spread = uncertainties.coordinate_spread(fitted, rows["circle"], 5)
    found = uncertainties.bars(layout_of(fitted.latent), spread, np.full(80, 0.5), 1.0)
    radius = np.linalg.norm(found, axis=2)
    assert_allclose(radius, np.broadcast_to(radius[:, :1], radius.shape))


def test_rows_with_gaps_are_drawn_as_the_model_fills_them():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 120)
    X = np.stack([u, np.sin(3 * u)], axis=1) + 0.1 * rng.standard_normal((120, 2))
    X[::5, 1] = np.nan
    model = GTM(1, nodes=15, basis=6, max_iter=500).fit(X)
    ax = plot.surface_band(model, X)
    assert np.isfinite([ax.get_xlim(), ax.get_ylim()]).all()
