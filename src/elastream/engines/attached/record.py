"""From the batches of a query to the statistics of an interval.

Spark tells of a batch when it has ended. What arrived for it is known when it begins, where offsets
can be counted, and that is earlier: a batch that is too large for its executors takes long. Rows
that arrive are known for the stretch before the newest batch, so a sample of the input is the rate
of that stretch; one that is longer than a trigger interval is the mean of several.

Policies expect a flow, and a query works in batches: so the rows of a batch that has ended are
reported as processed evenly over one trigger interval, not all at once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from elastream.core.batches import Batch, BatchModel, fitted
from elastream.core.latency import LatencyHistogram
from elastream.core.stats import BatchStats, Latency, OperatorStats
from elastream.engines.attached.progress import Progress

REMEMBERED_BATCHES = 100
REMEMBERED_RATIOS = 5
ALIKE = 1.5
"""Offsets count rows when the rows per step of recent batches differ by at most this factor."""
SAME = 0.05
"""Two batches are limited alike when their rows differ by at most this share."""
RISE = 2.0
"""A batch is not expected to have more than this many times the rows of the one before."""
FIRST_TASK = 1.5
"""An executor's first task takes at most this many times as long as the executor took to come."""
PARTS = 16
"""How many parts the latencies of a batch are counted in."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the query and its executors."""

    now: float
    """In seconds since 1970."""
    executors: frozenset[str]
    cores: int
    """Of all executors."""
    position: float | None = None
    """How far the sources have been read, the batch at work included."""
    running: int = 0
    waiting: int = 0
    batches_waiting: float | None = None
    """How many full batches wait at a source whose positions do not count rows, if it tells."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the tasks of a batch did."""

    tasks: int
    """Of its largest stage: those that can be at work at once."""
    seconds: float
    """Of all of them, added up."""

    def with_stage(self, tasks: int, seconds: float) -> Work:
        """This and what one more stage did."""
        return Work(max(self.tasks, tasks), self.seconds + seconds)


NO_WORK = Work(0, 0.0)


@dataclass(frozen=True, slots=True)
class Watched:
    """What looks have seen, added up over time: they are closer together at some times."""

    seconds: float = 0.0
    running: float = 0.0
    """Tasks at work, times seconds, ..."""
    waiting: float = 0.0
    """... and those without a core."""

    def then(self, look: Look, since: float) -> Watched:
        """This and the time from the look before, which was at `since`."""
        seconds = max(look.now - since, 0.0)
        return Watched(
            self.seconds + seconds,
            self.running + look.running * seconds,
            self.waiting + look.waiting * seconds,
        )


@dataclass(frozen=True, slots=True)
class Arrived:
    """Rows that have arrived, over stretches of which it is known."""

    seconds: float = 0.0
    rows: float = 0.0

    def __add__(self, other: Arrived) -> Arrived:
        return Arrived(self.seconds + other.seconds, self.rows + other.rows)

    def __sub__(self, other: Arrived) -> Arrived:
        return Arrived(self.seconds - other.seconds, self.rows - other.rows)


@dataclass(frozen=True, slots=True)
class Totals:
    """What was counted from the start."""

    processed: float = 0.0
    received: float = 0.0
    busy: float = 0.0
    ended: int = 0
    watched: Watched = field(default_factory=Watched)
    arrived: Arrived = field(default_factory=Arrived)
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)


@dataclass(frozen=True, slots=True)
class _Part:
    """Of a batch that has ended: what is still to be reported, and until when."""

    rows: float
    busy: float
    until: float


class Record:
    """Adds up one query.

    Args:
        every: The trigger interval in seconds; 0 if batches follow one another at once.
        objective: The latency to keep without a trigger interval, in seconds.
        target: The share of the time from one batch to the next that a batch may take.
    """

    def __init__(self, every: float, objective: float, target: float) -> None:
        self._objective, self._target = objective, target
        self.follow(every)
        self.totals = Totals()
        self.rate = 0.0
        """Rows per second that arrived in the newest stretch that is known, ..."""
        self._rate_before = 0.0
        """... and in the one before."""
        self.model: BatchModel | None = None
        self._batches: deque[Batch] = deque(maxlen=REMEMBERED_BATCHES)
        self._ratios: deque[float] = deque(maxlen=REMEMBERED_RATIOS)
        self._last: Progress | None = None
        self._began: float | None = None
        self._rows: float | None = None
        self._behind = 0.0
        """Rows that wait at the source, beside those of the batch at work, ..."""
        self._was_behind = 0.0
        """... and those that waited when the last batch had ended."""
        self._most: float | None = None
        """The most rows that the source gives a batch, while it holds others back."""
        self._newest = Arrived()
        """The newest stretch of which it is known what has arrived, ..."""
        self._expected = False
        """... and whether it is known from the beginning of the batch that is at work."""
        self._read: float | None = None
        """The position at which the last reported batch ended."""
        self._seen: Look | None = None
        self._lately = deque([Watched()])
        """What was watched after each look, from one trigger interval ago on."""
        self._steady_since = math.inf
        self._reported_until = 0.0
        self._unreported: list[_Part] = []

    @property
    def at_work(self) -> bool:
        """Whether a batch is at work."""
        return self._began is not None

    @property
    def parts(self) -> Mapping[str, float]:
        """How long the parts of the newest batch took, in seconds."""
        return self._last.parts if self._last else {}

    def follow(self, every: float) -> None:
        """The trigger interval is this from now on; a query may be restarted with another one."""
        self._trigger = every
        # A row waits for one batch and is in the next: both have to fit into the objective.
        self.every = every or self._objective / 2
        """From the start of one batch to that of the next, in seconds."""
        self.within = self.every * self._target
        """How long a batch may take, in seconds."""

    def look(self, look: Look) -> None:
        """Take in a look between batches, or while one is at work."""
        before, self._seen = self._seen, look
        if before is None or before.executors != look.executors:
            self._steady_since = look.now
        if look.batches_waiting is not None and self._last:
            self._behind = look.batches_waiting * self._last.rows
        if self._began is None and self._at_work(look):
            self._begin(look)
        elif self._began is None and self._idle(look.now):
            self._arrive(0.0, look.now - before.now if before else 0.0)
            self._take_back(0.0)
        self._report(look.now)
        watched = self.totals.watched.then(look, before.now if before else look.now)
        self.totals = replace(self.totals, watched=watched)
        self._lately.append(watched)
        while watched.seconds - self._lately[1].seconds >= self.every:
            self._lately.popleft()
        self._wait(look.now)

    def end(self, progress: Progress, work: Work) -> None:
        """A batch has ended; this is what its tasks did."""
        last, self._last = self._last, progress
        first = last is None or last.run != progress.run
        before = None if first else last
        stretch = self._stretch(progress.began, before)
        was_behind = self._was_behind
        self._behind = self._was_behind = self._left_by(progress)
        self._most = self._limit(before, progress) if was_behind and self._behind else None
        arrived = self._arrived(before, progress) if was_behind or self._behind else None
        if self._expected:
            self._forget_newest()
        self._arrive(progress.rows / stretch if arrived is None else arrived, stretch)
        self._began = self._rows = None
        self._read = progress.end
        if progress.rows and progress.start is not None and progress.end is not None:
            steps = progress.end - progress.start
            self._ratios.append(progress.rows / steps if steps > 0 else 0.0)
        if self._seen and progress.rows and work.tasks and last is not None and not first:
            # The first batch of a run loads what later ones have loaded, and executors start their
            # Python processes with their first batch.
            batch = Batch(
                rows=progress.rows,
                seconds=progress.seconds,
                tasks=work.tasks,
                cores=max(self._seen.cores, 1),
                work=work.seconds,
                overhead=progress.overhead,
                steady=self._steady_since <= last.began,
            )
            self._batches.append(batch)
            self.model = fitted(self._batches)
        self._count(progress, stretch)
        self._take_back(self.rate * progress.seconds)
        self._wait(progress.ended)

    def sample(self, before: Totals, length: float, seconds: float) -> float:
        """How many rows have arrived in a sampling window.

        Args:
            before: The counts at its start.
            length: How long windows are, in seconds, ...
            seconds: ... and how long this one was.
        """
        arrived = self.totals.arrived - before.arrived
        # In a shorter one, one batch at most has begun, and its rate is the newest that is known.
        if length <= self.every or arrived.seconds < self.every / 2:
            return self.rate * seconds
        return max(arrived.rows, 0.0) / arrived.seconds * seconds

    def stats(self, before: Totals, there: int, wanted: int | None, lead: float) -> OperatorStats:
        """What happened since the counts were `before`.

        Args:
            before: The counts of then.
            there: The executors that take tasks.
            wanted: How many were asked for; None while nobody has asked.
            lead: How long they take to come, in seconds.
        """
        active = min(there, wanted or there)
        now = self.totals
        processed = now.processed - before.processed
        # Over less than from one batch to the next, the mean is that of a part of a batch.
        since = min(before.watched, self._lately[0], key=lambda watched: watched.seconds)
        watched = max(now.watched.seconds - since.seconds, 1e-9)
        seen = self._seen
        took = self._last.seconds if self._last else 0.0
        if self._began is not None and seen:
            took = max(took, seen.now - self._began)
        return OperatorStats(
            # What is taken back may be more than what has come since.
            received=max(now.received - before.received, 0.0),
            processed=processed,
            emitted=processed,
            queued=now.received - now.processed,
            busy=now.busy - before.busy,
            active=active,
            draining=there - active,
            pending=max((wanted or 0) - there, 0),
            batches=BatchStats(
                ended=now.ended - before.ended,
                seconds=took,
                every=self.every,
                within=self.within,
                cores=max(round(seen.cores / len(seen.executors)), 1)
                if seen and seen.executors
                else 1,
                running=(now.watched.running - since.running) / watched,
                waiting=(now.watched.waiting - since.waiting) / watched,
                lead=lead,
                most=self._most if self._trigger else None,
                model=self.model,
            ),
        )

    def wait_before_asking(self, now: float, leads: tuple[float, float]) -> float:
        """How long to put off a request for executors.

        An executor that comes while tasks of a batch wait gets one of them, and for its first one
        it starts processes once more: that takes about as long as it took to come. If the batch
        would be over by then, it only takes longer. So it had better come when the last tasks have
        begun, and before the next batch. If it comes in a batch that has not begun yet, and the
        input rises, that batch takes longer than the newest one.

        Args:
            now: In seconds since 1970.
            leads: How long executors take to come, at least and usually, in seconds.
        """
        model, seen = self.model, self._seen
        if not self._trigger or model is None or seen is None:
            return 0.0
        soonest, usual = leads
        rows, comes = self.rate * self.every, now % self._trigger + soonest
        if comes >= self._trigger and self._rate_before > 0:
            rows *= min(max(self.rate / self._rate_before, 1.0), RISE)
        ends, task = model.upper * model.seconds(rows, seen.cores), model.task_seconds(rows)
        comes %= self._trigger
        # The last tasks begin one task before the end; the other half is for what takes longer.
        last_begun = ends - task / 2
        useful, late = comes + FIRST_TASK * usual + task <= ends, ends >= self._trigger
        if useful or late or usual - soonest > self._trigger - last_begun:
            return 0.0
        if comes < last_begun:
            return last_begun - comes
        before_next = comes + usual - soonest <= self._trigger
        return 0.0 if before_next else last_begun - comes + self._trigger

    def _at_work(self, look: Look) -> bool:
        """Whether a batch is at work that Spark has not reported yet."""
        if look.position is None or self._read is None:
            return look.running + look.waiting > 0
        return look.position != self._read

    def _idle(self, now: float) -> bool:
        """Whether triggers have passed at which there was nothing to do."""
        return self._last is not None and now - self._last.ended > 2 * self.every

    def _begin(self, look: Look) -> None:
        """A batch has begun: what it will work on arrived since the one before began."""
        rows = self._rows_between(self._read, look.position)
        began = look.now
        if self._trigger:
            # Spark starts batches at multiples of the interval, or right after a late one.
            began = math.floor(look.now / self._trigger) * self._trigger
        began = max(began, self._last.ended) if self._last else began
        self._began, self._rows, self._rate_before = began, rows, self.rate
        if rows is None:
            return
        if rows > self._behind:
            stretch = self._stretch(began, self._last)
            self._arrive((rows - self._behind) / stretch, stretch)
            self._expected = True
        # Otherwise the batch is limited, and says nothing about what has arrived meanwhile.
        self._behind = max(self._behind - rows, 0.0)
        self._take_back(rows)

    def _arrive(self, rate: float, stretch: float) -> None:
        """So many rows per second have arrived in one more stretch."""
        self.rate, self._newest = rate, Arrived(stretch, rate * stretch)
        self.totals = replace(self.totals, arrived=self.totals.arrived + self._newest)

    def _forget_newest(self) -> None:
        """The batch that was at work has ended, and says what has arrived in that stretch."""
        self.totals = replace(self.totals, arrived=self.totals.arrived - self._newest)
        self._expected = False

    def _stretch(self, began: float, last: Progress | None) -> float:
        """How long the rows of a batch that began then have been arriving, in seconds.

        When the query was idle in between, its triggers found nothing before the last one.
        """
        if last is None:
            return max(self.every, 1e-3)
        longest = max(self.every, last.seconds)
        return min(max(began - last.began, 1e-3), longest * (1 + 1e-6))

    def _arrived(self, last: Progress | None, progress: Progress) -> float | None:
        """Rows per second that arrived between two batches, read or not, if the source tells.

        A source with a limit (such as Kafka's maxOffsetsPerTrigger) reads less than arrives.
        """
        rows = self._rows_between(last.latest, progress.latest) if last else None
        passed = progress.began - last.began if last else 0.0
        return rows / passed if rows is not None and passed > 0 else None

    def _rows_between(self, start: float | None, end: float | None) -> float | None:
        """How many rows there are between two positions, if recent batches agree on it."""
        if start is None or end is None or not self._ratios or min(self._ratios) <= 0:
            return None
        if max(self._ratios) > ALIKE * min(self._ratios):
            return None
        return max(end - start, 0.0) * float(np.median(self._ratios))

    def _limit(self, last: Progress | None, progress: Progress) -> float | None:
        """What two batches had that left rows waiting, if that was the same: the source's limit."""
        if last is None or abs(progress.rows - last.rows) > SAME * last.rows:
            return None
        return max(progress.rows, last.rows)

    def _left_by(self, progress: Progress) -> float:
        """How many rows wait at the source after a batch, as far as the source tells."""
        counted = self._rows_between(progress.end, progress.latest)
        if counted is None and self._seen and self._seen.batches_waiting is not None:
            return self._seen.batches_waiting * progress.rows
        return counted or 0.0

    def _wait(self, now: float) -> None:
        """Rows that wait longer than they should: behind at the source, or in a batch that is late.

        Those of a batch that is in time do not wait: they are being worked on.
        """
        queued = self._behind
        if self._began is not None and now - self._began > self.every:
            late = now - self._began - self.every
            at_work = self.rate * self.every if self._rows is None else self._rows
            queued += at_work + self.rate * late
        received = max(self.totals.processed + queued, self.totals.received)
        self.totals = replace(self.totals, received=received)

    def _take_back(self, arrived: float) -> None:
        """Rows that were taken to arrive while a batch was late, and have not come, do not wait.

        Args:
            arrived: How many may have come since the newest batch began.
        """
        ended = self.totals.processed + sum(part.rows for part in self._unreported)
        received = min(self.totals.received, ended + self._behind + arrived)
        self.totals = replace(self.totals, received=received)

    def _count(self, progress: Progress, stretch: float) -> None:
        """Add the batch to the totals. Rows are taken to have arrived evenly over their stretch."""
        latencies = progress.seconds + stretch * (np.arange(PARTS) + 0.5) / PARTS
        histogram = LatencyHistogram.of(latencies, progress.rows / PARTS)
        now = self._seen.now if self._seen else progress.ended
        busy = self._executor_seconds(progress)
        self._unreported.append(_Part(progress.rows, busy, now + self.every))
        parts = [self.totals.latency, histogram] if progress.rows else [self.totals.latency]
        self.totals = replace(
            self.totals, ended=self.totals.ended + 1, latency=LatencyHistogram.sum(parts)
        )

    def _report(self, now: float) -> None:
        """Count the part of finished batches that is due by now."""
        rows = busy = 0.0
        left = []
        for part in self._unreported:
            ahead = part.until - self._reported_until
            share = min((now - self._reported_until) / ahead, 1.0) if ahead > 0 else 1.0
            rows, busy = rows + share * part.rows, busy + share * part.busy
            if share < 1:
                left.append(_Part((1 - share) * part.rows, (1 - share) * part.busy, part.until))
        self._unreported, self._reported_until = left, now
        self.totals = replace(
            self.totals, processed=self.totals.processed + rows, busy=self.totals.busy + busy
        )

    def _executor_seconds(self, progress: Progress) -> float:
        """What the rows of a batch cost, in executor-seconds.

        That is what policies count in: with the model, the executors that an input needs are in
        proportion to it; without, it is what the executors that were there took.
        """
        seen = self._seen
        count = len(seen.executors) if seen else 1
        if self.model and seen and seen.executors:
            per_rate = self.model.cores_per_rate(progress.rows, self.every, self.within)
            if per_rate > 0:
                return progress.rows * per_rate * count / max(seen.cores, 1)
        return progress.seconds * count


def latency_since(before: Totals, now: Totals) -> Latency | None:
    """The latencies of the rows whose batches have ended in between."""
    gained = {
        number: rows - before.latency.bins.get(number, 0.0)
        for number, rows in now.latency.bins.items()
    }
    histogram = LatencyHistogram({number: rows for number, rows in gained.items() if rows > 1e-9})
    return Latency.from_histogram(histogram) if histogram.bins else None
