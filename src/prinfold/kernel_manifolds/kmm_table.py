"""Residuals before training of starts, numbers of neighbours and dimensions (Gerber et al. 2009, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers, sequence_of, text, whole_numbers
from prinfold.kernel_manifolds.starts import candidate_label
from prinfold.validation.settings import nothing

_TIE_RELATIVE_RESIDUAL = 1e-6
"""Relative difference below which residuals are equal, and the earlier candidate is taken."""


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Residuals:
    """Residuals of kernel map manifolds before training, by start, dimension and number of neighbours.

    Parameters
    ----------
    names : tuple of str, C of them
        The embeddings that gave the parameters.
    dimensions : array of shape (C,)
        Latent dimensions.
    neighbors : array of shape (C,)
        Neighbours that embeddings and bandwidths went by.
    data_bandwidths : array of shape (C,)
        Bandwidths of f, in units of the data.
    latent_bandwidths : array of shape (C,)
        Bandwidths of g, in units of the embedding.
    residuals : array of shape (C,)
        Mean squared distances of rows that were held out, or left out of g.
    variance : float
        Mean squared distance of the rows from their mean: the residual in no dimension.
    failures : tuple of str
        Why the other embeddings gave no candidate.
    levels : array of shape (C,), default=None
        Residuals that the noise alone would leave, estimated from each candidate; None where they were not needed.
    """

    _kinds: ClassVar[Kinds] = {
        "names": sequence_of(text, "C"),
        "dimensions": whole_numbers("C", least=1),
        "neighbors": whole_numbers("C", least=0),
        "data_bandwidths": numbers("C"),
        "latent_bandwidths": numbers("C"),
        "residuals": numbers("C"),
        "variance": number,
        "failures": sequence_of(text),
        "levels": nothing | numbers("C"),
    }

    names: tuple[str, ...]
    dimensions: IntArray
    neighbors: IntArray
    data_bandwidths: FloatArray
    latent_bandwidths: FloatArray
    residuals: FloatArray
    variance: float
    failures: tuple[str, ...] = ()
    levels: FloatArray | None = None

    def __post_init__(self) -> None:
        parts = self.dimensions, self.neighbors, self.data_bandwidths, self.latent_bandwidths, self.residuals
        if {len(part) for part in parts} != {len(self.names)} or not self.names:
            raise ValueError(f"the parts of a table of residuals do not fit together: {[len(part) for part in parts]}")

    @property
    def chosen(self) -> int:
        """The candidate with the lowest residual, the first of those within rounding of it.

        Of several that leave no more than noise it is the one with the most neighbours: less than that is left
        by coordinates that follow the noise.
        """
        if self.levels is not None and (self.residuals <= self.levels).any():
            return int(np.argmax(np.where(self.residuals <= self.levels, self.neighbors, -1)))
        lowest = self.residuals.min()
        return int(np.argmax(self.residuals <= lowest + _TIE_RELATIVE_RESIDUAL * abs(lowest)))

    @property
    def lowest(self) -> dict[int, float]:
        """The lowest residual in each dimension."""
        return {int(d): float(self.residuals[self.dimensions == d].min()) for d in np.unique(self.dimensions)}

    def __str__(self) -> str:
        lowest, best = self.lowest, self.chosen
        title = f"{candidate_label(self.names[best], int(self.neighbors[best]))}, residual {self.residuals[best]:.6g}"
        title += f" of variance {self.variance:.6g}, chosen among:"
        if len(lowest) > 1:  # residuals fall with every dimension: which is enough is for the reader to see
            fall = ", ".join(f"{residual:.4g} in {d}" for d, residual in lowest.items())
            title = f"lowest residual by dimension, of variance {self.variance:.6g}: {fall}"
        lines = [title, "  start        dimension  neighbours  data bandwidth  latent bandwidth    residual"]
        for c, name in enumerate(self.names):
            numbers = f"{self.dimensions[c]:9d}  {self.neighbors[c]:10d}  {self.data_bandwidths[c]:14.4g}"
            numbers += f"  {self.latent_bandwidths[c]:16.4g}  {self.residuals[c]:10.5g}"
            lines.append(f"  {name:11}  {numbers}{self._mark(c, best)}")
        return "\n".join(lines + [f"  {reason}" for reason in self.failures])

    def _mark(self, c: int, best: int) -> str:
        lowest, dimension = self.lowest, int(self.dimensions[c])
        if len(lowest) == 1:
            return "  ← chosen" if c == best else ""
        return f"  ← lowest in {dimension}" if self.residuals[c] == lowest[dimension] else ""

    def __repr__(self) -> str:
        best = self.chosen
        words = f"{candidate_label(self.names[best], int(self.neighbors[best]))}, residual={self.residuals[best]:.4g}"
        return f"Residuals({words}, {len(self.names)} compared)"


def join(tables: Sequence[Residuals]) -> Residuals:
    """One table of several on the same rows."""
    return Residuals(
        tuple(name for table in tables for name in table.names),
        np.concatenate([table.dimensions for table in tables]),
        np.concatenate([table.neighbors for table in tables]),
        np.concatenate([table.data_bandwidths for table in tables]),
        np.concatenate([table.latent_bandwidths for table in tables]),
        np.concatenate([table.residuals for table in tables]),
        tables[0].variance,
        tuple(dict.fromkeys(failure for table in tables for failure in table.failures)),
    )
