"""Latent spaces: where the coordinates of a principal manifold live.

Each knows its nodes, their spacing and neighbours, the faces that make a mesh of them, how to take a
mean, and a chart for plots. Planes span [−1, 1] on each axis, angles are radians in [−π, π), points of
the sphere are unit vectors.
"""

from prinfold.latent.atlas import Atlas
from prinfold.latent.base import LatentSpace
from prinfold.latent.branches import Branches
from prinfold.latent.cloud import Cloud
from prinfold.latent.hexagons import Hexagons, hexagons
from prinfold.latent.lattice import Lattice, circle, cylinder, grid, line, torus
from prinfold.latent.points import Points
from prinfold.latent.sphere import Sphere

__all__ = [
    "Atlas",
    "Branches",
    "Cloud",
    "Hexagons",
    "LatentSpace",
    "Lattice",
    "Points",
    "Sphere",
    "circle",
    "cylinder",
    "grid",
    "hexagons",
    "line",
    "torus",
]
