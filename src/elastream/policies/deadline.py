"""`deadline`: the fewest replicas with which batches end in time, over their lead time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elastream.core.decision import Plan, Reason
from elastream.core.demand import Demand, demands
from elastream.core.equations import pa_sps
from elastream.core.stats import BatchStats, IntervalStats
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, unknown_cost


@dataclass(frozen=True)
class Deadline(Policy):
    """For engines that work in batches and whose replicas have a lead time.

    An operator needs the fewest replicas with which the largest batch forecast within the lead time
    ends in time, and a backlog is gone in `drain` seconds. Without a model of batches, the need is
    PA-SPS equation 2 for the same input.
    """

    margin: float = 0.1
    """How much to add to the largest forecast value within the lead time, as a share."""
    drain: float = 15.0
    """A backlog must be gone within this many seconds."""

    name = "deadline"
    paper = "elastream"

    def __post_init__(self) -> None:
        if not 0 <= self.margin < math.inf:
            raise InvalidInputError(f"margin={self.margin} must be 0 or more")
        if not 0 < self.drain < math.inf:
            raise InvalidInputError(f"drain={self.drain} must be a number of seconds above 0")

    @property
    def horizon(self) -> int:
        """The next interval, for replicas without a lead time."""
        return 1

    def horizon_after(self, stats: IntervalStats) -> int:
        """The intervals until a replica requested now works on a batch that begins then."""
        # What arrives now is known when the next batch begins.
        ahead = max([of.lead + of.every for of in stats.batches], default=0.0)
        return max(math.ceil(ahead / stats.duration), self.horizon)

    def decide(self, context: Context) -> Plan:
        """Enough for the largest input forecast within the lead time."""
        assert context.forecast is not None
        model = context.forecast.model
        largest = self._largest(context) * (1 + self.margin)
        expected = demands(context.topology, context.stats, largest, context.shares)
        counts, reasons = dict(context.active), {}
        for name in context.topology.by_name:
            batches, demand = context.stats.operators[name].batches, expected[name]
            if batches is None:
                count, reason = self._by_time(context, name, demand, model)
            elif batches.model is None:
                count, reason = _blind(context, name, batches)
            else:
                count, reason = self._by_batch(context, name, batches, demand, model)
            counts[name], reasons[name] = count, (reason,)
        return Plan(counts, reasons)

    def _largest(self, context: Context) -> float:
        """The largest input of an interval within the lead time; that of a batch is an average."""
        assert context.forecast is not None
        values, stats = context.forecast.values, context.stats
        every = max([of.every for of in stats.batches], default=0.0)
        steps = min(max(round(every / stats.duration), 1), len(values))
        return float(np.convolve(values, np.full(steps, 1 / steps), mode="valid").max())

    def _by_time(
        self, context: Context, name: str, demand: Demand, model: str
    ) -> tuple[int, Reason]:
        et, operator = context.execution_times.get(name), context.topology.by_name[name]
        if et is None:
            return context.active[name], unknown_cost()
        events = demand.received + demand.queued * min(context.td / self.drain, 1.0)
        count = pa_sps.replicas(events, et, context.td, operator.minimum, operator.pool)
        rate = demand.received / context.td
        return count, _reason(rate, demand.queued, model, f"{1000 * et:.3g} ms each")

    def _by_batch(
        self, context: Context, name: str, batches: BatchStats, demand: Demand, model: str
    ) -> tuple[int, Reason]:
        operator, batch = context.topology.by_name[name], batches.model
        assert batch is not None
        rate = demand.received / context.td
        served = rate + demand.queued / self.drain
        needed = batches.replicas_for(served)
        count = min(max(needed, operator.minimum), operator.pool)
        rows, limited = batches.rows_at(rate), batches.rows_at(served) < served * batches.every
        takes = batch.seconds(rows, count * batches.cores)
        text = f"a batch of {rows:,.0f} rows takes {takes:.1f} s with {count}"
        if limited:
            text += ", and the source gives no batch more"
        if not batch.attainable(batches.rows_at(served), batches.within):
            text += f", and no number makes it end in {batches.within:.1f} s"
        return count, _reason(rate, demand.queued, model, text, trust=batch.trust)


def _blind(context: Context, name: str, batches: BatchStats) -> tuple[int, Reason]:
    """Nothing is known about batches yet, so act only if one takes too long."""
    planned, pool = context.active[name], context.topology.by_name[name].pool
    if batches.seconds <= batches.every:
        return planned, Reason("unknown batches", {}, "too few batches seen yet to predict one")
    text = f"a batch takes {batches.seconds:.1f} s, above its {batches.every:g} s: twice as many"
    twice = min(2 * context.stats.operators[name].costing, pool)
    return max(planned, twice), Reason("late batch", {"seconds": batches.seconds}, text)


def _reason(rate: float, queued: float, model: str, text: str, **facts: float | str) -> Reason:
    waiting = f", {queued:,.0f} queued" if queued >= 1 else ""
    known: dict[str, float | str] = {"rate": rate, "queued": queued, "predictor": model, **facts}
    words = f"at most {rate:,.0f} rows/s expected ({model}), {text}{waiting}"
    return Reason("deadline", known, words)
