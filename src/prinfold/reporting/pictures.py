"""Figures of a report: a table of what is drawn, when, and what to see in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prinfold import plot
from prinfold.exceptions import PrinfoldError
from prinfold.latent import Branches
from prinfold.plot.prints import printed
from prinfold.reporting.study import Study


@dataclass(frozen=True)
class Request:
    """What figures are drawn of."""

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
class Recipe:
    """A figure that may be drawn: in which section, what to see in it (for curves too), whether wanted, and how."""

    section: str
    caption: str
    wanted: Callable[[Request], bool]
    draw: Callable[[Request], Any]
    of_curves: str = ""

    def words(self, asked: Request) -> str:
        """What to see in the figure."""
        return self.of_curves if self.of_curves and asked.study.fitted.latent.dimension == 1 else self.caption


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn."""

    name: str
    section: str
    caption: str
    png: bytes


RECIPES: dict[str, Recipe] = {
    "map": Recipe(
        "map",
        "Each row at its place on the map. The shading is the magnification: dark where the surface is stretched, so "
        "that rows on either side of a dark seam are farther apart than they look.",
        lambda asked: True,
        lambda asked: plot.latent_map(asked.model, asked.X, **asked.marks),
        "Each row at its place along the curve; across it rows only keep apart. The shading is the magnification: dark "
        "where the curve is stretched.",
    ),
    "magnification": Recipe(
        "map",
        "How the surface is stretched: shading for the area that a unit of the map stands for, ellipses for the "
        "direction.",
        lambda asked: (
            not (hasattr(asked.study.fitted.model, "columns_") or isinstance(asked.study.fitted.latent, Branches))
        ),  # which go by their length, and are stretched nowhere
        lambda asked: plot.magnification(asked.model),
        "How the curve is stretched: the length in data space that a unit of its coordinate stands for.",
    ),
    "errors": Recipe(
        "errors",
        "The same map, coloured by how far each row lies from the surface: patches of one colour are places where the "
        "surface misses something, not noise.",
        lambda asked: asked.study.distance is not None,
        lambda asked: plot.latent_map(
            asked.model, asked.X, values=asked.study.distance, value_name="distance", background=None
        ),
    ),
    "learning_curve": Recipe(
        "training",
        "How training went, iteration by iteration.",
        lambda asked: len(asked.study.fitted.model.history_.get("objective", ())) > 1,
        lambda asked: plot.learning_curve(asked.model),
    ),
    "selection": Recipe(
        "settings",
        "How the clamping was chosen: error of rows held out against roughness.",
        lambda asked: getattr(asked.study.fitted.model, "selection_", None) is not None,
        lambda asked: plot.selection(asked.model),
    ),
    "residuals": Recipe(
        "settings",
        "What is left by each latent dimension and number of neighbours that was tried.",
        lambda asked: hasattr(getattr(asked.study.fitted.model, "candidates_", None), "residuals"),
        lambda asked: plot.residuals(asked.model),
    ),
}
"""Figures in the order of the page."""


def pictures(asked: Request, folder: Path | None) -> list[Picture]:
    """Draw what is wanted; with a folder, each figure is also written there as PNG and as SVG."""
    formats = ("png",) if folder is None else ("png", "svg")
    found = []
    for name, recipe in RECIPES.items():
        if not recipe.wanted(asked):
            continue
        try:
            drawn = printed(recipe.draw(asked), formats)
        except PrinfoldError:
            if name == "map":  # without which there is nothing to report, such as labels of the wrong length
                raise
            continue
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for kind, content in drawn.items():
                (folder / f"{name}.{kind}").write_bytes(content)
        found.append(Picture(name, recipe.section, recipe.words(asked), drawn["png"]))
    return found
