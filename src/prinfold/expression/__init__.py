"""Genes along trajectories: which change along a lineage, differ after a fork, or between conditions.

``thinning`` cuts counts into independent halves; ``spline_models`` fits regression splines of many genes at once and
tests them; ``gene_tests`` puts both together, so that times found from counts are not tested on the same counts.
"""

from prinfold.expression.gene_tests import (
    GeneTests,
    TreeOfCounts,
    association,
    condition_difference,
    fork_difference,
)

__all__ = ["GeneTests", "TreeOfCounts", "association", "condition_difference", "fork_difference"]
