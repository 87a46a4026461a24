"""A chain in a replica: one hop, and everything else as if there were as many as operators."""

import asyncio
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.chains import Chains
from elastream.core.context import Context
from elastream.core.lanes import lanes_of_keys
from elastream.core.latency import bin_of
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.driver.chaining import LEAST_EVENTS, chosen_chains
from elastream.engines.spark.options import OnError, Options
from elastream.engines.spark.worker import chain as chain_module
from elastream.engines.spark.worker import entrance
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.execution import events_of
from elastream.engines.spark.worker.quarantine import DEATHS
from elastream.errors import BackendUnavailableError, InvalidTopologyError
from support.memory_backend import MemoryBackend, MemoryConnection, MemoryLanes
from support.waiting import eventually
from support.workers import Workers, rows_of

WORK = ("work", 0)


def add(column):
    def function(rows: list):
        return [{**row, column: len(row)} for row in rows]

    return function


def same(table):
    return table


def workers_of(*functions, edges=None, outputs=(), end=True, **options):
    """A chain of `work`, `b`, `c` and so on, in front of two replicas of `end`."""
    pipeline = Pipeline("test")
    before = pipeline.source("in")
    names = ["work", *"bcdefg"][: len(functions)]
    for name, function in zip(names, functions, strict=True):
        given = {} if name == "work" else {"chain": True, **(edges or {}).get(name, {})}
        made = function if isinstance(function, dict) else {"function": function}
        pipeline.add(**made, name=name, after=before, pool=2, **given)
        before = name
    if end:
        pipeline.add(len, after=before, name="end", pool=2)
    return Workers(pipeline.topology(), outputs=outputs, **options)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch):
    monkeypatch.setattr(entrance, "LOOK_SECONDS", 0.01)


def planned(workers, *active, **more):
    ends = {"end": (0, 1)} if "end" in workers.deployment.topology.by_name else {}
    workers.plan(work=active or (0,), **ends, **more)


def counts_of(workers, name):
    return workers.ledger.totals().counts[name, 0]


def test_events_pass_all_operators_in_one_hop_and_each_counts_its_own():
    workers = workers_of(add("one"), add("two"), add("three"))
    assert ("b", 0) not in workers.deployment.members
    workers.put(range(40))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 40)
    rows = sorted(workers.rows(), key=lambda row: row["n"])
    assert rows == [{"n": n, "one": 1, "two": 2, "three": 3} for n in range(40)]
    for name in ("work", "b", "c"):
        counts = counts_of(workers, name)
        assert (counts.processed, counts.emitted) == (40, 40)
        assert counts.busy > 0
    arrived = {name: sum(of.arrived for of in lanes.values())
               for name, lanes in workers.ledger.totals().lanes.items()}  # fmt: skip
    assert (arrived["work"], arrived["b"], arrived["c"], arrived["end"]) == (40, 0, 0, 40)


class Tagger:
    """Made once in every replica."""

    made = 0

    def __init__(self):
        Tagger.made += 1
        self.open = False

    def setup(self):
        self.open = True

    def __call__(self, row: dict):
        assert self.open
        return {**row, "tag": "t"}

    def close(self):
        self.open = False


async def look_up(row: dict):
    await asyncio.sleep(0)
    return {**row, "found": row["n"] + 1}


def twice(rows: list):
    for row in rows:
        yield row
        yield {**row, "n": -row["n"]}


def with_resource(table, resource):
    return table.append_column("resource", pa.array([resource] * table.num_rows))


def test_functions_of_every_kind_go_together_with_their_conditions():
    Tagger.made = 0
    happened = []
    pooled = {
        "function": with_resource,
        "setup": lambda: happened.append("up") or "r",
        "teardown": lambda _: happened.append("down"),
    }
    small = {"when": lambda table: pc.less(table["n"], 5)}
    workers = workers_of(Tagger, look_up, twice, pooled, edges={"c": small})
    workers.put(range(10))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 10)
    rows = workers.rows()
    assert sorted(row["n"] for row in rows) == [-4, -3, -2, -1, 0, 0, 1, 2, 3, 4]
    assert all(row["tag"] == "t" and row["resource"] == "r" for row in rows)
    assert (Tagger.made, happened) == (1, ["up", "down"])
    assert [counts_of(workers, name).processed for name in ("work", "b", "c", "d")] == [
        10, 10, 5, 10,
    ]  # fmt: skip


def test_a_function_inside_a_chain_can_know_its_unit():
    seen = []

    def store(rows: list, context: Context):
        seen.append((context.operator, context.unit, context.first, len(rows)))
        return rows

    def evens(rows: list):
        return [row for row in rows if row["n"] % 2 == 0]

    workers = workers_of(evens, store, add("last"))
    workers.put(range(30))
    workers.put(range(30, 60))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 30)
    assert {operator for operator, *_ in seen} == {"b"}
    assert all(unit.endswith(".b") and first == 0 for _, unit, first, _ in seen)
    assert len({unit for _, unit, *_ in seen}) == len(seen)
    assert sum(rows for *_, rows in seen) == 30


def test_a_function_can_name_its_successor_inside_the_chain_or_beyond():
    def choose(rows: list):
        for row in rows:
            yield ("inner" if row["n"] % 2 else "end"), row

    pipeline = Pipeline("test")
    pipeline.add(choose, name="work", after=pipeline.source("in"), pool=1)
    pipeline.add(add("inner"), name="inner", after="work", chain=True)
    pipeline.add(len, name="end", after=["work", "inner"], pool=1)
    workers = Workers(pipeline.topology())
    workers.put(range(6))
    workers.plan(work=(0,), end=(0,))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 6)
    rows = workers.rows()
    assert sorted(row["n"] for row in rows if row.get("inner")) == [1, 3, 5]
    assert counts_of(workers, "inner").processed == 3


def test_a_chain_that_branches_runs_both_branches():
    pipeline = Pipeline("test")
    pipeline.add(same, name="work", after=pipeline.source("in"), pool=1)
    odd = {"when": lambda table: pc.equal(pc.bit_wise_and(table["n"], 1), 1)}
    pipeline.add(add("left"), name="left", after="work", chain=True, **odd)
    pipeline.add(add("right"), name="right", after="work", chain=True)
    pipeline.add(len, name="end", after=["left", "right"], pool=1)
    workers = Workers(pipeline.topology())
    workers.put(range(6))
    workers.plan(work=(0,), end=(0,))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 9)
    rows = workers.rows()
    assert sorted(row["n"] for row in rows if row.get("left")) == [1, 3, 5]
    assert sorted(row["n"] for row in rows if row.get("right")) == list(range(6))


def test_outputs_in_the_middle_of_a_chain_are_kept():
    workers = workers_of(add("one"), add("two"), add("three"), outputs=("b",))
    workers.put(range(3))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 3)
        eventually(lambda: workers.waiting(output_of("b")) == 3)


def test_latency_is_counted_where_the_chain_ends(monkeypatch):
    monkeypatch.setattr(chain_module, "time", lambda: 100.0)
    workers = workers_of(same, lambda table: table.slice(0, 2), end=False)
    workers.put([1, 2, 3], born=99.0)
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.ledger.counts(("b", 0)).processed == 3)
    assert dict(counts_of(workers, "b").latency.bins) == {bin_of(1.0): 3}
    assert not counts_of(workers, "work").latency


# What fails.


def failing_on(number):
    def work(table):
        if number in table["n"].to_pylist():
            raise ValueError("not this one")
        return table

    return work


def test_an_event_that_fails_is_set_aside_by_its_operator_and_what_went_before_is_not_repeated():
    seen = []

    def first(rows: list):
        seen.extend(row["n"] for row in rows)
        return [{**row, "first": True} for row in rows]

    workers = workers_of(first, failing_on(7), same)
    workers.put(range(20))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 19)
    (letter,) = workers.dead_letters.read()
    assert (letter.operator, letter.error, letter.lane) == ("b", "ValueError: not this one", 0)
    assert rows_of(letter) == [{"n": 7, "first": True}]
    assert sorted(seen) == list(range(20))
    assert [counts_of(workers, name).processed for name in ("work", "b", "c")] == [20, 19, 19]


def test_a_dead_letter_enters_the_chain_where_it_failed():
    broken, first = [True], []

    def work(rows: list):
        first.extend(rows)
        return rows

    def inner(rows: list):
        if broken:
            raise ValueError("not yet")
        return [{**row, "inner": True} for row in rows]

    workers = workers_of(work, inner, add("last"))
    workers.put(range(5))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: len(list(workers.dead_letters.read())) == 5)
        broken.clear()
        assert workers.dead_letters.retry(list(workers.dead_letters.read())) == 5
        eventually(lambda: workers.waiting("end") == 5)
        eventually(lambda: all(of.owner is None for of in lanes_of(workers, "b").values()))
        workers.put(range(5, 8))
        eventually(lambda: workers.waiting("end") == 8)
    assert len(first) == 8, "those that were tried again did not begin at the beginning"
    assert all(row["inner"] for row in workers.rows())
    assert counts_of(workers, "b").processed == counts_of(workers, "c").processed == 8
    assert workers.waiting("b") == 0


def lanes_of(workers, operator):
    return workers.ledger.totals().lanes[operator]


def test_the_first_active_replica_lets_letters_in_and_one_that_died_there_is_followed(monkeypatch):
    workers = workers_of(same, same)
    left_behind = workers.joined(("b", 1), holding=[0])
    workers.put(range(3), operator="b")
    monkeypatch.setattr("elastream.engines.spark.worker.deployment.HAND_OVER_SECONDS", 0.05)
    planned(workers, 0, 1)
    with workers.running(WORK, ("work", 1)):
        eventually(lambda: workers.waiting("end") == 3)
    assert left_behind.lanes.commit(left_behind.lanes.take(1), [], Counts()) is False
    assert ("b", 0) in workers.ledger.totals().counts
    assert ("b", 1) not in workers.ledger.totals().counts


def test_an_error_in_a_chain_ends_the_run_if_that_is_wished_and_names_the_operator():
    workers = workers_of(same, failing_on(7), on_error=OnError.FAIL)
    workers.put([7])
    planned(workers)
    with workers.running(WORK):
        eventually(workers.board.failures)
        assert workers.board.failures() == {("b", 0): "ValueError: not this one"}
    assert workers.waiting("work") == 1


def die_of_seven(table):
    if 7 in table["n"].to_pylist():
        os.kill(os.getpid(), signal.SIGKILL)
    return table


def test_an_event_that_kills_its_process_is_blamed_on_the_operator_that_it_killed():
    workers = workers_of(add("one"), die_of_seven, add("two"))
    workers.put(range(5, 9))
    for _ in range(DEATHS + 1):
        workers.joined(WORK, holding=range(8))
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 3, seconds=30)
    (letter,) = workers.dead_letters.read()
    assert (letter.operator, letter.error) == ("b", "the process died (SIGKILL)")
    assert rows_of(letter) == [{"n": 7, "one": 1}]


# Once, and in order.


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    bad=st.sets(st.integers(0, 30), max_size=4),
    operators=st.integers(2, 5),
    at=st.integers(0, 4),
)
def test_what_goes_through_a_chain_comes_out_once_and_in_order(sizes, bad, operators, at):
    def picky(table):
        if bad & set(table["n"].to_pylist()):
            raise ValueError("bad")
        return table

    functions = [picky if place == at % operators else same for place in range(operators)]
    workers = workers_of(*functions)
    first = 0
    for size in sizes:
        workers.put(range(first, first + size))
        first += size
    planned(workers)
    good = [n for n in range(first) if n not in bad]
    with workers.running(WORK):
        eventually(lambda: workers.waiting("work") == 0 and workers.waiting("end") == len(good))
    lanes = workers.lengths("end")
    end = workers.joined(("end", 7), holding=lanes)
    found = [
        number
        for lane in lanes
        for number in in_lane(end, lane)
    ]  # fmt: skip
    assert sorted(found) == good
    set_aside = sorted(row["n"] for each in workers.dead_letters.read() for row in rows_of(each))
    assert set_aside == sorted(bad & set(range(first)))


def in_lane(end, lane):
    """The events of one lane; an assertion if they are not in their order."""
    end.lanes.hold(frozenset({lane}), by_force=frozenset({lane}))
    numbers = [n for each in end.lanes.take(10**6) for n in numbers_of(each)]
    assert numbers == sorted(numbers)
    return numbers


def numbers_of(taken):
    return events_of(taken).table["n"].to_pylist()


# What is kept with the state.


def topology(chain=None, chaining="declared", **inner):
    pipeline = Pipeline("kept", chaining=chaining)
    pipeline.add(same, name="a", after=pipeline.source("in"), pool=2)
    pipeline.add(same, name="b", after="a", pool=2, chain=chain, **inner)
    return pipeline.topology()


def left(tmp, of, waiting=0, counts=None):
    """A state that a run of this topology has left, with so many events waiting for `b`."""
    backend = MemoryBackend(str(tmp))
    deployment = Deployment(of, {}, Options(), backend, chosen=chosen_chains(of, backend))
    backend.prepare("kept", deployment.layout)
    with backend.connect() as connection:
        connection.lanes.join(("b", 0), 1)
        table = pa.table({"n": np.arange(waiting)})
        parcels = []
        if waiting:
            data = to_bytes(table)
            parcels = [Parcel("b", 0, waiting, Births.evenly(waiting, 0.0), data)]
        assert connection.lanes.commit([], parcels, counts or Counts())
    return backend


def test_a_state_that_was_left_unchained_resumes_chained_and_the_other_way_round(tmp_path):
    backend = left(tmp_path, topology())
    assert chosen_chains(topology(chain=True), backend).chained == {"b": "a"}
    backend = left(tmp_path / "other", topology(chain=True))
    assert backend.layout()["b"] == OperatorLanes(1, chained_to="a")
    assert chosen_chains(topology(), backend).chained == {}


def test_chains_stay_as_they_are_while_events_wait_between(tmp_path, caplog):
    backend = left(tmp_path, topology(), waiting=3)
    chains = chosen_chains(topology(chain=True), backend)
    assert chains.chained == {}
    assert "stay as the state has them: events wait at 'b'" in caplog.text
    backend = left(tmp_path / "other", topology(chain=True), waiting=3)
    assert chosen_chains(topology(), backend).chained == {"b": "a"}


def test_chains_stay_as_they_are_until_what_was_begun_is_done(tmp_path, caplog):
    """What `b` has written under the name of a unit of `a` must come again under that name."""
    backend = left(tmp_path, topology(chain=True))
    with backend.connect() as end:
        end.lanes.join(("a", 0), 1)
        end.lanes.hold(frozenset({0}))
        parcels = [Parcel("a", 0, 3, Births.evenly(3, 0.0), to_bytes(pa.table({"n": [1, 2, 3]})))]
        assert end.lanes.commit([], parcels, Counts())
        assert chosen_chains(topology(), backend).chained == {}, "nobody has begun"
        taken = end.lanes.take(10, named=True)
        assert chosen_chains(topology(), backend).chained == {"b": "a"}
        assert "stay as the state has them: events wait at 'a'" in caplog.text
        assert end.lanes.commit(taken, [], Counts())
        assert chosen_chains(topology(), backend).chained == {}


def test_the_parts_of_a_unit_have_other_names_inside_a_chain_than_the_whole():
    """Nobody knows which positions the outputs of a part had among those of the whole."""
    seen = []

    def twice(rows: list, context: Context):
        seen.append(("work", context.unit, context.first, len(rows)))
        return [row for row in rows for _ in range(2)]

    def store(rows: list, context: Context):
        seen.append(("b", context.unit, context.first, len(rows)))
        return rows

    workers = workers_of(twice, store)
    keyed = OperatorLanes(workers.deployment.layout["work"].lanes, key="n")
    lane_of = lanes_of_keys(range(100), keyed.lanes)
    elsewhere = int(np.flatnonzero(lane_of != lane_of[0])[0])
    workers.put([0, 0, elsewhere], lane=0)
    (begun,) = workers.joined(WORK, holding={0}).lanes.take(10, named=True)
    workers.backend.prepare("test", workers.deployment.layout | {"work": keyed})
    planned(workers)
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 6)
    name = begun.unit.name
    assert sorted(seen) == [
        ("b", f"{name}/0+2.b", 0, 4),
        ("b", f"{name}/2+1.b", 0, 2),
        ("work", name, 0, 2),
        ("work", name, 2, 1),
    ]


def test_chains_that_must_stay_and_cannot_are_refused_with_a_remedy(tmp_path):
    backend = left(tmp_path, topology(chain=True), waiting=3)
    with pytest.raises(InvalidTopologyError, match=r"'b': kept, as events wait .*\(drain it"):
        chosen_chains(topology(grouping="key", key="n"), backend)


def test_auto_knows_what_operators_have_cost_before(tmp_path):
    quick = Counts(processed=LEAST_EVENTS, busy=LEAST_EVENTS * 1e-6)
    backend = left(tmp_path, topology(chaining="auto"), counts=quick)
    assert chosen_chains(topology(chaining="auto"), backend).chained == {"b": "a"}
    assert Chains.planned(topology(chaining="auto")).chained == {}


def test_an_entrance_that_cannot_be_opened_leaves_no_connection_open(monkeypatch):
    """It is tried again every half a second while the disk is full."""
    workers = workers_of(same, same, end=False)
    opened, closed = [], []
    connect, close = MemoryBackend.connect, MemoryConnection.close

    def counted(backend):
        opened.append(connect(backend))
        return opened[-1]

    def full(*_):
        raise BackendUnavailableError("database or disk is full")

    own = workers.joined(WORK)
    replica = workers.deployment.member(WORK, own, workers.generation)
    monkeypatch.setattr(MemoryBackend, "connect", counted)
    monkeypatch.setattr(MemoryConnection, "close", lambda end: closed.append(end) or close(end))
    workers.put([1], operator="b")
    with replica._entrances as entrances:
        with monkeypatch.context() as patched:
            patched.setattr(MemoryLanes, "join", full)
            for _ in range(3):
                with pytest.raises(BackendUnavailableError):
                    entrances.visit(is_first=True)
        assert (len(opened), closed) == (3, opened)
        entrances.visit(is_first=True)
        assert (len(opened), len(closed)) == (4, 3)
    assert closed == opened
