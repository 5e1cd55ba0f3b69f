"""Pictures of bands about ridges: what they show, and that it ends up on paper."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, PathCollection
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from prinfold import DensityRidge, plot
from prinfold.density.ridges import support
from prinfold.density.ridges.bands import RidgeBands
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.plot.bands import band_of

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-2, 2, size=(30, 2))


def bands(D: int = 2, lost: bool = False) -> RidgeBands:
    points = np.column_stack([np.linspace(0, 1, 12), np.zeros((12, D - 1))])
    distance = RNG.uniform(0.01, 0.1, size=(20, 12))
    if lost:
        distance[:10, 3] = np.inf
    return RidgeBands(points, distance, np.full(12, 0.08), 0.9)


def test_the_picture_holds_points_discs_and_rows():
    given = bands(lost=True)
    shown = band_of(given, ROWS)
    assert shown.endless.sum() == 1
    assert shown.radius[3] == 0.0
    assert_allclose(shown.value, given.found)
    for points in (ROWS, given.points + shown.radius[:, None], given.points - shown.radius[:, None]):
        assert (points > shown.low).all()
        assert (points < shown.high).all()


@pytest.mark.parametrize("lost", [False, True])
def test_discs_have_the_radius_of_the_band(lost):
    given = bands(lost=lost)
    ax = plot.ridge_bands(given, ROWS)
    (discs,) = (each for each in ax.collections if isinstance(each, EllipseCollection))
    assert_allclose(discs.get_widths(), 2 * band_of(given).radius)
    assert sum(isinstance(each, PathCollection) for each in ax.collections) == 2 + lost
    ax.figure.canvas.draw()


def test_p_values_can_be_the_colours():
    ax = plot.ridge_bands(bands(), p_value=np.linspace(0, 1, 12))
    assert [each.get_ylabel() for each in ax.child_axes] == ["p-value"]


def test_in_space_the_points_are_drawn():
    ax = plot.ridge_bands(bands(3))
    assert ax.name == "3d"
    ax.figure.canvas.draw()


def test_given_axes_are_used():
    ax = Figure().add_subplot()
    assert plot.ridge_bands(bands(), ax=ax) is ax


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidParameterError, match="two or three columns, got 5; choose some"):
        plot.ridge_bands(bands(5))
    with pytest.raises(InvalidDataError, match=r"a p-value for each of the 12 points, got shape \(3,\)"):
        plot.ridge_bands(bands(), p_value=np.ones(3))


def test_branches_that_do_not_persist_are_grey_and_dotted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "PERSISTENT", 0.6)  # in two columns hardly any branch has less than 0.2
    rng = np.random.default_rng(0)
    line = np.stack([rng.uniform(0, 4, 200), 1.0 + rng.normal(0, 0.03, 200)], axis=1)
    X = np.concatenate([line, rng.uniform((0, 0), (4, 2), (100, 2))])
    model = DensityRidge(bandwidth=0.1, min_support=0.0).fit(X)
    weak = int(np.count_nonzero(~model.persistent_branches_))
    assert 0 < weak < len(model.branch_support_)
    drawn = plot.ridge(model, show_density=False).lines
    assert sum(each.get_linestyle() == ":" for each in drawn) == weak
    assert sum(each.get_linestyle() == "-" for each in drawn) == 2 * (len(model.branch_support_) - weak)
