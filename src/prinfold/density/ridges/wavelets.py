"""The orthonormal discrete wavelet transform with Daubechies' least asymmetric filter of eight taps, LA8.

One level parts a sequence v of even length N, taken as periodic, into N/2 local means and N/2 local differences,

    V_t = Σ_l g_l v_{2t+1−l mod N},    W_t = Σ_l h_l v_{2t+1−l mod N},    h_l = (−1)^l g_{7−l},

and the next level parts the means again. All levels together are one rotation of R^N: energy is kept, the inverse is
the transpose, and white noise stays white. The differences of a polynomial of degree three or less vanish where the
filter does not wrap round the ends. Everything acts on the last axis, in O(N).
"""

from __future__ import annotations

from math import log, log2, sqrt
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError

# The eight equations that define the filter, four of orthonormality and four of vanishing moments, solved to 30 digits;
# tables in print are good to twelve.
SCALING_FILTER = np.array(
    [
        -0.0757657147895022132277,
        -0.0296355276460024917644,
        0.4976186676327749899796,
        0.8037387518051320808788,
        0.2978577956053060514029,
        -0.0992195435766335325852,
        -0.0126039672620313037539,
        0.0322231006040514678716,
    ]
)
"""g, with Σ g = √2 and Σ g² = 1."""

WAVELET_FILTER = SCALING_FILTER[::-1] * (-1.0) ** np.arange(8)
"""h, the mirror image of g with alternating signs."""

MAD = 0.6744897501960817
"""Median of |z| for a standard normal z; 0.6745 in print."""


class Wavelets(NamedTuple):
    """A sequence in wavelets: ``details`` from the finest level, (…, N/2), (…, N/4), …, and the ``smooth`` rest."""

    details: tuple[FloatArray, ...]
    smooth: FloatArray


def most_levels(n: int) -> int:
    """Levels whose wavelets are no longer than the sequence: the largest J with 7 (2^J − 1) + 1 ≤ n; at least 1.

    The wavelets of level J reach over 7 (2^J − 1) + 1 values. Longer ones would meet themselves round the ends.
    """
    return max(1, int(log2((n - 1) / (len(SCALING_FILTER) - 1) + 1)))


def wavelet_transform(x: FloatArray, levels: int) -> Wavelets:
    """Part (…, N) into details of ``levels`` levels and the smooth rest; N must be a multiple of 2^levels."""
    _check(x.shape[-1], levels)
    smooth, details = np.asarray(x, dtype=float), []
    for _ in range(levels):
        at = _places(smooth.shape[-1])
        around = smooth[..., at]
        details.append(around @ WAVELET_FILTER)
        smooth = around @ SCALING_FILTER
    return Wavelets(tuple(details), smooth)


def inverse_wavelet_transform(wavelets: Wavelets) -> FloatArray:
    """(…, N) put together again: the transpose of every level, the coarsest first."""
    v = wavelets.smooth
    for detail in reversed(wavelets.details):
        n = 2 * v.shape[-1]
        finer = np.zeros((*v.shape[:-1], n))
        # Within one tap no place comes twice, so that a plain += adds them all.
        for place, g, h in zip(_places(n).T, SCALING_FILTER, WAVELET_FILTER, strict=True):
            finer[..., place] += g * v + h * detail
        v = finer
    return v


def wavelet_matrix_reference(n: int, levels: int) -> FloatArray:
    """(n, n) the whole transform as one matrix: rows are the details, finest first, and then the smooth rest."""
    _check(n, levels)
    rows, smooth = [], np.eye(n)
    for _ in range(levels):
        m = len(smooth)
        means, differences = np.zeros((m // 2, m)), np.zeros((m // 2, m))
        for t in range(m // 2):
            for tap in range(8):
                means[t, (2 * t + 1 - tap) % m] += SCALING_FILTER[tap]
                differences[t, (2 * t + 1 - tap) % m] += WAVELET_FILTER[tap]
        rows.append(differences @ smooth)
        smooth = means @ smooth
    return np.vstack([*rows, smooth])


def noise_scale(wavelets: Wavelets) -> FloatArray:
    """(…) σ = median|W₁| / 0.6745: the finest details are noise for the most part, and the median forgives the rest."""
    return np.asarray(np.median(np.abs(wavelets.details[0]), axis=-1) / MAD)


def universal_threshold(n: int) -> float:
    """√(2 log n): what the largest of n standard normal numbers hardly exceeds; in units of σ."""
    return sqrt(2.0 * log(n))


def hard(detail: FloatArray, threshold: FloatArray) -> FloatArray:
    """Details smaller than the threshold become zero."""
    return np.where(np.abs(detail) < threshold, 0.0, detail)


def soft(detail: FloatArray, threshold: FloatArray) -> FloatArray:
    """Details are drawn to zero by the threshold: sign(w) max(|w| − δ, 0)."""
    return np.asarray(np.sign(detail) * np.maximum(np.abs(detail) - threshold, 0.0))


def _places(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """(n/2, 8) which values each sum of a level takes."""
    t, tap = np.arange(n // 2), np.arange(len(SCALING_FILTER))
    return (2 * t[:, None] + 1 - tap) % n


def _check(n: int, levels: int) -> None:
    if levels < 0 or n < 1 or n % 2**levels:
        raise InvalidParameterError(
            f"{levels} levels need a length that is a multiple of {2 ** max(levels, 0)}; got {n}. "
            "Take fewer levels, or extend the sequence."
        )
