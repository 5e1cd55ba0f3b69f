"""Genes along trajectories: which change along a lineage, differ after a fork, or between conditions.

``thinning`` cuts counts into independent halves; ``spline_models`` fits regression splines of many genes at once and
tests them; ``count_tests`` are those tests along given times, ``lineages`` what a recipe finds from counts, and
``gene_tests`` puts all together, so that times found from counts are not tested on the same counts.
"""

from prinfold.expression.gene_tests import GeneTests, association, condition_difference, fork_difference
from prinfold.expression.lineages import TreeOfCounts

__all__ = ["GeneTests", "TreeOfCounts", "association", "condition_difference", "fork_difference"]
