"""Noise models of the GTM family: how data scatter about the surface.

A noise is five objects, and a verb belongs to the one that has what it needs:

- the **noise** has what depends on its kind alone: parameters to begin with, how rows are loaded, the M-step;
- its **parameters** what depends on their values: their cost, a longer step, what of them is stored;
- the **nodes** what one pass over the rows needs: ``log_density`` gives log p(t | node) of a block;
- the **sums** what a block adds: ``add`` a block, and ``statistics`` for the M-step;
- the **statistics** what the M-step needs of all rows: they add up over blocks, and ``scale``.

What some kinds can do and others cannot is a field of :class:`Capabilities`, which holds an implementation or None.
A new noise is a new class: nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers
from prinfold.gtm.node_bounds import Balls, NodesOfBalls
from prinfold.gtm.penalties import Penalty
from prinfold.gtm.softmax import Exponential
from prinfold.rows.rows import Rows
from prinfold.validation.settings import real

P = TypeVar("P", bound="Parameters")
B = TypeVar("B")
N = TypeVar("N")
S = TypeVar("S")
B_contra = TypeVar("B_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)
C = TypeVar("C")
"""P are parameters of some kind, B blocks of rows, N nodes, S statistics, and C a capability."""

Precision: TypeAlias = float | FloatArray
"""One precision for all, or one for each column or node."""

NO_FLOOR = 1e-290
"""A smallest variance that no variance comes down to."""

_EDGE = 1.0 - 1e-12
"""A precision from this share of its ceiling on counts as at the ceiling: rounding may have left it a little below."""


class Posterior(NamedTuple):
    """Posterior weights and log-likelihoods of a block of rows.

    ``relative`` (n, K) are weights up to a factor of each row's own, ``total`` (n,) their sums, and
    ``log_likelihood`` (n,) is log p(t). ``layers`` is ``work[1:]`` as ``log_density`` of the nodes left it,
    (``n_layers`` − 1, n, K): what its sums need again of what was computed on the way, such as scales of heavy tails.
    """

    relative: FloatArray
    total: FloatArray
    log_likelihood: FloatArray
    layers: FloatArray | None = None


# --------------------------------------------------------------------------------------------- the five objects


@dataclass(frozen=True)
class Parameters:
    """Parameters that training changes: weights (M, D) of the map about the data's centre, and noise precision β.

    One precision for all as it stands; other kinds extend it, with a precision for each column or node and with more
    numbers. No precision is above ``ceiling``, the inverse of the smallest variance allowed.
    """

    weights: FloatArray
    precision: Precision
    ceiling: Precision = field(default=inf, kw_only=True)

    @property
    def level(self) -> float:
        """One number for the precision, where nodes or columns have precisions of their own too."""
        return float(self.precision)

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        """Penalty, to be taken off the log-likelihood."""
        return penalty.value(self.level, surface.roughness(self.weights))

    def extrapolate(self, new: Self, factor: float) -> Self:
        """The step from here to ``new``, ``factor`` times as far; the noise by its logarithm."""
        weights = self.weights + factor * (new.weights - self.weights)
        precision = np.minimum(self.precision * (new.precision / self.precision) ** factor, new.ceiling)
        return replace(new, weights=weights, precision=precision if np.ndim(precision) else float(precision))

    def pooled(self) -> Self:
        """The same with one noise for all nodes, so that it fits any number of them."""
        return self

    def at_floor(self) -> bool:
        """Whether a variance has shrunk to the smallest allowed."""
        return bool(np.any(np.asarray(self.precision) >= _EDGE * np.asarray(self.ceiling)))

    def to_arrays(self) -> dict[str, Any]:
        """Fitted attributes of the noise beside its level: numbers and arrays by name."""
        return {}


class Sums(Protocol[B_contra, S_co]):
    """Sums over rows under way, in whatever form a noise adds up fastest."""

    def add(self, loaded: B_contra, weight: FloatArray | None, posterior: Posterior, near: IntArray | None) -> None:
        """Add a block, with the weights of its rows, and its posterior over all nodes or those that are ``near``."""

    def statistics(self) -> S_co:
        """The sums so far, as the M-step takes them."""


class Nodes(Protocol[B_contra, S_co]):
    """Nodes with their noise, as one pass over the rows needs them."""

    @property
    def centers(self) -> FloatArray:
        """(K, D) images of the nodes."""

    @property
    def n_layers(self) -> int:
        """Numbers per row and node that ``log_density`` needs room for."""

    def log_density(self, loaded: B_contra, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): into ``work[0]`` what differs between nodes; returns (n,) the rest."""

    def empty_sums(self) -> Sums[B_contra, S_co]:
        """Sums of no rows."""

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        """(n, D) one row from each node named."""

    def covariance(self, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D, a)."""


class Noise(Protocol[P, B, N, S]):
    """A kind of noise with its settings: parameters P, blocks of rows B, nodes N and statistics S go together."""

    @property
    def floor(self) -> float:
        """Smallest variance allowed."""

    @property
    def capabilities(self) -> Capabilities[P, B, N, S]:
        """Implementations of what some kinds can do and others cannot."""

    def initial(self, weights: FloatArray, precision: Precision) -> Parameters:
        """Parameters to begin with, of a surface and an overall noise level, or one for each column."""

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> Parameters:
        """Parameters of what ``to_arrays`` gave; a ValueError where it does not fit."""

    def with_gaps(self) -> AnyNoise | None:
        """A noise of the same parameters that takes rows with missing cells and errors of their own, or None."""

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> B:
        """The block as nodes and sums use it; ``len()`` is its number of rows."""

    def at_nodes(self, surface: BasisMap, parameters: P, dtype: type = np.float64) -> Nodes[B, S]:
        """The nodes of a surface, for a pass over rows of that precision."""

    def m_step(self, surface: BasisMap, sums: S, penalty: Penalty, parameters: P) -> P:
        """New parameters from the statistics of all rows."""


AnyNodes: TypeAlias = Nodes[Any, Any]
AnyNoise: TypeAlias = Noise[Any, Any, Any, Any]
"""Nodes and noise of some kind, where it does not matter which.

Parameters, blocks, nodes and statistics of one kind go together, which types can say only where the kind is named. A
model holds one noise and hands its own objects back to it; ``Any`` stands for those here, and nowhere within a kind.
"""


# ----------------------------------------------------------------------------------- what only some kinds can do

Groups: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""Groups of rows, each with its own nodes: where the rows of each end, the nodes of each, and where those end."""

PairedLogDensity: TypeAlias = Callable[[B, IntArray, IntArray], FloatArray]
"""(P, M) what differs between points of log p(t | point), of a block for pairs of a row and a cell of M points."""

GroupWeights: TypeAlias = Callable[[B, Groups], tuple[FloatArray, FloatArray, FloatArray]]
"""Weights (n, k) of all groups of a block, one after another, (n,) their sums and (n,) log Σ p(t | node)."""


class GroupPlaces(Protocol[B_contra]):
    """Places of many groups of rows in latent space, by compiled code: other threads need not wait for it."""

    def means(self, loaded: B_contra, groups: Groups, embedded: FloatArray) -> tuple[FloatArray, IntArray]:
        """(n, e) means of what the nodes have in the rows of ``embedded`` (e, K), and (n,) the heaviest nodes."""

    def pieces(
        self, loaded: B_contra, groups: Groups, least: FloatArray, points: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells with a share of ``least`` (K,) of each row's weights, and the weights of the points in them.

        Those of row i are from ``starts[i]`` to ``starts[i + 1]``. ``points`` are what the noise needs of them.
        """


@dataclass(frozen=True)
class CompiledPlaces(Generic[P, B, N]):
    """Places of groups of rows among nodes, computed by compiled code.

    ``of(nodes)`` makes what computes them. ``points(surface, parameters, per_cell)`` is what that needs to know of
    points inside the cells of the lattice: the nodes of that surface, ``per_cell`` to a cell.
    """

    of: Callable[[N], GroupPlaces[B]]
    points: Callable[[BasisMap, P, int], FloatArray]


@dataclass(frozen=True)
class ScaledLogDensity(Generic[B, N]):
    """Log densities that lie near zero by themselves, so that no row needs a search for its largest.

    ``log_density`` of nodes, a block, near nodes and room puts into ``work[0]`` all but a constant of all rows or of
    each, which is returned as it is; ``exponential`` undoes those logarithms, and so has their unit.
    """

    log_density: Callable[[N, B, IntArray | None, FloatArray], float | FloatArray]
    exponential: Callable[[npt.DTypeLike], Exponential]


class CompiledSums(Sums[B_contra, S_co], Protocol):
    """Sums that take many groups of rows in one compiled call."""

    def add_groups(self, loaded: B_contra, weight: FloatArray | None, groups: Groups) -> None:
        """Add all groups of a block, which may be written over."""


@dataclass(frozen=True)
class CompiledPass(Generic[B, N, S]):
    """A compiled E-step: sums of no rows, and whether passes with every node for every row gain by it too.

    ``add_rows`` adds groups of rows to such sums straight from a table that is plain.
    """

    empty_sums: Callable[[N], CompiledSums[B, S]]
    add_rows: Callable[[Any, Rows, IntArray, Groups], None] | None = None
    dense: bool = False


@dataclass(frozen=True)
class Directions:
    """Directions that all nodes share, and the principal axes in which the surface is to begin; None: the best."""

    count: int
    axes: tuple[int, ...] | None


@dataclass(frozen=True)
class RowFactors(Generic[B, N]):
    """Factors of rows: how many, and (n, q) their means given a block and its posterior."""

    count: int
    means: Callable[[N, B, Posterior], FloatArray]


@dataclass(frozen=True)
class NodeShares(Generic[N]):
    """Share of the mixture that each node makes up, (K,), and whether training lets that differ between nodes."""

    of: Callable[[N], FloatArray]
    learned: bool


@dataclass(frozen=True)
class ColumnVariances:
    """Columns with variances of their own: the smallest allowed (D,), and the units (D,), nil where one is constant."""

    floors: FloatArray
    units: FloatArray | None


@dataclass(frozen=True)
class IndependentCells(Generic[P, B]):
    """Cells that are independent given the node: values of a block and (n, D) the precision of each cell.

    None stands for one precision of all cells. Those of a row that are ``gaussian`` have no scale in common either.
    """

    precisions: Callable[[B, P], tuple[FloatArray, FloatArray]] | None = None
    gaussian: bool = True


class WholeRowSums(NamedTuple):
    """Sums over rows without gaps: ``mass`` (K,) Σ r, ``moment`` (K, D) Σ r t, ``squares`` (D,) Σ t², and the rest."""

    mass: FloatArray
    moment: FloatArray
    squares: FloatArray
    log_likelihood: float
    total: float


@dataclass(frozen=True)
class OneProduct(Generic[N, S]):
    """Rows without gaps have log p(t | node) = −½ Σ_d p_d (t_d − y_d)² + ½ Σ_d log(p_d / 2π): one matrix product.

    ``precisions`` are the p (D,) of the nodes; ``statistics`` are what the M-step takes, of sums over rows.
    """

    precisions: Callable[[N], FloatArray]
    statistics: Callable[[WholeRowSums], S]


@dataclass(frozen=True)
class Capabilities(Generic[P, B, N, S]):
    """Implementations of what some kinds of noise can do and others cannot, each None where a kind cannot.

    They take the nodes first, where they need them. ``words`` is the name of the kind in the words of users.
    """

    words: str = ""
    bound: Callable[[N, Balls, float], FloatArray] | None = None
    """(G, K) bounds on the log responsibility of each node for any row of each ball; loose below a given least."""
    near: Callable[[N, Balls, float], NodesOfBalls] | None = None
    """The nodes that balls keep by those bounds, if their rows are known along some axes, in one compiled call."""
    scaled: ScaledLogDensity[B, N] | None = None
    """Log densities that need no search for a row's largest."""
    compiled: CompiledPass[B, N, S] | None = None
    """Sums of many groups of rows in one call."""
    one_product: OneProduct[N, S] | None = None
    """Log densities that are one matrix product, so that passes can be computed on a device."""
    compiled_weights: Callable[[N], GroupWeights[B]] | None = None
    """Weights of many groups of rows in one call."""
    places: CompiledPlaces[P, B, N] | None = None
    """Places of many groups of rows in one call."""
    load_chosen: Callable[[Rows, IntArray], B] | None = None
    """Some rows of a plain table, loaded by compiled code, which other threads need not wait for."""
    pairs: Callable[[FloatArray], PairedLogDensity[B]] | None = None
    """Log densities of rows at the points of cells, from the ``points`` that ``places`` has made of them."""
    cell_widths: Callable[[N, FloatArray], FloatArray] | None = None
    """(K, Q) lengths of the steps (K, D, Q) from each node to the next along each axis, in standard deviations of the
    noise. None where images of nodes are rows of the data space: log densities of neighbours then tell."""
    impute: Callable[[N, B, Posterior, IntArray | None], tuple[FloatArray, FloatArray]] | None = None
    """(n, D) posterior expectation of every cell and its variance, as if none of them were measured."""
    factors: RowFactors[B, N] | None = None
    """Rows have factors, and sums are found for all nodes at once."""
    node_shares: NodeShares[N] | None = None
    """Nodes differ in how much of the mixture they make up."""
    row_scales: Callable[[Posterior], FloatArray] | None = None
    """(n,) expectation of the scale by which the precision of each row is multiplied."""
    columns: ColumnVariances | None = None
    """Columns have variances of their own."""
    cells: IndependentCells[P, B] | None = None
    """Cells are independent given the node, and so the posterior of the weights is known."""
    without_floor: Callable[[], Noise[P, B, N, S]] | None = None
    """The noise without a smallest variance; several maps can then share it."""
    for_nodes: Callable[[P, IntArray], P] | None = None
    """Parameters for other nodes, each with the noise of the one named: where nodes have a noise of their own."""
    in_frame: Callable[[P, FloatArray], P] | None = None
    """Parameters in the coordinates of an orthonormal frame (D, r) in whose span the surface lies: what a row has
    across the frame is then as likely at every node."""


# ------------------------------------------------------------------------------------------------- sums over rows


@dataclass(frozen=True)
class RowStatistics:
    """Sums over rows that one M-step needs. They form a vector space: ``+`` joins blocks, ``scale`` forgets."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scale(self, factor: float) -> Self:
        """All sums times ``factor``."""
        return type(self)(*(factor * getattr(self, f.name) for f in fields(self)))


class AnyStatistics(Protocol):
    """Sums of some kind of noise, where it does not matter which: what training and the posterior of weights read."""

    @property
    def mass(self) -> FloatArray:
        """(K,) sums of the responsibilities of each node."""

    @property
    def masses(self) -> FloatArray | None:
        """(K, D) the same for each column, where columns differ in what was measured."""

    @property
    def moment(self) -> FloatArray:
        """(K, D) RᵀT: sums of the rows by the responsibilities of each node."""

    @property
    def total(self) -> float:
        """Sum of the weights of the rows."""

    @property
    def log_likelihood(self) -> float:
        """Σ w log p(t)."""

    def __add__(self, other: Self) -> Self: ...

    def scale(self, factor: float) -> Self:
        """All sums times ``factor``."""


@storable
@dataclass(frozen=True)
class Statistics(RowStatistics):
    """Sums of isotropic noise, of which every column has the same masses.

    ``mass`` (K,) is the diagonal of G (3.14), ``moment`` (K, D) is RᵀT, ``square`` is Σ w‖t‖²,
    ``log_likelihood`` is Σ w log p(t) and ``total`` is Σ w, all under the parameters of the E-step.
    """

    _kinds: ClassVar[Kinds] = {
        "mass": numbers("K"),
        "moment": numbers("K", "D"),
        "square": number,
        "log_likelihood": number,
        "total": real(0),
    }

    masses: ClassVar[None] = None

    mass: FloatArray
    moment: FloatArray
    square: float
    log_likelihood: float
    total: float

    def __iadd__(self, other: Self) -> Self:
        """The same as ``+``, in the memory of the first, which is given up."""
        np.add(self.mass, other.mass, out=self.mass)
        np.add(self.moment, other.moment, out=self.moment)
        rest = self.square + other.square, self.log_likelihood + other.log_likelihood, self.total + other.total
        return type(self)(self.mass, self.moment, *rest)

    @property
    def column_counts(self) -> FloatArray:
        """(D,) how much was measured of each column."""
        return np.full(self.moment.shape[1], self.total)


def node_masses(sums: AnyStatistics) -> FloatArray:
    """(K,) masses of the nodes, of whatever noise; (K, D) where columns differ in what was measured, or how well."""
    masses, mass = sums.masses, sums.mass
    return mass if masses is None or np.array_equal(masses, np.broadcast_to(mass[:, None], masses.shape)) else masses


def largest_weight(weight: FloatArray) -> float:
    """By which weights are divided meanwhile: a block may be in single precision, which holds none of 1e-46."""
    return float(weight.max()) or 1.0


def in_words(noise: AnyNoise) -> str:
    """The name of a noise in the words of users."""
    return noise.capabilities.words or type(noise).__name__


def noise_for_gaps(noise: AnyNoise) -> AnyNoise:
    """The noise that takes missing cells and errors; where there is none, a refusal by its name."""
    found = noise.with_gaps()
    if found is None:
        words = f"{in_words(noise)} takes no missing cells, and no errors of cells or rows"
        advice = Advice("noise", "isotropic", "fill the cells in and leave errors out, or use {}, or a noise that can")
        raise InvalidDataError(Message(words, advice))
    return found


def require(capability: C | None, noise: AnyNoise, task: str) -> C:
    """The capability; where the noise lacks it, a refusal that says for which task it is needed."""
    if capability is None:
        words = f"{in_words(noise)} cannot {task}"
        raise InvalidParameterError(Message(words, Advice("noise", "isotropic", "use {}, or a noise that can")))
    return capability


def positive_array(kept: dict[str, Any], name: str, shape: tuple[int, ...]) -> FloatArray:
    """A stored array of a noise: finite numbers above zero of a given shape, or a ValueError."""
    found = np.asarray(kept.get(name))
    if found.dtype.kind != "f" or found.shape != shape or not np.isfinite(found).all() or not (found > 0).all():
        raise ValueError(f"{name} of the noise, finite and above zero, of shape {shape}")
    return found
