"""Model files: numbers and JSON, nothing that runs.

A ``.prinfold`` file is a safetensors container. Arrays lie in it as they are; everything else is one JSON
string, in which an array is a reference, an object is the *name* of a registered class with its
fields, and nothing is ever imported by path. A digest over both tells altered files from whole ones.
"""

from __future__ import annotations

import enum
import json
import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as pack

from prinfold._typing import FloatArray
from prinfold.exceptions import (
    CorruptModelFileError,
    ModelFileError,
    NewerModelFileError,
    NoModelFileError,
    NotStorableError,
    UnknownModelError,
)
from prinfold.files.atomic import as_path, check_target, write_bytes
from prinfold.files.container import digest
from prinfold.files.kinds import Kinds, check_fields, describe, texts
from prinfold.files.latent_kinds import LATENT_KINDS
from prinfold.files.migrations import FORMAT, migrate
from prinfold.files.steps import INNER_ATTRIBUTES, STEP_KINDS, STEPS, revive_step
from prinfold.latent import Atlas, Branches, Cloud, Hexagons, Lattice, Points, Sphere
from prinfold.methods import import_all
from prinfold.numerics.radial_kernels import Gaussian, Power
from prinfold.validation.settings import integer

_KEY = "prinfold"
_MOST_JSON = 2**26
_MOST_ARRAYS = 10_000
_MOST_BYTES = 2**33
_KINDS = frozenset("fiub")
_TIMES_SUFFIX = ".history_.seconds"
"""End of the name of the recorded times, which differ between runs: stored apart, and left out of the digest."""

_MISFIT_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""Errors that are raised where an object is built from parts that do not fit together."""

C = TypeVar("C", bound=type)
_classes: dict[str, Any] = {
    each.__name__: each for each in (Atlas, Branches, Cloud, Gaussian, Hexagons, Lattice, Points, Power, Sphere)
}


def storable(cls: C) -> C:
    """Register a dataclass, an enum or an estimator under its own name, so that files may hold it.

    An estimator says what to keep in ``_stored``, its fitted attributes and their kinds, and rebuilds the
    rest in ``_restore()``. What it keeps now and older files lack has a value in ``_added``. A dataclass keeps all of
    its fields, and gives their kinds in ``_kinds``.
    """
    _classes[cls.__name__] = cls
    return cls


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a scikit-learn ``Pipeline`` that ends in one, to a file.

    Parameters
    ----------
    model : estimator
        A fitted prinfold estimator, or a ``Pipeline`` that ends in one. Its other steps may be of
        scikit-learn's StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler, Normalizer, PowerTransformer,
        QuantileTransformer, SimpleImputer (of numbers) and PCA.
    path : str or path
        Where to write; by custom the name ends in ``.prinfold``. What is there is replaced once all of the new file
        is on the disk, or else stays as it is.
    """
    if not _is_model(model):
        raise NotStorableError(
            f"got {type(model).__name__}, but a model file holds a prinfold estimator, "
            "or a scikit-learn Pipeline of scaling or whitening steps that ends in one"
        )
    check_target(path, "model.prinfold")
    arrays: dict[str, FloatArray] = {}
    content = _encode(model, type(model).__name__, arrays)
    body = {"format": FORMAT, "model": content}
    body["digest"] = _digest(body, arrays)
    packed = pack(arrays, metadata={_KEY: _dump(body)})
    if len(packed) > _MOST_BYTES:
        raise NotStorableError(f"the model takes {len(packed)} bytes, more than the {_MOST_BYTES} of a model file")
    write_bytes(path, packed)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save` wrote.

    Parameters
    ----------
    path : str or path
        A model file.

    Returns
    -------
    estimator
        The fitted estimator or pipeline.
    """
    import_all()
    body, arrays = _read(as_path(path))
    version = body.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CorruptModelFileError(f"{path} has no valid format version (got {version!r}); save the model again")
    if version > FORMAT:
        raise NewerModelFileError(
            f"{path} has format {version}, but this prinfold reads up to {FORMAT}; upgrade prinfold to open it"
        )
    try:
        if body.pop("digest", None) != _digest(body, arrays):
            raise CorruptModelFileError(f"{path} has been altered or damaged since it was saved (its digest differs)")
        source = _Source(arrays, complete=version == FORMAT)
        model = _decode(migrate(body, version)["model"], source, "the model")
    except ModelFileError:
        raise
    except _MISFIT_ERRORS as error:
        raise CorruptModelFileError(f"{path} does not describe a model: {error}") from error
    if not _is_model(model):
        raise CorruptModelFileError(f"{path} does not describe a model, but a {type(model).__name__}")
    if not _is_fitted(model):
        raise CorruptModelFileError(f"{path} does not describe a fitted model, but one that is not fitted")
    return model


def require_sound(model: Any) -> None:
    """Raise an error for a fitted model whose attributes are not of the shapes and types that its class declares.

    A model that no file can hold is not checked.
    """
    import_all()
    arrays: dict[str, FloatArray] = {}
    try:
        content = json.loads(_dump({"model": _encode(model, type(model).__name__, arrays)}))["model"]
    except NotStorableError:
        return
    try:
        _decode(content, _Source(arrays, complete=True), "the model")
    except _MISFIT_ERRORS as error:
        raise CorruptModelFileError(str(error)) from error


def _is_model(value: Any) -> bool:
    """Whether a value is one of our estimators, or a pipeline that ends in one."""
    if _is_pipeline(value):
        return bool(value.steps) and _is_model(value.steps[-1][1])
    return hasattr(type(value), "_stored") and _classes.get(type(value).__name__) is type(value)


def _is_fitted(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, has all that a fit leaves behind."""
    if _is_pipeline(model):
        return _is_fitted(model.steps[-1][1])
    return all(hasattr(model, attribute) for attribute in model._stored)


def _is_pipeline(value: Any) -> bool:
    return type(value).__name__ == "Pipeline" and type(value).__module__.startswith("sklearn.")


# --------------------------------------------------------------------------------------------- encoding


def _encode(value: Any, where: str, arrays: dict[str, FloatArray]) -> Any:
    """JSON for a value; arrays go to ``arrays`` under the name of the place they came from."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item(), where, arrays)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, arrays)
    if isinstance(value, list):
        if where.endswith(_TIMES_SUFFIX):
            return {"$measured": _encode_array(np.asarray(value, dtype=np.float64), where, arrays)["$array"]}
        return [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$tuple": [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"$dict": {key: _encode(item, f"{where}.{key}", arrays) for key, item in value.items()}}
    return _encode_object(value, where, arrays)


def _encode_array(value: FloatArray, where: str, arrays: dict[str, FloatArray]) -> Any:
    if value.dtype.kind in "OU" and all(isinstance(item, str) for item in value.ravel()):
        return {"$strings": value.tolist()}
    if value.dtype == object and all(isinstance(item, int | float) for item in value.ravel()):
        value = value.astype(np.float64)  # what a constant imputer fills in
    if value.dtype.kind not in _KINDS or value.dtype.itemsize > 8:
        raise NotStorableError(f"{where} is an array of {value.dtype}, which a model file cannot hold")
    if not np.isfinite(value).all():
        raise NotStorableError(f"{where} holds NaN or infinity, which a model file refuses")
    if where in arrays:
        raise NotStorableError(
            f"two arrays of the model would both be called {where}; rename the steps of the pipeline"
        )
    # A product of matrices depends on their memory order in its last bit, so that is kept.
    transposed = not value.flags.c_contiguous and value.strides == tuple(sorted(value.strides))
    # Files are little-endian, and the digest names the type of number.
    arrays[where] = np.asarray(value.T if transposed else value, dtype=value.dtype.newbyteorder("<"), order="C")
    return {"$array": where, "transposed": True} if transposed else {"$array": where}


@dataclass(frozen=True)
class _Recipe:
    """An estimator that is a parameter of another, which fits a clone of it; its fitted attributes are not stored."""

    estimator: Any


_NOT_KEPT = frozenset({"device"})
"""Settings that say where a model is computed: the reader's machine may have no such place."""


def _arguments(estimator: Any) -> dict[str, Any]:
    """Arguments that the constructor of an estimator was given, but for those that are not kept."""
    given = estimator.get_params(deep=False)
    return {name: _as_recipe(value) for name, value in given.items() if name not in _NOT_KEPT}


def _as_recipe(value: Any) -> Any:
    """A parameter with the estimators in it, or in a list that it is, as recipes."""
    if isinstance(value, list | tuple):
        return type(value)(_as_recipe(each) for each in value)
    return _Recipe(value) if hasattr(type(value), "_stored") else value


def _encode_object(value: Any, where: str, arrays: dict[str, FloatArray]) -> Any:
    name = type(value).__name__
    if isinstance(value, _Recipe):
        name, arguments = type(value.estimator).__name__, _arguments(value.estimator)
        return {"$recipe": name, "init": _encode(arguments, where, arrays)}
    if isinstance(value, enum.Enum) and _classes.get(name) is type(value):
        return {"$enum": name, "member": value.name}
    if _is_pipeline(value):
        steps = [(label, "passthrough" if step is None else step) for label, step in value.steps]
        return {"$pipeline": [[label, _encode(step, f"{where}.{label}", arrays)] for label, step in steps]}
    fields = _fields_of(value, where)
    return {"$object": name, **{part: _encode(items, where, arrays) for part, items in fields.items()}}


def _fields_of(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Fields from which an object is rebuilt: the arguments of its constructor and attributes set afterwards."""
    name = type(value).__name__
    if _classes.get(name) is type(value) and not isinstance(value, enum.Enum):
        if hasattr(value, "__dataclass_fields__"):
            return {"init": {field.name: getattr(value, field.name) for field in fields(value)}}
        missing = [attribute for attribute in value._stored if not hasattr(value, attribute)]
        if missing:
            raise NotStorableError(f"{where} is not fitted ({missing[0]} is missing); call fit before save")
        fitted = {attribute: getattr(value, attribute) for attribute in value._stored}
        fitted |= {k: getattr(value, k) for k in _TABLE_ATTRIBUTES if hasattr(value, k)}
        return {"init": _arguments(value), "fitted": fitted}
    if name in STEPS and type(value).__module__.startswith("sklearn."):
        fitted = {k: v for k, v in vars(value).items() if _is_fitted_name(k) or k in INNER_ATTRIBUTES.get(name, ())}
        if not fitted:
            raise NotStorableError(f"{where} is not fitted; call fit before save")
        return {"init": value.get_params(deep=False), "fitted": fitted}
    if "." in where and hasattr(value, "fit") and not isinstance(value, type):
        raise NotStorableError(
            f"{where} is a {name}, which a model file cannot hold; beside prinfold's estimators it holds the steps "
            f"{', '.join(STEPS)}. Use pickle, or apply that step yourself"
        )
    what = "a function" if callable(value) else f"an object of type {name}"
    raise NotStorableError(
        f"{where} is {what}, which a file of numbers and JSON cannot hold; {_advice_for(value, where)}, or use pickle"
    )


def _advice_for(value: Any, where: str) -> str:
    """Advice on a value that no file can hold: classes of data may be registered, and parameters be set."""
    ways = ["mark its class @storable (of prinfold.files)"] if is_dataclass(value) else []
    fitted = any(_is_fitted_name(each.partition("[")[0]) for each in where.split("."))
    ways += [] if fitted else ["set that parameter to a plain value before saving"]
    return ", or ".join(ways) or "fit with other settings"


_TABLE_ATTRIBUTES: Kinds = {"n_features_in_": integer(1), "feature_names_in_": texts("n_features_in_")}
"""Attributes that scikit-learn sets from the training table."""


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


# --------------------------------------------------------------------------------------------- decoding


@dataclass(frozen=True)
class _Source:
    """The arrays of a file, and whether it must have every field; files of former versions have fewer."""

    arrays: Mapping[str, FloatArray]
    complete: bool = True


def _decode(value: Any, source: _Source, where: str) -> Any:
    """The value that JSON stands for; ``where`` names its place in errors."""
    if isinstance(value, list):
        return [_decode(item, source, f"{where}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    tags = [key for key in value if key.startswith("$")]
    if len(tags) != 1 or tags[0] not in _DECODERS:
        raise CorruptModelFileError(f"{where} in the file is no known kind of value: {sorted(value)}")
    return _DECODERS[tags[0]](value, source, where)


def _unknown(name: str) -> UnknownModelError:
    return UnknownModelError(
        f"the file holds a {name!r}, which this version of prinfold does not know; if it is a class of your own, "
        "import the module that defines it first"
    )


def _decode_object(value: dict[str, Any], source: _Source, where: str) -> Any:
    name = value["$object"]
    cls = _classes.get(name) or STEPS.get(name, lambda: None)()
    if cls is None or issubclass(cls, enum.Enum):
        raise _unknown(name)
    where = name if where == "the model" else where
    settings = _decode(value["init"], source, where)
    if hasattr(cls, "__dataclass_fields__"):
        _check_complete(where, settings, [field.name for field in fields(cls)], source)
        check_fields(where, settings, getattr(cls, "_kinds", LATENT_KINDS.get(name, {})))
        return _construct(where, lambda: cls(**settings))
    wanted = [each for each in cls().get_params(deep=False) if each not in _NOT_KEPT]
    _check_complete(where, settings, wanted, source)
    fitted = _decode(value["fitted"], source, where)
    if not source.complete:
        fitted = dict(getattr(cls, "_added", {})) | fitted
    _check_names(name, set(fitted), getattr(cls, "_stored", None))
    check_fields(where, fitted, {**_TABLE_ATTRIBUTES, **getattr(cls, "_stored", STEP_KINDS.get(name, {}))})
    return _construct(where, lambda: _set_fitted(cls(**settings), fitted))


def _check_complete(where: str, found: Mapping[str, Any], wanted: Sequence[str], source: _Source) -> None:
    """Raise an error for a missing field, unless the file is of an older format, which knew fewer fields."""
    missing = [each for each in wanted if each not in found]
    if missing and source.complete:
        raise CorruptModelFileError(f"{where}.{missing[0]} is missing in the file; save the model again")


def _construct(where: str, make: Callable[[], Any]) -> Any:
    """Result of ``make``; where its parts do not fit together, an error that names the place."""
    try:
        with np.errstate(all="ignore"):  # what does not come out finite does not fit together
            return make()
    except ModelFileError as error:
        raise type(error)(f"{where}: {error}") from error
    except _MISFIT_ERRORS as error:
        raise CorruptModelFileError(f"{where} in the file does not fit together: {error}") from error


def _set_fitted(made: Any, fitted: Mapping[str, Any]) -> Any:
    """An estimator with what it was fitted to."""
    for attribute, content in fitted.items():
        setattr(made, attribute, content)
    getattr(made, "_restore", lambda: revive_step(made))()
    return made


def _decode_recipe(value: dict[str, Any], source: _Source, where: str) -> Any:
    cls: Any = _classes.get(value["$recipe"])
    if not hasattr(cls, "_stored"):
        raise _unknown(value["$recipe"])
    settings = _decode(value["init"], source, where)
    return _construct(where, lambda: cls(**settings))


def _check_names(name: str, found: set[str], stored: Kinds | None) -> None:
    """A file sets the fitted attributes of a class, all of them, and nothing else."""
    if stored is None:
        inner = INNER_ATTRIBUTES.get(name, ())
        wrong = sorted(attribute for attribute in found if not _is_fitted_name(attribute) and attribute not in inner)
        wrong += sorted({"n_features_in_", *STEP_KINDS[name]} - {*inner, *found})
    else:
        wrong = sorted(found.symmetric_difference({*stored, "n_features_in_"}) - {"feature_names_in_"})
    if wrong:
        raise CorruptModelFileError(f"the attributes of the {name} in the file are not those it needs: {wrong}")


def _decode_array(value: dict[str, Any], source: _Source, where: str) -> FloatArray:
    array = source.arrays[value["$array"]]
    return array.T if value.get("transposed") else array


def _decode_strings(value: dict[str, Any], _: _Source, where: str) -> Any:
    strings = np.array(value["$strings"], dtype=object)
    if not all(isinstance(item, str) for item in strings.ravel()):
        raise CorruptModelFileError(f"{where} in the file is a list of strings in which something is no string")
    return strings


def _decode_tuple(value: dict[str, Any], source: _Source, where: str) -> tuple[Any, ...]:
    return tuple(_decode(item, source, f"{where}[{i}]") for i, item in enumerate(value["$tuple"]))


def _decode_dict(value: dict[str, Any], source: _Source, where: str) -> dict[str, Any]:
    return {key: _decode(item, source, f"{where}.{key}") for key, item in value["$dict"].items()}


def _decode_pipeline(value: dict[str, Any], source: _Source, where: str) -> Any:
    from sklearn.pipeline import Pipeline

    steps = [(label, _decode(step, source, label)) for label, step in value["$pipeline"]]
    for label, step in steps[:-1]:
        if step != "passthrough" and type(step).__name__ not in {*STEPS, "Pipeline"}:
            raise CorruptModelFileError(f"step {label} in the file is {describe(step)}, but must be one of {[*STEPS]}")
    if steps and not _is_model(last := steps[-1][1]) and where == "the model":
        raise CorruptModelFileError(f"the last step, {steps[-1][0]}, does not describe a model: it is {describe(last)}")
    return Pipeline(steps)


def _decode_enum(value: dict[str, Any], _: _Source, where: str) -> Any:
    cls = _classes.get(value["$enum"])
    if cls is None or not issubclass(cls, enum.Enum):
        raise _unknown(value["$enum"])
    return _construct(where, lambda: cls[value["member"]])


_DECODERS: dict[str, Callable[[dict[str, Any], _Source, str], Any]] = {
    "$array": _decode_array,
    "$measured": lambda value, source, _: source.arrays[value["$measured"]].tolist(),
    "$strings": _decode_strings,
    "$float": lambda value, *_: float(value["$float"]),
    "$tuple": _decode_tuple,
    "$dict": _decode_dict,
    "$enum": _decode_enum,
    "$pipeline": _decode_pipeline,
    "$object": _decode_object,
    "$recipe": _decode_recipe,
}


# ---------------------------------------------------------------------------------------- bytes on disk


def _dump(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _digest(body: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> str:
    """The checksum of a model; times are left out, which differ from run to run."""
    return digest(_dump(body), {name: array for name, array in arrays.items() if not name.endswith(_TIMES_SUFFIX)})


def _require_plain_file(path: Path) -> None:
    """Raise an error for what cannot be a model file, before anything is read of it."""
    try:
        found = path.stat()
    except OSError as error:  # not there, a name that is too long, a folder that may not be looked into
        why = "" if isinstance(error, FileNotFoundError | NotADirectoryError) else f" ({error.strerror})"
        raise NoModelFileError(f"there is no model file at {path}{why}; name one that save has written") from None
    if stat.S_ISDIR(found.st_mode):
        raise CorruptModelFileError(f"{path} is a folder, not a model file; name the file in it")
    plain = stat.S_ISREG(found.st_mode)
    if plain and found.st_size == 0:
        raise CorruptModelFileError(f"{path} is an empty file; save the model again")
    if not plain or found.st_size > _MOST_BYTES:
        raise CorruptModelFileError(f"{path} is not a prinfold model file: it is no plain file, or too large for one")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    _require_plain_file(path)
    try:
        with safe_open(path, framework="numpy") as stream:
            text = (stream.metadata() or {}).get(_KEY, "")
            names = list(stream.keys())
            if not text or len(text) > _MOST_JSON or len(names) > _MOST_ARRAYS:
                raise CorruptModelFileError(f"{path} is not a prinfold model file")
            arrays = {name: stream.get_tensor(name) for name in names}
            body = json.loads(text)
    except (ModelFileError, OSError):
        raise
    except (SafetensorError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise CorruptModelFileError(
            f"{path} is not a prinfold model file, or it has been cut short or damaged; save the model again"
        ) from error
    if not isinstance(body, dict):
        raise CorruptModelFileError(f"{path} is not a prinfold model file")
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS or not np.isfinite(array).all():
            raise CorruptModelFileError(f"{path} holds an array {name} that is not made of finite numbers")
    return body, arrays
