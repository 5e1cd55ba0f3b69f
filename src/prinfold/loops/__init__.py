"""Iteration, written once: fixed-point loops, descents, stopping rules, progress."""

from prinfold.loops.descent import DESCENTS, Descent
from prinfold.loops.fixed_point import Iteration, Outcome, go_on, run_fixed_point
from prinfold.loops.progress import progress_for
from prinfold.loops.stopping_rules import (
    Arrived,
    Discrepancy,
    Done,
    Highest,
    Last,
    Scheduled,
    StoppingRule,
    StopReason,
    Validation,
)

__all__ = [
    "DESCENTS",
    "Arrived",
    "Descent",
    "Discrepancy",
    "Done",
    "Highest",
    "Iteration",
    "Last",
    "Outcome",
    "Scheduled",
    "StopReason",
    "StoppingRule",
    "Validation",
    "go_on",
    "progress_for",
    "run_fixed_point",
]
