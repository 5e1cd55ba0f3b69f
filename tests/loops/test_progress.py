"""Progress: there when asked for, on a terminal or in a notebook, with whichever library is installed."""

from __future__ import annotations

import io
import re
import sys
from threading import Thread
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from prinfold import GTM, Blocks, DensityRidge, PrincipalTree, choose, compare, explore, report
from prinfold.loops import (
    Iteration,
    Meter,
    StopReason,
    Working,
    bars,
    hide_progress,
    progress,
    progress_for,
    while_working,
)
from prinfold.rows.pass_progress import report_passes_to
from prinfold.validation.failures import name_failures

DATA = np.random.default_rng(0).normal(size=(30, 3))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def eager(monkeypatch):
    """Every step is drawn, at once."""
    monkeypatch.setattr(progress, "_REDRAW_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.0)


@pytest.fixture
def alone(monkeypatch):
    """Neither rich nor tqdm is installed."""
    monkeypatch.setattr(bars, "installed", lambda library: False)


@pytest.fixture
def notebook(monkeypatch):
    """The code runs in the kernel of a notebook."""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


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


@pytest.mark.usefixtures("eager", "alone")
def test_a_bar_redraws_one_line():
    stream = Terminal()
    told(progress_for(1, "GTM", stream))
    drawn, end = stream.getvalue().split("\n")
    frames = drawn.split("\r")[1:]
    assert [frame.count("█") for frame in frames] == [0, 7, 14, 21, 28, 0, 0]
    assert all(frame.count("█") + frame.count("░") == 28 for frame in frames[:5])
    assert "4/4" in frames[4]
    assert "objective 1.3333" in frames[4]
    assert (frames[-1], end) == ("GTM: 4 iterations. It settled.\x1b[K", "")


@pytest.mark.usefixtures("alone")
def test_a_bar_is_not_drawn_more_often_than_one_sees():
    stream = Terminal()
    told(progress_for(1, "GTM", stream), n=1000)
    assert stream.getvalue().count("\r") < 50


@pytest.mark.parametrize("reason", [StopReason.CONVERGED, StopReason.INTERRUPTED])
@pytest.mark.usefixtures("eager", "alone")
def test_what_stays_is_how_training_ended(reason):
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(3, 10, None, {"objective": 1.0}))
    bar.close(str(reason))
    assert stream.getvalue().endswith(f"\rGTM: 3 iterations. {reason}\x1b[K\n")


@pytest.mark.parametrize("columns", [1, 10, 40, 200])
@pytest.mark.usefixtures("eager", "alone")
def test_a_bar_never_wraps(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(123, 1000, None, {"objective": -1.2345678}))
    assert len(stream.getvalue().removeprefix("\r").removesuffix("\x1b[K")) <= max(columns - 1, 1)


@pytest.mark.usefixtures("eager", "alone")
def test_a_bar_of_no_iterations():
    stream = Terminal()
    (bar,) = progress_for(1, "GTM", stream)
    bar(Iteration(0, 0, None, {"objective": 1.0}))
    assert "0/0" in stream.getvalue()


@pytest.mark.parametrize("library", ["rich", "tqdm"])
@pytest.mark.usefixtures("eager")
def test_the_bar_of_a_library_that_is_installed(library, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(bars, "installed", lambda name: name == library)
    stream = Terminal()
    told(progress_for(1, "GTM [1/2]", stream))
    assert "GTM [1/2] " in stream.getvalue()  # not taken for markup
    assert "2/4  objective 0.66667" in stream.getvalue()
    assert "█" not in stream.getvalue() or library == "tqdm"
    assert stream.getvalue().endswith("GTM [1/2]: 4 iterations. It settled.\x1b[K\n")


@pytest.mark.usefixtures("eager", "alone", "notebook")
def test_plain_lines_in_a_notebook_without_a_library(monkeypatch):
    monkeypatch.setattr(bars, "_LINE_SECONDS", 0.0)
    stream = io.StringIO()
    told(progress_for(1, "GTM", stream))
    lines = stream.getvalue().splitlines()
    assert lines[2] == "GTM 50 %  2/4  objective 0.66667"
    assert lines[-1] == "GTM: 4 iterations. It settled."


@pytest.mark.usefixtures("eager", "alone")
def test_a_meter_says_how_much_is_done_and_goes():
    stream = Terminal()
    with Meter("Reading a.csv", 200.0, stream) as meter:
        meter.tell(50.0)
    assert "Reading a.csv ███████░" in stream.getvalue()
    assert "25 %, about 0 s left" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_work_of_a_moment_shows_nothing(stream):
    with Working("Writing the report", stream), Meter("Reading", 2.0, stream) as meter:
        meter.tell(1.0)
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("eager")
def test_long_work_says_what_it_is_and_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(progress._Screen, "drawn", float("-inf"))
    stream = Terminal()
    with Working("Writing the report", stream) as work:
        while not work._shown:
            work._done.wait(0.001)
    assert stream.getvalue().startswith("\rWriting the report … 0 s\x1b[K")
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on which everything is drawn at once, in plain characters."""
    for name in ("_REDRAW_SECONDS", "_SILENT_SECONDS"):
        monkeypatch.setattr(progress, name, 0.0)
    monkeypatch.setattr(bars, "installed", lambda library: False)
    monkeypatch.setattr(progress._Screen, "drawn", float("-inf"))
    stream = Terminal()

    def begin():  # within the test: pytest takes standard error over when a fixture is done
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return begin


def test_work_within_work_is_named_and_the_outer_one_goes_on(terminal):
    terminal = terminal()

    def named(words):
        for _ in range(10_000):
            if f"{words} … " in terminal.getvalue():
                return
            outer._done.wait(0.001)
        pytest.fail(f"{words} was never shown")

    with Working("Making the report") as outer:
        named("Making the report")
        with Working("figure 1 of 2"):
            named("figure 1 of 2")
        terminal.seek(0)
        terminal.truncate()
        named("Making the report")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert not progress._Screen.working


def test_work_that_fails_takes_its_line_away(terminal):
    @while_working("Failing")
    def fail():
        working = progress._Screen.working[-1]
        while not working._shown:
            working._done.wait(0.001)
        raise ValueError("no")

    terminal = terminal()
    with pytest.raises(ValueError, match="no"):
        fail()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert not progress._Screen.working


def test_nothing_is_shown_where_a_program_wants_quiet(terminal):
    terminal = terminal()
    with hide_progress(), Working("Fitting"), Meter("Reading", 2.0) as meter:
        meter.tell(1.0)
    assert terminal.getvalue() == ""


SMALL = np.random.default_rng(1).normal(size=(40, 3)) * (3.0, 1.0, 0.1)
MODEL = GTM(nodes=4, basis=2, max_iter=3, tol=0)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda: choose(SMALL, {"width": (1.0, 2.0)}, model=MODEL, by="held-out", folds=2), "Fitting the candidates"),
        (lambda: compare(SMALL, ["PCA"], n_components=1, folds=2), "Comparing the methods"),
        (lambda: compare(SMALL, ["PCA"], folds=2), "Finding the dimension"),
        (lambda: PrincipalTree().fit(SMALL).support(SMALL, n_samples=2, random_state=0), "bootstrap samples"),
        (lambda: DensityRidge(bandwidth=1.0).fit(SMALL[:, :2]).bands(n_samples=2, random_state=0), "bootstrap samples"),
    ],
)
def test_what_may_take_long_has_a_bar(terminal, work, words):
    terminal = terminal()
    work()
    assert re.search(rf"{words} [█░]+ 50 %, about", terminal.getvalue())
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("make", [explore, report])
def test_pages_say_that_they_are_made(monkeypatch, make):
    shown = []
    monkeypatch.setattr(progress.Working, "__enter__", lambda self: shown.append(self.label))
    model = clone(MODEL).fit(SMALL)
    make(model, SMALL, None)
    assert shown[0] == {explore: "Making the page", report: "Making the report"}[make]
    assert ("Making the report: figure 1 of 4" in shown) == (make is report)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning", "ignore:The iteration limit")
def test_a_verb_that_takes_long_says_so_and_leaves_nothing_behind(monkeypatch):
    """A line after a moment, of the verb that was called, not of those that it calls; other threads show none."""
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.02)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    model = GTM(nodes=5, basis=3, max_iter=2, tol=0, random_state=0).fit(DATA)
    rest = type(model).transform.__wrapped__

    def slow(self, X):
        self.score(X)
        sleep(0.3)
        return rest(self, X)

    monkeypatch.setattr(GTM, "transform", name_failures(slow))
    slow.__name__ = "transform"
    terminal.truncate(0)
    model.transform(DATA)
    shown = [each.strip() for each in re.split(r"\r|\x1b\[K", terminal.getvalue().strip("\0")) if each.strip()]
    assert shown
    assert {each.partition(" ")[0] for each in shown} <= {"GTM.transform", "GTM.slow"}
    assert terminal.getvalue().endswith("\r\x1b[K")
    terminal.truncate(0)
    thread = Thread(target=model.transform, args=(DATA,))
    thread.start()
    thread.join()
    assert terminal.getvalue().strip("\0") == ""


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
    with Working("Fitting"), Meter("Reading", 1.0) as meter:
        meter.tell(1.0)


@pytest.mark.parametrize(
    ("verbose", "terminal", "expected"),
    [(0, True, 0), (False, True, 0), (1, False, 0), (1, True, 1), (True, True, 1), (2, False, 5), (2, True, 5)],
)
@pytest.mark.usefixtures("alone")
def test_through_the_gtm(monkeypatch, capfd, verbose, terminal, expected):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    GTM(nodes=4, basis=2, max_iter=3, tol=0, verbose=verbose).fit(DATA)
    assert stream.getvalue().count("\n") == expected
    assert capfd.readouterr().out == ""


@pytest.fixture
def clock(eager, alone, monkeypatch):
    """Time that goes on by a second whenever it is asked for."""
    ticks = iter(range(10_000))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr(progress._Screen, "drawn", float("-inf"))


def passes(n_passes, sizes, total=100):
    """Rows told of some passes."""
    for _ in range(n_passes):
        yield 0, total
        for size in sizes:
            yield size, total


def test_a_bar_over_passes_says_how_long_they_take(clock):
    stream = Terminal()
    with progress.PassBar("GTM", stream) as bar:
        for told_rows in passes(1, [50, 100]):
            bar.hear(*told_rows)
        first = stream.getvalue()
        assert "pass 50 %, 1 s left  a first look" in first
        listener = progress.ProgressBar("GTM", stream)
        listener(Iteration(0, 2, None, {"objective": 0.5}))
        for told_rows in passes(1, [25, 100]):
            bar.hear(*told_rows)
        listener.close("Done.")
    later = stream.getvalue()[len(first) :]
    assert "0/2" in later
    assert re.search(r"pass 25 %, \d+ s left, at most \d+ s in all", later)
    assert stream.getvalue().endswith("Done.\x1b[K\n")
    assert progress.PassBar.shown is None


def test_rows_are_counted_where_nobody_knows_how_many_there_are(clock):
    stream = Terminal()
    with progress.PassBar("GTM", stream) as bar:
        for told_rows in passes(1, [50, 70], total=None):
            bar.hear(*told_rows)
    assert "70 rows read  a first look" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.2, "3 s"), (99, "99 s"), (100, "2 min"), (5999, "100 min"), (9000, "2.5 h")]
)
def test_times_are_said_in_the_unit_that_suits_them(seconds, words):
    assert progress._in_words(seconds) == words


@pytest.mark.parametrize(
    ("make", "known"),
    [
        (lambda X: X, 90),
        (lambda X: [X[:30], X[30:]], 90),
        (lambda X: lambda: iter([X[:30], X[30:]]), None),
    ],
    ids=["array", "list", "function"],
)
def test_blocks_tell_how_far_a_pass_has_come(make, known):
    heard = []
    blocks = Blocks(make(np.zeros((90, 2))), rows=30)
    with report_passes_to(lambda n_read, total: heard.append((n_read, total))):
        for _ in range(2):
            assert len(list(blocks)) == 3
    assert heard[0] == (0, known)
    assert heard[3] == (90, known)
    assert heard[4:] == [(0, 90), (30, 90), (60, 90), (90, 90)], "after a pass it is known how many there are"
    list(blocks)
    assert len(heard) == 8, "nobody listens any more"


def test_parquet_files_know_how_many_rows_they_have(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": np.zeros(70), "b": np.ones(70)}), tmp_path / "x.parquet")
    heard = []
    with report_passes_to(lambda n_read, total: heard.append((n_read, total))):
        list(Blocks(str(tmp_path / "x.parquet"), rows=50))
    assert heard[0] == (0, 70)
