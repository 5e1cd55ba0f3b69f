"""What every script of published results shares: arguments, findings, one table, figures."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from prinfold.exceptions import DataNotFoundError

mpl.use("Agg")
mpl.rcParams.update({"font.size": 9, "axes.titlesize": 9, "figure.dpi": 130, "savefig.bbox": "tight"})

#: Colours that stay apart for the colour-blind (Okabe and Ito), and a marker for each.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKERS = ("o", "x", "+", "^")


@dataclass(frozen=True)
class Finding:
    """One published claim beside what this run gave."""

    what: str
    published: str
    ours: str
    verdict: str


def judge(holds: bool, otherwise: str = "", note: str = "") -> str:
    """``reproduced`` with a note, or ``differs`` with the reason: decided by the numbers of this run."""
    word, why = ("reproduced", note) if holds else ("differs", otherwise)
    return f"{word}: {why}" if why else word


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Mean ± standard deviation over seeds."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def within(published: float, values: Sequence[float], slack: float = 2.0) -> bool:
    """Whether one published run could be a further seed: no more than ``slack`` deviations from our mean."""
    return bool(abs(published - np.mean(values)) <= slack * np.std(values, ddof=1))


class Figures:
    """Where figures go, and whether they are to be as fine as the published ones."""

    def __init__(self, folder: Path, full: bool = False) -> None:
        self.folder, self.full = folder, full
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, figure: Figure, name: str) -> None:
        path = self.folder / f"{name}.png"
        figure.savefig(path)
        print(f"  wrote {path}")


Example = Callable[[Figures], list[Finding]]


def run(title: str, examples: Mapping[str, Example], default_out: str, full: str = "") -> None:
    """Run the examples asked for and print one table of what they found; ``full`` says what ``--full`` adds, if any."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--out", type=Path, default=Path(default_out), help="folder for figures")
    parser.add_argument("--only", choices=sorted(examples), nargs="+", help="run only these")
    if full:
        parser.add_argument("--full", action="store_true", help=full)
    options = parser.parse_args()
    figures, findings = Figures(options.out, getattr(options, "full", False)), []
    for name, example in examples.items():
        if options.only and name not in options.only:
            continue
        print(name)
        clock = time.perf_counter()
        try:
            findings += example(figures)
        except DataNotFoundError as error:
            findings.append(Finding(name, "", "skipped", f"needs real data: {error}"))
        print(f"  {time.perf_counter() - clock:.1f} s")
    print_table(title, findings)


def print_table(title: str, findings: Sequence[Finding], widths: tuple[int, ...] = (38, 24, 32, 58)) -> None:
    """Findings as a table with wrapped cells."""
    heads = ("what", "published", "ours", "verdict")
    rule = "-+-".join("-" * width for width in widths)
    print(f"\n{title}\n{rule}")
    for cells in (heads, *((f.what, f.published, f.ours, f.verdict) for f in findings)):
        columns = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
        for line in range(max(map(len, columns))):
            parts = [column[line] if line < len(column) else "" for column in columns]
            print(" | ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
        print(rule)
