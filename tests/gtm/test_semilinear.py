"""The semi-linear model: latent coordinates and linear ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import spearmanr
from sklearn.base import clone

import prinfold
from prinfold import GTM, SemiLinearGTM, choose, datasets
from prinfold.exceptions import CorruptModelFileError, InvalidDataError, InvalidParameterError, OutOfDomainError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")  # few iterations

DATA = datasets.make_semilinear_sheet(225, noise=0.04, rng=0)
X = DATA.X
ERRORS = 0.05 * np.random.default_rng(1).uniform(0.2, 2, X.shape)
HOLED = np.where(np.random.default_rng(2).uniform(size=X.shape) < 0.15, np.nan, X)
HOLED[:, 0] = X[:, 0]


def fitted(table=X, errors=None, **settings):
    inner = GTM(1, nodes=15, basis=5, regularization=1e-3, max_iter=60, tol=0.0)
    return SemiLinearGTM(inner, **settings).fit(table, errors=errors)


@pytest.mark.parametrize(
    ("table", "errors"), [(X, None), (HOLED, None), (HOLED, ERRORS)], ids=["plain", "gaps", "both"]
)
def test_linear_coordinates_are_conditional_expectations(table, errors):
    model = fitted(table, errors)
    V, centers = model.linear_axes_.T, model.gtm_.inverse_transform(model.gtm_.latent_.nodes)
    found = model.transform(table, errors=errors)
    assert found.shape == (len(X), 2)
    assert_allclose(found[:, :1], model.gtm_.transform(table, errors=errors), atol=1e-12)
    for i in (0, 50, 224):
        seen = ~np.isnan(table[i])
        own = np.zeros(seen.sum()) if errors is None else errors[i, seen] ** 2
        total = V[seen] @ V[seen].T + np.diag(model.gtm_.noise_variance_ + own)
        gap = table[i, seen] - centers[:, seen]
        precision = np.linalg.inv(total)
        log_density = -0.5 * np.einsum("kd,de,ke->k", gap, precision, gap)
        share = np.exp(log_density - logsumexp(log_density))
        assert_allclose(found[i, 1:], share @ (gap @ precision @ V[seen]), atol=1e-8)


def test_coordinates_are_those_that_made_the_data():
    Z, truth = fitted().transform(X), DATA.latent
    assert abs(spearmanr(Z[:, 0], truth[:, 0]).statistic) > 0.99  # nodes are as dense as the prior has them
    assert abs(np.corrcoef(Z[:, 1], truth[:, 1])[0, 1]) > 0.95
    assert np.std(Z[:, 1]) == pytest.approx(1.0, abs=0.1)


def test_rows_are_made_again_from_both():
    model = fitted()
    Z = model.transform(X)
    assert_allclose(model.reconstruct(X), model.inverse_transform(Z), atol=1e-10)
    assert np.square(model.reconstruct(X) - X).mean() < 2 * 0.04**2
    assert np.square(model.gtm_.reconstruct(X) - X).mean() > 0.1  # the curve alone cannot
    on_curve = np.column_stack([Z[:, :1], np.zeros(len(Z))])
    assert_allclose(model.inverse_transform(on_curve), model.gtm_.inverse_transform(Z[:, :1]))
    with pytest.raises(OutOfDomainError, match="extrapolate=True"):
        model.inverse_transform([[3.0, 0.0]])
    assert np.isfinite(model.inverse_transform([[3.0, 50.0]], extrapolate=True)).all()


def test_it_is_a_gtm_with_low_rank_noise():
    model = fitted()
    assert model.score(X) == pytest.approx(model.gtm_.score(X))
    assert_allclose(model.score_samples(X), model.gtm_.score_samples(X))
    assert_allclose(model.impute(HOLED), model.gtm_.impute(HOLED))
    assert_allclose(model.sample(5, random_state=0), model.gtm_.sample(5, random_state=0))
    assert list(model.get_feature_names_out()) == ["semilineargtm0", "semilineargtm1"]
    assert_allclose(model.fit_transform(X), model.transform(X))


def test_a_row_alone_and_single_precision():
    model = fitted()
    Z = model.transform(X)
    assert_allclose(np.concatenate([model.transform(X[i : i + 1]) for i in range(9)]), Z[:9], atol=1e-10)
    narrow = model.transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, Z, atol=1e-3)


def test_where_it_begins_can_be_chosen():
    assert fitted().score(X) > fitted(axes=(1,)).score(X) + 0.3
    assert fitted(axes=(0,)).score(X) == pytest.approx(fitted().score(X))


def test_files(tmp_path):
    model = fitted(HOLED)
    model.save(tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    assert_allclose(again.transform(HOLED), model.transform(HOLED), atol=1e-12)
    model.gtm_ = GTM(1, nodes=5, basis=2, max_iter=2, tol=0).fit(X)
    model.save(tmp_path / "bad.prinfold")
    with pytest.raises(CorruptModelFileError, match="a gtm_ with straight directions"):
        prinfold.load(tmp_path / "bad.prinfold")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gtm": GTM(1, noise="diagonal")}, "has a noise of its own; leave it as it comes"),
        ({"gtm": GTM}, "gtm must be .*a GTM"),
        ({"n_linear": 0}, "n_linear must be"),
        ({"n_linear": 3}, "leaves nothing over where n_features = 3"),
        ({"axes": (-1,)}, "axes must be"),
    ],
)
def test_what_cannot_be_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        SemiLinearGTM(**settings).fit(X)


def test_it_tells_how_training_went():
    X = datasets.make_semilinear_sheet(noise=0.05, rng=0).X
    model = SemiLinearGTM(GTM(1, nodes=10, basis=4, max_iter=5, tol=0)).fit(X)
    assert model.n_iter_ == 5
    assert len(model.history_["objective"]) == 6
    assert model.stop_reason_ is model.gtm_.stop_reason_
    assert not model.converged_
    assert model.noise_variance_ == model.gtm_.noise_variance_


def test_errors_go_by_the_names_of_their_columns():
    X = datasets.make_semilinear_sheet(noise=0.05, rng=0).X[:120]
    names = [f"c{j}" for j in range(X.shape[1])]
    frame, errors = pd.DataFrame(X, columns=names), pd.DataFrame(np.full(X.shape, 0.05), columns=names)
    turned = errors[names[::-1]]
    recipe = SemiLinearGTM(GTM(1, nodes=10, basis=4, max_iter=5, tol=0))
    model = clone(recipe).fit(frame, errors=errors)
    for verb in (clone(recipe).fit, model.transform, model.score, model.impute):
        with pytest.raises(InvalidDataError, match="same names in the same order"):
            verb(frame, errors=turned)
    with pytest.raises(InvalidDataError, match="same names in the same order"):
        choose(frame, {"width": (1.0,)}, model=GTM(1, nodes=8), errors=turned)
