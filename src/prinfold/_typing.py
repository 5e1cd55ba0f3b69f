"""Types that every layer shares: array aliases and the small result tuples of the contract."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


class Mesh(NamedTuple):
    """A surface cut into simplices, for drawing and exact projection.

    ``vertices`` (V, D) are points in data space, ``latent`` (V, Q) their latent coordinates and
    ``faces`` (F, q + 1) the corner indices: segments for curves, triangles for surfaces.
    """

    vertices: FloatArray
    latent: FloatArray
    faces: IntArray


class Stretch(NamedTuple):
    """Stretch of latent space by a map at n places.

    ``factor`` (n,) is the volume ratio √det(JᵀJ); ``directions`` (n, Q, q) are unit eigenvectors of
    JᵀJ as columns, longest first; ``lengths`` (n, q) are the roots of its eigenvalues.
    """

    factor: FloatArray
    directions: FloatArray
    lengths: FloatArray
