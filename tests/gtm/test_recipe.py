"""A recipe holds what is on, and a fit that follows it calls nothing else."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import prinfold
from prinfold import GTM, PPS, GaussianProcess, Incremental, LowRankNoise, StudentNoise
from prinfold.gtm import fitting
from prinfold.gtm.trainers.trainers import BATCH, TRAINERS

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = np.random.default_rng(0).normal(size=(120, 3))

FEATURES = {
    "gtm/evidence_training.py": {"prior_precision": "evidence"},
    "gtm/gaussian_process_training.py": {"basis": GaussianProcess(0.5, 1.0)},
    "gtm/starts/outliers.py": {"noise": "student"},
    "gtm/noise/factor_starts.py": {"noise": LowRankNoise(1), "n_components": 1},
    "gtm/trainers/blockwise.py": {"trainer": "incremental"},
}
"""File of each optional feature, and settings that put it in."""


OFF = {"gtm/partial_fit.py", "gtm/block_input.py", "rows/streams.py", "gtm/noise/per_cell.py"}
"""Files of what a plain fit does not do: go on with other rows, read blocks, tell cells apart."""

KEPT = {"gtm/trainers/stream_memory.py": "memory_ is a fitted attribute: any fit may be gone on with by partial_fit"}
"""Files of optional features that a plain fit calls nevertheless, with the reason for each."""


def files_called(**settings) -> set[str]:
    """Files of the package in which a short fit calls a function."""
    home, found = Path(prinfold.__file__).parent, set()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(home):
            found.add(path.relative_to(home).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        GTM(**({"nodes": 5, "basis": 3, "max_iter": 2, "tol": 0, "random_state": 0} | settings)).fit(X)
    finally:
        sys.setprofile(before)
    return found


def test_a_feature_that_is_off_is_not_called() -> None:
    files_called()  # lazy imports
    plain = files_called()
    assert "gtm/fitting.py" in plain
    assert not plain & {*FEATURES, *OFF}
    assert plain >= set(KEPT)


@pytest.mark.parametrize("file", FEATURES)
def test_a_feature_that_is_on_is_called_alone(file: str) -> None:
    files_called(**FEATURES[file])
    assert files_called(**FEATURES[file]) & set(FEATURES) == {file}


def test_the_plain_recipe_changes_nothing() -> None:
    recipe = GTM()._recipe()
    assert (recipe.row_steps, recipe.model_steps, recipe.start_steps) == ((), (), ())
    assert recipe.trainer is BATCH


@pytest.mark.parametrize(
    "model", [GTM(nodes=5), GTM(latent=prinfold.GTM(nodes=3).fit(X).latent_), GTM(trainer="online")]
)
def test_nodes_that_were_asked_for_or_are_not_seen_at_once_are_not_doubled(model) -> None:
    assert GTM()._recipe().most_doublings > 0
    assert model._recipe().most_doublings == 0


@pytest.mark.parametrize("trainer", [*TRAINERS.values(), Incremental(3)], ids=str)
def test_the_sums_that_training_ends_with_are_those_of_all_rows(trainer) -> None:
    model = GTM(nodes=5, basis=3, max_iter=3, tol=0, trainer=trainer, random_state=0).fit(X)
    sums = model._model.begin(model._rows(X), model._parameters()).statistics
    assert_allclose(model.node_mass_, sums.mass, rtol=1e-8)
    assert trainer.whole == isinstance(trainer, type(BATCH))


def test_following_a_recipe_step_by_step_is_the_fit() -> None:
    recipe = GTM(nodes=6, basis=3, max_iter=8, tol=0, noise="diagonal", random_state=0)._recipe()
    job = fitting.assemble(recipe, X)
    start = reduce(lambda found, change: change(found), recipe.start_steps, recipe.start)
    state = job.model.begin(job.rows, start(job.model, job.rows, np.random.default_rng(0)))
    for _ in range(8):
        state = job.model.step(job.rows, state, recipe.relaxation)
    fitted = GTM(nodes=6, basis=3, max_iter=8, tol=0, noise="diagonal", random_state=0).fit(X)
    assert_array_equal(fitted.weights_, recipe.attributes(job, state)["weights_"])


def test_a_surface_begins_from_the_map_of_the_gtm() -> None:
    settings = {"nodes": 6, "basis": 3, "random_state": 0}
    surface = PPS(clamping=0.8, max_iter=0, tol=0, **settings).fit(X)
    assert_array_equal(surface.weights_, GTM(max_iter=0, tol=0, **settings).fit(X).weights_)


def test_outliers_decide_on_nothing_that_a_robust_recipe_fixes() -> None:
    recipe = GTM(1, noise=StudentNoise())._recipe()
    far = np.concatenate([X, [[1e4, 0.0, 0.0]]])
    for followed, moved in ((recipe, 0.05), (replace(recipe, row_steps=(), spread=GTM(1)._recipe().spread), 10.0)):
        near, away = (fitting.assemble(followed, table) for table in (X, far))
        assert (np.abs(near.rows.offset - away.rows.offset).max() > moved) == (moved > 1)
