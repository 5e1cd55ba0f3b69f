"""Meinicke, Klanke, Memisevic & Ritter, "Principal surfaces from unsupervised kernel regression" (2005), run again.

    python -m benchmarks.papers.ukr [--out benchmarks/results/papers] [--only spiral …] [--full]

Prints what was published beside what this library gives, and draws the figures anew. The spiral takes 20 samples, 100
with ``--full``. Digits and oil flow come from the folder that ``PRINFOLD_DATA`` names.
"""

from __future__ import annotations

from benchmarks.papers.reporting import run
from benchmarks.papers.ukr_digits import digits, table_2
from benchmarks.papers.ukr_oil import oil
from benchmarks.papers.ukr_spiral import spiral

EXAMPLES = {"spiral": spiral, "digits": digits, "table2": table_2, "oil": oil}

if __name__ == "__main__":
    run(
        "UKR (Meinicke et al. 2005): published and ours",
        EXAMPLES,
        "benchmarks/results/papers",
        full="100 samples of the spiral, oil flow the other way round and without homotopy: a quarter of an hour",
    )
