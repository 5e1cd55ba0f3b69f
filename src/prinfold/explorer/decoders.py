"""Decoders: the numbers from which a page evaluates each kind of fitted surface by itself.

``DECODERS`` has a line for each kind of map; the page has a function of the same name that computes with them what
``inverse_transform`` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, log
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from prinfold._typing import FloatArray
from prinfold.basis_maps.bases import BoundGaussianBasis, BoundHarmonicBasis
from prinfold.basis_maps.elastic_net import BoundElasticNet
from prinfold.basis_maps.gaussian_process import BoundProcess
from prinfold.curves.arc_curve import ArcCurve, Polyline
from prinfold.density.ridges.chart import RidgeChart
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.exceptions import Advice, Message, UnsupportedInputError
from prinfold.explorer.map_sampling import sample_map, sentence
from prinfold.latent import Cloud, LatentSpace
from prinfold.latent.arc_length_curves import BranchCurves
from prinfold.latent.drawing import KernelContour
from prinfold.methods import method_of
from prinfold.plot.inputs import drawing_of
from prinfold.som.node_surface import NodeMap

Spec = dict[str, Any]


def decoder_of(model: Any) -> Spec:
    """The map of a fitted model, in numbers."""
    if model.latent_.charts:
        return {"kind": "charts", "parts": [decoder_of(model.component(j)) for j in range(len(model.latent_.charts))]}
    surface = surface_of(model)
    for kind, make in DECODERS.items():
        if isinstance(surface, kind):
            return make(surface, model)
    return sample_map(model)


def decoder_notes(decoder: Spec, name: str) -> list[str]:
    """Notes on how far a page differs from the model; none where it evaluates the model itself."""
    parts = decoder["parts"] if decoder["kind"] == "charts" else [decoder]
    return list(dict.fromkeys(sentence(each, name) for each in parts if each["kind"] in {"grid", "polyline"}))


SURFACES: dict[str, Callable[[Any], Any]] = {
    "basis": lambda model: model.basis_.bind(model.latent_),
    "ridge": lambda model: model.graph_ if model.flow_.dimension == 1 else model.chart_,
    "graph": lambda model: model.graph_,
    "curve": lambda model: model.curve_,
    "nodes": lambda model: model._model,
    "latent": lambda model: model.latent_,
}
"""Objects that carry the surface of a model, by the key that its method has in the register."""


def surface_of(model: Any) -> Any:
    """The object that carries the surface of a model."""
    method = method_of(type(model))
    return SURFACES[method.surface if method is not None and method.surface else "latent"](model)


def _gaussian_basis(basis: BoundGaussianBasis, model: Any) -> Spec:
    n_bumps, weights = len(basis.centers), _weights(model)
    return {
        "kind": "radial",
        "function": "gaussian",
        "centers": basis.centers,
        "width": basis.width,
        "weights": weights[:n_bumps],
        "slope": weights[n_bumps:-1] if basis.linear else None,
        "bias": weights[-1] + _offset(model),
    }


def _process(basis: BoundProcess, model: Any) -> Spec:
    n_pivots, weights = len(basis.pivots), _weights(model)
    return {
        "kind": "radial",
        "function": basis.recipe.covariance,
        "centers": basis.pivots,
        "width": basis.length,
        "weights": solve_triangular(basis.factor, weights[:n_pivots], trans="T", lower=True),
        "slope": weights[n_pivots:-1] if basis.recipe.linear else None,
        "bias": weights[-1] + _offset(model),
    }


def _harmonic_basis(basis: BoundHarmonicBasis, model: Any) -> Spec:
    weights = _weights(model)
    return {"kind": "harmonic", "weights": weights[:-1], "bias": weights[-1] + _offset(model)}


def _net(basis: BoundElasticNet, model: Any) -> Spec:
    fields = basis.fields(_weights(model))
    return {
        "kind": "net",
        "counts": list(basis.latent.shape),
        "low": basis.first,
        "step": basis.step,
        "fields": fields,
        "offset": _offset(model),
    }


def _kernel_regression(latent: Cloud, model: Any) -> Spec:
    if not hasattr(model, "values_"):  # a model of the user's own on such a latent space
        return sample_map(model)
    if getattr(model, "feature_kernel", None) is not None:
        raise UnsupportedInputError(
            Message(
                "a surface in the space of a feature kernel has no points in data space for a page to show",
                "fit without feature_kernel",
                Advice("plot", words="draw the map with {}"),
            )
        )
    return {"kind": "kernel", **_density(latent.contour), "values": model.values_, "offset": model.offset_}


def _node_map(surface: NodeMap, model: Any) -> Spec:
    """Kernel regression on nodes, whose distances are those of the embedding in units of the width."""
    won = surface.won.only(surface.won.occupied)
    if won.mass.shape[1] > 1:  # where cells are missing every column has weights of its own
        return sample_map(model)
    units = surface.latent.node_units / surface.width
    return {
        "kind": "kernel",
        "centers": surface.latent.embed(surface.latent.nodes[surface.won.occupied]) * units,
        "weight": won.mass[:, 0],
        "power": 0,
        "reach": 1e300,
        "units": units,
        "values": won.means,
        "offset": model.offset_,
    }


def _graph(graph: RidgeGraph, model: Any) -> Spec:
    if graph.globe is not None:
        raise UnsupportedInputError(
            Message(
                "the explorer cannot show ridges on a sphere yet",
                Advice("plot", words="draw the ridge with {}"),
                "fit in flat coordinates",
            )
        )
    return _branch_curves(graph, np.zeros(graph.points.shape[1]))


def _curve(curve: ArcCurve, model: Any) -> Spec:
    return _branch_curves(curve, model.offset_)


def _branch_curves(curves: BranchCurves, offset: FloatArray) -> Spec:
    latent = curves.latent
    parts = ("low", latent.domain.low), ("high", latent.domain.high), ("steps", latent.steps)
    counts = ("cells", latent.cells), ("first", latent.first), ("counts", latent.counts)
    return {
        "kind": "branches",
        **{name: np.asarray(part, dtype=np.float64) for name, part in parts},
        **{name: np.asarray(part, dtype=np.int32) for name, part in counts},
        "points": curves.points,
        "tangents": curves.tangents,
        "offset": offset,
    }


def _polyline(curve: Polyline, model: Any) -> Spec:
    """Each segment as a branch of its own, straight from end to end, one beginning where the other ends."""
    ends, width, slope = curve.segments, curve.widths, curve.tangents[: len(curve.widths)]
    ones = np.ones(len(width), dtype=np.int32)
    return {
        "kind": "branches",
        "low": curve.knots[: len(width)],
        "high": curve.knots[: len(width)] + width,
        "steps": width,
        "cells": ones,
        "first": 2 * np.arange(len(width), dtype=np.int32),
        "counts": 2 * ones,
        "points": curve.points[ends].reshape(2 * len(width), -1),
        "tangents": np.repeat(slope, 2, axis=0),
        "offset": model.offset_,
    }


def _chart(chart: RidgeChart, model: Any) -> Spec:
    patches = chart.patches
    return {
        "kind": "patches",
        "centers": patches.centers,
        "coefficients": patches.coefficients,
        "bandwidth": patches.bandwidth,
        "offset": np.zeros(patches.coefficients.shape[2]),
    }


DECODERS: dict[type, Callable[[Any, Any], Spec]] = {
    BoundGaussianBasis: _gaussian_basis,
    BoundHarmonicBasis: _harmonic_basis,
    BoundProcess: _process,
    BoundElasticNet: _net,
    Cloud: _kernel_regression,
    NodeMap: _node_map,
    RidgeGraph: _graph,
    Polyline: _polyline,
    ArcCurve: _curve,
    RidgeChart: _chart,
}
"""Kinds of maps, and what a page needs to evaluate them."""


def _weights(model: Any) -> FloatArray:
    return np.asarray(model.weights_, dtype=np.float64)


def _offset(model: Any) -> FloatArray:
    """(D',) what is added to the map: where columns are levels or counts, nothing to their predictors."""
    offset, columns = np.asarray(model.offset_, dtype=np.float64), model._column_kinds
    if columns is None:
        return offset
    layout = columns.layout
    found = np.zeros_like(offset)
    found[layout.gaussian_columns] = offset[layout.gaussian_columns]
    return np.asarray(found[layout.source])


def links_of(model: Any) -> list[tuple[str, int, int]]:
    """Link functions of columns that are levels or counts: the kind of each, and the positions of its predictors."""
    if model._column_kinds is None:
        return []
    layout = model._column_kinds.layout
    kinds = [(layout.columns[column], part) for column, part, _ in layout.with_family]
    return [("count" if kind.counts else kind.name, part.start, part.stop) for kind, part in kinds]


# ----------------------------------------------------------------------------------------------------- latent spaces


def latent_of(latent: LatentSpace, occupied: Cloud | None = None) -> Spec:
    """Latent coordinates and their domain, in numbers; ``occupied`` is the part of an open lattice where rows are."""
    if latent.charts:
        return {"kind": "charts", "parts": [latent_of(chart) for chart in latent.charts]}
    drawing, extent = drawing_of(latent), latent.domain.extent
    labels = {"labels": list(latent.chart_labels)}
    if drawing.pieces is not None:
        return {"kind": "branches", **labels, **_box(drawing.pieces.low, drawing.pieces.high, [False])}
    if drawing.contour is not None:
        found = _box(extent.lower, extent.upper, [False] * extent.n_columns)
        return {"kind": "region", **labels, **found, **_region(drawing.contour)}
    if drawing.box is not None:
        found = _box(drawing.box.low, drawing.box.high, drawing.box.periodic)
        return {"kind": "box", **labels, **found, **({} if occupied is None else _region(occupied.contour))}
    return {"kind": "sphere", **labels}


def _box(low: Iterable[float], high: Iterable[float], periodic: Iterable[bool]) -> Spec:
    return {"periodic": list(periodic), "low": [float(each) for each in low], "high": [float(each) for each in high]}


def _region(contour: KernelContour) -> Spec:
    """The density of a region, and the logarithm of its least value there."""
    density = _density(contour) | {"bandwidth": contour.bandwidth, "centers": contour.centers / contour.bandwidth}
    return {"density": density, "floor": log(contour.threshold)}


def _density(contour: KernelContour) -> Spec:
    """Kernels at latent points; ``power`` is nil for a Gaussian."""
    profile = contour.profile
    return {
        "centers": contour.centers,
        "weight": contour.weight,
        "power": profile.power,
        "reach": 1e300 if profile.reach == inf else float(profile.reach),
    }
