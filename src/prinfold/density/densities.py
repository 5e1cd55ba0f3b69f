"""Densities with gradient and Hessian, whose ridges are found: the interface, and Gaussian kernels on rows.

A density is anything with four verbs, so that users can bring their own: its logarithm, that with gradient and Hessian
in one pass, the mean shift that its gradient suggests, and the length over which it changes. All take rows (n, D), and
the answer for a row does not depend on what comes with it. Gradient, Hessian and mean shift of kernels are those of
Ozertem & Erdogmus (2011); McQueen, sections 4.2 and 4.3, where g = p m/h² with m the mean shift (the printed formula
subtracts x twice).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import log, pi
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from scipy.linalg import solve_triangular

from prinfold._typing import FloatArray
from prinfold.density.kernel_moments import KernelSums
from prinfold.density.kernel_sums import ACCURACY, make_sums
from prinfold.density.kernel_widths import Bandwidth, check_bandwidth
from prinfold.exceptions import InvalidDataError, InvalidParameterError, shown
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part, positive, text
from prinfold.geometry.column_span import ColumnSpan
from prinfold.rows.rows import shared_property
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import instance_of


class Derivatives(NamedTuple):
    """log p (n,), its gradient (n, D) and its Hessian (n, D, D)."""

    log_density: FloatArray
    gradient: FloatArray
    hessian: FloatArray

    def with_gradient(self, gradient: FloatArray) -> Derivatives:
        """These derivatives with another gradient, and with whatever else a density has attached to them."""
        other = self._replace(gradient=gradient)
        getattr(other, "__dict__", {}).update(getattr(self, "__dict__", {}))
        return other


STORED_BANDWIDTH = positive | numbers("bandwidths", above=0) | numbers("bandwidths", "bandwidths")
"""A bandwidth as files hold it: one number, one for each column or row, or a matrix."""

STORED_DENSITY = part(
    "KernelDensity", "AdaptiveDensity", "SphereDensity", "Restricted", "MixtureDensity", "RatioDensity"
)
"""Densities that files hold."""


@runtime_checkable
class Density(Protocol):
    """A density at places X (n, D)."""

    def log_density(self, X: FloatArray) -> FloatArray:
        """(n,) log p, finite everywhere."""

    def derivatives(self, X: FloatArray) -> Derivatives:
        """log p with gradient and Hessian."""

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """(n, D) the step that mean shift takes uphill: a positive definite matrix times ``at.gradient``.

        That may be a part of the gradient only, such as the one across a ridge.
        """

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) length over which the density changes: the unit of steps and tolerances."""


@runtime_checkable
class ResampledDensity(Density, Protocol):
    """A density of kernels of one bandwidth, which can be put on other rows; the user's own need not be one."""

    def kernels(self) -> KernelDensity:
        """The kernels that the density stands on, with their rows and weights."""

    def on_rows(self, rows: FloatArray, weight: FloatArray) -> Density:
        """The density that other rows (n, D) with weights (n,) have, with the same bandwidth and mask."""


def resampled(density: Density) -> ResampledDensity:
    """The density itself, if it can be put on other rows; else raises an error."""
    if isinstance(density, ResampledDensity):
        return density
    raise InvalidParameterError(
        f"resampling needs kernels of one bandwidth on the rows, got {type(density).__name__}. "
        "Give a bandwidth, or the name of a rule for one"
    )


@runtime_checkable
class SpannedDensity(Density, Protocol):
    """A density that may lie in the span of few rows."""

    @property
    def in_span(self) -> KernelsInSpan | None:
        """The same density in coordinates of that span; None where they would be no fewer than the columns."""


class Kernels(NamedTuple):
    """Whitened coordinates u = F⁻¹ (x − o), in which every kernel is the standard normal; the kernels' matrix is F Fᵀ.

    ``factor`` is F: a number, (D,) the diagonal, or (D, D) a lower triangle; ``inverse`` is its inverse.
    """

    origin: FloatArray
    factor: FloatArray
    inverse: FloatArray
    log_volume: float
    """log √det H."""

    @classmethod
    def of(cls, bandwidth: Bandwidth, origin: FloatArray) -> Kernels:
        """Coordinates of kernels with a bandwidth: a number, one for each column, or H itself."""
        given, D = np.asarray(bandwidth, dtype=np.float64), len(origin)
        if given.ndim < 2:
            inverse = np.asarray(1.0 / given)
            return cls(origin, given, inverse, float(np.log(np.broadcast_to(given, D)).sum()))
        factor = np.linalg.cholesky(given)
        inverse = solve_triangular(factor, np.eye(D), lower=True)
        return cls(origin, factor, inverse, float(np.log(np.diag(factor)).sum()))

    def whiten(self, X: FloatArray) -> FloatArray:
        """(n, D) coordinates u of places."""
        return _times(self.inverse, np.asarray(X, dtype=np.float64) - self.origin)

    def unwhiten_steps(self, steps: FloatArray) -> FloatArray:
        """(n, D) F v: steps in data space from those in the coordinates u."""
        return _times(self.factor, steps)

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """(n, D) F⁻ᵀ g: the gradient by x from the gradient g by u."""
        return _times(self.inverse.T, gradient)

    def hessian(self, hessian: FloatArray) -> FloatArray:
        """(n, D, D) F⁻ᵀ A F⁻¹: the Hessian by x from the Hessian A by u; written over ``hessian`` where it can be."""
        if self.inverse.ndim == 2:
            return np.asarray(self.inverse.T @ hessian @ self.inverse)
        hessian *= self.inverse * self.inverse if self.inverse.ndim == 0 else np.outer(self.inverse, self.inverse)
        return hessian


def _times(factor: FloatArray, V: FloatArray) -> FloatArray:
    """(n, D) the factor times every row, each as if it came alone."""
    return np.asarray((factor @ V[:, :, None])[:, :, 0] if factor.ndim == 2 else factor * V)


IS_DERIVATIVES = instance_of(Derivatives, words="what derivatives(X) returns")
"""What mean shift is given beside places."""


@storable
@check_verbs({"X": attrgetter("n_columns"), "rows": attrgetter("n_columns")}, at=IS_DERIVATIVES)
@dataclass(frozen=True, eq=False)
class KernelDensity:
    """Gaussian kernels of one shape on rows.

    p(x) = Σ_j w_j exp(−½ (x − x_j)ᵀ H⁻¹ (x − x_j)) / ((2π)^(D/2) √det H Σ_j w_j)

    Parameters
    ----------
    rows : array (m, D)
        Where the kernels are.
    weight : array (m,)
        Their weights, none negative; rows of no weight count for nothing.
    bandwidth : float, array (D,) or array (D, D)
        h, with H = h² I; one for each column, with H = diag(h²); or H itself, which has squared units.
    accuracy : {"truncated", "exact", "compressed"}
        What is left out of the sums: what together is below a millionth of them, with polynomials in their place where
        rows are dense; nothing; or more, with rows within a quarter of a bandwidth of each other merged, which changes
        log p by some 1e-5 and takes a fraction of the time from 100 000 rows on.
        :mod:`prinfold.density.kernel_sums` states the bounds.
    """

    _kinds: ClassVar[Kinds] = {
        "rows": numbers("m", "D"),
        "weight": numbers("m", least=0),
        "bandwidth": positive | numbers("D", above=0) | numbers("D", "D"),
        "accuracy": text,
    }

    rows: FloatArray
    weight: FloatArray
    bandwidth: Bandwidth
    accuracy: str = "truncated"

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(self.rows.shape[1])

    def __post_init__(self) -> None:
        check_rows(self.rows, self.weight)
        check_bandwidth(self.bandwidth, np.shape(self.rows)[1])
        check_accuracy(self.accuracy)

    def log_density(self, X: FloatArray) -> FloatArray:
        return self._sums.log_sum(self._kernels.whiten(X)) - self._log_volume

    def derivatives(self, X: FloatArray) -> Derivatives:
        value, shift, spread = self._sums.moments(self._kernels.whiten(X))
        every = np.arange(spread.shape[1])
        spread[:, every, every] -= 1.0
        value -= self._log_volume
        return Derivatives(value, self._kernels.gradient(shift), self._kernels.hessian(spread))

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """m = Σ b_j x_j − x = H ∇ log p, with b the shares of the kernels at x."""
        kernels = self._kernels
        return kernels.unwhiten_steps(_times(kernels.factor.T, at.gradient))

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) the bandwidth, of a matrix the geometric mean of its axes."""
        return np.full(len(X), float(np.exp(self._kernels.log_volume / self.rows.shape[1])))

    def kernels(self) -> KernelDensity:
        return self

    def on_rows(self, rows: FloatArray, weight: FloatArray) -> KernelDensity:
        return replace(self, rows=rows, weight=weight)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # cached sums are made again

    @shared_property
    def in_span(self) -> KernelsInSpan | None:
        n, D = self.rows.shape
        return KernelsInSpan.of(self) if n + 1 < D and np.ndim(self.bandwidth) == 0 else None

    @shared_property
    def _kernels(self) -> Kernels:
        # About the middle of the rows, so that none loses digits to where the zero of a column happens to be.
        return Kernels.of(self.bandwidth, np.median(self.rows, axis=0))

    @shared_property
    def _sums(self) -> KernelSums:
        counts = np.asarray(self.weight) > 0
        rows = self.rows if counts.all() else self.rows[counts]
        return make_sums(self._kernels.whiten(rows), np.asarray(self.weight)[counts], ACCURACY[self.accuracy])

    @shared_property
    def _log_volume(self) -> float:
        return float(0.5 * self.rows.shape[1] * log(2.0 * pi) + self._kernels.log_volume)


@dataclass(frozen=True, eq=False)
class KernelsInSpan:
    """Round kernels on n rows of many more columns, as seen from a place: in the rows' span, and how far outside.

    With F the frame of the span and t the distance of x from it,

        log p(x) = log p_F(xF, t) − (D − r − 1) log(√(2π) h),

    p_F being the density of r + 1 columns with kernels on (x_j F, 0). In the D − r − 1 directions that are left out
    the gradient vanishes, and the second derivative is −1/h², the least that there can be.
    """

    span: ColumnSpan
    density: KernelDensity
    log_left_out: float

    @classmethod
    def of(cls, wide: KernelDensity) -> KernelsInSpan:
        """The coordinates for a density of more columns than rows."""
        origin, (n, D) = np.median(wide.rows, axis=0), wide.rows.shape
        span = ColumnSpan.of(wide.rows - origin, origin)
        places = np.pad(span.inside(wide.rows), ((0, 0), (0, 1)))
        left_out = (D - n - 1) * (0.5 * log(2.0 * pi) + log(float(wide.bandwidth)))
        return cls(span, replace(wide, rows=places), left_out)

    def enter(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(m, r + 1) coordinates of places (m, D), and (m, D) unit vectors from the span to each, or zeros."""
        frame = cast(FloatArray, self.span.frame)
        away = X - self.span.origin
        inside = _times(frame.T, away)  # each place as if it came alone
        away -= _times(frame, inside)
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        return np.append(inside, distance, axis=1), away / np.where(distance > 0, distance, 1.0)

    def leave(self, vectors: FloatArray, outward: FloatArray) -> FloatArray:
        """(m, D, k) vectors from their coordinates (m, r + 1, k)."""
        inside = cast(FloatArray, self.span.frame) @ vectors[:, :-1]
        return np.asarray(inside + outward[:, :, None] * vectors[:, -1:])


def check_rows(rows: Any, weight: Any) -> None:
    """Refuse rows and weights that kernels cannot be put on."""
    if not all(isinstance(each, np.ndarray) and each.dtype.kind in "fiu" for each in (rows, weight)):
        raise InvalidDataError(
            f"rows and weights of a density must be NumPy arrays of numbers, got {shown(rows)} and {shown(weight)}"
        )
    if np.ndim(rows) != 2 or 0 in np.shape(rows):
        raise InvalidDataError(f"a density needs rows (m, D) of numbers, got an array of shape {np.shape(rows)}")
    if not np.isfinite(rows).all():
        raise InvalidDataError("rows of a density must be finite; drop those that hold NaN or infinity")
    if np.shape(weight) != (len(rows),):
        raise InvalidDataError(f"expected one weight for each of {len(rows)} rows, got shape {np.shape(weight)}")
    if not (np.isfinite(weight).all() and np.min(weight) >= 0 and np.max(weight) > 0):
        raise InvalidDataError("weights must be finite, none of them negative and not all of them zero")


def check_accuracy(accuracy: str) -> None:
    """Refuse an accuracy that is not in the table."""
    if accuracy not in ACCURACY:
        raise InvalidParameterError(f"accuracy={accuracy!r} is not one of {sorted(ACCURACY)}")
