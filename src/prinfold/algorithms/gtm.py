"""The generative topographic mapping: a grid of latent nodes mapped to Gaussians on a smooth surface.

    p(t) = 1/K Σ_k p(t | y(x_k)),        y(x) = φ(x) W                      (3.4), (3.8)

The model is a product of choices made elsewhere: a map (which carries its latent space), a noise and a
penalty. Here is what remains: the E-step in blocks of rows, the EM step, and what the posterior says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prinfold._arrays import Rows, blas_on_one_thread, for_each_block, sum_blocks
from prinfold._typing import FloatArray, IntArray
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import IsotropicNodes, IsotropicNoise, Parameters, Penalty, Statistics
from prinfold.kernels.responsibilities import normalise_log_weights


@dataclass(frozen=True)
class GTMModel:
    """What stays fixed during training."""

    surface: BasisMap
    noise: IsotropicNoise
    penalty: Penalty


class State(NamedTuple):
    """Parameters, and the statistics of the data under them."""

    parameters: Parameters
    statistics: Statistics


def begin(model: GTMModel, rows: Rows, parameters: Parameters) -> State:
    """First E-step."""
    return State(parameters, summarise(model, rows, parameters))


def step(model: GTMModel, rows: Rows, state: State) -> State:
    """One EM iteration: new parameters from the sums, then the sums under those parameters."""
    with blas_on_one_thread():  # the systems are small: threads would cost more than they give
        parameters = model.noise.m_step(model.surface, state.statistics, model.penalty, state.parameters)
    return State(parameters, summarise(model, rows, parameters))


def measure(model: GTMModel, state: State) -> dict[str, float]:
    """Penalised log-likelihood per row, which EM never lowers; the log-likelihood alone; the noise variance."""
    parameters, sums = state
    cost = model.penalty.value(parameters.precision, model.surface.roughness(parameters.weights))
    return {
        "objective": (sums.log_likelihood - cost) / sums.total,
        "log_likelihood": sums.log_likelihood / sums.total,
        "noise": 1.0 / parameters.precision,
    }


def summarise(model: GTMModel, rows: Rows, parameters: Parameters) -> Statistics:
    """E-step: the sums over all rows, block by block. The full matrix of responsibilities never exists."""
    nodes = model.noise.prepare(model.surface, parameters, rows.table.dtype.type)

    def one_block(part: slice) -> Statistics:
        block, weight = rows.block(part), rows.block_weight(part)
        responsibility, log_likelihood = block_posterior(model.noise, nodes, block)
        return model.noise.statistics(block, weight, responsibility, log_likelihood)

    return sum_blocks(one_block, rows.slices)


def block_posterior(noise: IsotropicNoise, nodes: IsotropicNodes, block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Responsibilities (n, K) by (3.7) and log p(t) (n,) of one block."""
    varying, common = noise.log_density(block, nodes)
    log_sum = normalise_log_weights(varying)
    return varying, common + log_sum - np.log(varying.shape[1])


def log_likelihood(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) log p(t)."""
    return _per_row(model, rows, parameters, lambda _, log_p: log_p, ())


def responsibilities(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, K) posterior weight of each node for each row."""
    return _per_row(model, rows, parameters, lambda R, _: R, (model.surface.latent.n_nodes,))


def posterior_mean(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) mean of the posterior over latent space."""
    latent = model.surface.latent
    return _per_row(model, rows, parameters, lambda R, _: latent.mean(R), (latent.n_columns,))


def posterior_mode(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) the node with the largest responsibility."""
    latent = model.surface.latent
    return _per_row(model, rows, parameters, lambda R, _: latent.nodes[R.argmax(axis=1)], (latent.n_columns,))


def posterior_covariance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q, Q) spread of the posterior about its mean."""
    latent = model.surface.latent
    shape = (latent.n_columns, latent.n_columns)
    return _per_row(model, rows, parameters, lambda R, _: latent.covariance(R, latent.mean(R)), shape)


def mode_distance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) distance along latent space from posterior mean to posterior mode: large for several modes (3.3)."""
    latent = model.surface.latent
    return _per_row(
        model, rows, parameters, lambda R, _: latent.distance(latent.mean(R), latent.nodes[R.argmax(axis=1)]), ()
    )


def sample(model: GTMModel, parameters: Parameters, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """n rows drawn from the density, about the data's centre, with the node each came from."""
    node = rng.integers(model.surface.latent.n_nodes, size=n)
    centres = model.surface.nodes(parameters.weights)[node]
    return centres + rng.standard_normal(centres.shape) / np.sqrt(parameters.precision), node


def _per_row(
    model: GTMModel,
    rows: Rows,
    parameters: Parameters,
    reduce_block: Callable[[FloatArray, FloatArray], FloatArray],
    shape: tuple[int, ...],
) -> FloatArray:
    """Fill an (n, *shape) array with what ``reduce_block(responsibilities, log_likelihood)`` gives."""
    out = np.empty((rows.n_rows, *shape), dtype=rows.table.dtype)
    nodes = model.noise.prepare(model.surface, parameters, rows.table.dtype.type)

    def one_block(part: slice) -> None:
        out[part] = reduce_block(*block_posterior(model.noise, nodes, rows.block(part)))

    for_each_block(one_block, rows.slices)
    return out
