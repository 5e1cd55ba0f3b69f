"""Networks of straight segments, such as the roads of a map: truths that are curves but not one curve."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.surface import TrueSurface
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.geometry.simplices import Soup
from prinfold.validation.tables import as_numbers


@dataclass(frozen=True, eq=False)
class LineNetwork(TrueSurface):
    """Straight segments, joined or not, as one true surface: ``distance``, ``project`` and ``locate`` are exact.

    The latent coordinate is the length travelled when the segments are laid end to end in their given order, so that
    sampling by the parameter is uniform by length. Where one segment ends and another begins, the coordinate names
    the beginning. Made by :func:`line_network`.

    Parameters
    ----------
    name, point, jacobian, domain, foot, resolution
        As for :class:`~prinfold.datasets.TrueSurface`.
    segments : (S, 2, D) array
        Both ends of each segment.
    """

    segments: FloatArray = field(default_factory=lambda: np.empty((0, 2, 2)))

    @property
    def lengths(self) -> FloatArray:
        """(S,) length of each segment."""
        return np.asarray(np.linalg.norm(self.segments[:, 1] - self.segments[:, 0], axis=1))

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The segments as they are: straight pieces need no refinement, and separate ones are not connected."""
        S, _, D = self.segments.shape
        start = np.concatenate([[0.0], np.cumsum(self.lengths)])
        latent = np.stack([start[:-1], start[1:]], axis=1).reshape(-1, 1)
        return Mesh(self.segments.reshape(2 * S, D), latent, np.arange(2 * S).reshape(S, 2))


@check_kinds
def line_network(name: str, segments: FloatArray) -> LineNetwork:
    """A network of straight segments with exact distances, found by a tree of the segments.

    Parameters
    ----------
    name : str
        What the network is called.
    segments : (S, 2, D) array
        Both ends of each segment, none of length zero.

    Returns
    -------
    LineNetwork
        The network.
    """
    ends = as_numbers("segments", segments)
    if ends.ndim != 3 or ends.shape[1] != 2 or not len(ends) or not np.isfinite(ends).all():
        raise InvalidParameterError(f"The {name} needs finite segments of shape (S, 2, D); got shape {ends.shape}.")
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    start = np.concatenate([[0.0], np.cumsum(lengths)])
    if not (np.diff(start) > 0).all():
        short = int(np.argmin(np.diff(start)))
        raise InvalidParameterError(f"Segment {short} of the {name} has no length; leave it out.")
    directions = (ends[:, 1] - ends[:, 0]) / lengths[:, None]
    soup = Soup(ends.reshape(2 * len(ends), -1), np.arange(2 * len(ends)).reshape(-1, 2))

    def segment(U: FloatArray) -> IntArray:
        return np.clip(np.searchsorted(start, U[:, 0], side="right") - 1, 0, len(ends) - 1)

    def point(U: FloatArray) -> FloatArray:
        k = segment(U)
        return np.asarray(ends[k, 0] + (U[:, 0] - start[k])[:, None] * directions[k])

    def foot(X: FloatArray) -> FloatArray:
        feet = soup.nearest(X)
        k, share = feet.face, feet.barycentric[:, 1]
        # The far end of a segment has the name of the next one's beginning: one rounding step short of it is its own.
        last = np.where(k < len(ends) - 1, np.nextafter(start[k + 1], -np.inf), start[-1])
        return np.asarray(np.minimum(start[k] + share * lengths[k], last)[:, None])

    domain = Box.of((0.0, float(start[-1])))
    return LineNetwork(name, point, lambda U: directions[segment(U)][:, :, None], domain, foot, segments=ends)
