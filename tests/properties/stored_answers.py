"""Answers of every method to one table, kept in a file: other versions of Python and of libraries must agree with them.

``python -m tests.properties.stored_answers`` prints how far this interpreter's answers lie from them, which needs no
test library. After a change that is meant to move them ``--write`` stores them anew, and ``--write Ribbon`` those of
one method and no other, which may be new.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from prinfold.methods import METHODS, Method

FILE = Path(__file__).parents[1] / "fixtures" / "answers.json"
VERBS = ("reconstruct", "predict_proba", "predict", "transform", "memberships")
N_ROWS, N_SHOWN = 60, 6
SHORTER = {"KMM": {"max_iter": 20}}
"""Settings of methods in which a last digit grows with every iteration: products of matrices are rounded otherwise on
other processors. Rows moved by 1e-15 of themselves move a KMM by 1e-13 after 20 iterations, 1e-9 after 80 and 1e-3 at
its end, after 150."""


def table() -> Any:
    """(60, 3) rows about a curve, by arithmetic alone: no generator has a say in it."""
    t = np.linspace(-1, 1, N_ROWS)
    noise = (np.arange(1, 3 * N_ROWS + 1) * 0.6180339887498949 % 1).reshape(N_ROWS, 3) - 0.5
    return np.stack([t, t**2, t**3 - t], axis=1) + 0.1 * noise


def answers(method: Method) -> tuple[Any, float]:
    """(6, m) what a method says of some rows after a fit with seed 0, and the ``tol`` it was trained to."""
    model, X = method.cls(**SHORTER.get(method.name, {})), table()
    settings = model.get_params(deep=False)
    if "random_state" in settings:
        model.set_params(random_state=0)
    y = (np.arange(N_ROWS) >= N_ROWS // 2).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y) if get_tags(model).target_tags.required else model.fit(X)
        verb = next(verb for verb in VERBS if hasattr(model, verb))
        found = np.asarray(getattr(model, verb)(X), dtype=float).reshape(N_ROWS, -1)
    return found[:: N_ROWS // N_SHOWN], float(settings.get("tol", 1e-4))


def stored() -> dict[str, Any]:
    """What is kept: answers by the name of the method."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def stored_of(name: str) -> Any:
    """What is kept of one method."""
    found = stored()
    if name not in found:
        raise LookupError(
            f"{FILE.name} has no answers of {name}; "
            f"python -m tests.properties.stored_answers --write {name} stores them"
        )
    return found[name]


def write(found: dict[str, Any]) -> None:
    """Store answers of some methods; those of the others stay."""
    kept = stored() | {name: np.asarray(each).tolist() for name, each in found.items()}
    FILE.write_text(json.dumps({name: kept[name] for name in METHODS if name in kept}) + "\n", encoding="utf-8")


def distance(found: Any, wanted: Any) -> float:
    """Largest difference of two answers, in units of the spread of one."""
    wanted = np.asarray(wanted)
    return float(np.abs(found - wanted).max() / max(np.ptp(wanted, axis=0).max(), 1e-3))


def main() -> None:
    """Compare, or store anew; ends with an error where a method differs by more than its ``tol``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", nargs="*", choices=METHODS, metavar="METHOD", help="of all, if none is named")
    wanted = parser.parse_args().write
    found = {name: answers(METHODS[name]) for name in wanted or METHODS}
    if wanted is not None:
        write({name: answer for name, (answer, _) in found.items()})
    apart = {name: distance(each, stored_of(name)) for name, (each, _) in found.items()}
    print(f"Python {platform.python_version()}, NumPy {np.__version__}: largest difference {max(apart.values()):.2g}")
    for name, far in sorted(apart.items(), key=lambda each: -each[1]):
        print(f"{name:26} {far:8.2g}  (tol {found[name][1]:g})")
    sys.exit(any(far > found[name][1] for name, far in apart.items()))


if __name__ == "__main__":
    main()
