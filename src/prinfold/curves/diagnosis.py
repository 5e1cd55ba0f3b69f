"""Signs that rows do not lie along one curve, from their positions about the one that was fitted; the rules are ours.

No method for a single curve fails where there is none: it returns a curve through a blob, across a gap or out and back
along a branch. The signs of that are measured here; the limits were set on simulated rows, see
``benchmarks/curves/curve_doubts.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prinfold._typing import BoolArray, FloatArray
from prinfold.curves.arc_curve import ArcCurve, arc_lengths
from prinfold.curves.starts import loop
from prinfold.curves.winding import ELSEWHERE_RATIO, WOUND_RATIO, winds
from prinfold.exceptions import Advice, Message, percent
from prinfold.numerics.polylines import nearest_on_polyline, segments_of

_FEWEST_ROWS = 20
"""Fewest rows for gaps between them to be meaningful."""

_GAP_SHARE = 0.25
"""Share of the length without a row from which on the rows are in pieces; chance leaves less of 20 rows or more."""

_FAR_FACTOR = 4.0
"""Distance, in units of what is usual along the curve, from which on a row does not belong to it."""

_FAR_SHARE_OF_LENGTH = 0.02
"""Least such distance, as a share of the length: what is nearer is no structure that was missed."""

_FAR_ROWS_SHARE = 0.03
"""Share of the rows that are far from the curve from which on that is no chance: 0.01 to 0.07 for heavy tails."""

_CROWDED_RATIO = 0.5
"""Share of far rows over the share of the length they project on, above which they stand in one place."""

_WIDE_VARIANCE_RATIO = 0.16
"""Variance across over variance along, from which on rows fill a surface: a Gaussian of 1 to 2.5."""

_STRAND_DEVIATIONS = 4.5
"""Distance between two parts of a curve, in deviations across: rows spread evenly between them leave 3.5."""

_DOUBLED_SHARE = 0.2
"""Share of a curve with another part of it as near as that, from which on it winds through its own noise."""

_MEETING_DEVIATIONS = 6.0
"""Distance between the ends of an open curve, in deviations across, below which it may be meant to close."""

_MEETING_SHARE, _TOUCHING_SHARE = 0.15, 0.03
"""Distances between the ends in shares of the length: none that are farther apart than the first meet, and all that
are nearer than the second do."""

_SHARP_TURN = 0.75
"""Angle by which no curve through the middle of rows turns from one row to the next: 43 degrees."""

_JOINED_SHARE, _JOINED_FROM_ROWS = 0.1, 100
"""Share of the length with such turns from which on a curve joins rows, and number of rows from which on this is
checked: a curve through a few rows has to turn between them."""

_LEAST_LOOP_PERSISTENCE = 2.65
"""Persistence of a loop of the rows from which on a curve that winds makes several passes round it: of passes that vary
by a tenth to a fifth it is 3 to 6, of six that vary by 0.3 only 2.1 to 2.4, and of spirals 1.5 to 2.6."""

_MOST_UNEXPLAINED_SHARE = 0.2
"""Most of the variance that such a loop may leave: passes round it leave 0.04 to 0.15, turns of a helix 0.3."""

_LOOP_ROWS = 2000
"""Rows among which a loop is sought, at most."""

_SAMPLE_SIZE = 500
"""Rows from which the deviation across is taken, and points on the curve at which it is compared with itself."""


class RowsAboutCurve(NamedTuple):
    """Positions of rows about a curve: ``z`` (n,) along it, their ``distance`` (n,) and ``share`` (n,) of the weight.

    ``across`` is the largest standard deviation across the curve in any direction.
    """

    z: FloatArray
    distance: FloatArray
    share: FloatArray
    across: float


def misfit(curve: ArcCurve, rows: FloatArray, weight: FloatArray) -> str:
    """Message about the most serious misfit of a curve to rows (n, D) with weights (n,); "" if there is none."""
    if len(rows) < _FEWEST_ROWS or curve.length == 0:
        return ""
    about = rows_about_curve(curve, rows, weight)
    passes = _check_repeated_rounds(curve, rows, weight, about)
    if passes:
        return passes
    checks = (_check_gap, _check_far_rows, _check_winding, _check_loop, _check_turns_at_rows, _check_wide)
    return next((words for words in (check(curve, about) for check in checks) if words), "")


def rows_about_curve(curve: ArcCurve, rows: FloatArray, weight: FloatArray) -> RowsAboutCurve:
    """Positions of rows (n, D) with weights (n,) along and across a curve."""
    feet = nearest_on_polyline(rows, curve.vertices, curve.closed)  # between vertices curves are straight enough
    z = arc_lengths(curve, feet)
    some = slice(None, None, -(-len(rows) // _SAMPLE_SIZE))
    begin, step = segments_of(curve.vertices, curve.closed)
    segment = feet.segment[some]
    residual = rows[some] - begin[segment] - feet.share[some, None] * step[segment]
    part = np.sqrt(weight[some] / weight[some].sum())
    across = float(np.linalg.norm(part[:, None] * residual, 2))
    return RowsAboutCurve(z, np.sqrt(feet.squared), weight / weight.sum(), across)


# ------------------------------------------------------------------------------------------- what can be wrong


def _check_repeated_rounds(curve: ArcCurve, rows: FloatArray, weight: FloatArray, about: RowsAboutCurve) -> str:
    """Message about an open curve that winds several times round a loop of the rows; "" if it does not.

    Of a spiral or a helix, which wind too, no loop among the rows persists as long, or none is near all of them.
    """
    mean = np.average(rows, axis=0, weights=weight)
    variance = float(np.average(np.square(rows - mean).sum(axis=1), weights=weight))
    beside = _doubled(curve, about) >= _DOUBLED_SHARE or winds(curve.vertices, False, about.across, np.sqrt(variance))
    if curve.closed or not beside:
        return ""
    some = slice(None, None, -(-len(rows) // _LOOP_ROWS))
    start = next((each for each in loop(rows[some], weight[some]) if each.persistence > _LEAST_LOOP_PERSISTENCE), None)
    if start is None:
        return ""
    ring = ArcCurve.through(start.vertices, True)
    left = float(np.average(ring.nearest(rows[some]).squared_distance, weights=weight[some]))
    if curve.length < WOUND_RATIO * ring.length or left > _MOST_UNEXPLAINED_SHARE * variance:
        return ""
    return Message(
        f"The curve is {curve.length / ring.length:.1f} times as long as a loop that the rows lie along, and runs "
        "beside itself. The rows look like several passes round one closed loop, each a little shifted.",
        Advice("closed", "auto", "set {}, which finds the loop"),
    )


def _check_gap(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about a gap: rows in pieces, or one far from all others; "" if there is none."""
    order = np.argsort(about.z)
    z = about.z[order]
    gaps = np.diff(z, append=z[0] + curve.length) if curve.closed else np.diff(z)
    widest = int(gaps.argmax())
    if gaps[widest] < _GAP_SHARE * curve.length:
        return ""
    begin, end = z[widest], z[widest] + gaps[widest]
    before = float(about.share[order[: widest + 1]].sum())
    shares = f"{percent(before, 1)} of the rows before it and {percent(1 - before, 1)} after it"
    sides = "" if curve.closed else f", with {shares}"
    return (
        f"the curve runs where there are no rows from {begin:.4g} to {end:.4g}, {percent(gaps[widest] / curve.length)} "
        f"of its length{sides}. The rows are in pieces, or some are outliers. Look at those, or take DensityRidge or "
        "GTMMixture"
    )


def _check_loop(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about an open curve whose ends meet; "" if they do not."""
    if curve.closed:
        return ""
    reach = np.linspace(0.0, 0.1 * curve.length, _SAMPLE_SIZE // 10)[:, None]
    apart = float(cdist(curve.point(reach), curve.point(curve.length - reach)).min())
    near = max(_MEETING_DEVIATIONS * about.across, _TOUCHING_SHARE * curve.length)
    if apart > min(near, _MEETING_SHARE * curve.length):
        return ""
    return Message(
        f"the ends of the curve come within {apart:.3g} of each other, and it is {curve.length:.4g} long: rows seem to "
        "lie along a loop",
        Advice("closed", True),
        Advice("closed", "auto", "{}"),
    )


def _check_turns_at_rows(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about a curve that turns sharply between successive rows; "" if it does not."""
    z = np.unique(about.z)
    if len(z) < _JOINED_FROM_ROWS:
        return ""
    chords = np.diff(curve.point(z[:, None]), axis=0)  # from row to row, where a rough walk is no rougher than they are
    size = np.linalg.norm(chords, axis=1)
    cosine = np.einsum("ij,ij->i", chords[1:], chords[:-1]) / np.maximum(size[1:] * size[:-1], np.finfo(float).tiny)
    sharp = np.arccos(np.clip(cosine, -1.0, 1.0)) > _SHARP_TURN
    joined = float((size[1:] + size[:-1])[sharp].sum()) / (2.0 * curve.length)
    if joined < _JOINED_SHARE:
        return ""
    return (
        f"the curve turns by more than {np.degrees(_SHARP_TURN):.0f}° from one row to the next along {percent(joined)} "
        "of its length. It joins scattered rows instead of running through their middle. Leave those out, smooth more, "
        "or take DensityRidge"
    )


def _check_far_rows(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about many rows far from the curve in one place, at a branch or beyond an end; "" if there are few."""
    n_bins = int(np.clip(len(about.z) // 10, 5, 50))
    bins = np.minimum((about.z / curve.length * n_bins).astype(int), n_bins - 1)
    usual = float(np.median([np.median(about.distance[bins == j]) for j in np.unique(bins)]))
    far = about.distance > max(_FAR_FACTOR * usual, _FAR_SHARE_OF_LENGTH * curve.length)
    share = float(about.share[far].sum())
    if share < _FAR_ROWS_SHARE:
        return ""
    mass = np.bincount(bins[far], about.share[far], n_bins)
    places = mass.sum() ** 2 / (mass @ mass) / n_bins  # share of the length, were the rows even there and nowhere else
    if share < _CROWDED_RATIO * places:
        return ""
    if float(about.share[far & _at_ends(curve, about)].sum()) > share / 2:
        return (
            f"{percent(share)} of the rows lie beyond the ends of the curve, farther than {_FAR_FACTOR:g} times the "
            "usual distance from it. It ends too early. Set a wider bandwidth or another start, or take PrincipalCurve"
        )
    middle = float(np.median(about.z[far]))
    return (
        f"{percent(share)} of the rows lie farther than {_FAR_FACTOR:g} times the usual distance from the curve, most "
        f"of them about arc length {middle:.4g}. The data branch or cross there, or the curve is too stiff. Take "
        "DensityRidge, which follows branches, or smooth less"
    )


def _check_winding(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about a curve with two parts nearer to each other than rows scatter across it; "" if there are none."""
    doubled = _doubled(curve, about)
    if doubled < _DOUBLED_SHARE:
        return ""
    return (
        f"the curve doubles back over {percent(doubled)} of its length: two parts of it lie side by side, within "
        f"{_STRAND_DEVIATIONS:g} times the scatter of the rows ({about.across:.3g}). The data look branched or "
        "two-dimensional. Try DensityRidge for branches, GTM(2) for a surface, or smooth more"
    )


def _doubled(curve: ArcCurve, about: RowsAboutCurve) -> float:
    """Share of a curve with another part of it beside it, nearer than a few deviations of rows across."""
    z = np.linspace(0.0, curve.length, _SAMPLE_SIZE, endpoint=not curve.closed)[:, None]
    points = curve.point(z)
    way = np.abs(z - z.T)
    way = np.minimum(way, curve.length - way) if curve.closed else way
    apart = cdist(points, points)
    beside = (way > ELSEWHERE_RATIO * apart) & (apart < _STRAND_DEVIATIONS * about.across)
    return float(beside.any(axis=1).mean())


def _check_wide(curve: ArcCurve, about: RowsAboutCurve) -> str:
    """Message about rows that scatter across the curve nearly as much as along it; "" if they do not."""
    mean = float(about.share @ about.z)
    along = curve.length**2 / 12 if curve.closed else float(about.share @ (about.z - mean) ** 2)
    if about.across**2 < _WIDE_VARIANCE_RATIO * along:
        return ""
    return (
        f"rows scatter by {about.across:.3g} across the curve and by {np.sqrt(along):.3g} along it: it is too "
        f"stiff or too short, or they do not lie along a curve; take GTM(2) for a surface, DensityRidge for branches"
    )


def _at_ends(curve: ArcCurve, about: RowsAboutCurve) -> BoolArray:
    if curve.closed:
        return np.zeros(len(about.z), dtype=bool)
    least = 1e-9 * curve.length
    return np.asarray((about.z <= least) | (about.z >= curve.length - least))
