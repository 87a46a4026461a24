"""A row that is a run of a pipeline, or several: its measures, and what it did over time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elastream.control import Cycle
from elastream.control.run import Result, Run
from elastream.core.evaluation import events_out
from elastream.core.metrics import RunMetrics
from elastream.core.stats import IntervalStats
from elastream.experiments.identity import identity
from elastream.experiments.work import Advance, Curve, Measured

Draw = Callable[[Result], tuple[Curve, ...]]
"""What of a run is drawn."""


Body = Callable[[Run, Callable[[Cycle], object]], Result]
"""What runs it: the simulator, or Spark. It tells of every cycle."""


def in_simulator(run: Run, after_each: Callable[[Cycle], object]) -> Result:
    """In virtual time."""
    return run.simulate(after_each)


@dataclass(frozen=True)
class PipelineRuns:
    """One run, or several with different seeds; a step is an interval.

    Args:
        run: Makes the run of a seed: what takes long, such as training, is done there.
        intervals: How many a run has.
        seeds: One run for each. More than one: the measures are means, with their spread, and what
            is drawn is the first.
        seconds: How long a run lasts in its own time.
        what: What is run, seed aside: two rows that run the same share what came of it.
        draw: What of it is drawn.
        also: Measures that not every run has.
    """

    run: Callable[[int], Run]
    intervals: int
    seeds: tuple[int, ...]
    seconds: float
    what: Mapping[str, Any]
    draw: Draw = field(default=lambda result: pipeline_curves(result))
    also: Callable[[Result], Mapping[str, float]] = field(default=lambda result: {})

    @classmethod
    def of(cls, run: Callable[[int], Run], seeds: tuple[int, ...]) -> PipelineRuns:
        """Of what needs no training."""
        first = run(seeds[0])
        return cls(run, first.intervals, seeds, first.trace.duration, identity(first))

    @property
    def steps(self) -> int:
        """As many as all runs have intervals."""
        return self.intervals * len(self.seeds)

    def measure(self, advance: Advance, body: Body = in_simulator) -> Measured:
        """Run all of it, in the simulator unless told otherwise."""
        return together([self.measure_one(seed, body, advance) for seed in self.seeds])

    def measure_one(self, seed: int, body: Body, advance: Advance) -> Measured:
        """The run of one seed."""
        result = body(self.run(seed), lambda cycle: advance(1))
        return Measured({**_columns(result.metrics), **self.also(result)}, self.draw(result))


def together(runs: Sequence[Measured]) -> Measured:
    """The means over several runs, and how far apart they are."""
    if len(runs) == 1:
        return runs[0]
    columns = [run.values for run in runs]
    known = {name for name in columns[0] if all(_number(of[name]) for of in columns)}
    values = {name: [float(of[name] or 0.0) for of in columns] for name in known}
    means = {name: statistics.fmean(of) for name, of in values.items()}
    spread = {name: statistics.stdev(of) for name, of in values.items()}
    commits = tuple(dict.fromkeys(commit for run in runs for commit in run.commits))
    return Measured(dict.fromkeys(columns[0]) | means, runs[0].curves, spread, commits)


def _number(value: object) -> bool:
    return isinstance(value, int | float)


def _columns(metrics: RunMetrics) -> dict[str, float | None]:
    """A paper's latency is the mean."""
    values: dict[str, Any] = metrics.as_dict()
    values["latency_ms"] = metrics.latency_ms.mean if metrics.latency_ms else None
    return values


def pipeline_curves(result: Result) -> tuple[Curve, ...]:
    """Replicas and throughput, as in the papers, and latency."""
    times = [cycle.time for cycle in result.cycles]
    topology = result.topology

    def each(value: Callable[[IntervalStats], float]) -> list[float]:
        return [value(stats) for stats in result.stats]

    # On a real engine, no interval is exactly as long as it should be.
    arrived = each(lambda stats: float(sum(stats.samples)) / stats.duration)
    left = each(lambda stats: events_out(topology, stats) / stats.duration)
    active = each(lambda stats: float(sum(of.active for of in stats.operators.values())))
    latency = [1000 * stats.latency.mean if stats.latency else None for stats in result.stats]
    return (
        Curve("active replicas", times, active),
        Curve("throughput (events/s)", times, left, given=arrived),
        # From milliseconds to minutes: runs that fall behind share the plot with those that do not.
        Curve("mean latency (ms)", times, latency, logarithmic=True),
    )
