"""Landscapes: estimates of classes or numbers at each node of a map, and predictions for rows from them.

With the responsibilities r_nk of a fitted map and row weights w_n, a node has the mass m_k = Σ_n w_n r_nk of the rows.
Its effective number of rows is n_k = m_k² / Σ_n w_n r_nk² (Kish 1965): a mean over as many rows of equal share has the
same variance. The prediction for a row is the mean of the nodes' estimates, weighted by the row's own responsibilities.
Standard errors and shrinkage towards the prior are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.applications.landscape_sums import (
    LEAST_MASS,
    Responsibilities,
    class_sums,
    kish_count,
    leave_one_out_squares,
    mix_nodes,
    node_sums,
    sum_variance_between,
    variance_between_nodes,
)
from prinfold.files import storable
from prinfold.files.kinds import Kinds, class_names, numbers
from prinfold.validation.settings import real

# ----------------------------------------------------------------------------------------------- classes


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ClassLandscape:
    """Probabilities of the classes at each node, with their uncertainty.

    Parameters
    ----------
    classes : array of shape (C,)
        The classes, sorted.
    prior : array of shape (C,)
        Probabilities P(c) of the classes.
    class_mass : array of shape (K, C)
        Σ r_nk over the rows of each class.
    class_squares : array of shape (K, C)
        Σ r_nk² over them.
    pseudo_count : float
        Rows of the prior that are added to each node.
    min_mass : float
        Mass below which a node counts as empty.
    """

    _kinds: ClassVar[Kinds] = {
        "classes": class_names("C"),
        "prior": numbers("C", least=0),
        "class_mass": numbers("K", "C", least=0),
        "class_squares": numbers("K", "C", least=0),
        "pseudo_count": real(0),
        "min_mass": real(0),
    }

    classes: Any
    prior: FloatArray
    class_mass: FloatArray
    class_squares: FloatArray
    pseudo_count: float
    min_mass: float

    def __post_init__(self) -> None:
        shape = self.class_mass.shape
        if shape != self.class_squares.shape or shape[1:] != (len(self.prior),) or len(self.classes) != shape[1]:
            raise ValueError(
                f"the parts of a class landscape do not fit together: {shape}, {len(self.classes)} classes"
            )

    @cached_property
    def _class_factor(self) -> FloatArray:
        """(C,) f_c, the weight of a row of each class: P(c) over the share of the class among the rows."""
        total = self.class_mass.sum(axis=0)
        return np.asarray(self.prior * total.sum() / np.where(total > 0, total, 1.0))

    @cached_property
    def mass(self) -> FloatArray:
        """(K,) rows' worth of posterior at each node."""
        return np.asarray(self.class_mass.sum(axis=1))

    @cached_property
    def count(self) -> FloatArray:
        """(K,) effective number of rows at each node."""
        return kish_count(self.class_mass @ self._class_factor, self.class_squares @ self._class_factor**2)

    @property
    def empty(self) -> BoolArray:
        """(K,) nodes whose mass is below ``min_mass``."""
        return self.mass < self.min_mass

    @cached_property
    def belief(self) -> FloatArray:
        """(K, C) P(c | k) = (f_c m_kc + s P(c)) / (Σ_c f_c m_kc + s), f_c = P(c)/share of c; empty nodes too.

        Where there is no mass and no pseudo-count, it is P(c).
        """
        weighed = self.class_mass * self._class_factor + self.pseudo_count * self.prior
        total = weighed.sum(axis=1, keepdims=True)
        known = total > LEAST_MASS
        return np.where(known, weighed / np.where(known, total, 1.0), self.prior)

    @property
    def probability(self) -> FloatArray:
        """(K, C) P(c | k); NaN at empty nodes."""
        return np.where(self.empty[:, None], np.nan, self.belief)

    @property
    def error(self) -> FloatArray:
        """(K, C) standard error of P(c | k), NaN at empty nodes.

        It is the spread of a Dirichlet distribution that has seen n_k rows, and one of each class.
        """
        size = self.count[:, None] + len(self.prior)
        p = (self.count[:, None] * self.belief + 1.0) / size
        return np.where(self.empty[:, None], np.nan, np.sqrt(p * (1.0 - p) / (size + 1.0)))

    def probabilities(self, share: FloatArray) -> FloatArray:
        """(b, C) Σ_k r_k P(c | k) of rows by their responsibilities (b, K)."""
        known = (self.class_mass @ self._class_factor > LEAST_MASS) | (self.pseudo_count > 0)
        found = mix_nodes(share, self.belief, known, self.prior)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"ClassLandscape({len(self.classes)} classes, {_describe_nodes(self)})"


# --------------------------------------------------------------------------------------------- properties


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PropertyLandscape:
    """Mean and spread of numerical targets among the rows at each node.

    Sums are of u = (y − centre)/scale, the targets in units of their own spread.

    Parameters
    ----------
    node_mass, node_squares : arrays of shape (K, m)
        Σ r_nk and Σ r_nk² over the rows for which a target is known.
    moment, second : arrays of shape (K, m)
        Σ r_nk u and Σ r_nk u².
    left_out : array of shape (K, m)
        Σ r_nk e², with e the error of a row's prediction by the other rows.
    apart : array of shape (K, m)
        Σ r_nk b, with b the variance of the means of the nodes of a row.
    center, scale : arrays of shape (m,)
        Mean and standard deviation of each target.
    pseudo_count : float
        Rows of the overall mean and spread that are added to each node.
    min_mass : float
        Mass below which a node counts as empty.
    """

    _kinds: ClassVar[Kinds] = {
        "node_mass": numbers("K", "m", least=0),
        "node_squares": numbers("K", "m", least=0),
        "moment": numbers("K", "m"),
        "second": numbers("K", "m"),
        "left_out": numbers("K", "m"),
        "apart": numbers("K", "m"),
        "center": numbers("m"),
        "scale": numbers("m"),
        "pseudo_count": real(0),
        "min_mass": real(0),
    }

    node_mass: FloatArray
    node_squares: FloatArray
    moment: FloatArray
    second: FloatArray
    left_out: FloatArray
    apart: FloatArray
    center: FloatArray
    scale: FloatArray
    pseudo_count: float
    min_mass: float

    def __post_init__(self) -> None:
        shapes = {each.shape for each in self._sums}
        if len(shapes) != 1 or {self.center.shape, self.scale.shape} != {shape[1:] for shape in shapes}:
            raise ValueError(f"the parts of a property landscape do not fit together: {sorted(shapes)}")

    @property
    def _sums(self) -> tuple[FloatArray, ...]:
        return self.node_mass, self.node_squares, self.moment, self.second, self.left_out, self.apart

    @property
    def mass(self) -> FloatArray:
        """(K, m) rows' worth of posterior at each node."""
        return self.node_mass

    @cached_property
    def count(self) -> FloatArray:
        """(K, m) effective number of rows at each node."""
        return kish_count(self.node_mass, self.node_squares)

    @property
    def empty(self) -> BoolArray:
        """(K, m) nodes whose mass is below ``min_mass``."""
        return self.mass < self.min_mass

    @cached_property
    def known(self) -> BoolArray:
        return (self.node_mass > LEAST_MASS) | (self.pseudo_count > 0)

    @cached_property
    def u_mean(self) -> FloatArray:
        """(K, m) Σ r u / (m_k + s): the prior's mean is 0."""
        return self.moment / np.where(self.known, self.node_mass + self.pseudo_count, 1.0)

    @cached_property
    def _own_share(self) -> FloatArray:
        """(K, m) o/n: share o of a node's mean that comes from its own rows and not the prior, over n_k."""
        total = np.where(self.known, self.node_mass + self.pseudo_count, 1.0)
        return self.node_mass / total / np.maximum(self.count, 1.0)

    @cached_property
    def _u_within(self) -> FloatArray:
        """(m,) variance within nodes, pooled: Σ m_k v_k / Σ m_k (1 − 1/n_k).

        Where each node has one row only, it is that of all rows.
        """
        mass = np.where(self.node_mass > LEAST_MASS, self.node_mass, np.inf)
        within = np.maximum(self.second / mass - (self.moment / mass) ** 2, 0.0)
        free = (self.node_mass * (1.0 - 1.0 / np.maximum(self.count, 1.0))).sum(axis=0)
        enough = free > 1e-6 * np.maximum(self.node_mass.sum(axis=0), LEAST_MASS)
        pooled = (self.node_mass * within).sum(axis=0) / np.where(enough, free, 1.0)
        return np.where(enough, pooled, 1.0)

    @cached_property
    def _u_variance(self) -> FloatArray:
        """(K, m) v + w o/n, v the plain variance and w the pooled one within nodes, for the uncertainty of n rows."""
        total = np.where(self.known, self.node_mass + self.pseudo_count, 1.0)
        plain = np.maximum((self.second + self.pseudo_count) / total - self.u_mean**2, 0.0)
        return np.where(self.known, plain + self._u_within * self._own_share, 1.0)

    @property
    def belief(self) -> FloatArray:
        """(K, m) (Σ r y + s ȳ) / (m_k + s); empty nodes too."""
        return self.center + self.scale * self.u_mean

    @property
    def mean(self) -> FloatArray:
        """(K, m) mean of the target at each node; NaN at empty nodes."""
        return np.where(self.empty, np.nan, self.belief)

    @property
    def spread(self) -> FloatArray:
        """(K, m) standard deviation between the rows at a node, √(v + w/n_k); NaN at empty nodes.

        v is the variance of the rows about their mean, and w the variance within nodes, pooled over all of them: a
        node with a single row takes its spread from the other nodes.
        """
        return np.where(self.empty, np.nan, self.scale * np.sqrt(self._u_variance))

    @property
    def error(self) -> FloatArray:
        """(K, m) standard error of the mean, spread/√n_k; NaN at empty nodes."""
        return self.spread / np.sqrt(np.maximum(self.count, 1.0))

    def predictions(self, share: FloatArray) -> FloatArray:
        """(b, m) Σ_k r_k mean_k of rows by their responsibilities (b, K)."""
        return self.center + self.scale * self._mix_nodes(share, self.u_mean, np.zeros(len(self.scale)))

    def deviations(self, share: FloatArray) -> FloatArray:
        """(b, m) standard deviation of a row's target about its prediction, √(Σ_k r_k ω_k + b − Σ_k r_k b̄_k).

        ω_k = (Σ_n r_nk e_n² + o_k ē² + s σ²) / (m_k + o_k + s), with e the errors that training rows have when they are
        left out, ē² their mean square, σ² the variance of the target and o = m/(m + s): one more row of the usual error
        at each node that has rows, and the variance of all rows at those that have none. b is the variance of the means
        at the row's own nodes, and b̄_k its average at a node: a row with gaps may belong to many nodes, which the
        errors of complete rows do not show. Only the excess of b over its average is added.
        """
        own = self.node_mass / np.where(self.known, self.node_mass + self.pseudo_count, 1.0)
        total = self.node_mass.sum(axis=0)
        usual = self.left_out.sum(axis=0) / np.where(total > 0, total, 1.0)
        size = np.where(self.known, self.node_mass + own + self.pseudo_count, 1.0)
        squared = (self.left_out + own * usual + self.pseudo_count) / size
        usually = self.apart / np.where(self.node_mass > LEAST_MASS, self.node_mass, np.inf)
        excess = variance_between_nodes(share, self.u_mean, self.known) - self._mix_nodes(
            share, usually, np.zeros_like(total)
        )
        own_error = self._mix_nodes(share, squared, np.ones(len(self.scale)))
        return self.scale * np.sqrt(own_error + np.maximum(excess, 0.0))

    def _mix_nodes(self, share: FloatArray, value: FloatArray, otherwise: FloatArray) -> FloatArray:
        if self.known.all():
            return mix_nodes(share, value, np.ones(len(value), dtype=bool), otherwise)
        columns = [mix_nodes(share, value[:, [j]], self.known[:, j], otherwise[[j]]) for j in range(value.shape[1])]
        return np.concatenate(columns, axis=1)

    def __repr__(self) -> str:
        return f"PropertyLandscape({len(self.scale)} target{'s' * (len(self.scale) != 1)}, {_describe_nodes(self)})"


def _describe_nodes(landscape: ClassLandscape | PropertyLandscape) -> str:
    empty = np.atleast_1d(landscape.empty if landscape.empty.ndim == 1 else landscape.empty.all(axis=1))
    return f"{len(empty)} nodes, {int(empty.sum())} of them empty"


# ------------------------------------------------------------------------------------------------- making


def class_landscape(
    ask: Responsibilities,
    n_nodes: int,
    codes: IntArray,
    classes: Any,
    weight: FloatArray | None = None,
    *,
    prior: FloatArray | None = None,
    pseudo_count: float = 0.0,
    min_mass: float = 0.1,
) -> ClassLandscape:
    """The landscape of classes given by code; ``prior`` None takes their shares of the rows."""
    mass, squares = class_sums(ask, n_nodes, codes, len(classes), weight)
    share = np.bincount(codes, weight, minlength=len(classes))
    found = share / share.sum() if prior is None else prior
    return ClassLandscape(classes, found, mass, squares, float(pseudo_count), float(min_mass))


def property_landscape(
    ask: Responsibilities,
    n_nodes: int,
    targets: FloatArray,
    weight: FloatArray | None = None,
    *,
    pseudo_count: float = 0.0,
    min_mass: float = 0.1,
) -> PropertyLandscape:
    """The landscape of targets (n, m); NaN is a target that is not known."""
    center, scale = _moments(targets, weight)
    u = (targets - center) / np.where(scale > 0, scale, 1.0)
    sums = node_sums(ask, n_nodes, u, weight)
    errors = leave_one_out_squares(ask, sums, u, weight, pseudo_count)
    found = PropertyLandscape(*sums, errors, np.zeros_like(errors), center, scale, float(pseudo_count), float(min_mass))
    return replace(found, apart=sum_variance_between(ask, found.u_mean, found.known, u, weight))


def _moments(targets: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """(m,) mean and standard deviation of each target, over its known values."""
    known = np.isfinite(targets)
    w = known if weight is None else known * weight[:, None]
    # Weights that add up to 1: their own sum, or that of large targets, could overflow.
    w = w / np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    size = np.abs(np.where(known, targets, 0.0)).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    u = np.where(known, targets / size, 0.0)
    center = (w * u).sum(axis=0)
    deviation = np.sqrt((w * (u - center) ** 2).sum(axis=0))
    constant = deviation <= 8 * np.finfo(float).eps  # but for rounding
    return center * size, np.where(constant, 0.0, deviation * size)
