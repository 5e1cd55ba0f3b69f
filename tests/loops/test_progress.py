"""The progress line: there when asked for, on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from prinfold import GTM
from prinfold.loops import Iteration, StopReason, progress_for

DATA = np.random.default_rng(0).normal(size=(30, 3))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(listeners, n=4):
    for i in range(n + 1):
        assert [listen(Iteration(i, n, None, {"objective": i / 3, "noise": 0.5})) for listen in listeners] in (
            [],
            [False],
        )
    for listen in listeners:
        listen.close("It settled.")


@pytest.mark.parametrize(("verbose", "stream"), [(0, Terminal()), (0, io.StringIO()), (1, io.StringIO())])
def test_silent_unless_asked_and_on_a_terminal(verbose, stream):
    told(progress_for(verbose, "GTM", stream))
    assert stream.getvalue() == ""


def test_a_bar_redraws_one_line():
    stream = Terminal()
    told(progress_for(1, "GTM", stream))
    drawn, reason, end = stream.getvalue().split("\n")
    frames = drawn.split("\r")[1:]
    assert len(frames) == 5
    assert [frame.count("█") for frame in frames] == [0, 7, 14, 21, 28]
    assert all(frame.count("█") + frame.count("░") == 28 for frame in frames)
    assert "4/4" in frames[-1]
    assert "objective 1.3333" in frames[-1]
    assert (reason, end) == ("GTM It settled.", "")


@pytest.mark.parametrize(("reason", "full"), [(StopReason.CONVERGED, True), (StopReason.INTERRUPTED, False)])
def test_a_bar_that_settled_early_looks_finished(reason, full):
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(3, 10, None, {"objective": 1.0}))
    bar.close(str(reason))
    last = stream.getvalue().split("\n")[0].split("\r")[-1]
    assert ("░" not in last) == full
    assert ("3 iterations" if full else "3/10") in last
    assert stream.getvalue().endswith(f"\nGTM {reason}\n")


@pytest.mark.parametrize("columns", [1, 10, 40, 200])
def test_a_bar_never_wraps(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(123, 1000, None, {"objective": -1.2345678}))
    assert len(stream.getvalue().removeprefix("\r").removesuffix("\x1b[K")) <= max(columns - 1, 1)


def test_a_bar_of_no_iterations():
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(0, 0, None, {"objective": 1.0}))
    assert "0/0" in stream.getvalue()


def test_a_line_for_each_iteration_wherever_it_goes():
    stream = io.StringIO()
    told(progress_for(2, "GTM", stream))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6
    assert lines[2] == "GTM 2/4  objective 0.666667  noise 0.5"
    assert lines[-1] == "GTM It settled."


def test_without_a_console_there_is_nothing_to_write_to(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert progress_for(1, "GTM") == []
    assert progress_for(2, "GTM") == []


@pytest.mark.parametrize(
    ("verbose", "terminal", "expected"),
    [(0, True, 0), (False, True, 0), (1, False, 0), (1, True, 2), (True, True, 2), (2, False, 5), (2, True, 5)],
)
def test_through_the_gtm(monkeypatch, capfd, verbose, terminal, expected):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    GTM(nodes=4, basis=2, max_iter=3, tol=0, verbose=verbose).fit(DATA)
    assert stream.getvalue().count("\n") == expected
    assert capfd.readouterr().out == ""
