"""What several batches share in SQLite: it is there as long as anybody needs it, and no longer."""

import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend, storage
from elastream.engines.spark.backends.sqlite.ledger import SqliteLedger
from elastream.engines.spark.backends.sqlite.waiting import WaitingEvents
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.execution import events_of
from elastream.errors import BackendUnavailableError


def numbered(numbers, lane=0, operator="work"):
    """Events with these numbers."""
    births, data = Births.evenly(len(numbers), 1.0), to_bytes(pa.table({"n": list(numbers)}))
    return Parcel(operator, lane, len(numbers), births, data)


def for_lanes(numbers, lane_of):
    births, data = Births.evenly(len(numbers), 1.0), to_bytes(pa.table({"n": list(numbers)}))
    return Parcel.for_lanes("work", np.array(lane_of), births, data)


def numbers(taken):
    return [n for each in taken for n in events_of(each).table["n"].to_pylist()]


@pytest.mark.parametrize(
    "waiting",
    [numbered(range(100)), for_lanes(range(100), [0, 1] * 50), numbered(range(20_000))],
    ids=["cut", "of several lanes", "large"],
)
def test_what_is_taken_is_what_was_found(backend, end, monkeypatch, waiting):
    """Numbers come again: in between, others may have put something else in its place."""
    end.lanes.commit([], [waiting], Counts())
    found = WaitingEvents.in_lanes

    def and_then_another_acts(*which):
        rows = list(found(*which))
        backend.clear("work")
        with backend.connect() as other:
            other.lanes.join(("another", 0), 1)
            other.lanes.commit([], [numbered([7] * 20_000), numbered([8] * 20_000)], Counts())
        yield from rows

    with monkeypatch.context() as patched:
        patched.setattr(WaitingEvents, "in_lanes", and_then_another_acts)
        taken = end.lanes.take(10)
    first = numbers(taken)
    assert first == sorted(set(first)), "and not the other's events, which are all alike"
    assert not end.lanes.commit(taken, [], Counts())


OPERATORS = ("work", "end")
SOURCE = "in"


class Flow(RuleBasedStateMachine):
    """Events on their way from a source to two operators and an output, whatever happens to them.

    It is compared with the numbers that wait for each operator.
    """

    @initialize()
    def begin(self):
        self.open = ExitStack()
        folder = self.open.enter_context(tempfile.TemporaryDirectory())
        patched = self.open.enter_context(pytest.MonkeyPatch.context())
        patched.setattr(storage, "LARGE", 500)  # So that some are large, and others are not.
        self.folder, self.states = Path(folder), 0
        self.lanes = dict.fromkeys(OPERATORS, 3)
        self.backend = self.new_state()
        self.backend.prepare("flow", self.layout)
        self.connect()
        self.waiting = {name: Counter() for name in (SOURCE, *OPERATORS, output_of("end"))}
        self.number = self.admitted = 0

    def new_state(self):
        self.states += 1
        return SqliteBackend(self.folder / str(self.states))

    @property
    def layout(self):
        return {name: OperatorLanes(lanes) for name, lanes in self.lanes.items()} | {
            SOURCE: OperatorLanes(1)
        }

    def connect(self):
        """One that acts for everybody, and looks into the file."""
        self.end = self.open.enter_context(self.backend.connect())
        self.db = self.end.lanes._db

    def new_numbers(self, count):
        self.number += count
        return range(self.number - count, self.number)

    def act_for(self, operator):
        """In the place of whoever did before."""
        self.end.lanes.join((operator, 0), 1)
        lanes = frozenset(range(self.lanes.get(operator, 1)))
        self.end.lanes.hold(lanes, by_force=lanes)

    def results(self, taken, to, changed):
        for each in taken:
            table = events_of(each).table
            for operator, lane in to:
                data = to_bytes(table.slice(0) if changed else table)
                yield Parcel(operator, lane, each.events, each.births, data)

    @rule(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=3))
    def admit(self, sizes):
        with closing(self.backend.inbox(SOURCE)) as inbox:
            for size in sizes:
                some = self.new_numbers(size)
                inbox.stage("task", size, numbered(some).data)
                self.waiting[SOURCE].update(some)
            assert inbox.admit(self.admitted, {"task": sum(sizes)})
            self.admitted += 1

    @rule(lane_of=st.lists(st.integers(0, 2), min_size=1, max_size=40))
    def produce(self, lane_of):
        some = self.new_numbers(len(lane_of))
        self.act_for("source")
        lanes = [lane % self.lanes["work"] for lane in lane_of]
        assert self.end.lanes.commit([], [for_lanes(some, lanes)], Counts())
        self.waiting["work"].update(some)

    @rule(
        operator=st.sampled_from((SOURCE, *OPERATORS)),
        most=st.sampled_from((3, 10, 1_000)),
        to=st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 2)), max_size=3),
        kept=st.booleans(),
        changed=st.booleans(),
        named=st.booleans(),
        ends=st.sampled_from(("well", "well", "refused", "on a full disk", "in a dead letter")),
    )
    def work(self, operator, most, to, kept, changed, named, ends):
        """Pass on to any number of successors, each of which may be the operator itself."""
        self.act_for(operator)
        to = [(name, lane % self.lanes[name]) for name, lane in to]
        if kept and operator == "end":
            to.append((output_of("end"), 0))
        taken = self.end.lanes.take(most, named=named)
        seen = numbers(taken)
        assert Counter(seen) <= self.waiting[operator]
        results, letters = list(self.results(taken, to, changed)), []
        if ends == "in a dead letter" and seen:
            data = to_bytes(pa.table({"n": seen}))
            results, letters = [], [DeadLetter(operator, len(seen), "ValueError", data)]
        if ends == "refused":
            with self.backend.connect() as other:
                other.lanes.join((operator, 0), 1)
            assert not self.end.lanes.commit(taken, results, Counts())
            return
        if ends == "on a full disk":
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(SqliteLedger, "add", out_of_space)
                with pytest.raises(BackendUnavailableError):
                    self.end.lanes.commit(taken, results, Counts())
        assert self.end.lanes.commit(taken, results, Counts(), letters)
        self.waiting[operator] -= Counter(seen)
        for name, _ in () if letters else to:
            self.waiting[name].update(seen)

    @rule(operator=st.sampled_from(OPERATORS))
    def clear(self, operator):
        assert self.backend.clear(operator) == self.waiting[operator].total()
        self.waiting[operator].clear()

    @rule()
    def retry(self):
        for letter in list(self.end.dead_letters.read()):
            assert self.end.dead_letters.retry([letter]) == 1
            self.waiting[letter.operator].update(from_bytes(letter.data)["n"].to_pylist())

    @rule(operator=st.sampled_from(OPERATORS), lanes=st.integers(1, 4))
    def lay_out(self, operator, lanes):
        self.lanes[operator] = lanes
        self.backend.prepare("flow", self.layout)

    @rule()
    def move(self):
        """Into another state."""
        pieces = list(self.backend.kept())
        self.backend = self.new_state()
        self.backend.restore("flow", self.layout, pieces)
        self.connect()

    @rule()
    def read_outputs(self):
        with closing(self.backend.outbox("end")) as outbox:
            upto = outbox.newest()
            read = outbox.read(outbox.consumed(), upto)
            seen = Counter(n for data in read for n in from_bytes(data)["n"].to_pylist())
            outbox.consume(upto)
        name = output_of("end")
        assert seen == self.waiting[name]
        self.waiting[name].clear()

    @invariant()
    def everything_is_there(self):
        totals = self.end.ledger.totals()
        for name, waiting in self.waiting.items():
            assert totals.waiting(name) == waiting.total()

    @invariant()
    def parcels_are_there_as_long_as_somebody_needs_them(self):
        needed = self.db.execute("SELECT DISTINCT parcel FROM batches WHERE parcel IS NOT NULL")
        there = self.db.execute("SELECT number FROM parcels")
        assert sorted(needed) == sorted(there)

    @invariant()
    def every_lane_knows_its_first_batch_and_the_index_those_behind_it(self):
        first = self.db.execute("SELECT operator, lane, min(number) FROM batches GROUP BY 1, 2")
        heads = self.db.execute("SELECT operator, lane, head FROM lanes WHERE head IS NOT NULL")
        assert sorted(first) == sorted(heads)
        behind = (
            "SELECT number FROM batches WHERE number NOT IN (SELECT head FROM lanes WHERE head)"
        )
        assert self.db.execute(f"{behind} AND NOT follows").fetchall() == []

    def teardown(self):
        if not hasattr(self, "open"):
            return
        try:
            for operator in (SOURCE, *OPERATORS):
                self.act_for(operator)
                seen = Counter()
                while taken := self.end.lanes.take(1_000):
                    seen.update(numbers(taken))
                    assert self.end.lanes.commit(taken, [], Counts())
                assert seen == self.waiting[operator]
            for table in ("batches", "parcels"):
                assert self.db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        finally:
            self.open.close()


def out_of_space(*_):
    raise BackendUnavailableError("no space")


TestFlow = Flow.TestCase
TestFlow.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
