"""Draw the decision tree of "Which method when" into docs/_static: ``python tools/method_tree.py``."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot as plt

from prinfold.plot.style import INK, PALE, PALETTE, SOFT

TREE = {
    ("a map to look at", "rows near a sheet"): {
        "to begin with": "GTM",
        "text, levels or counts": "MixedGTM",
        "rows follow each other in time": "GTMSequence",
        "several separate parts": "GTMMixture",
        "rolled up, with holes, other distances": "UKR",
        "an embedding to extend to new rows": "KMM",
        "the exact surface, closed ones too": "PPS",
    },
    ("an order along one path", "pseudotime, progress"): {
        "a smooth path": "PrincipalCurve",
        "and its density, new rows like these": "ProbabilisticCurve",
        "with real corners": "PolygonalCurve",
        "and the scatter across it": "OrientedPointsCurve",
    },
    ("branches, loops, networks", "lineages, roads, filaments"): {
        "in many columns": "PrincipalTree",
        "in two or three columns, with noise around": "DensityRidge",
    },
    ("groups, classes, alarms", "what to do with a map"): {
        "clusters of unknown number": "ModeClustering",
        "predict a class or a number": "GTMClassifier",
        "watch new rows for faults": "SurfaceMonitor",
        "a surface for each class": "NearestSurfaceClassifier",
    },
}


def draw(path: Path) -> None:
    """Draw the tree from left to right."""
    n_leaves = sum(len(leaves) for leaves in TREE.values()) + 0.8 * (len(TREE) - 1)
    figure, ax = plt.subplots(figsize=(10, 0.34 * n_leaves + 0.4), layout="constrained")
    ax.set(xlim=(0, 10), ylim=(-n_leaves, 0.3))
    ax.axis("off")
    root, line = (0.75, -n_leaves / 2), {"color": PALE, "lw": 1.4, "zorder": 0}
    at = 0.0
    for i, ((words, hint), leaves) in enumerate(TREE.items()):
        middle = -(at + (len(leaves) - 1) / 2) - 0.5
        ax.plot([root[0], 1.75, 1.75, 2.2], [root[1], root[1], middle, middle], **line)
        box = {"boxstyle": "round,pad=0.45", "fc": "white", "ec": PALETTE[i], "lw": 1.6}
        ax.text(2.2, middle, f"{words}", va="center", size=10.5, color=INK, bbox=box)
        ax.text(2.2, middle - 0.95, hint, va="center", size=8.5, color=SOFT)
        for k, (when, method) in enumerate(leaves.items()):
            y = -(at + k) - 0.5
            ax.plot([2.4, 4.75, 4.75, 4.95], [middle, middle, y, y], **line)
            ax.text(5.0, y, when, va="center", size=9.5, color=SOFT)
            ax.text(8.15, y, method, va="center", size=10, color=PALETTE[i], weight="bold", family="monospace")
        at += len(leaves) + 0.8
    box = {"boxstyle": "round,pad=0.55", "fc": INK, "ec": INK}
    ax.text(*root, "What do\nyou want?", ha="center", va="center", size=11, color="white", bbox=box)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "docs" / "_static" / "which_method.png")
