"""Iteration, written once: fixed-point loops, descents, stopping rules, progress."""

from prinfold.loops.bars import write_line
from prinfold.loops.descent import DESCENTS, Descent
from prinfold.loops.fixed_point import NO_LISTENERS, Iteration, Listeners, Outcome, go_on, run_fixed_point
from prinfold.loops.progress import Meter, Working, hide_progress, progress_for, while_working
from prinfold.loops.stopping_rules import (
    Arrived,
    Discrepancy,
    Done,
    Last,
    Plateau,
    Scheduled,
    StoppingRule,
    StopReason,
    Validation,
)
from prinfold.loops.training_log import TrainingLog

__all__ = [
    "DESCENTS",
    "NO_LISTENERS",
    "Arrived",
    "Descent",
    "Discrepancy",
    "Done",
    "Iteration",
    "Last",
    "Listeners",
    "Meter",
    "Outcome",
    "Plateau",
    "Scheduled",
    "StopReason",
    "StoppingRule",
    "TrainingLog",
    "Validation",
    "Working",
    "go_on",
    "hide_progress",
    "progress_for",
    "run_fixed_point",
    "while_working",
    "write_line",
]
