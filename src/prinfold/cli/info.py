"""``prinfold info``: what is in a model or a table, and without either what this installation can do."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from prinfold.cli.command import Command, output_arguments, table_arguments
from prinfold.cli.console import Console, align, as_options
from prinfold.cli.methods import aliases, changed_settings, methods
from prinfold.cli.models import StoredSurface, is_surface, load_model
from prinfold.cli.planning import read, scaling_for
from prinfold.cli.tables.columns import choose_columns
from prinfold.cli.tables.reading import FileTable
from prinfold.cli.tables.rows import ChosenCells
from prinfold.cli.tables.sampling import looked_at
from prinfold.cli.tables.summaries import MOST_WORDS, summaries_of
from prinfold.exceptions import InvalidDataError, join_names, quantity, rounded

_EXTRAS = {
    "pyarrow": "Parquet, Arrow and Feather files",
    "python_calamine": "Excel and OpenDocument workbooks",
    "anndata": ".h5ad files",
    "matplotlib": "reports and pictures",
}
_MOST_COLUMNS = 40


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", type=Path, metavar="FILE", nargs="?", help="model or table to describe; without one, what is installed"
    )
    table_arguments(parser)
    output_arguments(parser)


def _info(options: argparse.Namespace) -> int:
    console = Console.of(options)
    if options.data is None:
        _installation(console)
    elif options.data.suffix == ".prinfold":
        _describe_model_file(options.data, console)
    else:
        _table(read(options, console, looked_at(options.data)), console)
    console.close()
    return 0


def _installation(console: Console) -> None:
    from prinfold import __version__

    known = {name: (each.__doc__ or "").strip().partition("\n")[0] for name, each in sorted(methods().items())}
    extras = {name: find_spec(name) is not None for name in _EXTRAS}
    short = {name: word for word, name in aliases().items()}
    console.say(f"prinfold {__version__}\n\nMethods (--method)")
    console.say(align([(name + (f", {short[name]}" if name in short else ""), words) for name, words in known.items()]))
    console.say("\nFiles\n  CSV, TSV and other text, .npy, .npz; also compressed by gzip")
    console.say(
        align(
            [(name, f"{'installed' if extras[name] else 'not installed'}: {words}") for name, words in _EXTRAS.items()]
        )
    )
    console.result |= {"command": "info", "version": __version__, "methods": known, "installed": extras}


def _describe_model_file(path: Path, console: Console) -> None:
    """Say what a model file holds, be it one surface or something else."""
    thing = load_model(path)
    last = thing.steps[-1][1] if hasattr(thing, "steps") else thing
    if is_surface(thing):
        _model(path, StoredSurface.of(thing), console)
        return
    changed = changed_settings(last)
    words = ", ".join(f"{name}={value}" for name, value in changed.items()) or "the defaults"
    lines = [("model", f"{type(last).__name__}, for use from Python"), ("settings", words)]
    console.say(f"{path}\n{align(lines)}")
    settings = {name: str(value) for name, value in changed.items()}
    console.result |= {"command": "info", "file": path, "method": type(last).__name__, "settings": settings}


def _model(path: Path, surface: StoredSurface, console: Console) -> None:
    model, names = surface.model, surface.names
    changed = changed_settings(model)
    found: dict[str, Any] = {
        "command": "info",
        "file": path,
        "bytes": path.stat().st_size,
        "method": surface.kind,
        "dimensions": int(model.latent_.dimension),
        "columns": None if names is None else list(names),
        "n_columns": surface.width,
        "scaling": surface.scaling,
        "settings": {name: str(value) for name, value in changed.items()},
        "takes_gaps": surface.takes_gaps,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": str(model.stop_reason_),
    }
    noise = getattr(model, "noise_variance_", None)
    if noise is not None and np.ndim(noise) == 0:
        found["noise"] = float(noise) ** 0.5
    after = "" if surface.fitted.before is None else ", after scaling"
    lines = [
        ("model", f"{surface.kind} of {quantity(found['dimensions'], 'dimension')}"),
        *([] if surface.branches is None else [(surface.word, surface.branches.words)]),
        ("columns", f"{surface.width}" + ("" if names is None else f": {join_names(names, 12)}")),
        ("scaling", surface.scaling),
        ("settings", ", ".join(f"{name}={value}" for name, value in changed.items()) or "the defaults"),
        ("missing cells", "allowed" if surface.takes_gaps else "not allowed"),
        *([("noise", f"{rounded(found['noise'], 4)} (standard deviation{after})")] if "noise" in found else []),
        ("training", f"{quantity(found['iterations'], 'iteration')}. {model.stop_reason_.plain}"),
        ("size", f"{found['bytes'] / 1e6:.2f} MB"),
    ]
    console.say(f"{path}\n{align(lines)}")
    console.result |= found


def _table(table: FileTable, console: Console) -> None:
    summaries, n_rows = summaries_of(table)
    console.say(f"{table.path}: {quantity(table.whole or n_rows, 'row')} × {quantity(len(table.columns), 'column')}")
    measured = frozenset(table.measured)
    order = sorted(summaries, key=measured.__contains__)  # what is known of each row comes first
    shown = [(name, summaries[name]) for name in order[:_MOST_COLUMNS]]
    console.say(align([(name, _column_words(each)) for name, each in shown]))
    if len(summaries) > len(shown):
        console.say(f"  … and {len(summaries) - len(shown)} more")
    console.note(*table.notes)
    console.result |= {"command": "info", "file": table.path, "rows": table.whole or n_rows, "columns": summaries}
    if table.whole is not None:
        drawn = f"{len(table)} of {table.whole} rows, drawn at random"
        console.note(
            f"{'what `prinfold fit` would use' if n_rows > len(table) else 'all of this'} is told from {drawn}"
        )
    try:
        chosen = choose_columns(table, [], [], [])
        cells = ChosenCells.of(table, chosen.names)
        scaling, why = scaling_for(cells, None)
    except InvalidDataError as error:
        console.note(as_options(error))
        return
    console.say(f"\n`prinfold fit` would use {quantity(len(chosen.names), 'column')}, {scaling.words} ({why})")
    for words in chosen.in_words():
        console.say(f"  {words}")
    console.result |= {"fit_columns": list(chosen.names), "left_out": dict(chosen.left_out), "scaling": scaling.name}


def _column_words(summary: dict[str, Any]) -> str:
    gaps = f", {summary['missing']} missing" if summary["missing"] else ""
    if summary["kind"] == "text":
        kind = "dates" if summary["dates"] else "text"
        more = "at least " if summary["different"] >= MOST_WORDS else ""
        return f"{kind}, {more}{summary['different']} different, such as {summary['example']!r}{gaps}"
    if "mean" not in summary:
        return "nothing in it"
    least, most, mean, spread = (rounded(summary[name], 4) for name in ("least", "most", "mean", "spread"))
    return f"{least} to {most}, mean {mean}, SD {spread}{gaps}"


INFO = Command(
    "say what is in a model or a table, or what is installed",
    _arguments,
    _info,
    """\
  prinfold info data.csv
  prinfold info data.prinfold --json
  prinfold info""",
)
