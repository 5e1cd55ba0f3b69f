"""Numbers and JSON in one safetensors container, with a checksum over both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as pack

from prinfold._typing import FloatArray


def to_container(key: str, body: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> bytes:
    """The bytes of a file that holds JSON, under a key that tells its kind, and arrays."""
    text = json.dumps(body, allow_nan=False)
    return pack(dict(arrays), metadata={key: text, "digest": digest(text, arrays)})


def read_container(key: str, path: Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """JSON and arrays of a file; a ValueError for a file of another kind or a damaged one."""
    try:
        with safe_open(path, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (it is no mapping)
        text = metadata[key]
    except (SafetensorError, LookupError, TypeError) as error:
        raise ValueError("it is of another kind, or was cut short") from error
    if metadata.get("digest") != digest(text, arrays):
        raise ValueError("its digest differs")
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("it holds no fields")
    return body, arrays


def digest(text: str, arrays: Mapping[str, FloatArray]) -> str:
    """The checksum (SHA-256) of JSON and arrays, of model files and checkpoints alike."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name}{array.dtype.str}{array.shape}".encode())
        found.update(array.data)
    return found.hexdigest()
