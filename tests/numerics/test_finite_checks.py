"""Compiled kernels run on checked input only: what would lead them astray is refused by name before they begin."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.density import ring_counts as rings
from prinfold.density.adaptive_sums import ScaledSums
from prinfold.density.kernel_sums import ACCURACY, make_sums
from prinfold.density.ring_counts import make_rings
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.numerics import cell_lists as cells
from prinfold.numerics.cell_lists import PairBuffers, make_grid, sort_into_cells
from prinfold.numerics.finite_checks import require_finite
from prinfold.numerics.kernel_mixtures import Mixture
from prinfold.numerics.penalized_splines import SplineSpace
from prinfold.numerics.polylines import nearest_on_polyline, nearest_on_polyline_reference
from prinfold.numerics.radial_kernels import PROFILES

WRONG = [np.nan, np.inf, -np.inf]


def table(n=40, D=2):
    return np.random.default_rng(0).normal(size=(n, D))


def spoiled(value, of=None):
    X = table() if of is None else of
    X[7, 1] = value
    return X


@pytest.mark.parametrize("value", [*WRONG, 2.0, -2.0])
def test_the_first_wrong_number_is_named(value):
    with pytest.raises(InvalidDataError, match=r"places must be finite.*got .* in row 7, column 1; rescale"):
        require_finite("places", spoiled(value, of=np.zeros((40, 2))), "rescale", 2.0)


def test_what_is_finite_passes():
    for fine in (table(), np.empty((0, 3)), np.array([1e308, -1e308])):
        require_finite("places", fine, "rescale")


# ---------------------------------------------------------------------------------------------- polylines


@pytest.mark.parametrize("value", [*WRONG, 1e200])
def test_vertices_that_are_no_numbers_have_no_feet(value):
    with pytest.raises(InvalidDataError, match="vertices of a curve must be finite"):
        nearest_on_polyline(table(), spoiled(value))
    with pytest.raises(InvalidDataError, match="vertices of a curve must be finite"):
        nearest_on_polyline(table(), np.full((9, 2), value))
    with pytest.raises(InvalidDataError, match="rows must be finite"):
        nearest_on_polyline(spoiled(value), table())


@pytest.mark.parametrize("vertices", [np.zeros((1, 2)), np.zeros((0, 2)), np.zeros((5, 3)), np.zeros(4)])
def test_what_is_no_polyline_is_refused(vertices):
    with pytest.raises(InvalidDataError, match="at least two vertices"):
        nearest_on_polyline(table(), vertices)


def test_rows_in_any_layout_have_the_same_feet():
    X, vertices = table(60, 4), np.cumsum(table(12, 4), axis=0)
    fine = nearest_on_polyline_reference(X, vertices)
    for layout in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1]):
        assert_allclose(nearest_on_polyline(layout, np.asfortranarray(vertices)).squared, fine.squared, atol=1e-12)
    assert len(nearest_on_polyline(X[:0], vertices).segment) == 0


@pytest.mark.parametrize("scale", [1e-160, 1e149])
def test_the_sweep_is_its_twin_at_the_ends_of_the_range(scale):
    X, vertices = table(60, 3), np.cumsum(table(12, 3), axis=0)
    fast, slow = nearest_on_polyline(X * scale, vertices * scale), nearest_on_polyline_reference(X, vertices)
    if scale > 1:  # squares of the small are nil
        assert_allclose(fast.squared / scale / scale, slow.squared, rtol=1e-12)
    assert ((fast.segment >= 0) & (fast.segment < 11)).all()
    assert np.isfinite(fast.share).all()


# ------------------------------------------------------------------------------------------- cells and mixtures


@pytest.mark.parametrize("make", [sort_into_cells, make_grid])
def test_cells_are_made_of_numbers(make):
    for value in WRONG:
        with pytest.raises(InvalidDataError, match="latent points must be finite"):
            make(spoiled(value), 1.0)
    for reach in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidParameterError, match="a reach above 0"):
            make(table(), reach)
    with pytest.raises(InvalidParameterError, match="cells need points"):
        make(table()[:0], 1.0)


@pytest.mark.parametrize("most", [2**62, 2**16, 2**9])
def test_cells_too_many_to_number_are_cut_along_fewer_axes(monkeypatch, most):
    """Four axes of points that are all far apart: the keys of their cells must not run over."""
    monkeypatch.setattr(cells, "_MOST_KEYS", most)
    X = 20.0 * table(50, 4)
    X[:25] = X[25:] + 0.2
    made = sort_into_cells(X, 1.0)
    pairs, _ = made.pairs(slice(0, len(X)), PairBuffers(int(made.counts.sum())))
    found = {(int(i), int(j)) for r, i in enumerate(pairs.rows) for j in pairs.near[pairs.cuts[r] : pairs.cuts[r + 1]]}
    near = np.square(X[:, None] - X).sum(axis=2) < 1.0
    assert found == {(i, j) for i, j in zip(*np.nonzero(near), strict=True) if i != j}


@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
def test_places_and_centres_of_a_mixture_are_numbers(monkeypatch, kernel):
    monkeypatch.setattr("prinfold.numerics.kernel_mixtures._COMPILED_FROM", 1)
    weight, profile = np.ones(40), PROFILES[kernel]
    with pytest.raises(InvalidDataError, match="places of a density must be finite"):
        Mixture(table(), weight, profile).log_density(spoiled(np.nan))
    for value in WRONG:
        with pytest.raises(InvalidDataError, match="centres of kernels must be finite"):
            Mixture(spoiled(value), weight, profile).log_density(table())


# ------------------------------------------------------------------------------------------------ other families


@pytest.mark.parametrize("accuracy", ACCURACY)
def test_places_of_gaussian_sums_are_numbers(monkeypatch, accuracy):
    monkeypatch.setattr("prinfold.density.kernel_sums._COMPILED_FROM", 1)
    sums = make_sums(table(), np.ones(40), ACCURACY[accuracy])
    with pytest.raises(InvalidDataError, match="places of a density must be finite"):
        sums.moments(spoiled(np.nan))
    with pytest.raises(InvalidDataError, match="places of a density must be finite"):
        make_sums(spoiled(np.nan), np.ones(40), ACCURACY[accuracy])
    assert np.isfinite(sums.log_sum(spoiled(np.inf))).all(), "what is out of all range is held at its end"


def test_places_of_scaled_sums_are_numbers():
    sums = ScaledSums(table(), np.ones(40), np.linspace(0.5, 3.0, 40))
    with pytest.raises(InvalidDataError, match="places of a density must be finite"):
        sums.derivatives(spoiled(np.nan))


@pytest.mark.parametrize("compiled_from", [1, 10**9])
def test_rings_are_made_of_numbers(monkeypatch, compiled_from):
    monkeypatch.setattr(rings, "_COMPILED_FROM", compiled_from)
    for value in WRONG:
        with pytest.raises(InvalidDataError, match="rows must be finite"):
            make_rings(spoiled(value), np.ones(40), np.arange(5))


def test_splines_are_fitted_at_numbers():
    for value in WRONG:
        with pytest.raises(InvalidDataError, match="places along a curve must be finite"):
            SplineSpace(8, False).moments(np.append(np.linspace(0, 1, 39), value), table(), np.ones(40))
    beyond = SplineSpace(8, False).moments(np.full(40, 1e100), table(), np.ones(40))
    assert beyond.gram[:, :7].sum() == 0, "places beyond the end belong to the last cell"


# -------------------------------------------------------------------------------------------- every index checked

PLANTED = """
import numpy as np
from numba import njit
from numba.extending import overload, register_jitable
from prinfold.gtm._e_step_jit import compiled
from prinfold.numerics import _small_products_jit as products

def borrowed(a, i):
    raise NotImplementedError

@overload(borrowed, jit_options={"fastmath": {"reassoc", "contract"}})
def _borrowed(a, i):
    return lambda a, i: a[i]

loose = njit(nogil=True, fastmath={"reassoc", "contract"})(lambda a, i: a[i])
inner = register_jitable(lambda a, i: a[i])
def lanes(a, i):
    products.one_by_one(np.ones((1, 1)), np.ones((1, 16)), a.reshape(1, 3), 0, i)

kernels = [lambda a, i: a[i], lambda a, i: inner(a, i), lambda a, i: loose(a, i), lambda a, i: borrowed(a, i), lanes]
found = 0
for kernel in kernels:
    try:
        compiled(kernel)(np.zeros(3), 3)
    except IndexError:
        found += 1
print(found)
"""


def test_a_wrong_index_is_found_where_indices_are_checked(tmp_path):
    """``make test-bounds`` is worth something only if every kind of kernel heeds the variable."""
    script = tmp_path / "planted.py"
    script.write_text(PLANTED, encoding="utf-8")
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, script], env=checked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5"
