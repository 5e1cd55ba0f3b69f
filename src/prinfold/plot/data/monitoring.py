"""Data of pictures of a monitor, as plain arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from prinfold._typing import BoolArray, FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.inputs import FittedSurface, table_of

CHARTS = {
    "off": "squared distance from the\nsurface, in units of the noise",
    "along": "rarity of the position\non the surface",
    "density": "minus log density",
}
"""What each chart draws."""

PARTS = {
    "off": "contribution to the squared\ndistance from the surface",
    "along": "contribution to the squared\ndistance from usual rows",
}


class ControlChart(NamedTuple):
    """A control chart: values (n,), large where rows are unusual, the limits, and the rate of alarms."""

    value: FloatArray
    limit: float
    model_limit: float
    rate: float
    words: str
    log: bool


class ContributionBars(NamedTuple):
    """Contributions (D,) of the columns, whether each is too high rather than too low, and their names."""

    value: FloatArray
    raised: BoolArray
    names: tuple[str, ...]
    words: str


def _monitored_surface(model: Any) -> FittedSurface:
    fitted = FittedSurface.of(model)
    if not hasattr(fitted.model, "contributions"):
        raise InvalidParameterError(f"got a {type(fitted.model).__name__}; pass a fitted SurfaceMonitor")
    return fitted


def chart_of(model: Any, X: Any, chart: str) -> ControlChart:
    """Values and limits of a chart."""
    fitted = _monitored_surface(model)
    own = fitted.model
    value = own.measure(fitted.rows(X)).unusualness[:, ["density", "along", "off"].index(chart)]
    name, sign = ("log_density", -1.0) if chart == "density" else (chart, 1.0)
    limit, other = (sign * getattr(each, name) for each in (own.limits_, own.model_limits_))
    return ControlChart(value, limit, other, float(own.alarm_rate), CHARTS[chart], chart == "off")


def contribution_bars(model: Any, X: Any, part: str) -> ContributionBars:
    """Contributions of the columns, on average over rows."""
    fitted = _monitored_surface(model)
    found = fitted.model.contributions(fitted.rows(table_of(X)))
    gap = found.residual if part == "off" else found.shift
    value = getattr(found, part).mean(axis=0)
    names = fitted.feature_names if len(fitted.feature_names) == len(value) else tuple(map(str, range(len(value))))
    return ContributionBars(value, gap.mean(axis=0) >= 0, names, PARTS[part])
