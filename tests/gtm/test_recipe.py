"""A recipe holds what is on, and a fit that follows it calls nothing else."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.house import PACKAGE, syntax_trees

import prinfold
from prinfold import GTM, PPS, GaussianProcess, Incremental, LowRankNoise, StudentNoise, datasets
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
"""File of each optional feature of a recipe, and settings that put it in."""

PLAIN = {
    "e_step",
    "estimator",
    "fitting",
    "latent_grid_model",
    "lattice_refinement",
    "model",
    "node_selection",
    "noise.isotropic",
    "noise.protocol",
    "noise.recipes",
    "penalties",
    "posterior",
    "softmax",
    "starts.first_parameters",
    "starts.placements",
    "starts.unrolling",
    "trainers.stream_memory",  # memory_ is a fitted attribute: any fit may be gone on with by partial_fit
    "trainers.trainers",
    "warnings",
}
"""Files of the GTM that a default fit calls, and no others: whatever else lies beside them is a feature that is off."""

ASKED = {
    "devices": {"find_device": 1, "current_device": 1, "home_of": 1},
    "loops/bars.py": {"is_watched": 1, "in_notebook": 1},
    "loops/progress.py": {"_visible": 1, "working_alone": 1},
    "loops/training_log.py": {},
    "loops/snapshots.py": {},
    "rows/dask_partitions.py": {},
    "rows/streams.py": {},
    "validation/dask_verbs.py": {"is_dask": 2},
}
"""Features that follow from the table, the place or a surrounding ``with``, and no setting of ours puts in: what is
asked of each in a default fit, and how often. Dask is looked for at the gate of all verbs, and at that of ``fit``."""


def calls_of_fit(model, table) -> Counter[tuple[str, str]]:
    """Functions of the package that a fit calls, by file and name."""
    home, found = Path(prinfold.__file__).parent, Counter()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(home):
            found[path.relative_to(home).as_posix(), frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(table)
    finally:
        sys.setprofile(before)
    return found


def calls_of(**settings) -> Counter[tuple[str, str]]:
    """The same of a short fit of a small map."""
    small = {"nodes": 5, "basis": 3, "max_iter": 2, "tol": 0, "random_state": 0}
    return calls_of_fit(GTM(**(small | settings)), X)


def files_called(**settings) -> set[str]:
    """Files of the package in which a short fit calls a function."""
    return {file for file, _ in calls_of(**settings)}


def modules_of_gtm(files: set[str]) -> set[str]:
    """Modules of the GTM's folder among some files."""
    return {each.removeprefix("gtm/")[:-3].replace("/", ".") for each in files if each.startswith("gtm/")}


def changes_of_recipes() -> set[str]:
    """Files with a function that takes a recipe first and returns a recipe: the features of a fit."""
    found = set()
    for file, tree in syntax_trees(PACKAGE).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.args.args:
                first, returned = node.args.args[0].annotation, node.returns
                if all(isinstance(each, ast.Name) and each.id == "Recipe" for each in (first, returned)):
                    found.add(file)
    return found - {"gtm/recipe.py"}  # the words in which features say what they change


def test_a_feature_that_is_off_is_not_called() -> None:
    files_called()  # lazy imports
    called = files_called()
    assert modules_of_gtm(called) == PLAIN


UNSET = {
    "noise": (X, {"starts.basis_sizes"}),
    "rolled up": (datasets.make_swiss_roll(200, rng=0).X, {"starts.basis_sizes", "starts.trials"}),
}
"""Tables, and what a fit of which nothing is set calls more: sizes are chosen, and starts compared where it pays."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", UNSET)
def test_a_feature_that_is_off_is_not_called_where_nothing_is_set(name: str) -> None:
    table, more = UNSET[name]
    calls_of_fit(GTM(max_iter=2), table)  # lazy imports
    called = {file for file, _ in calls_of_fit(GTM(max_iter=2), table)}
    assert modules_of_gtm(called) == PLAIN | more


@pytest.mark.parametrize("place", ASKED)
def test_what_no_setting_puts_in_is_asked_about_and_no_more(place: str) -> None:
    home = Path(prinfold.__file__).parent
    assert (home / place).exists()
    files_called()
    found = Counter()
    for (file, name), n in calls_of().items():
        if file.startswith(place):
            found[name] += n
    assert found == ASKED[place]


def test_every_feature_of_a_recipe_has_settings_that_put_it_in() -> None:
    assert changes_of_recipes() <= set(FEATURES)


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
