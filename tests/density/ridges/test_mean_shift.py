"""The way to a ridge: where it ends, what it is called, and that every row goes it alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prinfold import datasets
from prinfold.density.densities import Derivatives, KernelDensity
from prinfold.density.ridges.mean_shift import (
    STARTS,
    Flow,
    FlowResult,
    RidgeWalk,
    Status,
    density_floor,
    mesh_starts,
    select_ridge_rows,
)
from prinfold.density.ridges.normals import NORMALS, Hessian, InverseCovariance, NeighborCovariance
from prinfold.exceptions import InvalidParameterError

H = 0.12


def spiral(n: int = 200) -> tuple[np.ndarray, KernelDensity]:
    X = datasets.make_spiral(n, noise=0.04, rng=0).X
    return X, KernelDensity(X, np.ones(n), H)


def scms_reference(rows: np.ndarray, h: float, x: np.ndarray, d: int, tol: float) -> np.ndarray:
    """The published algorithm for one row, from its sums: no log densities, no Newton steps."""
    for _ in range(2000):
        k = np.exp(-0.5 * np.square((x - rows) / h).sum(axis=1))
        p, delta = k.sum(), x - rows
        m = (k[:, None] * rows).sum(axis=0) / p - x
        g = p * m / h**2
        H = (np.einsum("n,ni,nj->ij", k, delta, delta) / h**2 - p * np.eye(len(x))) / h**2
        inverse = -H / p + np.outer(g, g) / p**2
        across = np.linalg.eigh(inverse)[1][:, d:]
        step = across @ (across.T @ m)
        if np.linalg.norm(step) < tol * h:
            return x
        x = x + step
    raise AssertionError("not converged")


class Quadratic:
    """log p = −½ xᵀ A x: a Gaussian, whose ridge is the span of the eigenvectors of the smallest eigenvalues."""

    def __init__(self, A: np.ndarray) -> None:
        self.A = A

    def log_density(self, X):
        return -0.5 * np.einsum("ni,ij,nj->n", X, self.A, X)

    def derivatives(self, X):
        return Derivatives(self.log_density(X), -X @ self.A, np.broadcast_to(-self.A, (len(X), *self.A.shape)).copy())

    def shift(self, X, at):
        return at.gradient / np.linalg.eigvalsh(self.A)[-1]

    def length(self, X):
        return np.full(len(X), np.linalg.eigvalsh(self.A)[-1] ** -0.5)


# ------------------------------------------------------------------------------------------------ where it ends


@pytest.mark.parametrize("d", [0, 1])
def test_plain_steps_end_where_the_published_algorithm_does(d):
    X, density = spiral(60)
    found = Flow(density, d, newton=False, tol=1e-9)(X)
    wanted = np.array([scms_reference(X, H, x, d, 1e-9) for x in X])
    np.testing.assert_allclose(found.points, wanted, atol=1e-6 * H)


def test_in_three_columns_too():
    X = np.random.default_rng(0).standard_normal((40, 3)) * [2.0, 1.0, 0.5]
    density = KernelDensity(X, np.ones(40), 0.8)
    for d in (1, 2):
        found = Flow(density, d, newton=False, tol=1e-9)(X[:10])
        wanted = np.array([scms_reference(X, 0.8, x, d, 1e-9) for x in X[:10]])
        np.testing.assert_allclose(found.points, wanted, atol=1e-6)


def test_newton_ends_on_the_same_ridge_in_fewer_steps():
    X, density = spiral(500)
    plain, newton = (Flow(density, 1, newton=each)(X) for each in (False, True))
    apart = np.linalg.norm(plain.points - newton.points, axis=1) / H
    assert np.median(apart) < 1e-4
    assert (apart < 0.01).mean() > 0.98
    assert newton.n_iter.sum() < 0.6 * plain.n_iter.sum()
    assert (newton.status == Status.CONVERGED).all()


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("d", [0, 1, 2])
def test_the_gradient_has_no_part_across_the_ridge(d, newton):
    X = datasets.make_swiss_roll(300, noise=0.3, rng=1).X
    density = KernelDensity(X, np.ones(300), 2.0)
    found = Flow(density, d, newton=newton)(X)
    rest = found.only(found.status == Status.CONVERGED)
    at = density.derivatives(rest.points)
    along = np.einsum("nia,ni->na", rest.tangent, at.gradient)
    across = at.gradient - np.einsum("nia,na->ni", rest.tangent, along)
    assert len(rest.points) > 100
    assert np.linalg.norm(across, axis=1).max() * 2.0 < 1e-6
    assert np.quantile(np.linalg.norm(across, axis=1), 0.9) * 2.0 < 1e-7
    np.testing.assert_allclose(
        np.swapaxes(rest.tangent, 1, 2) @ rest.tangent, np.broadcast_to(np.eye(d), (len(rest.points), d, d)), atol=1e-12
    )


@pytest.mark.parametrize("name", list(NORMALS))
def test_whatever_tells_the_directions_the_gradient_has_no_part_across(name):
    X, density = spiral(300)
    found = Flow(density, 1, NORMALS[name](X, 30))(X)
    rest = found.only(found.status == Status.CONVERGED)
    assert len(rest.points) > 270
    slope = density.derivatives(rest.points).gradient
    across = slope - np.einsum("ni,ni->n", slope, rest.tangent[:, :, 0])[:, None] * rest.tangent[:, :, 0]
    assert np.linalg.norm(across, axis=1).max() * H < 1e-6


@pytest.mark.parametrize(("normal", "share"), [(InverseCovariance(), 1.0), (Hessian(), 0.3)])
def test_the_ridge_of_a_gaussian_is_its_principal_plane(normal, share):
    """For the Hessian from rows near enough that the gradient does not reorder its eigenvectors."""
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    density = Quadratic(turn @ np.diag([0.2, 1.0, 5.0]) @ turn.T)
    X = share * np.random.default_rng(4).standard_normal((500, 3)) @ (turn * [5.0**0.5, 1.0, 0.2**0.5]).T
    found = Flow(density, 2, normal, tol=1e-10)(X)
    np.testing.assert_allclose(found.points @ turn[:, 2], 0.0, atol=1e-9)
    np.testing.assert_allclose(found.curvature, np.tile([-0.04, -0.2, -1.0], (500, 1)), atol=1e-9)


def test_modes_are_maxima():
    X, density = spiral(300)
    found = Flow(density, 0)(X)
    at = density.derivatives(found.points)
    assert (found.status == Status.CONVERGED).all()
    assert np.linalg.norm(at.gradient, axis=1).max() * H < 1e-6
    assert np.linalg.eigvalsh(at.hessian).max() < 0
    assert found.tangent.shape == (300, 2, 0)


# ---------------------------------------------------------------------------------------------- what holds for it


def test_every_row_goes_its_own_way():
    X, density = spiral(120)
    flow = Flow(density, 1)
    whole = flow(X)
    for i in (0, 17, 119):
        for one, many in zip(flow(X[i : i + 1]), whole, strict=True):
            np.testing.assert_allclose(one[0], many[i], atol=1e-12)


def test_blocks_are_the_whole(monkeypatch):
    X, density = spiral(120)
    whole = Flow(density, 1)(X)
    monkeypatch.setattr("prinfold.density.ridges.mean_shift._BLOCK_ROWS", 7)
    for one, many in zip(Flow(density, 1)(X), whole, strict=True):
        np.testing.assert_allclose(one, many, atol=1e-12)


def test_flowing_again_goes_nowhere():
    X, density = spiral(120)
    flow = Flow(density, 1)
    once = flow(X)
    again = flow(once.points)
    assert again.n_iter.max() == 0
    np.testing.assert_array_equal(again.points, once.points)


def test_given_rows_are_not_written_to():
    X, density = spiral(50)
    before = X.copy()
    Flow(density, 1)(X)
    np.testing.assert_array_equal(X, before)


def test_no_tolerance_never_ends_early():
    X, density = spiral(100)
    few, many = (Flow(density, 1, tol=0.0, max_iter=n)(X) for n in (0, 30))
    assert (few.n_iter == 0).all()
    assert (many.n_iter == 30).all()
    assert (few.status == Status.NOT_CONVERGED).all()
    assert (many.status == Status.CONVERGED).all()


def test_a_bad_step_of_newtons_is_taken_back():
    """With curvatures ten times too small Newton's steps overshoot; rows arrive all the same."""
    X, density = spiral(100)

    class Flatter(KernelDensity):
        def derivatives(self, X):
            at = super().derivatives(X)
            return at._replace(hessian=0.1 * at.hessian)

    flat = Flatter(density.rows, density.weight, H)
    found = Flow(flat, 1)(X)
    wanted = Flow(density, 1, newton=False)(X)
    assert (found.status != Status.NOT_CONVERGED).all()
    assert (np.linalg.norm(found.points - wanted.points, axis=1) < 0.05 * H).mean() > 0.95


def test_steps_that_are_too_long_are_halved():
    """With a shift thirty times that of a Gaussian rows would oscillate and run off."""

    class Hasty(Quadratic):
        def shift(self, X, at):
            return 30.0 * super().shift(X, at)

    density = Hasty(np.diag([0.2, 1.0]))
    X = np.random.default_rng(0).standard_normal((50, 2)) * [2.0, 1.0]
    for newton in (False, True):
        found = Flow(density, 1, newton=newton)(X)
        assert (found.status == Status.CONVERGED).all()
        np.testing.assert_allclose(found.points, X * [1.0, 0.0], atol=1e-6)


# ----------------------------------------------------------------------------------------------------- statuses


def test_statuses_have_sentences():
    assert len({status.sentence for status in Status}) == len(Status)
    assert all(status.sentence.endswith(".") for status in Status)


def test_a_row_that_is_alone_is_no_ridge():
    X = spiral(100)[0]
    X = np.concatenate([X, [[9.0, 9.0]]])
    found = Flow(KernelDensity(X, np.ones(101), H), 1)(X)
    assert found.status[-1] == Status.NO_GAP
    np.testing.assert_allclose(found.points[-1], [9.0, 9.0])
    assert found.ridgeness[-1] < 1e-6 < found.ridgeness[:-1].min()


def test_far_starts_have_a_status_and_finite_numbers():
    X, density = spiral(100)
    far = np.array([[30.0, 5.0], [-1e3, 2.0], [1e8, 1e8]])
    flow = replace(
        Flow(density, 1), floor=float(density.log_density(X).min() - 2.0), box=np.stack([X.min(0), X.max(0)])
    )
    found = flow(far)
    assert all(np.isfinite(part).all() for part in found)
    assert np.isin(found.status, list(Status)).all()


def test_where_density_is_low():
    X, density = spiral(100)
    found = Flow(density, 1)(X)
    cut = float(np.median(found.log_density))
    judged = Flow(density, 1, floor=cut)(X).status
    np.testing.assert_array_equal(judged == Status.LOW_DENSITY, found.log_density < cut)


def test_what_runs_off():
    class Slope:
        """Rises across for ever."""

        def log_density(self, X):
            return X[:, 1].copy()

        def derivatives(self, X):
            bend = np.broadcast_to(np.diag([0.0, -1e-3]), (len(X), 2, 2)).copy()
            return Derivatives(self.log_density(X), np.tile([0.0, 1.0], (len(X), 1)), bend)

        def shift(self, X, at):
            return at.gradient

        def length(self, X):
            return np.ones(len(X))

    X = np.zeros((3, 2))
    found = Flow(Slope(), 1, max_iter=10, box=np.array([[-1.0, -1.0], [1.0, 1.0]]))(X)
    assert (found.status == Status.RAN_OFF).all()
    assert (Flow(Slope(), 1, max_iter=2, box=np.array([[-1.0, -1.0], [1.0, 1.0]]))(X).status == 1).all()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_running_off_to_either_side_of_the_box(side):
    density = Quadratic(np.diag([0.2, 1.0]))
    X = np.array([[side * 9.0, 0.0], [side * 3.0, 0.0]])  # on the ridge already
    found = Flow(density, 1, box=np.array([[-1.0, -1.0], [1.0, 1.0]]))(X)
    assert found.status.tolist() == [Status.RAN_OFF, Status.CONVERGED]


def test_what_comes_to_rest_outside_a_mask():
    from prinfold.density.masks import Edge

    density, seen = Quadratic(np.diag([0.2, 1.0])), Quadratic(np.eye(2))
    found = Flow(density, 1, edge=Edge(seen, -2.0))(np.array([[1.0, 1.0], [3.0, 1.0]]))
    assert found.status.tolist() == [Status.CONVERGED, Status.OUTSIDE]


def test_a_row_that_comes_no_nearer_is_there():
    """Sums that leave out a little may send a row to and fro a ten-millionth of a bandwidth from the ridge."""

    class Jitter(Quadratic):
        def derivatives(self, X):
            at = super().derivatives(X)
            return at._replace(gradient=at.gradient + [0.0, 3e-7] * np.sign(-X))

    found = Flow(Jitter(np.diag([0.2, 1.0])), 1, tol=1e-9, max_iter=400)(np.array([[1.0, 0.5]]))
    assert found.status[0] == Status.CONVERGED
    assert found.n_iter[0] < 100


def test_what_is_no_number_has_run_off():
    class Hole(Quadratic):
        """Not defined left of the axis."""

        def derivatives(self, X):
            at = super().derivatives(X)
            gone = X[:, 0] < 0
            for part in at:
                part[gone] = np.nan
            return at

    found = Flow(Hole(np.diag([0.2, 1.0])), 1)(np.array([[1.0, 1.0], [-1.0, 1.0]]))
    assert found.status.tolist() == [Status.CONVERGED, Status.RAN_OFF]


def test_a_valley_is_no_ridge():
    class Valley(Quadratic):
        def shift(self, X, at):
            return 0.0 * at.gradient

        def length(self, X):
            return np.ones(len(X))

    found = Flow(Valley(-np.diag([1.0, 4.0])), 1)(np.ones((2, 2)))
    assert (found.status == Status.NOT_A_RIDGE).all()


def test_something_is_always_kept():
    def found(*status):
        n = len(status)
        return FlowResult(
            np.zeros((n, 2)), np.zeros((n, 2, 1)), np.zeros((n, 2)), np.zeros(n), np.array(status), np.zeros(n)
        )

    assert select_ridge_rows(found(0, 4, 0, 2)).tolist() == [0, 2]
    assert select_ridge_rows(found(4, 3, 4)).tolist() == [0, 2]
    assert select_ridge_rows(found(3, 2)).tolist() == [0]
    assert select_ridge_rows(found(2, 5)).tolist() == [0, 1]


def test_the_floor_is_below_all_rows_or_a_share_of_them():
    values, weight = np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4)
    assert density_floor(values, weight, 0.0) == -1.0
    assert density_floor(values, weight, 0.25) == 2.0
    assert density_floor(values, weight, 0.6) == 3.0
    # A weight of two is the row given twice.
    assert density_floor(values, np.array([1.0, 2.0, 1.0, 1.0]), 0.3) == density_floor(
        np.append(values, 1.0), np.ones(5), 0.3
    )


# -------------------------------------------------------------------------------------------------------- starts


def test_a_mesh_covers_the_ridge():
    X, density = spiral(300)
    flow = Flow(density, 1)
    mesh = STARTS["mesh"](flow, X)
    from_mesh, from_data = flow(mesh), flow(X)
    lowest = density.log_density(X).min() - 2.0
    assert (density.log_density(mesh) >= lowest).all()
    ridge = from_mesh.points[from_mesh.status == Status.CONVERGED]
    gaps = np.linalg.norm(from_data.points[:, None] - ridge[None], axis=2).min(axis=1)
    assert gaps.max() < H


def test_a_mesh_too_large_is_refused():
    X = np.random.default_rng(0).standard_normal((20, 4))
    with pytest.raises(InvalidParameterError, match="up to 3 columns, got 4"):
        mesh_starts(Flow(KernelDensity(X, np.ones(20), 1.0), 1), X)
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(InvalidParameterError, match="more than the 2000000 allowed"):
        mesh_starts(Flow(KernelDensity(X, np.ones(2), 1e-6), 1), X)


# ------------------------------------------------------------------------------------------------------- normals


def test_normals_agree_with_their_definitions():
    X, density = spiral(80)
    at = density.derivatives(X[:5])
    k = np.exp(-0.5 * np.square(X[:5, None] - X[None]).sum(axis=2) / H**2)
    delta = X[None] - X[:5, None]
    share = k / k.sum(axis=1, keepdims=True)
    about_x = np.einsum("nm,nmi,nmj->nij", share, delta, delta)
    mean = np.einsum("nm,nmi->ni", share, delta)
    about_mean = about_x - mean[:, :, None] * mean[:, None, :]
    eye = np.eye(2)
    np.testing.assert_allclose(InverseCovariance().matrix(X[:5], at), (eye - about_mean / H**2) / H**2, rtol=1e-9)
    np.testing.assert_allclose(Hessian().matrix(X[:5], at), (eye - about_x / H**2) / H**2, rtol=1e-9)
    near = np.argsort(np.linalg.norm(delta, axis=2), axis=1)[:, :10]
    for about, normal in ((True, "neighbors"), (False, "neighbors_about_point")):
        got = NORMALS[normal](X, 10)
        assert isinstance(got, NeighborCovariance)
        for i in range(5):
            d = X[near[i]] - X[i]
            d = d - d.mean(axis=0) if about else d
            np.testing.assert_allclose(got.matrix(X[:5], at)[i], -d.T @ d / 10, atol=1e-12)


def test_walks_tell_how_far_they_are():
    X, density = spiral(50)
    walk = RidgeWalk(Flow(density, 1), X)
    before = walk.measures()
    walk.advance()
    after = walk.measures()
    assert before["moving"] == 50
    assert after["objective"] > before["objective"]


class Stretched(Quadratic):
    """The same with a length of one, whatever the curvature: rows may be many steps of Newton's from the ridge."""

    def shift(self, X, at):
        return 1.0 * at.gradient

    def length(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize(
    ("curvature", "off", "step"),
    [
        (0.5, 0.18, 0.18),  # within a tenth of a length by mean shift: Newton's step, all the way
        (0.5, 0.22, 0.11),  # farther: mean shift
        (0.06, 1.5, 1.0),  # near by mean shift, but flat: Newton's step, no longer than a length
        (0.04, 1.5, 0.06),  # too flat for Newton's
    ],
)
def test_when_newtons_step_takes_over_and_how_far_it_goes(curvature, off, step):
    walk = RidgeWalk(Flow(Stretched(np.diag([0.01, curvature])), 1), np.array([[3.0, off]]))
    np.testing.assert_allclose(walk.advance().points, [[3.0, off - step]], rtol=1e-12)


def test_rows_rest_where_the_gradient_across_vanishes_whatever_the_kernels():
    """Not where the mean shift across does: of long kernels that lie askew to the ridge, it vanishes elsewhere."""
    X = datasets.make_spiral(200, noise=0.04, rng=0).X
    density = KernelDensity(X, np.ones(200), np.array([[0.04, 0.018], [0.018, 0.01]]))
    found = Flow(density, 1, newton=False, max_iter=2000)(X)
    there = found.only(found.status == Status.CONVERGED)
    assert len(there.points) > 150
    gradient = density.derivatives(there.points).gradient
    across = gradient - np.einsum("nia,nja,nj->ni", there.tangent, there.tangent, gradient)
    assert np.linalg.norm(across, axis=1).max() * 0.1 < 1e-4


def test_a_dip_along_a_ridge_makes_it_no_sharper():
    found = FlowResult(*np.zeros((2, 1, 2)), np.array([[2.0, -0.04]]), *np.zeros((3, 1)))
    found = found._replace(tangent=np.ones((1, 2, 1)))
    np.testing.assert_allclose(found.ridgeness, 0.04)


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_wide_tables_flow_as_they_do_in_the_span_of_their_rows(dimension):
    rng = np.random.default_rng(3)
    narrow, new = rng.normal(size=(12, 14)), rng.normal(size=(5, 14))  # two columns are spanned by the new rows alone
    narrow[:, 12:] = 0.0
    turn, place = np.linalg.qr(rng.normal(size=(90, 14)))[0].T, rng.normal(size=90)
    flat = Flow(KernelDensity(narrow, np.ones(12), 1.7), dimension, max_iter=300)
    wide = Flow(KernelDensity(narrow @ turn + place, np.ones(12), 1.7), dimension, max_iter=300)
    assert wide.in_span is not None
    for rows in (narrow, new):
        wanted, found = flat(rows), wide(rows @ turn + place)
        np.testing.assert_allclose(found.points, wanted.points @ turn + place, atol=1e-6)
        np.testing.assert_allclose(found.curvature[:, :14], wanted.curvature, atol=1e-6)
        np.testing.assert_allclose(found.curvature[:, 14:], -1.0)
        left_out = 76 * (0.5 * np.log(2 * np.pi) + np.log(1.7))
        np.testing.assert_allclose(found.log_density + left_out, wanted.log_density, atol=1e-8)
        np.testing.assert_array_equal(found.status, wanted.status)
        turned = np.einsum("nia,nib->nab", wanted.tangent, wanted.tangent)
        again = np.einsum("nia,nib->nab", found.tangent, np.einsum("ij,nia->nja", turn, wanted.tangent))
        np.testing.assert_allclose(np.abs(np.linalg.det(again)), np.linalg.det(turned), atol=1e-5)


@pytest.mark.parametrize("newton", [True, False])
def test_the_span_of_the_rows_gives_what_all_columns_give(newton, monkeypatch):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(15, 60)), rng.normal(size=(4, 60))
    flow = Flow(KernelDensity(X, rng.uniform(0.5, 2.0, 15), 4.5), 1, newton=newton, max_iter=40)
    rows = np.concatenate([X, new])
    found = flow(rows)
    monkeypatch.setattr(Flow, "in_span", None)
    whole = flow(rows)
    for name in ("points", "curvature", "log_density", "status", "n_iter"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-7)
    along = np.abs(np.einsum("nia,nia->n", found.tangent, whole.tangent))  # directions have no sign
    np.testing.assert_allclose(along, 1.0, atol=1e-7)
