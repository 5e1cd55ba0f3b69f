"""The sections of a report, each from a study to HTML."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from prinfold.citations import cite
from prinfold.exceptions import InvalidParameterError, quantity
from prinfold.notebook.settings import reasons, settings_of
from prinfold.plot.inputs import RowClasses, drawing_of
from prinfold.reporting import writing
from prinfold.reporting.measurements import Study
from prinfold.reporting.pictures import Picture

_FEWEST_COLUMNS_OFF = 3
_MOST_COLUMNS = 40
"""Columns named beside a bad row, and columns in the table of what is left of each."""


def opening_sentence(study: Study) -> str:
    """The opening sentence: the model, the rows and the columns."""
    model, latent = study.fitted.model, study.fitted.latent
    word = study.fitted.word
    kind = word if latent.dimension <= 2 else f"{word} of {latent.dimension} dimensions"
    before = [] if study.fitted.before is None else [type(step).__name__ for _, step in study.fitted.before.steps]
    behind = f", behind {' and '.join(before)}" if before else ""
    size = f"{study.n} rows of {len(study.fitted.feature_names)} columns"
    if latent.charts:
        return f"{len(latent.charts)} {kind}s fitted together by {type(model).__name__}{behind}: {size}."
    return f"A {kind} fitted by {type(model).__name__}{behind}: {size}."


def facts(study: Study) -> str:
    """The few numbers that matter most."""
    rows = []
    if study.distance is not None and study.error is not None:
        rows.append(("RMS distance", writing.number(np.sqrt(study.error)), _distance_note(study)))
        rows.append(
            ("projection error", writing.number(study.error), f"mean squared distance to the {study.fitted.word}")
        )
    if study.explained is not None and study.flat is not None and study.variance:
        flat = 1.0 - study.flat / study.variance
        rows.append(
            ("variance explained", f"{100 * study.explained:.1f} %", f"{study.flat_word} explains {100 * flat:.1f} %")
        )
    if study.map_errors is not None:
        quantization, topographic = study.map_errors
        rows.append(("quantisation error", writing.number(quantization), "mean distance from the nearest node"))
        rows.append(
            (
                "topographic error",
                f"{100 * topographic:.1f} %",
                "rows whose two nearest nodes are no neighbours",
            )
        )
    if study.likelihood is not None:
        rows.append(
            ("log-likelihood", writing.number(study.likelihood.mean()), "mean over the rows, natural logarithm")
        )
    if study.neighborhoods is not None:
        trust, kept = study.neighborhoods
        rows.append(("trustworthiness", f"{trust:.3f}", "neighbours on the map are neighbours in the data; best at 1"))
        rows.append(("continuity", f"{kept:.3f}", "neighbours in the data are neighbours on the map; best at 1"))
    model = study.fitted.model
    rows.append(("iterations", str(model.n_iter_), model.stop_reason_.brief))
    return writing.facts(rows)


def _distance_note(study: Study) -> str:
    units = "the units that the model sees" if study.fitted.before is not None else "the units of the table"
    return f"root-mean-square distance to the {study.fitted.word}, in {units}"


# ------------------------------------------------------------------------------------------------------------ errors


def errors(study: Study, groups: RowClasses | None, names: list[str] | None, worst: int, pictures: str) -> str:
    """The section on errors: rows that lie far off, and columns by how well they are explained."""
    if study.distance is not None:
        values, words = study.distance, f"distance from the {study.fitted.word}"
    elif study.likelihood is not None:
        values, words = -study.likelihood, "negative log-likelihood"
    else:
        return writing.section("errors", "Errors", writing.paragraph("This model measures no error of single rows."))
    known = values[np.isfinite(values)]
    parts = [
        writing.paragraph(
            f"Half of the rows have a {words} below {writing.number(float(np.median(known)))}. If the model was fitted "
            "to these same rows, expect new rows to lie somewhat farther off."
        ),
        writing.histogram(known, words),
        pictures,
        f"<h3>The {min(worst, len(known))} worst rows</h3>",
        *([] if names else [writing.paragraph("Rows are counted from 0.")]),
        _worst_rows(study, values, groups, names, worst),
    ]
    return writing.section("errors", "Errors", *parts, *_columns(study))


def _worst_rows(study: Study, values: Any, groups: RowClasses | None, names: list[str] | None, worst: int) -> str:
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    order = order[np.isfinite(values[order])][:worst]
    head = ["row", *(["class"] if groups else []), "error", "place on the map"]
    off = None if study.rows_and_surface is None else _standardized_residuals(study)
    head += [] if off is None else ["columns farthest off"]
    lines = []
    for i in order:
        cells = [escape(names[i] if names else str(i))]
        if groups:
            cells.append(escape(groups.names[groups.index[i]] if groups.index[i] >= 0 else "–"))
        cells += [writing.number(values[i]), ", ".join(f"{z:.3g}" for z in study.Z[i])]
        lines.append([*cells, *([] if off is None else [_farthest(study, off[i], int(i))])])
    return writing.table(head, lines, numbers=(2 if groups else 1,), stacked=True)


def _standardized_residuals(study: Study) -> Any:
    """(n, D) how far rows are off the surface, in standard deviations of each column."""
    assert study.rows_and_surface is not None
    rows, surface, _ = study.rows_and_surface
    spread = np.nanstd(rows, axis=0)
    return np.abs(rows - surface) / np.where(spread > 0, spread, np.inf)


def _farthest(study: Study, off: Any, row: int) -> str:
    assert study.rows_and_surface is not None
    rows, surface, names = study.rows_and_surface
    columns = np.argsort(-np.nan_to_num(off, nan=-1.0), kind="stable")[:_FEWEST_COLUMNS_OFF]
    # What is 0 but for rounding, beside the column it stands in, is written as 0.
    there = np.where(np.abs(surface[row]) < 1e-9 * np.nanmax(np.abs(rows), axis=0), 0.0, surface[row])
    return "<br>".join(
        f"{escape(names[j])}: {writing.number(rows[row, j])}, {study.fitted.word} {writing.number(there[j])}"
        for j in columns
        if np.isfinite(off[j])
    )


def _columns(study: Study) -> list[str]:
    kept = sorted(study.kept, key=lambda each: np.nan_to_num(each.share, nan=2.0))
    if not kept:
        return []
    noted = any(each.words for each in kept)
    lines = [
        [
            escape(each.name),
            "does not vary" if np.isnan(each.share) else f"{100 * max(each.share, 0.0):.1f} %",
            "" if np.isnan(each.share) else writing.meter(each.share),
            *([escape(each.words)] if noted else []),
        ]
        for each in kept[:_MOST_COLUMNS]
    ]
    more = len(kept) - len(lines)
    note = [writing.paragraph(f"{more} more columns are explained better than these.")] if more > 0 else []
    heading = "<h3>Variance explained, column by column</h3>"
    head = ["column", "variance explained", "", *([""] if noted else [])]
    return [heading, writing.table(head, lines, numbers=(1,)), *note]


# ------------------------------------------------------------------------------------------------------------ pieces


def pieces(study: Study) -> list[str]:
    """A table of maps or branches, where there are several."""
    latent, model = study.fitted.latent, study.fitted.model
    if latent.charts:
        of = np.rint(study.Z[:, 0]).astype(int)
        lines = [
            [str(j), f"{100 * model.mixing_[j]:.1f} %", *_count_and_distance(study, of == j)]
            for j in range(len(latent.charts))
        ]
        return [_PIECES, writing.table(["map", "share", "rows", "RMS distance"], lines, numbers=(1, 2, 3))]
    curves = drawing_of(latent).pieces
    if curves is None:
        return []
    lengths, kinds = curves.high - curves.low, np.where(curves.closed, "closed", "open")
    if len(lengths) == 1:
        return [writing.paragraph(f"The {study.fitted.word} is {kinds[0]} and {writing.number(lengths[0])} long.")]
    of = curves.piece(study.Z)
    lines = [
        [str(b), writing.number(length), str(kinds[b]), *_count_and_distance(study, of == b)]
        for b, length in enumerate(lengths)
    ]
    shown = writing.table(["branch", "length", "", "rows", "RMS distance"], lines[:_MOST_COLUMNS], numbers=(1, 3, 4))
    more = len(lines) - _MOST_COLUMNS
    rest = [writing.paragraph(f"{more} more branches, all shorter, are left out.")] if more > 0 else []
    graph = study.fitted.branches
    said = [] if graph is None else [writing.paragraph(f"The {study.fitted.word} has {graph.words}.")]
    return [_BRANCHES, *said, shown, *rest]


_PIECES = "<h3>The maps</h3><p>Each row counts for the map that it belongs to most.</p>"
_BRANCHES = "<h3>The branches</h3><p>Each row counts for the branch that it is nearest to.</p>"


def _count_and_distance(study: Study, here: Any) -> list[str]:
    """Number of rows, and their root mean square distance from the surface."""
    known = np.empty(0) if study.distance is None else study.distance[here & np.isfinite(study.distance)]
    return [str(int(here.sum())), writing.number(float(np.sqrt(np.mean(known**2)))) if len(known) else "–"]


# ---------------------------------------------------------------------------------------------------- model and words


def settings(study: Study, pictures: str, why_this: list[str]) -> str:
    """The section on settings and the reasons for them."""
    model = study.fitted.model
    found = settings_of(model)
    changed = sum(not each.is_default for each in found)
    said = "Every setting is the default." if not changed else "Settings that differ from the defaults come first."
    lines = [[escape(each.name), f"<code>{escape(each.value)}</code>", escape(each.became)] for each in found]
    chosen = [f"<pre>{escape(each)}</pre>" for each in reasons(model)]
    why = [writing.paragraph("What the fit compared to choose:"), *chosen] if chosen else []
    parts = [writing.paragraph(said), writing.table(["setting", "value", "became"], lines, changed=changed)]
    return writing.section("settings", "What was fitted", *why_this, *parts, *why, pictures)


def why_this_one(given: Any) -> list[str]:
    """Reasons for this model: words, or what a comparison of methods or settings has to say, with its table."""
    if given is None:
        return []
    if isinstance(given, str):
        return ["<h3>Why this one</h3>", writing.paragraph(given)]
    words = getattr(given, "reason", None) or " ".join(getattr(given, "notes", ()))
    if not words:
        raise InvalidParameterError(
            f"reason must be words, or what compare or choose returned, got {type(given).__name__}; say in a sentence "
            "why this model was chosen"
        )
    return ["<h3>Why this one</h3>", writing.paragraph(str(words)), f"<pre>{escape(str(given))}</pre>"]


def training(study: Study, pictures: str) -> str:
    """The section on training."""
    model = study.fitted.model
    words = f"{quantity(model.n_iter_, 'iteration')}. {model.stop_reason_.plain}"
    return writing.section("training", "Training", writing.paragraph(words), pictures)


def citations(model: Any) -> str:
    """The section on references to cite."""
    found = cite(model)
    items = "".join(f"<li>{escape(each.text)}</li>" for each in found.references)
    bibtex = f"<details><summary>BibTeX</summary><pre>{escape(found.bibtex)}</pre></details>"
    used = ", ".join(f"{name} {version(name)}" for name in ("prinfold", "numpy", "scipy", "scikit-learn"))
    return writing.section("cite", "What to cite", f"<ul>{items}</ul>", bibtex, writing.paragraph(f"Made with {used}."))


def section_figures(pictures: list[Picture], section: str) -> str:
    """The figures of one section as HTML."""
    return writing.figures([each for each in pictures if each.section == section], ALT)


ALT = {
    "map": "each row at its place on the map",
    "magnification": "magnification factor, with ellipses for the direction",
    "errors": "map of the rows, coloured by their distance",
    "learning_curve": "objective by iteration",
    "selection": "error of rows held out against roughness, by clamping",
    "ridge": "curves among the rows, over their density",
    "residuals": "residual by latent dimension and number of neighbours",
}
