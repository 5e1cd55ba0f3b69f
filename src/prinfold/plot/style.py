"""Style of every picture: axes, palettes, points, fields and their scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import MissingExtraError
from prinfold.files.atomic import readable
from prinfold.latent.drawing import CurveAxis, LatentLayout, Plane
from prinfold.plot.data.surfaces import Field, limits, round_factors
from prinfold.plot.inputs import RowClasses

try:
    import matplotlib  # noqa: F401, ICN001
except ImportError as error:
    raise MissingExtraError(
        'drawing needs matplotlib, which is not installed; get it with: pip install "prinfold[plot]"'
    ) from error

from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1f2328"
SOFT = "#6e7781"
PALE = "#c9ced6"
ACCENT = "#0072B2"
SIGNAL = "#D55E00"

PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FBF", "#1f2328"),
    *("#882255", "#8C8C1A", "#17BECF", "#8C564B", "#FF6F91", "#1B5E20", "#7F8FA6", "#C0CA33"),
)
"""The first eight after Okabe and Ito: told apart by readers with any of the common colour deficiencies."""

MARKERS = ("o", "s", "^", "D", "v", "<", ">", "p", "h")
"""As many as do not divide the palette evenly, so that colour and shape together stay distinct for long."""

_LARGE_COORDINATE = 1e5
"""Coordinates from which on numbers at the ticks would run into each other, or be given a common factor."""

_LAYOUT_PASSES = 2
"""After which, and one more on drawing, matplotlib's layout of axes with a fixed aspect is settled."""

_SIZES = {"s": 0.85, "D": 0.75, "^": 1.15, "v": 1.15, "<": 1.15, ">": 1.15, "p": 1.1, "h": 1.05}
"""Squares and diamonds look larger than discs of their area, triangles smaller."""

PAPER = LinearSegmentedColormap.from_list("prinfold_paper", ["#f7f8fa", "#dfe3e8", "#b4bcc7", "#7f8a98"])
"""For backgrounds: light enough that every colour of the palette stands out on it."""

DEEP = LinearSegmentedColormap.from_list("prinfold_deep", ["#f4f7fa", "#c6dbec", "#6fa8d0", "#2b6ea6", "#0b3c68"])
"""For fields that are the subject themselves."""


def color(index: int) -> str:
    """The colour of a class or line by its number; after the last they begin again."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """The marker of a class or line by its number, in the same way."""
    return MARKERS[index % len(MARKERS)]


def axes_for(ax: Axes | None, depth: int = 2, size: tuple[float, float] = (6.4, 5.2)) -> Any:
    """The given axes, or new ones in a figure of their own."""
    if ax is None:
        from matplotlib import pyplot as plt  # chooses a backend, so only when a figure is wanted

        options = {"projection": "3d"} if depth == 3 else {}
        _, ax = plt.subplots(figsize=size, layout="constrained", subplot_kw=options)
    tidy(ax)
    return ax


def finish(ax: Any, *, settle: bool, heading: str = "") -> Axes:
    """Return the axes; a figure of our own gets its heading, and its layout is computed first."""
    if settle:
        if heading:
            heading_over(ax.figure, heading)
        # One pass takes the axes for wider than their aspect leaves them, and labels would be cut off on saving.
        for _ in range(_LAYOUT_PASSES):
            ax.figure.get_layout_engine().execute(ax.figure)
    finished: Axes = ax
    return finished


def heading_over(figure: Any, words: str) -> None:
    """A heading over the left edge of a whole figure."""
    figure.suptitle(plain_text(words), x=0.01, ha="left", fontsize=10.5, color=INK)


def is_solid(ax: Axes | None) -> bool:
    """Whether axes have three dimensions."""
    return ax is not None and ax.name == "3d"


def tidy(ax: Any) -> None:
    """Give axes thin soft spines and small ticks."""
    ax.tick_params(labelsize=8.5, color=PALE, labelcolor=SOFT, width=0.8, length=3)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_size(9.5)
        label.set_color(INK)
    if is_solid(ax):
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.pane.set_facecolor("white")
            axis.pane.set_edgecolor(PALE)
            axis.line.set_color(PALE)
            axis._axinfo["grid"].update(color="#eceff2", linewidth=0.6)
            axis.labelpad = 9  # clear of the tick labels, however they are turned
        ax.zaxis.label.set_size(9.5)
        return
    for name, spine in ax.spines.items():
        spine.set_visible(name in {"left", "bottom"})
        spine.set_color(PALE)
        spine.set_linewidth(0.8)


def scale_of(values: FloatArray) -> str:
    """A logarithmic scale where values differ by much more than they would on a plain one."""
    return "log" if 0 < 10.0 * values.min() < values.max() else "linear"


def plain_log(axis: Any) -> None:
    """A logarithmic axis labelled with plain round numbers."""
    low, high = np.log(axis.get_view_interval())
    axis.set_major_locator(FixedLocator(round_factors(low, high).tolist()))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def whole_numbers(ax: Any) -> None:
    """Axes of large coordinates, such as metres on a map, with a few whole numbers in place of a common factor."""
    for axis in (ax.xaxis, ax.yaxis):
        if _LARGE_COORDINATE <= np.abs(axis.get_view_interval()).max() < 1e3 * _LARGE_COORDINATE:
            axis.set_major_locator(MaxNLocator(4))
            axis.set_major_formatter("{x:.0f}")


def plain_text(words: str) -> str:
    """Words of the data as they are: a dollar in them begins no formula, and matplotlib stops at lone surrogates."""
    return readable(words).replace("$", r"\$")


def legend_text(words: str) -> str:
    """Words of the data for a legend, which leaves out those that begin with an underscore."""
    return plain_text(f" {words}" if words.startswith("_") else words)


def title(ax: Any, words: str) -> None:
    """A heading over the left edge."""
    ax.set_title(plain_text(words), loc="left", fontsize=10.5, color=INK, pad=8)


# ------------------------------------------------------------------------------------------------ the frame


def frame(ax: Any, layout: LatentLayout) -> None:
    """Axes, limits and labels of a layout."""
    if layout.plane is not None:
        _frame_plane(ax, layout.plane)
    elif layout.axis is not None:
        _frame_curve(ax, layout.axis, layout.labels[0])
    else:
        ax.set(xlabel=layout.labels[0], ylabel=layout.labels[1], zlabel=layout.labels[2])
        box(ax, (1.0, 1.0, 1.0))


def _frame_curve(ax: Any, axis: CurveAxis, words: str) -> None:
    """A strip, or a ring where the axis is closed."""
    if axis.closed:
        ax.set(xlim=(-1.22, 1.22), ylim=(-1.22, 1.22), aspect="equal", xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_visible(False)
        for angle, tick in ((0.0, "0"), (0.5 * np.pi, "π/2"), (np.pi, "±π"), (-0.5 * np.pi, "−π/2")):
            ax.text(1.1 * np.cos(angle), 1.1 * np.sin(angle), tick, ha="center", va="center", size=8.5, color=SOFT)
        ax.text(0.0, 0.0, words, ha="center", va="center", size=9.5, color=INK)
    else:
        margin = 0.02 * (axis.high - axis.low)
        ax.set(xlim=(axis.low - margin, axis.high + margin), ylim=(0.0, 1.0), yticks=[], xlabel=words)
        ax.spines["left"].set_visible(False)


def box(ax: Any, sides: tuple[float, ...]) -> None:
    """Proportions of a box in space, small enough to leave room for its labels; few ticks."""
    ax.set_box_aspect(sides, zoom=0.8)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_major_locator(MaxNLocator(4))


def _frame_plane(ax: Any, layout: Plane) -> None:
    ax.set(xlabel=layout.labels[0], ylabel=layout.labels[1])
    for spine in ax.spines.values():
        spine.set_visible(False)
    for i, set_limits in enumerate((ax.set_xlim, ax.set_ylim)):
        set_limits(layout.low[i], layout.high[i])
        axis = ax.xaxis if i == 0 else ax.yaxis
        if layout.periodic[i]:
            angle_ticks(axis)
        else:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    # Markers on the edge hang over it, so the ticks keep their distance.
    ax.tick_params(length=0, pad=6)
    longest, shortest = max(layout.span), min(layout.span)
    ax.set_aspect("equal" if longest <= 5 * shortest else "auto")


def angle_ticks(axis: Any) -> None:
    """Ticks of an angle at quarter turns."""
    axis.set_ticks(np.arange(-2, 3) * np.pi / 2, ["−π", "−π/2", "0", "π/2", "π"])


# --------------------------------------------------------------------------------------------------- fields


def draw_field(ax: Any, field: Field, *, ends: tuple[float, float] | None = None, cmap: Any = PAPER) -> Any:
    """Fill cells with colour."""
    low, high = ends or limits(field.value)
    value = np.where(np.isneginf(field.value), low, field.value)
    return ax.pcolormesh(
        field.x, field.y, value, cmap=cmap, norm=Normalize(low, high), rasterized=True, zorder=0, linewidth=0
    )


def scale_bar(
    ax: Any, mappable: Any, words: str, *, factors: bool = False, top: bool = False, width: float = 0.03
) -> Any:
    """A slim colour scale, beside the axes or on top; ``factors`` labels logarithms with what they are of.

    ``width`` is that of one beside the axes, as a share of theirs.
    """
    if is_solid(ax):
        bar = ax.figure.colorbar(mappable, ax=ax, shrink=0.55, aspect=24, pad=0.1)
    elif top:
        inset = ax.inset_axes((0.5, 1.03, 0.5, 0.025))
        bar = ax.figure.colorbar(mappable, cax=inset, orientation="horizontal", ticklocation="top")
    else:
        inset = ax.inset_axes((1.0 + width, 0.0, width, 1.0))
        bar = ax.figure.colorbar(mappable, cax=inset)
    bar.outline.set(edgecolor=PALE, linewidth=0.6)
    bar.ax.tick_params(labelsize=8, color=PALE, labelcolor=SOFT, width=0.8, length=3)
    bar.set_label(plain_text(words), size=8.5 if top else 9, color=INK, labelpad=5)
    if factors:
        low, high = mappable.norm.vmin, mappable.norm.vmax
        ticks = round_factors(low, high)
        ticks = ticks[:: -(-len(ticks) // 4)] if top else ticks  # numbers side by side take more room
        bar.set_ticks(np.log(ticks).tolist(), labels=[f"{tick:.6g}" for tick in ticks])
        bar.minorticks_off()
    return bar


# --------------------------------------------------------------------------------------------------- points


_SOLID_AREA = 0.3
"""Area of a marker in space relative to one on paper: rows in front of a surface must not bury it."""


def marker_area(n: int) -> float:
    """Area in square points of a marker among n: smaller as there are more."""
    return float(np.clip(12000.0 / max(n, 1), 9.0, 30.0))


def dots(ax: Any, place: FloatArray, **options: Any) -> Any:
    """A scatter plot in as many dimensions as the axes have."""
    if is_solid(ax):
        options = {name: value for name, value in options.items() if name != "clip_on"} | {"depthshade": False}
    return ax.scatter(*place.T, **options)


def lines(ax: Any, segments: list[FloatArray], **options: Any) -> None:
    """Polylines in as many dimensions as the axes have; the limits stay as they are."""
    if is_solid(ax):
        ax.add_collection3d(Line3DCollection(segments, **options), autolim=False)
    else:
        ax.add_collection(LineCollection(segments, **options), autolim=False)


def triangles(ax: Any, corners: FloatArray) -> None:
    """A shaded, translucent sheet of triangles (F, 3, 3) in space."""
    sheet = Poly3DCollection(corners, facecolors="#9db4c8", shade=True, alpha=0.5, linewidths=0)
    ax.add_collection3d(sheet, autolim=False)


def ellipses(ax: Any, center: FloatArray, width: FloatArray, height: FloatArray, angle: FloatArray, **pen: Any) -> None:
    """Ellipses about places (n, 2): whole axes in units of the data, and angles in degrees."""
    where: dict[str, Any] = {"units": "xy", "offsets": center, "offset_transform": ax.transData}
    glyphs = EllipseCollection(width, height, angle, **where, **pen)
    glyphs.set_in_layout(False)  # their size is unknown until they are drawn
    ax.add_collection(glyphs, autolim=False)


def draw_rows(ax: Any, place: FloatArray, groups: RowClasses | None, values: FloatArray | None) -> Any:
    """Rows by class, by value or all alike; returns what a colour scale is made for, where there are values."""
    solid = is_solid(ax)
    area = (_SOLID_AREA if solid else 1.0) * marker_area(len(place))
    common: dict[str, Any] = {
        "linewidths": 0.0 if solid else 0.4 if area > 10 else 0.25,
        "edgecolors": "white",
        "alpha": 0.5 if solid else None,
        "zorder": 3,
        "clip_on": False,
    }
    if groups is not None:
        _draw_groups(ax, place, groups, area, common)
        return None
    if values is None:
        dots(ax, place, s=area, c=ACCENT, label="rows", **common)
        return None
    known = ~np.isnan(values)
    if not known.all():
        hollow = common | {"edgecolors": SOFT, "facecolors": "none", "linewidths": 0.6, "zorder": 2.9}
        dots(ax, place[~known], s=area, label="no value", **hollow)
        legend(ax)
    low, high = limits(values[known], 1e-6 * float(np.abs(values[known]).max(initial=0.0)) or 0.05)
    shown = Normalize(low, high)
    return dots(ax, place[known], s=area, c=values[known], cmap="viridis", norm=shown, **common)


def _draw_groups(ax: Any, place: FloatArray, groups: RowClasses, area: float, common: dict[str, Any]) -> None:
    missing = groups.index < 0
    if missing.any():
        hollow = common | {"edgecolors": SOFT, "facecolors": "none", "linewidths": 0.6, "zorder": 2.9}
        dots(ax, place[missing], s=area, label="no label", **hollow)
    for i, name in enumerate(groups.names):
        rows, shape = place[groups.index == i], marker(i)
        dots(
            ax,
            rows,
            s=area * _SIZES.get(shape, 1.0),
            marker=shape,
            c=color(i),
            label=legend_text(name),
            **common,
        )
    legend(ax)


def legend(ax: Any, **options: Any) -> None:
    """A legend in a row above the axes, out of the way of the points."""
    handles, names = ax.get_legend_handles_labels()
    if not handles:
        return
    longest = max(map(len, names))
    columns = min(len(handles), 10 if longest < 4 else 4 if longest < 16 else 2)
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns} | options
    box = ax.legend(
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handletextpad=0.3,
        columnspacing=1.4,
        borderaxespad=0.4,
        borderpad=0.2,
        **place,
    )
    for handle in box.legend_handles:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes([34.0])


def draw_joins(ax: Any, layout: LatentLayout, start: FloatArray, end: FloatArray) -> None:
    """Lines from mean to mode, the short way round, with a diamond at the mode."""
    if layout.plane is not None:
        step = layout.plane.difference(end, start)
        seam = (np.abs(start + step - end) > 1e-9).any(axis=1)
        # A line over the seam leaves on one side and comes in on the other.
        segments = np.concatenate([np.stack([start, start + step], 1), np.stack([end - step, end], 1)[seam]])
    else:
        segments = np.stack([start, end], axis=1)
    lines(ax, list(segments), colors=SOFT, linewidths=0.6, zorder=2.5)
    hollow: dict[str, Any] = {"marker": "D", "facecolors": "white", "edgecolors": INK, "linewidths": 0.6, "zorder": 2.7}
    dots(ax, end, s=0.55 * marker_area(len(end)), label="mode", clip_on=False, **hollow)
