"""Warnings about a fit: sizes that are likely slips, before it begins, and what may mislead, after it has ended.

Each function gives the words and the category of what is to be said, if anything; ``warn_all`` says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import heaviest_row, principal_axes
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.gaussian_process import GaussianProcess
from prinfold.exceptions import Advice, DegenerateWarning, FoldWarning, Message, MultimodalWarning, warn_caller
from prinfold.geometry.folds import Folds, describe, find_folds
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.starts.trials import FAR_MODE, MANY_ON_FOLDS, MANY_ROWS, widest_spacing
from prinfold.rows.rows import Rows, filled

Words = tuple[str, type[Warning]]
"""A warning and its category."""

Check = Callable[[Any], list[str]]
"""A look at a fitted member of the family, which gives words of warning about its own noise."""

_FEWEST_ROWS_TO_WARN, _WARN_SCATTER_SHARE = 20, 0.9
"""Among how many rows one that holds so much of their scatter is worth a warning."""

_WARN_NODES_PER_ROW, _WARN_NODES, _WARN_FUNCTIONS, _WARN_DIMENSIONS = 20, 10_000, 4096, 10
"""Beyond which nodes and basis functions are so many that a total was likely given where one axis is asked for, and
dimensions so many that nodes were likely meant."""


def warn_all(found: Iterable[Words]) -> None:
    """Pass warnings on to whoever called the package."""
    for words, category in found:
        warn_caller(words, category)


def warn_about_empty_rows(table: FloatArray) -> None:
    """Say which rows have no value at all."""
    empty = np.flatnonzero(np.isnan(table).all(axis=1))
    if len(empty):
        warn_caller(
            f"{len(empty)} row(s) have no value in any column, the first being row {empty[0]}; they teach "
            "nothing, and all that can be said of them is what the model expects of any row",
            DegenerateWarning,
        )


# ------------------------------------------------------------------------------------------------ before training


def about_size(surface: BasisMap, basis: Any, n_rows: int) -> Iterator[Words]:
    """Sizes that would take very long and are likely to be meant otherwise."""
    K, M = surface.node_features.shape
    axes = surface.latent.dimension
    along = " along each axis" if axes > 1 else ""
    if axes >= _WARN_DIMENSIONS:
        words = f"a surface of {axes} dimensions is known at {K} nodes only, which is next to nothing"
        meant = Advice("nodes", axes, "{} sets the nodes along each axis, if those were meant")
        yield Message(words, Advice("n_components", words="lower {}"), meant), DegenerateWarning
    if max(_WARN_NODES_PER_ROW * n_rows, _WARN_NODES) < K:
        words = f"{K} nodes for {n_rows} rows are many more than those can tell apart, and take long"
        yield Message(words, Advice("nodes", words=f"use fewer{along} ({{}})")), DegenerateWarning
    if M > _WARN_FUNCTIONS and not isinstance(basis, GaussianProcess):
        words = f"{M} basis functions take minutes and gigabytes, as all weights are found at once"
        yield Message(words, Advice("basis", words=f"use fewer{along} ({{}})")), DegenerateWarning


# ------------------------------------------------------------------------------------------------- after training


def about_noise_floor(floor: float, noise_floor: float, rows: Rows) -> Words:
    """The noise has run into its floor: the nodes sit on the rows, or there is nothing to explain."""
    if principal_axes(rows, 1).column_variance == 0:
        return "all rows are equal, so that there is no surface: every place is the same point", DegenerateWarning
    if floor > noise_floor * principal_axes(rows, 1).column_variance:
        words = f"the noise is as small as the rounding of the data in {rows.table.dtype}"
        wider = () if rows.table.dtype == np.float64 else ("use float64",)
        found = Message(words, "subtract from each column what is common to all rows", *wider)
        return found, DegenerateWarning
    return (
        Message(
            f"the noise has shrunk to its floor (noise_floor={noise_floor:g}): the surface passes through "
            "the rows themselves",
            Advice("basis", words="use fewer basis functions ({})"),
            Advice("nodes", words="fewer nodes ({})"),
            Advice("regularization", words="more {}"),
            Advice("noise_floor", words="a higher {}"),
        ),
        DegenerateWarning,
    )


def about_one_row(rows: Rows) -> Iterator[Words]:
    """A row so far off that the surface is about little else is often a slip, and folds are its least trouble."""
    row, share = heaviest_row(rows)
    if rows.n_rows >= _FEWEST_ROWS_TO_WARN and share > _WARN_SCATTER_SHARE:
        yield (
            (
                f"one row, number {row} of those that count, holds {share:.1%} of the scatter of all rows, so that the "
                "surface goes by it alone; look at it, and leave it out if it is a slip"
            ),
            DegenerateWarning,
        )


def about_dimension(dimension: int, n_columns: int) -> Iterator[Words]:
    """A surface of more dimensions than the data have columns."""
    if n_columns < dimension:
        words = f"a surface of {dimension} dimensions in {n_columns} column(s) is not determined"
        yield Message(words, Advice("n_components", n_columns)), DegenerateWarning


def about_folds(folds: Folds) -> Words:
    """Folds on which rows lie."""
    return describe(folds) or "", FoldWarning


def about_basis(surface: BasisMap, basis: Any) -> Iterator[Words]:
    """More basis functions than nodes, whose weights nothing determines."""
    K, M = surface.node_features.shape
    if M > K > 1 and not isinstance(basis, GaussianProcess):
        words = f"{M} basis functions for {K} nodes leave most weights undetermined"
        advice = Advice("basis", words="use fewer basis functions ({})"), Advice("nodes", words="more nodes ({})")
        yield Message(words, *advice), DegenerateWarning


def about_far_modes(share: float) -> Iterator[Words]:
    """Rows whose posterior has several peaks."""
    if share > MANY_ROWS:
        yield (
            Message(
                f"For {share:.0%} of the rows the map is not sure where they belong: their posterior mean lies "
                f"over {FAR_MODE:g} node spacings from the mode. The surface passes near them in several places, "
                "or the noise spans many nodes.",
                Advice("posterior_mode", words="look at their likeliest places ({})"),
                Advice("init", "isomap", "try another start, such as {}"),
                Advice("nodes", words="fewer nodes ({})"),
            ),
            MultimodalWarning,
        )


def warn_about_fit(fitted: Any, rows: Rows) -> None:
    """Say in words what went wrong in a fit of rows, or may mislead."""
    noise, surface = fitted._model.noise, fitted._model.surface
    warn_all(fitted._stopping_warnings())
    if noise.floored(fitted._parameters()):
        warn_all([about_noise_floor(noise.floor, fitted.noise_floor, filled(rows))])
    warn_all((words, DegenerateWarning) for check in fitted._checks for words in check(fitted))
    warn_all(about_one_row(rows))
    warn_all(about_dimension(fitted.latent_.dimension, fitted.n_features_in_))
    if _is_folded(fitted, rows):
        warn_all([about_folds(fitted.folds_)])
    warn_all(about_basis(surface, fitted.basis_))
    warn_all(about_far_modes(_share_with_far_modes(fitted, rows)))


def is_troubled(fitted: Any, rows: Rows) -> bool:
    """Whether a map is folded or many-peaked, whatever the units of columns that its noise tells apart."""
    scale = getattr(fitted._model.noise, "scale", None)
    return _is_folded(fitted, rows, scale) or _share_with_far_modes(fitted, rows) > MANY_ROWS


def _is_folded(fitted: Any, rows: Rows, scale: FloatArray | None = None) -> bool:
    """Whether many rows lie on folds, with columns in units of ``scale`` (D,).

    Folds where no row lies are harmless: they bridge gaps between clusters. A surface of more dimensions than columns
    is folded everywhere, and not called so.
    """
    if fitted.n_features_in_ < fitted.latent_.dimension:
        return False
    mass = fitted._model.begin(rows, fitted._parameters()).statistics.mass
    folds = fitted.folds_ if scale is None else _folds_in_units(fitted, scale)
    return bool(mass[folds.folded].sum() / mass.sum() > MANY_ON_FOLDS)


def _folds_in_units(fitted: Any, scale: FloatArray) -> Folds:
    nodes = fitted.latent_.nodes
    J = fitted._jacobian(nodes) / np.where(scale > 0, scale, 1.0)[:, None]
    return find_folds(J, fitted.latent_.domain.frame(nodes), fitted.latent_.edges)


def _share_with_far_modes(fitted: Any, rows: Rows) -> float:
    """Share of the rows that count whose posterior has its mean far from its mode."""
    apart = posteriors.mode_distance(fitted._model, rows, fitted._parameters())
    # Spacings are those that training began with: doubled nodes move no row.
    spacing = fitted._first_spacing or widest_spacing(fitted.latent_)
    return float(np.average(apart > FAR_MODE * spacing, weights=fitted._row_weights(rows)))
