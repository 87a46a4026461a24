from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.hashing import fingerprints


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3],
        [True, False, True],
        [0.5, -1.0, 0.5],
        ["ö", "o", "ö"],
        [b"x", b"y", b"x"],
        [None, "None", None],
        [Decimal("1.5"), Decimal("2.5"), Decimal("1.5")],
        [[1, 2], [1, 3], [1, 2]],
        [[1, 2], [1], [1, 2]],
        [[1, 2], None, [1, 2]],
        [{"a": 1}, {"a": 2}, {"a": 1}],
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


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1))
def test_a_number_hashes_the_same_whatever_is_beside_it(numbers):
    alone = fingerprints(np.array(numbers, dtype=np.int64)).tolist()
    assert fingerprints(np.array(numbers, dtype=np.float64)).tolist() == alone
    assert fingerprints([*numbers, None])[:-1].tolist() == alone
    assert fingerprints([*numbers, "text"])[:-1].tolist() == alone


def test_large_integers_keep_their_digits_beside_others():
    large = fingerprints([2**60 + 1])
    assert large == fingerprints([2**60 + 1, 0.5])[:1] != fingerprints([2**60])
    assert fingerprints([2**63, -1])[0] == fingerprints([2**63])[0]


def test_a_decimal_hashes_by_its_value():
    plain, zeros, whole = fingerprints([Decimal("1.5"), Decimal("1.500"), Decimal("7.0")])
    assert plain == zeros
    assert whole == fingerprints([7])[0]


def test_missing_values_are_alike():
    assert fingerprints([None, "x"])[0] == fingerprints([float("nan")])[0]
