"""Maps of single cells: results stand where scanpy looks for them, and are the model's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prinfold
from prinfold import GTM, KMM, UKR, DensityRidge, PrincipalCurve, PrincipalTree, datasets
from prinfold import anndata as cells
from prinfold.anndata import maps
from prinfold.exceptions import InvalidParameterError, MissingExtraError, PrinfoldWarning, UnsupportedInputError

anndata = pytest.importorskip("anndata", reason="anndata is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")

_FEW: dict[str, Any] = {"max_iter": 3, "tol": 0.0}


@pytest.fixture
def adata() -> Any:
    data = datasets.make_pipe_flow(80, rng=0)
    made = anndata.AnnData(data.X.copy(), obs=pd.DataFrame({"kind": data.names}, index=[f"cell{i}" for i in range(80)]))
    made.obsm["X_pca"] = PCA(5).fit_transform(data.X)
    return made


def test_results_stand_where_scanpy_looks_for_them(adata: Any) -> None:
    model = GTM(nodes=8, basis=4, **_FEW)
    assert cells.fit(adata, model) is None
    rows = adata.obsm["X_pca"]
    again = GTM(nodes=8, basis=4, **_FEW).fit(rows)
    np.testing.assert_allclose(adata.obsm["X_gtm"], again.transform(rows))
    np.testing.assert_allclose(adata.obs["gtm_distance"], np.linalg.norm(rows - again.project(rows), axis=1))
    np.testing.assert_allclose(adata.obs["gtm_log_likelihood"], again.score_samples(rows))
    stretch = again.magnification(again.transform(rows)).factor
    np.testing.assert_allclose(adata.obs["gtm_log_magnification"], np.log(stretch))
    about = adata.uns["gtm"]
    assert about["params"]["use_rep"] == "X_pca"
    assert about["params"]["nodes"] == "8"
    assert about["projection_error"] == pytest.approx(again.projection_error(rows))
    assert about["stop_reason"] == str(again.stop_reason_)
    assert model.n_features_in_ == 5, "the model itself is fitted, to be asked afterwards"


def test_a_copy_leaves_the_cells_as_they_were(adata: Any) -> None:
    before = set(adata.obs), set(adata.obsm), set(adata.uns)
    made = cells.fit(adata, GTM(nodes=6, basis=3, **_FEW), key_added="map", copy=True)
    assert (set(adata.obs), set(adata.obsm), set(adata.uns)) == before
    assert "X_map" in made.obsm
    assert "map" in made.uns


def test_no_model_is_a_gtm_and_measures_can_be_left_out(adata: Any) -> None:
    cells.fit(adata, measures=False)
    assert "X_gtm" in adata.obsm
    assert list(adata.obs) == ["kind"]
    assert "projection_error" not in adata.uns["gtm"]


@pytest.mark.parametrize(
    ("model", "key", "scalars"),
    [
        (UKR(init="pca", **_FEW), "ukr", {"distance", "log_magnification"}),
        (DensityRidge(bandwidth=1.0), "densityridge", {"distance", "log_magnification"}),
        (make_pipeline(StandardScaler(), GTM(1, **_FEW)), "gtm", {"distance", "log_magnification", "log_likelihood"}),
    ],
)
def test_every_map_keeps_what_it_has(adata: Any, model: Any, key: str, scalars: set[str]) -> None:
    cells.fit(adata, model)
    kept = {name.removeprefix(f"{key}_") for name in adata.obs if name.startswith(f"{key}_")}
    assert scalars <= kept
    assert np.isfinite(adata.obsm[f"X_{key}"]).all()


@pytest.mark.parametrize(
    "model", [PrincipalCurve(**_FEW), GTM(1, nodes=8, basis=4, **_FEW), PrincipalTree(), KMM(1, max_iter=2)]
)
def test_a_curve_has_a_second_column_to_be_drawn_in(adata: Any, model: Any) -> None:
    cells.fit(adata, model, key_added="line")
    place, offset = adata.obsm["X_line"].T
    rows = adata.obsm["X_pca"]
    np.testing.assert_allclose(place, model.transform(rows)[:, 0])
    if "line_distance" not in adata.obs:
        np.testing.assert_array_equal(offset, 0.0, err_msg="in a feature space there is nothing to be offset from")
        return
    residual = rows - model.project(rows)
    assert np.all(np.abs(offset) <= adata.obs["line_distance"] + 1e-12)
    assert np.square(offset).sum() >= np.square(residual).sum(axis=0).max() - 1e-9, "no column spreads more"


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_the_table_itself_dense_or_sparse_and_in_parts(adata: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    adata.X = make(adata.X)
    whole = cells.fit(adata, GTM(nodes=6, basis=3, **_FEW), use_rep="X", copy=True)
    monkeypatch.setattr(maps, "_NUMBERS_AT_ONCE", 12 * 7)
    parts = cells.fit(adata, GTM(nodes=6, basis=3, **_FEW), use_rep="X", copy=True)
    np.testing.assert_allclose(parts.obs["gtm_distance"], whole.obs["gtm_distance"])
    dense = np.asarray(adata.X.todense() if sparse.issparse(adata.X) else adata.X)
    model = GTM(nodes=6, basis=3, **_FEW).fit(dense)
    np.testing.assert_allclose(whole.obs["gtm_distance"] ** 2, np.sum((dense - model.project(dense)) ** 2, axis=1))


def test_frames_keep_their_names(adata: Any) -> None:
    adata.obsm["genes"] = pd.DataFrame(adata.obsm["X_pca"], index=adata.obs_names, columns=list("abcde"))
    model = GTM(nodes=6, basis=3, **_FEW)
    cells.fit(adata, model, use_rep="genes")
    assert list(model.feature_names_in_) == list("abcde")


def test_others_are_placed_on_the_same_map(adata: Any) -> None:
    model = GTM(nodes=6, basis=3, **_FEW)
    first, second = adata[:50].copy(), adata[50:].copy()
    cells.fit(first, model)
    weights = model.weights_.copy()
    cells.transform(second, model, key_added="reference")
    np.testing.assert_array_equal(model.weights_, weights)
    np.testing.assert_allclose(second.obsm["X_reference"], model.transform(second.obsm["X_pca"]))


def test_the_results_can_be_written_and_read(adata: Any, tmp_path: Path) -> None:
    cells.fit(adata, GTM(nodes=6, basis=3, **_FEW))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_gtm"], adata.obsm["X_gtm"])
    assert read.uns["gtm"]["stop_reason"] == adata.uns["gtm"]["stop_reason"]
    assert dict(read.uns["gtm"]["params"]) == adata.uns["gtm"]["params"]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"use_rep": "X_umap"}, InvalidParameterError, "use_rep='X_umap' is not in adata.obsm .'X_pca'."),
        ({"model": StandardScaler()}, UnsupportedInputError, "such as GTM.*got StandardScaler"),
    ],
)
def test_wrong_calls_are_told(adata: Any, options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        cells.fit(adata, **options)


def test_without_components_the_table_itself_is_taken_and_that_is_said(adata: Any) -> None:
    del adata.obsm["X_pca"]
    with pytest.warns(PrinfoldWarning, match="no 'X_pca', so that the 12 columns of adata.X are taken"):
        cells.fit(adata, GTM(nodes=6, basis=3, **_FEW))
    assert adata.obsm["X_gtm"].shape == (80, 2)


def test_tables_are_refused_and_models_must_be_fitted_to_place_cells(adata: Any) -> None:
    with pytest.raises(UnsupportedInputError, match="must be an AnnData object, got ndarray"):
        cells.fit(np.zeros((3, 2)))
    with pytest.raises(NotFittedError):
        cells.transform(adata, GTM())


def test_a_fit_that_fails_changes_nothing(adata: Any) -> None:
    adata.obsm["X_pca"][3, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        cells.fit(adata)
    assert set(adata.obsm) == {"X_pca"}
    assert not adata.uns


def test_without_anndata_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(MissingExtraError, match="prinfold\\[data\\]"):
        prinfold.anndata.fit(None)
