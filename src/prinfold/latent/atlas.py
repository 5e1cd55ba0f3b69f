"""Several latent spaces beside each other, one for each map of a mixture (GTM thesis 6.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError, shown
from prinfold.geometry.charts import Charts
from prinfold.latent.base import LatentSpace, refuse_too_many
from prinfold.validation.settings import instance_of, several


@dataclass(frozen=True)
class Atlas(LatentSpace):
    """Charts that do not touch; a coordinate is the number of a chart, from 0, and then a place on it.

    The nodes are those of all charts, one chart after the other. No path leads from chart to chart, so that the
    distance between them is infinite, and a mean is taken on the chart that weighs most.
    """

    charts: tuple[LatentSpace, ...]

    def __post_init__(self) -> None:
        if not several(instance_of(LatentSpace, words="a latent space"), "latent spaces").test(self.charts):
            raise InvalidParameterError(f"an atlas needs latent spaces for its charts, got {shown(self.charts)}")
        dimensions = sorted({chart.dimension for chart in self.charts})
        if len(dimensions) > 1:
            raise InvalidParameterError(
                f"the charts of an atlas need one dimension, got {dimensions}; give maps of equal dimension"
            )
        refuse_too_many(sum(chart.n_nodes for chart in self.charts))

    @cached_property
    def domain(self) -> Charts:
        return Charts(tuple(chart.domain for chart in self.charts))

    @cached_property
    def first(self) -> IntArray:
        """(J + 1,) number of the first node of each chart, and of all nodes."""
        return np.concatenate([[0], np.cumsum([chart.n_nodes for chart in self.charts])])

    @cached_property
    def nodes(self) -> FloatArray:
        return np.concatenate([self.on_chart(j, chart.nodes) for j, chart in enumerate(self.charts)])

    def on_chart(self, j: int, places: FloatArray) -> FloatArray:
        """Coordinates of places on chart j."""
        out = np.zeros((len(places), self.n_columns))
        out[:, 0], out[:, 1 : 1 + places.shape[1]] = j, places
        return out

    def per_chart(
        self, Z: FloatArray, ask: Callable[[int, FloatArray], FloatArray], shape: tuple[int, ...]
    ) -> FloatArray:
        """``(n, *shape)`` results of ``ask`` for each chart, called with its number and the places on it."""
        chart, out = self.domain.chart(Z), np.empty((len(Z), *shape))
        for j, space in enumerate(self.charts):
            rows = np.flatnonzero(chart == j)
            if len(rows):
                out[rows] = ask(j, Z[rows, 1 : 1 + space.n_columns])
        return out

    @property
    def spacing(self) -> float:
        """Shortest distance between neighbouring nodes over all charts."""
        return min(chart.spacing for chart in self.charts)

    @cached_property
    def edges(self) -> IntArray:
        return self._join_node_lists([chart.edges for chart in self.charts])

    @cached_property
    def faces(self) -> IntArray:
        return self._join_node_lists([chart.faces for chart in self.charts])

    def refined(self, resolution: int) -> Atlas:
        return Atlas(tuple(chart.refined(resolution) for chart in self.charts))

    def thinned(self) -> Atlas:
        return Atlas(tuple(chart.thinned() for chart in self.charts))

    @cached_property
    def embedding(self) -> AtlasEmbedding:
        return AtlasEmbedding(self)

    def distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """(n,) distance along the chart; infinite from one chart to another."""
        a, b, out = self.domain.chart(A), self.domain.chart(B), np.full(len(A), np.inf)
        for j, space in enumerate(self.charts):
            both = np.flatnonzero((a == j) & (b == j))
            if len(both):
                columns = slice(1, 1 + space.n_columns)
                out[both] = space.distance(A[both, columns], B[both, columns])
        return out

    def covariance(self, weight: FloatArray, mean: FloatArray, near: IntArray | None = None) -> FloatArray:
        """(n, Q, Q) spread about ``mean`` of the nodes on its chart, as if there were no others."""
        named = np.arange(self.n_nodes) if near is None else near
        chart, out = self.domain.chart(mean), np.zeros((len(mean), self.n_columns, self.n_columns))
        for j, space in enumerate(self.charts):
            rows = np.flatnonzero(chart == j)
            nodes = np.flatnonzero((named >= self.first[j]) & (named < self.first[j + 1]))
            own, columns = weight[np.ix_(rows, nodes)], slice(1, 1 + space.n_columns)
            total = own.sum(axis=1, keepdims=True)
            share = own / np.where(total > 0, total, 1.0)
            out[rows, columns, columns] = space.covariance(share, mean[rows, columns], named[nodes] - self.first[j])
        return out

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return ("map", *self.charts[0].chart_labels)[:3]

    def _join_node_lists(self, each: list[IntArray]) -> IntArray:
        """Lists of nodes of each chart as lists of all nodes."""
        return np.concatenate([part + self.first[j] for j, part in enumerate(each)]).astype(np.intp)


@dataclass(frozen=True)
class AtlasEmbedding:
    """Each chart in columns of its own beside a column of ones."""

    atlas: Atlas

    @cached_property
    def widths(self) -> list[int]:
        """Columns of each chart."""
        return [1 + chart.n_embedded for chart in self.atlas.charts]

    def embed(self, Z: FloatArray) -> FloatArray:
        """Embedded places, each chart in columns of its own beside a column of ones; the rest is 0."""
        widths, chart = self.widths, self.atlas.domain.chart(Z)
        out = np.zeros((len(Z), sum(widths)))
        for j, space in enumerate(self.atlas.charts):
            rows, start = np.flatnonzero(chart == j), sum(widths[:j])
            out[rows, start] = 1.0
            out[rows, start + 1 : start + widths[j]] = space.embed(Z[rows, 1 : 1 + space.n_columns])
        return out

    def jacobian(self, Z: FloatArray) -> FloatArray:
        widths, chart = self.widths, self.atlas.domain.chart(Z)
        out = np.zeros((len(Z), sum(widths), self.atlas.n_columns))
        for j, space in enumerate(self.atlas.charts):
            rows, start = np.flatnonzero(chart == j), sum(widths[:j])
            inner = space.embed_jacobian(Z[rows, 1 : 1 + space.n_columns])
            out[rows, start + 1 : start + widths[j], 1 : 1 + space.n_columns] = inner
        return out

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates on the chart with the largest weight: the unembedded mean of the part that lies there."""
        widths = self.widths
        starts = np.cumsum([0, *widths[:-1]])
        heaviest, Z, resultant = (
            E[:, starts].argmax(axis=1),
            np.zeros((len(E), self.atlas.n_columns)),
            np.full(len(E), np.inf),
        )
        for j, space in enumerate(self.atlas.charts):
            rows = np.flatnonzero(heaviest == j)
            weight = E[rows, starts[j], None]
            mean = E[rows, starts[j] + 1 : starts[j] + widths[j]] / np.where(weight > 0, weight, 1.0)
            places, resultant[rows] = space.unembed(mean)
            Z[rows] = self.atlas.on_chart(j, places)
        return Z, resultant
