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
from prinfold.numerics._small_products_jit import multiply, product, turn, up_to_lanes


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


def _scatter(part: FloatArray, chosen: IntArray, scale: float, table: FloatArray) -> None:
    """Add to rows of a table."""
    for j in range(len(chosen)):
        for c in range(part.shape[1]):
            table[chosen[j], c] += scale * part[j, c]


weigh_below = register_jitable(_weigh_below)
scatter = register_jitable(_scatter)


def _weigh_far(row: FloatArray, loaded: FloatArray, turned: FloatArray) -> tuple[float, float]:
    """The same for a row whose exponents leave the span: relative to its largest, which is returned with the sum.

    ``turned`` (C, k) are the components. Its first row is left out of the product: it is the same for all of them, and
    would drown the rest.
    """
    largest = -np.inf
    for k in range(row.shape[0]):
        exponent = 0.0
        for c in range(1, loaded.shape[0]):
            exponent += np.float64(loaded[c]) * np.float64(turned[c, k])
        row[k] = exponent
        largest = max(largest, np.float64(row[k]))
    return weigh_below(row, largest), largest + np.float64(loaded[0]) * np.float64(turned[0, 0])


weigh_far = register_jitable(_weigh_far)


def _weigh_near(
    rows: FloatArray,
    nodes: IntArray,
    loading: FloatArray,
    sound: tuple[float, float],
    turned: FloatArray,
    weight: FloatArray,
    total: FloatArray,
    log_sum: FloatArray,
) -> FloatArray:
    """Weights of rows (n, C …) for some of the components (K, C), their sums, and the logs of those.

    Returned are the weights (n, k …), the k columns of which are followed by more, up to whole lanes. ``turned`` and
    ``weight`` are flat rooms for as many as a row has columns and for n times as many.
    """
    (n, C), k = rows.shape, len(nodes)
    wide = up_to_lanes(k, loading.itemsize)
    local, weights = turned[: C * wide].reshape(C, wide), weight[: n * wide].reshape(n, wide)
    turn(loading, nodes, local)
    product(rows, local, weights)
    for i in range(n):
        row = weights[i, :k]
        found, level = _weigh(row), 0.0
        if not sound[0] < found < sound[1]:
            found, level = weigh_far(row, rows[i], local)
        total[i] = found
        log_sum[i] = level + math.log(found)
    return weights


weigh_near = register_jitable(_weigh_near)


def _load_rows(table: FloatArray, chosen: IntArray, offset: FloatArray, loaded: FloatArray) -> None:
    last = table.shape[1] + 1
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
    room: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    moment: FloatArray,
    mass: FloatArray,
    log_sum: FloatArray,
) -> None:
    """Add one group, as :func:`sweep` does; ``share`` may be empty, for rows that all count once.

    The C columns of the rows (n, C …) are followed by zeros, up to whole lanes.
    """
    total, C, k = room[2], loading.shape[1], len(nodes)
    weight = weigh_near(rows, nodes, loading, sound, room[0], room[1], total, log_sum)
    for i in range(len(rows)):
        factor = (share[i] if len(share) else 1.0) / total[i]
        for c in range(C):
            rows[i, c] *= factor
    local = room[3][: weight.shape[1] * rows.shape[1]].reshape(weight.shape[1], rows.shape[1])
    product(weight.T, rows, local)
    for j in range(k):
        into, found = moment[nodes[j]], local[j]
        for c in range(len(into)):
            into[c] += scale * found[c + 1]
        mass[nodes[j]] += scale * found[C - 1]


sweep_group = register_jitable(_sweep_group)


def _rooms(n_most: int, k_most: int, loading: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rooms for groups of up to so many rows and components: see :func:`_sweep_group`."""
    C, kind = loading.shape[1], loading.dtype
    wide, columns = up_to_lanes(k_most, loading.itemsize), up_to_lanes(C, loading.itemsize)
    return (
        np.empty(columns * wide, kind),
        np.empty(n_most * wide, kind),
        np.empty(n_most),
        np.empty(wide * columns, kind),
    )


rooms = register_jitable(_rooms)


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

    Group g holds rows ``cuts[g]:cuts[g + 1]`` of ``loaded`` (n, C), and components
    ``near[near_cuts[g]:near_cuts[g + 1]]``. Log weights are ``loaded`` · ``loading``ᵀ, where the first column of
    ``loading`` (K, C) is the same for all components. ``mass`` (K,) gains scale Σ share · r, and ``moment`` (K, C − 2)
    gains scale Σ share · r · loaded without its first and last column. ``log_sum`` (n,) is set to the log of each row's
    sum of weights. A sum that is not ``sound`` is computed anew.
    """
    C, n_most = loaded.shape[1], longest(cuts)
    room = rooms(n_most, longest(near_cuts), loading)
    block = np.zeros((n_most, up_to_lanes(C, loaded.itemsize)), loaded.dtype)
    for g in range(len(cuts) - 1):
        rows, nodes = block[: cuts[g + 1] - cuts[g]], near[near_cuts[g] : near_cuts[g + 1]]
        for i in range(len(rows)):
            for c in range(C):
                rows[i, c] = loaded[cuts[g] + i, c]
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
    n_most, wide = longest(cuts), up_to_lanes(loading.shape[1], table.itemsize)
    room = rooms(n_most, longest(near_cuts), loading)
    loaded, log_sum = np.zeros((n_most, wide), table.dtype), np.empty(n_most)
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
    begin, room = 0, rooms(longest(cuts), longest(near_cuts), loading)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        sums, logs = total[cuts[g] : cuts[g + 1]], log_sum[cuts[g] : cuts[g + 1]]
        found = weigh_near(rows, nodes, loading, sound, room[0], room[1], sums, logs)
        for i in range(len(rows)):
            for j in range(len(nodes)):
                weights[begin] = found[i, j]
                begin += 1


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
    row: FloatArray, squares: FloatArray, loaded: FloatArray, turned: FloatArray, sign: FloatArray
) -> tuple[float, float]:
    """:func:`_weigh_far` with a tangential term; the last row is left out as far as components have it in common."""
    last = turned.shape[0] - 1
    shared, largest = -np.inf, -np.inf
    for k in range(row.shape[0]):
        shared = max(shared, np.float64(turned[last, k]))
    for k in range(row.shape[0]):
        exponent = (np.float64(turned[last, k]) - shared) * np.float64(loaded[last])
        for c in range(last):
            exponent += np.float64(loaded[c]) * np.float64(turned[c, k])
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


def _multiply_layers(
    loaded: FloatArray, nodes: IntArray, loading: FloatArray, rows: FloatArray, local: FloatArray, weight: FloatArray
) -> None:
    """Set ``weight`` (1 + Q, n, k) to the products of a group with some components, which ``local`` is to hold."""
    n, C = loaded.shape
    for i in range(n):
        for c in range(C):
            rows[i, c] = loaded[i, c]
    for layer in range(loading.shape[0]):
        turn(loading[layer], nodes, local[layer])
        multiply(rows[:, :C], local[layer], weight[layer])


weigh_turned_far, add_squares = register_jitable(_weigh_turned_far), register_jitable(_add_squares)
multiply_layers = register_jitable(_multiply_layers)


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
    most, columns = up_to_lanes(k_most, loaded.itemsize), up_to_lanes(C, loaded.itemsize)
    block, found = np.empty((n_most, columns), loaded.dtype), np.empty((k_most, columns), loaded.dtype)
    turned, room = np.empty(n_layers * C * most, loaded.dtype), np.empty(n_layers * n_most * most, loaded.dtype)
    squares, sign = np.empty(k_most, loaded.dtype), np.empty(k_most, loaded.dtype)
    inside = np.empty(k_most, np.float64)
    for g in range(len(cuts) - 1):
        nodes, n = near[near_cuts[g] : near_cuts[g + 1]], cuts[g + 1] - cuts[g]
        k, wide, rows = len(nodes), up_to_lanes(len(nodes), loaded.itemsize), block[:n]
        local = turned[: n_layers * C * wide].reshape(n_layers, C, wide)
        weight = room[: n_layers * n * wide].reshape(n_layers, n, wide)
        multiply_layers(loaded[cuts[g] : cuts[g + 1]], nodes, loading, rows, local, weight)
        for j in range(k):
            sign[j], inside[j] = signs[nodes[j]], 0.0
        for i in range(n):
            row = weight[0, i, :k]
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
        multiply(weight[0, :, :k].T, rows, found[:k])
        scatter(found[:k, :C], nodes, scale, products)
        for j in range(k):
            tangential[nodes[j]] += scale * inside[j]
        for q in range(Q):
            multiply(weight[q + 1, :, :k].T, rows, found[:k])
            scatter(found[:k, :C], nodes, scale, crossed[q])


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
