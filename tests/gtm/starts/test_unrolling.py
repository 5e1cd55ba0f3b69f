"""Starts of open maps: what is rolled up is unrolled, what is straight stays as it is, and warnings follow a retry."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_s_curve, make_swiss_roll

from prinfold import GTM, PPS, GTMMixture, MixedGTM, datasets
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import FoldWarning, MultimodalWarning, PrinfoldWarning
from prinfold.gtm import fitting
from prinfold.gtm.fitting import assemble
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.starts import first_parameters as starts
from prinfold.gtm.starts import unrolling
from prinfold.gtm.starts.trials import Trial, finish_trials, first_half, rank_trials, refine_axes, second_half
from prinfold.gtm.warnings import TIE_NATS
from prinfold.latent import Sphere, circle, grid, hexagons, line
from prinfold.rows.rows import Rows, as_rows


def helix(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1, n)
    X = np.stack([np.cos(6 * np.pi * t), np.sin(6 * np.pi * t), 2 * t], axis=1)
    return X + noise * rng.standard_normal(X.shape), t


def swiss_roll(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_swiss_roll(n, noise=noise, random_state=seed)


def s_curve(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_s_curve(n, noise=noise, random_state=seed)


def along(model: object, X: np.ndarray, t: np.ndarray) -> float:
    """Largest correlation of a map axis with the true coordinate."""
    return max(abs(np.corrcoef(z, t)[0, 1]) for z in model.transform(X).T)


def objective(model: object) -> float:
    return float(model.history_["objective"][-1])


# ------------------------------------------------------------------------------------------ what is found


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("make", [swiss_roll, s_curve])
def test_rolls_and_folds_are_laid_out_flat_without_a_warning(make, noise) -> None:
    X, t = make(1000, noise, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrinfoldWarning)
        model = GTM().fit(X)
    assert along(model, X, t) > 0.98
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)
        assert along(GTM(init="pca").fit(X), X, t) < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("make", [swiss_roll, s_curve])
def test_the_promise_for_1500_rows(make, noise, seed) -> None:
    X, t = make(1500, noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrinfoldWarning)
        assert along(GTM().fit(X), X, t) >= 0.99


@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_coils_are_followed_through_noise(noise) -> None:
    X, t = helix(400, noise, 0)
    assert along(GTM(1).fit(X), X, t) > 0.99


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize(
    ("X", "Q"),
    [
        (swiss_roll(300, 0.5, 0)[0], 2),
        (s_curve(250, 0.1, 1)[0], 2),
        (helix(200, 0.1, 2)[0], 1),
        (datasets.make_pipe_flow(200, rng=0).X, 2),
        (np.random.default_rng(0).standard_normal((150, 4)), 1),
    ],
    ids=["roll", "fold", "coil", "pipe", "ball"],
)
def test_auto_never_ends_below_the_plane_by_more_than_a_tie(X, Q) -> None:
    settings = {"max_iter": 500, "random_state": 0}
    assert objective(GTM(Q, **settings).fit(X)) > objective(GTM(Q, init="pca", **settings).fit(X)) - TIE_NATS


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")
def test_what_is_straight_begins_in_the_plane() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2)) @ rng.standard_normal((2, 5)) + 0.05 * rng.standard_normal((300, 5))
    for Q in (1, 2):
        found, plane = (GTM(Q, init=init, max_iter=3, tol=0).fit(X) for init in ("auto", "pca"))
        assert_array_equal(found.weights_, plane.weights_)


@pytest.mark.parametrize("kind", [PPS, MixedGTM, GTM])
def test_every_member_of_the_family_unrolls(kind) -> None:
    X, t = s_curve(400, 0.02, 0)
    assert along(kind().fit(X), X, t) > 0.95


def test_maps_of_a_mixture_unroll() -> None:
    (one, t), (two, _) = helix(300, 0.03, 0), helix(200, 0.03, 1)
    model = GTMMixture(2, GTM(1), random_state=0).fit(np.vstack([one, two + 50.0]))
    first = int(np.argmin([np.abs(each.offset_ - one.mean(axis=0)).sum() for each in model.maps_]))
    assert along(model.maps_[first], one, t) > 0.99


# ------------------------------------------------------------------------------- what must not matter


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")
def test_the_choice_does_not_depend_on_the_order_of_rows_nor_on_chance() -> None:
    X, _ = s_curve(700, 0.05, 0)
    order = np.random.default_rng(0).permutation(len(X))
    first, turned, again = (GTM(max_iter=0, tol=0).fit(each) for each in (X, X[order], X))
    scale = np.abs(first.weights_).max()
    assert_allclose(turned.weights_, first.weights_, atol=1e-6 * scale)
    assert_array_equal(again.weights_, first.weights_)
    assert np.abs(first.weights_ - GTM(init="pca", max_iter=0, tol=0).fit(X).weights_).max() > 0.01 * scale


def test_weights_are_repeats() -> None:
    X, _ = s_curve(150, 0.02, 0)
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    weighted = GTM(nodes=10, basis=4, max_iter=0, tol=0).fit(X, sample_weight=weight)
    repeated = GTM(nodes=10, basis=4, max_iter=0, tol=0).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5 * np.abs(repeated.weights_).max())


# ------------------------------------------------------------------------------------ one more try


def contenders_of(X: np.ndarray, model: GTM) -> list[Parameters]:
    job = assemble(model._recipe(), X)
    return starts.ranked_starts(job.model, job.rows)


def test_another_start_is_tried_before_a_map_is_called_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    X, t = s_curve(600, 0.05, 0)
    plane = GTM(init="pca")
    with pytest.warns((FoldWarning, MultimodalWarning)):
        plane.fit(X)
    right = contenders_of(X, GTM())[0]
    job = assemble(GTM()._recipe(), X)
    wrong = starts.pca_start(job.model, job.rows, np.random.default_rng(0))
    monkeypatch.setattr(starts, "ranked_starts", lambda *_: [wrong, right])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrinfoldWarning)
        model = GTM().fit(X)
    assert along(model, X, t) > 0.98
    assert model.history_["objective"][-1] > plane.history_["objective"][-1] - TIE_NATS


def test_a_sound_map_is_not_trained_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = s_curve(400, 0.02, 0)
    begun, train = [], fitting.train_map

    def counted(*given, **options):
        begun.append(given)
        return train(*given, **options)

    monkeypatch.setattr(fitting, "train_map", counted)
    GTM().fit(X)
    assert len(begun) == 1


def test_where_no_start_helps_the_warning_is_given_and_the_better_map_kept(monkeypatch) -> None:
    X, _ = s_curve(600, 0.05, 0)
    job = assemble(GTM()._recipe(), X)
    wrong = starts.pca_start(job.model, job.rows, np.random.default_rng(0))
    monkeypatch.setattr(starts, "ranked_starts", lambda *_: [wrong, wrong])
    with pytest.warns((FoldWarning, MultimodalWarning)):
        found = GTM().fit(X)
    with pytest.warns((FoldWarning, MultimodalWarning)):
        plane = GTM(init="pca").fit(X)
    assert objective(found) >= objective(plane)


# ------------------------------------------------------------------------------------------ the trials


def whole_trial(model: GTMModel, rows: Rows, start: Parameters) -> Trial:
    return second_half(first_half(model, rows, start))


def test_a_start_is_not_trained_on_cells_that_were_filled_in() -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 120)
    X = np.stack([u, np.sin(3 * u)], axis=1) + 0.1 * rng.standard_normal((120, 2))
    X[::5, 1] = np.nan
    plane, found = (GTM(1, nodes=15, basis=6, max_iter=500, init=init).fit(X) for init in ("pca", "auto"))
    assert found.score(X) >= plane.score(X) - 1e-6  # 0.4 nats less of a start that was


@pytest.mark.parametrize("failing", [{1}, {0, 1}])
def test_a_start_whose_trial_ends_in_no_number_is_left_out_and_the_plane_is_always_there(
    failing: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = s_curve(400, 0.02, 0)
    job = assemble(GTM()._recipe(), X)
    plane = starts.pca_start(job.model, job.rows, np.random.default_rng(0))
    begun = iter(range(10))

    def tried(*given):
        trial = first_half(*given)
        return SimpleNamespace(objective=np.nan) if next(begun) in failing else trial

    monkeypatch.setattr(starts, "first_half", tried)
    (found,) = starts.ranked_starts(job.model, job.rows)
    assert next(begun) == 2  # both had their trial
    trained = whole_trial(job.model, as_rows(X, job.rows.offset), plane).state.parameters
    assert_allclose(found.weights, plane.weights if 0 in failing else trained.weights, rtol=1e-6, atol=1e-8)


def test_a_lattice_is_doubled_where_its_nodes_lie_more_than_two_deviations_apart() -> None:
    surface = BasisMap(latent := grid(5, 5), GaussianBasis(3).bind(latent))
    sheet = latent.nodes * [4.0, 1.0] @ np.eye(2, 3)  # neighbours are 2 and 0.5 apart
    weights = surface.regress(surface.node_features, sheet, 1e-9)
    for deviation, shape in ((1.1, (5, 5)), (0.9, (9, 5)), (0.2, (9, 9))):
        finer = refine_axes(surface, Parameters(weights, deviation**-2))
        assert finer.latent.shape == shape
        assert finer.basis is surface.basis
    old = finer.nodes(weights).reshape(9, 9, 3)[::2, ::2].reshape(-1, 3)
    assert_allclose(old, surface.nodes(weights), atol=1e-12)
    for other in (Sphere(40), hexagons(5, 5)):
        given = BasisMap(other, GaussianBasis(4).bind(other))
        assert refine_axes(given, Parameters(np.ones((len(given.penalty_mask), 3)), 1e9)) is given


def test_a_circle_is_doubled_all_the_way_round() -> None:
    surface = BasisMap(latent := circle(8), GaussianBasis(4).bind(latent))
    weights = surface.regress(surface.node_features, latent.embed(latent.nodes), 1e-9)
    assert refine_axes(surface, Parameters(weights, 1e4)).latent.shape == (16,)


def test_training_in_a_trial_raises_the_objective_and_close_trials_are_told_apart_by_trouble() -> None:
    X, _ = s_curve(400, 0.02, 0)
    job = assemble(GTM()._recipe(), X)
    rows = as_rows(X, job.rows.offset)
    plane = whole_trial(job.model, rows, starts.pca_start(job.model, rows, np.random.default_rng(0)))
    before = job.model.measure(job.model.begin(rows, plane.start))["objective"]
    assert plane.objective > before
    other = whole_trial(job.model, rows, starts._unroll(job.model, rows, 600).parameters)
    assert rank_trials([plane, other])[0] is other
    assert rank_trials([plane, plane]) == [plane]


def test_what_is_far_behind_half_way_goes_no_further_and_where_all_are_in_trouble_one_is_enough() -> None:
    X, _ = helix(300, 0.03, 0)
    job = assemble(GTM(1)._recipe(), X)
    rows = as_rows(X, job.rows.offset)
    plane = first_half(job.model, rows, starts.pca_start(job.model, rows, np.random.default_rng(0)))
    unrolled = first_half(job.model, rows, starts._unroll(job.model, rows, 600).parameters)
    assert unrolled.objective > plane.objective + 0.5
    (left,) = finish_trials([plane, unrolled])
    assert left.start is unrolled.start
    noisy, _ = s_curve(400, 0.05, 0)
    job = assemble(GTM()._recipe(), noisy)
    rows = as_rows(noisy, job.rows.offset)
    folded = first_half(job.model, rows, starts.pca_start(job.model, rows, np.random.default_rng(0)))
    assert folded.troubled
    assert len(finish_trials([folded, folded])) == 1


# --------------------------------------------------------------------------------------- the placements


def test_distances_of_flat_rows_give_back_the_rows() -> None:
    X = np.random.default_rng(0).standard_normal((80, 3)) * [3.0, 2.0, 1.0]
    marks = np.arange(0, 80, 4)
    found = unrolling.scaled_distances(cdist(X[marks], X), marks, 3)
    assert_allclose(pdist(found), pdist(X), rtol=1e-6)


@pytest.mark.parametrize("n_columns", [3, 40])
def test_neighbours_are_the_nearest_others(n_columns) -> None:
    X = np.random.default_rng(0).standard_normal((60, n_columns))
    near, far = unrolling.neighbors(X, 5)
    distance = cdist(X, X) + np.diag(np.full(60, np.inf))
    assert_array_equal(near, np.argsort(distance, axis=1)[:, :5])
    assert_allclose(far, np.sort(distance, axis=1)[:, :5], rtol=1e-6)


def test_islands_are_joined_by_the_shortest_links() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (60, 2)) + np.repeat([[0.0, 0.0], [10.0, 0.0], [10.0, 20.0]], 20, axis=0)
    tree = unrolling.shortest_tree(X, unrolling._link_lengths(*unrolling.neighbors(X, 3))).tocoo()
    island = np.arange(60) // 20
    links = {(a, b): w for a, b, w in zip(island[tree.row], island[tree.col], tree.data, strict=True) if a != b}
    assert {tuple(sorted(pair)) for pair in links} == {(0, 1), (1, 2)}
    assert min(links.values()) == pytest.approx(cdist(X[:20], X[20:40]).min())
    assert max(links.values()) == pytest.approx(cdist(X[20:40], X[40:]).min())


def test_rows_of_a_flat_stay_where_they_are_and_noise_is_taken_off_a_bend() -> None:
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, (100, 2)) @ rng.standard_normal((2, 4))
    assert_allclose(unrolling.on_local_planes(flat, 2), flat, atol=1e-9)
    angle = rng.uniform(0, np.pi, 400)
    noisy = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.05 * rng.standard_normal((400, 2))
    moved = unrolling.on_local_planes(noisy, 1)
    off = [np.abs(np.linalg.norm(each, axis=1) - 1).mean() for each in (noisy, moved)]
    assert off[1] < 0.6 * off[0]


def test_wide_rows_keep_their_distances_in_few_columns() -> None:
    X = np.random.default_rng(0).standard_normal((20, 300)) + 1e3
    found = unrolling.in_few_columns(X)
    assert found.shape == (20, 20)
    assert_allclose(pdist(found), pdist(X), rtol=1e-8)


def test_a_surface_that_fills_the_space_of_its_rows_has_nothing_to_unroll() -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    job = assemble(GTM()._recipe(), X)
    assert starts._unroll(job.model, job.rows, 600) is None
    few = np.repeat(np.arange(3.0), 10)[:, None] * [[1.0, 2.0, 0.5]]
    job = assemble(GTM(nodes=line(5))._recipe(), few)
    assert starts._unroll(job.model, job.rows, 600) is None


@pytest.mark.parametrize("times", [2, 4])
def test_more_nodes_along_one_axis_do_not_make_posteriors_far_from_their_modes(times: int) -> None:
    assert grid(15 * times, 15).widest_spacing == grid(15, 15).widest_spacing == grid(15, 15).spacing
    assert grid(15, 15).widest_spacing > grid(15 * times, 15).spacing
    assert Sphere(60).widest_spacing == Sphere(60).spacing  # no axes to differ


def test_neighbors_along_planes_agree_with_their_slow_twin() -> None:
    X = datasets.make_swiss_roll(80, 0.3, rng=0).X
    found, far = unrolling.neighbors_along(X, 5, 2)
    near = [np.argsort(cdist(X[i : i + 1], X)[0], kind="stable")[1:21] for i in range(80)]
    for _ in range(2):
        planes = [np.linalg.svd(X[[i, *near[i][:10]]] - X[[i, *near[i][:10]]].mean(axis=0))[2][2] for i in range(80)]
        ranked = []
        for i in range(80):
            link = X[near[i]] - X[i]
            across = np.maximum(
                (link @ planes[i]) ** 2, [(u @ planes[j]) ** 2 for u, j in zip(link, near[i], strict=True)]
            )
            length = np.sqrt(np.square(link).sum(axis=1) + across)
            ranked.append((near[i][np.argsort(length)], np.sort(length)))
        near = [each for each, _ in ranked]
    assert_array_equal(found, [each[:5] for each in near])
    assert_allclose(far, [length[:5] for _, length in ranked], rtol=1e-9)


def test_neighbors_along_the_planes_of_flat_rows_are_the_nearest() -> None:
    flat = np.random.default_rng(0).uniform(-1, 1, (60, 2)) @ np.random.default_rng(1).standard_normal((2, 4))
    near, far = unrolling.neighbors(flat, 4)
    along = unrolling.neighbors_along(flat, 4, 2)
    assert_array_equal(along[0], near)
    assert_allclose(along[1], far, rtol=1e-9)
