"""Several producers that share the replicas of an operator, and know only what they are told.

Time is simulated event by event: a batch arrives at a producer, its grouping chooses replicas, each
replica serves its own queue in order. Reports of loads are measured every `period` seconds and
reach every producer `delay` seconds later; what replicas say themselves arrives at once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from elastream.core.groupings import Batch
from elastream.core.groupings.base import ReplicaLoads, SyncReply, Utilization
from elastream.core.stats import OperatorStats, ReplicaStats

ZIPF_SKEW = 1.5


@dataclass(frozen=True)
class Outcome:
    """How long every event took, which replica it went to, and when it came."""

    latencies: np.ndarray
    chosen: np.ndarray
    arrived: np.ndarray

    @property
    def mean(self):
        return float(self.latencies.mean())

    @property
    def p99(self):
        return float(np.quantile(self.latencies, 0.99))

    def after(self, time):
        late = self.arrived >= time
        return Outcome(self.latencies[late], self.chosen[late], self.arrived[late])


class Replica:
    """Serves its events in order; remembers what it has done since the last look."""

    def __init__(self, number, slowness, side, backlog):
        self.number = number
        self.slowness = slowness
        self.side = side
        self.free_at = backlog
        self._backlog = backlog
        self._served = deque()

    def serve(self, time, seconds):
        """Take an event; returns when it is done."""
        start = max(self.free_at, time)
        self.free_at = start + seconds * self.slowness
        self._served.append((start, self.free_at))
        return self.free_at

    def look(self, now, typical):
        """What it did by now, and what waits."""
        done, busy = 0, 0.0
        while self._served and self._served[0][1] <= now:
            start, end = self._served.popleft()
            done, busy = done + 1, busy + end - start
        waiting = sum(start > now for start, _ in self._served)
        waiting += max(self._backlog - now, 0.0) / (typical * self.slowness)
        return ReplicaStats(done, busy, waiting)


class Reports:
    """Measures the replicas every period, and brings to producers what is due."""

    def __init__(self, grouping, replicas, period, delay, typical):
        self._grouping = grouping
        self._replicas = replicas
        self._period, self._delay, self._typical = period, delay, typical
        self._next = period
        self._mail = []
        self.received = 0

    def say(self, time, to, message):
        """Bring a message to one producer, or to all of them (None), at that time."""
        self._mail.append((time, to, message))

    def bring(self, time, states):
        """Let every producer learn what has arrived by then."""
        while self._next <= time:
            self._measure(self._next)
            self._next += self._period
        due = [mail for mail in self._mail if mail[0] <= time]
        self._mail = [mail for mail in self._mail if mail[0] > time]
        for _, to, message in due:
            for number in range(len(states)) if to is None else (to,):
                states[number] = self._grouping.learn(states[number], message)

    def _measure(self, now):
        of = {replica.number: replica.look(now, self._typical) for replica in self._replicas}
        done, busy = sum(r.processed for r in of.values()), sum(r.busy for r in of.values())
        waiting = sum(r.queued for r in of.values())
        stats = OperatorStats(self.received, done, done, waiting, busy, len(of), replicas=of)
        self.received = 0
        self.say(now + self._delay, None, ReplicaLoads.of(stats, len(of), self._period))
        levels = tuple(min(replica.busy / self._period, 1.0) for replica in of.values())
        each = busy / max(done, 1) / self._period
        self.say(now + self._delay, None, Utilization(levels, each))


def play(
    grouping,
    *,
    producers=4,
    slowness=(1.0, 1.0, 1.0, 1.0),
    load=0.5,
    seconds=0.01,
    costs=None,
    duration=60.0,
    period=1.0,
    delay=0.0,
    batch=4,
    jitter=0.0,
    backlog=0.0,
):
    """What becomes of the events of all producers.

    Args:
        load: Of the replicas, if all had a slowness of 1.
        seconds: What an event takes, if it does not depend on its value.
        costs: What an event of each value takes, with values drawn by Zipf.
        jitter: Coefficient of variation of what an event takes.
        backlog: Seconds of work that wait for the first replica at the start.
    """
    rng = np.random.default_rng(0)
    costs = np.full(16, seconds) if costs is None else costs
    chances = np.arange(1, len(costs) + 1) ** -ZIPF_SKEW
    chances /= chances.sum()
    mean = float(np.dot(costs, chances))
    replicas = [
        Replica(number, slow, grouping.replica_side(number), backlog if number == 0 else 0.0)
        for number, slow in enumerate(slowness)
    ]
    reports = Reports(grouping, replicas, period, delay, mean)
    states = [grouping.start(len(replicas), number) for number in range(producers)]
    gap = batch * mean / (load * len(replicas))
    batches = int(duration / gap)
    times = np.sort((np.arange(batches) + producers * rng.uniform(-0.5, 0.5, batches)) * gap)
    senders = rng.permuted(np.tile(np.arange(producers), (batches, 1)), axis=1).ravel()
    values = rng.choice(len(costs), p=chances, size=(batches, batch))
    noise = rng.gamma(1 / jitter**2, jitter**2, values.shape) if jitter else np.ones(values.shape)
    latencies, chosen = np.zeros(values.shape), np.zeros(values.shape, dtype=int)
    for row, time in enumerate(times.tolist()):
        reports.bring(time, states)
        sender = int(senders[row])
        routing = grouping.route(states[sender], Batch.of(values[row]), np.arange(len(replicas)))
        states[sender] = routing.state
        reports.received += batch
        chosen[row] = routing.replicas
        takes = costs[values[row]] * noise[row]
        for number in np.unique(routing.replicas).tolist():
            mine, replica = np.flatnonzero(routing.replicas == number), replicas[number]
            ends = [replica.serve(time, takes[place]) for place in mine]
            latencies[row, mine] = np.array(ends) - time
            if replica.side is not None:
                _report(replica, reports, sender, routing, mine, values[row], takes)
    return Outcome(latencies.ravel(), chosen.ravel(), np.repeat(times, batch))


def _report(replica, reports, sender, routing, mine, values, takes):
    """Let the replica's side of the grouping take note of its events when they are done."""
    requests = [
        replace(request, position=int(np.searchsorted(mine, request.position)))
        for request in routing.requests
        if request.replica == replica.number
    ]
    seconds = takes[mine] * replica.slowness
    replica.side, said = replica.side.execute(values[mine], seconds, requests)
    for message in said:
        reports.say(replica.free_at, sender if isinstance(message, SyncReply) else None, message)
