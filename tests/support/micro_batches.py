"""A query in micro-batches in virtual time: what an attached one does, without Spark.

Batches begin at multiples of the trigger interval, or right after one that was late; their tasks go
to free cores one after the other; executors come some seconds after they were asked for, and their
first task takes longer; between batches, they get one that does nothing. What an engine can see of
it goes through the real `Record` and `Fleet`.
"""

import itertools
import math
from collections import deque

import numpy as np

from elastream.core.stats import IntervalStats, SourceStats
from elastream.core.topology import Edge, Operator, Source, Topology
from elastream.engines.attached.progress import Progress
from elastream.engines.attached.record import Look, Record, Totals, Work, latency_since
from elastream.engines.executors.base import Executor
from elastream.engines.executors.fleet import Fleet

STEP = 0.25


class VirtualCluster:
    """Executors of one core that come `lead` seconds after they were asked for."""

    def __init__(self, clock, start, lead, warm_up=0.0):
        self.clock, self.lead, self.warm_up = clock, lead, warm_up
        self.numbers = itertools.count()
        self.there = {}
        self.free_at = {}
        self.coming = deque()
        self.new = set()
        self.total = start
        for _ in range(start):
            self._arrive(-1e9)

    def _arrive(self, since):
        name = str(next(self.numbers))
        self.there[name] = since
        self.free_at[name] = self.clock()
        self.new |= {name} if since >= 0 else set()

    def step(self):
        while self.coming and self.coming[0] <= self.clock():
            self.coming.popleft()
            self._arrive(self.clock())
        missing = self.total - len(self.there) - len(self.coming)
        for _ in range(missing):
            self.coming.append(self.clock() + self.lead)

    def busy(self, name):
        return self.free_at[name] > self.clock()

    def list(self):
        return [
            Executor(name, 1, running=int(self.busy(name)), since=since, new=name in self.new)
            for name, since in self.there.items()
        ]

    def ask(self, total):
        self.total = total
        while self.coming and len(self.there) + len(self.coming) > total:
            self.coming.pop()
        self.step()

    def start_on(self, name):
        """How much longer the task takes that it gets now."""
        extra = self.warm_up if name in self.new else 0.0
        self.new.discard(name)
        return extra

    def greet(self):
        for name in [*self.new & self.there.keys()]:
            if not self.busy(name):
                self.free_at[name] = self.clock() + self.start_on(name)

    def release(self, names):
        idle = {name for name in names if not self.busy(name)}
        for name in idle:
            del self.there[name], self.free_at[name]
        return idle


class VirtualClock:
    def __init__(self, engine):
        self.engine = engine

    def now(self):
        return self.engine.time

    def sleep_until(self, moment):
        while self.engine.time < moment - 1e-9:
            self.engine.tick()

    def wake(self):
        pass


class MicroBatches:
    """An engine; `rates` are rows per second, one value for every second.

    Args:
        rates: The input.
        executors: The fewest and the most.
        start: How many there are at first.
        every: The trigger interval.
        per_row: Seconds of one core per row.
        fixed: Seconds of every batch.
        tasks: Of every batch.
        lead: How long an executor takes to come.
        warm_up: How much longer its first task takes.
        target: What part of the interval a batch may take.
    """

    def __init__(
        self, rates, executors=(1, 8), start=1, every=5.0, per_row=0.01, fixed=0.4, tasks=16,
        lead=5.0, warm_up=1.0, target=0.8, sample=None,
    ):  # fmt: skip
        self.time = 0.0
        self.arrived = np.concatenate([[0.0], np.cumsum(np.asarray(rates, dtype=float))])
        self.every, self.per_row, self.fixed, self.tasks = every, per_row, fixed, tasks
        self.sample = sample or every / 2
        self.cluster = VirtualCluster(lambda: self.time, start, lead, warm_up)
        self.fleet = Fleet(
            self.cluster, *executors, clock=lambda: self.time, greet=self.cluster.greet
        )
        self.fleet.want("query", start)
        self.clock = VirtualClock(self)
        operator = Operator("query", lambda rows: rows, pool=executors[1], minimum=executors[0])
        self.topology = Topology(
            "query", (Source("source"),), (operator,), (Edge("source", "query"),)
        )
        self.record = Record(every, 0.0, target)
        self.read = self.committed = 0.0
        self.batch = 0
        self.ends_at = None
        self.began = 0.0
        self.waiting = deque()
        self.work = 0.0
        self.last_read_at = 0.0
        self.latencies, self.weights, self.ends = [], [], []
        self.executor_seconds = 0.0
        self.counts = []
        self.backlog = 0.0
        self.samples, self.window = [], 0.0
        self.before, self.observed, self.interval = Totals(), 0.0, 0
        self.window_before = Totals()

    def rows_by(self, moment):
        seconds = np.arange(len(self.arrived))
        return float(np.interp(moment, seconds, self.arrived))

    def tick(self):
        self.time = round(self.time + STEP, 6)
        self.cluster.step()
        self._take_tasks()
        self.fleet.step()
        self.executor_seconds += STEP * len(self.cluster.there)
        self.counts.append(len(self.cluster.there))
        self._work()
        self.backlog = max(self.backlog, self.rows_by(self.time) - self.committed)
        running = sum(self.cluster.busy(name) for name in self.cluster.there)
        names = frozenset(executor.name for executor in self.fleet.present)
        self.record.look(Look(self.time, names, len(names), self.read, running, len(self.waiting)))
        if self.time - self.window >= self.sample - 1e-9:
            length = self.time - self.window
            self.samples.append(self.record.sample(self.window_before, self.sample, length))
            self.window, self.window_before = self.time, self.record.totals

    def _work(self):
        if self.ends_at is None:
            due = self.batch == 0 or self.time >= self.due
            if due:
                self._begin()
        self._take_tasks()
        if self.ends_at is not None and not self.waiting and self.time >= self.ends_at:
            self._end()

    def _begin(self):
        self.start, self.began = self.read, self.time
        self.read = self.rows_by(self.time)
        rows = self.read - self.start
        self.waiting.extend([rows / self.tasks * self.per_row] * (self.tasks if rows else 0))
        self.ends_at = self.time + self.fixed
        self.work = 0.0

    def _take_tasks(self):
        for name in self.cluster.there:
            while self.waiting and self.cluster.free_at[name] <= self.time:
                begins = max(self.cluster.free_at[name], self.time - STEP, self.began)
                taken = self.waiting.popleft() + self.cluster.start_on(name)
                self.work += taken
                end = begins + taken
                self.cluster.free_at[name] = end
                self.ends_at = max(self.ends_at, end + self.fixed)

    def _end(self):
        rows, ended = self.read - self.start, self.ends_at
        parts = 20
        if rows:
            arrivals = np.interp(
                self.start + rows * (np.arange(parts) + 0.5) / parts,
                self.arrived, np.arange(len(self.arrived)),
            )  # fmt: skip
            self.latencies.extend(ended - arrivals)
            self.ends.extend([ended] * parts)
            self.weights.extend([rows / parts] * parts)
        self.committed = self.read
        progress = Progress(
            "run", self.batch, self.began, ended - self.began, self.fixed, rows,
            self.start, self.read, self.read,
        )  # fmt: skip
        self.batch += 1
        self.ends_at = None
        self.due = max(math.ceil((self.began + 1e-9) / self.every) * self.every, self.time)
        if rows:
            self.record.end(progress, Work(self.tasks, self.work))

    def observe(self):
        there, wanted = max(self.fleet.share("query"), 1), self.fleet.wanted("query")
        stats = self.record.stats(self.before, there, wanted, self.fleet.lead_time)
        found = IntervalStats(
            self.interval,
            self.time - self.observed,
            {"source": SourceStats(stats.received, 0.0, tuple(self.samples))},
            {"query": stats},
            {("source", "query"): stats.received},
            latency_since(self.before, self.record.totals),
        )
        self.before, self.observed, self.samples = self.record.totals, self.time, []
        self.interval += 1
        return found

    def apply(self, plan):
        wait = self.record.wait_before_asking(self.time, self.fleet.leads)
        self.fleet.want("query", plan.replicas["query"], wait)

    def watch(self, watcher):
        pass

    def close(self):
        pass

    def quantile(self, share):
        order = np.argsort(self.latencies)
        weights = np.cumsum(np.asarray(self.weights)[order])
        return float(
            np.asarray(self.latencies)[order][np.searchsorted(weights, share * weights[-1])]
        )
