"""Kernel map manifolds: Gerber, Tasdizen and Whitaker (2009), sections 3 and 4.

Coordinates of any row are a mean of parameters z_j that belong to the training rows, and the surface is a mean of the
rows themselves, both by kernel regression:

    f(y) = Σ_j w_j K(‖y − y_j‖²/h_y²) z_j / Σ_j w_j K(‖y − y_j‖²/h_y²),                             (2)
    g(x) = Σ_j w_j k(‖x − x_j‖²) y_j / Σ_j w_j k(‖x − x_j‖²),    x_j = f(y_j),                       (3)

with x and z in units of the latent bandwidth. The weights of (2) at the training rows are a matrix A that training
never changes, so that X = A Z, and the gradient of the residual by Z is Aᵀ times that by X: no sum of (7) to (10) over
pairs of pairs. In the paper the second k of (9) is unbound, being that of f(y_i) − f(y_j), and (10) lacks the identity
that it multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.class_densities import LeaveOneOut, likelihood_bandwidth
from prinfold.exceptions import InvalidDataError
from prinfold.kernel_manifolds import latent_descent
from prinfold.kernel_manifolds.kmm_table import Residuals
from prinfold.kernel_manifolds.latent_descent import AveragedPoints, RegressionProblem
from prinfold.kernel_manifolds.noise_level import neighborhood_noise
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.start_scales import NeighborFloor
from prinfold.kernel_manifolds.starts import candidate_label, embed_quietly, orient_axes, pad_axes, proposals
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.loops import Descent, Discrepancy, StoppingRule, StopReason, Validation
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.radial_kernels import Gaussian, Profile
from prinfold.rows.rows import as_rows, blas_on_one_thread

NEIGHBORHOOD_SIZES = (4, 6, 10, 15, 25)
"""Neighbourhood sizes compared by default. The smallest matters: on noisy rolls Isomap takes short cuts by six
neighbours where it takes none by four, and the residual tells them apart."""

_BLOCK_PAIRS = 2**20
"""Pairs of rows whose distances are held at once."""

_BANDWIDTH_PAIRS = 2**18
"""Pairs of rows over which effective numbers of neighbours are taken."""

_STAGE_STEPS = 10
"""Steps at each bandwidth of an annealing: latent points should follow the kernel, not settle under it."""

_STAGE_RATIO = 2.0**0.5
"""Ratio of one bandwidth of an annealing to the next."""


# ------------------------------------------------------------------------------------------- the coordinate map


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """f of (2) on ``rows`` (m, D) with ``weight`` (m,), but for the parameters.

    Rows whose kernel is less than exp(−t²/2) of the nearest one's are left out, t being the ``truncation``: of a
    training row these are all beyond t bandwidths, and of a row far from all others the nearest is still there.
    """

    rows: FloatArray
    weight: FloatArray
    bandwidth: float
    truncation: float

    @blas_on_one_thread()
    def shares(self, Y: FloatArray) -> csr_array:
        """(n, m) weights of the training rows at rows Y (n, D), each adding up to 1; A at the training rows.

        On one thread of BLAS: more of them may round the products of rows in another way.
        """
        parts = as_rows(Y, block_rows=max(1, _BLOCK_PAIRS // len(self.rows))).slices
        return csr_array(vstack([self._block(Y[part]) for part in parts], format="csr"))

    def _block(self, Y: FloatArray) -> csr_array:
        s = squared_distances(Y, self.rows)
        s -= s.min(axis=1, keepdims=True)
        # Divided twice: the square of a tiny bandwidth would underflow.
        s = s / self.bandwidth / self.bandwidth
        place, near = np.nonzero(s <= self.truncation**2)
        k = self.weight[near] * np.exp(-0.5 * s[place, near])
        cuts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(Y)))])
        k /= np.repeat(np.add.reduceat(k, cuts[:-1]), np.diff(cuts))
        return csr_array((k, near, cuts), shape=s.shape)


# ------------------------------------------------------------------------------------------------- bandwidths


def mean_distance(X: FloatArray, weight: FloatArray, k: int) -> float:
    """Average distance of rows X (n, D) to their k nearest others."""
    return float(np.average(_neighbor_distances(X, k).mean(axis=1), weights=weight))


def farthest_distance(X: FloatArray, weight: FloatArray, k: int) -> float:
    """Average distance of rows X (n, D) to their k-th nearest other."""
    return float(np.average(_neighbor_distances(X, k)[:, -1], weights=weight))


def effective_bandwidth(X: FloatArray, weight: FloatArray, k: int) -> float:
    """Bandwidth of a Gaussian at which rows X (n, D) have k effective neighbours, in the median.

    In many columns all rows are nearly as far as the nearest ones are, so that a bandwidth as wide as the distance to
    k neighbours has hundreds of them count.
    """
    if not np.ptp(X, axis=0).any():
        return 0.0
    rows = LeaveOneOut.of(X, weight, _BANDWIDTH_PAIRS)
    return NeighborFloor(k).within(rows, Gaussian()).bandwidth(rows, Gaussian())


BANDWIDTH_RULES: dict[str, Callable[[FloatArray, FloatArray, int], float]] = {
    "mean": mean_distance,
    "kth": farthest_distance,
    "effective": effective_bandwidth,
}
"""Bandwidths from k neighbours: two readings of "the average distance between k nearest neighbours", over all k of a
row or to the last of them, and the bandwidth with which k neighbours count."""


def _neighbor_distances(X: FloatArray, k: int) -> FloatArray:
    """(n, k) distances of rows to their nearest others."""
    from sklearn.neighbors import NearestNeighbors  # deferred: importing it takes longer than small fits

    return np.asarray(NearestNeighbors(n_neighbors=min(k, len(X) - 1)).fit(X).kneighbors()[0])


def neighbor_bandwidth(X: FloatArray, weight: FloatArray, k: int, rule: str) -> float:
    """The bandwidth that k neighbours give by a rule; 1 where there is no distance at all."""
    return (BANDWIDTH_RULES[rule](X, weight, k) if len(X) > 1 else 0.0) or 1.0


# ------------------------------------------------------------------------------------------------ the problem


class ValidationRows(NamedTuple):
    """Rows that take no part in training, and their weights; there may be none."""

    rows: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class KMMSetting:
    """Kernel, truncation and bandwidths; a bandwidth of None follows from the number of neighbours."""

    profile: Profile
    truncation: float
    bandwidth_rule: str
    data_bandwidth: float | None = None
    latent_bandwidth: float | None = None
    leave_one_out: bool = True

    def coordinates(self, Y: FloatArray, weight: FloatArray, k: int) -> CoordinateMap:
        """f but for its parameters, with the bandwidth that k neighbours give."""
        h = self.data_bandwidth or neighbor_bandwidth(Y, weight, k, self.bandwidth_rule)
        return CoordinateMap(Y, weight, h, self.truncation)


@dataclass(frozen=True, eq=False)
class KernelMaps:
    """Rows Y (m, D) and both maps between them and their coordinates, but for the parameters Z (m, Q)."""

    problem: RegressionProblem
    coordinates: CoordinateMap
    held: ValidationRows

    @classmethod
    def of(
        cls, coordinates: CoordinateMap, setting: KMMSetting, held: ValidationRows, noise: float | None = None
    ) -> KernelMaps:
        """Both maps from a coordinate map and the settings; ``noise`` is that among neighbours, where it is known."""
        Y, weight = coordinates.rows, coordinates.weight
        regression = KernelRegression(make_target(Y), weight, setting.profile, leave_one_out=setting.leave_one_out)
        return cls(RegressionProblem(Y, regression, noise), coordinates, held)

    def restricted_to(self, rows: IntArray, held: IntArray) -> KernelMaps:
        """The maps of some rows alone, with others held out."""
        part, offset = self.problem.restricted_to(rows), np.average(self.problem.Y[rows], 0, self.problem.weight[rows])
        coordinates = replace(self.coordinates, rows=part.Y, weight=part.weight)
        return KernelMaps(part, coordinates, ValidationRows(self.problem.Y[held] - offset, self.problem.weight[held]))

    @cached_property
    def averaged(self) -> AveragedPoints:
        """X = A Z with A of (2) at the training rows."""
        return AveragedPoints(self.coordinates.shares(self.coordinates.rows))

    @cached_property
    def _held_shares(self) -> csr_array:
        return self.coordinates.shares(self.held.rows)

    def residual(self, Z: FloatArray) -> float:
        """Criterion for candidates: the mean squared error of rows held out, or else of each row left out of g."""
        return self.held_error(Z) if len(self.held.rows) else self.problem.validated_error(self.averaged.latent(Z))

    def held_error(self, Z: FloatArray) -> float:
        """Mean of ‖g(f(y)) − y‖² over the rows held out."""
        surface = KernelMap(self.averaged.latent(Z), self.problem.Y, self.problem.weight, self._profile)
        gap = surface.point(np.asarray(self._held_shares @ Z)) - self.held.rows
        return float(np.average(np.einsum("nd,nd->n", gap, gap), weights=self.held.weight))

    def measure(self, Z: FloatArray) -> dict[str, float]:
        """Further entries of the history: the error of rows held out, if there are any."""
        return {"validation": self.held_error(Z)} if len(self.held.rows) else {}

    @property
    def _profile(self) -> Profile:
        return self.problem.regression.profile


def hold_out(Y: FloatArray, weight: FloatArray, share: float) -> IntArray:
    """(v,) indices of a share of the rows, even steps apart by distance from their mean; at least two stay."""
    n_held = min(max(1, round(share * len(Y))), len(Y) - 2)
    return evenly_by_radius(Y, weight, n_held) if n_held > 0 else np.empty(0, dtype=np.intp)


# ------------------------------------------------------------------------------------------------- where to begin


class KMMStart(NamedTuple):
    """Maps, initial parameters Z (m, Q) in latent bandwidths, and the table of candidates they were chosen from."""

    maps: KernelMaps
    Z: FloatArray
    residuals: Residuals

    @property
    def latent_bandwidth(self) -> float:
        """Latent bandwidth of the chosen candidate."""
        return float(self.residuals.latent_bandwidths[self.residuals.chosen])


class _Candidate(NamedTuple):
    name: str
    k: int
    maps: KernelMaps
    Z: FloatArray
    latent_bandwidth: float
    residual: float

    @property
    def level(self) -> float:
        """Residual that the noise alone would leave."""
        return map_noise_rule(self.maps, self.Z).level


def choose_start(
    Y: FloatArray,
    weight: FloatArray,
    n_components: int,
    setting: KMMSetting,
    held: ValidationRows,
    *,
    starts: Sequence[str],
    sizes: Sequence[int],
    given: FloatArray | None = None,
    smooth: bool = False,
) -> KMMStart:
    """Embed rows Y (m, D) by every method in ``starts`` and every number of neighbours, and choose by residuals.

    The lowest residual is chosen. With ``smooth``, among candidates whose residual is down to the noise the one with
    the most neighbours is. An embedding that fails is recorded; if all fail, the principal plane is taken.
    """
    found, failures = list[_Candidate](), list[str]()
    # The rows are the same for all candidates, and so is the noise among neighbours.
    noise = neighborhood_noise(Y, weight, n_components) if smooth else None
    known: dict[int, KernelMaps] = {}
    plans = list(proposals(Y, weight, n_components, starts, sizes, given))
    plans += (
        [] if given is not None or "pca" in starts else list(proposals(Y, weight, n_components, ("pca",), (), None))
    )
    for name, size, embed in plans:
        if name == "pca" and "pca" not in starts and found:
            break
        try:
            Z = orient_axes(pad_axes(embed_quietly(embed), n_components), Y, weight)
            maps_of = partial(_known_maps, known, Y, weight, setting, held, noise)
            found += _scale_embedding(name, Z, (size,) if size else sizes, maps_of, setting)
        except (ArithmeticError, RuntimeError, ValueError) as problem:
            failures.append(f"{candidate_label(name, size)} failed: {problem}")
    if not found:
        raise InvalidDataError(
            f"no embedding could start the coordinates: {'; '.join(failures)}. Try another init or n_neighbors"
        )
    table = Residuals(
        tuple(each.name for each in found),
        np.full(len(found), n_components),
        np.array([each.k for each in found]),
        np.array([each.maps.coordinates.bandwidth for each in found]),
        np.array([each.latent_bandwidth for each in found]),
        np.array([each.residual for each in found]),
        found[0].maps.problem.variance,
        tuple(failures),
        np.array([each.level for each in found]) if smooth else None,
    )
    best = found[table.chosen]
    return KMMStart(best.maps, best.Z, table)


def _known_maps(
    known: dict[int, KernelMaps],
    Y: FloatArray,
    weight: FloatArray,
    setting: KMMSetting,
    held: ValidationRows,
    noise: float | None,
    k: int,
) -> KernelMaps:
    """Maps whose bandwidth k neighbours give; ``known`` holds those made before."""
    if k not in known:
        known[k] = KernelMaps.of(setting.coordinates(Y, weight, k), setting, held, noise)
    return known[k]


def _scale_embedding(
    name: str, Z: FloatArray, sizes: Sequence[int], maps_of: Callable[[int], KernelMaps], setting: KMMSetting
) -> Iterator[_Candidate]:
    """Candidates from one embedding in latent bandwidths, by number of neighbours."""
    for k in sizes:
        maps = maps_of(k)
        weight = maps.problem.weight
        Z = Z - np.average(Z, axis=0, weights=weight)
        X = maps.averaged.latent(Z)
        h = setting.latent_bandwidth or neighbor_bandwidth(X, weight, k, setting.bandwidth_rule) / setting.profile.width
        residual = maps.residual(Z / h)
        if not np.isfinite(residual):
            raise InvalidDataError(f"its residual is {residual}")
        yield _Candidate(name, k, maps, Z / h, h, residual)


# -------------------------------------------------------------------------------------------------- training


class KMMStop(NamedTuple):
    """A stopping rule from initial parameters, and whether it needs rows held out."""

    rule: Callable[[KernelMaps, FloatArray, Descent], StoppingRule]
    holds_out: bool = False
    smooth: bool = False
    """Whether the start is the smoothest that leaves no more than noise."""


def map_noise_rule(maps: KernelMaps, Z: FloatArray) -> Discrepancy:
    """Rule that ends where the residual is down to the noise, estimated from the initial coordinates X = A Z.

    X is first scaled by its likelihood bandwidth: the bandwidth of few neighbours may span less of the surface than
    the noise is wide, and planes through so short a piece follow the noise.
    """
    problem, X = maps.problem, maps.averaged.latent(Z)
    if not np.ptp(X, axis=0).any():
        return latent_descent.noise_rule(problem, X)
    rows, profile = LeaveOneOut.of(X, problem.weight, _BLOCK_PAIRS), problem.regression.profile
    return latent_descent.noise_rule(problem, X / likelihood_bandwidth([rows], profile, rows.range()[0]))


def map_plateau_rule(maps: KernelMaps, Z: FloatArray, descent: Descent) -> StoppingRule:
    """Rule that takes as many steps as help rows held out of a trial to be reconstructed."""
    kept, held = latent_descent.split_for_trial(maps.problem.Y, maps.problem.weight)
    if len(held) == 0:
        return StoppingRule()
    trial = train_maps(maps.restricted_to(kept, held), Z[kept], descent=descent, **latent_descent.TRIAL)
    return latent_descent.plateau_of(trial)


STOPS = {
    "noise": KMMStop(lambda maps, Z, descent: map_noise_rule(maps, Z), smooth=True),
    "plateau": KMMStop(map_plateau_rule),
    # Section 4.3; a minimum where no row could be held out.
    "validation": KMMStop(
        lambda maps, Z, descent: Validation() if len(maps.held.rows) else StoppingRule(), holds_out=True
    ),
    "minimum": KMMStop(lambda maps, Z, descent: StoppingRule()),
}
"""Stopping rules by name."""


def train_maps(maps: KernelMaps, Z: FloatArray, **options: Any) -> Any:
    """Minimise the residual (5) from parameters Z."""
    return latent_descent.train_latent_points(
        maps.problem, Z, parameters=maps.averaged, measured=maps.measure, **options
    )


def anneal(maps: KernelMaps, Z: FloatArray, factor: float, descent: Descent, rule: StoppingRule) -> FloatArray:
    """Parameters after some steps under each of the bandwidths of g from ``factor`` times its own down (section 7).

    A kernel c times as wide is one of width 1 on latent points drawn together c times. Annealing ends early where the
    stopping rule is met, at the bandwidth reached.
    """
    n_stages = int(np.ceil(np.log(factor) / np.log(_STAGE_RATIO)))
    for wide in np.geomspace(factor, 1.0, n_stages + 1)[:-1]:
        outcome = train_maps(maps, Z / wide, descent=descent, rule=rule, max_iter=_STAGE_STEPS, tol=1e-12)
        if outcome.reason in (StopReason.NOISE, StopReason.VALIDATION):
            return np.asarray(outcome.state.state.x)
        Z = outcome.state.state.x * wide
    return Z
