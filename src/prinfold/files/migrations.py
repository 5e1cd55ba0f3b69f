"""Older model files brought to the present format, one version after another.

A migration is a pure function of the JSON of a file: of what it describes, not of its arrays, which keep the names
that the JSON refers to them by. A change that older readers would misread raises the format: add the migration of the
version before it, and store small files of that version under ``tests/fixtures``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

Body = dict[str, Any]


class Renames(NamedTuple):
    """Names that a version changed, by the name of the class that has them.

    ``fields`` are settings, fitted attributes and fields of dataclasses: ``{class: {former: present}}``. ``options``
    are values of settings: ``{class: {setting, as it is called now: {former: present}}}``.
    """

    fields: Mapping[str, Mapping[str, str]]
    options: Mapping[str, Mapping[str, Mapping[str, str]]]


def rename(content: Any, renames: Renames) -> Any:
    """A copy of the JSON of a value with the present names."""
    if isinstance(content, list):
        return [rename(each, renames) for each in content]
    if not isinstance(content, dict):
        return content
    inside = {key: rename(each, renames) for key, each in content.items()}
    owner = inside.get("$object", inside.get("$recipe"))
    if not isinstance(owner, str):
        return inside
    fields, options = renames.fields.get(owner, {}), renames.options.get(owner, {})
    return {part: _rename_part(items, fields, options) for part, items in inside.items()}


def _rename_part(items: Any, fields: Mapping[str, str], options: Mapping[str, Mapping[str, str]]) -> Any:
    """One part of an object, its settings or its fitted attributes, renamed; anything else is returned as it is."""
    if not (isinstance(items, dict) and isinstance(items.get("$dict"), dict)):
        return items
    named = {fields.get(name, name): value for name, value in items["$dict"].items()}
    return {
        "$dict": {
            name: options.get(name, {}).get(value, value) if isinstance(value, str) else value
            for name, value in named.items()
        }
    }


_WITH_BIAS = ("GTM", "GTMSequence", "MixedGTM", "PPS", "GaussianBasis", "HarmonicBasis")
_CURVES = ("PrincipalCurve", "ProbabilisticCurve", "PolygonalCurve", "OrientedPointsCurve")

AMERICAN = Renames(
    fields={
        **{name: {"penalise_bias": "penalize_bias"} for name in _WITH_BIAS},
        **{name: {"begin": "root"} for name in _CURVES},
        "SOM": {"neighbourhood": "neighborhood"},
        "Cloud": {"centres": "centers"},
        "PropertyLandscape": {"centre": "center"},
    },
    options={"GTMMixture": {"partition": {"centres": "centers"}}},
)
"""Names of version 2: spelled as scikit-learn spells them, and the root of a curve."""

MIGRATIONS: dict[int, Callable[[Body], Body]] = {
    1: partial(rename, renames=AMERICAN),
    2: lambda body: body,  # since then times stand apart, and no field may be missing
    3: lambda body: body,  # since then graphs have roots, and branches of a ridge need support; see ``_added``
}
"""``{version: function}`` that turns the JSON of that version into the next one's."""

FORMAT = len(MIGRATIONS) + 1
"""Version of the layout; raised whenever an older reader could misread a file."""


def migrate(body: Body, version: int) -> Body:
    """The JSON of a file of some ``version`` as this version would have written it."""
    for each in range(version, FORMAT):
        body = {**MIGRATIONS[each](body), "format": each + 1}
    return body
