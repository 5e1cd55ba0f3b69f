"""Regularised principal manifolds of Smola, Mika, Schölkopf and Williamson (2001)."""

from __future__ import annotations

from typing import Any, ClassVar

from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.gaussian_process import GaussianProcess
from prinfold.files import storable
from prinfold.surfaces import regularized_manifold_training
from prinfold.surfaces.base import RegressedManifold
from prinfold.surfaces.projected_regression import Alternation, SurfaceRows, SurfaceState
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, real


@fill_parameter_docs
@storable
class RegularizedManifold(RegressedManifold):
    """Regularised principal manifold of Smola et al.: a sum of kernels with the least regularised quantisation error.

    Rows are projected on the surface, and the surface is a kernel ridge regression of the rows on where they are, in
    turn; neither can raise R = mean min_z ‖x − f(z)‖² + λ‖f‖². The coordinates of a row are those of its nearest point.

    Parameters
    ----------
    n_components : {1, 2, 3}, default=2
        Dimension of the surface.
    regularization : float, default=1e-3
        λ, what the squared norm of the surface counts beside the mean squared distance of rows. Both are in squared
        units of the data.
    length_scale : float, default=0.5
        Latent distance ℓ of the kernels exp(−‖z − z'‖² / (2ℓ²)), over which the surface may turn; axes run from −1
        to 1.
    nodes : int or tuple of int, default=None
        Kernels along each axis; None takes 40 on a curve, 12 × 12 on a surface and 6 × 6 × 6 in three dimensions. Those
        that the others stand in for are left out.
    init : {"auto", "pca", "isomap", "lle", "laplacian"} or array of shape (n, Q), default="auto"
        Latent coordinates to begin with: in the principal plane, of a spectral embedding, or given in any units.
        ``"auto"`` takes those of the plane or of Isomap, by which a first regression has the lower R.
    {max_iter, default=100}
    tol : float, default=1e-4
        Steps end when R, as a share of the variance, falls by less; 0 never stops early.
    {verbose}

    Attributes
    ----------
    latent_ : Lattice
        The net of nodes, each axis from −1 to 1.
    basis_ : GaussianProcess
        The kernels.
    weights_ : ndarray of shape (M, D)
        Weights of the functions that the kernels make, of which the squares add up to ‖f‖²; the last is the constant,
        which costs nothing.
    {offset_}
    start_ : str
        The start that was taken: ``"pca"``, an embedding and how many neighbours it had, or ``"given"``.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus R as a share of the variance), ``error`` (mean squared distance), ``norm`` (‖f‖²) and
        ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    Smola, Mika, Schölkopf & Williamson (2001), Regularized principal manifolds, Journal of Machine Learning Research 1.

    Examples
    --------
    >>> from prinfold import RegularizedManifold, datasets
    >>> data = datasets.make_ridge(196, rng=0)
    >>> model = RegularizedManifold().fit(data.X)
    >>> model.transform(data.X).shape
    (196, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        **RegressedManifold._constraints,
        "regularization": real(0, above=True),
        "length_scale": real(0, above=True),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        regularization: float = 1e-3,
        length_scale: float = 0.5,
        nodes: Any = None,
        init: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.length_scale = length_scale
        self.nodes = nodes
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _make_basis(self) -> GaussianProcess:
        return GaussianProcess(self.length_scale, linear=False)

    def _alternation(self, surface: BasisMap) -> Alternation:
        return regularized_manifold_training.alternation(surface, self.regularization)

    def _measure(self, surface: BasisMap, sample: SurfaceRows, state: SurfaceState) -> dict[str, float]:
        return regularized_manifold_training.measure(surface, sample, state)
