"""Cells of an ``AnnData`` object: the columns to go by."""

from __future__ import annotations

from typing import Any

from prinfold.exceptions import (
    InvalidParameterError,
    PrinfoldWarning,
    UnsupportedInputError,
    import_optional,
    warn_caller,
)
from prinfold.validation.settings import instance_of

NAME = instance_of(str, words="a name")

PCA_KEY = "X_pca"
"""The representation that scanpy computes first, and that is taken unless another is named."""


def check_cells_table(adata: Any) -> None:
    """Refuse what is no AnnData object."""
    if not isinstance(adata, import_optional("anndata", "data", "an AnnData object").AnnData):
        raise UnsupportedInputError(
            f"adata must be an AnnData object, got {type(adata).__name__}; for tables use model.fit"
        )


def rows_of(adata: Any, use_rep: str) -> Any:
    """The columns to go by: a key of ``obsm`` as it is, never rescaled, or ``X``."""
    check_cells_table(adata)
    if use_rep == "X":
        return adata.X
    if use_rep in adata.obsm:
        return adata.obsm[use_rep]
    if use_rep != PCA_KEY:
        known = ", ".join(map(repr, adata.obsm)) or "none yet"
        raise InvalidParameterError(f"use_rep={use_rep!r} is not in adata.obsm ({known}); 'X' stands for adata.X")
    warn_caller(
        f"adata.obsm has no 'X_pca', so that the {adata.shape[1]} columns of adata.X are taken as they are. For many "
        "genes run scanpy.pp.pca first",
        PrinfoldWarning,
    )
    return adata.X
