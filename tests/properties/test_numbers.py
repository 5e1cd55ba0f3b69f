"""Numbers that stand still: the same seed gives the same model, over block sizes and, to a bound, precisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

from prinfold import DensityRidge
from prinfold.methods import METHODS
from prinfold.rows import rows
from tests.properties import stored_answers
from tests.properties.cases import CASES, Case, cases, cloud, fitted
from tests.properties.stored_answers import answers, distance, stored_of

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

VERBS = ("transform", "project", "reconstruct")

OVER_BLOCKS = 1e-7
"""How far coordinates may lie apart, in units of their spread, where rows are added up in blocks of other sizes."""

IN_SINGLE_PRECISION = 2e-4
"""... where the same numbers are computed with in single and in double precision."""

CHOICES = {"PPS-prior": 5e-3}
"""... where a stretched step is kept in one precision and not in the other; 40 steps later both are at one place."""


def spread(answer: np.ndarray) -> float:
    return float(np.ptp(answer, axis=0).max())


@cases(one_each=True)
def test_the_same_seed_gives_the_same_model_to_the_last_bit(case: Case) -> None:
    model, X = fitted(case)
    again = case.make().fit(X)
    for verb in VERBS:
        assert_array_equal(getattr(again, verb)(X), getattr(model, verb)(X), err_msg=verb)


@cases()
def test_blocks_of_any_size_give_the_same_model(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted(case)
    wanted = {verb: getattr(model, verb)(X) for verb in VERBS}
    cut = rows.row_slices
    monkeypatch.setattr(rows, "row_slices", lambda n_rows, size: cut(n_rows, 7))
    narrow = case.make().fit(X)
    for verb, answer in wanted.items():
        assert_allclose(
            getattr(narrow, verb)(X), answer, rtol=0, atol=OVER_BLOCKS * spread(answer), equal_nan=False, err_msg=verb
        )


@cases(one_each=True)
def test_single_precision_computes_what_double_does_within_the_stated_bound(case: Case) -> None:
    single = cloud().astype(np.float32)
    double = single.astype(np.float64)  # the same numbers: what rounding does to the table is the table's
    narrow, wide = case.make().fit(single), case.make().fit(double)
    for verb in VERBS:
        wanted = getattr(wide, verb)(double)
        bound = CHOICES.get(case.name, IN_SINGLE_PRECISION) * spread(wanted)
        assert_allclose(getattr(narrow, verb)(single), wanted, rtol=0, atol=bound, equal_nan=False, err_msg=verb)


# ------------------------------------------------------------------------- methods that are no principal manifolds

OTHERS = sorted(set(METHODS) - {case.name.partition("-")[0] for case in CASES})

SCORES = ("transform", "predict_proba", "score_samples", "decision_function", "distances", "memberships")
"""Verbs of classifiers, monitors and the like, with a number for each row."""


def scores_of(name: str, X: np.ndarray) -> dict[str, np.ndarray]:
    """What a method says of the rows that it is fitted to; where it needs targets, of one column."""
    model = METHODS[name].cls()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    given = {"y": (X[:, 0] > np.median(X[:, 0])).astype(int)} if get_tags(model).target_tags.required else {}
    model.fit(X, **given)
    found = {verb: getattr(model, verb)(X) for verb in SCORES if hasattr(model, verb)}
    return {verb: np.asarray(answer) for verb, answer in found.items() if not isinstance(answer, list)}


@pytest.mark.parametrize(
    "name",
    [name if name == "KernelDensityClassifier" else pytest.param(name, marks=pytest.mark.full) for name in OTHERS],
)
def test_other_methods_stand_still_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    single = cloud().astype(np.float32)
    X = single.astype(np.float64)
    wanted, again, narrow = scores_of(name, X), scores_of(name, X), scores_of(name, single)
    cut = rows.row_slices
    monkeypatch.setattr(rows, "row_slices", lambda n_rows, size: cut(n_rows, 7))
    in_blocks = scores_of(name, X)
    assert wanted
    for verb, answer in wanted.items():
        width = float(np.ptp(answer)) or 1.0
        assert_array_equal(again[verb], answer, err_msg=verb)
        assert_allclose(in_blocks[verb], answer, rtol=0, atol=OVER_BLOCKS * width, err_msg=verb)
        assert_allclose(narrow[verb], answer, rtol=0, atol=IN_SINGLE_PRECISION * width, err_msg=verb)


@pytest.mark.parametrize("dimension", [1, 2])
def test_a_table_in_single_precision_has_the_same_ridge_and_nearly_the_same_chart(dimension: int) -> None:
    rng = np.random.default_rng(2)
    t = rng.uniform(-1, 1, 80)
    X = np.stack([t, t**2, np.sin(3 * t)], axis=1) + 0.05 * rng.standard_normal((80, 3))
    single, width = X.astype(np.float32), spread(X)
    wide, narrow = DensityRidge(dimension).fit(X), DensityRidge(dimension).fit(single)
    assert_allclose(narrow.flow(single).points, wide.flow(X).points, rtol=0, atol=1e-6 * width)
    # Nodes of a chart are chosen one by one, and a last digit may choose another.
    assert_allclose(narrow.project(single), wide.project(X), rtol=0, atol=(1e-6 if dimension == 1 else 5e-3) * width)


@pytest.mark.parametrize(
    "name", [name if name in {"GTM", "SOM"} else pytest.param(name, marks=pytest.mark.full) for name in METHODS]
)
def test_every_version_of_python_gives_the_stored_answers_to_tol(name: str) -> None:
    found, tol = answers(METHODS[name])
    assert distance(found, stored_of(name)) <= tol


def test_an_answer_that_is_further_off_than_tol_is_noticed() -> None:
    found, tol = answers(METHODS["GTM"])
    assert distance(found + 2 * tol * spread(found), stored_of("GTM")) > tol


def test_one_method_is_stored_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('{"UKR": [[1.0]], "GTM": [[2.0]]}', encoding="utf-8")
    monkeypatch.setattr(stored_answers, "FILE", file)
    with pytest.raises(LookupError, match=r"stored_answers --write SOM stores them"):
        stored_of("SOM")
    stored_answers.write({"SOM": [[3.0]]})
    assert stored_answers.stored() == {"UKR": [[1.0]], "GTM": [[2.0]], "SOM": [[3.0]]}
