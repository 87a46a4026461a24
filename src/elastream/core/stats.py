"""What an engine measures in one control interval.

The vocabulary is here and nowhere else: every quantity has a name, a unit, the papers' symbol if it
has one, and a meaning, and `vocabulary()` lists them. Counts are floats, because the simulator's
events are a fluid. All values are immutable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.batches import BatchModel
from elastream.core.equations.pa_sps import utilization
from elastream.core.latency import LatencyHistogram
from elastream.errors import InvalidInputError

EdgeName = tuple[str, str]
"""Origin and target."""


class Quantity(NamedTuple):
    """What a number means."""

    unit: str
    symbol: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ReplicaStats:
    """One replica in one interval."""

    processed: Annotated[float, Quantity("events", "μ_i,j(t)", "processed in the interval")]
    busy: Annotated[float, Quantity("seconds", "", "time spent in the operator's function")]
    queued: Annotated[float, Quantity("events", "", "waiting for it at the end")] = 0.0
    cpu: Annotated[float, Quantity("cores", "UtilCPU", "processor time per second")] = 0.0
    core: Annotated[
        int | None, Quantity("", "C", "the core that it shares; none if it has its own")
    ] = None


@dataclass(frozen=True, slots=True)
class BatchStats:
    """The batches of an operator in one interval, for engines that work in batches."""

    ended: Annotated[int, Quantity("batches", "", "ended in the interval")]
    seconds: Annotated[float, Quantity("seconds", "", "of the newest, or of a longer one at work")]
    every: Annotated[float, Quantity("seconds", "", "from one batch's start to the next")]
    within: Annotated[float, Quantity("seconds", "", "limit for a batch")]
    cores: Annotated[int, Quantity("cores", "", "tasks that a replica runs at once")]
    running: Annotated[float, Quantity("tasks", "", "at work, on average")]
    waiting: Annotated[float, Quantity("tasks", "", "without a core, on average")]
    lead: Annotated[float, Quantity("seconds", "", "from asking for a replica until it works")]
    most: Annotated[float | None, Quantity("rows", "", "that a batch can have, if limited")] = None
    model: BatchModel | None = None
    """How long a batch takes, as far as it is known."""

    def rows_at(self, rows_per_second: float) -> float:
        """The rows of a batch with this input: what waits beyond a limit is read later."""
        rows = rows_per_second * self.every
        return rows if self.most is None else min(rows, self.most)

    def replicas_for(self, rows_per_second: float) -> int:
        """The fewest replicas with which batches of this input end in time, if it is known."""
        assert self.model is not None
        return -(-self.model.cores_for(self.rows_at(rows_per_second), self.within) // self.cores)


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """One operator in one interval."""

    received: Annotated[float, Quantity("events", "λ_i^r(t)", "received in the interval")]
    processed: Annotated[float, Quantity("events", "μ_i(t)", "processed in the interval")]
    emitted: Annotated[float, Quantity("events", "", "emitted, before edges choose among them")]
    queued: Annotated[float, Quantity("events", "|q_i(t)|", "waiting at the end")]
    busy: Annotated[float, Quantity("seconds", "", "time in the function, over all replicas")]
    active: Annotated[int, Quantity("replicas", "r_i(t)", "active in the interval")]
    dropped: Annotated[float, Quantity("events", "", "lost in the interval")] = 0.0
    draining: Annotated[int, Quantity("replicas", "", "turned off, but still finishing work")] = 0
    pending: Annotated[int, Quantity("replicas", "", "planned, but not running yet")] = 0
    dead: Annotated[int, Quantity("replicas", "", "planned, but silent for too long")] = 0
    stalled: Annotated[
        Mapping[int, float],
        Quantity("seconds", "", "in one unit so far, of replicas that take unusually long"),
    ] = field(default_factory=dict)
    set_aside: Annotated[
        float, Quantity("events", "", "set aside because the function failed on them; not lost")
    ] = 0.0
    errors: Annotated[
        Mapping[str, float], Quantity("events", "", "set aside, by error, where known")
    ] = field(default_factory=dict)
    restarted: Annotated[
        float, Quantity("replicas", "", "replaced in the interval (process or task)")
    ] = 0.0
    saturated: Annotated[
        float,
        Quantity("seconds", "", "replicas' time while more events waited, overhead included"),
    ] = 0.0
    saturated_events: Annotated[float, Quantity("events", "", "processed in that time")] = 0.0
    units: Annotated[
        float, Quantity("units", "", "batches that replicas took at once, each timed")
    ] = 0.0
    squares: Annotated[
        float, Quantity("seconds²", "", "sum over units: time squared, divided by events")
    ] = 0.0
    heaviest_lane: Annotated[
        float, Quantity("", "", "largest share of the input in one lane; 0 without a key")
    ] = 0.0
    replicas: Mapping[int, ReplicaStats] = field(default_factory=dict)
    """Those that were active in the interval, by their number in the pool."""
    batches: BatchStats | None = None
    """Only of engines that work in batches."""
    inside: Mapping[str, OperatorStats] = field(default_factory=dict)
    """Of a chain: its operators, from the first to the last; see `core.folding`."""

    @property
    def planned(self) -> int:
        """The replicas that the plan asks for, there or not."""
        return self.active + self.pending + self.dead

    @property
    def costing(self) -> int:
        """The replicas that cost something: active and draining ones."""
        return self.active + self.draining

    @property
    def skew(self) -> float:
        """The work of the busiest replica relative to the average, with a key; else 1."""
        work = [replica.busy for replica in self.replicas.values()]
        if not self.heaviest_lane or self.active < 2 or not sum(work):
            return 1.0
        return max(max(work) * self.active / sum(work), 1.0)

    @property
    def execution_time(self) -> float | None:
        """et_i as measured, in seconds per event; None when nothing was processed."""
        return self.busy / self.processed if self.processed > 0 else None

    @property
    def service_time(self) -> float | None:
        """What an event costs a busy replica, in seconds, taking and committing included.

        The inverse is the throughput of a replica that always has something to do. None when no
        replica had: one that waits for events takes fewer at a time, and each costs more.
        """
        return self.saturated / self.saturated_events if self.saturated_events > 0 else None

    @property
    def selectivity(self) -> float | None:
        """α: events emitted per event processed; None when nothing was processed."""
        return self.emitted / self.processed if self.processed > 0 else None

    def utilization(self, seconds: float) -> float:
        """The share of this time that its active replicas were busy for, 0 to 1."""
        return min(self.busy / (max(self.active, 1) * seconds), 1.0)


@dataclass(frozen=True, slots=True)
class SourceStats:
    """One source in one interval."""

    emitted: Annotated[float, Quantity("events", "λ_G(t)", "sent by the source")]
    queued: Annotated[float, Quantity("events", "", "held back at the end: the pipeline is full")]
    samples: Annotated[
        tuple[float, ...], Quantity("events", "", "arrived in each sampling window, oldest first")
    ] = ()


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """The executors of a cluster that run a pipeline, in one interval."""

    present: Annotated[int, Quantity("executors", "", "there at the end, leaving ones included")]
    seconds: Annotated[float, Quantity("executor-seconds", "", "paid for in the interval")]
    slots: Annotated[int, Quantity("tasks", "", "that one executor runs at once")]
    beside: Annotated[int, Quantity("tasks", "", "that are no replicas: sources and DataFrames")]
    wanted: Annotated[int, Quantity("executors", "", "asked for in total")] = 0
    lead: Annotated[float, Quantity("seconds", "", "from asking for one until it works")] = 0.0
    limits: tuple[int, int] | None = None
    """The fewest and the most that may be asked for; None where their number is fixed."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long events took from a source to the end of the pipeline."""

    count: Annotated[float, Quantity("events", "", "reached the end in the interval")]
    mean: Annotated[float, Quantity("seconds", "", "on average")]
    p50: Annotated[float, Quantity("seconds", "", "not exceeded by half of the events")]
    p95: Annotated[float, Quantity("seconds", "", "not exceeded by 95 % of the events")]
    p99: Annotated[float, Quantity("seconds", "", "not exceeded by 99 % of the events")]
    histogram: LatencyHistogram | None = None
    """The whole distribution, for engines that keep it: what percentiles of a run are read from."""

    @classmethod
    def of(cls, seconds: ArrayLike, weights: ArrayLike = 1.0) -> Latency:
        """The summary of these latencies, of which there is at least one."""
        lengths = np.asarray(seconds, dtype=np.float64)
        counts = np.broadcast_to(np.asarray(weights, dtype=np.float64), lengths.shape)
        mean = float(np.average(lengths, weights=counts))
        return cls.from_histogram(LatencyHistogram.of(lengths, counts), mean)

    @classmethod
    def from_histogram(cls, histogram: LatencyHistogram, mean: float | None = None) -> Latency:
        """The summary of a histogram that is not empty, with the exact mean if it is known."""
        p50, p95, p99 = histogram.quantiles(0.5, 0.95, 0.99)
        return cls(
            histogram.count, histogram.mean if mean is None else mean, p50, p95, p99, histogram
        )


@dataclass(frozen=True, slots=True)
class IntervalStats:
    """The whole pipeline in one interval."""

    interval: Annotated[int, Quantity("", "t", "number of the interval, from 0")]
    duration: Annotated[float, Quantity("seconds", "td", "length of the interval")]
    sources: Mapping[str, SourceStats]
    operators: Mapping[str, OperatorStats]
    edges: Annotated[
        Mapping[EdgeName, float], Quantity("events", "λ_i^p(t)", "received by i from p")
    ]
    latency: Latency | None = None
    """None when nothing reached the end."""
    sample: Annotated[
        float | None,
        Quantity("seconds", "", "length of a sampling window, if the engine reports it"),
    ] = None
    open: Annotated[
        float | None,
        Quantity("seconds", "", "since the last sampling window closed, if the engine reports it"),
    ] = None
    executors: ExecutorStats | None = None
    """Only of engines that run on those of a cluster."""
    input: float = field(init=False, repr=False, compare=False)
    """λ_G(t): events sent by all sources."""
    held: float = field(init=False, repr=False, compare=False)
    """Events that all sources hold back at the end."""

    def __post_init__(self) -> None:
        if not self.duration > 0:
            raise InvalidInputError(f"an interval of {self.duration} s: it must be above 0")
        # Policies on a fast clock add these up over hundreds of intervals.
        sources = self.sources.values()
        object.__setattr__(self, "input", sum([source.emitted for source in sources]))
        object.__setattr__(self, "held", sum([source.queued for source in sources]))
        for name in ("sources", "operators", "edges"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def batches(self) -> list[BatchStats]:
        """Those of the operators that work in batches."""
        return [of.batches for of in self.operators.values() if of.batches]

    @property
    def samples(self) -> NDArray[np.float64]:
        """Events that arrived in each sampling window, at all sources together."""
        total: NDArray[np.float64] = np.sum(
            [source.samples for source in self.sources.values()], axis=0, dtype=np.float64
        )
        return total

    def utilization(self, operator: str) -> Mapping[int, float]:
        """U_i,j(t) of the operator's active replicas (PA-SPS equation 1)."""
        stats = self.operators[operator]
        et = stats.execution_time or 0.0
        return {
            number: utilization(replica.processed, et, self.duration)
            for number, replica in stats.replicas.items()
        }


def vocabulary() -> Iterator[tuple[str, Quantity]]:
    """Every quantity that engines report, as `OperatorStats.received` and what it means."""
    for kind in (
        IntervalStats,
        SourceStats,
        OperatorStats,
        ReplicaStats,
        BatchStats,
        ExecutorStats,
        Latency,
    ):
        hints = get_type_hints(kind, include_extras=True)
        for entry in fields(kind):
            for note in getattr(hints[entry.name], "__metadata__", ()):
                yield f"{kind.__name__}.{entry.name}", note
