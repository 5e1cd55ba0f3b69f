"""Principal surfaces of Hastie and Stuetzle (1989)."""

from __future__ import annotations

from typing import Any, ClassVar

from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.elastic_net import ElasticNetBasis
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number
from prinfold.loops import Last
from prinfold.surfaces import principal_surface_training
from prinfold.surfaces.base import RegressedManifold
from prinfold.surfaces.projected_regression import Alternation, SurfaceRows, SurfaceState
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, nothing, real


@fill_parameter_docs
@storable
class PrincipalSurface(RegressedManifold):
    """Principal surface of Hastie and Stuetzle: rows are projected on it and smoothed as a function of where, in turn.

    The smoother is a thin plate on a net of nodes, penalised by its second differences, in one to three dimensions.
    The coordinates of a row are those of its nearest point.

    Parameters
    ----------
    n_components : {1, 2, 3}, default=2
        Dimension of the surface. For curves see :class:`~prinfold.PrincipalCurve` too, which is faster and by arc
        length.
    penalty : float, default=None
        Weight λ of the squared second differences between nodes, beside the mean squared distance of rows. None
        chooses it by generalised cross-validation at every step, with degrees of freedom counted twice; it never falls
        from one step to the next, nor below what bends on the scale of the noise ask for.
    nodes : int or tuple of int, default=None
        Nodes along each axis; None takes 40 on a curve, 12 × 12 on a surface and 6 × 6 × 6 in three dimensions.
    init : {"auto", "pca", "isomap", "lle", "laplacian"} or array of shape (n, Q), default="auto"
        Latent coordinates to begin with: in the principal plane, of a spectral embedding, or given in any units.
        ``"auto"`` takes those of the plane or of Isomap, by which a first regression has the lower score.
    {max_iter, default=30}
    tol : float, default=1e-4
        Steps end when the share of the variance that the surface leaves changes by less; 0 never stops early.
    {verbose}

    Attributes
    ----------
    latent_ : Lattice
        The net of nodes, each axis from −1 to 1.
    basis_ : ElasticNetBasis
        What the surface is made of.
    weights_ : ndarray of shape (M, D)
        Weights of its functions.
    {offset_}
    start_ : str
        The start that was taken: ``"pca"``, an embedding and how many neighbours it had, or ``"given"``.
    penalty_ : float
        λ of the last step.
    {n_iter_}
    {converged_}
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the share of the variance that is left), ``error`` (mean squared distance), ``penalty``
        and ``seconds``, the first entry being the start.
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    Steps have no objective that they all lower: the share of the variance that is left may rise a little when the
    penalty does. What is kept is the last state.

    References
    ----------
    Hastie (1984), Principal curves and surfaces, PhD thesis, Stanford University.
    Hastie & Stuetzle (1989), Principal curves, Journal of the American Statistical Association 84.

    Examples
    --------
    >>> from prinfold import PrincipalSurface, datasets
    >>> data = datasets.make_ridge(196, rng=0)
    >>> model = PrincipalSurface().fit(data.X)
    >>> model.transform(data.X).shape
    (196, 2)
    """

    _stored: ClassVar[Kinds] = {**RegressedManifold._stored, "penalty_": number}
    _constraints: ClassVar[dict[str, Constraint]] = {
        **RegressedManifold._constraints,
        "penalty": nothing | real(0, above=True),
    }
    _rule = Last()
    penalty_: float

    def __init__(
        self,
        n_components: int = 2,
        *,
        penalty: float | None = None,
        nodes: Any = None,
        init: Any = "auto",
        max_iter: int = 30,
        tol: float = 1e-4,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.nodes = nodes
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _make_basis(self) -> ElasticNetBasis:
        return ElasticNetBasis()

    def _alternation(self, surface: BasisMap) -> Alternation:
        return principal_surface_training.alternation(surface, self.penalty)

    def _measure(self, surface: BasisMap, sample: SurfaceRows, state: SurfaceState) -> dict[str, float]:
        return principal_surface_training.measure(sample, state)

    def _state_attributes(self, state: SurfaceState) -> dict[str, Any]:
        return {**super()._state_attributes(state), "penalty_": state.penalty}
