"""What a trained map has to say of itself: sizes that are likely slips, how training ended, what may mislead."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import heaviest_row, principal_axes
from prinfold.basis_maps.gaussian_process import GaussianProcess
from prinfold.exceptions import Advice, DegenerateWarning, FoldWarning, Message, MultimodalWarning, warn_caller
from prinfold.geometry.folds import describe
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.posterior_verbs import GTMFamily
from prinfold.gtm.starts.trials import FAR_MODE, MANY_ON_FOLDS, MANY_ROWS, widest_spacing
from prinfold.rows.rows import Rows, filled

_FEW_ROWS, _NEARLY_ALL = 20, 0.9
"""Among how many rows one that holds so much of their scatter is worth a warning."""

_NODES_PER_ROW, _MANY_NODES, _MANY_FUNCTIONS, _MANY_DIMENSIONS = 20, 10_000, 4096, 10
"""Beyond which nodes and basis functions are so many that a total was likely given where one axis is asked for, and
dimensions so many that nodes were likely meant."""


class CautiousFamily(GTMFamily):
    """Warnings of a training job, before it begins and after it has ended."""

    noise_floor: float

    def _warn_of_size(self, job: Any) -> None:
        """What would take very long is likely to be meant otherwise; said before it does."""
        K, M = job.model.surface.node_features.shape
        n, axes = job.rows.n_rows, job.model.surface.latent.dimension
        along = " along each axis" if axes > 1 else ""
        if axes >= _MANY_DIMENSIONS:
            words = f"a surface of {axes} dimensions is known at {K} nodes only, which is next to nothing"
            advice = Advice("nodes", axes, "{} sets the nodes along each axis, if those were meant")
            self._say(Message(words, Advice("n_components", words="lower {}"), advice), DegenerateWarning)
        if max(_NODES_PER_ROW * n, _MANY_NODES) < K:
            words = f"{K} nodes for {n} rows are many more than those can tell apart, and take long"
            self._say(Message(words, Advice("nodes", words=f"use fewer{along} ({{}})")), DegenerateWarning)
        if M > _MANY_FUNCTIONS and not isinstance(job.basis, GaussianProcess):
            words = f"{M} basis functions take minutes and gigabytes, as all weights are found at once"
            self._say(Message(words, Advice("basis", words=f"use fewer{along} ({{}})")), DegenerateWarning)

    def _warn(self, rows: Rows) -> None:
        """Say in words what went wrong or may mislead."""
        for words, category in self._stopping_warnings():
            self._say(words, category)
        if self._model.noise.floored(self._parameters()):
            self._warn_of_the_floor(filled(rows))
        for words in self._cautions():
            self._say(words, DegenerateWarning)
        self._warn_of_one_row(rows)
        dimension, n_columns = self.latent_.dimension, self.n_features_in_
        if n_columns < dimension:
            words = f"a surface of {dimension} dimensions in {n_columns} column(s) is not determined"
            self._say(Message(words, Advice("n_components", n_columns)), DegenerateWarning)
        elif self._share_of_rows_on_folds(rows) > MANY_ON_FOLDS:
            self._say(describe(self.folds_) or "", FoldWarning)
        K, M = self._model.surface.node_features.shape
        if M > K > 1 and not isinstance(self.basis_, GaussianProcess):
            words = f"{M} basis functions for {K} nodes leave most weights undetermined"
            advice = Advice("basis", words="use fewer basis functions ({})"), Advice("nodes", words="more nodes ({})")
            self._say(Message(words, *advice), DegenerateWarning)
        share = self._share_of_rows_with_far_modes(rows)
        if share > MANY_ROWS:
            self._say(
                Message(
                    f"For {share:.0%} of the rows the map is not sure where they belong: their posterior mean lies "
                    f"over {FAR_MODE:g} node spacings from the mode. The surface passes near them in several places, "
                    "or the noise spans many nodes.",
                    Advice("posterior_mode", words="look at their likeliest places ({})"),
                    Advice("init", "isomap", "try another start, such as {}"),
                    Advice("nodes", words="fewer nodes ({})"),
                ),
                MultimodalWarning,
            )

    def _warn_of_one_row(self, rows: Rows) -> None:
        """A row so far off that the surface is about little else is often a slip, and folds are its least trouble."""
        row, share = heaviest_row(rows)
        if rows.n_rows >= _FEW_ROWS and share > _NEARLY_ALL:
            self._say(
                f"one row, number {row} of those that count, holds {share:.1%} of the scatter of all rows, so that the "
                "surface goes by it alone; look at it, and leave it out if it is a slip",
                DegenerateWarning,
            )

    def _row_weights(self, rows: Rows) -> FloatArray | None:
        """How much each row counted in the end."""
        return rows.weight

    def _cautions(self) -> list[str]:
        """What a member of the family has to say of its noise besides."""
        return []

    def _warn_of_the_floor(self, rows: Rows) -> None:
        """The noise has run into its floor: the nodes sit on the rows, or there is nothing to explain."""
        if principal_axes(rows, 1).column_variance == 0:
            self._say(
                "all rows are equal, so that there is no surface: every place is the same point", DegenerateWarning
            )
            return
        if self._model.noise.floor > self.noise_floor * principal_axes(rows, 1).column_variance:
            words = f"the noise is as small as the rounding of the data in {rows.table.dtype}"
            wider = () if rows.table.dtype == np.float64 else ("use float64",)
            self._say(Message(words, "subtract from each column what is common to all rows", *wider), DegenerateWarning)
            return
        self._say(
            Message(
                f"the noise has shrunk to its floor (noise_floor={self.noise_floor:g}): the surface passes through "
                "the rows themselves",
                Advice("basis", words="use fewer basis functions ({})"),
                Advice("nodes", words="fewer nodes ({})"),
                Advice("regularization", words="more {}"),
                Advice("noise_floor", words="a higher {}"),
            ),
            DegenerateWarning,
        )

    def _say(self, words: str, category: type[Warning]) -> None:
        warn_caller(words, category)

    def _is_troubled(self, rows: Rows) -> bool:
        """Whether the map will be warned of as folded or many-peaked."""
        folds = self.n_features_in_ >= self.latent_.dimension and self._share_of_rows_on_folds(rows) > MANY_ON_FOLDS
        return folds or self._share_of_rows_with_far_modes(rows) > MANY_ROWS

    def _share_of_rows_with_far_modes(self, rows: Rows) -> float:
        """Of the rows that count, those whose posterior has its mean far from its mode."""
        distance = posteriors.mode_distance(self._model, rows, self._parameters())
        far = distance > FAR_MODE * widest_spacing(self.latent_)
        return float(np.average(far, weights=self._row_weights(rows)))

    def _share_of_rows_on_folds(self, rows: Rows) -> float:
        """Folds where no row lies are harmless: they bridge gaps between clusters."""
        mass = self._model.begin(rows, self._parameters()).statistics.mass
        return float(mass[self.folds_.folded].sum() / mass.sum())
