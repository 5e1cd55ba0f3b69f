"""``prinfold demo``: a map of simulated data, and a folder to look at."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold.cli.command import Command, whole_number
from prinfold.cli.console import align, as_options, program_call, short_path
from prinfold.cli.tables.writing import STANDARD, check_folder, write_table
from prinfold.cli.usage import WrongCallError
from prinfold.files.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prinfold.datasets import Dataset
    from prinfold.gtm.estimator import GTM

_FEWEST_ROWS = 10
_DPI = 200
_FILES = {
    "map.html": "the map as a page to move over, coloured by kind of flow",
    "report.html": "what was fitted, how well, and what to be careful about",
    "map.png": "the map as a picture, over the magnification factor",
    "magnification.png": "the magnification factor: how far, and which way, the surface is stretched",
    "learning_curve.png": "how training went",
    "data.csv": "the table itself, to try other commands on",
    "model.prinfold": "the model, for prinfold.load",
    "coordinates.csv": "latent coordinates, class and log-likelihood of each row",
}
"""What is written, and what is in it."""


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("prinfold-demo"), help="folder to write (%(default)s)")
    parser.add_argument("--force", "-f", action="store_true", help="overwrite the files of an earlier run")
    parser.add_argument("--rows", type=whole_number(_FEWEST_ROWS), default=1000, help="rows to simulate (%(default)s)")
    parser.add_argument("--seed", type=whole_number(0), default=0, help="seed of the simulation (%(default)s)")


def _demo(options: argparse.Namespace) -> int:
    """Fit a GTM to simulated pipe flow and leave pages, pictures, model and coordinates behind."""
    from prinfold.plot import style  # noqa: F401  (says at once, and not after the fit, that matplotlib is missing)

    out: Path = options.out
    if out == STANDARD:
        raise WrongCallError("--out - is standard output, but the demo writes a folder; name one")
    _make_folder(out)
    check_folder(out, list(_FILES), "--out", force=options.force)

    from prinfold import GTM, datasets
    from prinfold.loops import Working

    data = datasets.make_pipe_flow(options.rows, rng=options.seed)
    fresh = datasets.make_pipe_flow(options.rows, rng=options.seed + 1)
    print(f"Fitting a GTM to {data.description}: {data.X.shape[0]} rows × {data.X.shape[1]} columns.")
    with warnings.catch_warnings(record=True) as caught, Working("Fitting the GTM"):
        warnings.simplefilter("always")
        clock = perf_counter()
        model = GTM(random_state=options.seed, verbose=1).fit(data.table)
        seconds = perf_counter() - clock
    print()
    print(align(_findings(model, data, fresh, seconds)))
    for note in dict.fromkeys(as_options(each.message) for each in caught):
        print(f"\nnote: {note}")
    with Working("Making the pages and pictures"):
        written = _write_demo(out, model, data)
    print(f"\nWritten to {out}{os.sep}")
    print(align(written))
    print(f"\nopen {shlex.quote(str(out / 'map.html'))} in a browser and move over the map")
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
        ("log-likelihood per row", f"{model.score(data.table):.3f}"),
        ("  on a second sample", f"{model.score(fresh.table):.3f}"),
        ("projection error", f"{model.projection_error(data.table):.5f}  (mean squared distance to the surface)"),
        ("  on a second sample", f"{model.projection_error(fresh.table):.5f}"),
        ("noise", f"{model.noise_variance_**0.5:.4f}  (standard deviation)"),
        ("time to fit", f"{seconds:.2f} s"),
        ("iterations", str(model.n_iter_)),
        # On a terminal the progress bar has said so.
        *([] if sys.stderr is not None and sys.stderr.isatty() else [("training", model.stop_reason_.plain)]),
    ]


def _write_demo(out: Path, model: GTM, data: Dataset) -> list[tuple[str, str]]:
    """Write every file of the demonstration; names with what is in them."""
    from prinfold import explore, plot, report

    _write_data(out / "data.csv", data)
    _write_coordinates(out / "coordinates.csv", model, data)
    model.save(out / "model.prinfold")
    title = "Pipe flow, seen by twelve gamma beams"
    explore(model, data.table, out / "map.html", labels=data.names, title=title)
    report(model, data.table, out / "report.html", labels=data.names, title=title)
    drawn = {
        "map.png": (title, lambda ax: plot.latent_map(model, data.table, labels=data.names, ax=ax)),
        "magnification.png": (
            "Where the surface is stretched, and which way",
            lambda ax: plot.magnification(model, ax=ax),
        ),
        "learning_curve.png": ("", lambda ax: plot.learning_curve(model, ax=ax)),
    }
    for name, (heading, draw) in drawn.items():
        save_picture(out / name, draw, (6.4, 5.4 if heading else 3.6), heading)
    return list(_FILES.items())


def _write_data(path: Path, data: Dataset) -> None:
    columns: dict[str, Any] = dict(zip(data.feature_names, data.X.T, strict=True))
    if data.names is not None:
        columns["class"] = np.asarray(data.names, dtype=object)
    write_table(path, columns)


def _write_coordinates(path: Path, model: GTM, data: Dataset) -> None:
    columns: dict[str, Any] = {"row": np.arange(len(data.X))}
    columns |= {f"latent_{i + 1}": z for i, z in enumerate(model.transform(data.table).T)}
    columns |= {f"mode_{i + 1}": z for i, z in enumerate(model.posterior_mode(data.table).T)}
    columns["mode_distance"] = model.mode_distance(data.table)
    columns["log_likelihood"] = model.score_samples(data.table)
    if data.names is not None:
        columns["class"] = np.asarray(data.names, dtype=object)
    write_table(path, columns)


def save_picture(path: Path, draw: Callable[[Axes], Any], size: tuple[float, float], heading: str = "") -> None:
    """Draw on a figure of our own, so that no window opens whatever the backend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from prinfold.plot import style

    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure.subplots())
    if heading:
        style.heading_over(figure, heading)
    with whole_file(path) as passing:
        figure.savefig(passing)


def _next_steps(out: Path) -> str:
    file = (out / "model.prinfold").as_posix()
    return f"""
Try next
  {program_call()} demo --rows 5000 --seed 1 --out larger
  {program_call()} fit {shlex.quote(str(out / "data.csv"))} --label class
  and in {short_path(sys.executable)}:
    from prinfold import datasets, load, plot
    model = load({file!r})
    new = datasets.make_pipe_flow(200, rng=7)
    ax = plot.latent_map(model, new.table, values=new.fractions[:, 2], value_name="water")
    ax.figure.savefig("new.png")"""


DEMO = Command(
    "fit a map of simulated pipe-flow data and leave a folder to look at",
    _demo_arguments,
    _demo,
    "  prinfold demo\n  prinfold demo --rows 5000 --out larger",
)
