"""Maps from latent space to data space, linear in their weights: y(z) = φ(z) W.

A map has six verbs: ``nodes`` gives its points at the nodes, ``point`` and ``jacobian`` points and slopes anywhere in
latent space, ``solve`` the weights that fit weighted targets at the nodes, ``regress`` those that fit targets anywhere,
and ``roughness`` the squared norm that a penalty multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.bases import BasisCapabilities, BoundBasis
from prinfold.basis_maps.product_grams import ProductGram
from prinfold.latent import LatentSpace
from prinfold.numerics.linalg import solve_symmetric
from prinfold.rows.rows import blas_on_one_thread, for_each_block, row_slices

_MOST_CACHED_NUMBERS = 2**19
"""Most numbers in the images of nodes that are cached: four megabytes."""

_ROWS_AT_ONCE = 4096
"""Rows for which derivatives (n, M, Q) are held at once."""


@dataclass(frozen=True)
class BasisMap:
    """A weighted sum of fixed basis functions, thesis (3.8)."""

    latent: LatentSpace
    basis: BoundBasis

    @property
    def capabilities(self) -> BasisCapabilities:
        """Abilities that the basis declares; one of the user's own need not declare any."""
        found: BasisCapabilities = getattr(self.basis, "capabilities", BasisCapabilities())
        return found

    @cached_property
    def node_features(self) -> FloatArray:
        """(K, M) Φ, the basis functions at the nodes."""
        return self.basis.features(self.latent.nodes)

    @cached_property
    def penalty_mask(self) -> FloatArray:
        """(M,) 1 where a weight is penalised, 0 where it is free."""
        return self.basis.penalized.astype(float)

    @cached_property
    def node_gradients(self) -> FloatArray:
        """(K, M, q) derivatives of the basis functions at the nodes, in orthonormal latent directions."""
        nodes = self.latent.nodes
        return np.asarray(self.basis.gradient(nodes) @ self.latent.domain.frame(nodes))

    def node_jacobian(self, weights: FloatArray) -> FloatArray:
        """(K, D, q) derivatives of the map at the nodes, in orthonormal latent directions."""
        return np.moveaxis(np.tensordot(self.node_gradients, weights, axes=(1, 0)), 1, 2)

    def nodes(self, weights: FloatArray) -> FloatArray:
        """(K, D) images of the nodes, Y = Φ W (3.10). Not to be written to: the last ones are remembered, if small.

        An iteration of plain EM asks for the same ones three times, before and after the weights are found and in the
        E-step. That is felt where there are few rows, and on many cores, all but one of which wait meanwhile.
        """
        known, images = self._last_nodes[0]
        if not np.array_equal(known, weights):
            # In one memory order: the last bits of a product depend on it, and what is remembered must not.
            images = self.node_features @ np.ascontiguousarray(weights)
            images.flags.writeable = False
            if images.size <= _MOST_CACHED_NUMBERS:
                self._last_nodes[0] = weights.copy(), images
        return images

    def __getstate__(self) -> dict[str, Any]:
        """Nothing that can be computed again: in every iteration a map travels to every worker of a cluster."""
        return {"latent": self.latent, "basis": self.basis}

    @cached_property
    def _last_nodes(self) -> list[tuple[FloatArray, FloatArray]]:
        """Weights and the images they gave; replaced as one, as threads may look."""
        return [(np.empty(0), np.empty(0))]

    @cached_property
    def memory(self) -> list[Any]:
        """A result computed from the map and kept for the next call; replaced as one, as threads may look."""
        return [None]

    def gram(self, mass: FloatArray) -> FloatArray:
        """(M, M) ΦᵀGΦ of the masses (K,) of the nodes."""
        weight = np.maximum(mass, 0.0)
        if self._product_gram is not None:
            return self._product_gram(weight)
        # A matrix times its own transpose: BLAS computes one half of it only.
        rooted = np.sqrt(weight)[:, None] * self.node_features
        return np.asarray(rooted.T @ rooted)

    @cached_property
    def _product_gram(self) -> ProductGram | None:
        """ΦᵀGΦ axis by axis, on lattices where that is cheaper; else None."""
        make = self.capabilities.factors
        if make is None or not self.latent.axes:
            return None
        factors = make(self.latent.axes)
        return ProductGram.of(factors) if ProductGram.is_cheaper(factors) else None

    def point(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        """(n, D) y(z)."""
        shorter = self.capabilities.evaluator
        return _apply_in_parts(
            (lambda part: self.basis.features(part) @ weights) if shorter is None else shorter(weights), Z
        )

    def jacobian(self, Z: FloatArray, weights: FloatArray) -> FloatArray:
        """(n, D, Q) ∂y/∂z = ψ W, thesis (4.8)."""
        return _apply_in_parts(lambda part: self.basis.jacobian(part, weights), Z)

    def solve(self, mass: FloatArray, moment: FloatArray, strength: float, weights: FloatArray) -> FloatArray:
        """Weights of (ΦᵀGΦ + λM) W = Φᵀ(RT), thesis (3.15) with the penalty mask M on its diagonal.

        The equations are solved for the change from the present ``weights``. Where they do not determine
        a combination of weights, it then stays as it is instead of falling to zero, which at a node
        without any mass could undo what earlier steps gained.
        """
        Phi = self.node_features
        residual = Phi.T @ (moment - mass[:, None] * self.nodes(weights))
        residual -= (strength * self.penalty_mask)[:, None] * weights
        return weights + self._normal_equations(self.gram(mass), residual, strength)

    def solve_columns(
        self, mass: FloatArray, moment: FloatArray, strength: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Weights of (3.15) column by column, each with masses (K, D) and a penalty (D,) of its own.

        One factorisation for all columns whose masses and penalties are equal.
        """
        kinds, kind = np.unique(np.vstack([mass, strength]), axis=1, return_inverse=True)
        new = np.empty_like(weights)
        for j, column in enumerate(kinds.T):
            chosen = np.flatnonzero(kind.reshape(-1) == j)
            new[:, chosen] = self.solve(column[:-1], moment[:, chosen], float(column[-1]), weights[:, chosen])
        return new

    def regress(
        self, Phi: FloatArray, target: FloatArray, strength: float, weight: FloatArray | None = None
    ) -> FloatArray:
        """Ridge regression of ``target`` (n, D) on the basis functions Φ (n, M) at some places."""
        weighted = Phi if weight is None else Phi * weight[:, None]
        return self._normal_equations(weighted.T @ Phi, weighted.T @ target, strength)

    def roughness(self, weights: FloatArray) -> float:
        """‖W‖² over the penalised weights."""
        return float(self.penalty_mask @ np.einsum("md,md->m", weights, weights))

    def column_roughness(self, weights: FloatArray) -> FloatArray:
        """(D,) Σ_m w_md² over the penalised weights of each column."""
        return np.asarray(self.penalty_mask @ np.square(weights))

    def _normal_equations(self, gram: FloatArray, right: FloatArray, strength: float) -> FloatArray:
        """Solution of (``gram`` + λM) W = ``right``; ``gram`` is written over."""
        gram.flat[:: len(gram) + 1] += strength * self.penalty_mask
        # C order, so that a model read back from a file computes the same bits.
        return np.ascontiguousarray(solve_symmetric(gram, np.asarray(right, dtype=np.float64)))


@blas_on_one_thread()  # products that BLAS shares out among threads may be rounded in another way
def _apply_in_parts(function: Callable[[FloatArray], FloatArray], Z: FloatArray) -> FloatArray:
    if len(Z) <= _ROWS_AT_ONCE:
        return function(Z)
    parts, found = row_slices(len(Z), _ROWS_AT_ONCE), dict[int, FloatArray]()

    def one(part: slice) -> None:
        found[part.start] = function(Z[part])

    for_each_block(one, parts)
    return np.concatenate([found[part.start] for part in parts])
