"""Whether rows branch: a principal tree tried beside the surfaces of a comparison."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from prinfold._typing import FloatArray
from prinfold.select.trials import MethodComparison, MethodTrial
from prinfold.select.verdicts import CRITERIA, collect_measures
from prinfold.trees.estimator import PrincipalTree

_FEWEST_BRANCHES = 3
"""Branches that meet in a fork, at least."""


def branching_note(
    job: MethodComparison,
    recommended: Sequence[MethodTrial],
    name: str,
    sigma: float,
    across: int,
    tried: Sequence[MethodTrial] | None = None,
) -> list[str]:
    """A sentence where a tree with forks is as likely as the surface that is recommended; nothing elsewhere.

    Both are judged by the likelihood of rows held out about the surface. Beside a GTM, four of four trees were named so
    (200 rows), and none of twelve sheets, over which trees grow too; of six tables of curves without a fork one was, a
    closed curve that the GTM had missed. ``tried`` are the trials of a tree with all its defaults, where it took part.
    """
    if not across:
        return []
    tree = _grow_tree(job.X)
    if tree is None or tree.doubt_ or tree.graph_.latent.n_branches < _FEWEST_BRANCHES:
        return []
    trials = tried or [job.attempt(PrincipalTree(), int(f), described=False) for f in np.unique(job.fold)]
    losses = CRITERIA["likelihood"].losses(collect_measures([recommended, trials], job, sigma, across))
    if not _no_worse(losses[1] - losses[0]):
        return []
    words = f"The rows branch: a tree of {tree.graph_.latent.n_branches} branches describes rows held out as well as"
    remedy = "Look at PrincipalTree().fit(X), or at DensityRidge(1).fit(X) where branches may close to loops."
    return [f"{words} {name} does. {remedy}"]


def _grow_tree(X: FloatArray) -> PrincipalTree | None:
    """A tree through all rows; None where none can be fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its doubts are looked at
        try:
            tree: PrincipalTree = PrincipalTree().fit(X)
        except Exception:  # a tree is looked for beside the comparison, which does not depend on it
            return None
    return tree


def _no_worse(difference: FloatArray) -> bool:
    """Whether losses of rows exceed others by at most one standard error on average; NaN where a fold failed."""
    return bool(difference.mean() <= difference.std(ddof=1) / np.sqrt(len(difference)))
