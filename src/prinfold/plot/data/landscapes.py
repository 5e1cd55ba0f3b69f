"""Data of pictures of landscapes, as plain arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import type_of_target

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.applications.landscape_sums import Responsibilities
from prinfold.applications.landscapes import (
    ClassLandscape,
    PropertyLandscape,
    class_landscape,
    property_landscape,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.latent import LatentSpace
from prinfold.plot.data.surfaces import FINER, finer_of, lattice_image, node_field, pixels_between, values_between
from prinfold.plot.inputs import FittedSurface, row_classes
from prinfold.validation.tables import rows_of

_MOST_CLASSES = 20
"""Different whole numbers up to which they are taken for classes."""

_LEAST_INK = 0.25
"""Opacity of a node that is not sure of anything, so that it differs from one that is empty."""

KINDS = ("class", "property")


class ShownLandscape(NamedTuple):
    """A landscape at the nodes, the names of its classes if any, and the latent space."""

    landscape: ClassLandscape | PropertyLandscape
    names: tuple[str, ...]
    latent: LatentSpace


class NodeValues(NamedTuple):
    """A number for each node, NaN where it is empty, how sure it is from 0 to 1, and what it is."""

    value: FloatArray
    sure: FloatArray
    words: str


def landscape_of(model: Any, X: Any, y: Any, kind: str | None, min_mass: float | None) -> ShownLandscape:
    """The landscape of a classifier or regressor, or of a map with rows and what is known of them."""
    shown = _given_landscape(model, X, y, kind)
    return shown if min_mass is None else shown._replace(landscape=replace(shown.landscape, min_mass=float(min_mass)))


def _given_landscape(model: Any, X: Any, y: Any, kind: str | None) -> ShownLandscape:
    fitted = FittedSurface.of(model)
    inner = fitted.model
    if hasattr(inner, "landscape_"):
        if y is not None:
            raise InvalidParameterError(
                f"{type(inner).__name__} has its landscape already; leave y out, or pass the map"
            )
        names = tuple(map(str, inner.classes_)) if hasattr(inner, "classes_") else ()
        return ShownLandscape(inner.landscape_, names, inner.surface_.latent_)
    if not hasattr(inner, "responsibilities"):
        raise InvalidParameterError(f"{type(inner).__name__} has no posterior over nodes, so that it has no landscapes")
    if X is None or y is None:
        raise InvalidParameterError("a map alone has no landscape; pass rows as X, and their classes or numbers as y")
    rows = fitted.rows(X)

    def share(part: slice) -> FloatArray:
        return np.asarray(inner.responsibilities(rows_of(rows, part)), dtype=float)

    if (kind or _kind_of(y)) == "class":
        return ShownLandscape(*_of_classes(share, inner.latent_.n_nodes, _length(rows), y), inner.latent_)
    return ShownLandscape(_of_numbers(share, inner.latent_.n_nodes, _length(rows), y), (), inner.latent_)


def _length(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _of_classes(ask: Responsibilities, n_nodes: int, n_rows: int, y: Any) -> tuple[ClassLandscape, tuple[str, ...]]:
    groups = row_classes(y, n_rows)
    known = (groups.index >= 0).astype(float)
    if not known.any():
        raise InvalidDataError("no row has a class; give y for some of them")
    names = np.array(groups.names, dtype=object)
    return class_landscape(ask, n_nodes, np.maximum(groups.index, 0), names, known), groups.names


def _of_numbers(ask: Responsibilities, n_nodes: int, n_rows: int, y: Any) -> PropertyLandscape:
    try:
        targets = np.asarray(y, dtype=float).reshape(n_rows, -1)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"y must have a number for each of the {n_rows} rows ({error})") from error
    known = np.isfinite(targets)
    if not known.any(axis=0).all():
        raise InvalidDataError("y has a target of which no number is known")
    return property_landscape(ask, n_nodes, np.where(known, targets, np.nan))


def _kind_of(y: Any) -> str:
    values = np.asarray(y)
    if values.dtype.kind not in "fiu" or values.ndim > 1:
        return "property" if values.dtype.kind in "fiu" else "class"
    finite = values[np.isfinite(values)]
    whole = type_of_target(finite) in {"binary", "multiclass"} if len(finite) else False
    return "class" if whole and len(np.unique(finite)) <= _MOST_CLASSES else "property"


# ------------------------------------------------------------------------------------------------- values


def node_values(shown: ShownLandscape, show: Any, target: int) -> NodeValues:
    """The value to draw at each node."""
    if isinstance(show, str) and show == "mass":
        return _mass(shown, target)
    return _class_values(shown, show) if shown.names else _property_values(shown, show, target)


def class_index(shown: ShownLandscape, show: Any) -> int:
    """Index of the class with a name."""
    if str(show) not in shown.names:
        raise InvalidParameterError(
            f"there is no class {show!r} to show; the classes are {', '.join(shown.names)}, and 'mass' shows the rows"
        )
    return shown.names.index(str(show))


def _class_values(shown: ShownLandscape, show: Any) -> NodeValues:
    """The most likely class by its index, or the probability of one class."""
    found: Any = shown.landscape
    probability, error = found.probability, found.error
    if show is not None:
        j = class_index(shown, show)
        return NodeValues(probability[:, j], np.clip(1.0 - 2.0 * error[:, j], 0.0, 1.0), f"probability of {show}")
    best, sure = _likeliest(np.where(found.empty[:, None], found.belief, probability), error)
    return NodeValues(np.where(found.empty, np.nan, best.astype(float)), sure, "class")


def _likeliest(probability: FloatArray, error: FloatArray) -> tuple[IntArray, FloatArray]:
    """(p,) the most likely class, and how sure it is: by how much it is ahead of guessing, less a standard error."""
    best, n_classes = probability.argmax(axis=1), probability.shape[1]
    at, chance = (np.arange(len(best)), best), 1.0 / n_classes
    lead = (probability[at] - error[at] - chance) / (1.0 - chance if n_classes > 1 else 1.0)
    return best, np.clip(lead, 0.0, 1.0)


_WORDS = {"mean": "mean", "spread": "spread between rows", "error": "standard error of the mean"}


def _property_values(shown: ShownLandscape, show: Any, target: int) -> NodeValues:
    """Mean, spread or standard error. A node is less sure of its mean as the error nears the spread of all rows."""
    found: Any = shown.landscape
    name = "mean" if show is None else show
    if name not in _WORDS:
        raise InvalidParameterError(f"show must be 'mean', 'spread', 'error', 'mass' or None, got {show!r}")
    value = getattr(found, name)[:, _target(shown, target)]
    unsure = found.error[:, target] / (found.scale[target] or 1.0) if name == "mean" else np.zeros(len(value))
    return NodeValues(value, np.clip(1.0 - unsure, 0.0, 1.0), _WORDS[name])


def _mass(shown: ShownLandscape, target: int) -> NodeValues:
    mass, empty = shown.landscape.mass, shown.landscape.empty
    if mass.ndim == 2:
        mass, empty = mass[:, _target(shown, target)], empty[:, target]
    return NodeValues(np.where(empty, np.nan, mass), np.ones(len(mass)), "rows at the node")


def _target(shown: ShownLandscape, target: int) -> int:
    m = shown.landscape.mass.shape[1]
    if not -m <= target < m:
        raise InvalidParameterError(f"there is no target {target}; the landscape has {m}, counted from 0")
    return target


def mix_with_white(rgb: FloatArray, sure: FloatArray) -> FloatArray:
    """(K, 3) colours mixed with white where nodes are less sure."""
    weight = _LEAST_INK + (1.0 - _LEAST_INK) * np.nan_to_num(sure)[:, None]
    return np.asarray(1.0 - weight * (1.0 - rgb))


_EDGE_WIDTH = 0.45
"""Width of the rounding in steps between nodes: so narrow that a single node, drawn or blank, stays what it is."""

_EDGE_SHARE = 0.02
"""Width of the rounding at least, as a share of the axis: where nodes are many, a single one is no island."""

_EDGE_DECADES = 4.0
"""Powers of ten of the mass of a node over which the edge of what is drawn moves from one node to the next."""

_EDGE_STEEPNESS = 8.0
"""How fast the colours end between a node that is drawn and one that is blank; 1 would fade all the way."""


def edge_of(shown: ShownLandscape, known: BoolArray, target: int) -> FloatArray:
    """(K,) a field that is above one half where nodes are drawn: the higher, the more rows lie there.

    What is drawn ends between a node and a blank one, nearer to the one that is nearer to the limit.
    """
    masses = shown.landscape.mass.reshape(len(known), -1)  # each target may be known of other rows
    mass = np.maximum(masses[:, min(target, masses.shape[1] - 1)], 1e-300) / max(shown.landscape.min_mass, 1e-300)
    height = 0.5 + np.log10(mass) / _EDGE_DECADES
    sure = 0.5 / _EDGE_DECADES
    return np.where(known, np.clip(height, 0.5 + sure, 1.0), np.clip(height, 0.0, 0.5 - sure))


class PixelValues(NamedTuple):
    """Values between the nodes of a lattice, (p,) pixels of an image of that ``shape``, row by row from below.

    ``opacity`` (r, c) is 0 where no rows lie; ``ends`` are the outer edges on the map: left, right, bottom, top.
    """

    values: NodeValues
    shape: tuple[int, int]
    opacity: FloatArray
    ends: tuple[float, float, float, float]


def pixel_values(shown: ShownLandscape, show: Any, target: int) -> PixelValues | None:
    """The values between nodes that are a lattice; else None.

    Of classes the probabilities pass into each other, and the most likely one is found at each pixel.
    """
    found = node_values(shown, show, target)
    known = np.isfinite(found.value)
    outline = node_field(shown.latent, edge_of(shown, known, target))
    if outline is None:
        return None
    finer = finer_of(outline.value.shape)

    def between(values: FloatArray) -> FloatArray:
        """(p, m) of (K, m)."""
        image = np.stack([lattice_image(shown.latent, np.where(known, each, np.nan)) for each in values.T], axis=2)
        return values_between(fill_unknown(image), finer).reshape(-1, values.shape[1])

    if found.words == "class":
        landscape: Any = shown.landscape
        best, sure = _likeliest(between(landscape.probability), between(landscape.error))
        found = NodeValues(best.astype(float), sure, found.words)
    else:
        value, sure = between(np.stack([found.value, found.sure], axis=1)).T
        found = NodeValues(value, sure, found.words)
    ends = (outline.x.min(), outline.x.max(), outline.y.min(), outline.y.max())
    opacity = opacity_between(outline.value, finer)
    return PixelValues(found, opacity.shape, opacity, ends)


_FILL_STEEPNESS = 2.0
"""How much less a known node counts for an unknown one, as a power of e, with each step that it is farther away."""


def fill_unknown(image: FloatArray) -> FloatArray:
    """(r, c, m) values at nodes; where they are unknown, means of the known ones, of which the nearest count most."""
    known = np.isfinite(image)
    near = [np.exp(-_FILL_STEEPNESS * abs(np.subtract.outer(np.arange(n), np.arange(n)))) for n in image.shape[:2]]
    total, weight = (
        np.einsum("ir,rcm,jc->ijm", near[0], each, near[1], optimize=True)
        for each in (np.where(known, image, 0.0), known.astype(float))
    )
    mean = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
    return np.where(known, image, mean)


def opacity_between(edge: FloatArray, finer: int) -> FloatArray:
    """(finer r, finer c) 1 where ``edge`` (r, c) is above one half, 0 where it is below, with a rounded rim."""
    up, across = (_rounding(n, finer) for n in edge.shape)
    return np.asarray(np.clip((up @ edge @ across.T - 0.5) * _EDGE_STEEPNESS * finer / FINER + 0.5, 0.0, 1.0))


def _rounding(n: int, finer: int) -> FloatArray:
    """(finer n, n) weights of nodes by which the edge of what is drawn is rounded, a normal density to each node."""
    width = max(_EDGE_WIDTH, _EDGE_SHARE * n)
    weight = np.exp(-0.5 * ((pixels_between(n, finer)[:, None] - np.arange(n)) / width) ** 2)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
