"""What pages about a fitted model cost: seconds and size of the explorer, the report and the summary, by rows.

Run with ``python benchmarks/pages.py``; ``--full`` goes on to 50 000 rows. The fit itself is not counted.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import perf_counter

from prinfold import GTM, datasets, explore, report

SIZES = (500, 2000, 8000)
FULL = (*SIZES, 50_000)


def timed(make: Callable[..., str], *what: object) -> tuple[float, float]:
    """Seconds, and megabytes of the text."""
    start = perf_counter()
    text = make(*what)
    return perf_counter() - start, len(text.encode()) / 1e6


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    kinds: dict[str, Callable[..., str]] = {
        "summary": lambda model, X, names: model._repr_html_(),
        "explorer": lambda model, X, names: explore(model, X, None, labels=names).html,
        "report": lambda model, X, names: report(model, X, None, labels=names).html,
    }
    print(f"{'rows':>7}  " + "  ".join(f"{kind + ', s':>11}  {'MB':>6}" for kind in kinds))
    for n in FULL if "--full" in arguments else SIZES:
        data = datasets.make_pipe_flow(n, rng=0)
        model = GTM(nodes=20, basis=8, max_iter=20, tol=0.0, random_state=0).fit(data.X)
        found = [timed(kind, model, data.X, data.names) for kind in kinds.values()]
        print(f"{n:>7}  " + "  ".join(f"{seconds:>11.2f}  {size:>6.2f}" for seconds, size in found))


if __name__ == "__main__":
    main(sys.argv[1:])
