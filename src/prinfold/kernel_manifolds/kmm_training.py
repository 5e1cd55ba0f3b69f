"""Kernel map manifolds: Gerber, Tasdizen and Whitaker (2009), sections 3 and 4.

Coordinates of any row are a mean of parameters z_j that belong to the training rows, and the surface is a mean of the
rows themselves, both by kernel regression:

    f(y) = Σ_j w_j K(‖y − y_j‖²/h_y²) z_j / Σ_j w_j K(‖y − y_j‖²/h_y²),                             (2)
    g(x) = Σ_j w_j k(‖x − x_j‖²) y_j / Σ_j w_j k(‖x − x_j‖²),    x_j = f(y_j),                       (3)

with x and z in units of the latent bandwidth. The weights of (2) at the training rows are a matrix A that training
never changes, so that X = A Z, and the gradient of the residual by Z is Aᵀ times that by X: no sum of (7) to (10) over
pairs of pairs. In the paper (9) lacks the bond of its second k and (10) the identity it multiplies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.starts import candidate_label, orient_axes, pad_axes, proposals
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.loops import Descent, Discrepancy, Highest, StoppingRule, StopReason, Validation
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.radial_kernels import Profile
from prinfold.rows.rows import as_rows

NEIGHBORHOOD_SIZES = (4, 6, 10, 15, 25)
"""Neighbourhood sizes compared by default. The smallest matters: on noisy rolls Isomap takes short cuts by six
neighbours where it takes none by four, and the residual tells them apart."""

_BLOCK_PAIRS = 2**20
"""Pairs of rows whose distances are held at once."""

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

    def shares(self, Y: FloatArray) -> csr_array:
        """(n, m) weights of the training rows at rows Y (n, D), each adding up to 1; A at the training rows."""
        parts = as_rows(Y, block_rows=max(1, _BLOCK_PAIRS // len(self.rows))).slices
        return csr_array(vstack([self._block(Y[part]) for part in parts], format="csr"))

    def _block(self, Y: FloatArray) -> csr_array:
        s = squared_distances(Y, self.rows)
        s -= s.min(axis=1, keepdims=True)
        # Divided twice: the square of a tiny bandwidth would be nil.
        s = s / self.bandwidth / self.bandwidth
        place, near = np.nonzero(s <= self.truncation**2)
        k = self.weight[near] * np.exp(-0.5 * s[place, near])
        cuts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(Y)))])
        k /= np.repeat(np.add.reduceat(k, cuts[:-1]), np.diff(cuts))
        return csr_array((k, near, cuts), shape=s.shape)


# ------------------------------------------------------------------------------------------------- bandwidths

BANDWIDTH_RULES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "mean": lambda distances: np.asarray(distances.mean(axis=1)),
    "kth": lambda distances: np.asarray(distances[:, -1]),
}
"""Readings of "the average distance between k nearest neighbours": over all k of a row, or to the last of them."""


def neighbor_distance(X: FloatArray, weight: FloatArray, k: int, rule: str) -> float:
    """Average over rows X (n, D) of the distance to their k nearest others; 1 where there is no distance at all."""
    from sklearn.neighbors import NearestNeighbors  # deferred: importing it takes longer than small fits

    if len(X) < 2:
        return 1.0
    distances = NearestNeighbors(n_neighbors=min(k, len(X) - 1)).fit(X).kneighbors()[0]
    return float(np.average(BANDWIDTH_RULES[rule](distances), weights=weight)) or 1.0


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
        h = self.data_bandwidth or neighbor_distance(Y, weight, k, self.bandwidth_rule)
        return CoordinateMap(Y, weight, h, self.truncation)


@dataclass(frozen=True, eq=False)
class KernelMaps:
    """Rows Y (m, D) and both maps between them and their coordinates, but for the parameters Z (m, Q)."""

    problem: RegressionProblem
    coordinates: CoordinateMap
    held: ValidationRows

    @classmethod
    def of(cls, coordinates: CoordinateMap, setting: KMMSetting, held: ValidationRows) -> KernelMaps:
        """Both maps from a coordinate map and the settings."""
        Y, weight = coordinates.rows, coordinates.weight
        regression = KernelRegression(make_target(Y), weight, setting.profile, leave_one_out=setting.leave_one_out)
        return cls(RegressionProblem(Y, regression), coordinates, held)

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
        return map_noise_rule(self.maps, self.maps.averaged.latent(self.Z)).level


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
    known: dict[int, KernelMaps] = {}
    plans = list(proposals(Y, weight, n_components, starts, sizes, given))
    plans += (
        [] if given is not None or "pca" in starts else list(proposals(Y, weight, n_components, ("pca",), (), None))
    )
    for name, size, embed in plans:
        if name == "pca" and "pca" not in starts and found:
            break
        try:
            Z = orient_axes(pad_axes(_embed_without_warnings(embed), n_components), Y, weight)
            found += _scale_embedding(name, Z, (size,) if size else sizes, known, Y, weight, setting, held)
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


def _embed_without_warnings(embed: Callable[[], FloatArray]) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever an embedding has to say, its residual decides
        return embed()


def _scale_embedding(
    name: str,
    Z: FloatArray,
    sizes: Sequence[int],
    known: dict[int, KernelMaps],
    Y: FloatArray,
    weight: FloatArray,
    setting: KMMSetting,
    held: ValidationRows,
) -> Iterator[_Candidate]:
    """Candidates from one embedding in latent bandwidths, by number of neighbours; ``known`` holds maps made before."""
    Z = Z - np.average(Z, axis=0, weights=weight)
    for k in sizes:
        if k not in known:
            known[k] = KernelMaps.of(setting.coordinates(Y, weight, k), setting, held)
        maps = known[k]
        X = maps.averaged.latent(Z)
        h = setting.latent_bandwidth or neighbor_distance(X, weight, k, setting.bandwidth_rule) / setting.profile.width
        residual = maps.residual(Z / h)
        if not np.isfinite(residual):
            raise InvalidDataError(f"its residual is {residual}")
        yield _Candidate(name, k, maps, Z / h, h, residual)


# -------------------------------------------------------------------------------------------------- training


class KMMStop(NamedTuple):
    """A stopping rule, and whether it needs rows held out."""

    rule: Callable[[KernelMaps, FloatArray], StoppingRule]
    holds_out: bool = False
    smooth: bool = False
    """Whether the start is the smoothest that leaves no more than noise."""


def map_noise_rule(maps: KernelMaps, X: FloatArray) -> Discrepancy:
    """Rule that ends where the residual is down to the noise, estimated from the initial coordinates X.

    X is first scaled by its likelihood bandwidth: the bandwidth of few neighbours may span less of the surface than
    the noise is wide, and planes through so short a piece follow the noise.
    """
    problem = maps.problem
    if not np.ptp(X, axis=0).any():
        return latent_descent.noise_rule(problem, X)
    rows, profile = LeaveOneOut.of(X, problem.weight, _BLOCK_PAIRS), problem.regression.profile
    return latent_descent.noise_rule(problem, X / likelihood_bandwidth([rows], profile, rows.range()[0]))


def map_validation_rule(maps: KernelMaps, X: FloatArray) -> StoppingRule:
    """Rule that keeps the lowest error of rows held out (section 4.3); a minimum where no row could be held out."""
    return Validation() if len(maps.held.rows) else Highest()


def map_minimum_rule(maps: KernelMaps, X: FloatArray) -> StoppingRule:
    """Rule that goes on to a minimum of the residual."""
    return Highest()


STOPS = {
    "noise": KMMStop(map_noise_rule, smooth=True),
    "validation": KMMStop(map_validation_rule, holds_out=True),
    "minimum": KMMStop(map_minimum_rule),
}


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
