"""Counts cut into two independent halves, so that one may choose a trajectory and the other test genes along it.

Of X ~ NB(μ, φ), with variance μ + φμ², a part A ~ BetaBinomial(X, ε/φ, (1 − ε)/φ) is NB(εμ, φ/ε), and X − A is
NB((1 − ε)μ, φ/(1 − ε)) and independent of it (Neufeld, Dharamshi, Gao & Witten 2024, Data thinning, Journal of Machine
Learning Research 25). Without dispersion it is a binomial part of a Poisson count.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray

_POISSON = 1e-6
"""Dispersion below which counts are Poisson."""


def thin_counts(counts: FloatArray, dispersion: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two halves (n, G) of counts (n, G), independent where genes have these dispersions (G,)."""
    size = 0.5 / np.maximum(dispersion, _POISSON)
    share = rng.beta(size, size, size=counts.shape)
    share[:, dispersion <= _POISSON] = 0.5
    half = rng.binomial(counts.astype(np.int64), share).astype(float)
    return half, counts - half
