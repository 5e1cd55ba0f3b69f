"""The ``prinfold`` command: a table of subcommands, each with its arguments and what it runs."""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from prinfold.exceptions import PrinfoldError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prinfold.datasets import Dataset
    from prinfold.estimators.gtm import GTM

_FEWEST_ROWS = 10
_DPI = 200


@dataclass(frozen=True)
class Command:
    """A subcommand: what it is for, its arguments, and the function that runs it and gives the exit code."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0 for success, 1 for an error, 2 for a wrong call, 130 for Ctrl-C."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return COMMANDS[options.command].run(options)
    except (PrinfoldError, OSError) as error:
        print(f"prinfold {options.command}: {_one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"prinfold {options.command}: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    from prinfold import __version__

    parser = argparse.ArgumentParser(
        prog="prinfold", description="Principal curves, surfaces and manifolds: the smooth surface through your data."
    )
    parser.add_argument("--version", action="version", version=f"prinfold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.summary, description=command.summary))
    return parser


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot write {error.filename}: {error.strerror}; choose another folder with --out"
    return " ".join(str(error).split())


# ----------------------------------------------------------------------------------------------------- demo


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("prinfold-demo"), help="folder to write (%(default)s)")
    parser.add_argument("--rows", type=_rows, default=1000, help="rows to simulate (%(default)s)")
    parser.add_argument("--seed", type=_seed, default=0, help="seed of the simulation (%(default)s)")


def _rows(word: str) -> int:
    if not word.isdecimal() or int(word) < _FEWEST_ROWS:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {_FEWEST_ROWS}, got {word!r}")
    return int(word)


def _seed(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more, got {word!r}")
    return int(word)


def _demo(options: argparse.Namespace) -> int:
    """Fit a GTM to simulated pipe flow and leave pictures, model and coordinates behind."""
    from prinfold.plot import ink  # noqa: F401  (says at once, and not after the fit, that matplotlib is missing)

    out: Path = options.out
    _make_folder(out)

    from prinfold import GTM, datasets

    data = datasets.make_pipe_flow(options.rows, rng=options.seed)
    fresh = datasets.make_pipe_flow(options.rows, rng=options.seed + 1)
    print(f"Fitting a GTM to {data.description}: {data.X.shape[0]} rows × {data.X.shape[1]} columns.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clock = perf_counter()
        model = GTM(random_state=options.seed, verbose=1).fit(data.X)
        seconds = perf_counter() - clock
    print()
    print(_aligned(_findings(model, data, fresh, seconds)))
    for note in dict.fromkeys(_one_line_warning(each) for each in caught):
        print(f"\nnote: {note}")
    written = _write_demo(out, model, data)
    print(f"\nWritten to {out}{os.sep}")
    print(_aligned(written))
    print(_next_steps(out))
    return 0


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(20, "it is a file, not a folder", str(out))
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK | os.X_OK):
        raise PermissionError(13, "the folder is not writable", str(out))


def _findings(model: GTM, data: Dataset, fresh: Dataset, seconds: float) -> list[tuple[str, str]]:
    return [
        ("rows × columns", f"{data.X.shape[0]} × {data.X.shape[1]}"),
        ("log-likelihood per row", f"{model.score(data.X):.3f}"),
        ("  on a second sample", f"{model.score(fresh.X):.3f}"),
        ("projection error", f"{model.projection_error(data.X):.5f}  (mean squared distance to the surface)"),
        ("  on a second sample", f"{model.projection_error(fresh.X):.5f}"),
        ("noise", f"{model.noise_variance_**0.5:.4f}  (standard deviation)"),
        ("time to fit", f"{seconds:.2f} s"),
        ("iterations", str(model.n_iter_)),
        # On a terminal the progress bar has said so.
        *([] if sys.stderr is not None and sys.stderr.isatty() else [("stopped", str(model.stop_reason_))]),
    ]


def _write_demo(out: Path, model: GTM, data: Dataset) -> list[tuple[str, str]]:
    """Write every file of the demonstration; names with what is in them."""
    from prinfold import plot

    _write_coordinates(out / "coordinates.csv", model, data)
    model.save(out / "model.prinfold")
    _save_picture(out / "map.png", lambda ax: plot.latent_map(model, data.X, labels=data.names, ax=ax), (6.4, 5.4))
    _save_picture(out / "stretch.png", lambda ax: plot.magnification(model, ax=ax), (6.4, 5.2))
    _save_picture(out / "learning_curve.png", lambda ax: plot.learning_curve(model, ax=ax), (6.4, 3.6))
    return [
        ("map.png", "the rows on the surface, by kind of flow, over the magnification factor"),
        ("stretch.png", "how far, and which way, the surface is stretched"),
        ("learning_curve.png", "the way there"),
        ("model.prinfold", "the model, for prinfold.load"),
        ("coordinates.csv", "latent coordinates, class and log-likelihood of each row"),
    ]


def _write_coordinates(path: Path, model: GTM, data: Dataset) -> None:
    columns: dict[str, Any] = {"row": range(len(data.X))}
    columns |= {f"latent_{i + 1}": z for i, z in enumerate(model.transform(data.X).T.tolist())}
    columns |= {f"mode_{i + 1}": z for i, z in enumerate(model.posterior_mode(data.X).T.tolist())}
    columns["mode_distance"] = model.mode_distance(data.X).tolist()
    columns["log_likelihood"] = model.score_samples(data.X).tolist()
    if data.names is not None:
        columns["class"] = data.names.tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _save_picture(path: Path, draw: Callable[[Axes], Any], size: tuple[float, float]) -> None:
    """Draw on a figure of our own, so that no window opens whatever the backend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure.subplots())
    figure.savefig(path)


def _next_steps(out: Path) -> str:
    file = (out / "model.prinfold").as_posix()
    return f"""
Try next
  {_as_called()} demo --rows 5000 --seed 1 --out larger
  and in {_short_path(sys.executable)}:
    from prinfold import datasets, load, plot
    model = load({file!r})
    new = datasets.make_pipe_flow(200, rng=7)
    ax = plot.latent_map(model, new.X, values=new.fractions[:, 2], value_name="water")
    ax.figure.savefig("new.png")
    ax = plot.posterior(model, new.X[:1])  # where one new row may lie, and how surely
    ax.figure.savefig("one.png")"""


def _as_called() -> str:
    """The words that call this program from where the user is."""
    called = Path(sys.argv[0])
    if called.stem == "prinfold":
        return _short_path(sys.argv[0])
    return f"{_short_path(sys.executable)} -m prinfold"


def _short_path(program: str) -> str:
    """A program as one may type it: its name where the shell would find it, else its path from here."""
    path = Path(program).absolute()
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path:
        return shlex.quote(path.name)
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _one_line_warning(caught: warnings.WarningMessage) -> str:
    return " ".join(str(caught.message).split())


def _aligned(lines: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"  {name:<{width}}  {words}" for name, words in lines)


COMMANDS: dict[str, Command] = {
    "demo": Command("fit a map of simulated pipe-flow data and leave a folder to look at", _demo_arguments, _demo),
}
"""Every subcommand by name; a new one is a line here."""


if __name__ == "__main__":
    sys.exit(main())
