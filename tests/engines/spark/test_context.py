"""What a function is told about the unit of work that it is in."""

import functools
import pickle
import sqlite3
import threading
from contextlib import closing

import cloudpickle
import pyarrow as pa
import pytest

import elastream
from elastream import Context
from elastream.core.chains import Chains
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Operator
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.driver.preflight import check_functions
from elastream.engines.spark.worker.function import UserFunction, context_parameter
from elastream.errors import InvalidInputError
from elastream.sinks import Table
from support.waiting import eventually
from support.workers import Workers

TABLE = pa.table({"n": [5, 6, 7]})
CONTEXTS = [Context("work", 2, "a unit", 3, place) for place in range(4, 7)]


def by_batch(table: pa.Table, context: Context):
    return [{"n": table.num_rows, "key": context.key, "attempt": context.attempt}]


def by_row(row: dict, context: elastream.Context):
    return {"n": row["n"], "key": context.key, "attempt": context.attempt}


def by_generator(rows: list, context: Context | None = None):
    for row in rows:
        yield {"n": row["n"], "key": context.key, "attempt": context.attempt}


async def by_row_at_once(row: dict, *, context: Context):
    return by_row(row, context)


async def by_batch_later(table: pa.Table, context: Context):
    return by_batch(table, context)


def with_a_resource(row: dict, more: int, context: Context):
    return {"n": row["n"] + more, "key": context.key, "attempt": context.attempt}


class Counting:
    def setup(self):
        self.calls = 0

    def __call__(self, rows: list, context: Context):
        self.calls += 1
        return [{"n": self.calls, "key": context.key, "attempt": context.attempt}]


FIRST, EACH = ["a unit/4"], ["a unit/4", "a unit/5", "a unit/6"]


@pytest.mark.parametrize(
    ("function", "numbers", "keys"),
    [
        (by_batch, [3], FIRST),
        (by_row, [5, 6, 7], EACH),
        (by_generator, [5, 6, 7], FIRST * 3),
        (by_row_at_once, [5, 6, 7], EACH),
        (by_batch_later, [3], FIRST),
        (Counting, [1], FIRST),
        (Counting(), [1], FIRST),
    ],
)
def test_every_kind_of_function_is_told_if_it_asks(function, numbers, keys):
    called = UserFunction(Operator("work", function))
    assert called.wants_context
    with called.ready():
        rows = called(TABLE, CONTEXTS).to_pylist()
    assert [row["n"] for row in rows] == numbers
    assert [row["key"] for row in rows] == keys
    assert {row["attempt"] for row in rows} == {3}


def test_a_function_can_have_a_resource_besides():
    called = UserFunction(Operator("work", with_a_resource, setup=lambda: 10))
    with called.ready():
        assert called(TABLE, CONTEXTS)["n"].to_pylist() == [15, 16, 17]


def test_who_does_not_ask_is_not_told():
    assert not UserFunction(Operator("work", lambda table: table)).wants_context


def test_events_from_nowhere_are_a_new_unit_every_time():
    called = UserFunction(Operator("work", by_row))
    with called.ready():
        first, second = (called(TABLE)["key"].to_pylist() for _ in range(2))
    assert len({*first, *second}) == 6


def test_annotations_that_are_text_are_understood_in_another_process():
    """Only what its code uses of a module goes with a function that is sent."""
    names = {"__name__": "__main__"}
    exec(
        "from __future__ import annotations\n"
        "import elastream, pandas\n"
        "def asks(row: dict, context: elastream.Context): return {'key': context.key}\n"
        "def wants_frames(frame: dict, other: pandas.DataFrame = None): return frame\n",
        names,
    )
    sent = pickle.loads(cloudpickle.dumps(names["asks"]))
    called = UserFunction(Operator("work", sent))
    with called.ready():
        assert called(TABLE, CONTEXTS)["key"].to_pylist() == EACH
    assert UserFunction(Operator("work", pickle.loads(cloudpickle.dumps(names["wants_frames"]))))


def test_a_wrapped_function_is_looked_through():
    @functools.wraps(by_row)
    def wrapped(*arguments, **named):
        return by_row(*arguments, **named)

    assert context_parameter(wrapped) == "context"


def test_a_context_that_cannot_be_given_is_refused():
    def only(context: Context): ...

    def before(rows: list, context: Context, resource): ...

    def many(rows: list, contexts: list[Context]): ...

    with pytest.raises(InvalidInputError, match="'only' asks for a Context first"):
        context_parameter(only)
    with pytest.raises(InvalidInputError, match="'before' has a parameter after its Context"):
        context_parameter(before)
    with pytest.raises(InvalidInputError, match="'many' asks for several Contexts, and gets one"):
        context_parameter(many)


def test_units_and_values_do_not_go_together():
    pipeline = Pipeline("test")
    pipeline.add(by_row, after=pipeline.source("in"), name="work", grouping="osg", key="n")
    with pytest.raises(
        InvalidInputError, match=r"'work' asks for a Context, .* choose another grouping"
    ):
        check_functions(Chains.planned(pipeline.topology()))


# In a replica.


def started(function, **settings):
    pipeline = Pipeline("test")
    pipeline.add(function, after=pipeline.source("in"), name="work", pool=2, lanes=2, **settings)
    pipeline.add(lambda table: table, after="work", name="end")
    return Workers(pipeline.topology())


def done(workers, count):
    eventually(lambda: workers.waiting("end") >= count)
    return workers.rows()


def test_every_batch_is_a_unit_of_its_own():
    workers = started(by_batch, execution_time=1e-6)
    for first in range(0, 12, 3):
        workers.put(range(first, first + 3))
    workers.plan(work=(0,), end=(0,))
    with workers.running(("work", 0)):
        rows = done(workers, 4)
    assert [row["n"] for row in rows] == [3] * 4
    assert len({row["key"] for row in rows}) == 4


def test_rows_of_several_units_are_called_at_once_and_have_their_own_keys():
    """Or else a function that waits for answers would wait for one after the other."""
    at_once = []

    async def ask(row: dict, context: Context):
        import asyncio

        at_once.append(1)
        await asyncio.sleep(0.05)
        most = len(at_once)
        at_once.pop()
        return {"most": most, "key": context.key}

    workers = started(ask, concurrency=8, execution_time=1e-6)
    for number in range(8):
        workers.put([number])
    workers.plan(work=(0,), end=(0,))
    with workers.running(("work", 0)):
        rows = done(workers, 8)
    assert max(row["most"] for row in rows) == 8
    assert len({row["key"] for row in rows}) == 8


def test_the_halves_of_a_unit_that_fails_know_where_they_begin():
    seen = []

    def picky(rows: list, context: Context):
        seen.append((context.unit, context.first, len(rows)))
        if any(row["n"] == 2 for row in rows):
            raise ValueError("not 2")

    workers = started(picky, execution_time=1e-6)
    workers.put(range(4))
    workers.plan(work=(0,), end=(0,))
    with workers.running(("work", 0)):
        eventually(lambda: workers.ledger.counts(("work", 0)).processed == 3)
    assert len({unit for unit, _, _ in seen}) == 1
    assert [part[1:] for part in seen] == [(0, 4), (0, 2), (2, 2), (2, 1), (3, 1)]


def test_a_unit_that_is_done_again_by_another_replica_has_the_same_name_and_events():
    seen, again = [], threading.Event()

    def slow(rows: list, context: Context):
        seen.append((context, [row["n"] for row in rows]))
        if context.replica == 0:
            again.wait(60)

    workers = started(slow, execution_time=0.02)
    workers.put(range(30))
    workers.plan({"work": (0, 0)}, work=(0,), end=(0,))
    with workers.running(("work", 0), ("work", 1)):
        eventually(lambda: seen)
        workers.plan({"work": (1, 1)}, work=(1,), end=(0,))
        eventually(lambda: len(seen) > 1)
        again.set()
    (first, events), (second, same) = seen[:2]
    assert (first.replica, first.attempt) == (0, 1)
    assert (second.replica, second.attempt) == (1, 2)
    assert (second.unit, same) == (first.unit, events)


def test_what_a_table_has_stored_is_not_stored_again_when_lanes_have_changed_since(tmp_path):
    table = Table(tmp_path / "out.db", "stored")
    workers = started(table)
    workers.put(range(20))
    workers.put(range(20, 25))
    begun, _ = workers.joined(("work", 0), holding={0}).lanes.take(100, named=True)
    # Its process has stored it, and died before it could commit.
    table.setup()
    table([{"n": n} for n in range(20)], Context("work", 0, begun.unit.name, 1))
    table.close()
    by_key = {"work": OperatorLanes(2, key="n")}
    workers.backend.prepare("test", workers.deployment.layout | by_key)
    workers.plan(work=(0,), end=(0,))
    with workers.running(("work", 0)):
        done(workers, 25)
    with closing(sqlite3.connect(tmp_path / "out.db")) as db:
        assert sorted(n for (n,) in db.execute("SELECT n FROM stored")) == list(range(25))
