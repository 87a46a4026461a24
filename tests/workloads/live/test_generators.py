import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.errors import InvalidInputError
from elastream.workloads.live.dns.traffic import make_queries
from elastream.workloads.live.generation import BLOCK, in_blocks, numbered
from elastream.workloads.live.logs.lines import make_lines
from elastream.workloads.live.twitter.tweets import make_tweets

GENERATORS = pytest.mark.parametrize("make", [make_tweets, make_queries, make_lines])
FIRST = st.integers(0, 2**40)


@GENERATORS
@given(first=FIRST, counts=st.lists(st.integers(0, 40), min_size=1, max_size=3))
@settings(max_examples=15)
def test_events_do_not_depend_on_the_bounds_of_batches(make, first, counts):
    make = make.__wrapped__  # the events themselves, before they are made in blocks
    starts = first + np.cumsum([0, *counts])
    parts = [make(int(start), count) for start, count in zip(starts, counts, strict=False)]
    assert pa.concat_tables(parts).equals(make(first, sum(counts)))


@GENERATORS
def test_events_come_with_their_numbers(make):
    assert make(7, 3)["id"].to_pylist() == [7, 8, 9]
    assert make(7, 0).schema == make(0, 3).schema
    assert make(7, 0).num_rows == 0
    assert make(0, 3).schema.field("id").type == pa.int64()


@GENERATORS
def test_events_differ(make):
    events = make(0, 1000).drop_columns(["id"]).to_pylist()
    assert len({str(event) for event in events}) > 900


@given(first=st.integers(0, 5 * BLOCK), count=st.integers(0, 3 * BLOCK))
@settings(max_examples=30)
def test_blocks_are_cut_where_asked(first, count):
    def numbers(first, count):
        return pa.table({"id": np.arange(first, first + count)})

    assert in_blocks(numbers)(first, count)["id"].to_pylist() == list(range(first, first + count))


def test_a_few_events_at_a_time_do_not_make_blocks_again():
    made = []

    def counted(first, count):
        made.append(first)
        return make_lines.__wrapped__(first, count)

    make = in_blocks(counted)
    for first in range(0, BLOCK, 64):
        make(first, 64)
    assert made == [0]


@pytest.mark.parametrize(("first", "count"), [(-1, 5), (5, -1)])
def test_events_have_no_negative_numbers(first, count):
    with pytest.raises(InvalidInputError, match=f"first={first}, count={count}"):
        make_tweets(first, count)


def test_draws_of_different_aspects_have_nothing_to_do_with_each_other():
    draws = numbered(0, 20_000)
    one, other = draws.uniform("one"), draws.uniform("other")
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(one.mean() - 0.5) < 0.02
    assert np.bincount(draws.weighted("kind", [1, 3])).tolist() == pytest.approx(
        [5_000, 15_000], rel=0.05
    )
