"""Principal curves: against the truth of simulators, principal components and themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr

from prinfold import KernelSmoother, LocalLinear, PrincipalCurve, SmoothingSpline, cite, datasets, load
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, StructureWarning


def distances(model, data, n=800):
    """Root mean squared distance of the curve from the true one, and of the true one from the curve."""
    there = model.inverse_transform(np.linspace(0, model.length_, n)[:, None])
    U = np.linspace(data.latent.min(), data.latent.max(), n)[:, None]
    back = np.linalg.norm(data.surface.point(U) - model.project(data.surface.point(U)), axis=1)
    return np.sqrt(np.mean(data.surface.distance(there) ** 2)), np.sqrt(np.mean(back**2))


@pytest.fixture(scope="module")
def spiral():
    data = datasets.make_spiral(1000, noise=0.05, rng=0)
    return data, PrincipalCurve().fit(data.X)


def test_a_spiral_is_followed_through_all_its_turns(spiral):
    data, model = spiral
    assert max(distances(model, data)) < 0.02
    along = spearmanr(model.transform(data.X)[:, 0], data.latent[:, 0]).statistic
    assert abs(along) > 0.995
    assert_allclose(model.length_, 9.0, rtol=0.03)
    assert model.converged_


@pytest.mark.parametrize("smoother", ["local_linear", "kernel"])
def test_other_smoothers_follow_it_too(spiral, smoother):
    data, _ = spiral
    assert max(distances(PrincipalCurve(smoother, init="tree").fit(data.X[::2]), data)) < 0.03


def test_along_the_principal_component_it_takes_short_cuts(spiral):
    """Which is why starts are compared."""
    data, model = spiral
    with pytest.warns(StructureWarning):
        line = PrincipalCurve(init="pca").fit(data.X)
    assert max(distances(line, data)) > 0.1
    assert line.history_["score"][-1] > model.history_["score"][-1]
    assert model.start_.startswith("tree")


def test_a_ridge_is_a_start_too(spiral):
    data, _ = spiral
    model = PrincipalCurve(init="ridge").fit(data.X[::3])
    assert model.start_ == "ridge"
    assert max(distances(model, data)) < 0.03
    with pytest.raises(InvalidDataError, match="a start from the ridge needs two columns"):
        PrincipalCurve(init="ridge").fit(data.X[:20, :1])


def test_arc_length_is_the_same_for_new_rows(spiral):
    _, model = spiral
    z = np.linspace(0, model.length_, 60)[:, None]
    assert_allclose(model.transform(model.inverse_transform(z)), z, atol=1e-6)
    fine = model.inverse_transform(np.linspace(0, model.length_, 4001)[:, None])
    assert_allclose(np.linalg.norm(np.diff(fine, axis=0), axis=1).sum(), model.length_, rtol=1e-4)


def test_a_stiff_curve_is_the_principal_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [5.0, 1.0, 0.5, 0.2] + 1e3
    axis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    model = PrincipalCurve(SmoothingSpline(penalty=1e4), tol=0, max_iter=80).fit(X)
    found = model.vertices_ - X.mean(axis=0)
    assert_allclose(found, np.outer(found @ axis, axis), atol=1e-3)
    assert_allclose(model.length_, np.ptp(X @ axis), rtol=1e-3)


def test_a_closed_curve_goes_round():
    data = datasets.make_circle(150, noise=0.05, rng=1)
    model = PrincipalCurve(closed=True).fit(data.X)
    assert model.closed_
    assert max(distances(model, data)) < 0.02
    assert_allclose(model.length_, 2 * np.pi, rtol=0.02)
    seam = np.array([[0.0], [model.length_]])
    assert_allclose(np.diff(model.inverse_transform(seam), axis=0), 0.0, atol=1e-12)
    turn = np.angle(np.exp(1j * (2 * np.pi * model.transform(data.X)[:, 0] / model.length_ + data.latent[:, 0])))
    other = np.angle(np.exp(1j * (2 * np.pi * model.transform(data.X)[:, 0] / model.length_ - data.latent[:, 0])))
    spread = [1 - abs(np.exp(1j * each).mean()) for each in (turn, other)]
    assert min(spread) < 0.01  # the angle, from another beginning and maybe the other way


@pytest.mark.parametrize(
    ("make", "closed"),
    [(datasets.make_circle, True), (datasets.make_half_circle, False), (datasets.make_zigzag, False)],
)
def test_rows_tell_whether_a_curve_closes(make, closed):
    assert PrincipalCurve(closed="auto").fit(make(150, noise=0.05, rng=0).X).closed_ == closed


def test_a_curve_does_not_take_its_bias_for_noise():
    """It would flatten, be farther from rows, call that noise, and flatten further, to a point in the end."""
    data = datasets.make_circle(300, noise=0.3, rng=0)
    assert max(distances(PrincipalCurve(closed=True).fit(data.X), data)) < 0.15


def test_neither_empty_columns_nor_the_unit_of_weights_change_anything():
    X = datasets.make_half_circle(120, rng=0).X
    plain = PrincipalCurve().fit(X)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0]
    wide = PrincipalCurve().fit(np.hstack([X, np.zeros((120, 7))]) @ turn)
    assert_allclose([wide.length_, wide.df_], [plain.length_, plain.df_], rtol=1e-6)
    light = PrincipalCurve().fit(X, sample_weight=np.full(120, 1e-3))
    assert_allclose(light.project(X), plain.project(X), atol=1e-8)


def test_a_given_curve_is_where_it_begins(spiral):
    data, _ = spiral
    truth = data.surface.point(np.linspace(0, 4 * np.pi, 60)[:, None])
    model = PrincipalCurve(init=truth).fit(data.X)
    assert model.start_ == "given"
    assert max(distances(model, data)) < 0.02
    assert_allclose(PrincipalCurve(init=truth, max_iter=0, tol=0).fit(data.X).projection_error(truth), 0.0, atol=1e-6)


def test_a_correction_mends_what_a_stiff_smoother_flattens():
    data = datasets.make_half_circle(300, noise=0.05, rng=0)
    stiff = SmoothingSpline(df=3.5)
    plain, mended = (PrincipalCurve(stiff, bias_correction=on).fit(data.X) for on in (False, True))
    assert max(distances(plain, data)) > 0.03
    assert max(distances(mended, data)) < 0.5 * max(distances(plain, data))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    "smoother",
    [
        KernelSmoother(5e-324),
        KernelSmoother(1e-300),
        SmoothingSpline(1e14),
        SmoothingSpline(1.7e308),
        LocalLinear(1e-300),
    ],
    ids=repr,
)
def test_absurd_widths_and_penalties_have_an_answer(smoother, closed):
    """Vertices that are no numbers once led compiled code out of its arrays, and the process died."""
    t = np.sort(np.random.default_rng(0).uniform(0, 3, 80))
    X = np.stack([np.cos(t), np.sin(t), t], axis=1) + 0.05 * np.random.default_rng(1).normal(size=(80, 3))
    model = PrincipalCurve(smoother, closed=closed, max_iter=5).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.vertices_).all()


def test_degenerate_tables_have_an_answer():
    with pytest.warns(DegenerateWarning, match="no length"):
        dot = PrincipalCurve().fit(np.ones((4, 3)))
    assert_allclose(dot.project(np.zeros((2, 3))), 1.0)
    column = PrincipalCurve().fit(np.array([[0.0], [3.0], [1.0]]))
    assert_allclose(sorted(column.transform([[0.0], [3.0], [1.5]])[:, 0]), [0.0, 1.5, 3.0], atol=1e-9)
    two = PrincipalCurve(closed="auto").fit(np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert_allclose(two.length_, np.sqrt(2), rtol=1e-6)
    flat = PrincipalCurve(closed=True, max_iter=5, tol=0).fit(np.outer(np.arange(12.0), [1.0, 2.0, 0.0]))
    assert np.isfinite(flat.vertices_).all()  # a ring on a line may shrink to a dot, and no further
    far = datasets.make_half_circle(80, noise=0.05, rng=0).X
    shifted = PrincipalCurve().fit(far + 1e6)
    assert_allclose(shifted.project(far + 1e6) - 1e6, PrincipalCurve().fit(far).project(far), atol=1e-5)
    outlier = np.vstack([far, [[40.0, 40.0]]])
    words = "The curve runs where there are no rows from .*, 9[0-9] % of its length"
    with pytest.warns(DegenerateWarning, match="Row 80 makes up"), pytest.warns(StructureWarning, match=words):
        assert np.isfinite(PrincipalCurve().fit(outlier).transform(outlier)).all()


def test_what_cannot_be_is_refused():
    X = datasets.make_circle(30, rng=0).X
    with pytest.raises(InvalidDataError, match="a closed curve needs two columns"):
        PrincipalCurve(closed=True).fit(X[:, :1])
    with pytest.raises(InvalidDataError, match="is for closed curves"):
        PrincipalCurve(init="circle").fit(X)
    with pytest.raises(InvalidDataError, match="at least two finite vertices"):
        PrincipalCurve(init=np.zeros((3, 3))).fit(X)
    with pytest.raises(InvalidParameterError, match="smoother"):
        PrincipalCurve(smoother="loess").fit(X)


def test_smoothers_survive_files(tmp_path):
    X = datasets.make_half_circle(60, rng=0).X
    for smoother in (SmoothingSpline(df=5), LocalLinear(0.4, widest=0.6), KernelSmoother(0.1)):
        PrincipalCurve(smoother, max_iter=3, tol=0).fit(X).save(tmp_path / "curve.prinfold")
        assert load(tmp_path / "curve.prinfold").smoother == smoother


def test_what_to_cite():
    X = datasets.make_half_circle(60, rng=0).X
    assert "Hastie" in str(cite(PrincipalCurve(max_iter=2)))
    assert "Banfield" in str(PrincipalCurve(bias_correction=True, max_iter=2, tol=0).fit(X).cite())


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_the_data_changes_nothing(scale):
    X = datasets.make_half_circle(80, noise=0.05, rng=0).X
    plain, other = (PrincipalCurve(max_iter=2, tol=0).fit(unit * X) for unit in (1.0, scale))
    assert other.start_ == plain.start_
    assert_allclose([other.length_ / scale, other.df_], [plain.length_, plain.df_], rtol=1e-6)


def test_vertices_without_length_are_refused():
    with pytest.raises(InvalidDataError, match="3 vertices that are all equal"):
        PrincipalCurve(init=np.zeros((3, 2))).fit(datasets.make_circle(30, rng=0).X)


@pytest.mark.parametrize("n", [3, 4, 6])
def test_so_few_rows_are_not_closed_into_a_point(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    assert not PrincipalCurve(closed="auto", max_iter=5, tol=0).fit(X).closed_


def test_a_closed_curve_that_collapses_says_so():
    X = datasets.make_circle(60, rng=0).X
    with pytest.warns(DegenerateWarning, match="The curve has collapsed to a point: .* Set closed=False"):
        PrincipalCurve(SmoothingSpline(penalty=1.0), closed=True, max_iter=5, tol=0).fit(X)


@pytest.mark.parametrize("kind", ["normal", "isotropic"])
def test_a_ring_is_found_in_noise_of_two_fifths_of_its_radius(kind):
    data = datasets.make_circle(300, noise=0.4, noise_kind=kind, rng=0)
    assert max(distances(PrincipalCurve(closed=True).fit(data.X), data)) < 0.13


def test_a_ring_that_shrinks_does_not_shrink_to_a_point():
    """It would be smoothed by an ever larger share of its length."""
    assert PrincipalCurve(closed=True).fit(datasets.make_circle(300, noise=0.5, rng=0).X).length_ > 4.0


def test_a_spiral_in_wide_noise_is_followed():
    """By their score alone starts that cut across the turns, or wind through the noise, would be taken."""
    for seed in range(3):
        data = datasets.make_spiral(300, noise=0.08, rng=seed)
        assert max(distances(PrincipalCurve().fit(data.X), data)) < 0.1


def test_one_direction_of_wide_noise_among_many_narrow_ones_is_not_filled():
    """Rows that a curve winds through leave noise in many directions, and narrow: no scale for bends."""
    rng = np.random.default_rng(0)
    data = datasets.make_half_circle(300, noise=0.1, noise_kind="isotropic", rng=0)
    wide = np.hstack([data.X, 0.02 * rng.normal(size=(300, 18))])
    assert PrincipalCurve().fit(wide).length_ < 4.0


def test_a_curve_in_many_noisy_columns_does_not_wind_through_them():
    """In many directions there is always one in which a curve can lean towards a row."""
    rng = np.random.default_rng(0)
    t = rng.uniform(size=400)
    X = np.zeros((400, 50))
    X[:, :2] = np.column_stack([4 * t, np.sin(2 * np.pi * t)])
    length = PrincipalCurve().fit(X + 0.3 * rng.normal(size=X.shape)).length_
    assert 4.2 < length < 9.0  # the sine has 5.8, and noise reaches beyond its ends; wound through it, 46


@pytest.mark.parametrize("gap", [0, 14])
def test_a_gap_that_is_no_chance_leaves_a_ring_open(gap):
    rng = np.random.default_rng(0)
    angle = np.radians(rng.uniform(gap, 360, size=1000))
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.02 * rng.normal(size=(1000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)  # its ends are near each other
        assert PrincipalCurve(closed="auto", max_iter=0, tol=0).fit(X).closed_ == (gap == 0)
