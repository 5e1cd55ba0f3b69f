"""Posteriors between the nodes of a lattice, held to a quadrature over every point and to integrals."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from prinfold import GTM, PPS, AlignedNoise, LowRankNoise, MixedGTM, StudentNoise, datasets, load
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import make_basis
from prinfold.gtm import lattice_refinement as refinement
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.fitting import _FINER_ITERATIONS
from prinfold.gtm.lattice_refinement import refinement_of, subdivide
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.penalties import ConstantPenalty
from prinfold.latent import Lattice, grid, line
from prinfold.latent.subdivision import EvenParts, Subdivision
from prinfold.loops import StopReason


def narrow(n: int = 90, D: int = 4, seed: int = 0) -> np.ndarray:
    """Rows about a bent sheet, with noise far narrower than the cells of a small lattice are wide."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, (n, 2))
    sheet = np.column_stack([z, 0.4 * z[:, 0] ** 2, 0.3 * z[:, 0] * z[:, 1]])[:, :D]
    return sheet + 0.03 * rng.standard_normal(sheet.shape)


def with_gaps(X: np.ndarray) -> np.ndarray:
    holes = X.copy()
    holes[::3, 0] = np.nan
    holes[1::4, 2] = np.nan
    return holes


SETTINGS = {"nodes": 7, "basis": 3, "max_iter": 12, "tol": 0.0, "random_state": 0}
MODELS = {
    "isotropic": GTM(**SETTINGS),
    "diagonal": GTM(noise="diagonal", **SETTINGS),
    "aligned": GTM(noise=AlignedNoise(reach=0.2), **SETTINGS),
    "low rank": GTM(noise=LowRankNoise(1), **SETTINGS),
    "student": GTM(noise=StudentNoise(df=4.0), **SETTINGS),
    "varying": GTM(noise="varying", **SETTINGS),
    "oriented": PPS(clamping=0.5, **SETTINGS),
    "cylinder": GTM(latent="cylinder", **SETTINGS),
    "torus": GTM(latent="torus", **SETTINGS),
    "line": GTM(latent="line", **SETTINGS),
    "three axes": GTM(3, **(SETTINGS | {"nodes": 4, "basis": 2})),
}


@pytest.fixture(params=["cells that matter", "all points"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to take points between the nodes; small lattices would be left to the second alone."""
    if request.param == "cells that matter":
        monkeypatch.setattr(refinement, "_FEW_POINTS", 0)
    return str(request.param)


def fitted(name: str, X: np.ndarray):
    return MODELS[name].fit(X)


def over_every_point(model, X: np.ndarray, errors=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, mode and covariance by the definition, over all points of all cells: the slow twin."""
    rows = model._rows(X, errors)
    asked = model._model_for(rows, model._model)
    refined = refinement_of(asked, model._parameters())
    assert refined is not None, "cells must be wide, or nothing is tested"
    points = replace(asked, surface=refined.fine)
    R = posteriors.responsibilities(points, rows, refined.points_parameters)
    latent, domain = model.latent_, model.latent_.domain
    mean = latent.unembed(R @ latent.embed(refined.latent.nodes))[0]
    delta = domain.difference(refined.latent.nodes[None], mean[:, None])
    return mean, refined.latent.nodes[R.argmax(axis=1)], np.einsum("nk,nka,nkb->nab", R, delta, delta)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", ["whole", "gaps", "errors"])
@pytest.mark.parametrize("name", MODELS)
def test_cells_that_matter_are_as_good_as_all_points(name: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "_FEW_POINTS", 0)
    X = narrow()
    model = fitted(name, X)
    rows = with_gaps(X) if table == "gaps" else X
    errors = 0.02 + 0.01 * np.abs(X) if table == "errors" else None
    mean, mode, covariance = over_every_point(model, rows, errors)
    apart = model.latent_.domain.difference(model.transform(rows, errors=errors), mean)
    assert np.quantile(np.abs(apart).max(axis=1), 0.98) < 0.02 * model.latent_.spacing
    model._model.surface.memory[0] = None
    monkeypatch.setattr(refinement, "_CELLS_WITHIN", 10.0)
    assert_allclose(model.latent_.domain.difference(model.transform(rows, errors=errors), mean), 0.0, atol=1e-8)
    assert_allclose(model.posterior_covariance(rows, errors=errors), covariance, rtol=1e-6, atol=1e-8)
    found = model.posterior_mode(rows, errors=errors)
    assert (np.abs(model.latent_.domain.difference(found, mode)).max(axis=1) < 1e-9).mean() > 0.98  # ties apart
    spacing = model.latent_.spacing
    distance = model.latent_.distance(mean, found) / spacing
    assert_allclose(model.mode_distance(rows, errors=errors), distance, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("way")
def test_rows_one_by_one_are_the_batch(name: str) -> None:
    X = narrow()
    model = fitted(name, X)
    each = np.concatenate([model.transform(row[None]) for row in X])
    assert_allclose(model.latent_.domain.difference(each, model.transform(X)), 0.0, atol=1e-9)
    order = np.random.default_rng(1).permutation(len(X))
    moved = model.transform(X[order])
    assert_allclose(model.latent_.domain.difference(moved, model.transform(X)[order]), 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["isotropic", "student", "oriented", "torus"])
@pytest.mark.usefixtures("way")
def test_single_precision_is_near_double(name: str) -> None:
    X = narrow()
    model = fitted(name, X)
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(model.latent_.domain.difference(single.astype(float), model.transform(X)), 0.0, atol=2e-3)


@pytest.mark.filterwarnings("ignore")
def test_wide_tables_take_whole_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "_FEW_POINTS", 0)
    X = np.random.default_rng(2).standard_normal((1, 40)) + narrow() @ np.random.default_rng(3).standard_normal((4, 40))
    model = GTM(**SETTINGS).fit(X)
    mean, _, _ = over_every_point(model, X)
    assert np.abs(model.transform(X) - mean).max() < 0.03 * model.latent_.spacing


def test_one_point_for_each_cell_is_the_mean_of_the_nodes() -> None:
    X = narrow()
    model = MODELS["isotropic"].fit(X)
    ones = subdivide(model._model.surface, model._model.noise, model._parameters(), model.latent_, (1, 1))
    found = np.empty((len(X), 2))

    def write(some, pieces) -> None:
        found[some] = pieces.mean(ones.latent)

    refinement.visit_pieces(model._model, ones, model._rows(X), write)
    assert_allclose(found, model.responsibilities(X) @ model.latent_.nodes, atol=1e-3)
    assert_allclose(ones.latent.nodes, model.latent_.nodes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", ["whole", "gaps", "errors"])
@pytest.mark.parametrize("name", MODELS)
def test_few_points_are_all_taken_and_lie_no_farther_apart_than_those_of_cells(name: str, table: str) -> None:
    """The same integrals by cells cut twice as finely as they need be, to a fiftieth of a spacing."""
    X = narrow()
    model = fitted(name, X)
    rows = with_gaps(X) if table == "gaps" else X
    errors = 0.02 + 0.01 * np.abs(X) if table == "errors" else None
    asked = model._model_for(model._rows(rows, errors), model._model)
    few = refinement_of(asked, model._parameters())
    if not isinstance(few, refinement.EveryPoint):
        pytest.skip("points are many")
    assert len(few.fine.latent.nodes) <= refinement._FEW_POINTS
    counts = tuple(2 * -(-n // m) for n, m in zip(few.fine.latent.parts, model.latent_.shape, strict=True))
    cells = subdivide(asked.surface, asked.noise, model._parameters(), model.latent_, counts)
    every = replace(asked, surface=cells.fine)
    R = posteriors.responsibilities(every, model._rows(rows, errors), cells.points_parameters)
    mean = model.latent_.unembed(R @ model.latent_.embed(cells.latent.nodes))[0]
    apart = model.latent_.domain.difference(model.transform(rows, errors=errors), mean)
    responsibilities = model.responsibilities(rows, errors=errors)
    of_nodes = model.latent_.unembed(responsibilities @ model.latent_.embed(model.latent_.nodes))[0]
    before = model.latent_.domain.difference(of_nodes, mean)
    spacing = np.array([axis.spacing for axis in model.latent_.axes])
    assert np.sqrt(np.mean((apart / spacing) ** 2)) < 0.02
    assert np.sqrt(np.mean(apart**2)) < 0.3 * np.sqrt(np.mean(before**2))


@pytest.mark.parametrize(("shape", "periodic"), [((5,), (False,)), ((6,), (True,)), ((4, 5), (True, False))])
def test_even_parts_are_the_parts_of_cells_where_these_are_whole(shape, periodic) -> None:
    lattice = Lattice(shape, periodic)
    parts = EvenParts(lattice, tuple(3 * n for n in shape)).nodes
    cells = Subdivision(lattice, (3,) * len(shape)).nodes
    order = lambda Z: Z[np.lexsort(np.round(Z, 9).T)]  # noqa: E731
    assert_allclose(order(parts), order(cells), atol=1e-12)
    uneven = EvenParts(lattice, tuple(n + 2 for n in shape))
    assert lattice.domain.contains(lattice.domain.retract(uneven.nodes)).all()
    assert uneven.spacing < lattice.spacing


@pytest.mark.filterwarnings("ignore")
def test_wide_noise_leaves_the_nodes_alone() -> None:
    X = narrow() + 0.5 * np.random.default_rng(4).standard_normal((90, 4))
    model = GTM(nodes=12, basis=3, random_state=0).fit(X)
    assert refinement_of(model._model, model._parameters()) is None
    assert_allclose(model.transform(X), model.responsibilities(X) @ model.latent_.nodes, atol=1e-12)


def test_a_sphere_keeps_its_nodes() -> None:
    X = datasets.make_sphere(200, rng=0).X
    model = GTM(latent="sphere", random_state=0).fit(X)
    mean = model.responsibilities(X) @ model.latent_.nodes
    assert_allclose(model.transform(X), mean / np.linalg.norm(mean, axis=1)[:, None], atol=1e-9)


# ------------------------------------------------------------------------------------ against integrals

HALF_WIDTHS = (3.0, 5.0, 8.0)
"""Noise deviations that a cell is wide."""


def straight(width: float) -> tuple[GTMModel, object]:
    """A straight line in the plane, with noise so narrow that cells are that many deviations wide."""
    latent = line(9)
    surface = BasisMap(latent, make_basis(None, 1.0, False, latent).bind(latent))
    target = np.column_stack([latent.nodes[:, 0], 0.5 * latent.nodes[:, 0]])
    weights = surface.regress(surface.node_features, target, 1e-10)
    noise = IsotropicNoise(1e-12)
    deviation = latent.spacing * np.sqrt(1.25) / width
    return GTMModel(surface, noise, ConstantPenalty(0.0)), noise.initial(weights, deviation**-2)


@pytest.mark.parametrize("width", HALF_WIDTHS)
@pytest.mark.usefixtures("way")
def test_means_are_integrals_over_the_prior(width: float) -> None:
    from prinfold.rows.rows import as_rows

    model, parameters = straight(width)
    z = np.linspace(-1.1, 1.1, 41)
    X = np.column_stack([z, 0.5 * z]) + 0.02 * np.random.default_rng(0).standard_normal((41, 2))
    h = model.surface.latent.spacing
    # Each node has the same share, so that the prior is twice as dense in the halves of cells at the edges.
    prior = lambda x: 2.0 if abs(x) > 1 - 0.5 * h else 1.0  # noqa: E731

    def moment(row: np.ndarray, power: int) -> float:
        def integrand(x: float) -> float:
            image = model.surface.point(np.array([[x]]), parameters.weights)[0]
            square = ((row - image) ** 2).sum() - nearest
            return float(x**power * prior(x) * np.exp(-0.5 * parameters.precision * square))

        fine = np.linspace(-1, 1, 2001)[:, None]
        squares = ((row - model.surface.point(fine, parameters.weights)) ** 2).sum(axis=1)
        nearest, at = squares.min(), float(fine[squares.argmin(), 0])
        reach = 8 / width * h
        ends = max(-1.0, at - reach), min(1.0, at + reach)
        breaks = [b for b in (-1 + 0.5 * h, 1 - 0.5 * h) if ends[0] < b < ends[1]]
        return quad(integrand, *ends, points=breaks or None, epsabs=1e-12, limit=200)[0]

    expected = np.array([moment(row, 1) / moment(row, 0) for row in X])
    rows = as_rows(X)
    found = posteriors.posterior_mean(model, rows, parameters)[:, 0]
    nodes = posteriors.responsibilities(model, rows, parameters) @ model.surface.latent.nodes[:, 0]
    assert np.abs(found - expected).max() < 0.03 * h
    assert np.abs(nodes - expected).max() > 0.1 * h  # which the nodes alone miss by far
    spread = posteriors.posterior_covariance(model, rows, parameters)[:, 0, 0]
    second = np.array([moment(row, 2) / moment(row, 0) for row in X]) - expected**2
    inner = np.abs(z) < 0.8
    assert_allclose(np.sqrt(spread[inner]), np.sqrt(second[inner]), rtol=0.06)


@pytest.mark.parametrize("width", HALF_WIDTHS)
@pytest.mark.usefixtures("way")
def test_a_row_that_moves_evenly_moves_evenly_on_the_map(width: float) -> None:
    from prinfold.rows.rows import as_rows

    model, parameters = straight(width)
    z = np.linspace(-0.5, 0.5, 801)
    X = np.column_stack([z, 0.5 * z])
    found = posteriors.posterior_mean(model, as_rows(X), parameters)[:, 0]
    apart = found - z
    assert np.abs(apart).max() < 0.05 * model.surface.latent.spacing
    assert np.abs(np.diff(apart)).max() < 0.01 * model.surface.latent.spacing
    nodes = posteriors.responsibilities(model, as_rows(X), parameters) @ model.surface.latent.nodes[:, 0]
    assert np.abs(nodes - z).max() > 0.15 * model.surface.latent.spacing  # in steps, by the nodes


# ----------------------------------------------------------------------------------------- points of cells


@pytest.mark.parametrize(("shape", "periodic"), [((5,), (False,)), ((6,), (True,)), ((4, 5), (True, False))])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_points_lie_in_their_cells_and_in_the_domain(shape, periodic, m: int) -> None:
    lattice = Lattice(shape, periodic)
    points = Subdivision(lattice, (m,) * len(shape))
    each = points.nodes.reshape(lattice.n_nodes, points.per_cell, len(shape))
    offset = lattice.domain.difference(each, lattice.nodes[:, None])
    half = 0.5 * np.array([axis.spacing for axis in lattice.axes])
    assert (np.abs(offset) <= half + 1e-12).all()
    assert lattice.domain.contains(lattice.domain.retract(points.nodes)).all()
    inner = ~lattice.domain.boundary(lattice.nodes)
    assert_allclose(offset[inner].mean(axis=1), 0.0, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_mixed_columns_are_placed_between_nodes() -> None:
    X = narrow(150)
    frame = {"a": X[:, 0], "b": X[:, 1], "c": (X[:, 0] > 0).astype(float), "d": X[:, 3]}
    import pandas as pd

    model = MixedGTM(random_state=0, nodes=7, basis=3, max_iter=10).fit(pd.DataFrame(frame))
    Z = model.transform(pd.DataFrame(frame))
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= 1.0
    nodes = model.responsibilities(pd.DataFrame(frame)) @ model.latent_.nodes
    assert np.quantile(np.abs(Z - nodes), 0.9) < model.latent_.spacing


# ------------------------------------------------------------------------------- training with more nodes


@pytest.fixture(scope="module")
def pipe() -> GTM:
    return GTM(random_state=0).fit(datasets.make_pipe_flow(500, rng=0).X)


def test_nodes_far_apart_are_doubled_unless_they_were_asked_for(pipe: GTM) -> None:
    X = datasets.make_pipe_flow(500, rng=0).X
    given = GTM(nodes=21, random_state=0).fit(X)
    assert given.latent_.shape == (21, 21)
    assert pipe.latent_.n_nodes >= 4 * given.latent_.n_nodes
    assert pipe.weights_.shape == given.weights_.shape
    fresh = datasets.make_pipe_flow(500, rng=1).X
    assert pipe.score(fresh) > given.score(fresh) + 0.2
    assert pipe.noise_variance_ < given.noise_variance_
    assert pipe.projection_error(fresh) < given.projection_error(fresh)


def test_finer_training_never_lowers_its_objective(pipe: GTM) -> None:
    assert (np.diff(pipe.history_["objective"]) >= -1e-12).all()
    # The history is that of the finer nodes; iterations before they were doubled are counted too.
    assert 1 < len(pipe.history_["objective"]) <= _FINER_ITERATIONS + 1 < pipe.n_iter_
    assert pipe.stop_reason_ is StopReason.REFINED
    assert pipe.converged_
    assert_allclose(pipe.history_["log_likelihood"][-1], pipe.score(datasets.make_pipe_flow(500, rng=0).X))
    assert pipe.converged_


def test_coordinates_keep_no_trace_of_the_nodes(pipe: GTM) -> None:
    """Off the edge, coordinates near a line of nodes are as many as by chance, and phases cancel."""
    Z = pipe.transform(datasets.make_pipe_flow(500, rng=0).X)
    h = pipe.latent_.spacing
    inner = [z[np.abs(z) < 1 - 0.5 * h] for z in Z.T]
    for steps in ((z + 1) / h for z in inner):
        snapped = np.abs(steps - np.round(steps)) < 0.02
        assert abs(snapped.mean() - 0.04) < 3 * np.sqrt(0.04 * 0.96 / len(steps))
        assert abs(np.exp(2j * np.pi * steps).mean()) < 3 / np.sqrt(len(steps))
    assert not pipe.latent_.domain.boundary(Z).any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", ["diagonal", "aligned", "student", "varying"])
def test_every_noise_goes_on_with_more_nodes(noise: str, tmp_path) -> None:
    X = datasets.make_pipe_flow(300, rng=0).X
    model = GTM(noise=noise, random_state=0).fit(X)
    model.save(tmp_path / "model.prinfold")
    assert_allclose(load(tmp_path / "model.prinfold").transform(X), model.transform(X), atol=1e-9)
    assert_allclose(model.reconstruct(X), model.inverse_transform(model.transform(X)), atol=1e-12)


def test_wide_cells_of_a_sphere_get_more_nodes() -> None:
    X = datasets.make_sphere(400, noise=0.02, rng=0).X
    model = GTM(latent="sphere", random_state=0).fit(X)
    assert model.latent_.n > 0.9 * len(X)


@pytest.mark.parametrize("chosen", [1.0, 0.02], ids=["most cells of each row", "few cells of each row"])
@pytest.mark.parametrize("n_numbers", [2**18, 7], ids=["at once", "one by one"])
def test_pairs_of_rows_and_cells_have_the_log_density_of_their_points(monkeypatch, chosen, n_numbers):
    monkeypatch.setattr("prinfold.gtm.noise.isotropic._PAIRED_NUMBERS", n_numbers)
    rng = np.random.default_rng(0)
    latent, noise = grid(8, 8), IsotropicNoise(1e-6)
    surface = BasisMap(latent, GaussianBasis(3).bind(latent))
    weights = rng.normal(size=(len(surface.penalty_mask), 5))
    parameters, loaded = noise.initial(weights, 3.0), noise.load(rng.normal(size=(40, 5)))
    points = noise.at_nodes(surface, parameters)
    row, cell = np.nonzero(rng.uniform(size=(40, 16)) < chosen)  # 64 nodes as the points of 16 cells
    work = np.empty((1, 40, 64))
    points.log_density(loaded, None, work)
    expected = work[0].reshape(40, 16, 4)[row, cell]
    of_cells = noise.capabilities.places.points(surface, parameters, 4)
    found = noise.capabilities.pairs(of_cells)(loaded, row, cell)
    assert_allclose(found - found[:1, :1], expected - expected[:1, :1], atol=1e-12)  # but for a constant of all
