"""The command as a process of its own: exit codes, streams, and no traceback whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import QUICK

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
ENVIRONMENT.pop("PRINFOLD_TRACEBACK", None)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "prinfold", *words]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, encoding="utf-8", check=False)


def test_a_fit_writes_its_model_and_one_object(table: Path) -> None:
    fitted = run(table.parent, "fit", table.name, "--json", *QUICK)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert json.loads(fitted.stdout)["rows"] == 40
    assert table.with_name("data.prinfold").stat().st_size > 1000


def test_an_error_is_one_line_and_no_traceback(folder: Path) -> None:
    (folder / "empty.csv").write_bytes(b"")
    done = run(folder, "fit", "empty.csv")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line == "prinfold fit: error: empty.csv is empty: there is no row in it"


def test_a_reader_that_has_had_enough_is_no_error(table: Path) -> None:
    """As ``prinfold info data.csv | head -1`` would be: the pipe is closed before it is read."""
    command = [sys.executable, "-m", "prinfold", "info", table.name]
    process = subprocess.Popen(
        command, cwd=table.parent, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert said == b""


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")
def test_control_c_ends_at_once(table: Path) -> None:
    words = ["fit", table.name, "--set", "max_iter=100000000", "--set", "tol=0", "--set", "nodes=20"]
    command = [sys.executable, "-m", "prinfold", *words]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    try:
        process = subprocess.Popen(
            command, cwd=table.parent, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"Fitting")
    time.sleep(1)  # however far it is by then
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes streams so")
def test_standard_output_that_is_closed_is_no_error(table: Path) -> None:
    """As ``prinfold info data.csv >&-`` would have it."""
    command = f'"{sys.executable}" -m prinfold info {table.name} >&-'
    done = subprocess.run(command, cwd=table.parent, env=ENVIRONMENT, stderr=subprocess.PIPE, shell=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes streams so")
@pytest.mark.parametrize("words", ["transform data.prinfold data.csv --out -", "info data.csv --json"])
def test_output_that_was_asked_for_does_not_vanish_in_a_closed_stream(table: Path, words: str) -> None:
    run(table.parent, "fit", table.name, *QUICK)
    done = in_shell(table.parent, f"{words} >&-")
    assert done.returncode == 1
    assert "error: cannot write to standard output: it is closed; open it, or name a file with --out\n" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", ["transform data.prinfold data.csv --out -", "info data.csv", "info data.csv --json"])
def test_a_full_device_behind_standard_output_is_named(table: Path, words: str) -> None:
    run(table.parent, "fit", table.name, *QUICK)
    done = in_shell(table.parent, f"{words} >/dev/full")
    command = words.partition(" ")[0]
    wanted = f"prinfold {command}: error: cannot write to standard output: no space left on the device\n"
    assert (done.returncode, done.stderr) == (1, wanted)


def in_shell(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -m prinfold {words}'
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, encoding="utf-8", shell=True, check=False
    )


@pytest.mark.parametrize("cells", [["inf"], ["0e400", "1e400", "1"], ["inf", "-inf", "3"], ["1e308", "-1e308", "3"]])
def test_infinite_and_huge_cells_are_told_of_in_one_line(folder: Path, cells: list[str]) -> None:
    lines = [f"{i * 0.37 % 1},{i * 0.61 % 1},{cells[i % len(cells)]}" for i in range(40)]
    (folder / "odd.csv").write_text("\n".join(["x,y,z", *lines]), encoding="utf-8")
    done = run(folder, "fit", "odd.csv")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert re.match("prinfold fit: error: column '?z'? (of odd.csv is infinite|holds values up to 1e.308)", done.stderr)
    assert run(folder, "info", "odd.csv").stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="making links takes a privilege")
def test_a_link_that_leads_in_a_circle_is_named(folder: Path) -> None:
    (folder / "one.csv").symlink_to("other.csv")
    (folder / "other.csv").symlink_to("one.csv")
    done = run(folder, "info", "one.csv")
    assert done.returncode == 1
    assert "one.csv is a link to other.csv, which leads to no file; correct the link" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="locales of POSIX")
def test_a_locale_without_our_letters_is_no_error(table: Path) -> None:
    plain = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("LC_", "LANG", "PYTHONIO"))}
    poor = plain | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, "-m", "prinfold", "info", table.name]
    done = subprocess.run(command, cwd=table.parent, env=poor, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xd7" in done.stdout, "rows × columns"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    for command in ("info", "fit"):
        done = run(folder, command, "pipe.csv")
        assert done.returncode == 1
        assert "pipe.csv is a pipe or a device, and tables are read more than once" in done.stderr
