"""Principal surfaces of Hastie and Stuetzle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import PrincipalSurface, RegularizedManifold, datasets, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.explorer.decoders import decoder_of
from prinfold.geometry.column_span import ColumnSpan

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BOTH = pytest.mark.parametrize("kind", [PrincipalSurface, RegularizedManifold])


@pytest.fixture(scope="module")
def ridge() -> datasets.Dataset:
    return datasets.make_ridge(300, noise=0.1, sampling="parameter", rng=0)


@pytest.fixture(scope="module")
def model(ridge) -> PrincipalSurface:
    return PrincipalSurface(nodes=8, max_iter=5, tol=0).fit(ridge.X)


def test_the_surface_is_nearer_to_the_truth_than_the_rows(model, ridge):
    of_rows, of_surface = (np.mean(ridge.surface.distance(Y) ** 2) for Y in (ridge.X, model.project(ridge.X)))
    assert of_surface < 0.4 * of_rows


def test_the_round_trip_is_the_projection(model, ridge):
    some = ridge.X[:50]
    assert_allclose(model.reconstruct(some), model.project(some), atol=1e-9)


def test_the_history_tells_the_penalty_which_never_falls(model):
    penalty = model.history_["penalty"]
    assert (np.diff(penalty) >= 0).all()
    assert model.penalty_ == penalty[-1]
    assert model.n_iter_ == 5


def test_a_page_evaluates_the_same_surface(model):
    assert decoder_of(model)["kind"] == "net"


def test_a_stiff_surface_is_a_plane_and_a_supple_one_is_not(ridge):
    stiff, supple = (
        PrincipalSurface(penalty=penalty, nodes=6, init="pca", max_iter=2, tol=0).fit(ridge.X)
        for penalty in (1e6, 1e-3)
    )
    singular = np.linalg.svd(stiff.mesh(6).vertices - stiff.mesh(6).vertices.mean(axis=0), compute_uv=False)
    assert singular[2] < 1e-4 * singular[1]
    assert supple.projection_error(ridge.X) < 0.5 * stiff.projection_error(ridge.X)


@BOTH
def test_straight_rows_give_the_line(kind):
    rng = np.random.default_rng(1)
    X = np.outer(rng.uniform(-2, 2, 200), [0.6, 0.8, 0.0]) + 0.01 * rng.standard_normal((200, 3)) + 5.0
    vertices = kind(1, nodes=10, max_iter=4, tol=0).fit(X).mesh(20).vertices - X.mean(axis=0)
    axis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    assert np.sqrt(np.mean(np.square(vertices - np.outer(vertices @ axis, axis)).sum(axis=1))) < 0.01


@BOTH
def test_places_may_be_given_in_any_units_and_for_rows_that_repeat(kind):
    t = np.linspace(0, 1, 30)
    X = np.stack([np.cos(4 * t), np.sin(4 * t)], axis=1)
    settings = {"n_components": 1, "nodes": 12, "max_iter": 2, "tol": 0}
    once = kind(init=t[:, None], **settings).fit(X)
    again = kind(init=100 * np.concatenate([t, t])[:, None] - 7, **settings).fit(np.concatenate([X, X]))
    if kind is RegularizedManifold:  # the other knows that there are more rows, and smooths less
        assert_allclose(again.mesh(9).vertices, once.mesh(9).vertices, atol=1e-8)
    assert (once.start_, kind(init="pca", **settings).fit(X).start_) == ("given", "pca")
    assert again.projection_error(X) < 1e-2 * X.var(axis=0).sum()


@BOTH
def test_wide_tables_are_projected_within_the_span_of_the_surface(kind):
    rng = np.random.default_rng(4)
    X = np.c_[rng.uniform(-1, 1, (40, 2)), 0.1 * rng.standard_normal((40, 38))] + 3.0
    model = kind(nodes=4, max_iter=2, tol=0, init="pca").fit(X)
    whole = replace(model._geometry(), inside=None, span=ColumnSpan(None)).nearest(X)  # in all forty columns
    assert_allclose(model.transform(X), whole.latent, atol=1e-6)
    assert_allclose(model.project(X), whole.points, atol=1e-6)
    assert model.projection_error(X) == pytest.approx(whole.squared_distance.mean())


@BOTH
def test_places_of_another_shape_are_refused(kind):
    with pytest.raises(InvalidDataError, match=r"shape \(4, 2\).*got shape \(4, 1\)"):
        kind(init=np.zeros((4, 1))).fit(np.arange(8.0).reshape(4, 2))


@BOTH
def test_more_than_three_dimensions_are_refused(kind):
    with pytest.raises(InvalidParameterError, match="n_components"):
        kind(4).fit(np.eye(6))


@BOTH
def test_rows_that_are_all_equal_give_a_point(kind):
    X = np.full((5, 3), 7.0)
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        model = kind(nodes=4).fit(X)
    assert_allclose(model.project(X), X)
    assert_allclose(model.mesh(3).vertices, 7.0)
    assert np.isfinite(model.transform(X)).all()


@BOTH
@quiet
def test_one_column_holds_no_surface_but_has_an_answer(kind):
    X = np.linspace(0, 3, 20)[:, None]
    with pytest.warns(DegenerateWarning, match="not determined. Set n_components=1"):
        model = kind(nodes=4, max_iter=3).fit(X)
    assert np.abs(model.project(X) - X).max() < 0.3
    assert np.isfinite(model.transform(X)).all()


@BOTH
@quiet
@pytest.mark.parametrize("n", [2, 3])
def test_tiny_tables_lie_on_the_surface_or_near_it(kind, n):
    X = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 1.0], [3.0, 0.0, 1.0]])[:n]
    model = kind(nodes=4, max_iter=2).fit(X)
    assert model.projection_error(X) < 0.1 * X.var(axis=0).sum()
    assert_allclose(model.mesh(4).vertices[:, 2], 1.0)


@quiet
def test_rows_far_from_the_origin_give_the_same_surface(ridge):
    settings = {"nodes": 5, "max_iter": 2, "init": "pca"}
    here, there = (PrincipalSurface(**settings).fit(ridge.X + shift) for shift in (0.0, 1e6))
    assert_allclose(there.mesh(5).vertices - 1e6, here.mesh(5).vertices, atol=1e-4)


def test_a_file_whose_parts_do_not_fit_is_refused(model, tmp_path):
    path = tmp_path / "surface.prinfold"
    model.save(path)
    assert_allclose(load(path).mesh(4).vertices, model.mesh(4).vertices)
    broken = PrincipalSurface(nodes=8)
    vars(broken).update(vars(model) | {"weights_": model.weights_[:3]})
    broken.save(path)
    with pytest.raises(CorruptModelFileError, match="needs weights_ with 64 rows, as basis_ has"):
        load(path)
