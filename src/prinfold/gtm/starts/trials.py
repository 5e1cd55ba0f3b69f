"""Starts compared by their likelihood after a short training; the procedure is ours.

After some thirty steps on a sample of the rows the likelihood tells nearly always which start ends nearest to the
truth. Nodes stand in for a continuum. Where they lie farther apart than the noise is wide they count against the longer
of two maps, which is the unrolled one; so the lattice of a trial is refined where it is too coarse. Where likelihoods
are close, a map that is folded or whose rows could be in several places gives way to one that is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.model import GTMModel, measure
from prinfold.gtm.model import GTMState as State
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.warnings import TIE_NATS, MapOnRows, is_folded_or_many_peaked, node_folds
from prinfold.latent import Lattice
from prinfold.loops import StopReason, run_fixed_point
from prinfold.rows.rows import Rows

_ITERATIONS, _RELAXATION, _TOL = 15, 1.8, 1e-3
"""EM steps, how far they are stretched, and nats per row and step, in each of the two halves of a trial."""

_MOST_SPACING = 2.0
"""Largest distance of neighbouring nodes, in noise deviations: an axis where they lie farther apart gets more nodes."""

_MOST_NODES_FACTOR = 2
"""Most nodes in a trial, as a multiple of those of the lattice."""

_EQUAL_WITHIN = 0.01
"""Nats per row within which two starts are equally good, and the earlier is taken."""

_DROP_BEHIND = 0.5
"""Nats per row by which a start may fall behind the best, half-way or at the end, and still be worth more training. Of
147 simulated tables none that was so far behind half-way came first; of those 0.3 behind one did."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A start, the model and rows of its trial, and the model on a finer lattice with the state it was taken to."""

    start: Parameters
    given: GTMModel
    rows: Rows
    model: GTMModel
    state: State

    @cached_property
    def objective(self) -> float:
        """Penalised log-likelihood per row."""
        return measure(self.model, self.state)["objective"]

    @cached_property
    def troubled(self) -> bool:
        """Whether the map is folded or its posteriors have several modes; computed only where likelihoods are close."""
        spacing = self.given.surface.latent.widest_spacing
        parameters, mass = self.state.parameters, self.given.begin(self.rows, self.state.parameters).statistics.mass
        return is_folded_or_many_peaked(
            MapOnRows(self.given, self.rows, parameters, mass, self.rows.weight, spacing, node_folds)
        )


def finish_trials(half: Sequence[Trial]) -> list[Trial]:
    """Trials that have come half-way taken to their end, the best first; those far behind at either are left out.

    So are those that end in no number, as of rows that are very far out.
    """
    return rank_trials(_near_the_best([second_half(each) for each in _near_the_best(half)]))


def _near_the_best(trials: Sequence[Trial]) -> list[Trial]:
    furthest = max((each.objective for each in trials if np.isfinite(each.objective)), default=np.inf)
    return [each for each in trials if each.objective > furthest - _DROP_BEHIND]


def first_half(model: GTMModel, rows: Rows, start: Parameters) -> Trial:
    """The start after some steps on the rows, on a lattice that is fine enough for it."""
    finer = replace(
        model, surface=refine_axes(model.surface, start, most=_MOST_NODES_FACTOR * model.surface.latent.n_nodes)
    )
    return Trial(start, model, rows, finer, _train(finer, rows, start))


def second_half(half: Trial) -> Trial:
    """A trial after its second half, on a lattice that is fine enough for the noise after the first."""
    surface, parameters = half.given.surface, half.state.parameters
    mass = half.state.statistics.mass if half.model.surface.latent is surface.latent else None
    finer = replace(
        half.given, surface=refine_axes(surface, parameters, mass, _MOST_NODES_FACTOR * surface.latent.n_nodes)
    )
    return replace(half, model=finer, state=_train(finer, half.rows, parameters))


def _train(model: GTMModel, rows: Rows, parameters: Parameters) -> State:
    outcome = run_fixed_point(
        lambda: model.begin(rows, parameters),
        lambda state: model.step(rows, state, _RELAXATION),
        model.measure,
        max_iter=_ITERATIONS,
        tol=_TOL,
    )
    if outcome.reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return outcome.state  # type: ignore[no-any-return]


def refine_axes(
    surface: BasisMap, parameters: Parameters, mass: FloatArray | None = None, most: int | None = None
) -> BasisMap:
    """The map on a lattice with twice the nodes along axes where neighbours lie more than two noise deviations apart.

    With h the spacing of nodes, s = ‖∂y/∂x‖ the median stretch over the nodes, by the ``mass`` (K,) of their rows, and
    σ the noise, an axis is doubled where h·s > 2σ: the coarsest first, and only to at most ``most`` nodes in all. The
    basis is the same, so that weights carry over.
    """
    latent = surface.latent
    if not latent.axes:
        return surface
    latent = cast(Lattice, latent)
    stretch = np.linalg.norm(surface.node_jacobian(parameters.weights), axis=1)
    apart = _weighted_median(stretch, mass) * _spacings(latent) * np.sqrt(parameters.level)
    for axis in np.argsort(-apart, kind="stable"):
        finer = double_axis(latent, int(axis))
        if apart[axis] > _MOST_SPACING and (most is None or finer.n_nodes <= most):
            latent = finer
    return surface if latent is surface.latent else replace(surface, latent=latent)


def double_axis(latent: Lattice, axis: int) -> Lattice:
    """The lattice with one more node between any two along an axis."""
    n = latent.shape[axis]
    twice = 2 * n if latent.periodic[axis] else 2 * n - 1
    return Lattice((*latent.shape[:axis], twice, *latent.shape[axis + 1 :]), latent.periodic)


def _spacings(latent: Lattice) -> FloatArray:
    """(Q,) distance between neighbours along each axis."""
    steps = zip(latent.shape, latent.periodic, strict=True)
    return np.array([2 * np.pi / n if closed else 2.0 / max(n - 1, 1) for n, closed in steps])


def _weighted_median(values: FloatArray, mass: FloatArray | None) -> FloatArray:
    """(Q,) median of each column of values (K, Q)."""
    share = np.ones(len(values)) if mass is None else mass
    order = np.argsort(values, axis=0)
    total = np.cumsum(share[order], axis=0)
    middle = np.argmax(total >= 0.5 * total[-1], axis=0)
    ranked_values = np.take_along_axis(values, order, axis=0)
    return np.asarray(np.take_along_axis(ranked_values, middle[None], axis=0)[0])


def rank_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Trials, the best first: those that come furthest, but for troubled ones that others come close to.

    Where all that are close are troubled the first of them is returned alone: another would be no less so.
    """
    if not trials:
        return []
    furthest = max(each.objective for each in trials)
    close = [each for each in trials if each.objective >= furthest - TIE_NATS]
    sound = [each for each in close if len(close) > 1 and not each.troubled] or close
    top = max(each.objective for each in sound)
    first = next(each for each in sound if each.objective >= top - _EQUAL_WITHIN)
    hopeless = close if len(close) > 1 and first.troubled else [first]
    others = sorted((each for each in trials if each not in hopeless), key=lambda each: -each.objective)
    return [first, *others]
