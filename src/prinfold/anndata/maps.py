"""Maps of single cells: models fitted to an ``AnnData`` object, with the results where scanpy looks for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.anndata.cells import NAME, rows_of
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.exceptions import (
    PrinfoldError,
    UnsupportedInputError,
)
from prinfold.gtm.estimator import GTM
from prinfold.notebook.settings import short_value
from prinfold.plot.data.dendrograms import widest_direction
from prinfold.plot.data.surfaces import log_factor
from prinfold.plot.inputs import FittedSurface
from prinfold.validation.settings import check_call, flag, nothing

_NUMBERS_AT_ONCE = 2**24
"""Numbers of the table that are held at once, besides the table itself."""

_KINDS = {"use_rep": NAME, "key_added": nothing | NAME, "measures": flag, "copy": flag}


@check_call(**_KINDS)
def fit(
    adata: Any,
    model: Any = None,
    *,
    use_rep: str = "X_pca",
    key_added: str | None = None,
    measures: bool = True,
    copy: bool = False,
) -> Any:
    """Fit a model to the cells of an ``AnnData`` object, and keep the map in it.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells.
    model : estimator or pipeline, default=None
        What to fit, which is fitted itself, so that it can be asked, plotted and saved afterwards; None is
        ``GTM(random_state=0)``.
    use_rep : str, default="X_pca"
        The columns to fit to: a key of ``adata.obsm``, or ``"X"``, which also stands in where there is no ``"X_pca"``.
    key_added : str, default=None
        Name under which results are kept; None is the name of the model in small letters, such as ``"gtm"``.
    measures : bool, default=True
        Whether numbers about each cell are kept in ``adata.obs``; the distance from the surface takes longest.
    copy : bool, default=False
        Whether a copy is changed and returned, rather than ``adata`` itself.

    Returns
    -------
    anndata.AnnData or None
        The copy, if one was asked for. ``obsm["X_<key>"]`` holds the coordinates, of a curve or graph the position
        and the offset across it, so that ``scanpy.pl.embedding`` draws them; ``obs["<key>_distance"]`` the distance
        from the surface, ``obs["<key>_log_likelihood"]`` and ``obs["<key>_log_magnification"]``, as far as
        the model has them; ``uns["<key>"]`` the settings and how training went.
    """
    rows = rows_of(adata, use_rep)
    model = GTM(random_state=0) if model is None else model
    _check(model)
    model.fit(rows)
    return _store(adata, model, rows, use_rep, key_added, measures, copy)


@check_call(**_KINDS)
def transform(
    adata: Any,
    model: Any,
    *,
    use_rep: str = "X_pca",
    key_added: str | None = None,
    measures: bool = True,
    copy: bool = False,
) -> Any:
    """Place the cells of an ``AnnData`` object on the map of a model that was fitted to others.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells, in the same columns as those that the model was fitted to.
    model : fitted estimator or pipeline
        The map.
    use_rep : str, default="X_pca"
        The columns: a key of ``adata.obsm``, or ``"X"``.
    key_added : str, default=None
        Name under which results are kept; None is the name of the model in small letters.
    measures : bool, default=True
        Whether numbers about each cell are kept in ``adata.obs``.
    copy : bool, default=False
        Whether a copy is changed and returned, rather than ``adata`` itself.

    Returns
    -------
    anndata.AnnData or None
        The copy, if one was asked for; results are kept as :func:`fit` keeps them.
    """
    _check(model)
    return _store(adata, model, rows_of(adata, use_rep), use_rep, key_added, measures, copy)


def _check(model: Any) -> None:
    last = model[-1] if hasattr(model, "steps") else model
    if not isinstance(last, PrincipalManifold):
        raise UnsupportedInputError(
            "model must be an estimator with a map, such as GTM, or a pipeline that ends in one; got "
            f"{type(last).__name__}"
        )


def _store(adata: Any, model: Any, rows: Any, use_rep: str, key: str | None, measures: bool, copy: bool) -> Any:
    """Write coordinates, measures and settings, all of which are computed before anything is changed."""
    fitted = FittedSurface.of(model)
    key = type(fitted.model).__name__.lower() if key is None else key
    Z = fitted.coordinates(rows)
    scalars = _scalars(fitted, rows, Z) if measures else {}
    embedding = Z if Z.shape[1] > 1 else np.column_stack([Z, _offsets(fitted.model, fitted.rows(rows))])
    about = _summary(fitted, use_rep, scalars)
    target = adata.copy() if copy else adata
    target.obsm[f"X_{key}"] = embedding
    for name, values in scalars.items():
        target.obs[f"{key}_{name}"] = values
    target.uns[key] = about
    return target if copy else None


def _scalars(fitted: FittedSurface, rows: Any, Z: Any) -> dict[str, Any]:
    """Numbers about each cell, as far as the model has them."""
    seen, found = fitted.rows(rows), {}
    with suppress(PrinfoldError):  # a surface that has no points among the cells, such as in a feature space
        found["distance"] = _distances(fitted.model, seen)
    if hasattr(fitted.model, "score_samples"):
        found["log_likelihood"] = np.asarray(fitted.model.score_samples(seen), dtype=float)
    with suppress(PrinfoldError):
        found["log_magnification"] = log_factor(fitted.model, fitted.latent.domain.retract(Z))
    return found


def _distances(model: Any, rows: Any) -> FloatArray:
    """(n,) distance of each cell from the surface."""
    return np.concatenate([np.linalg.norm(part, axis=1) for part in _residuals(model, rows)])


def _offsets(model: Any, rows: Any) -> FloatArray:
    """(n,) offset of each cell from a curve, in the direction in which the first of them spread most about it.

    With it a curve has a second column, without which scanpy draws no embedding. 0 where a curve has no points among
    the cells.
    """
    found, across = list[FloatArray](), None
    with suppress(PrinfoldError):
        for part in _residuals(model, rows):
            across = widest_direction(part) if across is None else across
            found.append(part @ across)
    return np.concatenate(found) if found else np.zeros(rows.shape[0])


def _residuals(model: Any, rows: Any) -> Iterator[FloatArray]:
    """Cells less the nearest points of a surface, a part at a time; a sparse table is made dense so."""
    step = max(_NUMBERS_AT_ONCE // rows.shape[1], 1)
    for i in range(0, rows.shape[0], step):
        part = rows.iloc[i : i + step] if hasattr(rows, "iloc") else rows[i : i + step]
        numbers = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float)
        yield numbers - np.asarray(model.project(part), dtype=float)


def _summary(fitted: FittedSurface, use_rep: str, scalars: dict[str, Any]) -> dict[str, Any]:
    """Settings and how training went, in words and numbers that files of cells can hold."""
    model = fitted.model
    about = {
        "model": type(model).__name__,
        "params": {name: short_value(value) for name, value in model.get_params(deep=False).items()}
        | {"use_rep": use_rep},
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": str(model.stop_reason_),
        "version": version("prinfold"),
    }
    if "distance" in scalars:
        about["projection_error"] = float(np.mean(scalars["distance"] ** 2))
    return about
