"""The gate around every verb: failures of arithmetic and memory have a name, and models and answers are finite."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from tests.house import public_functions

from prinfold import (
    GTM,
    KMM,
    SOM,
    DensityRidge,
    GTMSequence,
    OrientedPointsCurve,
    PolygonalCurve,
    PrincipalCurve,
    PrincipalSurface,
    choose,
    methods,
)
from prinfold._typing import Stretch
from prinfold.exceptions import (
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    NotEnoughMemoryError,
    PrinfoldError,
)
from prinfold.rows.rows import for_each_block
from prinfold.validation.failures import gate_verbs, may_have_gaps, name_call_failures
from prinfold.validation.tables import weights_within_reach

T = np.linspace(0, 3, 80)
X = np.c_[np.cos(T), np.sin(T), 0.3 * T] + np.random.default_rng(0).normal(0, 0.05, (80, 3))


class Broken:
    """A table whose numbers cannot be had."""

    shape = (80, 3)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, *args, **options):
        raise self.error


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), MemoryError("none left")])
@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda method: method.name)
def test_no_failure_of_arithmetic_or_memory_leaves_a_fit_unnamed(method, error):
    with pytest.raises(PrinfoldError):
        method.cls().fit(Broken(error), *([np.arange(80) % 2] if "y" in required(method.cls) else []))


def required(cls):
    code = cls.fit.__wrapped__.__code__ if hasattr(cls.fit, "__wrapped__") else cls.fit.__code__
    names = code.co_varnames[: code.co_argcount]
    return names[: len(names) - len(getattr(cls.fit, "__wrapped__", cls.fit).__defaults__ or ())]


@gate_verbs
class Model:
    """Fits whatever ``work`` makes of the rows, or answers it."""

    def fit(self, X, work):
        self.place_ = work(np.asarray(X, dtype=float))
        return self

    def answer(self, X, work, extrapolate=False):
        return work(np.asarray(X, dtype=float))

    @may_have_gaps
    def copy_rows(self, X):
        return np.array(X, dtype=float)


def is_gated(verb):
    while verb is not None and not verb.__code__.co_filename.endswith("failures.py"):
        verb = getattr(verb, "__wrapped__", None)
    return verb is not None


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda method: method.name)
def test_every_public_verb_goes_through_the_gate(method):
    verbs = [name for name, each in inspect.getmembers(method.cls, inspect.isfunction) if not name.startswith("_")]
    own = [name for name in verbs if getattr(method.cls, name).__module__.startswith("prinfold")]
    assert "fit" in own
    assert [name for name in own if not is_gated(getattr(method.cls, name))] == []
    assert not is_gated(BaseEstimator.get_params)


def test_every_public_function_that_computes_or_draws_goes_through_the_gate():
    named = {name.removeprefix("prinfold."): each for name, each in public_functions().items()}
    others = ("latent.", "datasets.load_", "datasets.line_network", "datasets.p", "anndata.")  # anndata fits by verbs
    own = {name for name in named if not name.startswith(others)} - {"save", "load", "cite", "explore", "report"}
    assert {"choose", "compare", "metrics.area", "plot.surface", "datasets.make_circle", "select_kmm"} <= own
    assert sorted(name for name in own if not is_gated(named[name])) == []


@dataclass
class Band:
    """An answer of several parts."""

    level: float
    parts: dict


@pytest.mark.parametrize(
    "answer",
    [
        *(np.nan, np.array([[1.0, np.nan]]), (np.ones(2), np.array([np.nan])), [1.0, np.nan], {"a": np.array(np.nan)}),
        Stretch(np.ones(1), np.ones((1, 1, 1)), np.array([[np.nan]])),
        *(Band(np.nan, {}), Band(0.5, {"radius": [np.array([np.nan])]})),
        pl.DataFrame({"a": [1, 2], "b": [np.nan, 1.0]}, schema={"a": pl.Int128, "b": pl.Float64}),
        *(pd.DataFrame({"a": [1.0, np.nan]}), (Band(0.5, {"found": pd.DataFrame({"a": [np.nan]})}),)),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_of_nan_is_an_error_however_deep_it_lies(answer):
    with pytest.raises(InvalidDataError, match=r"Model\.answer has no finite answer here: .* would be NaN"):
        Model().answer(X, lambda rows: answer)


@pytest.mark.parametrize("answer", [Band(0.5, {"names": ["a", None], "n": 3}), Band, {}, [], None, "NaN", object()])
def test_an_answer_of_anything_else_passes(answer):
    assert Model().answer(X, lambda rows: answer) is answer


@pytest.mark.parametrize(
    ("work", "kind", "words"),
    [
        (lambda: np.nan, InvalidDataError, "area has no finite answer here: some of its numbers would be NaN"),
        (lambda: Band(0.5, {"a": np.nan}), InvalidDataError, "would be NaN"),
        (lambda: np.square(np.array([1e200])), InvalidDataError, r"numbers left double precision \(overflow\)"),
        (lambda: 1 // 0, InvalidDataError, "by zero"),
        (lambda: np.empty(2**50), NotEnoughMemoryError, "ran out of memory"),
    ],
    ids=["nan", "deep nan", "overflow", "division", "memory"],
)
def test_failures_of_a_function_are_named(work, kind, words):
    def area():
        return work()

    with pytest.raises(kind, match=words):
        name_call_failures(area)()
    assert not np.isfinite(name_call_failures(may_have_gaps(lambda: np.nan))())


def test_an_overflow_on_the_way_to_a_finite_number_is_one_warning():
    with pytest.warns(DegenerateWarning, match="numbers left double precision"):
        assert name_call_failures(lambda: float(1 / np.square(np.array([1e200]))[0]))() == 0


def test_a_verb_may_declare_that_gaps_are_an_answer():
    assert np.isnan(Model().copy_rows([[np.nan]])).all()


def test_an_answer_that_is_infinite_is_an_error_only_where_numbers_overflowed():
    assert Model().answer(X, lambda rows: -np.inf) == -np.inf  # the logarithm of no density at all
    with pytest.raises(InvalidDataError, match=r"no finite answer here: numbers left double precision \(overflow\)"):
        Model().answer(X * 1e200, np.square)


def test_an_overflow_with_a_finite_answer_is_one_warning():
    with pytest.warns(DegenerateWarning, match=r"numbers left double precision in answer \(overflow\)"):
        assert Model().answer(X * 1e200, lambda rows: 1.0 / np.square(rows).sum()) == 0


def test_what_goes_wrong_after_an_overflow_follows_from_it():
    def look_up(rows):
        return [0][int(np.square(rows).max() > 1e300)]

    with pytest.raises(InvalidDataError, match="numbers left double precision") as caught:
        Model().answer(X * 1e200, look_up)
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(IndexError):  # about something else
        Model().answer(X, lambda rows: [0][len(rows)])


@pytest.mark.parametrize("call", [lambda m: m.answer(X, len, 2), lambda m: m.answer(X, len, extrapolate=np.zeros(2))])
def test_arguments_that_mean_the_same_everywhere_are_checked_at_the_gate(call):
    with pytest.raises(InvalidParameterError, match="extrapolate must be True or False, got"):
        call(Model())


def test_an_overflow_that_leaves_a_finite_model_is_one_warning():
    with pytest.warns(DegenerateWarning, match="numbers left double precision in the fit") as caught:
        model = Model().fit(X * [1, 1e200, 1], lambda rows: 1.0 / np.square(rows).sum())
    assert len(caught) == 1
    assert model.place_ == 0


@pytest.mark.parametrize("on_threads", [False, True])
def test_a_model_that_is_not_finite_is_refused_and_forgotten(on_threads):
    def work(rows):
        found = np.empty(4)

        def square(i):
            found[i] = np.square(rows).sum()

        for_each_block(square, range(4)) if on_threads else [square(i) for i in range(4)]
        return found

    model = Model()
    with pytest.raises(InvalidDataError, match=r"Model cannot be fitted.*column 2 spreads over .*e\+200"):
        model.fit(X * [1, 1e200, 1], work)
    assert not hasattr(model, "place_")


def test_errors_that_are_about_something_else_pass_through():
    def work(rows):
        raise ValueError("a callback has had enough")

    with pytest.raises(ValueError, match="had enough") as caught:
        Model().fit(X, work)
    assert not isinstance(caught.value, PrinfoldError)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("array must not contain infs or NaNs"), InvalidDataError),
        (OverflowError("too large"), InvalidDataError),
        (MemoryError("none left"), NotEnoughMemoryError),
    ],
)
def test_the_reason_is_told_behind_the_name(error, kind):
    def work(rows):
        raise error

    with pytest.raises(kind, match=str(error)) as caught:
        Model().fit(X, work)
    assert caught.value.__cause__ is error


def test_words_of_lapack_are_not_told():
    error = np.linalg.LinAlgError("The algorithm failed to compute an eigenvalue of the submatrix in rows 18/20")

    def work(rows):
        raise error

    told = r"^Model cannot be fitted to these rows: a matrix cannot be solved or decomposed in double precision\. \w+"
    with pytest.raises(InvalidDataError, match=told) as caught:
        Model().fit(X, work)
    assert "eigenvalue" not in str(caught.value)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("apart", [1e100, 1e150])
@pytest.mark.parametrize("kind", [GTM, GTMSequence])
def test_columns_far_apart_are_fitted_or_named(kind, apart):
    frame = pd.DataFrame(X * [1, apart, 1], columns=["length", "mass", "height"])
    try:
        with pytest.warns():  # of columns that hold all variance, or of numbers out of reach
            model = kind(nodes=6, basis=3, max_iter=5).fit(frame)
    except InvalidDataError as error:
        assert "mass spreads over" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.weights_).all()


# ------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e-160, 1e153, 1e300])
@pytest.mark.parametrize(
    "model",
    [PrincipalCurve(max_iter=3), DensityRidge(max_iter=3), PrincipalSurface(max_iter=2)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_beyond_reach_count_as_the_last_within_it(model, unit):
    weight = np.ones(80) if unit == 5e-324 else np.linspace(0.5, 1, 80)
    within = 1e-50 if unit < 1 else 1e50
    last, beyond = (model.fit(X, sample_weight=w).project(X) for w in (within * weight, unit * weight))
    assert_allclose(beyond, last, atol=1e-6)


@pytest.mark.parametrize("heavy", [1e20, 1e100, 1e300])
def test_weights_so_far_apart_that_a_fit_fails_are_named(heavy):
    weight = np.append(heavy, np.ones(79))
    with pytest.raises(
        InvalidDataError, match=rf"sample_weight has weights that differ by a factor of {heavy:.0e}".replace("+", r"\+")
    ):
        PrincipalCurve().fit(X, sample_weight=weight.copy())
    with pytest.raises(InvalidDataError) as other:  # what has nothing to do with weights says nothing of them
        PrincipalCurve().fit(X * np.nan, sample_weight=np.ones(80))
    assert "sample_weight" not in str(other.value)


def test_weights_keep_their_shares_and_zeros():
    within = np.array([0.0, 3e-9, 1.0])
    assert weights_within_reach(within) is within
    assert_allclose(weights_within_reach(1e200 * within) / 1e50, within, rtol=1e-12)
    lightest = weights_within_reach(np.array([0.0, 5e-324, 2.0]))
    assert lightest[0] == 0 < np.square(lightest[1])
    assert lightest[1] + lightest[2] == 2


# ------------------------------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    "model",
    [
        GTMSequence(initial=np.array([1, 2])),
        KMM(annealing=1e155),
        KMM(annealing=10**30),
        DensityRidge(mask={"a": 1}),
        OrientedPointsCurve(bandwidth=10**400),
    ],
    ids=lambda model: type(model).__name__,
)
def test_absurd_settings_are_refused(model):
    with pytest.raises(InvalidParameterError, match="must be"):
        model.fit(X)


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e155, 1.7e308])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((OrientedPointsCurve, "bandwidth"), (OrientedPointsCurve, "step"), (PolygonalCurve, "penalty")),
        pytest.param(SOM, "width", marks=pytest.mark.full),
    ],
)
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_at_the_ends_of_their_range_give_a_finite_model_or_a_name(kind, name, value):
    try:
        model = kind(**{name: value}, max_iter=2).fit(X)
    except PrinfoldError:
        return
    assert np.isfinite(model.project(X)).all()


@pytest.mark.parametrize("grid", [X, 1, "width", [], [1]], ids=["table", "number", "name", "empty", "list"])
def test_a_grid_that_is_none_is_refused(grid):
    with pytest.raises(InvalidParameterError, match="the table comes first, as in choose"):
        choose(X, grid)
