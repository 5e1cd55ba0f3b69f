"""Base of the kernel methods: surface, latent density and sampling over given latent points."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.base.file_requirements import require_parts
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part
from prinfold.geometry.projection_starts import graph_starts
from prinfold.kernel_manifolds.domain_thresholds import THRESHOLDS, Contour, make_threshold
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.latent import Cloud, LatentSpace
from prinfold.numerics.kernel_mixtures import Mixture
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian, Power
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    check_parameters,
    one_of,
    real,
)
from prinfold.validation.tables import check_latent

_MESH_DETAIL = {1: 1.0, 2: 2.0}
"""Kernel widths within which the surface hardly folds, by latent dimension; 4 beyond, where meshes soon grow too large.
Nearest points that the vertices miss are found from the nodes."""

_TRUNCATED_FROM = 2000
"""Latent points from which on a Gaussian is cut off at six bandwidths."""

_N_STARTS = 8
_MOST_DRAWING_ROUNDS = 200
"""Rounds of rejection sampling after which draws outside the latent domain are moved to its edge."""

storable(Contour)

THRESHOLD = (
    one_of(tuple(THRESHOLDS))
    | real(0, above=True)
    | Constraint(lambda v: isinstance(v, Contour), "a Contour, such as Contour(0.9)")
)
"""Values that the parameter ``threshold`` may take."""


@fill_parameter_docs
class KernelManifold(PrincipalManifold):
    """A surface y(z) = Σ w k(z − c) y / Σ w k(z − c) over latent points, where their density is high enough.

    A subclass finds the latent points, and :meth:`_surface_attributes` makes the fitted attributes of them:
    ``latent_``, ``embedding_``, ``values_`` and ``offset_``. It has parameters ``kernel`` and ``threshold``.
    """

    _stored: ClassVar[Kinds] = {
        **PrincipalManifold._stored,
        "latent_": part("Cloud"),
        "embedding_": numbers("n", "latent_.n_columns"),
        "values_": numbers("latent_.centers", "D"),
        "offset_": numbers("D"),
    }
    _follows_far_rows: ClassVar[bool] = True
    _constraints: ClassVar[dict[str, Constraint]] = {"kernel": one_of(tuple(PROFILES)), "threshold": THRESHOLD}
    kernel: str
    threshold: Any
    latent_: Cloud
    embedding_: FloatArray
    values_: FloatArray
    offset_: FloatArray
    _model: KernelMap

    @property
    def threshold_(self) -> float:
        """Density threshold η of the latent domain, relative to the peak of a single kernel."""
        check_is_fitted(self)
        return self.latent_.threshold

    def latent_density(self, Z: Any) -> FloatArray:
        """Density of the latent points, p(z) = Σ w k(z − c) / Σ w over the volume of k; it integrates to 1.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
            Latent coordinates, inside the domain or outside. The domain is where this times the volume of the kernel
            is at least ``threshold_``.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        Z = check_latent(Z, self.latent_.n_columns)
        return self._model.density(Z) / self.latent_.profile.volume(self.latent_.n_columns)

    def sample(self, n: int = 1, *, random_state: RandomState = None, return_latent: bool = False) -> Any:
        """Points of the surface, their latent coordinates drawn from the latent density within the domain.

        Parameters
        ----------
        {n}
        {random_state}
        return_latent : bool, default=False
            Whether the latent coordinates are returned too.

        Returns
        -------
        ndarray of shape (n, D), or that and an ndarray of shape (n, Q)
        """
        check_is_fitted(self)
        check_draws(n, self.n_features_in_)
        Z = _draw(self.latent_, n, as_generator(random_state))
        points = self._data_points(Z)
        return (points, Z) if return_latent else points

    # --------------------------------------------------------------------------------------- plumbing

    def _profile(self, n_centers: int) -> Gaussian | Power:
        """The kernel for a number of latent points: of many, pairs far apart should cost nothing."""
        profile = PROFILES[self.kernel]
        return Gaussian(GAUSSIAN_CUT) if profile == Gaussian() and n_centers > _TRUNCATED_FROM else profile

    def _surface_attributes(
        self, centers: FloatArray, values: FloatArray, weight: FloatArray, name: IntArray, offset: FloatArray
    ) -> dict[str, Any]:
        """Fitted attributes from latent points ``centers`` (m, Q) with ``values`` (m, D) + ``offset`` (D,).

        ``name`` (n,) says which of them belongs to each training row. Rows outside the domain have the coordinate
        on its edge that is nearest, or nearly so.
        """
        profile, weight = self._profile(len(centers)), np.asarray(weight, dtype=np.float64)
        density = np.exp(Mixture(centers, weight, profile).log_density(centers))
        latent = Cloud(centers, weight, profile, make_threshold(self.threshold).level(density, weight))
        return {
            "latent_": latent,
            "embedding_": latent.domain.retract(latent.centers)[name],
            "values_": values,
            "offset_": offset,
            "n_features_in_": values.shape[1],
            "_model": KernelMap(latent.centers, values, latent.weight, profile),
        }

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.point(Z) + self.offset_

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.jacobian(Z)

    def _geometry(self) -> SurfaceGeometry:
        latent = self.latent_
        return SurfaceGeometry(
            latent,
            self._point,
            self._jacobian,
            _MESH_DETAIL.get(latent.n_columns, 4.0) * latent.profile.width,
            bend=self._model.bend,
            node_starts=_node_starts,
            # Every projection begins at the finest mesh, which for single rows would take all the time.
            kept=self._model.remembered,
        )

    def _restore(self) -> None:
        """Rebuild the map, which files do not hold, and refuse parts that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts(self._file_requirements())
        latent = self.latent_
        self._model = KernelMap(latent.centers, self.values_, latent.weight, latent.profile)

    def _n_value_columns(self) -> int:
        return int(self.n_features_in_)

    def _file_requirements(self) -> dict[str, bool]:
        """Requirements on a model read from a file, and whether each holds; later ones may rely on earlier ones."""
        D = self._n_value_columns()
        return {
            f"values_ of {D} columns, as the table or span_ has": self.values_.shape[1] == D,
            "an embedding_ inside the latent domain": bool(self.latent_.domain.contains(self.embedding_).all()),
            "a history_ as long as n_iter_": {len(each) for each in self.history_.values()} == {self.n_iter_ + 1},
        }


def _node_starts(rows: FloatArray, nodes: FloatArray, latent: LatentSpace) -> FloatArray:
    """(n, S, Q) latent coordinates of nodes that are nearer to a row than their neighbours are."""
    return graph_starts(rows, nodes, latent.nodes, latent.edges, _N_STARTS)


def _draw(latent: Cloud, n: int, rng: np.random.Generator) -> FloatArray:
    """(n, Q) draws from the latent density, kept if they fall inside the domain."""
    share = latent.weight / latent.weight.sum()
    kept, wanted = latent.centers[:0], n
    for round_ in range(_MOST_DRAWING_ROUNDS):
        if wanted <= 0:
            break
        drawn = rng.choice(len(share), size=wanted, p=share)
        Z: FloatArray = latent.centers[drawn] + latent.profile.draw(rng, wanted, latent.n_columns)
        # A region of single points has no volume to hit.
        Z = latent.domain.retract(Z) if round_ == _MOST_DRAWING_ROUNDS - 1 else Z[latent.domain.height(Z) >= 0]
        kept = np.concatenate([kept, Z])
        wanted = n - len(kept)
    return kept
