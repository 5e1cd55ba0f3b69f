"""Where latent points begin: embeddings, their scales, and the choice among them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from tests.properties.cases import random_rotation

from prinfold import datasets
from prinfold.base import starting_points as initialise
from prinfold.density.class_densities import LeaveOneOut
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import _decode, _encode, _Source
from prinfold.kernel_manifolds import starts as candidates
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.start_scales import NeighborFloor
from prinfold.kernel_manifolds.starts import STARTS, Candidates, choose_start, normalize
from prinfold.numerics.radial_kernels import PROFILES

GAUSSIAN, QUARTIC = PROFILES["gaussian"], PROFILES["quartic"]
profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


def error_of(X, weight=None, profile=GAUSSIAN):
    """Leave-one-out error of kernel regression on latent points."""
    weight = np.ones(len(X)) if weight is None else weight
    objective = KernelRegression(make_target(X - np.average(X, axis=0, weights=weight)), weight, profile)
    return lambda Z: objective.value(Z).value


def start_of(X, n_components=1, weight=None, profile=GAUSSIAN, **settings):
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return choose_start(X, weight, n_components, error_of(X, weight, profile), profile, **settings)


def sheet(n=80, seed=0):
    """Rows near a plane in four columns."""
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(n, 2)) * [2.0, 1.0]
    return flat @ rng.normal(size=(2, 4)) + 0.05 * rng.normal(size=(n, 4))


def lowest(table, *names):
    return min(error for name, error in zip(table.names, table.errors, strict=True) if name in names)


# ----------------------------------------------------------------------------------------------- the choice


@profiles
@pytest.mark.parametrize("make", [datasets.make_half_circle, datasets.make_spiral])
def test_bent_curves_are_unrolled_better_than_by_pca(make, profile):
    table = start_of(make(200, rng=0).X, profile=profile, starts=("pca", "isomap", "lle"), sizes=(6, 10)).candidates
    assert lowest(table, "isomap", "lle") < 0.7 * lowest(table, "pca")
    assert table.names[table.chosen] != "pca"


def test_a_rolled_sheet_is_unrolled_better_than_by_pca():
    roll = datasets.make_swiss_roll(250, rng=0).X
    table = start_of(roll, 2, starts=("pca", "isomap", "laplacian"), sizes=(8,)).candidates
    assert lowest(table, "isomap", "laplacian") < 0.8 * lowest(table, "pca")
    assert table.names[table.chosen] != "pca"


def test_a_straight_line_is_left_to_pca_or_a_tie():
    t = np.random.default_rng(0).uniform(-1, 1, 100)
    table = start_of(np.outer(t, [1.0, 2.0, -1.0]), starts=STARTS, sizes=(6, 10)).candidates
    assert lowest(table, "pca") <= 1.02 * table.errors.min()


def test_the_lowest_error_is_chosen_and_of_equals_the_first():
    def table(errors):
        n = len(errors)
        return Candidates(tuple("abc"[:n]), np.zeros(n, dtype=int), np.ones((n, 1)), np.ones(n), np.array(errors))

    assert table([3.0, 1.0, 2.0]).chosen == 1
    assert table([1.0 + 1e-9, 1.0, 2.0]).chosen == 0
    assert table([1.001, 1.0, 1.0]).chosen == 1


@profiles
def test_the_errors_of_the_table_are_those_of_the_latents(profile):
    X = datasets.make_half_circle(90, rng=1).X
    start = start_of(X, profile=profile, starts=("pca", "isomap"), sizes=(8,))
    table = start.candidates
    assert_allclose(error_of(X, profile=profile)(start.latent), table.errors[table.chosen], rtol=1e-12)
    assert (table.errors <= table.start_errors).all()


def test_latents_are_unit_variance_coordinates_times_their_scales():
    start = start_of(sheet(), 2, starts=("pca",))
    assert_allclose(start.latent.std(axis=0), start.candidates.scales[0], rtol=1e-9)
    assert_allclose(start.latent.mean(axis=0), 0, atol=1e-9)
    assert_allclose(np.corrcoef(start.latent.T)[0, 1], 0, atol=1e-9)


def test_a_given_bandwidth_is_the_scale_and_nothing_is_searched():
    calls = []
    X = sheet()

    def error(Z):
        calls.append(Z)
        return error_of(X)(Z)

    start = choose_start(X, np.ones(len(X)), 2, error, GAUSSIAN, starts=("pca", "isomap"), sizes=(8,), bandwidth=0.25)
    assert len(calls) == 2
    assert_array_equal(start.candidates.scales, 4.0)
    assert_array_equal(start.candidates.errors, start.candidates.start_errors)


def test_given_coordinates_are_a_candidate():
    """The true positions along a spiral, in any units, beat what PCA finds."""
    spiral = datasets.make_spiral(120, rng=0)
    start = start_of(spiral.X, starts=("pca",), given=7.0 + 1e3 * spiral.latent)
    assert start.candidates.names == ("given", "pca")
    assert start.candidates.chosen == 0
    assert abs(np.corrcoef(start.latent[:, 0], spiral.latent[:, 0])[0, 1]) == pytest.approx(1.0)


# --------------------------------------------------------------------------------------------- symmetries


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_order_of_rows_changes_nothing(n_components):
    X = datasets.make_half_circle(70, rng=0).X
    order = np.random.default_rng(1).permutation(len(X))
    plain, mixed = (start_of(rows, n_components, starts=STARTS, sizes=(6,)) for rows in (X, X[order]))
    assert_allclose(mixed.latent, plain.latent[order], rtol=1e-6, atol=1e-8)
    assert_allclose(mixed.candidates.errors, plain.candidates.errors, rtol=1e-6)


def test_repeats_are_weights():
    X = sheet(40)
    weight = np.arange(40) % 3 + 1
    repeated = np.repeat(X, weight, axis=0)
    weighted = start_of(X, 2, weight, starts=("pca", "isomap"), sizes=(8,))
    unique, index = np.unique(repeated, axis=0, return_inverse=True)
    mass = np.bincount(index.ravel()).astype(float)
    judge = error_of(unique, mass)  # leaves out all copies of a row

    def error(Z):
        return judge(Z[np.unique(index.ravel(), return_index=True)[1]])

    start = choose_start(repeated, np.ones(len(repeated)), 2, error, GAUSSIAN, starts=("pca", "isomap"), sizes=(8,))
    assert_allclose(start.latent, np.repeat(weighted.latent, weight, axis=0), rtol=1e-6, atol=1e-8)


def test_turning_moving_and_scaling_the_rows_changes_no_more_than_signs():
    X = sheet()
    moved = 3.0 * X @ random_rotation(4) + 10.0
    plain, turned = (start_of(rows, 2, starts=("pca", "isomap"), sizes=(8,)) for rows in (X, moved))
    assert_allclose(np.abs(turned.latent), np.abs(plain.latent), rtol=1e-5, atol=1e-6)
    assert_allclose(turned.candidates.errors, 9.0 * plain.candidates.errors, rtol=1e-6)


def test_normalised_axes_have_unit_variance_by_weight():
    rng = np.random.default_rng(0)
    Z, weight = rng.normal(size=(50, 3)) * [1.0, 1e-3, 0.0] + 5.0, rng.uniform(0.5, 2.0, 50)
    N = normalize(Z, weight)
    assert_allclose(np.average(N, axis=0, weights=weight), 0, atol=1e-12)
    assert_allclose(np.average(N**2, axis=0, weights=weight), [1, 1, 0])


# ------------------------------------------------------------------------------------------------ the floor


@profiles
def test_neither_stage_goes_below_the_number_of_neighbours(profile):
    """An error that wants ever larger scales is held where the median row has that many neighbours."""
    X = sheet(120)
    floor = NeighborFloor(minimum=8.0)
    start = choose_start(X, np.ones(120), 2, lambda Z: float(1 / np.ptp(Z)), profile, starts=("pca",), floor=floor)
    number = np.median(LeaveOneOut.of(start.latent, np.ones(120)).neighbors(1.0, profile))
    assert 8.0 <= number < 10.0


def test_the_floor_gives_way_where_rows_are_too_few():
    X = sheet(5)
    start = start_of(X, 1, starts=("pca",), floor=NeighborFloor(minimum=50.0))
    number = np.median(LeaveOneOut.of(start.latent, np.ones(5)).neighbors(1.0, GAUSSIAN))
    assert number >= 2.0
    assert np.isfinite(start.latent).all()


def test_without_a_floor_the_search_drifts_to_one_neighbour():
    """The trap that the floor is for."""
    X = sheet(60)
    start = choose_start(
        X, np.ones(60), 2, lambda Z: float(1 / np.ptp(Z)), GAUSSIAN, starts=("pca",), floor=NeighborFloor(0.0)
    )
    assert np.median(LeaveOneOut.of(start.latent, np.ones(60)).neighbors(1.0, GAUSSIAN)) < 1.5


# ------------------------------------------------------------------------------------------- degenerate rows


@profiles
@pytest.mark.parametrize(
    "X",
    [
        np.linspace(0, 1, 30)[:, None],
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 3.0]]),
        np.column_stack([np.arange(20.0), np.zeros(20)]),
        np.random.default_rng(0).normal(size=(6, 40)),
        np.vstack([np.random.default_rng(0).normal(size=(20, 3)) + 100 * k for k in range(3)]),
        np.array([[i, j] for i in range(6) for j in range(6)], dtype=float),
        np.vstack([np.random.default_rng(1).normal(size=(30, 2)), [[1e6, 0.0]]]),
    ],
    ids=["one column", "two rows", "three rows", "flat", "more columns than rows", "islands", "lattice", "far row"],
)
def test_odd_rows_have_a_start(X, profile):
    start = start_of(X, 2, profile=profile, starts=STARTS, sizes=(4, 50))
    assert start.latent.shape == (len(X), 2)
    assert np.isfinite(start.latent).all()
    assert "pca" in start.candidates.names
    assert np.isfinite(start.candidates.errors).all()


def test_one_row_and_equal_rows_stay_at_the_origin():
    for X in (np.ones((1, 3)), np.ones((5, 3))):
        start = choose_start(X, np.ones(len(X)), 2, lambda Z: 0.0, GAUSSIAN, starts=STARTS)
        assert_array_equal(start.latent, 0.0)
        assert start.candidates.names == ("pca",)
        assert "different rows are needed, got 1" in start.candidates.failures[0]


def test_axes_that_the_rows_do_not_have_stay_nil():
    start = start_of(np.linspace(0, 1, 25)[:, None] ** 2, 3, starts=("pca", "lle"), sizes=(4,))
    assert_array_equal(start.latent[:, 1:], 0.0)
    assert_array_equal(start.candidates.scales[:, 1:], 0.0)


def test_a_failing_embedding_is_recorded_and_not_fatal(monkeypatch):
    def fail(self, X, n_components, n_neighbors):
        raise ValueError("the eigenvalues did not come")

    monkeypatch.setattr(initialise.RegularizedLLE, "embed", fail)
    start = start_of(sheet(30), 2, starts=("pca", "lle"), sizes=(10, 12))
    assert start.candidates.names == ("pca",)
    assert start.candidates.failures == tuple(
        f"lle ({k} neighbours) failed: the eigenvalues did not come" for k in (10, 12)
    )
    assert "did not come" in str(start.candidates)
    with pytest.raises(InvalidDataError, match=r"no embedding could start the latent points: .* did not come"):
        start_of(sheet(30), 2, starts=("lle",))


def test_coordinates_and_errors_that_are_no_numbers_are_failures(monkeypatch):
    monkeypatch.setattr(
        initialise.RegularizedLLE, "embed", lambda self, X, n_components, n_neighbors: X[:, :2] * np.nan
    )
    start = start_of(sheet(30), 2, starts=("pca", "lle"), sizes=(10,))
    assert start.candidates.failures == ("lle (10 neighbours) failed: its coordinates are not finite",)
    with pytest.raises(InvalidDataError, match="its error is nan"):
        choose_start(sheet(30), np.ones(30), 1, lambda Z: np.nan, GAUSSIAN, starts=("pca",))


def test_trials_whose_error_is_no_number_are_passed_over():
    X = sheet(40)
    judge = error_of(X)
    first = []

    def error(Z):
        first.append(np.ptp(Z))
        return judge(Z) if np.ptp(Z) <= first[0] else np.nan

    start = choose_start(X, np.ones(40), 2, error, GAUSSIAN, starts=("pca",))
    assert np.isfinite(start.candidates.errors).all()


def test_wrong_settings_are_named():
    with pytest.raises(InvalidParameterError, match=r"starts must be among pca, isomap, .*, got 'umap'"):
        start_of(sheet(10), starts=("pca", "umap"))
    with pytest.raises(InvalidDataError, match=r"a row for each of 10 rows, got shape \(9, 1\)"):
        start_of(sheet(10), given=np.zeros((9, 1)))


# ---------------------------------------------------------------------------------------------- many rows


def test_of_many_rows_some_are_embedded_and_the_others_follow(monkeypatch):
    monkeypatch.setattr(candidates, "_MOST_EMBEDDED_ROWS", 60)
    curve = datasets.make_half_circle(200, noise=0.01, rng=0)
    start = start_of(curve.X, starts=("pca", "isomap"), sizes=(6,))
    assert start.candidates.names[start.candidates.chosen] == "isomap"
    rank = np.argsort(np.argsort(start.latent[:, 0]))
    true = np.argsort(np.argsort(curve.latent[:, 0]))
    assert abs(np.corrcoef(rank, true)[0, 1]) > 0.999


def test_of_many_rows_some_are_compared_and_the_best_is_scaled_with_all(monkeypatch):
    """The table is that of the rows compared, as if there were no others; the latents are scaled as if all had been."""
    monkeypatch.setattr(candidates, "_MOST_COMPARED_ROWS", 60)
    X = np.repeat(datasets.make_half_circle(150, rng=0).X, 2, axis=0)
    different = np.unique(X, axis=0)
    asked = []

    def error_of_some(rows):
        asked.append(rows)
        return error_of(X[rows])

    settings = {"starts": ("pca", "isomap"), "sizes": (6,)}
    start = choose_start(X, np.ones(300), 1, error_of(X), GAUSSIAN, error_of=error_of_some, **settings)
    (rows,) = asked
    some = initialise.evenly_by_radius(different, np.full(150, 2.0), 60)
    assert_array_equal(np.unique(X[rows], axis=0), different[some])
    assert len(rows) == 120
    whole = choose_start(X, np.ones(300), 1, error_of(X), GAUSSIAN, **settings)
    assert_allclose(start.latent, whole.latent, rtol=1e-12)
    assert (start.candidates.errors != whole.candidates.errors).all()


# -------------------------------------------------------------------------------------------- likelihood


@profiles
def test_the_common_scale_has_the_largest_leave_one_out_likelihood(profile):
    """Against the definition, summed in a plain loop."""
    Z = normalize(np.random.default_rng(0).normal(size=(25, 2)), np.ones(25))

    def loss(log_scale):
        s = np.exp(log_scale)
        gap = ((Z[:, None] - Z[None]) ** 2).sum(axis=2) * s**2
        k = profile.value(gap) * (1 - np.eye(25))
        return -np.log(np.maximum(s**2 * k.sum(axis=1) / 24, s**2 * np.exp(-50) / 24)).sum()

    grid = np.linspace(-3, 3, 400)
    near = grid[np.argmin([loss(g) for g in grid])]
    expected = minimize_scalar(loss, bounds=(near - 0.1, near + 0.1), method="bounded").x
    found = []
    choose_start(
        Z, np.ones(25), 2, lambda X: found.append(X) or 1.0, profile, starts=(), given=Z, floor=NeighborFloor(0.0)
    )
    assert np.log(found[0].std(axis=0)) == pytest.approx([expected] * 2, abs=3e-3)


# ------------------------------------------------------------------------------------------ the table itself


def test_the_table_prints_itself_and_can_be_stored():
    table = start_of(datasets.make_half_circle(60, rng=0).X, starts=("pca", "isomap"), sizes=(6, 9)).candidates
    text = str(table)
    assert text.splitlines()[0].startswith("isomap (")
    assert len(text.splitlines()) == 5
    assert text.count("← chosen") == 1
    assert repr(table).startswith("Candidates(isomap (")
    arrays: dict[str, np.ndarray] = {}
    back = _decode(_encode(table, "table", arrays), _Source(arrays), "table")
    assert str(back) == text
    with pytest.raises(ValueError, match="do not fit together"):
        Candidates(("a",), np.zeros(2), np.zeros((2, 1)), np.zeros(2), np.zeros(2))


# ------------------------------------------------------------------------------------------------- curves that close


def test_a_closed_curve_is_cut_open_where_one_dimension_would_fold_it_flat():
    data = datasets.make_circle(150, noise=0.05, rng=0)
    start = start_of(data.X, starts=("isomap", "loop"))
    assert start.candidates.names[start.candidates.chosen] == "loop"
    flat = min(e for name, e in zip(start.candidates.names, start.candidates.errors, strict=True) if name == "isomap")
    assert start.candidates.errors.min() < 0.2 * flat
    # Walking along the latent axis goes once round the circle, in steps.
    turns = np.diff(np.unwrap(data.latent[np.argsort(start.latent[:, 0]), 0]))
    assert abs(abs(turns.sum()) - 2 * np.pi) < 0.5
    assert np.abs(turns).max() < 0.5


@pytest.mark.parametrize(("n_columns", "Q"), [(1, 1), (3, 2)])
def test_what_cannot_close_is_recorded(n_columns, Q):
    X = np.random.default_rng(0).normal(size=(30, n_columns))
    start = choose_start(X, np.ones(30), Q, lambda Z: 1.0, GAUSSIAN, starts=("pca", "loop"))
    assert start.candidates.names == ("pca",)
    assert "only a curve" in start.candidates.failures[0]


@pytest.mark.parametrize(
    ("robust", "profile", "held"), [(False, GAUSSIAN, False), (True, GAUSSIAN, True), (False, QUARTIC, True)]
)
def test_a_row_far_from_all_others_is_held_up_where_sums_are_robust_or_kernels_compact(robust, profile, held):
    X = np.array([[0.0], [0.1], [0.2], [1000.0]])
    rows = LeaveOneOut.of(X, np.ones(4), robust=robust)
    lowest = rows.log_density(1.0, profile)[rows.sampled.tolist().index(3)]
    assert bool(lowest > -60) is held
