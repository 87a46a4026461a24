"""Keys of every type: which lane they have depends on them alone."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.hashing import fingerprints
from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.keys import check_keys, key_values
from elastream.errors import InvalidInputError

FAR = 3 * 10**17
"""Seconds: a time that neither Python nor nanoseconds can express."""
INTERVAL = pa.month_day_nano_interval()
COLUMNS = {
    "bool": pa.array([True, False, True, None]),
    "int8": pa.array([1, 2, 1, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2, 2**64 - 1, None], pa.uint64()),
    "half": pa.array([1.5, 2.5, 1.5, None], pa.float16()),
    "text": pa.array(["ö", "o", "ö", None]),
    "text view": pa.array(["ö", "o", "ö", None], pa.string_view()),
    "bytes": pa.array([b"x", b"y", b"x", None]),
    "fixed bytes": pa.array([b"xx", b"yy", b"xx", None], pa.binary(2)),
    "decimal": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("1.5"), None]),
    "wide decimal": pa.array([10**60, 10**59, 10**60, None], pa.decimal256(70, 2)),
    "date": pa.array([date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1), None]),
    "time": pa.array([time(1), time(2), time(1), None]),
    "timestamp": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 1), None]),
    "far timestamp": pa.array([FAR, FAR + 1, FAR, None], pa.timestamp("s", "UTC")),
    "duration": pa.array([timedelta(1), timedelta(2), timedelta(1), None]),
    "interval": pa.array([(1, 2, 3), (1, 2, 4), (1, 2, 3), None], INTERVAL),
    "equal lists": pa.array([[1, 2], [2, 1], [1, 2], None]),
    "ragged lists": pa.array([[1, None], [1], [1, None], None]),
    "lists and empty ones": pa.array([[], [0], [], None], pa.list_(pa.int64())),
    "large lists": pa.array([["a"], ["b", "a"], ["a"], None], pa.large_list(pa.string())),
    "views of lists": pa.array([["a"], ["b", "a"], ["a"], None], pa.list_view(pa.string())),
    "fixed lists": pa.array([[1, 2], [2, 1], [1, 2], None], pa.list_(pa.int64(), 2)),
    "lists of far timestamps": pa.array([[FAR], [0], [FAR], None], pa.list_(pa.timestamp("s"))),
    "structs": pa.array([{"a": 1, "b": None}, {"a": None, "b": 1}, {"a": 1, "b": None}, None]),
    "structs of lists": pa.array([{"a": [1]}, {"a": [1, 1]}, {"a": [1]}, None]),
    "maps": pa.array(
        [[("a", 1)], [("a", 2)], [("a", 1)], None], pa.map_(pa.string(), pa.int64())
    ),
    "dictionary": pa.array(["x", "y", "x", None]).dictionary_encode(),
    "dictionary of lists": pa.DictionaryArray.from_arrays([0, 1, 0, None], pa.array([[1], [2, 3]])),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], ["x", "y", "x", None]),
    "extension": pa.array([b"x" * 16, b"y" * 16, b"x" * 16, None], pa.uuid()),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0, 0], pa.int8()), [pa.array([1, 2, 1, None]), pa.array(list("abcd"))]
    ),
}  # fmt: skip


def hashes(column):
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return fingerprints(key_values(column)).tolist()


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_of_key_hashes_alike_whatever_is_beside_it(kind):
    column = COLUMNS[kind]
    check_keys(pa.chunked_array([column]), "user")
    first, second, third, null = hashes(column)
    assert first == third != second
    assert null not in (first, second)
    alone = [hashes(column.slice(place, 1))[0] for place in range(4)]
    assert alone == [first, second, third, null]
    assert hashes(pa.chunked_array([column.slice(0, 1), column.slice(1)])) == alone
    assert hashes(column.slice(0, 0)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([7], pa.int8()), pa.array([7], pa.int64())),
        (pa.array([7]), pa.array([7.0])),
        (pa.array([7]), pa.array([Decimal("7.00")])),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("1.500")])),
        (pa.array(["x"]), pa.array(["x"]).dictionary_encode()),
        (pa.array(["x"]), pa.array(["x"], pa.large_string())),
        (pa.array([5], pa.timestamp("s")), pa.array([5 * 10**9], pa.timestamp("ns"))),
        (pa.array([1], pa.date32()), pa.array([86_400_000], pa.date64())),
        (pa.array([[1]]), pa.array([[1.0]])),
        (pa.array([[1]]), pa.array([[1]], pa.list_(pa.int64(), 1))),
        (pa.array([{"a": 1, "b": "x"}]), pa.array([{"b": "x", "a": 1}])),
        (
            pa.array([[{"a": [1]}]]),
            pa.array([[{"a": [1]}]], pa.large_list(pa.struct([("a", pa.list_(pa.int8()))]))),
        ),
    ],
)
def test_a_key_hashes_alike_however_it_is_stored(one, other):
    assert hashes(one) == hashes(other)


def test_chunks_may_have_different_dictionaries():
    column = pa.chunked_array(
        [pa.array(["x", "y"]).dictionary_encode(), pa.array(["y", "z"]).dictionary_encode()]
    )
    assert hashes(column) == hashes(pa.array(["x", "y", "y", "z"]))


def test_lists_spread_over_lanes():
    keys = pa.chunked_array([pa.array([[n, n % 7] for n in range(1000)])])
    assert np.bincount(lanes_of_keys(key_values(keys), 16), minlength=16).min() > 30


def test_keys_that_cannot_be_hashed_are_named():
    far = pa.UnionArray.from_sparse(
        pa.array([0], pa.int8()), [pa.array([FAR], pa.timestamp("s")), pa.array(["a"])]
    )
    with pytest.raises(InvalidInputError, match="a key in the column 'user', of the type sparse_u"):
        check_keys(pa.chunked_array([far]), "user")
