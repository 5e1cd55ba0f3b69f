"""Pictures of choices: lines, marks and words."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from prinfold import GTM, choose, datasets, plot
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data.choices import choice_lines

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture(scope="module")
def choice():
    X = datasets.make_thesis_surface(64, rng=0).X
    grid = {"width": (4.0, 0.5, 1.0), "basis": (2, "none"), "penalize_bias": (False, True)}
    return choose(X, grid, model=GTM(nodes=6, prior_precision="evidence", max_iter=20))


@pytest.fixture(scope="module")
def held():
    X = datasets.make_thesis_surface(64, rng=0).X
    return choose(X, {"regularization": (0.0, 0.01, 0.1, 1.0)}, model=GTM(nodes=6, basis=3), by="held-out", folds=3)


def test_lines_are_the_table(choice) -> None:
    shown = choice_lines(choice)
    assert shown.along == "width"
    assert shown.others == ("basis", "penalize_bias")
    assert [line.label for line in shown.lines] == ["2, False", "2, True"]  # the others failed
    for line, bias in zip(shown.lines, (False, True), strict=True):
        np.testing.assert_array_equal(line.x, [0.5, 1.0, 4.0])
        own = [i for i, c in enumerate(choice.candidates) if c["basis"] == 2 and c["penalize_bias"] is bias]
        np.testing.assert_array_equal(line.y, choice.table["score"][own][[1, 2, 0]])
    assert shown.chosen == (
        choice.settings["width"],
        choice.table["score"].max(where=choice.table["failure"] == "", initial=-9),
    )


def test_other_columns_and_settings(choice) -> None:
    shown = choice_lines(choice, "penalize_bias", "precision")
    assert not shown.numeric
    assert shown.ticks == ((0.0, "False"), (1.0, "True"))
    assert shown.chosen[1] == pytest.approx(1 / choice.model.noise_variance_)


def test_it_is_drawn(choice, held) -> None:
    ax = plot.choice(choice)
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["2, False", "2, True"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.5", "1", "4"]
    assert {text.get_text() for text in ax.texts} == {"chosen"}
    figure = Figure()
    mine = figure.subplots()
    assert plot.choice(held, ax=mine) is mine
    assert mine.get_xscale() == "symlog"
    assert mine.get_legend() is None
    (bars,) = mine.containers
    heights = [segment[1, 1] - segment[0, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(heights, 2 * held.table["standard_error"])
    assert plot.choice(choice, "penalize_bias", values="effective").get_ylabel().startswith("weights")


def test_what_cannot_be_drawn_is_refused(choice) -> None:
    with pytest.raises(InvalidParameterError, match="got int, but a Choice is needed"):
        plot.choice(3)
    with pytest.raises(InvalidParameterError, match="along must be one of 'width', 'basis', 'penalize_bias', got 'x'"):
        plot.choice(choice, "x")
    with pytest.raises(InvalidParameterError, match="values must be one of 'score'"):
        plot.choice(choice, values="failure")
