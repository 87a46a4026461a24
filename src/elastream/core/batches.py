"""How long a micro-batch takes, fitted to the batches that were seen.

A batch takes a fixed time (planning, logs, commit), and its rows are processed in tasks. A core
takes one task at a time: with `n` tasks on `c` cores there are ⌈n/c⌉ waves, and more cores than
tasks do not help:

    seconds = fixed + ⌈n/c⌉ · (per_task + per_row · rows/n)

Spark adds up the time of all tasks, whatever the number of cores; so `per_task` and `per_row` come
from there, and `fixed` is what is left of the batch. The fit must survive first batches that are
many times slower, caches that fill, skew, and cores that come and go. So it takes medians over
batches and pairs of batches (Theil and Sen); those during which cores changed only tell what tasks
take; and when the newest batches are all off by one factor, the model follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW = 40
"""How many batches the fit looks back."""
LEAST = 2
"""With fewer batches, nothing is known."""
PAIRS = 3
"""With fewer pairs of batches that differ, rows and tasks cannot be told apart."""
APART = 0.1
"""Two batches differ when the rows of their tasks do, by this part of the largest."""
RECENT = 4
"""How many of the newest batches must agree that the cost has changed."""
CLOSE = 0.25
"""A batch was predicted when it took what the model says, give or take this share, ..."""
NEAR = 0.25
"""... or this many seconds, for short batches."""
UPPER = 0.9
"""The quantile of batches that plans are made for."""
MOST_UPPER = 2.0
HARDLY = 0.1
"""Where no number of cores suffices, those that make a batch shorter by less than this share are
not worth it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that has ended."""

    rows: float
    seconds: float
    tasks: int
    cores: int
    work: float
    """The time of all its tasks, in seconds."""
    overhead: float = 0.0
    """The share of `seconds` in which no task ran."""
    steady: bool = True
    """Whether the same cores were there from start to end, and had worked before."""

    @property
    def waves(self) -> int:
        """How many tasks the busiest core took, one after the other."""
        return waves(self.tasks, self.cores)


@dataclass(frozen=True, slots=True)
class BatchModel:
    """How long a batch is expected to take.

    >>> model = BatchModel(fixed=0.5, per_task=0.0, per_row=0.01, tasks=8)
    >>> model.seconds(rows=800, cores=4), model.seconds(rows=800, cores=100)
    (2.5, 1.5)
    >>> [model.cores_for(800, within) for within in (2.5, 2.0, 1.5, 1.0)]
    [4, 8, 8, 8]
    """

    fixed: float
    """Seconds of every batch."""
    per_task: float
    """Seconds of a core for every task."""
    per_row: float
    """Seconds of a core for every row."""
    tasks: int
    """Of a batch: the most cores that can work on it."""
    upper: float = 1.0
    """Nine of ten batches took at most this many times what was expected."""
    trust: float = 1.0
    """The share of recent batches that took what the model says."""
    seen: int = LEAST
    """How many batches it is fitted to."""

    def seconds(self, rows: float, cores: int) -> float:
        """How long a batch of this many rows is expected to take."""
        return self.fixed + waves(self.tasks, cores) * self.task_seconds(rows)

    def cores_for(self, rows: float, within: float) -> int:
        """The fewest cores with which nine of ten batches end in time; else all that help.

        Cores cannot make the fixed part of a batch shorter. Where that takes too long, the fewest
        are enough with which batches are hardly longer than with all:

        >>> slow = BatchModel(fixed=6.0, per_task=0.0, per_row=0.01, tasks=16)
        >>> slow.attainable(160, 3.0), slow.cores_for(160, 3.0), slow.cores_for(16000, 3.0)
        (False, 3, 16)
        """
        allowed, task = within / self.upper - self.fixed, self.task_seconds(rows)
        if not self.attainable(rows, within):
            allowed = (1 + HARDLY) * (self.fixed + task) - self.fixed
        if task <= 0 or allowed >= self.tasks * task:
            return 1
        # How many tasks a core may take in turn; rounding must not cost a whole core.
        turns = max(math.floor(allowed / task * (1 + 1e-9)), 1)
        return math.ceil(self.tasks / turns)

    def attainable(self, rows: float, within: float) -> bool:
        """Whether nine of ten batches of this many rows end in time with as many cores as tasks."""
        return self.upper * self.seconds(rows, self.tasks) <= within * (1 + 1e-9)

    def cores_per_rate(self, rows: float, every: float, within: float) -> float:
        """Cores for one row per second, near batches of this many rows; 0 if none suffice.

        As if tasks could be cut to any size, so that cores are in proportion to rows. A batch
        begins every `every` seconds, and has to end within `within` seconds.
        """
        allowed = within / self.upper - self.fixed
        if allowed <= 0 or rows <= 0:
            return 0.0
        return self.tasks * self.task_seconds(rows) / rows * every / allowed

    def task_seconds(self, rows: float) -> float:
        """How long a task of such a batch takes."""
        return self.per_task + self.per_row * rows / self.tasks


def waves(tasks: int, cores: int) -> int:
    """⌈n/c⌉: how many tasks the busiest of the cores takes in turn."""
    return math.ceil(tasks / max(cores, 1))


def fitted(batches: Sequence[Batch]) -> BatchModel | None:
    """The model of the newest batches, or None while there are too few.

    >>> def batch(rows):
    ...     work = 8 * 0.1 + 0.01 * rows
    ...     return Batch(rows, 0.5 + work / 4, tasks=8, cores=4, work=work)
    >>> model = fitted([batch(rows) for rows in (80, 160, 400)])
    >>> [round(part, 4) for part in (model.fixed, model.per_task, model.per_row, model.trust)]
    [0.5, 0.1, 0.01, 1.0]
    """
    seen = [batch for batch in batches if batch.rows > 0][-WINDOW:]
    if len(seen) < LEAST:
        return None
    each_rows = np.array([batch.rows / batch.tasks for batch in seen])
    each_work = np.array([batch.work / batch.tasks for batch in seen])
    per_task, per_row = _line(each_rows, each_work)
    steady = [batch for batch in seen if batch.steady]
    task = {batch: per_task + per_row * batch.rows / batch.tasks for batch in seen}
    rest = [max(batch.seconds - batch.waves * task[batch], batch.overhead) for batch in steady]
    fixed = float(np.median(rest or [batch.overhead for batch in seen]))
    # One small batch must not cap what the next may use.
    tasks = round(float(np.median([batch.tasks for batch in seen[-RECENT:]])))
    model = BatchModel(fixed, per_task, per_row, tasks, seen=len(seen))
    return _judged(model, steady or seen)


def _judged(model: BatchModel, batches: Sequence[Batch]) -> BatchModel:
    """The model, rated by recent batches, and adjusted if they all deviate alike."""
    newest = batches[-WINDOW // 2 :]
    seconds = np.array([batch.seconds for batch in newest])
    expected = np.array([model.seconds(batch.rows, batch.cores) for batch in newest])
    ratios = seconds / np.maximum(expected, 1e-9)
    drift = float(np.median(ratios[-RECENT:]))
    if len(ratios) < RECENT or np.any(np.abs(ratios[-RECENT:] / drift - 1) > CLOSE):
        drift = 1.0
    ratios = ratios / drift
    foretold = np.abs(seconds - expected * drift) <= np.maximum(CLOSE * expected * drift, NEAR)
    return BatchModel(
        fixed=model.fixed * drift,
        per_task=model.per_task * drift,
        per_row=model.per_row * drift,
        tasks=model.tasks,
        upper=float(np.clip(np.quantile(ratios, UPPER), 1.0, MOST_UPPER)),
        trust=float(np.mean(foretold[-2 * RECENT :])),
        seen=model.seen,
    )


def _line(rows: Floats, work: Floats) -> tuple[float, float]:
    """Seconds of a task and of each of its rows, neither below 0 (Theil and Sen's estimator).

    When all tasks have about as many rows, the two cannot be told apart. Then all time is
    attributed to the rows, which plans rather too much for more rows.
    """
    first, second = np.triu_indices(len(rows), 1)
    apart = rows[second] - rows[first]
    far = np.abs(apart) >= APART * rows.max()
    if far.sum() >= PAIRS:
        slope = float(np.median((work[second] - work[first])[far] / apart[far]))
        fixed = float(np.median(work - slope * rows))
        if slope > 0 and fixed >= 0:
            return fixed, slope
    return 0.0, float(np.median(work / rows))
