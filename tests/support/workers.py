"""The members of a pipeline on threads, over a backend in memory: without Spark, without a disk."""

import threading
import uuid
from contextlib import contextmanager

import pyarrow as pa

from elastream.core.lanes import assign
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.execution import events_of
from support.memory_backend import MemoryBackend


class Workers:
    """A pipeline whose generation is started; each test says who runs, and what the plan is."""

    def __init__(self, topology, traces=None, outputs=(), **options):
        self.backend = MemoryBackend(uuid.uuid4().hex)
        self.deployment = Deployment(
            topology, traces or {}, Options(**options), self.backend, frozenset(outputs)
        )
        self.backend.prepare(topology.name, self.deployment.layout)
        driver = self.backend.connect()
        self.board, self.ledger, self.dead_letters = (
            driver.board,
            driver.ledger,
            driver.dead_letters,
        )
        self.next_generation()
        self._producer = self.joined(("outside", 0))

    def next_generation(self):
        """Whoever runs from now on is of a new generation, which is started."""
        self.generation = self.board.new_generation(self.deployment.members)
        self.board.start(self.generation)

    def joined(self, name, holding=()):
        """A connection that acts for a member, and holds these lanes, if need be by force."""
        end = self.backend.connect()
        end.lanes.join(name, self.generation)
        end.lanes.hold(frozenset(holding), by_force=frozenset(holding))
        return end

    def put(self, numbers, lane=0, operator="work", born=0.0, **columns):
        """Events with these numbers, in one batch of a lane."""
        table = pa.table({"n": list(numbers), **columns})
        births = Births.evenly(table.num_rows, born)
        parcel = Parcel(operator, lane, table.num_rows, births, to_bytes(table))
        assert self._producer.lanes.commit([], [parcel], Counts())

    def plan(self, owners=None, admits=True, halted=False, **active):
        """Publish who is active; lanes are shared evenly where no owners are given."""
        owners = dict(owners or {})
        for name, replicas in active.items():
            layout = self.deployment.layout[name]
            even = assign((-1,) * layout.lanes, replicas, [1.0] * layout.lanes)
            owners.setdefault(name, () if layout.shared else even)
        self.board.publish(LanePlan(active, owners, admits, halted=halted))

    @contextmanager
    def running(self, *names):
        """These members, each on a thread of its own, dismissed at the end."""
        threads = [threading.Thread(target=self._run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        try:
            yield threads
        finally:
            self.board.dismiss()
            for thread in threads:
                thread.join()

    def _run(self, name):
        with self.backend.connect() as connection:
            self.deployment.member(name, connection, self.generation).run()

    def waiting(self, operator):
        return self.ledger.totals().waiting(operator)

    def lengths(self, operator):
        lanes = self.ledger.totals().lanes[operator]
        return {lane: of.waiting for lane, of in lanes.items() if of.waiting}

    def rows(self, operator="end"):
        """The events that wait for an operator, in the order of their arrival."""
        end = self.joined((operator, 1000), range(self.deployment.layout[operator].lanes))
        return [row for each in end.lanes.take(10**6) for row in events_of(each).table.to_pylist()]


def rows_of(letter):
    """The events of a dead letter."""
    return from_bytes(letter.data).to_pylist()
