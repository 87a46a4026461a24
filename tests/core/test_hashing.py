import numpy as np
import pytest

from elastream.core.hashing import fingerprints
from elastream.errors import InvalidInputError


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3],
        [True, False, True],
        [0.5, -1.0, 0.5],
        ["ö", "o", "ö"],
        [b"x", b"y", b"x"],
        [None, "None", None],
        np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="datetime64[D]"),
    ],
)
def test_equal_values_have_equal_fingerprints_and_others_do_not(values):
    first, second, third = fingerprints(values)
    assert first == third != second


def test_zero_has_no_sign():
    assert fingerprints([0.0]) == fingerprints([-0.0])


def test_fingerprints_do_not_change_from_process_to_process():
    assert fingerprints(["spark"]).tolist() == [14069262849943639600]
    assert fingerprints([42]).tolist() == [12058926934050108962]


def test_a_key_that_is_no_plain_value_is_refused():
    with pytest.raises(InvalidInputError, match=r"a key must be .*, not \{'a': 1\}"):
        fingerprints(np.array([{"a": 1}], dtype=object))
