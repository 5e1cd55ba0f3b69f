"""Files written whole or not at all: a temporary file beside the target takes its place in one step.

Every file that prinfold writes goes through here: models, pages, figures, tables. Until the last step the old file is
untouched, so that a full disk, a crash or a name that no text can hold never costs what was there before.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from prinfold.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NoPermissionError,
    NoSuchFolderError,
    NotWrittenError,
    TargetIsFolderError,
    UnsupportedInputError,
    shown,
)

_locks: Any = None  # Windows has none of this kind, and there age alone tells what was left behind
with suppress(ImportError):
    _locks = import_module("fcntl")

_MOST_LINKS = 40
"""Links in a row that are followed, as many as Linux does."""

_TEMPORARY_NAME = re.compile(r"\.prinfold-[0-9a-f]{16}(\.\w{1,16})?")
"""Names of temporary files: short, so that there is room for one beside a target of the longest name."""

_YOUNGEST_STALE, _OLDEST_LIVING = 60.0, 86_400.0
"""Ages in seconds: temporary files younger than the first are kept, and where there are no locks those older than the
second are deleted."""

_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
"""Error numbers of file systems that cannot flush a file to the disk."""

_SURROGATE = re.compile("[\ud800-\udfff]")

_CONTEXT_CHARACTERS = 20
"""Characters shown on either side of one that cannot be written."""


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file, or leave what was there."""
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a file as UTF-8, or leave what was there; line ends stay as they are."""
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file to write to; it takes the place of the target when the block has ended well.

    Links are followed, and stay links. Pipes and devices are written to directly: there is nothing to lose in them.

    Parameters
    ----------
    path : str or path
        The target. It keeps its permissions where it is there already.

    Yields
    ------
    Path
        An empty file in the folder of the target, whose name ends as that of ``path`` does, because libraries go by it.
    """
    asked, target = as_path(path), check_target(path)
    with encodable(str(asked)):
        try:
            if _is_special(target):
                yield asked
                return
            _remove_leftovers(target.parent)
            with _replacement(target, asked.suffix) as temporary:
                yield temporary
        except OSError as error:
            if not _concerns(error, target):
                raise
            raise _not_written_error(error, asked) from None  # not with the name of our temporary file


def as_path(path: Any) -> Path:
    """A path of a file; an error where it is no such thing."""
    try:
        name = os.fsdecode(path)
    except TypeError as error:
        raise UnsupportedInputError(f"the name of a file must be a text or a path, got {shown(path)}") from error
    try:
        if b"\0" in os.fsencode(name):
            raise InvalidParameterError(f"{name!r} cannot be the name of a file: it holds a null character")
    except UnicodeEncodeError as error:
        raise InvalidParameterError(f"{name!a} cannot be the name of a file: {error}") from None
    return Path(name)


def check_target(path: str | os.PathLike[str], example: str = "result") -> Path:
    """The file at the end of all links; an error, before any work is done, where it could not be written.

    Parameters
    ----------
    path : str or path
        The target.
    example : str, default="result"
        Name of a file to propose where the target is a folder.
    """
    asked = as_path(path)
    try:
        target = _resolve_links(asked)
        if target.is_dir():
            raise TargetIsFolderError(f"{asked} is a folder; name a file in it, such as {asked / example}")
        if _is_special(target):
            return target
        if not target.parent.is_dir():
            raise NoSuchFolderError(f"there is no folder {target.parent} to write {target.name} in; make it first")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise NoPermissionError(errno.EACCES, f"the folder {target.parent} is not writable", str(asked))
        if target.exists() and not os.access(target, os.W_OK):
            raise NoPermissionError(errno.EACCES, "it is there already, and read-only", str(asked))
    except NotWrittenError:
        raise
    except OSError as error:
        raise _not_written_error(error, asked) from None
    return target


def readable(text: str) -> str:
    """Text with U+FFFD in the place of every lone surrogate, which is half of a character and fits into no file."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


@contextmanager
def encodable(target: str) -> Iterator[None]:
    """Turn errors of encoding into errors that show the character and the text around it."""
    try:
        yield
    except UnicodeEncodeError as error:
        text, at = error.object, error.start
        around = text[max(at - _CONTEXT_CHARACTERS, 0) : error.end + _CONTEXT_CHARACTERS]
        raise InvalidDataError(
            f"cannot write {target}: {around!a} holds {text[at]!a}, which {error.encoding} text cannot hold; "
            "replace it in the name or the cell that it stands in"
        ) from None


# ------------------------------------------------------------------------------------------- the target


def _resolve_links(asked: Path) -> Path:
    """The end of a chain of links; ``/dev/stdout`` and its like are ends, whatever they stand for just now."""
    path = asked
    for _ in range(_MOST_LINKS):
        try:
            is_link = stat.S_ISLNK(path.lstat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return path
        if not is_link or _is_stream(path):
            return path
        path = path.parent / path.readlink()
    raise NotWrittenError(errno.ELOOP, "it is a link that leads in a circle", str(asked))


def _is_stream(path: Path) -> bool:
    """Whether a name stands for something that a process has open."""
    return path.parent in {Path("/dev"), Path("/dev/fd")} or path.parts[:2] == ("/", "proc")


def _is_special(target: Path) -> bool:
    """Whether there is something that is no plain file: a pipe, a device, an open stream."""
    return _is_stream(target) or (target.exists() and not target.is_file())


def _concerns(error: OSError, target: Path) -> bool:
    """Whether an error concerns the target, and not some other file or a pipe whose reader has gone."""
    if isinstance(error, BrokenPipeError | NotWrittenError):
        return False
    if error.filename is None:
        return True
    named = Path(os.fsdecode(error.filename))
    return named == target or (named.parent == target.parent and _TEMPORARY_NAME.fullmatch(named.name) is not None)


def _not_written_error(error: OSError, asked: Path) -> NotWrittenError:
    """An error about the file that was asked for, in place of one about a temporary file."""
    kind = NoPermissionError if isinstance(error, PermissionError) else NotWrittenError
    # numpy says how much was written, and not why.
    words = error.strerror or f"only a part could be written ({error})"
    return kind(error.errno or errno.EIO, words, str(asked))


# ------------------------------------------------------------------------------------------- the temporary file


@contextmanager
def _replacement(target: Path, suffix: str) -> Iterator[Path]:
    """An empty file beside the target that is renamed to it in the end, or removed where anything went wrong."""
    ending = suffix if re.fullmatch(r"\.\w{1,16}", suffix, re.ASCII) else ""
    temporary = target.with_name(f".prinfold-{secrets.token_hex(8)}{ending}")
    # Not a file from tempfile: those only their owner may read, and the target would inherit that.
    held = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            _lock(held)
            _inherit(held, temporary, target)
            yield temporary
            _sync(held)
            os.utime(temporary)  # young, so that nobody sweeps it between the next two lines
        finally:
            os.close(held)  # Windows renames and removes only what is closed
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _inherit(held: int, temporary: Path, target: Path) -> None:
    """Owner, group and permissions of the file that is there, as far as we may; a new file has those of any other."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "fchown"):
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError):
                os.fchown(held, owner, group)
    with suppress(OSError):  # some file systems have no permissions
        temporary.chmod(old.st_mode & 0o777)


def _sync(held: int) -> None:
    """Wait until a file has reached the disk; else a crash after the renaming could leave an empty one."""
    try:
        os.fsync(held)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    """Wait until the new name has reached the disk, where the system lets us."""
    if os.name == "nt":
        return
    with suppress(OSError):
        held = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)


# ------------------------------------------------------------------------------------------- what was left behind


def _lock(held: int) -> bool | None:
    """Take the lock that a writer holds as long as it lives; whether we got it, or None where there are no locks."""
    if _locks is None:
        return None
    try:
        _locks.flock(held, _locks.LOCK_EX | _locks.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files that were left behind by writers that were killed, and none that is being written."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_stale(entry)


def _remove_stale(entry: os.DirEntry[str]) -> None:
    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
    if age < _YOUNGEST_STALE:
        return
    held = os.open(entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        locked = _lock(held)
    finally:
        os.close(held)
    if locked or (locked is None and age > _OLDEST_LIVING):
        Path(entry.path).unlink(missing_ok=True)
