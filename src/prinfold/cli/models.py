"""Models from files: the columns they take, and what they say of rows in the units of the table."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.surface_geometry import over_all_columns
from prinfold.cli.console import as_options
from prinfold.cli.tables.columns import find_columns, no_number
from prinfold.cli.tables.reading import FileTable
from prinfold.cli.tables.rows import ChosenCells
from prinfold.exceptions import (
    CorruptModelFileError,
    DataNotFoundError,
    InvalidDataError,
    UnsupportedInputError,
    join_names,
)

if TYPE_CHECKING:
    from prinfold.latent.branch_graph import BranchGraph
    from prinfold.plot.inputs import FittedSurface


@dataclass(frozen=True)
class StoredSurface:
    """A fitted surface, alone or behind a step that scales columns."""

    thing: Any
    fitted: FittedSurface

    @classmethod
    def of(cls, thing: Any) -> StoredSurface:
        """A model or a pipeline."""
        from prinfold.plot.inputs import FittedSurface

        return cls(thing, FittedSurface.of(thing))

    @property
    def model(self) -> Any:
        """The estimator itself."""
        return self.fitted.model

    @property
    def kind(self) -> str:
        """Name of its class."""
        return type(self.model).__name__

    @property
    def scaling(self) -> str:
        """The scaling of columns before it, in a word."""
        steps = [] if self.fitted.before is None else [type(step).__name__ for _, step in self.fitted.before.steps]
        known = {"StandardScaler": "standardised", "PCA": "whitened"}
        return ", ".join(known.get(step, step) for step in steps) or "as they are"

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns it was fitted to, where they had some."""
        found = getattr(self.thing, "feature_names_in_", None)
        return None if found is None else tuple(map(str, found))

    @property
    def width(self) -> int:
        """Number of columns it takes."""
        return int(self.thing.n_features_in_)

    @property
    def takes_gaps(self) -> bool:
        """Whether it places rows with missing cells."""
        bending = any(type(step).__name__ == "PCA" for _, step in getattr(self.fitted.before, "steps", ()))
        return bool(self.model._accept_missing) and not bending

    @property
    def word(self) -> str:
        """The word for it: a surface, a curve, a ridge or a tree."""
        return self.fitted.word

    @property
    def branches(self) -> BranchGraph | None:
        """The branches of a tree or of ridges."""
        return self.fitted.branches

    @property
    def has_root(self) -> bool:
        """Whether somebody said where on the branches time begins."""
        return self.branches is not None and len(self.model.root_) > 0

    def on_branches(self, Z: FloatArray) -> dict[str, Any]:
        """Branch, position along it and, where a root was given, time of coordinates (m, 1); nothing for surfaces."""
        graph = self.branches
        if graph is None:
            return {}
        branch = graph.latent.domain.piece(Z)
        found = {"branch": branch, "position": Z[:, 0] - graph.latent.domain.low[branch]}
        return found | ({"time": self.model.rooted_.times(Z)} if self.has_root else {})

    def cells(self, table: FileTable) -> ChosenCells:
        """The columns of a table that it takes."""
        return ChosenCells.of(table, _own_columns(self, table))

    def coordinates(self, cells: ChosenCells, index: IntArray) -> FloatArray:
        """(m, Q) latent coordinates of some rows."""
        return self.fitted.coordinates(self._rows(cells, index))

    def modes(self, cells: ChosenCells, index: IntArray) -> tuple[FloatArray, FloatArray | None]:
        """(m, Q) likeliest latent coordinates of some rows, (m,) how far from them the coordinates lie.

        None for the second where the coordinates of the model are no means, but the nearest places of a curve.
        """
        rows = self._rows(cells, index)
        modes = self.fitted.modes(rows)
        if not hasattr(self.model, "mode_distance"):
            return modes, None
        return modes, np.asarray(self.model.mode_distance(self.fitted.rows(rows)), dtype=float)

    def log_likelihood(self, cells: ChosenCells, index: IntArray) -> FloatArray | None:
        """(m,) log-density of some rows in the units of the table; None where the model has none."""
        return self.fitted.log_likelihood(self._rows(cells, index))

    def projection(self, cells: ChosenCells, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """(m, D) nearest points of the surface in units of the table, (m,) distances as the model measures them.

        Of rows with gaps both are over the cells that are there, and the distance is raised to all columns as in
        ``projection_error``; rows with no more cells than the surface has dimensions have none.
        """
        if cells.matrix is None:
            self.model.project(self._rows(cells, index[:1]))  # says why levels have no nearest point
        rows = np.asarray(self.fitted.rows(self._rows(cells, index)), dtype=float)
        near = np.asarray(self.model.project(rows), dtype=float)
        squared = np.nansum((rows - near) ** 2, axis=1)
        return self.fitted.back(near), np.sqrt(over_all_columns(squared, ~np.isnan(rows), self.model.latent_.dimension))

    def _rows(self, cells: ChosenCells, index: IntArray) -> Any:
        # Names were compared when columns were chosen; frames are for models that need types.
        rows = cells.rows(index)
        return np.asarray(rows) if cells.matrix is not None and self.fitted.before is not None else rows


def load_surface(path: Path) -> StoredSurface:
    """Read a model file; what it holds must be one surface."""
    thing = load_model(path)
    if not is_surface(thing):
        kind = type(thing.steps[-1][1] if hasattr(thing, "steps") else thing).__name__
        raise UnsupportedInputError(f"{path} holds a {kind}, which is no single surface; use it from Python")
    return StoredSurface.of(thing)


def fold_remarks(surface: StoredSurface) -> list[str]:
    """The remark on folds that a report begins with; nothing for surfaces without folds."""
    from prinfold.reporting.remarks import fold_remarks

    return [as_options(words) for words in fold_remarks(surface.fitted)]


def is_surface(thing: Any) -> bool:
    """Whether a model, or the last step of a pipeline, is one surface."""
    from prinfold.base.principal_manifold import PrincipalManifold

    return isinstance(thing.steps[-1][1] if hasattr(thing, "steps") else thing, PrincipalManifold)


def load_model(path: Path) -> Any:
    """Read a model file."""
    from prinfold import load

    if not path.exists():
        raise DataNotFoundError(f"there is no model file {path}; `prinfold fit DATA` makes one")
    if not path.is_dir() and path.suffix != ".prinfold" and path.stat().st_size and not _looks_like_model(path):
        beside = path.with_suffix(".prinfold")
        hint = f"{beside} is one" if beside.is_file() else f"make one with `prinfold fit {shlex.quote(str(path))}`"
        raise CorruptModelFileError(f"{path} is not a prinfold model file; name a model first and then a table; {hint}")
    try:
        return load(path)
    except PermissionError as error:
        raise InvalidDataError(f"cannot read {path}: {error.strerror}; you lack the right to read it") from error


def _looks_like_model(path: Path) -> bool:
    """Whether a file begins as a safetensors container does: the length of its head, then a brace."""
    try:
        with path.open("rb") as file:
            return file.read(9)[8:] == b"{"
    except OSError:
        return True  # loading will say


def _own_columns(surface: StoredSurface, table: FileTable) -> list[str]:
    """Columns of a table that a model takes: by name where both have names, else by number."""
    if surface.names is not None and table.named:
        missing = [name for name in surface.names if name not in table.columns]
        if missing:
            raise InvalidDataError(
                f"{table.path} has no column {missing[0]!r}, which the model was fitted to; "
                f"{_array_hint(missing[0], table.path) or 'it has ' + join_names(list(table.columns), 12)}"
            )
        names = list(surface.names)
    else:
        names = [name for name in table.measured if table.is_number(name)]
        if len(names) != surface.width:
            raise InvalidDataError(
                f"the model takes {surface.width} columns, but {table.path} has {len(names)} of numbers; give a table "
                "with the columns that it was fitted to"
            )
    levels = {each.name for each in surface.model._column_kinds or () if not each.traits.gaussian}
    for name in names:
        if name not in levels and not table.is_number(name):
            raise InvalidDataError(f"{no_number(table, name, leave_out=False)} (the model was fitted to numbers)")
    return names


def _array_hint(name: str, path: Path) -> str:
    """Advice where a column such as ``X_pca 1`` is one of an array of cells that was not asked for."""
    array, _, number = name.rpartition(" ")
    if path.suffix.lower() != ".h5ad" or not array or not number.isdecimal():
        return ""
    return f"that is column {number} of the array {array}: repeat --array {shlex.quote(array)}"


def by_blocks(
    work: Callable[[IntArray], Any], index: IntArray, tell: Callable[[float], None], rows: int = 20_000
) -> list[Any]:
    """Results of ``work`` for at most so many rows at a time; ``tell`` hears how many are done."""
    found = []
    for start in range(0, max(len(index), 1), rows):
        found.append(work(index[start : start + rows]))
        tell(start + rows)
    return found


def columns_to_keep(table: FileTable, used: tuple[str, ...], asked: list[str]) -> list[str]:
    """Columns that go along with results: those the model does not use, or those asked for."""
    if asked == ["none"]:
        return []
    if asked == ["all"]:
        return list(table.columns)
    if asked:
        return find_columns(table, asked, "--keep")
    known = frozenset(used)
    return [name for name in table.columns if name not in known]
