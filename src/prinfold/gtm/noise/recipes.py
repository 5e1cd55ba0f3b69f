"""Recipes for the noise of a GTM, by name or as objects with settings.

A recipe has one verb, ``make``, which turns how far the columns spread into the noise of a model. It may say in
``needs`` what the noise asks of the rest of a fit. ``NOISES`` names those that need no settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.bases import BASIS
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import make_basis
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import array, mapping_of, number
from prinfold.gtm.noise.factor import FactorNoise
from prinfold.gtm.noise.factor_loadings import AlignedLoading, SharedLoading
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.gtm.noise.protocol import AnyNoise, Directions, Noise
from prinfold.gtm.noise.student import MOST_DF, StudentCells
from prinfold.gtm.noise.varying import SmoothNoise
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, axis_counts, flag, integer, nothing, one_of, real

_FUNCTIONS_PER_AXIS = {1: 4, 2: 3, 3: 2}
_FUNCTIONS_ON_A_SPHERE = 12
"""Basis functions along each axis, by the number of axes, for what varies slowly; with more axes one and a plane."""


NOISE_PARAMETERS = mapping_of(number | array())
"""Numbers and arrays that a file holds of a noise, by names; the noise itself checks those and their shapes."""


class ColumnSpread(NamedTuple):
    """Spread of data.

    ``floor`` is the smallest noise variance on average over the columns, ``floors`` (D,) are the smallest of each, and
    ``scale`` (D,) is the standard deviation of each column, 0 where it does not vary.
    """

    floor: float
    floors: FloatArray
    scale: FloatArray

    @property
    def n_columns(self) -> int:
        return len(self.floors)


def spread_of_model(variance: float, n_columns: int) -> ColumnSpread:
    """The spread for a model that is fitted and not trained further, in place of that of the data."""
    return ColumnSpread(variance, np.full(n_columns, variance), np.ones(n_columns))


class NoiseNeeds(NamedTuple):
    """Requirements of a noise on the rest of a fit.

    One that is ``robust`` expects outliers, and neither the origin nor the start is then led by them. With
    ``own_units`` each column has a scale of its own, and the start must not depend on those of the data. Directions
    that all nodes share have to begin somewhere.
    """

    robust: bool = False
    own_units: bool = False
    directions: Directions | None = None


class NoiseRecipe(Protocol):
    """A noise model independent of the data until made."""

    @property
    def needs(self) -> NoiseNeeds:
        """Requirements of the noise on the rest of a fit."""

    def make(self, surface: BasisMap, spread: ColumnSpread) -> AnyNoise:
        """The noise about a surface in data of that spread."""


def needs_of(recipe: NoiseRecipe) -> NoiseNeeds:
    """Requirements of a noise; a recipe that a user wrote may leave them out."""
    return getattr(recipe, "needs", NoiseNeeds())


def make_noise(recipe: NoiseRecipe, surface: BasisMap, spread: ColumnSpread) -> AnyNoise:
    """The noise of a recipe; one that a user wrote is refused by the names of the verbs that it lacks."""
    noise = recipe.make(surface, spread)
    verbs = [name for name in vars(Noise) if not name.startswith("_")]
    if missing := [name for name in verbs if not hasattr(noise, name)]:
        raise InvalidParameterError(
            f"{type(recipe).__name__}.make gave a {type(noise).__name__} without {', '.join(missing)}, but a noise has "
            f"{', '.join(verbs)}; write what is missing"
        )
    return noise


def check_recipe(recipe: Any, **constraints: Constraint) -> None:
    """Raise an error for settings of a recipe that are not allowed."""
    for name, constraint in constraints.items():
        value = getattr(recipe, name)
        if not constraint.test(value):
            raise InvalidParameterError(f"{type(recipe).__name__}: {constraint.refusal(name, value)}")


def _are_axes(value: object) -> bool:
    return isinstance(value, tuple | list) and all(map(integer(0).test, value)) and len(set(value)) == len(value) > 0


AXES = nothing | Constraint(_are_axes, "a tuple of different integers of at least 0")
"""A constraint on the principal axes that a surface begins in."""


@storable
@dataclass(frozen=True)
class PlainNoise:
    """The same Gaussian noise in every direction: the GTM as it was proposed."""

    needs: ClassVar[NoiseNeeds] = NoiseNeeds()

    def make(self, surface: BasisMap, spread: ColumnSpread) -> IsotropicNoise:
        return IsotropicNoise(spread.floor)


@storable
@check_verbs()
@dataclass(frozen=True)
class DiagonalNoise:
    """Gaussian noise with a variance for each column, so that columns may have units of their own."""

    needs: ClassVar[NoiseNeeds] = NoiseNeeds(own_units=True)

    def make(self, surface: BasisMap, spread: ColumnSpread) -> CellNoise:
        return CellNoise(spread.floor, spread.floors, spread.scale)


@storable
@check_verbs()
@dataclass(frozen=True)
class StudentNoise:
    """Noise with heavy tails: a Student t about each node, for data with outliers.

    Parameters
    ----------
    df : float, default=None
        Degrees of freedom ν of the t; None learns them. 1 is a Cauchy distribution, and large ones are normal.
    min_df : float, default=1.0
        Fewest degrees of freedom where they are learned.
    columns : {"shared", "own"}, default="shared"
        Whether all columns have one scale, or each has its own.
    """

    df: float | None = None
    min_df: float = 1.0
    columns: str = "shared"

    @property
    def needs(self) -> NoiseNeeds:
        return NoiseNeeds(robust=True, own_units=self.columns == "own")

    def __post_init__(self) -> None:
        within = Constraint(lambda v: real(0, above=True).test(v) and v <= MOST_DF, f"above 0 and at most {MOST_DF:g}")
        check_recipe(self, df=nothing | real(0, above=True), min_df=within, columns=one_of(("shared", "own")))

    def make(self, surface: BasisMap, spread: ColumnSpread) -> StudentCells:
        own = (spread.floors, spread.scale) if self.columns == "own" else (None, None)
        bounds = (self.min_df, MOST_DF) if self.df is None else (self.df, self.df)
        return StudentCells(CellNoise(spread.floor, *own), (float(bounds[0]), float(bounds[1])))


@storable
@check_verbs()
@dataclass(frozen=True)
class AlignedNoise:
    """Gaussian noise that reaches further along the surface, and the further the more it is stretched there.

    The covariance at a node is I/β + η J Jᵀ, with J the derivatives of the map (thesis 6.2), so that nodes may be far
    apart without the noise across the surface having to bridge the gaps between them.

    Parameters
    ----------
    reach : float, default=None
        √η, how far noise reaches along the surface, in units of the distance of neighbouring nodes. None is learned
        by maximum likelihood, up to 1.
    """

    reach: float | None = None
    needs: ClassVar[NoiseNeeds] = NoiseNeeds()

    def __post_init__(self) -> None:
        check_recipe(self, reach=nothing | real(0))

    def make(self, surface: BasisMap, spread: ColumnSpread) -> FactorNoise:
        reach = None if self.reach is None else float(self.reach)
        return FactorNoise(spread.floor, AlignedLoading(surface.latent.dimension, surface.latent.spacing, reach))


@storable
@check_verbs()
@dataclass(frozen=True)
class LowRankNoise:
    """Gaussian noise that reaches further in a few directions, the same for all nodes: the semi-linear model.

    The covariance is I/β + V Vᵀ with V of ``rank`` columns (thesis 6.4): data that are curved in some directions and
    straight in others need nodes along the curved ones only.

    Parameters
    ----------
    rank : int
        Number of directions, below the number of columns.
    axes : tuple of int, default=None
        Principal axes, 0 being the longest, in which the surface begins; the longest of the others are where the
        directions begin. None tries each choice among the first for a few iterations, and takes the one with the
        highest objective; with ``init`` other than ``"pca"`` the directions begin where the surface leaves most over.
    """

    rank: int
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_recipe(self, rank=integer(1), axes=AXES)
        object.__setattr__(self, "axes", None if self.axes is None else tuple(map(int, self.axes)))

    def make(self, surface: BasisMap, spread: ColumnSpread) -> FactorNoise:
        if self.rank >= spread.n_columns:
            raise InvalidParameterError(
                f"noise of rank={self.rank} leaves nothing over where n_features = {spread.n_columns}; "
                "the rank must be below that"
            )
        return FactorNoise(spread.floor, SharedLoading(int(self.rank), self.axes))

    @property
    def needs(self) -> NoiseNeeds:
        return NoiseNeeds(directions=Directions(int(self.rank), self.axes))


@storable
@check_verbs()
@dataclass(frozen=True)
class VaryingNoise:
    """Isotropic noise and mixing weights that vary smoothly over latent space, thesis 6.1.

    Parameters
    ----------
    precision : bool, default=True
        Whether the precision of the noise varies.
    mixing : bool, default=True
        Whether the mixing weights of the nodes vary, so that data need not spread evenly over the latent space.
    basis : int, tuple of int, or basis object, default=None
        Basis functions along each axis for the logarithms of both; None takes 4 on a curve, 3 on a surface, and fewer
        in more dimensions.
    ridge : float, default=0.1
        Penalty on the squares of their coefficients; larger is closer to constant.
    """

    precision: bool = True
    mixing: bool = True
    basis: Any = None
    ridge: float = 0.1
    needs: ClassVar[NoiseNeeds] = NoiseNeeds()

    def __post_init__(self) -> None:
        functions = nothing | axis_counts | BASIS
        check_recipe(self, precision=flag, mixing=flag, basis=functions, ridge=real(0, above=True))

    def make(self, surface: BasisMap, spread: ColumnSpread) -> SmoothNoise:
        latent = surface.latent
        curved = latent.dimension < latent.n_columns  # a sphere, which is no product of axes
        few = _FUNCTIONS_ON_A_SPHERE if curved else _FUNCTIONS_PER_AXIS.get(latent.n_columns, 1)
        basis = make_basis(few if self.basis is None else self.basis, 1.0, False, latent).bind(latent)
        features = basis.features(latent.nodes)
        return SmoothNoise(spread.floor, basis, features, float(self.ridge), bool(self.precision), bool(self.mixing))


NOISES: dict[str, NoiseRecipe] = {
    "isotropic": PlainNoise(),
    "diagonal": DiagonalNoise(),
    "aligned": AlignedNoise(),
    "student": StudentNoise(),
    "varying": VaryingNoise(),
}
"""Noise models that need no settings."""
