"""Requirements on a model that was read from a file, beyond the kinds of its fields: its parts must fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prinfold.exceptions import CorruptModelFileError
from prinfold.files.kinds import Kinds, any_float, mapping_of, part, sequence_of
from prinfold.validation.settings import flag, integer

TRAINING: Kinds = {
    "n_iter_": integer(0),
    "converged_": flag,
    "stop_reason_": part("StopReason"),
    "history_": mapping_of(sequence_of(any_float, "entries")),
}
"""Kinds of the fitted attributes that every training sets."""


def require_parts(requirements: Mapping[str, bool]) -> None:
    """Raise an error that names the first requirement that does not hold; requirements are words → whether it holds."""
    for wanted, holds in requirements.items():
        if not holds:
            raise CorruptModelFileError(f"the model in the file does not fit together: it needs {wanted}")


@contextmanager
def explain_misfits(parts: str) -> Iterator[None]:
    """Refuse parts of a model that cannot be put together, by their names."""
    try:
        yield
    except CorruptModelFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptModelFileError(f"{parts} in the file do not fit together: {error}") from error
