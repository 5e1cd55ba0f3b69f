"""Kinds of columns: densities against scipy's, steps that only go up, how columns are told apart, and back."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad, minimize
from scipy.special import digamma, softmax
from scipy.stats import bernoulli, gamma, nbinom, norm, poisson
from tests.house import PACKAGE, syntax_trees

from prinfold import MixedGTM
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.gtm.mixed import exponential_families as kinds
from prinfold.gtm.mixed.column_kinds import automatic_kind, choose_columns, read_columns
from prinfold.gtm.mixed.column_layout import ALL_KINDS, Layout
from prinfold.gtm.mixed.column_nodes import mean_jacobian, means
from prinfold.gtm.mixed.column_noise import MixedNoise
from prinfold.gtm.mixed.column_summaries import RawColumn, summarize
from prinfold.gtm.mixed.column_sums import best_dispersion
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.latent import grid

RNG = np.random.default_rng(4)
LATENT = grid(5, 2)
SURFACE = BasisMap(LATENT, GaussianBasis(2).bind(LATENT))
FAMILIES = {"bernoulli": (kinds.BERNOULLI, 1), "poisson": (kinds.POISSON, 1), "categorical": (kinds.CATEGORICAL, 3)}
families = pytest.mark.parametrize(("family", "width"), FAMILIES.values(), ids=FAMILIES)


def some_sums(family, width):
    """Masses and moments as rows of the family could give them."""
    mass = RNG.uniform(0.5, 20, LATENT.n_nodes)
    return mass, mass[:, None] * family.mean(RNG.standard_normal((LATENT.n_nodes, width)))


@families
def test_the_mean_is_the_gradient_of_the_log_partition(family, width):
    for eta in RNG.standard_normal((5, width)):
        off = check_grad(
            lambda e: float(family.log_partition(e[None])[0]), lambda e: family.mean(e[None])[0], eta, epsilon=1e-7
        )
        assert off < 1e-6


@families
def test_climbing_ends_where_a_general_optimiser_does(family, width):
    mass, moment = some_sums(family, width)
    weights = np.zeros((len(SURFACE.penalty_mask), width))
    shape, Phi = weights.shape, SURFACE.node_features

    def loss(flat):
        W = flat.reshape(shape)
        return 0.5 * 0.3 * SURFACE.roughness(W) - kinds.log_likelihood(family, mass, moment, Phi @ W)

    best = minimize(loss, weights.ravel(), method="BFGS", options={"gtol": 1e-8})
    for _ in range(30):
        weights = kinds.climb(SURFACE, family, mass, moment, 0.3, weights)
    assert loss(weights.ravel()) == pytest.approx(best.fun, rel=1e-9)
    assert_allclose(family.mean(Phi @ weights), family.mean(Phi @ best.x.reshape(shape)), rtol=1e-3, atol=1e-4)


@families
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0, 300.0])
def test_climbing_never_goes_down_however_far_off_it_starts(family, width, size):
    mass, moment = some_sums(family, width)
    weights = size * RNG.standard_normal((len(SURFACE.penalty_mask), width))

    def value(W):
        eta = SURFACE.node_features @ W
        with np.errstate(over="ignore"):
            return kinds.log_likelihood(family, mass, moment, eta) - 0.05 * SURFACE.roughness(W)

    for _ in range(5):
        before, weights = value(weights), kinds.climb(SURFACE, family, mass, moment, 0.1, weights)
        assert value(weights) >= before - 1e-9 * abs(before)


def test_separation_is_held_by_the_penalty():
    left = LATENT.nodes[:, 0] < 0
    mass = np.full(LATENT.n_nodes, 10.0)
    weights = np.zeros((len(SURFACE.penalty_mask), 1))
    for _ in range(200):
        weights = kinds.climb(SURFACE, kinds.BERNOULLI, mass, np.where(left, 10.0, 0.0)[:, None], 0.1, weights)
    again = kinds.climb(SURFACE, kinds.BERNOULLI, mass, np.where(left, 10.0, 0.0)[:, None], 0.1, weights)
    assert np.abs(weights).max() < 100
    assert_allclose(again, weights, atol=1e-3)


# ------------------------------------------------------------------------------------------------ densities


def noise_of(names, widths, **settings):
    layout = Layout(tuple(names), tuple(widths))
    n = len(layout.gaussian_columns)
    cells, prior = CellNoise(1e-9, np.full(n, 1e-9), np.ones(n)), np.zeros((2, layout.n_predictors))
    return MixedNoise(layout, cells, *prior, **settings)


def log_densities(noise, parameters, block):
    nodes = noise.at_nodes(SURFACE, parameters)
    loaded = noise.load(block)
    work = np.empty((1, len(block), LATENT.n_nodes))
    own = nodes.log_density(loaded, None, work)
    return work[0] + own[:, None]


NAMES = ("gaussian", "bernoulli", "categorical", "poisson", "negative_binomial", "size_factor")
WIDTHS = (1, 1, 3, 1, 1, 0)


def mixed_case(n=12, gaps=True):
    rng = np.random.default_rng(1)
    noise = noise_of(NAMES, WIDTHS)
    weights = rng.standard_normal((len(SURFACE.penalty_mask), 7))
    parameters = replace(noise.initial(weights, np.array([4.0])), dispersion=np.array([2.5]))
    block = np.stack(
        [
            rng.standard_normal(n),
            rng.integers(0, 2, n),
            rng.integers(0, 3, n),
            rng.poisson(2, n),
            rng.poisson(4, n),
            rng.uniform(0.5, 2, n),
        ],
        axis=1,
    ).astype(float)
    if gaps:
        block[:, :5][rng.uniform(size=(n, 5)) < 0.3] = np.nan
    return noise, parameters, block


def brute_log_densities(eta, block):
    """(n, K) by scipy's densities, cell by cell."""
    out = np.zeros((len(block), len(eta)))
    for n, (x, b, c, p, q, s) in enumerate(block):
        for k, e in enumerate(eta):
            terms = [norm.logpdf(x, e[0], 0.5), bernoulli.logpmf(b, 1 / (1 + np.exp(-e[1])))]
            terms.append(np.log(softmax(e[2:5])[int(c)]) if np.isfinite(c) else np.nan)
            terms.append(poisson.logpmf(p, s * np.exp(e[5])))
            terms.append(nbinom.logpmf(q, 2.5, 2.5 / (2.5 + s * np.exp(e[6]))))
            out[n, k] = np.nansum(np.where(np.isnan([x, b, c, p, q]), np.nan, terms))
    return out


def test_log_densities_are_those_of_scipy():
    noise, parameters, block = mixed_case()
    expected = brute_log_densities(SURFACE.nodes(parameters.weights), block)
    assert_allclose(log_densities(noise, parameters, block), expected, rtol=1e-9, atol=1e-9)


def test_endless_dispersion_is_poisson():
    weights = RNG.standard_normal((len(SURFACE.penalty_mask), 1))
    counts = RNG.poisson(3, (20, 1)).astype(float)
    one, two = noise_of(["negative_binomial"], [1], dispersion=1e9), noise_of(["poisson"], [1])
    assert_allclose(
        log_densities(one, one.initial(weights, 1.0), counts),
        log_densities(two, two.initial(weights, 1.0), counts),
        atol=1e-5,
    )


def test_two_levels_are_bernoulli():
    weights = RNG.standard_normal((len(SURFACE.penalty_mask), 1))
    cells = RNG.integers(0, 2, (20, 1)).astype(float)
    one, two = noise_of(["bernoulli"], [1]), noise_of(["categorical"], [2])
    assert_allclose(
        log_densities(one, one.initial(weights, 1.0), cells),
        log_densities(two, two.initial(np.hstack([-0.5 * weights, 0.5 * weights]), 1.0), cells),
        atol=1e-12,
    )


def test_means_and_variances_are_those_of_what_is_drawn():
    noise, parameters, _ = mixed_case()
    parameters = replace(parameters, weights=0.5 * parameters.weights)
    nodes = noise.at_nodes(SURFACE, parameters)
    rows = nodes.draw(np.zeros(200_000, dtype=int), np.random.default_rng(0))
    drawn = np.column_stack([rows[:, :2], rows[:, 2, None] == np.arange(3), rows[:, 3:5]])
    assert_allclose(drawn.mean(axis=0), means(noise.layout, nodes.centers)[0], rtol=0.03, atol=0.01)
    assert_allclose(drawn.var(axis=0), nodes.variances(None)[0], rtol=0.05, atol=0.01)


def test_the_derivative_of_the_means():
    noise, _, _ = mixed_case()
    eta, along = RNG.standard_normal((2, 4, 7))
    ahead, behind = (means(noise.layout, eta + sign * 1e-6 * along) for sign in (1, -1))
    assert_allclose(
        mean_jacobian(noise.layout, eta, along[:, :, None])[:, :, 0], (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("r", [0.01, 0.3, 2.0, 50.0, 1e4])
def test_the_best_dispersion_solves_its_equation(r):
    found = best_dispersion(digamma(r) - np.log(r) - 1.0)
    assert found == pytest.approx(r, rel=1e-6)


def test_the_best_dispersion_is_that_of_gamma_variables():
    scatter = gamma(3.0, scale=1 / 3.0).rvs(100_000, random_state=0)
    assert best_dispersion(np.mean(np.log(scatter) - scatter)) == pytest.approx(3.0, rel=0.03)


# --------------------------------------------------------------------------------------------- telling apart


def raw(values, what):
    return RawColumn("c", np.array(values, dtype=object if what == "text" else float), what)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (raw([0, 1, 1], "boolean"), "bernoulli"),
        (raw([0, 0, 0], "boolean"), "bernoulli"),
        (raw(["a", "b", "a", None], "text"), "bernoulli"),
        (raw(["a", "b", "c", "a"], "text"), "categorical"),
        (raw(["a", "a", "a"], "text"), "categorical"),
        (raw([0.0, 1.0, np.nan, 1.0], "float"), "bernoulli"),
        (raw([0.0, 2.0, 2.0], "float"), "gaussian"),
        (raw([0.0, 3.0, 5.0, 1.0], "float"), "gaussian"),
        (raw([7, 7, 9], "integer"), "bernoulli"),
        (raw([0, 1, 2, 1, 0, 3], "integer"), "poisson"),
        (raw([0, 1, 2, 30, 0, 3], "integer"), "negative_binomial"),
        (raw([1, 2, 3, 4], "integer"), "gaussian"),
        (raw([-1, 0, 3, 4], "integer"), "gaussian"),
    ],
)
def test_kinds_are_told_by_type_and_values(column, kind):
    assert automatic_kind(summarize(column))[0] == kind


def test_names_of_rows_are_no_levels():
    names = raw([f"row {i}" for i in range(9)], "text")
    with pytest.raises(InvalidDataError, match=r"9 different values in 9 rows.*columns=\{'c': 'categorical'\}"):
        choose_columns([names], "auto")
    assert len(choose_columns([names], {"c": "categorical"})[0].levels) == 9
    with pytest.raises(InvalidDataError, match="looks like names of rows"):
        choose_columns([raw([f"row {i % 30}" for i in range(50)], "text")], "auto")


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_rows_are_no_counts(first):
    numbers = raw(np.random.default_rng(0).permutation(20) + first, "integer")
    with pytest.raises(InvalidDataError, match=f"the numbers {first} to {first + 19}, each once"):
        choose_columns([numbers], "auto")
    assert choose_columns([numbers], {0: "gaussian"})[0].kind == "gaussian"
    assert automatic_kind(summarize(raw(np.arange(1990, 2020), "integer")))[0] == "gaussian"


@pytest.mark.parametrize(
    ("values", "what", "wanted", "match"),
    [
        ([np.nan, np.nan], "float", "auto", "holds no value"),
        ([1.0, np.inf], "float", "auto", "infinity .inf. in row 1;"),
        (["a", "b", "c"], "text", "bernoulli", "has 3 levels .*'categorical'"),
        (["a", "b"], "text", "gaussian", "holds text, such as 'a' in row 0"),
        ([1.0, 2.5], "float", "poisson", "holds 2.5 in row 1, but poisson counts"),
        ([1.0, -2.0], "float", "negative_binomial", "holds -2 in row 1"),
    ],
)
def test_what_cannot_be_is_refused(values, what, wanted, match):
    with pytest.raises(InvalidDataError, match=match):
        choose_columns([raw(values, what)], wanted)


def test_columns_are_found_by_name_or_number():
    both = [raw([1.0, 2.5], "float"), RawColumn("counts", np.array([3.0, 7.0]), "float")]
    for key in ("counts", 1, -1):
        assert choose_columns(both, {key: "poisson"})["counts"].kind == "poisson"
    with pytest.raises(InvalidParameterError, match="did you mean 'counts'"):
        choose_columns(both, {"count": "poisson"})
    with pytest.raises(InvalidParameterError, match="there is no column 5: the table has 2"):
        choose_columns(both, {5: "poisson"})


def test_objects_are_read_one_by_one():
    table = np.array([["a", 1.5, True, None], ["b", None, False, 3], ["a", 2, None, 4]], dtype=object)
    assert [column.what for column in read_columns(table)] == ["text", "float", "boolean", "float"]
    with pytest.raises(InvalidDataError, match="column '0' holds neither numbers nor text"):
        read_columns(np.array([[{}], [{}]], dtype=object))


def test_what_was_chosen_can_be_read():
    columns = choose_columns([raw(list("abcdefgh") * 9, "text"), RawColumn("x", np.array([0.5, 1]), "float")], "auto")
    assert repr(columns).splitlines() == [
        "c  categorical [a, b, c, d, e, f and 2 more]: 8 levels",
        "x  gaussian: numbers",
    ]
    assert columns.names == ["c", "x"]


def test_a_kind_is_asked_for_what_it_has_and_never_for_its_name():
    names = {*ALL_KINDS} - {"gaussian"}  # which kernels and neighbourhoods are called too
    compared = {
        (file, each.value)
        for file, tree in syntax_trees(PACKAGE).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value in names
    }
    assert compared == set()


def test_levels_of_an_arrow_dictionary_in_a_pandas_frame_are_those_of_its_values():
    """pandas does not say which levels such a type has."""
    kind = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    (column,) = read_columns(pd.DataFrame({"c": pd.array(["x", "y", None] * 9, dtype=kind)}))
    assert column.declared is None
    assert choose_columns([column], "auto")[0].levels == ("x", "y")


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_sparse_matrix_of_objects_is_read_as_numbers():
    X = scipy.sparse.csr_matrix(np.random.default_rng(0).normal(size=(30, 2)))
    objects = X.copy()
    objects.data = X.data.astype(object)
    settings = {"nodes": 6, "basis": 3, "max_iter": 2, "tol": 0.0}
    assert_array_equal(MixedGTM(1, **settings).fit(objects).weights_, MixedGTM(1, **settings).fit(X).weights_)
    objects.data[4] = "text"
    with pytest.raises(InvalidDataError, match="could not convert string to float"):
        MixedGTM(1, **settings).fit(objects)
