"""The generative topographic mapping."""

from __future__ import annotations

from typing import Any, ClassVar

from prinfold._typing import RandomState
from prinfold._validate import Constraint, one_of
from prinfold.algorithms import gtm
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import Parameters
from prinfold.algorithms.noise_models import NOISES, Spread
from prinfold.estimators.bands import BandVerbs
from prinfold.estimators.training import Job
from prinfold.exceptions import CorruptModelFileError
from prinfold.files import storable


@storable
class GTM(BandVerbs):
    """Generative topographic mapping: a smooth surface with a density around it.

    A grid of latent nodes is mapped by a smooth function into data space, where each carries the same
    Gaussian noise; expectation maximisation moves the surface through the middle of the data.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the surface, where the latent space leaves it open: a grid or a torus. The others, and
        nodes given as an array, have a dimension of their own.
    nodes : int, tuple of int, array of shape (K, Q) or latent space, default=None
        Latent nodes along each axis, or the nodes themselves; None chooses from the number of rows.
    basis : int, tuple of int, or basis object, default=None
        Basis functions along each axis, or a :class:`~prinfold.GaussianBasis`,
        :class:`~prinfold.HarmonicBasis` or :class:`~prinfold.GaussianProcess`; None takes a third as many as
        nodes, at most 9.
    width : float, default=1.0
        Standard deviation of a basis function in units of their spacing; larger is stiffer. Not used
        with a basis object.
    latent : str or latent space, default=None
        ``"grid"``, ``"line"``, ``"circle"``, ``"cylinder"``, ``"torus"`` or ``"sphere"``; None is a grid.
    regularization : float, default=None
        Constant weight penalty λ; larger is smoother. None is 0.1, unless ``prior_precision`` is given.
    prior_precision : float or "evidence", default=None
        Precision α of a Gaussian prior on the weights, so that λ = α/β follows the noise; it has
        the units of the data to the power −2. ``"evidence"`` finds α and the noise by the evidence
        for them, from a few plain EM steps on; steps are then not stretched.
    penalise_bias : bool, default=False
        Whether the penalty holds down the bias too. Not used with a basis object.
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the mean variance of a column.
    noise : str or noise model, default="isotropic"
        How rows scatter about the surface: ``"isotropic"``, ``"diagonal"`` (a variance for each column), or an
        object such as :class:`~prinfold.DiagonalNoise`.
    init : str or array of shape (n, Q), default="pca"
        ``"pca"``, ``"random"``, ``"semi-random"``, ``"isomap"``, ``"lle"``, ``"laplacian"``, or latent
        coordinates of the rows.
    max_iter : int, default=200
        Most EM iterations.
    tol : float, default=1e-4
        Training stops when the objective per row changes by less; 0 never stops early.
    relaxation : float, default=1.8
        How far an EM step may be stretched while the objective keeps rising; 1 is plain EM, and from 2 on what
        EM settles at once may swing back and forth.
    random_state : int, RandomState or Generator, default=None
        Seed of random starts and of the rows that a spectral start sees.
    verbose : int, default=0
        1 shows a progress bar on a terminal, 2 a line for each iteration.

    Attributes
    ----------
    latent_ : latent space
        Nodes, topology and chart.
    basis_ : basis object
        The basis functions in use.
    weights_ : ndarray of shape (M, D)
        Weights of the basis functions, about ``offset_``.
    offset_ : ndarray of shape (D,)
        Mean of the training rows.
    noise_variance_ : float
        Variance 1/β of the noise, on average where it has several.
    noise_parameters_ : dict
        What else the noise has: ``variances`` (D,) of diagonal noise.
    prior_precision_ : float
        Precision α of the prior on the weights, given, found, or λβ of a constant λ.
    node_mass_ : ndarray of shape (K,)
        Rows that each node stands for: the sums of the responsibilities of the training rows.
    folds_ : Folds
        Fold and warp diagnostics at the nodes.
    n_iter_ : int
        EM iterations done.
    converged_ : bool
        Whether the objective settled.
    stop_reason_ : StopReason
        Why training ended; its value is a sentence.
    history_ : dict of list
        ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise`` and
        ``seconds``, the first entry being the start. With ``prior_precision="evidence"`` the objective is
        the log evidence per row, and ``prior_precision`` and ``effective`` (the number of weights that the
        rows determine) are recorded too.
    n_features_in_ : int
        Columns of the training table.
    feature_names_in_ : ndarray of str
        Names of those columns, where they had names.

    References
    ----------
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University.
    Bishop, Svensén & Williams (1998), GTM: the generative topographic mapping, Neural Computation 10.

    Examples
    --------
    >>> from prinfold import GTM, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTM(random_state=0).fit(data.X)
    >>> model.transform(data.X).shape
    (300, 2)
    """

    _constraints: ClassVar[dict[str, Constraint]] = BandVerbs._constraints | {
        "noise": one_of(NOISES) | Constraint(lambda v: hasattr(v, "make"), "a noise model"),
    }
    _stored: ClassVar[tuple[str, ...]] = (*BandVerbs._stored, "noise_parameters_")
    _added: ClassVar[dict[str, Any]] = BandVerbs._added | {"noise_parameters_": {}}
    _accept_missing: ClassVar[bool] = True
    noise_parameters_: dict[str, Any]

    def __init__(
        self,
        n_components: int = 2,
        *,
        nodes: Any = None,
        basis: Any = None,
        width: float = 1.0,
        latent: Any = None,
        regularization: float | None = None,
        prior_precision: float | str | None = None,
        penalise_bias: bool = False,
        noise_floor: float = 1e-6,
        noise: Any = "isotropic",
        init: Any = "pca",
        max_iter: int = 200,
        tol: float = 1e-4,
        relaxation: float = 1.8,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.nodes = nodes
        self.basis = basis
        self.width = width
        self.latent = latent
        self.regularization = regularization
        self.prior_precision = prior_precision
        self.penalise_bias = penalise_bias
        self.noise_floor = noise_floor
        self.noise = noise
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state
        self.verbose = verbose

    def _make_model(self, surface: BasisMap, spread: Spread) -> gtm.GTMModel:
        recipe = NOISES[self.noise] if isinstance(self.noise, str) else self.noise
        return self._following(gtm.GTMModel(surface, recipe.make(surface, spread), self._penalty()))

    def _attributes(self, job: Job, parameters: Parameters) -> dict[str, Any]:
        kept = job.model.noise.keep(parameters)
        noise = {"noise_variance_": 1.0 / parameters.level, "noise_parameters_": kept}
        return super()._attributes(job, parameters) | noise

    def _parameters(self) -> Parameters:
        found: Parameters = self._model.noise.recall(self.weights_, self.noise_variance_, self.noise_parameters_)
        return found

    def _restore(self) -> None:
        super()._restore()
        try:
            self._parameters()
        except (TypeError, ValueError) as error:
            words = "the model in the file does not fit together: it needs"
            raise CorruptModelFileError(f"{words} {error}") from error
