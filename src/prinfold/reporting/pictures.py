"""Figures of a report: a table of what is drawn, when, and what to see in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prinfold import plot
from prinfold.exceptions import PrinfoldError
from prinfold.files.atomic import write_bytes
from prinfold.loops import Working
from prinfold.plot.saving import render
from prinfold.reporting.measurements import Study
from prinfold.select.samples import frame_of

_MOST_BY_COLUMN = 4


@dataclass(frozen=True)
class Request:
    """A model, rows and their marks, of which figures are drawn."""

    study: Study
    model: Any
    X: Any
    labels: Any
    values: Any
    value_name: str

    @property
    def marks(self) -> dict[str, Any]:
        if self.labels is not None:
            return {"labels": self.labels}
        return {} if self.values is None else {"values": self.values, "value_name": self.value_name}


@dataclass(frozen=True)
class FigureRecipe:
    """A figure that may be drawn: its section, what to see in it, of curves and branches too, if wanted, and how."""

    section: str
    caption: str
    wanted: Callable[[Request], bool]
    draw: Callable[[Request], Any]
    of_curves: str = ""
    of_branches: str = ""

    def words(self, asked: Request) -> str:
        """The caption: what to see in the figure."""
        if self.of_branches and asked.study.fitted.latent.unit_speed:
            return self.of_branches
        return self.of_curves if self.of_curves and asked.study.fitted.latent.dimension == 1 else self.caption


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn."""

    name: str
    section: str
    caption: str
    png: bytes


RECIPES: dict[str, FigureRecipe] = {
    "map": FigureRecipe(
        "map",
        "Each row at its place on the map. The shading is the magnification factor: the stronger it is, the "
        "more the surface is stretched there. Rows on either side of a shaded band are farther apart than they look.",
        lambda asked: True,
        lambda asked: _map(asked, **asked.marks),
        "Each row at its place along the curve; the height of a point only keeps rows apart. The shading is the "
        "magnification factor: the stronger it is, the more the curve is stretched there.",
        "Each row at its place along the curve, measured by arc length; the height of a point only keeps rows apart.",
    ),
    "ridge": FigureRecipe(
        "map",
        "The curves among the rows, over their density; open circles are ends, filled ones junctions.",
        lambda asked: _in_the_plane(asked.study),
        lambda asked: plot.ridge(asked.model, asked.X, **asked.marks),
    ),
    "magnification": FigureRecipe(
        "map",
        "How the surface is stretched. The shading is the magnification factor, the area in data space for each unit "
        "of area on the map; ellipses show the direction.",
        lambda asked: (
            asked.study.fitted.model._column_kinds is None
            and not asked.study.fitted.latent.charts
            and not asked.study.fitted.latent.unit_speed
        ),
        lambda asked: plot.magnification(asked.model),
        "How the curve is stretched: the length in data space for each unit of its coordinate.",
    ),
    "errors": FigureRecipe(
        "errors",
        "The same map, coloured by how far off each row lies. Noise mixes the colours; a patch of one "
        "colour is a place where the fit misses some structure.",
        lambda asked: asked.study.distance is not None,
        lambda asked: _map(asked, shaded=False, values=asked.study.distance, value_name="distance"),
    ),
    "learning_curve": FigureRecipe(
        "training",
        "How training went, iteration by iteration.",
        lambda asked: len(asked.study.fitted.model.history_.get("objective", ())) > 1,
        lambda asked: plot.learning_curve(asked.model),
    ),
    "selection": FigureRecipe(
        "settings",
        "How the clamping was chosen: error of rows held out against roughness.",
        lambda asked: getattr(asked.study.fitted.model, "selection_", None) is not None,
        lambda asked: plot.selection(asked.model),
    ),
    "residuals": FigureRecipe(
        "settings",
        "Residual error for each latent dimension and number of neighbours that was tried.",
        lambda asked: hasattr(getattr(asked.study.fitted.model, "candidates_", None), "residuals"),
        lambda asked: plot.residuals(asked.model),
    ),
}
"""Figures in the order of the page."""


def _map(asked: Request, *, shaded: bool = True, **marks: Any) -> Any:
    """Rows on their map, or on their maps; curves by arc length have no shading, which would be the same all over."""
    latent = asked.study.fitted.latent
    if latent.charts:
        return plot.mixture(asked.model, asked.X, background=shaded, **marks)
    shaded = shaded and not latent.unit_speed
    return plot.latent_map(asked.model, asked.X, background="magnification" if shaded else None, **marks)


def _in_the_plane(study: Study) -> bool:
    """Whether curves of a density lie in the two columns of a table."""
    model = study.fitted.model
    curves = hasattr(model, "flow_") and study.fitted.latent.unit_speed
    return curves and study.table is not None and study.table.shape[1] == 2


def _by_column(asked: Request) -> dict[str, FigureRecipe]:
    """Maps coloured by the columns that they explain best, where columns are of different kinds."""
    if asked.study.fitted.model._column_kinds is None:
        return {}
    frame, found = frame_of(asked.X), {}
    best = sorted(asked.study.kept, key=lambda each: -np.nan_to_num(each.share, nan=-1.0))
    for i, kept in enumerate(best[:_MOST_BY_COLUMN]):
        cells = np.asarray(asked.X)[:, kept.position] if frame is None else frame[:, kept.position].to_native()
        how = {"values": cells, "value_name": kept.name} if not kept.levels else {"labels": cells}
        found[f"column_{i + 1}"] = FigureRecipe(
            "space", f"The map by the column {kept.name}.", lambda asked: True, partial(_plain_map, how=how)
        )
    return found


def _plain_map(asked: Request, how: dict[str, Any]) -> Any:
    return _map(asked, shaded=False, **how)


def pictures(asked: Request, folder: Path | None) -> list[Picture]:
    """Draw what is wanted; with a folder, each figure is also written there as PNG and as SVG."""
    formats = ("png",) if folder is None else ("png", "svg")
    found = []
    wanted = {name: recipe for name, recipe in (RECIPES | _by_column(asked)).items() if recipe.wanted(asked)}
    for i, (name, recipe) in enumerate(wanted.items(), 1):
        try:
            with Working(f"Making the report: figure {i} of {len(wanted)}"):
                drawn = render(recipe.draw(asked), formats)
        except PrinfoldError:
            if name == "map":  # without which there is nothing to report, such as labels of the wrong length
                raise
            continue
        if folder is not None:
            for kind, content in drawn.items():
                write_bytes(folder / f"{name}.{kind}", content)
        found.append(Picture(name, recipe.section, recipe.words(asked), drawn["png"]))
    return found
