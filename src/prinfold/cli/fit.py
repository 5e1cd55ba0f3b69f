"""``prinfold fit``: a surface through the rows of a table, with what was chosen on the way said in words."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.cli.command import Command, out_arguments, output_arguments, table_arguments, whole_number
from prinfold.cli.console import Console, align, as_options, wrap_line
from prinfold.cli.methods import SCALINGS, changed_settings, method_name
from prinfold.cli.models import StoredSurface, fold_remarks
from prinfold.cli.next_steps import COMPARE, USES, next_steps
from prinfold.cli.planning import (
    FitPlan,
    choice_arguments,
    chosen_columns,
    make_plan,
    read,
    run_plan,
    scaling_arguments,
)
from prinfold.cli.tables import sampling
from prinfold.cli.tables.columns import ChosenColumns, name_columns
from prinfold.cli.tables.dates import dates_of
from prinfold.cli.tables.memory import release_memory, save_memory
from prinfold.cli.tables.reading import FileTable, refuse_absent
from prinfold.cli.tables.sampling import Draw
from prinfold.cli.tables.writing import MODEL, check_target, sibling_file
from prinfold.exceptions import quantity, rounded
from prinfold.methods import METHODS
from prinfold.validation.data_notes import groups_note

_MOST_CLASSES = 20
"""Different words in a column of text up to which it may be a class of each row."""

_MINUTES_FROM = 100.0
"""Seconds from which on a time is told in minutes."""

_MOST_GROUPED = 2000
"""Rows that are looked at for separate groups."""

_MOST_MEASURED_ROWS = 5000
"""Rows that a fit is measured on: more say the same and take longer."""

_MEASURED_AT_A_TIME, _MEASURED_CELLS = 200, 8000
"""Rows that are projected at a time, and their cells, so that measuring takes no more memory than fitting."""

EXAMPLES = """\
  prinfold fit data.csv
  prinfold fit data.csv --label species --out iris.prinfold
  prinfold fit cells.h5ad --array X_pca --label cell_type
  prinfold fit genes.parquet --columns 'gene_*' --drop gene_7 --standardize
  prinfold fit spectra.tsv --columns 3:200 --method ukr --dimensions 1
  prinfold fit data.csv --set nodes=30 --set prior_precision=evidence"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="table: CSV, TSV, Parquet, Feather, Arrow, .npy, .npz, .h5ad or a workbook",
    )
    out_arguments(parser, "the table's name with .prinfold")
    model = parser.add_argument_group("model")
    model.add_argument(
        "--method", "-m", default="gtm", help="gtm (default), pps, ukr, kmm, ridge, mixed …; `prinfold info` lists all"
    )
    model.add_argument(
        "--dimensions", "-n", type=whole_number(1), metavar="Q", help="dimensions of the surface (usually 2)"
    )
    model.add_argument(
        "--set",
        "-s",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a setting of the method; may be repeated",
    )
    model.add_argument(
        "--sample", type=whole_number(2), metavar="N", help="fit to N randomly chosen rows of a large table"
    )
    model.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="save progress to this file every minute; the same command resumes from it after a crash",
    )
    model.add_argument("--seed", type=whole_number(0), default=0, help="random seed (%(default)s)")
    choice_arguments(parser)
    scaling_arguments(parser)
    table_arguments(parser)
    output_arguments(parser)


def _fit(options: argparse.Namespace) -> int:
    console = Console.of(options)
    method = METHODS[method_name(options.method)]  # a slip in a word is said before any file is looked at
    refuse_absent(options.data)
    out = options.out or sibling_file(options.data, ".prinfold")
    check_target(out, [options.data], force=options.force, writers=MODEL)
    draw = _draw(options, blocks=method.takes_blocks)
    if draw is not None:
        save_memory()
    table = read(options, console, draw)  # before the methods, which take longer to load
    chosen = chosen_columns(table, options, text=method.takes_text)
    plan = make_plan(table, chosen, method.cls, options, verbose=console.is_interactive)
    console.say(wrap_line(f"Fitting {_model_name(plan)} to {options.data}: {_shape(plan)}."))
    console.note(*table.notes, *chosen.in_words(), *plan.notes)
    clock = perf_counter()
    with console.note_warnings(), console.working(f"Fitting {_model_name(plan)}"):
        fitted = run_plan(plan, options.checkpoint)
    console.note(*_separate_groups(plan))
    seconds = perf_counter() - clock
    surface = StoredSurface.of(fitted)
    with console.note_warnings(), console.working("Measuring the fit"):
        found = _findings(surface, plan, seconds)
    if not any("is folded at" in each for each in console.notes):  # or training has said so
        console.note(*fold_remarks(surface))
    from prinfold import save

    save(fitted, out)
    console.say()
    console.say(align(_in_words(surface, plan, found)))
    console.say(f"\nWritten to {out}")
    label = options.label or _likely_label(table, chosen)
    names = name_columns(table, [*chosen.names, *([label] if label in table.columns else [])])
    console.say(next_steps(out, options, label, names[:1], _uses(surface)))
    console.result |= {"command": "fit", "model": out, "data": options.data, **found}
    console.result |= {"columns": list(chosen.names), "left_out": dict(chosen.left_out)}
    console.close()
    return 130 if found["interrupted"] else 0


def _separate_groups(plan: FitPlan) -> list[str]:
    """A note where the rows that were fitted fall into separate groups, in the units that they were fitted in."""
    if plan.cells.matrix is None:
        return []
    rows = plan.cells.matrix[plan.index[:: max(1, len(plan.index) // _MOST_GROUPED)]]
    rows = rows[~np.isnan(rows).any(axis=1)]
    spread = rows.std(axis=0) if plan.scaling.column_by_column and len(rows) else 1.0
    words = groups_note(rows / np.where(np.asarray(spread) > 0, spread, 1.0))
    return [] if words is None else [as_options(words)]


def _draw(options: argparse.Namespace, *, blocks: bool) -> Draw | None:
    """Rows to look at: those asked for, or some of a table that is too large to be read as a whole."""
    if options.sample is not None:
        return Draw(options.sample, options.seed)
    blocks = blocks and options.missing == "keep" and not (options.scaling and SCALINGS[options.scaling].mixes)
    return sampling.looked_at(options.data, options.seed, blocks=blocks)


def _model_name(plan: FitPlan) -> str:
    dimension = plan.model.get_params().get("n_components")
    of = "" if dimension is None else f" of {quantity(dimension, 'dimension')}"
    return f"a {type(plan.model).__name__}{of}"


def _shape(plan: FitPlan) -> str:
    return f"{quantity(plan.n_rows, 'row')} × {quantity(len(plan.cells.names), 'column')}"


# ------------------------------------------------------------------------------------------------------ what came of it


def _findings(surface: StoredSurface, plan: FitPlan, seconds: float) -> dict[str, Any]:
    """The result of a fit as a dictionary, for programs."""
    from prinfold.loops import StopReason

    model = surface.model
    return {
        "method": surface.kind,
        "dimensions": int(model.latent_.dimension),
        "settings": {name: str(value) for name, value in changed_settings(model).items()},
        "rows": plan.n_rows,
        "scaling": plan.scaling.name,
        "why_scaling": plan.why_scaling,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": str(model.stop_reason_),
        "interrupted": model.stop_reason_ is StopReason.INTERRUPTED,
        "seconds": seconds,
        **_accuracy(surface, plan),
        **_curve_facts(model),
        **_branch_facts(surface),
    }


def _curve_facts(model: Any) -> dict[str, Any]:
    """Length and shape of a single curve; nothing for other surfaces."""
    if not hasattr(model, "curve_"):
        return {}
    return {"length": float(model.length_), "closed": bool(model.closed_)}


def _branch_facts(surface: StoredSurface) -> dict[str, Any]:
    """Numbers of branches, ends and forks of a tree or of ridges."""
    graph = surface.branches
    return {} if graph is None else {"branches": len(graph.ends), "ends": graph.n_ends, "forks": graph.n_forks}


def _accuracy(surface: StoredSurface, plan: FitPlan) -> dict[str, Any]:
    """Root mean square distances of rows from the surface and from their mean, and the variance explained."""
    cells = plan.cells
    complete = plan.index[~cells.incomplete[plan.index]]
    if cells.matrix is None or len(complete) < 2:
        return {}
    some = complete[:: -(-len(complete) // _MOST_MEASURED_ROWS)]
    at_a_time = min(max(_MEASURED_CELLS // len(cells.names), 1), _MEASURED_AT_A_TIME)
    parts = [some[start : start + at_a_time] for start in range(0, len(some), at_a_time)]
    distance = np.concatenate([_distances(surface, plan, part) for part in parts])
    rows = np.asarray(surface.fitted.rows(cells.matrix[some]), dtype=float)
    total, error = float(rows.var(axis=0).sum()), float((distance**2).mean())
    found: dict[str, Any] = {"distance": error**0.5, "spread": total**0.5}
    return found | {"explained": 1 - error / total} if total > 0 else found


def _distances(surface: StoredSurface, plan: FitPlan, some: IntArray) -> FloatArray:
    """(m,) distances of some rows from the surface; what they took is given back where memory counts."""
    distances = surface.projection(plan.cells, some)[1]
    if plan.blocks is not None:
        release_memory()
    return distances


def _in_words(surface: StoredSurface, plan: FitPlan, found: dict[str, Any]) -> list[tuple[str, str]]:
    unit = plan.scaling.unit
    lines = [("scaling", f"{surface.scaling}: {plan.why_scaling}")]
    if "explained" in found:
        words = (
            f"{rounded(found['distance'])}{unit} to the {surface.word} ({rounded(found['spread'])}{unit} to the mean)"
        )
        share = f"{100 * found['explained']:.1f} % of the variance of these rows"
        lines += [("RMS distance", words), ("explained", share)]
    if surface.branches is not None:
        lines.append((surface.word, surface.branches.words))
    if "length" in found:
        shape = "a closed curve" if found["closed"] else "an open curve"
        lines.append(("course", f"{shape}, {found['length']:.4g}{unit} long; coordinates are lengths along it"))
    settings = [f"{name}={value}" for name, value in found["settings"].items() if name != "n_components"]
    lines += [("settings", ", ".join(settings))] if settings else []
    lines.append(("time to fit", f"{_time(found['seconds'])}, {quantity(found['iterations'], 'iteration')}"))
    # On a terminal the progress bar has said so.
    told = sys.stderr is not None and sys.stderr.isatty()
    return lines if told else [*lines, ("training", surface.model.stop_reason_.plain)]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _MINUTES_FROM else f"{seconds / 60:.0f} min"


def _likely_label(table: FileTable, chosen: ChosenColumns) -> str | None:
    """The one column, of text or beside the table, that may be a class of each row, to be proposed."""
    text = [name for name, reason in chosen.left_out if reason == "text"]
    measured = frozenset(table.measured)
    text += [name for name in table.columns if name not in measured]
    few = [name for name in text if 2 <= len({*table.columns[name]}) <= min(_MOST_CLASSES, len(table) // 3)]
    few = [name for name in few if table.is_number(name) or dates_of(table.columns[name]) is None]
    return few[0] if len(few) == 1 else None


def _uses(surface: StoredSurface) -> dict[str, str]:
    """Commands that a model can be used with; a report needs a map, which not every fitted model has."""
    mapped = hasattr(surface.model, "latent_")
    return {name: words for name, words in USES.items() if mapped or name != "report"} | {"compare": COMPARE}


FIT = Command("fit a surface to a table and write the model", _arguments, _fit, EXAMPLES)
