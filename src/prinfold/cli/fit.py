"""``prinfold fit``: a surface through the rows of a table, with what was chosen on the way said in words."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.columns import Chosen, choose_columns, one_column
from prinfold.cli.command import Command, list_of, out_arguments, table_arguments, talk_arguments, whole_number
from prinfold.cli.console import Console, aligned, as_called, counted
from prinfold.cli.methods import changed_settings, choose_scaling, make_model, method_class, scaling_step
from prinfold.cli.models import Surface
from prinfold.cli.rows import Cells, select_rows
from prinfold.cli.tables import Reading, Table, read_table
from prinfold.cli.writing import check_target
from prinfold.exceptions import InvalidDataError

_FEW = 30
_CLASSES = 20
_MEASURED = 5000
"""Rows that a fit is measured on: more say the same and take longer."""

EXAMPLES = """\
  prinfold fit data.csv
  prinfold fit data.csv --label species --out iris.prinfold
  prinfold fit cells.h5ad --array X_pca --label cell_type
  prinfold fit genes.parquet --columns 'gene_*' --drop gene_7 --standardise
  prinfold fit spectra.tsv --columns 3:200 --method ukr --dimensions 1
  prinfold fit data.csv --set nodes=30 --set prior_precision=evidence"""


@dataclass(frozen=True)
class Plan:
    """What is fitted to what: an estimator that is not fitted yet, behind a step that scales columns or not."""

    cells: Cells
    index: IntArray
    model: Any
    scaling: str
    why_scaling: str
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> Any:
        """The rows, as the estimator takes them."""
        return self.cells.rows(self.index)


def choice_arguments(parser: argparse.ArgumentParser) -> None:
    """Which columns."""
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--columns",
        "-c",
        action="append",
        metavar="LIST",
        help="columns to use: names, patterns (gene_*), ranges (first:last), numbers from 1 on; default: all numbers",
    )
    group.add_argument(
        "--drop", "-d", action="append", metavar="LIST", help="columns to leave out, given in the same way"
    )
    group.add_argument("--label", "-l", metavar="COLUMN", help="column with the class of each row, which is not fitted")


def scaling_arguments(parser: argparse.ArgumentParser) -> None:
    """How columns are scaled."""
    scaling = parser.add_argument_group(
        "scaling (kept in the model; results are in your units)"
    ).add_mutually_exclusive_group()
    scaling.add_argument(
        "--standardise",
        "--standardize",
        action="store_const",
        const="standardise",
        dest="scaling",
        help="divide each column by its spread",
    )
    scaling.add_argument(
        "--whiten",
        action="store_const",
        const="whiten",
        dest="scaling",
        help="rotate and divide, so that columns are uncorrelated",
    )
    scaling.add_argument(
        "--raw",
        action="store_const",
        const="raw",
        dest="scaling",
        help="leave columns as they are; default: what their spreads suggest",
    )


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="table: CSV, TSV, Parquet, Feather, Arrow, .npy, .npz or .h5ad"
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
    model.add_argument("--seed", type=whole_number(0), default=0, help="seed of what is random (%(default)s)")
    choice_arguments(parser)
    scaling_arguments(parser)
    table_arguments(parser)
    talk_arguments(parser)


def _fit(options: argparse.Namespace) -> int:
    console = Console.of(options)
    out = options.out or model_path(options.data)
    check_target(out, [options.data], force=options.force)
    table = read(options, console)  # before the methods, which take longer to load
    cls = method_class(options.method)
    chosen = chosen_columns(table, options, text=cls.__name__ == "MixedGTM")
    plan = _plan(table, chosen, cls, options, verbose=console.talks)
    console.say(f"Fitting {_named(plan)} to {options.data}: {len(plan.index)} rows × {len(chosen.names)} columns.")
    console.note(*table.notes, *chosen.in_words(), *plan.notes)
    clock = perf_counter()
    with console.listening():
        fitted = run_plan(plan)
    seconds = perf_counter() - clock
    surface = Surface.of(fitted)
    with console.listening():
        found = _findings(surface, plan, seconds)
    from prinfold import save

    save(fitted, out)
    console.say()
    console.say(aligned(_in_words(surface, plan, found)))
    console.say(f"\nWritten to {out}")
    console.say(_next_steps(out, options, options.label or _likely_label(table, chosen)))
    console.result |= {"command": "fit", "model": out, "data": options.data, **found}
    console.result |= {"columns": list(chosen.names), "left_out": dict(chosen.left_out)}
    console.close()
    return 130 if found["interrupted"] else 0


def model_path(data: Path) -> Path:
    """Where the model of a table goes: here, under the table's name."""
    name = data.name.removesuffix(".gz")
    return (
        Path(name).with_suffix(".prinfold")
        if data.parent == Path()
        else data.parent / Path(name).with_suffix(".prinfold")
    )


def read(options: argparse.Namespace, console: Console) -> Table:
    """The table that the options name."""
    reading = Reading(options.separator, options.header, tuple(options.na), options.array)
    with console.listening():
        return read_table(options.data, reading)


def chosen_columns(table: Table, options: argparse.Namespace, *, text: bool = False) -> Chosen:
    """The columns that the options name."""
    aside = [] if options.label is None else [one_column(table, options.label, "--label")]
    return choose_columns(table, list_of(options.columns), list_of(options.drop), aside, text=text)


def _plan(table: Table, chosen: Chosen, cls: Any, options: argparse.Namespace, *, verbose: bool) -> Plan:
    """Settle everything before the work begins."""
    cells = Cells.of(table, chosen.names)
    scaling, why = choose_scaling(options.scaling, cells.matrix, chosen.names)
    if scaling != "raw" and cells.matrix is None:
        raise InvalidDataError(
            f"columns of text cannot be scaled; leave --{scaling} out, or take numbers only with --columns"
        )
    model = make_model(cls, len(chosen.names), options.dimensions, options.seed, options.settings, verbose=verbose)
    gaps = bool(model._accept_missing) and scaling != "whiten"
    name = cls.__name__ if scaling != "whiten" else "whitening"
    index, notes = select_rows(cells, options.missing, takes_gaps=gaps, method=name)
    if len(index) < 2:
        raise InvalidDataError(
            f"{table.path} has {counted(len(index), 'row')} to fit; a surface needs two at the least, and better dozens"
        )
    if len(index) < _FEW:
        notes.append(f"{counted(len(index), 'row')} are few: expect a rough idea rather than a map")
    return Plan(cells, index, model, scaling, why, tuple(notes))


def run_plan(plan: Plan) -> Any:
    """Fit; the result knows the names of its columns and shows no progress later on."""
    step, rows = scaling_step(plan.scaling), plan.rows
    if step is None:
        fitted = plan.model.fit(rows)
    else:
        from sklearn.pipeline import Pipeline

        fitted = Pipeline([("scale", step), ("model", plan.model)]).fit(np.asarray(rows))
        if plan.cells.table.named:  # scikit-learn sees those of frames only
            step.feature_names_in_ = np.asarray(plan.cells.names, dtype=object)
    if "verbose" in plan.model.get_params():
        plan.model.set_params(verbose=0)
    return fitted


def _named(plan: Plan) -> str:
    dimension = plan.model.get_params().get("n_components", 2)
    return f"a {type(plan.model).__name__} of {counted(dimension, 'dimension')}"


# ------------------------------------------------------------------------------------------------------ what came of it


def _findings(surface: Surface, plan: Plan, seconds: float) -> dict[str, Any]:
    """What there is to say of a fit, for programs."""
    from prinfold.loops import StopReason

    model = surface.model
    return {
        "method": surface.kind,
        "dimensions": int(model.latent_.dimension),
        "settings": {name: str(value) for name, value in changed_settings(model).items()},
        "rows": len(plan.index),
        "scaling": plan.scaling,
        "why_scaling": plan.why_scaling,
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": str(model.stop_reason_),
        "interrupted": model.stop_reason_ is StopReason.INTERRUPTED,
        "seconds": seconds,
        **_accuracy(surface, plan),
    }


def _accuracy(surface: Surface, plan: Plan) -> dict[str, Any]:
    """How far rows are from the surface, beside how far they are from their mean, as the model measures distance."""
    cells = plan.cells
    complete = plan.index[~cells.incomplete[plan.index]]
    if cells.matrix is None or len(complete) < 2:
        return {}
    some = complete[:: -(-len(complete) // _MEASURED)]
    _, distance = surface.projection(cells, some)
    rows = np.asarray(surface.fitted.rows(cells.matrix[some]), dtype=float)
    total, error = float(rows.var(axis=0).sum()), float((distance**2).mean())
    found: dict[str, Any] = {"distance": error**0.5, "spread": total**0.5}
    return found | {"explained": 1 - error / total} if total > 0 else found


def _in_words(surface: Surface, plan: Plan, found: dict[str, Any]) -> list[tuple[str, str]]:
    unit = {"raw": "", "standardise": " spreads", "whiten": " spreads"}[plan.scaling]
    lines = [("scaling", f"{surface.scaling}: {plan.why_scaling}")]
    if "explained" in found:
        words = f"{found['distance']:.4g}{unit} from it (root mean square), {found['spread']:.4g}{unit} from their mean"
        lines += [("rows are", words), ("explained", f"{100 * found['explained']:.1f} % of the variance of these rows")]
    if found["settings"]:
        lines.append(("settings", ", ".join(f"{name}={value}" for name, value in found["settings"].items())))
    lines += [
        ("time to fit", f"{found['seconds']:.1f} s, {found['iterations']} iterations"),
        ("stopped", found["stop_reason"]),
    ]
    return lines


def _likely_label(table: Table, chosen: Chosen) -> str | None:
    """The one column of text that may be a class of each row, to be proposed."""
    text = [name for name, reason in chosen.left_out if reason == "text"]
    few = [name for name in text if 2 <= len({*table.columns[name]}) <= _CLASSES]
    return few[0] if len(few) == 1 else None


def _next_steps(out: Path, options: argparse.Namespace, label: str | None) -> str:
    words = [shlex.quote(str(each)) for each in (out, options.data)]
    extra = _reading_words(options)
    classes = [] if label is None else ["--label", shlex.quote(label)]
    call, commands = as_called(), {"explore": [*classes, *extra], "transform": extra}
    steps = {"explore": "a page to move over the map", "transform": "coordinates of every row"}
    lines = [(" ".join([call, name, *words, *commands[name]]), f"# {steps[name]}") for name in commands]
    return f"\nTry next\n{aligned(lines)}"


def _reading_words(options: argparse.Namespace) -> list[str]:
    """Options that whoever reads the table again needs too."""
    found = [
        f"--{name} {shlex.quote(getattr(options, name))}" for name in ("separator", "array") if getattr(options, name)
    ]
    found += {True: ["--header"], False: ["--no-header"]}.get(options.header, [])
    return [*found, *(f"--na {shlex.quote(word)}" for word in options.na)]


FIT = Command("fit a surface to a table and write the model", _arguments, _fit, EXAMPLES)
