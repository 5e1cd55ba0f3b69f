"""Training of probabilistic principal surfaces: the GTM with noise that differs along and across the surface.

Equation numbers are those of Chang & Ghosh (2001). The noise turns with the surface, so that no M-step in closed form
exists for the weights. ``PPS_STEPS`` names three ways to train all the same:

- ``"gtm"``: the GTM's M-step for the weights, which ignores that the noise is oriented, then the best noise for them.
  The objective may fall for a while; where it is not back within ten steps, the best surface was the one before;
- ``"gem"``, generalised EM: the true gradient, tangents included, in the metric of the complete data's Fisher
  information, halved until the objective does not fall. At a clamping of 1 it is the GTM's M-step again;
- ``"paper"``: the GTM's M-step to the end, whether the objective rises or falls (the paper's experiments).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.tangents import along, off
from prinfold.gtm.penalties import Penalty
from prinfold.numerics.linalg import conjugate_gradients, pseudo_inverse
from prinfold.pps.clamping import TangentMoments
from prinfold.pps.oriented_gaps import OrientedCells
from prinfold.pps.oriented_model import OrientedParameters
from prinfold.pps.oriented_noise import OrientedNoise
from prinfold.pps.oriented_sums import OrientedNodes, OrientedStatistics
from prinfold.rows.rows import Rows

_PATIENCE = 10
"""Steps within which the objective has to be back where it was, if the GTM's steps are to go on.

On halves of iris, glass and diabetes it fell for a step or two and rose higher afterwards, or fell for good."""

_MOST_HALVINGS = 6
_ROUNDING_SHARE = 1e-13
"""Relative fall of the objective that is put down to rounding."""

_STRETCH_FACTOR = 1.1
"""Factor by which steps are stretched further after each that went well."""

_CG_STEPS = 40
_CG_TOL = 0.1
"""Tolerance of a direction, which need not be exact: every iterate of conjugate gradients goes uphill. A tenth of it
takes three times the products and gained nothing, and rounding in a long run of them shows in the result."""


class PPSSteps(NamedTuple):
    """A way to train: its step, whether that is the published one, and whether it needs sums for the gradient.

    The published step may lower the objective, and what it comes to last is kept.
    """

    step: Callable[[PPSModel, Rows, PPSState, float], PPSState]
    published: bool = False
    crossed: bool = False


@dataclass(frozen=True)
class PPSModel(gtm.GTMModel):
    """A GTM whose noise is oriented, and the way it is trained."""

    noise: OrientedNoise | OrientedCells
    steps: PPSSteps

    @property
    def monotone(self) -> bool:
        return not self.steps.published

    def begin(self, rows: Rows, parameters: Any) -> Any:
        return _after(self, rows, parameters, Hint())

    def step(self, rows: Rows, state: Any, relaxation: float = 1.0) -> Any:
        return state if state.settled else self.steps.step(self, rows, state, relaxation)

    def measure(self, state: Any) -> dict[str, float]:
        return gtm.measure(self, state) | {"clamping": float(np.mean(state.parameters.along))}


class PPSState(NamedTuple):
    """The GTM's state, and whether no step improves the objective any more."""

    parameters: OrientedParameters
    statistics: OrientedStatistics
    hint: Hint = Hint()
    stretch: float = 1.0
    settled: bool = False


def gtm_step(model: PPSModel, rows: Rows, state: PPSState, relaxation: float = 1.0) -> PPSState:
    """As many of the GTM's steps as it takes for the objective not to be lower; the old state where ten are not enough.

    They are not stretched: how far to go on is for steps that climb.
    """
    lowest, after = _lowest(model, state), state
    for _ in range(_PATIENCE):
        after = _weights_then_noise(model, rows, after)
        if _objective(model, after) >= lowest:
            return after
    return state._replace(settled=True)


def _weights_then_noise(model: PPSModel, rows: Rows, state: PPSState) -> PPSState:
    """The GTM's weights, then the noise that is best for them, each from an E-step of its own.

    The sums of the first know nothing of the tangents that the new weights have. Those of the second do, so that it is
    an M-step for the noise, (33) or one that learns the clamping, and cannot lower the objective (unless nodes borrow
    rows from each other).
    """
    moved = model.noise.with_weights(model.surface, state.statistics, model.penalty, state.parameters)
    between = _after(model, rows, moved, state.hint)
    found = model.noise.with_noise(model.surface, between.statistics, model.penalty, moved, moved)
    return _after(model, rows, found, between.hint)


def paper_step(model: PPSModel, rows: Rows, state: PPSState, relaxation: float = 1.0) -> PPSState:
    """The GTM's M-step, whatever the objective does."""
    proposed = model.noise.m_step(model.surface, state.statistics, model.penalty, state.parameters)
    return _after(model, rows, proposed, state.hint)


def gradient_step(model: PPSModel, rows: Rows, state: PPSState, relaxation: float = 1.0) -> PPSState:
    """The first proposal under which the objective does not fall; the old state if there is none."""
    lowest = _lowest(model, state)
    for parameters, stretch in _proposals(model, state, relaxation):
        after = _after(model, rows, parameters, state.hint, stretch)
        if _objective(model, after) >= lowest:
            return after
    return state._replace(settled=True)


PPS_STEPS = {
    "gtm": PPSSteps(gtm_step),
    "gem": PPSSteps(gradient_step, crossed=True),
    "paper": PPSSteps(paper_step, published=True),
}
"""Ways to train, by name."""


def _objective(model: PPSModel, state: PPSState) -> float:
    return gtm.measure(model, state)["objective"]


def _lowest(model: PPSModel, state: PPSState) -> float:
    """The objective of a state, less what rounding may take from it."""
    now = _objective(model, state)
    return now - _ROUNDING_SHARE * abs(now)


def _after(model: PPSModel, rows: Rows, parameters: OrientedParameters, hint: Hint, stretch: float = 1.0) -> PPSState:
    wanted = replace(model, noise=replace(model.noise, crossed=model.steps.crossed))
    statistics, hint = gtm.e_step(wanted, rows, parameters, hint)
    return PPSState(parameters, statistics, hint, stretch)  # type: ignore[arg-type]


def _proposals(model: PPSModel, state: PPSState, relaxation: float) -> Iterator[tuple[OrientedParameters, float]]:
    """Parameters to try, the most promising first, each with how far to stretch the step after it."""
    noise, now = model.noise, state.parameters
    proposed = _scoring_step(model, state)
    if state.stretch > 1.0 and relaxation > 1.0:
        yield now.extrapolate(proposed, state.stretch), min(_STRETCH_FACTOR * state.stretch, relaxation)
    yield proposed, min(_STRETCH_FACTOR, relaxation)
    for halving in range(1, _MOST_HALVINGS):
        yield now.extrapolate(proposed, 0.5**halving), 1.0
    # With the noise as it is a short enough step uphill cannot fail; nor can, with the weights as they are, an M-step
    # for the noise, which is exact unless nodes borrow rows from each other.
    for halving in range(_MOST_HALVINGS):
        yield replace(now, weights=now.weights + 0.5**halving * (proposed.weights - now.weights)), 1.0
    yield noise.with_noise(model.surface, state.statistics, model.penalty, now, now), 1.0


def _scoring_step(model: PPSModel, state: PPSState) -> OrientedParameters:
    """Weights moved along the gradient in the Fisher metric, then the noise for them."""
    surface, now = model.surface, state.parameters
    nodes = model.noise.oriented_nodes(surface, now)
    slope = weight_gradient(surface, nodes, state.statistics, model.penalty, now)
    stiffness = turning_stiffness(nodes, model.noise.moments(surface, state.statistics, now.weights, now.weights))
    decay = model.penalty.strength(now.level) * now.level
    n_columns = model.noise.n_columns or nodes.centers.shape[1]
    metric = FisherMetric(surface, nodes, state.statistics.mass, stiffness, decay, n_columns)
    change = conjugate_gradients(metric.apply, slope, metric.solve_roughly, _CG_STEPS, _CG_TOL)
    moved = replace(now, weights=now.weights + change)
    return model.noise.with_noise(surface, state.statistics, model.penalty, moved, now)


def weight_gradient(
    surface: BasisMap,
    nodes: OrientedNodes,
    sums: OrientedStatistics,
    penalty: Penalty,
    parameters: OrientedParameters,
) -> FloatArray:
    """(M, D) gradient of the penalised log-likelihood with respect to the weights.

    With d = t − y, P = EEᵀ and J⁺ the pseudo-inverse of the Jacobian, a row adds r [I/B − cP] d to the slope of its
    node's centre and r c (I − P) d (J⁺d)ᵀ to that of its Jacobian. (31) as printed lacks that the tangents are
    orthonormalised. By Fisher's identity the sums of the E-step give the gradient of the log-likelihood itself.
    """
    assert sums.cross is not None
    frame, inverse = nodes.tangents.frame, nodes.inverse_across
    contrast = inverse - nodes.inverse_along
    residual = sums.moment - sums.mass[:, None] * nodes.centers
    on_center = inverse[:, None] * residual - contrast[:, None] * along(frame, residual)
    turning = contrast[:, None, None] * off(frame, sums.cross) @ nodes.tangents.pullback
    decay = penalty.strength(parameters.level) * parameters.level * surface.penalty_mask
    return _weight_slopes(surface, on_center, turning) - decay[:, None] * parameters.weights


@dataclass(frozen=True)
class FisherMetric:
    """Fisher information of rows whose node is known, as an operator on changes X (M, D) of the weights.

    A change moves centres by ΦX and Jacobians by δJ; the information is Σ [g (ΦX)ᵀΣ⁻¹(ΦX) + f‖(I − P) δJ J⁺‖²] plus the
    penalty, f being the ``stiffness`` against turning the noise. ``n_columns`` are those of the table.
    """

    surface: BasisMap
    nodes: OrientedNodes
    mass: FloatArray
    stiffness: FloatArray
    decay: float
    n_columns: int

    def apply(self, X: FloatArray) -> FloatArray:
        """(M, D) the operator times X."""
        nodes, tangents = self.nodes, self.nodes.tangents
        contrast = nodes.inverse_across - nodes.inverse_along
        moved = self.surface.node_features @ X
        on_center = nodes.inverse_across[:, None] * moved - contrast[:, None] * along(tangents.frame, moved)
        turned = off(tangents.frame, self.surface.node_jacobian(X))
        metric = np.swapaxes(tangents.pullback, 1, 2) @ tangents.pullback
        turning = self.stiffness[:, None, None] * (turned @ metric)
        held = (self.decay * self.surface.penalty_mask)[:, None] * X
        return _weight_slopes(self.surface, self.mass[:, None] * on_center, turning) + held

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        """(M, D) the solution with the noise taken for isotropic: what the GTM solves, as preconditioner."""
        return self._inverse @ right

    @cached_property
    def _inverse(self) -> FloatArray:
        Phi, nodes = self.surface.node_features, self.nodes
        n_columns, rank = self.n_columns, nodes.tangents.rank
        mean = (rank * nodes.inverse_along + (n_columns - rank) * nodes.inverse_across) / n_columns
        gram = Phi.T @ ((self.mass * mean)[:, None] * Phi)
        # Turning is resisted in all normals, which are most directions: on average over them it is a Gram matrix too.
        pulled = self.surface.node_gradients @ np.swapaxes(nodes.tangents.pullback, 1, 2)
        share = self.stiffness * (n_columns - rank) / n_columns
        gram += np.tensordot(share[:, None, None] * pulled, pulled, axes=((0, 2), (0, 2)))
        gram[np.diag_indices_from(gram)] += self.decay * self.surface.penalty_mask
        return pseudo_inverse(gram)


def turning_stiffness(nodes: OrientedNodes, moments: TangentMoments) -> FloatArray:
    """(K,) curvature against turning the tangents of each node towards its normals, expected or observed.

    Expected is g (S − B)²/(SB). Rows may scatter more than S along the surface, or more than B across it, at a node
    where the noise is the same for all; that makes the likelihood as much stiffer, and a step that ignores it would
    overshoot, however small the error it sets out to mend.
    """
    contrast = nodes.inverse_across - nodes.inverse_along
    expected = moments.mass * (contrast / nodes.inverse_across) * (contrast / nodes.inverse_along)  # no overflow
    n_normals = np.maximum(moments.n_columns - moments.rank, 1.0)
    normal = 2.0 * (moments.square - moments.tangential) / n_normals  # scatter is seldom the same in all normals
    observed = np.abs(contrast) * np.where(contrast > 0, moments.tangential, normal)
    return np.asarray(np.maximum(expected, observed))


def _weight_slopes(surface: BasisMap, on_center: FloatArray, on_jacobian: FloatArray) -> FloatArray:
    """(M, D) slopes with respect to weights from those with respect to centres (K, D) and Jacobians (K, D, Q)."""
    turned = np.tensordot(surface.node_gradients, on_jacobian, axes=((0, 2), (0, 2)))
    return np.asarray(surface.node_features.T @ on_center + turned)
