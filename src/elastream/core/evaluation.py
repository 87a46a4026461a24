"""From an engine's statistics, interval by interval, to the metrics of the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastream.core import metrics
from elastream.core.equations import pa_sps
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology

Floats = NDArray[np.float64]


def evaluate(
    topology: Topology,
    intervals: Sequence[IntervalStats],
    forecasts: Sequence[float | None] = (),
    overprovisioned: float | None = None,
    windows: Sequence[IntervalStats] = (),
) -> metrics.RunMetrics:
    """The metrics of a run.

    Args:
        topology: The pipeline that ran.
        intervals: What was measured, from the first interval to the last.
        forecasts: What the input of every interval was expected to be, in events; None for an
            interval that nothing was forecast for.
        overprovisioned: r_over over all operators; the pools together unless given.
        windows: The same time in the windows over which throughput is compared with the input; the
            intervals unless given.
    """
    run, flow = _Run(topology, intervals), _Run(topology, windows or intervals)
    arrived, processed = run.arrived, run.processed
    pairs = [
        (real, guess) for real, guess in zip(arrived, forecasts, strict=False) if guess is not None
    ]
    schedules = [run.active(name) for name in topology.by_name]
    paid = [run.costing(name) for name in topology.by_name]
    active, costing = (
        np.sum(each, axis=0) if intervals else np.zeros(0) for each in (schedules, paid)
    )
    pools = float(sum(operator.pool for operator in topology.operators))
    return metrics.RunMetrics(
        saved_resources=metrics.saved_resources(costing, overprovisioned or pools),
        throughput_degradation=metrics.throughput_degradation(flow.arrived, flow.processed),
        processed_ratio=metrics.processed_ratio(float(arrived.sum()), float(processed.sum())),
        latency_ms=metrics.LatencyMs.of([part.latency for part in intervals if part.latency]),
        input_error=metrics.relative_error(*zip(*pairs, strict=True)) if pairs else None,
        # The first interval starts before anything could be decided.
        replica_error=metrics.relative_error(run.needed()[1:], active[1:]),
        replica_seconds=metrics.replica_seconds(costing, [part.duration for part in intervals]),
        executor_seconds=run.executor_seconds,
        rescales=metrics.rescales(schedules),
        events_in=float(arrived.sum()),
        events_out=sum((events_out(topology, part) for part in intervals), 0.0),
        cost=metrics.cost(paid),
        extra_cost=metrics.extra_cost(paid, [run.needs(name) for name in topology.by_name]),
        cpu_seconds=run.cpu_seconds,
    )


def events_out(topology: Topology, stats: IntervalStats) -> float:
    """Events that the operators without a successor processed, also those inside chains."""
    out = 0.0
    for operator in topology.operators:
        of = stats.operators[operator.name]
        if operator.inside:
            out += sum(of.inside[name].processed for name in operator.ends)
        elif not topology.outgoing[operator.name]:
            out += of.processed
    return out


@dataclass(frozen=True)
class _Run:
    """Sums over sources and operators, one number per interval."""

    topology: Topology
    intervals: Sequence[IntervalStats]

    @property
    def arrived(self) -> Floats:
        """Events that arrived at the sources: those sent, and those that are newly held back."""
        held = np.array([sum(s.queued for s in part.sources.values()) for part in self.intervals])
        sent = np.array([part.input for part in self.intervals], dtype=np.float64)
        return sent + np.diff(held, prepend=0.0) if len(held) else sent

    @property
    def processed(self) -> Floats:
        """What the last operators did, in events of the input: a pipeline may filter or copy."""
        last = self.topology.terminals
        done = np.array(
            [sum(part.operators[name].processed for name in last) for part in self.intervals],
            dtype=np.float64,
        )
        share = sum(self._shares()[name] for name in last)
        return done / share if share > 0 else done

    def active(self, operator: str) -> Floats:
        """r_i(t)."""
        return np.array([part.operators[operator].active for part in self.intervals], np.float64)

    def costing(self, operator: str) -> Floats:
        """The replicas that cost something, also those that were turned off and still work."""
        return np.array([part.operators[operator].costing for part in self.intervals], np.float64)

    def needed(self) -> Floats:
        """Replicas that all operators would have needed for what they had to process."""
        total = np.zeros(len(self.intervals))
        for name in self.topology.by_name:
            total += self.needs(name)
        return total

    def needs(self, name: str) -> Floats:
        """Replicas that an operator would have needed."""
        operator, found = self.topology.by_name[name], np.zeros(len(self.intervals))
        processed = sum(part.operators[name].processed for part in self.intervals)
        busy = sum(part.operators[name].busy for part in self.intervals)
        each = busy / processed if processed > 0 else 0.0
        waiting = 0.0
        for number, part in enumerate(self.intervals):
            of = part.operators[name]
            found[number] = pa_sps.replicas(
                of.received + waiting, each, part.duration, operator.minimum, operator.pool
            )
            waiting = of.queued
        return found

    @property
    def executor_seconds(self) -> float | None:
        """What the executors add up to, if there are any."""
        found = [part.executors.seconds for part in self.intervals if part.executors]
        return sum(found) if found else None

    @property
    def cpu_seconds(self) -> float:
        """The processor time of all replicas."""
        return sum(
            replica.cpu * part.duration
            for part in self.intervals
            for of in part.operators.values()
            for replica in of.replicas.values()
        )

    def _shares(self) -> dict[str, float]:
        """θ_i over the whole run: what reaches a node per event of the input."""
        sent = {
            name: sum(part.sources[name].emitted for part in self.intervals)
            for name in (source.name for source in self.topology.sources)
        }
        everything = sum(sent.values())
        shares: dict[str, float] = {}
        for name in self.topology.order:
            if name in sent:
                shares[name] = sent[name] / everything if everything > 0 else 1 / len(sent)
                continue
            shares[name] = pa_sps.input_share(
                (self._share_of_output(edge.origin, name), shares[edge.origin])
                for edge in self.topology.incoming[name]
            )
        return shares

    def _share_of_output(self, origin: str, target: str) -> float:
        received = sum(part.edges.get((origin, target), 0.0) for part in self.intervals)
        processed = sum(
            part.sources[origin].emitted
            if origin in part.sources
            else part.operators[origin].processed
            for part in self.intervals
        )
        return pa_sps.output_share(received, processed, otherwise=1.0)
