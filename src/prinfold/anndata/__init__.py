"""Single cells: models fitted to an ``AnnData`` object, with the results where scanpy and scFates look for them.

``maps`` fits any model and places cells on it; ``trajectories`` fits a tree with a root, and says what confounds it.
"""

from prinfold.anndata.maps import fit, transform
from prinfold.anndata.trajectories import confounders, trajectory

__all__ = ["confounders", "fit", "trajectory", "transform"]
