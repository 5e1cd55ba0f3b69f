"""Starts of a mixture of GTMs: rows in parts, a map for each part, and the best of several partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, permutations
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.gtm.fitting import GivenRows, assemble, complete_start, model_for_gaps
from prinfold.gtm.mixture.model import MixtureModel, MixtureParameters, MixtureState
from prinfold.gtm.mixture.partitions import distinct_rows, find_centers, find_clouds, find_flats, parts_of
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.gtm.recipe import Recipe, TrainingJob
from prinfold.gtm.starts.first_parameters import has_angles, pca_start, warm_start
from prinfold.latent import LatentSpace
from prinfold.loops import StopReason, run_fixed_point
from prinfold.rows.rows import Rows, as_rows, dense
from prinfold.validation.tables import as_entries, check_latent, has_gaps

PARTITIONS = {
    "auto": (find_centers, find_flats, find_clouds),
    "centers": (find_centers,),
    "flats": (find_flats,),
    "clouds": (find_clouds,),
}
"""Name → functions that partition the rows, used in turn."""

_TRIAL_ITERATIONS = 15
"""EM iterations after which starts are compared."""

_MOST_ORDERS = 6
"""Ways of giving parts to maps of different recipes that are tried for each partition."""

_ROWS_FOR_OWN_SPREAD = 20
"""Distinct rows from which a part tells of a scale of its own: a few rows that happen to lie close would make the noise
of their map as small as they like."""

_MOST_SAMPLED_ROWS = 2000


class MapSettings(NamedTuple):
    """Settings of a map that a start takes: its recipe, made anew for each part, and whether it tries starts."""

    recipe: Callable[[], Recipe]
    tries_starts: bool


@dataclass(frozen=True)
class MixtureStart:
    """A mixture after the first steps: jobs of the maps, the model, all rows, and the state.

    ``numbers_per_row`` is how many the widest of the maps derives of a row; ``free`` says that the order of the maps
    means nothing.
    """

    jobs: list[TrainingJob]
    model: MixtureModel
    rows: Rows
    state: MixtureState
    numbers_per_row: int
    free: bool

    def on_stream(self, stream: Rows) -> MixtureStart:
        """The start on a stream of rows, of which those that it was made from are a sample."""
        model = self.model
        if stream.gaps and not self.rows.gaps:
            model = replace(model, maps=tuple(model_for_gaps(stream, each) for each in model.maps))
        return replace(self, model=model, rows=stream, state=model.begin(stream, self.state.parameters))


def begin(mixture: Any, settings: list[MapSettings], given: GivenRows, rng: np.random.Generator) -> MixtureStart:
    """The best of several starts after a few iterations; where there is one only, that one."""
    whole = assemble(settings[0].recipe(), *given[:3])
    several = any(each != settings[0] for each in settings)
    if given.places is not None:
        return _begin_from_parts(mixture, settings, given, whole, rng, free=False)
    found = _distinct_parts(mixture, len(settings), whole, rng)
    ways = [(part, order) for part in found for order in _orders(len(settings), several)]
    # One after the other: memberships of all at once would be many times as long as the table.
    shares = (np.eye(len(settings))[:, order][part] for part, order in ways)
    given_to = (given._replace(places=each) for each in shares)
    if len(ways) == 1:
        return _begin_from_parts(mixture, settings, next(given_to), whole, rng, not several)
    tried = ((each, _try_start(mixture, settings, each, whole, rng, not several, planes=True)) for each in given_to)
    parts, best = max(tried, key=lambda pair: _objective(pair[1]))
    if not any(each.tries_starts for each in settings):
        return best
    # Which parts are best shows from planes; how their maps are best begun is then asked once.
    return max(best, _try_start(mixture, settings, parts, whole, rng, not several), key=_objective)


def _try_start(
    mixture: Any,
    settings: list[MapSettings],
    given: GivenRows,
    whole: TrainingJob,
    rng: np.random.Generator,
    free: bool,
    planes: bool = False,
) -> MixtureStart:
    return _train_briefly(mixture, _begin_from_parts(mixture, settings, given, whole, rng, free, planes))


def _objective(begun: MixtureStart) -> float:
    return begun.model.measure(begun.state)["objective"]


def _distinct_parts(mixture: Any, n_maps: int, whole: TrainingJob, rng: np.random.Generator) -> list[IntArray]:
    """(n,) parts of all rows, the heaviest first, by as many partitions as are wanted; those found twice once."""
    if n_maps == 1:
        return [np.zeros(whole.rows.n_rows, dtype=np.intp)]
    columns = whole.model.noise.capabilities.columns
    scale = None if columns is None else columns.units
    rows = whole.rows if scale is None else replace(whole.rows, scale=np.where(scale > 0, scale, 1.0))
    among, kinds = distinct_rows(rows), PARTITIONS[mixture.partition]
    flat = min(whole.model.surface.latent.dimension, rows.n_columns - 1)
    found: dict[bytes, IntArray] = {}
    for i in range(mixture.n_init):
        found_by = kinds[i % len(kinds)](among, n_maps, flat, rng)
        part = _number_by_weight(parts_of(rows, found_by), rows.weight, n_maps)
        found.setdefault(part.tobytes(), part)
    return list(found.values())


def _number_by_weight(part: IntArray, weight: FloatArray | None, n_maps: int) -> IntArray:
    """Parts numbered anew, the heaviest first."""
    order = np.argsort(-np.bincount(part, weights=weight, minlength=n_maps), kind="stable")
    return np.argsort(order)[part]


def _orders(n_maps: int, several: bool) -> list[tuple[int, ...]]:
    """Assignments of parts to maps; only one of them where all maps have the same recipe."""
    return list(islice(permutations(range(n_maps)), _MOST_ORDERS if several else 1))


def _begin_from_parts(
    mixture: Any,
    settings: list[MapSettings],
    given: GivenRows,
    whole: TrainingJob,
    rng: np.random.Generator,
    free: bool,
    planes: bool = False,
) -> MixtureStart:
    """Start each map on the rows of its part, then a first E-step; with ``planes`` maps begin as principal planes."""
    assert given.places is not None
    weight = np.ones(given.table.shape[0]) if given.weight is None else given.weight
    masses = weight @ given.places
    recipes = [each.recipe() for each in settings]
    parts = [_rows_of_part(given, weight, j, whole.rows) for j in range(len(recipes))]
    jobs = [assemble(recipe, *part[:3]) for recipe, part in zip(recipes, parts, strict=True)]
    spreads = [_spread(*each, whole) for each in zip(recipes, jobs, strict=True)]
    if mixture.shared_noise:
        spreads = [_mean_spread(spreads, masses / masses.sum())] * len(recipes)
    jobs = [_with_noise(*each) for each in zip(recipes, jobs, spreads, strict=True)]
    if planes:
        recipes = [_with_plane_start(*each) for each in zip(recipes, jobs, strict=True)]
    starts = [_start(recipe, job, rng) for recipe, job in zip(recipes, jobs, strict=True)]
    width = max(
        recipe.numbers_per_node * job.model.surface.latent.n_nodes for recipe, job in zip(recipes, jobs, strict=True)
    )
    gaps = has_gaps(given.table)
    rows = as_rows(given.table, whole.rows.offset, given.weight, width=width, gaps=gaps, errors=given.errors)
    maps = tuple(model_for_gaps(rows, job.model) for job in jobs)
    model = MixtureModel(maps, tuple(job.rows.offset for job in jobs), bool(mixture.shared_noise))
    state = model.begin(rows, MixtureParameters(masses / masses.sum(), tuple(starts)))
    # Copies of parts are done with.
    jobs = [job._replace(rows=model.rows_of_map(j, rows)) for j, job in enumerate(jobs)]
    return MixtureStart(jobs, model, rows, state, width, free)


def _rows_of_part(given: GivenRows, weight: FloatArray, j: int, rows: Rows) -> GivenRows:
    """The rows that map j begins with; without any, all of them, for a map whose share is 0."""
    assert given.places is not None
    own = weight * given.places[:, j]
    kept = np.flatnonzero(own > 0)
    if not len(kept):
        return given._replace(places=None)
    # Without weights a map that begins with all rows is the very GTM of them.
    plain = given.weight is None and bool((given.places[kept, j] == 1.0).all())
    part = given.choose(kept)._replace(weight=None if plain else own[kept], places=None)
    if not rows.gaps:
        return part
    empty = np.isnan(part.table).all(axis=0)  # of which the others know the middle at least
    return part._replace(table=np.where(empty, rows.offset.astype(part.table.dtype), part.table))


def _spread(recipe: Recipe, job: TrainingJob, whole: TrainingJob) -> ColumnSpread:
    """Spread of the rows of a part, or of all rows where the part has too few."""
    some = dense(job.rows.table[:: -(-job.rows.n_rows // _MOST_SAMPLED_ROWS)])
    return recipe.spread(job.rows if len(np.unique(some, axis=0)) >= _ROWS_FOR_OWN_SPREAD else whole.rows)


def _mean_spread(spreads: list[ColumnSpread], shares: FloatArray) -> ColumnSpread:
    """Mean spread, for one noise of all maps."""
    floor, floors, squares = (
        sum(share * part for share, part in zip(shares, each, strict=True))
        for each in zip(*((s.floor, s.floors, np.square(s.scale)) for s in spreads), strict=True)
    )
    return ColumnSpread(float(floor), np.asarray(floors), np.sqrt(squares))


def _with_noise(recipe: Recipe, job: TrainingJob, spread: ColumnSpread) -> TrainingJob:
    """The job with a noise for data of that spread."""
    noise = recipe.noise(job.model.surface, spread)
    return job._replace(model=model_for_gaps(job.rows, replace(job.model, noise=noise)))


def _with_plane_start(recipe: Recipe, job: TrainingJob) -> Recipe:
    """The recipe with the plane in place of a contest of starts, but for spaces with angles."""
    contest = recipe.second_start is not None and not has_angles(job.model.surface.latent)
    return replace(recipe, start=pca_start) if contest else recipe


def _start(recipe: Recipe, job: TrainingJob, rng: np.random.Generator) -> Parameters:
    return warm_start(complete_start(recipe), job.model, job.rows, rng)


def _train_briefly(mixture: Any, begun: MixtureStart) -> MixtureStart:
    model, rows = begun.model, begun.rows
    outcome = run_fixed_point(
        lambda: begun.state,
        lambda state: model.step(rows, state, mixture.relaxation),
        model.measure,
        max_iter=_TRIAL_ITERATIONS,
        tol=mixture.tol,
    )
    if outcome.reason is StopReason.INTERRUPTED:  # there is no model yet that could be kept
        raise KeyboardInterrupt
    return replace(begun, state=outcome.state)


def given_memberships(partition: Any, n_maps: int, n_rows: int) -> FloatArray | None:
    """(n, J) memberships to begin with, where they or the numbers of the maps were given."""
    if isinstance(partition, str):
        return None
    found = as_entries("partition", partition)
    if found.shape == (n_rows,) and found.dtype.kind in "iub":
        if not (found.min() >= 0 and found.max() < n_maps):
            raise InvalidDataError(
                f"partition has maps {found.min()} to {found.max()}, but n_maps={n_maps}; number them from 0"
            )
        return np.asarray(np.eye(n_maps)[found.astype(np.intp)])
    sound = found.shape == (n_rows, n_maps) and found.dtype.kind in "fiub" and bool(np.isfinite(found).all())
    if not sound or (found < 0).any() or not (found.sum(axis=1) > 0).all():
        raise InvalidDataError(
            f"partition must hold the number of a map for each of {n_rows} rows, or memberships of shape "
            f"({n_rows}, {n_maps}) that are not negative and not all zero; got shape {found.shape} of {found.dtype}"
        )
    return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)


def nearest_places(latent: LatentSpace, Z: FloatArray, places: Any) -> IntArray:
    """(n,) the place nearest to each row along a map."""
    given = check_latent(places, latent.n_columns)
    if not len(given):
        raise InvalidDataError("places is empty; give a place on the map for each map of the child, or leave it out")
    found = latent.domain.retract(given)
    Z = np.asarray(Z, dtype=np.float64)
    apart = [latent.distance(Z, np.broadcast_to(place, Z.shape)) for place in found]
    return np.asarray(np.argmin(apart, axis=0))
