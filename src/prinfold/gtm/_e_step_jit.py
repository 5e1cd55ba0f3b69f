"""Weights and sums of many small groups of rows, each with its own few components, in one compiled call.

Called one by one from Python such groups cost more in calls than in arithmetic, and threads would wait for each other
at every call. This module imports numba, which takes as long as a small fit: import it only where there is
much to sweep.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import centered, compiled, exp32, exp64, longest


def _weigh(row: FloatArray) -> float:
    """Turn a row of log weights into weights in place; returns their sum. Exponents are held within ± the span."""
    raise NotImplementedError


def _weigh_in(row: Any) -> Callable[[Any], Any]:
    """``_weigh`` for the type of a row; see gtm/softmax.py for the spans."""

    def double(row: Any) -> Any:
        total = 0.0
        for k in range(row.shape[0]):
            weight = exp64(min(max(row[k], -600.0), 600.0))
            row[k] = weight
            total += weight
        return total

    def single(row: Any) -> Any:
        total = np.float32(0.0)
        for k in range(row.shape[0]):
            weight = exp32(min(max(row[k], np.float32(-80.0)), np.float32(80.0)))
            row[k] = weight
            total += weight
        return np.float64(total)

    return single if row.dtype is types.float32 else double


# Sums in any order and fused products; nothing that would assume away rounding, infinities or what is no number.
overload(_weigh, jit_options={"fastmath": {"reassoc", "contract"}})(_weigh_in)


def _weigh_below(row: FloatArray, largest: float) -> float:
    """Weights relative to the largest of a row of log weights, in place; returns their sum."""
    total = 0.0
    for k in range(row.shape[0]):
        row[k] = math.exp(max(row[k] - largest, -60.0))
        total += row[k]
    return total


def _gather(table: FloatArray, chosen: IntArray, into: FloatArray) -> None:
    """Rows of a table; a loop, because expressions of whole arrays take seconds to compile."""
    for j in range(len(chosen)):
        for c in range(table.shape[1]):
            into[j, c] = table[chosen[j], c]


def _scatter(part: FloatArray, chosen: IntArray, scale: float, table: FloatArray) -> None:
    """Add to rows of a table."""
    for j in range(len(chosen)):
        for c in range(table.shape[1]):
            table[chosen[j], c] += scale * part[j, c]


weigh_below = register_jitable(_weigh_below)
gather, scatter = register_jitable(_gather), register_jitable(_scatter)


def _weigh_far(row: FloatArray, loaded: FloatArray, loading: FloatArray) -> tuple[float, float]:
    """The same for a row whose exponents leave the span: relative to its largest, which is returned with the sum.

    The first column is left out of the product: it is the same for all components, and would drown the rest.
    """
    largest = -np.inf
    for k in range(row.shape[0]):
        exponent = 0.0
        for c in range(1, loaded.shape[0]):
            exponent += np.float64(loaded[c]) * np.float64(loading[k, c])
        row[k] = exponent
        largest = max(largest, np.float64(row[k]))
    return weigh_below(row, largest), largest + np.float64(loaded[0]) * np.float64(loading[0, 0])


weigh_far = register_jitable(_weigh_far)


def _weigh_group(
    rows: FloatArray,
    loading: FloatArray,
    sound: tuple[float, float],
    weight: FloatArray,
    total: FloatArray,
    log_sum: FloatArray,
) -> None:
    """Weights (n, k) of rows (n, C) for components (k, C), their sums, and the logs of those."""
    np.dot(rows, loading.T, weight)
    for i in range(len(rows)):
        found, level = _weigh(weight[i]), 0.0
        if not sound[0] < found < sound[1]:
            found, level = weigh_far(weight[i], rows[i], loading)
        total[i] = found
        log_sum[i] = level + math.log(found)


weigh_group = register_jitable(_weigh_group)


def _weigh_near(
    rows: FloatArray,
    nodes: IntArray,
    loading: FloatArray,
    sound: tuple[float, float],
    gathered: FloatArray,
    weight: FloatArray,
    total: FloatArray,
    log_sum: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """:func:`weigh_group` for some of the components, in flat rooms; returns the weights (n, k) and room (k, C)."""
    (n, C), k = rows.shape, len(nodes)
    local, weights = gathered[: k * C].reshape(k, C), weight[: n * k].reshape(n, k)
    if k < len(loading):
        gather(loading, nodes, local)
    weigh_group(rows, local if k < len(loading) else loading, sound, weights, total, log_sum)
    return weights, local


weigh_near = register_jitable(_weigh_near)


def _load_rows(table: FloatArray, chosen: IntArray, offset: FloatArray, loaded: FloatArray) -> None:
    last = loaded.shape[1] - 1
    for i in range(len(chosen)):
        loaded[i, 0] = -0.5 * centered(table[chosen[i]], offset, loaded[i][1:last])
        loaded[i, last] = 1.0


load_rows = register_jitable(_load_rows)


@compiled
def load_chosen(table: FloatArray, chosen: IntArray, offset: FloatArray, loaded: FloatArray) -> None:
    """(n, D + 2) −½‖t‖², t and 1 of some rows t of a table, less its offset: without the interpreter's lock."""
    load_rows(table, chosen, offset, loaded)


def _sweep_group(
    rows: FloatArray,
    share: FloatArray,
    nodes: IntArray,
    scale: float,
    sound: tuple[float, float],
    loading: FloatArray,
    room: tuple[FloatArray, FloatArray, FloatArray],
    moment: FloatArray,
    mass: FloatArray,
    log_sum: FloatArray,
) -> None:
    """Add one group, as :func:`sweep` does; ``share`` may be empty, for rows that all count once."""
    total = room[2]
    weight, local = weigh_near(rows, nodes, loading, sound, room[0], room[1], total, log_sum)
    for i in range(len(rows)):
        factor = (share[i] if len(share) else 1.0) / total[i]
        for c in range(rows.shape[1]):
            rows[i, c] *= factor
    np.dot(weight.T, rows, local)
    for j in range(len(nodes)):
        into, found = moment[nodes[j]], local[j]
        for c in range(len(into)):
            into[c] += scale * found[c + 1]
        mass[nodes[j]] += scale * found[len(into) + 1]


sweep_group = register_jitable(_sweep_group)


@compiled
def sweep(
    loaded: FloatArray,
    share: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    scale: float,
    sound: tuple[float, float],
    loading: FloatArray,
    moment: FloatArray,
    mass: FloatArray,
    log_sum: FloatArray,
) -> None:
    """Add groups of rows to the sums of their components.

    Group g holds rows ``cuts[g]:cuts[g + 1]`` of ``loaded`` (n, C), which are written over, and components
    ``near[near_cuts[g]:near_cuts[g + 1]]``. Log weights are ``loaded`` · ``loading``ᵀ, where the first column of
    ``loading`` (K, C) is the same for all components. ``mass`` (K,) gains scale Σ share · r, and ``moment`` (K, C − 2)
    gains scale Σ share · r · loaded without its first and last column. ``log_sum`` (n,) is set to the log of each row's
    sum of weights. A sum that is not ``sound`` is computed anew.
    """
    C, n_most, k_most = loaded.shape[1], longest(cuts), longest(near_cuts)
    room = np.empty(k_most * C, loaded.dtype), np.empty(n_most * k_most, loaded.dtype), np.empty(n_most)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        some, found = share[cuts[g] : cuts[g + 1]], log_sum[cuts[g] : cuts[g + 1]]
        sweep_group(rows, some, nodes, scale, sound, loading, room, moment, mass, found)


@compiled
def sweep_table(
    table: FloatArray,
    chosen: IntArray,
    offset: FloatArray,
    share: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    scale: float,
    sound: tuple[float, float],
    loading: FloatArray,
    moment: FloatArray,
    mass: FloatArray,
) -> tuple[float, float]:
    """:func:`load_chosen` and :func:`sweep` in one, group by group, so that what is loaded stays in a core's cache.

    ``share`` may be empty, for rows that all count once. Returned are Σ share · ‖t‖² and Σ share · log of the sums.
    """
    C, n_most, k_most = loading.shape[1], longest(cuts), longest(near_cuts)
    room = np.empty(k_most * C, table.dtype), np.empty(n_most * k_most, table.dtype), np.empty(n_most)
    loaded, log_sum = np.empty((n_most, C), table.dtype), np.empty(n_most)
    square, found = 0.0, 0.0
    for g in range(len(cuts) - 1):
        rows, some = loaded[: cuts[g + 1] - cuts[g]], share[cuts[g] : cuts[g + 1]]
        load_rows(table, chosen[cuts[g] : cuts[g + 1]], offset, rows)
        for i in range(len(rows)):
            square -= 2.0 * (some[i] if len(some) else 1.0) * np.float64(rows[i, 0])
        nodes = near[near_cuts[g] : near_cuts[g + 1]]
        sweep_group(rows, some, nodes, scale, sound, loading, room, moment, mass, log_sum)
        for i in range(len(rows)):
            found += (some[i] if len(some) else 1.0) * log_sum[i]
    return square, found


@compiled
def weigh_groups(
    loaded: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    sound: tuple[float, float],
    loading: FloatArray,
    weights: FloatArray,
    total: FloatArray,
    log_sum: FloatArray,
) -> None:
    """The weights themselves of groups as :func:`sweep` has them: one (n, k) matrix after another in ``weights``.

    ``total`` (n,) is set to the sum of each row's, ``log_sum`` to the log of what they would sum to on their own scale.
    """
    begin, gathered = 0, np.empty(longest(near_cuts) * loaded.shape[1], loaded.dtype)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        sums, logs = total[cuts[g] : cuts[g + 1]], log_sum[cuts[g] : cuts[g + 1]]
        weigh_near(rows, nodes, loading, sound, gathered, weights[begin:], sums, logs)
        begin += len(rows) * len(nodes)


def sweep_reference(
    loaded: FloatArray, share: FloatArray, groups: list[tuple[slice, IntArray]], loading: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same by the definition, out of place: moment, mass and log sums."""
    products, log_sum = np.zeros(loading.shape), np.empty(len(loaded))
    for rows, nodes in groups:
        block = loaded[rows].astype(np.float64)
        exponent = block[:, 1:] @ loading[nodes, 1:].T.astype(np.float64)
        total = np.logaddexp.reduce(exponent, axis=1)
        log_sum[rows] = block[:, 0] * float(loading[0, 0]) + total
        weight = np.exp(exponent - total[:, None])
        products[nodes] += weight.T @ (share[rows, None] * block)
    return products[:, 1:-1], products[:, -1], log_sum


def _weigh_turned_far(
    row: FloatArray, squares: FloatArray, loaded: FloatArray, loading: FloatArray, sign: FloatArray
) -> tuple[float, float]:
    """:func:`_weigh_far` with a tangential term; the last column is left out as far as components have it in common."""
    last = loaded.shape[0] - 1
    shared, largest = -np.inf, -np.inf
    for k in range(row.shape[0]):
        shared = max(shared, np.float64(loading[k, last]))
    for k in range(row.shape[0]):
        exponent = (np.float64(loading[k, last]) - shared) * np.float64(loaded[last])
        for c in range(last):
            exponent += np.float64(loaded[c]) * np.float64(loading[k, c])
        row[k] = exponent + np.float64(sign[k]) * np.float64(squares[k])
        largest = max(largest, np.float64(row[k]))
    return weigh_below(row, largest), largest + shared * np.float64(loaded[last])


def _add_squares(layers: FloatArray, sign: FloatArray, squares: FloatArray, row: FloatArray) -> None:
    """Set ``squares`` to the sums (k,) of squares over layers (Q, k), and add them with their signs to a row."""
    for j in range(row.shape[0]):
        squares[j] = layers[0, j] * layers[0, j]
    for layer in range(1, layers.shape[0]):
        for j in range(row.shape[0]):
            squares[j] += layers[layer, j] * layers[layer, j]
    for j in range(row.shape[0]):
        row[j] += sign[j] * squares[j]


weigh_turned_far, add_squares = register_jitable(_weigh_turned_far), register_jitable(_add_squares)


@compiled
def sweep_turned(
    loaded: FloatArray,
    share: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    scale: float,
    sound: tuple[float, float],
    loading: FloatArray,
    signs: FloatArray,
    products: FloatArray,
    tangential: FloatArray,
    crossed: FloatArray,
    log_sum: FloatArray,
) -> None:
    """The same for noise that turns with its component: 1 + Q products, the squares of Q of them with a sign.

    Log weights are ``loaded`` · ``loading[0]``ᵀ plus ``signs`` times the sum of squares of the ``loaded`` ·
    ``loading[q]``ᵀ, ``loading`` (1 + Q, K, C) having in its last column what belongs to ‖t‖². ``tangential`` (K,) gains
    the weighted sums of squares, and ``crossed`` (Q, K, C), if it is not empty, what ``products`` gains with each of
    the Q products as a further factor.
    """
    n_layers, C, Q = loading.shape[0], loaded.shape[1], len(crossed)
    n_most, k_most = longest(cuts), longest(near_cuts)
    gathered = np.empty(n_layers * k_most * C, loaded.dtype)
    room = np.empty(n_layers * n_most * k_most, loaded.dtype)
    squares, sign = np.empty(k_most, loaded.dtype), np.empty(k_most, loaded.dtype)
    inside = np.empty(k_most, np.float64)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        n, k = len(rows), len(nodes)
        local = gathered[: n_layers * k * C].reshape(n_layers, k, C)
        weight = room[: n_layers * n * k].reshape(n_layers, n, k)
        for layer in range(n_layers):
            gather(loading[layer], nodes, local[layer])
            np.dot(rows, local[layer].T, weight[layer])
        for j in range(k):
            sign[j], inside[j] = signs[nodes[j]], 0.0
        for i in range(n):
            row = weight[0, i]
            add_squares(weight[1:, i], sign, squares, row)
            total, level = _weigh(row), 0.0
            if not sound[0] < total < sound[1]:
                total, level = weigh_turned_far(row, squares[:k], rows[i], local[0], sign[:k])
            log_sum[cuts[g] + i] = level + math.log(total)
            factor = share[cuts[g] + i] / total
            for j in range(k):
                inside[j] += factor * row[j] * squares[j]
            for layer in range(1, Q + 1):
                for j in range(k):
                    weight[layer, i, j] *= row[j]
            for c in range(C):
                rows[i, c] *= factor
        np.dot(weight[0].T, rows, local[0])
        scatter(local[0], nodes, scale, products)
        for j in range(k):
            tangential[nodes[j]] += scale * inside[j]
        for q in range(Q):
            np.dot(weight[q + 1].T, rows, local[q + 1])
            scatter(local[q + 1], nodes, scale, crossed[q])


def sweep_turned_reference(
    loaded: FloatArray,
    share: FloatArray,
    groups: list[tuple[slice, IntArray]],
    loading: FloatArray,
    signs: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The same by the definition, out of place: products, tangential, crossed and log sums."""
    n_layers, K, C = loading.shape
    products, tangential, crossed = np.zeros((K, C)), np.zeros(K), np.zeros((n_layers - 1, K, C))
    log_sum = np.empty(len(loaded))
    for rows, nodes in groups:
        block = loaded[rows].astype(np.float64)
        layers = block @ np.swapaxes(loading[:, nodes].astype(np.float64), 1, 2)
        squares = np.square(layers[1:]).sum(axis=0)
        exponent = layers[0] + signs[nodes] * squares
        log_sum[rows] = np.logaddexp.reduce(exponent, axis=1)
        weight = share[rows, None] * np.exp(exponent - log_sum[rows][:, None])
        products[nodes] += weight.T @ block
        tangential[nodes] += (weight * squares).sum(axis=0)
        crossed[:, nodes] += np.swapaxes(weight * layers[1:], 1, 2) @ block
    return products, tangential, crossed, log_sum
