"""Pictures of fitted surfaces; each function takes and returns a matplotlib ``ax``.

What is drawn is computed in :mod:`prinfold.plot.data`, which needs no drawing library; drawing needs matplotlib, which
comes with ``pip install "prinfold[plot]"``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prinfold.plot.bands import ridge_bands
    from prinfold.plot.choices import choice
    from prinfold.plot.comparisons import comparison_front
    from prinfold.plot.dendrograms import dendrogram
    from prinfold.plot.kernel_manifolds import candidates, images, latent_density
    from prinfold.plot.landscapes import landscape
    from prinfold.plot.maps import folds, latent_map, magnification, posterior
    from prinfold.plot.mixtures import hierarchy, mixture
    from prinfold.plot.monitoring import contributions, monitor
    from prinfold.plot.ridges import ridge
    from prinfold.plot.som import u_matrix
    from prinfold.plot.surfaces import learning_curve, model, residuals, selection, surface
    from prinfold.plot.trajectories import along, gene_curves
    from prinfold.plot.uncertainties import surface_band, uncertainty

__all__ = [
    "along",
    "candidates",
    "choice",
    "comparison_front",
    "contributions",
    "dendrogram",
    "folds",
    "gene_curves",
    "hierarchy",
    "images",
    "landscape",
    "latent_density",
    "latent_map",
    "learning_curve",
    "magnification",
    "mixture",
    "model",
    "monitor",
    "posterior",
    "residuals",
    "ridge",
    "ridge_bands",
    "selection",
    "surface",
    "surface_band",
    "u_matrix",
    "uncertainty",
]

_HOMES = {
    "along": "trajectories",
    "ridge_bands": "bands",
    "candidates": "kernel_manifolds",
    "choice": "choices",
    "comparison_front": "comparisons",
    "dendrogram": "dendrograms",
    "gene_curves": "trajectories",
    "images": "kernel_manifolds",
    "latent_density": "kernel_manifolds",
    "landscape": "landscapes",
    "folds": "maps",
    "latent_map": "maps",
    "magnification": "maps",
    "posterior": "maps",
    "hierarchy": "mixtures",
    "mixture": "mixtures",
    "contributions": "monitoring",
    "monitor": "monitoring",
    "u_matrix": "som",
    "ridge": "ridges",
    "learning_curve": "surfaces",
    "model": "surfaces",
    "residuals": "surfaces",
    "selection": "surfaces",
    "surface": "surfaces",
    "surface_band": "uncertainties",
    "uncertainty": "uncertainties",
}


def __getattr__(name: str) -> Any:
    """Import a drawing function when it is first wanted, so that the data behind a picture need no matplotlib."""
    if name in _HOMES:
        return getattr(import_module(f"prinfold.plot.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'prinfold.plot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
