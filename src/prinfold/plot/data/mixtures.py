"""Data of pictures of mixtures and hierarchies: a panel for each map, with the rows that belong to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.drawing import LatentLayout
from prinfold.plot.data.surfaces import Field, layout_for, limits, magnification_field
from prinfold.plot.inputs import FittedSurface, RowClasses, lanes

FAINTEST = 0.02
"""Membership below which a row is not shown on a map."""

_CELLS = 100


class Panel(NamedTuple):
    """One map: its layout and shading, and the rows shown with their places (m, 2) and memberships (m,).

    ``path`` names the map, ``share`` is how much of all rows it holds.
    """

    path: tuple[int, ...]
    share: float
    layout: LatentLayout
    field: Field | None
    rows: IntArray
    place: FloatArray
    weight: FloatArray


class PanelBox(NamedTuple):
    """Place of a panel, as shares of the paper."""

    left: float
    bottom: float
    width: float
    height: float

    @property
    def top(self) -> tuple[float, float]:
        """The middle of its upper edge."""
        return self.left + self.width / 2, self.bottom + self.height

    @property
    def foot(self) -> tuple[float, float]:
        """The middle of its lower edge."""
        return self.left + self.width / 2, self.bottom


def mixture_panels(model: Any, X: Any, groups: RowClasses | None, *, shaded: bool = True) -> list[Panel]:
    """A panel for each map of a mixture, alone or at the end of a pipeline."""
    fitted = FittedSurface.of(model)
    if not fitted.latent.charts:
        raise InvalidParameterError(
            f"{type(fitted.model).__name__} has one map only; draw it with plot.latent_map, or fit a GTMMixture"
        )
    rows = None if X is None else fitted.rows(X)
    share = None if rows is None else np.asarray(fitted.model.memberships(rows), dtype=float)
    return [
        _panel(fitted.model, j, (j,), float(fitted.model.mixing_[j]), rows, _column(share, j), groups, shaded)
        for j in range(len(fitted.model.maps_))
    ]


def hierarchy_panels(tree: Any, X: Any, groups: RowClasses | None, *, shaded: bool = True) -> list[list[Panel]]:
    """Panels by level, the root's first; within a level from left to right."""
    if not hasattr(tree, "levels_"):
        raise InvalidParameterError(f"got {type(tree).__name__}; a fitted GTMHierarchy has levels to draw")
    levels: dict[int, list[Panel]] = {}
    for path in tree.paths:
        mixture = tree.node(path)
        share = None if X is None else np.asarray(tree.memberships(X, path), dtype=float)
        for j in range(len(mixture.maps_)):
            held, whole = _column(share, j), tree.share((*path, j))
            panel = _panel(mixture, j, (*path, j), whole, X, held, groups, shaded)
            levels.setdefault(len(path), []).append(panel)
    return [sorted(levels[depth], key=lambda panel: panel.path) for depth in sorted(levels)]


def shading(panels: list[Panel]) -> tuple[float, float] | None:
    """Ends of one colour scale for all maps, or None where none is shaded."""
    values = [panel.field.value.ravel() for panel in panels if panel.field is not None]
    return limits(np.concatenate(values)) if values else None


def boxes(counts: list[int]) -> list[list[PanelBox]]:
    """Boxes for as many panels on each line, from top to bottom, all of one size, each line about the middle."""
    width, height = 1.0 / max(counts), 1.0 / len(counts)
    return [
        [
            PanelBox(0.5 + (i - count / 2 + 0.09) * width, 1.0 - (line + 0.88) * height, 0.82 * width, 0.74 * height)
            for i in range(count)
        ]
        for line, count in enumerate(counts)
    ]


def lines_of(n_panels: int, most: int) -> list[int]:
    """Panels on each line, at most so many, as even as can be."""
    n_lines = -(-n_panels // most)
    return [n_panels // n_lines + (line < n_panels % n_lines) for line in range(n_lines)]


def _column(share: FloatArray | None, j: int) -> FloatArray | None:
    return None if share is None else share[:, j]


def _panel(
    mixture: Any,
    j: int,
    path: tuple[int, ...],
    share: float,
    X: Any,
    held: FloatArray | None,
    groups: RowClasses | None,
    shaded: bool,
) -> Panel:
    own = mixture.component(j)
    layout = layout_for(own, flat=True)
    field = magnification_field(own, layout, _CELLS) if shaded else None
    shown = np.arange(0) if held is None else np.flatnonzero(held >= FAINTEST)
    if held is None or not len(shown):
        return Panel(path, share, layout, field, shown, np.empty((0, 2)), np.empty(0))
    Z = np.asarray(own.transform(X), dtype=float)
    place = layout.place(Z, lanes(Z, groups))[shown, :2]
    return Panel(path, share, layout, field, shown, place, held[shown])
