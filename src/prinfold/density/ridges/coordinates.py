"""Coordinates on a ridge: those of a graph where it is a curve, those of a chart in two dimensions or more."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray, Mesh
from prinfold.density.ridges.chart import RidgeChart
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.density.ridges.mean_shift import Flow, FlowResult
from prinfold.density.ridges.support import supported_graph
from prinfold.geometry.projection import Projection
from prinfold.latent import LatentSpace


class Coordinates(Protocol):
    """Coordinates on a ridge of dimension d in D columns."""

    @property
    def latent(self) -> LatentSpace:
        """The latent space of the coordinates."""

    @property
    def graph(self) -> RidgeGraph | None:
        """The branches of a ridge that is a curve."""

    @property
    def chart(self) -> RidgeChart | None:
        """The patches of a ridge that is a surface or more."""

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) points at coordinates (n, d)."""

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, d) derivative of :meth:`point`."""

    def nearest(self, X: FloatArray) -> Projection:
        """The nearest point of the ridge to each row."""

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The ridge cut into simplices."""


class RidgeCoordinates(NamedTuple):
    """Coordinates on a ridge, and of one that is a curve the ``support`` (B,) of its branches.

    ``n_found`` counts the branches before those with little support were left out, and ``pieces`` holds the lengths of
    the pieces that these make up, the longest first.
    """

    coordinates: Coordinates
    support: FloatArray
    n_found: int
    pieces: FloatArray


def make_coordinates(flow: Flow, ridge: FlowResult, min_length: float, min_support: float) -> RidgeCoordinates:
    """Coordinates on the ridge points that ``flow`` has carried rows to.

    A branch of a curve that leads nowhere must be ``min_length`` bandwidths long to be kept, and any branch must have
    a support of ``min_support``.
    """
    if flow.dimension > 1:
        return RidgeCoordinates(RidgeChart.of(flow, ridge), np.zeros(0), 0, np.zeros(0))
    return RidgeCoordinates(*supported_graph(flow, ridge, min_length, min_support))
