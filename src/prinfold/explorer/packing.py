"""Numbers and texts in the form in which a page holds them."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

_TYPES = {"float64": "f8", "float32": "f4", "int32": "i4", "int16": "i2", "uint8": "u1"}

_SCRIPTS = ("decode.js", "chart.js", "paint.js", "profile.js", "rows.js", "selection.js", "build.js", "explorer.js")
"""Parts of the script, in the order in which they are joined to one module."""


def asset(name: str) -> str:
    """Read the text of a part of the page."""
    return files("prinfold.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def script() -> str:
    """The module that makes a page of its data: ``mount(element, data)``."""
    return "\n".join(asset(name) for name in _SCRIPTS)


def fill_page(template: str, data: Any, *, style: str, script: str, **parts: str) -> str:
    """A page with its style, its script and the data that the script reads, which allows nothing else to be loaded."""
    # Nothing within the data may end the script that it is in.
    text = json.dumps(pack(data), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    own = {"version": version("prinfold"), "policy": content_policy(style, script), "style": style, "script": script}
    return template.format(**own, data=text, **parts)


def content_policy(style: str, script: str) -> str:
    """A Content-Security-Policy that lets a page run one script and one style, show its own pictures, and no more."""
    return (
        f"default-src 'none'; script-src '{_hash_source(script)}'; style-src '{_hash_source(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    """The hash by which a browser knows a text that it may use."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def pack(tree: Any) -> Any:
    """Arrays as base64 of little-endian numbers, whatever else as JSON has it."""
    if isinstance(tree, np.ndarray):
        array = np.ascontiguousarray(tree if tree.dtype.name in _TYPES else tree.astype(np.float64))
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        text = base64.b64encode(little.tobytes()).decode("ascii")
        return {"type": _TYPES[array.dtype.name], "shape": list(array.shape), "data": text}
    if isinstance(tree, dict):
        return {key: pack(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [pack(each) for each in tree]
    return tree.item() if isinstance(tree, np.generic) else tree
