"""Trials of a comparison that have ended, kept in a file, so that the same call does not fit them again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import scipy.sparse

from prinfold.base.checkpoint import digest_argument, digest_rows, print_setting
from prinfold.files.atomic import check_target, write_bytes
from prinfold.loops.snapshots import Snapshot, unpack
from prinfold.loops.training_log import StoredStage, pack_stages, read_stages, refuse_damage

T = TypeVar("T")


class FinishedTrials:
    """The file of a comparison: trials in their order, as many as have ended; None keeps nothing.

    ``settings`` and ``numbers`` say what is compared, and on which rows: a file of another comparison is refused.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        name: str,
        settings: Mapping[str, Any],
        numbers: Mapping[str, Any],
    ) -> None:
        self.path = None if path is None else Path(check_target(path, f"{name}.checkpoint"))
        digests = {each: _digest(value) for each, value in numbers.items()}
        self.identity = {
            "method": name,
            "settings": {each: print_setting(value) for each, value in settings.items()},
            "rows": digests.pop("rows"),
            "beside": digests,
        }
        self.stages = [] if self.path is None else read_stages(self.path, self.identity)

    @property
    def n_kept(self) -> int:
        """Number of trials that need not be run again."""
        return len(self.stages)

    def followed_by(self, trials: Iterable[T]) -> Iterator[T]:
        """Trials from the file, then those that are run now, each of which is written when it has ended."""
        for stage in list(self.stages):
            yield self._restore(stage)
        for trial in trials:
            self._keep(trial)
            yield trial

    def _restore(self, stage: StoredStage) -> Any:
        assert self.path is not None
        with refuse_damage(self.path):
            return unpack(stage.body["trial"], stage.arrays)

    def _keep(self, trial: Any) -> None:
        if self.path is None:
            return
        snapshot = Snapshot()
        body = {"trial": snapshot.pack(trial)}
        self.stages.append(StoredStage(body, snapshot.arrays))
        write_bytes(self.path, pack_stages(self.identity, self.stages).to_bytes())


def _digest(value: Any) -> str:
    return digest_rows(value) if scipy.sparse.issparse(value) else digest_argument(value)
