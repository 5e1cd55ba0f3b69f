"""The contract: one set of verbs, the same shapes and attributes for every method."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import load
from prinfold._typing import Mesh, Stretch
from prinfold.exceptions import OutOfDomainError
from prinfold.gtm.lattice_refinement import refinement_of
from prinfold.loops import StopReason
from tests.house import public_manifolds
from tests.properties.cases import CASES, QUICK, Case, cases, cloud, fitted

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

BESIDES = ("errors", "groups", "length", "lengths", "return_latent")
VERBS = {
    "fit": ["X", "y", "sample_weight"],
    "transform": ["X"],
    "inverse_transform": ["Z", "extrapolate"],
    "project": ["X"],
    "reconstruct": ["X"],
    "projection_error": ["X"],
    "score": ["X", "y"],
    "jacobian": ["Z", "extrapolate"],
    "magnification": ["Z", "extrapolate"],
    "mesh": ["resolution", "X"],
    "plot": ["X", "options"],
    "save": ["path"],
}
DENSITY_VERBS = {
    "score_samples": ["X"],
    "responsibilities": ["X", "threshold"],
    "posterior_mode": ["X"],
    "posterior_covariance": ["X"],
    "sample": ["n", "random_state"],
}


def test_every_public_manifold_has_a_case():
    tried = {type(case.make()).__name__ for case in CASES}
    assert tried == set(public_manifolds())


def test_every_public_manifold_is_in_the_quick_run():
    quick = {type(case.make()).__name__ for case in CASES if case.name in QUICK and not case.slow}
    assert quick == set(public_manifolds())
    assert {case.name for case in CASES} >= QUICK


@cases()
def test_verbs_take_what_the_contract_says(case: Case):
    verbs = VERBS | (DENSITY_VERBS if "density" in case.tags else {})
    for verb, expected in verbs.items():
        parameters = inspect.signature(getattr(case.make(), verb)).parameters
        # What a family knows besides, such as the errors of cells, has to be called by name.
        assert [name for name in parameters if name not in BESIDES] == expected, verb
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in BESIDES if name in parameters)


@cases(one_each=True)
def test_init_only_assigns_and_fit_changes_no_parameter(case: Case):
    estimator = case.make()
    before = dict(vars(estimator))
    assert set(before) == set(inspect.signature(type(estimator).__init__).parameters) - {"self"}
    estimator.fit(cloud())
    for name, value in before.items():
        assert getattr(estimator, name) is value, name


@cases()
def test_shapes(case: Case):
    model, X = fitted(case)
    n, D = X.shape
    Q, q = case.n_columns, case.dimension
    Z = model.transform(X)
    assert Z.shape == (n, Q)
    assert model.latent_.domain.contains(Z).all()
    assert model.inverse_transform(Z).shape == (n, D)
    assert model.project(X).shape == model.reconstruct(X).shape == (n, D)
    assert isinstance(model.projection_error(X), float)
    assert isinstance(model.score(X), float)
    assert model.jacobian(Z).shape == (n, D, Q)
    stretch = model.magnification(Z)
    assert isinstance(stretch, Stretch)
    assert (stretch.factor.shape, stretch.directions.shape, stretch.lengths.shape) == ((n,), (n, Q, q), (n, q))
    mesh = model.mesh(resolution=6)
    assert isinstance(mesh, Mesh)
    assert mesh.vertices.shape == (len(mesh.latent), D)
    assert mesh.latent.shape[1] == Q
    assert mesh.faces.shape[1] == q + 1
    assert_allclose(model.inverse_transform(mesh.latent), mesh.vertices, atol=1e-12)
    assert_allclose(model.reconstruct(X), model.inverse_transform(Z), atol=1e-10)


@cases()
def test_fitted_attributes(case: Case):
    model, _ = fitted(case)
    assert model.n_iter_ == 12
    assert model.converged_ is False
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert str(model.stop_reason_).endswith(".")
    lengths = {len(values) for values in model.history_.values()}
    assert lengths == {model.n_iter_ + 1}
    assert {"objective", "seconds"} <= set(model.history_)
    assert (np.diff(model.history_["seconds"]) >= 0).all()
    assert model.n_features_in_ == 5


@cases()
def test_the_jacobian_is_the_derivative_of_the_map(case: Case):
    model, X = fitted(case)
    Z = model.latent_.domain.retract(0.9 * model.transform(X)[:20])
    frame = model.latent_.domain.frame(Z)
    J = model.jacobian(Z) @ frame
    for axis in range(case.dimension):
        step = 1e-6 * frame[:, :, axis]
        ahead = model.inverse_transform(Z + step, extrapolate=True)
        behind = model.inverse_transform(Z - step, extrapolate=True)
        assert_allclose(J[:, :, axis], (ahead - behind) / 2e-6, atol=1e-6)


@cases()
def test_magnification_is_the_volume_ratio(case: Case):
    model, X = fitted(case)
    Z = model.transform(X)
    A = model.jacobian(Z) @ model.latent_.domain.frame(Z)
    gram = np.swapaxes(A, 1, 2) @ A
    stretch = model.magnification(Z)
    assert_allclose(stretch.factor**2, np.linalg.det(gram), rtol=1e-6, atol=1e-12)
    assert_allclose(stretch.lengths.prod(axis=1), stretch.factor, rtol=1e-9)
    along = np.einsum("ndq,nqk->ndk", model.jacobian(Z), stretch.directions)
    assert_allclose(np.linalg.norm(along, axis=1), stretch.lengths, atol=1e-9)


@cases()
def test_outside_the_domain_is_an_error_unless_asked_for(case: Case):
    model, _ = fitted(case)
    outside = model.latent_.nodes[:1] * 1.0
    domain = model.latent_.domain
    bounded = np.isfinite(domain.extent.upper)
    if bounded.all() and domain.contains(domain.extent.upper[None] + 5.0)[0]:  # arc length round one ring
        turns = model.inverse_transform(outside + 3 * (domain.extent.upper - domain.extent.lower))
        assert_allclose(turns, model.inverse_transform(outside), atol=1e-9)
        return
    if not bounded.any() and case.n_columns == case.dimension:
        turns = model.inverse_transform(outside + 4 * np.pi)
        assert_allclose(turns, model.inverse_transform(outside), atol=1e-9)
        return
    if bounded.any():
        outside[:, bounded] = domain.extent.upper[bounded] + 5.0
    else:
        outside += 5.0
    with pytest.raises(OutOfDomainError, match="extrapolate=True"):
        model.inverse_transform(outside)
    with pytest.raises(OutOfDomainError, match="outside the domain"):
        model.magnification(outside)
    assert np.isfinite(model.inverse_transform(outside, extrapolate=True)).all()


@cases()
def test_clone_pickle_and_files_survive(case: Case, tmp_path):
    model, X = fitted(case)
    again = clone(model).fit(X)
    assert_allclose(again.transform(X), model.transform(X), atol=0)
    assert_allclose(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X), atol=0)
    model.save(tmp_path / "model.prinfold")
    read = load(tmp_path / "model.prinfold")
    for verb in ("transform", "project", "reconstruct"):
        assert_allclose(getattr(read, verb)(X), getattr(model, verb)(X), atol=0, err_msg=verb)
    assert read.history_ == model.history_
    assert read.stop_reason_ is model.stop_reason_


@cases(one_each=True)
def test_feature_names_and_set_output(case: Case):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    X = cloud()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = case.make().set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(model.feature_names_in_) == list("abcde")
    assert list(out.columns) == list(model.get_feature_names_out())
    assert len(out.columns) == case.n_columns
    out = (
        case.make()
        .set_output(transform="polars")
        .fit(polars.DataFrame(frame.to_dict("list")))
        .transform(polars.DataFrame(frame.to_dict("list")))
    )
    assert isinstance(out, polars.DataFrame)


# The others are put into pipelines by scikit-learn's checks.
@cases(few={"GTM", "UKR-line", "PolygonalCurve"})
def test_pipelines_and_grid_search(case: Case):
    X = cloud()
    pipeline = make_pipeline(StandardScaler(), case.make(max_iter=3))
    name = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{name}__max_iter": [1, 3]}, cv=2).fit(X)
    assert search.best_params_[f"{name}__max_iter"] in {1, 3}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.transform(X).shape == (len(X), case.n_columns)


WARNING = ["GTM", "GTMSequence", "GTMMixture", "MixedGTM", "PPS", "UKR", "KMM", "SOM", "DensityRidge", "PrincipalCurve"]


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("case", [case for case in CASES if case.name in WARNING], ids=lambda case: case.name)
def test_warnings_point_at_the_line_that_called(case: Case):
    """Not at prinfold's own, nor at scikit-learn's where that stands between."""
    hasty, X = case.make(max_iter=1, tol=1e-12), cloud()
    for model in (hasty, make_pipeline(StandardScaler(), hasty)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model.fit(X)
        assert {each.filename for each in heard} == {__file__}, [str(each.message) for each in heard]


@cases("density")
def test_what_the_posterior_gives(case: Case):
    model, X = fitted(case)
    R = model.responsibilities(X)
    nodes, Q = getattr(model, "node_places_", model.latent_.nodes), case.n_columns
    assert R.shape == (len(X), len(nodes))
    assert_allclose(R.sum(axis=1), 1.0, rtol=1e-12)
    mode, heaviest = model.posterior_mode(X), nodes[R.argmax(axis=1)]
    assert model.latent_.domain.contains(mode).all()
    if hasattr(model, "_parameters") and refinement_of(model._model, model._parameters()) is not None:
        step = np.median(model.latent_.domain.difference(mode, heaviest), axis=0)  # within the cell, or the next
        assert (np.abs(step) <= model.latent_.spacing).all()
    else:
        assert_allclose(mode, heaviest, atol=0)
    covariance = model.posterior_covariance(X)
    assert covariance.shape == (len(X), Q, Q)
    assert (np.linalg.eigvalsh(covariance) >= -1e-12).all()
    assert model.score_samples(X).shape == (len(X),)
    assert_allclose(model.score(X), model.score_samples(X).mean(), rtol=1e-12)
    drawn = model.sample(7, random_state=1)
    assert drawn.shape == (7, X.shape[1])
    assert_allclose(model.sample(7, random_state=1), drawn, atol=0)
