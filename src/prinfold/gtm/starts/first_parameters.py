"""First parameters of the GTM family, thesis 3.2.1.

Each start is a function ``(model, rows, rng) → Parameters``; ``STARTS`` names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import (
    EMBEDDERS,
    Axes,
    EmbeddedRows,
    Embedder,
    distinct_rows,
    principal_axes,
    principal_nodes,
    spectral_placements,
)
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.exceptions import Advice, DegenerateWarning, InvalidParameterError, Message, warn_caller
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.starts.basis_sizes import enough_functions
from prinfold.gtm.starts.loop_placements import cycle_placements
from prinfold.gtm.starts.placements import Placements, Unroller
from prinfold.gtm.starts.trials import Trial, finish_trials, first_half
from prinfold.latent import LatentSpace, Lattice
from prinfold.loops import StopReason, run_fixed_point
from prinfold.numerics.distances import nearest_squared_distance
from prinfold.rows.rows import Rows, as_rows, fill_gaps
from prinfold.validation.tables import check_latent

Start = Callable[[GTMModel, Rows, np.random.Generator], Parameters]

_RIDGE = 1e-9
"""Regularisation per row of a least-squares fit to rows or nodes: only enough to be well posed."""

_PRIOR_ROUNDS = 4
"""Regressions on given places between which a prior learns of the noise."""

_PLACED_ROWS = 20_000
"""Rows that a regression on given places sees at most, or up to twice as many."""

_WARM_UP_FROM = 2**22
"""Rows × nodes from which training begins on a coarser grid."""

_WARM_UP_ITERATIONS = 30
_WARM_UP_RELAXATION = 1.8
_WARM_UP_TOL = 0.01
"""Nats per row and iteration below which the coarse grid has done its work."""

_UNROLLED_ROWS = 2000
"""Rows that are unrolled at most. Of 600 rows a roll with three turns comes out half unrolled."""

_TRIAL_ROWS = 600
"""Rows that are unrolled at first, and on which starts are compared. What came of 400 left one swiss roll in six a
little rolled. In wide noise more rows make more short cuts."""

_CYCLE_ROWS = 1000
"""Rows in which loops are sought, and on which starts are compared where there may be some."""

_MOST_TRIED = 2
"""Ways round that are compared."""

_MOST_TRIAL_ERROR_SHARE = 0.6
"""Share of the squared error of places in the principal plane that unrolled places leave at most, to be worth a trial:
0.00 to 0.6 on most rolls, coils, spirals and arcs, and 0.64 to 1.2 on real tables, where little came of the trial."""

_ROLLED_ERROR_SHARE = 0.25
"""The same share below which the trial is made even if the map from the plane has no folds and no rows that could be in
several places. Of 168 simulated tables 27 had a larger share and such a map, and a trial gained 0.02 nats at most; of
252 others two corkscrews of 300 rows lost 0.2."""

_MOST_LOOK_ERROR_SHARE = 0.8
"""The same share of a look at some rows, below which more are unrolled before the plane is taken: of six tables of 1000
closed curves and trefoils in wide noise it was 0.64 to 0.76 of three, and 0.34 to 0.55 with all rows."""

_FOLLOWED_ERROR_SHARE, _ARC_NATS = 0.1, 0.05
"""Share of the error of the plane's places below which a look has followed a curve, and nats per row by which it comes
further than the plane, half-way, where the curve is more than an arc. More rows gain nothing then."""

_LOOP_DEVIATIONS = 5.0
"""Distance between the ends of a curve, in deviations of the noise, below which it is a loop that was cut open."""

_MORE_ROWS_ALLOWANCE = 0.1
"""How much larger a share may come of more rows, which follow a roll better, and still be taken."""

_WORTH_TRAINING_TOO = 0.1
"""Nats per row that a start may be behind the first at the end of the trial and still be trained to the end, should the
map of the first come out folded. Of 12 that were 0.1 to 0.5 behind one came out ahead, by 0.007."""

_FEWEST_TRIAL_ROWS = 100
"""Rows below which the plane is kept as it is, whatever was trained from it."""

_LEAST_VARIANCE = 1e-300
"""A variance that none is smaller than, so that nothing is divided by zero."""

_SEMI_RANDOM = 0.1
"""Size of the random part of a semi-random start, relative to a random one."""


def pca_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Nodes in the plane of the first principal components.

    The noise variance is the larger of the next component's variance and half the mean squared
    distance between neighbouring nodes, so that it explains what the plane does not.
    """
    latent = model.surface.latent
    axes = principal_axes(rows, latent.n_embedded + 1)
    off_plane = float(axes.variances[latent.n_embedded]) if len(axes.variances) > latent.n_embedded else 0.0
    return plane_start(model, axes, off_plane)


def plane_start(model: GTMModel, axes: Axes, off_plane: float) -> Parameters:
    """Nodes in the plane of the first of some axes, with that variance beside it."""
    latent = model.surface.latent
    targets = principal_nodes(latent, axes)
    weights = model.surface.regress(model.surface.node_features, targets, _RIDGE * latent.n_nodes)
    return model.noise.initial(weights, _first_precision(model, weights, off_plane))


def random_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Random weights of such a size that the nodes vary as much as the data do."""
    weights = _random_weights(model, rows, rng)
    variance = principal_axes(rows, 1).column_variance
    # With equal responsibilities (3.12) is the mean squared distance over all pairs.
    spread = float(np.mean(np.square(model.surface.nodes(weights))))
    return model.noise.initial(weights, 1.0 / max(variance + spread, model.noise.floor))


def semi_random_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """The principal plane with a little randomness in every weight."""
    plane = pca_start(model, rows, rng)
    return replace(plane, weights=plane.weights + _SEMI_RANDOM * _random_weights(model, rows, rng))


def spectral_start(embedder: Embedder, model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Rows placed by a spectral embedding, weights by regression on those places.

    Of several neighbourhood sizes the one whose places explain the rows best is kept: a short cut
    across a fold sends neighbours in latent space to far ends of the data, and the regression shows it.
    """
    placements = spectral_placements(embedder, rows, model.surface.latent, rng)
    return _best_of([regression_start(model, placed) for placed in placements])


def given_start(places: FloatArray, model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Rows placed by the caller; of very many, evenly spaced ones tell as much about a few weights."""
    latent = model.surface.latent
    Z = latent.domain.retract(check_latent(places, latent.n_columns))
    some = slice(0, None, max(1, rows.n_rows // _PLACED_ROWS))
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    return _best_of([regression_start(model, EmbeddedRows(Z[some], rows.block(some), weight[some]))])


def cycle_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Rows placed by the loops that persist in them, on spaces with angles; in the principal plane without loops."""
    latent = model.surface.latent
    if not has_angles(latent):
        raise InvalidParameterError(
            Message(
                "the start 'cycles' finds angles, of which this latent space has none",
                Advice("init", "pca", "use {}"),
                Advice("init", "isomap", "{}"),
                "take a circle, cylinder or torus",
            )
        )
    fits = _cycle_fits(model, rows, rng)
    if fits:
        return _best_of(fits)
    words = "the rows do not go round in as many loops as the latent space has; training begins from their principal "
    warn_caller(words + "plane. An open latent space may suit them better.", DegenerateWarning)
    return pca_start(model, rows, rng)


def _cycle_fits(model: GTMModel, rows: Rows, rng: np.random.Generator) -> list[Fit]:
    placements = cycle_placements(cast(Lattice, model.surface.latent), *distinct_rows(rows, rng))
    return [regression_start(model, placed) for placed in placements]


def furthest_start(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
    """Of the principal plane, distances along the data and loops in them, the start that comes furthest."""
    return ranked_starts(model, rows)[0]


@dataclass
class BestStart:
    """The start that comes furthest, for one fit; the one that came second is kept, should the map come out folded."""

    second: Parameters | None = None
    unroll: Unroller = field(default_factory=Unroller)

    def __call__(self, model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
        first, *others = ranked_starts(model, rows, self.unroll)
        self.second = others[0] if others else None
        return first

    def runner_up(self) -> Start | None:
        """The start that came second, as it was found, if any did."""
        return None if self.second is None else lambda model, rows, rng: cast(Parameters, self.second)

    def enough_functions(self, basis: GaussianBasis, latent: LatentSpace, rows: Rows) -> GaussianBasis:
        """The basis, with more functions where rows are rolled up and need them."""
        return enough_functions(self.unroll, _TRIAL_ROWS, basis, latent, rows)


def has_angles(latent: LatentSpace) -> bool:
    """Whether some axis, or all, is closed to a circle."""
    return latent.node_grid is not None and any(latent.node_grid.periodic)


def ranked_starts(model: GTMModel, rows: Rows, unroll: Unroller | None = None) -> list[Parameters]:
    """First parameters by several starts, the one that comes furthest first, without those left behind.

    How far one comes shows after a little training on some of the rows; ties go to the plane. The rows are chosen by
    what is in them, so that neither order nor chance decides.
    """
    latent = model.surface.latent
    plain = GTMModel(model.surface, IsotropicNoise(model.noise.floor), model.penalty)
    plane = pca_start(plain, rows, np.random.default_rng(0))
    look = _unroll(plain, rows, _TRIAL_ROWS, unroll)
    if look is None or look.share >= _MOST_LOOK_ERROR_SHARE:
        return [_as_first(model, plane)]
    closed = has_angles(latent)
    unique, weight = distinct_rows(rows, np.random.default_rng(0), _CYCLE_ROWS) if closed else look.places.rows
    some = as_rows(unique, None, weight, width=latent.n_nodes)
    half = first_half(plain, some, plane)
    if look.share >= _ROLLED_ERROR_SHARE and np.isfinite(half.objective) and not half.troubled:
        return [_as_first(model, _kept(half, plane, rows))]
    others = _unrolled_halves(plain, rows, some, look, half)
    if not others:
        return [_as_first(model, _kept(half, plane, rows))]
    if closed:
        cycles = _each(_cycle_fits(plain, some, np.random.default_rng(0)))
        others += [first_half(plain, some, each) for each in cycles]
    trials = finish_trials([half, *others])
    # Rows so far out that no trial ends in a number are left to the fit, which names them.
    near = [each for each in trials if each.objective >= trials[0].objective - _WORTH_TRAINING_TOO]
    return [_as_first(model, _kept(each, plane, rows)) for each in near] or [_as_first(model, plane)]


def _kept(trial: Trial, plane: Parameters, rows: Rows) -> Parameters:
    """Parameters that a fit goes on from, as the trial has trained them.

    Not where it was trained on cells that were filled in, of which one came to 0.4 nats less. Nor the plane of few rows
    or of a closed space, of which twelve rows on a cylinder came to 0.2 nats less, nor if it was trained on some of the
    rows only, of which oil flow came to 0.14 less.
    """
    of_plane = trial.start is plane
    some = not _FEWEST_TRIAL_ROWS <= trial.rows.n_rows < _TRIAL_ROWS or has_angles(trial.given.surface.latent)
    as_it_was = rows.filled or (of_plane and some) or not np.isfinite(trial.objective)
    return trial.start if as_it_was else trial.state.parameters


class Unrolled(NamedTuple):
    """Rows laid out by distances along the data, and the share of the error of the plane's places that theirs leave.

    Spaces with angles have no such places, and always a trial: there the share is 0.
    """

    model: GTMModel
    places: Placements
    share: float

    @property
    def parameters(self) -> Parameters:
        """The start from these places."""
        return _best_of([regression_start(self.model, placed) for placed in self.places.unrolled])


def _unroll(model: GTMModel, rows: Rows, most: int, unroll: Unroller | None = None) -> Unrolled | None:
    """At most so many rows laid out by distances along the data.

    None where there is nothing to unroll: the surface fills the space of the rows, or they are too few.
    """
    latent = model.surface.latent
    places = (unroll or Unroller())(latent, rows, most)
    if latent.dimension >= rows.n_columns or len(places.rows[0]) <= latent.n_embedded + 2:
        return None
    if has_angles(latent):
        return Unrolled(model, places, 0.0)
    error = min(regression_start(model, placed).error for placed in places.looks)
    return Unrolled(model, places, error / max(regression_start(model, places.flat).error, _LEAST_VARIANCE))


def _unrolled_halves(model: GTMModel, rows: Rows, some: Rows, look: Unrolled, plane: Trial) -> list[Trial]:
    """Half trials, on ``some`` rows, of starts by distances along the data: after a look at some, from more rows.

    Of a surface that from more rows, unless the look did better. Of a curve both, but for those where the look is as
    good as more rows would be: a curve that it follows closely, or an arc, on which it comes no further than the plane.
    """

    def half(unrolled: Unrolled) -> list[Trial]:
        worth_it = unrolled.share < _MOST_TRIAL_ERROR_SHARE
        return [first_half(model, some, unrolled.parameters)] if worth_it else []

    more = partial(_unroll, model, rows, _UNROLLED_ROWS)
    if rows.n_rows <= _TRIAL_ROWS:
        return half(look)
    if model.surface.latent.dimension != 1:
        found = more()
        return half(look if found is None or found.share > look.share + _MORE_ROWS_ALLOWANCE else found)
    first = half(look)
    if first and not has_angles(model.surface.latent) and _needs_no_more_rows(look.share, first[0], plane):
        return first
    found = more()
    return first if found is None else [*half(found), *first]


def _needs_no_more_rows(share: float, look: Trial, plane: Trial) -> bool:
    """Whether a start from a look at an open curve is as good as one from more rows.

    It is not if the curve comes back to where it begins: where such a loop is cut open is a matter of chance, and two
    tries are better than one.
    """
    arc = look.objective < plane.objective + _ARC_NATS
    nodes = look.given.surface.nodes(look.start.weights)
    apart = float(np.linalg.norm(nodes[-1] - nodes[0]) * np.sqrt(look.start.precision))
    return apart > _LOOP_DEVIATIONS and (arc or share < _FOLLOWED_ERROR_SHARE)


def _as_first(model: GTMModel, parameters: Parameters) -> Parameters:
    return model.noise.initial(parameters.weights, parameters.precision)


def _each(fits: list[Fit]) -> list[Parameters]:
    return [fit.parameters for fit in sorted(fits, key=lambda fit: fit.error)[:_MOST_TRIED]]


class Fit(NamedTuple):
    """Weights of a map and the mean squared error per value with which they explain the rows placed."""

    model: GTMModel
    weights: FloatArray
    error: float

    @property
    def parameters(self) -> Parameters:
        """Parameters to begin with: what is left over is noise."""
        precision = _first_precision(self.model, self.weights, self.error)
        return self.model.noise.initial(self.weights, precision)


def regression_start(model: GTMModel, placed: EmbeddedRows) -> Fit:
    """Ridge regression of the rows on the basis functions at their places.

    A prior on the weights asks for the noise before it is known. What is left over by one regression serves the next,
    the first taking all that varies for noise.
    """
    Phi, ridge = model.surface.basis.features(placed.latent), _RIDGE * placed.weight.sum()
    error, strength = _mean_square(placed.rows, placed.weight), -1.0
    for _ in range(_PRIOR_ROUNDS):
        before, strength = strength, max(model.penalty.strength(1.0 / max(error, model.noise.floor)), ridge)
        if strength == before:
            break
        weights = model.surface.regress(Phi, placed.rows, strength, placed.weight)
        error = _mean_square(placed.rows - Phi @ weights, placed.weight)
    return Fit(model, weights, error)


def _mean_square(values: FloatArray, weight: FloatArray) -> float:
    """Weighted mean square of all values (n, D)."""
    square = weight @ np.einsum("nd,nd->n", values, values)
    return float(square / (weight.sum() * values.shape[1]))


def _best_of(fits: list[Fit]) -> Parameters:
    return min(fits, key=lambda fit: fit.error).parameters


STARTS: dict[str, Start] = {
    "auto": furthest_start,
    "pca": pca_start,
    "cycles": cycle_start,
    "random": random_start,
    "semi-random": semi_random_start,
    **{name: partial(spectral_start, embedder) for name, embedder in EMBEDDERS.items()},
}


class InterruptedStart(KeyboardInterrupt):
    """An interrupt that came when there was something to keep already: the ``parameters`` so far."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        self.parameters = parameters


def warm_start(
    start: Start, model: GTMModel, rows: Rows, rng: np.random.Generator, max_iter: int = _WARM_UP_ITERATIONS
) -> Parameters:
    """First parameters after, for large jobs, some training on a quarter of the nodes.

    The first iterations only unfold the surface, which a coarse grid does as well and cannot be pruned
    anyway; the weights belong to the basis and carry over to the full grid as they are. There are no more of them than
    ``max_iter``, which is what users would wait for.
    """
    first = start(model, fill_gaps(rows), rng)
    if rows.n_rows * model.surface.latent.n_nodes < _WARM_UP_FROM:
        return first
    coarse = replace(model, surface=replace(model.surface, latent=model.surface.latent.thinned()))
    outcome = run_fixed_point(
        lambda: coarse.begin(rows, first),
        lambda state: coarse.step(rows, state, _WARM_UP_RELAXATION),
        coarse.measure,
        max_iter=min(max_iter, _WARM_UP_ITERATIONS),
        tol=_WARM_UP_TOL,
    )
    parameters: Parameters = outcome.state.parameters.pooled()
    if outcome.reason is StopReason.INTERRUPTED:
        raise InterruptedStart(parameters)
    return parameters


def in_units(start: Start) -> Start:
    """The start with every column in units of the noise's own scales, so that it does not depend on those of the data.

    A noise of columns that differ cannot tell what one of them is measured in, and nor should where it begins.
    """

    def start_in_units(model: GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
        columns = model.noise.capabilities.columns
        scale = np.ones(rows.n_columns) if columns is None or columns.units is None else columns.units
        unit = np.where(scale > 0, scale, 1.0)
        plain = replace(model, noise=IsotropicNoise(_LEAST_VARIANCE))  # the model's own floor is seen to by ``initial``
        found = start(plain, replace(rows, scale=unit), rng)
        return model.noise.initial(found.weights * unit, found.precision / np.square(unit))

    return start_in_units


def _random_weights(model: GTMModel, rows: Rows, rng: np.random.Generator) -> FloatArray:
    Phi = model.surface.node_features
    spread = np.square(Phi - Phi.mean(axis=0)).sum(axis=1).mean()
    variance = principal_axes(rows, 1).column_variance
    weights = rng.standard_normal((Phi.shape[1], rows.n_columns)) * np.sqrt(
        variance / max(spread, np.finfo(float).tiny)
    )
    weights[-1] = 0.0  # the bias stays at the data's centre …
    weights[-1] -= (Phi @ weights).mean(axis=0)  # … and so does the mean of the nodes
    return np.asarray(weights)


def _first_precision(model: GTMModel, weights: FloatArray, variance: float) -> float:
    between = 0.5 * nearest_squared_distance(model.surface.nodes(weights)).mean()
    return float(1.0 / max(variance, between, model.noise.floor))
