"""The part that estimators share which are no principal manifold themselves: rows checked, models written to files."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.files import save
from prinfold.validation.failures import gate_verbs
from prinfold.validation.tables import check_table


@gate_verbs
class StoredEstimator(BaseEstimator):
    """An estimator whose fitted model can be written to a file."""

    _accept_missing: ClassVar[bool] = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`prinfold.load` reads.

        Parameters
        ----------
        path : str or path
            By custom the name ends in ``.prinfold``.
        """
        save(self, path)

    def _table(self, X: Any) -> FloatArray:
        """Checked rows for a fitted model."""
        check_is_fitted(self)
        return check_table(self, X, reset=False, accept_missing=self._accept_missing)
