"""Data of pictures of surfaces, as plain arrays: fields, ellipses, posteriors, views of data space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, UnsupportedInputError, shown
from prinfold.geometry.folds import Folds, find_folds
from prinfold.latent import LatentSpace, Points
from prinfold.latent.drawing import LatentLayout, PaperCells, Plane
from prinfold.plot.inputs import FittedSurface, drawing_of, layout_of, n_rows_of, table_of
from prinfold.validation.tables import as_entries, as_numbers

_CURVE_POINTS, _MOST_ELLIPSES_ALONG = 400, 20
"""Points at which a factor along a curve is drawn, and most ellipses along an axis."""

_BLOCK_NUMBERS = 2**22
"""Most numbers of a Jacobian held at once."""


def layout_for(model_or_coordinates: Any, *, flat: bool = False) -> LatentLayout:
    """The layout of a fitted model's latent space, or of plain coordinates (n, Q)."""
    if isinstance(model_or_coordinates, np.ndarray):
        return layout_of(Points(model_or_coordinates), flat=flat)
    return layout_of(model_or_coordinates.latent_, flat=flat)


# ------------------------------------------------------------------------------------------------- fields


class Field(NamedTuple):
    """A colour for each cell: ``value`` (r, c) over cells whose corners are ``x`` and ``y`` (r + 1, c + 1)."""

    x: FloatArray
    y: FloatArray
    value: FloatArray


def log_factor(model: Any, Z: FloatArray) -> FloatArray:
    """(n,) natural logarithm of the magnification factor, in blocks; where the surface is flattened, −inf.

    Outside the latent domain there is no surface, and the value is NaN.
    """
    rows = max(_BLOCK_NUMBERS // max(model.n_features_in_ * Z.shape[1], 1), 1)
    factor, inside = np.full(len(Z), np.nan), np.flatnonzero(model.latent_.domain.contains(Z))
    for i in range(0, len(inside), rows):
        factor[inside[i : i + rows]] = model.magnification(Z[inside[i : i + rows]]).factor
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(factor))


def magnification_field(model: Any, layout: LatentLayout, resolution: int = 200) -> Field | None:
    """The log magnification factor at the middles of fine cells, or None where there is nothing to fill."""
    cells = layout.cells(resolution)
    if cells is None:
        return None
    value = log_factor(model, cells.Z)
    return Field(cells.x, cells.y, value.reshape(cells.shape))


def node_field(latent: LatentSpace, value: FloatArray) -> Field | None:
    """Values (K,) at the nodes of a lattice of two axes, each in a cell around its node; else None.

    A closed axis gets its first node again at the other end, so that half a cell shows on either side.
    """
    if len(latent.axes) != 2:
        return None
    edges = [
        each.nodes[0, 0] + each.spacing * (np.arange(each.n_nodes + 1 + _is_closed(each)) - 0.5) for each in latent.axes
    ]
    x, y = np.meshgrid(*edges)
    return Field(x, y, lattice_image(latent, value))


def lattice_image(latent: LatentSpace, value: FloatArray) -> FloatArray:
    """(r, c) values (K,) at the nodes of a lattice of two axes, the first node of a closed one again at its end."""
    image = np.asarray(value, dtype=float).reshape([each.n_nodes for each in latent.axes])
    for axis, each in enumerate(latent.axes):
        if _is_closed(each):
            image = np.concatenate([image, image.take([0], axis)], axis)
    return image.T


def _is_closed(axis: LatentSpace) -> bool:
    return bool(np.isinf(axis.domain.extent.upper[0]))


FINER = 9
"""Pixels between two nodes of what is drawn smoothly: an odd number, so that the middle one is the node itself."""

_PIXELS = 300
"""Pixels along an axis that a lattice of few nodes gets."""


def finer_of(shape: tuple[int, ...]) -> int:
    """Pixels between two nodes of a lattice, an odd number: more of them where nodes are few."""
    return max(FINER, _PIXELS // min(shape) | 1)


def pixels_between(n: int, finer: int = FINER) -> FloatArray:
    """(finer n,) middles of pixels, in steps between n nodes."""
    return np.asarray(np.clip((np.arange(finer * n) + 0.5) / finer - 0.5, 0, n - 1))


def values_between(image: FloatArray, finer: int = FINER) -> FloatArray:
    """(finer r, finer c, …) values between those of nodes (r, c, …), which stay: cubics along one axis after the other.

    Their slope at a node is that between its neighbours (Catmull and Rom 1974), so that all is smooth, where straight
    lines between nodes would show as a star around each. Nothing is above or below all nodes.
    """
    up, across = (_cubic_weights(n, finer) for n in image.shape[:2])
    fine = np.einsum("ir,rc...,jc->ij...", up, image, across, optimize=True)
    return np.asarray(np.clip(fine, image.min(axis=(0, 1)), image.max(axis=(0, 1))))


def _cubic_weights(n: int, finer: int) -> FloatArray:
    """(finer n, n) weights of nodes for the pixels between them; at either end it goes on straight."""
    if n == 1:
        return np.ones((finer, 1))
    places = pixels_between(n, finer)
    before = np.minimum(places.astype(int), n - 2)
    t = places - before
    weights = np.zeros((len(places), n + 2))
    for j, each in enumerate((-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2)):
        weights[np.arange(len(t)), before + j] += each / 2
    weights[:, 1] += 2 * weights[:, 0]
    weights[:, 2] -= weights[:, 0]
    weights[:, -2] += 2 * weights[:, -1]
    weights[:, -3] -= weights[:, -1]
    return weights[:, 1:-1]


def smooth_field(field: Field) -> Field:
    """A field of evenly spaced cells, interpolated between their middles; as it is where values are unknown."""
    if not np.isfinite(field.value).all():
        return field
    sides = (field.x[0], field.y[:, 0])
    x, y = np.meshgrid(*(np.linspace(side[0], side[-1], FINER * (len(side) - 1) + 1) for side in sides))
    return Field(x, y, values_between(field.value))


def given_field(value: Any, model: Any, layout: LatentLayout) -> Field:
    """A background handed in: values at the nodes (K,), or an image (r, c) whose first row lies at the bottom."""
    image = as_numbers("background", value)
    if image.shape == (model.latent_.n_nodes,):
        field = node_field(model.latent_, image)
        if field is not None:
            return smooth_field(field)
    cells: PaperCells | None = layout.cells(1)
    if image.ndim != 2 or cells is None:
        raise InvalidDataError(
            f"background has shape {image.shape}; give 'magnification', None, one value for each of the "
            f"{model.latent_.n_nodes} nodes of a grid, or an image (rows, columns) over a plane"
        )
    if layout.plane is None:
        raise InvalidDataError("an image as background needs a latent space of two axes; give 'magnification' or None")
    ends = zip(layout.plane.low, layout.plane.high, image.shape[::-1], strict=True)
    edges = [np.linspace(a, b, n + 1) for a, b, n in ends]
    x, y = np.meshgrid(*edges)
    return Field(x, y, image)


def limits(value: FloatArray, least: float = 0.05) -> tuple[float, float]:
    """Ends of a colour scale: all but the most extreme half per cent on either side, ``least`` apart or more."""
    finite = value[np.isfinite(value)]
    if not len(finite):
        return -0.5, 0.5
    low, high = (float(q) for q in np.quantile(finite, [0.005, 0.995]))
    narrow = least - (high - low)
    return (low - narrow / 2, high + narrow / 2) if narrow > 0 else (low, high)


def round_factors(low: float, high: float) -> FloatArray:
    """Ticks for a logarithmic scale from exp(low) to exp(high): round numbers, between two and about seven of them."""
    decades = np.arange(np.floor(low / np.log(10)) - 1, np.ceil(high / np.log(10)) + 1)
    for digits in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        ticks = np.sort(np.outer(10.0**decades, digits).ravel())
        inside = ticks[(np.log(ticks) >= low - 1e-9) & (np.log(ticks) <= high + 1e-9)]
        if len(inside) >= 4:
            return np.asarray(inside[:: -(-len(inside) // 7)])
    step = 10.0 ** np.floor(np.log10(max(np.exp(high) - np.exp(low), 1e-300)) - 0.3)
    ticks = np.arange(np.ceil(np.exp(low) / step), np.floor(np.exp(high) / step) + 1) * step
    return np.asarray(ticks[:: max(-(-len(ticks) // 6), 1)])


def curve_magnification(model: Any) -> tuple[FloatArray, FloatArray]:
    """Coordinates (r,) along a curve and the magnification factor there, NaN where the curve has a gap."""
    axis = layout_of(model.latent_).axis
    assert axis is not None
    z = np.linspace(axis.low, axis.high, _CURVE_POINTS)
    return z, np.exp(log_factor(model, model.latent_.domain.beyond(z[:, None])))


# ---------------------------------------------------------------------------------------------- ellipses


class StretchEllipses(NamedTuple):
    """Glyphs of stretch: ``center`` (n, 2), ``half`` (n, 2) half-axes, longest first, ``angle`` (n,) of the longest.

    ``half`` is ``scale`` times the true lengths ℓ of the stretch.
    """

    center: FloatArray
    half: FloatArray
    angle: FloatArray
    scale: float


def stretch_ellipses(model: Any) -> StretchEllipses:
    """Magnitude and direction of stretch, on a linear scale, as large as they can be without overlap or overhang.

    There are as many as nodes, but at most about twenty along an axis. Two ellipses lie apart if their half-widths
    h(u) = ‖diag(ℓ) Vᵀ u‖ along the line u between their centres add up to less than its length.
    """
    drawing = drawing_of(model.latent_)
    Z = drawing.spread(_MOST_ELLIPSES_ALONG)
    stretch = model.magnification(Z)
    # Axes as columns on paper: directions times lengths, seen in the frame of the paper.
    axes = np.matmul(drawing.directions(Z), stretch.directions) * stretch.lengths[:, None, :]
    U, half, _ = np.linalg.svd(axes, full_matrices=False)
    layout = drawing.layout(flat=False)
    center = layout.place(Z, np.full(len(Z), 0.5))
    step = center[None] - center[:, None] if layout.plane is None else layout.plane.difference(center, center[:, None])
    distance = np.linalg.norm(step, axis=2)
    np.fill_diagonal(distance, np.inf)
    line = step / np.where(distance > 0, distance, 1.0)[:, :, None]
    width = np.linalg.norm(np.einsum("ijk,ikq->ijq", line, axes), axis=2)
    both = width + width.T
    room = distance[both > 0] / both[both > 0]
    fits = float(room.min()) if np.isfinite(room).any() else 0.5 / max(float(half.max(initial=0.0)), 1e-300)
    if layout.plane is not None and drawing.grid is not None:
        fits = min(fits, _largest_scale_inside(layout.plane, center, axes))
    scale = 0.95 * fits
    return StretchEllipses(center, scale * half, np.arctan2(U[:, 1, 0], U[:, 0, 0]), scale)


def _largest_scale_inside(layout: Plane, center: FloatArray, axes: FloatArray) -> float:
    """The largest scale at which no ellipse hangs over an open edge."""
    reach = np.linalg.norm(axes, axis=2)  # half-widths along the axes of the paper
    gap = np.minimum(center - np.asarray(layout.low), np.asarray(layout.high) - center)
    held = (reach > 0) & ~np.asarray(layout.periodic)
    return float(np.min(gap[held] / reach[held], initial=np.inf))


def repeat_over_seams(
    layout: LatentLayout | None, center: FloatArray, margin: float = 0.1
) -> tuple[IntArray, FloatArray]:
    """Indices of glyphs to draw and their shifts (n, 2): all of them, and again those near a seam beyond it.

    ``margin`` is how near, as a share of the span of the axis.
    """
    index, shift = np.arange(len(center)), np.zeros((len(center), 2))
    plane = None if layout is None else layout.plane
    if plane is None:
        return index, shift
    for axis in np.flatnonzero(plane.periodic):
        low, high, span = plane.low[axis], plane.high[axis], plane.span[axis]
        place = center[index, axis] + shift[:, axis]
        ahead, behind = place < low + margin * span, place > high - margin * span
        step = np.where(np.arange(2) == axis, span, 0.0)
        shift = np.concatenate([shift, shift[ahead] + step, shift[behind] - step])
        index = np.concatenate([index, index[ahead], index[behind]])
    return index, shift


def node_folds(model: Any) -> Folds:
    """Fold and warp diagnostics at the nodes of any model with a map and a Jacobian."""
    latent = model.latent_
    return find_folds(model.jacobian(latent.nodes), latent.domain.frame(latent.nodes), latent.edges)


# ------------------------------------------------------------------------------------------------ posterior


class RowPosterior(NamedTuple):
    """Posterior of one row: ``weight`` (K,) of the nodes at ``places`` (K, Q), ``mean`` (1, Q) and ``mode`` (1, Q)."""

    places: FloatArray
    weight: FloatArray
    mean: FloatArray
    mode: FloatArray


def row_posterior(fitted: FittedSurface, x: Any) -> RowPosterior:
    """Responsibilities of one row over the nodes, with their mean and mode."""
    if not hasattr(fitted.model, "responsibilities"):
        raise InvalidParameterError(f"{type(fitted.model).__name__} has no posterior over latent space to draw")
    x = table_of(x)
    if n_rows_of(x) != 1:
        raise InvalidDataError(f"posterior draws one row, but got {n_rows_of(x)}; pass a single one such as X[:1]")
    weight = np.asarray(fitted.model.responsibilities(fitted.rows(x)), dtype=float)[0]
    places = fitted.model.node_places_[:, None] if hasattr(fitted.model, "node_places_") else fitted.latent.nodes
    return RowPosterior(places, weight, fitted.coordinates(x), fitted.modes(x))


# ----------------------------------------------------------------------------------------------- data space


class DataView(NamedTuple):
    """A view of data space: ``axes`` (D, a) onto which points less ``origin`` are projected, and their names."""

    origin: FloatArray
    axes: FloatArray
    labels: tuple[str, ...]

    def __call__(self, Y: FloatArray) -> FloatArray:
        return np.asarray((np.asarray(Y, dtype=float) - self.origin) @ self.axes)


def choose_view(
    names: tuple[str, ...], points: FloatArray, dims: Any = None, depth: int | None = None, curve: bool = False
) -> DataView:
    """Columns as they are where there are two or three, those named in ``dims``, else principal components.

    The components are those of ``points``; there are ``depth`` of them, by default two for a curve, three for
    a surface.
    """
    D = len(names)
    if dims is not None:
        if isinstance(dims, str | bytes) or np.ndim(as_entries("dims", dims)) != 1:
            raise InvalidParameterError(f"dims must name two or three different columns, got {shown(dims)}")
        columns = [_column(each, names) for each in dims]
        if not 2 <= len(columns) <= 3 or len(set(columns)) != len(columns):
            raise InvalidParameterError(f"dims must name two or three different columns, got {dims!r}")
        return DataView(np.zeros(D), np.eye(D)[:, columns], tuple(names[j] for j in columns))
    if D < 2:
        raise InvalidDataError("a surface in a single column has no picture in data space; use latent_map instead")
    depth = depth or min(D, 3 if D == 3 or not curve else 2)
    if depth == D:
        return DataView(np.zeros(D), np.eye(D), names)
    origin = points.mean(axis=0)
    _, s, Vt = np.linalg.svd(points - origin, full_matrices=False)
    # Of the two signs of a component take the one whose largest loading is positive.
    Vt = Vt * np.where(np.take_along_axis(Vt, np.abs(Vt).argmax(axis=1)[:, None], 1) < 0, -1.0, 1.0)
    if len(Vt) < depth:
        Vt = np.concatenate([Vt, np.zeros((depth - len(Vt), D))])
    share = np.pad(s**2, (0, depth))[:depth] / max(float((s**2).sum()), 1e-300)
    labels = tuple(f"component {i + 1} ({100 * part:.0f} %)" for i, part in enumerate(share))
    return DataView(origin, Vt[:depth].T, labels)


def _column(name: Any, names: tuple[str, ...]) -> int:
    if isinstance(name, str) and name in names:
        return names.index(name)
    if isinstance(name, int | np.integer) and -len(names) <= name < len(names):
        return int(name) % len(names)
    raise InvalidParameterError(
        f"there is no column {name!r}; the columns are {', '.join(names[:12])} or 0 to {len(names) - 1}"
    )


# -------------------------------------------------------------------------------------------------- training


def noise_ellipses(covariance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Widths, heights and angles in degrees of ellipses of two standard deviations, from covariances (K, 2, 2)."""
    variance, axes = np.linalg.eigh(covariance)
    width, height = 4.0 * np.sqrt(np.maximum(variance[:, ::-1], 0.0)).T
    return width, height, np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))


class LearningCurve(NamedTuple):
    """The course of training: values by iteration, the number of the first, and a heading on how it ended.

    A history may begin late: where nodes were doubled it holds the iterations after that.
    """

    objective: FloatArray
    log_likelihood: FloatArray | None
    noise: FloatArray | None
    ending: str
    first: int = 0


def training_course(model: Any) -> LearningCurve:
    """Data of :func:`learning_curve`, from a fitted model or from a ``history_``; noise as standard deviation."""
    if isinstance(model, Mapping):
        history, ending, done = model, "", None
    else:
        model = FittedSurface.of(model).model
        try:
            history, done = model.history_, int(model.n_iter_)
        except AttributeError as error:
            raise UnsupportedInputError(
                f"{type(model).__name__} has no history_ of its own; draw the learning curve of a model within it"
            ) from error
        ending = model.stop_reason_.after(done)
    if "objective" not in history:
        raise InvalidDataError(f"a history needs the key 'objective', got {sorted(history)}")
    objective = np.asarray(history["objective"], dtype=float)
    likelihood = np.asarray(history["log_likelihood"], dtype=float) if "log_likelihood" in history else None
    noise = np.sqrt(np.asarray(history["noise"], dtype=float)) if "noise" in history else None
    first = 0 if done is None else max(done - len(objective) + 1, 0)
    return LearningCurve(objective, likelihood, noise, ending, first)


class ClampingComparison(NamedTuple):
    """The choice of a clamping: roughness and error of each (A, L), the level, and the ``place`` (2,) chosen."""

    labels: tuple[str, ...]
    roughness: FloatArray
    error: FloatArray
    level: float
    chosen: int
    place: FloatArray


def clamping_comparison(model: Any) -> ClampingComparison:
    """Data of :func:`selection`, from a fitted model or from its ``selection_``."""
    table = model if hasattr(model, "matched_error") else getattr(FittedSurface.of(model).model, "selection_", None)
    if table is None:
        fit = Advice("clamping", "select", "fit a PPS with {}")
        raise InvalidParameterError(Message("the model has selected nothing", fit))
    notes = np.where(table.comparable, "", ", not matched")
    labels = tuple(f"{clamping:.2g}{note}" for clamping, note in zip(table.clampings, notes, strict=True))
    error = table.error[table.chosen, table.own] if table.kept else table.matched_error[table.chosen]
    return ClampingComparison(
        labels, table.roughness, table.error, table.level, table.chosen, np.array([table.level, error])
    )


class ResidualLine(NamedTuple):
    """Residuals by rising latent dimension, both (d,), of one start and number of neighbours."""

    label: str
    dimensions: IntArray
    residuals: FloatArray


class ResidualLines(NamedTuple):
    """Data of :func:`residuals`, and the residual in no dimension."""

    lines: tuple[ResidualLine, ...]
    variance: float


def residual_lines(model: Any) -> ResidualLines:
    """Lines of a table of residuals, or of the one that a fitted model has."""
    table: Any = model if hasattr(model, "residuals") else getattr(FittedSurface.of(model).model, "candidates_", None)
    if not hasattr(table, "residuals"):
        raise InvalidParameterError("the model has no table of residuals; fit a KMM or call select_kmm")
    several = len(set(table.names)) > 1
    keys = dict.fromkeys(zip(table.names, table.neighbors.tolist(), strict=True))
    lines = []
    for name, k in keys:
        own = np.flatnonzero((np.array(table.names) == name) & (table.neighbors == k))
        own = own[np.argsort(table.dimensions[own], kind="stable")]
        label = f"{name}, {k}" if several else str(k)
        lines.append(ResidualLine(label, table.dimensions[own], table.residuals[own]))
    return ResidualLines(tuple(lines), float(table.variance))
