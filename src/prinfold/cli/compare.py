"""``prinfold compare``: every method on the same folds of a table, and which one to take."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import IntArray
from prinfold.cli.command import Command, output_arguments, table_arguments, whole_number
from prinfold.cli.console import Console, as_options, wrap_line
from prinfold.cli.methods import Scaling, aliases, changed_settings
from prinfold.cli.next_steps import CHOOSING, READING, USES, command_line, next_steps, repeat_options
from prinfold.cli.planning import (
    check_dimensions,
    choice_arguments,
    chosen_columns,
    label_of,
    read,
    scaling_arguments,
    scaling_for,
    with_names,
)
from prinfold.cli.tables.columns import comma_separated, name_columns
from prinfold.cli.tables.rows import ChosenCells, select_rows
from prinfold.cli.tables.writing import MODEL, WRITERS, check_target, write_table
from prinfold.exceptions import InvalidDataError, quantity
from prinfold.methods import manifolds

if TYPE_CHECKING:
    from prinfold.select import Comparison


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="table, as for `prinfold fit`")
    parser.add_argument("--out", "-o", type=Path, metavar="MODEL", help="file to write the recommended model to")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="write the table to this file: .csv, .parquet and so on"
    )
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw held-out error against roughness: .png, .svg")
    parser.add_argument("--force", "-f", action="store_true", help="overwrite existing files")
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--methods", "-m", action="append", metavar="LIST", help="methods to compare, such as gtm,ukr,pca; default: all"
    )
    group.add_argument(
        "--dimensions", "-n", type=whole_number(1), metavar="Q", help="dimensions of the surfaces; default: suggested"
    )
    group.add_argument(
        "--folds", type=whole_number(2), default=5, help="number of cross-validation folds (%(default)s)"
    )
    group.add_argument(
        "--criterion", default="likelihood", help="criterion to rank methods by (%(default)s); see the guide"
    )
    group.add_argument(
        "--max-rows", type=whole_number(10), default=2000, metavar="N", help="most rows to use (%(default)s)"
    )
    group.add_argument(
        "--jobs", "-j", type=whole_number(1), default=1, metavar="N", help="fits at a time (%(default)s)"
    )
    group.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="keep fits that have ended in this file; the same command does not run them again",
    )
    group.add_argument("--seed", type=whole_number(0), default=0, help="random seed (%(default)s)")
    choice_arguments(parser)
    scaling_arguments(parser)
    table_arguments(parser)
    output_arguments(parser)


def _compare(options: argparse.Namespace) -> int:
    console = Console.of(options)
    methods = _methods([word for words in options.methods or [] for word in comma_separated(words)])
    for name, writers in {"out": MODEL, "table": WRITERS, "figure": (".png", ".svg", ".pdf")}.items():
        path = getattr(options, name)
        if path is not None:
            check_target(path, [options.data], force=options.force, writers=writers, option=f"--{name}")
    table = read(options, console)
    chosen = chosen_columns(table, options)
    cells = ChosenCells.of(table, chosen.names)
    check_dimensions(options.dimensions, cells)
    scaling, why = scaling_for(cells, options.scaling)
    index, notes = _rows_to_compare(cells, options, scaling)
    shape = f"{quantity(len(index), 'row')} × {quantity(len(chosen.names), 'column')}"
    console.say(f"Comparing methods on {options.data}: {shape}, in {options.folds} folds. This may take a minute.")
    console.note(*table.notes, *chosen.in_words(), *notes)
    console.note(f"columns {scaling.words}: {why}")
    step, rows = scaling.step(), cells.rows(index)
    X = rows if step is None else step.fit_transform(np.asarray(rows))
    clock = perf_counter()
    with console.note_warnings(), console.working("Comparing methods"):
        found = _run_comparison(X, methods, options, verbose=console.is_interactive)
    seconds = perf_counter() - clock
    console.say(f"\n{_wrap_sentences(found.in_words(as_options))}\nAll of it took {seconds:.1f} s.")
    _write(found, options, console)
    own = _best_of_ours(found)
    model = None if options.out is None else _own_model(found, own, X, console)
    if model is None:
        console.say(_next_step(found, own, scaling, options, gaps=bool(cells.incomplete.any())))
    else:
        from prinfold import save

        save(with_names(model, step, cells), options.out)
        console.say(f"Model written to {options.out}")
        names = name_columns(table, [*chosen.names, *label_of(table, options)])
        console.say(next_steps(options.out, options, options.label, names[:1], USES))
    console.result |= _result(found, scaling, options) | {"rows": len(index), "columns": list(chosen.names)}
    console.result |= {"seconds": seconds}
    console.close()
    return 1 if model is None and options.out is not None else 0


def _rows_to_compare(cells: ChosenCells, options: argparse.Namespace, scaling: Scaling) -> tuple[IntArray, list[str]]:
    """Rows that take part, and what is to be said of the others; enough of them must have every cell."""
    policy = "drop" if options.missing == "keep" and scaling.mixes else options.missing
    index, notes = select_rows(cells, policy, takes_gaps=not scaling.mixes, method="a comparison")
    whole = int((~cells.incomplete).sum())
    if notes and whole < 2 * options.folds:
        worst = cells.names[int(cells.missing.sum(axis=0).argmax())]
        raise InvalidDataError(
            f"{quantity(whole, 'row')} of {cells.table.path} {'has' if whole == 1 else 'have'} every cell, "
            f"too few to compare methods in {options.folds} folds; most missing cells are in {worst!r}, "
            "which --drop leaves out"
        )
    if policy != options.missing:
        notes = [f"{each}, and whitening needs every cell" for each in notes]
    return index, notes


def _run_comparison(X: Any, methods: Any, options: argparse.Namespace, *, verbose: bool) -> Comparison:
    from prinfold import compare

    return compare(
        X,
        methods,
        n_components=options.dimensions,
        folds=options.folds,
        criterion=options.criterion,
        max_rows=options.max_rows,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=int(verbose),
        checkpoint=options.checkpoint,
    )


def _methods(words: list[str]) -> Any:
    """Names as the comparison knows them, however they were written; a slip is said before any file is looked at."""
    from prinfold.select.candidates import BASELINES, refuse_unknown

    known = {name.lower(): name for name in (*(each.name for each in manifolds()), *BASELINES)}
    short = aliases()
    plain = [short.get(word.lower(), word.lower()) for word in words]
    found = [known.get(name, word) for name, word in zip(plain, words, strict=True)]
    if plain in ([], ["all"]):
        return "all"
    for name in found:
        refuse_unknown(name)
    return found


# ------------------------------------------------------------------------------------------------------ what came of it


def _write(found: Comparison, options: argparse.Namespace, console: Console) -> None:
    """Write the table and the figure that were asked for."""
    if options.table is not None:
        write_table(options.table, _columns(found))
        console.say(f"\nTable written to {options.table}")
    if options.figure is not None:
        _draw(found, options.figure)
        console.say(f"Figure written to {options.figure}")


def _wrap_sentences(words: str) -> str:
    """Sentences as wide as the terminal; lines of the table, which are set in, as they are."""
    return "\n".join(line if line.startswith(" ") else wrap_line(line) for line in words.splitlines())


def _best_of_ours(found: Comparison) -> int | None:
    """Index of the recommended contestant or, where that is none of prinfold's surfaces, of the best of those."""
    from prinfold.base.principal_manifold import PrincipalManifold

    known = np.isfinite(found.table["criterion"])
    ranked = [found.chosen, *(int(i) for i in found.ranking() if known[i])]
    return next((i for i in ranked if isinstance(found.candidates[i].model, PrincipalManifold)), None)


def _own_model(found: Comparison, own: int | None, X: Any, console: Console) -> Any:
    """The model to write, since a file holds prinfold's surfaces only; None without any."""
    from prinfold.select.comparing import fit_to_rows

    if own == found.chosen:
        return found.recommended.model
    why = f"{found.recommended.name} is none of prinfold's surfaces"
    if own is None:
        console.note(f"{why}, so that no model was written; name some of them with --methods")
        return None
    console.note(f"{why}, so that the best of these is written: {_gap_in_words(found, own)}")
    with console.note_warnings(), console.working("Fitting the model to write"):
        return fit_to_rows(found.candidates[own].model, X)


def _gap_in_words(found: Comparison, own: int) -> str:
    """A contestant, and how far it comes behind the one recommended."""
    loss, best = (float(found.table["criterion"][i]) for i in (own, found.chosen))
    error, least = (float(found.table["error"][i]) for i in (own, found.chosen))
    side = "behind" if loss >= best else "ahead of"
    verdict = ", too little to tell them apart" if found.table["tied"][own] else ""
    return (
        f"{found.names[own]}, {abs(loss - best):.3g} {side} {found.recommended.name} by the {found.criterion} "
        f"criterion{verdict} (held-out error {error:.4g} against {least:.4g})"
    )


def _columns(found: Comparison) -> dict[str, Any]:
    columns: dict[str, Any] = {name: np.asarray(each) for name, each in found.table.items()}
    columns |= {name: np.asarray(found.table[name], dtype=object) for name in ("method", "settings", "failure")}
    return columns | {"recommended": np.arange(len(found.candidates)) == found.chosen}


def _draw(found: Comparison, path: Path) -> None:
    from prinfold import plot
    from prinfold.cli.demo import save_picture

    save_picture(path, lambda ax: plot.comparison_front(found, ax=ax), (7.0, 5.0))


def _result(found: Comparison, scaling: Scaling, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": "compare",
        "data": options.data,
        "recommended": found.recommended.name,
        "reason": found.reason,
        "criterion": found.criterion,
        "dimensions": found.n_components,
        "dimension_suggested": None if found.dimension is None else str(found.dimension),
        "noise": found.sigma,
        "scaling": scaling.name,
        "model": options.out,
        "table": {name: np.asarray(each).tolist() for name, each in found.table.items()},
    }


def _next_step(found: Comparison, own: int | None, scaling: Scaling, options: argparse.Namespace, *, gaps: bool) -> str:
    """The command that fits the recommended model, or the best of prinfold's own."""
    if options.out is not None or own is None:
        return ""
    one = found.candidates[own]
    settings = {name: value for name, value in changed_settings(one.model).items() if name != "n_components"}
    words = ["fit", options.data, "--method", one.method.lower()]
    words += ["--dimensions", found.n_components] if "n_components" in one.model.get_params(deep=False) else []
    words += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    words += [f"--{scaling.name}", *repeat_options(options, "fit", ("seed", *CHOOSING, *READING))]
    if gaps and options.missing == "keep" and (scaling.mixes or not one.model._accept_missing):
        words += ["--missing", "drop"]  # or the fit would stop where the comparison did not
    which = "" if own == found.chosen else f"The best of prinfold's own surfaces is {_gap_in_words(found, own)}\n"
    return f"\n{which}Try next\n  {command_line(*words)}"


COMPARE = Command(
    "compare methods on rows held out, and recommend one",
    _arguments,
    _compare,
    """\
  prinfold compare data.csv --label species
  prinfold compare data.csv --methods gtm,pps,pca --dimensions 2 --jobs 2 --out best.prinfold
  prinfold compare data.csv --table comparison.csv --figure front.png""",
)
