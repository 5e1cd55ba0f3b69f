"""The posterior of a GTM given rows: likelihoods, responsibilities, places on the map, missing cells.

All go through the rows once, part by part, and hold what they return and little else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import UnsupportedInputError
from prinfold.geometry.column_span import ColumnSpan
from prinfold.gtm.device_passes import DevicePass, device_pass
from prinfold.gtm.e_step import TakeGroups
from prinfold.gtm.lattice_refinement import EveryPoint, Pieces, refinement_of, visit_pieces
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise, Groups, Parameters, Posterior, require
from prinfold.latent import LatentSpace
from prinfold.latent.base import NO_RESULTANT
from prinfold.latent.subdivision import Subdivision
from prinfold.rows.rows import Rows, Selection, row_slices

_COLUMNS_PER_FUNCTION = 4
"""Columns for each basis function from which on places are found in the span of the surface."""

_FRAME_NUMBERS = 2**22
"""Numbers of the rows in that span that are held at a time."""

Reduction = Callable[[Posterior, IntArray | None], FloatArray]
Completion = tuple[FloatArray, FloatArray]
"""(n, D) what cells are expected to be, and how far they scatter about it."""

Place = Callable[[LatentSpace, Posterior, IntArray | None], FloatArray]
OfGroups = Callable[[AnyNoise, LatentSpace, FloatArray], TakeGroups | None]
"""Gives what fills an array for many groups of rows at once; None where a noise has no code for that."""


def log_likelihood(model: GTMModel, rows: Rows, parameters: Parameters, dtype: Any = None) -> FloatArray:
    """(n,) log p(t), in the precision of the rows or the one named."""
    kind = rows.table.dtype if dtype is None else np.dtype(dtype)
    if (there := _pass_there(model, rows, parameters)) is not None:
        return there.log_likelihood().astype(kind)
    least = float(np.finfo(kind).min)  # single precision may not reach as low as a row lies far
    return _per_row(model, rows, parameters, lambda posterior, _: np.maximum(posterior.log_likelihood, least), (), kind)


def responsibilities(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, K) posterior weight of each node for each row."""
    n_nodes = model.surface.latent.n_nodes

    def spread(posterior: Posterior, near: IntArray | None) -> FloatArray:
        if near is None:
            return _weights(posterior)
        out = np.zeros((len(posterior.total), n_nodes), dtype=posterior.relative.dtype)
        out[:, near] = _weights(posterior)
        return out

    return _per_row(model, rows, parameters, spread, (n_nodes,))


def sparse_responsibilities(model: GTMModel, rows: Rows, parameters: Parameters, threshold: float) -> csr_matrix:
    """(n, K) posterior weights of at least ``threshold``, as a sparse matrix."""
    found: list[tuple[Selection, IntArray, IntArray, FloatArray]] = []

    def collect(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: AnyNodes) -> None:
        weight = _weights(posterior)
        large = weight >= threshold
        column = np.nonzero(large)[1]
        column = (column if near is None else near[column]).astype(np.int32)
        found.append((some, large.sum(axis=1), column, weight[large]))

    model.visit(rows, parameters, collect)
    return _sparse_rows(found, (rows.n_rows, model.surface.latent.n_nodes), rows.table.dtype)


def _sparse_rows(
    found: list[tuple[Selection, IntArray, IntArray, FloatArray]], shape: tuple[int, int], dtype: Any
) -> csr_matrix:
    """One sparse matrix of rows, how many entries each has, their columns and values; ``found`` is used up.

    Entries go straight to their places: by way of triplets all of this would take more than twice the memory.
    """
    ends = np.zeros(shape[0] + 1, dtype=np.int64)
    for rows, counts, _, _ in found:
        ends[1:][rows] = counts
    np.cumsum(ends, out=ends)
    index = np.int32 if ends[-1] < 2**31 else np.int64
    columns, values = np.empty(ends[-1], dtype=index), np.empty(ends[-1], dtype=dtype)
    while found:
        rows, counts, column, value = found.pop()
        at = np.repeat(ends[:-1][rows] - (np.cumsum(counts) - counts), counts) + np.arange(len(column))
        columns[at], values[at] = column, value
    return csr_matrix((values, columns, ends.astype(index)), shape=shape)


def posterior_mean(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) mean of the posterior over latent space, between the nodes where these lie far apart."""
    if (found := _places_there(model, rows, parameters, DevicePass.mean)) is not None:
        return found
    shape = (model.surface.latent.n_columns,)
    return _posterior_places(model, rows, parameters, _mean, Pieces.mean, shape, _means_of_groups)


def posterior_mode(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) the node with the largest responsibility, or the point between nodes where these lie far apart."""
    if (found := _places_there(model, rows, parameters, DevicePass.mode)) is not None:
        return found
    return _posterior_places(model, rows, parameters, _mode, Pieces.mode, (model.surface.latent.n_columns,))


def heaviest_nodes(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, 2) number of the node with the largest responsibility, and that responsibility, in double precision."""

    def heaviest(posterior: Posterior, near: IntArray | None) -> FloatArray:
        at = posterior.relative.argmax(axis=1)
        largest = posterior.relative[np.arange(len(at)), at] / posterior.total
        return np.stack([at if near is None else near[at], largest], axis=1)

    return _per_row(model, rows, parameters, heaviest, (2,), np.float64)


def posterior_covariance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q, Q) spread of the posterior about its mean, between the nodes where these lie far apart."""
    n_columns = model.surface.latent.n_columns
    return _posterior_places(model, rows, parameters, _covariance, Pieces.covariance, (n_columns, n_columns))


def mode_distance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) distance along latent space from posterior mean to posterior mode: large for several modes (3.3)."""
    apart: Callable[[Pieces, Subdivision], FloatArray] = lambda p, fine: fine.distance(p.mean(fine), p.mode(fine))  # noqa: E731
    return _posterior_places(model, rows, parameters, _mode_distance, apart, ())


def row_scales(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) posterior mean of what a noise with tails multiplies the precision of each row by."""
    scales = require(model.noise.capabilities.row_scales, model.noise, "tell how far off a row is")
    return _per_row(model, rows, parameters, lambda posterior, _: scales(posterior), ())


def _weights(posterior: Posterior) -> FloatArray:
    return posterior.relative / posterior.total[:, None]


def _mean(latent: LatentSpace, posterior: Posterior, near: IntArray | None) -> FloatArray:
    return latent.mean(posterior.relative, near, posterior.total)


def _means_of_groups(noise: AnyNoise, latent: LatentSpace, out: FloatArray) -> TakeGroups | None:
    """Writes the means of many groups of rows at once, as :meth:`LatentSpace.mean` has them, if the noise can."""
    can = noise.capabilities.places
    if can is None:
        return None
    embedded = np.ascontiguousarray(latent.embed(latent.nodes).T)

    def write(some: Selection, loaded: Any, groups: Groups, nodes: AnyNodes) -> None:
        mean, heaviest = can.of(nodes).means(loaded, groups, embedded)
        Z, resultant = latent.unembed(mean)
        lost = resultant < NO_RESULTANT
        Z[lost] = latent.nodes[heaviest[lost]]
        out[some] = Z

    return write


def _covariance(latent: LatentSpace, posterior: Posterior, near: IntArray | None) -> FloatArray:
    weight = _weights(posterior)
    return latent.covariance(weight, latent.mean(weight, near), near)


def _mode_distance(latent: LatentSpace, posterior: Posterior, near: IntArray | None) -> FloatArray:
    return latent.distance(_mean(latent, posterior, near), _mode(latent, posterior, near))


def _mode(latent: LatentSpace, posterior: Posterior, near: IntArray | None) -> FloatArray:
    nodes = latent.nodes if near is None else latent.nodes[near]
    return np.asarray(nodes[posterior.relative.argmax(axis=1)])


def completion(model: GTMModel, rows: Rows, parameters: Parameters) -> Completion:
    """(n, D) expectation of every cell given what was measured of its row, about the data's centre; and its variance.

    The noise of ``model`` must be one that takes gaps.
    """
    impute = require(model.noise.capabilities.impute, model.noise, "tell what is missing")
    mean, variance = np.empty((2, *rows.table.shape))

    def complete(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: AnyNodes) -> None:
        mean[some], variance[some] = impute(nodes, loaded, posterior, near)

    model.visit(rows, parameters, complete)
    return mean, variance


def fill_missing_cells(table: FloatArray, complete: Callable[[], Completion]) -> Completion:
    """The table (n, D) with its missing cells at what ``complete`` expects; deviations of these, nil where measured."""
    if issparse(table):
        raise UnsupportedInputError("a sparse table has no missing cells; there is nothing to impute")
    missing = np.isnan(table)
    if not missing.any():
        return table.copy(), np.zeros_like(table)
    mean, variance = complete()
    found, deviation = np.where(missing, mean, table), np.where(missing, np.sqrt(variance), 0.0)
    return found.astype(table.dtype, copy=False), deviation.astype(table.dtype, copy=False)


def factor_means(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, q) expectation of the factors of each row. The noise of ``model`` must be one that has factors."""
    factors = require(model.noise.capabilities.factors, model.noise, "tell the factors of a row")
    found = np.empty((rows.n_rows, factors.count), dtype=rows.table.dtype)

    def find(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: AnyNodes) -> None:
        found[some] = factors.means(nodes, loaded, posterior)

    model.visit(rows, parameters, find)
    return found


def sample(model: GTMModel, parameters: Parameters, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """n rows drawn from the density, about the data's centre, with the node each came from."""
    node = rng.integers(model.surface.latent.n_nodes, size=n)
    nodes, shares = model.noise.at_nodes(model.surface, parameters), model.noise.capabilities.node_shares
    if shares is not None:  # nodes that are not alike
        node = rng.choice(len(nodes.centers), size=n, p=shares.of(nodes))
    return nodes.draw(node, rng), node


def _posterior_places(
    model: GTMModel,
    rows: Rows,
    parameters: Parameters,
    of_nodes: Place,
    of_pieces: Callable[[Pieces, Subdivision], FloatArray],
    shape: tuple[int, ...],
    of_groups: OfGroups | None = None,
) -> FloatArray:
    """An (n, *shape) array of what the posterior says about places: over pieces of the space, or points all over it."""
    out = np.empty((rows.n_rows, *shape), dtype=rows.table.dtype)
    if (frame := _narrow_frame(model, rows, parameters)) is not None:
        inside = require(model.noise.capabilities.in_frame, model.noise, "be told in fewer columns")(parameters, frame)
        for part, some in _rows_in_frame(rows, frame):
            out[part] = _posterior_places(model, some, inside, of_nodes, of_pieces, shape, of_groups)
        return out
    refined = refinement_of(model, parameters)
    if isinstance(refined, EveryPoint) or (refined is not None and _pass_there(model, rows, parameters) is not None):
        # A device takes all points: it has no use for knowing which of them matter.
        model, parameters, refined = replace(model, surface=refined.fine), refined.points_parameters, None
    if refined is None:
        return _per_row(model, rows, parameters, partial(of_nodes, model.surface.latent), shape, of_groups=of_groups)

    def write(some: Selection, pieces: Pieces) -> None:
        out[some] = of_pieces(pieces, refined.latent)

    visit_pieces(model, refined, rows, write)
    return out


def _narrow_frame(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray | None:
    """(D, r) an orthonormal frame of the surface's span, where that is much smaller than the space of all columns.

    There are many points to a cell, and each would have as many numbers as the table has columns.
    """
    n_weights, n_columns = parameters.weights.shape
    narrow = n_columns < _COLUMNS_PER_FUNCTION * n_weights
    if narrow or rows.device is not None or model.noise.capabilities.in_frame is None:
        return None
    return ColumnSpan.of(parameters.weights).frame


def _rows_in_frame(rows: Rows, frame: FloatArray) -> Iterator[tuple[slice, Rows]]:
    """All rows in the coordinates of a frame, some at a time."""
    r, dtype = frame.shape[1], rows.table.dtype
    for part in row_slices(rows.n_rows, max(rows.block_rows, _FRAME_NUMBERS // r)):
        inside = np.empty((part.stop - part.start, r), dtype=dtype)
        for some in row_slices(len(inside), rows.block_rows):
            inside[some] = rows.block(slice(part.start + some.start, part.start + some.stop)) @ frame.astype(dtype)
        yield part, Rows(inside, np.zeros(r), None, rows.block_rows)


def _pass_there(model: GTMModel, rows: Rows, parameters: Parameters) -> DevicePass | None:
    """A pass on the device of the rows, where it pays and each row stands for itself."""
    if rows.device is None or not model.rows_stand_alone:
        return None
    return device_pass(model.noise, rows, model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type))


def _places_there(
    model: GTMModel, rows: Rows, parameters: Parameters, ask: Callable[[DevicePass, LatentSpace], FloatArray]
) -> FloatArray | None:
    """Places of the rows by their device, over all points of the space; None without a device."""
    if rows.device is None:
        return None
    refined = refinement_of(model, parameters)
    if refined is not None:
        model, parameters = replace(model, surface=refined.fine), refined.points_parameters
    there = _pass_there(model, rows, parameters)
    return None if there is None else ask(there, model.surface.latent).astype(rows.table.dtype)


def _per_row(
    model: GTMModel,
    rows: Rows,
    parameters: Parameters,
    reduce_part: Reduction,
    shape: tuple[int, ...],
    kind: Any = None,
    of_groups: OfGroups | None = None,
) -> FloatArray:
    """Fill an (n, *shape) array with what ``reduce_part`` makes of each part's posterior, or ``of_groups`` of many."""
    out = np.empty((rows.n_rows, *shape), dtype=rows.table.dtype if kind is None else kind)

    def write(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: AnyNodes) -> None:
        out[some] = reduce_part(posterior, near)

    at_once = None if of_groups is None else of_groups(model.noise, model.surface.latent, out)
    model.visit(rows, parameters, write, at_once)
    return out
