"""Rows in blocks: how every pass over the data is cut, threaded and added up.

A pass never holds more than a few blocks of derived numbers, so memory beyond the data stays bounded
whatever the number of rows. Blocks go to threads; BLAS is held to one thread meanwhile, because many
small parallel products spend their time in barriers.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache, cached_property
from threading import Lock, RLock, local
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast, overload

import joblib  # comes with scikit-learn, which needs it
import numpy as np
from threadpoolctl import ThreadpoolController

from prinfold._typing import FloatArray, IntArray
from prinfold.devices import Device
from prinfold.rows.tree_sums import S, Summable, TreeSum, cut_into_leaves, tree_sum

P = TypeVar("P")
T = TypeVar("T")
P_contra = TypeVar("P_contra", contravariant=True)
S_co = TypeVar("S_co", bound=Summable, covariant=True)

FEWEST_BLOCK_ROWS = 64
"""Rows of a block at least, however many numbers come of each."""

_BLOCK_BYTES = 2**22
"""Size of one block of derived numbers: small enough for a core's cache, and large enough for many threads not to wait
for each other between the few calls that each block takes."""


_ENTRIES_PER_THREAD = 2**18
"""Entries below which another thread costs more to start than it saves."""


_LEAVES_OF_LARGE = 64
"""Sums that a pass is cut into before each takes as many entries as are worth a thread; no fewer than a quarter. With
four or more for each thread of a large machine all end at about the same time."""

_MOST_KEPT = 32
"""Threads that are kept at most, or one for each core if these are more; passes for which there are none left wait."""


def row_slices(n_rows: int, size: int) -> list[slice]:
    """Slices of at most ``size`` rows each, one after another."""
    return [slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]


class Worker(Protocol[P_contra]):
    """One thread's share of a pass: takes parts one by one, with buffers of its own."""

    def add(self, part: P_contra, /) -> None:
        """Take in one part."""


class SummingWorker(Worker[P_contra], Protocol[P_contra, S_co]):
    """One thread's share of a pass that adds up what it finds."""

    def take_sum(self) -> S_co:
        """The sum of the parts since this was last asked, given away; the next begins with nothing."""


W = TypeVar("W", bound=Worker[Any])
Selection = slice | IntArray


@dataclass(frozen=True)
class Rows:
    """A table read block by block: centred in float64 first, then in the working precision.

    Centring before anything is squared keeps data far from the origin accurate. The table itself is
    only ever sliced, so a memory map stays on disk. Cells that are NaN are missing, of which ``gaps`` tells whether
    there are any; ``errors`` (n, D) or (n, 1) are standard deviations of what was measured, where they are known;
    ``scale`` (D,) are units in which blocks are given. ``variances`` (D,) are those of the columns about the offset,
    where they are known of more rows than these. Passes that pay there are computed on a ``device``, if there is one.
    """

    table: FloatArray
    offset: FloatArray
    weight: FloatArray | None
    block_rows: int
    gaps: bool = False
    errors: FloatArray | None = None
    scale: FloatArray | None = None
    variances: FloatArray | None = None
    device: Device | None = None
    at_hand: ClassVar[bool] = True
    """Whether all rows are here, so that what a pass learns of them serves the next."""

    @cached_property
    def n_rows(self) -> int:
        return int(self.table.shape[0])

    @cached_property
    def n_columns(self) -> int:
        return int(self.table.shape[1])

    @cached_property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else np.sum(self.weight, dtype=np.float64))

    @cached_property
    def slices(self) -> list[slice]:
        return row_slices(self.n_rows, self.block_rows)

    @property
    def plain(self) -> bool:
        """Whether a block is nothing but rows of an array in memory, less the offset."""
        table = self.table
        simple = type(self) is Rows and type(table) is np.ndarray and table.flags.c_contiguous
        return bool(simple and self.scale is None and not self.gaps)

    @property
    def filled(self) -> bool:
        """Whether some cells were never measured and have been given a value."""
        return False

    @property
    def sample(self) -> Rows:
        """Rows at hand that stand for all of them."""
        return self

    def portions(self) -> Iterator[Rows]:
        """All rows, a portion at a time; sums over portions are sums over all rows."""
        yield self

    def sum_portions(self, work: Callable[[Rows], S]) -> S:
        """Σ work(portion), by the tree of :mod:`prinfold.rows.tree_sums`."""
        return tree_sum(map(work, self.portions()))

    def block(self, part: Selection) -> FloatArray:
        """Centred rows, C-contiguous, in the table's own precision; a sparse table is filled in block by block."""
        chosen: Any = self.table[part]
        centered = np.subtract(dense(chosen), self.offset, dtype=np.float64, order="C")
        if self.scale is not None:
            centered /= self.scale
        return centered.astype(self.table.dtype, copy=False)

    def get_or_make(self, owner: object, make: Callable[[], T]) -> T:
        """A result computed from all rows, made once for an owner and kept for its next call.

        Only that of the newest owner of each type stays.
        """
        known, value = self._memory.get(type(owner), (None, None))
        if known is not owner:
            value = make()
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            self._memory[type(owner)] = owner, value
        return cast(T, value)

    @cached_property
    def _memory(self) -> dict[type, tuple[object, Any]]:
        return {}

    def block_weight(self, part: Selection) -> FloatArray | None:
        return None if self.weight is None else self.weight[part]

    def block_errors(self, part: Selection) -> FloatArray | None:
        return None if self.errors is None else self.errors[part]


class FilledRows(Rows):
    """Rows whose missing cells are given as the middle of their column: enough to begin with."""

    @property
    def filled(self) -> bool:
        return True

    def block(self, part: Selection) -> FloatArray:
        """Centred rows without gaps."""
        return np.nan_to_num(super().block(part), copy=False, nan=0.0, posinf=None, neginf=None)


def fill_gaps(rows: Rows) -> Rows:
    """Rows with missing cells filled by column middles, for methods that cannot handle gaps."""
    if not rows.gaps:
        return rows
    return FilledRows(rows.table, rows.offset, rows.weight, rows.block_rows, scale=rows.scale)


def as_rows(
    table: FloatArray,
    offset: FloatArray | None = None,
    weight: FloatArray | None = None,
    width: int = 1,
    block_rows: int | None = None,
    gaps: bool = False,
    errors: FloatArray | None = None,
    device: Device | None = None,
) -> Rows:
    """Cut a table into blocks whose derived numbers have ``width`` columns, if that is more than the table has."""
    if block_rows is None:
        block_rows = _rows_per_block(table, width)
    zero = np.zeros(table.shape[1]) if offset is None else offset
    return Rows(table, zero, weight, block_rows, gaps, errors, device=device)


def some_of(chosen: Selection, part: slice) -> Selection:
    """Some of the rows that were chosen."""
    if isinstance(chosen, slice):
        return slice(chosen.start + part.start, chosen.start + part.stop)
    return chosen[part]


def numbers_of(chosen: Selection) -> IntArray:
    """The numbers of the rows that were chosen."""
    if not isinstance(chosen, slice):
        return chosen
    return np.arange(chosen.start, chosen.stop, dtype=np.int32 if chosen.stop < 2**31 else np.int64)


def choose_rows(rows: Rows, chosen: IntArray) -> Rows:
    """Some of the rows, by number."""
    weight, errors = (None if each is None else each[chosen] for each in (rows.weight, rows.errors))
    return replace(rows, table=rows.table[chosen], weight=weight, errors=errors)


def cut_for(rows: Rows, width: int) -> Rows:
    """The same rows in blocks whose derived numbers have another width."""
    return replace(rows, block_rows=_rows_per_block(rows.table, width))


def _rows_per_block(table: FloatArray, width: int) -> int:
    widest = max(width, table.shape[1], 1)
    return int(np.clip(_BLOCK_BYTES // (table.dtype.itemsize * widest), FEWEST_BLOCK_ROWS, 1024))


class _Call:
    """Calls work for its parts.

    Of a class made anew for every pass nothing would be freed before the garbage collector came round, nor of what its
    work refers to.
    """

    def __init__(self, work: Callable[[Any], None]) -> None:
        self.add = work


class _Leaves(Generic[S]):
    """Puts the sum of one run of parts after another into a tree."""

    def __init__(self, worker: SummingWorker[Any, S], parts: Sequence[Any], tree: TreeSum[S]) -> None:
        self.worker, self.parts, self.tree = worker, parts, tree

    def add(self, leaf: tuple[int, slice]) -> None:
        index, run = leaf
        for part in self.parts[run]:
            self.worker.add(part)
        self.tree.put(index, self.worker.take_sum())


def sum_blocks(work: Callable[[P], S], parts: Sequence[P]) -> S:
    """Σ work(part) over all parts, threaded, by the tree of :mod:`prinfold.rows.tree_sums`; each part is a leaf."""
    if len(parts) == 1:
        with blas_on_one_thread():
            return work(parts[0])
    tree: TreeSum[S] = TreeSum()
    for_each_block(lambda leaf: tree.put(leaf[0], work(leaf[1])), list(enumerate(parts)))
    return tree.total()


def sum_through(
    make: Callable[[], SummingWorker[P, S]], parts: Sequence[P], sizes: Sequence[int] | IntArray, least: float = 0.0
) -> S:
    """The sum of all parts, threaded, by the tree of :mod:`prinfold.rows.tree_sums`.

    Its leaves are runs of parts, of about ``least`` or more by ``sizes``, how many numbers are derived of each part.
    Where they are cut depends on the sizes alone, so that the sum is the same to the last bit on any number of threads.
    No parts give the sum of nothing.
    """
    leaves = cut_into_leaves(sizes, _leaf_size(sizes, least)) if len(parts) > 1 else []
    if len(leaves) < 2:
        worker = make()
        with blas_on_one_thread():
            for part in parts:
                worker.add(part)
        return worker.take_sum()
    tree: TreeSum[S] = TreeSum(operator.iadd)
    work_through(lambda: _Leaves(make(), parts, tree), list(enumerate(leaves)))
    return tree.total()


def _leaf_size(sizes: Sequence[int] | IntArray, least: float) -> float:
    """About how much of a pass goes into one sum: less of a large pass, so that many threads have work to the end."""
    share = float(np.sum(sizes)) / _LEAVES_OF_LARGE
    return max(least, _ENTRIES_PER_THREAD if share < _ENTRIES_PER_THREAD / 4 else min(share, _ENTRIES_PER_THREAD))


def for_each_block(work: Callable[[P], None], parts: Sequence[P]) -> None:
    """Call ``work`` once for every part, threaded; ``work`` writes into its own rows of an output."""
    work_through(lambda: _Call(work), parts)


def work_through(make: Callable[[], W], parts: Sequence[P], n_entries: int | None = None) -> list[W]:
    """Hand all parts to workers, one for each thread, and return the workers.

    Parts are taken in order, by whoever is free: what is found of a part must not depend on the worker. ``n_entries``
    is the size of the job in derived numbers; a small one stays on one thread.
    """
    with blas_on_one_thread() as allowed:
        n_threads = 1 if _busy.here else _threads_for(len(parts), n_entries, allowed)
        workers = [make() for _ in range(n_threads)]
        left, failed = iter(range(len(parts))), list[int]()  # a part may be put together when it is asked for

        def work(start: int) -> None:
            before, _busy.here = _busy.here, True
            try:
                while not failed and (number := next(left, None)) is not None:
                    workers[start].add(parts[number])
            except BaseException:
                failed.append(start)  # what the others would still do is for nobody
                raise
            finally:
                _busy.here = before

        others = [_pool().submit(copy_context().run, work, start) for start in range(1, n_threads)]
        try:
            work(0)
        finally:
            if others:
                wait(others)  # whatever happened, nobody goes on writing
        for other in others:
            other.result()
        return workers


def _threads_for(n_parts: int, n_entries: int | None, allowed: int) -> int:
    """Number of threads that a pass is worth."""
    worth = n_parts if n_entries is None else max(1, n_entries // _ENTRIES_PER_THREAD)
    return max(1, min(allowed, worth, n_parts))


class _Busy(local):
    """Whether this thread works on a part: what that begins by itself stays on it, or it might wait for itself."""

    here = False


_busy = _Busy()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that are kept, begun as they are needed: new ones for every pass would have to be given memory anew."""
    return ThreadPoolExecutor(max(_MOST_KEPT, os.cpu_count() or 1), thread_name_prefix="prinfold")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads stay behind in the parent


def dense(block: Any) -> FloatArray:
    """Some rows of a table as an ordinary array, whether the table is sparse or not."""
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)


@contextmanager
def blas_on_one_thread() -> Iterator[int]:
    """Hold BLAS to one thread; yields how many threads of our own may run instead.

    That number is what BLAS was allowed on entry, so ``threadpool_limits``, ``OMP_NUM_THREADS`` and
    the limits that joblib sets in its workers all govern prinfold too.
    """
    # Passes within or beside each other share one hold: the first lowers the limits, and the last restores them.
    with _hold.lock:
        if _hold.n_holders == 0:
            _hold.lower()
        _hold.n_holders += 1
    try:
        yield _hold.n_threads
    finally:
        with _hold.lock:
            _hold.n_holders -= 1
            if _hold.n_holders == 0:
                _hold.restore()


class _Hold:
    """The hold on BLAS: how many passes have it, and how many threads each library and each pass was allowed."""

    def __init__(self) -> None:
        self.lock, self.n_holders, self.n_threads = Lock(), 0, 1
        self.allowed: list[int] = []

    def lower(self) -> None:
        libraries = _blas().lib_controllers
        self.allowed = [library.num_threads for library in libraries]
        self.n_threads = max(1, min([_n_cores(), *self.allowed]))
        for library in libraries:
            _set_threads(library, 1)

    def restore(self) -> None:
        for library, n_threads in zip(_blas().lib_controllers, self.allowed, strict=True):
            _set_threads(library, n_threads)


_hold = _Hold()


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads of a BLAS, from whichever thread.

    threadpoolctl leaves that to the first thread that did so, as long as it lives, and ignores all others. Here passes
    take turns already, and the last of them may be on another thread than the first.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


def _n_cores() -> int:
    """Cores that this process may use; joblib reads files to tell, and is asked again only where it may differ."""
    own = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return _count_cores(joblib.cpu_count, own, os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _count_cores(count: Callable[[], int], own: int | None, limit: str | None) -> int:
    return count()


@cache
def _blas() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds, so it is done once.
    return ThreadpoolController().select(user_api="blas")


class shared_property(cached_property[T]):  # noqa: N801 - a decorator
    """A cached property that threads which ask at the same time find once: the rest wait, rather than find it again."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        super().__init__(find)
        self._finding = RLock()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Any:
        """The value, computed once however many threads ask for it."""
        if instance is None:
            return self
        with self._finding:
            kept = instance.__dict__
            return kept[self.attrname] if self.attrname in kept else super().__get__(instance, owner)
