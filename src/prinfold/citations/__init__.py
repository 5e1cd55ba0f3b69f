"""Citations for a model: those of its method, from the register, and those that its settings add."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from prinfold.exceptions import InvalidParameterError
from prinfold.methods import METHODS, method_of

__all__ = ["Citations", "Reference", "cite"]


@dataclass(frozen=True)
class Reference:
    """A publication: ``fields`` are those of BibTeX, authors as ``"Family, I. N. and …"``."""

    key: str
    kind: str
    fields: dict[str, str]

    @property
    def text(self) -> str:
        """The reference as one line of plain text."""
        said = self.fields
        where = f"{said.get('school') or said.get('journal') or said.get('booktitle') or said.get('publisher') or ''}"
        where = f"PhD thesis, {where}" if self.kind == "phdthesis" else where
        where += f" {said['volume']}" if "volume" in said else ""
        where += f"({said['number']})" if "number" in said else ""
        where += f", {said['pages'].replace('--', '–')}" if "pages" in said else ""
        year = f" ({said['year']})" if "year" in said else ""
        note = f" {said['note']}." if "note" in said else ""
        return f"{_author_names(said['author'])}{year}. {said['title']}.{f' {where}.' if where else ''}{note}"

    @property
    def bibtex(self) -> str:
        """The reference as a BibTeX entry; the title keeps its capitals."""
        lines = (
            f"  {name} = {{{{{value}}}}}" if name == "title" else f"  {name} = {{{value}}}"
            for name, value in self.fields.items()
        )
        return f"@{self.kind}{{{self.key},\n" + ",\n".join(lines) + "\n}"


@dataclass(frozen=True)
class Citations:
    """References in the order in which to give them; prints as plain text, and has :attr:`bibtex` besides."""

    references: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """All entries, for a ``.bib`` file."""
        return "\n\n".join(each.bibtex for each in self.references) + "\n"

    def __str__(self) -> str:
        return "\n".join(f"- {each.text}" for each in self.references)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A list within a notebook."""
        items = "".join(f"<li>{escape(each.text)}</li>" for each in self.references)
        return f"<ul>{items}</ul><pre>{escape(self.bibtex)}</pre>"


def cite(model: Any = None) -> Citations:
    """List the references to cite for a model: prinfold, and the papers of the methods that the model uses.

    Parameters
    ----------
    model : estimator, pipeline, class or None, default=None
        Fitted or not. Of pipelines, and of models made of others, every part is looked at; settings that rest on a
        paper of their own, such as ``noise="student"``, add it. None is prinfold alone.

    Returns
    -------
    Citations
        Prints as plain text; ``.bibtex`` holds the entries for a ``.bib`` file.
    """
    if model is not None and not isinstance(model, type) and not hasattr(model, "get_params"):
        remedy = f"prinfold.{model}, without quotes" if str(model) in METHODS else "the model itself, or nothing"
        raise InvalidParameterError(f"cite needs an estimator, a pipeline or a class, got {model!r}; pass {remedy}")
    keys = [key for part in ([] if model is None else _parts(model)) for key in _keys(part)]
    found = (REFERENCES[key] for key in dict.fromkeys(keys))
    return Citations((_software(), *found))


def _software() -> Reference:
    fields = {
        "author": "{The prinfold developers}",
        "title": "prinfold: principal curves, surfaces and manifolds",
        "note": f"Version {version('prinfold')}",
    }
    return Reference("prinfold", "misc", fields)


def _parts(model: Any) -> Iterator[Any]:
    """A model, and the models that it is made of."""
    yield model
    if isinstance(model, type):
        return
    for value in vars(model).values():
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
        for each in inside:
            last = each[-1] if isinstance(each, tuple) and each else each  # a step of a pipeline has a name
            if hasattr(last, "get_params") and not isinstance(last, type):
                yield from _parts(last)


def _keys(part: Any) -> Iterator[str]:
    """Keys of what a model rests on, and of what its settings do."""
    kind = part if isinstance(part, type) else type(part)
    method = method_of(kind)
    yield from OTHERS.get(kind.__name__, ()) if method is None else method.cites
    if hasattr(part, "get_params") and not isinstance(part, type):
        for name, value in part.get_params(deep=False).items():
            said = str(value) if isinstance(value, str | bool) else type(value).__name__
            yield from SETTINGS.get((name, said), ())


def _author_names(authors: str) -> str:
    """Authors as they are read: I. Family and O. Other, for ``"Family, I. and Other, O."``."""
    named = [" ".join(reversed(each.strip("{}").split(", "))) for each in authors.split(" and ")]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


# ------------------------------------------------------------------------------------------------------- the tables


def _read() -> dict[str, Reference]:
    """The entries of ``references.bib``, which is laid out with one field per line."""
    text = files("prinfold.citations").joinpath("references.bib").read_text(encoding="utf-8")
    found = {}
    for kind, key, body in re.findall(r"^@(\w+)\{(\w+),\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        fields = re.findall(r"^  (\w+) = \{(.*)\},?$", body, re.MULTILINE)
        found[key] = Reference(key, kind, {name: value.removeprefix("{").removesuffix("}") for name, value in fields})
    return found


REFERENCES = _read()
"""Every publication that methods rest on, by its key."""

OTHERS: dict[str, tuple[str, ...]] = {"DenoisedSignal": ("ozertem2008",)}
"""Papers of what is no estimator, by the name of its class."""

SETTINGS: dict[tuple[str, str], tuple[str, ...]] = {
    ("basis", "GaussianProcess"): ("bishop1998developments",),
    ("basis", "ElasticNetBasis"): ("utsugi1997", "durbin1989"),
    ("trainer", "Incremental"): ("bishop1998developments",),
    ("trainer", "incremental"): ("bishop1998developments",),
    ("noise", "LowRankNoise"): ("bishop1998developments",),
    ("noise", "aligned"): ("bishop1998developments",),
    ("noise", "AlignedNoise"): ("bishop1998developments",),
    ("init", "cycles"): ("desilva2011",),
    ("noise", "student"): ("vellido2006",),
    ("noise", "StudentNoise"): ("vellido2006",),
    ("prior_precision", "evidence"): ("mackay1992",),
    ("bias_correction", "True"): ("banfield1992", "chang1998"),
}
"""What settings add, by parameter and by the word or the class of its value."""
