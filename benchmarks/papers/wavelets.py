"""Signals denoised by wavelets, the method that McQueen compares principal curves with (section 5.3).

The orthonormal discrete wavelet transform with Daubechies' least asymmetric filter of eight taps, LA8, and the
universal threshold of Donoho and Johnstone (1994). PyWavelets does the transform: ``pip install --group bench``.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
import pywt

LA8 = "sym4"
"""PyWavelets counts vanishing moments, of which a filter of eight taps has four. Its ``sym8`` has sixteen taps."""

MEDIAN_OF_ABSOLUTE_NORMAL = 0.6744897501960817
"""Median of |z| for a standard normal z; 0.6745 in print."""


class WaveletSignal(NamedTuple):
    """The denoised ``signal`` (n,), the standard deviation of the ``noise``, and the ``threshold`` of the details."""

    signal: np.ndarray
    noise: float
    threshold: float


def denoise_by_wavelets(x: np.ndarray, threshold: str = "hard", boundary: str = "reflection") -> WaveletSignal:
    """Set details below δ = σ √(2 log n) to zero; ``"soft"`` draws the others to zero by δ as well.

    σ = median |W₁| / 0.6745 over the finest details W₁. After the end of the signal comes the signal backwards
    (``"reflection"``) or its beginning (``"periodic"``). A length that is no multiple of 2^levels is extended to one by
    reflection first. Fourteen samples are the fewest.
    """
    n = len(x)
    levels = pywt.dwt_max_level(n, LA8)
    extended = np.pad(x, (0, -n % 2**levels), mode="symmetric")
    if boundary == "reflection":
        extended = np.concatenate([extended, extended[::-1]])
    smooth, *details = transform(extended, levels)
    noise = float(np.median(np.abs(details[-1])) / MEDIAN_OF_ABSOLUTE_NORMAL)
    delta = noise * sqrt(2.0 * log(n))
    kept = [pywt.threshold(detail, delta, mode=threshold) for detail in details]
    return WaveletSignal(inverse_transform([smooth, *kept])[:n], noise, delta)


def transform(x: np.ndarray, levels: int) -> list[np.ndarray]:
    """The smooth rest and the details, the coarsest first, of a periodic sequence whose length 2^levels divides.

    V_t = Σ_l g_l v_{2t+1−l mod N} and W_t = −Σ_l h_l v_{2t+1−l mod N} at each level (Percival and Walden 2000, chapter
    4). PyWavelets has 2t+4−l there, three places on: so the sequence is turned by three places for every level. Details
    of the finer levels come turned as well, and are otherwise the same.
    """
    return list(pywt.wavedec(np.roll(x, _turn(levels)), LA8, mode="periodization", level=levels))


def inverse_transform(parts: list[np.ndarray]) -> np.ndarray:
    """The sequence of which :func:`transform` gives these parts."""
    return np.asarray(np.roll(pywt.waverec(parts, LA8, mode="periodization"), -_turn(len(parts) - 1)))


def _turn(levels: int) -> int:
    """3 (1 + 2 + 4 + …): a place at level j is 2^(j−1) places of the sequence."""
    return 3 * (2**levels - 1)
