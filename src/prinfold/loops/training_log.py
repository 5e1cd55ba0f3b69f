"""Checkpoints of a training: written to a file while it runs, and resumed from there.

One training may be several loops, one after another: a GTM goes on with twice the nodes, for instance. Each is a
*stage*. The file holds the outcome of every stage that has ended, and of the one under way the last iteration that was
written. When the same training is run again, stages that have ended are not run, and the one under way goes on from
there with the same numbers, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, CheckpointError, Message, PrinfoldError
from prinfold.files.atomic import check_target, write_bytes
from prinfold.files.container import read_container, to_container
from prinfold.loops.snapshots import Arrays, Snapshot, has_form_of, unpack
from prinfold.loops.stopping_rules import StopReason

_KEY = "prinfold checkpoint"
_FORMAT = 1

_SAME_START_TOLERANCE = 1e-6
"""Relative difference up to which two starts are the same: rounding may differ between machines."""


class LoopProgress(NamedTuple):
    """Progress of a loop: its state, the state that is kept, which iteration that was, and all records."""

    state: Any
    best: Any
    kept: int
    records: list[dict[str, float]]
    reason: StopReason | None = None


class StoredStage(NamedTuple):
    """A stage as it is in the file: JSON, and its arrays."""

    body: dict[str, Any]
    arrays: Mapping[str, FloatArray]


class TrainingLog:
    """The file of one training: stages that have ended, and the one under way.

    ``identity`` says what is trained: the name of the method, its settings and a digest of the rows. A file of another
    training is refused.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, identity: Mapping[str, Any]) -> None:
        self.path, self.every, self.identity = check_target(path), every, dict(identity)
        self.stages = read_stages(Path(self.path), self.identity)
        self._next, self._written, self._writer = 0, monotonic(), _Writer(self.path)

    def open_stage(self, begun: Any, first: Mapping[str, float]) -> Stage:
        """The next stage, which begins with a state and its record."""
        number, self._next = self._next, self._next + 1
        stored = self.stages[number] if number < len(self.stages) else None
        return Stage(self, number, begun, self._restore_stage(stored, begun, first))

    def _restore_stage(self, stored: StoredStage | None, begun: Any, first: Mapping[str, float]) -> LoopProgress | None:
        if stored is None:
            return None
        with refuse_damage(self.path):
            found = LoopProgress(*unpack(stored.body["progress"], stored.arrays, begun))
            before = found.records[0]["objective"]
            if not has_form_of(found.state, begun) or not has_form_of(found.best, begun):
                raise ValueError("it holds another state than training begins with")
        if not isclose(before, first["objective"], rel_tol=_SAME_START_TOLERANCE, abs_tol=_SAME_START_TOLERANCE):
            raise CheckpointError(
                Message(
                    f"the training in {self.path} began at an objective of {before:.6g}, and this one begins at "
                    f"{first['objective']:.6g}: random numbers or libraries differ",
                    Advice("random_state", words="give {} a number"),
                    "give another path, or delete the file to begin anew",
                )
            )
        return found

    def is_due(self) -> bool:
        """Whether it is time to write; what is still being written is not waited for, unless all is to be written."""
        return self.every == 0 or (monotonic() - self._written >= self.every and not self._writer.busy)

    def keep(self, number: int, begun: Any, progress: LoopProgress, *, wait: bool) -> None:
        """Write how far a stage has come; while training goes on, unless it is to ``wait``."""
        snapshot = Snapshot(begun)
        body = {"progress": snapshot.pack(tuple(progress))}
        self.stages = [*self.stages[:number], StoredStage(body, snapshot.arrays)]
        self._writer.write(pack_stages(self.identity, self.stages), wait=wait)
        self._written = monotonic()


class Stage:
    """One loop of a training. ``found`` is how far it had come when it was last written, None where it is new."""

    def __init__(self, log: TrainingLog, number: int, begun: Any, found: LoopProgress | None) -> None:
        self.log, self.number, self.begun, self.found = log, number, begun, found

    def note(self, progress: LoopProgress) -> None:
        """Record a complete iteration, and write it if it is time."""
        if self.log.is_due():
            self.log.keep(self.number, self.begun, progress, wait=self.log.every == 0)

    def end(self, progress: LoopProgress) -> None:
        """Write the outcome. A loop that was interrupted has none: it goes on from what was written last."""
        if progress.reason is not StopReason.INTERRUPTED:
            self.log.keep(self.number, self.begun, progress, wait=True)


class _Writer:
    """Writes in a thread of its own, one file at a time; a failure is raised at the next call."""

    def __init__(self, path: Path) -> None:
        self.path, self._thread = path, Thread()
        self._error: Exception | None = None

    @property
    def busy(self) -> bool:
        """Whether the last file is still being written."""
        return self._thread.is_alive()

    def write(self, content: _PackedFile, *, wait: bool) -> None:
        """Write a file after the last one."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        # Not a daemon: a program that ends while this is written waits for it.
        self._thread = Thread(target=self._write, args=(content,), name="prinfold-checkpoint")
        self._thread.start()
        if wait:
            self._thread.join()
            if self._error is not None:
                raise self._error

    def _write(self, content: _PackedFile) -> None:
        try:
            write_bytes(self.path, content.to_bytes())
        except Exception as error:
            self._error = error


# ---------------------------------------------------------------------------------------------------- the file


class _PackedFile(NamedTuple):
    """A file to be written: JSON and arrays."""

    body: dict[str, Any]
    arrays: Arrays

    def to_bytes(self) -> bytes:
        return to_container(_KEY, self.body, self.arrays)


def pack_stages(identity: Mapping[str, Any], stages: Sequence[StoredStage]) -> _PackedFile:
    """The file of some stages of a training."""
    arrays = {f"{i}.{name}": each for i, stage in enumerate(stages) for name, each in stage.arrays.items()}
    return _PackedFile({"format": _FORMAT, **identity, "stages": [stage.body for stage in stages]}, arrays)


def read_stages(path: Path, identity: Mapping[str, Any]) -> list[StoredStage]:
    """The stages in a file of the same training; none where there is no file yet."""
    if not path.exists():
        return []
    if not path.is_file():  # a pipe or device would be waited for, or read without end
        raise CheckpointError(f"{path} is no plain file, as a checkpoint is; give another path")
    with refuse_damage(path):
        body, arrays = read_container(_KEY, path)
        if body["format"] != _FORMAT:
            raise ValueError(f"it has format {body['format']!r}")
        _require_same(path, body, identity)
        apart: list[dict[str, FloatArray]] = [{} for _ in body["stages"]]
        for name, array in arrays.items():
            number, _, own = name.partition(".")
            apart[int(number)][own] = array
        return [StoredStage(stage, own) for stage, own in zip(body["stages"], apart, strict=True)]


@contextmanager
def refuse_damage(path: Path) -> Iterator[None]:
    """Raise an error for a file that is not a checkpoint, or a damaged one, where its parts cannot be read."""
    try:
        yield
    except PrinfoldError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of this version of prinfold, or it is damaged ({error}). Give another path, "
            "or delete it to begin anew"
        ) from error


def _require_same(path: Path, body: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse the checkpoint of another training, and say what differs."""
    way_out = "Give another path, or delete the file to begin anew"
    if body["method"] != identity["method"]:
        raise CheckpointError(
            f"{path} is the checkpoint of a {body['method']}, and this is a {identity['method']}. {way_out}"
        )
    stored, asked = body["settings"], identity["settings"]
    for name in sorted(set(stored) | set(asked)):
        if stored.get(name) != asked.get(name):
            raise CheckpointError(
                f"{path} is the checkpoint of a fit with {name}={stored.get(name)}, and this one has "
                f"{name}={asked.get(name)}. {way_out}"
            )
    if body["rows"] != identity["rows"]:
        raise CheckpointError(f"{path} is the checkpoint of a fit to other rows. {way_out}")
    before, now = body["beside"], identity["beside"]
    for name in sorted(set(before) | set(now)):
        if before.get(name, "") != now.get(name, ""):
            raise CheckpointError(f"{path} is the checkpoint of a fit with another {name}. {way_out}")
