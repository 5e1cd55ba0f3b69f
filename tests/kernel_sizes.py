"""Sizes from which the package plans and compiles its work, set so low that small tables go through all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

PLANNED = {
    "prinfold.gtm.node_selection._PLAN_FROM": 0,
    "prinfold.gtm.node_selection._NODES_ONCE": 0,
    "prinfold.gtm.node_selection._USEFUL_SHARE": 1.1,
    "prinfold.gtm.node_selection._PROMISING_SHARE": 1.1,
    "prinfold.gtm.node_selection._MOST_ROWS": 16,
    "prinfold.gtm.node_selection._ROWS_PER_BATCH": 32,
}
"""Rows of a GTM are put into groups, each with the nodes that matter to it."""

SWEPT = {
    "prinfold.gtm.node_selection._SWEEP_FROM": 0,
    "prinfold.gtm.node_selection._COMPILE_ONCE_FROM": 0,
}
"""Groups of rows are swept by compiled code."""

COMPILED = {
    **PLANNED,
    **SWEPT,
    "prinfold.density.kernel_sums._COMPILED_FROM": 1,
    "prinfold.density.kernel_sums._PATCHES_FROM_CENTERS": 0,
    "prinfold.density.kernel_sums._DENSE_SHARE": 1.1,
    "prinfold.density.patches._LEAST_PATCHED_SHARE": 1e-12,
    "prinfold.density.ring_counts._COMPILED_FROM": 0,
    "prinfold.gtm.sequence.sequence_passes._COMPILED_FROM": 0,
    "prinfold.gtm.starts.first_parameters._WARM_UP_FROM": 0,
    "prinfold.kernel_manifolds.base._TRUNCATED_FROM": 0,
    "prinfold.kernel_manifolds.latent_descent._DENSE_ROWS": 0,
    "prinfold.kernel_manifolds.objective._COMPILED_FROM": 0,
    "prinfold.numerics.kernel_mixtures._COMPILED_FROM": 1,
    "prinfold.som.model._COMPILE_FROM": 0,
}
"""Every compiled kernel runs that would be left to NumPy for tables of few rows."""


@contextmanager
def lowered(sizes: Mapping[str, Any]) -> Iterator[None]:
    """Within, the package has these sizes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(name, value)
        yield
