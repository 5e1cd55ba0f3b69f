"""Products of small matrices within compiled code, which leave BLAS out.

Each call of OpenBLAS takes its workspace under a lock that all threads share. Of products as small as those of a group
of rows with its nodes, many threads then wait more than they compute: on 16 of them 80 × 52 by 52 × 100 gained 6.6, and
30 × 12 by 12 × 40 gained 1.5. Here each step holds six rows of a product in registers, two of them wide, which for such
sizes is as fast as BLAS on one thread, and waits for nobody. A number is the same whatever is beside it.

This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_jitable, register_model

from prinfold._typing import FloatArray, IntArray

_BYTES = 64 if get_host_cpu_features().get("avx512f") else 32
"""Numbers side by side: what a register of this processor holds, or two of them."""

_LARGE = 2**21
"""Multiplications from which BLAS is asked. A dense pass of products of 290 × 52 by 52 × 900 took 43 ms by BLAS and 65
without on 16 threads of a Xeon; on one of an EPYC BLAS took a tenth longer."""


instruction: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic
"""Of numba, whose types do not say that compiled code calls a function without the first of its arguments."""


class _Lanes(types.Type):
    """Numbers of one kind side by side."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(_Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, 8 * _BYTES // kind.dtype.bitwidth))  # type: ignore[no-untyped-call]


def _place(context: Any, builder: Any, kind: Any, array: Any, index: list[Any], lanes: Any) -> Any:
    """Pointer to the lanes that begin at an entry; where indices are checked, those of both ends are."""
    of = context.make_array(kind)(context, builder, array)

    def pointer(column: Any) -> Any:
        entry = [index[0], column]
        return cgutils.get_item_pointer(
            context, builder, kind, of, entry, wraparound=False, boundscheck=context.enable_boundscheck
        )

    if context.enable_boundscheck:
        pointer(builder.add(index[1], ir.Constant(index[1].type, lanes.count - 1)))
    return builder.bitcast(pointer(index[1]), lanes.as_pointer())


@instruction
def _nothing(typing: Any, array: Any) -> Any:
    """Lanes of zeros, of the kind of an array."""
    kind = _Lanes(array.dtype)

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return ir.Constant(context.get_value_type(kind), None)

    return kind(array), write


@instruction
def _read(typing: Any, array: Any, i: Any, j: Any) -> Any:
    """The lanes array[i, j:j + n]."""
    kind = _Lanes(array.dtype)

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, array, given[0], given[1:], context.get_value_type(kind))
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return kind(array, types.intp, types.intp), write


@instruction
def _write(typing: Any, lanes: Any, array: Any, i: Any, j: Any) -> Any:
    """Set array[i, j:j + n] to lanes."""

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, array, given[1], given[2:], given[0].type)
        builder.store(given[0], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(lanes, array, types.intp, types.intp), write


@instruction
def _add_times(typing: Any, total: Any, factor: Any, lanes: Any) -> Any:
    """Total + factor × lanes, rounded once where the processor can."""

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        total, factor, lanes = given
        kind = total.type
        none, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        same = builder.insert_element(none, factor, first)
        same = builder.shuffle_vector(same, none, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None))
        name = f"llvm.fmuladd.v{kind.count}f{8 * _BYTES // kind.count}"
        fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(fused, [same, lanes, total])

    return total(total, total.dtype, total), write


def _up_to_lanes(n: int, itemsize: int) -> int:
    """The next number of columns that are whole lanes."""
    lanes = _BYTES // itemsize
    return (n + lanes - 1) // lanes * lanes


def _six_by_two(A: FloatArray, B: FloatArray, out: FloatArray, i: int, j: int, lanes: int) -> None:
    """Six rows of a product in two lanes of columns."""
    a, b, c, d, e, f = _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out)
    u, v, w, x, y, z = _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out)
    for t in range(len(B)):
        left, right = _read(B, t, j), _read(B, t, j + lanes)
        a, u = _add_times(a, A[i, t], left), _add_times(u, A[i, t], right)
        b, v = _add_times(b, A[i + 1, t], left), _add_times(v, A[i + 1, t], right)
        c, w = _add_times(c, A[i + 2, t], left), _add_times(w, A[i + 2, t], right)
        d, x = _add_times(d, A[i + 3, t], left), _add_times(x, A[i + 3, t], right)
        e, y = _add_times(e, A[i + 4, t], left), _add_times(y, A[i + 4, t], right)
        f, z = _add_times(f, A[i + 5, t], left), _add_times(z, A[i + 5, t], right)
    _write_six((a, b, c, d, e, f), out, i, j)
    _write_six((u, v, w, x, y, z), out, i, j + lanes)


def _six_by_one(A: FloatArray, B: FloatArray, out: FloatArray, i: int, j: int) -> None:
    """Six rows of a product in one lane of columns."""
    a, b, c, d, e, f = _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out), _nothing(out)
    for t in range(len(B)):
        row = _read(B, t, j)
        a, b, c = _add_times(a, A[i, t], row), _add_times(b, A[i + 1, t], row), _add_times(c, A[i + 2, t], row)
        d, e, f = _add_times(d, A[i + 3, t], row), _add_times(e, A[i + 4, t], row), _add_times(f, A[i + 5, t], row)
    _write_six((a, b, c, d, e, f), out, i, j)


def _one_by_one(A: FloatArray, B: FloatArray, out: FloatArray, i: int, j: int) -> None:
    a = _nothing(out)
    for t in range(len(B)):
        a = _add_times(a, A[i, t], _read(B, t, j))
    _write(a, out, i, j)


def _write_all_six(rows: tuple[Any, Any, Any, Any, Any, Any], out: FloatArray, i: int, j: int) -> None:
    _write(rows[0], out, i, j)
    _write(rows[1], out, i + 1, j)
    _write(rows[2], out, i + 2, j)
    _write(rows[3], out, i + 3, j)
    _write(rows[4], out, i + 4, j)
    _write(rows[5], out, i + 5, j)


_write_six = register_jitable(_write_all_six)
six_by_two, six_by_one = register_jitable(_six_by_two), register_jitable(_six_by_one)
one_by_one = register_jitable(_one_by_one)


def _multiply(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Set ``out`` (n, k) to ``A`` (n, m) · ``B`` (m, k), k being whole lanes, and columns side by side in memory.

    The last six rows are those that are left and some before them, which are found anew.
    """
    (n, m), k, lanes = A.shape, out.shape[1], _BYTES // out.itemsize
    if len(B) != m or len(out) != n or B.shape[1] != k or k % lanes:
        raise ValueError("shapes of a small product")
    if B.strides[1] != B.itemsize or out.strides[1] != out.itemsize:
        raise ValueError("columns of a small product lie apart")
    for j in range(0, k, 2 * lanes):
        if n < 6:
            for i in range(n):
                one_by_one(A, B, out, i, j)
                if j + lanes < k:
                    one_by_one(A, B, out, i, j + lanes)
        elif j + lanes < k:
            for i in range(0, n, 6):
                six_by_two(A, B, out, min(i, n - 6), j, lanes)
        else:
            for i in range(0, n, 6):
                six_by_one(A, B, out, min(i, n - 6), j)


def _product(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """The same by BLAS where it is large: the lock hardly matters there, and its blocks follow the caches."""
    if len(out) * len(B) * out.shape[1] < _LARGE:
        multiply(A, B, out)
    else:
        np.dot(A, B, out)


def _turn(table: FloatArray, chosen: IntArray, into: FloatArray) -> None:
    """Rows (C) of a table as the first columns of ``into`` (C …, k …), and zeros in all others and below."""
    C, k = table.shape[1], len(chosen)
    for c in range(into.shape[0]):
        for j in range(k if c < C else 0, into.shape[1]):
            into[c, j] = 0.0
    for j in range(k):
        for c in range(C):
            into[c, j] = table[chosen[j], c]


up_to_lanes, multiply = register_jitable(_up_to_lanes), register_jitable(_multiply)
product, turn = register_jitable(_product), register_jitable(_turn)
