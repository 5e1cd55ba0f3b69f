"""Pictures of a monitor: what is drawn is what it measures, with the limits that decide."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.plot.test_style import legend_of

from prinfold import GTM, SurfaceMonitor, datasets, plot
from prinfold.exceptions import InvalidDataError, InvalidParameterError


@pytest.fixture(autouse=True)
def no_figures_left() -> Any:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return datasets.make_pipe_flow(150, rng=0).X


@pytest.fixture(scope="module")
def watcher(rows: np.ndarray) -> SurfaceMonitor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        surface = GTM(nodes=7, basis=3, max_iter=8, tol=0)
        return SurfaceMonitor(surface, alarm_rate=0.1, n_simulated=200).fit(rows)


@pytest.mark.parametrize("chart", ["off", "along", "density"])
def test_charts_show_the_measure_and_its_limits(watcher: Any, rows: np.ndarray, chart: str) -> None:
    new = rows * np.linspace(0.8, 1.5, len(rows))[:, None]
    _, ax = plt.subplots()
    assert plot.monitor(watcher, new, chart=chart, ax=ax) is ax
    name, sign = ("log_density", -1) if chart == "density" else (chart, 1)
    value, limit = sign * getattr(watcher.measure(new), name), sign * getattr(watcher.limits_, name)
    line, own, other = ax.lines
    assert_array_equal(line.get_ydata(), value)
    assert_allclose(own.get_ydata(), limit)
    assert_allclose(other.get_ydata(), sign * getattr(watcher.model_limits_, name))
    usual, alarm = [each.get_offsets() for each in ax.collections if isinstance(each, PathCollection)]
    assert_array_equal(alarm[:, 1], value[value > limit])
    assert len(usual) + len(alarm) == len(rows)
    assert legend_of(ax) == ["usual", "alarm", "limit (0.1)", "the model's own"]


def test_alarms_of_the_density_are_those_that_predict_names(watcher: Any, rows: np.ndarray) -> None:
    new = rows * np.linspace(0.8, 1.5, len(rows))[:, None]
    ax = plot.monitor(watcher, new, chart="density", show_model=False, times=np.arange(len(rows)) / 10)
    alarm = [each.get_offsets() for each in ax.collections if isinstance(each, PathCollection)][1]
    assert_allclose(alarm[:, 0], np.flatnonzero(watcher.predict(new) == -1) / 10)
    assert ax.get_xlabel() == "time"
    assert len(ax.lines) == 2


@pytest.mark.parametrize("part", ["off", "along"])
def test_bars_are_the_contributions(watcher: Any, rows: np.ndarray, part: str) -> None:
    new = rows[:5] + 3.0 * np.eye(12)[4]
    ax = plot.contributions(watcher, new, part=part)
    heights = {round(bar.get_x() + 0.4): bar.get_height() for bar in ax.patches}
    wanted = getattr(watcher.contributions(new), part).mean(axis=0)
    assert_allclose([heights[j] for j in range(12)], wanted)
    if part == "off":
        assert "too high" in legend_of(ax)


def test_one_row_and_names_of_columns(rows: np.ndarray) -> None:
    frame = pd.DataFrame(rows, columns=[f"beam {j}" for j in range(12)])
    surface = GTM(nodes=6, basis=3, max_iter=4, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = make_pipeline(StandardScaler(), SurfaceMonitor(surface, alarm_rate=0.1, n_simulated=50)).fit(frame)
    ax = plot.contributions(pipe, frame.iloc[[3]])
    assert [text.get_text() for text in ax.get_xticklabels()] == list(frame.columns)
    assert_allclose(len(plot.monitor(pipe, frame).lines[0].get_ydata()), 150)
    single = plot.contributions(pipe[-1], pipe[0].transform(frame)[3])
    assert_allclose([bar.get_height() for bar in single.patches], [bar.get_height() for bar in ax.patches])


def test_wrong_calls_are_named(watcher: Any, rows: np.ndarray) -> None:
    with pytest.raises(InvalidParameterError, match="chart must be 'off', 'along' or 'density', got 'spe'"):
        plot.monitor(watcher, rows, chart="spe")
    with pytest.raises(InvalidParameterError, match="part must be 'off' or 'along', got 'density'"):
        plot.contributions(watcher, rows, part="density")
    with pytest.raises(InvalidDataError, match=r"times has shape \(3,\) for 150 rows"):
        plot.monitor(watcher, rows, times=[1, 2, 3])
    with pytest.raises(InvalidParameterError, match="got a GTM; pass a fitted SurfaceMonitor"):
        plot.monitor(watcher.surface_, rows)
