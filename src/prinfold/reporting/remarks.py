"""Remarks on a fit in plain words: a table of checks, each of which says what it found and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from prinfold.exceptions import Advice, Message, join_names, percent
from prinfold.loops import StopReason
from prinfold.plot.inputs import FittedSurface
from prinfold.reporting.measurements import Study
from prinfold.validation.data_notes import groups_note, spreads_note

_UNSETTLED = {StopReason.MAX_ITER, StopReason.CALLBACK, StopReason.INTERRUPTED}

_FAR_DISTANCES = 8.0
"""Rows this many times the median distance away are named; of normal scatter in one column one in ten million is."""

_MANY_FAR_SHARE = 0.05
"""Share of the rows from which on those far away are no longer single ones."""

_NO_BETTER_RATIO = 0.95
"""Error relative to that of a flat surface from which on bending has not paid."""

_EDGE_WIDTH, _NOTED_SHARE, _CROWDED_SHARE = 0.02, 0.15, 0.5
"""How near the end of an axis is its edge; the share of rows there worth a word, and that of a crowded map."""


def remarks(study: Study) -> list[str]:
    """Remarks that a reader should see before trusting a map."""
    return [sentence for check in CHECKS for sentence in check(study)]


def _unsettled_training(study: Study) -> Iterator[str]:
    model = study.fitted.model
    if getattr(model, "stop_reason_", None) in _UNSETTLED:
        yield (
            f"Training had not settled: {_lower(str(model.stop_reason_))} What follows describes the model as it is; "
            "with more iterations (max_iter) it may change."
        )


def fold_remarks(fitted: FittedSurface) -> Iterator[str]:
    """A remark on folds, if the surface has any."""
    folds = getattr(fitted.model, "folds_", None)
    count = 0 if folds is None else int(np.count_nonzero(folds.folded))
    if count:
        yield Message(
            f"The surface is folded at {count} of its {fitted.latent.n_nodes} nodes: neighbours on the map may "
            "be far apart in the data there.",
            Advice("width", 2, "try a stiffer surface ({})"),
            Advice("init", "isomap", "another start ({})"),
        )


def _folds(study: Study) -> Iterator[str]:
    yield from fold_remarks(study.fitted)


def _branches(study: Study) -> Iterator[str]:
    """Support of the branches of a ridge, and how many were left out."""
    support = getattr(study.fitted.model, "branch_support_", None)
    if support is None or np.isnan(support).any():
        return
    gone = study.fitted.model.n_branches_found_ - len(support)
    yield (
        f"{_count(len(support), 'branch is', 'branches are')} kept, with a support of {support.min():.2f} to "
        f"{support.max():.2f} (1 is sure); {int(study.fitted.model.persistent_branches_.sum())} of them, with 0.2 or "
        f"more, other rows would show too. {_count(max(gone, 0), 'more was', 'more were')} left out: rows drawn anew "
        "seldom show them (min_support=0 keeps all)."
    )


def _far_rows(study: Study) -> Iterator[str]:
    if study.distance is None:
        return
    word, distance = study.fitted.word, study.distance[np.isfinite(study.distance)]
    squared, typical = distance**2, float(np.median(distance))
    far = distance > _FAR_DISTANCES * typical
    if typical > 0 and far.mean() > _MANY_FAR_SHARE:
        yield (
            f"{percent(far.mean())} of the rows lie more than {_FAR_DISTANCES:g} times the usual distance from the "
            f"{word}. So many are no mistakes: the {word} follows one part of the rows closely and passes by another. "
            "More of it may reach them: another start, a surface that bends more, or for ridges a smaller min_density "
            "or min_length."
        )
    elif typical > 0 and far.any():
        share = 100.0 * squared[far].sum() / squared.sum()
        yield (
            f"{_count(int(far.sum()), 'row lies', 'rows lie')} more than {_FAR_DISTANCES:g} times the usual "
            f"distance from the {word} and {'makes' if far.sum() == 1 else 'make'} up {share:.0f} % of the error. "
            "Look at the worst rows below: they may be mistakes, or of a kind of their own."
        )


def _unlike_spreads(study: Study) -> Iterator[str]:
    if study.table is None or study.fitted.before is not None or not study.complete.any():
        return
    words = spreads_note(study.table[study.complete], study.fitted.feature_names)
    if words is not None:
        yield words


def _separate_groups(study: Study) -> Iterator[str]:
    several = bool(study.fitted.latent.charts) or study.fitted.latent.dimension != study.fitted.latent.n_columns
    if study.table is None or several or not study.complete.any():
        return
    rows = study.table[study.complete]
    words = groups_note(rows / np.maximum(rows.std(axis=0), np.finfo(float).tiny))
    if words is not None:
        yield words


def _constant(study: Study) -> Iterator[str]:
    left = study.left
    if left is None or not np.isnan(left).any():
        return
    names = [study.fitted.feature_names[j] for j in np.flatnonzero(np.isnan(left))]
    yield f"{_count(len(names), 'column does', 'columns do')} not vary and say nothing: {join_names(names, 5)}."


def _flat(study: Study) -> Iterator[str]:
    if study.error is None or not study.flat or study.fitted.latent.dimension >= study.fitted.model.n_features_in_:
        return
    if study.error > _NO_BETTER_RATIO * study.flat:
        ratio = study.error / study.flat
        yield (
            f"{study.flat_word.capitalize()} (principal components) leaves {study.flat:.4g}, this {study.fitted.word} "
            f"{study.error:.4g}, {ratio:.2f} times as much: bending has not brought it nearer to the rows."
        )


def _gaps(study: Study) -> Iterator[str]:
    missing = int(np.count_nonzero(~study.complete))
    if missing:
        measured = study.distance is not None and bool(np.isfinite(study.distance[~study.complete]).any())
        about = (
            "Their distances use the known cells, scaled up to all columns. The mean error and the "
            "explained shares of columns refer to complete rows."
            if measured
            else "They are on the map, but distances need every cell and leave them out."
        )
        yield f"{_count(missing, 'row has', 'rows have')} missing cells. {about}"


def _crowded_edges(study: Study) -> Iterator[str]:
    drawing = study.fitted.latent.drawing
    box = None if drawing is None else drawing.box
    if box is None:
        return
    low, high = np.asarray(box.low), np.asarray(box.high)
    margin = _EDGE_WIDTH * (high - low)
    near = ((low + margin >= study.Z) | (high - margin <= study.Z)) & ~np.asarray(box.periodic)
    share = float(near.any(axis=1).mean())
    if _NOTED_SHARE < share <= _CROWDED_SHARE and study.map_errors is None:
        yield (
            f"{percent(share)} of the rows lie within {percent(_EDGE_WIDTH)} of the edge of the map. Some may lie "
            "beyond it, where the map shows them nearer together than they are."
        )
    if share > _CROWDED_SHARE:
        # Means of neighbourhoods with one side only are drawn inwards, so that every open map of this kind ends early.
        why = (
            "the surface may be too short for them, or bend too little to follow them."
            if study.map_errors is None
            else "a self-organising map is drawn inwards at its edge and ends before the rows do. Where that is in the "
            "way, a narrower width or more nodes reach farther, a torus or sphere has no edge, and a GTM reaches it."
        )
        yield (
            f"{percent(share)} of the rows lie at the edge of the map, where it ends and cannot tell them apart: {why}"
        )


def _warnings(study: Study) -> Iterator[str]:
    yield from study.heard


CHECKS: tuple[Callable[[Study], Iterator[str]], ...] = (
    _unsettled_training,
    _folds,
    _branches,
    _far_rows,
    _unlike_spreads,
    _separate_groups,
    _constant,
    _flat,
    _crowded_edges,
    _gaps,
    _warnings,
)
"""All checks, in the order in which their remarks are told."""


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]
