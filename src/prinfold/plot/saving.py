"""Pictures as bytes, to be put into pages or written to files; nothing stays open."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 160

__all__ = ["render"]


def render(ax: Axes, formats: Iterable[str] = ("png",)) -> dict[str, bytes]:
    """A drawn figure in each of the formats, the same bytes for the same picture; the figure is closed."""
    import matplotlib as mpl  # there is one, or nothing would have been drawn
    from matplotlib import pyplot as plt

    found = {}
    figure: Any = ax.figure
    with mpl.rc_context({"svg.hashsalt": "prinfold"}):  # names within an SVG are drawn by lot otherwise
        for each in formats:
            stream = BytesIO()
            unstamped: dict[str, Any] = {"metadata": {"Date": None}} if each == "svg" else {}
            figure.savefig(stream, format=each, dpi=_DPI, **unstamped)
            found[each] = stream.getvalue()
    plt.close(figure)
    return found
