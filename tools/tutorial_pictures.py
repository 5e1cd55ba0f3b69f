"""Run tutorials and keep their figures in docs/_static/tutorials: ``python -m tools.tutorial_pictures molecules``."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib import pyplot as plt
from tests.house import run_fences

ROOT = Path(__file__).parents[1]


def main(names: list[str]) -> None:
    """Write each figure of the pages with these names, numbered as they come."""
    folder = ROOT / "docs" / "_static" / "tutorials"
    folder.mkdir(exist_ok=True)
    for name in names or [page.stem for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.stem != "index"]:
        plt.close("all")
        run_fences(ROOT / "docs" / "tutorials" / f"{name}.md")
        for k in plt.get_fignums():
            plt.figure(k).savefig(folder / f"{name}_{k}.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1:])
