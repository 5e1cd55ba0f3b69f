"""Requirements on models read from files."""

import numpy as np
import pytest

from prinfold.base.file_requirements import is_finite_array, require_parts
from prinfold.exceptions import CorruptModelFileError


def test_the_first_requirement_that_fails_is_named():
    require_parts({})
    require_parts({"a surface": True})
    with pytest.raises(CorruptModelFileError, match=r"does not fit together: it needs an offset$"):
        require_parts({"a surface": True, "an offset": False, "a name": False})


@pytest.mark.parametrize(
    ("array", "shape", "holds"),
    [
        (np.zeros((2, 3)), None, True),
        (np.zeros((2, 3), dtype=np.float32), (2, 3), True),
        (np.zeros((2, 3)), (3, 2), False),
        (np.zeros(()), (), True),
        (np.zeros(1), (), False),
        (np.zeros((2, 3), dtype=int), (2, 3), False),
        (np.array([0.0, np.nan]), None, False),
        ([[0.0]], None, False),
    ],
)
def test_finite_arrays_are_told_from_others(array, shape, holds):
    assert is_finite_array(array, shape) is holds
