"""Tables of mixed columns: encoded as numbers for a model, and rows decoded into tables like them."""

from __future__ import annotations

from typing import Any, ClassVar

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from prinfold._typing import FloatArray
from prinfold.base.block_surveys import refuse_beside
from prinfold.exceptions import InvalidDataError, InvalidParameterError, Message, UnsupportedInputError
from prinfold.gtm.fitting import FEWEST_ROWS
from prinfold.gtm.latent_grid_model import LatentGridModel
from prinfold.gtm.mixed.block_columns import encoded_blocks, summarize_blocks
from prinfold.gtm.mixed.column_frames import as_frame, decode, fill_frame
from prinfold.gtm.mixed.column_kinds import (
    Columns,
    choose_columns,
    choose_kinds,
    encode,
    library_of,
    read_columns,
)
from prinfold.gtm.recipe import Recipe, TrainingJob
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows, dense
from prinfold.validation.failures import may_have_gaps
from prinfold.validation.refusals import refuse_containers, refuse_dates
from prinfold.validation.tables import check_cells, check_weight, named_misfits, rows_with_weight


class MixedTables(LatentGridModel):
    """A member of the family whose columns may be of different kinds: ``columns_`` says of which."""

    _accept_missing: ClassVar[bool] = True
    _accept_frames: ClassVar[bool] = True
    _takes_blocks: ClassVar[bool] = True
    columns: Any
    size_factors: Any
    unseen: str
    columns_: Columns

    def _training_table(self, X: Any, sample_weight: Any) -> FloatArray:
        checked = check_mixed(self, X, reset=True, min_rows=FEWEST_ROWS)
        weight = check_weight(sample_weight, np.empty((checked.shape[0], 1)))
        kept, raw = rows_with_weight(weight, min_rows=FEWEST_ROWS), read_columns(checked)
        # What has no weight is not looked at, and levels that only such rows have are none.
        chosen = choose_columns(raw, self.columns, self._factor_column, library_of(checked), weight, kept)
        self.columns_ = self._with_useful_factors(chosen)
        return self._encode_table(checked, raw, "missing", fitting=True)

    def _assemble_blocks(self, blocks: Blocks, sample_weight: Any, errors: Any) -> tuple[Recipe, TrainingJob]:
        """Find the columns in a first pass; later passes read them encoded as numbers."""
        self._refuse_errors(errors)
        refuse_beside(sample_weight)
        found = summarize_blocks(blocks)
        chosen = choose_kinds(found.columns, self.columns, self._factor_column, found.frame)
        self.columns_ = self._with_useful_factors(chosen)
        return super()._assemble_blocks(encoded_blocks(blocks, self.columns_, "missing"), sample_weight, errors)

    def _encode_blocks(self, blocks: Blocks) -> Blocks:
        return encoded_blocks(blocks, self.columns_, self.unseen)

    @property
    def _factor_column(self) -> Any:
        return None if self.size_factors in (None, "auto") else self.size_factors

    def _with_useful_factors(self, columns: Columns) -> Columns:
        """The columns, if size factors are of use to them."""
        named = self._factor_column
        n_counted = len(columns.layout.counted)
        if self.size_factors is not None and n_counted < 1 + (named is None):
            raise InvalidParameterError(
                f"size_factors={self.size_factors!r} has no effect: the table has {n_counted} column(s) of counts"
                + (", which is its own total" if n_counted else "")
                + "; leave size_factors out"
            )
        return columns

    def _table(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        checked = check_mixed(self, X, reset=False)
        return self._encode_table(checked, read_columns(checked), self.unseen, fitting=False)

    def _encode_table(self, checked: Any, raw: Any, unseen: str, *, fitting: bool) -> FloatArray:
        """(n, D) rows as numbers, in single precision where they came so."""
        cells = (encode(each, column, unseen) for each, column in zip(raw, self.columns_, strict=True))
        if scipy.sparse.issparse(checked) and not self._level_columns().any():
            for _ in cells:  # checks them, and holds one at a time
                pass
            entries: Any = checked
            table: Any = entries.astype(np.result_type(entries.dtype, np.float32), copy=False)
        else:
            single = getattr(checked, "dtype", None) == np.float32
            table = np.stack(list(cells), axis=1).astype(np.float32 if single else np.float64, copy=False)
        check_cells(table, self.columns_.names, fitting=fitting)
        found: FloatArray = table
        return found

    def _table_with_distances(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        self._refuse_what_has_no_distance("a nearest point")
        return self._table(X)

    def _refuse_what_has_no_distance(self, words: str) -> None:
        odd = [column.name for column in self.columns_ if not column.traits.gaussian]
        if odd:
            raise UnsupportedInputError(
                Message(
                    f"{words} needs columns of numbers, but {odd[0]!r} is {self.columns_[odd[0]].kind}",
                    "ask for coordinates, likelihoods or reconstructions of rows instead",
                )
            )

    def _level_columns(self) -> Any:
        """(D,) which columns are levels."""
        return np.array([bool(column.levels) for column in self.columns_])

    def _codes(self, values: FloatArray) -> FloatArray:
        """(n, D) encoded rows from expectations; a level is the number of the likeliest."""
        layout = self.columns_.layout
        codes = np.ones((len(values), len(self.columns_)))
        for j, column in enumerate(self.columns_):
            part, coding = values[:, layout.part(j)], column.traits.levels
            if coding is not None:
                codes[:, j] = coding.complete(part).argmax(axis=1)
            elif part.shape[1]:
                codes[:, j] = part[:, 0]
        return codes

    @may_have_gaps
    def indicators(self, X: Any) -> FloatArray:
        """Rows in the terms of :meth:`inverse_transform`: numbers and counts as they are, 1 for the level of a cell.

        Parameters
        ----------
        X : array-like or frame of shape (n, D)

        Returns
        -------
        ndarray of shape (n, D')
            In the order of :meth:`value_names`; NaN where a cell is missing.
        """
        table, layout = dense(self._table(X)).astype(np.float64), self.columns_.layout
        found = np.empty((len(table), layout.n_predictors))
        for j, column in enumerate(self.columns_):
            cells, part = table[:, j, None], layout.part(j)
            family = column.traits.family
            marked = family is not None and family.exclusive
            found[:, part] = cells == np.arange(layout.widths[j]) if marked else cells[:, : layout.widths[j]]
            found[np.isnan(table[:, j]), part] = np.nan
        return found

    def _some_row(self) -> Any:
        """A row that all verbs accept, in a table like that of the fit."""
        found: Any = self
        return found.sample(1, random_state=0)

    def _like_training_table(self, codes: FloatArray, *, whole: bool = False) -> Any:
        """Rows of numbers as a table like that of the fit."""
        data = {column.name: decode(codes[:, j], column, whole=whole) for j, column in enumerate(self.columns_)}
        return as_frame(data, self.columns_) if self.columns_.frame else _stack_columns(list(data.values()))

    def _fill_cells(self, X: Any, codes: FloatArray, missing: Any) -> Any:
        """The table X with some cells filled in."""
        data = {column.name: decode(codes[:, j], column, whole=False) for j, column in enumerate(self.columns_)}
        if not nw.dependencies.is_into_dataframe(X):
            return _stack_columns(list(data.values()))
        return fill_frame(X, self.columns_, data, missing)

    def _rows(self, table: FloatArray, errors: FloatArray | None = None) -> Rows:
        self._refuse_errors(errors)
        return super()._rows(table)

    @staticmethod
    def _refuse_errors(errors: Any) -> None:
        if errors is not None:
            raise UnsupportedInputError(
                "MixedGTM takes no errors of cells; use GTM(noise='diagonal') for a table of numbers, or leave "
                "errors out"
            )


def _without_objects(X: Any) -> Any:
    """A sparse matrix with numbers in place of objects, with which SciPy fills in nothing."""
    return X.astype(np.float64) if X.dtype.kind == "O" else X


def check_mixed(estimator: Any, X: Any, *, reset: bool, min_rows: int = 1) -> Any:
    """A table whose columns may be of different types: a frame as it is, else a two-dimensional or sparse array."""
    refuse_containers(X, accept_sparse=True)
    refuse_dates(X)
    if nw.dependencies.is_into_dataframe(X):
        _refuse_equal_names(X)
        with named_misfits(X):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        if X.shape[0] < min_rows or X.shape[1] == 0:
            n, D = X.shape
            raise InvalidDataError(
                f"Found array with {n} sample(s) and {D} feature(s) (shape={X.shape}) while a "
                f"minimum of {min_rows} row(s) and 1 column is required."
            )
        return X
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    with named_misfits(X):
        if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "US":
            X = np.asarray(X, dtype=object)  # or numbers beside text would become text
        if scipy.sparse.issparse(X):
            X = _without_objects(X)
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            accept_sparse="csr",
        )


def _refuse_equal_names(X: Any) -> None:
    """Raise an error for columns of pandas that share a name."""
    names = [str(name) for name in X.columns] if nw.dependencies.is_pandas_dataframe(X) else []
    twin = next((name for name in names if names.count(name) > 1), None)
    if twin is not None:
        raise InvalidDataError(f"several columns are called {twin!r}; give each a name of its own")


def _stack_columns(columns: list[Any]) -> Any:
    """Columns as one array: of numbers where they are numbers, else of objects."""
    numbers = all(each.dtype != object or all(isinstance(v, int | float) for v in each) for each in columns)
    return np.stack([each.astype(np.float64 if numbers else object) for each in columns], axis=1)
