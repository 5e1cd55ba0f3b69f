"""Diagnostics of a table before a surface is fitted: unlike units, separate groups, a row that dominates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, Message, percent

UNLIKE_SPREADS = 10.0
"""How many times as far as most others a column may spread before they should be put on one scale."""

_NARROW_QUANTILE = 0.25
"""Quantile of the spreads that stands for most of the columns: one that hardly varies is no reason to scale others."""

_GROUP_SAMPLE_ROWS = 500
"""Rows, spread evenly through the table, among which separate groups are sought: each costs as many distances."""

_FEWEST_GROUP_ROWS = 10
"""Fewest of those rows that are a group, and no outliers."""

_FEWEST_ROWS_TO_WARN, _WARN_SCATTER_SHARE, _WARN_FAR_RATIO = 20, 0.25, 5.0
"""Among how many rows one is worth a warning that holds so much of their scatter, and lies so many times as far from
their mean as nine tenths of them do. Of 300 rows of a swiss roll one with 0.38 of the scatter leaves the others 0.9 of
the axes of a GTM and a quarter of one of a UKR; no simulator, no table that is shipped and no normal sample has any."""

_GAP_RATIO = 3.0
"""Distance between groups over the widest gap within them from which on they are separate."""


class UnlikeSpreads(NamedTuple):
    """Numbers of the widest column and of a narrow one, and how many times as far the first spreads."""

    widest: int
    narrow: int
    ratio: float


def unlike_spreads(spreads: FloatArray) -> UnlikeSpreads | None:
    """The columns by which standard deviations (D,) differ more than tenfold; None where they do not.

    The widest is compared with the one at the lower quartile. Columns that do not vary do not count.
    """
    there = np.flatnonzero(spreads > 0)
    if len(there) < 2:
        return None
    low = float(np.quantile(spreads[there], _NARROW_QUANTILE, method="lower"))
    widest = there[int(np.argmax(spreads[there]))]
    narrow = there[int(np.argmin(np.abs(spreads[there] - low)))]
    ratio = float(spreads[widest]) / low
    return UnlikeSpreads(int(widest), int(narrow), ratio) if ratio > UNLIKE_SPREADS else None


_METHODS = (
    r"pca?|ica?|dca?|lda?|lsi|nmf|mds|svd|umap|t-?sne|phate|isomap|diff(usion )?map|scvi|principal component|"
    r"component|latent|embedding|dim(ension)?"
)
_COMPONENTS = re.compile(rf"(x[-_ .]?)?({_METHODS})[-_ .]?\d+|x_\w+?[_ ]\d+", re.IGNORECASE)
"""Names of components, and of the columns of an embedding in an AnnData object."""

_BASE = (
    r"[pnuµμmcdk]?m|[nuµμmk]?g|[nuµμm]?s|m?K|[nuµμmk]?V|[pnuµμmk]A|[kMGT]?Hz|[mk]N|[hkMGm]?Pa|k?J|[mkMG]W|[nuµμm]T|[kM]?Ω|"
    r"k?ohm|[uµμmcd][lL]|[kMG]?eV|m?bar|k?Da|[nuµμm]M|[nuµμmk]?mol|Å|°|°[CF]|deg[CF]?|rad|sec|hours|days|weeks|months|"
    r"years|inch|inches|ft|lbs?|oz|psi|atm|mmHg|kcal|rpm|ppm|ppb|dBm?|pct|percent|%|usd|eur|gbp|px|pixels|cpm|tpm|fpkm|"
    r"mph|kph"
)
"""Units but those that are as often something else at the end of a name, such as min, in, T and M."""

_UNIT_WORD = (
    rf"(?:{_BASE})(?:\^?-?[123²³])?(?:(?: ?[/·*] ?|_per_| per )(?:{_BASE}|[lLhd]|min|day|hour)(?:\^?-?[123²³])?)*"
)
_UNIT = re.compile(rf".*?[(\[]\s*(?P<any>[^()\[\]]+?)\s*[)\]]\s*|.+?(?:[\s_]|, *|\. ?)(?P<word>{_UNIT_WORD})")
"""A unit in brackets, whatever it is, or one that is known at the end of a name."""

_POSITION = re.compile(rf"([+-]?[\d.]+(?:e[+-]?\d+)?) ?(?:{_UNIT_WORD})?", re.IGNORECASE)


_FEWEST_COUNT_COLUMNS = 10
"""Columns from which on whole numbers that vary as counts do are taken for counts of one kind of thing."""

_LEAST_COUNT_DISPERSION = 0.5
"""Least variance over mean of a count: 1 where things are counted independently, more where they come in groups."""


def one_unit(names: Sequence[str], rows: FloatArray) -> str | None:
    """Reason to take columns for one unit, by their names or their numbers; None where nothing says so.

    Names tell components, positions on a scale, and a unit in each; numbers (n, D) tell counts.
    """
    stems = {name.strip().rstrip("0123456789").lower() for name in names}
    if len(stems) == 1 and all(_COMPONENTS.fullmatch(name.strip()) for name in names):
        return "the columns are components, whose standard deviations are meant to differ"
    if _are_positions(names):
        return "the names of the columns are numbers, as in a spectrum or a series in one unit"
    found = [_UNIT.fullmatch(name.strip()) for name in names]
    units = {each and (each["any"] or each["word"]) for each in found}
    if len(units) == 1 and None not in units:
        return f"all columns are in {units.pop()}"
    if _are_counts(rows):
        return "the columns are counts, all in one unit"
    return None


def _are_counts(rows: FloatArray) -> bool:
    """Whether columns are counts: many, of whole numbers from 0 on, mostly with a 0 and no narrower than counts are."""
    rows = rows[:, ~np.isnan(rows).all(axis=0)]
    there = rows[np.isfinite(rows)]
    if rows.shape[1] < _FEWEST_COUNT_COLUMNS or (there < 0).any() or (there != np.round(there)).any():
        return False
    several = rows[:, np.nanmax(rows, axis=0) > 1]  # yes or no is no count
    if several.shape[1] < _FEWEST_COUNT_COLUMNS:
        return False
    dispersion = np.nanvar(several, axis=0) / np.nanmean(several, axis=0)
    with_none = np.nanmin(several, axis=0) == 0
    return bool(with_none.mean() > 0.5 and (dispersion >= _LEAST_COUNT_DISPERSION).mean() > 0.5)


def _are_positions(names: Sequence[str]) -> bool:
    """Whether names are numbers that rise or fall, with a unit or without, and do not merely count the columns."""
    found = [_POSITION.fullmatch(name.strip()) for name in names]
    try:
        numbers = [float(each[1]) for each in found if each is not None]
    except ValueError:
        return False
    steps = np.diff(numbers)
    counts = bool((steps == 1.0).all()) and numbers[:1] in ([0.0], [1.0])
    return len(numbers) == len(names) and not counts and bool((steps > 0).all() or (steps < 0).all())


def spreads_note(rows: FloatArray, names: Sequence[str]) -> Message | None:
    """A message about columns of rows (n, D) whose standard deviations differ more than tenfold.

    None where they do not, or where the names or the numbers say that all are in one unit.
    """
    found = unlike_spreads(np.nanstd(rows, axis=0))
    if found is None or one_unit(names, rows) is not None:
        return None
    wide, narrow = names[found.widest], names[found.narrow]
    return Message(
        f"The standard deviation of {wide!r} is {found.ratio:.3g} times that of {narrow!r}. Distances depend on the "
        "widest columns, and the others hardly count.",
        Advice("StandardScaler", words="unless all columns are in the same units, standardise them first ({})"),
    )


def separate_groups(rows: FloatArray) -> list[int]:
    """Sizes of the groups that rows (n, D) fall into, largest first, in a sample of them; one where they hang together.

    The longest edges of the minimum spanning tree part the groups: those three times as long as all edges within.
    Lone rows are no groups.
    """
    some = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _GROUP_SAMPLE_ROWS)).astype(int))]
    apart = pdist(some)
    if not np.isfinite(apart).all():
        return [len(some)]
    merges = linkage(apart, "single")  # the edges of the tree, shortest first, each with the size that it makes
    length = merges[:, 2]
    wide = np.flatnonzero((length[1:] > _GAP_RATIO * length[:-1]) & (length[:-1] > 0)) + 1
    for first in wide:
        sizes = _sizes_before(merges, int(first))
        large = sizes[sizes >= _FEWEST_GROUP_ROWS]
        if len(large) > 1 and large.sum() > 0.9 * len(some):
            return [int(size) for size in large]
    return [len(some)]


def _sizes_before(merges: FloatArray, step: int) -> FloatArray:
    """Sizes of the groups of several rows that there are before a step of single linkage, largest first."""
    n = len(merges) + 1
    merged = np.zeros(n + step, dtype=bool)
    merged[merges[:step, :2].astype(int).ravel()] = True
    return np.asarray(np.sort(merges[:step, 3][~merged[n:]])[::-1])


def heavy_row_note(squares: FloatArray, label: Callable[[int], str]) -> Message | None:
    """A message about one row far from all others, given squared distances from their mean (n,); None where none is."""
    row, total = int(squares.argmax()), float(squares.sum())
    share = float(squares[row] / total) if total > 0 else 0.0
    far = squares[row] > _WARN_FAR_RATIO**2 * np.quantile(squares, 0.9)
    if len(squares) < _FEWEST_ROWS_TO_WARN or not share > _WARN_SCATTER_SHARE or not far:
        return None
    name = label(row)
    return Message(
        f"{name[0].upper()}{name[1:]} makes up {percent(share, 1)} of the variance of all rows, so that a part of the "
        "map is its own. Check it, and leave it out if it is a mistake."
    )


def groups_note(rows: FloatArray) -> Message | None:
    """A message about rows (n, D) that fall into separate groups; None where they hang together."""
    sizes = separate_groups(rows) if len(rows) >= 2 * _FEWEST_GROUP_ROWS else [len(rows)]
    if len(sizes) < 2:
        return None
    shares = ", ".join(f"{percent(size / sum(sizes))}" for size in sizes)
    return Message(
        f"The rows fall into {len(sizes)} separate groups ({shares}). A single surface has to cross the empty space "
        f"between them.",
        f"take GTMMixture with {len(sizes)} maps, or fit each group on its own",
    )
