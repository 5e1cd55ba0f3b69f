"""The loops, written once."""

from prinfold.loops.descent import DESCENTS, Descent
from prinfold.loops.fixed_point import Iteration, Outcome, StopReason, run_fixed_point
from prinfold.loops.progress import progress_for

__all__ = ["DESCENTS", "Descent", "Iteration", "Outcome", "StopReason", "progress_for", "run_fixed_point"]
