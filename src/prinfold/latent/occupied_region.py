"""The part of latent space where rows are, as a region around their coordinates."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.geometry.persistent_loops import farthest_points
from prinfold.latent.base import LatentSpace
from prinfold.latent.cloud import Cloud
from prinfold.numerics.radial_kernels import PROFILES

_MOST_CENTERS = 400
"""Most coordinates that the region is made of: an even cover of all of them."""

_CONTOUR_LEVEL = 0.3
"""Sum of the kernels on the contour, in units of one at its peak. A lone row has a disc of 1.55 bandwidths about it,
and an edge with rows along it a margin of about as much."""


def has_open_corners(latent: LatentSpace) -> bool:
    """Whether a space of two dimensions may reach where no rows are: two open axes do, a cloud follows the rows."""
    return len(latent.axes) == 2 == len(latent.node_units)  # an angle has two embedded columns


def occupied_region(Z: FloatArray) -> Cloud:
    """The region around latent coordinates Z (n, Q) of rows: all of them, with a narrow margin, and no gaps of chance.

    Its kernels sit on an even cover of the coordinates and are as wide as these are apart. Each row is nearer to the
    cover than its points are to each other, so that none lies outside.
    """
    places = np.unique(Z[np.isfinite(Z).all(axis=1)].astype(float), axis=0)
    centers = places[farthest_points(places, _MOST_CENTERS)]
    bandwidth = 1.0
    if len(centers) > 1:
        apart = np.asarray(cKDTree(centers).query(centers, k=2)[0])[:, 1]
        bandwidth = float(np.median(apart))
    weight = np.ones(len(centers))
    return Cloud(centers, weight, PROFILES["gaussian"], _CONTOUR_LEVEL / len(centers), bandwidth=bandwidth)
