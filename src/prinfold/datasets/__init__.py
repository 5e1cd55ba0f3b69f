"""Data to try methods on: simulators with the true surface attached, and loaders of real data."""

from __future__ import annotations

from prinfold.datasets.closed_curves import make_closed_curve, make_cycles, make_knot
from prinfold.datasets.closed_surfaces import make_cylinder, make_sphere, make_torus
from prinfold.datasets.clouds import make_two_gaussians
from prinfold.datasets.curves import (
    make_circle,
    make_epitrochoid,
    make_half_circle,
    make_spiral,
    make_star,
    make_thesis_curve,
    make_zigzag,
)
from prinfold.datasets.dataset import Dataset, simulate
from prinfold.datasets.loaders import (
    load_crabs,
    load_diabetes,
    load_digits,
    load_galaxies,
    load_glass,
    load_gps_traces,
    load_iris,
    load_myeloid,
    load_oil_flow,
    load_usps_twos,
)
from prinfold.datasets.motion import make_motion
from prinfold.datasets.network import LineNetwork, line_network
from prinfold.datasets.pipe import Beams, Densitometer, make_pipe_flow, path_lengths
from prinfold.datasets.poses import make_poses
from prinfold.datasets.sheets import (
    make_corkscrew,
    make_ridge,
    make_semilinear_sheet,
    make_swiss_roll,
    make_thesis_surface,
)
from prinfold.datasets.surface import TrueSurface, polyline
from prinfold.datasets.tree import TreeDataset, make_tree

__all__ = [
    "Beams",
    "Dataset",
    "Densitometer",
    "LineNetwork",
    "TreeDataset",
    "TrueSurface",
    "line_network",
    "load_crabs",
    "load_diabetes",
    "load_digits",
    "load_galaxies",
    "load_glass",
    "load_gps_traces",
    "load_iris",
    "load_myeloid",
    "load_oil_flow",
    "load_usps_twos",
    "make_circle",
    "make_closed_curve",
    "make_corkscrew",
    "make_cycles",
    "make_cylinder",
    "make_epitrochoid",
    "make_half_circle",
    "make_knot",
    "make_motion",
    "make_pipe_flow",
    "make_poses",
    "make_ridge",
    "make_semilinear_sheet",
    "make_sphere",
    "make_spiral",
    "make_star",
    "make_swiss_roll",
    "make_thesis_curve",
    "make_thesis_surface",
    "make_torus",
    "make_tree",
    "make_two_gaussians",
    "make_zigzag",
    "path_lengths",
    "polyline",
    "simulate",
]
