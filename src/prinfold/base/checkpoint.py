"""Checkpoints: a fit that dies is taken up again by the same call."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from prinfold.exceptions import InvalidParameterError, NotStorableError
from prinfold.files import require_sound
from prinfold.files.atomic import check_target
from prinfold.loops import TrainingLog
from prinfold.loops.snapshots import Snapshot
from prinfold.validation.failures import fit_arguments, record_resumption
from prinfold.validation.settings import real

_SETTINGS_WITHOUT_EFFECT = frozenset({"verbose"})
"""Settings that do not change what is fitted."""


class Checkpoint:
    """Keep a fit in a file while it goes on, so that the same call takes it up again after a crash.

    Give it to any iterative method by ``model.set_callbacks(Checkpoint("fit.checkpoint"))``, and call ``fit``. Where
    the file is there already, training goes on from the last iteration in it, and ends with the same model, to the
    last bit, as a fit that was never interrupted; starts are computed again. The file of a fit that has ended gives its
    model at once. Other settings or other rows than those in the file are an error.

    The file is written whole or not at all, and in a thread of its own while training goes on. It holds numbers and
    JSON, like a model file. It is not deleted at the end.

    Parameters
    ----------
    path : str or path
        Where to write. Each fit has a file of its own.
    every : float, default=60
        Seconds from one time that it is written to the next; 0 writes after every iteration, and waits for it.

    Examples
    --------
    >>> from prinfold import GTM, Checkpoint, datasets
    >>> X = datasets.make_pipe_flow(200, rng=0).X
    >>> model = GTM(random_state=0).set_callbacks(Checkpoint("pipe.checkpoint", every=30))
    >>> model.fit(X)  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60) -> None:
        if not real(0).test(every):
            raise InvalidParameterError(f"every must be {real(0).words}, got {every!r}")
        self.path, self.every = path, float(every)
        check_target(path, "fit.checkpoint")

    def __repr__(self) -> str:
        return f"Checkpoint({os.fspath(self.path)!r}, every={self.every:g})"

    # scikit-learn requires these methods of every callback. Files are written by the training loop, which can resume.

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing when ``fit`` begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing when ``fit`` ends."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **told: Any) -> None:
        """Do nothing when an iteration begins."""

    def on_fit_task_end(self, estimator: Any, context: Any, **told: Any) -> bool:
        """Do nothing when an iteration ends, and go on."""
        return False


def open_log(callbacks: Sequence[Any], estimator: Any, table: Any) -> TrainingLog | None:
    """The file of a fit, where one of the callbacks is a checkpoint."""
    found = [each for each in callbacks if isinstance(each, Checkpoint)]
    if not found:
        return None
    if len(found) > 1:
        raise InvalidParameterError(f"a fit has one checkpoint, got {len(found)}")
    identity = {
        "method": type(estimator).__name__,
        "settings": {
            name: print_setting(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in _SETTINGS_WITHOUT_EFFECT
        },
        "rows": digest_rows(table),
        "beside": {name: digest_argument(each) for name, each in fit_arguments().items() if name != "X"},
    }
    log = TrainingLog(found[0].path, found[0].every, identity)
    if log.stages:
        record_resumption(os.fspath(log.path), require_sound)
    return log


def print_setting(value: Any) -> str:
    """A text that is the same for the same setting: as Python writes it, or a digest of what it holds."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value)
    if callable(value) and not isinstance(value, type):
        name = getattr(value, "__qualname__", None)
        if name is not None:
            return f"{value.__module__}.{name}"
    try:
        snapshot = Snapshot()
        text = json.dumps(snapshot.pack(value), sort_keys=True)
    except NotStorableError:
        return repr(value)
    found = hashlib.sha256(text.encode())
    for array in snapshot.arrays.values():
        found.update(array.data)
    return f"{type(value).__name__} {found.hexdigest()[:16]}"


def digest_argument(value: Any) -> str:
    """A digest of something given to ``fit`` beside the rows, such as weights."""
    if value is None:
        return ""
    array = np.asarray(value)
    content = repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(f"{array.shape} {array.dtype}".encode() + content).hexdigest()


def digest_rows(table: Any) -> str:
    """A digest of a table, dense or sparse; rows that are read anew each time are identified by their first portion."""
    names = ("data", "indices", "indptr") if sparse.issparse(table) else ()
    parts = [getattr(table, name) for name in names] or [np.asarray(table)]
    found = hashlib.sha256(f"{table.shape} {table.dtype}".encode())
    for each in parts:
        found.update(np.ascontiguousarray(each).data)
    return found.hexdigest()
