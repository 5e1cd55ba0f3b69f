"""Files are whole: whatever stops a writer, what was there before is there still, and nothing is left beside it."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prinfold import GTM, DensityRidge, cli, datasets, explore, load, report, save
from prinfold.cli.demo import save_picture
from prinfold.cli.tables.writing import write_table
from prinfold.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NoPermissionError,
    NoSuchFolderError,
    NotWrittenError,
    PrinfoldError,
    PrinfoldWarning,
    TargetIsFolderError,
    UnsupportedInputError,
)
from prinfold.files import atomic
from prinfold.reporting.pictures import RECIPES
from tests.house import PACKAGE, ROOT

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither such permissions nor such signals")
OLD = b"what was there before"
ROWS = datasets.make_half_circle(60, rng=0).X
LONE = "a\ud800b"


@pytest.fixture(scope="module")
def fitted() -> GTM:
    return GTM(1, nodes=6, basis=3, max_iter=3, tol=0.0).fit(ROWS)


@pytest.fixture(scope="module")
def ridge() -> DensityRidge:
    return DensityRidge(bandwidth=0.3).fit(ROWS)


@pytest.fixture(autouse=True)
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with a single figure, which are made sooner."""
    for name in set(RECIPES) - {"map"}:
        monkeypatch.delitem(RECIPES, name)


WRITERS: dict[str, Callable[[GTM, DensityRidge, Path], Any]] = {
    "model.prinfold": lambda model, ridge, path: save(model, path),
    "map.html": lambda model, ridge, path: explore(model, ROWS, path),
    "report.html": lambda model, ridge, path: report(model, ROWS, path),
    "map.png": lambda model, ridge, path: report(model, ROWS, None, figures=path.parent),
    "lines.csv": lambda model, ridge, path: ridge.to_csv(path),
    "lines.geojson": lambda model, ridge, path: ridge.to_geojson(path),
    "front.png": lambda model, ridge, path: save_picture(path, lambda ax: ax.plot([0, 1]), (3.0, 3.0)),
    **{
        f"table{ending}": lambda model, ridge, path: write_table(path, {"x": np.arange(3000.0)})
        for ending in (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".npy", ".npz", ".NPY", ".NPZ")
    },
}
"""Everything that writes a file, by the name of what it writes."""

everything = pytest.mark.parametrize("name", WRITERS)


@contextmanager
def short_disk(n_bytes: int) -> Iterator[None]:
    """A disk on which no file grows beyond so many bytes."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 64 kB, where we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    if not made:
        pytest.skip("only a superuser mounts a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left_behind(folder: Path, seconds: float) -> Path:
    """A temporary file of a writer that was killed so long ago."""
    path = folder / ".prinfold-0123456789abcdef.html"
    path.write_bytes(b"half of")
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))
    return path


# ----------------------------------------------------------------------------------------------- what stops a writer


@posix
@everything
def test_a_file_that_does_not_fit_leaves_the_old_one(
    name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path
) -> None:
    target = tmp_path / name
    WRITERS[name](fitted, ridge, target)  # or fonts and the like would be written on the short disk
    for path in tmp_path.iterdir():
        path.write_bytes(OLD)
    before = names_in(tmp_path)
    with short_disk(100), pytest.raises(NotWrittenError) as caught:
        WRITERS[name](fitted, ridge, target)
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {OLD}
    assert names_in(tmp_path) == before
    assert Path(caught.value.filename).parent == tmp_path
    assert Path(caught.value.filename).name in before
    assert re.fullmatch(r"cannot write \S+: .*; choose another place", str(caught.value))


@everything
def test_a_full_disk_is_named_with_what_to_do(
    name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / name).write_bytes(OLD)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWrittenError, match="No space left on device; free some, or choose another place") as caught:
        WRITERS[name](fitted, ridge, tmp_path / name)
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / name).read_bytes() == OLD
    assert names_in(tmp_path) == [name]


@posix
@pytest.mark.parametrize("name", ["model.prinfold", "map.html", "table.csv"])
def test_a_disk_that_is_really_full(name: str, fitted: GTM, ridge: DensityRidge, small_disk: Path) -> None:
    target = small_disk / name
    target.write_bytes(OLD)
    free = os.statvfs(small_disk)
    (small_disk / "rest").write_bytes(bytes(free.f_bavail * free.f_frsize))
    with pytest.raises(NotWrittenError, match=f"cannot write {re.escape(str(target))}: No space left on device"):
        WRITERS[name](fitted, ridge, target)
    assert target.read_bytes() == OLD
    assert names_in(small_disk) == sorted([name, "rest"])


KILLED = """
import resource, signal, sys
from prinfold import explore, load, report, save
from prinfold.reporting.pictures import RECIPES
from tests.files.test_atomic import ROWS
for name in set(RECIPES) - {"map"}:
    del RECIPES[name]
model, what, path = load(sys.argv[1]), sys.argv[2], sys.argv[3]
make = {"save": lambda path: save(model, path), "explore": lambda path: explore(model, ROWS, path),
        "report": lambda path: report(model, ROWS, path)}[what]
make(sys.argv[4])
# The system ends the process in the middle of a write, and nothing of ours runs any more.
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
make(path)
"""


@posix
@pytest.mark.parametrize("what", ["save", "explore", "report"])
def test_a_process_that_dies_while_it_writes_leaves_the_old_file(what: str, fitted: GTM, tmp_path: Path) -> None:
    save(fitted, tmp_path / "model.prinfold")
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    target.write_bytes(OLD)
    words = [sys.executable, "-c", KILLED, "model.prinfold", what, str(target), "first"]
    code = subprocess.run(words, cwd=tmp_path, env=_environment(), capture_output=True, check=False).returncode
    assert code == -signal.SIGXFSZ
    assert target.read_bytes() == OLD
    (temporary,) = set(target.parent.iterdir()) - {target}
    assert temporary.stat().st_size == 1000
    then = temporary.stat().st_mtime - 120.0
    os.utime(temporary, (then, then))
    atomic.write_bytes(target, b"new")
    assert names_in(target.parent) == ["target"]
    assert target.read_bytes() == b"new"


WAITING = """
import sys
from prinfold.files.atomic import whole_file
with whole_file(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half of")
    print(temporary, flush=True)
    sys.stdin.read()
    temporary.write_bytes(b"all of it")
"""


@posix
def test_what_is_being_written_is_not_swept_and_what_was_killed_is(tmp_path: Path) -> None:
    target = tmp_path / "target.html"
    target.write_bytes(OLD)
    words = [sys.executable, "-c", WAITING, str(target)]
    writers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment())
        for _ in range(2)
    ]
    temporary = [Path(each.stdout.readline().strip()) for each in writers if each.stdout]
    for path in temporary:
        os.utime(path, (0.0, 0.0))  # they have been at it for years
    writers[0].kill()
    writers[0].communicate()
    assert writers[0].returncode == -signal.SIGKILL
    assert target.read_bytes() == OLD
    atomic.write_bytes(tmp_path / "other", b"other")
    assert [path.exists() for path in temporary] == [False, True]
    writers[1].communicate("")
    assert writers[1].returncode == 0
    assert target.read_bytes() == b"all of it"
    assert names_in(tmp_path) == ["other", "target.html"]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)]), "MPLBACKEND": "Agg"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupt_leaves_the_old_file(error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(OLD)

    def stop() -> None:
        with atomic.whole_file(tmp_path / "t") as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        stop()
    assert (tmp_path / "t").read_bytes() == OLD
    assert names_in(tmp_path) == ["t"]


def test_an_error_about_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic.whole_file(tmp_path / "t"):
        (tmp_path / "elsewhere" / "x").read_bytes()
    assert not isinstance(caught.value, PrinfoldError)
    assert caught.value.filename == str(tmp_path / "elsewhere" / "x")


# ----------------------------------------------------------------------------------------------- left behind


def test_only_what_is_ours_and_old_is_swept(tmp_path: Path) -> None:
    young = left_behind(tmp_path, 5.0)
    atomic.write_bytes(tmp_path / "t", b"")
    assert young.exists()
    left_behind(tmp_path, 90_000.0)
    for name in (".prinfold", ".prinfold-notes.txt", ".0123456789abcdef.tmp", "x.prinfold-0123456789abcdef.html"):
        (tmp_path / name).write_bytes(b"mine")
        os.utime(tmp_path / name, (0.0, 0.0))
    atomic.write_bytes(tmp_path / "t", b"")
    expected = {".prinfold", ".prinfold-notes.txt", ".0123456789abcdef.tmp", "x.prinfold-0123456789abcdef.html", "t"}
    assert set(names_in(tmp_path)) == expected


def test_without_locks_a_day_is_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_locks", None)
    left = left_behind(tmp_path, 3600.0)
    atomic.write_bytes(tmp_path / "t", b"")
    assert left.exists()
    left_behind(tmp_path, 90_000.0)
    atomic.write_bytes(tmp_path / "t", b"")
    assert names_in(tmp_path) == ["t"]


def test_many_writers_at_once(tmp_path: Path) -> None:
    target, contents = tmp_path / "t.bin", [bytes([i]) * 200_000 for i in range(8)]
    seen: list[bytes] = []
    go = threading.Barrier(len(contents))

    def write(content: bytes) -> None:
        go.wait()
        for _ in range(5):
            atomic.write_bytes(target, content)
            seen.append(target.read_bytes())

    threads = [threading.Thread(target=write, args=(each,)) for each in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40
    assert set(seen) <= set(contents)
    assert names_in(tmp_path) == ["t.bin"]


# ----------------------------------------------------------------------------------------------- links and permissions


@posix
@everything
def test_a_link_stays_a_link(name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    target, link, middle = tmp_path / "there" / "target", tmp_path / "here" / name, tmp_path / "middle"
    target.write_bytes(OLD)
    middle.symlink_to("there/target")
    link.symlink_to("../middle")
    WRITERS[name](fitted, ridge, link)
    assert link.is_symlink()
    assert middle.is_symlink()
    assert not target.is_symlink()
    assert target.stat().st_size > 0
    assert target.read_bytes() != OLD
    assert names_in(tmp_path / "there") == ["target"]


@posix
def test_a_link_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    atomic.write_text(tmp_path / "link", "ä\r\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == "ä\r\n".encode()
    (tmp_path / "astray").symlink_to("nowhere/target")
    with pytest.raises(NoSuchFolderError, match=r"there is no folder .*nowhere to write target in; make it first"):
        atomic.write_text(tmp_path / "astray", "")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o777])
def test_permissions_of_what_is_there_are_kept(mode: int, tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    (tmp_path / "t").chmod(mode)
    atomic.write_bytes(tmp_path / "t", b"new")
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == mode


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only a superuser gives files away")
def test_the_owner_of_what_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    os.chown(tmp_path / "t", 12345, 23456)
    atomic.write_bytes(tmp_path / "t", b"new")
    found = (tmp_path / "t").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


@posix
@pytest.mark.parametrize("mask", [0o002, 0o022, 0o077])
@pytest.mark.parametrize("name", ["model.prinfold", "map.html", "table.csv", "table.npy", "table.parquet"])
def test_new_files_have_the_permissions_of_any_other(
    name: str, mask: int, fitted: GTM, ridge: DensityRidge, tmp_path: Path
) -> None:
    old = os.umask(mask)
    try:
        WRITERS[name](fitted, ridge, tmp_path / name)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~mask


# ----------------------------------------------------------------------------------------------- places


PYTHON = [name for name in WRITERS if name.endswith((".prinfold", ".html", "json")) or name == "lines.csv"]


@pytest.mark.parametrize("name", PYTHON)
def test_places_that_there_are_not(name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path) -> None:
    with pytest.raises(NoSuchFolderError, match=rf"there is no folder .*nowhere to write {name} in; make it first"):
        WRITERS[name](fitted, ridge, tmp_path / "nowhere" / name)
    with pytest.raises(TargetIsFolderError, match=r"is a folder; name a file in it, such as \S+"):
        WRITERS[name](fitted, ridge, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NoSuchFolderError, match="there is no folder"):
        WRITERS[name](fitted, ridge, tmp_path / "file" / name)
    with pytest.raises(InvalidParameterError, match="cannot be the name of a file"):
        WRITERS[name](fitted, ridge, tmp_path / "a\0b")
    with pytest.raises(NotWrittenError, match="too long; choose another place"):
        WRITERS[name](fitted, ridge, tmp_path / ("a" * 300))
    assert names_in(tmp_path) == ["file"]


@posix
def test_a_long_name_is_written_too(tmp_path: Path) -> None:
    for name in ("a" * 255, f"a.{'b' * 253}", f"{'ä' * 120}.html"):
        atomic.write_text(tmp_path / name, "x")
        assert (tmp_path / name).read_bytes() == b"x"


@posix
@pytest.mark.parametrize("name", PYTHON)
def test_links_in_a_circle(name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(NotWrittenError, match="a link that leads in a circle; remove the link, or choose another"):
        WRITERS[name](fitted, ridge, tmp_path / "a")
    with pytest.raises(NotWrittenError, match=r"cannot write .*; remove the link, or choose another"):
        WRITERS[name](fitted, ridge, tmp_path / "a" / "deeper")


@pytest.mark.parametrize("name", PYTHON)
def test_a_folder_that_may_not_be_written(
    name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)  # a superuser may write anywhere
    with pytest.raises(NoPermissionError, match=r"the folder \S+ is not writable; choose another place") as caught:
        WRITERS[name](fitted, ridge, tmp_path / name)
    assert isinstance(caught.value, PermissionError)
    assert names_in(tmp_path) == []


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path / "t")
    with pytest.raises(NoPermissionError, match="there already, and read-only; choose another place"):
        atomic.write_bytes(tmp_path / "t", b"new")
    assert (tmp_path / "t").read_bytes() == OLD


@pytest.mark.parametrize("kind", [NotWrittenError, NoPermissionError])
def test_errors_travel_between_processes(kind: type[NotWrittenError]) -> None:
    error = kind(errno.ENOSPC, "No space left on device", "a.html")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errno) == (kind, str(error), errno.ENOSPC)


# ----------------------------------------------------------------------------------------------- pipes and devices


@posix
@pytest.mark.parametrize("name", ["model.prinfold", "map.html", "lines.csv", "lines.geojson", "table.csv", "table.npz"])
def test_a_pipe_is_written_directly(name: str, fitted: GTM, ridge: DensityRidge, tmp_path: Path) -> None:
    WRITERS[name](fitted, ridge, tmp_path / name)
    expected = (tmp_path / name).read_bytes()
    pipe = tmp_path / "pipe" / name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    WRITERS[name](fitted, ridge, pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names_in(pipe.parent) == [name]
    if name == "table.npz":  # what cannot be wound back is zipped in another way
        (x,) = np.load(io.BytesIO(read[0])).values()
        assert x.tolist() == list(range(3000))
    else:
        assert read == [expected]


@posix
def test_devices_stay_what_they_are(fitted: GTM, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.devnull)
    for path in (Path(os.devnull), tmp_path / "link"):
        explore(fitted, ROWS, path)
        save(fitted, path)
    (tmp_path / "t.npy").symlink_to(os.devnull)
    write_table(tmp_path / "t.npy", {"x": np.arange(3.0)})
    assert names_in(tmp_path) == ["link", "t.npy"]
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert (tmp_path / "link").is_symlink()


STANDARD = "from prinfold.files.atomic import write_text; write_text('/dev/stdout', 'words')"


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no such name here")
def test_standard_output(tmp_path: Path) -> None:
    words = [sys.executable, "-c", STANDARD]
    assert subprocess.run(words, capture_output=True, check=True, env=_environment()).stdout == b"words"
    target = tmp_path / "target"
    target.touch()
    number = target.stat().st_ino
    with target.open("wb") as stream:
        subprocess.run(words, stdout=stream, check=True, env=_environment())
    assert target.read_bytes() == b"words"
    assert target.stat().st_ino == number  # what the shell opened is what was written
    assert Path("/dev/stdout").is_symlink()


@posix
def test_a_reader_who_has_had_enough(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: (tmp_path / "pipe").open("rb").close())
    reader.start()

    def write() -> None:
        with atomic.whole_file(tmp_path / "pipe") as temporary, temporary.open("wb", buffering=0) as stream:
            reader.join()
            stream.write(bytes(10_000_000))

    with pytest.raises(BrokenPipeError):
        write()


# ----------------------------------------------------------------------------------------------- halves of characters


def _named(column: str = "b") -> tuple[GTM, pd.DataFrame]:
    frame = pd.DataFrame(ROWS, columns=["a", column])
    return GTM(1, nodes=6, basis=3, max_iter=3, tol=0.0).fit(frame), frame


LONELY: dict[str, Callable[[Path | None], Any]] = {
    "explore column": lambda path: explore(*_named(LONE), path),
    "explore names": lambda path: explore(*_named(), path, names=[LONE] * 60),
    "explore labels": lambda path: explore(*_named(), path, labels=[LONE, "c"] * 30),
    "explore extra": lambda path: explore(*_named(), path, extra={LONE: [LONE] * 60}),
    "explore title": lambda path: explore(*_named(), path, title=LONE),
    "report column": lambda path: report(*_named(LONE), path),
    "report names": lambda path: report(*_named(), path, names=[LONE] * 60),
    "report labels": lambda path: report(*_named(), path, labels=[LONE, "c"] * 30),
    "report values": lambda path: report(*_named(), path, values=pd.Series(ROWS[:, 0], name=LONE)),
    "report reason": lambda path: report(*_named(), path, reason=LONE),
    "report title": lambda path: report(*_named(), path, title=LONE),
}


@pytest.mark.parametrize("what", LONELY)
def test_a_lone_surrogate_costs_no_page(what: str, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_bytes(OLD)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        page = LONELY[what](target)
    said = [str(each.message) for each in caught if "lone surrogates" in str(each.message)]
    assert len(said) <= 1
    text = target.read_text(encoding="utf-8")
    assert text == page.html
    if what != "report values":  # whose name stands on a figure only
        assert "a\ufffdb" in text
        assert said
    assert "</html>" in text
    assert names_in(tmp_path) == ["page.html"]


def test_the_warning_points_at_the_caller(fitted: GTM) -> None:
    with pytest.warns(PrinfoldWarning, match=r"\d character\(s\) .* are lone surrogates.* shown as") as caught:
        explore(fitted, ROWS, None, title=LONE)
    assert caught[0].filename == __file__


def test_a_model_keeps_such_a_name(tmp_path: Path) -> None:
    save(_named(LONE)[0], tmp_path / "m.prinfold")
    assert load(tmp_path / "m.prinfold").feature_names_in_.tolist() == ["a", LONE]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".feather"])
@pytest.mark.parametrize(
    "columns",
    [{LONE: np.arange(3.0)}, {"x": np.array(["u", LONE, "v"], dtype=object)}],
    ids=["name", "cell"],
)
def test_a_table_with_a_lone_surrogate_is_refused_in_words(
    ending: str, columns: dict[str, Any], tmp_path: Path
) -> None:
    target = tmp_path / f"t{ending}"
    target.write_bytes(OLD)
    with pytest.raises(InvalidDataError, match=r"cannot write \S+: '.*a\\ud800b.*' holds '\\ud800', which utf-?8 text"):
        write_table(target, columns)
    assert target.read_bytes() == OLD
    assert names_in(tmp_path) == [target.name]


def test_lines_with_a_lone_surrogate(tmp_path: Path) -> None:
    model = DensityRidge(bandwidth=0.3).fit(pd.DataFrame(ROWS, columns=["a", LONE]))
    (tmp_path / "t.csv").write_bytes(OLD)
    with pytest.raises(InvalidDataError, match=r"holds '\\ud800'"):
        model.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == OLD
    model.to_geojson(tmp_path / "t.geojson")
    assert r"a\ud800b" in (tmp_path / "t.geojson").read_text(encoding="ascii")


# ----------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def called(fitted: GTM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(fitted, "m.prinfold")
    np.savetxt("t.csv", ROWS, delimiter=",", header="a,b", comments="")
    return tmp_path


COMMANDS = {
    "fit": ["fit", "t.csv", "--set", "nodes=6", "--out", "target.prinfold"],
    "explore": ["explore", "m.prinfold", "t.csv", "--out", "target.html"],
    "report": ["report", "m.prinfold", "t.csv", "--out", "target.html"],
    "transform": ["transform", "m.prinfold", "t.csv", "--out", "target.csv"],
    "project": ["project", "m.prinfold", "t.csv", "--out", "target.npy"],
}


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_leave_the_old_file(command: str, called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = called / COMMANDS[command][-1]
    assert cli.main(COMMANDS[command]) == 0
    target.write_bytes(OLD)
    before = names_in(called)
    capsys.readouterr()
    with short_disk(100):
        assert cli.main([*COMMANDS[command], "--force", "--quiet"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"prinfold {command}: error: cannot write {target.name}: ")
    assert line.endswith("; choose another place with --out")
    assert target.read_bytes() == OLD
    assert names_in(called) == before


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_first_what_cannot_be_written(
    command: str, called: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = called / COMMANDS[command][-1]
    target.symlink_to(target.name)
    assert cli.main(COMMANDS[command]) == 1
    said = capsys.readouterr()
    assert said.out == ""  # nothing was fitted, and nothing told
    (line,) = said.err.splitlines()
    assert "a link that leads in a circle; remove the link, or choose another place with --out" in line


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are Unicode")
@pytest.mark.parametrize("command", ["explore", "report", "transform"])
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_names_that_are_no_text(command: str, how: list[str], called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a model goes into the title of its page, and may hold any bytes."""
    odd = os.fsdecode(b"m\xff.prinfold")
    (called / "m.prinfold").rename(odd)
    out = os.fsdecode(b"out\xff") + Path(COMMANDS[command][-1]).suffix
    assert cli.main([command, odd, "t.csv", "--out", out, *how]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "out\ufffd" in said.out
    assert Path(out).stat().st_size > 0
    Path(out).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [0, 1.5, None, ["a"], np.zeros(2)], ids=repr)
def test_what_is_no_name_of_a_file_is_refused_by_name(path: Any) -> None:
    for ask in (atomic.check_target, load):
        with pytest.raises(UnsupportedInputError, match="the name of a file must be a text or a path, got"):
            ask(path)
