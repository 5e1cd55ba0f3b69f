"""Checkpoints are whole: a fit or comparison that cannot write on leaves the last one, and goes on from it later."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prinfold import GTM, Checkpoint, choose, compare
from prinfold.exceptions import NotWrittenError
from tests.files.test_atomic import ROWS, _environment, names_in, posix, short_disk, small_disk

__all__ = ["small_disk"]

pytestmark = pytest.mark.filterwarnings("ignore")

GRID = {"nodes": (5, 6, 7)}
MODELS = {"narrow": GTM(1, nodes=6, basis=3, max_iter=3), "wide": GTM(1, nodes=6, basis=3, max_iter=3, width=2.0)}


class Death(BaseException):
    """The end of a process."""


class LastIteration:
    """A callback that ends the process after an iteration."""

    def __init__(self, number: int) -> None:
        self.number = number

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: Any, context: Any, **told: Any) -> bool:
        if context.task_id == self.number:
            raise Death
        return False


def train(path: Path, *more: Any) -> Any:
    model = GTM(1, nodes=6, basis=3, max_iter=6, tol=0.0, random_state=0)
    return model.set_callbacks(Checkpoint(path, every=0), *more).fit(ROWS)


def choose_nodes(path: Path) -> Any:
    return choose(ROWS, GRID, model=MODELS["narrow"], by="held-out", folds=2, checkpoint=path)


def compare_widths(path: Path) -> Any:
    return compare(ROWS, MODELS, n_components=1, folds=2, checkpoint=path)


def _train_in_part(path: Path) -> None:
    with pytest.raises(Death):
        train(path, LastIteration(2))


def _run_in_part(run: Callable[[Path], Any]) -> Callable[[Path], None]:
    """A comparison that dies before its fourth fit."""

    def run_in_part(path: Path) -> None:
        fit, n_fits = GTM.fit, 0

        def counted(self: Any, *args: Any, **options: Any) -> Any:
            nonlocal n_fits
            n_fits += 1
            if n_fits == 4:
                raise Death
            return fit(self, *args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(GTM, "fit", counted)
            with pytest.raises(Death):
                run(path)

    return run_in_part


WRITERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], None]]] = {
    "fit": (train, _train_in_part),
    "choose": (choose_nodes, _run_in_part(choose_nodes)),
    "compare": (compare_widths, _run_in_part(compare_widths)),
}
"""What writes checkpoints, and the same left in the middle."""

everyone = pytest.mark.parametrize("what", WRITERS)


def _goes_on(run: Callable[[Path], Any], path: Path, old: bytes) -> None:
    run(path)
    assert path.read_bytes() != old


@posix
@everyone
def test_a_checkpoint_that_does_not_fit_leaves_the_last_one(what: str, tmp_path: Path) -> None:
    run, run_in_part = WRITERS[what]
    path = tmp_path / "kept"
    run_in_part(path)
    old = path.read_bytes()
    with short_disk(100), pytest.raises(NotWrittenError, match=r"cannot write \S+: .*; choose another place"):
        run(path)
    assert path.read_bytes() == old
    assert names_in(tmp_path) == ["kept"]
    _goes_on(run, path, old)


@posix
@everyone
def test_a_first_checkpoint_that_does_not_fit_leaves_nothing(what: str, tmp_path: Path) -> None:
    with short_disk(100), pytest.raises(NotWrittenError, match="choose another place"):
        WRITERS[what][0](tmp_path / "kept")
    assert names_in(tmp_path) == []


@posix
@everyone
def test_a_disk_that_is_really_full_leaves_the_last_checkpoint(what: str, small_disk: Path) -> None:
    run, run_in_part = WRITERS[what]
    path = small_disk / "kept"
    run_in_part(path)
    old, free = path.read_bytes(), os.statvfs(small_disk)
    (small_disk / "rest").write_bytes(bytes(free.f_bavail * free.f_frsize))
    with pytest.raises(NotWrittenError, match=f"cannot write {re.escape(str(path))}: No space left on device"):
        run(path)
    assert path.read_bytes() == old
    assert names_in(small_disk) == ["kept", "rest"]
    (small_disk / "rest").unlink()
    _goes_on(run, path, old)


KILLED = """
import resource, signal, sys, warnings
from pathlib import Path
from tests.files.test_checkpoints_whole import WRITERS
warnings.simplefilter("ignore")
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
WRITERS[sys.argv[1]][0](Path(sys.argv[2]))
"""


@posix
@everyone
def test_a_process_that_dies_while_it_writes_leaves_the_last_checkpoint(what: str, tmp_path: Path) -> None:
    run, run_in_part = WRITERS[what]
    path = tmp_path / "folder" / "kept"
    path.parent.mkdir()
    run_in_part(path)
    old = path.read_bytes()
    words = [sys.executable, "-B", "-c", KILLED, what, str(path)]
    environment = _environment() | {"NUMBA_CACHE_DIR": str(tmp_path)}
    code = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode
    assert code == -signal.SIGXFSZ
    assert path.read_bytes() == old
    assert {each.stat().st_size for each in path.parent.iterdir()} == {len(old), 100}
    _goes_on(run, path, old)
