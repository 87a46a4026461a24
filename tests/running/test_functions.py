"""Operators as people have them, in one replica and without Spark."""

import asyncio

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from elastream.core.topology import Operator
from elastream.engines.spark.worker.function import UserFunction
from elastream.engines.spark.worker.named_outputs import unpacked
from elastream.errors import InvalidInputError

EVENTS = pa.table({"n": [1, 2, 3]})


def outcome(function, events=EVENTS, **settings):
    called = UserFunction(Operator("op", function, **settings))
    with called.ready():
        return called(events).to_pydict()


def test_rows_are_taken_one_by_one_and_may_become_none_or_several():
    def odd_twice(row: dict):
        return [row, row] if row["n"] % 2 else None

    assert outcome(odd_twice) == {"n": [1, 1, 3, 3]}


def test_a_generator_puts_out_what_it_yields():
    def split(batch: pa.Table):
        yield batch.slice(0, 1)
        yield {"n": 9}
        yield pd.DataFrame({"n": [10]})

    assert outcome(split) == {"n": [1, 9, 10]}


def test_a_class_is_made_set_up_and_closed_once_in_every_replica():
    events = []

    class Model:
        def __init__(self):
            events.append("made")

        def setup(self):
            events.append("set up")

        def __call__(self, batch: pd.DataFrame):
            return batch * 2

        def close(self):
            events.append("closed")

    assert outcome(Model) == {"n": [2, 4, 6]}
    assert events == ["made", "set up", "closed"]


def test_calls_of_an_async_function_run_at_once_but_bounded_and_keep_their_order():
    running, most = 0, 0

    async def slow(row: dict, offset):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (5 - row["n"] % 5))
        running -= 1
        return {"n": row["n"] + offset}

    async def connect():
        return 100

    events = pa.table({"n": range(20)})
    done = outcome(slow, events, setup=connect, concurrency=4)
    assert done == {"n": list(range(100, 120))}
    assert most == 4
    assert UserFunction(Operator("op", slow, concurrency=4)).calls_at_once == 4


def test_an_async_object_may_set_itself_up_and_close_in_the_same_loop():
    class Client:
        async def setup(self):
            self.loop = asyncio.get_running_loop()

        async def __call__(self, rows: list):
            assert asyncio.get_running_loop() is self.loop
            return rows

        async def close(self):
            assert asyncio.get_running_loop() is self.loop

    assert outcome(Client()) == {"n": [1, 2, 3]}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"n": 1}, "the operator 'op' returned dict, .* one row"),
        (3, "the operator 'op' returned int"),
        ([1], "a list with int in it"),
    ],
)
def test_what_cannot_be_put_out_is_named_with_the_operator_and_what_can(returned, message):
    with pytest.raises(InvalidInputError, match=message):
        outcome(lambda batch: returned)


def test_a_row_must_become_rows():
    def wrong(row: dict):
        return 3

    with pytest.raises(InvalidInputError, match="returned int for a row"):
        outcome(wrong)


def test_what_a_function_cannot_be_given_is_refused():
    def wrong(batch: str):
        return batch

    with pytest.raises(InvalidInputError, match="asks for <class 'str'>"):
        UserFunction(Operator("op", wrong))


def test_what_only_annotations_name_does_not_travel_and_need_not():
    program = (
        "from __future__ import annotations\n"
        "import pandas as pd\nfrom typing import Any\n"
        "def by_row(row: dict[str, Any]) -> dict[str, Any]:\n    return {'n': row['n'] + 1}\n"
        "def by_frame(frame: pd.DataFrame) -> pd.DataFrame:\n    return frame + 1\n"
    )
    module = {"__name__": "__main__"}
    exec(program, module)
    for name in ("by_row", "by_frame"):
        travelled = cloudpickle.loads(cloudpickle.dumps(module[name]))
        assert outcome(travelled) == {"n": [2, 3, 4]}


def named(function, **settings):
    called = UserFunction(Operator("op", function, **settings))
    with called.ready():
        return [(each.successor, each.table.to_pydict()) for each in unpacked(called(EVENTS))]


def test_a_batch_may_be_put_out_for_named_successors():
    def split(batch: pa.Table):
        yield "odd", batch.filter(pa.array([True, False, True]))
        yield batch.slice(1, 1)
        yield "odd", {"n": 9}
        yield "log", pd.DataFrame({"text": ["done"]})

    assert named(split) == [
        ("odd", {"n": [1, 3, 9]}),
        (None, {"n": [2]}),
        ("log", {"text": ["done"]}),
    ]
    assert named(lambda batch: ("odd", batch)) == [("odd", {"n": [1, 2, 3]})]


def test_a_row_may_be_put_out_for_named_successors():
    def split(row: dict):
        if row["n"] == 2:
            return "even", row
        return [row, ("log", {"text": f"{row['n']} is odd"})]

    assert named(split) == [
        (None, {"n": [1, 3]}),
        ("log", {"text": ["1 is odd", "3 is odd"]}),
        ("even", {"n": [2]}),
    ]


async def unfinished(row: dict):
    yield row


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([{"n": 1}, {"n": "two"}], "the operator 'op' returned int and str in the column 'n'"),
        ([{"n": len}], "the operator 'op' returned builtin_function_or_method in the column 'n': "),
        ([{7: 1}], "a column named 7, but column names must be text"),
        ((1, 2), "returned tuple, .* a pair names a successor"),
        (("odd", ("even", [])), "returned tuple"),
        (pd.Series([1]), "returned Series, .* a Series is a column"),
        (unfinished({}), "an async function cannot yield"),
    ],
)
def test_what_has_a_wrong_shape_is_named_with_what_was_expected(returned, message):
    with pytest.raises(InvalidInputError, match=message):
        outcome(lambda batch: returned)
