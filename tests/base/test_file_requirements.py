"""Requirements on models read from files."""

import pytest

from prinfold.base.file_requirements import TRAINING, explain_misfits, require_parts
from prinfold.exceptions import CorruptModelFileError
from prinfold.files.kinds import check_fields
from prinfold.loops import StopReason


def test_the_first_requirement_that_fails_is_named():
    require_parts({})
    require_parts({"a surface": True})
    with pytest.raises(CorruptModelFileError, match=r"does not fit together: it needs an offset$"):
        require_parts({"a surface": True, "an offset": False, "a name": False})


def test_misfits_are_told_by_the_names_of_the_parts():
    with explain_misfits("latent_ and basis_"):
        pass
    words = r"^latent_ and basis_ in the file do not fit together: two axes$"
    with pytest.raises(CorruptModelFileError, match=words), explain_misfits("latent_ and basis_"):
        raise ValueError("two axes")
    with pytest.raises(CorruptModelFileError, match=r"^as it is$"), explain_misfits("anything"):
        raise CorruptModelFileError("as it is")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_iter_", 2.0),
        ("n_iter_", -1),
        ("converged_", 1),
        ("stop_reason_", "converged"),
        ("history_", [1.0]),
        ("history_", {"objective": [1.0, 2.0], "seconds": [0.1]}),
        ("history_", {"objective": [float("nan")]}),
        ("history_", {"objective": ["1"]}),
    ],
)
def test_what_training_leaves_has_its_kinds(name, value):
    sound = {"n_iter_": 1, "converged_": True, "stop_reason_": StopReason.MAX_ITER, "history_": {"a": [0.0, -1.5]}}
    check_fields("GTM", sound, TRAINING)
    with pytest.raises(CorruptModelFileError, match=rf"^GTM\.{name} in the file is "):
        check_fields("GTM", {**sound, name: value}, TRAINING)
