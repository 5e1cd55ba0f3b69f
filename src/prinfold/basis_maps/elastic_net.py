"""The generalised elastic net, thesis 3.4.2: a smoothness prior on the images of the nodes, written as basis functions.

The prior of the images Y (K, D) of the nodes is exp(−½ α ‖ΔY‖²), Δ taking differences between neighbouring nodes, so
that the M-step is

    (G + λ ΔᵀΔ) Y = RT,        λ = α/β.

With a factor ΔᵀΔ = LLᵀ and images Y = Φ₊W₊ + Φ₀W₀, where LᵀΦ₊ = I and the columns of Φ₀ are what the differences do
not see, ‖ΔY‖² = ‖W₊‖². So a net is a map of basis functions of which some weights have a prior of precision α and
others none, and everything that takes a basis takes a net: its evidence, every noise, projection.

The thesis leaves open what lies between the nodes. Here it is the piecewise cubic surface through their images whose
slope at a node is the mean of the differences on both sides (Catmull and Rom's), which has a continuous tangent and is
straight where the nodes are; see :mod:`prinfold.basis_maps.lattice_interpolation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from prinfold._typing import BoolArray, FloatArray
from prinfold.basis_maps.bases import BasisCapabilities
from prinfold.basis_maps.lattice_interpolation import LatticeSteps, cell_weights, differences, slopes, steps_along
from prinfold.exceptions import InvalidParameterError, shown
from prinfold.files import storable
from prinfold.latent import LatentSpace, Lattice
from prinfold.latent.base import IS_LATENT
from prinfold.rows.rows import blas_on_one_thread
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, check_settings, integer, real
from prinfold.validation.tables import as_numbers

_MOST_NODES = 5000
"""Nodes whose differences are decomposed: 200 MB, and about a minute."""

_LEAST_PIVOT_SHARE = 1e-9
"""Share of the largest difference below which nothing is left of a pivot; where something is, it is of order one."""

_CONSTRAINTS = {
    "order": integer(1, 2),
    "tear": Constraint(lambda v: real(0).test(v) and v <= 1, "a number from 0 to 1"),
}


@storable
@check_verbs(latent=IS_LATENT)
@dataclass(frozen=True)
class ElasticNetBasis:
    """A net of nodes held together by its differences, open or closed, with cuts and tears: thesis 3.4.2.

    Every node has an image of its own. What keeps neighbours together is the penalty of the model, ½ λβ or ½ α times
    the squared differences of order one (a net under tension, as in the elastic net of Durbin and Willshaw) or two (a
    plate that resists bending, as in Utsugi's). Between nodes the surface is piecewise cubic with a continuous tangent.
    A model that leaves λ open has 0.3; for curves with much noise ``prior_precision="evidence"`` finds a better one.

    Parameters
    ----------
    order : {1, 2}, default=2
        Order of the differences: y(k+1) − y(k), which pulls the net together, or y(k−1) − 2y(k) + y(k+1) along each
        axis and, √2-fold, the mixed differences of every two axes, which leaves planes as they are.
    cuts : sequence, default=()
        Where the net is cut: on a line or circle a latent coordinate, in two dimensions a pair of latent points, the
        ends of a straight cut. Differences that reach across no longer count.
    tear : float, default=0.0
        What is left of those differences: 0 is a cut, 1 no cut at all, and between them the net is torn in part.

    Examples
    --------
    >>> from prinfold import GTM, ElasticNetBasis, datasets
    >>> data = datasets.make_pipe_flow(300, rng=0)
    >>> model = GTM(nodes=10, basis=ElasticNetBasis()).fit(data.X)
    >>> model.weights_.shape
    (100, 12)
    """

    default_regularization: ClassVar[float] = 0.3
    """λ of a model that leaves it open: on simulators it loses least to the best of several, wherever it loses most."""

    order: int = 2
    cuts: tuple[Any, ...] = ()
    tear: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self, _CONSTRAINTS)
        object.__setattr__(self, "cuts", _check_cuts(self.cuts))

    def bind(self, latent: LatentSpace) -> BoundElasticNet:
        """Find the differences of the net on a lattice of nodes."""
        if not latent.axes:  # hexagons are no product of axes either
            raise InvalidParameterError(
                "an elastic net is a lattice of nodes: a line, circle, grid, cylinder or torus; got "
                f"{type(latent).__name__}, for which use a GaussianBasis or GaussianProcess"
            )
        if latent.n_nodes > _MOST_NODES:
            raise InvalidParameterError(
                f"an elastic net of {latent.n_nodes} nodes has as many weights; use at most {_MOST_NODES} nodes, "
                "or a GaussianBasis"
            )
        lattice = cast(Lattice, latent)
        n_axes = len(lattice.shape)
        if wrong := [cut for cut in self.cuts if len(cut) != n_axes or len(cut[0]) != n_axes]:
            words = {1: "coordinates", 2: "pairs of points with two coordinates"}.get(n_axes)
            can = f"takes {words} as cuts" if words else "cannot be cut"
            raise InvalidParameterError(f"a net of {n_axes} dimensions {can}, got {wrong[0]}")
        net = BoundElasticNet(lattice, self)
        if missed := [cut for cut in self.cuts if not net.is_reached(np.array(cut))]:
            where = ", ".join("angles in radians" if closed else "from −1 to 1" for closed in lattice.periodic)
            first = missed[0][0][0] if n_axes == 1 else missed[0]
            raise InvalidParameterError(
                f"the cut at {first} lies beyond the net and would cut nothing; "
                f"its latent coordinates are {where}; put the cut between nodes, or leave it out of cuts"
            )
        return net


@dataclass(frozen=True)
class BoundElasticNet:
    """A net on one lattice: φ(z) = c(z) Φ, where c(z) (K,) weighs the images of the nodes about z; the last is 1."""

    latent: Lattice
    recipe: ElasticNetBasis

    @property
    def capabilities(self) -> BasisCapabilities:
        return BasisCapabilities(evaluator=self.evaluator)

    @property
    def detail(self) -> float:
        return self.latent.spacing

    @property
    def penalized(self) -> BoolArray:
        return np.arange(self.latent.n_nodes) < self._factors[1]

    @cached_property
    def operator(self) -> sparse.csr_matrix:
        """(m, K) Δ, the differences that the prior holds down."""
        rows = [*self._along_axes(), *self._across_axes()]
        return sparse.csr_matrix(sparse.vstack(rows)) if rows else sparse.csr_matrix((0, self.latent.n_nodes))

    @property
    def node_features(self) -> FloatArray:
        """(K, K) Φ: the images of the nodes by the modes of the net, the least penalised last."""
        return self._factors[0]

    def features(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self.cardinals(Z) @ self.node_features)

    def evaluator(self, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """φ(z) W as a function of z: c(z) (ΦW), from the images and slopes of the corners of the cell about z."""
        fields = self.fields(weights)
        return lambda Z: np.asarray(self._corners(Z) @ fields)

    def gradient(self, Z: FloatArray) -> FloatArray:
        return np.stack([self.cardinals(Z, axis) @ self.node_features for axis in range(Z.shape[1])], axis=2)

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        fields = self.fields(weights)
        return np.stack([self._corners(Z, axis) @ fields for axis in range(Z.shape[1])], axis=2)

    def cardinals(self, Z: FloatArray, along: int | None = None) -> sparse.csr_matrix:
        """(n, K) c(z), the weights of the nodes' images at z; or their derivatives along an axis."""
        return sparse.csr_matrix(self._corners(Z, along) @ self._slopes)

    def fields(self, weights: FloatArray) -> FloatArray:
        """(2^Q K, D) images of the nodes, their slopes and mixed slopes per step, in the order of ``cell_weights``."""
        return np.asarray(self._slopes @ (self.node_features @ weights))

    @property
    def first(self) -> FloatArray:
        """(Q,) the first node."""
        return np.asarray(self.latent.nodes[0])

    @cached_property
    def step(self) -> FloatArray:
        """(Q,) distance to the next node along each axis."""
        sizes = zip(self.latent.shape, self.latent.periodic, strict=True)
        return np.array([2.0 * np.pi / n if closed else 2.0 / max(n - 1, 1) for n, closed in sizes])

    def is_reached(self, cut: FloatArray) -> bool:
        """Whether part of a straight cut (Q, Q) lies on the net, angles being periodic."""
        closed, turn = np.array(self.latent.periodic), 2.0 * np.pi
        low, high = np.where(closed, self.first - turn, -1.0), np.where(closed, self.first + 2.0 * turn, 1.0)
        if len(cut) == 1:
            return bool(low[0] < cut[0, 0] <= high[0])
        along = cut[1] - cut[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort(np.stack([low - cut[0], high - cut[0]]) / along, axis=0)
        level = along == 0
        inside = (low <= cut[0]) & (cut[0] <= high)
        return bool(inside[level].all() and ends[0, ~level].max(initial=0.0) <= ends[1, ~level].min(initial=1.0))

    # --------------------------------------------------------------------------------------- how it is made

    def _corners(self, Z: FloatArray, along: int | None = None) -> sparse.csr_matrix:
        """(n, 2^Q K) weights of the nodes' images and slopes at z; or their derivatives along an axis."""
        weights = cell_weights((Z - self.first) / self.step, self.latent.shape, self.latent.periodic, along)
        return weights if along is None else sparse.csr_matrix(weights / self.step[along])

    @cached_property
    def _steps(self) -> list[LatticeSteps]:
        shape, periodic = self.latent.shape, self.latent.periodic
        return [steps_along(shape, periodic, axis) for axis in range(len(shape))]

    @cached_property
    def _strength(self) -> list[FloatArray]:
        """For each axis (m,) the strength of each step: 1, or the ``tear`` where a cut runs across it."""
        nodes, step = self.latent.nodes, self.step
        found = []
        for axis, steps in enumerate(self._steps):
            start = nodes[steps.first]
            end = start + step[axis] * np.eye(len(step))[axis]
            torn = np.zeros(len(start), dtype=bool)
            for cut in self.recipe.cuts:
                torn |= _crosses(start, end, np.array(cut), self.latent.periodic)
            found.append(np.where(torn, self.recipe.tear, 1.0))
        return found

    @cached_property
    def _slopes(self) -> sparse.csr_matrix:
        """(2^Q K, K) values, slopes and mixed slopes of nodes from their images, in the order of ``cell_weights``."""
        n_nodes, n_axes = self.latent.n_nodes, len(self._steps)
        # Tangents look across a tear, but not across a cut.
        along = [slopes(n_nodes, s, left > 0) for s, left in zip(self._steps, self._strength, strict=True)]
        blocks = []
        for kinds in product((0, 1), repeat=n_axes):
            block = sparse.identity(n_nodes, format="csr")
            for axis in np.flatnonzero(kinds):
                block = along[axis] @ block
            blocks.append(block)
        return sparse.csr_matrix(sparse.vstack(blocks))

    def _along_axes(self) -> Iterable[sparse.csr_matrix]:
        """Differences of the first or second order along each axis."""
        n_nodes = self.latent.n_nodes
        for steps, left in zip(self._steps, self._strength, strict=True):
            if self.recipe.order == 1:
                yield differences(n_nodes, steps, left)
            else:
                yield _second_differences(n_nodes, steps, left)

    def _across_axes(self) -> Iterable[sparse.csr_matrix]:
        """Mixed second differences, √2-fold: both of them, as in the square of all second derivatives."""
        if self.recipe.order == 1:
            return
        n_nodes = self.latent.n_nodes
        for a, b in combinations(range(len(self._steps)), 2):
            step = differences(n_nodes, self._steps[a], np.ones(len(self._steps[a].first)))
            across = _adjacent_steps(self._steps[a], self._steps[b])
            mixed = differences(len(self._steps[a].first), across, np.ones(len(across.first))) @ step
            yield sparse.diags(np.sqrt(2.0) * self._cell_strength(a, b, across)) @ mixed

    def _cell_strength(self, a: int, b: int, across: LatticeSteps) -> FloatArray:
        """(m,) strength of the cells that steps along a and b span: the least of their four sides."""
        side = np.minimum(self._strength[a][across.first], self._strength[a][across.second])
        left_b = dict(zip(self._steps[b].first.tolist(), self._strength[b].tolist(), strict=True))
        for corner in (self._steps[a].first, self._steps[a].second):
            side = np.minimum(side, [left_b[node] for node in corner[across.first].tolist()])
        return side

    @cached_property
    @blas_on_one_thread()
    def _factors(self) -> tuple[FloatArray, int]:
        """Φ = (Φ₊, Φ₀), and how many of its columns are penalised.

        Nodes E that Cholesky's factorisation reaches carry W₊; for the few F that it does not, which the others
        determine but for planes, L_F stands below L_E:  Φ₊ = (L_E⁻ᵀ; 0),  Φ₀ = (−L_E⁻ᵀ L_Fᵀ; I). Eigenvectors would do
        as well but for those of equal eigenvalues, of which every machine finds others, and files are read on others.
        """
        factor, free = _cholesky((self.operator.T @ self.operator).toarray())
        held, n_nodes, n_held = ~free, len(free), factor.shape[1]
        modes = np.zeros((n_nodes, n_nodes))
        right = np.hstack([np.eye(n_held), -factor[free].T])
        modes[held] = solve_triangular(factor[held], right, trans="T", lower=True)
        modes[free, n_held:] = np.eye(n_nodes - n_held)
        stiff, unseen = np.split(modes, [n_held], axis=1)
        # The constant is among what is not seen and goes last, as the bias of the map; the stiff modes go without it.
        ones = np.ones((n_nodes, 1))
        frame, triangle = np.linalg.qr(np.hstack([ones, unseen[:, :-1]]))
        frame = frame * np.where(np.diag(triangle) < 0, -1.0, 1.0)
        stiff = stiff - frame @ (frame.T @ stiff)
        return np.hstack([stiff, frame[:, 1:] * np.sqrt(n_nodes), ones]), stiff.shape[1]


def _cholesky(matrix: FloatArray) -> tuple[FloatArray, BoolArray]:
    """L (K, r) of LLᵀ = ``matrix``, one column for each node but those (K,) for which no pivot is left, in their order.

    A net is a band, of which each column touches few others.
    """
    left, least = np.array(matrix), _LEAST_PIVOT_SHARE * matrix.diagonal().max(initial=0.0)
    free, columns = np.zeros(len(left), dtype=bool), []
    for k in range(len(left)):
        if left[k, k] <= least:
            free[k] = True
            continue
        column = left[:, k] / np.sqrt(left[k, k])
        column[:k][~free[:k]] = 0.0
        near = np.flatnonzero(column)
        left[np.ix_(near, near)] -= np.outer(column[near], column[near])
        columns.append(column)
    return np.array(columns).reshape(-1, len(left)).T, free


def _second_differences(n_nodes: int, steps: LatticeSteps, left: FloatArray) -> sparse.csr_matrix:
    """(m, K) differences of two steps that follow each other, as strong as the weaker of them."""
    step = differences(n_nodes, steps, np.ones(len(steps.first)))
    position = np.full(n_nodes, -1, dtype=np.intp)
    position[steps.first] = np.arange(len(steps.first))
    following = position[steps.second]
    first = np.flatnonzero(following >= 0)
    pair = LatticeSteps(first, following[first])
    along = differences(len(steps.first), pair, np.minimum(left[pair.first], left[pair.second]))
    return sparse.csr_matrix(along @ step)


def _adjacent_steps(along: LatticeSteps, across: LatticeSteps) -> LatticeSteps:
    """Pairs of steps ``along`` that lie side by side, one step ``across`` from each other."""
    beside = dict(zip(across.first.tolist(), across.second.tolist(), strict=True))
    position = {node: i for i, node in enumerate(along.first.tolist())}
    pairs = [(i, position[beside[node]]) for node, i in position.items() if node in beside]
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return LatticeSteps(first, second)


def _crosses(start: FloatArray, end: FloatArray, cut: FloatArray, periodic: tuple[bool, ...]) -> BoolArray:
    """(m,) which steps from ``start`` to ``end`` (m, Q) a cut runs across, in any turn of the angles.

    A node on the cut belongs to its far side, so that exactly one of the steps to and from it is cut.
    """
    found = np.zeros(len(start), dtype=bool)
    turns = [(-2.0 * np.pi, 0.0, 2.0 * np.pi) if closed else (0.0,) for closed in periodic]
    for shift in product(*turns):
        found |= _intersects(start, end, cut + np.array(shift))
    return found


def _intersects(start: FloatArray, end: FloatArray, cut: FloatArray) -> BoolArray:
    """(m,) which steps from ``start`` to ``end`` (m, Q) a cut runs across."""
    if start.shape[1] == 1:
        return np.asarray((start[:, 0] < cut[0, 0]) & (end[:, 0] >= cut[0, 0]))
    side_start, side_end = _cross_product(cut[0], cut[1], start), _cross_product(cut[0], cut[1], end)
    side_low, side_high = _cross_product(start, end, cut[0]), _cross_product(start, end, cut[1])
    return np.asarray(((side_start < 0) != (side_end < 0)) & (side_low * side_high <= 0))


def _cross_product(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """(b − a) × (c − a) in the plane: positive where c lies to the left of the line from a to b."""
    u, v = b - a, c - a
    return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])


def _check_cuts(cuts: Any) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Every cut as a tuple of points, one on a line and two in a plane."""
    try:
        found = [as_numbers("cuts", cut) for cut in cuts]
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"ElasticNetBasis: cuts must be latent coordinates or pairs of latent points, got {shown(cuts)}"
        ) from error
    found = [cut.reshape(1, 1) if cut.size == 1 else cut for cut in found]
    for cut in found:
        if (
            cut.shape not in {(1, 1), (2, 2)}
            or not np.isfinite(cut).all()
            or (len(cut) == 2 and (cut[0] == cut[1]).all())
        ):
            raise InvalidParameterError(
                "ElasticNetBasis: a cut must be a latent coordinate, or a pair of different latent points with two "
                f"coordinates each, got {cut.tolist()}"
            )
    return tuple(tuple(tuple(map(float, point)) for point in cut.tolist()) for cut in found)
