"""What estimators say, in options of the command line: no message speaks of Python to someone who typed a command.

``PHRASES`` are whole pieces of advice; ``NAMES`` are arguments that have options of their own. Any other setting that a
message gives a value, such as ``kernel='gaussian'``, is what ``--set`` takes.
"""

from __future__ import annotations

import re

from prinfold.cli.catalogue import settings

PHRASES = {
    "Look at mode_distance before trusting their coordinates, use posterior_mode for them, or try another init or "
    "fewer nodes.": "One thing to try is another start of the fit, --set init=isomap; `prinfold transform --modes` "
    "gives the likeliest place of each row.",
    "The objective changed by less than tol.": "Finished: more iterations would hardly change the surface.",
    "The objective has not risen by tol for ten iterations.": "Finished: ten more iterations have not made the surface "
    "better.",
    "The iteration limit max_iter was reached before the objective settled.": "Stopped at the limit of iterations "
    "before the surface had settled.",
    "A stiffer surface (a larger width or regularization) or another start may do without.": "A stiffer surface "
    "(--set width=2) or another start (--set init=isomap) may do without.",
    "(wider or fewer basis functions, more regularization)": "(wider basis functions, such as --set width=2)",
    "use fewer basis functions or nodes, more regularization, or a higher floor": "use fewer basis functions or nodes, "
    "such as --set basis=4 or --set nodes=8, or --set regularization=1",
    "use fewer basis functions or more nodes": "use fewer basis functions (--set basis=N) or more nodes (--set "
    "nodes=N)",
    "subtract what is common to all rows, or use float64": "subtract from each column what is common to all rows",
    "reconstruct(X) gives what the model expects of rows, and score_samples(X) how likely they are": "`prinfold "
    "transform` gives their coordinates, and how likely they are",
    "ModeClustering finds the modes of one": "take more columns",
    "Try another bandwidth or n_components": "Try another bandwidth (--set bandwidth=H) or another --dimensions",
    "try another init or bandwidth": "try another start (--set init=isomap) or bandwidth (--set bandwidth=H)",
    "criterion must be one of": "--criterion must be one of",
    "methods names": "--methods names",
    "; pass a number": "; give one with --set bandwidth=H",
}
"""Advice in words of Python → the same in options."""

NAMES = {"n_components": "--dimensions", "random_state": "--seed", "max_rows": "--max-rows"}
"""Arguments of Python → options that are theirs alone."""

_WITH_VALUE = NAMES | {"criterion": "--criterion", "folds": "--folds", "methods": "--methods"}
"""The same of words that mean something by themselves, and are arguments only with a value."""

_PLAIN = {
    r"of the rows the posterior mean lies over [\d.]+ node spacings from the mode: the surface passes near them in "
    r"several places, or the noise spans many nodes\.": "of the rows the map is not sure where they belong: they fit "
    "about as well in places that are far apart on it, and are drawn between these.",
    r"n_features = (\d+)": r"\1 column(s)",
    r"n_samples = (\d+)": r"\1 row(s)",
    r"(?<![\d.])1 (\w+)\(s\)": r"1 \1",
    r"(\d) (\w+)\(s\)": r"\1 \2s",
}
"""Numbers of things, as one says them, and sentences with numbers in them."""

_VALUE = r"'[^']*'|\"[^\"]*\"|\{[^}]*\}|[-+]?[\w.]+"
_GIVEN = re.compile(rf"[A-Z]\w*\([^)]*\)|--\S+ \S+|(set )?(?<![\w.(])([a-z]\w*)=({_VALUE})(?![\w(])")
"""A setting with its value, or else what has settings in it and stays as it is: an object, an option."""

_URGED = re.compile(r"(?<!-)\b([Rr]aise|lower|set|give) ([a-z]\w*_\w+|tol|bandwidth)\b(?! (?:is|must))")
"""A setting that is to be changed somehow."""


def as_options(words: str) -> str:
    """Advice that Python gives, with the options of the command line in it."""
    for python, option in PHRASES.items():
        words = words.replace(python, option)
    for pattern, plain in _PLAIN.items():
        words = re.sub(pattern, plain, words)
    words = _GIVEN.sub(_set, words)
    words = _URGED.sub(lambda found: f"{found[1]} {_named(found[2])}".replace("set --set", "--set"), words)
    return re.sub(rf"(?<![\w(.-])({'|'.join(NAMES)})\b", lambda found: NAMES[found[1]], words)


def _set(found: re.Match[str]) -> str:
    """``n_components=2`` → ``--dimensions 2``, ``kernel='gaussian'`` → ``--set kernel=gaussian``."""
    verb, name, value = found[1] or "", found[2], found[3]
    if name is None or name not in {*_WITH_VALUE, *settings()}:
        return found[0]
    plain = value[1:-1] if value[0] in "'\"" else value
    if name in _WITH_VALUE:
        return f"{verb}{_WITH_VALUE[name]} {plain}"
    return f'--set "{name}={plain}"' if plain.startswith("{") else f"--set {name}={plain}"


def _named(name: str) -> str:
    return NAMES.get(name) or (f"--set {name}" if name in settings() else name)
