"""Whether rows lie along one curve at all, told from how they lie about the one that was fitted.

No method for a single curve fails where there is none: it returns a curve through a blob, across a gap or out and back
along a branch. What gives it away is measured here; the limits were set on simulated rows, see
``benchmarks/curve_doubts.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prinfold._typing import BoolArray, FloatArray
from prinfold.curves.arc_curve import ArcCurve
from prinfold.exceptions import Advice, Message
from prinfold.numerics.polylines import nearest_on_polyline, segments_of

_FEWEST = 20
"""Fewest rows that say something about where there are none."""

_GAP = 0.25
"""Share of the length without a row from which on the rows are in pieces; chance leaves less of 20 rows or more."""

_FAR = 4.0
"""Distance, in units of what is usual along the curve, from which on a row does not belong to it."""

_VISIBLE = 0.02
"""Least such distance, as a share of the length: what is nearer is no structure that was missed."""

_MANY = 0.03
"""Share of the rows that are far from the curve from which on that is no chance: 0.01 to 0.07 for heavy tails."""

_CROWDED = 0.5
"""Share of far rows over the share of the length they project on, above which they stand in one place."""

_WIDE = 0.16
"""Variance across over variance along, from which on rows fill a surface: a Gaussian of 1 to 2.5."""

_STRANDS = 4.5
"""Distance between two parts of a curve, in deviations across: rows spread evenly between them leave 3.5."""

_DOUBLED = 0.2
"""Share of a curve with another part of it as near as that, from which on it winds through its own noise."""

_ELSEWHERE = 0.75 * np.pi
"""Way along the curve over distance, from which on two points are on different parts of it; π/2 across a circle."""

_MEETING = 6.0
"""Distance between the ends of an open curve, in deviations across, below which it may be meant to close."""

_ROUND, _TOUCHING = 0.15, 0.03
"""The same in shares of the length: no ends that are farther apart meet, and all that are nearer do."""

_TURN = 0.75
"""Angle by which no curve through the middle of rows turns from one row to the next: 43 degrees."""

_JOINED, _STREWN = 0.1, 100
"""Share of the length along which it does, from which on it joins rows, and rows from which on that is said: a curve
through a few has to turn between them."""

_SAMPLE = 500
"""Rows that the deviation across is told from; points that parts of the curve are."""


class Footing(NamedTuple):
    """How rows lie about a curve: ``z`` (n,) along it, their ``distance`` (n,) and ``share`` (n,) of the weight.

    ``across`` is the largest standard deviation across the curve in any direction.
    """

    z: FloatArray
    distance: FloatArray
    share: FloatArray
    across: float


def doubt(curve: ArcCurve, rows: FloatArray, weight: FloatArray) -> str:
    """What speaks most against a single curve through rows (n, D) with weights (n,), in words; often nothing."""
    if len(rows) < _FEWEST or curve.length == 0:
        return ""
    footing = footing_of(curve, rows, weight)
    looks = (_gap, _astray, _winding, _loop, _joining, _wide)
    return next((words for words in (look(curve, footing) for look in looks) if words), "")


def footing_of(curve: ArcCurve, rows: FloatArray, weight: FloatArray) -> Footing:
    """How rows lie about the curve."""
    feet = nearest_on_polyline(rows, curve.vertices, curve.closed)  # between vertices curves are straight enough
    z = curve.knots[feet.segment] + feet.share * np.diff(curve.knots, append=curve.length)[feet.segment]
    some = slice(None, None, -(-len(rows) // _SAMPLE))
    begin, step = segments_of(curve.vertices, curve.closed)
    segment = feet.segment[some]
    residual = rows[some] - begin[segment] - feet.share[some, None] * step[segment]
    part = np.sqrt(weight[some] / weight[some].sum())
    across = float(np.linalg.norm(part[:, None] * residual, 2))
    return Footing(z, np.sqrt(feet.squared), weight / weight.sum(), across)


# ------------------------------------------------------------------------------------------- what can be wrong


def _gap(curve: ArcCurve, footing: Footing) -> str:
    """Rows in pieces, or one far from all others."""
    order = np.argsort(footing.z)
    z = footing.z[order]
    gaps = np.diff(z, append=z[0] + curve.length) if curve.closed else np.diff(z)
    widest = int(gaps.argmax())
    if gaps[widest] < _GAP * curve.length:
        return ""
    begin, end = z[widest], z[widest] + gaps[widest]
    before = float(footing.share[order[: widest + 1]].sum())
    sides = "" if curve.closed else f", with {before:.1%} of the rows before it and {1 - before:.1%} after it"
    return (
        f"from {begin:.4g} to {end:.4g}, {gaps[widest] / curve.length:.0%} of its length, the curve runs where there "
        f"are no rows{sides}: they are in pieces, or some are outliers; look at those, or take DensityRidge or "
        f"GTMMixture"
    )


def _loop(curve: ArcCurve, footing: Footing) -> str:
    """An open curve that comes back to where it began."""
    if curve.closed:
        return ""
    reach = np.linspace(0.0, 0.1 * curve.length, _SAMPLE // 10)[:, None]
    apart = float(cdist(curve.point(reach), curve.point(curve.length - reach)).min())
    near = max(_MEETING * footing.across, _TOUCHING * curve.length)
    if apart > min(near, _ROUND * curve.length):
        return ""
    return Message(
        f"the ends of the curve come within {apart:.3g} of each other, and it is {curve.length:.4g} long: rows seem to "
        "lie along a loop",
        Advice("closed", True),
        Advice("closed", "auto", "{}"),
    )


def _joining(curve: ArcCurve, footing: Footing) -> str:
    """A curve that turns from row to row."""
    z = np.unique(footing.z)
    if len(z) < _STREWN:
        return ""
    chords = np.diff(curve.point(z[:, None]), axis=0)  # from row to row, where a rough walk is no rougher than they are
    size = np.linalg.norm(chords, axis=1)
    cosine = np.einsum("ij,ij->i", chords[1:], chords[:-1]) / np.maximum(size[1:] * size[:-1], np.finfo(float).tiny)
    sharp = np.arccos(np.clip(cosine, -1.0, 1.0)) > _TURN
    joined = float((size[1:] + size[:-1])[sharp].sum()) / (2.0 * curve.length)
    if joined < _JOINED:
        return ""
    return (
        f"along {joined:.0%} of its length the curve turns by more than {np.degrees(_TURN):.0f}° from one row to the "
        f"next: it joins rows that are strewn about, in place of running through their middle; leave those out, smooth "
        f"more, or take DensityRidge"
    )


def _astray(curve: ArcCurve, footing: Footing) -> str:
    """Rows that the curve does not come to, in one place: a branch, or what lies beyond an end."""
    n_bins = int(np.clip(len(footing.z) // 10, 5, 50))
    bins = np.minimum((footing.z / curve.length * n_bins).astype(int), n_bins - 1)
    usual = float(np.median([np.median(footing.distance[bins == j]) for j in np.unique(bins)]))
    far = footing.distance > max(_FAR * usual, _VISIBLE * curve.length)
    share = float(footing.share[far].sum())
    if share < _MANY:
        return ""
    mass = np.bincount(bins[far], footing.share[far], n_bins)
    places = mass.sum() ** 2 / (mass @ mass) / n_bins  # share of the length, were the rows even there and nowhere else
    if share < _CROWDED * places:
        return ""
    if float(footing.share[far & _at_ends(curve, footing)].sum()) > share / 2:
        return (
            f"{share:.0%} of the rows lie beyond the ends of the curve, farther than {_FAR:g} times what is usual "
            f"along it: it ends too early; set a wider bandwidth or another start, or take PrincipalCurve"
        )
    middle = float(np.median(footing.z[far]))
    return (
        f"{share:.0%} of the rows lie farther from the curve than {_FAR:g} times what is usual along it, and crowd "
        f"about arc length {middle:.4g}: the structure branches or crosses itself there, which DensityRidge follows, "
        f"or the curve is too stiff"
    )


def _winding(curve: ArcCurve, footing: Footing) -> str:
    """A curve that lies beside itself, nearer than rows scatter across it."""
    z = np.linspace(0.0, curve.length, _SAMPLE, endpoint=not curve.closed)[:, None]
    points = curve.point(z)
    way = np.abs(z - z.T)
    way = np.minimum(way, curve.length - way) if curve.closed else way
    apart = cdist(points, points)
    beside = (way > _ELSEWHERE * apart) & (apart < _STRANDS * footing.across)
    doubled = float(beside.any(axis=1).mean())
    if doubled < _DOUBLED:
        return ""
    return (
        f"along {doubled:.0%} of its length the curve lies beside another part of itself, nearer than {_STRANDS:g} "
        f"times the {footing.across:.3g} that rows scatter across it: it winds through rows that fill a surface, or "
        f"goes out and back along a branch; smooth more, or take GTM(2) for a surface and DensityRidge for branches"
    )


def _wide(curve: ArcCurve, footing: Footing) -> str:
    """Rows that scatter across the curve about as much as along it."""
    mean = float(footing.share @ footing.z)
    along = curve.length**2 / 12 if curve.closed else float(footing.share @ (footing.z - mean) ** 2)
    if footing.across**2 < _WIDE * along:
        return ""
    return (
        f"rows scatter by {footing.across:.3g} across the curve and by {np.sqrt(along):.3g} along it: it is too "
        f"stiff or too short, or they do not lie along a curve; take GTM(2) for a surface, DensityRidge for branches"
    )


def _at_ends(curve: ArcCurve, footing: Footing) -> BoolArray:
    if curve.closed:
        return np.zeros(len(footing.z), dtype=bool)
    least = 1e-9 * curve.length
    return np.asarray((footing.z <= least) | (footing.z >= curve.length - least))
