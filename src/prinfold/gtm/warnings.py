"""Warnings about a fit: sizes that are likely slips, before it begins, and what may mislead, after it has ended.

Each function gives the words and the category of what is to be said, if anything; ``warn_all`` says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import principal_axes
from prinfold.basis_maps.bases import carries_prior
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import Advice, DegenerateWarning, FoldWarning, Message, MultimodalWarning, percent, warn_caller
from prinfold.geometry.folds import Folds, describe, find_folds
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import AnyNoise, Parameters, in_words
from prinfold.gtm.posterior import mode_distance
from prinfold.rows.rows import Rows, choose_rows, fill_gaps

Words = tuple[str, type[Warning]]
"""A warning and its category."""

Check = Callable[[Any], list[str]]
"""A look at a fitted member of the family, which gives words of warning about its own noise."""

FindFolds = Callable[[GTMModel, Parameters], Folds]
"""Folds of a model at its nodes."""

_WARN_NODES_PER_ROW, _WARN_NODES, _WARN_FUNCTIONS, _WARN_DIMENSIONS = 20, 10_000, 4096, 10
"""Beyond which nodes and basis functions are so many that a total was likely given where one axis is asked for, and
dimensions so many that nodes were likely meant."""

TIE_NATS = 0.15
"""Nats per row below which a map that is troubled gives way to one that is not."""

FAR_MODE = 2.0
"""Node spacings between posterior mean and mode from which a posterior counts as many-peaked or skewed: those of the
axis with the fewest nodes, since one with four times as many would make narrow posteriors look wide."""

_MODE_ROWS = 2000
"""Rows whose modes are looked at, at most: of 5 % of the rows they find 5 ± 0.5 %."""

_FIRST_MODE_ROWS, _CLEARLY_FEW = 500, 0.02
"""Rows that are looked at first, and the share of them below which no more are: of 5 % of all, one table in six
thousand shows so few."""

MANY_ROWS, MANY_ON_FOLDS = 0.05, 0.1
"""Share of such rows, and share of the data on folded nodes, from which a map is troubled."""


def warn_all(found: Iterable[Words]) -> None:
    """Pass warnings on to whoever called the package."""
    for words, category in found:
        warn_caller(words, category)


def warn_about_empty_rows(table: FloatArray) -> None:
    """Say which rows have no value at all."""
    empty = np.flatnonzero(np.isnan(table).all(axis=1))
    if len(empty):
        warn_caller(
            f"{len(empty)} row(s) have no value in any column, the first being row {empty[0]}; a fit ignores "
            "them, and results for them are those that the model expects of any row",
            DegenerateWarning,
        )


# ------------------------------------------------------------------------------------------------ before training


def about_size(surface: BasisMap, basis: Any, n_rows: int) -> Iterator[Words]:
    """Sizes that would take very long and are likely to be meant otherwise."""
    K, M = surface.node_features.shape
    axes = surface.latent.dimension
    along = " along each axis" if axes > 1 else ""
    if axes >= _WARN_DIMENSIONS:
        words = f"a surface of {axes} dimensions has only {K} nodes, which hardly resolve it"
        meant = Advice("nodes", axes, "{} sets the nodes along each axis, if those were meant")
        yield Message(words, Advice("n_components", words="lower {}"), meant), DegenerateWarning
    if max(_WARN_NODES_PER_ROW * n_rows, _WARN_NODES) < K:
        words = f"{K} nodes for {n_rows} rows are many more than those can tell apart, and take long"
        yield Message(words, Advice("nodes", words=f"use fewer{along} ({{}})")), DegenerateWarning
    if M > _WARN_FUNCTIONS and not carries_prior(basis):
        words = f"{M} basis functions take minutes and gigabytes, as all weights are found at once"
        yield Message(words, Advice("basis", words=f"use fewer{along} ({{}})")), DegenerateWarning


def about_device(noise: AnyNoise, rows: Rows) -> Iterator[Words]:
    """A device that the fit cannot use."""
    if rows.device is None:
        return
    here = f"the processor does this fit, and not {rows.device.name}"
    if noise.capabilities.one_product is None:
        words = f"{here}: no device has the passes of {in_words(noise)}"
        yield Message(words, Advice("noise", words="set {} to 'isotropic' or 'diagonal'")), DegenerateWarning
    elif rows.gaps or rows.errors is not None:
        words = f"{here}: no device has the passes of rows with missing cells or known errors"
        yield Message(words, "fill in the cells that are missing, and leave errors out"), DegenerateWarning


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
            "fewer nodes",
            Advice("regularization", words="more {}"),
            Advice("noise_floor", words="a higher {}"),
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
    if M > K > 1 and not carries_prior(basis):
        words = f"{M} basis functions for {K} nodes leave most weights undetermined"
        advice = Advice("basis", words="use fewer basis functions ({})"), Advice("nodes", words="more nodes ({})")
        yield Message(words, *advice), DegenerateWarning


def about_far_modes(share: float) -> Iterator[Words]:
    """Rows whose posterior has several peaks."""
    if share > MANY_ROWS:
        yield (
            Message(
                f"For {percent(share)} of the rows the map is not sure where they belong: their posterior mean lies "
                f"over {FAR_MODE:g} node spacings from the mode. The surface passes near them in several places, "
                "or the noise spans many nodes.",
                Advice("posterior_mode", words="look at their likeliest places ({})"),
                Advice("init", "isomap", "try another start, such as {}"),
                "fewer nodes",
            ),
            MultimodalWarning,
        )


class MapOnRows(NamedTuple):
    """A trained map on some rows.

    ``mass`` (K,) is what each node stands for, ``weight`` (n,) how much each row counted in the end, and ``spacing``
    that of the nodes which training began with: doubled nodes move no row.
    """

    model: GTMModel
    rows: Rows
    parameters: Parameters
    mass: FloatArray
    weight: FloatArray | None
    spacing: float
    folds: FindFolds


def about_fit(fitted: Any, found: MapOnRows) -> Iterator[Words]:
    """All that went wrong in a fit, or may mislead."""
    surface, noise, rows = found.model.surface, found.model.noise, found.rows
    yield from fitted._stopping_warnings()
    nothing_varies = False
    if found.parameters.at_floor():
        known = fill_gaps(rows)
        nothing_varies = principal_axes(known, 1).column_variance == 0
        yield about_noise_floor(noise.floor, fitted.noise_floor, known)
    for check in fitted._checks:
        yield from ((words, DegenerateWarning) for words in check(fitted))
    yield from about_dimension(surface.latent.dimension, rows.n_columns)
    if is_folded(found, found.folds):
        yield about_folds(found.folds(found.model, found.parameters))
    yield from about_basis(surface, fitted.basis_)
    if not nothing_varies:
        yield from about_far_modes(far_mode_share(found))


# ------------------------------------------------------------------------------------------------- troubled maps


def is_folded_or_many_peaked(found: MapOnRows) -> bool:
    """Whether much of the data lies on folds, or many rows could be in several places.

    Columns that the noise tells apart have its units, so that those of the data do not decide.
    """
    columns = found.model.noise.capabilities.columns
    units = None if columns is None else columns.units
    folds = found.folds if units is None else partial(_folds_in_units, units)
    return is_folded(found, folds) or far_mode_share(found) > MANY_ROWS


def node_folds(model: GTMModel, parameters: Parameters) -> Folds:
    """Fold and warp diagnostics at the nodes."""
    surface, latent = model.surface, model.surface.latent
    return find_folds(surface.node_jacobian(parameters.weights), None, latent.edges)


def _folds_in_units(unit: FloatArray, model: GTMModel, parameters: Parameters) -> Folds:
    """Folds of the map with columns in units of their own (D,)."""
    jacobian = model.surface.node_jacobian(parameters.weights)
    return find_folds(jacobian / np.where(unit > 0, unit, 1.0)[:, None], None, model.surface.latent.edges)


def is_folded(found: MapOnRows, folds: FindFolds) -> bool:
    """Whether many rows lie on folds.

    Folds where no row lies are harmless: they bridge gaps between clusters. A surface of more dimensions than columns
    is folded everywhere, and not called so.
    """
    if found.rows.n_columns < found.model.surface.latent.dimension:
        return False
    folded = folds(found.model, found.parameters).folded
    return bool(found.mass[folded].sum() / found.mass.sum() > MANY_ON_FOLDS)


def far_mode_share(found: MapOnRows) -> float:
    """Share of the rows that count whose posterior has its mean far from its mode."""
    if found.model.rows_stand_alone and found.weight is None and found.rows.n_rows > _FIRST_MODE_ROWS:
        share = _far_mode_share_of(found, _FIRST_MODE_ROWS)
        if share < _CLEARLY_FEW:
            return share
    return _far_mode_share_of(found, _MODE_ROWS)


def _far_mode_share_of(found: MapOnRows, most: int) -> float:
    model, rows, weight = found.model, found.rows, found.weight
    if model.rows_stand_alone and rows.n_rows > most:
        some = np.sort(np.random.default_rng(0).choice(rows.n_rows, most, replace=False))
        rows, weight = choose_rows(rows, some), None if weight is None else weight[some]
    apart = mode_distance(model, rows, found.parameters)
    return float(np.average(apart > FAR_MODE * found.spacing, weights=weight))
