"""Oriented noise, (17) of Chang and Ghosh, for complete rows, with compiled passes and bounds.

For the model see :mod:`prinfold.pps.oriented_model`, for other rows :mod:`prinfold.pps.oriented_gaps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.protocol import Capabilities, CompiledPass, ScaledLogDensity
from prinfold.gtm.softmax import NATURAL, Exponential
from prinfold.pps.oriented_bounds import log_responsibility_bounds
from prinfold.pps.oriented_gaps import OrientedCells
from prinfold.pps.oriented_model import OrientedModel, OrientedParameters, in_frame, noise_of_nodes
from prinfold.pps.oriented_sums import OrientedNodes, OrientedStatistics, row_squares


def _exponential(dtype: Any) -> Exponential:
    return NATURAL


_Kind: TypeAlias = Capabilities[OrientedParameters, FloatArray, OrientedNodes, OrientedStatistics]


@dataclass(frozen=True)
class OrientedNoise(OrientedModel):
    """Noise that differs along and across the surface, for rows that are complete."""

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(
            bound=log_responsibility_bounds,
            scaled=ScaledLogDensity(OrientedNodes.scaled_log_density, _exponential),
            # Several sweeps over a block become one, so that dense passes gain too.
            compiled=CompiledPass(OrientedNodes.empty_sums, dense=True),
            for_nodes=noise_of_nodes,
            # What a row has across the frame is as likely at every node where these have one noise.
            in_frame=in_frame if self.clamping.shared else None,
        )

    def with_gaps(self) -> OrientedCells:
        return OrientedCells(self.floor, self.clamping, self.dimension, self.crossed)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """A block with a column of ones and one of squares."""
        ones = np.ones((len(block), 1), dtype=block.dtype)
        squares = np.minimum(row_squares(block) / self.unit, 0.5 * float(np.finfo(block.dtype).max))
        return np.concatenate([block, ones, squares.astype(block.dtype)[:, None]], axis=1)

    def at_nodes(self, surface: BasisMap, parameters: OrientedParameters, dtype: type = np.float64) -> OrientedNodes:
        return self.oriented_nodes(surface, parameters, dtype)
