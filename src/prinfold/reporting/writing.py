"""Numbers and words as HTML: facts, tables, a histogram, figures; whatever comes from data is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from prinfold._typing import FloatArray
from prinfold.reporting.pictures import Picture

_BINS = 40


def number(value: float) -> str:
    """Four digits, and a word for none."""
    return "–" if not np.isfinite(value) else f"{value:.4g}"


def section(name: str, heading: str, *parts: str) -> str:
    """A part of the page with a heading; its name is where links lead."""
    return f'<section id="{name}"><h2>{escape(heading)}</h2>\n' + "\n".join(parts) + "\n</section>"


def paragraph(words: str) -> str:
    """Words that stand for themselves."""
    return f"<p>{escape(words)}</p>"


def facts(rows: Iterable[tuple[str, str, str]]) -> str:
    """Tiles of a name, a value and what it means."""
    tiles = (
        f'<div class="pf-fact"><dt>{escape(name)}</dt><dd>{escape(value)}</dd>'
        f'<dd class="pf-note">{escape(note)}</dd></div>'
        for name, value, note in rows
    )
    return f'<dl class="pf-facts">{"".join(tiles)}</dl>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    changed: int = 0,
    stacked: bool = False,
) -> str:
    """A table; columns in ``numbers`` stand right, and the first ``changed`` rows stand out. Cells are HTML.

    With ``stacked`` the cells of a row stand below each other on a narrow page, each behind its heading.
    """
    lines = []
    names = [f' data-name="{escape(each)}"' if stacked else "" for each in head]
    for i, row in enumerate(rows):
        cells = (
            f'<td{names[j]} class="pf-number">{x}</td>' if j in numbers else f"<td{names[j]}>{x}</td>"
            for j, x in enumerate(row)
        )
        lines.append(f"<tr{' class=pf-changed' if i < changed else ''}>{''.join(cells)}</tr>")
    heading = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    kind = ' class="pf-stacked"' if stacked else ""
    body = f"<thead><tr>{heading}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="pf-scroll"><table{kind}>{body}</table></div>'


def remarks(sentences: Sequence[str]) -> str:
    """Remarks as a list, or a sentence that there are none."""
    if not sentences:
        return (
            '<div class="pf-remarks pf-fine"><p>Nothing stood out that should keep you from using this map.</p></div>'
        )
    items = "".join(f"<li>{escape(each)}</li>" for each in sentences)
    return f'<div class="pf-remarks"><strong>Before you rely on this</strong><ul>{items}</ul></div>'


def figures(pictures: Iterable[Picture], names: dict[str, str]) -> str:
    """Figures side by side where there is room."""
    parts = []
    for each in pictures:
        source = f"data:image/png;base64,{base64.b64encode(each.png).decode('ascii')}"
        caption = escape(each.caption)
        parts.append(
            f'<figure><div class="pf-sheet"><img src="{source}" '
            f'alt="{escape(names.get(each.name, each.caption))}"></div>'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return f'<div class="pf-figures">{"".join(parts)}</div>' if parts else ""


def meter(share: float) -> str:
    """A bar for a share between nothing and all."""
    width = 100.0 * float(np.clip(share, 0.0, 1.0))
    return f'<svg class="pf-meter" aria-hidden="true"><rect width="{width:.1f}%" height="100%" rx="3"/></svg>'


def histogram(values: FloatArray, words: str) -> str:
    """A histogram as a picture that follows the colours of the page."""
    low, high = float(values.min()), float(values.max())
    low, high = (min(low, 0.0), high) if high > 0 else (low, high)
    if not high > low:
        return paragraph(f"Every row has the same {words}, {number(high)}.")
    counts, edges = np.histogram(values, bins=_BINS, range=(low, high))
    height, left, wide = 150.0, 44.0, 566.0
    step, unit = wide / _BINS, 130.0 / counts.max()
    bars = "".join(
        f'<rect x="{left + i * step:.1f}" y="{height - unit * c:.1f}" width="{step - 1:.1f}" '
        f'height="{unit * c:.1f}"><title>{c} rows from {number(a)} to {number(b)}</title></rect>'
        for i, (c, a, b) in enumerate(zip(counts, edges[:-1], edges[1:], strict=True))
        if c
    )
    levels = "".join(
        f'<line x1="{left:g}" x2="{left + wide:g}" y1="{height - unit * c:.1f}" y2="{height - unit * c:.1f}"/>'
        f'<text x="{left - 6:g}" y="{height - unit * c + 4:.1f}" text-anchor="end">{c}</text>'
        for c in _round_counts(int(counts.max()))
    )
    ends = (
        f'<text x="{left:g}" y="{height + 16}">{number(low)}</text>'
        f'<text x="{left + wide:g}" y="{height + 16}" text-anchor="end">{number(high)}</text>'
        f'<text x="{left + wide / 2:g}" y="{height + 16}" text-anchor="middle">{escape(words)}</text>'
        f'<text x="12" y="{height / 2:g}" text-anchor="middle" transform="rotate(-90 12 {height / 2:g})">rows</text>'
    )
    return (
        f'<svg class="pf-histogram" viewBox="0 0 620 {height + 24:g}" role="img" '
        f'aria-label="{escape(f"histogram of the {words} of {len(values)} rows")}">{levels}{bars}{ends}</svg>'
    )


def _round_counts(most: int) -> list[int]:
    """Nothing, and a few round counts up to the most."""
    steps = (m * 10**p for p in range(9) for m in (1, 2, 5))
    step = next(s for s in steps if most / s <= 4)
    return list(range(0, most + 1, step))
