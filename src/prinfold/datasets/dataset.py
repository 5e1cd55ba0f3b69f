"""The data set that every simulator and loader returns, and the noise that simulators add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.surface import Sampler, TrueSurface, option
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.named_block import NamedBlock
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import check_call, instance_of

StrArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.str_]]
Rng: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of rows with whatever is known about where they came from.

    Attributes
    ----------
    X : (n, D) array
        The data, noise included.
    latent : (n, Q) array or None
        True latent coordinates of the rows.
    clean : (n, D) array or None
        The rows before noise.
    surface : TrueSurface or None
        The surface that ``clean`` lies on, where there is one.
    labels : (n,) integer array or None
        Class of each row, an index into ``class_names``.
    fractions : (n, 3) array or None
        Pipe flow only: fractions of gas, oil and water.
    feature_names, class_names : tuple of str
        Names of the columns and classes.
    lengths : (S,) integer array or None
        Rows of each sequence, one after another, where rows come in sequences.
    description : str
        One line on what this is and where it comes from.
    """

    X: FloatArray
    latent: FloatArray | None = None
    clean: FloatArray | None = None
    surface: TrueSurface | None = None
    labels: IntArray | None = None
    fractions: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    description: str = ""
    lengths: IntArray | None = None

    @property
    def names(self) -> StrArray | None:
        """(n,) class names of the rows, to be passed to a picture as ``labels=``; None where there are no classes."""
        if self.labels is None:
            return None
        return np.array(self.class_names)[self.labels] if self.class_names else self.labels.astype(str)

    @property
    def table(self) -> FloatArray:
        """(n, D) the rows with the names of their columns: a model that is fitted to it knows its columns by name."""
        return NamedBlock.of(self.X, self.feature_names) if self.feature_names else self.X

    @property
    def target(self) -> IntArray | None:
        """The labels, under scikit-learn's name for them."""
        return self.labels

    def __repr__(self) -> str:
        n, D = self.X.shape
        classes = f", {len(self.class_names)} classes" if self.class_names else ""
        return f"Dataset({n} × {D}{classes}: {self.description})"


_COLUMNS = 3
"""Columns of a simulated table, about."""


def _normal_noise(surface: TrueSurface, U: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    normals = surface.normals(U)
    amount = rng.normal(scale=scale, size=(len(U), normals.shape[2]))
    return np.asarray(np.einsum("ndk,nk->nd", normals, amount))


def _isotropic_noise(surface: TrueSurface, U: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    return rng.normal(scale=scale, size=(len(U), surface.n_features))


#: Kinds of noise; :func:`simulate` says what they are.
NOISES: dict[str, Callable[[TrueSurface, FloatArray, float, np.random.Generator], FloatArray]] = {
    "normal": _normal_noise,
    "isotropic": _isotropic_noise,
}


@check_call(surface=instance_of(TrueSurface, words="a TrueSurface"))
@check_kinds
@fill_parameter_docs
def simulate(
    surface: TrueSurface,
    n_samples: int,
    noise: float,
    noise_kind: str,
    rng: Rng,
    *,
    sampling: str | Sampler = "parameter",
    description: str = "",
) -> Dataset:
    """Sample a surface and add noise: rows x = s(u) + ε.

    Parameters
    ----------
    surface : TrueSurface
        What to sample.
    {n_samples}
    noise : float
        Standard deviation σ of the noise.
    noise_kind : {"normal", "isotropic"}
        ``"normal"`` puts N(0, σ²) along each direction of an orthonormal basis of the normal space, so that
        the surface is a principal surface of the distribution as long as σ is small against its radii of
        curvature; ``"isotropic"`` puts N(0, σ²) in every column, which biases it at bends.
    rng : int, numpy.random.Generator or None
        Seed; the same seed gives the same rows.
    sampling : {"parameter", "area", "grid"} or callable, default="parameter"
        Uniform in the parameter, uniform by arc length or area, or a regular grid of the parameter; a function of the
        number of rows and the generator returns latent coordinates (n, Q) of its own choice.
    description : str, default=""
        What to call the result; empty takes the name of the surface.

    Returns
    -------
    Dataset
        Rows, with the surface and the latent coordinates they came from.
    """
    if n_samples < 1:
        raise InvalidParameterError(f"n_samples must be at least 1; got {n_samples}.")
    check_draws(n_samples, _COLUMNS, "n_samples")
    if not 0.0 <= noise < np.inf:
        raise InvalidParameterError(f"noise is a standard deviation and must be finite and at least 0; got {noise}.")
    disturb = option(NOISES, "noise_kind", noise_kind)
    generator = np.random.default_rng(rng)
    latent = surface.sample_latent(n_samples, generator, sampling)
    clean = surface.point(latent)
    X = clean + disturb(surface, latent, noise, generator)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return Dataset(X, latent, clean, surface, feature_names=names, description=description or surface.name)


def random_frame(n_features: int, n_columns: int, rng: np.random.Generator) -> FloatArray:
    """(n_features, n_columns) orthonormal columns, uniformly distributed (Haar)."""
    if n_features < n_columns:
        raise InvalidParameterError(f"n_features must be at least {n_columns}; got {n_features}.")
    Q, R = np.linalg.qr(rng.normal(size=(n_features, n_columns)))
    # QR alone is not uniform: its signs follow the algorithm. Multiplying by those of R's diagonal makes it so.
    return np.asarray(Q * np.sign(np.diag(R)))
