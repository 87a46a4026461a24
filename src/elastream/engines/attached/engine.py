"""An existing query as an engine: one operator, whose replicas are executors."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from elastream.core.decision import Plan
from elastream.core.health import RUNNING, Health, State
from elastream.core.stats import IntervalStats, SourceStats
from elastream.core.topology import Edge, Operator, Source, Topology
from elastream.engines.attached.progress import Progress
from elastream.engines.attached.query import Listener, QueryView
from elastream.engines.attached.record import Look, Record, Totals, latency_since
from elastream.engines.base import Watcher, report_to
from elastream.engines.clocks import Alarm, WallClock
from elastream.engines.executors.fleet import LOOK_SECONDS, SETTLED_LOOK_SECONDS, Fleet
from elastream.errors import InvalidInputError, NotReadyError, described

log = logging.getLogger(__name__)

SOURCE = "source"
QUERY = "query"
SHORTEST_SAMPLE = 1.0
KNOWN_SECONDS = 0.5
"""How long after a trigger the rows of its batch are known: Spark plans it, and a look sees it."""


class AttachedEngine:
    """Watches a query, and gives it executors.

    Args:
        session: The query's session.
        query: A streaming query that runs.
        fleet: The executors of its application.
        sample: The length of a sampling window of the input, in seconds; unless given, two of them
            make a trigger interval, or half of the objective.
        objective: The latency to keep, in seconds; for queries without a trigger interval.
        target: The share of the time from one batch to the next that a batch may take.
        check: Called before every plan; raises if the executors cannot be scaled.
    """

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery,
        fleet: Fleet,
        *,
        sample: float | None,
        objective: float,
        target: float,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.view = QueryView(session, query)
        self.name = operator_name(self.view.name)
        self.topology = _topology(self.name, fleet)
        self.fleet = fleet
        self._session = session
        self._check = check
        self._record = Record(self.view.trigger_seconds, objective, target)
        self.sample = sample or max(self._record.every / 2, SHORTEST_SAMPLE)
        # Spark starts batches at multiples of the trigger interval, and what has arrived is known
        # then: intervals that end right after decide sooner than others.
        self.clock = WallClock((time.time() - KNOWN_SECONDS) % self._record.every)
        self._told: SimpleQueue[str] = SimpleQueue()
        self._lock = threading.Lock()
        self._samples: list[float] = []
        self._untold: list[IntervalStats] = []
        """Of windows that are over: what watchers have not heard yet."""
        self._watchers: tuple[Watcher, ...] = ()
        self._before = self._window_before = Totals()
        self._observed_at = self._window_began = self.clock.now()
        self._interval = self._windows = 0
        self._running = True
        """Whether the query was running when it was last observed."""
        self._closed = threading.Event()
        self._alarm = Alarm()
        self.problem = ""
        """What keeps the query from being watched, in words; empty when it works."""
        # All that PySpark asks of a listener is its part in the JVM.
        self._listener = cast("StreamingQueryListener", Listener(self.view.id, self._hear))
        session.streams.addListener(self._listener)
        self._thread = threading.Thread(target=self._run, name="attached", daemon=True)
        self._thread.start()

    @property
    def record(self) -> Record:
        """What is known about the query."""
        return self._record

    def observe(self) -> IntervalStats:
        """The statistics of the time since the last call, or since the start."""
        if self._closed.is_set():
            raise InvalidInputError("the engine is closed: attach again")
        self._running = self.view.running
        self.fleet.note(self.view.id, self._running)
        if not self._running:
            raise NotReadyError(
                "the query is not running; scaling continues when it is started again"
            )
        every = self.view.trigger_seconds
        with self._lock:
            self._end_window()
            self._record.follow(every)
            now = self.clock.now()
            stats = self._stats(
                self._interval, now - self._observed_at, self._before, tuple(self._samples)
            )
            self._before, self._observed_at = self._record.totals, now
            self._samples.clear()
            self._interval += 1
        return stats

    def health(self) -> Health:
        """Waiting while the query does not run; degraded while it cannot be watched or scaled."""
        if not self._running:
            return Health(State.WAITING, "the query is not running")
        problems = [problem for problem in (self.fleet.problem, self.problem) if problem]
        return Health(State.DEGRADED, "; ".join(problems)) if problems else RUNNING

    def apply(self, plan: Plan) -> None:
        """Ask for this many executors; returns without waiting for them."""
        if self._closed.is_set():
            raise InvalidInputError("the engine is closed: attach again")
        for name, count in plan.replicas.items():
            least, most = self.fleet.least, self.fleet.most
            if name != self.name or not least <= count <= most:
                raise InvalidInputError(
                    f"{count} executors for {name!r}: {least} to {most} are allowed"
                )
            self._check()
            with self._lock:
                wait = self._record.wait_before_asking(time.time(), self.fleet.leads)
            self.fleet.want(self.view.id, count, wait)

    def watch(self, watcher: Watcher) -> None:
        """From now on, report every sampling window to the watcher."""
        with self._lock:
            if not self._watchers:
                self._windows = 0
            self._watchers = (*self._watchers, watcher)

    def close(self) -> None:
        """Stop watching, and leave the query and its executors as they are."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._alarm.ring()
        self._thread.join()
        with suppress(Exception):  # The session may have ended, and its listeners with it.
            self._session.streams.removeListener(self._listener)

    def _hear(self, progress: str) -> None:
        """A batch has ended; Spark waits for this."""
        self._told.put(progress)
        self._alarm.ring()
        if not self.fleet.settled:
            self.fleet.wake()

    def _run(self) -> None:
        while not self._closed.is_set():
            # That a batch begins must be seen at once; while it is at work, a look has its price.
            calm = self._record.at_work and self.fleet.settled
            self._alarm.wait(SETTLED_LOOK_SECONDS if calm else LOOK_SECONDS)
            problem = ""
            for step in (self._look, self._tell):
                try:
                    step()
                except Exception as error:  # Whatever fails, the query must not notice.
                    problem = f"the query cannot be watched now: {described(error)}"
            if problem and problem != self.problem:
                log.info("%s", problem)
            self.problem = problem

    def _look(self) -> None:
        while True:
            try:
                progress = Progress.parsed(self._told.get_nowait())
            except Empty:
                break
            work = self.view.work_of(progress.batch)
            with self._lock:
                self._record.end(progress, work)
        # After the batches that have ended: what is at work now can only be later.
        position, tasks, present = self.view.position, self.view.tasks(), self.fleet.present
        look = Look(
            now=time.time(),
            executors=frozenset(executor.name for executor in present),
            cores=sum(executor.cores for executor in present),
            position=position,
            batches_waiting=self.view.batches_waiting,
            running=tasks.running,
            waiting=tasks.waiting,
        )
        with self._lock:
            self._record.look(look)

    def _end_window(self) -> None:
        """Take in the sampling window, if it is over; `self._lock` is held."""
        now = self.clock.now()
        # They end at multiples of their length, as the intervals of the control loop do.
        if now // self.sample == self._window_began // self.sample:
            return
        duration, self._window_began = now - self._window_began, now
        before, self._window_before = self._window_before, self._record.totals
        sample = self._record.sample(before, self.sample, duration)
        self._samples.append(sample)
        if self._watchers:
            stats = self._stats(self._windows, duration, before, (sample,))
            self._untold.append(stats)
            self._windows += 1

    def _tell(self) -> None:
        """Report the sampling windows that are over."""
        with self._lock:
            self._end_window()
            untold, self._untold = self._untold, []
            watchers = self._watchers
        for stats in untold:
            report_to(watchers, stats)

    def _stats(
        self, number: int, duration: float, before: Totals, samples: tuple[float, ...]
    ) -> IntervalStats:
        there, wanted = max(self.fleet.share(self.view.id), 1), self.fleet.wanted(self.view.id)
        of_query = self._record.stats(before, there, wanted, self.fleet.lead_time)
        return IntervalStats(
            interval=number,
            duration=max(duration, 1e-6),
            sources={SOURCE: SourceStats(of_query.received, 0.0, samples)},
            operators={self.name: of_query},
            edges={(SOURCE, self.name): of_query.received},
            latency=latency_since(before, self._record.totals),
        )


def operator_name(name: str | None) -> str:
    """A query's name as the name of an operator.

    >>> operator_name("orders, cleaned"), operator_name(None), operator_name("9 lives")
    ('orders-cleaned', 'query', 'query-9-lives')
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", name or QUERY).strip("-") or QUERY
    return cleaned if cleaned[0].isalpha() else f"{QUERY}-{cleaned}"


def _topology(name: str, fleet: Fleet) -> Topology:
    def query(batch: object) -> object:
        return batch

    operator = Operator(name, query, pool=fleet.most, minimum=fleet.least)
    return Topology(name, (Source(SOURCE),), (operator,), (Edge(SOURCE, name),))
