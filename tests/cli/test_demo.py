"""The demonstration, run as a newcomer runs it."""

from __future__ import annotations

import csv
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import prinfold
from prinfold import cli, datasets
from prinfold.cli import console
from prinfold.cli import demo as demo_module
from prinfold.exceptions import FoldWarning
from tests.house import run_fences

PICTURES = {"map.png", "magnification.png", "learning_curve.png"}
FILES = PICTURES | {"map.html", "report.html", "model.prinfold", "coordinates.csv", "data.csv"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Folder, output and notes of one run as a command of its own."""
    folder = tmp_path_factory.mktemp("newcomer")
    done = subprocess.run(
        [sys.executable, "-m", "prinfold", "demo", "--rows", "120", "--seed", "3", "--out", "a/b"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"},  # no line is broken
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "a" / "b", done.stdout, done.stderr


def test_the_demo_leaves_its_files(demo: tuple[Path, str, str]) -> None:
    folder, said, _ = demo
    assert {path.name for path in folder.iterdir()} == FILES
    for path in folder.iterdir():
        assert path.name in said
        assert path.stat().st_size > 1000
    for picture in folder.glob("*.png"):
        image = plt.imread(picture)
        assert image.shape[1] >= 1000
        assert image.std() > 0.01


def test_the_pages_have_the_names_of_columns_and_classes(demo: tuple[Path, str, str]) -> None:
    folder, said, errors = demo
    data = datasets.make_pipe_flow(120, rng=3)
    for name in ("map.html", "report.html"):
        page = (folder / name).read_text(encoding="utf-8")
        assert [each for each in (*data.feature_names, *data.class_names) if each not in page] == []
    assert f"open {Path('a/b/map.html')} " in said
    assert errors == ""


def test_the_demo_says_what_it_found(demo: tuple[Path, str, str]) -> None:
    folder, said, errors = demo
    model, data = prinfold.load(folder / "model.prinfold"), datasets.make_pipe_flow(120, rng=3)
    for words in (
        "120 × 12",
        f"{model.score(data.table):.3f}",
        f"{model.score(datasets.make_pipe_flow(120, rng=4).table):.3f}",
        f"{model.projection_error(data.table):.5f}",
        str(model.n_iter_),
        model.stop_reason_.plain,
    ):
        assert words in said
    assert "Traceback" not in errors
    assert "Warning" not in errors
    table = said.partition("\n\n")[2].partition("\n\n")[0].splitlines()
    assert len(table) == 9
    # Aligned: two blanks and then the value, in the same column of every line.
    edge = len("  log-likelihood per row  ")
    assert all(line[edge - 2 : edge] == "  " and line[edge] != " " for line in table)


def test_the_table_of_coordinates_is_the_model(demo: tuple[Path, str, str]) -> None:
    folder, _, _ = demo
    model, data = prinfold.load(folder / "model.prinfold"), datasets.make_pipe_flow(120, rng=3)
    with (folder / "coordinates.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [int(line["row"]) for line in table] == list(range(120))

    def column(*names: str) -> np.ndarray:
        return np.array([[float(line[name]) for name in names] for line in table])

    np.testing.assert_allclose(column("latent_1", "latent_2"), model.transform(data.table), atol=1e-8)
    np.testing.assert_allclose(column("mode_1", "mode_2"), model.posterior_mode(data.table))
    np.testing.assert_allclose(column("mode_distance")[:, 0], model.mode_distance(data.table), atol=1e-7)
    np.testing.assert_allclose(column("log_likelihood")[:, 0], model.score_samples(data.table), rtol=1e-7)
    assert data.labels is not None
    assert [line["class"] for line in table] == [data.class_names[label] for label in data.labels]


def test_what_to_try_next_works(demo: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, said, _ = demo
    monkeypatch.chdir(folder.parents[1])
    _, _, code = said.partition("\n  and in ")[2].partition(":\n")
    page = tmp_path / "next.md"
    page.write_text("```python\n" + "\n".join(line[4:] for line in code.splitlines()) + "\n```\n", encoding="utf-8")
    assert run_fences(page)["model"].n_features_in_ == 12
    assert plt.imread("new.png").std() > 0.01


def test_the_command_to_try_next_can_be_typed(demo: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first words are those that called the demonstration itself, as a process; the others are typed here."""
    folder, said, _ = demo
    here = folder.parents[1]
    monkeypatch.chdir(here)
    (line,) = [line.strip() for line in said.splitlines() if "--rows 5000" in line]
    called, _, words = line.replace("--rows 5000", "--rows 30").replace("larger", "smaller").partition(" demo ")
    first = shlex.split(called)[0]
    assert Path(shutil.which(first) or first).resolve() == Path(sys.executable).resolve()
    assert shlex.split(called)[1:] == ["-m", "prinfold"]
    assert cli.main(["demo", *shlex.split(words)]) == 0
    assert {path.name for path in (here / "smaller").iterdir()} == FILES


def test_the_rows_can_be_fitted(demo: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, said, _ = demo
    monkeypatch.chdir(folder.parents[1])
    (line,) = [line.strip() for line in said.splitlines() if "--label class" in line]
    words = shlex.split(line)
    out = folder.parents[1] / "again.prinfold"
    assert cli.main([*words[words.index("fit") :], "--out", str(out), "--set", "max_iter=3", "--quiet"]) == 0
    assert list(prinfold.load(out).feature_names_in_) == list(datasets.make_pipe_flow(10, rng=0).feature_names)


@pytest.mark.parametrize(
    ("called", "on_path", "said"),
    [
        ("bin/prinfold", False, "bin/prinfold"),
        ("bin/prinfold", True, "prinfold"),
        ("a folder/prinfold", False, "'a folder/prinfold'"),
        ("src/prinfold/__main__.py", False, "bin/python -m prinfold"),
    ],
)
def test_commands_are_written_as_they_were_called(
    called: str, on_path: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / "bin" / name) if on_path else None)
    assert console.program_call() == said


@pytest.mark.parametrize("terminal", [True, False])
def test_the_reason_for_stopping_is_said_once(
    terminal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(demo_module, "save_picture", lambda *_: None)  # which others look at
    assert cli.main(["demo", "--rows", "60", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    reason = prinfold.load(tmp_path / "model.prinfold").stop_reason_
    assert (said.out + said.err).count(str(reason) if terminal else reason.plain) == 1


def test_in_process_the_demo_can_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_figures = plt.get_fignums()
    for _ in range(2):
        assert cli.main(["demo", "--rows", "60", "--out", str(tmp_path / "here"), "--force"]) == 0
    assert {path.name for path in (tmp_path / "here").iterdir()} == FILES
    assert plt.get_fignums() == open_figures
    assert "Written to" in capsys.readouterr().out


def test_the_demo_writes_over_nothing_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "data.csv"
    mine.write_text("my own")
    assert cli.main(["demo", "--rows", "60", "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"prinfold demo: error: {mine} is there already; --force writes over it, --out names another folder"
    assert mine.read_text() == "my own"
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
    (tmp_path / "map.png").write_text("")
    assert cli.main(["demo", "--rows", "60", "--out", str(tmp_path)]) == 2
    assert "map.png and 1 more of its files are there already; --force" in capsys.readouterr().err


def test_make_demo_can_be_repeated() -> None:
    """The command of the Makefile is one that writes over what it left the time before."""
    makefile = Path(prinfold.__file__).parents[2] / "Makefile"
    if not makefile.exists():
        pytest.skip("no Makefile beside an installed package")
    (line,) = [line for line in makefile.read_text().splitlines() if line.endswith(("prinfold demo", "demo --force"))]
    assert line.split()[1:] == ["demo", "--force"]


def test_warnings_become_notes_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = prinfold.GTM.fit

    def complaining(self: prinfold.GTM, X: np.ndarray) -> prinfold.GTM:
        for _ in range(2):
            warnings.warn("the surface is\n   folded", FoldWarning, stacklevel=2)
        return fit(self, X)

    monkeypatch.setattr(prinfold.GTM, "fit", complaining)
    monkeypatch.setattr(demo_module, "save_picture", lambda *_: None)
    assert cli.main(["demo", "--rows", "40", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines().count("note: the surface is folded") == 1
    assert "FoldWarning" not in said.out + said.err


# --------------------------------------------------------------------------------------------------- errors


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"prinfold {prinfold.__version__}\n"


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in cli.COMMANDS)


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_in_the_way_is_one_line(tmp_path: Path, inside: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "taken" / inside)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("prinfold demo: error: cannot write")
    assert line.endswith("choose another place with --out")


def test_an_unwritable_folder_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # a superuser may write anywhere
    assert cli.main(["demo", "--out", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "the folder is not writable; choose another place with --out" in line


def test_missing_matplotlib_is_said_before_the_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "prinfold.plot.style", raising=False)
    monkeypatch.delattr(prinfold.plot, "style", raising=False)
    assert cli.main(["demo", "--out", str(tmp_path / "new")]) == 1
    said = capsys.readouterr()
    missing = 'drawing needs matplotlib, which is not installed; get it with: pip install "prinfold[plot]"'
    assert said.err.splitlines() == [f"prinfold demo: error: {missing}"]
    assert said.out == ""
    assert not (tmp_path / "new").exists()


def test_an_interrupt_is_not_a_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(out: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "_make_folder", interrupted)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "prinfold demo: interrupted\n"
